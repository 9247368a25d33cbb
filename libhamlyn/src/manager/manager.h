/* SPDX-License-Identifier: MIT */
/* What the upper layer's files share. */
#ifndef H_MANAGER_INTERNAL_H
#define H_MANAGER_INTERNAL_H

#include <hamlyn/manager.h>

#include "low/low.h"

/* ---- memory.c ---- */

#define H_MEMORY_CLASSES	48

/* A piece of one of a manager's areas. */
struct h_memory {
	void *addr;
	size_t length;		/* a power of two, but for the last piece of a device */
	struct h_area *area;
	uint64_t base;		/* of the piece in the area */
};

/*
 * Areas, cut into pieces whose sizes are powers of two, where there is room.
 * manager->lock; who adds an area has manager->area_lock as well.
 */
struct h_pool {
	struct h_manager *manager;
	struct h_terminus *terminus;	/* chunks are bound to it, or NULL */
	struct h_chunk *chunks;
	struct h_piece *free[H_MEMORY_CLASSES];
	size_t total;
};

/*
 * Without manager->lock: it may have to wait for the device. @grown: beyond what an end point is
 * made with. Such pieces have areas of their own, so that those go back when nobody needs them.
 */
int h__pool_alloc(struct h_pool *pool, size_t length, bool grown, struct h_memory *memory);
/* With it. */
void h__pool_free(struct h_pool *pool, const struct h_memory *memory);
/*
 * The piece at @addr, if h__pool_alloc() gave it and nobody has given it back since:
 * -EINVAL if none begins there, -EALREADY if it was given back.
 */
int h__pool_find(struct h_pool *pool, const void *addr,
		 struct h_memory *memory);
void h__pool_exit(struct h_pool *pool);
/* Areas that nobody has a piece of go back to the device, but for some. Without a lock. */
void h__pool_trim(struct h_pool *pool);
/* All that nobody has a piece of. */
void h__pool_trim_all(struct h_pool *pool);
/* h_manager_alloc() of what can be done without: nobody else has to give anything back for it. */
int h__wish(struct h_manager *m, size_t length, bool grown, void **addr);
/* Could what failed so work with less? */
bool h__is_too_much(int err);
/*
 * As h__terminus_free_tag(), for the application: so many are the library's, for areas of a
 * send pool. manager->area_lock held, until it is bound.
 */
#define H_OWN_TAGS	3
int h__pool_spare_tag(const struct h_pool *pool);

/* ---- budget.c: by how much buffers may grow beyond what they were made with ---- */

#define H_SPARES	4

struct h_debt;

/* Heap of long messages that were released: dear to get again. */
struct h_spare {
	void *memory;
	size_t room;
};

struct h_budget {
	size_t most;
	size_t taken;		/* manager->lock, as all that follows */
	struct h_spare spares[H_SPARES];
	int64_t used_ns;	/* when a spare was given or taken last; atomic */
	union {
		struct {
			bool spare;	/* there is one */
			bool grown;	/* buffers that are, or are about to be, or to shrink */
		};
		uint16_t ages;		/* either, in one load; atomic, all three */
	};
	bool pressed;		/* somebody has found it used up since; atomic */
	int64_t looked_ns;	/* when it was looked last what is needed; atomic */
	uint32_t offered;	/* smaller buffers that a sender has not begun to use; atomic */
	uint32_t pressing;	/* the lock of who makes others give back */
	struct h_debt *(*unneeded)(struct h_receiver *r, bool pressed);	/* or NULL */
};

/* Without manager->lock. False: not now; others may give some back. */
bool h__budget_take(struct h_manager *m, size_t bytes);
void h__budget_give(struct h_manager *m, size_t bytes);
/*
 * The largest spare; @room: its bytes, or 0. They stay in the budget until the caller gives
 * them back: what it holds may be far more than it needs.
 */
void *h__spare_take(struct h_manager *m, size_t *room);
/* Keep it for the next one, or free it. */
void h__spare_give(struct h_manager *m, void *memory, size_t room);
/* Give back what nobody has used for a while. */
#define H_AGE_NS	1000000000LL
void h__budget_age(struct h_manager *m);
/*
 * Once each H_AGE_NS @unneeded is asked of each receiver what it can give back: a chore of its
 * own, or NULL; with manager->lock held. @pressed: also what is only likely not to be needed.
 * It says by h__budget_grows() whether it is to be asked again.
 */
