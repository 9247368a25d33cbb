/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The NIC: objects and state machine, shared by the kernel module and the
 * library's embedded device. Barrier pairs Bn: Documentation/barriers.rst.
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

/**
 * hml_tx_begin() - check a request and make it the terminus' message
 * @nic: the NIC
 * @t: the terminus, held, not busy
 * @trb: the request; a private copy that nobody else can change; host and slot
 *	are overwritten from a ticket
 * @meta: the metadata, if there is any
 * @tail: the direct I/O payload, or the fragments
 * @tail_size: bytes of @tail
 *
 * The contents of @meta and @tail may change at any time, but must stay
 * readable until the message is done.
 *
 * Return: 0, or the status of the request: -EINVAL, -ENXIO, -ERANGE, -ENOKEY,
 * -EHOSTUNREACH as in the uapi. Of a message in pieces hml_tx_run() may also say -EIO.
 */
int hml_tx_begin(struct hml_nic *nic, struct hml_terminus *t,
		 struct hamlyn_trb *trb, const void *meta,
		 const void *tail, u64 tail_size);

/**
 * hml_tx_flat() - check a request for a single packet of direct I/O and send it
 * @nic: the NIC
 * @t: the terminus, held, not busy
 * @trb: the request, without fragments, its length at most a packet's; a private
 *	copy, whose host and slot are overwritten from a ticket
 * @meta: the metadata, if there is any
 * @data: the payload, all of it readable; may change at any time, like @meta
 *
 * The fast path for short messages: t->message is not used.
 *
 * Return: 0, or the status of the request, as hml_tx_begin(); HML_TX_NOT_NOW, where there
 * can be stalls (HML_PORT_STALLS): the fabric has not taken it, so nothing was done.
 */
int hml_tx_flat(struct hml_nic *nic, struct hml_terminus *t,
		struct hamlyn_trb *trb, const void *meta, const void *data);

/* A result besides 0 and the status of a request. */
#define HML_TX_NOT_NOW	1

/**
 * hml_tx_packet() - send the next packet of the terminus' message
 * @nic: the NIC
 * @t: the terminus, held, busy
 *
 * The last packet clears busy. One that the fabric does not take sets stalled, and is sent
 * by the next call.
 */
void hml_tx_packet(struct hml_nic *nic, struct hml_terminus *t);

/**
 * hml_tx_abort() - give up the rest of the terminus' message
 * @t: the terminus, held, busy
 * @err: the status of the request
 *
 * What was sent of it may have arrived. Whoever posted it learns @err.
 */
void hml_tx_abort(struct hml_terminus *t, int err);

/**
 * hml_tx_local() - a packet ends in a NIC of this home
 * @from: the NIC that sends it
 * @to: the NIC that receives it, or discards it if it is down
 * @h: its header
 * @payload: where its bytes are
 * @sender: its sender
 *
 * For fabrics: what hml_port_carry() does without a doubt.
 */
void hml_tx_local(struct hml_nic *from, struct hml_nic *to, const struct hamlyn_packet *h,
		  const struct hml_payload *payload, struct hml_sender *sender);

/**
 * hml_tx_pending() - is there a message in progress, or a posted entry to take?
 * @t: the terminus; need not be held
 *
 * Return: true if there is work.
 */
bool hml_tx_pending(const struct hml_terminus *t);

/**
 * hml_tx_posted() - has an entry been posted?
 * @t: the terminus; need not be held
 * @head: its position: entries before it
 *
 * Return: true if it has, whoever takes it.
 */
bool hml_tx_posted(const struct hml_terminus *t, u32 head);

/**
 * hml_tx_plain() - has the next request been posted, and is it plain?
 * @t: the terminus, held
 *
 * A plain request has no fragments, metadata, flags, fast mode word, ticket or initial
 * packet counter.
 *
 * Return: the request, for hml_tx_run_plain(), or NULL: call hml_tx_run(). NULL also if
 * the terminus is busy, or stalled, or its sender paused.
 */
const struct hamlyn_trb *hml_tx_plain(const struct hml_terminus *t);

