// SPDX-License-Identifier: GPL-2.0-only
/* Conformance, H 2.2 to 2.4: slots, sending termini, the metadata area. */
#include "kselftest_harness.h"
#include "conformance.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define ENTRIES	8	/* metadata entries of the pair */

FIXTURE(conformance) {
	struct ht_pair pair;
	struct h_ticket ticket;		/* of the pair; to be changed */
	size_t packet;
};

FIXTURE_SETUP(conformance)
{
	struct ht_pair_attr attr = { .meta = ENTRIES };

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->packet = self->pair.query.packet_size;
	self->ticket = self->pair.ticket;
	ht_fill(self->pair.send, self->pair.send_length, 1);
}

FIXTURE_TEARDOWN(conformance)
{
	ht_pair_close(&self->pair);
}

/* ---- 2.2 slots: naming and protecting message areas ---- */

/* A message area stays in memory, where it is, as long as it exists. */
TEST_F(conformance, h2_2_areas_are_wired)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->ticket, .data = p->send,
			   .length = p->length };
	struct hamlyn_nq_entry e;
	int i;

	for (i = 0; i < 5; i++) {
		ht_fill(p->data, p->length, 7);
		madvise(h_area_addr(p->area), h_area_length(p->area),
			MADV_PAGEOUT);
		EXPECT_EQ(p->length, ht_match(p->data, p->length, 7));
		madvise(h_area_addr(p->area), h_area_length(p->area),
			MADV_PAGEOUT);
		ASSERT_NO(cf_lands(p, &m, &e));
		EXPECT_EQ(p->length, ht_match(p->data, p->length, 1));
	}
	EXPECT_EQ(-EBUSY, h_area_remove(p->area));
}

/* Several slots may refer to the same message area, each with its own key. */
TEST_F(conformance, h2_2_several_slots_share_an_area)
{
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = { .area = p->area, .base = p->base + 100,
				    .length = 1000, .nq = p->nq };
	struct h_msg m = { .ticket = &p->ticket, .data = "first", .length = 5,
			   .offset = 100 };
	struct hamlyn_nq_entry e;
	struct h_slot *other;
	struct h_ticket k;

	ASSERT_EQ(0, h_slot_create(p->rx, &attr, &other));
	ASSERT_EQ(0, h_slot_ticket(other, 0, 0, 0, &k));
	EXPECT_NE(p->ticket.key, k.key);
	ASSERT_NO(cf_lands(p, &m, &e));
	EXPECT_EQ(h_slot_number(p->slot), e.slot);
	EXPECT_EQ(0, memcmp(p->data + 100, "first", 5));
	m = (struct h_msg) { .ticket = &k, .data = "other", .length = 5 };
	ASSERT_NO(cf_lands(p, &m, &e));
	EXPECT_EQ(h_slot_number(other), e.slot);
	EXPECT_EQ(0, memcmp(p->data + 100, "other", 5));
	/* One key does not open the other. */
	ht_pair_clear(p);
	k.key = p->ticket.key;
	EXPECT_NO(cf_vanishes(p, &m));
}

/* A destination is a slot and an offset, which counts from the slot's base. */
TEST_F(conformance, h2_2_offsets_count_from_the_base)
{
	struct ht_pair *p = &self->pair;
	const size_t offsets[] = { 0, 1, 7, 4096, self->packet - 1,
				   p->length - 3 };
	struct h_msg m = { .ticket = &p->ticket, .data = p->send, .length = 3 };
	struct hamlyn_nq_entry e;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		ht_pair_clear(p);
		m.offset = offsets[i];
		ASSERT_NO(cf_lands(p, &m, &e));
		EXPECT_EQ(3, ht_match(p->data + m.offset, 3, 1));
		memset(p->data + m.offset, HT_GUARD, 3);
		EXPECT_TRUE(ht_pair_untouched(p)) {
			TH_LOG("offset %zu", offsets[i]);
		}
	}
}

