/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The NIC's objects, shared by the kernel module and the library's embedded
 * device; what is done to them is in the headers beside. Barrier pairs Bn:
 * Documentation/barriers.rst.
 */
#ifndef HML_CORE_NIC_H
#define HML_CORE_NIC_H

#include "port.h"

/**
 * struct hml_view - part of wired memory
 * @mem: the memory
 * @base: first byte
 * @length: bytes
 */
struct hml_view {
	hml_mem_t mem;
	u64 base;
	u64 length;
};

/**
 * struct hml_nq - notification queue control block, NQCB (H 2.6)
 * @cursor: position of the next entry; advanced by compare-and-exchange
 * @consumer: the consumer index as last read from the application (B4)
 * @mask: entries - 1; constant
 * @armed: a task sleeps, or may have begun to before the NQ existed, and wants
 *	hml_port_nq_wake(), once. Set by the sleeper, cleared by the waker (B5)
 * @ring: struct hamlyn_nq_ring; constant
 * @entries: struct hamlyn_nq_entry array; constant
 * @control: struct hamlyn_nq_control, written by the application
 *
 * Written only by NICs, several of them concurrently.
 */
struct hml_nq {
	u32 cursor;
	u32 consumer;
	u32 mask;
	u32 armed;
	hml_ref_t ring;
	hml_ref_t entries;
	hml_ref_t control;
};

/**
 * struct hml_slot - slot (H 2.2)
 * @live: not 0: in use
 * @mode: enum hamlyn_slot_mode; constant
 * @flags: HAMLYN_SLOT_TICKET_ONLY; constant
 * @state: @live, @mode and @flags in one load
 * @meta_count: metadata entries; constant
 * @key: protection key; changes by rekey only
 * @data: message area; constant
 * @meta_mem: memory of the metadata entries; constant
 * @meta_base: where entry 0 is in @meta_mem, 0 if there is none; constant
 * @nq: NQ for notifications or HML_NQ_NONE; constant
 * @ticket_key: the key of tickets that are descriptors; changes by rekey only
 * @rejects: packets discarded by reason; atomic
 * @overruns: notifications lost; atomic
 * @number: slot number; constant
 *
 * What a packet needs is in the first cache line. "Constant" means from
 * creation to the end of the grace period after unlinking.
 */
struct hml_slot {
	union {
		struct {
			u16 live;
			u8 mode;
			u8 flags;
		};
		u32 state;
	};
	u32 meta_count;
	u64 key;
	struct hml_view data;
	hml_mem_t meta_mem;
	u64 meta_base;
	hml_nq_t nq;
	u64 ticket_key;
	u64 rejects[HAMLYN_REJECT_REASONS];
	u64 overruns;
	u32 number;
};

/* The state of nearly every slot: in use, normal mode, no flags. */
static inline u32 hml_slot_plain(void)
{
	const struct hml_slot plain = { .live = 1 };

	return plain.state;
}

/* That of a slot of streams: in use, one message an arming, no flags. */
static inline u32 hml_slot_one_shot(void)
{
	const struct hml_slot one_shot = { .live = 1, .mode = HAMLYN_SLOT_PARANOID_ONE_SHOT };

	return one_shot.state;
}

/**
 * struct hml_stats - counters of a terminus
 * @messages: messages sent
 * @packets: packets sent
 * @bytes: payload bytes sent
 * @failed: messages refused with a status
 * @notifications: NQ entries appended
 * @overruns: notifications lost to a full NQ
 * @kicks: doorbells
 * @pauses: times the sender was paused
 * @rejects: packets discarded by the receiving NIC, by reason
 *
 * Written by the holder of the terminus. Read without a lock.
 */
struct hml_stats {
	u64 messages;
	u64 packets;
	u64 bytes;
	u64 failed;
	u64 notifications;
	u64 overruns;
	u64 kicks;
	u64 pauses;
	u64 rejects[HAMLYN_REJECT_REASONS];
};

/**
 * struct hml_bucket - wrong keys that a user may still present (H 6.5)
 * @full: when the bucket will be full again, ns. It is empty while that is more
 *	than a second from now; atomic
 */
