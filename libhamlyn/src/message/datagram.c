// SPDX-License-Identifier: MIT
/*
 * Datagrams (H 3.3).
 *
 * Metadata, little endian: length (4 bytes), offset (4), a check word of one longer than a
 * packet (4), and, if an answer is wanted, an exported ticket. The NIC does not tell where
 * data landed: the offset is the sender's word, but never leads out of the buffer. The
 * length must be what the NIC has counted.
 *
 * So who lies about the offset has the receiver take what is there for his: that must
 * not be what others had sent before. What was handed out is erased before the next one
 * may come, and the whole buffer where it is not known where an honest one's data is.
 */
#include <stdlib.h>

#include <hamlyn/datagram.h>

#include "message/message.h"
#include "low/xxh.h"

#define DEFAULT_LENGTH	4096
#define SHORT_META	12
#define LONG_META	(SHORT_META + H_TICKET_BYTES)
#define MEND_NS		500000000ll
#define MEND_AGAIN_NS	20000000ll	/* somebody who lives was in the way */
#define CLOSED_NS	1000000000ll	/* the others are kept out no longer for the dead */

_Static_assert(LONG_META == HAMLYN_MAX_METADATA, "a ticket must fit");

enum phase {
	READY,		/* the entry is armed, or has just completed */
	HERE,		/* arrived */
	BUSY,		/* of one thread, which checks or erases it, without the lock */
	HELD,		/* received */
	REVOKED,
};

struct h_datagram_receiver {
	struct h_receiver r;
	uint32_t keys;		/* who changes the key */
	struct h_grace *grace;		/* keys; of free_entry() */
	size_t length;
	/* r.lock */
	enum phase phase;
	uint64_t key;			/* 0: revoked */
	struct h_datagram here;
	bool mixed;			/* others' bytes may be in the buffer as well */
	uint32_t spare;			/* notifications that are of messages before */
	int64_t closed_ns;		/* since when nobody comes in, for free_entry(); or 0 */
	uint64_t received;
	uint64_t malformed;
	uint32_t partial;		/* bytes of a message that is not over */
	int64_t partial_ns;		/* since when; 0: there is none */
	uint32_t pieces;		/* how many times that began: free_entry() asks about it */
	void (*ready)(struct h_datagram_receiver *receiver, void *arg);
	void *ready_arg;
};

static struct h_datagram_receiver *of(struct h_receiver *r)
{
	return (struct h_datagram_receiver *)r;
}

/* ---- arrivals; the receiver is locked ---- */

static void arm(struct h_datagram_receiver *d)
{
	d->partial_ns = 0;
	d->closed_ns = 0;
	d->phase = d->key ? READY : REVOKED;
	if (d->phase == READY)
		h__entry_grant(d->r.metadata, d->key, 0, d->length);
}

/*
 * Nobody is landing: one that arrived is over, or of no use. Locked, but not while all of
 * the buffer is erased: that takes time, and whoever polls for the manager spins for the
 * lock when something arrives here.
 */
static void arm_erased(struct h_datagram_receiver *d)
{
	char *data = d->r.data;

	if (d->mixed) {
		d->phase = BUSY;
		h_receiver_unlock(&d->r);
		memset(data, 0, d->length);
		h_receiver_lock(&d->r);
	} else {
		memset(data + d->here.offset, 0, d->here.length);
	}
	arm(d);
}

static void drop(struct h_datagram_receiver *d)
{
	d->malformed++;
	/* Where it landed is not known, unless it had no bytes. */
	d->here = (struct h_datagram) {};
	if (h__read_once(&d->r.metadata->length))
		d->mixed = true;
	arm_erased(d);
}

/* Datagrams have metadata, which fast messages have not. */
static bool may_be_address(const struct h_ticket *k)
{
	return k->meta_index != HAMLYN_META_FAST;
}

/*
 * Of one longer than a packet: packets of two senders that begin and end at the right time
 * make up a message, too. It is in the upper half of the offset, which no buffer needs.
 */
static uint32_t check_word(const void *data, size_t length)
{
	uint32_t check = (uint32_t)XXH3_64bits(data, length);

	return check ? check : 1;
}

