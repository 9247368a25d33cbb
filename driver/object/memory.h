/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel memory that can be mapped. */
#ifndef HML_MEMORY_H
#define HML_MEMORY_H

#include <linux/list.h>
#include <linux/log2.h>
#include <linux/refcount.h>
#include <linux/types.h>

#include "user/user.h"

struct folio;
struct hml_context;
struct hml_device;
struct page;

/**
 * struct hml_memory - kernel memory that can be mapped
 * @ref: 1 for the object, 1 for each mapping
 * @device: the NIC
 * @payer: who pays for it, with references, or none
 * @pages: its price
 * @free: frees what belongs to it
 * @folios: what is not free yet, for others have references: by folio.lru
 * @held: how many pages that is
 * @place: in the list of those with such folios
 *
 * It is paid for until the last mapping is gone too, and the last reference that
 * somebody has got through one. First member of what it is the memory of.
 */
struct hml_memory {
	refcount_t ref;
	struct hml_device *device;
	struct hml_payer payer;
	unsigned long pages;
	void (*free)(struct hml_memory *memory);
	struct list_head folios;
	unsigned long held;
	struct list_head place;
};

/**
 * struct hml_ring - work queue, status or NQ memory
 * @memory: reference count and price
 * @va: its address in the kernel
 * @pages: its pages
 */
struct hml_ring {
	struct hml_memory memory;
	void *va;
	struct page **pages;
};

int hml_memory_init(struct hml_memory *memory, struct hml_context *c,
		    unsigned long pages, void (*free)(struct hml_memory *m));
void hml_memory_put(struct hml_memory *memory);
void hml_memory_give_back(struct hml_memory *memory, struct folio *folio);
void hml_memory_exit(void);
struct hml_ring *hml_ring_alloc(struct hml_context *c, size_t bytes);
void hml_ring_put(struct hml_ring *ring);
size_t hml_ring_bytes(const struct hml_ring *ring);

/* What an object of @bytes counts as: with what the allocator adds, and a place in a table. */
static inline u32 hml_price(size_t bytes)
{
	return roundup_pow_of_two(bytes) + 64;
}

#endif /* HML_MEMORY_H */
