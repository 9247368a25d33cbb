/* SPDX-License-Identifier: MIT */
/*
 * The two ends of a stream, and what they say to each other.
 *
 * Records are numbered from 0 on. Record n of a generation that starts with record s
 * goes to buffer (n - s) modulo the number of buffers, so that each arrival tells by
 * its metadata index which record it is, in whatever order they come. Most have no
 * metadata; those that have something to say carry a note.
 *
 * The receiver answers with credits: how many records it has released, and, when it
 * wants larger buffers, the seed of the next generation. They arrive in one-shot
 * buffers as well. The receiver uses one again when a note has told it that the
 * sender has seen what was in it; the sender says so when there were two. Neither
 * waits for the other, in whatever order things come: each credit, when it is sent,
 * gives the sender more than all before, so that the newest one leaves it a record to
 * say with that it has seen it. That is why there are none for records of a generation
 * whose end the sender was told.
 *
 * Either may lie about what it has received, and have changed its keys before: so that all
 * that comes to it is rejected, and the other one goes on. That is held against nobody: each
 * watches the other by the key that it has, which is late and no guess from then on, or has
 * it as a descriptor (driver/core/guard.c). Buffers grow each time that there are new ones, or
 * have been used since they shrank, so that nobody is given key after key.
 *
 * Buffers shrink to what they were at first when the receiver sees that they are not needed. It
 * goes on with the larger ones until the sender begins with the smaller, which it does as soon
 * as it can, with a record that has nothing in it: it may have nothing to send for hours.
 */
#ifndef H_STREAM_INTERNAL_H
#define H_STREAM_INTERNAL_H

#include <hamlyn/stream.h>

#include "manager/manager.h"

#define H_STREAM_MIN_BUFFERS	2
#define H_STREAM_MAX_BUFFERS	1024
#define H_STREAM_MIN_SIZE	128	/* the first record holds a seed */
#define H_STREAM_MAX_SIZE	(1u << 20)

/* ---- notes: metadata of records ---- */

#define H_NOTE_HELLO	(1u << 0)	/* the payload is the seed of the credits */
#define H_NOTE_FIN	(1u << 1)	/* the last record; no payload */
#define H_NOTE_START	(1u << 2)	/* first of a generation */
#define H_NOTE_EMPTY	(1u << 3)	/* a message without payload (channels) */
#define H_NOTE_FLAGS	(H_NOTE_HELLO | H_NOTE_FIN | H_NOTE_START | H_NOTE_EMPTY)

#define H_NOTE_BYTES	24
#define H_LABELLED_NOTE_BYTES	28	/* and the label of a request or reply (channels) */

/* A label: what it is, and the number of the request. Above the flags of h__stream_post(). */
#define H_LABEL_REPLY	(1u << 31)
#define H_LABEL_ID	(H_LABEL_REPLY - 1)	/* not 0 */
#define H_LABEL_SHIFT	32

struct h_note {
	uint32_t flags;
	uint32_t credits;	/* seen so far, see h__credit_count() */
	uint32_t number;	/* of this record, with H_NOTE_START; behind it 4 zero bytes */
	uint64_t more;		/* bytes of the same send still to come */
	bool labelled;		/* h__stream_label() */
};

/* ---- credits ---- */

#define H_CREDITS	4	/* buffers for them; one more is for the last */
#define H_CREDIT_BYTES	128

#define H_CREDIT_FIN	(1u << 0)	/* everything has arrived */
#define H_CREDIT_SEED	(1u << 1)	/* a seed follows: of larger buffers, */
#define H_CREDIT_SMALLER	(1u << 2)	/* or of smaller ones */

/* In the seed of the credits: the sender knows H_CREDIT_SMALLER. */
#define H_SEED_MAY_SHRINK	1

/* How many there were in each buffer: a byte of a word, modulo 256. */
static inline uint32_t h__credit_count(uint32_t counts, uint32_t index)
{
	uint32_t byte = 0xffu << 8 * index;

	return (counts & ~byte) | ((counts + (1u << 8 * index)) & byte);
}

