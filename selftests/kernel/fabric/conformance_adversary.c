// SPDX-License-Identifier: GPL-2.0-only
/*
 * Conformance on a bad fabric: an adversary behind NIC 0 loses, repeats, damages,
 * reorders and delays what goes to NIC 1. And NICs that come and go. Kernel
 * device only, as root.
 */
#include "kselftest_harness.h"
#include "conformance.h"
#include "genl.h"
#include "nics.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <linux/hamlyn_netlink.h>

#define NEED_TWO_NICS	"kernel: with nics=2, as root"

#define PERCENT		10000U	/* of a rate in parts of a million */
#define SENDING		0	/* NIC with the adversary */
#define KEPT		32	/* packets that it keeps back at most */
#define EDGE		256	/* guard bytes */
#define SIDE		1024	/* bytes of the slots on both sides */
#define ENTRIES		8	/* metadata entries */
#define LONG_US		10000000U	/* until somebody lets go */

struct adversary {
	uint64_t seed;
	uint32_t drop, duplicate, corrupt, reorder, delay_us, stall;
};

/*
 * A receiver: a slot in the middle of an area, another one on each side of it,
 * guard bytes between all.
 */
struct sink {
	struct h_dev *dev;
	struct h_area *area, *meta_area;
	struct h_nq *nq;
	struct h_slot *slot, *sides[2];
	struct h_ticket ticket;
	struct hamlyn_query query;
	unsigned char *all, *data;
	size_t bytes, length;
	uint64_t audited;
};

struct source {
	struct h_dev *dev;
	struct h_area *area;
	struct h_terminus *terminus;
	struct hamlyn_query query;
	unsigned char *data;
	size_t length;
};

FIXTURE(adversary) {
	bool ready;
	struct genl genl;
	struct source tx;
	struct sink rx;
};

/* ---- netlink ---- */

static void put_adversary(struct genl *g, const struct adversary *a)
{
	struct nlattr *nest = genl_put(g, HAMLYN_A_ADVERSARY | NLA_F_NESTED,
				       NULL, 0);

	genl_put_u64(g, HAMLYN_A_ADV_SEED, a->seed);
	genl_put_u32(g, HAMLYN_A_ADV_DROP, a->drop);
	genl_put_u32(g, HAMLYN_A_ADV_DUPLICATE, a->duplicate);
	genl_put_u32(g, HAMLYN_A_ADV_CORRUPT, a->corrupt);
	genl_put_u32(g, HAMLYN_A_ADV_REORDER, a->reorder);
	genl_put_u32(g, HAMLYN_A_ADV_DELAY_US, a->delay_us);
	genl_put_u32(g, HAMLYN_A_ADV_STALL, a->stall);
	genl_end(g, nest);
}

static int set_adversary(struct genl *g, uint32_t nic, const struct adversary *a)
{
	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	put_adversary(g, a);
	return genl_call(g);
}

/* When it returns, all that was sent has landed, or never will. */
static int leave(struct genl *g, uint32_t nic)
{
	static const struct adversary none;

	return set_adversary(g, nic, &none);
}

static int get_adversary(struct genl *g, uint32_t nic, struct adversary *a)
{
	const struct nlattr *nest;
	int ret;

	genl_begin(g, HAMLYN_NL_CMD_NIC_GET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	ret = genl_call(g);
	nest = genl_attr(g, HAMLYN_A_ADVERSARY);
	if (ret || !nest)
		return ret ? ret : -ENOENT;
	a->seed = genl_number(genl_nested(nest, HAMLYN_A_ADV_SEED));
	a->drop = genl_number(genl_nested(nest, HAMLYN_A_ADV_DROP));
	a->duplicate = genl_number(genl_nested(nest, HAMLYN_A_ADV_DUPLICATE));
	a->corrupt = genl_number(genl_nested(nest, HAMLYN_A_ADV_CORRUPT));
	a->reorder = genl_number(genl_nested(nest, HAMLYN_A_ADV_REORDER));
	a->delay_us = genl_number(genl_nested(nest, HAMLYN_A_ADV_DELAY_US));
	a->stall = genl_number(genl_nested(nest, HAMLYN_A_ADV_STALL));
	return 0;
}

/* @host may be HAMLYN_NONE. The new NIC's number, or a negative errno. */
static int nic_new_at(struct genl *g, uint32_t host)
{
	int ret;

	genl_begin(g, HAMLYN_NL_CMD_NIC_NEW);
	if (host != HAMLYN_NONE)
		genl_put_u32(g, HAMLYN_A_HOST, host);
	ret = genl_call(g);
	if (ret)
		return ret;
	return genl_attr(g, HAMLYN_A_NIC) ?
	       (int)genl_number(genl_attr(g, HAMLYN_A_NIC)) : -ENOENT;
}

static int nic_del(struct genl *g, uint32_t nic)
{
	genl_begin(g, HAMLYN_NL_CMD_NIC_DEL);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	return genl_call(g);
}

static const char *nic_path(uint32_t nic)
{
	static char path[32];

	snprintf(path, sizeof(path), "/dev/hamlyn%u", nic);
	return path;
}

/* ---- receivers and senders ---- */

/* Guard bytes everywhere; entries as nobody has written to them. */
static void sink_clear(struct sink *s)
{
	unsigned char *meta = h_area_addr(s->meta_area);
	struct hamlyn_metadata *m;
	uint32_t i;

	memset(s->all, HT_GUARD, s->bytes);
	memset(meta, HT_GUARD, HT_META_GUARDS * sizeof(*m));
	memset(meta + (HT_META_GUARDS + ENTRIES) * sizeof(*m), HT_GUARD,
	       HT_META_GUARDS * sizeof(*m));
	for (i = 0; i < ENTRIES; i++) {
		m = h_slot_entry(s->slot, i);
		memset(m->user, 0, sizeof(m->user));
		m->accumulator = 0;
		m->meta_length = 0;
	}
}

static int sink_open(struct sink *s, uint32_t nic, size_t length, uint32_t mode,
		     uint32_t nq_entries)
{
	struct h_slot_attr attr = { .mode = mode, .meta_count = ENTRIES };
	struct h_slot_attr side = { .length = SIDE };
	int ret;

	memset(s, 0, sizeof(*s));
	s->length = length;
	s->bytes = length + 2 * SIDE + 4 * EDGE;
	ret = h_open(nic_path(nic), &s->dev);
	if (ret)
		return ret;
	attr.base = SIDE + 2 * EDGE;
	attr.length = length;
	attr.meta_base = HT_META_GUARDS * sizeof(struct hamlyn_metadata);
	if (h_query(s->dev, &s->query) ||
	    h_area_alloc(s->dev, s->bytes, &s->area) ||
	    h_area_alloc(s->dev, (ENTRIES + 2 * HT_META_GUARDS) *
			 sizeof(struct hamlyn_metadata), &s->meta_area) ||
	    h_nq_create(s->dev, nq_entries, &s->nq))
		return -ENOMEM;
	s->all = h_area_addr(s->area);
	s->data = s->all + attr.base;
	attr.area = s->area;
	attr.meta_area = s->meta_area;
	attr.nq = s->nq;
	side.area = s->area;
	side.nq = s->nq;
	side.base = EDGE;
	ret = h_slot_create(s->dev, &side, &s->sides[0]);
	if (!ret)
		ret = h_slot_create(s->dev, &attr, &s->slot);
	side.base = attr.base + length + EDGE;
	if (!ret)
		ret = h_slot_create(s->dev, &side, &s->sides[1]);
	if (ret)
		return ret;
	sink_clear(s);
	return mode == HAMLYN_SLOT_NORMAL ?
	       h_slot_ticket(s->slot, 0, 0, 0, &s->ticket) : 0;
}

static void sink_close(struct sink *s)
{
	h_close(s->dev);
	s->dev = NULL;
}

/* No byte outside the message area and the metadata entries was touched. */
static bool sink_guarded(const struct sink *s)
{
	size_t before = SIDE + 2 * EDGE;
	const unsigned char *meta = h_area_addr(s->meta_area);
	size_t guards = HT_META_GUARDS * sizeof(struct hamlyn_metadata);

	return ht_match_byte(s->all, before, HT_GUARD) == before &&
	       ht_match_byte(s->data + s->length, before, HT_GUARD) == before &&
	       ht_match_byte(meta, guards, HT_GUARD) == guards &&
	       ht_match_byte(meta + guards + ENTRIES *
			     sizeof(struct hamlyn_metadata), guards, HT_GUARD) ==
	       guards;
}

static bool sink_untouched(const struct sink *s)
{
	return ht_match_byte(s->all, s->bytes, HT_GUARD) == s->bytes &&
	       sink_guarded(s);
}

/* Notifications there are; those of fast words below @n are counted by word. */
static unsigned int sink_drain(struct sink *s, unsigned char *count,
			       uint64_t n)
{
	struct hamlyn_nq_entry e;
	unsigned int got = 0;

	while (h_recv(s->nq, &e) == 1) {
		got++;
		if (count && e.flags & HAMLYN_NQE_FAST && e.data < n)
			count[e.data]++;
	}
	return got;
}

static uint64_t sink_rejects(struct sink *s, enum hamlyn_reject reason)
{
	struct hamlyn_stats stats;

	return h_slot_stats(s->slot, &stats) ? ~0ULL : stats.rejects[reason];
}

static int source_open(struct source *s, uint32_t nic, size_t length)
{
	struct h_terminus_attr attr = { .entries = 128 };
	int ret;

	memset(s, 0, sizeof(*s));
	s->length = length;
	ret = h_open(nic_path(nic), &s->dev);
	if (ret)
		return ret;
	ret = h_query(s->dev, &s->query);
	if (!ret)
		ret = h_area_alloc(s->dev, length, &s->area);
	if (!ret)
		ret = h_terminus_create(s->dev, &attr, &s->terminus);
	if (!ret)
		ret = h_terminus_bind(s->terminus, 0, s->area, 0, 0);
	if (ret)
		return ret;
	s->data = h_area_addr(s->area);
	ht_fill(s->data, length, 1);
	return 0;
}

/* A damaged key is a guess, and the device remembers who guessed: not root. */
static int source_reopen_as_somebody(struct source *s, uint32_t nic)
{
	size_t length = s->length;
	uid_t uid = 40000 + (uid_t)getpid() % 20000;
	int ret;

	h_close(s->dev);
	s->dev = NULL;
	if (seteuid(uid))
		return -errno;
	ret = source_open(s, nic, length);
	return seteuid(0) ? -errno : ret;
}

static void source_close(struct source *s)
{
	h_close(s->dev);
	s->dev = NULL;
}

static int source_stats(struct source *s, struct hamlyn_stats *stats)
{
	return h_dev_stats(s->dev, stats);
}

static uint64_t sum_rejects(const struct hamlyn_stats *s)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < HAMLYN_STATS_REASONS; i++)
		sum += s->rejects[i];
	return sum;
}

