/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fuzzer of the kernel device: what its processes share, what a process
 * knows, and how a call is made and counted.
 *
 * An operation draws all its choices from one 64-bit number, so a program is a
 * list of numbers. It finds objects in tables that its threads, and at times
 * other processes, change under its feet; nothing here is locked. The tables are
 * hints: what they say wrong is one more thing to try.
 */
#ifndef FUZZ_CALLS_H
#define FUZZ_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"

/* ---- limits of the fuzzer, and what it was asked for ---- */

#define MAX_PROCESSES	64
#define MAX_THREADS	8
#define CONTEXTS	8	/* open files that a process knows */
#define TICKETS		16	/* and tickets */
#define LINES		16	/* and names, and calls */
#define DESCRIPTORS	(CONTEXTS + TICKETS + LINES)
#define OBJECTS		8	/* of each kind that it knows of a context */
#define CELLS		192	/* places for mappings */
#define CELL		(2UL << 20)
#define BOARD		256	/* slots that everybody knows */
#define BOARD_FIXED	2	/* the first of them stay as they are */
#define NICS		4	/* that are opened: hamlyn0, and others of ours */
#define MAX_OTHERS	5	/* names of NICs have one digit */
#define ERRNOS		136
#define PROGRAM		24	/* operations of a program */
#define CORPUS		4096

static struct {
	uint64_t seed;
	unsigned int seconds;
	unsigned int processes;
	unsigned int threads;
	bool kcov;
	bool killer;
	bool trace;
	unsigned int others;	/* NICs 1 to here are somebody else's */
} option = {
	.seed = 1,
	.seconds = 60,
	.processes = 6,
	.threads = 3,
	.killer = true,
};

/* Descriptors have fixed places: close() hits nothing else. */
enum place {
	FD_CONTEXT	= 64,
	FD_TICKET	= FD_CONTEXT + CONTEXTS,
	FD_LINE		= FD_TICKET + TICKETS,
	FD_EPOLL	= FD_LINE + LINES,
	FD_NETNS,
	FD_MEM,			/* /proc/self/mem */
	FD_SHARED,		/* a memfd that all processes map */
	FD_GIVE,		/* descriptors on their way to whoever takes them */
	FD_TAKE,
	FD_KCOV,
	FD_LAST = FD_KCOV + MAX_THREADS,
};

/* ---- what is counted ---- */

enum counted {
	K_QUERY, K_AREA_ADD, K_AREA_ALLOC, K_AREA_REMOVE, K_NQ_CREATE,
	K_NQ_DESTROY, K_SLOT_CREATE, K_SLOT_DESTROY, K_SLOT_REKEY,
	K_TERMINUS_CREATE, K_TERMINUS_DESTROY, K_TERMINUS_BIND, K_KICK, K_WAIT,
	K_STATS, K_WATCH, K_UNWATCH, K_TICKET_CREATE, K_TICKET_IMPORT,
	K_TICKET_DROP, K_AUDIT, K_NIC_SET, K_LISTEN, K_CALL,
	/* behind the ioctls, in the order of their numbers */
	K_EXPLAIN, K_GARBAGE, K_FSYNC, K_OPEN, K_CLOSE, K_DUP, K_PASS, K_TAKE, K_FORK,
	K_MMAP, K_MUNMAP, K_MREMAP, K_MPROTECT, K_MADVISE, K_OWN, K_POKE,
	K_POLL, K_EPOLL, K_SEND, K_CONSUME, K_METADATA, K_HEAR, K_ANSWER, K_NETLINK, K_DUMP,
	K_NAMESPACE, K_RLIMIT,
	KINDS
};

