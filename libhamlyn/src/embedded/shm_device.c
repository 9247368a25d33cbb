// SPDX-License-Identifier: MIT
/* The embedded device: objects in a shared segment. */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "embedded/shm.h"

/*
 * Longest sleep without a look around: a sender that is killed between its
 * notification and its wake-up call must not leave us asleep.
 */
#define LOOK_AROUND_NS	(500ll * 1000000)
/* With watches: one whose slot's owner was killed leaves it to us to see that. */
#define LOOK_AT_WATCHES_NS	(100ll * 1000000)
#define LOOK_AGAIN_NS		(10ll * 1000000)

static void shm_close(struct h_dev *dev)
{
	h__shm_detach(dev);
}

/* ---- areas ---- */

static int shm_area_alloc(struct h_area *a)
{
	size_t huge = a->flags & HAMLYN_AREA_HUGE ? h__huge_page_size() : 0;
	u64 align = huge && a->length >= huge ? huge : SHM_PAGE;
	u64 length = (a->length + align - 1) & ~(align - 1);
	int err = h__shm_alloc(a->dev, length, align, &a->id, &a->addr);

	if (err && align > SHM_PAGE) {
		/* A wish: what does not fit so may fit otherwise. */
		length = (a->length + SHM_PAGE - 1) & ~(SHM_PAGE - 1ull);
		err = h__shm_alloc(a->dev, length, SHM_PAGE, &a->id, &a->addr);
	}
	if (!err)
		a->length = length;
	return err;
}

#ifndef MADV_POPULATE_READ		/* Linux 5.14 */
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

static bool can_populate(void)
{
	static char page[2 * SHM_PAGE];
	uintptr_t at = ((uintptr_t)page + SHM_PAGE - 1) & ~(SHM_PAGE - 1ul);

	return !madvise((void *)at, SHM_PAGE, MADV_POPULATE_READ);
}

/* Nothing to wire; but tell the mistake that the kernel would tell. */
static int shm_area_add(struct h_area *a)
{
	uintptr_t first = (uintptr_t)a->addr & ~(SHM_PAGE - 1ul);
	size_t n = (uintptr_t)a->addr - first + a->length;
	int advice = a->flags & HAMLYN_AREA_READONLY ? MADV_POPULATE_READ :
						       MADV_POPULATE_WRITE;

	n = (n + SHM_PAGE - 1) & ~(SHM_PAGE - 1ul);
	if (n < a->length)
		return -EFAULT;
	if (!madvise((void *)first, n, advice))
		return 0;
	if (errno == ENOMEM || can_populate())
		return -EFAULT;
	return msync((void *)first, n, MS_ASYNC) ? -EFAULT : 0;
}

static int free_memory(struct h_dev *dev, u32 area)
{
	int err = h__shm_lock(dev);

	if (err)
		return err;
	h__shm_free(shm_of(dev), area);
	h__shm_unlock(dev);
	return 0;
}

static int shm_area_remove(struct h_area *a)
{
	return a->allocated ? free_memory(a->dev, a->id) : 0;
}

/* ---- NQs ---- */

/* In one run of pages: control block, ring head, entries. */
static void fill_nq(struct h_nq *nq, struct hml_nq *core, char *mem)
{
	struct shm_dev *shm = shm_of(nq->dev);
	struct hamlyn_nq_ring *ring;

	nq->control = (void *)mem;
	ring = (void *)(mem + sizeof(struct hamlyn_nq_control));
	ring->entries = nq->mask + 1;
	nq->ring = ring;
	nq->entries = (void *)(ring + 1);
	nq->priv = core;
	*core = (struct hml_nq) {
		.mask = nq->mask,
		.ring = shm_offset(shm, nq->ring),
		.entries = shm_offset(shm, nq->entries),
		.control = shm_offset(shm, nq->control),
	};
	*shm_bias_of(core) = (struct shm_bias) {
		.bias = shm->biased ? SHM_NQ_FREE : SHM_NQ_SHARED,
	};
}

static struct shm_nq *free_nq(struct shm_segment *seg)
{
	u32 i;

	for (i = 0; i < SHM_MAX_NQS; i++)
		if (!seg->nqs[i].owner)
			return &seg->nqs[i];
	return NULL;
}

