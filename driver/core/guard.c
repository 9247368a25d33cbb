// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Holding back who guesses keys (H 6.5). */
#include "nic.h"

#define SECOND_SHIFT	30	/* 2^30 ns */

u32 hml_guard_score(const struct hml_guard *g, u64 now)
{
	u64 quiet = now > g->last ? (now - g->last) >> SECOND_SHIFT : 0;

	return quiet < g->score ? g->score - (u32)quiet : 0;
}

void hml_guard_guess(struct hml_nic *nic, struct hml_sender *sender)
{
	hml_guard_wrong(READ_ONCE(nic->guesses), hml_port_now_ns(&nic->port),
			sender);
}

void hml_guard_wrong(u32 free, u64 now, struct hml_sender *sender)
{
	struct hml_guard *g = &sender->guard;
	u32 over;

	/* Nothing to remember: it would be held against the sender on another NIC. */
	if (!free)
		return;
	g->score = hml_guard_score(g, now);
	if (g->score < (u32)-1)
		g->score++;
	g->last = now;
	if (g->score <= free)
		return;
	over = g->score - free - 1;
	if (over > HML_GUARD_DOUBLINGS)
		over = HML_GUARD_DOUBLINGS;
	WRITE_ONCE(g->until, now + (HML_GUARD_SHORTEST_NS << over));
	sender->stats->pauses++;
}

bool hml_guard_paused(const struct hml_nic *nic, struct hml_guard *guard)
{
	if (!guard->until)
		return false;
	if (hml_port_now_ns(&nic->port) < guard->until)
		return true;
	WRITE_ONCE(guard->until, 0);
	return false;
}

bool hml_guard_forgiven(const struct hml_guard *guard, u64 now)
{
	return !hml_guard_score(guard, now) && now >= guard->until;
}

void hml_guard_inherit(struct hml_guard *to, const struct hml_guard *from)
{
	u64 now = to->last > from->last ? to->last : from->last;
	u32 score = hml_guard_score(from, now);

	to->score = hml_guard_score(to, now);
	if (score > to->score)
		to->score = score;
	to->last = now;
	if (from->until > to->until)
		to->until = from->until;
}
