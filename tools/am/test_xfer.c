// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_xfer of the GAM basic benchmarks (L 4.1): am_get(), am_store() and
 * am_store_async() of random sizes from and to random addresses; what arrived is
 * checked, and so is the memory around.
 *
 * A block that is stored lands in a place that the sender has in the receiver. The
 * handler there checks it and replies, which frees the place. What am_get() fetches is
 * the ground, memory that every process fills with bytes of its own and leaves alone.
 */
#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "gam.h"
#include "landing.h"
#include "torture.h"
#include "world.h"

#define DEFAULT_SEGMENTS	2.5	/* the largest block, so that some are of several */
#define FLIGHTS			8	/* am_store_async() under way */
#define GROUND_KEY		0x67726f756e64ULL
#define GROUND_MORE		4096	/* bytes that the ground is larger than a block */
#define PLACE_SHIFT		32	/* in the handlers' argument, above the number */

enum kind { STORE, STORE_ASYNC, GET, KINDS };

/* A block that am_store_async() still reads. */
struct flight {
	bool busy;
	unsigned char *memory;
	unsigned char *block;
	struct torture_message message;
};

static struct landing stores, gets;
static struct flight flights[FLIGHTS];
static unsigned char *staging;
static unsigned char *ground;
static unsigned long *grounds;		/* of the others */
static unsigned long *arrived;

static enum kind kind_of(const struct torture_message *message)
{
	return message->kind % KINDS;
}

static uint64_t ground_key(int process)
{
	return check_key(GROUND_KEY, (uint64_t)process, 0);
}

/* Alignment and place in the ground: one of two bytes would be too few. */
static size_t ground_offset(const struct torture_message *message)
{
	return (message->key >> 16) % GROUND_MORE;
}

static void *arg_of(const struct torture_message *message, int place)
{
	return (void *)(((unsigned long)place << PLACE_SHIFT) | message->number);
}

/* What the argument of a handler is of; die() if @source cannot have sent it. */
static int place_of(void *arg, int source, struct torture_message *message)
{
	unsigned long word = (unsigned long)arg;
	int place = (int)(word >> PLACE_SHIFT);

	if (source < 0 || source >= am_procs() || place < 0 || place >= LANDING_EACH)
		die("%s: a handler has argument %#lx from process %d", torture_phase(), word,
		    source);
	torture_plan(source, (uint32_t)word, message);
	return place;
}

static void check_block(const struct landing *landing, const void *expected, void *addr,
			int nbytes, const struct torture_message *message)
{
	if (addr != expected || nbytes < 0 || (size_t)nbytes != message->size)
		die("%s: the handler was told %d bytes at %p, not at %p",
		    torture_text(message), nbytes, addr, expected);
	landing_wipe(landing, addr, message->size, torture_text(message));
}

/* ---- am_store(), am_store_async() --------------------------------------- */

static void freed(vnn_t source, long place)
{
	landing_free(&stores, source, (int)place);
}

static void stored(vnn_t source, void *addr, int nbytes, void *arg)
{
	struct torture_message message;
	int place = place_of(arg, source, &message);

	if (message.dest != am_my_proc() || kind_of(&message) == GET)
		die("%s arrived here", torture_text(&message));
	if (addr == landing_here(&stores, source, place, message.at) &&
	    (size_t)nbytes == message.size)
		check_same(addr, message.size, message.key, 0, "%s", torture_text(&message));
	check_block(&stores, landing_here(&stores, source, place, message.at), addr, nbytes,
		    &message);
	arrived[source]++;
	must(am_reply_1(source, freed, place), "am_reply_1");
}

/* The memory is the program's again as soon as am_store() returns. */
static void store(const struct torture_message *message)
{
	int place = landing_take(&stores, message->dest);
	unsigned char *block = staging + message->from;

	torture_fill(block, message);
	must(am_store(message->dest, block,
		      landing_there(&stores, message->dest, place, message->at),
		      (int)message->size, stored, arg_of(message, place)), "am_store");
	check_scribble(block, message->size);
}

static struct flight *find_flight(void)
{
	int i;

	for (i = 0; i < FLIGHTS; i++)
		if (!flights[i].busy)
			return &flights[i];
	return NULL;
}

