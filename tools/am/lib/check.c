// SPDX-License-Identifier: GPL-2.0-only
/* Contents of messages. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "world.h"

#define WORD	sizeof(uint64_t)

size_t check_random_size(uint64_t *state, size_t most, size_t segment)
{
	const size_t edges[] = { 0, 1, WORD, segment - 1, segment, segment + 1, most - 1, most };
	uint64_t random = check_random(state);
	size_t size, bits;

	if (random % 8 == 0) {
		size = edges[(random >> 8) % (sizeof(edges) / sizeof(*edges))];
		return size > most ? most : size;
	}
	for (bits = 1; most >> bits; bits++)
		;
	size = (size_t)(check_random(state) & ((1UL << (1 + (random >> 8) % bits)) - 1));
	return size > most ? size % (most + 1) : size;
}

unsigned char check_byte(uint64_t key, size_t at)
{
	return (unsigned char)(check_mix(key + at / WORD) >> (8 * (at % WORD)));
}

void check_fill(void *to, size_t n, uint64_t key, size_t from)
{
	unsigned char *bytes = to;
	uint64_t word;
	size_t i = 0;

	while (i < n && (from + i) % WORD) {
		bytes[i] = check_byte(key, from + i);
		i++;
	}
	for (; n - i >= WORD; i += WORD) {
		word = check_mix(key + (from + i) / WORD);
		memcpy(bytes + i, &word, WORD);
	}
	for (; i < n; i++)
		bytes[i] = check_byte(key, from + i);
}

/* The same walk; words first, as almost all are right. */
long check_find(const void *at, size_t n, uint64_t key, size_t from)
{
	const unsigned char *bytes = at;
	uint64_t word;
	size_t i = 0;

	while (i < n) {
		if ((from + i) % WORD == 0 && n - i >= WORD) {
			word = check_mix(key + (from + i) / WORD);
			if (!memcmp(bytes + i, &word, WORD)) {
				i += WORD;
				continue;
			}
		}
		if (bytes[i] != check_byte(key, from + i))
			return (long)i;
		i++;
	}
	return -1;
}

void check_scribble(void *to, size_t n)
{
	if (n)
		memset(to, 0xdb, n);
}

long check_find_other(const void *at, size_t n, unsigned char byte)
{
	const unsigned char *bytes = at;
	size_t i;

	if (!n)
		return -1;
	if (bytes[0] == byte && !memcmp(bytes, bytes + 1, n - 1))
		return -1;
	for (i = 0; bytes[i] == byte; i++)
		;
	return (long)i;
}

void check_same(const void *at, size_t n, uint64_t key, size_t from, const char *who, ...)
{
	long wrong = check_find(at, n, key, from);
	char text[200];
	va_list args;

	if (wrong < 0)
		return;
	va_start(args, who);
	vsnprintf(text, sizeof(text), who, args);
	va_end(args);
	die("%s: byte %ld of %zu is 0x%02x, not 0x%02x", text, wrong, n,
	    ((const unsigned char *)at)[wrong], check_byte(key, from + (size_t)wrong));
}
