/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The NIC: objects and state machine, the same in the kernel and in the
 * library's embedded device. Barrier pairs Bn: Documentation/barriers.rst.
 */
#ifndef HML_CORE_NIC_H
#define HML_CORE_NIC_H

#include "port.h"

/**
 * struct hml_view - part of a wired memory
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
 * @armed: somebody sleeps and wants hml_port_nq_wake(), once. Set by the
 *	sleeper, cleared by whoever wakes it (B5)
 * @ring: struct hamlyn_nq_ring; constant
 * @entries: struct hamlyn_nq_entry array; constant
 * @control: struct hamlyn_nq_control, written by the application
 *
 * Written by NICs only, and by several at a time.
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
 * @meta_count: metadata entries; constant
 * @key: protection key; changes by rekey only
 * @data: message area; constant
 * @meta_mem: memory of the metadata entries; constant
 * @meta_base: where entry 0 is in @meta_mem; constant
 * @nq: NQ for notifications or HML_NQ_NONE; constant
 * @rejects: packets discarded by reason; atomic
 * @overruns: notifications lost; atomic
 * @number: slot number; constant
 *
 * What a packet needs is in the first cache line. "Constant" is between
 * creation and the end of the grace period after unlinking.
 */
struct hml_slot {
	u16 live;
	u16 mode;
	u32 meta_count;
	u64 key;
	struct hml_view data;
	hml_mem_t meta_mem;
	u64 meta_base;
	hml_nq_t nq;
	u64 rejects[HAMLYN_REJECT_REASONS];
	u64 overruns;
	u32 number;
};

/**
 * struct hml_stats - counters of a terminus
 * @messages: messages sent
 * @packets: packets sent
 * @bytes: payload bytes sent
 * @failed: messages refused with a status
 * @notifications: NQ entries appended
 * @overruns: notifications lost to a full NQ
 * @kicks: doorbells
 * @rejects: packets discarded by the receiving NIC, by reason
 *
 * Written by whoever holds the terminus. Read without a lock.
 */
struct hml_stats {
	u64 messages;
	u64 packets;
	u64 bytes;
	u64 failed;
	u64 notifications;
	u64 overruns;
	u64 kicks;
	u64 rejects[HAMLYN_REJECT_REASONS];
};

/**
 * struct hml_nic - one NIC
 * @port: the home's part
 * @host: host id on the fabric
 * @packet_size: most payload bytes of a packet
 */
