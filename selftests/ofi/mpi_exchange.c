// SPDX-License-Identifier: GPL-2.0-only
/*
 * MPI: everybody to everybody, or to the next few, of all lengths, checked byte by byte; then
 * who wrote to whom.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#define LONGEST	(1 << 20)
#define ROUNDS	3

static int rank, size;

static void fail(const char *what, size_t length)
{
	fprintf(stderr, "rank %d: %s, length %zu\n", rank, what, length);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char byte_of(int from, int to, size_t length, size_t at)
{
	return (unsigned char)((size_t)from * 31 + (size_t)to * 7 + length + at);
}

static void exchange(unsigned char *out, unsigned char *in, int step, size_t length)
{
	int to = (rank + step) % size, from = (rank + size - step) % size;
	MPI_Status status;
	int got;

	for (size_t i = 0; i < length; i++)
		out[i] = byte_of(rank, to, length, i);
	memset(in, 0, length);
	MPI_Sendrecv(out, (int)length, MPI_BYTE, to, step, in, (int)length, MPI_BYTE, from, step,
		     MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &got);
	if (got != (int)length || status.MPI_SOURCE != from)
		fail("another message", length);
	for (size_t i = 0; i < length; i++)
		if (in[i] != byte_of(from, rank, length, i))
			fail("wrong byte", length);
}

/* What comes before it is asked for, in the order of its tags backwards. */
static void unexpected(void)
{
	int values[64], next = (rank + 1) % size, last = (rank + size - 1) % size;
	MPI_Request requests[64];

	for (int i = 0; i < 64; i++) {
		values[i] = rank * 100 + i;
		MPI_Isend(&values[i], 1, MPI_INT, next, 1000 + i, MPI_COMM_WORLD, &requests[i]);
	}
	for (int i = 63; i >= 0; i--) {
		int value;

		MPI_Recv(&value, 1, MPI_INT, last, 1000 + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (value != last * 100 + i)
			fail("wrong order", (size_t)i);
	}
	MPI_Waitall(64, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
	unsigned char *out = malloc(LONGEST), *in = malloc(LONGEST);
	int steps = argc > 1 ? atoi(argv[1]) : 0, sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (steps < 1 || steps >= size)
		steps = size - 1;
	for (size_t length = 0; length <= LONGEST; length = length ? length * 8 : 1)
		for (int round = 0; round < ROUNDS; round++)
			for (int step = 1; step <= steps; step++)
				exchange(out, in, step, length);
	unexpected();
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (sum != size * (size - 1) / 2)
		fail("wrong sum", 0);
	if (!rank)
		printf("all correct, %d processes\n", size);
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
