// SPDX-License-Identifier: MIT
/* Receiving messages. */
#include <stdlib.h>

#include "channel.h"

#define FIRST_ROOM	4096u	/* for a long message; it doubles */

/* ---- releasing ---- */

/* Channel locked. */
static void skip_done(struct h_channel *ch)
{
	while (ch->low != ch->handed && ch->done[ch->low & ch->done_mask])
		ch->done[ch->low++ & ch->done_mask] = 0;
}

/*
 * A stream takes records back in order, a channel in any: those that are given back
 * before older ones are marked.
 */
static int release_record(struct h_channel *ch, uint32_t number)
{
	struct h_record last = {};
	int err = -EALREADY;
	uint32_t low;

	h__spin_lock(ch->manager, &ch->lock);
	low = ch->low;
	if (number - low < ch->handed - low && !ch->done[number & ch->done_mask]) {
		ch->done[number & ch->done_mask] = 1;
		err = 0;
	}
	skip_done(ch);
	last.number = ch->low - 1;
	low = ch->low - low;
	h__spin_unlock(ch->manager, &ch->lock);
	if (low)
		h_stream_release(ch->receiver, &last);
	return err;
}

/*
 * Those that were for the library only count as released. There may be more of them, one
 * behind the other, than there are marks.
 */
static void take_record(struct h_channel *ch, uint32_t number)
{
	h__spin_lock(ch->manager, &ch->lock);
	while (ch->handed != number) {
		ch->done[ch->handed++ & ch->done_mask] = 1;
		skip_done(ch);
	}
	ch->handed++;
	h__spin_unlock(ch->manager, &ch->lock);
}

static int release_long(struct h_channel *ch, const struct h_message *m)
{
	size_t room;
	void *heap;
	int err;

	h__spin_lock(ch->manager, &ch->lock);
	err = h__long_take(ch, m, &heap, &room);
	h__spin_unlock(ch->manager, &ch->lock);
	if (!err)
		h__spare_give(ch->manager, heap, room);
	return err;
}

int h_channel_release(struct h_channel *ch, struct h_message *m)
{
	int err = 0;

	if (m->held && m->held != ch->id)
		return h__refuse(ch->manager->dev, -EINVAL, "the message is of another channel");
	if (m->is_long)
		err = release_long(ch, m);
	else if (m->held)
		err = release_record(ch, m->number);
	if (h__unlikely(err))
		return h__refuse(ch->manager->dev, err,
				 "a copy of this message was released before");
	*m = (struct h_message) {};
	return 0;
}

/* ---- records ---- */

/*
 * The next record. While the rest of a message of ours waits for buffers it is
 * looked after as well: the other end may need it before it says anything.
 */
static int next_record(struct h_channel *ch, struct h_record *record,
		       uint64_t *more, int64_t deadline_ns)
{
	struct h_receiver *r = &ch->receiver->r;
	unsigned int rounds = 0;

	for (;;) {
		uint32_t seen = h_receiver_events(r);
		bool again = h__load_acquire(&ch->rest);
		int ret;

		if (h__unlikely(again))
			h__channel_try_push(ch);
		ret = h__stream_next(ch->receiver, record, more, H_NOWAIT);
		if (ret != -EAGAIN || deadline_ns == H_NOWAIT)
			return ret;
		again = again || h__stream_unwatched(ch->receiver);
		ret = h__go_on(&rounds, deadline_ns);
		if (!ret)
			ret = h__receiver_wait(r, seen, again, deadline_ns);
		if (ret)
			return ret;
	}
}

/* ---- messages of several records ---- */

static int more_room(struct h_channel *ch, size_t need)
{
	struct h_assembly *in = &ch->in;
	size_t room;
	char *to;

	if (!in->to) {
		int err = h__longs_reserve(ch);

		if (err)
			return err;
		in->to = h__spare_take(ch->manager, &in->room);
	}
	if (need <= in->room)
		return 0;
	/* Of what is announced nothing is believed before it is there: twice as much at most. */
	room = 2 * need < FIRST_ROOM ? FIRST_ROOM : 2 * need;
	if (room > in->total)
		room = in->total;
	to = realloc(in->to, room);
	if (!to)
		return -ENOMEM;
	in->to = to;
	in->room = room;
	return 0;
}

static int assemble(struct h_channel *ch, const struct h_record *record,
		    uint64_t more)
{
	struct h_assembly *in = &ch->in;
	int err;

	/* What it says is still to come is its word: also that wraps around. */
	if (!record->length || record->length > in->total - in->done ||
	    in->total - in->done - record->length != more)
		return -EPROTO;
	err = in->lent ? 0 : more_room(ch, in->done + record->length);
	if (err)
		return err;
	memcpy(in->to + in->done, record->data, record->length);
	in->done += record->length;
	release_record(ch, record->number);
	return 0;
}

/* What was lent is the caller's again, who has only a part of a message. */
static int take_back(struct h_channel *ch)
{
	struct h_assembly *in = &ch->in;
	const char *from = in->to;
	int err;

	if (!in->lent)
		return 0;
	in->lent = false;
	in->to = NULL;
	in->room = 0;
	if (!in->done)
		return 0;
	err = more_room(ch, in->done);
	if (!err)
		memcpy(in->to, from, in->done);
	return err;
}

