// SPDX-License-Identifier: GPL-2.0-only
/* Areas of huge pages: what is told of them, and what is done to them. */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE		4096UL
#define HUGE		(2UL << 20)
#define NR_HUGEPAGES	"/proc/sys/vm/nr_hugepages"
#define SHM_HUGE	"huge-test,size=64M,huge"

static unsigned long number_in(const char *file, const char *format)
{
	unsigned long n = 0;
	char line[512];
	FILE *f = fopen(file, "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, format, &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* Addresses for @n huge pages, the first of which may be one; NULL: no room. */
static unsigned char *aligned_room(unsigned int n, int rights)
{
	unsigned char *room = mmap(NULL, (n + 1) * HUGE, rights,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (room == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)room & (HUGE - 1);
	if (before)
		munmap(room, before);
	munmap(room + before + n * HUGE, HUGE - before);
	return room + before;
}

static void set_hugetlb(unsigned long n)
{
	FILE *f = fopen(NR_HUGEPAGES, "we");

	if (!f)
		return;
	fprintf(f, "%lu\n", n);
	fclose(f);
}

static unsigned long free_hugetlb(void)
{
	return number_in("/proc/meminfo", "HugePages_Free: %lu");
}

static unsigned long pinned_kib(void)
{
	return number_in("/proc/self/status", "VmPin: %lu");
}

/* KiB of the mapping of @p that are mapped by huge pages. */
static unsigned long huge_kib(const void *p)
{
	unsigned long start, end, kib, sum = 0;
	FILE *f = fopen("/proc/self/smaps", "re");
	bool here = false;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = (uintptr_t)p >= start && (uintptr_t)p < end;
		else if (here && (sscanf(line, "FilePmdMapped: %lu", &kib) == 1 ||
				  sscanf(line, "ShmemPmdMapped: %lu", &kib) == 1))
			sum += kib;
	}
	if (f)
		fclose(f);
	return sum;
}

/* ---- a device with a slot in a huge area -------------------------------- */

FIXTURE(huge)
{
	struct h_dev *dev;
	struct h_area *area;
	struct h_area *out;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_terminus *terminus;
	struct h_ticket ticket;
	unsigned char *data;
	unsigned long had;	/* pages of hugetlbfs */
};

#define AREA	(4 * HUGE)

FIXTURE_SETUP(huge)
{
	struct h_slot_attr attr = { 0 };
	const char *name = ht_device();

	self->had = number_in(NR_HUGEPAGES, "%lu");

	/* The embedded device has a segment that asks for huge pages. */
	if (name && !strncmp(name, "shm:", 4))
		name = "shm:" SHM_HUGE;
	ASSERT_EQ(0, h_open(name, &self->dev));
	ASSERT_EQ(0, h_area_alloc_flags(self->dev, AREA, HAMLYN_AREA_HUGE,
					&self->area));
	ASSERT_EQ(0, h_nq_create(self->dev, 64, &self->nq));
	self->data = h_area_addr(self->area);
	attr.area = self->area;
	attr.nq = self->nq;
	ASSERT_EQ(0, h_slot_create(self->dev, &attr, &self->slot));
	ASSERT_EQ(0, h_slot_ticket(self->slot, 0, 0, 0, &self->ticket));
	ASSERT_EQ(0, h_terminus_create(self->dev, NULL, &self->terminus));
}

FIXTURE_TEARDOWN(huge)
{
	h_close(self->dev);
	if (number_in(NR_HUGEPAGES, "%lu") != self->had)
		set_hugetlb(self->had);
}

/* @length bytes of @seed at @from, which tag 0 is bound to, go to @offset. */
static int send_to(FIXTURE_DATA(huge) *self, void *from, size_t length,
		   size_t offset)
{
	struct h_msg msg = { 0 };
	struct iovec iov = { .iov_base = from, .iov_len = length };
	int ret;

	msg.ticket = &self->ticket;
	msg.iov = &iov;
	msg.iovcnt = 1;
	msg.offset = offset;
	msg.flags = HAMLYN_TRB_NO_NOTIFY;
	ret = ht_send_sync(self->terminus, &msg);
	return ret == 1 ? 0 : ret < 0 ? ret : -EIO;
}

/* Lands, and nothing beside it. */
static const char *lands(FIXTURE_DATA(huge) *self, void *from, size_t length,
			 size_t offset)
{
	size_t before = offset < PAGE ? offset : PAGE;

	ht_fill(from, length, offset + length);
	memset(self->data + offset - before, HT_GUARD, before + length + PAGE);
	if (send_to(self, from, length, offset))
		return "not sent";
	if (ht_match(self->data + offset, length, offset + length) != length)
		return "other bytes";
	if (ht_match_byte(self->data + offset - before, before, HT_GUARD) !=
	    before ||
	    ht_match_byte(self->data + offset + length, PAGE, HT_GUARD) != PAGE)
		return "bytes beside it";
	return NULL;
}

static const size_t sizes[] = { 1, 63, 513, PAGE + 1, 16385, 70001, 300007 };

/* All sizes, around every boundary of a huge page. */
static const char *all_land(FIXTURE_DATA(huge) *self, unsigned char *from)
{
	size_t boundary, i;

	for (boundary = HUGE; boundary < AREA; boundary += HUGE) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++) {
			size_t offset = boundary - sizes[i] / 2 - i % 2;
			const char *wrong = lands(self, from + i, sizes[i],
						  offset);

			if (wrong)
				return wrong;
		}
	}
	return NULL;
}

