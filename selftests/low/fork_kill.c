// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes fork and are killed; the others go on.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <signal.h>
#include <sys/prctl.h>

#define ROUNDS	100
/*
 * Each makes an eighth of all slots: what is left of ten would be noticed. More take minutes on a
 * busy kernel with detectors.
 */
#define RECEIVERS	16
#define WINDOW	4	/* messages of one sender on their way */

/* What a message says of itself, in its metadata. */
struct label {
	uint32_t sender;
	uint32_t number;
	uint32_t length;
	uint32_t seed;
};

/* Shared by ordinary memory, so that only the traffic goes through Hamlyn. */
struct board {
	uint32_t taken[2];	/* messages of each sender that were checked */
	uint32_t stop;
};

FIXTURE(fork_kill) {
	struct ht_pair pair;
	struct board *board;
	struct h_slot *slots[2];
	struct h_ticket tickets[2];
	size_t part;			/* of the message area, one message */
	uint64_t random;
	uint32_t next[2];
};

/*
 * Two slots on one message area and one NQ, a half of the area and of the
 * metadata entries for each of two senders.
 */
FIXTURE_SETUP(fork_kill)
{
	struct ht_pair_attr attr = {
		.length = 2 * WINDOW * 3 * HAMLYN_MAX_PACKET,
		.meta = 2 * WINDOW,
		.send_length = 4096,
	};
	struct h_slot_attr slot = { 0 };
	int i;

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->part = self->pair.length / 2 / WINDOW;
	self->random = ht_seed();
	self->board = mmap(NULL, sizeof(*self->board), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->board);
	slot.area = self->pair.area;
	slot.meta_area = self->pair.meta_area;
	slot.meta_count = WINDOW;
	slot.nq = self->pair.nq;
	slot.length = self->pair.length / 2;
	for (i = 0; i < 2; i++) {
		slot.base = self->pair.base + (size_t)i * slot.length;
		slot.meta_base = (HT_META_GUARDS + (size_t)i * WINDOW) *
				 sizeof(struct hamlyn_metadata);
		ASSERT_EQ(0, h_slot_create(self->pair.rx, &slot,
					   &self->slots[i]));
		ASSERT_EQ(0, h_slot_ticket(self->slots[i], 0, 0, 0,
					   &self->tickets[i]));
	}
}

FIXTURE_TEARDOWN(fork_kill)
{
	ht_pair_close(&self->pair);
}

/* ---- the sender's side -------------------------------------------------- */

struct sender {
	struct h_dev *dev;
	struct h_terminus *terminus;
	struct h_area *area;
	unsigned char *buffers;
	size_t part;
	size_t packet;
	uint64_t random;
	int64_t handles[WINDOW];
};

static int sender_open(struct sender *s, size_t part, uint64_t seed)
{
	struct hamlyn_query query;

	memset(s, 0, sizeof(*s));
	memset(s->handles, -1, sizeof(s->handles));
	s->part = part;
	s->random = seed;
	if (ht_open(&s->dev) || h_query(s->dev, &query) ||
	    h_area_alloc(s->dev, WINDOW * part, &s->area) ||
	    h_terminus_create(s->dev, NULL, &s->terminus) ||
	    h_terminus_bind(s->terminus, 0, s->area, 0, 0))
		return -1;
	s->buffers = h_area_addr(s->area);
	s->packet = query.packet_size;
	return 0;
}

/* Message @number goes to its part of the area and to its entry. */
static int sender_send(struct sender *s, const struct h_ticket *to,
		       uint32_t who, uint32_t number)
{
	struct h_ticket ticket = *to;
	uint32_t place = number % WINDOW;
	unsigned char *buffer = s->buffers + place * s->part;
	struct label label = {
		.sender = who,
		.number = number,
		.length = (uint32_t)(ht_random(&s->random) %
				     (3 * s->packet + 1)),
		.seed = (uint32_t)ht_random(&s->random),
	};
	struct h_msg msg = {
		.ticket = &ticket,
		.offset = place * s->part,
		.data = buffer,
		.meta = &label,
		.meta_length = sizeof(label),
	};

	/* Short ones as well, and often. */
	if (label.seed % 2)
		label.length %= 300;
	msg.length = label.length;
	ticket.meta_index = place;
	if (s->handles[place] >= 0 &&
	    ht_send_wait(s->terminus, s->handles[place]) != 1)
		return -1;
	ht_fill(buffer, msg.length, label.seed);
	s->handles[place] = ht_send(s->terminus, &msg);
	return s->handles[place] < 0 ? -1 : 0;
}

