// SPDX-License-Identifier: GPL-2.0-only
/* Datagrams: one at a time, where and how long, hostile metadata, revocation. */
#include <hamlyn/datagram.h>

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"
#include "stopped.h"
#include "low/xxh.h"

#define LENGTH	300000
#define PAGE	4096

FIXTURE(datagram) {
	struct h_dev *rx;
	struct h_dev *tx;
	struct h_manager *to;
	struct h_manager *from;
	struct h_datagram_receiver *receiver;
	struct h_datagram_address address;
	unsigned char *data;
};

/* NULL: those of the test. */
static const char *begin(FIXTURE_DATA(datagram) *self, const char *device)
{
	struct h_datagram_attr attr = { .length = LENGTH };
	struct h_seed seed;

	if (device ? h_open(device, &self->rx) || h_open(device, &self->tx) :
		     ht_open(&self->rx) || ht_open_tx(&self->tx))
		return "no device";
	if (h_manager_create(self->rx, NULL, &self->to) ||
	    h_manager_create(self->tx, NULL, &self->from))
		return "no manager";
	if (h_datagram_receiver_create(self->to, &attr, &self->receiver))
		return "no receiver";
	h_datagram_receiver_seed(self->receiver, &seed);
	if (h_datagram_resolve(&seed, &self->address))
		return "no address";
	self->data = malloc(LENGTH);
	if (!self->data)
		return "no memory";
	ht_fill(self->data, LENGTH, 5);
	return NULL;
}

static const char *end(FIXTURE_DATA(datagram) *self)
{
	const char *text = NULL;

	if (h_datagram_receiver_destroy(self->receiver))
		text = "the receiver is still there";
	if (h_manager_destroy(self->to) || h_manager_destroy(self->from))
		text = "a manager is still there";
	h_close(self->tx);
	h_close(self->rx);
	free(self->data);
	return text;
}

FIXTURE_SETUP(datagram)
{
	ASSERT_NO(begin(self, NULL));
}

FIXTURE_TEARDOWN(datagram)
{
	EXPECT_NO(end(self));
}

static int send_part(FIXTURE_DATA(datagram) *self, size_t offset, size_t length)
{
	return h_datagram_send(self->from, &self->address, offset,
			       self->data + offset, length, NULL, 5 * HT_SEC);
}

static const char *wrong(FIXTURE_DATA(datagram) *self, size_t offset,
			 size_t length)
{
	struct h_datagram d;

	if (h_datagram_receive(self->receiver, &d, 10 * HT_SEC))
		return "nothing received";
	if (d.offset != offset || d.length != length || d.has_reply)
		return "another place, length or reply";
	if (memcmp(d.data, self->data + offset, length))
		return "other data";
	h_datagram_release(self->receiver);
	return NULL;
}

/* H 3.3: A datagram tells the receiver its offset and its length. */
TEST_F(datagram, any_size_arrives_where_it_was_sent)
{
	static const size_t sizes[] = { 0, 1, 100, 384, 385, 448, 449, 65536,
					65537, 200000, LENGTH };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_EQ(0, send_part(self, LENGTH - sizes[i], sizes[i]));
		ASSERT_NO(wrong(self, LENGTH - sizes[i], sizes[i]));
	}
	EXPECT_EQ(-ERANGE, send_part(self, LENGTH, 1));
	EXPECT_EQ(-ERANGE, send_part(self, 1, LENGTH));
}

/* H 3.3: A datagram receiver is ready or not ready: there is no queue. */
TEST_F(datagram, who_is_not_ready_receives_the_first_one_only)
{
	struct h_datagram_stats stats;
	struct h_datagram d;

	ASSERT_EQ(0, send_part(self, 0, 10));
	ASSERT_EQ(0, send_part(self, 10, 20));
	ASSERT_EQ(0, h_datagram_receive(self->receiver, &d, 10 * HT_SEC));
	EXPECT_EQ(10, d.length);
	ASSERT_EQ(0, send_part(self, 0, 30));
	EXPECT_EQ(-ETIMEDOUT, h_datagram_receive(self->receiver, &d,
						 20 * HT_MS));
	h_datagram_release(self->receiver);
	EXPECT_EQ(-EAGAIN, h_datagram_receive(self->receiver, &d, H_NOWAIT));
	ASSERT_EQ(0, send_part(self, 7, 40));
	ASSERT_NO(wrong(self, 7, 40));
	ASSERT_EQ(0, h_datagram_receiver_stats(self->receiver, &stats));
	EXPECT_EQ(2, stats.received);
	EXPECT_EQ(2, stats.dropped);
	EXPECT_EQ(0, stats.malformed);
}

