/* SPDX-License-Identifier: MIT */
/*
 * The embedded device's segment: layout and the calls between its files.
 *
 * The segment is a file in /dev/shm, all of it allocated when it is made.
 * Whoever uses it holds a lock (open file description lock) on one byte of
 * the file, byte 1 + its attachment number. The kernel drops that lock when
 * the process dies, however it dies: so anybody can tell which attachments,
 * and what they owned, are dead. Byte 0 is locked around every change of the
 * tables. A process may die in the middle of such a change, so every change
 * is ordered to leave nothing worse than something owned by a dead
 * attachment, and reclaiming that is safe to do twice.
 */
#ifndef H_SHM_H
#define H_SHM_H

#include "embedded/shm_nq.h"
#include "low/device.h"
#include "guard.h"
#include "link.h"
#include "nic.h"
#include "notify.h"
#include "rx.h"
#include "tx.h"

#define SHM_MAGIC		0x316d68736e796c68ull	/* "hlynshm1" */
#define SHM_ABI			(HAMLYN_ABI_VERSION << 16 | 7)
#define SHM_ABI_SHARED		(HAMLYN_ABI_VERSION << 16 | 6)	/* of 0.2: all share each NQ */
#define SHM_PAGE		4096
#define SHM_MAX_ATTACH		1024
#define SHM_MAX_WQ_ENTRIES	4096
#define SHM_MAX_ENTRY_SIZE	4096
#define SHM_MAX_NQ_ENTRIES	(1u << 20)
#define SHM_DEFAULT_SIZE	(32ull << 20)
#define SHM_MIN_SIZE		(4ull << 20)
#define SHM_MAX_SIZE		(1ull << 40)
#define SHM_MAX_SLOTS		8192	/* 1000 clients: 4 a connection, 1 a manager, and growth */
#define SHM_MAX_TERMINI		2048
#define SHM_MAX_NQS		2048
#define SHM_MAX_AREAS		8192
#define SHM_MAX_WATCHES		16384
#define SHM_AUDIT_ENTRIES	1024
#define SHM_MAX_PEERS		64	/* other hosts */
#define SHM_RING_PAGES		65	/* packets to them, of a terminus: 256 KiB, and the head */
#define SHM_PACKET_SIZE		16384	/* no less than an entry: send_flat() */

_Static_assert(SHM_MAX_WATCHES >= 10 * SHM_MAX_ATTACH,
	       "a program of Active Messages takes 10 a process, of as many as there may be");

/* An owner is an attachment number + 1; 0: nobody, the record is free. */

/*
 * What one process writes for every message has two cache lines of its own:
 * processors fetch them in pairs.
 */
#define SHM_APART	128

/*
 * hold: odd while a thread is inside the NIC with this terminus (B8). ring: area + 1 of what it
 * sends to other hosts, 0: none; the bridge owns it. waits: somebody waits for room in there.
 */
struct shm_terminus {
	u32 hold;
	u32 owner;
	struct hml_stats stats;
	u32 ring;
	u32 waits;
} __attribute__((aligned(SHM_APART)));

/*
 * epoch: changes whenever a slot of this number is made, rekeyed or closed,
 * and thereby tells its watches. Written with the segment locked.
 */
struct shm_slot {
	struct hml_slot slot;
	u32 owner;
	u32 epoch;
	u32 born;		/* epoch when it was made */
	u16 watched;		/* there may be watches on it */
	u16 claimed;		/* by one of them, which may have ended since */
} __attribute__((aligned(64)));

struct shm_nq {
	struct hml_nq nq;
	u32 owner;
	u32 area;
	struct shm_bias bias;
} __attribute__((aligned(SHM_APART)));

_Static_assert(offsetof(struct shm_nq, bias) == SHM_BIAS_AT &&
	       offsetof(struct shm_nq, nq.cursor) == 0, "shm_bias_of()");

struct shm_area {
	u32 owner;
	u32 first;		/* page */
	u32 pages;
	u32 reserved;
};

/*
 * A watch is to tell when what it compares is not any more as it was, or when
 * the slot's owner is dead. Whoever changes something, and the watcher now and
 * then, looks at that and appends to the watcher's NQ, with the segment locked.
 * He may die between that and saying so in state: then it is appended twice,
 * and the watcher takes the first only (shm_nq_gone()).
 */
