/* SPDX-License-Identifier: GPL-2.0-only */
/* A process of the fuzzer, and its threads: they do random operations. */
#ifndef FUZZ_CALLS_WORKER_H
#define FUZZ_CALLS_WORKER_H

#include "fuzz_calls_kcov.h"
#include "fuzz_calls_names.h"
#include "fuzz_calls_objects.h"
#include "fuzz_calls_process.h"
#include "fuzz_calls_traffic.h"

#include <pthread.h>

/* An operation is a function, or the call that destroys an object. */
static const struct {
	void (*run)(struct thread *t);
	uint32_t weight;
	enum counted destroys;
} ops[] = {
	{ op_query, 2, 0 }, { op_area_add, 10, 0 }, { op_area_alloc, 12, 0 },
	{ NULL, 3, K_AREA_REMOVE }, { op_nq_create, 10, 0 },
	{ NULL, 2, K_NQ_DESTROY }, { op_slot_create, 16, 0 },
	{ NULL, 2, K_SLOT_DESTROY }, { op_slot_rekey, 4, 0 },
	{ op_terminus_create, 12, 0 }, { NULL, 2, K_TERMINUS_DESTROY },
	{ op_terminus_bind, 12, 0 }, { op_kick, 4, 0 }, { op_wait, 4, 0 },
	{ op_stats, 3, 0 }, { op_watch, 6, 0 }, { NULL, 2, K_UNWATCH },
	{ op_ticket_create, 6, 0 }, { op_ticket_import, 8, 0 },
	{ op_ticket_drop, 3, 0 }, { op_audit, 3, 0 }, { op_nic_set, 1, 0 },
	{ op_explain, 2, 0 }, { op_garbage, 3, 0 }, { op_fsync, 2, 0 },
	{ op_open, 5, 0 }, { op_close, 2, 0 }, { op_dup, 2, 0 },
	{ op_pass, 4, 0 }, { op_take, 4, 0 }, { op_fork, 2, 0 },
	{ op_mmap, 12, 0 }, { op_munmap, 2, 0 }, { op_mremap, 2, 0 },
	{ op_mprotect, 2, 0 }, { op_madvise, 4, 0 }, { op_own, 3, 0 },
	{ op_poke, 8, 0 }, { op_poll, 2, 0 }, { op_epoll, 3, 0 },
	{ op_send, 60, 0 }, { op_consume, 12, 0 }, { op_metadata, 6, 0 },
	{ op_netlink, 8, 0 }, { op_rlimit, 1, 0 },
	{ op_listen, 5, 0 }, { op_call, 10, 0 }, { op_hear, 10, 0 },
};

/* ---- a thread ---- */

static uint32_t all_weights(void)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		sum += ops[i].weight;
	return sum;
}

static void run_op(struct thread *t)
{
	uint32_t n = below(t, all_weights());
	size_t i;

	for (i = 0; n >= ops[i].weight; i++)
		n -= ops[i].weight;
	choose_context(t);
	if (ops[i].run)
		ops[i].run(t);
	else
		destroy(t, ops[i].destroys);
}

static void run_ops(struct thread *t, unsigned int n)
{
	while (n--)
		run_op(t);
}

static void on_fault(int number)
{
	struct thread *t = self;

	if (!t || !t->guarded)
		_exit(100 + number);
	t->guarded = 0;
	siglongjmp(t->jump, 1);
}

/* Each operation has a number of its own, so that a program is repeatable. */
static void run_program(struct thread *t, const struct program *p)
{
	uint64_t next = t->random;
	uint32_t i;

	if (t->kcov)
		kcov_reset(t);
	t->focus = p->ops[0] & 1 ? 1 + (p->ops[0] >> 1) % CONTEXTS : 0;
	for (i = 0; i < p->count; i++) {
		t->random = p->ops[i];
		t->tame = false;
		run_op(t);
	}
	t->focus = 0;
	t->random = next;
	if (t->kcov && kcov_news(t))
		keep(p);
}

