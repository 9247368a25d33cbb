// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings: only what was offered, only with the rights it has, and harmless
 * after its object is gone. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <linux/userfaultfd.h>

#define PAGE	4096UL

struct region {
	const char *name;
	uint64_t offset;
	uint64_t length;
	bool writable;
	unsigned long destroy;	/* request that ends its object */
	uint32_t id;
};

#define REGIONS	5

FIXTURE(hostile_mmap) {
	int fd;
	struct region regions[REGIONS];
};

FIXTURE_SETUP(hostile_mmap)
{
	struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 64,
					    .entry_size = 512 };
	struct hamlyn_nq_create nq = { .size = sizeof(nq), .entries = 1024 };
	struct hamlyn_area_alloc area;

	self->fd = ht_raw_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, 3 * PAGE, &area, NULL));
	ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_NQ_CREATE, &nq));
	ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_TERMINUS_CREATE, &t));
	self->regions[0] = (struct region) {
		"area", area.mmap_offset, area.length, true,
		HAMLYN_IOC_AREA_REMOVE, area.area };
	self->regions[1] = (struct region) {
		"NQ ring", nq.ring_offset, nq.ring_length, false,
		HAMLYN_IOC_NQ_DESTROY, nq.nq };
	self->regions[2] = (struct region) {
		"NQ control", nq.control_offset, nq.control_length, true,
		HAMLYN_IOC_NQ_DESTROY, nq.nq };
	self->regions[3] = (struct region) {
		"work queue", t.wq_offset, t.wq_length, true,
		HAMLYN_IOC_TERMINUS_DESTROY, t.terminus };
	self->regions[4] = (struct region) {
		"status", t.status_offset, t.status_length, false,
		HAMLYN_IOC_TERMINUS_DESTROY, t.terminus };
}

FIXTURE_TEARDOWN(hostile_mmap)
{
	close(self->fd);
}

#define for_each_region(r) \
	for (r = self->regions; r < self->regions + REGIONS; r++)

static int most_rights(const struct region *r)
{
	return r->writable ? PROT_READ | PROT_WRITE : PROT_READ;
}

static void *map(FIXTURE_DATA(hostile_mmap) *self, const struct region *r)
{
	return mmap(NULL, r->length, most_rights(r), MAP_SHARED, self->fd,
		    (off_t)r->offset);
}

/* Is this, by chance, what another region was offered as? */
static bool offered(FIXTURE_DATA(hostile_mmap) *self, uint64_t offset,
		    uint64_t length)
{
	const struct region *r;

	for_each_region(r)
		if (r->offset == offset && r->length == length)
			return true;
	return false;
}

static const char *mapped(FIXTURE_DATA(hostile_mmap) *self, uint64_t offset,
			  uint64_t length)
{
	void *p;

	if (offered(self, offset, length))
		return NULL;
	p = mmap(NULL, length, PROT_READ, MAP_SHARED, self->fd,
		 (off_t)offset);
	if (p != MAP_FAILED) {
		munmap(p, length);
		return "mapped";
	}
	/* EOVERFLOW: no file has such an offset, says the kernel itself. */
	return errno == EINVAL || errno == EOVERFLOW ?
	       NULL : "a strange error";
}

TEST_F(hostile_mmap, what_is_offered_can_be_mapped)
{
	volatile unsigned char *p;
	const struct region *r;
	uint64_t i;

	for_each_region(r) {
		EXPECT_EQ(0, r->length % PAGE);
		EXPECT_EQ(0, r->offset % PAGE);
		p = map(self, r);
		ASSERT_NE(MAP_FAILED, p) {
			TH_LOG("%s", r->name);
		}
		for (i = 0; i < r->length; i++) {
			(void)p[i];
			if (r->writable)
				p[i] = (unsigned char)i;
		}
		for (i = 0; r->writable && i < r->length; i++) {
			ASSERT_EQ((unsigned char)i, p[i]);
		}
		EXPECT_EQ(0, munmap((void *)(uintptr_t)p, r->length));
	}
}

TEST_F(hostile_mmap, a_second_mapping_shows_the_same_memory)
{
	volatile unsigned char *p, *q;

	p = map(self, &self->regions[0]);
	q = map(self, &self->regions[0]);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_NE(MAP_FAILED, q);
	p[5000] = 17;
	EXPECT_EQ(17, q[5000]);
	munmap((void *)(uintptr_t)p, self->regions[0].length);
	EXPECT_EQ(17, q[5000]);
}

