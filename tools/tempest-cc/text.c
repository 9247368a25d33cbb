// SPDX-License-Identifier: GPL-2.0-only
/* Lines of AT&T assembly, as compilers write them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "text.h"

static const char *blanks(const char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return s;
}

static size_t word(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || (s[n] && strchr("._$@", s[n])))
		n++;
	return n;
}

/* Cuts the next operand off: at a comma outside parentheses. */
static const char *next_operand(const char *s, const char *end, struct operand *operand)
{
	int depth = 0;
	const char *p;

	s = blanks(s);
	for (p = s; p < end && (*p != ',' || depth); p++)
		depth += (*p == '(') - (*p == ')');
	operand->at = s;
	operand->length = (size_t)(p - s);
	while (operand->length && isspace((unsigned char)s[operand->length - 1]))
		operand->length--;
	return p < end ? p + 1 : end;
}

static void parse_insn(struct line *line, const char *s)
{
	const char *end = s + strcspn(s, "#;");
	size_t n;

	line->kind = LINE_OTHER;
	/* What stands behind a semicolon is another statement. */
	if (*end == ';')
		return;
	n = word(s);
	if (n == 4 && starts(s, "lock")) {
		line->lock = true;
		s = blanks(s + n);
		n = word(s);
	} else if (starts(s, "rep") || (n == 7 && starts(s, "notrack")) || *s == '{') {
		line->prefix = true;
	}
	if (!n || n >= sizeof(line->name) || !islower((unsigned char)*s))
		return;
	line->kind = LINE_INSN;
	memcpy(line->name, s, n);
	s = blanks(s + n);
	while (s < end) {
		if (line->n_operands == MAX_OPERANDS) {
			line->prefix = true;
			return;
		}
		s = next_operand(s, end, &line->operands[line->n_operands++]);
	}
}

/* As much as there is room for */
static void keep_name(struct line *line, const char *s, size_t n)
{
	if (n >= sizeof(line->name))
		n = sizeof(line->name) - 1;
	memcpy(line->name, s, n);
}

static void parse_line(struct line *line)
{
	const char *s = blanks(line->text);
	size_t n = word(s);

	if (n && s[n] == ':') {
		/* Something may stand behind it; nothing is put in between. */
		line->kind = *blanks(s + n + 1) && *blanks(s + n + 1) != '#' ? LINE_OTHER :
									      LINE_LABEL;
		keep_name(line, s, n);
	} else if (*s == '.') {
		line->kind = LINE_DIRECTIVE;
		keep_name(line, s, n);
	} else if (*s && *s != '#') {
		parse_insn(line, s);
	}
}

static void add_line(struct text *text, const char *s, bool from_asm)
{
	struct line *line;

	if (!(text->n & (text->n + 1)))
		text->lines = enlarge(text->lines, 2 * (text->n + 1) * sizeof(*text->lines));
	line = &text->lines[text->n++];
	memset(line, 0, sizeof(*line));
	line->text = s;
	line->from_asm = from_asm;
	line->function = -1;
	parse_line(line);
}

/* gcc and clang leave their names, or gcc its line in front of a file from -fno-ident. */
static void note_compiler(struct text *text, const char *s)
{
	bool ident = starts(s, ".ident"), gcc = ident && strstr(s, "GCC");

	gcc |= starts(s, "# GNU C");
	text->gcc |= gcc;
	text->compiled |= gcc || (ident && strstr(s, "clang"));
}

/* Outside of functions clang has no #APP. */
static bool is_from_asm(const char *s, bool before)
{
	if (starts(s, "#APP") || starts(s, "# Start of file scope inline assembly"))
		return true;
	if (starts(s, "#NO_APP") || starts(s, "# End of file scope inline assembly"))
		return false;
	return before;
}

/* "# 1 "FILE"", which is gcc's own in #APP only */
static bool is_line_marker(const char *s)
{
	size_t n = starts(s, "# ") ? strspn(s + 2, "0123456789") : 0;

	return n && starts(s + 2 + n, " \"");
}

/* What a line tells about the file */
static void note(struct text *text, const char *s, bool from_asm)
{
	note_compiler(text, s);
	text->preprocessed |= !from_asm && is_line_marker(s);
	text->intel |= starts(s, ".intel_syntax");
}

static int compare_labels(const void *a, const void *b)
{
	const struct line *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static void index_labels(struct text *text)
{
	size_t i;

	text->labels = enlarge(NULL, (text->n + 1) * sizeof(*text->labels));
	for (i = 0; i < text->n; i++)
		if (text->lines[i].kind == LINE_LABEL)
			text->labels[text->n_labels++] = &text->lines[i];
	qsort(text->labels, text->n_labels, sizeof(*text->labels), compare_labels);
}

void text_parse(struct text *text, char *source)
{
	bool from_asm = false;
	char *s, *end;

	*text = (struct text){ 0 };
	for (s = source; *s; s = end + 1) {
		bool last;

		end = s + strcspn(s, "\n");
		last = !*end;
		*end = 0;
		from_asm = is_from_asm(blanks(s), from_asm);
		note(text, blanks(s), from_asm);
		add_line(text, s, from_asm);
		if (last)
			break;
	}
	index_labels(text);
}

bool in_list(const char *list, const char *word, size_t n)
{
	const char *p;

	for (p = list; n && (p = memmem(p, strlen(p), word, n)); p++)
		if (p > list && p[-1] == ' ' && p[n] == ' ')
			return true;
	return false;
}

bool operand_is(const struct operand *operand, const char *what)
{
	return operand->length == strlen(what) && !memcmp(operand->at, what, operand->length);
}

bool operand_has(const struct operand *operand, const char *what)
{
	return memmem(operand->at, operand->length, what, strlen(what));
}

long text_label(const struct text *text, const struct operand *name)
{
	struct line key = { 0 }, *want = &key, **found;

	if (name->length >= sizeof(key.name))
		return -1;
	memcpy(key.name, name->at, name->length);
	found = bsearch(&want, text->labels, text->n_labels, sizeof(want), compare_labels);
	return found ? *found - text->lines : -1;
}
