// SPDX-License-Identifier: GPL-2.0-only
/* Counters. Written without a lock by who holds a terminus; read as they are. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/string.h>

#include "hml.h"
#include "locked.h"

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

/**
 * hml_stats_sum() - counters of a whole NIC
 * @d: the NIC
 * @sum: out: the counters
 */
void hml_stats_sum(struct hml_device *d, struct hml_stats *sum)
{
	struct hml_term *t;

	mutex_lock(&d->termini_lock);
	*sum = *hml_retired(d);
	list_for_each_entry(t, hml_termini(d), all) {
		hml_stats_add(sum, &t->stats);
		/* There may be a thousand of each user. */
		cond_resched();
	}
	mutex_unlock(&d->termini_lock);
	hml_adversary_add_stats(d, sum);
}

/*
 * What became of packets at their receivers is not for who administrates a container:
 * he may be the one who guesses keys, and must not see which guess was right.
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

	/* Who guesses keys must not see which guess was rejected. */
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
