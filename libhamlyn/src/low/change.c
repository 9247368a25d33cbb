// SPDX-License-Identifier: MIT
/*
 * How long a thread waits for who changes a device's tables.
 *
 * On the embedded device that is another process, which may be stopped meanwhile; without a
 * time-out it is given 10 s. Who has a time-out, or does not wait, has said how long: not each
 * of the calls that make or end something is told so, but the thread that makes them.
 */
#include "low/low.h"

#define STILL_NS	5000000	/* who runs has got on by then, mostly */
#define FOR_EVER_NS	(INT64_MAX / 4)	/* can be added to */

static __thread struct h_change_limit limit;

const struct h_change_limit *h__change_limited(void)
{
	return limit.err ? &limit : NULL;
}

struct h_change_limit h__change_limit(int64_t deadline_ns)
{
	struct h_change_limit before = limit;

	limit = (struct h_change_limit) { 0 };
	if (deadline_ns >= 0) {
		limit.until_ns = h__now_ns();
		limit.still_ns = STILL_NS;
		limit.err = deadline_ns == H_NOWAIT ? -EAGAIN : -ETIMEDOUT;
	}
	if (deadline_ns > limit.until_ns)
		limit.until_ns = deadline_ns;
	return before;
}

void h__change_still(int64_t still_ns)
{
	limit.still_ns = still_ns;
}

void h__change_restore(struct h_change_limit before)
{
	limit = before;
}

int h__change_late(void)
{
	if (!limit.err)
		return -ETIMEDOUT;
	/* Nor do the calls that follow wait for it again. */
	limit.until_ns = 0;
	limit.still_ns = 0;
	return limit.err;
}

int h__change_lock(uint32_t *lock)
{
	if (limit.err)
		return h__lock_until(lock, h__change_end(h__now_ns(), FOR_EVER_NS)) ?
		       h__change_late() : 0;
	h__lock(lock);
	return 0;
}

int64_t h__change_end(int64_t now_ns, int64_t wait_ns)
{
	int64_t end = limit.until_ns;

	if (end < now_ns + limit.still_ns)
		end = now_ns + limit.still_ns;
	return limit.err && end < now_ns + wait_ns ? end : now_ns + wait_ns;
}
