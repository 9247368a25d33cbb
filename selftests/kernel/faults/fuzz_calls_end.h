/* SPDX-License-Identifier: GPL-2.0-only */
/* What must be true when the fuzzer ends, and what it says on the way. */
#ifndef FUZZ_CALLS_END_H
#define FUZZ_CALLS_END_H

#include "fuzz_calls_figures.h"
#include "fuzz_calls_herd.h"
#include "fuzz_calls_victim.h"

/* ---- what is printed ---- */

static uint64_t calls_of(unsigned int kind)
{
	uint64_t all = 0;
	unsigned int e;

	for (e = 0; e < ERRNOS; e++)
		all += shared->calls[kind][e];
	return all;
}

static uint64_t all_calls(void)
{
	uint64_t all = 0;
	unsigned int k;

	for (k = 0; k < KINDS; k++)
		all += calls_of(k);
	return all;
}

static void print_errno(unsigned int e, uint64_t times)
{
	if (times)
		printf(" %s %llu", e ? strerrorname_np((int)e) ?: "other" : "ok",
		       (unsigned long long)times);
}

static void print_totals(int64_t ns)
{
	uint64_t times;
	unsigned int k, e;

	printf("# %llds: %llu calls, %llu killed, %llu sends good, %llu messages read;",
	       (long long)(ns / HT_SEC), (unsigned long long)all_calls(),
	       (unsigned long long)killed,
	       (unsigned long long)shared->completed,
	       (unsigned long long)shared->taken);
	if (option.kcov)
		printf(" %u places, %u programs;", shared->coverage.pcs,
		       shared->coverage.programs);
	for (e = 0; e < ERRNOS; e++) {
		for (times = 0, k = 0; k < KINDS; k++)
			times += shared->calls[k][e];
		print_errno(e, times);
	}
	printf("\n# of each kind, good/all:");
	for (k = 0; k < KINDS; k++)
		printf(" %s %llu/%llu", kind_names[k],
		       (unsigned long long)shared->calls[k][0],
		       (unsigned long long)calls_of(k));
	printf("\n");
	fflush(stdout);
}

static void print_errors(void)
{
	unsigned int k, e;

	for (k = 0; k < KINDS; k++) {
		printf("# %s:", kind_names[k]);
		for (e = 0; e < ERRNOS; e++)
			print_errno(e, shared->calls[k][e]);
		printf("\n");
	}
}

static unsigned int passed, failed, skipped;

static void check(bool good, const char *what)
{
	printf("%sok - %s\n", good ? "" : "not ", what);
	fflush(stdout);
	if (good)
		passed++;
	else
		failed++;
}

/* ---- as it was ---- */

#define TRACE_SWITCH	"/sys/kernel/tracing/events/hamlyn/enable"

/* NICs that were made go, users' limits too, and NIC 0 is as it should be. */
static void collect_limited(const struct nlmsghdr *h, void *arg)
{
	uint32_t *users = arg;

	if (attr_of(h, HAMLYN_A_LIMITS) && users[0] < 63) {
		users[++users[0]] = attr_u32(attr_of(h, HAMLYN_A_UID));
		users[64 + users[0]] = attr_u32(attr_of(h, HAMLYN_A_NIC));
	}
}

static void tidy(int fd, uint16_t family, uint32_t first)
{
	uint32_t nic, i, users[128] = { 0 };
	struct request r;

	for (nic = first; nic < 256; nic++) {
		request_init(&r, family, HAMLYN_NL_CMD_NIC_DEL, NLM_F_ACK);
		request_u32(&r, HAMLYN_A_NIC, nic);
		ask(fd, &r, NULL, NULL);
	}
	for (nic = 0; nic < first; nic++)
		if (!is_theirs(nic))
			heal(fd, family, nic);
	figures_dump(fd, family, HAMLYN_NL_CMD_USER_GET, collect_limited,
		     users);
	for (i = 1; i <= users[0]; i++) {
		if (is_theirs(users[64 + i]))
			continue;
		request_init(&r, family, HAMLYN_NL_CMD_LIMIT_SET, NLM_F_ACK);
		request_u32(&r, HAMLYN_A_NIC, users[64 + i]);
		request_u32(&r, HAMLYN_A_UID, users[i]);
		ask(fd, &r, NULL, NULL);
	}
}