TEST_F(hostile_mmap, wrong_offsets_and_lengths_are_refused)
{
	const struct region *r;
	uint64_t length;
	int shift;

	for_each_region(r) {
		for (length = PAGE; length <= r->length + 2 * PAGE;
		     length += PAGE) {
			EXPECT_NO(mapped(self, r->offset + PAGE, length)) {
				TH_LOG("%s, %ju", r->name, (uintmax_t)length);
			}
			EXPECT_NO(mapped(self, r->offset - PAGE, length)) {
				TH_LOG("%s, %ju", r->name, (uintmax_t)length);
			}
			if (length > r->length) {
				EXPECT_NO(mapped(self, r->offset, length)) {
					TH_LOG("%s, too long", r->name);
				}
			}
		}
		EXPECT_NO(mapped(self, r->offset, r->length << 20));
		for (shift = 12; shift < 64; shift++) {
			EXPECT_NO(mapped(self, r->offset ^ (1ULL << shift),
					 r->length)) {
				TH_LOG("%s, bit %d of its offset", r->name,
				       shift);
			}
		}
	}
}

TEST_F(hostile_mmap, part_of_a_region_is_refused_or_nothing_but_that_part)
{
	const struct region *r = &self->regions[0];
	unsigned char *whole, *part;
	uint64_t length;

	whole = map(self, r);
	ASSERT_NE(MAP_FAILED, whole);
	memset(whole, 1, r->length);
	for (length = PAGE; length < r->length; length += PAGE) {
		part = mmap(NULL, length, PROT_READ, MAP_SHARED, self->fd,
			    (off_t)r->offset);
		if (part == MAP_FAILED)
			continue;
		EXPECT_EQ(length, ht_match_byte(part, length, 1));
		munmap(part, length);
	}
}

TEST_F(hostile_mmap, no_length_and_odd_offsets_are_refused)
{
	const struct region *r;

	for_each_region(r) {
		EXPECT_EQ(MAP_FAILED, mmap(NULL, 0, PROT_READ, MAP_SHARED,
					   self->fd, (off_t)r->offset));
		EXPECT_EQ(MAP_FAILED, mmap(NULL, r->length, PROT_READ,
					   MAP_SHARED, self->fd,
					   (off_t)r->offset + 1));
	}
}

TEST_F(hostile_mmap, random_offsets_show_nothing)
{
	uint64_t random = ht_seed();
	uint64_t offset;
	int i;

	for (i = 0; i < 4096; i++) {
		EXPECT_NO(mapped(self, i * PAGE, PAGE)) {
			TH_LOG("page %d", i);
		}
		offset = (ht_random(&random) >> (i % 52)) & ~(PAGE - 1);
		EXPECT_NO(mapped(self, offset, (1 + i % 4) * PAGE)) {
			TH_LOG("offset %jx", (uintmax_t)offset);
		}
	}
}

/* ---- rights ------------------------------------------------------------- */

static int refused_with(FIXTURE_DATA(hostile_mmap) *self,
			const struct region *r, int prot, int flags)
{
	void *p = mmap(NULL, r->length, prot, flags, self->fd,
		       (off_t)r->offset);

	if (p == MAP_FAILED)
		return errno;
	munmap(p, r->length);
	return 0;
}

TEST_F(hostile_mmap, private_mappings_are_EPERM)
{
	static const int prots[] = { PROT_NONE, PROT_READ,
				     PROT_READ | PROT_WRITE };
	const struct region *r;
	unsigned int i;

	for_each_region(r) {
		for (i = 0; i < ARRAY_SIZE(prots); i++) {
			EXPECT_EQ(EPERM, refused_with(self, r, prots[i],
						      MAP_PRIVATE)) {
				TH_LOG("%s, %d", r->name, prots[i]);
			}
		}
	}
}

TEST_F(hostile_mmap, writing_to_what_the_nic_writes_is_EPERM)
{
	const struct region *r;

	for_each_region(r) {
		int want = r->writable ? 0 : EPERM;

		EXPECT_EQ(want, refused_with(self, r, PROT_READ | PROT_WRITE,
					     MAP_SHARED)) {
			TH_LOG("%s", r->name);
		}
		EXPECT_EQ(want, refused_with(self, r, PROT_WRITE,
					     MAP_SHARED)) {
			TH_LOG("%s", r->name);
		}
	}
}

