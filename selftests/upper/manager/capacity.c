// SPDX-License-Identifier: GPL-2.0-only
/*
 * What there is room for: what an end point needs is there from the beginning, and stays;
 * what buffers grow by is bounded, paid for, and given back; a server is as large as it was
 * told to be; and who finds no room is told what to enlarge, and by how much.
 */
#include <hamlyn/channel.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* For what others' words make a receiver do, and what is counted. */
#include "channel/channel.h"
#include "low/device.h"

#include "kselftest_harness.h"
#include "hamlyn_test.h"
#include "used_tags.h"

#define CLIENTS		1000
#define KERNEL_CLIENTS	200	/* more than the 170 of the default; memory is wired there */
#define A_CLIENT	(256u << 10)	/* as hamlyn(7) says */
#define A_MANAGER	(512u << 10)
#define TABLES		(8u << 20)
#define ROUNDS		3
#define LONG		100000

FIXTURE(capacity) {
	char name[64];
	char data[LONG];
	struct h_dev *dev[2];
	struct h_manager *m[2];
};

static bool embedded(const char *device)
{
	return device ? !strncmp(device, "shm:", 4) : access("/dev/hamlyn0", R_OK | W_OK);
}

static const char *device_of(FIXTURE_DATA(capacity) *self, size_t size)
{
	const char *device = ht_device();

	if (!embedded(device))
		return device ? device : "/dev/hamlyn0";
	snprintf(self->name, sizeof(self->name), "shm:capacity%d,size=%zu", (int)getpid(), size);
	return self->name;
}

FIXTURE_SETUP(capacity)
{
	const char *device = device_of(self, 16 << 20);
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, h_open(device, &self->dev[i]));
		ASSERT_EQ(0, h_manager_create(self->dev[i], NULL, &self->m[i]));
	}
	memset(self->data, 7, sizeof(self->data));
}

FIXTURE_TEARDOWN(capacity)
{
	int i;

	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, h_manager_destroy(self->m[i]));
		h_close(self->dev[i]);
	}
}

/* A message from end to end; NULL, or what does not work. */
static const char *pass(FIXTURE_DATA(capacity) *self, struct h_channel *from,
			struct h_channel *to, size_t length)
{
	struct h_message m = {};
	struct ht_poll poll;
	const char *wrong;
	int ret;

	if (h_channel_send(from, self->data, length, H_NOWAIT))
		return "cannot send";
	ht_poll_begin(&poll);
	do {
		h_manager_dispatch(from->manager);
		ret = h_channel_receive(to, &m, H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	wrong = ret != 0 ? "cannot receive" :
		m.length != length || memcmp(m.data, self->data, length) ? "wrong data" : NULL;
	h_channel_release(to, &m);
	return wrong;
}

/* ---- what was made can send ---- */

#define PAIRS	400

/* As many as there is room for. */
static int make_pairs(FIXTURE_DATA(capacity) *self, struct h_channel *pair[][2])
{
	int n;

	for (n = 0; n < PAIRS; n++)
		if (h_channel_pair(self->m[0], self->m[1], NULL, &pair[n][0], &pair[n][1]))
			break;
	return n;
}

#define SOME_PAIRS	40
#define AN_END		(68u << 10)	/* to receive: 16 buffers of 4 KiB, metadata and credits */

/* Areas grow by a quarter of what there is. By as much there would be 4 MiB here, of 2.7 in use. */
TEST_F(capacity, little_of_the_memory_to_receive_into_lies_idle)
{
	struct h_channel *pair[SOME_PAIRS][2];
	int n;

	for (n = 0; n < SOME_PAIRS; n++)
		ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], NULL, &pair[n][0],
					    &pair[n][1]));
	EXPECT_GE(self->m[0]->receive.total, SOME_PAIRS * AN_END);
	EXPECT_LE(self->m[0]->receive.total, SOME_PAIRS * AN_END / 5 * 7);
	while (n--) {
		h_channel_close(pair[n][0], H_NOWAIT);
		h_channel_close(pair[n][1], H_NOWAIT);
	}
}

