/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * Hamlyn network interface: ioctls, mapped layouts and the meaning of errnos.
 *
 * Section numbers "H 2.5" point into "An implementation of the Hamlyn
 * sender-managed interface architecture" (OSDI 1996).
 */
#ifndef _UAPI_LINUX_HAMLYN_H
#define _UAPI_LINUX_HAMLYN_H

#include <linux/types.h>
#include <linux/ioctl.h>

/* The <linux/types.h> that many distributions ship is older and lacks it. */
#ifndef __aligned_s64
#define __aligned_s64	__s64 __attribute__((aligned(8)))
#endif

/**
 * DOC: Calls and structures
 *
 * One open file of /dev/hamlynN is one *context*. It owns the areas, slots,
 * notification queues (NQs) and send termini made through it; they die with
 * the last reference to the open file. Ids are private to the context, slot
 * numbers are the NIC's.
 *
 * Every ioctl but KICK takes a pointer to a structure whose first member,
 * size, is the size of the structure as the caller knows it. An older,
 * shorter structure is accepted as long as size covers the first published
 * version; a longer one is accepted if all bytes unknown to the kernel are
 * zero. Members named reserved and undefined flag bits must be zero. On
 * success, calls with results write the structure back, at most size bytes
 * of it.
 */

/**
 * DOC: Errors
 *
 * The errnos mean the same in every call:
 *
 * EINVAL
 *	A structure is too short, a reserved member or unknown flag is not
 *	zero, or a value is outside the range that QUERY reports; for a
 *	TRB status: the request block is malformed (unknown flags, more
 *	fragments or inline bytes than fit the entry, fragment lengths that do
 *	not add up to the message length).
 * E2BIG
 *	A structure is longer than the kernel knows and the rest is not zero,
 *	or it is longer than a page; or an area is larger than QUERY's max_area.
 * EFAULT
 *	A user pointer, or a range to be wired, is not mapped or lacks the
 *	rights needed (writable unless READONLY); or the range is a shared
 *	mapping of a file on a disk and READONLY was not given.
 * ENOENT
 *	The context has no area, NQ, slot, terminus or watch with that id, or
 *	the object was destroyed during the call (WAIT, TERMINUS_BIND). (mmap()
 *	of an offset that names no object: EINVAL.)
 * ERANGE
 *	A view (base, length) does not lie inside its area, or a ticket's range
 *	not inside its slot's message area; for a TRB status: a fragment does not
 *	lie inside its send buffer area, or the message not inside its ticket's
 *	range.
 * ENXIO
 *	TRB status only: no send buffer area is bound to that tag.
 * EHOSTUNREACH
 *	TRB status, CALL: no host with that id is on the fabric.
 * EHOSTDOWN, EPROTONOSUPPORT, EUSERS, EADDRINUSE
 *	See struct hamlyn_call and struct hamlyn_listen.
 * ECANCELED
 *	TRB status only: the fabric took nothing for a second, or too little for
 *	ten, and TERMINUS_BIND or TICKET_DROP had to wait for the message. Part
 *	of it may have arrived: the receiver's accumulator of that entry then
 *	never comes to 0 until it is reset.
 * EIO
 *	TRB status only: a send buffer area has memory that cannot be read any
 *	more. Part of the message may have arrived, as for ECANCELED.
 * EBADF
 *	TICKET_IMPORT, or WATCH by ticket: the descriptor is not open, or is not
 *	a ticket. All calls but QUERY, STATS and AUDIT: the device was
 *	opened read-only. (KICK: ENOENT, since such a context has no terminus.)
 * ENOKEY
 *	TICKET_IMPORT: the slot has been destroyed or rekeyed since the ticket
 *	was made; TICKET_DROP and TRB status: the terminus has no imported ticket
 *	at that index.
 * EXDEV
 *	TICKET_IMPORT, WATCH by a ticket: the slot is on another host, where
 *	descriptors do not reach.
 * EACCES
 *	A writable view was requested of an area registered READONLY.
 * EPERM
 *	mmap() asked for rights that the region never grants (writing to an NQ
 *	ring or a terminus status, executing anything, a private mapping);
 *	STATS of the NIC, NIC_SET, a high priority or a weight above 1 without
 *	CAP_NET_ADMIN; open() from a network namespace other than the NIC's (for
 *	an io_uring worker, that of its process counts).
 * EBUSY
 *	Another object still uses this one (a slot or a terminus an area, a
 *	slot or a watch an NQ); remove that one first.
 * ENOMEM
 *	The kernel is out of memory, or wiring would exceed RLIMIT_MEMLOCK. A
 *	huge page (folio) counts whole against that limit, even if only part of
 *	it is wired.
 * EDQUOT
 *	Areas, NQs and termini would exceed the NIC's or the user's limit for
 *	kernel memory; or pinned memory, slots, termini or watches would exceed
 *	the user's limit, or eat into what is reserved for other users; or any
 *	object, including the open file, would exceed the user's share of the
 *	memory for kernel objects. HAMLYN_IOC_EXPLAINED() tells which limit, and how much is
 *	missing.
 *	CAP_SYS_RESOURCE overrides the user's limits. A destroyed object stays
 *	charged until it is unmapped and nothing else (a pipe, O_DIRECT) holds
 *	its pages.
 * ENOSPC
 *	The NIC has no free slot, the context no free id, or the terminus no
 *	room for another imported ticket; or users of this host have as many calls
 *	or watches of another one as there can be.
 * ETIMEDOUT
 *	WAIT: the deadline passed and nothing arrived.
 * EINTR
 *	WAIT, KICK: a signal arrived first. WAIT is restarted under SA_RESTART,
 *	since its deadline is absolute.
 * EAGAIN
 *	WATCH by key: the user has presented wrong keys faster than it may;
 *	fsync(), fdatasync(): there is more to send, call again. (Through
 *	io_submit(), and where QUERY does not say that they are doorbells, these two are EINVAL.)
 * EALREADY
 *	WATCH with a claim: the slot has been claimed before.
 * EMFILE, ENFILE
 *	TICKET_CREATE, LISTEN, CALL: no free descriptor.
 * ENODEV
 *	open(): the NIC is being removed. (A NIC that is open cannot be removed.)
 * ENOTTY
 *	The kernel does not know this ioctl, or a 32-bit program called it.
 *	32-bit programs are not supported: mapped memory holds 64-bit counters
 *	and keys that must be read and written in one access.
 *
 * A packet that the receiving side rejects (key, bounds, mode) is discarded
 * without telling its sender (H 2.2): it is counted, see STATS, and the
 * sender's own TRB status is 0. Anything else would be an oracle.
 */

