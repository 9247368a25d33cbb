/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <stdlib.h>

EXTERN_ENV

#include "sort.h"

unsigned int number_at(unsigned int seed, int index)
{
	unsigned int mixed = (seed + index) * 2654435761u;

	return (mixed ^ mixed >> 15) & 0xffff;
}

void fill_buckets(unsigned int seed)
{
	int chunk, i;

	for (;;) {
		GETSUB(global->numbers, chunk, NUMBERS / CHUNK - 1, processes)
		if (chunk < 0)
			return;
		for (i = chunk * CHUNK; i < (chunk + 1) * CHUNK; i++) {
			unsigned int number = number_at(seed, i);
			int bucket = number * BUCKETS >> 16;

			ALOCK(global->lock, bucket)
			global->bucket[bucket][global->used[bucket]++] = number;
			AULOCK(global->lock, bucket)
		}
	}
}

void sort_buckets(int (*compare)(const void *, const void *))
{
	int bucket;

	for (;;) {
		GETSUB(global->buckets, bucket, BUCKETS - 1, processes)
		if (bucket < 0)
			return;
		qsort(global->bucket[bucket], global->used[bucket], sizeof(unsigned int), compare);
	}
}
