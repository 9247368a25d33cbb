/* SPDX-License-Identifier: GPL-2.0-only */
/* What the fabric does to packets on purpose. */
#ifndef HML_ADVERSARY_H
#define HML_ADVERSARY_H

#include <linux/errno.h>
#include <linux/kconfig.h>
#include <linux/types.h>

struct hml_device;
struct hml_stats;

/**
 * struct hml_adversary_attr - what the fabric does to packets on purpose
 * @seed: seed of its random numbers
 * @drop: packets in a million that are lost
 * @duplicate: that arrive twice
 * @corrupt: that arrive changed
 * @reorder: that are overtaken by others
 * @delay_us: by which every packet is late
 * @stall: packets to other hosts in a million that are not taken, nor any after them for
 *	a while
 */
struct hml_adversary_attr {
	u64 seed;
	u32 drop;
	u32 duplicate;
	u32 corrupt;
	u32 reorder;
	u32 delay_us;
	u32 stall;
};

#if IS_ENABLED(CONFIG_HAMLYN_ADVERSARY)
void hml_adversary_stop(struct hml_device *d);
void hml_adversary_add_stats(struct hml_device *d, struct hml_stats *sum);

int hml_adversary_set(struct hml_device *d,
		      const struct hml_adversary_attr *attr);
void hml_adversary_get(struct hml_device *d, struct hml_adversary_attr *attr);
#else
static inline void hml_adversary_stop(struct hml_device *d)
{
}

static inline void hml_adversary_add_stats(struct hml_device *d, struct hml_stats *sum)
{
}

static inline int hml_adversary_set(struct hml_device *d,
				    const struct hml_adversary_attr *attr)
{
	return attr->drop || attr->duplicate || attr->corrupt || attr->reorder ||
	       attr->delay_us || attr->stall ? -EOPNOTSUPP : 0;
}

static inline void hml_adversary_get(struct hml_device *d, struct hml_adversary_attr *attr)
{
	*attr = (struct hml_adversary_attr) {};
}
#endif

#endif /* HML_ADVERSARY_H */
