// SPDX-License-Identifier: GPL-2.0-only
/*
 * Innermost loops. Most addresses in them go on in even steps, or not at all: outside of the
 * segment at first they remain there. So such a loop is there twice: as it was, and with
 * checks, and before it is entered a test decides which it is. Where that is wrong about an
 * address, it is trapped, as anywhere. Of addresses that are loaded in the loop each is still
 * tested, but what is in the way of what depends on where they begin.
 *
 * The loop as it was is also the faster one in pages all of whose blocks allow the access. Where
 * it comes to another page it is trapped, and goes on in the other loop: abi.h.
 *
 * It must be entered by its label only, have no calls, and be nobody's but the compiler's.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "loop.h"
#include "message.h"

#define MOST_LINES	200

/**
 * struct references - who names a label
 * @first, @last: the first and last jump that does
 * @jumps: there is one
 * @others: something else does, as a table
 */
struct references {
	size_t first;
	size_t last;
	bool jumps;
	bool others;
};

/**
 * struct steps - a register in a loop
 * @even: numbers, or registers, are added to it
 * @other: something else is done to it
 */
struct steps {
	bool even;
	bool other;
};

static const char *const registers[16][4] = {
	{ "rax", "eax", "ax", "al" }, { "rbx", "ebx", "bx", "bl" },
	{ "rcx", "ecx", "cx", "cl" }, { "rdx", "edx", "dx", "dl" },
	{ "rsi", "esi", "si", "sil" }, { "rdi", "edi", "di", "dil" },
	{ "rbp", "ebp", "bp", "bpl" }, { "rsp", "esp", "sp", "spl" },
	{ "r8", "r8d", "r8w", "r8b" }, { "r9", "r9d", "r9w", "r9b" },
	{ "r10", "r10d", "r10w", "r10b" }, { "r11", "r11d", "r11w", "r11b" },
	{ "r12", "r12d", "r12w", "r12b" }, { "r13", "r13d", "r13w", "r13b" },
	{ "r14", "r14d", "r14w", "r14b" }, { "r15", "r15d", "r15w", "r15b" },
};

/* Its number by its name behind the %, or -1 */
static int register_of(const char *name, size_t length)
{
	int i, j;

	for (i = 0; i < 16; i++)
		for (j = 0; j < 4; j++)
			if (strlen(registers[i][j]) == length &&
			    !memcmp(registers[i][j], name, length))
				return i;
	return -1;
}

/**
 * struct address - of what an operand's address is made
 * @base, @index: registers, or -1
 * @scale: of the index, 1 where there is none
 */
struct address {
	int base;
	int index;
	int scale;
};

static int next_register(const char **s, const char *end)
{
	const char *from = *s + (*s < end && **s == '%');
	size_t n = 0;

	while (from + n < end && from[n] != ',' && from[n] != ')')
		n++;
	*s = from + n + (from + n < end && from[n] == ',');
	return n ? register_of(from, n) : -1;
}

static struct address address_of(const struct operand *o)
{
	struct address a = { -1, -1, 1 };
	const char *end = o->at + o->length, *s = memchr(o->at, '(', o->length);

	if (!s)
		return a;
	s++;
	a.base = next_register(&s, end);
	if (s < end && *s == '%') {
		a.index = next_register(&s, end);
		if (s < end && *s >= '1' && *s <= '8')
			a.scale = *s - '0';
	}
	return a;
}

/* ---- who names labels ---- */

static bool is_jump(const struct line *line)
{
	return line->kind == LINE_INSN && line->name[0] == 'j';
}

static void note(struct references *r, size_t i, bool jump)
{
	if (!jump) {
		r->others = true;
		return;
	}
	if (!r->jumps)
		r->first = i;
	r->last = i;
	r->jumps = true;
}

/* How many bytes of a name are there still? */
static size_t label_rest(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || (s[n] && strchr("._$", s[n])))
		n++;
	return n;
}

static struct references *find_references(const struct text *text)
{
	struct references *all = enlarge(NULL, (text->n + 1) * sizeof(*all));
	size_t i;

