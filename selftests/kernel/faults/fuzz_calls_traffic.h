/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations of the fuzzer: messages, and waiting for them. */
#ifndef FUZZ_CALLS_TRAFFIC_H
#define FUZZ_CALLS_TRAFFIC_H

#include "fuzz_calls_memory.h"

#include <poll.h>
#include <sys/epoll.h>

/* ---- sending ---- */

static void choose_target(struct thread *t, struct hamlyn_trb *trb)
{
	struct notice n = shared->board[below(t, BOARD)];

	if (one_in(t, 2))
		n = *some_slot(t);
	trb->host = some_id(t, n.host);
	trb->slot = some_id(t, n.slot);
	trb->key = n.key;
	if (one_in(t, 16))
		trb->key ^= 1ULL << below(t, 64);
	if (n.length > trb->length && !one_in(t, 3))
		trb->offset = below(t, (uint32_t)(n.length - trb->length));
	if (one_in(t, 16))
		trb->offset = n.length - below(t, 64);
	if (one_in(t, 24))
		trb->offset = odd_number(t);
	if (n.metas && !one_in(t, 4))
		trb->meta_index = below(t, n.metas);
	if (one_in(t, 16))
		trb->meta_index = (uint32_t)odd_number(t);
	if (n.metas && one_in(t, 4))
		trb->meta_length = (uint16_t)below(t, t->tame ? 61 : 64);
	/* A share of a group needs somewhere to be counted. */
	if (n.metas && one_in(t, 6))
		trb->delta = (uint32_t)odd_number(t);
}

static void choose_flags(struct thread *t, const struct sender *s,
			 struct hamlyn_trb *trb)
{
	if (one_in(t, 3)) {
		trb->flags |= HAMLYN_TRB_FAST;
		trb->meta_index = HAMLYN_META_FAST;
		trb->meta_length = 0;
		trb->word = draw(t);
	}
	if (one_in(t, 6))
		trb->flags |= HAMLYN_TRB_NO_NOTIFY;
	if (one_in(t, 6))
		trb->flags |= HAMLYN_TRB_QUIET;
	if (one_in(t, 5)) {
		trb->flags |= HAMLYN_TRB_TICKET;
		trb->ticket = below(t, s->tickets + 1);
	}
	if (one_in(t, 48))
		trb->flags |= 1U << below(t, 32);
}

static void choose_fragments(struct thread *t, const struct sender *s,
			     struct hamlyn_trb *trb, char *entry)
{
	struct hamlyn_fragment *f;
	uint32_t i;

	trb->fragments = (uint16_t)(1 + below(t, one_in(t, 4) ? 17 : 3));
	f = (void *)(entry + sizeof(*trb) +
		     (trb->meta_length ? HAMLYN_TRB_METADATA_SPACE : 0));
	trb->length = 0;
	for (i = 0; i < trb->fragments; i++) {
		uint32_t known_tag = below(t, one_in(t, 2) ? 8 : TAGS);
		uint64_t bytes = s->bound[known_tag] ? s->bound[known_tag] : 1;

		f[i] = (struct hamlyn_fragment) {
			.tag = tag_of(known_tag),
			.offset = one_in(t, 2) ? 0 : some_size(t, bytes) - 1,
		};
		f[i].length = some_size(t, bytes);
		if (f[i].length > bytes - f[i].offset)
			f[i].length = bytes - f[i].offset;
		if (one_in(t, 48))
			f[i].length = odd_number(t);
		if (one_in(t, 48))
			f[i].offset = odd_number(t);
		trb->length += f[i].length;
	}
	if (one_in(t, 48))
		trb->length = odd_number(t);
}

static void post_entry(struct thread *t, struct sender *s, uint32_t position)
{
	char *entry = cell_at(s->wq_cell) + s->entries_offset +
		      (size_t)(position & (s->entries - 1)) * s->entry_size;
	struct hamlyn_trb trb = { .length = below(t, 200) };

	if (trb.length > s->entry_size - sizeof(trb) - HAMLYN_TRB_METADATA_SPACE)
		trb.length = 0;
	choose_target(t, &trb);
	choose_flags(t, s, &trb);
	if (one_in(t, 2))
		choose_fragments(t, s, &trb, entry);
	trb.sequence = 0;
	memcpy(entry, &trb, sizeof(trb));
	if (one_in(t, 48))
		position = (uint32_t)odd_number(t);
	h__store_release(&((struct hamlyn_trb *)entry)->sequence, position + 1);
}

static void kick(struct thread *t, uint32_t id)
{
	int i;

	for (i = 0; i < 6; i++) {
		long ret;

		if (one_in(t, 8))
			ret = count_errno(K_FSYNC, fsync(t->fd));
		else
			ret = count_errno(K_KICK,
					  ioctl(t->fd, HAMLYN_IOC_KICK,
						(unsigned long)some_id(t, id)));
		if (ret <= 0)
			break;
	}
}

