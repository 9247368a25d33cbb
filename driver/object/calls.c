// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls between hosts. As with watches (far.c), what the other host is to be told waits in a list
 * of what exists anyway: a call of ours until it is closed, one of theirs until its answer has
 * been sent. So a host that takes nothing costs no memory beyond the calls that it may have.
 *
 * All frames of a connection are in order. So a side that counts a call of its own from CALL to
 * ANSWER, or to CANCEL, never has more than the other one has counted, and one more than
 * HML_CALLS_MOST is nobody's honest mistake.
 */
#include <linux/slab.h>

#include "hml.h"
#include "fabric/peer.h"
#include "object/calling.h"
#include "trace.h"

#define ID_TRIES	16

void hml_calls_init(struct hml_call_side *side, struct hml_device *device, u32 host,
		    struct work_struct *io)
{
	side->ours = RB_ROOT;
	side->theirs = RB_ROOT;
	INIT_LIST_HEAD(&side->out);
	side->io = io;
	side->device = device;
	side->host = host;
}

static struct rb_node **place(struct rb_root *root, u32 id, struct rb_node **parent)
{
	struct rb_node **link = &root->rb_node;

	lockdep_assert_held(&hml_name_lock);
	*parent = NULL;
	while (*link) {
		u32 other = rb_entry(*link, struct hml_call, node)->id;

		if (id == other)
			break;
		*parent = *link;
		link = id < other ? &(*link)->rb_left : &(*link)->rb_right;
	}
	return link;
}

static struct hml_call *find(struct rb_root *root, u32 id)
{
	struct rb_node *parent, *node = *place(root, id, &parent);

	return rb_entry_safe(node, struct hml_call, node);
}

/* Return: false if its id is there already. */
static bool insert(struct rb_root *root, struct hml_call *call)
{
	struct rb_node *parent, **link = place(root, call->id, &parent);

	if (*link)
		return false;
	rb_link_node(&call->node, parent, link);
	rb_insert_color(&call->node, root);
	return true;
}

void hml_calls_tell_later(struct hml_call *call, u32 due)
{
	struct hml_call_side *side = call->side;

	lockdep_assert_held(&hml_name_lock);
	call->due = due;
	if (list_empty(&call->out))
		list_add_tail(&call->out, &side->out);
	queue_work(hml_wire_workers, side->io);
}

static void take_out(struct hml_call *call, struct rb_root *root, u32 *count)
{
	lockdep_assert_held(&hml_name_lock);
	list_del_init(&call->out);
	rb_erase(&call->node, root);
	RB_CLEAR_NODE(&call->node);
	(*count)--;
}

/* ---- ours ---- */

/* After 2^32 calls ids come again, and some may be in use still. */
static bool enlist_ours(struct hml_call_side *side, struct hml_call *call)
{
	u32 n;

	for (n = 0; n < ID_TRIES; n++) {
		call->id = side->next_id++;
		if (insert(&side->ours, call)) {
			side->ours_count++;
			return true;
		}
	}
	return false;
}

/* The user that has most leaves half of what there is to others, and so does the next one. */
static bool may_have(const struct hml_call_side *side, unsigned long had)
{
	u32 left = HML_CALLS_MOST - side->ours_count;

	return left && (had < HML_CALLS_LEAST || had < left / 2);
}

/**
 * hml_calls_dial() - call a name of another host
 * @side: the two hosts
 * @call: the call
 * @had: calls that its user has
 *
 * Return: 0, -EHOSTDOWN, -EPROTONOSUPPORT, or -ENOSPC.
 */
int hml_calls_dial(struct hml_call_side *side, struct hml_call *call, unsigned long had)
{
	lockdep_assert_held(&hml_name_lock);
	if (!side->up)
		return -EHOSTDOWN;
	if (!side->able)
		return -EPROTONOSUPPORT;
	if (!may_have(side, had) || !enlist_ours(side, call))
		return -ENOSPC;
	call->side = side;
	hml_calls_tell_later(call, CALL_SAY);
	return 0;
}