	memset(all, 0, (text->n + 1) * sizeof(*all));
	for (i = 0; i < text->n; i++) {
		const struct line *line = &text->lines[i];
		const char *s = line->text;

		if (line->kind == LINE_LABEL || line->kind == LINE_EMPTY)
			continue;
		while ((s = strstr(s, ".L"))) {
			struct operand name = { s, 2 };
			long at;

			name.length += label_rest(s + name.length);
			at = text_label(text, &name);
			if (at >= 0)
				note(&all[at], i, is_jump(line) && line->n_operands == 1 &&
				     line->operands[0].at == s &&
				     line->operands[0].length == name.length);
			s += name.length;
		}
	}
	return all;
}

/* Of no meaning to the program: gcc's and clang's for debuggers */
static bool is_debug_label(const char *name)
{
	if (starts(name, ".LVL") || starts(name, ".LBI") || starts(name, ".Ltmp"))
		return true;
	return (starts(name, ".LBB") || starts(name, ".LBE")) && !strchr(name, '_');
}

/* ---- what a loop is ---- */

long loop_target(const struct text *text, const struct loop *loop, const struct line *line)
{
	long at;

	if (!is_jump(line) || line->n_operands != 1)
		return -1;
	at = text_label(text, &line->operands[0]);
	return at >= (long)loop->first && at <= (long)loop->last ? at : -1;
}

static bool label_is_ours(const struct loop *loop, const struct line *line,
			  const struct references *r)
{
	if (!r->jumps)
		return !r->others || is_debug_label(line->name);
	return !r->others && r->first >= loop->first && r->last <= loop->last;
}

static bool directive_is_harmless(const struct line *line)
{
	return !strcmp(line->name, ".loc") || !strcmp(line->name, ".p2align") ||
	       !strcmp(line->name, ".align") || !strcmp(line->name, ".balign");
}

/* Can there be a copy of that line elsewhere? */
static bool line_is_simple(const struct text *text, const struct loop *loop, size_t i,
			   const struct references *all)
{
	const struct line *line = &text->lines[i];
	long to;

	switch (line->kind) {
	case LINE_EMPTY:
		return true;
	case LINE_LABEL:
		return i == loop->first || label_is_ours(loop, line, &all[i]);
	case LINE_DIRECTIVE:
		return directive_is_harmless(line);
	case LINE_INSN:
		break;
	default:
		return false;
	}
	if (line->from_asm || line->prefix || starts(line->name, "call"))
		return false;
	if (!is_jump(line))
		return !strstr(line->text, ".L") || strstr(line->text, ".LC");
	if (line->n_operands != 1 || *line->operands[0].at != '.')
		return line->n_operands == 1 && *line->operands[0].at != '*';
	to = loop_target(text, loop, line);
	/* A jump back to somewhere within is another loop, that this one is around of. */
	return to < 0 || to > (long)i || to == (long)loop->first;
}

static bool is_loop(const struct text *text, const struct references *all, struct loop *loop)
{
	const struct line *label = &text->lines[loop->first];
	size_t i;

	if (label->name[0] != '.' || label->function < 0 || !all[loop->first].jumps)
		return false;
	loop->last = all[loop->first].last;
	if (loop->last <= loop->first || loop->last - loop->first > MOST_LINES ||
	    text->lines[loop->last].function != label->function)
		return false;
	for (i = loop->first; i <= loop->last; i++)
		if (!line_is_simple(text, loop, i, all))
			return false;
	return true;
}

/* ---- which addresses remain where they are ---- */

static bool adds(const struct line *line, int to)
{
	const struct operand *from = &line->operands[0];

	if (line->n_operands == 1)
		return starts(line->name, "inc") || starts(line->name, "dec");
	if (line->n_operands != 2)
		return false;
	if (starts(line->name, "lea"))
		return address_of(from).base == to;
	return (starts(line->name, "add") || starts(line->name, "sub")) &&
	       (*from->at == '$' || *from->at == '%');
}

static bool writes_nothing(const struct line *line)
{
	return !line->n_operands || is_jump(line) || starts(line->name, "cmp") ||
	       starts(line->name, "test") || starts(line->name, "push");
}

/* Some write more than their last operand: rax and rdx, as far as compilers have them. */
static void implicit(const struct line *line, struct steps *steps)
{
	if (!line->n_operands || (line->n_operands == 1 && strstr(line->name, "mul")) ||
	    (line->n_operands == 1 && strstr(line->name, "div")) ||
	    starts(line->name, "cmpxchg")) {
		steps[0].other = true;
		steps[3].other = true;
	}
}

