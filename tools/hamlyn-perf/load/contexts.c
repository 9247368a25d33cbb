// SPDX-License-Identifier: GPL-2.0-only
/* Contexts that do nothing: how many can there be, and what do they cost? */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "load/contexts.h"

#define SPARE_FILES	64	/* descriptors that other things need */
#define SPARE_CONTEXTS	8	/* given back at a limit, for those who measure */

/* All that one is allowed; root may allow himself more. */
static void raise_files(uint32_t wanted)
{
	struct rlimit limit;
	rlim_t need = (rlim_t)wanted + SPARE_FILES;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
		return;
	if (limit.rlim_max < need) {
		struct rlimit more = { need, need };

		if (!setrlimit(RLIMIT_NOFILE, &more))
			return;
	}
	limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int contexts_init(struct contexts *contexts, uint32_t room)
{
	*contexts = (struct contexts){ .room = room };
	contexts->devs = calloc(room, sizeof(struct h_dev *));
	if (!contexts->devs)
		return fail("out of memory");
	raise_files(room);
	return 0;
}

static const char *limit_of(int error, bool embedded)
{
	switch (error) {
	case EMFILE:
		return "descriptors of a process (RLIMIT_NOFILE)";
	case ENFILE:
		return "descriptors of the machine (fs.file-max)";
	case EUSERS:
		return "contexts of one segment (1024)";
	case EDQUOT:
		return "what one user may have (see modinfo: user_*; CAP_SYS_RESOURCE passes it)";
	case ENOSPC:
		return embedded ? "the segment's size (shm:NAME,size=256M makes a larger one)" :
				  "what the NIC has";
	case ENOMEM:
		return "memory";
	default:
		return "";
	}
}

static void refuse(struct contexts *contexts, const char *what, int error, bool embedded)
{
	const char *limit = limit_of(error, embedded);

	snprintf(contexts->why, sizeof(contexts->why), "after %u %s: %s%s%s", contexts->count,
		 what, strerror(error), *limit ? "; the limit is " : "", limit);
}

/* As a program has it that waits for messages and may answer. */
static int furnish(struct h_dev *dev)
{
	const struct h_terminus_attr small = { .entries = 16, .entry_size = 128 };
	struct h_slot_attr attr = { 0 };
	struct h_terminus *terminus;
	struct h_slot *slot;
	int ret;

	ret = h_area_alloc(dev, 4096, &attr.area);
	if (!ret)
		ret = h_nq_create(dev, 16, &attr.nq);
	if (!ret)
		ret = h_slot_create(dev, &attr, &slot);
	if (!ret)
		ret = h_terminus_create(dev, &small, &terminus);
	return ret;
}

/* So that who measures beside them is not refused as well. */
static void give_back(struct contexts *contexts)
{
	uint32_t i;

	for (i = 0; i < SPARE_CONTEXTS && contexts->count > 1; i++)
		h_close(contexts->devs[--contexts->count]);
}

/* Until there are @count. Fewer are no failure, contexts->why tells the reason. */
int contexts_open(struct contexts *contexts, const struct options *options, uint32_t count)
{
	uint64_t deadline = clock_ns() + options->timeout_s * NSEC_PER_SEC;
	struct h_dev *dev;
	bool embedded;
	int ret;

	while (contexts->count < count && contexts->count < contexts->room) {
		ret = h_open(options->device, &dev);
		if (ret < 0) {
			refuse(contexts, "h_open()", -ret, !contexts->count ||
			       h_dev_is_embedded(contexts->devs[0]));
			break;
		}
		ret = furnish(dev);
		embedded = h_dev_is_embedded(dev);
		if (!ret && clock_ns() > deadline)
			ret = -ETIME;
		if (ret < 0) {
			h_close(dev);
			refuse(contexts, "area, NQ, slot, terminus", -ret, embedded);
			break;
		}
		contexts->devs[contexts->count++] = dev;
	}
	if (!contexts->count)
		return fail("not one context of %s: %s", options->device ? options->device :
			    "the default device", contexts->why);
	if (*contexts->why)
		give_back(contexts);
	return 0;
}

void contexts_close(struct contexts *contexts)
{
	while (contexts->count)
		h_close(contexts->devs[--contexts->count]);
	free(contexts->devs);
	contexts->devs = NULL;
}
