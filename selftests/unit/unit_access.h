/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the core accesses the words that others read or write: each access is written
 * down. To be included first.
 */
#ifndef UNIT_ACCESS_H
#define UNIT_ACCESS_H

#include <stdint.h>

/* Before anything that uses them. */
#include "port_user.h"

#define SEEN_MOST	4096

enum kind { READ, WRITE, ACQUIRE, RELEASE, RELEASE_MB, MB };

static struct access {
	const volatile void *p;
	enum kind kind;
} seen[SEEN_MOST];
static u32 nr_seen;

static inline void saw(const volatile void *p, enum kind kind)
{
	if (nr_seen < SEEN_MOST)
		seen[nr_seen++] = (struct access) { p, kind };
}

#undef READ_ONCE
#define READ_ONCE(x) ({							\
	saw(&(x), READ);						\
	__atomic_load_n(&(x), __ATOMIC_RELAXED);			\
})

#undef WRITE_ONCE
#define WRITE_ONCE(x, v) do {						\
	saw(&(x), WRITE);						\
	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED);			\
} while (0)

#undef smp_load_acquire
#define smp_load_acquire(p) ({						\
	saw(p, ACQUIRE);						\
	__atomic_load_n(p, __ATOMIC_ACQUIRE);				\
})

#undef smp_store_release
#define smp_store_release(p, v) do {					\
	saw(p, RELEASE);						\
	__atomic_store_n(p, v, __ATOMIC_RELEASE);			\
} while (0)

#undef hml_store_release_mb
#define hml_store_release_mb(p, v) do {					\
	saw(p, RELEASE_MB);						\
	__atomic_store_n(p, v, __ATOMIC_SEQ_CST);			\
} while (0)

/* One that succeeds. */
#define hml_atomic_cmpxchg64(p, o, n) ({				\
	saw(p, WRITE);							\
	hml_atomic_cmpxchg64(p, o, n);					\
})

#undef smp_mb
#define smp_mb()	saw(NULL, MB)

#include "unit_world.h"

/* ---- looking at what was seen --------------------------------------------- */

static void forget_all(void)
{
	nr_seen = 0;
}

static u32 times(const volatile void *p, enum kind kind)
{
	u32 i, n = 0;

	assert_in_range(nr_seen, 1, SEEN_MOST - 1);
	for (i = 0; i < nr_seen; i++)
		n += seen[i].p == p && seen[i].kind == kind;
	return n;
}

/* Place of the first such access; fails if there was none. */
static u32 place_of(const volatile void *p, enum kind kind)
{
	u32 i;

	for (i = 0; i < nr_seen; i++)
		if (seen[i].p == p && seen[i].kind == kind)
			return i;
	fail_msg("no access of kind %d to a word that needs it", kind);
	return 0;
}

/* So often, and in no other way. */
#define assert_seen(p, what, n) do {					\
	u32 kind_;							\
									\
	for (kind_ = READ; kind_ <= RELEASE_MB; kind_++)		\
		assert_int_equal(times(p, kind_),			\
				 kind_ == (what) ? (n) : 0);		\
} while (0)

/* The same of several words of a structure at @base: once each. */
struct word {
	const char *name;
	size_t offset;
};

#define WORD(type, member)	{ #member, offsetof(type, member) }

static void assert_words_seen(const void *base, const struct word *words,
			      size_t n, enum kind what)
{
	const u8 *p;
	size_t i;
	u32 kind;

	for (i = 0; i < n; i++) {
		p = (const u8 *)base + words[i].offset;
		for (kind = READ; kind <= RELEASE_MB; kind++)
			if (times(p, kind) != (u32)(kind == what))
				fail_msg("%s: %u accesses of kind %u",
					 words[i].name, times(p, kind), kind);
	}
}

#endif /* UNIT_ACCESS_H */
