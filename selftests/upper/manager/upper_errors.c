// SPDX-License-Identifier: GPL-2.0-only
/* What calls of the upper layer fail with, where it is easily another errno. */
#include <hamlyn/channel.h>
#include <hamlyn/datagram.h>
#include <hamlyn/stream.h>
#include <pthread.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define MB	((size_t)1 << 20)

FIXTURE(errnos) {
	struct h_dev *dev;
	struct h_manager *m;
};

FIXTURE_SETUP(errnos)
{
	ASSERT_EQ(0, h_open(ht_device(), &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
}

FIXTURE_TEARDOWN(errnos)
{
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

TEST_F(errnos, a_sender_to_a_receiver_that_is_gone_is_EPIPE)
{
	struct h_stream_receiver *receiver;
	struct h_stream_sender *sender;
	struct h_seed seed;

	ASSERT_EQ(0, h_stream_receiver_create(self->m, NULL, &receiver));
	h_stream_receiver_seed(receiver, &seed);
	ASSERT_EQ(0, h_stream_receiver_destroy(receiver));
	EXPECT_EQ(-EPIPE, h_stream_sender_create(self->m, &seed, &sender));
	EXPECT_EQ(NULL, sender);
}

/* Also those that cannot be rounded up. */
static const size_t impossible[] = {
	SIZE_MAX, SIZE_MAX / 2 + 2, (size_t)1 << 46, ((size_t)1 << 45) + 1,
	(size_t)1 << 45, ((size_t)1 << 44) + 1,
};

TEST_F(errnos, impossible_memory_is_E2BIG)
{
	unsigned int i;
	void *p = self;

	EXPECT_EQ(-EINVAL, h_manager_alloc(self->m, 0, &p));
	EXPECT_EQ(NULL, p);
	for (i = 0; i < ARRAY_SIZE(impossible); i++) {
		p = self;
		EXPECT_EQ(-E2BIG, h_manager_alloc(self->m, impossible[i], &p))
			TH_LOG("%zu bytes", impossible[i]);
		EXPECT_EQ(NULL, p);
	}
	ASSERT_EQ(0, h_manager_alloc(self->m, 1, &p));
}

static void arrival(struct h_receiver *r, const struct hamlyn_nq_entry *entry)
{
	(void)r;
	(void)entry;
}

static bool pending(const struct h_receiver *r)
{
	(void)r;
	return false;
}

TEST_F(errnos, an_impossible_message_area_is_E2BIG)
{
	static const struct h_receiver_class nothing = {
		.name = "nothing", .process_arrival = arrival, .pending = pending,
	};
	struct h_receiver r;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(impossible); i++) {
		const struct h_receiver_attr attr = { .length = impossible[i] };

		EXPECT_EQ(-E2BIG, h_receiver_init(&r, self->m, &nothing, &attr))
			TH_LOG("%zu bytes", impossible[i]);
	}
}

/* Both are undone: why is told all the same. */
TEST_F(errnos, why_two_ends_of_a_channel_cannot_be_is_told)
{
	const struct h_manager_attr small = { .nq_entries = 16 };
	char text[HAMLYN_EXPLAIN_BYTES] = "";
	struct h_channel *a, *b;
	struct h_manager *m;

	ASSERT_EQ(0, h_manager_create(self->dev, &small, &m));
	EXPECT_EQ(-ENOSPC, h_channel_pair(self->m, m, NULL, &a, &b));
	EXPECT_EQ(0, h_explain(self->dev, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, "of an NQ of 16")) {
		TH_LOG("\"%s\"", text);
	}
	EXPECT_EQ(0, h_manager_destroy(m));
}

#define REFUSALS	100

struct refused {
	pthread_t thread;
	struct h_dev *dev;
	struct h_area *area;
	unsigned int slots;
	pthread_barrier_t *all;
	int wrong;
};

/*
 * An area is not removed while slots use it: is the thread told how many its own has, after
 * all others have failed as well?
 */
static void *remove_used(void *arg)
{
	struct refused *r = arg;
	char text[HAMLYN_EXPLAIN_BYTES], want[32];
	int i, ret;

	snprintf(want, sizeof(want), "%u slots", r->slots);
	for (i = 0; i < REFUSALS; i++) {
		ret = h_area_remove(r->area);
		pthread_barrier_wait(r->all);
		if (ret != -EBUSY || h_explain(r->dev, text, sizeof(text)) ||
		    strncmp(text, want, strlen(want)))
			r->wrong++;
		pthread_barrier_wait(r->all);
	}
	return NULL;
}

TEST_F(errnos, each_thread_is_told_why_its_own_call_failed)
{
	struct refused refused[] = { { .slots = 1 }, { .slots = 2 }, { .slots = 3 } };
	pthread_barrier_t all;
	struct h_slot *slot[6];
	unsigned int i, n = 0;

	ASSERT_EQ(0, pthread_barrier_init(&all, NULL, ARRAY_SIZE(refused)));
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		refused[i].dev = self->dev;
		refused[i].all = &all;
		ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &refused[i].area));
		while (n < (i + 1) * (i + 2) / 2) {
			const struct h_slot_attr attr = { .area = refused[i].area, .length = 64 };

			ASSERT_EQ(0, h_slot_create(self->dev, &attr, &slot[n]));
			n++;
		}
	}
	for (i = 0; i < ARRAY_SIZE(refused); i++)
		ASSERT_EQ(0, pthread_create(&refused[i].thread, NULL, remove_used, &refused[i]));
	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		pthread_join(refused[i].thread, NULL);
		EXPECT_EQ(0, refused[i].wrong);
	}
	while (n--)
		EXPECT_EQ(0, h_slot_destroy(slot[n]));
}

