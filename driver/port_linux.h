/* SPDX-License-Identifier: GPL-2.0-only */
/* The NIC core's home in the kernel; see core/port.h. */
#ifndef HML_PORT_LINUX_H
#define HML_PORT_LINUX_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kcsan-checks.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/nospec.h>
#include <linux/prefetch.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/tracepoint-defs.h>
#include <linux/types.h>

#include <linux/hamlyn.h>

#define hml_barrier()			barrier()
#define hml_prefetch(p)			prefetch(p)
#define hml_prefetchw(p)		prefetchw(p)
/* Fully ordered, everywhere. */
#define hml_store_release_mb(p, v)	((void)xchg(p, v))
#define hml_index_nospec(i, n)		array_index_nospec(i, n)
#define hml_atomic_cmpxchg(p, o, n)	cmpxchg(p, o, n)
#define hml_atomic_cmpxchg64(p, o, n)	cmpxchg_relaxed(p, o, n)

static inline u32 hml_atomic_add_return(u32 *p, u32 v)
{
	return atomic_add_return(v, (atomic_t *)p);
}

static inline void hml_atomic_inc64(u64 *p)
{
	atomic64_inc((atomic64_t *)p);
}

/**
 * struct hml_extent - physically contiguous run of a wired memory
 * @va: its address in the kernel's direct map
 * @start: its first byte's offset in the memory
 */
struct hml_extent {
	u8 *va;
	u64 start;
};

/**
 * struct hml_mem - wired memory
 * @length: bytes
 * @count: number of extents, at least 1
 * @extents: sorted by start, the first one's is 0
 */
struct hml_mem {
	u64 length;
	u32 count;
	struct hml_extent extents[];
};

struct hml_nic;
struct hml_nq;
struct hml_payload;
struct hml_peer;
struct hml_sender;
struct hml_slot;

typedef const struct hml_mem *hml_mem_t;
typedef struct hml_nq *hml_nq_t;
typedef struct hml_nic *hml_path_t;
typedef void *hml_ref_t;

#define HML_NQ_NONE	NULL

/**
 * struct hml_passage - a processor's sections
 * @turn: odd while it is in one; read by others
 * @inner: sections inside of that one; its own, like what follows
 * @noted: the section has noted what is to be done after it
 * @more: @inner and @noted in one load
 *
 * Around all work on termini of all NICs; see hml_term_work(). Not SRCU: its grace periods
 * need workers, and call_srcu() is a section of it in which the caller may lose its
 * processor, and with it all the others theirs. Ours cannot be preempted anywhere.
 */
struct hml_passage {
	u32 turn;
	union {
		struct {
			u16 inner;
			u16 noted;
		};
		u32 more;
	};
};

DECLARE_PER_CPU_SHARED_ALIGNED(struct hml_passage, hml_passage);

/* A store-release; on an x86 it is one instruction. */
static __always_inline void hml_section_turn(void)
{
	u32 *turn;

	if (IS_ENABLED(CONFIG_X86)) {
		barrier();	/* B8: all of the section before it is even */
		__this_cpu_inc(hml_passage.turn);
		return;
	}
	turn = this_cpu_ptr(&hml_passage.turn);
	smp_store_release(turn, *turn + 1);	/* B8: the same */
}

/*
 * An interrupt may have a section of its own before @turn is odd here, and after it is even again,
 * but not between (hml_section_interrupted()), so it leaves @turn as even as it was.
 */
static __always_inline void hml_section_begin(void)
{
	preempt_disable();
	if (unlikely(__this_cpu_read(hml_passage.turn) & 1)) {
		__this_cpu_inc(hml_passage.inner);
		return;
	}
	hml_section_turn();
	smp_mb();		/* B8: odd before anything is looked up */
}

