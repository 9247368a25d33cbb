/* SPDX-License-Identifier: GPL-2.0-only */
/* A device that refuses watches, as one does that holds its process back. */
#ifndef REFUSED_WATCH_H
#define REFUSED_WATCH_H

#include "low/device.h"

static struct {
	const struct h_dev_ops *real;
	struct h_dev_ops ops;
	bool refuses;		/* atomic */
	uint32_t refused;	/* atomic */
} watches;

static inline int watch_or_refuse(struct h_watch *w, const struct h_ticket *k,
				  int fd, uint64_t cookie)
{
	if (!__atomic_load_n(&watches.refuses, __ATOMIC_SEQ_CST))
		return watches.real->watch(w, k, fd, cookie);
	__atomic_add_fetch(&watches.refused, 1, __ATOMIC_SEQ_CST);
	return -EAGAIN;
}

/* While nobody uses it; for as long as it is open. */
static inline void watches_may_be_refused(struct h_dev *dev)
{
	watches.real = dev->ops;
	watches.ops = *dev->ops;
	watches.ops.watch = watch_or_refuse;
	dev->ops = &watches.ops;
}

static inline void refuse_watches(bool refuse)
{
	__atomic_store_n(&watches.refuses, refuse, __ATOMIC_SEQ_CST);
}

static inline uint32_t watches_refused(void)
{
	return __atomic_load_n(&watches.refused, __ATOMIC_SEQ_CST);
}

#endif /* REFUSED_WATCH_H */
