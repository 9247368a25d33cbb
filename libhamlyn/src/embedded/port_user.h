/* SPDX-License-Identifier: MIT */
/*
 * The NIC core's home in a process: the embedded device, and the unit tests.
 *
 * Everything shared lies in one segment that each process maps where it
 * likes, so references are offsets from the segment's base. They are taken
 * modulo 2^64: memory of the process itself is named by them as well.
 */
#ifndef PORT_USER_H
#define PORT_USER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <linux/hamlyn.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#ifndef static_assert
#define static_assert		_Static_assert
#endif
#define U64_MAX			UINT64_MAX

#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define smp_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define hml_prefetch(p)		__builtin_prefetch(p)
#if defined(__x86_64__)
#define hml_store_release_mb(p, v) \
	((void)__atomic_exchange_n(p, v, __ATOMIC_SEQ_CST))
#else
#define hml_store_release_mb(p, v) do {		\
	smp_store_release(p, v);			\
	smp_mb();					\
} while (0)
#endif
#define hml_barrier()		__atomic_signal_fence(__ATOMIC_SEQ_CST)
#define hml_index_nospec(i, n)	(i)
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define noinline		__attribute__((__noinline__))
#define hml_whole		__always_inline

#define hml_atomic_add_return(p, v)	__atomic_add_fetch(p, v, __ATOMIC_SEQ_CST)
#define hml_atomic_inc64(p)		__atomic_add_fetch(p, 1, __ATOMIC_RELAXED)