static void find_steps(const struct text *text, const struct loop *loop, struct steps *steps)
{
	size_t i;

	for (i = loop->first; i <= loop->last; i++) {
		const struct line *line = &text->lines[i];
		const struct operand *to;
		int r;

		if (line->kind != LINE_INSN)
			continue;
		implicit(line, steps);
		if (writes_nothing(line))
			continue;
		to = &line->operands[line->n_operands - 1];
		r = *to->at == '%' ? register_of(to->at + 1, to->length - 1) : -1;
		if (r < 0)
			continue;
		if (adds(line, r))
			steps[r].even = true;
		else
			steps[r].other = true;
	}
}

/* What is multiplied is no pointer, but counts; where the two are alike both must be even. */
static bool remains(const struct address *a, const struct steps *steps)
{
	if (steps[a->base].other)
		return false;
	return a->index < 0 || a->scale > 1 || !steps[a->index].other;
}

void loop_address(const struct line *line, const struct access *access, FILE *to)
{
	const struct operand *o = &line->operands[access->operand];
	struct address a = address_of(o);

	if (a.index >= 0 && a.scale > 1)
		fprintf(to, "(%%%s)", registers[a.base][0]);
	else
		fprintf(to, "%.*s", (int)o->length, o->at);
}

static bool same_object(const struct address *a, const struct address *b)
{
	if (a->base != b->base)
		return false;
	return (a->scale > 1 && b->scale > 1) || a->index == b->index;
}

/* Which test is about this address? A new one, an old one, or -1 if there are enough. */
static int test_of(const struct text *text, const struct site *sites, struct loop *loop, size_t i,
		   const struct address *a)
{
	int t;

	for (t = 0; t < loop->n_tests; t++) {
		size_t line = loop->tests[t];
		struct address b =
			address_of(&text->lines[line].operands[sites[line].access.operand]);

		if (!same_object(a, &b))
			continue;
		loop->pages[t] &= a->index == b.index;
		return t;
	}
	if (t == MOST_TESTS)
		return -1;
	loop->tests[t] = i;
	loop->pages[t] = true;
	loop->n_tests++;
	return t;
}

/* Where it is now says where it will be next: neither of the two registers jumps. */
static bool is_even(const struct address *a, const struct steps *steps)
{
	return !steps[a->base].other && (a->index < 0 || !steps[a->index].other);
}

/*
 * Addresses that remain are decided on by a test before the loop. Of the others it only says
 * which loop is the faster one. Return: is there anything to test?
 */
static bool hoist(const struct text *text, struct site *sites, struct loop *loop)
{
	struct steps steps[16] = { 0 };
	int remain;
	size_t i;

	find_steps(text, loop, steps);
	for (remain = 1; remain >= 0; remain--) {
		for (i = loop->first; i <= loop->last; i++) {
			struct address a;
			int t;

			if (!sites[i].check)
				continue;
			a = address_of(&text->lines[i].operands[sites[i].access.operand]);
			if (a.base < 0 || remains(&a, steps) != remain)
				continue;
			loop->check = sites[i].check;
			t = test_of(text, sites, loop, i, &a);
			if (t < 0)
				continue;
			sites[i].before_loop = remain;
			loop->pages[t] &= is_even(&a, steps);
			loop->writes[t] |= sites[i].access.write;
		}
	}
	return loop->n_tests;
}

size_t loops_find(const struct text *text, struct site *sites, struct loop **loops)
{
	struct references *all = find_references(text);
	size_t i, n = 0;

	*loops = NULL;
	for (i = 0; i < text->n; i++) {
		struct loop loop = { .first = i };

		if (text->lines[i].kind != LINE_LABEL || !is_loop(text, all, &loop) ||
		    flags_live(text, i) || !hoist(text, sites, &loop))
			continue;
		if (!(n & (n + 1)))
			*loops = enlarge(*loops, 2 * (n + 1) * sizeof(**loops));
		(*loops)[n++] = loop;
		i = loop.last;
	}
	free(all);
	return n;
}