/* Fast messages with the words from @word on, all with the same 8 bytes. */
static int send_words(struct source *s, const struct h_ticket *to,
		      uint64_t word, unsigned int n)
{
	struct h_ticket fast = *to;
	struct h_msg m = { .ticket = &fast, .data = "eightby", .length = 8 };
	int64_t handle = 0;

	fast.meta_index = HAMLYN_META_FAST;
	for (m.word = word; m.word < word + n; m.word++) {
		handle = ht_send(s->terminus, &m);
		if (handle < 0)
			return (int)handle;
	}
	return n ? ht_send_wait(s->terminus, handle) : 1;
}

/* How many of @n counts are @want? */
static unsigned int how_many(const unsigned char *count, unsigned int n,
			     unsigned int want)
{
	unsigned int i, found = 0;

	for (i = 0; i < n; i++)
		found += count[i] == want;
	return found;
}

FIXTURE_SETUP(adversary)
{
	static const struct adversary some = { .drop = 1 };

	if (geteuid() || access(nic_path(1), F_OK) ||
	    genl_open(&self->genl, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION)) {
		self->genl.fd = -1;
		return;
	}
	if (set_adversary(&self->genl, SENDING, &some) == -EOPNOTSUPP)
		SKIP(return, "kernel: with CONFIG_HAMLYN_ADVERSARY");
	self->ready = true;
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	ASSERT_EQ(0, source_open(&self->tx, SENDING, 1 << 18));
	ASSERT_EQ(0, sink_open(&self->rx, 1, 1 << 18, HAMLYN_SLOT_NORMAL,
			       4096));
}

FIXTURE_TEARDOWN(adversary)
{
	if (!self->ready)
		return;
	EXPECT_EQ(0, leave(&self->genl, SENDING));
	source_close(&self->tx);
	sink_close(&self->rx);
	genl_close(&self->genl);
}

/* embedded: its fabric is the segment, and has no adversary */

/* ---- any order ---- */

#define MESSAGES	4	/* at a time */

static const char *any_order_round(FIXTURE_DATA(adversary) *self, uint64_t seed)
{
	size_t each = self->rx.length / MESSAGES;
	struct h_msg m = { .length = each, .meta_length = 8 };
	struct hamlyn_nq_entry e;
	struct h_ticket k[MESSAGES];
	bool told[MESSAGES] = { false };
	unsigned int i;

	sink_clear(&self->rx);
	ht_fill(self->tx.data, self->tx.length, seed);
	for (i = 0; i < MESSAGES; i++) {
		if (h_slot_ticket(self->rx.slot, i * each, each, i, &k[i]))
			return "no ticket";
		m.ticket = &k[i];
		m.data = self->tx.data + i * each;
		m.meta = (const char *)m.data + 1;
		if (ht_send(self->tx.terminus, &m) < 0)
			return "not sent";
	}
	for (i = 0; i < MESSAGES; i++) {
		struct hamlyn_metadata *meta;

		if (ht_recv(self->rx.nq, &e) != 1)
			return "not notified";
		if (e.index >= MESSAGES || told[e.index])
			return "notified twice";
		told[e.index] = true;
		meta = h_slot_entry(self->rx.slot, e.index);
		if (meta->accumulator)
			return "not complete when notified";
		if (memcmp(self->rx.data + e.index * each,
			   self->tx.data + e.index * each, each))
			return "not intact when notified";
		if (memcmp(meta->user, self->tx.data + e.index * each + 1, 8))
			return "without its metadata";
	}
	return h_recv(self->rx.nq, &e) ? "notified too often" : NULL;
}

/* Messages whose packets arrive in any order complete exactly once, intact. */
TEST_F(adversary, h2_5_packets_in_any_order)
{
	struct adversary a = { .seed = 1, .reorder = 50 * PERCENT };
	struct hamlyn_nq_entry e;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	for (; a.seed <= 6; a.seed++) {
		ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
		ASSERT_NO(any_order_round(self, a.seed));
	}
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(0, h_recv(self->rx.nq, &e));
	EXPECT_TRUE(sink_guarded(&self->rx));
}

/* Messages of one packet overtake each other, and each is notified once. */
TEST_F(adversary, h2_5_messages_overtake)
{
	enum { COUNT = 400 };
	struct adversary a = { .seed = 1, .reorder = 50 * PERCENT };
	unsigned char count[COUNT] = { 0 };
	unsigned int i, behind = 0;
	struct hamlyn_nq_entry e;
	uint64_t highest = 0;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	ASSERT_EQ(1, send_words(&self->tx, &self->rx.ticket, 0, COUNT));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	for (i = 0; h_recv(self->rx.nq, &e) == 1; i++) {
		ASSERT_LT(e.data, COUNT);
		count[e.data]++;
		behind += e.data < highest;
		if (e.data > highest)
			highest = e.data;
	}
	EXPECT_EQ(COUNT, i);
	EXPECT_EQ(COUNT, how_many(count, COUNT, 1));
	EXPECT_GT(behind, COUNT / 10);
	EXPECT_LT(behind, COUNT * 9 / 10);
}

/* What waits for others to overtake it arrives if none comes, a little later. */
TEST_F(adversary, beyond_nobody_overtakes)
{
	struct adversary a = { .reorder = 100 * PERCENT };
	struct hamlyn_nq_entry e;
	int64_t begun;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	for (a.seed = 1; a.seed <= 16; a.seed++) {
		ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
		begun = ht_now_ns();
		ASSERT_EQ(1, send_words(&self->tx, &self->rx.ticket, a.seed,
					1));
		ASSERT_EQ(1, ht_recv(self->rx.nq, &e));
		EXPECT_EQ(a.seed, e.data);
		/* It was held, though nothing came behind it. */
		EXPECT_GE(ht_now_ns() - begun, HT_MS);
	}
}

/* ---- loss ---- */

/* A lost packet leaves nothing at the receiver, and its sender is not told. */
TEST_F(adversary, beyond_lost_packets)
{
	enum { COUNT = 200 };
	struct adversary a = { .seed = 1, .drop = 100 * PERCENT };
	struct h_msg m = { .ticket = &self->rx.ticket, .data = self->tx.data,
			   .length = self->rx.length, .meta = "meta",
			   .meta_length = 4 };
	unsigned char count[COUNT] = { 0 };
	unsigned int some;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	EXPECT_EQ(1, ht_send_sync(self->tx.terminus, &m));
	EXPECT_EQ(1, send_words(&self->tx, &self->rx.ticket, 0, COUNT));
	EXPECT_EQ(0, sink_drain(&self->rx, NULL, 0));
	EXPECT_TRUE(sink_untouched(&self->rx));
	EXPECT_EQ(0, h_slot_entry(self->rx.slot, 0)->meta_length);
	EXPECT_EQ(0, h_slot_entry(self->rx.slot, 0)->accumulator);
	a.drop = 50 * PERCENT;
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	EXPECT_EQ(1, send_words(&self->tx, &self->rx.ticket, 0, COUNT));
	some = sink_drain(&self->rx, count, COUNT);
	EXPECT_EQ(some, how_many(count, COUNT, 1));
	EXPECT_GT(some, COUNT / 4);
	EXPECT_LT(some, COUNT * 3 / 4);
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(0, sink_drain(&self->rx, NULL, 0));
	EXPECT_EQ(1, send_words(&self->tx, &self->rx.ticket, 0, COUNT));
	EXPECT_EQ(COUNT, sink_drain(&self->rx, NULL, 0));
}

/* Protocols ask it before they do without checksums. It is the sender's NIC's. */
TEST_F(adversary, beyond_query_tells_a_lossy_fabric)
{
	struct adversary a = { .seed = 1, .delay_us = 1 };
	struct hamlyn_query q;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, h_query(self->tx.dev, &q));
	EXPECT_EQ(0, q.fabric);
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	ASSERT_EQ(0, h_query(self->tx.dev, &q));
	EXPECT_EQ(HAMLYN_FABRIC_LOSSY, q.fabric);
	ASSERT_EQ(0, h_query(self->rx.dev, &q));
	EXPECT_EQ(0, q.fabric);
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	ASSERT_EQ(0, h_query(self->tx.dev, &q));
	EXPECT_EQ(0, q.fabric);
}

/* Which of a sequence of messages are lost depends on the seed alone. */
TEST_F(adversary, beyond_same_seed_same_losses)
{
	enum { COUNT = 400 };
	struct adversary a = { .seed = ht_seed(), .drop = 30 * PERCENT,
			       .duplicate = 20 * PERCENT };
	unsigned char count[3][COUNT] = { 0 };
	unsigned int i;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	for (i = 0; i < 3; i++) {
		if (i == 2)
			a.seed += 1000;
		ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
		ASSERT_EQ(1, send_words(&self->tx, &self->rx.ticket, 0,
					COUNT));
		sink_drain(&self->rx, count[i], COUNT);
	}
	EXPECT_GT(how_many(count[0], COUNT, 0), COUNT / 10);
	EXPECT_GT(how_many(count[0], COUNT, 2), COUNT / 20);
	EXPECT_EQ(0, memcmp(count[0], count[1], COUNT));
	EXPECT_NE(0, memcmp(count[0], count[2], COUNT));
}

