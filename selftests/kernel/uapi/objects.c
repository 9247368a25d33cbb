// SPDX-License-Identifier: GPL-2.0-only
/*
 * What no other test noticed when selftests/mutants/run.py took it out: what each
 * object and each failed call leaves behind in the kernel's memory, and the
 * edges of what is allowed. Kernel device only, run as root.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define PAGE	4096UL

/* ---- what the kernel has got less of ------------------------------------- */

/* So many rounds that a leak of the smallest object is beyond all noise. */
#define ROUNDS	4000

struct taken {
	long slab_kib;		/* kmalloc() of kernel objects */
	long pages_kib;		/* all memory that is not free */
	long vmalloc_kib;
	long pins;		/* pages pinned and not unpinned */
};

static long number_of(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	char line[128], word[64];
	long value = 0, found;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%63s %ld", word, &found) == 2 &&
		    !strcmp(word, name))
			value = found;
	fclose(file);
	return value;
}

static void look(struct taken *t)
{
	t->slab_kib = number_of("/proc/meminfo", "SUnreclaim:");
	t->pages_kib = number_of("/proc/meminfo", "MemTotal:") -
		       number_of("/proc/meminfo", "MemFree:");
	t->vmalloc_kib = number_of("/proc/meminfo", "VmallocUsed:");
	t->pins = number_of("/proc/vmstat", "nr_foll_pin_acquired") -
		  number_of("/proc/vmstat", "nr_foll_pin_released");
}

typedef int (*round_fn)(int fd, uint32_t area, unsigned int i);

/*
 * Room for what the kernel itself takes meanwhile: half of what is left behind if
 * it is 32 bytes a round, or a page a round.
 */
static const char *compare(const struct taken *was, const struct taken *is)
{
	static char said[160];

	snprintf(said, sizeof(said),
		 "%ld KiB of slabs, %ld of pages, %ld of vmalloc, %ld pins are left",
		 is->slab_kib - was->slab_kib, is->pages_kib - was->pages_kib,
		 is->vmalloc_kib - was->vmalloc_kib, is->pins - was->pins);
	if (is->slab_kib - was->slab_kib >= ROUNDS * 16 / 1024 ||
	    is->pages_kib - was->pages_kib >= ROUNDS * 2 ||
	    is->vmalloc_kib - was->vmalloc_kib >= ROUNDS * 2 ||
	    is->pins - was->pins >= ROUNDS / 2)
		return said;
	return NULL;
}

static int rounds(int fd, uint32_t area, round_fn fn, unsigned int n)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < n && !ret; i++)
		ret = fn(fd, area, i);
	return ret;
}

/* The kernel frees some of it seconds later: so look again for a while. */
static const char *leaves_once(int fd, uint32_t area, round_fn fn)
{
	static char failed[64];
	struct taken was, is;
	const char *complaint;
	struct ht_poll poll;
	int ret;

	look(&was);
	ret = rounds(fd, area, fn, ROUNDS);
	snprintf(failed, sizeof(failed), "a round ended with %d", ret);
	if (ret)
		return failed;
	ht_poll_begin(&poll);
	poll.end = ht_now_ns() + 10 * HT_SEC;
	do {
		look(&is);
		complaint = compare(&was, &is);
	} while (complaint && ht_poll_more(&poll));
	return complaint;
}

/* What leaks does so each time; caches that grow have grown once. */
static const char *leaves(int fd, uint32_t area, round_fn fn)
{
	const char *complaint;
	int tries = 0;

	if (rounds(fd, area, fn, ROUNDS / 8))
		return "the first rounds ended with an error";
	ht_sleep_ns(200 * HT_MS);
	do
		complaint = leaves_once(fd, area, fn);
	while (complaint && ++tries < 4);
	return complaint;
}

FIXTURE(leak) {
	int fd;
	struct hamlyn_area_alloc area;
};

FIXTURE_SETUP(leak)
{
	self->fd = ht_raw_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &self->area, NULL));
}

FIXTURE_TEARDOWN(leak)
{
	/* And nothing keeps it in use. */
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE,
			       self->area.area));
	close(self->fd);
}

/* ---- objects -------------------------------------------------------------- */

static int round_open(int fd, uint32_t area, unsigned int i)
{
	int other = ht_raw_open();

	(void)fd;
	(void)area;
	(void)i;
	return other < 0 ? other : close(other);
}

TEST_F(leak, an_open_file_leaves_nothing)
{
	EXPECT_NO(leaves(self->fd, self->area.area, round_open));
}

static int round_pin(int fd, uint32_t area, unsigned int i)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hamlyn_area_add arg = { .size = sizeof(arg), .length = 2 * PAGE };
	int ret;

	(void)area;
	if (p == MAP_FAILED)
		return -errno;
	/* Unaligned: one page more. Some read-only. */
	arg.addr = (uintptr_t)p + 64;
	arg.flags = i & 1 ? HAMLYN_AREA_READONLY : 0;
	ret = ht_raw(fd, HAMLYN_IOC_AREA_ADD, &arg);
	if (!ret)
		ret = ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, arg.area);
	munmap(p, 3 * PAGE);
	return ret;
}

TEST_F(leak, a_pinned_area_leaves_nothing)
{
	EXPECT_NO(leaves(self->fd, self->area.area, round_pin));
}

static int round_alloc(int fd, uint32_t area, unsigned int i)
{
	struct hamlyn_area_alloc arg;
	void *map;
	int ret = ht_raw_area_alloc(fd, PAGE, &arg, &map);

	(void)area;
	(void)i;
	if (!ret)
		ret = ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, arg.area);
	if (!ret)
		munmap(map, PAGE);
	return ret;
}

TEST_F(leak, an_allocated_area_leaves_nothing)
{
	EXPECT_NO(leaves(self->fd, self->area.area, round_alloc));
}

static int round_nq(int fd, uint32_t area, unsigned int i)
{
	struct ht_raw_nq nq;
	int ret = ht_raw_nq_create(fd, 16, &nq);

	(void)area;
	(void)i;
	if (ret)
		return ret;
	ht_raw_nq_unmap(&nq);
	return ht_raw_id(fd, HAMLYN_IOC_NQ_DESTROY, nq.arg.nq);
}

TEST_F(leak, an_nq_leaves_nothing)
{
	EXPECT_NO(leaves(self->fd, self->area.area, round_nq));
}

static int round_slot(int fd, uint32_t area, unsigned int i)
{
	struct hamlyn_slot_create arg;
	int ret = ht_raw_slot_create(fd, area, 64, HAMLYN_NONE, &arg);

	(void)i;
	return ret ? ret : ht_raw_id(fd, HAMLYN_IOC_SLOT_DESTROY, arg.slot);
}

TEST_F(leak, a_slot_leaves_nothing)
{
	EXPECT_NO(leaves(self->fd, self->area.area, round_slot));
}

