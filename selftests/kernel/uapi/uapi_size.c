// SPDX-License-Identifier: GPL-2.0-only
/*
 * The form of every ioctl: sizes, what must be zero, bad pointers, and that a
 * call that fails changes nothing. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <linux/aio_abi.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define PAGE	4096

FIXTURE(uapi_size) {
	int fd;
	uint32_t area;
	uint32_t nq;
	uint32_t slot;
	uint32_t terminus;
	uint64_t key;
	uint32_t host;
	int ticket;
	bool named;
	unsigned char *page;	/* a writable page between two forbidden ones */
};

static int make_ticket(FIXTURE_DATA(uapi_size) *self)
{
	struct hamlyn_ticket_create arg = { .size = sizeof(arg),
					    .slot = self->slot };
	struct hamlyn_query query;
	int ret = ht_raw_query(self->fd, &query);

	if (!ret)
		ret = ht_raw(self->fd, HAMLYN_IOC_TICKET_CREATE, &arg);
	self->host = query.host;
	self->ticket = arg.fd;
	return ret;
}

FIXTURE_SETUP(uapi_size)
{
	struct hamlyn_area_alloc area;
	struct hamlyn_slot_create slot;
	struct ht_raw_terminus terminus;
	struct ht_raw_nq nq;

	self->fd = ht_raw_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &area, NULL));
	ASSERT_EQ(0, ht_raw_nq_create(self->fd, 8, &nq));
	ASSERT_EQ(0, ht_raw_slot_create(self->fd, area.area, PAGE, nq.arg.nq,
					&slot));
	ASSERT_EQ(0, ht_raw_terminus_create(self->fd, 8, 128, &terminus));
	self->area = area.area;
	self->nq = nq.arg.nq;
	self->slot = slot.slot;
	self->key = slot.key;
	self->terminus = terminus.arg.terminus;
	ASSERT_EQ(0, make_ticket(self));
	self->page = mmap(NULL, 3 * PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	self->page += PAGE;
	ASSERT_EQ(0, mprotect(self->page, PAGE, PROT_READ | PROT_WRITE));
}

FIXTURE_TEARDOWN(uapi_size)
{
	close(self->fd);
}

/* ---- the commands ------------------------------------------------------- */

/* Room for any argument and more behind it. */
union argument {
	uint32_t size;
	struct hamlyn_query query;
	struct hamlyn_area_add area_add;
	struct hamlyn_area_alloc area_alloc;
	struct hamlyn_id id;
	struct hamlyn_nq_create nq_create;
	struct hamlyn_slot_create slot_create;
	struct hamlyn_slot_rekey slot_rekey;
	struct hamlyn_terminus_create terminus_create;
	struct hamlyn_terminus_bind terminus_bind;
	struct hamlyn_wait wait;
	struct hamlyn_stats stats;
	struct hamlyn_watch watch;
	struct hamlyn_ticket_create ticket_create;
	struct hamlyn_ticket_import ticket_import;
	struct hamlyn_ticket_drop ticket_drop;
	struct hamlyn_audit audit;
	struct hamlyn_nic_set nic_set;
	struct hamlyn_listen listen;
	struct hamlyn_call call;
	struct hamlyn_explain explain;
	unsigned char bytes[2048];
};

/*
 * @size: of the structure as this program knows it
 * @first: of the first version that was published: never changes
 * @fill: makes it legal; what it names exists
 * @undo: undoes success, or NULL
 * @destroy, @id: for undo_id(): the request, and where the id is
 * @flags, @known: where the flags are and which bits have a meaning; 0: none
 * @zero: where a member is that must be zero, and how long; 0: none
 */
struct command {
	const char *name;
	unsigned long request;
	size_t size;
	size_t first;
	int (*fill)(FIXTURE_DATA(uapi_size) *self, union argument *a);
	int (*undo)(FIXTURE_DATA(uapi_size) *self, const struct command *c,
		    const void *a);
	unsigned long destroy;
	size_t id;
	size_t flags;
	uint32_t known;
	size_t zero;
	size_t zero_bytes;
};

static int fill_query(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	(void)self;
	(void)a;
	return 0;
}

/* Of a call that succeeds. */
static int fill_explain(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	static struct hamlyn_query query = { .size = sizeof(query) };
	static char text[HAMLYN_EXPLAIN_BYTES];

	(void)self;
	a->explain.argument = (uintptr_t)&query;
	a->explain.text = (uintptr_t)text;
	a->explain.text_size = sizeof(text);
	return 0;
}

static int fill_area_add(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	a->area_add.addr = (uintptr_t)self->page + 10;
	a->area_add.length = 100;
	return 0;
}

static int fill_area_alloc(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	(void)self;
	a->area_alloc.length = 1;
	return 0;
}

static int fill_area_remove(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	struct hamlyn_area_alloc area;
	int ret = ht_raw_area_alloc(self->fd, 1, &area, NULL);

	a->id.id = area.area;
	return ret;
}

static int fill_nq_create(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	(void)self;
	a->nq_create.entries = 2;
	return 0;
}

static int fill_nq_destroy(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	struct hamlyn_nq_create nq = { .size = sizeof(nq), .entries = 2 };
	int ret = ht_raw(self->fd, HAMLYN_IOC_NQ_CREATE, &nq);

	a->id.id = nq.nq;
	return ret;
}

static int fill_slot_create(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	a->slot_create.area = self->area;
	a->slot_create.length = PAGE;
	a->slot_create.meta_area = HAMLYN_NONE;
	a->slot_create.nq = self->nq;
	return 0;
}

static int fill_slot_destroy(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	struct hamlyn_slot_create slot;
	int ret = ht_raw_slot_create(self->fd, self->area, PAGE, HAMLYN_NONE,
				     &slot);

	a->id.id = slot.slot;
	return ret;
}

