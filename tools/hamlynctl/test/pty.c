// SPDX-License-Identifier: GPL-2.0-only
/* hamlynctl-pty: runs a program on a terminal of its own and types. */
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY_MS	400

static const char usage[] =
"usage: hamlynctl-pty KEYS COMMAND [ARGUMENT]...\n"
"\n"
"Runs COMMAND on a terminal of 24 lines and 120 columns, or $HAMLYN_COLUMNS, and types\n"
"KEYS, one each 400 ms; . is no key, R makes the terminal smaller, C is Ctrl-C. Prints what the\n"
"terminal gets. Exit status: that of COMMAND, or 125 if it did not end.\n";

/* False: the other side is gone. */
static int copy(int fd)
{
	char text[4096];
	ssize_t length = read(fd, text, sizeof(text));

	if (length <= 0)
		return 0;
	fwrite(text, 1, (size_t)length, stdout);
	return 1;
}

static int copy_for(int fd, int ms)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	for (; ms > 0; ms -= 10)
		if (poll(&wait, 1, 10) > 0 && !copy(fd))
			return 0;
	return 1;
}

static void type(int fd, char key)
{
	static const struct winsize small = { .ws_row = 6, .ws_col = 40 };

	if (key == 'C')
		key = 3;
	if (key == 'R')
		ioctl(fd, TIOCSWINSZ, &small);
	else if (key != '.' && write(fd, &key, 1) != 1)
		perror("hamlynctl-pty");
}

int main(int argc, char **argv)
{
	const char *columns = getenv("HAMLYN_COLUMNS");
	const struct winsize size = {
		.ws_row = 24,
		.ws_col = columns ? (unsigned short)atoi(columns) : 120,
	};
	int fd, status, open = 1;
	const char *key;
	pid_t pid;

	if (argc < 3) {
		fputs(usage, stderr);
		return 2;
	}
	pid = forkpty(&fd, NULL, NULL, &size);
	if (pid < 0)
		return 125;
	if (!pid) {
		execvp(argv[2], argv + 2);
		_exit(126);
	}
	for (key = argv[1]; *key && open; key++) {
		open = copy_for(fd, KEY_MS);
		if (open)
			type(fd, *key);
	}
	if (open && copy_for(fd, 10 * KEY_MS)) {
		kill(pid, SIGKILL);
		return 125;
	}
	if (waitpid(pid, &status, 0) != pid)
		return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
