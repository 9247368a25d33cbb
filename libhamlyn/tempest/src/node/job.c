// SPDX-License-Identifier: MIT
/*
 * Start-up and end are those of Active Messages: PMIx, PMI-1, or alone. All nodes run the
 * same program at the same place: addresses of the segment travel as they are, and those of
 * handlers as module and offset.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hamlyn.h>

#include "am.h"
#include "base/error.h"
#include "base/quiet.h"
#include "base/settings.h"
#include "boot.h"
#include "memory/segment.h"
#include "node/job.h"
#include "node/link.h"
#include "tempest.h"

#define MOST_NODES	64
#define NODE_BYTES	(8U << 20)	/* of the device's memory, and as much for each pair */
#define PAIR_BYTES	(512U << 10)
#define PATIENCE_NS	(60 * INT64_C(1000000000))
#define LONGEST_NAP_US	3200

static struct am_boot boot;
static struct h_dev *device;

struct h_dev *tempest_job_device(void)
{
	return device;
}

static void check(int result)
{
	if (result < 0)
		tempest_refuse("%s: %s", boot.ops->name, boot.error);
}

void tempest_job_put(const char *key, const char *value)
{
	check(boot.ops->put(&boot, key, value));
}

void tempest_job_get(uint32_t node, const char *key, char *value)
{
	check(boot.ops->get(&boot, node, key, value));
}

/* Many that look all the time keep those away that are waited for. */
void tempest_job_fence(void)
{
	useconds_t nap = 100;
	int done;

	check(boot.ops->fence_begin(&boot));
	while (!(done = boot.ops->fence_done(&boot))) {
		usleep(nap);
		nap = nap < LONGEST_NAP_US ? 2 * nap : nap;
	}
	check(done);
}

/* ---- the device ---- */

static uint64_t sum_of(const char *text)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	while (*text)
		sum = (sum ^ (unsigned char)*text++) * UINT64_C(0x100000001b3);
	return sum;
}

/* Where many begin at once they wait long for the lock of their segment. */
static void open_named(const char *name)
{
	int64_t end = tempest_now() + PATIENCE_NS;
	int result;

	do
		result = h_open(name, &device);
	while (result == -ETIMEDOUT && tempest_now() < end);
	if (result)
		tempest_refuse("device %s: %s", name ? name : getenv("HAMLYN_DEVICE"),
			       strerror(-result));
}

/*
 * As Active Messages do: the one that the user names, else the kernel's, else a segment of
 * this run alone.
 */
static void open_device(void)
{
	const char *name = getenv("HAMLYN_DEVICE");
	char own[128];

	if (name && *name) {
		open_named(NULL);
		return;
	}
	if (!h_open("/dev/hamlyn0", &device))
		return;
	snprintf(own, sizeof(own), "shm:tempest-%016" PRIx64 ",size=%zu,guesses=0",
		 sum_of(boot.job), (size_t)boot.size * NODE_BYTES +
		 (size_t)boot.size * boot.size * PAIR_BYTES);
	open_named(own);
}

/* ---- is it the same program? ---- */

struct identity {
	uint64_t program, libraries, base, segment;
};

static void find_identity(struct identity *own)
{
	struct am_modules_id id;
	int result = am_address_setup(&id);

	if (result)
		tempest_refuse("the program's modules: %s", strerror(-result));
	*own = (struct identity){ id.program, id.libraries, id.base, tempest_settings.size };
}

static void publish_identity(const struct identity *own)
{
	char value[AM_BOOT_VALUE_BYTES];

	snprintf(value, sizeof(value), "%" PRIx64 ":%" PRIx64 ":%" PRIx64 ":%" PRIx64,
		 own->program, own->libraries, own->base, own->segment);
	tempest_job_put("tempest", value);
}

static void check_identity(uint32_t node, const struct identity *own)
{
	char value[AM_BOOT_VALUE_BYTES];
	struct identity other;

	tempest_job_get(node, "tempest", value);
	if (sscanf(value, "%" SCNx64 ":%" SCNx64 ":%" SCNx64 ":%" SCNx64, &other.program,
		   &other.libraries, &other.base, &other.segment) != 4)
		tempest_refuse("node %u is of another version", node);
	if (other.program != own->program)
		tempest_refuse("node %u runs another program, or another build of it", node);
	if (other.libraries != own->libraries)
		tempest_refuse("node %u has loaded other libraries", node);
	if (other.base != own->base)
		tempest_refuse("node %u has the program elsewhere: link it with -no-pie", node);
	if (other.segment != own->segment)
		tempest_refuse("node %u has a segment of another size: HAMLYN_TEMPEST_SIZE", node);
}

/* ---- begin and end ---- */

/*
 * Others may need this node's protocol thread until they are at their end, too: it goes on
 * meanwhile. A status other than 0, or an exit within a handler, is no such end: the
 * launcher ends the others.
 */
static void leave(int status, void *unused)
{
	bool well = !status && !tempest_is_protocol;

	(void)unused;
	if (tempest_forked)
		return;
	if (well) {
		/* First: those who are past the fence end while we are about to notice */
		tempest_link_leave();
		tempest_job_fence();
	}
	boot.ops->close(&boot, well ? AM_BOOT_WELL : AM_BOOT_FAILED);
}

void tempest_job_start(void)
{
	struct identity own;

	if (am_boot_open(&boot))
		tempest_refuse("start-up: %s", boot.error);
	if (boot.size > MOST_NODES)
		tempest_refuse("%d nodes: at most %d are possible", boot.size, MOST_NODES);
	TPPI_num_nodes = boot.size;
	TPPI_self_address = boot.rank;
	find_identity(&own);
	if (boot.size > 1) {
		/* A segment is made by one, and the others find it */
		if (!boot.rank)
			open_device();
		publish_identity(&own);
		tempest_job_fence();
		if (boot.rank)
			open_device();
		for (int i = 0; i < boot.size; i++)
			check_identity(i, &own);
	}
	if (on_exit(leave, NULL))
		tempest_refuse("no memory");
}
