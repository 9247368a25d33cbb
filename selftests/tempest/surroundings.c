// SPDX-License-Identifier: GPL-2.0-only
/* System calls, signals, children, and what the surroundings may deny. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/abi.h"
#include "test.h"

/* ---- system calls ---- */

static void syscalls(void)
{
	char *page = page_at(0);
	int fd = memfd_create("test", 0);

	CHECK(fd >= 0);
	CHECK_EQUAL(pwrite(fd, "abcd", 4, 0), 4);
	map_mixed(page);
	CHECK(pread(fd, page, 4, 0) < 0 && errno == EFAULT);
	CHECK(pwrite(fd, page, 4, 0) < 0 && errno == EFAULT);
	CHECK(pread(fd, page_at(7), 4, 0) < 0 && errno == EFAULT);
	/* All Writable, and opened by an access */
	TPPI_change_blk_acc(page, TPPI_PAGE_SIZE, TPPI_Blk_Validate_RW);
	page[100] = 1;
	CHECK_EQUAL(pread(fd, page, 4, 0), 4);
	CHECK(!memcmp(page, "abcd", 4));
	CHECK_EQUAL(pwrite(fd, page, 4, 0), 4);
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;
static void *volatile handled_at;
static sigjmp_buf out;

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)context;
	handled = number;
	handled_at = info->si_addr;
	siglongjmp(out, 1);
}

static void *volatile nowhere = (void *)64;

