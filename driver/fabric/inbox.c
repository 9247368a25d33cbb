// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames that come from a peer. Each header is copied once, into memory that the peer cannot
 * change, and read there; a payload goes to where it belongs, once the header has been found good.
 * Receiving waits for nothing, and sends nothing: what a frame is to be answered with is noted, a
 * bounded number of bits for each peer, and sent when there is room.
 */
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/tcp.h>

#include "hml.h"
#include "fabric/peer.h"
#include "locked.h"
#include "trace.h"

#define BRIEF_BYTES	SZ_4K	/* read at most where they come */

static void init_user(struct hml_far_user *u, struct hml_peer *p, u32 uid)
{
	u->peer = p;
	u->sender.stats = &p->in.stats;
	u->sender.guard.bucket = &u->bucket;
	u->sender.far = true;
	u->sender.uid = uid;
}

int hml_inbox_init(struct hml_peer *p)
{
	struct hml_inbox *in = &p->in;

	init_user(&in->others, p, U32_MAX);
	return hml_arrivals_init(&in->come, p->nic.packet_size);
}

void hml_inbox_free(struct hml_inbox *in)
{
	struct hml_far_user *u;
	unsigned long uid;

	xa_for_each(&in->users, uid, u)
		kfree(u);
	xa_destroy(&in->users);
	hml_arrivals_free(&in->come);
}

void hml_inbox_begin(struct hml_peer *p)
{
	hml_arrivals_begin(&p->in.come);
	p->in.heard = ktime_get_ns();
	p->in.failed = 0;
	p->in.verdict = 0;
	WRITE_ONCE(p->in.pong, false);
	hml_wire_rx_begin(&p->in.rx);
}

/* Nobody reads for the peer any more, or finds it: its counters stay the NIC's. */
void hml_inbox_retire(struct hml_peer *p)
{
	struct hml_device *d = p->tcp->device;

	hml_lock(&d->termini_lock);
	hml_stats_add(hml_retired(d), &p->in.stats);
	hml_unlock(&d->termini_lock);
}

static const u32 reasons[HML_WIRE_VERDICTS] = {
	[HML_WIRE_NO_VERSION] = HML_PEER_OTHER_VERSION,
	[HML_WIRE_OTHER_FABRIC] = HML_PEER_OTHER_FABRIC,
	[HML_WIRE_SAME_HOST] = HML_PEER_SAME_HOST,
	[HML_WIRE_OTHER_HOST] = HML_PEER_OTHER_HOST,
	[HML_WIRE_OTHER_PACKET] = HML_PEER_OTHER_SIZE,
};

/* @type: as the frame has it, whatever that means */
static void refuse(struct hml_peer *p, u32 verdict, u8 type)
{
	u32 reason = verdict < HML_WIRE_VERDICTS ? reasons[verdict] : 0;

	trace_hamlyn_peer_refuse(&p->tcp->device->nic, p->attr.host, verdict, type);
	hml_count(&p->in.refused, 1);
	/* @life looks at both at any time. */
	WRITE_ONCE(p->in.verdict, verdict);
	WRITE_ONCE(p->in.failed, reason ?: HML_PEER_NONSENSE);
	hml_peer_fail(p, p->in.failed);
}

/* ---- packets ---- */

/*
 * The user that a packet claims to be from. A host may invent as many as it likes: so many are
 * remembered each by itself, and all others share what one may guess.
 */
static struct hml_far_user *far_user(struct hml_peer *p, u32 uid)
{
	struct hml_inbox *in = &p->in;
	struct hml_far_user *u = xa_load(&in->users, uid);

	if (likely(u))
		return u;
	if (in->user_count == HML_FAR_USERS)
		return &in->others;
	u = kzalloc(sizeof(*u), GFP_KERNEL | __GFP_NOWARN);
	if (!u)
		return &in->others;
	init_user(u, p, uid);
	if (xa_is_err(xa_store(&in->users, uid, u, GFP_KERNEL | __GFP_NOWARN))) {
		kfree(u);
		return &in->others;
	}
	in->user_count++;
	return u;
}

/* One that guesses is not looked at, and stops nobody else's packets. */
static bool held_back(struct hml_peer *p, struct hml_far_user *u)
{
	const struct hml_nic *nic = &p->tcp->device->nic;

	if (likely(!u->sender.guard.until) || !hml_guard_paused(nic, &u->sender.guard))
		return false;
	hml_count(&p->in.dropped, 1);
	return true;
}

