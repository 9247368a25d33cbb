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

#include "internal.h"
#include "nic.h"

#define SHM_MAGIC		0x316d68736e796c68ull	/* "hlynshm1" */
#define SHM_ABI			(HAMLYN_ABI_VERSION << 16 | 1)
#define SHM_PAGE		4096
#define SHM_MAX_ATTACH		1024
#define SHM_DEFAULT_SIZE	(32ull << 20)
#define SHM_MIN_SIZE		(4ull << 20)
#define SHM_MAX_SIZE		(1ull << 40)
#define SHM_MAX_SLOTS		4096
#define SHM_MAX_TERMINI		2048
#define SHM_MAX_NQS		2048
#define SHM_MAX_AREAS		8192
#define SHM_PACKET_SIZE		16384

/* An owner is an attachment number + 1; 0: nobody, the record is free. */

/* hold: odd while a thread is inside the NIC with this terminus (B8). */
struct shm_terminus {
	u32 hold;
	u32 owner;
	struct hml_stats stats;
} __attribute__((aligned(64)));

struct shm_slot {
	struct hml_slot slot;
	u32 owner;
} __attribute__((aligned(64)));

struct shm_nq {
	struct hml_nq nq;
	u32 owner;
	u32 area;
} __attribute__((aligned(64)));

struct shm_area {
	u32 owner;
	u32 first;		/* page */
	u32 pages;
	u32 reserved;
};

struct shm_segment {
	u64 magic;		/* last to be written when it is made */
	u32 abi;
	u32 packet_size;
	u64 size;
	u64 data_first;		/* page */
	u64 pages;
	u64 page_owners;	/* offset of u16[pages]: area + 1, 0 free */
	struct hml_stats retired;	/* of termini that are gone */
	u32 slot_hint;
	struct shm_terminus termini[SHM_MAX_TERMINI];
	struct shm_nq nqs[SHM_MAX_NQS];
	struct shm_slot slots[SHM_MAX_SLOTS];
	struct shm_area areas[SHM_MAX_AREAS];
};

struct shm_dev {
	struct shm_segment *seg;
	size_t size;
	u32 attach;
	char file[128];
	struct hml_nic nic;
};

struct shm_sender {
	struct hml_terminus core;
	struct shm_terminus *record;
	struct shm_dev *shm;
};

static inline struct shm_dev *shm_of(const struct h_dev *dev)
{
	return dev->priv;
}

static inline u16 *shm_page_owners(const struct shm_dev *shm)
{
	return (u16 *)((char *)shm->seg + shm->seg->page_owners);
}

/* Also for memory outside the segment: see port_user.h. */
static inline u64 shm_offset(const struct shm_dev *shm, const void *p)
{
	return (uintptr_t)p - (uintptr_t)shm->seg;
}

/* shm_segment.c */
int h__shm_attach(struct h_dev *dev, const char *spec);
void h__shm_detach(struct h_dev *dev);
int h__shm_lock(const struct h_dev *dev);
int h__shm_trylock(const struct h_dev *dev);
void h__shm_unlock(const struct h_dev *dev);
bool h__shm_alive(const struct h_dev *dev, u32 attach);

/* shm_table.c: all but the first with the segment locked */
int h__shm_alloc(struct h_dev *dev, u64 bytes, u32 *area, void **p);
void h__shm_free(struct shm_dev *shm, u32 area);
int h__shm_reclaim(struct h_dev *dev, u32 attach);
void h__shm_reclaim_dead(struct h_dev *dev);
int h__shm_quiesce(struct h_dev *dev, int64_t wait_ns);
void h__shm_retire(struct shm_dev *shm, u32 terminus);

/* shm_send.c */
u32 h__shm_hold(struct shm_terminus *r);
void h__shm_release(struct shm_terminus *r, u32 hold);
int64_t h__shm_send_short(struct h_terminus *t, const struct h_ticket *k,
			  const void *data, size_t length, const void *meta,
			  size_t meta_length);
int64_t h__shm_send(struct h_terminus *t, const struct h_msg *m);

#endif /* H_SHM_H */
