// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets that come from another host in pieces, in whatever buffers TCP has them: they are whole,
 * or nothing of them is. The other host is the test's own socket. As root, kernel device only.
 */
#include "kselftest_harness.h"
#include "far_host.h"
#include "hosts.h"

#define NEED_ROOT	"as root, kernel device"
#define PATIENT_MS	120000	/* for a guest that gets no processor */
#define RESERVED	700	/* a port that only root may use */
#define TYPE_DATA	2
#define AT_ONCE		4	/* packets; the message area has room for so many */
#define ROUNDS		100
#define FRAME		(FAR_HEADER + FAR_DATA)

FIXTURE(pieces) {
	struct hosts h;
	struct ht_pair pair;
	uint8_t *frames;
	uint32_t packet, sequence;
	uint64_t random, sent;
	int64_t epoch;
	int fd;			/* host 1 */
	bool there;
};

/* Host 1 is taken over. */
static int take_over(FIXTURE_DATA(pieces) *self)
{
	struct host *own = &self->h.host[0], *to = &self->h.host[1];
	int ret;

	self->epoch = host_peer(&self->h, to, HAMLYN_A_PEER_EPOCH);
	ret = host_del_peer(&self->h, own, to);
	if (ret)
		return ret;
	self->fd = far_connect(own->address, RESERVED, to);
	if (self->fd < 0)
		return self->fd;
	return far_greet(self->fd, &self->h, own, self->packet) ?:
	       host_await_after(&self->h, to, self->epoch);
}

FIXTURE_SETUP(pieces)
{
	struct ht_pair_attr attr = { .length = 0 };

	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	self->h.dead_ms = PATIENT_MS;
	self->h.stall_ms = PATIENT_MS;
	self->random = ht_seed();
	ASSERT_EQ(0, hosts_begin(&self->h));
	nic_use_tx(self->h.host[0].nic);
	nic_use(self->h.host[1].nic);
	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->packet = self->pair.query.packet_size;
	self->frames = malloc(AT_ONCE * (FRAME + (size_t)self->packet));
	ASSERT_NE(NULL, self->frames);
	ASSERT_EQ(0, take_over(self));
	self->there = true;
}

FIXTURE_TEARDOWN(pieces)
{
	if (!self->there)
		return;
	close(self->fd);
	free(self->frames);
	ht_pair_close(&self->pair);
	EXPECT_EQ(0, hosts_end(&self->h));
}

#define NEED_HOSTS() do { if (!self->there) SKIP(return, NEED_ROOT); } while (0)

/* A message of one packet, filled by ht_fill() with @seed. Return: behind it */
static uint8_t *put_packet(FIXTURE_DATA(pieces) *self, uint8_t *p, uint64_t offset,
			   uint32_t length, uint64_t seed)
{
	p = far_put(p, 1, 1);			/* version */
	p = far_put(p, TYPE_DATA, 1);
	p = far_put(p, FAR_DATA, 2);
	p = far_put(p, length, 4);
	p = far_put(p, 1, 4);			/* epoch */
	p = far_put(p, ++self->sequence, 4);
	p = far_put(p, HAMLYN_PACKET_SINGLE, 2);
	p = far_put(p, 0, 2);			/* metadata */
	p = far_put(p, self->pair.ticket.slot, 4);
	p = far_put(p, 0, 4);			/* metadata entry */
	p = far_put(p, 0, 4);			/* delta */
	p = far_put(p, self->pair.ticket.key, 8);
	p = far_put(p, offset, 8);
	p = far_put(p, 1, 4);			/* sender */
	p = far_put(p, 1, 4);			/* user */
	ht_fill(p, length, seed);
	return p + length;
}

static int send_bytes(FIXTURE_DATA(pieces) *self, const uint8_t *from, size_t n)
{
	self->sent += n;
	return ht_write_all(self->fd, from, n);
}

/* Now in one go, now in pieces of any length. */
static int send_in_pieces(FIXTURE_DATA(pieces) *self, const uint8_t *from, const uint8_t *end)
{
	static const uint32_t most[] = { 1 << 20, 20000, 5000, 300, 17 };
	uint32_t some = most[ht_random(&self->random) % (sizeof(most) / sizeof(*most))];

	while (from < end) {
		size_t left = (size_t)(end - from), n = 1 + ht_random(&self->random) % some;

		if (n > left || some == most[0])
			n = left;
		if (send_bytes(self, from, n))
			return -1;
		from += n;
	}
	return 0;
}

/* Until host 2 has read all that was sent. */
static int await_read(FIXTURE_DATA(pieces) *self, int64_t before)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (host_peer(&self->h, &self->h.host[1], HAMLYN_A_PEER_RECEIVED_BYTES) <
	       before + (int64_t)self->sent)
		if (!ht_poll_more(&poll))
			return -ETIMEDOUT;
	return 0;
}

static int64_t told(FIXTURE_DATA(pieces) *self, uint16_t attr)
{
	return host_peer(&self->h, &self->h.host[1], attr);
}

/* Until host 2 has looked at a packet after @before. */
static int await_packet(FIXTURE_DATA(pieces) *self, int64_t before)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (told(self, HAMLYN_A_PEER_RECEIVED_PACKETS) == before)
		if (!ht_poll_more(&poll))
			return -ETIMEDOUT;
	return 0;
}

