/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_PLAN_H
#define TEMPEST_CC_PLAN_H

#include "insn.h"
#include "text.h"

/**
 * struct site - a line, and what becomes of it
 * @access: what it does with memory
 * @check: the register that the check may spoil, or NULL: the line stays as it is
 * @load: of a call through memory: what loads the address into that register; else NULL
 * @before_loop: outside of the segment it is tested before its loop, and not in there
 * @why: why it was left plain, though it may reach the segment; else NULL
 */
struct site {
	struct access access;
	const char *check;
	struct line *load;
	bool before_loop;
	const char *why;
};

/**
 * plan() - decides for each line of a file
 * @text: the file
 *
 * Return: one struct site for each line, to be freed by the caller.
 */
struct site *plan(struct text *text);

/* Are the arithmetic flags, as they are before that line, used from there on? */
bool flags_live(const struct text *text, size_t line);

#endif /* TEMPEST_CC_PLAN_H */
