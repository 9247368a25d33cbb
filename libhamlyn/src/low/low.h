/* SPDX-License-Identifier: MIT */
/*
 * What every layer of the library may use of the lowest one, beside <hamlyn.h>: devices,
 * areas, slots, NQs and termini are opaque here. low/device.h has what is in them.
 */
#ifndef H_LOW_H
#define H_LOW_H

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include <hamlyn.h>

#include "low/lock.h"

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

/* ---- devices ---- */

/* What h_query() told when the device was opened. */
const struct hamlyn_query *h__dev_limits(const struct h_dev *dev);
/* The longest message to another host that h_send() begins only if it can send all of it. */
uint64_t h__dev_whole(const struct h_dev *dev);
/* The longest that it can send so at all: what is longer is waited for in the middle. */
uint64_t h__dev_at_once(const struct h_dev *dev);
/* Does a signal end a sleep that has no end even after a handler with SA_RESTART? */
bool h__dev_signal_ends(const struct h_dev *dev);

/*
 * Would a call that changes the device's tables wait now? For who has not been given the
 * time to, and can do it later: it may be a moment, or as long as a process is stopped.
 */
bool h__dev_changing(struct h_dev *dev);

/*
 * For who has been given the time: until when, and, since others may be many, for how long at
 * least nobody got on; and what a call returns then. err 0: no limit but the device's.
 */
struct h_change_limit {
	int64_t until_ns;
	int64_t still_ns;
	int err;
};

/*
 * Until h__change_restore(): calls of this thread that make or end something wait for others who
 * do, or for who sends to what ends, until the deadline, and are -ETIMEDOUT; with H_NOWAIT for
 * about as long as one of them takes, and are -EAGAIN. Returns what there was.
 */
struct h_change_limit h__change_limit(int64_t deadline_ns);
void h__change_restore(struct h_change_limit before);
/* For who cannot begin anew: @still_ns instead of that moment. */
void h__change_still(int64_t still_ns);
/* NULL: none. */
const struct h_change_limit *h__change_limited(void);
/* What to return when that time is over; and that it is, for the rest of them. */
int h__change_late(void);
/* h__lock() of what another thread may hold while it waits for that; 0, or that it is late. */
int h__change_lock(uint32_t *lock);
/* When to give up what would be waited for as long as @wait_ns. */
int64_t h__change_end(int64_t now_ns, int64_t wait_ns);
/*
 * Wait for who changes the tables just now, as long as those calls would. 0, or what they would
 * return: nobody got on meanwhile.
 */
int h__dev_await_change(struct h_dev *dev);

/*
 * Those that were inside the NIC when it began, where senders may be stopped, or die, while
 * their packets land: processes of a segment, see embedded/shm_table.c. NULL: not begun.
 */
struct h_grace;

/* Does this device need any? */
bool h__grace_needed(const struct h_dev *dev);
/*
 * Have all of them left, but for the dead? Then *@grace is NULL again. If not, it goes on
 * with the next call. Begins if *@grace is NULL, or is @about something else. Waits a
 * moment at most. Needs no lock.
 */
bool h__grace_over(struct h_dev *dev, struct h_grace **grace, uint32_t about);

static inline void h__grace_end(struct h_grace **grace)
{
	free(*grace);
	*grace = NULL;
}

/* Is this a child of the process that opened it? There h_close() is all that works. */
bool h__in_child(const struct h_dev *dev);
/* The same without asking the kernel, where the handlers of pthread_atfork() were called. */
bool h__is_forked(const struct h_dev *dev);
int h__refuse_forked(struct h_dev *dev);

/* Descriptors that a child of fork() is to have closed, with the device's. */
struct h_fork_fds {
	int fd[3];		/* or -1 */
	struct h_fork_fds *next;
};

/*
 * What a call returned that makes a descriptor: another one if it is a standard one. A
 * program that was started without those prints to them all the same. Or a negative errno.
 */
int h__fd(int fd);

/* From here on a child does not have these; until they are to be closed here. */
void h__fork_fds_add(struct h_dev *dev, struct h_fork_fds *fds);
void h__fork_fds_remove(struct h_dev *dev, struct h_fork_fds *fds);

/* ---- why a call failed ---- */

/* What h_explain() has to say of a call that failed, while it is undone. */
struct h_why {
	char text[HAMLYN_EXPLAIN_BYTES];
};

void h__why_keep(struct h_dev *dev, struct h_why *why);
void h__why_restore(struct h_dev *dev, const struct h_why *why);

