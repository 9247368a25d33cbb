// SPDX-License-Identifier: MIT
#include <asm/prctl.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/control.h"
#include "base/error.h"
#include "memory/block.h"
#include "memory/view.h"
#include "trap/admit.h"
#include "trap/foreign.h"
#include "trap/outline.h"
#include "trap/signals.h"
#include "trap/string_op.h"
#include "trap/trap.h"

#ifdef TEMPEST_TEST_CONTROLS
_Atomic unsigned long tempest_traps;
#endif

/* Bits of a page fault's error code. */
#define FAULT_WRITE	0x2
#define FAULT_FETCH	0x10

/* Did the processor find an access to the segment in its way? */
static bool is_ours(int signal, const siginfo_t *info)
{
	if (!tempest_inside((uintptr_t)info->si_addr))
		return false;
	if (signal == SIGBUS)
		return info->si_code == BUS_ADRERR;
	return info->si_code == SEGV_ACCERR || info->si_code == SEGV_MAPERR;
}

__attribute__((cold, noreturn))
static void cannot(const ucontext_t *context, const siginfo_t *info, const char *why)
{
	const uint8_t *at = (const uint8_t *)context->uc_mcontext.gregs[REG_RIP];

	tempest_die("access to %p by %p (%02x %02x %02x %02x %02x %02x %02x %02x): %s",
		    info->si_addr, (const void *)at, at[0], at[1], at[2], at[3], at[4], at[5],
		    at[6], at[7], why);
}

/* A thread that was made before this library was ready has another base. True if it had. */
static bool set_gs(void)
{
	uintptr_t base;

	return !syscall(SYS_arch_prctl, ARCH_GET_GS, &base) && base != TEMPEST_ALIAS_OFFSET &&
	       !syscall(SYS_arch_prctl, ARCH_SET_GS, TEMPEST_ALIAS_OFFSET);
}

/*
 * The decoder has its own opinion of where the operand is. If the processor's is another
 * one, the wrong tags would be looked at.
 */
static bool agrees(const struct tempest_insn *insn, const siginfo_t *info)
{
	return (uintptr_t)info->si_addr - insn->address < insn->size;
}

/* The same instruction in the loop that checks, or 0. */
static uintptr_t checked_place(uintptr_t pc)
{
	const struct tempest_loop *at = tempest_loop;

	if (!at || CONTROL(CONTROL_NO_SWITCH))
		return 0;
	while (at->plain && at->plain != pc)
		at++;
	return at->plain ? at->checked : 0;
}

/*
 * A loop that took its pages for whole goes on with checks where one is not: otherwise each of its
 * accesses would trap there. Where there is a conflict its instruction is the next that traps.
 */
static bool switch_loop(const struct tempest_access *access, const siginfo_t *info,
			ucontext_t *context)
{
	uintptr_t page = tempest_page_of((uintptr_t)info->si_addr), va, place;
	bool is_page;

	place = checked_place(access->pc);
	if (!place || tempest_fault_conflict(access, &va, &is_page))
		return false;
	if (tempest_view_open(page, tempest_need(access->write)))
		return true;
	tempest_set_whole(page, 0);
	context->uc_mcontext.gregs[REG_RIP] = place;
	return true;
}

static void execute(struct tempest_thread *thread, struct tempest_insn *insn,
		    const siginfo_t *info, ucontext_t *context)
{
	struct tempest_access access = {
		.va = insn->address,
		.size = insn->size,
		.write = insn->modifies || (context->uc_mcontext.gregs[REG_ERR] & FAULT_WRITE),
		.pc = context->uc_mcontext.gregs[REG_RIP],
	};
	const char *why;

	if (!agrees(insn, info))
		cannot(context, info, "the operand is elsewhere");
	if (switch_loop(&access, info, context))
		return;
	if (tempest_admit(thread, &access, true) == ADMIT_OPENED)
		return;
	why = tempest_outline_run(thread, insn, context);
	if (why)
		cannot(context, info, why);
}

/* The page, if it allows the access and is uniform: hardware is faster. */
static bool open_for_string(const siginfo_t *info, const ucontext_t *context)
{
	bool write = context->uc_mcontext.gregs[REG_ERR] & FAULT_WRITE;

	return tempest_view_open(tempest_page_of((uintptr_t)info->si_addr), tempest_need(write));
}

static void handle(const siginfo_t *info, ucontext_t *context)
{
	struct tempest_thread *thread = tempest_thread_known();
	struct tempest_insn insn;
	const char *why;

	CONTROL_TRAPPED();
	if (!thread) {
		thread = tempest_thread_self();
		/* A checked access was made through it: it finds the alias now */
		if (set_gs())
			return;
	}
	why = tempest_decode(context, &insn);
	if (why)
		cannot(context, info, why);
	if (insn.kind != INSN_STRING)
		execute(thread, &insn, info, context);
	else if (!open_for_string(info, context))
		tempest_string_op(thread, &insn, context);
}

void tempest_trap(int signal, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	if (tempest_signals_defer(signal, info, context))
		return;
	if (info->si_code > 0 && tempest_foreign_fault(info, context))
		return;
	if (!is_ours(signal, info)) {
		tempest_signals_chain(signal, info, context);
		return;
	}
	if (tempest_forked)
		tempest_die("a forked child has no segment, but accesses %p", info->si_addr);
	if (((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & FAULT_FETCH)
		tempest_die("what is in the segment, at %p, cannot be executed", info->si_addr);
	handle(info, context);
	errno = saved_errno;
}
