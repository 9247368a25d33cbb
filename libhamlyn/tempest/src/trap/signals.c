// SPDX-License-Identifier: MIT
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/control.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/quiet.h"
#include "trap/outline.h"
#include "trap/signals.h"
#include "trap/trap.h"

/* libc's own, under the name that is not taken here. */
int __sigaction(int signal, const struct sigaction *action, struct sigaction *old);

#define SIGNALS		64
#define CANCEL_BIT	((uint64_t)1 << (32 - 1))	/* libc's: ends a thread wherever it is */
#define SETXID_BIT	((uint64_t)1 << (33 - 1))
#define OURS		(bit(SIGSEGV) | bit(SIGBUS))

/*
 * @action: what the program has asked for; under the lock
 * @handler: of it, for who is in a handler and may not wait for a lock; SIG_DFL if none
 * @known: it has asked; else the kernel has what was inherited
 */
struct disposition {
	struct sigaction action;
	_Atomic(void *) handler;
	bool known;
};

static struct disposition dispositions[SIGNALS + 1];
static struct tempest_lock lock;
static bool started;

/* A child of vfork() has its parent's memory, but signals of its own. */
static pid_t owner;

static uint64_t bit(int signal)
{
	return (uint64_t)1 << (signal - 1);
}

static uint64_t mask_of(const sigset_t *set)
{
	uint64_t mask;

	memcpy(&mask, set, sizeof(mask));
	return mask;
}

static void set_mask(sigset_t *set, uint64_t mask)
{
	memcpy(set, &mask, sizeof(mask));
}

static bool is_function(const void *handler)
{
	return handler != (void *)SIG_DFL && handler != (void *)SIG_IGN;
}

static void *handler_of(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO ? (void *)action->sa_sigaction :
					       (void *)action->sa_handler;
}

/* Does the thread go on where it was, or in the segment itself rather than its alias? */
static void leave_slot(int signal, siginfo_t *info, ucontext_t *context)
{
	uintptr_t address = (uintptr_t)info->si_addr;

	if (!tempest_outline_unwind(context) || info->si_code <= 0)
		return;
	if (signal == SIGFPE || signal == SIGILL || signal == SIGTRAP)
		info->si_addr = (void *)context->uc_mcontext.gregs[REG_RIP];
	else if (address - TEMPEST_ALIAS_OFFSET - SEGMENT_BASE < SEGMENT_MOST)
		info->si_addr = (void *)(address - TEMPEST_ALIAS_OFFSET);
}

static void call(void *handler, int signal, siginfo_t *info, void *context)
{
	((void (*)(int, siginfo_t *, void *))handler)(signal, info, context);
}

static void block(int how, uint64_t mask)
{
	syscall(SYS_rt_sigprocmask, how, &mask, NULL, sizeof(mask));
}

/*
 * Is it the context of a trap handler, or of a call that has signals blocked? Both block
 * libc's own signal, which no program can.
 */
static bool is_library(const ucontext_t *context)
{
	return mask_of(&context->uc_sigmask) & CANCEL_BIT;
}

/* It comes again when the trap handler is left. */
static void defer(int signal, siginfo_t *info, ucontext_t *context)
{
	set_mask(&context->uc_sigmask, mask_of(&context->uc_sigmask) | bit(signal));
	block(SIG_BLOCK, bit(signal));
	syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
}

/*
 * The handler to be called. One that is for once is forgotten here and not by the kernel,
 * which would do so before another thread could set a new one, or before it is deferred.
 */
static void *take_handler(int signal)
{
	static const struct sigaction none = { .sa_handler = SIG_DFL };
	struct disposition *d = &dispositions[signal];
	void *handler = d->handler;

	if (!(d->action.sa_flags & (int)SA_RESETHAND) || owner != getpid())
		return handler;
	QUIET();
	tempest_lock(&lock);
	handler = d->handler;
	if (is_function(handler) && d->action.sa_flags & (int)SA_RESETHAND) {
		d->handler = (void *)SIG_DFL;
		if (!(bit(signal) & OURS))
			__sigaction(signal, &none, NULL);
	}
	tempest_unlock(&lock);
	return handler;
}

/* A second signal that came before the handler for the first was forgotten. */
static bool is_for_default(int signal, const void *handler)
{
	return handler == (void *)SIG_DFL &&
	       dispositions[signal].action.sa_flags & (int)SA_RESETHAND;
}

/* abort() cannot end while its signal is blocked, nor can what the thread did itself wait. */
static bool can_wait(int signal, const siginfo_t *info)
{
	if (signal == SIGABRT)
		return false;
	return info->si_code <= 0 || (signal != SIGILL && signal != SIGFPE && signal != SIGTRAP &&
				      signal != SIGSYS);
}

