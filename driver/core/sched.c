// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Who is served when: deficit round robin by bytes, strict priorities (H 2.3
 * has the first, and wished for the second).
 *
 * All termini that are polled are in the order, and most have nothing to send
 * most of the time. So a turn is an offer: who has nothing passes. When all of
 * a priority have passed, it is the next priority's turn; as soon as
 * anybody has sent something, the highest is asked again.
 */
#include "nic.h"

/* Priorities from first to last. */
static u32 rank(const struct hml_turn *turn)
{
	switch (turn->priority) {
	case HAMLYN_PRIORITY_HIGH:
		return 0;
	case HAMLYN_PRIORITY_BULK:
		return 2;
	default:
		return 1;
	}
}

void hml_order_add(struct hml_order *order, struct hml_turn *turn)
{
	u32 r = rank(turn);
	struct hml_turn *first = order->first[r];

	if (!first) {
		turn->next = turn;
		turn->prev = turn;
		order->first[r] = turn;
	} else {
		turn->next = first;
		turn->prev = first->prev;
		first->prev->next = turn;
		first->prev = turn;
	}
	order->count[r]++;
	/* Whoever comes is asked at once, also if all others have passed. */
	turn->passed = order->round - 1;
	/* Being away does not save up credit. Debts stay. */
	if (turn->credit > 0)
		turn->credit = 0;
}

void hml_order_remove(struct hml_order *order, struct hml_turn *turn)
{
	u32 r = rank(turn);

	if (turn->next == turn) {
		order->first[r] = NULL;
	} else {
		turn->next->prev = turn->prev;
		turn->prev->next = turn->next;
		if (order->first[r] == turn)
			order->first[r] = turn->next;
	}
	turn->next = NULL;
	turn->prev = NULL;
	order->count[r]--;
	/* Its pass is not another one's. */
	if (turn->passed == order->round)
		order->idle[r]--;
	turn->asked = false;
}

static struct hml_turn *take(struct hml_order *order, u32 r)
{
	struct hml_turn *turn = order->first[r];

	order->first[r] = turn->next;
	turn->asked = true;
	return turn;
}

static void begin_round(struct hml_order *order)
{
	u32 r;

	for (r = 0; r < HAMLYN_PRIORITIES; r++)
		order->idle[r] = 0;
	order->round++;
}

struct hml_turn *hml_order_next(struct hml_order *order)
{
	u32 r;

	for (r = 0; r < HAMLYN_PRIORITIES; r++)
		if (order->idle[r] < order->count[r])
			return take(order, r);
	/* All have passed. */
	begin_round(order);
	for (r = 0; r < HAMLYN_PRIORITIES; r++)
		if (order->count[r])
			return take(order, r);
	return NULL;
}

s64 hml_turn_credit(const struct hml_turn *turn, u32 packet_size)
{
	return turn->credit + (s64)turn->weight * packet_size;
}

void hml_order_done(struct hml_order *order, struct hml_turn *turn, s64 credit,
		    u32 sent)
{
	/* Not if it has left meanwhile, nor if it came back. */
	bool asked = turn->asked;

	turn->asked = false;
	/* Only a debt is carried over: who has nothing to send saves nothing. */
	turn->credit = credit < 0 ? credit : 0;
	if (sent) {
		begin_round(order);
	} else if (asked && turn->passed != order->round) {
		turn->passed = order->round;
		order->idle[rank(turn)]++;
	}
}
