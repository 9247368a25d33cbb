// SPDX-License-Identifier: GPL-2.0-only
/* hamlyn-run: a parallel program on one host or several. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "hosts/agent.h"
#include "job.h"
#include "keeper.h"
#include "message.h"
#include "options.h"

/* A socket or pipe of ours must not become some process's standard output */
static int open_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd < 0) {
		say("/dev/null: %s", strerror(errno));
		return -1;
	}
	return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* What was asked for, and nothing else */
static int told(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	say("standard output cannot be written: %s", strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	struct options options;
	int ret;

	if (open_standard() < 0)
		return 1;
	ret = options_parse(argc, argv, &options);
	if (ret)
		return ret < 0 ? EXIT_USAGE : told();
	return keeper_run(&options, options.agent ? agent_run : job_run);
}