/* Send until told to stop, or killed. */
static int send_for_ever(const struct board *board, const struct h_ticket *to,
			 uint32_t who, size_t part, uint64_t seed)
{
	struct ht_poll poll;
	struct sender s;
	uint32_t number;

	if (sender_open(&s, part, seed))
		return 1;
	for (number = 0;; number++) {
		ht_poll_begin(&poll);
		while (number - h__load_acquire(&board->taken[who]) >= WINDOW) {
			if (h__load_acquire(&board->stop))
				break;
			if (!ht_poll_more(&poll))
				return 2;
		}
		if (h__load_acquire(&board->stop))
			break;
		if (sender_send(&s, to, who, number))
			return 3;
	}
	h_close(s.dev);
	return 0;
}

static pid_t start_sender(FIXTURE_DATA(fork_kill) *self, uint32_t who)
{
	uint64_t seed = ht_random(&self->random);
	pid_t pid;

	self->next[who] = 0;
	h__store_release(&self->board->taken[who], 0);
	pid = ht_fork();
	if (!pid)
		_exit(send_for_ever(self->board, &self->tickets[who], who,
				    self->part, seed));
	return pid;
}

/* ---- the receiver's side ------------------------------------------------ */

static const char *check_message(FIXTURE_DATA(fork_kill) *self,
				 const struct hamlyn_nq_entry *e)
{
	uint32_t who = e->slot == h_slot_number(self->slots[1]);
	struct hamlyn_metadata *m;
	const struct label *label;
	unsigned char *data;

	if (!who && e->slot != h_slot_number(self->slots[0]))
		return "a notification of a strange slot";
	if (e->index >= WINDOW)
		return "a strange notification index";
	m = &self->pair.meta[who * WINDOW + e->index];
	label = (const void *)m->user;
	if (m->meta_length != sizeof(*label) || label->sender != who ||
	    label->number % WINDOW != e->index)
		return "wrong metadata";
	if (label->number != self->next[who])
		return "not the message that is next";
	data = self->pair.data + (who * WINDOW + e->index) * self->part;
	if (ht_match(data, label->length, label->seed) != label->length)
		return "wrong data";
	if (m->accumulator)
		return "the accumulator did not return to 0";
	self->next[who]++;
	h__store_release(&self->board->taken[who], self->next[who]);
	return NULL;
}

static const char *take_one(FIXTURE_DATA(fork_kill) *self)
{
	struct hamlyn_nq_entry entry;
	int ret = h_recv_block(self->pair.nq, &entry, ht_patience_ns());

	if (ret)
		return ret == -EOVERFLOW ? "overrun" : "nothing comes";
	return check_message(self, &entry);
}

/* Take all that the dead one had sent; then its entries are free again. */
static const char *take_the_rest(FIXTURE_DATA(fork_kill) *self, uint32_t dead)
{
	struct h_msg fence = { .ticket = &self->pair.fence };
	uint32_t number = h_slot_number(self->pair.fence_slot);
	struct hamlyn_nq_entry entry;
	const char *complaint;
	int ret;

	if (ht_send_sync(self->pair.terminus, &fence) != 1)
		return "no fence";
	for (;;) {
		ret = h_recv_block(self->pair.nq, &entry, ht_patience_ns());
		if (ret)
			return "the fence does not come";
		if (entry.slot == number)
			break;
		complaint = check_message(self, &entry);
		if (complaint)
			return complaint;
	}
	memset(self->pair.meta + dead * WINDOW, 0,
	       WINDOW * sizeof(*self->pair.meta));
	return ht_pair_guarded(&self->pair) ? NULL :
	       "memory outside was touched";
}

