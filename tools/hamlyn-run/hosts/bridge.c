// SPDX-License-Identifier: GPL-2.0-only
/*
 * hamlyn-bridge lies where hamlyn-run does. It ends with its agent, and its segment with the
 * last process that uses it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hosts/bridge.h"
#include "message.h"

#define MAX_WORDS	256
#define ID_FD		"/proc/self/fd/%d"
#define LOOKS		600	/* one a tenth of a second */
#define END_LOOKS	20
#define LOOK_NS		100000000

static void find_program(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	path[n > 0 ? n : 0] = 0;
	slash = strrchr(path, '/');
	if (slash && (size_t)(slash - path) + sizeof("/hamlyn-bridge") <= size)
		memcpy(slash, "/hamlyn-bridge", sizeof("/hamlyn-bridge"));
	if (!slash || access(path, X_OK) < 0)
		snprintf(path, size, "hamlyn-bridge");
}

/* A file that only we can read, which nobody can find */
static int hide_id(const char *id, char *path, size_t size)
{
	int fd = memfd_create("fabric-id", 0);

	if (fd < 0 || fchmod(fd, 0600) < 0 || write(fd, id, strlen(id)) != (ssize_t)strlen(id))
		return -1;
	lseek(fd, 0, SEEK_SET);
	snprintf(path, size, ID_FD, fd);
	return 0;
}

static void prepare(const struct surroundings *surroundings, pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() != parent)
		_exit(1);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	setrlimit(RLIMIT_NOFILE, &surroundings->files);
	sigaction(SIGPIPE, &surroundings->sigpipe, NULL);
	sigprocmask(SIG_SETMASK, &surroundings->mask, NULL);
}

__attribute__((noreturn))
static void become_bridge(const char **words, const char *id)
{
	char program[PATH_MAX], path[64];
	int n = 0;

	find_program(program, sizeof(program));
	while (words[n])
		n++;
	if (hide_id(id, path, sizeof(path)) == 0) {
		words[0] = program;
		words[n++] = "--quiet";
		words[n++] = "--id-file";
		words[n++] = path;
		words[n] = NULL;
		execvp(program, (char **)(uintptr_t)words);
	}
	say("hamlyn-bridge cannot be run: %s", strerror(errno));
	_exit(1);
}

/* A line for each peer, "host N up ..." */
static bool all_up(const char *text, int peers)
{
	int up = 0;

	for (; text; text = strchr(text, '\n')) {
		unsigned int host;
		char state[16];

		text += *text == '\n';
		if (sscanf(text, "host %u %15s", &host, state) == 2 && !strcmp(state, "up"))
			up++;
	}
	return up == peers;
}

static bool ask_bridge(const char *program, const char *device, int peers)
{
	char text[65536] = "";
	size_t n = 0;
	ssize_t got = 1;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (!pid) {
		/* Not there yet is no error to tell */
		dup2(STDIN_FILENO, STDERR_FILENO);
		dup2(fds[1], STDOUT_FILENO);
		execlp(program, program, device, "--status", NULL);
		_exit(1);
	}
	close(fds[1]);
	while (pid > 0 && got > 0 && n < sizeof(text) - 1) {
		got = read(fds[0], text + n, sizeof(text) - 1 - n);
		n += got > 0 ? (size_t)got : 0;
	}
	close(fds[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	text[n] = 0;
	return all_up(text, peers);
}

__attribute__((noreturn))
static void become_waiter(const char *device, int peers)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	char program[PATH_MAX];
	int i;

	find_program(program, sizeof(program));
	for (i = 0; i < LOOKS; i++) {
		if (ask_bridge(program, device, peers))
			_exit(0);
		nanosleep(&look, NULL);
	}
	say("hamlyn-bridge has not reached all of its peers within a minute");
	_exit(1);
}

/* Return: how many words there are behind the id, or -1 if they are none */
static int split(const char *text, size_t n, const char **words)
{
	const char *at = text, *end = text + n;
	int i;

	if (!n || text[n - 1])
		return -1;
	for (i = 0; at < end; i++, at += strlen(at) + 1) {
		if (i == MAX_WORDS)
			return -1;
		words[i] = at;
	}
	words[i] = NULL;
	return i >= 3 ? i - 1 : -1;
}

static int count_peers(const char **words)
{
	int n = 0;

	for (; *words; words++)
		n += !strcmp(*words, "--peer");
	return n;
}

int bridge_start(struct bridge *bridge, const struct surroundings *surroundings,
		 const char *text, size_t n)
{
	const char *words[MAX_WORDS + 8];
	pid_t parent = getpid();

	if (bridge->pid || split(text, n, words) < 0)
		return -EPROTO;
	bridge->device = strdup(words[1]);
	bridge->pid = fork();
	if (!bridge->pid) {
		prepare(surroundings, parent);
		become_bridge(words, words[0]);
	}
	if (bridge->pid < 0)
		return -errno;
	bridge->waiter = fork();
	if (!bridge->waiter) {
		prepare(surroundings, parent);
		become_waiter(words[1], count_peers(words));
	}
	return bridge->waiter < 0 ? -errno : 0;
}

static void end_process(pid_t pid)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	int i;

	kill(pid, SIGTERM);
	for (i = 0; i < END_LOOKS; i++) {
		if (waitpid(pid, NULL, WNOHANG))
			return;
		nanosleep(&look, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void bridge_end(struct bridge *bridge)
{
	char program[PATH_MAX];

	if (bridge->waiter > 0)
		kill(bridge->waiter, SIGKILL);
	if (bridge->pid > 0)
		end_process(bridge->pid);
	/* Whoever finds that it has no user removes it: those that were killed could not */
	if (bridge->device) {
		find_program(program, sizeof(program));
		ask_bridge(program, bridge->device, 0);
	}
	free(bridge->device);
}