TEST_F(hostile_mmap, executing_anything_is_EPERM)
{
	const struct region *r;
	void *p;

	for_each_region(r) {
		EXPECT_EQ(EPERM, refused_with(self, r, PROT_READ | PROT_EXEC,
					      MAP_SHARED)) {
			TH_LOG("%s", r->name);
		}
		EXPECT_EQ(EPERM, refused_with(self, r, PROT_EXEC, MAP_SHARED));
		p = map(self, r);
		ASSERT_NE(MAP_FAILED, p);
		EXPECT_EQ(-1, mprotect(p, r->length, PROT_READ | PROT_EXEC)) {
			TH_LOG("%s", r->name);
		}
		EXPECT_EQ(-1, mprotect(p, PAGE, PROT_EXEC));
		munmap(p, r->length);
	}
}

TEST_F(hostile_mmap, mprotect_gives_no_rights_that_mmap_does_not)
{
	const struct region *r;
	void *p;

	for_each_region(r) {
		p = mmap(NULL, r->length, PROT_READ, MAP_SHARED, self->fd,
			 (off_t)r->offset);
		ASSERT_NE(MAP_FAILED, p);
		EXPECT_EQ(r->writable ? 0 : -1,
			  mprotect(p, r->length, PROT_READ | PROT_WRITE)) {
			TH_LOG("%s", r->name);
		}
		EXPECT_EQ(r->writable ? 0 : -1,
			  mprotect(p, PAGE, PROT_WRITE));
		/* By way of no rights at all, too. */
		EXPECT_EQ(0, mprotect(p, r->length, PROT_NONE));
		EXPECT_EQ(r->writable ? 0 : -1,
			  mprotect(p, r->length, PROT_READ | PROT_WRITE));
		munmap(p, r->length);
	}
}

TEST_F(hostile_mmap, mappings_do_not_grow)
{
	const struct region *r;
	void *p, *q;

	for_each_region(r) {
		p = map(self, r);
		ASSERT_NE(MAP_FAILED, p);
		EXPECT_EQ(MAP_FAILED, mremap(p, r->length, r->length + PAGE,
					     MREMAP_MAYMOVE)) {
			TH_LOG("%s", r->name);
		}
		EXPECT_EQ(MAP_FAILED, mremap(p, r->length, 2 * r->length, 0));
		EXPECT_EQ(MAP_FAILED, mremap(p, 0, r->length + PAGE,
					     MREMAP_MAYMOVE));
		/* Moving it as it is does no harm, nor does less of it. */
		q = mremap(p, r->length, r->length, MREMAP_MAYMOVE);
		munmap(q == MAP_FAILED ? p : q, r->length);
	}
}

/*
 * Moved, put over others, and cut to pieces: what is mapped stays what it is,
 * with the rights that it has.
 */
TEST_F(hostile_mmap, a_moved_mapping_is_the_same_with_the_same_rights)
{
	struct region *area = &self->regions[0], *ring = &self->regions[1];
	unsigned char *p, *q, *r;

	p = map(self, area);
	ASSERT_NE(MAP_FAILED, p);
	ht_fill(p, area->length, 3);
	/* Over another mapping of the device, which ends. */
	q = map(self, area);
	ASSERT_NE(MAP_FAILED, q);
	ASSERT_EQ(q, mremap(p, area->length, area->length,
			    MREMAP_MAYMOVE | MREMAP_FIXED, q));
	EXPECT_EQ(area->length, ht_match(q, area->length, 3));
	/* What is read-only stays so, over what was writable. */
	r = map(self, ring);
	ASSERT_NE(MAP_FAILED, r);
	p = mmap(NULL, ring->length, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(p, mremap(r, ring->length, ring->length,
			    MREMAP_MAYMOVE | MREMAP_FIXED, p));
	EXPECT_EQ(-1, mprotect(p, ring->length, PROT_READ | PROT_WRITE));
	munmap(p, ring->length);
	/* A page out of the middle: each piece counts for itself. */
	ASSERT_EQ(0, munmap(q + PAGE, PAGE));
	ASSERT_EQ(0, ht_raw_id(self->fd, area->destroy, area->id));
	ASSERT_EQ(0, munmap(q, PAGE));
	ht_fill(q + 2 * PAGE, PAGE, 4);
	EXPECT_EQ(PAGE, ht_match(q + 2 * PAGE, PAGE, 4));
	ASSERT_EQ(0, munmap(q + 2 * PAGE, PAGE));
}

TEST_F(hostile_mmap, nothing_is_left_behind_or_doubled_by_mremap)
{
	const struct region *r;
	void *p;

	for_each_region(r) {
		p = map(self, r);
		ASSERT_NE(MAP_FAILED, p);
		EXPECT_EQ(MAP_FAILED, mremap(p, r->length, r->length,
					     MREMAP_MAYMOVE |
					     MREMAP_DONTUNMAP)) {
			TH_LOG("%s", r->name);
		}
		EXPECT_EQ(MAP_FAILED, mremap(p, 0, r->length, MREMAP_MAYMOVE));
		munmap(p, r->length);
	}
}

/* Does forcing it by way of the debugger's doors change it? */
static bool forced(void *at)
{
	unsigned char before = *(volatile unsigned char *)at;
	unsigned char value = (unsigned char)~before;
	struct iovec from = { &value, 1 };
	struct iovec to = { at, 1 };
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	ssize_t n;

	if (mem >= 0) {
		n = pwrite(mem, &value, 1, (off_t)(uintptr_t)at);
		close(mem);
		if (n > 0)
			return true;
	}
	if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) > 0)
		return true;
	/* As a destination of the kernel's, too. */
	mem = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (mem >= 0) {
		n = read(mem, at, 1);
		close(mem);
		if (n > 0)
			return true;
	}
	return *(volatile unsigned char *)at != before;
}

