// SPDX-License-Identifier: GPL-2.0-only
/* Counters at one time, and how fast they grow. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record/output.h"
#include "watch/sample.h"

#define NS_PER_S	1000000000ull

static const uint16_t count_attrs[] = {
	[COUNT_MESSAGES] = HAMLYN_A_MESSAGES,
	[COUNT_PACKETS] = HAMLYN_A_PACKETS,
	[COUNT_BYTES] = HAMLYN_A_BYTES,
	[COUNT_FAILED] = HAMLYN_A_FAILED,
};

static const uint16_t peer_attrs[PEER_COUNTERS] = {
	[PEER_SENT_BYTES] = HAMLYN_A_PEER_SENT_BYTES,
	[PEER_RECEIVED_BYTES] = HAMLYN_A_PEER_RECEIVED_BYTES,
	[PEER_STALLS] = HAMLYN_A_PEER_STALLS,
	[PEER_DROPPED] = HAMLYN_A_PEER_DROPPED,
	[PEER_LOST] = HAMLYN_A_PEER_LOST,
	[PEER_REFUSED] = HAMLYN_A_PEER_REFUSED,
};

static uint64_t number_of(struct nlattr *const *attrs, int attr)
{
	uint64_t number = 0;

	if (attrs[attr])
		attr_number(attrs[attr], &number);
	return number;
}

static uint32_t u32_of(struct nlattr *const *attrs, int attr)
{
	return (uint32_t)number_of(attrs, attr);
}

static void take_counts(struct nlattr *const *attrs, uint64_t *count)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(count_attrs); i++)
		count[i] = number_of(attrs, count_attrs[i]);
}

static uint64_t sum_rejects(struct nlattr *nest)
{
	struct nlattr *attr;
	uint64_t number, sum = 0;
	int left;

	if (nest)
		nla_for_each_nested(attr, nest, left)
			if (attr_number(attr, &number))
				sum += number;
	return sum;
}

/* ---- what the kernel lists ---------------------------------------------- */

typedef void (*take_fn)(struct sample *sample, struct nlattr *const *attrs);

static int take_all(struct netlink *nl, struct sample *sample, uint8_t command, take_fn take)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	struct replies replies = { 0 };
	int err = netlink_dump(nl, netlink_message(nl, command), &replies);
	size_t i;

	for (i = 0; !err && i < replies.count; i++)
		if (!netlink_attrs(replies.at[i], attrs))
			take(sample, attrs);
	replies_free(&replies);
	return err;
}

static void take_nic(struct sample *sample, struct nlattr *const *attrs)
{
	struct nic_sample *nic;

	sample->nics = must_alloc(realloc(sample->nics,
					  (sample->nic_count + 1) * sizeof(*sample->nics)));
	nic = &sample->nics[sample->nic_count++];
	*nic = (struct nic_sample){
		.nic = u32_of(attrs, HAMLYN_A_NIC),
		.state = u32_of(attrs, HAMLYN_A_STATE),
		.contexts = u32_of(attrs, HAMLYN_A_CONTEXTS),
		.termini = u32_of(attrs, HAMLYN_A_TERMINI),
	};
}

static void take_stats(struct sample *sample, struct nlattr *const *attrs)
{
	uint32_t nic = u32_of(attrs, HAMLYN_A_NIC);
	struct nic_sample *of;
	size_t i;

	for (i = 0; i < sample->nic_count; i++) {
		of = &sample->nics[i];
		if (of->nic != nic)
			continue;
		of->counted = true;
		take_counts(attrs, of->count);
		of->count[COUNT_REJECTS] = sum_rejects(attrs[HAMLYN_A_REJECTS]);
	}
}

