// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The order of service: strict priorities, then users in turn, then the termini
 * of a user by deficit round robin in bytes (H 2.3 has the last, and wished for
 * the first). So a message waits for one turn of each other user, however many
 * termini that user has.
 *
 * All polled termini are in the order, and most have nothing to send most of the
 * time. So a turn is an offer: a terminus with nothing to send passes, and the
 * next of the same user is asked, up to HML_ORDER_ASKS of them. Once all of a
 * priority have passed, the next priority is asked; as soon as a terminus has sent
 * something, the highest is asked again. Users whose termini have all passed are
 * kept apart, so that each step takes constant time.
 */
#include "sched.h"

/* Index of a priority, in the order in which they are served. */
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

static struct hml_share_rank *share_of(const struct hml_turn *turn)
{
	return &turn->share->ranks[rank(turn)];
}

/* ---- rings of users ---- */

static void ring_add(struct hml_share_rank **ring, struct hml_share_rank *s)
{
	struct hml_share_rank *first = *ring;

	if (!first) {
		s->next = s;
		s->prev = s;
		*ring = s;
	} else {
		s->next = first;
		s->prev = first->prev;
		first->prev->next = s;
		first->prev = s;
	}
}

static void ring_remove(struct hml_share_rank **ring, struct hml_share_rank *s)
{
	if (s->next == s) {
		*ring = NULL;
	} else {
		s->next->prev = s->prev;
		s->prev->next = s->next;
		if (*ring == s)
			*ring = s->next;
	}
	s->next = NULL;
	s->prev = NULL;
}

/* Append the ring @from to the ring @to, and empty it. */
static void ring_join(struct hml_share_rank **to, struct hml_share_rank **from)
{
	struct hml_share_rank *first = *to, *second = *from;

	*from = NULL;
	if (first && second) {
		struct hml_share_rank *last = second->prev;

		first->prev->next = second;
		second->prev = first->prev;
		last->next = first;
		first->prev = last;
	} else if (second) {
		*to = second;
	}
}

/* ---- rounds ---- */

static bool is_closed(const struct hml_order *order,
		      const struct hml_share_rank *s)
{
	return s->round == order->round && s->idle == s->count;
}

static void close_share(struct hml_order *order, struct hml_share_rank *s,
			u32 r)
{
	ring_remove(&order->open[r], s);
	ring_add(&order->closed[r], s);
	s->asks = 0;
}

static void begin_round(struct hml_order *order)
{
	u32 r;

	for (r = 0; r < HAMLYN_PRIORITIES; r++)
		ring_join(&order->open[r], &order->closed[r]);
	order->round++;
}

/* It is the next user's turn. */
static void end_visit(struct hml_order *order, struct hml_share_rank *s, u32 r)
{
	if (order->open[r] != s)
		return;
	order->open[r] = s->next;
	s->asks = 0;
}

/* ---- termini ---- */

static void link_turn(struct hml_share_rank *s, struct hml_turn *turn)
{
	struct hml_turn *first = s->first;

	if (!first) {
		turn->next = turn;
		turn->prev = turn;
		s->first = turn;
	} else {
		turn->next = first;
		turn->prev = first->prev;
		first->prev->next = turn;
		first->prev = turn;
	}
	s->count++;
}

static void unlink_turn(struct hml_share_rank *s, struct hml_turn *turn)
{
	if (turn->next == turn) {
		s->first = NULL;
	} else {
		turn->next->prev = turn->prev;
		turn->prev->next = turn->next;
		if (s->first == turn)
			s->first = turn->next;
	}
	turn->next = NULL;
	turn->prev = NULL;
	s->count--;
}

void hml_order_add(struct hml_order *order, struct hml_turn *turn)
{
	struct hml_share_rank *s = share_of(turn);
	u32 r = rank(turn);

	if (!s->count) {
		s->idle = 0;
		s->asks = 0;
		ring_add(&order->open[r], s);
	} else if (is_closed(order, s)) {
		/* A newcomer is asked in this round, even if all others have passed. */
		ring_remove(&order->closed[r], s);
		ring_add(&order->open[r], s);
	}
	link_turn(s, turn);
	order->count++;
	turn->passed = order->round - 1;
	/* Being away does not accumulate credit. Debts stay. */
	if (turn->credit > 0)
		turn->credit = 0;
}

void hml_order_remove(struct hml_order *order, struct hml_turn *turn)
{
	struct hml_share_rank *s = share_of(turn);
	u32 r = rank(turn);
	bool closed = is_closed(order, s);

	unlink_turn(s, turn);
	order->count--;
	turn->asked = false;
	/* Its pass does not count for the others. */
	if (turn->passed == order->round)
		s->idle--;
	if (!s->count)
		ring_remove(closed ? &order->closed[r] : &order->open[r], s);
	else if (!closed && is_closed(order, s))
		close_share(order, s, r);
}

static struct hml_turn *first_open(struct hml_order *order)
{
	u32 r;

	for (r = 0; r < HAMLYN_PRIORITIES; r++) {
		struct hml_share_rank *s = order->open[r];
		struct hml_turn *turn;

		if (!s)
			continue;
		turn = s->first;
		s->first = turn->next;
		turn->asked = true;
		return turn;
	}
	return NULL;
}

struct hml_turn *hml_order_next(struct hml_order *order)
{
	struct hml_turn *turn = first_open(order);

	if (turn)
		return turn;
	/* All have passed. */
	begin_round(order);
	return first_open(order);
}

s64 hml_turn_credit(const struct hml_turn *turn, u32 packet_size)
{
	return turn->credit + (s64)turn->weight * packet_size;
}

/* It had nothing to send. */
static void pass(struct hml_order *order, struct hml_turn *turn)
{
	struct hml_share_rank *s = share_of(turn);
	u32 r = rank(turn);

	if (s->round != order->round) {
		s->round = order->round;
		s->idle = 0;
	}
	turn->passed = order->round;
	if (++s->idle == s->count)
		close_share(order, s, r);
	else if (++s->asks >= HML_ORDER_ASKS)
		end_visit(order, s, r);
}

void hml_order_done(struct hml_order *order, struct hml_turn *turn, s64 credit,
		    u32 sent)
{
	/* False if it has left meanwhile, even if it came back. */
	bool asked = turn->asked;

	turn->asked = false;
	/* Only a debt is carried over: an idle terminus saves up nothing. */
	turn->credit = credit < 0 ? credit : 0;
	if (sent) {
		/* First, so that users that have passed come before this one again. */
		begin_round(order);
		end_visit(order, share_of(turn), rank(turn));
	} else if (asked && turn->passed != order->round) {
		pass(order, turn);
	}
}
