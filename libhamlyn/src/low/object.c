// SPDX-License-Identifier: MIT
/* Areas, NQs, slots and termini: checks and bookkeeping for both devices. */
#include <stdlib.h>

#include "low/device.h"

/* ---- areas ---- */

static int area_make(struct h_dev *dev, void *addr, size_t length,
		     uint32_t flags, bool allocate, struct h_area **out)
{
	struct h_area *a;
	int err, cancel;

	*out = NULL;
	if (!length || flags & ~(allocate ? HAMLYN_AREA_HUGE :
					    HAMLYN_AREA_READONLY))
		return h__refuse(dev, -EINVAL,
				 "an area of %zu bytes, flags %#x", length,
				 flags);
	/* Of the embedded device that is what the segment holds, where only ours is outside. */
	if (length > dev->limits.max_area && (allocate || !h_dev_is_embedded(dev)))
		return h__refuse(dev, -E2BIG,
				 "an area of %zu bytes; at most %llu can be had here",
				 length,
				 (unsigned long long)dev->limits.max_area);
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->dev = dev;
	a->addr = addr;
	a->length = length;
	a->flags = flags;
	a->allocated = allocate;
	/* A look at a file of the system, or msync(), under the lock. */
	cancel = h__cancel_off();
	err = h__dev_lock(dev);
	if (!err) {
		err = allocate ? dev->ops->area_alloc(a) : dev->ops->area_add(a);
		if (!err)
			H_LINK(dev->areas, a);
		h__unlock(&dev->lock);
	}
	h__cancel_restore(cancel);
	if (err) {
		free(a);
		return err;
	}
	*out = a;
	return 0;
}

int h_area_alloc(struct h_dev *dev, size_t length, struct h_area **area)
{
	return area_make(dev, NULL, length, 0, true, area);
}

int h_area_alloc_flags(struct h_dev *dev, size_t length, uint32_t flags,
		       struct h_area **area)
{
	return area_make(dev, NULL, length, flags, true, area);
}

int h_area_add(struct h_dev *dev, void *addr, size_t length, uint32_t flags,
	       struct h_area **area)
{
	return area_make(dev, addr, length, flags, false, area);
}

int h_area_remove(struct h_area *a)
{
	struct h_dev *dev;
	int err;

	if (!a)
		return 0;
	dev = a->dev;
	err = h__dev_lock(dev);
	if (err)
		return err;
	if (a->users)
		err = h__refuse(dev, -EBUSY,
				"%u slots and send buffer tags use this area",
				a->users);
	else
		err = dev->ops->area_remove(a);
	if (!err) {
		if (dev->ops->area_forget)
			dev->ops->area_forget(a, false);
		H_UNLINK(dev->areas, a);
	}
	h__unlock(&dev->lock);
	if (!err)
		free(a);
	return err;
}

uint32_t h__area_flags(const struct h_area *a)
{
	return a->flags;
}

void *h_area_addr(const struct h_area *a)
{
	return a->addr;
}

size_t h_area_length(const struct h_area *a)
{
	return a->length;
}

size_t h_area_page_size(const struct h_area *a)
{
	size_t size = a->page_size;
	int cancel;

	if (size)
		return size;
	cancel = h__cancel_off();
	size = h__mapped_page_size(a->addr, a->length);
	h__cancel_restore(cancel);
	return size;
}

static bool inside(const struct h_area *a, uint64_t base, uint64_t length)
{
	return base <= a->length && length <= a->length - base;
}

/* ---- NQs ---- */

int h_nq_create(struct h_dev *dev, uint32_t entries, struct h_nq **out)
{
	struct h_nq *nq;
	int err;

	*out = NULL;
	if (!h__is_power_of_two(entries) || entries < 2 ||
	    entries > dev->limits.max_nq_entries)
		return h__refuse(dev, -EINVAL,
				 "%u NQ entries; it must be a power of two from 2 to %u",
				 entries, dev->limits.max_nq_entries);
	nq = calloc(1, sizeof(*nq));
	if (!nq)
		return -ENOMEM;
	nq->dev = dev;
	nq->mask = entries - 1;
	nq->patience = H_FIRST_PATIENCE;
	nq->polls = H_FIRST_PATIENCE;
	nq->looked = (uint32_t)(h__now_ns() >> 20);
	err = h__dev_lock(dev);
	if (err)
		goto err_free;
	err = dev->ops->nq_create(nq, entries);
	if (!err)
		H_LINK(dev->nqs, nq);
	h__unlock(&dev->lock);
	if (err)
		goto err_free;
	*out = nq;
	return 0;

err_free:
	free(nq);
	return err;
}

