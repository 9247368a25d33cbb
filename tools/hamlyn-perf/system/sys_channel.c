// SPDX-License-Identifier: GPL-2.0-only
/*
 * A channel, which is what programs use of Hamlyn: each end on a device and a manager of its own
 * with default properties, as h_channel_dial() makes them, or with a manager that never sleeps.
 * What is received is used where it is.
 */
#include <errno.h>
#include <string.h>

#include <hamlyn/channel.h>

#include "base/clock.h"
#include "load/endpoint.h"
#include "system/chan.h"

struct channel_chan {
	struct chan chan;
	struct h_dev *dev;
	struct h_manager *manager;
	struct h_channel *channel;
	struct h_message message;
	void *out;		/* from which long messages are not copied */
};

static inline struct channel_chan *to_channel(struct chan *chan)
{
	return container_of(chan, struct channel_chan, chan);
}

static void channel_close(struct chan *chan)
{
	struct channel_chan *c = to_channel(chan);

	h_channel_close(c->channel, H_NOWAIT);
	h_manager_destroy(c->manager);
	h_close(c->dev);
	free(c);
}

static int wrong(const char *what, int ret)
{
	return fail("%s: %s", what, strerror(-ret));
}

static int make_end(struct channel_chan *c)
{
	const struct h_manager_attr attr = { .spin_ns = c->chan.system == &sys_channel ? -1 : 0 };
	int ret;

	if (endpoint_device(&c->dev, c->chan.side->options) < 0)
		return -1;
	ret = h_manager_create(c->dev, &attr, &c->manager);
	if (ret < 0)
		return wrong("no manager", ret);
	ret = h_manager_alloc(c->manager, chan_room(), &c->out);
	if (ret < 0)
		return wrong("no memory to send from", ret);
	c->chan.out = c->out;
	memset(c->chan.out, 1, chan_room());
	ret = h_channel_create(c->manager, NULL, &c->channel);
	return ret < 0 ? wrong("no channel", ret) : 0;
}

static int join_ends(struct channel_chan *c)
{
	struct h_channel_seed mine, theirs;
	int ret;

	h_channel_seed(c->channel, &mine);
	if (pair_swap(c->chan.side, &mine, &theirs, sizeof(mine)) < 0)
		return -1;
	ret = h_channel_join(c->channel, &theirs);
	if (ret < 0)
		return wrong("cannot join a channel", ret);
	/* What is sent to an end that has not joined yet finds nobody. */
	return pair_swap(c->chan.side, &mine, &theirs, sizeof(mine));
}

static struct chan *open_chan(struct side *side, const struct system *system)
{
	struct channel_chan *c = calloc(1, sizeof(*c));

	if (!c) {
		fail("out of memory");
		return NULL;
	}
	c->chan.system = system;
	c->chan.side = side;
	if (make_end(c) < 0 || join_ends(c) < 0) {
		channel_close(&c->chan);
		return NULL;
	}
	return &c->chan;
}

static struct chan *channel_open(struct side *side, void *stage)
{
	(void)stage;
	return open_chan(side, &sys_channel);
}

static struct chan *block_open(struct side *side, void *stage)
{
	(void)stage;
	return open_chan(side, &sys_channel_block);
}

static void *channel_reserve(struct chan *chan)
{
	return chan_out(chan);
}

static int sent(struct chan *chan, int ret)
{
	if (ret < 0)
		return wrong("h_channel_send", ret);
	chan->out_pos = chan_next(chan, chan->out_pos);
	return 0;
}

static int64_t patience(const struct chan *chan)
{
	return (int64_t)(chan->side->options->timeout_s * NSEC_PER_SEC);
}

static int channel_commit(struct chan *chan)
{
	return sent(chan, h_channel_send(to_channel(chan)->channel, chan_out(chan), chan->size,
					 patience(chan)));
}

static const void *arrived(struct chan *chan, int ret)
{
	struct h_message *message = &to_channel(chan)->message;

	if (ret < 0) {
		wrong("h_channel_receive", ret);
		return NULL;
	}
	if (!chan_fits(chan, message->length))
		return NULL;
	chan->in_pos = chan_next(chan, chan->in_pos);
	/* An empty message may have no address. */
	return chan->size ? message->data : message;
}

static const void *channel_take(struct chan *chan)
{
	struct channel_chan *c = to_channel(chan);

	return arrived(chan, h_channel_receive(c->channel, &c->message, patience(chan)));
}

static int channel_release(struct chan *chan)
{
	struct channel_chan *c = to_channel(chan);
	int ret = h_channel_release(c->channel, &c->message);

	return ret < 0 ? wrong("h_channel_release", ret) : 0;
}

const struct system sys_channel = {
	.name = "channel",
	.what = "a Hamlyn channel, its calls poll",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.engines = true,
	.open = channel_open,
	.close = channel_close,
	.reserve = channel_reserve,
	.commit = channel_commit,
	.take = channel_take,
	.release = channel_release,
};

const struct system sys_channel_block = {
	.name = "channel-block",
	.what = "a Hamlyn channel, its calls poll, then sleep",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.engines = true,
	.open = block_open,
	.close = channel_close,
	.reserve = channel_reserve,
	.commit = channel_commit,
	.take = channel_take,
	.release = channel_release,
};
