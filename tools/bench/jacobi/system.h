/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a way to share memory has to do for jacobi.c. Each is a file of its own, and a
 * program; all have two nodes.
 */
#ifndef JACOBI_SYSTEM_H
#define JACOBI_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

extern const char *const system_name;

/* Returns the node. */
int system_start(void);
void system_end(void);
void system_barrier(void);

/*
 * Memory of whole pages, at the same address at both nodes. Each page's home is the next
 * node. Blocks of this size are stored to by one node, more or less.
 */
double *system_memory(size_t bytes, int block);

/* A node has stored what the other one is going to read. */
void system_stored(double *start, size_t bytes);

#endif /* JACOBI_SYSTEM_H */
