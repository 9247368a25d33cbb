// SPDX-License-Identifier: GPL-2.0-only
/* Is it one memory? Under contention, while pages are replaced, and wherever its home is. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "block.h"
#include "copy.h"
#include "home.h"
#include "test.h"

#define THREADS		2
#define FEWEST_PAGES	16

static volatile uint32_t *shared;

static volatile void *allocate(TPPI_NodeId node, size_t bytes, const struct stache_place *place)
{
	static const struct stache_place anywhere;
	void *memory = node == ME ? stache_malloc_place(bytes, place ? place : &anywhere) : NULL;

	CHECK(node != ME || memory);
	return tell_all(memory);
}

/* ---- contention ---- */

static void count(unsigned int thread)
{
	(void)thread;
	for (long i = 0; i < 5000; i++)
		__atomic_add_fetch(shared, 1, __ATOMIC_RELAXED);
}

/* All threads count in one word; no count is lost. */
static void counts(void)
{
	stache_init(&(struct stache_attr){ .block_bytes = TPPI_PAGE_SIZE });
	shared = allocate(NODES - 1, 64, NULL);
	in_threads(THREADS, count);
	TPPI_barrier();
	CHECK_EQUAL(*shared, 5000 * THREADS * NODES);
}

static void count_own(unsigned int thread)
{
	volatile uint32_t *word = shared + ME * THREADS + thread;

	for (long i = 0; i < rounds(1000); i++) {
		CHECK_EQUAL(*word, i);
		*word = i + 1;
	}
}

/* Each thread has a word of its own, all in one block. */
static void own_words(void)
{
	stache_init(NULL);
	shared = allocate(0, 4 * THREADS * NODES, NULL);
	in_threads(THREADS, count_own);
}

/* What an owner stores after it was read elsewhere is seen there, too. */
static void readers(void)
{
	struct stache_place place = { .homes = STACHE_HOMES_ONE, .home = NODES - 1 };
	volatile uint32_t *word;

	stache_init(NULL);
	word = allocate(NODES - 1, 4, &place);
	for (uint32_t i = 1; i < 20; i++) {
		if (!ME)
			*word = i;
		TPPI_barrier();
		CHECK_EQUAL(*word, i);
		TPPI_barrier();
	}
}

#define AHEAD	TPPI_PAGE_SIZE	/* another word, in another block */

static void pause_by_chance(uint32_t *seed)
{
	for (uint32_t left = chance(seed) % 4096; left; left--)
		__builtin_ia32_pause();
}

/* One word is ahead of another one, whenever both are looked at. */
RACES
static void follow(unsigned int thread)
{
	uint32_t seed = ME * THREADS + thread, behind, ahead;

	do {
		pause_by_chance(&seed);
		if (!ME && !thread) {
			++shared[AHEAD];
			++shared[0];
		}
		behind = shared[0];
		ahead = shared[AHEAD];
		if (ahead < behind)
			failed(__FILE__, __LINE__, "node %u: %u is stored after %u", ME, behind,
			       ahead);
	} while (behind < rounds(500));
}

static void in_order(void)
{
	stache_init(NULL);
	shared = allocate(NODES - 1, 4 * (AHEAD + 1), NULL);
	in_threads(THREADS, follow);
}

/* ---- replacement ---- */

#define MANY	96	/* pages: more than a node may have of others */
#define STEP	16	/* words: not all, to save time */
#define WORDS	(MANY * TPPI_PAGE_SIZE / 4)

static void check_figures(void)
{
	struct stache_figures figures;

	stache_get_figures(&figures);
	CHECK(figures.pages <= FEWEST_PAGES);
	if (NODES > 1) {
		CHECK(figures.replaced);
		CHECK(figures.written_back);
	}
}

static void add_to_page(uint32_t page)
{
	for (int i = 0; i < TPPI_PAGE_SIZE / 4; i += STEP)
		shared[page * TPPI_PAGE_SIZE / 4 + i]++;
}

/* Each page in turn is each node's. */
static void replacement(void)
{
	stache_init(&(struct stache_attr){ .most_pages = FEWEST_PAGES });
	shared = allocate(0, MANY * TPPI_PAGE_SIZE, NULL);
	for (unsigned int round = 0; round < NODES; round++) {
		for (uint32_t page = 0; page < MANY; page++) {
			if ((page / NODES + round) % NODES == ME)
				add_to_page(page);
		}
		TPPI_barrier();
	}
	for (int i = 0; i < WORDS; i += STEP)
		CHECK_EQUAL(shared[i], NODES);
	check_figures();
}