static int round_terminus(int fd, uint32_t area, unsigned int i)
{
	struct ht_raw_terminus t;
	int ret = ht_raw_terminus_create(fd, 8, 128, &t);

	(void)i;
	if (ret)
		return ret;
	ret = ht_raw_bind(fd, t.arg.terminus, 1, area, 0, 64);
	ht_raw_terminus_unmap(&t);
	if (!ret)
		ret = ht_raw_id(fd, HAMLYN_IOC_TERMINUS_DESTROY,
				t.arg.terminus);
	return ret;
}

/* A table that grows three times. */
static int round_tags(int fd, uint32_t area, unsigned int i)
{
	static const uint32_t tags[] = { 7, 8, 100, HAMLYN_MAX_TAGS - 1 };
	struct ht_raw_terminus t;
	int ret = ht_raw_terminus_create(fd, 2, 128, &t);
	unsigned int k;

	(void)i;
	if (ret)
		return ret;
	for (k = 0; k < ARRAY_SIZE(tags) && !ret; k++)
		ret = ht_raw_bind(fd, t.arg.terminus, tags[k], area, 0, 64);
	ht_raw_terminus_unmap(&t);
	if (!ret)
		ret = ht_raw_id(fd, HAMLYN_IOC_TERMINUS_DESTROY, t.arg.terminus);
	return ret;
}

TEST_F(leak, a_table_of_tags_leaves_nothing)
{
	EXPECT_NO(leaves(self->fd, self->area.area, round_tags));
}

TEST_F(leak, a_terminus_leaves_nothing)
{
	EXPECT_NO(leaves(self->fd, self->area.area, round_terminus));
}

/* A process that ends with everything still there, many times. */
static int round_all(int fd, uint32_t area, unsigned int i)
{
	struct ht_raw_terminus t;
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc own;
	struct ht_raw_nq nq;
	int other = ht_raw_open();
	int ret;

	(void)fd;
	(void)area;
	(void)i;
	if (other < 0)
		return other;
	ret = ht_raw_area_alloc(other, PAGE, &own, NULL);
	if (!ret)
		ret = ht_raw_nq_create(other, 16, &nq);
	if (ret)
		return ret;
	ret = ht_raw_slot_create(other, own.area, 64, nq.arg.nq, &slot);
	if (!ret)
		ret = ht_raw_terminus_create(other, 8, 128, &t);
	if (ret)
		return ret;
	ret = ht_raw_bind(other, t.arg.terminus, 1, own.area, 0, 64);
	ht_raw_terminus_unmap(&t);
	ht_raw_nq_unmap(&nq);
	close(other);
	return ret;
}

TEST_F(leak, an_end_without_clearing_up_leaves_nothing)
{
	EXPECT_NO(leaves(self->fd, self->area.area, round_all));
}

/* ---- tickets -------------------------------------------------------------- */

static int ticket_fd(int fd, uint32_t slot)
{
	struct hamlyn_ticket_create arg = { .size = sizeof(arg), .slot = slot };
	int ret = ht_raw(fd, HAMLYN_IOC_TICKET_CREATE, &arg);

	return ret ? ret : arg.fd;
}

static uint32_t ticket_slot, ticket_terminus;

static int round_ticket(int fd, uint32_t area, unsigned int i)
{
	struct hamlyn_ticket_import import = {
		.size = sizeof(import), .terminus = ticket_terminus,
	};
	struct hamlyn_ticket_drop drop = {
		.size = sizeof(drop), .terminus = ticket_terminus,
	};
	int ret;

	(void)area;
	(void)i;
	import.fd = ticket_fd(fd, ticket_slot);
	if (import.fd < 0)
		return import.fd;
	ret = ht_raw(fd, HAMLYN_IOC_TICKET_IMPORT, &import);
	close(import.fd);
	drop.index = import.index;
	return ret ? ret : ht_raw(fd, HAMLYN_IOC_TICKET_DROP, &drop);
}

TEST_F(leak, a_ticket_leaves_nothing)
{
	struct hamlyn_slot_create slot;
	struct ht_raw_terminus t;

	ASSERT_EQ(0, ht_raw_slot_create(self->fd, self->area.area, 64,
					HAMLYN_NONE, &slot));
	ASSERT_EQ(0, ht_raw_terminus_create(self->fd, 8, 128, &t));
	ticket_slot = slot.slot;
	ticket_terminus = t.arg.terminus;
	EXPECT_NO(leaves(self->fd, self->area.area, round_ticket));
	ht_raw_terminus_unmap(&t);
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_TERMINUS_DESTROY,
			       t.arg.terminus));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_SLOT_DESTROY, slot.slot));
}

/* A terminus with tickets in its table. */
static int round_table(int fd, uint32_t area, unsigned int i)
{
	struct hamlyn_ticket_import import = { .size = sizeof(import) };
	struct ht_raw_terminus t;
	int ret = ht_raw_terminus_create(fd, 8, 128, &t);

	(void)area;
	(void)i;
	if (ret)
		return ret;
	import.terminus = t.arg.terminus;
	import.fd = ticket_fd(fd, ticket_slot);
	ret = import.fd < 0 ? import.fd :
	      ht_raw(fd, HAMLYN_IOC_TICKET_IMPORT, &import);
	close(import.fd);
	ht_raw_terminus_unmap(&t);
	return ret ? ret : ht_raw_id(fd, HAMLYN_IOC_TERMINUS_DESTROY,
				     t.arg.terminus);
}

TEST_F(leak, a_table_of_tickets_leaves_nothing)
{
	struct hamlyn_slot_create slot;

	ASSERT_EQ(0, ht_raw_slot_create(self->fd, self->area.area, 64,
					HAMLYN_NONE, &slot));
	ticket_slot = slot.slot;
	EXPECT_NO(leaves(self->fd, self->area.area, round_table));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_SLOT_DESTROY, slot.slot));
}

/* ---- calls that fail half-way ---------------------------------------------- */

static int refused(int ret, int want)
{
	return ret == want ? 0 : ret ? ret : -EPROTO;
}

/* The areas are taken before it is seen that there is no such NQ. */
static int round_bad_slot(int fd, uint32_t area, unsigned int i)
{
	struct hamlyn_slot_create arg = {
		.size = sizeof(arg), .area = area, .length = 64,
		.meta_area = area, .meta_count = 1, .meta_base = 128,
		.nq = 4242,
	};

	(void)i;
	return refused(ht_raw(fd, HAMLYN_IOC_SLOT_CREATE, &arg), -ENOENT);
}

TEST_F(leak, a_slot_that_is_refused_leaves_nothing)
{
	EXPECT_NO(leaves(self->fd, self->area.area, round_bad_slot));
}

