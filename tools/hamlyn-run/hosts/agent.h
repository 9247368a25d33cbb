/* SPDX-License-Identifier: GPL-2.0-only */
/* hamlyn-run on another host than its own: what it is told over a link. */
#ifndef RUN_AGENT_H
#define RUN_AGENT_H

#include "options.h"

/* Standard input and output are the link. Return: the status to exit with */
int agent_run(const struct options *options, int keeper_fd);

#endif /* RUN_AGENT_H */
