/* SPDX-License-Identifier: MIT */
/* Completion queues. */
#ifndef HAMLYN_OFI_CQ_H
#define HAMLYN_OFI_CQ_H

#include <netinet/in.h>

#include <rdma/fi_eq.h>

#include "event/wait.h"

struct hf_cq_error {
	struct hf_cq_error *next;
	uint32_t at;		/* it comes after the entries before this one */
	struct fi_cq_err_entry entry;
	struct sockaddr_in source;	/* FI_EADDRNOTAVAIL: @entry.err_data, if it is one */
};

struct hf_cq {
	struct fid_cq fid;
	struct hf_domain *domain;
	uint32_t words;			/* of what is read for an entry */
	enum fi_wait_obj wait_obj;
	enum fi_cq_wait_cond wait_cond;
	int users;			/* end points */
	struct fi_cq_tagged_entry *entries;
	fi_addr_t *sources;
	uint32_t size;			/* a power of two */
	uint32_t head;
	uint32_t tail;
	uint32_t promised;		/* room set aside for operations under way */
	uint32_t signalled;
	struct hf_wait wait;
	struct hf_cq_error *errors;
	struct hf_cq_error **last_error;
	struct hf_cq_error *told;	/* whose data the application may be looking at */
};

int hf_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
	       void *context);
int hf_cq_calm(struct hf_cq *cq);
/* The rest with the domain locked. */
void hf_cq_add(struct hf_cq *cq, const struct fi_cq_tagged_entry *entry, fi_addr_t source);
void hf_cq_add_error(struct hf_cq *cq, const struct fi_cq_err_entry *entry);
void hf_cq_add_unknown(struct hf_cq *cq, const struct fi_cq_tagged_entry *entry,
		       const struct sockaddr_in *source);

static inline bool hf_cq_is_readable(const struct hf_cq *cq)
{
	return cq->head != cq->tail || cq->errors;
}

/* Is there room for an entry that nobody was promised? */
static inline bool hf_cq_room(const struct hf_cq *cq)
{
	return cq->tail - cq->head + cq->promised < cq->size;
}

/* There is: an entry to fill, which hf_cq_added() adds. */
static inline struct fi_cq_tagged_entry *hf_cq_next(struct hf_cq *cq, fi_addr_t source)
{
	uint32_t at = cq->tail & (cq->size - 1);

	cq->sources[at] = source;
	return &cq->entries[at];
}

static inline void hf_cq_added(struct hf_cq *cq)
{
	cq->tail++;
	if (cq->wait.armed)
		hf_wait_ring(&cq->wait);
}

#endif
