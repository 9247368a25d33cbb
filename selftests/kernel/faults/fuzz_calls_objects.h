/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations of the fuzzer: the ioctls. */
#ifndef FUZZ_CALLS_OBJECTS_H
#define FUZZ_CALLS_OBJECTS_H

#include "fuzz_calls_memory.h"

/* ---- any object ---- */

/* What @kind destroys. */
static uint32_t some_object(struct thread *t, enum counted kind)
{
	switch (kind) {
	case K_AREA_REMOVE:
		return some_area(t)->id;
	case K_NQ_DESTROY:
		return some_queue(t)->id;
	case K_SLOT_DESTROY:
		return some_slot(t)->slot;
	case K_TERMINUS_DESTROY:
		return some_sender(t)->id;
	default:
		return t->k->watches[pick(t)];
	}
}

static void destroy(struct thread *t, enum counted kind)
{
	call_id(t, kind, some_object(t, kind));
}

/* Before its place is taken; at times it stays, and nobody knows it any more. */
static void make_room(struct thread *t, bool taken, enum counted kind,
		      uint32_t id)
{
	if (taken && !one_in(t, 4))
		call_id(t, kind, id);
}

/* ---- areas ---- */

static void op_query(struct thread *t)
{
	struct hamlyn_query arg = { 0 };

	if (!call(t, K_QUERY, &arg))
		t->k->host = arg.host;
}

static void op_area_alloc(struct thread *t)
{
	struct hamlyn_area_alloc arg = {
		.flags = one_in(t, 6) ? HAMLYN_AREA_HUGE : 0,
		.length = one_in(t, 64) ? odd_number(t) :
					  some_size(t, 512 * 1024),
	};
	struct area *a = &t->k->areas[pick(t)];

	make_room(t, a->length, K_AREA_REMOVE, a->id);
	if (call(t, K_AREA_ALLOC, &arg))
		return;
	a->id = arg.area;
	a->length = arg.length;
	a->offset = arg.mmap_offset;
	if (!one_in(t, 4))
		map_area(t, a);
}

static void op_area_add(struct thread *t)
{
	uint64_t length = some_size(t, 128 * 1024);
	struct hamlyn_area_add arg = {
		.flags = one_in(t, 4) ? HAMLYN_AREA_READONLY : 0,
		.length = one_in(t, 64) ? odd_number(t) : length,
	};
	uint32_t cell = below(t, CELLS);
	struct area *a = &t->k->areas[pick(t)];

	arg.addr = (uintptr_t)cell_at(cell) +
		   (one_in(t, 2) ? 0 : some_size(t, 64 * 1024));
	if (!one_in(t, 4))
		own_memory(t, cell);
	make_room(t, a->length, K_AREA_REMOVE, a->id);
	if (call(t, K_AREA_ADD, &arg))
		return;
	a->id = arg.area;
	a->length = arg.length;
	a->offset = 0;
	a->cell = cell;
}

/* ---- notification queues ---- */

static void op_nq_create(struct thread *t)
{
	struct hamlyn_nq_create arg = {
		.entries = one_in(t, 32) ? (uint32_t)odd_number(t) :
					   2U << below(t, 8),
	};
	struct queue *q = &t->k->queues[pick(t)];

	make_room(t, q->entries, K_NQ_DESTROY, q->id);
	if (call(t, K_NQ_CREATE, &arg))
		return;
	q->id = arg.nq;
	q->entries = arg.entries;
	q->entries_offset = arg.entries_offset;
	q->ring_offset = arg.ring_offset;
	q->ring_length = arg.ring_length;
	q->control_offset = arg.control_offset;
	q->control_length = arg.control_length;
	if (!one_in(t, 8))
		map_queue(t, q);
}

/* ---- slots ---- */

static void slot_metadata(struct thread *t, struct hamlyn_slot_create *arg)
{
	struct area *a = some_area(t);
	uint32_t most = (uint32_t)(a->length / HAMLYN_METADATA_SIZE);

	arg->meta_area = HAMLYN_NONE;
	if (one_in(t, 2))
		return;
	arg->meta_area = some_id(t, a->id);
	arg->meta_count = 1 + below(t, most ? most : 1);
	if (one_in(t, 2) && most > arg->meta_count)
		arg->meta_base = HAMLYN_METADATA_SIZE *
				 below(t, most - arg->meta_count);
	if (one_in(t, 32))
		arg->meta_base = odd_number(t);
	if (one_in(t, 32))
		arg->meta_count = (uint32_t)odd_number(t);
	arg->mode = one_in(t, 32) ? (uint32_t)odd_number(t) : below(t, 3);
}

static void slot_range(struct thread *t, const struct area *a,
		       __u64 *base, __u64 *length)
{
	*base = one_in(t, 2) ? 0 : some_size(t, a->length ? a->length : 1) - 1;
	*length = a->length - *base;
	if (one_in(t, 2))
		*length = some_size(t, *length ? *length : 1);
	if (one_in(t, 32))
		*base = odd_number(t);
	if (one_in(t, 32))
		*length = odd_number(t);
}