static void hand_over(struct h_channel *ch, struct h_message *m)
{
	struct h_assembly *in = &ch->in;

	*m = (struct h_message) { .data = in->to, .length = in->done };
	if (!in->lent) {
		m->held = ch->id;
		h__long_add(ch, m, in->to, in->room);
	}
	*in = (struct h_assembly) {};
}

/* 1 with the first record of a message in @m if that is all of it. */
static int begin(struct h_channel *ch, const struct h_record *record,
		 uint64_t more, struct h_message *m)
{
	if (record->length > ch->limit || more > ch->limit - record->length)
		return -EPROTO;
	if (!more) {
		*m = (struct h_message) {
			.data = record->data,
			.length = record->length,
			.number = record->number,
			.held = ch->id,
		};
		return 1;
	}
	ch->in.total = record->length + more;
	return 0;
}

/* Where a message goes that is received by copying. */
struct target {
	char *data;
	size_t size;
};

static void lend(struct h_assembly *in, const struct target *t)
{
	if (!t || in->done || in->to || in->total > t->size)
		return;
	in->to = t->data;
	in->lent = true;
}

/*
 * A part has come. The other end may send the next ones as fast as they are taken: who
 * does not wait gets what there was when he came.
 */
static int go_on(const struct h_channel *ch, unsigned int *rounds,
		 int64_t deadline_ns)
{
	const struct h_generation *gen = ch->receiver->gen;

	if (deadline_ns != H_NOWAIT)
		return h__go_on(rounds, deadline_ns);
	return ++*rounds < gen[0].entries + gen[1].entries ? 0 : -EAGAIN;
}

static int next_message(struct h_channel *ch, struct h_message *m,
			const struct target *t, int64_t deadline_ns)
{
	struct h_record record;
	unsigned int rounds = 0;
	uint64_t more;
	int ret;

	for (;;) {
		ret = next_record(ch, &record, &more, deadline_ns);
		if (ret <= 0)
			return ret || !ch->in.total ? ret : -EPROTO;
		take_record(ch, record.number);
		if (!ch->in.total) {
			ret = begin(ch, &record, more, m);
			if (ret)
				return ret;
			lend(&ch->in, t);
		}
		ret = assemble(ch, &record, more);
		if (ret)
			return ret;
		if (!more) {
			hand_over(ch, m);
			return 1;
		}
		ret = go_on(ch, &rounds, deadline_ns);
		if (ret)
			return ret;
	}
}

static bool lasts(int ret)
{
	return ret < 0 && ret != -EAGAIN && ret != -ETIMEDOUT && ret != -EINTR;
}

/* Who knows of the end need not be told of it again and again. */
static void call_no_more(struct h_channel *ch)
{
	if (ch->told)
		return;
	h__write_once(&ch->told, true);
	h_receiver_on_ready(&ch->receiver->r, NULL, NULL);
}

/* reading held. */
static int receive(struct h_channel *ch, struct h_message *m,
		   const struct target *t, int64_t deadline_ns)
{
	int ret, err;

	if (h__unlikely(ch->kept.data)) {
		*m = ch->kept;
		ch->kept = (struct h_message) {};
		h__stream_leave(ch->receiver, false);
		return 1;
	}
	if (h__unlikely(ch->failed))
		return ch->failed;
	ret = next_message(ch, m, t, deadline_ns);
	err = take_back(ch);
	if (err)
		ret = err;
	if (lasts(ret))
		ch->failed = ret;
	if (!ret || ch->failed)
		call_no_more(ch);
	return ret;
}

/* ---- calls ---- */

int h_channel_receive(struct h_channel *ch, struct h_message *m,
		      int64_t timeout_ns)
{
	uint32_t *reading = &ch->receiver->reading;
	int64_t deadline = h_deadline(timeout_ns);
	int ret;

	*m = (struct h_message) {};
	ret = h__mutex_lock(ch->manager, reading, deadline);
	if (ret)
		return ret;
	ret = receive(ch, m, NULL, deadline);
	h__mutex_unlock(ch->manager, reading);
	return ret;
}

/* reading held. */
static ssize_t receive_into(struct h_channel *ch, const struct target *t,
			    int64_t deadline_ns)
{
	struct h_message m = {};
	size_t length;
	int ret;

	ret = receive(ch, &m, t, deadline_ns);
	if (ret <= 0)
		return ret ? ret : -ENODATA;
	length = m.length;
	if (length > t->size) {
		ch->kept = m;
		h__stream_leave(ch->receiver, true);
		return -EMSGSIZE;
	}
	if (length && m.data != t->data)
		memcpy(t->data, m.data, length);
	h_channel_release(ch, &m);
	return (ssize_t)length;
}

ssize_t h_channel_recv(struct h_channel *ch, void *data, size_t size,
		       int64_t timeout_ns)
{
	uint32_t *reading = &ch->receiver->reading;
	const struct target t = { .data = data, .size = size };
	int64_t deadline = h_deadline(timeout_ns);
	ssize_t ret;

	ret = h__mutex_lock(ch->manager, reading, deadline);
	if (ret)
		return ret;
	ret = receive_into(ch, &t, deadline);
	h__mutex_unlock(ch->manager, reading);
	return ret;
}

int h_channel_request(struct h_channel *ch, const void *data, size_t length,
		      struct h_message *reply, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int err;

	*reply = (struct h_message) {};
	err = h_channel_send(ch, data, length, timeout_ns);
	if (err)
		return err;
	err = h_channel_receive(ch, reply, h__time_left(deadline));
	return err == -EAGAIN && deadline > 0 ? -ETIMEDOUT : err;
}
