/* SPDX-License-Identifier: GPL-2.0-only */
/* The fabric inside one kernel. */
#ifndef HML_LOOP_H
#define HML_LOOP_H

#include "fabric/fabric.h"

extern struct hml_fabric hml_loop;

void hml_loop_init(void);

#endif /* HML_LOOP_H */