/*
 * The first time what the dead have left is taken back when nothing else is free, from between
 * what was allocated before that.
 */
static int free_areas(struct h_dev *dev)
{
	ht_count_areas(dev, 1 << 20, 64);
	return ht_count_areas(dev, 1 << 20, 64);
}

TEST_F(fork_kill, killed_senders_disturb_nobody)
{
	pid_t victim, other;
	uint32_t target, before;
	int round, slots, areas;

	slots = ht_count_slots(self->pair.rx, self->pair.area, 500);
	areas = free_areas(self->pair.rx);
	other = start_sender(self, 1);
	ASSERT_GT(other, 0);
	for (round = 0; round < ht_rounds(ROUNDS); round++) {
		victim = start_sender(self, 0);
		ASSERT_GT(victim, 0);
		/* At some time, or in the middle of traffic. */
		target = ht_random(&self->random) % 30;
		if (round % 4 == 0) {
			ht_sleep_ns((int64_t)(ht_random(&self->random) %
					      (2 * HT_MS)));
			target = 0;
		}
		while (self->next[0] < target) {
			ASSERT_NO(take_one(self)) {
				TH_LOG("round %d", round);
			}
		}
		kill(victim, SIGKILL);
		ASSERT_EQ(128 + SIGKILL, ht_reap(victim));
		ASSERT_NO(take_the_rest(self, 0)) {
			TH_LOG("round %d, seed %ju", round,
			       (uintmax_t)ht_seed());
		}
		before = self->next[1];
		while (self->next[1] - before < 5) {
			ASSERT_NO(take_one(self)) {
				TH_LOG("round %d, the other", round);
			}
		}
	}
	h__store_release(&self->board->stop, 1);
	EXPECT_EQ(0, ht_reap(other));
	EXPECT_NO(take_the_rest(self, 1));
	EXPECT_EQ(0, h_nq_lost(self->pair.nq));
	EXPECT_EQ(slots, ht_count_slots(self->pair.rx, self->pair.area, 500));
	EXPECT_EQ(areas, free_areas(self->pair.rx));
}

/* Words as fast as they can: most of the time is inside the sending call. */
static int send_words(const struct h_ticket *to)
{
	struct h_terminus *terminus;
	struct h_msg msg = { .ticket = to };
	struct h_dev *dev;

	if (ht_open(&dev) || h_terminus_create(dev, NULL, &terminus))
		return 1;
	for (msg.word = 0;; msg.word++)
		if (ht_send(terminus, &msg) < 0)
			return 2;
}

TEST_F(fork_kill, senders_killed_while_they_flood_leave_the_nq_working)
{
	struct hamlyn_nq_entry entry;
	uint64_t word, last;
	struct h_msg msg = { .ticket = &self->pair.fence };
	int round, ret, seen;
	pid_t victim;

	for (round = 0; round < ht_rounds(ROUNDS); round++) {
		victim = ht_fork();
		ASSERT_GE(victim, 0);
		if (!victim)
			_exit(send_words(&self->pair.fence));
		/* Let it be full, empty and half full at times. */
		for (seen = 0; seen < round % 4 * 50; seen++) {
			ASSERT_NE(-ETIMEDOUT,
				  h_recv_block(self->pair.nq, &entry,
					       ht_patience_ns()));
		}
		ht_sleep_ns((int64_t)(ht_random(&self->random) % HT_MS));
		kill(victim, SIGKILL);
		ASSERT_EQ(128 + SIGKILL, ht_reap(victim));
		/* Nothing is left of it, and what comes next is in order. */
		last = 0;
		word = 1ULL << 63 | (uint64_t)round;
		do {
			ret = h_recv_block(self->pair.nq, &entry, 0);
			if (ret == 0) {
				EXPECT_GE(entry.data, last);
				last = entry.data;
			}
		} while (ret != -EAGAIN);
		msg.word = word;
		ASSERT_EQ(1, ht_send_sync(self->pair.terminus, &msg));
		do {
			ret = h_recv_block(self->pair.nq, &entry,
					   ht_patience_ns());
		} while (ret == -EOVERFLOW);
		ASSERT_EQ(0, ret) {
			TH_LOG("round %d", round);
		}
		EXPECT_EQ(word, entry.data);
	}
}

