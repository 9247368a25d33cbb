// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long does a step of Jacobi's method take on two nodes? One point of it is the mean of
 * four neighbours.
 *
 * jacobi-SYSTEM aligned	rows of a page, half of them each node's: two rows are read by
 *				both
 * jacobi-SYSTEM columns	of each row, which is a page, a half is each node's: both store
 *				to all pages, and read a point of each of the other one's rows
 * jacobi-SYSTEM plates		plates of 512 bytes, every second one a node's: both store to
 *				all pages, and read nothing of each other
 * jacobi-SYSTEM turns		rows of 512 bytes, every second one a node's: both store to all
 *				pages, and read all of each other
 *
 * Prints microseconds per step, the median of batches; fails if the result is not that of one
 * node.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "system.h"

#define NODES 2
#define BATCHES 15

/**
 * struct shape - which points there are, and whose
 * @name: to choose it
 * @rows: rows
 * @points: of a row
 * @block: bytes that a node stores to alone, more or less
 * @steps: of a batch
 * @group: rows that are dealt together, in turns; 0: the first half is the first node's
 * @is_plate: a group is a plate of its own
 * @columns: a half of each row is a node's
 */
struct shape {
	const char *name;
	int rows, points, block, steps;
	int group;
	bool is_plate, columns;
};

static const struct shape shapes[] = {
	{ .name = "aligned",
	  .rows = 256,
	  .points = 512,
	  .block = 4096,
	  .steps = 40 },
	{ .name = "columns",
	  .rows = 64,
	  .points = 512,
	  .block = 128,
	  .steps = 10,
	  .columns = true },
	{ .name = "plates",
	  .rows = 512,
	  .points = 8,
	  .block = 512,
	  .steps = 40,
	  .group = 8,
	  .is_plate = true },
	{ .name = "turns",
	  .rows = 64,
	  .points = 64,
	  .block = 512,
	  .steps = 10,
	  .group = 1 },
};

static const struct shape *shape;
static int self;

static size_t row_bytes(void)
{
	return shape->points * sizeof(double);
}

static int owner_of(int row)
{
	return shape->group ? row / shape->group % NODES
			    : row * NODES / shape->rows;
}

static bool is_mine(int row)
{
	return shape->columns || owner_of(row) == self;
}

/* Those of a plate that have neighbours on both sides. */
static bool is_inside(int row)
{
	return !shape->is_plate ||
	       (row % shape->group && (row + 1) % shape->group);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static void fill(double *grid)
{
	for (int i = 0; i < shape->rows * shape->points; i++)
		grid[i] = i * 37 % 101 / 7.0;
}

static void compute_row(const double *from, double *to, int first, int end)
{
	const double *above = from - shape->points,
		     *below = from + shape->points;

	for (int x = first; x < end; x++)
		to[x] = 0.25 *
			(from[x - 1] + from[x + 1] + above[x] + below[x]);
}

/* What of a row the other node is going to read: nothing of most. */
static void tell(double *row, int number)
{
	int half = shape->points / 2;

	if (shape->columns)
		system_stored(row + (self ? half : half - 1), sizeof(double));
	else if (!shape->is_plate &&
		 (owner_of(number - 1) != self || owner_of(number + 1) != self))
		system_stored(row, row_bytes());
}

static void step(const double *from, double *to)
{
	int half = shape->points / 2, first = 1, end = shape->points - 1;

	if (shape->columns) {
		first = self ? half : 1;
		end = self ? end : half;
	}
	for (int row = 1; row < shape->rows - 1; row++) {
		double *result = to + (size_t)row * shape->points;

		if (!is_mine(row) || !is_inside(row))
			continue;
		compute_row(from + (size_t)row * shape->points, result, first,
			    end);
		tell(result, row);
	}
	system_barrier();
}

/* The result is in the first grid: a batch has an even number of steps. */
static double batch(double *a, double *b)
{
	double start = now_us();

	for (int i = 0; i < shape->steps; i += 2) {
		step(a, b);
		step(b, a);
	}
	return (now_us() - start) / shape->steps;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool is_right(const double *grid)
{
	double *a = malloc(shape->rows * row_bytes()),
	       *b = malloc(shape->rows * row_bytes());
	bool right = true;

	fill(a);
	fill(b);
	for (int i = 0; i < BATCHES * shape->steps; i++) {
		double *swap = a;

		for (int row = 1; row < shape->rows - 1; row++) {
			if (is_inside(row))
				compute_row(a + (size_t)row * shape->points,
					    b + (size_t)row * shape->points, 1,
					    shape->points - 1);
		}
		a = b;
		b = swap;
	}
	/* Messages bring nothing but what is needed */
	for (int row = 0; row < shape->rows; row++) {
		size_t at = (size_t)row * shape->points, bytes = row_bytes();

		if (shape->columns) {
			bytes /= NODES;
			at += self * shape->points / NODES;
		}
		if (is_mine(row))
			right &= !memcmp(a + at, grid + at, bytes);
	}
	return right;
}

static double *new_grid(void)
{
	double *grid = system_memory(shape->rows * row_bytes(), shape->block);

	if (!grid)
		abort();
	return grid;
}

static void choose(const char *name)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (!strcmp(name, shapes[i].name))
			shape = &shapes[i];
	}
	if (!shape) {
		fprintf(stderr, "there is no shape \"%s\"\n", name);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	double times[BATCHES], *a, *b;

	self = system_start();
	choose(argc > 1 ? argv[1] : "aligned");
	a = new_grid();
	b = new_grid();
	system_barrier();
	if (!self || !strcmp(system_name, "messages")) {
		fill(a);
		fill(b);
	}
	system_barrier();
	for (int i = 0; i < BATCHES; i++)
		times[i] = batch(a, b);
	system_barrier();
	if (!is_right(a)) {
		fprintf(stderr, "%s: node %d: the result is wrong\n",
			system_name, self);
		exit(1);
	}
	qsort(times, BATCHES, sizeof(times[0]), compare);
	if (!self) {
		printf("%s %s %.1f\n", system_name, shape->name,
		       times[BATCHES / 2]);
		fflush(stdout);
	}
	system_end();
	return 0;
}
