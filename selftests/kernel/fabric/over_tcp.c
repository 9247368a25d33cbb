// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs other selftests, whose pairs then send from one host to another: what Hamlyn promises
 * within a host it promises between two. As root, kernel device only.
 *
 *	over_tcp [PROGRAM [ARGUMENT]...]
 *
 * Without one: a list of them, in this program's folder. Documentation/conformance.rst tells
 * of the rows that are among them.
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

static int run_all(const char *folder)
{
	char path[512], *argv[9] = { path };
	int failed = 0;
	size_t i;

	printf("TAP version 13\n1..%zu\n", sizeof(programs) / sizeof(*programs));
	for (i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		int ret;

		snprintf(path, sizeof(path), "%s/%s", folder, programs[i][0]);
		memcpy(argv + 1, programs[i] + 1, sizeof(programs[i]) - sizeof(programs[i][0]));
		printf("# %s\n", programs[i][0]);
		fflush(stdout);
		ret = access(path, X_OK) ? 4 : run(argv);
		/* kselftest: 4, skipped */
		printf("%sok %zu %s over TCP%s\n", ret && ret != 4 ? "not " : "", i + 1,
		       programs[i][0], ret == 4 ? " # SKIP not here" : "");
		failed += ret && ret != 4;
	}
	return failed != 0;
}

int main(int argc, char **argv)
{
	static struct hosts h;
	int ret;

	if (geteuid() || access("/dev/hamlyn0", F_OK)) {
		printf("TAP version 13\n1..1\nok 1 over_tcp # SKIP as root, kernel device\n");
		return 0;
	}
	h.dead_ms = 120000;
	h.stall_ms = 120000;
	ret = hosts_begin(&h);
	if (ret)
		return 1;
	nic_use_tx(h.host[0].nic);
	nic_use(h.host[1].nic);
	/* Tests were written where what has left has landed. */
	setenv("HAMLYN_TX_LANDS", "1", 1);
	ret = argc > 1 ? run(argv + 1) : run_all(dirname(argv[0]));
	if (hosts_end(&h)) {
		printf("# NICs that cannot be deleted\n");
		ret = 1;
	}
	return ret;
}