/* @check: out: what is to be found there, or 0. */
static int parse(const struct h_datagram_receiver *d, struct h_datagram *out, uint32_t *check)
{
	const struct hamlyn_metadata *entry = d->r.metadata;
	uint32_t meta_length = h__read_once(&entry->meta_length);
	unsigned char meta[HAMLYN_MAX_METADATA];

	if (meta_length != SHORT_META && meta_length != LONG_META)
		return -EPROTO;
	memcpy(meta, entry->user, sizeof(meta));
	*out = (struct h_datagram) {
		.length = h__get(meta, 4),
		.offset = h__get(meta + 4, 4),
	};
	*check = (uint32_t)h__get(meta + 8, 4);
	if (out->length != h__read_once(&entry->length) || out->offset > d->length ||
	    out->length > d->length - out->offset)
		return -EPROTO;
	out->data = (char *)d->r.data + out->offset;
	if (meta_length == SHORT_META)
		return 0;
	out->has_reply = true;
	if (h_ticket_import(meta + SHORT_META, H_TICKET_BYTES,
			    &out->reply.ticket) ||
	    !may_be_address(&out->reply.ticket))
		return -EPROTO;
	return 0;
}

/*
 * Is it the only thing that has landed since the entry was armed? One packet that has all
 * the bytes, and came while no other message had begun.
 */
static bool is_alone(const struct h_datagram_receiver *d, const struct hamlyn_nq_entry *told)
{
	const struct hamlyn_metadata *entry = d->r.metadata;

	return told && !d->spare && told->flags & HAMLYN_NQE_SINGLE &&
	       told->length == h__read_once(&entry->length) &&
	       !h__read_once(&entry->accumulator);
}

/*
 * Has one come? The entry tells: a notification may be of one that was there before
 * the receiver was rekeyed. @told: the notification, or NULL; without it one will come
 * that is to spare, and proves nothing of the next. If that one was lost, by an overrun
 * or with its sender, none does any more: the buffer is erased behind each datagram.
 */
static void look(struct h_datagram_receiver *d, const struct hamlyn_nq_entry *told)
{
	if (d->phase == READY && !h__load_acquire(&d->r.metadata->state)) {
		d->phase = HERE;
		d->mixed = !is_alone(d, told);
		if (!told)
			d->spare++;
	} else if (told && d->spare) {
		d->spare--;
	}
}

static void process_arrival(struct h_receiver *r,
			    const struct hamlyn_nq_entry *e)
{
	if (!(e->flags & HAMLYN_NQE_PEER_GONE))
		look(of(r), e);
}

static void process_overrun(struct h_receiver *r)
{
	if (r->slot)
		look(of(r), NULL);
}

static bool pending(const struct h_receiver *r)
{
	return ((const struct h_datagram_receiver *)r)->phase == HERE;
}

static const struct h_receiver_class datagram_class = {
	.name = "datagram receiver",
	.process_arrival = process_arrival,
	.process_overrun = process_overrun,
	.pending = pending,
};

/*
 * The end of a long datagram whose beginning was dropped leaves the accumulator at
 * what no other long one brings back to 0. When nothing has moved for a while the
 * entry is armed anew.
 *
 * Return: whether somebody is inside all that time: free_entry() has to see whether
 * he lives, which only who sends by himself (the embedded device) can fail to do.
 */
