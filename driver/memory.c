// SPDX-License-Identifier: GPL-2.0-only
/* Kernel memory that processes map: what it costs, and rings of it. */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "hml.h"

/**
 * hml_memory_init() - make the first reference, and pay
 * @memory: the memory
 * @c: the context whose user pays
 * @pages: the price
 * @free: frees what holds @memory, when the last reference goes
 *
 * Return: 0, or -EDQUOT: then the reference is there and nothing is paid.
 */
int hml_memory_init(struct hml_memory *memory, struct hml_context *c,
		    unsigned long pages, void (*free)(struct hml_memory *m))
{
	int err = pages ? hml_user_charge(c, pages) : 0;

	refcount_set(&memory->ref, 1);
	memory->device = c->device;
	memory->user = pages && !err ? c->user : NULL;
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
	struct hml_device *d = memory->device;
	struct hml_user *u = memory->user;
	unsigned long pages = memory->pages;

	if (!refcount_dec_and_test(&memory->ref))
		return;
	memory->free(memory);
	if (u)
		hml_user_uncharge(d, u, pages);
}

static void ring_free(struct hml_memory *memory)
{
	struct hml_ring *ring = container_of(memory, struct hml_ring, memory);
	unsigned long i;

	if (ring->va)
		vunmap(ring->va);
	for (i = 0; ring->pages && i < memory->pages && ring->pages[i]; i++)
		__free_page(ring->pages[i]);
	kvfree(ring->pages);
	kfree(ring);
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
	int err;

	if (!ring)
		return ERR_PTR(-ENOMEM);
	err = hml_memory_init(&ring->memory, c, PAGE_ALIGN(bytes) >> PAGE_SHIFT,
			      ring_free);
	if (!err)
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
