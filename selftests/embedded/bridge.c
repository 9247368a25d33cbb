// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two segments, joined by two bridges over the loopback device: what arrives, what is told of
 * those who die, what happens when nobody takes anything, and what a peer that lies can do.
 */
#include "bridge_hosts.h"

#include <pthread.h>

#include <hamlyn/channel.h>
#include <hamlyn/datagram.h>
#include <hamlyn/publish.h>

/* ---- what arrives ---- */

TEST_F(bridge, messages_arrive)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	struct hamlyn_metadata *meta = h_area_addr(b->meta);
	struct h_ticket part, fast = b->ticket;
	struct h_msg m = { .ticket = &b->ticket };
	struct hamlyn_nq_entry e;

	/* One packet, with metadata */
	ASSERT_EQ(h_slot_ticket(b->slot, 100, 50, 2, &part), 0);
	m.ticket = &part;
	m.data = "hello";
	m.length = 5;
	m.offset = 7;
	m.meta = "there";
	m.meta_length = 5;
	ASSERT_EQ(ht_send_sync(a->terminus, &m), 1);
	ASSERT_EQ(ht_recv(b->nq, &e), 1);
	EXPECT_EQ(e.source, 1u);
	EXPECT_EQ(e.index, 2u);
	EXPECT_EQ(e.length, 5u);
	EXPECT_EQ(memcmp(b->data + 107, "hello", 5), 0);
	EXPECT_EQ(memcmp(meta[2].user, "there", 5), 0);

	/* A word */
	fast.meta_index = HAMLYN_META_FAST;
	ASSERT_GE(h_send_word(a->terminus, &fast, 0x123456789abcdef0ull), 0);
	ASSERT_EQ(ht_recv(b->nq, &e), 1);
	EXPECT_EQ(e.data, 0x123456789abcdef0ull);

	/* Many packets, and the other way */
	ht_fill(a->data, LENGTH, 3);
	m = (struct h_msg) { .ticket = &b->ticket, .data = a->data, .length = LENGTH };
	ASSERT_EQ(ht_send_sync(a->terminus, &m), 1);
	ASSERT_EQ(ht_recv(b->nq, &e), 1);
	EXPECT_EQ(ht_match(b->data, LENGTH, 3), LENGTH);
	memset(a->data, 0, LENGTH);
	m = (struct h_msg) { .ticket = &a->ticket, .data = b->data, .length = LENGTH };
	ASSERT_EQ(ht_send_sync(b->terminus, &m), 1);
	ASSERT_EQ(ht_recv(a->nq, &e), 1);
	EXPECT_EQ(e.source, 2u);
	EXPECT_EQ(ht_match(a->data, LENGTH, 3), LENGTH);
}

TEST_F(bridge, who_is_no_peer_is_told_at_once)
{
	struct h_ticket to = self->host[1].ticket;
	struct h_msg m = { .ticket = &to, .data = "x", .length = 1 };
	int64_t handle;

	to.host = 3;
	handle = h_send(self->host[0].terminus, &m);
	ASSERT_GE(handle, 0);
	EXPECT_EQ(h_send_wait(self->host[0].terminus, handle, H_NOWAIT), -EHOSTUNREACH);
}

TEST_F(bridge, a_wrong_key_opens_nothing)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	struct h_ticket wrong = b->ticket;
	struct hamlyn_stats stats;
	struct hamlyn_nq_entry e;
	struct h_msg m = { .ticket = &wrong, .data = "x", .length = 1 };

	b->data[0] = 0x5a;
	wrong.key ^= 1;
	ASSERT_EQ(ht_send_sync(a->terminus, &m), 1);
	m.ticket = &b->ticket;
	m.offset = 1;
	ASSERT_EQ(ht_send_sync(a->terminus, &m), 1);
	ASSERT_EQ(ht_recv(b->nq, &e), 1);
	EXPECT_EQ(b->data[0], 0x5a);
	EXPECT_EQ(h_recv(b->nq, &e), 0);
	ASSERT_EQ(h_slot_stats(b->slot, &stats), 0);
	EXPECT_EQ(stats.rejects[HAMLYN_REJECT_KEY], 1u);
}

/* Messages of many threads of control: each terminus has its own ring, and its own order. */
TEST_F(bridge, each_terminus_keeps_its_order)
{
	enum { SENDERS = 4, EACH = 200 };	/* the NQ has room for all */
	struct host *b = &self->host[1];
	struct h_ticket fast = b->ticket;
	uint64_t next[SENDERS] = { 0 };
	struct hamlyn_nq_entry e;
	pid_t pid[SENDERS];
	uint64_t i, n;

	fast.meta_index = HAMLYN_META_FAST;
	for (i = 0; i < SENDERS; i++) {
		pid[i] = ht_fork();
		if (!pid[i]) {
			struct h_msg m = { .ticket = &fast };
			struct h_terminus *t;
			struct h_dev *dev;

			if (h_open(self->name[0], &dev) || h_terminus_create(dev, NULL, &t))
				_exit(1);
			for (n = 0; n < EACH; n++) {
				m.word = i << 32 | n;
				if (ht_send(t, &m) < 0)
					_exit(2);
			}
			/* What it has sent does not end with it. */
			_exit(0);
		}
	}
	for (n = 0; n < SENDERS * EACH; n++) {
		ASSERT_EQ(ht_recv(b->nq, &e), 1);
		ASSERT_LT(e.data >> 32, (uint64_t)SENDERS);
		EXPECT_EQ((uint32_t)e.data, next[e.data >> 32]++);
	}
	for (i = 0; i < SENDERS; i++)
		EXPECT_EQ(ht_reap(pid[i]), 0);
}

