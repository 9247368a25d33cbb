/* SPDX-License-Identifier: GPL-2.0-only */
/* Slots of a context. */
#ifndef HML_SLOT_H
#define HML_SLOT_H

#include <linux/list.h>

#include "core/nic.h"

struct hamlyn_slot_create;
struct hamlyn_slot_rekey;
struct hml_area;
struct hml_context;
struct hml_device;
struct hml_nqueue;

/**
 * struct hml_slot_object - slot of a context
 * @core: what packets see
 * @area: message area's area
 * @meta_area: metadata entries' area, or NULL
 * @nq: NQ, or NULL
 * @context: owner; outlives the slot
 * @watches: struct hml_watch of all contexts that are armed; under hml_watch_lock
 * @old: those that were, under keys that are being replaced; under hml_watch_lock
 * @leaving: those that are being told; under hml_watch_lock
 * @crowd: among those with too many of them for the owner; under hml_watch_lock
 * @gone: the NIC, with a reference, if it is freed when all are told; under hml_watch_lock
 * @claimed: by one of them, which may have ended since; under hml_watch_lock
 */
struct hml_slot_object {
	struct hml_slot core;
	struct hml_context *context;
	struct list_head watches;
	struct list_head old;
	struct list_head leaving;
	struct list_head crowd;
	struct hml_device *gone;
	bool claimed;
	struct hml_area *area;
	struct hml_area *meta_area;
	struct hml_nqueue *nq;
};

void hml_slot_free(struct hml_device *d, struct hml_slot_object *s);
struct hml_slot_object *hml_slot_find(struct hml_context *c, u32 number);
int hml_slot_create(struct hml_context *c, struct hamlyn_slot_create *arg);
int hml_slot_destroy(struct hml_context *c, u32 number);
int hml_slot_rekey(struct hml_context *c, struct hamlyn_slot_rekey *arg);
void hml_slot_unlink_all(struct hml_context *c);
void hml_slot_destroy_all(struct hml_context *c);

#endif /* HML_SLOT_H */
