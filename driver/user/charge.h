/* SPDX-License-Identifier: GPL-2.0-only */
/* Charges of what a user takes of a NIC, against its limits. */
#ifndef HML_CHARGE_H
#define HML_CHARGE_H

#include "user/user.h"

int hml_user_charge(struct hml_context *c, unsigned long pages);
void hml_user_uncharge(struct hml_device *d, struct hml_payer payer,
		       unsigned long pages, bool all);
int hml_user_charge_small(struct hml_context *c, u32 bytes);
void hml_user_uncharge_small(struct hml_device *d, struct hml_payer payer,
			     u32 bytes);
int hml_user_charge_wired(struct hml_context *c, struct hml_payer *payer,
			  unsigned long had, unsigned long pages);
void hml_user_uncharge_wired(struct hml_device *d, struct hml_payer payer,
			     unsigned long pages, bool all);
int hml_user_charge_watch(struct hml_context *c);
void hml_user_uncharge_watch(struct hml_context *c);
int hml_user_charge_name(struct hml_context *c);
void hml_user_uncharge_name(struct hml_device *d, struct hml_payer payer);
int hml_user_charge_call(struct hml_context *c, unsigned long *had);
void hml_user_uncharge_call(struct hml_device *d, struct hml_payer payer);
int hml_user_charge_slot(struct hml_context *c);
void hml_user_uncharge_slot(struct hml_context *c);
int hml_user_charge_terminus(struct hml_context *c);
void hml_user_uncharge_terminus(struct hml_context *c);

#endif /* HML_CHARGE_H */
