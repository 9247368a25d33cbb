/* SPDX-License-Identifier: MIT */
/*
 * Locks, barriers, flags, counters and pointers: what threads of all nodes know by the same
 * address. Each has a home, which is chosen by the name, and is made there when it is first asked
 * for. Only the home's handlers touch it.
 */
#ifndef STACHE_NAMED_H
#define STACHE_NAMED_H

#include "stache.h"
#include "wait.h"

enum stache_kind {
	KIND_LOCK,
	KIND_BARRIER,
	KIND_FLAG,
	KIND_COUNTER,
	KIND_POINTER,
};

/**
 * struct stache_waiter - a thread that waits
 * @next: the one that came after it
 * @node: its node
 * @wait: its record there
 */
struct stache_waiter {
	struct stache_waiter *next;
	TPPI_NodeId node;
	void *wait;
};

/**
 * struct stache_named - a thing that has a name
 * @next: another whose names have the same sum
 * @name: the address
 * @kind: what it is: things of different kinds may have the same name
 * @value: lock: 1 if somebody has it; barrier: how many have come; flag: 1 if it is raised;
 *	counter: the next number; pointer: itself, or 0
 * @waiters: who waits, in order
 * @last: the last of them
 */
struct stache_named {
	struct stache_named *next;
	const void *name;
	enum stache_kind kind;
	uintptr_t value;
	struct stache_waiter *waiters, *last;
};

void stache_named_start(void);

/* Handlers of the home: the thing itself. */
struct stache_named *stache_named_find(const void *name, enum stache_kind kind);

/* Handlers of stache_named_ask(): all of its message. @value may be NULL. */
struct stache_named *stache_named_receive(enum stache_kind kind, void **wait, uintptr_t *value);

/* Handlers of the home: let a thread wait; answer the first, or a thread that did not wait. */
void stache_named_wait(struct stache_named *named, TPPI_NodeId node, void *wait);
void stache_named_wake_first(struct stache_named *named, uintptr_t answer);
void stache_named_wake_all(struct stache_named *named, uintptr_t answer);
void stache_named_answer(TPPI_NodeId node, void *wait, uintptr_t answer);

/*
 * Computation threads: ask the home, and wait until it answers. Its handler begins with
 * stache_named_receive(). Ends the program if the name is not the same everywhere.
 */
uintptr_t stache_named_ask(const void *name, TPPI_MessageHandlerPtr handler, uintptr_t value);

/*
 * The same without waiting; the handler receives the name. Only where a thread that learns of
 * it otherwise cannot notice whether the home knows it yet: messages of different nodes arrive
 * in any order.
 */
void stache_named_tell(const void *name, TPPI_MessageHandlerPtr handler);

#endif /* STACHE_NAMED_H */
