/* SPDX-License-Identifier: GPL-2.0-only */
/* A manager that gets no more memory to send from: all tags of its terminus are in use. */
#ifndef USED_TAGS_H
#define USED_TAGS_H

#include <hamlyn/manager.h>

static inline const char *use_up_tags(struct h_manager *m)
{
	static char own[HAMLYN_MAX_TAGS + 1][4096] __attribute__((aligned(4096)));
	int i, err = 0;

	for (i = 0; i <= HAMLYN_MAX_TAGS && !err; i++)
		err = h_manager_register(m, own[i], sizeof(own[i]));
	return err == -ENOSPC ? NULL : "tags cannot be used up";
}

#endif /* USED_TAGS_H */
