// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which lines get a check. Those of functions that a compiler made, which may reach the
 * segment, are understood, and have a register to spare. All others stay as they are: where
 * one of them does reach it, it is trapped.
 */
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "message.h"
#include "plan.h"

/**
 * struct function - what is known of one; its cold part, which is elsewhere, belongs to it
 * @name: not ended by 0
 * @length: of the name
 * @uses: it, or somebody's assembly in it, names %r11; %r10
 * @probes: it is between the first and the last instruction of gcc's probes of its stack
 * @frame: it sets %rbp to its stack
 * @other_rbp: it has something else there, too
 * @short_jumps: it has jumps that reach 127 bytes only
 */
struct function {
	const char *name;
	size_t length;
	bool uses[2];
	bool probes;
	bool frame;
	bool other_rbp;
	bool short_jumps;
};

static const char *const spare[2] = { "%r11", "%r10" };

struct functions {
	struct function *at;
	int n;
	int room;
};

static int function_named(struct functions *f, const char *name, size_t length)
{
	const char *cold = memmem(name, length, ".cold", 5);
	int i;

	if (cold)
		length = (size_t)(cold - name);
	/* A cold part comes soon after its function. */
	for (i = f->n - 1; cold && i >= 0; i--)
		if (f->at[i].length == length && !memcmp(f->at[i].name, name, length))
			return i;
	if (f->n == f->room) {
		f->room = 2 * f->room + 16;
		f->at = enlarge(f->at, (size_t)f->room * sizeof(*f->at));
	}
	f->at[f->n] = (struct function){ .name = name, .length = length };
	return f->n++;
}

/* ".type NAME, @function": Return: the name's length, or 0. */
static size_t type_function(const struct line *line, const char **name)
{
	const char *s = line->text + strspn(line->text, " \t");
	size_t n;

	if (line->kind != LINE_DIRECTIVE || strcmp(line->name, ".type") ||
	    !strstr(s, "@function"))
		return 0;
	s += strlen(".type");
	s += strspn(s, " \t");
	n = strcspn(s, ", \t");
	*name = s;
	return n;
}

static void find_functions(struct text *text, struct functions *f)
{
	int current = -1;
	const char *name;
	size_t i, n;

	for (i = 0; i < text->n; i++) {
		struct line *line = &text->lines[i];

		n = type_function(line, &name);
		if (n)
			current = function_named(f, name, n);
		else if (line->kind == LINE_DIRECTIVE && !strcmp(line->name, ".size"))
			current = -1;
		line->function = current;
	}
}

static bool is_frame(const struct line *line)
{
	return starts(line->name, "mov") && line->n_operands == 2 &&
	       operand_is(&line->operands[0], "%rsp") && operand_is(&line->operands[1], "%rbp");
}

static bool writes_rbp(const struct line *line)
{
	const struct operand *o;

	if (!line->n_operands)
		return false;
	o = &line->operands[line->n_operands - 1];
	if (line->name[0] == 'p' || starts(line->name, "cmp") || starts(line->name, "test"))
		return false;
	return *o->at == '%' && operand_has(o, "bp") && !is_frame(line);
}

static bool is_insn(const struct line *line, const char *name, const char *last)
{
	return line->kind == LINE_INSN && !line->from_asm && !strncmp(line->name, name, 3) &&
	       line->n_operands == 2 && operand_is(&line->operands[1], last);
}

/*
 * -fstack-clash-protection: the end of a large frame is in %r11 while its pages are touched,
 * before anything else is accessed. Return: is that line one of it, and as ever?
 */
static bool is_probe(struct function *f, const struct line *line)
{
	bool was = f->probes;

	if (!was) {
		f->probes = is_insn(line, "lea", "%r11") &&
			    operand_has(&line->operands[0], "(%rsp)");
		return f->probes;
	}
	if ((is_insn(line, "sub", "%rsp") || is_insn(line, "or", "(%rsp)") ||
	     is_insn(line, "orq", "(%rsp)")) && *line->operands[0].at == '$')
		return true;
	f->probes = false;
	/* What is there in its place needs the register. */
	if (!is_insn(line, "cmp", "%rsp") || !operand_is(&line->operands[0], "%r11"))
		f->uses[0] = true;
	return true;
}

static void look(struct function *f, const struct line *line)
{
	if (line->kind != LINE_INSN && line->kind != LINE_OTHER)
		return;
	if (!is_probe(f, line))
		f->uses[0] |= !!strstr(line->text, spare[0]);
	f->uses[1] |= !!strstr(line->text, spare[1]);
	f->short_jumps |= starts(line->name, "loop") || strstr(line->name, "cxz");
	f->frame |= is_frame(line);
	f->other_rbp |= line->from_asm || writes_rbp(line);
}