/* released, flags; seed */
#define H_CREDIT_SHORT	8
#define H_CREDIT_LONG	(H_CREDIT_SHORT + H_SEED_BYTES)

/* A mutex with a deadline, or nothing where there is one thread. */
static inline int h__mutex_lock(const struct h_manager *m, uint32_t *mutex, int64_t deadline_ns)
{
	return h__single(m) ? 0 : h__lock_until(mutex, deadline_ns);
}

/* Nobody else has it. False also as h__lock_free(). */
static inline bool h__mutex_lock_free(const struct h_manager *m, uint32_t *mutex)
{
	if (h__single(m))
		return true;
	if (h__unlikely(!h__lock_free(mutex)))
		return false;
	h__lock_step(1);
	return true;
}

static inline void h__mutex_unlock(const struct h_manager *m, uint32_t *mutex)
{
	if (!h__single(m))
		h__unlock(mutex);
}

struct h_stream_receiver;

struct h_stream_sender {
	struct h_receiver r;		/* of credits */
	struct h_place credits;
	/* r.lock */
	uint32_t released;		/* records whose buffers are free again */
	uint32_t credits_seen;		/* counts */
	union {
		struct {
			bool gone;		/* the receiver is */
			bool broken;		/* it broke the rules */
			bool grows;		/* next is the next generation */
			bool unwatched;		/* a watch was refused: again later; sending */
		};
		uint32_t doubts;		/* all of them in one load; atomic */
	};
	bool finished;			/* it has everything */
	bool fixed;			/* there will not be one: by descriptors */
	bool wanted;			/* h__stream_want() */
	bool refused;			/* a send did not take everything, nobody was called */
	bool told;			/* of an error, by a call back */
	bool shrinks;			/* next is a generation of smaller buffers */
	struct h_seed next;
	/* sending */
	uint32_t sending;
	bool within;			/* the sending thread polls: what it relies on stays */
	uint32_t shrunk;		/* sent, when that was last */
	bool contended;			/* it was refused to somebody; atomic */
	struct h_ticket ticket;		/* of the generation's first buffer */
	struct h_ticket to;		/* of the last record's: its place alone changes */
	uint32_t at_once;		/* what fits a buffer, and with a note a request */
	uint32_t entries;
	uint32_t buffer;
	uint32_t most;			/* of it, that a record may have: whole_to() */
	uint32_t start;
	uint32_t sent;			/* written by who is sending, read by all */
	uint32_t generation;
	uint64_t waits;			/* for a free buffer; read by all */
	uint32_t credits_told;
	bool starts;			/* the next record is its first one */
	bool claims;			/* the seed came in ways of the application's */
	bool closed;			/* the last record was sent */
	struct h_watch *watch;
	/* What small sends collect in: two halves of one piece. */
	char *stage[2];
	int64_t stage_handle[2];
	bool stage_short[2];		/* the NIC was given all of it */
	uint32_t stage_room;		/* of each */
	uint32_t stage_size;		/* that a record of now may have of it */
	uint32_t stage_for;		/* what s->buffer was when there was a try; 0: none */
	size_t stage_grown;		/* of the manager's budget */
	uint32_t staged;
	bool flushing;			/* it is being sent: not again by polling there */
	struct h_debt debt;		/* staged, once h_manager_drain() has asked */
	int which;
	struct h_debt shed;		/* to do what was offered, and with less memory */
	uint32_t looked_sent;		/* sent, when it was looked at last; manager->lock */
	void (*unlock)(struct h_stream_sender *sender);	/* of whose it is, or NULL */
	void *owner;
	/* sending: take in what has come there, while there is no buffer to send to; or NULL */
	struct h_receiver *comes;
	void (*take_in)(struct h_stream_sender *sender);
	void (*ready)(struct h_stream_sender *sender, void *arg);
	void *ready_arg;
	int64_t held_by;		/* what has to leave before more is sent, or -1; atomic */
	struct h_debt room;		/* to say so when it has */
	int64_t fin_handle;		/* of the last record, until it has left, or -1 */
	struct h_leaving closing;	/* it is closed, and has not left */
};