/* ---- what is told ------------------------------------------------------- */

TEST_F(huge, page_size_is_that_of_the_mapping)
{
	size_t page = h_area_page_size(self->area);

	memset(self->data, 1, AREA);
	EXPECT_EQ(AREA, h_area_length(self->area));
	EXPECT_EQ(0, (uintptr_t)self->data % HUGE);
	page = h_area_page_size(self->area);
	TH_LOG("pages of %zu bytes, %lu KiB mapped as huge ones", page,
	       huge_kib(self->data));
	ASSERT_TRUE(page == PAGE || page == HUGE);
	EXPECT_EQ(page == HUGE, huge_kib(self->data) >= AREA / 1024);
}

TEST_F(huge, ordinary_areas_are_of_ordinary_pages)
{
	struct h_area *a;

	if (!h_dev_is_embedded(self->dev)) {
		ASSERT_EQ(0, h_area_alloc(self->dev, HUGE, &a));
		EXPECT_EQ(PAGE, h_area_page_size(a));
	}
	ASSERT_EQ(0, h_area_alloc_flags(self->dev, PAGE, HAMLYN_AREA_HUGE, &a));
	EXPECT_EQ(PAGE, h_area_length(a));
	ASSERT_EQ(0, h_area_alloc_flags(self->dev, HUGE + 1, HAMLYN_AREA_HUGE,
					&a));
	EXPECT_EQ(2 * HUGE, h_area_length(a));
	EXPECT_EQ(2 * HUGE, ht_match_byte(h_area_addr(a), 2 * HUGE, 0));
}

TEST_F(huge, other_flags_are_EINVAL)
{
	struct h_area *a;

	EXPECT_EQ(-EINVAL, h_area_alloc_flags(self->dev, PAGE,
					      HAMLYN_AREA_READONLY, &a));
	EXPECT_EQ(-EINVAL, h_area_alloc_flags(self->dev, PAGE, 1U << 31, &a));
	EXPECT_EQ(-EINVAL, h_area_add(self->dev, self->data, PAGE,
				      HAMLYN_AREA_HUGE, &a));
}

/* ---- allocated areas ---------------------------------------------------- */

TEST_F(huge, messages_land_across_boundaries)
{
	unsigned char *from;

	ASSERT_EQ(0, h_area_alloc_flags(self->dev, HUGE, HAMLYN_AREA_HUGE,
					&self->out));
	ASSERT_EQ(0, h_terminus_bind(self->terminus, 0, self->out, 0, 0));
	from = h_area_addr(self->out);
	EXPECT_NO(all_land(self, from + 1));
}