/* Preemption is still off: for what is to be done right after it. */
static __always_inline void hml_section_leave(void)
{
	if (unlikely(__this_cpu_read(hml_passage.inner)))
		__this_cpu_dec(hml_passage.inner);
	else
		hml_section_turn();	/* B8: all of the section before it is even */
}

static __always_inline void hml_section_end(void)
{
	hml_section_leave();
	preempt_enable();
}

/*
 * In an interrupt, with preemption off: did it come while this processor was in a section? Then
 * none may begin: it would not be seen, or end the other one.
 */
static inline bool hml_section_interrupted(void)
{
	return __this_cpu_read(hml_passage.turn) & 1;
}

static inline bool hml_in_section(void)
{
	return !preemptible() && __this_cpu_read(hml_passage.turn) & 1;
}

/* What a section keeps. */
#define hml_dereference(p)	rcu_dereference_check(p, hml_in_section())

/**
 * struct hml_port - kernel part of a NIC
 * @slots: slot table
 * @max_slots: its length
 * @fabric: its fabric; constant
 * @first: what packets of this NIC come to first: @fabric, or what stands before it
 * @peer: the host that it stands for, in the table of another one; NULL: it is a NIC; constant
 */
struct hml_port {
	struct hml_slot __rcu **slots;
	u32 max_slots;
	struct hml_fabric *fabric;
	struct hml_fabric __rcu *first;
	struct hml_peer *peer;
};

static inline void *hml_ref_deref(const struct hml_port *port, hml_ref_t ref)
{
	return ref;
}

static inline struct hml_nq *hml_nq_deref(const struct hml_port *port,
					  hml_nq_t nq)
{
	return nq;
}

