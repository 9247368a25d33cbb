// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernel memory that processes map: what it costs, and rings of it.
 *
 * It is paid for until nobody can hold on to it any more. Its mappings have
 * references. But a page that is mapped can also be taken by reference, and outlive
 * the mapping: vmsplice() puts it into a pipe, O_DIRECT, io_uring's registered
 * buffers and our own AREA_ADD pin it. Mapping it so that it cannot be taken
 * (VM_PFNMAP) would end that, and with it read() and write() with O_DIRECT, which
 * is what areas are for. So what goes is looked at page by page: a page that only we
 * have is freed, one that somebody else has as well stays, and stays charged,
 * until it is ours alone. There is no call back for that, so a worker looks
 * again and again, at no more than SCAN_PAGES at a time.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "hml.h"

#define SCAN_MS		100	/* between looks at pages that others have too */
#define SCAN_PAGES	8192	/* looked at in one go */

/* ---- what others have too ---- */

static DEFINE_RAW_SPINLOCK(held_lock);
static LIST_HEAD(held);			/* of struct hml_memory.place; under held_lock */

static void scan(struct work_struct *work);
static DECLARE_DELAYED_WORK(scan_work, scan);

/*
 * Only we have it: it is mapped nowhere any more, so nobody who does not have it already
 * can get it. Those that try all frames of the memory (compaction, memory failure) take
 * it for a moment: it is looked at again then, or freed by them.
 */
static bool ours_alone(struct folio *folio)
{
	return folio_ref_count(folio) == 1;
}

/**
 * hml_memory_give_back() - in hml_memory.free: a part of it is not needed any more
 * @memory: the memory
 * @folio: the part
 */
void hml_memory_give_back(struct hml_memory *memory, struct folio *folio)
{
	if (ours_alone(folio)) {
		folio_put(folio);
		return;
	}
	/* Nobody else's: it is in no file and no LRU list. */
	list_add_tail(&folio->lru, &memory->folios);
	memory->held += folio_nr_pages(folio);
}

/* Pages that have become ours, of those of @memory; at most @budget are looked at. */
static unsigned long free_some(struct hml_memory *memory, u32 *budget)
{
	unsigned long freed = 0;
	struct folio *folio;
	LIST_HEAD(seen);

	while (*budget && (folio = list_first_entry_or_null(&memory->folios,
							    struct folio, lru))) {
		--*budget;
		if (!ours_alone(folio)) {
			list_move_tail(&folio->lru, &seen);
			continue;
		}
		list_del(&folio->lru);
		freed += folio_nr_pages(folio);
		folio_put(folio);
	}
	list_splice_tail(&seen, &memory->folios);
	memory->held -= freed;
	return freed;
}

static void end(struct hml_memory *memory, unsigned long pages)
{
	struct hml_device *d = memory->device;

	if (memory->payer.user)
		hml_user_uncharge(d, memory->payer, pages, true);
	/* Begins what it is part of. */
	kfree(memory);
	put_device(&d->dev);
}

/* In turn: what was looked at goes to the end, as it is and as a whole. */
static void scan(struct work_struct *work)
{
	u32 budget = SCAN_PAGES;
	struct hml_memory *memory, *last;
	unsigned long freed;

	hml_lock(&held_lock);
	last = list_empty(&held) ? NULL :
				   list_last_entry(&held, struct hml_memory, place);
	while (last && budget) {
		memory = list_first_entry(&held, struct hml_memory, place);
		list_del(&memory->place);
		hml_unlock(&held_lock);
		freed = free_some(memory, &budget);
		if (memory == last)
			last = NULL;
		if (memory->held) {
			hml_user_uncharge(memory->device, memory->payer, freed,
					  false);
			hml_lock(&held_lock);
			list_add_tail(&memory->place, &held);
		} else {
			end(memory, freed);
			cond_resched();
			hml_lock(&held_lock);
		}
	}
	if (!list_empty(&held))
		queue_delayed_work(hml_workers, &scan_work,
				   msecs_to_jiffies(SCAN_MS));
	hml_unlock(&held_lock);
}

static void hold(struct hml_memory *memory)
{
	hml_user_uncharge(memory->device, memory->payer,
			  memory->pages - memory->held, false);
	hml_lock(&held_lock);
	list_add_tail(&memory->place, &held);
	queue_delayed_work(hml_workers, &scan_work, msecs_to_jiffies(SCAN_MS));
	hml_unlock(&held_lock);
}

/**
 * hml_memory_exit() - the module goes, and there are no contexts any more
 *
 * What others have yet is theirs alone then, and freed by them.
 */