static int fill_slot_rekey(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	a->slot_rekey.slot = self->slot;
	a->slot_rekey.flags = HAMLYN_SLOT_KEY_GIVEN;
	a->slot_rekey.key = self->key;
	return 0;
}

static int fill_terminus_create(FIXTURE_DATA(uapi_size) *self,
				union argument *a)
{
	(void)self;
	a->terminus_create.entries = 2;
	a->terminus_create.entry_size = 128;
	return 0;
}

static int fill_terminus_destroy(FIXTURE_DATA(uapi_size) *self,
				 union argument *a)
{
	struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 2,
					    .entry_size = 128 };
	int ret = ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &t);

	a->id.id = t.terminus;
	return ret;
}

static int fill_terminus_bind(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	a->terminus_bind.terminus = self->terminus;
	a->terminus_bind.area = self->area;
	a->terminus_bind.length = PAGE;
	return 0;
}

static int fill_stats(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	a->stats.kind = HAMLYN_STATS_SLOT;
	a->stats.id = self->slot;
	return 0;
}

static int make_watch(FIXTURE_DATA(uapi_size) *self, uint32_t *id)
{
	struct hamlyn_watch w = { .size = sizeof(w), .host = self->host,
				  .slot = self->slot, .key = self->key,
				  .nq = self->nq };
	int ret = ht_raw(self->fd, HAMLYN_IOC_WATCH, &w);

	*id = w.watch;
	return ret;
}

static int fill_watch(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	a->watch.host = self->host;
	a->watch.slot = self->slot;
	a->watch.key = self->key;
	a->watch.nq = self->nq;
	return 0;
}

static int fill_unwatch(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	return make_watch(self, &a->id.id);
}

static int fill_ticket_create(FIXTURE_DATA(uapi_size) *self,
			      union argument *a)
{
	a->ticket_create.slot = self->slot;
	return 0;
}

static int fill_ticket_import(FIXTURE_DATA(uapi_size) *self,
			      union argument *a)
{
	int ret;

	/* The slot may have been rekeyed since the last one was made. */
	close(self->ticket);
	ret = make_ticket(self);
	a->ticket_import.terminus = self->terminus;
	a->ticket_import.fd = self->ticket;
	return ret;
}

static int fill_ticket_drop(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	struct hamlyn_ticket_import arg = { .size = sizeof(arg),
					    .terminus = self->terminus };
	int ret;

	close(self->ticket);
	ret = make_ticket(self);
	arg.fd = self->ticket;
	if (!ret)
		ret = ht_raw(self->fd, HAMLYN_IOC_TICKET_IMPORT, &arg);
	a->ticket_drop.terminus = self->terminus;
	a->ticket_drop.index = arg.index;
	return ret;
}

static int undo_id(FIXTURE_DATA(uapi_size) *self, const struct command *c,
		   const void *a)
{
	uint32_t id;

	memcpy(&id, (const char *)a + c->id, sizeof(id));
	return ht_raw_id(self->fd, c->destroy, id);
}

static int fill_listen(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	(void)self;
	a->listen.name_length = 4;
	memcpy(a->listen.name, "uapi", 4);
	return 0;
}

/* To a name of our own, which is there from the first call on. */
static int fill_call(FIXTURE_DATA(uapi_size) *self, union argument *a)
{
	struct hamlyn_listen name = { .size = sizeof(name), .name_length = 4, .name = "mine" };
	int ret = 0;

	if (!self->named)
		ret = ht_raw(self->fd, HAMLYN_IOC_LISTEN, &name);
	self->named = !ret;
	a->call.host = self->host;
	a->call.name_length = 4;
	memcpy(a->call.name, "mine", 4);
	return ret;
}

static int undo_fd(FIXTURE_DATA(uapi_size) *self, const struct command *c, const void *a)
{
	int fd;

	(void)self;
	memcpy(&fd, (const char *)a + c->id, sizeof(fd));
	return close(fd);
}

static int undo_ticket_import(FIXTURE_DATA(uapi_size) *self,
			      const struct command *c, const void *a)
{
	struct hamlyn_ticket_drop drop = { .size = sizeof(drop),
					   .terminus = self->terminus };
	struct hamlyn_ticket_import arg;

	(void)c;
	memcpy(&arg, a, sizeof(arg));
	drop.index = arg.index;
	return ht_raw(self->fd, HAMLYN_IOC_TICKET_DROP, &drop);
}

