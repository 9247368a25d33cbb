// SPDX-License-Identifier: GPL-2.0-only
/*
 * Conformance, what only the kernel device has: several NICs on a fabric, an
 * engine that decides who is served, users, memory of the application's own.
 */
#include "kselftest_harness.h"
#include "conformance.h"

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#define NEED_TWO_NICS	"kernel: with nics=2"

/* A pair on one NIC, and a receiver on another. */
FIXTURE(conformance) {
	struct ht_pair pair;
	struct hamlyn_query query;	/* of the other NIC */
	struct h_dev *far;		/* NULL: there is no other NIC */
	struct h_area *area;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_ticket ticket;
	unsigned char *data;
	size_t length;
};

static const char *other_device(void)
{
	const char *name = ht_device();
	size_t length = name ? strlen(name) : 0;

	return length && name[length - 1] == '1' ? "/dev/hamlyn0" :
						   "/dev/hamlyn1";
}

static int open_far(FIXTURE_DATA(conformance) *self)
{
	struct h_slot_attr attr = { 0 };

	if (h_open(other_device(), &self->far)) {
		self->far = NULL;
		return 0;
	}
	self->length = self->pair.length;
	if (h_query(self->far, &self->query) ||
	    h_area_alloc(self->far, self->length, &self->area) ||
	    h_area_alloc(self->far, 4096, &attr.meta_area) ||
	    h_nq_create(self->far, 16, &self->nq))
		return -1;
	self->data = h_area_addr(self->area);
	memset(self->data, HT_GUARD, self->length);
	attr.area = self->area;
	attr.length = self->length;
	attr.meta_count = 4;
	attr.nq = self->nq;
	return h_slot_create(self->far, &attr, &self->slot) ||
	       h_slot_ticket(self->slot, 0, 0, 0, &self->ticket) ? -1 : 0;
}

FIXTURE_SETUP(conformance)
{
	struct ht_pair_attr attr = { .meta = 4, .nq_entries = 2048 };

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	ASSERT_EQ(0, open_far(self));
	ht_fill(self->pair.send, self->pair.send_length, 1);
}

FIXTURE_TEARDOWN(conformance)
{
	h_close(self->far);
	ht_pair_close(&self->pair);
}

static bool far_untouched(const FIXTURE_DATA(conformance) *self)
{
	return ht_match_byte(self->data, self->length, HT_GUARD) ==
	       self->length;
}

/* ---- several NICs ---- */

/* embedded: a segment has one NIC */

/* A packet names its destination host: messages go from NIC to NIC, and back. */
TEST_F(conformance, h2_2_destination_host)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket, .data = p->send,
			   .length = p->length, .meta = "meta",
			   .meta_length = 4 };
	struct hamlyn_nq_entry e;
	struct h_terminus *back;

	if (!self->far)
		SKIP(return, NEED_TWO_NICS);
	EXPECT_NE(p->query.host, self->query.host);
	EXPECT_EQ(self->query.host, self->ticket.host);
	ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	ASSERT_EQ(1, ht_recv(self->nq, &e));
	EXPECT_EQ(p->query.host, e.source);
	EXPECT_EQ(h_slot_number(self->slot), e.slot);
	EXPECT_EQ(p->length, ht_match(self->data, p->length, 1));
	EXPECT_EQ(0, memcmp(h_slot_entry(self->slot, 0)->user, "meta", 4));
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_TRUE(ht_pair_untouched(p));
	ASSERT_EQ(0, h_terminus_create(self->far, NULL, &back));
	ASSERT_GE(h_send_msg(back, &p->ticket, "back", 4, NULL, 0), 0);
	ASSERT_EQ(1, ht_recv(p->nq, &e));
	EXPECT_EQ(self->query.host, e.source);
	EXPECT_EQ(0, memcmp(p->data, "back", 4));
}