static const char *const kind_names[KINDS] = {
	"query", "area_add", "area_alloc", "area_remove", "nq_create",
	"nq_destroy", "slot_create", "slot_destroy", "slot_rekey",
	"terminus_create", "terminus_destroy", "terminus_bind", "kick", "wait",
	"stats", "watch", "unwatch", "ticket_create", "ticket_import",
	"ticket_drop", "audit", "nic_set", "listen", "call", "explain",
	"garbage", "fsync", "open", "close", "dup", "pass", "take", "fork",
	"mmap", "munmap", "mremap", "mprotect", "madvise", "own", "poke",
	"poll", "epoll", "send", "consume", "metadata", "hear", "answer", "netlink", "dump",
	"namespace", "rlimit",
};

/* ---- what all processes share ---- */

/* A slot that somebody made, and perhaps destroyed since. */
struct notice {
	uint32_t host;
	uint32_t slot;
	uint64_t key;
	uint64_t length;
	uint32_t metas;
	uint32_t mode;
};

struct program {
	uint32_t count;
	uint64_t ops[PROGRAM];
};

struct coverage {
	uint64_t start;		/* the module's text */
	uint64_t end;
	uint32_t pcs;		/* distinct ones so far */
	uint32_t programs;	/* in the corpus */
	uint32_t table[1 << 17];	/* offset + 1, by hash */
	struct program corpus[CORPUS];
};

struct shared {
	int stop;
	uint64_t taken;		/* notifications read */
	uint64_t completed;	/* messages that ended without a status */
	uint64_t calls[KINDS][ERRNOS];
	uint32_t next_notice;
	struct notice board[BOARD];
	struct coverage coverage;
};

static struct shared *shared;

/* ---- what a process knows ---- */

struct area {
	uint32_t id;
	uint32_t cell;
	uint64_t length;
	uint64_t offset;
};

struct queue {
	uint32_t id;
	uint32_t entries;
	uint32_t entries_offset;
	uint32_t ring_cell;
	uint32_t control_cell;
	uint64_t ring_offset;
	uint64_t ring_length;
	uint64_t control_offset;
	uint64_t control_length;
};

#define TAGS	17

/* The lowest eight, and others that need a longer table: 15, 31 and so on up to the last. */
static inline uint32_t tag_of(uint32_t i)
{
	return i < 8 ? i : (16u << (i - 8)) - 1;
}

_Static_assert(16u << (TAGS - 1 - 8) == HAMLYN_MAX_TAGS, "the last tag is one of them");

struct sender {
	uint32_t id;
	uint32_t entries;
	uint32_t entry_size;
	uint32_t entries_offset;
	uint32_t wq_cell;
	uint32_t status_cell;
	uint64_t wq_offset;
	uint64_t wq_length;
	uint64_t status_offset;
	uint64_t status_length;
	uint32_t tickets;	/* imported so far */
	uint64_t bound[TAGS];	/* bytes of each that tag_of() knows */
};

/* Small enough to travel with its descriptor. */
struct known {
	uint32_t host;
	uint32_t open;
	struct area areas[OBJECTS];
	struct queue queues[OBJECTS];
	struct sender senders[OBJECTS];
	struct notice slots[OBJECTS];
	uint32_t watches[OBJECTS];
};

static struct known known[CONTEXTS];
static bool tickets[TICKETS];	/* there is a descriptor */
static char *arena;		/* CELLS of them */
static char *scribbled;		/* a page that all threads write into */
static char *unwritable;	/* and one that is mapped a second time ... */
static char *behind_unwritable;	/* ... here, where it can be written */
static char *page_end;		/* behind it nothing is mapped */

struct thread {
	uint64_t random;
	int number;
	int netlink;
	uint16_t family;
	int root;
	bool tame;		/* what is rarely done is not done now */
	uint32_t focus;		/* context + 1 that a program is about; 0: all */
	struct known *k;	/* the one that an operation is about */
	int fd;			/* and its place */
	uint64_t *kcov;
	sigjmp_buf jump;
	volatile sig_atomic_t guarded;
};

static __thread struct thread *self;

/* ---- choices ---- */

static inline uint64_t draw(struct thread *t)
{
	return ht_random(&t->random);
}

/* 0 to @n - 1. */
static inline uint32_t below(struct thread *t, uint32_t n)
{
	return (uint32_t)((draw(t) >> 32) * n >> 32);
}

