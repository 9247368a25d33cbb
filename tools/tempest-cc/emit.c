// SPDX-License-Identifier: GPL-2.0-only
/*
 * The access is the last instruction of its section, so it is never done twice: whoever is
 * interrupted before it begins with the look at the tag again, and after it is through.
 */
#include <stdlib.h>
#include <string.h>

#include "base/abi.h"
#include "emit.h"
#include "loop.h"
#include "message.h"
#include "unwind.h"

_Static_assert(TEMPEST_WHOLE_BASE == (TEMPEST_SEGMENT_BASE >> TEMPEST_PAGE_SHIFT |
				      1l << TEMPEST_WHOLE_BIT), "it is set by setting a bit");

/* The variable's name, which is a macro, as a string */
#define STRING_(x)	#x
#define STRING(x)	STRING_(x)

/**
 * struct place - where something is written
 * @line, @site: what it is about
 * @number: of labels, which are never used twice
 * @out: the file
 * @aside: what is out of the way, of code whose addresses are expected to be in the segment
 * @own_section: its function has one, which the linker may leave out (-ffunction-sections)
 */
struct place {
	const struct line *line;
	const struct site *site;
	unsigned int number;
	FILE *out;
	FILE *aside;
	bool own_section;
};

static const struct operand *memory(const struct place *p)
{
	return &p->line->operands[p->site->access.operand];
}

/* The address, @more bytes on */
static void address(const struct place *p, int more)
{
	const struct operand *o = memory(p);
	size_t displacement = strcspn(o->at, "(");

	if (!more)
		fprintf(p->out, "%.*s", (int)o->length, o->at);
	else
		fprintf(p->out, "%.*s%s%d%.*s", (int)displacement, o->at,
			displacement ? "+" : "", more, (int)(o->length - displacement),
			o->at + displacement);
}

/**
 * enum view - by which an instruction accesses the segment
 * @APPLICATION: as it is
 * @ALIAS: by %gs
 * @ALIAS_BY_REGISTER: by the register of the check as its index
 */
enum view { APPLICATION, ALIAS, ALIAS_BY_REGISTER };

static void instruction(const struct place *p, enum view view)
{
	int i;

	fprintf(p->out, "\t%s%s ", p->line->lock ? "lock " : "", p->line->name);
	for (i = 0; i < p->line->n_operands; i++) {
		const struct operand *o = &p->line->operands[i];

		fputs(i ? ", " : "", p->out);
		if (view == ALIAS_BY_REGISTER && i == p->site->access.operand)
			fprintf(p->out, "%.*s, %s)", (int)o->length - 1, o->at, p->site->check);
		else
			fprintf(p->out, "%s%.*s",
				view && i == p->site->access.operand ? "%gs:" : "",
				(int)o->length, o->at);
	}
	fputc('\n', p->out);
}

static bool is_register(const struct operand *o)
{
	return o->length < 7 && *o->at == '(';
}

/* A register alone is renamed, which takes no time. */
static void load_address(const struct place *p, int more)
{
	const struct operand *o = memory(p);

	if (!more && is_register(o)) {
		fprintf(p->out, "\tmovq %.*s, %s\n", (int)o->length - 2, o->at + 1,
			p->site->check);
		return;
	}
	fputs("\tleaq ", p->out);
	address(p, more);
	fprintf(p->out, ", %s\n", p->site->check);
}

/* Of the block whose address is in the register */
static void look_at_tag(const struct place *p)
{
	const char *r = p->site->check;

	fprintf(p->out, "\tshrq $%d, %s\n\tcmpb $%d, (%s)\n\t%s .Ltp%u_plain\n",
		TEMPEST_TAG_SHIFT, r,
		p->site->access.write ? TEMPEST_TAG_WRITABLE : TEMPEST_TAG_READ_ONLY, r,
		p->site->access.write ? "jne" : "jb", p->number);
}

/* What is aligned lies on one block; if it may not be, both ends have to be looked at. */
static void look_at_tags(const struct place *p)
{
	const struct access *a = &p->site->access;
	bool two = a->size > 1 && !a->aligned, power = !(a->size & (a->size - 1));

	if (two && power) {
		load_address(p, 0);
		fprintf(p->out, "\ttestb $%d, %sb\n\tjz .Ltp%u_one\n", a->size - 1,
			p->site->check, p->number);
	}
	if (two) {
		load_address(p, a->size - 1);
		look_at_tag(p);
	}
	load_address(p, 0);
	if (two && power)
		fprintf(p->out, ".Ltp%u_one:\n", p->number);
	look_at_tag(p);
}

