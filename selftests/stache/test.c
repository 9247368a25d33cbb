// SPDX-License-Identifier: GPL-2.0-only
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#define MOST_THREADS	64

unsigned int stache_control;

long rounds(long otherwise)
{
	const char *text = getenv("HAMLYN_TEST_ROUNDS");

	if (stache_control)
		return 1000 * otherwise;
	return text ? atol(text) : otherwise;
}

struct thread {
	pthread_t id;
	void (*run)(unsigned int thread);
	unsigned int number;
};

static void *start(void *argument)
{
	struct thread *thread = argument;

	thread->run(thread->number);
	return NULL;
}

void in_threads(unsigned int threads, void (*run)(unsigned int thread))
{
	struct thread all[MOST_THREADS];

	CHECK(threads <= MOST_THREADS);
	for (unsigned int i = 0; i < threads; i++) {
		all[i].run = run;
		all[i].number = i;
		CHECK(!pthread_create(&all[i].id, NULL, start, &all[i]));
	}
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(all[i].id, NULL);
}

/* By the message layer: what is to be tested is not what the test stands on. */
static void *_Atomic told;

static void told_handler(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	told = TPPI_recv_P();
}

void *tell_all(void *memory)
{
	TPPI_barrier();
	if (memory) {
		for (TPPI_NodeId node = 0; node < NODES; node++)
			TPPI_send_items(node, told_handler, "P", memory);
	}
	/* Of another node a message may be on its way still when the barrier is passed */
	while (!told)
		usleep(100);
	memory = told;
	TPPI_barrier();
	told = NULL;
	TPPI_barrier();
	return memory;
}

static int list(void)
{
	for (const struct test *t = tests; t->name; t++)
		printf("%s %u %s\n", t->name, t->controls, t->dies ? t->dies : "");
	return 0;
}

int main(int argc, char **argv)
{
	const struct test *t = tests;

	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list();
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "Usage: %s --list | TEST [CONTROL]\n", argv[0]);
		return 2;
	}
	while (t->name && strcmp(t->name, argv[1]))
		t++;
	if (argc == 3)
		stache_control = atoi(argv[2]);
	if (!t->name || (stache_control & ~t->controls)) {
		fprintf(stderr, "%s: there is no such test\n", argv[0]);
		return 2;
	}
	t->run();
	TPPI_barrier();
	return 0;
}
