/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints. What each tells, and when: Documentation/tracing.rst.
 *
 * No event tells a key, nor what an application sends: contents, metadata and
 * fast mode words. Pids and uids are those of the initial namespaces.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hamlyn

#if !defined(HML_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define HML_TRACE_H

#include <linux/tracepoint.h>

#include "compat/compat.h"
#include "hml.h"
#include "core/wire.h"
#include "fabric/tcp.h"
#include "object/name.h"

#ifndef HML_TRACE_ONCE
#define HML_TRACE_ONCE

/* What an adversary does to a packet. */
enum hml_trace_mischief {
	HML_TRACE_DROP,
	HML_TRACE_DUPLICATE,
	HML_TRACE_CORRUPT,
	HML_TRACE_REORDER,
	HML_TRACE_DELAY,
	HML_TRACE_RELEASE,
	HML_TRACE_STALL,
};

/* All of it: what was in the buffer before is for nobody. @length has been checked. */
static inline void hml_trace_name(char to[HAMLYN_MAX_NAME + 1], const char *name, u32 length)
{
	memcpy(to, name, length);
	memset(to + length, 0, HAMLYN_MAX_NAME + 1 - length);
}

/* For durations, which are not measured unless they are traced. */
static inline u64 hml_trace_clock(bool on)
{
	return on ? ktime_get_ns() : 0;
}

static inline u64 hml_trace_ns(u64 since)
{
	return since ? ktime_get_ns() - since : 0;
}

static inline u32 hml_trace_nic(const struct hml_nic *nic)
{
	return container_of(nic, struct hml_device, nic)->index;
}

static inline const struct hml_nqueue *hml_trace_nq(const struct hml_nq *nq)
{
	return container_of(nq, struct hml_nqueue, core);
}

/* Only of a packet that leaves: later an adversary may stand for the sender. */
static inline const struct hml_term *
hml_trace_term(const struct hml_sender *sender)
{
	return container_of(sender, struct hml_term, core.sender);
}

/* How the longest lines begin. */
#define HML_TRACE_SENDER	"nic=%u context=%u terminus=%u pid=%u source=%u"
#define HML_TRACE_NQE		"nic=%u context=%u nq=%u position=%u source=%u"
#define HML_TRACE_SLOT		"nic=%u context=%u slot=%u mode=%s flags=%s"

#endif /* HML_TRACE_ONCE */

TRACE_DEFINE_ENUM(HML_TRACE_DROP);
TRACE_DEFINE_ENUM(HML_TRACE_DUPLICATE);
TRACE_DEFINE_ENUM(HML_TRACE_CORRUPT);
TRACE_DEFINE_ENUM(HML_TRACE_REORDER);
TRACE_DEFINE_ENUM(HML_TRACE_DELAY);
TRACE_DEFINE_ENUM(HML_TRACE_RELEASE);
TRACE_DEFINE_ENUM(HAMLYN_REJECT_SLOT);
TRACE_DEFINE_ENUM(HAMLYN_REJECT_KEY);
TRACE_DEFINE_ENUM(HAMLYN_REJECT_BOUNDS);
TRACE_DEFINE_ENUM(HAMLYN_REJECT_METADATA);
TRACE_DEFINE_ENUM(HAMLYN_REJECT_FORMAT);
TRACE_DEFINE_ENUM(HAMLYN_REJECT_ONE_SHOT);
TRACE_DEFINE_ENUM(HAMLYN_REJECT_TICKET);
TRACE_DEFINE_ENUM(HAMLYN_REJECT_DOWN);
TRACE_DEFINE_ENUM(HAMLYN_SLOT_NORMAL);
TRACE_DEFINE_ENUM(HAMLYN_SLOT_PARANOID);
TRACE_DEFINE_ENUM(HAMLYN_SLOT_PARANOID_ONE_SHOT);
TRACE_DEFINE_ENUM(HAMLYN_ENGINE_INLINE);
TRACE_DEFINE_ENUM(HAMLYN_ENGINE_POLL);
TRACE_DEFINE_ENUM(HAMLYN_NIC_UP);
TRACE_DEFINE_ENUM(HAMLYN_NIC_DOWN);
TRACE_DEFINE_ENUM(HAMLYN_PRIORITY_NORMAL);
TRACE_DEFINE_ENUM(HAMLYN_PRIORITY_HIGH);
TRACE_DEFINE_ENUM(HAMLYN_PRIORITY_BULK);
TRACE_DEFINE_ENUM(HML_PEER_NO_REASON);
TRACE_DEFINE_ENUM(HML_PEER_UNREACHABLE);
TRACE_DEFINE_ENUM(HML_PEER_CLOSED);
TRACE_DEFINE_ENUM(HML_PEER_DEAD);
TRACE_DEFINE_ENUM(HML_PEER_STALLED);
TRACE_DEFINE_ENUM(HML_PEER_NONSENSE);
TRACE_DEFINE_ENUM(HML_PEER_OTHER_VERSION);
TRACE_DEFINE_ENUM(HML_PEER_OTHER_FABRIC);
TRACE_DEFINE_ENUM(HML_PEER_OTHER_HOST);
TRACE_DEFINE_ENUM(HML_PEER_SAME_HOST);
TRACE_DEFINE_ENUM(HML_PEER_OTHER_SIZE);
TRACE_DEFINE_ENUM(HML_PEER_DOWN);
TRACE_DEFINE_ENUM(HML_WIRE_BAD_VERSION);
TRACE_DEFINE_ENUM(HML_WIRE_BAD_TYPE);
TRACE_DEFINE_ENUM(HML_WIRE_BAD_LENGTH);
TRACE_DEFINE_ENUM(HML_WIRE_BAD_FLAGS);
TRACE_DEFINE_ENUM(HML_WIRE_TOO_LONG);
TRACE_DEFINE_ENUM(HML_WIRE_BAD_ORDER);
TRACE_DEFINE_ENUM(HML_WIRE_BAD_EPOCH);
TRACE_DEFINE_ENUM(HML_WIRE_BAD_SEQUENCE);
TRACE_DEFINE_ENUM(HML_WIRE_BAD_MAGIC);
TRACE_DEFINE_ENUM(HML_WIRE_NO_VERSION);
TRACE_DEFINE_ENUM(HML_WIRE_OTHER_FABRIC);
TRACE_DEFINE_ENUM(HML_WIRE_SAME_HOST);
TRACE_DEFINE_ENUM(HML_WIRE_OTHER_HOST);
TRACE_DEFINE_ENUM(HML_WIRE_OTHER_PACKET);
TRACE_DEFINE_ENUM(HML_WIRE_OLD_EPOCH);
TRACE_DEFINE_ENUM(HML_WIRE_WATCH_GONE);
TRACE_DEFINE_ENUM(HML_WIRE_WATCH_CLAIMED);
TRACE_DEFINE_ENUM(HML_WIRE_ANSWERED);
TRACE_DEFINE_ENUM(HML_WIRE_NO_NAME);
TRACE_DEFINE_ENUM(HML_WIRE_FULL);
TRACE_DEFINE_ENUM(HML_WIRE_HUNG_UP);

