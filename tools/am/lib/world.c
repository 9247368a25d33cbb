// SPDX-License-Identifier: GPL-2.0-only
/* The processes of the program. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gam.h"
#include "world.h"

#define MEASURED_PROCESSES	2	/* those that take part in a ping-pong */

static const char *name = "";
static unsigned long *shared;
static int shared_each;
static long shared_count;
static bool released;

/* Not exit(): handlers call it too, and nothing may be sent any more. */
void die(const char *format, ...)
{
	va_list args;
	char text[1024];
	int n;

	n = snprintf(text, sizeof(text), "%s: process %d: ", name, am_my_proc());
	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - (size_t)n - 1, format, args);
	va_end(args);
	strcat(text, "\n");
	fflush(stdout);
	fputs(text, stderr);
	_exit(1);
}

void must(int ret, const char *call)
{
	if (ret < 0)
		die("%s: %s (%s)", call, am_error(), strerror(-ret));
}

void world_poll(void)
{
	must(am_poll(), "am_poll");
}

/* ---- begin and end ------------------------------------------------------ */

static void check_number(int least, int most)
{
	int procs = am_procs();

	if (procs >= least && (!most || procs <= most))
		return;
	if (!am_my_proc()) {
		fprintf(stderr, "%s: needs ", name);
		if (most)
			fprintf(stderr, "%d to %d", least, most);
		else
			fprintf(stderr, "at least %d", least);
		fprintf(stderr, " processes, not %d: hamlyn-run -n N %s\n", procs, name);
	}
	am_disable();
	exit(2);
}

void world_enable(const char *program, int least, int most)
{
	int ret;

	name = program;
	ret = am_enable();
	if (ret < 0) {
		fprintf(stderr, "%s: cannot join the parallel program: %s (%s)\n", name,
			am_error(), strerror(-ret));
		exit(1);
	}
	check_number(least, most);
}

int world_disable(void)
{
	world_barrier();
	must(am_disable(), "am_disable");
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "%s: cannot write the results\n", name);
		return 1;
	}
	return 0;
}

void world_barrier(void)
{
	must(lam_sync_all(), "lam_sync_all");
}

/* ---- words for everybody ------------------------------------------------ */

static void share_arrived(vnn_t source, long number, long word)
{
	shared[source * shared_each + number] = (unsigned long)word;
	shared_count++;
}

/*
 * Two barriers: nobody sends before all know where to put it, nor sends the next words
 * before all have counted these.
 */
void world_share(const unsigned long *mine, int n, unsigned long *all)
{
	int procs = am_procs(), me = am_my_proc(), i, p;

	shared = all;
	shared_each = n;
	shared_count = 0;
	memcpy(all + me * n, mine, (size_t)n * sizeof(*mine));
	world_barrier();
	for (p = 1; p < procs; p++)
		for (i = 0; i < n; i++)
			must(am_request_2((me + p) % procs, share_arrived, i, (long)mine[i]),
			     "am_request_2");
	WAIT_FOR(shared_count == (long)(procs - 1) * n);
	world_barrier();
}

void world_sum(unsigned long *words, int n)
{
	unsigned long *all = world_alloc((unsigned long)(am_procs() * n) * sizeof(*all));
	int i, p;

	world_share(words, n, all);
	memset(words, 0, (size_t)n * sizeof(*words));
	for (p = 0; p < am_procs(); p++)
		for (i = 0; i < n; i++)
			words[i] += all[p * n + i];
	free(all);
}

void world_share_pointer(const void *mine, unsigned long *all)
{
	unsigned long word = (unsigned long)mine;

	world_share(&word, 1, all);
}

/* ---- while process 0 measures ------------------------------------------- */

static void release_arrived(vnn_t source)
{
	(void)source;
	released = true;
}

/* Who takes no part in what is measured must not take the processor from who does. */
static void idle(void)
{
	static const struct timespec nap = { .tv_nsec = 1000000 };

	if (am_my_proc() >= MEASURED_PROCESSES)
		nanosleep(&nap, NULL);
}

void world_serve(void)
{
	while (!released) {
		world_poll();
		idle();
	}
	released = false;
	world_barrier();
}

void world_release(void)
{
	int p;

	for (p = 1; p < am_procs(); p++)
		must(am_request_0(p, release_arrived), "am_request_0");
	world_barrier();
}

/* ---- odds and ends ------------------------------------------------------ */

void *world_alloc(unsigned long bytes)
{
	void *memory = malloc(bytes ? bytes : 1);

	if (!memory)
		die("no memory: %lu bytes", bytes);
	return memory;
}

void json_open(const char *test, unsigned long size)
{
	printf("{\"test\":\"%s\",\"system\":\"hamlyn-am\",\"processes\":%d,\"size\":%lu", test,
	       am_procs(), size);
}

void json_number(const char *key, double value)
{
	printf(",\"%s\":%.*f", key, value == (double)(long)value ? 0 : 3, value);
}

void json_text(const char *key, const char *text)
{
	printf(",\"%s\":\"%s\"", key, text);
}

void json_close(void)
{
	printf("}\n");
}
