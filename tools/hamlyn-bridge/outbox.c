// SPDX-License-Identifier: GPL-2.0-only
/* Frames on their way to a peer: a ring of bytes, and what gives them to the socket. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bridge.h"

#define CONTROL_ROOM	4096	/* of the ring, that packets leave to other frames */
#define LEAST_TAKEN	4096	/* by a peer that does not stand still */

int outbox_init(struct outbox *o)
{
	pthread_mutex_init(&o->lock, NULL);
	o->fd = -1;
	o->ring = malloc(OUTBOX_BYTES);
	return o->ring ? 0 : -ENOMEM;
}

static void free_words(struct outbox *o, struct note *n)
{
	o->calls -= n->type == HML_WIRE_CALL;
	free(n->words);
	n->words = NULL;
}

static void forget_notes(struct outbox *o)
{
	for (; o->note_first < o->note_end; o->note_first++)
		free_words(o, &o->notes[o->note_first]);
	o->note_first = 0;
	o->note_end = 0;
}

void outbox_free(struct outbox *o)
{
	forget_notes(o);
	free(o->ring);
	free(o->notes);
}

/* ---- in: lock held ---- */

static u64 room(const struct outbox *o)
{
	return OUTBOX_BYTES - (o->tail - o->head);
}

/* One that was empty has not stood still until now. */
static void put_bytes(struct outbox *o, const void *from, u32 n)
{
	u32 at = (u32)(o->tail % OUTBOX_BYTES);
	u32 first = n < OUTBOX_BYTES - at ? n : OUTBOX_BYTES - at;

	if (o->head == o->tail)
		o->moved_ns = h__now_ns();
	memcpy(o->ring + at, from, first);
	memcpy(o->ring, (const u8 *)from + first, n - first);
	o->tail += n;
}

static u32 pack_call(struct outbox *o, u8 *to, const struct note *n)
{
	const struct words *w = n->words;
	const struct hml_wire_call call = {
		.id = n->watch.id,
		.user = w->user,
		.share = w->user,
		.name_length = w->name_length,
		.length = w->length,
		.name = w->name,
		.body = w->bytes,
	};

	return hml_wire_pack_call(&o->tx, to, &call);
}

static u32 pack_answer(struct outbox *o, u8 *to, const struct note *n)
{
	const struct words *w = n->words;
	const struct hml_wire_answer answer = {
		.id = n->watch.id,
		.status = n->why,
		.user = w ? w->user : 0,
		.length = w ? w->length : 0,
		.body = w ? w->bytes : NULL,
	};

	return hml_wire_pack_answer(&o->tx, to, &answer);
}

static u32 pack_note(struct outbox *o, u8 *to, const struct note *n)
{
	switch (n->type) {
	case HML_WIRE_CALL:
		return pack_call(o, to, n);
	case HML_WIRE_ANSWER:
		return pack_answer(o, to, n);
	case HML_WIRE_CANCEL:
		return hml_wire_pack_cancel(&o->tx, to, n->watch.id);
	case HML_WIRE_WATCH:
		return hml_wire_pack_watch(&o->tx, to, &n->watch);
	case HML_WIRE_UNWATCH:
		return hml_wire_pack_unwatch(&o->tx, to, n->watch.id);
	default:
		return hml_wire_pack_gone(&o->tx, to, n->watch.id, n->why);
	}
}

/* What the peer is to be told, as far as there is room. */
static void put_due(struct outbox *o)
{
	u8 frame[HML_WIRE_MOST_CONTROL];

	if (o->pong && room(o) >= sizeof(frame)) {
		put_bytes(o, frame, hml_wire_pack_pong(&o->tx, frame, o->stamp));
		o->pong = false;
	}
	if (o->ping && room(o) >= sizeof(frame)) {
		put_bytes(o, frame, hml_wire_pack_ping(&o->tx, frame, (u64)h__now_ns()));
		o->ping = false;
	}
	while (o->note_first < o->note_end && room(o) >= 2 * sizeof(frame)) {
		put_bytes(o, frame, pack_note(o, frame, &o->notes[o->note_first]));
		free_words(o, &o->notes[o->note_first]);
		o->note_first++;
	}
	if (o->note_first == o->note_end) {
		o->note_first = 0;
		o->note_end = 0;
	}
}

/*
 * A packet of the segment. @c: a copy, whose lengths were checked; @bytes: metadata and payload,
 * which may change: only their contents are used.
 */
enum put outbox_put(struct peer *p, const struct shm_ring_packet *c, const u8 *bytes, u32 sender)
{
	const struct hml_wire_origin origin = { .sender = sender, .user = p->bridge->uid };
	u32 length = hml_wire_data_bytes(&c->h);
	struct outbox *o = &p->out;
	u8 header[HML_WIRE_MOST_HEADER];
	enum put ret = PUT_DONE;

	pthread_mutex_lock(&o->lock);
	if (!length || !o->open || c->state != READ_ONCE(p->shared->state)) {
		o->lost++;
	} else if (room(o) < (u64)length + c->h.length + CONTROL_ROOM) {
		ret = PUT_FULL;
	} else {
		hml_wire_pack_data(&o->tx, header, &c->h, bytes, &origin);
		put_bytes(o, header, length);
		put_bytes(o, bytes + c->h.meta_length, c->h.length);
		o->packets++;
	}
	pthread_mutex_unlock(&o->lock);
	return ret;
}

static bool grow_notes(struct outbox *o)
{
	u32 n = o->note_room ? 2 * o->note_room : 64;
	struct note *notes;

	/* Those that were sent make room as well. */
	if (o->note_first) {
		o->note_end -= o->note_first;
		memmove(o->notes, o->notes + o->note_first, o->note_end * sizeof(*o->notes));
		o->note_first = 0;
		return true;
	}
	if (n > MOST_NOTES)
		return false;
	notes = realloc(o->notes, n * sizeof(*notes));
	if (!notes)
		return false;
	o->notes = notes;
	o->note_room = n;
	return true;
}