static void take_peer(struct sample *sample, struct nlattr *const *attrs)
{
	struct nlattr *of[HAMLYN_A_PEER_MAX + 1];
	struct peer_sample *peer;
	size_t i;

	if (!attrs[HAMLYN_A_PEER] ||
	    nla_parse_nested(of, HAMLYN_A_PEER_MAX, attrs[HAMLYN_A_PEER], NULL))
		return;
	sample->peers = must_alloc(realloc(sample->peers,
					   (sample->peer_count + 1) * sizeof(*sample->peers)));
	peer = &sample->peers[sample->peer_count++];
	*peer = (struct peer_sample){
		.nic = u32_of(attrs, HAMLYN_A_NIC),
		.host = u32_of(of, HAMLYN_A_PEER_HOST),
		.state = u32_of(of, HAMLYN_A_PEER_STATE),
		.reason = u32_of(of, HAMLYN_A_PEER_REASON),
		.rtt_us = u32_of(of, HAMLYN_A_PEER_RTT_US),
	};
	for (i = 0; i < PEER_COUNTERS; i++)
		peer->count[i] = number_of(of, peer_attrs[i]);
}

static void take_terminus(struct sample *sample, struct nlattr *const *attrs)
{
	size_t n = sample->terminus_count;
	struct terminus_sample *terminus;

	if (!(n & (n - 1)))
		sample->termini = must_alloc(realloc(sample->termini, (n ? 2 * n : 1) *
						     sizeof(*sample->termini)));
	terminus = &sample->termini[sample->terminus_count++];
	*terminus = (struct terminus_sample){
		.nic = u32_of(attrs, HAMLYN_A_NIC),
		.context = u32_of(attrs, HAMLYN_A_CONTEXT),
		.id = u32_of(attrs, HAMLYN_A_ID),
		.priority = u32_of(attrs, HAMLYN_A_PRIORITY),
		.weight = u32_of(attrs, HAMLYN_A_WEIGHT),
		.pending = u32_of(attrs, HAMLYN_A_PENDING),
		.active = attrs[HAMLYN_A_ACTIVE],
		.paused = attrs[HAMLYN_A_PAUSED_MS],
	};
	take_counts(attrs, terminus->count);
}