#define hml_show_mischief(what)						\
	__print_symbolic(what,						\
		{ HML_TRACE_DROP,		"drop" },		\
		{ HML_TRACE_DUPLICATE,		"duplicate" },		\
		{ HML_TRACE_CORRUPT,		"corrupt" },		\
		{ HML_TRACE_REORDER,		"reorder" },		\
		{ HML_TRACE_DELAY,		"delay" },		\
		{ HML_TRACE_RELEASE,		"release" },		\
		{ HML_TRACE_STALL,		"stall" })

#define hml_show_reject(reason)						\
	__print_symbolic(reason,					\
		{ HAMLYN_REJECT_SLOT,		"slot" },		\
		{ HAMLYN_REJECT_KEY,		"key" },		\
		{ HAMLYN_REJECT_BOUNDS,		"bounds" },		\
		{ HAMLYN_REJECT_METADATA,	"metadata" },		\
		{ HAMLYN_REJECT_FORMAT,		"format" },		\
		{ HAMLYN_REJECT_ONE_SHOT,	"one_shot" },		\
		{ HAMLYN_REJECT_TICKET,		"ticket" },		\
		{ HAMLYN_REJECT_DOWN,		"down" })

#define hml_show_slot_mode(mode)					\
	__print_symbolic(mode,						\
		{ HAMLYN_SLOT_NORMAL,		"normal" },		\
		{ HAMLYN_SLOT_PARANOID,		"paranoid" },		\
		{ HAMLYN_SLOT_PARANOID_ONE_SHOT, "one_shot" })

#define hml_show_engine_mode(mode)					\
	__print_symbolic(mode,						\
		{ HAMLYN_ENGINE_INLINE,		"inline" },		\
		{ HAMLYN_ENGINE_POLL,		"poll" })

#define hml_show_nic_state(state)					\
	__print_symbolic(state,						\
		{ HAMLYN_NIC_UP,		"up" },			\
		{ HAMLYN_NIC_DOWN,		"down" })

#define hml_show_priority(priority)					\
	__print_symbolic(priority,					\
		{ HAMLYN_PRIORITY_NORMAL,	"normal" },		\
		{ HAMLYN_PRIORITY_HIGH,		"high" },		\
		{ HAMLYN_PRIORITY_BULK,		"bulk" })

#define hml_show_peer_reason(reason)					\
	__print_symbolic(reason,					\
		{ HML_PEER_NO_REASON,		"none" },		\
		{ HML_PEER_UNREACHABLE,		"unreachable" },	\
		{ HML_PEER_CLOSED,		"closed" },		\
		{ HML_PEER_DEAD,		"dead" },		\
		{ HML_PEER_STALLED,		"stalled" },		\
		{ HML_PEER_NONSENSE,		"nonsense" },		\
		{ HML_PEER_OTHER_VERSION,	"other_version" },	\
		{ HML_PEER_OTHER_FABRIC,	"other_fabric" },	\
		{ HML_PEER_OTHER_HOST,		"other_host" },		\
		{ HML_PEER_SAME_HOST,		"same_host" },		\
		{ HML_PEER_OTHER_SIZE,		"other_size" },		\
		{ HML_PEER_DOWN,		"down" })

#define hml_show_verdict(verdict)					\
	__print_symbolic(verdict,					\
		{ HML_WIRE_BAD_VERSION,		"bad_version" },	\
		{ HML_WIRE_BAD_TYPE,		"bad_type" },		\
		{ HML_WIRE_BAD_LENGTH,		"bad_length" },		\
		{ HML_WIRE_BAD_FLAGS,		"bad_flags" },		\
		{ HML_WIRE_TOO_LONG,		"too_long" },		\
		{ HML_WIRE_BAD_ORDER,		"bad_order" },		\
		{ HML_WIRE_BAD_EPOCH,		"bad_epoch" },		\
		{ HML_WIRE_BAD_SEQUENCE,	"bad_sequence" },	\
		{ HML_WIRE_BAD_MAGIC,		"bad_magic" },		\
		{ HML_WIRE_NO_VERSION,		"no_version" },		\
		{ HML_WIRE_OTHER_FABRIC,	"other_fabric" },	\
		{ HML_WIRE_SAME_HOST,		"same_host" },		\
		{ HML_WIRE_OTHER_HOST,		"other_host" },		\
		{ HML_WIRE_OTHER_PACKET,	"other_packet" },	\
		{ HML_WIRE_OLD_EPOCH,		"old_epoch" })

