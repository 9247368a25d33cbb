// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program of many kinds of accesses whose data are in the section "tpdata", and so in the
 * segment where stub.c has put that. It prints the same wherever they are, and however it
 * was compiled.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SHARED __attribute__((section("tpdata")))
#define N 200

struct node {
	struct node *next;
	struct node *left, *right;
	int key;
	unsigned int few:3, many:29;
	long double exact;
};

/* Neighbours lie on both sides of a block's end. */
struct __attribute__((packed)) odd {
	char c;
	uint64_t whole;
	double real;
	uint16_t half;
	uint32_t word;
};

static struct node nodes[N] SHARED = { { 0 } };
static struct odd odds[N] SHARED = { { 0 } };
static double a[N] SHARED = { 0 }, b[N] SHARED = { 0 }, c[N] SHARED = { 0 };
static float f[N] SHARED = { 0 };
static uint8_t bytes[4096] SHARED = { 0 };
static unsigned __int128 wide[N] SHARED = { 0 };
static uint32_t words[N] SHARED = { 0 };
static int counter SHARED = 0;
static long locked SHARED = 0;
static int (*calls[4])(int) SHARED = { 0 };

static uint32_t next_random(void)
{
	static uint32_t x = 12345;

	x = x * 1664525u + 1013904223u;
	return x >> 8;
}

static __attribute__((noinline)) void tree(void)
{
	struct node *root = &nodes[0], **at;
	int i;

	for (i = 0; i < N; i++) {
		nodes[i] = (struct node){ .key = (int)(next_random() % 1000), .few = i & 7,
					  .many = (unsigned int)i * 3 };
		nodes[i].exact = nodes[i].key / 3.0L;
		nodes[i].next = i ? &nodes[i - 1] : NULL;
		for (at = &root; i && *at; )
			at = nodes[i].key < (*at)->key ? &(*at)->left : &(*at)->right;
		if (i)
			*at = &nodes[i];
	}
}

static __attribute__((noinline)) long depth(const struct node *n)
{
	long l, r;

	if (!n)
		return 0;
	l = depth(n->left);
	r = depth(n->right);
	return 1 + (l > r ? l : r);
}

static __attribute__((noinline)) long double walk(void)
{
	const struct node *n;
	long double sum = 0;

	for (n = &nodes[N - 1]; n; n = n->next)
		sum += n->exact + n->few - n->many;
	return sum;
}

static __attribute__((noinline)) uint64_t straddle(void)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < N; i++) {
		odds[i].whole = (uint64_t)next_random() << 20;
		odds[i].real = i * 1.5;
		odds[i].half = (uint16_t)i;
		odds[i].word += (uint32_t)i;
		odds[i].c = (char)('a' + i % 26);
	}
	for (i = 0; i < N; i++) {
		odds[i].whole ^= odds[(i + 7) % N].word;
		sum += odds[i].whole + (uint64_t)odds[i].real + odds[i].half;
	}
	return sum;
}

static __attribute__((noinline)) double vectors(void)
{
	double sum = 0;
	int i;

	for (i = 0; i < N; i++) {
		b[i] = i;
		c[i] = 1.0 / (i + 1);
		f[i] = (float)i * 0.5f;
	}
	for (i = 0; i < N; i++)
		a[i] = b[i] + 3.0 * c[i];
	for (i = 0; i < N; i++)
		if (a[i] > f[i])
			sum += a[i] * f[i];
	return sum;
}

/* Carries are in the flags from one access to the next. */
static __attribute__((noinline)) unsigned __int128 carries(void)
{
	unsigned __int128 sum = 1;
	int i;

	for (i = 0; i < N; i++) {
		wide[i] = ((unsigned __int128)next_random() << 70) | ~(uint64_t)next_random();
		sum += wide[i];
		wide[i] -= sum >> 3;
		sum = sum * 3 + (wide[i] < sum);
	}
	return sum;
}

static __attribute__((noinline)) uint32_t histogram(void)
{
	uint32_t hash = 0;
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)next_random();
	for (i = 0; i < sizeof(bytes); i++)
		words[bytes[i] % N]++;
	for (i = 0; i < N; i++) {
		words[i] = words[i] << (i & 7) | words[i] >> (32 - (i & 7) - 1) >> 1;
		hash = (hash ^ words[i]) * 16777619u;
	}
	memmove(bytes + 100, bytes, 3000);
	memset(bytes + 10, 7, 50);
	for (i = 0; i < sizeof(bytes); i++)
		hash = hash * 31 + bytes[i];
	return hash;
}

static int twice(int x) { return 2 * x; }
static int plus(int x) { return x + counter++; }
static int minus(int x) { return x - counter--; }

static __attribute__((noinline)) int pointers(void)
{
	int i, x = 1;

	calls[0] = twice;
	calls[1] = plus;
	calls[2] = minus;
	calls[3] = twice;
	for (i = 0; i < 1000; i++)
		x = calls[(unsigned int)(x + i) % 4](x) % 10007;
	return x;
}

static __attribute__((noinline)) long atomics(void)
{
	long old = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		__atomic_fetch_add(&locked, i, __ATOMIC_SEQ_CST);
		old ^= __atomic_exchange_n(&locked, locked * 3, __ATOMIC_ACQ_REL);
		__atomic_compare_exchange_n(&locked, &old, old + 1, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
		__atomic_or_fetch(&counter, i, __ATOMIC_RELAXED);
	}
	return locked + counter;
}

/* Assembly of the program's own: with a register that others use, and left as it is. */
static __attribute__((noinline)) int own_assembly(int *p)
{
	int x;

	__asm__ volatile("movl %1, %%r11d\n\taddl $5, %%r11d\n\tmovl %%r11d, %0"
			 : "=r"(x) : "m"(*p) : "r11");
	return x + *p;
}

static __attribute__((noinline)) int table(int x)
{
	switch (words[x] % 9) {
	case 0: return nodes[x].key;
	case 1: return counter += x;
	case 2: return -x;
	case 3: return bytes[x];
	case 4: return (int)a[x];
	case 5: return x * x;
	case 6: return nodes[x].few;
	case 7: return odds[x].c;
	default: return 77;
	}
}

int main(void)
{
	unsigned __int128 sum;
	int i, tables = 0;

	tree();
	printf("tree %ld\nwalk %.3Lf\n", depth(&nodes[0]), walk());
	printf("straddle %llu\n", (unsigned long long)straddle());
	printf("vectors %.6f\n", vectors());
	sum = carries();
	printf("carries %llx %llx\n", (unsigned long long)(sum >> 64), (unsigned long long)sum);
	printf("histogram %x\n", histogram());
	printf("pointers %d\n", pointers());
	printf("atomics %ld\n", atomics());
	printf("assembly %d\n", own_assembly(&counter));
	for (i = 0; i < N; i++)
		tables += table(i);
	printf("table %d\n", tables);
	return 0;
}
