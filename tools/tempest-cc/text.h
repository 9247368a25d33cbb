/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_TEXT_H
#define TEMPEST_CC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define MAX_OPERANDS 5

/**
 * enum line_kind - what a line of assembly is
 * @LINE_EMPTY: empty, or a comment
 * @LINE_OTHER: what the parser does not understand, or several statements
 * @LINE_LABEL: NAME: and nothing behind it
 * @LINE_DIRECTIVE: .name ...
 * @LINE_INSN: one instruction
 */
enum line_kind { LINE_EMPTY, LINE_OTHER, LINE_LABEL, LINE_DIRECTIVE, LINE_INSN };

/**
 * struct operand - an operand as it is written, without blanks around it
 * @at: where it begins in the text of its line
 * @length: in bytes
 */
struct operand {
	const char *at;
	size_t length;
};

/**
 * struct line - one line
 * @text: as it was read, without its end; never changed
 * @kind: what it is
 * @from_asm: between #APP and #NO_APP, or clang's words for it: written by a person
 * @lock: the instruction has the prefix lock
 * @prefix: it has another prefix (rep, notrack, ...), or more than MAX_OPERANDS operands
 * @name: of the label, directive or instruction
 * @operands: of the instruction, in AT&T order: the destination is the last one
 * @n_operands: how many
 * @function: the number of the function that it is part of, or -1
 */
struct line {
	const char *text;
	enum line_kind kind;
	bool from_asm;
	bool lock;
	bool prefix;
	char name[32];
	struct operand operands[MAX_OPERANDS];
	int n_operands;
	int function;
};

/**
 * struct text - a file of assembly
 * @lines: its lines
 * @n: how many
 * @labels: those that are labels, by name
 * @n_labels: how many
 * @compiled: it is the work of gcc or clang, not a person's
 * @gcc: of gcc
 * @preprocessed: it was a .S, with lines that tell where others come from
 * @intel: it is in Intel's syntax, at least in part
 */
struct text {
	struct line *lines;
	size_t n;
	struct line **labels;
	size_t n_labels;
	bool compiled;
	bool gcc;
	bool preprocessed;
	bool intel;
};

static inline bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* Is it one of the words of a list, each of which has a blank on both sides? */
bool in_list(const char *list, const char *word, size_t n);

/* Splits @source, which has to last as long as @text, into lines. */
void text_parse(struct text *text, char *source);

/* Is that operand, as a whole, this? */
bool operand_is(const struct operand *operand, const char *what);

/* Does it have that string in it? */
bool operand_has(const struct operand *operand, const char *what);

/* The index of a label's line, or -1. A name that is cut off in its line is not found. */
long text_label(const struct text *text, const struct operand *name);

#endif /* TEMPEST_CC_TEXT_H */
