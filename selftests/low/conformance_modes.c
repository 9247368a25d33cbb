// SPDX-License-Identifier: GPL-2.0-only
/*
 * Conformance, H 2.7 to 3.2: special modes, flow control, the OS interface, the
 * low level of the library.
 */
#include "kselftest_harness.h"
#include "conformance.h"

#include <pthread.h>
#include <sys/mman.h>

#define ENTRIES	4	/* metadata entries of the pair, one a sender */

FIXTURE(conformance) {
	struct ht_pair pair;
	size_t packet;
	size_t part;			/* of the message area, one sender's */
	struct h_slot *slot;		/* paranoid, on the pair's areas */
	struct h_ticket tickets[ENTRIES];
};

FIXTURE_SETUP(conformance)
{
	struct ht_pair_attr attr = { .meta = ENTRIES, .nq_entries = 8 };

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->packet = self->pair.query.packet_size;
	self->part = self->pair.length / ENTRIES;
	ht_fill(self->pair.send, self->pair.send_length, 1);
}

FIXTURE_TEARDOWN(conformance)
{
	ht_pair_close(&self->pair);
}

/* A slot of a paranoid mode; each sender has an entry and a part of the area. */
static int make_slot(FIXTURE_DATA(conformance) *self, uint32_t mode)
{
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = {
		.area = p->area,
		.base = p->base,
		.length = p->length,
		.meta_area = p->meta_area,
		.meta_base = HT_META_GUARDS * sizeof(struct hamlyn_metadata),
		.meta_count = ENTRIES,
		.nq = p->nq,
		.mode = mode,
	};
	uint32_t i;
	int err;

	err = h_slot_create(p->rx, &attr, &self->slot);
	for (i = 0; i < ENTRIES && !err; i++)
		err = h_slot_entry_grant(self->slot, i, i * self->part,
					 self->part, &self->tickets[i]);
	return err;
}

/* Nothing of it arrives in the area, whatever the entries hold. */
static const char *vanishes(struct ht_pair *p, const struct h_msg *m)
{
	memset(p->data, HT_GUARD, p->length);
	if (ht_send_sync(p->terminus, m) != 1)
		return "the sender was told";
	if (ht_pair_fence(p))
		return "notified";
	return ht_match_byte(p->data, p->length, HT_GUARD) == p->length ?
	       NULL : "something landed";
}

/* ---- 2.7 special modes of operation ---- */

/* Paranoid: the metadata entry's key supersedes the slot's. */
TEST_F(conformance, h2_7_secondary_key)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket k;
	struct h_msg m = { .ticket = &k, .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;

	ASSERT_EQ(0, make_slot(self, HAMLYN_SLOT_PARANOID));
	EXPECT_NE(self->tickets[0].key, self->tickets[1].key);
	k = self->tickets[0];
	EXPECT_NO(cf_lands(p, &m, &e));
	k.key = self->tickets[1].key;
	EXPECT_NO(vanishes(p, &m));
	k.key = 0;
	EXPECT_NO(vanishes(p, &m));
	k.key = self->tickets[0].key ^ 1ULL << 63;
	EXPECT_NO(vanishes(p, &m));
	/* Without an entry there is no key. */
	k = self->tickets[0];
	k.meta_index = HAMLYN_META_FAST;
	EXPECT_NO(vanishes(p, &m));
}

/* Paranoid: the primary base and bound key is of no use without an entry's. */
TEST_F(conformance, h2_7_slot_key_is_superseded)
{
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = {
		.area = p->area, .meta_area = p->meta_area, .meta_count = 1,
		.mode = HAMLYN_SLOT_PARANOID, .nq = p->nq,
		.flags = HAMLYN_SLOT_KEY_GIVEN, .key = 0x5107,
	};
	struct h_ticket k;
	struct h_msg m = { .ticket = &k, .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;

	ASSERT_EQ(0, h_slot_create(p->rx, &attr, &self->slot));
	ASSERT_EQ(0, h_slot_entry_grant(self->slot, 0, 0, 0, &k));
	EXPECT_NO(cf_lands(p, &m, &e));
	k.key = 0x5107;
	EXPECT_NO(vanishes(p, &m));
}

/* Paranoid: senders are confined to their part, by low and high limit. */
TEST_F(conformance, h2_7_secondary_limits)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket k;
	struct h_msg m = { .ticket = &k, .data = p->send, .length = 8 };
	struct hamlyn_nq_entry e;
	size_t low, high;

	ASSERT_EQ(0, make_slot(self, HAMLYN_SLOT_PARANOID));
	low = self->part;
	high = 2 * self->part;
	k = self->tickets[1];
	k.base = 0;
	k.length = ~0ULL;
	m.offset = low;
	EXPECT_NO(cf_lands(p, &m, &e));
	m.offset = high - 8;
	EXPECT_NO(cf_lands(p, &m, &e));
	m.offset = low - 1;
	EXPECT_NO(vanishes(p, &m));
	m.offset = high - 7;
	EXPECT_NO(vanishes(p, &m));
	m.offset = 0;
	EXPECT_NO(vanishes(p, &m));
}

