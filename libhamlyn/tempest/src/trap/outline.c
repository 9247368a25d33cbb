// SPDX-License-Identifier: MIT
/*
 * A slot:
 *
 *	0:	the instruction, with a prefix for %gs, whose base is that of the alias view
 *	n:	sfence				# it may have been a non-temporal store
 *	n+3:	movq	$0, in_flight(%rip)	# the access has been made
 *	n+14:	jmp	*(%rip)			# back, after the instruction
 *	n+20:	.quad	where
 *		.quad	the instruction's own address	# for tempest_outline_unwind(),
 *	63:	.byte	n				# which finds them by this
 *
 * It has no other thread's code. What was written is seen by the processor because the
 * return from a signal serializes.
 */
#include <string.h>

#include "base/control.h"
#include "trap/foreign.h"
#include "trap/outline.h"

#define GS_PREFIX	0x65
#define CLEAR_BYTES	14
#define JUMP_BYTES	6

/* The end of a slot, for who comes upon it. */
struct slot_end {
	uintptr_t after;
	uintptr_t before;
};

_Static_assert(INSN_BYTES + CLEAR_BYTES + JUMP_BYTES + sizeof(struct slot_end) < SLOT_BYTES,
	       "a slot has room for the longest instruction");

/* Segment prefixes that do nothing in 64-bit mode make room for the one that does. */
static size_t copy_insn(uint8_t *to, const uint8_t *from, const struct tempest_insn *insn)
{
	size_t length = 0;

	to[length++] = GS_PREFIX;
	for (unsigned int i = 0; i < insn->length; i++) {
		uint8_t byte = from[i];

		if (i < insn->prefixes &&
		    (byte == 0x26 || byte == 0x2e || byte == 0x36 || byte == 0x3e))
			continue;
		to[length++] = byte;
	}
	return length;
}

static void write_slot(struct tempest_thread *thread, const struct tempest_insn *insn,
		       const uint8_t *from, size_t length)
{
	uint8_t *at = thread->slot_write + length;
	struct slot_end end = {
		.after = (uintptr_t)from + insn->length,
		.before = (uintptr_t)from,
	};
	int32_t distance = (uintptr_t)&thread->in_flight - (thread->slot + length + CLEAR_BYTES);
	static const uint8_t clear[] = { 0x0f, 0xae, 0xf8, 0x48, 0xc7, 0x05 };
	static const uint8_t jump[] = { 0xff, 0x25, 0, 0, 0, 0 };

	memcpy(at, clear, sizeof(clear));
	memcpy(at + sizeof(clear), &distance, sizeof(distance));
	memset(at + sizeof(clear) + sizeof(distance), 0, 4);
	memcpy(at + CLEAR_BYTES, jump, sizeof(jump));
	memcpy(at + CLEAR_BYTES + JUMP_BYTES, &end, sizeof(end));
	thread->slot_write[SLOT_BYTES - 1] = length;
}

static void jump_through_memory(struct tempest_thread *thread, const struct tempest_insn *insn,
				ucontext_t *context)
{
	greg_t *regs = context->uc_mcontext.gregs;
	uintptr_t target = *(uintptr_t *)tempest_alias(insn->address);
	uintptr_t back = regs[REG_RIP] + insn->length;
	greg_t top = regs[REG_RSP] - (greg_t)sizeof(back);

	tempest_thread_leave(thread);
	if (insn->kind == INSN_CALL) {
		if (!tempest_foreign_copy((void *)top, &back, 1, sizeof(back))) {
			tempest_foreign_chain(context);
			return;
		}
		regs[REG_RSP] = top;
	}
	regs[REG_RIP] = target;
}

const char *tempest_outline_run(struct tempest_thread *thread, const struct tempest_insn *insn,
				ucontext_t *context)
{
	greg_t *rip = &context->uc_mcontext.gregs[REG_RIP];
	const uint8_t *from = (const uint8_t *)*rip;
	size_t length;

	if (insn->kind == INSN_CALL || insn->kind == INSN_JUMP) {
		jump_through_memory(thread, insn, context);
		return NULL;
	}
	length = copy_insn(thread->slot_write, from, insn);
	if (length > INSN_BYTES)
		return "the instruction is too long for a prefix";
	write_slot(thread, insn, from, length);
	*rip = thread->slot;
	return NULL;
}

bool tempest_outline_unwind(ucontext_t *context)
{
	struct tempest_thread *thread = tempest_thread_known();
	greg_t *rip = &context->uc_mcontext.gregs[REG_RIP];
	struct slot_end end;
	uint8_t length;

	if (!thread || (uintptr_t)*rip - thread->slot >= SLOT_BYTES)
		return false;
	if (CONTROL(CONTROL_NO_UNWIND))
		return true;
	length = thread->slot_write[SLOT_BYTES - 1];
	memcpy(&end, thread->slot_write + length + CLEAR_BYTES + JUMP_BYTES, sizeof(end));
	*rip = (uintptr_t)*rip == thread->slot ? end.before : end.after;
	tempest_thread_leave(thread);
	return true;
}
