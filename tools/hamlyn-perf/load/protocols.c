// SPDX-License-Identifier: GPL-2.0-only
#include "load/protocols.h"

#define SECOND	1000000000LL

static int made(int ret, const char *what)
{
	return ret < 0 ? fail("cannot make %s: %s", what, strerror(-ret)) : 0;
}

static int open_stream(struct protocols *p)
{
	struct h_seed seed;

	if (made(h_stream_receiver_create(p->manager, NULL, &p->stream_in), "a stream") < 0)
		return -1;
	h_stream_receiver_seed(p->stream_in, &seed);
	return made(h_stream_sender_create(p->manager, &seed, &p->stream_out), "a stream");
}

static int open_datagram(struct protocols *p)
{
	const struct h_datagram_attr attr = { .length = p->size };

	if (made(h_datagram_receiver_create(p->manager, &attr, &p->datagrams), "a datagram") < 0)
		return -1;
	h_datagram_receiver_address(p->datagrams, &p->to);
	return 0;
}

static int open_tagged(struct protocols *p)
{
	const struct h_tagged_attr attr = { .length = p->size };
	struct h_seed seed;

	if (made(h_tagged_receiver_create(p->manager, &attr, &p->tags), "a tagged write") < 0)
		return -1;
	h_tagged_receiver_seed(p->tags, &seed);
	return made(h_tagged_resolve(&seed, &p->place), "a tagged write");
}

static int open_all(struct protocols *p, const char *device, uint32_t flags)
{
	const struct h_manager_attr attr = { .flags = flags };
	void *data;

	if (made(h_open(device, &p->dev), "a context") < 0 ||
	    made(h_manager_create(p->dev, &attr, &p->manager), "a manager") < 0 ||
	    made(h_manager_alloc(p->manager, p->size, &data), "memory to send from") < 0)
		return -1;
	p->data = data;
	memset(p->data, 1, p->size);
	if (open_stream(p) < 0 || open_datagram(p) < 0 || open_tagged(p) < 0)
		return -1;
	return made(h_channel_pair(p->manager, p->manager, NULL, &p->here, &p->there),
		    "a channel");
}

int protocols_open(struct protocols *p, const char *device, uint32_t flags, size_t size)
{
	*p = (struct protocols){ .size = size };
	if (!open_all(p, device, flags))
		return 0;
	protocols_close(p);
	return -1;
}

void protocols_close(struct protocols *p)
{
	h_channel_close(p->here, H_NOWAIT);
	h_channel_close(p->there, H_NOWAIT);
	h_stream_sender_close(p->stream_out, H_NOWAIT);
	h_stream_receiver_destroy(p->stream_in);
	h_datagram_receiver_destroy(p->datagrams);
	h_tagged_receiver_destroy(p->tags);
	h_manager_destroy(p->manager);
	h_close(p->dev);
}

static int wrong(const char *what, int64_t ret)
{
	return fail("%s: %s", what, ret < 0 ? strerror((int)-ret) : "not what was sent");
}

/* As many pieces as it takes: the buffers grow. */
static int receive_stream(struct protocols *p)
{
	size_t got = 0;

	while (got < p->size) {
		int ret = h_stream_receive(p->stream_in, &p->record, SECOND);

		if (ret != 0)
			return wrong("a stream", ret);
		got += p->record.length;
		h_stream_release(p->stream_in, &p->record);
	}
	return got == p->size ? 0 : wrong("a stream", 0);
}

int protocols_stream(void *arg)
{
	struct protocols *p = arg;
	ssize_t ret = h_stream_send(p->stream_out, p->data, p->size, H_NOWAIT);

	if (ret != (ssize_t)p->size)
		return wrong("a stream", ret);
	ret = h_stream_flush(p->stream_out, H_NOWAIT);
	return ret < 0 ? wrong("a stream", ret) : receive_stream(p);
}

int protocols_channel(void *arg)
{
	struct protocols *p = arg;
	int ret = h_channel_send(p->here, p->data, p->size, H_NOWAIT);

	if (ret < 0)
		return wrong("a channel", ret);
	ret = h_channel_receive(p->there, &p->message, SECOND);
	if (ret != 0 || p->message.length != p->size)
		return wrong("a channel", ret);
	h_channel_release(p->there, &p->message);
	return 0;
}

int protocols_datagram(void *arg)
{
	struct protocols *p = arg;
	struct h_datagram got;
	int ret = h_datagram_send(p->manager, &p->to, 0, p->data, p->size, NULL, SECOND);

	if (ret < 0)
		return wrong("a datagram", ret);
	ret = h_datagram_receive(p->datagrams, &got, SECOND);
	if (ret < 0 || got.length != p->size)
		return wrong("a datagram", ret);
	h_datagram_release(p->datagrams);
	return 0;
}

int protocols_tagged(void *arg)
{
	struct protocols *p = arg;
	uint64_t tag;
	uint32_t length;
	int ret = h_tagged_send(p->manager, &p->place, 0, p->data, p->size, ++p->tag, SECOND);

	if (ret < 0)
		return wrong("a tagged write", ret);
	ret = h_tagged_get_tag(p->tags, &tag, &length, SECOND);
	return ret < 0 || tag != p->tag || length != p->size ? wrong("a tagged write", ret) : 0;
}