static void receive(struct hml_peer *p, const struct hamlyn_packet *h,
		    const struct hml_payload *payload, struct hml_sender *sender)
{
	struct hml_nic *nic = &p->tcp->device->nic;

	if (likely(hml_link_up(nic))) {
		hml_rx(nic, h, payload, sender);
	} else {
		sender->stats->rejects[HAMLYN_REJECT_DOWN]++;
		hml_port_trace_down(nic, h, sender);
	}
}

/**
 * struct data - what a frame of packets says
 * @h: the packet's header
 * @payload: its bytes, once the reader has found them
 * @piece: for @payload
 * @user: of the other host, as that says
 */
struct data {
	struct hamlyn_packet h;
	struct hml_payload payload;
	struct hml_piece piece;
	u32 user;
};

static u32 unpack_data(struct hml_peer *p, const u8 *headers, struct data *d)
{
	struct hml_wire_origin origin;
	u32 verdict;

	d->payload = (struct hml_payload) {};
	verdict = hml_wire_unpack_data(headers, &p->in.frame, &d->h, &d->payload.meta, &origin);
	if (verdict)
		return verdict;
	d->h.host = p->tcp->device->nic.host;
	d->h.source = p->attr.host;
	d->user = origin.user;
	return HML_WIRE_OK;
}

/* @at: where its payload is */
static struct hml_sender *ready_data(struct hml_peer *p, struct data *d, struct hml_far_user *u,
				     u32 at)
{
	/* Each packet is a guess by itself: whose message it is part of is the sender's word. */
	u->sender.guessed = false;
	u->sender.unreadable = false;
	u->sender.uid = d->user;
	hml_arrivals_payload(&p->in.come, at, d->h.length, &d->piece, &d->payload);
	return &u->sender;
}

/* @at: where its payload is */
static u32 take_data(struct hml_peer *p, const u8 *headers, u32 at)
{
	struct hml_sender *sender;
	struct hml_far_user *u;
	struct data d;
	u32 verdict;

	verdict = unpack_data(p, headers, &d);
	if (verdict)
		return verdict;
	hml_count(&p->in.packets, 1);
	u = far_user(p, d.user);
	if (held_back(p, u)) {
		trace_hamlyn_peer_drop(&p->tcp->device->nic, p->attr.host, d.h.slot, d.user);
		return HML_WIRE_OK;
	}
	sender = ready_data(p, &d, u, at);
	hml_notify_begin();
	receive(p, &d.h, &d.payload, sender);
	hml_notify_end();
	/* This fabric loses nothing: who has sent it is to be told. */
	return unlikely(sender->unreadable) ? HML_WIRE_BAD_LENGTH : HML_WIRE_OK;
}

/* ---- other frames ---- */

static u32 take_hello(struct hml_peer *p, const u8 *headers)
{
	struct hml_wire_hello theirs, ours;
	u32 verdict;

	verdict = hml_wire_unpack_hello(headers, &p->in.frame, &theirs);
	if (verdict)
		return verdict;
	hml_tcp_hello(p->tcp, &ours);
	verdict = hml_wire_check_hello(&theirs, &ours, p->attr.host);
	if (!verdict)
		verdict = hml_wire_rx_hello(&p->in.rx, &p->in.frame, &theirs);
	if (verdict)
		return verdict;
	WRITE_ONCE(p->state, HML_PEER_UP);
	hml_far_up(&p->far);
	hml_calls_up(&p->names, theirs.features & ours.features & HML_WIRE_NAMES);
	hml_outbox_open(p);
	/* To tell of it takes memory and time: the reader goes on. */
	mod_delayed_work(hml_wire_workers, &p->life, 0);
	return HML_WIRE_OK;
}

static u32 take_ping(struct hml_peer *p, const u8 *headers)
{
	u64 stamp;
	u32 verdict = hml_wire_unpack_ping(headers, &p->in.frame, &stamp);

	if (verdict)
		return verdict;
	WRITE_ONCE(p->in.stamp, stamp);
	WRITE_ONCE(p->in.pong, true);
	return HML_WIRE_OK;
}

static u32 take_pong(struct hml_peer *p, const u8 *headers)
{
	u64 stamp;

	return hml_wire_unpack_ping(headers, &p->in.frame, &stamp);
}

static u32 take_watch(struct hml_peer *p, const u8 *headers)
{
	struct hml_wire_watch w;
	u32 verdict = hml_wire_unpack_watch(headers, &p->in.frame, &w);

	if (!verdict && !hml_far_watch(&p->far, far_user(p, w.user), &w))
		verdict = HML_WIRE_BAD_LENGTH;
	return verdict;
}

static u32 take_unwatch(struct hml_peer *p, const u8 *headers)
{
	u32 id, verdict = hml_wire_unpack_unwatch(headers, &p->in.frame, &id);

	if (!verdict)
		hml_far_unwatch(&p->far, id);
	return verdict;
}

