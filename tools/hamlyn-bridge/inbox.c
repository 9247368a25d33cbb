// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames that come from a peer. Receiving waits for nothing, and sends nothing: what a frame is to
 * be answered with is noted, and sent by the sender.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

#define AT_A_TIME	64	/* packets within one section: who rekeys waits for it (B8) */
#define READS		4	/* before the others have their turn */

/* Of packets, or of watches: each has its bucket, and its counters. */
struct far_user *far_user_begin(struct peer *p, struct far_user *u, u64 who,
				struct hml_stats *stats)
{
	u->who = who;
	u->guesser.known = p->known;
	u->sender.stats = stats;
	u->sender.guard.bucket = &u->guesser.bucket;
	u->sender.far = true;
	u->sender.uid = (u32)who;
	return u;
}

int inbox_init(struct peer *p)
{
	far_user_begin(p, &p->others, UINT64_MAX, p->stats);
	p->in.bytes = malloc(INBOX_BYTES);
	return p->in.bytes ? 0 : -ENOMEM;
}

void inbox_free(struct peer *p)
{
	struct far_user *u;
	u32 i;

	for (i = 0; i < USER_LISTS; i++)
		while ((u = p->users[i])) {
			p->users[i] = u->next;
			free(u);
		}
	free(p->in.bytes);
}

void inbox_begin(struct peer *p)
{
	p->in.have = 0;
	p->in.heard_ns = h__now_ns();
	p->in.asked_ns = p->in.heard_ns;
	hml_wire_rx_begin(&p->in.rx);
}

/* ---- packets ---- */

/*
 * The sender that a packet claims to be from. A host may invent as many as it likes: so many are
 * remembered each by itself, and all others share what one may guess.
 */
static struct far_user *far_user(struct peer *p, const struct hml_wire_origin *o)
{
	u64 who = (u64)o->sender << 32 | o->user;
	struct far_user **list = &p->users[list_of(p->bridge, who, USER_BITS)], *u;

	for (u = *list; u; u = u->next)
		if (u->who == who)
			return u;
	if (p->user_count == MOST_USERS)
		return &p->others;
	u = calloc(1, sizeof(*u));
	if (!u)
		return &p->others;
	far_user_begin(p, u, who, p->stats);
	u->next = *list;
	*list = u;
	p->user_count++;
	return u;
}

/* One that guesses is not looked at, and stops nobody else's packets. */
static bool held_back(struct peer *p, struct far_user *u)
{
	if (!u->sender.guard.until || !hml_guard_paused(&p->bridge->shm->nic, &u->sender.guard))
		return false;
	add(&p->in.dropped, 1);
	return true;
}

/* Within a section. */
static u32 take_data(struct peer *p, const struct hml_wire_frame *f, const u8 *headers)
{
	struct hml_nic *nic = &p->bridge->shm->nic;
	struct hml_payload payload = { .flat = headers + f->header_bytes };
	struct hml_wire_origin origin;
	struct hamlyn_packet h;
	struct far_user *u;
	u32 verdict = hml_wire_unpack_data(headers, f, &h, &payload.meta, &origin);

	if (verdict)
		return verdict;
	add(&p->in.packets, 1);
	h.host = nic->host;
	h.source = p->host;
	u = far_user(p, &origin);
	if (held_back(p, u))
		return HML_WIRE_OK;
	/* Each packet is a guess by itself: whose message it is part of is the sender's word. */
	u->sender.guessed = false;
	hml_tx_local(nic, nic, &h, &payload, &u->sender);
	return HML_WIRE_OK;
}

/* ---- other frames ---- */

