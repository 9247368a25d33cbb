// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of the arithmetic flags. A check changes them, so it cannot be put where they are
 * needed afterwards; where that is not seen, they are.
 */
#include <string.h>

#include "plan.h"

/* Lines and jumps that are followed: compilers set flags shortly before they use them. */
#define MAX_LINES	400
#define MAX_JUMPS	8

static bool is_jump(const struct line *line)
{
	return !strcmp(line->name, "jmp") || !strcmp(line->name, "jmpq");
}

/* Where a jump goes: a line, -1 out of the function, -2 nobody knows. */
static long target(const struct text *text, const struct line *line)
{
	const struct operand *o = &line->operands[0];
	long at;

	if (line->n_operands != 1 || *o->at == '*' || *o->at != '.')
		return line->n_operands == 1 && *o->at != '*' && *o->at != '.' ? -1 : -2;
	at = text_label(text, o);
	return at < 0 ? -2 : at;
}

bool flags_live(const struct text *text, size_t line)
{
	int lines, jumps = 0;

	for (lines = 0; line < text->n && lines < MAX_LINES; line++, lines++) {
		const struct line *l = &text->lines[line];
		long to;

		/* Code of a person between, or several statements: anything may be there. */
		if (l->from_asm || l->kind == LINE_OTHER)
			return true;
		if (l->kind != LINE_INSN)
			continue;
		if (l->prefix || insn_reads_flags(l))
			return true;
		if (insn_kills_flags(l))
			return false;
		if (!is_jump(l))
			continue;
		to = target(text, l);
		/* A function begins with flags of no meaning. */
		if (to < 0 || ++jumps > MAX_JUMPS)
			return to != -1;
		line = (size_t)to;
	}
	return true;
}