/* What it was charged for is given back, too: else the limit is soon reached. */
static int round_bad_pin(int fd, uint32_t area, unsigned int i)
{
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hamlyn_area_add arg = { .size = sizeof(arg), .length = 4 * PAGE };
	int ret;

	(void)area;
	(void)i;
	if (p == MAP_FAILED)
		return -errno;
	/* Its third page is not there. */
	munmap(p + 2 * PAGE, PAGE);
	arg.addr = (uintptr_t)p;
	ret = refused(ht_raw(fd, HAMLYN_IOC_AREA_ADD, &arg), -EFAULT);
	munmap(p, 2 * PAGE);
	munmap(p + 3 * PAGE, PAGE);
	return ret;
}

TEST_F(leak, memory_that_cannot_be_pinned_leaves_nothing)
{
	EXPECT_NO(leaves(self->fd, self->area.area, round_bad_pin));
}

static int round_bad_ticket(int fd, uint32_t area, unsigned int i)
{
	struct hamlyn_ticket_create arg = { .size = sizeof(arg), .slot = 1u << 31 };

	(void)area;
	(void)i;
	return refused(ht_raw(fd, HAMLYN_IOC_TICKET_CREATE, &arg), -ENOENT);
}

TEST_F(leak, a_ticket_that_is_refused_leaves_nothing)
{
	EXPECT_NO(leaves(self->fd, self->area.area, round_bad_ticket));
}

/* ---- edges of what is allowed ------------------------------------------------ */

#define NOTHING	4242u	/* no object has this id or number */

FIXTURE(edge) {
	int fd;
	struct hamlyn_area_alloc area;
	struct hamlyn_slot_create slot;
	struct ht_raw_terminus t;
};

FIXTURE_SETUP(edge)
{
	self->fd = ht_raw_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, 2 * PAGE, &self->area, NULL));
	ASSERT_EQ(0, ht_raw_slot_create(self->fd, self->area.area, PAGE,
					HAMLYN_NONE, &self->slot));
	ASSERT_EQ(0, ht_raw_terminus_create(self->fd, 8, 128, &self->t));
}

FIXTURE_TEARDOWN(edge)
{
	ht_raw_terminus_unmap(&self->t);
	close(self->fd);
}

/* Metadata entries without an area, modes that there are not, and no such NQ. */
TEST_F(edge, slots_that_make_no_sense_are_refused)
{
	const struct hamlyn_slot_create good = {
		.size = sizeof(good), .area = self->area.area, .length = PAGE,
		.meta_area = self->area.area, .meta_count = 2,
		.meta_base = PAGE, .nq = HAMLYN_NONE,
	};
	struct hamlyn_slot_create arg = good;

	EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &arg));
	arg = good;
	arg.meta_area = HAMLYN_NONE;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &arg));
	arg.meta_count = 0;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &arg));
	arg.meta_count = 2;
	arg.meta_base = 0;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &arg));
	arg = good;
	arg.mode = HAMLYN_SLOT_PARANOID_ONE_SHOT + 1;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &arg));
	arg = good;
	arg.mode = HAMLYN_SLOT_PARANOID;
	arg.meta_area = HAMLYN_NONE;
	arg.meta_count = 0;
	arg.meta_base = 0;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &arg));
	arg = good;
	arg.nq = NOTHING;
	EXPECT_EQ(-ENOENT, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &arg));
	arg = good;
	arg.area = NOTHING;
	EXPECT_EQ(-ENOENT, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &arg));
	arg = good;
	arg.length = 2 * PAGE + 1;
	EXPECT_EQ(-ERANGE, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &arg));
}

/* As many as there are; then one after the other can go and come back. */
TEST_F(edge, there_are_as_many_slots_as_the_nic_has)
{
	struct hamlyn_slot_create arg;
	struct hamlyn_query query;
	unsigned int n;
	int ret = 0;

	ASSERT_EQ(0, ht_raw_query(self->fd, &query));
	for (n = 0; !ret && n <= query.max_slots; n++)
		ret = ht_raw_slot_create(self->fd, self->area.area, 64,
					 HAMLYN_NONE, &arg);
	EXPECT_EQ(-ENOSPC, ret);
	ASSERT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_SLOT_DESTROY,
			       self->slot.slot));
	EXPECT_EQ(0, ht_raw_slot_create(self->fd, self->area.area, 64,
					HAMLYN_NONE, &arg));
	EXPECT_EQ(self->slot.slot, arg.slot);
}

TEST_F(edge, what_is_not_there_cannot_be_destroyed)
{
	EXPECT_EQ(-ENOENT, ht_raw_id(self->fd, HAMLYN_IOC_SLOT_DESTROY, NOTHING));
	EXPECT_EQ(-ENOENT, ht_raw_id(self->fd, HAMLYN_IOC_TERMINUS_DESTROY,
				     NOTHING));
	EXPECT_EQ(-ENOENT, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, NOTHING));
	EXPECT_EQ(-ENOENT, ht_raw_id(self->fd, HAMLYN_IOC_NQ_DESTROY, NOTHING));
	EXPECT_EQ(-ENOENT, ht_raw_id(self->fd, HAMLYN_IOC_UNWATCH, NOTHING));
	EXPECT_EQ(-EBUSY, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE,
				    self->area.area));
}

TEST_F(edge, termini_of_other_sizes_are_refused)
{
	static const struct { uint32_t entries, entry_size; } bad[] = {
		{ 3, 128 }, { 1, 128 }, { 0, 128 }, { 8192, 128 },
		{ 8, 192 }, { 8, 64 }, { 8, 0 }, { 8, 8192 },
	};
	struct ht_raw_terminus t;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(-EINVAL, ht_raw_terminus_create(self->fd, bad[i].entries,
							  bad[i].entry_size, &t));
	EXPECT_EQ(0, ht_raw_terminus_create(self->fd, 2, 4096, &t));
	ht_raw_terminus_unmap(&t);
}

TEST_F(edge, termini_of_no_priority_or_weight_are_refused)
{
	const struct hamlyn_terminus_create good = {
		.size = sizeof(good), .entries = 8, .entry_size = 128,
	};
	struct hamlyn_terminus_create arg = good;

	arg.priority = HAMLYN_PRIORITIES;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &arg));
	arg = good;
	arg.weight = HAMLYN_MAX_WEIGHT + 1;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &arg));
	arg = good;
	arg.reserved = 1;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &arg));
	arg = good;
	arg.priority = HAMLYN_PRIORITY_HIGH;
	arg.weight = HAMLYN_MAX_WEIGHT;
	EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &arg));
}

TEST_F(edge, a_user_gets_no_priority_and_no_weight)
{
	struct hamlyn_terminus_create arg = {
		.size = sizeof(arg), .entries = 8, .entry_size = 128,
	};
	int status = 0;
	pid_t pid = ht_fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		if (setresuid(65534, 65534, 65534))
			_exit(2);
		arg.weight = 1;
		if (ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &arg))
			_exit(3);
		arg.weight = 2;
		if (ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &arg) != -EPERM)
			_exit(4);
		arg.weight = 1;
		arg.priority = HAMLYN_PRIORITY_HIGH;
		if (ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &arg) != -EPERM)
			_exit(5);
		_exit(0);
	}
	status = ht_reap(pid);
	EXPECT_EQ(0, status);
}

