// SPDX-License-Identifier: GPL-2.0-only
/* Where engines run: on processors that are named, or else on all nodes. */
#include <linux/cpumask.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/topology.h>

#include "hml.h"

static struct cpumask cpus;		/* empty: any; constant */
static atomic_t next_cpu = ATOMIC_INIT(-1);	/* of all NICs' engines */

/**
 * hml_placement_init() - on which processors may engines run?
 * @list: a list as "2-3,8"; empty: any
 *
 * Return: 0, or -EINVAL if it is no list or none of them is there.
 */
int hml_placement_init(const char *list)
{
	if (!*list)
		return 0;
	if (cpulist_parse(list, &cpus) ||
	    !cpumask_intersects(&cpus, cpu_possible_mask))
		return -EINVAL;
	cpumask_and(&cpus, &cpus, cpu_possible_mask);
	return 0;
}

/* The @n-th of them, round and round. */
static int nth_cpu(u32 n)
{
	int cpu;

	n %= cpumask_weight(&cpus);
	for_each_cpu(cpu, &cpus)
		if (!n--)
			break;
	return cpu;
}

/* The @n-th node that has processors, round and round. */
static int nth_node(u32 n)
{
	int node;

	n %= num_node_state(N_CPU);
	for_each_node_state(node, N_CPU)
		if (!n--)
			return node;
	/* Its last processor has gone meanwhile. */
	return first_node(node_states[N_CPU]);
}

/**
 * hml_placement_next() - where is the next engine to run?
 * @number: its number in its NIC
 * @count: engines of its NIC
 *
 * One for each of the processors in turn, whichever NIC it is for. Where none
 * were named a NIC's only engine runs anywhere, and several are spread over
 * the nodes.
 *
 * Return: the place.
 */
struct hml_place hml_placement_next(u32 number, u32 count)
{
	struct hml_place place = { .node = NUMA_NO_NODE };
	int cpu;

	if (!cpumask_empty(&cpus)) {
		cpu = nth_cpu(atomic_inc_return(&next_cpu));
		place.node = cpu_to_node(cpu);
		place.cpus = cpumask_of(cpu);
	} else if (count > 1 && num_node_state(N_CPU) > 1) {
		place.node = nth_node(number);
		place.cpus = cpumask_of_node(place.node);
	}
	return place;
}