/* Paranoid: all tests must pass; the secondary limits do not widen the primary. */
TEST_F(conformance, h2_7_primary_bounds_hold_as_well)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket k;
	struct h_msg m = { .ticket = &k, .data = p->send, .length = 8 };
	struct hamlyn_metadata *entry;
	struct hamlyn_nq_entry e;

	ASSERT_EQ(0, make_slot(self, HAMLYN_SLOT_PARANOID));
	entry = h_slot_entry(self->slot, 0);
	h__write_once(&entry->low, 0);
	h__write_once(&entry->high, ~0ULL);
	k = self->tickets[0];
	k.length = ~0ULL;
	m.offset = p->length - 7;
	EXPECT_NO(vanishes(p, &m));
	m.offset = 0 - 16ULL;
	EXPECT_NO(vanishes(p, &m));
	EXPECT_TRUE(ht_pair_guarded(p));
	m.offset = p->length - 8;
	EXPECT_NO(cf_lands(p, &m, &e));
}

/* Applications change their entries' keys and limits without the OS. */
TEST_F(conformance, h2_7_application_changes_key_and_limits)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket k;
	struct h_msg m = { .ticket = &k, .data = "x", .length = 1 };
	struct hamlyn_metadata *entry;
	struct hamlyn_nq_entry e;
	uint64_t i;

	ASSERT_EQ(0, make_slot(self, HAMLYN_SLOT_PARANOID));
	k = self->tickets[0];
	k.base = 0;
	k.length = p->length;
	entry = h_slot_entry(self->slot, 0);
	for (i = 1; i <= 10; i++) {
		/* By nothing but stores. */
		h__write_once(&entry->key, i * 0x0101010101010101ULL);
		h__write_once(&entry->low, i * 100);
		h__write_once(&entry->high, i * 100 + 1);
		k.key = i * 0x0101010101010101ULL;
		m.offset = i * 100;
		EXPECT_NO(cf_lands(p, &m, &e));
		m.offset = i * 100 + 1;
		EXPECT_NO(vanishes(p, &m));
	}
	m.offset = 1000;
	k.key = 9 * 0x0101010101010101ULL;
	EXPECT_NO(vanishes(p, &m));
}

/* One shot: one message, then none until the application allows it. */
TEST_F(conformance, h2_7_one_message_an_arming)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->tickets[2], .data = p->send };
	struct hamlyn_nq_entry e;
	int i;

	ASSERT_EQ(0, make_slot(self, HAMLYN_SLOT_PARANOID_ONE_SHOT));
	for (i = 0; i < 10; i++) {
		m.length = i % 2 ? 5 : self->part;
		EXPECT_NO(cf_lands(p, &m, &e));
		EXPECT_EQ(2, e.index);
		EXPECT_NO(vanishes(p, &m));
		EXPECT_NO(vanishes(p, &m));
		ASSERT_EQ(0, h_slot_entry_arm(self->slot, 2));
	}
}

struct flood {
	struct h_terminus *terminus;
	struct h_msg msg;
	uint32_t stop;
};

static void *flood(void *arg)
{
	struct flood *f = arg;

	while (!h__load_acquire(&f->stop))
		if (ht_send_sync(f->terminus, &f->msg) != 1)
			break;
	return NULL;
}

