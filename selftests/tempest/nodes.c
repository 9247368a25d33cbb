// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages between nodes, and a block that is handed on with them. Run by hamlyn-run with
 * two nodes or more, and by itself as the only one.
 */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
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

/* ---- channels: two to the next node, of different sizes ---- */

static const int sizes[] = { 0, 4, 4092, 4096, 4100, 100000, 1000004, 8 << 20 };

#define SIZES	((int)(sizeof(sizes) / sizeof(sizes[0])))

/* What the node before this one has told of its channel. */
static atomic_int number_told, told_size;
static atomic_int sent_calls, arrived_calls, wrong_calls;

static void tell_number(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	told_size = TPPI_recv_W();
	number_told = TPPI_recv_W();
}

static void sent(TPPI_NodeId node, int channel)
{
	(void)channel;
	wrong_calls += node != (TPPI_self_address + 1) % TPPI_num_nodes;
	sent_calls++;
}

static void has_arrived(TPPI_NodeId node, int channel)
{
	wrong_calls += !TPPI_is_channel_ready(node, channel);
	arrived_calls++;
}

static void fill(int *words, int bytes, int seed)
{
	for (int i = 0; i < bytes / 4; i++)
		words[i] = seed + i * 7;
}

static bool is_filled(const int *words, int bytes, int seed)
{
	for (int i = 0; i < bytes / 4; i++) {
		if (words[i] != seed + i * 7)
			return false;
	}
	return true;
}

static bool dst_is_ready(void *channel)
{
	return TPPI_is_channel_dst_ready((TPPI_self_address + 1) % TPPI_num_nodes,
					 *(int *)channel);
}

static bool is_here(void *channel)
{
	TPPI_NodeId before = (TPPI_self_address + TPPI_num_nodes - 1) % TPPI_num_nodes;

	return TPPI_is_channel_ready(before, *(int *)channel);
}

static bool is_told(void *size)
{
	return number_told && told_size == *(int *)size;
}

static bool is_called(void *calls)
{
	return arrived_calls == *(int *)calls && sent_calls == *(int *)calls;
}

/* Three transfers by one channel, with calls of handlers and without. */
static void use_channel(int bytes, bool calls)
{
	static int from[(8 << 20) / 4], to[(8 << 20) / 4];
	TPPI_NodeId next = (TPPI_self_address + 1) % TPPI_num_nodes;
	TPPI_NodeId before = (TPPI_self_address + TPPI_num_nodes - 1) % TPPI_num_nodes;
	int out = TPPI_set_channel_src(next, calls ? sent : NULL), in;

	TPPI_set_channel_src_user_ptr(next, out, &out);
	TPPI_send_WW(next, tell_number, bytes, out);
	wait_for(is_told, &bytes, "the number of a channel");
	in = number_told;
	number_told = 0;
	/* From here on the other one may send */
	sent_calls = 0;
	arrived_calls = 0;
	CHECK_EQUAL(TPPI_set_channel_dst(before, in, to, bytes, calls ? has_arrived : NULL), 1);
	CHECK_EQUAL(TPPI_set_channel_dst(before, in, to, bytes, NULL), 0);
	CHECK(!TPPI_get_channel_dst_user_ptr(before, in));
	TPPI_set_channel_dst_user_ptr(before, in, &in);
	for (int i = 1; i <= 3; i++) {
		wait_for(dst_is_ready, &out, "the destination");
		fill(from, bytes, 100 * TPPI_self_address + i);
		TPPI_channel_send(next, out, from, bytes);
		CHECK(!TPPI_is_channel_dst_ready(next, out));
		wait_for(is_here, &in, "a transfer");
		CHECK(is_filled(to, bytes, 100 * before + i));
		if (calls)
			wait_for(is_called, &i, "handlers");
		/* What was not told to the source is not overwritten: both have seen it */
		TPPI_barrier();
		TPPI_reset_channel(before, in);
	}
	CHECK(!TPPI_is_channel_ready(before, in));
	CHECK(TPPI_get_channel_src_user_ptr(next, out) == &out);
	CHECK(TPPI_get_channel_dst_user_ptr(before, in) == &in);
	TPPI_barrier();
	TPPI_destroy_channel_src(next, out);
	TPPI_destroy_channel_dst(before, in);
	TPPI_barrier();
}

static void channels(void)
{
	for (int i = 0; i < SIZES; i++) {
		use_channel(sizes[i], false);
		use_channel(sizes[i], true);
	}
	CHECK_EQUAL(wrong_calls, 0);
	CHECK_EQUAL(TPPI_set_channel_dst(0, 4711, (char *)&arrived + 1, 4, NULL), 0);
	CHECK_EQUAL(TPPI_set_channel_dst(0, 4711, &arrived, 3, NULL), 0);
	CHECK_EQUAL(TPPI_set_channel_dst(TPPI_num_nodes, 4711, &arrived, 4, NULL), 0);
}

static void to_unmapped(void)
{
	int channel = TPPI_set_channel_src(TPPI_self_address, NULL);
	static int word = 1;

	map_page(page_at(0), 0, TPPI_Blk_Writable);
	CHECK_EQUAL(TPPI_set_channel_dst(TPPI_self_address, channel, page_at(0), 4, NULL), 1);
	while (!TPPI_is_channel_dst_ready(TPPI_self_address, channel))
		usleep(100);
	CHECK_EQUAL(TPPI_unmap_and_free(page_at(0)), 1);
	TPPI_channel_send(TPPI_self_address, channel, &word, 4);
	sleep(30);
}

/* ---- one that dies ends the others ---- */

static void one_dies(void)
{
	TPPI_barrier();
	if (TPPI_self_address == TPPI_num_nodes - 1)
		raise(SIGKILL);
	sleep(30);
}

static void barriers(void)
{
	for (int i = 0; i < 1000; i++)
		TPPI_barrier();
}

const struct test tests[] = {
	{ "in-order", in_order, 0, 0, 0 },
	{ "others-are-heard", others_are_heard, 0, 0, 0 },
	{ "debts-are-paid", debts_are_paid, 0, 0, 0 },
	{ "ring", ring, 0, 0, 0 },
	{ "barriers", barriers, 0, 0, 0 },
	{ "channels", channels, 0, 0, 0 },
	{ "to-unmapped", to_unmapped, 0, SIGABRT, 0 },
	{ "one-dies", one_dies, 0, SIGKILL, 0 },
	{ 0 }
};
