// SPDX-License-Identifier: MIT
/*
 * The embedded device's tables: memory, and what belonged to the dead. All of
 * it with the segment locked, but for waiting.
 */
#include <stdlib.h>
#include <time.h>

#include "embedded/shm.h"

#define QUIESCE_SPINS	128
#define AT_A_TIME	128
#define SIZE_ADVICE	"size=%lluM of the segment, for this alone, or %lluM, for as much again, " \
	"instead of %lluM"

/* ---- memory: runs of pages, each marked with its area ---- */

/* The first page of @want free ones, at a multiple of @align; or 0. */
static u64 find_run(const struct shm_dev *shm, u64 want, u64 align)
{
	const u16 *owner = shm_page_owners(shm);
	u64 page, run = 0;

	for (page = shm->data_first; page < shm->pages; page++) {
		if (owner[page] || (!run && page % align))
			run = 0;
		else
			run++;
		if (run == want)
			return page + 1 - want;
	}
	return 0;
}

static u32 free_record(const struct shm_dev *shm)
{
	u32 i;

	for (i = 0; i < SHM_MAX_AREAS; i++)
		if (!shm->seg->areas[i].owner)
			return i;
	return SHM_MAX_AREAS;
}

static u64 mebibytes(u64 pages)
{
	return (pages * SHM_PAGE + (1 << 20) - 1) >> 20;
}

/*
 * Managers take areas as large as all that they have, if they can be had. So a little more may
 * go to another one the next time, and who asks here be no further.
 */
static u64 as_much_again(u64 pages, u64 more)
{
	u64 most = SHM_MAX_SIZE / SHM_PAGE;

	return pages > (most - more) / 2 ? most : 2 * pages + more;
}

static int no_room(struct h_dev *dev, u64 pages)
{
	const struct shm_dev *shm = shm_of(dev);
	const u16 *owner = shm_page_owners(shm);
	u64 page, run = 0, unused = 0, longest = 0;

	if (free_record(shm) == SHM_MAX_AREAS)
		return h__refuse(dev, -ENOSPC,
				 "the segment has %u areas and NQs already",
				 SHM_MAX_AREAS);
	for (page = shm->data_first; page < shm->pages; page++) {
		run = owner[page] ? 0 : run + 1;
		unused += run != 0;
		if (run > longest)
			longest = run;
	}
	return h__refuse(dev, -ENOSPC,
			 "%llu KiB asked for, %llu KiB free, %llu KiB in one piece: " SIZE_ADVICE,
			 (unsigned long long)pages * (SHM_PAGE / 1024),
			 (unsigned long long)unused * (SHM_PAGE / 1024),
			 (unsigned long long)longest * (SHM_PAGE / 1024),
			 (unsigned long long)mebibytes(shm->pages + pages),
			 (unsigned long long)mebibytes(as_much_again(shm->pages, pages)),
			 (unsigned long long)mebibytes(shm->pages));
}

static int take_run(struct h_dev *dev, u64 pages, u64 align, u32 of, u32 *area)
{
	struct shm_dev *shm = shm_of(dev);
	u16 *owner = shm_page_owners(shm);
	u32 id = free_record(shm);
	u64 first = find_run(shm, pages, align);
	struct shm_area *a;
	u64 i;

	if (id == SHM_MAX_AREAS || !first) {
		h__shm_reclaim_dead(dev);
		id = free_record(shm);
		first = find_run(shm, pages, align);
	}
	if (id == SHM_MAX_AREAS || !first)
		return no_room(dev, pages);
	a = &shm->seg->areas[id];
	/* Owner first: dying from here on leaves it to h__shm_reclaim(). */
	WRITE_ONCE(a->owner, of);
	a->first = (u32)first;
	a->pages = (u32)pages;
	for (i = 0; i < pages; i++)
		owner[first + i] = (u16)(id + 1);
	*area = id;
	return 0;
}

