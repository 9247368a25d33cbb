// SPDX-License-Identifier: GPL-2.0-only
/*
 * Between hosts: what there is beside the packets of over_tcp. Watches, peers that come and go, a
 * host that guesses, sends nonsense, or takes nothing. As root, kernel device only.
 */
#include "kselftest_harness.h"
#include "far_host.h"
#include "hosts.h"

#include <poll.h>

#define NEED_ROOT	"as root, kernel device"
#define PATIENT_MS	120000	/* for a guest that gets no processor */
#define WINDOW		1500	/* messages: more than rings and sockets hold */
#define MANY		3000
#define CONNECTIONS	60
#define LEAST_APART_MS	50	/* connections that a host lets in */
#define WATCHES_OF_A_HOST 262144	/* HML_FAR_MOST */
#define RESERVED	700	/* a port that only root may use */
#define RECONNECTS	100	/* $HAMLYN_TEST_RECONNECTS */
#define RESETS		20
#define QUIET_MS	200	/* in which nothing must come */

FIXTURE(hosts) {
	struct hosts h;
	struct ht_pair pair;	/* from host 1 to host 2 */
	struct h_nq *told;	/* host 1 is told of what it watches */
	bool there;
};

FIXTURE_SETUP(hosts)
{
	struct ht_pair_attr attr = { .meta = 4, .nq_entries = 8192 };

	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	self->h.dead_ms = PATIENT_MS;
	self->h.stall_ms = PATIENT_MS;
	self->h.small = true;
	ASSERT_EQ(0, hosts_begin(&self->h));
	nic_use_tx(self->h.host[0].nic);
	nic_use(self->h.host[1].nic);
	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	ASSERT_EQ(0, h_nq_create(self->pair.tx, 64, &self->told));
	ht_fill(self->pair.send, self->pair.send_length, 1);
	self->there = true;
}

FIXTURE_TEARDOWN(hosts)
{
	if (!self->there)
		return;
	ht_pair_close(&self->pair);
	EXPECT_EQ(0, hosts_end(&self->h));
}

#define NEED_HOSTS() do { if (!self->there) SKIP(return, NEED_ROOT); } while (0)

static struct host *sender(FIXTURE_DATA(hosts) *self)
{
	return &self->h.host[0];
}

static struct host *receiver(FIXTURE_DATA(hosts) *self)
{
	return &self->h.host[1];
}

static int watch(FIXTURE_DATA(hosts) *self, uint64_t cookie, struct h_watch **w)
{
	return h_watch(self->pair.tx, &self->pair.ticket, self->told, cookie, w);
}

/* The next that a watch tells: its cookie, or a negative errno. */
static int64_t next_told(FIXTURE_DATA(hosts) *self)
{
	struct hamlyn_nq_entry e;
	int ret = ht_recv(self->told, &e);

	if (ret != 1)
		return ret;
	return e.flags & HAMLYN_NQE_PEER_GONE ? (int64_t)e.data : -EBADMSG;
}

static bool nothing_told(FIXTURE_DATA(hosts) *self)
{
	struct hamlyn_nq_entry e;

	return h_recv_block(self->told, &e, QUIET_MS * HT_MS) == -ETIMEDOUT;
}

/* Until host 1 has told host 2 of so many watches. */
static int await_watched(FIXTURE_DATA(hosts) *self, int64_t number)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (host_peer(&self->h, receiver(self), HAMLYN_A_PEER_WATCHED) != number)
		if (!ht_poll_more(&poll))
			return -ETIMEDOUT;
	return 0;
}

static int send_word(FIXTURE_DATA(hosts) *self, const struct h_ticket *to)
{
	return ht_send_sync(self->pair.terminus,
			    &(struct h_msg) { .ticket = to, .data = "word", .length = 4 });
}

static bool lands(FIXTURE_DATA(hosts) *self)
{
	struct hamlyn_nq_entry e;

	return send_word(self, &self->pair.ticket) == 1 && ht_recv(self->pair.nq, &e) == 1 &&
	       !memcmp(self->pair.data, "word", 4);
}

