// SPDX-License-Identifier: GPL-2.0-only
/*
 * More processes send at all times than there are processors, each inside the NIC when
 * others run. They are alive, and leave sooner or later: what waits for those who were
 * inside, to tell them from the dead, ends nevertheless.
 */
#include <hamlyn/datagram.h>
#include <hamlyn/stream.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the dead leave behind is made here: they cannot be killed at that instruction. */
#include "manager/manager.h"
#include "embedded/shm.h"

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define LENGTH		(1u << 20)	/* of what the crowd sends: it takes some time */
#define MOST_PROCESSES	34
#define END_NS		(10 * HT_SEC * ht_scale())

FIXTURE(crowd) {
	char name[64];
	struct h_dev *dev;
	struct h_manager *to;
	struct h_manager *from;
	unsigned int processes;
	pid_t pid[MOST_PROCESSES];
	int ready[2];
};

/* To itself, for ever. */
static void send_on(FIXTURE_DATA(crowd) *self)
{
	struct h_slot_attr attr = { .length = LENGTH };
	struct h_terminus *t;
	struct h_ticket ticket;
	struct h_msg msg = { .ticket = &ticket, .length = LENGTH };
	struct h_slot *slot;
	struct h_dev *dev;

	if (h_open(self->name, &dev) || h_area_alloc(dev, 2 * LENGTH, &attr.area) ||
	    h_slot_create(dev, &attr, &slot) || h_terminus_create(dev, NULL, &t) ||
	    h_terminus_bind(t, 0, attr.area, 0, 0) ||
	    h_slot_ticket(slot, 0, 0, 0, &ticket))
		_exit(1);
	msg.flags = HAMLYN_TRB_NO_NOTIFY;
	msg.data = (char *)h_area_addr(attr.area) + LENGTH;
	if (h_send(t, &msg) < 0 || write(self->ready[1], "", 1) != 1)
		_exit(1);
	while (h_send(t, &msg) >= 0)
		;
	_exit(1);
}

static const char *gather_crowd(FIXTURE_DATA(crowd) *self)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int i;
	char c;

	self->processes = processors < MOST_PROCESSES - 2 ? (unsigned int)processors + 2 :
							    MOST_PROCESSES;
	for (i = 0; i < self->processes; i++) {
		pid_t pid = ht_fork();

		if (pid < 0)
			return "no process";
		if (!pid)
			send_on(self);
		self->pid[i] = pid;
	}
	close(self->ready[1]);
	for (i = 0; i < self->processes; i++)
		if (ht_read_all(self->ready[0], &c, 1))
			return "one of the crowd cannot send";
	return NULL;
}

FIXTURE_SETUP(crowd)
{
	struct hamlyn_query query;
	const char *name = ht_device();

	ASSERT_EQ(0, h_open(name, &self->dev));
	if (!h_dev_is_embedded(self->dev))
		SKIP(return, "the NIC does not die with who sends");
	ASSERT_EQ(0, h_query(self->dev, &query));
	h_close(self->dev);
	snprintf(self->name, sizeof(self->name), "shm:crowd%d,size=256M", (int)getpid());
	ASSERT_EQ(0, h_open(self->name, &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->to));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->from));
	ASSERT_EQ(0, pipe(self->ready));
	ASSERT_NO(gather_crowd(self));
}

FIXTURE_TEARDOWN(crowd)
{
	unsigned int i;

	/* Those that there are: 0 would be all of us. */
	for (i = 0; i < self->processes && self->pid[i] > 0; i++) {
		kill(self->pid[i], SIGKILL);
		EXPECT_EQ(128 + SIGKILL, ht_reap(self->pid[i]));
	}
	if (self->processes) {
		close(self->ready[0]);
		EXPECT_EQ(0, h_manager_destroy(self->to));
		EXPECT_EQ(0, h_manager_destroy(self->from));
	}
	h_close(self->dev);
}

