// SPDX-License-Identifier: GPL-2.0-only
/*
 * Conformance, beyond the paper: revoking under fire, watches, audit, holding
 * back who guesses, tickets as descriptors.
 */
#include "kselftest_harness.h"
#include "conformance.h"

#include <limits.h>
#include <signal.h>
#include <sys/mman.h>

#define COOKIE	0xc001e5ca1ab1eULL

/* Shared with a process that sends. */
struct board {
	struct h_ticket ticket;
	uint32_t round;		/* the ticket is of that one */
	uint32_t revoking;	/* the last round whose ticket is about to be void */
	uint32_t revoked;	/* the last round whose ticket is void */
	uint32_t done;		/* the last round that was tried to the end */
	uint32_t stop;
};

FIXTURE(conformance) {
	struct ht_pair pair;
	struct h_ticket ticket;		/* of the pair; to be changed */
	size_t packet;
	bool embedded;
	struct h_nq *nq;		/* of the pair's sender: it watches */
	struct board *board;
};

FIXTURE_SETUP(conformance)
{
	struct ht_pair_attr attr = { .meta = 4 };

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->ticket = self->pair.ticket;
	self->packet = self->pair.query.packet_size;
	self->embedded = h_dev_is_embedded(self->pair.rx);
	ASSERT_EQ(0, h_nq_create(self->pair.tx, 16, &self->nq));
	self->board = mmap(NULL, sizeof(*self->board), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->board);
	ht_fill(self->pair.send, self->pair.send_length, 1);
}

FIXTURE_TEARDOWN(conformance)
{
	ht_pair_close(&self->pair);
}

static bool wait_for(const uint32_t *word, uint32_t least)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (h__load_acquire(word) < least)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/* ---- revoking while somebody sends ---- */

#define ROUNDS		3
#define WHILE_REVOKED	60
#define AFTERWARDS	15

static int send_many(struct h_terminus *t, const struct h_msg *m, int count,
		     const uint32_t *until, uint32_t round)
{
	while (count-- && h__load_acquire(until) < round)
		if (ht_send_sync(t, m) != 1)
			return -1;
	return 0;
}

/* Each round's ticket, while it is good, while it is revoked, and afterwards. */
static int flood(struct board *b, bool embedded)
{
	struct h_msg m = { .flags = HAMLYN_TRB_NO_NOTIFY };
	struct h_terminus *t;
	struct h_ticket k;
	struct hamlyn_query q;
	struct h_area *area;
	struct h_dev *dev;
	uint32_t round;

	if (cf_be_somebody_else(embedded) || ht_open(&dev) || h_query(dev, &q))
		return 1;
	m.length = q.packet_size;
	if (h_area_alloc(dev, m.length, &area) ||
	    h_terminus_create(dev, NULL, &t) ||
	    h_terminus_bind(t, 0, area, 0, 0))
		return 2;
	m.data = h_area_addr(area);
	m.ticket = &k;
	for (round = 1;; round++) {
		if (!wait_for(&b->round, round))
			return 3;
		if (h__load_acquire(&b->stop))
			break;
		k = b->ticket;
		if (send_many(t, &m, INT_MAX, &b->revoking, round) ||
		    send_many(t, &m, WHILE_REVOKED, &b->revoked, round) ||
		    !wait_for(&b->revoked, round) ||
		    send_many(t, &m, AFTERWARDS, &b->done, round))
			return 4;
		h__store_release(&b->done, round);
	}
	h_close(dev);
	return 0;
}

static const char *begin_round(FIXTURE_DATA(conformance) *self, uint32_t round)
{
	struct ht_pair *p = &self->pair;
	struct ht_poll poll;

	self->board->ticket = self->ticket;
	memset(p->data, HT_GUARD, p->length);
	h__store_release(&self->board->round, round);
	/* Let it come. */
	ht_poll_begin(&poll);
	while (h__read_once(&p->data[0]) == HT_GUARD)
		if (!ht_poll_more(&poll))
			return "nothing comes";
	h__store_release(&self->board->revoking, round);
	return NULL;
}

/* The slot was revoked just now. */
static const char *end_round(FIXTURE_DATA(conformance) *self, uint32_t round)
{
	struct ht_pair *p = &self->pair;

	memset(p->data, HT_GUARD, p->length);
	h__store_release(&self->board->revoked, round);
	if (!wait_for(&self->board->done, round))
		return "the sender did not go on";
	return ht_match_byte(p->data, p->length, HT_GUARD) == p->length ?
	       NULL : "something landed";
}

