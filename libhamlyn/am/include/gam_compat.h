/* SPDX-License-Identifier: MIT */
/*
 * Names of the Active Messages libraries of the 1990s, for programs written for them.
 *
 * Two families: that of Berkeley's Split-C and ICSI's Sather ("gam_*", handlers of any
 * type, calls with up to four words) and that of ICSI's pSather (am_enable() with
 * arguments, AM_PROCS). What is not here, or differs, has a table in hamlyn_am(7).
 *
 * Those programs do not look at what calls return, and so each of these ends the
 * program, and says why, if it fails. For C only: handlers are converted without a look
 * at their type, as they always were. Words are converted to long, from whatever
 * integer or pointer they are.
 */
#ifndef HAMLYN_GAM_COMPAT_H
#define HAMLYN_GAM_COMPAT_H

#ifdef __cplusplus
#error "gam_compat.h is for programs in C; gam.h is for C++, too"
#endif

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <gam.h>

/** typedef handler_t - a handler of whatever type */
typedef void (*handler_t)();

static inline int gam_compat_must(int rc, const char *call)
{
	if (rc >= 0)
		return rc;
	fprintf(stderr, "process %d: %s: %s\n", am_my_proc(), call, am_error());
	exit(1);
}

/* ---- beginning, end, serving -------------------------------------------- */

/*
 * How many processes there are is up to the launcher; a program that asks for another
 * number is told so.
 */
static inline int gam_compat_enable(long procs)
{
	gam_compat_must((am_enable)(), "am_enable");
	if (procs > 0 && procs != am_procs())
		fprintf(stderr, "process %d: asked for %ld processes, there are %d\n",
			am_my_proc(), procs, am_procs());
	return 0;
}

#define GAM_COMPAT_FIRST(first, ...)	((long)(first))
/* With the number of processes, or without; argc and argv are left alone. */
#define am_enable(...)		gam_compat_enable(GAM_COMPAT_FIRST(__VA_ARGS__ + 0, 0))
#define gam_enable(...)		gam_compat_enable(GAM_COMPAT_FIRST(__VA_ARGS__ + 0, 0))
#define gam_disable()		gam_compat_must(am_disable(), "am_disable")
#define gam_my_proc()		am_my_proc()
#define gam_procs()		am_procs()
#define gam_max_size()		am_max_size()
#define gam_poll()		((void)gam_compat_must(am_poll(), "am_poll"))
#define gam_barrier()		((void)gam_compat_must(lam_sync_all(), "lam_sync_all"))
#define AM_PROCS		am_procs()
#define AM_MY_PROC		am_my_proc()

/* Ends this process; with 0, after all have come to it. */
static inline void gam_exit(int code)
{
	if (!code)
		gam_disable();
	exit(code);
}

/* Serves until the counter is at least @value, then takes as much from it. */
static inline void gam_wait(volatile int *counter, int value)
{
	do
		gam_poll();
	while (*counter < value);
	*counter -= value;
}

/* The same, without serving if it is there already. */
static inline void gam_poll_wait(volatile int *counter, int value)
{
	while (*counter < value)
		gam_poll();
	*counter -= value;
}

/* ---- short messages ----------------------------------------------------- */

#define GAM_COMPAT_WORD(w)	((long)(w))
#define GAM_COMPAT_HANDLER(n, f) ((handler_##n##_t)(uintptr_t)(f))
#define GAM_COMPAT_PICK(a, b, c, d, e, f, which, ...)	which

