// SPDX-License-Identifier: GPL-2.0-only
/* Why a call failed, in words: an errno cannot tell how much is missing. */
#include <linux/string.h>

#include "hml.h"

static char *explanation_of(struct hml_context *c)
{
	lockdep_assert_held(&c->explain_lock);
	return c->explanation;
}

/**
 * hml_explain() - say why the call in progress fails
 * @c: the context
 * @format: what was wrong, and what is allowed
 */
void hml_explain(struct hml_context *c, const char *format, ...)
{
	char text[HAMLYN_EXPLAIN_BYTES];
	va_list args;

	va_start(args, format);
	vscnprintf(text, sizeof(text), format, args);
	va_end(args);
	hml_lock(&c->explain_lock);
	strscpy_pad(explanation_of(c), text, sizeof(c->explanation));
	hml_unlock(&c->explain_lock);
}

/* A new call begins. */
void hml_explain_nothing(struct hml_context *c)
{
	hml_lock(&c->explain_lock);
	*explanation_of(c) = 0;
	hml_unlock(&c->explain_lock);
}

int hml_explain_get(struct hml_context *c, struct hamlyn_explain *arg)
{
	if (arg->reserved)
		return -EINVAL;
	hml_lock(&c->explain_lock);
	strscpy_pad(arg->text, explanation_of(c), sizeof(arg->text));
	*explanation_of(c) = 0;
	hml_unlock(&c->explain_lock);
	return 0;
}
