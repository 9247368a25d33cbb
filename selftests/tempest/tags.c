// SPDX-License-Identifier: GPL-2.0-only
/* Tables 1 and 2 of the specification. */
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

#define MODE	7
#define HOME	4711
#define USER	((void *)0x1234)

/* What handlers have seen, between two accesses of this thread. */
static volatile struct {
	int calls;
	int tag, access;
	char *va;
	void *usr_ptr;
	TPPI_NodeId home;
} seen;

static void see(int tag, int access, void *va, void *usr_ptr, TPPI_NodeId home)
{
	seen.calls++;
	seen.tag = tag;
	seen.access = access;
	seen.va = va;
	seen.usr_ptr = usr_ptr;
	seen.home = home;
	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, access == TPPI_WriteAccess ?
			    TPPI_Blk_Validate_RW : TPPI_Blk_Validate_RO);
	TPPI_resume_va(va, TPPI_TAG_BLK_SIZE);
}

#define HANDLER(tag, access)	\
	static void tag##_##access(void *va, void *usr_ptr, TPPI_NodeId home) \
	{ \
		see(TPPI_Blk_##tag, TPPI_##access##Access, va, usr_ptr, home); \
	}

HANDLER(Invalid, Read)
HANDLER(Invalid, Write)
HANDLER(Busy, Read)
HANDLER(Busy, Write)
HANDLER(ReadOnly, Write)

static void register_handlers(TPPI_PageMode mode)
{
#define REGISTER(tag, access)	\
	TPPI_register_blk_acc_fault_handler(mode, TPPI_Blk_##tag, TPPI_##access##Access, \
					    tag##_##access)
	REGISTER(Invalid, Read);
	REGISTER(Invalid, Write);
	REGISTER(Busy, Read);
	REGISTER(Busy, Write);
	REGISTER(ReadOnly, Write);
}

/* Ways to access 4 bytes or more; all leave what they find, or write what they have read. */
static void by_mov_load(char *at)
{
	(void)*(volatile int *)at;
}

static void by_mov_store(char *at)
{
	*(volatile int *)at = 5;
}

static void by_rmw(char *at)
{
	__asm__ volatile("incl (%0)" : : "r"(at) : "memory");
}

static void by_lock(char *at)
{
	atomic_fetch_add((_Atomic int *)at, 1);
}

static void by_sse_load(char *at)
{
	__asm__ volatile("movups (%0), %%xmm1" : : "r"(at) : "xmm1");
}

static void by_sse_store(char *at)
{
	__asm__ volatile("movups %%xmm1, (%0)" : : "r"(at) : "memory");
}

__attribute__((target("avx")))
static void by_avx_load(char *at)
{
	__asm__ volatile("vmovups (%0), %%ymm1\n\tvzeroupper" : : "r"(at) : "xmm1");
}

__attribute__((target("avx")))
static void by_avx_store(char *at)
{
	__asm__ volatile("vxorps %%ymm1, %%ymm1, %%ymm1\n\tvmovups %%ymm1, (%0)\n\tvzeroupper"
			 : : "r"(at) : "xmm1", "memory");
}

static void by_libc_load(char *at)
{
	volatile int sum = memcmp(at, "never this", 8);

	(void)sum;
}

static void by_libc_store(char *at)
{
	memset(at, 3, 16 + (at - at));
}

static void by_movs_load(char *at)
{
	char to[16];
	void *target = to;
	size_t count = sizeof(to);

	__asm__ volatile("rep movsb" : "+S"(at), "+D"(target), "+c"(count) : : "memory");
}

static void by_stos(char *at)
{
	size_t count = 16;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(count) : "a"(9) : "memory");
}

static void by_push(char *at)
{
	__asm__ volatile("pushq (%0)\n\tpopq %%rax" : : "r"(at) : "rax", "memory");
}

static void by_checked_load(char *at)
{
	checked_load(at);
}

static void by_checked_store(char *at)
{
	checked_store(at, 8);
}

static void by_checked_add(char *at)
{
	checked_add(at, 8);
}

static const struct way {
	const char *name;
	void (*access)(char *at);
	bool write, avx;
} ways[] = {
	{ "mov", by_mov_load, false, false },
	{ "mov", by_mov_store, true, false },
	{ "inc", by_rmw, true, false },
	{ "lock", by_lock, true, false },
	{ "SSE", by_sse_load, false, false },
	{ "SSE", by_sse_store, true, false },
	{ "AVX", by_avx_load, false, true },
	{ "AVX", by_avx_store, true, true },
	{ "libc", by_libc_load, false, false },
	{ "libc", by_libc_store, true, false },
	{ "movs", by_movs_load, false, false },
	{ "stos", by_stos, true, false },
	{ "push", by_push, false, false },
	{ "checked", by_checked_load, false, false },
	{ "checked", by_checked_store, true, false },
	{ "checked add", by_checked_add, true, false },
};

#define WAYS	(sizeof(ways) / sizeof(ways[0]))

static const TPPI_BlkTagChange change_to[] = {
	TPPI_Blk_Invalidate, TPPI_Blk_Mark_Busy, TPPI_Blk_Validate_RO, TPPI_Blk_Validate_RW,
};

static void set_tag(void *block, TPPI_BlkAccTag tag)
{
	TPPI_change_blk_acc(block, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
	TPPI_change_blk_acc(block, TPPI_TAG_BLK_SIZE, change_to[tag]);
	CHECK_EQUAL(TPPI_get_blk_acc(block), tag);
}

static bool conflicts(TPPI_BlkAccTag tag, bool write)
{
	return tag < TPPI_Blk_ReadOnly || (tag == TPPI_Blk_ReadOnly && write);
}

static void check_cell(const struct way *way, char *block, TPPI_BlkAccTag tag)
{
	bool fault = conflicts(tag, way->write);

	set_tag(block, tag);
	seen.calls = 0;
	way->access(block);
	if (seen.calls != fault)
		failed(__FILE__, __LINE__, "%s, %s: %d faults with tag %d", way->name,
		       way->write ? "store" : "load", seen.calls, tag);
	if (!fault)
		return;
	CHECK_EQUAL(seen.tag, tag);
	CHECK_EQUAL(seen.access, way->write);
	CHECK(seen.va >= block && seen.va < block + TPPI_TAG_BLK_SIZE);
	CHECK(seen.usr_ptr == USER);
	CHECK_EQUAL(seen.home, HOME);
}

/* Table 1; with others of the page Writable, and Invalid. */
static void table1(void)
{
	register_handlers(MODE);
	for (int page = 0; page < 2; page++) {
		CHECK_EQUAL(TPPI_alloc_and_map(page_at(page), MODE,
					       page ? TPPI_Blk_Invalid : TPPI_Blk_Writable, HOME,
					       USER), 1);
		for (size_t way = 0; way < WAYS; way++) {
			if (ways[way].avx && !__builtin_cpu_supports("avx"))
				continue;
			for (int tag = 0; tag < TPPI_NUM_BLK_ACC_TAGS; tag++)
				check_cell(&ways[way], page_at(page) + 64, tag);
		}
	}
}

/* Table 2: all changes that are there. */
static void table2(void)
{
	static const struct {
		TPPI_BlkAccTag from, to;
		TPPI_BlkTagChange change;
	} cells[] = {
#define CELL(from, to, change) { TPPI_Blk_##from, TPPI_Blk_##to, TPPI_Blk_##change }
		CELL(Invalid, Invalid, No_Tag_Change), CELL(Invalid, Invalid, Invalidate),
		CELL(Invalid, Busy, Invalid_To_Busy), CELL(Invalid, Busy, Mark_Busy),
		CELL(Invalid, ReadOnly, Validate_RO), CELL(Invalid, Writable, Validate_RW),
		CELL(Busy, Invalid, Busy_To_Invalid), CELL(Busy, Invalid, Invalidate),
		CELL(Busy, Busy, No_Tag_Change), CELL(Busy, Busy, Mark_Busy),
		CELL(Busy, ReadOnly, Validate_RO), CELL(Busy, Writable, Validate_RW),
		CELL(ReadOnly, Invalid, Invalidate), CELL(ReadOnly, Busy, Mark_Busy),
		CELL(ReadOnly, ReadOnly, No_Tag_Change), CELL(ReadOnly, Writable, Upgrade_RW),
		CELL(ReadOnly, Writable, Validate_RW), CELL(Writable, Invalid, Invalidate),
		CELL(Writable, Busy, Mark_Busy), CELL(Writable, ReadOnly, Downgrade_RO),
		CELL(Writable, Writable, No_Tag_Change), CELL(Writable, Writable, Validate_RW),
	};

	map_page(page_at(0), 0, TPPI_Blk_Invalid);
	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		set_tag(page_at(0) + 32, cells[i].from);
		TPPI_change_blk_acc(page_at(0) + 45, TPPI_TAG_BLK_SIZE, cells[i].change);
		CHECK_EQUAL(TPPI_get_blk_acc(page_at(0) + 63), cells[i].to);
		/* Its neighbours */
		CHECK_EQUAL(TPPI_get_blk_acc(page_at(0) + 31), TPPI_Blk_Invalid);
		CHECK_EQUAL(TPPI_get_blk_acc(page_at(0) + 64), TPPI_Blk_Invalid);
	}
}

/* A load of two blocks meets both, and each page's mode says whose handlers run. */
static void straddling(void)
{
	char *at = page_at(1) - 16;

	register_handlers(MODE);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(0), MODE, TPPI_Blk_Invalid, HOME, USER), 1);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(1), MODE, TPPI_Blk_Invalid, HOME, USER), 1);
	by_avx_store(at);
	CHECK_EQUAL(seen.calls, 2);
	CHECK(seen.va >= page_at(1));
	set_tag(page_at(1), TPPI_Blk_Busy);
	seen.calls = 0;
	CHECK_EQUAL(checked_load_8(page_at(1) - 4), 0);
	CHECK_EQUAL(seen.calls, 1);
	CHECK_EQUAL(seen.tag, TPPI_Blk_Busy);
}

