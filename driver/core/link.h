/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Does a NIC take part? Its state and its watchdog (link.c). */
#ifndef HML_CORE_LINK_H
#define HML_CORE_LINK_H

#include "nic.h"

/**
 * hml_link_fed() - is a NIC's watchdog satisfied, if it has one?
 * @nic: the NIC
 *
 * Return: true if it is.
 */
bool hml_link_fed(const struct hml_nic *nic);

/**
 * hml_link_state() - does a NIC take part?
 * @nic: the NIC
 *
 * Return: enum hamlyn_nic_state.
 */
u32 hml_link_state(const struct hml_nic *nic);

/**
 * hml_link_set() - set a NIC up or down, set or feed its watchdog (H 2.8)
 * @nic: the NIC
 * @set: what to change; its values have been checked
 *
 * One caller at a time, except for callers that only feed.
 */
void hml_link_set(struct hml_nic *nic, const struct hamlyn_nic_set *set);

/* Nearly always a single load, from a cache line that is nearly never written. */
static inline bool hml_link_up(const struct hml_nic *nic)
{
	if (likely(!READ_ONCE(nic->link->doubts)))
		return true;
	return hml_link_state(nic) == HAMLYN_NIC_UP;
}

#endif /* HML_CORE_LINK_H */