static void tell_peers(FIXTURE_DATA(hosts) *self)
{
	int i;

	for (i = 0; i < 2; i++)
		printf("# host %d: state %jd reason %jd epoch %jd sent %jd received %jd"
		       " stalls %jd lost %jd\n",
		       i + 1, (intmax_t)host_peer(&self->h, &self->h.host[i], HAMLYN_A_PEER_STATE),
		       (intmax_t)host_peer(&self->h, &self->h.host[i], HAMLYN_A_PEER_REASON),
		       (intmax_t)host_peer(&self->h, &self->h.host[i], HAMLYN_A_PEER_EPOCH),
		       (intmax_t)host_peer(&self->h, &self->h.host[i], HAMLYN_A_PEER_SENT_PACKETS),
		       (intmax_t)host_peer(&self->h, &self->h.host[i],
					   HAMLYN_A_PEER_RECEIVED_PACKETS),
		       (intmax_t)host_peer(&self->h, &self->h.host[i], HAMLYN_A_PEER_STALLS),
		       (intmax_t)host_peer(&self->h, &self->h.host[i], HAMLYN_A_PEER_LOST));
}

/* ---- packets ---- */

TEST_F(hosts, a_message_arrives)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->ticket, .data = p->send, .length = p->length,
			   .meta = "meta", .meta_length = 4 };
	struct hamlyn_nq_entry e;

	NEED_HOSTS();
	ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	ASSERT_EQ(1, ht_recv(p->nq, &e));
	EXPECT_EQ(1, e.source);
	EXPECT_EQ(p->length, ht_match(p->data, p->length, 1));
	EXPECT_EQ(0, memcmp(p->meta->user, "meta", 4));
	EXPECT_TRUE(ht_pair_guarded(p));
}

static int set_adversary(FIXTURE_DATA(hosts) *self, const struct host *own, uint32_t drop,
			 uint32_t corrupt, uint64_t seed)
{
	struct genl *g = &self->h.g;
	struct nlattr *nest;

	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, own->nic);
	nest = genl_put(g, HAMLYN_A_ADVERSARY | NLA_F_NESTED, NULL, 0);
	genl_put_u64(g, HAMLYN_A_ADV_SEED, seed);
	genl_put_u32(g, HAMLYN_A_ADV_DROP, drop);
	genl_put_u32(g, HAMLYN_A_ADV_CORRUPT, corrupt);
	genl_end(g, nest);
	return genl_call(g);
}

/* What it loses does not come, and what it damages is no nonsense to the other host. */
TEST_F(hosts, an_adversary_stands_before_the_network)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->ticket, .data = p->send, .length = 8 };
	struct hamlyn_query query;
	unsigned int i, n;

	NEED_HOSTS();
	ASSERT_EQ(0, set_adversary(self, &self->h.host[0], 1000000, 0, 1));
	ASSERT_EQ(0, h_query(p->tx, &query));
	EXPECT_TRUE(query.fabric & HAMLYN_FABRIC_LOSSY);
	ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	ASSERT_EQ(0, set_adversary(self, &self->h.host[0], 0, 0, 1));
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_TRUE(ht_pair_untouched(p));
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, set_adversary(self, &self->h.host[0], 0, 1000000, i + 1));
		for (n = 0; n < 40; n++) {
			ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
		}
		ASSERT_EQ(0, set_adversary(self, &self->h.host[0], 0, 0, 1));
		/* Some may have come, with a bit of the data wrong, or at another place. */
		EXPECT_LE(0, ht_pair_fence(p));
	}
	EXPECT_TRUE(ht_pair_guarded(p));
	EXPECT_EQ(1, host_peer(&self->h, &self->h.host[1], HAMLYN_A_PEER_EPOCH));
}

/* By the NIC that rejects it, and not by that of the sender, which could tell who guesses. */
TEST_F(hosts, a_rejected_packet_is_counted_where_it_was_rejected)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket wrong = p->ticket;
	struct h_msg m = { .ticket = &wrong, .data = p->send, .length = 8 };
	struct hamlyn_stats before[2], after[2];

	NEED_HOSTS();
	wrong.key ^= 1;
	ASSERT_EQ(0, h_dev_stats(p->tx, &before[0]));
	ASSERT_EQ(0, h_dev_stats(p->rx, &before[1]));
	ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	ASSERT_EQ(0, ht_pair_fence(p));
	ASSERT_EQ(0, h_dev_stats(p->tx, &after[0]));
	ASSERT_EQ(0, h_dev_stats(p->rx, &after[1]));
	EXPECT_EQ(before[0].rejects[HAMLYN_REJECT_KEY], after[0].rejects[HAMLYN_REJECT_KEY]);
	EXPECT_EQ(before[1].rejects[HAMLYN_REJECT_KEY] + 1, after[1].rejects[HAMLYN_REJECT_KEY]);
	/* Also when the host is a peer no more. */
	ASSERT_EQ(0, host_del_peer(&self->h, &self->h.host[1], &self->h.host[0]));
	ASSERT_EQ(0, h_dev_stats(p->rx, &after[1]));
	EXPECT_EQ(before[1].rejects[HAMLYN_REJECT_KEY] + 1, after[1].rejects[HAMLYN_REJECT_KEY]);
}

