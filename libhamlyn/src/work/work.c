// SPDX-License-Identifier: MIT
/* A work queue, from its making to its end. */
#include <poll.h>
#include <stdlib.h>

#include "work/work.h"

#define DEFAULT_ITEMS		1024
#define DEFAULT_MESSAGE		(1u << 20)
#define DEFAULT_BYTES		(64u << 20)
#define DEFAULT_DELIVERIES	5
#define MOST_HANDS		65536
#define LOOK_NS			1000000		/* between looks at the listener */
#define SPIN_NS			20000		/* as managers do, before sleeping */
#define SLICE_NS		100000000	/* of a sleep: some are late without a word */

/* ---- one thread at a time ---- */

static bool is_inside(struct h_work_queue *q)
{
	return h__read_once(&q->owner) == h__thread_number();
}

static int lock(struct h_work_queue *q)
{
	if (h__is_forked(q->server->dev))
		return h__refuse_forked(q->server->dev);
	if (is_inside(q))
		return h__refuse(q->server->dev, -EBUSY, "in a callback of this queue");
	h__lock(&q->lock);
	h__write_once(&q->owner, h__thread_number());
	return 0;
}

static void unlock(struct h_work_queue *q)
{
	h__write_once(&q->owner, 0);
	h__unlock(&q->lock);
}

/* ---- making ---- */

static int make(struct h_work_queue *q, const char *path)
{
	const struct h_server_attr attr = {
		.device = q->attr.device,
		.on_client = h__hand_add,
		.on_end = h__hand_end,
		.uids = q->attr.uids,
		.uid_count = q->attr.uid_count,
		.mode = q->attr.mode,
		.flags = q->attr.flags,
		.clients = q->attr.workers,
		.clients_of_user = q->attr.workers_of_user,
		.max_message = q->attr.max_message + H_ITEM_BYTES,
	};
	int err = h_server_create(path, h__hand_hears, q, &attr, &q->server);

	if (!err)
		h__server_on_room(q->server, h__hand_room);
	return err;
}

static int check(struct h_work_attr *at)
{
	if (at->reserved || at->workers > MOST_HANDS || at->patience_ns < 0)
		return h__early(-EINVAL, at->reserved ? "reserved is not 0" :
				at->patience_ns < 0 ? "patience_ns is negative" :
				"a work queue has at most %d workers", MOST_HANDS);
	if (!at->items)
		at->items = DEFAULT_ITEMS;
	if (!at->max_message)
		at->max_message = DEFAULT_MESSAGE;
	if (at->max_message > HAMLYN_MAX_MESSAGE - H_ITEM_BYTES)
		at->max_message = HAMLYN_MAX_MESSAGE - H_ITEM_BYTES;
	if (!at->bytes)
		at->bytes = DEFAULT_BYTES;
	if (!at->deliveries)
		at->deliveries = DEFAULT_DELIVERIES;
	return 0;
}

int h__work_create(const char *path, const struct h_work_attr *attr, size_t size,
		   struct h_work_queue **queue)
{
	struct h_work_attr at;
	struct h_work_queue *q;
	int err;

	*queue = NULL;
	h__early_begin();
	err = H_TAKE_ATTR(NULL, &at, attr, size);
	if (!err)
		err = check(&at);
	if (err)
		return err;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->attr = at;
	err = make(q, path);
	q->attr.uids = NULL;
	if (err)
		free(q);
	else
		*queue = q;
	return err;
}

/* ---- running ---- */

/* Locked. */
static void look(struct h_work_queue *q)
{
	int64_t now = h__now_ns();
	bool all = now - q->looked_ns >= LOOK_NS;

	if (all)
		q->looked_ns = now;
	h__server_look(q->server, all);
	h__hands_settle(q);
}

static uint64_t progress(const struct h_work_queue *q)
{
	const struct h_work_counters *c = &q->counters;

	return c->done + c->failed + c->deliveries;
}

static int64_t slice_ms(int64_t deadline_ns)
{
	int64_t left = h__time_left(deadline_ns);

	if (left < 0 || left > SLICE_NS)
		left = SLICE_NS;
	/* Not before the time is over. */
	return (left + 999999) / 1000000;
}

