// SPDX-License-Identifier: MIT
/* The embedded device's watches: see struct shm_watch. */
#include "embedded/shm.h"

/*
 * Who is dead costs a system call for each of them: not more often than that.
 * What has changed costs a look at memory.
 */
#define LOOK_AT_OWNERS_NS	(20ll * 1000000)

static bool armed(const struct shm_watch *w)
{
	return (READ_ONCE(w->state) & SHM_WATCH_STATE) == SHM_WATCH_ARMED;
}

/* NULL if there is none of that number, and never was. */
static const struct shm_slot *watched(const struct shm_segment *seg,
				      const struct shm_watch *w)
{
	u32 slot = READ_ONCE(w->slot);

	return slot < SHM_MAX_SLOTS ? &seg->slots[slot] : NULL;
}

/* Another host's slot: that host is not there, or was not for a moment. */
static bool peer_changed(const struct shm_segment *seg, const struct shm_watch *w)
{
	u32 peer = READ_ONCE(w->peer) - 1u;

	return peer >= SHM_MAX_PEERS ||
	       READ_ONCE(seg->bridge.peer[peer].state) != READ_ONCE(w->peer_state);
}

static bool changed(const struct shm_segment *seg, const struct shm_watch *w)
{
	const struct shm_slot *slot = watched(seg, w);

	if (READ_ONCE(w->void_) || READ_ONCE(seg->downs) != w->downs)
		return true;
	if (READ_ONCE(w->peer))
		return peer_changed(seg, w);
	return !slot || READ_ONCE(slot->epoch) != w->epoch;
}

static bool inside(const struct shm_dev *shm, u64 offset, u64 bytes)
{
	return !(offset % 64) && hml_view_covers(shm->size, offset, bytes);
}

/* Is it what another process made, or what one has scribbled over? */
static bool makes_sense(const struct shm_dev *shm, const struct hml_nq *core)
{
	u64 entries = (u64)core->mask + 1;

	return !(entries & core->mask) && entries <= SHM_MAX_NQ_ENTRIES &&
	       inside(shm, core->control, sizeof(struct hamlyn_nq_control)) &&
	       inside(shm, core->ring, sizeof(struct hamlyn_nq_ring)) &&
	       inside(shm, core->entries,
		      entries * sizeof(struct hamlyn_nq_entry));
}

/* A report of an overrun would tell that something was lost. */
static bool has_room(struct shm_dev *shm, const struct hml_nq *core)
{
	const struct hamlyn_nq_control *control =
		hml_ref_deref(&shm->nic.port, core->control);
	u32 cursor = hml_port_nq_seen(core);			/* B4 */
	s32 used = (s32)(cursor - smp_load_acquire(&control->consumer)); /* B4 */

	return used < (s32)core->mask;
}

/* Segment locked. What finds no room is told by the next one who looks. */
static void tell(struct shm_dev *shm, u32 id)
{
	struct shm_segment *seg = shm->seg;
	struct shm_watch *w = &seg->watches[id];
	u32 state = READ_ONCE(w->state), number = READ_ONCE(w->nq);
	struct hml_nq *nq;
	struct hamlyn_nq_entry e = {
		.data = w->cookie,
		.slot = w->slot,
		.index = id,
		.source = w->host,
		.length = state / (SHM_WATCH_STATE + 1),
		.flags = HAMLYN_NQE_PEER_GONE,
	};

	if (number >= SHM_MAX_NQS)
		return;
	nq = &seg->nqs[number].nq;
	if (!makes_sense(shm, nq) || !has_room(shm, nq) ||
	    !hml_nq_append(&shm->nic, nq, hml_nq_expect(&shm->nic, nq, HML_TAKER_NONE), &e,
			   true))
		return;
	seg->retired.notifications++;
	/* Fails if it was taken already. */
	hml_atomic_cmpxchg(&w->state, state, state | SHM_WATCH_QUEUED);
}

/* Segment locked. */
void h__shm_tell(struct h_dev *dev)
{
	struct shm_dev *shm = shm_of(dev);
	struct shm_segment *seg = shm->seg;
	u32 i;

	for (i = 0; i < shm_watch_end(seg); i++) {
		struct shm_watch *w = &seg->watches[i];

		if (w->owner && armed(w) && changed(seg, w))
			tell(shm, i);
	}
}

