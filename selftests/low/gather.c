// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads in pieces, from several send buffer areas. And gathers whose root loses
 * notifications; the others are in barrier.c.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <hamlyn/gather.h>
#include <hamlyn/tagged.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

/* To stop within the search for a tag. */
#include "low/device.h"

#define TAGS	8

FIXTURE(gather) {
	struct ht_pair pair;
	struct h_area *areas[TAGS];
	unsigned char *buffers[TAGS];
	size_t views[TAGS];
	uint64_t random;
	size_t most;
};

/* Eight areas, of which each tag has a part that begins and ends oddly. */
FIXTURE_SETUP(gather)
{
	struct ht_pair_attr attr = { .meta = 1 };
	unsigned int tag;

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->most = self->pair.length;
	self->random = ht_seed();
	for (tag = 0; tag < TAGS; tag++) {
		uint64_t base = tag * 100 + 1;

		self->views[tag] = self->most / 2 - tag * 7;
		ASSERT_EQ(0, h_area_alloc(self->pair.tx, self->most,
					  &self->areas[tag]));
		ASSERT_EQ(0, h_terminus_bind(self->pair.terminus, tag,
					     self->areas[tag], base,
					     self->views[tag]));
		self->buffers[tag] = (unsigned char *)
				     h_area_addr(self->areas[tag]) + base;
		memset(h_area_addr(self->areas[tag]), 0xbb, self->most);
		ht_fill(self->buffers[tag], self->views[tag], tag);
	}
}

FIXTURE_TEARDOWN(gather)
{
	ht_pair_close(&self->pair);
}

static size_t join(const struct iovec *iov, int count, unsigned char *to)
{
	size_t length = 0;
	int i;

	for (i = 0; i < count; i++) {
		memcpy(to + length, iov[i].iov_base, iov[i].iov_len);
		length += iov[i].iov_len;
	}
	return length;
}

/* Send the pieces and compare with what they are when put together. */
static const char *exchange(struct ht_pair *pair, const struct iovec *iov,
			    int count, size_t at)
{
	static unsigned char whole[5 * HAMLYN_MAX_PACKET];
	struct h_msg msg = {
		.ticket = &pair->ticket,
		.offset = at,
		.iov = iov,
		.iovcnt = count,
	};
	size_t length = join(iov, count, whole);
	struct hamlyn_nq_entry entry;

	if (ht_send_sync(pair->terminus, &msg) != 1)
		return "not sent";
	if (ht_recv(pair->nq, &entry) != 1)
		return "no notification";
	if (memcmp(pair->data + at, whole, length))
		return "wrong data";
	memset(pair->data + at, HT_GUARD, length);
	if (!ht_pair_guarded(pair) ||
	    ht_match_byte(pair->data, pair->length, HT_GUARD) != pair->length)
		return "bytes around the message were touched";
	if (pair->meta[0].accumulator)
		return "the accumulator did not return to 0";
	return NULL;
}

TEST_F(gather, random_pieces_of_eight_areas)
{
	struct iovec iov[HAMLYN_MAX_FRAGMENTS];
	size_t left, longest, n, from;
	int round, count, i;
	unsigned int tag;

	for (round = 0; round < ht_rounds(1000); round++) {
		count = 1 + (int)(ht_random(&self->random) %
				  HAMLYN_MAX_FRAGMENTS);
		left = self->most - 64;
		/* Long and short ones, and long beside short. */
		longest = (size_t)2 << (ht_random(&self->random) % 16);
		for (i = 0; i < count; i++) {
			tag = ht_random(&self->random) % TAGS;
			n = ht_random(&self->random) % longest;
			if (n > self->views[tag])
				n = self->views[tag];
			if (n > left)
				n = left;
			from = ht_random(&self->random) %
			       (self->views[tag] - n + 1);
			iov[i].iov_base = self->buffers[tag] + from;
			iov[i].iov_len = n;
			left -= n;
		}
		ASSERT_NO(exchange(&self->pair, iov, count,
				   ht_random(&self->random) % 64))
			TH_LOG("round %d, seed %ju", round,
			       (uintmax_t)ht_seed());
	}
}

