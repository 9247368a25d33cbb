// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads of all nodes compute in words of one page, each in its own, which lie in blocks
 * with others': so the blocks go from node to node (migrate.h). They do so in ways that a
 * check must not disturb: exceptions, setjmp(), atomics, assembly of the program's own.
 * What is printed depends on the number of nodes only.
 */
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <vector>

#include "migrate.h"

static const int THREADS = 3, WORDS = 8, MOST_NODES = 4;
static const int ROUNDS = 300;

struct shared {
	uint64_t total;
	uint64_t word[WORDS][MOST_NODES * THREADS];
	double real[MOST_NODES * THREADS];
	uint64_t (*step[2])(uint64_t);
};

static shared *const page = reinterpret_cast<shared *>(TPPI_SEG_BASE);

/* Whoever it is that unwinds the stack, it ends in the segment. */
struct leaves {
	uint64_t *to;
	uint64_t what;
	~leaves() { *to = *to * 3 + what; }
};

struct thrown : std::runtime_error {
	uint64_t value;
	explicit thrown(uint64_t v) : std::runtime_error("thrown"), value(v) {}
};

static __attribute__((noinline)) uint64_t may_throw(int self, int depth)
{
	leaves first = { &page->word[0][self], static_cast<uint64_t>(depth) };

	if (page->word[1][self] % 3 == 0 && depth > 2)
		throw thrown(page->word[2][self] + page->word[0][self]);
	return depth > 6 ? page->word[1][self] : may_throw(self, depth + 1) + *first.to;
}

static __attribute__((noinline)) void exceptions(int self)
{
	try {
		page->word[1][self] += may_throw(self, 0);
	} catch (const thrown &e) {
		page->word[2][self] ^= e.value;
		page->word[1][self]++;
	}
}

static __attribute__((noinline)) void jump(std::jmp_buf where, int self)
{
	if (page->word[3][self]++ % 4)
		std::longjmp(where, static_cast<int>(page->word[3][self] % 4) + 1);
}

static __attribute__((noinline)) void jumps(int self)
{
	std::jmp_buf where;
	int how = setjmp(where);

	page->word[4][self] = page->word[4][self] * 5 + static_cast<uint64_t>(how);
	jump(where, self);
}

static __attribute__((noinline)) void assembly(int self)
{
	__asm__ volatile("addq %1, %0" : "+m"(page->word[5][self])
			 : "r"(page->word[4][self] | 1) : "cc");
}

static __attribute__((noinline)) void numbers(int self)
{
	std::vector<double> copy(WORDS);

	for (int i = 0; i < WORDS; i++)
		copy[static_cast<size_t>(i)] = static_cast<double>(page->word[i][self] % 1000) / 7;
	for (double x : copy)
		page->real[self] = page->real[self] / 2 + x;
	std::memcpy(&page->word[6][self], &page->real[self], sizeof(page->real[self]));
	__atomic_add_fetch(&page->total, static_cast<uint64_t>(self) + 1, __ATOMIC_SEQ_CST);
	page->word[7][self] = __builtin_bswap64(page->word[6][self]) + page->word[5][self];
}

/* A loop that begins outside of the segment, and ends in it: by what it adds, and by steps. */
static __attribute__((noinline)) uint64_t far(const uint64_t *from, const intptr_t *steps, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum = sum * 7 + from[steps[i]];
	return sum;
}

static __attribute__((noinline)) void stride(char *at, intptr_t step, int n)
{
	for (int i = 0; i < n; i++, at += step)
		*reinterpret_cast<uint64_t *>(at) += 3;
}

static __attribute__((noinline)) void from_outside(int self)
{
	static uint64_t outside[4] = { 2, 3, 5, 7 };
	uint64_t mine[2] = { 0, 0 };
	intptr_t away = reinterpret_cast<intptr_t>(&page->word[3][self]) -
			reinterpret_cast<intptr_t>(outside);
	intptr_t steps[] = { 0, 3, away / 8, 1 };

	page->word[2][self] += far(outside, steps, 4);
	stride(reinterpret_cast<char *>(mine), reinterpret_cast<intptr_t>(&page->word[1][self]) -
	       reinterpret_cast<intptr_t>(mine), 2);
}

static uint64_t twice(uint64_t x)
{
	return 2 * x + 1;
}

static uint64_t half(uint64_t x)
{
	return x / 2;
}

/* The program is at the same place on all nodes, so a function is, too. */
static __attribute__((noinline)) void calls(shared *from, int self)
{
	from->word[4][self] = from->step[0](from->word[4][self]) ^ from->step[1](7);
}

static void *compute(void *argument)
{
	int self = static_cast<int>(reinterpret_cast<intptr_t>(argument));

	for (int i = 0; i < ROUNDS; i++) {
		exceptions(self);
		jumps(self);
		assembly(self);
		from_outside(self);
		calls(page, self);
		numbers(self);
	}
	return nullptr;
}

static void print()
{
	uint64_t sum = 0;

	for (auto &row : page->word)
		for (uint64_t word : row)
			sum = sum * 31 + word;
	for (double x : page->real)
		sum = sum * 31 + static_cast<uint64_t>(x * 1000);
	std::printf("%016lx, total %lu\n", static_cast<unsigned long>(sum),
		    static_cast<unsigned long>(page->total));
}

int main()
{
	static_assert(sizeof(shared) <= TPPI_PAGE_SIZE, "the protocol is for one page");
	pthread_t threads[THREADS];
	bool home = TPPI_self_address == HOME;

	if (TPPI_num_nodes > MOST_NODES)
		return 2;
	register_handlers();
	if (!TPPI_alloc_and_map(TPPI_SEG_BASE, 0, home ? TPPI_Blk_Writable : TPPI_Blk_Invalid,
				HOME, nullptr))
		return 1;
	if (home) {
		page->step[0] = twice;
		page->step[1] = half;
	}
	TPPI_barrier();
	for (int i = 0; i < THREADS; i++) {
		intptr_t self = static_cast<intptr_t>(TPPI_self_address) * THREADS + i;

		if (pthread_create(&threads[i], nullptr, compute, reinterpret_cast<void *>(self)))
			return 1;
	}
	for (pthread_t thread : threads)
		pthread_join(thread, nullptr);
	TPPI_barrier();
	if (home)
		print();
	TPPI_barrier();
	return 0;
}