/*
 * The parts of h_stream_sender_create(), for those who bring the seed of the credits
 * to the other end themselves. @slot_flags: HAMLYN_SLOT_TICKET_ONLY or 0; with it the
 * seed comes with the descriptor @fd, which remains the caller's; else -1.
 */
int h__stream_sender_prepare(struct h_manager *m, uint32_t slot_flags,
			     struct h_stream_sender **sender);
int h__stream_sender_attach(struct h_stream_sender *s,
			    const struct h_seed *seed, int fd);
/* The end of it, with whatever was not sent. */
int h__stream_sender_destroy(struct h_stream_sender *s);
void h__stream_sender_credits(const struct h_stream_sender *s,
			      struct h_seed *seed);

/* ---- stream_credit.c: what a sender is told ---- */

extern const struct h_receiver_class h__stream_sender_class;

/* Where credits arrive: from here on they may. */
int h__stream_credits_init(struct h_stream_sender *s, uint32_t slot_flags);
/* Send to the buffers of @seed from now on. @fd: descriptor that it came with, or -1. */
int h__stream_adopt(struct h_stream_sender *s, const struct h_seed *seed, int fd, bool smaller);
/* The same, of what the receiver has offered; -EPIPE if that makes no sense. */
int h__stream_take_next(struct h_stream_sender *s, bool smaller);
int h__stream_sender_unwatch(struct h_stream_sender *s);

/* ---- stream_send.c ---- */

/* Of h_stream_sender's @debt and @room, and for h__debts_collected_by(). */
int h__stream_pay_staged(struct h_debt *d);
int h__stream_look_for_room(struct h_debt *d);
struct h_debt *h__stream_collected(struct h_receiver *r);

/*
 * Lock sending, with a deadline. Whoever is refused it with -EAGAIN is to be told
 * when it could be tried again, by the thread that holds it.
 */
int h__sending_refused(struct h_stream_sender *s);
bool h__sending_contended(struct h_stream_sender *s);

static inline int h__sending_lock(struct h_stream_sender *s, int64_t deadline_ns)
{
	int err = h__mutex_lock(s->r.manager, &s->sending, deadline_ns);

	return h__likely(err != -EAGAIN) ? err : h__sending_refused(s);
}

/* True if somebody was refused it: then it is held still, to see to that. */
static inline bool h__sending_unlock(struct h_stream_sender *s)
{
	const struct h_manager *m = s->r.manager;

	if (h__single(m))
		return false;
	h__mutex_unlock(m, &s->sending);
	h__full_barrier_behind_atomic();			/* B15 */
	return h__unlikely(h__read_once(&s->contended)) && h__sending_contended(s);
}

/* The same, seen to as streams do. */
void h__stream_sent(struct h_stream_sender *s);

/*
 * What follows is for the thread that has locked sending.
 *
 * One record, with nothing collected before it. @flags: H_NOTE_*, and a label, shifted.
 * Returns a handle.
 */
int64_t h__stream_post(struct h_stream_sender *s, const void *data,
		       size_t length, uint64_t more, uint64_t flags,
		       int64_t deadline_ns);
/* Try again to watch the receiver, if that was refused. */
void h__stream_sender_watch(struct h_stream_sender *s);
/* Wait until there is a buffer to send to; then s->buffer is its size. */
int h__stream_wait_for_ticket(struct h_stream_sender *s, int64_t deadline_ns);
/* Say that everything was sent, and wait until it has arrived. Again and again. */
int h__stream_finish(struct h_stream_sender *s, int64_t deadline_ns);
/* Have on_ready called back while it can go on, until it is said not to be wanted. */
void h__stream_want(struct h_stream_sender *s, bool wanted);
/* The other end is gone, or broke the rules. */
static inline bool h__stream_failed(const struct h_stream_sender *s)
{
	return h__load_acquire(&s->gone) || h__read_once(&s->broken);
}

