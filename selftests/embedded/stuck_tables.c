// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process was stopped while it changed the segment's tables, or while it sent to what ends.
 * Who does not wait, or has a time-out, is not kept by that: what cannot be made fails, clients
 * wait for their turn, and what was closed ends later. Embedded device only.
 */
#include <hamlyn/channel.h>
#include <hamlyn/server.h>
#include <hamlyn/stream.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

/* What a stopped sender looks like is made here, and what there is left is counted. */
#include "manager/manager.h"
#include "embedded/shm.h"
#include "server/server.h"

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define A_WHILE		(100 * HT_MS)
/* Without a time-out each of these takes 5 or 10 s. */
#define FAR_LESS	(3 * HT_SEC)

FIXTURE(stuck) {
	char name[64];
	char path[64];
	struct h_dev *dev;
	struct h_manager *m;
	int file;		/* with the tables locked */
	int64_t took;		/* the last call in HOW_LONG() */
};

#define HOW_LONG(self, call) ({					\
	int64_t began = ht_now_ns();				\
	__typeof__(call) ret = (call);				\
	(self)->took = ht_now_ns() - began;			\
	ret;							\
})

FIXTURE_SETUP(stuck)
{
	const char *name = ht_device();

	self->file = -1;
	ASSERT_EQ(0, h_open(name, &self->dev));
	if (!h_dev_is_embedded(self->dev))
		SKIP(return, "the kernel's tables are nobody's to stop");
	h_close(self->dev);
	snprintf(self->name, sizeof(self->name), "shm:stuck%d", (int)getpid());
	snprintf(self->path, sizeof(self->path), "@stuck%d", (int)getpid());
	ASSERT_EQ(0, h_open(self->name, &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
}

FIXTURE_TEARDOWN(stuck)
{
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

/* As by a process that was stopped while it changed them. */
static int stop_with_tables(FIXTURE_DATA(stuck) *self)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };
	char path[160];

	snprintf(path, sizeof(path), "/dev/shm/%s", shm_of(self->dev)->file);
	self->file = open(path, O_RDWR | O_CLOEXEC);
	return self->file < 0 ? -errno : fcntl(self->file, F_OFD_SETLKW, &lock) ? -errno : 0;
}

static void go_on(FIXTURE_DATA(stuck) *self)
{
	struct h_area *area;

	close(self->file);
	self->file = -1;
	/* As who changes them does: it is seen that somebody has got on. */
	if (!h_area_alloc(self->dev, 4096, &area))
		h_area_remove(area);
}

static unsigned int slots_of(const struct h_dev *dev)
{
	const struct h_slot *s;
	unsigned int n = 0;

	for (s = dev->slots; s; s = s->next)
		n++;
	return n;
}

/* What was closed ends by and by, in whatever polls. */
static bool come_to(FIXTURE_DATA(stuck) *self, unsigned int slots)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (slots_of(self->dev) != slots && ht_poll_more(&poll))
		h_manager_poll(self->m);
	return slots_of(self->dev) == slots && !self->dev->watches;
}

TEST_F(stuck, who_connects_has_a_deadline_nevertheless)
{
	unsigned int before = slots_of(self->dev);
	struct h_channel_attr at = { .device = self->name };
	struct h_listener *l;
	struct h_channel *c;

	ASSERT_EQ(0, h_listener_create(self->path, NULL, &l));
	ASSERT_EQ(0, stop_with_tables(self));
	EXPECT_EQ(-EAGAIN,
		  HOW_LONG(self, h_channel_connect(self->m, self->path, NULL, &c, H_NOWAIT)));
	EXPECT_LT(self->took, FAR_LESS);
	EXPECT_TRUE(ht_is_explained(self->dev, "stopped"));
	EXPECT_EQ(-ETIMEDOUT,
		  HOW_LONG(self, h_channel_connect(self->m, self->path, NULL, &c, A_WHILE)));
	EXPECT_GE(self->took, A_WHILE);
	EXPECT_LT(self->took, FAR_LESS);
	EXPECT_EQ(-EAGAIN, HOW_LONG(self, h_channel_dial(self->path, &at, &c, H_NOWAIT)));
	EXPECT_LT(self->took, FAR_LESS);
	EXPECT_EQ(-ETIMEDOUT, HOW_LONG(self, h_channel_dial(self->path, &at, &c, A_WHILE)));
	EXPECT_LT(self->took, FAR_LESS);
	go_on(self);
	EXPECT_TRUE(come_to(self, before));
	h_listener_destroy(l);
}