/* It is a thing of one kernel: neither to send by, nor to watch. */
TEST_F(hosts, a_descriptor_of_a_ticket_is_refused)
{
	struct ht_pair *p = &self->pair;
	struct hamlyn_nq_entry e;
	struct h_watch *w = NULL;
	struct h_ticket ticket;
	struct h_nq *nq;
	int fd;

	NEED_HOSTS();
	ASSERT_EQ(0, h_slot_ticket_fd(p->slot, 0, 0, &fd));
	EXPECT_EQ(-EXDEV, h_terminus_import(p->terminus, fd, &ticket));
	EXPECT_TRUE(ht_is_explained(p->tx, "does not reach host 2"));
	ASSERT_EQ(0, h_nq_create(p->tx, 2, &nq));
	EXPECT_EQ(-EXDEV, h_watch_fd(p->tx, fd, nq, 1, &w));
	EXPECT_TRUE(ht_is_explained(p->tx, "does not reach host 2"));
	EXPECT_EQ(0, h_recv(nq, &e));
	/* On its own host it is good. */
	EXPECT_EQ(0, h_watch_fd(p->rx, fd, p->nq, 2, &w));
	EXPECT_EQ(0, h_unwatch(w));
	close(fd);
}

/* More than any ring holds, in order, and nothing twice: by fast messages that count. */
TEST_F(hosts, in_order_through_full_rings)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket fast = p->ticket;
	struct hamlyn_nq_entry e;
	uint64_t sent = 0, seen = 0, stalls;
	struct h_msg m = { .ticket = &fast, .data = p->send, .length = p->query.packet_size };

	NEED_HOSTS();
	fast.meta_index = HAMLYN_META_FAST;
	while (seen < MANY) {
		m.word = sent;
		if (sent < MANY && sent - seen < WINDOW) {
			if (h_send(p->terminus, &m) >= 0)
				sent++;
			continue;
		}
		ASSERT_EQ(1, ht_recv(p->nq, &e)) {
			tell_peers(self);
		}
		ASSERT_EQ(seen, e.data);
		seen++;
	}
	stalls = (uint64_t)host_peer(&self->h, sender(self), HAMLYN_A_PEER_STALLS);
	/* None where every doorbell gives way to who reads. */
	printf("# %ju stalls\n", (uintmax_t)stalls);
	EXPECT_TRUE(ht_pair_guarded(p));
}

/* The peer is known, but not there: as a NIC that is down. */
TEST_F(hosts, packets_to_a_lost_peer_are_discarded)
{
	struct ht_pair *p = &self->pair;
	struct hamlyn_nq_entry e;

	NEED_HOSTS();
	ASSERT_EQ(0, host_del_peer(&self->h, receiver(self), sender(self)));
	ASSERT_EQ(0, host_await(&self->h, sender(self), HAMLYN_NL_PEER_STATE_IDLE));
	EXPECT_EQ(1, send_word(self, &p->ticket));
	EXPECT_LT(0, host_peer(&self->h, sender(self), HAMLYN_A_PEER_LOST));
	EXPECT_EQ(-ETIMEDOUT, h_recv_block(p->nq, &e, QUIET_MS * HT_MS));
	/* It comes back, and what was lost does not. */
	ASSERT_EQ(0, host_add_peer(&self->h, receiver(self), sender(self)));
	ASSERT_EQ(0, host_await(&self->h, sender(self), HAMLYN_NL_PEER_STATE_UP));
	ASSERT_EQ(0, host_await(&self->h, receiver(self), HAMLYN_NL_PEER_STATE_UP));
	EXPECT_TRUE(lands(self));
	EXPECT_EQ(0, h_recv(p->nq, &e));
}

TEST_F(hosts, a_host_that_is_no_peer_is_unreachable)
{
	struct h_ticket k = self->pair.ticket;

	NEED_HOSTS();
	k.host = 3;
	EXPECT_EQ(-EHOSTUNREACH, send_word(self, &k));
	ASSERT_EQ(0, host_del_peer(&self->h, sender(self), receiver(self)));
	EXPECT_EQ(-EHOSTUNREACH, send_word(self, &self->pair.ticket));
}

/* ---- watches ---- */

