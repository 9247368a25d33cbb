// SPDX-License-Identifier: MIT
/*
 * Packets to other hosts. A bridge (hamlyn-bridge) carries them: a process of the same user, which
 * takes them out of a ring that each terminus has as soon as it needs one. So senders share no
 * lock, and one that is stopped, or killed, with a packet half written keeps nobody else's back.
 */
#include <linux/futex.h>
#include <limits.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "embedded/shm.h"

/* Whether the bridge lives costs a system call: not more often than that. */
#define LOOK_AT_BRIDGE_NS	(20ll * 1000000)
/* Longest sleep with a terminus, which keeps who rekeys a slot waiting (B8). */
#define NAP_NS			2000000
/* A bridge that is stopped takes nothing, and its peers do not notice. */
#define GIVE_UP_NS		(10ll * 1000000000)

static struct shm_dev *dev_of(const struct hml_nic *nic)
{
	return (struct shm_dev *)((uintptr_t)nic - offsetof(struct shm_dev, nic));
}

static struct shm_sender *sender_of(struct hml_sender *sender)
{
	return (struct shm_sender *)((char *)sender - offsetof(struct shm_sender, core.sender));
}

/* Its number, or SHM_MAX_PEERS. */
u32 h__shm_peer(const struct shm_segment *seg, u32 host)
{
	u32 i, n = shm_peers(seg);

	for (i = 0; i < n; i++)
		if (READ_ONCE(seg->bridge.peer[i].host) == host)
			return i;
	return SHM_MAX_PEERS;
}

/* NULL if there is none. Of a terminus that is held, so that it stays (B8), or by the bridge. */
struct shm_ring *h__shm_ring(const struct shm_dev *shm, u32 terminus)
{
	u32 area = smp_load_acquire(&shm->seg->termini[terminus].ring) - 1;	/* B21 */
	u64 first;

	if (area >= SHM_MAX_AREAS)
		return NULL;
	first = READ_ONCE(shm->seg->areas[area].first);
	/* Others' words are no reason to write elsewhere. */
	if (first < shm->data_first || first > shm->pages - SHM_RING_PAGES)
		return NULL;
	return (void *)((char *)shm->seg + first * SHM_PAGE);
}

hml_path_t h__shm_far_route(const struct hml_nic *nic, u32 host)
{
	struct shm_dev *shm = dev_of(nic);

	return h__shm_peer(shm->seg, host) < SHM_MAX_PEERS ? &shm->far : HML_PATH_NONE;
}

