// SPDX-License-Identifier: GPL-2.0-only
/* Running other people's programs, and reading what they print. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/netns.h"
#include "system/peer.h"

#define LISTEN_MS	10	/* between two looks whether a server listens */
#define GRACE_MS	3000	/* for a server to end once its client has */
#define STOP_MS		2000	/* for a program to end when it is told to */
#define DEFAULT_MS	40	/* per point, as the comparison's own tests */
#define QUICK_MS	15

void peer_word(struct peer_command *command, const char *word)
{
	if (command->words < PEER_WORDS)
		command->argv[command->words++] = word;
}

void peer_words(struct peer_command *command, const char *const *words)
{
	while (*words)
		peer_word(command, *words++);
}

/* ---- finding programs and ports ----------------------------------------- */

static bool in_folder(const char *folder, size_t length, const char *program)
{
	char path[512];
	int n = snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, program);

	return n > 0 && (size_t)n < sizeof(path) && !access(path, X_OK);
}

bool peer_installed(const char *program)
{
	const char *path = getenv("PATH");
	size_t length;

	if (strchr(program, '/'))
		return !access(program, X_OK);
	for (; path && *path; path += length + (path[length] == ':')) {
		length = strcspn(path, ":");
		if (in_folder(path, length, program))
			return true;
	}
	return false;
}

int peer_port(char *port, size_t room)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int ret = -1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)) &&
	    !getsockname(fd, (struct sockaddr *)&address, &length)) {
		snprintf(port, room, "%u", ntohs(address.sin_port));
		ret = 0;
	}
	if (ret < 0)
		fail("no free port on the loopback device: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return ret;
}

/* Asking the server itself would be taken for the client. */
static bool listens_in(pid_t pid, const char *table, unsigned int port)
{
	unsigned int local, state;
	bool found = false;
	char line[512], path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, table);
	file = fopen(path, "r");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local,
			       &state) == 2 && local == port && state == 0x0a;
	fclose(file);
	return found;
}

/* Where the server is, which may be another network namespace than ours. */
static bool listens(pid_t server, const char *port)
{
	unsigned int number = (unsigned int)strtoul(port, NULL, 10);

	return listens_in(server, "tcp", number) || listens_in(server, "tcp6", number);
}

/* ---- one process -------------------------------------------------------- */

struct process {
	const char *name;
	struct peer_said *said;
	size_t lengths[2];	/* of said->text and said->errors */
	int fds[2];		/* its stdout and stderr; -1: ended */
	pid_t pid;		/* 0: reaped */
	int status;
};

static _Noreturn void become(const struct peer_command *command, pid_t parent, int out,
			     int err)
{
	int null = open("/dev/null", O_RDONLY);
	uint32_t i;

	/* Nobody would end it if we were killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A group of its own: what it starts can be ended with it. */
	setpgid(0, 0);
	if (getppid() != parent || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 ||
	    dup2(err, 2) < 0)
		_exit(126);
	if ((command->netns && netns_enter(command->netns) < 0) ||
	    (command->cpu >= 0 && pair_pin(command->cpu) < 0)) {
		fprintf(stderr, "%s\n", fail_text());
		_exit(126);
	}
	for (i = 0; i < ARRAY_SIZE(command->env) && command->env[i]; i++)
		putenv((char *)(uintptr_t)command->env[i]);
	execvp(command->argv[0], (char *const *)(uintptr_t)command->argv);
	fprintf(stderr, "%s: %s\n", command->argv[0], strerror(errno));
	_exit(127);
}

static int start(struct process *process, const struct peer_command *command,
		 struct peer_said *said)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	pid_t parent = getpid();

	*process = (struct process){ .name = command->argv[0], .said = said,
				     .fds = { -1, -1 } };
	said->text[0] = 0;
	said->errors[0] = 0;
	if (pipe2(out, O_CLOEXEC) < 0)
		return fail("no pipe: %s", strerror(errno));
	if (pipe2(err, O_CLOEXEC) < 0)
		fail("no pipe: %s", strerror(errno));
	else
		process->pid = fork();
	if (err[0] >= 0 && !process->pid)
		become(command, parent, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	process->fds[0] = out[0];
	process->fds[1] = err[0];
	if (process->pid > 0)
		return 0;
	fail("no new process: %s", strerror(errno));
	process->pid = 0;
	return -1;
}