/* ---- watches ---- */

/* A word of ours to ourselves comes behind all that was told. */
static bool nothing_more(struct host *a)
{
	struct h_ticket fast = a->ticket;
	struct hamlyn_nq_entry e;

	fast.meta_index = HAMLYN_META_FAST;
	return h_send_word(a->terminus, &fast, 99) >= 0 && ht_recv(a->nq, &e) == 1 &&
	       e.flags & HAMLYN_NQE_FAST && e.data == 99;
}

TEST_F(bridge, a_slot_that_is_rekeyed_is_told_of)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	struct h_watch *w[3];

	ASSERT_EQ(h_watch(a->dev, &b->ticket, a->nq, 7, &w[0]), 0);
	ASSERT_EQ(h_watch(a->dev, &b->ticket, a->nq, 8, &w[1]), 0);
	ASSERT_EQ(h_watch(a->dev, &b->ticket, a->nq, 9, &w[2]), 0);
	ASSERT_TRUE(round_trip(a, b));
	ASSERT_EQ(h_unwatch(w[1]), 0);
	ASSERT_TRUE(round_trip(a, b));
	ASSERT_EQ(h_slot_rekey(b->slot), 0);
	ASSERT_EQ(h_slot_ticket(b->slot, 0, 0, 0, &b->ticket), 0);
	EXPECT_TRUE(told_once(a, 7));
	EXPECT_TRUE(told_once(a, 9));
	/* The end of the connection tells nobody a second time. */
	EXPECT_EQ(end(self, 1, SIGKILL), 128 + SIGKILL);
	ASSERT_TRUE(wait_state(a, false));
	EXPECT_TRUE(nothing_more(a));
	ASSERT_EQ(h_unwatch(w[0]), 0);
	ASSERT_EQ(h_unwatch(w[2]), 0);
}

TEST_F(bridge, a_watch_by_a_wrong_key_is_told)
{
	struct host *a = &self->host[0];
	struct h_ticket wrong = self->host[1].ticket;
	struct h_watch *w;

	wrong.key ^= 1;
	ASSERT_EQ(h_watch(a->dev, &wrong, a->nq, 7, &w), 0);
	EXPECT_TRUE(told_once(a, 7));
	EXPECT_TRUE(nothing_more(a));
}

TEST_F(bridge, a_process_that_is_killed_is_told_of)
{
	struct host *a = &self->host[0], there;
	struct h_ticket ticket;
	struct h_watch *w;
	int out[2];
	pid_t pid;

	ASSERT_EQ(pipe(out), 0);
	pid = ht_fork();
	if (!pid) {
		memset(&there, 0, sizeof(there));
		if (open_host(&there, self->name[1], 1) ||
		    ht_write_all(out[1], &there.ticket, sizeof(there.ticket)))
			_exit(1);
		pause();
	}
	ASSERT_EQ(ht_read_all(out[0], &ticket, sizeof(ticket)), 0);
	ASSERT_EQ(h_watch(a->dev, &ticket, a->nq, 5, &w), 0);
	ASSERT_TRUE(round_trip(a, &self->host[1]));
	kill(pid, SIGKILL);
	ht_reap(pid);
	EXPECT_TRUE(told_once(a, 5));
	EXPECT_TRUE(nothing_more(a));
}

static void kill_and_replace(struct __test_metadata *_metadata, FIXTURE_DATA(bridge) *self,
			     int dies)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	struct h_msg m = { .ticket = &b->ticket, .data = "x", .length = 1 };
	struct h_watch *w;
	u32 before = state_of(a), other = state_of(b);

	ASSERT_EQ(h_watch(a->dev, &b->ticket, a->nq, 5, &w), 0);
	ASSERT_TRUE(round_trip(a, b));
	EXPECT_EQ(end(self, dies, SIGKILL), 128 + SIGKILL);
	EXPECT_TRUE(told_once(a, 5));
	/* Nobody is there: it is lost, and so is a watch. */
	EXPECT_EQ(ht_send_sync(a->terminus, &m), 1);
	ASSERT_EQ(h_unwatch(w), 0);
	ASSERT_EQ(h_watch(a->dev, &b->ticket, a->nq, 6, &w), 0);
	EXPECT_TRUE(told_once(a, 6));
	EXPECT_TRUE(nothing_more(a));
	start(self, dies, 1000);
	ASSERT_TRUE(wait_up(self));
	EXPECT_GT((s32)(state_of(a) - before), 0);
	EXPECT_GT((s32)(state_of(b) - other), 0);
	EXPECT_TRUE(round_trip(a, b));
	EXPECT_TRUE(nothing_more(a));
	ASSERT_EQ(h_unwatch(w), 0);
}

TEST_F(bridge, our_bridge_that_is_killed_is_told_of_and_replaced)
{
	kill_and_replace(_metadata, self, 0);
}

TEST_F(bridge, their_bridge_that_is_killed_is_told_of_and_replaced)
{
	kill_and_replace(_metadata, self, 1);
}

/* Whoever sends meanwhile goes on, with what is lost counted as sent. */
static void kill_in_traffic(struct __test_metadata *_metadata, FIXTURE_DATA(bridge) *self,
			    int dies)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	struct h_msg m = { .ticket = &b->ticket, .data = a->data, .length = LENGTH,
			   .flags = HAMLYN_TRB_NO_NOTIFY };
	int64_t end_ns = ht_now_ns() + 300 * HT_MS;
	pid_t killer = ht_fork();

	if (!killer) {
		ht_sleep_ns(30 * HT_MS);
		kill(self->host[dies].bridge, SIGKILL);
		_exit(0);
	}
	while (ht_now_ns() < end_ns) {
		int64_t handle = ht_send(a->terminus, &m);
		int ret;

		ASSERT_GE(handle, 0);
		ret = ht_send_wait(a->terminus, handle);
		/* A part of one may have been for a bridge that was none any more. */
		EXPECT_TRUE(ret == 1 || ret == -ECANCELED);
	}
	ht_reap(killer);
	ht_reap(self->host[dies].bridge);
	start(self, dies, 1000);
	ASSERT_TRUE(wait_up(self));
	EXPECT_TRUE(round_trip(a, b));
}