static void stop_flood(FIXTURE_DATA(conformance) *self)
{
	h__store_release(&self->board->stop, 1);
	h__store_release(&self->board->round, ~0U);
}

/* When a rekey returns nothing lands under the old key, whoever is sending. */
TEST_F(conformance, beyond_rekey_stops_a_flood)
{
	uint32_t round;
	pid_t pid;

	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(flood(self->board, self->embedded));
	for (round = 1; round <= ROUNDS; round++) {
		ASSERT_EQ(0, h_slot_ticket(self->pair.slot, 0, 0, 0,
					   &self->ticket));
		ASSERT_NO(begin_round(self, round));
		ASSERT_EQ(0, h_slot_rekey(self->pair.slot));
		ASSERT_NO(end_round(self, round));
	}
	stop_flood(self);
	EXPECT_EQ(0, ht_reap(pid));
}

/* When a slot is destroyed nothing lands through it once the call returns. */
TEST_F(conformance, beyond_destroy_stops_a_flood)
{
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = { .area = p->area, .base = p->base,
				    .length = p->length };
	struct h_slot *slot;
	uint32_t round;
	pid_t pid;

	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(flood(self->board, self->embedded));
	for (round = 1; round <= ROUNDS; round++) {
		ASSERT_EQ(0, h_slot_create(p->rx, &attr, &slot));
		ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &self->ticket));
		ASSERT_NO(begin_round(self, round));
		ASSERT_EQ(0, h_slot_destroy(slot));
		ASSERT_NO(end_round(self, round));
	}
	stop_flood(self);
	EXPECT_EQ(0, ht_reap(pid));
}

/* ---- watches ---- */

static const char *nothing_told(struct h_nq *nq)
{
	struct hamlyn_nq_entry e;
	int i, j;

	/* Often enough that the library looks around as well. */
	for (i = 0; i < 4; i++) {
		for (j = 0; j < 3000; j++)
			if (h_recv(nq, &e))
				return "told once too often";
		ht_sleep_ns(8 * HT_MS);
	}
	return NULL;
}

static const char *tells(struct h_nq *nq, const struct h_ticket *k)
{
	struct hamlyn_nq_entry e;

	if (ht_recv(nq, &e) != 1)
		return "not told";
	if (!(e.flags & HAMLYN_NQE_PEER_GONE) || e.data != COOKIE)
		return "told something else";
	if (e.slot != k->slot || e.source != k->host)
		return "told of another slot";
	return NULL;
}

static const char *told_once(struct h_nq *nq, const struct h_ticket *k)
{
	const char *complaint = tells(nq, k);

	return complaint ? complaint : nothing_told(nq);
}

/* A watch tells, exactly once, that its slot was destroyed. */
TEST_F(conformance, beyond_watch_tells_destroy)
{
	struct ht_pair *p = &self->pair;
	struct h_watch *w;

	ASSERT_EQ(0, cf_watch(p->tx, &self->ticket, self->nq, COOKIE, &w));
	ASSERT_NO(nothing_told(self->nq));
	ASSERT_EQ(0, h_slot_destroy(p->slot));
	EXPECT_NO(told_once(self->nq, &self->ticket));
	EXPECT_EQ(-EBUSY, h_nq_destroy(self->nq));
	EXPECT_EQ(0, h_unwatch(w));
	EXPECT_NO(nothing_told(self->nq));
	EXPECT_EQ(0, h_nq_destroy(self->nq));
}

/* Or rekeyed; what becomes of the slot later is not told again. */
TEST_F(conformance, beyond_watch_tells_rekey)
{
	struct ht_pair *p = &self->pair;
	struct h_watch *w;

	ASSERT_EQ(0, cf_watch(p->tx, &self->ticket, self->nq, COOKIE, &w));
	ASSERT_EQ(0, h_slot_rekey(p->slot));
	EXPECT_NO(told_once(self->nq, &self->ticket));
	ASSERT_EQ(0, h_slot_rekey(p->slot));
	ASSERT_EQ(0, h_slot_destroy(p->slot));
	EXPECT_NO(nothing_told(self->nq));
}

