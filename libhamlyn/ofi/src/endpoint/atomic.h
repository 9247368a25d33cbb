/* SPDX-License-Identifier: MIT */
/* Atomic operations: the target carries them out when it makes progress, with its domain locked. */
#ifndef HAMLYN_OFI_ATOMIC_H
#define HAMLYN_OFI_ATOMIC_H

#include <rdma/fi_atomic.h>

#include "endpoint/ep.h"

/* Operands of one operation; as many bytes of what is compared go along. */
#define HF_ATOMIC_BYTES	8192U

enum hf_atomic_kind {
	HF_ATOMIC_BASE,
	HF_ATOMIC_FETCH,
	HF_ATOMIC_COMPARE,
	HF_ATOMIC_KINDS,
};

/* What is to be done, as header.data has it. */
struct hf_atomic {
	uint8_t datatype;
	uint8_t op;
	uint8_t kind;
	uint32_t count;
};

extern struct fi_ops_atomic hf_atomic_ops;

int hf_atomic_query(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		    struct fi_atomic_attr *attr, uint64_t flags);

/* The target's: false if no peer that keeps to the rules says so with @length bytes of operands. */
bool hf_atomic_parse(uint64_t data, uint64_t length, struct hf_atomic *atomic);
size_t hf_atomic_bytes(const struct hf_atomic *atomic);
uint64_t hf_atomic_access(const struct hf_atomic *atomic);
/* @result: what was there before, or NULL. */
void hf_atomic_apply(const struct hf_atomic *atomic, const struct hf_span *to,
		     const unsigned char *operands, unsigned char *result);

#endif