struct shm_watch {
	u32 owner;		/* last to be written when it is made */
	u32 state;		/* generation << 2 | SHM_WATCH_* */
	u32 host;
	u32 slot;
	u32 epoch;		/* the slot's */
	u32 downs;		/* the segment's */
	u32 nq;
	u32 void_;		/* not 0: there was nothing to watch, or its host says so */
	u64 cookie;
	/* Of another host's slot, what that host is to be told */
	u64 key;
	u32 meta_index;
	u32 peer_state;		/* as it was: struct shm_peer */
	u16 peer;		/* number + 1; 0: a slot of this segment */
	u16 flags;		/* HAMLYN_WATCH_* */
} __attribute__((aligned(64)));

#define SHM_WATCH_STATE		3u
#define SHM_WATCH_ARMED		0u	/* nothing told yet */
#define SHM_WATCH_QUEUED	1u	/* an entry is in the NQ */
#define SHM_WATCH_TOLD		2u	/* the watcher has it */

/*
 * Written by senders at any time. word: sequence + 1 of the entry, or
 * SHM_AUDIT_BUSY while somebody, perhaps dead by now, fills it.
 */
struct shm_audit_entry {
	u64 word;
	u32 born;		/* the slot's */
	u32 reserved;
	struct hamlyn_audit_entry e;
};

#define SHM_AUDIT_BUSY	(1ull << 63)

/*
 * Packets of a terminus to other hosts: one process puts them in, the bridge takes them out.
 * head and tail only grow. What is from tail on is nobody's: who dies there has sent nothing.
 */
struct shm_ring {
	u64 tail __attribute__((aligned(SHM_APART)));
	u64 head __attribute__((aligned(SHM_APART)));
	u8 bytes[] __attribute__((aligned(SHM_PAGE)));
};

#define SHM_RING_BYTES	((SHM_RING_PAGES - 1) * SHM_PAGE)

/*
 * In front of metadata and payload. state: the peer's, when it was put in: what was for another
 * connection is lost.
 */
struct shm_ring_packet {
	u32 bytes;		/* to the next one */
	u32 peer;		/* SHM_MAX_PEERS: none, the rest of the ring is left out */
	u32 state;
	u32 reserved;
	struct hamlyn_packet h;
};

#define SHM_RING_ALIGN	64

/* Another host. state: odd while it is there; it only grows, from bridge to bridge. */
struct shm_peer {
	u32 host;		/* our own: there is none of this number */
	u32 state;
	u32 reason;		/* enum hml_wire_verdict, or SHM_PEER_*: why it is not there */
	u32 connections;
	u64 sent;		/* packets; written by the bridge, as all below */
	u64 received;
	u64 bytes_sent;
	u64 bytes_received;
	u64 lost;		/* packets that were for an earlier connection */
	u64 dropped;		/* packets of those who guess keys */
	u64 stalls;		/* times that its socket was full */
	u64 refused;		/* frames and connections */
};

#define SHM_PEER_SILENT	64	/* reasons that are no verdicts: never heard yet */
#define SHM_PEER_LOST	65	/* the connection broke */
#define SHM_PEER_LEFT	66	/* the bridge ended */

/* What carries packets to other hosts: a process, and what it shares with all others. */
struct shm_bridge {
	u32 owner;		/* 0: none */
	u32 pid;
	u32 asleep;		/* it wants to be woken (B21) */
	u32 peers;		/* there is no peer from here on; only grows */
	u32 watches;		/* how often one of another host's slot was made or ended */
	u32 door;		/* random, in the name of its socket; 0: it has none */
	u32 waker;		/* the processor + 1 of who woke it; 0: not said */
	u64 rung[SHM_MAX_TERMINI / 64] __attribute__((aligned(SHM_APART)));	/* B21 */
	struct shm_peer peer[SHM_MAX_PEERS] __attribute__((aligned(SHM_APART)));
};

struct shm_segment {
	u64 magic;		/* last to be written when it is made */
	u32 abi;
	u32 packet_size;
	u32 guesses;		/* wrong keys a second of a process; 0: no limit */
	u32 changes;		/* how often the tables were unlocked: by who did it, then (B14) */
	u64 size;
	u64 data_first;		/* page */
	u64 pages;
	u64 page_owners;	/* offset of u16[pages]: area + 1, 0 free */
	u64 identity[2];	/* random: tells it from other segments */
	u8 fabric[HAMLYN_FABRIC_ID_BYTES];	/* random, or chosen: the same on all its hosts */
	u32 host;
	u32 reserved;
	struct hml_stats retired;	/* of termini that are gone */
	u32 slot_hint;
	u32 attach_hint;	/* where to look for a free number first */
	u32 watch_end;		/* no watch from here on */
	u32 downs;		/* how often the NIC was set down */
	u64 audit_next;		/* sequence of the next audit entry */
	/* Every sender reads it. */
	struct hml_link link __attribute__((aligned(SHM_APART)));
	struct shm_terminus termini[SHM_MAX_TERMINI];
	struct shm_nq nqs[SHM_MAX_NQS];
	struct shm_slot slots[SHM_MAX_SLOTS];
	struct shm_area areas[SHM_MAX_AREAS];
	struct shm_watch watches[SHM_MAX_WATCHES];
	struct shm_audit_entry audit[SHM_AUDIT_ENTRIES];
	struct shm_bridge bridge __attribute__((aligned(SHM_APART)));
};

