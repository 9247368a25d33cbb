/* SPDX-License-Identifier: MIT */
/* Trapped instructions are executed elsewhere, through the alias view. */
#ifndef TEMPEST_OUTLINE_H
#define TEMPEST_OUTLINE_H

#include <signal.h>
#include <ucontext.h>

#include "thread/thread.h"
#include "trap/decode.h"

/**
 * tempest_outline_run() - continue with an instruction whose access has been announced
 * @thread: current thread
 * @insn: at the context's RIP
 * @context: of the trap; afterwards it continues in the thread's slot, or after the
 *	instruction if that was an indirect jump or call
 *
 * Return: NULL, or why it cannot be.
 */
const char *tempest_outline_run(struct tempest_thread *thread, const struct tempest_insn *insn,
				ucontext_t *context);

/**
 * tempest_outline_unwind() - take a context out of the thread's slot
 * @context: of a signal; if it is within the slot it is set before the instruction, or
 *	after it if it has been executed, and nothing is in flight any more
 *
 * Return: true if it was.
 */
bool tempest_outline_unwind(ucontext_t *context);

#endif /* TEMPEST_OUTLINE_H */
