/* SPDX-License-Identifier: GPL-2.0-only */
/* The grace period: when no packet is landing any more that began before. */
#ifndef HML_GRACE_H
#define HML_GRACE_H

void hml_grace_wait(void);

#endif /* HML_GRACE_H */
