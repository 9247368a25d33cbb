/* SPDX-License-Identifier: GPL-2.0-only */
/* Watches: who is told that a slot is gone. */
#ifndef HML_WATCH_H
#define HML_WATCH_H

#include <linux/types.h>

struct hamlyn_watch;
struct hml_context;
struct hml_device;
struct hml_known;
struct hml_slot_object;

int hml_watch_create(struct hml_context *c, struct hamlyn_watch *arg);
int hml_watch_destroy(struct hml_context *c, u32 id);
void hml_watch_destroy_all(struct hml_context *c);
void hml_watch_init_slot(struct hml_slot_object *s);
void hml_watch_rekey(struct hml_slot_object *s, u64 key, u64 ticket_key);
void hml_watch_tell_rekeyed(struct hml_slot_object *s);
void hml_known_init(struct hml_known *known);
void hml_watch_tell(struct hml_slot_object *s);
bool hml_watch_leave(struct hml_slot_object *s);
u64 hml_watch_down(void);
void hml_watch_tell_all(struct hml_device *d, u64 era);
void hml_watch_exit(void);

#endif /* HML_WATCH_H */
