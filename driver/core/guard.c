// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Holding back who guesses keys (H 6.5).
 *
 * A guess names one slot, and is right once in 2^64. At HML_GUARD_RATE a second, for a
 * year, some guess is right with a chance of 2 x 10^-8, however many slots there are. So
 * nobody has to be held back for longer than his rate demands, and a pause never grows.
 *
 * Held back is only who could not have had the key. A wrong one that was right when its
 * sender began to watch the slot is late: hml_port_knew(). A receiver may change its keys
 * behind the back of an honest sender, and go on saying that all arrives: that costs the
 * sender nothing. Who presents such a key finds out nothing, it is always the same one.
 *
 * A bucket is one word, a theoretical arrival time: it says when the bucket will be full
 * again. Each wrong key takes one interval of it, so that nothing has to be counted down,
 * and a bucket that nobody touches forgets by itself.
 */
#include "nic.h"

/* Rounded up: never more than the rate. */
static u64 interval(u32 rate)
{
	return (HML_GUARD_SECOND_NS + rate - 1) / rate;
}

u64 hml_bucket_until(const struct hml_bucket *b, u64 now)
{
	u64 full = READ_ONCE(b->full);

	if (full <= now || full - now <= HML_GUARD_SECOND_NS)
		return 0;
	return full - HML_GUARD_SECOND_NS;
}

u64 hml_bucket_take(struct hml_bucket *b, u32 rate, u64 now)
{
	u64 was, full;

	/* Nothing to remember: it would be held against the user on another NIC. */
	if (!rate)
		return 0;
	full = READ_ONCE(b->full);
	do {
		was = full;
		full = hml_atomic_cmpxchg64(&b->full, was,
					    (was > now ? was : now) +
					    interval(rate));
	} while (full != was);
	return hml_bucket_until(b, now);
}

bool hml_bucket_full(const struct hml_bucket *b, u64 now)
{
	return READ_ONCE(b->full) <= now;
}

void hml_guard_guess(struct hml_nic *nic, struct hml_sender *sender)
{
	struct hml_guard *g = &sender->guard;
	u64 until = hml_bucket_take(g->bucket, READ_ONCE(nic->guesses),
				    hml_port_now_ns(&nic->port));

	if (!until)
		return;
	WRITE_ONCE(g->until, until);
	sender->stats->pauses++;
}

bool hml_guard_paused(const struct hml_nic *nic, struct hml_guard *guard)
{
	if (!guard->until)
		return false;
	if (hml_port_now_ns(&nic->port) < guard->until)
		return true;
	WRITE_ONCE(guard->until, 0);
	return false;
}

void hml_guard_begin(struct hml_guard *guard, struct hml_bucket *bucket, u64 now)
{
	guard->bucket = bucket;
	guard->until = hml_bucket_until(bucket, now);
}