TEST_F(hostile_mmap, what_the_nic_writes_cannot_be_forced)
{
	const struct region *r;
	unsigned char *p;

	for_each_region(r) {
		if (r->writable)
			continue;
		p = map(self, r);
		ASSERT_NE(MAP_FAILED, p);
		EXPECT_FALSE(forced(p)) {
			TH_LOG("%s", r->name);
		}
		EXPECT_FALSE(forced(p + r->length - 1));
		munmap(p, r->length);
	}
}

/* ---- the end of objects ------------------------------------------------- */

static void destroy(FIXTURE_DATA(hostile_mmap) *self, const struct region *r)
{
	/* Two regions share an object: the second time it is gone. */
	ht_raw_id(self->fd, r->destroy, r->id);
}

TEST_F(hostile_mmap, a_destroyed_object_cannot_be_mapped)
{
	const struct region *r;

	for_each_region(r) {
		destroy(self, r);
	}
	for_each_region(r) {
		EXPECT_EQ(EINVAL, refused_with(self, r, PROT_READ,
					       MAP_SHARED)) {
			TH_LOG("%s", r->name);
		}
	}
}

/* Touch all of it in a child; 0, or the signal that it got. */
static int touch(volatile unsigned char *p, uint64_t length, bool write)
{
	pid_t pid = ht_fork();
	uint64_t i;

	if (!pid) {
		signal(SIGBUS, SIG_DFL);
		signal(SIGSEGV, SIG_DFL);
		for (i = 0; i < length; i += 64) {
			(void)p[i];
			if (write)
				p[i] = 0xee;
		}
		_exit(0);
	}
	return ht_reap(pid);
}

TEST_F(hostile_mmap, children_inherit_no_mapping)
{
	const struct region *r;
	void *p;

	for_each_region(r) {
		p = map(self, r);
		ASSERT_NE(MAP_FAILED, p);
		EXPECT_EQ(128 + SIGSEGV, touch(p, r->length, false)) {
			TH_LOG("%s", r->name);
		}
		munmap(p, r->length);
	}
}

/*
 * What is mapped of a destroyed object is memory that nobody else gets: new
 * objects do not show what is written there.
 */
TEST_F(hostile_mmap, a_mapping_is_harmless_after_its_object)
{
	enum { AREAS = 64 };
	volatile unsigned char *maps[REGIONS];
	struct hamlyn_area_alloc area;
	const struct region *r;
	struct ht_raw_nq nq;
	void *fresh;
	uint64_t j;
	int i;

	for (i = 0; i < REGIONS; i++) {
		maps[i] = map(self, &self->regions[i]);
		ASSERT_NE(MAP_FAILED, maps[i]);
	}
	for_each_region(r) {
		destroy(self, r);
	}
	for (i = 0; i < AREAS; i++) {
		ASSERT_EQ(0, ht_raw_area_alloc(self->fd, 3 * PAGE, &area,
					       &fresh));
		ASSERT_EQ(0, ht_raw_nq_create(self->fd, 1024, &nq));
		for (j = 0; j < REGIONS; j++) {
			r = &self->regions[j];
			if (!r->writable)
				continue;
			memset((void *)(uintptr_t)maps[j], 0xee, r->length);
		}
		ASSERT_EQ(area.length, ht_match_byte(fresh, area.length, 0));
		ASSERT_EQ(0, nq.ring->lost);
		ASSERT_EQ(0, nq.control->consumer);
		ASSERT_EQ(1024, nq.ring->entries);
	}
	/* And after the last descriptor, with the mappings still there. */
	close(self->fd);
	for (i = 0; i < REGIONS; i++) {
		r = &self->regions[i];
		for (j = 0; j < r->length; j += 64)
			(void)maps[i][j];
		if (r->writable)
			memset((void *)(uintptr_t)maps[i], 0xdd, r->length);
	}
	self->fd = ht_raw_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, 3 * PAGE, &area, &fresh));
	EXPECT_EQ(area.length, ht_match_byte(fresh, area.length, 0));
}

