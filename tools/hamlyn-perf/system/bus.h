/* SPDX-License-Identifier: GPL-2.0-only */
/* A D-Bus of our own: nobody else is on it, and it ends with the measurement. */
#ifndef HAMLYN_PERF_BUS_H
#define HAMLYN_PERF_BUS_H

#include <sys/types.h>

#include "base/perf.h"

#define BUS_PROGRAM	"dbus-daemon"

struct bus {
	pid_t daemon;
	char address[256];
};

struct bus *bus_start(const struct options *options);
void bus_stop(struct bus *bus);

#endif /* HAMLYN_PERF_BUS_H */