int h__shm_alloc(struct h_dev *dev, u64 bytes, u64 align, u32 *area, void **p)
{
	struct shm_segment *seg = shm_of(dev)->seg;
	u64 pages = (bytes + SHM_PAGE - 1) / SHM_PAGE;
	int err;

	err = h__shm_lock(dev);
	if (err)
		return err;
	err = take_run(dev, pages, align / SHM_PAGE, shm_of(dev)->attach + 1, area);
	h__shm_unlock(dev);
	if (err)
		return err;
	/* It is ours by now: this may take its time. */
	*p = (char *)seg + (u64)seg->areas[*area].first * SHM_PAGE;
	memset(*p, 0, pages * SHM_PAGE);
	return 0;
}

/*
 * Segment locked. The bridge's from the beginning: what a process has sent does not end with it.
 */
int h__shm_make_ring(struct h_dev *dev, u32 terminus)
{
	struct shm_dev *shm = shm_of(dev);
	struct shm_terminus *t = &shm->seg->termini[terminus];
	u32 owner = READ_ONCE(shm->seg->bridge.owner), area;
	struct shm_ring *ring;
	int err;

	/* The last one with this number may have left it. No bridge: then there is nobody up. */
	if (!owner)
		return -EAGAIN;
	/* One that is not where a ring can be: somebody has written there. */
	if (t->ring)
		return h__shm_ring(shm, terminus) ? 0 : -EIO;
	err = take_run(dev, SHM_RING_PAGES, 1, owner, &area);
	if (err)
		return err;
	ring = (void *)((char *)shm->seg + (u64)shm->seg->areas[area].first * SHM_PAGE);
	ring->tail = 0;
	ring->head = 0;
	smp_store_release(&t->ring, area + 1);			/* B21 */
	return 0;
}

void h__shm_free(struct shm_dev *shm, u32 area)
{
	u16 *owner = shm_page_owners(shm);
	struct shm_area *a;
	u64 i, end;

	if (area >= SHM_MAX_AREAS)
		return;
	a = &shm->seg->areas[area];
	end = (u64)a->first + a->pages;
	if (end > shm->pages)
		end = shm->pages;
	/* Only what carries the mark: it may have died while marking. */
	for (i = a->first; i < end; i++)
		if (owner[i] == area + 1)
			owner[i] = 0;
	WRITE_ONCE(a->owner, 0);
}

/* ---- waiting for senders ---- */

struct inside {
	u32 terminus;
	u32 hold;
};

/*
 * Who was inside the NIC when it began, all at once: who has been waited for does not
 * keep others waiting who came in meanwhile, however many more send than there are
 * processors.
 */
struct h_grace {
	u32 about;		/* the caller's */
	u32 count;		/* of those at @at who have not left */
	struct inside at[SHM_MAX_TERMINI];
};

/* Behind the fence. *@from: the first terminus to look at; out: where to go on. */
static u32 begin(const struct h_dev *dev, u32 *from, struct inside *at, u32 room)
{
	struct shm_segment *seg = shm_of(dev)->seg;
	u32 i, n = 0;

	for (i = *from; i < SHM_MAX_TERMINI && n < room; i++) {
		u32 hold = smp_load_acquire(&seg->termini[i].hold);	/* B8 */

		if (hold & 1)
			at[n++] = (struct inside) { .terminus = i, .hold = hold };
	}
	*from = i;
	return n;
}

/* B8: has a terminus left the NIC, or, where @ask, can it never act again? */
static bool is_out(const struct h_dev *dev, struct shm_terminus *t, u32 hold, bool ask)
{
	u32 owner = READ_ONCE(t->owner);

	if (smp_load_acquire(&t->hold) != hold)			/* B8 */
		return true;
	return ask && (!owner || !h__shm_alive(dev, owner - 1));
}

/* Return: whether nobody is inside any more. */
static bool look(const struct h_dev *dev, struct inside *at, u32 *count, bool ask)
{
	struct shm_segment *seg = shm_of(dev)->seg;
	u32 i = 0;

	while (i < *count) {
		if (is_out(dev, &seg->termini[at[i].terminus], at[i].hold, ask))
			at[i] = at[--*count];
		else
			i++;
	}
	return !*count;
}

