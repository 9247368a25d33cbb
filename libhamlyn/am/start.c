// SPDX-License-Identifier: MIT
/*
 * Joining and leaving a parallel program. Its key is made by process 0 and is that of
 * all its slots (P 5.3): who is not of the program does not get in, and who is needs no
 * ticket but number and key.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "wire.h"

#define CALIBRATION_NS		2000000
#define SHORT_NAP_US	200
#define LONGEST_NAP_US		3200
#define ALL_WATCHED		64	/* processes of a program where each watches all */
#define PATIENCE_NS		60000000000LL
#define SEGMENT_SLACK		(4U << 20)
#define TIMEOUT_US		10000	/* of who only is slow to poll */
#define TIMEOUT_LOSSY_US	1000
#define LINE			64
#define SMALLEST_PAGE		256
#define SMALLEST_DEFAULT	1024
#define BYTES_OF_ALL		(4U << 20)
#define LARGEST_PAGE		16320	/* with its header the default packet size */
#define BUFFERS_OF_ALL		512	/* instances to all processes together, by default */
#define HELD_BACK_NS		10000000000LL
#define LEAVE_GRACE_NS		5000000000LL	/* until launcher and device tell the same */

/* What process 0 decides for all. */
struct program {
	uint64_t key;
	uint32_t depth;
	uint32_t page;
	uint32_t page_given;		/* process 0: by the environment */
	uint32_t reliable;
};

/* Where many processes start at once they wait long for the lock of their segment. */
static int is_busy(int rc, int64_t begun)
{
	return rc == -ETIMEDOUT && am_now_ns() - begun < PATIENCE_NS;
}

#define PATIENTLY(rc, call)						\
	do {								\
		int64_t begun_ = am_now_ns();				\
									\
		do {							\
			(rc) = (call);					\
		} while (is_busy(rc, begun_));				\
	} while (0)

static void calibrate(struct am *am)
{
	/* In this order: who is interrupted in between gets time-outs that are too long. */
	uint64_t ticks = am_clock();
	int64_t begun = am_now_ns();
	uint64_t ns;

	do
		ns = (uint64_t)(am_now_ns() - begun);
	while (ns < CALIBRATION_NS);
	am->ticks_per_us = (am_clock() - ticks) * 1000 / ns;
	if (!am->ticks_per_us)
		am->ticks_per_us = 1;
}

/* A number of the environment. Return: 0, or a negative errno. */
static int setting(const char *name, uint64_t low, uint64_t high, uint64_t *value)
{
	const char *text = getenv(name);
	unsigned long long n;
	char *end;

	if (!text || !*text)
		return 0;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end || *text == '-' || n < low || n > high)
		return am_fail(-EINVAL, "%s is \"%s\": %" PRIu64 " to %" PRIu64
			       " are allowed", name, text, low, high);
	*value = n;
	return 0;
}

uint32_t am_default_depth(uint32_t procs)
{
	uint32_t depth = BUFFERS_OF_ALL / procs;

	if (depth > 16)
		depth = 16;
	if (depth < 4)
		depth = 4;
	while (depth & (depth - 1))
		depth &= depth - 1;
	return depth;
}

/*
 * So that the buffers of a direction take 4 MiB at most, whatever the number of peers,
 * unless segments were too small then. The packets of the device come first.
 */
uint32_t am_default_page(uint32_t procs, uint32_t depth, uint32_t packet_size)
{
	uint32_t page = BYTES_OF_ALL / (2 * procs * depth);
	uint32_t most = packet_size - AM_HEADER;

	page -= page < AM_HEADER + AM_STRIDE ? page : AM_HEADER + AM_STRIDE;
	if (page < SMALLEST_DEFAULT)
		page = SMALLEST_DEFAULT;
	if (page > LARGEST_PAGE)
		page = LARGEST_PAGE;
	return (page < most ? page : most) & ~(LINE - 1U);
}

static size_t area_bytes(const struct am *am)
{
	size_t buffers = 2 * (size_t)am->procs << am->depth_shift;

	return buffers * (AM_STRIDE + am->stride);
}

static void set_sizes(struct am *am, const struct program *program)
{
	am->depth = program->depth;
	am->depth_shift = (uint32_t)__builtin_ctz(program->depth);
	am->page = program->page;
	am->stride = AM_HEADER + program->page;
	am->reliable = (uint8_t)program->reliable;
	am->long_base = (2 * am->procs << am->depth_shift) * AM_STRIDE;
}

