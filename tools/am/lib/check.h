/* SPDX-License-Identifier: GPL-2.0-only */
/* Contents that can be told from all others, and random numbers to make them of. */
#ifndef HAMLYN_AM_CHECK_H
#define HAMLYN_AM_CHECK_H

#include <stddef.h>
#include <stdint.h>

/* Scrambles: as good as random, and the same everywhere (splitmix64). */
static inline uint64_t check_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static inline uint64_t check_random(uint64_t *state)
{
	return check_mix((*state)++);
}

/* A key made of several numbers. */
static inline uint64_t check_key(uint64_t seed, uint64_t a, uint64_t b)
{
	return check_mix(check_mix(check_mix(seed) ^ a) ^ b);
}

/*
 * A number of bytes up to @most: of all orders of magnitude, and often one that is a
 * likely boundary, such as of segments of @segment bytes.
 */
size_t check_random_size(uint64_t *state, size_t most, size_t segment);

/* The bytes of key @key from byte @from on. */
void check_fill(void *to, size_t n, uint64_t key, size_t from);

/* The first of @n bytes that is not as check_fill() has it; -1: none. */
long check_find(const void *at, size_t n, uint64_t key, size_t from);

/* The byte that check_fill() would put there. */
unsigned char check_byte(uint64_t key, size_t at);

/* Writes other bytes over memory that should not matter any more; @to may be NULL if @n is 0. */
void check_scribble(void *to, size_t n);

/* The first of @n bytes that is not @byte; -1: none. */
long check_find_other(const void *at, size_t n, unsigned char byte);

/*
 * die() if the bytes are not the key's: "@who: byte 5 of 100 is 0x00, not 0x5a".
 * @who is printf()'s, for the message only.
 */
void check_same(const void *at, size_t n, uint64_t key, size_t from, const char *who, ...)
	__attribute__((format(printf, 5, 6)));

#endif /* HAMLYN_AM_CHECK_H */
