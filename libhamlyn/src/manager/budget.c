// SPDX-License-Identifier: MIT
/*
 * By how much the buffers of a manager's end points may grow.
 *
 * What an end point is made with it has until it ends. What it is given beyond that, as
 * others send more, comes out of a budget that all end points of the manager share: the
 * buffers of streams and what they send from, and heap kept for the next long message. Who
 * finds it used up goes on with what it has, and others are looked at sooner.
 *
 * Once a second, while there is anything beyond, it is looked which of it nobody has used
 * since. Heap is freed; buffers are the end points' own to give back (stream_shed.c).
 */
#include <sched.h>
#include <stdlib.h>

#include "manager/manager.h"

#define PRESSED_NS	50000000LL	/* the same where others wait for it */
#define PRESS_NS	5000000LL	/* for senders to begin with the smaller buffers */

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
		h__write_once(&b->grown, true);
		if (!taken && !dropped.memory)
			h__write_once(&b->pressed, true);
		if (m->event)
			h__event_update(m);
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
	return h__now_ns() - h__read_once(&b->used_ns) >= H_AGE_NS;
}

/* All of them at once: who receives long messages again begins anew. */
static void spares_age(struct h_manager *m)
{
	struct h_spare old[H_SPARES] = {};
	struct h_budget *b = &m->budget;
	unsigned int i;

	if (!h__read_once(&b->spare))
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

/* ---- buffers ---- */

void h__budget_unneeded_by(struct h_manager *m,
			   struct h_debt *(*unneeded)(struct h_receiver *r, bool pressed))
{
	h__lock(&m->lock);
	m->budget.unneeded = unneeded;
	h__unlock(&m->lock);
}

void h__budget_grows(struct h_manager *m)
{
	h__write_once(&m->budget.grown, true);
}

static bool look_is_due(const struct h_budget *b)
{
	int64_t least = h__read_once(&b->pressed) ? PRESSED_NS : H_AGE_NS;

	return h__now_ns() - h__read_once(&b->looked_ns) >= least;
}

/*
 * manager->lock held. Return: how much there is to do. Who begins to grow meanwhile is looked
 * at, or says so after this has begun.
 */
static unsigned int look(struct h_manager *m, bool pressed)
{
	struct h_budget *b = &m->budget;
	struct h_receiver *r;
	struct h_debt *d;
	unsigned int n = 0;

	h__write_once(&b->looked_ns, h__now_ns());
	h__write_once(&b->pressed, false);
	h__write_once(&b->grown, false);
	for (r = b->unneeded ? m->receivers : NULL; r; r = r->next) {
		d = b->unneeded(r, pressed);
		if (d) {
			h__chore_add(m, d);
			n++;
		}
	}
	if (m->event)
		h__event_update(m);
	return n;
}

static void buffers_age(struct h_manager *m)
{
	struct h_budget *b = &m->budget;
	unsigned int n = 0;

	if (!h__read_once(&b->grown) || !look_is_due(b))
		return;
	h__lock(&m->lock);
	if (look_is_due(b))
		n = look(m, h__read_once(&b->pressed));
	h__unlock(&m->lock);
	if (n)
		h__debts_pay(m);
	if (h__read_once(&b->grown))
		return;
	/* The last of what was grown: nothing is kept for the next time. */
	h__pool_trim_all(&m->receive);
	h__pool_trim_all(&m->send);
}

void h__budget_age(struct h_manager *m)
{
	if (h__likely(!h__read_once(&m->budget.ages)))
		return;
	spares_age(m);
	buffers_age(m);
}

/* Until they have begun, or for a while: they may be asleep. */
static void wait_for_offers(struct h_manager *m)
{
	int64_t end = h__now_ns() + PRESS_NS;

	while ((h__read_once(&m->chores) || h__read_once(&m->budget.offered)) &&
	       h__now_ns() < end) {
		h__manager_take(m);
		h__debts_pay(m);
		sched_yield();
	}
}

bool h__budget_press(struct h_manager *m)
{
	struct h_why why;
	unsigned int n;

	if (!h__try_lock(&m->budget.pressing))
		return false;
	h__why_keep(m->dev, &why);
	h__lock(&m->lock);
	n = look(m, true);
	/* Then what has been idle since just now. */
	if (!n)
		n = look(m, true);
	h__unlock(&m->lock);
	if (n)
		wait_for_offers(m);
	h__pool_trim_all(&m->receive);
	h__pool_trim_all(&m->send);
	h__why_restore(m->dev, &why);
	h__unlock(&m->budget.pressing);
	return true;
}

void h__spares_exit(struct h_manager *m)
{
	unsigned int i;

	for (i = 0; i < H_SPARES; i++)
		free(drop_one(&m->budget).memory);
}
