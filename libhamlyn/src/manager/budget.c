// SPDX-License-Identifier: MIT
/*
 * By how much the buffers of a manager's end points may grow.
 *
 * What an end point is made with it has until it ends. What it is given beyond that, as
 * others send more, comes out of a budget that all end points of the manager share: the
 * buffers of streams and what they send from, and heap kept for the next long message. Who
 * finds it used up goes on with what it has.
 */
#include <stdlib.h>

#include "manager/manager.h"

#define SPARE_NS	1000000000LL	/* unused for so long: it is not needed again */

/* manager->lock held. */
static bool take(struct h_budget *b, size_t bytes)
{
	if (bytes > b->most - b->taken)
		return false;
	b->taken += bytes;
	return true;
}

/* Out of all spares: buffers that are in use come before those that are not. */
static struct h_spare drop_one(struct h_budget *b)
{
	struct h_spare out = {};
	unsigned int i;

	for (i = 0; i < H_SPARES && !out.memory; i++) {
		out = b->spares[i];
		b->spares[i] = (struct h_spare) {};
	}
	b->taken -= out.room;
	return out;
}

static void note_spares(struct h_budget *b)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < H_SPARES; i++)
		any |= !!b->spares[i].memory;
	h__write_once(&b->spare, any);
}

bool h__budget_take(struct h_manager *m, size_t bytes)
{
	struct h_budget *b = &m->budget;
	struct h_spare dropped;
	bool taken;

	do {
		dropped = (struct h_spare) {};
		h__lock(&m->lock);
		taken = take(b, bytes);
		if (!taken)
			dropped = drop_one(b);
		note_spares(b);
		h__unlock(&m->lock);
		free(dropped.memory);
	} while (!taken && dropped.memory);
	return taken;
}

void h__budget_give(struct h_manager *m, size_t bytes)
{
	if (!bytes)
		return;
	h__lock(&m->lock);
	m->budget.taken -= bytes;
	h__unlock(&m->lock);
}

void *h__spare_take(struct h_manager *m, size_t *room)
{
	struct h_budget *b = &m->budget;
	struct h_spare *largest = &b->spares[0], out;
	unsigned int i;

	*room = 0;
	if (!h__read_once(&b->spare))
		return NULL;
	h__lock(&m->lock);
	for (i = 1; i < H_SPARES; i++)
		if (b->spares[i].room > largest->room)
			largest = &b->spares[i];
	out = *largest;
	*largest = (struct h_spare) {};
	h__write_once(&b->used_ns, h__now_ns());
	note_spares(b);
	h__unlock(&m->lock);
	*room = out.room;
	return out.memory;
}

/* Returns what is to be freed: the smallest of all, or @new. manager->lock held. */
static struct h_spare keep(struct h_budget *b, struct h_spare new)
{
	struct h_spare *smallest = &b->spares[0], out;
	unsigned int i;

	for (i = 1; i < H_SPARES; i++)
		if (b->spares[i].room < smallest->room)
			smallest = &b->spares[i];
	out = *smallest;
	if (out.room >= new.room || !take(b, new.room - out.room))
		return new;
	*smallest = new;
	return out;
}

void h__spare_give(struct h_manager *m, void *memory, size_t room)
{
	struct h_spare out = { .memory = memory, .room = room };
	struct h_budget *b = &m->budget;

	if (!memory)
		return;
	h__lock(&m->lock);
	out = keep(b, out);
	h__write_once(&b->used_ns, h__now_ns());
	note_spares(b);
	h__unlock(&m->lock);
	free(out.memory);
}

static bool are_old(const struct h_budget *b)
{
	return h__now_ns() - h__read_once(&b->used_ns) >= SPARE_NS;
}

/* All of them at once: who receives long messages again begins anew. */
void h__spares_age(struct h_manager *m)
{
	struct h_spare old[H_SPARES] = {};
	struct h_budget *b = &m->budget;
	unsigned int i;

	if (h__likely(!h__read_once(&b->spare)))
		return;
	/* Each poll comes here while there is one: only who finds it old takes the lock. */
	if (!are_old(b))
		return;
	h__lock(&m->lock);
	if (are_old(b))
		for (i = 0; i < H_SPARES; i++)
			old[i] = drop_one(b);
	note_spares(b);
	h__unlock(&m->lock);
	for (i = 0; i < H_SPARES; i++)
		free(old[i].memory);
}

void h__spares_exit(struct h_manager *m)
{
	unsigned int i;

	for (i = 0; i < H_SPARES; i++)
		free(drop_one(&m->budget).memory);
}