static inline int one_in(struct thread *t, uint32_t n)
{
	return !below(t, n) && !(t->tame && n >= 16);
}

/* 0, or one that is nobody else's. */
static inline uint32_t some_nic(struct thread *t, uint32_t count)
{
	uint32_t i = below(t, count);

	return i ? i + option.others : 0;
}

/* Numbers at which things tend to go wrong. */
static inline uint64_t odd_number(struct thread *t)
{
	uint64_t power = 1ULL << below(t, 64);

	switch (below(t, 8)) {
	case 0:
		return 0;
	case 1:
		return power;
	case 2:
		return power - 1;
	case 3:
		return power + 1;
	case 4:
		return 0 - power;
	case 5:
		return UINT32_MAX - below(t, 3);
	case 6:
		return below(t, 300);
	default:
		return draw(t);
	}
}

/* 1 to @most, each order of magnitude as likely as the others. */
static inline uint64_t some_size(struct thread *t, uint64_t most)
{
	uint64_t size = draw(t) >> below(t, 63);

	return 1 + size % most;
}

static inline uint32_t some_id(struct thread *t, uint32_t id)
{
	return one_in(t, 24) ? (uint32_t)odd_number(t) : id;
}

/* One that is open, if it is found soon. */
static inline void choose_context(struct thread *t)
{
	uint32_t i = below(t, CONTEXTS), tries;

	for (tries = below(t, 6); tries && !known[i].open; tries--)
		i = below(t, CONTEXTS);
	if (t->focus)
		i = t->focus - 1;
	t->fd = FD_CONTEXT + (int)i;
	t->k = &known[i];
}

/* Of a context's objects of a kind: few, so that they meet. */
static inline uint32_t pick(struct thread *t)
{
	return below(t, t->focus ? 2 : OBJECTS);
}

/* One that there is, if it is found soon: where @there is not 0. */
#define some_of(t, table, there) ({					\
	uint32_t i_ = pick(t), tries_;					\
									\
	for (tries_ = 0; tries_ < 6 && !(table)[i_].there; tries_++)	\
		i_ = pick(t);						\
	&(table)[i_];							\
})

static struct area *some_area(struct thread *t)
{
	return some_of(t, t->k->areas, length);
}

static struct queue *some_queue(struct thread *t)
{
	return some_of(t, t->k->queues, entries);
}

static struct sender *some_sender(struct thread *t)
{
	return some_of(t, t->k->senders, entries);
}

static struct notice *some_slot(struct thread *t)
{
	return some_of(t, t->k->slots, length);
}

static inline int some_ticket(struct thread *t)
{
	uint32_t i = below(t, TICKETS), tries;

	for (tries = 0; tries < 8 && !tickets[i]; tries++)
		i = below(t, TICKETS);
	return FD_TICKET + (int)i;
}

/* Takes over a descriptor. */
static inline void keep_ticket(struct thread *t, int fd)
{
	uint32_t i = below(t, TICKETS);

	tickets[i] = dup3(fd, FD_TICKET + (int)i, O_CLOEXEC) >= 0;
	close(fd);
}

/* Mostly a name's or a call's, or none: there are few, so that they meet. */
static inline int some_line(struct thread *t)
{
	return one_in(t, 24) ? FD_CONTEXT + (int)below(t, DESCRIPTORS) :
			       FD_LINE + (int)below(t, LINES);
}

/* Takes over a descriptor. */
static inline void keep_line(struct thread *t, int fd)
{
	dup3(fd, FD_LINE + (int)below(t, LINES), O_CLOEXEC);
	close(fd);
}

/* Told in a structure that others scribble on, it may be any. */
static inline bool is_new(int fd)
{
	return fd >= 3 && (fd < FD_CONTEXT || fd >= FD_LAST);
}

static inline char *cell_at(uint32_t cell)
{
	return arena + cell % CELLS * CELL;
}