/* A packet that does not fit into the message area is discarded. */
TEST_F(conformance, h2_2_bounds_hold_to_the_byte)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket, .data = p->send,
			   .length = 8 };
	const uint64_t wrong[] = { p->length - 7, p->length, p->length + 1,
				   1ULL << 32, 0 - 9ULL, 0 - 192ULL };
	struct hamlyn_nq_entry e;
	unsigned int i;

	/* Forged: the library keeps honest senders inside. */
	self->ticket.length = ~0ULL;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		m.offset = wrong[i];
		EXPECT_NO(cf_vanishes(p, &m)) TH_LOG("case %u", i);
	}
	m.offset = p->length - 8;
	ASSERT_NO(cf_lands(p, &m, &e));
	EXPECT_EQ(8, ht_match(p->data + p->length - 8, 8, 1));
	EXPECT_TRUE(ht_pair_guarded(p));
}

/* Writing is allowed only if the packet's key is the slot's, all 64 bits of it. */
TEST_F(conformance, h2_2_keys_must_match)
{
	static const uint64_t flips[] = { 1, 1ULL << 31, 1ULL << 32,
					  1ULL << 63, ~0ULL };
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket, .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flips); i++) {
		self->ticket.key = p->ticket.key ^ flips[i];
		EXPECT_NO(cf_vanishes(p, &m)) TH_LOG("case %u", i);
	}
	self->ticket.key = 0;
	EXPECT_NO(cf_vanishes(p, &m));
	self->ticket.key = p->ticket.key;
	EXPECT_NO(cf_lands(p, &m, &e));
}

/* Keys are large and sparsely allocated: no two alike, every bit in use. */
TEST_F(conformance, h2_2_keys_are_sparse)
{
	enum { KEYS = 100 };
	struct h_slot_attr attr = { .area = self->pair.area };
	uint64_t keys[KEYS], all = ~0ULL, any = 0;
	struct h_slot *slot;
	struct h_ticket k;
	int i, j;

	for (i = 0; i < KEYS; i++) {
		ASSERT_EQ(0, h_slot_create(self->pair.rx, &attr, &slot));
		ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &k));
		ASSERT_EQ(0, h_slot_destroy(slot));
		keys[i] = k.key;
		all &= k.key;
		any |= k.key;
		for (j = 0; j < i; j++) {
			EXPECT_NE(keys[j], keys[i]);
		}
	}
	EXPECT_EQ(0, all);
	EXPECT_EQ(~0ULL, any);
}

/* Packets are self-describing: each is judged and placed by itself. */
TEST_F(conformance, h2_2_packets_are_self_describing)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket, .data = p->send,
			   .length = self->packet + 8 };

	/* The first packet fits, the second does not. */
	self->ticket.length = ~0ULL;
	m.offset = p->length - self->packet - 4;
	ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_EQ(self->packet, ht_match(p->data + m.offset, self->packet, 1));
	EXPECT_EQ(1, p->meta[0].accumulator);
	memset(p->data + m.offset, HT_GUARD, self->packet);
	p->meta[0].accumulator = 0;
	EXPECT_TRUE(ht_pair_untouched(p));
}

/* What is rejected is counted at the slot; its sender learns nothing. */
TEST_F(conformance, h2_2_rejects_are_silent)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket, .data = "x", .length = 1 };
	struct ht_rejects before, after;
	struct hamlyn_stats stats;

	ASSERT_EQ(0, ht_pair_rejects(p, &before));
	self->ticket.key++;
	EXPECT_NO(cf_vanishes(p, &m));
	self->ticket.key--;
	self->ticket.meta_index = ENTRIES;
	EXPECT_NO(cf_vanishes(p, &m));
	ASSERT_EQ(0, ht_pair_rejects(p, &after));
	EXPECT_EQ(before.slot[HAMLYN_REJECT_KEY] + 1,
		  after.slot[HAMLYN_REJECT_KEY]);
	EXPECT_EQ(before.slot[HAMLYN_REJECT_METADATA] + 1,
		  after.slot[HAMLYN_REJECT_METADATA]);
	ASSERT_EQ(0, h_terminus_stats(p->terminus, &stats));
	EXPECT_EQ(0, stats.failed);
	EXPECT_EQ(sizeof(stats.rejects), ht_match_byte(stats.rejects,
						       sizeof(stats.rejects), 0));
}

