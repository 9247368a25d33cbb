// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames on their way to a peer: a ring of bytes, and what gives them to the socket.
 *
 * A packet is copied into the ring in the section that sends it, and the sender is done with it.
 * Behind the section whoever sent gives the ring's bytes to TCP, without losing its processor: the
 * socket's spin lock is held, and not the socket. Nobody owns that for longer than the moments in
 * which a worker makes or ends the connection. So no user keeps a connection from others.
 */
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/tcp.h>

#include "compat/compat.h"
#include "hml.h"
#include "fabric/peer.h"
#include "trace.h"

#define CONTROL_ROOM	SZ_4K	/* of the ring, that packets leave to other frames */
#define SEND_BYTES	(SZ_64K + SZ_4K)	/* given to TCP without losing the processor */
#define CONTROL_BATCH	16	/* watches told between two looks, and as many calls */
#define ROUNDS		8	/* of sending, by who was not asked to do it for others */
#define GATHER_BYTES	SZ_16K	/* more in the ring are given to the socket at once */
#define BURST		4	/* packets since the last time: more are to be expected */
#define MOST_REST_NS	(100 * NSEC_PER_USEC)

static bool empty(const struct hml_outbox *o)
{
	return READ_ONCE(o->tail) == READ_ONCE(o->head);
}

/* In an interrupt, where no lock of ours may be taken. */
static enum hrtimer_restart gathered(struct hrtimer *timer)
{
	struct hml_peer *p = container_of(timer, struct hml_peer, out.gather);

	clear_bit(0, &p->out.gathering);
	smp_mb__after_atomic();	/* B22: before the look at the ring */
	if (!empty(&p->out))
		queue_work(hml_wire_workers, &p->io);
	return HRTIMER_NORESTART;
}

int hml_outbox_init(struct hml_peer *p)
{
	struct hml_outbox *o = &p->out;

	/* Any packet finds room when TCP has taken all before it. */
	BUILD_BUG_ON(HML_DEPARTURES_BYTES - HML_DEPARTURES_KEPT <
		     2 * (HAMLYN_MAX_PACKET + HML_WIRE_MOST_HEADER) + CONTROL_ROOM);
	raw_spin_lock_init(&o->lock);
	hml_compat_timer_setup(&o->gather, gathered);
	return hml_departures_init(&o->ring);
}

/* Nobody has a reference to the peer: nobody starts the timer. */
void hml_outbox_free(struct hml_outbox *o)
{
	hrtimer_cancel(&o->gather);
	hml_departures_free(&o->ring);
}

/* ---- in ---- */

static u64 room(const struct hml_outbox *o)
{
	lockdep_assert_held(&o->lock);
	return hml_departures_room(&o->ring, o->head, o->tail);
}

static void put_bytes(struct hml_outbox *o, u64 at, const void *from, u32 n)
{
	u32 part;
	u8 *to;

	for (; n; n -= part) {
		part = n;
		to = hml_departures_at(&o->ring, at, &part);
		memcpy(to, from, part);
		from += part;
		at += part;
	}
}

/* Return: false if not all of it can be read. */
static bool read_pieces(struct hml_outbox *o, u64 at, const struct hml_payload *payload, u32 n)
{
	const struct hml_piece *p = payload->piece;
	u64 skip = payload->skip;

	while (n) {
		u32 part = min_t(u64, n, p->length - skip);
		u8 *to = hml_departures_at(&o->ring, at, &part);

		if (!hml_mem_read(to, p->mem, p->offset + skip, part))
			return false;
		at += part;
		n -= part;
		skip += part;
		if (skip == p->length) {
			skip = 0;
			p++;
		}
	}
	return true;
}

/* The ring's bytes are there. One that was empty has not stood still until now. */
static void fill_up(struct hml_outbox *o, u32 n)
{
	if (o->head == o->tail)
		o->moved = ktime_get_ns();
	smp_store_release(&o->tail, o->tail + n);	/* behind its bytes */
}

