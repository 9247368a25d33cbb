/* SPDX-License-Identifier: GPL-2.0-only */
/* NICs that tests make, move and delete by netlink. */
#ifndef NICS_H
#define NICS_H

#include "genl.h"
#include "hamlyn_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/hamlyn_netlink.h>
#include <stdio.h>
#include <stdlib.h>

/* @command for one NIC; its answer is in @g. */
static inline int nic_call(struct genl *g, uint8_t command, uint32_t nic)
{
	genl_begin(g, command);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	return genl_call(g);
}

/* The number of a new NIC, or a negative errno. */
static inline int nic_new(struct genl *g)
{
	int ret;

	genl_begin(g, HAMLYN_NL_CMD_NIC_NEW);
	ret = genl_call(g);
	return ret ? ret : (int)genl_number(genl_attr(g, HAMLYN_A_NIC));
}

/* A user has the limits of all again. */
static inline int nic_no_limit(struct genl *g, uint32_t nic, uint32_t uid)
{
	genl_begin(g, HAMLYN_NL_CMD_LIMIT_SET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	genl_put_u32(g, HAMLYN_A_UID, uid);
	return genl_call(g);
}

/* Into the network namespace of @pid. */
static inline int nic_move(struct genl *g, uint32_t nic, pid_t pid)
{
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	genl_put_u32(g, HAMLYN_A_NETNS_FD, (uint32_t)fd);
	ret = genl_call(g);
	close(fd);
	return ret;
}

/* What is asked for, as number, of a new NIC. */
struct nic_wish {
	uint16_t attr;
	uint32_t value;
};

static inline int nic_make(struct genl *g, const struct nic_wish *wish, size_t n)
{
	size_t i;
	int ret;

	genl_begin(g, HAMLYN_NL_CMD_NIC_NEW);
	for (i = 0; i < n; i++)
		genl_put_u32(g, wish[i].attr, wish[i].value);
	ret = genl_call(g);
	return ret ? ret : (int)genl_number(genl_attr(g, HAMLYN_A_NIC));
}

#define NIC_MAKE(g, ...) nic_make(g, (const struct nic_wish []) { __VA_ARGS__ }, \
			  sizeof((const struct nic_wish []) { __VA_ARGS__ }) / \
			  sizeof(struct nic_wish))

static inline int nic_set(struct genl *g, uint32_t nic, uint16_t attr, uint32_t value)
{
	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	genl_put_u32(g, attr, value);
	return genl_call(g);
}

static inline int nic_delete(struct genl *g, uint32_t nic)
{
	return nic_call(g, HAMLYN_NL_CMD_NIC_DEL, nic);
}

static inline int nic_get(struct genl *g, uint32_t nic)
{
	return nic_call(g, HAMLYN_NL_CMD_NIC_GET, nic);
}

/* Whoever had it open may still be on his way out. */
static inline int nic_delete_soon(struct genl *g, uint32_t nic)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do
		ret = nic_delete(g, nic);
	while (ret == -EBUSY && ht_poll_more(&poll));
	return ret;
}

/* With the namespace that it is in. Its number is free then: 0, or a negative errno. */
static inline int nic_is_gone_soon(struct genl *g, uint32_t nic)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do
		ret = NIC_MAKE(g, { HAMLYN_A_NIC, nic });
	while (ret < 0 && ht_poll_more(&poll));
	return ret < 0 ? ret : nic_delete(g, nic);
}

static inline int nic_open(uint32_t nic)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/hamlyn%u", nic);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* From here on ht_raw_open() and party_open() open this one. */
static inline void nic_use(uint32_t nic)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/hamlyn%u", nic);
	setenv("HAMLYN_DEVICE", path, 1);
}

/* And this one is where pairs send from. */
static inline void nic_use_tx(uint32_t nic)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/hamlyn%u", nic);
	setenv("HAMLYN_TX_DEVICE", path, 1);
}

/* ---- events ---- */

struct nic_told {
	uint32_t event;
	uint32_t nic;
	uint32_t context;
	uint32_t pid;
	uint32_t uid;
	uint32_t id;
	uint32_t paused_ms;
	char name[32];
};

/* The next event of that NIC that has arrived; false if there is none. */
static inline bool nic_event(int fd, uint32_t nic, struct nic_told *told)
{
	static struct genl g;
	const struct nlattr *name;

	while (recv(fd, &g.reply, sizeof(g.reply), MSG_DONTWAIT) > 0) {
		*told = (struct nic_told) {
			.event = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_EVENT)),
			.nic = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_NIC)),
			.context = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_CONTEXT)),
			.pid = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_PID)),
			.uid = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_UID)),
			.id = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_ID)),
			.paused_ms = (uint32_t)genl_number(genl_attr(&g, HAMLYN_A_PAUSED_MS)),
		};
		name = genl_attr(&g, HAMLYN_A_NAME);
		if (name)
			snprintf(told->name, sizeof(told->name), "%s",
				 (const char *)(name + 1));
		if (told->nic == nic)
			return true;
	}
	return false;
}

/* The first polling thread of a NIC; 0: there is none. */
static inline pid_t nic_engine(uint32_t nic)
{
	char name[32], comm[32], path[64];
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	pid_t found = 0;
	FILE *f;

	snprintf(name, sizeof(name), "hamlyn%u/0\n", nic);
	while (proc && !found && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%.20s/comm", entry->d_name);
		f = fopen(path, "re");
		if (f && fgets(comm, sizeof(comm), f) && !strcmp(comm, name))
			found = atoi(entry->d_name);
		if (f)
			fclose(f);
	}
	if (proc)
		closedir(proc);
	return found;
}

#endif /* NICS_H */
