/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_UNWIND_H
#define TEMPEST_CC_UNWIND_H

#include <stdbool.h>
#include <stdio.h>

#include "text.h"

#define MOST_REMEMBERED 16

/**
 * struct unwind - how callers are found at a place of a function: the .cfi lines that hold
 * @start: the one that begins, or NULL: nobody is to be found
 * @lines: those that hold, by their order
 * @n: how many
 * @room: for how many there is
 * @remembered: how many they were at .cfi_remember_state
 * @depth: how many of those there are
 */
struct unwind {
	const struct line *start;
	const struct line **lines;
	size_t n;
	size_t room;
	size_t remembered[MOST_REMEMBERED];
	int depth;
};

/* The next line of a file. Return: is that the end of a function? */
bool unwind_follow(struct unwind *unwind, const struct line *line);

/* Around code elsewhere that is as if it were here. */
void unwind_begin(const struct unwind *unwind, FILE *out);
void unwind_end(const struct unwind *unwind, FILE *out);

#endif /* TEMPEST_CC_UNWIND_H */
