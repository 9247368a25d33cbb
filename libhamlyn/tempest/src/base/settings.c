// SPDX-License-Identifier: MIT
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/settings.h"
#include "memory/segment.h"

/* Most handlers take less than this, and to sleep and be woken takes about as long. */
#define SPIN_US		50
#define CROWDED_SPIN_US	5
#define MOST_SPIN_US	1000000
#define NOT_SET		(MOST_SPIN_US + 1)

struct tempest_settings tempest_settings;

/* A number with K, M, G or without. */
static uintptr_t read_number(const char *name, uintptr_t otherwise, uintptr_t least, uintptr_t most)
{
	static const char units[] = "KMG";
	const char *text = getenv(name), *unit;
	unsigned long value;
	char *end;
	int shift = 0;

	if (!text || !*text)
		return otherwise;
	errno = 0;
	value = strtoul(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (int)(unit - units + 1);
		end++;
	}
	if (errno || *text < '0' || *text > '9' || *end || value > most >> shift ||
	    value << shift < least)
		tempest_refuse("%s is \"%s\", not a number from %lu to %lu, or with K, M, G",
			       name, text, (unsigned long)least, (unsigned long)most);
	return value << shift;
}

static enum tempest_checks checks(void)
{
	const char *text = getenv("HAMLYN_TEMPEST_CHECKS");

	if (!text || !*text || !strcmp(text, "rseq"))
		return CHECKS_RSEQ;
	if (!strcmp(text, "trap"))
		return CHECKS_TRAP;
	tempest_refuse("HAMLYN_TEMPEST_CHECKS is \"%s\", neither rseq nor trap", text);
}

void tempest_settings_read(void)
{
	const char *view = getenv("HAMLYN_TEMPEST_VIEW");
	uintptr_t size = read_number("HAMLYN_TEMPEST_SIZE", SEGMENT_LEAST, SEGMENT_LEAST,
				     SEGMENT_MOST);

	tempest_settings = (struct tempest_settings){
		.size = size & ~(PAGE_BYTES - 1),
		.memory = read_number("HAMLYN_TEMPEST_MEMORY", SEGMENT_MOST, 0, SEGMENT_MOST),
		.view = view && *view ? view : NULL,
		.checks = checks(),
		.spin_ns = 1000 * (int64_t)read_number("HAMLYN_TEMPEST_SPIN", NOT_SET, 0,
						       MOST_SPIN_US),
	};
}

/*
 * All nodes may be on this machine, and each has a computation and a protocol thread. Where
 * these are more than the processors, whoever waits awake keeps others from what it waits
 * for: a suspended thread the protocol threads of its own node and of the block's home.
 */
static bool is_crowded(void)
{
	cpu_set_t processors;

	return sched_getaffinity(0, sizeof(processors), &processors) ||
	       2 * TPPI_num_nodes > (unsigned int)CPU_COUNT(&processors);
}

void tempest_settings_complete(void)
{
	struct tempest_settings *s = &tempest_settings;
	bool crowded = is_crowded();

	if (s->spin_ns == 1000 * (int64_t)NOT_SET)
		s->spin_ns = 1000 * (crowded ? CROWDED_SPIN_US : SPIN_US);
	s->suspended_spin_ns = crowded ? 0 : s->spin_ns;
}
