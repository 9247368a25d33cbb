// SPDX-License-Identifier: GPL-2.0-only
/*
 * A transfer that has left one NIC, and was not accepted by the other, is not taken for one
 * that has arrived; and a channel is not destroyed while the device sends. Run by hamlyn-run
 * with two nodes or more.
 */
#include <signal.h>
#include <unistd.h>

#include "test.h"
#include "node/wire.h"

#define BYTES	65536	/* the device sends that many itself */

static TPPI_NodeId next(void)
{
	return (TPPI_self_address + 1) % TPPI_num_nodes;
}

static TPPI_NodeId before(void)
{
	return (TPPI_self_address + TPPI_num_nodes - 1) % TPPI_num_nodes;
}

static bool dst_is_ready(void *channel)
{
	return TPPI_is_channel_dst_ready(next(), *(int *)channel);
}

static bool is_here(void *channel)
{
	return TPPI_is_channel_ready(before(), *(int *)channel);
}

/* Set by each node, whose own is the first of its numbers. */
static int begin(int *to)
{
	int channel;

	CHECK(TPPI_num_nodes > 1);
	channel = TPPI_set_channel_src(next(), NULL);
	CHECK_EQUAL(channel, 1);
	TPPI_barrier();
	CHECK_EQUAL(TPPI_set_channel_dst(before(), channel, to, BYTES, NULL), 1);
	wait_for(dst_is_ready, &channel, "the destination");
	return channel;
}

/* By a key that is not the destination's: as lost as on a NIC that is down for a while. */
static void rejected(void)
{
	static int from[BYTES / 4], to[BYTES / 4];
	int channel = begin(to);

	tempest_control |= CONTROL_WRONG_KEY;
	TPPI_channel_send(next(), channel, from, BYTES);
	CHECK_EQUAL(tempest_wired_sends, 1);
	wait_for(is_here, &channel, "a transfer");
}

static __thread bool destroys;

/* Another thread that ends the program has found out too late. */
static void end_by(int sig)
{
	if (!destroys)
		_exit(1);
	signal(sig, SIG_DFL);
}

static void destroyed_early(void)
{
	static int from[BYTES / 4], to[BYTES / 4];
	int channel = begin(to);

	signal(SIGABRT, end_by);
	tempest_control |= CONTROL_NOT_SENT;
	TPPI_channel_send(next(), channel, from, BYTES);
	CHECK_EQUAL(tempest_wired_sends, 1);
	destroys = true;
	TPPI_destroy_channel_src(next(), channel);
	CHECK(!"that it is destroyed");
}

const struct test tests[] = {
	{ "destroyed-early", destroyed_early, 0, SIGABRT, 0 },
	{ "rejected", rejected, 0, SIGABRT, 0 },
	{ 0 }
};