#define HAMLYN_ABI_VERSION	1

#define HAMLYN_IOC_TYPE		0xC5

enum {
	HAMLYN_CMD_QUERY		= 0x00,
	HAMLYN_CMD_AREA_ADD		= 0x01,
	HAMLYN_CMD_AREA_ALLOC		= 0x02,
	HAMLYN_CMD_AREA_REMOVE		= 0x03,
	HAMLYN_CMD_NQ_CREATE		= 0x04,
	HAMLYN_CMD_NQ_DESTROY		= 0x05,
	HAMLYN_CMD_SLOT_CREATE		= 0x06,
	HAMLYN_CMD_SLOT_DESTROY		= 0x07,
	HAMLYN_CMD_SLOT_REKEY		= 0x08,
	HAMLYN_CMD_TERMINUS_CREATE	= 0x09,
	HAMLYN_CMD_TERMINUS_DESTROY	= 0x0a,
	HAMLYN_CMD_TERMINUS_BIND	= 0x0b,
	HAMLYN_CMD_KICK			= 0x0c,
	HAMLYN_CMD_WAIT			= 0x0d,
	HAMLYN_CMD_STATS		= 0x0e,
	HAMLYN_CMD_WATCH		= 0x0f,
	HAMLYN_CMD_UNWATCH		= 0x10,
	HAMLYN_CMD_TICKET_CREATE	= 0x11,
	HAMLYN_CMD_TICKET_IMPORT	= 0x12,
	HAMLYN_CMD_TICKET_DROP		= 0x13,
	HAMLYN_CMD_AUDIT		= 0x14,
	HAMLYN_CMD_NIC_SET		= 0x15,
	HAMLYN_CMD_LISTEN		= 0x16,
	HAMLYN_CMD_CALL			= 0x17,
};

/* The size is in the structure, not in the ioctl number: structures may grow. */
#define HAMLYN_IOC_QUERY	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_QUERY)
#define HAMLYN_IOC_AREA_ADD	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_AREA_ADD)
#define HAMLYN_IOC_AREA_ALLOC	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_AREA_ALLOC)
#define HAMLYN_IOC_AREA_REMOVE	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_AREA_REMOVE)
#define HAMLYN_IOC_NQ_CREATE	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_NQ_CREATE)
#define HAMLYN_IOC_NQ_DESTROY	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_NQ_DESTROY)
#define HAMLYN_IOC_SLOT_CREATE	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_SLOT_CREATE)
#define HAMLYN_IOC_SLOT_DESTROY	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_SLOT_DESTROY)
#define HAMLYN_IOC_SLOT_REKEY	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_SLOT_REKEY)
#define HAMLYN_IOC_TERMINUS_CREATE \
				_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_TERMINUS_CREATE)
#define HAMLYN_IOC_TERMINUS_DESTROY \
				_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_TERMINUS_DESTROY)
#define HAMLYN_IOC_TERMINUS_BIND \
				_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_TERMINUS_BIND)
/*
 * KICK is the hot call, so its argument is the terminus id itself, not a pointer.
 * It returns 0, or 1 if there is more to send: call again.
 */
#define HAMLYN_IOC_KICK		_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_KICK)
#define HAMLYN_IOC_WAIT		_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_WAIT)
#define HAMLYN_IOC_STATS	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_STATS)
#define HAMLYN_IOC_WATCH	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_WATCH)
#define HAMLYN_IOC_UNWATCH	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_UNWATCH)
#define HAMLYN_IOC_TICKET_CREATE \
				_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_TICKET_CREATE)
#define HAMLYN_IOC_TICKET_IMPORT \
				_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_TICKET_IMPORT)
#define HAMLYN_IOC_TICKET_DROP	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_TICKET_DROP)
#define HAMLYN_IOC_AUDIT	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_AUDIT)
#define HAMLYN_IOC_NIC_SET	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_NIC_SET)
#define HAMLYN_IOC_LISTEN	_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_LISTEN)
#define HAMLYN_IOC_CALL		_IO(HAMLYN_IOC_TYPE, HAMLYN_CMD_CALL)

/* Any call but KICK, with a struct hamlyn_explain for its argument: it says why it fails. */
#define HAMLYN_EXPLAINED	0x80
#define HAMLYN_IOC_EXPLAINED(call)	((call) | HAMLYN_EXPLAINED)

/* Ceilings of the format; a NIC's own limits, reported by QUERY, may be lower. */
#define HAMLYN_MAX_TAGS		4096	/* send buffer areas of a terminus (H 2.3) */
#define HAMLYN_MAX_FRAGMENTS	16
#define HAMLYN_MAX_METADATA	60	/* bytes of user metadata (H 2.2) */
#define HAMLYN_MAX_TICKETS	4096	/* imported tickets of a terminus */
#define HAMLYN_MAX_WEIGHT	64	/* of a terminus in its priority */
#define HAMLYN_MAX_NAME		63	/* bytes of a name that others can call */
#define HAMLYN_MAX_CALL		256	/* bytes that are said by a call, or by its answer */
#define HAMLYN_MAX_WATCHDOG_MS	(24U * 60 * 60 * 1000)
#define HAMLYN_MAX_MESSAGE	(1ULL << 40)
#define HAMLYN_MIN_PACKET	1024
#define HAMLYN_MAX_PACKET	65536

#define HAMLYN_NONE		0xffffffffU	/* "no NQ", "no area" */

/* ---- ioctl arguments ---------------------------------------------------- */

enum hamlyn_engine_mode {
	HAMLYN_ENGINE_INLINE	= 0,	/* the kicking caller does the work */
	HAMLYN_ENGINE_POLL	= 1,	/* polling kernel threads, kicked when asleep */
};

/* H 2.8: a NIC that is down still accepts packets, and discards them. */
enum hamlyn_nic_state {
	HAMLYN_NIC_UP		= 0,
	HAMLYN_NIC_DOWN		= 1,	/* set down by an administrator */
	HAMLYN_NIC_UNFED	= 2,	/* its watchdog was not fed in time */
};

/*
 * At present packets may be lost, repeated, damaged or reordered. Without this flag
 * the messages of one terminus arrive once, whole and in order.
 */
#define HAMLYN_FABRIC_LOSSY	(1U << 0)