static inline void hml_prefetchw(const void *p)
{
#if defined(__x86_64__)
	/* The compiler's own is for reading, for all that it may assume. */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

static inline u32 hml_atomic_cmpxchg(u32 *p, u32 old, u32 new_value)
{
	__atomic_compare_exchange_n(p, &old, new_value, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
#if !defined(__x86_64__)
	/* C11's is not a full barrier for other accesses; the kernel's is. */
	smp_mb();
#endif
	return old;
}

static inline u64 hml_atomic_cmpxchg64(u64 *p, u64 old, u64 new_value)
{
	__atomic_compare_exchange_n(p, &old, new_value, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return old;
}

typedef u64 hml_mem_t;
typedef u64 hml_nq_t;
typedef u64 hml_ref_t;

#define HML_NQ_NONE	0

struct hml_nic;
struct hml_nq;
struct hml_payload;
struct hml_sender;
struct hml_slot;

/**
 * struct hml_port - how this process sees the segment
 * @base: where it is mapped
 * @slots: offset of the slot table
 * @slot_stride: bytes from slot to slot
 * @max_slots: slots in the table
 */
struct hml_port {
	u8 *base;
	u64 slots;
	u32 slot_stride;
	u32 max_slots;
};

static inline void *hml_ref_deref(const struct hml_port *port, hml_ref_t ref)
{
	return (void *)((uintptr_t)port->base + ref);
}

static inline struct hml_nq *hml_nq_deref(const struct hml_port *port,
					  hml_nq_t nq)
{
	struct hml_nq *p = hml_ref_deref(port, nq);

	if (nq == HML_NQ_NONE)
		return NULL;
	if (!p)
		__builtin_unreachable();
	return p;
}

static inline void *hml_mem_at(const struct hml_port *port, hml_mem_t mem,
			       u64 offset)
{
	return hml_ref_deref(port, mem + offset);
}

/* Hint for the long copies of this thread: see choose_copy() in shm_send.c. */
static _Thread_local bool hml_past_caches __attribute__((unused));

#define HML_LONG_COPY	4096

#if defined(__x86_64__)
/* Written to memory, and not to lines that the receiver's cache still has. */
static noinline __attribute__((unused)) void
hml_copy_past(u8 *to, const u8 *from, u32 n)
{
	u32 head = (u32)(-(uintptr_t)to & 7);
	u64 w;

	memmove(to, from, head);
	for (to += head, from += head, n -= head; n >= 8;
	     to += 8, from += 8, n -= 8) {
		memcpy(&w, from, 8);
		__asm__ volatile("movnti %1, %0" : "=m"(*(u64 *)(void *)to)
						 : "r"(w));
	}
	memmove(to, from, n);
	/* These stores are not ordered by those that follow. */
	__asm__ volatile("sfence" : : : "memory");
}
#else
#define hml_copy_past(to, from, n)	memmove(to, from, n)
#endif

/*
 * A call costs more than what it does for so few bytes. A process may send to where
 * its message is: what arrives then is its own affair, but must not be undefined.
 */
static inline void hml_copy(void *to, const void *from, u32 n)
{
	u64 first, last;

	if (n - 8 > 8) {
		if (unlikely(n >= HML_LONG_COPY) && hml_past_caches)
			hml_copy_past(to, from, n);
		else
			memmove(to, from, n);
		return;
	}
	/* 8 to 16: two words, which overlap if it is less than 16. */
	memcpy(&first, from, 8);
	memcpy(&last, (const u8 *)from + n - 8, 8);
	memcpy(to, &first, 8);
	memcpy((u8 *)to + n - 8, &last, 8);
}

static inline void hml_mem_write(const struct hml_port *port, hml_mem_t mem,
				 u64 offset, const void *from, u32 n)
{
	hml_copy(hml_mem_at(port, mem, offset), from, n);
}

static inline bool hml_mem_copy(const struct hml_port *port,
				hml_mem_t to_mem, u64 to,
				hml_mem_t from_mem, u64 from, u32 n)
{
	u8 *there = hml_mem_at(port, to_mem, to);
	const u8 *here = hml_mem_at(port, from_mem, from);

	/* Source and destination may be one area, and may overlap. */
	if ((uintptr_t)there - (uintptr_t)here < n ||
	    (uintptr_t)here - (uintptr_t)there < n)
		memmove(there, here, n);
	else
		hml_copy(there, here, n);
	return true;
}

static inline struct hml_slot *hml_port_slot(const struct hml_port *port,
					     u32 number)
{
	struct hml_slot *slot = hml_ref_deref(port, port->slots +
					      (u64)number * port->slot_stride);

	if (unlikely(number >= port->max_slots))
		return NULL;
	if (!slot)
		__builtin_unreachable();
	return slot;
}

/* One NIC a segment: there is nobody else on its fabric. */
typedef struct hml_nic *hml_path_t;

#define HML_PATH_NONE		NULL
#define hml_port_route(nic, to)	((to) == (nic)->host ? (nic) : HML_PATH_NONE)

/* A process cannot keep its processor; see h__nq_idle() for what comes of it. */
static inline void hml_port_notify_enter(const struct hml_port *port)
{
	(void)port;
}

static inline void hml_port_notify_exit(const struct hml_port *port)
{
	(void)port;
}

/* Lossless, there is nothing between the two, and it takes everything at once. */
#define HML_PORT_STALLS	0

/* Whoever touches memory that has gone bad is killed. */
#define HML_PORT_UNREADABLE	0

#define hml_port_direct(from, path) \
	(hml_link_up(from) && (path) && ((path) == (from) || hml_link_up(path)))
#define hml_port_carry(from, path, h, payload, sender) \
	hml_rx(path, h, payload, sender)
#define hml_port_xmit(from, path, h, payload, sender) \
	(hml_tx_local(from, path, h, payload, sender), true)

static inline u64 hml_port_now_ns(const struct hml_port *port)
{
	struct timespec t;

	(void)port;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

/* Nobody traces here. */
#define hml_port_traces_notify()				false
#define hml_port_traces_packets()				false
#define hml_port_trace_notify(nic, nq, entry, position, lost)	((void)0)
#define hml_port_trace_down(nic, h, sender) \
	((void)(nic), (void)(h), (void)(sender))

void hml_port_rejected(struct hml_nic *nic, const struct hml_slot *slot,
		       const struct hamlyn_packet *h, int reason,
		       const struct hml_sender *sender);
bool hml_port_knew(const struct hml_nic *nic, const struct hamlyn_packet *h,
		   const struct hml_sender *sender);
void hml_port_nq_wake(const struct hml_port *port, struct hml_nq *nq);

#endif /* PORT_USER_H */
