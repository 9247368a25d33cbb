/* SPDX-License-Identifier: GPL-2.0-only */
/* Of model.c: datagrams: one at a time, others are dropped. */
#ifndef MODEL_DATAGRAM_H
#define MODEL_DATAGRAM_H

#include "model_pair.h"

static void datagram_told(struct h_datagram_receiver *r, void *arg)
{
	struct datagram *d = arg;

	(void)r;
	d->told = true;
}

static const char *datagram_open(struct pair *p, uint64_t *random)
{
	struct datagram *d = &p->datagram;
	struct h_datagram_attr attr = { .length = any_size(random) };
	struct h_seed seed;
	int err;

	d->length = attr.length;
	d->requests = below(random, 100);
	err = h_datagram_receiver_create(p->world->to, &attr, &d->r);
	if (!err)
		err = h_datagram_receiver_create(p->world->from, &attr,
						 &d->replies);
	if (err)
		return complain("no receiver: %d", err);
	h_datagram_receiver_seed(d->r, &seed);
	err = h_datagram_resolve(&seed, &d->to);
	if (err)
		return complain("no address: %d", err);
	h_datagram_receiver_address(d->replies, &d->from);
	if (!p->world->threads)
		h_datagram_receiver_on_ready(d->r, datagram_told, d);
	return NULL;
}

/* What happens to a datagram has happened before anything else does. */
static const char *datagram_outcome(struct pair *p)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct datagram *d = &p->datagram;
	struct h_datagram_stats stats;

	while (ht_now_ns() < end) {
		h_manager_dispatch(p->world->to);
		if (h_datagram_receiver_stats(d->r, &stats))
			return "no counters";
		if (stats.dropped > d->dropped || stats.malformed)
			return "dropped, but it was ready";
		if (d->phase == READY ? d->told : stats.dropped == d->dropped)
			return NULL;
	}
	return d->phase == READY ? "it did not arrive" : "it was not dropped";
}

static const char *datagram_send(struct pair *p, uint64_t *random)
{
	struct datagram *d = &p->datagram;
	size_t at = below(random, (uint32_t)d->length + 1);
	size_t n = below(random, 8) ?
		   at_most(any_size(random), d->length - at) : 0;
	bool reply = below(random, 2);
	uint64_t number = d->number + 1;
	unsigned char *data;
	const char *wrong;
	int ret;

	/* Dropped are packets: so it is known how many. */
	if (d->phase != READY)
		n = at_most(n, p->world->packet);
	data = place_for(p, n, below(random, 2));
	fill(data, n, pattern_of(p, number));
	ret = h_datagram_send(p->world->from, &d->to, at, data, n,
			      reply ? &d->from : NULL, H_NOWAIT);
	done_with(p, data, n);
	if (ret)
		return later(ret) ? NULL : complain("send of %zu: %d", n, ret);
	d->number = number;
	if (d->phase != READY)
		d->dropped++;
	else
		d->told = false;
	wrong = datagram_outcome(p);
	if (wrong || d->phase != READY)
		return wrong;
	d->phase = HERE;
	d->of_here = number;
	d->here = (struct h_datagram) {
		.offset = at, .length = n, .has_reply = reply,
	};
	return NULL;
}

static const char *datagram_check(struct pair *p)
{
	struct datagram *d = &p->datagram;

	return check(d->here.data, d->here.length, pattern_of(p, d->of_here));
}

static const char *datagram_receive(struct pair *p)
{
	struct datagram *d = &p->datagram;
	struct h_datagram got;
	int ret;

	ret = h_datagram_receive(d->r, &got, H_NOWAIT);
	if (ret != (d->phase == HERE ? 0 : -EAGAIN))
		return complain("receive: %d", ret);
	if (ret)
		return NULL;
	if (got.offset != d->here.offset || got.length != d->here.length ||
	    got.has_reply != d->here.has_reply)
		return "another one was sent";
	if (got.has_reply && (got.reply.ticket.key != d->from.ticket.key ||
			      got.reply.ticket.length != d->from.ticket.length))
		return "an answer would go elsewhere";
	d->here.data = got.data;
	d->phase = HELD;
	d->received++;
	return datagram_check(p);
}

static const char *datagram_release(struct pair *p)
{
	struct datagram *d = &p->datagram;
	const char *wrong = NULL;

	/* What came in the meantime is not in there. */
	if (d->phase == HELD) {
		wrong = datagram_check(p);
		d->phase = READY;
	}
	h_datagram_release(d->r);
	return wrong;
}

