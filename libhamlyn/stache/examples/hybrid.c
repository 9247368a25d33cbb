// SPDX-License-Identifier: MIT
/*
 * Two protocols in one program: the plate of jacobi.c until it changes no more. A strip is
 * stored to by one node and read by its neighbours, so the rows are in memory that is pushed
 * (update.h). How much has changed is everybody's, under a lock: that is Stache's.
 *
 *	hamlyn-run -n 4 hybrid [POINTS [STEPS]]
 */
#include <math.h>

#include "example.h"
#include "update.h"

#define MOST_NODES	64

struct progress {
	double change[2];
};

static int points = 40, steps = 30;

/* A strip of each of the two grids, for each node; the first and the last row never change. */
static double *strips[2][MOST_NODES];
static int owners[4096];

static double *row_of(int grid, int row)
{
	return strips[grid][owners[row]] + (row - first_of(owners[row], points)) * points;
}

static void fill_row(double *row, int y)
{
	for (int x = 0; x < points; x++)
		row[x] = (y * points + x) * 37 % 101 / 7.0;
}

static double relax_row(const double *above, const double *row, const double *below, double *to)
{
	double most = 0;

	for (int x = 1; x < points - 1; x++) {
		to[x] = 0.25 * (row[x - 1] + row[x + 1] + above[x] + below[x]);
		most = fmax(most, fabs(to[x] - row[x]));
	}
	return most;
}

static void allocate(void)
{
	for (TPPI_NodeId node = 0; node < NODES; node++) {
		int first = first_of(node, points), end = first_of(node + 1, points);

		for (int grid = 0; grid < 2; grid++)
			strips[grid][node] = update_malloc(node, (size_t)(end - first) * points *
								 sizeof(double));
		for (int row = first; row < end; row++)
			owners[row] = node;
	}
}

static double relax_shared(int from)
{
	double most = 0;

	for (int y = first_of(ME, points); y < first_of(ME + 1, points); y++) {
		if (y && y < points - 1)
			most = fmax(most, relax_row(row_of(from, y - 1), row_of(from, y),
						    row_of(from, y + 1), row_of(!from, y)));
	}
	return most;
}

/* The sum of what has changed at most, step by step, is the same in all nodes. */
static double run(struct progress *progress)
{
	double sum = 0;

	for (int step = 0; step < steps; step++) {
		double most = relax_shared(step % 2);

		stache_lock(progress);
		progress->change[step % 2] = fmax(progress->change[step % 2], most);
		stache_unlock(progress);
		update_barrier();
		sum += progress->change[step % 2];
		update_barrier();
		if (!ME)
			progress->change[step % 2] = 0;
	}
	return sum;
}

static double run_alone(double *grids)
{
	size_t size = (size_t)points * points;
	double sum = 0;

	for (int step = 0; step < steps; step++) {
		double *from = grids + step % 2 * size, *to = grids + !(step % 2) * size;
		double most = 0;

		for (int y = 1; y < points - 1; y++) {
			double *row = from + y * points;

			most = fmax(most, relax_row(row - points, row, row + points,
						    to + y * points));
		}
		sum += most;
	}
	return sum;
}

/* Own rows, and a step or two of whatever is there: then all neighbours are consumers. */
static void prepare(void)
{
	for (int times = 0; times < 2; times++) {
		for (int y = first_of(ME, points); y < first_of(ME + 1, points); y++) {
			fill_row(row_of(0, y), y);
			fill_row(row_of(1, y), y);
		}
		update_barrier();
		if (times)
			return;
		relax_shared(0);
		relax_shared(1);
		update_barrier();
	}
}

static double *result_of_one(void)
{
	size_t size = (size_t)points * points;
	double *grids = malloc(2 * size * sizeof(double));
	double sum;

	for (int y = 0; y < points; y++) {
		fill_row(grids + y * points, y);
		fill_row(grids + size + y * points, y);
	}
	sum = run_alone(grids);
	memmove(grids, grids + steps % 2 * size, size * sizeof(double));
	grids[size] = sum;
	return grids;
}

int main(int argc, char **argv)
{
	struct stache_attr attr = {
		.bytes = TPPI_SEG_SIZE / 2,
		.page_fault = update_page_fault,
	};
	static struct progress *progress;
	static double *result;
	size_t bytes;
	int fetched;

	points = argc > 1 ? atoi(argv[1]) : points;
	steps = argc > 2 ? atoi(argv[2]) : steps;
	bytes = ((size_t)points * points + 1) * sizeof(double);
	update_init();
	stache_init(&attr);
	allocate();
	progress = share(&progress, sizeof(*progress));
	result = share(&result, bytes);
	prepare();
	fetched = update_fetched;
	result[(size_t)points * points] = run(progress);
	/* Whatever was needed came by itself */
	if (update_fetched != fetched)
		abort();
	for (int y = first_of(ME, points); y < first_of(ME + 1, points); y++)
		memcpy(result + (size_t)y * points, row_of(steps % 2, y), points * sizeof(double));
	return compare(result, result_of_one(), bytes);
}