static void ended(vnn_t source, void *addr, int nbytes, void *arg)
{
	struct flight *flight = arg;

	if (!flight->busy)
		die("%s: its endfunc ran twice", torture_text(&flight->message));
	if (source != am_my_proc() || addr != flight->block ||
	    (size_t)nbytes != flight->message.size)
		die("%s: its endfunc was told process %d, %d bytes at %p, not at %p",
		    torture_text(&flight->message), source, nbytes, addr,
		    (void *)flight->block);
	torture_check_source(addr, &flight->message);
	check_scribble(addr, flight->message.size);
	flight->busy = false;
}

static void store_async(const struct torture_message *message)
{
	int place = landing_take(&stores, message->dest), ret;
	struct flight *flight;

	WAIT_FOR((flight = find_flight()) != NULL);
	flight->block = flight->memory + message->from;
	flight->message = *message;
	flight->busy = true;
	torture_fill(flight->block, message);
	for (;;) {
		ret = am_store_async(message->dest, flight->block,
				     landing_there(&stores, message->dest, place, message->at),
				     (int)message->size, stored, arg_of(message, place), ended,
				     flight);
		if (ret != -EAGAIN)
			break;
		world_poll();
	}
	must(ret, "am_store_async");
}

/* ---- am_get() ----------------------------------------------------------- */

static void got(vnn_t source, void *addr, int nbytes, void *arg)
{
	struct torture_message message;
	int place = place_of(arg, am_my_proc(), &message);

	if (source != message.dest)
		die("%s: the handler of am_get() was told process %d", torture_text(&message),
		    source);
	if (addr == landing_here(&gets, source, place, message.at) &&
	    (size_t)nbytes == message.size)
		check_same(addr, message.size, ground_key(source), ground_offset(&message),
			   "%s, am_get()", torture_text(&message));
	check_block(&gets, landing_here(&gets, source, place, message.at), addr, nbytes, &message);
	landing_free(&gets, source, place);
}

static void get(const struct torture_message *message)
{
	int dest = message->dest, place = landing_take(&gets, dest);

	must(am_get(dest, (void *)(grounds[dest] + ground_offset(message)),
		    landing_here(&gets, dest, place, message->at), (int)message->size, got,
		    arg_of(message, place)), "am_get");
}

/* ---- the test ----------------------------------------------------------- */

static size_t most(size_t given)
{
	return given ? given : (size_t)(DEFAULT_SEGMENTS * am_max_size());
}

static void begin(void)
{
	size_t procs = (size_t)am_procs(), bytes = torture_most() + LANDING_ROOM, i;

	landing_open(&stores, torture_most());
	landing_open(&gets, torture_most());
	staging = world_alloc(bytes);
	for (i = 0; i < FLIGHTS; i++)
		flights[i].memory = world_alloc(bytes);
	arrived = calloc(procs, sizeof(*arrived));
	if (!arrived)
		die("no memory");
	ground = world_alloc(torture_most() + GROUND_MORE);
	check_fill(ground, torture_most() + GROUND_MORE, ground_key(am_my_proc()), 0);
	grounds = world_alloc(procs * sizeof(*grounds));
	world_share_pointer(ground, grounds);
}

static void send_message(const struct torture_message *message)
{
	switch (kind_of(message)) {
	case STORE:
		store(message);
		break;
	case STORE_ASYNC:
		store_async(message);
		break;
	default:
		get(message);
		break;
	}
}

static bool idle(void)
{
	int i;

	for (i = 0; i < FLIGHTS; i++)
		if (flights[i].busy)
			return false;
	return landing_idle(&stores) && landing_idle(&gets);
}

static unsigned long *arrived_of(int source)
{
	return &arrived[source];
}

static bool arrives(const struct torture_message *message)
{
	return kind_of(message) != GET;
}

static void phase_end(const char *who)
{
	landing_check_all(&stores, who);
	landing_check_all(&gets, who);
	check_same(ground, torture_most() + GROUND_MORE, ground_key(am_my_proc()), 0,
		   "%s: memory that others only read", who);
}

int main(int argc, char **argv)
{
	static const struct torture torture = {
		.name = "test_xfer",
		.what = "Torture of am_store(), am_store_async() and am_get(): 1-to-1, all-to-1,\n"
			"all-to-all; up to 2.5 segments, all bytes checked, and those around.",
		.most = most,
		.begin = begin,
		.send = send_message,
		.idle = idle,
		.arrived = arrived_of,
		.arrives = arrives,
		.phase_end = phase_end,
	};

	return torture_main(argc, argv, &torture);
}
