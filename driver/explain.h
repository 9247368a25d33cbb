/* SPDX-License-Identifier: GPL-2.0-only */
/* The reason for a failure, in words. */
#ifndef HML_EXPLAIN_H
#define HML_EXPLAIN_H

#include <linux/compiler.h>
#include <linux/rbtree.h>

#include <linux/hamlyn.h>

struct hml_context;
struct task_struct;

/**
 * struct hml_explainer - a call in progress that is to say why it fails
 * @node: in context.explainers, by @task; under context.explain_lock
 * @task: whose call it is; constant
 * @text: what it has to say; that task only
 */
struct hml_explainer {
	struct rb_node node;
	const struct task_struct *task;
	char text[HAMLYN_EXPLAIN_BYTES];
};

__printf(2, 3)
void hml_explain(struct hml_context *c, const char *format, ...);
void hml_explain_begin(struct hml_context *c, struct hml_explainer *e);
void hml_explain_end(struct hml_context *c, struct hml_explainer *e);

#endif /* HML_EXPLAIN_H */