static void op_slot_create(struct thread *t)
{
	struct hamlyn_slot_create arg = { 0 };
	struct notice *n = &t->k->slots[pick(t)];
	struct area *a = some_area(t);

	slot_metadata(t, &arg);
	slot_range(t, a, &arg.base, &arg.length);
	arg.area = some_id(t, a->id);
	arg.nq = one_in(t, 8) ? HAMLYN_NONE :
		 some_id(t, some_queue(t)->id);
	if (one_in(t, 6))
		arg.flags |= HAMLYN_SLOT_TICKET_ONLY;
	if (one_in(t, 6)) {
		arg.flags |= HAMLYN_SLOT_KEY_GIVEN;
		arg.key = odd_number(t);
	}
	make_room(t, n->length, K_SLOT_DESTROY, n->slot);
	if (call(t, K_SLOT_CREATE, &arg))
		return;
	*n = (struct notice) {
		.host = t->k->host,
		.slot = arg.slot,
		.key = arg.key,
		.length = arg.length,
		.metas = arg.meta_count,
		.mode = arg.mode,
	};
	publish(n);
}

static void op_slot_rekey(struct thread *t)
{
	struct hamlyn_slot_rekey arg = {
		.flags = one_in(t, 3) ? HAMLYN_SLOT_KEY_GIVEN : 0,
		.key = odd_number(t),
	};
	struct notice *n = some_slot(t);

	arg.slot = some_id(t, n->slot);
	if (call(t, K_SLOT_REKEY, &arg))
		return;
	n->key = arg.key;
	if (!one_in(t, 4))
		publish(n);
}

/* ---- termini ---- */

static void op_terminus_create(struct thread *t)
{
	struct hamlyn_terminus_create arg = {
		.entries = one_in(t, 32) ? (uint32_t)odd_number(t) :
					   2U << below(t, 6),
		.entry_size = one_in(t, 32) ? (uint32_t)odd_number(t) :
					      128U << below(t, 6),
		.priority = below(t, one_in(t, 8) ? 4 : 2),
		.weight = one_in(t, 4) ? below(t, 70) : 0,
	};
	struct sender *s = &t->k->senders[pick(t)];

	make_room(t, s->entries, K_TERMINUS_DESTROY, s->id);
	if (call(t, K_TERMINUS_CREATE, &arg))
		return;
	memset(s->bound, 0, sizeof(s->bound));
	s->tickets = 0;
	s->id = arg.terminus;
	s->entries = arg.entries;
	s->entry_size = arg.entry_size;
	s->entries_offset = arg.entries_offset;
	s->wq_offset = arg.wq_offset;
	s->wq_length = arg.wq_length;
	s->status_offset = arg.status_offset;
	s->status_length = arg.status_length;
	if (!one_in(t, 8))
		map_sender(t, s);
}

static void op_terminus_bind(struct thread *t)
{
	uint32_t known_tag = below(t, one_in(t, 2) ? 8 : TAGS);
	struct hamlyn_terminus_bind arg = { .tag = tag_of(known_tag) };
	struct sender *s = some_sender(t);
	struct area *a = some_area(t);

	slot_range(t, a, &arg.base, &arg.length);
	arg.terminus = some_id(t, s->id);
	arg.area = one_in(t, 8) ? HAMLYN_NONE : some_id(t, a->id);
	if (arg.area == HAMLYN_NONE) {
		arg.base = 0;
		arg.length = 0;
	}
	if (one_in(t, 32))
		arg.tag = (uint32_t)odd_number(t);
	if (!call(t, K_TERMINUS_BIND, &arg) && arg.tag == tag_of(known_tag))
		s->bound[known_tag] = arg.length;
}

/* ---- watches ---- */

static void op_watch(struct thread *t)
{
	const struct notice *n = &shared->board[below(t, BOARD)];
	struct hamlyn_watch arg = { .cookie = draw(t) };
	uint32_t *watch = &t->k->watches[pick(t)];

	arg.nq = some_id(t, some_queue(t)->id);
	if (one_in(t, 4)) {
		arg.flags = HAMLYN_WATCH_TICKET;
		arg.key = (uint32_t)some_ticket(t);
	} else {
		if (one_in(t, 2))
			n = some_slot(t);
		arg.host = some_id(t, n->host);
		arg.slot = some_id(t, n->slot);
		arg.key = one_in(t, 8) ? draw(t) : n->key;
	}
	if (one_in(t, 8))
		arg.flags |= HAMLYN_WATCH_CLAIM;
	if (n->metas && one_in(t, 2))
		arg.meta_index = below(t, n->metas + 1);
	make_room(t, true, K_UNWATCH, *watch);
	if (!call(t, K_WATCH, &arg))
		*watch = arg.watch;
}

/* ---- tickets ---- */