#define COMMAND(cmd, type, bytes)					\
	.name = #cmd, .request = HAMLYN_IOC_##cmd,			\
	.size = sizeof(struct hamlyn_##type), .first = (bytes)
#define FLAGS(type, bits)						\
	.flags = offsetof(struct hamlyn_##type, flags), .known = (bits)
#define ZERO(type, member)						\
	.zero = offsetof(struct hamlyn_##type, member),			\
	.zero_bytes = sizeof(((struct hamlyn_##type *)0)->member)
#define UNDO(cmd, type, member)						\
	.undo = undo_id, .destroy = HAMLYN_IOC_##cmd,			\
	.id = offsetof(struct hamlyn_##type, member)
#define UNDO_FD(type)							\
	.undo = undo_fd, .id = offsetof(struct hamlyn_##type, fd)

static const struct command commands[] = {
	{ COMMAND(QUERY, query, 56), .fill = fill_query },
	{ COMMAND(AREA_ADD, area_add, 32), .fill = fill_area_add,
	  UNDO(AREA_REMOVE, area_add, area),
	  FLAGS(area_add, HAMLYN_AREA_READONLY), ZERO(area_add, reserved) },
	{ COMMAND(AREA_ALLOC, area_alloc, 32), .fill = fill_area_alloc,
	  UNDO(AREA_REMOVE, area_alloc, area), FLAGS(area_alloc, HAMLYN_AREA_HUGE),
	  ZERO(area_alloc, reserved) },
	{ COMMAND(AREA_REMOVE, id, 8), .fill = fill_area_remove },
	{ COMMAND(NQ_CREATE, nq_create, 48), .fill = fill_nq_create,
	  UNDO(NQ_DESTROY, nq_create, nq) },
	{ COMMAND(NQ_DESTROY, id, 8), .fill = fill_nq_destroy },
	{ COMMAND(SLOT_CREATE, slot_create, 64), .fill = fill_slot_create,
	  UNDO(SLOT_DESTROY, slot_create, slot),
	  FLAGS(slot_create, HAMLYN_SLOT_KEY_GIVEN |
			     HAMLYN_SLOT_TICKET_ONLY) },
	{ COMMAND(SLOT_DESTROY, id, 8), .fill = fill_slot_destroy },
	{ COMMAND(SLOT_REKEY, slot_rekey, 24), .fill = fill_slot_rekey,
	  FLAGS(slot_rekey, HAMLYN_SLOT_KEY_GIVEN),
	  ZERO(slot_rekey, reserved) },
	{ COMMAND(TERMINUS_CREATE, terminus_create, 56),
	  .fill = fill_terminus_create,
	  UNDO(TERMINUS_DESTROY, terminus_create, terminus),
	  ZERO(terminus_create, reserved) },
	{ COMMAND(TERMINUS_DESTROY, id, 8), .fill = fill_terminus_destroy },
	{ COMMAND(TERMINUS_BIND, terminus_bind, 32),
	  .fill = fill_terminus_bind },
	{ COMMAND(STATS, stats, 200), .fill = fill_stats,
	  ZERO(stats, reserved) },
	{ COMMAND(WATCH, watch, 48), .fill = fill_watch,
	  UNDO(UNWATCH, watch, watch),
	  FLAGS(watch, HAMLYN_WATCH_TICKET | HAMLYN_WATCH_CLAIM),
	  ZERO(watch, reserved) },
	{ COMMAND(UNWATCH, id, 8), .fill = fill_unwatch },
	{ COMMAND(TICKET_CREATE, ticket_create, 32),
	  .fill = fill_ticket_create, UNDO_FD(ticket_create), FLAGS(ticket_create, 0) },
	{ COMMAND(TICKET_IMPORT, ticket_import, 40),
	  .fill = fill_ticket_import, .undo = undo_ticket_import },
	{ COMMAND(TICKET_DROP, ticket_drop, 16), .fill = fill_ticket_drop,
	  ZERO(ticket_drop, reserved) },
	{ COMMAND(AUDIT, audit, 24), .fill = fill_query },
	{ COMMAND(NIC_SET, nic_set, 16), .fill = fill_query,
	  FLAGS(nic_set, HAMLYN_NIC_SET_STATE | HAMLYN_NIC_SET_WATCHDOG |
			 HAMLYN_NIC_FEED) },
	{ COMMAND(LISTEN, listen, 80), .fill = fill_listen, UNDO_FD(listen), FLAGS(listen, 0) },
	{ COMMAND(CALL, call, 96), .fill = fill_call, UNDO_FD(call), FLAGS(call, 0) },
	{ .name = "EXPLAINED(QUERY)", .request = HAMLYN_IOC_EXPLAINED(HAMLYN_IOC_QUERY),
	  .size = sizeof(struct hamlyn_explain), .first = 24, .fill = fill_explain },
};

static int prepare(FIXTURE_DATA(uapi_size) *self, const struct command *c,
		   union argument *a)
{
	memset(a, 0, sizeof(*a));
	a->size = (uint32_t)c->size;
	return c->fill(self, a);
}

/* Make a call; undo what it did. */
static int call(FIXTURE_DATA(uapi_size) *self, const struct command *c,
		void *a)
{
	int ret = ht_raw(self->fd, c->request, a);

	if (ret || !c->undo)
		return ret;
	return c->undo(self, c, a) ? -EIO : 0;
}

/* It must fail with @want and leave the argument as it is. */
static const char *not_refused(FIXTURE_DATA(uapi_size) *self,
			       const struct command *c, union argument *a,
			       int want)
{
	union argument before = *a;
	int ret = call(self, c, a);

	if (ret != want) {
		fprintf(stderr, "# %s: %d, not %d\n", c->name, ret, want);
		return ret ? "the wrong error" : "no error";
	}
	if (memcmp(&before, a, sizeof(before))) {
		fprintf(stderr, "# %s\n", c->name);
		return "a failing call wrote to its argument";
	}
	return NULL;
}

/* ---- sizes -------------------------------------------------------------- */

TEST_F(uapi_size, too_short_a_structure_is_EINVAL)
{
	const struct command *c;
	union argument a;
	uint32_t size;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		for (size = 0; size < c->first; size++) {
			ASSERT_EQ(0, prepare(self, c, &a));
			a.size = size;
			EXPECT_NO(not_refused(self, c, &a, -EINVAL)) {
				TH_LOG("%s, size %u", c->name, size);
			}
		}
}

TEST_F(uapi_size, the_first_version_is_served_for_ever)
{
	const struct command *c;
	union argument a;
	size_t rest;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		ASSERT_LE(c->first, c->size);
		ASSERT_EQ(0, prepare(self, c, &a));
		a.size = (uint32_t)c->first;
		rest = sizeof(a) - c->first;
		memset(a.bytes + c->first, HT_GUARD, rest);
		EXPECT_EQ(0, call(self, c, &a)) {
			TH_LOG("%s", c->name);
		}
		EXPECT_EQ(c->first, a.size);
		/* Written back, but not more than there is room for. */
		EXPECT_EQ(rest, ht_match_byte(a.bytes + c->first, rest,
					      HT_GUARD)) {
			TH_LOG("%s", c->name);
		}
	}
}

TEST_F(uapi_size, a_longer_structure_is_accepted_if_the_rest_is_zero)
{
	static const uint32_t more[] = { 1, 4, 7, 8, 64, 800 };
	const struct command *c;
	union argument a;
	unsigned int i;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		for (i = 0; i < ARRAY_SIZE(more); i++) {
			ASSERT_EQ(0, prepare(self, c, &a));
			a.size = (uint32_t)c->size + more[i];
			EXPECT_EQ(0, call(self, c, &a)) {
				TH_LOG("%s, %u more", c->name, more[i]);
			}
			EXPECT_EQ(more[i], ht_match_byte(a.bytes + c->size,
							 more[i], 0));
		}
}

TEST_F(uapi_size, a_longer_structure_is_E2BIG_if_the_rest_is_not_zero)
{
	static const uint32_t more[] = { 1, 4, 7, 8, 64, 800 };
	const struct command *c;
	union argument a;
	unsigned int i, at;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		for (i = 0; i < ARRAY_SIZE(more); i++)
			for (at = 0; at < 2; at++) {
				ASSERT_EQ(0, prepare(self, c, &a));
				a.size = (uint32_t)c->size + more[i];
				a.bytes[at ? c->size : a.size - 1] = 1;
				EXPECT_NO(not_refused(self, c, &a, -E2BIG)) {
					TH_LOG("%s, %u more", c->name,
					       more[i]);
				}
			}
}

TEST_F(uapi_size, an_absurd_size_is_an_error_and_nothing_else)
{
	static const uint32_t sizes[] = { 0x7fffffff, 0x80000000, 0xffffff00,
					  0xffffffff };
	const struct command *c;
	union argument a;
	unsigned int i;
	int ret;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			ASSERT_EQ(0, prepare(self, c, &a));
			a.size = sizes[i];
			ret = call(self, c, &a);
			EXPECT_TRUE(ret == -E2BIG || ret == -EFAULT) {
				TH_LOG("%s: %d", c->name, ret);
			}
		}
}

/* ---- what must be zero -------------------------------------------------- */

TEST_F(uapi_size, undefined_flags_are_EINVAL)
{
	const struct command *c;
	union argument a;
	uint32_t bit;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		if (!c->flags)
			continue;
		for (bit = 1; bit; bit <<= 1) {
			if (c->known & bit)
				continue;
			ASSERT_EQ(0, prepare(self, c, &a));
			memcpy(a.bytes + c->flags, &bit, sizeof(bit));
			EXPECT_NO(not_refused(self, c, &a, -EINVAL)) {
				TH_LOG("%s, flag %x", c->name, bit);
			}
		}
	}
}

TEST_F(uapi_size, reserved_members_must_be_zero)
{
	const struct command *c;
	union argument a;
	size_t bit;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		for (bit = 0; bit < c->zero_bytes * 8; bit++) {
			ASSERT_EQ(0, prepare(self, c, &a));
			a.bytes[c->zero + bit / 8] = 1 << bit % 8;
			EXPECT_NO(not_refused(self, c, &a, -EINVAL)) {
				TH_LOG("%s, bit %zu", c->name, bit);
			}
		}
}

TEST_F(uapi_size, values_without_a_meaning_are_EINVAL)
{
	static const uint32_t values[] = { 100, 0x7fffffff, 0x80000000,
					   0xffffffff };
	struct hamlyn_slot_create slot;
	struct hamlyn_stats stats;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		union argument a = { 0 };

		fill_slot_create(self, &a);
		slot = a.slot_create;
		slot.size = sizeof(slot);
		slot.mode = values[i];
		EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE,
					  &slot));
		stats = (struct hamlyn_stats) { .size = sizeof(stats),
						.kind = values[i] };
		EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_STATS, &stats));
	}
	stats = (struct hamlyn_stats) { .size = sizeof(stats), .kind = 3 };
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_STATS, &stats));
	for (i = HAMLYN_MAX_TAGS; i; i <<= 1) {
		EXPECT_EQ(-EINVAL, ht_raw_bind(self->fd, self->terminus, i,
					       self->area, 0, PAGE));
		EXPECT_EQ(-EINVAL, ht_raw_bind(self->fd, self->terminus, i,
					       HAMLYN_NONE, 0, 0));
	}
}