#define HAMLYN_FABRIC_ID_BYTES	16

/*
 * Doorbells beside the ioctl KICK, which is always there: IORING_OP_URING_CMD (struct
 * hamlyn_uring_kick), and fsync() or fdatasync(), a KICK of all termini of the open file.
 */
#define HAMLYN_DOORBELL_URING	(1U << 0)
#define HAMLYN_DOORBELL_FSYNC	(1U << 1)	/* of a module built out of a kernel tree */

/**
 * struct hamlyn_query - HAMLYN_IOC_QUERY: what this NIC is and allows
 * @size: size of this structure
 * @abi_version: out: HAMLYN_ABI_VERSION of the kernel
 * @host: out: host id of the NIC on its fabric
 * @engine_mode: out: enum hamlyn_engine_mode
 * @packet_size: out: most payload bytes of one packet
 * @max_slots: out: slots of the NIC
 * @max_nq_entries: out: most entries of an NQ
 * @max_wq_entries: out: most entries of a work queue
 * @max_entry_size: out: most bytes of one work queue entry
 * @fabric: out: HAMLYN_FABRIC_*: what may happen to packets of this NIC
 * @max_area: out: most bytes of one area
 * @max_message: out: most payload bytes of one message
 * @state: out: enum hamlyn_nic_state
 * @engines: out: polling threads; 0 in inline mode
 * @max_tags: out: most send buffer areas of a terminus
 * @max_tickets: out: most imported tickets of a terminus
 * @doorbells: out: HAMLYN_DOORBELL_*: what rings besides the ioctl KICK
 * @reserved: out: 0
 * @fabric_id: out: random; NICs reach each other if and only if theirs is the same
 */
struct hamlyn_query {
	__u32 size;
	__u32 abi_version;
	__u32 host;
	__u32 engine_mode;
	__u32 packet_size;
	__u32 max_slots;
	__u32 max_nq_entries;
	__u32 max_wq_entries;
	__u32 max_entry_size;
	__u32 fabric;
	__aligned_u64 max_area;
	__aligned_u64 max_message;
	__u32 state;
	__u32 engines;
	__u32 max_tags;
	__u32 max_tickets;
	__u32 doorbells;
	__u32 reserved;
	__u8 fabric_id[HAMLYN_FABRIC_ID_BYTES];
};

/**
 * struct hamlyn_uring_kick - HAMLYN_IOC_KICK through an io_uring
 * @terminus: whose doorbell it is
 * @reserved: must be zero
 *
 * In the cmd field of an IORING_OP_URING_CMD with the descriptor of the device, and
 * HAMLYN_IOC_KICK in its cmd_op. A worker of the ring goes on with what cannot be sent at once:
 * the request completes with 0 when all that was posted has been sent, or an engine goes on with
 * it. Else with an errno of KICK; EINTR also if the ring is being closed.
 */
struct hamlyn_uring_kick {
	__u32 terminus;
	__u32 reserved[3];
};

#define HAMLYN_AREA_READONLY	(1U << 0)	/* ADD: may only be sent from */
#define HAMLYN_AREA_HUGE	(1U << 1)	/* ALLOC: huge pages if available */

/**
 * struct hamlyn_area_add - HAMLYN_IOC_AREA_ADD: wire a range of own memory
 * @size: size of this structure
 * @flags: HAMLYN_AREA_READONLY or 0
 * @addr: first byte; need not be page aligned: whole pages are wired
 * @length: bytes, at least 1
 * @area: out: id of the area
 * @reserved: must be zero
 * @page_size: out: bytes of the smallest page that any byte of the range is in;
 *	0: the kernel does not tell
 *
 * The pages stay wired until AREA_REMOVE or the end of the context, and are
 * charged to the RLIMIT_MEMLOCK of the user who wired them (to nobody if that
 * user has CAP_IPC_LOCK). The range is translated once: after munmap() the area
 * still names the old pages. The area is exactly the range, even where that is
 * only part of a huge page.
 */
struct hamlyn_area_add {
	__u32 size;
	__u32 flags;
	__aligned_u64 addr;
	__aligned_u64 length;
	__u32 area;
	__u32 reserved;
	__aligned_u64 page_size;
};

/**
 * struct hamlyn_area_alloc - HAMLYN_IOC_AREA_ALLOC: an area of kernel memory
 * @size: size of this structure
 * @flags: HAMLYN_AREA_HUGE or 0
 * @length: in: bytes wanted, at least 1; out: bytes allocated (whole pages)
 * @mmap_offset: out: offset for mmap() of the area, shared, read and write
 * @area: out: id of the area
 * @reserved: must be zero
 * @page_size: out: bytes of the pages it is made of. They are mapped as such if
 *	the mapping begins at a multiple of it. 0: the kernel does not tell
 *
 * The memory is zeroed, charged to the memory cgroup and to the NIC's limits but
 * not to RLIMIT_MEMLOCK, and not affected by fork, copy-on-write or munmap.
 *
 * HAMLYN_AREA_HUGE is a hint: if memory is short or fragmented, the area falls
 * back to small pages in part, and @page_size is that of the small ones. A length
 * of at least one huge page (2 MiB on x86) is rounded up to whole huge pages.
 */
struct hamlyn_area_alloc {
	__u32 size;
	__u32 flags;
	__aligned_u64 length;
	__aligned_u64 mmap_offset;
	__u32 area;
	__u32 reserved;
	__aligned_u64 page_size;
};

/**
 * struct hamlyn_id - AREA_REMOVE, NQ_DESTROY, SLOT_DESTROY, TERMINUS_DESTROY,
 *	UNWATCH
 * @size: size of this structure
 * @id: area, NQ, terminus or watch id, or slot number
 *
 * SLOT_DESTROY: once the call has returned, no packet can land any more.
 */
struct hamlyn_id {
	__u32 size;
	__u32 id;
};

/**
 * struct hamlyn_nq_create - HAMLYN_IOC_NQ_CREATE: a notification queue (H 2.6)
 * @size: size of this structure
 * @entries: entries, a power of two, 2 to max_nq_entries. One of them is reserved
 *	for the overrun report, so @entries - 1 notifications fit.
 * @nq: out: id of the NQ
 * @entries_offset: out: where in the ring mapping entry 0 is
 * @ring_offset: out: offset for mmap() of the ring, shared, read only
 * @ring_length: out: bytes of that mapping
 * @control_offset: out: offset for mmap() of the control page, shared, rw
 * @control_length: out: bytes of that mapping
 */
