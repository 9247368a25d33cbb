/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the Hamlyn selftests share: bounded waiting, patterns, and a sender and
 * receiver that are ready to talk on the device named by HAMLYN_DEVICE.
 *
 * Link every program with hamlyn_test.c.
 */
#ifndef HAMLYN_TEST_H
#define HAMLYN_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hamlyn.h>
#include <hamlyn/manager.h>

struct h_channel;

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

/* ---- time --------------------------------------------------------------- */

#define HT_MS	1000000LL
#define HT_SEC	1000000000LL

/* What never happens on a sound device takes this long, times the scale. */
#define HT_PATIENCE_SECONDS	60

int64_t ht_now_ns(void);

/* $HAMLYN_TEST_SCALE, at least 1: how many times as long things take as they usually do. */
int64_t ht_scale(void);

/*
 * Rounds of what is to be caught by chance: a third where it is one of many runs that are to
 * catch it ($HAMLYN_TEST_BRIEF, set for the guests of "make check").
 */
#define ht_rounds(all) (ht_is_brief() ? ((all) + 2) / 3 : (all))
bool ht_is_brief(void);

/*
 * Waits until a process or a thread is in that state of proc(5): S sleeps, T is stopped. False: it
 * is not in time, or has gone.
 */
bool ht_task_is(pid_t tid, char state);
/* From now on this system call is EPERM to the caller, as in some containers. 0, or -errno. */
int ht_forbid_call(unsigned int number);

/* HT_PATIENCE_SECONDS times the scale, in nanoseconds. */
int64_t ht_patience_ns(void);

void ht_sleep_ns(int64_t ns);

/* The processor's time that this thread has used: it does not depend on who else wants it. */
int64_t ht_thread_ns(void);

/* For qsort(), of int64_t. */
int ht_by_size(const void *a, const void *b);

/* Bounded polling: yields after some empty polls, later sleeps a little. */
struct ht_poll {
	int64_t end;
	unsigned int polls;
};

void ht_poll_begin(struct ht_poll *poll);

/* False once the time is over. */
bool ht_poll_more(struct ht_poll *poll);

/* ---- numbers and patterns ----------------------------------------------- */

/* The next of a sequence of 64-bit numbers; @state is its seed. */
uint64_t ht_random(uint64_t *state);

/* $HAMLYN_TEST_SEED, or a fixed number; a test logs it when it fails. */
uint64_t ht_seed(void);

/* Bytes that tell @seed and their own place. */
void ht_fill(void *p, size_t length, uint64_t seed);

/* How many bytes at @p are those of ht_fill(); @length if all. */
size_t ht_match(const void *p, size_t length, uint64_t seed);

/* How many bytes at @p equal @byte; @length if all. */
size_t ht_match_byte(const void *p, size_t length, unsigned char byte);

/* Prints the text, if there is one, and returns it. */
const char *ht_complain(const char *complaint);

/* ---- processes ---------------------------------------------------------- */

/* As fork(), but the child does not outlive its parent. */
pid_t ht_fork(void);

/*
 * The kernel forgets that a child goes with its parent when the child gets another
 * user or other rights: to be said again behind that.
 */
void ht_stay_child(void);

/* Send wrong keys to where @ticket leads, as soon as each may go. */
void ht_guess_keys(struct h_terminus *t, struct h_ticket ticket, int guesses);

/*
 * Wait for a child, within the patience, and end it if it takes longer.
 * Returns its exit status, 128 + signal, or a negative errno.
 */
int ht_reap(pid_t pid);

/* All of it or a negative errno. */
int ht_read_all(int fd, void *p, size_t length);
int ht_write_all(int fd, const void *p, size_t length);
/* Into a file that is there, as of the kernel's. */
int ht_put(const char *path, const char *text);

/* ---- a device ----------------------------------------------------------- */

/*
 * For who looks for keys where none may be: into the file $HAMLYN_TEST_KEYS, if there is
 * one, go the numbers as which this key could be printed, one a line. Those of
 * ht_pair_open() and ht_raw() are told.
 */
void ht_tell_key(uint64_t key);

/* $HAMLYN_DEVICE or NULL. */
const char *ht_device(void);

/* The number in the names of this user's segments: outside of a user namespace of its own. */
unsigned int ht_segment_uid(void);

int ht_open(struct h_dev **dev);

/* Where one sends from: $HAMLYN_TX_DEVICE, of another host on the fabric; or the same. */
int ht_open_tx(struct h_dev **dev);

/* Are these two hosts? Then what was sent has left, and arrives after a while. */
bool ht_is_remote(void);