static void count_anywhere(unsigned int thread)
{
	uint32_t seed = ME * THREADS + thread;

	for (int i = 0; i < 1000; i++)
		__atomic_add_fetch(&shared[chance(&seed) % MANY * TPPI_PAGE_SIZE / 4], 1,
				   __ATOMIC_RELAXED);
}

/* Pages are given up just as others ask for their blocks. */
static void replacement_races(void)
{
	uint32_t sum = 0;

	stache_init(&(struct stache_attr){ .most_pages = FEWEST_PAGES });
	shared = allocate(0, MANY * TPPI_PAGE_SIZE, NULL);
	in_threads(THREADS, count_anywhere);
	TPPI_barrier();
	for (int i = 0; i < MANY; i++)
		sum += shared[i * TPPI_PAGE_SIZE / 4];
	CHECK_EQUAL(sum, 1000 * THREADS * NODES);
	check_figures();
}

#define OVER	40	/* threads that wait for a page each */

static pid_t home_pid;
static bool told;

static void on_pid(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	home_pid = TPPI_recv_W();
	__atomic_store_n(&told, true, __ATOMIC_RELEASE);
}

static void load_page(unsigned int thread)
{
	CHECK_EQUAL(shared[thread * TPPI_PAGE_SIZE / 4], 0);
}

static uint64_t pages_now(void)
{
	struct stache_figures figures;

	stache_get_figures(&figures);
	return figures.pages;
}

static void *go_on(void *unused)
{
	while (pages_now() <= FEWEST_PAGES)
		usleep(100);
	CHECK(!kill(home_pid, SIGCONT));
	return unused;
}

/* Pages that are waited for exceed the limit, but no longer than that. */
static void limit_exceeded(void)
{
	struct stache_place place = { .homes = STACHE_HOMES_ONE, .home = NODES - 1 };
	pthread_t thread;

	stache_init(&(struct stache_attr){ .most_pages = FEWEST_PAGES });
	shared = allocate(NODES - 1, 2 * OVER * TPPI_PAGE_SIZE, &place);
	if (TPPI_self_address == NODES - 1)
		TPPI_send_W(0, on_pid, getpid());
	if (!ME) {
		while (!__atomic_load_n(&told, __ATOMIC_ACQUIRE))
			usleep(100);
		/* The home answers nobody until there are too many */
		CHECK(!kill(home_pid, SIGSTOP));
		CHECK(!pthread_create(&thread, NULL, go_on, NULL));
		in_threads(OVER, load_page);
		pthread_join(thread, NULL);
		load_page(OVER);
		CHECK(pages_now() <= FEWEST_PAGES);
	}
	TPPI_barrier();
}

/* Copies leave what memory there is to pages whose home is here: 32 pages in the script. */
static void memory_for_homes(void)
{
	volatile char *own = NULL, *other = NULL;

	stache_init(NULL);
	for (TPPI_NodeId node = 0; node < NODES; node++) {
		struct stache_place place = { .homes = STACHE_HOMES_ONE, .home = node };
		volatile char *memory = allocate(node, 24 * TPPI_PAGE_SIZE, &place);

		if (node == ME)
			own = memory;
		else
			other = memory;
	}
	if (!ME) {
		for (int page = 0; page < 24; page++)
			CHECK_EQUAL(other[page * TPPI_PAGE_SIZE], 0);
		for (int page = 0; page < 24; page++)
			own[page * TPPI_PAGE_SIZE] = 1;
		CHECK(!getenv("HAMLYN_TEMPEST_MEMORY") || pages_now() <= 8);
	}
	TPPI_barrier();
}

/* ---- homes ---- */

