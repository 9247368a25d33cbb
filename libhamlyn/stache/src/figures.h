/* SPDX-License-Identifier: MIT */
#ifndef STACHE_FIGURES_H
#define STACHE_FIGURES_H

#include "stache.h"

/* Written by the protocol thread alone, read by all. */
extern struct stache_figures stache_counted;

static inline void stache_add(uint64_t *figure, int64_t number)
{
	__atomic_store_n(figure, *figure + number, __ATOMIC_RELAXED);
}

#endif /* STACHE_FIGURES_H */
