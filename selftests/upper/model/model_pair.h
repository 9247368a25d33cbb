/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of model.c: pairs, what is known of them, and what all protocols' models need. A pair
 * is the two ends of some protocol.
 */
#ifndef MODEL_PAIR_H
#define MODEL_PAIR_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hamlyn/barrier.h>
#include <hamlyn/channel.h>
#include <hamlyn/datagram.h>
#include <hamlyn/gather.h>
#include <hamlyn/group.h>
#include <hamlyn/stream.h>
#include <hamlyn/tagged.h>

#include "hamlyn_test.h"

#define MOST_PAIRS	5
#define MOST_HELD	64
#define LARGEST		50000
#define PLACES		32	/* of a tagged receiver */
#define MOST_SHARES	40
#define MOST_MEMBERS	4	/* of a gather, and participants of a barrier */

struct stream {
	struct h_stream_attr attr;
	struct h_stream_sender *s;
	struct h_stream_receiver *r;
	uint64_t sent;
	uint64_t got;
	uint64_t to_send;	/* threads: so many in all */
	bool sender_gone;	/* not by a close that waited */
	bool receiver_gone;	/* atomic */
	bool ended;
	bool copies;		/* receives by h_stream_receive_copy() */
	struct h_record held[MOST_HELD];
	uint32_t holds;
};

/* One end of a channel. */
struct end {
	struct h_channel *channel;
	uint64_t sent;		/* messages; the pattern tells all about them */
	uint64_t got;
	bool shut;
	bool ended;		/* nothing more is received: */
	bool clean;		/* it was the end, nothing is lost */
	bool leaves;		/* atomic: it is being closed */
	bool dropped;		/* atomic: without an end */
	struct h_message held[MOST_HELD];
	uint32_t holds;
};

enum phase { READY, HERE, HELD };

struct datagram {
	struct h_datagram_receiver *r;
	struct h_datagram_receiver *replies;
	struct h_datagram_address to;
	struct h_datagram_address from;
	size_t length;
	enum phase phase;
	bool told;		/* that one is there */
	uint64_t number;	/* of the last one that was sent */
	struct h_datagram here;	/* what is, or is to be, received */
	uint64_t of_here;	/* its number */
	uint64_t received;
	uint64_t dropped;
	uint32_t requests;	/* threads */
};

struct write {
	bool there;		/* somebody has written, and nobody asked */
	uint64_t tag;
	uint32_t length;
};

struct tagged {
	struct h_tagged_receiver *r;
	struct h_tagged_address to;
	struct write place[PLACES];
	size_t size;		/* of a place */
	uint64_t writes;
	/* threads */
	uint32_t rounds;
	uint32_t round;		/* atomic */
};

struct group {
	struct h_group *g;
	size_t length;
	unsigned char *want;
	struct h_share share[MOST_SHARES];
	bool done[MOST_SHARES];
	uint32_t shares;
	uint64_t writes;
	/* threads */
	uint32_t rounds;
	uint32_t round;		/* atomic */
};

/* Member i of a gather does rounds 0 to sent[i] - 1. */
struct gather {
	struct h_gather *root;
	struct h_gather_member *member[MOST_MEMBERS];
	uint32_t members;
	uint64_t length[MOST_MEMBERS];
	uint32_t sent[MOST_MEMBERS];
	bool left[MOST_MEMBERS];
	/* the root's */
	const void *held[2];	/* by the parity of the round */
	uint32_t received;
	uint32_t released;
	/* threads */
	uint32_t rounds;
	uint32_t leaver;	/* one who leaves before the last round, or none */
	uint32_t last;		/* so many rounds will be complete */
};

/* Who has called for round n has begun[i] == n, and is out with out[i] == n. */
struct barrier {
	struct h_barrier *b[MOST_MEMBERS];	/* the first one has created it */
	uint32_t participants;
	uint32_t begun[MOST_MEMBERS];	/* atomic */
	uint32_t out[MOST_MEMBERS];		/* atomic */
	bool left[MOST_MEMBERS];	/* atomic */
	bool over[MOST_MEMBERS];	/* it was told that somebody has left */
	/* threads */
	uint32_t rounds;
	uint32_t leaver;
};

/* Two ends, and what is known of them. */
struct pair {
	const struct protocol *protocol;
	struct world *world;
	uint64_t pattern;	/* of the bytes */
	char *wired;		/* of h_manager_alloc(), where one sends from */
	/* threads */
	uint64_t random[2];
	const char *wrong[2];
	union {
		struct stream stream;
		struct {
			struct end end[2];
			uint32_t buffers;
			uint64_t messages;	/* threads */
		};
		struct datagram datagram;
		struct tagged tagged;
		struct group group;
		struct gather gather;
		struct barrier barrier;
	};
};

