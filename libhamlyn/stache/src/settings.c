// SPDX-License-Identifier: MIT
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "chunk.h"
#include "error.h"
#include "settings.h"

#define BLOCK_BYTES	128
#define FEWEST_PAGES	16	/* one instruction may need several at once */

struct stache_attr stache_settings;

/* A member to come would be where a program leaves anything: Documentation/abi.rst. */
_Static_assert(sizeof(struct stache_attr) == 4 * sizeof(int) + 2 * sizeof(void *) + sizeof(size_t),
	       "no padding");

static unsigned int read_number(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);
	unsigned long value;
	char *end;

	if (!text || !*text)
		return otherwise;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || !value || value > UINT_MAX)
		stache_die("%s is \"%s\", which is no number", name, text);
	return value;
}

static enum stache_homes homes_of_user(void)
{
	const char *text = getenv("HAMLYN_STACHE_HOMES");

	if (!text || !*text || !strcmp(text, "static"))
		return STACHE_HOMES_STATIC;
	if (strcmp(text, "random"))
		stache_die("HAMLYN_STACHE_HOMES is \"%s\": static and random are possible", text);
	return STACHE_HOMES_RANDOM;
}

void stache_check_block(int block_bytes)
{
	if (block_bytes < TPPI_TAG_BLK_SIZE || block_bytes > TPPI_PAGE_SIZE ||
	    (block_bytes & (block_bytes - 1)))
		stache_die("blocks of %d bytes: a power of two from %d to %d is possible",
			   block_bytes, TPPI_TAG_BLK_SIZE, TPPI_PAGE_SIZE);
}

static void check_part(void)
{
	size_t from = (char *)stache_settings.from - TPPI_SEG_BASE;

	if (from % CHUNK_BYTES || stache_settings.bytes % CHUNK_BYTES ||
	    from > TPPI_SEG_SIZE || stache_settings.bytes > TPPI_SEG_SIZE - from ||
	    !stache_settings.bytes)
		stache_die("%zu bytes at %p are no part of the segment, or no whole MiB",
			   stache_settings.bytes, stache_settings.from);
}

/* The program may be older, and know less than there is now; or newer, and want more. */
static void take_attr(const struct stache_attr *attr, size_t size)
{
	const char *bytes = (const char *)attr;
	size_t known = sizeof(*attr), i;

	if (!size)
		stache_die("attributes of 0 bytes");
	for (i = known; i < size; i++) {
		if (bytes[i])
			stache_die("%zu bytes of attributes: %zu are known, the rest is not 0",
				   size, known);
	}
	memcpy(&stache_settings, attr, size < known ? size : known);
}

void stache_settings_read(const struct stache_attr *attr, size_t size)
{
	struct stache_attr *s = &stache_settings;

	if (attr)
		take_attr(attr, size);
	if (s->homes == STACHE_HOMES_DEFAULT)
		s->homes = homes_of_user();
	if (s->homes == STACHE_HOMES_ONE)
		stache_die("the homes of all pages cannot be one node");
	if (!s->block_bytes)
		s->block_bytes = read_number("HAMLYN_STACHE_BLOCK", BLOCK_BYTES);
	stache_check_block(s->block_bytes);
	if (!s->most_pages)
		s->most_pages = read_number("HAMLYN_STACHE_PAGES", UINT_MAX);
	if (s->most_pages < FEWEST_PAGES)
		stache_die("%u pages of others are too few: at least %d are needed", s->most_pages,
			   FEWEST_PAGES);
	if (s->mode == TPPI_MAX_PAGE_MODE)
		stache_die("there is no page mode after %u", s->mode);
	if (!s->from)
		s->from = TPPI_SEG_BASE;
	if (!s->bytes)
		s->bytes = TPPI_SEG_SIZE - ((char *)s->from - TPPI_SEG_BASE);
	check_part();
}