static u32 take_gone(struct hml_peer *p, const u8 *headers)
{
	u32 id, why, verdict = hml_wire_unpack_gone(headers, &p->in.frame, &id, &why);

	if (!verdict)
		hml_far_gone(&p->far, id);
	return verdict;
}

/* Whom a user of the other host is taken for here. */
static kuid_t taken_for(const struct hml_peer *p, u32 user)
{
	return hml_users_find(&p->attr.users, p->tcp->net->user_ns, user);
}

static u32 take_call(struct hml_peer *p, const u8 *headers)
{
	struct hml_wire_call call;
	u32 verdict = hml_wire_unpack_call(headers, &p->in.frame, &call);

	if (!verdict && !hml_calls_take(&p->names, &call, taken_for(p, call.user)))
		verdict = HML_WIRE_BAD_LENGTH;
	return verdict;
}

static u32 take_answer(struct hml_peer *p, const u8 *headers)
{
	struct hml_wire_answer answer;
	u32 verdict = hml_wire_unpack_answer(headers, &p->in.frame, &answer);
	kuid_t uid;

	if (verdict)
		return verdict;
	uid = answer.status ? INVALID_UID : taken_for(p, answer.user);
	hml_calls_answer(&p->names, &answer, uid);
	return HML_WIRE_OK;
}

static u32 take_cancel(struct hml_peer *p, const u8 *headers)
{
	u32 id, verdict = hml_wire_unpack_cancel(headers, &p->in.frame, &id);

	if (!verdict)
		hml_calls_cancel(&p->names, id);
	return verdict;
}

static u32 take_bye(struct hml_peer *p, const u8 *headers)
{
	u32 why, verdict = hml_wire_unpack_bye(headers, &p->in.frame, &why);

	if (verdict)
		return verdict;
	WRITE_ONCE(p->in.failed,
		   (why < HML_WIRE_VERDICTS ? reasons[why] : 0) ?: HML_PEER_CLOSED);
	hml_peer_fail(p, p->in.failed);
	return HML_WIRE_OK;
}

/* @at: where its payload is, if it has one */
static u32 take_frame(struct hml_peer *p, const u8 *headers, u32 at)
{
	struct hml_inbox *in = &p->in;
	u32 verdict;

	if (in->frame.type == HML_WIRE_HELLO)
		return in->rx.open ? HML_WIRE_BAD_ORDER : take_hello(p, headers);
	/* A peer that refuses us may say so at once. */
	if (in->frame.type == HML_WIRE_BYE)
		return take_bye(p, headers);
	verdict = hml_wire_rx_take(&in->rx, &in->frame);
	if (verdict)
		return verdict;
	switch (in->frame.type) {
	case HML_WIRE_DATA:
		return take_data(p, headers, at);
	case HML_WIRE_PING:
		return take_ping(p, headers);
	case HML_WIRE_PONG:
		return take_pong(p, headers);
	case HML_WIRE_WATCH:
		return take_watch(p, headers);
	case HML_WIRE_UNWATCH:
		return take_unwatch(p, headers);
	case HML_WIRE_GONE:
		return take_gone(p, headers);
	case HML_WIRE_CALL:
		return take_call(p, headers);
	case HML_WIRE_ANSWER:
		return take_answer(p, headers);
	case HML_WIRE_CANCEL:
		return take_cancel(p, headers);
	}
	return HML_WIRE_BAD_TYPE;
}

/* ---- bytes ---- */

/* The frame at @at. Return: its length, or 0 if it is not whole, or nonsense. */
static u32 take_next(struct hml_peer *p, u32 at)
{
	struct hml_inbox *in = &p->in;
	u32 have = in->come.mem->length - at, verdict, body;
	const u8 *header;
	u8 type;

	if (have < HML_WIRE_FRAME_BYTES)
		return 0;
	header = hml_arrivals_header(&in->come, at, HML_WIRE_FRAME_BYTES);
	type = ((const struct hml_wire_frame_layout *)header)->type[0];
	verdict = hml_wire_parse(header, have, p->nic.packet_size, &in->frame);
	if (!verdict && have < in->frame.total)
		return 0;
	if (!verdict) {
		at += HML_WIRE_FRAME_BYTES;
		body = in->frame.header_bytes;
		verdict = take_frame(p, hml_arrivals_header(&in->come, at, body), at + body);
	}
	if (!verdict)
		return in->frame.total;
	refuse(p, verdict, type);
	return 0;
}

static void take_frames(struct hml_peer *p)
{
	struct hml_inbox *in = &p->in;
	u32 done = 0, n;

	while (!in->failed) {
		n = take_next(p, done);
		if (!n)
			break;
		done += n;
		cond_resched();
	}
	hml_arrivals_done(&in->come, done);
}

