// SPDX-License-Identifier: GPL-2.0-only
/* Areas: pinned user memory, or kernel memory that the user maps. */
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat/compat.h"
#include "hml.h"
#include "locked.h"
#include "trace.h"

#define FIRST_ROOM	16	/* extents; doubled as needed */
#define MAX_ORDER_TRIED	9	/* 2 MiB: longer extents gain nothing */
#define HUGE_ORDER	(PMD_SHIFT - PAGE_SHIFT)
#define HUGE_MASK	((1UL << HUGE_ORDER) - 1)	/* in pages */

/* ---- extents ---- */

static struct hml_mem *mem_new(u32 room)
{
	return kvzalloc(struct_size((struct hml_mem *)NULL, extents, room),
			GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
}

/* Room for @room extents. The area's memory is what it was if there is none. */
static int mem_resize(struct hml_area *a, u32 room)
{
	struct hml_mem *mem = mem_new(room);

	if (!mem)
		return -ENOMEM;
	if (a->mem)
		memcpy(mem, a->mem, struct_size(mem, extents, a->mem->count));
	kvfree(a->mem);
	a->mem = mem;
	a->room = room;
	return 0;
}

/**
 * hml_area_append() - lengthen an area that is being made
 * @a: the area
 * @va: the memory that follows all that it has so far
 * @bytes: how much
 *
 * Return: 0 or -ENOMEM.
 */
int hml_area_append(struct hml_area *a, u8 *va, u64 bytes)
{
	struct hml_mem *mem = a->mem;

	if (mem && mem->count) {
		struct hml_extent *last = &mem->extents[mem->count - 1];

		if (last->va + (mem->length - last->start) == va) {
			mem->length += bytes;
			return 0;
		}
	}
	if (!mem || mem->count == a->room) {
		int err = mem_resize(a, mem ? 2 * a->room : FIRST_ROOM);

		if (err)
			return err;
		mem = a->mem;
	}
	mem->extents[mem->count].va = va;
	mem->extents[mem->count].start = mem->length;
	mem->count++;
	mem->length += bytes;
	return 0;
}

/* ---- allocated memory ---- */

static void free_extents(struct hml_area *a)
{
	struct hml_mem *mem = a->mem;
	u32 i;

	for (i = 0; i < mem->count; i++) {
		u8 *va = mem->extents[i].va;
		u8 *end = va + hml_mem_extent_end(mem, i) -
			  mem->extents[i].start;

		while (va < end) {
			struct folio *folio = virt_to_folio(va);

			va += folio_size(folio);
			hml_memory_give_back(&a->memory, folio);
			if (IS_ALIGNED((unsigned long)va, SZ_2M))
				cond_resched();
		}
		cond_resched();
	}
}

static struct page *alloc_chunk(unsigned int *order)
{
	/* -ENOMEM, when there is no more, and not somebody else killed. */
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	struct page *page;

	/* Long extents are nice to have, and not worth compacting memory for. */
	for (; *order; (*order)--) {
		page = alloc_pages((gfp & ~__GFP_DIRECT_RECLAIM) | __GFP_NORETRY,
				   *order);
		if (page) {
			/* Pages are mapped, and freed, one by one. */
			split_page(page, *order);
			return page;
		}
	}
	return alloc_page(gfp | __GFP_RETRY_MAYFAIL);
}

/* Compound, unlike what alloc_chunk() gives: one entry maps all of it. */
static struct page *alloc_huge(void)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_COMP |
		    __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	struct page *page = alloc_pages(gfp, HUGE_ORDER);

	if (page)
		hml_compat_set_huge(page_folio(page));
	return page;
}

static int add_chunk(struct hml_area *a, struct page *page, unsigned int order)
{
	u8 *va = page_address(page);
	unsigned long i;

	if (!hml_area_append(a, va, PAGE_SIZE << order))
		return 0;
	if (PageCompound(page))
		__free_pages(page, order);
	else
		for (i = 0; i < 1UL << order; i++)
			__free_page(page + i);
	return -ENOMEM;
}

