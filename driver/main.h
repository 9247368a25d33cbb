/* SPDX-License-Identifier: GPL-2.0-only */
/* The parameters of the module. */
#ifndef HML_MAIN_H
#define HML_MAIN_H

struct hml_nic_attr;

void hml_nic_default_attr(struct hml_nic_attr *attr);
unsigned long hml_max_pages(void);
unsigned long hml_max_wired(void);

#endif /* HML_MAIN_H */
