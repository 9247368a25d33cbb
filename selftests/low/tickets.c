// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tickets are values: they travel as bytes and work wherever they get to.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

FIXTURE(tickets) {
	struct ht_pair pair;
};

FIXTURE_SETUP(tickets)
{
	struct ht_pair_attr attr = { .meta = 4 };

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
}

FIXTURE_TEARDOWN(tickets)
{
	ht_pair_close(&self->pair);
}

static bool same(const struct h_ticket *a, const struct h_ticket *b)
{
	return a->host == b->host && a->slot == b->slot && a->key == b->key &&
	       a->base == b->base && a->length == b->length &&
	       a->meta_index == b->meta_index && a->flags == b->flags;
}

static struct h_ticket random_ticket(uint64_t *random)
{
	/* Members of every magnitude, not only large ones. */
	struct h_ticket t = {
		.host = (uint32_t)ht_random(random) >> (*random % 32),
		.slot = (uint32_t)ht_random(random) >> (*random % 32),
		.key = ht_random(random) >> (*random % 64),
		.base = ht_random(random) >> (*random % 64),
		.length = ht_random(random) >> (*random % 64),
		.meta_index = (uint32_t)ht_random(random),
	};

	return t;
}

TEST_F(tickets, export_and_import_give_the_same_ticket)
{
	unsigned char bytes[H_TICKET_BYTES + 2], again[H_TICKET_BYTES];
	uint64_t random = ht_seed();
	struct h_ticket in, out;
	int i;

	for (i = 0; i < 10000; i++) {
		in = random_ticket(&random);
		memset(bytes, 0xaa, sizeof(bytes));
		memset(again, 0x55, sizeof(again));
		h_ticket_export(&in, bytes + 1);
		h_ticket_export(&in, again);
		/* All of the bytes are written, and no more. */
		ASSERT_EQ(0, memcmp(bytes + 1, again, H_TICKET_BYTES));
		ASSERT_EQ(0xaa, bytes[0]);
		ASSERT_EQ(0xaa, bytes[H_TICKET_BYTES + 1]);
		memset(&out, 0xff, sizeof(out));
		ASSERT_EQ(0, h_ticket_import(bytes + 1, H_TICKET_BYTES, &out));
		ASSERT_TRUE(same(&in, &out)) TH_LOG("ticket %d", i);
	}
}

TEST_F(tickets, extreme_members_survive)
{
	static const struct h_ticket cases[] = {
		{ .host = 0 },
		{ .host = ~0U, .slot = ~0U, .key = ~0ULL, .base = ~0ULL,
		  .length = ~0ULL, .meta_index = HAMLYN_META_FAST },
		{ .host = 1 }, { .slot = 1 }, { .key = 1 }, { .base = 1 },
		{ .length = 1 }, { .meta_index = 1 },
		{ .key = 1ULL << 63 }, { .base = 1ULL << 63 },
		{ .length = 1ULL << 63 },
	};
	unsigned char bytes[H_TICKET_BYTES];
	struct h_ticket out;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		h_ticket_export(&cases[i], bytes);
		ASSERT_EQ(0, h_ticket_import(bytes, sizeof(bytes), &out));
		EXPECT_TRUE(same(&cases[i], &out)) TH_LOG("case %u", i);
	}
}

TEST_F(tickets, every_truncated_length_is_refused)
{
	unsigned char bytes[H_TICKET_BYTES];
	struct h_ticket out;
	size_t length;

	h_ticket_export(&self->pair.ticket, bytes);
	for (length = 0; length < sizeof(bytes); length++) {
		/* At the end of a buffer of its own: reading on would show. */
		unsigned char *cut = malloc(length ? length : 1);

		ASSERT_NE(NULL, cut);
		memcpy(cut, bytes, length);
		EXPECT_EQ(-EINVAL, h_ticket_import(cut, length, &out))
			TH_LOG("%zu bytes", length);
		free(cut);
	}
}

