// SPDX-License-Identifier: GPL-2.0-only
/* Counters. Written without a lock by the task that holds a terminus; read as they are. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/string.h>

#include "hml.h"
#include "locked.h"

#define WALK_BATCH	32	/* termini added up in one go */

/**
 * hml_stats_add() - add up counters
 * @sum: where to
 * @s: what
 */
void hml_stats_add(struct hml_stats *sum, const struct hml_stats *s)
{
	u32 i;

	sum->messages += READ_ONCE(s->messages);
	sum->packets += READ_ONCE(s->packets);
	sum->bytes += READ_ONCE(s->bytes);
	sum->failed += READ_ONCE(s->failed);
	sum->notifications += READ_ONCE(s->notifications);
	sum->overruns += READ_ONCE(s->overruns);
	sum->kicks += READ_ONCE(s->kicks);
	sum->pauses += READ_ONCE(s->pauses);
	for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
		sum->rejects[i] += READ_ONCE(s->rejects[i]);
}

static void report(struct hamlyn_stats *arg, const struct hml_stats *s)
{
	u32 i;

	arg->messages = s->messages;
	arg->packets = s->packets;
	arg->bytes = s->bytes;
	arg->failed = s->failed;
	arg->notifications = s->notifications;
	arg->overruns = s->overruns;
	arg->kicks = s->kicks;
	memset(arg->rejects, 0, sizeof(arg->rejects));
	for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
		arg->rejects[i] = s->rejects[i];
}

/* ---- of a whole NIC ---- */

static struct hml_term *term_after(struct hml_device *d, struct list_head *at)
{
	return list_is_last(at, hml_termini(d)) ? NULL :
	       list_entry(at->next, struct hml_term, all);
}

/**
 * hml_stats_begin() - a new terminus is to be counted
 * @t: the terminus
 *
 * At the head: no walk that has begun comes there.
 */
void hml_stats_begin(struct hml_term *t)
{
	struct hml_device *d = t->device;

	hml_lock(&d->termini_lock);
	list_add(&t->all, hml_termini(d));
	hml_unlock(&d->termini_lock);
}

/**
 * hml_stats_retire() - a terminus goes, its counts remain
 * @t: the terminus
 *
 * A walk has taken @retired as it was when it began, and would not find it any more.
 */
void hml_stats_retire(struct hml_term *t)
{
	struct hml_device *d = t->device;
	struct hml_walk *w;

	hml_lock(&d->termini_lock);
	w = hml_walk_of(d);
	if (w->next == t)
		w->next = term_after(d, &t->all);
	if (w->going && t->walked != w->number)
		hml_stats_add(&w->sum, &t->stats);
	list_del(&t->all);
	hml_stats_add(hml_retired(d), &t->stats);
	hml_unlock(&d->termini_lock);
}

static void walk_begin(struct hml_device *d)
{
	struct hml_walk *w = hml_walk_of(d);

	w->going = true;
	w->number++;
	w->sum = *hml_retired(d);
	w->next = term_after(d, hml_termini(d));
}

/* Some more of them. */
static void walk_on(struct hml_device *d)
{
	struct hml_walk *w = hml_walk_of(d);
	u32 n;

	if (!w->going)
		walk_begin(d);
	for (n = 0; n < WALK_BATCH && w->next; n++) {
		hml_lock_step();
		hml_stats_add(&w->sum, &w->next->stats);
		w->next->walked = w->number;
		w->next = term_after(d, &w->next->all);
	}
	if (w->next)
		return;
	w->whole = w->sum;
	w->going = false;
}

/* The number of the first walk that begins from now on. */
static u64 next_walk(struct hml_device *d)
{
	return hml_walk_of(d)->number + 1;
}

static bool walk_ended(struct hml_device *d, u64 number)
{
	const struct hml_walk *w = hml_walk_of(d);

	return w->number - w->going >= number;
}

/**
 * hml_stats_sum() - counters of a whole NIC
 * @d: the NIC
 * @sum: out: the counters
 *
 * There may be a thousand termini of each user, so they are added up in parts.
 */
void hml_stats_sum(struct hml_device *d, struct hml_stats *sum)
{
	u64 number;

	hml_lock(&d->termini_lock);
	number = next_walk(d);
	while (!walk_ended(d, number)) {
		walk_on(d);
		hml_unlock(&d->termini_lock);
		cond_resched();
		hml_lock(&d->termini_lock);
	}
	*sum = hml_walk_of(d)->whole;
	hml_unlock(&d->termini_lock);
	hml_adversary_add_stats(d, sum);
	hml_tcp_add_stats(d, sum);
}

/*
 * What became of packets at their receivers is not for the administrator of a container, which
 * may guess keys itself, and must not see which guess was right.
 */
static void hide_received(struct hml_stats *sum)
{
	if (ns_capable_noaudit(&init_user_ns, CAP_NET_ADMIN))
		return;
	sum->notifications = 0;
	sum->overruns = 0;
	memset(sum->rejects, 0, sizeof(sum->rejects));
}

static int of_nic(struct hml_context *c, struct hamlyn_stats *arg)
{
	struct hml_stats sum;

	/* A user that guesses keys must not see which guess was rejected. */
	if (!hml_nic_admin(c->device)) {
		hml_explain(c, "the NIC's counters need CAP_NET_ADMIN in its network namespace");
		return -EPERM;
	}
	hml_stats_sum(c->device, &sum);
	hide_received(&sum);
	report(arg, &sum);
	return 0;
}

static int of_slot(struct hml_context *c, struct hamlyn_stats *arg)
{
	struct hml_stats sum = {};
	struct hml_slot_object *s;
	u32 i;

	mutex_lock(&c->lock);
	s = hml_slot_find(c, arg->id);
	if (s) {
		sum.overruns = READ_ONCE(s->core.overruns);
		for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
			sum.rejects[i] = READ_ONCE(s->core.rejects[i]);
	}
	mutex_unlock(&c->lock);
	report(arg, &sum);
	return s ? 0 : -ENOENT;
}

static int of_terminus(struct hml_context *c, struct hamlyn_stats *arg)
{
	struct hml_term *t = hml_term_get(c, arg->id);
	struct hml_stats sum = {};

	if (!t)
		return -ENOENT;
	/* Only what the sender did: not what became of its packets. */
	sum.messages = READ_ONCE(t->stats.messages);
	sum.packets = READ_ONCE(t->stats.packets);
	sum.bytes = READ_ONCE(t->stats.bytes);
	sum.failed = READ_ONCE(t->stats.failed);
	sum.kicks = READ_ONCE(t->stats.kicks);
	hml_term_put(t);
	report(arg, &sum);
	return 0;
}

int hml_stats_get(struct hml_context *c, struct hamlyn_stats *arg)
{
	BUILD_BUG_ON(HAMLYN_STATS_REASONS < HAMLYN_REJECT_REASONS);

	if (arg->reserved)
		return -EINVAL;
	switch (arg->kind) {
	case HAMLYN_STATS_NIC:
		return of_nic(c, arg);
	case HAMLYN_STATS_SLOT:
		return of_slot(c, arg);
	case HAMLYN_STATS_TERMINUS:
		return of_terminus(c, arg);
	}
	return -EINVAL;
}