/* Packets of a round: each in its part of the message area. */
static const char *pass_round(FIXTURE_DATA(pieces) *self, uint32_t seed)
{
	uint32_t offset[AT_ONCE], length[AT_ONCE], i;
	struct ht_pair *pair = &self->pair;
	uint8_t *end = self->frames;
	struct hamlyn_nq_entry e;

	for (i = 0; i < AT_ONCE; i++) {
		uint32_t most = ht_random(&self->random) % 4 ? self->packet : 100;

		length[i] = (uint32_t)(ht_random(&self->random) % (most + 1));
		offset[i] = i * self->packet;
		offset[i] += (uint32_t)(ht_random(&self->random) % (self->packet - length[i] + 1));
		end = put_packet(self, end, offset[i], length[i], seed + i);
	}
	if (send_in_pieces(self, self->frames, end))
		return "cannot send";
	for (i = 0; i < AT_ONCE; i++) {
		if (ht_recv(pair->nq, &e) != 1)
			return "nothing comes";
		if (e.length != length[i])
			return "another length";
		if (ht_match(pair->data + offset[i], length[i], seed + i) != length[i])
			return "other bytes";
	}
	return ht_pair_guarded(pair) ? NULL : "bytes beside it";
}

TEST_F(pieces, packets_are_whole)
{
	const char *wrong = NULL;
	uint32_t i;

	NEED_HOSTS();
	for (i = 0; i < ROUNDS && !wrong; i++)
		wrong = pass_round(self, i * AT_ONCE);
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("round %u, seed %ju: %s", i - 1, (uintmax_t)ht_seed(), wrong);
	}
	EXPECT_EQ(HAMLYN_NL_PEER_STATE_UP, told(self, HAMLYN_A_PEER_STATE));
}

/* As within a host, where a packet is placed in one go: nothing of it is. */
TEST_F(pieces, a_slot_that_is_rekeyed_between_two_gets_nothing)
{
	int64_t packets, bytes;
	uint8_t *end;
	size_t half;

	NEED_HOSTS();
	packets = told(self, HAMLYN_A_PEER_RECEIVED_PACKETS);
	bytes = told(self, HAMLYN_A_PEER_RECEIVED_BYTES);
	end = put_packet(self, self->frames, 0, self->packet, 1);
	half = (size_t)(end - self->frames) / 2;
	ASSERT_EQ(0, send_bytes(self, self->frames, half));
	ASSERT_EQ(0, await_read(self, bytes));
	EXPECT_TRUE(ht_pair_untouched(&self->pair));
	ASSERT_EQ(0, h_slot_rekey(self->pair.slot));
	ASSERT_EQ(0, send_bytes(self, self->frames + half, (size_t)(end - self->frames) - half));
	ASSERT_EQ(0, await_packet(self, packets));
	EXPECT_TRUE(ht_pair_untouched(&self->pair));
	EXPECT_TRUE(ht_pair_guarded(&self->pair));
	EXPECT_EQ(HAMLYN_NL_PEER_STATE_UP, told(self, HAMLYN_A_PEER_STATE));
}

TEST_F(pieces, one_that_never_ends_is_nothing)
{
	struct ht_poll poll;
	int64_t bytes;
	uint8_t *end;

	NEED_HOSTS();
	bytes = told(self, HAMLYN_A_PEER_RECEIVED_BYTES);
	end = put_packet(self, self->frames, 0, self->packet, 1);
	ASSERT_EQ(0, send_bytes(self, self->frames, (size_t)(end - self->frames) - 1));
	ASSERT_EQ(0, await_read(self, bytes));
	EXPECT_TRUE(ht_pair_untouched(&self->pair));
	ASSERT_EQ(0, shutdown(self->fd, SHUT_RDWR));
	ht_poll_begin(&poll);
	while (told(self, HAMLYN_A_PEER_STATE) == HAMLYN_NL_PEER_STATE_UP && ht_poll_more(&poll))
		continue;
	EXPECT_NE(HAMLYN_NL_PEER_STATE_UP, told(self, HAMLYN_A_PEER_STATE));
	EXPECT_TRUE(ht_pair_untouched(&self->pair));
	EXPECT_TRUE(ht_pair_guarded(&self->pair));
}

/* What may not be placed is not, in however few buffers it comes, and the next one is. */
TEST_F(pieces, long_ones_are_checked_like_short_ones)
{
	struct ht_pair *pair = &self->pair;
	struct hamlyn_nq_entry e;
	uint8_t *end;

	NEED_HOSTS();
	end = put_packet(self, self->frames, pair->length - 1, self->packet, 1);
	end = put_packet(self, end, UINT64_MAX - 100, self->packet, 2);
	pair->ticket.key ^= 1;
	end = put_packet(self, end, 0, self->packet, 3);
	pair->ticket.key ^= 1;
	ASSERT_EQ(0, send_bytes(self, self->frames, (size_t)(end - self->frames)));
	end = put_packet(self, self->frames, 0, 0, 4);
	ASSERT_EQ(0, send_bytes(self, self->frames, (size_t)(end - self->frames)));
	ASSERT_EQ(1, ht_recv(pair->nq, &e));
	EXPECT_EQ(0, e.length);
	EXPECT_TRUE(ht_pair_untouched(pair));
	EXPECT_TRUE(ht_pair_guarded(pair));
}

TEST_HARNESS_MAIN