TEST_F(edge, tags_that_make_no_sense_are_not_bound)
{
	const uint32_t t = self->t.arg.terminus, area = self->area.area;

	EXPECT_EQ(-EINVAL, ht_raw_bind(self->fd, t, HAMLYN_MAX_TAGS, area, 0, 64));
	EXPECT_EQ(-EINVAL, ht_raw_bind(self->fd, t, 0, area, 0, 0));
	EXPECT_EQ(-EINVAL, ht_raw_bind(self->fd, t, 0, HAMLYN_NONE, 0, 64));
	EXPECT_EQ(-EINVAL, ht_raw_bind(self->fd, t, 0, HAMLYN_NONE, 64, 0));
	EXPECT_EQ(-ENOENT, ht_raw_bind(self->fd, NOTHING, 0, area, 0, 64));
	EXPECT_EQ(-ENOENT, ht_raw_bind(self->fd, t, 0, NOTHING, 0, 64));
	EXPECT_EQ(-ERANGE, ht_raw_bind(self->fd, t, 0, area, PAGE, PAGE + 1));
	EXPECT_EQ(0, ht_raw_bind(self->fd, t, 0, area, PAGE, PAGE));
	EXPECT_EQ(0, ht_raw_bind(self->fd, t, HAMLYN_MAX_TAGS - 1, area, 0, 1));
	EXPECT_EQ(0, ht_raw_bind(self->fd, t, 0, HAMLYN_NONE, 0, 0));
}

/* Each tag that is bound counts, and goes with its terminus. */
TEST_F(edge, what_a_tag_names_stays_until_the_terminus_goes)
{
	struct hamlyn_area_alloc other;

	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &other, NULL));
	ASSERT_EQ(0, ht_raw_bind(self->fd, self->t.arg.terminus, 3, other.area, 0,
				 64));
	EXPECT_EQ(-EBUSY, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, other.area));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_TERMINUS_DESTROY,
			       self->t.arg.terminus));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, other.area));
}

static int import_ticket(int fd, uint32_t terminus, int ticket, uint32_t *index)
{
	struct hamlyn_ticket_import arg = {
		.size = sizeof(arg), .terminus = terminus, .fd = ticket,
	};
	int ret = ht_raw(fd, HAMLYN_IOC_TICKET_IMPORT, &arg);

	*index = arg.index;
	return ret;
}

static int drop_ticket(int fd, uint32_t terminus, uint32_t index)
{
	struct hamlyn_ticket_drop arg = {
		.size = sizeof(arg), .terminus = terminus, .index = index,
	};

	return ht_raw(fd, HAMLYN_IOC_TICKET_DROP, &arg);
}

TEST_F(edge, tickets_are_for_what_there_is)
{
	const struct hamlyn_ticket_create good = {
		.size = sizeof(good), .slot = self->slot.slot,
	};
	struct hamlyn_ticket_create arg = good;

	arg.flags = 1;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_TICKET_CREATE, &arg));
	arg = good;
	arg.slot = 1u << 30;
	EXPECT_EQ(-ENOENT, ht_raw(self->fd, HAMLYN_IOC_TICKET_CREATE, &arg));
	arg = good;
	arg.base = PAGE + 1;
	EXPECT_EQ(-ERANGE, ht_raw(self->fd, HAMLYN_IOC_TICKET_CREATE, &arg));
	arg.base = 1;
	arg.length = PAGE;
	EXPECT_EQ(-ERANGE, ht_raw(self->fd, HAMLYN_IOC_TICKET_CREATE, &arg));
	arg.length = PAGE - 1;
	EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_TICKET_CREATE, &arg));
	close(arg.fd);
}

TEST_F(edge, only_good_tickets_are_imported)
{
	const uint32_t t = self->t.arg.terminus;
	struct hamlyn_slot_rekey rekey = {
		.size = sizeof(rekey), .slot = self->slot.slot,
	};
	int ticket = ticket_fd(self->fd, self->slot.slot);
	uint32_t index, again;

	ASSERT_GE(ticket, 0);
	EXPECT_EQ(-EBADF, import_ticket(self->fd, t, 4095, &index));
	EXPECT_EQ(-EBADF, import_ticket(self->fd, t, self->fd, &index));
	EXPECT_EQ(-ENOENT, import_ticket(self->fd, NOTHING, ticket, &index));
	ASSERT_EQ(0, import_ticket(self->fd, t, ticket, &index));
	ASSERT_EQ(0, import_ticket(self->fd, t, ticket, &again));
	EXPECT_NE(index, again);
	EXPECT_EQ(-ENOENT, drop_ticket(self->fd, NOTHING, index));
	EXPECT_EQ(-ENOKEY, drop_ticket(self->fd, t, again + 1));
	EXPECT_EQ(-ENOKEY, drop_ticket(self->fd, t, 16));
	EXPECT_EQ(-ENOKEY, drop_ticket(self->fd, t, 1u << 31));
	EXPECT_EQ(0, drop_ticket(self->fd, t, index));
	EXPECT_EQ(-ENOKEY, drop_ticket(self->fd, t, index));
	ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_SLOT_REKEY, &rekey));
	EXPECT_EQ(-ENOKEY, import_ticket(self->fd, t, ticket, &index));
	ASSERT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_SLOT_DESTROY,
			       self->slot.slot));
	EXPECT_EQ(-ENOKEY, import_ticket(self->fd, t, ticket, &index));
	close(ticket);
}

TEST_F(edge, a_terminus_holds_so_many_tickets_and_no_more)
{
	const uint32_t t = self->t.arg.terminus;
	int ticket = ticket_fd(self->fd, self->slot.slot);
	uint32_t i, index = 0;
	int ret = 0;

	ASSERT_GE(ticket, 0);
	for (i = 0; !ret && i < HAMLYN_MAX_TICKETS; i++)
		ret = import_ticket(self->fd, t, ticket, &index);
	EXPECT_EQ(0, ret);
	EXPECT_EQ(HAMLYN_MAX_TICKETS - 1, index);
	EXPECT_EQ(-ENOSPC, import_ticket(self->fd, t, ticket, &index));
	EXPECT_EQ(0, drop_ticket(self->fd, t, 77));
	EXPECT_EQ(0, import_ticket(self->fd, t, ticket, &index));
	EXPECT_EQ(77, index);
	close(ticket);
}

static int pin_area(int fd, uint64_t addr, uint64_t length, uint32_t flags,
		    uint32_t *id)
{
	struct hamlyn_area_add arg = {
		.size = sizeof(arg), .flags = flags, .addr = addr,
		.length = length,
	};
	int ret = ht_raw(fd, HAMLYN_IOC_AREA_ADD, &arg);

	*id = arg.area;
	return ret;
}

