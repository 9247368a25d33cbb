// SPDX-License-Identifier: GPL-2.0-only
/* Mapping rings and allocated areas into the process. */
#include <linux/fs.h>
#include <linux/mm.h>

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

static int map_ring(struct vm_area_struct *vma, const struct hml_ring *ring)
{
	if (vma_pages(vma) != ring->count)
		return -EINVAL;
	return vm_map_pages_zero(vma, ring->pages, ring->count);
}

static int map_area(struct vm_area_struct *vma, const struct hml_area *a)
{
	unsigned long addr = vma->vm_start;
	u32 i;

	if (!a->allocated || vma_pages(vma) != a->pages)
		return -EINVAL;
	for (i = 0; i < a->mem->count; i++) {
		u8 *va = a->mem->extents[i].va;
		u64 left = hml_mem_extent_end(a->mem, i) -
			   a->mem->extents[i].start;

		for (; left; left -= PAGE_SIZE, va += PAGE_SIZE) {
			int err = vm_insert_page(vma, addr, virt_to_page(va));

			if (err)
				return err;
			addr += PAGE_SIZE;
		}
	}
	return 0;
}

static int map_region(struct hml_context *c, struct vm_area_struct *vma,
		      u32 region, u32 id)
{
	struct hml_nqueue *nq;
	struct hml_area *a;
	struct hml_term *t;

	switch (region) {
	case HML_REGION_AREA:
		a = xa_load(&c->areas, id);
		return a ? map_area(vma, a) : -EINVAL;
	case HML_REGION_NQ_RING:
	case HML_REGION_NQ_CONTROL:
		nq = xa_load(&c->nqs, id);
		if (!nq)
			return -EINVAL;
		return map_ring(vma, region == HML_REGION_NQ_RING ?
				&nq->ring : &nq->control);
	case HML_REGION_WQ:
	case HML_REGION_STATUS:
		t = xa_load(&c->termini, id);
		if (!t)
			return -EINVAL;
		return map_ring(vma, region == HML_REGION_WQ ?
				&t->wq : &t->status);
	}
	return -EINVAL;
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
	mutex_lock(&c->lock);
	err = map_region(c, vma, region, (offset >> ID_SHIFT) & ID_MASK);
	mutex_unlock(&c->lock);
	return err;
}