static bool mend(struct h_datagram_receiver *d)
{
	struct hamlyn_metadata *entry = d->r.metadata;
	uint32_t armed = HAMLYN_META_ARMED;
	uint32_t bytes = h__read_once(&entry->length);
	int64_t now;

	if (d->closed_ns)
		return true;
	if (d->phase != READY ||
	    (!h__read_once(&entry->accumulator) && !bytes &&
	     h__read_once(&entry->state) == armed)) {
		d->partial_ns = 0;
		return false;
	}
	now = h__now_ns();
	/* No message is longer: what goes beyond it are others, which cannot end it either. */
	if (!d->partial_ns || (bytes != d->partial && bytes <= d->length)) {
		d->partial = bytes;
		d->partial_ns = now;
		d->pieces++;
		return false;
	}
	if (now - d->partial_ns < MEND_NS)
		return false;
	/* Whoever was to tell may be dead. */
	look(d, NULL);
	if (d->phase != READY)
		return false;
	if (!__atomic_compare_exchange_n(&entry->state, &armed, 0, 0,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		d->partial_ns = now - MEND_NS + MEND_AGAIN_NS;
		return true;
	}
	d->mixed = true;
	drop(d);
	return false;
}

/* ---- keys; d->keys held ---- */

/*
 * What has landed is in nobody's message. Nobody is landing any more; locked, but not all
 * the time.
 */
static void cut_off(struct h_datagram_receiver *d)
{
	h__write_once(&d->r.metadata->state, 0);
	d->mixed = true;
	arm_erased(d);
}

static int revoke(struct h_datagram_receiver *d)
{
	int err;

	h_receiver_lock(&d->r);
	d->key = 0;
	h__write_once(&d->r.metadata->key, 0);
	h_receiver_unlock(&d->r);
	/* Waits for what is landing. */
	err = h_slot_rekey(d->r.slot);
	if (err)
		return err;
	h__grace_end(&d->grace);
	h_receiver_lock(&d->r);
	d->closed_ns = 0;
	look(d, NULL);
	if (d->phase == READY)
		cut_off(d);
	h_receiver_unlock(&d->r);
	return 0;
}

static void set_key(struct h_datagram_receiver *d, uint64_t key)
{
	h_receiver_lock(&d->r);
	d->key = key;
	/* While one is held, what comes by the new key is dropped, and no guess. */
	if (d->phase == REVOKED)
		arm(d);
	else
		h__write_once(&d->r.metadata->key, key);
	h_receiver_unlock(&d->r);
}

/*
 * Is nobody inside any more who was when @about began, but for the dead? Not to be waited
 * for: a process that was stopped in there may be so for hours.
 */
static bool settled(struct h_datagram_receiver *d, uint32_t about)
{
	struct h_dev *dev = d->r.manager->dev;

	return h__grace_needed(dev) && h__grace_over(dev, &d->grace, about);
}

/*
 * Packets that come find no room, which is no guess, as a key that is gone would be.
 *
 * Return: whether that is needed: somebody is inside.
 */
static bool close_entry(struct h_datagram_receiver *d)
{
	uint32_t state;
	bool inside;

	h_receiver_lock(&d->r);
	state = h__load_acquire(&d->r.metadata->state);
	inside = d->phase == READY && state && state != HAMLYN_META_ARMED;
	if (inside) {
		d->closed_ns = h__now_ns();
		h__write_once(&d->r.metadata->low, 1);
		h__write_once(&d->r.metadata->high, 0);
	}
	h_receiver_unlock(&d->r);
	return inside;
}

/* @empty: whoever is inside is dead. */
static void open_entry(struct h_datagram_receiver *d, bool empty)
{
	h_receiver_lock(&d->r);
	/* Else it was armed meanwhile. */
	if (d->closed_ns) {
		look(d, NULL);
		d->closed_ns = 0;
		if (d->phase == READY && empty) {
			d->malformed++;
			cut_off(d);
		} else {
			h__write_once(&d->r.metadata->low, 0);
			h__write_once(&d->r.metadata->high, d->length);
		}
	}
	h_receiver_unlock(&d->r);
}

/*
 * A process that died while its message was landing is inside for ever, and no
 * other's would be the last to leave. When all who live have left, and nobody came in
 * meanwhile, the entry is armed anew. However many send, each who was inside leaves at
 * some time: a call goes on where the last one was.
 */
static void free_entry(struct h_datagram_receiver *d)
{
	uint32_t about;
	int64_t closed_ns;

	/* Who has it revokes or rekeys, which will do, or is at this. */
	if (!h__try_lock(&d->keys))
		return;
	h_receiver_lock(&d->r);
	about = 2 * d->pieces;
	closed_ns = d->closed_ns;
	h_receiver_unlock(&d->r);
	/* First with the door open: all could be late for nothing. */
	if (!closed_ns && settled(d, about) && close_entry(d))
		closed_ns = h__now_ns();
	if (closed_ns) {
		if (settled(d, about + 1))			/* B8 */
			open_entry(d, true);
		else if (h__now_ns() - closed_ns > CLOSED_NS)
			open_entry(d, false);
	}
	h__unlock(&d->keys);
}

/* ---- receiving ---- */

/* Locked, but not while a long one is checked. Return: whether it may be handed out. */
static bool examine(struct h_datagram_receiver *d)
{
	uint32_t check = 0;
	bool good;

	good = !parse(d, &d->here, &check);
	if (good && check) {
		d->phase = BUSY;
		h_receiver_unlock(&d->r);
		good = check == check_word(d->here.data, d->here.length);
		h_receiver_lock(&d->r);
	}
	if (!good)
		drop(d);
	return good;
}

/* @stuck: out: somebody may have died while his landed: it is worth a look again soon. */
static int hand_out(struct h_datagram_receiver *d, struct h_datagram *out, bool *stuck)
{
	int ret = -EAGAIN;

	*stuck = false;
	h_receiver_lock(&d->r);
	if (d->phase != HERE)
		*stuck = mend(d);
	if (d->phase == HERE && examine(d)) {
		*out = d->here;
		d->phase = HELD;
		d->received++;
		ret = 0;
	}
	h_receiver_unlock(&d->r);
	if (*stuck)
		free_entry(d);
	return ret;
}

static int receive(struct h_datagram_receiver *d, struct h_datagram *out,
		   int64_t deadline)
{
	unsigned int rounds = 0;

	for (;;) {
		uint32_t seen = h_receiver_events(&d->r);
		int64_t until = deadline;
		bool stuck;
		int ret = hand_out(d, out, &stuck);

		if (ret != -EAGAIN)
			return ret;
		/* What came was malformed, and the next one may be. */
		ret = h__go_on(&rounds, deadline);
		if (ret)
			return ret;
		/* In pieces: see mend(). */
		if (deadline != H_NOWAIT) {
			until = h__now_ns() + (stuck ? MEND_AGAIN_NS : MEND_NS);
			if (deadline > 0 && until > deadline)
				until = deadline;
		}
		ret = h_receiver_wait(&d->r, seen, until);
		if (ret && (ret != -ETIMEDOUT || until == deadline))
			return ret;
	}
}

int h_datagram_receive(struct h_datagram_receiver *d, struct h_datagram *out,
		       int64_t timeout_ns)
{
	return receive(d, out, h_deadline(timeout_ns));
}

void h_datagram_release(struct h_datagram_receiver *d)
{
	h_receiver_lock(&d->r);
	if (d->phase == HELD)
		arm_erased(d);
	h_receiver_unlock(&d->r);
}

static int new_key(struct h_datagram_receiver *d)
{
	uint64_t key;
	int err;

	err = h__key(&key);
	if (!err)
		set_key(d, key);
	return err;
}

int h_datagram_revoke(struct h_datagram_receiver *d)
{
	int err;

	h__lock(&d->keys);
	err = revoke(d);
	h__unlock(&d->keys);
	return err;
}

int h_datagram_rekey(struct h_datagram_receiver *d, struct h_seed *seed)
{
	int err;

	h__lock(&d->keys);
	err = revoke(d);
	if (!err)
		err = new_key(d);
	h__unlock(&d->keys);
	if (!err)
		h_datagram_receiver_seed(d, seed);
	return err;
}

void h_datagram_receiver_address(struct h_datagram_receiver *d,
				 struct h_datagram_address *address)
{
	h_slot_ticket(d->r.slot, 0, d->length, 0, &address->ticket);
	h_receiver_lock(&d->r);
	address->ticket.key = d->key;
	h_receiver_unlock(&d->r);
}

void h_datagram_receiver_seed(struct h_datagram_receiver *d,
			      struct h_seed *seed)
{
	struct h_seed_fields f = { .kind = H_SEED_DATAGRAM, .entries = 1 };
	struct h_datagram_address address;

	h_datagram_receiver_address(d, &address);
	f.ticket = address.ticket;
	h__seed_put(seed, &f);
}

/* ---- from create to destroy ---- */

int h__datagram_receiver_create(struct h_manager *m, const struct h_datagram_attr *attr,
				size_t size, struct h_datagram_receiver **receiver)
{
	struct h_receiver_attr at = {
		.entries = 1,
		.mode = HAMLYN_SLOT_PARANOID_ONE_SHOT,
		.arrivals = 2,	/* one more after a rekey */
	};
	struct h_datagram_receiver *d;
	struct h_datagram_attr a;
	int err;

	*receiver = NULL;
	err = H_TAKE_ATTR(m->dev, &a, attr, size);
	if (err)
		return err;
	if (a.flags || a.reserved || a.length > UINT32_MAX)
		return h__refuse(m->dev, -EINVAL,
				 "a buffer of at most %u bytes, flags and reserved 0",
				 UINT32_MAX);
	at.length = a.length ? a.length : DEFAULT_LENGTH;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->length = at.length;
	d->phase = REVOKED;
	err = h_receiver_init(&d->r, m, &datagram_class, &at);
	if (err)
		goto free_receiver;
	err = new_key(d);
	if (err) {
		h__receiver_drop(&d->r);
		goto free_receiver;
	}
	*receiver = d;
	return 0;

free_receiver:
	free(d);
	return err;
}

int h_datagram_receiver_destroy(struct h_datagram_receiver *d)
{
	int err;

	if (!d)
		return 0;
	err = h_receiver_exit(&d->r);
	if (err)
		return err;
	h__grace_end(&d->grace);
	free(d);
	return 0;
}

int h__datagram_receiver_stats(struct h_datagram_receiver *d,
			       struct h_datagram_stats *stats, size_t size)
{
	struct h_datagram_stats now;
	struct hamlyn_stats slot;
	int err, bad;

	err = h_slot_stats(d->r.slot, &slot);
	h_receiver_lock(&d->r);
	now = (struct h_datagram_stats) {
		.received = d->received,
		.malformed = d->malformed,
		.dropped = err ? 0 : slot.rejects[HAMLYN_REJECT_ONE_SHOT],
	};
	h_receiver_unlock(&d->r);
	bad = h__copy_stats(stats, size, &now, sizeof(now));
	return bad ? bad : err;
}

/* It may have been taken back since this was about to be called. */
static void call_ready(struct h_receiver *r, void *arg)
{
	void (*ready)(struct h_datagram_receiver *receiver, void *arg);

	h_receiver_lock(r);
	ready = of(r)->ready;
	arg = of(r)->ready_arg;
	h_receiver_unlock(r);
	if (ready)
		ready(of(r), arg);
}

void h_datagram_receiver_on_ready(struct h_datagram_receiver *d,
				  void (*ready)(struct h_datagram_receiver *d,
						void *arg),
				  void *arg)
{
	h_receiver_on_ready(&d->r, NULL, NULL);
	h_receiver_lock(&d->r);
	d->ready = ready;
	d->ready_arg = arg;
	h_receiver_unlock(&d->r);
	if (ready)
		h_receiver_on_ready(&d->r, call_ready, NULL);
}

/* ---- sending ---- */

int h_datagram_resolve(const struct h_seed *seed,
		       struct h_datagram_address *address)
{
	struct h_seed_fields f;
	int err = h__seed_get(seed, H_SEED_DATAGRAM, &f);

	if (!err && !may_be_address(&f.ticket))
		err = -EINVAL;
	if (!err)
		address->ticket = f.ticket;
	return err;
}

static int send_to(struct h_manager *m, const struct h_datagram_address *to,
		   size_t offset, const void *data, size_t length,
		   const struct h_datagram_address *reply, int64_t deadline)
{
	unsigned char meta[LONG_META];
	const struct h_msg msg = {
		.ticket = &to->ticket,
		.offset = offset,
		.data = data,
		.length = length,
		.meta = meta,
		.meta_length = reply ? LONG_META : SHORT_META,
	};

	/* Before its data is read. */
	if (offset > to->ticket.length || length > to->ticket.length - offset ||
	    to->ticket.base > UINT32_MAX || offset > UINT32_MAX - to->ticket.base ||
	    length > UINT32_MAX)
		return -ERANGE;
	h__put(meta, length, 4);
	h__put(meta + 4, to->ticket.base + offset, 4);
	h__put(meta + 8, data && length > m->packet_size ? check_word(data, length) : 0,
	       4);
	if (reply)
		h_ticket_export(&reply->ticket, meta + SHORT_META);
	return h__post(m, &msg, deadline);
}

int h_datagram_send(struct h_manager *m, const struct h_datagram_address *to,
		    size_t offset, const void *data, size_t length,
		    const struct h_datagram_address *reply, int64_t timeout_ns)
{
	return send_to(m, to, offset, data, length, reply,
		       h_deadline(timeout_ns));
}

/*
 * An answer to a request before this one may be there. If that one could not be rekeyed
 * when it was over, nobody could answer this one, and who tries would be guessing.
 */
static int request_begin(struct h_datagram_receiver *d)
{
	struct h_seed unused;
	bool revoked;
	int err = 0;

	h_receiver_lock(&d->r);
	if (d->phase == HELD)
		err = -EBUSY;
	else if (d->phase == HERE && examine(d))
		arm_erased(d);
	revoked = !d->key;
	h_receiver_unlock(&d->r);
	return !err && revoked ? h_datagram_rekey(d, &unused) : err;
}

int h_datagram_request(struct h_datagram_receiver *replies,
		       const struct h_datagram_address *to, const void *data,
		       size_t length, struct h_datagram *answer,
		       int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	struct h_datagram_address reply;
	struct h_seed unused;
	int ret, err;

	ret = request_begin(replies);
	if (ret)
		return ret;
	h_datagram_receiver_address(replies, &reply);
	ret = send_to(replies->r.manager, to, 0, data, length, &reply, deadline);
	if (ret)
		return ret;
	ret = receive(replies, answer, deadline);
	if (!ret)
		return 0;
	err = h_datagram_rekey(replies, &unused);
	return err ? err : ret;
}
