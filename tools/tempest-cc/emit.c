// SPDX-License-Identifier: GPL-2.0-only
/*
 * The access is the last instruction of its section, so it is never done twice: whoever is
 * interrupted before it begins with the look at the tag again, and after it is through.
 */
#include <string.h>

#include "abi.h"
#include "emit.h"

/* The variable's name, which is a macro, as a string */
#define STRING_(x)	#x
#define STRING(x)	STRING_(x)

struct place {
	const struct line *line;
	const struct site *site;
	unsigned int number;
	FILE *out;
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

static void instruction(const struct place *p, bool alias)
{
	int i;

	fprintf(p->out, "\t%s%s ", p->line->lock ? "lock " : "", p->line->name);
	for (i = 0; i < p->line->n_operands; i++)
		fprintf(p->out, "%s%s%.*s", i ? ", " : "",
			alias && i == p->site->access.operand ? "%gs:" : "",
			(int)p->line->operands[i].length, p->line->operands[i].at);
	fputc('\n', p->out);
}

static void look_at_tag(const struct place *p, int more)
{
	const char *r = p->site->check;

	fputs("\tleaq ", p->out);
	address(p, more);
	fprintf(p->out, ", %s\n\tshrq $%d, %s\n\tcmpb $%d, (%s)\n\t%s .Ltp%u_plain\n", r,
		TEMPEST_TAG_SHIFT, r,
		p->site->access.write ? TEMPEST_TAG_WRITABLE : TEMPEST_TAG_READ_ONLY, r,
		p->site->access.write ? "jne" : "jb", p->number);
}

/* Both ends, where it may lie on two blocks */
static void section(const struct place *p)
{
	const struct access *a = &p->site->access;
	const char *r = p->site->check;
	unsigned int n = p->number;

	fprintf(p->out, ".Ltp%u_segment:\n\tmovq " STRING(TEMPEST_RSEQ_CS) "(%%rip), %s\n"
		"\tmovq $.Ltp%u_cs, %%fs:(%s)\n.Ltp%u_begin:\n", n, r, n, r, n);
	look_at_tag(p, 0);
	if (a->size > 1 && !a->aligned)
		look_at_tag(p, a->size - 1);
	instruction(p, true);
	fprintf(p->out, ".Ltp%u_end:\n\tjmp .Ltp%u_done\n"
		"\t.byte 0x0f, 0xb9, 0x3d\n\t.long 0x%x\n.Ltp%u_abort:\n"
		"\tjmp .Ltp%u_segment\n", n, n, TEMPEST_RSEQ_SIGNATURE, n, n);
}

/* In the group of its function, which the linker may leave out */
static void descriptor(const struct place *p)
{
	unsigned int n = p->number;

	fprintf(p->out, "\t.pushsection " STRING(TEMPEST_RSEQ_SECTION)
		", \"aw?\", @progbits\n\t.balign 32\n"
		".Ltp%u_cs:\n\t.long 0, 0\n"
		"\t.quad .Ltp%u_begin, .Ltp%u_end - .Ltp%u_begin, .Ltp%u_abort\n"
		"\t.popsection\n", n, n, n, n, n);
}

static void checked(const struct place *p)
{
	const char *r = p->site->check;
	unsigned int n = p->number;

	fputs("\tleaq ", p->out);
	address(p, 0);
	fprintf(p->out, ", %s\n\tshrq $%d, %s\n\tcmpl $%d, %sd\n"
		"\tjz .Ltp%u_segment\n"
		".Ltp%u_plain:\n", r, TEMPEST_SEGMENT_SHIFT, r, TEMPEST_SEGMENT_TOP, r, n, n);
	instruction(p, false);
	fprintf(p->out, ".Ltp%u_done:\n\t.subsection 1\n", n);
	section(p);
	fputs("\t.subsection 0\n", p->out);
	descriptor(p);
}

void emit(const struct text *text, const struct site *sites, FILE *out)
{
	struct place place = { .out = out };
	size_t i;

	for (i = 0; i < text->n; i++) {
		if (!sites[i].check) {
			fprintf(out, "%s\n", text->lines[i].text);
			continue;
		}
		place.line = &text->lines[i];
		place.site = &sites[i];
		place.number++;
		checked(&place);
	}
}