struct hamlyn_nq_create {
	__u32 size;
	__u32 entries;
	__u32 nq;
	__u32 entries_offset;
	__aligned_u64 ring_offset;
	__aligned_u64 ring_length;
	__aligned_u64 control_offset;
	__aligned_u64 control_length;
};

/*
 * H 2.7. In the paranoid modes every message needs a metadata entry, whose key
 * replaces the slot's and whose low and high limits apply in addition to the
 * slot's bounds. The application sets them in its own memory, without a call.
 */
enum hamlyn_slot_mode {
	HAMLYN_SLOT_NORMAL		= 0,
	HAMLYN_SLOT_PARANOID		= 1,
	/*
	 * One message, then none until the application arms the entry again.
	 * HAMLYN_TRB_NO_NOTIFY messages never complete, so they are rejected.
	 */
	HAMLYN_SLOT_PARANOID_ONE_SHOT	= 2,
};

#define HAMLYN_SLOT_KEY_GIVEN	(1U << 0)	/* take @key instead of a new one */
/*
 * Only senders that have imported a ticket as a file descriptor are admitted;
 * knowing a key, even the slot's own, is not enough (H 6.5).
 */
#define HAMLYN_SLOT_TICKET_ONLY	(1U << 1)

/**
 * struct hamlyn_slot_create - HAMLYN_IOC_SLOT_CREATE: a slot (H 2.2)
 * @size: size of this structure
 * @flags: HAMLYN_SLOT_*
 * @mode: enum hamlyn_slot_mode; the paranoid modes need metadata entries
 * @area: area that receives the messages
 * @base: first byte of the message area within @area
 * @length: bytes of the message area; offsets in packets count from @base
 * @meta_area: area that holds the metadata entries, or HAMLYN_NONE
 * @meta_count: number of metadata entries; 0 if and only if there is no
 *	@meta_area
 * @meta_base: where in @meta_area entry 0 is; entry 0's address must be a
 *	multiple of 128; 0 without @meta_area
 * @nq: NQ for the slot's notifications, or HAMLYN_NONE for none
 * @slot: out: slot number
 * @key: in: the key, with HAMLYN_SLOT_KEY_GIVEN; out: the slot's key
 *
 * Without metadata entries there is nowhere to put metadata or to count
 * packets. Such a slot accepts single-packet messages that are not part of a
 * group receive, fast ones, and HAMLYN_TRB_NO_NOTIFY messages of any length.
 */
struct hamlyn_slot_create {
	__u32 size;
	__u32 flags;
	__u32 mode;
	__u32 area;
	__aligned_u64 base;
	__aligned_u64 length;
	__u32 meta_area;
	__u32 meta_count;
	__aligned_u64 meta_base;
	__u32 nq;
	__u32 slot;
	__aligned_u64 key;
};

/**
 * struct hamlyn_slot_rekey - HAMLYN_IOC_SLOT_REKEY: revoke the slot's key
 * @size: size of this structure
 * @slot: slot number
 * @flags: HAMLYN_SLOT_KEY_GIVEN or 0
 * @reserved: must be zero
 * @key: in: the new key, with HAMLYN_SLOT_KEY_GIVEN; out: the new key
 *
 * Once the call has returned, no packet with the old key can land any more.
 */
struct hamlyn_slot_rekey {
	__u32 size;
	__u32 slot;
	__u32 flags;
	__u32 reserved;
	__aligned_u64 key;
};

/*
 * Priorities are strict: while a terminus of a higher priority has packets, none
 * of a lower one leaves. Within a priority the users take turns, and the termini
 * of one user share by weight, in bytes.
 */
enum hamlyn_priority {
	HAMLYN_PRIORITY_NORMAL	= 0,
	HAMLYN_PRIORITY_BULK	= 1,	/* below normal */
	HAMLYN_PRIORITY_HIGH	= 2,	/* above normal; needs CAP_NET_ADMIN */
	HAMLYN_PRIORITIES	= 3,
};

/**
 * struct hamlyn_terminus_create - HAMLYN_IOC_TERMINUS_CREATE (H 2.3)
 * @size: size of this structure
 * @entries: work queue entries, a power of two, 2 to max_wq_entries
 * @entry_size: bytes of an entry, a power of two, 128 to max_entry_size
 * @terminus: out: id of the terminus
 * @entries_offset: out: where in the work queue mapping entry 0 is
 * @reserved: must be zero
 * @wq_offset: out: offset for mmap() of the work queue, shared, rw
 * @wq_length: out: bytes of that mapping
 * @status_offset: out: offset for mmap() of the status, shared, read only
 * @status_length: out: bytes of that mapping
 * @priority: enum hamlyn_priority
 * @weight: share among the termini of its user and priority, 1 to
 *	HAMLYN_MAX_WEIGHT; 0 means 1, more than 1 needs CAP_NET_ADMIN
 */
struct hamlyn_terminus_create {
	__u32 size;
	__u32 entries;
	__u32 entry_size;
	__u32 terminus;
	__u32 entries_offset;
	__u32 reserved;
	__aligned_u64 wq_offset;
	__aligned_u64 wq_length;
	__aligned_u64 status_offset;
	__aligned_u64 status_length;
	__u32 priority;
	__u32 weight;
};

/**
 * struct hamlyn_terminus_bind - HAMLYN_IOC_TERMINUS_BIND: a send buffer area
 * @size: size of this structure
 * @terminus: terminus id
 * @tag: send buffer tag, 0 to QUERY's max_tags - 1
 * @area: area id, or HAMLYN_NONE to unbind the tag
 * @base: first byte of the send buffer area within @area; 0 to unbind
 * @length: its bytes, at least 1; 0 to unbind
 *
 * Returns once no message is being read under the old binding any more.
 */
struct hamlyn_terminus_bind {
	__u32 size;
	__u32 terminus;
	__u32 tag;
	__u32 area;
	__aligned_u64 base;
	__aligned_u64 length;
};

/**
 * struct hamlyn_wait - HAMLYN_IOC_WAIT: sleep until an NQ has an entry
 * @size: size of this structure
 * @nq: NQ id
 * @position: sequence position that the caller wants to see filled (the
 *	consumer index that it would read next)
 * @flags: must be zero
 * @deadline_ns: absolute timeout on CLOCK_MONOTONIC of the caller's time
 *	namespace, in nanoseconds; negative: none; a time in the past polls once
 */
