/* SPDX-License-Identifier: GPL-2.0-only */
/* What a monitoring system is told of NICs and peers, as a file and over HTTP. */
#ifndef HAMLYNCTL_METRICS_H
#define HAMLYNCTL_METRICS_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/ctl.h"

enum metrics_format {
	METRICS_TEXT,		/* Prometheus's text format, for the textfile collector */
	METRICS_OPEN,		/* OpenMetrics 1.0 */
	METRICS_FORMATS
};

/*
 * All there is to tell, as text to be freed. Without the module that is hamlyn_up 0, and so it is
 * if it does not answer: a monitoring system must be able to see that.
 */
char *metrics_text(enum metrics_format format, size_t *length);

#define MAX_READERS	16

/* Users that may read over TCP: nobody else is told what became of packets (threat-model.rst). */
struct readers {
	bool any;
	uid_t uids[MAX_READERS];
	size_t count;
};

/* May whoever is at the other end of @fd? */
bool reader_is_admitted(const struct readers *readers, int fd);

/* Serves on the sockets that systemd hands over, until a signal; status. */
int exporter_run(const struct readers *readers);

#endif /* HAMLYNCTL_METRICS_H */
