// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process on the same NIC that has no seed of the nodes: it sends to each slot there is,
 * while they exchange messages. Run by hamlyn-run with two nodes or more.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn.h>

#include "am.h"
#include "node/job.h"
#include "node/link.h"
#include "node/wire.h"
#include "test.h"

#define BYTES	2048
#define AREA_BYTES	131072	/* about what a channel receives into */
#define NEAR_SLOTS	16	/* the lowest numbers are given first */
#define PATIENCE_NS	INT64_C(60000000000)

static uint64_t by_chance(void)
{
	uint64_t word;

	CHECK_EQUAL(getrandom(&word, sizeof(word), 0), sizeof(word));
	return word;
}

static void forge(struct h_terminus *terminus, struct h_ticket *ticket, uint64_t key)
{
	static char nonsense[BYTES];
	struct h_msg message = { .ticket = ticket, .data = nonsense, .length = BYTES };
	int64_t handle;

	memset(nonsense, 0xee, BYTES);
	ticket->key = key;
	message.offset = by_chance() % (AREA_BYTES / BYTES) * BYTES;
	while ((handle = h_send(terminus, &message)) == -EAGAIN)
		usleep(100);
	CHECK(handle >= 0);
	CHECK_EQUAL(h_send_wait(terminus, handle, PATIENCE_NS), 0);
}

/* Keys that a slot could have if nobody had chosen one, and some by chance. */
static void forge_all(void *unused)
{
	static const struct h_terminus_attr attr = { .entries = 16, .entry_size = 4096 };
	struct h_ticket ticket = { .length = AREA_BYTES };
	struct hamlyn_query query;
	struct h_terminus *terminus;
	struct h_dev *dev;

	(void)unused;
	CHECK_EQUAL(h_open(NULL, &dev), 0);
	CHECK_EQUAL(h_query(dev, &query), 0);
	CHECK_EQUAL(h_terminus_create(dev, &attr, &terminus), 0);
	ticket.host = query.host;
	for (ticket.slot = NEAR_SLOTS; ticket.slot < query.max_slots; ticket.slot++)
		forge(terminus, &ticket, by_chance());
	for (int times = 0; times < 500; times++) {
		uint64_t key = times % 3 ? by_chance() : times % 2 ? ~UINT64_C(0) : 0;

		for (ticket.slot = 0; ticket.slot < NEAR_SLOTS; ticket.slot++)
			forge(terminus, &ticket, key);
	}
	h_close(dev);
}

#define MESSAGES	2000

static int next_from[64];
static atomic_int arrived;

static void take_numbered(TPPI_NodeId src, int size)
{
	char body[1000];

	CHECK_EQUAL(size, 4 + sizeof(body));
	CHECK_EQUAL(TPPI_recv_W(), next_from[src]++);
	TPPI_recv_R(body, sizeof(body));
	for (size_t i = 0; i < sizeof(body); i++)
		CHECK_EQUAL(body[i], 0x55);
	arrived++;
}

static void exchange(void)
{
	static int number;
	char body[1000];

	memset(body, 0x55, sizeof(body));
	for (int i = 0; i < MESSAGES; i++, number++)
		for (unsigned int node = 0; node < TPPI_num_nodes; node++)
			TPPI_send_items(node, take_numbered, "WR", number, body, sizeof(body));
	while (arrived < number * (int)TPPI_num_nodes)
		usleep(1000);
}

static atomic_int rounds, more = 1;

static void decide(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	more = TPPI_recv_W();
	rounds++;
}

static bool has_ended(pid_t pid)
{
	int status;
	pid_t ended = waitpid(pid, &status, WNOHANG);

	if (!ended)
		return false;
	CHECK_EQUAL(ended, pid);
	CHECK_EQUAL(status, 0);
	return true;
}

/* Node 0 has the stranger, and says whether there is another round. */
static void stranger(void)
{
	pid_t pid = TPPI_self_address ? -1 : begin_child(forge_all, NULL);

	for (int round = 1; more; round++) {
		exchange();
		TPPI_barrier();
		if (!TPPI_self_address) {
			int word = !has_ended(pid);

			for (unsigned int node = 0; node < TPPI_num_nodes; node++)
				TPPI_send_items(node, decide, "W", word);
		}
		while (rounds < round)
			usleep(100);
	}
	CHECK(next_from[0] >= MESSAGES);
}

/* ---- what the nodes do beside intruders: intruders-test.sh ---- */

#define TRANSFERS	4
#define WORDS		16384	/* the device sends that many itself, where it can */

static bool dst_is_ready(void *channel)
{
	return TPPI_is_channel_dst_ready((TPPI_self_address + 1) % TPPI_num_nodes, *(int *)channel);
}

