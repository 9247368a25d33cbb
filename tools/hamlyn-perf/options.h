/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HAMLYN_PERF_OPTIONS_H
#define HAMLYN_PERF_OPTIONS_H

#include "base/perf.h"

struct command {
	const char *name;
	const char *what;
	int (*run)(const struct options *options);
};

/* What options_parse() returns above 0: what was asked for in place of a command */
enum { OPTIONS_HELP = 1, OPTIONS_VERSION };

int options_parse(int argc, char **argv, const struct command *commands,
		  struct options *options, const struct command **command);
void options_help(void);

#endif /* HAMLYN_PERF_OPTIONS_H */