void h__budget_unneeded_by(struct h_manager *m,
			   struct h_debt *(*unneeded)(struct h_receiver *r, bool pressed));
void h__budget_grows(struct h_manager *m);
/*
 * What was to be made cannot be had: have end points give back what they do not need. True if
 * it is worth another try. It may take some milliseconds, and polls.
 */
bool h__budget_press(struct h_manager *m);
void h__spares_exit(struct h_manager *m);

/* ---- leaving.c: what was sent, and has not left when its caller's time is over ---- */

struct h_leaving;

/* It has left, or its manager ends. Without a lock. */
typedef void h_leaving_end(struct h_manager *m, struct h_leaving *l);

struct h_leaving {
	struct h_leaving *next;		/* manager->lock */
	int64_t handle;			/* of the last message that reads it */
	h_leaving_end *end;
};

/* Memory of the manager that the NIC reads. */
struct h_copy {
	struct h_leaving leaving;
	void *memory;
	size_t length;
};

/* Something may be sent to @host. */
void h__manager_reaches(struct h_manager *m, uint32_t host);
/*
 * Until a message has left: h_send_wait() with a deadline; as long as it takes where all that is
 * sent goes to this host.
 */
int h__wait_left(struct h_manager *m, int64_t handle, int64_t deadline_ns);
/* Is that what it says if the message has not left? */
bool h__is_late(int err);
/* @l is ended when its handle has left. */
void h__leave(struct h_manager *m, struct h_leaving *l);
/*
 * Room for @length bytes that stay behind; their memory is the caller's to see to. -EAGAIN: as much
 * as may do so already.
 */
int h__copy_begin(struct h_manager *m, size_t length, struct h_copy **copy);
/* It stays until @handle has left; or it is not sent, or has left. */
void h__copy_leave(struct h_manager *m, struct h_copy *copy, int64_t handle);
void h__copy_drop(struct h_manager *m, struct h_copy *copy);
/* @n more receivers, or fewer, are of end points that were closed, and leave. */
void h__closed(struct h_manager *m, int n);
/* Must @l do so, as something that was sent before now has not left? Then its handle is set. */
bool h__leaves_later(struct h_manager *m, struct h_leaving *l);
/*
 * Is @err that it took longer than h__change_limit() allows to end the one receiver of @l? Then it
 * stays, and counts as closed, until it is ended once more, which may go the same way.
 */
bool h__ends_later(struct h_manager *m, struct h_leaving *l, int err);
/* End all of them, before the manager's memory goes. */
void h__leaving_exit(struct h_manager *m);

/* What was said to be sent, and is kept: debt.c. */
struct h_debt {
	/*
	 * By one thread at a time, without a lock, and without waiting: 0 if nothing is left,
	 * -EAGAIN if that waits for an arrival, -EBUSY if it is to be tried again soon.
	 */
	int (*pay)(struct h_debt *d);
	/* manager->lock */
	struct h_debt *next;
	struct h_debt *prev;
	bool listed;
	bool more;		/* was added since it began to be paid */
	/*
	 * It is to be done soon, by whoever polls, but nobody is owed anything, and
	 * h_manager_drain() does not wait for it.
	 */
	bool chore;
};

/* ---- managers ---- */

struct h_sleeper;
struct h_call;
struct h_event;

