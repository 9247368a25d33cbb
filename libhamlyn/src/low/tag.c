// SPDX-License-Identifier: MIT
/*
 * The tags of a terminus: which memory they are bound to, and which of them has an address.
 *
 * Senders look while another thread binds and unbinds other tags, and wait for nobody. So
 * there are two lists, sorted by address. A binding makes a new list in the one that is not
 * the present one, and then makes it the present one (B16). Who has looked into a list while
 * the next but one was made in its place sees that, and looks again. A list that has become
 * too short stays until the end of the terminus, as somebody may be looking into it: all those
 * are as long together as the two that took their places.
 */
#include <stdlib.h>

#include "low/device.h"

#define FIRST_TAGS	8

/* ---- looking ---- */

/* How many begin at or before @p. */
static uint32_t begin_before(const struct h_tag_list *list, uintptr_t p)
{
	uint32_t low = 0, high = h__read_once(&list->count);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (h__read_once(&list->entries[middle].base) <= p)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Send buffers may overlap. Of those that begin before the range the one that ends last has
 * it, or none has.
 */
static int look(const struct h_tag_list *list, uintptr_t p, size_t n, uint64_t *offset)
{
	const struct h_tag_entry *e;
	size_t length;
	uint32_t i;

	if (!list)
		return -EFAULT;
	i = begin_before(list, p);
	if (!i)
		return -EFAULT;
	e = &list->entries[h__read_once(&list->entries[i - 1].longest)];
	*offset = p - h__read_once(&e->base);
	length = h__read_once(&e->length);
	if (*offset >= length || n > length - *offset)
		return -EFAULT;
	return (int)h__read_once(&e->tag);
}

int h__terminus_look(const struct h_terminus *t, const void *p, size_t n, uint64_t *offset)
{
	const struct h__terminus_full *f = (const struct h__terminus_full *)t;
	uint32_t bindings;
	int tag;

	do {
		bindings = h__load_acquire(&f->bindings);	/* B16 */
		tag = look(h__load_acquire(&f->list[bindings & 1]), /* B16 */
			   (uintptr_t)p, n, offset);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);	/* B16 */
	} while (h__unlikely(h__read_once(&f->bindings) != bindings));
	return tag;
}

int h__terminus_find_tag(const struct h_terminus *t, const void *p, size_t n)
{
	uint64_t offset;

	return h__terminus_look(t, p, n, &offset);
}

/* ---- binding; the device's lock ---- */

static struct h_tag_list *present(const struct h__terminus_full *f)
{
	return f->list[f->bindings & 1];
}

static uint32_t bound(const struct h__terminus_full *f)
{
	return present(f) ? present(f)->count : 0;
}

/* Where the next list is made. */
static struct h_tag_list **next(struct h__terminus_full *f)
{
	return &f->list[(f->bindings + 1) & 1];
}

/* What is the least that doubling FIRST_TAGS makes of it? */
static uint32_t room_for(uint32_t n)
{
	uint32_t room = FIRST_TAGS;

	while (room < n)
		room *= 2;
	return room;
}

static int lengthen_areas(struct h__terminus_full *f, uint32_t tag)
{
	uint32_t room = room_for(tag + 1);
	struct h_area **areas;

	if (tag < f->area_room)
		return 0;
	areas = realloc(f->areas, room * sizeof(*areas));
	if (!areas)
		return -ENOMEM;
	memset(areas + f->area_room, 0, (room - f->area_room) * sizeof(*areas));
	f->areas = areas;
	f->area_room = room;
	return 0;
}

static int lengthen_next(struct h__terminus_full *f)
{
	struct h_tag_list *old = *next(f), *list;
	uint32_t room = room_for(bound(f) + 1);

	if (old && old->room >= room)
		return 0;
	list = calloc(1, sizeof(*list) + room * sizeof(list->entries[0]));
	if (!list)
		return -ENOMEM;
	list->room = room;
	if (old) {
		old->older = f->replaced;
		f->replaced = old;
	}
	h__store_release(next(f), list);	/* B16 */
	return 0;
}