/* A number alone may be an address in the segment; the name of a variable is not. */
static bool names_variable(const struct operand *o)
{
	return !operand_has(o, "(") && *o->at != '-' && (*o->at < '0' || *o->at > '9');
}

/* Stacks, variables of the program and of its threads are not in the segment. */
static bool elsewhere(const struct function *f, const struct operand *o)
{
	if (operand_has(o, "%rsp") || operand_has(o, "%rip") || operand_has(o, "%fs:") ||
	    (names_variable(o) && *o->at != '*'))
		return true;
	return operand_has(o, "(%rbp") && f->frame && !f->other_rbp;
}

static bool reaches_nothing(const struct line *line)
{
	return starts(line->name, "lea") || starts(line->name, "nop") ||
	       starts(line->name, "prefetch") || starts(line->name, "clflush") ||
	       starts(line->name, "clwb");
}

/* Jumps and calls name what is no memory, or a switch's table. */
static bool transfers(const struct line *line)
{
	if (line->name[0] != 'j' && !starts(line->name, "call") && !starts(line->name, "loop"))
		return false;
	return *line->operands[0].at != '*' || *(line->operands[0].at + 1) == '%' ||
	       starts(line->operands[0].at, "*.L");
}

/*
 * A call through memory, which may be an object's: the address is loaded with a check, and
 * then called. Tables of the program's own have a name.
 */
static bool is_call_of_object(const struct line *line)
{
	const struct operand *o = &line->operands[0];

	return (!strcmp(line->name, "call") || !strcmp(line->name, "callq")) &&
	       line->n_operands == 1 && o->length > 1 && *o->at == '*' &&
	       (o->at[1] == '(' || o->at[1] == '-' || (o->at[1] >= '0' && o->at[1] <= '9'));
}

/* The line that loads what is called */
static struct line call_load(const struct line *line, const char *to)
{
	struct line load = *line;

	memcpy(load.name, "movq", sizeof("movq"));
	load.operands[0].at++;
	load.operands[0].length--;
	load.operands[1] = (struct operand){ to, strlen(to) };
	load.n_operands = 2;
	return load;
}

static const char *spare_register(const struct function *f)
{
	return !f->uses[0] ? spare[0] : !f->uses[1] ? spare[1] : NULL;
}

static void decide(const struct text *text, size_t i, const struct function *f, struct site *site)
{
	const struct line *line = &text->lines[i];
	int memory;

	if (line->kind == LINE_OTHER) {
		site->why = "not understood";
		return;
	}
	memory = insn_memory(line);
	if (line->prefix) {
		site->why = starts(line->name, "rep") ? "string instruction" : "prefix";
		return;
	}
	if (!line->n_operands || memory < 0 || transfers(line) || reaches_nothing(line) ||
	    elsewhere(f, &line->operands[memory]))
		return;
	if (line->from_asm) {
		site->why = "assembly of the program's own";
		return;
	}
	if (is_call_of_object(line) && spare_register(f)) {
		site->load = enlarge(NULL, sizeof(*site->load));
		*site->load = call_load(line, spare_register(f));
	}
	site->why = insn_access(site->load ? site->load : line, &site->access);
	if (site->why)
		return;
	if (site->access.size > TEMPEST_BLOCK_SIZE)
		site->why = "larger than a block";
	else if (!spare_register(f))
		site->why = "no register to spare";
	else if (f->short_jumps)
		site->why = "function with short jumps";
	else if (flags_live(text, i))
		site->why = "flags in use";
	else
		site->check = spare_register(f);
}

struct site *plan(struct text *text)
{
	struct functions f = { 0 };
	struct site *sites = enlarge(NULL, (text->n + 1) * sizeof(*sites));
	size_t i;

	memset(sites, 0, (text->n + 1) * sizeof(*sites));
	find_functions(text, &f);
	/*
	 * Which functions leave %r10 alone is known to others in gcc's file (-fipa-ra), who
	 * keep values there; and functions within others may hand it on.
	 */
	for (i = 0; text->gcc && i < (size_t)f.n; i++)
		f.at[i].uses[1] = true;
	for (i = 0; i < text->n; i++)
		if (text->lines[i].function >= 0)
			look(&f.at[text->lines[i].function], &text->lines[i]);
	for (i = 0; i < text->n; i++) {
		const struct line *line = &text->lines[i];

		if (line->function >= 0 && (line->kind == LINE_INSN || line->kind == LINE_OTHER))
			decide(text, i, &f.at[line->function], &sites[i]);
	}
	free(f.at);
	return sites;
}