#define hml_show_watch_why(why)						\
	__print_symbolic(why,						\
		{ HML_WIRE_WATCH_GONE,		"gone" },		\
		{ HML_WIRE_WATCH_CLAIMED,	"claimed" })

#define hml_show_answer(status)						\
	__print_symbolic(status,					\
		{ HML_WIRE_ANSWERED,		"answered" },		\
		{ HML_WIRE_NO_NAME,		"no_name" },		\
		{ HML_WIRE_FULL,		"full" },		\
		{ HML_WIRE_HUNG_UP,		"hung_up" })

#define hml_show_packet_flags(flags)					\
	__print_flags(flags, "|",					\
		{ HAMLYN_PACKET_SINGLE,		"single" },		\
		{ HAMLYN_PACKET_FAST,		"fast" },		\
		{ HAMLYN_PACKET_NO_NOTIFY,	"no_notify" },		\
		{ HAMLYN_PACKET_QUIET,		"quiet" },		\
		{ HAMLYN_PACKET_TICKET,		"ticket" })

#define hml_show_nqe_flags(flags)					\
	__print_flags(flags, "|",					\
		{ HAMLYN_NQE_FAST,		"fast" },		\
		{ HAMLYN_NQE_SINGLE,		"single" },		\
		{ HAMLYN_NQE_OVERRUN,		"overrun" },		\
		{ HAMLYN_NQE_VOID,		"void" },		\
		{ HAMLYN_NQE_PEER_GONE,		"peer_gone" })

#define hml_show_slot_flags(flags)					\
	__print_flags(flags, "|",					\
		{ HAMLYN_SLOT_KEY_GIVEN,	"key_given" },		\
		{ HAMLYN_SLOT_TICKET_ONLY,	"ticket_only" })

#define hml_show_nic_set(flags)						\
	__print_flags(flags, "|",					\
		{ HAMLYN_NIC_SET_STATE,		"state" },		\
		{ HAMLYN_NIC_SET_WATCHDOG,	"watchdog" },		\
		{ HAMLYN_NIC_FEED,		"feed" })

/* ---- packets ---- */

TRACE_EVENT(hamlyn_packet,
	TP_PROTO(const struct hml_nic *nic, const struct hamlyn_packet *h,
		 const struct hml_sender *sender),

	TP_ARGS(nic, h, sender),

	TP_STRUCT__entry(
		__field(u64, offset)
		__field(u32, nic)
		__field(u32, context)
		__field(u32, terminus)
		__field(u32, pid)
		__field(u32, source)
		__field(u32, host)
		__field(u32, slot)
		__field(u32, length)
		__field(u32, delta)
		__field(u32, flags)
	),

	TP_fast_assign(
		__entry->offset = h->offset;
		__entry->nic = hml_trace_nic(nic);
		__entry->context = hml_trace_term(sender)->context;
		__entry->terminus = hml_trace_term(sender)->id;
		__entry->pid = sender->pid;
		__entry->source = h->source;
		__entry->host = h->host;
		__entry->slot = h->slot;
		__entry->length = h->length;
		__entry->delta = h->delta;
		__entry->flags = h->flags;
	),

	TP_printk(HML_TRACE_SENDER " host=%u slot=%u offset=%llu length=%u delta=%u flags=%s",
		  __entry->nic, __entry->context, __entry->terminus,
		  __entry->pid, __entry->source, __entry->host, __entry->slot,
		  __entry->offset, __entry->length, __entry->delta,
		  hml_show_packet_flags(__entry->flags))
);

TRACE_EVENT(hamlyn_reject,
	TP_PROTO(const struct hml_nic *nic, const struct hamlyn_packet *h,
		 int reason, const struct hml_sender *sender),

	TP_ARGS(nic, h, reason, sender),

	TP_STRUCT__entry(
		__field(u64, offset)
		__field(u32, nic)
		__field(u32, slot)
		__field(u32, reason)
		__field(u32, source)
		__field(u32, length)
		__field(u32, pid)
		__field(u32, uid)
	),

	TP_fast_assign(
		__entry->offset = h->offset;
		__entry->nic = hml_trace_nic(nic);
		__entry->slot = h->slot;
		__entry->reason = reason;
		__entry->source = h->source;
		__entry->length = h->length;
		__entry->pid = sender->pid;
		__entry->uid = sender->uid;
	),

	TP_printk("nic=%u slot=%u reason=%s source=%u offset=%llu length=%u pid=%u uid=%u",
		  __entry->nic, __entry->slot, hml_show_reject(__entry->reason),
		  __entry->source, __entry->offset, __entry->length,
		  __entry->pid, __entry->uid)
);