/* A message carries up to 60 bytes of metadata, put apart from its data. */
TEST_F(conformance, h2_2_metadata_up_to_60_bytes)
{
	struct ht_pair *p = &self->pair;
	unsigned char meta[HAMLYN_MAX_METADATA + 1];
	struct h_msg m = { .ticket = &p->ticket, .data = "data", .length = 4,
			   .meta = meta };
	struct hamlyn_nq_entry e;
	size_t n;

	ASSERT_EQ(60, HAMLYN_MAX_METADATA);
	for (n = 1; n <= HAMLYN_MAX_METADATA; n++) {
		ht_pair_clear(p);
		ht_fill(meta, n, n);
		m.meta_length = n;
		ASSERT_NO(cf_lands(p, &m, &e));
		EXPECT_EQ(n, p->meta->meta_length);
		EXPECT_EQ(n, ht_match(p->meta->user, n, n));
		EXPECT_EQ(60 - n, ht_match_byte(p->meta->user + n, 60 - n, 0));
		EXPECT_EQ(0, memcmp(p->data, "data", 4));
	}
	m.meta_length = n;
	EXPECT_EQ(-EMSGSIZE, ht_send(p->terminus, &m));
}

/* ---- 2.3 sending termini ---- */

/* The work queue is first in, first out. */
TEST_F(conformance, h2_3_work_queue_is_fifo)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket };
	struct hamlyn_nq_entry e;
	uint64_t i;
	int round;

	self->ticket.meta_index = HAMLYN_META_FAST;
	for (round = 0; round < 10; round++) {
		for (i = 0; i < 50; i++) {
			m.word = i;
			/* Long ones in between do not change the order. */
			m.data = p->send;
			m.length = i % 3 ? 0 : self->packet;
			ASSERT_GE(ht_send(p->terminus, &m), 0);
		}
		for (i = 0; i < 50; i++) {
			ASSERT_EQ(1, ht_recv(p->nq, &e));
			ASSERT_EQ(i, e.data);
		}
	}
}

/* A terminus holds 63 messages: so many are posted without blocking. */
TEST_F(conformance, h2_3_work_queue_holds_63_messages)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->ticket, .data = p->send,
			   .length = self->packet,
			   .flags = HAMLYN_TRB_NO_NOTIFY };
	int64_t last = -1;
	int i;

	for (i = 0; i < 63; i++) {
		last = h_send(p->terminus, &m);
		ASSERT_GE(last, 0) TH_LOG("message %d", i);
	}
	EXPECT_EQ(1, ht_send_wait(p->terminus, last));
}

/* A completion sequence tells which messages' buffers may be reused. */
TEST_F(conformance, h2_3_completion_tells_what_may_be_reused)
{
	struct ht_pair *p = &self->pair;
	size_t n = self->packet + 1;
	struct h_msg m = { .ticket = &p->ticket, .data = p->send, .length = n };
	struct hamlyn_nq_entry e;
	int64_t first, last;
	uint64_t i;

	for (i = 0; i < 50; i++) {
		ht_fill(p->send, n, i);
		last = ht_send(p->terminus, &m);
		ASSERT_EQ(1, ht_send_wait(p->terminus, last));
		/* From here on it is ours again, received or not. */
		memset(p->send, 0xee, n);
		ASSERT_EQ(1, ht_recv(p->nq, &e));
		ASSERT_EQ(n, ht_match(p->data, n, i));
	}
	first = ht_send(p->terminus, &m);
	last = ht_send(p->terminus, &m);
	ASSERT_EQ(1, ht_send_wait(p->terminus, last));
	EXPECT_EQ(1, h_send_done(p->terminus, first));
	EXPECT_EQ(0, h_send_done(p->terminus, last + 1));
}

