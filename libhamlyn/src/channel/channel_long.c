// SPDX-License-Identifier: MIT
/*
 * Long messages that the caller has. A message is a plain value, and can be copied: so what
 * there is to free is kept here, and a message only says which it is.
 */
#include <stdlib.h>

#include "channel/channel.h"

#define FIRST_LONGS	4

/* ch->lock held. @longs: memory for @n, whose former contents are the first ones. */
static struct h_long *longs_replace(struct h_channel *ch, struct h_long *longs, uint32_t n)
{
	struct h_long *old = ch->longs;
	uint32_t i;

	for (i = 0; i < n; i++)
		longs[i] = i < ch->longs_max ? old[i] : (struct h_long) { .next = i + 1 };
	/* It is called when none is free. */
	ch->longs_free = ch->longs_max;
	ch->longs = longs;
	ch->longs_max = n;
	return old;
}

int h__longs_reserve(struct h_channel *ch)
{
	struct h_long *longs, *old;
	uint32_t n;

	/* Others only free some. */
	h__spin_lock(ch->manager, &ch->lock);
	n = ch->longs_free < ch->longs_max ? 0 : ch->longs_max ? 2 * ch->longs_max : FIRST_LONGS;
	h__spin_unlock(ch->manager, &ch->lock);
	if (!n)
		return 0;
	longs = calloc(n, sizeof(*longs));
	if (!longs)
		return -ENOMEM;
	h__spin_lock(ch->manager, &ch->lock);
	old = ch->longs_free < ch->longs_max ? longs : longs_replace(ch, longs, n);
	h__spin_unlock(ch->manager, &ch->lock);
	free(old);
	return 0;
}

void h__long_add(struct h_channel *ch, struct h_message *m, void *heap, size_t room)
{
	struct h_long *l;

	h__spin_lock(ch->manager, &ch->lock);
	m->number = ch->longs_free;
	m->serial = ++ch->longs_made;
	l = &ch->longs[m->number];
	ch->longs_free = l->next;
	*l = (struct h_long) { .heap = heap, .room = room, .serial = m->serial };
	h__spin_unlock(ch->manager, &ch->lock);
	m->is_long = 1;
}

int h__long_take(struct h_channel *ch, const struct h_message *m, void **heap, size_t *room)
{
	struct h_long *l;

	if (m->number >= ch->longs_max || ch->longs[m->number].serial != m->serial)
		return -EALREADY;
	l = &ch->longs[m->number];
	*heap = l->heap;
	*room = l->room;
	*l = (struct h_long) { .next = ch->longs_free };
	ch->longs_free = m->number;
	return 0;
}

/* The one that is kept, and those that the caller should have given back. */
void h__longs_exit(struct h_channel *ch)
{
	uint32_t i;

	for (i = 0; i < ch->longs_max; i++)
		free(ch->longs[i].heap);
	free(ch->longs);
}
