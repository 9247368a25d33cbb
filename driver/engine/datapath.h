/* SPDX-License-Identifier: GPL-2.0-only */
/* Holding a terminus, and working on it. */
#ifndef HML_DATAPATH_H
#define HML_DATAPATH_H

#include <linux/types.h>

struct hml_context;
struct hml_term;

u32 hml_pass_budget(u32 packet_size);
int hml_engine_kick(struct hml_context *c, u32 id);
int hml_engine_flush(struct hml_context *c);
u32 hml_term_work(struct hml_term *t, u32 budget, s64 *bytes);
u32 hml_term_run(struct hml_term *t, u32 budget, s64 *bytes);
bool hml_term_paused(const struct hml_term *t);
int hml_term_hold(struct hml_term *t);
int hml_term_hold_killable(struct hml_term *t);
void hml_term_retire(struct hml_term *t);
void hml_term_release(struct hml_term *t);
void hml_notify_begin(void);
void hml_notify_end(void);
void hml_notify_end_later(void);

/**
 * struct hml_kick - what a doorbell has done so far
 * @sent: packets sent
 * @more: there are more, or somebody else is sending them
 * @paused: the sender was made to pause
 * @often: it is rung so often that the engine had better poll
 */
struct hml_kick {
	u32 sent;
	bool more;
	bool paused;
	bool often;
};

#endif /* HML_DATAPATH_H */