/* One shot: data are not overwritten after arrival, so they need not be copied. */
TEST_F(conformance, h2_7_one_shot_data_stay)
{
	struct ht_pair *p = &self->pair;
	struct flood f[2] = { 0 };
	struct hamlyn_nq_entry e;
	pthread_t threads[2];
	int i;

	/* Until the last one has left the entry both write there, as they may. */
	HT_NOT_UNDER_TSAN("a data race of the senders is what this is about");
	/* Two senders of other data, who never stop, for one entry. */
	ASSERT_EQ(0, make_slot(self, HAMLYN_SLOT_PARANOID_ONE_SHOT));
	for (i = 0; i < 2; i++) {
		f[i].msg = (struct h_msg) {
			.ticket = &self->tickets[0],
			.data = p->send + (size_t)i * self->part,
			.length = self->part,
		};
		memset(p->send + (size_t)i * self->part, i + 1, self->part);
		ASSERT_EQ(0, h_terminus_create(p->tx, NULL, &f[i].terminus));
		ASSERT_EQ(0, h_terminus_bind(f[i].terminus, 0, p->send_area, 0,
					     0));
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, flood, &f[i]));
	}
	for (i = 0; i < 50; i++) {
		unsigned char *copy = p->send + 2 * self->part;

		ASSERT_EQ(1, ht_recv(p->nq, &e));
		memcpy(copy, p->data, self->part);
		ht_sleep_ns(HT_MS / 2);
		EXPECT_EQ(0, memcmp(copy, p->data, self->part));
		EXPECT_EQ(0, h_recv(p->nq, &e));
		ASSERT_EQ(0, h_slot_entry_arm(self->slot, 0));
	}
	for (i = 0; i < 2; i++)
		h__store_release(&f[i].stop, 1);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* One shot: a queue of more entries than there are metadata entries is safe. */
TEST_F(conformance, h2_7_one_shot_cannot_overrun_the_queue)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;
	int i, n = 0, ret;

	ASSERT_EQ(0, make_slot(self, HAMLYN_SLOT_PARANOID_ONE_SHOT));
	for (i = 0; i < 200; i++) {
		m.ticket = &self->tickets[i % ENTRIES];
		ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	}
	while ((ret = h_recv(p->nq, &e)) == 1)
		n++;
	EXPECT_EQ(0, ret);
	EXPECT_EQ(ENTRIES, n);
	EXPECT_EQ(0, h_nq_lost(p->nq));
}

/* Every sender has a key of his own: to revoke one does not affect the others. */
TEST_F(conformance, h2_7_revoking_one_sender)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .data = "x", .length = 1 };
	struct h_ticket again;
	struct hamlyn_nq_entry e;
	int i;

	ASSERT_EQ(0, make_slot(self, HAMLYN_SLOT_PARANOID));
	ASSERT_EQ(0, h_slot_entry_revoke(self->slot, 1));
	for (i = 0; i < ENTRIES; i++) {
		m.ticket = &self->tickets[i];
		if (i == 1) {
			EXPECT_NO(vanishes(p, &m));
		} else {
			EXPECT_NO(cf_lands(p, &m, &e));
		}
	}
	/* Its place is given to another at once. */
	ASSERT_EQ(0, h_slot_entry_grant(self->slot, 1, self->part, self->part,
					&again));
	m.ticket = &again;
	EXPECT_NO(cf_lands(p, &m, &e));
	m.ticket = &self->tickets[1];
	EXPECT_NO(vanishes(p, &m));
}

/* Fast mode: one word of metadata in the queue entry, for a single packet. */
TEST_F(conformance, h2_7_fast_mode)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket k = p->ticket;
	struct h_msg m = { .ticket = &k, .data = p->send };
	struct hamlyn_nq_entry e;
	uint64_t random = ht_seed();
	size_t n;

	k.meta_index = HAMLYN_META_FAST;
	ASSERT_EQ(0xffffffff, HAMLYN_META_FAST);
	for (n = 0; n <= self->packet; n += self->packet / 4) {
		ht_pair_clear(p);
		m.length = n;
		m.word = ht_random(&random);
		ASSERT_NO(cf_lands(p, &m, &e));
		EXPECT_EQ(m.word, e.data);
		EXPECT_EQ(HAMLYN_META_FAST, e.index);
		EXPECT_TRUE(e.flags & HAMLYN_NQE_FAST);
		EXPECT_EQ(n, e.length);
		EXPECT_EQ(n, ht_match(p->data, n, 1));
		/* No metadata entry is touched. */
		memset(p->data, HT_GUARD, n);
		EXPECT_TRUE(ht_pair_untouched(p));
	}
	m.length = self->packet + 1;
	EXPECT_EQ(-EMSGSIZE, ht_send(p->terminus, &m));
	m = (struct h_msg) { .ticket = &k, .meta = "x", .meta_length = 1 };
	EXPECT_EQ(-EINVAL, ht_send(p->terminus, &m));
}

/* ---- 2.8 flow control and deadlock prevention ---- */