static void own_handlers(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, old;

	map_mixed(page_at(0));
	sigemptyset(&action.sa_mask);
	/* Not the library's: the program would call that from its own */
	CHECK(!sigaction(SIGSEGV, NULL, &old));
	CHECK(old.sa_handler == SIG_DFL);
	CHECK(!sigaction(SIGSEGV, &action, &old));
	CHECK(old.sa_handler == SIG_DFL);
	CHECK(!sigaction(SIGBUS, &action, NULL));
	page_at(0)[5] = 1;
	CHECK_EQUAL(handled, 0);
	if (!sigsetjmp(out, 1))
		*(volatile char *)nowhere = 1;
	CHECK_EQUAL(handled, SIGSEGV);
	CHECK(handled_at == nowhere);
	page_at(0)[6] = 1;
	CHECK(!sigaction(SIGSEGV, NULL, &old));
	CHECK(old.sa_sigaction == on_fault && old.sa_flags == SA_SIGINFO);
	CHECK(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
	CHECK(signal(SIGUSR1, SIG_DFL) == SIG_IGN);
	CHECK(sigaction(SIGKILL, &action, NULL) < 0 && errno == EINVAL);
	CHECK(sigaction(1000, &action, NULL) < 0 && errno == EINVAL);
}

/* The instruction was out of line: the handler sees it where it is. */
static void on_alignment(int number, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	handled = number;
	handled_at = (void *)c->uc_mcontext.gregs[REG_RIP];
	(void)info;
	siglongjmp(out, 1);
}

extern char misaligned_here[], divide_here[];

static void fault_out_of_line(void)
{
	struct sigaction action = { .sa_sigaction = on_alignment, .sa_flags = SA_SIGINFO };

	map_mixed(page_at(0));
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	CHECK(!sigaction(SIGFPE, &action, NULL));
	if (!sigsetjmp(out, 1))
		__asm__ volatile(".globl misaligned_here\nmisaligned_here: movaps (%0), %%xmm0"
				 : : "r"(page_at(0) + 3) : "xmm0");
	CHECK_EQUAL(handled, SIGSEGV);
	CHECK(handled_at == misaligned_here);
	if (!sigsetjmp(out, 1))
		__asm__ volatile(".globl divide_here\ndivide_here: divl (%0)"
				 : : "r"(page_at(0)), "a"(1), "d"(0) : "cc");
	CHECK_EQUAL(handled, SIGFPE);
	CHECK(handled_at == divide_here);
	/* Nothing is in flight: this ends */
	TPPI_change_blk_acc(page_at(0), TPPI_PAGE_SIZE, TPPI_Blk_Invalidate);
}

static void blocked_signals(void)
{
	sigset_t all, old;

	map_mixed(page_at(0));
	sigfillset(&all);
	CHECK(!sigprocmask(SIG_SETMASK, &all, &old));
	page_at(0)[5] = 1;
	CHECK(!pthread_sigmask(SIG_BLOCK, &all, NULL));
	page_at(0)[6] = 1;
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
}

static atomic_bool stop;

static void count_signal(int number)
{
	(void)number;
	++*(volatile uint64_t *)(page_at(0) + 64);
}

static void *send_signals(void *target)
{
	while (!stop) {
		pthread_kill(*(pthread_t *)target, SIGUSR1);
		usleep(20);
	}
	return NULL;
}

/* Handlers access the segment, wherever the thread was: in its slot, too. */
static void handlers_trap(void)
{
	volatile uint64_t *mine = (uint64_t *)page_at(0);
	int64_t end = now_ns() + (tempest_control ? 30 : 2) * INT64_C(1000000000);
	pthread_t self = pthread_self(), sender;
	uint64_t count = 0;

	map_mixed(page_at(0));
	signal(SIGUSR1, count_signal);
	CHECK(!pthread_create(&sender, NULL, send_signals, &self));
	while (now_ns() < end) {
		++*mine;
		count++;
		if (*mine != count)
			failed(__FILE__, __LINE__, "counted %lu, found %lu", (unsigned long)count,
			       (unsigned long)*mine);
	}
	stop = true;
	pthread_join(sender, NULL);
	CHECK(*(uint64_t *)(page_at(0) + 64) > 0);
	TPPI_change_blk_acc(page_at(0), TPPI_PAGE_SIZE, TPPI_Blk_Invalidate);
}

/* ---- handlers where SIGSEGV and SIGBUS might be blocked ---- */

static void count_call(int number)
{
	handled = number;
	++*(volatile uint64_t *)page_at(0);
}

/* Masks for a while, which do not pass by sigprocmask(). */
static void handlers_in_waits(void)
{
	struct timespec patience = { .tv_sec = 60 };
	sigset_t usr1, others;

	map_mixed(page_at(0));
	signal(SIGUSR1, count_call);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigfillset(&others);
	sigdelset(&others, SIGUSR1);
	CHECK(!sigprocmask(SIG_BLOCK, &usr1, NULL));
	CHECK(!raise(SIGUSR1));
	CHECK(sigsuspend(&others) < 0 && errno == EINTR);
	CHECK_EQUAL(*(uint64_t *)page_at(0), 1);
	CHECK(!raise(SIGUSR1));
	CHECK(ppoll(NULL, 0, &patience, &others) < 0 && errno == EINTR);
	CHECK_EQUAL(*(uint64_t *)page_at(0), 2);
	CHECK(!raise(SIGUSR1));
	CHECK(pselect(0, NULL, NULL, NULL, &patience, &others) < 0 && errno == EINTR);
	CHECK_EQUAL(*(uint64_t *)page_at(0), 3);
}

static atomic_int suspensions;

static void leave_suspended(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)va;
	(void)usr_ptr;
	(void)home;
	suspensions++;
}

static void jump_out(int number)
{
	count_call(number);
	siglongjmp(out, 1);
}

static void *be_suspended(void *at)
{
	if (!sigsetjmp(out, 1))
		*(volatile int *)at = 1;
	/* Once more, in a record that is in no list any more */
	*(volatile int *)((char *)at + TPPI_TAG_BLK_SIZE) = 1;
	return NULL;
}

static bool is_suspended(void *number)
{
	return suspensions == *(int *)number;
}