TEST_F(gather, whole_send_buffer_areas)
{
	struct iovec iov[TAGS];
	unsigned int tag;

	for (tag = 0; tag < TAGS; tag++) {
		iov[0].iov_base = self->buffers[tag];
		iov[0].iov_len = self->views[tag];
		EXPECT_NO(exchange(&self->pair, iov, 1, 0))
			TH_LOG("tag %u", tag);
		iov[0].iov_base = self->buffers[tag] + self->views[tag] - 1000;
		iov[0].iov_len = 1000;
		EXPECT_NO(exchange(&self->pair, iov, 1, 0))
			TH_LOG("tag %u", tag);
	}
	for (tag = 0; tag < TAGS; tag++) {
		iov[tag].iov_base = self->buffers[tag];
		iov[tag].iov_len = self->most / TAGS;
	}
	EXPECT_NO(exchange(&self->pair, iov, TAGS, 0));
}

TEST_F(gather, one_byte_beyond_a_send_buffer_area_is_EFAULT)
{
	struct ht_pair *pair = &self->pair;
	struct iovec iov[2];
	struct h_msg msg = { .ticket = &pair->ticket, .iov = iov, .iovcnt = 2 };
	unsigned int tag;

	for (tag = 0; tag < TAGS; tag++) {
		iov[0].iov_base = self->buffers[(tag + 1) % TAGS];
		iov[0].iov_len = 1000;
		iov[1].iov_base = self->buffers[tag] - 1;
		iov[1].iov_len = 1000;
		EXPECT_EQ(-EFAULT, h_send(pair->terminus, &msg));
		iov[1].iov_base = self->buffers[tag] + self->views[tag] - 999;
		EXPECT_EQ(-EFAULT, h_send(pair->terminus, &msg));
		iov[1].iov_base = self->buffers[tag];
		iov[1].iov_len = self->views[tag] + 1;
		EXPECT_EQ(-EFAULT, h_send(pair->terminus, &msg));
	}
	EXPECT_EQ(0, ht_pair_fence(pair));
	EXPECT_TRUE(ht_pair_untouched(pair));
}

TEST_F(gather, pieces_that_begin_and_end_on_packet_boundaries)
{
	size_t packet = self->pair.query.packet_size;
	const size_t lengths[] = { 0, 1, packet - 1, packet, packet + 1 };
	struct iovec iov[3];
	unsigned int i, j, k;

	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		for (j = 0; j < ARRAY_SIZE(lengths); j++)
			for (k = 0; k < ARRAY_SIZE(lengths); k++) {
				iov[0].iov_base = self->buffers[1];
				iov[0].iov_len = lengths[i];
				iov[1].iov_base = self->buffers[4];
				iov[1].iov_len = lengths[j];
				iov[2].iov_base = self->buffers[7];
				iov[2].iov_len = lengths[k];
				ASSERT_NO(exchange(&self->pair, iov, 3, 1))
					TH_LOG("lengths %u %u %u", i, j, k);
			}
}

TEST_F(gather, sixteen_pieces_are_the_most)
{
	struct ht_pair *pair = &self->pair;
	struct iovec iov[HAMLYN_MAX_FRAGMENTS + 1];
	struct h_msg msg = { .ticket = &pair->ticket, .iov = iov };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_base = self->buffers[i % TAGS];
		iov[i].iov_len = 100 + i;
	}
	EXPECT_NO(exchange(pair, iov, HAMLYN_MAX_FRAGMENTS, 0));
	msg.iovcnt = HAMLYN_MAX_FRAGMENTS + 1;
	EXPECT_LT(h_send(pair->terminus, &msg), 0);
	msg.iovcnt = -1;
	EXPECT_LT(h_send(pair->terminus, &msg), 0);
	EXPECT_EQ(0, ht_pair_fence(pair));
	EXPECT_TRUE(ht_pair_untouched(pair));
}

TEST_F(gather, short_pieces_come_from_any_memory)
{
	static const char text[] = "a message in seven pieces, none of it bound";
	struct iovec iov[7];
	unsigned int i;

	for (i = 0; i < 7; i++) {
		iov[i].iov_base = (void *)(uintptr_t)(text + i * 6);
		iov[i].iov_len = 6;
	}
	EXPECT_NO(exchange(&self->pair, iov, 7, 3));
	EXPECT_NO(exchange(&self->pair, iov, 0, 3));
}

/*
 * Bind returns when no message under the old binding is being read any more:
 * what its owner writes there afterwards is never sent.
 */
struct binder {
	struct ht_pair *pair;
	unsigned char *buffer;
	size_t length;
	int stop;
	int failed;
};

