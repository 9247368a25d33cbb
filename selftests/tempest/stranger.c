// SPDX-License-Identifier: GPL-2.0-only
/*
 * A process on the same NIC that has no seed of the nodes: it sends to each slot there is,
 * while they exchange messages. Run by hamlyn-run with two nodes or more.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn.h>

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

const struct test tests[] = {
	{ "sends-to-all-slots", stranger, 0, 0, 0 },
	{ 0 }
};
