/* SPDX-License-Identifier: GPL-2.0-only */
/* The reason for the last failure, in words. */
#ifndef HML_EXPLAIN_H
#define HML_EXPLAIN_H

#include <linux/compiler.h>

struct hamlyn_explain;
struct hml_context;

__printf(2, 3)
void hml_explain(struct hml_context *c, const char *format, ...);
void hml_explain_nothing(struct hml_context *c);
int hml_explain_get(struct hml_context *c, struct hamlyn_explain *arg);

#endif /* HML_EXPLAIN_H */