static void enter(int signal, siginfo_t *info, void *context)
{
	int saved_errno = errno;
	void *handler;

	/* A handler that was set while the thread is suspended: none may trap here */
	if (is_library(context) && can_wait(signal, info)) {
		defer(signal, info, context);
		return;
	}
	leave_slot(signal, info, context);
	/* sigsuspend() and its like may have blocked them, and pass by our sigprocmask() */
	block(SIG_UNBLOCK, OURS);
	handler = take_handler(signal);
	if (is_for_default(signal, handler))
		syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
	/* Another thread may just have taken the handler away */
	if (!is_function(handler))
		return;
	errno = saved_errno;
	call(handler, signal, info, context);
}

/* ---- SIGSEGV and SIGBUS ---- */

/* Signals for which there are handlers wait until a suspended access is complete. */
static void take_ours(void)
{
	struct sigaction action = {
		.sa_sigaction = tempest_trap,
		/* A fault in it, at the other operand, is not the program's end: foreign.c */
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};
	uint64_t mask = CANCEL_BIT;

	for (int i = 1; i <= SIGNALS; i++) {
		if (is_function(dispositions[i].handler))
			mask |= bit(i);
	}
	mask &= ~OURS;
	set_mask(&action.sa_mask, mask);
	if (__sigaction(SIGSEGV, &action, NULL) || __sigaction(SIGBUS, &action, NULL))
		tempest_refuse("signals cannot be taken: %s", strerror(errno));
}

/* Does it come again if the instruction is executed again? */
static bool is_synchronous(int signal, const siginfo_t *info)
{
	return info->si_code > 0 && (signal != SIGBUS || info->si_code != BUS_MCEERR_AO);
}

/* As without us: by the signal, and a core where there is one. */
static void end_by(int signal, const siginfo_t *info)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	__sigaction(signal, &action, NULL);
	/* What was sent does not come again by itself */
	if (!is_synchronous(signal, info))
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

/* Nor do handlers of the two run on top of a trap handler for what does not come of itself. */
bool tempest_signals_defer(int signal, siginfo_t *info, ucontext_t *context)
{
	if (is_synchronous(signal, info) || !is_library(context) ||
	    !is_function(dispositions[signal].handler))
		return false;
	defer(signal, info, context);
	return true;
}

void tempest_signals_chain(int signal, siginfo_t *info, void *context)
{
	struct disposition *d = &dispositions[signal];
	void *handler;

	leave_slot(signal, info, context);
	handler = take_handler(signal);
	if (handler == (void *)SIG_IGN && !is_synchronous(signal, info))
		return;
	if (!is_function(handler)) {
		end_by(signal, info);
		return;
	}
	/* It may access the segment, too */
	block(SIG_SETMASK, (mask_of(&((ucontext_t *)context)->uc_sigmask) |
			    mask_of(&d->action.sa_mask)) & ~OURS);
	call(handler, signal, info, context);
}

/* ---- what the program calls ---- */

static void get_old(int signal, struct sigaction *old)
{
	struct disposition *d = &dispositions[signal];

	if (!d->known) {
		__sigaction(signal, NULL, old);
		return;
	}
	*old = d->action;
	if (!is_function(d->handler)) {
		old->sa_handler = (void (*)(int))d->handler;
		old->sa_flags &= ~SA_SIGINFO;
	}
}

static void remember(int signal, const struct sigaction *action)
{
	struct disposition *d = &dispositions[signal];

	d->action = *action;
	d->known = true;
	d->handler = handler_of(action);
}

static int tell_kernel(int signal, const struct sigaction *action)
{
	struct sigaction changed = *action;

	if (is_function(handler_of(action))) {
		changed.sa_sigaction = enter;
		changed.sa_flags |= SA_SIGINFO;
		changed.sa_flags &= ~(int)SA_RESETHAND;	/* take_handler() */
		set_mask(&changed.sa_mask, mask_of(&action->sa_mask) & ~OURS);
	}
	return __sigaction(signal, &changed, NULL);
}

static int change(int signal, const struct sigaction *action)
{
	struct disposition before = dispositions[signal];
	int result;

	/* A signal that comes between the two finds the new handler, or none */
	if (is_function(handler_of(action)))
		remember(signal, action);
	result = tell_kernel(signal, action);
	if (result) {
		dispositions[signal].action = before.action;
		dispositions[signal].known = before.known;
		dispositions[signal].handler = before.handler;
		return result;
	}
	remember(signal, action);
	if (started && is_function(handler_of(action)) != is_function(before.handler))
		take_ours();
	return 0;
}

