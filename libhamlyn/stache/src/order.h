/* SPDX-License-Identifier: MIT */
/*
 * What one thread of this process does comes before what another one does because a message went
 * to another node, and one came back. The thread sanitizer does not see that, and is told.
 */
#ifndef STACHE_ORDER_H
#define STACHE_ORDER_H

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

static inline void stache_left_to_others(const void *what)
{
	__tsan_release((void *)what);
}

static inline void stache_got_from_others(const void *what)
{
	__tsan_acquire((void *)what);
}
#else
static inline void stache_left_to_others(const void *what)
{
	(void)what;
}

static inline void stache_got_from_others(const void *what)
{
	(void)what;
}
#endif

#endif /* STACHE_ORDER_H */
