// SPDX-License-Identifier: MIT
/* What a manager has done, and what it has. */
#include <string.h>

#include "manager/manager.h"

int h__copy_stats(void *to, size_t size, const void *from, size_t known)
{
	if (!size)
		return -EINVAL;
	memset(to, 0, size);
	memcpy(to, from, size < known ? size : known);
	return 0;
}

int h__manager_stats(struct h_manager *m, struct h_manager_counters *stats, size_t size)
{
	struct h_manager_counters now = { .arrivals = h__read_once(&m->nq->control->consumer) };
	const struct h_receiver *r;

	h__lock(&m->lock);
	for (r = m->receivers; r; r = r->next)
		now.receivers++;
	now.sleeps = m->sleeps;
	now.sleepers = h__read_once(&m->asleep);
	now.receive_bytes = m->receive.total;
	now.send_bytes = m->send.total;
	now.budget = m->budget.most;
	now.budget_taken = m->budget.taken;
	h__unlock(&m->lock);
	return h__copy_stats(stats, size, &now, sizeof(now));
}
