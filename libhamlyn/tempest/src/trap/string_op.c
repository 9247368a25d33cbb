// SPDX-License-Identifier: MIT
#include <string.h>

#include "trap/admit.h"
#include "trap/foreign.h"
#include "trap/string_op.h"

#define DIRECTION	0x400
#define ZERO		0x40
#define OVERFLOW	0x800
#define ARITHMETIC	0x8d5	/* OF, SF, ZF, AF, PF, CF */

#define RAX 0
#define RCX 1
#define RSI 6
#define RDI 7

/* Opcodes without their lowest bit, which is the size. */
enum { MOVS = 0xa4, CMPS = 0xa6, STOS = 0xaa, LODS = 0xac, SCAS = 0xae };

struct string {
	struct tempest_thread *thread;
	const struct tempest_insn *insn;
	ucontext_t *context;
	int op;
	greg_t *si, *di, *cx, *ax;
};

/* Elements between the operand at @va and @data. False if that is where none can be. */
static bool transfer(struct string *s, uintptr_t va, void *data, greg_t number, bool write)
{
	unsigned int size = s->insn->size;
	struct tempest_access access = {
		.va = va,
		.size = number * size,
		.write = write,
		.pc = s->context->uc_mcontext.gregs[REG_RIP],
	};
	bool inside = tempest_inside(va) || tempest_inside(va + access.size - 1), done;
	void *at = inside ? tempest_alias(va) : (void *)va;

	if (inside)
		tempest_admit(s->thread, &access, false);
	done = tempest_foreign_copy(write ? at : data, write ? data : at, number, size);
	if (inside)
		tempest_thread_leave(s->thread);
	return done;
}

static bool uses_si(const struct string *s)
{
	return s->op == MOVS || s->op == CMPS || s->op == LODS;
}

static bool uses_di(const struct string *s)
{
	return s->op != LODS;
}

static void advance(struct string *s, greg_t elements)
{
	greg_t bytes = elements * s->insn->size;

	if (s->context->uc_mcontext.gregs[REG_EFL] & DIRECTION)
		bytes = -bytes;
	if (uses_si(s))
		*s->si += bytes;
	if (uses_di(s))
		*s->di += bytes;
	if (s->insn->repeat)
		*s->cx -= elements;
}

/* Without a push into what the compiler may keep below the stack. */
#define FLAGS_OF(suffix, type)	\
	__asm__("cmp" suffix " %3, %2\n\tlahf\n\tmovzbl %%ah, %k0\n\tseto %b1" \
		: "=a"(flags), "=q"(overflow) : "q"((type)left), "q"((type)right) : "cc")

static greg_t flags_of_compare(uint64_t left, uint64_t right, unsigned int size)
{
	unsigned int flags;
	bool overflow;

	switch (size) {
	case 1:
		FLAGS_OF("b", uint8_t);
		break;
	case 2:
		FLAGS_OF("w", uint16_t);
		break;
	case 4:
		FLAGS_OF("l", uint32_t);
		break;
	default:
		FLAGS_OF("q", uint64_t);
	}
	return flags | (overflow ? OVERFLOW : 0);
}

static bool compare(struct string *s)
{
	greg_t *efl = &s->context->uc_mcontext.gregs[REG_EFL];
	uint64_t left = 0, right = 0;

	if (s->op != CMPS)
		memcpy(&left, s->ax, s->insn->size);
	else if (!transfer(s, *s->si, &left, 1, false))
		return false;
	if (!transfer(s, *s->di, &right, 1, false))
		return false;
	*efl = (*efl & ~ARITHMETIC) |
	       (flags_of_compare(left, right, s->insn->size) & ARITHMETIC);
	advance(s, 1);
	return true;
}

/* Bytes to the end of the block, which an element may straddle. */
static unsigned int to_block_end(uintptr_t va)
{
	return TPPI_TAG_BLK_SIZE - va % TPPI_TAG_BLK_SIZE;
}

/* How many elements of movs and stos are done at once. */
static greg_t run_length(const struct string *s)
{
	unsigned int bytes = to_block_end(*s->di), size = s->insn->size;
	greg_t count = s->insn->repeat ? *s->cx : 1;

	if (s->op == MOVS && to_block_end(*s->si) < bytes)
		bytes = to_block_end(*s->si);
	/* What is written may be read again a few elements later, as in a fill */
	if (s->op == MOVS && (uintptr_t)(*s->di - *s->si) < TPPI_TAG_BLK_SIZE)
		return 1;
	if (bytes < size || s->context->uc_mcontext.gregs[REG_EFL] & DIRECTION)
		return 1;
	return count < bytes / size ? count : bytes / size;
}

static bool move(struct string *s)
{
	unsigned char data[TPPI_TAG_BLK_SIZE + sizeof(uint64_t)];
	greg_t elements = run_length(s);
	unsigned int size = s->insn->size;

	if (s->op == MOVS && !transfer(s, *s->si, data, elements, false))
		return false;
	for (greg_t i = 0; s->op == STOS && i < elements; i++)
		memcpy(data + i * size, s->ax, size);
	if (!transfer(s, *s->di, data, elements, true))
		return false;
	advance(s, elements);
	return true;
}

static bool load(struct string *s)
{
	uint64_t value = 0;

	if (!transfer(s, *s->si, &value, 1, false))
		return false;
	/* As registers do: 32 bits clear the upper half, fewer leave the rest */
	if (s->insn->size >= 4)
		*s->ax = value;
	else
		memcpy(s->ax, &value, s->insn->size);
	advance(s, 1);
	return true;
}

enum progress { GOES_ON, AT_END, FAULT };

/* Registers are those before the step if there was a fault. */
static enum progress step(struct string *s)
{
	bool equal;

	if (s->insn->repeat && !*s->cx)
		return AT_END;
	if (s->op == MOVS || s->op == STOS || s->op == LODS) {
		if (!(s->op == LODS ? load(s) : move(s)))
			return FAULT;
		return s->insn->repeat ? GOES_ON : AT_END;
	}
	if (!compare(s))
		return FAULT;
	equal = s->context->uc_mcontext.gregs[REG_EFL] & ZERO;
	return s->insn->repeat && equal == (s->insn->repeat == 0xf3) ? GOES_ON : AT_END;
}

static bool at_page_end(const struct string *s)
{
	return (uses_si(s) && *s->si % (greg_t)PAGE_BYTES == 0) ||
	       (uses_di(s) && *s->di % (greg_t)PAGE_BYTES == 0);
}

void tempest_string_op(struct tempest_thread *thread, const struct tempest_insn *insn,
		       ucontext_t *context)
{
	struct string s = {
		.thread = thread,
		.insn = insn,
		.context = context,
		.op = insn->opcode & ~1,
		.si = tempest_register(context, RSI),
		.di = tempest_register(context, RDI),
		.cx = tempest_register(context, RCX),
		.ax = tempest_register(context, RAX),
	};

	enum progress progress;

	do
		progress = step(&s);
	while (progress == GOES_ON && !at_page_end(&s));
	if (progress == AT_END)
		context->uc_mcontext.gregs[REG_RIP] += insn->length;
	if (progress == FAULT)
		tempest_foreign_chain(context);
}
