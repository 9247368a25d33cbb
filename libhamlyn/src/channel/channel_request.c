// SPDX-License-Identifier: MIT
/*
 * Requests on a channel, and messages that came for others than who has received them.
 *
 * A request and its reply carry a number, so that a reply belongs to one request, however
 * late it is: one that nobody waits for any more is dropped. All threads take turns to
 * receive (channel_receive.c). Who finds what is not for it puts it here: a reply with its
 * request, any other message in the order in which they came. It is copied out of the
 * buffer: those that wait must not keep the others from coming.
 */
#include <stdlib.h>

#include "channel/channel.h"

static void lock(struct h_channel *ch)
{
	h__spin_lock(ch->manager, &ch->lock);
}

static void unlock(struct h_channel *ch)
{
	h__spin_unlock(ch->manager, &ch->lock);
}

/* Locked. What must be told when it is not any more. */
static void count_here(struct h_channel *ch, int more)
{
	h__write_once(&ch->here, ch->here + (uint32_t)more);
}

/* What is here is something to be received: also for h_channel_on_ready(). */
void h__channel_tell(struct h_channel *ch)
{
	struct h_receiver *r = &ch->receiver->r;
	bool left;

	h_receiver_lock(r);
	left = h__read_once(&ch->here) || (h__read_once(&ch->failed) && !h__read_once(&ch->told));
	ch->receiver->left = left;
	h_receiver_unlock(r);
	if (left)
		h__receiver_look(r);
	h__full_barrier();					/* B15 */
	if (h__read_once(&ch->waiting))
		h__receiver_wake(r);
}

/* Where there is no memory it stays where it is. */
static void copy_out(struct h_channel *ch, struct h_message *m)
{
	uint64_t label = m->is_long & ~UINT64_C(1);
	void *heap;

	if (!m->held || m->is_long & 1 || h__longs_reserve(ch))
		return;
	heap = malloc(m->length ? m->length : 1);
	if (!heap)
		return;
	memcpy(heap, m->data, m->length);
	h__stream_give_back(ch->receiver, m->number);
	m->data = heap;
	h__long_add(ch, m, heap, m->length);
	m->is_long |= label;
}

/* ---- requests of ours ---- */

/* Locked. */
static struct h_request **find(struct h_channel *ch, uint32_t id)
{
	struct h_request **at = &ch->requests;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

static int add(struct h_channel *ch, uint32_t *id)
{
	struct h_request *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	lock(ch);
	if (ch->request_count >= H_MOST_REQUESTS) {
		unlock(ch);
		free(q);
		return -EBUSY;
	}
	do {
		ch->last_id = ch->last_id % H_LABEL_ID + 1;
	} while (*find(ch, ch->last_id));
	q->id = ch->last_id;
	q->next = ch->requests;
	ch->requests = q;
	ch->request_count++;
	*id = q->id;
	unlock(ch);
	return 0;
}

/* Locked. */
static struct h_request *take_out(struct h_channel *ch, struct h_request **at)
{
	struct h_request *q = *at;

	*at = q->next;
	ch->request_count--;
	if (q->answered)
		count_here(ch, -1);
	return q;
}

bool h__channel_awaits(struct h_channel *ch, uint32_t id)
{
	const struct h_request *q;
	bool awaits;

	lock(ch);
	q = *find(ch, id);
	awaits = q && !q->answered;
	unlock(ch);
	return awaits;
}

bool h__channel_end_waiting(struct h_channel *ch, uint32_t id)
{
	struct h_request **at, *q = NULL;
	bool awaited;

	lock(ch);
	at = find(ch, id);
	if (*at && !(*at)->answered)
		q = take_out(ch, at);
	unlock(ch);
	awaited = q;
	free(q);
	return awaited;
}

void h__channel_answer(struct h_channel *ch, uint32_t id, struct h_message *m)
{
	struct h_request *q = NULL;

	m->is_long &= 1;
	if (h__channel_awaits(ch, id))
		copy_out(ch, m);
	lock(ch);
	q = *find(ch, id);
	if (q && q->answered)
		q = NULL;
	if (q) {
		q->reply = *m;
		q->answered = true;
		count_here(ch, 1);
	}
	unlock(ch);
	if (q)
		h__channel_tell(ch);
	else
		h_channel_release(ch, m);
}

int h__channel_take_answer(struct h_channel *ch, uint32_t id, struct h_message *m)
{
	struct h_request **at, *q;
	int ret;

	lock(ch);
	at = find(ch, id);
	q = *at;
	ret = !q ? -EINVAL : q->answered;
	if (ret == 1)
		take_out(ch, at);
	unlock(ch);
	if (ret != 1)
		return ret;
	*m = q->reply;
	free(q);
	h__channel_tell(ch);
	return 1;
}

void h_channel_request_cancel(struct h_channel *ch, uint32_t id)
{
	struct h_request **at, *q = NULL;

	lock(ch);
	at = find(ch, id);
	if (*at)
		q = take_out(ch, at);
	unlock(ch);
	if (!q)
		return;
	if (q->answered) {
		h_channel_release(ch, &q->reply);
		h__channel_tell(ch);
	}
	free(q);
}

/* ---- messages that are not replies ---- */

int h__channel_store(struct h_channel *ch, struct h_message *m)
{
	struct h_stored *s = malloc(sizeof(*s));

	copy_out(ch, m);
	if (!s) {
		h_channel_release(ch, m);
		return -ENOMEM;
	}
	*s = (struct h_stored) { .message = *m };
	lock(ch);
	*ch->stored_tail = s;
	ch->stored_tail = &s->next;
	h__write_once(&ch->stored_bytes, ch->stored_bytes + sizeof(*s) + m->length);
	h__write_once(&ch->stored_count, ch->stored_count + 1);
	count_here(ch, 1);
	unlock(ch);
	h__channel_tell(ch);
	return 0;
}

void h__channel_keep(struct h_channel *ch, const struct h_message *m)
{
	/* Until it is received: a message that is sent meanwhile does not answer it. */
	if (h__message_id(m))
		h__channel_answered(ch, h__message_id(m));
	lock(ch);
	ch->kept = *m;
	count_here(ch, 1);
	unlock(ch);
	h__channel_tell(ch);
}

/* Locked. */
static struct h_stored *first_stored(struct h_channel *ch)
{
	struct h_stored *s = ch->stored;

