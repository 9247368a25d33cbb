/* SPDX-License-Identifier: GPL-2.0-only */
/* The NICs there are, and who does their work. */
#ifndef HAMLYN_PERF_NICS_H
#define HAMLYN_PERF_NICS_H

#include <hamlyn.h>

#include "base/perf.h"

struct nic {
	char device[64];
	bool embedded;
	uint32_t mode;
	uint32_t engines;	/* polling threads */
};

/* The one of --device. Returns -1 with the failure told. */
int nic_first(struct nic *nic, const struct options *options);
/*
 * The next of /dev/hamlynN that this process may open, *@number being where to
 * look from. Returns false if there is none.
 */
bool nic_next(struct nic *nic, uint32_t *number);

#endif /* HAMLYN_PERF_NICS_H */