TEST_F(hosts, a_watch_is_told_when_the_slot_goes)
{
	struct h_watch *w;

	NEED_HOSTS();
	ASSERT_EQ(0, watch(self, 7, &w));
	ASSERT_EQ(0, await_watched(self, 1));
	EXPECT_TRUE(nothing_told(self));
	ASSERT_EQ(0, h_slot_destroy(self->pair.slot));
	EXPECT_EQ(7, next_told(self));
	EXPECT_TRUE(nothing_told(self));
	EXPECT_EQ(0, h_unwatch(w));
	EXPECT_EQ(0, await_watched(self, 0));
}

TEST_F(hosts, a_watch_is_told_when_the_slot_is_rekeyed)
{
	struct h_watch *w[2];

	NEED_HOSTS();
	ASSERT_EQ(0, watch(self, 1, &w[0]));
	ASSERT_EQ(0, await_watched(self, 1));
	ASSERT_EQ(0, h_slot_rekey(self->pair.slot));
	EXPECT_EQ(1, next_told(self));
	/* By the old key there is nothing to watch. */
	ASSERT_EQ(0, watch(self, 2, &w[1]));
	EXPECT_EQ(2, next_told(self));
	EXPECT_TRUE(nothing_told(self));
}

TEST_F(hosts, a_watch_with_a_wrong_key_is_told_as_if_the_slot_were_gone)
{
	struct h_ticket k = self->pair.ticket;
	struct ht_rejects rejects;
	struct h_watch *w;

	NEED_HOSTS();
	k.key++;
	ASSERT_EQ(0, h_watch(self->pair.tx, &k, self->told, 9, &w));
	EXPECT_EQ(9, next_told(self));
	/* And the slot's owner knows. */
	ASSERT_EQ(0, ht_pair_rejects(&self->pair, &rejects));
	EXPECT_EQ(1, rejects.slot[HAMLYN_REJECT_KEY]);
}

/* Many more than are told in one go, at once. */
TEST_F(hosts, a_slot_with_many_watchers_is_told_of_to_all)
{
	struct h_nq *nq;
	struct h_watch *w;
	struct hamlyn_nq_entry e;
	int i;

	NEED_HOSTS();
	ASSERT_EQ(0, h_nq_create(self->pair.tx, 2048, &nq));
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(0, h_watch(self->pair.tx, &self->pair.ticket, nq, 1, &w));
	ASSERT_EQ(0, await_watched(self, 1000));
	ASSERT_EQ(0, h_slot_destroy(self->pair.slot));
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(1, ht_recv(nq, &e));
}

TEST_F(hosts, every_watch_is_told_once_when_the_host_is_lost)
{
	struct h_watch *w[40];
	uint64_t seen = 0;
	int i;

	NEED_HOSTS();
	for (i = 0; i < 40; i++)
		ASSERT_EQ(0, watch(self, (uint64_t)i, &w[i]));
	ASSERT_EQ(0, await_watched(self, 40));
	/* One was told before. */
	ASSERT_EQ(0, host_del_peer(&self->h, receiver(self), sender(self)));
	for (i = 0; i < 40; i++)
		seen |= 1ull << next_told(self);
	EXPECT_EQ((1ull << 40) - 1, seen);
	EXPECT_TRUE(nothing_told(self));
	/* While it is away, at once; and when it is back, nobody again. */
	ASSERT_EQ(0, host_await(&self->h, sender(self), HAMLYN_NL_PEER_STATE_IDLE));
	ASSERT_EQ(0, h_unwatch(w[0]));
	ASSERT_EQ(0, watch(self, 50, &w[0]));
	EXPECT_EQ(50, next_told(self));
	ASSERT_EQ(0, host_add_peer(&self->h, receiver(self), sender(self)));
	ASSERT_EQ(0, host_await(&self->h, sender(self), HAMLYN_NL_PEER_STATE_UP));
	EXPECT_TRUE(nothing_told(self));
}

TEST_F(hosts, a_watch_that_has_ended_is_not_told)
{
	struct h_watch *w;
	int i;

	NEED_HOSTS();
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, watch(self, 1, &w));
		ASSERT_EQ(0, h_unwatch(w));
	}
	EXPECT_EQ(0, await_watched(self, 0));
	ASSERT_EQ(0, h_slot_destroy(self->pair.slot));
	EXPECT_TRUE(nothing_told(self));
	EXPECT_EQ(0, host_peer(&self->h, sender(self), HAMLYN_A_PEER_WATCHES));
}

TEST_F(hosts, who_watches_may_be_gone_first)
{
	struct h_watch *w;

	NEED_HOSTS();
	ASSERT_EQ(0, watch(self, 1, &w));
	ASSERT_EQ(0, await_watched(self, 1));
	h_close(self->pair.tx);
	self->pair.tx = NULL;
	EXPECT_EQ(0, await_watched(self, 0));
}

