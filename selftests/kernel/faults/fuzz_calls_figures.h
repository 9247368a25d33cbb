/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the device and the kernel say is in use, to be compared with what they
 * said before.
 */
#ifndef FUZZ_CALLS_FIGURES_H
#define FUZZ_CALLS_FIGURES_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"

enum figure {
	F_NICS, F_CONTEXTS, F_AREAS, F_SLOTS, F_NQS, F_TERMINI, F_KERNEL_BYTES,
	F_WIRED_BYTES, F_USER_CONTEXTS, F_USER_SLOTS, F_USER_TERMINI,
	F_USER_KERNEL_BYTES, F_USER_WIRED_BYTES, F_LISTED_CONTEXTS,
	F_LISTED_AREAS, F_LISTED_SLOTS, F_LISTED_NQS, F_LISTED_TERMINI,
	F_PINS, F_MLOCKED, F_MODULE_USERS,
	FIGURES
};

static const char *const figure_names[FIGURES] = {
	"NICs", "contexts", "areas", "slots", "NQs", "termini", "kernel bytes",
	"wired bytes", "contexts of users", "slots of users",
	"termini of users", "kernel bytes of users", "wired bytes of users",
	"contexts listed", "areas listed", "slots listed", "NQs listed",
	"termini listed", "pinned pages", "Mlocked", "users of the module",
};

struct figures {
	uint64_t of[FIGURES];
};

/* ---- by netlink, of all NICs ---- */

static inline uint64_t figure_attr(const struct nlmsghdr *h, uint16_t type)
{
	const struct nlattr *a = attr_of(h, type);
	uint64_t value = 0;

	if (a)
		memcpy(&value, (const char *)a + NLA_HDRLEN,
		       a->nla_len - NLA_HDRLEN == 8 ? 8 : 4);
	return value;
}

static inline void figures_nic(const struct nlmsghdr *h, void *arg)
{
	static const uint16_t types[] = {
		HAMLYN_A_CONTEXTS, HAMLYN_A_AREAS, HAMLYN_A_SLOTS,
		HAMLYN_A_NQS, HAMLYN_A_TERMINI, HAMLYN_A_KERNEL_BYTES,
		HAMLYN_A_WIRED_BYTES,
	};
	struct figures *f = arg;
	size_t i;

	f->of[F_NICS]++;
	for (i = 0; i < ARRAY_SIZE(types); i++)
		f->of[F_CONTEXTS + i] += figure_attr(h, types[i]);
}

static inline void figures_user(const struct nlmsghdr *h, void *arg)
{
	static const uint16_t types[] = {
		HAMLYN_A_CONTEXTS, HAMLYN_A_SLOTS, HAMLYN_A_TERMINI,
		HAMLYN_A_KERNEL_BYTES, HAMLYN_A_WIRED_BYTES,
	};
	struct figures *f = arg;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		f->of[F_USER_CONTEXTS + i] += figure_attr(h, types[i]);
}

static inline void figures_one(const struct nlmsghdr *h, void *arg)
{
	(void)h;
	++*(uint64_t *)arg;
}

static inline int figures_dump(int fd, uint16_t family, uint8_t command,
			       void (*each)(const struct nlmsghdr *, void *),
			       void *arg)
{
	struct request r;

	request_init(&r, family, command, NLM_F_DUMP);
	return ask(fd, &r, each, arg);
}

static inline int figures_device(struct figures *f)
{
	static const uint8_t lists[] = {
		HAMLYN_NL_CMD_CONTEXT_GET, HAMLYN_NL_CMD_AREA_GET,
		HAMLYN_NL_CMD_SLOT_GET, HAMLYN_NL_CMD_NQ_GET,
		HAMLYN_NL_CMD_TERMINUS_GET,
	};
	static uint16_t family;
	static int fd = -1;
	size_t i;
	int ret;

	/* Kept: it is asked often. */
	if (fd < 0)
		fd = netlink_open(&family);
	if (fd < 0)
		return fd;
	ret = figures_dump(fd, family, HAMLYN_NL_CMD_NIC_GET, figures_nic, f);
	if (!ret)
		ret = figures_dump(fd, family, HAMLYN_NL_CMD_USER_GET,
				   figures_user, f);
	for (i = 0; i < ARRAY_SIZE(lists) && !ret; i++)
		ret = figures_dump(fd, family, lists[i], figures_one,
				   &f->of[F_LISTED_CONTEXTS + i]);
	if (ret) {
		close(fd);
		fd = -1;
	}
	return ret;
}

/* ---- from /proc ---- */

/* The number behind @name in a file of "name number" lines; 0 if there is none. */
static inline uint64_t proc_number(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	size_t n = strlen(name);
	uint64_t value = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, n) && strchr(" :\t", line[n]))
			value = strtoull(line + n + 1, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

static inline uint64_t module_users(void)
{
	FILE *f = fopen("/sys/module/hamlyn/refcnt", "re");
	unsigned long n = 0;

	if (f && fscanf(f, "%lu", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

/* Each processor counts for itself, and adds that up now and then. */
static inline void add_up_counters(void)
{
	FILE *f = fopen("/proc/sys/vm/stat_refresh", "re");

	if (!f)
		return;
	fgetc(f);
	fclose(f);
}

/* 0 or a negative errno. */
static inline int figures_take(struct figures *f)
{
	int ret;

	memset(f, 0, sizeof(*f));
	ret = figures_device(f);
	add_up_counters();
	f->of[F_PINS] = proc_number("/proc/vmstat", "nr_foll_pin_acquired") -
			proc_number("/proc/vmstat", "nr_foll_pin_released");
	f->of[F_MLOCKED] = proc_number("/proc/meminfo", "Mlocked");
	f->of[F_MODULE_USERS] = module_users();
	return ret;
}

/* Which is the first that differs; FIGURES if none does. */
static inline enum figure figures_differ(const struct figures *a,
					 const struct figures *b)
{
	unsigned int i;

	for (i = 0; i < FIGURES; i++)
		if (a->of[i] != b->of[i])
			break;
	return i;
}

/*
 * Take them until they are what they were: some of what is freed is freed a
 * little later. At most @ns. Returns the figure that stays another, FIGURES if
 * none does.
 */
static inline enum figure figures_settle(const struct figures *start,
					 struct figures *now, int64_t ns)
{
	int64_t end = ht_now_ns() + ns;
	enum figure differs;

	for (;;) {
		if (figures_take(now))
			return F_NICS;
		differs = figures_differ(start, now);
		if (differs == FIGURES || ht_now_ns() > end)
			return differs;
		ht_sleep_ns(20 * HT_MS);
	}
}

#endif /* FUZZ_CALLS_FIGURES_H */