struct h_manager {
	struct h_dev *dev;
	struct h_nq *nq;
	struct h_terminus *terminus;
	uint32_t flags;
	uint32_t polling;		/* the lock of those who take arrivals */
	uint32_t asleep;		/* sleepers, not the event thread: lock */
	uint64_t owing;			/* receivers with something to settle, debts; atomic */
	uint32_t slots;
	uint32_t packet_size;		/* of the device */
	struct h_receiver **by_slot;	/* polling */
	int64_t spin_ns;
	bool spin_learns;		/* less, while that is in vain */
	uint32_t vain;			/* times in a row that it was; atomic */
	bool crowded;			/* more threads than processors; atomic, both */
	int64_t hogged_ns;		/* until then nobody gives his away */
	/*
	 * Held while areas are added and bound. The device may keep the holder waiting, for
	 * minutes: lock, which those who send and receive take, is taken inside, but not then.
	 */
	uint32_t area_lock;
	uint32_t lock;		/* what follows; taken inside polling */
	struct h_sleeper *sleepers;	/* the first one sleeps on the NQ */
	bool led;			/* one of them does */
	struct h_receiver *receivers;
	struct h_receiver *ready;
	struct h_receiver **ready_tail;
	struct h_call *calls;		/* ready ones that are being called back */
	struct h_call *spare_calls;	/* memory for more */
	uint64_t calls_made;
	struct h_pool receive;		/* memory of slots */
	struct h_pool send;
	struct h_budget budget;
	struct h_memory self_memory;
	struct h_slot *self;		/* to wake who sleeps on the NQ */
	uint32_t nudged;		/* a message to it is under way, since */
	int64_t nudged_ns;		/* atomic, both */
	struct h_terminus *bell;	/* what they are sent from, or NULL; atomic */
	int64_t bell_failed_ns;		/* when a wait could not make it; 0: never; atomic */
	uint32_t rings;			/* that the thread which sends from it has to see; atomic */
	uint32_t kicked;		/* and no h_manager_wait() has returned for it; atomic */
	uint32_t expect_kicks;		/* threads that sleep until then, or for else; atomic */
	struct h_ticket self_ticket;
	uint32_t reserved;		/* NQ entries set aside */
	uint64_t sleeps;		/* lock; for h_manager_stats() */
	uint32_t dispatching;		/* in h_manager_dispatch(), not in a call back */
	int64_t settled_ns;		/* when that was tried last; atomic, as what follows */
	int64_t vain_ns;		/* until the next one, if nothing was sent since */
	uint32_t vain_from;		/* what had been sent then */
	struct h_event *event;		/* event.c, or NULL */
	struct h_debt *(*collected)(struct h_receiver *r);	/* or NULL; lock */
	struct h_debt *debts;
	struct h_debt *paid;		/* just now: it stays */
	uint32_t paying;		/* the lock of who pays */
	bool debts_soon;		/* one waits for nothing that arrives; atomic */
	uint32_t chores;		/* on the list of debts; atomic */
	bool far;			/* it sends to other hosts, and not by itself; atomic */
	struct h_leaving *leaving;	/* written with lock */
	struct h_debt leaves;		/* while there are any */
	uint32_t closed;		/* receivers of theirs; lock */
	int64_t again_ns;		/* when to try what others kept from ending; 0: now */
	bool ends;			/* what has not left until now does not */
	size_t copied;			/* bytes of copies that may be among them; lock */
};

/* Will the NIC read what is sent from the caller's memory for longer than the caller waits? */
static inline bool h__may_stay(const struct h_manager *m, int64_t deadline_ns)
{
	return h__unlikely(h__read_once(&m->far)) && deadline_ns >= 0;
}

static inline bool h__single(const struct h_manager *m)
{
	return m->flags & H_MANAGER_SINGLE;
}

/* Sections of a few instructions, or a function of a class. */
static inline void h__spin_lock(struct h_manager *m, uint32_t *lock)
{
	if (!h__single(m))
		h__lock(lock);
}

static inline void h__spin_unlock(struct h_manager *m, uint32_t *lock)
{
	if (!h__single(m))
		h__unlock(lock);
}

/* h_receiver_lock() and h_receiver_unlock(), for the library's own. */
static inline void h__receiver_lock(struct h_receiver *r)
{
	h__spin_lock(r->manager, &r->lock);
}

static inline void h__receiver_unlock(struct h_receiver *r)
{
	h__spin_unlock(r->manager, &r->lock);
}

/* Entries of the NQ that are set aside for nudges, and of the work queue they are in. */
#define H_SELF_ARRIVALS	8

/* ---- stats.c ---- */

/*
 * One more, or @n, of a counter that one thread at a time changes, and that is read at any
 * time. A store of its own, as memory models want it, would cost two instructions more of
 * each message; what has eight bytes is not torn either way.
 */
#ifdef __SANITIZE_THREAD__
#define h__count(counter, n)	h__write_once(counter, *(counter) + (n))
#else
#define h__count(counter, n)	(*(counter) += (n))
#endif

/* As much as the caller has room for and we know; the rest of its room is 0. */
int h__copy_stats(void *to, size_t size, const void *from, size_t known);

