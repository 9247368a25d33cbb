// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pinned user memory of areas, and what it costs.
 *
 * A pin of one page keeps all of its folio: the rest of a huge page can be
 * unmapped, but neither freed nor split. So what is charged are folios: each one
 * whole, as soon as one of its pages is pinned, and once in an area however many
 * of its pages the area has and in whatever order. They are charged batch by
 * batch while the area is made: it is all paid for before anybody finds it, and
 * what is pinned in advance is never more than a batch.
 */
#include <linux/bitmap.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "hml.h"
#include "trace.h"
#include "user/account.h"

#define PIN_BATCH	512
#define SEEN_BITS	1024	/* folios of a bitmap, by frame number */

/* ---- RLIMIT_MEMLOCK, VmPin and the user's limit ---- */

/*
 * RLIMIT_MEMLOCK is of the user, not of the mm: pinned pages live as long as the
 * open file, which a process can hand on before it ends.
 */
static int refuse_locked(struct hml_context *c, const struct hml_area *a,
			 unsigned long pages, unsigned long had,
			 unsigned long limit)
{
	unsigned long asked = a->pages + pages;
	unsigned long others = had - min(had, a->pages);

	hml_explain(c, "%lu pages asked for, %lu of RLIMIT_MEMLOCK's %lu in use (%s)",
		    asked, others, limit,
		    "huge pages (folios) are charged whole");
	trace_hamlyn_quota(c, "RLIMIT_MEMLOCK",
			   (u64)asked << (PAGE_SHIFT - 10),
			   (u64)others << (PAGE_SHIFT - 10),
			   (u64)limit << (PAGE_SHIFT - 10));
	return -ENOMEM;
}

/* By the uid that the process has, as everybody counts; and by the one that answers for it. */
static int charge_locked(struct hml_context *c, struct hml_area *a,
			 unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long had;

	if (!hml_account_charge_locked(c->user->account, pages, limit, &had))
		return refuse_locked(c, a, pages, had, limit);
	had = atomic_long_read(&a->owner->user->locked_vm);
	do {
		if (had <= limit && pages <= limit - had)
			continue;
		hml_account_uncharge_locked(c->user->account, pages);
		return refuse_locked(c, a, pages, had, limit);
	} while (!atomic_long_try_cmpxchg(&a->owner->user->locked_vm, &had,
					  had + pages));
	return 0;
}

static void begin_charges(struct hml_area *a)
{
	a->mm = current->mm;
	mmgrab(a->mm);
	/* Nor are others of that uid charged, which may have to keep to the limit. */
	if (!ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK))
		a->owner = get_current_cred();
}

/* What @a has is charged already: @pages more. */
static int charge(struct hml_context *c, struct hml_area *a,
		  unsigned long pages)
{
	int err;

	if (!pages)
		return 0;
	err = hml_user_charge_wired(c, &a->payer, a->pages, pages);
	if (err)
		return err;
	if (a->owner)
		err = charge_locked(c, a, pages);
	if (err) {
		hml_user_uncharge_wired(c->device, a->payer, pages, false);
		return err;
	}
	/* What /proc/PID/status shows as VmPin. */
	atomic64_add(pages, &a->mm->pinned_vm);
	a->pages += pages;
	return 0;
}

static void uncharge(struct hml_area *a)
{
	if (a->mm) {
		atomic64_sub(a->pages, &a->mm->pinned_vm);
		mmdrop(a->mm);
	}
	if (a->owner) {
		atomic_long_sub(a->pages, &a->owner->user->locked_vm);
		put_cred(a->owner);
	}
	if (a->owner && a->payer.user)
		hml_account_uncharge_locked(a->payer.user->account, a->pages);
	if (a->payer.user)
		hml_user_uncharge_wired(a->memory.device, a->payer, a->pages,
					true);
}

/* ---- folios ---- */

/*
 * Was the folio not seen before? A bit for each, in bitmaps by its frame number: it
 * stays where it is, and whole, while it is pinned.
 *
 * Return: 1 if it is new, 0, or -ENOMEM.
 */
static int see(struct xarray *seen, struct folio *folio)
{
	unsigned long pfn = folio_pfn(folio);
	unsigned long *bits = xa_load(seen, pfn / SEEN_BITS);
	int err;

	if (!bits) {
		bits = bitmap_zalloc(SEEN_BITS, GFP_KERNEL_ACCOUNT);
		if (!bits)
			return -ENOMEM;
		err = xa_err(xa_store(seen, pfn / SEEN_BITS, bits,
				      GFP_KERNEL_ACCOUNT));
		if (err) {
			bitmap_free(bits);
			return err;
		}
	}
	return !__test_and_set_bit(pfn % SEEN_BITS, bits);
}

static void forget_seen(struct xarray *seen)
{
	unsigned long *bits;
	unsigned long at;

	xa_for_each(seen, at, bits)
		bitmap_free(bits);
	xa_destroy(seen);
}