/* Raw, with metadata of one's own. */
static int send_raw_to(FIXTURE_DATA(datagram) *self, uint64_t offset,
		       const void *meta, size_t meta_length, uint32_t length,
		       uint32_t delta)
{
	struct h_terminus *t = h_manager_terminus(self->from);
	struct h_msg msg = {
		.ticket = &self->address.ticket,
		.offset = offset,
		.data = self->data,
		.length = length,
		.meta = meta,
		.meta_length = meta_length,
		.delta = delta,
	};

	return ht_send_sync(t, &msg);
}

static int send_raw(FIXTURE_DATA(datagram) *self, const void *meta,
		    size_t meta_length, uint32_t length, uint32_t delta)
{
	return send_raw_to(self, 0, meta, meta_length, length, delta);
}

static void put(unsigned char *meta, uint32_t length, uint64_t offset)
{
	memcpy(meta, &length, 4);
	memcpy(meta + 4, &offset, 8);
}

/* What comes while the one before has not been looked at finds no buffer. */
static bool have_been_dropped(FIXTURE_DATA(datagram) *self, unsigned int n)
{
	struct h_datagram_stats stats;
	struct h_datagram d;
	struct ht_poll poll;

	ht_poll_begin(&poll);
	do {
		if (h_datagram_receive(self->receiver, &d, H_NOWAIT) != -EAGAIN)
			return false;
		if (h_datagram_receiver_stats(self->receiver, &stats))
			return false;
	} while (stats.malformed < n && ht_poll_more(&poll));
	return stats.malformed == n;
}

TEST_F(datagram, nonsense_is_dropped_and_the_next_one_received)
{
	static const struct { uint32_t length; uint64_t offset; } bad[] = {
		{ 9, 0 }, { 11, 0 }, { 0xffffffff, 0 }, { 10, LENGTH - 9 },
		{ 10, LENGTH + 1 }, { 10, UINT64_MAX }, { 10, UINT64_MAX - 9 },
	};
	uint64_t state = ht_seed();
	unsigned char meta[60];
	struct h_datagram_stats stats;
	struct h_datagram d;
	unsigned int i, j, n = 0;

	for (i = 0; i < ARRAY_SIZE(bad); i++, n++) {
		put(meta, bad[i].length, bad[i].offset);
		ASSERT_EQ(1, send_raw(self, meta, 12, 10, 0));
		EXPECT_EQ(-ETIMEDOUT, h_datagram_receive(self->receiver, &d,
							 10 * HT_MS));
		ASSERT_TRUE(have_been_dropped(self, n + 1));
	}
	/* Any other amount of metadata, none, and tickets that are none. */
	for (i = 0; i <= 60; i++) {
		if (i == 12)
			continue;
		for (j = 0; j < i; j++)
			meta[j] = (unsigned char)ht_random(&state);
		put(meta, 10, 0);
		ASSERT_EQ(1, send_raw(self, i ? meta : NULL, i, 10, 0));
		EXPECT_EQ(-ETIMEDOUT, h_datagram_receive(self->receiver, &d,
							 2 * HT_MS));
		ASSERT_TRUE(have_been_dropped(self, ++n));
	}
	ASSERT_EQ(0, h_datagram_receiver_stats(self->receiver, &stats));
	EXPECT_EQ(n, stats.malformed);
	EXPECT_EQ(0, stats.received);
	ASSERT_EQ(0, send_part(self, 3, 1000));
	ASSERT_NO(wrong(self, 3, 1000));
}

TEST_F(datagram, a_piece_of_a_message_does_not_keep_long_ones_out_for_ever)
{
	struct h_datagram d;

	/* As the tail of one whose head came too early. */
	ASSERT_EQ(1, send_raw(self, NULL, 0, 10, 0 - 1U));
	EXPECT_EQ(-ETIMEDOUT, h_datagram_receive(self->receiver, &d,
						 1500 * HT_MS));
	ASSERT_EQ(0, send_part(self, 0, LENGTH));
	ASSERT_NO(wrong(self, 0, LENGTH));
}