static const char *datagram_rekey(struct pair *p)
{
	struct datagram *d = &p->datagram;
	struct h_seed seed;
	int err;

	/* What is there keeps the old key: others do not count as dropped. */
	if (d->phase != READY)
		return NULL;
	err = h_datagram_rekey(d->r, &seed);
	if (!err)
		err = h_datagram_resolve(&seed, &d->to);
	return err ? complain("rekey: %d", err) : NULL;
}

static const char *datagram_step(struct pair *p, uint64_t *random)
{
	uint32_t what = below(random, 100);

	if (what < 50)
		return datagram_send(p, random);
	if (what < 75)
		return datagram_receive(p);
	if (what < 98)
		return datagram_release(p);
	return datagram_rekey(p);
}

static const char *datagram_finish(struct pair *p, uint64_t *random)
{
	struct datagram *d = &p->datagram;
	struct h_datagram_stats stats;
	const char *wrong;

	(void)random;
	wrong = datagram_receive(p);
	if (!wrong)
		wrong = datagram_release(p);
	if (!wrong)
		wrong = datagram_receive(p);
	if (wrong)
		return wrong;
	if (h_datagram_receiver_stats(d->r, &stats))
		return "no counters";
	if (stats.received != d->received || stats.dropped != d->dropped ||
	    stats.malformed)
		return "wrong counters";
	return NULL;
}

/* Whoever asks waits for the answer, and so nothing is dropped. */
static const char *datagram_ask(struct pair *p, uint64_t *random)
{
	struct datagram *d = &p->datagram;
	struct h_datagram answer;
	const char *wrong = NULL;
	uint32_t i;
	int ret;

	for (i = 0; i < d->requests && !wrong; i++) {
		size_t n = 1 + below(random, (uint32_t)d->length);
		unsigned char *data = place_for(p, n, below(random, 2));

		fill(data, n, pattern_of(p, 2 * i));
		ret = h_datagram_request(d->replies, &d->to, data, n, &answer,
					 ht_patience_ns());
		done_with(p, data, n);
		if (ret)
			return complain("request %u: %d", i, ret);
		if (answer.length != n || answer.offset || answer.has_reply)
			wrong = "another answer";
		else
			wrong = check(answer.data, n, pattern_of(p, 2 * i + 1));
		h_datagram_release(d->replies);
	}
	if (wrong)
		return wrong;
	ret = h_datagram_send(p->world->from, &d->to, 0, NULL, 0, NULL,
			      ht_patience_ns());
	return ret ? complain("the last one: %d", ret) : NULL;
}

static const char *datagram_answer(struct pair *p, uint64_t *random)
{
	struct datagram *d = &p->datagram;
	unsigned char *data = malloc(d->length);
	const char *wrong = NULL;
	struct h_datagram got;
	uint32_t i;
	int ret;

	(void)random;
	for (i = 0; i <= d->requests && !wrong; i++) {
		ret = h_datagram_receive(d->r, &got, ht_patience_ns());
		if (ret)
			wrong = complain("request %u: %d", i, ret);
		else if (got.has_reply != (i < d->requests))
			wrong = "too many or too few";
		else
			wrong = check(got.data, got.length,
				      pattern_of(p, 2 * i));
		if (wrong)
			break;
		h_datagram_release(d->r);
		if (!got.has_reply)
			break;
		fill(data, got.length, pattern_of(p, 2 * i + 1));
		ret = h_datagram_send(p->world->to, &got.reply, 0, data,
				      got.length, NULL, ht_patience_ns());
		if (ret)
			wrong = complain("answer %u: %d", i, ret);
	}
	free(data);
	return wrong;
}

static const char *datagram_judge(struct pair *p)
{
	struct h_datagram_stats stats;

	if (h_datagram_receiver_stats(p->datagram.r, &stats))
		return "no counters";
	return stats.dropped || stats.malformed ? "one was dropped" : NULL;
}

static const char *datagram_close(struct pair *p)
{
	settle(p);
	if (h_datagram_receiver_destroy(p->datagram.r) ||
	    h_datagram_receiver_destroy(p->datagram.replies))
		return "a receiver that stays";
	return NULL;
}

#endif /* MODEL_DATAGRAM_H */
