// SPDX-License-Identifier: MIT
/*
 * Tagged remote writes (H 3.3).
 *
 * Tags that nobody has asked for yet are in an array of nodes: each in the list of
 * all, oldest first, and in that of its bucket, so that a certain one is found at
 * once however many there are.
 */
#include <stdlib.h>

#include <hamlyn/tagged.h>

#include "message/message.h"

#define DEFAULT_LENGTH		4096
#define DEFAULT_ARRIVALS	256
#define DEFAULT_MAX_TAGS	65536
#define MOST_TAGS		(1u << 30)
#define FIRST_TAGS		64
#define NONE			UINT32_MAX

struct link {
	uint32_t next;
	uint32_t prev;
};

struct list {
	uint32_t first;
	uint32_t last;
};

enum { ALL, BUCKET, LINKS };	/* which link of a node */

struct node {
	uint64_t tag;
	uint32_t length;
	struct link links[LINKS];
};

struct h_tagged_receiver {
	struct h_receiver r;
	size_t length;
	/* r.lock */
	struct node *nodes;
	struct list *buckets;		/* as many as nodes */
	uint32_t capacity;		/* a power of two, or 0 */
	uint32_t max;
	uint32_t count;
	struct list all;
	struct list unused;
	uint32_t lost;			/* losses so far */
	uint32_t told;			/* of them, to the application */
	void (*ready)(struct h_tagged_receiver *receiver, void *arg);
	void *ready_arg;
};

static struct h_tagged_receiver *of(struct h_receiver *r)
{
	return (struct h_tagged_receiver *)r;
}

/* ---- lists; the receiver is locked ---- */

static void append(struct h_tagged_receiver *t, struct list *list, int which,
		   uint32_t i)
{
	struct link *link = &t->nodes[i].links[which];

	link->next = NONE;
	link->prev = list->last;
	if (list->last == NONE)
		list->first = i;
	else
		t->nodes[list->last].links[which].next = i;
	list->last = i;
}

static void take_out(struct h_tagged_receiver *t, struct list *list, int which,
		     uint32_t i)
{
	const struct link *link = &t->nodes[i].links[which];

	if (link->prev == NONE)
		list->first = link->next;
	else
		t->nodes[link->prev].links[which].next = link->next;
	if (link->next == NONE)
		list->last = link->prev;
	else
		t->nodes[link->next].links[which].prev = link->prev;
}

static struct list *bucket_of(struct h_tagged_receiver *t, uint64_t tag)
{
	uint64_t mixed = (tag ^ tag >> 32) * 0x9e3779b97f4a7c15ull;

	return &t->buckets[mixed >> 32 & (t->capacity - 1)];
}