/* ---- a fabric that does not take everything at once ---- */

static const struct adversary never = { .seed = 1, .stall = 100 * PERCENT };

static struct h_msg long_from(const struct source *s, const struct sink *to)
{
	struct h_msg m = { .ticket = &to->ticket, .data = s->data, .length = to->length };

	return m;
}

static bool is_over(struct source *s, int64_t handle)
{
	return h_send_done(s->terminus, handle) != 0;
}

/* What was not taken waits, and nothing overtakes it: all arrives once, and in order. */
TEST_F(adversary, beyond_stalls_lose_nothing)
{
	enum { COUNT = 400 };
	struct adversary a = { .seed = ht_seed(), .stall = 10 * PERCENT };
	struct hamlyn_nq_entry e;
	struct hamlyn_query q;
	struct h_msg m;
	unsigned int i;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	m = long_from(&self->tx, &self->rx);
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	/* It is late, but not lossy: all protocols may run on it. */
	ASSERT_EQ(0, h_query(self->tx.dev, &q));
	EXPECT_EQ(0, q.fabric);
	for (i = 0; i < COUNT; i++) {
		ASSERT_EQ(1, send_words(&self->tx, &self->rx.ticket, i, 1));
		if (i % 100 == 50)
			ASSERT_EQ(1, ht_send_sync(self->tx.terminus, &m));
	}
	for (i = 0; i < COUNT; i++) {
		ASSERT_EQ(1, ht_recv(self->rx.nq, &e));
		EXPECT_EQ(i, e.data);
		if (i % 100 != 50)
			continue;
		ASSERT_EQ(1, ht_recv(self->rx.nq, &e));
		EXPECT_EQ(0, e.flags & HAMLYN_NQE_FAST);
		EXPECT_EQ(0, h_slot_entry(self->rx.slot, 0)->accumulator);
	}
	EXPECT_EQ(0, h_recv(self->rx.nq, &e));
	/* The words came with 8 bytes each, to where the long ones begin. */
	EXPECT_EQ(0, memcmp(self->rx.data + 8, self->tx.data + 8, self->rx.length - 8));
	EXPECT_TRUE(sink_guarded(&self->rx));
}

/* A long message that nobody takes: its handle. By @ticket, if it is by another than usual. */
static int64_t send_stalled(FIXTURE_DATA(adversary) *self, const struct h_ticket *ticket)
{
	struct h_msg m = long_from(&self->tx, &self->rx);

	if (ticket)
		m.ticket = ticket;
	if (set_adversary(&self->genl, SENDING, &never))
		return -EIO;
	return h_send(self->tx.terminus, &m);
}

/* Its owner may do anything but ring meanwhile, and it leaves all the same. */
TEST_F(adversary, beyond_stalled_message_needs_no_second_doorbell)
{
	struct hamlyn_nq_entry e;
	struct h_ticket fast = self->rx.ticket;
	struct h_msg m = { .ticket = &fast, .data = "eightby", .length = 8, .word = 7 };

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	fast.meta_index = HAMLYN_META_FAST;
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &never));
	/* It returns, whoever works: a peer's slowness is not the caller's. */
	ASSERT_LE(0, h_send(self->tx.terminus, &m));
	ht_sleep_ns(20 * HT_MS);
	EXPECT_EQ(0, h_recv(self->rx.nq, &e));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	ASSERT_EQ(1, ht_recv(self->rx.nq, &e));
	EXPECT_EQ(7, e.data);
}

/* The processor's time of a process, in ticks, if it is one of a NIC's polling threads. */
static unsigned long ticks_of(const char *pid, const char *engines)
{
	unsigned long user = 0, system = 0;
	char path[64], line[512], *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	f = fopen(path, "re");
	end = f && fgets(line, sizeof(line), f) && strstr(line, engines) ?
	      strrchr(line, ')') : NULL;
	if (end)
		sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
		       &user, &system);
	if (f)
		fclose(f);
	return user + system;
}

/* Of all of them; 0: there is none. */
static unsigned long engine_ticks(uint32_t nic)
{
	unsigned long sum = 0;
	struct dirent *entry;
	char engines[32];
	DIR *proc = opendir("/proc");

	snprintf(engines, sizeof(engines), "(hamlyn%u/", nic);
	while (proc && (entry = readdir(proc)))
		sum += ticks_of(entry->d_name, engines);
	if (proc)
		closedir(proc);
	return sum;
}

/* Who sends to a peer that takes nothing has the engine as little as who sends nothing. */
TEST_F(adversary, beyond_stalled_peer_holds_up_nobody_else)
{
	struct source other;
	struct sink own;
	struct hamlyn_nq_entry e;
	unsigned long ticks;
	int64_t handle, begun;
	unsigned int i;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, sink_open(&own, SENDING, 4096, HAMLYN_SLOT_NORMAL, 256));
	ASSERT_EQ(0, source_open(&other, SENDING, 4096));
	handle = send_stalled(self, NULL);
	ASSERT_LE(0, handle);
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(1, send_words(&other, &own.ticket, i, 1));
		ASSERT_EQ(1, ht_recv(own.nq, &e));
		EXPECT_EQ(i, e.data);
	}
	EXPECT_FALSE(is_over(&self->tx, handle));
	/* The other one has nothing more to send, and the thread does not wait by running. */
	ht_sleep_ns(200 * HT_MS);
	begun = ht_now_ns();
	ticks = engine_ticks(SENDING);
	ht_sleep_ns(HT_SEC);
	ticks = engine_ticks(SENDING) - ticks;
	EXPECT_LT(ticks * (HT_SEC / sysconf(_SC_CLK_TCK)),
		  (unsigned long)(ht_now_ns() - begun) / 2);
	EXPECT_FALSE(is_over(&self->tx, handle));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(1, ht_send_wait(self->tx.terminus, handle));
	ASSERT_EQ(1, ht_recv(self->rx.nq, &e));
	source_close(&other);
	sink_close(&own);
}

static void ignore(int sig)
{
	(void)sig;
}

/* Signals every so often, from now on; 0: no more. */
static int ring_every(long ms)
{
	const struct sigaction action = { .sa_handler = ignore };
	const struct itimerval timer = {
		.it_interval.tv_usec = ms * 1000, .it_value.tv_usec = ms * 1000,
	};

	return sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &timer, NULL);
}

/* Memory under a message that nobody takes is its owner's again in bounded time. */
TEST_F(adversary, beyond_bind_gives_up_a_stalled_message)
{
	struct hamlyn_nq_entry e;
	int64_t handle;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	handle = send_stalled(self, NULL);
	ASSERT_LE(0, handle);
	/* Each signal has the call begin anew, but not the time that it waits. */
	ASSERT_EQ(0, ring_every(100));
	ASSERT_EQ(0, h_terminus_bind(self->tx.terminus, 0, self->tx.area, 0, 4096));
	ASSERT_EQ(0, ring_every(0));
	EXPECT_EQ(-ECANCELED, h_send_done(self->tx.terminus, handle));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(0, h_recv(self->rx.nq, &e));
	EXPECT_TRUE(sink_untouched(&self->rx));
	/* What comes after it is as good as ever. */
	EXPECT_EQ(1, send_words(&self->tx, &self->rx.ticket, 5, 1));
	ASSERT_EQ(1, ht_recv(self->rx.nq, &e));
	EXPECT_EQ(5, e.data);
}

/* Memory that no message can be sent from waits for none, and none is given up for it. */
TEST_F(adversary, beyond_bind_of_a_new_tag_waits_for_no_message)
{
	struct hamlyn_nq_entry e;
	int64_t handle;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	handle = send_stalled(self, NULL);
	ASSERT_LE(0, handle);
	ASSERT_EQ(0, h_terminus_bind(self->tx.terminus, 1, self->tx.area, 0, 0));
	EXPECT_FALSE(is_over(&self->tx, handle));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(1, ht_send_wait(self->tx.terminus, handle));
	ASSERT_EQ(1, ht_recv(self->rx.nq, &e));
	EXPECT_EQ(self->rx.length, ht_match(self->rx.data, self->rx.length, 1));
}

/* As long as the fabric takes packets now and then there is no reason to give up. */
TEST_F(adversary, beyond_bind_waits_for_a_slow_fabric)
{
	struct adversary a = { .seed = ht_seed(), .stall = 50 * PERCENT };
	struct hamlyn_nq_entry e;
	struct h_msg m;
	int64_t handle;
	unsigned int i;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	m = long_from(&self->tx, &self->rx);
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	for (i = 0; i < 5; i++) {
		handle = h_send(self->tx.terminus, &m);
		ASSERT_LE(0, handle);
		ASSERT_EQ(0, h_terminus_bind(self->tx.terminus, 0, self->tx.area, 0, 0));
		EXPECT_EQ(1, ht_send_wait(self->tx.terminus, handle));
		ASSERT_EQ(1, ht_recv(self->rx.nq, &e));
		EXPECT_EQ(0, h_slot_entry(self->rx.slot, 0)->accumulator);
	}
	EXPECT_EQ(0, h_recv(self->rx.nq, &e));
	EXPECT_EQ(self->rx.length, ht_match(self->rx.data, self->rx.length, 1));
}