/* So many watches on one slot: 0, or a negative errno. */
static int watch_often(struct h_dev *dev, const struct h_ticket *ticket, struct h_nq *nq, int times)
{
	struct h_watch *w;
	int ret = 0;

	while (!ret && times--)
		ret = h_watch(dev, ticket, nq, 1, &w);
	return ret;
}

/*
 * One host may have a number of watches on another. Also who may exceed a user's limit gets
 * no more of them than a half, so that others have theirs.
 */
TEST_F(hosts, watches_on_a_host_are_shared)
{
	struct h_dev *dev[4];
	struct h_nq *nq;
	int ret = -ENOSPC, n;
	pid_t pid;

	NEED_HOSTS();
	/* As many as their contexts hold, one after the other. */
	for (n = 0; n < 4 && ret == -ENOSPC; n++) {
		ASSERT_EQ(0, h_open(getenv("HAMLYN_TX_DEVICE"), &dev[n]));
		ASSERT_EQ(0, h_nq_create(dev[n], 64, &nq));
		ret = watch_often(dev[n], &self->pair.ticket, nq, WATCHES_OF_A_HOST);
	}
	ASSERT_EQ(-EDQUOT, ret);
	EXPECT_TRUE(ht_is_explained(dev[n - 1], "share"));
	EXPECT_LT(WATCHES_OF_A_HOST / 4,
		  host_peer(&self->h, sender(self), HAMLYN_A_PEER_WATCHES));
	pid = ht_fork();
	if (!pid) {
		if (setgid(65533) || setuid(65533) ||
		    h_open(getenv("HAMLYN_TX_DEVICE"), &dev[0]) || h_nq_create(dev[0], 64, &nq))
			_exit(1);
		_exit(-watch_often(dev[0], &self->pair.ticket, nq, 1024));
	}
	EXPECT_EQ(0, ht_reap(pid));
	while (n)
		h_close(dev[--n]);
}

/* ---- guesses ---- */

/* One user of the other host guesses; its packets are dropped, and others' are not. */
TEST_F(hosts, a_guesser_does_not_shut_out_its_host)
{
	struct ht_rejects rejects;
	struct h_ticket k = self->pair.ticket;
	int64_t dropped = 0;
	struct ht_poll poll;
	pid_t pid;
	int i;

	NEED_HOSTS();
	ASSERT_EQ(0, nic_set(&self->h.g, receiver(self)->nic, HAMLYN_A_GUESSES, 10));
	pid = ht_fork();
	if (!pid) {
		struct h_terminus *t;
		struct h_dev *dev;

		k.key++;
		if (setuid(4242) || h_open(getenv("HAMLYN_TX_DEVICE"), &dev) ||
		    h_terminus_create(dev, NULL, &t))
			_exit(1);
		for (i = 0; i < 2000; i++)
			ht_send(t, &(struct h_msg) { .ticket = &k, .data = "x", .length = 1 });
		_exit(0);
	}
	ASSERT_EQ(0, ht_reap(pid));
	ht_poll_begin(&poll);
	while (!dropped && ht_poll_more(&poll))
		dropped = host_peer(&self->h, receiver(self), HAMLYN_A_PEER_DROPPED);
	EXPECT_LT(0, dropped);
	EXPECT_TRUE(lands(self));
	ASSERT_EQ(0, ht_pair_rejects(&self->pair, &rejects));
	/* A second's worth, and what refilled meanwhile: far from all of them. */
	EXPECT_LT(rejects.slot[HAMLYN_REJECT_KEY], 1500);
}

/* Its watches wait until it may try keys again: it is not told that a slot is gone. */
TEST_F(hosts, a_watch_that_is_held_back_is_tried_later)
{
	struct h_ticket k = self->pair.ticket;
	struct h_watch *w;
	int i;

	NEED_HOSTS();
	ASSERT_EQ(0, nic_set(&self->h.g, receiver(self)->nic, HAMLYN_A_GUESSES, 2));
	k.key++;
	for (i = 0; i < 4; i++)
		ASSERT_EQ(1, send_word(self, &k));
	/* Behind those, by the right key. */
	ASSERT_EQ(0, watch(self, 5, &w));
	ASSERT_EQ(0, await_watched(self, 1));
	EXPECT_TRUE(nothing_told(self));
	/* Tried when the bucket is no longer empty, whatever has become of the slot. */
	ASSERT_EQ(0, h_slot_destroy(self->pair.slot));
	EXPECT_EQ(5, next_told(self));
	EXPECT_TRUE(nothing_told(self));
}

