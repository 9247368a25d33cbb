// SPDX-License-Identifier: GPL-2.0-only
/* Mapping rings and allocated areas into the process. */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "compat/compat.h"
#include "hml.h"
#include "locked.h"

/* Offset of a region: its kind, its object's id, 32 zero bits. */
#define REGION_SHIFT	56
#define ID_SHIFT	32
#define ID_MASK		0xffffffU

u64 hml_mmap_offset(enum hml_region region, u32 id)
{
	return (u64)region << REGION_SHIFT | (u64)id << ID_SHIFT;
}

/* A mapping that is split, or moved, counts as one more. */
static void vma_open(struct vm_area_struct *vma)
{
	struct hml_memory *memory = vma->vm_private_data;

	refcount_inc(&memory->ref);
}

static void vma_close(struct vm_area_struct *vma)
{
	hml_memory_put(vma->vm_private_data);
}

/*
 * All of it is mapped: what is not was taken out on purpose, and may be marked
 * (userfaultfd). Without this a fault at a marker would be tried again for ever.
 */
static vm_fault_t no_fault(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

static const struct vm_operations_struct vm_ops = {
	.open = vma_open,
	.close = vma_close,
	.fault = no_fault,
};

/* ---- areas of huge pages: mapped when they are touched ---- */

static const struct hml_area *area_of(const struct hml_memory *memory)
{
	return container_of(memory, struct hml_area, memory);
}

static bool by_fault(const struct hml_area *a)
{
	return a->flags & HAMLYN_AREA_HUGE;
}

static struct page *page_at(const struct vm_area_struct *vma, pgoff_t pgoff)
{
	const struct hml_area *a = area_of(vma->vm_private_data);
	u64 offset = ((u64)pgoff << PAGE_SHIFT) -
		     hml_mmap_offset(HML_REGION_AREA, a->id);

	/* A mapping is as long as its area and does not grow. */
	return virt_to_page(hml_mem_at(NULL, a->mem, offset));
}

static vm_fault_t area_fault(struct vm_fault *vmf)
{
	vmf->page = page_at(vmf->vma, vmf->pgoff);
	get_page(vmf->page);
	return 0;
}

#ifdef HML_COMPAT_HUGE_FAULT
static vm_fault_t area_huge_fault(struct vm_fault *vmf, unsigned int order)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long start = vmf->address & PMD_MASK;
	struct folio *folio = page_folio(page_at(vma, vmf->pgoff));

	if (order != PMD_SHIFT - PAGE_SHIFT || folio_order(folio) != order ||
	    start < vma->vm_start || vma->vm_end - start < PMD_SIZE ||
	    !IS_ALIGNED((vma->vm_start >> PAGE_SHIFT) - vma->vm_pgoff,
			1UL << order))
		return VM_FAULT_FALLBACK;
	/* Mapped for reading, as for soft-dirty pages: is split, and .fault does the rest. */
	if (!pmd_none(vmf->orig_pmd))
		return VM_FAULT_FALLBACK;
	/*
	 * Not "for writing", by which the kernel warns of what it finds if somebody else has
	 * made a table of small pages meanwhile. A writable mapping can be written anyway.
	 */
	return vmf_insert_folio_pmd(vmf, folio, false);
}
#endif

static const struct vm_operations_struct area_vm_ops = {
	.open = vma_open,
	.close = vma_close,
	.fault = area_fault,
#ifdef HML_COMPAT_HUGE_FAULT
	.huge_fault = area_huge_fault,
#endif
};

/* ---- everything else: mapped at once ---- */

static int map_ring(struct vm_area_struct *vma, struct hml_ring *ring)
{
	if (vma_pages(vma) != ring->memory.pages)
		return -EINVAL;
	return vm_map_pages_zero(vma, ring->pages, ring->memory.pages);
}

static int map_extent(struct vm_area_struct *vma, unsigned long *addr,
		      u8 *va, u64 left)
{
	for (; left; left -= PAGE_SIZE, va += PAGE_SIZE) {
		int err = vm_insert_page(vma, *addr, virt_to_page(va));

		if (err)
			return err;
		*addr += PAGE_SIZE;
		/* Extents grow together, and may be as long as an area. */
		if (!IS_ALIGNED(*addr, SZ_2M))
			continue;
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return 0;
}

static int map_area(struct vm_area_struct *vma, const struct hml_area *a)
{
	unsigned long addr = vma->vm_start;
	int err = 0;
	u32 i;

	if (!a->allocated || vma_pages(vma) != a->pages)
		return -EINVAL;
	if (by_fault(a))
		return 0;
	for (i = 0; i < a->mem->count && !err; i++)
		err = map_extent(vma, &addr, a->mem->extents[i].va,
				 hml_mem_extent_end(a->mem, i) -
				 a->mem->extents[i].start);
	return err;
}

/* Context locked: the object stays while it is mapped. */
static int map_object(struct hml_context *c, struct vm_area_struct *vma,
		      u32 region, u32 id, struct hml_memory **memory)
{
	struct hml_nqueue *nq;
	struct hml_ring *ring;
	struct hml_area *a;
	struct hml_term *t;

	hml_context_assert_locked(c);
	switch (region) {
	case HML_REGION_AREA:
		a = hml_area_find(c, id);
		if (!a)
			return -EINVAL;
		*memory = &a->memory;
		return map_area(vma, a);
	case HML_REGION_NQ_RING:
	case HML_REGION_NQ_CONTROL:
		nq = hml_nq_find(c, id);
		if (!nq)
			return -EINVAL;
		ring = region == HML_REGION_NQ_RING ? nq->ring : nq->control;
		break;
	case HML_REGION_WQ:
	case HML_REGION_STATUS:
		t = xa_load(&c->termini, id);
		if (!t)
			return -EINVAL;
		ring = region == HML_REGION_WQ ? t->wq : t->status;
		break;
	default:
		return -EINVAL;
	}
	*memory = &ring->memory;
	return map_ring(vma, ring);
}

static int map_region(struct hml_context *c, struct vm_area_struct *vma,
		      u32 region, u32 id)
{
	struct hml_memory *memory;
	int err = map_object(c, vma, region, id, &memory);

	if (err)
		return err;
	refcount_inc(&memory->ref);
	vma->vm_private_data = memory;
	vma->vm_ops = &vm_ops;
	if (region == HML_REGION_AREA && by_fault(area_of(memory)))
		vma->vm_ops = &area_vm_ops;
	return 0;
}

static bool read_only(u32 region)
{
	return region == HML_REGION_NQ_RING || region == HML_REGION_STATUS;
}

int hml_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct hml_context *c = file->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u32 region = offset >> REGION_SHIFT;
	vm_flags_t never = VM_MAYEXEC;
	int err;

	if ((u32)offset)
		return -EINVAL;
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (read_only(region)) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		/* Nor by mprotect() later. */
		never |= VM_MAYWRITE;
	}
	hml_compat_vm_flags(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP,
			    never);
	if (mutex_lock_killable(&c->lock))
		return -EINTR;
	err = map_region(c, vma, region, (offset >> ID_SHIFT) & ID_MASK);
	mutex_unlock(&c->lock);
	return err;
}