/* Records that can be sent before the next credit; of the thread that sends. */
static inline uint32_t h__stream_tickets(const struct h_stream_sender *s)
{
	uint32_t released = h__load_acquire(&s->released);

	if (h__unlikely((int32_t)(released - s->start) < 0))
		released = s->start;
	return s->entries - (s->sent - released);
}

/* Is there a buffer, and nothing else to be seen to? Then h__stream_wait_for_ticket() is 0. */
static inline bool h__stream_can_go(const struct h_stream_sender *s)
{
	return !h__load_acquire(&s->doubts) && h__stream_tickets(s);
}

/* ---- stream_shed.c: what is not needed ---- */

#define H_FIRST_QUIET	1
#define H_MOST_QUIET		31

/* For h__budget_unneeded_by(). */
struct h_debt *h__stream_unneeded(struct h_receiver *r, bool pressed);
/* Begin with what was offered to a sender. sending held; false: not now. */
bool h__stream_turn(struct h_stream_sender *s);
bool h__is_stream_sender(const struct h_receiver *r);
/* The chores of @shed. */
int h__shed_sender(struct h_debt *d);
int h__shed_receiver(struct h_debt *d);
/* The larger buffers of a receiver, if it is time, or smaller ones. */
void h__stream_shed(struct h_stream_receiver *r);

/* ---- stream_stage.c: what small sends collect in ---- */

/* Have the least that sending takes. */
int h__stage_reserve(struct h_stream_sender *s);
/* When nothing is sent any more. */
void h__stage_end(struct h_stream_sender *s);
/* Make it ready to be filled, with s->stage_size bytes: @want, or for now fewer. */
int h__stage_begin(struct h_stream_sender *s, size_t want, int64_t deadline_ns);
size_t h__stage_put(struct h_stream_sender *s, const void *data, size_t length);
/* Back to the least. False: not now. */
bool h__stage_shed(struct h_stream_sender *s);
/* Send what is in it, if anything is; and throw it away. */
int h__stage_flush(struct h_stream_sender *s, uint64_t more, uint64_t flags,
		   int64_t deadline_ns);
void h__stage_drop(struct h_stream_sender *s);

/* h_stream_arrival.here */
enum {
	H_ARRIVED = 1,		/* and nothing was done about it: there may be a gap before it */
	H_IN_ORDER,
	H_GIVEN_BACK,		/* before others that are older (channels) */
};

/* Of a record that has arrived. */
struct h_stream_arrival {
	uint32_t length;
	uint8_t here;		/* or 0 */
	uint8_t control;	/* for the library, not the application */
	uint64_t more;		/* and H_MORE_LABELLED */
};

#define H_MORE_LABELLED	(1ULL << 63)	/* more than anybody sends */

struct h_generation {
	struct h_place place;
	uint32_t entries;
	uint32_t buffer;
	uint32_t start;		/* its first record */
	uint32_t mask;		/* entries - 1 */
	uint32_t half;		/* of entries */
	uint32_t most;		/* that may be in use until the sender is told of each */
	bool started;		/* that is known */
	uint64_t key;
	size_t grown;		/* of the manager's budget */
	struct h_stream_arrival *arrivals;
};