/* Short messages are stored into the work queue: from any memory, copied at once. */
TEST_F(conformance, h2_3_direct_io)
{
	struct ht_pair *p = &self->pair;
	unsigned char local[200];
	struct h_msg m = { .ticket = &self->ticket, .data = local };
	struct hamlyn_nq_entry e;
	uint64_t i;

	for (i = 1; i < 50; i++) {
		m.length = i * 4;
		m.offset = i * sizeof(local);
		self->ticket.meta_index = i % ENTRIES;
		ht_fill(local, m.length, i);
		ASSERT_GE(ht_send(p->terminus, &m), 0);
		/* Without waiting for anything. */
		memset(local, 0, sizeof(local));
	}
	for (i = 1; i < 50; i++) {
		ASSERT_EQ(1, ht_recv(p->nq, &e));
		EXPECT_EQ(i * 4, ht_match(p->data + i * sizeof(local), i * 4, i));
	}
}

/* To send takes no system call but the doorbell of an engine that dozes. */
TEST_F(conformance, h2_3_sending_takes_no_system_call)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		/* Where the kernel's clock cannot be read without one. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { ARRAY_SIZE(filter), filter };
	struct ht_pair *p = &self->pair;
	struct ht_pair_attr attr = { .meta = 1 };
	struct hamlyn_nq_entry e;
	pid_t pid;
	int i, ret;

	/* The embedded device has no engine, and no doorbell. */
	filter[3].k = h_dev_is_embedded(p->rx) ? ~0U : SYS_fdatasync;
	filter[6].k = h_dev_is_embedded(p->rx) ? ~0U : HAMLYN_IOC_KICK;
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (ht_pair_open(p, &attr) ||
		    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			_exit(1);
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			_exit(errno == EINVAL ? 2 : 1);
		for (i = 0; i < 1000; i++) {
			while (h_send_msg(p->terminus, &p->ticket, "text", 4,
					  NULL, 0) < 0)
				;
			while (!h_recv(p->nq, &e))
				;
		}
		/* Also the thread that a sanitizer may have. */
		syscall(SYS_exit_group, 0);
	}
	ret = ht_reap(pid);
	if (ret == 2)
		SKIP(return, "kernel: with CONFIG_SECCOMP_FILTER");
	EXPECT_EQ(0, ret);
}

/* Long messages are fetched, from send buffer areas and nowhere else. */
TEST_F(conformance, h2_3_long_messages_are_fetched)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->ticket, .data = p->send,
			   .length = self->packet };
	struct hamlyn_nq_entry e;
	unsigned char *local;

	ASSERT_NO(cf_lands(p, &m, &e));
	EXPECT_EQ(m.length, ht_match(p->data, m.length, 1));
	local = calloc(1, m.length);
	ASSERT_NE(NULL, local);
	m.data = local;
	EXPECT_EQ(-EFAULT, h_send(p->terminus, &m));
	m.data = p->send + p->send_length - m.length + 1;
	EXPECT_EQ(-EFAULT, h_send(p->terminus, &m));
	m.data = p->send;
	ASSERT_EQ(0, h_terminus_bind(p->terminus, 0, NULL, 0, 0));
	EXPECT_EQ(-EFAULT, h_send(p->terminus, &m));
	EXPECT_EQ(0, ht_pair_fence(p));
	free(local);
}