/* The others' long ones come in all the time, but cannot end: one packet is too many. */
TEST_F(datagram, a_piece_of_a_message_does_not_keep_others_out_who_go_on_sending)
{
	int64_t end = ht_now_ns() + 10 * HT_SEC * ht_scale();
	struct h_datagram d;
	int ret = -EAGAIN;

	ASSERT_EQ(1, send_raw(self, NULL, 0, 10, 1));
	while (ret && ht_now_ns() < end) {
		ASSERT_EQ(0, send_part(self, 0, LENGTH));
		ret = h_datagram_receive(self->receiver, &d, 20 * HT_MS);
	}
	ASSERT_EQ(0, ret);
	EXPECT_EQ(LENGTH, d.length);
	EXPECT_EQ(0, memcmp(d.data, self->data, LENGTH));
	h_datagram_release(self->receiver);
}

/* Where the message ends there is nothing to read. */
static void send_and_die(FIXTURE_DATA(datagram) *self)
{
	struct h_manager *from;
	struct h_dev *dev;
	char *p;

	signal(SIGSEGV, SIG_DFL);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || mprotect(p + PAGE, PAGE, PROT_NONE) ||
	    h_open(ht_device(), &dev) || h_manager_create(dev, NULL, &from))
		_exit(1);
	/* So short that nothing of it is copied before. */
	h_datagram_send(from, &self->address, 0, p + PAGE - 8, 64, NULL,
			HT_SEC);
	_exit(2);
}

TEST_F(datagram, who_dies_inside_does_not_keep_the_others_out)
{
	struct h_datagram d;
	unsigned int i;
	pid_t pid;

	if (!h_dev_is_embedded(self->rx))
		SKIP(return, "the NIC does not die with who sends");
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		send_and_die(self);
	ASSERT_EQ(128 + SIGSEGV, ht_reap(pid));
	/* Dropped, until the receiver has looked for long enough. */
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, send_part(self, 0, LENGTH));
		if (!h_datagram_receive(self->receiver, &d, HT_SEC))
			break;
	}
	ASSERT_LT(i, 10);
	ASSERT_EQ(LENGTH, d.length);
	EXPECT_EQ(0, memcmp(d.data, self->data, LENGTH));
	h_datagram_release(self->receiver);
	/* The address is the one it was. */
	ASSERT_EQ(0, send_part(self, 1, 99));
	ASSERT_NO(wrong(self, 1, 99));
}

/* ---- what others have sent before ---------------------------------------- */

/* So short that it goes with the request, from any memory. */
enum { SECRET = 200, ELSEWHERE = 200000 };

/* It was sent elsewhere, and is said to be where @offset is: what is there? */
static const char *lie_finds(FIXTURE_DATA(datagram) *self, size_t offset)
{
	const char *text = NULL;
	unsigned char meta[12];
	struct h_datagram d;

	put(meta, SECRET, offset);
	if (send_raw_to(self, ELSEWHERE, meta, 12, SECRET, 0) != 1)
		return "not sent";
	if (h_datagram_receive(self->receiver, &d, 10 * HT_SEC))
		return "nothing received";
	if (d.offset != offset || d.length != SECRET)
		text = "another place or length";
	else if (ht_match_byte(d.data, SECRET, 0) != SECRET)
		text = "what others have sent";
	h_datagram_release(self->receiver);
	return text;
}

/* Of a long one whose end does not come: nobody's message. */
static int send_piece(FIXTURE_DATA(datagram) *self)
{
	return send_raw(self, NULL, 0, SECRET, 1);
}

static const char *times_out(FIXTURE_DATA(datagram) *self, int64_t ns)
{
	struct h_datagram d;

	return h_datagram_receive(self->receiver, &d, ns) == -ETIMEDOUT ?
	       NULL : "something was received, or nothing works";
}

