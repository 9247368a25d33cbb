// SPDX-License-Identifier: MIT
/*
 * Sending on the embedded device: the NIC core runs in the sender. It is
 * compiled into this file, so that the compiler sees the whole path.
 */
#if defined(__GNUC__) && !defined(__clang__)
/*
 * Words that it gathers into vectors are taken apart again a line below, and
 * what it computes once for several uses is for the rare ones: 13 instructions
 * of a short message.
 */
#pragma GCC optimize("no-tree-slp-vectorize", "no-gcse")
#endif

#include <linux/futex.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "embedded/shm.h"

/* Other hosts are behind a bridge: asked for only where a packet leaves the segment. */
#undef HML_PORT_STALLS
#define HML_PORT_STALLS	1
#undef hml_port_route
#define hml_port_route	route
#undef hml_port_direct
#define hml_port_direct	is_direct
#undef hml_port_xmit
#define hml_port_xmit	hand_over

static __always_inline hml_path_t route(struct hml_nic *nic, u32 to)
{
	return likely(to == nic->host) ? nic : h__shm_far_route(nic, to);
}

static __always_inline bool is_direct(const struct hml_nic *from, hml_path_t path)
{
	return hml_link_up(from) && path == from;
}

static __always_inline bool hand_over(struct hml_nic *from, hml_path_t path,
				      const struct hamlyn_packet *h,
				      const struct hml_payload *payload,
				      struct hml_sender *sender)
{
	if (path != from)
		return h__shm_far_xmit(h, payload, sender);
	hml_tx_local(from, path, h, payload, sender);
	return true;
}

#include "guard.c"
#include "link.c"
#include "notify.c"
#include "rx.c"
#include "tx.c"

noinline void hml_port_nq_wake(const struct hml_port *port, struct hml_nq *nq)
{
	(void)port;
	/* The one who clears it wakes: one system call for each sleep. */
	if (__atomic_exchange_n(&nq->armed, 0, __ATOMIC_ACQ_REL))
		syscall(SYS_futex, &nq->armed, FUTEX_WAKE, INT_MAX, NULL, NULL,
			0);
}

void hml_port_rejected(struct hml_nic *nic, const struct hml_slot *slot,
		       const struct hamlyn_packet *h, int reason,
		       const struct hml_sender *sender)
{
	struct hamlyn_audit_entry e = {
		.offset = h->offset,
		.length = h->length,
		.slot = h->slot,
		.reason = (u32)reason,
		.source = h->source,
		.pid = sender->pid,
		.uid = sender->uid,
	};

	h__shm_audit_add(nic, slot, e);
}

/* Only we write it. One instruction: release, and whole, for whoever reads it. */
static __always_inline void step(u32 *word, u32 by)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile("addl %1, %0" : "+m"(*word) : "ri"(by) : "memory");
#else
	smp_store_release(word, READ_ONCE(*word) + by);	/* B8 */
	hml_barrier();
#endif
}

/* Full barrier: whoever replaced a key sees us, or we see the new key (B8). */
static __always_inline bool try_hold(struct shm_terminus *r)
{
	u32 hold = READ_ONCE(r->hold);

	return likely(!(hold & 1)) &&
	       likely(hml_atomic_cmpxchg(&r->hold, hold, hold + 1) == hold);
}

/* Another thread sends. Which one the segment does not say, for others could lie. */
static noinline bool hold_soon(struct shm_terminus *r)
{
	struct h_wait wait = { 0 };

	while (!try_hold(r))
		if (h__wait_to_send(&wait))
			return false;
	return true;
}

/* False: it was another thread's for too long. */
static __always_inline bool enter(struct shm_sender *s)
{
	if (likely(s->alone)) {
		step(&s->record->hold, 1);	/* B8: h__shm_fence() */
		return true;
	}
	return hold_soon(s->record);
}

static __always_inline void leave(struct shm_sender *s)
{
	step(&s->record->hold, 1);				/* B8 */
}

void h__shm_hold(struct shm_sender *s)
{
	struct h_wait wait = { 0 };

	if (s->alone)
		enter(s);
	else
		while (!try_hold(s->record))
			h__wait_more(&wait, H_FOREVER);
}

void h__shm_release(struct shm_sender *s)
{
	leave(s);
}

/*
 * Between two packets of a message: who replaced a key need not wait for the
 * rest of it, for the next packet sees the new one. Still held.
 */
static void between_packets(struct shm_sender *s)
{
	step(&s->record->hold, 2);				/* B8 */
	if (!s->alone)
		smp_mb();					/* B8 */
}

/* Statuses are read only once there was a failure. */
static noinline void note_status(struct h_terminus *t, u32 handle, int err)
{
	s32 *status = (s32 *)(t->status + 1) + (handle & t->mask);

	if (*status != err)
		smp_store_release(status, err);			/* B6 */
	if (err)
		WRITE_ONCE(t->status->failed,
			   hml_failed_next(t->status->failed));
}