static int set_state(struct h_dev *dev, uint32_t state)
{
	struct hamlyn_nic_set set = { .flags = HAMLYN_NIC_SET_STATE,
				      .state = state };

	return h_nic_set(dev, &set);
}

static uint32_t state_of(struct h_dev *dev)
{
	struct hamlyn_query q;

	return h_query(dev, &q) ? ~0U : q.state;
}

static int set_watchdog(struct h_dev *dev, uint32_t ms)
{
	struct hamlyn_nic_set set = { .flags = HAMLYN_NIC_SET_WATCHDOG,
				      .watchdog_ms = ms };

	return h_nic_set(dev, &set);
}

/* No fence can tell while nothing arrives. */
static const char *discarded(struct ht_pair *p, const struct h_msg *m)
{
	struct hamlyn_nq_entry e;

	if (ht_send_sync(p->terminus, m) != 1)
		return "the sender was told";
	if (h_recv(p->nq, &e))
		return "notified";
	return ht_pair_untouched(p) ? NULL : "something landed";
}

#define OTHER_HOST	"tcp: the other host's NIC is up, and is not told what was discarded"

/* A NIC that is down accepts packets and discards them; senders see success. */
TEST_F(conformance, h2_8_down_discards)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->ticket, .data = p->send,
			   .length = 2 * self->packet };
	struct hamlyn_stats before, after;
	struct hamlyn_nq_entry e;
	int i;

	if (ht_is_remote())
		SKIP(return, OTHER_HOST);
	ASSERT_EQ(0, h_dev_stats(p->rx, &before));
	ASSERT_EQ(0, set_state(p->rx, HAMLYN_NIC_DOWN));
	EXPECT_EQ(HAMLYN_NIC_DOWN, state_of(p->tx));
	for (i = 0; i < 100; i++)
		EXPECT_NO(discarded(p, &m));
	ASSERT_EQ(0, set_state(p->tx, HAMLYN_NIC_UP));
	EXPECT_EQ(HAMLYN_NIC_UP, state_of(p->rx));
	/* Nothing comes afterwards. */
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_TRUE(ht_pair_untouched(p));
	ASSERT_EQ(0, h_dev_stats(p->rx, &after));
	EXPECT_EQ(200, after.rejects[HAMLYN_REJECT_DOWN] -
		       before.rejects[HAMLYN_REJECT_DOWN]);
	EXPECT_NO(cf_lands(p, &m, &e));
	EXPECT_EQ(m.length, ht_match(p->data, m.length, 1));
}

/* So does one whose host does not feed its timer; fed again it works again. */
TEST_F(conformance, h2_8_unfed_discards)
{
	struct hamlyn_nic_set feed = { .flags = HAMLYN_NIC_FEED };
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->ticket, .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;
	struct ht_poll poll;
	int i;

	if (ht_is_remote())
		SKIP(return, OTHER_HOST);
	ASSERT_EQ(0, set_watchdog(p->rx, 50));
	ht_poll_begin(&poll);
	while (state_of(p->rx) != HAMLYN_NIC_UNFED) {
		ASSERT_TRUE(ht_poll_more(&poll));
	}
	for (i = 0; i < 20; i++)
		EXPECT_NO(discarded(p, &m));
	/* Food lasts 50 ms: on a slow machine it takes some. */
	ht_poll_begin(&poll);
	do {
		ASSERT_TRUE(ht_poll_more(&poll));
		ASSERT_EQ(0, h_nic_set(p->rx, &feed));
		ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	} while (h_recv(p->nq, &e) != 1);
	EXPECT_EQ('x', p->data[0]);
	/* A watchdog that is fed in time does not bite. */
	ASSERT_EQ(0, set_watchdog(p->rx, 60 * 60 * 1000));
	EXPECT_EQ(HAMLYN_NIC_UP, state_of(p->rx));
	EXPECT_NO(cf_lands(p, &m, &e));
	ASSERT_EQ(0, set_watchdog(p->rx, 0));
	EXPECT_EQ(HAMLYN_NIC_UP, state_of(p->rx));
}

/* Two that flood each other with full queues both finish, and nothing is lost. */
TEST_F(conformance, h2_8_floods_do_not_deadlock)
{
	int sockets[2];
	pid_t pids[2];
	unsigned int i;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	for (i = 0; i < 2; i++) {
		pids[i] = ht_fork();
		ASSERT_GE(pids[i], 0);
		if (!pids[i])
			_exit(cf_play(sockets[i], ht_device(), i));
	}
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, ht_reap(pids[i]));
}