static void resume_when(int number, char *at)
{
	wait_for(is_suspended, &number, "a suspended thread");
	TPPI_change_blk_acc(at, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	TPPI_resume_va(at, TPPI_TAG_BLK_SIZE);
}

/* The thread's mask is that of when it trapped: there was no handler then. */
static void signal_suspended(const struct sigaction *action)
{
	char *at = page_at(1) + 2048;
	pthread_t thread;
	int one = 1;

	TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_Invalid, TPPI_WriteAccess,
					    leave_suspended);
	map_mixed(page_at(0));
	map_page(page_at(1), 0, TPPI_Blk_Invalid);
	CHECK(!pthread_create(&thread, NULL, be_suspended, at));
	wait_for(is_suspended, &one, "a suspended thread");
	CHECK(!sigaction(SIGUSR1, action, NULL));
	CHECK(!pthread_kill(thread, SIGUSR1));
	usleep(20000);
	CHECK_EQUAL(handled, 0);
	resume_when(1, at);
	resume_when(2, at + TPPI_TAG_BLK_SIZE);
	pthread_join(thread, NULL);
	CHECK_EQUAL(handled, SIGUSR1);
	CHECK_EQUAL(*(uint64_t *)page_at(0), 1);
}

static void handler_for_suspended(void)
{
	struct sigaction action = { .sa_handler = count_call, .sa_flags = SA_NODEFER };

	signal_suspended(&action);
}

static void suspended_jumps(void)
{
	struct sigaction action = { .sa_handler = jump_out, .sa_flags = (int)SA_RESETHAND };

	signal_suspended(&action);
	CHECK(!sigaction(SIGUSR1, NULL, &action));
	CHECK(action.sa_handler == SIG_DFL);
}

/* What the program is executed with. */
static void inherited_mask(void)
{
	uint64_t all = ~UINT64_C(0);

	if (!getenv("HAMLYN_TEST_BLOCKED")) {
		setenv("HAMLYN_TEST_BLOCKED", "1", 1);
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
		execl("/proc/self/exe", "surroundings", "inherited-mask", NULL);
		failed(__FILE__, __LINE__, "the program cannot be executed again");
	}
	map_mixed(page_at(0));
	signal(SIGUSR1, count_call);
	CHECK(!sigprocmask(SIG_UNBLOCK, &(sigset_t){ { 1UL << (SIGUSR1 - 1) } }, NULL));
	page_at(0)[64] = 1;
	CHECK(!raise(SIGUSR1));
	CHECK_EQUAL(handled, SIGUSR1);
}

static void call_here(int number)
{
	handled = number;
}

void (*bsd_signal(int number, void (*handler)(int)))(int);

/* None of these takes the library's signals from it, or blocks them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void older_calls(void)
{
	map_mixed(page_at(0));
	CHECK(ssignal(SIGSEGV, call_here) == SIG_DFL);
	CHECK(bsd_signal(SIGBUS, call_here) == SIG_DFL);
	page_at(0)[1] = 1;
	CHECK(sigset(SIGSEGV, SIG_DFL) == call_here);
	CHECK(sigset(SIGBUS, SIG_DFL) == call_here);
	page_at(0)[2] = 1;
	CHECK(!sigignore(SIGSEGV) && !sigignore(SIGBUS));
	page_at(0)[3] = 1;
	CHECK(!sighold(SIGSEGV) && !sighold(SIGBUS));
	page_at(0)[4] = 1;
	CHECK_EQUAL(sigblock(-1), 0);
	page_at(0)[5] = 1;
	CHECK(sigsetmask(-1));
	page_at(0)[6] = 1;
	CHECK(sigset(SIGUSR1, call_here) == SIG_HOLD);
	CHECK(sigset(SIGUSR1, SIG_HOLD) == call_here);
	CHECK(sigset(SIGUSR1, call_here) == SIG_HOLD);
	CHECK(sigset(0, call_here) == SIG_ERR && errno == EINVAL);
	CHECK(!raise(SIGUSR1));
	CHECK_EQUAL(handled, SIGUSR1);
}
#pragma GCC diagnostic pop

/* ---- faults that are none of the segment's, while it is accessed ---- */

