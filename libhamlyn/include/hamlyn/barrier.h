/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: barriers.
 *
 * Nobody gets out before everybody has got in. One process creates the barrier and
 * takes part in it, the others join it by its seeds: a gather of nothing (gather.h),
 * and a word back from who has created it.
 *
 * A barrier is for one thread of each participant. Participants trust each other. Who
 * is gone is told to the others, but for who has not joined yet.
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
 * @manager: whose thread polls for it
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
 * Return: 0, -ERANGE if there is no such one, -EINVAL if @barrier was joined.
 */
int h_barrier_seed(const struct h_barrier *barrier, uint32_t participant,
		   struct h_seed *seed);

/**
 * h_barrier_join() - take part in a barrier
 * @manager: whose thread polls for it
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
 * @timeout_ns: most time to wait
 *
 * Who got in stays in: after -EAGAIN, -ETIMEDOUT or -EINTR the next call goes on
 * waiting for the same. It is the calls of who has created the barrier that let the
 * others out, and tell them who is gone: if it will call no more it should destroy it.
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT, -EINTR; -ECONNRESET if a participant is gone, -EPIPE
 * if one has left or who has created it is gone: nobody will ever get out again. A
 * participant that is killed in the call may have some others get out of that round
 * and some be told.
 */
int h_barrier_wait(struct h_barrier *barrier, int64_t timeout_ns);

/**
 * h_barrier_destroy() - leave a barrier
 * @barrier: the barrier, or NULL
 *
 * Waits for nobody: who got in before this one left gets out, if all were in.
 *
 * Return: 0, or -ETIMEDOUT as h_slot_destroy(): then it is still there.
 */
int h_barrier_destroy(struct h_barrier *barrier);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_BARRIER_H */
