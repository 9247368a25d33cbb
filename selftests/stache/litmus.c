// SPDX-License-Identifier: GPL-2.0-only
/*
 * Litmus tests: a few accesses by each of several threads, whose results tell whether there
 * is one order of all of them. Which results are possible then is found by trying all
 * orders; any other one fails the test.
 *
 * Rounds are run in batches, each round in memory of its own, so that the threads meet
 * without waiting for each other between rounds. With $HAMLYN_TEST_ROUNDS the program
 * prints how often each result was seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#define MOST_ROLES	4
#define MOST_OPS	2
#define LOCATIONS	3
#define REGISTERS	4	/* and one more: what is in x at the end */
#define OUTCOMES	(1 << (2 * (REGISTERS + 1)))
#define BATCH		64
#define PLACES		256	/* rounds of a batch take any of them */
#define BLOCK		128
#define PATIENCE_NS	(60 * INT64_C(1000000000))

enum { X, Y, Z };

/* One access: a store of @value, or a load to register @value. */
struct op {
	char kind;
	int location;
	int value;
};

struct shape {
	const char *name;
	int roles, registers;
	struct op ops[MOST_ROLES][MOST_OPS];
};

#define W(location, value)	{ 'W', location, value }
#define R(location, index)	{ 'R', location, index }

static const struct shape shapes[] = {
	{ "SB", 2, 2, { { W(X, 1), R(Y, 0) }, { W(Y, 1), R(X, 1) } } },
	{ "MP", 2, 2, { { W(X, 1), W(Y, 1) }, { R(Y, 0), R(X, 1) } } },
	{ "LB", 2, 2, { { R(X, 0), W(Y, 1) }, { R(Y, 1), W(X, 1) } } },
	{ "CoRR", 2, 2, { { W(X, 1) }, { R(X, 0), R(X, 1) } } },
	{ "CoWW", 2, 1, { { W(X, 1), W(X, 2) }, { R(X, 0) } } },
	{ "WRC", 3, 3, { { W(X, 1) }, { R(X, 0), W(Y, 1) }, { R(Y, 1), R(X, 2) } } },
	{ "ISA2", 3, 3, { { W(X, 1), W(Y, 1) }, { R(Y, 0), W(Z, 1) }, { R(Z, 1), R(X, 2) } } },
	{ "IRIW", 4, 4, { { W(X, 1) }, { W(Y, 1) }, { R(X, 0), R(Y, 1) }, { R(Y, 2), R(X, 3) } } },
};

static const struct shape *shape;
static bool allowed[OUTCOMES];
static unsigned long seen[OUTCOMES];

/* ---- what is possible ---- */

struct machine {
	int memory[LOCATIONS];
	int registers[REGISTERS];
	int next[MOST_ROLES];
};

static int outcome_of(const int registers[REGISTERS], int final)
{
	int outcome = final;

	for (int i = REGISTERS - 1; i >= 0; i--)
		outcome = outcome << 2 | registers[i];
	return outcome;
}

static void try_all(struct machine machine)
{
	bool done = true;

	for (int role = 0; role < shape->roles; role++) {
		struct machine after = machine;
		int index = after.next[role]++;
		const struct op *op = &shape->ops[role][index];

		if (index == MOST_OPS || !op->kind)
			continue;
		done = false;
		if (op->kind == 'W')
			after.memory[op->location] = op->value;
		else
			after.registers[op->value] = after.memory[op->location];
		try_all(after);
	}
	if (done)
		allowed[outcome_of(machine.registers, machine.memory[X])] = true;
}

/* ---- rounds ---- */

static volatile char *memory;		/* of LOCATIONS, PLACES blocks each */
static volatile int *results;		/* of each register, of each round of the batch */
static volatile int *over;
static unsigned int threads, all_threads;
static long batches;

static volatile int *word(int location, long batch, int round)
{
	uint32_t seed = batch;
	int place = (chance(&seed) + round) % PLACES;

	return (volatile int *)(memory + (location * PLACES + place) * BLOCK);
}

static void meet(void)
{
	stache_barrier(&all_threads, all_threads);
}

static void clear(long batch)
{
	for (int location = 0; location < LOCATIONS; location++) {
		for (int round = 0; round < BATCH; round++)
			*word(location, batch, round) = 0;
	}
}

/* Copies here and there, so that rounds begin with all tags. */
static void touch(long batch, uint32_t *seed)
{
	for (int location = 0; location < LOCATIONS; location++) {
		for (int round = 0; round < BATCH; round++) {
			if (chance(seed) % 2)
				(void)*word(location, batch, round);
		}
	}
}

static void pause_by_chance(uint32_t *seed)
{
	uint32_t chosen = chance(seed);

	for (uint32_t left = chance(seed) % (chosen % 4 ? 64 : 2048); left; left--)
		__builtin_ia32_pause();
}