TEST_F(datagram, who_lies_about_its_place_does_not_get_what_was_received)
{
	struct h_seed seed;
	struct h_datagram d;

	ASSERT_EQ(0, send_part(self, 7, 3 * SECRET));
	ASSERT_NO(wrong(self, 7, 3 * SECRET));
	EXPECT_NO(lie_finds(self, 7));
	EXPECT_NO(lie_finds(self, 7 + 2 * SECRET));
	/* Held while the key was changed. */
	ASSERT_EQ(0, send_part(self, 0, SECRET));
	ASSERT_EQ(0, h_datagram_receive(self->receiver, &d, 10 * HT_SEC));
	ASSERT_EQ(0, h_datagram_rekey(self->receiver, &seed));
	ASSERT_EQ(0, h_datagram_resolve(&seed, &self->address));
	EXPECT_EQ(0, memcmp(d.data, self->data, SECRET));
	h_datagram_release(self->receiver);
	EXPECT_NO(lie_finds(self, 0));
}

TEST_F(datagram, who_lies_about_its_place_does_not_get_what_was_dropped)
{
	unsigned char meta[12];

	put(meta, SECRET + 1, 0);
	ASSERT_EQ(1, send_raw(self, meta, 12, SECRET, 0));
	ASSERT_NO(times_out(self, 10 * HT_MS));
	EXPECT_NO(lie_finds(self, 0));
}

/* It came before the request, and is no answer. */
TEST_F(datagram, who_lies_about_its_place_does_not_get_what_a_request_dropped)
{
	struct h_datagram d;
	struct ht_poll poll;

	ASSERT_EQ(0, send_part(self, 0, SECRET));
	for (ht_poll_begin(&poll); !h_manager_poll(self->to);)
		ASSERT_TRUE(ht_poll_more(&poll));
	/* Its own answer: without one the key would be changed. */
	ASSERT_EQ(0, h_datagram_request(self->receiver, &self->address, NULL, 0, &d,
					10 * HT_SEC));
	ASSERT_EQ(0, d.length);
	h_datagram_release(self->receiver);
	EXPECT_NO(lie_finds(self, 0));
}

/* The rest of it would have come later, or was lost. */
TEST_F(datagram, who_lies_about_its_place_does_not_get_pieces_of_long_ones)
{
	struct h_seed seed;

	/* A short one came between its packets. */
	ASSERT_EQ(1, send_piece(self));
	ASSERT_EQ(0, send_part(self, 5000, 10));
	ASSERT_NO(wrong(self, 5000, 10));
	EXPECT_NO(lie_finds(self, 0));
	/* Nothing came for long. */
	ASSERT_EQ(1, send_piece(self));
	ASSERT_NO(times_out(self, 1500 * HT_MS));
	EXPECT_NO(lie_finds(self, 0));
	/* The key was changed. */
	ASSERT_EQ(1, send_piece(self));
	ASSERT_EQ(0, h_datagram_rekey(self->receiver, &seed));
	ASSERT_EQ(0, h_datagram_resolve(&seed, &self->address));
	EXPECT_NO(lie_finds(self, 0));
}

/* It made a message of it, and did not say so. */
TEST_F(datagram, who_lies_about_its_place_does_not_get_what_it_has_ended)
{
	unsigned char meta[12];
	struct h_datagram d;

	ASSERT_EQ(1, send_raw_to(self, 1000, NULL, 0, SECRET, 1));
	put(meta, SECRET + 8, 0);
	ASSERT_EQ(1, send_raw(self, meta, 12, 8, 0 - 1U));
	ASSERT_EQ(0, h_datagram_receive(self->receiver, &d, 10 * HT_SEC));
	EXPECT_EQ(0, d.offset);
	h_datagram_release(self->receiver);
	EXPECT_NO(lie_finds(self, 1000));
}

TEST_F(datagram, who_lies_about_its_place_does_not_get_what_the_dead_have_sent)
{
	pid_t pid;
	int i;

	if (!h_dev_is_embedded(self->rx))
		SKIP(return, "the NIC does not die with who sends");
	ASSERT_EQ(1, send_piece(self));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		send_and_die(self);
	ASSERT_EQ(128 + SIGSEGV, ht_reap(pid));
	for (i = 0; i < 5; i++)
		ASSERT_NO(times_out(self, 500 * HT_MS));
	EXPECT_NO(lie_finds(self, 0));
}

/* ---- packets of two senders that make up a message ------------------------ */