struct client {
	struct h_manager *m;
	const char *path;
	const char *device;
	struct h_channel *channel;
	int ret;
};

static void *connect_it(void *arg)
{
	struct client *c = arg;

	c->ret = h_channel_connect(c->m, c->path, NULL, &c->channel, ht_patience_ns());
	return NULL;
}

static void *allocate_it(void *arg)
{
	struct client *c = arg;
	void *memory;

	c->ret = h_manager_alloc(c->m, 8 << 20, &memory);
	if (!c->ret)
		h_manager_free(c->m, memory);
	return NULL;
}

/* The manager's lock is one that is held for as long as another thread waits. */
TEST_F(stuck, who_connects_does_not_wait_for_another_thread_that_waits)
{
	struct client other = { .m = self->m };
	struct h_channel *c;
	pthread_t thread;

	ASSERT_EQ(0, stop_with_tables(self));
	ASSERT_EQ(0, pthread_create(&thread, NULL, allocate_it, &other));
	while (!h__read_once(&self->m->area_lock) || !h__read_once(&self->dev->lock))
		ht_sleep_ns(HT_MS);
	EXPECT_EQ(-EAGAIN,
		  HOW_LONG(self, h_channel_connect(self->m, self->path, NULL, &c, H_NOWAIT)));
	EXPECT_LT(self->took, FAR_LESS);
	go_on(self);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, other.ret);
}

/* It has called, and said what it wants. */
static bool has_come(struct h_listener *l)
{
	struct pollfd p = { .fd = h_listener_fd(l), .events = POLLIN };

	return poll(&p, 1, (int)(ht_patience_ns() / HT_MS)) == 1;
}

TEST_F(stuck, who_accepts_turns_nobody_away)
{
	struct client client = { .path = self->path };
	struct h_channel *c = NULL;
	struct h_listener *l;
	struct h_dev *dev;
	pthread_t thread;
	int ret;

	ASSERT_EQ(0, h_open(self->name, &dev));
	ASSERT_EQ(0, h_manager_create(dev, NULL, &client.m));
	ASSERT_EQ(0, h_listener_create(self->path, NULL, &l));
	ASSERT_EQ(0, pthread_create(&thread, NULL, connect_it, &client));
	ASSERT_TRUE(has_come(l));
	ASSERT_EQ(0, stop_with_tables(self));
	EXPECT_EQ(-EAGAIN, HOW_LONG(self, h_channel_accept(l, self->m, NULL, &c, H_NOWAIT)));
	EXPECT_LT(self->took, FAR_LESS);
	EXPECT_EQ(-ETIMEDOUT, HOW_LONG(self, h_channel_accept(l, self->m, NULL, &c, A_WHILE)));
	EXPECT_LT(self->took, FAR_LESS);
	go_on(self);
	ret = h_channel_accept(l, self->m, NULL, &c, ht_patience_ns());
	pthread_join(thread, NULL);
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, client.ret);
	h_channel_close(c, H_NOWAIT);
	h_channel_close(client.channel, H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(client.m));
	h_close(dev);
	h_listener_destroy(l);
}

static int do_nothing(struct h_channel *channel, const struct h_message *message, void *arg)
{
	(void)channel;
	(void)message;
	(void)arg;
	return 0;
}

