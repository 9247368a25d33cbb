/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose processor time engines use. */
#ifndef HML_LOAN_H
#define HML_LOAN_H

#include <linux/types.h>
#include <linux/uidgid.h>

struct hml_loan;

/**
 * enum hml_credit - may an engine work for a user?
 * @HML_CREDIT_GOOD: yes
 * @HML_CREDIT_OWES: it ends what was posted before, and asks for doorbells
 * @HML_CREDIT_BROKE: no
 */
enum hml_credit {
	HML_CREDIT_GOOD,
	HML_CREDIT_OWES,
	HML_CREDIT_BROKE,
};

u32 hml_loan_price(void);
struct hml_loan *hml_loan_get(kuid_t uid);
void hml_loan_hold(struct hml_loan *a);
void hml_loan_put(struct hml_loan *a);
bool hml_loan_affords(struct hml_loan *a);
enum hml_credit hml_loan_draw(struct hml_loan *a, s64 *left);
void hml_loan_pay_in(struct hml_loan *a);
void hml_loan_debit(struct hml_loan *a, u64 ns);
unsigned long hml_loan_delay(struct hml_loan *a);
bool hml_loan_broke(const struct hml_loan *a);
void hml_loans_exit(void);

#endif /* HML_LOAN_H */