#define PAGE	((size_t)TPPI_PAGE_SIZE)

static char *guarded;
static volatile int repairs;

/* As a collector of garbage notes which pages are written. */
static void repair(int number, siginfo_t *info, void *context)
{
	(void)context;
	handled = number;
	handled_at = info->si_addr;
	repairs++;
	if (mprotect(guarded, PAGE, PROT_READ | PROT_WRITE))
		_exit(2);
	/* It may access the segment, too */
	++*(volatile uint64_t *)page_at(2);
}

static void guard(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = {
		.sa_sigaction = repair,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};

	map_mixed(page_at(0));
	map_mixed(page_at(2));
	guarded = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(guarded != MAP_FAILED);
	CHECK(!sigaltstack(&other, NULL));
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	CHECK(!sigaction(SIGBUS, &action, NULL));
}

static void guard_again(void)
{
	CHECK_EQUAL(handled, SIGSEGV);
	CHECK(!mprotect(guarded, PAGE, PROT_NONE));
	handled = 0;
}

static void returns(void)
{
}

/* Its stack is the guarded page. */
static void call_there(void *target)
{
	__asm__ volatile("movq %%rsp, %%rbx\n\tleaq (%0), %%rsp\n\tcall *(%1)\n\tmovq %%rbx, %%rsp"
			 : : "r"(guarded + PAGE), "r"(target)
			 : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
			   "cc", "memory");
}

static void copy_bytes(void *to, const void *from, long bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

static void guarded_operands(void)
{
	char *page = page_at(0), *to, *from;
	long words = 4;

	guard();
	memcpy(page, "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqr", 64);
	copy_bytes(guarded, page, 64);
	CHECK(!memcmp(guarded, page, 64));
	CHECK(handled_at == guarded);
	guard_again();
	copy_bytes(page + 100, guarded, 64);
	CHECK(!memcmp(page + 100, page, 64));
	guard_again();
	to = guarded;
	from = page;
	__asm__ volatile("repe cmpsl" : "+D"(to), "+S"(from), "+c"(words) : : "cc", "memory");
	CHECK_EQUAL(words, 0);
	guard_again();
	*(void **)(page + 200) = (void *)returns;
	call_there(page + 200);
	guard_again();
	CHECK_EQUAL(repairs, 4);
	CHECK_EQUAL(*(uint64_t *)page_at(2), 4);
}

static void dies_of_string(void)
{
	map_mixed(page_at(0));
	copy_bytes(nowhere, page_at(0), 8);
}

static void take_word(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	suspensions = TPPI_recv_W();
}

/* The library copies what it is told to: a fault there is the program's. */
static void memory_of_calls(void)
{
	struct sigaction jump = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	int seven = 7, channel = TPPI_set_channel_src(0, NULL), to;
	sigset_t mask;

	guard();
	TPPI_send_R(0, take_word, guarded, 4);
	TPPI_send_W(0, take_word, 7);
	wait_for(is_suspended, &seven, "a message");
	guard_again();
	TPPI_change_blk_acc_and_copy(page_at(0), TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW, guarded);
	guard_again();
	CHECK_EQUAL(TPPI_set_channel_dst(0, channel, &to, 4, NULL), 1);
	while (!TPPI_is_channel_dst_ready(0, channel))
		usleep(100);
	/* Or it jumps, and no lock is lost */
	CHECK(!sigaction(SIGSEGV, &jump, NULL));
	if (!sigsetjmp(out, 1))
		TPPI_channel_send(0, channel, guarded, 4);
	CHECK(handled_at == guarded);
	guard_again();
	if (!sigsetjmp(out, 1))
		TPPI_send_R(0, take_word, guarded, 4);
	guard_again();
	CHECK(!sigprocmask(SIG_BLOCK, NULL, &mask));
	CHECK(!sigismember(&mask, SIGUSR1));
	TPPI_channel_send(0, channel, &seven, 4);
	while (!TPPI_is_channel_ready(0, channel))
		usleep(100);
	CHECK_EQUAL(to, 7);
}

/* ---- handlers for once ---- */

static void dies_of_second(void)
{
	__sysv_signal(SIGUSR1, call_here);
	raise(SIGUSR1);
	CHECK_EQUAL(handled, SIGUSR1);
	raise(SIGUSR1);
}

/* As the kernel tells of a page that is broken, while it is not accessed. */
static void dies_of_memory(void)
{
	siginfo_t info = { .si_signo = SIGBUS, .si_code = BUS_MCEERR_AO };

	syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGBUS, &info);
}

