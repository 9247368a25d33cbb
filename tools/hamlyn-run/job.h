/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RUN_JOB_H
#define RUN_JOB_H

#include "options.h"

/*
 * Starts the processes and sees them to their end. The job has failed when @keeper_fd ends.
 * Return: status to exit with.
 */
int job_run(const struct options *options, int keeper_fd);

#endif /* RUN_JOB_H */
