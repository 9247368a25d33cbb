// SPDX-License-Identifier: MIT
/* A publisher, from its making to its end; what it does while it publishes nothing. */
#include <poll.h>
#include <stdlib.h>

#include "publish/publish.h"

#define DEFAULT_HISTORY	64
#define MOST_HISTORY	65536
#define DEFAULT_MESSAGE	(1u << 20)
#define MOST_READERS	65536
#define LOOK_NS		1000000		/* between looks at the listener, while messages follow */
#define SLICE_NS	100000000	/* of a wait in which others may have their turn */

/* ---- one thread at a time ---- */

int h__publisher_lock(struct h_publisher *p)
{
	uint32_t me = h__thread_number();

	if (h__is_forked(p->server->dev))
		return h__refuse_forked(p->server->dev);
	if (h__read_once(&p->owner) == me)
		return h__refuse(p->server->dev, -EBUSY, "in a callback of this publisher");
	h__lock(&p->lock);
	h__write_once(&p->owner, me);
	return 0;
}

void h__publisher_unlock(struct h_publisher *p)
{
	h__write_once(&p->owner, 0);
	h__unlock(&p->lock);
}

/* ---- making ---- */

static int make_server(struct h_publisher *p, const char *path, const struct h_publisher_attr *at)
{
	const struct h_server_attr attr = {
		.device = at->device,
		.on_client = h__reader_add,
		.on_end = h__reader_end,
		.uids = at->uids,
		.uid_count = at->uid_count,
		.mode = at->mode,
		.flags = at->flags,
		.clients = at->subscribers,
		.clients_of_user = at->subscribers_of_user,
		/* For what a subscriber says, which is one short message. */
		.buffers = 4,
		.buffer_size = 128,
		.max_buffer_size = 128,
		.max_message = H_HELLO_BYTES,
	};
	int err = h_server_create(path, h__reader_hears, p, &attr, &p->server);

	if (!err)
		h__server_on_room(p->server, h__reader_room);
	return err;
}

static int make(struct h_publisher *p, const char *path)
{
	p->kept = calloc(p->attr.history, sizeof(*p->kept));
	if (!p->kept)
		return -ENOMEM;
	return make_server(p, path, &p->attr);
}

static void publisher_free(struct h_publisher *p)
{
	free(p->kept);
	free(p);
}

static int check(struct h_publisher_attr *at)
{
	if (at->history > MOST_HISTORY || at->subscribers > MOST_READERS)
		return h__early(-EINVAL, "a publisher has at most %d subscribers, and %d messages",
				MOST_READERS, MOST_HISTORY);
	if (!at->history)
		at->history = DEFAULT_HISTORY;
	if (!at->max_message)
		at->max_message = DEFAULT_MESSAGE;
	if (at->max_message > HAMLYN_MAX_MESSAGE - H_HEAD_BYTES)
		at->max_message = HAMLYN_MAX_MESSAGE - H_HEAD_BYTES;
	return 0;
}

int h__publisher_create(const char *path, const struct h_publisher_attr *attr, size_t size,
			struct h_publisher **publisher)
{
	struct h_publisher_attr at;
	struct h_publisher *p;
	int err;

	*publisher = NULL;
	h__early_begin();
	err = H_TAKE_ATTR(NULL, &at, attr, size);
	if (!err)
		err = check(&at);
	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->attr = at;
	p->next = 1;
	err = make(p, path);
	p->attr.uids = NULL;
	if (err)
		publisher_free(p);
	else
		*publisher = p;
	return err;
}

/* ---- seeing to subscribers ---- */

void h__publisher_look(struct h_publisher *p)
{
	int64_t now = h__now_ns();
	bool all = now - p->looked_ns >= LOOK_NS;

	if (all)
		p->looked_ns = now;
	h__server_look(p->server, all);
	h__readers_sweep(p);
}

int h_publisher_fd(struct h_publisher *p)
{
	return h_server_fd(p->server);
}

int h_publisher_dispatch(struct h_publisher *p)
{
	int err = h__publisher_lock(p);

	if (err)
		return err;
	err = h_server_dispatch(p->server);
	h__readers_sweep(p);
	h__publisher_unlock(p);
	return err;
}

static int sleep_slice(int fd, int64_t deadline_ns)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int64_t left = h__time_left(deadline_ns);

	if (left < 0 || left > SLICE_NS)
		left = SLICE_NS;
	/* Not before the time is over. */
	return poll(&pfd, 1, (int)((left + 999999) / 1000000)) < 0 ? -errno : 0;
}

int h_publisher_run(struct h_publisher *p, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int fd = h_publisher_fd(p);
	int err = fd < 0 ? fd : h_publisher_dispatch(p);

	while (!err) {
		if (deadline == H_NOWAIT)
			return -EAGAIN;
		if (deadline > 0 && h__now_ns() >= deadline)
			return -ETIMEDOUT;
		err = sleep_slice(fd, deadline);
		if (!err)
			err = h_publisher_dispatch(p);
	}
	return err;
}

struct h_manager *h_publisher_manager(const struct h_publisher *p)
{
	return p->server->manager;
}

int h__publisher_stats(struct h_publisher *p, struct h_publisher_counters *stats, size_t size)
{
	struct h_publisher_counters now;
	const struct h_reader *r;
	int err = h__publisher_lock(p);

	if (err)
		return err;
	now = p->counters;
	for (r = p->readers; r; r = r->next_reader) {
		now.subscribers += r->welcome;
		now.lagging += r->welcome && r->stuck;
	}
	h__publisher_unlock(p);
	return h__copy_stats(stats, size, &now, sizeof(now));
}

/* ---- ending ---- */

/* What is kept is sent. */
static int send_all(struct h_publisher *p, int64_t deadline_ns)
{
	int64_t left;
	int err;

	h__publisher_look(p);
	while (h__readers_lag(p)) {
		left = h__time_left(deadline_ns);
		if (!left)
			return deadline_ns == H_NOWAIT ? -EAGAIN : -ETIMEDOUT;
		if (left < 0 || left > SLICE_NS)
			left = SLICE_NS;
		err = h_manager_wait(p->server->manager, left);
		if (err && err != -ETIMEDOUT && err != -EINTR)
			return err;
		h__publisher_look(p);
	}
	return 0;
}

int h_publisher_close(struct h_publisher *p, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	bool child;
	int err, ret;

	if (!p)
		return 0;
	child = h__in_child(p->server->dev);
	err = child ? 0 : h__publisher_lock(p);
	if (err)
		return err;
	err = child ? 0 : send_all(p, deadline);
	ret = h_server_close(p->server, h__time_left(deadline));
	h__publisher_free_kept(p);
	publisher_free(p);
	return err ? err : ret;
}