static int make_slot(struct h_dev **dev, struct h_ticket *k)
{
	struct h_slot_attr attr = { 0 };
	struct h_slot *slot;
	int err;

	err = ht_open(dev);
	if (err)
		return err;
	err = h_area_alloc(*dev, 4096, &attr.area);
	if (err)
		return err;
	err = h_slot_create(*dev, &attr, &slot);
	return err ? err : h_slot_ticket(slot, 0, 0, 0, k);
}

/* Or that its owner closed the device. */
TEST_F(conformance, beyond_watch_tells_close)
{
	struct h_watch *w;
	struct h_ticket k;
	struct h_dev *dev;

	ASSERT_EQ(0, make_slot(&dev, &k));
	ASSERT_EQ(0, cf_watch(self->pair.tx, &k, self->nq, COOKIE, &w));
	EXPECT_NO(nothing_told(self->nq));
	h_close(dev);
	EXPECT_NO(told_once(self->nq, &k));
}

/* Or was killed. */
TEST_F(conformance, beyond_watch_tells_a_killed_owner)
{
	struct h_watch *w;
	struct h_ticket k;
	struct h_dev *dev;
	int pipefd[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(pipefd));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (make_slot(&dev, &k) ||
		    ht_write_all(pipefd[1], &k, sizeof(k)))
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_EQ(0, ht_read_all(pipefd[0], &k, sizeof(k)));
	ASSERT_EQ(0, cf_watch(self->pair.tx, &k, self->nq, COOKIE, &w));
	EXPECT_NO(nothing_told(self->nq));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(128 + SIGKILL, ht_reap(pid));
	EXPECT_NO(told_once(self->nq, &k));
}

/* Or that its NIC was set down. */
TEST_F(conformance, beyond_watch_tells_nic_down)
{
	struct hamlyn_nic_set set = { .flags = HAMLYN_NIC_SET_STATE,
				      .state = HAMLYN_NIC_DOWN };
	struct ht_pair *p = &self->pair;
	struct h_watch *w;

	ASSERT_EQ(0, cf_watch(p->tx, &self->ticket, self->nq, COOKIE, &w));
	ASSERT_EQ(0, h_nic_set(p->rx, &set));
	EXPECT_NO(told_once(self->nq, &self->ticket));
	set.state = HAMLYN_NIC_UP;
	ASSERT_EQ(0, h_nic_set(p->rx, &set));
	ASSERT_EQ(0, h_slot_destroy(p->slot));
	EXPECT_NO(nothing_told(self->nq));
}

/* A watch by a key that opens nothing tells at once, and counts as a reject. */
TEST_F(conformance, beyond_watch_of_a_wrong_key)
{
	struct ht_pair *p = &self->pair;
	struct ht_rejects before, after;
	struct h_watch *w;

	ASSERT_EQ(0, ht_pair_rejects(p, &before));
	self->ticket.key ^= 2;
	ASSERT_EQ(0, cf_watch(p->tx, &self->ticket, self->nq, COOKIE, &w));
	EXPECT_NO(told_once(self->nq, &self->ticket));
	ASSERT_EQ(0, ht_pair_rejects(p, &after));
	EXPECT_EQ(before.slot[HAMLYN_REJECT_KEY] + 1,
		  after.slot[HAMLYN_REJECT_KEY]);
	ASSERT_EQ(0, h_slot_destroy(p->slot));
	EXPECT_NO(nothing_told(self->nq));
}

/* If the queue is full a watch tells later: it is not lost, and no overrun. */
TEST_F(conformance, beyond_watch_and_a_full_queue)
{
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = { 0 };
	struct hamlyn_nq_entry e;
	struct h_slot *slot;
	struct h_watch *w;
	struct h_ticket k;
	struct h_nq *nq;
	int i;

	/* Three entries, three messages. */
	ASSERT_EQ(0, h_nq_create(p->tx, 4, &nq));
	ASSERT_EQ(0, h_area_alloc(p->tx, 4096, &attr.area));
	attr.nq = nq;
	ASSERT_EQ(0, h_slot_create(p->tx, &attr, &slot));
	ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &k));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(1, ht_send_wait(p->terminus,
					  h_send_msg(p->terminus, &k, "x", 1,
						     NULL, 0)));
	}
	ASSERT_EQ(0, cf_watch(p->tx, &self->ticket, nq, COOKIE, &w));
	ASSERT_EQ(0, h_slot_destroy(p->slot));
	ht_sleep_ns(30 * HT_MS);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(1, ht_recv(nq, &e));
		EXPECT_EQ(h_slot_number(slot), e.slot);
	}
	EXPECT_NO(told_once(nq, &self->ticket));
	EXPECT_EQ(0, h_nq_lost(nq));
}

