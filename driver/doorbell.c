// SPDX-License-Identifier: GPL-2.0-only
/*
 * The doorbell: the caller works on a terminus, or has its engine do it. Compiled as a part of
 * build_datapath.c.
 */
#include <linux/delay.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "hml.h"
#include "trace.h"

/**
 * struct kick - what a doorbell has done so far
 * @sent: packets sent
 * @more: there are more, or somebody else is sending them
 * @paused: the sender was made to pause
 * @often: it is rung so often that the engine had better poll
 */
struct kick {
	u32 sent;
	bool more;
	bool paused;
	bool often;
};

/* Doorbells in quick succession: a thread that polls is cheaper. */
static noinline bool rung_often(struct hml_term *t)
{
	u64 now = ktime_get_ns();
	u64 window = (u64)READ_ONCE(t->device->kick_window_us) * NSEC_PER_USEC;
	bool quick = now - READ_ONCE(t->last_kick) < window;
	u32 row = quick ? READ_ONCE(t->kicks_in_row) + 1 : 0;

	WRITE_ONCE(t->last_kick, now);
	WRITE_ONCE(t->kicks_in_row, row);
	if (row < READ_ONCE(t->kicks_to_wake))
		return false;
	WRITE_ONCE(t->kicks_in_row, 0);
	return true;
}

/*
 * What a doorbell does besides a little work. The terminus has a reference. Returns what
 * hml_doorbell_ring() does.
 */
static noinline int kick_rest(struct hml_term *t, struct kick k)
{
	s64 bytes = S64_MAX;
	u32 sent = k.sent;
	bool more = k.more;

	if (more && !hml_term_waits(t)) {
		sent += hml_term_run(t, HML_KICK_BUDGET - sent, &bytes);
		more = hml_tx_pending(&t->core);
	}
	trace_hamlyn_kick_done(t, sent);
	if (!more && !k.often)
		return 0;
	if (more && hml_term_stalled(t)) {
		hml_engine_take_stalled(t);
		return 0;
	}
	if (t->engine->thread && hml_loan_affords(t->client->loan)) {
		hml_engine_activate(t);
		return 0;
	}
	if (!more)
		return 0;
	if (hml_term_paused(t))
		schedule_timeout_interruptible(1 + msecs_to_jiffies(1));
	else if (!sent)
		/* Somebody else holds it, and may need this processor. */
		usleep_range(10, 50);
	return signal_pending(current) ? -EINTR : 1;
}

/*
 * The doorbell, in parts, so that each needs stack and registers for what it does
 * only. They end the section that was begun. Nearly always that is all there is to
 * do, in the one in which the terminus was found: whoever destroys it waits for
 * such sections.
 */

static __always_inline int kick_done(struct hml_term *t, u32 sent)
{
	trace_hamlyn_kick_done(t, sent);
	hml_notify_end();
	return 0;
}

static __always_inline bool kick_hold(struct hml_term *t)
{
	return likely(!atomic_read(&t->wanted) && hold_try(t));
}

/* Not held any more. */
static noinline int kick_end(struct hml_term *t, struct kick k)
{
	int ret;

	if (!k.more && t->engine->thread)
		k.often = rung_often(t);
	if (!k.more && !k.paused && !k.often)
		return kick_done(t, k.sent);
	refcount_inc(&t->ref);
	hml_notify_end();
	if (k.paused)
		tell_paused(t);
	ret = kick_rest(t, k);
	hml_term_put(t);
	return ret;
}

/* Terminus held. */
static noinline __flatten int kick_any(struct hml_term *t, u32 sent)
{
	u64 pauses = t->stats.pauses;
	s64 bytes = S64_MAX;
	bool paused, more;

	sent += work(t, HML_KICK_BUDGET - sent, &bytes);
	paused = t->stats.pauses != pauses;
	more = release_and_look(t);
	if (likely(!more && !paused && !t->engine->thread))
		return kick_done(t, sent);
	return kick_end(t, (struct kick) {
		.sent = sent, .more = more, .paused = paused,
	});
}

/* Terminus held. */
static noinline __flatten int kick_plain(struct hml_term *t,
					 const struct hamlyn_trb *entry)
{
	bool paused, more;

	if (unlikely(!hml_tx_run_plain(&t->device->nic, &t->core, entry)))
		return kick_any(t, 0);
	/* It was not before. */
	paused = hml_term_paused(t);
	more = release_and_look(t);
	if (likely(!more && !paused && !t->engine->thread))
		return kick_done(t, 1);
	if (more && !paused && kick_hold(t))
		return kick_any(t, 1);
	return kick_end(t, (struct kick) {
		.sent = 1, .more = more, .paused = paused,
	});
}

static __always_inline int kick(struct hml_term *t)
{
	const struct hamlyn_trb *entry;

	trace_hamlyn_kick(t);
	hml_atomic_inc64(&t->stats.kicks);
	if (!kick_hold(t))
		return kick_end(t, (struct kick) {
			.more = hml_tx_pending(&t->core),
		});
	entry = hml_tx_plain(&t->core);
	if (!entry || trace_hamlyn_work_enabled())
		return kick_any(t, 0);
	return kick_plain(t, entry);
}

/**
 * hml_doorbell_ring() - doorbell: work on a terminus in the caller
 * @c: the context
 * @id: the terminus' id
 *
 * Return: 0 if the queue was emptied or the engine goes on with it; 1 if
 * there is more and the caller should call again; -EINTR; -ENOENT.
 */
int __flatten hml_doorbell_ring(struct hml_context *c, u32 id)
{
	struct hml_term *t;

	hml_notify_begin();
	t = xa_load(&c->termini, id);
	if (likely(t))
		return kick(t);
	hml_notify_end();
	return -ENOENT;
}

static noinline int flush_all(struct hml_context *c)
{
	struct hml_term *t;
	unsigned long id;
	int ret, more = 0;

	xa_for_each(&c->termini, id, t) {
		ret = hml_doorbell_ring(c, id);
		if (ret == -EINTR || fatal_signal_pending(current))
			return -EINTR;
		if (ret > 0)
			more = ret;
		cond_resched();
	}
	return more;
}

/**
 * hml_doorbell_ring_all() - doorbell of all termini of a context
 * @c: the context
 *
 * Return: 0 if their queues were emptied or engines go on with them; 1 if there
 * is more and the caller should call again; -EINTR.
 */
int __flatten hml_doorbell_ring_all(struct hml_context *c)
{
	struct hml_term *t;

	hml_notify_begin();
	t = hml_dereference(c->only);
	if (likely(t))
		return kick(t);
	hml_notify_end();
	return flush_all(c);
}
