// SPDX-License-Identifier: GPL-2.0-only
/*
 * Small programs for speed.c, compiled twice: with checks and without. All of their data are
 * in the arena.
 */
#include <stddef.h>
#include <stdint.h>

#include "kernels.h"

#define NAME_(way, name)	way##_##name
#define NAME(way, name)		NAME_(way, name)
#define KERNEL(name)		uint64_t NAME(WAY, name)(void *arena, int rounds)

struct node {
	struct node *next, *left, *right;
	uint64_t key;
	uint64_t unused[4];
};

static uint32_t next_random(uint32_t *x)
{
	*x = *x * 1664525u + 1013904223u;
	return *x >> 8;
}

/* Each load needs the one before: 16 KiB, in the L1 cache */
KERNEL(chase)
{
	struct node *nodes = arena, *at = nodes;
	uint64_t sum = 0;

	for (int i = 0; i < 256; i++)
		nodes[i].next = &nodes[(i + 97) % 256];
	for (long i = 0; i < rounds * 4096L; i++)
		at = at->next;
	sum += (uint64_t)(at - nodes);
	return sum;
}

KERNEL(triad)
{
	double *a = arena, *b = a + 2048, *c = b + 2048;

	for (int i = 0; i < 3 * 2048; i++)
		a[i] = i;
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < 2048; i++)
			a[i] = b[i] + 3.0 * c[i];
	return (uint64_t)a[2047];
}

KERNEL(stencil)
{
	enum { N = 64 };
	double *from = arena, *to = from + N * N, *other;

	for (int i = 0; i < 2 * N * N; i++)
		from[i] = i % N % 17;
	for (int round = 0; round < rounds; round++) {
		for (int y = 1; y < N - 1; y++)
			for (int x = 1; x < N - 1; x++)
				to[y * N + x] = 0.2 * (from[y * N + x] + from[y * N + x - 1] +
						       from[y * N + x + 1] + from[y * N + x - N] +
						       from[y * N + x + N]);
		other = from;
		from = to;
		to = other;
	}
	return (uint64_t)(from[N * N / 2] * 1000);
}

KERNEL(histogram)
{
	uint32_t *counts = arena, random = 1;
	uint8_t *bytes = (uint8_t *)(counts + 256);
	uint64_t sum = 0;

	for (int i = 0; i < 256; i++)
		counts[i] = 0;
	for (int i = 0; i < 8192; i++)
		bytes[i] = (uint8_t)next_random(&random);
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < 8192; i++)
			counts[bytes[i]]++;
	for (int i = 0; i < 256; i++)
		sum = sum * 31 + counts[i];
	return sum;
}

static void sift(uint32_t *heap, int at, int n)
{
	uint32_t value = heap[at];
	int child;

	for (; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && heap[child + 1] > heap[child])
			child++;
		if (heap[child] <= value)
			break;
		heap[at] = heap[child];
	}
	heap[at] = value;
}

KERNEL(sort)
{
	enum { N = 2048 };
	uint32_t *heap = arena, random = 7;
	uint64_t sum = 0;

	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < N; i++)
			heap[i] = next_random(&random);
		for (int i = N / 2; i-- > 0; )
			sift(heap, i, N);
		for (int i = N; i-- > 1; ) {
			uint32_t most = heap[0];

			heap[0] = heap[i];
			heap[i] = most;
			sift(heap, 0, i);
		}
		sum = sum * 31 + heap[N / 2];
	}
	return sum;
}

KERNEL(tree)
{
	enum { N = 1024 };
	struct node *nodes = arena, **at;
	uint32_t random = 3;
	uint64_t found = 0;

	for (int i = 0; i < N; i++) {
		nodes[i].left = NULL;
		nodes[i].right = NULL;
		nodes[i].key = next_random(&random) % 10000;
		struct node *root = nodes;
		for (at = &root; i && *at; )
			at = nodes[i].key < (*at)->key ? &(*at)->left : &(*at)->right;
		if (i)
			*at = &nodes[i];
	}
	for (int i = 0; i < rounds * 1024; i++) {
		uint64_t key = next_random(&random) % 10000;
		const struct node *n = nodes;

		while (n && n->key != key)
			n = key < n->key ? n->left : n->right;
		found += !!n;
	}
	return found;
}

KERNEL(hash)
{
	enum { N = 4096 };
	struct { uint32_t key, value; } *table = arena;
	uint32_t random = 5;
	uint64_t sum = 0;

	for (int i = 0; i < N; i++)
		table[i].key = 0;
	for (int i = 0; i < rounds * 2048; i++) {
		uint32_t key = next_random(&random) % 3000 + 1, at = key * 2654435761u >> 20;

		while (table[at % N].key && table[at % N].key != key)
			at++;
		if (!table[at % N].key) {
			table[at % N].key = key;
			table[at % N].value = 0;
		}
		table[at % N].value += key;
	}
	for (int i = 0; i < N; i++)
		if (table[i].key)
			sum += table[i].value * (uint64_t)i;
	return sum;
}

KERNEL(matrix)
{
	enum { N = 48 };
	double *a = arena, *b = a + N * N, *c = b + N * N;

	for (int i = 0; i < N * N; i++) {
		a[i] = i % 7;
		b[i] = i % 5;
	}
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++) {
				double sum = 0;

				for (int k = 0; k < N; k++)
					sum += a[i * N + k] * b[k * N + j];
				c[i * N + j] = sum;
			}
	return (uint64_t)c[N + 1];
}

/* Bytes of a text: the longest repetition, as compressors look for it */
KERNEL(match)
{
	enum { N = 4096 };
	uint8_t *text = arena;
	uint16_t *last = (uint16_t *)(text + N);
	uint32_t random = 11;
	uint64_t sum = 0;

	for (int i = 0; i < N; i++)
		text[i] = (uint8_t)('a' + next_random(&random) % 4);
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < 256; i++)
			last[i] = 0;
		for (int i = 1; i < N - 64; i++) {
			unsigned int h = (text[i] * 7u + text[i + 1] * 13u + text[i + 2]) & 255;
			int from = last[h], n = 0;

			while (n < 64 && text[from + n] == text[i + n])
				n++;
			sum += (unsigned int)n;
			last[h] = (uint16_t)i;
		}
	}
	return sum;
}
