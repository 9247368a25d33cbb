/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A witness of races: a process whose traffic is not concerned and goes on. It
 * verifies every message, and notices one that is lost, doubled or damaged.
 */
#ifndef RACE_H
#define RACE_H

#include "hamlyn_test.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WITNESS_WINDOW	8

struct witness {
	uint32_t stop;
	uint32_t messages;
	pid_t pid;
};

static inline const char *witness_take(struct ht_pair *pair, uint32_t number,
				       size_t part, const uint32_t *lengths)
{
	uint32_t place = number % WITNESS_WINDOW;
	struct hamlyn_nq_entry e;
	uint32_t seen;

	if (ht_recv(pair->nq, &e) != 1)
		return "the witness gets nothing";
	memcpy(&seen, pair->meta[place].user, sizeof(seen));
	if (e.index != place || seen != number)
		return "the witness gets another message than the next";
	if (ht_match(pair->data + place * part, lengths[place], number) !=
	    lengths[place])
		return "the witness gets wrong data";
	return NULL;
}

static inline int witness_send(struct ht_pair *pair, uint32_t number,
			       size_t part, uint32_t *lengths, uint64_t *random)
{
	uint32_t place = number % WITNESS_WINDOW;
	struct h_ticket ticket = pair->ticket;
	struct h_msg msg = {
		.ticket = &ticket,
		.offset = place * part,
		.data = pair->send + place * part,
		.meta = &number,
		.meta_length = sizeof(number),
	};

	ticket.meta_index = place;
	msg.length = ht_random(random) % (number % 8 ? 400 : part);
	lengths[place] = (uint32_t)msg.length;
	ht_fill((void *)(uintptr_t)msg.data, msg.length, number);
	return ht_send(pair->terminus, &msg) < 0 ? -1 : 0;
}

/* All that was sent has been taken when its place is used again. */
static inline const char *witness_live(struct witness *w, struct ht_pair *pair)
{
	size_t part = pair->length / WITNESS_WINDOW;
	uint32_t lengths[WITNESS_WINDOW];
	uint64_t random = ht_seed();
	uint32_t sent = 0, taken = 0;
	const char *complaint;

	while (!h__load_acquire(&w->stop)) {
		uint32_t burst = 1 + ht_random(&random) % WITNESS_WINDOW;

		while (sent - taken < burst)
			if (witness_send(pair, sent++, part, lengths, &random))
				return "the witness cannot send";
		while (taken != sent) {
			complaint = witness_take(pair, taken++, part, lengths);
			if (complaint)
				return complaint;
		}
		h__store_release(&w->messages, taken);
		if (sent % 64 < burst)
			ht_sleep_ns(50000);
	}
	return ht_pair_guarded(pair) ? NULL : "the witness' guards are touched";
}

static inline int witness_main(struct witness *w)
{
	struct ht_pair_attr attr = {
		.length = WITNESS_WINDOW * 2 * 16384,
		.meta = WITNESS_WINDOW,
	};
	struct ht_pair pair = { 0 };

	if (ht_pair_open(&pair, &attr))
		return 1;
	if (ht_complain(witness_live(w, &pair)))
		return 2;
	ht_pair_close(&pair);
	return 0;
}

/* NULL if there is none. */
static inline struct witness *witness_begin(void)
{
	struct witness *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct ht_poll poll;

	if (w == MAP_FAILED)
		return NULL;
	w->pid = ht_fork();
	if (!w->pid)
		_exit(witness_main(w));
	if (w->pid < 0)
		return NULL;
	ht_poll_begin(&poll);
	while (!h__load_acquire(&w->messages))
		if (!ht_poll_more(&poll))
			return NULL;
	return w;
}

/* 0 if it saw nothing, and went on all the time. */
static inline int witness_end(struct witness *w)
{
	uint32_t before = h__load_acquire(&w->messages);
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	while (h__load_acquire(&w->messages) == before)
		if (!ht_poll_more(&poll))
			break;
	h__store_release(&w->stop, 1);
	ret = ht_reap(w->pid);
	fprintf(stderr, "# race: messages=%u\n", h__load_acquire(&w->messages));
	munmap(w, sizeof(*w));
	return ret;
}

#endif /* RACE_H */