TEST_F(stuck, a_server_serves_on_and_closes)
{
	struct h_server_attr at = { .device = self->name };
	struct client client = { .m = self->m, .path = self->path };
	struct h_server *s;
	struct ht_poll poll;
	pthread_t thread;

	ASSERT_EQ(0, h_server_create(self->path, do_nothing, NULL, &at, &s));
	ASSERT_EQ(0, pthread_create(&thread, NULL, connect_it, &client));
	/* Not before it needs nothing more of the tables. */
	ASSERT_TRUE(has_come(s->listener));
	ASSERT_EQ(0, stop_with_tables(self));
	EXPECT_EQ(-ETIMEDOUT, HOW_LONG(self, h_server_run(s, A_WHILE)));
	EXPECT_LT(self->took, FAR_LESS);
	EXPECT_EQ(0, h_server_clients(s));
	go_on(self);
	ht_poll_begin(&poll);
	while (!h_server_clients(s) && ht_poll_more(&poll))
		h_server_run(s, 10 * HT_MS);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, client.ret);
	ASSERT_EQ(0, stop_with_tables(self));
	HOW_LONG(self, h_server_close(s, H_NOWAIT));
	EXPECT_LT(self->took, FAR_LESS);
	go_on(self);
	h_channel_close(client.channel, H_NOWAIT);
}

/* Return: how long it took to close all of them without waiting. */
static int64_t close_all(struct h_channel *channel, struct h_stream_sender *sender)
{
	int64_t began = ht_now_ns();

	h_channel_close(channel, H_NOWAIT);
	h_stream_sender_close(sender, H_NOWAIT);
	return ht_now_ns() - began;
}

TEST_F(stuck, what_is_closed_ends_when_the_tables_can_be_had)
{
	unsigned int before = slots_of(self->dev);
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
	struct h_channel *ends[2];
	struct h_manager *peer;
	struct h_seed seed;
	struct h_dev *dev;

	ASSERT_EQ(0, h_open(self->name, &dev));
	ASSERT_EQ(0, h_manager_create(dev, NULL, &peer));
	ASSERT_EQ(0, h_channel_pair(self->m, peer, NULL, &ends[0], &ends[1]));
	ASSERT_EQ(0, h_stream_receiver_create(peer, NULL, &r));
	h_stream_receiver_seed(r, &seed);
	ASSERT_EQ(0, h_stream_sender_create(self->m, &seed, &s));
	ASSERT_EQ(0, stop_with_tables(self));
	EXPECT_LT(close_all(ends[0], s), FAR_LESS);
	EXPECT_LT(before, slots_of(self->dev));
	/* Nor does who polls wait for it. */
	HOW_LONG(self, h_manager_poll(self->m));
	EXPECT_LT(self->took, FAR_LESS);
	go_on(self);
	EXPECT_TRUE(come_to(self, before));
	h_channel_close(ends[1], H_NOWAIT);
	EXPECT_EQ(0, h_stream_receiver_destroy(r));
	EXPECT_EQ(0, h_manager_destroy(peer));
	h_close(dev);
}

/* Nobody polls: then it is ended with its manager. */
TEST_F(stuck, what_was_closed_is_the_managers_to_end)
{
	struct h_channel *ends[2];
	struct h_manager *m;

	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &m));
	ASSERT_EQ(0, h_channel_pair(m, self->m, NULL, &ends[0], &ends[1]));
	ASSERT_EQ(0, stop_with_tables(self));
	HOW_LONG(self, h_channel_close(ends[0], H_NOWAIT));
	EXPECT_LT(self->took, FAR_LESS);
	go_on(self);
	h_channel_close(ends[1], H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(m));
	/* The manager's own. */
	EXPECT_TRUE(come_to(self, 1));
}