TEST_F(uapi_size, what_comes_in_out_members_does_not_matter)
{
	struct hamlyn_nq_create nq;
	struct hamlyn_terminus_create t;
	struct hamlyn_query query, clean;
	struct hamlyn_stats stats;

	memset(&nq, 0xff, sizeof(nq));
	nq.size = sizeof(nq);
	nq.entries = 4;
	EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_NQ_CREATE, &nq));
	EXPECT_NE(0xffffffff, nq.nq);
	memset(&t, 0xff, sizeof(t));
	t.size = sizeof(t);
	t.entries = 4;
	t.entry_size = 256;
	t.reserved = 0;
	t.priority = HAMLYN_PRIORITY_NORMAL;
	t.weight = 0;
	EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &t));
	memset(&query, 0xff, sizeof(query));
	query.size = sizeof(query);
	EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_QUERY, &query));
	ASSERT_EQ(0, ht_raw_query(self->fd, &clean));
	EXPECT_EQ(0, memcmp(&query, &clean, sizeof(query)));
	memset(&stats, 0xff, sizeof(stats));
	stats.size = sizeof(stats);
	stats.kind = HAMLYN_STATS_SLOT;
	stats.id = self->slot;
	stats.reserved = 0;
	EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_STATS, &stats));
	EXPECT_EQ(120, ht_match_byte(&stats.messages, 120, 0));
}

