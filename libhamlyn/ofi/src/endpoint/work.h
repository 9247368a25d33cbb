/* SPDX-License-Identifier: MIT */
/*
 * Operations under way: our own, until the peer says that they are done, and the peer's, while
 * pieces of them come or go. Each has an id, which a peer cannot make mean another one: it is
 * looked up with what it has to be.
 */
#ifndef HAMLYN_OFI_WORK_H
#define HAMLYN_OFI_WORK_H

#include "base/span.h"

struct hf_ep;

enum hf_work_kind {
	HF_WORK_SEND,		/* ours */
	HF_WORK_WRITE,
	HF_WORK_READ,
	HF_WORK_ATOMIC,
	HF_WORK_FETCH,
	HF_WORK_IN_RECV,	/* the peer's: into a buffer that was posted */
	HF_WORK_IN_WRITE,	/* into a region */
	HF_WORK_IN_READ,	/* out of a region */
	HF_WORK_IN_FETCH,	/* out of @context, which is freed: what a region had */
};

struct hf_work {
	struct hf_work *next;		/* free, or with pieces to send */
	uint32_t id;
	enum hf_work_kind kind;
	bool used;
	bool streaming;
	bool report;			/* a success, too: room is set aside for that */
	uint8_t wire_flags;
	uint32_t peer_id;		/* where pieces go, or whom to tell */
	struct hf_span span;
	uint64_t length;		/* of what comes or goes */
	uint64_t moved;
	uint64_t whole;			/* IN_RECV: what was sent, which may be longer */
	uint64_t key;			/* IN_WRITE, IN_READ */
	uint64_t address;
	uint64_t data;
	uint64_t tag;			/* IN_RECV */
	void *context;
};

#define HF_WORKS_CHUNK	64
#define HF_WORKS_MAX	16384

struct hf_works {
	struct hf_work **chunks;
	uint32_t count;
	uint32_t ours;			/* of our own kinds */
	struct hf_work *spare;
};

struct hf_work *hf_work_new(struct hf_works *works, enum hf_work_kind kind);
struct hf_work *hf_work_find(struct hf_works *works, uint32_t id);
void hf_work_end(struct hf_works *works, struct hf_work *work);
struct hf_work *hf_work_next(struct hf_works *works, uint32_t *at);
void hf_works_free(struct hf_works *works);

static inline bool hf_work_is_ours(enum hf_work_kind kind)
{
	return kind <= HF_WORK_FETCH;
}

#endif