struct h_stream_receiver {
	struct h_receiver r;
	/* r.lock */
	struct h_generation gen[2];	/* the older one first */
	unsigned int gens;
	unsigned int arriving;		/* which one high is of */
	uint32_t high;			/* all before have arrived */
	uint32_t last;			/* nothing from here on is taken, once gone */
	union {
		struct {
			uint32_t controls;	/* of those that are not released */
			uint32_t given_back;	/* the same, of those that were given back */
		};
		uint64_t out_of_turn;		/* either */
	};
	uint32_t ahead;			/* have arrived, and one before has not */
	uint32_t next;			/* to be handed out */
	uint32_t released;
	uint32_t credited;		/* what the sender was told of that */
	uint32_t credit_sent;		/* counts */
	uint32_t credit_seen;		/* counts, as the sender says */
	struct h_ticket credit;
	bool connected;			/* credit is known */
	union {
		struct {
			bool fin;
			bool gone;
			bool broken;
			bool none;		/* always false */
		};
		uint32_t over;			/* any of them */
	};
	union {
		struct {
			bool fin_due;		/* that the sender is to be told so */
			bool watch_due;
			bool unwatched;		/* a watch was refused: again later */
			bool grow_due;
			bool seed_due;		/* gen[1] is to be offered */
			bool late;		/* a credit found no room to go */
			bool nothing[2];	/* always false */
		};
		uint64_t dues;			/* any of them */
	};
	bool busy;			/* somebody does what is due, or begins its watch */
	int64_t retire_ns;		/* retire it not before */
	struct h_grace *grace;		/* before it is retired */
	struct h_leaving closing;	/* it is closed, and could not end yet */
	uint32_t max_buffer;
	uint64_t paid;			/* bytes that came since it grew last, or tried to */
	uint32_t slot_flags;
	bool messages;			/* records may be empty, pieces few */
	bool may_shrink;		/* the sender knows how to */
	bool offered;			/* smaller buffers, of the manager's count */
	bool old_due;			/* the larger ones may be nothing to the sender any more */
	uint32_t least;			/* bytes of a buffer: never smaller */
	uint32_t looked_high;		/* high and paid, when it was looked at last */
	uint64_t looked_paid;		/* modulo 2^64 */
	uint32_t quiet;			/* times in a row that no larger ones were needed */
	uint32_t patience;		/* so many are no reason */
	struct h_debt shed;		/* to offer smaller buffers, or end those that were */
	int64_t credit_handle;		/* of the last one; -1: none */
	struct h_watch *watch;
	struct h_watch *former;		/* has not ended yet */
	bool left;			/* of what was handed out: written with reading */
	/* h_stream_receive_copy() */
	uint32_t reading;
	struct h_record part;
	size_t part_done;
	void (*ready)(struct h_stream_receiver *receiver, void *arg);
	void *ready_arg;
};

/*
 * The parts of h_stream_receiver_create(), for those who bring the seed of the
 * credits from the other end themselves, as above.
 */
int h__stream_receiver_prepare(struct h_manager *m,
			       const struct h_stream_attr *attr,
			       uint32_t slot_flags,
			       struct h_stream_receiver **receiver);
int h__stream_receiver_attach(struct h_stream_receiver *r,
			      const struct h_seed *seed, int fd);

/* ---- stream_arrive.c ---- */

extern const struct h_receiver_class h__stream_class;

struct h_generation *h__generation_of_two(struct h_stream_receiver *r, uint32_t number);
enum h_need {
	H_NEEDED,		/* the first one */
	H_WISHED,		/* it does no harm that it fails */
	H_GROWN,		/* the same, and it is of the budget */
};

int h__generation_init(struct h_generation *g, struct h_receiver *r, uint32_t entries,
		       uint32_t buffer, enum h_need need);
int h__generation_exit(struct h_generation *g, struct h_receiver *r);
void h__generation_abandon(struct h_generation *g, struct h_receiver *r);
void h__generation_seed(const struct h_generation *g, struct h_seed *seed);

static inline struct h_generation *h__generation_of(struct h_stream_receiver *r,
						    uint32_t number)
{
	return h__likely(r->gens != 2) ? &r->gen[0] : h__generation_of_two(r, number);
}

/* Where a record begins. */
static inline char *h__generation_data(const struct h_generation *g, uint32_t index)
{
	return (char *)g->place.data.addr + (size_t)index * g->buffer;
}