/**
 * hml_tx_run_plain() - send a plain request
 * @nic: the NIC
 * @t: the terminus, held
 * @entry: what hml_tx_plain() has just returned
 *
 * The fast path for a single short message: like hml_tx_run() with a budget of one.
 *
 * Return: true; false, with nothing done, if it is not a single packet of direct I/O for a NIC
 * of this home that has nothing to say against it: hml_tx_run() does, and says, the rest.
 */
bool hml_tx_run_plain(struct hml_nic *nic, struct hml_terminus *t,
		      const struct hamlyn_trb *entry);

/* Even the shortest packet costs 1/16 of the longest from a budget of bytes. */
#define HML_PACKET_SHARE	16

/**
 * hml_tx_run() - work through the work queue
 * @nic: the NIC
 * @t: the terminus, held
 * @budget: most packets to send; a refused entry counts as a packet
 * @bytes: stop when it is used up; what was sent is subtracted, so it may be
 *	overdrawn by one packet
 *
 * A paused sender sends nothing (hml_guard_paused()). If the fabric does not take a packet,
 * the terminus is stalled until the next call, which begins with that packet.
 *
 * Return: packets sent. If budget and bytes are left, the queue is empty, the sender is
 * paused or the terminus is stalled.
 */
u32 hml_tx_run(struct hml_nic *nic, struct hml_terminus *t, u32 budget,
	       s64 *bytes);

/* rx.c */

/**
 * hml_rx() - receive a packet (H 2.2)
 * @nic: the NIC it arrived at
 * @h: its header, not in memory that anybody else can change
 * @payload: where its bytes are
 * @sender: its sender, whose counters say what became of it, and which is held
 *	back for a wrong key
 *
 * Places the packet and notifies, or discards it. Never waits: receiving
 * never depends on sending (H 2.8).
 */
void hml_rx(struct hml_nic *nic, const struct hamlyn_packet *h,
	    const struct hml_payload *payload, struct hml_sender *sender);

/**
 * hml_rx_plain() - receive what nearly all packets are, if there is nothing to say against it
 * @nic: the NIC it arrived at, which is up
 * @s: the packet, without metadata
 * @flat: its bytes
 * @sender: its sender
 *
 * All that hml_rx() looks at is looked at. But to refuse a packet, and whatever else few packets
 * need, is left to that one: nothing has to be kept for it on this way.
 *
 * Return: true; false with nothing done: hml_rx() is to decide.
 */
bool hml_rx_plain(struct hml_nic *nic, struct hml_single s, const void *flat,
		  struct hml_sender *sender);

/**
 * hml_slot_opens() - does a key open a slot?
 * @nic: the NIC
 * @slot: the slot, or NULL
 * @key: the key
 * @meta_index: metadata entry, for the paranoid modes
 * @ticket: the key is a ticket key
 *
 * Return: -1 if it does, or the enum hamlyn_reject that says why not.
 */
int hml_slot_opens(struct hml_nic *nic, const struct hml_slot *slot, u64 key,
		   u32 meta_index, bool ticket);

/* guard.c */

#define HML_GUARD_RATE		10000		/* wrong keys per second, by default */
#define HML_GUARD_SECOND_NS	1000000000ull	/* an empty bucket is full after that */

/**
 * hml_bucket_take() - account for a wrong key
 * @b: the bucket of the user that presented it
 * @rate: wrong keys per second, and as many in one burst; 0: no limit
 * @now: ns
 *
 * Takes a token even if there is none left: the bucket goes into debt.
 *
 * Return: 0, or the time until which the sender has to pause, ns: when the debt is paid.
 */
u64 hml_bucket_take(struct hml_bucket *b, u32 rate, u64 now);

/**
 * hml_bucket_until() - is a bucket empty?
 * @b: the bucket
 * @now: ns
 *
 * Return: 0 if it is not, or the time until which it is, ns.
 */
u64 hml_bucket_until(const struct hml_bucket *b, u64 now);

/**
 * hml_bucket_full() - is a bucket full?
 * @b: the bucket
 * @now: ns
 *
 * Return: true if it is: it can be forgotten, as a new one would be no better.
 */
bool hml_bucket_full(const struct hml_bucket *b, u64 now);

/**
 * hml_guard_guess() - a sender has guessed wrong
 * @nic: the NIC of the receiver
 * @sender: the sender
 *
 * Takes a token from its user's bucket. If there is none left, the sender pauses until
 * there is: about 1 / nic->guesses seconds, however often it guesses.
 */
