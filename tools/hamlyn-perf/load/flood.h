/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes that send to one slot as fast as they can, through one terminus
 * or many each, under whatever ticket they were told last: also when it has
 * been revoked.
 */
#ifndef HAMLYN_PERF_FLOOD_H
#define HAMLYN_PERF_FLOOD_H

#include <hamlyn.h>

#include "base/perf.h"

#define FLOOD_TICKETS	16	/* the last ones told */
#define FLOOD_SMALL	16	/* bytes of a small message */
#define FLOOD_SPACE	64	/* each terminus has its own so far apart */
#define FLOOD_BYTE	0x5a	/* what messages are made of */

struct flood_sender {
	uint64_t sent;
	uint64_t late;		/* of them, knowing that the ticket was void */
} __attribute__((aligned(64)));

/* Shared by the sender processes and the one that they send to. */
struct flood {
	/* Of the process that is sent to. */
	uint32_t round;		/* 0: no ticket yet; published by store-release */
	uint32_t void_round;	/* last round whose ticket is void */
	uint32_t stop;
	struct h_ticket tickets[FLOOD_TICKETS];	/* [round % FLOOD_TICKETS] */
	/* Of all senders. */
	uint32_t ready __attribute__((aligned(64)));
	struct flood_sender senders[PERF_MAX_SENDERS];
	/* Constant. */
	size_t size;		/* bytes of a message */
	uint32_t termini;	/* of a sender */
	uint64_t limit_ns;	/* longest that it lasts */
};

int flood_send(struct flood *flood, const struct options *options, uint32_t sender);
void flood_tell(struct flood *flood, const struct h_ticket *ticket);
void flood_void(struct flood *flood);
void flood_stop(struct flood *flood);

#endif /* HAMLYN_PERF_FLOOD_H */