/* ---- receivers that are killed ------------------------------------------ */

/* Many objects, a ticket for one of them; receives until killed. */
static int receive_for_ever(int fd, unsigned int many)
{
	struct h_slot_attr attr = { .meta_count = 4 };
	unsigned char bytes[H_TICKET_BYTES];
	struct hamlyn_nq_entry entry;
	struct h_ticket ticket;
	struct h_slot *slot;
	struct h_dev *dev;
	unsigned int i;

	if (ht_open(&dev) || h_area_alloc(dev, 1 << 20, &attr.area) ||
	    h_area_alloc(dev, 4096, &attr.meta_area) ||
	    h_nq_create(dev, 64, &attr.nq))
		return 1;
	for (i = 0; i < many; i++)
		if (h_slot_create(dev, &attr, &slot))
			return 2;
	if (h_slot_ticket(slot, 0, 0, 1, &ticket))
		return 3;
	h_ticket_export(&ticket, bytes);
	if (ht_write_all(fd, bytes, sizeof(bytes)))
		return 4;
	for (;;)
		if (h_recv_block(attr.nq, &entry, -1) == -EINVAL)
			return 5;
}

TEST_F(fork_kill, killed_receivers_stop_no_sender_and_leave_nothing_behind)
{
	struct ht_pair *pair = &self->pair;
	unsigned char bytes[H_TICKET_BYTES];
	unsigned int many, i, n;
	struct h_ticket ticket;
	struct sender s;
	int round, slots, areas;
	int pipefd[2];
	pid_t victim;

	/* So many that a few rounds would use all, if they were not freed. */
	many = pair->query.max_slots / 8;
	if (many > 2000)
		many = 2000;
	slots = ht_count_slots(pair->rx, pair->area, 500);
	ASSERT_EQ(0, sender_open(&s, self->part, 1));
	areas = free_areas(pair->rx);
	ASSERT_EQ(0, pipe(pipefd));
	for (round = 0; round < RECEIVERS; round++) {
		victim = ht_fork();
		ASSERT_GE(victim, 0);
		if (!victim)
			_exit(receive_for_ever(pipefd[1], many));
		ASSERT_EQ(0, ht_read_all(pipefd[0], bytes, sizeof(bytes))) {
			TH_LOG("round %d", round);
		}
		ASSERT_EQ(0, h_ticket_import(bytes, sizeof(bytes), &ticket));
		ticket.length = UINT64_MAX;
		n = ht_random(&self->random) % 50;
		for (i = 0; i < n + 50; i++) {
			if (i == n)
				kill(victim, SIGKILL);
			ASSERT_EQ(0, sender_send(&s, &ticket, 0,
						 WINDOW + i)) {
				TH_LOG("round %d", round);
			}
		}
		ASSERT_EQ(128 + SIGKILL, ht_reap(victim));
		/* Still willing to send, to anybody. */
		ASSERT_EQ(0, sender_send(&s, &ticket, 0, WINDOW));
		ASSERT_EQ(0, ht_pair_fence(pair));
	}
	EXPECT_EQ(slots, ht_count_slots(pair->rx, pair->area, 500));
	EXPECT_EQ(areas, free_areas(pair->rx));
	EXPECT_TRUE(ht_pair_untouched(pair));
	h_close(s.dev);
}

/* ---- fork --------------------------------------------------------------- */