struct hamlyn_wait {
	__u32 size;
	__u32 nq;
	__u32 position;
	__u32 flags;
	__aligned_s64 deadline_ns;
};

/* Why a receiving NIC discarded a packet. */
enum hamlyn_reject {
	HAMLYN_REJECT_SLOT	= 0,	/* no such slot */
	HAMLYN_REJECT_KEY	= 1,	/* wrong key */
	HAMLYN_REJECT_BOUNDS	= 2,	/* outside the message area */
	HAMLYN_REJECT_METADATA	= 3,	/* no such metadata entry */
	HAMLYN_REJECT_FORMAT	= 4,	/* malformed packet */
	HAMLYN_REJECT_ONE_SHOT	= 5,	/* metadata entry is not armed */
	HAMLYN_REJECT_TICKET	= 6,	/* the slot demands an imported ticket */
	HAMLYN_REJECT_DOWN	= 7,	/* one of the NICs is down */
	HAMLYN_REJECT_REASONS	= 8,
};

#define HAMLYN_STATS_REASONS	16	/* with room for future reasons, 0 until then */

enum hamlyn_stats_kind {
	HAMLYN_STATS_NIC	= 0,	/* all of the NIC; needs CAP_NET_ADMIN */
	HAMLYN_STATS_SLOT	= 1,	/* received through own slot @id */
	HAMLYN_STATS_TERMINUS	= 2,	/* sent through own terminus @id */
};

/**
 * struct hamlyn_stats - HAMLYN_IOC_STATS: counters
 * @size: size of this structure
 * @kind: enum hamlyn_stats_kind
 * @id: slot number or terminus id
 * @reserved: must be zero
 * @messages: out: messages that left (NIC, terminus)
 * @packets: out: packets that left (NIC, terminus)
 * @bytes: out: payload bytes that left (NIC, terminus)
 * @failed: out: messages refused with a TRB status (NIC, terminus)
 * @notifications: out: NQ entries appended (NIC)
 * @overruns: out: notifications lost to a full NQ (NIC, slot)
 * @kicks: out: KICK calls (NIC, terminus)
 * @rejects: out: packets discarded, by enum hamlyn_reject (NIC, slot)
 *
 * Counters that a kind does not have are 0. A NIC's @notifications, @overruns and
 * @rejects also read 0 without CAP_NET_ADMIN in the initial user namespace;
 * otherwise root in a container could see which of its guesses was a key.
 *
 * A terminus does not tell what became of its packets: that would be the oracle
 * that silent discard avoids. A slot counts only what goes wrong: counting good
 * packets would make every sender write to one cache line.
 */
struct hamlyn_stats {
	__u32 size;
	__u32 kind;
	__u32 id;
	__u32 reserved;
	__aligned_u64 messages;
	__aligned_u64 packets;
	__aligned_u64 bytes;
	__aligned_u64 failed;
	__aligned_u64 notifications;
	__aligned_u64 overruns;
	__aligned_u64 kicks;
	__aligned_u64 rejects[HAMLYN_STATS_REASONS];
};

#define HAMLYN_WATCH_TICKET	(1U << 0)	/* @key is a ticket's descriptor */
#define HAMLYN_WATCH_CLAIM	(1U << 1)	/* and claim the slot, which only one can */

/**
 * struct hamlyn_watch - HAMLYN_IOC_WATCH: report when a slot is gone (H 6.3)
 * @size: size of this structure
 * @flags: HAMLYN_WATCH_* or 0
 * @host: host of the slot
 * @slot: slot number
 * @key: a key that opens it, as in a ticket; or the descriptor of a ticket, which
 *	names host and slot: these and @meta_index must be zero then
 * @meta_index: in the paranoid modes, the metadata entry whose key it is;
 *	else 0
 * @nq: own NQ that receives the entry
 * @cookie: chosen by the caller to identify the watch
 * @watch: out: id of the watch, for UNWATCH
 * @reserved: must be zero
 *
 * Exactly one entry with HAMLYN_NQE_PEER_GONE arrives in @nq when the slot is
 * destroyed (however its owner ended) or rekeyed, its NIC is set down, or its
 * host leaves the fabric. If the NQ is full at that time, the entry arrives
 * later. A slot that does not exist, or that the key does not open, counts as
 * gone already: the entry arrives at once, and the call counts as a rejected
 * packet does. After UNWATCH no entry arrives. A watch that has reported keeps
 * its id until UNWATCH.
 *
 * A slot can be claimed once in its lifetime, even if the claiming watch has
 * ended. EALREADY goes to a caller that has a key that opens the slot but comes
 * second: if a key meant for one was given to two by mistake, the second learns
 * of it that way.
 *
 * While the user has presented more wrong keys than it may, a key is not even
 * looked at: EAGAIN. A ticket's descriptor is no guess and is never held back. A
 * slot that does not exist takes nothing from the user's allowance: nothing opens
 * it. The call never waits.
 */
struct hamlyn_watch {
	__u32 size;
	__u32 flags;
	__u32 host;
	__u32 slot;
	__aligned_u64 key;
	__u32 meta_index;
	__u32 nq;
	__aligned_u64 cookie;
	__u32 watch;
	__u32 reserved;
};

/**
 * struct hamlyn_listen - HAMLYN_IOC_LISTEN: take a name, by which others call
 * @size: size of this structure
 * @flags: must be zero
 * @name_length: bytes of @name, 1 to HAMLYN_MAX_NAME
 * @fd: out: descriptor, close-on-exec, of those who call
 * @name: printable ASCII, without blanks and '/', of which the NIC has no other; not
 *	looked at behind @name_length
 *
 * read() of the descriptor takes the next call: struct hamlyn_caller, and what it says. write()
 * answers one: struct hamlyn_answer, and what is said. poll() tells when there is one to be
 * read, and by POLLHUP that the name has ended. None of them waits: EAGAIN. ECONNRESET: whom
 * write() would answer has given up. When the last copy of the descriptor is closed, or the name
 * ended, those who wait are told.
 *
 * At a name 1024 calls may wait to be answered: of one host 256, of one of its users 64, and
 * never more than they leave free. A user has 256 names at most. Here and below it has subordinate
 * uids with it, and a container that root has made is one.
 */
struct hamlyn_listen {
	__u32 size;
	__u32 flags;
	__u32 name_length;
	__s32 fd;
	char name[HAMLYN_MAX_NAME + 1];
};

