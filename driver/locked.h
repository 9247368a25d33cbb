/* SPDX-License-Identifier: GPL-2.0-only */
/* What is under which lock, for its holder; lockdep reports whoever does not hold it. */
#ifndef HML_LOCKED_H
#define HML_LOCKED_H

#include <linux/lockdep.h>

#include "context.h"
#include "nic.h"

/* ---- of a NIC ---- */

static inline struct rb_root *hml_contexts(struct hml_device *d)
{
	lockdep_assert_held(&d->contexts_lock);
	return &d->contexts;
}

static inline u32 *hml_opens(struct hml_device *d)
{
	lockdep_assert_held(&d->contexts_lock);
	return &d->opens;
}

static inline struct hml_limits *hml_limits_of_all(struct hml_device *d)
{
	lockdep_assert_held(&d->users_lock);
	return &d->user_limits;
}

static inline struct list_head *hml_termini(struct hml_device *d)
{
	lockdep_assert_held(&d->termini_lock);
	return &d->termini;
}

static inline struct hml_stats *hml_retired(struct hml_device *d)
{
	lockdep_assert_held(&d->termini_lock);
	return &d->retired;
}

static inline struct hml_walk *hml_walk_of(struct hml_device *d)
{
	lockdep_assert_held(&d->termini_lock);
	return &d->walk;
}

/* ---- of a context ---- */

/* Its lock is held, or nobody finds the context any more. */
static inline void hml_context_assert_locked(const struct hml_context *c)
{
	lockdep_assert(READ_ONCE(c->closing) || lockdep_is_held(&c->lock));
}

static inline bool *hml_closing(struct hml_context *c)
{
	lockdep_assert_held(&c->lock);
	return &c->closing;
}

/* One of a context's tables, to be changed, or to use what is in it. */
static inline struct xarray *hml_table(const struct hml_context *c,
				       struct xarray *table)
{
	hml_context_assert_locked(c);
	return table;
}

#endif
