/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all fuzz targets share: reading the input, and saying what must hold.
 *
 * An input that is at its end goes on with zeros, so that every input is one, and
 * a shorter one is found for each that fails.
 */
#ifndef HML_FUZZ_H
#define HML_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_COUNT(a)	(sizeof(a) / sizeof((a)[0]))

/* Unlike assert() it is never compiled away, and says nothing about who calls it. */
#define MUST(condition) do {						\
	if (!(condition)) {						\
		fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__,	\
			__LINE__, #condition);				\
		abort();						\
	}								\
} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct fuzz {
	const uint8_t *at;
	size_t left;
};

static inline void fuzz_bytes(struct fuzz *f, void *to, size_t n)
{
	size_t have = n < f->left ? n : f->left;

	memset(to, 0, n);
	if (have)
		memcpy(to, f->at, have);
	f->at += have;
	f->left -= have;
}

static inline uint8_t fuzz_u8(struct fuzz *f)
{
	uint8_t v;

	fuzz_bytes(f, &v, sizeof(v));
	return v;
}

static inline uint16_t fuzz_u16(struct fuzz *f)
{
	uint16_t v;

	fuzz_bytes(f, &v, sizeof(v));
	return v;
}

static inline uint32_t fuzz_u32(struct fuzz *f)
{
	uint32_t v;

	fuzz_bytes(f, &v, sizeof(v));
	return v;
}

static inline uint64_t fuzz_u64(struct fuzz *f)
{
	uint64_t v;

	fuzz_bytes(f, &v, sizeof(v));
	return v;
}

/* @n is from 1 to 65536. */
static inline uint32_t fuzz_below(struct fuzz *f, uint32_t n)
{
	return (n > 256 ? fuzz_u16(f) : fuzz_u8(f)) % n;
}

/* A number that is likely to be at an edge: around 0, around @edge, the largest. */
static inline uint64_t fuzz_number(struct fuzz *f, uint64_t edge)
{
	uint8_t how = fuzz_u8(f);

	switch (how & 7) {
	case 0:
		return fuzz_u64(f);
	case 1:
		return UINT64_MAX - (how >> 3);
	case 2:
		return edge + (how >> 3);
	case 3:
		return edge - (how >> 3);
	case 4:
		return edge ? fuzz_u16(f) % edge : 0;
	default:
		return how >> 3;
	}
}

/* FNV-1a. A number that the input determines and cannot contain. */
static inline uint64_t fuzz_hash(const uint8_t *data, size_t size, uint64_t seed)
{
	uint64_t h = 14695981039346656037ULL ^ seed;
	size_t i;

	for (i = 0; i < size; i++)
		h = (h ^ data[i]) * 1099511628211ULL;
	h ^= h >> 29;
	return h | 1;
}

/* The whole input as a string, for parsers of text; to be freed. */
static inline char *fuzz_text(struct fuzz *f)
{
	char *text = malloc(f->left + 1);

	MUST(text);
	if (f->left)
		memcpy(text, f->at, f->left);
	text[f->left] = 0;
	f->at += f->left;
	f->left = 0;
	return text;
}

#endif /* HML_FUZZ_H */