/* One of two packets of @from: the first with the metadata of the whole message. */
static int send_half(FIXTURE_DATA(datagram) *self, const unsigned char *from, bool second)
{
	uint32_t check = (uint32_t)XXH3_64bits(from, 2 * SECRET);
	unsigned char meta[12];
	struct h_msg msg = {
		.ticket = &self->address.ticket,
		.offset = second ? SECRET : 0,
		.data = second ? from + SECRET : from,
		.length = SECRET,
		.meta = meta,
		.meta_length = second ? 0 : sizeof(meta),
		.delta = second ? 0 - 1U : 1,
	};

	put(meta, 2 * SECRET, 0);
	memcpy(meta + 8, &check, sizeof(check));
	return ht_send_sync(h_manager_terminus(self->from), &msg);
}

TEST_F(datagram, who_begins_and_who_ends_a_long_one_are_the_same)
{
	const unsigned char *one = self->data, *other = self->data + 5000;
	struct h_datagram_stats stats;

	ASSERT_EQ(1, send_half(self, one, false));
	ASSERT_EQ(1, send_half(self, one, true));
	ASSERT_NO(wrong(self, 0, 2 * SECRET));
	ASSERT_EQ(1, send_half(self, one, false));
	ASSERT_EQ(1, send_half(self, other, true));
	ASSERT_NO(times_out(self, 10 * HT_MS));
	ASSERT_EQ(0, h_datagram_receiver_stats(self->receiver, &stats));
	EXPECT_EQ(1, stats.malformed);
	ASSERT_EQ(0, send_part(self, 3, LENGTH - 3));
	ASSERT_NO(wrong(self, 3, LENGTH - 3));
}

/* ---- who is stopped while his datagram lands ------------------------------ */

/* Others' calls that make and end something. */
struct other {
	struct h_dev *dev;
	int64_t longest_ns;
	int result;
	uint32_t stop;		/* atomic */
};

static void *make_and_end(void *arg)
{
	struct other *o = arg;

	while (!__atomic_load_n(&o->stop, __ATOMIC_SEQ_CST) && !o->result) {
		int64_t begin = ht_now_ns();
		struct h_area *area;

		o->result = h_area_alloc(o->dev, PAGE, &area);
		if (!o->result)
			o->result = h_area_remove(area);
		if (ht_now_ns() - begin > o->longest_ns)
			o->longest_ns = ht_now_ns() - begin;
		ht_sleep_ns(HT_MS);
	}
	return NULL;
}

/* Calls that do not wait, and some that do for a moment: the most time beyond that. */
static int64_t longest_receive(struct h_datagram_receiver *r)
{
	int64_t longest = 0, end = ht_now_ns() + 2 * HT_SEC;
	struct h_datagram d;
	unsigned int i;

	for (i = 0; ht_now_ns() < end; i++) {
		int64_t timeout = i % 8 ? H_NOWAIT : 20 * HT_MS, took;

		took = -ht_now_ns();
		if (h_datagram_receive(r, &d, timeout) !=
		    (timeout ? -ETIMEDOUT : -EAGAIN))
			return INT64_MAX;
		took += ht_now_ns() - timeout;
		if (took > longest)
			longest = took;
		ht_sleep_ns(20 * HT_MS);
	}
	return longest;
}

TEST_F(datagram, who_is_stopped_inside_holds_up_nobody)
{
	struct other other = { .dev = self->tx };
	struct h_datagram d;
	pthread_t thread;
	pid_t pid;

	if (!h_dev_is_embedded(self->rx))
		SKIP(return, "the NIC does not stop with who sends");
	pid = stopped_sender(&self->address);
	ASSERT_GT(pid, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, make_and_end, &other));
	EXPECT_LT(longest_receive(self->receiver), stopped_soon());
	__atomic_store_n(&other.stop, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, other.result);
	EXPECT_LT(other.longest_ns, stopped_soon());
	/* Nor was it cut off. */
	kill(pid, SIGCONT);
	EXPECT_EQ(0, ht_reap(pid));
	ASSERT_EQ(0, h_datagram_receive(self->receiver, &d, 10 * HT_SEC));
	EXPECT_EQ(64, d.length);
	h_datagram_release(self->receiver);
	ASSERT_EQ(0, send_part(self, 1, 99));
	ASSERT_NO(wrong(self, 1, 99));
}

