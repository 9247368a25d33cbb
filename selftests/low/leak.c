// SPDX-License-Identifier: GPL-2.0-only
/*
 * One of every object is made and used, again and again, and ended in all the
 * ways there are. That nothing is left of them is seen from outside: on the
 * kernel device by leak-guest.sh, with the detectors of a debug kernel.
 *
 * HAMLYN_LEAK_ROUNDS=N: how often, for each test (default 10).
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ADDED_PAGES	5	/* of memory that the process has */
#define HUGE_BYTES	(2UL << 20)
#define MESSAGES	4

struct all {
	struct h_dev *dev;
	void *memory;
	size_t bytes;
	struct h_area *area;
	struct h_area *meta;
	struct h_area *added;
	struct h_area *huge;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_terminus *terminus;
	struct h_watch *by_key;
	struct h_watch *by_fd;
	struct h_ticket ticket;
	struct h_ticket imported;
	int fd;			/* of the ticket */
};

static unsigned int rounds(void)
{
	const char *text = getenv("HAMLYN_LEAK_ROUNDS");
	int number = text ? atoi(text) : 0;

	return number > 0 ? number : 10;
}

/* ---- making ------------------------------------------------------------- */

static const char *make_areas(struct all *a)
{
	if (h_area_alloc(a->dev, 8192, &a->area) ||
	    h_area_alloc(a->dev, 4096, &a->meta))
		return "no area";
	/* The embedded device may have no room for it. */
	if (!h_dev_is_embedded(a->dev) &&
	    h_area_alloc_flags(a->dev, HUGE_BYTES, HAMLYN_AREA_HUGE, &a->huge))
		return "no huge area";
	a->bytes = ADDED_PAGES * sysconf(_SC_PAGESIZE);
	a->memory = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->memory == MAP_FAILED)
		return "no memory";
	if (h_area_add(a->dev, a->memory, a->bytes, 0, &a->added))
		return "no area of the process's memory";
	return NULL;
}

static const char *make_slot(struct all *a)
{
	struct h_slot_attr attr = {
		.area = a->area, .meta_area = a->meta, .meta_count = 4,
	};

	if (h_nq_create(a->dev, 16, &a->nq))
		return "no NQ";
	attr.nq = a->nq;
	if (h_slot_create(a->dev, &attr, &a->slot) ||
	    h_slot_rekey(a->slot))
		return "no slot";
	if (h_slot_ticket(a->slot, 0, 0, HAMLYN_META_FAST, &a->ticket) ||
	    h_slot_ticket_fd(a->slot, 0, 4096, &a->fd))
		return "no ticket";
	return NULL;
}

static const char *make_terminus(struct all *a)
{
	int i;

	if (h_terminus_create(a->dev, NULL, &a->terminus) ||
	    h_terminus_bind(a->terminus, 0, a->added, 0, 0))
		return "no terminus";
	/* Its table is made anew for the 17th. */
	for (i = 0; i < 17; i++)
		if (h_terminus_import(a->terminus, a->fd, &a->imported))
			return "no imported ticket";
	a->imported.meta_index = HAMLYN_META_FAST;
	return NULL;
}

static const char *make_watches(struct all *a)
{
	if (h_watch(a->dev, &a->ticket, a->nq, 1, &a->by_key) ||
	    h_watch_fd(a->dev, a->fd, a->nq, 2, &a->by_fd))
		return "no watch";
	return NULL;
}

static const char *make(struct all *a)
{
	const char *what;

	memset(a, 0, sizeof(*a));
	if (ht_open(&a->dev))
		return "no device";
	what = make_areas(a);
	if (!what)
		what = make_slot(a);
	if (!what)
		what = make_terminus(a);
	return what ? what : make_watches(a);
}

static const char *use(struct all *a)
{
	struct h_msg msg = { .data = a->memory, .length = 64, .word = 7 };
	struct hamlyn_nq_entry entry;
	int i;

	for (i = 0; i < MESSAGES; i++) {
		msg.ticket = i % 2 ? &a->ticket : &a->imported;
		if (ht_send_sync(a->terminus, &msg) != 1)
			return "not sent";
		if (ht_recv(a->nq, &entry) != 1)
			return "not received";
	}
	return NULL;
}

/* ---- ending ------------------------------------------------------------- */

static const char *forget(struct all *a)
{
	h_close(a->dev);
	if (close(a->fd) || munmap(a->memory, a->bytes))
		return "descriptor or memory is gone";
	return NULL;
}