TEST_F(edge, memory_that_is_none_is_not_pinned)
{
	static char page[2 * PAGE] __attribute__((aligned(4096)));
	const uint64_t at = (uintptr_t)page;
	struct hamlyn_area_alloc alloc = { .size = sizeof(alloc) };
	uint32_t id;

	EXPECT_EQ(-EINVAL, pin_area(self->fd, at, 0, 0, &id));
	EXPECT_EQ(-EINVAL, pin_area(self->fd, at, PAGE, 1u << 31, &id));
	EXPECT_EQ(-E2BIG, pin_area(self->fd, at, (64ULL << 30) + 1, 0, &id));
	EXPECT_EQ(-EFAULT, pin_area(self->fd, ~0ULL, PAGE, 0, &id));
	EXPECT_EQ(-EFAULT, pin_area(self->fd, ~0ULL - PAGE, PAGE, 0, &id));
	/* The kernel's half. */
	EXPECT_EQ(-EFAULT, pin_area(self->fd, 1ULL << 63, PAGE, 0, &id));
	EXPECT_EQ(-EFAULT, pin_area(self->fd, 0xffff888000000000ULL, PAGE,
				    HAMLYN_AREA_READONLY, &id));
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_AREA_ALLOC, &alloc));
	alloc.length = (64ULL << 30) + 1;
	EXPECT_EQ(-E2BIG, ht_raw(self->fd, HAMLYN_IOC_AREA_ALLOC, &alloc));
	alloc.length = PAGE;
	alloc.reserved = 1;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_AREA_ALLOC, &alloc));
}

/* It is read from, but no message and no metadata lands in it. */
TEST_F(edge, a_read_only_area_is_only_sent_from)
{
	static char page[PAGE] __attribute__((aligned(4096)));
	struct hamlyn_slot_create arg;
	uint32_t id;

	ASSERT_EQ(0, pin_area(self->fd, (uintptr_t)page, PAGE,
			      HAMLYN_AREA_READONLY, &id));
	EXPECT_EQ(0, ht_raw_bind(self->fd, self->t.arg.terminus, 0, id, 0, PAGE));
	EXPECT_EQ(-EACCES, ht_raw_slot_create(self->fd, id, PAGE, HAMLYN_NONE,
					      &arg));
	arg = (struct hamlyn_slot_create) {
		.size = sizeof(arg), .area = self->area.area, .length = 64,
		.meta_area = id, .meta_count = 1, .nq = HAMLYN_NONE,
	};
	EXPECT_EQ(-EACCES, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &arg));
}

/* Pages that do not follow each other: more pieces than a table begins with. */
TEST_F(edge, an_area_of_many_pieces_is_one)
{
	const size_t pages = 160;
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc from;
	unsigned char *p, *data;
	struct hamlyn_trb *trb;
	uint32_t id;
	size_t i;
	int status;

	p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	/* Touched from the end, and every second one first. */
	for (i = 0; i < pages; i++)
		p[(pages - 1 - (i * 2 % pages + (i * 2 >= pages))) * PAGE] = 0;
	ASSERT_EQ(0, pin_area(self->fd, (uintptr_t)p, pages * PAGE, 0, &id));
	ASSERT_EQ(0, ht_raw_slot_create(self->fd, id, pages * PAGE, HAMLYN_NONE,
					&slot));
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, pages * PAGE, &from,
				       (void **)&data));
	ht_fill(data, pages * PAGE, 7);
	ASSERT_EQ(0, ht_raw_bind(self->fd, self->t.arg.terminus, 0, from.area, 0,
				 pages * PAGE));
	trb = ht_raw_entry(&self->t);
	*trb = (struct hamlyn_trb) {
		.slot = slot.slot, .key = slot.key, .length = pages * PAGE,
		.delta = 1, .fragments = 1, .flags = HAMLYN_TRB_NO_NOTIFY,
	};
	((struct hamlyn_fragment *)(trb + 1))[0] = (struct hamlyn_fragment) {
		.length = pages * PAGE,
	};
	ASSERT_EQ(0, ht_raw_post(&self->t));
	ASSERT_EQ(0, ht_raw_done(&self->t, 0, &status));
	EXPECT_EQ(0, status);
	EXPECT_EQ(pages * PAGE, ht_match(p, pages * PAGE, 7));
	munmap(p, pages * PAGE);
	munmap(data, pages * PAGE);
}

TEST_F(edge, rings_of_no_size_are_refused)
{
	struct hamlyn_nq_create arg = { .size = sizeof(arg) };
	static const uint32_t bad[] = { 0, 1, 3, 6, 1u << 21, 1u << 31 };
	struct hamlyn_query query;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		arg.entries = bad[i];
		EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_NQ_CREATE, &arg));
	}
	arg.entries = 2;
	EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_NQ_CREATE, &arg));
	/* The largest is one, if there is the memory. */
	ASSERT_EQ(0, ht_raw_query(self->fd, &query));
	arg.entries = query.max_nq_entries;
	EXPECT_NE(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_NQ_CREATE, &arg));
	arg.entries *= 2;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_NQ_CREATE, &arg));
}

/* The deadline may be over already; then it is not waited at all. */
TEST_F(edge, waiting_ends_at_its_time)
{
	struct hamlyn_wait wait = { .size = sizeof(wait) };
	struct ht_raw_nq nq;
	int64_t began;

	ASSERT_EQ(0, ht_raw_nq_create(self->fd, 4, &nq));
	wait.nq = NOTHING;
	EXPECT_EQ(-ENOENT, ht_raw(self->fd, HAMLYN_IOC_WAIT, &wait));
	wait.nq = nq.arg.nq;
	wait.flags = 1;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_WAIT, &wait));
	wait.flags = 0;
	wait.deadline_ns = 0;
	EXPECT_EQ(-ETIMEDOUT, ht_raw(self->fd, HAMLYN_IOC_WAIT, &wait));
	began = ht_now_ns();
	wait.deadline_ns = began + 20 * HT_MS;
	EXPECT_EQ(-ETIMEDOUT, ht_raw(self->fd, HAMLYN_IOC_WAIT, &wait));
	EXPECT_LE(20 * HT_MS, ht_now_ns() - began);
	ht_raw_nq_unmap(&nq);
}

static int watch(int fd, const struct hamlyn_watch *want)
{
	struct hamlyn_watch arg = *want;

	arg.size = sizeof(arg);
	return ht_raw(fd, HAMLYN_IOC_WATCH, &arg);
}