/* A host that is not on the fabric is unreachable, and the sender is told. */
TEST_F(conformance, h2_2_unknown_hosts)
{
	static const uint32_t hosts[] = { 200, 255, 256, 1U << 16, ~0U };
	struct ht_pair *p = &self->pair;
	struct h_ticket k = p->ticket;
	struct h_msg m = { .ticket = &k, .data = "x", .length = 1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(hosts); i++) {
		k.host = hosts[i];
		EXPECT_EQ(-EHOSTUNREACH, ht_send_sync(p->terminus, &m));
	}
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_TRUE(ht_pair_untouched(p));
}

/* A NIC that is down discards what others send to it, and what it sends. */
TEST_F(conformance, h2_8_down_on_either_side)
{
	struct hamlyn_nic_set set = { .flags = HAMLYN_NIC_SET_STATE,
				      .state = HAMLYN_NIC_DOWN };
	struct ht_pair *p = &self->pair;
	struct h_msg there = { .ticket = &self->ticket, .data = "x",
			       .length = 1 };
	struct h_msg back = { .ticket = &p->ticket, .data = "x", .length = 1 };
	struct h_terminus *t;
	struct hamlyn_nq_entry e;

	if (!self->far)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, h_terminus_create(self->far, NULL, &t));
	ASSERT_EQ(0, h_nic_set(self->far, &set));
	EXPECT_EQ(1, ht_send_sync(p->terminus, &there));
	EXPECT_EQ(1, ht_send_sync(t, &back));
	EXPECT_EQ(0, h_recv(self->nq, &e));
	/* The other NIC is up. */
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_TRUE(far_untouched(self));
	EXPECT_TRUE(ht_pair_untouched(p));
	set.state = HAMLYN_NIC_UP;
	ASSERT_EQ(0, h_nic_set(self->far, &set));
	EXPECT_EQ(1, ht_send_sync(p->terminus, &there));
	EXPECT_EQ(1, ht_recv(self->nq, &e));
	EXPECT_EQ(1, ht_send_sync(t, &back));
	EXPECT_EQ(1, ht_recv(p->nq, &e));
}

/* Two NICs that flood each other with full queues both finish. */
TEST_F(conformance, h2_8_floods_between_nics)
{
	const char *devices[2] = { ht_device(), other_device() };
	int sockets[2];
	pid_t pids[2];
	unsigned int i;

	if (!self->far)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	for (i = 0; i < 2; i++) {
		pids[i] = ht_fork();
		ASSERT_GE(pids[i], 0);
		if (!pids[i])
			_exit(cf_play(sockets[i], devices[i], i));
	}
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, ht_reap(pids[i]));
}

/* So many that they are on their way when the key changes; few enough guesses. */
static int send_sixty(const struct h_ticket *k, size_t length)
{
	struct h_msg m = { .ticket = k, .length = length,
			   .flags = HAMLYN_TRB_NO_NOTIFY };
	struct h_terminus *t;
	struct h_area *area;
	struct h_dev *dev;
	int64_t handle = 0;
	int i;

	if (cf_be_somebody_else(false) || ht_open(&dev) ||
	    h_area_alloc(dev, length, &area) ||
	    h_terminus_create(dev, NULL, &t) ||
	    h_terminus_bind(t, 0, area, 0, 0))
		return 1;
	m.data = h_area_addr(area);
	for (i = 0; i < 60; i++)
		handle = ht_send(t, &m);
	if (ht_send_wait(t, handle) != 1)
		return 2;
	h_close(dev);
	return 0;
}

/* When a rekey returns nothing lands under the old key from other NICs either. */
TEST_F(conformance, beyond_rekey_reaches_other_nics)
{
	struct ht_poll poll;
	pid_t pid;
	int i;

	if (!self->far)
		SKIP(return, NEED_TWO_NICS);
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, h_slot_ticket(self->slot, 0, 0, 0, &self->ticket));
		pid = ht_fork();
		ASSERT_GE(pid, 0);
		if (!pid)
			_exit(send_sixty(&self->ticket,
					 self->pair.query.packet_size));
		ht_poll_begin(&poll);
		while (h__read_once(&self->data[0]) == HT_GUARD) {
			ASSERT_TRUE(ht_poll_more(&poll));
		}
		ASSERT_EQ(0, h_slot_rekey(self->slot));
		memset(self->data, HT_GUARD, self->length);
		EXPECT_EQ(0, ht_reap(pid));
		EXPECT_TRUE(far_untouched(self));
	}
}