static bool is_here(void *channel)
{
	return TPPI_is_channel_ready((TPPI_self_address + TPPI_num_nodes - 1) % TPPI_num_nodes,
				     *(int *)channel);
}

/* By a slot that is made for it, where others have been. */
static void transfer(int round)
{
	TPPI_NodeId next = (TPPI_self_address + 1) % TPPI_num_nodes;
	TPPI_NodeId before = (TPPI_self_address + TPPI_num_nodes - 1) % TPPI_num_nodes;
	static int from[WORDS], to[WORDS];
	int channel = TPPI_set_channel_src(next, NULL);

	TPPI_barrier();
	/* The nodes have as many each */
	CHECK_EQUAL(TPPI_set_channel_dst(before, channel, to, sizeof(to), NULL), 1);
	wait_for(dst_is_ready, &channel, "the destination");
	for (int i = 0; i < WORDS; i++)
		from[i] = i ^ round ^ TPPI_self_address << 20;
	TPPI_channel_send(next, channel, from, sizeof(from));
	wait_for(is_here, &channel, "what was sent");
	for (int i = 0; i < WORDS; i++)
		CHECK_EQUAL(to[i], (int)(i ^ round ^ before << 20));
	TPPI_barrier();
	TPPI_destroy_channel_src(next, channel);
	TPPI_destroy_channel_dst(before, channel);
	TPPI_barrier();
}

static void undisturbed(void)
{
	exchange();
	TPPI_barrier();
	for (int i = 0; i < TRANSFERS; i++)
		transfer(i);
}

/* ---- a node whose messages name no handler: the one that gets them ends, with words ---- */

/* As they travel: module and offset, and the body. */
static void send_name(uint64_t name, size_t bytes)
{
	static uint64_t message[1024];

	message[0] = name;
	TPPI_barrier();
	if (TPPI_self_address == 1)
		tempest_link_send(0, message, bytes);
	sleep(PATIENCE_NS / 1000000000);
}

static uint64_t own_name(void)
{
	return am_address_name((void (*)(void))take_numbered);
}

static void no_module(void)
{
	send_name(own_name() & ((UINT64_C(1) << 48) - 1), 8);
}

static void no_such_module(void)
{
	send_name(own_name() | UINT64_C(0xff) << 48, 8);
}

/* The program's own data, and nothing at all */
static void no_code(void)
{
	send_name(own_name() + (uintptr_t)next_from - (uintptr_t)take_numbered, 8);
}

static void outside(void)
{
	send_name(own_name() | ((UINT64_C(1) << 48) - 1), 8);
}

static void no_name(void)
{
	send_name(own_name(), 4);
}

static void too_long(void)
{
	send_name(own_name(), 8 + TPPI_MAX_AM_BYTES + 4);
}

/* ---- beside a process of the same user that has all the rest ---- */

/* The program beside this one. It stays until @input ends. */
static pid_t begin_intruder(const char *attack, int input, int output)
{
	char path[PATH_MAX] = "";
	char *name;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	name = strrchr(path, '/') + 1;
	snprintf(name, path + sizeof(path) - name, "intruder");
	dup2(input, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	execl(path, "intruder", attack, NULL);
	_exit(3);
}

/*
 * Transfers by messages, as the device has room for nothing. On the kernel device limits say who
 * may take what, and there may be some left.
 */
static void all_is_taken(void)
{
	int input[2], output[2];
	pid_t pid = -1;
	char line[8];

	if (!TPPI_self_address) {
		CHECK(!pipe2(input, O_CLOEXEC) && !pipe2(output, O_CLOEXEC));
		pid = begin_intruder("take-all", input[0], output[1]);
		close(output[1]);
		/* It says when it has got all */
		CHECK(read(output[0], line, sizeof(line)) > 0);
	}
	TPPI_barrier();
	undisturbed();
	if (h_dev_is_embedded(tempest_job_device()))
		CHECK_EQUAL(tempest_wired_sends, 0);
	if (!TPPI_self_address) {
		CHECK(!has_ended(pid));
		close(input[1]);
		while (!has_ended(pid))
			usleep(1000);
	}
}

const struct test tests[] = {
	{ "undisturbed", undisturbed, 0, 0, 0 },
	{ "all-is-taken", all_is_taken, 0, 0, 0 },
	{ "no-module", no_module, 0, SIGABRT, 0 },
	{ "no-such-module", no_such_module, 0, SIGABRT, 0 },
	{ "no-code", no_code, 0, SIGABRT, 0 },
	{ "outside", outside, 0, SIGABRT, 0 },
	{ "no-name", no_name, 0, SIGABRT, 0 },
	{ "too-long", too_long, 0, SIGABRT, 0 },
	{ "sends-to-all-slots", stranger, 0, 0, 0 },
	{ 0 }
};
