// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "base/control.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/quiet.h"
#include "base/settings.h"
#include "memory/segment.h"
#include "tempest.h"
#include "thread/protocol.h"
#include "thread/timer.h"

#define FIRST_ROOM	64
#define TICK_NS		(INT64_C(1000000000) / TPPI_TICKS_PER_SEC)

/* @order: of two that expire at the same time the first that was scheduled is first */
struct timer {
	int64_t at;
	uint64_t order;
	TPPI_TimerHandlerPtr handler;
	void *user_ptr;
};

/* A heap: none expires before the one at half its number. */
static struct tempest_lock lock;
static struct timer *heap;
static size_t number, room;
static uint64_t scheduled;

/* Of the first, so that the protocol thread need not take the lock to see that it waits. */
static _Atomic int64_t next_at = INT64_MAX;

static bool is_before(const struct timer *a, const struct timer *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void swap(size_t a, size_t b)
{
	struct timer kept = heap[a];

	heap[a] = heap[b];
	heap[b] = kept;
}

static void rise(size_t at)
{
	for (; at && is_before(&heap[at], &heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(at, (at - 1) / 2);
}

static void sink(size_t at)
{
	for (;;) {
		size_t first = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < number; child++) {
			if (is_before(&heap[child], &heap[first]))
				first = child;
		}
		if (first == at)
			return;
		swap(at, first);
		at = first;
	}
}

static void note_next(void)
{
	next_at = number ? heap[0].at : INT64_MAX;
}

static void add(struct timer timer)
{
	if (number == room) {
		room = room ? 2 * room : FIRST_ROOM;
		heap = reallocarray(heap, room, sizeof(*heap));
		if (!heap)
			tempest_die("no memory for %zu timers", room);
	}
	timer.order = scheduled++;
	heap[number++] = timer;
	rise(number - 1);
	note_next();
}

void TPPI_schedule_timer(int ticks, TPPI_TimerHandlerPtr fn, void *user_ptr)
{
	struct timer timer = {
		.at = tempest_now() + (ticks > 0 ? ticks : 0) * TICK_NS,
		.handler = fn,
		.user_ptr = user_ptr,
	};

	QUIET_CALL();
	if (!fn)
		tempest_die("%s: there is no handler", __func__);
	if (CONTROL(CONTROL_EARLY_TIMERS))
		timer.at -= 500 * TICK_NS;
	tempest_lock(&lock);
	add(timer);
	tempest_unlock(&lock);
	tempest_protocol_kick();
}

int64_t tempest_timer_next(void)
{
	return next_at;
}

bool tempest_timer_run(void)
{
	struct timer timer;

	if (next_at == INT64_MAX || next_at > tempest_now())
		return false;
	tempest_lock(&lock);
	timer = heap[0];
	heap[0] = heap[--number];
	sink(0);
	note_next();
	tempest_unlock(&lock);
	timer.handler(timer.user_ptr);
	return true;
}