static void enter_section(const struct place *p)
{
	const char *r = p->site->check;
	unsigned int n = p->number;

	fprintf(p->out, ".Ltp%u_segment:\n\tmovq " STRING(TEMPEST_RSEQ_CS) "(%%rip), %s\n"
		"\tmovq $.Ltp%u_cs, %%fs:(%s)\n.Ltp%u_begin:\n", n, r, n, r, n);
}

static void abort_section(const struct place *p)
{
	fprintf(p->out, "\t.byte 0x0f, 0xb9, 0x3d\n\t.long 0x%x\n.Ltp%u_abort:\n"
		"\tjmp .Ltp%u_segment\n", TEMPEST_RSEQ_SIGNATURE, p->number, p->number);
}

/* %ah and its like have no encoding beside %r10 and %r11. */
static bool has_high_byte(const struct line *line)
{
	const struct operand *o = line->operands;
	int i;

	for (i = 0; i < line->n_operands; i++, o++)
		if (o->length == 3 && *o->at == '%' && o->at[2] == 'h')
			return true;
	return false;
}

/* Has it a base, and no index? */
static bool has_no_index(const struct operand *o)
{
	return operand_has(o, "(%") && !operand_has(o, ",");
}

/* A base of %gs makes a load two cycles later, an index that has been there does not. */
static void access_alias(const struct place *p)
{
	if (p->site->access.write || !has_no_index(memory(p)) || has_high_byte(p->line)) {
		instruction(p, ALIAS);
		return;
	}
	fprintf(p->out, "\tmovabsq $%#lx, %s\n", TEMPEST_ALIAS_OFFSET, p->site->check);
	instruction(p, ALIAS_BY_REGISTER);
}

static void section(const struct place *p)
{
	enter_section(p);
	look_at_tags(p);
	access_alias(p);
	fprintf(p->out, ".Ltp%u_end:\n", p->number);
}

static void plain(const struct place *p)
{
	fprintf(p->out, ".Ltp%u_plain:\n", p->number);
	instruction(p, APPLICATION);
}

/*
 * In the group of its function, which the linker may leave out. It names its function, so
 * those of functions with sections of their own have theirs, too: one would keep all.
 */
static void descriptor(const struct place *p)
{
	unsigned int n = p->number;

	fputs("\t.pushsection " STRING(TEMPEST_RSEQ_SECTION) ", \"aw?\", @progbits", p->out);
	if (p->own_section)
		fprintf(p->out, ", unique, %d", p->line->function + 1);
	fprintf(p->out, "\n\t.balign 32\n"
		".Ltp%u_cs:\n\t.long 0, 0\n"
		"\t.quad .Ltp%u_begin, .Ltp%u_end - .Ltp%u_begin, .Ltp%u_abort\n"
		"\t.popsection\n", n, n, n, n, n);
}

/* Is the address in that register in the segment? */
static void test_segment(FILE *out, const char *r, const char *jump, unsigned int number,
			 const char *where)
{
	fprintf(out, "\tshrq $%d, %s\n\tcmpl $%d, %sd\n\t%s .Ltp%u_%s\n",
		TEMPEST_SEGMENT_SHIFT, r, TEMPEST_SEGMENT_TOP, r, jump, number, where);
}

static void is_inside(const struct place *p, const char *jump, const char *where)
{
	load_address(p, 0);
	test_segment(p->out, p->site->check, jump, p->number, where);
}

static void back(const struct place *p)
{
	fprintf(p->out, "\tjmp .Ltp%u_done\n", p->number);
}

static void done(const struct place *p)
{
	fprintf(p->out, ".Ltp%u_done:\n", p->number);
}

/* The section is out of the way, behind all functions: nothing in there traps. */
static void checked_outside(const struct place *p)
{
	is_inside(p, "jz", "segment");
	plain(p);
	done(p);
	fputs("\t.subsection 1\n", p->out);
	section(p);
	back(p);
	abort_section(p);
	fputs("\t.subsection 0\n", p->out);
}

static void checked_inside(const struct place *p)
{
	struct place aside = *p;

	is_inside(p, "jnz", "plain");
	section(p);
	done(p);
	aside.out = p->aside;
	plain(&aside);
	back(&aside);
	abort_section(&aside);
}

