// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages between nodes, and a block that is handed on with them. Run by hamlyn-run with
 * two nodes or more, and by itself as the only one.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

static atomic_int arrived, answered;

/* ---- a node's messages arrive in order, whatever their length ---- */

#define MESSAGES	20000

static int next_from[64];

static void take_numbered(TPPI_NodeId src, int size)
{
	static char body[TPPI_MAX_AM_BYTES];
	int number = TPPI_recv_W();

	CHECK_EQUAL(number, next_from[src]++);
	TPPI_recv_R(body, size - 4);
	for (int i = 0; i < size - 4; i++)
		CHECK_EQUAL(body[i], (char)(number + i));
	if (next_from[src] == MESSAGES)
		arrived++;
}

static void in_order(void)
{
	static char body[TPPI_MAX_AM_BYTES];

	for (int number = 0; number < MESSAGES; number++) {
		int bytes = 4 * (number * 37 % (TPPI_MAX_AM_BYTES / 4));

		for (int i = 0; i < bytes; i++)
			body[i] = number + i;
		for (unsigned int node = 0; node < TPPI_num_nodes; node++)
			TPPI_send_items(node, take_numbered, "WR", number, body, bytes);
	}
	while (arrived < (int)TPPI_num_nodes)
		usleep(1000);
}

/* ---- a node that is never out of messages to itself ---- */

static atomic_int asked, own_messages;

static void answer(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	answered++;
}

static void ask_for_answer(TPPI_NodeId src, int size)
{
	(void)size;
	TPPI_send(src, answer);
}

static void ask_again(TPPI_NodeId src, int size)
{
	(void)size;
	own_messages++;
	if (!asked++)
		TPPI_send(TPPI_num_nodes - 1 - TPPI_self_address, ask_for_answer);
	if (!answered)
		TPPI_send(src, ask_again);
}

static bool has_answer(void *number)
{
	return answered >= *(int *)number;
}

static void others_are_heard(void)
{
	int number = 1;

	TPPI_send(TPPI_self_address, ask_again);
	wait_for(has_answer, &number, "an answer among messages to itself");
	CHECK(own_messages > 0);
}

/* ---- and owes others what they have not taken at once ---- */

#define OWED	200

static void take_owed(TPPI_NodeId src, int size)
{
	static char body[TPPI_MAX_AM_BYTES];
	static int from[64];

	TPPI_recv_R(body, size);
	/* It has time to run out of buffers */
	if (!from[src])
		usleep(20000);
	if (++from[src] == OWED)
		TPPI_send(src, answer);
}

static void owe(TPPI_NodeId src, int size)
{
	static char body[TPPI_MAX_AM_BYTES];

	(void)size;
	for (int i = 0; !asked && i < OWED; i++)
		TPPI_send_R((src + 1) % TPPI_num_nodes, take_owed, body, sizeof(body));
	asked = 1;
	if (!answered)
		TPPI_send(src, owe);
}

static void debts_are_paid(void)
{
	int number = 1;

	TPPI_barrier();
	TPPI_send(TPPI_self_address, owe);
	wait_for(has_answer, &number, "messages that were kept");
}

/* ---- a block goes round, and every node adds to it ---- */

#define ROUNDS	2000

static void take_block(TPPI_NodeId src, int size);
static atomic_int turns;

