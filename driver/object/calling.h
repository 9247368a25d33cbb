/* SPDX-License-Identifier: GPL-2.0-only */
/* A call to a name, for who makes, keeps and answers it. */
#ifndef HML_CALLING_H
#define HML_CALLING_H

#include "object/name.h"

struct hml_tally;

/* What the other host is to be told of a call, or knows. */
enum {
	CALL_SAY,	/* ours: CALL is to be sent */
	CALL_CANCEL,	/* ours, and given up: CANCEL is to be sent */
	CALL_ANSWER,	/* theirs: ANSWER is to be sent */
	CALL_SENT,	/* nothing */
};

/**
 * struct hml_call - a call
 * @node: in a tree of @side
 * @out: in side.out, or empty
 * @at: in name.calls
 * @side: the two hosts, or NULL: it does not leave this kernel; constant once it was made
 * @name: where it waits to be answered, or NULL
 * @line: who waits for the answer, or NULL: another host's, or given up
 * @tally: of @name: of its host, of its share
 * @spare: struct hml_tally for these, and what is left of them
 * @device: the NIC that it is paid at, or NULL: another host's
 * @payer: who pays for it, until it is freed
 * @share: whose calls count as one user's: of this host's as in struct hml_quota
 * @number: at @name
 * @id: that the caller's host has given it
 * @due: what is to be told
 * @status: HML_WIRE_ANSWERED ...
 * @answered: all that is said is the answer
 * @host: whose kernel knows who says what follows; HAMLYN_NONE: this one
 * @user: who, as that host claims
 * @uid: who, as this host takes it
 * @name_length: bytes of @called
 * @length: bytes of @said
 * @called: who is called
 * @said: what is said
 *
 * Of the one who waits: @line is its. Of another host's side: the side's. Ours that was given
 * up: the side's, until CANCEL is sent, and still paid by its user. All under hml_name_lock.
 */
struct hml_call {
	struct rb_node node;
	struct list_head out;
	struct rb_node at;
	struct hml_call_side *side;
	struct hml_name *name;
	struct hml_line *line;
	struct hml_tally *tally[2];
	struct hml_tally *spare;
	struct hml_device *device;
	struct hml_payer payer;
	u64 share;
	u64 number;
	u32 id;
	u32 due;
	u32 status;
	bool answered;
	u32 host;
	u32 user;
	kuid_t uid;
	u32 name_length;
	u32 length;
	char called[HAMLYN_MAX_NAME];
	u8 said[HAMLYN_MAX_CALL];
};

/**
 * struct hml_tally - how many calls of somebody wait at a name
 * @node: in name.tallies
 * @next: in call.spare: it is in no tree
 * @host: whose
 * @of: TALLY_HOST or TALLY_SHARE
 * @share: of that host, if it is TALLY_SHARE
 * @count: how many
 */
struct hml_tally {
	union {
		struct rb_node node;
		struct hml_tally *next;
	};
	u32 host;
	u32 of;
	u64 share;
	u32 count;
};

enum { TALLY_HOST, TALLY_SHARE };

/* name.c */
bool hml_name_attach(struct hml_name *n, struct hml_call *call);
void hml_name_detach(struct hml_call *call);

/* call.c */
struct hml_call *hml_call_alloc(gfp_t flags, bool tallied);
void hml_call_free(struct hml_call *call);
void hml_call_answer(struct hml_call *call, u32 status, u32 user, const void *said, u32 length);
ssize_t hml_call_tell(const struct hml_call *call, char __user *to, size_t room);

/* calls.c */
int hml_calls_dial(struct hml_call_side *side, struct hml_call *call, unsigned long had);
bool hml_calls_hang_up(struct hml_call *call);
void hml_calls_tell_later(struct hml_call *call, u32 due);

#endif /* HML_CALLING_H */
