// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sender: takes packets out of the rings of the segment's termini, turn by turn, and gives them
 * to the sockets. It also sees which watches there are on other hosts' slots, and tells those.
 * It waits for nobody: neither for a lock of the segment, nor for a socket.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bridge.h"

#define TURN_BYTES	(64u << 10)	/* of one terminus */
#define WORDS		(SHM_MAX_TERMINI / 64)
#define LOOK_AROUND_NS	(250 * NS_PER_MS)	/* for what the dead have left */

/* A watch of ours: what the peer knows of it. */
struct announced {
	u32 generation;
	u32 wire;
	u32 peer;		/* number + 1; 0: nothing */
	u32 peer_state;
};

struct sender {
	pthread_t thread;
	u64 active[WORDS];	/* there may be something in the ring */
	u32 first;		/* whose turn it is */
	u32 watches;		/* as counted in the segment, when we last looked */
	u32 next_wire;
	struct place place;
	pthread_mutex_t lock;	/* of what follows */
	struct announced announced[SHM_MAX_WATCHES];
};

void sender_work(struct bridge *b)
{
	atomic_store(&b->work, true);
	h__shm_bell(b->seg);
}

/* ---- packets ---- */

/* Whatever others have written there: it is looked at once, and lies in the ring. */
static bool makes_sense(const struct shm_ring_packet *c, u64 head, u64 left)
{
	u64 at = head % SHM_RING_BYTES;

	if (!c->bytes || c->bytes % SHM_RING_ALIGN || c->bytes > left ||
	    c->bytes > SHM_RING_BYTES - at)
		return false;
	return c->peer == SHM_MAX_PEERS ||
	       (c->bytes >= sizeof(*c) && c->h.length <= SHM_PACKET_SIZE &&
		c->h.meta_length <= HAMLYN_MAX_METADATA &&
		sizeof(*c) + c->h.meta_length + c->h.length <= c->bytes);
}

/* One packet. Return: its bytes in the ring; 0: not now. */
static u32 take_packet(struct bridge *b, const struct shm_ring *ring, u64 head, u64 left,
		       u32 terminus)
{
	const u8 *at = ring->bytes + head % SHM_RING_BYTES;
	struct shm_ring_packet c;
	struct peer *p;

	/* What is left out may be shorter than a packet's header. */
	memset(&c, 0, sizeof(c));
	memcpy(&c, at, SHM_RING_BYTES - head % SHM_RING_BYTES < sizeof(c) ? SHM_RING_ALIGN :
	       sizeof(c));
	if (!makes_sense(&c, head, left))
		return (u32)left;
	p = peer_of(b, c.peer);
	if (p && outbox_put(p, &c, at + sizeof(c), terminus + 1) == PUT_FULL)
		return 0;
	return c.bytes;
}