static int interpose(int signal, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction before, copy;
	int result = 0;

	/* The caller's memory may fault, which is not to happen with the lock held. */
	if (action) {
		copy = *action;
		action = &copy;
	}
	QUIET();
	tempest_lock(&lock);
	get_old(signal, &before);
	if (action && (signal == SIGSEGV || signal == SIGBUS))
		remember(signal, action);
	else if (action)
		result = change(signal, action);
	tempest_unlock(&lock);
	if (!result && old)
		*old = before;
	return result;
}

int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	if (signal < 1 || signal > SIGNALS || (owner && owner != getpid()) ||
	    CONTROL(CONTROL_NO_INTERPOSE))
		return __sigaction(signal, action, old);
	return interpose(signal, action, old);
}

static void (*set_handler(int number, void (*handler)(int), int flags))(int)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags }, old;

	if (handler == SIG_ERR || number < 1 || number > SIGNALS) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (!(flags & SA_NODEFER))
		set_mask(&action.sa_mask, bit(number));
	return sigaction(number, &action, &old) ? SIG_ERR : old.sa_handler;
}

void (*signal(int number, void (*handler)(int)))(int)
{
	return set_handler(number, handler, SA_RESTART);
}

/* signal() of programs compiled for X/Open. */
void (*__sysv_signal(int number, void (*handler)(int)))(int)
{
	return set_handler(number, handler, (int)SA_RESETHAND | SA_NODEFER);
}

void (*sysv_signal(int number, void (*handler)(int)))(int)
{
	return set_handler(number, handler, (int)SA_RESETHAND | SA_NODEFER);
}

void (*ssignal(int number, void (*handler)(int)))(int)
{
	return signal(number, handler);
}

/* No header declares it any more; programs that were compiled when one did call it. */
void (*bsd_signal(int number, void (*handler)(int)))(int);
void (*bsd_signal(int number, void (*handler)(int)))(int)
{
	return signal(number, handler);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	uint64_t mask = 0;

	if (set) {
		mask = mask_of(set);
		/* A thread that cannot be interrupted by its accesses would die of them */
		if (how != SIG_UNBLOCK)
			mask &= ~(OURS | CANCEL_BIT | SETXID_BIT);
	}
	if (!syscall(SYS_rt_sigprocmask, how, set ? &mask : NULL, old, sizeof(mask)))
		return 0;
	return errno;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	int saved_errno = errno, result = pthread_sigmask(how, set, old);

	errno = result ? result : saved_errno;
	return result ? -1 : 0;
}

/* ---- the same of older interfaces ---- */

static int mask_one(int how, int number, sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
	return sigaddset(&set, number) ? -1 : sigprocmask(how, &set, old);
}

void (*sigset(int number, void (*handler)(int)))(int)
{
	bool hold = handler == SIG_HOLD;
	struct sigaction action = { .sa_handler = handler }, before;
	sigset_t old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (sigaction(number, hold ? NULL : &action, &before) ||
	    mask_one(hold ? SIG_BLOCK : SIG_UNBLOCK, number, &old))
		return SIG_ERR;
	return sigismember(&old, number) ? SIG_HOLD : before.sa_handler;
}

int sighold(int number)
{
	return mask_one(SIG_BLOCK, number, NULL);
}

int sigignore(int number)
{
	struct sigaction action = { .sa_handler = SIG_IGN };

	return sigaction(number, &action, NULL);
}

static int old_mask(int how, int mask)
{
	sigset_t set, old;

	set_mask(&set, (unsigned int)mask);
	return sigprocmask(how, &set, &old) ? -1 : (int)mask_of(&old);
}

int sigblock(int mask)
{
	return old_mask(SIG_BLOCK, mask);
}

int sigsetmask(int mask)
{
	return old_mask(SIG_SETMASK, mask);
}

/* ---- start ---- */

/* Of the thread that forks, which has the lock. */
static struct tempest_quiet forking;

static void before_fork(void)
{
	struct tempest_quiet quiet = tempest_quiet_begin();

	tempest_lock(&lock);
	forking = quiet;
}

static void after_fork_parent(void)
{
	struct tempest_quiet quiet = forking;

	tempest_unlock(&lock);
	tempest_quiet_end(&quiet);
}

static void after_fork_child(void)
{
	owner = getpid();
	after_fork_parent();
}

/* What was there before us is what the program is told of. */
static void keep_inherited(int signal)
{
	struct sigaction action;

	if (!dispositions[signal].known && !__sigaction(signal, NULL, &action))
		remember(signal, &action);
}

void tempest_signals_start(void)
{
	owner = getpid();
	if (pthread_atfork(before_fork, after_fork_parent, after_fork_child))
		tempest_refuse("no memory");
	QUIET();
	tempest_lock(&lock);
	keep_inherited(SIGSEGV);
	keep_inherited(SIGBUS);
	started = true;
	take_ours();
	tempest_unlock(&lock);
}