TEST_F(huge, the_kernel_can_read_and_write_the_memory)
{
	unsigned char there[4 * PAGE];
	struct iovec local = { there, sizeof(there) };
	struct iovec remote = { self->data + HUGE - 2 * PAGE, sizeof(there) };

	ht_fill(remote.iov_base, sizeof(there), 3);
	ASSERT_EQ((ssize_t)sizeof(there),
		  process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(sizeof(there), ht_match(there, sizeof(there), 3));
	ht_fill(there, sizeof(there), 4);
	ASSERT_EQ((ssize_t)sizeof(there),
		  process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(sizeof(there), ht_match(remote.iov_base, sizeof(there), 4));
}

TEST_F(huge, it_is_not_the_childs)
{
	pid_t pid = ht_fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		self->data[0] = 1;
		_exit(0);
	}
	EXPECT_EQ(128 + SIGSEGV, ht_reap(pid));
	self->data[HUGE] = 1;
}

/* A huge area without the library, mapped at @map. */
static int raw_area(struct hamlyn_area_alloc *arg, unsigned char **map)
{
	int fd = ht_raw_open(), ret;

	if (fd < 0)
		return fd;
	memset(arg, 0, sizeof(*arg));
	arg->size = sizeof(*arg);
	arg->flags = HAMLYN_AREA_HUGE;
	arg->length = AREA;
	ret = ht_raw(fd, HAMLYN_IOC_AREA_ALLOC, arg);
	if (ret)
		return ret;
	*map = aligned_room(AREA / HUGE, PROT_NONE);
	if (!*map)
		return -ENOMEM;
	if (mmap(*map, AREA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 (off_t)arg->mmap_offset) != *map)
		return -errno;
	return fd;
}

TEST_F(huge, what_is_taken_out_of_the_mapping_comes_back)
{
	struct hamlyn_area_alloc arg;
	unsigned char *p, *second;
	int fd;

	if (h_dev_is_embedded(self->dev))
		SKIP(return, "memory of the kernel");
	fd = raw_area(&arg, &p);
	ASSERT_GE(fd, 0);
	ht_fill(p, AREA, 7);
	ASSERT_EQ(0, madvise(p + PAGE, HUGE, MADV_DONTNEED));
	EXPECT_EQ(AREA, ht_match(p, AREA, 7));
	ASSERT_EQ(0, mprotect(p + HUGE + PAGE, PAGE, PROT_READ));
	EXPECT_EQ(AREA, ht_match(p, AREA, 7));
	ASSERT_EQ(0, mprotect(p + HUGE + PAGE, PAGE, PROT_READ | PROT_WRITE));
	p[HUGE + PAGE] ^= 1;
	p[HUGE + PAGE] ^= 1;
	/* In a second mapping that fits no huge page. */
	second = mmap(NULL, AREA + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	second = (unsigned char *)(((uintptr_t)second & -HUGE) + HUGE + PAGE);
	munmap(second, AREA);
	ASSERT_EQ(second, mmap(second, AREA, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_FIXED, fd,
			       (off_t)arg.mmap_offset));
	EXPECT_EQ(AREA, ht_match(second, AREA, 7));
	EXPECT_EQ(0, huge_kib(second));
	munmap(second, AREA);
	close(fd);
}

struct toucher {
	unsigned char *p;
	uint32_t stop;
};

/* By pages that may be huge, and by those that may not. */
static void *touch_both_ways(void *arg)
{
	struct toucher *t = arg;
	unsigned long small = 0;

	while (!h__load_acquire(&t->stop)) {
		small = !small;
		prctl(PR_SET_THP_DISABLE, small, 0, 0, 0);
		h__write_once(&t->p[1], 2);
	}
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	return NULL;
}

/* One maps it by a huge page while another one does by small ones: the kernel warns of none. */
TEST_F(huge, both_sizes_of_pages_are_mapped_at_once)
{
	struct hamlyn_area_alloc arg;
	struct toucher t = {};
	pthread_t thread[2];
	int64_t end;
	int fd, i;

	if (h_dev_is_embedded(self->dev))
		SKIP(return, "memory of the kernel");
	fd = raw_area(&arg, &t.p);
	ASSERT_GE(fd, 0);
	t.p[0] = 1;
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, touch_both_ways, &t));
	for (end = ht_now_ns() + 2 * HT_SEC; ht_now_ns() < end;) {
		EXPECT_EQ(0, madvise(t.p, HUGE, MADV_DONTNEED));
		EXPECT_EQ(1, h__read_once(&t.p[0]));
	}
	h__store_release(&t.stop, 1);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(2, t.p[1]);
	munmap(t.p, AREA);
	close(fd);
}