#define GAM_COMPAT_0(call, to, f)					\
	gam_compat_must(call##_0(to, GAM_COMPAT_HANDLER(0, f)), #call "_0")
#define GAM_COMPAT_1(call, to, f, a)					\
	gam_compat_must(call##_1(to, GAM_COMPAT_HANDLER(1, f),		\
				 GAM_COMPAT_WORD(a)), #call "_1")
#define GAM_COMPAT_2(call, to, f, a, b)					\
	gam_compat_must(call##_2(to, GAM_COMPAT_HANDLER(2, f),		\
				 GAM_COMPAT_WORD(a), GAM_COMPAT_WORD(b)), #call "_2")
#define GAM_COMPAT_3(call, to, f, a, b, c)				\
	gam_compat_must(call##_3(to, GAM_COMPAT_HANDLER(3, f),		\
				 GAM_COMPAT_WORD(a), GAM_COMPAT_WORD(b),	\
				 GAM_COMPAT_WORD(c)), #call "_3")
#define GAM_COMPAT_4(call, to, f, a, b, c, d)				\
	gam_compat_must(call##_4(to, GAM_COMPAT_HANDLER(4, f),		\
				 GAM_COMPAT_WORD(a), GAM_COMPAT_WORD(b),	\
				 GAM_COMPAT_WORD(c), GAM_COMPAT_WORD(d)), #call "_4")
/* destination, handler, 0 to 4 words */
#define GAM_COMPAT_SHORT(call, ...)					\
	GAM_COMPAT_PICK(__VA_ARGS__, GAM_COMPAT_4, GAM_COMPAT_3, GAM_COMPAT_2,	\
			GAM_COMPAT_1, GAM_COMPAT_0, 0)(call, __VA_ARGS__)

#define gam_request_0(...)	GAM_COMPAT_SHORT(am_request, __VA_ARGS__)
#define gam_request_1(...)	GAM_COMPAT_SHORT(am_request, __VA_ARGS__)
#define gam_request_2(...)	GAM_COMPAT_SHORT(am_request, __VA_ARGS__)
#define gam_request_3(...)	GAM_COMPAT_SHORT(am_request, __VA_ARGS__)
#define gam_request_4(...)	GAM_COMPAT_SHORT(am_request, __VA_ARGS__)
#define gam_request0(...)	GAM_COMPAT_SHORT(am_request, __VA_ARGS__)
#define gam_request1(...)	GAM_COMPAT_SHORT(am_request, __VA_ARGS__)
#define gam_request2(...)	GAM_COMPAT_SHORT(am_request, __VA_ARGS__)
#define gam_request3(...)	GAM_COMPAT_SHORT(am_request, __VA_ARGS__)
#define gam_request4(...)	GAM_COMPAT_SHORT(am_request, __VA_ARGS__)
#define gam_reply_0(...)	GAM_COMPAT_SHORT(am_reply, __VA_ARGS__)
#define gam_reply_1(...)	GAM_COMPAT_SHORT(am_reply, __VA_ARGS__)
#define gam_reply_2(...)	GAM_COMPAT_SHORT(am_reply, __VA_ARGS__)
#define gam_reply_3(...)	GAM_COMPAT_SHORT(am_reply, __VA_ARGS__)
#define gam_reply_4(...)	GAM_COMPAT_SHORT(am_reply, __VA_ARGS__)
#define gam_reply0(...)		GAM_COMPAT_SHORT(am_reply, __VA_ARGS__)
#define gam_reply1(...)		GAM_COMPAT_SHORT(am_reply, __VA_ARGS__)
#define gam_reply2(...)		GAM_COMPAT_SHORT(am_reply, __VA_ARGS__)
#define gam_reply3(...)		GAM_COMPAT_SHORT(am_reply, __VA_ARGS__)
#define gam_reply4(...)		GAM_COMPAT_SHORT(am_reply, __VA_ARGS__)

/* ---- medium messages: a buffer, its length, 0 to 2 words ----------------- */

#define GAM_COMPAT_MED(call, to, f, data, n, a, b)			\
	gam_compat_must(call(to, GAM_COMPAT_HANDLER(med, f), data, n,	\
			     GAM_COMPAT_WORD(a), GAM_COMPAT_WORD(b)), #call)
#define GAM_COMPAT_MED_0(call, to, f, data, n)				\
	GAM_COMPAT_MED(call, to, f, data, n, 0, 0)
#define GAM_COMPAT_MED_1(call, to, f, data, n, a)			\
	GAM_COMPAT_MED(call, to, f, data, n, a, 0)
#define GAM_COMPAT_MEDIUM(call, ...)					\
	GAM_COMPAT_PICK(__VA_ARGS__, GAM_COMPAT_MED, GAM_COMPAT_MED_1,	\
			GAM_COMPAT_MED_0, 0)(call, __VA_ARGS__)

#define gam_request(...)	GAM_COMPAT_MEDIUM(am_request, __VA_ARGS__)
#define gam_reply(...)		GAM_COMPAT_MEDIUM(am_reply, __VA_ARGS__)

/* ---- memory -------------------------------------------------------------- */

#define gam_store(to, from, there, n, f, arg)				\
	gam_compat_must(am_store(to, from, there, n, GAM_COMPAT_HANDLER(mem, f), arg), \
			"am_store")
#define gam_store_async(to, from, there, n, f, arg, end, end_arg)	\
	gam_compat_must(am_store_async(to, from, there, n, GAM_COMPAT_HANDLER(mem, f), arg, \
				       GAM_COMPAT_HANDLER(mem, end), end_arg), \
			"am_store_async")
#define gam_get(to, there, here, n, f, arg)				\
	gam_compat_must(am_get(to, there, here, n, GAM_COMPAT_HANDLER(mem, f), arg), \
			"am_get")

#endif /* HAMLYN_GAM_COMPAT_H */