/* ---- poll.c ---- */

#define H_TAKE_AT_ONCE	64
#define H_AGAIN_NS	1000000		/* until what was refused is tried again */
#define H_MOST_AGAIN_NS	16000000	/* the same, where that was in vain many times */

#define H_BEYOND_NS	5000000		/* longest that a wait goes on after its deadline */

/* The lock of those who take arrivals; @took: and took some. */
void h__polling_lock(struct h_manager *m);
void h__polling_unlock(struct h_manager *m, bool took);
/* Take arrivals, as h_manager_poll(): with the lock held, and without. */
int h__take(struct h_manager *m);
int h__manager_take(struct h_manager *m);
/*
 * Wake those who have news; manager->lock held. If it returns true the one that sleeps
 * on the NQ has some too: h__manager_nudge(), without any lock.
 */
bool h__wake_sleepers(struct h_manager *m);
/*
 * For loops that what others send keeps going, each time that it was not for the caller:
 * 0, or -EAGAIN or -ETIMEDOUT when that has gone on for long enough. @rounds: 0 at first.
 */
int h__go_on(unsigned int *rounds, int64_t deadline_ns);
/* The work queue is full, or another thread's: look at what comes, and wait. As h__wait_more(). */
int h__wait_for_room(struct h_manager *m, struct h_wait *w, int64_t deadline_ns);
/* What is left of the time until @deadline_ns, as a time-out; H_NOWAIT when it is over. */
int64_t h__time_left(int64_t deadline_ns);
/* As h_receiver_wait(); @again: not for long, and 0 then. */
int h__receiver_wait(struct h_receiver *r, uint32_t seen, bool again,
		     int64_t deadline_ns);
/* As h_receiver_wait(), also until @other, of the same manager, has others than @other_seen. */
int h__receiver_wait_either(struct h_receiver *r, uint32_t seen, const struct h_receiver *other,
			    uint32_t other_seen, int64_t deadline_ns);

/* ---- bell.c ---- */

/* Wake who sleeps on the NQ. */
void h__manager_nudge(struct h_manager *m);
/* How long may that one sleep? A word may be lost. */
int64_t h__look_around_ns(const struct h_manager *m);
/* Before and after a sleep that kicks end; after the first, look whether there was one. */
void h__kicks_expect(struct h_manager *m);
void h__kicks_end(struct h_manager *m);
/* Was there one? Then there is none any more. */
bool h__kick_take(struct h_manager *m);

/* ---- debt.c: what was said to be sent, and is kept ---- */

#define H_ONE_DEBT	(1ULL << 32)	/* in manager->owing: receivers and chores are below */

void h__debt_add(struct h_manager *m, struct h_debt *d);
/* With manager->lock held. */
void h__chore_add(struct h_manager *m, struct h_debt *d);
/* For ever: nobody pays it any more afterwards; not with anything locked that pay() locks. */
void h__debt_remove(struct h_manager *m, struct h_debt *d);
void h__debts_pay(struct h_manager *m);
/* All of them, and what h_manager_drain() makes one. */
int h__debts_drain(struct h_manager *m, int64_t deadline_ns);
/*
 * From now on @collected is asked of each receiver when the manager is drained: what it
 * owes if it collects anything, or NULL. The layer of streams is above this one.
 */
void h__debts_collected_by(struct h_manager *m,
			   struct h_debt *(*collected)(struct h_receiver *r));

/* Has anything to be tried again although nothing arrives? */
static inline bool h__owes_soon(const struct h_manager *m)
{
	return (uint32_t)h__read_once(&m->owing) || h__read_once(&m->debts_soon);
}

/* ---- manager.c ---- */

/* As h_manager_drain(), of what is in the work queue only. */
int h__manager_left(struct h_manager *m, int64_t timeout_ns);

/* ---- ready.c; manager->lock held, but for those from h__receiver_look() on ---- */

void h__ready_add(struct h_manager *m, struct h_receiver *r);
void h__ready_remove(struct h_manager *m, struct h_receiver *r);
/* Something has changed without an arrival: have it called back if it is ready. */
void h__receiver_look(struct h_receiver *r);
/* And who is asleep in h_receiver_wait() for it looks again as well. */
void h__receiver_wake(struct h_receiver *r);
/*
 * Try to send what receivers owe, unless that was done just now, and pay debts, if
 * anything has @arrived or they were tried a while ago. Without a lock.
 */