static int read_settings(struct am *am, struct program *program)
{
	uint64_t depth = am_default_depth(am->procs);
	uint64_t page = 0;
	uint64_t timeout = 0;
	uint64_t give_up = 30000;
	uint64_t reliable = 1;
	uint64_t summed = 0;
	int rc = setting("HAMLYN_AM_DEPTH", 1, AM_MAX_DEPTH, &depth);

	if (!rc && depth & (depth - 1))
		rc = am_fail(-EINVAL, "HAMLYN_AM_DEPTH must be a power of two");
	if (!rc)
		rc = setting("HAMLYN_AM_PAGE", SMALLEST_PAGE,
			     HAMLYN_MAX_PACKET - AM_HEADER, &page);
	if (!rc)
		rc = setting("HAMLYN_AM_TIMEOUT_US", 1, 10000000, &timeout);
	if (!rc)
		rc = setting("HAMLYN_AM_GIVE_UP_MS", 1, 3600000, &give_up);
	if (!rc)
		rc = setting("HAMLYN_AM_RELIABLE", 0, 1, &reliable);
	if (!rc)
		rc = setting("HAMLYN_AM_SUMS", 0, 1, &summed);
	if (rc)
		return rc;
	program->reliable = (uint32_t)reliable;
	am->timeout = timeout * am->ticks_per_us;	/* 0: by the fabric */
	am->give_up = give_up * 1000 * am->ticks_per_us;
	program->depth = (uint32_t)depth;
	program->page_given = page != 0;
	program->page = page ? (uint32_t)page & ~(LINE - 1U) :
			am_default_page(am->procs, program->depth,
					HAMLYN_MAX_PACKET);
	am->summed = (uint8_t)summed;
	return 0;
}

static uint64_t text_sum(const char *text)
{
	return am_data_sum(text, (uint32_t)strlen(text));
}

/*
 * The device that the user names, else the kernel's, else a segment of this run alone:
 * then nobody else's mistakes touch it, and it is as large as the program needs.
 */
static int open_device(struct am *am, const struct program *program)
{
	const char *name = getenv("HAMLYN_DEVICE");
	char own[128];
	int rc;

	set_sizes(am, program);
	if (name && *name) {
		PATIENTLY(rc, h_open(NULL, &am->dev));
		return rc ? am_fail(rc, "device %s: %s", name, strerror(-rc)) : 0;
	}
	if (!h_open("/dev/hamlyn0", &am->dev))
		return 0;
	snprintf(own, sizeof(own), "shm:am-%016" PRIx64 ",size=%zu,guesses=0",
		 text_sum(am->boot.job),
		 (2 * area_bytes(am) + (256U << 10)) * am->procs + SEGMENT_SLACK);
	PATIENTLY(rc, h_open(own, &am->dev));
	return rc ? am_fail(rc, "device %s: %s", own, strerror(-rc)) : 0;
}

static int fence(struct am *am)
{
	int rc = am->boot.ops->fence_begin(&am->boot);
	useconds_t nap = 100;

	while (!rc) {
		rc = am->boot.ops->fence_done(&am->boot);
		if (!rc)
			usleep(nap);
		/* Many that look all the time keep those away that are waited for. */
		nap = nap < LONGEST_NAP_US ? nap * 2 : nap;
	}
	return rc < 0 ? am_fail(rc, "%s: %s", am->boot.ops->name,
				am->boot.error) : 0;
}

static int publish(struct am *am, const char *key, const char *value)
{
	int rc = am->boot.ops->put(&am->boot, key, value);

	return rc ? am_fail(rc, "%s: %s", am->boot.ops->name, am->boot.error) :
		    fence(am);
}

static int look_up(struct am *am, int rank, const char *key, char *value)
{
	int rc = am->boot.ops->get(&am->boot, rank, key, value);

	return rc ? am_fail(rc, "%s: %s", am->boot.ops->name, am->boot.error) : 0;
}

