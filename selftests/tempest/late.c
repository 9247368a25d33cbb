// SPDX-License-Identifier: GPL-2.0-only
/*
 * No store comes late: what a downgrade has read is final. And no access comes early: what
 * an upgrade permits finds the new contents (T 3.2.6).
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/block.h"
#include "test.h"

#define MOST_WORKERS	8
#define BLOCK_WORDS	(TPPI_TAG_BLK_SIZE / 4)

static atomic_bool stop;
static atomic_ulong lost;
static bool plain, nontemporal;

/* How long: $HAMLYN_TEST_SECONDS, 2; what must fail has longer to do so. */
static int64_t duration(void)
{
	const char *text = getenv("HAMLYN_TEST_SECONDS");
	int64_t seconds = text ? atoi(text) : 2;

	return (tempest_control ? 30 : seconds) * INT64_C(1000000000);
}

static uint32_t load(volatile uint32_t *at)
{
	return plain ? *at : checked_load(at);
}

static void store(volatile uint32_t *at, uint32_t value)
{
	if (nontemporal)
		__asm__ volatile("movnti %1, %0" : "=m"(*at) : "r"(value));
	else if (plain)
		*at = value;
	else
		checked_store(at, value);
}

/* Threads wait until the main one resumes them. */
static void leave_suspended(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)va;
	(void)usr_ptr;
	(void)home;
}

static void register_handlers(void)
{
	for (int tag = TPPI_Blk_Invalid; tag <= TPPI_Blk_ReadOnly; tag++) {
		if (tag != TPPI_Blk_ReadOnly)
			TPPI_register_blk_acc_fault_handler(0, tag, TPPI_ReadAccess,
							    leave_suspended);
		TPPI_register_blk_acc_fault_handler(0, tag, TPPI_WriteAccess, leave_suspended);
	}
}

/* Counts in a word that nobody else writes. */
static void *count(void *word)
{
	uint32_t expected = load(word);

	while (!stop) {
		uint32_t found = load(word);

		if (found != expected) {
			lost++;
			expected = found;
		}
		store(word, ++expected);
	}
	return NULL;
}

static void pause_for(uint32_t loops)
{
	for (volatile uint32_t i = 0; i < loops; i++)
		;
}

struct run {
	int workers;
	TPPI_BlkTagChange down, up;
	bool storm, hog, nontemporal;
};

/* One downgrade, a look at what comes later, and the way back. */
static bool round_is_sound(const struct run *run, char *block, uint32_t *random)
{
	uint32_t snapshot[BLOCK_WORDS];
	struct tempest_copy copy = { .out = snapshot };
	bool sound;

	tempest_block_change(block, TPPI_TAG_BLK_SIZE, run->down, copy, "test");
	*random = *random * 1103515245 + 12345;
	pause_for(*random >> 16 & 1023);
	sound = !memcmp(snapshot, tempest_alias((uintptr_t)block), sizeof(snapshot));
	TPPI_change_blk_acc_and_copy(block, TPPI_TAG_BLK_SIZE, run->up, snapshot);
	TPPI_resume_va(block, TPPI_TAG_BLK_SIZE);
	pause_for(*random >> 4 & 4095);
	return sound;
}

static void *burn(void *unused)
{
	while (!stop)
		pause_for(1000);
	return unused;
}

static void ignore(int signal)
{
	(void)signal;
}

static void run_late(const struct run *run)
{
	char *block = page_at(0);
	pthread_t workers[MOST_WORKERS], hog;
	unsigned long rounds = 0, late = 0;
	uint32_t random = 1;
	int64_t end;

	register_handlers();
	map_mixed(block);
	signal(SIGUSR1, ignore);
	for (int i = 0; i < run->workers; i++)
		CHECK(!pthread_create(&workers[i], NULL, count, block + 4 * i));
	if (run->hog)
		CHECK(!pthread_create(&hog, NULL, burn, NULL));
	for (end = now_ns() + duration(); now_ns() < end && !late && !lost; rounds++) {
		late += !round_is_sound(run, block, &random);
		for (int i = 0; run->storm && i < run->workers; i++)
			pthread_kill(workers[i], SIGUSR1);
	}
	stop = true;
	/* Writable by now; a thread that has trapped on the last downgrade is resumed */
	TPPI_resume_va(block, TPPI_TAG_BLK_SIZE);
	for (int i = 0; i < run->workers; i++)
		pthread_join(workers[i], NULL);
	if (run->hog)
		pthread_join(hog, NULL);
	CHECK(rounds > 10);
	if (late || lost)
		failed(__FILE__, __LINE__, "after %lu downgrades: %lu late, %lu lost stores",
		       rounds, late, (unsigned long)lost);
}