/* After the end of a watch nothing is told. */
TEST_F(conformance, beyond_unwatch)
{
	struct ht_pair *p = &self->pair;
	struct h_watch *w, *other;
	struct hamlyn_nq_entry e;

	ASSERT_EQ(0, cf_watch(p->tx, &self->ticket, self->nq, 1, &w));
	ASSERT_EQ(0, cf_watch(p->tx, &self->ticket, self->nq, 2, &other));
	ASSERT_EQ(0, h_unwatch(w));
	ASSERT_EQ(0, h_slot_destroy(p->slot));
	ASSERT_EQ(1, ht_recv(self->nq, &e));
	EXPECT_EQ(2, e.data);
	EXPECT_NO(nothing_told(self->nq));
}

/* ---- audit ---- */

/* A slot's owner can read what was rejected: reason, source, process and user. */
TEST_F(conformance, beyond_audit)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket, .data = "12345",
			   .length = 5 };
	struct hamlyn_audit_entry e[8];
	uint64_t sequence = 0, first;
	int64_t began = ht_now_ns();

	ASSERT_LE(0, h_audit(p->rx, e, 8, &sequence));
	self->ticket.length = ~0ULL;
	m.offset = p->length - 2;
	EXPECT_NO(cf_vanishes(p, &m));
	m.offset = 77;
	self->ticket.key ^= 1;
	EXPECT_NO(cf_vanishes(p, &m));
	first = sequence;
	ASSERT_EQ(2, h_audit(p->rx, e, 8, &sequence));
	EXPECT_LT(first, sequence);
	EXPECT_EQ(HAMLYN_REJECT_BOUNDS, e[0].reason);
	EXPECT_EQ(p->length - 2, e[0].offset);
	EXPECT_EQ(HAMLYN_REJECT_KEY, e[1].reason);
	EXPECT_EQ(77, e[1].offset);
	EXPECT_LT(e[0].sequence, e[1].sequence);
	EXPECT_LE(e[0].time_ns, e[1].time_ns);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(5, e[i].length);
		EXPECT_EQ(h_slot_number(p->slot), e[i].slot);
		EXPECT_EQ(p->from, e[i].source);
		/* Process ids stay at home. */
		EXPECT_EQ(ht_is_remote() ? 0 : getpid(), e[i].pid);
		EXPECT_EQ(geteuid(), e[i].uid);
		EXPECT_LE((uint64_t)began, e[i].time_ns);
		EXPECT_GE((uint64_t)ht_now_ns(), e[i].time_ns);
	}
	EXPECT_EQ(0, h_audit(p->rx, e, 8, &sequence));
}

/* It tells of the reader's own slots only. */
TEST_F(conformance, beyond_audit_of_own_slots)
{
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = { .area = p->send_area };
	struct h_msg m = { .ticket = &self->ticket, .data = "x", .length = 1 };
	uint64_t rx = 0, tx = 0, sequence;
	struct hamlyn_audit_entry e[8];
	struct h_slot *slot;

	ASSERT_LE(0, h_audit(p->rx, e, 8, &rx));
	ASSERT_LE(0, h_audit(p->tx, e, 8, &tx));
	ASSERT_EQ(0, h_slot_create(p->tx, &attr, &slot));
	self->ticket.meta_index = 1000;
	EXPECT_NO(cf_vanishes(p, &m));
	sequence = tx;
	EXPECT_EQ(0, h_audit(p->tx, e, 8, &sequence));
	EXPECT_EQ(1, h_audit(p->rx, e, 8, &rx));
	ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &self->ticket));
	self->ticket.meta_index = 1;
	EXPECT_NO(cf_vanishes(p, &m));
	EXPECT_EQ(1, h_audit(p->tx, e, 8, &tx));
	EXPECT_EQ(h_slot_number(slot), e[0].slot);
	EXPECT_EQ(0, h_audit(p->rx, e, 8, &rx));
}

