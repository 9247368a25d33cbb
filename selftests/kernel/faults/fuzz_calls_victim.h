/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Somebody whom the fuzzer must not harm. Two slots: of one everybody knows the
 * key, of the other one nobody does.
 */
#ifndef FUZZ_CALLS_VICTIM_H
#define FUZZ_CALLS_VICTIM_H

#include "fuzz_calls.h"

#define VICTIM_PAGES	16
#define VICTIM_BASE	(PAGE + 100)
#define VICTIM_LENGTH	(2 * PAGE)
#define SECRET_BASE	(8 * PAGE)

static struct {
	int fd;
	unsigned char *data;
} victim;

static int victim_slot(uint32_t area, uint64_t base, struct notice *n)
{
	struct hamlyn_slot_create arg = {
		.size = sizeof(arg),
		.area = area,
		.base = base,
		.length = VICTIM_LENGTH,
		.meta_area = HAMLYN_NONE,
		.nq = HAMLYN_NONE,
	};
	int ret = ht_raw(victim.fd, HAMLYN_IOC_SLOT_CREATE, &arg);

	n->slot = arg.slot;
	n->length = arg.length;
	n->key = arg.key;
	return ret;
}

static int victim_open(void)
{
	struct hamlyn_area_alloc area;
	struct hamlyn_query query;
	struct notice *n = shared->board;
	int ret;

	victim.fd = ht_raw_open();
	if (victim.fd < 0)
		return victim.fd;
	ret = ht_raw_query(victim.fd, &query);
	if (!ret)
		ret = ht_raw_area_alloc(victim.fd, VICTIM_PAGES * PAGE, &area,
					(void **)&victim.data);
	if (!ret)
		ret = victim_slot(area.area, VICTIM_BASE, &n[0]);
	if (!ret)
		ret = victim_slot(area.area, SECRET_BASE, &n[1]);
	n[0].host = query.host;
	n[1].host = query.host;
	n[1].key ^= 0x5555;
	if (!ret)
		memset(victim.data, HT_GUARD, VICTIM_PAGES * PAGE);
	return ret;
}

static bool victim_whole(void)
{
	size_t behind = VICTIM_BASE + VICTIM_LENGTH;
	size_t all = VICTIM_PAGES * PAGE;

	return ht_match_byte(victim.data, VICTIM_BASE, HT_GUARD) ==
	       VICTIM_BASE &&
	       ht_match_byte(victim.data + behind, all - behind, HT_GUARD) ==
	       all - behind;
}

static void victim_close(void)
{
	munmap(victim.data, VICTIM_PAGES * PAGE);
	close(victim.fd);
}

#endif /* FUZZ_CALLS_VICTIM_H */