/* @n: bytes of its header. A packet that cannot be read leaves no trace: not even a number. */
static void put_packet(struct hml_outbox *o, u32 n, const struct hamlyn_packet *h,
		       const struct hml_payload *payload, struct hml_sender *sender)
{
	/* Process ids are this host's own affair. */
	const struct hml_wire_origin origin = { .user = sender->share };
	u8 header[HML_WIRE_MOST_HEADER];

	if (payload->piece) {
		if (unlikely(!read_pieces(o, o->tail + n, payload, h->length))) {
			sender->unreadable = true;
			return;
		}
	} else {
		put_bytes(o, o->tail + n, payload->flat, h->length);
	}
	hml_wire_pack_data(&o->tx, header, h, payload->meta, &origin);
	put_bytes(o, o->tail, header, n);
	fill_up(o, n + h->length);
	hml_count(&o->packets, 1);
}

/* The first that finds no room is told of, and then that there is some again. */
static void want_room(struct hml_peer *p)
{
	struct hml_outbox *o = &p->out;

	lockdep_assert_held(&o->lock);
	if (!o->wanted)
		trace_hamlyn_peer_stall(&p->tcp->device->nic, p->attr.host, o->tail - o->head);
	WRITE_ONCE(o->wanted, true);
}

/**
 * hml_outbox_put() - take a packet for a peer
 * @p: the peer
 * @h: its header
 * @payload: its bytes
 * @sender: who sends it
 *
 * In a section. While the peer is not up, packets are lost, as those for a NIC that is down.
 *
 * Return: false if there is no room now.
 */
bool hml_outbox_put(struct hml_peer *p, const struct hamlyn_packet *h,
		    const struct hml_payload *payload, struct hml_sender *sender)
{
	u64 header = hml_wire_data_bytes(h), bytes;
	struct hml_outbox *o = &p->out;
	bool open, taken;

	/* An adversary may have made of it what no frame can say. */
	if (unlikely(!header)) {
		sender->stats->rejects[HAMLYN_REJECT_FORMAT]++;
		return true;
	}
	bytes = header + h->length + CONTROL_ROOM;
	hml_lock(&o->lock);
	open = o->open;
	taken = open && room(o) >= bytes;
	if (taken)
		put_packet(o, header, h, payload, sender);
	else if (open)
		want_room(p);
	hml_count(&o->stalls, open && !taken);
	hml_count(&o->lost, !open);
	hml_unlock(&o->lock);
	if (!open)
		sender->stats->rejects[HAMLYN_REJECT_DOWN]++;
	else
		hml_notify_flush(p);
	return taken || !open;
}

/**
 * hml_outbox_control() - put a frame that is no packet into the ring
 * @o: the outbox
 * @pack: writes the frame, at most HML_WIRE_MOST_CONTROL bytes
 * @arg: for @pack
 *
 * Return: false if there is no room, and nothing was written.
 */
bool hml_outbox_control(struct hml_outbox *o,
			u32 (*pack)(struct hml_wire_tx *tx, u8 *to, void *arg), void *arg)
{
	u8 frame[HML_WIRE_MOST_CONTROL];
	bool fits;
	u32 n;

	hml_lock(&o->lock);
	fits = room(o) >= sizeof(frame);
	if (fits) {
		n = pack(&o->tx, frame, arg);
		put_bytes(o, o->tail, frame, n);
		fill_up(o, n);
	}
	hml_unlock(&o->lock);
	return fits;
}

static u32 pack_pong(struct hml_wire_tx *tx, u8 *to, void *arg)
{
	return hml_wire_pack_pong(tx, to, *(u64 *)arg);
}

/* Packets leave room, and other frames than these are few. */
static bool has_room(struct hml_outbox *o)
{
	bool has;

	hml_lock(&o->lock);
	has = room(o) >= CONTROL_ROOM / 2;
	hml_unlock(&o->lock);
	return has;
}

static bool put_watches(struct hml_peer *p)
{
	struct hml_far_note note;
	u32 n;

	for (n = 0; n < CONTROL_BATCH && has_room(&p->out) && hml_far_next(&p->far, &note); n++)
		hml_outbox_control(&p->out, hml_far_pack, &note);
	return n == CONTROL_BATCH;
}

static noinline_for_stack bool put_calls(struct hml_peer *p)
{
	struct hml_call_note note;
	u32 n;

	for (n = 0; n < CONTROL_BATCH && has_room(&p->out) && hml_calls_next(&p->names, &note); n++)
		hml_outbox_control(&p->out, hml_calls_pack, &note);
	/* There are keys in what is said. */
	memzero_explicit(&note, sizeof(note));
	return n == CONTROL_BATCH;
}

