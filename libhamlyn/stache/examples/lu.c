// SPDX-License-Identifier: MIT
/*
 * A matrix becomes the product of two triangular ones, in place. Row k is subtracted from
 * all rows below it; rows are dealt out in turns, so that all nodes have some to the end.
 *
 *	hamlyn-run -n 4 lu [ROWS]
 */
#include "example.h"

static int rows = 32;

static void fill(double *matrix)
{
	unsigned int seed = 1;

	/* What dominates in each row makes pivots unnecessary */
	for (int i = 0; i < rows * rows; i++)
		matrix[i] = chance(&seed) + (i % (rows + 1) ? 0 : rows);
}

static void subtract(double *matrix, int k, int row)
{
	double factor = matrix[row * rows + k] /= matrix[k * rows + k];

	for (int i = k + 1; i < rows; i++)
		matrix[row * rows + i] -= factor * matrix[k * rows + i];
}

static void factor_shared(double *matrix)
{
	for (int k = 0; k < rows - 1; k++) {
		for (int row = k + 1; row < rows; row++) {
			if (row % NODES == ME)
				subtract(matrix, k, row);
		}
		/* Row k + 1 is complete, and the next one to be subtracted */
		TPPI_barrier();
	}
}

static void factor_alone(double *matrix)
{
	for (int k = 0; k < rows - 1; k++) {
		for (int row = k + 1; row < rows; row++)
			subtract(matrix, k, row);
	}
}

int main(int argc, char **argv)
{
	static double *matrix;
	double *alone;
	size_t bytes;

	rows = argc > 1 ? atoi(argv[1]) : rows;
	bytes = (size_t)rows * rows * sizeof(double);
	stache_init(NULL);
	matrix = share(&matrix, bytes);
	alone = malloc(bytes);
	fill(alone);
	if (!ME)
		memcpy(matrix, alone, bytes);
	TPPI_barrier();
	factor_shared(matrix);
	factor_alone(alone);
	return compare(matrix, alone, bytes);
}