TRACE_EVENT(hamlyn_notify,
	TP_PROTO(const struct hml_nic *nic, const struct hml_nq *nq,
		 const struct hamlyn_nq_entry *e, u32 position, bool lost),

	TP_ARGS(nic, nq, e, position, lost),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, context)
		__field(u32, nq)
		__field(u32, position)
		__field(u32, source)
		__field(u32, slot)
		__field(u32, index)
		__field(u32, length)
		__field(u32, flags)
		__field(u32, lost)
	),

	TP_fast_assign(
		__entry->nic = hml_trace_nic(nic);
		__entry->context = hml_trace_nq(nq)->context->id;
		__entry->nq = hml_trace_nq(nq)->id;
		__entry->position = position;
		__entry->source = e->source;
		__entry->slot = e->slot;
		__entry->index = e->index;
		__entry->length = e->length;
		__entry->flags = e->flags;
		__entry->lost = lost;
	),

	TP_printk(HML_TRACE_NQE " slot=%d index=%d length=%u flags=%s lost=%u",
		  __entry->nic, __entry->context, __entry->nq,
		  __entry->position, __entry->source, (int)__entry->slot,
		  (int)__entry->index, __entry->length,
		  hml_show_nqe_flags(__entry->flags), __entry->lost)
);

TRACE_EVENT(hamlyn_adversary,
	TP_PROTO(const struct hml_device *d, int what,
		 const struct hamlyn_packet *h),

	TP_ARGS(d, what, h),

	TP_STRUCT__entry(
		__field(u64, offset)
		__field(u32, nic)
		__field(u32, what)
		__field(u32, host)
		__field(u32, slot)
		__field(u32, length)
	),

	TP_fast_assign(
		__entry->offset = h->offset;
		__entry->nic = d->index;
		__entry->what = what;
		__entry->host = h->host;
		__entry->slot = h->slot;
		__entry->length = h->length;
	),

	TP_printk("nic=%u what=%s host=%u slot=%u offset=%llu length=%u",
		  __entry->nic, hml_show_mischief(__entry->what),
		  __entry->host, __entry->slot, __entry->offset,
		  __entry->length)
);

/* ---- termini and engines ---- */

DECLARE_EVENT_CLASS(hamlyn_terminus,
	TP_PROTO(const struct hml_term *t),

	TP_ARGS(t),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, context)
		__field(u32, terminus)
	),

	TP_fast_assign(
		__entry->nic = t->device->index;
		__entry->context = t->context;
		__entry->terminus = t->id;
	),

	TP_printk("nic=%u context=%u terminus=%u",
		  __entry->nic, __entry->context, __entry->terminus)
);

DEFINE_EVENT(hamlyn_terminus, hamlyn_kick,
	TP_PROTO(const struct hml_term *t),
	TP_ARGS(t)
);

DEFINE_EVENT(hamlyn_terminus, hamlyn_poll_start,
	TP_PROTO(const struct hml_term *t),
	TP_ARGS(t)
);

DEFINE_EVENT(hamlyn_terminus, hamlyn_poll_stop,
	TP_PROTO(const struct hml_term *t),
	TP_ARGS(t)
);

DEFINE_EVENT(hamlyn_terminus, hamlyn_terminus_destroy,
	TP_PROTO(const struct hml_term *t),
	TP_ARGS(t)
);

TRACE_EVENT(hamlyn_kick_done,
	TP_PROTO(const struct hml_term *t, u32 packets),

	TP_ARGS(t, packets),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, context)
		__field(u32, terminus)
		__field(u32, packets)
		__field(u32, more)
	),

	TP_fast_assign(
		__entry->nic = t->device->index;
		__entry->context = t->context;
		__entry->terminus = t->id;
		__entry->packets = packets;
		__entry->more = hml_tx_pending(&t->core);
	),

	TP_printk("nic=%u context=%u terminus=%u packets=%u more=%u",
		  __entry->nic, __entry->context, __entry->terminus,
		  __entry->packets, __entry->more)
);

/* Most sections of an engine that polls find nothing. */
TRACE_EVENT_CONDITION(hamlyn_work,
	TP_PROTO(const struct hml_term *t, u32 packets, u64 bytes),

	TP_ARGS(t, packets, bytes),

	TP_CONDITION(packets),

	TP_STRUCT__entry(
		__field(u64, bytes)
		__field(u32, nic)
		__field(u32, context)
		__field(u32, terminus)
		__field(u32, packets)
	),

	TP_fast_assign(
		__entry->bytes = bytes;
		__entry->nic = t->device->index;
		__entry->context = t->context;
		__entry->terminus = t->id;
		__entry->packets = packets;
	),

	TP_printk("nic=%u context=%u terminus=%u packets=%u bytes=%llu",
		  __entry->nic, __entry->context, __entry->terminus,
		  __entry->packets, __entry->bytes)
);

TRACE_EVENT(hamlyn_pause,
	TP_PROTO(const struct hml_term *t),

	TP_ARGS(t),

	TP_STRUCT__entry(
		__field(u64, until)
		__field(u32, nic)
		__field(u32, context)
		__field(u32, terminus)
		__field(u32, pid)
		__field(u32, uid)
	),

	TP_fast_assign(
		__entry->until = READ_ONCE(t->core.sender.guard.until);
		__entry->nic = t->device->index;
		__entry->context = t->context;
		__entry->terminus = t->id;
		__entry->pid = t->core.sender.pid;
		__entry->uid = t->core.sender.uid;
	),

	TP_printk("nic=%u context=%u terminus=%u pid=%u uid=%u until=%llu",
		  __entry->nic, __entry->context, __entry->terminus,
		  __entry->pid, __entry->uid, __entry->until)
);

