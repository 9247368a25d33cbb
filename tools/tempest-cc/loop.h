/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_LOOP_H
#define TEMPEST_CC_LOOP_H

#include <stdio.h>

#include "plan.h"
#include "text.h"

/* Addresses that are tested before a loop */
#define MOST_TESTS	4

/**
 * struct loop - an innermost loop whose accesses are tested once, before it
 * @first: its label, which everybody who enters it jumps to or falls into
 * @last: its last jump back
 * @tests: lines whose address is tested; those of others differ from one of them by a number
 * @pages: of each test: it is about all that its accesses reach, one even step after the other
 * @writes: of each test: one of its accesses stores
 * @n_tests: how many
 * @check: the register that tests may spoil
 */
struct loop {
	size_t first;
	size_t last;
	size_t tests[MOST_TESTS];
	bool pages[MOST_TESTS];
	bool writes[MOST_TESTS];
	int n_tests;
	const char *check;
};

/**
 * loops_find() - finds loops that there are to be two of
 * @text: a file
 * @sites: what becomes of its lines; those that are tested before a loop are marked
 * @loops: the loops in their order, to be freed by the caller
 *
 * Return: how many.
 */
size_t loops_find(const struct text *text, struct site *sites, struct loop **loops);

/*
 * Writes the address that is tested for a line of a loop: its operand, or the register that
 * leads it.
 */
void loop_address(const struct line *line, const struct access *access, FILE *to);

/* Is the operand, of a jump, a label within the loop? Return: its line, or -1. */
long loop_target(const struct text *text, const struct loop *loop, const struct line *line);

#endif /* TEMPEST_CC_LOOP_H */