/* Only who takes its right away has to wait. */
TEST_F(datagram, who_is_stopped_inside_keeps_nobody_from_the_tables)
{
	struct other other = { .dev = self->tx };
	struct h_datagram d;
	struct h_seed seed;
	pthread_t thread;
	pid_t pid;

	if (!h_dev_is_embedded(self->rx))
		SKIP(return, "the NIC does not stop with who sends");
	pid = stopped_sender(&self->address);
	ASSERT_GT(pid, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, make_and_end, &other));
	EXPECT_EQ(-ETIMEDOUT, h_datagram_rekey(self->receiver, &seed));
	__atomic_store_n(&other.stop, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, other.result);
	EXPECT_LT(other.longest_ns, stopped_soon());
	kill(pid, SIGCONT);
	EXPECT_EQ(0, ht_reap(pid));
	/* What was under way may have landed. */
	if (!h_datagram_receive(self->receiver, &d, 20 * HT_MS))
		h_datagram_release(self->receiver);
	ASSERT_EQ(0, h_datagram_rekey(self->receiver, &seed));
	ASSERT_EQ(0, h_datagram_resolve(&seed, &self->address));
	ASSERT_EQ(0, send_part(self, 1, 99));
	ASSERT_NO(wrong(self, 1, 99));
}

TEST_F(datagram, who_was_revoked_gets_nothing_in)
{
	struct h_seed seed;
	struct h_datagram d;

	ASSERT_EQ(0, send_part(self, 0, 5));
	ASSERT_NO(wrong(self, 0, 5));
	ASSERT_EQ(0, h_datagram_revoke(self->receiver));
	ASSERT_EQ(0, send_part(self, 0, 6));
	EXPECT_EQ(-ETIMEDOUT, h_datagram_receive(self->receiver, &d,
						 20 * HT_MS));
	ASSERT_EQ(0, h_datagram_rekey(self->receiver, &seed));
	ASSERT_EQ(0, send_part(self, 0, 7));
	EXPECT_EQ(-ETIMEDOUT, h_datagram_receive(self->receiver, &d,
						 20 * HT_MS));
	ASSERT_EQ(0, h_datagram_resolve(&seed, &self->address));
	ASSERT_EQ(0, send_part(self, 0, 8));
	ASSERT_EQ(0, h_datagram_receive(self->receiver, &d, 10 * HT_SEC));
	/* What is held outlives a rekey, and the next one needs the new key. */
	ASSERT_EQ(0, h_datagram_rekey(self->receiver, &seed));
	EXPECT_EQ(0, memcmp(d.data, self->data, 8));
	h_datagram_release(self->receiver);
	ASSERT_EQ(0, send_part(self, 0, 9));
	EXPECT_EQ(-ETIMEDOUT, h_datagram_receive(self->receiver, &d,
						 20 * HT_MS));
	ASSERT_EQ(0, h_datagram_resolve(&seed, &self->address));
	ASSERT_EQ(0, send_part(self, 0, 10));
	ASSERT_NO(wrong(self, 0, 10));
}

TEST_F(datagram, a_damaged_seed_is_none)
{
	struct h_datagram_address address;
	struct h_seed seed;
	unsigned int i;

	h_datagram_receiver_seed(self->receiver, &seed);
	/* The last four bytes mean nothing. */
	for (i = 0; i < sizeof(seed) - 4; i++) {
		seed.bytes[i] ^= 1;
		EXPECT_NE(0, h_datagram_resolve(&seed, &address)) {
			TH_LOG("byte %u", i);
		}
		seed.bytes[i] ^= 1;
	}
}