/* A gap in the entries' numbers tells that some were overwritten. */
TEST_F(conformance, beyond_audit_tells_gaps)
{
	enum { MANY = 1100 };
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket, .data = "x", .length = 1 };
	static struct hamlyn_audit_entry e[2 * MANY];
	uint64_t sequence = 0;
	int i, n;

	ASSERT_LE(0, h_audit(p->rx, e, MANY, &sequence));
	/* No guesses: the key is right. */
	self->ticket.length = ~0ULL;
	for (i = 0; i < MANY; i++) {
		m.offset = p->length + (uint64_t)i;
		ASSERT_GE(ht_send(p->terminus, &m), 0);
	}
	EXPECT_EQ(0, ht_pair_fence(p));
	n = h_audit(p->rx, e, 2 * MANY, &sequence);
	ASSERT_GT(n, 10);
	EXPECT_LT(n, MANY);
	EXPECT_GT(e[0].offset, p->length);
	for (i = 0; i < n; i++) {
		EXPECT_EQ(e[0].sequence + (uint64_t)i, e[i].sequence);
		EXPECT_EQ(p->length + MANY - (uint64_t)(n - i), e[i].offset);
	}
	EXPECT_EQ(e[n - 1].sequence + 1, sequence);
}

/* ---- holding back who guesses ---- */

/* Wrong keys a second, and as many at once. */
static uint64_t most_guesses(bool embedded)
{
	FILE *f = embedded ? NULL :
		  fopen("/sys/module/hamlyn/parameters/guesses", "re");
	unsigned long n = 10000;

	if (f) {
		if (fscanf(f, "%lu", &n) != 1)
			n = 10000;
		fclose(f);
	}
	return n;
}

static int guess(struct board *b, bool embedded)
{
	struct h_msg m = { .ticket = &b->ticket, .data = "guess", .length = 5 };
	struct h_terminus *t;
	struct h_dev *dev;

	if (cf_be_somebody_else(embedded) || ht_open_tx(&dev) ||
	    h_terminus_create(dev, NULL, &t))
		return 1;
	while (!h__load_acquire(&b->stop))
		if (h_send(t, &m) == -EAGAIN)
			ht_sleep_ns(HT_MS / 2);
	h_close(dev);
	return 0;
}

static uint64_t guesses_at(struct h_slot *slot)
{
	struct hamlyn_stats stats;

	return h_slot_stats(slot, &stats) ? 0 :
	       stats.rejects[HAMLYN_REJECT_KEY];
}

static const char *start_guesser(FIXTURE_DATA(conformance) *self, pid_t *pid)
{
	uint64_t enough = most_guesses(self->embedded) + 8;
	struct ht_poll poll;

	self->board->ticket = self->ticket;
	self->board->ticket.key ^= 4;
	*pid = ht_fork();
	if (!*pid)
		_exit(guess(self->board, self->embedded));
	/* From here on he has what comes in, and no more. */
	ht_poll_begin(&poll);
	while (guesses_at(self->pair.slot) < enough)
		if (!ht_poll_more(&poll))
			return "he does not guess";
	return NULL;
}

/* See hosts: a_guesser_does_not_shut_out_its_host. */
#define DROPPED_THERE	"tcp: who guesses is not paused, its packets are dropped there"

/* H 6.5: To guess keys is futile: who tries is held to 10000 a second. */
TEST_F(conformance, beyond_guesses_are_held_back)
{
	struct ht_pair *p = &self->pair;
	uint64_t most = most_guesses(self->embedded), count;
	int64_t begun = ht_now_ns();
	pid_t pid;

	if (ht_is_remote())
		SKIP(return, DROPPED_THERE);
	if (!most)
		SKIP(return, "kernel: yes, but not with guesses=0");
	ASSERT_NO(start_guesser(self, &pid));
	count = guesses_at(p->slot);
	ht_sleep_ns(700 * HT_MS);
	/* Nor is he shut out: 1 % is what a busy machine leaves of it. */
	EXPECT_LE(count + most / 100, guesses_at(p->slot));
	count = guesses_at(p->slot);
	EXPECT_LE(count, most + 2 + most * (uint64_t)(ht_now_ns() - begun) / HT_SEC);
	h__store_release(&self->board->stop, 1);
	EXPECT_EQ(0, ht_reap(pid));
	EXPECT_TRUE(ht_pair_untouched(p));
}

