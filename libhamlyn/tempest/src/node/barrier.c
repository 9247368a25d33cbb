// SPDX-License-Identifier: MIT
/* A barrier of messages: node 0 counts. */
#include <limits.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/quiet.h"
#include "tempest.h"

/* Node 0: how many nodes have come. The protocol thread's. */
static unsigned int come;

/* How many barriers have been passed. */
static _Atomic uint32_t passed;

static void pass(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	passed++;
	tempest_futex(&passed, FUTEX_WAKE, INT_MAX, NULL);
}

static void count(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	if (++come < TPPI_num_nodes)
		return;
	come = 0;
	for (TPPI_NodeId node = 0; node < TPPI_num_nodes; node++)
		TPPI_send(node, pass);
}

void TPPI_barrier(void)
{
	uint32_t before = passed;

	/* Which brings the others' messages, and would wait for them here */
	if (tempest_is_protocol)
		tempest_die("%s: a handler cannot wait", __func__);
	TPPI_send(0, count);
	while (passed == before)
		tempest_futex(&passed, FUTEX_WAIT, before, NULL);
}