static void dies_of_null(void)
{
	*(volatile char *)nowhere = 1;
}

static void dies_of_bus(void)
{
	char *file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			  memfd_create("empty", 0), 0);

	CHECK(file != MAP_FAILED);
	*(volatile char *)file = 1;
}

static void dies_of_kill(void)
{
	kill(getpid(), SIGSEGV);
	sleep(10);
}

static void *dies_suspended(void *unused)
{
	kill(getpid(), SIGTERM);
	return unused;
}

/* The only thread waits for an access: the process can be ended all the same. */
static void wait_forever(void *va, void *usr_ptr, TPPI_NodeId home)
{
	pthread_t thread;

	(void)va;
	(void)usr_ptr;
	(void)home;
	pthread_create(&thread, NULL, dies_suspended, NULL);
}

static void terminates(void)
{
	TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_Invalid, TPPI_WriteAccess, wait_forever);
	map_page(page_at(0), 0, TPPI_Blk_Invalid);
	page_at(0)[0] = 1;
}

/* ---- children ---- */

static void touch_page(void *page)
{
	*(volatile char *)page = 1;
}

static void touch_checked(void *page)
{
	checked_store(page, 1);
}

/* As a destructor that runs in a child would. */
static void free_page(void *page)
{
	CHECK_EQUAL(TPPI_get_page_info(page, NULL), 0);
	CHECK_EQUAL(TPPI_unmap_and_free(page), 0);
	CHECK_EQUAL(TPPI_remap(page, page_at(9)), 0);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(9), 0, TPPI_Blk_Writable, 0, NULL), 0);
	CHECK_EQUAL(TPPI_get_blk_acc(page), TPPI_Blk_Invalid);
}

static void invalidate(void *page)
{
	TPPI_change_blk_acc(page, TPPI_PAGE_SIZE, TPPI_Blk_Invalidate);
}

static void do_not_call(TPPI_NodeId src, int size)
{
	failed(__FILE__, __LINE__, "a message of %d bytes from %u", size, src);
}

static void send_message(void *unused)
{
	(void)unused;
	TPPI_send(0, do_not_call);
}

static void wait_for_others(void *unused)
{
	(void)unused;
	TPPI_barrier();
}

/* What belongs to the parent is closed: each of these would act on its memory. */
static void find_files(void *unused)
{
	char path[64], target[256];

	(void)unused;
	for (int fd = 0; fd < 64; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, target, sizeof(target) - 1);
		target[length > 0 ? length : 0] = 0;
		CHECK(!strstr(target, "memfd:tempest") && !strstr(target, "userfaultfd"));
	}
}

static void do_nothing(void *unused)
{
	(void)unused;
}

/* ---- a program that closes all descriptors ---- */

static atomic_int faulted;

static void count_fault(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	faulted++;
	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	TPPI_resume_va(va, TPPI_TAG_BLK_SIZE);
}