TEST_F(edge, watches_that_make_no_sense_are_refused)
{
	struct hamlyn_watch good, arg;
	struct ht_raw_nq nq;
	int ticket = ticket_fd(self->fd, self->slot.slot);

	ASSERT_GE(ticket, 0);
	ASSERT_EQ(0, ht_raw_nq_create(self->fd, 4, &nq));
	good = (struct hamlyn_watch) {
		.slot = self->slot.slot, .key = self->slot.key, .nq = nq.arg.nq,
	};
	EXPECT_EQ(0, watch(self->fd, &good));
	arg = good;
	arg.flags = 1u << 31;
	EXPECT_EQ(-EINVAL, watch(self->fd, &arg));
	arg = good;
	arg.reserved = 1;
	EXPECT_EQ(-EINVAL, watch(self->fd, &arg));
	arg = good;
	arg.nq = NOTHING;
	EXPECT_EQ(-ENOENT, watch(self->fd, &arg));
	good = (struct hamlyn_watch) {
		.flags = HAMLYN_WATCH_TICKET, .key = ticket, .nq = nq.arg.nq,
	};
	EXPECT_EQ(0, watch(self->fd, &good));
	arg = good;
	arg.host = 1;
	EXPECT_EQ(-EINVAL, watch(self->fd, &arg));
	arg = good;
	arg.slot = 1;
	EXPECT_EQ(-EINVAL, watch(self->fd, &arg));
	arg = good;
	arg.meta_index = 1;
	EXPECT_EQ(-EINVAL, watch(self->fd, &arg));
	arg = good;
	arg.key |= 1ULL << 32;
	EXPECT_EQ(-EBADF, watch(self->fd, &arg));
	close(ticket);
	ht_raw_nq_unmap(&nq);
}

static int try_map(int fd, uint64_t length, uint64_t offset, int prot, int flags)
{
	void *p = mmap(NULL, length, prot, flags, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, length);
	return 0;
}

TEST_F(edge, only_whole_objects_are_mapped_and_as_they_are_meant)
{
	const int rw = PROT_READ | PROT_WRITE;
	const struct hamlyn_terminus_create *t = &self->t.arg;
	const uint64_t area = self->area.mmap_offset, other = (uint64_t)NOTHING << 32;
	struct ht_raw_nq nq;
	static char page[PAGE] __attribute__((aligned(4096)));
	uint32_t id;

	ASSERT_EQ(0, ht_raw_nq_create(self->fd, 4, &nq));
	EXPECT_EQ(0, try_map(self->fd, 2 * PAGE, area, rw, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->fd, PAGE, area, rw, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->fd, 3 * PAGE, area, rw, MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->fd, 2 * PAGE, area + PAGE, rw, MAP_SHARED));
	EXPECT_EQ(-EPERM, try_map(self->fd, 2 * PAGE, area, rw, MAP_PRIVATE));
	EXPECT_EQ(-EPERM, try_map(self->fd, 2 * PAGE, area, PROT_READ | PROT_EXEC,
				  MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->fd, t->wq_length + PAGE, t->wq_offset, rw,
				   MAP_SHARED));
	EXPECT_EQ(-EPERM, try_map(self->fd, t->status_length, t->status_offset, rw,
				  MAP_SHARED));
	EXPECT_EQ(-EPERM, try_map(self->fd, nq.arg.ring_length, nq.arg.ring_offset,
				  rw, MAP_SHARED));
	/* Ids that there are not. */
	EXPECT_EQ(-EINVAL, try_map(self->fd, 2 * PAGE, area + other, rw,
				   MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->fd, t->wq_length, t->wq_offset + other, rw,
				   MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(self->fd, nq.arg.control_length,
				   nq.arg.control_offset + other, rw, MAP_SHARED));
	/* What is mapped already, by its owner. */
	ASSERT_EQ(0, pin_area(self->fd, (uintptr_t)page, PAGE, 0, &id));
	EXPECT_EQ(-EINVAL, try_map(self->fd, PAGE, area - ((uint64_t)self->area.area << 32) +
				   ((uint64_t)id << 32), rw, MAP_SHARED));
	ht_raw_nq_unmap(&nq);
}

/* Nor has a process other pages of its own mapped anew, perhaps with more rights. */
TEST_F(edge, pinned_memory_is_not_mapped_by_the_device)
{
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t at = self->area.mmap_offset - ((uint64_t)self->area.area << 32);
	uint32_t id;

	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, pin_area(self->fd, (uintptr_t)p, PAGE, HAMLYN_AREA_READONLY,
			      &id));
	EXPECT_EQ(-EINVAL, try_map(self->fd, PAGE, at + ((uint64_t)id << 32),
				   PROT_READ | PROT_WRITE, MAP_SHARED));
	munmap(p, PAGE);
}

/* Each use is counted once, and given back once. */
TEST_F(edge, what_a_slot_used_can_go_when_it_is_gone)
{
	struct hamlyn_area_alloc area, meta;
	struct hamlyn_slot_create arg;
	struct ht_raw_nq nq;

	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &area, NULL));
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &meta, NULL));
	ASSERT_EQ(0, ht_raw_nq_create(self->fd, 4, &nq));
	arg = (struct hamlyn_slot_create) {
		.size = sizeof(arg), .area = area.area, .length = 64,
		.meta_area = meta.area, .meta_count = 1, .nq = nq.arg.nq,
	};
	ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &arg));
	ht_raw_nq_unmap(&nq);
	EXPECT_EQ(-EBUSY, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, area.area));
	EXPECT_EQ(-EBUSY, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, meta.area));
	EXPECT_EQ(-EBUSY, ht_raw_id(self->fd, HAMLYN_IOC_NQ_DESTROY, nq.arg.nq));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_SLOT_DESTROY, arg.slot));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, area.area));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, meta.area));
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_NQ_DESTROY, nq.arg.nq));
}

/* ---- the argument of a call -------------------------------------------------------- */

/* What a newer program adds has to be zero, and no program adds more than a page. */
TEST_F(edge, an_argument_is_at_most_a_page_long)
{
	unsigned char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hamlyn_query *query = (void *)p;
	static const uint32_t short_ones[] = { 0, 3, 4, 8 };
	unsigned int i;

	ASSERT_NE(MAP_FAILED, p);
	query->size = PAGE;
	EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_QUERY, query));
	EXPECT_EQ(HAMLYN_ABI_VERSION, query->abi_version);
	query->size = PAGE + 1;
	EXPECT_EQ(-E2BIG, ht_raw(self->fd, HAMLYN_IOC_QUERY, query));
	query->size = PAGE;
	p[PAGE - 1] = 1;
	EXPECT_EQ(-E2BIG, ht_raw(self->fd, HAMLYN_IOC_QUERY, query));
	for (i = 0; i < ARRAY_SIZE(short_ones); i++) {
		query->size = short_ones[i];
		EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_QUERY, query));
	}
	munmap(p, 2 * PAGE);
}

/* With a copy of the argument, where nothing can be written. */
static int read_only(int fd, unsigned long request, const void *arg, size_t size)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (p == MAP_FAILED)
		return -errno;
	memcpy(p, arg, size);
	ret = mprotect(p, PAGE, PROT_READ) ? -errno : ht_raw(fd, request, p);
	munmap(p, PAGE);
	return ret;
}