/* A terminus has 8 send buffer areas, named by tags; here 8 are not all. */
TEST_F(conformance, h2_3_eight_send_buffer_areas)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->ticket, .length = 1500 };
	struct h_area *areas[8];
	struct hamlyn_query query;
	struct hamlyn_nq_entry e;
	unsigned int i;

	ASSERT_EQ(0, h_query(p->tx, &query));
	ASSERT_LE(8, query.max_tags);
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, h_area_alloc(p->tx, 2000, &areas[i]));
		ht_fill(h_area_addr(areas[i]), 1500, i + 10);
		ASSERT_EQ(0, h_terminus_bind(p->terminus, i, areas[i], 0, 1500));
	}
	EXPECT_EQ(-EINVAL, h_terminus_bind(p->terminus, query.max_tags, areas[0], 0, 0));
	for (i = 0; i < 8; i++) {
		m.data = h_area_addr(areas[i]);
		ASSERT_NO(cf_lands(p, &m, &e));
		EXPECT_EQ(1500, ht_match(p->data, 1500, i + 10));
	}
}

/* One message gathers parts of several send buffer areas. */
TEST_F(conformance, h2_3_gathers_from_several_areas)
{
	struct ht_pair *p = &self->pair;
	size_t part = self->packet / 5 + 3;
	struct iovec iov[HAMLYN_MAX_FRAGMENTS];
	struct h_msg m = { .ticket = &p->ticket, .iov = iov,
			   .iovcnt = HAMLYN_MAX_FRAGMENTS };
	struct hamlyn_nq_entry e;
	struct h_area *area;
	unsigned int i;

	ht_fill(p->send, p->send_length, 1);
	ASSERT_EQ(0, h_area_alloc(p->tx, part, &area));
	ASSERT_EQ(0, h_terminus_bind(p->terminus, 7, area, 0, 0));
	ht_fill(h_area_addr(area), part, 2);
	for (i = 0; i < HAMLYN_MAX_FRAGMENTS; i++) {
		iov[i].iov_base = i % 2 ? h_area_addr(area) : p->send;
		iov[i].iov_len = part - i;
	}
	ASSERT_NO(cf_lands(p, &m, &e));
	for (i = 0, part = 0; i < HAMLYN_MAX_FRAGMENTS; i++) {
		EXPECT_EQ(iov[i].iov_len, ht_match(p->data + part,
						   iov[i].iov_len, 1 + i % 2));
		part += iov[i].iov_len;
	}
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_TRUE(ht_pair_guarded(p));
}

/* Long messages are segmented; each packet goes to its own offset. */
TEST_F(conformance, h2_3_segments_messages)
{
	struct ht_pair *p = &self->pair;
	const size_t lengths[] = { 0, 1, self->packet, self->packet + 1,
				   2 * self->packet, 3 * self->packet + 5 };
	static const unsigned int packets[] = { 1, 1, 1, 2, 2, 4 };
	struct h_msg m = { .ticket = &p->ticket, .data = p->send, .offset = 9 };
	struct hamlyn_stats before, after;
	struct hamlyn_nq_entry e;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ht_pair_clear(p);
		m.length = lengths[i];
		ASSERT_EQ(0, h_terminus_stats(p->terminus, &before));
		ASSERT_NO(cf_lands(p, &m, &e));
		ASSERT_EQ(0, h_terminus_stats(p->terminus, &after));
		EXPECT_EQ(packets[i], after.packets - before.packets);
		EXPECT_EQ(m.length, after.bytes - before.bytes);
		EXPECT_EQ(m.length, ht_match(p->data + 9, m.length, 1));
		EXPECT_EQ(packets[i] == 1, !!(e.flags & HAMLYN_NQE_SINGLE));
		memset(p->data + 9, HT_GUARD, m.length);
		EXPECT_TRUE(ht_pair_untouched(p));
	}
}