/* Watches tell of slots on other NICs, too. */
TEST_F(conformance, beyond_watch_of_another_nic)
{
	struct ht_pair *p = &self->pair;
	struct hamlyn_nq_entry e;
	struct h_watch *w;

	if (!self->far)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, cf_watch(p->rx, &self->ticket, p->nq, 77, &w));
	EXPECT_EQ(0, h_recv(p->nq, &e));
	h_close(self->far);
	self->far = NULL;
	ASSERT_EQ(1, ht_recv(p->nq, &e));
	EXPECT_TRUE(e.flags & HAMLYN_NQE_PEER_GONE);
	EXPECT_EQ(77, e.data);
	EXPECT_EQ(self->query.host, e.source);
	EXPECT_EQ(0, ht_pair_fence(p));
}

/* A descriptor's ticket works from another NIC. */
TEST_F(conformance, beyond_ticket_descriptors_across_nics)
{
	struct ht_pair *p = &self->pair;
	struct hamlyn_nq_entry e;
	struct h_ticket k;
	int fd;

	if (!self->far)
		SKIP(return, NEED_TWO_NICS);
	ASSERT_EQ(0, h_slot_ticket_fd(self->slot, 10, 10, &fd));
	ASSERT_EQ(0, h_terminus_import(p->terminus, fd, &k));
	close(fd);
	EXPECT_EQ(self->query.host, k.host);
	ASSERT_GE(h_send_msg(p->terminus, &k, "hello", 5, NULL, 0), 0);
	ASSERT_EQ(1, ht_recv(self->nq, &e));
	EXPECT_EQ(0, memcmp(self->data + 10, "hello", 5));
}

/* The audit tells which host a packet came from. */
TEST_F(conformance, beyond_audit_tells_the_source)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket, .data = "x", .length = 1 };
	struct hamlyn_audit_entry e;
	uint64_t sequence = 0;

	if (!self->far)
		SKIP(return, NEED_TWO_NICS);
	self->ticket.meta_index = 4;
	ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	ASSERT_EQ(1, h_audit(self->far, &e, 1, &sequence));
	EXPECT_EQ(HAMLYN_REJECT_METADATA, e.reason);
	EXPECT_EQ(p->query.host, e.source);
}

/* ---- memory, slots and send buffers are guarded by the OS ---- */

/* embedded: an area for receiving must be allocated in the segment */

/* Pages of the application's own are wired: they outlive their mapping. */
TEST_F(conformance, h2_2_own_memory_is_wired)
{
	enum { LENGTH = 3 * 4096 };
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = { .nq = p->nq };
	struct h_msg m = { .ticket = &self->ticket, .data = p->send,
			   .length = LENGTH - 100 };
	struct hamlyn_nq_entry e;
	unsigned char *one, *other;
	struct h_slot *slot;
	int fd;

	fd = memfd_create("conformance", MFD_CLOEXEC);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ftruncate(fd, LENGTH));
	one = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	other = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, one);
	ASSERT_NE(MAP_FAILED, other);
	ASSERT_EQ(0, h_area_add(p->rx, one + 100, LENGTH - 100, 0, &attr.area));
	ASSERT_EQ(0, h_slot_create(p->rx, &attr, &slot));
	ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &self->ticket));
	ASSERT_EQ(0, munmap(one, LENGTH));
	ASSERT_NO(cf_lands(p, &m, &e));
	EXPECT_EQ(m.length, ht_match(other + 100, m.length, 1));
	EXPECT_EQ(100, ht_match_byte(other, 100, 0));
	munmap(other, LENGTH);
	close(fd);
}

/* embedded: its checks stop mistakes, not malice */