/*
 * For the connection of that @state: a later one knows nothing of it. Without memory, or with
 * MOST_NOTES that the peer has not taken, the connection ends. Its words are taken over. False: it
 * is not going to be sent.
 */
bool outbox_note(struct peer *p, u32 state, const struct note *note)
{
	struct outbox *o = &p->out;
	bool calls = note->type == HML_WIRE_CALL, ok = false;

	pthread_mutex_lock(&o->lock);
	/* Calls are our processes' doing: that they make many is no reason to end anything. */
	if (o->open && READ_ONCE(p->shared->state) == state &&
	    !(calls && o->calls == MOST_CALLS)) {
		ok = o->note_end < o->note_room || grow_notes(o);
		if (ok) {
			o->notes[o->note_end++] = *note;
			o->calls += calls;
		} else {
			atomic_store(&p->nonsense, true);
		}
	}
	pthread_mutex_unlock(&o->lock);
	if (!ok)
		free(note->words);
	return ok;
}

/* ---- out ---- */

static u32 ring_part(const struct outbox *o, struct iovec part[2])
{
	u32 at = (u32)(o->head % OUTBOX_BYTES), n = (u32)(o->tail - o->head);
	u32 first = n < OUTBOX_BYTES - at ? n : OUTBOX_BYTES - at;

	part[0] = (struct iovec) { o->ring + at, first };
	part[1] = (struct iovec) { o->ring, n - first };
	return n;
}

/* The receiver tells the sender when there is room again. */
static void wait_for_room(struct peer *p)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT, .data.u64 = p->number };

	p->out.full = true;
	p->out.stalls++;
	epoll_ctl(p->bridge->epoll, EPOLL_CTL_MOD, p->out.fd, &e);
}

/* Lock held. An error is the receiver's to find. Return: whether bytes have left. */
static bool give(struct peer *p)
{
	struct outbox *o = &p->out;
	struct iovec part[2];
	struct msghdr msg = { .msg_iov = part, .msg_iovlen = 2 };
	ssize_t sent;
	u32 n;

	put_due(o);
	n = ring_part(o, part);
	if (!n)
		return false;
	sent = sendmsg(o->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent <= 0) {
		if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS))
			wait_for_room(p);
		return false;
	}
	o->head += (u64)sent;
	o->bytes += (u64)sent;
	return true;
}

/* Return: whether there is room that was not there. */
bool outbox_flush(struct peer *p)
{
	struct outbox *o = &p->out;
	bool any = false;

	pthread_mutex_lock(&o->lock);
	while (o->open && !o->full && give(p))
		any = true;
	pthread_mutex_unlock(&o->lock);
	return any;
}

/* By its host, at least: the socket here says only now and then that it has room again. */
static u64 taken_by(const struct outbox *o)
{
	int left = 0;

	if (ioctl(o->fd, SIOCOUTQ, &left) || left < 0)
		left = 0;
	return o->head > (u64)left ? o->head - (u64)left : 0;
}

/*
 * Has it taken next to nothing, of what is ready for it, for too long? A byte now and then is
 * nothing: whoever sends to it waits, and may have other peers to send to.
 */
bool outbox_stalled(struct peer *p, int64_t now)
{
	struct outbox *o = &p->out;
	bool stalled;
	u64 taken;

	pthread_mutex_lock(&o->lock);
	taken = taken_by(o);
	if (o->head == o->tail || taken - o->taken >= LEAST_TAKEN) {
		o->taken = taken;
		o->moved_ns = now;
	}
	stalled = o->open && now - o->moved_ns > p->bridge->set.stall_ms * NS_PER_MS;
	pthread_mutex_unlock(&o->lock);
	return stalled;
}

/* ---- a connection ---- */

/* What was in the ring is lost. HELLO goes out at once, before anything else can. */
void outbox_begin(struct peer *p, int fd, const struct hml_wire_hello *hello)
{
	struct outbox *o = &p->out;
	u8 frame[HML_WIRE_MOST_CONTROL];
	u32 n;

	pthread_mutex_lock(&o->lock);
	o->fd = fd;
	o->open = false;
	o->full = false;
	o->ping = false;
	o->pong = false;
	o->head = 0;
	o->tail = 0;
	o->taken = 0;
	o->moved_ns = h__now_ns();
	forget_notes(o);
	hml_wire_tx_begin(&o->tx);
	n = hml_wire_pack_hello(&o->tx, frame, hello);
	/* There is room: nothing was sent before. If not, the other side says so. */
	if (send(fd, frame, n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)n)
		o->fd = -1;
	pthread_mutex_unlock(&o->lock);
}

void outbox_open(struct peer *p)
{
	pthread_mutex_lock(&p->out.lock);
	p->out.open = p->out.fd >= 0;
	pthread_mutex_unlock(&p->out.lock);
}

/* BYE, if it can be told without cutting a frame in two; nobody touches the socket any more. */
void outbox_end(struct peer *p, u32 verdict)
{
	struct outbox *o = &p->out;
	u8 frame[HML_WIRE_MOST_CONTROL];
	u32 n;

	pthread_mutex_lock(&o->lock);
	if (o->fd >= 0 && o->head == o->tail) {
		n = hml_wire_pack_bye(&o->tx, frame, verdict);
		if (send(o->fd, frame, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			o->full = true;
	}
	o->fd = -1;
	o->open = false;
	pthread_mutex_unlock(&o->lock);
}