#define SHM_KNOWN	256
#define SHM_KNOWN_WAYS	4	/* of them one displaces another */

/* A key that a slot was watched by and that was right: all 0 is none, slot 0's key is not 0. */
struct shm_known {
	u64 key;
	u32 slot;
};

/* A process, or a user of another host, and how often it may guess. */
struct shm_guesser {
	struct hml_bucket bucket;	/* wrong keys that may still be presented */
	struct shm_known *known;	/* late, if they come again: hml_port_knew() */
};

/* data_first, pages: as they were when the segment was joined, and checked. */
struct shm_dev {
	struct shm_segment *seg;
	size_t size;
	u64 data_first;
	u64 pages;
	u32 attach;
	char file[128];
	bool fenced;		/* h__shm_fence() of others reaches our threads */
	bool biased;		/* an NQ may be its first sender's, and who sleeps pays */
	struct hml_nic nic;
	struct hml_sender self;	/* who guesses by h_watch() */
	struct shm_guesser guesser;
	struct shm_known known[SHM_KNOWN];
	struct hml_nic far;	/* stands for all other hosts, as a way to them */
	int64_t looked_ns;	/* when we last looked who is dead; dev->lock */
	dev_t on;		/* where the file is, and which it is there */
	ino_t inode;
	bool stopped;		/* somebody was who had the tables; atomic, both */
	u32 stopped_at;		/* seg->changes then */
};

/* alone: no other thread holds it, and we are fenced: needs no barriers (B8). */
struct shm_sender {
	struct shm_terminus *record;
	struct hml_nic *nic;
	struct shm_dev *shm;
	bool alone;
	struct hml_terminus core;
	u64 long_end;		/* when the last long message had left, ticks */
	u64 long_took;		/* how long that took */
	u32 far_room;		/* least room for a packet to another host */
	bool far_new;		/* there was no ring */
	int64_t far_looked_ns;	/* when we last looked whether the bridge lives */
};

static inline struct shm_dev *shm_of(const struct h_dev *dev)
{
	return dev->priv;
}

/* Offset of the page owners: behind the tables. */
static inline u64 shm_owners_at(void)
{
	return (sizeof(struct shm_segment) + 63) & ~63ull;
}

static inline u16 *shm_page_owners(const struct shm_dev *shm)
{
	return (u16 *)((char *)shm->seg + shm_owners_at());
}

/* Others' words in the tables are indices only when they have been compared. */
static inline u32 shm_watch_end(const struct shm_segment *seg)
{
	u32 end = READ_ONCE(seg->watch_end);

	return end < SHM_MAX_WATCHES ? end : SHM_MAX_WATCHES;
}

static inline u32 shm_peers(const struct shm_segment *seg)
{
	u32 n = READ_ONCE(seg->bridge.peers);

	return n < SHM_MAX_PEERS ? n : SHM_MAX_PEERS;
}

static inline bool shm_peer_up(u32 state)
{
	return state & 1;
}

/* Also for memory outside the segment: see port_user.h. */
static inline u64 shm_offset(const struct shm_dev *shm, const void *p)
{
	return (uintptr_t)p - (uintptr_t)shm->seg;
}

/* Who is dead, as far as it was asked for. */
struct shm_dead {
	bool known[SHM_MAX_ATTACH];
	bool dead[SHM_MAX_ATTACH];
};

#define SHM_REVOKE_NS	(5ll * 1000000000)	/* most time for h__shm_quiesce() */
#define SHM_MOMENT_NS	1000000ll		/* enough, if nobody was stopped */
#define SHM_RECLAIM_NS	100000000ll		/* for what the dead have left */

/* shm_segment.c */
int h__shm_attach(struct h_dev *dev, const char *spec, struct h_open_wait *wait);
void h__shm_detach(struct h_dev *dev);

/* shm_user.c */
int h__shm_user(unsigned int *uid);

/* shm_lock.c */
int h__shm_lock(struct h_dev *dev);
int h__shm_trylock(const struct h_dev *dev);
void h__shm_unlock(const struct h_dev *dev);
bool h__shm_alive(const struct h_dev *dev, u32 attach);

