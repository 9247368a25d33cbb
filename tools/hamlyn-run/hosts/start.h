/* SPDX-License-Identifier: GPL-2.0-only */
/* What an agent has to know to start the processes of its host. */
#ifndef RUN_START_H
#define RUN_START_H

#include <stdbool.h>
#include <stddef.h>

#include "options.h"

/**
 * struct start - as it comes out of FRAME_START
 * @options: as on the command line, as far as they concern processes
 * @first: the first process of this host
 * @processes: how many
 * @folder: to run in
 * @variables: NAME=VALUE, ended by NULL, for those that have not got NAME
 * @text: what all of it points into
 * @words: what @variables and the command point into
 */
struct start {
	struct options options;
	int first;
	int processes;
	const char *folder;
	char **variables;
	char *text;
	char **words;
};

/* Return: memory to be freed, of @n bytes */
char *start_pack(const struct options *options, int first, int processes, size_t *n);

/* Return: 0, or -1 if it is none */
int start_unpack(struct start *start, const char *data, size_t n);
void start_free(struct start *start);

#endif /* RUN_START_H */