/* Slots can be changed by the OS only, for the one who made them. */
TEST_F(conformance, h2_2_slots_belong_to_their_maker)
{
	struct ht_pair *p = &self->pair;
	struct hamlyn_slot_rekey rekey = {
		.size = sizeof(rekey), .slot = h_slot_number(p->slot),
	};
	struct hamlyn_ticket_create ticket = {
		.size = sizeof(ticket), .slot = h_slot_number(p->slot),
	};
	struct hamlyn_stats stats = {
		.size = sizeof(stats), .kind = HAMLYN_STATS_SLOT,
		.id = h_slot_number(p->slot),
	};
	struct hamlyn_nq_entry e;
	struct h_msg m = { .ticket = &p->ticket, .data = "x", .length = 1 };
	int fd = ht_raw_open();

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-ENOENT, ht_raw_id(fd, HAMLYN_IOC_SLOT_DESTROY,
				     h_slot_number(p->slot)));
	EXPECT_EQ(-ENOENT, ht_raw(fd, HAMLYN_IOC_SLOT_REKEY, &rekey));
	EXPECT_EQ(-ENOENT, ht_raw(fd, HAMLYN_IOC_TICKET_CREATE, &ticket));
	EXPECT_EQ(-ENOENT, ht_raw(fd, HAMLYN_IOC_STATS, &stats));
	EXPECT_NO(cf_lands(p, &m, &e));
	close(fd);
}

/* What a sender writes into its queue fetches from its send buffer areas only. */
TEST_F(conformance, h2_3_fetches_from_bound_areas_only)
{
	static const struct {
		uint32_t tag;
		uint64_t offset, length;
		int status;
	} cases[] = {
		{ 1, 1000, 1000, 0 },
		{ 1, 1001, 1000, -ERANGE },
		{ 1, 0 - 8ULL, 16, -ERANGE },
		{ 1, 1ULL << 40, 1, -ERANGE },
		{ 0, 0, 1, -ENXIO },
		{ 2, 0, 1, -ENXIO },
		{ 8, 0, 1, -EINVAL },
		{ ~0U, 0, 1, -EINVAL },
	};
	struct ht_pair *p = &self->pair;
	int fd = ht_raw_open();
	struct hamlyn_area_alloc area;
	struct ht_raw_terminus t;
	struct hamlyn_fragment *f;
	struct hamlyn_trb *trb;
	unsigned int i;
	int status;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ht_raw_area_alloc(fd, 4096, &area, NULL));
	ASSERT_EQ(0, ht_raw_terminus_create(fd, 16, 512, &t));
	ASSERT_EQ(0, ht_raw_bind(fd, t.arg.terminus, 1, area.area, 1000, 2000));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		trb = ht_raw_entry(&t);
		*trb = (struct hamlyn_trb) {
			.host = p->ticket.host,
			.slot = p->ticket.slot,
			.key = p->ticket.key,
			.length = cases[i].length,
			.fragments = 1,
			.flags = HAMLYN_TRB_NO_NOTIFY,
		};
		f = (struct hamlyn_fragment *)(trb + 1);
		*f = (struct hamlyn_fragment) {
			.tag = cases[i].tag,
			.offset = cases[i].offset,
			.length = cases[i].length,
		};
		ASSERT_EQ(0, ht_raw_post(&t));
		ASSERT_EQ(0, ht_raw_done(&t, i, &status));
		if (cases[i].status != -EINVAL) {
			EXPECT_EQ(cases[i].status, status) TH_LOG("case %u", i);
		} else {
			EXPECT_NE(0, status) TH_LOG("case %u", i);
		}
	}
	EXPECT_EQ(1000, ht_match_byte(p->data, 1000, 0));
	ht_raw_terminus_unmap(&t);
	close(fd);
}

/* embedded: there is no descriptor to poll */

/* The device's descriptor is readable when a queue of the process has an entry. */
TEST_F(conformance, h3_1_poll)
{
	struct ht_pair *p = &self->pair;
	struct pollfd pfd = { .fd = h_dev_fd(p->rx), .events = POLLIN };
	struct h_msg m = { .ticket = &p->ticket, .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;
	int i;

	ASSERT_GE(pfd.fd, 0);
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(0, poll(&pfd, 1, 0));
		ASSERT_GE(ht_send(p->terminus, &m), 0);
		EXPECT_EQ(1, poll(&pfd, 1, (int)(ht_patience_ns() / HT_MS)));
		EXPECT_EQ(POLLIN, pfd.revents & POLLIN);
		ASSERT_EQ(1, ht_recv(p->nq, &e));
	}
}

