// SPDX-License-Identifier: MIT
/*
 * Messages that arrive. A notification names a buffer; what is in it may by now be a
 * newer message, or half of one, where a request was sent twice or a fabric repeats
 * packets. So the header is copied, and what the copy says is checked and used; data
 * are copied and then checked where there is a reason to doubt them.
 */
#include "wire.h"

typedef void (*function)(void);

static double as_double(long word)
{
	double d;

	_Static_assert(sizeof(d) == sizeof(word), "a double is a word");
	memcpy(&d, &word, sizeof(d));
	return d;
}

/* Pointers to functions of other types than @f is: what they have is their caller's word. */
void am_call(int source, const struct am_packet *p, void *data)
{
	function f = am_address_find(p->handler);
	long a[AM_WORDS];

	if (am_unlikely(!f))
		return;
	memcpy(a, p->args, sizeof(a));
	switch (p->kind & (uint8_t)~AM_SUMMED) {
	case 0:
		((handler_0_t)f)(source);
		break;
	case 1:
		((handler_1_t)f)(source, a[0]);
		break;
	case 2:
		((handler_2_t)f)(source, a[0], a[1]);
		break;
	case 3:
		((handler_3_t)f)(source, a[0], a[1], a[2]);
		break;
	case 4:
		((handler_4_t)f)(source, a[0], a[1], a[2], a[3]);
		break;
	case AM_ARGS_5:
		((handler_5_t)f)(source, a[0], a[1], a[2], a[3], a[4]);
		break;
	case AM_ARGS_HPAM:
		((void (*)(unsigned long, unsigned long, unsigned long,
			   unsigned long))f)((unsigned long)a[0],
					     (unsigned long)a[1],
					     (unsigned long)a[2],
					     (unsigned long)a[3]);
		break;
	case AM_ARGS_DF:
		((handler_df_t)f)(source, a[0], a[1], as_double(a[2]));
		break;
	case AM_MEMORY:
		((handler_mem_t)f)(source, data, (int)(uint32_t)a[2],
				   (void *)a[0]);
		break;
	case AM_MEMORY_HPAM:
		((void (*)(void *, void *, int))f)((void *)a[0], data,
						   (int)(uint32_t)a[2]);
		break;
	case AM_MEDIUM:
		((handler_med_t)f)(source, data, (int)p->length, a[0], a[1]);
		break;
	}
}

/* A request to oneself is a call (P Appendix A). */
void am_call_own(struct am *am, const struct am_packet *p, void *data)
{
	am->context = AM_IN_REQUEST;
	HPAM_reply_dest = (int)am->self;
	am->replied = 0;
	am_call((int)am->self, p, data);
	am->context = AM_MAIN;
	HPAM_reply_dest = -1;
}

/* Data to their place. Return: 0 if they are not what was sent. */
static int place(struct am *am, const struct am_packet *p, void *to,
		 const void *from)
{
	memcpy(to, from, p->length);
	if (!(p->kind & AM_SUMMED) ||
	    am_likely(am_data_sum(to, p->length) == p->args[4]))
		return 1;
	am->stats.damaged++;
	return 0;
}

static int is_memory(uint8_t kind)
{
	kind &= (uint8_t)~AM_SUMMED;
	return kind == AM_MEMORY || kind == AM_MEMORY_HPAM;
}

/*
 * Where the handler finds the data: memory, where they are wanted; of medium messages,
 * the buffer itself, unless it could change while the handler runs. Return: 0 if they
 * are damaged.
 */
static int take_data(struct am *am, const struct am_packet *p, unsigned char *from,
		     void **data)
{
	uint8_t kind = p->kind & (uint8_t)~AM_SUMMED;

	*data = NULL;
	if (is_memory(kind)) {
		*data = (void *)(uintptr_t)p->args[1];
		return !p->length ||
		       place(am, p, (unsigned char *)*data + p->args[3], from);
	}
	if (kind == AM_MEDIUM) {
		*data = from;
		if (!(p->kind & AM_SUMMED))
			return 1;
		*data = am->scratch;
		return place(am, p, am->scratch, from);
	}
	if (kind == AM_GOT) {
		struct am_get *get = &am->gets[p->args[1] % AM_GETS];

		/* One whose process was lost is over; others fit. */
		if (!get->active)
			return 1;
		return p->args[0] <= get->total &&
		       p->length <= get->total - p->args[0] &&
		       place(am, p, get->to + p->args[0], from);
	}
	return 1;
}

/*
 * Segments arrive in any order; the one that completes the whole calls the handler.
 * The sender does not begin another transfer by that number before all are answered.
 */
static int is_whole(struct am_peer *peer, const struct am_packet *p)
{
	uint32_t total = (uint32_t)p->args[2];
	uint32_t *missing = &peer->missing[(p->args[2] >> 32) % AM_TRANSFERS];

	if (!is_memory(p->kind) || p->length == total)
		return 1;
	if (!*missing)
		*missing = total;
	*missing -= p->length;
	return !*missing;
}

static void run_request(struct am *am, int source, const struct am_packet *p,
			void *data)
{
	uint32_t instance = p->instance;

	am->context = AM_IN_REQUEST;
	HPAM_reply_dest = source;
	am->reply_instance = instance;
	am->replied = 0;
	/* Once it is answered its buffer, which the handler may be reading, is filled anew. */
	am->defer = (p->kind & (uint8_t)~AM_SUMMED) == AM_MEDIUM;
	if (p->kind == AM_GET)
		am_bulk_give(am, p);
	else if (p->kind == AM_SYNC)
		am_sync_arrives(am, p);
	else if (is_whole(&am->peers[source], p))
		am_call(source, p, data);
	if (am->defer && am->replied)
		am_reply_leave(am, source, instance);
	am->defer = 0;
	am->context = AM_MAIN;
	HPAM_reply_dest = -1;
	if (!am->replied)
		am_reply_owe(am, source, instance);
}

