/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_OPTIONS_H
#define TEMPEST_CC_OPTIONS_H

#include <stdbool.h>

/**
 * struct options - the command line
 * @compiler: gcc, clang, or their like for C++
 * @report: a file, or NULL
 * @plain: nothing is checked
 * @why_plain: nothing can be checked, and why; or NULL
 * @links: it is to link, too
 * @shared: it makes a shared library
 * @is_static: it is linked with archives only
 * @needs_library: a program is linked, and with the library
 * @source: the only file that is compiled, or NULL
 * @no_comments: assembly is to be without the compiler's comments
 * @given: a line for each file that is assembly already, or NULL
 * @rest: what is the compiler's, ended by NULL
 * @n: how many words that is
 * @words: the same with the words of each @FILE in its place
 * @n_words: how many
 */
struct options {
	const char *compiler;
	const char *report;
	bool plain;
	const char *why_plain;
	bool links;
	bool shared;
	bool is_static;
	bool needs_library;
	const char *source;
	bool no_comments;
	char *given;
	char **rest;
	int n;
	char **words;
	int n_words;
};

/* Return: 0, 1 if all was told already (--help), or -1 if it was wrong and said so. */
int options_parse(int argc, char **argv, struct options *options);

#endif /* TEMPEST_CC_OPTIONS_H */