/**
 * struct hamlyn_caller - who calls, or answers
 * @number: of the call, in its answer; who answers: 0
 * @host: whose kernel knows who it is; HAMLYN_NONE: this one
 * @user: the user, as that host claims
 * @uid: the user, as this host's administrator maps it; by default the overflow uid (65534)
 * @length: bytes that are said, behind this structure
 * @error: 0; or why there is no answer: ENOENT, nobody has that name; EUSERS, too many calls
 *	wait there; ECONNRESET, whoever had the name, or its host, is gone
 * @reserved: 0
 */
struct hamlyn_caller {
	__aligned_u64 number;
	__u32 host;
	__u32 user;
	__u32 uid;
	__u32 length;
	__s32 error;
	__u32 reserved;
};

#define HAMLYN_ANSWER_END	(1U << 0)	/* none: the name ends; all else is zero */

/**
 * struct hamlyn_answer - what write() of a name's descriptor begins with
 * @number: which call
 * @flags: 0 or HAMLYN_ANSWER_END
 * @length: bytes that are said, behind this structure
 */
struct hamlyn_answer {
	__aligned_u64 number;
	__u32 flags;
	__u32 length;
};

/**
 * struct hamlyn_call - HAMLYN_IOC_CALL: call whoever has a name
 * @size: size of this structure
 * @flags: must be zero
 * @host: at which host; the NIC's own is one
 * @name_length: bytes of @name
 * @said: what to say
 * @length: bytes of it, up to HAMLYN_MAX_CALL
 * @fd: out: descriptor, close-on-exec, of the answer
 * @name: see struct hamlyn_listen
 *
 * read() of the descriptor gives the answer, struct hamlyn_caller and what is said, or EAGAIN
 * if there is none yet; poll() tells when there is. It comes once. Closing the descriptor gives
 * the call up. Nobody waits for another host in any of this.
 *
 * EHOSTUNREACH: there is no such host. EHOSTDOWN: it cannot be reached now. EPROTONOSUPPORT: it
 * is of a version without names. ENOENT and EUSERS as in struct hamlyn_caller, if that is known
 * at once. EDQUOT: a user has 256 calls, whatever has become of them; one that was given up is
 * one of them until the other host is told.
 */
struct hamlyn_call {
	__u32 size;
	__u32 flags;
	__u32 host;
	__u32 name_length;
	__aligned_u64 said;
	__u32 length;
	__s32 fd;
	char name[HAMLYN_MAX_NAME + 1];
};

/**
 * struct hamlyn_ticket_create - HAMLYN_IOC_TICKET_CREATE: ticket as descriptor
 * @size: size of this structure
 * @flags: must be zero
 * @slot: own slot
 * @fd: out: descriptor, close-on-exec, to be passed on with SCM_RIGHTS
 * @base: first byte of the message area that the ticket covers
 * @length: bytes from there on; 0: up to the end
 *
 * Such a ticket cannot be forged or guessed. REKEY voids all tickets of a slot.
 */
struct hamlyn_ticket_create {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__s32 fd;
	__aligned_u64 base;
	__aligned_u64 length;
};

/**
 * struct hamlyn_ticket_import - HAMLYN_IOC_TICKET_IMPORT: make it usable
 * @size: size of this structure
 * @terminus: own terminus, whose key table the ticket goes to
 * @fd: the descriptor; may be closed afterwards
 * @index: out: its index in the key table, for hamlyn_trb.ticket
 * @host: out: host of the slot
 * @slot: out: slot number
 * @base: out: first byte that the ticket covers
 * @length: out: bytes from there on
 */
struct hamlyn_ticket_import {
	__u32 size;
	__u32 terminus;
	__s32 fd;
	__u32 index;
	__u32 host;
	__u32 slot;
	__aligned_u64 base;
	__aligned_u64 length;
};

/**
 * struct hamlyn_ticket_drop - HAMLYN_IOC_TICKET_DROP: forget an imported ticket
 * @size: size of this structure
 * @terminus: own terminus
 * @index: index in its key table
 * @reserved: must be zero
 */
struct hamlyn_ticket_drop {
	__u32 size;
	__u32 terminus;
	__u32 index;
	__u32 reserved;
};

/**
 * struct hamlyn_audit_entry - a packet that was discarded
 * @time_ns: when, CLOCK_MONOTONIC of the initial time namespace, nanoseconds
 * @sequence: number of the entry; a gap means that entries were overwritten
 * @offset: from the packet's header
 * @length: from the packet's header
 * @slot: slot number that the packet named
 * @reason: enum hamlyn_reject
 * @source: host it came from
 * @pid: process that created the terminus, or called WATCH, in the reader's pid
 *	namespace; 0 if it has ended or is not visible there
 * @uid: its user, in the reader's user namespace
 *
 * The key is left out: it may be a valid one of another slot.
 */
struct hamlyn_audit_entry {
	__aligned_u64 time_ns;
	__aligned_u64 sequence;
	__aligned_u64 offset;
	__u32 length;
	__u32 slot;
	__u32 reason;
	__u32 source;
	__u32 pid;
	__u32 uid;
};

/**
 * struct hamlyn_audit - HAMLYN_IOC_AUDIT: last rejects at the context's slots
 * @size: size of this structure
 * @count: in: room at @entries, in entries; out: entries written
 * @sequence: in: first entry of interest; out: where to continue
 * @entries: address of an array of struct hamlyn_audit_entry
 *
 * The kernel keeps the last 32 rejects of senders that had the key, and of the others
 * the last 8 of each of four groups of users, so that a sender without a key cannot push
 * out the former. A call writes at most 64.
 */
struct hamlyn_audit {
	__u32 size;
	__u32 count;
	__aligned_u64 sequence;
	__aligned_u64 entries;
};

#define HAMLYN_NIC_SET_STATE	(1U << 0)	/* take @state */
#define HAMLYN_NIC_SET_WATCHDOG	(1U << 1)	/* take @watchdog_ms */
#define HAMLYN_NIC_FEED		(1U << 2)	/* feed the watchdog */

/**
 * struct hamlyn_nic_set - HAMLYN_IOC_NIC_SET: up, down, watchdog (H 2.8)
 * @size: size of this structure
 * @flags: what to do: HAMLYN_NIC_SET_*, HAMLYN_NIC_FEED
 * @state: HAMLYN_NIC_UP or HAMLYN_NIC_DOWN
 * @watchdog_ms: the NIC discards packets unless it is fed at least that often;
 *	0: no watchdog. Setting it feeds it.
 *
 * @state and @watchdog_ms must be valid even where @flags does not take them: 0 is.
 *
 * Needs CAP_NET_ADMIN in the user namespace of the NIC's network namespace.
 */