static void *thread_main(void *arg)
{
	struct program p = { 0 };
	struct thread *t = arg;

	self = t;
	t->netlink = -1;
	new_socket(t);
	if (option.kcov && kcov_start(t))
		_exit(90);
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		choose_program(t, &p);
		run_program(t, &p);
	}
	return NULL;
}

/* ---- a process ---- */

static void *map_anew(void *at, size_t length, int prot, int flags, int fd)
{
	void *p = mmap(at, length, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		_exit(91);
	return p;
}

/* The cells, and the pages with something wrong about them. */
static void make_memory(void)
{
	int rw = PROT_READ | PROT_WRITE;
	char *p;
	int fd;

	p = map_anew(NULL, (CELLS + 1) * CELL, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	arena = (char *)(((uintptr_t)p + CELL - 1) & ~(CELL - 1));
	scribbled = map_anew(NULL, PAGE, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	fd = memfd_create("page", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, PAGE))
		_exit(92);
	behind_unwritable = map_anew(NULL, PAGE, rw, MAP_SHARED, fd);
	unwritable = map_anew(NULL, PAGE, PROT_READ, MAP_SHARED, fd);
	close(fd);
	p = map_anew(NULL, 2 * PAGE, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	page_end = p + PAGE;
	mprotect(page_end, PAGE, PROT_NONE);
}

static void make_descriptors(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	dup3(fd, FD_NETNS, O_CLOEXEC);
	close(fd);
	fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	dup3(fd, FD_MEM, O_CLOEXEC);
	close(fd);
	fd = epoll_create1(EPOLL_CLOEXEC);
	dup3(fd, FD_EPOLL, O_CLOEXEC);
	close(fd);
}

static void on_signal(int number)
{
	(void)number;
}

static void on(int number, void (*handler)(int))
{
	struct sigaction action = {
		.sa_handler = handler,
		/* It is left by a jump. */
		.sa_flags = SA_NODEFER,
	};

	sigaction(number, &action, NULL);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	close(fd);
}

static unsigned int user_of(unsigned int process)
{
	static const unsigned int users[] = { 0, 1001, 1002, 1001, 1003, 0 };

	return users[process % ARRAY_SIZE(users)];
}

/* Enough to begin with. */
static void fill_places(struct thread *t)
{
	unsigned int i;

	for (i = 0; i < CONTEXTS - 2; i++) {
		t->focus = i + 1;
		choose_context(t);
		op_open(t);
		op_area_alloc(t);
		op_area_alloc(t);
		op_nq_create(t);
		op_slot_create(t);
		op_terminus_create(t);
		op_terminus_bind(t);
	}
	t->focus = 0;
}

static void process_main(unsigned int process, uint64_t seed, uint16_t family)
{
	struct rlimit memlock = { 8 << 20, 8 << 20 };
	static struct thread threads[MAX_THREADS];
	unsigned int i, uid = user_of(process);
	pthread_t ids[MAX_THREADS];

	setpgid(0, 0);
	write_file("/proc/self/oom_score_adj", "1000");
	on(SIGSEGV, on_fault);
	on(SIGBUS, on_fault);
	signal(SIGCHLD, SIG_IGN);
	make_memory();
	for (i = 0; option.kcov && i < option.threads; i++)
		if (kcov_open((int)i))
			_exit(93);
	setrlimit(RLIMIT_MEMLOCK, &memlock);
	if (uid && become(uid))
		_exit(94);
	prctl(PR_SET_DUMPABLE, 1);
	make_descriptors();
	for (i = 0; i < option.threads; i++) {
		threads[i].random = seed + (uint64_t)i * 0x1234567;
		threads[i].number = (int)i;
		threads[i].family = family;
		threads[i].root = !uid;
	}
	fill_places(&threads[0]);
	for (i = 1; i < option.threads; i++)
		if (pthread_create(&ids[i], NULL, thread_main, &threads[i]))
			_exit(95);
	thread_main(&threads[0]);
	_exit(0);
}

#endif /* FUZZ_CALLS_WORKER_H */
