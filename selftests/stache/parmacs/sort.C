/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In the style of SPLASH: numbers are put into buckets, which are sorted. Loops are shared by
 * subscripts, each bucket has a lock of its own, and sorting waits until all buckets are filled.
 *
 *	hamlyn-run -n 4 sort 4
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MAIN_ENV

#include "sort.h"

int processes;
struct global_memory *global;

static int round_number;
static unsigned int seed = 1;	/* changed before CREATE, and needed after it */
static unsigned int alone[NUMBERS];

static int compare(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return x < y ? -1 : x > y;
}

static void work(void)
{
	int process;

	LOCK(global->id_lock)
	process = global->next_id++;
	UNLOCK(global->id_lock)
	fill_buckets(seed);
	if (process == 0)
		SETPAUSE(global->filled)
	WAITPAUSE(global->filled)
	sort_buckets(compare);
}

static int is_right(void)
{
	unsigned int *next = alone;
	int i;

	for (i = 0; i < NUMBERS; i++)
		alone[i] = number_at(seed, i);
	qsort(alone, NUMBERS, sizeof(alone[0]), compare);
	for (i = 0; i < BUCKETS; i++) {
		int used = global->used[i];

		if (memcmp(global->bucket[i], next, used * sizeof(*next)) != 0)
			return 0;
		next += used;
	}
	return next == alone + NUMBERS;
}

int main(int argc, char **argv)
{
	unsigned long start, end;
	int i;

	processes = argc > 1 ? atoi(argv[1]) : 1;
	MAIN_INITENV
	global = (struct global_memory *)G_MALLOC(sizeof(*global));
	ALOCKINIT(global->lock, BUCKETS)
	GSINIT(global->numbers)
	GSINIT(global->buckets)
	PAUSEINIT(global->filled)
	CLOCK(start)
	/* Nodes are used again, and find what has changed meanwhile */
	for (round_number = 1; round_number <= 2; round_number++) {
		seed = 100 * round_number;
		CLEARPAUSE(global->filled)
		global->next_id = 0;
		memset(global->used, 0, sizeof(global->used));
		for (i = 1; i < processes; i++)
			CREATE(work)
		work();
		WAIT_FOR_END(processes - 1)
		if (!is_right()) {
			printf("NOT EQUAL in round %d\n", round_number);
			exit(1);
		}
	}
	CLOCK(end)
	if (end < start)
		exit(1);
	printf("equal to the sequential result, %d processes\n", processes);
	MAIN_END
}