TEST_F(capacity, what_was_made_can_send_whatever_others_take)
{
	static struct h_channel *pair[PAIRS][2];
	struct h_area *area;
	size_t size;
	int n, i;

	if (!h_dev_is_embedded(self->dev[0]))
		SKIP(return, "would take all memory of a machine");
	n = make_pairs(self, pair);
	ASSERT_GT(n, 20);
	ASSERT_LT(n, PAIRS);
	EXPECT_TRUE(ht_is_explained(self->dev[0], "size=17M") ||
		    ht_is_explained(self->dev[1], "size=17M"));
	/* All the rest. */
	for (size = 1 << 20; size >= 4096; size /= 2)
		while (!h_area_alloc(self->dev[0], size, &area))
			;
	for (i = 0; i < n; i++) {
		ASSERT_NO(pass(self, pair[i][0], pair[i][1], 1000));
		ASSERT_NO(pass(self, pair[i][1], pair[i][0], LONG));
	}
	for (i = 0; i < n; i++) {
		h_channel_close(pair[i][0], H_NOWAIT);
		h_channel_close(pair[i][1], H_NOWAIT);
	}
}

#define CALLERS	3	/* managers of clients, beside the server's */

/*
 * A server's channels with several clients, as many as a segment of @mib MiB has room for, and
 * what is advised then, in MiB.
 */
static int make_clients(int mib, int *advised)
{
	char name[64], why[HAMLYN_EXPLAIN_BYTES] = "";
	struct h_channel *a[PAIRS], *b[PAIRS];
	struct h_manager *m[1 + CALLERS];
	const char *size;
	struct h_dev *dev;
	int i, n;

	snprintf(name, sizeof(name), "shm:advice%d,size=%dM", (int)getpid(), mib);
	if (h_open(name, &dev))
		return -1;
	for (i = 0; i <= CALLERS; i++)
		if (h_manager_create(dev, NULL, &m[i]))
			return -1;
	for (n = 0; n < PAIRS; n++) {
		struct h_manager *client = m[1 + n / 10 % CALLERS];

		if (h_channel_pair(m[0], client, NULL, &a[n], &b[n]))
			break;
	}
	h_explain(dev, why, sizeof(why));
	size = strstr(why, "alone, or ");
	*advised = n < PAIRS && size ? atoi(size + strlen("alone, or ")) : 0;
	for (i = 0; i < n; i++) {
		h_channel_close(a[i], H_NOWAIT);
		h_channel_close(b[i], H_NOWAIT);
	}
	for (i = 0; i <= CALLERS; i++)
		h_manager_destroy(m[i]);
	h_close(dev);
	return n;
}

TEST_F(capacity, who_makes_a_segment_as_large_as_advised_goes_on)
{
	int mib, advised, next, had, has;

	if (!h_dev_is_embedded(self->dev[0]))
		SKIP(return, "has no segment");
	for (mib = 8; mib <= 16; mib++) {
		had = make_clients(mib, &advised);
		ASSERT_LT(0, had);
		ASSERT_LT(mib, advised);
		has = make_clients(advised, &next);
		EXPECT_LT(had, has) {
			TH_LOG("%d channels of %d MiB, and %d of %d", had, mib, has, advised);
		}
	}
}

TEST_F(capacity, memory_of_ones_own_leaves_a_channel_what_it_needs)
{
	static char own[4096] __attribute__((aligned(4096)));
	struct h_channel *a, *b;
	int i, err = 0;

	for (i = 0; i < HAMLYN_MAX_TAGS && !err; i++)
		err = h_manager_register(self->m[0], own, sizeof(own));
	EXPECT_EQ(-ENOSPC, err);
	EXPECT_EQ(HAMLYN_MAX_TAGS - 3, i - 1);
	EXPECT_TRUE(ht_is_explained(self->dev[0], "tags"));
	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], NULL, &a, &b));
	EXPECT_NO(pass(self, a, b, 1000));
	EXPECT_NO(pass(self, a, b, LONG));
	/* The end is made with what it needs, or not at all. */
	ASSERT_NO(use_up_tags(self->m[0]));
	EXPECT_NO(pass(self, a, b, LONG));
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
}

TEST_F(capacity, without_a_tag_there_is_no_channel_rather_than_one_that_cannot_send)
{
	struct h_channel *a, *b;

	ASSERT_NO(use_up_tags(self->m[0]));
	EXPECT_EQ(-ENOSPC, h_channel_pair(self->m[0], self->m[1], NULL, &a, &b));
	EXPECT_EQ(NULL, a);
	EXPECT_EQ(NULL, b);
	EXPECT_TRUE(ht_is_explained(self->dev[0], "tags"));
}

