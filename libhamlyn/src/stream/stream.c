// SPDX-License-Identifier: MIT
/* What both ends of a stream need. */
#include "stream/stream.h"

int h__ticket_adopt(struct h_manager *m, int fd, struct h_ticket *t)
{
	struct h_ticket k;
	int err;

	err = h_terminus_import(m->terminus, fd, &k);
	if (err)
		return err;
	if (k.host != t->host || k.slot != t->slot || k.base || t->base) {
		h_terminus_drop(m->terminus, &k);
		return -EPROTO;
	}
	t->flags = k.flags;
	return 0;
}

void h__ticket_drop(struct h_manager *m, const struct h_ticket *t)
{
	if (t->flags)
		h_terminus_drop(m->terminus, t);
}