/* All metadata are in the first packet of a message. */
TEST_F(conformance, h2_3_metadata_are_in_the_first_packet)
{
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = {
		.area = p->area, .base = p->base, .length = p->length,
		.meta_area = p->meta_area,
		.meta_base = HT_META_GUARDS * sizeof(struct hamlyn_metadata),
		.meta_count = ENTRIES, .mode = HAMLYN_SLOT_PARANOID,
	};
	struct h_msg m = { .ticket = &self->ticket, .data = p->send,
			   .length = 2 * self->packet, .meta = "meta",
			   .meta_length = 4 };
	struct h_slot *slot;

	ASSERT_EQ(0, h_slot_create(p->rx, &attr, &slot));
	/* Only the first packet is let in. */
	ASSERT_EQ(0, h_slot_entry_grant(slot, 0, 0, self->packet,
					&self->ticket));
	self->ticket.length = m.length;
	ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_EQ(4, p->meta[0].meta_length);
	EXPECT_EQ(0, memcmp(p->meta[0].user, "meta", 4));
	/* Only the last. */
	ASSERT_EQ(0, h_slot_entry_grant(slot, 1, self->packet, self->packet,
					&self->ticket));
	self->ticket.base = 0;
	self->ticket.length = m.length;
	memset(p->data, HT_GUARD, p->length);
	ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_EQ(self->packet, ht_match_byte(p->data, self->packet, HT_GUARD));
	EXPECT_EQ(0, memcmp(p->data + self->packet, p->send + self->packet,
			    self->packet));
	EXPECT_EQ(0, p->meta[1].meta_length);
	EXPECT_EQ(60, ht_match_byte(p->meta[1].user, 60, 0));
}

struct flood {
	struct h_terminus *terminus;
	struct h_msg msg;
	uint32_t stop;
	uint64_t sent;
};

static void *flood(void *arg)
{
	struct flood *f = arg;

	while (!h__load_acquire(&f->stop)) {
		if (ht_send(f->terminus, &f->msg) < 0)
			break;
		__atomic_add_fetch(&f->sent, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Termini are served in turn: who sends much does not shut out the others. */
TEST_F(conformance, h2_3_termini_are_interleaved)
{
	struct ht_pair *p = &self->pair;
	struct flood f = { .msg = { .ticket = &p->ticket, .data = p->send,
				    .length = p->length,
				    .flags = HAMLYN_TRB_NO_NOTIFY } };
	struct ht_poll poll;
	pthread_t thread;
	uint64_t was;
	int i;

	ASSERT_EQ(0, h_terminus_create(p->tx, NULL, &f.terminus));
	ASSERT_EQ(0, h_terminus_bind(f.terminus, 0, p->send_area, 0, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, flood, &f));
	for (i = 0; i < 50; i++) {
		was = __atomic_load_n(&f.sent, __ATOMIC_RELAXED);
		ASSERT_EQ(0, ht_pair_fence(p));
		/* And they do not shut out it. */
		ht_poll_begin(&poll);
		while (__atomic_load_n(&f.sent, __ATOMIC_RELAXED) == was) {
			ASSERT_TRUE(ht_poll_more(&poll));
		}
	}
	h__store_release(&f.stop, 1);
	pthread_join(thread, NULL);
	EXPECT_EQ(p->length, ht_match(p->data, p->length, 1));
}

/* ---- 2.4 the metadata area ---- */

/* A slot has as many metadata entries of 128 bytes as its owner likes. */
TEST_F(conformance, h2_4_many_entries)
{
	enum { MANY = 2048 };
	static const uint32_t indices[] = { 0, 1, 1234, MANY - 1 };
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = { .area = p->area, .meta_count = MANY,
				    .nq = p->nq };
	struct h_msg m = { .ticket = &self->ticket, .data = "x", .length = 1,
			   .meta = "meta", .meta_length = 4 };
	struct hamlyn_metadata *meta;
	struct hamlyn_nq_entry e;
	struct h_slot *slot;
	unsigned int i;

	ASSERT_EQ(128, sizeof(*meta));
	ASSERT_EQ(0, h_area_alloc(p->rx, MANY * sizeof(*meta),
				  &attr.meta_area));
	meta = h_area_addr(attr.meta_area);
	attr.meta_base = 64;
	attr.meta_count = MANY - 1;
	EXPECT_EQ(-EINVAL, h_slot_create(p->rx, &attr, &slot));
	attr.meta_base = 128;
	attr.meta_count = MANY;
	EXPECT_EQ(-ERANGE, h_slot_create(p->rx, &attr, &slot));
	attr.meta_base = 0;
	ASSERT_EQ(0, h_slot_create(p->rx, &attr, &slot));
	for (i = 0; i < ARRAY_SIZE(indices); i++) {
		ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, indices[i],
					   &self->ticket));
		ASSERT_NO(cf_lands(p, &m, &e));
		EXPECT_EQ(indices[i], e.index);
		EXPECT_EQ(0, memcmp(meta[indices[i]].user, "meta", 4));
		memset(&meta[indices[i]], 0, sizeof(*meta));
	}
	self->ticket.meta_index = MANY;
	ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_EQ(MANY * sizeof(*meta),
		  ht_match_byte(meta, MANY * sizeof(*meta), 0));
}

/* Messages that arrive at the same time have an entry each. */
TEST_F(conformance, h2_4_concurrent_messages)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket, .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;
	unsigned char meta[8];
	uint32_t i;

	/* Half of each, then the other half, in another order. */
	m.meta = meta;
	m.meta_length = sizeof(meta);
	for (i = 0; i < ENTRIES; i++) {
		self->ticket.meta_index = i;
		memset(meta, (int)i, sizeof(meta));
		m.delta = 100 + i;
		ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	}
	EXPECT_EQ(0, ht_pair_fence(p));
	m.meta_length = 0;
	for (i = ENTRIES; i-- > 0;) {
		self->ticket.meta_index = i;
		m.delta = 0 - (100 + i);
		ASSERT_NO(cf_lands(p, &m, &e));
		EXPECT_EQ(i, e.index);
		EXPECT_EQ(0, p->meta[i].accumulator);
		EXPECT_EQ(8, ht_match_byte(p->meta[i].user, 8, i));
	}
	EXPECT_EQ(0, ht_pair_fence(p));
}

