/* SPDX-License-Identifier: GPL-2.0-only */
/* Where engines run. */
#ifndef HML_PLACEMENT_H
#define HML_PLACEMENT_H

#include <linux/cpumask.h>
#include <linux/types.h>

/**
 * struct hml_place - where an engine runs
 * @cpus: processors, or NULL: any
 * @node: their node, or NUMA_NO_NODE
 */
struct hml_place {
	const struct cpumask *cpus;
	int node;
};

int hml_placement_init(const char *list);
struct hml_place hml_placement_next(u32 number, u32 count);

#endif /* HML_PLACEMENT_H */