/* Others are not disturbed while somebody is held back. */
TEST_F(conformance, beyond_guessers_pause_alone)
{
	enum { MESSAGES = 200 };
	struct ht_pair *p = &self->pair;
	uint64_t count;
	pid_t pid;
	int i;

	if (ht_is_remote())
		SKIP(return, DROPPED_THERE);
	if (!most_guesses(self->embedded))
		SKIP(return, "kernel: yes, but not with guesses=0");
	ASSERT_NO(start_guesser(self, &pid));
	count = guesses_at(p->slot);
	for (i = 0; i < MESSAGES || guesses_at(p->slot) == count; i++) {
		ASSERT_EQ(0, ht_pair_fence(p));
	}
	h__store_release(&self->board->stop, 1);
	EXPECT_EQ(0, ht_reap(pid));
}

/* ---- tickets as descriptors ---- */

/* See hosts: a_descriptor_of_a_ticket_is_refused. */
#define ONE_KERNEL	"tcp: descriptors do not reach other hosts"

static int send_by_descriptor(int socket, bool embedded)
{
	struct h_terminus *t;
	struct h_ticket k;
	struct h_dev *dev;
	int fd;

	if (cf_be_somebody_else(embedded) || ht_open(&dev) ||
	    h_terminus_create(dev, NULL, &t))
		return 1;
	fd = cf_take_fd(socket);
	if (fd < 0 || h_terminus_import(t, fd, &k))
		return 2;
	close(fd);
	if (!(k.flags & H_TICKET_IMPORTED) || k.key || k.length != 50)
		return 3;
	if (ht_send_wait(t, h_send_msg(t, &k, "by fd", 5, NULL, 0)) != 1)
		return 4;
	h_close(dev);
	return 0;
}

/* A ticket may be a descriptor, passed to another process and imported there. */
TEST_F(conformance, beyond_ticket_descriptors_are_passed_on)
{
	struct ht_pair *p = &self->pair;
	struct hamlyn_nq_entry e;
	int sockets[2], fd;
	pid_t pid;

	if (ht_is_remote())
		SKIP(return, ONE_KERNEL);
	ASSERT_EQ(0, h_slot_ticket_fd(p->slot, 100, 50, &fd));
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(send_by_descriptor(sockets[0], self->embedded));
	ASSERT_EQ(0, cf_pass_fd(sockets[1], fd));
	close(fd);
	EXPECT_EQ(0, ht_reap(pid));
	ASSERT_EQ(1, ht_recv(p->nq, &e));
	EXPECT_EQ(0, memcmp(p->data + 100, "by fd", 5));
	memset(p->data + 100, HT_GUARD, 5);
	EXPECT_TRUE(ht_pair_untouched(p));
}

static int import(struct h_slot *slot, struct h_terminus *t, uint64_t base,
		  uint64_t length, struct h_ticket *k)
{
	int fd, err;

	err = h_slot_ticket_fd(slot, base, length, &fd);
	if (err)
		return err;
	err = h_terminus_import(t, fd, k);
	close(fd);
	return err;
}

/* H 6.5: Keys may be indirect: a slot can demand a descriptor, not just its key. */
TEST_F(conformance, beyond_ticket_only)
{
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = {
		.area = p->area, .base = p->base, .length = p->length,
		.nq = p->nq, .flags = HAMLYN_SLOT_TICKET_ONLY,
	};
	struct h_ticket by_key, by_fd;
	struct h_msg m = { .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;
	struct hamlyn_stats stats;
	struct h_slot *slot;

	if (ht_is_remote())
		SKIP(return, ONE_KERNEL);
	ASSERT_EQ(0, h_slot_create(p->rx, &attr, &slot));
	ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &by_key));
	m.ticket = &by_key;
	EXPECT_NO(cf_vanishes(p, &m));
	ASSERT_EQ(0, h_slot_stats(slot, &stats));
	EXPECT_EQ(1, stats.rejects[HAMLYN_REJECT_TICKET]);
	ASSERT_EQ(0, import(slot, p->terminus, 0, 0, &by_fd));
	m.ticket = &by_fd;
	EXPECT_NO(cf_lands(p, &m, &e));
	EXPECT_EQ('x', p->data[0]);
}

