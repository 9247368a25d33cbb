// SPDX-License-Identifier: GPL-2.0-only
/*
 * A compiler with an assembler of ours before its own: the compiler finds it by -B. The same
 * program is both; its name says which.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "as.h"
#include "message.h"
#include "options.h"

#ifndef HAMLYN_VERSION
#define HAMLYN_VERSION "unknown"
#endif
#ifndef TEMPEST_LIBEXEC
#define TEMPEST_LIBEXEC "/usr/local/lib/hamlyn/tempest"
#endif

/* The first line that the compiler prints when asked for something. */
static char *ask(const char *compiler, const char *what)
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

/* Is that file this program? In /usr/bin, "as" is another. */
static bool is_me(const char *path)
{
	struct stat me, it;

	return !stat("/proc/self/exe", &me) && !stat(path, &it) && me.st_dev == it.st_dev &&
	       me.st_ino == it.st_ino;
}

/* Where our assembler is: beside us, in a folder that was built, or where it is installed. */
static const char *libexec(void)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof("/as"));
	char *slash;

	if (n > 0) {
		path[n] = 0;
		slash = strrchr(path, '/');
		strcpy(slash, "/as");
		if (is_me(path)) {
			slash[1] = 0;
			return path;
		}
	}
	if (access(TEMPEST_LIBEXEC "/as", X_OK))
		give_up("%s: %s; is it installed?", TEMPEST_LIBEXEC "/as", strerror(errno));
	return TEMPEST_LIBEXEC "/";
}

static void environment(const struct options *o)
{
	char *as = ask(o->compiler, "-print-prog-name=as");

	if (setenv(ENV_AS, *as ? as : "as", 1) ||
	    (o->report && setenv(ENV_REPORT, o->report, 1)) ||
	    (o->source ? setenv(ENV_SOURCE, o->source, 1) : unsetenv(ENV_SOURCE)) ||
	    (o->why_plain ? setenv(ENV_PLAIN, o->why_plain, 1) : unsetenv(ENV_PLAIN)))
		give_up("environment: %s", strerror(errno));
	free(as);
}

/* The register that checks use is nobody else's; flags are not kept longer than needed. */
static int compile(struct options *o)
{
	static char fixed[] = "-ffixed-r11", near_flags[] = "-fno-schedule-insns2";
	static char no_pie[] = "-fno-pie", link_no_pie[] = "-no-pie", b[4200];
	static char external[] = "-fno-integrated-as";
	char *version = ask(o->compiler, "--version");
	char **argv = enlarge(NULL, ((size_t)o->n + 8) * sizeof(*argv));
	int n = 0;

	environment(o);
	argv[n++] = strdup(o->compiler);
	if (!o->plain) {
		snprintf(b, sizeof(b), "-B%s", libexec());
		argv[n++] = b;
	}
	if (strstr(version, "clang")) {
		argv[n++] = external;
	} else {
		argv[n++] = fixed;
		argv[n++] = near_flags;
	}
	free(version);
	argv[n++] = no_pie;
	if (o->links && !o->shared)
		argv[n++] = link_no_pie;
	memcpy(argv + n, o->rest, ((size_t)o->n + 1) * sizeof(*argv));
	execvp(argv[0], argv);
	say("%s: %s", argv[0], strerror(errno));
	return 1;
}

static int print_version(const char *compiler)
{
	char *version = ask(compiler, "--version");

	printf(ME " " HAMLYN_VERSION "\n%s\n", version);
	free(version);
	return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *me = strrchr(argv[0], '/');
	struct options o;
	int ret;

	if (!strcmp(me ? me + 1 : argv[0], "as"))
		return as_main(argc, argv);
	ret = options_parse(argc, argv, &o);
	if (ret)
		return ret < 0 ? 2 : fflush(stdout) ? 1 : 0;
	if (o.n == 1 && !strcmp(o.rest[0], "--version"))
		return print_version(o.compiler);
	return compile(&o);
}
