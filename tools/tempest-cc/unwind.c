// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "message.h"
#include "unwind.h"

static void hold(struct unwind *u, const struct line *line)
{
	if (u->n == u->room) {
		u->room = 2 * u->room + 16;
		u->lines = enlarge(u->lines, u->room * sizeof(const struct line *));
	}
	u->lines[u->n++] = line;
}

bool unwind_follow(struct unwind *u, const struct line *line)
{
	const char *name = line->name;

	if (line->kind != LINE_DIRECTIVE || !starts(name, ".cfi_"))
		return false;
	if (!strcmp(name, ".cfi_startproc")) {
		u->start = line;
		u->n = 0;
		u->depth = 0;
	} else if (!strcmp(name, ".cfi_endproc")) {
		u->start = NULL;
		return true;
	} else if (!strcmp(name, ".cfi_remember_state")) {
		if (u->depth < MOST_REMEMBERED)
			u->remembered[u->depth] = u->n;
		u->depth++;
	} else if (!strcmp(name, ".cfi_restore_state")) {
		if (u->depth && --u->depth < MOST_REMEMBERED)
			u->n = u->remembered[u->depth];
	} else if (strcmp(name, ".cfi_personality") && strcmp(name, ".cfi_lsda")) {
		/* What is thrown is by calls, of which there are none elsewhere. */
		hold(u, line);
	}
	return false;
}

void unwind_begin(const struct unwind *u, FILE *out)
{
	size_t i;

	if (!u->start)
		return;
	fprintf(out, "%s\n", u->start->text);
	for (i = 0; i < u->n; i++)
		fprintf(out, "%s\n", u->lines[i]->text);
}

void unwind_end(const struct unwind *u, FILE *out)
{
	if (u->start)
		fputs("\t.cfi_endproc\n", out);
}