/* A ticket under which a message is half sent is forgotten in bounded time, too. */
TEST_F(adversary, beyond_drop_gives_up_a_stalled_message)
{
	struct h_ticket imported;
	struct hamlyn_nq_entry e;
	int64_t handle;
	int fd;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, h_slot_ticket_fd(self->rx.slot, 0, 0, &fd));
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, h_terminus_import(self->tx.terminus, fd, &imported));
	close(fd);
	handle = send_stalled(self, &imported);
	ASSERT_LE(0, handle);
	ASSERT_EQ(0, h_terminus_drop(self->tx.terminus, &imported));
	EXPECT_EQ(-ECANCELED, h_send_done(self->tx.terminus, handle));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(0, h_recv(self->rx.nq, &e));
	EXPECT_TRUE(sink_untouched(&self->rx));
}

/* A receiver waits for packets that land, not for those that nobody takes. */
TEST_F(adversary, beyond_rekey_does_not_wait_for_a_stall)
{
	struct hamlyn_nq_entry e;
	int64_t handle;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	handle = send_stalled(self, NULL);
	ASSERT_LE(0, handle);
	ASSERT_EQ(0, h_slot_rekey(self->rx.slot));
	EXPECT_FALSE(is_over(&self->tx, handle));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(1, ht_send_wait(self->tx.terminus, handle));
	EXPECT_EQ(0, h_recv(self->rx.nq, &e));
	EXPECT_TRUE(sink_untouched(&self->rx));
}

/* Dies with a message that nobody takes; or, with @destroy, only lets go of it. */
static int send_and_die(uint32_t nic, const struct sink *to, bool destroy)
{
	struct source s;
	struct h_msg m;

	if (source_open(&s, nic, to->length))
		return 1;
	m = long_from(&s, to);
	if (h_send(s.terminus, &m) < 0)
		return 2;
	if (!destroy)
		raise(SIGKILL);
	if (h_terminus_destroy(s.terminus) || h_area_remove(s.area))
		return 3;
	source_close(&s);
	return 0;
}

/* Nothing that ends waits for a peer: neither a terminus, nor a file, nor a process. */
TEST_F(adversary, beyond_who_ends_waits_for_no_stall)
{
	struct hamlyn_nq_entry e;
	int status;
	pid_t pid;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &never));
	pid = ht_fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(send_and_die(SENDING, &self->rx, true));
	EXPECT_EQ(0, ht_reap(pid));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(send_and_die(SENDING, &self->rx, false));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(0, h_recv(self->rx.nq, &e));
	EXPECT_TRUE(sink_untouched(&self->rx));
}

/* In a network namespace that ends with it. */
static int stall_elsewhere(const struct sink *to, int tell)
{
	struct genl g;
	int nic;

	if (unshare(CLONE_NEWNET) ||
	    genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return 1;
	nic = nic_new_at(&g, HAMLYN_NONE);
	if (nic < 0 || set_adversary(&g, nic, &never) ||
	    write(tell, &nic, sizeof(nic)) != sizeof(nic))
		return 2;
	return send_and_die(nic, to, false);
}

/* Neither does the namespace of a NIC that nobody takes packets from. */
TEST_F(adversary, beyond_stalled_namespace_ends)
{
	struct ht_poll poll;
	int nic, pipes[2], status;
	pid_t pid;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, pipe(pipes));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(stall_elsewhere(&self->rx, pipes[1]));
	/* Ours, so that a child that fails ends the reading. */
	close(pipes[1]);
	ASSERT_EQ(0, ht_read_all(pipes[0], &nic, sizeof(nic)));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(pipes[0]);
	/* It goes with its namespace, or, if it was still open then, comes to ours. */
	ht_poll_begin(&poll);
	while (!access(nic_path(nic), F_OK) && nic_del(&self->genl, nic) &&
	       ht_poll_more(&poll))
		;
	EXPECT_NE(0, access(nic_path(nic), F_OK));
}

/* ---- repetition ---- */

/* A message of one packet that is repeated is notified twice, with good data. */
TEST_F(adversary, beyond_repeated_single_packets)
{
	enum { COUNT = 100 };
	struct adversary a = { .seed = 1, .duplicate = 100 * PERCENT };
	struct h_msg m = { .ticket = &self->rx.ticket, .data = self->tx.data,
			   .length = 1000, .meta = "meta", .meta_length = 4 };
	unsigned char count[COUNT] = { 0 };
	struct hamlyn_nq_entry e;
	unsigned int i;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	ASSERT_EQ(1, send_words(&self->tx, &self->rx.ticket, 0, COUNT));
	EXPECT_EQ(2 * COUNT, sink_drain(&self->rx, count, COUNT));
	EXPECT_EQ(COUNT, how_many(count, COUNT, 2));
	ASSERT_EQ(1, ht_send_sync(self->tx.terminus, &m));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(1, ht_recv(self->rx.nq, &e));
		EXPECT_EQ(HAMLYN_NQE_SINGLE, e.flags);
		EXPECT_EQ(0, e.index);
	}
	EXPECT_EQ(0, h_recv(self->rx.nq, &e));
	EXPECT_EQ(1000, ht_match(self->rx.data, 1000, 1));
	EXPECT_EQ(0, memcmp(h_slot_entry(self->rx.slot, 0)->user, "meta", 4));
	EXPECT_EQ(0, h_slot_entry(self->rx.slot, 0)->accumulator);
	EXPECT_TRUE(sink_guarded(&self->rx));
}

/*
 * Of k packets k - 1 add 1, and the last one takes k - 1 away. All repeated, the
 * sum is 0 at the second last one. With c of the first ones repeated it ends at c,
 * or, with the last one too, at c - (k - 1); it may have been 0 in between.
 */
static const char *repeated_message(FIXTURE_DATA(adversary) *self, bool all)
{
	uint32_t packets = 4;
	struct h_msg m = { .ticket = &self->rx.ticket, .data = self->tx.data,
			   .length = packets * self->tx.query.packet_size };
	unsigned int told;
	int32_t sum;

	sink_clear(&self->rx);
	if (ht_send_sync(self->tx.terminus, &m) != 1)
		return "not sent";
	told = sink_drain(&self->rx, NULL, 0);
	sum = (int32_t)h_slot_entry(self->rx.slot, 0)->accumulator;
	if (ht_match(self->rx.data, m.length, 1) != m.length)
		return "not intact";
	if (told > 1)
		return "notified twice";
	if (all || !sum)
		return told && !sum ? NULL : "not complete";
	if (told && sum != 1 - (int32_t)packets)
		return "complete, but not at 0";
	return sum < (int32_t)packets && sum > -(int32_t)packets ?
	       NULL : "counted something else";
}

/* Repeated packets of a long message show in its packet counter; the data is good. */
TEST_F(adversary, beyond_repeated_packets_are_counted)
{
	struct adversary a = { .seed = 1, .duplicate = 100 * PERCENT };
	unsigned int i;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	for (i = 0; i < 8; i++) {
		ASSERT_NO(repeated_message(self, true));
	}
	a.duplicate = 50 * PERCENT;
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	for (i = 0; i < 40; i++) {
		ASSERT_NO(repeated_message(self, false));
	}
	EXPECT_TRUE(sink_guarded(&self->rx));
}

/* ---- damage ---- */

#define FRAGILE		200	/* bytes of a message */
#define FRAGILE_AT	512	/* where it goes */
#define FRAGILE_META	16

static unsigned int bits_set(uint64_t v)
{
	return (unsigned int)__builtin_popcountll(v);
}

static unsigned int bits_apart(const unsigned char *a, const unsigned char *b,
			       size_t n)
{
	unsigned int bits = 0;

	while (n--)
		bits += bits_set(*a++ ^ *b++);
	return bits;
}

/* How much does the area differ from one that got @n bytes at @at? */
static unsigned int off_by(const struct sink *s, const unsigned char *from,
			   size_t at, size_t n)
{
	if (at > s->length || n > s->length - at)
		return ~0U;
	if (ht_match_byte(s->data, at, HT_GUARD) != at ||
	    ht_match_byte(s->data + at + n, s->length - at - n, HT_GUARD) !=
	    s->length - at - n)
		return ~0U;
	return bits_apart(s->data + at, from, n);
}

/* Bits in which what landed differs from what was sent; more than 1: too many. */
static unsigned int data_damage(const struct sink *s, const unsigned char *from)
{
	unsigned int bits = off_by(s, from, FRAGILE_AT, FRAGILE);
	size_t bit;

	if (bits <= 1)
		return bits;
	/* In the header: it landed at another place, or less of it. */
	for (bit = 1; bit < s->length; bit <<= 1)
		if (!off_by(s, from, FRAGILE_AT ^ bit, FRAGILE) ||
		    ((FRAGILE & bit) &&
		     !off_by(s, from, FRAGILE_AT, FRAGILE ^ bit)))
			return 1;
	return ~0U;
}

static unsigned int entry_damage(const struct hamlyn_metadata *m,
				 const unsigned char *meta)
{
	unsigned char want[HAMLYN_MAX_METADATA] = { 0 };
	uint32_t n = m->meta_length;
	unsigned int bits = bits_set(n ^ FRAGILE_META) +
			    bits_set(m->accumulator);

	memcpy(want, meta, n < FRAGILE_META ? n : FRAGILE_META);
	return bits + bits_apart(m->user, want, sizeof(want));
}

/* Entries that something was written to, by the NIC, since sink_clear(). */
static unsigned int entries_used(const struct sink *s,
				 struct hamlyn_metadata **last)
{
	static const struct hamlyn_metadata empty;
	unsigned int found = 0;
	uint32_t i;

	for (i = 0; i < ENTRIES; i++) {
		struct hamlyn_metadata *m = h_slot_entry(s->slot, i);

		if (!m->meta_length && !m->accumulator &&
		    !memcmp(m->user, empty.user, sizeof(m->user)))
			continue;
		found++;
		*last = m;
	}
	return found;
}