TRACE_EVENT(hamlyn_terminus_create,
	TP_PROTO(const struct hml_term *t),

	TP_ARGS(t),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, context)
		__field(u32, terminus)
		__field(u32, entries)
		__field(u32, entry_size)
		__field(u32, priority)
		__field(u32, weight)
	),

	TP_fast_assign(
		__entry->nic = t->device->index;
		__entry->context = t->context;
		__entry->terminus = t->id;
		__entry->entries = t->core.mask + 1;
		__entry->entry_size = t->core.entry_size;
		__entry->priority = t->turn.priority;
		__entry->weight = t->turn.weight;
	),

	TP_printk("nic=%u context=%u terminus=%u entries=%u entry_size=%u priority=%s weight=%u",
		  __entry->nic, __entry->context, __entry->terminus,
		  __entry->entries, __entry->entry_size,
		  hml_show_priority(__entry->priority), __entry->weight)
);

TRACE_EVENT(hamlyn_bind,
	TP_PROTO(const struct hml_term *t,
		 const struct hamlyn_terminus_bind *arg),

	TP_ARGS(t, arg),

	TP_STRUCT__entry(
		__field(u64, base)
		__field(u64, length)
		__field(u32, nic)
		__field(u32, context)
		__field(u32, terminus)
		__field(u32, tag)
		__field(u32, area)
	),

	TP_fast_assign(
		__entry->base = arg->base;
		__entry->length = arg->length;
		__entry->nic = t->device->index;
		__entry->context = t->context;
		__entry->terminus = t->id;
		__entry->tag = arg->tag;
		__entry->area = arg->area;
	),

	TP_printk("nic=%u context=%u terminus=%u tag=%u area=%d base=%llu length=%llu",
		  __entry->nic, __entry->context, __entry->terminus,
		  __entry->tag, (int)__entry->area, __entry->base,
		  __entry->length)
);

/* ---- notification queues ---- */

DECLARE_EVENT_CLASS(hamlyn_nq,
	TP_PROTO(const struct hml_nqueue *nq),

	TP_ARGS(nq),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, context)
		__field(u32, nq)
		__field(u32, entries)
	),

	TP_fast_assign(
		__entry->nic = nq->context->device->index;
		__entry->context = nq->context->id;
		__entry->nq = nq->id;
		__entry->entries = nq->core.mask + 1;
	),

	TP_printk("nic=%u context=%u nq=%u entries=%u",
		  __entry->nic, __entry->context, __entry->nq,
		  __entry->entries)
);

DEFINE_EVENT(hamlyn_nq, hamlyn_wake,
	TP_PROTO(const struct hml_nqueue *nq),
	TP_ARGS(nq)
);

DEFINE_EVENT(hamlyn_nq, hamlyn_nq_create,
	TP_PROTO(const struct hml_nqueue *nq),
	TP_ARGS(nq)
);

DEFINE_EVENT(hamlyn_nq, hamlyn_nq_destroy,
	TP_PROTO(const struct hml_nqueue *nq),
	TP_ARGS(nq)
);

DECLARE_EVENT_CLASS(hamlyn_watching,
	TP_PROTO(const struct hml_nqueue *nq, u32 watch, u32 host, u32 slot),

	TP_ARGS(nq, watch, host, slot),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, context)
		__field(u32, watch)
		__field(u32, nq)
		__field(u32, host)
		__field(u32, slot)
	),

	TP_fast_assign(
		__entry->nic = nq->context->device->index;
		__entry->context = nq->context->id;
		__entry->watch = watch;
		__entry->nq = nq->id;
		__entry->host = host;
		__entry->slot = slot;
	),

	TP_printk("nic=%u context=%u watch=%u nq=%u host=%u slot=%u",
		  __entry->nic, __entry->context, __entry->watch, __entry->nq,
		  __entry->host, __entry->slot)
);

DEFINE_EVENT(hamlyn_watching, hamlyn_watch,
	TP_PROTO(const struct hml_nqueue *nq, u32 watch, u32 host, u32 slot),
	TP_ARGS(nq, watch, host, slot)
);

DEFINE_EVENT(hamlyn_watching, hamlyn_unwatch,
	TP_PROTO(const struct hml_nqueue *nq, u32 watch, u32 host, u32 slot),
	TP_ARGS(nq, watch, host, slot)
);

DEFINE_EVENT(hamlyn_watching, hamlyn_peer_gone,
	TP_PROTO(const struct hml_nqueue *nq, u32 watch, u32 host, u32 slot),
	TP_ARGS(nq, watch, host, slot)
);

/* ---- slots and tickets ---- */

/* The argument has the key in it. */
TRACE_EVENT(hamlyn_slot_create,
	TP_PROTO(const struct hml_context *c,
		 const struct hamlyn_slot_create *arg),

	TP_ARGS(c, arg),

	TP_STRUCT__entry(
		__field(u64, base)
		__field(u64, length)
		__field(u32, nic)
		__field(u32, context)
		__field(u32, slot)
		__field(u32, mode)
		__field(u32, flags)
		__field(u32, area)
		__field(u32, meta_count)
		__field(u32, nq)
	),

	TP_fast_assign(
		__entry->base = arg->base;
		__entry->length = arg->length;
		__entry->nic = c->device->index;
		__entry->context = c->id;
		__entry->slot = arg->slot;
		__entry->mode = arg->mode;
		__entry->flags = arg->flags;
		__entry->area = arg->area;
		__entry->meta_count = arg->meta_count;
		__entry->nq = arg->nq;
	),

	TP_printk(HML_TRACE_SLOT " area=%u base=%llu length=%llu meta_count=%u nq=%d",
		  __entry->nic, __entry->context, __entry->slot,
		  hml_show_slot_mode(__entry->mode),
		  hml_show_slot_flags(__entry->flags), __entry->area,
		  __entry->base, __entry->length, __entry->meta_count,
		  (int)__entry->nq)
);

