// SPDX-License-Identifier: MIT
/* A channel with a manager and a device of its own. */
#include "channel/channel.h"

/* Its NQ: for the channel, and for what it has while its buffers grow. */
#define CHANNELS	4

int h__channel_hang_up(struct h_manager *m)
{
	struct h_dev *dev = m->dev;
	int err = h_manager_destroy(m);

	if (!err)
		h_close(dev);
	return err;
}

static int connect_on(struct h_dev *dev, const char *path, const struct h_channel_attr *at,
		      struct h_channel **channel, int64_t timeout_ns)
{
	/* Too many are refused later, in words. */
	uint32_t buffers = at->buffers <= H_STREAM_MAX_BUFFERS ? at->buffers : 0;
	const struct h_manager_attr attr = {
		/* Twice: the old ones and the new ones. */
		.channels = CHANNELS + 2 * (buffers / H_CHANNEL_ARRIVALS),
	};
	struct h_manager *m;
	struct h_why why;
	int err;

	err = h_manager_create(dev, &attr, &m);
	if (err)
		return err;
	err = h__channel_connect(m, path, at, sizeof(*at), channel, timeout_ns);
	if (!err)
		return 0;
	h__why_keep(dev, &why);
	h_manager_destroy(m);
	h__why_restore(dev, &why);
	return err;
}

/* The device that knew why is closed by the time the program asks. */
static int no_connection(struct h_dev *dev, const char *path, int err)
{
	struct h_why why;

	h__why_keep(dev, &why);
	h_close(dev);
	h__early_begin();
	if (why.text[0])
		h__early(err, "%s", why.text);
	return h__early_end(err, path);
}

static int open_and_connect(const char *path, const struct h_channel_attr *at,
			    struct h_channel **channel, int64_t deadline_ns)
{
	struct h_dev *dev;
	int err = h_open(at->device, &dev);

	if (err)
		return err;
	err = connect_on(dev, path, at, channel, h__time_left(deadline_ns));
	if (err)
		return no_connection(dev, path, err);
	(*channel)->dialled = true;
	return 0;
}

int h__channel_dial(const char *path, const struct h_channel_attr *attr, size_t size,
		    struct h_channel **channel, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	struct h_change_limit before;
	struct h_channel_attr at;
	int err;

	*channel = NULL;
	h__early_begin();
	err = H_TAKE_ATTR(NULL, &at, attr, size);
	if (err)
		return err;
	before = h__change_limit(deadline);
	err = open_and_connect(path, &at, channel, deadline);
	h__change_restore(before);
	return err;
}

/* There is something: it stays so until it was received. */
static void be_ready(struct h_channel *ch, void *arg)
{
	(void)ch;
	(void)arg;
}

int h__dialled_fd(struct h_channel *ch, bool *watched)
{
	if (h__is_forked(ch->manager->dev))
		return h__refuse_forked(ch->manager->dev);
	if (!*watched)
		h_channel_on_ready(ch, be_ready, NULL);
	*watched = true;
	return h_manager_fd(ch->manager);
}

int h__dialled_receive(struct h_channel *ch, bool watched, struct h_message *m, int64_t timeout_ns)
{
	int err;

	if (h__is_forked(ch->manager->dev))
		return h__refuse_forked(ch->manager->dev);
	err = h_channel_receive(ch, m, timeout_ns);
	if (err != -EAGAIN || !watched)
		return err;
	/* What the descriptor says is so dispatched; and then something may have come. */
	h_manager_dispatch(ch->manager);
	return h_channel_receive(ch, m, H_NOWAIT);
}

int h__dialled_release(struct h_channel *ch, struct h_message *m)
{
	if (h__is_forked(ch->manager->dev))
		return h__refuse_forked(ch->manager->dev);
	return h_channel_release(ch, m);
}