/* Index of the extent that holds @offset. */
static inline u32 hml_mem_find(hml_mem_t mem, u64 offset)
{
	u32 low = 0, high = mem->count;

	while (high - low > 1) {
		u32 middle = low + (high - low) / 2;

		if (mem->extents[middle].start <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static inline u64 hml_mem_extent_end(hml_mem_t mem, u32 i)
{
	return i + 1 < mem->count ? mem->extents[i + 1].start : mem->length;
}

static inline void *hml_mem_at(const struct hml_port *port, hml_mem_t mem,
			       u64 offset)
{
	const struct hml_extent *e = &mem->extents[hml_mem_find(mem, offset)];

	return e->va + (offset - e->start);
}

#define HML_MEM_SHORT	32	/* two pairs of words */

/*
 * Messages are short, and a string instruction takes longer to begin than all
 * of this: the first and the last words, which may overlap. Whether others write
 * there at the same time is up to those whose bytes they are: nothing for KCSAN.
 */
static __always_inline void hml_mem_short(u8 *to, const u8 *from, u32 n)
{
	u64 w[4];

	kcsan_disable_current();
	if (n > 16) {
		memcpy(&w[0], from, 8);
		memcpy(&w[1], from + 8, 8);
		memcpy(&w[2], from + n - 16, 8);
		memcpy(&w[3], from + n - 8, 8);
		memcpy(to, &w[0], 8);
		memcpy(to + 8, &w[1], 8);
		memcpy(to + n - 16, &w[2], 8);
		memcpy(to + n - 8, &w[3], 8);
	} else if (n >= 8) {
		memcpy(&w[0], from, 8);
		memcpy(&w[1], from + n - 8, 8);
		memcpy(to, &w[0], 8);
		memcpy(to + n - 8, &w[1], 8);
	} else {
		while (n--)
			*to++ = *from++;
	}
	kcsan_enable_current();
}

/* datapath.c */
void hml_mem_write_long(hml_mem_t mem, u64 offset, const u8 *from, u32 n);

/* Where there is a single extent, what is inside the memory is inside of it. */
static __always_inline void hml_mem_write(const struct hml_port *port,
					  hml_mem_t mem, u64 offset,
					  const void *from, u32 n)
{
	if (likely(n <= HML_MEM_SHORT && mem->count == 1))
		hml_mem_short(mem->extents[0].va + offset, from, n);
	else
		hml_mem_write_long(mem, offset, from, n);
}

int hml_mem_try_copy(void *to, const void *from, u32 n);

/* Return: false if it cannot all be read. */
static inline bool hml_mem_read(void *to, hml_mem_t mem, u64 offset, u32 n)
{
	u32 i = hml_mem_find(mem, offset);

	for (;;) {
		u64 room = hml_mem_extent_end(mem, i) - offset;
		u32 part = min_t(u64, room, n);

		if (hml_mem_try_copy(to, mem->extents[i].va +
				     (offset - mem->extents[i].start), part))
			return false;
		n -= part;
		if (!n)
			return true;
		offset += part;
		to += part;
		i++;
	}
}

/* datapath.c */
bool hml_mem_copy(const struct hml_port *port, hml_mem_t to_mem, u64 to,
		  hml_mem_t from_mem, u64 from, u32 n);

/*
 * Preemption is off already: see hml_notify_begin(). Without it nobody would make the
 * wake-ups that are noted meanwhile.
 */
static inline void hml_port_notify_enter(const struct hml_port *port)
{
	lockdep_assert(hml_in_section());
}

static inline void hml_port_notify_exit(const struct hml_port *port)
{
}

static inline struct hml_slot *hml_port_slot(const struct hml_port *port,
					     u32 number)
{
	if (number >= port->max_slots)
		return NULL;
	number = array_index_nospec(number, port->max_slots);
	return hml_dereference(port->slots[number]);
}

static inline u64 hml_port_now_ns(const struct hml_port *port)
{
	return ktime_get_ns();
}

DECLARE_TRACEPOINT(hamlyn_notify);
DECLARE_TRACEPOINT(hamlyn_packet);
DECLARE_TRACEPOINT(hamlyn_reject);

/* trace.c */
void hml_port_trace_notify(const struct hml_nic *nic, const struct hml_nq *nq,
			   const struct hamlyn_nq_entry *e, u32 position,
			   bool lost);
void hml_trace_down(const struct hml_nic *nic, const struct hamlyn_packet *h,
		    const struct hml_sender *sender);

/* A no-op in the code until somebody traces. */
static inline bool hml_port_traces_notify(void)
{
	return tracepoint_enabled(hamlyn_notify);
}

static inline bool hml_port_traces_packets(void)
{
	return tracepoint_enabled(hamlyn_packet);
}

static inline void hml_port_trace_down(const struct hml_nic *nic,
				       const struct hamlyn_packet *h,
				       const struct hml_sender *sender)
{
	if (tracepoint_enabled(hamlyn_reject))
		hml_trace_down(nic, h, sender);
}

/* fabric/fabric.c */
#define HML_PATH_NONE	NULL
#define HML_PORT_STALLS	1
#define HML_PORT_UNREADABLE	1

/* All of the receiver is in several functions, which are for slots of other modes first. */
#define hml_whole	noinline

hml_path_t hml_port_route(struct hml_nic *nic, u32 host);
bool hml_port_direct(const struct hml_nic *from, hml_path_t path);
void hml_port_carry(struct hml_nic *from, hml_path_t path,
		    const struct hamlyn_packet *h,
		    const struct hml_payload *payload, struct hml_sender *sender);
bool hml_port_xmit(struct hml_nic *from, hml_path_t path,
		   const struct hamlyn_packet *h,
		   const struct hml_payload *payload, struct hml_sender *sender);
void hml_port_rejected(struct hml_nic *nic, const struct hml_slot *slot,
		       const struct hamlyn_packet *h, int reason,
		       const struct hml_sender *sender);
bool hml_port_knew(const struct hml_nic *nic, const struct hamlyn_packet *h,
		   const struct hml_sender *sender);
void hml_port_nq_wake(const struct hml_port *port, struct hml_nq *nq);

#endif /* HML_PORT_LINUX_H */