static void homes(void)
{
	unsigned int pages[64] = { 0 }, out_of_turn = 0;
	char *memory;

	stache_init(NULL);
	memory = stache_malloc_local(1);
	CHECK_EQUAL(stache_home(memory), ME);
	for (int i = 0; i < 3; i++) {
		struct stache_place place = { .homes = STACHE_HOMES_ONE, .home = i % NODES };

		CHECK_EQUAL(stache_home(stache_malloc_place(5000, &place)), i % NODES);
	}
	memory = stache_malloc_place(256 * TPPI_PAGE_SIZE,
				     &(struct stache_place){ .homes = STACHE_HOMES_STATIC });
	for (int i = 1; i < 256; i++)
		CHECK_EQUAL(stache_home(memory + i * TPPI_PAGE_SIZE),
			    (stache_home(memory) + i) % NODES);
	memory = stache_malloc_place(256 * TPPI_PAGE_SIZE,
				     &(struct stache_place){ .homes = STACHE_HOMES_RANDOM });
	for (int i = 0; i < 256; i++) {
		TPPI_NodeId home = stache_home(memory + i * TPPI_PAGE_SIZE);

		pages[home]++;
		out_of_turn += home != (stache_home(memory) + i) % NODES;
	}
	CHECK(out_of_turn || NODES == 1);
	/* Of 256 draws: fewer than a third of the mean would be a fault of the draw */
	for (TPPI_NodeId node = 0; node < NODES; node++)
		CHECK(pages[node] > 256 / NODES / 3);
}

/* All know the same home of each page, and it is another's memory until it is touched. */
static void agreed(void)
{
	TPPI_NodeId home;
	volatile char *memory;

	stache_init(NULL);
	memory = allocate(NODES - 1, 16 * TPPI_PAGE_SIZE,
			  &(struct stache_place){ .homes = STACHE_HOMES_RANDOM });
	shared = allocate(0, 64, NULL);
	for (int i = 0; i < 16; i++) {
		volatile char *page = memory + i * TPPI_PAGE_SIZE;

		CHECK_EQUAL(*page, 0);
		home = stache_home((void *)page);
		CHECK_EQUAL(TPPI_get_page_home((void *)page), home);
		__atomic_add_fetch(&shared[i % 8], home, __ATOMIC_RELAXED);
		TPPI_barrier();
		CHECK_EQUAL(shared[i % 8], home * NODES);
		TPPI_barrier();
		if (!ME)
			shared[i % 8] = 0;
		TPPI_barrier();
	}
}

/* ---- blocks ---- */

/* As many fetches as blocks; a store to a copy takes no other one. */
static void blocks(void)
{
	struct stache_figures before, after;

	stache_init(NULL);
	for (int block = TPPI_TAG_BLK_SIZE; block <= TPPI_PAGE_SIZE; block *= 2) {
		volatile char *page = allocate(0, TPPI_PAGE_SIZE,
					       &(struct stache_place){ .homes = STACHE_HOMES_ONE,
								       .block_bytes = block });

		stache_get_figures(&before);
		for (int i = 0; ME == 1 && i < TPPI_PAGE_SIZE; i += TPPI_TAG_BLK_SIZE)
			CHECK_EQUAL(page[i], 0);
		for (int i = 0; ME == 1 && i < TPPI_PAGE_SIZE; i += TPPI_TAG_BLK_SIZE)
			page[i] = 1;
		stache_get_figures(&after);
		if (ME == 1) {
			CHECK_EQUAL(after.fetches - before.fetches, TPPI_PAGE_SIZE / block);
			CHECK_EQUAL(after.upgrades - before.upgrades, TPPI_PAGE_SIZE / block);
		}
		TPPI_barrier();
	}
}

/* ---- ends ---- */

static void used_up(void)
{
	stache_init(&(struct stache_attr){ .bytes = 4 << 20 });
	CHECK(!stache_malloc((4 << 20) + 1));
	CHECK(!stache_malloc(SIZE_MAX));
	if (!ME)
		CHECK(stache_malloc(3 << 20));
	TPPI_barrier();
	if (TPPI_self_address == NODES - 1) {
		CHECK(!stache_malloc((1 << 20) + 1));
		CHECK(stache_malloc(1 << 20));
		CHECK(!stache_malloc(1));
	}
}

/* The end of the segment follows what is left of the memory before it. */
static void last_chunks(void)
{
	char *first, *rest;

	stache_init(&(struct stache_attr){ .bytes = 4 << 20 });
	if (!ME) {
		first = stache_malloc(512 << 10);
		rest = stache_malloc((4 << 20) - (512 << 10));
		CHECK(first && rest == first + (512 << 10));
		rest[(4 << 20) - (512 << 10) - 1] = 1;
		CHECK(!stache_malloc(1));
	}
	TPPI_barrier();
}

static void unallocated(void)
{
	stache_init(NULL);
	*(volatile char *)TPPI_SEG_BASE = 1;
}