struct hml_nic {
	struct hml_port port;
	u32 host;
	u32 packet_size;
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
 * @piece: first piece, if @flat is NULL
 * @skip: bytes of the first piece that are not of this packet
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

/**
 * struct hml_message - message on its way out
 * @header: header of its next packet
 * @payload: payload of its next packet
 * @left: payload bytes that have not left yet
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
 * struct hml_terminus - NIC side of a send terminus (H 2.3)
 * @wq: work queue control, written by the application; NULL on a terminus
 *	without a work queue (the embedded device's)
 * @entries: work queue entries, written by the application
 * @status: status, with one __s32 an entry behind it; written by the NIC only
 * @mask: entries - 1; constant
 * @entry_size: bytes of an entry; constant
 * @entry_shift: its logarithm; constant
 * @head: entries taken so far
 * @busy: @message is on its way
 * @message: the message
 * @tags: send buffer areas; length 0: not bound
 * @stats: counters; constant pointer
 *
 * All but @tags is touched only by the one who holds the terminus; how it is
 * held, and how @tags is changed meanwhile, is the home's business.
 */
struct hml_terminus {
	const struct hamlyn_wq_control *wq;
	const u8 *entries;
	struct hamlyn_terminus_status *status;
	u32 mask;
	u32 entry_size;
	u32 entry_shift;
	u32 head;
	bool busy;
	struct hml_message message;
	struct hml_view tags[HAMLYN_MAX_TAGS];
	struct hml_stats *stats;
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

/**
 * hml_tx_begin() - check a request and make it the terminus' message
 * @nic: the NIC
 * @t: the terminus, held, not busy
 * @trb: the request; a private copy, nobody else can change it
 * @meta: the metadata, if there is any
 * @tail: the direct I/O payload, or the fragments
 * @tail_size: bytes of @tail
 *
 * What @meta and @tail point to may change at any time, but must stay
 * readable until the message is done.
 *
 * Return: 0, or the status of the request: -EINVAL, -ENXIO, -ERANGE,
 * -EHOSTUNREACH as in the uapi.
 */
int hml_tx_begin(struct hml_nic *nic, struct hml_terminus *t,
		 const struct hamlyn_trb *trb, const void *meta,
		 const void *tail, u64 tail_size);

/**
 * hml_tx_flat() - check a request for a single packet of direct I/O and send it
 * @nic: the NIC
 * @t: the terminus, held, not busy
 * @trb: the request, without fragments, its length at most a packet's; a private
 *	copy
 * @meta: the metadata, if there is any
 * @data: the payload, all of it readable; may change at any time, as @meta
 *
 * The short way for short messages: no message is under way in between.
 *
 * Return: 0, or the status of the request, as hml_tx_begin().
 */
int hml_tx_flat(struct hml_nic *nic, struct hml_terminus *t,
		const struct hamlyn_trb *trb, const void *meta,
		const void *data);

/**
 * hml_tx_packet() - send the next packet of the terminus' message
 * @nic: the NIC
 * @t: the terminus, held, busy
 *
 * Clears busy with the last packet.
 */
void hml_tx_packet(struct hml_nic *nic, struct hml_terminus *t);

/**
 * hml_tx_pending() - has the application posted more than was taken?
 * @t: the terminus; need not be held
 *
 * Return: true if there is work.
 */
bool hml_tx_pending(const struct hml_terminus *t);

/**
 * hml_tx_run() - work through the work queue
 * @nic: the NIC
 * @t: the terminus, held
 * @budget: most packets to send; a refused entry counts as a packet
 *
 * Return: packets sent; less than @budget means that the queue is empty.
 */
u32 hml_tx_run(struct hml_nic *nic, struct hml_terminus *t, u32 budget);

/* rx.c */

/**
 * hml_rx() - receive a packet (H 2.2)
 * @nic: the NIC it arrived at
 * @h: its header, not in memory that anybody else can change
 * @payload: where its bytes are
 * @stats: counts what becomes of it
 *
 * Places the packet and notifies, or discards it.
 */
void hml_rx(struct hml_nic *nic, const struct hamlyn_packet *h,
	    const struct hml_payload *payload, struct hml_stats *stats);

/**
 * hml_slot_admit() - may this packet touch what it names in this slot?
 * @slot: the slot, or NULL
 * @h: the packet's header
 *
 * Every packet passes here, and nothing else decides it but the secondary tests
 * of the paranoid modes, which can only refuse more.
 *
 * Return: -1 if it may, or the enum hamlyn_reject that says why not.
 */
int hml_slot_admit(const struct hml_slot *slot, const struct hamlyn_packet *h);

/* notify.c */

/**
 * hml_nq_append() - append an entry to an NQ (H 2.6)
 * @nic: the NIC
 * @nq: the NQ
 * @entry: the entry; its sequence is ignored
 *
 * Safe against any number of others appending to the same NQ. Wakes the
 * sleeper if there is one.
 *
 * Return: true; false if the NQ was full and the notification is lost.
 */
bool hml_nq_append(struct hml_nic *nic, struct hml_nq *nq,
		   const struct hamlyn_nq_entry *entry);

/**
 * hml_nq_ready() - is there an entry at a position, or was there?
 * @nic: the NIC
 * @nq: the NQ
 * @position: the position
 *
 * Return: true if the entry is there, or was taken and replaced already.
 */
bool hml_nq_ready(const struct hml_nic *nic, const struct hml_nq *nq,
		  u32 position);

#endif /* HML_CORE_NIC_H */