TEST_F(bridge, a_long_message_survives_our_bridge)
{
	kill_in_traffic(_metadata, self, 0);
}

TEST_F(bridge, a_long_message_survives_their_bridge)
{
	kill_in_traffic(_metadata, self, 1);
}

/* ---- nobody takes anything ---- */

/* Sends until it is refused for long, with the other bridge stopped. Return: how many. */
static int send_until_full(struct host *a, const struct h_msg *m, int most)
{
	int n = 0, refused = 0;

	while (n < most && refused < 200) {
		int64_t handle = h_send(a->terminus, m);

		if (handle >= 0) {
			n++;
			refused = 0;
		} else if (handle == -EAGAIN) {
			refused++;
			ht_sleep_ns(HT_MS);
		} else {
			return -1;
		}
	}
	return n;
}

TEST_F(bridge, a_full_connection_stalls_its_senders_and_goes_on)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	struct h_msg m = { .ticket = &b->ticket, .data = a->data, .length = 60000 };
	struct hamlyn_nq_entry e;
	int i, n;

	/* With more patience. */
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(end(self, i, SIGTERM), 0);
		start(self, i, 600000);
	}
	ASSERT_TRUE(wait_up(self));
	kill(self->host[1].bridge, SIGSTOP);
	ht_fill(a->data, 60000, 5);
	n = send_until_full(a, &m, 900);
	EXPECT_GT(n, 4);
	EXPECT_LT(n, 900);
	/* Also a long one, which does not fit, is refused before its first byte. */
	m.length = LENGTH;
	EXPECT_EQ(h_send(a->terminus, &m), -EAGAIN);
	kill(self->host[1].bridge, SIGCONT);
	for (i = 0; i < n; i++)
		ASSERT_EQ(ht_recv(b->nq, &e), 1);
	EXPECT_EQ(ht_match(b->data, 60000, 5), 60000u);
	/* A megabyte is four times the ring. */
	for (i = 0; i < 20; i++) {
		ht_fill(a->data, LENGTH, 10 + i);
		ASSERT_EQ(ht_send_sync(a->terminus, &m), 1);
		ASSERT_EQ(ht_recv(b->nq, &e), 1);
		EXPECT_EQ(ht_match(b->data, LENGTH, 10 + i), LENGTH);
	}
}

#define WHOLE	(128u << 10)
#define FILLER	4000	/* bytes: so that there is room for little more than WHOLE */

/*
 * What is no longer than that begins only if all of it has room, also where a packet does not fit
 * at the ring's end: then a part of that is left out.
 */
static const char *fill_and_send(struct host *a, const struct h_msg *whole, unsigned int fillers)
{
	struct h_msg filler = *whole;
	int64_t began, handle;

	filler.length = FILLER;
	while (fillers--)
		if (h_send(a->terminus, &filler) < 0)
			return "no filler goes";
	began = ht_now_ns();
	handle = h_send(a->terminus, whole);
	if (ht_now_ns() - began > 3 * HT_SEC)
		return "it waits in the middle";
	if (handle >= 0 ? ht_send_wait(a->terminus, handle) != 1 : handle != -EAGAIN)
		return "it is neither sent nor refused";
	return NULL;
}

TEST_F(bridge, what_has_room_as_a_whole_does_not_wait_in_the_middle)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	struct h_msg m = { .ticket = &b->ticket, .data = a->data, .length = WHOLE,
			   .flags = HAMLYN_TRB_NO_NOTIFY };
	const char *complaint;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		EXPECT_EQ(end(self, (int)i, SIGTERM), 0);
		start(self, (int)i, 600000);
	}
	ASSERT_TRUE(wait_up(self));
	for (i = 0; i < 32; i++) {
		/* Empty again, and elsewhere each time. */
		ASSERT_TRUE(round_trip(a, b));
		kill(a->bridge, SIGSTOP);
		complaint = fill_and_send(a, &m, 29 + i % 3);
		kill(a->bridge, SIGCONT);
		ASSERT_NO(complaint);
	}
	ASSERT_TRUE(round_trip(a, b));
}

TEST_F(bridge, who_takes_nothing_for_too_long_is_dead)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	struct h_msg m = { .ticket = &b->ticket, .data = a->data, .length = LENGTH };
	struct h_watch *w;
	int n = 0;

	ASSERT_EQ(h_watch(a->dev, &b->ticket, a->nq, 5, &w), 0);
	ASSERT_TRUE(round_trip(a, b));
	kill(self->host[1].bridge, SIGSTOP);
	while (shm_peer_up(state_of(a)) && n++ < 1000)
		ASSERT_GE(ht_send(a->terminus, &m), 0);
	EXPECT_FALSE(shm_peer_up(state_of(a)));
	EXPECT_TRUE(told_once(a, 5));
	EXPECT_TRUE(seg_of(a)->bridge.peer[0].reason == HML_WIRE_STALLED ||
		    seg_of(a)->bridge.peer[0].reason == HML_WIRE_SILENT ||
		    seg_of(a)->bridge.peer[0].reason == SHM_PEER_SILENT);
	kill(self->host[1].bridge, SIGCONT);
	ASSERT_TRUE(wait_up(self));
	EXPECT_TRUE(round_trip(a, b));
}