static int record_nq(struct h_nq *nq, u32 area, char *mem)
{
	struct shm_dev *shm = shm_of(nq->dev);
	struct shm_nq *rec;
	int err = h__shm_lock(nq->dev);

	if (err)
		return err;
	rec = free_nq(shm->seg);
	if (!rec) {
		h__shm_reclaim_dead(nq->dev);
		rec = free_nq(shm->seg);
	}
	if (!rec) {
		err = h__refuse(nq->dev, -ENOSPC,
				"the segment has %u NQs already", SHM_MAX_NQS);
		goto unlock;
	}
	rec->area = area;
	fill_nq(nq, &rec->nq, mem);
	WRITE_ONCE(rec->owner, shm->attach + 1);
	nq->id = (u32)(rec - shm->seg->nqs);
unlock:
	h__shm_unlock(nq->dev);
	return err;
}

static int shm_nq_create(struct h_nq *nq, uint32_t entries)
{
	void *mem;
	u32 area;
	int err;

	err = h__shm_alloc(nq->dev, sizeof(struct hamlyn_nq_control) +
			   sizeof(struct hamlyn_nq_ring) +
			   (u64)entries * sizeof(struct hamlyn_nq_entry),
			   SHM_PAGE, &area, &mem);
	if (err)
		return err;
	err = record_nq(nq, area, mem);
	if (err)
		free_memory(nq->dev, area);
	return err;
}

static int shm_nq_destroy(struct h_nq *nq)
{
	struct shm_dev *shm = shm_of(nq->dev);
	struct shm_nq *rec = &shm->seg->nqs[nq->id];
	int err = h__shm_lock(nq->dev);

	if (err)
		return err;
	h__shm_free(shm, rec->area);
	WRITE_ONCE(rec->owner, 0);
	h__shm_unlock(nq->dev);
	return 0;
}

static void shm_nq_forget(struct h_nq *nq, bool child)
{
	(void)child;
	free(nq->hole);
}

static void fill_hole(struct h_nq *nq, u32 pos)
{
	struct shm_dev *shm = shm_of(nq->dev);
	struct hml_nq *core = nq->priv;
	struct hamlyn_nq_entry *e = hml_ref_deref(&shm->nic.port,
						  core->entries);

	if (pos != h__read_once(&nq->control->consumer) ||
	    hml_nq_ready(&shm->nic, core, pos))
		return;
	e += pos & core->mask;
	e->slot = HAMLYN_NONE;
	e->index = HAMLYN_NONE;
	e->flags = HAMLYN_NQE_VOID;
	smp_store_release(&e->sequence, pos + 1);		/* B3 */
}

/*
 * A sender killed between taking an NQ entry and filling it leaves a hole at
 * which the reader would wait for ever. Once everybody who was inside the NIC
 * is out or dead, an entry that is taken and not filled is such a hole. The
 * caller polls: if that needs more than a moment, the next look goes on with it.
 */
static void mend_hole(struct h_nq *nq)
{
	struct shm_dev *shm = shm_of(nq->dev);
	struct hml_nq *core = nq->priv;
	u32 pos = h__read_once(&nq->control->consumer);
	struct h_grace *hole;
	u32 cursor;

	/* Acquire: holes up to here were taken before we wait, not after. */
	while (!h__shm_nq_look(core, &cursor))
		h__shm_nq_share(shm_bias_of(core));
	if (cursor == pos ||
	    hml_nq_ready(&shm->nic, core, pos))
		return;
	if (!h__try_lock(&nq->dev->lock))
		return;
	/* A child of fork() has what it finds here. */
	hole = nq->hole;
	nq->hole = NULL;
	if (!h__shm_grace(nq->dev, &hole, pos) && !h__shm_trylock(nq->dev)) {
		fill_hole(nq, pos);
		h__shm_unlock(nq->dev);
	}
	nq->hole = hole;
	h__unlock(&nq->dev->lock);
}

static void shm_nq_mend(struct h_nq *nq)
{
	mend_hole(nq);
	h__shm_look(nq);
}

/* How long may it sleep before somebody has to look around? */
static int64_t longest_sleep(struct h_nq *nq)
{
	if (!h__read_once(&nq->watches))
		return LOOK_AROUND_NS;
	return h__shm_look(nq) ? LOOK_AGAIN_NS : LOOK_AT_WATCHES_NS;
}