static inline uint32_t h__generation_index(const struct h_generation *g,
					   uint32_t number)
{
	return (number - g->start) & g->mask;
}

static inline struct h_stream_arrival *h__stream_arrival(struct h_stream_receiver *r,
							 uint32_t number)
{
	struct h_generation *g = h__generation_of(r, number);

	return &g->arrivals[h__generation_index(g, number)];
}

/* The receiver is locked. */
void h__stream_pass_controls(struct h_stream_receiver *r);

static inline void h__stream_release_one(struct h_stream_receiver *r)
{
	struct h_generation *g = h__generation_of(r, r->released);
	uint32_t index = h__generation_index(g, r->released);

	r->controls -= g->arrivals[index].control;
	r->given_back -= g->arrivals[index].here == H_GIVEN_BACK;
	g->arrivals[index].here = 0;
	h__entry_arm(h__place_entry(&g->place, index));
	r->released++;
}

/* What is for the library only is free as soon as all before it is. */
static inline void h__stream_pass_control(struct h_stream_receiver *r)
{
	if (h__unlikely(r->controls))
		h__stream_pass_controls(r);
}

/* ---- stream_due.c: what a receiver owes its sender ---- */

#define H_SETTLE_NS		200000000LL	/* for the work queue to take the last words */

void h__stream_credit_fin(struct h_stream_receiver *r);
/* Say what is free now, or later, if there is no room for it. */
void h__stream_give_credit(struct h_stream_receiver *r, int64_t deadline_ns);
/* What was offered counts no more for the manager's budget. */
void h__stream_offer_over(struct h_stream_receiver *r);
int h__stream_end_watch(struct h_watch **watch);
/* Try again what could not be said to the sender. */
void h__stream_settle(struct h_receiver *r);

/* Where credits go, from a seed of them; and can the sender shrink? */
int h__credit_ticket(const struct h_seed *seed, struct h_ticket *ticket, bool *may_shrink);
/* What came counts no more for growing. Locked. */
static inline void h__stream_pay_anew(struct h_stream_receiver *r)
{
	r->looked_paid -= r->paid;
	r->paid = 0;
}

/* A generation of smaller buffers was offered. */
static inline bool h__stream_shrinks(const struct h_stream_receiver *r)
{
	return r->gens == 2 && r->gen[1].buffer < r->gen[0].buffer;
}

/* Let @t go by the descriptor: import it, if it is what the seed said. */
int h__ticket_adopt(struct h_manager *m, int fd, struct h_ticket *t);
void h__ticket_drop(struct h_manager *m, const struct h_ticket *t);

/* Destroy it whatever happens: it is gone although its slot may not be. */
int h__stream_receiver_end(struct h_stream_receiver *r);

/* As h_stream_receive(), and how much of the same send is still to come, as an arrival. */
int h__stream_next(struct h_stream_receiver *r, struct h_record *record,
		   uint64_t *more, int64_t deadline_ns);
/*
 * Credits go seldom, so that each is for many records, but before the sender runs out: when half
 * of the buffers are free and it does not know, or it has a quarter left. What has arrived tells
 * how many those are.
 */
static inline bool h__sender_is_to_know(const struct h_stream_receiver *r,
					const struct h_generation *g)
{
	return r->released - r->credited >= g->half || r->high - r->credited > g->most;
}

/* Is a watch held back, or not to be had in the time there was? Records go without one. */
static inline bool h__watch_comes_later(int err)
{
	return err == -EAGAIN || (err == -ETIMEDOUT && h__change_limited());
}

/* Locked. What is to be done when it is unlocked; 0: nothing, as two looks tell nearly always. */
unsigned int h__stream_look_closely(struct h_stream_receiver *r);
void h__stream_see_to(struct h_stream_receiver *r, unsigned int due);

static inline unsigned int h__stream_what_is_due(struct h_stream_receiver *r)
{
	return h__unlikely(r->dues || r->gens != 1 || h__sender_is_to_know(r, &r->gen[0])) ?
	       h__stream_look_closely(r) : 0;
}

