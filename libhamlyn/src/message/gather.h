/* SPDX-License-Identifier: MIT */
/* What the root of a gather and its members tell each other. */
#ifndef H_GATHER_INTERNAL_H
#define H_GATHER_INTERNAL_H

#include <hamlyn/gather.h>
#include <hamlyn/group.h>

#include "message/message.h"

/*
 * The root's slot has metadata entries for the rounds, even and odd, and two for each
 * member: the first message says where words for it go, the last one how many rounds
 * it has sent.
 */
#define H_GATHER_ROUNDS		2
#define H_GATHER_ENTRIES	2
#define H_GATHER_HELLO		0
#define H_GATHER_BYE		1
#define H_GATHER_HELLO_BYTES	H_TICKET_BYTES
#define H_GATHER_BYE_BYTES	4

/*
 * Words to members: how many rounds are released, in the lower half, and how it ended.
 * The newest one says it all, and is in the member's memory as well.
 */
#define H_GATHER_BROKEN		(1ull << 32)	/* a member is gone */
#define H_GATHER_ENDED		(1ull << 33)	/* a member has left */
#define H_GATHER_HELD		(1ull << 34)	/* one more will be released */
#define H_GATHER_WORD_BYTES	8

/* Last words have a second to leave this NIC; they wait for no other. */
#define H_GATHER_DRAIN_NS	1000000000

#endif /* H_GATHER_INTERNAL_H */