#define READ_ONLY(request, arg) read_only(self->fd, request, &(arg), sizeof(arg))

/* A call that has nothing to tell writes nothing. */
TEST_F(edge, what_is_only_read_may_be_read_only)
{
	struct hamlyn_terminus_bind bind = {
		.size = sizeof(bind), .terminus = self->t.arg.terminus,
		.area = self->area.area, .length = 64,
	};
	struct hamlyn_id id = { .size = sizeof(id), .id = self->slot.slot };

	EXPECT_EQ(0, READ_ONLY(HAMLYN_IOC_TERMINUS_BIND, bind));
	EXPECT_EQ(0, READ_ONLY(HAMLYN_IOC_SLOT_DESTROY, id));
	id.id = self->t.arg.terminus;
	EXPECT_EQ(0, READ_ONLY(HAMLYN_IOC_TERMINUS_DESTROY, id));
	id.id = self->area.area;
	EXPECT_EQ(0, READ_ONLY(HAMLYN_IOC_AREA_REMOVE, id));
}

/* ---- queues --------------------------------------------------------------------------- */

struct waiter {
	struct hamlyn_wait arg;
	int fd;
	int ret;
};

static void *wait_on(void *p)
{
	struct waiter *w = p;

	w->ret = ht_raw(w->fd, HAMLYN_IOC_WAIT, &w->arg);
	return NULL;
}

TEST_F(edge, who_waits_on_a_queue_that_is_destroyed_is_told)
{
	struct waiter w = {
		.arg = { .size = sizeof(w.arg) }, .fd = self->fd,
	};
	struct ht_raw_nq nq;
	pthread_t thread;

	ASSERT_EQ(0, ht_raw_nq_create(self->fd, 4, &nq));
	ht_raw_nq_unmap(&nq);
	w.arg.nq = nq.arg.nq;
	w.arg.deadline_ns = ht_now_ns() + ht_patience_ns();
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_on, &w));
	ht_sleep_ns(20 * HT_MS);
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_NQ_DESTROY, nq.arg.nq));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(-ENOENT, w.ret);
}

/* Each is told as soon as there is room, and nothing was lost meanwhile. */
TEST_F(edge, a_full_queue_is_told_of_all_later)
{
	struct hamlyn_slot_rekey rekey = {
		.size = sizeof(rekey), .slot = self->slot.slot,
	};
	struct hamlyn_watch w = { .slot = self->slot.slot,
				  .key = self->slot.key };
	struct hamlyn_nq_entry e;
	unsigned int told[20] = {}, i, n = 0;
	struct ht_poll poll;
	struct ht_raw_nq nq;

	ASSERT_EQ(0, ht_raw_nq_create(self->fd, 2, &nq));
	w.nq = nq.arg.nq;
	for (i = 0; i < ARRAY_SIZE(told); i++) {
		w.cookie = i;
		ASSERT_EQ(0, watch(self->fd, &w));
	}
	ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_SLOT_REKEY, &rekey));
	/* Longer than it takes to look again. */
	ht_sleep_ns(50 * HT_MS);
	ht_poll_begin(&poll);
	while (n < ARRAY_SIZE(told) && ht_poll_more(&poll)) {
		if (!ht_raw_recv(&nq, &e))
			continue;
		ASSERT_EQ(HAMLYN_NQE_PEER_GONE, e.flags);
		ASSERT_GT(ARRAY_SIZE(told), e.data);
		told[e.data]++;
		n++;
	}
	for (i = 0; i < ARRAY_SIZE(told); i++)
		EXPECT_EQ(1, told[i]);
	ht_sleep_ns(50 * HT_MS);
	EXPECT_FALSE(ht_raw_recv(&nq, &e));
	EXPECT_EQ(0, nq.ring->lost);
	ht_raw_nq_unmap(&nq);
}

/* ---- the last packets that were discarded ----------------------------------------------- */

static int read_audit(int fd, uint64_t *sequence, struct hamlyn_audit_entry *entries,
		      uint32_t count)
{
	struct hamlyn_audit arg = {
		.size = sizeof(arg), .count = count, .sequence = *sequence,
		.entries = (uintptr_t)entries,
	};
	int ret = ht_raw(fd, HAMLYN_IOC_AUDIT, &arg);

	*sequence = arg.sequence;
	return ret ? ret : (int)arg.count;
}

/* With a wrong key, to the own slot. */
static int be_rejected(struct ht_raw_terminus *t, const struct hamlyn_slot_create *slot)
{
	struct hamlyn_trb *trb = ht_raw_entry(t);
	uint32_t index = t->producer;
	struct hamlyn_query query;
	int status = ht_raw_query(t->fd, &query);

	if (status)
		return status;
	memset(trb, 0, t->arg.entry_size);
	trb->host = query.host;
	trb->slot = slot->slot;
	trb->key = slot->key;
	trb->offset = 1ULL << 40;	/* whoever has no key has only a small part of the audit */
	trb->flags = HAMLYN_TRB_NO_NOTIFY;
	return ht_raw_post(t) < 0 || ht_raw_done(t, index, &status) ? -ETIMEDOUT : status;
}

/* Empty, in its first round, full to the last place, and behind that. */
#define HOLDERS_AUDIT	32	/* of holders of the key: half of a context's */

TEST_F(edge, the_audit_is_whole_however_full_it_is)
{
	struct hamlyn_audit_entry entries[80];
	uint64_t sequence, oldest;
	int n, i, count;

	for (n = 0; n < HOLDERS_AUDIT + 6; n++) {
		sequence = 0;
		oldest = n > HOLDERS_AUDIT ? (uint64_t)n - HOLDERS_AUDIT : 0;
		memset(entries, 0xff, sizeof(entries));
		count = read_audit(self->fd, &sequence, entries, 80);
		EXPECT_EQ(n - (int)oldest, count);
		EXPECT_EQ(n, sequence);
		for (i = 0; i < count; i++)
			EXPECT_EQ(oldest + (uint64_t)i, entries[i].sequence);
		EXPECT_EQ(~0ULL, entries[count].sequence);
		/* In two goes, of which the first one is of no round number. */
		sequence = 0;
		count = read_audit(self->fd, &sequence, entries, 11);
		EXPECT_EQ(n < 11 ? n : 11, count);
		EXPECT_EQ(n - (int)oldest - count,
			  read_audit(self->fd, &sequence, entries, 80));
		/* From the last one on, and from behind it. */
		EXPECT_EQ(0, read_audit(self->fd, &sequence, entries, 80));
		if (n) {
			sequence = (uint64_t)n - 1;
			EXPECT_EQ(1, read_audit(self->fd, &sequence, entries, 80));
		}
		ASSERT_EQ(0, be_rejected(&self->t, &self->slot));
	}
	EXPECT_EQ(-EFAULT, read_audit(self->fd, &(uint64_t) { 0 }, NULL, 80));
}

/* ---- polling ------------------------------------------------------------------------------- */