static void op_ticket_create(struct thread *t)
{
	struct hamlyn_ticket_create arg = { 0 };
	const struct notice *n = some_slot(t);

	arg.slot = some_id(t, n->slot);
	if (one_in(t, 2)) {
		arg.base = some_size(t, n->length ? n->length : 1) - 1;
		arg.length = some_size(t, n->length ? n->length : 1);
	}
	if (call(t, K_TICKET_CREATE, &arg))
		return;
	if (is_new(arg.fd))
		keep_ticket(t, arg.fd);
}

static void op_ticket_import(struct thread *t)
{
	struct hamlyn_ticket_import arg = {
		.fd = some_ticket(t),
	};
	struct sender *s = some_sender(t);

	arg.terminus = some_id(t, s->id);
	if (one_in(t, 32))
		arg.fd = FD_CONTEXT + (int)below(t, FD_LAST - FD_CONTEXT);
	if (!call(t, K_TICKET_IMPORT, &arg))
		s->tickets = arg.index % HAMLYN_MAX_TICKETS + 1;
}

static void op_ticket_drop(struct thread *t)
{
	struct hamlyn_ticket_drop arg = { 0 };
	struct sender *s = some_sender(t);

	arg.terminus = some_id(t, s->id);
	arg.index = below(t, s->tickets + 1);
	if (one_in(t, 16))
		arg.index = (uint32_t)odd_number(t);
	call(t, K_TICKET_DROP, &arg);
}

/* ---- the rest ---- */

static void op_stats(struct thread *t)
{
	struct hamlyn_stats arg = { .kind = below(t, 3) };

	if (arg.kind == HAMLYN_STATS_SLOT)
		arg.id = some_slot(t)->slot;
	if (arg.kind == HAMLYN_STATS_TERMINUS)
		arg.id = some_sender(t)->id;
	if (one_in(t, 16))
		arg.id = (uint32_t)odd_number(t);
	call(t, K_STATS, &arg);
}

static void op_audit(struct thread *t)
{
	struct hamlyn_audit_entry entries[80];
	struct hamlyn_audit arg = {
		.count = below(t, ARRAY_SIZE(entries)),
		.entries = (uintptr_t)entries,
	};

	if (one_in(t, 4))
		arg.sequence = odd_number(t);
	if (one_in(t, 8)) {
		arg.entries = (uintptr_t)cell_at(below(t, CELLS));
		arg.count = (uint32_t)odd_number(t);
	}
	call(t, K_AUDIT, &arg);
}

/* For long, it would make all that follows a discarded packet. */
static void op_nic_set(struct thread *t)
{
	struct hamlyn_nic_set arg = {
		.flags = below(t, 8),
		.state = below(t, one_in(t, 16) ? 4 : 2),
		.watchdog_ms = below(t, 50),
	};

	if (one_in(t, 16))
		arg.watchdog_ms = (uint32_t)odd_number(t);
	call(t, K_NIC_SET, &arg);
	arg = (struct hamlyn_nic_set) {
		.flags = HAMLYN_NIC_SET_STATE | HAMLYN_NIC_SET_WATCHDOG,
	};
	if (!one_in(t, 8))
		call(t, K_NIC_SET, &arg);
}

static void op_explain(struct thread *t)
{
	static char text[HAMLYN_EXPLAIN_BYTES];
	struct hamlyn_query query = { .size = sizeof(query) };
	unsigned long request = HAMLYN_IOC_QUERY;
	struct hamlyn_explain arg = {
		.argument = (uintptr_t)&query,
		.text = one_in(t, 16) ? 1 : (uintptr_t)text,
		.text_size = sizeof(text),
	};

	/* Anything else fails, and makes or ends nothing that others count on. */
	if (one_in(t, 2)) {
		query.size = sizeof(query.size);
		request = _IO(HAMLYN_IOC_TYPE, below(t, HAMLYN_CMD_CALL + 3));
	}
	call_as(t, K_EXPLAIN, HAMLYN_IOC_EXPLAINED(request), &arg);
}

/* Any number, any bytes. */
static void op_garbage(struct thread *t)
{
	unsigned long request = one_in(t, 4) ?
		(unsigned long)odd_number(t) :
		_IO(HAMLYN_IOC_TYPE, below(t, 32));
	uint64_t bytes[48] = { 0 };
	int fd = FD_CONTEXT + (int)below(t, CONTEXTS);
	uint32_t i, n = below(t, 12), size;

	if (one_in(t, 8))
		fd = FD_TICKET + (int)below(t, TICKETS);
	for (i = 0; i < n; i++)
		bytes[below(t, 20)] = odd_number(t);
	size = one_in(t, 8) ? (uint32_t)odd_number(t) : 8 * (1 + below(t, 17));
	memcpy(bytes, &size, sizeof(size));
	count_errno(K_GARBAGE, ioctl(fd, request, one_in(t, 8) ?
				     (void *)(uintptr_t)odd_number(t) : bytes));
}

#endif /* FUZZ_CALLS_OBJECTS_H */
