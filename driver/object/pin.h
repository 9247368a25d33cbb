/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages of users, pinned. */
#ifndef HML_PIN_H
#define HML_PIN_H

#include <linux/types.h>

struct hml_area;
struct hml_context;

int hml_pin(struct hml_context *c, struct hml_area *a, unsigned long addr,
	    u64 length);
void hml_pin_undo(struct hml_area *a);

#endif /* HML_PIN_H */