/* ---- who is served when ---- */

/*
 * Messages of each of two. One is 128 packets long: more than a doorbell sends by
 * itself, so the engine goes on with it.
 */
enum { QUEUE = 32, PACKETS_OF_A_PIECE = 8 };

struct rival {
	struct h_terminus *terminus;
	struct iovec iov[HAMLYN_MAX_FRAGMENTS];
};

static int rival_open(FIXTURE_DATA(conformance) *self, struct rival *r,
		      uint32_t priority, uint32_t weight)
{
	struct h_terminus_attr attr = {
		.entries = QUEUE, .priority = priority, .weight = weight,
	};
	struct h_slot_attr slot_attr = { 0 };
	size_t piece = PACKETS_OF_A_PIECE * self->pair.query.packet_size;
	struct h_dev *dev = self->pair.tx;
	struct h_area *area;
	struct h_slot *slot;
	int i;

	if (h_area_alloc(dev, piece, &area) ||
	    h_terminus_create(dev, &attr, &r->terminus) ||
	    h_terminus_bind(r->terminus, 0, area, 0, 0) ||
	    h_area_alloc(dev, HAMLYN_MAX_FRAGMENTS * piece, &slot_attr.area) ||
	    h_slot_create(dev, &slot_attr, &slot) ||
	    h_slot_ticket(slot, 0, 0, 0, &self->ticket))
		return -1;
	for (i = 0; i < HAMLYN_MAX_FRAGMENTS; i++) {
		r->iov[i].iov_base = h_area_addr(area);
		r->iov[i].iov_len = piece;
	}
	return 0;
}

static uint32_t completed(const struct rival *r)
{
	return h__load_acquire(&r->terminus->status->completed);
}

/* A full queue. Tickets are values. */
static const char *fill_queue(FIXTURE_DATA(conformance) *self, struct rival *r)
{
	struct h_msg m = { .ticket = &self->ticket, .iov = r->iov,
			   .iovcnt = HAMLYN_MAX_FRAGMENTS,
			   .flags = HAMLYN_TRB_NO_NOTIFY };
	int i;

	for (i = 0; i < QUEUE; i++)
		if (h_send(r->terminus, &m) < 0)
			return "the queue is not empty";
	return NULL;
}

static const char *drain(struct rival *r, uint32_t posted)
{
	return ht_send_wait(r->terminus, posted - 1) == 1 ? NULL :
	       "does not end";
}

/* Only an engine of its own, and a single one, orders what two termini send. */
#define NEED_ONE_ENGINE	"kernel: with engine=poll engines=1"

static bool one_engine(const FIXTURE_DATA(conformance) *self)
{
	return self->pair.query.engine_mode == HAMLYN_ENGINE_POLL &&
	       self->pair.query.engines == 1;
}

#define TRIES	20	/* each may be spoilt by other load */

/* embedded: there is no engine: each sender does the work itself */

/* Termini that send much have about the same bandwidth. */
TEST_F(conformance, h2_3_equal_shares)
{
	struct rival first = { 0 }, second = { 0 };
	uint32_t from = 0, a, b;
	bool shared = false;
	int i;

	if (!one_engine(self))
		SKIP(return, NEED_ONE_ENGINE);
	ASSERT_EQ(0, rival_open(self, &first, 0, 0));
	ASSERT_EQ(0, rival_open(self, &second, 0, 0));
	for (i = 0; i < TRIES && !shared; i++, from += QUEUE) {
		ASSERT_NO(fill_queue(self, &first));
		ASSERT_NO(fill_queue(self, &second));
		do {
			b = completed(&second) - from;
			a = completed(&first) - from;
			shared = a >= 8 && a < QUEUE && b >= a / 3;
		} while (a < QUEUE && !shared);
		ASSERT_NO(drain(&first, from + QUEUE));
		ASSERT_NO(drain(&second, from + QUEUE));
	}
	EXPECT_TRUE(shared);
}

