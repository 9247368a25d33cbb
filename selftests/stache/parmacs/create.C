/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes get a number by static data that change from one CREATE to the next; or they end
 * by exit(); or one creates another, or waits for others, which are errors.
 *
 *	hamlyn-run -n 4 create numbers | exit | again | nested | waits
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

MAIN_ENV

#define ROUNDS	20
#define WORDS	20000	/* many pages, which take a while to load */

struct global_memory {
	int seen[64];
	int torn;
};

struct global_memory *global;

static int number[WORDS];

static void set_number(int value)
{
	int i;

	for (i = 0; i < WORDS; i++)
		number[i] = value;
}

static void take_number(void)
{
	int i;

	for (i = 1; i < WORDS; i++)
		if (number[i] != number[0])
			global->torn = 1;
	global->seen[number[0]] = 1;
}

static void numbers(int processes)
{
	int i, round;

	for (round = 0; round < ROUNDS; round++) {
		memset(global, 0, sizeof(*global));
		for (i = 1; i < processes; i++) {
			set_number(i);
			CREATE(take_number)
		}
		WAIT_FOR_END(processes - 1)
		for (i = 1; i < processes; i++) {
			if (!global->seen[i] || global->torn) {
				printf("NOT EQUAL: round %d, process %d\n", round, i);
				exit(1);
			}
		}
	}
}

static void take_and_exit(void)
{
	take_number();
	exit(0);
}

static void end_by_exit(int processes)
{
	int i;

	for (i = 1; i < processes; i++) {
		set_number(i);
		CREATE(take_and_exit)
	}
	WAIT_FOR_END(processes - 1)
	for (i = 1; i < processes; i++) {
		if (!global->seen[i]) {
			printf("NOT EQUAL: process %d\n", i);
			exit(1);
		}
	}
}

static void create_another(void)
{
	CREATE(take_number)
}

static void wait_for_another(void)
{
	WAIT_FOR_END(1)
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "numbers";
	int processes = TPPI_num_nodes;

	MAIN_INITENV
	global = (struct global_memory *)G_MALLOC(sizeof(*global));
	if (!strcmp(what, "numbers")) {
		numbers(processes);
	} else if (!strcmp(what, "exit")) {
		end_by_exit(processes);
	} else if (!strcmp(what, "again") || !strcmp(what, "nested")) {
		if (!strcmp(what, "again"))
			end_by_exit(processes);
		CREATE(create_another)
		WAIT_FOR_END(1)
	} else if (!strcmp(what, "waits")) {
		CREATE(wait_for_another)
		WAIT_FOR_END(1)
	} else {
		fprintf(stderr, "create: %s is none of numbers, exit, again, nested, waits\n", what);
		exit(2);
	}
	printf("equal to the sequential result, %d processes\n", processes);
	MAIN_END
}