/* Process 0's word counts. */
static int agree(struct am *am, struct program *program)
{
	char value[AM_BOOT_VALUE_BYTES] = "-";
	int rc;

	if (!am->self) {
		if (getrandom(&program->key, sizeof(program->key), 0) !=
		    sizeof(program->key))
			return am_fail(-EIO, "no random numbers for a key");
		snprintf(value, sizeof(value), "%016" PRIx64 ":%u:%u:%u",
			 program->key, program->depth, program->page,
			 program->reliable);
	}
	rc = publish(am, "program", value);
	if (!rc)
		rc = look_up(am, 0, "program", value);
	if (rc)
		return rc;
	if (sscanf(value, "%" SCNx64 ":%u:%u:%u", &program->key, &program->depth,
		   &program->page, &program->reliable) != 4 ||
	    !program->depth || program->depth > AM_MAX_DEPTH ||
	    program->depth & (program->depth - 1) ||
	    program->page < SMALLEST_PAGE || program->page % LINE ||
	    program->page > HAMLYN_MAX_PACKET - AM_HEADER)
		return am_fail(-EPROTO, "process 0 is of another version");
	set_sizes(am, program);
	return 0;
}

static int step(struct am *am, const char *what, int rc)
{
	char why[HAMLYN_EXPLAIN_BYTES] = "";

	if (!rc)
		return 0;
	h_explain(am->dev, why, sizeof(why));
	return am_fail(rc, "%s: %s%s%s", what, strerror(-rc), *why ? ": " : "",
		       why);
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 2;

	while (p < n)
		p *= 2;
	return p;
}

/* All that may be under way to us, and as much again of what was sent twice. */
static uint32_t queue_entries(const struct am *am, const struct hamlyn_query *q)
{
	uint32_t n = power_of_two(4 * am->procs * am->depth + am->procs + 64);

	return n < q->max_nq_entries ? n : q->max_nq_entries;
}

/* A call that makes something, and what that is for the error message. */
#define MAKE(am, rc, what, call)					\
	do {								\
		if (!(rc)) {						\
			PATIENTLY(rc, call);				\
			(rc) = step(am, what, rc);			\
		}							\
	} while (0)

/* For process 0, before the others learn of it. What the user has chosen stays. */
static int suit_page(struct am *am, struct program *program)
{
	struct hamlyn_query query;
	int rc = step(am, "asking the device", h_query(am->dev, &query));

	if (!rc && !program->page_given)
		program->page = am_default_page(am->procs, program->depth,
						query.packet_size);
	return rc;
}

static int suit_device(struct am *am, struct hamlyn_query *query)
{
	int rc = step(am, "asking the device", h_query(am->dev, query));

	if (rc)
		return rc;
	if (query->fabric & HAMLYN_FABRIC_LOSSY)
		am->summed = 1;
	if (!am->timeout)
		am->timeout = (am->summed ? TIMEOUT_LOSSY_US : TIMEOUT_US) *
			      am->ticks_per_us;
	if (am->stride > query->packet_size)
		return am_fail(-EMSGSIZE,
			       "HAMLYN_AM_PAGE: packets of the device have room for %u bytes",
			       query->packet_size - AM_HEADER);
	return 0;
}

static int make_objects(struct am *am, const struct program *program)
{
	struct hamlyn_query query;
	struct h_terminus_attr attr = {
		.entries = 256,
		.entry_size = 256,
		.flags = H_TERMINUS_SINGLE,
	};
	struct h_slot_attr slot = {
		.meta_count = 2 * am->procs << am->depth_shift,
		.flags = HAMLYN_SLOT_KEY_GIVEN,
		.key = program->key,
	};
	size_t bytes = area_bytes(am);
	int rc = suit_device(am, &query);

	if (rc)
		return rc;
	if (attr.entries > query.max_wq_entries)
		attr.entries = query.max_wq_entries;
	MAKE(am, rc, "memory to receive into",
	     h_area_alloc(am->dev, bytes, &am->in_area));
	MAKE(am, rc, "memory to send from",
	     h_area_alloc(am->dev, bytes, &am->out_area));
	MAKE(am, rc, "notification queue",
	     h_nq_create(am->dev, queue_entries(am, &query), &am->nq));
	MAKE(am, rc, "terminus",
	     h_terminus_create(am->dev, &attr, &am->terminus));
	MAKE(am, rc, "send buffer area",
	     h_terminus_bind(am->terminus, 0, am->out_area, 0, 0));
	slot.area = am->in_area;
	slot.meta_area = am->in_area;
	slot.nq = am->nq;
	MAKE(am, rc, "slot", h_slot_create(am->dev, &slot, &am->slot));
	if (rc)
		return rc;
	am->in = h_area_addr(am->in_area);
	am->out = h_area_addr(am->out_area);
	return 0;
}