/* An entry is used again for the next message, without anybody's help. */
TEST_F(conformance, h2_4_entries_are_reused)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->ticket, .data = p->send };
	struct hamlyn_nq_entry e;
	uint64_t i;

	for (i = 0; i < 100; i++) {
		m.length = i % 4 * self->packet + i;
		m.meta = &i;
		m.meta_length = sizeof(i);
		ASSERT_NO(cf_lands(p, &m, &e));
		EXPECT_EQ(0, memcmp(p->meta->user, &i, sizeof(i)));
		EXPECT_EQ(m.length, ht_match(p->data, m.length, 1));
		EXPECT_EQ(0, p->meta->accumulator);
		memset(p->data, 0, m.length);
	}
	EXPECT_EQ(0, ht_pair_fence(p));
}

/* The receive class pointer is the library's: the NIC leaves it alone. */
TEST_F(conformance, h2_4_receive_class_is_untouched)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &self->ticket, .data = p->send,
			   .meta = "x", .meta_length = 1 };
	struct hamlyn_nq_entry e;
	uint32_t i;

	for (i = 0; i < ENTRIES; i++)
		p->meta[i].receive_class = 0xc1a55c1a55ULL + i;
	for (i = 0; i < 4 * ENTRIES; i++) {
		self->ticket.meta_index = i % ENTRIES;
		m.length = i * self->packet / 16;
		ASSERT_NO(cf_lands(p, &m, &e));
	}
	for (i = 0; i < ENTRIES; i++) {
		EXPECT_EQ(0xc1a55c1a55ULL + i, p->meta[i].receive_class);
		EXPECT_EQ(0, p->meta[i].key | p->meta[i].low | p->meta[i].high);
	}
}

TEST_HARNESS_MAIN