	ch->stored = s->next;
	if (!ch->stored)
		ch->stored_tail = &ch->stored;
	h__write_once(&ch->stored_bytes, ch->stored_bytes - sizeof(*s) - s->message.length);
	h__write_once(&ch->stored_count, ch->stored_count - 1);
	return s;
}

int h__channel_take_stored(struct h_channel *ch, struct h_message *m, size_t most)
{
	struct h_stored *s = NULL;
	int ret = 1;

	lock(ch);
	if (!ch->kept.data && !ch->stored)
		ret = 0;
	else if ((ch->kept.data ? ch->kept.length : ch->stored->message.length) > most)
		ret = -EMSGSIZE;
	else if (!ch->kept.data)
		s = first_stored(ch);
	if (ret == 1) {
		*m = s ? s->message : ch->kept;
		if (!s)
			ch->kept = (struct h_message) {};
		count_here(ch, -1);
	}
	unlock(ch);
	if (ret != 1)
		return ret;
	free(s);
	h__channel_tell(ch);
	return 1;
}

static bool stores_most(struct h_channel *ch)
{
	size_t most = ch->limit > H_LEAST_STORED ? ch->limit : H_LEAST_STORED;

	return h__read_once(&ch->stored_bytes) >= most ||
	       h__read_once(&ch->stored_count) >= H_MOST_STORED;
}

/*
 * Not at the end: what is still to come is in the buffers, and a thread that waits for a
 * reply, and perhaps is the only one, has to find the end after it.
 */
bool h__channel_is_full(struct h_channel *ch)
{
	return h__unlikely(stores_most(ch)) && !h__stream_is_over(ch->receiver);
}

/* ---- requests of the other end's ---- */

/* Locked. */
static void asked_remove(struct h_channel *ch, uint32_t i)
{
	uint32_t n = ch->asked_count - 1;

	memmove(&ch->asked[i], &ch->asked[i + 1], (n - i) * sizeof(*ch->asked));
	h__write_once(&ch->asked_count, n);
}

/*
 * One that this thread gave back without having answered it, and then went on to the next,
 * will not be answered: what is sent next is not for it. One that was too long for the
 * caller comes again.
 */
void h__channel_asked(struct h_channel *ch, uint32_t id)
{
	pthread_t self = pthread_self();
	uint32_t i = 0;

	if (h__read_once(&ch->replies))
		return;
	lock(ch);
	while (i < ch->asked_count)
		if (ch->asked[i].id == id ||
		    (ch->asked[i].released && pthread_equal(ch->asked[i].thread, self)))
			asked_remove(ch, i);
		else
			i++;
	if (ch->asked_count == H_MOST_ASKED)
		asked_remove(ch, 0);
	if (!ch->replies) {
		ch->asked[ch->asked_count] = (struct h_asked) { .id = id, .thread = self };
		h__write_once(&ch->asked_count, ch->asked_count + 1);
	}
	unlock(ch);
}

/* The oldest that this thread has received; of another one only if there is none. */
uint32_t h__channel_unanswered(struct h_channel *ch)
{
	pthread_t self = pthread_self();
	uint32_t id = 0, i;

	if (h__likely(!h__read_once(&ch->asked_count)))
		return 0;
	lock(ch);
	if (ch->asked_count)
		id = ch->asked[0].id;
	for (i = 0; i < ch->asked_count; i++)
		if (pthread_equal(ch->asked[i].thread, self)) {
			id = ch->asked[i].id;
			break;
		}
	unlock(ch);
	return id;
}

/* Locked. Or asked_count. */
static uint32_t find_asked(const struct h_channel *ch, uint32_t id)
{
	uint32_t i = 0;

	while (i < ch->asked_count && ch->asked[i].id != id)
		i++;
	return i;
}

void h__channel_answered(struct h_channel *ch, uint32_t id)
{
	uint32_t i;

	lock(ch);
	i = find_asked(ch, id);
	if (i < ch->asked_count)
		asked_remove(ch, i);
	unlock(ch);
}

void h__channel_asked_released(struct h_channel *ch, uint32_t id)
{
	uint32_t i;

	if (!h__read_once(&ch->asked_count))
		return;
	lock(ch);
	i = find_asked(ch, id);
	if (i < ch->asked_count)
		ch->asked[i].released = true;
	unlock(ch);
}

void h_channel_reply_only(struct h_channel *ch)
{
	lock(ch);
	h__write_once(&ch->replies, true);
	h__write_once(&ch->asked_count, 0);
	unlock(ch);
}

int h_channel_is_request(const struct h_message *m)
{
	return h__message_id(m) != 0;
}

int h_channel_reply(struct h_channel *ch, const struct h_message *request, const void *data,
		    size_t length, int64_t timeout_ns)
{
	uint32_t id = h__message_id(request);

	if (!id)
		return h__refuse(ch->manager->dev, -EINVAL, "it is no request, or was released");
	if (request->held != ch->id)
		return h__refuse(ch->manager->dev, -EINVAL, "the request is of another channel");
	if (!h__read_once(&ch->replies))
		h_channel_reply_only(ch);
	return h__channel_send_labelled(ch, H_LABEL_REPLY | id, data, length,
					h_deadline(timeout_ns));
}

/* ---- asking ---- */

static int request_send(struct h_channel *ch, const void *data, size_t length, uint32_t *id,
			int64_t deadline_ns)
{
	int err = add(ch, id);

	if (!err)
		err = h__channel_send_request(ch, *id, data, length, deadline_ns);
	if (!err)
		return 0;
	if (*id)
		h_channel_request_cancel(ch, *id);
	*id = 0;
	return err;
}

int h_channel_request_send(struct h_channel *ch, const void *data, size_t length, uint32_t *id,
			   int64_t timeout_ns)
{
	*id = 0;
	return request_send(ch, data, length, id, h_deadline(timeout_ns));
}

static bool may_wait_again(int ret)
{
	return ret == -EAGAIN || ret == -ETIMEDOUT || ret == -EINTR;
}

static int request_wait(struct h_channel *ch, uint32_t id, struct h_message *reply,
			int64_t deadline_ns)
{
	int ret = id ? h__channel_receive_reply(ch, id, reply, deadline_ns) : -EINVAL;

	/* With a reply it was done when that was taken. */
	if (ret != 1 && !may_wait_again(ret))
		h_channel_request_cancel(ch, id);
	return ret;
}

int h_channel_request_wait(struct h_channel *ch, uint32_t id, struct h_message *reply,
			   int64_t timeout_ns)
{
	*reply = (struct h_message) {};
	return h__taken(request_wait(ch, id, reply, h_deadline(timeout_ns)));
}

/* The request has left: not what says that it has not. */
static int said_after_sending(int ret)
{
	switch (ret) {
	case -EAGAIN:
		return -ETIMEDOUT;
	case -EINTR:
		return -EINPROGRESS;
	case -ENOMEM:
		return -ENOBUFS;
	default:
		return ret;
	}
}

int h_channel_request(struct h_channel *ch, const void *data, size_t length,
		      struct h_message *reply, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	uint32_t id = 0;
	int ret;

	*reply = (struct h_message) {};
	ret = request_send(ch, data, length, &id, deadline);
	if (ret)
		return ret == -ETIMEDOUT ? -EAGAIN : ret;
	ret = request_wait(ch, id, reply, deadline);
	if (may_wait_again(ret))
		h_channel_request_cancel(ch, id);
	return h__taken(said_after_sending(ret));
}

void h__channel_requests_free(struct h_channel *ch)
{
	struct h_request *q;

	while ((q = ch->requests)) {
		ch->requests = q->next;
		free(q);
	}
	while (ch->stored)
		free(first_stored(ch));
}