int h__terminus_prepare_tag(struct h_terminus *t, uint32_t tag)
{
	struct h__terminus_full *f = h__terminus_full(t);
	int err = lengthen_areas(f, tag);

	return err ? err : lengthen_next(f);
}

static void write_entry(struct h_tag_list *list, uint32_t i, const struct h_tag_entry *e)
{
	const struct h_tag_entry *before = i ? &list->entries[list->entries[i - 1].longest] : NULL;
	struct h_tag_entry *to = &list->entries[i];
	bool ends_last = !before || e->base + e->length > before->base + before->length;

	h__write_once(&to->base, e->base);
	h__write_once(&to->length, e->length);
	h__write_once(&to->tag, e->tag);
	h__write_once(&to->longest, ends_last ? i : list->entries[i - 1].longest);
}

/* The present list without @tag, and with @new, in the right place. Returns how many. */
static uint32_t write_list(struct h_tag_list *to, const struct h_tag_list *from, uint32_t tag,
			   const struct h_tag_entry *new)
{
	uint32_t count = from ? from->count : 0, i, n = 0;

	for (i = 0; i < count; i++) {
		const struct h_tag_entry *e = &from->entries[i];

		if (new && new->base <= e->base) {
			write_entry(to, n++, new);
			new = NULL;
		}
		if (e->tag != tag)
			write_entry(to, n++, e);
	}
	if (new)
		write_entry(to, n++, new);
	return n;
}

/*
 * One that is unbound needs no room that was not prepared: the list to be written is the last
 * but one, which had one entry less than the present one, or as many, or one more.
 */
void h__terminus_set_tag(struct h_terminus *t, uint32_t tag, struct h_area *a,
			 uint64_t base, uint64_t length)
{
	struct h__terminus_full *f = h__terminus_full(t);
	struct h_area *had = tag < f->area_room ? f->areas[tag] : NULL;
	struct h_tag_list *list = *next(f);
	struct h_tag_entry e = { .tag = tag };

	if (!a && !had)
		return;
	if (a) {
		e.base = (uintptr_t)a->addr + base;
		e.length = length;
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);		/* B16 */
	if (list)
		h__write_once(&list->count, write_list(list, present(f), tag, a ? &e : NULL));
	h__store_release(&f->bindings, f->bindings + 1);	/* B16 */
	f->areas[tag] = a;
	if (had)
		had->users--;
	if (a)
		a->users++;
}

/* ---- what is bound ---- */

int h__terminus_free_tag(struct h_terminus *t)
{
	struct h__terminus_full *f = h__terminus_full(t);
	uint32_t tag;

	h__lock(&t->dev->lock);
	for (tag = 0; tag < f->area_room && f->areas[tag]; tag++)
		;
	h__unlock(&t->dev->lock);
	return tag < t->dev->limits.max_tags ? (int)tag : -ENOSPC;
}

uint32_t h__terminus_free_tags(struct h_terminus *t)
{
	uint32_t n;

	h__lock(&t->dev->lock);
	n = t->dev->limits.max_tags - bound(h__terminus_full(t));
	h__unlock(&t->dev->lock);
	return n;
}

int h__terminus_next_added(struct h_terminus *t, uint32_t tag, struct h_area **area)
{
	struct h__terminus_full *f = h__terminus_full(t);
	int found = -ENOENT;

	h__lock(&t->dev->lock);
	for (; tag < f->area_room && found < 0; tag++)
		if (f->areas[tag] && !f->areas[tag]->allocated) {
			*area = f->areas[tag];
			found = (int)tag;
		}
	h__unlock(&t->dev->lock);
	return found;
}

/* ---- the end ---- */

void h__terminus_drop_areas(struct h_terminus *t)
{
	struct h__terminus_full *f = h__terminus_full(t);
	uint32_t tag;

	for (tag = 0; tag < f->area_room; tag++)
		if (f->areas[tag])
			f->areas[tag]->users--;
}

void h__terminus_free(struct h_terminus *t)
{
	struct h__terminus_full *f = h__terminus_full(t);
	struct h_tag_list *list;

	while ((list = f->replaced)) {
		f->replaced = list->older;
		free(list);
	}
	free(f->list[0]);
	free(f->list[1]);
	free(f->areas);
	free(f);
}