/* All nodes are in use: twice as many, and in new buckets. */
static int grow(struct h_tagged_receiver *t)
{
	uint32_t capacity = t->capacity ? 2 * t->capacity : FIRST_TAGS, i;
	struct node *nodes;
	struct list *buckets;

	buckets = malloc(capacity * sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	nodes = realloc(t->nodes, capacity * sizeof(*nodes));
	if (!nodes) {
		free(buckets);
		return -ENOMEM;
	}
	free(t->buckets);
	t->nodes = nodes;
	t->buckets = buckets;
	for (i = 0; i < capacity; i++)
		buckets[i] = (struct list) { NONE, NONE };
	for (i = t->capacity; i < capacity; i++)
		append(t, &t->unused, ALL, i);
	t->capacity = capacity;
	for (i = t->all.first; i != NONE; i = nodes[i].links[ALL].next)
		append(t, bucket_of(t, nodes[i].tag), BUCKET, i);
	return 0;
}

static int put(struct h_tagged_receiver *t, uint64_t tag, uint32_t length)
{
	uint32_t i;

	if (t->count == t->max)
		return -EOVERFLOW;
	if (t->unused.first == NONE && grow(t))
		return -EOVERFLOW;
	i = t->unused.first;
	take_out(t, &t->unused, ALL, i);
	t->nodes[i].tag = tag;
	t->nodes[i].length = length;
	append(t, &t->all, ALL, i);
	append(t, bucket_of(t, tag), BUCKET, i);
	t->count++;
	return 0;
}

static uint32_t find(struct h_tagged_receiver *t, uint64_t tag)
{
	uint32_t i;

	if (!t->count)
		return NONE;
	for (i = bucket_of(t, tag)->first; i != NONE;
	     i = t->nodes[i].links[BUCKET].next)
		if (t->nodes[i].tag == tag)
			break;
	return i;
}

static struct node get(struct h_tagged_receiver *t, uint32_t i)
{
	struct node node = t->nodes[i];

	take_out(t, &t->all, ALL, i);
	take_out(t, bucket_of(t, node.tag), BUCKET, i);
	append(t, &t->unused, ALL, i);
	t->count--;
	return node;
}

/* ---- arrivals ---- */

static void process_arrival(struct h_receiver *r,
			    const struct hamlyn_nq_entry *e)
{
	/* Who has the key may also send what is no tagged write. */
	if (e->flags & HAMLYN_NQE_FAST && put(of(r), e->data, e->length))
		of(r)->lost++;
}

static void process_overrun(struct h_receiver *r)
{
	of(r)->lost++;
}

static bool pending(const struct h_receiver *r)
{
	const struct h_tagged_receiver *t = (const struct h_tagged_receiver *)r;

	return t->count || t->lost != t->told;
}

static const struct h_receiver_class tagged_class = {
	.name = "tagged receiver",
	.process_arrival = process_arrival,
	.process_overrun = process_overrun,
	.pending = pending,
};

/* ---- receiving ---- */

/* What a call wants, and what was lost when it began. */
struct wish {
	bool any;
	uint64_t tag;
	uint32_t lost;
	bool begun;
};

static int look(struct h_tagged_receiver *t, struct wish *wish,
		struct node *node)
{
	uint32_t i;

	if (!wish->begun) {
		wish->lost = t->told;
		wish->begun = true;
	}
	if (t->lost != wish->lost) {
		t->told = t->lost;
		return -EOVERFLOW;
	}
	i = wish->any ? t->all.first : find(t, wish->tag);
	if (i == NONE)
		return -EAGAIN;
	*node = get(t, i);
	return 0;
}

static int wait_for(struct h_tagged_receiver *t, struct wish *wish,
		    struct node *node, int64_t deadline)
{
	unsigned int rounds = 0;

	for (;;) {
		uint32_t seen = h_receiver_events(&t->r);
		int ret;

		h_receiver_lock(&t->r);
		ret = look(t, wish, node);
		h_receiver_unlock(&t->r);
		if (ret != -EAGAIN)
			return ret;
		/* Other tags may come without end. */
		ret = h__go_on(&rounds, deadline);
		if (!ret)
			ret = h_receiver_wait(&t->r, seen, deadline);
		if (ret)
			return ret;
	}
}

int h_tagged_get_tag(struct h_tagged_receiver *t, uint64_t *tag,
		     uint32_t *length, int64_t timeout_ns)
{
	struct wish wish = { .any = true };
	struct node node;
	int ret;

	ret = wait_for(t, &wish, &node, h_deadline(timeout_ns));
	if (ret)
		return ret;
	*tag = node.tag;
	if (length)
		*length = node.length;
	return 0;
}

int h_tagged_get_specific_tag(struct h_tagged_receiver *t, uint64_t tag,
			      uint32_t *length, int64_t timeout_ns)
{
	struct wish wish = { .tag = tag };
	struct node node;
	int ret;

	ret = wait_for(t, &wish, &node, h_deadline(timeout_ns));
	if (!ret && length)
		*length = node.length;
	return ret;
}

/* It may have been taken back since this was about to be called. */
static void call_ready(struct h_receiver *r, void *arg)
{
	void (*ready)(struct h_tagged_receiver *t, void *arg);

	h_receiver_lock(r);
	ready = of(r)->ready;
	arg = of(r)->ready_arg;
	h_receiver_unlock(r);
	if (ready)
		ready(of(r), arg);
}

void h_tagged_receiver_on_ready(struct h_tagged_receiver *t,
				void (*ready)(struct h_tagged_receiver *t,
					      void *arg),
				void *arg)
{
	h_receiver_on_ready(&t->r, NULL, NULL);
	h_receiver_lock(&t->r);
	t->ready = ready;
	t->ready_arg = arg;
	h_receiver_unlock(&t->r);
	if (ready)
		h_receiver_on_ready(&t->r, call_ready, NULL);
}

/* ---- from create to destroy ---- */

int h__tagged_receiver_create(struct h_manager *m, const struct h_tagged_attr *attr,
			      size_t size, struct h_tagged_receiver **receiver)
{
	struct h_tagged_receiver *t;
	struct h_receiver_attr at;
	struct h_tagged_attr a;
	int err;

	*receiver = NULL;
	err = H_TAKE_ATTR(m->dev, &a, attr, size);
	if (err)
		return err;
	if (a.flags || a.reserved || a.max_tags > MOST_TAGS)
		return h__refuse(m->dev, -EINVAL,
				 "%u tags, flags 0x%x, reserved %u: at most %u, the others 0",
				 a.max_tags, a.flags, a.reserved, MOST_TAGS);
	at = (struct h_receiver_attr) {
		.length = a.length ? a.length : DEFAULT_LENGTH,
		.arrivals = a.arrivals ? a.arrivals : DEFAULT_ARRIVALS,
	};
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->length = at.length;
	t->max = a.max_tags ? a.max_tags : DEFAULT_MAX_TAGS;
	t->all = (struct list) { NONE, NONE };
	t->unused = t->all;
	err = h_receiver_init(&t->r, m, &tagged_class, &at);
	if (err) {
		free(t);
		return err;
	}
	memset(t->r.data, 0, t->length);
	*receiver = t;
	return 0;
}

int h_tagged_receiver_destroy(struct h_tagged_receiver *t)
{
	int err;

	if (!t)
		return 0;
	err = h_receiver_exit(&t->r);
	if (err)
		return err;
	free(t->nodes);
	free(t->buckets);
	free(t);
	return 0;
}

void h_tagged_receiver_seed(const struct h_tagged_receiver *t,
			    struct h_seed *seed)
{
	struct h_seed_fields f = { .kind = H_SEED_TAGGED };

	h_slot_ticket(t->r.slot, 0, t->length, HAMLYN_META_FAST, &f.ticket);
	h__seed_put(seed, &f);
}

int h_tagged_receiver_rekey(struct h_tagged_receiver *t, struct h_seed *seed)
{
	int err = h_slot_rekey(t->r.slot);

	if (!err)
		h_tagged_receiver_seed(t, seed);
	return err;
}

void *h_tagged_receiver_data(const struct h_tagged_receiver *t)
{
	return t->r.data;
}

/* ---- sending ---- */

int h_tagged_resolve(const struct h_seed *seed, struct h_tagged_address *address)
{
	struct h_seed_fields f;
	int err = h__seed_get(seed, H_SEED_TAGGED, &f);

	if (!err && f.ticket.meta_index != HAMLYN_META_FAST)
		err = -EINVAL;
	if (!err)
		address->ticket = f.ticket;
	return err;
}

int h_tagged_send(struct h_manager *m, const struct h_tagged_address *to,
		  size_t offset, const void *data, size_t length, uint64_t tag,
		  int64_t timeout_ns)
{
	const struct h_msg msg = {
		.ticket = &to->ticket,
		.offset = offset,
		.data = data,
		.length = length,
		.word = tag,
	};

	if (length > m->packet_size)
		return -EMSGSIZE;
	return h__post(m, &msg, h_deadline(timeout_ns));
}