/* A sender that is killed anywhere in here is nobody else's affair. */
TEST_F(bridge, senders_that_are_killed_leave_the_others_working)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	int i;

	for (i = 0; i < 30; i++) {
		pid_t pid = ht_fork();

		if (!pid) {
			struct h_msg m = { .ticket = &b->ticket, .data = "x", .length = 1,
					   .flags = HAMLYN_TRB_NO_NOTIFY };
			struct h_terminus *t;
			struct h_dev *dev;

			if (h_open(self->name[0], &dev) || h_terminus_create(dev, NULL, &t))
				_exit(1);
			for (;;)
				ht_send(t, &m);
		}
		ht_sleep_ns((i % 7 + 1) * HT_MS);
		kill(pid, SIGKILL);
		ht_reap(pid);
		ASSERT_TRUE(round_trip(a, b));
	}
}

/* ---- what is above: the bridge is one way among others ---- */

TEST_F(bridge, programs_see_one_fabric)
{
	struct h_fabric_id id;

	h_dev_fabric(self->host[0].dev, &id);
	EXPECT_TRUE(h_dev_reaches(self->host[1].dev, &id));
}

enum { REQUESTS = 50, REQUEST = 100000 };

/* In a process of its own: asks, looks at the answers, and is killed behind the last one. */
static int ask(const char *device, const char *path)
{
	static unsigned char data[REQUEST];
	struct h_channel *channel;
	struct h_manager *manager;
	struct h_message reply;
	struct h_dev *dev;
	int i;

	if (h_open(device, &dev) || h_manager_create(dev, NULL, &manager) ||
	    h_channel_connect(manager, path, NULL, &channel, ht_patience_ns()))
		return 1;
	for (i = 0; i < REQUESTS; i++) {
		ht_fill(data, REQUEST, i);
		if (h_channel_request(channel, data, REQUEST, &reply, ht_patience_ns()))
			return 2;
		if (reply.length != REQUEST || ht_match(reply.data, REQUEST, i) != REQUEST)
			return 3;
		h_channel_release(channel, &reply);
	}
	return kill(getpid(), SIGKILL);
}

/* Both are on one machine here, so that the name is found; nothing else is but by the bridge. */
TEST_F(bridge, a_channel_crosses)
{
	struct h_channel *channel;
	struct h_message message;
	struct h_listener *l;
	struct h_manager *m;
	char path[120];
	pid_t pid;
	int i;

	snprintf(path, sizeof(path), "/tmp/hamlyn-bridge-%d.sock", getpid());
	ASSERT_EQ(h_manager_create(self->host[1].dev, NULL, &m), 0);
	ASSERT_EQ(h_listener_create(path, NULL, &l), 0);
	pid = ht_fork();
	if (!pid)
		_exit(ask(self->name[0], path));
	ASSERT_EQ(h_channel_accept(l, m, NULL, &channel, ht_patience_ns()), 0);
	for (i = 0; i < REQUESTS; i++) {
		ASSERT_EQ(h_channel_receive(channel, &message, ht_patience_ns()), 0);
		EXPECT_EQ(ht_match(message.data, REQUEST, i), (size_t)REQUEST);
		ASSERT_EQ(h_channel_reply(channel, &message, message.data, message.length,
					  ht_patience_ns()), 0);
		h_channel_release(channel, &message);
	}
	/* The watch tells. */
	i = h_channel_receive(channel, &message, ht_patience_ns());
	EXPECT_LT(i, 0);
	EXPECT_NE(i, -ETIMEDOUT);
	EXPECT_EQ(ht_reap(pid), 128 + SIGKILL);
	h_channel_close(channel, H_NOWAIT);
	h_listener_destroy(l);
	h_manager_destroy(m);
}

/* ---- publishing ---- */

struct run {
	struct h_publisher *publisher;
	pthread_t thread;
	bool stop;
};

static void *run_publisher(void *arg)
{
	struct run *r = arg;

	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
		h_publisher_run(r->publisher, HT_MS);
	return NULL;
}

static int subscribe(const char *device, const char *path, struct h_publisher *publisher,
		     struct h_subscriber **s)
{
	const struct h_subscriber_attr attr = { .device = device };
	struct run r = { .publisher = publisher };
	int err = -pthread_create(&r.thread, NULL, run_publisher, &r);

	if (err)
		return err;
	err = h_subscriber_create(path, &attr, s, ht_patience_ns());
	__atomic_store_n(&r.stop, true, __ATOMIC_RELEASE);
	pthread_join(r.thread, NULL);
	return err;
}

/* All that a NIC has to send passes one ring: short ones fit where long ones do not. */
static void fill_ring(struct h_manager *m, const struct h_datagram_address *to)
{
	static const size_t length[] = { 60000, 1000, 1 };
	static char data[60000];
	size_t i;

	for (i = 0; i < 3; i++)
		while (!h_datagram_send(m, to, 0, data, length[i], NULL, 100 * HT_MS))
			;
}

static bool gets(struct h_publisher *p, struct h_subscriber *s, uint64_t number)
{
	struct h_publication pub;
	struct ht_poll poll;
	uint64_t got;

	ht_poll_begin(&poll);
	do {
		h_publisher_dispatch(p);
		if (h_subscriber_receive(s, &pub, H_NOWAIT))
			continue;
		got = pub.number;
		h_subscriber_release(s, &pub);
		if (got == number)
			return true;
	} while (ht_poll_more(&poll));
	return false;
}