/* A weight gives a terminus that many times the share of the others. */
TEST_F(conformance, beyond_weights)
{
	struct rival light = { 0 }, heavy = { 0 };
	uint32_t from = 0, l0, h0, l1, h1;
	bool weighted = false;
	int i;

	if (!one_engine(self))
		SKIP(return, NEED_ONE_ENGINE);
	ASSERT_EQ(0, rival_open(self, &light, 0, 1));
	ASSERT_EQ(0, rival_open(self, &heavy, 0, 8));
	for (i = 0; i < TRIES && !weighted; i++, from += QUEUE) {
		ASSERT_NO(fill_queue(self, &light));
		ASSERT_NO(fill_queue(self, &heavy));
		l0 = completed(&light) - from;
		h0 = completed(&heavy) - from;
		do {
			h1 = completed(&heavy) - from;
			l1 = completed(&light) - from;
			weighted = h1 - h0 >= 8 && h1 - h0 >= 3 * (l1 - l0);
		} while (h1 < QUEUE && !weighted);
		ASSERT_NO(drain(&light, from + QUEUE));
		ASSERT_NO(drain(&heavy, from + QUEUE));
	}
	EXPECT_TRUE(weighted);
}

/* Priorities are strict: while there are packets of a higher one none leaves. */
TEST_F(conformance, beyond_priorities_are_strict)
{
	struct rival bulk = { 0 }, normal = { 0 };
	uint32_t from = 0, b0, n0, n1, b1, n2;
	int i, seen = 0;

	if (!one_engine(self))
		SKIP(return, NEED_ONE_ENGINE);
	ASSERT_EQ(0, rival_open(self, &bulk, HAMLYN_PRIORITY_BULK, 0));
	ASSERT_EQ(0, rival_open(self, &normal, HAMLYN_PRIORITY_NORMAL, 0));
	for (i = 0; i < TRIES && !seen; i++, from += QUEUE) {
		ASSERT_NO(fill_queue(self, &bulk));
		ASSERT_NO(fill_queue(self, &normal));
		b0 = completed(&bulk) - from;
		n0 = completed(&normal) - from;
		do {
			n1 = completed(&normal) - from;
		} while (n1 < QUEUE && n1 - n0 < 8);
		b1 = completed(&bulk) - from;
		n2 = completed(&normal) - from;
		/* All the time there was something of the higher priority. */
		if (n2 < QUEUE && b0 < QUEUE) {
			seen++;
			/* One may have been all but done. */
			EXPECT_LE(b1 - b0, 1);
		}
		ASSERT_NO(drain(&bulk, from + QUEUE));
		ASSERT_NO(drain(&normal, from + QUEUE));
	}
	EXPECT_NE(0, seen);
}

/* A sender is held up when its work queue is full; nothing is lost by it. */
TEST_F(conformance, h2_8_full_work_queue)
{
	struct rival r = { 0 };
	struct h_msg m = { .ticket = &self->ticket, .iov = r.iov,
			   .iovcnt = HAMLYN_MAX_FRAGMENTS,
			   .flags = HAMLYN_TRB_NO_NOTIFY };
	int64_t handle, last = -1;
	struct hamlyn_stats stats;
	int i, full = 0;

	if (self->pair.query.engine_mode != HAMLYN_ENGINE_POLL)
		SKIP(return, "kernel: with engine=poll");
	ASSERT_EQ(0, rival_open(self, &r, 0, 0));
	for (i = 0; i < 3 * QUEUE && !full; i++) {
		handle = h_send(r.terminus, &m);
		if (handle >= 0) {
			last = handle;
			continue;
		}
		full++;
		EXPECT_EQ(-EAGAIN, handle);
	}
	EXPECT_NE(0, full);
	ASSERT_EQ(1, ht_send_wait(r.terminus, last));
	EXPECT_EQ(last + 1, completed(&r));
	ASSERT_EQ(0, h_terminus_stats(r.terminus, &stats));
	EXPECT_EQ((uint64_t)last + 1, stats.messages);
	EXPECT_GE(h_send(r.terminus, &m), 0);
}