/* Is the device an embedded one? Or a negative errno. */
static int is_embedded(void)
{
	struct h_dev *dev;
	int ret;

	ret = h_open(ht_device(), &dev);
	if (ret)
		return ret;
	ret = h_dev_is_embedded(dev);
	h_close(dev);
	return ret;
}

/* ---- a device that is hardly larger than what is asked of it ---- */

FIXTURE(small) {
	struct h_dev *dev;
	struct h_manager *m;
};

FIXTURE_SETUP(small)
{
	int embedded = is_embedded();
	char name[64];

	ASSERT_LE(0, embedded);
	if (!embedded)
		SKIP(return, "its size is the test's on the embedded device only");
	snprintf(name, sizeof(name), "shm:errnos%d,size=32M", (int)getpid());
	ASSERT_EQ(0, h_open(name, &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
}

FIXTURE_TEARDOWN(small)
{
	if (!self->dev)
		return;
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

/* A power of two of it there is not. */
TEST_F(small, more_than_half_of_it_can_be_had)
{
	unsigned char *p, *again;
	void *more;

	ASSERT_EQ(0, h_manager_alloc(self->m, 17 * MB, (void **)&p));
	memset(p, 0x5a, 17 * MB);
	EXPECT_NE(0, h_manager_alloc(self->m, 17 * MB, &more));
	EXPECT_EQ(17 * MB, ht_match_byte(p, 17 * MB, 0x5a));
	h_manager_free(self->m, p);
	/* It went back to the device: there is a longer piece than it was. */
	EXPECT_EQ(0, h_manager_alloc(self->m, 20 * MB, &more));
	h_manager_free(self->m, more);
	ASSERT_EQ(0, h_manager_alloc(self->m, 17 * MB, (void **)&again));
	memset(again, 0x5a, 17 * MB);
	/* The rest lies beside it. */
	while (!h_manager_alloc(self->m, MB, &more))
		memset(more, 0, MB);
	EXPECT_EQ(17 * MB, ht_match_byte(again, 17 * MB, 0x5a));
}

TEST_F(small, so_can_a_buffer_be)
{
	const struct h_datagram_attr attr = { .length = 17 * MB };
	struct h_datagram_receiver *r;
	struct h_datagram_address to;
	struct h_datagram datagram;
	struct h_seed seed;
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, h_datagram_receiver_create(self->m, &attr, &r));
		h_datagram_receiver_seed(r, &seed);
		ASSERT_EQ(0, h_datagram_resolve(&seed, &to));
		ASSERT_EQ(0, h_datagram_send(self->m, &to, 17 * MB - 3, "end", 3,
					     NULL, ht_patience_ns()));
		ASSERT_EQ(0, h_datagram_receive(r, &datagram, ht_patience_ns()));
		EXPECT_EQ(0, memcmp(datagram.data, "end", 3));
		h_datagram_release(r);
		EXPECT_EQ(0, h_datagram_receiver_destroy(r));
	}
}

/* A long one from other memory is copied first, to memory that there is not. */
TEST_F(small, a_datagram_that_cannot_be_copied_fails_as_its_memory_would)
{
	const struct h_datagram_attr attr = { .length = 8 * MB };
	struct h_datagram_receiver *r;
	struct h_datagram_address to;
	unsigned char *data = calloc(1, 8 * MB);
	struct h_area *area;
	struct h_seed seed;
	void *p;
	int err;

	ASSERT_NE(NULL, data);
	ASSERT_EQ(0, h_datagram_receiver_create(self->m, &attr, &r));
	h_datagram_receiver_seed(r, &seed);
	ASSERT_EQ(0, h_datagram_resolve(&seed, &to));
	while (!h_area_alloc(self->dev, MB, &area))
		;
	err = h_manager_alloc(self->m, 8 * MB, &p);
	EXPECT_EQ(-ENOSPC, err);
	EXPECT_EQ(err, h_datagram_send(self->m, &to, 0, data, 8 * MB, NULL,
				       ht_patience_ns()));
	EXPECT_EQ(0, h_datagram_receiver_destroy(r));
	free(data);
}

/* ---- who guesses, on a device where that is paused at once ---- */

FIXTURE(held_back) {
	struct h_dev *dev;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_ticket ticket;
	int fd;
};

FIXTURE_SETUP(held_back)
{
	struct h_slot_attr attr = { 0 };
	int embedded = is_embedded();
	char name[64];

	ASSERT_LE(0, embedded);
	if (!embedded)
		SKIP(return, "of the embedded device: hostile_guess has it of the kernel's");
	snprintf(name, sizeof(name), "shm:held%d,guesses=1", (int)getpid());
	ASSERT_EQ(0, h_open(name, &self->dev));
	ASSERT_EQ(0, h_nq_create(self->dev, 64, &self->nq));
	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &attr.area));
	ASSERT_EQ(0, h_slot_create(self->dev, &attr, &self->slot));
	ASSERT_EQ(0, h_slot_ticket(self->slot, 0, 0, 0, &self->ticket));
	ASSERT_EQ(0, h_slot_ticket_fd(self->slot, 0, 0, &self->fd));
}