/* @give_up: 0: at once */
static int wait_out(const struct h_dev *dev, struct inside *at, u32 *count, int64_t give_up)
{
	unsigned int spins = give_up ? 1 : QUIESCE_SPINS;
	struct h_wait wait = { 0 };

	for (; !look(dev, at, count, !(spins % QUIESCE_SPINS)); spins++)
		/* Both count the same. */
		if ((!give_up || h__wait_more(&wait, give_up)) && !(spins % QUIESCE_SPINS))
			return -ETIMEDOUT;
	return 0;
}

/* So many at a time: threads may have small stacks. */
int h__shm_quiesce(struct h_dev *dev, int64_t wait_ns)
{
	int64_t give_up = h__change_end(h__now_ns(), wait_ns);
	struct inside at[AT_A_TIME];
	u32 count, from = 0;
	int err;

	h__shm_fence();						/* B8 */
	do {
		count = begin(dev, &from, at, AT_A_TIME);
		err = wait_out(dev, at, &count, give_up);
	} while (!err && from < SHM_MAX_TERMINI);
	return err;
}

int h__shm_grace(struct h_dev *dev, struct h_grace **grace, u32 about)
{
	struct h_grace *g = *grace;
	int64_t give_up = 0;
	u32 from = 0;
	int err;

	if (g && g->about != about)
		h__grace_end(grace);
	if (!*grace) {
		g = malloc(sizeof(*g));
		if (!g)
			return -ENOMEM;
		*grace = g;
		g->about = about;
		h__shm_fence();					/* B8 */
		g->count = begin(dev, &from, g->at, SHM_MAX_TERMINI);
		give_up = h__now_ns() + SHM_MOMENT_NS;
	}
	err = wait_out(dev, g->at, &g->count, give_up);
	if (!err)
		h__grace_end(grace);
	return err;
}

/*
 * With the segment locked, for long if need be: then who has stopped in there keeps us
 * waiting, but nobody from the tables. @locked: whether the segment is, afterwards.
 */
int h__shm_quiesce_long(struct h_dev *dev, bool *locked)
{
	int err = h__shm_quiesce(dev, SHM_MOMENT_NS), again;

	*locked = true;
	if (!err)
		return 0;
	h__shm_unlock(dev);
	err = h__shm_quiesce(dev, SHM_REVOKE_NS);
	if (err)
		err = h__refuse(dev, h__change_late(),
				"a process was stopped while it sent something");
	again = h__shm_lock(dev);
	*locked = !again;
	return err ? err : again;
}

/* ---- the dead ---- */

void h__shm_retire(struct shm_dev *shm, u32 terminus)
{
	struct shm_terminus *t = &shm->seg->termini[terminus];

	h__shm_stats_add(&shm->seg->retired, &t->stats);
	memset(&t->stats, 0, sizeof(t->stats));
	if (t->hold & 1)
		smp_store_release(&t->hold, t->hold + 1);	/* B8 */
	WRITE_ONCE(t->owner, 0);
}

static bool among(u32 owner, const bool *gone)
{
	return owner && owner <= SHM_MAX_ATTACH && gone[owner - 1];
}

/* From here on packets and watches that begin see that it is another slot. */
void h__shm_slot_changed(struct shm_slot *slot)
{
	WRITE_ONCE(slot->epoch, slot->epoch + 1);
}

/* Their slots are closed. Returns whether there were any, and any watched. */
static bool close_slots(struct shm_segment *seg, const bool *gone,
			bool *watched)
{
	bool any = false;
	u32 i;

	*watched = false;
	for (i = 0; i < SHM_MAX_SLOTS; i++) {
		struct shm_slot *s = &seg->slots[i];

		if (!among(s->owner, gone))
			continue;
		WRITE_ONCE(s->slot.live, 0);
		h__shm_slot_changed(s);
		*watched |= s->watched;
		any = true;
	}
	return any;
}

void h__shm_peers_down(struct shm_segment *seg)
{
	u32 i;

	for (i = 0; i < shm_peers(seg); i++) {
		u32 state = READ_ONCE(seg->bridge.peer[i].state);

		if (shm_peer_up(state))
			WRITE_ONCE(seg->bridge.peer[i].state, state + 1);
	}
}