/* In a child: answers requests with their length, until one is empty. */
static int serve(int from, int to)
{
	struct h_datagram_receiver *r;
	struct h_manager *m;
	struct h_dev *dev;
	struct h_seed seed;
	uint64_t length;

	(void)from;
	if (h_open(ht_device(), &dev) || h_manager_create(dev, NULL, &m) ||
	    h_datagram_receiver_create(m, NULL, &r))
		return 2;
	h_datagram_receiver_seed(r, &seed);
	if (ht_write_all(to, &seed, sizeof(seed)))
		return 3;
	do {
		struct h_datagram d;
		int err;

		if (h_datagram_receive(r, &d, 30 * HT_SEC) || !d.has_reply)
			return 4;
		length = d.length;
		h_datagram_release(r);
		err = length == 13 ? 0 :	/* that one has no answer */
		      h_datagram_send(m, &d.reply, 0, &length, sizeof(length),
				      NULL, 5 * HT_SEC);
		if (err)
			return 5;
	} while (length);
	h_datagram_receiver_destroy(r);
	h_manager_destroy(m);
	h_close(dev);
	return 0;
}

/* In a child. -1 if there is none. */
static pid_t serve_elsewhere(struct h_datagram_address *server)
{
	struct h_seed seed;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return -1;
	pid = ht_fork();
	if (!pid)
		_exit(serve(fds[0], fds[1]));
	if (ht_read_all(fds[0], &seed, sizeof(seed)) ||
	    h_datagram_resolve(&seed, server))
		return -1;
	return pid;
}

/* H 3.3: It can include a place for the reply. */
TEST_F(datagram, another_process_answers_requests)
{
	struct h_datagram_address server;
	struct h_datagram answer;
	pid_t pid;
	int i;

	pid = serve_elsewhere(&server);
	ASSERT_GT(pid, 0);
	for (i = 200; i >= 0; i--) {
		uint64_t n;
		int ret = h_datagram_request(self->receiver, &server, self->data,
					     i, &answer,
					     i == 13 ? 50 * HT_MS : 20 * HT_SEC);

		if (i == 13) {
			ASSERT_EQ(-ETIMEDOUT, ret);
			continue;
		}
		ASSERT_EQ(0, ret);
		ASSERT_EQ(sizeof(n), answer.length);
		memcpy(&n, answer.data, sizeof(n));
		ASSERT_EQ((uint64_t)i, n);
		EXPECT_EQ(-EBUSY, h_datagram_request(self->receiver, &server,
						     NULL, 0, &answer, 0));
		h_datagram_release(self->receiver);
	}
	EXPECT_EQ(0, ht_reap(pid));
}

TEST_F(datagram, a_request_after_a_revocation_is_answered)
{
	struct h_datagram_address server;
	struct h_datagram answer;
	pid_t pid;

	pid = serve_elsewhere(&server);
	ASSERT_GT(pid, 0);
	/* As after a time-out whose rekey failed: nobody may answer. */
	ASSERT_EQ(0, h_datagram_revoke(self->receiver));
	EXPECT_EQ(0, h_datagram_request(self->receiver, &server, NULL, 0,
					&answer, 5 * HT_SEC));
	EXPECT_EQ(0, ht_reap(pid));
}

TEST_F(datagram, where_no_datagram_can_go_is_no_reply_address)
{
	struct h_ticket fast = self->address.ticket;
	struct h_datagram_stats stats;
	unsigned char meta[60];
	struct h_datagram d;

	fast.meta_index = HAMLYN_META_FAST;
	put(meta, 10, 0);
	h_ticket_export(&fast, meta + 12);
	ASSERT_EQ(1, send_raw(self, meta, sizeof(meta), 10, 0));
	EXPECT_EQ(-ETIMEDOUT, h_datagram_receive(self->receiver, &d,
						 10 * HT_MS));
	ASSERT_EQ(0, h_datagram_receiver_stats(self->receiver, &stats));
	EXPECT_EQ(1, stats.malformed);
}

/* ---- while the manager is held back ------------------------------------- */

#define GUESSES		2	/* the second one is paid for with a second */

/* As a peer that lies about where its credits go can make it. */
static int64_t guess(FIXTURE_DATA(datagram) *self)
{
	struct h_ticket wrong = self->address.ticket;

	wrong.key ^= 0x5555;
	return h_send_msg(h_manager_terminus(self->to), &wrong, "x", 1, NULL, 0);
}

static const char *guess_for_long(FIXTURE_DATA(datagram) *self, int count)
{
	int64_t end = ht_now_ns() + ht_patience_ns();

	while (count) {
		int64_t ret = guess(self);

		if (ret != -EAGAIN && ret < 0)
			return "a guess is refused";
		if (ht_now_ns() > end)
			return "it takes too long";
		if (ret == -EAGAIN)
			ht_sleep_ns(HT_MS);
		else
			count--;
	}
	return NULL;
}