static void outside(void)
{
	stache_init(&(struct stache_attr){ .bytes = 1 << 20 });
	*(volatile char *)(TPPI_SEG_BASE + (1 << 20)) = 1;
}

/* Parts of the segment differ: a node's is larger than node 0's, or before it. */
static void larger_part(void)
{
	size_t bytes = ME ? 4 << 20 : 1 << 20;

	stache_init(&(struct stache_attr){ .bytes = bytes });
	if (ME)
		*(volatile char *)(TPPI_SEG_BASE + bytes - 1) = 1;
	TPPI_barrier();
}

static void another_part(void)
{
	size_t start = ME ? 0 : 64 << 20;

	stache_init(&(struct stache_attr){ .from = TPPI_SEG_BASE + start, .bytes = 1 << 20 });
	if (ME)
		stache_malloc(1);
	TPPI_barrier();
}

/* Messages for a page that is not there */
static void no_answer(void)
{
	stache_init(NULL);
	TPPI_send_W(ME, stache_copy_upgraded, 0);
	TPPI_barrier();
}

static void no_home(void)
{
	stache_init(NULL);
	TPPI_send_W(ME, stache_home_ack, 0);
	TPPI_barrier();
}

/* The first request for a page, of blocks that cannot be. */
static void request(int block_bytes)
{
	stache_init(NULL);
	TPPI_send_WWW(ME, stache_home_request, 0, WANT_READ, block_bytes);
	TPPI_barrier();
}

static void request_of_0(void)
{
	request(0);
}

static void request_of_3(void)
{
	request(3);
}

static void odd_block(void)
{
	stache_init(&(struct stache_attr){ .block_bytes = 96 });
}

/* Of a program that is older, or newer, than the library: the rest of each is another's. */
static void older_attr(void)
{
	struct stache_attr attr = { .most_pages = 1, .block_bytes = 96 };

	stache__init(&attr, offsetof(struct stache_attr, block_bytes));
	allocate(0, 64, NULL);
	TPPI_barrier();
}

static void newer_attr(void)
{
	struct stache_attr attr[2] = { { .block_bytes = TPPI_PAGE_SIZE } };

	attr[1].from = TPPI_SEG_BASE;
	stache__init(attr, sizeof(attr));
}

static void attr_of_0(void)
{
	struct stache_attr attr = { 0 };

	stache__init(&attr, 0);
}

static void newer_attr_of_0(void)
{
	struct stache_attr attr[2] = { { .block_bytes = TPPI_PAGE_SIZE } };

	stache__init(attr, sizeof(attr));
	TPPI_barrier();
}

const struct test tests[] = {
	{ "counts", counts, 0, NULL },
	{ "own_words", own_words, CONTROL_TAG_LAST, NULL },
	{ "in_order", in_order, CONTROL_TAG_FIRST, NULL },
	{ "readers", readers, CONTROL_KEEP_RECALLED, NULL },
	{ "replacement", replacement, CONTROL_NO_WRITE_BACK, NULL },
	{ "replacement_races", replacement_races, CONTROL_NO_WRITE_BACK, NULL },
	{ "limit_exceeded", limit_exceeded, 0, NULL },
	{ "memory_for_homes", memory_for_homes, 0, NULL },
	{ "homes", homes, 0, NULL },
	{ "agreed", agreed, 0, NULL },
	{ "blocks", blocks, 0, NULL },
	{ "used_up", used_up, 0, NULL },
	{ "last_chunks", last_chunks, 0, NULL },
	{ "unallocated", unallocated, 0, "nobody has allocated" },
	{ "outside", outside, 0, "not Stache's" },
	{ "larger_part", larger_part, 0, "larger part of the segment" },
	{ "another_part", another_part, 0, "another part of the segment" },
	{ "no_answer", no_answer, 0, "nothing was asked" },
	{ "no_home", no_home, 0, "nobody has asked anything" },
	{ "request_of_0", request_of_0, 0, "nobody has asked anything" },
	{ "request_of_3", request_of_3, 0, "power of two" },
	{ "odd_block", odd_block, 0, "power of two" },
	{ "older_attr", older_attr, 0, NULL },
	{ "newer_attr", newer_attr, 0, "the rest is not 0" },
	{ "attr_of_0", attr_of_0, 0, "attributes of 0 bytes" },
	{ "newer_attr_of_0", newer_attr_of_0, 0, NULL },
	{ 0 }
};