/* The segment's size is no limit of what is not in it. */
TEST_F(capacity, memory_of_ones_own_may_be_larger_than_the_segment)
{
	size_t length = 64 << 20;
	struct h_area *area;
	char *p;

	if (!h_dev_is_embedded(self->dev[0]))
		SKIP(return, "is wired, and limited by the user's share");
	p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, h_area_add(self->dev[0], p, length, 0, &area));
	EXPECT_EQ(length, h_area_length(area));
	EXPECT_EQ(0, h_area_remove(area));
	ASSERT_EQ(0, h_manager_register(self->m[0], p, length));
	EXPECT_EQ(0, h_manager_unregister(self->m[0], p));
	munmap(p, length);
	EXPECT_EQ(-E2BIG, h_area_alloc(self->dev[0], length, &area));
	EXPECT_TRUE(ht_is_explained(self->dev[0], "at most"));
}

/* ---- what is said to come costs nothing before it comes ---- */

/* One record that says how much follows it. */
static int announce(struct h_channel *ch, size_t length, uint64_t more)
{
	static const char data[4096];
	int64_t ret;

	if (h__sending_lock(ch->sender, H_FOREVER))
		return -1;
	ret = h__stream_post(ch->sender, data, length, more, 0, h_deadline(ht_patience_ns()));
	h__channel_sent(ch);
	return ret < 0 ? -1 : 0;
}

TEST_F(capacity, a_few_bytes_do_not_make_a_server_take_many)
{
	struct h_channel *a, *b;
	struct ht_poll poll;
	struct h_message m;
	size_t before;
	int i;

	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], NULL, &a, &b));
	before = self->m[1]->receive.total;
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, announce(a, 10, 1000000 - 10 * (i + 1)));
		ht_poll_begin(&poll);
		do {
			ASSERT_EQ(-EAGAIN, h_channel_receive(b, &m, H_NOWAIT));
			h_manager_poll(self->m[0]);
		} while (b->in.done < 10 * (i + 1U) && ht_poll_more(&poll));
	}
	EXPECT_EQ(3000, b->in.done);
	EXPECT_EQ(before, self->m[1]->receive.total);
	EXPECT_EQ(0, self->m[1]->budget.taken);
	EXPECT_LE(b->in.room, 8192);
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
}

TEST_F(capacity, buffers_grow_by_no_more_than_four_times_what_came)
{
	struct h_channel *a, *b;
	uint64_t came = 0;
	int i;

	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], NULL, &a, &b));
	for (i = 0; i < 40; i++) {
		ASSERT_NO(pass(self, a, b, 5000));
		came += 5000;
		EXPECT_LE(self->m[1]->budget.taken, 4 * came);
	}
	EXPECT_GT(b->receiver->gen[0].buffer, 4096);
	EXPECT_GT(self->m[1]->budget.taken, 0);
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
	/* It is all given back, but for heap. */
	EXPECT_EQ(0, self->m[0]->budget.taken);
	EXPECT_LE(self->m[1]->budget.taken, 5000);
}

/* ---- budgets ---- */

#define GROWING	8

TEST_F(capacity, growth_stays_within_the_budget)
{
	const struct h_manager_attr attr = { .budget = 600000 };
	struct h_channel *a[GROWING], *b[GROWING];
	struct h_manager *m;
	int i, k;

	ASSERT_EQ(0, h_manager_create(self->dev[1], &attr, &m));
	for (i = 0; i < GROWING; i++)
		ASSERT_EQ(0, h_channel_pair(self->m[0], m, NULL, &a[i], &b[i]));
	for (k = 0; k < 10; k++)
		for (i = 0; i < GROWING; i++) {
			ASSERT_NO(pass(self, a[i], b[i], LONG));
			ASSERT_NO(pass(self, b[i], a[i], LONG));
			ASSERT_LE(m->budget.taken, attr.budget);
		}
	EXPECT_GT(m->budget.taken, attr.budget / 4);
	for (i = 0; i < GROWING; i++) {
		h_channel_close(a[i], H_NOWAIT);
		h_channel_close(b[i], H_NOWAIT);
	}
	ht_sleep_ns(1100 * HT_MS);
	h_manager_dispatch(m);
	EXPECT_EQ(0, m->budget.taken);
	EXPECT_EQ(0, h_manager_destroy(m));
}