void hml_guard_guess(struct hml_nic *nic, struct hml_sender *sender);

/**
 * hml_guard_paused() - must a sender wait?
 * @nic: the NIC
 * @guard: the sender's
 *
 * Return: true if it must.
 */
bool hml_guard_paused(const struct hml_nic *nic, struct hml_guard *guard);

/**
 * hml_guard_begin() - set up the guard of a user's new sender
 * @guard: its guard
 * @bucket: the user's
 * @now: ns
 *
 * If the bucket is empty, the sender begins with a pause.
 */
void hml_guard_begin(struct hml_guard *guard, struct hml_bucket *bucket, u64 now);

/* link.c */

/**
 * hml_link_fed() - is a NIC's watchdog satisfied, if it has one?
 * @nic: the NIC
 *
 * Return: true if it is.
 */
bool hml_link_fed(const struct hml_nic *nic);

/**
 * hml_link_state() - does a NIC take part?
 * @nic: the NIC
 *
 * Return: enum hamlyn_nic_state.
 */
u32 hml_link_state(const struct hml_nic *nic);

/**
 * hml_link_set() - set a NIC up or down, set or feed its watchdog (H 2.8)
 * @nic: the NIC
 * @set: what to change; its values have been checked
 *
 * One caller at a time, except for callers that only feed.
 */
void hml_link_set(struct hml_nic *nic, const struct hamlyn_nic_set *set);

/* Nearly always a single load, from a cache line that is nearly never written. */
static inline bool hml_link_up(const struct hml_nic *nic)
{
	if (likely(!READ_ONCE(nic->link->doubts)))
		return true;
	return hml_link_state(nic) == HAMLYN_NIC_UP;
}

/* notify.c */

#ifndef HML_PORT_NQ
#define HML_TAKER_NONE		0
#define hml_port_taker(sender)	((void)(sender), HML_TAKER_NONE)
#define hml_port_nq_cursor(nq, taker) \
	((void)(taker), smp_load_acquire(&(nq)->cursor))	/* B4 */
#define hml_port_nq_seen(nq)	READ_ONCE((nq)->cursor)
#define hml_port_nq_take(nq, taker, at) ({				\
	u32 at_ = (at);							\
									\
	(void)(taker);							\
	hml_atomic_cmpxchg(&(nq)->cursor, at_, at_ + 1) == at_;	\
})
#define hml_port_nq_publish(taker, p, v) do {				\
	(void)(taker);							\
	hml_store_release_mb(p, v);					\
} while (0)
#endif

/**
 * struct hml_nq_place - where an entry will probably go
 * @cursor: its position
 * @taker: as whom it is taken
 * @entry: its memory
 */
struct hml_nq_place {
	u32 cursor;
	u32 taker;
	struct hamlyn_nq_entry *entry;
};

/**
 * hml_nq_expect() - prefetch an NQ's next entry
 * @nic: the NIC
 * @nq: the NQ
 * @taker: as whom, hml_port_taker(), or HML_TAKER_NONE
 *
 * The poller's processor has its cache line. Fetch it while the message is being placed,
 * rather than wait for it afterwards.
 *
 * Return: where an entry would go now, for hml_nq_append().
 */
static inline struct hml_nq_place hml_nq_expect(struct hml_nic *nic,
						struct hml_nq *nq, u32 taker)
{
	/* Before the consumer index; otherwise an empty queue may look full. */
	u32 cursor = hml_port_nq_cursor(nq, taker);	/* B4: read before the consumer index */
	struct hamlyn_nq_entry *e = hml_ref_deref(&nic->port, nq->entries);

	e += cursor & nq->mask;
	hml_prefetchw(e);
	return (struct hml_nq_place) { cursor, taker, e };
}

/**
 * hml_nq_append() - append an entry to an NQ (H 2.6)
 * @nic: the NIC
 * @nq: the NQ
 * @place: what hml_nq_expect() returned
 * @entry: the entry; its sequence is ignored
 * @wake: wake the sleeper if there is one
 *
 * Any number of callers may append to the same NQ concurrently. Even without @wake the
 * sleeper is woken if somebody appended after this entry or lost one meanwhile.
 *
 * Return: true; false if the NQ was full and the notification is lost.
 */
