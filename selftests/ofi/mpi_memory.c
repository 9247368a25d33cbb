// SPDX-License-Identifier: GPL-2.0-only
/*
 * MPI: what it takes that each process talks to each or, with an argument, that
 * all start, meet, add up their ranks, and end. A line: processes, then for one
 * of them KiB of the device, KiB that its own memory grows by, and KiB of its
 * own memory in all.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hamlyn.h>
#include <mpi.h>

/* The device tells of its memory who asks for more than there is. */
static long device_free_kib(struct h_dev *dev)
{
	char why[HAMLYN_EXPLAIN_BYTES];
	struct hamlyn_query query;
	struct h_area *area;
	long left;

	if (h_query(dev, &query) || !h_area_alloc(dev, query.max_area, &area))
		return -1;
	h_explain(dev, why, sizeof(why));
	return sscanf(why, "%*[^0-9]%*u KiB asked for, %ld KiB free", &left) ==
				       1 ||
			       sscanf(why, "%*u KiB asked for, %ld KiB free",
				      &left) == 1
		       ? left
		       : -1;
}

/* Of all pages that are no file's; KiB */
static long anonymous_kib(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	long kib = -1;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Anonymous: %ld kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static void talk_to_all(int rank, int size)
{
	for (int step = 1; step < size; step++) {
		int to = (rank + step) % size,
		    from = (rank + size - step) % size, got;

		MPI_Sendrecv(&rank, 1, MPI_INT, to, 1, &got, 1, MPI_INT, from,
			     1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void meet(int rank, int size)
{
	int sum;

	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (sum != size * (size - 1) / 2) {
		fprintf(stderr, "rank %d: wrong sum\n", rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	long before[2], after[2], own[2], sum[2];
	struct h_dev *dev = NULL;
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size < 2 || (!rank && h_open(NULL, &dev)))
		MPI_Abort(MPI_COMM_WORLD, 1);
	before[0] = rank ? 0 : device_free_kib(dev);
	before[1] = anonymous_kib();
	(argc > 1 ? meet : talk_to_all)(rank, size);
	after[0] = rank ? 0 : device_free_kib(dev);
	after[1] = anonymous_kib();
	own[0] = after[1] - before[1];
	own[1] = after[1];
	MPI_Reduce(own, sum, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank) {
		double n = size;

		if (before[0] < 0 || after[0] < 0 || before[1] < 0)
			MPI_Abort(MPI_COMM_WORLD, 1);
		printf("%d %.0f %.0f %.0f\n", size,
		       (double)(before[0] - after[0]) / n, (double)sum[0] / n,
		       (double)sum[1] / n);
	}
	MPI_Finalize();
	h_close(dev);
	return 0;
}
