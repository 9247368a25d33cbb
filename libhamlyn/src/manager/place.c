// SPDX-License-Identifier: MIT
/* Slots with memory of their own, and receivers, which have one. */
#include <stdlib.h>

#include "manager/manager.h"

#define DEFAULT_ARRIVALS	64
#define LEAST_ADVISED		64	/* entries: two channels */
#define NQ_ADVICE "nq_entries %u of the manager, or channels (HAMLYN_CHANNELS) %u instead of %u"

static uint32_t channels_of(uint32_t entries)
{
	return entries > H_SELF_ARRIVALS ? (entries - H_SELF_ARRIVALS - 1) / H_CHANNEL_ARRIVALS : 0;
}

static int no_entries(struct h_manager *m, uint32_t arrivals, uint32_t room)
{
	uint32_t entries = m->nq->mask + 1, more = 2 * entries;

	/* Twice a tiny one holds no channel either. */
	if (more < LEAST_ADVISED)
		more = LEAST_ADVISED;
	return h__refuse(m->dev, -ENOSPC,
			 "%u arrivals to set aside; %u are left of an NQ of %u entries: " NQ_ADVICE,
			 arrivals, room, entries, more, channels_of(more), channels_of(entries));
}

/* The NQ has entries for all that is on its way to all end points. */
static int reserve(struct h_manager *m, uint32_t arrivals)
{
	uint32_t room;

	h__lock(&m->lock);
	room = m->nq->mask - m->reserved;
	if (arrivals <= room)
		m->reserved += arrivals;
	h__unlock(&m->lock);
	return arrivals > room ? no_entries(m, arrivals, room) : 0;
}

static int place_memory(struct h_manager *m, struct h_place *p,
			const struct h_receiver_attr *attr, bool grown)
{
	size_t metadata = attr->entries * sizeof(struct hamlyn_metadata);
	int err;

	err = h__pool_alloc(&m->receive, attr->length ? attr->length : 64, grown,
			    &p->data);
	if (err || !metadata)
		return err;
	return h__pool_alloc(&m->receive, metadata < 128 ? 128 : metadata,
			     false, &p->metadata);
}

static int place_slot(struct h_manager *m, struct h_place *p,
		      const struct h_receiver_attr *attr)
{
	struct h_slot_attr at = {
		.area = p->data.area,
		.base = p->data.base,
		.length = attr->length ? attr->length : 64,
		.meta_area = p->metadata.area,
		.meta_base = p->metadata.base,
		.meta_count = attr->entries,
		.mode = attr->mode,
		.flags = attr->flags,
		.nq = m->nq,
	};
	int err;

	err = h_slot_create(m->dev, &at, &p->slot);
	if (!err)
		p->number = h_slot_number(p->slot);
	return err;
}

static void put_back(struct h_manager *m, const struct h_place *p)
{
	h__lock(&m->lock);
	h__pool_free(&m->receive, &p->metadata);
	h__pool_free(&m->receive, &p->data);
	m->reserved -= p->arrivals;
	h__unlock(&m->lock);
}

static uint32_t arrivals_of(const struct h_receiver_attr *attr)
{
	if (attr->arrivals)
		return attr->arrivals;
	return attr->entries ? attr->entries : DEFAULT_ARRIVALS;
}

static int place_make(struct h_manager *m, struct h_place *p,
		      const struct h_receiver_attr *attr, bool grown)
{
	int err;

	p->arrivals = arrivals_of(attr);
	err = reserve(m, p->arrivals);
	if (err)
		return err;
	err = place_memory(m, p, attr, grown);
	if (!err)
		err = place_slot(m, p, attr);
	if (err)
		put_back(m, p);
	return err;
}

/*
 * As much as the NQ had when it began: who sends without end keeps nobody here.
 * m->polling held. Return: whether there was anything.
 */
static bool take_what_is_there(struct h_manager *m)
{
	uint32_t left = m->nq->mask + 1;
	bool took = false;
	int n;

	do {
		n = h__take(m);
		took |= n;
	} while (n && left > (uint32_t)n && (left -= n));
	return took;
}

/* Of what was taken something may have to be answered, and could not be: who waits is to. */
static void owed(struct h_manager *m)
{
	if (h__read_once(&m->owing))
		h__manager_owes(m);
}

/*
 * What is in the NQ of a slot that is gone must not reach the next one of its number,
 * which may be made before the former one's owner has come to take it: all of it was
 * there when the number became anybody's, and is taken before the next one is entered.
 * Of that one there is nothing yet, as nobody knows its key before it is. Slot numbers
 * are of their NIC and may be high, but come from a table of that size.
 */
static void enter(struct h_manager *m, const struct h_place *p, struct h_receiver *r)
{
	struct h_receiver **of = &m->by_slot[p->number];
	bool took;

	h__polling_lock(m);
	*of = NULL;
	took = take_what_is_there(m);
	*of = r;
	h__polling_unlock(m, took);
	owed(m);
}

int h__place_wish(struct h_place *p, struct h_receiver *r,
		  const struct h_receiver_attr *attr, bool grown)
{
	struct h_manager *m = r->manager;
	int err;

	*p = (struct h_place) {};
	err = place_make(m, p, attr, grown);
	if (!err)
		enter(m, p, r);
	return err;
}

int h__place_init(struct h_place *p, struct h_receiver *r,
		  const struct h_receiver_attr *attr)
{
	int err = h__place_wish(p, r, attr, false);

	if (h__is_too_much(err) && h__budget_press(r->manager))
		err = h__place_wish(p, r, attr, false);
	return err;
}

/*
 * All that is in the pool is zero. The NIC counts how much has arrived, not where: a
 * sender that leaves gaps in its message has the receiver take what was there before
 * for a part of it, which must not be what others had sent to another end point.
 */