/* shm_fence.c */
/*
 * Where the call is forbidden to us, though not to the others: longer than any processor
 * keeps a store to itself.
 */
#define SHM_SETTLE_NS	10000000

bool h__shm_fence_join(void);
bool h__shm_try_fence(void);
void h__shm_fence(void);

/*
 * shm_table.c: all but the first, h__shm_quiesce() and h__shm_grace() with the segment
 * locked
 */
int h__shm_alloc(struct h_dev *dev, u64 bytes, u64 align, u32 *area, void **p);
void h__shm_free(struct shm_dev *shm, u32 area);
int h__shm_reclaim(struct h_dev *dev, u32 attach, int64_t wait_ns);
void h__shm_reclaim_dead(struct h_dev *dev);
int h__shm_quiesce(struct h_dev *dev, int64_t wait_ns);
int h__shm_quiesce_long(struct h_dev *dev, bool *locked);
int h__shm_grace(struct h_dev *dev, struct h_grace **grace, u32 about);
void h__shm_retire(struct shm_dev *shm, u32 terminus);
bool h__shm_dead(const struct h_dev *dev, u32 owner, struct shm_dead *d);
void h__shm_slot_changed(struct shm_slot *slot);
int h__shm_make_ring(struct h_dev *dev, u32 terminus);
void h__shm_peers_down(struct shm_segment *seg);

/* shm_watch.c */
int h__shm_watch(struct h_watch *hw, const struct h_ticket *k, int fd,
		 u64 cookie);
int h__shm_ticket_of_fd(const struct shm_dev *shm, int fd, struct h_ticket *k);
int h__shm_unwatch(struct h_watch *w);
void h__shm_tell(struct h_dev *dev);
bool h__shm_look(struct h_nq *nq);
bool h__shm_nq_gone(struct h_nq *nq, struct hamlyn_nq_entry *e);

int h__shm_watch_for(struct h_watch *hw, const struct h_ticket *k, bool ticket,
		     u64 cookie, struct hml_sender *who);

/* shm_far.c */
struct shm_ring *h__shm_ring(const struct shm_dev *shm, u32 terminus);
void h__shm_bell(struct shm_segment *seg);
u32 h__shm_peer(const struct shm_segment *seg, u32 host);
hml_path_t h__shm_far_route(const struct hml_nic *nic, u32 host);
bool h__shm_far_xmit(const struct hamlyn_packet *h, const struct hml_payload *payload,
		     struct hml_sender *sender);
int h__shm_far_again(struct h_terminus *t);
bool h__shm_far_wait(struct h_terminus *t);

/* shm_name.c */
#define H_DOOR_NAME	"hamlyn-bridge-%u-%08x"	/* abstract: pid and door */
#define H_DOOR_LISTEN	1
#define H_DOOR_CALL	2

/* What a process says to the bridge, once; behind it, what a call says. */
struct shm_ask {
	u32 what;		/* H_DOOR_* */
	u32 host;
	u32 name_length;
	u32 length;
	char name[HAMLYN_MAX_NAME + 1];
};

int h__shm_listen(struct h_dev *dev, const char *name, uint32_t name_length);
int h__shm_call(struct h_dev *dev, const struct h_name *name, const void *said,
		uint32_t length);

/* shm_ticket.c */
int h__shm_slot_ticket_fd(struct h_slot *s, uint64_t base, uint64_t length,
			  int *fd);
int h__shm_terminus_import(struct h_terminus *t, int fd, uint32_t *index,
			   struct h_ticket *k);
int h__shm_terminus_drop(struct h_terminus *t, uint32_t index);

/* shm_admin.c */
void h__shm_stats_add(struct hml_stats *sum, const struct hml_stats *s);
int h__shm_stats(struct h_dev *dev, struct hamlyn_stats *s);
void h__shm_audit_add(struct hml_nic *nic, const struct hml_slot *slot,
		      struct hamlyn_audit_entry e);
int h__shm_query(struct h_dev *dev, struct hamlyn_query *q);
int h__shm_nic_set(struct h_dev *dev, const struct hamlyn_nic_set *set);
int h__shm_audit(struct h_dev *dev, struct hamlyn_audit_entry *entries,
		 uint32_t count, uint64_t *sequence);

/* shm_send.c */
void h__shm_hold(struct shm_sender *s);
void h__shm_release(struct shm_sender *s);
int64_t h__shm_send_meta(struct h_terminus *t, const struct h_ticket *k,
			 const void *data, size_t length, const void *meta,
			 size_t meta_length);
int64_t h__shm_send(struct h_terminus *t, const struct h_msg *m);

#endif /* H_SHM_H */
