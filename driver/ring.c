// SPDX-License-Identifier: GPL-2.0-only
/* Kernel memory for work queues, status and NQs, to be mapped by processes. */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "hml.h"

static void free_pages_of(struct hml_ring *ring, unsigned long count)
{
	while (count)
		__free_page(ring->pages[--count]);
	kvfree(ring->pages);
	ring->pages = NULL;
}

/**
 * hml_ring_alloc() - allocate zeroed memory, charged to the memory cgroup
 * @ring: out: the memory
 * @bytes: size, rounded up to pages
 *
 * Return: 0 or -ENOMEM.
 */
int hml_ring_alloc(struct hml_ring *ring, size_t bytes)
{
	unsigned long i;

	ring->count = PAGE_ALIGN(bytes) >> PAGE_SHIFT;
	ring->pages = kvcalloc(ring->count, sizeof(*ring->pages),
			       GFP_KERNEL_ACCOUNT);
	if (!ring->pages)
		return -ENOMEM;
	for (i = 0; i < ring->count; i++) {
		ring->pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!ring->pages[i])
			goto err_free;
	}
	ring->va = vmap(ring->pages, ring->count, VM_MAP, PAGE_KERNEL);
	if (!ring->va)
		goto err_free;
	return 0;

err_free:
	free_pages_of(ring, i);
	return -ENOMEM;
}

/**
 * hml_ring_free() - free it
 * @ring: the memory; may be all zero
 *
 * Pages that are still mapped stay until they are unmapped.
 */
void hml_ring_free(struct hml_ring *ring)
{
	if (!ring->va)
		return;
	vunmap(ring->va);
	ring->va = NULL;
	free_pages_of(ring, ring->count);
}
