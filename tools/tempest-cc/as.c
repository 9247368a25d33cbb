// SPDX-License-Identifier: GPL-2.0-only
/*
 * In the assembler's place. Where the assembler refuses what became of a file, it is given
 * the file as it was: either that is refused too, with a message that makes sense to whoever
 * wrote it, or nothing is checked in it, which is slower and not wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "as.h"
#include "emit.h"
#include "file.h"
#include "message.h"
#include "plan.h"
#include "report.h"

/**
 * struct job - a run of the assembler
 * @argv: its command line, argv[0] being the true assembler
 * @input: the index of the only file in it, or 0: standard input
 * @inputs: how many files there are
 * @given: they were named by who called the compiler, which made none of them
 * @source: what the file holds, 0 at its end
 */
struct job {
	char **argv;
	int input;
	int inputs;
	bool given;
	char *source;
};

static bool takes_value(const char *arg)
{
	static const char *const names[] = {
		"-o", "-I", "--defsym", "--MD", "--hash-size", "--debug-prefix-map",
		"--gdwarf-cie-version", "--listing-lhs-width", "--listing-lhs-width2",
		"--listing-rhs-width", "--listing-cont-lines",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(arg, names[i]))
			return true;
	return false;
}

static void read_source(struct job *job)
{
	const char *name = job->input ? job->argv[job->input] : "standard input";
	int fd = job->input ? open(name, O_RDONLY | O_CLOEXEC) : 0;

	if (fd < 0)
		give_up("%s: %s", name, strerror(errno));
	job->source = read_all(fd, name);
	if (fd)
		close(fd);
}

/* Is it a line of that list? */
static bool is_given(const char *name)
{
	const char *list = getenv(ENV_GIVEN);
	size_t n;

	for (; list && *list; list += n + !!list[n]) {
		n = strcspn(list, "\n");
		if (strlen(name) == n && !memcmp(list, name, n))
			return true;
	}
	return false;
}

static void parse_args(struct job *job, int argc, char **argv)
{
	char **words = NULL;
	int i, n = 0;

	for (i = 0; i < argc; i++)
		expand_word(argv[i], &words, &n);
	words = enlarge(words, ((size_t)n + 1) * sizeof(*words));
	words[n] = NULL;
	for (i = 1; i < n; i++) {
		if (takes_value(words[i]) && words[i + 1])
			i++;
		else if (words[i][0] != '-' && ++job->inputs)
			job->input = i;
		else if (words[i][0] != '-' || words[i][1])
			continue;
		/* Of a compiler's pipe there is no "-". */
		job->given |= is_given(words[i]);
	}
	job->argv = words;
}

/* Another file with that in it, to be assembled: unlinked by the caller. */
static void write_source(char *path, const char *what, size_t size)
{
	const char *dir = getenv("TMPDIR");
	size_t done = 0;
	ssize_t n;
	int fd;

	snprintf(path, 4096, "%s/hamlyn-tempest-XXXXXX.s", dir && *dir ? dir : "/tmp");
	fd = mkstemps(path, 2);
	if (fd < 0)
		give_up("%s: %s", path, strerror(errno));
	while (done < size) {
		n = write(fd, what + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			unlink(path);
			give_up("writing %s: %s", path, strerror(errno));
		}
		done += (size_t)n;
	}
	close(fd);
}