/* A sender that was stopped inside the NIC could still write to what is closed. */
TEST_F(stuck, what_is_closed_ends_when_who_sends_has_left)
{
	unsigned int before = slots_of(self->dev);
	struct h_channel *ends[2];
	struct shm_terminus *inside;
	struct h_manager *peer;
	struct h_dev *dev;

	ASSERT_EQ(0, h_open(self->name, &dev));
	ASSERT_EQ(0, h_manager_create(dev, NULL, &peer));
	ASSERT_EQ(0, h_channel_pair(self->m, peer, NULL, &ends[0], &ends[1]));
	inside = ((struct shm_sender *)peer->terminus->priv)->record;
	__atomic_fetch_add(&inside->hold, 1, __ATOMIC_SEQ_CST);
	HOW_LONG(self, h_channel_close(ends[0], H_NOWAIT));
	EXPECT_LT(self->took, FAR_LESS);
	EXPECT_LT(before, slots_of(self->dev));
	__atomic_fetch_add(&inside->hold, 1, __ATOMIC_SEQ_CST);
	EXPECT_TRUE(come_to(self, before));
	h_channel_close(ends[1], H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(peer));
	h_close(dev);
}

/* ---- a thread of our own that is in the terminus ---- */

/* Return: how long it took to receive the end, or -1. */
static int64_t receive_end(struct h_manager *m, struct h_stream_receiver *r)
{
	struct shm_terminus *own = ((struct shm_sender *)m->terminus->priv)->record;
	struct h_record record;
	struct ht_poll poll;
	int64_t began;
	int ret;

	__atomic_fetch_add(&own->hold, 1, __ATOMIC_SEQ_CST);
	ht_poll_begin(&poll);
	do {
		began = ht_now_ns();
		ret = h_stream_receive(r, &record, H_NOWAIT);
		began = ht_now_ns() - began;
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	__atomic_fetch_add(&own->hold, 1, __ATOMIC_SEQ_CST);
	return ret == -ENODATA ? began : -1;
}

/* The sender is to be told that all has arrived: later, and at the latest by who destroys it. */
TEST_F(stuck, who_receives_the_end_does_not_wait_to_say_so)
{
	int64_t took, least = HT_SEC;
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
	struct h_manager *peer;
	struct h_seed seed;
	int i;

	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &peer));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, h_stream_receiver_create(self->m, NULL, &r));
		h_stream_receiver_seed(r, &seed);
		ASSERT_EQ(0, h_stream_sender_create(peer, &seed, &s));
		ASSERT_EQ(-EAGAIN, h_stream_sender_shutdown(s, H_NOWAIT));
		took = receive_end(self->m, r);
		ASSERT_LT(0, took);
		if (took < least)
			least = took;
		if (i % 2)
			h_manager_poll(self->m);
		else
			EXPECT_EQ(0, h_stream_receiver_destroy(r));
		EXPECT_EQ(0, h_stream_sender_shutdown(s, ht_patience_ns()));
		h_stream_sender_close(s, H_NOWAIT);
		if (i % 2)
			EXPECT_EQ(0, h_stream_receiver_destroy(r));
	}
	/* Of ten one at least was not kept from the processor. It was 200 ms. */
	EXPECT_LT(least, 100 * HT_MS);
	EXPECT_EQ(0, h_manager_destroy(peer));
}

/* ---- devices of one's own ---- */

static void *dial_it(void *arg)
{
	struct client *c = arg;
	struct h_channel_attr at = { .device = c->device };

	c->ret = h_channel_dial(c->path, &at, &c->channel, ht_patience_ns());
	return NULL;
}

/* It takes its device with it, of which the next process clears away what is left. */
TEST_F(stuck, what_was_dialled_is_closed_in_time)
{
	struct client client = { .device = self->name, .path = self->path };
	struct h_listener *l;
	struct h_channel *c;
	pthread_t thread;

	ASSERT_EQ(0, h_listener_create(self->path, NULL, &l));
	ASSERT_EQ(0, pthread_create(&thread, NULL, dial_it, &client));
	ASSERT_EQ(0, h_channel_accept(l, self->m, NULL, &c, ht_patience_ns()));
	pthread_join(thread, NULL);
	ASSERT_EQ(0, client.ret);
	ASSERT_EQ(0, stop_with_tables(self));
	HOW_LONG(self, h_channel_close(client.channel, H_NOWAIT));
	EXPECT_LT(self->took, FAR_LESS);
	go_on(self);
	h_channel_close(c, H_NOWAIT);
	h_listener_destroy(l);
}

TEST_HARNESS_MAIN
