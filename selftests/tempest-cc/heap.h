/* SPDX-License-Identifier: GPL-2.0-only */
/* Put in front of a program's files: its heap is heap.c's. */
#ifndef TEMPEST_CC_HEAP_H
#define TEMPEST_CC_HEAP_H

#include <stdlib.h>

void *heap_malloc(size_t size);
void *heap_calloc(size_t n, size_t size);
void *heap_realloc(void *p, size_t size);
void heap_free(void *p);

#define malloc(size)		heap_malloc(size)
#define calloc(n, size)		heap_calloc(n, size)
#define realloc(p, size)	heap_realloc(p, size)
#define free(p)			heap_free(p)

#endif /* TEMPEST_CC_HEAP_H */
