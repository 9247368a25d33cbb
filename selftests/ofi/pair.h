/* SPDX-License-Identifier: GPL-2.0-only */
/* Two ends that talk to each other, made with libfabric's public calls alone. */
#ifndef HAMLYN_TEST_OFI_PAIR_H
#define HAMLYN_TEST_OFI_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/* What has to happen does so in this time, times HAMLYN_TEST_SCALE; in milliseconds. */
#define PATIENCE_MS	60000

/* What a test wants otherwise; 0: as usual. */
struct options {
	size_t cq_size;
	enum fi_wait_obj cq_wait;
	enum fi_cq_wait_cond cq_cond;
	enum fi_threading threading;
	enum fi_progress progress;
	int mr_mode;			/* -1: none */
	bool selective;
	bool no_cma;
	bool rdm;			/* FI_EP_RDM, of which pair_open() connects nothing */
	enum fi_av_type av;
	uint64_t caps;			/* besides those that all of them have */
};

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *tx;
	struct fid_cq *rx;
	struct fid_cntr *cntr[6];	/* send, recv, read, write, remote read, remote write */
	struct fid_ep *ep;
	struct fid_av *av;		/* of FI_EP_RDM */
	fi_addr_t peer;			/* the other one, by pair_open() */
};

struct pair {
	struct end a;			/* it has connected */
	struct end b;			/* to this one */
	struct fid_pep *pep;
};

int64_t now_ms(void);
int64_t patience_ms(void);

struct fi_info *pair_info(const struct options *options);
int end_open(struct end *end, struct fi_info *info, const struct options *options);
int end_endpoint(struct end *end, struct fi_info *info, const struct options *options);
void end_close(struct end *end);

/* The next event, while both ends make progress; its type, or a negative error. */
int next_event(struct end *end, struct end *other, void *entry, size_t size, ssize_t *length);
int listen_at(struct end *end, struct fid_pep **pep, void *address, size_t *length);
int pair_open(struct pair *pair, const struct options *options);
void pair_close(struct pair *pair);
/* @of becomes known to @end. */
fi_addr_t learn(struct end *end, const struct end *of);
void pair_progress(struct pair *pair);

/* A call that sends, again until it is taken. */
#define TAKEN(pair, call)						\
	({								\
		int64_t until_ = now_ms() + patience_ms();		\
		ssize_t err_;						\
									\
		while ((err_ = (call)) == -FI_EAGAIN && now_ms() < until_) \
			pair_progress(pair);				\
		err_;							\
	})

/* The next completion of a queue; both ends make progress. 1, -FI_EAVAIL, -FI_ETIMEDOUT. */
ssize_t next_entry(struct fid_cq *cq, struct end *other, struct fi_cq_tagged_entry *entry);
ssize_t next_error(struct fid_cq *cq, struct end *other, struct fi_cq_err_entry *error);
/* Is there none, after some rounds of progress? */
bool none(struct fid_cq *cq, struct end *other);
/* Does the counter get there, and no further for now, while both ends make progress? */
bool counts(struct fid_cntr *cntr, struct end *other, uint64_t to);

void fill(void *data, size_t length, unsigned int seed);
bool filled(const void *data, size_t length, unsigned int seed);

#endif
