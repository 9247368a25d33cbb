// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "load/meeting.h"

int meeting_make(struct meeting *meeting, const char *prefix)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return fail("no random number: %s", strerror(errno));
	snprintf(meeting->address, sizeof(meeting->address), "%shamlyn-perf-%016llx", prefix,
		 (unsigned long long)random);
	return 0;
}

int meeting_tell(struct meeting *meeting, struct side *side)
{
	struct meeting theirs;

	if (pair_swap(side, meeting, &theirs, sizeof(theirs)) < 0)
		return -1;
	if (!side->id)
		*meeting = theirs;
	return 0;
}
