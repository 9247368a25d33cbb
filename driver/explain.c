// SPDX-License-Identifier: GPL-2.0-only
/*
 * Why a call failed, in words: an errno cannot tell how much is missing. The text is the call's,
 * so it is found by the task that makes it. A tree, because there may be as many calls at a time
 * as a user can have threads, and each takes the lock.
 */
#include <linux/sched.h>
#include <linux/string.h>

#include "hml.h"

static struct rb_root *explainers_of(struct hml_context *c)
{
	lockdep_assert_held(&c->explain_lock);
	return &c->explainers;
}

/* Where the call of @task hangs, or would. */
static struct rb_node **place(struct rb_root *root, const struct task_struct *task,
			      struct rb_node **parent)
{
	struct rb_node **link = &root->rb_node;

	*parent = NULL;
	while (*link) {
		const struct hml_explainer *e = rb_entry(*link, struct hml_explainer, node);

		if (task == e->task)
			break;
		*parent = *link;
		link = task < e->task ? &(*link)->rb_left : &(*link)->rb_right;
	}
	return link;
}

/* Only the task itself puts it in and takes it out: it stays after the lock. */
static struct hml_explainer *of_current(struct hml_context *c)
{
	struct rb_node *parent, *node;

	/* One's own is seen without the lock: then the tree is not empty. */
	if (!READ_ONCE(c->explainers.rb_node))
		return NULL;
	hml_lock(&c->explain_lock);
	node = *place(explainers_of(c), current, &parent);
	hml_unlock(&c->explain_lock);
	return rb_entry_safe(node, struct hml_explainer, node);
}

/**
 * hml_explain() - say why the call in progress fails
 * @c: the context
 * @format: what was wrong, and what is allowed
 *
 * Nothing, unless the caller has asked (HAMLYN_IOC_EXPLAINED()).
 */
void hml_explain(struct hml_context *c, const char *format, ...)
{
	struct hml_explainer *e = of_current(c);
	va_list args;

	if (!e)
		return;
	va_start(args, format);
	vscnprintf(e->text, sizeof(e->text), format, args);
	va_end(args);
}

/**
 * hml_explain_begin() - the current task makes a call that is to be explained
 * @c: the context; the task has no other one of it
 * @e: out: the text, for the time being none; until hml_explain_end()
 */
void hml_explain_begin(struct hml_context *c, struct hml_explainer *e)
{
	struct rb_node *parent, **link;

	memset(e->text, 0, sizeof(e->text));
	e->task = current;
	hml_lock(&c->explain_lock);
	link = place(explainers_of(c), current, &parent);
	rb_link_node(&e->node, parent, link);
	rb_insert_color(&e->node, explainers_of(c));
	hml_unlock(&c->explain_lock);
}

void hml_explain_end(struct hml_context *c, struct hml_explainer *e)
{
	hml_lock(&c->explain_lock);
	rb_erase(&e->node, explainers_of(c));
	hml_unlock(&c->explain_lock);
}
