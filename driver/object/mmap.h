/* SPDX-License-Identifier: GPL-2.0-only */
/* What can be mapped, and where. */
#ifndef HML_MMAP_H
#define HML_MMAP_H

#include <linux/types.h>

struct file;
struct vm_area_struct;

enum hml_region {
	HML_REGION_AREA		= 1,
	HML_REGION_NQ_RING	= 2,
	HML_REGION_NQ_CONTROL	= 3,
	HML_REGION_WQ		= 4,
	HML_REGION_STATUS	= 5,
};

u64 hml_mmap_offset(enum hml_region region, u32 id);
int hml_mmap(struct file *file, struct vm_area_struct *vma);

#endif /* HML_MMAP_H */
