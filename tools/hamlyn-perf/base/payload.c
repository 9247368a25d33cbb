// SPDX-License-Identifier: GPL-2.0-only
/* Payload patterns: made by the sender once, checked by the receiver. */
#include "base/payload.h"

volatile uint64_t payload_sink;

static uint64_t pattern(uint32_t position, size_t word)
{
	return (position + 1) * 0x9e3779b97f4a7c15ULL ^
	       (word + 1) * 0xd6e8feb86659fd93ULL;
}

void payload_fill(void *buffer, size_t size, uint32_t position)
{
	unsigned char *bytes = buffer;
	size_t i, length;
	uint64_t word;

	for (i = 0; i < size; i += length) {
		word = pattern(position, i / sizeof(word));
		length = size - i < sizeof(word) ? size - i : sizeof(word);
		memcpy(bytes + i, &word, length);
	}
}

int payload_verify(const void *buffer, size_t size, uint32_t position)
{
	const unsigned char *bytes = buffer;
	size_t i, length;
	uint64_t word;

	/* A message of fewer than 8 bytes has no room for its number. */
	for (i = size >= sizeof(word) ? sizeof(word) : 0; i < size; i += length) {
		word = pattern(position, i / sizeof(word));
		length = size - i < sizeof(word) ? size - i : sizeof(word);
		if (memcmp(bytes + i, &word, length))
			return fail("wrong payload near byte %zu of a message of %zu bytes",
				    i, size);
	}
	return 0;
}

int payload_stale(uint64_t got, uint64_t number)
{
	return fail("message %llu arrived where number %llu was due",
		    (unsigned long long)got, (unsigned long long)number);
}