int h_nq_destroy(struct h_nq *nq)
{
	struct h_dev *dev;
	int err;

	if (!nq)
		return 0;
	dev = nq->dev;
	err = h__dev_lock(dev);
	if (err)
		return err;
	if (nq->users)
		err = h__refuse(dev, -EBUSY,
				"%u slots and watches use this NQ", nq->users);
	else
		err = dev->ops->nq_destroy(nq);
	if (!err) {
		if (dev->ops->nq_forget)
			dev->ops->nq_forget(nq, false);
		H_UNLINK(dev->nqs, nq);
	}
	h__unlock(&dev->lock);
	if (!err)
		free(nq);
	return err;
}

/* ---- slots ---- */

static int check_slot(struct h_dev *dev, const struct h_slot_attr *at,
		      struct h_slot *s)
{
	const struct h_area *a = at->area, *m = at->meta_area;

	if (!a || a->dev != dev || at->reserved || (m && m->dev != dev) ||
	    (at->nq && at->nq->dev != dev) || !m != !at->meta_count ||
	    at->mode > HAMLYN_SLOT_PARANOID_ONE_SHOT ||
	    (at->mode != HAMLYN_SLOT_NORMAL && !m) ||
	    at->flags & ~(HAMLYN_SLOT_KEY_GIVEN | HAMLYN_SLOT_TICKET_ONLY))
		return h__refuse(dev, -EINVAL,
				 "area, NQ, mode, flags or metadata count of the slot");
	if (at->base > a->length)
		return h__refuse(dev, -ERANGE,
				 "base %llu of an area of %zu bytes",
				 (unsigned long long)at->base, a->length);
	s->length = at->length ? at->length : a->length - at->base;
	if (!inside(a, at->base, s->length) ||
	    (m && !inside(m, at->meta_base,
			  (uint64_t)at->meta_count * HAMLYN_METADATA_SIZE)))
		return h__refuse(dev, -ERANGE,
				 "message area (%llu from %llu on) or metadata outside its area",
				 (unsigned long long)s->length,
				 (unsigned long long)at->base);
	if ((a->flags | (m ? m->flags : 0)) & HAMLYN_AREA_READONLY)
		return h__refuse(dev, -EACCES,
				 "the area was added READONLY");
	if (m && ((uintptr_t)m->addr + at->meta_base) % HAMLYN_METADATA_SIZE)
		return h__refuse(dev, -EINVAL,
				 "metadata must begin at a multiple of %u",
				 HAMLYN_METADATA_SIZE);
	return 0;
}

int h__slot_create(struct h_dev *dev, const struct h_slot_attr *attr, size_t size,
		   struct h_slot **out)
{
	struct h_slot_attr at;
	struct h_slot *s;
	int err;

	*out = NULL;
	err = H_TAKE_ATTR(dev, &at, attr, size);
	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	err = check_slot(dev, &at, s);
	if (err)
		goto err_free;
	s->dev = dev;
	s->area = at.area;
	s->meta_area = at.meta_area;
	s->meta_count = at.meta_count;
	s->meta_base = at.meta_base;
	s->mode = at.mode;
	s->nq = at.nq;
	s->host = dev->limits.host;
	err = h__dev_lock(dev);
	if (err)
		goto err_free;
	err = dev->ops->slot_create(s, &at);
	if (!err) {
		H_LINK(dev->slots, s);
		s->area->users++;
		if (s->meta_area)
			s->meta_area->users++;
		if (s->nq)
			s->nq->users++;
	}
	h__unlock(&dev->lock);
	if (err)
		goto err_free;
	*out = s;
	return 0;

err_free:
	free(s);
	return err;
}

int h__slot_end(struct h_slot *s)
{
	struct h_dev *dev = s->dev;
	int err = h__dev_lock(dev);

	if (err)
		return err;
	err = dev->ops->slot_destroy(s);
	if (!err) {
		H_UNLINK(dev->slots, s);
		s->area->users--;
		if (s->meta_area)
			s->meta_area->users--;
		if (s->nq)
			s->nq->users--;
	}
	h__unlock(&dev->lock);
	return err;
}

int h_slot_destroy(struct h_slot *s)
{
	int err;

	if (!s)
		return 0;
	err = h__slot_end(s);
	if (!err)
		free(s);
	return err;
}