/* How many pages from @batch on follow each other in the folio of the first. */
static int run_of(struct page **batch, int got, struct folio *folio)
{
	long most = folio_nr_pages(folio) - folio_page_idx(folio, batch[0]);
	int n = 1;

	/* Not to be taken for granted: mremap() may have shuffled them. */
	while (n < got && n < most && batch[n] == batch[0] + n)
		n++;
	return n;
}

/* Pages of the folios of a batch that were not seen before, or -ENOMEM. */
static long count_new(struct xarray *seen, struct page **batch, int got)
{
	long pages = 0;
	int i, is_new;

	for (i = 0; i < got; ) {
		struct folio *folio = page_folio(batch[i]);

		is_new = see(seen, folio);
		if (is_new < 0)
			return is_new;
		if (is_new)
			pages += folio_nr_pages(folio);
		i += run_of(batch + i, got - i, folio);
	}
	return pages;
}

static int charge_batch(struct hml_context *c, struct hml_area *a,
			struct xarray *seen, struct page **batch, int got)
{
	long pages = count_new(seen, batch, got);

	return pages < 0 ? pages : charge(c, a, pages);
}

/* ---- pinning ---- */

static void unpin(struct hml_area *a)
{
	struct hml_mem *mem = a->mem;
	u32 i;

	for (i = 0; i < mem->count; i++) {
		u8 *va = mem->extents[i].va;
		u64 bytes = hml_mem_extent_end(mem, i) - mem->extents[i].start;
		unsigned long pages = (offset_in_page(va) + bytes +
				       PAGE_SIZE - 1) >> PAGE_SHIFT;

		unpin_user_page_range_dirty_lock(virt_to_page(va), pages,
						 !(a->flags &
						   HAMLYN_AREA_READONLY));
		cond_resched();
	}
}

/* Take over @got pinned pages, the first of which holds @addr. */
static int take_batch(struct hml_area *a, struct page **batch, int got,
		      unsigned long *addr, u64 end)
{
	int i, n, err;

	for (i = 0; i < got; i += n) {
		struct folio *folio = page_folio(batch[i]);
		u64 bytes;

		n = run_of(batch + i, got - i, folio);
		bytes = min_t(u64, end - *addr,
			      ((u64)n << PAGE_SHIFT) - offset_in_page(*addr));
		if (!(a->flags & HAMLYN_AREA_READONLY) &&
		    !hml_compat_may_write(folio))
			err = -EFAULT;
		else
			err = hml_area_append(a, page_address(batch[i]) +
					      offset_in_page(*addr), bytes);
		if (err) {
			unpin_user_pages(batch + i, got - i);
			return err;
		}
		a->page_size = min(a->page_size, folio_size(folio));
		*addr += bytes;
	}
	return 0;
}

/* What is pinned when it fails is left to hml_pin_undo(). */
static int pin_batches(struct hml_context *c, struct hml_area *a,
		       struct page **batch, unsigned long addr, u64 end)
{
	unsigned int gup = FOLL_LONGTERM;
	struct xarray seen;
	int err = 0;

	xa_init(&seen);
	if (!(a->flags & HAMLYN_AREA_READONLY))
		gup |= FOLL_WRITE;
	while (addr < end && !err) {
		unsigned long from = addr & PAGE_MASK;
		unsigned long want = min_t(unsigned long, PIN_BATCH,
					   (PAGE_ALIGN(end) - from) >> PAGE_SHIFT);
		int got;

		if (a->flags & HAMLYN_AREA_READONLY)
			hml_compat_break_cow(from, from + want * PAGE_SIZE);
		got = pin_user_pages_fast(from, want, gup, batch);
		if (got <= 0) {
			err = got == -ENOMEM ? -ENOMEM : -EFAULT;
			break;
		}
		err = charge_batch(c, a, &seen, batch, got);
		if (err)
			unpin_user_pages(batch, got);
		else
			err = take_batch(a, batch, got, &addr, end);
		cond_resched();
		if (fatal_signal_pending(current))
			err = err ?: -EINTR;
	}
	forget_seen(&seen);
	return err;
}

/**
 * hml_pin() - pin the user memory that a new area is made of, and pay
 * @c: the context
 * @a: the area, of which nothing is there yet
 * @addr: where it begins
 * @length: bytes
 *
 * What there is when it fails is left to hml_pin_undo().
 *
 * Return: 0, -EFAULT, -ENOMEM, -EDQUOT or -EINTR.
 */
int hml_pin(struct hml_context *c, struct hml_area *a, unsigned long addr,
	    u64 length)
{
	struct page **batch = kmalloc_array(PIN_BATCH, sizeof(*batch),
					    GFP_KERNEL);
	int err;

	if (!batch)
		return -ENOMEM;
	begin_charges(a);
	err = pin_batches(c, a, batch, addr, addr + length);
	kfree(batch);
	return err;
}

/**
 * hml_pin_undo() - unpin the memory of an area, which is not paid for any more
 * @a: the area
 */
void hml_pin_undo(struct hml_area *a)
{
	if (a->mem)
		unpin(a);
	uncharge(a);
}
