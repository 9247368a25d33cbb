// SPDX-License-Identifier: MIT
/*
 * A block's directory entry, at its home. What the home's own threads may do is its tag:
 *
 *	IDLE		no other node has the block	Writable
 *	SHARED		@sharers may have copies	ReadOnly
 *	EXCLUSIVE	@owner has it alone		Invalid
 *
 * A request is served at once if nobody is in its way. Otherwise the entry is busy: copies
 * are being invalidated, or the owner is being asked; requests that come meanwhile wait in
 * the queue. Only handlers touch entries, and they run one after the other.
 *
 * Messages of a pair of nodes arrive in order. That is what lets nodes drop copies without a
 * word: an invalidation or recall that was sent before a block comes before it, and so is
 * about an older copy, and done if there is none any more.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "block.h"
#include "control.h"
#include "copy.h"
#include "error.h"
#include "home.h"
#include "move.h"
#include "settings.h"

enum state {
	IDLE,
	SHARED,
	EXCLUSIVE,
};

/**
 * struct request - what a node wants
 * @next: the one that came after it
 * @who: the node
 * @want: what
 */
struct request {
	struct request *next;
	TPPI_NodeId who;
	enum stache_want want;
};

/**
 * struct entry - what the home knows of a block
 * @sharers: SHARED: nodes that may have copies, a bit for each; not the home
 * @queue: requests that wait; the first is being served if the entry is busy
 * @last: the last of them
 * @awaited: how many of the sharers have not acknowledged yet that their copies are gone
 * @owner: EXCLUSIVE: the node
 * @state: enum state
 * @busy: the first request waits for other nodes
 * @asked: what the home's own threads have asked for: a bit for each enum stache_want
 */
struct entry {
	uint64_t sharers;
	struct request *queue, *last;
	uint8_t awaited;
	uint8_t owner;
	uint8_t state;
	bool busy;
	uint8_t asked;
};

/**
 * struct home_page - a page whose home is here
 * @bytes: of its blocks
 * @entries: one for each
 */
struct home_page {
	int bytes;
	struct entry entries[];
};

static uint64_t bit(TPPI_NodeId node)
{
	return UINT64_C(1) << node;
}

static bool is_write(enum stache_want want)
{
	return want != WANT_READ;
}

static struct entry *entry_of(struct home_page *page, const void *va)
{
	return &page->entries[stache_block_index(va, page->bytes)];
}

void stache_home_map(void *page, int block_bytes)
{
	struct home_page *home;
	size_t blocks = TPPI_PAGE_SIZE / block_bytes;

	home = calloc(1, sizeof(*home) + blocks * sizeof(home->entries[0]));
	if (!home)
		stache_die("no memory for a page's directory");
	home->bytes = block_bytes;
	/* Only here can this page be, whereas copies can be fetched again */
	while (!TPPI_alloc_and_map(page, stache_mode_home(), TPPI_Blk_Writable, TPPI_self_address,
				   home)) {
		if (!stache_copy_replace())
			stache_die("no memory for the page at %p", page);
	}
}

/* ---- serving ---- */

/* To this node's own threads. */
static void grant_own(void *va, int bytes, struct entry *entry, enum stache_want want)
{
	TPPI_BlkAccTag tag = TPPI_get_blk_acc(va);

	entry->asked &= ~(1U << want);
	if (is_write(want)) {
		if (tag != TPPI_Blk_Writable)
			TPPI_change_blk_acc(va, bytes, TPPI_Blk_Validate_RW);
		entry->state = IDLE;
		entry->sharers = 0;
	} else if (tag < TPPI_Blk_ReadOnly) {
		TPPI_change_blk_acc(va, bytes, TPPI_Blk_Validate_RO);
	}
	TPPI_resume_va(va, bytes);
}

/* A tag that has no access to lose needs no waiting for accesses. */
static TPPI_BlkTagChange lower(void *va, TPPI_BlkTagChange change)
{
	TPPI_BlkAccTag tag = TPPI_get_blk_acc(va);
	TPPI_BlkAccTag least = change == TPPI_Blk_Downgrade_RO ? TPPI_Blk_ReadOnly :
								 TPPI_Blk_Invalid;

	return tag <= least ? TPPI_Blk_No_Tag_Change : change;
}

static void grant_write(void *va, int bytes, struct entry *entry, struct request *request)
{
	int name = stache_block_name(va, bytes);
	TPPI_BlkTagChange change = lower(va, TPPI_Blk_Invalidate);

	if (request->want == WANT_UPGRADE && entry->state == SHARED &&
	    entry->sharers & bit(request->who)) {
		TPPI_change_blk_acc(va, bytes, change);
		TPPI_send_W(request->who, stache_copy_upgraded, name);
	} else {
		stache_move_out(request->who, stache_copy_writable, name, 0, bytes, change);
	}
	entry->state = EXCLUSIVE;
	entry->owner = request->who;
	entry->sharers = 0;
}

static void grant_read(void *va, int bytes, struct entry *entry, struct request *request)
{
	stache_move_out(request->who, stache_copy_readable, stache_block_name(va, bytes), 0, bytes,
			lower(va, TPPI_Blk_Downgrade_RO));
	entry->state = SHARED;
	entry->sharers |= bit(request->who);
}

/* The home has the contents, and nobody is in the way. */
static void grant(void *va, int bytes, struct entry *entry)
{
	struct request *request = entry->queue;

	entry->busy = false;
	entry->queue = request->next;
	if (request->who == TPPI_self_address)
		grant_own(va, bytes, entry, request->want);
	else if (is_write(request->want))
		grant_write(va, bytes, entry, request);
	else
		grant_read(va, bytes, entry, request);
	free(request);
}