/* Keep what has come: of stdout the beginning, of stderr the end. */
static void keep(struct process *process, int which, const char *bytes, size_t n)
{
	size_t room = which ? PEER_ERRORS - 1 : PEER_TEXT - 1;
	char *kept = which ? process->said->errors : process->said->text;
	size_t *length = &process->lengths[which];
	size_t drop;

	if (which && n > room) {
		bytes += n - room;
		n = room;
	}
	if (*length + n > room) {
		drop = *length + n - room;
		if (which) {
			memmove(kept, kept + drop, *length - drop);
			*length -= drop;
		} else {
			n -= drop;
		}
	}
	memcpy(kept + *length, bytes, n);
	*length += n;
	kept[*length] = 0;
}

static void listen_to(struct process *process, int which)
{
	char bytes[1024];
	ssize_t n = read(process->fds[which], bytes, sizeof(bytes));

	if (n > 0) {
		keep(process, which, bytes, (size_t)n);
	} else if (!n || errno != EINTR) {
		close(process->fds[which]);
		process->fds[which] = -1;
	}
}

/* Nobody gets its id before we reap it: what it left running ends with it. */
static void reap(struct process *process)
{
	siginfo_t info = { 0 };

	if (process->pid <= 0 ||
	    waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	    !info.si_pid)
		return;
	kill(-process->pid, SIGKILL);
	waitpid(process->pid, &process->status, 0);
	process->pid = 0;
}

/* Sleep until one of them says something or @ms are over. */
static void attend(struct process *processes, uint32_t n, int ms)
{
	struct pollfd pfds[4];
	uint32_t i;

	/* Who closes its output is about to end: look again soon. */
	for (i = 0; i < n; i++)
		if (processes[i].pid > 0 && processes[i].fds[0] < 0 &&
		    processes[i].fds[1] < 0 && ms > LISTEN_MS)
			ms = LISTEN_MS;
	for (i = 0; i < 2 * n; i++)
		pfds[i] = (struct pollfd){ .fd = processes[i / 2].fds[i % 2],
					   .events = POLLIN };
	if (poll(pfds, 2 * n, ms) > 0)
		for (i = 0; i < 2 * n; i++)
			if (pfds[i].revents)
				listen_to(&processes[i / 2], i % 2);
	for (i = 0; i < n; i++)
		reap(&processes[i]);
}

static void drain(struct process *process)
{
	struct pollfd pfd = { .events = POLLIN };
	int i, rounds;

	for (i = 0; i < 2; i++) {
		for (rounds = 0; rounds < 64 && process->fds[i] >= 0; rounds++) {
			pfd.fd = process->fds[i];
			if (poll(&pfd, 1, 0) <= 0)
				break;
			listen_to(process, i);
		}
		if (process->fds[i] >= 0)
			close(process->fds[i]);
		process->fds[i] = -1;
	}
}

/*
 * A program that starts others (mpirun) ends them when it is told to end; the
 * kill is for what does not listen. Its group has its id.
 */
static void stop(struct process *process)
{
	uint64_t deadline = clock_ns() + STOP_MS * NSEC_PER_MSEC;

	reap(process);
	if (process->pid > 0)
		kill(process->pid, SIGTERM);
	while (process->pid > 0 && clock_ns() < deadline)
		attend(process, 1, LISTEN_MS);
	if (process->pid > 0) {
		kill(-process->pid, SIGKILL);
		kill(process->pid, SIGKILL);
		waitpid(process->pid, &process->status, 0);
		process->pid = 0;
	}
	drain(process);
}

/* ---- failures ----------------------------------------------------------- */

/* The last lines of stderr as one, without what would break a report. */
static void last_words(const struct peer_said *said, char *words, size_t room)
{
	const char *text = *said->errors ? said->errors : said->text;
	size_t length = strlen(text), n = 0;

	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	if (length > room - 1) {
		text += length - (room - 1);
		length = room - 1;
	}
	for (; n < length; n++)
		words[n] = isprint((unsigned char)text[n]) ? text[n] : ' ';
	words[n] = 0;
}

static int judge(const struct process *process)
{
	char words[160];

	if (WIFEXITED(process->status) && !WEXITSTATUS(process->status))
		return 0;
	last_words(process->said, words, sizeof(words));
	if (WIFSIGNALED(process->status))
		return fail("%s was ended by signal %d: %s", process->name,
			    WTERMSIG(process->status), words);
	return fail("%s: status %d: %s", process->name, WEXITSTATUS(process->status),
		    words);
}

static int too_long(const struct options *options, const struct process *process)
{
	char words[120];

	last_words(process->said, words, sizeof(words));
	return fail("%s: no result within %u s: %s", process->name, options->timeout_s,
		    words);
}

/* ---- runs --------------------------------------------------------------- */

static int wait_for(const struct options *options, struct process *processes, uint32_t n,
		    uint64_t deadline)
{
	uint64_t now;

	/* The last one of them is the one that counts. */
	while (processes[n - 1].pid > 0) {
		now = clock_ns();
		if (now > deadline)
			return too_long(options, &processes[n - 1]);
		attend(processes, n, 1 + (int)((deadline - now) / NSEC_PER_MSEC));
	}
	return 0;
}