static void *send_all_the_time(void *arg)
{
	struct binder *b = arg;
	struct h_msg msg = {
		.ticket = &b->pair->ticket,
		.data = b->buffer,
		.length = b->length,
		.flags = HAMLYN_TRB_NO_NOTIFY,
	};
	int64_t handle;

	while (!h__load_acquire(&b->stop)) {
		handle = h_send(b->pair->terminus, &msg);
		if (handle == -EAGAIN || handle == -EFAULT)
			ht_sleep_ns(1000);
		else if (handle < 0)
			b->failed = (int)handle;
	}
	return NULL;
}

TEST_F(gather, nothing_is_read_under_an_old_binding)
{
	struct ht_pair *pair = &self->pair;
	struct binder b = {
		.pair = pair,
		.buffer = pair->send,
		.length = pair->send_length,
	};
	size_t length = pair->send_length;
	pthread_t thread;
	int round;

	memset(pair->send, 1, length);
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_all_the_time, &b));
	for (round = 0; round < ht_rounds(200); round++) {
		ht_sleep_ns(HT_MS / 5);
		ASSERT_EQ(0, h_terminus_bind(pair->terminus, 0, NULL, 0, 0));
		/* From here on the bytes are ours alone. */
		memset(pair->send, 0xdd, length);
		ht_sleep_ns(HT_MS / 5);
		ASSERT_EQ(NULL, memchr(pair->data, 0xdd, pair->length))
			TH_LOG("round %d", round);
		memset(pair->send, 1, length);
		ASSERT_EQ(0, h_terminus_bind(pair->terminus, 0,
					     pair->send_area, 0, 0));
	}
	h__store_release(&b.stop, 1);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, b.failed);
	EXPECT_EQ(1, pair->data[0]);
}

#if defined(__x86_64__)

#define TRAP_FLAG	0x100
#define MOST_STEPS	300

/*
 * Tags are bound anew between two instructions of the search for that of another area. The
 * list that is searched is made anew by the second: the length of an old binding, with the
 * base of a new one, would hold that area, and one that is being moved would not be found.
 */
static struct {
	struct h_terminus *terminus;
	struct h_area *small;
	uint32_t tags;		/* how many are bound anew */
	int left;		/* instructions */
	int failed;
} stepped;

static void step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	uint32_t i;

	(void)sig;
	(void)info;
	if (stepped.left-- > 0)
		return;
	uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	for (i = 0; i < stepped.tags && !stepped.failed; i++)
		stepped.failed = h_terminus_bind(stepped.terminus, i ? i + 1 : 0, stepped.small,
						 0, 0);
}

static unsigned long flags(void)
{
	return __builtin_ia32_readeflags_u64();
}

/* What is found of a message from tag 1 while that happens at each of the instructions. */
static const char *step_through(struct ht_pair *pair, uint32_t tags)
{
	struct sigaction action = { .sa_sigaction = step, .sa_flags = SA_SIGINFO };
	struct h_msg msg = { .ticket = &pair->ticket, .length = 4096 };
	struct h_area *large, *own;
	struct hamlyn_fragment f;
	uint32_t i;
	int steps;

	if (h_area_alloc(pair->tx, 4096, &stepped.small) || h_area_alloc(pair->tx, 4096, &own) ||
	    h_area_alloc(pair->tx, 1 << 20, &large) || sigaction(SIGTRAP, &action, NULL))
		return "nothing to bind";
	stepped.terminus = pair->terminus;
	stepped.tags = tags;
	msg.data = h_area_addr(own);
	if (h_terminus_bind(pair->terminus, 1, own, 0, 0))
		return "not bound";
	for (steps = 0; steps < MOST_STEPS; steps++) {
		for (i = 1; i < tags; i++)
			if (h_terminus_bind(pair->terminus, i + 1, NULL, 0, 0))
				return "not unbound";
		if (h_terminus_bind(pair->terminus, 0, large, 0, 0))
			return "not bound again";
		memset(&f, 0xff, sizeof(f));
		stepped.left = steps;
		__builtin_ia32_writeeflags_u64(flags() | TRAP_FLAG);
		h__msg_fragments(pair->terminus, &msg, &f);
		__builtin_ia32_writeeflags_u64(flags() & ~TRAP_FLAG);
		if (stepped.failed)
			return "not bound in between";
		if (f.tag != 1 || f.offset) {
			fprintf(stderr, "# instruction %d: tag %u\n", steps, f.tag);
			return "the wrong tag";
		}
	}
	/* The last ones are of no send any more. */
	return stepped.left < 0 ? "too few steps" : NULL;
}

