/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A manager that gets no more memory to send from: all tags of its terminus are in use,
 * also those that h_manager_register() leaves to the library.
 */
#ifndef USED_TAGS_H
#define USED_TAGS_H

#include "manager/manager.h"

/* One area, by very many names. The manager's end takes it back. */
static inline const char *use_up_tags(struct h_manager *m)
{
	static char own[4096] __attribute__((aligned(4096)));
	struct h_area *area;
	int tag;

	if (h_area_add(m->dev, own, sizeof(own), HAMLYN_AREA_READONLY, &area))
		return "there is no area";
	while ((tag = h__terminus_free_tag(m->terminus)) >= 0)
		if (h_terminus_bind(m->terminus, (uint32_t)tag, area, 0, 0))
			return "tags cannot be used up";
	return NULL;
}

#endif /* USED_TAGS_H */