/* The quickest of them: others may want the processor. */
static int64_t publish_beside(struct h_publisher *p, struct h_subscriber *near, int n)
{
	int64_t least = INT64_MAX, begin, took;
	int i;

	for (i = 1; i <= n; i++) {
		begin = ht_now_ns();
		if (h_publisher_send(p, "x", 1, H_NOWAIT))
			return -EIO;
		took = ht_now_ns() - begin;
		least = took < least ? took : least;
		if (!gets(p, near, i))
			return -ENOMSG;
	}
	return least;
}

/* A publisher gives its NIC 10 ms to make room, and that once a second. */
TEST_F(bridge, a_full_connection_holds_up_no_publisher)
{
	struct h_publisher_attr attr = { .device = self->name[0] };
	const struct h_datagram_attr room = { .length = 60000 };
	struct h_publisher_counters c = { 0 };
	struct h_datagram_receiver *receiver;
	struct h_subscriber *near, *far;
	struct h_datagram_address to;
	struct h_publisher *p;
	struct h_manager *m;
	char path[120];
	int64_t took;
	int i;

	for (i = 0; i < 2; i++) {
		EXPECT_EQ(end(self, i, SIGTERM), 0);
		start(self, i, 600000);
	}
	ASSERT_TRUE(wait_up(self));
	snprintf(path, sizeof(path), "/tmp/hamlyn-bridge-%d.sock", getpid());
	ASSERT_EQ(h_publisher_create(path, &attr, &p), 0);
	ASSERT_EQ(subscribe(self->name[0], path, p, &near), 0);
	ASSERT_EQ(subscribe(self->name[1], path, p, &far), 0);
	ASSERT_EQ(h_manager_create(self->host[1].dev, NULL, &m), 0);
	ASSERT_EQ(h_datagram_receiver_create(m, &room, &receiver), 0);
	h_datagram_receiver_address(receiver, &to);
	kill(self->host[1].bridge, SIGSTOP);
	fill_ring(h_publisher_manager(p), &to);
	took = publish_beside(p, near, 20);
	EXPECT_GE(took, 0);
	EXPECT_LT(took, 10 * HT_MS);
	ASSERT_EQ(h_publisher_stats(p, &c), 0);
	EXPECT_EQ(c.lagging, 1);
	kill(self->host[1].bridge, SIGCONT);
	EXPECT_TRUE(gets(p, far, 20));
	h_subscriber_close(near);
	h_subscriber_close(far);
	h_datagram_receiver_destroy(receiver);
	h_manager_destroy(m);
	h_publisher_close(p, H_NOWAIT);
}

/* What its own NIC has begun to send it cannot leave: it begins with nothing that may not fit. */
TEST_F(bridge, a_full_connection_tears_no_message_of_a_channel)
{
	enum { LONG = 3 << 20 };
	const struct h_channel_attr attr = { .buffer_size = 1 << 20, .buffers = 4 };
	struct h_channel *a, *b;
	struct h_manager *m[2];
	struct h_message got;
	char *data = malloc(LONG);
	struct ht_poll poll;
	int i, err;

	for (i = 0; i < 2; i++) {
		EXPECT_EQ(end(self, i, SIGTERM), 0);
		start(self, i, 600000);
		ASSERT_EQ(h_manager_create(self->host[i].dev, NULL, &m[i]), 0);
	}
	ASSERT_TRUE(wait_up(self));
	ASSERT_EQ(h_channel_pair(m[0], m[1], &attr, &a, &b), 0);
	ht_fill(data, LONG, 6);
	kill(self->host[1].bridge, SIGSTOP);
	EXPECT_EQ(h_channel_send(a, data, LONG, ht_patience_ns()), 0);
	memset(data, 0, LONG);
	EXPECT_EQ(h_channel_send(a, data, LONG, 20 * HT_MS), -ETIMEDOUT);
	EXPECT_EQ(h_channel_send(a, data, LONG, H_NOWAIT), -EAGAIN);
	kill(self->host[1].bridge, SIGCONT);
	ht_poll_begin(&poll);
	do {
		h_manager_poll(m[0]);
		err = h_channel_receive(b, &got, HT_MS);
	} while (err == -ETIMEDOUT && ht_poll_more(&poll));
	ASSERT_EQ(err, 0);
	EXPECT_EQ(got.length, (size_t)LONG);
	EXPECT_EQ(ht_match(got.data, got.length, 6), (size_t)LONG);
	h_channel_release(b, &got);
	free(data);
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(h_manager_destroy(m[i]), 0);
}

/* Sent, or refused: nothing is begun that could not be ended at once. */
static bool is_not_given_up(struct h_manager *m, const struct h_datagram_address *to,
			    const void *data, uint32_t length)
{
	int i, err = 0;

	for (i = 0; !err && i < 100; i++)
		err = h_datagram_send(m, to, 0, data, length, NULL, H_NOWAIT);
	return err == -EAGAIN;
}

