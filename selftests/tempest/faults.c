// SPDX-License-Identifier: GPL-2.0-only
/* Suspension and resumption, the protocol thread's order, timers. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/page.h"
#include "base/settings.h"
#include "test.h"

#define WAIT_UNTIL(expression)	wait_for(is_set, &(expression), #expression)

static bool is_set(void *flag)
{
	return atomic_load((atomic_int *)flag) != 0;
}

static void validate(void *va)
{
	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	TPPI_resume_va(va, TPPI_TAG_BLK_SIZE);
}

static void handle_by(int tag, TPPI_BlkAccFaultHandlerPtr handler)
{
	TPPI_register_blk_acc_fault_handler(0, tag, TPPI_ReadAccess, handler);
	TPPI_register_blk_acc_fault_handler(0, tag, TPPI_WriteAccess, handler);
}

static pthread_t start_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, run, argument));
	return thread;
}

/* ---- two threads, one block ---- */

static atomic_int invalid_calls, busy_calls, first_waits, second_stores;

static void mark_busy(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	/* The second time would be for a block that is Busy */
	first_waits = 1;
	/* Until the other one is queued, which has met the Invalid block, too */
	WAIT_UNTIL(second_stores);
	usleep(300000);
	invalid_calls++;
	CHECK_EQUAL(TPPI_get_blk_acc(va), TPPI_Blk_Invalid);
	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalid_To_Busy);
}

static void answer_busy(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	busy_calls++;
	validate(va);
}

static void *store_one(void *at)
{
	*(volatile int *)at = 1;
	return NULL;
}

static void *tell_and_store(void *at)
{
	second_stores = 1;
	*(volatile int *)at = 1;
	return NULL;
}

static void second_meets_busy(void)
{
	pthread_t one, two;

	handle_by(TPPI_Blk_Invalid, mark_busy);
	handle_by(TPPI_Blk_Busy, answer_busy);
	map_page(page_at(0), 0, TPPI_Blk_Invalid);
	one = start_thread(store_one, page_at(0));
	WAIT_UNTIL(first_waits);
	two = start_thread(tell_and_store, page_at(0) + 4);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	CHECK_EQUAL(invalid_calls, 1);
	CHECK_EQUAL(busy_calls, 1);
}

/* ---- who resumes ---- */

static atomic_int suspended_calls;

static void leave_suspended(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)va;
	(void)usr_ptr;
	(void)home;
	suspended_calls++;
}

static void allocate_and_resume(void *va, int pc, int is_write)
{
	(void)pc;
	(void)is_write;
	map_page((void *)((uintptr_t)va & ~(uintptr_t)(TPPI_PAGE_SIZE - 1)), 0,
		 TPPI_Blk_Writable);
	TPPI_resume_va(va, TPPI_PAGE_SIZE);
}

static void validate_by_message(TPPI_NodeId src, int size)
{
	CHECK_EQUAL(src, TPPI_self_address);
	CHECK_EQUAL(size, 8);
	validate(TPPI_recv_P());
}

static void *send_answer(void *va)
{
	WAIT_UNTIL(suspended_calls);
	TPPI_send_items(TPPI_self_address, validate_by_message, "P", va);
	return NULL;
}

static void resume_from_anywhere(void)
{
	pthread_t thread;

	handle_by(TPPI_Blk_Invalid, leave_suspended);
	TPPI_register_page_fault_handler(allocate_and_resume);
	*(volatile int *)page_at(3) = 1;
	CHECK_EQUAL(TPPI_get_page_info(page_at(3), NULL), 1);

	map_page(page_at(0), 0, TPPI_Blk_Invalid);
	thread = start_thread(send_answer, page_at(0));
	*(volatile int *)page_at(0) = 1;
	pthread_join(thread, NULL);
	CHECK_EQUAL(suspended_calls, 1);

	/* By another thread; its tag is as before: it comes again */
	thread = start_thread(store_one, page_at(0) + 64);
	while (suspended_calls < 2)
		usleep(100);
	TPPI_resume_va(page_at(0) + 64, TPPI_TAG_BLK_SIZE);
	while (suspended_calls < 3)
		usleep(100);
	TPPI_resume_va(page_at(0), TPPI_TAG_BLK_SIZE);	/* another block */
	validate(page_at(0) + 64);
	pthread_join(thread, NULL);
	CHECK_EQUAL(suspended_calls, 3);
}

/* ---- no resumption is lost ---- */