/* Ours is given up, and not answered. Return: true if the caller is to free it. */
bool hml_calls_hang_up(struct hml_call *call)
{
	struct hml_call_side *side = call->side;

	if (call->due == CALL_SAY) {
		take_out(call, &side->ours, &side->ours_count);
		return true;
	}
	hml_calls_tell_later(call, CALL_CANCEL);
	return false;
}

/* Out of the tree. Return: what is to be freed, or NULL: whoever waits does so. */
static struct hml_call *finish(struct hml_call *call)
{
	take_out(call, &call->side->ours, &call->side->ours_count);
	call->answered = true;
	if (!call->line)
		return call;
	hml_line_wake(call->line);
	return NULL;
}

/**
 * hml_calls_answer() - the other host answers
 * @side: the two hosts
 * @said: what it says
 * @uid: who, as it is taken here
 *
 * The call may have been given up: then CANCEL is on its way, or in the list. What was not said
 * yet cannot be answered.
 */
void hml_calls_answer(struct hml_call_side *side, const struct hml_wire_answer *said, kuid_t uid)
{
	struct hml_call *call, *gone = NULL;

	hml_lock(&hml_name_lock);
	call = find(&side->ours, said->id);
	if (call && call->due != CALL_SAY) {
		call->status = said->status;
		call->host = side->host;
		call->user = said->user;
		call->uid = uid;
		call->length = said->length;
		memcpy(call->said, said->body, said->length);
		gone = finish(call);
	}
	hml_unlock(&hml_name_lock);
	hml_call_free(gone);
}

/* ---- theirs ---- */

static struct hml_call *theirs_new(struct hml_call_side *side, const struct hml_wire_call *said,
				   kuid_t uid)
{
	struct hml_call *call = hml_call_alloc(GFP_KERNEL | __GFP_NOWARN, true);

	if (!call)
		return NULL;
	call->side = side;
	call->id = said->id;
	call->host = side->host;
	call->user = said->user;
	call->share = said->share;
	call->uid = uid;
	call->length = said->length;
	memcpy(call->said, said->body, said->length);
	return call;
}

static u32 attach(struct hml_device *d, struct hml_call *call, const struct hml_wire_call *said)
{
	struct hml_name *n = NULL;

	if (hml_link_up(&d->nic))
		n = hml_name_find(d, said->name, said->name_length);
	if (!n)
		return HML_WIRE_NO_NAME;
	return hml_name_attach(n, call) ? HML_WIRE_ANSWERED : HML_WIRE_FULL;
}

/**
 * hml_calls_take() - the other host calls
 * @side: the two hosts
 * @said: what it says
 * @uid: who, as it is taken here
 *
 * Return: false if it cannot be kept: the other host would never be answered.
 */
bool hml_calls_take(struct hml_call_side *side, const struct hml_wire_call *said, kuid_t uid)
{
	struct hml_call *call = theirs_new(side, said, uid);
	u32 status = HML_WIRE_ANSWERED;
	bool is_new;

	if (!call)
		return false;
	hml_lock(&hml_name_lock);
	is_new = side->up && side->theirs_count < HML_CALLS_MOST && insert(&side->theirs, call);
	if (is_new) {
		side->theirs_count++;
		status = attach(side->device, call, said);
		if (status)
			hml_call_answer(call, status, 0, NULL, 0);
	}
	hml_unlock(&hml_name_lock);
	if (is_new)
		trace_hamlyn_call_take(side, said, from_kuid_munged(&init_user_ns, uid),
				       status);
	else
		hml_call_free(call);
	return is_new;
}

/* The other host's user has given up. The answer may be on its way. */
void hml_calls_cancel(struct hml_call_side *side, u32 id)
{
	struct hml_call *call;

	hml_lock(&hml_name_lock);
	call = find(&side->theirs, id);
	if (call) {
		hml_name_detach(call);
		take_out(call, &side->theirs, &side->theirs_count);
	}
	hml_unlock(&hml_name_lock);
	hml_call_free(call);
}

/* ---- what is to be told ---- */