/* A datagram is one message, and longer than the ring: it is given up, and said to be. */
TEST_F(bridge, a_datagram_is_given_up_in_time)
{
	const struct h_datagram_attr attr = { .length = LENGTH };
	struct h_datagram_receiver *receiver;
	struct h_datagram_address to;
	struct h_manager *m[2];
	int64_t begin;
	int i;

	for (i = 0; i < 2; i++) {
		EXPECT_EQ(end(self, i, SIGTERM), 0);
		start(self, i, 600000);
		ASSERT_EQ(h_manager_create(self->host[i].dev, NULL, &m[i]), 0);
	}
	ASSERT_TRUE(wait_up(self));
	ASSERT_EQ(h_datagram_receiver_create(m[1], &attr, &receiver), 0);
	h_datagram_receiver_address(receiver, &to);
	kill(self->host[1].bridge, SIGSTOP);
	EXPECT_EQ(h_datagram_send(m[0], &to, 0, self->host[0].data, LENGTH, NULL, H_NOWAIT),
		  -EMSGSIZE);
	EXPECT_TRUE(ht_is_explained(self->host[0].dev, "without waiting"));
	/* Until the bridge has no room for it, it takes what is sent. */
	begin = ht_now_ns();
	for (i = 0; i < 100; i++) {
		int err = h_datagram_send(m[0], &to, 0, self->host[0].data, LENGTH, NULL,
					  20 * HT_MS);

		if (!err)
			continue;
		EXPECT_TRUE(err == -ECANCELED || err == -ETIMEDOUT);
		break;
	}
	EXPECT_LT(i, 100);
	EXPECT_TRUE(is_not_given_up(m[0], &to, self->host[0].data, 192 << 10));
	/* It would be 10 s otherwise. */
	EXPECT_LT(ht_now_ns() - begin, 8 * HT_SEC);
	kill(self->host[1].bridge, SIGCONT);
	h_datagram_receiver_destroy(receiver);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(h_manager_destroy(m[i]), 0);
}

/* ---- liars ---- */

TEST_F(bridge, who_does_not_belong_here_is_refused)
{
	struct hml_wire_hello h = hello_of(1);
	int fd;

	h.fabric_id[15] ^= 1;
	EXPECT_EQ(refused_for(self, &h), HML_WIRE_OTHER_FABRIC);
	h = hello_of(2);
	EXPECT_EQ(refused_for(self, &h), HML_WIRE_SAME_HOST);
	h = hello_of(3);
	EXPECT_EQ(refused_for(self, &h), HML_WIRE_OTHER_HOST);
	h = hello_of(1);
	h.least = 2;
	h.greatest = 3;
	EXPECT_EQ(refused_for(self, &h), HML_WIRE_NO_VERSION);
	h = hello_of(1);
	h.packet_size /= 2;
	EXPECT_EQ(refused_for(self, &h), HML_WIRE_OTHER_PACKET);
	fd = call(self);
	ASSERT_EQ(ht_write_all(fd, "GET / HTTP/1.0\r\n\r\n", 18), 0);
	EXPECT_EQ(verdict_of(fd), HML_WIRE_BAD_VERSION);
	close(fd);
	/* None of that has touched the peer that is there. */
	EXPECT_TRUE(round_trip(&self->host[0], &self->host[1]));
	EXPECT_EQ(seg_of(&self->host[1])->bridge.peer[0].connections, 1u);
}

/* Another address of the loopback device is no peer's. */
TEST_F(bridge, a_stranger_is_not_heard)
{
	const struct sockaddr_in from = { .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1) };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(self->port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct hml_wire_hello h = hello_of(3);
	u8 frame[HML_WIRE_MOST_HEADER];
	struct hml_wire_tx tx = { 0 };
	u32 n = hml_wire_pack_hello(&tx, frame, &h);

	ASSERT_EQ(bind(fd, (const void *)&from, sizeof(from)), 0);
	ASSERT_EQ(connect(fd, (void *)&to, sizeof(to)), 0);
	/* It may be closed before that. */
	send(fd, frame, n, MSG_NOSIGNAL);
	EXPECT_EQ(verdict_of(fd), -1);
	close(fd);
	EXPECT_TRUE(round_trip(&self->host[0], &self->host[1]));
}

/* Who knows everything, but is another user: it is closed unread. */
TEST_F(bridge, another_user_of_the_machine_is_no_peer)
{
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs to be root, to be somebody else");
	pid = ht_fork();
	if (!pid) {
		struct hml_wire_hello h = hello_of(1);

		if (setgid(40000) || setuid(40000))
			_exit(2);
		_exit(refused_for(self, &h) != -1);
	}
	EXPECT_EQ(ht_reap(pid), 0);
	EXPECT_TRUE(round_trip(&self->host[0], &self->host[1]));
	EXPECT_EQ(seg_of(&self->host[1])->bridge.peer[0].connections, 1u);
}

/* The kernel has no user for a socket that was closed, but the number of root. */
TEST_F(bridge, a_connection_that_was_closed_is_nobodys)
{
	pid_t pid;
	int fd;

	if (geteuid())
		SKIP(return, "needs to be root, to be somebody else");
	kill(self->host[1].bridge, SIGSTOP);
	pid = ht_fork();
	if (!pid) {
		struct hml_wire_hello h = hello_of(1);
		struct hml_wire_tx tx = { 0 };

		if (setgid(40000) || setuid(40000))
			_exit(2);
		_exit(say_hello(self, &h, &tx) < 0);
	}
	EXPECT_EQ(ht_reap(pid), 0);
	/* Until its end was acknowledged some kernels still know whose it was. */
	ht_sleep_ns(200 * HT_MS);
	kill(self->host[1].bridge, SIGCONT);
	/* What came before this one has been looked at. */
	fd = call(self);
	ASSERT_EQ(ht_write_all(fd, "GET / HTTP/1.0\r\n\r\n", 18), 0);
	EXPECT_EQ(verdict_of(fd), HML_WIRE_BAD_VERSION);
	close(fd);
	EXPECT_TRUE(round_trip(&self->host[0], &self->host[1]));
	EXPECT_EQ(seg_of(&self->host[1])->bridge.peer[0].connections, 1u);
}

/* More than may wait say nothing: whoever is honest gets in all the same. */
TEST_F(bridge, half_open_connections_shut_nobody_out)
{
	int fd[40], i;

	for (i = 0; i < 40; i++)
		fd[i] = call(self);
	EXPECT_EQ(end(self, 0, SIGKILL), 128 + SIGKILL);
	ASSERT_TRUE(wait_state(&self->host[1], false));
	start(self, 0, 1000);
	EXPECT_TRUE(wait_up(self));
	EXPECT_TRUE(round_trip(&self->host[0], &self->host[1]));
	for (i = 0; i < 40; i++)
		close(fd[i]);
}

