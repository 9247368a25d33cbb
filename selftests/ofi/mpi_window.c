// SPDX-License-Identifier: GPL-2.0-only
/*
 * MPI: everybody adds to a number of rank 0's, and writes to and reads from all windows.
 * MPI_Compare_and_swap() is not tried: btl/ofi of Open MPI 4.1 crashes there, over any provider.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define ROUNDS	50
#define BLOCK	20000	/* more than goes in one message */

struct window {
	long sum;
	int block[64][BLOCK / sizeof(int)];	/* of each rank */
};

static int rank, size;
static struct window *mine;
static MPI_Win win;

static void fail(const char *what, long was)
{
	fprintf(stderr, "rank %d: %s: %ld\n", rank, what, was);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_Aint at(size_t offset)
{
	return (MPI_Aint)offset;
}

/* What was there before is never seen twice, and the sum is right in the end. */
static void add(void)
{
	long one = 1, was, last = -1;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Fetch_and_op(&one, &was, MPI_LONG, 0, at(offsetof(struct window, sum)), MPI_SUM,
				 win);
		MPI_Win_flush(0, win);
		if (was <= last || was >= (long)size * ROUNDS)
			fail("fetched", was);
		last = was;
	}
}

static void write_and_read(int *block, int *back)
{
	size_t own = offsetof(struct window, block) + (size_t)rank * sizeof(mine->block[0]);

	for (int to = 0; to < size; to++) {
		for (int i = 0; i < (int)(BLOCK / sizeof(int)); i++)
			block[i] = rank * 1000003 + to * 1009 + i;
		MPI_Put(block, BLOCK, MPI_BYTE, to, at(own), BLOCK, MPI_BYTE, win);
		MPI_Win_flush(to, win);
		memset(back, 0, BLOCK);
		MPI_Get(back, BLOCK, MPI_BYTE, to, at(own), BLOCK, MPI_BYTE, win);
		MPI_Win_flush(to, win);
		if (memcmp(block, back, BLOCK))
			fail("read back another block", to);
	}
}

static void check(void)
{
	if (!rank && mine->sum != (long)size * ROUNDS)
		fail("sum", mine->sum);
	for (int from = 0; from < size; from++)
		for (int i = 0; i < (int)(BLOCK / sizeof(int)); i++)
			if (mine->block[from][i] != from * 1000003 + rank * 1009 + i)
				fail("wrong number of rank", from);
}

int main(int argc, char **argv)
{
	int *block = malloc(BLOCK), *back = malloc(BLOCK);

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	/* Of windows that it allocates Open MPI makes shared memory, and goes nowhere with them. */
	mine = calloc(1, sizeof(*mine));
	MPI_Win_create(mine, sizeof(*mine), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	add();
	write_and_read(block, back);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	check();
	if (!rank)
		printf("all correct, %d processes\n", size);
	MPI_Win_free(&win);
	MPI_Finalize();
	free(mine);
	free(block);
	free(back);
	return 0;
}
