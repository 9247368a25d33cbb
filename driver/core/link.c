// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Up, down, and the watchdog: does a NIC take part? (H 2.8) */
#include "link.h"

#define NS_PER_MS	1000000ull

bool hml_link_fed(const struct hml_nic *nic)
{
	const struct hml_link *l = nic->link;
	u32 watchdog_ms = smp_load_acquire(&l->watchdog_ms);	/* B11: before "fed" */
	u64 now;

	if (!watchdog_ms)
		return true;
	now = hml_port_now_ns(&nic->port);
	/* Signed: it may have been fed since we read the clock. */
	return (s64)(now - READ_ONCE(l->fed)) <= (s64)(watchdog_ms * NS_PER_MS);
}

u32 hml_link_state(const struct hml_nic *nic)
{
	if (READ_ONCE(nic->link->down))
		return HAMLYN_NIC_DOWN;
	return hml_link_fed(nic) ? HAMLYN_NIC_UP : HAMLYN_NIC_UNFED;
}

/* A task preempted after it read the clock must not move @fed back past a later feeding. */
static void link_feed(struct hml_nic *nic)
{
	u64 now = hml_port_now_ns(&nic->port);
	u64 fed = READ_ONCE(nic->link->fed);
	u64 was;

	while ((s64)(now - fed) > 0) {
		was = hml_atomic_cmpxchg64(&nic->link->fed, fed, now);
		if (was == fed)
			return;
		fed = was;
	}
}

void hml_link_set(struct hml_nic *nic, const struct hamlyn_nic_set *set)
{
	struct hml_link *l = nic->link;

	/* Feed first: a newly set watchdog must not expire at once. */
	if (set->flags & (HAMLYN_NIC_FEED | HAMLYN_NIC_SET_WATCHDOG))
		link_feed(nic);
	if (set->flags & HAMLYN_NIC_SET_WATCHDOG)
		smp_store_release(&l->watchdog_ms, set->watchdog_ms); /* B11: after the feeding */
	if (set->flags & HAMLYN_NIC_SET_STATE)
		WRITE_ONCE(l->down, set->state == HAMLYN_NIC_DOWN);
}