TEST_F(capacity, heap_of_long_messages_is_kept_for_a_second)
{
	struct h_budget *budget = &self->m[1]->budget;
	struct h_channel *a, *b;

	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], NULL, &a, &b));
	EXPECT_FALSE(budget->spare);
	EXPECT_NO(pass(self, a, b, LONG));
	EXPECT_TRUE(budget->spare);
	h_manager_dispatch(self->m[1]);
	/* Or the machine stood still for so long. */
	if (h__now_ns() - budget->used_ns < HT_SEC)
		EXPECT_TRUE(budget->spare);
	ht_sleep_ns(1100 * HT_MS);
	h_manager_dispatch(self->m[1]);
	EXPECT_FALSE(budget->spare);
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
}

/* The first part of a message, as far as @b has it. */
static const char *begin(FIXTURE_DATA(capacity) *self, struct h_channel *a, struct h_channel *b,
			 uint64_t more)
{
	struct ht_poll poll;
	struct h_message m;

	if (announce(a, 10, more))
		return "cannot send";
	ht_poll_begin(&poll);
	do {
		if (h_channel_receive(b, &m, H_NOWAIT) != -EAGAIN)
			return "something else came";
		h_manager_poll(self->m[0]);
	} while (b->in.done < 10 && ht_poll_more(&poll));
	return b->in.done == 10 ? NULL : "it has not come";
}

/* Or each peer that sends half a message has a spare kept for it that nobody counts. */
TEST_F(capacity, a_spare_stays_charged_while_a_message_comes)
{
	const struct h_channel_attr attr = { .max_buffer_size = 1 };
	struct h_channel *a, *b;
	struct ht_poll poll;
	struct h_message m;
	size_t spare;
	int ret;

	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], &attr, &a, &b));
	ASSERT_NO(pass(self, a, b, LONG));
	spare = self->m[1]->budget.taken;
	ASSERT_LE(LONG, spare);
	ASSERT_NO(begin(self, a, b, 100));
	EXPECT_EQ(spare, b->in.room);
	EXPECT_EQ(spare, self->m[1]->budget.taken);
	ASSERT_EQ(0, announce(a, 100, 0));
	ht_poll_begin(&poll);
	do {
		h_manager_poll(self->m[0]);
		ret = h_channel_receive(b, &m, H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	ASSERT_EQ(0, ret);
	ASSERT_EQ(110, m.length);
	/* What the caller has is no longer charged, and no longer large. */
	EXPECT_LE(b->longs[m.number].room, 2 * m.length);
	EXPECT_EQ(0, self->m[1]->budget.taken);
	EXPECT_EQ(0, h_channel_release(b, &m));
	ASSERT_NO(begin(self, a, b, 100));
	EXPECT_LT(0, self->m[1]->budget.taken);
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
	EXPECT_EQ(0, self->m[1]->budget.taken);
}

/* ---- locks that are not waited for ---- */

struct holder {
	uint32_t *lock;
	pthread_t thread;
	bool has_it;		/* atomic, both */
	bool let_go;
	bool waited_for;
};

static void *hold(void *arg)
{
	int64_t end = ht_now_ns() + 10000 * HT_MS * ht_scale();
	struct holder *h = arg;

	h__lock(h->lock);
	__atomic_store_n(&h->has_it, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&h->let_go, __ATOMIC_ACQUIRE) && !h->waited_for) {
		ht_sleep_ns(HT_MS);
		h->waited_for = ht_now_ns() > end;
	}
	h__unlock(h->lock);
	return NULL;
}

static bool hold_begin(struct holder *h, uint32_t *lock)
{
	*h = (struct holder) { .lock = lock };
	if (pthread_create(&h->thread, NULL, hold, h))
		return false;
	while (!__atomic_load_n(&h->has_it, __ATOMIC_ACQUIRE))
		ht_sleep_ns(HT_MS);
	return true;
}

/* Was what came in between done before the lock was let go? */
static bool hold_end(struct holder *h)
{
	__atomic_store_n(&h->let_go, true, __ATOMIC_RELEASE);
	pthread_join(h->thread, NULL);
	return !h->waited_for;
}