struct hamlyn_nic_set {
	__u32 size;
	__u32 flags;
	__u32 state;
	__u32 watchdog_ms;
};

#define HAMLYN_EXPLAIN_BYTES	256

/**
 * struct hamlyn_explain - HAMLYN_IOC_EXPLAINED(): make a call that says why it fails
 * @size: size of this structure
 * @text_size: bytes at @text, at least 1; a longer text is truncated.
 *	HAMLYN_EXPLAIN_BYTES are always enough
 * @argument: address of the call's own argument
 * @text: address of a buffer of the caller's
 *
 * The same as the call itself, with the same result. Where that is an errno, the kernel has
 * written to @text what was wrong and what is allowed, NUL-terminated; empty if there is
 * nothing to say beyond the errno. EFAULT if it could not be written. As the buffer belongs to
 * the call, threads that share the open file do not see each other's.
 */
struct hamlyn_explain {
	__u32 size;
	__u32 text_size;
	__aligned_u64 argument;
	__aligned_u64 text;
};

/* ---- mapped memory ------------------------------------------------------ */

/**
 * DOC: Mapped memory
 *
 * Host byte order. "Bn" are the pairs of Documentation/barriers.rst. All
 * counters run freely modulo 2^32; an index is the counter modulo the
 * number of entries.
 */

#define HAMLYN_TRB_FAST		(1U << 0)	/* word goes to the NQ entry */
#define HAMLYN_TRB_NO_NOTIFY	(1U << 1)	/* move data: do not count, do not notify */
#define HAMLYN_TRB_QUIET	(1U << 2)	/* notify, but do not wake anybody */
#define HAMLYN_TRB_TICKET	(1U << 3)	/* use the imported ticket @ticket */
#define HAMLYN_TRB_FLAGS \
	(HAMLYN_TRB_FAST | HAMLYN_TRB_NO_NOTIFY | HAMLYN_TRB_QUIET | \
	 HAMLYN_TRB_TICKET)

#define HAMLYN_META_FAST	0xffffffffU	/* "all 1's": fast mode (H 2.7) */

/**
 * struct hamlyn_trb - transmission request block: head of a work queue entry
 * @host: destination host id
 * @slot: destination slot
 * @key: protection key
 * @offset: first byte within the destination's message area
 * @length: payload bytes, at most HAMLYN_MAX_MESSAGE
 * @delta: initial value Y of the packet counter (H 2.5): 0 for an ordinary
 *	message, this sender's share of 2^32 in a group receive
 * @meta_index: destination metadata entry; HAMLYN_META_FAST with
 *	HAMLYN_TRB_FAST
 * @word: fast mode's one word of metadata, else 0
 * @meta_length: bytes of user metadata, at most HAMLYN_MAX_METADATA
 * @fragments: number of fragments; 0: the payload is in the entry (direct I/O)
 * @flags: HAMLYN_TRB_*
 * @ticket: with HAMLYN_TRB_TICKET: index in the terminus' key table. Host and
 *	slot are the ticket's, and the message must be inside its range; @key
 *	matters in the paranoid modes only. Else 0.
 * @sequence: position of the entry + 1: the entry is posted. Store-release,
 *	after the rest of the entry is written (B1); then a full barrier and a
 *	look at need_kick (B2).
 *
 * Written by the application. The NIC copies it once and uses nothing but its
 * copy. It takes the entries in order, each once its sequence is there: the cache
 * line that says so is the one the NIC needs anyway.
 *
 * After the TRB the entry has, if meta_length is not 0, 64 bytes that begin
 * with the metadata; then the payload, or the fragments.
 *
 * Differences from H 2.3 and Table 1: offset and length are 64 bits wide, slot
 * and metadata index 32, for today's memories; metadata always travels by direct
 * I/O, as the paper recommends in hindsight (H 6.2); the fast mode word has a
 * field of its own, 64 bits wide.
 */
struct hamlyn_trb {
	__u32 host;
	__u32 slot;
	__aligned_u64 key;
	__aligned_u64 offset;
	__aligned_u64 length;
	__u32 delta;
	__u32 meta_index;
	__aligned_u64 word;
	__u16 meta_length;
	__u16 fragments;
	__u32 flags;
	__u32 ticket;
	__u32 sequence;
};

#define HAMLYN_TRB_METADATA_SPACE	64	/* reserved after a TRB for metadata */

/**
 * struct hamlyn_fragment - part of a payload that is fetched (DMA in H 2.3)
 * @tag: send buffer tag
 * @reserved: must be zero
 * @offset: first byte within the send buffer area
 * @length: bytes
 *
 * Written by the application with the TRB (B1).
 */
struct hamlyn_fragment {
	__u32 tag;
	__u32 reserved;
	__aligned_u64 offset;
	__aligned_u64 length;
};

/**
 * struct hamlyn_wq_control - first bytes of the work queue mapping
 * @producer: entries posted so far, for monitoring only: written by the
 *	application, not used by the NIC
 * @reserved: unused
 */
struct hamlyn_wq_control {
	__u32 producer;
	__u32 reserved[15];
};

/**
 * struct hamlyn_terminus_status - first bytes of the status mapping
 * @need_kick: not 0: nobody polls this work queue, call KICK. Written by the
 *	NIC: set, full barrier, look at the next entry (B2). In a cache line of its
 *	own, written only when the engine goes to sleep or wakes up.
 * @reserved: unused
 * @completed: entries done: their memory and their buffers may be reused.
 *	Written by the NIC, store-release after the entry's status (B6).
 * @failed: entries that ended with a status other than 0. Once not 0 it never
 *	is again: 2^32 - 1 is followed by 1. Written before completed (B6)
 * @reserved2: unused
 *
 * Followed by one __s32 per entry: 0 or the negative errno with which the
 * entry's last message ended; valid once completed has passed the entry (B6).
 */
struct hamlyn_terminus_status {
	__u32 need_kick;
	__u32 reserved[15];
	__u32 completed;
	__u32 failed;
	__u32 reserved2[14];
};

#define HAMLYN_PACKET_VERSION	1