bool hml_nq_append(struct hml_nic *nic, struct hml_nq *nq,
		   struct hml_nq_place place,
		   const struct hamlyn_nq_entry *entry, bool wake);

/**
 * hml_nq_ready() - is there an entry at a position, or was there?
 * @nic: the NIC
 * @nq: the NQ
 * @position: the position
 *
 * Return: true if the entry is there, or has already been taken and replaced.
 */
bool hml_nq_ready(const struct hml_nic *nic, const struct hml_nq *nq,
		  u32 position);

/* sched.c */

/**
 * struct hml_turn - place of a terminus in the order of service
 * @share: its user's; constant
 * @next: the next of the same user and priority, in a ring; NULL: not in the order
 * @prev: the one before it
 * @credit: bytes carried over from its last turn: 0, or a debt of at most one packet
 * @weight: its share, at least 1
 * @priority: enum hamlyn_priority
 * @passed: the order's @round when it last had nothing to send
 * @asked: it is having its turn
 *
 * @weight and @priority change only while it is not in the order.
 */
struct hml_turn {
	struct hml_share *share;
	struct hml_turn *next;
	struct hml_turn *prev;
	s64 credit;
	u32 weight;
	u32 priority;
	u64 passed;
	bool asked;
};

/**
 * struct hml_share_rank - the termini of one user and one priority
 * @next: the next user that has termini of that priority, in one of the order's rings
 * @prev: the one before it
 * @first: the next to be served; the others follow in the ring; NULL: there are none
 * @count: how many there are
 * @idle: how many of them have passed in round @round; stale in any other round
 * @asks: how many have passed since it became the user's turn
 * @round: see @idle
 */
struct hml_share_rank {
	struct hml_share_rank *next;
	struct hml_share_rank *prev;
	struct hml_turn *first;
	u32 count;
	u32 idle;
	u32 asks;
	u64 round;
};

/**
 * struct hml_share - what one user has in an order; zeroed before its first use
 * @ranks: by rank
 */
struct hml_share {
	struct hml_share_rank ranks[HAMLYN_PRIORITIES];
};

/**
 * struct hml_order - the order of service
 * @open: by rank: the user whose turn it is; the other users that have termini which have
 *	not passed follow in the ring
 * @closed: by rank: users whose termini have all passed in this round
 * @count: how many termini there are
 * @round: ends when a terminus has sent something, or all have passed
 *
 * Priorities are strict, and only administrators can raise one above normal. Within a
 * priority users take turns, round robin, and each turn serves the next of the user's
 * termini: deficit round robin in bytes, by weight. The home does the locking.
 */
struct hml_order {
	struct hml_share_rank *open[HAMLYN_PRIORITIES];
	struct hml_share_rank *closed[HAMLYN_PRIORITIES];
	u32 count;
	u64 round;
};

#define HML_ORDER_ASKS	16	/* termini of a user that may pass before the next user's turn */

/**
 * hml_order_add() - add a terminus, as the last of its user and priority
 * @order: the order
 * @turn: not in the order; share, weight and priority are set
 */
void hml_order_add(struct hml_order *order, struct hml_turn *turn);

/**
 * hml_order_remove() - take out of the order
 * @order: the order
 * @turn: in it
 */
void hml_order_remove(struct hml_order *order, struct hml_turn *turn);

/**
 * hml_order_next() - whose turn is it?
 * @order: the order
 *
 * The turn moves to the end of its ring. Call hml_order_done() for it before asking for the
 * next one.
 *
 * Return: the turn, or NULL if the order is empty.
 */
struct hml_turn *hml_order_next(struct hml_order *order);

/**
 * hml_turn_credit() - what may be sent in this turn
 * @turn: the turn
 * @packet_size: of the NIC
 *
 * One packet of full size for each unit of weight, or its worth in short ones, less
 * any debt.
 *
 * Return: bytes, for hml_tx_run().
 */
s64 hml_turn_credit(const struct hml_turn *turn, u32 packet_size);

/**
 * hml_order_done() - a turn is over
 * @order: the order
 * @turn: the turn, in the order or not
 * @credit: what hml_tx_run() left of its credit
 * @sent: packets sent
 */
void hml_order_done(struct hml_order *order, struct hml_turn *turn, s64 credit,
		    u32 sent);

#endif /* HML_CORE_NIC_H */
