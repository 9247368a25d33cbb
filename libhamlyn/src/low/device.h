/* SPDX-License-Identifier: MIT */
/* What is in a device and its objects: for low and embedded alone. */
#ifndef H_DEVICE_H
#define H_DEVICE_H

#include "low/low.h"

#define H_PATIENCE	(1u << 16)	/* most empty polls between h__nq_idle() calls */
#define H_FIRST_PATIENCE	64	/* until it is known how many make up some ms */
#define H_DEFAULT_ENTRIES	64
#define H_EMBEDDED_WHOLE	(128u << 10)	/* see h__dev_whole() */
#define H_EMBEDDED_AT_ONCE	(192u << 10)	/* see h__dev_at_once() */
#define H_DEFAULT_ENTRY_SIZE	512

struct h_area {
	struct h_dev *dev;
	struct h_area *next;
	struct h_area *prev;
	void *addr;
	size_t length;
	size_t page_size;	/* 0: not known, see h__mapped_page_size() */
	uint32_t id;
	uint32_t flags;
	uint32_t users;		/* slots and send buffer tags; dev->lock */
	bool allocated;		/* made by h_area_alloc() */
};

struct h_slot {
	struct h_dev *dev;
	struct h_slot *next;
	struct h_slot *prev;
	struct h_area *area;
	struct h_area *meta_area;
	struct h_nq *nq;
	uint64_t length;
	uint64_t key;
	uint64_t meta_base;
	uint32_t meta_count;
	uint32_t mode;
	uint32_t number;
	uint32_t host;
};

struct h_watch {
	struct h_dev *dev;
	struct h_watch *next;
	struct h_watch *prev;
	struct h_nq *nq;
	uint32_t id;
	bool claim;
};

/*
 * What a kind of device does. Called with dev->lock held, except query, send,
 * grace, nq_sleep, nq_mend and nq_gone, and the stats. An op fills in the object it is
 * given and leaves lists and user counts to the caller. After destroy, or
 * instead of it when the device is closed, comes forget, where there is one: it
 * gives back what this process has of the object, and cannot fail. A child of a
 * fork has no mappings to give back.
 */
struct h_dev_ops {
	void (*close)(struct h_dev *dev);
	int (*query)(struct h_dev *dev, struct hamlyn_query *q);
	int (*stats)(struct h_dev *dev, struct hamlyn_stats *s);
	int (*area_alloc)(struct h_area *a);
	int (*area_add)(struct h_area *a);
	int (*area_remove)(struct h_area *a);
	void (*area_forget)(struct h_area *a, bool child);
	int (*nq_create)(struct h_nq *nq, uint32_t entries);
	int (*nq_destroy)(struct h_nq *nq);
	void (*nq_forget)(struct h_nq *nq, bool child);
	int (*slot_create)(struct h_slot *s, const struct h_slot_attr *attr);
	int (*slot_destroy)(struct h_slot *s);
	int (*slot_rekey)(struct h_slot *s);
	/*
	 * Where senders may be stopped, or die, while their packets land: 0 if nobody who
	 * was inside when *@grace began is so any more, but for the dead, and it is over:
	 * *@grace is NULL then. Else negative, and it goes on with the next call. Begins
	 * if *@grace is NULL, or is @about something else. Waits a moment at most.
	 * Needs no lock.
	 */
	int (*grace)(struct h_dev *dev, struct h_grace **grace, uint32_t about);
	/*
	 * Where processes may be stopped while they change the tables: does anybody do so
	 * now, so that a call that changes them would wait? With dev->lock.
	 */
	bool (*changing)(struct h_dev *dev);
	/* The same, and waits for that, as h__change_limit() says. With dev->lock. */
	int (*await_change)(struct h_dev *dev);
	int (*slot_ticket_fd)(struct h_slot *s, uint64_t base, uint64_t length,
			      int *fd);
	int (*terminus_create)(struct h_terminus *t,
			       const struct h_terminus_attr *at);
	int (*terminus_destroy)(struct h_terminus *t);
	void (*terminus_forget)(struct h_terminus *t, bool child);
	int (*terminus_bind)(struct h_terminus *t, uint32_t tag,
			     struct h_area *a, uint64_t base, uint64_t length);
	int (*terminus_import)(struct h_terminus *t, int fd, uint32_t *index,
			       struct h_ticket *k);
	int (*terminus_drop)(struct h_terminus *t, uint32_t index);
	/* The ticket, or, if there is none, the descriptor of one. */
	int (*watch)(struct h_watch *w, const struct h_ticket *k, int fd,
		     uint64_t cookie);
	int (*unwatch)(struct h_watch *w);
	int (*audit)(struct h_dev *dev, struct hamlyn_audit_entry *entries,
		     uint32_t count, uint64_t *sequence);
	int (*nic_set)(struct h_dev *dev, const struct hamlyn_nic_set *set);
	/* Descriptors, see struct hamlyn_listen and hamlyn_call */
	int (*listen)(struct h_dev *dev, const char *name, uint32_t name_length);
	int (*call)(struct h_dev *dev, const struct h_name *name, const void *said,
		    uint32_t length);
	int64_t (*send)(struct h_terminus *t, const struct h_msg *m);
	int64_t (*send_meta)(struct h_terminus *t, const struct h_ticket *k,
			     const void *data, size_t length,
			     const void *meta, size_t meta_length);
	int (*nq_sleep)(struct h_nq *nq, int64_t deadline_ns);
	void (*nq_mend)(struct h_nq *nq);
	bool (*nq_gone)(struct h_nq *nq, struct hamlyn_nq_entry *entry);
};

