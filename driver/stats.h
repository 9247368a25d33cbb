/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters, and the sums of them. */
#ifndef HML_STATS_H
#define HML_STATS_H

#include <linux/types.h>

#include "core/nic.h"

struct hamlyn_stats;
struct hml_context;
struct hml_device;
struct hml_term;

/**
 * struct hml_walk - a sum of the counters of all termini in the making
 * @number: of the walk; the one that has ended last, or, while @going, the next
 * @going: it has begun
 * @next: the terminus to go on with, or NULL
 * @sum: so far
 * @whole: that of the last one that has ended
 *
 * Whoever needs a sum does the next part of the walk, whoever began it: so nobody waits
 * for a task that has lost its processor.
 */
struct hml_walk {
	u64 number;
	bool going;
	struct hml_term *next;
	struct hml_stats sum;
	struct hml_stats whole;
};

void hml_stats_add(struct hml_stats *sum, const struct hml_stats *s);
void hml_stats_sum(struct hml_device *d, struct hml_stats *sum);
void hml_stats_begin(struct hml_term *t);
void hml_stats_retire(struct hml_term *t);
int hml_stats_get(struct hml_context *c, struct hamlyn_stats *arg);

#endif /* HML_STATS_H */
