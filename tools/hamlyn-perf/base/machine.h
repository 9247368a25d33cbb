/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HAMLYN_PERF_MACHINE_H
#define HAMLYN_PERF_MACHINE_H

#include <stdbool.h>

struct machine {
	char cpu[128];
	char kernel[128];
	long cores;
	bool virtual;
};

void machine_look(struct machine *machine);

#endif /* HAMLYN_PERF_MACHINE_H */