struct h_dev {
	const struct h_dev_ops *ops;
	char *name;
	int fd;
	struct h_fork_fds *fork_fds;	/* dev.c's lock */
	pid_t pid;		/* who opened it: not valid in children */
	uint32_t lock;		/* lists, user counts, control calls */
	struct h_area *areas;
	struct h_nq *nqs;
	struct h_slot *slots;
	struct h_terminus *termini;
	struct h_watch *watches;
	struct h_dev *next_open;
	void *priv;		/* embedded device only */
	struct hamlyn_query limits;
	uint64_t serial;	/* no other device of this process has or had it */
};

/* In h_terminus.flags, not for callers: fsync() is a doorbell. So a kick reads no h_dev. */
#define H_TERMINUS_FSYNC	(1U << 31)

/* longest: of this one and those before it, the index of the one that ends last. */
struct h_tag_entry {
	uintptr_t base;
	size_t length;
	uint32_t tag;
	uint32_t longest;
};

/* What the tags of a terminus are bound to, sorted by base. room: constant. */
struct h_tag_list {
	struct h_tag_list *older;	/* of those that were too short */
	uint32_t room;
	uint32_t count;
	struct h_tag_entry entries[];
};

/* Changed with the device's lock; senders look without it: tag.c. */
struct h__terminus_full {
	struct h_terminus t;
	uint32_t bindings;		/* how often a tag was bound or unbound (B16) */
	struct h_tag_list *list[2];	/* the present one is that of bindings & 1 */
	struct h_tag_list *replaced;
	struct h_area **areas;		/* by tag; NULL: not bound */
	uint32_t area_room;
};

static inline struct h__terminus_full *h__terminus_full(struct h_terminus *t)
{
	return (struct h__terminus_full *)t;
}

/* tag.c: the device's lock is held, but for the first */
/* Tag of the send buffer that holds [p, p + n), and where in it, or -EFAULT. */
int h__terminus_look(const struct h_terminus *t, const void *p, size_t n, uint64_t *offset);
/* Before the device binds it: afterwards nothing can fail. */
int h__terminus_prepare_tag(struct h_terminus *t, uint32_t tag);
void h__terminus_set_tag(struct h_terminus *t, uint32_t tag, struct h_area *a,
			 uint64_t base, uint64_t length);
void h__terminus_drop_areas(struct h_terminus *t);
/* Also its memory. */
void h__terminus_free(struct h_terminus *t);

/* Of an open that found the tables of a segment locked. Zero at first. */
struct h_open_wait {
	int64_t looked;		/* when it did so last; 0: not yet */
	int64_t waited;		/* so far: what it slept, as far as it meant to */
	int64_t still;		/* the same, since others got on last */
	uint32_t seen;		/* in @changes */
	uint32_t doublings;	/* of the time that it sleeps at once */
	const uint32_t *changes;	/* of the segment, or NULL */
};

#define H_OPEN_AGAIN	1	/* after h__shm_open_wait() */

int h__kernel_open(struct h_dev *dev, const char *path);
int h__shm_open(struct h_dev *dev, const char *spec, struct h_open_wait *wait);
void h__shm_open_wait(struct h_open_wait *wait);

/*
 * Take dev->lock for a call that h_explain() may be asked about. Fails only where
 * h__change_limit() is in force: another thread may be waiting with it.
 */
int h__dev_lock(struct h_dev *dev);

/* cgroup.c: bytes, INT64_MAX if nobody limits them or says so */
int64_t h__memory_left(void);

/* pages.c */
size_t h__huge_page_size(void);
void *h__map_aligned(size_t length, int fd, uint64_t offset, int flags);
size_t h__mapped_page_size(const void *addr, size_t length);

/* HAMLYN_EXPLAIN_BYTES of the calling thread's, for why its call on @dev fails. */
char *h__why_text(const struct h_dev *dev);
/* And to the log. */
void h__why_log(const struct h_dev *dev);

/* Flags of a ticket: none, or H_TICKET_IMPORTED and an index. */
static inline uint32_t h__ticket_index(const struct h_ticket *k)
{
	return k->flags & ~H_TICKET_IMPORTED;
}

static inline bool h__ticket_imported(const struct h_ticket *k)
{
	return k->flags & H_TICKET_IMPORTED &&
	       h__ticket_index(k) < HAMLYN_MAX_TICKETS;
}

/* Checks of a message that are the same on both devices. */
int h__msg_check(const struct h_terminus *t, const struct h_msg *m,
		 uint64_t *length);
void h__msg_to_trb(const struct h_msg *m, uint64_t length,
		   struct hamlyn_trb *trb);
int h__msg_fragments(const struct h_terminus *t, const struct h_msg *m,
		     struct hamlyn_fragment *f);

#endif /* H_DEVICE_H */
