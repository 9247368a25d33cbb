/* SPDX-License-Identifier: MIT */
/* What the examples share: each computes something twice, with all nodes and alone. */
#ifndef STACHE_EXAMPLE_H
#define STACHE_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stache.h>

#define ME	TPPI_self_address
#define NODES	TPPI_num_nodes

/* Node 0 makes it, all have it. */
static inline void *share(const void *name, size_t bytes)
{
	if (!ME)
		stache_publish(name, stache_malloc(bytes));
	return stache_find(name);
}

/* The first of the items that are a node's, of so many. */
static inline int first_of(TPPI_NodeId node, int items)
{
	return (int)((long)items * node / NODES);
}

/* Numbers that look like chance, from 0 to 1. */
static inline double chance(unsigned int *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) / 16777216.0;
}

/* Node 0 says whether both results are the same, to the last bit. */
static inline int compare(const void *shared, const void *alone, size_t bytes)
{
	int same;

	TPPI_barrier();
	same = ME || !memcmp(shared, alone, bytes);
	if (!ME)
		printf("%s to the sequential result, %u nodes\n", same ? "equal" : "NOT EQUAL",
		       NODES);
	TPPI_barrier();
	return !same;
}

#endif /* STACHE_EXAMPLE_H */