#define LATE(name, is_plain, number, lower, upper, ...)	\
	static void name(void) \
	{ \
		static const struct run run = { \
			.workers = number, .down = lower, .up = upper, ##__VA_ARGS__ \
		}; \
		plain = is_plain; \
		nontemporal = run.nontemporal; \
		run_late(&run); \
	}

LATE(checked_1, false, 1, TPPI_Blk_Invalidate, TPPI_Blk_Validate_RW)
LATE(checked_4, false, 4, TPPI_Blk_Invalidate, TPPI_Blk_Validate_RW)
LATE(checked_8, false, 8, TPPI_Blk_Mark_Busy, TPPI_Blk_Validate_RW, .storm = true)
LATE(checked_read_only, false, 2, TPPI_Blk_Downgrade_RO, TPPI_Blk_Upgrade_RW)
LATE(checked_storm, false, 2, TPPI_Blk_Invalidate, TPPI_Blk_Validate_RW, .storm = true)
LATE(checked_hog, false, 1, TPPI_Blk_Invalidate, TPPI_Blk_Validate_RW, .hog = true)
LATE(plain_1, true, 1, TPPI_Blk_Invalidate, TPPI_Blk_Validate_RW)
LATE(plain_4, true, 4, TPPI_Blk_Invalidate, TPPI_Blk_Validate_RW)
LATE(plain_read_only, true, 2, TPPI_Blk_Downgrade_RO, TPPI_Blk_Upgrade_RW)
LATE(plain_nontemporal, true, 2, TPPI_Blk_Invalidate, TPPI_Blk_Validate_RW,
	.nontemporal = true)
LATE(plain_storm, true, 2, TPPI_Blk_Invalidate, TPPI_Blk_Validate_RW, .storm = true)

/* ---- upgrades ---- */

/* What the block will say as soon as it can be read. */
static _Atomic uint32_t generation;
static atomic_ulong stale;

/* What readers are suspended at. */
static char *read_from;
static int read_bytes;

/*
 * Only where the tag comes first: whoever is let in then reads old contents. Readers are mostly
 * suspended at that time, and could never be seen to be early on a single processor.
 */
static void let_read(void)
{
	int64_t end = now_ns() + duration();

	while (!stale && now_ns() < end) {
		/* A reader may trap after that, too */
		TPPI_resume_va(read_from, read_bytes);
		usleep(100);
	}
}

/* What readers wait for; they see it as of this generation. */
static void validate(void *block, int bytes, uint32_t *contents)
{
	generation++;
	for (int i = 0; i < bytes / 4; i++)
		contents[i] = generation;
	tempest_between = let_read;
	TPPI_change_blk_acc_and_copy(block, bytes, TPPI_Blk_Validate_RO, contents);
	tempest_between = NULL;
}

/* The last word of a page: what is copied last. */
static void *read_page(void *page)
{
	volatile uint32_t *word = (volatile uint32_t *)page + TPPI_PAGE_SIZE / 4 - 1;

	while (!stop) {
		uint32_t least = generation, found = load(word);

		if ((int32_t)(found - least) < 0)
			stale++;
	}
	return NULL;
}

static void upgrade_page(char *page, uint32_t *contents)
{
	TPPI_change_blk_acc(page, TPPI_PAGE_SIZE, TPPI_Blk_Invalidate);
	validate(page, TPPI_PAGE_SIZE, contents);
	TPPI_resume_va(page, TPPI_PAGE_SIZE);
}

