/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: barriers.
 *
 * No participant gets out before every one has got in. One process creates the barrier and
 * takes part in it, the others join it by its seeds: a gather of nothing (gather.h),
 * and a message back from the process that created it.
 *
 * One thread of each participant uses a barrier. Participants trust each other. The
 * others are told if a participant is gone, unless it has not joined yet.
 */
#ifndef HAMLYN_BARRIER_H
#define HAMLYN_BARRIER_H

#include <hamlyn/manager.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_barrier;

/**
 * h_barrier_create() - create a barrier, and take part in it
 * @manager: polls for it
 * @participants: how many there are, this one included
 * @barrier: out: the barrier
 *
 * Return: 0, or as h_gather_create().
 */
int h_barrier_create(struct h_manager *manager, uint32_t participants,
		     struct h_barrier **barrier);

/**
 * h_barrier_seed() - make the seed of another participant
 * @barrier: of h_barrier_create()
 * @participant: which one, 1 to @participants - 1
 * @seed: out: the seed; for one h_barrier_join()
 *
 * Return: 0, -ERANGE if there is no such participant, -EINVAL if @barrier was joined.
 */
int h_barrier_seed(const struct h_barrier *barrier, uint32_t participant,
		   struct h_seed *seed);

/**
 * h_barrier_join() - take part in a barrier
 * @manager: polls for it
 * @seed: of h_barrier_seed()
 * @barrier: out: the barrier
 *
 * Return: 0, or as h_gather_join().
 */
int h_barrier_join(struct h_manager *manager, const struct h_seed *seed,
		   struct h_barrier **barrier);

/**
 * h_barrier_wait() - wait until all participants wait
 * @barrier: the barrier, which can be used again and again
 * @timeout_ns: longest time to wait
 *
 * A participant that got in stays in: after -EAGAIN, -ETIMEDOUT or -EINTR the next call goes
 * on waiting for the same round. The creator's calls let the others out, and tell them
 * who is gone: if it will make no more calls it should destroy the barrier.
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT, -EINTR; -ECONNRESET if a participant is gone, -EPIPE
 * if one has left or the creator is gone: no participant will ever get out again. If a
 * participant is killed in the call, some others may get out of that round while the rest
 * get the error.
 */
int h_barrier_wait(struct h_barrier *barrier, int64_t timeout_ns);

/**
 * h_barrier_destroy() - leave a barrier
 * @barrier: the barrier, or NULL: nothing
 *
 * Does not wait: participants that got in before this one left get out, if all were in.
 *
 * Return: 0, or -ETIMEDOUT as h_slot_destroy(): then it still exists.
 */
int h_barrier_destroy(struct h_barrier *barrier);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_BARRIER_H */