TEST_F(uapi_size, a_key_is_taken_when_given_and_made_when_not)
{
	struct hamlyn_slot_rekey rekey = { .size = sizeof(rekey),
					   .slot = self->slot };
	struct hamlyn_slot_create slot;
	union argument a = { 0 };
	uint64_t last = 0;
	int i;

	fill_slot_create(self, &a);
	slot = a.slot_create;
	slot.size = sizeof(slot);
	slot.flags = HAMLYN_SLOT_KEY_GIVEN;
	slot.key = 0x123456789abcdefULL;
	ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &slot));
	EXPECT_EQ(0x123456789abcdefULL, slot.key);
	for (i = 0; i < 20; i++) {
		rekey.flags = i % 2 ? HAMLYN_SLOT_KEY_GIVEN : 0;
		rekey.key = (uint64_t)i + 7;
		ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_SLOT_REKEY, &rekey));
		if (i % 2) {
			EXPECT_EQ((uint64_t)i + 7, rekey.key);
		} else {
			/* Sparse: not the one before, and not a small one. */
			EXPECT_NE(last, rekey.key);
			EXPECT_GT(rekey.key, 1ULL << 32);
		}
		last = rekey.key;
	}
}

TEST_F(uapi_size, the_id_of_nic_counters_is_ignored)
{
	struct hamlyn_stats stats = { .size = sizeof(stats),
				      .id = 0xdeadbeef };

	EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_STATS, &stats));
}

/* ---- values out of range, which the library would not let pass ---------- */

TEST_F(uapi_size, message_areas_must_lie_inside_their_area)
{
	static const struct {
		uint64_t base;
		uint64_t length;
	} cases[] = {
		{ 0, PAGE + 1 }, { 1, PAGE }, { PAGE, 1 }, { PAGE + 1, 0 },
		{ ~0ULL, 1 }, { ~0ULL, 2 }, { 1, ~0ULL }, { PAGE, ~0ULL },
		{ 0, ~0ULL }, { 1ULL << 32, 1 }, { 0, 1ULL << 32 },
		{ 1ULL << 63, 1ULL << 63 }, { 0 - (uint64_t)PAGE, 2 * PAGE },
	};
	union argument a;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(&a, 0, sizeof(a));
		fill_slot_create(self, &a);
		a.size = sizeof(a.slot_create);
		a.slot_create.base = cases[i].base;
		a.slot_create.length = cases[i].length;
		EXPECT_EQ(-ERANGE, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE,
					  &a)) {
			TH_LOG("case %u", i);
		}
		/* And the same of a send buffer area. */
		if (!cases[i].length)
			continue;
		EXPECT_EQ(-ERANGE, ht_raw_bind(self->fd, self->terminus, 0,
					       self->area, cases[i].base,
					       cases[i].length)) {
			TH_LOG("case %u", i);
		}
	}
}

TEST_F(uapi_size, metadata_entries_must_lie_inside_their_area)
{
	static const struct {
		int want;
		uint64_t base;
		uint32_t count;
	} cases[] = {
		{ 0, 0, 32 }, { 0, 31 * 128, 1 }, { -ERANGE, 0, 33 },
		{ -ERANGE, 128, 32 }, { -ERANGE, PAGE, 1 },
		{ -ERANGE, 0 - 128ULL, 1 }, { -ERANGE, 0 - 128ULL, 2 },
		{ -ERANGE, 0, 0x02000000 }, { -ERANGE, 0, 0x02000001 },
		{ -ERANGE, 0, 0xffffffff }, { -ERANGE, 1ULL << 63, 1 },
		{ -EINVAL, 0, 0 }, { -EINVAL, 1, 1 }, { -EINVAL, 8, 1 },
		{ -EINVAL, 32, 1 }, { -EINVAL, 64, 1 }, { -EINVAL, 127, 1 },
		{ -EINVAL, 129, 1 },
	};
	union argument a;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(&a, 0, sizeof(a));
		fill_slot_create(self, &a);
		a.size = sizeof(a.slot_create);
		a.slot_create.meta_area = self->area;
		a.slot_create.meta_base = cases[i].base;
		a.slot_create.meta_count = cases[i].count;
		ret = ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &a);
		EXPECT_EQ(cases[i].want, ret) {
			TH_LOG("case %u", i);
		}
	}
	/* Entries, but no area of them. */
	memset(&a, 0, sizeof(a));
	fill_slot_create(self, &a);
	a.size = sizeof(a.slot_create);
	a.slot_create.meta_count = 1;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &a));
}

TEST_F(uapi_size, rings_of_other_sizes_are_EINVAL)
{
	struct hamlyn_terminus_create t;
	struct hamlyn_nq_create nq;
	struct hamlyn_query query;
	uint32_t entries, size;

	ASSERT_EQ(0, ht_raw_query(self->fd, &query));
	const uint32_t bad[] = {
		0, 1, 3, 5, 63, 65, 0x7fffffff, 0x80000000, 0xffffffff,
		query.max_nq_entries * 2, query.max_nq_entries + 1,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		nq = (struct hamlyn_nq_create) { .size = sizeof(nq),
						 .entries = bad[i] };
		EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_NQ_CREATE,
					  &nq)) {
			TH_LOG("case %u", i);
		}
		t = (struct hamlyn_terminus_create) { .size = sizeof(t),
						      .entries = bad[i],
						      .entry_size = 128 };
		EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE,
					  &t)) {
			TH_LOG("case %u", i);
		}
		t.entries = 2;
		t.entry_size = bad[i];
		EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE,
					  &t)) {
			TH_LOG("case %u", i);
		}
	}
	for (size = 1; size < 128; size *= 2) {
		t.entry_size = size;
		EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE,
					  &t));
	}
	t.entry_size = 2 * query.max_entry_size;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &t));
	t.entry_size = 128;
	t.entries = 2 * query.max_wq_entries;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &t));
	/* Both at their largest are legal, or more than there is room for. */
	for (entries = 2; entries <= query.max_wq_entries; entries *= 2) {
		int ret;

		t = (struct hamlyn_terminus_create) {
			.size = sizeof(t),
			.entries = entries,
			.entry_size = query.max_entry_size,
		};
		ret = ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &t);
		EXPECT_TRUE(ret == 0 || ret == -ENOMEM || ret == -EDQUOT) {
			TH_LOG("%d for %u entries", ret, entries);
		}
		if (!ret) {
			EXPECT_EQ(0, ht_raw_id(self->fd,
					       HAMLYN_IOC_TERMINUS_DESTROY,
					       t.terminus));
		}
	}
}

