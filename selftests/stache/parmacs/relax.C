/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In the style of SPLASH: a plate is relaxed until it changes no more. Processes find in
 * static data what their parent has stored there.
 *
 *	hamlyn-run -n 4 relax -p4
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MAIN_ENV

#define MOST_POINTS	64
#define MOST_STEPS	1000

struct global_memory {
	LOCKDEC(id_lock)
	LOCKDEC(change_lock)
	BARDEC(start)
	BARDEC(step)
	int next_id;
	int steps;
	double change[2];
	double grid[2][MOST_POINTS][MOST_POINTS];
};

struct global_memory *global;

int processes = 1;
static int points = 32;
static double limit;			/* what .bss has before */
static double edge[MOST_POINTS] = { 1 };	/* and .data */
char *text = "nothing";			/* in .data, with a pointer */

void slave_start(void);

static double private_grid[2][MOST_POINTS][MOST_POINTS];

static void fill(double grid[2][MOST_POINTS][MOST_POINTS])
{
	int i, x;

	for (i = 0; i < 2; i++) {
		memset(grid[i], 0, sizeof(grid[i]));
		for (x = 0; x < points; x++)
			grid[i][0][x] = edge[x];
	}
}

static double relax(double grid[2][MOST_POINTS][MOST_POINTS], int from, int first, int end)
{
	double most = 0;
	int x, y;

	for (y = first; y < end; y++) {
		for (x = 1; x < points - 1; x++) {
			double old = grid[from][y][x];
			double new = 0.25 * (grid[from][y][x - 1] + grid[from][y][x + 1] +
					     grid[from][y - 1][x] + grid[from][y + 1][x]);

			grid[!from][y][x] = new;
			if (fabs(new - old) > most)
				most = fabs(new - old);
		}
	}
	return most;
}

static int relax_alone(void)
{
	int step = 0;

	fill(private_grid);
	while (step < MOST_STEPS && relax(private_grid, step % 2, 1, points - 1) > limit)
		step++;
	return step;
}

void slave_start(void)
{
	int id, first, end, step = 0, rows = points - 2;
	double most;

	LOCK(global->id_lock)
	id = global->next_id++;
	UNLOCK(global->id_lock)
	if (strcmp(text, "a plate")) {
		printf("process %d: the text is %s\n", id, text);
		exit(1);
	}
	/* A variable of libc, which is elsewhere in each process */
	fflush(stdout);
	first = 1 + rows * id / processes;
	end = 1 + rows * (id + 1) / processes;
	BARRIER(global->start, processes)
	do {
		most = relax(global->grid, step % 2, first, end);
		LOCK(global->change_lock)
		if (most > global->change[step % 2])
			global->change[step % 2] = most;
		UNLOCK(global->change_lock)
		BARRIER(global->step, processes)
		most = global->change[step % 2];
		BARRIER(global->step, processes)
		if (id == 0)
			global->change[step % 2] = 0;
		step++;
	} while (step < MOST_STEPS && most > limit);
	if (id == 0)
		global->steps = step - 1;
}

int main(int argc, char **argv)
{
	int i, option;

	while ((option = getopt(argc, argv, "p:")) != -1)
		if (option == 'p')
			processes = atoi(optarg);
	MAIN_INITENV(, 1000000)
	limit = 1e-2;
	text = "a plate";
	for (i = 0; i < points; i++)
		edge[i] = 1 + i % 3;
	global = (struct global_memory *)G_MALLOC(sizeof(*global));
	LOCKINIT(global->id_lock)
	LOCKINIT(global->change_lock)
	BARINIT(global->start)
	BARINIT(global->step)
	global->next_id = 0;
	fill(global->grid);
	for (i = 1; i < processes; i++)
		CREATE(slave_start)
	slave_start();
	WAIT_FOR_END(processes - 1)
	i = relax_alone();
	if (global->steps != i ||
	    memcmp(global->grid, private_grid, sizeof(private_grid)) != 0) {
		printf("NOT EQUAL: %d steps, %d alone\n", global->steps, i);
		exit(1);
	}
	printf("equal to the sequential result, %d processes, %d steps\n", processes, i);
	MAIN_END
}
