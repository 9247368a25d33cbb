/* SPDX-License-Identifier: MIT */
/* String instructions: a segment prefix does not move what is at RDI. */
#ifndef TEMPEST_STRING_OP_H
#define TEMPEST_STRING_OP_H

#include "thread/thread.h"
#include "trap/decode.h"

/**
 * tempest_string_op() - do what a string instruction does
 * @thread: current thread
 * @insn: at the context's RIP
 * @context: of the trap; its registers say how far it has come
 *
 * It may end at the end of a page, with the instruction to be executed again: the next
 * one may be open.
 */
void tempest_string_op(struct tempest_thread *thread, const struct tempest_insn *insn,
		       ucontext_t *context);

#endif /* TEMPEST_STRING_OP_H */
