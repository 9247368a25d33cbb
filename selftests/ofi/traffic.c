// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a program, with a device open beside it, and says how many messages went over that
 * meanwhile: "N messages, N bytes". A run whose traffic does not show was no run.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn.h>

int main(int argc, char **argv)
{
	struct hamlyn_stats before = { 0 }, after = { 0 };
	struct h_dev *dev;
	int status;
	pid_t child;

	if (argc < 2 || h_open(NULL, &dev) || h_dev_stats(dev, &before))
		return 2;
	child = fork();
	if (!child) {
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (waitpid(child, &status, 0) != child || h_dev_stats(dev, &after))
		return 2;
	printf("%llu messages, %llu bytes\n",
	       (unsigned long long)(after.notifications - before.notifications),
	       (unsigned long long)(after.bytes - before.bytes));
	h_close(dev);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