/* The same for the metadata, of which there is at most one. */
static unsigned int meta_damage(const struct sink *s, const unsigned char *meta)
{
	struct hamlyn_metadata *m;
	unsigned int found = entries_used(s, &m);

	/* Its length became 0. */
	if (!found)
		return 1;
	return found == 1 ? entry_damage(m, meta) : ~0U;
}

/* What the owner has in its entries is nobody else's. */
static bool entries_kept(const struct sink *s, const struct hamlyn_metadata *was)
{
	size_t own = offsetof(struct hamlyn_metadata, key);
	size_t end = offsetof(struct hamlyn_metadata, meta_length);
	uint32_t i;

	for (i = 0; i < ENTRIES; i++)
		if (memcmp((char *)h_slot_entry(s->slot, i) + own,
			   (const char *)&was[i] + own, end - own))
			return false;
	return true;
}

static const char *damaged_once(struct source *tx, struct sink *rx,
				const struct h_msg *m, unsigned int *landed)
{
	struct hamlyn_stats before, after;
	struct hamlyn_metadata *entry;
	unsigned int bits;

	sink_clear(rx);
	if (source_stats(tx, &before) ||
	    ht_send_sync(tx->terminus, m) != 1 || source_stats(tx, &after))
		return "not sent";
	if (!sink_guarded(rx))
		return "outside the message area";
	if (sum_rejects(&after) != sum_rejects(&before))
		return sum_rejects(&after) == sum_rejects(&before) + 1 &&
		       sink_untouched(rx) && !entries_used(rx, &entry) ?
		       NULL : "rejected, but landed";
	bits = data_damage(rx, m->data);
	if (bits <= 1)
		bits += meta_damage(rx, m->meta);
	++*landed;
	return bits <= 1 ? NULL : "more than a bit is wrong";
}

/* The audit's tale of one context, added up by reason. */
static void add_audit(struct sink *s, uint64_t *reasons)
{
	struct hamlyn_audit_entry e[8];
	int i, n;

	while ((n = h_audit(s->dev, e, ARRAY_SIZE(e), &s->audited)) > 0)
		for (i = 0; i < n; i++)
			reasons[e[i].reason % HAMLYN_STATS_REASONS]++;
}

static const char *audit_agrees(struct sink *s, const uint64_t *reasons)
{
	struct h_slot *slots[] = { s->slot, s->sides[0], s->sides[1] };
	uint64_t sum[HAMLYN_STATS_REASONS] = { 0 };
	struct hamlyn_stats stats;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		if (h_slot_stats(slots[i], &stats))
			return "no counters";
		for (j = 0; j < HAMLYN_STATS_REASONS; j++)
			sum[j] += stats.rejects[j];
	}
	return memcmp(sum, reasons, sizeof(sum)) ?
	       "audit and counters differ" : NULL;
}

static const char *damage_all(struct source *tx, struct sink *rx,
			      const struct h_ticket *k, unsigned int n)
{
	struct h_msg m = { .ticket = k, .data = tx->data, .length = FRAGILE,
			   .meta = tx->data + 1000,
			   .meta_length = FRAGILE_META };
	uint64_t reasons[HAMLYN_STATS_REASONS] = { 0 };
	struct hamlyn_metadata was[ENTRIES];
	const char *wrong = NULL;
	unsigned int i, landed = 0;

	memcpy(was, h_slot_entry(rx->slot, 0), sizeof(was));
	for (i = 0; i < n && !wrong; i++) {
		wrong = damaged_once(tx, rx, &m, &landed);
		add_audit(rx, reasons);
	}
	if (wrong)
		return wrong;
	if (!entries_kept(rx, was))
		return "the owner's part of an entry changed";
	if (landed < n / 4 || landed > n * 19 / 20)
		return "all landed, or none";
	return audit_agrees(rx, reasons);
}

/* A damaged packet lands with one bit wrong, inside the area, or is discarded. */
TEST_F(adversary, beyond_damage)
{
	struct adversary a = { .seed = 1, .corrupt = 100 * PERCENT };
	struct h_ticket k;
	struct sink rx;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, source_reopen_as_somebody(&self->tx, SENDING));
	ASSERT_EQ(0, sink_open(&rx, 1, 2048, HAMLYN_SLOT_NORMAL, 4096));
	ASSERT_EQ(0, h_slot_ticket(rx.slot, FRAGILE_AT, FRAGILE, 3, &k));
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	EXPECT_NO(damage_all(&self->tx, &rx, &k, 500));
	EXPECT_TRUE(sink_untouched(&self->rx));
	sink_close(&rx);
}

/* The same in paranoid mode, and entries' limits and keys hold. */
TEST_F(adversary, beyond_damage_paranoid)
{
	struct adversary a = { .seed = 2, .corrupt = 100 * PERCENT };
	struct h_ticket k, others;
	struct sink rx;
	uint32_t i;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, source_reopen_as_somebody(&self->tx, SENDING));
	ASSERT_EQ(0, sink_open(&rx, 1, 2048, HAMLYN_SLOT_PARANOID, 4096));
	for (i = 0; i < ENTRIES; i++) {
		ASSERT_EQ(0, h_slot_entry_grant(rx.slot, i, 0, 256, &others));
	}
	ASSERT_EQ(0, h_slot_entry_grant(rx.slot, 3, FRAGILE_AT, FRAGILE, &k));
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	EXPECT_NO(damage_all(&self->tx, &rx, &k, 500));
	/* An offset that is off by a bit is outside of the entry's limits. */
	EXPECT_GT(sink_rejects(&rx, HAMLYN_REJECT_BOUNDS), 0);
	sink_close(&rx);
}

/* What is late or overtaken is damaged as often as the rest. */
TEST_F(adversary, beyond_damage_of_what_is_late)
{
	enum { COUNT = 64 };
	struct adversary a = { .seed = 3, .corrupt = 100 * PERCENT };
	struct h_msg m = { .ticket = &self->rx.ticket, .length = 1024,
			   .flags = HAMLYN_TRB_NO_NOTIFY };
	unsigned int i, round, good;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, source_reopen_as_somebody(&self->tx, SENDING));
	for (round = 0; round < 2; round++) {
		a.delay_us = round ? 0 : 1000;
		a.reorder = round ? 100 * PERCENT : 0;
		sink_clear(&self->rx);
		ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
		for (i = 0; i < COUNT; i++) {
			m.offset = i * m.length;
			m.data = self->tx.data + m.offset;
			ASSERT_EQ(1, ht_send_sync(self->tx.terminus, &m));
		}
		ASSERT_EQ(0, leave(&self->genl, SENDING));
		for (good = i = 0; i < COUNT; i++)
			good += !memcmp(self->rx.data + i * m.length,
					self->tx.data + i * m.length, m.length);
		EXPECT_LT(good, COUNT / 4);
		EXPECT_TRUE(sink_guarded(&self->rx));
	}
}

/* ---- delay ---- */

/* Delayed packets arrive, and not earlier than asked for. */
TEST_F(adversary, beyond_delay)
{
	enum { DELAY_MS = 30 };
	struct adversary a = { .seed = 1, .delay_us = DELAY_MS * 1000 };
	struct h_msg m = { .ticket = &self->rx.ticket, .data = self->tx.data,
			   .length = 3 * self->tx.query.packet_size };
	unsigned char count[KEPT] = { 0 };
	struct hamlyn_nq_entry e;
	int64_t begun;
	unsigned int i;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	for (i = 0; i < 5; i++) {
		begun = ht_now_ns();
		ASSERT_EQ(1, ht_send_sync(self->tx.terminus, &m));
		ASSERT_EQ(1, ht_recv(self->rx.nq, &e));
		EXPECT_GE(ht_now_ns() - begun, DELAY_MS * HT_MS);
		EXPECT_EQ(m.length, ht_match(self->rx.data, m.length, 1));
	}
	/* As many as can be kept back. */
	begun = ht_now_ns();
	ASSERT_EQ(1, send_words(&self->tx, &self->rx.ticket, 0, KEPT));
	for (i = 0; i < KEPT; i++) {
		ASSERT_EQ(1, ht_recv(self->rx.nq, &e));
		EXPECT_GE(ht_now_ns() - begun, DELAY_MS * HT_MS);
		ASSERT_LT(e.data, KEPT);
		count[e.data]++;
	}
	EXPECT_EQ(KEPT, how_many(count, KEPT, 1));
}

/* At most 32 packets are kept back; when the adversary leaves all are sent on. */
TEST_F(adversary, beyond_packets_kept_back)
{
	enum { MORE = KEPT + 8 };
	struct adversary a = { .seed = 1, .delay_us = LONG_US };
	unsigned char count[MORE] = { 0 };

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	ASSERT_EQ(1, send_words(&self->tx, &self->rx.ticket, 0, MORE));
	/* Those that had waited longest made room. */
	EXPECT_EQ(MORE - KEPT, sink_drain(&self->rx, count, MORE));
	EXPECT_EQ(MORE - KEPT, how_many(count, MORE - KEPT, 1));
	/* Another adversary takes over: the same. */
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	EXPECT_EQ(KEPT, sink_drain(&self->rx, count, MORE));
	EXPECT_EQ(MORE, how_many(count, MORE, 1));
	ASSERT_EQ(1, send_words(&self->tx, &self->rx.ticket, 0, KEPT));
	EXPECT_EQ(0, sink_drain(&self->rx, count, MORE));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(KEPT, sink_drain(&self->rx, count, MORE));
}

/* ---- everything together ---- */

/* What the tracepoint of the adversary says: enum in driver/trace.h. */
enum { DROPPED, DUPLICATED, DAMAGED, REORDERED, DELAYED, RELEASED, KINDS };

#define MAX_CPUS	16

struct witness {
	int fds[KINDS][MAX_CPUS];
	int cpus;
};

static int count_event(uint64_t id, int cpu, int what)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = id,
	};
	char filter[64];
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1,
			      PERF_FLAG_FD_CLOEXEC);

	snprintf(filter, sizeof(filter), "nic == %d && what == %d", SENDING,
		 what);
	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* False if this kernel does not trace. */
