// SPDX-License-Identifier: GPL-2.0-only
/* Areas: pinned user memory, or kernel memory that the user maps. */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "hml.h"

#define PIN_BATCH	512
#define MAX_ORDER_TRIED	9	/* 2 MiB: longer extents gain nothing */

/* ---- extents ---- */

static struct hml_mem *mem_new(unsigned long max_extents)
{
	return kvzalloc(struct_size((struct hml_mem *)NULL, extents,
				    max_extents), GFP_KERNEL_ACCOUNT);
}

/* Append @bytes at @va, which is behind everything so far. */
static void mem_append(struct hml_mem *mem, u8 *va, u64 bytes)
{
	if (mem->count) {
		struct hml_extent *last = &mem->extents[mem->count - 1];

		if (last->va + (mem->length - last->start) == va) {
			mem->length += bytes;
			return;
		}
	}
	mem->extents[mem->count].va = va;
	mem->extents[mem->count].start = mem->length;
	mem->count++;
	mem->length += bytes;
}

/* A copy that has room for what it holds only; the original if none can be had. */
static struct hml_mem *mem_trim(struct hml_mem *mem)
{
	struct hml_mem *small = mem_new(mem->count);

	if (!small)
		return mem;
	memcpy(small, mem, struct_size(mem, extents, mem->count));
	kvfree(mem);
	return small;
}

/* ---- pinned memory ---- */

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

static int pin(struct hml_area *a, unsigned long addr, u64 length)
{
	unsigned int gup = FOLL_LONGTERM;
	u64 end = addr + length;
	struct page **batch;
	int err = 0;

	gup |= a->flags & HAMLYN_AREA_READONLY ? HML_COMPAT_PIN_READ :
						 FOLL_WRITE;
	batch = kmalloc_array(PIN_BATCH, sizeof(*batch), GFP_KERNEL);
	if (!batch)
		return -ENOMEM;
	while (addr < end) {
		unsigned long want = (PAGE_ALIGN(end) -
				      (addr & PAGE_MASK)) >> PAGE_SHIFT;
		int got, i;

		got = pin_user_pages_fast(addr & PAGE_MASK,
					  min_t(unsigned long, want, PIN_BATCH),
					  gup, batch);
		if (got <= 0) {
			err = got == -ENOMEM ? -ENOMEM : -EFAULT;
			break;
		}
		for (i = 0; i < got; i++) {
			u64 bytes = min_t(u64, end - addr,
					  PAGE_SIZE - offset_in_page(addr));

			mem_append(a->mem, page_address(batch[i]) +
				   offset_in_page(addr), bytes);
			addr += bytes;
		}
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			break;
		}
	}
	kfree(batch);
	if (err)
		unpin(a);
	return err;
}

/* ---- allocated memory ---- */

static void free_extents(struct hml_mem *mem)
{
	u32 i;

	for (i = 0; i < mem->count; i++) {
		u8 *va = mem->extents[i].va;
		u64 left = hml_mem_extent_end(mem, i) - mem->extents[i].start;

		for (; left; left -= PAGE_SIZE, va += PAGE_SIZE)
			__free_page(virt_to_page(va));
		cond_resched();
	}
}

static struct page *alloc_chunk(unsigned int *order)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	struct page *page;

	for (; *order; (*order)--) {
		page = alloc_pages(gfp | __GFP_NORETRY, *order);
		if (page) {
			/* Pages are mapped, and freed, one by one. */
			split_page(page, *order);
			return page;
		}
	}
	return alloc_page(gfp);
}

static int fill_allocated(struct hml_mem *mem, unsigned long pages)
{
	unsigned int order = MAX_ORDER_TRIED;

	while (pages) {
		struct page *page;

		order = min_t(unsigned int, order, ilog2(pages));
		page = alloc_chunk(&order);
		if (!page || fatal_signal_pending(current)) {
			if (page)
				mem_append(mem, page_address(page),
					   PAGE_SIZE << order);
			free_extents(mem);
			return page ? -EINTR : -ENOMEM;
		}
		mem_append(mem, page_address(page), PAGE_SIZE << order);
		pages -= 1UL << order;
		cond_resched();
	}
	return 0;
}

static int charge_device(struct hml_device *d, unsigned long pages)
{
	if (atomic_long_add_return(pages, &d->allocated) <= d->max_allocated)
		return 0;
	atomic_long_sub(pages, &d->allocated);
	return -EDQUOT;
}

/* ---- areas ---- */