/* The number of an imported ticket means nothing outside its terminus. */
TEST_F(conformance, beyond_leaked_tickets_are_useless)
{
	struct ht_pair *p = &self->pair;
	unsigned char bytes[H_TICKET_BYTES];
	struct h_ticket k, leaked;
	struct h_msg m = { .ticket = &k, .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;
	struct h_terminus *other;

	if (ht_is_remote())
		SKIP(return, ONE_KERNEL);
	ASSERT_EQ(0, h_terminus_create(p->tx, NULL, &other));
	ASSERT_EQ(0, import(p->slot, p->terminus, 0, 0, &k));
	EXPECT_EQ(0, k.key);
	EXPECT_EQ(-ENOKEY, ht_send_sync(other, &m));
	/* Nor do its exported bytes open anything. */
	h_ticket_export(&k, bytes);
	ASSERT_EQ(0, h_ticket_import(bytes, sizeof(bytes), &leaked));
	m.ticket = &leaked;
	EXPECT_NO(cf_vanishes(p, &m));
	m.ticket = &k;
	EXPECT_NO(cf_lands(p, &m, &e));
}

/* The NIC keeps messages by an imported ticket inside its range. */
TEST_F(conformance, beyond_ticket_ranges_are_enforced)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket k;
	struct h_msg m = { .ticket = &k, .data = "12345", .length = 5 };
	const uint64_t wrong[] = { 0, 99, 146, 150, 1ULL << 40, 0 - 5ULL };
	struct hamlyn_nq_entry e;
	unsigned int i;

	if (ht_is_remote())
		SKIP(return, ONE_KERNEL);
	ASSERT_EQ(0, import(p->slot, p->terminus, 100, 50, &k));
	EXPECT_EQ(100, k.base);
	EXPECT_EQ(50, k.length);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		/* Forged: what the library looks at. */
		k.base = wrong[i];
		EXPECT_EQ(-ERANGE, ht_send_sync(p->terminus, &m));
	}
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_TRUE(ht_pair_untouched(p));
	k.base = 145;
	EXPECT_NO(cf_lands(p, &m, &e));
	EXPECT_EQ(0, memcmp(p->data + 145, "12345", 5));
}

/* A rekey makes all of a slot's descriptors void, imported or not. */
TEST_F(conformance, beyond_rekey_voids_descriptors)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket k, again;
	struct h_msg m = { .ticket = &k, .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;
	int fd;

	if (ht_is_remote())
		SKIP(return, ONE_KERNEL);
	ASSERT_EQ(0, h_slot_ticket_fd(p->slot, 0, 0, &fd));
	ASSERT_EQ(0, h_terminus_import(p->terminus, fd, &k));
	EXPECT_NO(cf_lands(p, &m, &e));
	ASSERT_EQ(0, h_slot_rekey(p->slot));
	ht_pair_clear(p);
	EXPECT_NO(cf_vanishes(p, &m));
	EXPECT_EQ(-ENOKEY, h_terminus_import(p->terminus, fd, &again));
	close(fd);
	ASSERT_EQ(0, import(p->slot, p->terminus, 0, 0, &again));
	m.ticket = &again;
	EXPECT_NO(cf_lands(p, &m, &e));
}

/* Dropped tickets are of no use any more; others of the terminus are. */
TEST_F(conformance, beyond_tickets_are_dropped)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket k, other;
	struct h_msg m = { .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;

	if (ht_is_remote())
		SKIP(return, ONE_KERNEL);
	ASSERT_EQ(0, import(p->slot, p->terminus, 0, 0, &k));
	ASSERT_EQ(0, import(p->slot, p->terminus, 0, 0, &other));
	ASSERT_EQ(0, h_terminus_drop(p->terminus, &k));
	m.ticket = &k;
	EXPECT_EQ(-ENOKEY, ht_send_sync(p->terminus, &m));
	EXPECT_EQ(-ENOKEY, h_terminus_drop(p->terminus, &k));
	EXPECT_EQ(-EINVAL, h_terminus_drop(p->terminus, &p->ticket));
	m.ticket = &other;
	EXPECT_NO(cf_lands(p, &m, &e));
}