/* What there is for the bridge is there (B21). */
void h__shm_bell(struct shm_segment *seg)
{
	u32 *asleep = &seg->bridge.asleep;

	smp_mb();						/* B21 */
	if (READ_ONCE(*asleep) && __atomic_exchange_n(asleep, 0, __ATOMIC_ACQ_REL))
		syscall(SYS_futex, asleep, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void ring_bell(struct shm_segment *seg, u32 terminus)
{
	/* The bit behind the tail: who clears it looks at that afterwards. */
	__atomic_fetch_or(&seg->bridge.rung[terminus / 64], 1ull << terminus % 64,
			  __ATOMIC_SEQ_CST);			/* B21 */
	/* Without order: it says where to run, and nothing hangs on it. */
	if (READ_ONCE(seg->bridge.asleep))
		WRITE_ONCE(seg->bridge.waker, (u32)sched_getcpu() + 1);
	h__shm_bell(seg);
}

/* ---- putting in ---- */

static u64 room(const struct shm_ring *ring, u64 tail)
{
	u64 used = tail - smp_load_acquire(&ring->head);	/* B21: before it is used again */

	return used <= SHM_RING_BYTES ? SHM_RING_BYTES - used : 0;
}

static void read_pieces(const struct shm_dev *shm, u8 *to, const struct hml_payload *payload,
			u32 n)
{
	const struct hml_piece *p = payload->piece;
	u64 skip = payload->skip;

	while (n) {
		u64 there = p->length - skip;
		u32 part = there < n ? (u32)there : n;

		memcpy(to, hml_mem_at(&shm->nic.port, p->mem, p->offset + skip), part);
		to += part;
		n -= part;
		skip = 0;
		p++;
	}
}

static void fill(const struct shm_dev *shm, struct shm_ring_packet *p,
		 const struct hamlyn_packet *h, const struct hml_payload *payload)
{
	u8 *to = (u8 *)(p + 1);

	p->reserved = 0;
	p->h = *h;
	if (h->meta_length)
		memcpy(to, payload->meta, h->meta_length);
	to += h->meta_length;
	if (payload->piece)
		read_pieces(shm, to, payload, h->length);
	else if (h->length)
		memcpy(to, payload->flat, h->length);
}

static u32 bytes_of(const struct hamlyn_packet *h)
{
	u32 n = (u32)sizeof(struct shm_ring_packet) + h->meta_length + h->length;

	return (n + SHM_RING_ALIGN - 1) & ~(SHM_RING_ALIGN - 1u);
}

static struct shm_ring_packet *packet_at(struct shm_ring *ring, u64 at)
{
	return (void *)(ring->bytes + at % SHM_RING_BYTES);
}

/*
 * A packet lies in one piece: what is left of the ring behind the last one that fits is left out.
 */
static bool put(struct shm_sender *s, struct shm_ring *ring, const struct hamlyn_packet *h,
		const struct hml_payload *payload, u32 peer, u32 state)
{
	u64 tail = READ_ONCE(ring->tail) & ~(SHM_RING_ALIGN - 1ull);
	u32 bytes = bytes_of(h), left = (u32)(SHM_RING_BYTES - tail % SHM_RING_BYTES);
	u32 skip = left < bytes ? left : 0;
	u32 least = s->far_room > bytes ? s->far_room : bytes;
	struct shm_ring_packet *p;

	/* Of several packets, another one may be that which does not fit, and is no longer. */
	if (!skip && least > left)
		least += bytes;

	if (room(ring, tail) < (u64)least + skip)
		return false;
	if (skip) {
		p = packet_at(ring, tail);
		p->bytes = skip;
		p->peer = SHM_MAX_PEERS;
		tail += skip;
	}
	p = packet_at(ring, tail);
	p->bytes = bytes;
	p->peer = peer;
	p->state = state;
	fill(s->shm, p, h, payload);
	smp_store_release(&ring->tail, tail + bytes);		/* B21: behind the packet */
	return true;
}

/* In a section. False: not now, see h__shm_far_again() and h__shm_far_wait(). */
bool h__shm_far_xmit(const struct hamlyn_packet *h, const struct hml_payload *payload,
		     struct hml_sender *sender)
{
	struct shm_sender *s = sender_of(sender);
	struct shm_segment *seg = s->shm->seg;
	u32 terminus = (u32)(s->record - seg->termini);
	u32 peer = h__shm_peer(seg, h->host), state = 0;
	struct shm_ring *ring;

	if (peer < SHM_MAX_PEERS)
		state = READ_ONCE(seg->bridge.peer[peer].state);
	if (!shm_peer_up(state)) {
		sender->stats->rejects[HAMLYN_REJECT_DOWN]++;
		return true;
	}
	ring = h__shm_ring(s->shm, terminus);
	s->far_new = !ring;
	if (!ring || !put(s, ring, h, payload, peer, state))
		return false;
	ring_bell(seg, terminus);
	return true;
}

/* ---- no room ---- */

/* What a bridge that is dead has left is for others to end. */
static void look_at_bridge(struct h_dev *dev, struct shm_sender *s)
{
	u32 owner = READ_ONCE(s->shm->seg->bridge.owner);
	int64_t now = h__now_ns();

	if (now - s->far_looked_ns < LOOK_AT_BRIDGE_NS)
		return;
	s->far_looked_ns = now;
	if (owner > SHM_MAX_ATTACH || (owner && h__shm_alive(dev, owner - 1)) ||
	    !h__try_lock(&dev->lock))
		return;
	if (!h__shm_trylock(dev)) {
		h__shm_reclaim_dead(dev);
		h__shm_unlock(dev);
	}
	h__unlock(&dev->lock);
}

static int lock_and_make(struct h_terminus *t)
{
	int err = h__shm_lock(t->dev);

	if (err)
		return err;
	err = h__shm_make_ring(t->dev, t->id);
	h__shm_unlock(t->dev);
	return err;
}

/* As where there is no room: it is for who sends to try again. */
static int make_ring(struct h_terminus *t)
{
	struct h_change_limit before = h__change_limit(H_NOWAIT);
	int err = h__dev_lock(t->dev);

	if (!err) {
		err = lock_and_make(t);
		h__unlock(&t->dev->lock);
	}
	h__change_restore(before);
	return err;
}

/* The terminus is not held. Return: 0: try again at once, or why not. */
int h__shm_far_again(struct h_terminus *t)
{
	struct shm_sender *s = t->priv;

	if (s->far_new)
		return make_ring(t);
	look_at_bridge(t->dev, s);
	return -EAGAIN;
}

static bool has_room(const struct shm_sender *s, u32 terminus)
{
	const struct shm_ring *ring = h__shm_ring(s->shm, terminus);

	/* None: it went with the bridge, and what is sent is lost. */
	return !ring || room(ring, READ_ONCE(ring->tail)) >= 2 * (SHM_PACKET_SIZE + 256);
}

/*
 * Within a message: wait until the bridge has taken something. Terminus held.
 *
 * Return: false if it takes nothing for too long.
 */
bool h__shm_far_wait(struct h_terminus *t)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	struct shm_sender *s = t->priv;
	u32 *waits = &s->record->waits;
	int64_t give_up = h__now_ns() + GIVE_UP_NS, until = h__sends_until();

	if (until && until < give_up)
		give_up = until;
	while (!has_room(s, t->id)) {
		if (h__now_ns() > give_up)
			return false;
		WRITE_ONCE(*waits, 1);
		smp_mb();					/* B21 */
		if (!has_room(s, t->id))
			syscall(SYS_futex, waits, FUTEX_WAIT, 1, &nap, NULL, 0);
		/* Whoever waits for those who are inside does not wait for us. */
		smp_store_release(&s->record->hold, s->record->hold + 2);	/* B8 */
		smp_mb();
		look_at_bridge(t->dev, s);
	}
	return true;
}