static void area_free(struct hml_context *c, struct hml_area *a)
{
	if (a->allocated) {
		free_extents(a->mem);
		atomic_long_sub(a->pages, &c->device->allocated);
	} else {
		unpin(a);
		account_locked_vm(a->mm, a->pages, false);
		mmdrop(a->mm);
	}
	kvfree(a->mem);
	kfree(a);
}

/* Room for the area and, until it is trimmed, for one extent a page. */
static struct hml_area *area_new(unsigned long pages, u32 flags)
{
	struct hml_area *a = kzalloc(sizeof(*a), GFP_KERNEL_ACCOUNT);

	if (!a)
		return NULL;
	a->mem = mem_new(pages);
	if (!a->mem) {
		kfree(a);
		return NULL;
	}
	a->pages = pages;
	a->flags = flags;
	return a;
}

static int area_publish(struct hml_context *c, struct hml_area *a, u32 *id)
{
	int err;

	a->mem = mem_trim(a->mem);
	mutex_lock(&c->lock);
	err = xa_alloc(&c->areas, &a->id, a, XA_LIMIT(0, HML_MAX_IDS),
		       GFP_KERNEL_ACCOUNT);
	*id = a->id;
	mutex_unlock(&c->lock);
	if (err) {
		area_free(c, a);
		return err == -EBUSY ? -ENOSPC : err;
	}
	return 0;
}

int hml_area_add(struct hml_context *c, struct hamlyn_area_add *arg)
{
	struct hml_area *a;
	unsigned long pages;
	int err;

	if (arg->flags & ~HAMLYN_AREA_READONLY || arg->reserved || !arg->length)
		return -EINVAL;
	if (arg->length > HML_MAX_AREA)
		return -E2BIG;
	if (arg->addr > ULONG_MAX - arg->length - PAGE_SIZE ||
	    !access_ok(u64_to_user_ptr(arg->addr), arg->length))
		return -EFAULT;
	pages = (offset_in_page(arg->addr) + arg->length + PAGE_SIZE - 1) >>
		PAGE_SHIFT;
	a = area_new(pages, arg->flags);
	if (!a)
		return -ENOMEM;
	err = account_locked_vm(current->mm, pages, true);
	if (err)
		goto err_free;
	err = pin(a, arg->addr, arg->length);
	if (err)
		goto err_account;
	a->mm = current->mm;
	mmgrab(a->mm);
	return area_publish(c, a, &arg->area);

err_account:
	account_locked_vm(current->mm, pages, false);
err_free:
	kvfree(a->mem);
	kfree(a);
	return err;
}

int hml_area_alloc(struct hml_context *c, struct hamlyn_area_alloc *arg)
{
	struct hml_area *a;
	unsigned long pages;
	int err;

	if (arg->flags || arg->reserved || !arg->length)
		return -EINVAL;
	if (arg->length > HML_MAX_AREA)
		return -E2BIG;
	pages = PAGE_ALIGN(arg->length) >> PAGE_SHIFT;
	err = charge_device(c->device, pages);
	if (err)
		return err;
	a = area_new(pages, 0);
	if (!a) {
		err = -ENOMEM;
		goto err_charge;
	}
	a->allocated = true;
	err = fill_allocated(a->mem, pages);
	if (err)
		goto err_free;
	arg->length = (u64)pages << PAGE_SHIFT;
	err = area_publish(c, a, &arg->area);
	if (!err)
		arg->mmap_offset = hml_mmap_offset(HML_REGION_AREA, arg->area);
	return err;

err_free:
	kvfree(a->mem);
	kfree(a);
err_charge:
	atomic_long_sub(pages, &c->device->allocated);
	return err;
}

int hml_area_remove(struct hml_context *c, u32 id)
{
	struct hml_area *a;
	int err = 0;

	mutex_lock(&c->lock);
	a = xa_load(&c->areas, id);
	if (!a)
		err = -ENOENT;
	else if (a->users)
		err = -EBUSY;
	else
		xa_erase(&c->areas, id);
	mutex_unlock(&c->lock);
	if (!err)
		area_free(c, a);
	return err;
}

/* Context is going away: nobody uses its areas any more. */
void hml_area_destroy_all(struct hml_context *c)
{
	struct hml_area *a;
	unsigned long id;

	xa_for_each(&c->areas, id, a)
		area_free(c, a);
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
	struct hml_area *a = xa_load(&c->areas, id);

	if (!a)
		return -ENOENT;
	if (!hml_view_covers(a->mem->length, base, length))
		return -ERANGE;
	if (writable && a->flags & HAMLYN_AREA_READONLY)
		return -EACCES;
	a->users++;
	*area = a;
	view->mem = a->mem;
	view->base = base;
	view->length = length;
	return 0;
}