/* A complaint, or NULL. */
struct protocol {
	const char *name;
	const char *(*open)(struct pair *p, uint64_t *random);
	/* One thread: one thing, without waiting. */
	const char *(*step)(struct pair *p, uint64_t *random);
	/* And all that was sent is received. */
	const char *(*finish)(struct pair *p, uint64_t *random);
	/* Two threads: one is the sender's, or that of the first end. */
	const char *(*talk[2])(struct pair *p, uint64_t *random);
	/* And afterwards. */
	const char *(*judge)(struct pair *p);
	/* At any time. */
	const char *(*close)(struct pair *p);
};

struct world {
	struct h_dev *dev[2];
	struct h_manager *to;
	struct h_manager *from;
	size_t packet;
	struct pair pair[MOST_PAIRS];
	uint32_t pairs;
	bool threads;
	uint32_t stop;		/* atomic */
};

/*
 * The fabric reorders and delays: who leaves a gather may be told to be gone before its
 * last word is there.
 */
static bool packets_are_late;

static uint32_t below(uint64_t *random, uint32_t n)
{
	return (uint32_t)(ht_random(random) >> 32) % n;
}

/* Mostly small, sometimes on an edge, sometimes large. */
static size_t any_size(uint64_t *random)
{
	static const size_t edges[] = { 1, 127, 128, 129, 1023, 1024, 1025,
					4095, 4096, 4097, 16384, LARGEST };

	switch (below(random, 8)) {
	case 0:
		return edges[below(random, ARRAY_SIZE(edges))];
	case 1:
		return 1 + below(random, LARGEST);
	case 2:
	case 3:
		return 1 + below(random, 3000);
	default:
		return 1 + below(random, 100);
	}
}

static const char *complain(const char *format, ...)
{
	static _Thread_local char text[200];
	char whole[sizeof(text)] = "";
	va_list args;

	/* One may be said within another. */
	va_start(args, format);
	vsnprintf(whole, sizeof(whole), format, args);
	va_end(args);
	return memcpy(text, whole, sizeof(text));
}

/* The byte at a place of a stream, cheap for long ones. */
static unsigned char byte_at(uint64_t pattern, uint64_t at)
{
	return (unsigned char)((at * 0x9e3779b97f4a7c15ULL + pattern) >> 56);
}

static int64_t any_timeout(uint64_t *random, bool wait)
{
	if (!wait)
		return H_NOWAIT;
	switch (below(random, 3)) {
	case 0:
		return H_NOWAIT;
	case 1:
		return 1 + below(random, 1000000);
	default:
		return ht_patience_ns();
	}
}

static bool later(ssize_t ret)
{
	return ret == -EAGAIN || ret == -ETIMEDOUT;
}

static bool happened(const bool *what)
{
	return __atomic_load_n(what, __ATOMIC_SEQ_CST);
}

static void happens(bool *what)
{
	__atomic_store_n(what, true, __ATOMIC_SEQ_CST);
}

static void fill(unsigned char *data, size_t n, uint64_t pattern)
{
	size_t i;

	for (i = 0; i < n; i++)
		data[i] = byte_at(pattern, i);
}

static const char *check(const void *data, size_t n, uint64_t pattern)
{
	const unsigned char *byte = data;
	size_t i;

	for (i = 0; i < n; i++)
		if (byte[i] != byte_at(pattern, i))
			return complain("byte %zu of %zu is wrong", i, n);
	return NULL;
}

/* Of what is told apart by its number. */
static uint64_t pattern_of(const struct pair *p, uint64_t number)
{
	uint64_t random = p->pattern + number;

	return ht_random(&random);
}

/* Room for what is to be sent: some goes out without a copy. */
static unsigned char *place_for(struct pair *p, size_t n, bool wired)
{
	return wired ? (unsigned char *)p->wired : malloc(n + 1);
}

/* Taken is taken: afterwards it can be changed. */
static void done_with(struct pair *p, unsigned char *data, size_t n)
{
	memset(data, 0xee, n);
	if (data != (unsigned char *)p->wired)
		free(data);
}

static size_t at_most(size_t n, size_t most)
{
	return n < most ? n : most;
}

/*
 * A message to a receiver that is gone would pass for a guess of its key. Not
 * h_manager_drain(): it waits for what the other pairs' receivers have no room for, and with
 * one thread nobody makes any meanwhile.
 */
static void settle(struct pair *p)
{
	struct h_terminus *t = h_manager_terminus(p->world->from);
	uint32_t last = __atomic_load_n(&t->producer, __ATOMIC_ACQUIRE) - 1;

	h_send_wait(t, last, ht_patience_ns());
}

/* The other thread goes on, or fails. */
static bool wait_for_round(const uint32_t *round, uint32_t wanted)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (__atomic_load_n(round, __ATOMIC_SEQ_CST) != wanted)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

static const char *nothing_to_judge(struct pair *p)
{
	(void)p;
	return NULL;
}

#endif /* MODEL_PAIR_H */
