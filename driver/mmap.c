// SPDX-License-Identifier: GPL-2.0-only
/* Mapping rings and allocated areas into the process. */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "compat.h"
#include "hml.h"

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

static const struct vm_operations_struct vm_ops = {
	.open = vma_open,
	.close = vma_close,
};

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
	}
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

static int map_area(struct vm_area_struct *vma, const struct hml_area *a)
{
	unsigned long addr = vma->vm_start;
	int err = 0;
	u32 i;

	if (!a->allocated || vma_pages(vma) != a->pages)
		return -EINVAL;
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

	switch (region) {
	case HML_REGION_AREA:
		a = xa_load(&c->areas, id);
		if (!a)
			return -EINVAL;
		*memory = &a->memory;
		return map_area(vma, a);
	case HML_REGION_NQ_RING:
	case HML_REGION_NQ_CONTROL:
		nq = xa_load(&c->nqs, id);
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
