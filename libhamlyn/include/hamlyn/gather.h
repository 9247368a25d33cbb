/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: gathers, all to one, round after round (H 2.5).
 *
 * Each member has a part of the root's buffer and fills it once a round; the root is
 * notified once a round, when all have. There are two buffers: members can be a round
 * ahead of what the root looks at, and wait rather than get further ahead.
 *
 * Members trust each other and the root, as those of a group do (group.h). If a member is
 * gone, the root learns of it and tells the others, so that none waits for a round that will
 * never be complete. Nothing is known of a member that has not joined yet: it is
 * waited for.
 *
 * One thread at a time may use the root, and likewise each member.
 *
 * The root's calls, or other threads' polling on its manager, let the members go on and tell
 * them who is gone. A root whose process is about to exit must drain its manager first
 * (h_manager_drain(), h_manager_destroy()), or its last messages may be lost.
 */
#ifndef HAMLYN_GATHER_H
#define HAMLYN_GATHER_H

#include <hamlyn/manager.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_gather;
struct h_gather_member;

/* ---- the root ----------------------------------------------------------- */

/**
 * h_gather_create() - create the root of a gather
 * @manager: polls for it and provides its memory
 * @members: how many; the root is not one of them
 * @lengths: bytes of each member's part, which may be 0; NULL: @length of each
 * @length: see @lengths
 * @gather: out: the root
 *
 * Sets aside two entries of the manager's NQ, and three more for each member.
 *
 * Return: 0, or -EINVAL, -E2BIG if it is too long, -ENOMEM, or as h_receiver_init().
 */
int h_gather_create(struct h_manager *manager, uint32_t members,
		    const uint64_t *lengths, uint64_t length,
		    struct h_gather **gather);

/**
 * h_gather_destroy() - destroy the root
 * @gather: the root, or NULL: nothing
 *
 * Does not wait for members. They still learn what they had been told before; then their
 * calls fail with -EPIPE.
 *
 * Return: 0, or -ETIMEDOUT as h_slot_destroy(): then it still exists.
 */
int h_gather_destroy(struct h_gather *gather);

/**
 * h_gather_seed() - make the seed of a member
 * @gather: the root
 * @member: which one, 0 to @members - 1
 * @seed: out: the seed; for one h_gather_join()
 *
 * Return: 0, or -ERANGE if there is no such member.
 */
int h_gather_seed(const struct h_gather *gather, uint32_t member,
		  struct h_seed *seed);

/**
 * h_gather_offset() - where the part of a member is
 * @gather: the root
 * @member: which one
 *
 * Return: offset in bytes from the pointer of h_gather_receive(); for @members: bytes of a
 * round.
 */
uint64_t h_gather_offset(const struct h_gather *gather, uint32_t member);

/**
 * h_gather_receive() - wait for all parts of the next round
 * @gather: the root
 * @data: out: the parts, one after the other, in the root's memory, valid until
 *	h_gather_release(). May be NULL
 * @timeout_ns: longest time to wait
 *
 * Two rounds can be held at a time. After -EAGAIN, -ETIMEDOUT and -EINTR the next call
 * waits for the same round.
 *
 * Return: 0, -EBUSY if two rounds are held; -EAGAIN, -ETIMEDOUT, -EINTR; -EPIPE if a
 * member has left and -ECONNRESET if one is gone without leaving: there will be no more
 * rounds. Or as h_receiver_watch().
 */
int h_gather_receive(struct h_gather *gather, const void **data,
		     int64_t timeout_ns);

/**
 * h_gather_release() - let members refill the oldest buffer that was received
 * @gather: the root
 *
 * While the manager cannot send, because its work queue is full or it is held back for
 * wrong keys, the call waits, for at most a second; after that, the next thread that polls
 * sends the rest.
 *
 * Return: 0, or -EINVAL if all were released.
 */
int h_gather_release(struct h_gather *gather);

/* ---- members ------------------------------------------------------------ */

/**
 * h_gather_join() - become a member
 * @manager: its terminus sends, and it polls for news from the root
 * @seed: of h_gather_seed()
 * @member: out: the member
 *
 * Return: 0, -EINVAL if these bytes are not the seed of a gather, -EPROTO if they are a seed
 * of another version, -ENOMEM, -ETIMEDOUT, or as h_receiver_init(), h_watch(). If the
 * root is gone the first call that waits says so.
 */
int h_gather_join(struct h_manager *manager, const struct h_seed *seed,
		  struct h_gather_member **member);

/**
 * h_gather_length() - how long the part of a member is
 * @member: the member
 *
 * Return: bytes.
 */
uint64_t h_gather_length(const struct h_gather_member *member);

/**
 * h_gather_send() - send one's part of the next round
 * @member: the member
 * @data: bytes, which may be changed when it returns; this process does not copy long
 *	ones in memory of h_manager_alloc() or h_manager_register()
 * @length: how many, at most h_gather_length(). If they are fewer, the rest of the
 *	part is what was there two rounds before
 * @timeout_ns: longest time to wait for the root to release a buffer
 *
 * If it fails, nothing was sent.
 *
 * Return: 0, -ERANGE if @length is too much; -EAGAIN, -ETIMEDOUT, -EINTR; -EPIPE if the root
 * is gone or a member has left, -ECONNRESET if a member is gone without leaving;
 * -EHOSTUNREACH; or, if there is no memory to copy it to, as h_manager_alloc(): -ENOMEM,
 * -ENOSPC, -E2BIG, -EDQUOT, -ETIMEDOUT.
 */
int h_gather_send(struct h_gather_member *member, const void *data, size_t length,
		  int64_t timeout_ns);

/**
 * h_gather_wait() - wait until the root has released all that this member has sent
 * @member: the member
 * @timeout_ns: longest time to wait
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT, -EINTR, -EPIPE, -ECONNRESET as h_gather_send().
 */
int h_gather_wait(struct h_gather_member *member, int64_t timeout_ns);

/**
 * h_gather_leave() - leave a gather
 * @member: the member, which is destroyed, or NULL: nothing
 *
 * Does not wait for other members or the root. The root can still receive the rounds that
 * this member has sent its part of; later ones fail with -EPIPE, for all. Over a fabric that
 * delays or reorders packets the root may find out that the member is gone before it gets
 * the message that it left: then all are told that it is gone.
 *
 * Return: 0, or -ETIMEDOUT as h_slot_destroy(): then it still exists.
 */
int h_gather_leave(struct h_gather_member *member);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_GATHER_H */
