// SPDX-License-Identifier: GPL-2.0-only
/* Two processes with an endpoint each. */
#include "load/duo.h"

/* @bytes: of the area that messages go to, and of the one they come from */
int duo_open(struct duo *duo, struct side *side, size_t bytes)
{
	const struct endpoint_attr attr = {
		.bytes = bytes, .metas = 1, .notifications = DUO_PLACES,
	};

	memset(duo, 0, sizeof(*duo));
	duo->side = side;
	if (endpoint_open(&duo->ep, side->options, &attr) < 0)
		return -1;
	/* Its pages are there before anybody is timed. */
	memset(h_area_addr(duo->ep.out), 1, bytes);
	if (endpoint_meet(&duo->ep, side) < 0 || duo_layout(duo, DUO_MIN, bytes / 64 > DUO_PLACES ?
						DUO_PLACES : (uint32_t)(bytes / 64)) < 0) {
		endpoint_close(&duo->ep);
		return -1;
	}
	return 0;
}

/* Both sides call it, when nothing is on its way. */
int duo_layout(struct duo *duo, size_t size, uint32_t places)
{
	uint64_t mine = size << 16 | places;
	uint64_t theirs;

	if (pair_swap(duo->side, &mine, &theirs, sizeof(mine)) < 0)
		return -1;
	if (mine != theirs)
		return fail("the two processes lost step");
	duo->size = size;
	duo->stride = (size + 63) & ~(size_t)63;
	duo->places = places;
	duo->sent = 0;
	duo->taken = 0;
	return 0;
}

/* Whoever closes first would take its slot from under the other. Returns @ret. */
int duo_close(struct duo *duo, int ret)
{
	char bye = 0;

	if (!ret)
		ret = pair_swap(duo->side, &bye, &bye, sizeof(bye));
	endpoint_close(&duo->ep);
	return ret;
}

int duo_wrong(const struct duo *duo, uint64_t number)
{
	return fail("message %llu arrived where number %llu was due",
		    (unsigned long long)number, (unsigned long long)duo->taken);
}

/* How often our sends needed a system call. */
uint64_t duo_kicks(struct duo *duo)
{
	struct hamlyn_stats stats = { 0 };

	return h_terminus_stats(duo->ep.terminus, &stats) < 0 ? 0 : stats.kicks;
}