TEST_F(huge, memory_outlives_its_area_while_it_is_mapped)
{
	struct hamlyn_area_alloc arg;
	unsigned char *p;
	int fd, i;

	if (h_dev_is_embedded(self->dev))
		SKIP(return, "memory of the kernel");
	fd = raw_area(&arg, &p);
	ASSERT_GE(fd, 0);
	ht_fill(p, HUGE, 5);
	ASSERT_EQ(0, ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, arg.area));
	close(fd);
	/* Holes in it, pages that nobody has touched yet, another address. */
	EXPECT_EQ(0, munmap(p + 2 * HUGE + PAGE, PAGE));
	EXPECT_EQ(HUGE, ht_match(p, HUGE, 5));
	EXPECT_EQ(HUGE, ht_match_byte(p + HUGE, HUGE, 0));
	EXPECT_EQ(PAGE, ht_match_byte(p + 3 * HUGE, PAGE, 0));
	for (i = 0; i < 8; i++)
		p[2 * HUGE + (i + 2) * PAGE] = 1;
	munmap(p, AREA);
}

TEST_F(huge, all_of_it_comes_back_from_the_killed)
{
	unsigned int before, i;

	if (h_dev_is_embedded(self->dev))
		SKIP(return, "memory of the kernel");
	before = ht_count_areas(self->dev, 16 * HUGE, 4);
	for (i = 0; i < 8; i++) {
		pid_t pid = ht_fork();

		ASSERT_GE(pid, 0);
		if (!pid) {
			struct hamlyn_area_alloc arg;
			unsigned char *p;

			if (raw_area(&arg, &p) < 0)
				_exit(1);
			memset(p, 1, AREA);
			kill(getpid(), SIGKILL);
		}
		EXPECT_EQ(128 + SIGKILL, ht_reap(pid));
	}
	EXPECT_EQ(before, ht_count_areas(self->dev, 16 * HUGE, 4));
}

/* ---- huge pages that the process had already ---------------------------- */

#define OWN	(2 * HUGE)

