/* SPDX-License-Identifier: GPL-2.0-only */
/* What hamlyn-run itself says, on standard error. */
#ifndef RUN_MESSAGE_H
#define RUN_MESSAGE_H

#include <stddef.h>

/* One line "hamlyn-run: ...", by one write: those of processes do not come in between */
__attribute__((format(printf, 1, 2)))
void say(const char *format, ...);

/* Zeroed memory; ends the program if there is none, and its processes with it */
void *allocate(size_t n, size_t size);
void *enlarge(void *memory, size_t size);

#endif /* RUN_MESSAGE_H */
