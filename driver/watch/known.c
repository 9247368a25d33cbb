// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys that were right when a user, or another host, began to watch by them: what is still sent by
 * one is late, and no guess.
 *
 * A tree, not a hash: a user pays for it by its watches, and nobody can choose keys that make a
 * look long. The depth is at most twice the logarithm of all watches that its uid has.
 */
#include <linux/rbtree.h>

#include "hml.h"
#include "locked.h"
#include "watch/watching.h"
#include "fabric/peer.h"

void hml_known_init(struct hml_known *known)
{
	raw_spin_lock_init(&known->lock);
	known->watches = RB_ROOT;
}

static struct hml_known *known_of(const struct hml_watch *w)
{
	return w->nq ? &w->nq->context->user->known : hml_far_known(w);
}

/* Is what is looked for before @w, or after it? 0: it is that. */
static int compare(u32 host, u32 slot, u64 key, const struct hml_watch *w)
{
	if (host != w->host)
		return host < w->host ? -1 : 1;
	if (slot != w->slot)
		return slot < w->slot ? -1 : 1;
	if (key != w->key)
		return key < w->key ? -1 : 1;
	return 0;
}

/* Of those with one key each has a place of its own. */
static void insert_known(struct rb_root *root, struct hml_watch *w)
{
	struct rb_node **link = &root->rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		hml_lock_step();
		link = compare(w->host, w->slot, w->key,
			       rb_entry(parent, struct hml_watch, known)) < 0 ?
		       &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&w->known, parent, link);
	rb_insert_color(&w->known, root);
}

/* For as long as there is the watch, told or not: what is on its way comes later. */
void hml_watch_remember(struct hml_watch *w, u64 key)
{
	struct hml_known *known = known_of(w);

	w->key = key;
	hml_lock(&known->lock);
	insert_known(&known->watches, w);
	hml_unlock(&known->lock);
}

void hml_watch_forget(struct hml_watch *w)
{
	struct hml_known *known = known_of(w);

	hml_lock(&known->lock);
	if (!RB_EMPTY_NODE(&w->known))
		rb_erase(&w->known, &known->watches);
	hml_unlock(&known->lock);
}

bool hml_watch_knew(struct hml_known *known, u32 host, u32 slot, u64 key)
{
	struct rb_node *n;
	int order;

	hml_lock(&known->lock);
	n = known->watches.rb_node;
	while (n) {
		hml_lock_step();
		order = compare(host, slot, key, rb_entry(n, struct hml_watch, known));
		if (!order)
			break;
		n = order < 0 ? n->rb_left : n->rb_right;
	}
	hml_unlock(&known->lock);
	return n;
}

/**
 * hml_port_knew() - is a wrong key late, and no guess?
 * @nic: the slot's NIC
 * @h: the packet
 * @sender: who sent it, and no adversary
 *
 * Its user has it from the slot's owner if it was right when the user began to watch by it.
 *
 * Return: true if so.
 */
bool hml_port_knew(const struct hml_nic *nic, const struct hamlyn_packet *h,
		   const struct hml_sender *sender)
{
	struct hml_known *known;

	if (sender->far)
		known = &container_of(sender, struct hml_far_user, sender)->peer->far.known;
	else
		known = &container_of(sender->guard.bucket, struct hml_user, bucket)->known;
	return hml_watch_knew(known, nic->host, h->slot, h->key);
}