/* ---- 3.1 OS interface ---- */

/* The OS makes, and takes back, slots, keys, termini and wired memory. */
TEST_F(conformance, h3_1_objects_are_made_and_taken_back)
{
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = { 0 };
	struct h_terminus *t;
	struct h_slot *slot;
	struct h_area *area;
	struct h_nq *nq;
	int i;

	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, h_area_alloc(p->rx, 1 << 20, &area));
		ASSERT_EQ(0, h_nq_create(p->rx, 1024, &nq));
		attr.area = area;
		attr.nq = nq;
		ASSERT_EQ(0, h_slot_create(p->rx, &attr, &slot));
		ASSERT_EQ(0, h_terminus_create(p->rx, NULL, &t));
		ASSERT_EQ(0, h_terminus_bind(t, 3, area, 0, 0));
		/* Not while another needs them. */
		ASSERT_EQ(-EBUSY, h_area_remove(area));
		ASSERT_EQ(-EBUSY, h_nq_destroy(nq));
		ASSERT_EQ(0, h_terminus_destroy(t));
		ASSERT_EQ(-EBUSY, h_area_remove(area));
		ASSERT_EQ(0, h_slot_destroy(slot));
		ASSERT_EQ(0, h_nq_destroy(nq));
		ASSERT_EQ(0, h_area_remove(area));
	}
}

/* ---- 3.2 low-level library procedures ---- */

/* h_send_msg takes a ticket, data and metadata; h_recv tells if one is there. */
TEST_F(conformance, h3_2_send_msg_and_recv)
{
	struct ht_pair *p = &self->pair;
	const size_t lengths[] = { 0, 5, 448, 449, self->packet, p->length };
	struct hamlyn_nq_entry e;
	int64_t handle;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		EXPECT_EQ(0, h_recv(p->nq, &e));
		handle = h_send_msg(p->terminus, &p->ticket, p->send,
				    lengths[i], "about it", 8);
		ASSERT_GE(handle, 0);
		ASSERT_EQ(1, ht_recv(p->nq, &e));
		EXPECT_EQ(0, memcmp(p->meta->user, "about it", 8));
		EXPECT_EQ(lengths[i], ht_match(p->data, lengths[i], 1));
		ASSERT_EQ(1, ht_send_wait(p->terminus, handle));
		EXPECT_EQ(1, h_send_done(p->terminus, handle));
	}
	EXPECT_EQ(-ERANGE, h_send_msg(p->terminus, &p->ticket, p->send,
				      p->length + 1, NULL, 0));
}

/* h_recv_block waits until a message arrives or the time has expired. */
TEST_F(conformance, h3_2_recv_block)
{
	static const int64_t timeouts[] = { 0, HT_MS, 20 * HT_MS };
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->fence };
	struct hamlyn_nq_entry e;
	unsigned int i;
	int64_t took;

	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		took = ht_now_ns();
		EXPECT_EQ(timeouts[i] ? -ETIMEDOUT : -EAGAIN,
			  h_recv_block(p->nq, &e, timeouts[i]));
		took = ht_now_ns() - took;
		EXPECT_GE(took, timeouts[i]);
		EXPECT_LT(took, timeouts[i] + ht_patience_ns());
		m.word = i;
		ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
		ASSERT_EQ(0, h_recv_block(p->nq, &e, timeouts[i]));
		EXPECT_EQ(i, e.data);
	}
	ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	EXPECT_EQ(0, h_recv_block(p->nq, &e, -1));
}

/* What the other process does: answer by the ticket that the request carries. */
static int reply(const struct h_ticket *request)
{
	unsigned char bytes[H_TICKET_BYTES];
	struct ht_pair_attr attr = { .meta = 1 };
	struct h_ticket to;
	struct hamlyn_nq_entry e;
	struct ht_pair p;
	int64_t handle;

	if (ht_pair_open(&p, &attr))
		return 1;
	h_ticket_export(&p.ticket, bytes);
	/* "Here I am", with a ticket in the metadata. */
	if (h_send_msg(p.terminus, request, "hello", 5, bytes,
		       sizeof(bytes)) < 0)
		return 2;
	if (ht_recv(p.nq, &e) != 1 || memcmp(p.data, "answer", 6))
		return 3;
	if (h_ticket_import(p.meta->user, p.meta->meta_length, &to))
		return 4;
	handle = h_send_msg(p.terminus, &to, "thanks", 6, NULL, 0);
	if (handle < 0 || ht_send_wait(p.terminus, handle) != 1)
		return 5;
	ht_pair_close(&p);
	return 0;
}