struct waiter {
	struct h_manager *m;
	int result;
	int64_t woken_ns;
};

static void *wait_for_ready(void *arg)
{
	struct waiter *w = arg;

	w->result = h_manager_wait(w->m, 20 * HT_SEC);
	w->woken_ns = ht_now_ns();
	return NULL;
}

static void ignore(struct h_datagram_receiver *receiver, void *arg)
{
	(void)receiver;
	(void)arg;
}

/* Wake a thread that sleeps on the NQ, while the manager's terminus is held back. */
static const char *wake_another(FIXTURE_DATA(datagram) *self, bool *quick)
{
	struct waiter w = { .m = self->to };
	pthread_t thread;
	int64_t asked, own;

	h_datagram_receiver_on_ready(self->receiver, NULL, NULL);
	if (h_manager_dispatch(self->to))
		return "called back for nothing";
	if (guess_for_long(self, 1))
		return "cannot guess";
	if (pthread_create(&thread, NULL, wait_for_ready, &w))
		return "no thread";
	ht_sleep_ns(100 * HT_MS);
	asked = ht_now_ns();
	own = ht_thread_ns();
	h_datagram_receiver_on_ready(self->receiver, ignore, NULL);
	*quick = ht_thread_ns() - own < 20 * HT_MS && guess(self) == -EAGAIN;
	pthread_join(thread, NULL);
	/* Half a second after it fell asleep it looks by itself. */
	if (w.woken_ns - asked > 300 * HT_MS)
		*quick = false;
	return w.result ? "nobody was woken" : NULL;
}

/* In a segment where guesses count, and harm nobody else. */
FIXTURE(held_back) {
	FIXTURE_DATA(datagram) on;
};

FIXTURE_SETUP(held_back)
{
	char name[48];

	if (ht_device() && strncmp(ht_device(), "shm:", 4))
		SKIP(return, "of the embedded device: who guesses is held back for long");
	snprintf(name, sizeof(name), "shm:datagram-%d,guesses=1", getpid());
	ASSERT_NO(begin(&self->on, name));
}

FIXTURE_TEARDOWN(held_back)
{
	EXPECT_NO(end(&self->on));
}

TEST_F(held_back, who_is_held_back_wakes_others_at_once)
{
	FIXTURE_DATA(datagram) *on = &self->on;
	struct h_datagram d;
	bool quick = false;
	int i;

	ASSERT_NO(guess_for_long(on, GUESSES - 1));
	ASSERT_EQ(0, send_part(on, 0, 8));
	h_manager_poll(on->to);
	/* Other processes may keep us waiting, but not each time. */
	for (i = 0; i < 20 && !quick; i++) {
		ASSERT_NO(wake_another(on, &quick));
	}
	EXPECT_TRUE(quick);
	TH_LOG("%d tries", i);
	EXPECT_EQ(0, h_datagram_receive(on->receiver, &d, HT_SEC));
}

enum { TERMINI = 4096 };	/* more than there can be */

/* Then the terminus that is held back has to do, and who wakes has to wait. */
TEST_F(held_back, who_can_have_no_other_terminus_does_not_spin)
{
	FIXTURE_DATA(datagram) *on = &self->on;
	static struct h_terminus *termini[TERMINI];
	struct h_datagram d;
	bool quick;
	int64_t spent;
	int n = 0;

	ASSERT_NO(guess_for_long(on, GUESSES - 1));
	ASSERT_EQ(0, send_part(on, 0, 8));
	h_manager_poll(on->to);
	while (n < TERMINI && !h_terminus_create(on->tx, NULL, &termini[n]))
		n++;
	ASSERT_LT(n, TERMINI);
	spent = ht_thread_ns();
	EXPECT_NO(wake_another(on, &quick));
	spent = ht_thread_ns() - spent;
	EXPECT_LT(spent, 50 * HT_MS);
	while (n) {
		EXPECT_EQ(0, h_terminus_destroy(termini[--n]));
	}
	EXPECT_EQ(0, h_datagram_receive(on->receiver, &d, HT_SEC));
}

TEST_HARNESS_MAIN