/* What is in the rings is lost: they go with it. */
static bool close_bridge(struct shm_segment *seg, const bool *gone)
{
	u32 i;

	if (!among(READ_ONCE(seg->bridge.owner), gone))
		return false;
	h__shm_peers_down(seg);
	for (i = 0; i < SHM_MAX_TERMINI; i++)
		WRITE_ONCE(seg->termini[i].ring, 0);
	WRITE_ONCE(seg->bridge.owner, 0);
	return true;
}

/*
 * Everything that the attachments in @gone owned: they are dead, or leave.
 * Slots are closed first, then everybody who may still be writing through one
 * is waited for and watches are told, then the memory goes. Their own watches
 * go before their NQs.
 */
static int reclaim(struct h_dev *dev, const bool *gone, int64_t wait_ns)
{
	struct shm_dev *shm = shm_of(dev);
	struct shm_segment *seg = shm->seg;
	bool memory, watched, bridge;
	int err;
	u32 i;

	for (i = 0; i < SHM_MAX_TERMINI; i++)
		if (among(seg->termini[i].owner, gone))
			h__shm_retire(shm, i);
	for (i = 0; i < shm_watch_end(seg); i++)
		if (among(seg->watches[i].owner, gone))
			WRITE_ONCE(seg->watches[i].owner, 0);
	bridge = close_bridge(seg, gone);
	memory = close_slots(seg, gone, &watched) | bridge;
	watched |= bridge;
	for (i = 0; i < SHM_MAX_AREAS && !memory; i++)
		memory = among(seg->areas[i].owner, gone);
	for (i = 0; i < SHM_MAX_NQS && !memory; i++)
		memory = among(seg->nqs[i].owner, gone);
	if (!memory)
		return 0;
	/* A stopped peer is in the way: what is left is for the next one. */
	err = h__shm_quiesce(dev, wait_ns);
	if (watched)
		h__shm_tell(dev);
	if (err)
		return err;
	for (i = 0; i < SHM_MAX_SLOTS; i++)
		if (among(seg->slots[i].owner, gone))
			WRITE_ONCE(seg->slots[i].owner, 0);
	for (i = 0; i < SHM_MAX_NQS; i++)
		if (among(seg->nqs[i].owner, gone))
			WRITE_ONCE(seg->nqs[i].owner, 0);
	for (i = 0; i < SHM_MAX_AREAS; i++)
		if (among(seg->areas[i].owner, gone))
			h__shm_free(shm, i);
	return 0;
}

int h__shm_reclaim(struct h_dev *dev, u32 attach, int64_t wait_ns)
{
	bool gone[SHM_MAX_ATTACH] = {};

	gone[attach] = true;
	return reclaim(dev, gone, wait_ns);
}

/* One system call for each attachment, not for each thing that it owns. */
bool h__shm_dead(const struct h_dev *dev, u32 owner, struct shm_dead *d)
{
	if (!owner || owner > SHM_MAX_ATTACH)
		return false;
	if (!d->known[owner - 1]) {
		d->known[owner - 1] = true;
		d->dead[owner - 1] = !h__shm_alive(dev, owner - 1);
	}
	return d->dead[owner - 1];
}

void h__shm_reclaim_dead(struct h_dev *dev)
{
	struct shm_segment *seg = shm_of(dev)->seg;
	struct shm_dead d = {};
	bool any = h__shm_dead(dev, seg->bridge.owner, &d);
	u32 i;

	for (i = 0; i < SHM_MAX_TERMINI; i++)
		any |= h__shm_dead(dev, seg->termini[i].owner, &d);
	for (i = 0; i < SHM_MAX_SLOTS; i++)
		any |= h__shm_dead(dev, seg->slots[i].owner, &d);
	for (i = 0; i < SHM_MAX_NQS; i++)
		any |= h__shm_dead(dev, seg->nqs[i].owner, &d);
	for (i = 0; i < SHM_MAX_AREAS; i++)
		any |= h__shm_dead(dev, seg->areas[i].owner, &d);
	for (i = 0; i < shm_watch_end(seg); i++)
		any |= h__shm_dead(dev, seg->watches[i].owner, &d);
	if (any)
		reclaim(dev, d.dead, SHM_RECLAIM_NS);
}