static void *store_many(void *at)
{
	long rounds = *(long *)at;

	for (long i = 0; i < rounds; i++) {
		*(volatile int *)page_at(0) = 1;
		TPPI_change_blk_acc(page_at(0), TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
	}
	return NULL;
}

static atomic_int over;

/* From outside the protocol thread, before and after its handlers see the fault. */
static void *keep_resuming(void *unused)
{
	while (!over)
		validate(page_at(0));
	return unused;
}

static void resume_is_never_lost(void)
{
	long rounds = 20000L * scale();
	pthread_t storing, resuming;

	handle_by(TPPI_Blk_Invalid, leave_suspended);
	map_mixed(page_at(0));
	TPPI_change_blk_acc(page_at(0), TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
	resuming = start_thread(keep_resuming, NULL);
	storing = start_thread(store_many, &rounds);
	pthread_join(storing, NULL);
	over = 1;
	pthread_join(resuming, NULL);
}

/* A thread that is still in the queue, behind a handler that takes long. */
static atomic_int resumed_in_queue, handler_entered, handler_left;

static void take_long(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	handler_entered = 1;
	for (int i = 0; i < 3000 && !resumed_in_queue; i++)
		usleep(1000);
	handler_left = 1;
	validate(va);
}

static void *store_and_tell(void *at)
{
	*(volatile int *)at = 1;
	resumed_in_queue = handler_left ? 0 : 1;
	return NULL;
}

static void resume_queued(void)
{
	pthread_t first, second;

	handle_by(TPPI_Blk_Invalid, take_long);
	map_page(page_at(0), 0, TPPI_Blk_Invalid);
	first = start_thread(store_one, page_at(0));
	WAIT_UNTIL(handler_entered);
	second = start_thread(store_and_tell, page_at(0) + 64);
	usleep(100000);
	validate(page_at(0) + 64);
	pthread_join(second, NULL);
	pthread_join(first, NULL);
	CHECK(resumed_in_queue);
}

/* ---- forward progress ---- */

#define COUNTERS	4

static atomic_ulong progress[COUNTERS];

static void *count_plainly(void *number)
{
	long i = (long)number;

	while (!over) {
		((volatile uint32_t *)page_at(0))[i]++;
		progress[i]++;
	}
	return NULL;
}

static atomic_ulong most_given;

/* In a row, without a step of the first counter. By the protocol thread. */
static void count_given(void)
{
	static unsigned long given, steps;

	if (steps != progress[0])
		given = 0;
	steps = progress[0];
	if (++given > most_given)
		most_given = given;
}

/* As a recall that comes at once: the block is taken away before the thread can run. */
static void give_and_take(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	count_given();
	validate(va);
	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
}

static void pin(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Nobody is quick enough by waiting awake, or by preempting the protocol thread */
static void slow_protocol(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	tempest_settings.spin_ns = 0;
	pin(1);
}

static void each_advances(int number)
{
	unsigned long before[COUNTERS];
	pthread_t threads[COUNTERS];

	tempest_settings.suspended_spin_ns = 0;
	pin(0);
	TPPI_send(0, slow_protocol);
	handle_by(TPPI_Blk_Invalid, give_and_take);
	map_page(page_at(0), 0, TPPI_Blk_Invalid);
	for (long i = 0; i < number; i++)
		threads[i] = start_thread(count_plainly, (void *)i);
	for (int window = 0; window < 3; window++) {
		for (int i = 0; i < number; i++)
			before[i] = progress[i];
		sleep(1);
		for (int i = 0; i < number; i++)
			wait_past(&progress[i], before[i], "progress");
	}
	over = 1;
	for (int i = 0; i < number; i++)
		pthread_join(threads[i], NULL);
}

/*
 * It is resumed twice for each access, of which there are two for each step. No mean: where the
 * protocol thread loses its processor before it takes the block away there are any number of steps.
 */
static void one_advances(void)
{
	each_advances(1);
	if (most_given > 6)
		failed(__FILE__, __LINE__, "resumed %lu times for a step",
		       (unsigned long)most_given);
}

static void all_advance(void)
{
	each_advances(COUNTERS);
}

/* ---- priorities ---- */

static char order[8];
static atomic_int running, overlaps, ordered, blocked, let_go;
static atomic_int faulting[2];	/* thread ids */

static void note(char what)
{
	if (running++)
		overlaps++;
	order[ordered] = what;
	ordered++;
	running--;
}

static void note_fault(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	note('f');
	validate(va);
}

static void note_timer(void *user_ptr)
{
	(void)user_ptr;
	note('t');
}

static void note_message(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	note('m');
}

static void block_for_long(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	running++;
	blocked = 1;
	WAIT_UNTIL(let_go);
	running--;
}

static void *tell_who_and_store(void *at)
{
	faulting[(char *)at != page_at(0)] = gettid();
	*(volatile int *)at = 1;
	return NULL;
}

/* A thread that has nothing else to sleep for waits until the protocol thread sees its fault. */
static bool is_queued(void *thread)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", *(atomic_int *)thread);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (file)
		fclose(file);
	return state == 'S';
}

static void priorities(void)
{
	pthread_t threads[2];

	handle_by(TPPI_Blk_Invalid, note_fault);
	map_page(page_at(0), 0, TPPI_Blk_Invalid);
	TPPI_send(0, block_for_long);
	WAIT_UNTIL(blocked);
	for (int i = 0; i < 2; i++) {
		TPPI_send(0, note_message);
		TPPI_schedule_timer(1000, note_timer, NULL);
		threads[i] = start_thread(tell_who_and_store, page_at(0) + 64 * i);
	}
	for (int i = 0; i < 2; i++) {
		WAIT_UNTIL(faulting[i]);
		wait_for(is_queued, &faulting[i], "a fault");
	}
	/* The timers are due as well. */
	usleep(20000);
	let_go = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	while (ordered < 6)
		usleep(1000);
	if (strcmp(order, "ffttmm"))
		failed(__FILE__, __LINE__, "the order is %s", order);
	CHECK_EQUAL(overlaps, 0);
}

/* ---- timers ---- */

#define TIMERS	200

static struct timing {
	int64_t due;
	int ticks;
} timings[TIMERS];

static atomic_int fired, early, disordered;
static int last_ticks = -1;

static void fire(void *user_ptr)
{
	struct timing *t = user_ptr;

	early += now_ns() < t->due;
	disordered += t->ticks < last_ticks;
	last_ticks = t->ticks;
	fired++;
}

static void schedule(struct timing *t, int ticks)
{
	t->ticks = ticks;
	t->due = now_ns() + ticks * (1000000000LL / TPPI_TICKS_PER_SEC);
	TPPI_schedule_timer(ticks, fire, t);
}

static void schedule_all(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	/* From a handler, which none interrupts: so the order is that of the ticks */
	for (int i = 0; i < TIMERS; i++)
		schedule(&timings[i], 20000 + 1000 * (i * 37 % TIMERS));
}

static bool all_fired(void *unused)
{
	(void)unused;
	return fired == TIMERS;
}

static void timers(void)
{
	TPPI_send(0, schedule_all);
	wait_for(all_fired, NULL, "timers");
	CHECK_EQUAL(early, 0);
	CHECK_EQUAL(disordered, 0);
}

static void again(void *user_ptr)
{
	atomic_int *left = user_ptr;

	if (--*left)
		TPPI_schedule_timer(*left % 3 ? 0 : -5, again, left);
	else
		over = 1;
}

static void timers_from_timers(void)
{
	static atomic_int left = 1000;

	TPPI_schedule_timer(10, again, &left);
	WAIT_UNTIL(over);
}

/* By several threads at once, while others expire. */
#define TIMERS_EACH	2000

static atomic_int expired;

static void expire(void *unused)
{
	(void)unused;
	expired++;
}

static void *schedule_many(void *seed)
{
	uint32_t random = (uintptr_t)seed;

	for (int i = 0; i < TIMERS_EACH; i++) {
		random = random * 1103515245 + 12345;
		TPPI_schedule_timer(random >> 16 & 1023, expire, NULL);
	}
	return NULL;
}

static bool all_expired(void *number)
{
	return expired == *(int *)number;
}

static void timers_by_threads(void)
{
	pthread_t threads[COUNTERS];
	int number = COUNTERS * TIMERS_EACH;

	for (uintptr_t i = 0; i < COUNTERS; i++)
		threads[i] = start_thread(schedule_many, (void *)i);
	for (int i = 0; i < COUNTERS; i++)
		pthread_join(threads[i], NULL);
	wait_for(all_expired, &number, "timers");
}

/* ---- page faults ---- */

static volatile struct {
	void *va;
	int pc, is_write;
	uintptr_t full_pc;
	int calls, block_calls;
} page_fault;

static void note_page_fault(void *va, int pc, int is_write)
{
	page_fault.va = va;
	page_fault.pc = pc;
	page_fault.full_pc = TPPI_get_fault_pc();
	page_fault.is_write = is_write;
	page_fault.calls++;
	CHECK_EQUAL(TPPI_get_page_info(va, NULL), 0);
	/* The block fault follows */
	map_page((void *)((uintptr_t)va & ~(uintptr_t)(TPPI_PAGE_SIZE - 1)), 0, TPPI_Blk_Invalid);
	TPPI_resume_va(va, TPPI_TAG_BLK_SIZE);
}

static void note_block_fault(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	page_fault.block_calls++;
	CHECK(TPPI_get_fault_pc() == page_fault.full_pc);
	validate(va);
}

__attribute__((noinline))
static void store_here(char *at)
{
	*(volatile char *)at = 1;
}

__attribute__((noinline))
static int load_here(char *at)
{
	return *(volatile char *)at;
}

static bool is_within(uintptr_t pc, void *function)
{
	return pc - (uintptr_t)function < 64;
}

static void page_faults(void)
{
	handle_by(TPPI_Blk_Invalid, note_block_fault);
	TPPI_register_page_fault_handler(note_page_fault);
	store_here(page_at(5) + 77);
	CHECK(page_fault.va == page_at(5) + 77);
	CHECK(page_fault.is_write);
	CHECK(is_within((unsigned int)page_fault.pc, store_here));
	CHECK(page_fault.full_pc == (unsigned int)page_fault.pc);
	CHECK_EQUAL(page_fault.calls, 1);
	CHECK_EQUAL(page_fault.block_calls, 1);
	CHECK_EQUAL(load_here(page_at(6) + 4095), 0);
	CHECK(page_fault.va == page_at(6) + 4095);
	CHECK(!page_fault.is_write);
	CHECK(is_within(page_fault.full_pc, load_here));
}

/* ---- a page that another thread is about to map ---- */

static atomic_int page_calls, stores;

static void count_and_map(void *va, int pc, int is_write)
{
	(void)pc;
	(void)is_write;
	page_calls++;
	/* Nobody is in between: it is not mapped, and so it can be */
	CHECK_EQUAL(TPPI_get_page_info(va, NULL), 0);
	map_page((void *)((uintptr_t)va & ~(uintptr_t)(TPPI_PAGE_SIZE - 1)), 0,
		 TPPI_Blk_Writable);
	TPPI_resume_va(va, TPPI_PAGE_SIZE);
}

static void *count_and_store(void *at)
{
	stores++;
	*(volatile int *)at = 1;
	return NULL;
}

static void *map_later(void *page)
{
	WAIT_UNTIL(stores);
	usleep(20000);
	tempest_page((uintptr_t)page)->state = PAGE_FREE;
	return NULL;
}

static void page_is_moving(void)
{
	pthread_t owner, storing;

	TPPI_register_page_fault_handler(count_and_map);
	tempest_page((uintptr_t)page_at(0))->state = PAGE_MOVING;
	storing = start_thread(count_and_store, page_at(0));
	WAIT_UNTIL(stores);
	usleep(20000);
	CHECK_EQUAL(page_calls, 0);
	tempest_page((uintptr_t)page_at(0))->state = PAGE_FREE;
	pthread_join(storing, NULL);
	CHECK_EQUAL(page_calls, 1);
	/* Calls wait for each other, too */
	tempest_page((uintptr_t)page_at(1))->state = PAGE_MOVING;
	owner = start_thread(map_later, page_at(1));
	CHECK_EQUAL(TPPI_remap(page_at(0), page_at(1)), 1);
	pthread_join(owner, NULL);
	tempest_page((uintptr_t)page_at(2))->state = PAGE_MOVING;
	owner = start_thread(map_later, page_at(2));
	CHECK_EQUAL(TPPI_remap(page_at(2), page_at(3)), 0);
	pthread_join(owner, NULL);
	CHECK_EQUAL(TPPI_remap(page_at(1), page_at(1)), 0);
	CHECK_EQUAL(TPPI_get_page_info(page_at(1), NULL), 1);
}

static void touch(void)
{
	store_here(page_at(0));
	failed(__FILE__, __LINE__, "there was no fault");
}

static void without_page_handler(void)
{
	touch();
}

static void without_block_handler(void)
{
	map_page(page_at(0), 0, TPPI_Blk_Invalid);
	touch();
}

static void touch_as_message(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	touch();
}

/* A closed page that is uniform, one that is not, one whose access has a page before it. */
static void access_as_message(TPPI_NodeId src, int size)
{
	char *to = page_at(1) + 64, *from = page_at(2) - 4;
	long bytes = 8;

	(void)src;
	(void)size;
	store_here(page_at(0));
	CHECK_EQUAL(load_here(page_at(0)), 1);
	store_here(page_at(1));
	CHECK_EQUAL(load_here(page_at(1)), 1);
	*(volatile char *)(page_at(2) - 1) = 7;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
	CHECK_EQUAL(load_here(page_at(1) + 67), 7);
	checked_store(page_at(1) + 128, 5);
	CHECK_EQUAL(checked_load(page_at(3)), 0);
	over = 1;
}

static void handler_accesses(void)
{
	map_page(page_at(0), 0, TPPI_Blk_Writable);
	map_mixed(page_at(1));
	TPPI_change_blk_acc(page_at(2) - 1, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	TPPI_change_blk_acc(page_at(1) + 512, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
	map_mixed(page_at(2));
	map_page(page_at(3), 0, TPPI_Blk_ReadOnly);
	TPPI_send(0, access_as_message);
	WAIT_UNTIL(over);
}

/* ---- what handlers must not do, and is said ---- */

static void wait_as_message(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	TPPI_barrier();
}

static void handler_waits(void)
{
	TPPI_send(TPPI_self_address, wait_as_message);
	sleep(10);
}

static void end_as_message(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	pthread_exit(NULL);
}

static void handler_ends_thread(void)
{
	TPPI_send(TPPI_self_address, end_as_message);
	sleep(10);
}

static void timer_without_handler(void)
{
	TPPI_schedule_timer(0, NULL, NULL);
	sleep(10);
}

static atomic_int child, heard;

static void fork_as_message(TPPI_NodeId src, int size)
{
	pid_t made = fork();

	(void)src;
	(void)size;
	if (made)
		child = made;
}

static void hear(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	heard++;
}

static bool has_child(void *unused)
{
	(void)unused;
	return child;
}

static bool has_heard(void *number)
{
	return heard == *(int *)number;
}

/* It has this thread's state, and must not go on with it. */
static void child_returns(void)
{
	int number = 1000, status;

	TPPI_send((TPPI_self_address + 1) % TPPI_num_nodes, fork_as_message);
	wait_for(has_child, NULL, "a child of a handler");
	CHECK(child > 0);
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	for (int i = 0; i < number; i++)
		TPPI_send((TPPI_self_address + 1) % TPPI_num_nodes, hear);
	wait_for(has_heard, &number, "messages after a child was made");
}

static void handler_conflicts(void)
{
	map_page(page_at(0), 0, TPPI_Blk_Invalid);
	TPPI_send(0, touch_as_message);
	sleep(10);
}

/* ---- the program is told of its end ---- */

static void end_well(int signal)
{
	(void)signal;
	_exit(0);
}

/* In the trap handler. */
static void abort_in_trap(void)
{
	signal(SIGABRT, end_well);
	*(volatile char *)page_at(0) = 1;
}

/* In a call, which has signals blocked. */
static void abort_in_call(void)
{
	signal(SIGABRT, end_well);
	TPPI_change_blk_acc(page_at(0), TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	failed(__FILE__, __LINE__, "the page is not mapped, but its tag changed");
}

const struct test tests[] = {
	{ "second-meets-busy", second_meets_busy, CONTROL_STALE_DISPATCH, 0, 0 },
	{ "resume-from-anywhere", resume_from_anywhere, 0, 0, 0 },
	{ "resume-is-never-lost", resume_is_never_lost, 0, 0, 0 },
	{ "resume-queued", resume_queued, CONTROL_NO_DEQUEUE, 0, 0 },
	{ "one-advances", one_advances, CONTROL_NO_GRANT, 0, 0 },
	{ "all-advance", all_advance, 0, 0, 0 },
	{ "priorities", priorities, CONTROL_MESSAGES_FIRST, 0, 0 },
	{ "timers", timers, CONTROL_EARLY_TIMERS, 0, 0 },
	{ "timers-by-threads", timers_by_threads, 0, 0, 0 },
	{ "timers-from-timers", timers_from_timers, 0, 0, 0 },
	{ "page-faults", page_faults, 0, 0, 0 },
	{ "page-is-moving", page_is_moving, 0, 0, 0 },
	{ "without-page-handler", without_page_handler, 0, SIGABRT, 0 },
	{ "without-block-handler", without_block_handler, 0, SIGABRT, 0 },
	{ "handler-accesses", handler_accesses, 0, 0, 0 },
	{ "handler-conflicts", handler_conflicts, 0, SIGABRT, 0 },
	{ "handler-waits", handler_waits, 0, SIGABRT, 0 },
	{ "handler-ends-thread", handler_ends_thread, 0, SIGABRT, 0 },
	{ "timer-without-handler", timer_without_handler, 0, SIGABRT, 0 },
	{ "child-returns", child_returns, 0, 0, 0 },
	{ "abort-in-trap", abort_in_trap, 0, 0, 0 },
	{ "abort-in-call", abort_in_call, 0, 0, 0 },
	{ 0 }
};