/* ---- pointers ----------------------------------------------------------- */

TEST_F(uapi_size, bad_pointers_are_EFAULT)
{
	void *const bad[] = {
		NULL, (void *)1, (void *)8, self->page - PAGE,
		self->page + PAGE, self->page - 4,
		(void *)0x7ffffffff000, (void *)0xffff888000000000,
		(void *)0xffffffffffffff00, (void *)UINTPTR_MAX,
	};
	const struct command *c;
	unsigned int i;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			EXPECT_EQ(-EFAULT, ht_raw(self->fd, c->request,
						  bad[i])) {
				TH_LOG("%s, pointer %u", c->name, i);
			}
		}
}

TEST_F(uapi_size, a_structure_that_is_not_all_there_is_EFAULT)
{
	const struct command *c;
	union argument a;
	unsigned char *at;
	size_t there;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		for (there = 4; there < c->size; there += 4) {
			ASSERT_EQ(0, prepare(self, c, &a));
			at = self->page + PAGE - there;
			memcpy(at, &a, there);
			EXPECT_EQ(-EFAULT, ht_raw(self->fd, c->request, at)) {
				TH_LOG("%s, %zu bytes there", c->name, there);
			}
		}
}

TEST_F(uapi_size, unaligned_structures_are_served)
{
	const struct command *c;
	union argument a;
	unsigned int shift;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++)
		for (shift = 1; shift < 8; shift++) {
			ASSERT_EQ(0, prepare(self, c, &a));
			memcpy(self->page + 2000 + shift, &a, c->size);
			EXPECT_EQ(0, call(self, c,
					  self->page + 2000 + shift)) {
				TH_LOG("%s", c->name);
			}
		}
}

/*
 * Making an object and not being able to say its number: it must be gone
 * again, and not hold others.
 */
TEST_F(uapi_size, nothing_is_made_when_the_answer_cannot_be_written)
{
	struct ht_raw_terminus terminus;
	struct ht_raw_nq nq;
	struct hamlyn_slot_create slot;
	const struct command *c;
	char own_memory[64];
	union argument a;
	uint32_t i;

	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		if (!c->undo)
			continue;
		ASSERT_EQ(0, prepare(self, c, &a));
		/* The argument of AREA_ADD must not be the area itself. */
		if (c->request == HAMLYN_IOC_AREA_ADD)
			a.area_add.addr = (uintptr_t)own_memory;
		memcpy(self->page, &a, c->size);
		ASSERT_EQ(0, mprotect(self->page, PAGE, PROT_READ));
		for (i = 0; i < 300; i++) {
			ASSERT_EQ(-EFAULT, ht_raw(self->fd, c->request,
						  self->page)) {
				TH_LOG("%s, round %u", c->name, i);
			}
		}
		ASSERT_EQ(0, mprotect(self->page, PAGE,
				      PROT_READ | PROT_WRITE));
	}
	/* Nor has any of them kept its id. */
	ASSERT_EQ(0, ht_raw_nq_create(self->fd, 4, &nq));
	EXPECT_GT(300, nq.arg.nq);
	ht_raw_nq_unmap(&nq);
	ASSERT_EQ(0, ht_raw_terminus_create(self->fd, 8, 128, &terminus));
	EXPECT_GT(300, terminus.arg.terminus);
	ht_raw_terminus_unmap(&terminus);
	EXPECT_EQ(0, ht_raw_slot_create(self->fd, self->area, PAGE, self->nq,
					&slot));
	/* The NQ and the area are not held by slots that nobody knows. */
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_SLOT_DESTROY, slot.slot));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_SLOT_DESTROY, self->slot));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_NQ_DESTROY, self->nq));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, self->area));
}

/* A ticket that could not be told is not left in the table of descriptors. */
/* Else it would be EBUSY for ever. */
TEST_F(uapi_size, a_slot_that_cannot_be_made_lets_go_of_what_it_found)
{
	struct hamlyn_slot_create arg;
	struct hamlyn_area_alloc area, meta;
	int i;

	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &area, NULL));
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &meta, NULL));
	for (i = 0; i < 2; i++) {
		arg = (struct hamlyn_slot_create) {
			.size = sizeof(arg),
			.area = area.area,
			.length = PAGE,
			.meta_area = i ? meta.area : HAMLYN_NONE,
			.meta_count = i,
			.nq = 4711,
		};
		EXPECT_EQ(-ENOENT, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE,
					  &arg));
	}
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, area.area));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, meta.area));
}

TEST_F(uapi_size, no_descriptor_is_left_when_the_answer_cannot_be_written)
{
	struct hamlyn_ticket_create arg = { .size = sizeof(arg),
					    .slot = self->slot };
	struct hamlyn_ticket_import import = { .size = sizeof(import),
					       .terminus = self->terminus,
					       .fd = self->ticket };
	int next = dup(0);
	int i, again;

	close(next);
	memcpy(self->page, &arg, sizeof(arg));
	ASSERT_EQ(0, mprotect(self->page, PAGE, PROT_READ));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(-EFAULT, ht_raw(self->fd, HAMLYN_IOC_TICKET_CREATE,
					  self->page));
	}
	again = dup(0);
	EXPECT_EQ(next, again);
	close(again);
	/* Nor an imported one in the key table. */
	ASSERT_EQ(0, mprotect(self->page, PAGE, PROT_READ | PROT_WRITE));
	memcpy(self->page, &import, sizeof(import));
	ASSERT_EQ(0, mprotect(self->page, PAGE, PROT_READ));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(-EFAULT, ht_raw(self->fd, HAMLYN_IOC_TICKET_IMPORT,
					  self->page));
	}
	ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_TICKET_IMPORT, &import));
	EXPECT_EQ(0, import.index);
}