/* Explain @err to h_explain() of the calling thread, and return it. */
int h__refuse(struct h_dev *dev, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * early.c: the same for calls that make a device, or a listener, of which the thread asks
 * with no device. Who knows says why first; h__early_end() has the last word.
 */
void h__early_begin(void);
int h__early(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
int h__early_end(int err, const char *name);
/* Behind what was said, if there is room. */
void h__early_add(const char *text);
void h__early_read(char *text, size_t size);

/* ---- attr.c: structures that callers fill, and that may be older or newer than we are ---- */

/* Is there anything in @attr, @size bytes long, that a library which knows @known does not know? */
int h__attr_check(struct h_dev *dev, const void *attr, size_t size, size_t known);
/*
 * @to, of @known bytes: what the caller has filled in at @attr, and else 0; all of it with @attr
 * NULL. With @dev NULL h__early() explains.
 */
int h__attr_take(struct h_dev *dev, void *to, size_t known, const void *attr, size_t size);
/* -EINVAL: a reserved member is not 0. */
int h__attr_reserved(struct h_dev *dev, uint32_t reserved);
#define H_TAKE_ATTR(dev, to, attr, size) h__attr_take(dev, to, sizeof(*(to)), attr, size)

/* ---- name.c: names of hosts ---- */

/* HOST/NAME; name: not terminated. */
struct h_name {
	uint32_t host;
	uint32_t length;
	const char *name;
};

/* What such a descriptor is read for, or written to. */
#define H_NAME_BYTES	(sizeof(struct hamlyn_caller) + HAMLYN_MAX_CALL)

/* Does @path look like one? Then what it names, or -EINVAL, -ENAMETOOLONG; 0: it does not. */
int h__name_of(const char *path, struct h_name *name);
uint32_t h__dev_host(const struct h_dev *dev);
/* A descriptor of those who call, or of the answer; or an error, which is explained. */
int h__dev_listen(struct h_dev *dev, const struct h_name *name);
int h__dev_call(struct h_dev *dev, const struct h_name *name, const void *said,
		uint32_t length);

/* ---- log ---- */

#define H_LOG_BYTES	(HAMLYN_EXPLAIN_BYTES + 64)

/* A line for h_log_set(). */
void h__log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Would it be heard? For those to whom making the text is work. */
bool h__log_wanted(int level);

/* ---- objects ---- */

/* h_slot_destroy(), but for the memory of @slot, which the caller frees. */
int h__slot_end(struct h_slot *slot);

/* The lowest tag that is not bound, or -ENOSPC; how many there are. */
int h__terminus_free_tag(struct h_terminus *t);
uint32_t h__terminus_free_tags(struct h_terminus *t);
/* The first tag from @tag on that is bound to what h_area_add() made, and that; or -ENOENT. */
int h__terminus_next_added(struct h_terminus *t, uint32_t tag, struct h_area **area);
/* HAMLYN_AREA_ flags */
uint32_t h__area_flags(const struct h_area *area);

/* Sleep until something arrives; 0, -ETIMEDOUT or -EINTR. */
int h__nq_sleep(struct h_nq *nq, int64_t deadline_ns);

/*
 * As h_watch(), or with a descriptor h_watch_fd(), by whom the slot is meant for
 * alone: -EALREADY if somebody else has done so before.
 */
int h__watch_claim(struct h_dev *dev, const struct h_ticket *ticket, int fd,
		   struct h_nq *nq, uint64_t cookie, struct h_watch **out);

/* Tag of the bound area that holds [p, p + n), or -EFAULT. */
int h__terminus_find_tag(const struct h_terminus *t, const void *p, size_t n);
/* Bytes behind the TRB and the metadata in the entry of a message. */
static inline size_t h__msg_room(const struct h_terminus *t,
				 const struct h_msg *m)
{
	return t->inline_max - (m->meta_length ? HAMLYN_TRB_METADATA_SPACE : 0);
}

/* ---- results ---- */

/* For the caller of what takes one thing: within, 1 is one, 0 the end of a stream or channel. */
static inline int h__taken(int ret)
{
	return ret > 0 ? 0 : ret ? ret : -ENODATA;
}

/* ---- threads ---- */

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

/* While another thread has what this one waits for. */
static inline void h__relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* ---- bytes, time, chance ---- */

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

/* By which both ends see that bytes have arrived as they were. */
uint32_t h__check_word(const unsigned char *p, size_t n);

int64_t h__now_ns(void);
int64_t h__deadline(int64_t timeout_ns);
int h__random(void *buf, size_t n);
int h__key(uint64_t *key);	/* random, not 0 */
bool h__is_power_of_two(uint32_t n);

#endif /* H_LOW_H */
