// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs other selftests, whose pairs then send from one host to another: what Hamlyn promises
 * within a host it promises between two. As root, kernel device only.
 *
 *	over_tcp [-V PROGRAM]... [PROGRAM [ARGUMENT]...]
 *
 * Without one: a list of them, in this program's folder, but for those behind -V.
 * Documentation/conformance.rst tells of the rows that are among them.
 */
#include "hosts.h"

#include <libgen.h>
#include <sys/wait.h>

/* With options for it; those that are left out take minutes, and are about one host's affairs. */
static char * const programs[][8] = {
	{ "conformance" },
	{ "conformance_notify" },
	{ "conformance_modes" },
	{ "conformance_beyond" },
	{ "send_errors" },
	{ "gather" },
	{ "tagged" },
	{ "share" },
	{ "datagram" },
	{ "barrier" },
	{ "protection" },
	{ "paranoid" },
	{ "nq" },
	{ "unreadable" },
	{ "sendrecv" },
	{ "stream", "-v", "defaults" },
	{ "stream_calls" },
	{ "channel", "-v", "defaults" },
	{ "requests", "-v", "defaults" },
	{ "requests", "-v", "fewest_buffers" },
	{ "manager" },
	/* Also over a fabric that reorders and delays: its adversary stands before TCP. */
	{ "model" },
};

/* What it prints is a comment: whoever counts results counts ours. */
static void comment(int fd)
{
	FILE *from = fdopen(fd, "r");
	char line[512];

	while (from && fgets(line, sizeof(line), from))
		printf("# %s", line);
	if (from)
		fclose(from);
}

static int run(char **argv)
{
	int out[2], status = -1;
	pid_t pid;

	if (pipe(out))
		return 1;
	pid = ht_fork();
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		dup2(out[1], STDERR_FILENO);
		close(out[0]);
		close(out[1]);
		execv(argv[0], argv);
		perror(argv[0]);
		_exit(127);
	}
	close(out[1]);
	comment(out[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* How many arguments those are, as run-tests.sh gives them: "-V" and a name each. */
static int left_out_count(char **argv)
{
	int n = 0;

	while (argv[n] && !strcmp(argv[n], "-V") && argv[n + 1])
		n += 2;
	return n;
}

static bool is_left_out(const char *name, char **left_out, int n)
{
	int i;

	for (i = 1; i < n; i += 2)
		if (!strcmp(left_out[i], name))
			return true;
	return false;
}

static int run_all(const char *folder, char **left_out, int n)
{
	char path[512], *argv[9] = { path };
	int failed = 0, planned = 0, number = 0;
	size_t i;

	for (i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		planned += !is_left_out(programs[i][0], left_out, n);
	printf("TAP version 13\n1..%d\n", planned);
	for (i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		int ret;

		if (is_left_out(programs[i][0], left_out, n))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, programs[i][0]);
		memcpy(argv + 1, programs[i] + 1, sizeof(programs[i]) - sizeof(programs[i][0]));
		printf("# %s\n", programs[i][0]);
		fflush(stdout);
		ret = access(path, X_OK) ? 4 : run(argv);
		/* kselftest: 4, skipped */
		printf("%sok %d %s over TCP%s\n", ret && ret != 4 ? "not " : "", ++number,
		       programs[i][0], ret == 4 ? " # SKIP not here" : "");
		failed += ret && ret != 4;
	}
	return failed != 0;
}

int main(int argc, char **argv)
{
	static struct hosts h;
	int ret, n = left_out_count(argv + 1);

	if (geteuid() || access("/dev/hamlyn0", F_OK)) {
		printf("TAP version 13\n1..1\nok 1 over_tcp # SKIP as root, kernel device\n");
		return 0;
	}
	/* Whoever waits for it sees each result when there is one. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	h.dead_ms = 120000;
	h.stall_ms = 120000;
	ret = hosts_begin(&h);
	if (ret)
		return 1;
	nic_use_tx(h.host[0].nic);
	nic_use(h.host[1].nic);
	/* Tests were written where what has left has landed. */
	setenv("HAMLYN_TX_LANDS", "1", 1);
	ret = argc > n + 1 ? run(argv + n + 1) : run_all(dirname(argv[0]), argv + 1, n);
	if (hosts_end(&h)) {
		printf("# NICs that cannot be deleted\n");
		ret = 1;
	}
	return ret;
}