static __always_inline void post_status(struct h_terminus *t, u32 handle, int err)
{
	struct hamlyn_terminus_status *status = t->status;

	WRITE_ONCE(t->producer, handle + 1);
	if (unlikely(err) || unlikely(status->failed))
		note_status(t, handle, err);
	smp_store_release(&status->completed, handle + 1);	/* B6 */
}

static noinline bool paused(struct shm_sender *s)
{
	return hml_guard_paused(&s->shm->nic, &s->core.sender.guard);
}

/* Terminus held: is it to wait, because it guessed keys? */
static inline bool held_back(struct shm_sender *s)
{
	return unlikely(s->core.sender.guard.until) && paused(s);
}

/*
 * Messages that fit the receiver's own cache, and come one at a time: their old
 * lines are there, and taking each from it costs more than the message. Written
 * past the caches they arrive in two thirds of the time. In a stream, where the
 * next one does not wait for an answer, they would have half of the bandwidth.
 */
#define PAST_CACHES_MIN	(32u << 10)
#define PAST_CACHES_MAX	(256u << 10)

static u64 ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

static u64 choose_copy(const struct shm_sender *s, u64 length)
{
	u64 now = ticks();

	hml_past_caches = length <= PAST_CACHES_MAX &&
			  now - s->long_end > s->long_took;
	return now;
}

static void note_copy(struct shm_sender *s, u64 begin)
{
	s->long_end = ticks();
	s->long_took = s->long_end - begin;
	hml_past_caches = false;
}

/* A packet of another host's was not taken. Terminus let go: the segment may have to be locked. */
#define H_FAR_AGAIN	INT64_MIN

static noinline int64_t not_now(struct h_terminus *t)
{
	struct shm_sender *s = t->priv;
	int err;

	WRITE_ONCE(s->core.stalled, false);
	err = h__shm_far_again(t);
	return err ? err : H_FAR_AGAIN;
}

/*
 * Of a message to another host a packet was not taken. Before the first one the message can
 * still be refused. Behind it there is no way back: we wait for room, with the terminus, but
 * nobody waits for us (B8). Return: 0: try again.
 */
static noinline int stalled(struct h_terminus *t, u64 length)
{
	struct shm_sender *s = t->priv;
	struct hml_terminus *core = &s->core;

	WRITE_ONCE(core->stalled, false);
	if (core->message.left != length) {
		/* No ring: there was another bridge meanwhile. */
		if (!s->far_new && h__shm_far_wait(t))
			return 0;
		WRITE_ONCE(core->busy, false);
		return -ECANCELED;
	}
	WRITE_ONCE(core->busy, false);
	return HML_TX_NOT_NOW;
}

/* Bytes that a message takes in a ring of packets to another host, if it is not too long. */
static u32 least_room(u64 length)
{
	u64 packets = length / SHM_PACKET_SIZE + 1;
	u64 bytes = length + packets * (sizeof(struct shm_ring_packet) + SHM_RING_ALIGN);
	u64 most = SHM_RING_BYTES - 2 * SHM_PACKET_SIZE;

	_Static_assert(H_EMBEDDED_AT_ONCE + (H_EMBEDDED_AT_ONCE / SHM_PACKET_SIZE + 1) *
		       (sizeof(struct shm_ring_packet) + SHM_RING_ALIGN) <=
		       SHM_RING_BYTES - 2 * SHM_PACKET_SIZE, "it has room as a whole");
	return (u32)(bytes < most ? bytes : most);
}

static __always_inline int send_packets(struct h_terminus *t, u64 length)
{
	struct shm_sender *s = t->priv;
	struct hml_terminus *core = &s->core;
	int err = 0;

	s->far_room = length > SHM_PACKET_SIZE ? least_room(length) : 0;
	for (;;) {
		hml_tx_packet(s->nic, core);
		if (unlikely(core->stalled))
			err = stalled(t, length);
		else
			s->far_room = 0;
		if (!core->busy)
			return err;
		between_packets(s);
	}
}

static int64_t try_transmit(struct h_terminus *t, struct hamlyn_trb *trb,
			    const void *meta, const void *tail, u64 tail_size)
{
	struct shm_sender *s = t->priv;
	struct hml_terminus *core = &s->core;
	struct hml_nic *nic = s->nic;
	bool is_long = trb->length >= PAST_CACHES_MIN;
	u64 begin = 0;
	u32 handle;
	int err;

	if (unlikely(!enter(s)))
		return -EAGAIN;
	if (unlikely(held_back(s))) {
		leave(s);
		return -EAGAIN;
	}
	handle = t->producer;
	if (is_long)
		begin = choose_copy(s, trb->length);
	err = hml_tx_begin(nic, core, trb, meta, tail, tail_size);
	if (likely(!err))
		err = send_packets(t, trb->length);
	if (is_long)
		note_copy(s, begin);
	if (unlikely(err)) {
		if (err == HML_TX_NOT_NOW) {
			leave(s);
			return not_now(t);
		}
		core->sender.stats->failed++;
	}
	post_status(t, handle, err);
	leave(s);
	return handle;
}