/*
 * Between two accesses of a role, so that others come in between: also those that have no processor
 * of their own, and the thread that serves them here.
 */
static void dawdle(uint32_t *seed)
{
	switch (chance(seed) % 8) {
	case 0:
		pause_by_chance(seed);
		break;
	case 1:
		usleep(100);
		break;
	}
}

RACES
static void play(int role, long batch, uint32_t *seed)
{
	for (int round = 0; round < BATCH; round++) {
		pause_by_chance(seed);
		for (int i = 0; i < MOST_OPS; i++) {
			const struct op *op = &shape->ops[role][i];

			if (i && op->kind)
				dawdle(seed);
			if (op->kind == 'W')
				*word(op->location, batch, round) = op->value;
			else if (op->kind == 'R')
				results[op->value * BATCH + round] =
					*word(op->location, batch, round);
		}
	}
}

static void judge(long batch)
{
	for (int round = 0; round < BATCH; round++) {
		int registers[REGISTERS] = { 0 };
		int outcome;

		for (int i = 0; i < shape->registers; i++)
			registers[i] = results[i * BATCH + round];
		outcome = outcome_of(registers, *word(X, batch, round));
		seen[outcome]++;
		if (!allowed[outcome])
			failed(__FILE__, __LINE__, "%s: %d %d %d %d, and %d in x",
			       shape->name, registers[0], registers[1], registers[2],
			       registers[3], outcome >> 8);
	}
}

static bool saw_all(void)
{
	for (int i = 0; i < OUTCOMES; i++) {
		if (allowed[i] && !seen[i])
			return false;
	}
	return true;
}

/* With as many roles as nodes each result must come, sooner or later: else they never met. */
static bool is_enough(long batch, int64_t end)
{
	if (batch < batches)
		return false;
	return NODES != 2 || shape->roles != 2 || saw_all() || now_ns() > end;
}

static void run(unsigned int thread)
{
	int64_t end = now_ns() + PATIENCE_NS * scale();
	unsigned int self = thread * NODES + ME;
	uint32_t seed = self;

	for (long batch = 0; !*over; batch++) {
		unsigned int role = (self + batch) % all_threads;

		if (!role)
			clear(batch);
		meet();
		touch(batch, &seed);
		meet();
		if (role < (unsigned int)shape->roles)
			play(role, batch, &seed);
		meet();
		if (!self) {
			judge(batch);
			*over = is_enough(batch + 1, end);
		}
		meet();
	}
}

static void print(void)
{
	printf("%-5s %u nodes:", shape->name, NODES);
	for (int i = 0; i < OUTCOMES; i++) {
		if (!allowed[i])
			continue;
		putchar(' ');
		for (int index = 0; index < shape->registers; index++)
			putchar('0' + (i >> 2 * index & 3));
		printf(":%lu", seen[i]);
	}
	printf("\n");
	fflush(stdout);
}

static void share_memory(void)
{
	struct stache_place place = { .block_bytes = BLOCK };
	char *all = NULL;

	if (!ME)
		all = stache_malloc_place(BLOCK + (LOCATIONS * PLACES + PLACES) * BLOCK, &place);
	all = tell_all(all);
	over = (volatile int *)all;
	results = (volatile int *)(all + BLOCK);
	memory = all + BLOCK + PLACES * BLOCK;
}

static void litmus(void)
{
	stache_init(NULL);
	threads = (shape->roles + NODES - 1) / NODES;
	all_threads = threads * NODES;
	batches = (rounds(8 * BATCH) + BATCH - 1) / BATCH;
	try_all((struct machine){ 0 });
	share_memory();
	in_threads(threads, run);
	if (ME)
		return;
	if (getenv("HAMLYN_TEST_ROUNDS"))
		print();
	if (NODES == 2 && shape->roles == 2)
		CHECK(saw_all());
}

#define SHAPE(index, name)	\
	static void name(void) \
	{ \
		shape = &shapes[index]; \
		litmus(); \
	}

SHAPE(0, store_buffering)
SHAPE(1, message_passing)
SHAPE(2, load_buffering)
SHAPE(3, two_reads)
SHAPE(4, two_writes)
SHAPE(5, write_to_read)
SHAPE(6, three_in_a_row)
SHAPE(7, independent_reads)

const struct test tests[] = {
	{ "SB", store_buffering, CONTROL_NO_ACKS, NULL },
	{ "MP", message_passing, CONTROL_NO_ACKS, NULL },
	{ "LB", load_buffering, 0, NULL },
	{ "CoRR", two_reads, 0, NULL },
	{ "CoWW", two_writes, 0, NULL },
	{ "WRC", write_to_read, 0, NULL },
	{ "ISA2", three_in_a_row, 0, NULL },
	{ "IRIW", independent_reads, 0, NULL },
	{ 0 }
};
