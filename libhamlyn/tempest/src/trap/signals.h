/* SPDX-License-Identifier: MIT */
/*
 * The program's signal handlers.
 *
 * SIGSEGV and SIGBUS are taken; what is not about the segment is handed on. Others begin
 * in a function of signals.c, which takes the thread out of its slot: a handler may run for
 * long, trap itself, or leave by longjmp().
 */
#ifndef TEMPEST_SIGNALS_H
#define TEMPEST_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

/* Take SIGSEGV and SIGBUS; handlers that were there before main() are kept. */
void tempest_signals_start(void);

/*
 * Of the two: leave it for when the trap handler or the call that it came in is over. False
 * if it did not come in one, or must be seen to at once.
 */
bool tempest_signals_defer(int signal, siginfo_t *info, ucontext_t *context);

/* Do what the program wants to be done about a signal that is none of ours. */
void tempest_signals_chain(int signal, siginfo_t *info, void *context);

#endif /* TEMPEST_SIGNALS_H */
