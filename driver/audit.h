/* SPDX-License-Identifier: GPL-2.0-only */
/* Packets that were discarded. */
#ifndef HML_AUDIT_H
#define HML_AUDIT_H

#include <linux/types.h>

struct hamlyn_audit;
struct hamlyn_audit_entry;
struct hml_audit;
struct hml_context;
struct pid_namespace;

struct hml_audit *hml_audit_alloc(u32 entries);
void hml_audit_free(struct hml_audit *audit);
u32 hml_audit_read(struct hml_audit *audit, u64 *sequence,
		   struct hamlyn_audit_entry *entries, u32 count);
u32 hml_audit_pid(const struct hamlyn_audit_entry *e, struct pid_namespace *ns);
int hml_audit_get(struct hml_context *c, struct hamlyn_audit *arg);

#endif /* HML_AUDIT_H */