/* What there is when it fails is left to area_free(). */
static int fill_allocated(struct hml_area *a)
{
	unsigned int order = MAX_ORDER_TRIED;
	unsigned long pages = a->pages;
	bool huge = a->page_size > PAGE_SIZE;

	while (pages) {
		unsigned int got = HUGE_ORDER;
		struct page *page = huge ? alloc_huge() : NULL;

		if (!page) {
			/* Where there was none there will be none soon. */
			huge = false;
			a->page_size = PAGE_SIZE;
			order = min_t(unsigned int, order, ilog2(pages));
			page = alloc_chunk(&order);
			got = order;
		}
		if (!page || add_chunk(a, page, got))
			return -ENOMEM;
		pages -= 1UL << got;
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

/* ---- areas ---- */

static void area_free(struct hml_memory *memory)
{
	struct hml_area *a = container_of(memory, struct hml_area, memory);

	if (a->mem && a->allocated)
		free_extents(a);
	if (!a->allocated)
		hml_pin_undo(a);
	if (a->price)
		hml_user_uncharge_small(memory->device, a->price_payer, a->price);
	kvfree(a->mem);
}

static void area_put(struct hml_area *a)
{
	hml_memory_put(&a->memory);
}

static struct hml_area *area_new(unsigned long pages)
{
	struct hml_area *a = kzalloc(sizeof(*a), GFP_KERNEL_ACCOUNT);

	if (!a)
		return NULL;
	a->pages = pages;
	/* Until a smaller one is found. */
	a->page_size = ULONG_MAX;
	return a;
}

/* What it takes beside its memory: 16 bytes for each extent, which a page may be. */
static int pay_table(struct hml_context *c, struct hml_area *a)
{
	size_t table = struct_size(a->mem, extents, a->room);
	u32 price = hml_price(sizeof(*a)) + (u32)min_t(size_t, table, SZ_1G);
	int err = hml_user_charge_small(c, price);

	if (err)
		return err;
	a->price = price;
	a->price_payer = hml_payer(c);
	return 0;
}

static int area_publish(struct hml_context *c, struct hml_area *a, u32 *id)
{
	int err;

	/* If there is no memory for a smaller table, the larger one is as good. */
	mem_resize(a, a->mem->count);
	err = pay_table(c, a);
	if (err)
		return err;
	mutex_lock(&c->lock);
	/* From here on another thread may remove it: it is not ours. */
	err = xa_alloc(hml_table(c, &c->areas), &a->id, a,
		       XA_LIMIT(0, HML_MAX_IDS), GFP_KERNEL_ACCOUNT);
	*id = a->id;
	if (!err)
		atomic_inc(&c->device->area_count);
	mutex_unlock(&c->lock);
	hml_changed();
	return err == -EBUSY ? -ENOSPC : err;
}

static int fill_pinned(struct hml_context *c, struct hml_area *a,
		       const struct hamlyn_area_add *arg)
{
	int err = hml_memory_init(&a->memory, c, 0, area_free);

	return err ?: hml_pin(c, a, arg->addr, arg->length);
}

int hml_area_add(struct hml_context *c, struct hamlyn_area_add *arg)
{
	struct hml_area *a;
	int err;

	if (arg->flags & ~HAMLYN_AREA_READONLY || arg->reserved || !arg->length)
		return -EINVAL;
	if (arg->length > HML_MAX_AREA)
		return -E2BIG;
	if (arg->addr > ULONG_MAX - arg->length - PAGE_SIZE ||
	    !access_ok(u64_to_user_ptr(arg->addr), arg->length))
		return -EFAULT;
	a = area_new(0);
	if (!a)
		return -ENOMEM;
	a->flags = arg->flags;
	err = fill_pinned(c, a, arg);
	arg->page_size = a->page_size;
	if (!err)
		err = area_publish(c, a, &arg->area);
	if (err)
		area_put(a);
	else
		trace_hamlyn_area_add(c, arg->area, arg->length);
	return err;
}

static int fill_with_pages(struct hml_context *c, struct hml_area *a)
{
	int err = hml_memory_init(&a->memory, c, a->pages, area_free);

	if (err)
		return err;
	a->allocated = true;
	return fill_allocated(a);
}

/* An area of @length bytes; none of it is there yet. */
static struct hml_area *new_allocated(u64 length, u32 flags)
{
	unsigned long pages = PAGE_ALIGN(length) >> PAGE_SHIFT;
	bool huge = flags & HAMLYN_AREA_HUGE && HML_COMPAT_HUGE &&
		    pages > HUGE_MASK;
	struct hml_area *a;

	if (huge)
		pages = (pages + HUGE_MASK) & ~HUGE_MASK;
	a = area_new(pages);
	if (!a)
		return NULL;
	a->flags = flags;
	a->page_size = huge ? PMD_SIZE : PAGE_SIZE;
	return a;
}

int hml_area_alloc(struct hml_context *c, struct hamlyn_area_alloc *arg)
{
	struct hml_area *a;
	int err;

	if (arg->flags & ~HAMLYN_AREA_HUGE || arg->reserved || !arg->length)
		return -EINVAL;
	if (arg->length > HML_MAX_AREA)
		return -E2BIG;
	a = new_allocated(arg->length, arg->flags);
	if (!a)
		return -ENOMEM;
	arg->length = (u64)a->pages << PAGE_SHIFT;
	err = fill_with_pages(c, a);
	arg->page_size = a->page_size;
	if (!err)
		err = area_publish(c, a, &arg->area);
	if (err) {
		area_put(a);
	} else {
		trace_hamlyn_area_alloc(c, arg->area, arg->length);
		arg->mmap_offset = hml_mmap_offset(HML_REGION_AREA, arg->area);
	}
	return err;
}

/* Context locked. An area of it, or NULL. */
struct hml_area *hml_area_find(struct hml_context *c, u32 id)
{
	hml_context_assert_locked(c);
	return xa_load(&c->areas, id);
}

int hml_area_remove(struct hml_context *c, u32 id)
{
	struct hml_area *a;
	int err = 0;

	mutex_lock(&c->lock);
	a = hml_area_find(c, id);
	if (!a)
		err = -ENOENT;
	else if (a->users)
		err = -EBUSY;
	else
		xa_erase(&c->areas, id);
	if (err == -EBUSY)
		hml_explain(c, "area %u is still used by %u slots and tags", id,
			    a->users);
	mutex_unlock(&c->lock);
	if (!err) {
		trace_hamlyn_area_remove(c, id, a->mem->length);
		atomic_dec(&c->device->area_count);
		area_put(a);
		hml_changed();
	}
	return err;
}

/* Context is going away: nobody uses its areas any more. */
void hml_area_destroy_all(struct hml_context *c)
{
	struct hml_area *a;
	unsigned long id;

	xa_for_each(&c->areas, id, a) {
		trace_hamlyn_area_remove(c, id, a->mem->length);
		atomic_dec(&c->device->area_count);
		area_put(a);
	}
	xa_destroy(&c->areas);
}

/**
 * hml_area_view() - check a view and take a user count of its area
 * @c: the context, locked
 * @id: area id
 * @base: first byte
 * @length: bytes
 * @writable: the NIC will write to it
 * @area: out: the area, with one more user
 * @view: out: the view
 *
 * Return: 0, -ENOENT, -ERANGE or -EACCES.
 */
int hml_area_view(struct hml_context *c, u32 id, u64 base, u64 length,
		  bool writable, struct hml_area **area, struct hml_view *view)
{
	struct hml_area *a = hml_area_find(c, id);

	if (!a)
		return -ENOENT;
	if (!hml_view_covers(a->mem->length, base, length)) {
		hml_explain(c, "%llu bytes from %llu on: area %u has %llu",
			    length, base, id, a->mem->length);
		return -ERANGE;
	}
	if (writable && a->flags & HAMLYN_AREA_READONLY)
		return -EACCES;
	a->users++;
	*area = a;
	view->mem = a->mem;
	view->base = base;
	view->length = length;
	return 0;
}