/* What has no descriptor any more is slow, but checked. */
static void closed_descriptors(void)
{
	TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_Invalid, TPPI_WriteAccess, count_fault);
	map_page(page_at(0), 0, TPPI_Blk_Invalid);
	map_page(page_at(1), 0, TPPI_Blk_Writable);
	page_at(0)[0] = 1;
	CHECK_EQUAL(faulted, 1);
	for (int fd = 3; fd < 1000; fd++)
		close(fd);
	for (int i = 1; i < TPPI_PAGE_SIZE / TPPI_TAG_BLK_SIZE; i++) {
		page_at(0)[i * TPPI_TAG_BLK_SIZE] = 1;
		CHECK_EQUAL(faulted, i + 1);
	}
	for (int i = 0; i < TPPI_PAGE_SIZE; i++)
		page_at(1)[i] = i;
	TPPI_change_blk_acc(page_at(1), TPPI_PAGE_SIZE, TPPI_Blk_Invalidate);
	page_at(1)[0] = 0;
	CHECK_EQUAL(faulted, TPPI_PAGE_SIZE / TPPI_TAG_BLK_SIZE + 1);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(2), 0, TPPI_Blk_Writable, 0, NULL), 0);
}

static void children(void)
{
	static void (*const refused[])(void *) = { invalidate, send_message, wait_for_others };
	int status;

	map_page(page_at(0), 0, TPPI_Blk_Writable);
	map_mixed(page_at(1));
	page_at(1)[0] = 7;
	status = in_child(do_nothing, NULL);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	status = in_child(touch_page, page_at(0));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	status = in_child(touch_checked, page_at(1));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		status = in_child(refused[i], page_at(1));
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
	status = in_child(free_page, page_at(1));
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	status = in_child(find_files, NULL);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK_EQUAL(page_at(0)[0], 0);
	CHECK_EQUAL(page_at(1)[0], 7);
	CHECK_EQUAL(TPPI_get_page_info(page_at(9), NULL), 0);
	CHECK_EQUAL(system("true"), 0);
}

/* ---- threads that are older than the library ---- */

static atomic_int early_begin;
static pthread_t early;

static void *store_checked(void *unused)
{
	while (!early_begin)
		usleep(100);
	checked_store(page_at(0), 5);
	return unused;
}

/* As a constructor of another library might. */
static void make_thread(int number, char **arguments, char **environment)
{
	(void)environment;
	if (number > 1 && !strcmp(arguments[1], "early-thread"))
		pthread_create(&early, NULL, store_checked, NULL);
}

static void (*make_thread_first)(int, char **, char **)
	__attribute__((section(".preinit_array"), used)) = make_thread;

/* Its %gs has no base, and a checked access goes by that before any has trapped. */
static void early_thread(void)
{
	map_mixed(page_at(0));
	early_begin = 1;
	CHECK(early);
	pthread_join(early, NULL);
	CHECK_EQUAL(page_at(0)[0], 5);
}

/* ---- what is denied ---- */

/*
 * Before constructors: somebody else is at the segment's place. In a program that is not static
 * libc has no environment yet, and the thread sanitizer is none to ask for memory.
 */