/* A key that was right when it watched is late, and no guess. */
TEST_F(hosts, late_keys_are_no_guesses)
{
	struct h_watch *w;
	int i;

	NEED_HOSTS();
	ASSERT_EQ(0, nic_set(&self->h.g, receiver(self)->nic, HAMLYN_A_GUESSES, 10));
	ASSERT_EQ(0, watch(self, 1, &w));
	ASSERT_EQ(0, await_watched(self, 1));
	ASSERT_EQ(0, h_slot_rekey(self->pair.slot));
	for (i = 0; i < 500; i++)
		ASSERT_EQ(1, send_word(self, &self->pair.ticket));
	ASSERT_EQ(0, h_slot_ticket(self->pair.slot, 0, 0, 0, &self->pair.ticket));
	EXPECT_TRUE(lands(self));
	EXPECT_EQ(0, host_peer(&self->h, receiver(self), HAMLYN_A_PEER_DROPPED));
}

/* ---- strangers, and hosts that lie ---- */

/* Is the connection closed, before or after it said something? */
static bool is_closed(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	char bytes[256];
	ssize_t n;

	while (poll(&pollfd, 1, (int)(ht_patience_ns() / HT_MS)) == 1) {
		n = read(fd, bytes, sizeof(bytes));
		if (n <= 0)
			return true;
	}
	return false;
}

TEST_F(hosts, a_stranger_is_not_heard)
{
	char bytes[256];
	int fd;

	NEED_HOSTS();
	fd = far_connect(0x7f000009, RESERVED, receiver(self));
	ASSERT_LE(0, fd);
	/* It is told nothing, not even a greeting. */
	EXPECT_GE(0, read(fd, bytes, sizeof(bytes)));
	close(fd);
	EXPECT_TRUE(lands(self));
}

/* Not even of a peer: whoever may connect from its address is not the peer. */
TEST_F(hosts, a_user_of_a_host_is_not_the_host)
{
	char bytes[256];
	int64_t epoch;
	int fd, i;

	NEED_HOSTS();
	epoch = host_peer(&self->h, receiver(self), HAMLYN_A_PEER_EPOCH);
	for (i = 0; i < 20; i++) {
		fd = far_connect(sender(self)->address, 0, receiver(self));
		ASSERT_LE(0, fd);
		EXPECT_GE(0, read(fd, bytes, sizeof(bytes)));
		close(fd);
	}
	EXPECT_TRUE(lands(self));
	EXPECT_EQ(epoch, host_peer(&self->h, receiver(self), HAMLYN_A_PEER_EPOCH));
}

/* Two that connect from one address could not be told apart. */
TEST_F(hosts, an_address_is_of_one_peer_that_connects)
{
	struct host other = { .id = 0, .address = 0x7f000001 };

	NEED_HOSTS();
	EXPECT_EQ(-EADDRINUSE, host_add_peer(&self->h, receiver(self), &other));
	EXPECT_TRUE(strstr(self->h.g.text, "address"));
}

/* What is the host itself ends its own connection at most; it comes again. */
TEST_F(hosts, nonsense_ends_a_connection_and_nothing_else)
{
	uint64_t random = ht_seed();
	uint64_t words[64];
	size_t i;
	int fd, n;

	NEED_HOSTS();
	for (n = 0; n < 5; n++) {
		fd = far_connect(sender(self)->address, (uint16_t)(RESERVED + n), receiver(self));
		ASSERT_LE(0, fd);
		for (i = 0; i < 64; i++)
			words[i] = ht_random(&random);
		if (write(fd, words, sizeof(words)) < 0)
			TH_LOG("closed already");
		EXPECT_TRUE(is_closed(fd));
		close(fd);
	}
	ASSERT_EQ(0, host_await(&self->h, sender(self), HAMLYN_NL_PEER_STATE_UP));
	ASSERT_EQ(0, host_await(&self->h, receiver(self), HAMLYN_NL_PEER_STATE_UP));
	EXPECT_TRUE(lands(self));
}

/* ---- coming and going ---- */

static long reconnections(void)
{
	const char *number = getenv("HAMLYN_TEST_RECONNECTS");

	return number ? atol(number) : RECONNECTS;
}

TEST_F_TIMEOUT(hosts, reconnections, 7200)
{
	long i, n = reconnections();

	NEED_HOSTS();
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, host_del_peer(&self->h, sender(self), receiver(self)));
		ASSERT_EQ(0, host_add_peer(&self->h, sender(self), receiver(self)));
		ASSERT_EQ(0, host_await(&self->h, sender(self), HAMLYN_NL_PEER_STATE_UP));
	}
	ASSERT_EQ(0, host_await(&self->h, receiver(self), HAMLYN_NL_PEER_STATE_UP));
	EXPECT_TRUE(lands(self));
}