/* The id is what a host shows that it belongs here: how much of it is right takes no time. */
static bool same_fabric(const u8 *a, const u8 *b)
{
	u8 differ = 0;
	u32 i;

	for (i = 0; i < HAMLYN_FABRIC_ID_BYTES; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

u32 inbox_hello(struct peer *p, struct hml_wire_rx *rx, const struct hml_wire_frame *f,
		const u8 *headers)
{
	struct hml_wire_hello theirs, ours;
	u32 verdict = hml_wire_unpack_hello(headers, f, &theirs);

	if (verdict)
		return verdict;
	life_hello(p->bridge, &ours);
	if (!same_fabric(theirs.fabric_id, ours.fabric_id))
		return HML_WIRE_OTHER_FABRIC;
	verdict = hml_wire_check_hello(&theirs, &ours, p->host);
	if (!verdict)
		verdict = hml_wire_rx_hello(rx, f, &theirs);
	if (!verdict)
		p->in.features = theirs.features & ours.features;
	return verdict;
}

static u32 take_hello(struct peer *p, const struct hml_wire_frame *f, const u8 *headers)
{
	u32 verdict = inbox_hello(p, &p->in.rx, f, headers);

	if (verdict)
		return verdict;
	/* Only now has whoever listens there accepted. */
	if (!origin_is_ours(p->fd))
		return HML_WIRE_OTHER_HOST;
	peer_up(p);
	return HML_WIRE_OK;
}

static u32 take_ping(struct peer *p, const struct hml_wire_frame *f, const u8 *headers)
{
	struct outbox *o = &p->out;
	u64 stamp;
	u32 verdict = hml_wire_unpack_ping(headers, f, &stamp);

	if (verdict || f->type == HML_WIRE_PONG)
		return verdict;
	pthread_mutex_lock(&o->lock);
	o->stamp = stamp;
	o->pong = true;
	pthread_mutex_unlock(&o->lock);
	sender_work(p->bridge);
	return HML_WIRE_OK;
}

static u32 take_watch(struct peer *p, const struct hml_wire_frame *f, const u8 *headers)
{
	struct hml_wire_watch w;
	u32 verdict = hml_wire_unpack_watch(headers, f, &w);

	if (!verdict && !watcher_watch(p, &w))
		verdict = HML_WIRE_BAD_LENGTH;
	return verdict;
}

static u32 take_unwatch(struct peer *p, const struct hml_wire_frame *f, const u8 *headers)
{
	u32 id, verdict = hml_wire_unpack_unwatch(headers, f, &id);

	if (!verdict && !watcher_unwatch(p, id))
		verdict = HML_WIRE_BAD_LENGTH;
	return verdict;
}

static u32 take_gone(struct peer *p, const struct hml_wire_frame *f, const u8 *headers)
{
	u32 id, why, verdict = hml_wire_unpack_gone(headers, f, &id, &why);

	if (!verdict && !watcher_gone(p, id))
		verdict = HML_WIRE_BAD_LENGTH;
	return verdict;
}

static u32 take_call(struct peer *p, const struct hml_wire_frame *f, const u8 *headers)
{
	struct hml_wire_call call;
	u32 verdict = hml_wire_unpack_call(headers, f, &call);

	if (!verdict && !names_call(p, &call))
		verdict = HML_WIRE_BAD_LENGTH;
	return verdict;
}

static u32 take_answer(struct peer *p, const struct hml_wire_frame *f, const u8 *headers)
{
	struct hml_wire_answer answer;
	u32 verdict = hml_wire_unpack_answer(headers, f, &answer);

	if (!verdict)
		names_answer(p, &answer);
	return verdict;
}

static u32 take_cancel(struct peer *p, const struct hml_wire_frame *f, const u8 *headers)
{
	u32 id, verdict = hml_wire_unpack_cancel(headers, f, &id);

	if (!verdict)
		names_cancel(p, id);
	return verdict;
}

static u32 take_other(struct peer *p, const struct hml_wire_frame *f, const u8 *headers)
{
	switch (f->type) {
	case HML_WIRE_PING:
	case HML_WIRE_PONG:
		return take_ping(p, f, headers);
	case HML_WIRE_WATCH:
		return take_watch(p, f, headers);
	case HML_WIRE_UNWATCH:
		return take_unwatch(p, f, headers);
	case HML_WIRE_GONE:
		return take_gone(p, f, headers);
	case HML_WIRE_CALL:
		return take_call(p, f, headers);
	case HML_WIRE_ANSWER:
		return take_answer(p, f, headers);
	case HML_WIRE_CANCEL:
		return take_cancel(p, f, headers);
	}
	return HML_WIRE_BAD_TYPE;
}

/* *bye: the peer ends the connection, and says why. */
static u32 take_frame(struct peer *p, const struct hml_wire_frame *f, const u8 *headers,
		      bool *bye, u32 *why)
{
	u32 verdict;

	if (f->type == HML_WIRE_HELLO)
		return p->in.rx.open ? HML_WIRE_BAD_ORDER : take_hello(p, f, headers);
	/* A peer that refuses us may say so at once. */
	if (f->type == HML_WIRE_BYE) {
		*bye = true;
		return hml_wire_unpack_bye(headers, f, why);
	}
	verdict = hml_wire_rx_take(&p->in.rx, f);
	if (verdict)
		return verdict;
	return f->type == HML_WIRE_DATA ? take_data(p, f, headers) : take_other(p, f, headers);
}

/* ---- bytes ---- */

/* Those that are whole, in one section. *done: bytes of them. */
static u32 take_some(struct peer *p, u32 *done, bool *bye, u32 *why)
{
	struct shm_sender *inside = p->bridge->terminus->priv;
	struct hml_wire_frame f;
	u32 verdict = HML_WIRE_OK, n;

	h__shm_hold(inside);
	for (n = 0; n < AT_A_TIME && !*bye; n++) {
		const u8 *bytes = p->in.bytes + *done;
		u32 have = p->in.have - *done;

		verdict = hml_wire_parse(bytes, have, SHM_PACKET_SIZE, &f);
		if (!verdict && have < f.total)
			verdict = HML_WIRE_SHORT;
		if (!verdict && f.type == HML_WIRE_HELLO)
			break;
		if (!verdict)
			verdict = take_frame(p, &f, bytes + HML_WIRE_FRAME_BYTES, bye, why);
		if (verdict)
			break;
		*done += f.total;
	}
	h__shm_release(inside);
	/* It reads files and tells people: nobody in the segment is to wait for that. */
	if (!verdict && !*bye && f.type == HML_WIRE_HELLO) {
		verdict = take_frame(p, &f, p->in.bytes + *done + HML_WIRE_FRAME_BYTES, bye, why);
		if (!verdict)
			*done += f.total;
	}
	return verdict;
}

/* What is left of the last frame stays, at the beginning. */
static bool take_frames(struct peer *p, u32 *why)
{
	u32 done = 0, verdict;
	bool bye = false;

	do
		verdict = take_some(p, &done, &bye, why);
	while (!verdict && !bye);
	p->in.have -= done;
	memmove(p->in.bytes, p->in.bytes + done, p->in.have);
	if (verdict == HML_WIRE_SHORT)
		return true;
	if (!bye || verdict)
		*why = verdict;
	add(&p->in.refused, verdict != HML_WIRE_OK);
	return false;
}

bool inbox_read(struct peer *p, u32 *verdict)
{
	struct inbox *in = &p->in;
	u32 n;

	for (n = 0; n < READS; n++) {
		u32 left = INBOX_BYTES - in->have;
		ssize_t got = recv(p->fd, in->bytes + in->have, left, MSG_DONTWAIT);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		*verdict = SHM_PEER_LOST;
		if (got <= 0)
			return false;
		in->have += (u32)got;
		add(&in->taken, (u64)got);
		in->heard_ns = h__now_ns();
		if (!take_frames(p, verdict))
			return false;
		if ((u32)got < left)
			return true;
	}
	return true;
}
