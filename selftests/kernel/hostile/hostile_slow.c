// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hosts that take little of what is sent to them: one that is only slow is waited for, one that
 * keeps others waiting is dead. As root, kernel device only.
 */
#include "kselftest_harness.h"
#include "far_host.h"

#define NEED_ROOT	"as root, kernel device"
#define PATIENT_MS	120000	/* for a guest that gets no processor */
#define STALL_MS	2000	/* times the scale */
#define TURN_MS		200	/* the same, between two looks of the slow one */
#define LENGTH		200	/* goes with the work request */
#define COOKIE		7

FIXTURE(hostile_slow) {
	struct hosts h;
	struct ht_pair pair;	/* from host 1, which is taken over, to host 2 */
	struct far far;		/* in its place */
	struct h_terminus *terminus;	/* of host 2 */
	bool there;
};

FIXTURE_SETUP(hostile_slow)
{
	struct ht_pair_attr attr = { .length = 0 };

	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	self->h.dead_ms = PATIENT_MS;
	self->h.stall_ms = STALL_MS * (uint32_t)ht_scale();
	self->far.fd = -1;
	ASSERT_EQ(0, hosts_begin(&self->h));
	nic_use_tx(self->h.host[0].nic);
	nic_use(self->h.host[1].nic);
	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	ASSERT_EQ(0, h_terminus_create(self->pair.rx, NULL, &self->terminus));
	self->there = true;
}

FIXTURE_TEARDOWN(hostile_slow)
{
	if (!self->there)
		return;
	if (self->far.fd >= 0)
		close(self->far.fd);
	ht_pair_close(&self->pair);
	EXPECT_EQ(0, hosts_end(&self->h));
}

/* @receive_bytes: that the socket of host 1 holds; 0: as others */
static int take_over(FIXTURE_DATA(hostile_slow) *self, int receive_bytes)
{
	signal(SIGPIPE, SIG_IGN);
	self->far.receive_bytes = receive_bytes;
	return far_begin(&self->far, &self->h, &self->h.host[0], &self->h.host[1],
			 self->pair.query.packet_size, 0);
}

static struct h_ticket somewhere(FIXTURE_DATA(hostile_slow) *self)
{
	struct h_ticket to = self->pair.ticket;

	to.host = self->h.host[0].id;
	return to;
}

/* Until the work queue is full, which may be because the NIC has no processor. */
static void fill_up(FIXTURE_DATA(hostile_slow) *self)
{
	static const char data[LENGTH];
	const struct h_ticket to = somewhere(self);
	const struct h_msg m = { .ticket = &to, .data = data, .length = sizeof(data) };
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (h_send(self->terminus, &m) >= 0 && ht_poll_more(&poll))
		;
}

/* Until the NIC has no room for what is to go there. */
static bool stalls(FIXTURE_DATA(hostile_slow) *self)
{
	const struct host *own = &self->h.host[1];
	struct ht_poll poll;

	ht_poll_begin(&poll);
	do
		fill_up(self);
	while (!host_peer(&self->h, own, HAMLYN_A_PEER_STALLS) && ht_poll_more(&poll));
	return host_peer(&self->h, own, HAMLYN_A_PEER_STALLS);
}

static bool is_up(FIXTURE_DATA(hostile_slow) *self)
{
	return host_peer(&self->h, &self->h.host[1], HAMLYN_A_PEER_STATE) ==
	       HAMLYN_NL_PEER_STATE_UP;
}

/* Takes @bytes now and then, for so long, and says something: it is there. Return: up still. */
static bool take_slowly(FIXTURE_DATA(hostile_slow) *self, size_t bytes, int64_t ns)
{
	static const uint8_t stamp[8];
	static uint8_t taken[65536];
	int64_t end = ht_now_ns() + ns;

	while (ht_now_ns() < end && is_up(self)) {
		fill_up(self);
		if (recv(self->far.fd, taken, bytes, MSG_DONTWAIT) < 0 && errno != EAGAIN)
			break;
		if (far_say(&self->far, FAR_PONG, stamp, sizeof(stamp)))
			break;
		ht_sleep_ns(TURN_MS * HT_MS * ht_scale());
	}
	return is_up(self);
}

TEST_F(hostile_slow, who_is_slow_is_waited_for)
{
	if (!self->there)
		SKIP(return, NEED_ROOT);
	ASSERT_EQ(0, take_over(self, 65536));
	ASSERT_TRUE(stalls(self));
	EXPECT_TRUE(take_slowly(self, 40000, 2 * self->h.stall_ms * HT_MS));
}

/*
 * Its socket is the smallest that there is: its window opens when that is empty, several times in
 * what it may stand still, and it takes less than a host has to take meanwhile.
 */
TEST_F(hostile_slow, who_takes_a_byte_now_and_then_is_dead)
{
	const struct h_ticket there = somewhere(self);
	const struct h_msg m = { .ticket = &there, .data = "late", .length = 4 };
	struct hamlyn_nq_entry e;
	struct h_watch *w;
	struct h_nq *told;

	if (!self->there)
		SKIP(return, NEED_ROOT);
	ASSERT_EQ(0, take_over(self, 1));
	ASSERT_EQ(0, h_nq_create(self->pair.rx, 64, &told));
	ASSERT_EQ(0, h_watch(self->pair.rx, &there, told, COOKIE, &w));
	EXPECT_FALSE(take_slowly(self, 300, ht_patience_ns() / 4));
	EXPECT_EQ(HAMLYN_NL_PEER_REASON_STALLED,
		  host_peer(&self->h, &self->h.host[1], HAMLYN_A_PEER_REASON));
	/* Who waited is told, and goes on: what is sent now is lost. */
	ASSERT_EQ(1, ht_recv(told, &e));
	EXPECT_TRUE(e.flags & HAMLYN_NQE_PEER_GONE && e.data == COOKIE);
	EXPECT_LE(0, ht_send_sync(self->terminus, &m));
}

TEST_HARNESS_MAIN
