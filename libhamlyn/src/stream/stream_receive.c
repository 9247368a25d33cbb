// SPDX-License-Identifier: MIT
/* The receiving end of a stream: what is handed out, and given back. */
#include "stream/stream.h"

static struct h_stream_receiver *of(struct h_receiver *r)
{
	return (struct h_stream_receiver *)r;
}

/* Locked. 1 with a record, an end, or -EAGAIN. */
static int hand_out(struct h_stream_receiver *r, struct h_record *record,
		    uint64_t *more)
{
	const struct h_generation *g;
	uint32_t index;

	h__stream_pass_control(r);
	if (r->next == r->high)
		return r->broken ? -EPROTO : r->fin ? 0 :
		       r->gone ? -ECONNRESET : -EAGAIN;
	g = h__generation_of(r, r->next);
	index = h__generation_index(g, r->next);
	record->data = h__generation_data(g, index);
	record->length = g->arrivals[index].length;
	record->number = r->next;
	h__write_once(&r->next, r->next + 1);
	*more = g->arrivals[index].more;
	return 1;
}

int h__stream_next(struct h_stream_receiver *r, struct h_record *record,
		   uint64_t *more, int64_t deadline_ns)
{
	unsigned int rounds = 0;

	for (;;) {
		uint32_t seen = h_receiver_events(&r->r);
		unsigned int due;
		int ret;

		if (h__read_once(&r->next) == h__read_once(&r->high))
			h__manager_take(r->r.manager);
		h__receiver_lock(&r->r);
		ret = hand_out(r, record, more);
		/* A caller that holds many, and waits for more, has to let them come. */
		due = h__stream_what_is_due(r);
		h__receiver_unlock(&r->r);
		if (h__unlikely(due))
			h__stream_do_in_time(r, deadline_ns);
		if (ret != -EAGAIN)
			return ret;
		/* What came had no data, and the next one may have none. */
		ret = h__go_on(&rounds, deadline_ns);
		if (ret)
			return ret;
		ret = h__receiver_wait(&r->r, seen, h__stream_unwatched(r), deadline_ns);
		if (ret)
			return ret;
	}
}

bool h__stream_is_over(struct h_stream_receiver *r)
{
	bool over;

	h_receiver_lock(&r->r);
	over = r->fin || r->gone || r->broken;
	h_receiver_unlock(&r->r);
	return over;
}

int h_stream_receive(struct h_stream_receiver *r, struct h_record *record,
		     int64_t timeout_ns)
{
	uint64_t more;

	return h__taken(h__stream_next(r, record, &more, h_deadline(timeout_ns)));
}

void h_stream_release(struct h_stream_receiver *r,
		      const struct h_record *record)
{
	uint32_t end = record->number + 1;
	unsigned int due;

	h__receiver_lock(&r->r);
	/* Not what was released already, nor what was not handed out yet. */
	if (end - r->released <= r->next - r->released)
		while (r->released != end)
			h__stream_release_one(r);
	h__stream_pass_control(r);
	due = h__stream_what_is_due(r);
	h__receiver_unlock(&r->r);
	if (h__unlikely(due))
		h__stream_see_to(r, due);
}

/* Locked. What is for the library only is given back by nobody. */
static inline bool is_given_back(struct h_stream_receiver *r, uint32_t number)
{
	const struct h_stream_arrival *a = h__stream_arrival(r, number);

	return a->here == H_GIVEN_BACK || a->control;
}

/* Locked. Before or behind others. */
int h__stream_give_back_any(struct h_stream_receiver *r, uint32_t number)
{
	struct h_stream_arrival *a;
	int err = -EALREADY;

	if (number - r->released < r->next - r->released) {
		a = h__stream_arrival(r, number);
		if (a->here != H_GIVEN_BACK) {
			a->here = H_GIVEN_BACK;
			r->given_back++;
			err = 0;
		}
	}
	while (r->released != r->next && is_given_back(r, r->released))
		h__stream_release_one(r);
	h__stream_pass_control(r);
	return err;
}

bool h__stream_holds(struct h_stream_receiver *r, uint32_t number)
{
	bool holds;

	h__receiver_lock(&r->r);
	holds = number - r->released < r->next - r->released && !is_given_back(r, number);
	h__receiver_unlock(&r->r);
	return holds;
}

uint32_t h__stream_held(struct h_stream_receiver *r)
{
	uint32_t number, n = 0;

	h__receiver_lock(&r->r);
	for (number = r->released; number != r->next; number++)
		n += !is_given_back(r, number);
	h__receiver_unlock(&r->r);
	return n;
}

void h__stream_leave(struct h_stream_receiver *r, bool left)
{
	if (r->left == left)
		return;
	h_receiver_lock(&r->r);
	r->left = left;
	h_receiver_unlock(&r->r);
	/* For a moment there was nothing: it may have been taken off the list. */
	if (left)
		h__receiver_look(&r->r);
}

static ssize_t read_part(struct h_stream_receiver *r, char *data, size_t length,
			 int64_t deadline_ns)
{
	uint64_t more;
	size_t n;
	int ret;

	if (!r->part.length) {
		ret = h__stream_next(r, &r->part, &more, deadline_ns);
		if (ret <= 0)
			return h__taken(ret);
		r->part_done = 0;
	}
	n = r->part.length - r->part_done;
	if (n > length)
		n = length;
	memcpy(data, (const char *)r->part.data + r->part_done, n);
	r->part_done += n;
	if (r->part_done == r->part.length) {
		h_stream_release(r, &r->part);
		r->part.length = 0;
	}
	return (ssize_t)n;
}

ssize_t h_stream_receive_copy(struct h_stream_receiver *r, void *data, size_t length,
			      int64_t timeout_ns)
{
	const struct h_manager *m = r->r.manager;
	int64_t deadline = h_deadline(timeout_ns);
	ssize_t done = 0, n;

	n = h__mutex_lock(m, &r->reading, deadline);
	if (n)
		return n;
	do {
		n = read_part(r, (char *)data + done, length - (size_t)done,
			      done ? H_NOWAIT : deadline);
		if (n > 0)
			done += n;
	} while (n > 0 && (size_t)done < length);
	h__stream_leave(r, r->part.length);
	h__mutex_unlock(m, &r->reading);
	return done ? done : n;
}

static void call_ready(struct h_receiver *receiver, void *arg)
{
	struct h_stream_receiver *r = of(receiver);
	void (*ready)(struct h_stream_receiver *r, void *arg);

	h_receiver_lock(receiver);
	ready = r->ready;
	arg = r->ready_arg;
	h_receiver_unlock(receiver);
	if (ready)
		ready(r, arg);
}

void h_stream_receiver_on_ready(struct h_stream_receiver *r,
				void (*ready)(struct h_stream_receiver *receiver,
					      void *arg),
				void *arg)
{
	h_receiver_on_ready(&r->r, NULL, NULL);
	h_receiver_lock(&r->r);
	r->ready = ready;
	r->ready_arg = arg;
	h_receiver_unlock(&r->r);
	if (ready)
		h_receiver_on_ready(&r->r, call_ready, NULL);
}
