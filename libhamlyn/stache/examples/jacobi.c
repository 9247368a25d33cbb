// SPDX-License-Identifier: MIT
/*
 * Heat in a plate: each point becomes the mean of its neighbours, again and again. Each node
 * has a strip of rows; of the neighbours' strips it needs the rows next to it, which Stache
 * fetches.
 *
 *	hamlyn-run -n 4 jacobi [POINTS [STEPS]]
 */
#include "example.h"

static int points = 48, steps = 8;

static void fill(double *grid)
{
	for (int i = 0; i < points * points; i++)
		grid[i] = i * 37 % 101 / 7.0;
}

static void step(const double *from, double *to, int first, int end)
{
	for (int y = first; y < end; y++) {
		for (int x = 1; x < points - 1; x++)
			to[y * points + x] = 0.25 *
				(from[y * points + x - 1] + from[y * points + x + 1] +
				 from[(y - 1) * points + x] + from[(y + 1) * points + x]);
	}
}

/* Two grids, one after the other. The result is in the one that is returned. */
static double *run(double *grids, int first, int end, void (*wait)(void))
{
	double *from = grids, *to = grids + points * points;

	for (int i = 0; i < steps; i++) {
		double *swap = from;

		step(from, to, first, end);
		wait();
		from = to;
		to = swap;
	}
	return from;
}

static void nobody_else(void)
{
}

int main(int argc, char **argv)
{
	static double *grids;
	double *alone;
	size_t bytes;

	points = argc > 1 ? atoi(argv[1]) : points;
	steps = argc > 2 ? atoi(argv[2]) : steps;
	bytes = (size_t)points * points * sizeof(double);
	stache_init(NULL);
	grids = share(&grids, 2 * bytes);
	alone = malloc(2 * bytes);
	fill(alone);
	fill(alone + points * points);
	if (!ME)
		memcpy(grids, alone, 2 * bytes);
	TPPI_barrier();
	return compare(run(grids, 1 + first_of(ME, points - 2), 1 + first_of(ME + 1, points - 2),
			   TPPI_barrier),
		       run(alone, 1, points - 1, nobody_else), bytes);
}