void h__manager_settle(struct h_manager *m, int arrived);
/* How long may one sleep that has something to settle? */
int64_t h__again_ns(const struct h_manager *m);
/* The same of a descriptor, which nobody looks at else; 0: for ever. */
int64_t h__look_again_ns(const struct h_manager *m);
/* One has begun to owe something outside of polling: who is asleep has to see to that. */
void h__manager_owes(struct h_manager *m);
/* Two receivers of one end point: only one of them is called back at a time. */
void h__receiver_pair(struct h_receiver *a, struct h_receiver *b);
/*
 * For end points whose call backs are the library's first: nobody calls one of the two
 * back any more afterwards, nor is inside, but for those who have said before with
 * h__receiver_hand_over() that all that follows is the application's.
 */
void h__receivers_silence(struct h_receiver *a, struct h_receiver *b);
void h__receiver_hand_over(struct h_receiver *r);
/*
 * End the calls that were left by longjmp(). @frame: of the caller, called by the
 * application. True if call backs go on: this is one of them, or another thread is in one.
 */
bool h__calls_mend(struct h_manager *m, void *frame);
void h__calls_exit(struct h_manager *m);

/* ---- place.c ---- */

/* Entries of the NQ for a channel with default buffers: its receiver's and its sender's. */
#define H_CHANNEL_ARRIVALS	24

/* A slot with memory of its own whose arrivals a receiver processes. */
struct h_place {
	struct h_slot *slot;
	uint32_t number;		/* of slot */
	struct h_memory data;
	struct h_memory metadata;
	uint32_t arrivals;
};

int h__place_init(struct h_place *place, struct h_receiver *r,
		  const struct h_receiver_attr *attr);
/* Of one that can do without it: nobody else has to give anything back for it. */
int h__place_wish(struct h_place *place, struct h_receiver *r,
		  const struct h_receiver_attr *attr, bool grown);
int h__place_exit(struct h_place *place, struct h_receiver *r);
/* It could not be ended, but @r will: the slot stays and nobody has its arrivals. */
void h__place_abandon(struct h_place *place, struct h_receiver *r);
static inline struct hamlyn_metadata *h__place_entry(const struct h_place *place,
						     uint32_t index)
{
	return (struct hamlyn_metadata *)place->metadata.addr + index;
}

/* Let one message into [low, high) of a paranoid one-shot entry. */
void h__entry_grant(struct hamlyn_metadata *entry, uint64_t key, uint64_t low,
		    uint64_t high);
/* And the next one. */
static inline void h__entry_arm(struct hamlyn_metadata *entry)
{
	h__write_once(&entry->accumulator, 0);
	h__write_once(&entry->length, 0);
	h__write_once(&entry->meta_length, 0);
	h__store_release(&entry->state, HAMLYN_META_ARMED);	/* B10 */
}

/* The parts of h_receiver_init() and exit, for those with other places. */
void h__receiver_add(struct h_receiver *r, struct h_manager *m,
		     const struct h_receiver_class *class);
void h__receiver_remove(struct h_receiver *r);
/* h_receiver_exit() of one that is freed at any rate: if it fails the slot stays. */
void h__receiver_drop(struct h_receiver *r);

/* ---- event.c ---- */

/* Be readable if anything is ready, else not. manager->lock held. */
void h__event_update(struct h_manager *m);
void h__event_exit(struct h_manager *m);

/* ---- seed.c ---- */

#define H_SEED_STREAM	1
#define H_SEED_CREDIT	2
#define H_SEED_DATAGRAM	3
#define H_SEED_TAGGED	4
#define H_SEED_GROUP	5
#define H_SEED_GATHER	6

struct h_seed_fields {
	struct h_ticket ticket;		/* of the first buffer, or of all */
	uint32_t kind;
	uint32_t entries;
	uint32_t buffer;		/* bytes */
	uint64_t more;			/* what the kind makes of it */
};

void h__seed_put(struct h_seed *seed, const struct h_seed_fields *fields);
int h__seed_get(const struct h_seed *seed, uint32_t kind,
		struct h_seed_fields *fields);

#endif /* H_MANAGER_INTERNAL_H */