/* Tickets are location independent: exported in a message, used to reply. */
TEST_F(conformance, h3_2_tickets_travel)
{
	unsigned char bytes[H_TICKET_BYTES];
	struct ht_pair *p = &self->pair;
	struct hamlyn_nq_entry e;
	struct h_ticket back, again;
	pid_t pid;

	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(reply(&p->ticket));
	ASSERT_EQ(1, ht_recv(p->nq, &e));
	EXPECT_EQ(0, memcmp(p->data, "hello", 5));
	ASSERT_EQ(0, h_ticket_import(p->meta->user, p->meta->meta_length,
				     &back));
	EXPECT_LE(H_TICKET_BYTES, HAMLYN_MAX_METADATA);
	ASSERT_EQ(0, h_slot_ticket(p->slot, 100, 6, 2, &again));
	h_ticket_export(&again, bytes);
	ASSERT_GE(h_send_msg(p->terminus, &back, "answer", 6, bytes,
			     sizeof(bytes)), 0);
	ASSERT_EQ(1, ht_recv(p->nq, &e));
	EXPECT_EQ(2, e.index);
	EXPECT_EQ(0, memcmp(p->data + 100, "thanks", 6));
	EXPECT_EQ(0, ht_reap(pid));
}

/* A ticket holds destination, slot, metadata index, key, base and bound, flags. */
TEST_F(conformance, h3_2_ticket_members)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .data = "12345", .length = 5 };
	struct hamlyn_nq_entry e;
	struct h_ticket k;

	ASSERT_EQ(0, h_slot_ticket(p->slot, 200, 10, 3, &k));
	EXPECT_EQ(p->query.host, k.host);
	EXPECT_EQ(h_slot_number(p->slot), k.slot);
	EXPECT_EQ(3, k.meta_index);
	EXPECT_EQ(0, k.flags);
	m.ticket = &k;
	m.offset = 5;
	ASSERT_NO(cf_lands(p, &m, &e));
	EXPECT_EQ(3, e.index);
	EXPECT_EQ(0, memcmp(p->data + 205, "12345", 5));
	/* The library keeps messages inside. */
	m.offset = 6;
	EXPECT_EQ(-ERANGE, ht_send(p->terminus, &m));
	EXPECT_EQ(-ERANGE, h_slot_ticket(p->slot, p->length - 1, 2, 0, &k));
	EXPECT_EQ(-ERANGE, h_slot_ticket(p->slot, 0, 0, ENTRIES, &k));
}

enum { THREADS = 3, MESSAGES = 500 };

struct worker {
	struct ht_pair *pair;
	uint64_t number;
	uint64_t messages;	/* MESSAGES; fewer between hosts, where each waits for its round */
	unsigned char *seen;
	int failed;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct h_msg m = { .ticket = &w->pair->fence };
	struct hamlyn_nq_entry e;
	struct ht_poll poll;
	uint64_t i;

	/* Each sends one and takes one, its own or another's. */
	for (i = 0; i < w->messages && !w->failed; i++) {
		m.word = w->number * MESSAGES + i;
		if (ht_send(w->pair->terminus, &m) < 0)
			w->failed = 1;
		ht_poll_begin(&poll);
		while (h_recv(w->pair->nq, &e) != 1)
			if (!ht_poll_more(&poll)) {
				w->failed = 2;
				return NULL;
			}
		if (e.data >= THREADS * MESSAGES ||
		    __atomic_exchange_n(&w->seen[e.data], 1, __ATOMIC_RELAXED))
			w->failed = 3;
	}
	return NULL;
}

/* The lower level is thread-safe: threads share a terminus and a queue. */
TEST_F(conformance, h3_2_thread_safe)
{
	unsigned char seen[THREADS * MESSAGES] = { 0 };
	struct worker workers[THREADS];
	uint64_t messages = ht_is_remote() ? MESSAGES / 10 : MESSAGES;
	pthread_t threads[THREADS];
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker) {
			.pair = &self->pair, .number = i, .seen = seen, .messages = messages,
		};
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, work,
					    &workers[i]));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, workers[i].failed);
	}
	for (i = 0; i < THREADS; i++)
		EXPECT_EQ(messages, ht_match_byte(seen + MESSAGES * i, messages, 1));
	EXPECT_EQ(0, h_nq_lost(self->pair.nq));
}

TEST_HARNESS_MAIN
