/* SPDX-License-Identifier: GPL-2.0-only */
/* What top looks at: counters of NICs, peers and termini at one time, and how fast they grow. */
#ifndef HAMLYNCTL_SAMPLE_H
#define HAMLYNCTL_SAMPLE_H

#include "record/netlink.h"

enum counter {
	COUNT_MESSAGES,
	COUNT_PACKETS,
	COUNT_BYTES,
	COUNT_FAILED,
	COUNT_REJECTS,		/* of NICs only */
	COUNTERS
};

/* Anybody may see his own; counters of NICs are for administrators. */
struct nic_sample {
	uint32_t nic, state, contexts, termini;
	bool counted;			/* there are counters */
	uint64_t count[COUNTERS];
	uint64_t rate[COUNTERS];	/* a second */
};

struct terminus_sample {
	uint32_t nic, context, id;
	uint32_t priority, weight, pending;
	bool active, paused;
	uint32_t pid, uid;
	bool owned;			/* pid, uid and comm are known */
	char comm[64];
	uint64_t count[COUNTERS];
	uint64_t rate[COUNTERS];
};

enum peer_counter {
	PEER_SENT_BYTES,
	PEER_RECEIVED_BYTES,
	PEER_STALLS,
	PEER_DROPPED,		/* told on the host itself only */
	PEER_LOST,
	PEER_REFUSED,
	PEER_COUNTERS
};

/* Peers are for administrators. */
struct peer_sample {
	uint32_t nic, host, state, reason, rtt_us;
	uint64_t count[PEER_COUNTERS];
	uint64_t rate[PEER_COUNTERS];	/* a second */
};

struct sample {
	uint64_t ns;			/* CLOCK_MONOTONIC */
	uint64_t since_ns;		/* time that the rates are of; 0: none yet */
	struct nic_sample *nics;
	struct terminus_sample *termini;		/* in order of nic, context, id */
	const struct terminus_sample **order;		/* of sample_sort() */
	struct peer_sample *peers;			/* in order of nic and host */
	size_t nic_count, terminus_count, peer_count;
};

int sample_take(struct netlink *nl, struct sample *sample);	/* 0 or -errno */
/* Rates since @before; what was not there then has none. */
void sample_rates(struct sample *sample, const struct sample *before);
/* Largest first: by a rate, or with COUNTERS by what is pending. */
void sample_sort(struct sample *sample, enum counter by);
void sample_free(struct sample *sample);

#endif /* HAMLYNCTL_SAMPLE_H */