static const char *undo(struct all *a)
{
	if (h_unwatch(a->by_key) || h_unwatch(a->by_fd))
		return "watch stays";
	if (h_terminus_drop(a->terminus, &a->imported) ||
	    h_terminus_destroy(a->terminus))
		return "terminus stays";
	if (h_slot_destroy(a->slot) || h_nq_destroy(a->nq))
		return "slot stays";
	if (h_area_remove(a->added) || h_area_remove(a->meta) ||
	    h_area_remove(a->area) || (a->huge && h_area_remove(a->huge)))
		return "area stays";
	return forget(a);
}

/* The watches tell of the slot's end, and are still there when the device is closed. */
static const char *destroy_slot(struct all *a)
{
	struct hamlyn_nq_entry entry;
	int i;

	if (h_slot_destroy(a->slot))
		return "slot stays";
	for (i = 0; i < 2; i++)
		if (ht_recv(a->nq, &entry) != 1 ||
		    !(entry.flags & HAMLYN_NQE_PEER_GONE))
			return "watch does not tell";
	return forget(a);
}

TEST(objects_that_are_destroyed)
{
	unsigned int i;
	struct all a;

	for (i = 0; i < rounds(); i++) {
		ASSERT_NO(make(&a));
		ASSERT_NO(use(&a));
		ASSERT_NO(undo(&a));
	}
}

TEST(objects_that_go_with_their_device)
{
	unsigned int i;
	struct all a;

	for (i = 0; i < rounds(); i++) {
		ASSERT_NO(make(&a));
		ASSERT_NO(use(&a));
		ASSERT_NO(forget(&a));
	}
}

TEST(watches_that_told)
{
	unsigned int i;
	struct all a;

	for (i = 0; i < rounds(); i++) {
		ASSERT_NO(make(&a));
		ASSERT_NO(destroy_slot(&a));
	}
}

TEST(objects_that_cannot_be_made)
{
	struct h_slot_attr attr = { 0 };
	struct h_terminus_attr odd = { .entries = 3 };
	struct h_terminus *terminus;
	struct h_slot *slot;
	struct h_watch *watch;
	struct h_area *area;
	struct h_nq *nq;
	unsigned int i;
	struct all a;

	ASSERT_NO(make(&a));
	attr.area = a.area;
	attr.base = 1UL << 40;
	attr.nq = a.nq;
	for (i = 0; i < rounds(); i++) {
		ASSERT_GT(0, h_area_alloc(a.dev, 0, &area));
		ASSERT_GT(0, h_area_add(a.dev, NULL, 8192, 0, &area));
		ASSERT_GT(0, h_nq_create(a.dev, 3, &nq));
		ASSERT_GT(0, h_slot_create(a.dev, &attr, &slot));
		ASSERT_GT(0, h_terminus_create(a.dev, &odd, &terminus));
		ASSERT_GT(0, h_watch_fd(a.dev, STDIN_FILENO, a.nq, 3, &watch));
	}
	ASSERT_NO(undo(&a));
}

/* ---- processes that end ------------------------------------------------- */

/* Says when it is in the middle of it, and goes on until the end comes. */
static void child(int out, bool leaves)
{
	struct h_msg msg = { .length = 64 };
	struct ht_poll poll;
	struct all a;

	if (make(&a) || ht_write_all(out, "x", 1))
		_exit(1);
	msg.ticket = &a.ticket;
	msg.data = a.memory;
	ht_poll_begin(&poll);
	while (!leaves && ht_poll_more(&poll))
		if (ht_send(a.terminus, &msg) < 0)
			_exit(2);
	_exit(leaves ? 0 : 3);
}

static const char *end_process(bool leaves)
{
	int pipes[2], status;
	pid_t pid;
	char byte;

	if (pipe(pipes))
		return "no pipe";
	pid = ht_fork();
	if (pid < 0)
		return "no process";
	if (!pid)
		child(pipes[1], leaves);
	close(pipes[1]);
	status = ht_read_all(pipes[0], &byte, 1);
	close(pipes[0]);
	if (!leaves)
		kill(pid, SIGKILL);
	if (ht_reap(pid) != (leaves ? 0 : 128 + SIGKILL))
		return "process ended otherwise";
	return status < 0 ? "process did not get far enough" : NULL;
}

TEST(processes_that_leave)
{
	unsigned int i;

	for (i = 0; i < rounds(); i++)
		ASSERT_NO(end_process(true));
}

TEST(processes_that_are_killed)
{
	unsigned int i;

	for (i = 0; i < rounds(); i++)
		ASSERT_NO(end_process(false));
}

TEST_HARNESS_MAIN