struct hml_bucket {
	u64 full;
};

/**
 * struct hml_guard - holds back a sender that guesses keys (H 6.5)
 * @until: send no packet before that time, ns; 0: not paused. Written by the holder of
 *	the terminus
 * @bucket: shared by all senders of the user; constant
 */
struct hml_guard {
	u64 until;
	struct hml_bucket *bucket;
};

/**
 * struct hml_sender - the sender, as far as the NIC knows
 * @stats: counters; constant pointer
 * @guard: holds it back if it guesses keys
 * @guessed: its current message has been counted as a guess
 * @far: on another host; constant
 * @brief: its packet came where no lock may be taken: one that is to be refused is left
 * @left: one was: nothing has been done about it
 * @unreadable: memory of its current message could not be read, so its receiver is told nothing
 * @taker: for hml_port_taker(), 0: nobody special; constant
 * @pid: process that created the terminus; constant
 * @uid: its user; constant
 * @share: as whose other hosts are told of its packets: one number for all uids that share what
 *	one user may have here; constant
 */
struct hml_sender {
	struct hml_stats *stats;
	struct hml_guard guard;
	bool guessed;
	bool far;
	bool brief;
	bool left;
	bool unreadable;
	u32 taker;
	u32 pid;
	u32 uid;
	u32 share;
};

/**
 * struct hml_link - does a NIC take part? (H 2.8)
 * @down: set down by an administrator
 * @remote: hml_rx() is not the way to it, or not for what it sends: ask its fabric
 * @watchdog_ms: must be fed that often; 0: no watchdog
 * @doubts: @down, @remote and @watchdog_ms in one load
 * @fed: when it was last fed, ns
 *
 * Written by administrators: @down and @watchdog_ms by one at a time, @fed by any
 * number of them (B11), @remote by the home. Read at any time.
 */
struct hml_link {
	union {
		struct {
			u16 down;
			u16 remote;
			u32 watchdog_ms;
		};
		u64 doubts;
	};
	u64 fed;
};

/**
 * struct hml_nic - one NIC
 * @port: the home's part
 * @host: host id on the fabric
 * @packet_size: most payload bytes of a packet
 * @guesses: wrong keys per second that a user may present; 0: no limit
 * @link: up, down or unfed; constant pointer
 */
struct hml_nic {
	struct hml_port port;
	u32 host;
	u32 packet_size;
	u32 guesses;
	struct hml_link *link;
};

/**
 * struct hml_piece - checked fragment: wired memory to fetch from
 * @mem: the memory
 * @offset: first byte
 * @length: bytes
 */
struct hml_piece {
	hml_mem_t mem;
	u64 offset;
	u64 length;
};

/**
 * struct hml_payload - where the bytes of one packet come from
 * @meta: metadata, or NULL
 * @flat: direct I/O payload, or NULL
 * @piece: first piece; NULL: the payload is @flat
 * @skip: bytes at the start of the first piece that are not part of this packet
 *
 * @meta and @flat may point into memory that the application can still
 * change: only their contents are used, never their values.
 */
struct hml_payload {
	const void *meta;
	const void *flat;
	const struct hml_piece *piece;
	u64 skip;
};

/*
 * Copies to pass by value to the out-of-line functions that few packets need. Made
 * field by field, so that the compiler spills registers to memory only on that path.
 */
static __always_inline struct hamlyn_packet
hml_packet_copy(const struct hamlyn_packet *h)
{
	return (struct hamlyn_packet) {
		.version = h->version,
		.flags = h->flags,
		.meta_length = h->meta_length,
		.length = h->length,
		.host = h->host,
		.source = h->source,
		.slot = h->slot,
		.meta_index = h->meta_index,
		.key = h->key,
		.offset = h->offset,
		.word = h->word,
		.delta = h->delta,
		.reserved = h->reserved,
		.ticket_key = h->ticket_key,
	};
}

static __always_inline struct hml_payload
hml_payload_copy(const struct hml_payload *p)
{
	return (struct hml_payload) {
		.meta = p->meta,
		.flat = p->flat,
		.piece = p->piece,
		.skip = p->skip,
	};
}

