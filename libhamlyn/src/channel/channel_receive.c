// SPDX-License-Identifier: MIT
/* Receiving messages. */
#include <stdlib.h>

#include "channel/channel.h"

#define TURN_NS		1000000	/* longer than a thread that receives goes on with something */
#define FIRST_ROOM	4096u	/* for a long message; it doubles */

/* ---- releasing ---- */

bool h__channel_holds(struct h_channel *ch, const struct h_message *m)
{
	uint32_t number = m->number;
	bool holds;

	if (!(m->is_long & 1))
		return h__stream_holds(ch->receiver, number);
	h__spin_lock(ch->manager, &ch->lock);
	holds = number < ch->longs_max && ch->longs[number].serial == m->serial;
	h__spin_unlock(ch->manager, &ch->lock);
	return holds;
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

static int released_before(struct h_channel *ch, int err)
{
	return h__refuse(ch->manager->dev, err, "a copy of this message was released before");
}

/* Long ones, requests, and those that no release changes. */
static __attribute__((noinline)) int release_other(struct h_channel *ch, struct h_message *m)
{
	int err = 0;

	if (m->held && m->held != ch->id)
		return h__refuse(ch->manager->dev, -EINVAL, "the message is of another channel");
	if (m->is_long & 1)
		err = release_long(ch, m);
	else if (m->held)
		err = h__stream_give_back(ch->receiver, m->number);
	if (err)
		return released_before(ch, err);
	if (h__message_id(m))
		h__channel_asked_released(ch, h__message_id(m));
	*m = (struct h_message) {};
	return 0;
}

int h_channel_release(struct h_channel *ch, struct h_message *m)
{
	int err;

	if (h__unlikely(m->held != ch->id || m->is_long))
		return release_other(ch, m);
	err = h__stream_give_back(ch->receiver, m->number);
	if (h__unlikely(err))
		return released_before(ch, err);
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
		if (deadline_ns == H_NOWAIT)
			return ret;
		if (h__unlikely(!ret))
			h__stream_answer_end(ch->receiver, deadline_ns);
		if (ret != -EAGAIN)
			return ret;
		again = again || h__stream_unwatched(ch->receiver);
		ret = h__go_on(&rounds, deadline_ns);
		if (ret)
			return ret;
		h__write_once(&ch->resting, true);
		ret = h__receiver_wait(r, seen, again, deadline_ns);
		h__write_once(&ch->resting, false);
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
		in->charged = in->room;
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

	/* What it says is still to come is its word: also that wraps around, or has a label. */
	if (!record->length || record->length > in->total - in->done ||
	    in->total - in->done - record->length != more)
		return -EPROTO;
	err = in->lent || in->drop ? 0 : more_room(ch, in->done + record->length);
	if (err)
		return err;
	if (!in->drop)
		memcpy(in->to + in->done, record->data, record->length);
	in->done += record->length;
	h__stream_give_back(ch->receiver, record->number);
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

/* What has come; the number of a request or reply is in the upper half of is_long. */
enum { PLAIN = 1, REQUEST, REPLY, NOTHING };

static int kind_of(uint32_t label)
{
	return !label ? PLAIN : label & H_LABEL_REPLY ? REPLY : REQUEST;
}

/*
 * What the caller gets costs no more than twice what came, so that it need not be charged: the
 * spare that it is in may have been made by a message far longer.
 */
static void settle_room(struct h_channel *ch)
{
	struct h_assembly *in = &ch->in;
	char *to;

	if (in->room / 2 > in->done) {
		to = realloc(in->to, in->done);
		if (to) {
			in->to = to;
			in->room = in->done;
		}
	}
	h__budget_give(ch->manager, in->charged);
	in->charged = 0;
}

static int hand_over(struct h_channel *ch, struct h_message *m)
{
	struct h_assembly *in = &ch->in;
	int kind = in->drop ? NOTHING : kind_of(in->label);

	if (!in->lent && !in->drop)
		settle_room(ch);
	*m = (struct h_message) { .data = in->to, .length = in->done };
	if (!in->lent && !in->drop) {
		m->held = ch->id;
		h__long_add(ch, m, in->to, in->room);
	}
	m->is_long |= (uint64_t)(in->label & H_LABEL_ID) << 32;
	*in = (struct h_assembly) {};
	return kind;
}

static int begin_refused(struct h_channel *ch, const struct h_record *record, uint64_t more,
			 struct h_message *m);

/*
 * 0, or what the first record of a message is, in @m, if that is all of it. No limit is as
 * large as H_MORE_LABELLED.
 */
static inline int begin(struct h_channel *ch, const struct h_record *record,
			uint64_t more, uint32_t label, struct h_message *m)
{
	if (h__unlikely(record->length > ch->limit || more > ch->limit - record->length))
		return begin_refused(ch, record, more, m);
	if (!more) {
		*m = (struct h_message) {
			.data = record->data,
			.length = record->length,
			.number = record->number,
			.is_long = (uint64_t)(label & H_LABEL_ID) << 32,
			.held = ch->id,
		};
		return kind_of(label);
	}
	ch->in.total = record->length + more;
	ch->in.label = label;
	ch->in.drop = label & H_LABEL_REPLY && !h__channel_awaits(ch, label & H_LABEL_ID);
	return 0;
}

/* It has a label, or is longer than we take. */
static __attribute__((noinline)) int
begin_refused(struct h_channel *ch, const struct h_record *record, uint64_t more,
	      struct h_message *m)
{
	uint32_t label;

	if (!(more & H_MORE_LABELLED))
		return -EPROTO;
	label = h__stream_label(ch->receiver, record->number);
	if (!(label & H_LABEL_ID))
		return -EPROTO;
	return begin(ch, record, more & ~H_MORE_LABELLED, label, m);
}

/* Where a message goes that is received by copying. */
struct target {
	char *data;
	size_t size;
};

static void lend(struct h_assembly *in, const struct target *t)
{
	if (!t || in->done || in->to || in->total > t->size || in->label & H_LABEL_REPLY)
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

/* What has come, in @m, or 0 at the end, or an errno. */
static int next_message(struct h_channel *ch, struct h_message *m,
			const struct target *t, unsigned int *rounds,
			int64_t deadline_ns)
{
	struct h_record record;
	uint64_t more;
	int ret;

	for (;;) {
		ret = next_record(ch, &record, &more, deadline_ns);
		if (ret <= 0)
			return ret || !ch->in.total ? ret : -EPROTO;
		if (!ch->in.total) {
			ret = begin(ch, &record, more, 0, m);
			if (ret)
				return ret;
			more &= ~H_MORE_LABELLED;
			lend(&ch->in, t);
		}
		ret = assemble(ch, &record, more);
		if (ret)
			return ret;
		if (!more)
			return hand_over(ch, m);
		ret = go_on(ch, rounds, deadline_ns);
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

/* ---- whose it is ---- */

/* Who receives, and what. */
struct wanted {
	uint32_t id;			/* the reply to this; 0: what is no reply */
	const struct target *t;
};

/* It is for somebody else, or nobody. */
static int put_away(struct h_channel *ch, int kind, struct h_message *m)
{
	uint32_t id = h__message_id(m);

	if (kind == REPLY)
		h__channel_answer(ch, id, m);
	else if (kind != NOTHING)
		return h__channel_store(ch, m);
	return 0;
}

static bool is_for(struct h_channel *ch, const struct wanted *w, int kind,
		   struct h_message *m)
{
	if (kind == REPLY && w->id == h__message_id(m) && h__channel_end_waiting(ch, w->id)) {
		m->is_long &= 1;
		return true;
	}
	if (kind == REQUEST && !w->id)
		h__channel_asked(ch, h__message_id(m));
	return kind <= REQUEST && !w->id;
}

/* Whoever it is for. reading held. */
static inline void count_received(struct h_channel *ch, size_t length)
{
	h__count(&ch->received, 1);
	h__count(&ch->received_bytes, length);
}

/* reading held. */
static inline __attribute__((always_inline)) int
receive_new(struct h_channel *ch, struct h_message *m, const struct wanted *w,
	    int64_t deadline_ns)
{
	unsigned int rounds = 0;
	int ret, err;

	for (;;) {
		ret = next_message(ch, m, w->t, &rounds, deadline_ns);
		if (h__likely(ret == PLAIN && !w->id)) {
			count_received(ch, m->length);
			return 1;
		}
		if (ret > 0)
			count_received(ch, m->length);
		err = take_back(ch);
		if (err)
			ret = err;
		if (ret <= 0 || is_for(ch, w, ret, m))
			return ret > 0 ? 1 : ret;
		ret = put_away(ch, ret, m);
		*m = (struct h_message) {};
		if (!ret)
			ret = w->id && h__channel_is_full(ch) ? -ENOBUFS :
			      go_on(ch, &rounds, deadline_ns);
		if (ret)
			return ret;
	}
}

/* What is no message: the end, or an errno, which may be for ever. reading held. */
static void note_end(struct h_channel *ch, const struct wanted *w, int ret)
{
	if (lasts(ret))
		h__write_once(&ch->failed, ret);
	/* A wait for a reply leaves it to h_channel_receive(), behind what was kept. */
	if (w->id && ch->failed)
		h__channel_tell(ch);
	else if (!w->id && (!ret || ch->failed))
		call_no_more(ch);
}

/* What has come before, and is the caller's: 1, or 0, or an errno. */
static __attribute__((noinline)) int
take_stored(struct h_channel *ch, struct h_message *m, const struct wanted *w)
{
	int ret;

	if (w->id)
		return h__channel_take_answer(ch, w->id, m);
	ret = h__channel_take_stored(ch, m, w->t ? w->t->size : SIZE_MAX);
	if (ret == 1 && h__message_id(m))
		h__channel_asked(ch, h__message_id(m));
	return ret;
}

/* reading held. -ENOBUFS if others have to take what is theirs first. */
static inline __attribute__((always_inline)) int
receive(struct h_channel *ch, struct h_message *m, const struct wanted *w,
	int64_t deadline_ns)
{
	int ret;

	if (h__unlikely(w->id || h__read_once(&ch->here))) {
		ret = take_stored(ch, m, w);
		if (!ret && w->id && h__channel_is_full(ch))
			ret = -ENOBUFS;
		if (ret)
			return ret;
	}
	ret = ch->failed;
	if (h__likely(!ret))
		ret = receive_new(ch, m, w, deadline_ns);
	if (h__likely(ret > 0) || ret == -ENOBUFS)
		return ret;
	note_end(ch, w, ret);
	return ret;
}

/* ---- turns ---- */

/*
 * How long the lock itself is waited for, which lends its holder our priority: not while the
 * holder waits for messages, for it may find ours then. If it begins to only now, nothing
 * wakes us before this time is over.
 */
static int64_t turn_until(const struct h_channel *ch, int64_t deadline_ns)
{
	int64_t until;

	if (deadline_ns == H_NOWAIT || h__read_once(&ch->resting))
		return H_NOWAIT;
	until = h__now_ns() + TURN_NS;
	return deadline_ns > 0 && deadline_ns < until ? deadline_ns : until;
}

/*
 * Kept from reading by another thread, which may wait for long, and find what is for this
 * one: 0 with reading held, 1 with a message, or an errno.
 */
static __attribute__((noinline)) int
wait_for_turn(struct h_channel *ch, struct h_message *m,
	      const struct wanted *w, int64_t deadline_ns)
{
	uint32_t *reading = &ch->receiver->reading;
	struct h_receiver *r = &ch->receiver->r;
	unsigned int rounds = 0;
	int ret;

	__atomic_fetch_add(&ch->waiting, 1, __ATOMIC_SEQ_CST);	/* B15 */
	for (;;) {
		uint32_t seen = h_receiver_events(r);

		ret = take_stored(ch, m, w);
		if (ret)
			break;
		if (!(w->id && h__channel_is_full(ch)) &&
		    !h__mutex_lock(ch->manager, reading, turn_until(ch, deadline_ns)))
			break;
		ret = deadline_ns == H_NOWAIT ? -EAGAIN : h__go_on(&rounds, deadline_ns);
		if (!ret)
			ret = h__receiver_wait(r, seen, false, deadline_ns);
		if (ret)
			break;
	}
	__atomic_fetch_sub(&ch->waiting, 1, __ATOMIC_RELAXED);
	return ret;
}

static int begin_reading(struct h_channel *ch, struct h_message *m,
			 const struct wanted *w, int64_t deadline_ns)
{
	if (h__likely(!h__mutex_lock(ch->manager, &ch->receiver->reading, H_NOWAIT)))
		return 0;
	return wait_for_turn(ch, m, w, deadline_ns);
}

static inline void end_reading(struct h_channel *ch)
{
	h__mutex_unlock(ch->manager, &ch->receiver->reading);
	h__full_barrier_behind_atomic();			/* B15 */
	if (h__unlikely(h__read_once(&ch->waiting)))
		h__receiver_wake(&ch->receiver->r);
}

int h__channel_receive_reply(struct h_channel *ch, uint32_t id, struct h_message *m,
			     int64_t deadline_ns)
{
	const struct wanted w = { .id = id };
	int ret;

	ret = begin_reading(ch, m, &w, deadline_ns);
	while (!ret) {
		ret = receive(ch, m, &w, deadline_ns);
		end_reading(ch);
		if (ret != -ENOBUFS)
			break;
		ret = wait_for_turn(ch, m, &w, deadline_ns);
	}
	return ret;
}

/* Without reading somebody else has it, and does the same. */
void h__channel_take_in(struct h_channel *ch)
{
	static const struct wanted nothing = { .id = UINT32_MAX };
	struct h_message m;
	int ret;

	if (h__mutex_lock(ch->manager, &ch->receiver->reading, H_NOWAIT))
		return;
	if (!ch->failed && !h__channel_is_full(ch)) {
		ret = receive_new(ch, &m, &nothing, H_NOWAIT);
		if (ret != -ENOBUFS)
			note_end(ch, &nothing, ret);
	}
	end_reading(ch);
}

/* ---- calls ---- */

/*
 * A message of one record that is here, while nothing else is: it needs neither a look at the
 * clock, nor what others need. reading held.
 */
static inline bool receive_at_once(struct h_channel *ch, struct h_message *m)
{
	struct h_record record;

	if (h__unlikely(h__read_once(&ch->first) || ch->in.total || h__read_once(&ch->rest)))
		return false;
	if (h__unlikely(!h__stream_next_plain(ch->receiver, ch->limit, &record)))
		return false;
	*m = (struct h_message) {
		.data = record.data,
		.length = record.length,
		.number = record.number,
		.held = ch->id,
	};
	count_received(ch, record.length);
	return true;
}

/*
 * Nor are they needed to know that there is nothing: receive_at_once() has taken what had arrived,
 * and found no message. Neither is there an end, nor anything due. reading held.
 */
static inline bool has_nothing(struct h_channel *ch)
{
	struct h_stream_receiver *r = ch->receiver;
	bool nothing;

	if (h__read_once(&ch->first) || ch->in.total || h__read_once(&ch->rest))
		return false;
	h__receiver_lock(&r->r);
	nothing = r->next == r->high && !r->over && !h__stream_what_is_due(r);
	h__receiver_unlock(&r->r);
	return nothing;
}

/* @turn: reading is held. */
static __attribute__((noinline)) int
receive_in_time(struct h_channel *ch, struct h_message *m, int64_t timeout_ns, bool turn)
{
	static const struct wanted any;
	int64_t deadline;
	int ret;

	*m = (struct h_message) {};
	if (turn && timeout_ns == H_NOWAIT && has_nothing(ch)) {
		end_reading(ch);
		return -EAGAIN;
	}
	deadline = h_deadline(timeout_ns);
	ret = turn ? 0 : begin_reading(ch, m, &any, deadline);
	if (h__unlikely(ret))
		return h__taken(ret);
	ret = receive(ch, m, &any, deadline);
	end_reading(ch);
	return h__taken(ret);
}

int h_channel_receive(struct h_channel *ch, struct h_message *m,
		      int64_t timeout_ns)
{
	bool turn = h__mutex_lock_free(ch->manager, &ch->receiver->reading);

	if (h__unlikely(!turn || !receive_at_once(ch, m)))
		return receive_in_time(ch, m, timeout_ns, turn);
	end_reading(ch);
	return 0;
}

/* reading held. */
static ssize_t receive_into(struct h_channel *ch, struct h_message *m,
			    const struct wanted *w, int64_t deadline_ns)
{
	int ret;

	ret = receive(ch, m, w, deadline_ns);
	if (ret <= 0)
		return h__taken(ret);
	if (m->length <= w->t->size)
		return 1;
	h__channel_keep(ch, m);
	return -EMSGSIZE;
}

ssize_t h_channel_receive_copy(struct h_channel *ch, void *data, size_t size,
			       int64_t timeout_ns)
{
	const struct target t = { .data = data, .size = size };
	const struct wanted w = { .t = &t };
	int64_t deadline = h_deadline(timeout_ns);
	struct h_message m = {};
	size_t length;
	ssize_t ret;

	ret = begin_reading(ch, &m, &w, deadline);
	if (!ret) {
		ret = receive_into(ch, &m, &w, deadline);
		end_reading(ch);
	}
	if (ret != 1)
		return ret;
	length = m.length;
	if (length && m.data != data)
		memcpy(data, m.data, length);
	h_channel_release(ch, &m);
	return (ssize_t)length;
}