#define HAMLYN_PACKET_SINGLE	(1U << 0)	/* the message's only packet */
#define HAMLYN_PACKET_FAST	(1U << 1)	/* word instead of metadata entry */
#define HAMLYN_PACKET_NO_NOTIFY	(1U << 2)	/* complete silently */
#define HAMLYN_PACKET_QUIET	(1U << 3)	/* wake nobody for it */
#define HAMLYN_PACKET_TICKET	(1U << 4)	/* ticket_key is valid */
#define HAMLYN_PACKET_FLAGS \
	(HAMLYN_PACKET_SINGLE | HAMLYN_PACKET_FAST | HAMLYN_PACKET_NO_NOTIFY | \
	 HAMLYN_PACKET_QUIET | HAMLYN_PACKET_TICKET)

/**
 * struct hamlyn_packet - packet header (H Table 1)
 * @version: HAMLYN_PACKET_VERSION
 * @flags: HAMLYN_PACKET_*
 * @meta_length: metadata bytes, first packet only
 * @length: payload bytes of this packet
 * @host: destination host id
 * @source: source host id, set by the sending NIC
 * @slot: destination slot
 * @meta_index: destination metadata entry, HAMLYN_META_FAST in fast mode
 * @key: protection key
 * @offset: first byte of this packet within the message area
 * @word: fast mode word
 * @delta: value for the packet accumulator (H 2.5)
 * @reserved: must be zero
 * @ticket_key: the slot's other key, which no application ever sees; with
 *	HAMLYN_PACKET_TICKET, set by the sending NIC from an imported ticket
 *
 * Host byte order inside a host, network byte order on a wire, where metadata
 * and then the payload follow it. Beyond Table 1: a wider offset, the version,
 * the source host, and HAMLYN_PACKET_SINGLE. Delta 0 does not imply a single
 * packet: if a group member's share Y happens to equal the number of its other
 * packets, its last packet has delta 0 as well.
 */
struct hamlyn_packet {
	__u8 version;
	__u8 flags;
	__u16 meta_length;
	__u32 length;
	__u32 host;
	__u32 source;
	__u32 slot;
	__u32 meta_index;
	__aligned_u64 key;
	__aligned_u64 offset;
	__aligned_u64 word;
	__u32 delta;
	__u32 reserved;
	__aligned_u64 ticket_key;
};

#define HAMLYN_METADATA_SIZE	128

#define HAMLYN_META_ARMED	(1U << 31)	/* written by the application */
#define HAMLYN_META_COMPLETE	(1U << 30)	/* the NIC's: last packet has arrived */

/**
 * struct hamlyn_metadata - metadata entry (H Table 2), in wired user memory
 * @user: metadata that came with the message. Written by the NIC before the
 *	notification (B3).
 * @accumulator: packet accumulator modulo 2^32. Added to atomically by the
 *	NIC; zeroed by the application before the entry is first used.
 * @key: paranoid mode protection key; 0: nobody is admitted; written by the
 *	application
 * @low: paranoid mode message area low limit: offset in the message area of the
 *	first byte that may be written; written by the application
 * @high: paranoid mode message area high limit: offset of the first byte after
 *	those that may be written; written by the application
 * @receive_class: the library's receive class pointer; the NIC ignores it
 * @meta_length: bytes written to @user. Written by the NIC with it (B3); a
 *	message without metadata leaves both as they were.
 * @state: paranoid one-shot mode: HAMLYN_META_ARMED admits one message; written
 *	by the application, store-release after the rest of the entry (B10). The
 *	NIC counts packets in progress in the low bits, and writes 0 before it
 *	notifies (B3): from then on it writes nothing until the next arming. A
 *	single-packet message is admitted only if no other packet is in progress.
 * @length: paranoid one-shot mode: payload bytes of the message so far, modulo
 *	2^32. Added to by the NIC before it writes @state; zeroed by the application
 *	before it arms the entry. It says how much arrived, not where: a sender can
 *	leave gaps, which keep their old contents.
 * @reserved: must be zero
 *
 * The NIC trusts nothing in here: a wrong value hurts only the owner.
 */
struct hamlyn_metadata {
	__u8 user[HAMLYN_MAX_METADATA];
	__u32 accumulator;
	__aligned_u64 key;
	__aligned_u64 low;
	__aligned_u64 high;
	__aligned_u64 receive_class;
	__u32 meta_length;
	__u32 state;
	__u32 length;
	__u32 reserved[5];
};

#define HAMLYN_NQE_FAST		(1U << 0)	/* data is the fast mode word */
#define HAMLYN_NQE_SINGLE	(1U << 1)	/* a single-packet message */
#define HAMLYN_NQE_OVERRUN	(1U << 2)	/* no message: the queue was full */
#define HAMLYN_NQE_VOID		(1U << 3)	/* no message: its sender died while filling it */
#define HAMLYN_NQE_PEER_GONE	(1U << 4)	/* no message: a watch reports; data: its cookie */

/**
 * struct hamlyn_nq_entry - notification queue entry (H Table 3)
 * @data: where in the metadata area's area the metadata entry is, or the fast
 *	mode word
 * @slot: slot the message came through
 * @index: notification index: the metadata entry's number, HAMLYN_META_FAST
 *	in fast mode
 * @source: host the message came from
 * @length: payload bytes of the packet that completed the message; of the
 *	whole message when HAMLYN_NQE_SINGLE is set
 * @flags: HAMLYN_NQE_*
 * @sequence: position of the entry + 1. It replaces the paper's wrap flag and
 *	says more: a reader that expects position p finds p + 1 here if the entry
 *	is there, and anything else if it is not.
 *
 * Written by the NIC, the sequence last, store-release (B3); read by the
 * application, the sequence first, load-acquire. The NIC does not reuse an
 * entry until the consumer index has passed it (B4).
 */
struct hamlyn_nq_entry {
	__aligned_u64 data;
	__u32 slot;
	__u32 index;
	__u32 source;
	__u32 length;
	__u32 flags;
	__u32 sequence;
};

/**
 * struct hamlyn_nq_ring - first bytes of the NQ ring mapping
 * @entries: number of entries; constant
 * @lost: notifications lost to overruns so far. Written by the NIC.
 * @reserved: unused
 */
struct hamlyn_nq_ring {
	__u32 entries;
	__u32 lost;
	__u32 reserved[14];
};

/**
 * struct hamlyn_nq_control - NQ control page
 * @consumer: entries taken so far. Written by the application,
 *	store-release after the entry has been read (B4).
 * @reserved: unused
 */
struct hamlyn_nq_control {
	__u32 consumer;
	__u32 reserved[15];
};

#endif /* _UAPI_LINUX_HAMLYN_H */
