/* SPDX-License-Identifier: GPL-2.0-only */
/* What engine.c and stalled.c share, and nobody else sees. */
#ifndef HML_TURNS_H
#define HML_TURNS_H

#include <linux/time64.h>
#include <linux/types.h>

struct completion;
struct hml_engine;
struct hml_term;
struct work_struct;

#define HML_STALL_NS	NSEC_PER_MSEC	/* until a stalled terminus is looked at again */

/* engine.c */
void hml_engine_activate_unlisted(struct hml_term *t);
u64 hml_engine_when_to_look(const struct hml_term *t);
struct completion *hml_engine_serve_next(struct hml_engine *e, struct hml_term *t);

/* stalled.c */
void hml_engine_retry(struct work_struct *work);

#endif /* HML_TURNS_H */