static uint64_t limit(const struct options *options)
{
	return clock_ns() + options->timeout_s * NSEC_PER_SEC;
}

int peer_run(const struct options *options, const struct peer_command *command,
	     struct peer_said *said)
{
	struct process process;
	int ret = start(&process, command, said);

	if (!ret)
		ret = wait_for(options, &process, 1, limit(options));
	stop(&process);
	return ret < 0 ? ret : judge(&process);
}

static int await_server(const struct options *options, struct process *server,
			const char *port, uint64_t deadline)
{
	while (!listens(server->pid, port)) {
		if (clock_ns() > deadline)
			return too_long(options, server);
		attend(server, 1, LISTEN_MS);
		if (server->pid > 0)
			continue;
		drain(server);
		return judge(server) < 0 ? -1 :
			fail("%s ended before it listened", server->name);
	}
	return 0;
}

int peer_run_pair(const struct options *options, const struct peer_command *server,
		  const struct peer_command *client, const char *port,
		  struct peer_said said[2])
{
	struct process processes[2] = { { .fds = { -1, -1 } }, { .fds = { -1, -1 } } };
	uint64_t deadline = limit(options);
	int ret = start(&processes[0], server, &said[0]);

	if (!ret)
		ret = await_server(options, &processes[0], port, deadline);
	if (!ret)
		ret = start(&processes[1], client, &said[1]);
	if (!ret)
		ret = wait_for(options, processes, 2, deadline);
	if (processes[1].said)
		stop(&processes[1]);
	if (!ret)
		ret = judge(&processes[1]);
	deadline = clock_ns() + GRACE_MS * NSEC_PER_MSEC;
	while (!ret && processes[0].pid > 0 && clock_ns() < deadline)
		attend(processes, 1, LISTEN_MS);
	stop(&processes[0]);
	return ret;
}

/* ---- how many times ------------------------------------------------------ */

uint32_t peer_ms(const struct options *options)
{
	if (options->point_ms)
		return options->point_ms;
	return options->quick ? QUICK_MS : DEFAULT_MS;
}

/* A guess for bytes that the last size did not have: 2 GB/s is slow. */
static uint64_t choose_count(const struct options *options, const struct peer_job *job,
			     const struct peer_pace *pace, size_t size)
{
	double ns = pace->ns;
	double n;

	if (size > pace->size)
		ns += (double)(size - pace->size) / 2;
	n = peer_ms(options) * (double)NSEC_PER_MSEC / ns;
	if (n < (double)job->min)
		return job->min;
	return n > (double)job->max ? job->max : (uint64_t)n;
}

/* What one repetition took: a round trip or a message. */
static double cost(const struct point *point, const struct measure *measure)
{
	if (point->test == TEST_LAT)
		return 2 * measure->value;
	if (point->test == TEST_BW)
		return (double)point->size * (double)NSEC_PER_SEC / measure->value;
	return (double)NSEC_PER_SEC / measure->value;
}

/* Who is not known yet is tried first, a few times only. */
int peer_measure(const struct options *options, const struct point *point,
		 const struct peer_job *job, struct peer_pace *paces,
		 struct measure *measure)
{
	struct peer_pace *pace = &paces[point->test];
	uint64_t count;
	int try;

	for (try = pace->ns > 0; try < 2; try++) {
		count = try ? choose_count(options, job, pace, point->size) : job->min;
		*measure = (struct measure){ .n = count };
		if (job->run(options, point, job, count, measure) < 0) {
			*measure = (struct measure){ 0 };
			return -1;
		}
		*pace = (struct peer_pace){ cost(point, measure), point->size };
	}
	return 0;
}

/* ---- what they print ----------------------------------------------------- */

static uint32_t line_numbers(const char *line, double *numbers, uint32_t max)
{
	const char *stop = line + strcspn(line, "\n");
	uint32_t n = 0;
	char *end;

	while (n < max) {
		line += strspn(line, " \t,");
		if (line >= stop)
			break;
		numbers[n] = strtod(line, &end);
		if (end == line || end > stop)
			break;
		n++;
		line = end;
	}
	return n;
}

uint32_t peer_numbers(const char *text, double *numbers, uint32_t max)
{
	const char *line, *last = NULL;
	size_t length;

	for (line = text; *line; line += length + (line[length] == '\n')) {
		length = strcspn(line, "\n");
		if (isdigit((unsigned char)line[strspn(line, " \t")]))
			last = line;
	}
	return last ? line_numbers(last, numbers, max) : 0;
}