static void checked(struct place *p)
{
	p->number++;
	if (p->aside)
		checked_inside(p);
	else
		checked_outside(p);
	descriptor(p);
}

static void as_it_is(struct place *p)
{
	if (p->site->check && p->site->load) {
		p->line = p->site->load;
		checked(p);
		fprintf(p->out, "\tcall *%s\n", p->site->check);
	} else if (p->site->check) {
		checked(p);
	} else {
		fprintf(p->out, "%s\n", p->line->text);
	}
}

/* Addresses that lead into the segment lead to the other loop, or are looked at once more. */
static void tests(const struct place *p, const struct text *text, const struct site *sites,
		  const struct loop *loop)
{
	int t;

	for (t = 0; t < loop->n_tests; t++) {
		size_t i = loop->tests[t];
		char where[32] = "inside";

		if (loop->pages[t])
			snprintf(where, sizeof(where), "page%d", t);
		fputs("\tleaq ", p->out);
		loop_address(&text->lines[i], &sites[i].access, p->out);
		fprintf(p->out, ", %s\n", loop->check);
		test_segment(p->out, loop->check, "jz", p->number, where);
		fprintf(p->out, ".Ltp%u_tested%d:\n", p->number, t);
	}
}

/* If all of the page allows it: the loop as it was, and from where in the other one to go on. */
static void page_tests(const struct place *p, const struct text *text, const struct site *sites,
		       const struct loop *loop, unsigned int n)
{
	const char *r = loop->check;
	int t, need;

	fputs("\t.subsection 1\n", p->out);
	for (t = 0; t < loop->n_tests; t++) {
		const struct place at = { .line = &text->lines[loop->tests[t]],
					  .site = &sites[loop->tests[t]], .out = p->out };

		if (!loop->pages[t])
			continue;
		fprintf(p->out, ".Ltp%u_page%d:\n", n, t);
		load_address(&at, 0);
		need = loop->writes[t] ? TEMPEST_TAG_WRITABLE : TEMPEST_TAG_READ_ONLY;
		fprintf(p->out, "\tshrq $%d, %s\n\tbtsq $%d, %s\n\tcmpb $%d, (%s)\n"
			"\tjb .Ltp%u_inside\n"
			"\tmovq " STRING(TEMPEST_LOOP) "(%%rip), %s\n"
			"\tmovq $.Ltp%u_loop, %%fs:(%s)\n\tjmp .Ltp%u_tested%d\n",
			TEMPEST_PAGE_SHIFT, r, TEMPEST_WHOLE_BIT, r, need, r, n, r, n, r, n, t);
	}
	fputs("\t.subsection 0\n", p->out);
}

/* Where instructions that have no check are in the loop that has: registers are the same there. */
static void counterparts(const struct place *p, const struct site *sites, const struct loop *loop,
			 unsigned int n)
{
	size_t i;

	fputs("\t.pushsection " STRING(TEMPEST_LOOP_SECTION) ", \"aw?\", @progbits", p->out);
	if (p->own_section)
		fprintf(p->out, ", unique, %d", p->line->function + 1);
	fprintf(p->out, "\n\t.balign 8\n.Ltp%u_loop:\n", n);
	for (i = loop->first; i <= loop->last; i++)
		if (sites[i].before_loop)
			fprintf(p->out, "\t.quad .Ltp%u_out%zu, .Ltp%u_in%zu\n", n, i, n, i);
	fputs("\t.quad 0, 0\n\t.popsection\n", p->out);
}

static bool has_page_test(const struct loop *loop)
{
	int t;

	for (t = 0; t < loop->n_tests; t++)
		if (loop->pages[t])
			return true;
	return false;
}

/* Whose addresses have been tested: only jumps to its begin are others. */
static void loop_outside(struct place *p, const struct text *text, const struct site *sites,
			 const struct loop *loop, unsigned int n)
{
	size_t i;

	fprintf(p->out, "\t.p2align 4,,10\n\t.p2align 3\n.Ltp%u_outside:\n", n);
	for (i = loop->first + 1; i <= loop->last; i++) {
		p->line = &text->lines[i];
		p->site = &sites[i];
		if (loop_target(text, loop, p->line) == (long)loop->first)
			fprintf(p->out, "\t%s .Ltp%u_outside\n", p->line->name, n);
		else if (p->site->before_loop)
			fprintf(p->out, ".Ltp%u_out%zu:\n%s\n", n, i, p->line->text);
		else
			as_it_is(p);
	}
}

