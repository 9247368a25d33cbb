// SPDX-License-Identifier: MIT
/*
 * Words that a manager sends to itself, to wake the thread that sleeps on its NQ: nudges, by a
 * thread that has news for it (B13), and kicks, by whoever likes.
 */
#include <errno.h>
#include <time.h>

#include "manager/manager.h"

#define NUDGE_AGAIN_NS		10000000
#define NUDGE_TRIES		1000
#define NUDGE_TRY_NS		1000000
#define LOOK_AROUND_NS		500000000
#define NO_BELL_NS		10000000

/*
 * Nudges have a terminus of their own. The manager's may be held back for a second, as
 * others can make it guess, and have long messages in its queue: a thread that nudges would
 * wait for that, and the one that sleeps as well. This one never sends a wrong key. It is made
 * when it is needed first, as most managers have one thread: before the first sleep that a kick
 * may end, since a kick can make nothing.
 *
 * Return: NULL if there can be none, or not without waiting for a task that changes the tables.
 */
static struct h_terminus *bell_of(struct h_manager *m)
{
	static const struct h_terminus_attr attr = {
		.entries = H_SELF_ARRIVALS,
		.entry_size = 128,
	};
	struct h_terminus *bell = h__load_acquire(&m->bell);
	struct h_terminus *first = NULL;

	if (bell)
		return bell;
	if (h__dev_changing(m->dev) || h_terminus_create(m->dev, &attr, &bell))
		return NULL;
	if (__atomic_compare_exchange_n(&m->bell, &first, bell, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return bell;
	/* Another thread was quicker. */
	h_terminus_destroy(bell);
	return first;
}

/*
 * One thread at a time sends, and once more for those that come meanwhile, which do not wait:
 * a signal handler may have interrupted the one that sends.
 *
 * -EAGAIN: the bell's queue is full of words, or, on the embedded device, it was made while
 * this process was held back, for less than a second: the thread that sleeps on the NQ looks
 * around twice a second.
 */
static void send_words(struct h_manager *m, struct h_terminus *bell)
{
	uint32_t asked;

	if (__atomic_fetch_add(&m->rings, 1, __ATOMIC_SEQ_CST))
		return;
	do {
		asked = __atomic_load_n(&m->rings, __ATOMIC_SEQ_CST);
		if (h_send_word(bell, &m->self_ticket, 0) < 0)
			h__write_once(&m->nudged, 0);
	} while (!__atomic_compare_exchange_n(&m->rings, &asked, 0, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
}

static bool ring(struct h_manager *m)
{
	struct h_terminus *bell = bell_of(m);

	if (bell)
		send_words(m, bell);
	return bell;
}

/* There is no bell, or not yet: the manager's terminus has to do. */
static void nudge_otherwise(struct h_manager *m)
{
	const struct timespec nap = { .tv_nsec = NUDGE_TRY_NS };
	int i, cancel = h__cancel_off();

	for (i = 0; i < NUDGE_TRIES; i++) {
		if (h_send_word(m->terminus, &m->self_ticket, 0) != -EAGAIN)
			break;
		nanosleep(&nap, NULL);
	}
	if (i == NUDGE_TRIES)
		h__write_once(&m->nudged, 0);
	h__cancel_restore(cancel);
}

/*
 * False if one is under way: should another thread take it, that one looks who has news again,
 * after giving it. One that is lost is not waited for long.
 */
static bool needs_word(struct h_manager *m)
{
	int64_t now = h__now_ns();

	if (h__read_once(&m->nudged) && now - h__read_once(&m->nudged_ns) < NUDGE_AGAIN_NS)
		return false;
	h__write_once(&m->nudged_ns, now);
	h__write_once(&m->nudged, 1);
	return true;
}

/*
 * A word to a slot that nobody receives from: the thread that sleeps on the NQ wakes. A NIC
 * that is down loses it: see lead().
 */
void h__manager_nudge(struct h_manager *m)
{
	/*
	 * What the caller has to tell, before the look at the nudge that is under way:
	 * give() clears that, and then looks who has news.
	 */
	h__full_barrier();					/* B13 */
	if (needs_word(m) && !ring(m))
		nudge_otherwise(m);
}

/* ---- kicks ---- */

int64_t h__look_around_ns(const struct h_manager *m)
{
	return h__read_once(&m->expect_kicks) && !h__read_once(&m->bell) ? NO_BELL_NS :
									   LOOK_AROUND_NS;
}

/* The caller has asked for nothing that h_explain() would be about. */
static void make_bell(struct h_manager *m)
{
	struct h_why why;

	h__why_keep(m->dev, &why);
	if (!bell_of(m))
		h__write_once(&m->bell_failed_ns, h__now_ns());
	h__why_restore(m->dev, &why);
}

void h__kicks_expect(struct h_manager *m)
{
	/* It waits 10 ms at a time then, and each try is a system call under the device's lock. */
	if (!h__read_once(&m->bell) &&
	    h__now_ns() - h__read_once(&m->bell_failed_ns) > LOOK_AROUND_NS)
		make_bell(m);
	__atomic_fetch_add(&m->expect_kicks, 1, __ATOMIC_SEQ_CST);	/* B13 */
	h__full_barrier_behind_atomic();				/* B13 */
}

void h__kicks_end(struct h_manager *m)
{
	__atomic_fetch_sub(&m->expect_kicks, 1, __ATOMIC_RELAXED);
}

bool h__kick_take(struct h_manager *m)
{
	return h__unlikely(h__read_once(&m->kicked)) &&
	       __atomic_exchange_n(&m->kicked, 0, __ATOMIC_SEQ_CST);
}

/*
 * Nothing here waits, takes a lock or makes anything: a signal handler may call it. The
 * caller that makes one kick of none tells of it, and a waiter that is not asleep yet sees it.
 */
void h_manager_kick(struct h_manager *m)
{
	struct h_terminus *bell;
	int old = errno;

	if (__atomic_exchange_n(&m->kicked, 1, __ATOMIC_SEQ_CST))	/* B13 */
		return;
	h__full_barrier_behind_atomic();				/* B13 */
	bell = h__load_acquire(&m->bell);
	if (bell && h__read_once(&m->expect_kicks) && needs_word(m))
		send_words(m, bell);
	errno = old;
}