static int futex_wait(u32 *word, int64_t ns)
{
	struct timespec t = {
		.tv_sec = ns / 1000000000,
		.tv_nsec = ns % 1000000000,
	};

	if (syscall(SYS_futex, word, FUTEX_WAIT, 1, &t, NULL, 0) < 0 &&
	    errno != EAGAIN)
		return -errno;
	return 0;
}

static bool has_entry(struct h_nq *nq)
{
	return hml_nq_ready(&shm_of(nq->dev)->nic, nq->priv,
			    h__read_once(&nq->control->consumer));
}

/* Armed. If not all stores are ordered, one before that may be seen a little later only. */
static int doze(struct h_nq *nq, int64_t ns, bool ordered)
{
	struct hml_nq *core = nq->priv;
	int err;

	if (ordered || ns <= SHM_SETTLE_NS)
		return futex_wait(&core->armed, ns);
	err = futex_wait(&core->armed, SHM_SETTLE_NS);
	if (err != -ETIMEDOUT || has_entry(nq))
		return err;
	return futex_wait(&core->armed, ns - SHM_SETTLE_NS);
}

/* B5: armed before the look. In a segment of 0.2 senders see to their side themselves. */
static bool order_others(const struct shm_dev *shm)
{
	if (shm->biased)
		return h__shm_try_fence();
	smp_mb();						/* B5 */
	return true;
}

static int shm_nq_sleep(struct h_nq *nq, int64_t deadline_ns)
{
	struct hml_nq *core = nq->priv;
	int64_t ns = longest_sleep(nq);
	bool ordered;
	int err;

	if (deadline_ns >= 0) {
		int64_t left = deadline_ns - h__now_ns();

		if (left <= 0)
			return -ETIMEDOUT;
		if (left < ns)
			ns = left;
	}
	WRITE_ONCE(core->armed, 1);
	ordered = order_others(shm_of(nq->dev));
	if (has_entry(nq)) {
		/*
		 * Who armed it before us, and saw it disarmed for that entry only
		 * now, must not sleep because we have armed it again.
		 */
		hml_port_nq_wake(&shm_of(nq->dev)->nic.port, core);
		return 0;
	}
	err = doze(nq, ns, ordered);
	if (err && err != -ETIMEDOUT)
		return err;
	/* Woken for an entry behind a hole? Then nobody else looks. */
	if (!err)
		mend_hole(nq);
	else
		shm_nq_mend(nq);
	return 0;
}

/* ---- slots ---- */

/* The slot's key, and that of its tickets. */
static int new_keys(u64 keys[2])
{
	int err;

	do {
		err = h__random(keys, 2 * sizeof(keys[0]));
	} while (!err && (!keys[0] || !keys[1]));
	return err;
}

/*
 * Segment locked, and unlocked when it returns; the slot's key or life has changed.
 * Watches are told last by us; while we wait without the tables who looks at his own
 * finds the change, with packets still landing.
 */
static int shut_out(struct h_slot *s, struct shm_slot *rec, bool for_good)
{
	bool locked;
	int err;

	h__shm_slot_changed(rec);
	err = h__shm_quiesce_long(s->dev, &locked);
	if (!locked)
		return err;
	if (rec->watched)
		h__shm_tell(s->dev);
	if (!err && for_good)
		WRITE_ONCE(rec->owner, 0);
	h__shm_unlock(s->dev);
	return err;
}

/* Round and round, so that an old slot number is not soon in use again. */
static struct shm_slot *free_slot(struct shm_segment *seg)
{
	u32 i;

	for (i = 0; i < SHM_MAX_SLOTS; i++) {
		struct shm_slot *s;

		s = &seg->slots[(seg->slot_hint + i) % SHM_MAX_SLOTS];
		if (!s->owner) {
			seg->slot_hint = (seg->slot_hint + i + 1) %
					 SHM_MAX_SLOTS;
			return s;
		}
	}
	return NULL;
}