TEST_F(bridge, nonsense_ends_the_connection)
{
	const struct hamlyn_packet h = { .version = HAMLYN_PACKET_VERSION, .length = 4,
					 .flags = HAMLYN_PACKET_SINGLE };
	const struct hml_wire_origin origin = { 0 };
	struct hml_wire_hello hello = hello_of(1);
	u8 frame[HML_WIRE_MOST_HEADER + 4] = { 0 };
	struct hml_wire_tx tx;
	u64 random = ht_seed();
	u32 n, i;
	int fd;

	/* A frame is missing */
	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	tx.sequence++;
	n = hml_wire_pack_ping(&tx, frame, 1);
	EXPECT_EQ(end_of(fd, frame, n), HML_WIRE_BAD_SEQUENCE);
	/* Of another connection */
	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	tx.epoch++;
	n = hml_wire_pack_ping(&tx, frame, 1);
	EXPECT_EQ(end_of(fd, frame, n), HML_WIRE_BAD_EPOCH);
	/* HELLO again */
	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	n = hml_wire_pack_hello(&tx, frame, &hello);
	EXPECT_EQ(end_of(fd, frame, n), HML_WIRE_BAD_ORDER);
	/* Longer than a packet may be */
	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	n = hml_wire_pack_data(&tx, frame, &h, NULL, &origin);
	/* payload_bytes: what would follow is not looked at */
	frame[6] = SHM_PACKET_SIZE >> 8;
	frame[7] = 1;
	EXPECT_EQ(end_of(fd, frame, n), HML_WIRE_TOO_LONG);
	/* No type */
	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	hml_wire_pack_ping(&tx, frame, 1);
	frame[1] = 77;
	EXPECT_EQ(end_of(fd, frame, 24), HML_WIRE_BAD_TYPE);
	/* Anything */
	for (i = 0; i < 20; i++) {
		fd = impersonate(self, &tx);
		ASSERT_GE(fd, 0);
		hml_wire_pack_data(&tx, frame, &h, NULL, &origin);
		frame[ht_random(&random) % 56] ^= (u8)(1 + ht_random(&random) % 255);
		if (!ht_write_all(fd, frame, sizeof(frame)))
			shutdown(fd, SHUT_WR);
		EXPECT_NE(verdict_of(fd), -2);
		close(fd);
	}
	start(self, 0, 1000);
	ASSERT_TRUE(wait_up(self));
	EXPECT_TRUE(round_trip(&self->host[0], &self->host[1]));
}

/* One user of a peer guesses; the others' packets are served. */
TEST_F(bridge, who_guesses_is_held_back_alone)
{
	struct host *b = &self->host[1];
	struct hamlyn_packet h = {
		.version = HAMLYN_PACKET_VERSION, .flags = HAMLYN_PACKET_SINGLE, .length = 0,
		.slot = b->ticket.slot, .key = b->ticket.key,
	};
	struct hml_wire_origin origin = { .sender = 1 };
	u8 frame[HML_WIRE_MOST_HEADER];
	struct hamlyn_nq_entry e;
	struct hml_wire_tx tx;
	u64 dropped = 0;
	struct ht_poll poll;
	u32 i, n;
	int fd;

	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	for (i = 0; i < 40000; i++) {
		h.key = b->ticket.key + 1 + i;
		n = hml_wire_pack_data(&tx, frame, &h, NULL, &origin);
		ASSERT_EQ(ht_write_all(fd, frame, n), 0);
	}
	origin.sender = 2;
	h.key = b->ticket.key;
	n = hml_wire_pack_data(&tx, frame, &h, NULL, &origin);
	ASSERT_EQ(ht_write_all(fd, frame, n), 0);
	ASSERT_EQ(ht_recv(b->nq, &e), 1);
	EXPECT_EQ(e.source, 1u);
	ht_poll_begin(&poll);
	while (!(dropped = READ_ONCE(seg_of(b)->bridge.peer[0].dropped)) && ht_poll_more(&poll))
		;
	EXPECT_GT(dropped, 0u);
	close(fd);
}

/* Whose connections are closed anyway ends none that waits to be heard. */
TEST_F(bridge, another_user_ends_nobodys_connection)
{
	int fd, n;
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs to be root, to be somebody else");
	fd = call(self);
	ASSERT_GE(fd, 0);
	pid = ht_fork();
	if (!pid) {
		if (setgid(40000) || setuid(40000))
			_exit(2);
		for (n = 0; n < 40; n++) {
			int other = call(self);

			if (other < 0 || verdict_of(other) != -1)
				_exit(3);
			close(other);
		}
		_exit(0);
	}
	EXPECT_EQ(ht_reap(pid), 0);
	ASSERT_EQ(ht_write_all(fd, "GET / HTTP/1.0\r\n\r\n", 18), 0);
	EXPECT_EQ(verdict_of(fd), HML_WIRE_BAD_VERSION);
	close(fd);
}