DECLARE_EVENT_CLASS(hamlyn_slot_revoke,
	TP_PROTO(const struct hml_context *c, u32 slot, u64 ns),

	TP_ARGS(c, slot, ns),

	TP_STRUCT__entry(
		__field(u64, ns)
		__field(u32, nic)
		__field(u32, context)
		__field(u32, slot)
	),

	TP_fast_assign(
		__entry->ns = ns;
		__entry->nic = c->device->index;
		__entry->context = c->id;
		__entry->slot = slot;
	),

	TP_printk("nic=%u context=%u slot=%u ns=%llu",
		  __entry->nic, __entry->context, __entry->slot, __entry->ns)
);

DEFINE_EVENT(hamlyn_slot_revoke, hamlyn_slot_rekey,
	TP_PROTO(const struct hml_context *c, u32 slot, u64 ns),
	TP_ARGS(c, slot, ns)
);

DEFINE_EVENT(hamlyn_slot_revoke, hamlyn_slot_destroy,
	TP_PROTO(const struct hml_context *c, u32 slot, u64 ns),
	TP_ARGS(c, slot, ns)
);

TRACE_EVENT(hamlyn_ticket_create,
	TP_PROTO(const struct hml_context *c, u32 slot, u64 base, u64 length),

	TP_ARGS(c, slot, base, length),

	TP_STRUCT__entry(
		__field(u64, base)
		__field(u64, length)
		__field(u32, nic)
		__field(u32, context)
		__field(u32, slot)
	),

	TP_fast_assign(
		__entry->base = base;
		__entry->length = length;
		__entry->nic = c->device->index;
		__entry->context = c->id;
		__entry->slot = slot;
	),

	TP_printk("nic=%u context=%u slot=%u base=%llu length=%llu",
		  __entry->nic, __entry->context, __entry->slot,
		  __entry->base, __entry->length)
);

TRACE_EVENT(hamlyn_ticket_import,
	TP_PROTO(const struct hml_context *c,
		 const struct hamlyn_ticket_import *arg),

	TP_ARGS(c, arg),

	TP_STRUCT__entry(
		__field(u64, base)
		__field(u64, length)
		__field(u32, nic)
		__field(u32, context)
		__field(u32, terminus)
		__field(u32, index)
		__field(u32, host)
		__field(u32, slot)
	),

	TP_fast_assign(
		__entry->base = arg->base;
		__entry->length = arg->length;
		__entry->nic = c->device->index;
		__entry->context = c->id;
		__entry->terminus = arg->terminus;
		__entry->index = arg->index;
		__entry->host = arg->host;
		__entry->slot = arg->slot;
	),

	TP_printk("nic=%u context=%u terminus=%u index=%u host=%u slot=%u base=%llu length=%llu",
		  __entry->nic, __entry->context, __entry->terminus,
		  __entry->index, __entry->host, __entry->slot, __entry->base,
		  __entry->length)
);

TRACE_EVENT(hamlyn_ticket_drop,
	TP_PROTO(const struct hml_context *c,
		 const struct hamlyn_ticket_drop *arg),

	TP_ARGS(c, arg),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, context)
		__field(u32, terminus)
		__field(u32, index)
	),

	TP_fast_assign(
		__entry->nic = c->device->index;
		__entry->context = c->id;
		__entry->terminus = arg->terminus;
		__entry->index = arg->index;
	),

	TP_printk("nic=%u context=%u terminus=%u index=%u",
		  __entry->nic, __entry->context, __entry->terminus,
		  __entry->index)
);

/* ---- peers ---- */

TRACE_EVENT(hamlyn_peer_up,
	TP_PROTO(const struct hml_nic *nic, u32 host, u32 epoch),

	TP_ARGS(nic, host, epoch),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, host)
		__field(u32, epoch)
	),

	TP_fast_assign(
		__entry->nic = hml_trace_nic(nic);
		__entry->host = host;
		__entry->epoch = epoch;
	),

	TP_printk("nic=%u host=%u epoch=%u",
		  __entry->nic, __entry->host, __entry->epoch)
);

TRACE_EVENT(hamlyn_peer_down,
	TP_PROTO(const struct hml_nic *nic, u32 host, u32 reason, bool up),

	TP_ARGS(nic, host, reason, up),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, host)
		__field(u32, reason)
		__field(u32, up)
	),

	TP_fast_assign(
		__entry->nic = hml_trace_nic(nic);
		__entry->host = host;
		__entry->reason = reason;
		__entry->up = up;
	),

	TP_printk("nic=%u host=%u reason=%s up=%u",
		  __entry->nic, __entry->host,
		  hml_show_peer_reason(__entry->reason), __entry->up)
);

DECLARE_EVENT_CLASS(hamlyn_peer_room,
	TP_PROTO(const struct hml_nic *nic, u32 host, u64 waiting),

	TP_ARGS(nic, host, waiting),

	TP_STRUCT__entry(
		__field(u64, waiting)
		__field(u32, nic)
		__field(u32, host)
	),

	TP_fast_assign(
		__entry->waiting = waiting;
		__entry->nic = hml_trace_nic(nic);
		__entry->host = host;
	),

	TP_printk("nic=%u host=%u waiting=%llu",
		  __entry->nic, __entry->host, __entry->waiting)
);

