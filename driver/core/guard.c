// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Holding back senders that guess keys (H 6.5).
 *
 * A guess names one slot, and is right once in 2^64. At HML_GUARD_RATE guesses a second,
 * the chance that one is right within a year is 2 x 10^-8, however many slots there are. So
 * no sender has to be held back for longer than its rate demands, and pauses never grow.
 *
 * Only a sender that cannot have had the key is held back. A wrong key that was right when
 * the sender's user began to watch the slot by it is late, not guessed: hml_port_knew(). A
 * receiver may change its keys without telling an honest sender, and keep claiming that
 * everything arrives; that costs the sender nothing. Presenting such a key reveals nothing:
 * it is always the same one.
 *
 * A bucket is one word, a theoretical arrival time: the time when the bucket will be full
 * again. Each wrong key moves it on by one interval, so nothing has to be counted down, and
 * a bucket that is left alone refills by itself.
 */
#include "guard.h"

/* ns per wrong key, rounded up so as never to exceed the rate. */
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

	/* No limit here: a token taken would be held against the user on another NIC. */
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