/* Does h_explain() say anything of the last failure, and these words? Prints what it says else. */
bool ht_is_explained(struct h_dev *dev, const char *words);

/* A message of one word, which arrives whole: 0 or an errno. */
int ht_pass_word(struct h_channel *from, struct h_channel *to);

/* As h_recv(), but waits; -ETIMEDOUT when the patience is over. */
int ht_recv(struct h_nq *nq, struct hamlyn_nq_entry *entry);

/* As h_send(), but waits while the work queue is full. */
int64_t ht_send(struct h_terminus *terminus, const struct h_msg *msg);

/*
 * As ht_send(), but by way of h_send_msg(), which has code of its own. False
 * if it cannot say such a message.
 */
bool ht_send_msg(struct h_terminus *terminus, const struct h_msg *msg,
		 int64_t *handle);

/*
 * As h_send_wait(), with the patience; 1 if it has left, as h_send_done(). Of a pair on two hosts
 * with $HAMLYN_TX_LANDS: if it has landed, too, which within a host is the same.
 */
int ht_send_wait(struct h_terminus *terminus, int64_t handle);

/* Both: 1, or a negative errno of either. */
int ht_send_sync(struct h_terminus *terminus, const struct h_msg *msg);

/*
 * As h_manager_drain(), with the patience. Of a manager on another host with $HAMLYN_TX_LANDS:
 * until all of it has landed, too. It keeps a pair open from the first call on; from one thread.
 */
int ht_drain(struct h_manager *manager);

/* How many slots on @area can be made, at most @most; they are gone again. */
int ht_count_slots(struct h_dev *dev, struct h_area *area, unsigned int most);

/* How many areas of @length can be made, at most @most; they are gone again. */
int ht_count_areas(struct h_dev *dev, size_t length, unsigned int most);

/* ---- a sender and a receiver -------------------------------------------- */

#define HT_GUARD	0x5a	/* every byte that no message may touch */
#define HT_GUARD_BYTES	192	/* of them on each side of a message area */
#define HT_META_GUARDS	2	/* guard entries on each side of the metadata */

struct ht_pair_attr {
	size_t length;			/* message area; 0: 4 packets */
	size_t shift;			/* moves it off its page boundary */
	uint32_t meta;			/* metadata entries, may be 0 */
	uint32_t nq_entries;		/* 0: 64 */
	size_t send_length;		/* send buffer area; 0: as length */
	struct h_terminus_attr terminus;
	bool one_context;		/* sender and receiver share one h_dev */
};

/*
 * A message area in the middle of an area, guard bytes around it; metadata
 * entries likewise. The fence slot has an area of its own and shares the NQ.
 */
struct ht_pair {
	struct h_dev *rx;
	struct h_dev *tx;
	struct hamlyn_query query;
	struct h_area *area;
	struct h_area *meta_area;
	struct h_area *fence_area;
	struct h_area *send_area;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_slot *fence_slot;
	struct h_terminus *terminus;
	struct h_ticket ticket;		/* of all the message area, entry 0 */
	struct h_ticket fence;
	uint64_t fences;
	uint32_t from;			/* host id of the sender */
	struct h_terminus *marker;	/* two hosts: for ht_send_wait() */
	struct h_area *mark_area;
	struct h_ticket mark;
	uint64_t marks;
	struct ht_pair *next;
	size_t base;
	size_t length;
	unsigned char *data;		/* the message area */
	unsigned char *send;		/* the send buffer area, tag 0 */
	size_t send_length;
	struct hamlyn_metadata *meta;	/* entry 0, or NULL */
	uint32_t meta_count;
};

/* 0, or a negative errno with nothing left behind. */
int ht_pair_open(struct ht_pair *pair, const struct ht_pair_attr *attr);
void ht_pair_close(struct ht_pair *pair);
/*
 * For a pair of one's own, of which @rx, @tx and @terminus are set: between two hosts
 * ht_send_wait() also waits until what the terminus sent has landed.
 */
int ht_pair_mark(struct ht_pair *pair);
void ht_pair_unmark(const struct ht_pair *pair);

/* Guard bytes everywhere, metadata entries zero. */
void ht_pair_clear(struct ht_pair *pair);

/* No byte outside the message area and the metadata entries was touched. */
bool ht_pair_guarded(const struct ht_pair *pair);

/* And none inside. */
bool ht_pair_untouched(const struct ht_pair *pair);

/*
 * Send a fast message behind all others of the terminus and take
 * notifications up to it. Returns how many others there were, or a negative
 * errno. All that was sent before has landed, or never will.
 */