/* Until host 1 has a connection after that one, and host 2 knows. */
static int await_after(FIXTURE_DATA(hosts) *self, int64_t epoch)
{
	return host_await_after(&self->h, sender(self), epoch) ?:
	       host_await(&self->h, receiver(self), HAMLYN_NL_PEER_STATE_UP);
}

/*
 * Somebody on the way resets the connection: what was under way may be lost, the watch is told
 * once, and there is another connection.
 */
TEST_F(hosts, a_connection_that_is_reset_comes_again)
{
	struct ht_poll poll;
	struct h_watch *w;
	int64_t epoch;
	int i, raw;

	NEED_HOSTS();
	raw = far_open_raw();
	ASSERT_LE(0, raw);
	for (i = 0; i < RESETS; i++) {
		epoch = host_peer(&self->h, sender(self), HAMLYN_A_PEER_EPOCH);
		ASSERT_EQ(0, watch(self, (uint64_t)i, &w));
		ASSERT_EQ(0, await_watched(self, 1));
		/* It may be late: then its number is not what is expected any more. */
		ht_poll_begin(&poll);
		while (host_peer(&self->h, sender(self), HAMLYN_A_PEER_WATCHES) &&
		       ht_poll_more(&poll)) {
			send_word(self, &self->pair.ticket);
			far_reset_seen(raw);
		}
		ASSERT_EQ(i, next_told(self));
		ASSERT_EQ(0, h_unwatch(w));
		ASSERT_EQ(0, await_after(self, epoch));
		ASSERT_TRUE(lands(self));
	}
	EXPECT_TRUE(nothing_told(self));
	close(raw);
}

/* All that has been sent to a host that is none of ours, and was read by it. */
static bool reads_all(int fd, uint64_t bytes)
{
	char buffer[4096];
	struct ht_poll poll;
	uint64_t got = 0;
	ssize_t n;

	ht_poll_begin(&poll);
	while (got < bytes && ht_poll_more(&poll)) {
		n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n > 0)
			got += (uint64_t)n;
	}
	return got >= bytes;
}

/* It reads nothing for a while: who sends is set aside, and goes on. */
TEST_F(hosts, who_sends_to_a_slow_reader_waits)
{
	static const char data[256];
	struct h_ticket to = self->pair.ticket;
	struct h_msg m = { .ticket = &to, .data = data, .length = sizeof(data) };
	struct h_terminus *t;
	struct ht_poll poll;
	uint64_t sent = 0;
	int64_t epoch;
	int fd;

	NEED_HOSTS();
	epoch = host_peer(&self->h, receiver(self), HAMLYN_A_PEER_EPOCH);
	ASSERT_EQ(0, host_del_peer(&self->h, sender(self), receiver(self)));
	fd = far_connect(sender(self)->address, RESERVED, receiver(self));
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, far_greet(fd, &self->h, sender(self), self->pair.query.packet_size));
	ASSERT_EQ(0, host_await_after(&self->h, receiver(self), epoch));
	ASSERT_EQ(0, h_terminus_create(self->pair.rx, NULL, &t));
	to.host = sender(self)->id;
	ht_poll_begin(&poll);
	while (host_peer(&self->h, receiver(self), HAMLYN_A_PEER_STALLS) <= 0 &&
	       ht_poll_more(&poll))
		sent += h_send(t, &m) >= 0;
	EXPECT_LT(0, host_peer(&self->h, receiver(self), HAMLYN_A_PEER_STALLS));
	EXPECT_TRUE(reads_all(fd, sent * (FAR_HEADER + FAR_DATA + sizeof(data))));
	EXPECT_EQ(HAMLYN_NL_PEER_STATE_UP,
		  host_peer(&self->h, receiver(self), HAMLYN_A_PEER_STATE));
	EXPECT_EQ(0, host_peer(&self->h, receiver(self), HAMLYN_A_PEER_LOST));
	close(fd);
	ASSERT_EQ(0, host_add_peer(&self->h, sender(self), receiver(self)));
	ASSERT_EQ(0, host_await(&self->h, sender(self), HAMLYN_NL_PEER_STATE_UP));
	ASSERT_EQ(0, host_await(&self->h, receiver(self), HAMLYN_NL_PEER_STATE_UP));
	EXPECT_TRUE(lands(self));
}

/* Has it been greeted, before it was closed? */
static bool is_greeted(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&pollfd, 1, (int)(ht_patience_ns() / HT_MS)) == 1 && read(fd, &byte, 1) == 1;
}

