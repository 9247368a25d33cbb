/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Wrong keys: what they cost the user that presents them (guard.c). */
#ifndef HML_CORE_GUARD_H
#define HML_CORE_GUARD_H

#include "nic.h"

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

#endif /* HML_CORE_GUARD_H */