static void give_back(struct h_manager *m, struct h_place *p)
{
	memset(p->data.addr, 0, p->data.length);
	if (p->metadata.addr)
		memset(p->metadata.addr, 0, p->metadata.length);
	put_back(m, p);
}

/*
 * Another thread may have entered the next slot of its number. What is there of this
 * one is taken at any rate, or its entries of the NQ could not be set aside for others.
 */
static void leave(struct h_manager *m, const struct h_place *p, struct h_receiver *r)
{
	struct h_receiver **of = &m->by_slot[p->number];

	h__polling_lock(m);
	if (*of == r)
		*of = NULL;
	take_what_is_there(m);
	/* Before the memory is somebody else's: no overrun() looks at it any more. */
	h__spin_lock(m, &r->lock);
	if (r->slot == p->slot)
		r->slot = NULL;
	h__spin_unlock(m, &r->lock);
	h__polling_unlock(m, true);
	owed(m);
}

/*
 * Until the slot is gone its receiver has what arrives: it may have to stay. Those who
 * give it something may look at the slot, so its memory goes behind them.
 */
int h__place_exit(struct h_place *p, struct h_receiver *r)
{
	struct h_manager *m = r->manager;
	int err = h__slot_end(p->slot);

	if (err)
		return err;
	leave(m, p, r);
	free(p->slot);
	p->slot = NULL;
	give_back(m, p);
	h__pool_trim(&m->receive);
	return 0;
}

void h__place_abandon(struct h_place *p, struct h_receiver *r)
{
	struct h_manager *m = r->manager;

	h__polling_lock(m);
	m->by_slot[p->number] = NULL;
	h__polling_unlock(m, false);
}

void h__entry_grant(struct hamlyn_metadata *entry, uint64_t key, uint64_t low,
		    uint64_t high)
{
	h__write_once(&entry->low, low);
	h__write_once(&entry->high, high);
	h__write_once(&entry->key, key);
	h__entry_arm(entry);
}

/* ---- receivers ---- */

void h__receiver_add(struct h_receiver *r, struct h_manager *m,
		     const struct h_receiver_class *class)
{
	*r = (struct h_receiver) {
		.class_ = class, .class_size = sizeof(*class), .manager = m,
	};
	h__lock(&m->lock);
	H_LINK(m->receivers, r);
	h__unlock(&m->lock);
}

void h__receiver_remove(struct h_receiver *r)
{
	struct h_manager *m = r->manager;

	h__lock(&m->lock);
	h__ready_remove(m, r);
	H_UNLINK(m->receivers, r);
	h_receiver_owes(r, false);
	h__unlock(&m->lock);
}

/* The place is told apart from the receiver by those who have several. */
static void receiver_place(struct h_receiver *r, const struct h_place *p)
{
	h_receiver_lock(r);
	r->slot = p->slot;
	r->data = p->data.addr;
	r->metadata = p->metadata.addr;
	r->arrivals = p->arrivals;
	h_receiver_unlock(r);
}

/*
 * Who is called back by it reads none of its members that is not there: one that is new must
 * ask class_size. Those of the first version are asked for here.
 */
#define FIRST_CLASS_SIZE \
	(offsetof(struct h_receiver_class, settle) + sizeof(void (*)(struct h_receiver *)))

static int class_check(struct h_dev *dev, const struct h_receiver_class *class, size_t size)
{
	if (size < FIRST_CLASS_SIZE)
		return h__refuse(dev, -EINVAL, "a class of %zu bytes", size);
	return h__attr_check(dev, class, size, sizeof(*class));
}

int h__receiver_init(struct h_receiver *r, struct h_manager *m,
		     const struct h_receiver_class *class, size_t class_size,
		     const struct h_receiver_attr *attr, size_t size)
{
	struct h_receiver_attr at;
	struct h_place place;
	int err;

	err = class_check(m->dev, class, class_size);
	if (!err)
		err = H_TAKE_ATTR(m->dev, &at, attr, size);
	if (err)
		return err;
	h__receiver_add(r, m, class);
	r->class_size = (uint32_t)class_size;
	err = h__place_init(&place, r, &at);
	if (err)
		h__receiver_remove(r);
	else
		receiver_place(r, &place);
	return err;
}

int h_receiver_exit(struct h_receiver *r)
{
	struct h_place place = { 0 };
	struct h_manager *m;
	int err;

	if (!r)
		return 0;
	m = r->manager;
	place.slot = r->slot;
	place.arrivals = r->arrivals;
	h__lock(&m->lock);
	h__pool_find(&m->receive, r->data, &place.data);
	if (r->metadata)
		h__pool_find(&m->receive, r->metadata, &place.metadata);
	h__unlock(&m->lock);
	err = h__place_exit(&place, r);
	if (!err)
		h__receiver_remove(r);
	return err;
}

/* It was half made, and its memory goes, whatever becomes of its slot. */
void h__receiver_drop(struct h_receiver *r)
{
	struct h_place place = { .slot = r->slot };
	struct h_dev *dev = r->manager->dev;
	struct h_why why;

	h__why_keep(dev, &why);
	if (h_receiver_exit(r)) {
		h__place_abandon(&place, r);
		h__receiver_remove(r);
	}
	h__why_restore(dev, &why);
}

int h_receiver_watch(struct h_receiver *r, const struct h_ticket *ticket, int fd,
		     uint32_t number, struct h_watch **watch)
{
	struct h_manager *m = r->manager;
	uint64_t cookie = h_receiver_cookie(r, number);

	return fd < 0 ? h_watch(m->dev, ticket, m->nq, cookie, watch) :
			h_watch_fd(m->dev, fd, m->nq, cookie, watch);
}
