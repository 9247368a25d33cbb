/* SPDX-License-Identifier: GPL-2.0-only */
/* Holding a terminus, and working on it. */
#ifndef HML_DATAPATH_H
#define HML_DATAPATH_H

#include <linux/types.h>

struct hml_term;

u32 hml_pass_budget(u32 packet_size);
u32 hml_term_work(struct hml_term *t, u32 budget, s64 *bytes);
u32 hml_term_run(struct hml_term *t, u32 budget, s64 *bytes);
bool hml_term_paused(const struct hml_term *t);
bool hml_term_stalled(const struct hml_term *t);
bool hml_term_waits(const struct hml_term *t);
int hml_term_hold(struct hml_term *t);
int hml_term_hold_killable(struct hml_term *t);
void hml_term_retire(struct hml_term *t);
void hml_term_release(struct hml_term *t);
void hml_notify_begin(void);
void hml_notify_end(void);
void hml_notify_end_later(void);
void hml_notify_end_brief(void);

#endif /* HML_DATAPATH_H */