static bool still_works(void)
{
	struct hamlyn_trb trb;
	struct party p;
	bool good;

	if (party_open(&p))
		return false;
	trb = to_party(&p);
	good = !post(&p.terminus, &trb) && came(&p);
	party_close(&p);
	return good;
}

/* Nothing of RLIMIT_MEMLOCK is used up: all of it can be wired. */
static int wire_all(void *arg)
{
	struct rlimit limit = { 64 * PAGE, 64 * PAGE };
	struct hamlyn_area_add add = {
		.size = sizeof(add),
		.length = 64 * PAGE,
	};
	void *p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = ht_raw_open();

	(void)arg;
	add.addr = (uintptr_t)p;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	return -ht_raw(fd, HAMLYN_IOC_AREA_ADD, &add);
}

static void check_users(void)
{
	unsigned int uid;
	int ret;

	for (uid = 1001; uid <= 1003; uid++) {
		ret = as(uid, wire_all, NULL);
		if (ret)
			printf("# user %u: %d\n", uid, ret);
		check(!ret, "a user's RLIMIT_MEMLOCK is all free again");
	}
}

static void check_figures(const struct figures *start)
{
	struct figures now;
	unsigned int i;

	figures_settle(start, &now, ht_patience_ns());
	for (i = 0; i < FIGURES; i++)
		if (start->of[i] != now.of[i])
			printf("# %s: %llu at the start, %llu now\n",
			       figure_names[i],
			       (unsigned long long)start->of[i],
			       (unsigned long long)now.of[i]);
	for (i = 0; i < FIGURES; i++)
		check(start->of[i] == now.of[i], figure_names[i]);
	check_users();
}

/* Fewer than that, on a slow machine, tell nothing about the fuzzer. */
#define ENOUGH_CALLS	100000

/* A run of some length reaches everything, or the fuzzer is worth little. */
static void check_depth(void)
{
	unsigned int k, never = 0;

	if (all_calls() < ENOUGH_CALLS) {
		printf("ok - # SKIP too few calls to say that it gets deep\n");
		skipped++;
		return;
	}
	for (k = 0; k < KINDS; k++) {
		if (k == K_GARBAGE || shared->calls[k][0])
			continue;
		printf("# %s never worked\n", kind_names[k]);
		never++;
	}
	check(!never, "every kind of call worked now and then");
	check(shared->completed > 100, "messages were sent");
	check(shared->taken > 10, "and received");
	if (option.kcov)
		check(shared->coverage.pcs > 0, "code of the module was seen");
}

static uint64_t free_kib(void)
{
	write_file("/proc/sys/vm/drop_caches", "3");
	return proc_number("/proc/meminfo", "MemAvailable");
}

/* Some of it stays with the kernel's caches, however often they are emptied. */
static uint64_t tolerated_kib(void)
{
	return (16 << 10) + proc_number("/proc/meminfo", "MemTotal") / 32;
}

static void check_memory(uint64_t start)
{
	int64_t end = ht_now_ns() + 20 * HT_SEC;
	uint64_t now = free_kib();

	while (now + tolerated_kib() < start && ht_now_ns() < end) {
		ht_sleep_ns(HT_SEC);
		now = free_kib();
	}
	printf("# %llu KiB available at the start, %llu now\n",
	       (unsigned long long)start, (unsigned long long)now);
	check(now + tolerated_kib() >= start, "the kernel's memory is back");
}

#endif /* FUZZ_CALLS_END_H */