/* ---- the watcher's side ---- */

/* @d: also look who is dead; else NULL. */
static bool gone(const struct h_dev *dev, const struct shm_watch *w,
		 struct shm_dead *d)
{
	const struct shm_segment *seg = shm_of(dev)->seg;
	const struct shm_slot *slot = watched(seg, w);

	if (changed(seg, w))
		return true;
	if (READ_ONCE(w->peer))
		return d && h__shm_dead(dev, READ_ONCE(seg->bridge.owner), d);
	return !slot || (d && h__shm_dead(dev, READ_ONCE(slot->owner), d));
}

static bool any_gone(const struct h_dev *dev, struct shm_dead *d)
{
	const struct shm_segment *seg = shm_of(dev)->seg;
	const struct h_watch *hw;

	for (hw = dev->watches; hw; hw = hw->next) {
		const struct shm_watch *w = &seg->watches[hw->id];

		if (armed(w) && gone(dev, w, d))
			return true;
	}
	return false;
}

static void tell_gone(struct h_dev *dev, struct shm_dead *d)
{
	struct shm_dev *shm = shm_of(dev);
	const struct h_watch *hw;

	for (hw = dev->watches; hw; hw = hw->next) {
		const struct shm_watch *w = &shm->seg->watches[hw->id];

		if (armed(w) && gone(dev, w, d))
			tell(shm, hw->id);
	}
}

/* dev->lock held. */
static bool look(struct h_dev *dev)
{
	struct shm_dev *shm = shm_of(dev);
	struct shm_dead dead = {}, *d = NULL;
	int64_t now = h__now_ns();

	if (now - shm->looked_ns > LOOK_AT_OWNERS_NS) {
		shm->looked_ns = now;
		d = &dead;
	}
	if (!any_gone(dev, d))
		return false;
	if (!h__shm_trylock(dev)) {
		tell_gone(dev, d);
		h__shm_unlock(dev);
	}
	return any_gone(dev, d);
}

/*
 * Is there anything that a watch has to tell, and that nobody has told? Of all
 * the process' watches, whoever looks.
 *
 * Return: true if there is, and it could not be told now.
 */
bool h__shm_look(struct h_nq *nq)
{
	bool left;

	if (!h__read_once(&nq->watches))
		return false;
	if (!h__try_lock(&nq->dev->lock))
		return true;
	left = look(nq->dev);
	h__unlock(&nq->dev->lock);
	return left;
}