/**
 * struct hml_single - a packet that is all of a message, asks for nothing special and opens its
 *	slot by a key: what there is to know of it, to be passed by value
 * @key: as in its header, like all that follows
 * @offset: in the slot
 * @length: bytes
 * @meta_length: bytes of metadata
 * @slot: number of the slot
 * @meta_index: metadata entry
 * @source: host
 */
struct hml_single {
	u64 key;
	u64 offset;
	u32 length;
	u32 meta_length;
	u32 slot;
	u32 meta_index;
	u32 source;
};

/* Its header, but for the host that it was sent to. */
static __always_inline struct hamlyn_packet
hml_single_header(struct hml_single s)
{
	return (struct hamlyn_packet) {
		.version = HAMLYN_PACKET_VERSION,
		.flags = HAMLYN_PACKET_SINGLE,
		.meta_length = s.meta_length,
		.length = s.length,
		.source = s.source,
		.slot = s.slot,
		.meta_index = s.meta_index,
		.key = s.key,
		.offset = s.offset,
	};
}

/**
 * struct hml_message - message on its way out
 * @header: header of its next packet
 * @payload: payload of its next packet
 * @left: payload bytes not yet sent
 * @counter: packet counter (H 2.5)
 * @pieces: checked copy of the fragments
 */
struct hml_message {
	struct hamlyn_packet header;
	struct hml_payload payload;
	u64 left;
	u32 counter;
	struct hml_piece pieces[HAMLYN_MAX_FRAGMENTS];
};

/**
 * struct hml_ticket - imported ticket (H 6.5)
 * @key: ticket key of the slot; 0: this entry is free
 * @base: first byte that the ticket covers, in the slot's message area
 * @length: bytes from there on
 * @host: host of the slot
 * @slot: slot number
 */
struct hml_ticket {
	u64 key;
	u64 base;
	u64 length;
	u32 host;
	u32 slot;
};

/**
 * struct hml_terminus - NIC side of a send terminus (H 2.3)
 * @sender: the sender it belongs to
 * @wq: work queue control, written by the application, not used by the core
 * @entries: work queue entries, written by the application; NULL on a terminus
 *	without a work queue (the embedded device's)
 * @status: status, followed by one __s32 per entry; written only by the NIC
 * @mask: entries - 1; constant
 * @entry_size: bytes of an entry; constant
 * @entry_shift: its logarithm; constant
 * @head: entries taken so far
 * @busy: @message is being sent
 * @stalled: the fabric did not take its last packet, which is to be sent again
 * @message: the message
 * @tags: send buffer areas by tag; length 0: not bound
 * @tickets: key table
 * @tag_count: length of @tags; tags from there on are not bound
 * @ticket_count: length of @tickets
 *
 * Only the holder of the terminus touches any of this, apart from lockless reads such as
 * hml_tx_pending()'s. How a terminus is held is up to the home.
 */
struct hml_terminus {
	struct hml_sender sender;
	const struct hamlyn_wq_control *wq;
	const u8 *entries;
	struct hamlyn_terminus_status *status;
	u32 mask;
	u32 entry_size;
	u32 entry_shift;
	u32 head;
	bool busy;
	bool stalled;
	struct hml_message message;
	struct hml_view *tags;
	struct hml_ticket *tickets;
	u32 tag_count;
	u32 ticket_count;
};

/* tx.c */

/**
 * hml_view_covers() - is a range inside a view?
 * @length: bytes of the view
 * @offset: first byte of the range, counted from the view's base
 * @bytes: bytes of the range
 *
 * By subtraction: no input can wrap.
 *
 * Return: true if it is.
 */
static inline bool hml_view_covers(u64 length, u64 offset, u64 bytes)
{
	return offset <= length && bytes <= length - offset;
}

/* The next count of refused messages, skipping 0: that means there were none (status->failed). */
static inline u32 hml_failed_next(u32 failed)
{
	return ~failed ? failed + 1 : 1;
}

#endif /* HML_CORE_NIC_H */