/* Return: the assembler's exit status. What it says goes to that descriptor. */
static int run(char **argv, int says)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		give_up("fork: %s", strerror(errno));
	if (!pid) {
		if (says != 2)
			dup2(says, 2);
		execvp(argv[0], argv);
		say("%s: %s", argv[0], strerror(errno));
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			give_up("waitpid: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Has @what assembled in place of the file that was named. */
static int assemble(struct job *job, const char *what, size_t size, int says)
{
	char path[4096], *named[2] = { path, NULL };
	char **argv = job->argv;
	int status, n = 0;

	write_source(path, what, size);
	if (job->input) {
		named[1] = argv[job->input];
		argv[job->input] = path;
	} else {
		while (argv[n])
			n++;
		argv = enlarge(NULL, ((size_t)n + 2) * sizeof(*argv));
		memcpy(argv, job->argv, (size_t)n * sizeof(*argv));
		argv[n] = path;
		argv[n + 1] = NULL;
	}
	status = run(argv, says);
	unlink(path);
	if (job->input)
		argv[job->input] = named[1];
	else
		free(argv);
	return status;
}

static void tell(const char *name, const struct text *text, const struct site *sites,
		 const char *why)
{
	const char *path = getenv(ENV_REPORT);
	int err;

	if (!path || !*path)
		return;
	err = report(path, name, text, sites, why);
	if (err)
		give_up("report %s: %s", path, strerror(-err));
}

static char *with_checks(const struct text *text, struct site *sites, size_t *size)
{
	struct loop *loops;
	size_t n = loops_find(text, sites, &loops);
	char *whole;
	FILE *out = open_memstream(&whole, size);

	if (!out)
		give_up("out of memory");
	emit(text, sites, loops, n, out);
	free(loops);
	if (fclose(out))
		give_up("out of memory");
	return whole;
}

/* Assembly that somebody names may be a compiler's: whose registers were not kept free. */
static const char *why_not(const struct job *job, const struct text *text)
{
	const char *plain = getenv(ENV_PLAIN);

	if (plain && *plain)
		return plain;
	if (!text->compiled)
		return "not written by gcc or clang";
	if (job->given || text->preprocessed)
		return "not compiled here, but given as assembly";
	return text->intel ? "in Intel's syntax" : NULL;
}

/* The file itself, whose name is in messages and what debuggers are told; a pipe's is read. */
static int assemble_as_it_is(struct job *job)
{
	return job->input ? run(job->argv, 2) :
			    assemble(job, job->source, strlen(job->source), 2);
}

/* Warnings are passed on; errors are about what nobody wrote. */
static int assemble_checked(struct job *job, const char *what, size_t size)
{
	int says = memfd_create("messages", MFD_CLOEXEC), status;
	char *messages;

	if (says < 0)
		give_up("memfd_create: %s", strerror(errno));
	status = assemble(job, what, size, says);
	if (!status && !lseek(says, 0, SEEK_SET)) {
		messages = read_all(says, "messages");
		fputs(messages, stderr);
		free(messages);
	}
	close(says);
	return status;
}

static int instrument(struct job *job, const char *name)
{
	/* The parser cuts its own copy into lines. */
	char *copy = strdup(job->source), *changed;
	struct site *sites;
	struct text text;
	size_t size;
	const char *why;
	int status;

	if (!copy)
		give_up("out of memory");
	text_parse(&text, copy);
	why = why_not(job, &text);
	if (why) {
		tell(name, &text, NULL, why);
		return assemble_as_it_is(job);
	}
	sites = plan(&text);
	changed = with_checks(&text, sites, &size);
	status = assemble_checked(job, changed, size);
	if (!status) {
		tell(name, &text, sites, NULL);
		return 0;
	}
	status = assemble_as_it_is(job);
	if (!status) {
		say("%s: the assembler refuses it with checks: it has none", name);
		tell(name, &text, NULL, "refused by the assembler with checks");
	}
	return status;
}

/* A compiler gives one: if there are several, a value was taken for a file. */
static int several(const struct job *job, const char *name)
{
	say("%s: several files for the assembler: nothing is checked", name);
	tell(name, NULL, NULL, "several files for the assembler");
	return run(job->argv, 2);
}

int as_main(int argc, char **argv)
{
	const char *as = getenv(ENV_AS), *source = getenv(ENV_SOURCE);
	struct job job = { 0 };

	parse_args(&job, argc, argv);
	if (!as || !*as)
		give_up("is no assembler of its own: %s has to name one", ENV_AS);
	job.argv[0] = strdup(as);
	if (!source || !*source)
		source = job.input ? job.argv[job.input] : "standard input";
	if (job.inputs > 1)
		return several(&job, source);
	/* --version */
	if (!job.inputs && argc > 1 && !strncmp(argv[1], "--v", 3))
		return run(job.argv, 2);
	read_source(&job);
	return instrument(&job, source);
}
