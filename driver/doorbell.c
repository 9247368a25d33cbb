// SPDX-License-Identifier: GPL-2.0-only
/*
 * The doorbell: the caller works on a terminus, or has its engine do it. Compiled as a part of
 * build_datapath.c.
 */
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "compat/compat.h"
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
		/* On lent time, which what this task runs from now on pays for. */
		hml_loan_pay_in(t->client->loan);
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
		wait_a_little(t);
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

/* Not held any more: there is more to send, or something else to do. */
static noinline int kick_on(struct hml_term *t, bool more)
{
	if (more && kick_hold(t))
		return kick_any(t, 1);
	return kick_end(t, (struct kick) { .sent = 1, .more = more });
}

/*
 * One plain request is what nearly every doorbell is about. Whoever has taken the terminus since
 * it was let go looks at the queue after us, so we look only for what follows that request.
 */
static noinline __flatten int kick(struct hml_term *t)
{
	const struct hamlyn_trb *entry;
	u32 next;

	trace_hamlyn_kick(t);
	hml_atomic_inc64(&t->stats.kicks);
	if (!kick_hold(t))
		return kick_end(t, (struct kick) {
			.more = hml_tx_pending(&t->core),
		});
	entry = hml_tx_plain(&t->core);
	if (!entry || trace_hamlyn_work_enabled() ||
	    unlikely(!hml_tx_run_plain(&t->device->nic, &t->core, entry)))
		return kick_any(t, 0);
	next = t->core.head;
	release(t);
	if (unlikely(hml_tx_posted(&t->core, next)))
		return kick_on(t, true);
	if (unlikely(t->engine->thread))
		return kick_on(t, false);
	return kick_done(t, 1);
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

static bool pending(struct hml_context *c, u32 id)
{
	struct hml_term *t;
	bool is;

	hml_section_begin();
	t = xa_load(&c->termini, id);
	is = t && hml_tx_pending(&t->core);
	hml_section_end();
	return is;
}

/**
 * hml_doorbell_pending() - is there something that a doorbell would do, if it could?
 * @c: the context
 *
 * Return: true if a terminus of the context has something to send.
 */
bool hml_doorbell_pending(struct hml_context *c)
{
	struct hml_term *t;
	unsigned long id;

	xa_for_each(&c->termini, id, t) {
		if (pending(c, id))
			return true;
		cond_resched();
	}
	return false;
}

/* ---- by io_uring ---- */

/* A hint: whoever submits to a ring is not to wait, but that is all there is to lose. */
static bool would_wait(struct hml_context *c, u32 id)
{
	struct hml_term *t = hml_term_get(c, id);
	bool waits;

	if (!t)
		return false;
	waits = READ_ONCE(t->held) || atomic_read(&t->wanted) || hml_term_paused(t);
	hml_term_put(t);
	return waits;
}

/* In the submitting task, with the ring's lock: -EAGAIN hands it over to a worker. */
static int ring_at_once(struct hml_context *c, u32 id)
{
	int ret;

	if (would_wait(c, id))
		return -EAGAIN;
	/* Requests of the same ring that have completed look like signals. */
	ret = hml_doorbell_ring(c, id);
	return ret > 0 || ret == -EINTR ? -EAGAIN : ret;
}

/*
 * In a worker, a thread of the process that may be killed with it. Not 1 for "more": a worker
 * of 6.1 completes no request for which it is told that.
 */
static int ring_to_the_end(struct hml_context *c, u32 id)
{
	int ret;

	while ((ret = hml_doorbell_ring(c, id)) > 0)
		cond_resched();
	return ret;
}

/**
 * hml_doorbell_uring() - doorbell by IORING_OP_URING_CMD
 * @cmd: the request
 * @flags: IO_URING_F_*
 *
 * Return: 0 if the queue was emptied or the engine goes on with it; -EAGAIN if a worker is
 * to; -EINTR; -ENOENT; -EINVAL; -ENOTTY.
 */
int hml_doorbell_uring(struct io_uring_cmd *cmd, unsigned int flags)
{
	struct hml_context *c = cmd->file->private_data;
	const struct hamlyn_uring_kick *arg = hml_compat_uring_arg(cmd, struct hamlyn_uring_kick);
	/* The ring is mapped memory. */
	u32 id = READ_ONCE(arg->terminus);
	u32 reserved = READ_ONCE(arg->reserved[0]) | READ_ONCE(arg->reserved[1]) |
		       READ_ONCE(arg->reserved[2]);

	if (cmd->cmd_op != HAMLYN_IOC_KICK)
		return -ENOTTY;
	if (reserved)
		return -EINVAL;
	return flags & IO_URING_F_NONBLOCK ? ring_at_once(c, id) : ring_to_the_end(c, id);
}

/* ---- by fsync() ---- */

#ifdef CONFIG_HAMLYN_FSYNC_DOORBELL
/*
 * A KICK by a shorter way: ioctl() costs as much as all the work of a message.
 * A program that knows nothing of us is told what fsync() may tell. Not for io_submit():
 * a kernel thread would do the work, which no signal ends and nobody pays for.
 */
int hml_doorbell_fsync(struct file *file, loff_t start, loff_t end, int datasync)
{
	int ret;

	if (unlikely(current->flags & PF_KTHREAD))
		return -EINVAL;
	ret = hml_doorbell_ring_all(file->private_data);
	return ret > 0 ? -EAGAIN : ret;
}
#endif

u32 hml_doorbell_flags(void)
{
	return (IS_ENABLED(CONFIG_IO_URING) ? HAMLYN_DOORBELL_URING : 0) |
	       (IS_ENABLED(CONFIG_HAMLYN_FSYNC_DOORBELL) ? HAMLYN_DOORBELL_FSYNC : 0);
}