TEST_F(hostile_mmap, the_mapping_keeps_the_context_or_lets_it_go_safely)
{
	struct hamlyn_area_alloc area;
	unsigned char *p;
	int fd, i;

	for (i = 0; i < 50; i++) {
		fd = ht_raw_open();
		ASSERT_GE(fd, 0);
		ASSERT_EQ(0, ht_raw_area_alloc(fd, 16 * PAGE, &area,
					       (void **)&p));
		memset(p, i, area.length);
		close(fd);
		ASSERT_EQ(area.length, ht_match_byte(p, area.length,
						     (unsigned char)i));
		munmap(p, area.length);
	}
}

TEST_F(hostile_mmap, madvise_harms_nobody)
{
	static const int advice[] = { MADV_DONTNEED, MADV_REMOVE, MADV_FREE,
				      MADV_HUGEPAGE, MADV_MERGEABLE,
				      MADV_POPULATE_WRITE, MADV_PAGEOUT,
				      MADV_COLD };
	const struct region *area = &self->regions[0], *r;
	unsigned int i;
	void *p, *q;

	for_each_region(r) {
		for (i = 0; i < ARRAY_SIZE(advice); i++) {
			p = map(self, r);
			ASSERT_NE(MAP_FAILED, p);
			if (r == area)
				ht_fill(p, r->length, i);
			madvise(p, r->length, advice[i]);
			/* Another mapping is as good as ever. */
			q = map(self, r);
			ASSERT_NE(MAP_FAILED, q);
			if (r == area) {
				EXPECT_EQ(r->length, ht_match(q, r->length, i)) {
					TH_LOG("advice %d", advice[i]);
				}
			}
			/* What is in the others is the NIC's: that it can be read. */
			(void)*(volatile char *)q;
			munmap(p, r->length);
			munmap(q, r->length);
		}
	}
}

/* ---- userfaultfd ---------------------------------------------------------- */

#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC	(1 << 15)
#endif

/* Marks pages that are not mapped. Return: 0, or the errno of what the kernel refused. */
static int mark(void *p, uint64_t length)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_WP_ASYNC };
	struct uffdio_register all = { .range = { (uintptr_t)p, length },
				       .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect wp = { .range = all.range,
					  .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	/* It stays open: with it the marks would go. */
	return fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	       ioctl(fd, UFFDIO_REGISTER, &all) ||
	       madvise(p, length, MADV_DONTNEED) ||
	       ioctl(fd, UFFDIO_WRITEPROTECT, &wp) ? errno : 0;
}

#define MARKED_EFAULT	10	/* as it is to be */
#define MARKED_NOT	11	/* the kernel marks no such mapping */

/* The kernel reads and writes there for us, and then we do. */
static int use_marked(void *p, uint64_t length)
{
	int ends[2];

	if (mark(p, length))
		return MARKED_NOT;
	if (pipe2(ends, O_CLOEXEC) || write(ends[1], "x", 1) != 1)
		return 1;
	if (read(ends[0], p, 1) != -1 || errno != EFAULT)
		return 2;
	if (write(ends[1], p, 1) != -1 || errno != EFAULT)
		return 3;
	return MARKED_EFAULT;
}

/* A fault that the kernel would try again for ever, also of who was killed. */
TEST_F(hostile_mmap, marked_pages_are_no_endless_faults)
{
	const struct region *r;
	bool marked = false;
	pid_t pid;
	int ret;
	void *p;

	for_each_region(r) {
		if (!r->writable)
			continue;
		pid = ht_fork();
		ASSERT_GE(pid, 0);
		if (!pid) {
			p = map(self, r);
			_exit(p == MAP_FAILED ? 4 : use_marked(p, r->length));
		}
		ret = ht_reap(pid);
		EXPECT_TRUE(ret == MARKED_EFAULT || ret == MARKED_NOT) {
			TH_LOG("%s: %d", r->name, ret);
		}
		marked |= ret == MARKED_EFAULT;
	}
	if (!marked)
		SKIP(return, "userfaultfd marks no mappings of devices");
}

TEST_HARNESS_MAIN