/* OWN bytes of hugetlbfs and the file that they are of, or NULL. */
static unsigned char *own_pages(int *fd)
{
	unsigned char *p = MAP_FAILED;

	if (free_hugetlb() < 4)
		set_hugetlb(number_in(NR_HUGEPAGES, "%lu") + 4);
	*fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	if (*fd < 0)
		return NULL;
	if (free_hugetlb() >= 2 && !ftruncate(*fd, OWN))
		p = mmap(NULL, OWN, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (p != MAP_FAILED)
		return p;
	close(*fd);
	return NULL;
}

TEST_F(huge, added_memory_is_of_the_pages_that_it_has)
{
	unsigned char *p;
	struct h_area *a;
	int fd;

	p = own_pages(&fd);
	if (!p)
		SKIP(return, "no pages in hugetlbfs");
	ASSERT_EQ(0, h_area_add(self->dev, p, OWN, 0, &a));
	EXPECT_EQ(HUGE, h_area_page_size(a));
	ASSERT_EQ(0, h_terminus_bind(self->terminus, 0, a, 0, 0));
	EXPECT_NO(all_land(self, p + HUGE - 3));
	ASSERT_EQ(0, h_terminus_bind(self->terminus, 0, NULL, 0, 0));
	ASSERT_EQ(0, h_area_remove(a));
	/* Parts that begin and end anywhere. */
	ASSERT_EQ(0, h_area_add(self->dev, p + 3 * PAGE + 5, HUGE, 0, &a));
	EXPECT_EQ(HUGE, h_area_page_size(a));
	ASSERT_EQ(0, h_terminus_bind(self->terminus, 0, a, 0, 0));
	EXPECT_NO(all_land(self, p + 3 * PAGE + 5));
	munmap(p, OWN);
	close(fd);
}

TEST_F(huge, one_ordinary_page_is_the_smallest)
{
	unsigned char *p, *room;
	struct h_area *a;
	int fd;

	p = own_pages(&fd);
	if (!p)
		SKIP(return, "no pages in hugetlbfs");
	room = aligned_room(2, PROT_NONE);
	ASSERT_NE(NULL, room);
	ASSERT_EQ(room, mmap(room, HUGE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, fd, 0));
	ASSERT_EQ(room + HUGE, mmap(room + HUGE, PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
				    -1, 0));
	ASSERT_EQ(0, h_area_add(self->dev, room + PAGE + 1, HUGE - 2, 0, &a));
	EXPECT_EQ(PAGE, h_area_page_size(a));
	ASSERT_EQ(0, h_terminus_bind(self->terminus, 0, a, 0, 0));
	EXPECT_NO(lands(self, room + HUGE - 700, PAGE, HUGE - 1));
	close(fd);
}

/* A pin of one page keeps all of a huge one: that is what is charged. */
TEST_F(huge, what_is_pinned_counts_whole_and_once)
{
	unsigned long before = pinned_kib();
	unsigned char *p;
	struct h_area *a;
	int fd;

	if (h_dev_is_embedded(self->dev))
		SKIP(return, "nothing is pinned");
	p = own_pages(&fd);
	if (!p)
		SKIP(return, "no pages in hugetlbfs");
	ASSERT_EQ(0, h_area_add(self->dev, p, OWN, 0, &a));
	EXPECT_EQ(before + OWN / 1024, pinned_kib());
	ASSERT_EQ(0, h_area_remove(a));
	EXPECT_EQ(before, pinned_kib());
	ASSERT_EQ(0, h_area_add(self->dev, p + PAGE - 1, PAGE + 2, 0, &a));
	EXPECT_EQ(before + HUGE / 1024, pinned_kib());
	ASSERT_EQ(0, h_area_remove(a));
	ASSERT_EQ(0, h_area_add(self->dev, p + HUGE - 1, 2, 0, &a));
	EXPECT_EQ(before + 2 * HUGE / 1024, pinned_kib());
	ASSERT_EQ(0, h_area_remove(a));
	EXPECT_EQ(before, pinned_kib());
	close(fd);
}

#define SHUFFLED	16

/* @a and @b change places; @spare is room for a page. */
static bool swap_pages(unsigned char *a, unsigned char *b, unsigned char *spare)
{
	const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

	return mremap(a, PAGE, PAGE, flags, spare) == spare &&
	       mremap(b, PAGE, PAGE, flags, a) == a &&
	       mremap(spare, PAGE, PAGE, flags, b) == b;
}

/*
 * mremap() leaves the pages of a transparent huge page in one folio and in any
 * order: what follows in addresses need not follow in memory.
 */
TEST_F(huge, pages_that_mremap_shuffled_are_in_the_order_of_addresses)
{
	unsigned char *p, *spare;
	struct h_area *a;
	unsigned long before = pinned_kib();
	int i;

	p = aligned_room(2, PROT_READ | PROT_WRITE);
	ASSERT_NE(NULL, p);
	spare = p + HUGE;
	/* Without any the test is of small pages: not in vain, but not this. */
	madvise(p, HUGE, MADV_HUGEPAGE);
	memset(p, 1, HUGE);
	for (i = 0; i < SHUFFLED; i += 2)
		ASSERT_TRUE(swap_pages(p + i * PAGE, p + (i + 1) * PAGE,
				       spare));
	ASSERT_EQ(0, h_area_add(self->dev, p, 2 * SHUFFLED * PAGE, 0, &a));
	/* Once, although it is come back to with every page. */
	if (h_area_page_size(a) == HUGE && !h_dev_is_embedded(self->dev))
		EXPECT_EQ(before + HUGE / 1024, pinned_kib());
	ASSERT_EQ(0, h_terminus_bind(self->terminus, 0, a, 0, 0));
	EXPECT_NO(lands(self, p + 3, 2 * SHUFFLED * PAGE - 3, PAGE + 5));
	munmap(p, 2 * HUGE);
}

#define SHMEM_HUGE	"/sys/kernel/mm/transparent_hugepage/shmem_enabled"
#define BATCH		(512 * PAGE)	/* as many pages the driver wires at a time */

/* What is chosen there: the word in brackets. */
static bool shmem_is_huge(char *word)
{
	FILE *f = fopen(SHMEM_HUGE, "re");
	const char *chosen = NULL;
	char line[128];

	if (f && fgets(line, sizeof(line), f))
		chosen = strchr(line, '[');
	if (f)
		fclose(f);
	return chosen && sscanf(chosen, "[%15[^]]", word) == 1;
}

static bool let_shmem_be_huge(const char *how)
{
	FILE *f = fopen(SHMEM_HUGE, "we");
	bool ok = f && fputs(how, f) >= 0;

	return f && !fclose(f) && ok;
}

/*
 * The same pages twice, then nothing: what the second batch has wired ends
 * where the first, which was read into the same place, went on.
 */
TEST_F(huge, what_ends_within_a_batch_is_EFAULT)
{
	const int flags = MAP_SHARED | MAP_FIXED;
	const int rw = PROT_READ | PROT_WRITE;
	int fd = memfd_create("huge", MFD_CLOEXEC);
	unsigned char *p;
	struct h_area *a;
	char was[16];

	if (h_dev_is_embedded(self->dev))
		SKIP(return, "nothing is wired");
	if (!shmem_is_huge(was) || !let_shmem_be_huge("advise"))
		SKIP(return, "shared memory cannot be of huge pages");
	ASSERT_EQ(0, ftruncate(fd, BATCH));
	p = aligned_room(3, PROT_NONE);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(p, mmap(p, BATCH, rw, flags, fd, 0));
	madvise(p, BATCH, MADV_HUGEPAGE);
	memset(p, 1, BATCH);
	let_shmem_be_huge(was);
	if (huge_kib(p) != HUGE / 1024)
		SKIP(return, "there was no huge page");
	ASSERT_EQ(p + BATCH, mmap(p + BATCH, 11 * PAGE, rw, flags, fd, 0));
	EXPECT_EQ(-EFAULT, h_area_add(self->dev, p, BATCH + 20 * PAGE, 0, &a));
	EXPECT_EQ(0, h_area_add(self->dev, p, BATCH + 11 * PAGE, 0, &a));
	munmap(p, 3 * HUGE);
	close(fd);
}

/* The area names the pages that were there, whatever the process does. */
TEST_F(huge, memory_that_is_pulled_away_is_not_lost)
{
	unsigned long before;
	unsigned char *p;
	struct h_area *a;
	int fd, i;

	if (h_dev_is_embedded(self->dev))
		SKIP(return, "the sender reads it where it is mapped");
	for (i = 0; i < 3; i++) {
		p = own_pages(&fd);
		if (!p)
			SKIP(return, "no pages in hugetlbfs");
		before = free_hugetlb();
		ht_fill(p, OWN, 9);
		ASSERT_EQ(0, h_area_add(self->dev, p, OWN, 0, &a));
		ASSERT_EQ(0, h_terminus_bind(self->terminus, 0, a, 0, 0));
		ASSERT_EQ(0, i == 0 ? munmap(p, OWN) :
			     i == 1 ? madvise(p, OWN, MADV_DONTNEED) :
				      ftruncate(fd, 0));
		close(fd);
		memset(self->data, 0, OWN);
		ASSERT_EQ(0, send_to(self, p, OWN, 0));
		EXPECT_EQ(OWN, ht_match(self->data, OWN, 9));
		ASSERT_EQ(0, h_terminus_bind(self->terminus, 0, NULL, 0, 0));
		ASSERT_EQ(0, h_area_remove(a));
		if (i)
			munmap(p, OWN);
		EXPECT_LE(before, free_hugetlb());
	}
}

TEST_F(huge, pages_come_back_from_the_killed)
{
	unsigned long before;
	unsigned char *p;
	int fd, i;

	p = own_pages(&fd);
	if (!p)
		SKIP(return, "no pages in hugetlbfs");
	munmap(p, OWN);
	close(fd);
	before = free_hugetlb();
	for (i = 0; i < 5; i++) {
		pid_t pid = ht_fork();

		ASSERT_GE(pid, 0);
		if (!pid) {
			struct h_dev *dev;
			struct h_area *a;

			p = own_pages(&fd);
			if (!p || h_open(h_dev_name(self->dev), &dev) ||
			    h_area_add(dev, p, OWN, 0, &a))
				_exit(1);
			kill(getpid(), SIGKILL);
		}
		EXPECT_EQ(128 + SIGKILL, ht_reap(pid));
	}
	EXPECT_EQ(before, free_hugetlb());
}

TEST_HARNESS_MAIN