/* What the peer is to be told, as far as there is room. Return: whether there may be more. */
static bool put_due(struct hml_peer *p)
{
	u64 stamp = READ_ONCE(p->in.stamp);

	if (READ_ONCE(p->in.pong) && hml_outbox_control(&p->out, pack_pong, &stamp))
		WRITE_ONCE(p->in.pong, false);
	/* By turns: those who watch do not keep those who call waiting. */
	return put_watches(p) | put_calls(p);
}

/* ---- out ---- */

static u32 ready_bytes(const struct hml_outbox *o)
{
	u64 tail = smp_load_acquire(&o->tail);	/* before the bytes */

	return min_t(u64, tail - o->head, SEND_BYTES);
}

/* Return: bytes that TCP took, or an error. */
static int give(struct hml_outbox *o, u32 n)
{
	struct sock *sk = o->sock->sk;
	int ret = -EAGAIN;

	bh_lock_sock(sk);
	/* Its owner, a worker, makes or ends the connection, and looks here behind that. */
	if (!sock_owned_by_user(sk)) {
		WRITE_ONCE(o->giving, true);
		ret = hml_departures_give(&o->ring, sk, o->head, n);
		WRITE_ONCE(o->giving, false);
	}
	bh_unlock_sock(sk);
	return ret;
}

/* TCP has taken @n bytes. Return: whether somebody may wait for the room. */
static bool advance(struct hml_peer *p, u32 n)
{
	struct hml_outbox *o = &p->out;
	u64 base = hml_departures_reclaim(&o->ring, o->head + n);
	bool wanted;

	hml_lock(&o->lock);
	wanted = o->wanted && (n || base != o->ring.base);
	o->ring.base = base;
	hml_count(&o->head, n);
	hml_count(&o->bytes, n);
	if (wanted) {
		WRITE_ONCE(o->wanted, false);
		trace_hamlyn_peer_resume(&p->tcp->device->nic, p->attr.host, o->tail - o->head);
	}
	hml_unlock(&o->lock);
	return wanted;
}

/* Holder of @sending. Return: whether there may be more to send, and room for it. */
static bool send_some(struct hml_peer *p)
{
	struct hml_outbox *o = &p->out;
	int sent = 0;
	bool due;
	u32 n;

	if (!o->sock)
		return false;
	due = put_due(p);
	n = ready_bytes(o);
	if (n)
		sent = max(give(o, n), 0);
	/* Room may also come of what TCP had before. Who wants some flushes behind that (B20). */
	if ((sent || READ_ONCE(o->wanted)) && advance(p, sent))
		hml_engine_room(p->tcp->device);
	return sent && sent == n && (due || !empty(o));
}

/*
 * To give TCP a few bytes takes as long as to give it many, and so does what comes of it, on both
 * hosts. So that is a third of the time at most, and in a burst a ninth, and what is put in
 * meanwhile goes together. What may be an answer goes at once.
 */
static void rest(struct hml_peer *p, u64 begin)
{
	struct hml_outbox *o = &p->out;
	u64 now = ktime_get_ns(), packets = READ_ONCE(o->packets);
	u32 times = packets - READ_ONCE(o->rested_at) >= BURST ? 8 : 2;

	WRITE_ONCE(o->rested_at, packets);
	WRITE_ONCE(o->rested_heard, READ_ONCE(p->in.packets));
	WRITE_ONCE(o->rested, now + min(times * (now - begin), MOST_REST_NS));
}

/* Something has come since: what is sent now may be the answer that is waited for. */
static bool answers(const struct hml_peer *p)
{
	return READ_ONCE(p->in.packets) != READ_ONCE(p->out.rested_heard);
}

/**
 * hml_outbox_flush() - give the socket what there is
 * @p: the peer
 *
 * Not in a section. Somebody else who does that already looks again, after letting go (B20): the
 * socket may have refused bytes just before it had room, which we were called for.
 *
 * Under PREEMPT_RT a task can lose its processor in the middle, and nobody lends it theirs for a
 * bit. So there only workers send.
 */