DEFINE_EVENT(hamlyn_peer_room, hamlyn_peer_stall,
	TP_PROTO(const struct hml_nic *nic, u32 host, u64 waiting),
	TP_ARGS(nic, host, waiting)
);

DEFINE_EVENT(hamlyn_peer_room, hamlyn_peer_resume,
	TP_PROTO(const struct hml_nic *nic, u32 host, u64 waiting),
	TP_ARGS(nic, host, waiting)
);

TRACE_EVENT(hamlyn_peer_refuse,
	TP_PROTO(const struct hml_nic *nic, u32 host, u32 verdict, u32 type),

	TP_ARGS(nic, host, verdict, type),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, host)
		__field(u32, verdict)
		__field(u32, type)
	),

	TP_fast_assign(
		__entry->nic = hml_trace_nic(nic);
		__entry->host = host;
		__entry->verdict = verdict;
		__entry->type = type;
	),

	TP_printk("nic=%u host=%u verdict=%s type=%u",
		  __entry->nic, __entry->host,
		  hml_show_verdict(__entry->verdict), __entry->type)
);

TRACE_EVENT(hamlyn_peer_drop,
	TP_PROTO(const struct hml_nic *nic, u32 host, u32 slot, u32 uid),

	TP_ARGS(nic, host, slot, uid),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, host)
		__field(u32, slot)
		__field(u32, uid)
	),

	TP_fast_assign(
		__entry->nic = hml_trace_nic(nic);
		__entry->host = host;
		__entry->slot = slot;
		__entry->uid = uid;
	),

	TP_printk("nic=%u host=%u slot=%u uid=%u",
		  __entry->nic, __entry->host, __entry->slot, __entry->uid)
);

TRACE_EVENT(hamlyn_peer_told,
	TP_PROTO(const struct hml_nic *nic, u32 host, u32 slot, u32 uid, u32 why),

	TP_ARGS(nic, host, slot, uid, why),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, host)
		__field(u32, slot)
		__field(u32, uid)
		__field(u32, why)
	),

	TP_fast_assign(
		__entry->nic = hml_trace_nic(nic);
		__entry->host = host;
		__entry->slot = slot;
		__entry->uid = uid;
		__entry->why = why;
	),

	TP_printk("nic=%u host=%u slot=%u uid=%u why=%s",
		  __entry->nic, __entry->host, __entry->slot, __entry->uid,
		  hml_show_watch_why(__entry->why))
);

/* ---- names ---- */

DECLARE_EVENT_CLASS(hamlyn_name,
	TP_PROTO(const struct hml_name *n),

	TP_ARGS(n),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, uid)
		__field(u32, waiting)
		__array(char, name, HAMLYN_MAX_NAME + 1)
	),

	TP_fast_assign(
		__entry->nic = n->line.device->index;
		__entry->uid = __kuid_val(n->uid);
		__entry->waiting = READ_ONCE(n->count);
		hml_trace_name(__entry->name, n->name, n->length);
	),

	TP_printk("nic=%u name=%s uid=%u waiting=%u",
		  __entry->nic, __entry->name, __entry->uid, __entry->waiting)
);

DEFINE_EVENT(hamlyn_name, hamlyn_name_listen,
	TP_PROTO(const struct hml_name *n),
	TP_ARGS(n)
);

DEFINE_EVENT(hamlyn_name, hamlyn_name_end,
	TP_PROTO(const struct hml_name *n),
	TP_ARGS(n)
);

TRACE_EVENT(hamlyn_call,
	TP_PROTO(const struct hml_device *d, u32 host, const char *name, u32 length, u32 uid,
		 int err),

	TP_ARGS(d, host, name, length, uid, err),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, host)
		__field(u32, uid)
		__field(int, err)
		__array(char, name, HAMLYN_MAX_NAME + 1)
	),

	TP_fast_assign(
		__entry->nic = d->index;
		__entry->host = host;
		__entry->uid = uid;
		__entry->err = err;
		hml_trace_name(__entry->name, name, length);
	),

	TP_printk("nic=%u host=%u name=%s uid=%u err=%d",
		  __entry->nic, __entry->host, __entry->name, __entry->uid, __entry->err)
);

TRACE_EVENT(hamlyn_call_take,
	TP_PROTO(const struct hml_call_side *side, const struct hml_wire_call *said, u32 uid,
		 u32 status),

	TP_ARGS(side, said, uid, status),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, host)
		__field(u32, uid)
		__field(u32, status)
		__array(char, name, HAMLYN_MAX_NAME + 1)
	),

	TP_fast_assign(
		__entry->nic = side->device->index;
		__entry->host = side->host;
		__entry->uid = uid;
		__entry->status = status;
		hml_trace_name(__entry->name, said->name, said->name_length);
	),

	TP_printk("nic=%u host=%u name=%s uid=%u status=%s",
		  __entry->nic, __entry->host, __entry->name, __entry->uid,
		  hml_show_answer(__entry->status))
);

TRACE_EVENT(hamlyn_call_answer,
	TP_PROTO(const struct hml_name *n, u64 number, bool waits),

	TP_ARGS(n, number, waits),

	TP_STRUCT__entry(
		__field(u64, number)
		__field(u32, nic)
		__field(u32, waits)
		__array(char, name, HAMLYN_MAX_NAME + 1)
	),

	TP_fast_assign(
		__entry->number = number;
		__entry->nic = n->line.device->index;
		__entry->waits = waits;
		hml_trace_name(__entry->name, n->name, n->length);
	),

	TP_printk("nic=%u name=%s number=%llu waits=%u",
		  __entry->nic, __entry->name, __entry->number, __entry->waits)
);

