// SPDX-License-Identifier: GPL-2.0-only
/*
 * Words of the launcher, with the host's name for each %h, and behind them the agent. What it
 * is to run does not go through the launcher: a shell there would divide it anew.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hosts/launch.h"
#include "message.h"

/* @n bytes of @text, with @name for each "%h"; @found: there was one */
static char *insert_name(const char *text, size_t n, const char *name, bool *found)
{
	char *word = allocate(n * (strlen(name) + 1) + 1, 1), *at = word;
	size_t i;

	for (i = 0; i < n; i++) {
		if (text[i] == '%' && i + 1 < n && text[i + 1] == 'h') {
			at = stpcpy(at, name);
			*found = true;
			i++;
		} else {
			*at++ = text[i];
		}
	}
	return word;
}

static char *copy(const char *text)
{
	char *own = allocate(strlen(text) + 1, 1);

	memcpy(own, text, strlen(text));
	return own;
}

/* The same program, where it is here: it belongs to the same installation */
static char *own_path(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0)
		return copy("hamlyn-run");
	path[n] = 0;
	return copy(path);
}

char **launch_words(const struct options *options, const struct host *host)
{
	const char *text = host_is_here(host) ? "" : options->launch ? options->launch :
		LAUNCH_COMMAND;
	char **words = allocate(LAUNCH_WORDS + 4, sizeof(*words));
	bool found = false;
	size_t length;
	int n = 0;

	for (;;) {
		text += strspn(text, " \t");
		length = strcspn(text, " \t");
		if (!length || n == LAUNCH_WORDS)
			break;
		words[n++] = insert_name(text, length, host->name, &found);
		text += length;
	}
	if (!found && n)
		words[n++] = copy(host->name);
	words[n] = n && options->agent_path ? copy(options->agent_path) : own_path();
	words[n + 1] = copy("--agent");
	return words;
}

void launch_free(char **words)
{
	int i;

	for (i = 0; words[i]; i++)
		free(words[i]);
	free(words);
}
