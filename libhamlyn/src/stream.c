// SPDX-License-Identifier: MIT
/* What both ends of a stream need. */
#include <sched.h>
#include <time.h>

#include "stream.h"

#ifdef __SANITIZE_THREAD__
/* It does not know pthread_mutex_clocklock(). */
static int lock_until(pthread_mutex_t *mutex, int64_t deadline_ns)
{
	while (pthread_mutex_trylock(mutex)) {
		if (h__now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		sched_yield();
	}
	return 0;
}
#else
static int lock_until(pthread_mutex_t *mutex, int64_t deadline_ns)
{
	const struct timespec ts = {
		.tv_sec = deadline_ns / 1000000000,
		.tv_nsec = deadline_ns % 1000000000,
	};

	return -pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &ts);
}
#endif

int h__mutex_lock(const struct h_manager *m, pthread_mutex_t *mutex,
		  int64_t deadline_ns)
{
	if (h__single(m))
		return 0;
	if (deadline_ns < 0)
		return -pthread_mutex_lock(mutex);
	if (!pthread_mutex_trylock(mutex))
		return 0;
	return deadline_ns == H_NOWAIT ? -EAGAIN :
					 lock_until(mutex, deadline_ns);
}

void h__mutex_unlock(const struct h_manager *m, pthread_mutex_t *mutex)
{
	if (!h__single(m))
		pthread_mutex_unlock(mutex);
}

int h__ticket_adopt(struct h_manager *m, int fd, struct h_ticket *t)
{
	struct h_ticket k;
	int err;

	err = h_terminus_import(m->terminus, fd, &k);
	if (err)
		return err;
	if (k.host != t->host || k.slot != t->slot || k.base || t->base) {
		h_terminus_drop(m->terminus, &k);
		return -EPROTO;
	}
	t->flags = k.flags;
	return 0;
}

void h__ticket_drop(struct h_manager *m, const struct h_ticket *t)
{
	if (t->flags)
		h_terminus_drop(m->terminus, t);
}