TEST_F(gather, a_tag_bound_anew_at_any_instruction_takes_no_others_message)
{
	HT_NOT_UNDER_TSAN("it stops between its own calls only");
	EXPECT_NO(step_through(&self->pair, 1));
	EXPECT_NO(step_through(&self->pair, 2));
	EXPECT_NO(step_through(&self->pair, 3));
}

/* So many that the lists are made longer, too. */
TEST_F(gather, tags_bound_at_any_instruction_take_no_others_message)
{
	HT_NOT_UNDER_TSAN("it stops between its own calls only");
	EXPECT_NO(step_through(&self->pair, 40));
}

#endif

/* ---- a root whose NQ overruns ---- */

#define NQ_ENTRIES	1024

/* A root that is in no call, two members, and somebody who floods its manager. */
FIXTURE(flooded) {
	struct h_dev *dev[3];
	struct h_manager *m[3];
	struct h_gather *root;
	struct h_gather_member *members[2];
	struct h_tagged_receiver *box;
	struct h_tagged_address to;
};

FIXTURE_SETUP(flooded)
{
	const struct h_manager_attr attr = { .nq_entries = NQ_ENTRIES };
	struct h_seed seed;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, h_open(ht_device(), &self->dev[i]));
		ASSERT_EQ(0, h_manager_create(self->dev[i], &attr, &self->m[i]));
	}
	ASSERT_EQ(0, h_gather_create(self->m[0], 2, NULL, 8, &self->root));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, h_gather_seed(self->root, i, &seed));
		ASSERT_EQ(0, h_gather_join(self->m[i + 1], &seed,
					   &self->members[i]));
		/* Their greetings are told now, not when they have left. */
		ASSERT_EQ(0, h_manager_drain(self->m[i + 1], ht_patience_ns()));
		ASSERT_EQ(1, h_manager_poll(self->m[0]));
	}
	ASSERT_EQ(0, h_tagged_receiver_create(self->m[0], NULL, &self->box));
	h_tagged_receiver_seed(self->box, &seed);
	ASSERT_EQ(0, h_tagged_resolve(&seed, &self->to));
}

FIXTURE_TEARDOWN(flooded)
{
	int i;

	EXPECT_EQ(0, h_gather_leave(self->members[0]));
	EXPECT_EQ(0, h_gather_leave(self->members[1]));
	EXPECT_EQ(0, h_gather_destroy(self->root));
	EXPECT_EQ(0, h_tagged_receiver_destroy(self->box));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, h_manager_destroy(self->m[i]));
		h_close(self->dev[i]);
	}
}

/* More than the NQ has room for, while nobody polls. */
static const char *flood(FIXTURE_DATA(flooded) *self)
{
	uint32_t i;

	for (i = 0; i < NQ_ENTRIES + 100; i++)
		if (h_tagged_send(self->m[2], &self->to, 0, NULL, 0, i,
				  ht_patience_ns()))
			return "cannot send";
	return h_manager_drain(self->m[2], ht_patience_ns()) ? "it does not leave" :
							       NULL;
}