static int sleep_unlocked(struct h_work_queue *q, int fd, int64_t deadline_ns)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int err;

	unlock(q);
	err = poll(&pfd, 1, (int)slice_ms(deadline_ns)) < 0 ? -errno : 0;
	lock(q);
	return err;
}

/* Locked: a while, or until something has happened. */
static int go_on(struct h_work_queue *q, int64_t deadline_ns)
{
	int64_t until = h__now_ns() + SPIN_NS;
	uint64_t before = progress(q);
	int fd;

	if (deadline_ns > 0 && h__now_ns() >= deadline_ns)
		return -ETIMEDOUT;
	do {
		look(q);
		if (progress(q) != before)
			return 0;
	} while (h__now_ns() < until && deadline_ns != H_NOWAIT);
	if (deadline_ns == H_NOWAIT)
		return -EAGAIN;
	fd = h_server_fd(q->server);
	return fd < 0 ? fd : sleep_unlocked(q, fd, deadline_ns);
}

/* In a callback nothing is handed out: that is done when it has returned. */
int h_work_add(struct h_work_queue *q, const void *data, size_t length, uint64_t *id,
	       int64_t timeout_ns)
{
	bool inside = is_inside(q);
	int64_t deadline = h_deadline(inside ? H_NOWAIT : timeout_ns);
	int err;

	if (length > q->attr.max_message)
		return h__refuse(q->server->dev, -EMSGSIZE, "%zu bytes, of %llu at most", length,
				 (unsigned long long)q->attr.max_message);
	err = inside ? 0 : lock(q);
	if (err)
		return err;
	while (!err && h__work_is_full(q, length))
		err = inside ? -EAGAIN : go_on(q, deadline);
	/* The last look may have made room. */
	if ((err == -EAGAIN || err == -ETIMEDOUT) && !h__work_is_full(q, length))
		err = 0;
	if (!err)
		err = h__task_add(q, data, length, id);
	if (!inside) {
		if (!err)
			look(q);
		unlock(q);
	}
	return err;
}

static bool has_items(const struct h_work_queue *q)
{
	return q->counters.added != q->counters.done + q->counters.failed;
}

int h_work_run(struct h_work_queue *q, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int err = lock(q);

	if (err)
		return err;
	look(q);
	while (!err && has_items(q))
		err = go_on(q, deadline);
	if ((err == -EAGAIN || err == -ETIMEDOUT) && !has_items(q))
		err = 0;
	unlock(q);
	return err;
}

int h_work_fd(struct h_work_queue *q)
{
	return h_server_fd(q->server);
}

int h_work_dispatch(struct h_work_queue *q)
{
	int err = lock(q);

	if (err)
		return err;
	err = h_server_dispatch(q->server);
	h__hands_settle(q);
	unlock(q);
	return err;
}

int h__work_stats(struct h_work_queue *q, struct h_work_counters *stats, size_t size)
{
	struct h_work_counters now;
	const struct h_hand *h;
	int err = lock(q);

	if (err)
		return err;
	now = q->counters;
	now.waiting = q->waiting.count;
	for (h = q->hands; h; h = h->next_hand) {
		now.workers += h->welcome;
		now.out += h->out.count;
	}
	unlock(q);
	return h__copy_stats(stats, size, &now, sizeof(now));
}

/* ---- ending ---- */

static void free_tasks(struct h_tasks *list)
{
	struct h_task *t;

	while ((t = list->first)) {
		h__tasks_remove(list, t);
		free(t);
	}
}

/* What a child of fork() has of workers, whose ends it is not told of. */
static void forget_hands(struct h_work_queue *q)
{
	struct h_hand *h;

	while ((h = q->hands)) {
		q->hands = h->next_hand;
		free_tasks(&h->out);
		free(h);
	}
}

int h_work_close(struct h_work_queue *q, int64_t timeout_ns)
{
	int err;

	if (!q)
		return 0;
	err = h__in_child(q->server->dev) ? 0 : lock(q);
	if (err)
		return err;
	q->closing = true;
	err = h_server_close(q->server, timeout_ns);
	forget_hands(q);
	free_tasks(&q->waiting);
	free(q);
	return err;
}