/* Nothing but such a descriptor is imported. */
TEST_F(conformance, beyond_tickets_cannot_be_made_up)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket k;
	int pipefd[2], fd;

	if (ht_is_remote())
		SKIP(return, ONE_KERNEL);
	ASSERT_EQ(0, pipe(pipefd));
	EXPECT_EQ(-EBADF, h_terminus_import(p->terminus, pipefd[0], &k));
	EXPECT_EQ(-EBADF, h_terminus_import(p->terminus, -1, &k));
	fd = memfd_create("hamlyn-ticket", MFD_CLOEXEC);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ftruncate(fd, 4096));
	EXPECT_EQ(-EBADF, h_terminus_import(p->terminus, fd, &k));
	ASSERT_EQ(0, h_slot_ticket_fd(p->slot, 0, 0, &fd));
	ASSERT_EQ(0, h_slot_destroy(p->slot));
	EXPECT_EQ(-ENOKEY, h_terminus_import(p->terminus, fd, &k));
}

/* ---- the rest ---- */

/* A failed call is explained in words, once. */
TEST_F(conformance, beyond_explain)
{
	char text[HAMLYN_EXPLAIN_BYTES], again[HAMLYN_EXPLAIN_BYTES];
	struct h_nq *nq;

	ASSERT_EQ(-EINVAL, h_nq_create(self->pair.rx, 12345, &nq));
	ASSERT_EQ(0, h_explain(self->pair.rx, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, "12345")) {
		TH_LOG("\"%s\"", text);
	}
	ASSERT_EQ(0, h_explain(self->pair.rx, again, sizeof(again)));
	EXPECT_EQ(0, strcmp("", again));
}

/* Termini have a priority and a weight; the embedded device has no use for them. */
TEST_F(conformance, beyond_priorities_are_accepted)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket, .data = "x", .length = 1 };
	struct h_terminus_attr attr = { 0 };
	struct hamlyn_nq_entry e;
	struct h_terminus *t;

	for (attr.priority = 0; attr.priority < HAMLYN_PRIORITIES;
	     attr.priority++) {
		attr.weight = attr.priority * 32;
		ASSERT_EQ(0, h_terminus_create(p->tx, &attr, &t));
		ASSERT_EQ(1, ht_send_sync(t, &m));
		EXPECT_EQ(1, ht_recv(p->nq, &e));
	}
	EXPECT_EQ(-EINVAL, h_terminus_create(p->tx, &attr, &t));
	attr.priority = HAMLYN_PRIORITY_NORMAL;
	attr.weight = HAMLYN_MAX_WEIGHT + 1;
	EXPECT_EQ(-EINVAL, h_terminus_create(p->tx, &attr, &t));
}

/* H 6.6: All slots of a NIC can be used, up to a million: the first, the last, any. */
TEST_F(conformance, beyond_every_slot_works)
{
	struct ht_pair *p = &self->pair;
	uint32_t max = p->query.max_slots, made, i;
	struct h_slot_attr attr = { .nq = p->nq, .length = 8 };
	struct h_slot **slots = calloc(max, sizeof(*slots));
	uint32_t first = 0, last = 0;
	struct hamlyn_nq_entry e;
	uint64_t random = ht_seed();
	struct h_ticket k;
	int err = 0;

	ASSERT_NE(NULL, slots);
	ASSERT_EQ(0, h_area_alloc(p->rx, 8UL * max, &attr.area));
	for (made = 0; made < max; made++) {
		attr.base = 8UL * made;
		err = h_slot_create(p->rx, &attr, &slots[made]);
		if (err)
			break;
		if (h_slot_number(slots[made]) < h_slot_number(slots[first]))
			first = made;
		if (h_slot_number(slots[made]) > h_slot_number(slots[last]))
			last = made;
	}
	/* The pair has two, or three; without privileges a user has half. */
	if (err != -EDQUOT) {
		EXPECT_EQ(-ENOSPC, err);
		EXPECT_EQ(max - 2 - ht_is_remote(), made);
		EXPECT_GE(h_slot_number(slots[last]), max - 3);
	}
	for (i = 0; i < 100; i++) {
		uint32_t which = i == 0 ? first : i == 1 ? last :
				 (uint32_t)(ht_random(&random) % made);
		uint64_t word = ht_random(&random);

		ASSERT_EQ(0, h_slot_ticket(slots[which], 0, 0, 0, &k));
		ASSERT_GE(h_send_msg(p->terminus, &k, &word, 8, NULL, 0), 0);
		ASSERT_EQ(1, ht_recv(p->nq, &e));
		EXPECT_EQ(h_slot_number(slots[which]), e.slot);
		EXPECT_EQ(0, memcmp((char *)h_area_addr(attr.area) + 8UL * which,
				    &word, 8));
	}
	free(slots);
}

TEST_HARNESS_MAIN
