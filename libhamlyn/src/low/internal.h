/* SPDX-License-Identifier: MIT */
/* What the library's files share; nothing of it is visible outside. */
#ifndef H_INTERNAL_H
#define H_INTERNAL_H

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include <hamlyn.h>
#include <hamlyn/manager.h>

#include "low/lock.h"

#define H_PATIENCE	(1u << 16)	/* most empty polls between h__nq_idle() calls */
#define H_FIRST_PATIENCE	64	/* until it is known how many make up some ms */
#define H_DEFAULT_ENTRIES	64
#define H_DEFAULT_ENTRY_SIZE	512

/* Take @item out of the doubly linked list at @head. */
#define H_UNLINK(head, item) do {					\
	__typeof__(head) *head_ = &(head), item_ = (item);		\
	if (item_->prev)						\
		item_->prev->next = item_->next;			\
	else								\
		*head_ = item_->next;					\
	if (item_->next)						\
		item_->next->prev = item_->prev;			\
} while (0)

#define H_LINK(head, item) do {						\
	__typeof__(head) *head_ = &(head), item_ = (item);		\
	item_->prev = NULL;						\
	item_->next = *head_;						\
	if (*head_)							\
		(*head_)->prev = item_;					\
	*head_ = item_;							\
} while (0)

/* Who was inside an embedded device when it began: see shm_table.c. */
struct h_grace;

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

/* h_slot_destroy(), but for the memory of @slot, which the caller frees. */
int h__slot_end(struct h_slot *slot);

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
	int (*explain)(struct h_dev *dev, char *text);
	int64_t (*send)(struct h_terminus *t, const struct h_msg *m);
	int64_t (*send_meta)(struct h_terminus *t, const struct h_ticket *k,
			     const void *data, size_t length,
			     const void *meta, size_t meta_length);
	int (*nq_sleep)(struct h_nq *nq, int64_t deadline_ns);
	void (*nq_mend)(struct h_nq *nq);
	bool (*nq_gone)(struct h_nq *nq, struct hamlyn_nq_entry *entry);
};

/* Descriptors that a child of fork() is to have closed, with the device's. */
struct h_fork_fds {
	int fd[2];		/* or -1 */
	struct h_fork_fds *next;
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
	char why[HAMLYN_EXPLAIN_BYTES];	/* why the last call failed; lock */
	bool why_ours;		/* nobody else knows better; lock */
};

/* From here on a child does not have these; until they are to be closed here. */
void h__fork_fds_add(struct h_dev *dev, struct h_fork_fds *fds);
void h__fork_fds_remove(struct h_dev *dev, struct h_fork_fds *fds);

/* A tag's area is needed when the tag is bound anew. Parallel to t->tags. */
struct h__terminus_full {
	struct h_terminus t;
	struct h_area *areas[HAMLYN_MAX_TAGS];
};

/* Of an open that found the tables of a segment locked. Zero at first. */
struct h_open_wait {
	int64_t begun;
	int64_t moved;		/* when others got on last */
	uint32_t seen;		/* in @changes */
	uint32_t doublings;	/* of the time that it sleeps at once */
	const uint32_t *changes;	/* of the segment, or NULL */
};

#define H_OPEN_AGAIN	1	/* after h__shm_open_wait() */

int h__kernel_open(struct h_dev *dev, const char *path);
int h__shm_open(struct h_dev *dev, const char *spec, struct h_open_wait *wait);
void h__shm_open_wait(struct h_open_wait *wait);

/* Take dev->lock for a call that h_explain() may be asked about. */
void h__dev_lock(struct h_dev *dev);

/*
 * Would a call that changes the device's tables wait now? For who has not been given the
 * time to, and can do it later: it may be a moment, or as long as a process is stopped.
 */
bool h__dev_changing(struct h_dev *dev);

/* What h_explain() has to say of a call that failed, while it is undone. */
struct h_why {
	char text[HAMLYN_EXPLAIN_BYTES];
};

void h__why_keep(struct h_dev *dev, struct h_why *why);
void h__why_restore(struct h_dev *dev, const struct h_why *why);

/* Explain @err and return it: with dev->lock held, and without. */
int h__because(struct h_dev *dev, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int h__refuse(struct h_dev *dev, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * early.c: the same for calls that make a device, or a listener, of which the thread asks
 * with no device. Who knows says why first; h__early_end() has the last word.
 */
void h__early_begin(void);
int h__early(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
int h__early_end(int err, const char *name);
void h__early_read(char *text, size_t size);

/* cgroup.c: bytes, INT64_MAX if nobody limits them or says so */
int64_t h__memory_left(void);

/*
 * A thread that was asked to end does so in calls of the C library that may wait, and
 * takes with it what it has locked: not between these two.
 */
static inline int h__cancel_off(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old;
}

static inline void h__cancel_restore(int old)
{
	pthread_setcancelstate(old, NULL);
}

/*
 * watch.c: as h_watch(), or with a descriptor h_watch_fd(), by whom the slot is meant for
 * alone: -EALREADY if somebody else has done so before.
 */
int h__watch_claim(struct h_dev *dev, const struct h_ticket *ticket, int fd,
		   struct h_nq *nq, uint64_t cookie, struct h_watch **out);

/* pages.c */
size_t h__huge_page_size(void);
void *h__map_aligned(size_t length, int fd, uint64_t offset, int flags);
size_t h__mapped_page_size(const void *addr, size_t length);

/* While another thread has what this one waits for. */
static inline void h__relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* Little endian numbers of up to 8 bytes. */
static inline unsigned char *h__put(unsigned char *p, uint64_t v, size_t bytes)
{
	v = htole64(v);
	memcpy(p, &v, bytes);
	return p + bytes;
}

static inline uint64_t h__get(const unsigned char *p, size_t bytes)
{
	uint64_t v = 0;

	memcpy(&v, p, bytes);
	return le64toh(v);
}

/* ticket.c */
uint32_t h__check_word(const unsigned char *p, size_t n);

static inline void h__grace_end(struct h_grace **grace)
{
	free(*grace);
	*grace = NULL;
}

int64_t h__now_ns(void);
int64_t h__deadline(int64_t timeout_ns);
int h__random(void *buf, size_t n);
int h__key(uint64_t *key);	/* random, not 0 */
bool h__is_power_of_two(uint32_t n);

/* Tag of the bound area that holds [p, p + n), or -EFAULT. */
int h__terminus_find_tag(const struct h_terminus *t, const void *p, size_t n);
/* Bytes behind the TRB and the metadata in the entry of a message. */
static inline size_t h__msg_room(const struct h_terminus *t,
				 const struct h_msg *m)
{
	return t->inline_max - (m->meta_length ? HAMLYN_TRB_METADATA_SPACE : 0);
}

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

#endif /* H_INTERNAL_H */