/* The first entry of this watch, that was not ended: a message. Else nothing. */
bool h__shm_nq_gone(struct h_nq *nq, struct hamlyn_nq_entry *e)
{
	u32 generation = e->length;
	struct shm_watch *w;
	u32 state;

	if (e->index >= SHM_MAX_WATCHES)
		return false;
	w = &shm_of(nq->dev)->seg->watches[e->index];
	e->index = HAMLYN_NONE;
	e->length = 0;
	state = READ_ONCE(w->state);
	do {
		if (state / (SHM_WATCH_STATE + 1) != generation ||
		    (state & SHM_WATCH_STATE) == SHM_WATCH_TOLD)
			return false;
	} while (!__atomic_compare_exchange_n(&w->state, &state,
					      (state & ~SHM_WATCH_STATE) |
					      SHM_WATCH_TOLD, false,
					      __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return true;
}

/* ---- keys that were right ---- */

/* The first of those among which it is. */
static struct shm_known *known_of(const struct shm_guesser *g, u32 slot, u64 key)
{
	return &g->known[(slot ^ key) % (SHM_KNOWN / SHM_KNOWN_WAYS) * SHM_KNOWN_WAYS];
}

static bool knows(const struct shm_known *k, u32 slot, u64 key)
{
	unsigned int i;

	for (i = 0; i < SHM_KNOWN_WAYS; i++)
		if (READ_ONCE(k[i].key) == key && READ_ONCE(k[i].slot) == slot)
			return true;
	return false;
}

/* Segment locked. It may displace the oldest one, which is then counted as a guess. */
static void remember(const struct shm_guesser *g, u32 slot, u64 key)
{
	struct shm_known *k = known_of(g, slot, key);
	unsigned int i;

	if (knows(k, slot, key))
		return;
	for (i = SHM_KNOWN_WAYS - 1; i; i--) {
		WRITE_ONCE(k[i].key, k[i - 1].key);
		WRITE_ONCE(k[i].slot, k[i - 1].slot);
	}
	WRITE_ONCE(k->key, key);
	WRITE_ONCE(k->slot, slot);
}

static const struct shm_guesser *guesser_of(const struct hml_sender *sender)
{
	return (const struct shm_guesser *)(const void *)
		((const char *)sender->guard.bucket - offsetof(struct shm_guesser, bucket));
}

bool hml_port_knew(const struct hml_nic *nic, const struct hamlyn_packet *h,
		   const struct hml_sender *sender)
{
	(void)nic;
	return knows(known_of(guesser_of(sender), h->slot, h->key), h->slot, h->key);
}

/* ---- making and ending ---- */

static struct shm_watch *free_record(struct shm_segment *seg)
{
	u32 i;

	for (i = 0; i < shm_watch_end(seg); i++)
		if (!seg->watches[i].owner)
			return &seg->watches[i];
	if (i == SHM_MAX_WATCHES)
		return NULL;
	WRITE_ONCE(seg->watch_end, i + 1);
	return &seg->watches[i];
}

/* As a packet that is rejected: told to the slot, held against the caller. */
static void count_reject(struct shm_dev *shm, struct hml_slot *slot, const struct h_ticket *k,
			 int reason, bool ticket, struct hml_sender *who)
{
	struct hamlyn_packet h = {
		.version = HAMLYN_PACKET_VERSION,
		.host = k->host,
		.source = shm->nic.host,
		.slot = k->slot,
		.meta_index = k->meta_index,
		.offset = k->base,
		.key = k->key,
	};

	who->stats->rejects[reason]++;
	if (slot)
		hml_atomic_inc64(&slot->rejects[reason]);
	/* As a packet. Nobody chooses the key of a ticket: a void one is no guess. */
	if ((reason == HAMLYN_REJECT_KEY || reason == HAMLYN_REJECT_TICKET) && !ticket &&
	    !hml_port_knew(&shm->nic, &h, who))
		hml_guard_guess(&shm->nic, who);
	hml_port_rejected(&shm->nic, slot, &h, reason, who);
}

static bool opens(struct shm_dev *shm, const struct h_ticket *k, bool ticket,
		  struct hml_sender *who)
{
	struct hml_slot *slot;
	int reject;

	if (k->host != shm->nic.host)
		return false;
	if (shm->seg->link.down) {
		who->stats->rejects[HAMLYN_REJECT_DOWN]++;
		return false;
	}
	slot = hml_port_slot(&shm->nic.port, k->slot);
	reject = hml_slot_opens(&shm->nic, slot, k->key,
				k->meta_index == HAMLYN_META_FAST ?
				0 : k->meta_index, ticket);
	if (reject >= 0)
		count_reject(shm, slot, k, reject, ticket, who);
	return reject < 0;
}

/* Another host's: the bridge asks it. False if it is not there. */
static bool fill_far(struct shm_segment *seg, struct shm_watch *w, const struct h_watch *hw,
		     const struct h_ticket *k, bool ticket)
{
	u32 peer = h__shm_peer(seg, k->host);
	u32 state = peer < SHM_MAX_PEERS ? READ_ONCE(seg->bridge.peer[peer].state) : 0;

	if (!shm_peer_up(state))
		return false;
	WRITE_ONCE(w->key, k->key);
	WRITE_ONCE(w->meta_index, k->meta_index == HAMLYN_META_FAST ? 0 : k->meta_index);
	WRITE_ONCE(w->flags, (u16)((ticket ? HAMLYN_WATCH_TICKET : 0) |
				   (hw->claim ? HAMLYN_WATCH_CLAIM : 0)));
	WRITE_ONCE(w->peer_state, state);
	WRITE_ONCE(w->peer, (u16)(peer + 1));
	return true;
}

static int fill_near(struct shm_dev *shm, struct shm_watch *w, const struct h_watch *hw,
		     const struct h_ticket *k, bool ticket, struct hml_sender *who)
{
	struct shm_slot *slot;

	WRITE_ONCE(w->void_, !opens(shm, k, ticket, who));
	if (w->void_)
		return 0;
	slot = &shm->seg->slots[k->slot];
	if (hw->claim && slot->claimed)
		return -EALREADY;
	w->epoch = slot->epoch;
	slot->watched = 1;
	slot->claimed |= hw->claim;
	if (!ticket)
		remember(guesser_of(who), k->slot, k->key);
	return 0;
}

static int fill(struct shm_dev *shm, struct shm_watch *w, const struct h_watch *hw,
		const struct h_ticket *k, bool ticket, u64 cookie, struct hml_sender *who)
{
	struct shm_segment *seg = shm->seg;
	u32 generation = READ_ONCE(w->state) / (SHM_WATCH_STATE + 1) + 1;
	int err = 0;

	w->host = k->host;
	WRITE_ONCE(w->slot, k->slot);
	w->nq = hw->nq->id;
	w->cookie = cookie;
	w->downs = seg->downs;
	WRITE_ONCE(w->peer, 0);
	if (k->host == shm->nic.host)
		err = fill_near(shm, w, hw, k, ticket, who);
	else
		WRITE_ONCE(w->void_, !fill_far(seg, w, hw, k, ticket));
	if (err)
		return err;
	WRITE_ONCE(w->state, generation * (SHM_WATCH_STATE + 1) |
			     SHM_WATCH_ARMED);
	/* Last: if we die before, there was no watch. */
	smp_store_release(&w->owner, shm->attach + 1);
	return 0;
}

/* The bridge looks at all, and finds it by its generation. */
static void tell_bridge(struct shm_segment *seg)
{
	hml_atomic_add_return(&seg->bridge.watches, 1);
	h__shm_bell(seg);
}

static int make_watch(struct h_watch *hw, const struct h_ticket *k, bool ticket, u64 cookie,
		      struct hml_sender *who)
{
	struct h_dev *dev = hw->dev;
	struct shm_dev *shm = shm_of(dev);
	struct shm_watch *w = free_record(shm->seg);
	struct shm_dead d = {};
	int err;

	if (!w) {
		h__shm_reclaim_dead(dev);
		w = free_record(shm->seg);
	}
	if (!w)
		return h__refuse(dev, -ENOSPC,
				 "the segment has %u watches already",
				 SHM_MAX_WATCHES);
	err = fill(shm, w, hw, k, ticket, cookie, who);
	if (err)
		return h__refuse(dev, err, "the slot was claimed before");
	hw->id = (u32)(w - shm->seg->watches);
	if (w->peer)
		tell_bridge(shm->seg);
	if (gone(dev, w, &d))
		tell(shm, hw->id);
	return 0;
}

int h__shm_watch_for(struct h_watch *hw, const struct h_ticket *k, bool ticket,
		     u64 cookie, struct hml_sender *who)
{
	int err;

	/* As in count_reject(): a ticket is no guess. */
	if (!ticket && hml_bucket_until(who->guard.bucket, (u64)h__now_ns()))
		return h__refuse(hw->dev, -EAGAIN,
				 "held back: this process guesses keys");
	err = h__shm_lock(hw->dev);
	if (err)
		return err;
	err = make_watch(hw, k, ticket, cookie, who);
	h__shm_unlock(hw->dev);
	return err;
}

int h__shm_watch(struct h_watch *hw, const struct h_ticket *k, int fd,
		 u64 cookie)
{
	struct shm_dev *shm = shm_of(hw->dev);
	struct h_ticket of_fd;
	bool ticket = !k;
	int err;

	if (ticket) {
		err = h__shm_ticket_of_fd(shm, fd, &of_fd);
		if (err)
			return h__refuse(hw->dev, err,
					 "no descriptor of a ticket, or of another segment");
		k = &of_fd;
	}
	return h__shm_watch_for(hw, k, ticket, cookie, &shm->self);
}

int h__shm_unwatch(struct h_watch *hw)
{
	struct shm_watch *w = &shm_of(hw->dev)->seg->watches[hw->id];
	int err = h__shm_lock(hw->dev);

	if (err)
		return err;
	/* An entry that is in the NQ is nothing any more. */
	WRITE_ONCE(w->state,
		   (READ_ONCE(w->state) & ~SHM_WATCH_STATE) | SHM_WATCH_TOLD);
	WRITE_ONCE(w->owner, 0);
	if (w->peer)
		tell_bridge(shm_of(hw->dev)->seg);
	h__shm_unlock(hw->dev);
	return 0;
}
