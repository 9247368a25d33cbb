// SPDX-License-Identifier: GPL-2.0-only
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void take_line(const char *line, const char *name, uint64_t *bytes)
{
	uint64_t kib;
	size_t length = strlen(name);

	if (!strncmp(line, name, length) && sscanf(line + length, ": %" SCNu64, &kib) == 1)
		*bytes = kib << 10;
}

static void look_at_file(const char *path, struct memory *memory)
{
	FILE *file = fopen(path, "r");
	char line[256];

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		take_line(line, "VmRSS", &memory->resident);
		take_line(line, "RssAnon", &memory->own);
		take_line(line, "RssShmem", &memory->shared);
		take_line(line, "MemFree", &memory->free);
		take_line(line, "SUnreclaim", &memory->slab);
	}
	fclose(file);
}

void memory_look(struct memory *memory)
{
	*memory = (struct memory){ 0 };
	look_at_file("/proc/meminfo", memory);
	look_at_file("/proc/self/status", memory);
}

double memory_each(uint64_t more, uint64_t less, uint32_t count)
{
	return more > less && count ? (double)(more - less) / count : 0;
}
