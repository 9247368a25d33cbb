/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HAMLYN_PERF_MEMORY_H
#define HAMLYN_PERF_MEMORY_H

#include <stdint.h>

/* Bytes, as far as /proc tells. */
struct memory {
	uint64_t resident;	/* of this process */
	uint64_t own;		/* of those, its own alone */
	uint64_t shared;	/* and of segments */
	uint64_t free;		/* of the machine */
	uint64_t slab;		/* of the kernel, not to be had back */
};

void memory_look(struct memory *memory);

/* Of so many, if it became more; else 0. */
double memory_each(uint64_t more, uint64_t less, uint32_t count);

#endif /* HAMLYN_PERF_MEMORY_H */