static int make_tables(struct am *am)
{
	uint32_t p;
	uint32_t i;

	am->peers = calloc(am->procs, sizeof(*am->peers));
	am->in_state = calloc(2 * am->procs, am->depth);
	am->scratch = malloc(2 * (size_t)am->page);
	if (!am->peers || !am->in_state || !am->scratch)
		return am_fail(-ENOMEM, "no memory for %u processes", am->procs);
	for (p = 0; p < am->procs; p++) {
		am->peers[p].free_transfers = (1U << AM_TRANSFERS) - 1;
		for (i = 0; i < AM_MAX_DEPTH; i++) {
			am->peers[p].request[i].handle = -1;
			am->peers[p].reply[i].handle = -1;
		}
	}
	return 0;
}

#define FABRIC_TEXT	(2 * HAMLYN_FABRIC_ID_BYTES + 1)

_Static_assert(FABRIC_TEXT == 33, "%32[ in meet()");

static void fabric_text(const struct am *am, char text[FABRIC_TEXT])
{
	struct h_fabric_id id;
	size_t i;

	h_dev_fabric(am->dev, &id);
	for (i = 0; i < sizeof(id.bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", id.bytes[i]);
}

static int read_fabric(const char *text, struct h_fabric_id *id)
{
	size_t i;

	if (strlen(text) != FABRIC_TEXT - 1)
		return -EPROTO;
	for (i = 0; i < sizeof(id->bytes); i++)
		if (sscanf(text + 2 * i, "%2hhx", &id->bytes[i]) != 1)
			return -EPROTO;
	return 0;
}

static int meet(struct am *am, const struct program *program, int rank,
		const struct am_modules_id *id)
{
	struct am_peer *peer = &am->peers[rank];
	struct am_modules_id theirs;
	struct h_fabric_id fabric;
	char fabric_as_text[FABRIC_TEXT] = "";
	char value[AM_BOOT_VALUE_BYTES];
	int rc = look_up(am, rank, "process", value);

	if (rc)
		return rc;
	if (sscanf(value, "%u:%u:%" SCNx64 ":%" SCNx64 ":%" SCNx64 ":%d:%32[0-9a-f]",
		   &peer->ticket.host, &peer->ticket.slot, &theirs.program,
		   &theirs.libraries, &theirs.base, &peer->pid, fabric_as_text) != 7 ||
	    read_fabric(fabric_as_text, &fabric))
		return am_fail(-EPROTO, "process %d is of another version", rank);
	if (!h_dev_reaches(am->dev, &fabric))
		return am_fail(-ENODEV,
			       "process %d has opened a device that %s does not reach: "
			       "another segment, or one of another kernel",
			       rank, h_dev_name(am->dev));
	if (theirs.program != id->program)
		return am_fail(-ENOEXEC,
			       "process %d runs another program, or another build of it, than %u",
			       rank, am->self);
	if (theirs.libraries != id->libraries)
		return am_fail(-ENOEXEC,
			       "process %d has loaded other libraries than process %u",
			       rank, am->self);
	peer->ticket.key = program->key;
	peer->moved = theirs.base - id->base;
	return 0;
}

/*
 * Where they are very many a process watches those that it waits for in lam_sync_all():
 * by way of them it hears of all.
 */
static int is_watched(const struct am *am, uint32_t p)
{
	uint32_t before = (am->self + am->procs - p) % am->procs;

	return p != am->self &&
	       (am->procs <= ALL_WATCHED || !(before & (before - 1)));
}

/*
 * A user that has presented too many wrong keys, by an earlier program perhaps, is held back
 * for a moment. It passes; and one that goes on guessing must not be the first each time.
 */
static int watch_peer(struct am *am, uint32_t p)
{
	struct h_ticket ticket = am->peers[p].ticket;
	int64_t begun = am_now_ns();
	int rc;

	ticket.length = 1;
	while ((rc = h_watch(am->dev, &ticket, am->nq, p, &am->peers[p].watch)) == -EAGAIN &&
	       am_now_ns() - begun < HELD_BACK_NS)
		usleep(SHORT_NAP_US);
	return rc;
}

static int meet_all(struct am *am, const struct program *program)
{
	struct am_modules_id id;
	struct h_ticket own;
	char fabric[FABRIC_TEXT];
	char value[AM_BOOT_VALUE_BYTES];
	uint32_t p;
	int rc = am_address_setup(&id);

	if (!rc)
		rc = step(am, "ticket", h_slot_ticket(am->slot, 0, 0, 0, &own));
	if (rc)
		return rc;
	fabric_text(am, fabric);
	snprintf(value, sizeof(value),
		 "%u:%u:%" PRIx64 ":%" PRIx64 ":%" PRIx64 ":%d:%s",
		 own.host, own.slot, id.program, id.libraries, id.base,
		 (int)getpid(), fabric);
	rc = publish(am, "process", value);
	for (p = 0; !rc && p < am->procs; p++)
		rc = meet(am, program, (int)p, &id);
	for (p = 0; !rc && p < am->procs; p++)
		if (is_watched(am, p))
			MAKE(am, rc, "watching the other processes", watch_peer(am, p));
	return rc;
}

static int is_crowded(const struct am *am)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return 1;
	return am->procs > (uint32_t)CPU_COUNT(&cpus);
}

static void release(struct am *am, enum am_boot_end end)
{
	h_close(am->dev);
	free(am->peers);
	free(am->in_state);
	free(am->scratch);
	if (am->boot.ops)
		am->boot.ops->close(&am->boot, end);
	memset(am, 0, sizeof(*am));
	HPAM_reply_dest = -1;
}

int am_start(struct am *am)
{
	struct program program = { 0 };
	int rc;

	if (am->enabled)
		return am_fail(-EALREADY, "am_enable() was called before");
	memset(am, 0, sizeof(*am));
	HPAM_reply_dest = -1;
	rc = am_boot_open(&am->boot);
	if (rc)
		return am_fail(rc, "start-up: %s", am->boot.error);
	am->procs = (uint32_t)am->boot.size;
	am->self = (uint32_t)am->boot.rank;
	if (am->procs > AM_MAX_PROCS) {
		rc = am_fail(-E2BIG, "%u processes: at most %d are allowed",
			     am->procs, AM_MAX_PROCS);
		goto failed;
	}
	calibrate(am);
	am->crowded = (uint8_t)is_crowded(am);
	rc = read_settings(am, &program);
	/* A segment is made by one, and the others find it: it may take a while. */
	if (!rc && !am->self)
		rc = open_device(am, &program);
	if (!rc && !am->self)
		rc = suit_page(am, &program);
	if (!rc)
		rc = agree(am, &program);
	if (!rc && am->self)
		rc = open_device(am, &program);
	if (!rc)
		rc = make_objects(am, &program);
	if (!rc)
		rc = make_tables(am);
	if (!rc)
		rc = meet_all(am, &program);
	if (rc)
		goto failed;
	am->enabled = 1;
	HPAM_self_address = (int)am->self;
	HPAM_partition_size = (int)am->procs;
	return 0;
failed:
	release(am, AM_BOOT_FAILED);
	return rc;
}

static void serve_on(struct am *am)
{
	am_serve(am);
	am_acks_flush(am);
	if (!am->counting)
		sched_yield();
}

/* A launcher that knows of a loss before we do ends the fence: whose it was counts. */
static int fence_failed(struct am *am, int rc)
{
	int64_t failed = am_now_ns();

	while (!am->lost && am_now_ns() - failed < LEAVE_GRACE_NS)
		serve_on(am);
	return am->lost ? am_lost_error(am, am->lost - 1) :
			  am_fail(rc, "%s: %s", am->boot.ops->name, am->boot.error);
}

/*
 * Others may still wait for answers of ours while we wait for them. One that is gone
 * either was past the fence, whose end then is about to be told, or never reaches it.
 */
static int leave_together(struct am *am)
{
	int rc = am->boot.ops->fence_begin(&am->boot);
	int64_t lost = 0;

	while (!rc) {
		serve_on(am);
		rc = am->boot.ops->fence_done(&am->boot);
		if (am->lost && !lost)
			lost = am_now_ns();
		if (!rc && lost && am_now_ns() - lost > LEAVE_GRACE_NS)
			return am_lost_error(am, am->lost - 1);
	}
	return rc < 0 ? fence_failed(am, rc) : 0;
}

int am_end(struct am *am)
{
	uint32_t p;
	int rc;

	if (!am->enabled)
		return am_fail(-ENOTCONN, "am_enable() was not called");
	if (am->context != AM_MAIN)
		return am_fail(-EPERM, "a handler must not call am_disable()");
	rc = am_sync(am);
	while (am->counting)
		am_serve(am);
	for (p = 0; !rc && p < am->procs; p++)
		if (am->peers[p].lost)
			rc = am_lost_error(am, (int)p);
	/* Who is lost cannot be waited for. It is for the launcher to end the others. */
	if (!rc)
		rc = leave_together(am);
	release(am, rc ? AM_BOOT_LOST : AM_BOOT_WELL);
	return rc;
}