static void take_place(int argc, char **argv, char **environment)
{
	(void)argc;
	(void)argv;
	while (*environment && strncmp(*environment, "HAMLYN_TEST_TAKE=", 17))
		environment++;
	if (*environment)
		syscall(SYS_mmap, TPPI_SEG_BASE, TPPI_PAGE_SIZE, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void (*take_place_first)(int, char **, char **)
	__attribute__((section(".preinit_array"), used)) = take_place;

static void deny(int number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static const struct denial {
	const char *variable, *value;
	int syscall;
	const char *complaint;	/* NULL: it starts */
} denials[] = {
	{ "HAMLYN_TEST_TAKE", "1", -1, "not free" },
	{ "HAMLYN_TEMPEST_SIZE", "1K", -1, "HAMLYN_TEMPEST_SIZE" },
	{ "HAMLYN_TEMPEST_SIZE", "65G", -1, "HAMLYN_TEMPEST_SIZE" },
	{ "HAMLYN_TEMPEST_SIZE", "-1", -1, "HAMLYN_TEMPEST_SIZE" },
	{ "HAMLYN_TEMPEST_SIZE", "64G", -1, NULL },
	{ "HAMLYN_TEMPEST_SPIN", "fast", -1, "HAMLYN_TEMPEST_SPIN" },
	{ "HAMLYN_TEMPEST_VIEW", "glass", -1, "glass" },
	{ "HAMLYN_TEMPEST_CHECKS", "maybe", -1, "HAMLYN_TEMPEST_CHECKS" },
	{ "GLIBC_TUNABLES", "glibc.pthread.rseq=0", -1, "rseq" },
	{ "HAMLYN_TEMPEST_VIEW", "userfaultfd", SYS_userfaultfd, "userfaultfd" },
	{ "HAMLYN_TEMPEST_VIEW", "", SYS_userfaultfd, NULL },
	{ "HAMLYN_TEMPEST_VIEW", "", SYS_membarrier, "membarrier" },
	{ "HAMLYN_TEMPEST_CHECKS", "trap", SYS_membarrier, NULL },
};

static void start_denied(const struct denial *denial, int output)
{
	dup2(output, STDERR_FILENO);
	if (!freopen("/dev/null", "w", stdout))
		_exit(3);
	unsetenv("HAMLYN_TEMPEST_VIEW");
	unsetenv("HAMLYN_TEMPEST_CHECKS");
	setenv(denial->variable, denial->value, 1);
	if (denial->syscall >= 0)
		deny(denial->syscall);
	execl("/proc/self/exe", "surroundings", "--list", NULL);
	_exit(3);
}

static void check_denial(const struct denial *denial)
{
	char text[1024] = "";
	int status, ends[2];
	pid_t pid;

	CHECK(!pipe(ends));
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		start_denied(denial, ends[1]);
	close(ends[1]);
	CHECK(read(ends[0], text, sizeof(text) - 1) >= 0);
	close(ends[0]);
	CHECK_EQUAL(waitpid(pid, &status, 0), pid);
	if (denial->complaint ? !strstr(text, denial->complaint) : status != 0)
		failed(__FILE__, __LINE__, "%s=%s without %d: status %x, \"%s\"", denial->variable,
		       denial->value, denial->syscall, status, text);
	if (denial->complaint)
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void denied(void)
{
	for (size_t i = 0; i < sizeof(denials) / sizeof(denials[0]); i++)
		check_denial(&denials[i]);
}

const struct test tests[] = {
	{ "syscalls", syscalls, 0, 0, 0 },
	{ "own-handlers", own_handlers, CONTROL_NO_INTERPOSE, 0, 0 },
	{ "fault-out-of-line", fault_out_of_line, 0, 0, 0 },
	{ "blocked-signals", blocked_signals, 0, 0, 0 },
	{ "handlers-trap", handlers_trap, CONTROL_NO_UNWIND, 0, SIGSEGV },
	{ "handlers-in-waits", handlers_in_waits, 0, 0, 0 },
	{ "handler-for-suspended", handler_for_suspended, 0, 0, 0 },
	{ "suspended-jumps", suspended_jumps, 0, 0, 0 },
	{ "inherited-mask", inherited_mask, 0, 0, 0 },
	{ "older-calls", older_calls, 0, 0, 0 },
	{ "guarded-operands", guarded_operands, 0, 0, 0 },
	{ "memory-of-calls", memory_of_calls, 0, 0, 0 },
	{ "dies-of-string", dies_of_string, 0, SIGSEGV, 0 },
	{ "dies-of-second", dies_of_second, 0, SIGUSR1, 0 },
	{ "dies-of-memory", dies_of_memory, 0, SIGBUS, 0 },
	{ "dies-of-null", dies_of_null, 0, SIGSEGV, 0 },
	{ "dies-of-bus", dies_of_bus, 0, SIGBUS, 0 },
	{ "dies-of-kill", dies_of_kill, 0, SIGSEGV, 0 },
	{ "terminates", terminates, 0, SIGTERM, 0 },
	{ "closed-descriptors", closed_descriptors, 0, 0, 0 },
	{ "children", children, 0, 0, 0 },
	{ "early-thread", early_thread, 0, 0, 0 },
	{ "denied", denied, 0, 0, 0 },
	{ 0 }
};
