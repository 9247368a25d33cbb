// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fabric that loses, repeats, delays and damages messages, for tests of the protocol
 * at full speed: the library is compiled with HAMLYN_AM_TEST_WIRE and hands over what it
 * sends. HAMLYN_TEST_FAULTS=DROP,REPEAT,REORDER,DAMAGE[,TURN] in percent, and
 * HAMLYN_TEST_SEED. What is turned comes to the place of the other direction: a request
 * to that of a reply, a reply to that of a request.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire.h"

#define HELD	256

/* A message on its way. */
struct held {
	int dest;
	uint32_t index;
	uint32_t size;
	uint32_t wait;		/* messages that overtake it */
	int64_t handle;
	unsigned char *bytes;	/* memory the NIC may fetch from */
};

static struct held held[HELD];
static unsigned int percent[5];
static uint64_t state;
static struct h_area *area;

enum { DROP, REPEAT, REORDER, DAMAGE, TURN };

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static int happens(int what)
{
	return draw() % 100 < percent[what];
}

static void set_up(struct am *am)
{
	const char *faults = getenv("HAMLYN_TEST_FAULTS");
	const char *seed = getenv("HAMLYN_TEST_SEED");
	uint32_t i;

	if (faults && sscanf(faults, "%u,%u,%u,%u,%u", &percent[0], &percent[1],
			     &percent[2], &percent[3], &percent[4]) < 4) {
		fprintf(stderr, "HAMLYN_TEST_FAULTS: four or five numbers\n");
		exit(2);
	}
	state = 0x9e3779b97f4a7c15 * (am->self + 1) ^
		(seed ? strtoull(seed, NULL, 0) : 1);
	draw();
	if (h_area_alloc(am->dev, (size_t)HELD * am->stride, &area) ||
	    h_terminus_bind(am->terminus, 1, area, 0, 0)) {
		fprintf(stderr, "no memory for the fabric\n");
		exit(2);
	}
	for (i = 0; i < HELD; i++) {
		held[i].bytes = (unsigned char *)h_area_addr(area) +
				(size_t)i * am->stride;
		held[i].handle = -1;
	}
}

static int is_idle(struct am *am, struct held *h)
{
	if (h->wait || (h->handle >= 0 &&
			h_send_done(am->terminus, h->handle) == 0))
		return 0;
	h->handle = -1;
	return 1;
}

static void deliver(struct am *am, struct held *h)
{
	h->wait = 0;
	h->handle = am_wire_put(am, h->dest, h->index, h->bytes, h->size);
}

/* Where there is no room on the way the message is lost. */
static void carry(struct am *am, int dest, uint32_t index, const void *message,
		  uint32_t size)
{
	static uint32_t next;
	uint32_t all = am->procs << am->depth_shift;
	struct held *h = NULL;
	uint32_t i;

	for (i = 0; i < HELD && !h; i++, next++)
		if (is_idle(am, &held[next % HELD]))
			h = &held[next % HELD];
	if (!h)
		return;
	h->dest = dest;
	h->index = happens(TURN) ? (index + all) % (2 * all) : index;
	h->size = size;
	memcpy(h->bytes, message, size);
	if (happens(DAMAGE))
		h->bytes[draw() % size] ^= (unsigned char)(1U << draw() % 8);
	if (happens(REORDER))
		h->wait = 1 + (uint32_t)(draw() % 16);
	else
		deliver(am, h);
}

static void time_passes(struct am *am)
{
	uint32_t i;

	for (i = 0; i < HELD; i++)
		if (held[i].wait && !--held[i].wait)
			deliver(am, &held[i]);
}

void am_test_wire(struct am *am, int dest, uint32_t index, const void *message,
		  uint32_t size, struct am_send *send)
{
	if (!area)
		set_up(am);
	send->handle = -1;
	time_passes(am);
	if (!happens(DROP))
		carry(am, dest, index, message, size);
	if (happens(REPEAT))
		carry(am, dest, index, message, size);
}