void hml_outbox_flush(struct hml_peer *p)
{
	struct hml_outbox *o = &p->out;
	u64 begin = ktime_get_ns(), head = READ_ONCE(o->head);
	u32 round = 0;
	bool more, again;
	int calls;

	smp_mb__before_atomic();	/* B20: what there is to send before the count */
	atomic_inc(&o->calls);
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && !(current->flags & PF_WQ_WORKER)) {
		queue_work(hml_wire_workers, &p->io);
		return;
	}
	do {
		/* A task that sends does not send for all others for ever. */
		if (round == ROUNDS) {
			queue_work(hml_wire_workers, &p->io);
			return;
		}
		local_bh_disable();
		if (test_and_set_bit(0, &o->sending)) {
			local_bh_enable();
			return;
		}
		calls = atomic_read_acquire(&o->calls);	/* B20: before the look at the ring */
		more = send_some(p);
		clear_bit_unlock(0, &o->sending);
		smp_mb__after_atomic();	/* B20: let go before the look at calls */
		again = more || atomic_read(&o->calls) != calls;
		/* A worker's, in case that we lose the processor now. */
		if (again && !(current->flags & PF_WQ_WORKER))
			queue_work(hml_wire_workers, &p->io);
		local_bh_enable();
		if (!round++ && READ_ONCE(o->head) != head)
			rest(p, begin);
		cond_resched();
	} while (again);
}

/**
 * hml_outbox_gather() - the same, for packets of which more may follow soon
 * @p: the peer, with a reference
 *
 * One that comes after a while goes at once. In a burst of short ones those go together that come
 * within a few times as long as sending takes, at most MOST_REST_NS; who sent them waits for
 * nothing.
 */
void hml_outbox_gather(struct hml_peer *p)
{
	struct hml_outbox *o = &p->out;
	s64 left = READ_ONCE(o->rested) - ktime_get_ns();

	if (left <= 0 || answers(p) || READ_ONCE(o->tail) - READ_ONCE(o->head) >= GATHER_BYTES) {
		hml_outbox_flush(p);
		return;
	}
	/* Everybody waits for the timer: do not lose the processor before it has been started. */
	preempt_disable();
	smp_mb__before_atomic();	/* B22: what there is to send before the look at the bit */
	if (!test_and_set_bit(0, &o->gathering))
		hrtimer_start(&o->gather, ns_to_ktime(left), HRTIMER_MODE_REL);
	preempt_enable();
}

/* ---- a connection ---- */

static struct socket *exchange(struct hml_outbox *o, struct socket *sock)
{
	struct socket *old;

	for (;;) {
		local_bh_disable();
		if (!test_and_set_bit(0, &o->sending))
			break;
		local_bh_enable();
		usleep_range(10, 50);
	}
	old = o->sock;
	o->sock = sock;
	clear_bit_unlock(0, &o->sending);
	local_bh_enable();
	return old;
}

/* A new connection: what was in the ring is lost. Packets are taken once it is open. */
void hml_outbox_begin(struct hml_peer *p, struct socket *sock)
{
	struct hml_outbox *o = &p->out;
	/* The last one may still send again what it was given. */
	u64 first = hml_departures_fresh(o->head);
	u64 base = hml_departures_reclaim(&o->ring, first);

	hml_lock(&o->lock);
	o->open = false;
	o->ring.base = base;
	WRITE_ONCE(o->head, first);
	WRITE_ONCE(o->tail, first);
	o->moved = ktime_get_ns();
	o->taken = 0;
	/* Of a peer that is deleted and made again, too, each connection is newer. */
	o->tx.epoch = atomic_inc_return(&p->tcp->epochs);
	hml_wire_tx_begin(&o->tx);
	hml_unlock(&o->lock);
	exchange(o, sock);
}

void hml_outbox_open(struct hml_peer *p)
{
	hml_lock(&p->out.lock);
	p->out.open = true;
	hml_unlock(&p->out.lock);
}

/* No packet is taken any more, nor does anybody touch the socket. */
void hml_outbox_end(struct hml_peer *p)
{
	struct hml_outbox *o = &p->out;
	bool wanted;

	hml_lock(&o->lock);
	o->open = false;
	wanted = o->wanted;
	WRITE_ONCE(o->wanted, false);
	hml_unlock(&o->lock);
	exchange(o, NULL);
	/* What waits for room is lost now. */
	if (wanted)
		hml_engine_room(p->tcp->device);
}