int h_slot_rekey(struct h_slot *s)
{
	int err = h__dev_lock(s->dev);

	if (err)
		return err;
	err = s->dev->ops->slot_rekey(s);
	h__unlock(&s->dev->lock);
	return err;
}

uint32_t h_slot_number(const struct h_slot *s)
{
	return s->number;
}

/* ---- termini ---- */

int h__terminus_create(struct h_dev *dev, const struct h_terminus_attr *attr, size_t size,
		       struct h_terminus **out)
{
	struct h__terminus_full *f;
	struct h_terminus_attr at;
	struct h_terminus *t;
	int err;

	*out = NULL;
	err = H_TAKE_ATTR(dev, &at, attr, size);
	if (err)
		return err;
	if (!at.entries)
		at.entries = H_DEFAULT_ENTRIES;
	if (!at.entry_size)
		at.entry_size = H_DEFAULT_ENTRY_SIZE;
	if (at.flags & ~H_TERMINUS_SINGLE ||
	    at.priority >= HAMLYN_PRIORITIES || at.weight > HAMLYN_MAX_WEIGHT)
		return h__refuse(dev, -EINVAL,
				 "flags %#x, priority %u or weight %u is none",
				 at.flags, at.priority, at.weight);
	if (!h__is_power_of_two(at.entries) || at.entries < 2 ||
	    at.entries > dev->limits.max_wq_entries ||
	    !h__is_power_of_two(at.entry_size) || at.entry_size < 128 ||
	    at.entry_size > dev->limits.max_entry_size)
		return h__refuse(dev, -EINVAL,
				 "%u entries of %u bytes: powers of two up to %u, 128 to %u",
				 at.entries, at.entry_size,
				 dev->limits.max_wq_entries,
				 dev->limits.max_entry_size);
	f = aligned_alloc(_Alignof(struct h_terminus), sizeof(*f));
	if (!f)
		return -ENOMEM;
	memset(f, 0, sizeof(*f));
	t = &f->t;
	t->dev = dev;
	t->fd = dev->fd;
	t->flags = at.flags;
	if (dev->limits.doorbells & HAMLYN_DOORBELL_FSYNC)
		t->flags |= H_TERMINUS_FSYNC;
	t->mask = at.entries - 1;
	t->entry_shift = (uint32_t)__builtin_ctz(at.entry_size);
	t->inline_max = at.entry_size - sizeof(struct hamlyn_trb);
	err = h__dev_lock(dev);
	if (err)
		goto err_free;
	err = dev->ops->terminus_create(t, &at);
	if (!err)
		H_LINK(dev->termini, t);
	h__unlock(&dev->lock);
	if (err)
		goto err_free;
	*out = t;
	return 0;

err_free:
	free(f);
	return err;
}

int h_terminus_destroy(struct h_terminus *t)
{
	struct h_dev *dev;
	int err;

	if (!t)
		return 0;
	dev = t->dev;
	err = h__dev_lock(dev);
	if (err)
		return err;
	err = dev->ops->terminus_destroy(t);
	if (!err) {
		dev->ops->terminus_forget(t, false);
		H_UNLINK(dev->termini, t);
		h__terminus_drop_areas(t);
	}
	h__unlock(&dev->lock);
	if (!err)
		h__terminus_free(t);
	return err;
}

int h_terminus_bind(struct h_terminus *t, uint32_t tag, struct h_area *a,
		    uint64_t base, uint64_t length)
{
	struct h_dev *dev = t->dev;
	int err;

	if (tag >= dev->limits.max_tags || (a && a->dev != dev))
		return h__refuse(dev, -EINVAL,
				 "tag %u: 0 to %u, with an area of this device",
				 tag, dev->limits.max_tags - 1);
	if (a && base <= a->length && !length)
		length = a->length - base;
	if (a && (!inside(a, base, length) || !length))
		return h__refuse(dev, -ERANGE,
				 "%llu bytes from %llu on of an area of %zu",
				 (unsigned long long)length,
				 (unsigned long long)base, a->length);
	err = h__dev_lock(dev);
	if (err)
		return err;
	err = a ? h__terminus_prepare_tag(t, tag) : 0;
	if (!err)
		err = dev->ops->terminus_bind(t, tag, a, base, length);
	if (!err)
		h__terminus_set_tag(t, tag, a, base, length);
	h__unlock(&dev->lock);
	return err;
}