static bool witness_open(struct witness *w)
{
	FILE *f = fopen("/sys/kernel/tracing/events/hamlyn/hamlyn_adversary/id",
			"r");
	unsigned int id = 0;
	int cpu, what;
	bool all = true;

	w->cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	if (!f)
		return false;
	if (fscanf(f, "%u", &id) != 1 || w->cpus > MAX_CPUS)
		all = false;
	fclose(f);
	for (what = 0; all && what < KINDS; what++)
		for (cpu = 0; all && cpu < w->cpus; cpu++) {
			w->fds[what][cpu] = count_event(id, cpu, what);
			all = w->fds[what][cpu] >= 0;
		}
	return all;
}

static uint64_t witnessed(const struct witness *w, int what)
{
	uint64_t value, sum = 0;
	int cpu;

	for (cpu = 0; cpu < w->cpus; cpu++)
		if (read(w->fds[what][cpu], &value, sizeof(value)) ==
		    sizeof(value))
			sum += value;
	return sum;
}

/* Every fourth one names a metadata entry that is not there. */
static const char *send_some_bad(FIXTURE_DATA(adversary) *self, unsigned int n)
{
	struct h_ticket k = self->rx.ticket;
	struct h_msg m = { .ticket = &k, .data = "eightby", .length = 8 };
	int64_t handle = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		k.meta_index = i % 4 ? i % ENTRIES : ENTRIES;
		handle = ht_send(self->tx.terminus, &m);
		if (handle < 0)
			return "not sent";
	}
	return ht_send_wait(self->tx.terminus, handle) == 1 ? NULL : "not done";
}

/* Sent, less lost, and repeated: that many are notified or discarded. */
TEST_F(adversary, beyond_counters_add_up)
{
	enum { COUNT = 2000 };
	struct adversary a = { .seed = 5, .drop = 10 * PERCENT,
			       .duplicate = 20 * PERCENT,
			       .reorder = 10 * PERCENT };
	struct hamlyn_stats before, after;
	uint64_t notified, rejected, arrived;
	struct witness w;
	bool traced;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	traced = witness_open(&w);
	ASSERT_EQ(0, source_stats(&self->tx, &before));
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	ASSERT_NO(send_some_bad(self, COUNT));
	a.delay_us = 100;
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	ASSERT_NO(send_some_bad(self, COUNT / 4));
	/* What was kept back is counted when the adversary leaves. */
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	ASSERT_EQ(0, source_stats(&self->tx, &after));
	notified = after.notifications - before.notifications;
	rejected = sum_rejects(&after) - sum_rejects(&before);
	EXPECT_EQ(COUNT + COUNT / 4, after.messages - before.messages);
	EXPECT_EQ(COUNT + COUNT / 4, after.packets - before.packets);
	EXPECT_EQ(0, after.overruns - before.overruns);
	EXPECT_EQ(notified, sink_drain(&self->rx, NULL, 0));
	EXPECT_EQ(rejected, sink_rejects(&self->rx, HAMLYN_REJECT_METADATA));
	EXPECT_GT(notified, 2 * rejected);
	arrived = COUNT + COUNT / 4;
	if (traced) {
		arrived += witnessed(&w, DUPLICATED) - witnessed(&w, DROPPED);
		EXPECT_EQ(arrived, notified + rejected);
		EXPECT_EQ(witnessed(&w, RELEASED),
			  witnessed(&w, REORDERED) + witnessed(&w, DELAYED));
		EXPECT_GT(witnessed(&w, DROPPED), 0);
	} else {
		EXPECT_GT(notified + rejected, arrived * 9 / 10);
		EXPECT_LT(notified + rejected, arrived * 5 / 4);
	}
	EXPECT_TRUE(sink_guarded(&self->rx));
}

/* Single packets and long messages, into a normal and a paranoid slot. */
static const char *send_mix(FIXTURE_DATA(adversary) *self,
			    const struct h_ticket *paranoid, unsigned int n)
{
	struct h_msg m = { .data = self->tx.data };
	uint64_t random = ht_seed();
	int64_t handle = 0;
	struct h_ticket k;
	unsigned int i;

	for (i = 0; i < n; i++) {
		k = i % 2 ? paranoid[i / 2 % ENTRIES] : self->rx.ticket;
		m.ticket = &k;
		m.length = i % 10 ? 1 + ht_random(&random) % 2000 :
			   2 * self->tx.query.packet_size + 1;
		if (m.length > k.length)
			m.length = k.length;
		m.offset = ht_random(&random) % (k.length - m.length + 1);
		m.meta = i % 3 ? self->tx.data : NULL;
		m.meta_length = i % 3 ? i % 60 : 0;
		handle = ht_send(self->tx.terminus, &m);
		if (handle < 0)
			return "not sent";
	}
	return ht_send_wait(self->tx.terminus, handle) == 1 ? NULL : "not done";
}

/* All at once: nothing is written outside the area, and the counters fit. */
TEST_F(adversary, beyond_everything_at_once)
{
	enum { COUNT = 1500 };
	struct adversary a = {
		.seed = ht_seed(), .drop = 10 * PERCENT,
		.duplicate = 10 * PERCENT, .corrupt = 10 * PERCENT,
		.reorder = 10 * PERCENT,
	};
	struct hamlyn_stats before, after, slots[2];
	struct h_ticket k[ENTRIES];
	uint64_t notified, rejected, arrived;
	struct witness w;
	struct sink rx;
	bool traced;
	uint32_t i;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	traced = witness_open(&w);
	ASSERT_EQ(0, source_reopen_as_somebody(&self->tx, SENDING));
	ASSERT_EQ(0, sink_open(&rx, 1, 1 << 16, HAMLYN_SLOT_PARANOID, 4096));
	for (i = 0; i < ENTRIES; i++) {
		ASSERT_EQ(0, h_slot_entry_grant(rx.slot, i, i * 4096, 8192,
						&k[i]));
	}
	ASSERT_EQ(0, source_stats(&self->tx, &before));
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	ASSERT_NO(send_mix(self, k, COUNT));
	a.delay_us = 100;
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	ASSERT_NO(send_mix(self, k, COUNT / 2));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	ASSERT_EQ(0, source_stats(&self->tx, &after));
	EXPECT_TRUE(sink_guarded(&self->rx));
	EXPECT_TRUE(sink_guarded(&rx));
	/* Behind the last of the limits. */
	EXPECT_EQ(rx.length - (ENTRIES + 1) * 4096,
		  ht_match_byte(rx.data + (ENTRIES + 1) * 4096,
				rx.length - (ENTRIES + 1) * 4096, HT_GUARD));
	ASSERT_EQ(0, h_slot_stats(self->rx.slot, &slots[0]));
	ASSERT_EQ(0, h_slot_stats(rx.slot, &slots[1]));
	notified = after.notifications - before.notifications;
	rejected = sum_rejects(&after) - sum_rejects(&before);
	arrived = after.packets - before.packets;
	EXPECT_EQ(COUNT + COUNT / 2, after.messages - before.messages);
	EXPECT_EQ(notified, sink_drain(&self->rx, NULL, 0) +
			    sink_drain(&rx, NULL, 0));
	EXPECT_EQ(0, h_nq_lost(self->rx.nq));
	EXPECT_GE(rejected, sum_rejects(&slots[0]) + sum_rejects(&slots[1]));
	EXPECT_GT(rejected, 0);
	if (traced) {
		arrived += witnessed(&w, DUPLICATED) - witnessed(&w, DROPPED);
		EXPECT_LE(notified + rejected, arrived);
		EXPECT_LE(rejected, witnessed(&w, DAMAGED));
	}
	EXPECT_GT(notified, COUNT / 2);
	sink_close(&rx);
}

/* ---- revoking, closing, removing while packets are kept back ---- */

static int keep_back(FIXTURE_DATA(adversary) *self, const struct h_ticket *to,
		     unsigned int n)
{
	static const struct adversary a = { .seed = 1, .delay_us = LONG_US };
	int ret = set_adversary(&self->genl, SENDING, &a);

	return ret ? ret : send_words(&self->tx, to, 0, n);
}

/* A rekey reaches packets that are kept back: they are checked on arrival. */
TEST_F(adversary, beyond_rekey_reaches_packets_kept_back)
{
	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(1, keep_back(self, &self->rx.ticket, 8));
	ASSERT_EQ(0, h_slot_rekey(self->rx.slot));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(0, sink_drain(&self->rx, NULL, 0));
	EXPECT_TRUE(sink_untouched(&self->rx));
	EXPECT_EQ(8, sink_rejects(&self->rx, HAMLYN_REJECT_KEY));
	/* The new key works. */
	ASSERT_EQ(0, h_slot_ticket(self->rx.slot, 0, 0, 0, &self->rx.ticket));
	EXPECT_EQ(1, send_words(&self->tx, &self->rx.ticket, 0, 1));
	EXPECT_EQ(1, sink_drain(&self->rx, NULL, 0));
}

/* Revoking an entry of a paranoid slot reaches them as well. */
TEST_F(adversary, beyond_revoking_reaches_packets_kept_back)
{
	struct adversary a = { .seed = 1, .delay_us = LONG_US };
	struct h_ticket k[2];
	struct h_msg m = { .data = self->tx.data, .length = 100 };
	struct hamlyn_nq_entry e;
	struct sink rx;
	uint32_t i;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, sink_open(&rx, 1, 2048, HAMLYN_SLOT_PARANOID, 64));
	ASSERT_EQ(0, set_adversary(&self->genl, SENDING, &a));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, h_slot_entry_grant(rx.slot, i, i * 1024, 1024,
						&k[i]));
		m.ticket = &k[i];
		ASSERT_EQ(1, ht_send_sync(self->tx.terminus, &m));
	}
	ASSERT_EQ(0, h_slot_entry_revoke(rx.slot, 0));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	ASSERT_EQ(1, h_recv(rx.nq, &e));
	EXPECT_EQ(1, e.index);
	EXPECT_EQ(0, h_recv(rx.nq, &e));
	EXPECT_EQ(1024, ht_match_byte(rx.data, 1024, HT_GUARD));
	EXPECT_EQ(100, ht_match(rx.data + 1024, 100, 1));
	EXPECT_EQ(1, sink_rejects(&rx, HAMLYN_REJECT_KEY));
	sink_close(&rx);
}

