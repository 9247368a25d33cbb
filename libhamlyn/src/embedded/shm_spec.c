// SPDX-License-Identifier: MIT
/* What a program says of the segment that it opens: a name and options. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "embedded/shm_segment.h"

#define OPTIONS \
	"size=4M to 1024G, guesses=N, host=N, fabric=ID (32 hexadecimal digits), join and huge"

static int parse_size(const char *s, u64 *size)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	errno = 0;
	*size = strtoull(s, &end, 10);
	if (errno || end == s || !isdigit((unsigned char)*s))
		return -EINVAL;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1])
			return -EINVAL;
		if (*size > SHM_MAX_SIZE >> (10 * (unit - units + 1)))
			return -EINVAL;
		*size <<= 10 * (unit - units + 1);
	}
	if (*size < SHM_MIN_SIZE || *size > SHM_MAX_SIZE)
		return -EINVAL;
	*size = (*size + SHM_PAGE - 1) & ~(u64)(SHM_PAGE - 1);
	return 0;
}

static int parse_u32(const char *s, u32 *value)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(s, &end, 10);
	if (errno || *end || !isdigit((unsigned char)*s) || n > UINT32_MAX)
		return -EINVAL;
	*value = (u32)n;
	return 0;
}

/* HAMLYN_NONE is no host, nor is what a ticket of none has. */
static int parse_host(const char *s, struct shm_options *o)
{
	int err = parse_u32(s, &o->host);

	o->has_host = true;
	return !err && o->host == HAMLYN_NONE ? -EINVAL : err;
}

/* 32 hexadecimal digits, not all of them 0 */
static int parse_fabric(const char *s, struct shm_options *o)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;
	u8 any = 0;

	if (strlen(s) != 2 * sizeof(o->fabric))
		return -EINVAL;
	for (i = 0; s[i]; i++) {
		const char *d = strchr(digits, tolower((unsigned char)s[i]));

		if (!d)
			return -EINVAL;
		o->fabric[i / 2] = (u8)(o->fabric[i / 2] << 4 | (d - digits));
		any |= (u8)(d - digits);
	}
	o->has_fabric = true;
	return any ? 0 : -EINVAL;
}

/* "size=BYTES", "guesses=N", "host=N", "fabric=ID", "join" and "huge", in any order. */
static int parse_options(const char *options, struct shm_options *o)
{
	char copy[128], *rest = copy, *word;
	size_t n = strlen(options) + 1;
	int err = 0;

	if (n > sizeof(copy))
		return h__early(-EINVAL, "more than %zu letters of options: they are " OPTIONS,
				sizeof(copy) - 1);
	memcpy(copy, options, n);
	while (!err && (word = strsep(&rest, ","))) {
		if (!strncmp(word, "size=", 5))
			err = parse_size(word + 5, &o->size);
		else if (!strncmp(word, "guesses=", 8))
			err = parse_u32(word + 8, &o->guesses);
		else if (!strncmp(word, "host=", 5))
			err = parse_host(word + 5, o);
		else if (!strncmp(word, "fabric=", 7))
			err = parse_fabric(word + 7, o);
		else if (!strcmp(word, "huge"))
			o->huge = true;
		else if (!strcmp(word, "join"))
			o->join = true;
		else
			err = -EINVAL;
		if (err)
			h__early(err, "\"%.60s\": options are " OPTIONS, word);
	}
	return err;
}

/* "NAME[,OPTION...]"; the user id keeps users' names apart. */
int h__shm_parse_spec(const char *spec, unsigned int uid, char *file, size_t room,
		      struct shm_options *o)
{
	const char *comma = strchr(spec, ',');
	size_t n = comma ? (size_t)(comma - spec) : strlen(spec);
	size_t i;

	*o = (struct shm_options) {
		.size = SHM_DEFAULT_SIZE,
		.guesses = HML_GUARD_RATE,
	};
	if (!n || n > SHM_NAME_CHARS)
		return h__early(-EINVAL, "a name of %zu letters: must have 1 to %d", n,
				SHM_NAME_CHARS);
	for (i = 0; i < n; i++)
		if (!isalnum((unsigned char)spec[i]) &&
		    !strchr("._-", spec[i]))
			return h__early(-EINVAL,
					"\"%.64s\": must be letters, digits, '.', '_' and '-'",
					spec);
	snprintf(file, room, "hamlyn-%u-%.*s", uid, (int)n, spec);
	return comma ? parse_options(comma + 1, o) : 0;
}