static int request_arrives(struct am *am, int source, const struct am_packet *p,
			   unsigned char *from)
{
	struct am_send *r = &am->peers[source].reply[p->instance];
	void *data;

	if (am_unlikely(p->seq != r->seq + 1)) {
		am->stats.duplicates++;
		if (p->seq == r->seq)
			am_reply_reflect(am, source, p->instance);
		return 0;
	}
	if (!take_data(am, p, from, &data))
		return 0;
	if (r->state == AM_WAITING)
		am_state_move(&r->state, AM_EV_NEW);
	r->seq = p->seq;
	run_request(am, source, p, data);
	return 1;
}

static void acknowledged(struct am *am, struct am_peer *peer, uint32_t ack)
{
	uint32_t instance = ack >> 24;
	struct am_send *r = &peer->request[instance % am->depth];

	if (instance < am->depth && r->state == AM_COUNTING &&
	    (r->seq & AM_SEQ24) == (ack & AM_SEQ24))
		am_request_done(am, peer, instance);
}

static void acks_arrive(struct am *am, struct am_peer *peer,
			const struct am_packet *p)
{
	uint32_t more[AM_MAX_ACKS - 1];
	uint32_t i;

	memcpy(more, &p->handler, sizeof(p->handler));
	memcpy(more + 2, p->args, sizeof(p->args));
	for (i = 0; i < p->length && i < AM_MAX_ACKS - 1; i++)
		acknowledged(am, peer, more[i]);
}

static int reply_arrives(struct am *am, int source, const struct am_packet *p,
			 unsigned char *from)
{
	struct am_peer *peer = &am->peers[source];
	struct am_send *r = &peer->request[p->instance];
	void *data;

	/* What else it acknowledges may be news even if the first is not. */
	if (p->kind == AM_ACK)
		acks_arrive(am, peer, p);
	if (am_unlikely(r->state != AM_COUNTING || p->seq != r->seq)) {
		am->stats.duplicates++;
		return 0;
	}
	if (p->kind != AM_ACK) {
		if (!take_data(am, p, from, &data))
			return 0;
		am->context = AM_IN_REPLY;
		if (p->kind == AM_GOT || p->kind == (AM_GOT | AM_SUMMED))
			am_bulk_got(am, p);
		else if (p->kind == AM_SYNC)
			am_sync_failed(am, source, p);
		else
			am_call(source, p, data);
		am->context = AM_MAIN;
	}
	am_request_done(am, peer, p->instance);
	return 1;
}

/* Is it a message of this buffer, and whole? */
static int is_good(struct am *am, const struct am_packet *p, int reply,
		   uint32_t source, uint32_t instance, uint32_t size)
{
	uint8_t kind = p->kind & (uint8_t)~AM_SUMMED;

	if (am_unlikely(am->reliable &&
			p->check != am_header_sum(p, am->self, reply)))
		return 0;
	/* What one sends to oneself is a call: nobody has that buffer. */
	if (p->source != source || source == am->self ||
	    p->instance != instance || kind >= AM_KINDS)
		return 0;
	if (kind == AM_ACK)
		return reply && size == AM_HEADER;
	if (kind >= AM_GET && kind == (reply ? AM_GET : AM_GOT))
		return 0;
	return size - AM_HEADER == p->length && p->length <= am->page;
}

static int peer_gone(struct am *am, const struct hamlyn_nq_entry *entry)
{
	if (entry->data < am->procs)
		am_lose(am, (int)entry->data, -ECONNRESET);
	return 0;
}

/*
 * A notification. Return: 1 if a message was handled, 0 if it was none, or was
 * handled before, or is not what was sent.
 */
int am_arrive(struct am *am, const struct hamlyn_nq_entry *entry)
{
	uint32_t size = entry->length;
	uint32_t index = entry->index;
	uint32_t all = am->procs << am->depth_shift;
	int reply = index >= all;
	uint32_t source = (index - (reply ? all : 0)) >> am->depth_shift;
	uint32_t instance = index & (am->depth - 1);
	struct am_packet p;
	unsigned char *from;
	int handled;

	if (am_unlikely(entry->flags & HAMLYN_NQE_PEER_GONE))
		return peer_gone(am, entry);
	if (am_unlikely(index >= 2 * all || size < AM_HEADER ||
			size > am->stride))
		goto damaged;
	from = am->in + (size == AM_HEADER ?
			 (size_t)index * AM_STRIDE :
			 am->long_base + (size_t)index * am->stride);
	/*
	 * What the notification told of is there (B3), but may be written over; what is
	 * checked is the copy: it must not be read from there again.
	 */
	memcpy(&p, from, sizeof(p));
	__asm__ volatile("" ::: "memory");
	if (am_unlikely(!is_good(am, &p, reply, source, instance, size)))
		goto damaged;
	if (!am_state_move(&am->in_state[index], AM_EV_ARRIVE))
		return 0;
	handled = reply ? reply_arrives(am, (int)source, &p, from + AM_HEADER) :
			  request_arrives(am, (int)source, &p, from + AM_HEADER);
	am_state_move(&am->in_state[index], AM_EV_HANDLED);
	return handled;
damaged:
	am->stats.damaged++;
	return 0;
}