/* ---- NICs, contexts, areas, limits ---- */

DECLARE_EVENT_CLASS(hamlyn_nic,
	TP_PROTO(const struct hml_device *d),

	TP_ARGS(d),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, host)
		__field(u32, engine)
		__field(u32, engines)
		__field(u32, packet_size)
		__field(u32, max_slots)
	),

	TP_fast_assign(
		__entry->nic = d->index;
		__entry->host = d->nic.host;
		__entry->engine = d->engine_mode;
		__entry->engines = d->engine_count;
		__entry->packet_size = d->nic.packet_size;
		__entry->max_slots = d->nic.port.max_slots;
	),

	TP_printk("nic=%u host=%u engine=%s engines=%u packet_size=%u max_slots=%u",
		  __entry->nic, __entry->host,
		  hml_show_engine_mode(__entry->engine), __entry->engines,
		  __entry->packet_size, __entry->max_slots)
);

DEFINE_EVENT(hamlyn_nic, hamlyn_nic_create,
	TP_PROTO(const struct hml_device *d),
	TP_ARGS(d)
);

DEFINE_EVENT(hamlyn_nic, hamlyn_nic_delete,
	TP_PROTO(const struct hml_device *d),
	TP_ARGS(d)
);

TRACE_EVENT(hamlyn_nic_set,
	TP_PROTO(const struct hml_device *d, const struct hamlyn_nic_set *set),

	TP_ARGS(d, set),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, flags)
		__field(u32, state)
		__field(u32, watchdog_ms)
	),

	TP_fast_assign(
		__entry->nic = d->index;
		__entry->flags = set->flags;
		__entry->state = set->state;
		__entry->watchdog_ms = set->watchdog_ms;
	),

	TP_printk("nic=%u flags=%s state=%s watchdog_ms=%u",
		  __entry->nic, hml_show_nic_set(__entry->flags),
		  hml_show_nic_state(__entry->state), __entry->watchdog_ms)
);

DECLARE_EVENT_CLASS(hamlyn_context,
	TP_PROTO(const struct hml_context *c),

	TP_ARGS(c),

	TP_STRUCT__entry(
		__field(u32, nic)
		__field(u32, context)
		__field(u32, pid)
		__field(u32, uid)
		__array(char, comm, TASK_COMM_LEN)
	),

	TP_fast_assign(
		__entry->nic = c->device->index;
		__entry->context = c->id;
		__entry->pid = pid_nr(c->pid);
		__entry->uid = __kuid_val(c->uid);
		memcpy(__entry->comm, c->comm, TASK_COMM_LEN);
	),

	TP_printk("nic=%u context=%u pid=%u uid=%u comm=%s",
		  __entry->nic, __entry->context, __entry->pid, __entry->uid,
		  __entry->comm)
);

DEFINE_EVENT(hamlyn_context, hamlyn_context_open,
	TP_PROTO(const struct hml_context *c),
	TP_ARGS(c)
);

DEFINE_EVENT(hamlyn_context, hamlyn_context_close,
	TP_PROTO(const struct hml_context *c),
	TP_ARGS(c)
);

DECLARE_EVENT_CLASS(hamlyn_area,
	TP_PROTO(const struct hml_context *c, u32 area, u64 bytes),

	TP_ARGS(c, area, bytes),

	TP_STRUCT__entry(
		__field(u64, bytes)
		__field(u32, nic)
		__field(u32, context)
		__field(u32, area)
	),

	TP_fast_assign(
		__entry->bytes = bytes;
		__entry->nic = c->device->index;
		__entry->context = c->id;
		__entry->area = area;
	),

	TP_printk("nic=%u context=%u area=%u bytes=%llu",
		  __entry->nic, __entry->context, __entry->area,
		  __entry->bytes)
);

DEFINE_EVENT(hamlyn_area, hamlyn_area_add,
	TP_PROTO(const struct hml_context *c, u32 area, u64 bytes),
	TP_ARGS(c, area, bytes)
);

DEFINE_EVENT(hamlyn_area, hamlyn_area_alloc,
	TP_PROTO(const struct hml_context *c, u32 area, u64 bytes),
	TP_ARGS(c, area, bytes)
);

DEFINE_EVENT(hamlyn_area, hamlyn_area_remove,
	TP_PROTO(const struct hml_context *c, u32 area, u64 bytes),
	TP_ARGS(c, area, bytes)
);

TRACE_EVENT(hamlyn_quota,
	TP_PROTO(const struct hml_context *c, const char *what, u64 asked,
		 u64 used, u64 limit),

	TP_ARGS(c, what, asked, used, limit),

	TP_STRUCT__entry(
		__field(u64, asked)
		__field(u64, used)
		__field(u64, limit)
		__field(u32, nic)
		__field(u32, context)
		__field(u32, uid)
		__string(what, what)
	),

	TP_fast_assign(
		__entry->asked = asked;
		__entry->used = used;
		__entry->limit = limit;
		__entry->nic = c->device->index;
		__entry->context = c->id;
		__entry->uid = __kuid_val(c->uid);
		HML_COMPAT_ASSIGN_STR(what);
	),

	TP_printk("nic=%u context=%u uid=%u asked=%llu used=%llu limit=%llu what=%s",
		  __entry->nic, __entry->context, __entry->uid,
		  __entry->asked, __entry->used, __entry->limit,
		  __get_str(what))
);

#endif /* HML_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
