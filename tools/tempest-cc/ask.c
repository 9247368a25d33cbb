// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "message.h"
#include "place.h"

char *ask(const char *compiler, const char *what)
{
	char line[4096] = "";
	int fds[2], status;
	FILE *from;
	pid_t pid;

	if (pipe(fds))
		give_up("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		give_up("fork: %s", strerror(errno));
	if (!pid) {
		dup2(fds[1], 1);
		close(fds[0]);
		close(fds[1]);
		execlp(compiler, compiler, what, (char *)NULL);
		say("%s: %s", compiler, strerror(errno));
		_exit(127);
	}
	close(fds[1]);
	from = fdopen(fds[0], "r");
	if (!from)
		give_up("fdopen: %s", strerror(errno));
	if (fgets(line, sizeof(line), from))
		line[strcspn(line, "\n")] = 0;
	while (fgetc(from) != EOF)
		;
	fclose(from);
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		exit(1);
	return strdup(line);
}