static int compare_u32(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_peers(const void *a, const void *b)
{
	const struct peer_sample *left = a, *right = b;
	int order = compare_u32(left->nic, right->nic);

	return order ? order : compare_u32(left->host, right->host);
}

static int compare_place(const void *a, const void *b)
{
	const struct terminus_sample *left = a, *right = b;
	int order = compare_u32(left->nic, right->nic);

	if (!order)
		order = compare_u32(left->context, right->context);
	return order ? order : compare_u32(left->id, right->id);
}

/* The first of the termini, in order of place, that is not before @key. */
static size_t lower_bound(const struct sample *sample, const struct terminus_sample *key)
{
	size_t low = 0, high = sample->terminus_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (compare_place(&sample->termini[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void take_context(struct sample *sample, struct nlattr *const *attrs)
{
	struct terminus_sample *terminus, key = {
		.nic = u32_of(attrs, HAMLYN_A_NIC),
		.context = u32_of(attrs, HAMLYN_A_CONTEXT),
	};
	const struct nlattr *comm = attrs[HAMLYN_A_COMM];
	size_t i, length = comm ? strnlen(nla_data(comm), (size_t)nla_len(comm)) : 0;

	if (length >= sizeof(key.comm))
		length = sizeof(key.comm) - 1;
	if (length)
		memcpy(key.comm, nla_data(comm), length);
	for (i = lower_bound(sample, &key); i < sample->terminus_count; i++) {
		terminus = &sample->termini[i];
		if (terminus->nic != key.nic || terminus->context != key.context)
			break;
		terminus->owned = true;
		terminus->pid = u32_of(attrs, HAMLYN_A_PID);
		terminus->uid = u32_of(attrs, HAMLYN_A_UID);
		memcpy(terminus->comm, key.comm, sizeof(key.comm));
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* What is for administrators: others can still see what is theirs. */
static int take_if_allowed(struct netlink *nl, struct sample *sample, uint8_t command,
			   take_fn take)
{
	int err = take_all(nl, sample, command, take);

	return err == -EPERM ? 0 : err;
}

int sample_take(struct netlink *nl, struct sample *sample)
{
	int err;

	*sample = (struct sample){ .ns = now_ns() };
	err = take_all(nl, sample, HAMLYN_NL_CMD_NIC_GET, take_nic);
	if (!err)
		err = take_if_allowed(nl, sample, HAMLYN_NL_CMD_STATS_GET, take_stats);
	if (!err)
		err = take_if_allowed(nl, sample, HAMLYN_NL_CMD_PEER_GET, take_peer);
	if (!err && sample->peer_count)
		qsort(sample->peers, sample->peer_count, sizeof(*sample->peers), compare_peers);
	if (!err)
		err = take_all(nl, sample, HAMLYN_NL_CMD_TERMINUS_GET, take_terminus);
	if (!err && sample->terminus_count)
		qsort(sample->termini, sample->terminus_count, sizeof(*sample->termini),
		      compare_place);
	if (!err)
		err = take_all(nl, sample, HAMLYN_NL_CMD_CONTEXT_GET, take_context);
	if (err)
		sample_free(sample);
	return err;
}

/* ---- rates -------------------------------------------------------------- */

/* A counter that is less than before is another one, of a new object in the same place. */
static void set_rates(uint64_t *rate, const uint64_t *now, const uint64_t *before, size_t count,
		      uint64_t ns)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (now[i] < before[i])
			return;
	for (i = 0; i < count; i++) {
		double r = (double)(now[i] - before[i]) * NS_PER_S / (double)ns + 0.5;

		/* A double beyond 64 bits has no value as an integer. */
		rate[i] = r < (double)UINT64_MAX ? (uint64_t)r : UINT64_MAX;
	}
}

/* Both are in order. */
static void peer_rates(struct sample *sample, const struct sample *before)
{
	size_t i, j = 0;

	for (i = 0; i < sample->peer_count; i++) {
		struct peer_sample *peer = &sample->peers[i];

		while (j < before->peer_count && compare_peers(&before->peers[j], peer) < 0)
			j++;
		if (j < before->peer_count && !compare_peers(&before->peers[j], peer))
			set_rates(peer->rate, peer->count, before->peers[j].count, PEER_COUNTERS,
				  sample->since_ns);
	}
}

void sample_rates(struct sample *sample, const struct sample *before)
{
	uint64_t ns = sample->ns - before->ns;
	struct terminus_sample *terminus;
	size_t i, j;

	if (!before->ns || !ns)
		return;
	sample->since_ns = ns;
	for (i = 0; i < sample->nic_count; i++)
		for (j = 0; j < before->nic_count; j++)
			if (sample->nics[i].nic == before->nics[j].nic && before->nics[j].counted)
				set_rates(sample->nics[i].rate, sample->nics[i].count,
					  before->nics[j].count, COUNTERS, ns);
	peer_rates(sample, before);
	for (i = 0; i < sample->terminus_count; i++) {
		terminus = &sample->termini[i];
		j = lower_bound(before, terminus);
		if (j < before->terminus_count && !compare_place(terminus, &before->termini[j]))
			set_rates(terminus->rate, terminus->count, before->termini[j].count,
				  COUNTERS, ns);
	}
}

static enum counter sort_by;

static uint64_t sort_key(const struct terminus_sample *terminus)
{
	return sort_by == COUNTERS ? terminus->pending : terminus->rate[sort_by];
}

static int compare_busy(const void *a, const void *b)
{
	const struct terminus_sample *left = *(const struct terminus_sample *const *)a;
	const struct terminus_sample *right = *(const struct terminus_sample *const *)b;
	uint64_t l = sort_key(left), r = sort_key(right);

	return l != r ? (l < r ? 1 : -1) : compare_place(left, right);
}

void sample_sort(struct sample *sample, enum counter by)
{
	size_t i, n = sample->terminus_count;

	sort_by = by;
	free(sample->order);
	sample->order = must_alloc(malloc((n + 1) * sizeof(*sample->order)));
	for (i = 0; i < n; i++)
		sample->order[i] = &sample->termini[i];
	qsort(sample->order, n, sizeof(*sample->order), compare_busy);
}

void sample_free(struct sample *sample)
{
	free(sample->nics);
	free(sample->peers);
	free(sample->termini);
	free(sample->order);
	*sample = (struct sample){ 0 };
}