/* Whoever connects from a peer's place without end is let in no oftener than a peer would be. */
TEST_F(hosts, who_connects_without_end_is_let_in_now_and_then)
{
	int64_t begin = ht_now_ns();
	int greeted = 0, fd[CONNECTIONS], i;

	NEED_HOSTS();
	ASSERT_EQ(0, host_del_peer(&self->h, sender(self), receiver(self)));
	for (i = 0; i < CONNECTIONS; i++) {
		fd[i] = far_connect(sender(self)->address, (uint16_t)(RESERVED + i),
				    receiver(self));
		ASSERT_LE(0, fd[i]);
	}
	for (i = 0; i < CONNECTIONS; i++) {
		greeted += is_greeted(fd[i]);
		close(fd[i]);
	}
	EXPECT_LT(0, greeted);
	EXPECT_LE(greeted, 1 + (ht_now_ns() - begin) / (LEAST_APART_MS * HT_MS));
	ASSERT_EQ(0, host_add_peer(&self->h, sender(self), receiver(self)));
	ASSERT_EQ(0, host_await(&self->h, sender(self), HAMLYN_NL_PEER_STATE_UP));
	ASSERT_EQ(0, host_await(&self->h, receiver(self), HAMLYN_NL_PEER_STATE_UP));
	EXPECT_TRUE(lands(self));
}

/* Of a namespace that has ended, where others had them open: they are in the first one now. */
static int delete_at_home(const struct host *gone)
{
	int ret, fd = open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC);
	struct genl g;

	if (fd < 0 || setns(fd, CLONE_NEWNET) ||
	    genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return -errno;
	ret = nic_delete_soon(&g, gone[0].nic) ?: nic_delete_soon(&g, gone[1].nic);
	genl_close(&g);
	close(fd);
	return ret;
}

/*
 * Hosts of a namespace that ends while this process sends: it has left the namespace, and what it
 * has open stays open. Return: 0 if its watch is told, once.
 */
static int send_while_the_namespace_ends(int ready)
{
	struct hosts other = { .dead_ms = PATIENT_MS, .stall_ms = PATIENT_MS };
	struct ht_pair_attr attr = { .meta = 4, .nq_entries = 64 };
	struct hamlyn_nq_entry e;
	struct ht_poll poll;
	struct ht_pair pair;
	const struct h_msg word = { .ticket = &pair.ticket, .data = "word", .length = 4 };
	struct h_watch *w;
	struct h_nq *told;

	if (hosts_begin(&other))
		return 1;
	nic_use_tx(other.host[0].nic);
	nic_use(other.host[1].nic);
	if (ht_pair_open(&pair, &attr) || h_nq_create(pair.tx, 64, &told) ||
	    h_watch(pair.tx, &pair.ticket, told, 7, &w))
		return 2;
	if (h_recv_block(told, &e, QUIET_MS * HT_MS) != -ETIMEDOUT)
		return 3;
	if (write(ready, other.host, sizeof(other.host)) != sizeof(other.host))
		return 4;
	/* It keeps the namespace. */
	genl_close(&other.g);
	if (unshare(CLONE_NEWNET))
		return 5;
	ht_poll_begin(&poll);
	while (!h_recv(told, &e)) {
		h_send(pair.terminus, &word);
		if (!ht_poll_more(&poll))
			return 6;
	}
	if (!(e.flags & HAMLYN_NQE_PEER_GONE) || e.data != 7)
		return 7;
	/* Packets are lost now, and that is no error. */
	ht_send_sync(pair.terminus,
		     &(struct h_msg) { .ticket = &pair.ticket, .data = "word", .length = 4 });
	if (h_recv_block(told, &e, QUIET_MS * HT_MS) != -ETIMEDOUT)
		return 8;
	ht_pair_close(&pair);
	return delete_at_home(other.host) ? 9 : 0;
}

/* A NIC that is in use stays, elsewhere; its peers, and its sockets, go with its namespace. */
TEST_F(hosts, a_namespace_ends_in_traffic)
{
	struct host gone[2];
	int ready[2], i;
	pid_t pid;

	NEED_HOSTS();
	ASSERT_EQ(0, pipe(ready));
	pid = ht_fork();
	if (!pid)
		_exit(send_while_the_namespace_ends(ready[1]));
	ASSERT_EQ(0, ht_read_all(ready[0], gone, sizeof(gone)));
	EXPECT_EQ(0, ht_reap(pid));
	EXPECT_TRUE(lands(self));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, nic_is_gone_soon(&self->h.g, gone[i].nic));
}

TEST_HARNESS_MAIN
