/* SPDX-License-Identifier: GPL-2.0-only */
/* What listeners are told, and readers of lists. */
#ifndef HML_EVENT_H
#define HML_EVENT_H

#include <linux/atomic.h>
#include <linux/types.h>

struct hml_context;
struct hml_device;
struct hml_limits;
struct hml_term;
struct net;

extern atomic_t hml_generation;

/*
 * After an object appeared in a table or went from one: dumps in progress tell
 * that they may have missed it, or told it twice.
 */
static inline void hml_changed(void)
{
	atomic_inc(&hml_generation);
}

int hml_netlink_init(void);
void hml_netlink_exit(void);
bool hml_event_again(u64 *told);
void hml_event_nic(struct hml_device *d, u32 event);
void hml_event_nic_in(struct hml_device *d, struct net *net, u32 event);
void hml_event_context(struct hml_context *c, u32 event);
void hml_event_paused(struct hml_term *t);
void hml_event_peer(struct hml_device *d, u32 host, u32 event, u32 reason);
void hml_event_quota(struct hml_context *c, u32 attr,
		     const struct hml_limits *used);

#endif /* HML_EVENT_H */