static int64_t transmit(struct h_terminus *t, struct hamlyn_trb *trb,
			const void *meta, const void *tail, u64 tail_size)
{
	struct hamlyn_trb copy = *trb;
	int64_t handle = try_transmit(t, trb, meta, tail, tail_size);

	/* Host and slot may have come from a ticket meanwhile, but that is the same. */
	while (unlikely(handle == H_FAR_AGAIN)) {
		*trb = copy;
		handle = try_transmit(t, trb, meta, tail, tail_size);
	}
	return handle;
}

/*
 * To another host: the general way. Terminus held. Asked first, while all that this needs is still
 * in registers; and what follows knows that the host is this one.
 */
static noinline int64_t send_far(struct h_terminus *t, const struct h_ticket *k, u64 word,
				 u64 length, u16 meta_length, u32 flags, const void *meta,
				 const void *data)
{
	struct hamlyn_trb trb = {
		.host = k->host,
		.slot = k->slot,
		.key = k->key,
		.offset = k->base,
		.meta_index = k->meta_index,
		.word = word,
		.length = length,
		.meta_length = meta_length,
		.flags = flags,
	};

	leave(t->priv);
	return transmit(t, &trb, meta, data, length);
}

/*
 * All of a message that is a single packet, in one piece of code. The request
 * lacks only what is the ticket's, which is read late: there are few registers.
 */
static __always_inline int64_t send_flat(struct h_terminus *t,
					 const struct h_ticket *k,
					 struct hamlyn_trb trb,
					 const void *meta, const void *data)
{
	struct shm_sender *s = t->priv;
	u32 handle;
	int err;

	if (unlikely(!enter(s)))
		return -EAGAIN;
	if (unlikely(held_back(s))) {
		leave(s);
		return -EAGAIN;
	}
	if (unlikely(k->host != s->nic->host))
		return send_far(t, k, trb.word, trb.length, trb.meta_length, trb.flags,
				meta, data);
	/* An entry never holds more than a packet. */
	if (s->nic->packet_size < SHM_MAX_ENTRY_SIZE)
		__builtin_unreachable();
	trb.host = k->host;
	trb.slot = k->slot;
	trb.key = k->key;
	trb.offset = k->base;
	trb.meta_index = k->meta_index;
	err = hml_tx_flat(s->nic, &s->core, &trb, meta, data);
	if (unlikely(err)) {
		/* Nothing in the segment says so. */
		if (err == HML_TX_NOT_NOW)
			__builtin_unreachable();
		s->core.sender.stats->failed++;
	}
	handle = t->producer;
	post_status(t, handle, err);
	leave(s);
	return handle;
}

/*
 * The common cases, each with all of the NIC compiled into it. Their callers have
 * checked the message; what does not fit here goes the general way.
 */
__attribute__((flatten))
int64_t h__send_short(struct h_terminus *t, const struct h_ticket *k,
		      const void *data, size_t length)
{
	const struct hamlyn_trb trb = { .length = length };

	/* 1 to t->inline_max: what need not be checked again. */
	if (!length || length >= SHM_MAX_ENTRY_SIZE)
		__builtin_unreachable();
	return send_flat(t, k, trb, NULL, data);
}

__attribute__((flatten))
int64_t h__send_word(struct h_terminus *t, const struct h_ticket *k, uint64_t word)
{
	const struct hamlyn_trb trb = { .word = word, .flags = HAMLYN_TRB_FAST };

	/* Who calls it has seen that. */
	if (k->meta_index != HAMLYN_META_FAST)
		__builtin_unreachable();
	return send_flat(t, k, trb, NULL, NULL);
}

__attribute__((flatten))
int64_t h__shm_send_meta(struct h_terminus *t, const struct h_ticket *k,
			 const void *data, size_t length, const void *meta,
			 size_t meta_length)
{
	const struct hamlyn_trb trb = {
		.length = length,
		.meta_length = (u16)meta_length,
	};

	return send_flat(t, k, trb, meta, data);
}

int64_t h__shm_send(struct h_terminus *t, const struct h_msg *m)
{
	struct hamlyn_fragment f[HAMLYN_MAX_FRAGMENTS];
	unsigned char small[4096];
	struct hamlyn_trb trb;
	uint64_t length = m->length;
	size_t room = h__msg_room(t, m);
	int i, n;

	if (m->iov) {
		for (i = 0, length = 0; i < m->iovcnt; i++)
			length += m->iov[i].iov_len;
	}
	h__msg_to_trb(m, length, &trb);
	/* Direct I/O: from any memory. */
	if (!m->iov && length <= room)
		return transmit(t, &trb, m->meta, m->data, length);
	if (length <= room) {
		for (i = 0, n = 0; i < m->iovcnt; i++) {
			memcpy(small + n, m->iov[i].iov_base,
			       m->iov[i].iov_len);
			n += (int)m->iov[i].iov_len;
		}
		return transmit(t, &trb, m->meta, small, length);
	}
	n = h__msg_fragments(t, m, f);
	if (n < 0)
		return n;
	if ((size_t)n * sizeof(f[0]) > room)
		return -EMSGSIZE;
	trb.fragments = (u16)n;
	return transmit(t, &trb, m->meta, f, (size_t)n * sizeof(f[0]));
}