/* If that found no room to go when the end was received. */
void h__stream_answer_end(struct h_stream_receiver *r, int64_t deadline_ns);

/* Whatever it is; a credit within this time. */
void h__stream_do_in_time(struct h_stream_receiver *r, int64_t deadline_ns);
/* The same for who has none. */
void h__stream_do_what_is_due(struct h_stream_receiver *r);

/*
 * The next record, if it is there, and all of a send, of @most bytes, without a label. If not,
 * ask h__stream_next(): nothing was done but to look at what has come.
 */
static inline __attribute__((always_inline)) bool
h__stream_next_plain(struct h_stream_receiver *r, uint64_t most, struct h_record *record)
{
	const struct h_generation *g = &r->gen[0];
	const struct h_stream_arrival *a;
	uint32_t number, index;
	bool plain, due = false;

	if (h__read_once(&r->next) == h__read_once(&r->high))
		h__manager_take(r->r.manager);
	h__receiver_lock(&r->r);
	number = r->next;
	index = h__generation_index(g, number);
	a = &g->arrivals[index];
	plain = h__likely(number != r->high && !r->controls && r->gens == 1) &&
		h__likely(!a->more && a->length <= most);
	if (h__likely(plain)) {
		record->data = h__generation_data(g, index);
		record->length = a->length;
		record->number = number;
		h__write_once(&r->next, number + 1);
		/* Nothing is free now that was not. */
		due = (r->dues || r->high - r->credited > g->most) &&
		      h__stream_look_closely(r);
	}
	h__receiver_unlock(&r->r);
	if (h__unlikely(due))
		h__stream_do_what_is_due(r);
	return plain;
}

/* Locked. */
int h__stream_give_back_any(struct h_stream_receiver *r, uint32_t number);

/* Locked. It is the oldest one, and there is nothing to be seen behind it: as nearly always. */
static inline bool h__stream_is_plain_oldest(const struct h_stream_receiver *r, uint32_t number)
{
	return number == r->released && number != r->next && !r->out_of_turn && r->gens == 1;
}

/*
 * Release a record before or behind others. -EALREADY if that was done before, or it was not
 * handed out.
 */
static inline __attribute__((always_inline)) int
h__stream_give_back(struct h_stream_receiver *r, uint32_t number)
{
	struct h_generation *g = &r->gen[0];
	unsigned int due;
	uint32_t index;
	int err = 0;

	h__receiver_lock(&r->r);
	if (h__likely(h__stream_is_plain_oldest(r, number))) {
		index = h__generation_index(g, number);
		g->arrivals[index].here = 0;
		h__entry_arm(h__place_entry(&g->place, index));
		r->released = number + 1;
	} else {
		err = h__stream_give_back_any(r, number);
	}
	due = h__stream_what_is_due(r);
	h__receiver_unlock(&r->r);
	if (h__unlikely(due))
		h__stream_see_to(r, due);
	return err;
}

/* Was a record handed out, and not given back? How many were? */
bool h__stream_holds(struct h_stream_receiver *r, uint32_t number);
uint32_t h__stream_held(struct h_stream_receiver *r);
/* Of a record that was not released, and is H_MORE_LABELLED: the other end's word. */
uint32_t h__stream_label(struct h_stream_receiver *r, uint32_t number);

/* Nothing will come any more; what came may not have been received yet. */
bool h__stream_is_over(struct h_stream_receiver *r);

/* Has it to be tried soon again to watch the sender? */
bool h__stream_unwatched(struct h_stream_receiver *r);
/* Try it again, if it was refused. */
void h__stream_receiver_watch(struct h_stream_receiver *r);

/* Is something left of what it gave, and still to be received? reading held. */
void h__stream_leave(struct h_stream_receiver *r, bool left);

#endif /* H_STREAM_INTERNAL_H */