TEST_F(capacity, a_poll_looks_at_young_spares_without_the_lock)
{
	struct h_channel *a, *b;
	struct holder h;

	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], NULL, &a, &b));
	ASSERT_NO(pass(self, a, b, LONG));
	/* However long it takes from here on. */
	self->m[1]->budget.used_ns = h__now_ns() + 1000 * HT_SEC;
	h_manager_dispatch(self->m[1]);
	ASSERT_TRUE(self->m[1]->budget.spare);
	ASSERT_TRUE(hold_begin(&h, &self->m[1]->lock));
	h_manager_poll(self->m[1]);
	EXPECT_TRUE(hold_end(&h));
	EXPECT_TRUE(self->m[1]->budget.spare);
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
}

#define IDLE	((size_t)4 << 20)	/* more than is kept unused */

TEST_F(capacity, giving_back_does_not_wait_for_a_thread_that_adds_memory)
{
	struct h_manager *m = self->m[0];
	struct holder h;
	size_t total;
	void *p;

	ASSERT_EQ(0, h_manager_alloc(m, IDLE, &p));
	total = m->send.total;
	ASSERT_TRUE(hold_begin(&h, &m->area_lock));
	EXPECT_EQ(0, h_manager_free(m, p));
	EXPECT_TRUE(hold_end(&h));
	EXPECT_EQ(total, m->send.total);
	/* And the next one does what that did not. */
	ASSERT_EQ(0, h_manager_alloc(m, 64, &p));
	EXPECT_EQ(0, h_manager_free(m, p));
	EXPECT_GE(total - IDLE, m->send.total);
}

static struct {
	bool unbind, bind, remove;
} fails;

static const struct h_dev_ops *real_ops;

static int bind_or_not(struct h_terminus *t, uint32_t tag, struct h_area *a, uint64_t base,
		       uint64_t length)
{
	return (a ? fails.bind : fails.unbind) ? -EINTR :
	       real_ops->terminus_bind(t, tag, a, base, length);
}

static int remove_or_not(struct h_area *a)
{
	return fails.remove ? -EINTR : real_ops->area_remove(a);
}

TEST_F(capacity, memory_that_does_not_go_back_stays_of_use)
{
	struct h_manager *m = self->m[0];
	struct h_dev_ops ops = *self->dev[0]->ops;
	size_t total;
	void *p, *q;
	int way;

	real_ops = self->dev[0]->ops;
	ops.terminus_bind = bind_or_not;
	ops.area_remove = remove_or_not;
	self->dev[0]->ops = &ops;
	for (way = 0; way < 3; way++) {
		memset(&fails, 0, sizeof(fails));
		ASSERT_EQ(0, h_manager_alloc(m, IDLE, &p));
		total = m->send.total;
		fails.unbind = way == 0;
		fails.remove = way > 0;
		fails.bind = way == 2;
		EXPECT_EQ(0, h_manager_free(m, p));
		EXPECT_EQ(total, m->send.total);
		memset(&fails, 0, sizeof(fails));
		ASSERT_EQ(0, h_manager_alloc(m, IDLE, &q));
		EXPECT_EQ(way < 2, q == p);
		EXPECT_LE(0, h__terminus_find_tag(m->terminus, q, IDLE));
		EXPECT_EQ(0, h_manager_free(m, q));
		EXPECT_GE(total - IDLE, m->send.total);
	}
	self->dev[0]->ops = real_ops;
}

TEST_F(capacity, memory_goes_back_to_the_device)
{
	static struct h_channel *pair[PAIRS][2];
	struct h_channel *a, *b;
	size_t most[2];
	int i, n = 60, k;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], NULL, &pair[i][0],
					    &pair[i][1]));
	for (k = 0; k < 2; k++)
		most[k] = self->m[k]->receive.total + self->m[k]->send.total;
	for (i = 0; i < n; i++) {
		h_channel_close(pair[i][0], H_NOWAIT);
		h_channel_close(pair[i][1], H_NOWAIT);
	}
	for (k = 0; k < 2; k++)
		EXPECT_LE(self->m[k]->receive.total + self->m[k]->send.total, most[k] / 2);
	/* What is left is as good as new. */
	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], NULL, &a, &b));
	EXPECT_NO(pass(self, a, b, LONG));
	EXPECT_NO(pass(self, b, a, LONG));
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
}

