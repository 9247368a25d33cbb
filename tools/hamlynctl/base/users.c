// SPDX-License-Identifier: GPL-2.0-only
/* Maps of users: for whom those of another host are taken. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ctl.h"
#include "base/users.h"

/* UINT32_MAX is no user. */
static bool take_user(const char **text, uint32_t *user)
{
	uint64_t number = 0;
	const char *p = *text;

	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++) {
		number = 10 * number + (uint64_t)(*p - '0');
		if (number >= UINT32_MAX)
			return false;
	}
	*text = p;
	*user = (uint32_t)number;
	return true;
}

/* FROM:TO or FROM-LAST:TO */
static bool take_range(const char **text, struct user_range *range)
{
	uint32_t last;

	if (!take_user(text, &range->from))
		return false;
	last = range->from;
	if (**text == '-') {
		++*text;
		if (!take_user(text, &last) || last < range->from)
			return false;
	}
	if (**text != ':')
		return false;
	++*text;
	range->count = last - range->from + 1;
	return take_user(text, &range->to) && range->count <= UINT32_MAX - range->to;
}

bool user_map_parse(const char *text, struct user_map *map)
{
	map->count = 0;
	do {
		if (map->count == HAMLYN_PEER_USER_RANGES ||
		    !take_range(&text, &map->at[map->count]))
			return false;
		map->count++;
	} while (*text++ == ',');
	return !text[-1];
}

char *user_map_format(const void *ranges, size_t count)
{
	char *text = NULL;
	size_t i, size;
	FILE *to = must_alloc(open_memstream(&text, &size));

	for (i = 0; i < count; i++) {
		struct user_range r;

		memcpy(&r, (const char *)ranges + i * sizeof(r), sizeof(r));
		fprintf(to, "%s%" PRIu32, i ? "," : "", r.from);
		if (r.count > 1)
			fprintf(to, "-%" PRIu32, r.from + r.count - 1);
		fprintf(to, ":%" PRIu32, r.to);
	}
	fclose(to);
	return must_alloc(text);
}