/* ---- numbers ------------------------------------------------------------ */

TEST_F(uapi_size, unknown_requests_are_ENOTTY)
{
	unsigned char zeros[256] = "";
	const struct command *c;
	unsigned int nr;

	for (nr = 0; nr < 256; nr++) {
		if ((nr & ~HAMLYN_EXPLAINED) <= HAMLYN_CMD_CALL &&
		    nr != (HAMLYN_CMD_KICK | HAMLYN_EXPLAINED))
			continue;
		EXPECT_EQ(-ENOTTY, ht_raw(self->fd, _IO(HAMLYN_IOC_TYPE, nr),
					  zeros)) {
			TH_LOG("number %u", nr);
		}
	}
	for (c = commands; c < commands + ARRAY_SIZE(commands); c++) {
		nr = _IOC_NR(c->request);
		EXPECT_EQ(-ENOTTY, ht_raw(self->fd, _IO('h', nr), zeros));
		EXPECT_EQ(-ENOTTY, ht_raw(self->fd,
					  _IO(HAMLYN_IOC_TYPE ^ 1, nr),
					  zeros));
		/* The size is not in the number. */
		EXPECT_EQ(-ENOTTY, ht_raw(self->fd, _IOC(_IOC_READ,
							 HAMLYN_IOC_TYPE, nr,
							 c->size), zeros));
		EXPECT_EQ(-ENOTTY, ht_raw(self->fd,
					  _IOC(_IOC_READ | _IOC_WRITE,
					       HAMLYN_IOC_TYPE, nr, c->size),
					  zeros));
		EXPECT_EQ(-ENOTTY, ht_raw(self->fd, _IOC(_IOC_NONE,
							 HAMLYN_IOC_TYPE, nr,
							 c->size), zeros));
	}
}

TEST_F(uapi_size, kick_takes_the_id_itself)
{
	EXPECT_EQ(0, ioctl(self->fd, HAMLYN_IOC_KICK,
			   (unsigned long)self->terminus));
	EXPECT_EQ(-ENOENT, ht_raw(self->fd, HAMLYN_IOC_KICK,
				  (void *)(self->terminus + 1000UL)));
	EXPECT_EQ(-ENOENT, ht_raw(self->fd, HAMLYN_IOC_KICK,
				  (void *)0xffffffffUL));
	/* No number that is longer than an id is one. */
	EXPECT_EQ(-ENOENT, ht_raw(self->fd, HAMLYN_IOC_KICK,
				  (void *)(0x100000000UL + self->terminus)));
	EXPECT_EQ(-ENOENT, ht_raw(self->fd, HAMLYN_IOC_KICK,
				  (void *)UINTPTR_MAX));
}

/* ---- why a call fails ---------------------------------------------------- */

#define EXPLAINS	2000

/* Asks for an NQ of @entries, which is refused, again and again; is it told so each time? */
struct asker {
	pthread_t thread;
	int fd;
	uint32_t entries;
	int wrong;
};

static void *ask(void *arg)
{
	struct asker *a = arg;
	char text[HAMLYN_EXPLAIN_BYTES], want[32];
	int i;

	snprintf(want, sizeof(want), "%u entries", a->entries);
	for (i = 0; i < EXPLAINS; i++) {
		struct hamlyn_nq_create nq = { .size = sizeof(nq), .entries = a->entries };

		if (ht_raw_explained(a->fd, HAMLYN_IOC_NQ_CREATE, &nq, text, sizeof(text)) !=
		    -EINVAL || strncmp(text, want, strlen(want)))
			a->wrong++;
	}
	return NULL;
}

TEST_F(uapi_size, each_thread_is_told_of_its_own_failure)
{
	struct asker askers[] = { { .entries = 3 }, { .entries = 5 }, { .entries = 7 } };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(askers); i++) {
		askers[i].fd = self->fd;
		ASSERT_EQ(0, pthread_create(&askers[i].thread, NULL, ask, &askers[i]));
	}
	for (i = 0; i < ARRAY_SIZE(askers); i++) {
		pthread_join(askers[i].thread, NULL);
		EXPECT_EQ(0, askers[i].wrong);
	}
}

TEST_F(uapi_size, a_reason_is_written_where_the_caller_says)
{
	struct hamlyn_nq_create nq = { .size = sizeof(nq), .entries = 3 };
	struct hamlyn_id id = { .size = sizeof(id), .id = HAMLYN_NONE };
	char text[HAMLYN_EXPLAIN_BYTES];
	char *end = (char *)self->page + PAGE;

	/* As much of it as there is room for, and not a byte more. */
	memset(text, 'x', sizeof(text));
	EXPECT_EQ(-EINVAL, ht_raw_explained(self->fd, HAMLYN_IOC_NQ_CREATE, &nq, text, 4));
	EXPECT_EQ(0, memcmp(text, "3 e\0xxx", 7));
	EXPECT_EQ(-EINVAL, ht_raw_explained(self->fd, HAMLYN_IOC_NQ_CREATE, &nq, text, 1));
	EXPECT_EQ(0, memcmp(text, "\0 e\0xxx", 7));
	EXPECT_EQ(-EINVAL, ht_raw_explained(self->fd, HAMLYN_IOC_NQ_CREATE, &nq, end - 4, 4));
	EXPECT_EQ(-EFAULT, ht_raw_explained(self->fd, HAMLYN_IOC_NQ_CREATE, &nq, end - 4, 256));
	EXPECT_EQ(-EFAULT, ht_raw_explained(self->fd, HAMLYN_IOC_NQ_CREATE, &nq, NULL, 256));
	/* Nothing to say: the text of before is not left there. */
	EXPECT_EQ(-ENOENT, ht_raw_explained(self->fd, HAMLYN_IOC_NQ_DESTROY, &id, text,
					    sizeof(text)));
	EXPECT_EQ(0, text[0]);
	/* What succeeds writes nothing, wherever that were. */
	nq.entries = 2;
	EXPECT_EQ(0, ht_raw_explained(self->fd, HAMLYN_IOC_NQ_CREATE, &nq, NULL, 256));
}