/* Of minimal blocks with different tags, by addresses anywhere within, also of two pages. */
static void superblocks(void)
{
	register_handlers(MODE);
	for (int i = 0; i < 2; i++)
		CHECK_EQUAL(TPPI_alloc_and_map(page_at(i), MODE, TPPI_Blk_Invalid, HOME, USER), 1);
	for (int length = 64; length <= 2 * TPPI_PAGE_SIZE; length *= 2) {
		char *start = page_at(0) + (length < TPPI_PAGE_SIZE ? length : 0);

		TPPI_change_blk_acc(page_at(0), 2 * TPPI_PAGE_SIZE, TPPI_Blk_Invalidate);
		for (char *block = start; block < start + length; block += TPPI_TAG_BLK_SIZE)
			TPPI_change_blk_acc(block, TPPI_TAG_BLK_SIZE, (block - start) & 32 ?
					    TPPI_Blk_Validate_RO : TPPI_Blk_Validate_RW);
		TPPI_change_blk_acc(start + length - 1, length, TPPI_Blk_Mark_Busy);
		for (char *block = page_at(0); block < page_at(2); block += TPPI_TAG_BLK_SIZE)
			CHECK_EQUAL(TPPI_get_blk_acc(block),
				    block >= start && block < start + length ? TPPI_Blk_Busy :
									       TPPI_Blk_Invalid);
		TPPI_change_blk_acc(start + length / 2, length, TPPI_Blk_Validate_RW);
		seen.calls = 0;
		memset(start, 1, length);
		CHECK_EQUAL(seen.calls, 0);
	}
}

