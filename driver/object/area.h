/* SPDX-License-Identifier: GPL-2.0-only */
/* Wired memory of a context. */
#ifndef HML_AREA_H
#define HML_AREA_H

#include <linux/types.h>

#include "core/nic.h"
#include "object/memory.h"
#include "user/user.h"

struct hamlyn_area_add;
struct hamlyn_area_alloc;
struct hml_context;
struct mm_struct;
struct user_struct;

/**
 * struct hml_area - wired memory of a context
 * @memory: reference count, and the price of allocated memory
 * @mem: its extents
 * @room: extents that @mem has room for
 * @id: id in the context
 * @flags: HAMLYN_AREA_*; constant
 * @users: slots and bound tags; under the context's lock
 * @allocated: kernel memory that can be mapped, not pinned user memory
 * @pages: number of pages; of pinned memory those of its folios, which are charged
 * @page_size: bytes of the smallest page it is made of; constant
 * @mm: where pinned pages are shown as VmPin
 * @owner: against whose user's RLIMIT_MEMLOCK pinned pages count; held as credentials,
 *         since not every 6.1 lets modules hold a user
 * @payer: whose limits for pinned pages they count against, with references
 * @price: bytes of small objects that it counts as; 0: none yet
 * @price_payer: who pays that
 */
struct hml_area {
	struct hml_memory memory;
	struct hml_mem *mem;
	u32 room;
	u32 id;
	u32 flags;
	u32 users;
	bool allocated;
	unsigned long pages;
	unsigned long page_size;
	struct mm_struct *mm;
	const struct cred *owner;
	struct hml_payer payer;
	u32 price;
	struct hml_payer price_payer;
};

/* ioctls, and for others under the context's lock */
int hml_area_add(struct hml_context *c, struct hamlyn_area_add *arg);
int hml_area_alloc(struct hml_context *c, struct hamlyn_area_alloc *arg);
struct hml_area *hml_area_find(struct hml_context *c, u32 id);
int hml_area_remove(struct hml_context *c, u32 id);
void hml_area_destroy_all(struct hml_context *c);
int hml_area_view(struct hml_context *c, u32 id, u64 base, u64 length,
		  bool writable, struct hml_area **area, struct hml_view *view);

int hml_area_append(struct hml_area *a, u8 *va, u64 bytes);

#endif /* HML_AREA_H */