static void note_of(const struct hml_call *call, struct hml_call_note *note)
{
	static const u32 types[] = {
		[CALL_SAY] = HML_WIRE_CALL,
		[CALL_CANCEL] = HML_WIRE_CANCEL,
		[CALL_ANSWER] = HML_WIRE_ANSWER,
	};

	note->type = types[call->due];
	note->id = call->id;
	note->status = call->status;
	note->user = call->user;
	note->share = call->share;
	note->name_length = call->name_length;
	note->length = call->length;
	memcpy(note->name, call->called, call->name_length);
	memcpy(note->said, call->said, call->length);
}

/* It has been told. Return: what is to be freed, or NULL. */
static struct hml_call *told(struct hml_call *call)
{
	struct hml_call_side *side = call->side;
	u32 due = call->due;

	call->due = CALL_SENT;
	if (due == CALL_SAY) {
		list_del_init(&call->out);
		return NULL;
	}
	if (due == CALL_CANCEL)
		take_out(call, &side->ours, &side->ours_count);
	else
		take_out(call, &side->theirs, &side->theirs_count);
	return call;
}

/**
 * hml_calls_next() - what is to be told next
 * @side: the two hosts
 * @note: what
 *
 * The caller has room for it.
 *
 * Return: false if there is nothing.
 */
bool hml_calls_next(struct hml_call_side *side, struct hml_call_note *note)
{
	struct hml_call *call, *gone = NULL;

	if (list_empty_careful(&side->out))
		return false;
	hml_lock(&hml_name_lock);
	call = list_first_entry_or_null(&side->out, struct hml_call, out);
	if (call) {
		note_of(call, note);
		gone = told(call);
	}
	hml_unlock(&hml_name_lock);
	hml_call_free(gone);
	return call;
}

/* For hml_outbox_control(). */
u32 hml_calls_pack(struct hml_wire_tx *tx, u8 *to, void *note)
{
	const struct hml_call_note *n = note;
	const struct hml_wire_call call = { n->id, n->user, n->share, n->name_length,
					    n->length, n->name, n->said };
	const struct hml_wire_answer answer = { n->id, n->status, n->user, n->length, n->said };

	switch (n->type) {
	case HML_WIRE_CALL:
		return hml_wire_pack_call(tx, to, &call);
	case HML_WIRE_ANSWER:
		return hml_wire_pack_answer(tx, to, &answer);
	default:
		return hml_wire_pack_cancel(tx, to, n->id);
	}
}

/* ---- a connection ---- */

void hml_calls_up(struct hml_call_side *side, bool able)
{
	hml_lock(&hml_name_lock);
	side->up = true;
	side->able = able;
	hml_unlock(&hml_name_lock);
}

/* Ours that are left are answered: by nobody. */
static bool lose_ours(struct hml_call_side *side)
{
	struct hml_call *gone = NULL;
	struct rb_node *first;

	hml_lock(&hml_name_lock);
	side->up = false;
	first = rb_first(&side->ours);
	if (first) {
		struct hml_call *call = rb_entry(first, struct hml_call, node);

		call->status = HML_WIRE_HUNG_UP;
		call->host = side->host;
		call->uid = INVALID_UID;
		call->user = 0;
		call->length = 0;
		gone = finish(call);
	}
	hml_unlock(&hml_name_lock);
	hml_call_free(gone);
	return first;
}

static bool lose_theirs(struct hml_call_side *side)
{
	struct hml_call *call = NULL;
	struct rb_node *first;

	hml_lock(&hml_name_lock);
	first = rb_first(&side->theirs);
	if (first) {
		call = rb_entry(first, struct hml_call, node);
		hml_name_detach(call);
		take_out(call, &side->theirs, &side->theirs_count);
	}
	hml_unlock(&hml_name_lock);
	hml_call_free(call);
	return first;
}

/* The other host is lost. */
void hml_calls_lost(struct hml_call_side *side)
{
	while (lose_ours(side))
		cond_resched();
	while (lose_theirs(side))
		cond_resched();
}