/* Nothing that is kept back lands after its slot was destroyed. */
TEST_F(adversary, beyond_destroying_with_packets_kept_back)
{
	struct hamlyn_stats before, after;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, source_stats(&self->tx, &before));
	ASSERT_EQ(1, keep_back(self, &self->rx.ticket, 8));
	ASSERT_EQ(0, h_slot_destroy(self->rx.slot));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	ASSERT_EQ(0, source_stats(&self->tx, &after));
	EXPECT_EQ(0, sink_drain(&self->rx, NULL, 0));
	EXPECT_TRUE(sink_untouched(&self->rx));
	EXPECT_EQ(8, after.rejects[HAMLYN_REJECT_SLOT] -
		     before.rejects[HAMLYN_REJECT_SLOT]);
}

/* Nor in a NIC that has gone down meanwhile, also if it is the one that sent it. */
TEST_F(adversary, beyond_own_nic_is_down_before_its_packets_come)
{
	struct hamlyn_stats before, after;
	struct sink own;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, sink_open(&own, SENDING, 4096, HAMLYN_SLOT_NORMAL, 64));
	ASSERT_EQ(1, keep_back(self, &own.ticket, 5));
	ASSERT_EQ(0, source_stats(&self->tx, &before));
	ASSERT_EQ(0, nic_set(&self->genl, SENDING, HAMLYN_A_STATE, HAMLYN_NL_STATE_DOWN));
	EXPECT_EQ(0, leave(&self->genl, SENDING));
	ASSERT_EQ(0, nic_set(&self->genl, SENDING, HAMLYN_A_STATE, HAMLYN_NL_STATE_UP));
	ASSERT_EQ(0, source_stats(&self->tx, &after));
	EXPECT_EQ(0, sink_drain(&own, NULL, 0));
	EXPECT_TRUE(sink_untouched(&own));
	EXPECT_EQ(5, after.rejects[HAMLYN_REJECT_DOWN] - before.rejects[HAMLYN_REJECT_DOWN]);
	sink_close(&own);
}

/* Packets may be kept back longer than their receiver lives, and its memory. */
TEST_F(adversary, beyond_receiver_ends_with_packets_kept_back)
{
	struct hamlyn_stats before, after;
	unsigned int i;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, source_stats(&self->tx, &before));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(1, keep_back(self, &self->rx.ticket, KEPT));
		sink_close(&self->rx);
		ASSERT_EQ(0, leave(&self->genl, SENDING));
		ASSERT_EQ(0, sink_open(&self->rx, 1, 1 << 18,
				       HAMLYN_SLOT_NORMAL, 64));
		EXPECT_TRUE(sink_untouched(&self->rx));
	}
	ASSERT_EQ(0, source_stats(&self->tx, &after));
	EXPECT_EQ(4 * KEPT, sum_rejects(&after) - sum_rejects(&before));
	EXPECT_EQ(after.notifications, before.notifications);
}

/* Packets that are kept back arrive though their sender has ended. */
TEST_F(adversary, beyond_sender_ends_with_packets_kept_back)
{
	unsigned char count[KEPT] = { 0 };

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(1, keep_back(self, &self->rx.ticket, KEPT));
	source_close(&self->tx);
	EXPECT_EQ(0, sink_drain(&self->rx, NULL, 0));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(KEPT, sink_drain(&self->rx, count, KEPT));
	EXPECT_EQ(KEPT, how_many(count, KEPT, 1));
}

/* A NIC can be deleted with packets for it kept back; only these are lost. */
TEST_F(adversary, beyond_nic_deleted_before_its_packets_come)
{
	struct hamlyn_stats before, after;
	struct sink far;
	int nic;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	nic = nic_new_at(&self->genl, HAMLYN_NONE);
	ASSERT_GT(nic, 1);
	ASSERT_EQ(0, source_stats(&self->tx, &before));
	ASSERT_EQ(0, sink_open(&far, nic, 4096, HAMLYN_SLOT_NORMAL, 64));
	ASSERT_EQ(1, keep_back(self, &far.ticket, 5));
	ASSERT_EQ(1, send_words(&self->tx, &self->rx.ticket, 0, 5));
	sink_close(&far);
	ASSERT_EQ(0, nic_del(&self->genl, nic));
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	ASSERT_EQ(0, source_stats(&self->tx, &after));
	EXPECT_EQ(5, sink_drain(&self->rx, NULL, 0));
	EXPECT_EQ(5, after.rejects[HAMLYN_REJECT_DOWN] -
		     before.rejects[HAMLYN_REJECT_DOWN]);
	EXPECT_EQ(5, sum_rejects(&after) - sum_rejects(&before));
}

/* Nor do they land in a NIC that has taken that one's place on the fabric. */
TEST_F(adversary, beyond_nic_replaced_before_its_packets_come)
{
	uint32_t host, slot;
	struct sink far;
	int nic;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	nic = nic_new_at(&self->genl, HAMLYN_NONE);
	ASSERT_GT(nic, 1);
	ASSERT_EQ(0, sink_open(&far, nic, 4096, HAMLYN_SLOT_NORMAL, 64));
	host = far.query.host;
	slot = far.ticket.slot;
	ASSERT_EQ(1, keep_back(self, &far.ticket, 5));
	sink_close(&far);
	ASSERT_EQ(0, nic_del(&self->genl, nic));
	nic = nic_new_at(&self->genl, host);
	ASSERT_GT(nic, 1);
	ASSERT_EQ(0, sink_open(&far, nic, 4096, HAMLYN_SLOT_NORMAL, 64));
	EXPECT_EQ(host, far.query.host);
	EXPECT_EQ(slot, far.ticket.slot);
	ASSERT_EQ(0, leave(&self->genl, SENDING));
	EXPECT_EQ(0, sink_drain(&far, NULL, 0));
	EXPECT_TRUE(sink_untouched(&far));
	EXPECT_EQ(5, sink_rejects(&far, HAMLYN_REJECT_KEY));
	sink_close(&far);
	EXPECT_EQ(0, nic_del(&self->genl, nic));
}

/* Deleting a NIC sends on what its own adversary has kept back. */
TEST_F(adversary, beyond_nic_deleted_behind_its_packets)
{
	struct adversary a = { .seed = 1, .delay_us = LONG_US };
	struct source tx;
	int nic;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	nic = nic_new_at(&self->genl, HAMLYN_NONE);
	ASSERT_GT(nic, 1);
	ASSERT_EQ(0, source_open(&tx, nic, 4096));
	ASSERT_EQ(0, set_adversary(&self->genl, nic, &a));
	ASSERT_EQ(1, send_words(&tx, &self->rx.ticket, 0, KEPT));
	EXPECT_EQ(0, sink_drain(&self->rx, NULL, 0));
	source_close(&tx);
	ASSERT_EQ(0, nic_del(&self->genl, nic));
	EXPECT_EQ(KEPT, sink_drain(&self->rx, NULL, 0));
	EXPECT_TRUE(sink_guarded(&self->rx));
}

/* ---- changes under traffic ---- */

#define SENDERS		3
#define WORDS		4000	/* of each sender at most */

struct sender {
	pthread_t thread;
	struct source tx;
	const struct h_ticket *to;
	const bool *stop;
	uint64_t first;
	unsigned int sent;
	int ret;
};

static void *keep_sending(void *arg)
{
	struct sender *s = arg;

	s->ret = 1;
	while (s->ret == 1 && s->sent < WORDS &&
	       !__atomic_load_n(s->stop, __ATOMIC_RELAXED)) {
		s->ret = send_words(&s->tx, s->to, s->first + s->sent, 20);
		s->sent += 20;
	}
	return NULL;
}

/* Different each time; without @harm nothing is lost, repeated or damaged. */
static int make_mischief(struct genl *g, bool harm)
{
	struct adversary a = { 0 };
	uint64_t random = ht_seed();
	unsigned int i;
	int ret = 0;

	for (i = 0; i < 60 && !ret; i++) {
		if (i % 3) {
			a.seed = ht_random(&random);
			a.reorder = ht_random(&random) % (50 * PERCENT);
			a.delay_us = i % 2 ? ht_random(&random) % 3000 : 0;
			a.drop = harm ? 10 * PERCENT : 0;
			a.duplicate = harm ? 10 * PERCENT : 0;
			a.corrupt = harm ? PERCENT : 0;
			ret = set_adversary(g, SENDING, &a);
		} else {
			ret = leave(g, SENDING);
		}
		ht_sleep_ns(5 * HT_MS);
	}
	return ret ? ret : leave(g, SENDING);
}

/* What arrived, counted by word; words of all that were sent come first. */
static const char *under_traffic(FIXTURE_DATA(adversary) *self, struct sink *rx,
				 bool harm, unsigned char *count)
{
	struct sender s[SENDERS] = { 0 };
	const char *wrong = NULL;
	bool stop = false;
	unsigned int i, j;

	for (i = 0; i < SENDERS; i++) {
		s[i].to = &rx->ticket;
		s[i].stop = &stop;
		s[i].first = i * WORDS;
		if (source_open(&s[i].tx, SENDING, 4096) ||
		    (harm && source_reopen_as_somebody(&s[i].tx, SENDING)) ||
		    pthread_create(&s[i].thread, NULL, keep_sending, &s[i]))
			return "no sender";
	}
	if (make_mischief(&self->genl, harm))
		wrong = "no mischief";
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < SENDERS; i++) {
		pthread_join(s[i].thread, NULL);
		if (s[i].ret != 1)
			wrong = "not sent";
	}
	sink_drain(rx, count, SENDERS * WORDS);
	for (i = 0; i < SENDERS; i++) {
		for (j = 0; !harm && j < WORDS; j++) {
			bool sent = j < s[i].sent;

			if (count[i * WORDS + j] != sent)
				wrong = "not notified exactly once";
		}
		source_close(&s[i].tx);
	}
	return wrong;
}

