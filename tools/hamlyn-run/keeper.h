/* SPDX-License-Identifier: GPL-2.0-only */
/* What sees to it that hamlyn-run leaves nothing when it is killed. */
#ifndef RUN_KEEPER_H
#define RUN_KEEPER_H

#include "options.h"

/*
 * Runs the job in a process of its own. @run gets a descriptor at whose end nobody keeps that
 * process any more. Return: what @run returned, or 128 + the signal that killed it; also in
 * that process.
 */
int keeper_run(const struct options *options,
	       int (*run)(const struct options *options, int keeper_fd));

#endif /* RUN_KEEPER_H */