/* Open pages are closed when one block loses access: no store goes through. */
static void open_page(void)
{
	register_handlers(MODE);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(0), MODE, TPPI_Blk_Writable, HOME, USER), 1);
	by_mov_store(page_at(0));
	by_mov_store(page_at(0));
	TPPI_change_blk_acc(page_at(0), TPPI_TAG_BLK_SIZE, TPPI_Blk_Downgrade_RO);
	by_mov_load(page_at(0));
	CHECK_EQUAL(seen.calls, 0);
	by_mov_store(page_at(0));
	CHECK_EQUAL(seen.calls, 1);
	TPPI_change_blk_acc(page_at(0), TPPI_PAGE_SIZE, TPPI_Blk_Downgrade_RO);
	by_mov_load(page_at(0));
	by_mov_load(page_at(0));
	by_mov_store(page_at(0));
	CHECK_EQUAL(seen.calls, 2);
	TPPI_change_blk_acc(page_at(0), TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
	by_mov_load(page_at(0));
	CHECK_EQUAL(seen.calls, 3);
}

/* Reclaim takes a page out of the page table: to drop it there is the same. */
static void unmapped_page(void)
{
	register_handlers(MODE);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(0), MODE, TPPI_Blk_Writable, HOME, USER), 1);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(1), MODE, TPPI_Blk_ReadOnly, HOME, USER), 1);
	by_mov_store(page_at(0));
	by_mov_load(page_at(1));
	CHECK(!madvise(page_at(0), 2 * TPPI_PAGE_SIZE, MADV_DONTNEED));
	/* One that traps over and over does not end by itself */
	alarm(tempest_control ? 5 : 60 * scale());
	CHECK_EQUAL(*(volatile int *)page_at(0), 5);
	by_mov_store(page_at(0));
	by_mov_load(page_at(1));
	CHECK_EQUAL(seen.calls, 0);
	by_mov_store(page_at(1));
	CHECK_EQUAL(seen.calls, 1);
}

/* As mlockall() does, without the memory that would take. */
static void locked_page(void)
{
	map_page(page_at(0), 0, TPPI_Blk_Writable);
	*(volatile char *)page_at(0) = 1;
	CHECK(!mlock2(page_at(0), TPPI_PAGE_SIZE, MLOCK_ONFAULT));
	TPPI_change_blk_acc(page_at(0), TPPI_PAGE_SIZE, TPPI_Blk_Downgrade_RO);
	TPPI_change_blk_acc(page_at(0), TPPI_PAGE_SIZE, TPPI_Blk_Upgrade_RW);
	*(volatile char *)page_at(0) = 1;
	CHECK(!mlock2(page_at(0), TPPI_PAGE_SIZE, MLOCK_ONFAULT));
	TPPI_change_blk_acc(page_at(0), TPPI_PAGE_SIZE, TPPI_Blk_Invalidate);
}

const struct test tests[] = {
	{ "table-1", table1, 0, 0, 0 },
	{ "table-2", table2, 0, 0, 0 },
	{ "straddling", straddling, 0, 0, 0 },
	{ "superblocks", superblocks, 0, 0, 0 },
	{ "open-page", open_page, CONTROL_STAY_OPEN, 0, 0 },
	{ "locked-page", locked_page, 0, 0, 0 },
	{ "unmapped-page", unmapped_page, CONTROL_NO_REOPEN, 0, SIGALRM },
	{ 0 }
};