static pid_t fork_and_read(const volatile void *p)
{
	pid_t pid = ht_fork();

	if (!pid) {
		/* No core dump, no sanitizer's report: just the signal. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		_exit(*(const volatile char *)p & 0);
	}
	return pid;
}

TEST_F(fork_kill, children_do_not_inherit_what_is_mapped)
{
	struct ht_pair *pair = &self->pair;
	const void *mapped[] = {
		pair->data, pair->meta, pair->send,
		pair->nq->control, pair->nq->ring, pair->nq->entries,
	};
	unsigned int i;
	int status;

	for (i = 0; i < ARRAY_SIZE(mapped); i++) {
		pid_t pid = fork_and_read(mapped[i]);

		ASSERT_GT(pid, 0);
		status = ht_reap(pid);
		EXPECT_EQ(128 + SIGSEGV, status) {
			TH_LOG("mapping %u", i);
		}
	}
	EXPECT_EQ(0, ht_pair_fence(pair));
	EXPECT_TRUE(ht_pair_untouched(pair));
}

/* A child with a device of its own: receives one message, answers it. */
static int answer_once(int from, int to, size_t length)
{
	struct h_slot_attr attr = { .meta_count = 1 };
	unsigned char bytes[H_TICKET_BYTES];
	struct h_terminus *terminus;
	struct hamlyn_nq_entry entry;
	struct h_ticket mine, theirs;
	struct h_msg msg = { .ticket = &theirs, .length = length };
	struct h_slot *slot;
	struct h_dev *dev;

	if (ht_open(&dev) || h_area_alloc(dev, length, &attr.area) ||
	    h_area_alloc(dev, 128, &attr.meta_area) ||
	    h_nq_create(dev, 8, &attr.nq) ||
	    h_slot_create(dev, &attr, &slot) ||
	    h_terminus_create(dev, NULL, &terminus) ||
	    h_terminus_bind(terminus, 0, attr.area, 0, 0) ||
	    h_slot_ticket(slot, 0, 0, 0, &mine))
		return 1;
	h_ticket_export(&mine, bytes);
	if (ht_write_all(to, bytes, sizeof(bytes)) ||
	    ht_read_all(from, bytes, sizeof(bytes)) ||
	    h_ticket_import(bytes, sizeof(bytes), &theirs))
		return 2;
	if (h_recv_block(attr.nq, &entry, ht_patience_ns()) != 0)
		return 3;
	msg.data = h_area_addr(attr.area);
	if (ht_match(msg.data, length, 1) != length)
		return 4;
	ht_fill(h_area_addr(attr.area), length, 2);
	if (ht_send_sync(terminus, &msg) != 1)
		return 5;
	h_close(dev);
	return 0;
}

TEST_F(fork_kill, children_talk_through_devices_of_their_own)
{
	struct ht_pair *pair = &self->pair;
	size_t length = 3 * pair->query.packet_size / 2;
	unsigned char bytes[H_TICKET_BYTES];
	struct hamlyn_nq_entry entry;
	struct h_ticket to;
	struct h_msg msg = { .ticket = &to, .length = length };
	int down[2], up[2], round;
	struct h_area *area;
	pid_t pid;

	ASSERT_EQ(0, h_area_alloc(pair->tx, length, &area));
	ASSERT_EQ(0, h_terminus_bind(pair->terminus, 1, area, 0, 0));
	msg.data = h_area_addr(area);
	ASSERT_EQ(0, pipe(down));
	ASSERT_EQ(0, pipe(up));
	for (round = 0; round < 10; round++) {
		pid = ht_fork();
		ASSERT_GE(pid, 0);
		if (!pid)
			_exit(answer_once(down[0], up[1], length));
		ASSERT_EQ(0, ht_read_all(up[0], bytes, sizeof(bytes)));
		ASSERT_EQ(0, h_ticket_import(bytes, sizeof(bytes), &to));
		h_ticket_export(&pair->ticket, bytes);
		ASSERT_EQ(0, ht_write_all(down[1], bytes, sizeof(bytes)));
		ht_fill(h_area_addr(area), length, 1);
		ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
		ASSERT_EQ(0, h_recv_block(pair->nq, &entry, ht_patience_ns()));
		EXPECT_EQ(length, ht_match(pair->data, length, 2));
		EXPECT_EQ(0, ht_reap(pid));
		ht_pair_clear(pair);
	}
	/* The parent's own objects are as they were. */
	msg.ticket = &pair->ticket;
	ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
	ASSERT_EQ(1, ht_recv(pair->nq, &entry));
	EXPECT_EQ(length, ht_match(pair->data, length, 1));
}

/* A receiver with a child that outlives it, and does nothing at all. */
static int receive_and_fork(int out, int hold)
{
	struct h_slot_attr attr = { 0 };
	unsigned char bytes[H_TICKET_BYTES];
	struct h_ticket ticket;
	struct h_slot *slot;
	struct h_dev *dev;
	int there[2];
	char byte;

	if (pipe(there) || ht_open(&dev) || h_area_alloc(dev, 4096, &attr.area) ||
	    h_nq_create(dev, 8, &attr.nq) ||
	    h_slot_create(dev, &attr, &slot) ||
	    h_slot_ticket(slot, 0, 0, 0, &ticket))
		return 1;
	if (!ht_fork()) {
		prctl(PR_SET_PDEATHSIG, 0);
		/* Its copies are closed: who opens the device next finds what its parent had. */
		if (ht_write_all(there[1], "x", 1))
			_exit(1);
		/* Until the test ends, or says so. */
		_exit(read(hold, &byte, 1) != 1);
	}
	if (ht_read_all(there[0], &byte, 1))
		return 3;
	h_ticket_export(&ticket, bytes);
	if (!ht_write_all(out, bytes, sizeof(bytes)))
		pause();
	return 2;
}

TEST_F(fork_kill, a_child_does_not_keep_alive_what_its_parent_had)
{
	struct ht_pair *pair = &self->pair;
	struct hamlyn_stats before, after;
	unsigned char bytes[H_TICKET_BYTES];
	struct h_ticket ticket;
	struct h_msg msg = { .ticket = &ticket };
	struct ht_poll poll;
	int up[2], hold[2];
	struct h_dev *dev;
	pid_t pid;

	ASSERT_EQ(0, pipe(up));
	ASSERT_EQ(0, pipe(hold));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		close(hold[1]);
		_exit(receive_and_fork(up[1], hold[0]));
	}
	ASSERT_EQ(0, ht_read_all(up[0], bytes, sizeof(bytes)));
	ASSERT_EQ(0, h_ticket_import(bytes, sizeof(bytes), &ticket));
	kill(pid, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, ht_reap(pid));
	/* The embedded device clears up when somebody opens it. */
	ASSERT_EQ(0, ht_open(&dev));
	ASSERT_EQ(0, h_dev_stats(dev, &before));
	/* The kernel device clears up on its own, a moment later. */
	ht_poll_begin(&poll);
	do {
		ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
		ASSERT_EQ(0, h_dev_stats(dev, &after));
	} while (after.rejects[HAMLYN_REJECT_SLOT] ==
		 before.rejects[HAMLYN_REJECT_SLOT] && ht_poll_more(&poll));
	EXPECT_EQ(before.rejects[HAMLYN_REJECT_SLOT] + 1,
		  after.rejects[HAMLYN_REJECT_SLOT]);
	ASSERT_EQ(0, ht_write_all(hold[1], "x", 1));
	h_close(dev);
}

TEST_F(fork_kill, a_forking_parent_goes_on_while_children_come_and_go)
{
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = { .ticket = &pair->ticket, .data = pair->send };
	struct hamlyn_nq_entry entry;
	pid_t pids[4];
	int round;
	unsigned int i;

	msg.length = pair->send_length;
	for (round = 0; round < 20; round++) {
		for (i = 0; i < ARRAY_SIZE(pids); i++) {
			pids[i] = ht_fork();
			ASSERT_GE(pids[i], 0);
			if (!pids[i])
				_exit(0);
			/* Written after the fork: no copy may be left behind. */
			ht_fill(pair->send, msg.length, round * 4 + i);
			ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
			ASSERT_EQ(1, ht_recv(pair->nq, &entry));
			ASSERT_EQ(msg.length, ht_match(pair->data, msg.length,
						       round * 4 + i));
		}
		for (i = 0; i < ARRAY_SIZE(pids); i++) {
			ASSERT_EQ(0, ht_reap(pids[i]));
		}
	}
}

TEST_HARNESS_MAIN