static void hand_on(void *va)
{
	if (++turns <= ROUNDS)
		TPPI_send_items((TPPI_self_address + 1) % TPPI_num_nodes, take_block, "WBa", 7, va,
				TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
}

static void take_block(TPPI_NodeId src, int size)
{
	(void)src;
	CHECK_EQUAL(size, 4 + TPPI_TAG_BLK_SIZE);
	CHECK_EQUAL(TPPI_recv_W(), 7);
	if (TPPI_num_nodes > 1)
		CHECK_EQUAL(TPPI_get_blk_acc(page_at(0)), TPPI_Blk_Invalid);
	TPPI_recv_Ba(page_at(0), TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	TPPI_resume_va(page_at(0), TPPI_TAG_BLK_SIZE);
	answered++;
}

static void leave_suspended(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)va;
	(void)usr_ptr;
	(void)home;
}

static void pass_on(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	hand_on(page_at(0));
}

static void ring(void)
{
	for (int tag = 0; tag < 2; tag++) {
		TPPI_register_blk_acc_fault_handler(0, tag, TPPI_ReadAccess, leave_suspended);
		TPPI_register_blk_acc_fault_handler(0, tag, TPPI_WriteAccess, leave_suspended);
	}
	map_page(page_at(0), 0, TPPI_self_address ? TPPI_Blk_Invalid : TPPI_Blk_Writable);
	TPPI_barrier();
	for (int i = 0; i < ROUNDS; i++) {
		volatile uint32_t *counter = (uint32_t *)page_at(0);
		uint32_t found = *counter;

		CHECK_EQUAL(found, i * TPPI_num_nodes + TPPI_self_address);
		*counter = found + 1;
		TPPI_send(TPPI_self_address, pass_on);
		/* It is not here until it has been round */
		while (answered < i + 1 + !!TPPI_self_address && i + 1 < ROUNDS)
			usleep(10);
	}
}

/* ---- one that dies ends the others ---- */

#define MOST_NODES	64

/*
 * When each node was last seen, and last of all when the one died: in $HAMLYN_TEST_BEATS, a file
 * of zeros, for whoever wants to know how long it took.
 */
static volatile int64_t *find_beats(void)
{
	static int64_t nowhere[MOST_NODES + 1];
	const char *name = getenv("HAMLYN_TEST_BEATS");
	void *beats;
	int fd;

	if (!name)
		return nowhere;
	fd = open(name, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	beats = mmap(NULL, sizeof(nowhere), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(beats != MAP_FAILED);
	close(fd);
	return beats;
}

static void beat_until(volatile int64_t *beats, int64_t end)
{
	while (now_ns() < end) {
		beats[TPPI_self_address] = now_ns();
		usleep(1000);
	}
}

static void one_dies(void)
{
	volatile int64_t *beats = find_beats();
	int64_t end = now_ns() + 30 * INT64_C(1000000000);

	TPPI_barrier();
	if (TPPI_self_address == TPPI_num_nodes - 1) {
		beats[MOST_NODES] = now_ns();
		raise(SIGKILL);
	}
	beat_until(beats, end);
}

/* With the status that a launcher has for the other way, so that who tests looks for one only. */
static void one_exits(void)
{
	volatile int64_t *beats = find_beats();
	int64_t end = now_ns() + 30 * INT64_C(1000000000);

	TPPI_barrier();
	if (TPPI_self_address == TPPI_num_nodes - 1) {
		beats[MOST_NODES] = now_ns();
		exit(128 + SIGKILL);
	}
	beat_until(beats, end);
}

static void barriers(void)
{
	for (int i = 0; i < 1000; i++)
		TPPI_barrier();
}

/* ---- nodes whose first thread ends before the others ---- */

static void *go_on(void *unused)
{
	int number = 1;

	usleep(20000);
	TPPI_send((TPPI_self_address + 1) % TPPI_num_nodes, ask_for_answer);
	wait_for(has_answer, &number, "an answer");
	TPPI_barrier();
	return unused;
}

static void first_leaves(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, go_on, NULL));
	CHECK(!pthread_detach(thread));
	pthread_exit(NULL);
}

const struct test tests[] = {
	{ "in-order", in_order, 0, 0, 0 },
	{ "others-are-heard", others_are_heard, 0, 0, 0 },
	{ "debts-are-paid", debts_are_paid, 0, 0, 0 },
	{ "ring", ring, 0, 0, 0 },
	{ "barriers", barriers, 0, 0, 0 },
	{ "first-leaves", first_leaves, 0, 0, 0 },
	{ "one-dies", one_dies, 0, SIGKILL, 0 },
	{ "one-exits", one_exits, 0, SIGKILL, 0 },
	{ 0 }
};