TEST_F(tickets, nothing_but_a_ticket_is_a_ticket)
{
	unsigned char good[H_TICKET_BYTES], bytes[H_TICKET_BYTES];
	uint64_t random = ht_seed();
	struct h_ticket out;
	unsigned int byte, flip;
	int i, ret;

	h_ticket_export(&self->pair.ticket, good);
	/* Magic and version are in front. */
	for (byte = 0; byte < 8; byte++)
		for (flip = 1; flip < 256; flip++) {
			memcpy(bytes, good, sizeof(bytes));
			bytes[byte] ^= flip;
			ret = h_ticket_import(bytes, sizeof(bytes), &out);
			EXPECT_EQ(byte < 4 ? -EINVAL : -EPROTO, ret)
				TH_LOG("byte %u xor %x", byte, flip);
		}
	memset(bytes, 0, sizeof(bytes));
	EXPECT_EQ(-EINVAL, h_ticket_import(bytes, sizeof(bytes), &out));
	memset(bytes, 0xff, sizeof(bytes));
	EXPECT_EQ(-EINVAL, h_ticket_import(bytes, sizeof(bytes), &out));
	for (i = 0; i < 1000; i++) {
		for (byte = 0; byte < sizeof(bytes); byte++)
			bytes[byte] = (unsigned char)ht_random(&random);
		EXPECT_GT(0, h_ticket_import(bytes, sizeof(bytes), &out));
	}
}

/* What the other process does: one message of @length with the bytes it got. */
static int send_from_elsewhere(int fd, size_t length)
{
	unsigned char bytes[H_TICKET_BYTES];
	struct h_terminus *terminus;
	struct h_ticket ticket;
	struct h_msg msg = { .ticket = &ticket, .length = length };
	struct h_area *area;
	struct h_dev *dev;

	if (ht_read_all(fd, bytes, sizeof(bytes)))
		return 1;
	if (h_ticket_import(bytes, sizeof(bytes), &ticket))
		return 2;
	if (ht_open(&dev))
		return 3;
	if (h_terminus_create(dev, NULL, &terminus) ||
	    h_area_alloc(dev, length, &area) ||
	    h_terminus_bind(terminus, 0, area, 0, 0))
		return 4;
	ht_fill(h_area_addr(area), length, length);
	msg.data = h_area_addr(area);
	if (ht_send_sync(terminus, &msg) != 1)
		return 5;
	h_close(dev);
	return 0;
}

/* L 3.3: The access to the card is not shared. */
/* not kept: every process may open the device, and has no access to what another one has there */
TEST_F(tickets, work_in_another_process)
{
	const size_t lengths[] = { 10, 1000, self->pair.length };
	unsigned char bytes[H_TICKET_BYTES];
	struct hamlyn_nq_entry entry;
	struct h_ticket ticket;
	unsigned int i;
	int pipefd[2];
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, pipe(pipefd));
		pid = ht_fork();
		ASSERT_GE(pid, 0);
		if (!pid)
			_exit(send_from_elsewhere(pipefd[0], lengths[i]));
		ASSERT_EQ(0, h_slot_ticket(self->pair.slot, 0, 0, i, &ticket));
		h_ticket_export(&ticket, bytes);
		ASSERT_EQ(0, ht_write_all(pipefd[1], bytes, sizeof(bytes)));
		ASSERT_EQ(0, ht_reap(pid));
		ASSERT_EQ(1, ht_recv(self->pair.nq, &entry));
		EXPECT_EQ(i, entry.index);
		EXPECT_EQ(lengths[i], ht_match(self->pair.data, lengths[i],
					       lengths[i]));
		close(pipefd[0]);
		close(pipefd[1]);
	}
}

TEST_F(tickets, a_ticket_says_nothing_that_another_has_to_know)
{
	struct h_ticket part;
	struct h_msg msg = { .ticket = &part, .data = "copy", .length = 4 };
	struct hamlyn_nq_entry entry;

	/* A plain value: a copy, changed within its range, works as well. */
	part = self->pair.ticket;
	part.base = 100;
	part.length = 4;
	part.meta_index = 3;
	ASSERT_EQ(1, ht_send_sync(self->pair.terminus, &msg));
	ASSERT_EQ(1, ht_recv(self->pair.nq, &entry));
	EXPECT_EQ(3, entry.index);
	EXPECT_EQ(0, memcmp(self->pair.data + 100, "copy", 4));
}

TEST_HARNESS_MAIN