static void wake_waiting(struct shm_terminus *t, u64 used)
{
	u32 *waits = &t->waits;

	smp_mb();						/* B21 */
	if (READ_ONCE(*waits) && used <= SHM_RING_BYTES / 2 &&
	    __atomic_exchange_n(waits, 0, __ATOMIC_ACQ_REL))
		syscall(SYS_futex, waits, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* The turn of a terminus. Return: bytes taken. */
static u64 drain(struct bridge *b, u32 terminus)
{
	struct shm_ring *ring = h__shm_ring(b->shm, terminus);
	u64 head, tail, begun;
	u32 n = 1;

	b->sender->active[terminus / 64] &= ~(1ull << terminus % 64);
	if (!ring)
		return 0;
	head = READ_ONCE(ring->head) & ~(SHM_RING_ALIGN - 1ull);
	tail = smp_load_acquire(&ring->tail);			/* B21: before the packets */
	begun = head;
	if (tail - head > SHM_RING_BYTES || tail % SHM_RING_ALIGN)
		head = tail;
	while (head != tail && n && head - begun < TURN_BYTES) {
		n = take_packet(b, ring, head, tail - head, terminus);
		head += n;
	}
	if (head != tail)
		b->sender->active[terminus / 64] |= 1ull << terminus % 64;
	if (head != begun) {
		smp_store_release(&ring->head, head);		/* B21: behind the reads */
		wake_waiting(&b->seg->termini[terminus], tail - head);
	}
	return head - begun;
}

/* Cleared before the rings are looked at (B21). */
static void take_bells(struct bridge *b)
{
	u32 i;

	for (i = 0; i < WORDS; i++)
		if (READ_ONCE(b->seg->bridge.rung[i]))
			b->sender->active[i] |= __atomic_exchange_n(&b->seg->bridge.rung[i], 0,
								    __ATOMIC_SEQ_CST);
}

static bool is_active(const struct sender *s, u32 terminus)
{
	return s->active[terminus / 64] >> terminus % 64 & 1;
}

/* Each has one turn, and another one begins next time. Return: whether anything moved. */
static bool drain_all(struct bridge *b)
{
	struct sender *s = b->sender;
	u32 first = s->first, i;
	bool any = false;

	for (i = 0; i < SHM_MAX_TERMINI; i++) {
		u32 t = (first + i) % SHM_MAX_TERMINI;

		if (!s->active[t / 64]) {
			i += 63 - t % 64;
			continue;
		}
		if (!is_active(s, t))
			continue;
		if (!any)
			s->first = (t + 1) % SHM_MAX_TERMINI;
		any |= drain(b, t) != 0;
	}
	return any;
}

static bool flush_all(struct bridge *b)
{
	bool any = false;
	u32 i;

	for (i = 0; i < b->peer_count; i++)
		any |= outbox_flush(&b->peers[i]);
	return any;
}

/* ---- watches of ours ---- */

struct seen {
	bool armed;
	u32 generation;
	u32 peer;
	u32 peer_state;
	struct hml_wire_watch watch;
};

/* It may be made or ended meanwhile: then its state is another one afterwards. */
static bool look_at(const struct shm_watch *w, struct seen *s)
{
	u32 state = smp_load_acquire(&w->state);	/* before what it is about */
	u32 owner = smp_load_acquire(&w->owner);	/* before the same */

	*s = (struct seen) {
		.armed = owner && !(state & SHM_WATCH_STATE) && READ_ONCE(w->peer) &&
			 !READ_ONCE(w->void_),
		.generation = state / (SHM_WATCH_STATE + 1),
		.peer = READ_ONCE(w->peer),
		.peer_state = READ_ONCE(w->peer_state),
		.watch = {
			.key = READ_ONCE(w->key),
			.flags = READ_ONCE(w->flags) & (HAMLYN_WATCH_TICKET | HAMLYN_WATCH_CLAIM),
			.slot = READ_ONCE(w->slot),
			.meta_index = READ_ONCE(w->meta_index),
			.user = (u32)getuid(),
		},
	};
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return READ_ONCE(w->state) == state && READ_ONCE(w->owner) == owner;
}

static void note(struct bridge *b, u32 number, u32 peer_state, const struct note *n)
{
	struct peer *p = peer_of(b, number);

	if (p)
		outbox_note(p, peer_state, n);
}

static void take_back(struct bridge *b, struct announced *a)
{
	const struct note n = { .type = HML_WIRE_UNWATCH, .watch.id = a->wire };

	note(b, a->peer - 1, a->peer_state, &n);
	a->peer = 0;
}

/*
 * The number that the peer knows it by has the record's in it, and comes again after 2^18 others:
 * a report of one that has ended is taken for no other.
 */
static void announce(struct bridge *b, u32 i, struct announced *a, const struct seen *s)
{
	struct note n = { .type = HML_WIRE_WATCH, .watch = s->watch };

	*a = (struct announced) {
		.generation = s->generation,
		.wire = b->sender->next_wire++ * SHM_MAX_WATCHES + i,
		.peer = s->peer,
		.peer_state = s->peer_state,
	};
	n.watch.id = a->wire;
	note(b, s->peer - 1, s->peer_state, &n);
}

static void look_at_watches(struct bridge *b)
{
	struct sender *s = b->sender;
	u32 i, end;
	struct seen seen;

	/* First: what is made meanwhile is counted behind that. */
	s->watches = READ_ONCE(b->seg->bridge.watches);
	smp_mb();	/* the count before the table */
	end = shm_watch_end(b->seg);
	pthread_mutex_lock(&s->lock);
	for (i = 0; i < end; i++) {
		struct announced *a = &s->announced[i];

		if (!look_at(&b->seg->watches[i], &seen))
			continue;
		if (a->peer && !(seen.armed && a->generation == seen.generation))
			take_back(b, a);
		if (!a->peer && seen.armed)
			announce(b, i, a, &seen);
	}
	pthread_mutex_unlock(&s->lock);
}

u32 sender_watch(struct bridge *b, u32 number, u32 wire, u32 *generation)
{
	u32 i = wire % SHM_MAX_WATCHES;
	struct sender *s = b->sender;
	const struct announced *a = &s->announced[i];

	pthread_mutex_lock(&s->lock);
	if (a->peer != number + 1 || a->wire != wire)
		i = SHM_MAX_WATCHES;
	*generation = a->generation;
	pthread_mutex_unlock(&s->lock);
	return i;
}

/* ---- now and then ---- */

/* A ring whose terminus is gone, and that is empty. Tables locked. */
static void free_ring(struct bridge *b, u32 terminus)
{
	struct shm_terminus *t = &b->seg->termini[terminus];
	struct shm_ring *ring = h__shm_ring(b->shm, terminus);
	u32 area = READ_ONCE(t->ring) - 1;

	if (t->owner || !ring || READ_ONCE(ring->tail) != READ_ONCE(ring->head))
		return;
	WRITE_ONCE(t->ring, 0);
	h__shm_free(b->shm, area);
}

static void free_rings(struct bridge *b)
{
	u32 i;

	if (!h__try_lock(&b->dev->lock))
		return;
	if (!h__shm_trylock(b->dev)) {
		for (i = 0; i < SHM_MAX_TERMINI; i++)
			if (READ_ONCE(b->seg->termini[i].ring))
				free_ring(b, i);
		h__shm_unlock(b->dev);
	}
	h__unlock(&b->dev->lock);
}

/* A sender may have died behind its packet, and before the bell. */
static void look_around(struct bridge *b)
{
	u32 i;

	for (i = 0; i < SHM_MAX_TERMINI; i++)
		if (READ_ONCE(b->seg->termini[i].ring))
			b->sender->active[i / 64] |= 1ull << i % 64;
	look_at_watches(b);
	free_rings(b);
	for (i = 0; i < b->peer_count; i++)
		peer_count(&b->peers[i]);
}

static bool has_bells(const struct bridge *b)
{
	u32 i;

	for (i = 0; i < WORDS; i++)
		if (READ_ONCE(b->seg->bridge.rung[i]))
			return true;
	return false;
}

/* Whoever rang says so; any number may be there. */
static void follow_waker(struct bridge *b)
{
	u32 waker = __atomic_exchange_n(&b->seg->bridge.waker, 0, __ATOMIC_RELAXED);

	if (waker)
		place_follow(&b->sender->place, waker - 1);
}

static void sleep_until_bell(struct bridge *b)
{
	const struct timespec t = { .tv_nsec = LOOK_AROUND_NS };
	u32 *asleep = &b->seg->bridge.asleep;

	WRITE_ONCE(*asleep, 1);
	smp_mb();						/* B21 */
	if (!has_bells(b) && !atomic_load(&b->work) && !atomic_load(&b->stop))
		syscall(SYS_futex, asleep, FUTEX_WAIT, 1, &t, NULL, 0);
	WRITE_ONCE(*asleep, 0);
}

static void *run(void *arg)
{
	struct bridge *b = arg;
	int64_t looked = 0, now;
	bool moved;

	while (!atomic_load(&b->stop)) {
		now = h__now_ns();
		if (now - looked >= LOOK_AROUND_NS) {
			looked = now;
			look_around(b);
		}
		atomic_store(&b->work, false);
		take_bells(b);
		if (READ_ONCE(b->seg->bridge.watches) != b->sender->watches)
			look_at_watches(b);
		moved = drain_all(b);
		moved |= flush_all(b);
		if (!moved) {
			follow_waker(b);
			sleep_until_bell(b);
		}
	}
	return NULL;
}

int sender_start(struct bridge *b)
{
	struct sender *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	b->sender = s;
	pthread_mutex_init(&s->lock, NULL);
	return -pthread_create(&s->thread, NULL, run, b);
}

void sender_stop(struct bridge *b)
{
	h__shm_bell(b->seg);
	pthread_join(b->sender->thread, NULL);
	free(b->sender);
}