static void invalidate_copies(void *va, int bytes, struct entry *entry, uint64_t nodes)
{
	for (TPPI_NodeId node = 0; node < TPPI_num_nodes; node++) {
		if (!(nodes & bit(node)))
			continue;
		entry->awaited++;
		TPPI_send_W(node, stache_copy_invalidate, stache_block_name(va, bytes));
	}
}

/* Ask whoever is in the way of the first request. False if nobody is. */
static bool clear_the_way(void *va, int bytes, struct entry *entry)
{
	const struct request *request = entry->queue;
	uint64_t others = entry->sharers & ~bit(request->who);

	if (entry->state == EXCLUSIVE) {
		/* An owner that asks has given the block up, and that came first */
		if (entry->owner == request->who)
			stache_die("node %u asks for a block that it has", request->who);
		TPPI_send_WW(entry->owner, stache_copy_recall, stache_block_name(va, bytes),
			     !is_write(request->want));
		return true;
	}
	if (entry->state != SHARED || !is_write(request->want) || !others)
		return false;
	invalidate_copies(va, bytes, entry, others);
	return !CONTROL(CONTROL_NO_ACKS);
}

static void serve(void *va, int bytes, struct entry *entry)
{
	while (!entry->busy && entry->queue) {
		entry->busy = clear_the_way(va, bytes, entry);
		if (!entry->busy)
			grant(va, bytes, entry);
	}
}

static void ask(void *va, int bytes, struct entry *entry, TPPI_NodeId who, enum stache_want want)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		stache_die("no memory for a request");
	request->who = who;
	request->want = want;
	if (entry->queue)
		entry->last->next = request;
	else
		entry->queue = request;
	entry->last = request;
	serve(va, bytes, entry);
}

/* ---- messages ---- */

/*
 * Entry of a block of a page that is mapped, as it is from the first request on, which says how
 * many bytes its blocks have: @first, or 0 in other messages.
 */
static struct entry *find(void *va, int first, int *bytes)
{
	struct home_page *page;
	TPPI_PageInfo info;
	int found = TPPI_get_page_info(va, &info);

	if (!found && first) {
		stache_check_block(first);
		stache_home_map(stache_page_of(va), first);
		found = TPPI_get_page_info(va, &info);
	}
	if (found != 1)
		stache_die("a message for the home of %p, of which nobody has asked anything", va);
	page = info.usr_ptr;
	*bytes = page->bytes;
	return entry_of(page, va);
}

void stache_home_request(TPPI_NodeId src, int size)
{
	void *va = stache_block_va(TPPI_recv_W());
	enum stache_want want = TPPI_recv_W();
	int bytes;
	struct entry *entry = find(va, TPPI_recv_W(), &bytes);

	(void)size;
	ask(va, bytes, entry, src, want);
}

void stache_home_ack(TPPI_NodeId src, int size)
{
	void *va = stache_block_va(TPPI_recv_W());
	int bytes;
	struct entry *entry = find(va, 0, &bytes);

	(void)src;
	(void)size;
	if (--entry->awaited || CONTROL(CONTROL_NO_ACKS))
		return;
	grant(va, bytes, entry);
	serve(va, bytes, entry);
}

/*
 * The owner gives the block up, or keeps a copy of it: because it was asked, or because it
 * replaces the page. Who was asked just then does not answer any more; this is the answer.
 */
void stache_home_put(TPPI_NodeId src, int size)
{
	void *va = stache_block_va(TPPI_recv_W());
	int kept = TPPI_recv_W();
	int bytes;
	struct entry *entry = find(va, 0, &bytes);
	TPPI_BlkTagChange change = kept ? TPPI_Blk_Validate_RO : TPPI_Blk_Validate_RW;

	(void)size;
	/* To be sent on at once: a tag that allows access would have to be lowered again */
	if (entry->busy && is_write(entry->queue->want) && entry->queue->who != TPPI_self_address)
		change = TPPI_Blk_No_Tag_Change;
	stache_move_in(va, bytes, change);
	entry->state = kept ? SHARED : IDLE;
	entry->sharers = kept ? bit(src) : 0;
	if (entry->busy)
		grant(va, bytes, entry);
	serve(va, bytes, entry);
}

/* ---- faults of the home's own threads ---- */

/* Another thread may have asked already: what it gets resumes both. */
static void fault(void *va, struct home_page *page, enum stache_want want)
{
	struct entry *entry = entry_of(page, va);

	if (entry->asked & 1U << want)
		return;
	entry->asked |= 1U << want;
	ask((void *)((uintptr_t)va & -(uintptr_t)page->bytes), page->bytes, entry,
	    TPPI_self_address, want);
}

static void fault_read(void *va, void *page, TPPI_NodeId home)
{
	(void)home;
	fault(va, page, WANT_READ);
}

static void fault_write(void *va, void *page, TPPI_NodeId home)
{
	(void)home;
	fault(va, page, WANT_WRITE);
}

void stache_home_start(void)
{
	TPPI_PageMode mode = stache_mode_home();

	TPPI_register_blk_acc_fault_handler(mode, TPPI_Blk_Invalid, TPPI_ReadAccess, fault_read);
	TPPI_register_blk_acc_fault_handler(mode, TPPI_Blk_Invalid, TPPI_WriteAccess, fault_write);
	TPPI_register_blk_acc_fault_handler(mode, TPPI_Blk_ReadOnly, TPPI_WriteAccess, fault_write);
}
