// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes per second of a channel, by messages and by the device itself, in turns, as medians. It
 * judges nothing. Run by hamlyn-run with two nodes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"
#include "node/wire.h"

#define MOST_BYTES	(1 << 20)
#define PAGES		(MOST_BYTES / TPPI_PAGE_SIZE)
#define SAMPLES		201

static _Atomic int number = -1, calls;

static void take_number(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	number = TPPI_recv_W();
}

static void called(TPPI_NodeId node, int channel)
{
	(void)node;
	(void)channel;
	calls++;
}

static bool is_ready(void *channel)
{
	return TPPI_is_channel_dst_ready(1, *(int *)channel);
}

static bool are_called(void *n)
{
	return calls >= *(int *)n;
}

static bool is_told(void *unused)
{
	(void)unused;
	return number >= 0;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* From the call until the buffer may be used again; the destination has it by then or soon. */
static void send_all(int channel, int bytes, const char *how)
{
	static int64_t took[SAMPLES];

	calls = 0;
	for (int i = 0; i < SAMPLES; i++) {
		int64_t begin;
		int n = i + 1;

		wait_for(is_ready, &channel, "the destination");
		begin = now_ns();
		TPPI_channel_send(1, channel, page_at(0), bytes);
		wait_for(are_called, &n, "the end of a send");
		wait_for(is_ready, &channel, "the destination");
		took[i] = now_ns() - begin;
	}
	qsort(took, SAMPLES, sizeof(took[0]), by_size);
	printf("# %7d bytes by %-10s median %8.1f us, p90 %8.1f, %7.1f MB/s\n", bytes, how,
	       took[SAMPLES / 2] / 1e3, took[SAMPLES * 9 / 10] / 1e3,
	       bytes * 1e3 / took[SAMPLES / 2]);
}

/* At once, so that the source need not wait for the program. */
static void again(TPPI_NodeId node, int channel)
{
	TPPI_reset_channel(node, channel);
	calls++;
}

static void measure(int bytes, bool wired)
{
	int n = SAMPLES, channel;

	tempest_control = wired ? 0 : CONTROL_NO_WIRE;
	TPPI_barrier();
	if (!TPPI_self_address) {
		channel = TPPI_set_channel_src(1, called);
		TPPI_send_W(1, take_number, channel);
		send_all(channel, bytes, wired ? "the device" : "messages");
		TPPI_barrier();
		TPPI_destroy_channel_src(1, channel);
	} else {
		wait_for(is_told, NULL, "the number of a channel");
		channel = number;
		number = -1;
		calls = 0;
		CHECK_EQUAL(TPPI_set_channel_dst(0, channel, page_at(0), bytes, again), 1);
		wait_for(are_called, &n, "all transfers");
		TPPI_barrier();
		TPPI_destroy_channel_dst(0, channel);
	}
	TPPI_barrier();
}

static void transfers(void)
{
	static const int sizes[] = { 16384, 65536, MOST_BYTES };

	CHECK_EQUAL(TPPI_num_nodes, 2);
	for (int i = 0; i < PAGES; i++)
		map_page(page_at(i), 0, TPPI_Blk_Writable);
	for (int turn = 0; turn < 3; turn++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			measure(sizes[i], false);
			measure(sizes[i], true);
		}
	}
}

const struct test tests[] = {
	{ "transfers", transfers, 0, 0, 0 },
	{ 0 }
};