/* ---- how many channels ---- */

TEST_F(capacity, a_manager_is_for_as_many_channels_as_was_said)
{
	static const struct { const char *said; uint32_t channels, entries; } cases[] = {
		{ NULL, 0, 4096 },
		{ "", 0, 4096 },
		{ "1", 0, 64 },
		{ "170", 0, 4096 },
		{ "171", 0, 8192 },
		{ "1000", 0, 32768 },
		{ "1000", 300, 8192 },
	};
	static const char *const wrong[] = { "0", "-1", "many", "1000 ", "99999999999", "+5" };
	struct h_manager_attr attr = {};
	struct h_manager *m;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (cases[i].said)
			setenv("HAMLYN_CHANNELS", cases[i].said, 1);
		else
			unsetenv("HAMLYN_CHANNELS");
		attr.channels = cases[i].channels;
		ASSERT_EQ(0, h_manager_create(self->dev[0], &attr, &m));
		EXPECT_EQ(cases[i].entries, m->nq->mask + 1);
		EXPECT_EQ(0, h_manager_destroy(m));
	}
	attr.channels = 0;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv("HAMLYN_CHANNELS", wrong[i], 1);
		EXPECT_EQ(-EINVAL, h_manager_create(self->dev[0], &attr, &m));
		EXPECT_TRUE(ht_is_explained(self->dev[0], "HAMLYN_CHANNELS"));
	}
	/* What is said in the program counts. */
	attr.nq_entries = 64;
	EXPECT_EQ(0, h_manager_create(self->dev[0], &attr, &m));
	EXPECT_EQ(0, h_manager_destroy(m));
	unsetenv("HAMLYN_CHANNELS");
	attr.reserved = 1;
	EXPECT_EQ(-EINVAL, h_manager_create(self->dev[0], &attr, &m));
}

TEST_F(capacity, who_finds_no_entries_is_told_how_many_would_do)
{
	const struct h_manager_attr attr = { .channels = 1 };
	struct h_channel *a[3] = {}, *b[3] = {};
	struct h_manager *m;
	int i, err = 0;

	ASSERT_EQ(0, h_manager_create(self->dev[0], &attr, &m));
	for (i = 0; i < 3 && !err; i++)
		err = h_channel_pair(m, self->m[1], NULL, &a[i], &b[i]);
	EXPECT_EQ(-ENOSPC, err);
	EXPECT_TRUE(ht_is_explained(self->dev[0], "nq_entries 128 of the manager, "
				 "or channels (HAMLYN_CHANNELS) 4 instead of 2"));
	for (i = 0; i < 3; i++) {
		h_channel_close(a[i], H_NOWAIT);
		h_channel_close(b[i], H_NOWAIT);
	}
	EXPECT_EQ(0, h_manager_destroy(m));
}

/* What is advised does, also where there was next to nothing. */
TEST_F(capacity, what_a_tiny_queue_is_told_is_enough)
{
	static const uint32_t few[] = { 4, 8, 16, 32 };
	struct h_channel *a, *b;
	struct h_manager *m;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(few); i++) {
		struct h_manager_attr attr = { .nq_entries = few[i] };
		int err = h_manager_create(self->dev[0], &attr, &m);

		/* Too few for the manager itself. */
		if (err) {
			EXPECT_EQ(-EINVAL, err);
			continue;
		}
		EXPECT_EQ(-ENOSPC, h_channel_pair(m, m, NULL, &a, &b));
		EXPECT_TRUE(ht_is_explained(self->dev[0], "nq_entries 64 of the manager, or "
					 "channels (HAMLYN_CHANNELS) 2 instead of 0"));
		EXPECT_EQ(0, h_manager_destroy(m));
	}
	EXPECT_EQ(0, h_manager_create(self->dev[0],
				      &(const struct h_manager_attr){ .nq_entries = 64 }, &m));
	EXPECT_EQ(0, h_channel_pair(m, m, NULL, &a, &b));
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(m));
}

/* ---- a thousand clients ---- */

struct server {
	struct h_listener *listener;
	struct h_manager *m;
	int live;
	int most;
	int wrong;
};

