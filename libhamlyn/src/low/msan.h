/* SPDX-License-Identifier: MIT */
/*
 * What clang's memory sanitizer does not see: memory that the kernel has filled by a call
 * that it has no interceptor for. Nothing in other builds.
 */
#ifndef HAMLYN_MSAN_H
#define HAMLYN_MSAN_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define H_MSAN 1
#endif
#endif

#ifdef H_MSAN
#include <sanitizer/msan_interface.h>
#endif

/* @n bytes at @p have values. */
static inline void h__filled(void *p, size_t n)
{
#ifdef H_MSAN
	__msan_unpoison(p, n);
#else
	(void)p;
	(void)n;
#endif
}

#endif /* HAMLYN_MSAN_H */
