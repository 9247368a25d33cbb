// SPDX-License-Identifier: MIT
/*
 * Processes in the style of PARMACS: node 0 runs main(), the others wait until it creates
 * them. The static data that they begin with go through shared memory.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "error.h"
#include "stache/parmacs.h"
#include "static_data.h"
#include "wait.h"

#define PARENT		0
#define MOST_NODES	64

/* Name of @image: begin of the program's data, as the library's are elsewhere in each process. */
static void *image_name;

/* Not a child of fork(), which runs exit handlers, too. */
static pid_t self;

/* Parent: data for the others; which of them run a function, or are of no use any more. */
static void *image;
static _Atomic bool runs[MOST_NODES];

/* Parent's handlers: how many have returned, and were not waited for; who waits for one. */
static unsigned int ended;
static struct stache_wait *parent;

/* Others: the function that they are to run, and who waits until it can; or the program is over. */
static struct stache_wait idle = STACHE_WAIT;
static void *creator;
static _Atomic bool over;

/* Others: within such a function. */
static bool running;

static void on_create(TPPI_NodeId src, int size)
{
	void *function = TPPI_recv_P();

	(void)src;
	(void)size;
	creator = TPPI_recv_P();
	stache_wake(&idle, (uintptr_t)function);
}

static void on_over(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	over = true;
	stache_wake(&idle, 0);
}

/* ---- others ---- */

static void on_loaded(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	stache_wake(TPPI_recv_P(), 0);
}

static void count_end(void)
{
	if (parent) {
		stache_wake(parent, 0);
		parent = NULL;
	} else {
		ended++;
	}
}

static void on_ended(TPPI_NodeId src, int size)
{
	(void)size;
	runs[src] = false;
	count_end();
}

/* The node has left its loop for good: it stays one that runs. */
static void on_exit_called(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	count_end();
}

static void tell_of_exit(void)
{
	if (running && getpid() == self)
		TPPI_send(PARENT, on_exit_called);
}

static void work(void)
{
	if (atexit(tell_of_exit))
		stache_die("no memory");
	for (;;) {
		uintptr_t function = stache_wait(&idle);

		/* It may be over by now: the look comes after what the next wait depends on */
		idle.state = 1;
		if (over)
			exit(EXIT_SUCCESS);
		if (!CONTROL(CONTROL_NO_STATIC_DATA))
			stache_static_data_load(stache_find(image_name));
		TPPI_send_items(PARENT, on_loaded, "P", creator);
		running = true;
		((void (*)(void))function)();
		running = false;
		TPPI_send(PARENT, on_ended);
	}
}

/* ---- parent ---- */

static void end_others(void)
{
	for (TPPI_NodeId node = 1; node < TPPI_num_nodes && getpid() == self; node++)
		TPPI_send(node, on_over);
}

static TPPI_NodeId free_node(void)
{
	for (TPPI_NodeId node = 1; node < TPPI_num_nodes; node++) {
		if (!runs[node])
			return node;
	}
	stache_die("one process more is created than there are nodes, %u", TPPI_num_nodes);
}

void stache_parmacs_create(void (*function)(void))
{
	struct stache_wait loaded = STACHE_WAIT;
	TPPI_NodeId node;

	if (TPPI_self_address != PARENT)
		stache_die("a created process creates another, which only node %u can", PARENT);
	node = free_node();
	runs[node] = true;
	stache_static_data_save(image);
	TPPI_send_items(node, on_create, "PP", (void *)function,
			stache_wait_name(&loaded));
	/* There is one image: the next process must not find its data in place of these */
	stache_wait(&loaded);
}

static void on_wait(TPPI_NodeId src, int size)
{
	struct stache_wait *wait = TPPI_recv_P();

	(void)src;
	(void)size;
	if (!ended) {
		parent = wait;
		return;
	}
	ended--;
	stache_wake(wait, 0);
}

void stache_parmacs_wait(unsigned int number)
{
	if (TPPI_self_address != PARENT)
		stache_die("a created process waits for others, which only node %u can", PARENT);
	while (number--) {
		struct stache_wait wait = STACHE_WAIT;

		TPPI_send_items(PARENT, on_wait, "P", stache_wait_name(&wait));
		stache_wait(&wait);
	}
}

/* ---- both ---- */

void stache_parmacs_begin(void *data, void *end)
{
	struct stache_place place = { .block_bytes = TPPI_PAGE_SIZE };

	self = getpid();
	image_name = data;
	stache_init(NULL);
	stache_static_data_start(data, end);
	if (TPPI_self_address != PARENT)
		work();
	image = stache_malloc_place(stache_static_data_bytes(), &place);
	if (!image)
		stache_die("no shared memory for the program's static data");
	stache_publish(image_name, image);
	if (atexit(end_others))
		stache_die("no memory");
}

/* Everybody takes one number that is too large: with the last of them all is over. */
int stache_parmacs_subscript(const void *name, int last, unsigned int threads)
{
	unsigned int number = stache_count(name);

	if ((int)number <= last)
		return number;
	if (number == last + threads)
		stache_count_reset(name);
	stache_barrier(name, threads);
	return -1;
}

unsigned long stache_parmacs_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000UL + now.tv_nsec / 1000;
}
