/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Other people's programs: started for one point, pinned as our own two
 * processes are, watched, ended by their ids, and what they print kept.
 */
#ifndef HAMLYN_PERF_PEER_H
#define HAMLYN_PERF_PEER_H

#include "system/chan.h"

#define PEER_WORDS	32
#define PEER_TEXT	8192
#define PEER_ERRORS	1024

/* A command line. Words have to live until it has run. */
struct peer_command {
	const char *argv[PEER_WORDS + 1];	/* argv[0]: a path, or looked for in PATH */
	const char *env[8];	/* NAME=VALUE, besides what we have ourselves */
	uint32_t words;
	int cpu;		/* -1: it pins itself */
	const char *netns;	/* the network namespace that it is in, or NULL: ours */
};

/* What a program said: the beginning of stdout, the end of stderr. */
struct peer_said {
	char text[PEER_TEXT];
	char errors[PEER_ERRORS];
};

void peer_word(struct peer_command *command, const char *word);
void peer_words(struct peer_command *command, const char *const *words);

/* Is @program to be found in PATH, or where @program itself says? */
bool peer_installed(const char *program);

/* A port of 127.0.0.1 that is free now, as text; -1 if there is none. */
int peer_port(char *port, size_t room);

/* Both: 0 when all ended with status 0 within the time limit, else -1. */
int peer_run(const struct options *options, const struct peer_command *command,
	     struct peer_said *said);
/*
 * @client is started once @server listens on @port. What the client did
 * counts; a server that does not end by itself soon after is ended.
 */
int peer_run_pair(const struct options *options, const struct peer_command *server,
		  const struct peer_command *client, const char *port,
		  struct peer_said said[2]);

/* ---- how many times ------------------------------------------------------ */

/* What a repetition took the last time, to choose the next count by. */
struct peer_pace {
	double ns;		/* 0: nothing is known yet */
	size_t size;
};

/* How a program is asked to measure a point, and within which counts. */
struct peer_job {
	int (*run)(const struct options *options, const struct point *point,
		   const struct peer_job *job, uint64_t count, struct measure *measure);
	const void *arg;
	uint64_t min;
	uint64_t max;
};

/* Milliseconds for a point */
uint32_t peer_ms(const struct options *options);
/* @paces: one a test, zeroed before the first call */
int peer_measure(const struct options *options, const struct point *point,
		 const struct peer_job *job, struct peer_pace *paces,
		 struct measure *measure);

/* ---- what they print ----------------------------------------------------- */

/* The last line of @text that starts with a number: its numbers. */
uint32_t peer_numbers(const char *text, double *numbers, uint32_t max);

#endif /* HAMLYN_PERF_PEER_H */