/* Without a thread it is the doorbell that sends them: all of them, with one. */
TEST_F(edge, one_doorbell_is_enough_for_all_that_is_posted)
{
	struct hamlyn_query query;
	uint32_t n;
	int status;

	ASSERT_EQ(0, ht_raw_query(self->fd, &query));
	for (n = 0; n < 5; n++) {
		struct hamlyn_trb *trb = ht_raw_entry(&self->t);

		memset(trb, 0, self->t.arg.entry_size);
		trb->host = query.host;
		trb->slot = self->slot.slot;
		trb->key = self->slot.key;
		trb->length = 8;
		self->t.producer++;
	}
	ASSERT_EQ(0, ht_raw_publish(&self->t, self->t.producer));
	if (query.engine_mode == HAMLYN_ENGINE_INLINE)
		EXPECT_EQ(5, self->t.status->completed);
	for (n = 0; n < 5; n++) {
		ASSERT_EQ(0, ht_raw_done(&self->t, n, &status));
		EXPECT_EQ(0, status);
	}
}

/*
 * An engine is lent as much as this task has run since it rang first; what other tests have
 * overdrawn is made up for as well.
 */
static void earn_an_engine(int fd, const struct ht_raw_terminus *t)
{
	int64_t begin;

	ioctl(fd, HAMLYN_IOC_KICK, (unsigned long)t->arg.terminus);
	begin = ht_thread_ns();
	while (ht_thread_ns() - begin < 400 * HT_MS)
		;
}

/* More than one doorbell sends: the rest is for the thread, or the next one. */
TEST_F(edge, one_doorbell_is_enough_for_more_than_it_sends)
{
	enum { MANY = 200 };
	struct hamlyn_query query;
	struct ht_raw_terminus t;
	struct ht_poll poll;
	int status;
	uint32_t n;

	ASSERT_EQ(0, ht_raw_query(self->fd, &query));
	ASSERT_EQ(0, ht_raw_terminus_create(self->fd, 256, 128, &t));
	earn_an_engine(self->fd, &t);
	for (n = 0; n < MANY; n++) {
		struct hamlyn_trb *trb = ht_raw_entry(&t);

		memset(trb, 0, t.arg.entry_size);
		trb->host = query.host;
		trb->slot = self->slot.slot;
		trb->key = self->slot.key;
		trb->flags = HAMLYN_TRB_NO_NOTIFY;
		t.producer++;
	}
	ASSERT_EQ(0, ht_raw_publish(&t, t.producer));
	/* Then nobody rings again. */
	ht_poll_begin(&poll);
	while (query.engine_mode != HAMLYN_ENGINE_INLINE && ht_poll_more(&poll) &&
	       __atomic_load_n(&t.status->completed, __ATOMIC_ACQUIRE) != MANY)
		ht_sleep_ns(HT_MS);
	if (query.engine_mode != HAMLYN_ENGINE_INLINE)
		EXPECT_EQ(MANY, t.status->completed);
	ASSERT_EQ(0, ht_raw_done(&t, MANY - 1, &status));
	EXPECT_EQ(0, status);
	ht_raw_terminus_unmap(&t);
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_TERMINUS_DESTROY, t.arg.terminus));
}

/* Whoever has nothing to send costs no processor: he rings when there is something. */
TEST_F(edge, a_terminus_that_is_quiet_is_polled_no_more)
{
	struct hamlyn_query query;
	struct ht_poll poll;
	int i;

	ASSERT_EQ(0, ht_raw_query(self->fd, &query));
	if (query.engine_mode == HAMLYN_ENGINE_INLINE) {
		EXPECT_EQ(1, self->t.status->need_kick);
		return;
	}
	/* Often enough to be polled, or at least to be on the way there. */
	for (i = 0; i < 100; i++)
		be_rejected(&self->t, &self->slot);
	ht_poll_begin(&poll);
	/* Without keeping a processor busy, which would be reason enough to poll no more. */
	while (!__atomic_load_n(&self->t.status->need_kick, __ATOMIC_RELAXED) &&
	       ht_poll_more(&poll))
		ht_sleep_ns(HT_MS);
	EXPECT_EQ(1, self->t.status->need_kick);
	EXPECT_EQ(0, be_rejected(&self->t, &self->slot));
}

/* ---- when the NIC's memory is used up ------------------------------------------ */

#define MOST_AREAS	64

/* Areas until not even a page is left. Returns how many, the last of one page each. */
static int use_up(int fd, uint32_t *ids)
{
	size_t size = 64UL << 20;
	int n = 0;

	while (size >= PAGE && n < MOST_AREAS) {
		struct hamlyn_area_alloc arg;
		int ret = ht_raw_area_alloc(fd, size, &arg, NULL);

		if (!ret)
			ids[n++] = arg.area;
		else if (ret == -EDQUOT || (ret == -ENOMEM && size > PAGE))
			size /= 2;
		else
			return ret;
	}
	return n;
}

/* One page, so often as there is room. */
static unsigned int pages_left(int fd)
{
	struct hamlyn_area_alloc arg[8];
	unsigned int i, n = 0;

	while (n < ARRAY_SIZE(arg) && !ht_raw_area_alloc(fd, PAGE, &arg[n], NULL))
		n++;
	for (i = 0; i < n; i++)
		ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, arg[i].area);
	return n;
}

/* Each has two rings of a page: the second may fail when the first is there. */
TEST_F(edge, without_memory_nothing_is_made_and_nothing_is_lost)
{
	struct hamlyn_area_alloc room[3];
	uint32_t ids[MOST_AREAS];
	struct ht_raw_terminus t;
	struct ht_raw_nq nq;
	unsigned int i, k;
	int n;

	for (i = 0; i < ARRAY_SIZE(room); i++)
		ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &room[i], NULL));
	n = use_up(self->fd, ids);
	ASSERT_LT(0, n);
	ASSERT_GT(MOST_AREAS, n);
	for (k = 0; k <= ARRAY_SIZE(room); k++) {
		if (k)
			ASSERT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE,
					       room[k - 1].area));
		EXPECT_EQ(k, pages_left(self->fd));
		if (k >= 2)
			continue;
		EXPECT_EQ(-EDQUOT, ht_raw_terminus_create(self->fd, 8, 128, &t));
		EXPECT_EQ(k, pages_left(self->fd));
		EXPECT_EQ(-EDQUOT, ht_raw_nq_create(self->fd, 16, &nq));
		EXPECT_EQ(k, pages_left(self->fd));
	}
	ASSERT_EQ(0, ht_raw_terminus_create(self->fd, 8, 128, &t));
	EXPECT_EQ(1, pages_left(self->fd));
	ht_raw_terminus_unmap(&t);
	EXPECT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_TERMINUS_DESTROY,
			       t.arg.terminus));
	EXPECT_EQ(3, pages_left(self->fd));
}

TEST_HARNESS_MAIN
