// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtual channels, by messages and by the device itself. Run by hamlyn-run with two nodes or
 * more, and by itself as the only one.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "node/channel.h"
#include "node/job.h"
#include "test.h"
#include "node/wire.h"

/* ---- two to the next node, of different sizes ---- */

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
	CHECK_EQUAL(TPPI_set_channel_dst(0, 4711, (char *)&told_size + 1, 4, NULL), 0);
	CHECK_EQUAL(TPPI_set_channel_dst(0, 4711, &told_size, 3, NULL), 0);
	CHECK_EQUAL(TPPI_set_channel_dst(TPPI_num_nodes, 4711, &told_size, 4, NULL), 0);
}

static void to_unmapped(void)
{
	int channel = TPPI_set_channel_src(TPPI_self_address, NULL);
	static int word = 1;

	CHECK_EQUAL(TPPI_set_channel_dst(TPPI_self_address, channel, page_at(0), 4, NULL), 1);
	while (!TPPI_is_channel_dst_ready(TPPI_self_address, channel))
		usleep(100);
	TPPI_channel_send(TPPI_self_address, channel, &word, 4);
	sleep(30);
}

/* ---- within the segment: by the device itself where that can be ---- */

#define WIRED_PAGES	64
#define WIRED_BYTES	((WIRED_PAGES - 2) * TPPI_PAGE_SIZE + 4)

static bool is_sent(void *number)
{
	return sent_calls >= *(int *)number;
}

/* A page of a buffer stays, one beside it need not. */
static void pages_stay(int first)
{
	char *last = page_at(first + WIRED_PAGES - 2);

	CHECK_EQUAL(TPPI_unmap_and_free(page_at(first + 1)), 0);
	CHECK_EQUAL(TPPI_remap(page_at(first), page_at(1000)), 0);
	CHECK_EQUAL(TPPI_unmap_and_free(last), 0);
	CHECK_EQUAL(TPPI_get_page_info(page_at(first + 1), NULL), 1);
	CHECK_EQUAL(TPPI_get_page_info(page_at(1000), NULL), 0);
	CHECK_EQUAL(TPPI_remap(last + TPPI_PAGE_SIZE, page_at(1000)), 1);
	CHECK_EQUAL(TPPI_remap(page_at(1000), last + TPPI_PAGE_SIZE), 1);
}

static int begin_channel(TPPI_NodeId before, TPPI_NodeId next, void *to, int bytes, int *in)
{
	int out = TPPI_set_channel_src(next, sent);

	TPPI_send_WW(next, tell_number, bytes, out);
	wait_for(is_told, &bytes, "the number of a channel");
	*in = number_told;
	number_told = 0;
	CHECK_EQUAL(TPPI_set_channel_dst(before, *in, to, bytes, has_arrived), 1);
	wait_for(dst_is_ready, &out, "the destination");
	return out;
}

static void map_all(int first, TPPI_BlkAccTag tag)
{
	for (int i = 0; i < WIRED_PAGES; i++)
		map_page(page_at(first + i), 0, tag);
}

/* Whatever the tags are, and neither buffer begins with its page. */
static void in_segment(void)
{
	TPPI_NodeId next = (TPPI_self_address + 1) % TPPI_num_nodes;
	TPPI_NodeId before = (TPPI_self_address + TPPI_num_nodes - 1) % TPPI_num_nodes;
	int *from = (int *)(page_at(0) + 8), *to = (int *)(page_at(500) + TPPI_PAGE_SIZE - 4);
	int out, in;

	map_all(0, TPPI_Blk_Writable);
	map_all(500, TPPI_Blk_Invalid);
	out = begin_channel(before, next, to, WIRED_BYTES, &in);
	for (int i = 1; i <= 3; i++) {
		wait_for(dst_is_ready, &out, "the destination");
		fill(from, WIRED_BYTES, 100 * TPPI_self_address + i);
		TPPI_channel_send(next, out, from, WIRED_BYTES);
		wait_for(is_here, &in, "a transfer");
		pages_stay(500);
		wait_for(is_sent, &i, "the end of a send");
		/* A page that is moved has new memory: a transfer is to where it is now */
		CHECK_EQUAL(TPPI_remap(page_at(5), page_at(1000)), 1);
		CHECK_EQUAL(TPPI_remap(page_at(1000), page_at(5)), 1);
		TPPI_barrier();
		CHECK_EQUAL(TPPI_get_blk_acc(to), TPPI_Blk_Invalid);
		for (int j = 0; j < WIRED_PAGES; j++)
			TPPI_change_blk_acc(page_at(500 + j), TPPI_PAGE_SIZE,
					    TPPI_Blk_Validate_RO);
		CHECK(is_filled(to, WIRED_BYTES, 100 * before + i));
		for (int j = 0; j < WIRED_PAGES; j++)
			TPPI_change_blk_acc(page_at(500 + j), TPPI_PAGE_SIZE,
					    TPPI_Blk_Invalidate);
		TPPI_reset_channel(before, in);
	}
	CHECK_EQUAL(wrong_calls, 0);
	/* Straight into the buffer where the device can do that */
	CHECK_EQUAL(tempest_wired_sends, TPPI_num_nodes > 1 ? 3 : 0);
	CHECK_EQUAL(tempest_wired_buffers,
		    TPPI_num_nodes > 1 && !h_dev_is_embedded(tempest_job_device()));
	TPPI_barrier();
	TPPI_destroy_channel_src(next, out);
	TPPI_destroy_channel_dst(before, in);
	CHECK_EQUAL(TPPI_unmap_and_free(page_at(501)), 1);
	TPPI_barrier();
}

