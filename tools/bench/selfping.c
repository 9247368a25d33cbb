// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a message through an awake engine costs, beside what a bare hand-off of
 * a cache line costs, on two processors: a process on the first sends itself
 * messages that the engine on the second carries, and, taking turns with that,
 * hands a line to a process on the second and gets it back. For User-Mode Linux
 * (selftests/vm/uml.sh), where threads of one process do not run at the same
 * time, and where looking at the clock by a system call would take longer than
 * a message: time is taken from the processor's time-stamp counter.
 *
 * usage: selfping DEVICE [MESSAGES]
 * Prints JSON lines.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hamlyn.h>

#define ROUNDS		20
#define WARM_UP		200
#define DEFAULT_N	100000
#define AREA		8192
#define PATIENCE_S	5	/* for one message or hand-off */

enum test { LIMIT, FAST8, MSG16, MSG256, MSG4096, TESTS };

static const struct {
	const char *system;
	size_t size;
} tests[TESTS] = {
	[LIMIT] = { "limit", 8 },
	[FAST8] = { "fast", 8 },
	[MSG16] = { "hamlyn", 16 },
	[MSG256] = { "hamlyn", 256 },
	[MSG4096] = { "hamlyn", 4096 },
};

struct line {
	uint64_t number;
	char pad[120];		/* processors fetch lines in pairs */
};

struct shared {
	struct line there;
	struct line back;
	pthread_barrier_t start;
};

static struct shared *shared;

struct side {
	struct h_dev *dev;
	struct h_area *in;
	struct h_area *out;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_terminus *terminus;
	struct h_ticket ticket;
	struct h_ticket fast;
	uint64_t *ticks;	/* of each test */
	double ns_per_tick;
	uint32_t n;		/* messages of a test in a round */
};

static void check(int64_t ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "selfping: %s: %s\n", what, strerror((int)-ret));
	exit(1);
}

static uint64_t ticks(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtscp" : "=a"(low), "=d"(high) : : "ecx", "memory");
	return (uint64_t)high << 32 | low;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	check(sched_setaffinity(0, sizeof(set), &set) ? -errno : 0, "sched_setaffinity");
}

/* Spins without a system call. Gives up after that many ticks. */
static uint64_t patience;

static void overdue(uint64_t since, const char *what)
{
	if (ticks() - since < patience)
		return;
	fprintf(stderr, "selfping: no %s in time\n", what);
	exit(1);
}

static void await(const uint64_t *word, uint64_t value, uint64_t since)
{
	uint32_t spins = 0;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		if (!(++spins & 0xffff))
			overdue(since, "hand-off");
}

/* ---- the bare hand-off ---- */

static void answer(uint32_t n)
{
	uint64_t i, total;
	int round;

	pin(1);
	for (round = 0, i = 0, total = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&shared->start);
		for (total += n + WARM_UP; i < total; ) {
			await(&shared->there.number, ++i, ticks());
			__atomic_store_n(&shared->back.number, i, __ATOMIC_RELEASE);
		}
		/* Asleep until the next round: the engine needs this processor. */
	}
}

/* Before the device is opened: its memory is not for children. */
static pid_t start_answering(uint32_t n)
{
	pthread_barrierattr_t attr;
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared == MAP_FAILED ? -errno : 0, "mmap");
	memset(shared, 0, sizeof(*shared));
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->start, &attr, 2);
	pid = fork();
	check(pid < 0 ? -errno : 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		answer(n);
		_exit(0);
	}
	return pid;
}

static void hand_off(uint64_t *took, uint32_t n)
{
	static uint64_t number;
	uint32_t i;

	pthread_barrier_wait(&shared->start);
	for (i = 0; i < n + WARM_UP; i++) {
		uint64_t begin = ticks();

		__atomic_store_n(&shared->there.number, ++number, __ATOMIC_RELEASE);
		await(&shared->back.number, number, begin);
		if (i >= WARM_UP)
			took[i - WARM_UP] = (ticks() - begin) / 2;
	}
}

/* ---- messages ---- */

static void make(struct side *s, const char *device)
{
	struct h_slot_attr attr = { 0 };

	check(h_open(device, &s->dev), device);
	check(h_area_alloc(s->dev, AREA, &s->in), "area");
	check(h_area_alloc(s->dev, AREA, &s->out), "area");
	check(h_nq_create(s->dev, 64, &s->nq), "NQ");
	attr.area = s->in;
	attr.nq = s->nq;
	check(h_slot_create(s->dev, &attr, &s->slot), "slot");
	check(h_slot_ticket(s->slot, 0, 0, 0, &s->ticket), "ticket");
	s->fast = s->ticket;
	s->fast.meta_index = HAMLYN_META_FAST;
	check(h_terminus_create(s->dev, NULL, &s->terminus), "terminus");
	check(h_terminus_bind(s->terminus, 0, s->out, 0, 0), "bind");
	memset(h_area_addr(s->out), 1, AREA);
}

