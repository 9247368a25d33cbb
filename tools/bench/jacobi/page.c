// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory shared by pages: what the processor's page protection alone can do. A
 * page is closed by mprotect(), an access to it is a SIGSEGV, and whole pages
 * are fetched and invalidated. Two nodes, one thread each.
 *
 * It travels by the same messages as Stache, so that what differs is how
 * accesses are controlled. All states are the protocol thread's.
 */
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <tempest.h>

#include "system.h"

#define PAGE ((size_t)4096)
#define PAGES 1024
#define VIEW ((char *)0x300000000000) /* the program's, opened and closed */
#define STORE 2 /* error code of a page fault: it was a store */

const char *const system_name = "pages";

enum right { NONE, READ, WRITE };

/**
 * struct page - a page
 * @home: its home
 * @own: what this node may do
 * @other: home: what the other one may do
 * @busy: home: a recall is on its way
 * @later: home: what the other one has asked for meanwhile
 */
struct page {
	int home;
	enum right own, other;
	bool busy;
	enum right later;
};

static struct page pages[PAGES];
static int used;
static char *memory; /* always open */

static enum right wanted;
static _Atomic uint32_t waits;
static _Atomic int woken = -1; /* page that the thread has, and has not used yet */

static void must(bool condition)
{
	if (!condition)
		abort();
}

static int other_node(void)
{
	return !TPPI_self_address;
}

static void set_right(int number, enum right right)
{
	static const int protection[] = { PROT_NONE, PROT_READ,
					  PROT_READ | PROT_WRITE };

	/* Or it might go back and forth, and nobody gets to use it */
	while (right < pages[number].own && woken == number)
		sched_yield();
	if (right != pages[number].own)
		must(!mprotect(VIEW + number * PAGE, PAGE, protection[right]));
	pages[number].own = right;
}

static void wake(int number)
{
	woken = number;
	waits = 0;
	syscall(SYS_futex, &waits, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void on_put(TPPI_NodeId src, int size);
static void on_dropped(TPPI_NodeId src, int size);

/*
 * The other node, of what its home says: the page, or the right to store to its
 * copy.
 */
static void on_page(TPPI_NodeId src, int size)
{
	int number = TPPI_recv_W();
	enum right right = TPPI_recv_W();

	(void)src;
	if (size > 8)
		TPPI_recv_R(memory + number * PAGE, PAGE);
	set_right(number, right);
	wake(number);
}

static void on_recall(TPPI_NodeId src, int size)
{
	int number = TPPI_recv_W();
	enum right keep = TPPI_recv_W(), had = pages[number].own;

	(void)size;
	set_right(number, keep);
	if (had == WRITE)
		TPPI_send_WWR(src, on_put, number, keep, memory + number * PAGE,
			      PAGE);
	else
		TPPI_send_W(src, on_dropped, number);
}

/* Home: to the other one. */
static void give(int number, enum right want)
{
	struct page *page = &pages[number];
	bool has_copy = page->other == READ;

	set_right(number, want == WRITE	     ? NONE
			  : page->own < READ ? page->own
					     : READ);
	page->other = want;
	if (has_copy)
		TPPI_send_WW(other_node(), on_page, number, want);
	else
		TPPI_send_WWR(other_node(), on_page, number, want,
			      memory + number * PAGE, PAGE);
}

/*
 * Home: its own thread gets the page; then the other one, if it has asked
 * meanwhile.
 */
static void take(int number)
{
	struct page *page = &pages[number];
	enum right later = page->later;

	set_right(number, wanted);
	wake(number);
	page->busy = false;
	page->later = NONE;
	if (later)
		give(number, later);
}

static void on_put(TPPI_NodeId src, int size)
{
	int number = TPPI_recv_W();

	(void)src;
	(void)size;
	pages[number].other = TPPI_recv_W();
	TPPI_recv_R(memory + number * PAGE, PAGE);
	take(number);
}

static void on_dropped(TPPI_NodeId src, int size)
{
	int number = TPPI_recv_W();

	(void)src;
	(void)size;
	pages[number].other = NONE;
	take(number);
}

static void on_request(TPPI_NodeId src, int size)
{
	int number = TPPI_recv_W();
	enum right want = TPPI_recv_W();
	struct page *page = &pages[number];

	(void)size;
	if (src != TPPI_self_address && page->busy) {
		page->later = want;
	} else if (src != TPPI_self_address) {
		give(number, want);
	} else if (page->other == WRITE ||
		   (page->other == READ && want == WRITE)) {
		page->busy = true;
		TPPI_send_WW(other_node(), on_recall, number,
			     want == WRITE ? NONE : READ);
	} else {
		take(number);
	}
}

static void fault(int number, siginfo_t *info, void *context)
{
	const ucontext_t *registers = context;
	size_t offset = (char *)info->si_addr - VIEW;

	(void)number;
	must(offset < PAGES * PAGE);
	wanted = registers->uc_mcontext.gregs[REG_ERR] & STORE ? WRITE : READ;
	waits = 1;
	TPPI_send_WW(pages[offset / PAGE].home, on_request, offset / PAGE,
		     wanted);
	while (waits)
		syscall(SYS_futex, &waits, FUTEX_WAIT_PRIVATE, 1, NULL, NULL,
			0);
	woken = -1;
}

int system_start(void)
{
	struct sigaction action = { .sa_sigaction = fault,
				    .sa_flags = SA_SIGINFO };
	int file = memfd_create("pages", 0);

	must(TPPI_num_nodes == 2);
	must(file >= 0 && !ftruncate(file, PAGES * PAGE));
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
		      file, 0);
	must(memory != MAP_FAILED);
	must(mmap(VIEW, PAGES * PAGE, PROT_NONE,
		  MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0) == VIEW);
	must(!sigaction(SIGSEGV, &action, NULL));
	return TPPI_self_address;
}

void system_end(void)
{
	TPPI_barrier();
}

void system_barrier(void)
{
	TPPI_barrier();
}

double *system_memory(size_t bytes, int block)
{
	char *start = VIEW + used * PAGE;

	(void)block;
	for (size_t i = 0; i < bytes / PAGE; i++, used++) {
		must(used < PAGES);
		pages[used].home = used % 2;
		if (pages[used].home == (int)TPPI_self_address)
			set_right(used, WRITE);
	}
	return (double *)start;
}

void system_stored(double *start, size_t bytes)
{
	(void)start;
	(void)bytes;
}