/* ---- a page that is being sent from ---- */

#define MORE_PAGES	70	/* than may be under way as messages */

static atomic_bool is_checked;	/* what cannot be done meanwhile, by all nodes */

static void nap(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	while (!is_checked)
		usleep(1000);
}

/* A barrier of Tempest's takes the thread that naps. */
static void meet_at_launcher(void)
{
	if (TPPI_num_nodes > 1)
		tempest_job_fence();
}

/* The rest of it has to wait until the destination has had its nap. */
static void source_stays(void)
{
	TPPI_NodeId next = (TPPI_self_address + 1) % TPPI_num_nodes;
	TPPI_NodeId before = (TPPI_self_address + TPPI_num_nodes - 1) % TPPI_num_nodes;
	static int to[MORE_PAGES * TPPI_PAGE_SIZE / 4];
	int out, in, once = 1;

	tempest_control |= CONTROL_NO_WIRE;
	for (int i = 0; i < MORE_PAGES; i++)
		map_page(page_at(i), 0, TPPI_Blk_Writable);
	fill((int *)page_at(0), sizeof(to), TPPI_self_address);
	out = begin_channel(before, next, to, sizeof(to), &in);
	meet_at_launcher();
	TPPI_send(next, nap);
	TPPI_channel_send(next, out, page_at(0), sizeof(to));
	CHECK_EQUAL(TPPI_unmap_and_free(page_at(MORE_PAGES - 1)), 0);
	CHECK_EQUAL(TPPI_remap(page_at(0), page_at(1000)), 0);
	meet_at_launcher();
	is_checked = true;
	wait_for(is_sent, &once, "the end of a send");
	CHECK_EQUAL(TPPI_unmap_and_free(page_at(MORE_PAGES - 1)), 1);
	CHECK_EQUAL(TPPI_remap(page_at(0), page_at(1000)), 1);
	wait_for(is_here, &in, "a transfer");
	CHECK(is_filled(to, sizeof(to), before));
	TPPI_barrier();
}

/* ---- a page that is being unmapped just when it becomes part of a buffer ---- */

#define WITHOUT_A_LOOK_US	500000	/* long enough for a channel that does not wait */

static atomic_bool is_owned;
static atomic_int unmapped = -1;

static bool is_held(void *page)
{
	return tempest_channel_holds((uintptr_t)page);
}

static void keep_owning(void)
{
	is_owned = true;
	wait_for(is_held, page_at(0), "a channel that holds the page");
	usleep(WITHOUT_A_LOOK_US * scale());
}

static void *unmap(void *page)
{
	unmapped = TPPI_unmap_and_free(page);
	return NULL;
}

static bool page_is_owned(void *unused)
{
	(void)unused;
	return is_owned;
}

static bool is_mine_ready(void *channel)
{
	return TPPI_is_channel_dst_ready(TPPI_self_address, *(int *)channel);
}

static bool is_mine_here(void *channel)
{
	return TPPI_is_channel_ready(TPPI_self_address, *(int *)channel);
}

static pthread_t begin_unmapping(void *page)
{
	pthread_t thread;

	tempest_owned = keep_owning;
	CHECK(!pthread_create(&thread, NULL, unmap, page));
	wait_for(page_is_owned, NULL, "the owner of a page");
	return thread;
}

/* It has come, and the page has stayed. */
static void end_unmapping(pthread_t thread, int channel)
{
	wait_for(is_mine_here, &channel, "a transfer");
	CHECK(!pthread_join(thread, NULL));
	CHECK_EQUAL(unmapped, 0);
	CHECK_EQUAL(TPPI_get_page_info(page_at(0), NULL), 1);
}

static void set_meanwhile(void)
{
	int channel = TPPI_set_channel_src(TPPI_self_address, NULL);
	static int word = 4711;
	pthread_t thread;

	map_page(page_at(0), 0, TPPI_Blk_Writable);
	thread = begin_unmapping(page_at(0));
	CHECK_EQUAL(TPPI_set_channel_dst(TPPI_self_address, channel, page_at(0), 4, NULL), 1);
	wait_for(is_mine_ready, &channel, "the destination");
	TPPI_channel_send(TPPI_self_address, channel, &word, 4);
	end_unmapping(thread, channel);
	CHECK_EQUAL(*(int *)page_at(0), 4711);
}

static void sent_meanwhile(void)
{
	int channel = TPPI_set_channel_src(TPPI_self_address, NULL);
	static int word;
	pthread_t thread;

	map_page(page_at(0), 0, TPPI_Blk_Writable);
	*(int *)page_at(0) = 4711;
	CHECK_EQUAL(TPPI_set_channel_dst(TPPI_self_address, channel, &word, 4, NULL), 1);
	wait_for(is_mine_ready, &channel, "the destination");
	thread = begin_unmapping(page_at(0));
	TPPI_channel_send(TPPI_self_address, channel, page_at(0), 4);
	end_unmapping(thread, channel);
	CHECK_EQUAL(word, 4711);
}

const struct test tests[] = {
	{ "channels", channels, 0, 0, 0 },
	{ "in-segment", in_segment, CONTROL_NO_HOLD, 0, 0 },
	{ "source-stays", source_stays, CONTROL_NO_HOLD, 0, 0 },
	{ "set-meanwhile", set_meanwhile, CONTROL_NO_SETTLE, 0, SIGABRT },
	{ "sent-meanwhile", sent_meanwhile, CONTROL_NO_SETTLE, 0, SIGABRT },
	{ "to-unmapped", to_unmapped, 0, SIGABRT, 0 },
	{ 0 }
};
