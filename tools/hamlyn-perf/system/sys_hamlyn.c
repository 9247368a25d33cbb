// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hamlyn itself, three ways: messages into a message area with the receiver
 * polling its NQ, the same with the receiver in h_recv_block(), and fast mode
 * words that travel in the NQ entry.
 *
 * The sender manages the receiver's buffers: it knows the ring of buffers in
 * the receiver's message area, fills them in order, and learns from credits
 * (fast mode words to its own slot) which ones have been used up.
 */
#include "system/chan.h"
#include "base/clock.h"
#include "load/endpoint.h"

struct hamlyn_chan {
	struct chan chan;
	struct endpoint ep;
	struct h_ticket tickets[CHAN_MAX_COUNT];
	struct h_ticket fast;
	uint64_t sent;
	uint64_t acked;
	uint64_t taken;
	uint64_t granted;
	int64_t credit;		/* handle of the last one, or -1 */
	uint64_t word_out;
	uint64_t word_in;
};

static inline struct hamlyn_chan *to_hamlyn(struct chan *chan)
{
	return container_of(chan, struct hamlyn_chan, chan);
}

static struct chan *open_chan(struct side *side, const struct system *system)
{
	const struct endpoint_attr attr = {
		.bytes = chan_room(),
		.metas = CHAN_MAX_COUNT,
		.notifications = CHAN_MAX_COUNT * 2,
	};
	struct hamlyn_chan *h = calloc(1, sizeof(*h));

	if (!h) {
		fail("out of memory");
		return NULL;
	}
	if (endpoint_open(&h->ep, side->options, &attr) < 0) {
		free(h);
		return NULL;
	}
	if (endpoint_meet(&h->ep, side) < 0) {
		endpoint_close(&h->ep);
		free(h);
		return NULL;
	}
	h->credit = -1;
	h->chan.system = system;
	h->chan.side = side;
	h->chan.in = h_area_addr(h->ep.in);
	h->chan.out = h_area_addr(h->ep.out);
	h->fast = h->ep.peer;
	h->fast.meta_index = HAMLYN_META_FAST;
	return &h->chan;
}

static struct chan *hamlyn_open(struct side *side, void *stage)
{
	(void)stage;
	return open_chan(side, &sys_hamlyn);
}

static struct chan *block_open(struct side *side, void *stage)
{
	(void)stage;
	return open_chan(side, &sys_hamlyn_block);
}

static struct chan *fast_open(struct side *side, void *stage)
{
	(void)stage;
	return open_chan(side, &sys_fast);
}

static void hamlyn_close(struct chan *chan)
{
	struct hamlyn_chan *h = to_hamlyn(chan);

	endpoint_close(&h->ep);
	free(h);
}

/* A credit that came late would be taken for one of the next stream. */
static int hamlyn_settle(struct chan *chan)
{
	struct hamlyn_chan *h = to_hamlyn(chan);
	struct wait wait = WAIT("end of a send");

	while (h->credit >= 0 && !h_send_done(h->ep.terminus, h->credit))
		if (!wait_more(&wait))
			return -1;
	return 0;
}

static int hamlyn_prepare(struct chan *chan)
{
	struct hamlyn_chan *h = to_hamlyn(chan);
	struct hamlyn_nq_entry entry;
	uint32_t i;
	int n;

	/* Credits for the end of the last stream that nobody waited for. */
	for (i = 0; i < CHAN_MAX_COUNT * 2; i++) {
		n = h_recv(h->ep.nq, &entry);
		if (n < 0)
			return endpoint_recv_odd(&h->ep, n);
		if (!n)
			break;
	}
	h->sent = 0;
	h->acked = 0;
	h->taken = 0;
	h->granted = 0;
	for (i = 0; i < chan->count; i++) {
		h->tickets[i] = h->ep.peer;
		h->tickets[i].base = h->ep.peer.base + i * chan->stride;
		h->tickets[i].length = chan->size;
		h->tickets[i].meta_index = i;
	}
	return 0;
}

static int wait_credit(struct hamlyn_chan *h)
{
	struct hamlyn_nq_entry entry;

	if (endpoint_recv(&h->ep, &entry) < 0)
		return -1;
	if (!(entry.flags & HAMLYN_NQE_FAST) || entry.data <= h->acked ||
	    entry.data > h->sent)
		return fail("a credit for %llu messages after %llu of %llu",
			    (unsigned long long)entry.data,
			    (unsigned long long)h->acked,
			    (unsigned long long)h->sent);
	h->acked = entry.data;
	return 0;
}

