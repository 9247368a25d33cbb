// SPDX-License-Identifier: GPL-2.0-only
/* The users that an engine works for. */
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "hml.h"
#include "locked.h"

/* That of @fresh's user: @fresh, or the one that there was. */
static struct hml_client *client_find(struct hml_engine *e,
				      struct hml_client *fresh)
{
	struct rb_node **link = &e->clients.rb_node, *parent = NULL;

	lockdep_assert_held(&e->lock);
	while (*link) {
		struct hml_client *client = rb_entry(*link, struct hml_client,
						     node);

		if (uid_eq(fresh->uid, client->uid))
			return client;
		parent = *link;
		link = uid_lt(fresh->uid, client->uid) ? &parent->rb_left :
							 &parent->rb_right;
	}
	rb_link_node(&fresh->node, parent, link);
	rb_insert_color(&fresh->node, &e->clients);
	return fresh;
}

/**
 * hml_client_get() - the record that an engine has of a context's user
 * @e: the engine
 * @c: the context
 *
 * Return: the record, with one more user, or -ENOMEM as a pointer.
 */
struct hml_client *hml_client_get(struct hml_engine *e, struct hml_context *c)
{
	struct hml_client *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	struct hml_client *client;

	if (!fresh)
		return ERR_PTR(-ENOMEM);
	fresh->loan = c->loan;
	fresh->uid = c->user->uid;
	hml_lock(&e->lock);
	client = client_find(e, fresh);
	client->users++;
	hml_unlock(&e->lock);
	if (client == fresh)
		hml_loan_hold(client->loan);
	else
		kfree(fresh);
	return client;
}

void hml_client_put(struct hml_engine *e, struct hml_client *client)
{
	bool last;

	hml_lock(&e->lock);
	last = !--client->users;
	if (last)
		rb_erase(&client->node, &e->clients);
	hml_unlock(&e->lock);
	if (!last)
		return;
	hml_loan_put(client->loan);
	kfree(client);
}