FIXTURE_TEARDOWN(held_back)
{
	if (!self->dev)
		return;
	close(self->fd);
	h_close(self->dev);
}

static int watch_by(FIXTURE_DATA(held_back) *self, uint64_t key)
{
	struct h_ticket k = self->ticket;
	struct h_watch *w;
	int ret;

	k.key = key;
	ret = h_watch(self->dev, &k, self->nq, 0, &w);
	return ret ? ret : h_unwatch(w);
}

static int watch_by_ticket(FIXTURE_DATA(held_back) *self)
{
	struct h_watch *w;
	int ret = h_watch_fd(self->dev, self->fd, self->nq, 0, &w);

	return ret ? ret : h_unwatch(w);
}

static bool all_refused(FIXTURE_DATA(held_back) *self)
{
	char text[HAMLYN_EXPLAIN_BYTES];

	return watch_by(self, self->ticket.key) == -EAGAIN &&
	       !h_explain(self->dev, text, sizeof(text)) &&
	       strstr(text, "guesses keys") &&
	       watch_by(self, ~self->ticket.key) == -EAGAIN;
}

/* The pause may be over too soon where others are busy: then again, and it is longer. */
TEST_F(held_back, who_guesses_keys_may_watch_by_tickets_only)
{
	int i, ret = -EAGAIN;

	for (i = 0; i < 20; i++) {
		while (watch_by(self, ~self->ticket.key) == -EAGAIN)
			ht_sleep_ns(HT_MS / 2);
		if (!all_refused(self))
			continue;
		ret = watch_by_ticket(self);
		if (ret || all_refused(self))
			break;
		ret = -EAGAIN;
	}
	EXPECT_EQ(0, ret);
}

TEST_HARNESS_MAIN