static void run_upgrades(bool is_plain)
{
	static uint32_t contents[TPPI_PAGE_SIZE / 4];
	pthread_t readers[2];
	unsigned long rounds = 0;
	int64_t end;

	plain = is_plain;
	register_handlers();
	map_page(page_at(0), 0, TPPI_Blk_Invalid);
	read_from = page_at(0);
	read_bytes = TPPI_PAGE_SIZE;
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&readers[i], NULL, read_page, page_at(0)));
	for (end = now_ns() + duration(); now_ns() < end && !stale; rounds++) {
		upgrade_page(page_at(0), contents);
		pause_for(rounds * 37 & 2047);
	}
	stop = true;
	TPPI_resume_va(page_at(0), TPPI_PAGE_SIZE);
	for (int i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	if (stale)
		failed(__FILE__, __LINE__, "after %lu upgrades old contents were read", rounds);
}

static void upgrade_checked(void)
{
	run_upgrades(false);
}

/*
 * A change that takes from one block of a superblock and gives to the other: the latter's
 * contents come first here, too.
 */
static void *read_second(void *superblock)
{
	volatile uint32_t *word = (volatile uint32_t *)superblock + 2 * BLOCK_WORDS - 1;

	while (!stop) {
		uint32_t least = generation, found = load(word);

		if ((int32_t)(found - least) < 0)
			stale++;
	}
	return NULL;
}

static void upgrade_mixed(void)
{
	uint32_t contents[2 * BLOCK_WORDS];
	char *first = page_at(0), *second = first + TPPI_TAG_BLK_SIZE;
	pthread_t reader;
	unsigned long rounds = 0;
	int64_t end;

	register_handlers();
	map_page(first, 0, TPPI_Blk_Invalid);
	read_from = second;
	read_bytes = TPPI_TAG_BLK_SIZE;
	CHECK(!pthread_create(&reader, NULL, read_second, first));
	for (end = now_ns() + duration(); now_ns() < end && !stale; rounds++) {
		TPPI_change_blk_acc(second, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
		TPPI_change_blk_acc(first, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
		validate(first, 2 * TPPI_TAG_BLK_SIZE, contents);
		CHECK_EQUAL(TPPI_get_blk_acc(first), TPPI_Blk_ReadOnly);
		CHECK_EQUAL(TPPI_get_blk_acc(second), TPPI_Blk_ReadOnly);
		TPPI_resume_va(second, TPPI_TAG_BLK_SIZE);
		pause_for(rounds * 37 & 2047);
	}
	stop = true;
	TPPI_resume_va(second, TPPI_TAG_BLK_SIZE);
	pthread_join(reader, NULL);
	if (stale)
		failed(__FILE__, __LINE__, "after %lu changes old contents were read", rounds);
}

static void upgrade_plain(void)
{
	run_upgrades(true);
}

const struct test tests[] = {
	{ "checked-1", checked_1, CONTROL_NO_HANDSHAKE, 0, 0 },
	{ "checked-4", checked_4, CONTROL_NO_HANDSHAKE, 0, 0 },
	{ "checked-8-storm", checked_8, 0, 0, 0 },
	{ "checked-read-only", checked_read_only, CONTROL_NO_HANDSHAKE, 0, 0 },
	{ "checked-storm", checked_storm, 0, 0, 0 },
	{ "checked-hog", checked_hog, 0, 0, 0 },
	{ "plain-1", plain_1, CONTROL_NO_DRAIN, 0, 0 },
	{ "plain-4", plain_4, CONTROL_NO_DRAIN, 0, 0 },
	{ "plain-read-only", plain_read_only, 0, 0, 0 },
	{ "plain-nontemporal", plain_nontemporal, 0, 0, 0 },
	{ "plain-storm", plain_storm, 0, 0, 0 },
	{ "upgrade-checked", upgrade_checked, CONTROL_TAG_FIRST, 0, 0 },
	{ "upgrade-plain", upgrade_plain, CONTROL_TAG_FIRST, 0, 0 },
	{ "upgrade-mixed", upgrade_mixed, CONTROL_TAG_FIRST, 0, 0 },
	{ 0 }
};