/* A copy, with checks at all accesses and labels of its own */
static void loop_inside(struct place *p, const struct text *text, const struct site *sites,
			const struct loop *loop, unsigned int n)
{
	size_t i;

	fprintf(p->out, ".Ltp%u_inside:\n", n);
	for (i = loop->first; i <= loop->last; i++) {
		long to = loop_target(text, loop, &text->lines[i]);

		p->line = &text->lines[i];
		p->site = &sites[i];
		if (p->line->kind == LINE_LABEL) {
			fprintf(p->out, ".Ltp%u_at%zu:\n", n, i);
		} else if (to >= 0) {
			fprintf(p->out, "\t%s .Ltp%u_at%ld\n", p->line->name, n, to);
		} else if (p->line->kind == LINE_INSN) {
			if (p->site->before_loop)
				fprintf(p->out, ".Ltp%u_in%zu:\n", n, i);
			as_it_is(p);
		}
	}
	fprintf(p->out, "\tjmp .Ltp%u_behind\n", n);
}

/**
 * struct later - text that is kept until its function ends, and put after all functions
 * @text: of it
 * @size: its bytes
 * @out: to write it
 */
struct later {
	char *text;
	size_t size;
	FILE *out;
};

static void later_begin(struct later *later)
{
	*later = (struct later){ 0 };
	later->out = open_memstream(&later->text, &later->size);
	if (!later->out)
		give_up("out of memory");
}

static void later_end(struct later *later, FILE *to)
{
	if (fclose(later->out))
		give_up("out of memory");
	fwrite(later->text, 1, later->size, to);
	free(later->text);
}

static void two_loops(struct place *p, const struct text *text, const struct site *sites,
		      const struct loop *loop, const struct unwind *unwind, FILE *later)
{
	unsigned int n = ++p->number;
	struct place inside;
	struct later aside;

	fprintf(p->out, "%s\n", text->lines[loop->first].text);
	tests(p, text, sites, loop);
	loop_outside(p, text, sites, loop, n);
	fprintf(p->out, ".Ltp%u_behind:\n", n);
	if (has_page_test(loop)) {
		page_tests(p, text, sites, loop, n);
		counterparts(p, sites, loop, n);
	}
	later_begin(&aside);
	inside = *p;
	inside.out = later;
	inside.aside = aside.out;
	unwind_begin(unwind, later);
	loop_inside(&inside, text, sites, loop, n);
	later_end(&aside, later);
	unwind_end(unwind, later);
	p->number = inside.number;
}

/* Copies of loops, each with callers to be found as its function has them */
static void put_later(struct later *later, FILE *out)
{
	fputs("\t.subsection 1\n", out);
	later_end(later, out);
	fputs("\t.subsection 0\n", out);
	later_begin(later);
}

/* Which section does what follows that line go to? */
static void follow_section(struct place *p)
{
	static const char *const shared[] = {
		".text", ".text.startup", ".text.unlikely", ".text.hot", ".text.exit",
	};
	const char *s = p->line->text + strspn(p->line->text, " \t");
	size_t i, n;

	if (p->line->kind != LINE_DIRECTIVE)
		return;
	if (!strcmp(p->line->name, ".text"))
		p->own_section = false;
	if (strcmp(p->line->name, ".section"))
		return;
	s += strlen(".section");
	s += strspn(s, " \t");
	n = strcspn(s, ", \t");
	p->own_section = true;
	for (i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		if (strlen(shared[i]) == n && !memcmp(s, shared[i], n))
			p->own_section = false;
}

void emit(const struct text *text, const struct site *sites, const struct loop *loops, size_t n,
	  FILE *out)
{
	struct place place = { .out = out };
	struct unwind unwind = { 0 };
	struct later later;
	size_t i;

	later_begin(&later);
	for (i = 0; i < text->n; i++) {
		bool end;

		if (n && loops->first == i) {
			two_loops(&place, text, sites, loops, &unwind, later.out);
			i = loops->last;
			loops++;
			n--;
			if (!unwind.start)
				put_later(&later, out);
			continue;
		}
		place.line = &text->lines[i];
		place.site = &sites[i];
		as_it_is(&place);
		follow_section(&place);
		end = unwind_follow(&unwind, place.line);
		if (end && ftell(later.out) > 0)
			put_later(&later, out);
	}
	later_end(&later, out);
	free(unwind.lines);
}
