/* SPDX-License-Identifier: GPL-2.0-only */
/* What the fabric does to packets on purpose. */
#ifndef HML_ADVERSARY_H
#define HML_ADVERSARY_H

#include <linux/types.h>

struct hamlyn_packet;
struct hml_adversary;
struct hml_device;
struct hml_nic;
struct hml_payload;
struct hml_sender;
struct hml_stats;

/**
 * struct hml_adversary_attr - what the fabric does to packets on purpose
 * @seed: seed of its random numbers
 * @drop: packets in a million that are lost
 * @duplicate: that arrive twice
 * @corrupt: that arrive changed
 * @reorder: that are overtaken by others
 * @delay_us: by which every packet is late
 */
struct hml_adversary_attr {
	u64 seed;
	u32 drop;
	u32 duplicate;
	u32 corrupt;
	u32 reorder;
	u32 delay_us;
};

void hml_adversary_xmit(struct hml_adversary *a, struct hml_nic *to,
			const struct hamlyn_packet *h,
			const struct hml_payload *payload,
			struct hml_sender *sender);
void hml_adversary_stop(struct hml_device *d);
void hml_adversary_add_stats(struct hml_device *d, struct hml_stats *sum);

int hml_adversary_set(struct hml_device *d,
		      const struct hml_adversary_attr *attr);
void hml_adversary_get(struct hml_device *d, struct hml_adversary_attr *attr);

#endif /* HML_ADVERSARY_H */