void hml_memory_exit(void)
{
	struct hml_memory *memory, *next;
	struct folio *folio, *after;

	cancel_delayed_work_sync(&scan_work);
	list_for_each_entry_safe(memory, next, &held, place) {
		list_for_each_entry_safe(folio, after, &memory->folios, lru)
			folio_put(folio);
		end(memory, memory->held);
	}
	INIT_LIST_HEAD(&held);
}

/* ---- its life ---- */

/**
 * hml_memory_init() - make the first reference, and pay
 * @memory: the memory; begins what it is part of, which kfree() frees
 * @c: the context whose user pays
 * @pages: the price
 * @free: when the last reference goes, frees all that belongs to it, but not itself
 *
 * Return: 0, or -EDQUOT: then the reference is there and nothing is paid.
 */
int hml_memory_init(struct hml_memory *memory, struct hml_context *c,
		    unsigned long pages, void (*free)(struct hml_memory *m))
{
	int err = pages ? hml_user_charge(c, pages) : 0;

	refcount_set(&memory->ref, 1);
	INIT_LIST_HEAD(&memory->folios);
	memory->device = c->device;
	get_device(&memory->device->dev);
	memory->payer = pages && !err ? hml_payer(c) : (struct hml_payer) {};
	memory->pages = pages;
	memory->free = free;
	return err;
}

/**
 * hml_memory_put() - drop a reference; the last one frees, and pays no more
 * @memory: the memory
 */
void hml_memory_put(struct hml_memory *memory)
{
	if (!refcount_dec_and_test(&memory->ref))
		return;
	memory->free(memory);
	if (memory->held)
		hold(memory);
	else
		end(memory, memory->pages);
}

/* ---- rings ---- */

static u32 ring_price(unsigned long pages)
{
	return hml_price(sizeof(struct hml_ring)) +
	       hml_price(pages * sizeof(struct page *));
}

static void ring_free(struct hml_memory *memory)
{
	struct hml_ring *ring = container_of(memory, struct hml_ring, memory);
	unsigned long i;

	if (ring->va)
		vunmap(ring->va);
	for (i = 0; ring->pages && i < memory->pages && ring->pages[i]; i++)
		hml_memory_give_back(memory, page_folio(ring->pages[i]));
	if (memory->payer.user)
		hml_user_uncharge_small(memory->device, memory->payer,
					ring_price(memory->pages));
	kvfree(ring->pages);
}

/* -ENOMEM, when there is no more, and not somebody else's process killed. */
#define RING_GFP	(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | \
			 __GFP_RETRY_MAYFAIL)

/* What there is when it fails is left to ring_free(). */
static int fill_ring(struct hml_ring *ring)
{
	unsigned long count = ring->memory.pages;
	unsigned long i;

	ring->pages = kvcalloc(count, sizeof(*ring->pages),
			       GFP_KERNEL_ACCOUNT);
	if (!ring->pages)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		ring->pages[i] = alloc_page(RING_GFP);
		if (!ring->pages[i])
			return -ENOMEM;
	}
	ring->va = vmap(ring->pages, count, VM_MAP, PAGE_KERNEL);
	return ring->va ? 0 : -ENOMEM;
}

/**
 * hml_ring_alloc() - allocate zeroed memory for a ring
 * @c: the context whose user pays
 * @bytes: size, rounded up to pages
 *
 * Return: the ring with one reference, or ERR_PTR() of -ENOMEM or -EDQUOT.
 */
struct hml_ring *hml_ring_alloc(struct hml_context *c, size_t bytes)
{
	struct hml_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	unsigned long pages = PAGE_ALIGN(bytes) >> PAGE_SHIFT;
	u32 price = ring_price(pages);
	int err;

	if (!ring)
		return ERR_PTR(-ENOMEM);
	err = hml_user_charge_small(c, price);
	if (err) {
		kfree(ring);
		return ERR_PTR(err);
	}
	err = hml_memory_init(&ring->memory, c, pages, ring_free);
	if (err)
		hml_user_uncharge_small(c->device, hml_payer(c), price);
	else
		err = fill_ring(ring);
	if (err) {
		hml_ring_put(ring);
		return ERR_PTR(err);
	}
	return ring;
}

/* NULL and ERR_PTR() are none. */
void hml_ring_put(struct hml_ring *ring)
{
	if (!IS_ERR_OR_NULL(ring))
		hml_memory_put(&ring->memory);
}

/* Length of its mapping. */
size_t hml_ring_bytes(const struct hml_ring *ring)
{
	return ring->memory.pages << PAGE_SHIFT;
}