static void send_one(struct side *s, enum test which, uint64_t word)
{
	struct h_msg m = { .ticket = &s->fast, .word = word };

	if (which == FAST8)
		check(h_send(s->terminus, &m), "send");
	else
		check(h_send_msg(s->terminus, &s->ticket, h_area_addr(s->out),
				 tests[which].size, NULL, 0), "send");
}

/* The receiver reads a word of every line. */
static void read_all(const void *data, size_t size)
{
	const uint64_t *p = data;
	size_t i;

	for (i = 0; i < size / sizeof(*p); i += 8)
		__asm__ volatile("" : : "r"(p[i]));
}

static void messages(struct side *s, enum test which, uint64_t *took)
{
	struct hamlyn_nq_entry entry;
	uint32_t i;

	for (i = 0; i < s->n + WARM_UP; i++) {
		uint64_t begin = ticks();
		uint32_t spins = 0;
		int n;

		send_one(s, which, i);
		while (!(n = h_recv(s->nq, &entry)))
			if (!(++spins & 0xffff))
				overdue(begin, "message");
		check(n, "receive");
		if (which != FAST8)
			read_all(h_area_addr(s->in), tests[which].size);
		if (i >= WARM_UP)
			took[i - WARM_UP] = ticks() - begin;
	}
}

static uint64_t kicks(struct side *s)
{
	struct hamlyn_stats stats = { 0 };

	check(h_terminus_stats(s->terminus, &stats), "statistics");
	return stats.kicks;
}

/* ---- results ---- */

static void calibrate(struct side *s)
{
	uint64_t ns = now_ns();
	uint64_t t = ticks();

	usleep(100000);
	s->ns_per_tick = (double)(now_ns() - ns) / (double)(ticks() - t);
	patience = (uint64_t)(PATIENCE_S * 1e9 / s->ns_per_tick);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double at(const struct side *s, const uint64_t *t, double part)
{
	size_t n = (size_t)s->n * ROUNDS;

	return (double)t[(size_t)(part * (double)(n - 1))] * s->ns_per_tick;
}

static void tell(struct side *s, const uint64_t *all_kicks)
{
	double limit = 0;
	int i;

	for (i = 0; i < TESTS; i++) {
		uint64_t *t = s->ticks + (size_t)i * s->n * ROUNDS;
		double median;

		qsort(t, (size_t)s->n * ROUNDS, sizeof(*t), compare);
		median = at(s, t, 0.5);
		if (i == LIMIT)
			limit = median;
		printf("{\"system\":\"%s\",\"test\":\"selfping\",\"size\":%zu,\"n\":%u",
		       tests[i].system, tests[i].size, s->n * ROUNDS);
		printf(",\"min_ns\":%.1f,\"p10_ns\":%.1f,\"median_ns\":%.1f,\"p99_ns\":%.1f",
		       at(s, t, 0), at(s, t, 0.1), median, at(s, t, 0.99));
		printf(",\"ratio_to_limit\":%.2f,\"ratio_of_p10\":%.2f,\"kicks\":%llu}\n",
		       median / limit, at(s, t, 0.1) / at(s, s->ticks, 0.1),
		       (unsigned long long)all_kicks[i]);
	}
}

static void run(struct side *s)
{
	uint64_t all_kicks[TESTS] = { 0 };
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < TESTS; i++) {
			uint64_t *took = s->ticks + ((size_t)i * ROUNDS + (size_t)round) * s->n;
			uint64_t before = kicks(s);

			if (i == LIMIT)
				hand_off(took, s->n);
			else
				messages(s, i, took);
			all_kicks[i] += kicks(s) - before;
		}
	}
	tell(s, all_kicks);
}

int main(int argc, char **argv)
{
	long n = argc == 3 ? strtol(argv[2], NULL, 10) : DEFAULT_N;
	struct side s = { 0 };
	pid_t pid;

	if (argc < 2 || argc > 3 || n < ROUNDS || n > 10000000) {
		fprintf(stderr, "usage: selfping DEVICE [MESSAGES]\n");
		return 2;
	}
	s.n = (uint32_t)(n / ROUNDS);
	s.ticks = malloc(TESTS * (size_t)s.n * ROUNDS * sizeof(*s.ticks));
	check(s.ticks ? 0 : -ENOMEM, "memory");
	/* Written now: a page fault is slow in UML. */
	memset(s.ticks, 0, TESTS * (size_t)s.n * ROUNDS * sizeof(*s.ticks));
	calibrate(&s);
	pid = start_answering(s.n);
	pin(0);
	make(&s, argv[1]);
	run(&s);
	waitpid(pid, NULL, 0);
	h_close(s.dev);
	free(s.ticks);
	return 0;
}