static void heard(struct hml_inbox *in, u32 bytes)
{
	hml_count(&in->taken, bytes);
	WRITE_ONCE(in->heard, ktime_get_ns());
}

/* A softirq of another processor reads no longer than it takes to do the same here. */
static void begin_reading(struct hml_inbox *in)
{
	while (test_and_set_bit_lock(0, &in->reading))
		cpu_relax();
}

/**
 * hml_inbox_read() - read what has come
 * @p: the peer
 * @sk: its socket
 *
 * By a worker, and never two at a time for a peer.
 *
 * Return: true if there may be more.
 */
bool hml_inbox_read(struct hml_peer *p, struct sock *sk)
{
	struct hml_inbox *in = &p->in;
	bool more;
	u32 n;

	begin_reading(in);
	if (!in->failed) {
		n = hml_arrivals_read(&in->come, sk);
		if (n)
			heard(in, n);
		/* Also those that a softirq has left. */
		take_frames(p);
	}
	more = in->come.more && !in->failed;
	clear_bit_unlock(0, &in->reading);
	return more;
}

/* ---- in a softirq ---- */

/* For whom a packet is that came in a softirq, or NULL: more is to be done than to place it. */
static struct hml_far_user *known_user(struct hml_peer *p, u32 uid)
{
	struct hml_far_user *u = xa_load(&p->in.users, uid);

	return u && !u->sender.guard.until ? u : NULL;
}

/* Return: false if it is to be refused, which takes locks: nothing has been done. */
static bool place_briefly(struct hml_peer *p, struct data *d, struct hml_sender *sender)
{
	sender->brief = true;
	sender->left = false;
	hml_notify_begin();
	receive(p, &d->h, &d->payload, sender);
	hml_notify_end_brief();
	sender->brief = false;
	return !sender->left;
}

/* The frame at @at. Return: its length, or 0: it is not whole, or the worker's. */
static u32 take_briefly(struct hml_peer *p, u32 at)
{
	struct hml_inbox *in = &p->in;
	const struct hml_wire_rx rx = in->rx;
	u32 have = in->come.mem->length - at;
	struct hml_far_user *u;
	const u8 *header;
	struct data d;

	if (have < HML_WIRE_FRAME_BYTES)
		return 0;
	header = hml_arrivals_header(&in->come, at, HML_WIRE_FRAME_BYTES);
	if (hml_wire_parse(header, have, p->nic.packet_size, &in->frame) || have < in->frame.total)
		return 0;
	at += HML_WIRE_FRAME_BYTES;
	header = hml_arrivals_header(&in->come, at, in->frame.header_bytes);
	if (unpack_data(p, header, &d))
		return 0;
	u = known_user(p, d.user);
	if (!u || hml_wire_rx_take(&in->rx, &in->frame))
		return 0;
	if (!place_briefly(p, &d, ready_data(p, &d, u, at + in->frame.header_bytes))) {
		in->rx = rx;
		return 0;
	}
	hml_count(&in->packets, 1);
	return in->frame.total;
}

/* Return: whether the worker is to go on. */
static bool take_frames_briefly(struct hml_peer *p)
{
	struct hml_inbox *in = &p->in;
	u32 done = 0, n;

	do {
		n = take_briefly(p, done);
		done += n;
	} while (n);
	hml_arrivals_done(&in->come, done);
	return in->come.mem->length;
}

/**
 * hml_inbox_read_brief() - take a few short packets where they come, in a softirq
 * @p: the peer
 * @sk: its socket, with its lock
 *
 * So that no task has to run before whoever sleeps for them, or polls, sees them. What a packet
 * that is accepted needs is a bounded number of instructions, no memory and no lock. All else is
 * the worker's, in the order in which it came: other frames, packets to be refused, the first of a
 * user, and more bytes than a few. So is what comes while this processor is in a section.
 *
 * Return: true if the worker is to read.
 */
bool hml_inbox_read_brief(struct hml_peer *p, struct sock *sk)
{
	struct hml_inbox *in = &p->in;
	bool more;
	u32 n;

	/* Under PREEMPT_RT nothing of this is a softirq, and the socket's lock sleeps. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT) || sock_owned_by_user(sk) || hml_section_interrupted() ||
	    tcp_inq(sk) > BRIEF_BYTES || test_and_set_bit_lock(0, &in->reading))
		return true;
	n = in->failed ? 0 : hml_arrivals_read_locked(&in->come, sk);
	more = !n;
	if (n) {
		heard(in, n);
		more = take_frames_briefly(p) || in->come.more;
	}
	clear_bit_unlock(0, &in->reading);
	return more;
}