static int make_slot(struct h_slot *s, const struct h_slot_attr *at,
		     u64 ticket_key)
{
	struct shm_dev *shm = shm_of(s->dev);
	struct shm_slot *rec = free_slot(shm->seg);

	if (!rec) {
		h__shm_reclaim_dead(s->dev);
		rec = free_slot(shm->seg);
	}
	if (!rec)
		return h__refuse(s->dev, -ENOSPC,
				 "the segment has %u slots already",
				 SHM_MAX_SLOTS);
	s->number = (u32)(rec - shm->seg->slots);
	WRITE_ONCE(rec->owner, shm->attach + 1);
	rec->slot = (struct hml_slot) {
		.mode = (u8)at->mode,
		.flags = at->flags & HAMLYN_SLOT_TICKET_ONLY,
		.meta_count = at->meta_count,
		.key = s->key,
		.ticket_key = ticket_key,
		.data = {
			.mem = shm_offset(shm, s->area->addr),
			.base = at->base,
			.length = s->length,
		},
		.meta_base = at->meta_base,
		.nq = s->nq ? shm_offset(shm, s->nq->priv) : HML_NQ_NONE,
		.number = s->number,
	};
	if (s->meta_area)
		rec->slot.meta_mem = shm_offset(shm, s->meta_area->addr);
	h__shm_slot_changed(rec);
	WRITE_ONCE(rec->born, rec->epoch);
	rec->watched = 0;
	rec->claimed = 0;
	smp_store_release(&rec->slot.live, 1);			/* B9 */
	return 0;
}

static int shm_slot_create(struct h_slot *s, const struct h_slot_attr *at)
{
	u64 keys[2];
	int err;

	/* Senders write through the segment: they cannot reach elsewhere. */
	if (!s->area->allocated || (s->meta_area && !s->meta_area->allocated))
		return -EOPNOTSUPP;
	err = new_keys(keys);
	if (err)
		return err;
	s->key = at->flags & HAMLYN_SLOT_KEY_GIVEN ? at->key : keys[0];
	err = h__shm_lock(s->dev);
	if (err)
		return err;
	err = make_slot(s, at, keys[1]);
	h__shm_unlock(s->dev);
	return err;
}

static int shm_slot_destroy(struct h_slot *s)
{
	struct shm_slot *rec = &shm_of(s->dev)->seg->slots[s->number];
	int err = h__shm_lock(s->dev);

	if (err)
		return err;
	WRITE_ONCE(rec->slot.live, 0);
	return shut_out(s, rec, true);
}

static int shm_slot_rekey(struct h_slot *s)
{
	struct shm_slot *rec = &shm_of(s->dev)->seg->slots[s->number];
	u64 keys[2];
	int err = new_keys(keys);

	if (err)
		return err;
	err = h__shm_lock(s->dev);
	if (err)
		return err;
	/* Not if its end has begun, and could not be finished. */
	if (!rec->slot.live) {
		h__shm_unlock(s->dev);
		return -ENOENT;
	}
	WRITE_ONCE(rec->slot.key, keys[0]);
	WRITE_ONCE(rec->slot.ticket_key, keys[1]);
	s->key = keys[0];
	return shut_out(s, rec, false);
}

/* ---- termini ---- */

static int take_record(struct shm_dev *shm, struct shm_sender *s, u32 *id)
{
	u32 i;

	for (i = 0; i < SHM_MAX_TERMINI; i++) {
		struct shm_terminus *rec = &shm->seg->termini[i];

		if (rec->owner)
			continue;
		WRITE_ONCE(rec->owner, shm->attach + 1);
		/* Nobody is inside with it: else we would wait for him for ever. */
		if (rec->hold & 1)
			smp_store_release(&rec->hold, rec->hold + 1);	/* B8 */
		s->record = rec;
		s->core.sender.stats = &rec->stats;
		s->core.sender.pid = (u32)getpid();
		s->core.sender.uid = (u32)getuid();
		s->shm = shm;
		*id = i;
		return 0;
	}
	return -ENOSPC;
}

static int shm_terminus_create(struct h_terminus *t,
			       const struct h_terminus_attr *at)
{
	struct shm_sender *s = aligned_alloc(64, (sizeof(*s) + 63) & ~63ul);
	int err = -ENOMEM;

	t->status = calloc(1, sizeof(*t->status) +
			   at->entries * sizeof(int32_t));
	if (!s || !t->status)
		goto err_free;
	memset(s, 0, sizeof(*s));
	err = h__shm_lock(t->dev);
	if (err)
		goto err_free;
	err = take_record(shm_of(t->dev), s, &t->id);
	if (err) {
		h__shm_reclaim_dead(t->dev);
		err = take_record(shm_of(t->dev), s, &t->id);
	}
	h__shm_unlock(t->dev);
	if (err) {
		h__refuse(t->dev, err, "the segment has %u termini already",
			  SHM_MAX_TERMINI);
		goto err_free;
	}
	hml_guard_begin(&s->core.sender.guard, &s->shm->guesser.bucket, (u64)h__now_ns());
	s->nic = &s->shm->nic;
	s->alone = at->flags & H_TERMINUS_SINGLE && s->shm->fenced;
	if (s->shm->fenced && s->shm->biased)
		s->core.sender.taker = ~(s->alone ? t->id + 1 : SHM_TAKER_FENCED);
	t->priv = s;
	return 0;

err_free:
	free(t->status);
	free(s);
	return err;
}