TEST_F(uapi_size, what_cannot_be_explained_is_refused)
{
	char text[HAMLYN_EXPLAIN_BYTES];
	struct hamlyn_query query = { .size = sizeof(query) };

	EXPECT_EQ(-ENOTTY, ht_raw_explained(self->fd, HAMLYN_IOC_KICK, NULL, text, sizeof(text)));
	EXPECT_EQ(-EINVAL, ht_raw_explained(self->fd, HAMLYN_IOC_QUERY, &query, text, 0));
	EXPECT_EQ(-ENOTTY, ht_raw_explained(self->fd, _IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_CALL + 1),
					    NULL, text, sizeof(text)));
	EXPECT_EQ(-EFAULT, ht_raw_explained(self->fd, HAMLYN_IOC_QUERY, NULL, text, sizeof(text)));
	EXPECT_EQ(0, ht_raw_explained(self->fd, HAMLYN_IOC_QUERY, &query, text, sizeof(text)));
}

/* fsync() is a KICK of all termini: of none, one or several. */
TEST_F(uapi_size, fsync_sends_what_was_posted)
{
	struct hamlyn_terminus_create more = {
		.size = sizeof(more), .entries = 2, .entry_size = 128,
	};
	struct hamlyn_id id = { .size = sizeof(id) };

	if (!ht_raw_rings_by_fsync(self->fd))
		SKIP(return, NO_FSYNC);
	EXPECT_EQ(0, fsync(self->fd));
	EXPECT_EQ(0, fdatasync(self->fd));
	ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &more));
	EXPECT_EQ(0, fsync(self->fd));
	id.id = self->terminus;
	ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_DESTROY, &id));
	EXPECT_EQ(0, fdatasync(self->fd));
	id.id = more.terminus;
	ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_DESTROY, &id));
	EXPECT_EQ(0, fdatasync(self->fd));
}

/* By io_submit() a kernel thread would do the sending, which no signal ends. */
TEST_F(uapi_size, fsync_is_not_for_kernel_threads)
{
	struct iocb cb = {
		.aio_lio_opcode = IOCB_CMD_FSYNC, .aio_fildes = (uint32_t)self->fd,
	};
	struct iocb *list = &cb;
	struct io_event event = { 0 };
	aio_context_t aio = 0;

	if (syscall(SYS_io_setup, 1, &aio))
		SKIP(return, "kernel: no io_setup()");
	ASSERT_EQ(1, syscall(SYS_io_submit, aio, 1, &list));
	ASSERT_EQ(1, syscall(SYS_io_getevents, aio, 1, 1, &event, NULL));
	EXPECT_EQ(-EINVAL, event.res);
	cb.aio_lio_opcode = IOCB_CMD_FDSYNC;
	ASSERT_EQ(1, syscall(SYS_io_submit, aio, 1, &list));
	ASSERT_EQ(1, syscall(SYS_io_getevents, aio, 1, 1, &event, NULL));
	EXPECT_EQ(-EINVAL, event.res);
	syscall(SYS_io_destroy, aio);
}

TEST_F(uapi_size, wait_has_the_same_form)
{
	struct {
		struct hamlyn_wait wait;
		unsigned char more[64];
	} a = { .wait = { .size = sizeof(a.wait), .nq = self->nq } };
	uint32_t size, bit;

	/* A time in the past only looks. */
	EXPECT_EQ(-ETIMEDOUT, ht_raw(self->fd, HAMLYN_IOC_WAIT, &a));
	for (size = 0; size < 24; size++) {
		a.wait.size = size;
		EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_WAIT, &a));
	}
	a.wait.size = sizeof(a);
	EXPECT_EQ(-ETIMEDOUT, ht_raw(self->fd, HAMLYN_IOC_WAIT, &a));
	a.more[63] = 1;
	EXPECT_EQ(-E2BIG, ht_raw(self->fd, HAMLYN_IOC_WAIT, &a));
	a.more[63] = 0;
	for (bit = 1; bit; bit <<= 1) {
		a.wait.flags = bit;
		EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_WAIT, &a));
	}
	EXPECT_EQ(-EFAULT, ht_raw(self->fd, HAMLYN_IOC_WAIT, NULL));
	memcpy(self->page + PAGE - 8, &(uint32_t){ sizeof(a.wait) }, 4);
	EXPECT_EQ(-EFAULT, ht_raw(self->fd, HAMLYN_IOC_WAIT,
				  self->page + PAGE - 8));
}

/* ---- other calls on the file -------------------------------------------- */

TEST_F(uapi_size, the_file_can_only_be_used_as_documented)
{
	char byte = 0;

	EXPECT_EQ(-1, read(self->fd, &byte, 1));
	EXPECT_EQ(-1, write(self->fd, &byte, 1));
	EXPECT_EQ(-1, pread(self->fd, &byte, 1, 0));
	EXPECT_EQ(-1, ftruncate(self->fd, 0));
	/* It is not seekable, or seeking means nothing; either is harmless. */
	lseek(self->fd, 4096, SEEK_SET);
	EXPECT_EQ(0, ioctl(self->fd, HAMLYN_IOC_KICK,
			   (unsigned long)self->terminus));
}

TEST_HARNESS_MAIN
