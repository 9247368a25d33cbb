/* SPDX-License-Identifier: GPL-2.0-only */
/* Maps of users, in words as 1000:2000,3000-3999:5000. */
#ifndef HAMLYNCTL_USERS_H
#define HAMLYNCTL_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/hamlyn_netlink.h>

/* As HAMLYN_A_PEER_USER_MAP has it. */
struct user_range {
	uint32_t from, to, count;
};

struct user_map {
	struct user_range at[HAMLYN_PEER_USER_RANGES];
	size_t count;
};

/* False: @text is none, or has too many. Whether ranges overlap is the kernel's to say. */
bool user_map_parse(const char *text, struct user_map *map);
/* The words of @count ranges; to be freed. */
char *user_map_format(const void *ranges, size_t count);

#endif /* HAMLYNCTL_USERS_H */