static void serve(struct h_channel *ch, void *arg)
{
	struct server *s = arg;
	struct h_message m;
	int ret;

	while ((ret = h_channel_receive(ch, &m, H_NOWAIT)) == 0) {
		s->wrong |= h_channel_send(ch, m.data, m.length, H_NOWAIT);
		h_channel_release(ch, &m);
	}
	if (ret == -EAGAIN)
		return;
	s->wrong |= ret != -ENODATA;
	h_channel_close(ch, H_NOWAIT);
	s->live--;
}

static void accept_all(struct server *s)
{
	struct h_channel *ch;
	int ret;

	while (!(ret = h_channel_accept(s->listener, s->m, NULL, &ch, H_NOWAIT))) {
		h_channel_on_ready(ch, serve, s);
		if (++s->live > s->most)
			s->most = s->live;
	}
	if (ret != -EAGAIN)
		s->wrong = ret;
}

static int clients(const char *device, const char *path, int n)
{
	const struct h_channel_attr attr = { .flags = H_CONNECT_WAIT };
	const struct h_manager_attr size = { .channels = 100 };
	struct h_channel **ch = calloc((size_t)n, sizeof(struct h_channel *));
	static char data[LONG];
	struct h_manager *m = NULL;
	struct h_message reply;
	struct h_dev *dev;
	int i, round;

	if (!ch || h_open(device, &dev))
		return 1;
	for (i = 0; i < n; i++) {
		if (i % 100 == 0 && h_manager_create(dev, &size, &m))
			return 2;
		if (h_channel_connect(m, path, &attr, &ch[i], 4 * ht_patience_ns()))
			return 3;
	}
	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < n; i++) {
			size_t length = round == ROUNDS - 1 && i % 10 == 0 ? LONG : 1000;

			memset(data, i, length);
			if (h_channel_request(ch[i], data, length, &reply,
					      4 * ht_patience_ns()) != 0)
				return 4;
			if (reply.length != length || memcmp(reply.data, data, length))
				return 5;
			h_channel_release(ch[i], &reply);
		}
	for (i = 0; i < n; i++)
		if (h_channel_close(ch[i], 4 * ht_patience_ns()))
			return 6;
	return 0;
}

static void run_server(struct server *s, pid_t clients)
{
	struct pollfd f[2] = {
		{ .fd = h_listener_fd(s->listener), .events = POLLIN },
		{ .fd = h_manager_fd(s->m), .events = POLLIN },
	};
	siginfo_t info;

	do {
		poll(f, 2, 20);
		accept_all(s);
		h_manager_dispatch(s->m);
		info.si_pid = 0;
	} while (!waitid(P_PID, (id_t)clients, &info, WEXITED | WNOHANG | WNOWAIT) &&
		 !info.si_pid);
	h_manager_dispatch(s->m);
}

/* HAMLYN_CHANNELS and a segment as large as the manual says: nothing else. */
TEST_F(capacity, a_server_has_a_thousand_clients)
{
	int n = h_dev_is_embedded(self->dev[0]) ? CLIENTS : KERNEL_CLIENTS, status;
	struct server s = {};
	char device[80], path[64], count[16];
	struct h_dev *dev;
	pid_t pid;

	snprintf(device, sizeof(device), "%s", device_of(self, 16 << 20));
	if (h_dev_is_embedded(self->dev[0]))
		snprintf(device, sizeof(device), "shm:thousand%d,size=%zu", (int)getpid(),
			 TABLES + (size_t)n * A_CLIENT + (1 + (size_t)n / 100) * A_MANAGER);
	snprintf(path, sizeof(path), "@capacity%d", (int)getpid());
	snprintf(count, sizeof(count), "%d", n);
	setenv("HAMLYN_CHANNELS", count, 1);
	ASSERT_EQ(0, h_open(device, &dev));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(clients(device, path, n));
	ASSERT_EQ(0, h_manager_create(dev, NULL, &s.m));
	ASSERT_EQ(0, h_listener_create(path, NULL, &s.listener));
	run_server(&s, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(0, s.wrong);
	EXPECT_EQ(n, s.most);
	EXPECT_EQ(0, s.live);
	h_listener_destroy(s.listener);
	EXPECT_EQ(0, h_manager_destroy(s.m));
	h_close(dev);
	unsetenv("HAMLYN_CHANNELS");
}

TEST_HARNESS_MAIN