struct worker {
	struct ht_pair *pair;
	struct h_dev *dev;
	uint64_t number;
	int failed;
};

enum { WORKERS = 4, WORDS = 300 };

static void *send_words(void *arg)
{
	struct worker *w = arg;
	struct h_msg m = { .ticket = &w->pair->fence };
	struct h_terminus *t;
	uint64_t i;

	if (h_terminus_create(w->dev, NULL, &t))
		w->failed = 1;
	for (i = 0; i < WORDS && !w->failed; i++) {
		m.word = w->number * WORDS + i;
		w->failed = ht_send_sync(t, &m) != 1;
		/* The queue is short. */
		ht_sleep_ns(HT_MS / 20);
	}
	return NULL;
}

/* Several engines serve a NIC: each message arrives once, in its sender's order. */
TEST_F(conformance, beyond_several_engines)
{
	struct ht_pair *p = &self->pair;
	struct worker workers[WORKERS];
	pthread_t threads[WORKERS];
	uint64_t next[WORKERS] = { 0 };
	struct hamlyn_nq_entry e;
	unsigned int i;

	if (p->query.engines < 2)
		SKIP(return, "kernel: with engines=2");
	for (i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker) { .pair = p, .dev = p->tx,
					       .number = i };
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, send_words,
					    &workers[i]));
	}
	for (i = 0; i < WORKERS * WORDS; i++) {
		ASSERT_EQ(1, ht_recv(p->nq, &e));
		ASSERT_GT(WORKERS, e.data / WORDS);
		ASSERT_EQ(next[e.data / WORDS]++, e.data % WORDS);
	}
	for (i = 0; i < WORKERS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, workers[i].failed);
	}
	EXPECT_EQ(0, ht_pair_fence(p));
}

/* ---- users ---- */

static int guess(struct h_terminus *t, const struct h_ticket *k, int count)
{
	struct h_msg m = { .ticket = k, .data = "x", .length = 1 };

	while (count--)
		if (ht_send_sync(t, &m) != 1)
			return -1;
	return 0;
}

/* In a process of another user, which may have so many a second, and as many at once. */
static int guess_anew(const struct h_ticket *k, int most)
{
	struct h_terminus *t;
	struct h_dev *dev;
	int64_t took;

	if (cf_be_somebody_else(false) || ht_open(&dev) ||
	    h_terminus_create(dev, NULL, &t))
		return 1;
	took = ht_now_ns();
	if (guess(t, k, most))
		return 2;
	h_close(dev);
	/* The bucket may still be empty, and is never fuller than time has made it. */
	if (ht_open(&dev) || h_terminus_create(dev, NULL, &t) ||
	    guess(t, k, most / 2))
		return 3;
	took = ht_now_ns() - took;
	h_close(dev);
	return took >= HT_SEC / 2 - 2 * HT_SEC / most ? 0 : 4;
}

static int most_guesses(void)
{
	FILE *f = fopen("/sys/module/hamlyn/parameters/guesses", "re");
	int n = 10000;

	if (f) {
		if (fscanf(f, "%d", &n) != 1)
			n = 10000;
		fclose(f);
	}
	return n;
}

/* embedded: it stops mistakes, not malice: each process is held back for itself */

/* Who guesses gains nothing by a new terminus: all of a user have one bucket. */
TEST_F(conformance, beyond_new_termini_inherit_guesses)
{
	struct h_ticket k = self->pair.ticket;
	pid_t pid;

	if (!most_guesses())
		SKIP(return, "kernel: yes, but not with guesses=0");
	k.key ^= 8;
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(guess_anew(&k, most_guesses()));
	EXPECT_EQ(0, ht_reap(pid));
	EXPECT_TRUE(ht_pair_untouched(&self->pair));
}

TEST_HARNESS_MAIN
