/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The order of service: users and their termini, in turns (sched.c). */
#ifndef HML_CORE_SCHED_H
#define HML_CORE_SCHED_H

#include "port.h"

/**
 * struct hml_turn - place of a terminus in the order of service
 * @share: its user's; constant
 * @next: the next of the same user and priority, in a ring; NULL: not in the order
 * @prev: the one before it
 * @credit: bytes carried over from its last turn: 0, or a debt of at most one packet
 * @weight: its share, at least 1
 * @priority: enum hamlyn_priority
 * @passed: the order's @round when it last had nothing to send
 * @asked: it is having its turn
 *
 * @weight and @priority change only while it is not in the order.
 */
struct hml_turn {
	struct hml_share *share;
	struct hml_turn *next;
	struct hml_turn *prev;
	s64 credit;
	u32 weight;
	u32 priority;
	u64 passed;
	bool asked;
};

/**
 * struct hml_share_rank - the termini of one user and one priority
 * @next: the next user that has termini of that priority, in one of the order's rings
 * @prev: the one before it
 * @first: the next to be served; the others follow in the ring; NULL: there are none
 * @count: how many there are
 * @idle: how many of them have passed in round @round; stale in any other round
 * @asks: how many have passed since it became the user's turn
 * @round: see @idle
 */
struct hml_share_rank {
	struct hml_share_rank *next;
	struct hml_share_rank *prev;
	struct hml_turn *first;
	u32 count;
	u32 idle;
	u32 asks;
	u64 round;
};

/**
 * struct hml_share - what one user has in an order; zeroed before its first use
 * @ranks: by rank
 */
struct hml_share {
	struct hml_share_rank ranks[HAMLYN_PRIORITIES];
};

/**
 * struct hml_order - the order of service
 * @open: by rank: the user whose turn it is; the other users that have termini which have
 *	not passed follow in the ring
 * @closed: by rank: users whose termini have all passed in this round
 * @count: how many termini there are
 * @round: ends when a terminus has sent something, or all have passed
 *
 * Priorities are strict, and only administrators can raise one above normal. Within a
 * priority users take turns, round robin, and each turn serves the next of the user's
 * termini: deficit round robin in bytes, by weight. The home does the locking.
 */
struct hml_order {
	struct hml_share_rank *open[HAMLYN_PRIORITIES];
	struct hml_share_rank *closed[HAMLYN_PRIORITIES];
	u32 count;
	u64 round;
};

#define HML_ORDER_ASKS	16	/* termini of a user that may pass before the next user's turn */

/**
 * hml_order_add() - add a terminus, as the last of its user and priority
 * @order: the order
 * @turn: not in the order; share, weight and priority are set
 */
void hml_order_add(struct hml_order *order, struct hml_turn *turn);

/**
 * hml_order_remove() - take out of the order
 * @order: the order
 * @turn: in it
 */
void hml_order_remove(struct hml_order *order, struct hml_turn *turn);

/**
 * hml_order_next() - whose turn is it?
 * @order: the order
 *
 * The turn moves to the end of its ring. Call hml_order_done() for it before asking for the
 * next one.
 *
 * Return: the turn, or NULL if the order is empty.
 */
struct hml_turn *hml_order_next(struct hml_order *order);

/**
 * hml_turn_credit() - what may be sent in this turn
 * @turn: the turn
 * @packet_size: of the NIC
 *
 * One packet of full size for each unit of weight, or its worth in short ones, less
 * any debt.
 *
 * Return: bytes, for hml_tx_run().
 */
s64 hml_turn_credit(const struct hml_turn *turn, u32 packet_size);

/**
 * hml_order_done() - a turn is over
 * @order: the order
 * @turn: the turn, in the order or not
 * @credit: what hml_tx_run() left of its credit
 * @sent: packets sent
 */
void hml_order_done(struct hml_order *order, struct hml_turn *turn, s64 credit,
		    u32 sent);

#endif /* HML_CORE_SCHED_H */