/* Changing the adversary under traffic loses and repeats nothing by itself. */
TEST_F(adversary, beyond_changes_under_traffic)
{
	static unsigned char count[SENDERS * WORDS];
	struct sink rx;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, sink_open(&rx, 1, 4096, HAMLYN_SLOT_NORMAL, 16384));
	EXPECT_NO(under_traffic(self, &rx, false, count));
	EXPECT_EQ(0, h_nq_lost(rx.nq));
	EXPECT_TRUE(sink_guarded(&rx));
	sink_close(&rx);
}

/* Nor does it crash when all kinds of mischief change. */
TEST_F(adversary, beyond_changes_of_all_kinds_under_traffic)
{
	static unsigned char count[SENDERS * WORDS];
	struct hamlyn_nq_entry e;
	struct sink rx;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, sink_open(&rx, 1, 4096, HAMLYN_SLOT_NORMAL, 16384));
	EXPECT_NO(under_traffic(self, &rx, true, count));
	EXPECT_TRUE(sink_guarded(&rx));
	EXPECT_TRUE(sink_untouched(&self->rx));
	sink_drain(&rx, NULL, 0);
	EXPECT_EQ(1, send_words(&self->tx, &rx.ticket, 0, 1));
	EXPECT_EQ(1, ht_recv(rx.nq, &e));
	sink_close(&rx);
}

/* ---- what is refused ---- */

/* 0 if the one attribute is refused, with a text. */
static int refused(struct genl *g, uint16_t attr, uint32_t value)
{
	struct nlattr *nest;
	int ret;

	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, SENDING);
	nest = genl_put(g, HAMLYN_A_ADVERSARY | NLA_F_NESTED, NULL, 0);
	genl_put_u32(g, attr, value);
	genl_end(g, nest);
	ret = genl_call(g);
	if (ret != -ERANGE && ret != -EINVAL)
		return ret ? ret : -EEXIST;
	return g->text[0] ? 0 : -ENOMSG;
}

static int try_as_somebody(void)
{
	static const struct adversary a = { .drop = 1 };
	static struct genl g;

	if (cf_be_somebody_else(false) ||
	    genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return 1;
	return set_adversary(&g, SENDING, &a) == -EPERM ? 0 : 2;
}

/* Rates and delays out of range are refused, with a text, and change nothing. */
TEST_F(adversary, beyond_adversary_refusals)
{
	static const uint16_t rates[] = {
		HAMLYN_A_ADV_DROP, HAMLYN_A_ADV_DUPLICATE,
		HAMLYN_A_ADV_CORRUPT, HAMLYN_A_ADV_REORDER,
		HAMLYN_A_ADV_STALL,
	};
	struct adversary a = { .seed = 7, .drop = 1, .duplicate = 2,
			       .corrupt = 3, .reorder = 100 * PERCENT,
			       .delay_us = LONG_US, .stall = 4 };
	struct adversary now = { 0 };
	struct genl *g = &self->genl;
	unsigned int i;
	pid_t pid;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, set_adversary(g, SENDING, &a));
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		EXPECT_EQ(0, refused(g, rates[i], 100 * PERCENT + 1));
		EXPECT_EQ(0, refused(g, rates[i], ~0U));
	}
	EXPECT_EQ(0, refused(g, HAMLYN_A_ADV_DELAY_US, LONG_US + 1));
	EXPECT_EQ(0, refused(g, HAMLYN_A_ADV_DELAY_US, ~0U));
	/* It has 64 bits. */
	EXPECT_EQ(0, refused(g, HAMLYN_A_ADV_SEED, 1));
	EXPECT_EQ(0, refused(g, HAMLYN_A_ADV_MAX + 1, 1));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(try_as_somebody());
	EXPECT_EQ(0, ht_reap(pid));
	ASSERT_EQ(0, get_adversary(g, SENDING, &now));
	EXPECT_EQ(0, memcmp(&a, &now, sizeof(a)));
	ASSERT_EQ(0, leave(g, SENDING));
	memset(&a, 0, sizeof(a));
	ASSERT_EQ(0, get_adversary(g, SENDING, &now));
	EXPECT_EQ(0, memcmp(&a, &now, sizeof(a)));
}

/* ---- NICs that come and go ---- */

/* A new NIC has a device node and a host id of its own, and works both ways. */
TEST_F(adversary, beyond_new_nic)
{
	struct hamlyn_nq_entry e;
	struct source far_tx;
	struct sink far, near;
	struct stat st;
	int nic, other;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	nic = nic_new_at(&self->genl, HAMLYN_NONE);
	ASSERT_GT(nic, 1);
	ASSERT_EQ(0, strcmp((const char *)genl_attr(&self->genl, HAMLYN_A_NAME) +
			    NLA_HDRLEN, nic_path(nic) + strlen("/dev/")));
	other = nic_new_at(&self->genl, HAMLYN_NONE);
	ASSERT_GT(other, 1);
	ASSERT_NE(nic, other);
	ASSERT_EQ(0, stat(nic_path(nic), &st));
	EXPECT_TRUE(S_ISCHR(st.st_mode));
	ASSERT_EQ(0, sink_open(&far, nic, 4096, HAMLYN_SLOT_NORMAL, 64));
	ASSERT_EQ(0, sink_open(&near, other, 4096, HAMLYN_SLOT_NORMAL, 64));
	EXPECT_NE(far.query.host, self->tx.query.host);
	EXPECT_NE(far.query.host, self->rx.query.host);
	EXPECT_NE(far.query.host, near.query.host);
	ASSERT_EQ(0, source_open(&far_tx, nic, 4096));
	ASSERT_EQ(1, send_words(&self->tx, &far.ticket, 5, 1));
	ASSERT_EQ(1, ht_recv(far.nq, &e));
	EXPECT_EQ(self->tx.query.host, e.source);
	ASSERT_EQ(1, send_words(&far_tx, &near.ticket, 6, 1));
	ASSERT_EQ(1, ht_recv(near.nq, &e));
	EXPECT_EQ(far.query.host, e.source);
	sink_close(&near);
	source_close(&far_tx);
	sink_close(&far);
	EXPECT_EQ(0, nic_del(&self->genl, other));
	EXPECT_EQ(0, nic_del(&self->genl, nic));
}

/* A NIC that is open is not deleted; afterwards its node and its host are gone. */
TEST_F(adversary, beyond_deleting_nics)
{
	struct genl *g = &self->genl;
	struct h_ticket k;
	struct h_msg m = { .ticket = &k, .data = "x", .length = 1 };
	struct sink far;
	struct stat st;
	int nic;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	nic = nic_new_at(g, HAMLYN_NONE);
	ASSERT_GT(nic, 1);
	ASSERT_EQ(0, sink_open(&far, nic, 4096, HAMLYN_SLOT_NORMAL, 64));
	EXPECT_EQ(-EBUSY, nic_del(g, nic));
	EXPECT_NE(NULL, strstr(g->text, "open"));
	/* And it works on. */
	ASSERT_EQ(1, send_words(&self->tx, &far.ticket, 0, 1));
	EXPECT_EQ(1, sink_drain(&far, NULL, 0));
	k = far.ticket;
	sink_close(&far);
	EXPECT_EQ(0, nic_del(g, nic));
	EXPECT_EQ(-1, stat(nic_path(nic), &st));
	EXPECT_EQ(ENOENT, errno);
	EXPECT_EQ(-EHOSTUNREACH, ht_send_sync(self->tx.terminus, &m));
	EXPECT_EQ(-ENODEV, nic_del(g, nic));
	EXPECT_NE('\0', g->text[0]);
}

static int nic_new_with(struct genl *g, uint16_t attr, uint32_t value)
{
	int ret;

	genl_begin(g, HAMLYN_NL_CMD_NIC_NEW);
	genl_put_u32(g, attr, value);
	ret = genl_call(g);
	return ret && !g->text[0] ? -ENOMSG : ret;
}

/* NICs that cannot be are refused, with a text. */
TEST_F(adversary, beyond_new_nic_refusals)
{
	struct genl *g = &self->genl;

	if (!self->ready)
		SKIP(return, NEED_TWO_NICS);
	EXPECT_EQ(-EEXIST, nic_new_with(g, HAMLYN_A_NIC, 0));
	EXPECT_EQ(-EEXIST, nic_new_with(g, HAMLYN_A_HOST,
					self->rx.query.host));
	EXPECT_EQ(-EINVAL, nic_new_with(g, HAMLYN_A_HOST, HAMLYN_NONE));
	EXPECT_EQ(-ERANGE, nic_new_with(g, HAMLYN_A_NIC, 256));
	EXPECT_EQ(-ERANGE, nic_new_with(g, HAMLYN_A_PACKET_SIZE, 1023));
	EXPECT_EQ(-ERANGE, nic_new_with(g, HAMLYN_A_PACKET_SIZE, 65537));
	EXPECT_EQ(-ERANGE, nic_new_with(g, HAMLYN_A_MAX_SLOTS, 0));
	EXPECT_EQ(-ERANGE, nic_new_with(g, HAMLYN_A_ENGINES, 0));
	EXPECT_EQ(-ERANGE, nic_new_with(g, HAMLYN_A_ENGINES, 17));
}

TEST_HARNESS_MAIN