int ht_pair_fence(struct ht_pair *pair);

/* Discarded packets by reason: of the pair's slot and of all the NIC. */
struct ht_rejects {
	uint64_t slot[HAMLYN_REJECT_REASONS];
	uint64_t nic[HAMLYN_REJECT_REASONS];
};

int ht_pair_rejects(struct ht_pair *pair, struct ht_rejects *rejects);

/* ---- kernel device without the library ---------------------------------- */

struct ht_raw_nq {
	struct hamlyn_nq_create arg;
	const struct hamlyn_nq_ring *ring;
	const struct hamlyn_nq_entry *entries;
	struct hamlyn_nq_control *control;
};

struct ht_raw_terminus {
	struct hamlyn_terminus_create arg;
	struct hamlyn_wq_control *wq;
	unsigned char *entries;
	const struct hamlyn_terminus_status *status;
	const int32_t *codes;
	uint32_t producer;
	uint32_t published;	/* by ht_raw_publish() */
	int fd;
};

/* A descriptor of HAMLYN_DEVICE (default /dev/hamlyn0) or a negative errno. */
int ht_raw_open(void);

/* ioctl() with errno as a negative return value. */
int ht_raw(int fd, unsigned long request, void *arg);

/* The same by HAMLYN_IOC_EXPLAINED(). */
int ht_raw_explained(int fd, unsigned long request, void *arg, char *text, uint32_t size);
/* From here on this thread's ht_raw() asks why it fails; */
void ht_raw_explain(bool wanted);
/* and this is why the last one did, or "". */
const char *ht_raw_why(void);

/* Any of the four commands that take struct hamlyn_id. */
int ht_raw_id(int fd, unsigned long request, uint32_t id);

int ht_raw_query(int fd, struct hamlyn_query *query);

/* Modules that were built in a kernel tree have no such doorbell. */
#define NO_FSYNC	"fsync() is no doorbell of this module"
bool ht_raw_rings_by_fsync(int fd);

/* @map may be NULL: then the area is not mapped. */
int ht_raw_area_alloc(int fd, size_t length, struct hamlyn_area_alloc *arg,
		      void **map);
int ht_raw_nq_create(int fd, uint32_t entries, struct ht_raw_nq *nq);
void ht_raw_nq_unmap(struct ht_raw_nq *nq);

/* A slot without metadata entries; @nq may be HAMLYN_NONE. */
int ht_raw_slot_create(int fd, uint32_t area, uint64_t length, uint32_t nq,
		       struct hamlyn_slot_create *arg);
int ht_raw_terminus_create(int fd, uint32_t entries, uint32_t entry_size,
			   struct ht_raw_terminus *terminus);
void ht_raw_terminus_unmap(struct ht_raw_terminus *terminus);
int ht_raw_bind(int fd, uint32_t terminus, uint32_t tag, uint32_t area,
		uint64_t base, uint64_t length);

/* Where the next TRB goes. */
struct hamlyn_trb *ht_raw_entry(struct ht_raw_terminus *terminus);

/* Store the producer index, kick if the NIC asks for it. */
int ht_raw_publish(struct ht_raw_terminus *terminus, uint32_t producer);

/* Publish one more entry. */
int ht_raw_post(struct ht_raw_terminus *terminus);

/*
 * Wait for entry number @index. Returns 0, or -ETIMEDOUT if it did not end;
 * @status is what it ended with.
 */
int ht_raw_done(struct ht_raw_terminus *terminus, uint32_t index,
		int *status);

/* Take the next entry of an NQ, if there is one, as h_recv() does. */
bool ht_raw_recv(struct ht_raw_nq *nq, struct hamlyn_nq_entry *entry);

/* ---- harness ------------------------------------------------------------ */

/* What a test program includes behind the harness. */
#ifdef __KSELFTEST_HARNESS_H

/* Virtual machines without hardware support are slow. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	900

/* For helpers that return NULL, or a text that tells what went wrong. */
#define EXPECT_NO(complaint)	EXPECT_EQ(NULL, ht_complain(complaint))
#define ASSERT_NO(complaint)	ASSERT_EQ(NULL, ht_complain(complaint))

#endif

/* For tests whose subject the thread sanitizer reports. */
#ifdef __SANITIZE_THREAD__
#define HT_NOT_UNDER_TSAN(why)	SKIP(return, why)
#else
#define HT_NOT_UNDER_TSAN(why)	do { } while (0)
#endif

#endif /* HAMLYN_TEST_H */