static int shm_terminus_destroy(struct h_terminus *t)
{
	struct shm_sender *s = t->priv;
	int err = h__shm_lock(t->dev);

	if (err)
		return err;
	h__shm_retire(s->shm, t->id);
	h__shm_unlock(t->dev);
	return 0;
}

static void shm_terminus_forget(struct h_terminus *t, bool child)
{
	struct shm_sender *s = t->priv;

	(void)child;
	free(t->status);
	free(s->core.tickets);
	free(s->core.tags);
	free(s);
}

/* The table is in this process' memory, as long as libhamlyn's. The device's lock is held. */
static int grow_tags(struct h_terminus *t)
{
	struct shm_sender *s = t->priv;
	struct hml_view *tags, *old = s->core.tags;
	u32 n = h__terminus_full(t)->area_room;

	tags = calloc(n, sizeof(*tags));
	if (!tags)
		return -ENOMEM;
	if (old)
		memcpy(tags, old, s->core.tag_count * sizeof(*old));
	/* A send runs to its end under the hold: nobody looks into the old one. */
	h__shm_hold(s);
	s->core.tags = tags;
	s->core.tag_count = n;
	h__shm_release(s);
	free(old);
	return 0;
}

static int shm_terminus_bind(struct h_terminus *t, uint32_t tag,
			     struct h_area *a, uint64_t base, uint64_t length)
{
	struct shm_sender *s = t->priv;
	struct hml_view view = {};
	int err;

	if (tag >= s->core.tag_count) {
		err = a ? grow_tags(t) : 0;
		if (err || !a)
			return err;
	}
	if (a) {
		view.mem = shm_offset(s->shm, a->addr);
		view.base = base;
		view.length = length;
	}
	h__shm_hold(s);
	s->core.tags[tag] = view;
	h__shm_release(s);
	return 0;
}

static bool shm_changing(struct h_dev *dev)
{
	if (h__shm_trylock(dev))
		return true;
	h__shm_unlock(dev);
	return false;
}

static int shm_await_change(struct h_dev *dev)
{
	int err = h__shm_lock(dev);

	if (!err)
		h__shm_unlock(dev);
	return err;
}

static const struct h_dev_ops shm_ops = {
	.close = shm_close,
	.query = h__shm_query,
	.stats = h__shm_stats,
	.area_alloc = shm_area_alloc,
	.area_add = shm_area_add,
	.area_remove = shm_area_remove,
	.nq_create = shm_nq_create,
	.nq_destroy = shm_nq_destroy,
	.nq_forget = shm_nq_forget,
	.slot_create = shm_slot_create,
	.slot_destroy = shm_slot_destroy,
	.slot_rekey = shm_slot_rekey,
	.grace = h__shm_grace,
	.changing = shm_changing,
	.await_change = shm_await_change,
	.slot_ticket_fd = h__shm_slot_ticket_fd,
	.terminus_create = shm_terminus_create,
	.terminus_destroy = shm_terminus_destroy,
	.terminus_forget = shm_terminus_forget,
	.terminus_bind = shm_terminus_bind,
	.terminus_import = h__shm_terminus_import,
	.terminus_drop = h__shm_terminus_drop,
	.watch = h__shm_watch,
	.unwatch = h__shm_unwatch,
	.audit = h__shm_audit,
	.nic_set = h__shm_nic_set,
	.listen = h__shm_listen,
	.call = h__shm_call,
	.send = h__shm_send,
	.send_meta = h__shm_send_meta,
	.nq_sleep = shm_nq_sleep,
	.nq_mend = shm_nq_mend,
	.nq_gone = h__shm_nq_gone,
};

int h__shm_open(struct h_dev *dev, const char *spec, struct h_open_wait *wait)
{
	dev->ops = &shm_ops;
	return h__shm_attach(dev, spec, wait);
}
