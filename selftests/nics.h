/* SPDX-License-Identifier: GPL-2.0-only */
/* NICs that tests make, move and delete by netlink. */
#ifndef NICS_H
#define NICS_H

#include "genl.h"

#include <fcntl.h>
#include <linux/hamlyn_netlink.h>
#include <stdio.h>

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

#endif /* NICS_H */
