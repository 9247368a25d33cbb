// SPDX-License-Identifier: MIT
#include <stdint.h>

#include "trap/foreign.h"
#include "trap/signals.h"

/* In assembler, so that what may fault has no frame, and nothing to undo. */
extern char tempest_foreign_begin[] __attribute__((visibility("hidden")));
extern char tempest_foreign_failed[] __attribute__((visibility("hidden")));

__asm__(".pushsection .text\n"
	".hidden tempest_foreign_begin, tempest_foreign_failed\n"
	".globl tempest_foreign_copy, tempest_foreign_begin, tempest_foreign_failed\n"
	".type tempest_foreign_copy, @function\n"
	"tempest_foreign_copy:\n"
	"tempest_foreign_begin:\n"
	"	movl	%ecx, %eax\n"
	"	movq	%rdx, %rcx\n"
	"	cmpl	$2, %eax\n"
	"	ja	4f\n"
	"	je	2f\n"
	"	rep movsb\n"
	"	jmp	9f\n"
	"2:	rep movsw\n"
	"	jmp	9f\n"
	"4:	cmpl	$8, %eax\n"
	"	je	8f\n"
	"	rep movsl\n"
	"	jmp	9f\n"
	"8:	rep movsq\n"
	"9:	movl	$1, %eax\n"
	"	ret\n"
	"tempest_foreign_failed:\n"
	"	xorl	%eax, %eax\n"
	"	ret\n"
	".size tempest_foreign_copy, . - tempest_foreign_copy\n"
	".popsection\n");

/* The last fault of this thread, and what the processor said of it. */
struct fault {
	siginfo_t info;
	greg_t error, trap, address;
};

static __thread struct fault last __attribute__((tls_model("initial-exec")));

bool tempest_foreign_fault(const siginfo_t *info, ucontext_t *context)
{
	greg_t *regs = context->uc_mcontext.gregs;
	uintptr_t begin = (uintptr_t)tempest_foreign_begin;

	if ((uintptr_t)regs[REG_RIP] - begin >= (uintptr_t)tempest_foreign_failed - begin)
		return false;
	last.info = *info;
	last.error = regs[REG_ERR];
	last.trap = regs[REG_TRAPNO];
	last.address = regs[REG_CR2];
	regs[REG_RIP] = (greg_t)tempest_foreign_failed;
	return true;
}

void tempest_foreign_chain(ucontext_t *context)
{
	greg_t *regs = context->uc_mcontext.gregs;
	siginfo_t info = last.info;

	regs[REG_ERR] = last.error;
	regs[REG_TRAPNO] = last.trap;
	regs[REG_CR2] = last.address;
	tempest_signals_chain(info.si_signo, &info, context);
}