static inline int flow_control(struct hamlyn_chan *h)
{
	if (!h->chan.stream || h->sent - h->acked < h->chan.count)
		return 0;
	return wait_credit(h);
}

static void *hamlyn_reserve(struct chan *chan)
{
	return flow_control(to_hamlyn(chan)) < 0 ? NULL : chan_out(chan);
}

static int hamlyn_commit(struct chan *chan)
{
	struct hamlyn_chan *h = to_hamlyn(chan);

	if (endpoint_send(&h->ep, &h->tickets[chan->out_pos], chan_out(chan),
			  chan->size) < 0)
		return -1;
	chan->out_pos = chan_next(chan, chan->out_pos);
	h->sent++;
	return 0;
}

static const void *arrived(struct chan *chan, const struct hamlyn_nq_entry *entry)
{
	const unsigned char *buffer = chan_in(chan);

	if (entry->index != chan->in_pos) {
		fail("buffer %u was filled before buffer %u: does this fabric reorder?",
		     entry->index, chan->in_pos);
		return NULL;
	}
	chan->in_pos = chan_next(chan, chan->in_pos);
	return buffer;
}

static const void *hamlyn_take(struct chan *chan)
{
	struct hamlyn_nq_entry entry;

	if (endpoint_recv(&to_hamlyn(chan)->ep, &entry) < 0)
		return NULL;
	return arrived(chan, &entry);
}

static const void *block_take(struct chan *chan)
{
	struct endpoint *ep = &to_hamlyn(chan)->ep;
	int64_t patience = (int64_t)(chan->side->options->timeout_s * NSEC_PER_SEC);
	struct hamlyn_nq_entry entry;
	int n = h_recv_block(ep->nq, &entry, patience);

	if (n == -ETIMEDOUT) {
		endpoint_silence(ep);
		return NULL;
	}
	if (n < 0) {
		endpoint_recv_odd(ep, n);
		return NULL;
	}
	return arrived(chan, &entry);
}

/* A credit for each quarter of the ring: rare, yet before the sender stops. */
static int hamlyn_release(struct chan *chan)
{
	struct hamlyn_chan *h = to_hamlyn(chan);

	if (!chan->stream || ++h->taken - h->granted < (chan->count + 3) / 4)
		return 0;
	h->granted = h->taken;
	h->credit = endpoint_send_word(&h->ep, &h->fast, h->granted);
	return h->credit < 0 ? -1 : 0;
}

static void *fast_reserve(struct chan *chan)
{
	struct hamlyn_chan *h = to_hamlyn(chan);

	return flow_control(h) < 0 ? NULL : &h->word_out;
}

static int fast_commit(struct chan *chan)
{
	struct hamlyn_chan *h = to_hamlyn(chan);

	h->sent++;
	return endpoint_send_word(&h->ep, &h->fast, h->word_out) < 0 ? -1 : 0;
}

static const void *fast_take(struct chan *chan)
{
	struct hamlyn_chan *h = to_hamlyn(chan);
	struct hamlyn_nq_entry entry;

	if (endpoint_recv(&h->ep, &entry) < 0)
		return NULL;
	h->word_in = entry.data;
	return &h->word_in;
}

const struct system sys_hamlyn = {
	.name = "hamlyn",
	.what = "Hamlyn messages, receiver polls its NQ",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.engines = true,
	.open = hamlyn_open,
	.close = hamlyn_close,
	.settle = hamlyn_settle,
	.prepare = hamlyn_prepare,
	.reserve = hamlyn_reserve,
	.commit = hamlyn_commit,
	.take = hamlyn_take,
	.release = hamlyn_release,
};

const struct system sys_hamlyn_block = {
	.name = "hamlyn-block",
	.what = "Hamlyn messages, receiver in h_recv_block()",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.engines = true,
	.open = block_open,
	.close = hamlyn_close,
	.settle = hamlyn_settle,
	.prepare = hamlyn_prepare,
	.reserve = hamlyn_reserve,
	.commit = hamlyn_commit,
	.take = block_take,
	.release = hamlyn_release,
};

const struct system sys_fast = {
	.name = "fast",
	.what = "Hamlyn fast mode: the 8-byte word travels in the NQ entry",
	.tests = 1 << TEST_LAT | 1 << TEST_RATE,
	.only_size = sizeof(uint64_t),
	.engines = true,
	.open = fast_open,
	.close = hamlyn_close,
	.settle = hamlyn_settle,
	.prepare = hamlyn_prepare,
	.reserve = fast_reserve,
	.commit = fast_commit,
	.take = fast_take,
	.release = hamlyn_release,
};
