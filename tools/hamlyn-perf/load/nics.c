// SPDX-License-Identifier: GPL-2.0-only
/* Finding NICs, and asking them about their engines. */
#include <stdio.h>
#include <unistd.h>

#include "load/endpoint.h"
#include "load/nics.h"

#define MAX_NICS	256

/* Returns false if it does not tell. Closes @dev. */
static bool ask(struct nic *nic, struct h_dev *dev)
{
	struct hamlyn_query query;
	bool told = !h_query(dev, &query);

	snprintf(nic->device, sizeof(nic->device), "%.63s", h_dev_name(dev));
	nic->embedded = h_dev_is_embedded(dev);
	nic->mode = query.engine_mode;
	nic->engines = query.engines;
	h_close(dev);
	return told;
}

int nic_first(struct nic *nic, const struct options *options)
{
	struct h_dev *dev;

	if (endpoint_device(&dev, options) < 0)
		return -1;
	return ask(nic, dev) ? 0 : fail("the NIC does not tell its limits");
}

bool nic_next(struct nic *nic, uint32_t *number)
{
	struct h_dev *dev;
	char path[32];

	while (*number < MAX_NICS) {
		snprintf(path, sizeof(path), "/dev/hamlyn%u", (*number)++);
		if (!access(path, R_OK | W_OK) && !h_open(path, &dev) && ask(nic, dev))
			return true;
	}
	return false;
}