/* Where the kernel's own count is, so that what was spoilt heals by itself. */
static void op_send(struct thread *t)
{
	const struct hamlyn_terminus_status *status;
	uint32_t i, n = 1 + below(t, one_in(t, 4) ? 32 : 3), ask, from;
	struct sender *s = some_sender(t);

	if (!s->entries)
		return;
	t->tame = !one_in(t, 3);
	if (guard(t)) {
		count(K_SEND, -EFAULT);
		map_sender(t, s);
		return;
	}
	status = (void *)cell_at(s->status_cell);
	from = h__load_acquire(&status->completed);
	/* The last entry first, at times: then they arrive in one pass. */
	for (i = n; i-- && n <= s->entries;)
		post_entry(t, s, from + i);
	h__full_barrier();
	ask = h__read_once(&status->need_kick);
	unguard(t);
	if (ask || one_in(t, 4))
		kick(t, s->id);
	if (guard(t))
		return;
	/* Good ones are what the rest is worth something for. */
	if (h__load_acquire(&status->completed) != from &&
	    !((const int32_t *)(status + 1))[from & (s->entries - 1)])
		__atomic_fetch_add(&shared->completed, 1, __ATOMIC_RELAXED);
	unguard(t);
	count(K_SEND, 0);
}

static void op_kick(struct thread *t)
{
	kick(t, some_sender(t)->id);
}

static void op_fsync(struct thread *t)
{
	count_errno(K_FSYNC, fsync(t->fd));
}

/* ---- receiving ---- */

static void op_consume(struct thread *t)
{
	const struct hamlyn_nq_entry *entries;
	struct hamlyn_nq_control *control;
	struct queue *q = some_queue(t);
	uint32_t position, i;

	if (!q->entries)
		return;
	if (guard(t)) {
		count(K_CONSUME, -EFAULT);
		map_queue(t, q);
		return;
	}
	control = (void *)cell_at(q->control_cell);
	entries = (void *)(cell_at(q->ring_cell) + q->entries_offset);
	position = h__read_once(&control->consumer);
	for (i = 0; i < q->entries; i++, position++) {
		const struct hamlyn_nq_entry *e =
			&entries[position & (q->entries - 1)];

		if (h__load_acquire(&e->sequence) != position + 1)
			break;
		__atomic_fetch_add(&shared->taken, 1, __ATOMIC_RELAXED);
	}
	if (one_in(t, 64))
		position = (uint32_t)odd_number(t);
	h__store_release(&control->consumer, position);
	unguard(t);
	count(K_CONSUME, 0);
}

/* What a receiver makes of its metadata entries, or of any memory. */
static void op_metadata(struct thread *t)
{
	struct hamlyn_metadata *m;
	struct area *a = some_area(t);
	uint32_t i, n;

	n = (uint32_t)(a->length < CELL ? a->length : CELL) / sizeof(*m);
	if (guard(t)) {
		count(K_METADATA, -EFAULT);
		return;
	}
	m = (void *)cell_at(a->cell);
	for (i = 0; i < n && i < 16; i++) {
		m[i].key = some_slot(t)->key;
		m[i].low = one_in(t, 4) ? odd_number(t) : 0;
		m[i].high = one_in(t, 4) ? odd_number(t) : PAGE;
		m[i].accumulator = (uint32_t)odd_number(t);
		m[i].length = 0;
		h__store_release(&m[i].state, one_in(t, 4) ?
				 (uint32_t)odd_number(t) : HAMLYN_META_ARMED);
	}
	unguard(t);
	count(K_METADATA, 0);
}

/* ---- waiting ---- */

static void op_wait(struct thread *t)
{
	struct hamlyn_wait arg = { .position = below(t, 64) };
	struct queue *q = some_queue(t);

	arg.nq = some_id(t, q->id);
	if (!guard(t)) {
		arg.position = ((struct hamlyn_nq_control *)
				cell_at(q->control_cell))->consumer;
		unguard(t);
	}
	if (one_in(t, 8))
		arg.position = (uint32_t)odd_number(t);
	if (!one_in(t, 3))
		arg.deadline_ns = ht_now_ns() + below(t, 20) * HT_MS;
	/* Until it is destroyed, or we are. */
	if (one_in(t, 256))
		arg.deadline_ns = -1;
	call(t, K_WAIT, &arg);
}

static void op_poll(struct thread *t)
{
	struct pollfd fds[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i].fd = FD_CONTEXT + (int)below(t, DESCRIPTORS);
		fds[i].events = POLLIN | POLLOUT;
	}
	count_errno(K_POLL, poll(fds, 1 + below(t, 3), (int)below(t, 8)));
}

static void op_epoll(struct thread *t)
{
	struct epoll_event event = {
		.events = EPOLLIN | (one_in(t, 2) ? EPOLLET : 0) |
			  (one_in(t, 2) ? EPOLLONESHOT : 0),
	};
	int op = 1 + (int)below(t, 3);

	if (one_in(t, 3)) {
		count_errno(K_EPOLL, epoll_wait(FD_EPOLL, &event, 1,
						(int)below(t, 4)));
		return;
	}
	count_errno(K_EPOLL, epoll_ctl(FD_EPOLL, op, one_in(t, 4) ? some_line(t) : t->fd, &event));
}

#endif /* FUZZ_CALLS_TRAFFIC_H */
