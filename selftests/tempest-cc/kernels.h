/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_KERNELS_H
#define TEMPEST_CC_KERNELS_H

#include <stdint.h>

/* Name, what it is, rounds that take some milliseconds */
#define KERNELS(X)						\
	X(chase, "pointer chase, 16 KiB", 200)			\
	X(tree, "search in a tree", 30)				\
	X(hash, "hash table", 60)				\
	X(sort, "heap sort", 6)					\
	X(match, "longest match of bytes", 6)			\
	X(histogram, "histogram of bytes", 100)			\
	X(triad, "triad, 48 KiB", 500)				\
	X(stencil, "stencil of five points", 200)		\
	X(matrix, "product of matrices", 10)

#define DECLARE(name, what, rounds)				\
	uint64_t checked_##name(void *arena, int rounds_);	\
	uint64_t plain_##name(void *arena, int rounds_);
KERNELS(DECLARE)

#endif /* TEMPEST_CC_KERNELS_H */