/* What the other member is told while the root's manager is polled, and nothing else. */
static int others_polling_tells(FIXTURE_DATA(flooded) *self)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do {
		h_manager_poll(self->m[0]);
		ret = h_gather_wait(self->members[1], H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	return ret;
}

TEST_F(flooded, the_last_word_of_a_member_is_not_lost_in_an_overrun)
{
	uint64_t number = 1;

	/* Nobody waits for this round any more when it is known that there is no other. */
	ASSERT_EQ(0, h_gather_send(self->members[1], &number, sizeof(number),
				   ht_patience_ns()));
	ASSERT_NO(flood(self));
	ASSERT_EQ(0, h_gather_leave(self->members[0]));
	self->members[0] = NULL;
	EXPECT_EQ(-EPIPE, others_polling_tells(self));
	EXPECT_EQ(-EPIPE, h_gather_receive(self->root, NULL, H_NOWAIT));
}

/* ---- a root that may not guess ---- */

/* Of the embedded device: who guesses a key twice is held back. */
FIXTURE(wary) {
	char name[64];
	struct h_dev *dev;
	struct h_manager *m;
	struct h_gather *root;
};

#define PARTS		8

FIXTURE_SETUP(wary)
{
	const char *name = ht_device();

	if (name && strncmp(name, "shm:", 4))
		SKIP(return, "of the embedded device: with free guesses of its own");
	snprintf(self->name, sizeof(self->name), "shm:wary%d,guesses=1", (int)getpid());
	ASSERT_EQ(0, h_open(self->name, &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
	ASSERT_EQ(0, h_gather_create(self->m, PARTS, NULL, 8, &self->root));
}

FIXTURE_TEARDOWN(wary)
{
	if (!self->root)
		return;
	EXPECT_EQ(0, h_gather_destroy(self->root));
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

struct part {
	struct h_dev *dev;
	struct h_manager *m;
	struct h_gather_member *member;
};

static const char *part_send(FIXTURE_DATA(wary) *self, struct part *p, uint32_t i)
{
	uint64_t number = i;
	struct h_seed seed;

	if (h_open(self->name, &p->dev) || h_manager_create(p->dev, NULL, &p->m) ||
	    h_gather_seed(self->root, i, &seed) || h_gather_join(p->m, &seed, &p->member))
		return "cannot join";
	return h_gather_send(p->member, &number, sizeof(number), ht_patience_ns()) ?
	       "cannot send" : NULL;
}

static const char *part_leave(struct part *p)
{
	if (h_gather_leave(p->member) || h_manager_destroy(p->m))
		return "cannot leave";
	h_close(p->dev);
	return NULL;
}

/* Each of them is gone: that is known, and need not be asked. */
TEST_F(wary, who_has_left_before_the_root_looks_is_no_guess)
{
	struct hamlyn_stats before, after;
	const uint64_t *numbers;
	struct part p;
	uint32_t i;

	ASSERT_EQ(0, h_dev_stats(self->dev, &before));
	for (i = 0; i < PARTS; i++) {
		ASSERT_NO(part_send(self, &p, i));
		ASSERT_NO(part_leave(&p));
	}
	ASSERT_EQ(0, h_gather_receive(self->root, (const void **)&numbers, ht_patience_ns()));
	for (i = 0; i < PARTS; i++)
		EXPECT_EQ(i, numbers[i]);
	EXPECT_EQ(0, h_gather_release(self->root));
	EXPECT_EQ(-EPIPE, h_gather_receive(self->root, NULL, ht_patience_ns()));
	ASSERT_EQ(0, h_dev_stats(self->dev, &after));
	EXPECT_EQ(before.rejects[HAMLYN_REJECT_SLOT], after.rejects[HAMLYN_REJECT_SLOT]);
	EXPECT_EQ(before.rejects[HAMLYN_REJECT_KEY], after.rejects[HAMLYN_REJECT_KEY]);
}

/* So that the manager is held back for a second. */
static void guess_keys(FIXTURE_DATA(wary) *self, int guesses)
{
	struct h_ticket t;

	h_slot_ticket(((struct h_receiver *)self->root)->slot, 0, 0, 0, &t);
	ht_guess_keys(h_manager_terminus(self->m), t, guesses);
}

TEST_F(wary, a_root_that_is_held_back_keeps_its_time_outs_and_tells_later)
{
	struct part p[PARTS];
	int64_t begin, took;
	uint32_t i;

	for (i = 0; i < PARTS; i++)
		ASSERT_NO(part_send(self, &p[i], i));
	ASSERT_EQ(0, h_gather_receive(self->root, NULL, ht_patience_ns()));
	guess_keys(self, 2);
	/* Takes a second at most, and may have told nobody. */
	begin = ht_now_ns();
	ASSERT_EQ(0, h_gather_release(self->root));
	guess_keys(self, 1);
	ASSERT_NO(part_leave(&p[0]));
	took = -ht_now_ns();
	for (i = 0; i < 10; i++)
		h_gather_receive(self->root, NULL, H_NOWAIT);
	took += ht_now_ns();
	EXPECT_LT(took, 500 * HT_MS);
	TH_LOG("%lld us for 10 calls, %lld ms after it began", (long long)took / 1000,
	       (long long)(ht_now_ns() - begin) / 1000000);
	/* No call of the gather: who polls tells them. */
	for (i = 1; i < PARTS; i++) {
		int ret;

		do {
			h_manager_poll(self->m);
			ret = h_gather_wait(p[i].member, HT_MS);
		} while (ret == -ETIMEDOUT && ht_now_ns() - begin < ht_patience_ns());
		EXPECT_EQ(0, ret);
		ASSERT_NO(part_leave(&p[i]));
	}
}

TEST_HARNESS_MAIN
