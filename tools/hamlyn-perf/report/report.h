/* SPDX-License-Identifier: GPL-2.0-only */
/* What the reports of all commands have in common. */
#ifndef HAMLYN_PERF_REPORT_H
#define HAMLYN_PERF_REPORT_H

#include <stdio.h>

#include "base/perf.h"

void report_size(char *text, size_t room, size_t size);
void report_ns(char *text, size_t room, double ns);
void report_machine(void);
void report_foreign(double foreign);
void report_json_machine(FILE *file, const struct options *options, double foreign);

#endif /* HAMLYN_PERF_REPORT_H */