TEST_F(crowd, who_died_inside_a_datagram_keeps_the_others_out_for_a_moment)
{
	int64_t end = ht_now_ns() + END_NS;
	struct h_datagram_address address;
	struct h_datagram_receiver *d;
	struct h_datagram datagram;
	struct h_seed seed;
	int ret = -EAGAIN;

	ASSERT_EQ(0, h_datagram_receiver_create(self->to, NULL, &d));
	h_datagram_receiver_seed(d, &seed);
	ASSERT_EQ(0, h_datagram_resolve(&seed, &address));
	((struct h_receiver *)d)->metadata->state |= 1;
	while (ret && ht_now_ns() < end) {
		ASSERT_EQ(0, h_datagram_send(self->from, &address, 0, "x", 1, NULL, HT_SEC));
		ret = h_datagram_receive(d, &datagram, 100 * HT_MS);
	}
	ASSERT_EQ(0, ret);
	EXPECT_EQ(1, datagram.length);
	h_datagram_release(d);
	EXPECT_EQ(0, h_datagram_receiver_destroy(d));
}

TEST_F(crowd, a_stream_grows)
{
	static const struct h_stream_attr attr = {
		.buffers = 4, .buffer_size = 1024, .max_buffer_size = 65536,
	};
	int64_t end = ht_now_ns() + END_NS;
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
	struct h_record record;
	struct h_seed seed;
	size_t longest = 0;
	void *data;

	ASSERT_EQ(0, h_manager_alloc(self->from, LENGTH, &data));
	ASSERT_EQ(0, h_stream_receiver_create(self->to, &attr, &r));
	h_stream_receiver_seed(r, &seed);
	ASSERT_EQ(0, h_stream_sender_create(self->from, &seed, &s));
	while (longest < attr.max_buffer_size && ht_now_ns() < end) {
		ssize_t n = h_stream_send(s, data, LENGTH, H_NOWAIT);

		ASSERT_TRUE(n >= 0 || n == -EAGAIN);
		while (h_stream_receive(r, &record, H_NOWAIT) == 0) {
			if (record.length > longest)
				longest = record.length;
			h_stream_release(r, &record);
		}
	}
	EXPECT_EQ(attr.max_buffer_size, longest);
	h_stream_sender_close(s, H_NOWAIT);
	EXPECT_EQ(0, h_stream_receiver_destroy(r));
	h_manager_free(self->from, data);
}

TEST_F(crowd, who_died_taking_an_entry_does_not_close_the_queue)
{
	struct h_slot_attr attr = { .length = 4096 };
	struct hamlyn_nq_entry entry;
	struct h_ticket ticket;
	struct h_terminus *t;
	struct h_slot *slot;

	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &attr.area));
	ASSERT_EQ(0, h_nq_create(self->dev, 64, &attr.nq));
	ASSERT_EQ(0, h_slot_create(self->dev, &attr, &slot));
	ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &ticket));
	ASSERT_EQ(0, h_terminus_create(self->dev, NULL, &t));
	__atomic_fetch_add(&((struct hml_nq *)attr.nq->priv)->cursor, 1, __ATOMIC_SEQ_CST);
	ASSERT_LE(0, h_send_msg(t, &ticket, "x", 1, NULL, 0));
	ASSERT_EQ(0, h_recv_block(attr.nq, &entry, END_NS));
	EXPECT_EQ(h_slot_number(slot), entry.slot);
	EXPECT_EQ(0, h_slot_destroy(slot));
	EXPECT_EQ(0, h_nq_destroy(attr.nq));
	EXPECT_EQ(0, h_terminus_destroy(t));
	EXPECT_EQ(0, h_area_remove(attr.area));
}

/* Whoever takes a right away waits for all who are inside. */
TEST_F(crowd, a_slot_is_rekeyed_and_destroyed)
{
	struct h_slot_attr attr = { .length = 4096 };
	int64_t end = ht_now_ns() + END_NS;
	struct h_slot *slot;
	unsigned int i;

	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &attr.area));
	ASSERT_EQ(0, h_slot_create(self->dev, &attr, &slot));
	for (i = 0; i < 10; i++)
		EXPECT_EQ(0, h_slot_rekey(slot));
	EXPECT_EQ(0, h_slot_destroy(slot));
	EXPECT_LT(ht_now_ns(), end);
	EXPECT_EQ(0, h_area_remove(attr.area));
}

TEST_HARNESS_MAIN