/* ---- calls ---- */

static inline long count(enum counted kind, long ret)
{
	long e = ret < 0 ? -ret : 0;

	if (e >= ERRNOS)
		e = ERRNOS - 1;
	__atomic_fetch_add(&shared->calls[kind][e], 1, __ATOMIC_RELAXED);
	return ret;
}

/* Of a call that says -1 and errno. */
static inline long count_errno(enum counted kind, long ret)
{
	return count(kind, ret < 0 ? -errno : ret);
}

/* The structure somewhere else, where something happens to it. */
static inline long call_elsewhere(struct thread *t, unsigned long request,
				  void *arg, size_t size, char *there,
				  char *as_seen)
{
	char copy[PAGE];
	long ret;

	memcpy(copy, arg, size);
	if (one_in(t, 2))
		copy[below(t, (uint32_t)size)] ^= (char)(1 << below(t, 8));
	memcpy(there, copy, size);
	ret = ioctl(t->fd, request, as_seen);
	if (ret >= 0)
		memcpy(arg, there, size);
	return ret < 0 ? -errno : ret;
}

static inline long call_longer(struct thread *t, unsigned long request,
			       void *arg, size_t size)
{
	char copy[2 * PAGE] = { 0 };
	uint32_t told = one_in(t, 2) ? (uint32_t)size + below(t, 64) :
				       below(t, 2 * PAGE);
	long ret;

	memcpy(copy, arg, size);
	memcpy(copy, &told, sizeof(told));
	if (one_in(t, 4))
		copy[below(t, sizeof(copy))] = 1;
	ret = ioctl(t->fd, request, copy);
	if (ret >= 0)
		memcpy(arg, copy, size);
	return ret < 0 ? -errno : ret;
}

static inline long call_plainly(struct thread *t, unsigned long request,
				void *arg)
{
	long ret = ioctl(t->fd, request, arg);

	return ret < 0 ? -errno : ret;
}

static inline long call_somehow(struct thread *t, unsigned long request, void *arg,
				size_t size)
{
	uint32_t told = (uint32_t)size;

	memcpy(arg, &told, sizeof(told));
	switch (below(t, 96)) {
	case 0:
		return call_elsewhere(t, request, arg, size, scribbled,
				      scribbled);
	case 1:
		return call_elsewhere(t, request, arg, size, behind_unwritable,
				      unwritable);
	case 2:
		return call_elsewhere(t, request, arg, size, page_end - size,
				      page_end - size);
	case 3:
		return call_longer(t, request, arg, size);
	case 4:
		((char *)arg)[below(t, (uint32_t)size)] ^=
			(char)(1 << below(t, 8));
		break;
	}
	return call_plainly(t, request, arg);
}

/*
 * Any ioctl with a structure; its size member is set here. Mostly as it should
 * be done, else with something wrong about the structure or its place.
 */
#define call_as(t, kind, request, arg) \
	count(kind, call_somehow(t, request, arg, sizeof(*(arg))))
#define call(t, kind, arg)	call_as(t, kind, _IO(HAMLYN_IOC_TYPE, kind), arg)

static inline long call_id(struct thread *t, enum counted kind, uint32_t id)
{
	struct hamlyn_id arg = { .id = some_id(t, id) };

	return call(t, kind, &arg);
}

/* ---- memory that may vanish ---- */

/*
 * What follows in the same function is left by a jump to here, with a value
 * other than 0, if a page is missing. unguard() ends it.
 */
#define guard(t)	(sigsetjmp((t)->jump, 0) ? 1 : ((t)->guarded = 1, 0))
#define unguard(t)	((t)->guarded = 0)

/* ---- the board ---- */

static inline void publish(const struct notice *n)
{
	uint32_t i = __atomic_fetch_add(&shared->next_notice, 1,
					__ATOMIC_RELAXED);

	shared->board[BOARD_FIXED + i % (BOARD - BOARD_FIXED)] = *n;
}

#endif /* FUZZ_CALLS_H */