/* Watches by no key of ours: they are told, and take no room from the segment's own. */
TEST_F(bridge, watches_that_were_told_take_no_room)
{
	enum { THEIRS = 12000, OURS = 6000, GONE_BYTES = 24 };
	struct host *b = &self->host[1];
	struct hml_wire_watch w = { .slot = b->ticket.slot, .key = b->ticket.key + 1,
				    .flags = HAMLYN_WATCH_TICKET };
	u8 frame[HML_WIRE_MOST_CONTROL];
	struct hml_wire_tx tx;
	struct h_watch *watch;
	struct h_nq *nq;
	size_t got = 0;
	ssize_t n;
	int fd, i;

	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	for (w.id = 0; w.id < THEIRS; w.id++)
		ASSERT_EQ(ht_write_all(fd, frame, hml_wire_pack_watch(&tx, frame, &w)), 0);
	while (got < THEIRS * GONE_BYTES) {
		char bytes[4096];

		n = recv(fd, bytes, sizeof(bytes), 0);
		ASSERT_LT(0, n);
		got += (size_t)n;
	}
	ASSERT_EQ(h_nq_create(b->dev, 64, &nq), 0);
	for (i = 0; i < OURS && !h_watch(b->dev, &b->ticket, nq, 1, &watch); i++)
		;
	EXPECT_EQ(i, OURS);
	close(fd);
}

/* As many watches as it likes: more than may be, and the connection ends. */
TEST_F(bridge, a_flood_of_watches_ends_the_connection)
{
	struct host *b = &self->host[1];
	struct hml_wire_watch w = { .slot = b->ticket.slot, .key = b->ticket.key };
	u8 frame[HML_WIRE_MOST_CONTROL];
	struct hml_wire_tx tx;
	u32 n;
	int fd;

	fd = impersonate(self, &tx);
	ASSERT_GE(fd, 0);
	/* Two with one number */
	for (w.id = 0; w.id < 2; w.id++) {
		struct hml_wire_watch same = w;

		same.id = 5;
		n = hml_wire_pack_watch(&tx, frame, &same);
		ASSERT_EQ(ht_write_all(fd, frame, n), 0);
	}
	EXPECT_EQ(verdict_of(fd), HML_WIRE_BAD_LENGTH);
	EXPECT_TRUE(wait_state(b, false));
	close(fd);
	start(self, 0, 1000);
	ASSERT_TRUE(wait_up(self));
	EXPECT_TRUE(round_trip(&self->host[0], b));
}

/* ---- the command line ---- */

static int exit_of(FIXTURE_DATA(bridge) *self, const char *words, char *said, size_t size)
{
	char copy[300], *argv[32] = { self->program }, *rest = copy, *word;
	int out[2], n = 1, ret;
	ssize_t got;
	pid_t pid;

	snprintf(copy, sizeof(copy), "%s", words);
	while ((word = strsep(&rest, " ")) && n < 31)
		argv[n++] = word;
	if (pipe(out))
		return -1;
	pid = run(self->program, argv, out[1]);
	close(out[1]);
	got = read(out[0], said, size - 1);
	said[got < 0 ? 0 : got] = 0;
	ret = ht_reap(pid);
	close(out[0]);
	return ret;
}

TEST_F(bridge, what_is_wrong_is_said)
{
	static const struct {
		const char *words;
		const char *said;
	} wrong[] = {
		{ "", "which device" },
		{ "shm:x", "which host" },
		{ "shm:x --host 1", "which other hosts" },
		{ "shm:x --host 1 --peer 1=127.0.0.1:5", "that is this host" },
		{ "shm:x --host 1 --peer 2=127.0.0.1", "a port is needed" },
		{ "shm:x --host 3 --peer 2=127.0.0.1", "--listen is needed" },
		{ "shm:x --host 1 --peer 2=10.1.1.1:5", "--clear" },
		{ "shm:x --host 1 --peer 2=[::2]:5", "--clear" },
		{ "shm:x --host 1 --peer 2=here:5", "--peer takes" },
		{ "shm:x --host 1 --peer 2=127.0.0.1:99999", "--peer takes" },
		{ "shm:x --host 1 --peer 2=127.0.0.1:5 --peer 2=127.0.0.1:6", "before" },
		{ "shm:x --host -1 --peer 2=127.0.0.1:5", "from 0 to" },
		{ "shm:x --host 1 --peer 2=127.0.0.1:5 --dead-ms 1", "from 10 to" },
		{ "shm:x --host 1 --peer 2=127.0.0.1:5 --id-file /dev/null", "mode 600" },
		{ "shm:x --bad", "no option" },
		{ "shm:x --host", "takes a value" },
	};
	char said[2048], words[300];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		EXPECT_EQ(exit_of(self, wrong[i].words, said, sizeof(said)), 2);
		EXPECT_NE(strstr(said, wrong[i].said), NULL) {
			TH_LOG("%s: %s", wrong[i].words, said);
		}
	}
	EXPECT_EQ(exit_of(self, "--help", said, sizeof(said)), 0);
	/* Of a segment that is there */
	snprintf(words, sizeof(words), "%s --host 7 --peer 8=127.0.0.1:5", self->name[0]);
	EXPECT_EQ(exit_of(self, words, said, sizeof(said)), 1);
	EXPECT_NE(strstr(said, "is host 1 already"), NULL);
	snprintf(words, sizeof(words), "%s --host 1 --peer 8=127.0.0.1:5", self->name[0]);
	EXPECT_EQ(exit_of(self, words, said, sizeof(said)), 1);
	EXPECT_NE(strstr(said, "another fabric"), NULL);
	snprintf(words, sizeof(words), "%s --host 1 --peer 8=127.0.0.1:5 --id-file %s",
		 self->name[0], self->id_file);
	EXPECT_EQ(exit_of(self, words, said, sizeof(said)), 1);
	EXPECT_NE(strstr(said, "has a bridge already"), NULL);
	snprintf(words, sizeof(words), "%s --status", self->name[0]);
	EXPECT_EQ(exit_of(self, words, said, sizeof(said)), 0);
	EXPECT_NE(strstr(said, "host 2 up"), NULL);
}

TEST_HARNESS_MAIN
