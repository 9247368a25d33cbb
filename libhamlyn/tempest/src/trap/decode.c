// SPDX-License-Identifier: MIT
/*
 * x86-64 instructions with an operand in memory.
 *
 * The opcode tables tell the size of the operand, and of an immediate behind it. A size
 * may be too large, as where a mask leaves out some elements: that checks a block too
 * many. What is not in the tables is refused, and trap.c checks the result with the
 * address that the processor has reported.
 */
#include <string.h>

#include "base/array.h"
#include "trap/decode.h"

/* How many bytes an operand has. */
enum size {
	S_NONE,		/* refused */
	S_1, S_2, S_4, S_8, S_16, S_32,
	S_OPERAND,	/* 2, 4 or 8: 0x66, REX.W */
	S_WORD,		/* 4 or 8: W */
	S_ODD,		/* byte if the opcode is even, S_OPERAND if it is odd */
	S_VECTOR,	/* xmm, ymm, zmm */
	S_MMX,		/* 8 without a prefix, else S_VECTOR */
	S_MMX_LOW,	/* 4 without a prefix, else S_VECTOR */
	S_FLOAT,	/* ps, pd: S_VECTOR; ss: 4; sd: 8 */
	S_HALF,		/* of S_VECTOR */
	S_QUARTER,
	S_EIGHTH,
	S_SPECIAL,	/* see special_size() */
};

/* Bytes of an immediate. */
enum immediate { I_0, I_1, I_OPERAND /* 2 or 4 */ };

struct range {
	uint8_t first, last;
	uint8_t size;
	uint8_t immediate;
};

static const struct range one_byte[] = {
	{ 0x00, 0x03, S_ODD, I_0 }, { 0x08, 0x0b, S_ODD, I_0 }, { 0x10, 0x13, S_ODD, I_0 },
	{ 0x18, 0x1b, S_ODD, I_0 }, { 0x20, 0x23, S_ODD, I_0 }, { 0x28, 0x2b, S_ODD, I_0 },
	{ 0x30, 0x33, S_ODD, I_0 }, { 0x38, 0x3b, S_ODD, I_0 },
	{ 0x63, 0x63, S_4, I_0 },
	{ 0x69, 0x69, S_OPERAND, I_OPERAND }, { 0x6b, 0x6b, S_OPERAND, I_1 },
	{ 0x80, 0x80, S_1, I_1 }, { 0x81, 0x81, S_OPERAND, I_OPERAND },
	{ 0x83, 0x83, S_OPERAND, I_1 },
	{ 0x84, 0x8b, S_ODD, I_0 },
	{ 0x8c, 0x8c, S_2, I_0 },
	{ 0x8f, 0x8f, S_SPECIAL, I_0 },		/* pop */
	{ 0xc0, 0xc0, S_1, I_1 }, { 0xc1, 0xc1, S_OPERAND, I_1 },
	{ 0xc6, 0xc6, S_1, I_1 }, { 0xc7, 0xc7, S_OPERAND, I_OPERAND },
	{ 0xd0, 0xd3, S_ODD, I_0 },
	{ 0xd8, 0xdf, S_SPECIAL, I_0 },		/* x87 */
	{ 0xf6, 0xf7, S_ODD, I_0 },			/* test has an immediate */
	{ 0xfe, 0xfe, S_1, I_0 },
	{ 0xff, 0xff, S_SPECIAL, I_0 },		/* inc, dec, call, jmp, push */
};

/* 0f: with 66, f3, f2, and in VEX and EVEX */
static const struct range two_bytes[] = {
	{ 0x10, 0x11, S_FLOAT, I_0 }, { 0x12, 0x12, S_SPECIAL, I_0 }, { 0x13, 0x13, S_8, I_0 },
	{ 0x14, 0x15, S_VECTOR, I_0 }, { 0x16, 0x16, S_SPECIAL, I_0 }, { 0x17, 0x17, S_8, I_0 },
	{ 0x28, 0x29, S_VECTOR, I_0 },
	{ 0x2a, 0x2a, S_SPECIAL, I_0 }, { 0x2b, 0x2b, S_VECTOR, I_0 },
	{ 0x2c, 0x2d, S_SPECIAL, I_0 },
	{ 0x2e, 0x2f, S_SPECIAL, I_0 },
	{ 0x40, 0x4f, S_OPERAND, I_0 },
	{ 0x51, 0x59, S_FLOAT, I_0 }, { 0x5a, 0x5a, S_SPECIAL, I_0 },
	{ 0x5b, 0x5b, S_VECTOR, I_0 },
	{ 0x5c, 0x5f, S_FLOAT, I_0 },
	{ 0x60, 0x62, S_MMX_LOW, I_0 }, { 0x63, 0x6b, S_MMX, I_0 },
	{ 0x6c, 0x6d, S_VECTOR, I_0 },
	{ 0x6e, 0x6e, S_WORD, I_0 }, { 0x6f, 0x6f, S_MMX, I_0 },
	{ 0x70, 0x70, S_MMX, I_1 }, { 0x71, 0x73, S_VECTOR, I_1 },
	{ 0x74, 0x76, S_MMX, I_0 }, { 0x78, 0x7b, S_SPECIAL, I_0 },
	{ 0x7c, 0x7d, S_VECTOR, I_0 },
	{ 0x7e, 0x7e, S_SPECIAL, I_0 }, { 0x7f, 0x7f, S_MMX, I_0 },
	{ 0x90, 0x91, S_SPECIAL, I_0 }, { 0x92, 0x9f, S_1, I_0 },
	{ 0xa3, 0xa3, S_OPERAND, I_0 }, { 0xa4, 0xa4, S_OPERAND, I_1 },
	{ 0xa5, 0xa5, S_OPERAND, I_0 },
	{ 0xab, 0xab, S_OPERAND, I_0 }, { 0xac, 0xac, S_OPERAND, I_1 },
	{ 0xad, 0xad, S_OPERAND, I_0 },
	{ 0xae, 0xae, S_SPECIAL, I_0 }, { 0xaf, 0xaf, S_OPERAND, I_0 },
	{ 0xb0, 0xb1, S_ODD, I_0 }, { 0xb3, 0xb3, S_OPERAND, I_0 },
	{ 0xb6, 0xb6, S_1, I_0 }, { 0xb7, 0xb7, S_2, I_0 }, { 0xb8, 0xb8, S_OPERAND, I_0 },
	{ 0xba, 0xba, S_OPERAND, I_1 }, { 0xbb, 0xbd, S_OPERAND, I_0 },
	{ 0xbe, 0xbe, S_1, I_0 }, { 0xbf, 0xbf, S_2, I_0 },
	{ 0xc0, 0xc1, S_ODD, I_0 }, { 0xc2, 0xc2, S_FLOAT, I_1 }, { 0xc3, 0xc3, S_WORD, I_0 },
	{ 0xc4, 0xc4, S_2, I_1 }, { 0xc6, 0xc6, S_VECTOR, I_1 }, { 0xc7, 0xc7, S_SPECIAL, I_0 },
	{ 0xd0, 0xd0, S_VECTOR, I_0 }, { 0xd1, 0xd3, S_SPECIAL, I_0 },
	{ 0xd4, 0xd5, S_MMX, I_0 },
	{ 0xd6, 0xd6, S_8, I_0 }, { 0xd8, 0xdf, S_MMX, I_0 }, { 0xe0, 0xe0, S_MMX, I_0 },
	{ 0xe1, 0xe2, S_SPECIAL, I_0 }, { 0xe3, 0xe5, S_MMX, I_0 },
	{ 0xe6, 0xe6, S_SPECIAL, I_0 },
	{ 0xe7, 0xe7, S_MMX, I_0 }, { 0xe8, 0xef, S_MMX, I_0 }, { 0xf0, 0xf0, S_VECTOR, I_0 },
	{ 0xf1, 0xf3, S_SPECIAL, I_0 }, { 0xf4, 0xf6, S_MMX, I_0 }, { 0xf8, 0xfe, S_MMX, I_0 },
};

/* 0f 38 */
static const struct range three_bytes[] = {
	{ 0x00, 0x0f, S_MMX, I_0 }, { 0x10, 0x15, S_SPECIAL, I_0 },
	{ 0x16, 0x17, S_VECTOR, I_0 },
	{ 0x18, 0x18, S_4, I_0 }, { 0x19, 0x19, S_8, I_0 }, { 0x1a, 0x1a, S_16, I_0 },
	{ 0x1b, 0x1b, S_32, I_0 },
	{ 0x1c, 0x1f, S_MMX, I_0 },
	{ 0x20, 0x20, S_HALF, I_0 }, { 0x21, 0x21, S_QUARTER, I_0 },
	{ 0x22, 0x22, S_EIGHTH, I_0 },
	{ 0x23, 0x23, S_HALF, I_0 }, { 0x24, 0x24, S_QUARTER, I_0 },
	{ 0x25, 0x25, S_HALF, I_0 },
	{ 0x26, 0x2c, S_VECTOR, I_0 }, { 0x2d, 0x2d, S_SPECIAL, I_0 },
	{ 0x2e, 0x2f, S_VECTOR, I_0 },
	{ 0x30, 0x30, S_HALF, I_0 }, { 0x31, 0x31, S_QUARTER, I_0 },
	{ 0x32, 0x32, S_EIGHTH, I_0 },
	{ 0x33, 0x33, S_HALF, I_0 }, { 0x34, 0x34, S_QUARTER, I_0 },
	{ 0x35, 0x35, S_HALF, I_0 },
	{ 0x36, 0x40, S_VECTOR, I_0 }, { 0x41, 0x41, S_16, I_0 }, { 0x42, 0x42, S_VECTOR, I_0 },
	{ 0x43, 0x43, S_WORD, I_0 }, { 0x44, 0x47, S_VECTOR, I_0 },
	{ 0x4c, 0x4c, S_VECTOR, I_0 }, { 0x4d, 0x4d, S_WORD, I_0 },
	{ 0x4e, 0x4e, S_VECTOR, I_0 }, { 0x4f, 0x4f, S_WORD, I_0 },
	{ 0x50, 0x55, S_VECTOR, I_0 },
	{ 0x58, 0x58, S_4, I_0 }, { 0x59, 0x59, S_8, I_0 }, { 0x5a, 0x5a, S_16, I_0 },
	{ 0x5b, 0x5b, S_32, I_0 },
	{ 0x62, 0x66, S_VECTOR, I_0 }, { 0x70, 0x77, S_VECTOR, I_0 }, { 0x78, 0x78, S_1, I_0 },
	{ 0x79, 0x79, S_2, I_0 }, { 0x7d, 0x7f, S_VECTOR, I_0 }, { 0x83, 0x83, S_VECTOR, I_0 },
	{ 0x88, 0x8f, S_VECTOR, I_0 },
	{ 0x96, 0x98, S_VECTOR, I_0 }, { 0x99, 0x99, S_WORD, I_0 },
	{ 0x9a, 0x9a, S_VECTOR, I_0 },
	{ 0x9b, 0x9b, S_WORD, I_0 }, { 0x9c, 0x9c, S_VECTOR, I_0 }, { 0x9d, 0x9d, S_WORD, I_0 },
	{ 0x9e, 0x9e, S_VECTOR, I_0 }, { 0x9f, 0x9f, S_WORD, I_0 },
	{ 0xa6, 0xa8, S_VECTOR, I_0 }, { 0xa9, 0xa9, S_WORD, I_0 },
	{ 0xaa, 0xaa, S_VECTOR, I_0 },
	{ 0xab, 0xab, S_WORD, I_0 }, { 0xac, 0xac, S_VECTOR, I_0 }, { 0xad, 0xad, S_WORD, I_0 },
	{ 0xae, 0xae, S_VECTOR, I_0 }, { 0xaf, 0xaf, S_WORD, I_0 },
	{ 0xb4, 0xb8, S_VECTOR, I_0 }, { 0xb9, 0xb9, S_WORD, I_0 },
	{ 0xba, 0xba, S_VECTOR, I_0 },
	{ 0xbb, 0xbb, S_WORD, I_0 }, { 0xbc, 0xbc, S_VECTOR, I_0 }, { 0xbd, 0xbd, S_WORD, I_0 },
	{ 0xbe, 0xbe, S_VECTOR, I_0 }, { 0xbf, 0xbf, S_WORD, I_0 },
	{ 0xc4, 0xc4, S_VECTOR, I_0 }, { 0xc8, 0xcd, S_VECTOR, I_0 },
	{ 0xcf, 0xcf, S_VECTOR, I_0 },
	{ 0xdb, 0xdf, S_VECTOR, I_0 },
	{ 0xf0, 0xf1, S_SPECIAL, I_0 }, { 0xf2, 0xf7, S_WORD, I_0 },
	{ 0xf9, 0xf9, S_WORD, I_0 },
};

/* 0f 3a: all have an immediate of a byte */
static const struct range three_bytes_immediate[] = {
	{ 0x00, 0x06, S_VECTOR, I_1 }, { 0x08, 0x09, S_VECTOR, I_1 }, { 0x0a, 0x0a, S_4, I_1 },
	{ 0x0b, 0x0b, S_8, I_1 }, { 0x0c, 0x0e, S_VECTOR, I_1 }, { 0x0f, 0x0f, S_MMX, I_1 },
	{ 0x14, 0x14, S_1, I_1 }, { 0x15, 0x15, S_2, I_1 }, { 0x16, 0x16, S_WORD, I_1 },
	{ 0x17, 0x17, S_4, I_1 }, { 0x18, 0x19, S_16, I_1 }, { 0x1a, 0x1b, S_32, I_1 },
	{ 0x1d, 0x1d, S_HALF, I_1 }, { 0x1e, 0x1f, S_VECTOR, I_1 },
	{ 0x20, 0x20, S_1, I_1 }, { 0x21, 0x21, S_4, I_1 }, { 0x22, 0x22, S_WORD, I_1 },
	{ 0x23, 0x26, S_VECTOR, I_1 }, { 0x27, 0x27, S_WORD, I_1 },
	{ 0x38, 0x39, S_16, I_1 }, { 0x3a, 0x3b, S_32, I_1 }, { 0x3e, 0x3f, S_VECTOR, I_1 },
	{ 0x40, 0x44, S_VECTOR, I_1 }, { 0x46, 0x46, S_VECTOR, I_1 },
	{ 0x4a, 0x4c, S_VECTOR, I_1 }, { 0x50, 0x50, S_VECTOR, I_1 },
	{ 0x51, 0x51, S_WORD, I_1 }, { 0x54, 0x54, S_VECTOR, I_1 }, { 0x55, 0x55, S_WORD, I_1 },
	{ 0x56, 0x56, S_VECTOR, I_1 }, { 0x57, 0x57, S_WORD, I_1 },
	{ 0x60, 0x63, S_16, I_1 }, { 0x66, 0x66, S_VECTOR, I_1 }, { 0x67, 0x67, S_WORD, I_1 },
	{ 0x70, 0x73, S_VECTOR, I_1 }, { 0xcc, 0xcc, S_16, I_1 }, { 0xce, 0xcf, S_VECTOR, I_1 },
	{ 0xdf, 0xdf, S_16, I_1 }, { 0xf0, 0xf0, S_WORD, I_1 },
};

/* Numbers of half precision (EVEX maps 5 and 6): those that are no conversions. */
static const struct range half_precision[] = {
	{ 0x10, 0x11, S_FLOAT, I_0 }, { 0x2e, 0x2f, S_2, I_0 }, { 0x51, 0x51, S_FLOAT, I_0 },
	{ 0x58, 0x59, S_FLOAT, I_0 }, { 0x5c, 0x5f, S_FLOAT, I_0 }, { 0x6e, 0x6e, S_2, I_0 },
	{ 0x7e, 0x7e, S_2, I_0 },
};

static const struct range half_precision_fused[] = {
	{ 0x96, 0x98, S_VECTOR, I_0 }, { 0x99, 0x99, S_2, I_0 }, { 0x9a, 0x9a, S_VECTOR, I_0 },
	{ 0x9b, 0x9b, S_2, I_0 }, { 0x9c, 0x9c, S_VECTOR, I_0 }, { 0x9d, 0x9d, S_2, I_0 },
	{ 0x9e, 0x9e, S_VECTOR, I_0 }, { 0x9f, 0x9f, S_2, I_0 },
	{ 0xa6, 0xa8, S_VECTOR, I_0 }, { 0xa9, 0xa9, S_2, I_0 }, { 0xaa, 0xaa, S_VECTOR, I_0 },
	{ 0xab, 0xab, S_2, I_0 }, { 0xac, 0xac, S_VECTOR, I_0 }, { 0xad, 0xad, S_2, I_0 },
	{ 0xae, 0xae, S_VECTOR, I_0 }, { 0xaf, 0xaf, S_2, I_0 },
	{ 0xb6, 0xb8, S_VECTOR, I_0 }, { 0xb9, 0xb9, S_2, I_0 }, { 0xba, 0xba, S_VECTOR, I_0 },
	{ 0xbb, 0xbb, S_2, I_0 }, { 0xbc, 0xbc, S_VECTOR, I_0 }, { 0xbd, 0xbd, S_2, I_0 },
	{ 0xbe, 0xbe, S_VECTOR, I_0 }, { 0xbf, 0xbf, S_2, I_0 },
};

#define MAP(table)	{ table, ARRAY_SIZE(table) }

static const struct {
	const struct range *ranges;
	size_t number;
} maps[] = {
	MAP(one_byte), MAP(two_bytes), MAP(three_bytes), MAP(three_bytes_immediate),
	{ NULL, 0 }, MAP(half_precision), MAP(half_precision_fused),
};

enum encoding { LEGACY, VEX, EVEX };

/* What is before and in the opcode. */
struct parse {
	const uint8_t *next;
	const ucontext_t *context;
	enum encoding encoding;
	uint8_t map, opcode, modrm;
	bool operand16;		/* 0x66 */
	uint8_t repeat;		/* 0xf2, 0xf3 */
	bool w;
	uint8_t x, b;		/* 0 or 8: what they add to a register's number */
	unsigned int vector;	/* bytes */
	bool broadcast;
};

greg_t *tempest_register(const ucontext_t *context, unsigned int number)
{
	static const uint8_t place[] = {
		REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
		REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
	};

	return (greg_t *)&context->uc_mcontext.gregs[place[number]];
}

/* The operand is elsewhere: %fs and %gs are other segments, 0x67 makes the address short. */
static bool parse_prefixes(struct parse *p)
{
	for (;; p->next++) {
		switch (*p->next) {
		case 0x66:
			p->operand16 = true;
			break;
		case 0xf2:
		case 0xf3:
			p->repeat = *p->next;
			break;
		case 0xf0:
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
			break;
		case 0x64:
		case 0x65:
		case 0x67:
			return false;
		default:
			return true;
		}
	}
}

static void set_pp(struct parse *p, uint8_t pp)
{
	static const uint8_t repeats[] = { 0, 0, 0xf3, 0xf2 };

	p->operand16 = pp == 1;
	p->repeat = repeats[pp];
}

static void parse_vex(struct parse *p, bool three)
{
	uint8_t byte = *p->next++, last = byte;

	p->encoding = VEX;
	p->map = 1;
	if (three) {
		last = *p->next++;
		p->map = byte & 0x1f;
		p->x = byte & 0x40 ? 0 : 8;
		p->b = byte & 0x20 ? 0 : 8;
		p->w = last & 0x80;
	}
	p->vector = last & 4 ? 32 : 16;
	set_pp(p, last & 3);
	p->opcode = *p->next++;
}

static void parse_evex(struct parse *p)
{
	uint8_t first = *p->next++, second = *p->next++, third = *p->next++;

	p->encoding = EVEX;
	p->map = first & 7;
	p->x = first & 0x40 ? 0 : 8;
	p->b = first & 0x20 ? 0 : 8;
	p->w = second & 0x80;
	set_pp(p, second & 3);
	p->vector = 16u << (third >> 5 & 3);
	p->broadcast = third & 0x10;
	p->opcode = *p->next++;
}

static void parse_opcode(struct parse *p)
{
	uint8_t byte = *p->next;

	p->vector = 16;
	if ((byte & 0xf0) == 0x40) {
		p->w = byte & 8;
		p->x = byte & 2 ? 8 : 0;
		p->b = byte & 1 ? 8 : 0;
		p->next++;
	}
	byte = *p->next++;
	if (byte == 0xc5 || byte == 0xc4) {
		parse_vex(p, byte == 0xc4);
		return;
	}
	if (byte == 0x62) {
		parse_evex(p);
		return;
	}
	if (byte == 0x0f) {
		p->map = 1;
		byte = *p->next++;
		if (byte == 0x38 || byte == 0x3a) {
			p->map = byte == 0x38 ? 2 : 3;
			byte = *p->next++;
		}
	}
	p->opcode = byte;
}

static unsigned int operand_size(const struct parse *p)
{
	return p->w ? 8 : p->operand16 ? 2 : 4;
}

static unsigned int reg_field(const struct parse *p)
{
	return p->modrm >> 3 & 7;
}

static unsigned int x87_size(const struct parse *p)
{
	static const uint8_t sizes[8][8] = {
		{ 4, 4, 4, 4, 4, 4, 4, 4 },
		{ 4, 0, 4, 4, 28, 2, 28, 2 },
		{ 4, 4, 4, 4, 4, 4, 4, 4 },
		{ 4, 4, 4, 4, 0, 10, 0, 10 },
		{ 8, 8, 8, 8, 8, 8, 8, 8 },
		{ 8, 8, 8, 8, 108, 0, 108, 2 },
		{ 2, 2, 2, 2, 2, 2, 2, 2 },
		{ 2, 2, 2, 2, 10, 8, 10, 8 },
	};

	return sizes[p->opcode & 7][reg_field(p)];
}

/* Conversions, and moves whose size depends on the prefix. */
static unsigned int special_two_bytes(const struct parse *p)
{
	/* fxsave, fxrstor, ldmxcsr, stmxcsr, xsave, xrstor, xsaveopt, clflush */
	static const uint16_t state_sizes[] = { 512, 512, 4, 4, 0, 0, 0, 1 };
	unsigned int scalar = p->repeat == 0xf3 ? 4 : 8;

	switch (p->opcode) {
	case 0x12:
		if (p->repeat == 0xf2)
			return p->vector == 16 ? 8 : p->vector;
		return p->repeat ? p->vector : 8;
	case 0x16:
		return p->repeat ? p->vector : 8;
	case 0x2a:
		return p->repeat ? (p->w ? 8 : 4) : 8;
	case 0x2c:
	case 0x2d:
		return p->repeat ? scalar : p->operand16 ? 16 : 8;
	case 0x2e:
	case 0x2f:
		return p->operand16 ? 8 : 4;
	case 0x5a:
		return p->repeat ? scalar : p->operand16 ? p->vector : p->vector / 2;
	case 0x78:
	case 0x79:
		if (p->encoding != EVEX)
			return 0;
		return p->repeat ? scalar : p->operand16 && !p->w ? p->vector / 2 : p->vector;
	case 0x7a:
		if (p->encoding != EVEX)
			return 0;
		return p->repeat == 0xf2 || p->w ? p->vector : p->vector / 2;
	case 0x7b:
		if (p->encoding != EVEX)
			return 0;
		return p->repeat || p->w ? (p->repeat ? (p->w ? 8 : 4) : p->vector) :
					   p->vector / 2;
	case 0x7e:
		return p->repeat == 0xf3 || p->w ? 8 : 4;
	case 0x90:
	case 0x91:	/* kmov; else setcc */
		if (p->encoding == LEGACY)
			return 1;
		return p->w ? (p->operand16 ? 4 : 8) : p->operand16 ? 1 : 2;
	case 0xae:	/* clwb is not xsaveopt */
		return p->operand16 && reg_field(p) == 6 ? 1 : state_sizes[reg_field(p)];
	case 0xc7:	/* cmpxchg8b, cmpxchg16b */
		return reg_field(p) == 1 ? (p->w ? 16 : 8) : 0;
	case 0xd1:
	case 0xd2:
	case 0xd3:
	case 0xe1:
	case 0xe2:
	case 0xf1:
	case 0xf2:
	case 0xf3:	/* how far to shift */
		return p->encoding == LEGACY && !p->operand16 ? 8 : 16;
	case 0xe6:	/* W: from numbers that are as wide */
		return p->repeat == 0xf3 && !(p->encoding == EVEX && p->w) ? p->vector / 2 :
									    p->vector;
	}
	return 0;
}

static unsigned int special_three_bytes(const struct parse *p)
{
	static const uint8_t narrower[] = { 2, 4, 8, 2, 4, 2 };	/* vpmovus* store */

	if (p->opcode >= 0x10 && p->opcode <= 0x15) {
		if (p->repeat == 0xf3)
			return p->vector / narrower[p->opcode - 0x10];
		return p->opcode == 0x13 ? p->vector / 2 : p->vector;
	}
	if (p->opcode == 0x2d)	/* vscalefs; else a masked load */
		return p->encoding == EVEX ? (p->w ? 8 : 4) : p->vector;
	if (p->repeat == 0xf2)	/* crc32; else movbe */
		return p->opcode == 0xf0 ? 1 : operand_size(p);
	return operand_size(p);
}

static unsigned int special_one_byte(const struct parse *p, struct tempest_insn *insn)
{
	static const uint8_t group5[] = { 1, 1, 8, 0, 8, 0, 8, 0 };

	if (p->opcode == 0x8f)
		return reg_field(p) ? 0 : p->operand16 ? 2 : 8;
	if (p->opcode != 0xff)
		return x87_size(p);
	if (reg_field(p) < 2)
		return operand_size(p);
	if (reg_field(p) == 2)
		insn->kind = INSN_CALL;
	if (reg_field(p) == 4)
		insn->kind = INSN_JUMP;
	return reg_field(p) == 6 && p->operand16 ? 2 : group5[reg_field(p)];
}

/* 0: not known. */
static unsigned int size_of(const struct parse *p, uint8_t size, struct tempest_insn *insn)
{
	static const uint8_t fixed[] = { 0, 1, 2, 4, 8, 16, 32 };
	bool prefixed = p->encoding != LEGACY || p->operand16 || p->repeat;
	bool half = p->map == 5;

	switch (size) {
	case S_OPERAND:
		return operand_size(p);
	case S_WORD:
		return p->w ? 8 : 4;
	case S_ODD:
		return p->opcode & 1 ? operand_size(p) : 1;
	case S_VECTOR:
		return p->vector;
	case S_MMX:
		return prefixed ? p->vector : 8;
	case S_MMX_LOW:
		return prefixed ? p->vector : 4;
	case S_FLOAT:
		if (!p->repeat)
			return p->vector;
		return half ? 2 : p->repeat == 0xf3 ? 4 : 8;
	case S_HALF:
		return p->vector / 2;
	case S_QUARTER:
		return p->vector / 4;
	case S_EIGHTH:
		return p->vector / 8;
	case S_SPECIAL:
		return p->map == 0 ? special_one_byte(p, insn) :
		       p->map == 1 ? special_two_bytes(p) : special_three_bytes(p);
	default:
		return fixed[size];
	}
}

/* Of EVEX with one element for all. */
static unsigned int element_size(const struct parse *p)
{
	if (p->map >= 5)
		return 2;
	/* Conversions from 32 to 64 bits, with W for the wide side */
	if (p->map == 1 && p->opcode == 0x5a)
		return p->operand16 ? 8 : 4;
	return p->w ? 8 : 4;
}

/* vcompress, vexpand: what is compressed is counted in elements. */
static unsigned int displacement_unit(const struct parse *p, unsigned int size)
{
	if (p->map == 2 && (p->opcode == 0x62 || p->opcode == 0x63))
		return p->w ? 2 : 1;
	if (p->map == 2 && p->opcode >= 0x88 && p->opcode <= 0x8b)
		return p->w ? 8 : 4;
	return size;
}

static bool is_gather(const struct parse *p)
{
	return p->map == 2 && p->encoding != LEGACY &&
	       ((p->opcode >= 0x90 && p->opcode <= 0x93) ||
		(p->opcode >= 0xa0 && p->opcode <= 0xa3) || (p->opcode & 0xfe) == 0xc6);
}

static int32_t take(struct parse *p, unsigned int bytes)
{
	int32_t value;

	if (bytes == 1)
		return (int8_t)*p->next++;
	memcpy(&value, p->next, sizeof(value));
	p->next += sizeof(value);
	return value;
}

/* @unit: what a displacement of a byte is a multiple of. False if relative to RIP. */
static bool parse_address(struct parse *p, unsigned int unit, uintptr_t *address)
{
	unsigned int mode = p->modrm >> 6, rm = p->modrm & 7;
	unsigned int displacement = mode == 1 ? 1 : mode == 2 ? 4 : 0;
	uintptr_t sum = 0;

	if (rm == 5 && mode == 0)
		return false;
	if (rm == 4) {
		uint8_t sib = *p->next++;
		unsigned int index = (sib >> 3 & 7) | p->x, base = sib & 7;

		if (index != 4)
			sum += (uintptr_t)*tempest_register(p->context, index) << (sib >> 6);
		if (base == 5 && mode == 0)
			displacement = 4;
		else
			sum += *tempest_register(p->context, base | p->b);
	} else {
		sum += *tempest_register(p->context, rm | p->b);
	}
	if (displacement == 1)
		sum += (intptr_t)take(p, 1) * (intptr_t)unit;
	else if (displacement == 4)
		sum += take(p, 4);
	*address = sum;
	return true;
}

/* bt, bts, btr, btc with a register: the bit may be far from the operand. */
static void add_bit_offset(const struct parse *p, uint8_t rex, struct tempest_insn *insn)
{
	greg_t bit;

	if (p->map != 1 || (p->opcode & 0xe7) != 0xa3)
		return;
	bit = *tempest_register(p->context, reg_field(p) | (rex & 4 ? 8 : 0));
	if (insn->size == 4)
		bit = (int32_t)bit;
	else if (insn->size == 2)
		bit = (int16_t)bit;
	insn->address += (bit >> (insn->size == 8 ? 6 : insn->size == 4 ? 5 : 4)) *
			 (greg_t)insn->size;
}

static const struct range *look_up(const struct parse *p)
{
	if (p->map >= ARRAY_SIZE(maps) || (p->encoding != EVEX && p->map > 3))
		return NULL;
	for (size_t i = 0; i < maps[p->map].number; i++) {
		const struct range *range = &maps[p->map].ranges[i];

		if (p->opcode >= range->first && p->opcode <= range->last)
			return range;
	}
	return NULL;
}

static unsigned int immediate_size(const struct parse *p, const struct range *range)
{
	/* test is the only one of its group with an immediate */
	if (p->map == 0 && (p->opcode & 0xfe) == 0xf6)
		return reg_field(p) > 1 ? 0 : p->opcode == 0xf6 ? 1 : p->operand16 && !p->w ? 2 : 4;
	if (range->immediate == I_OPERAND)
		return p->operand16 && !p->w ? 2 : 4;
	return range->immediate;
}

/* Those without a ModRM byte. True if it was one. */
static bool decode_implicit(struct parse *p, struct tempest_insn *insn)
{
	uint8_t op = p->opcode;

	if (p->encoding != LEGACY)
		return false;
	if (p->map == 0 && op >= 0xa0 && op <= 0xa3) {		/* mov, absolute */
		memcpy(&insn->address, p->next, sizeof(insn->address));
		p->next += sizeof(insn->address);
		insn->size = op & 1 ? operand_size(p) : 1;
		return true;
	}
	if (p->map == 0 && op == 0xd7) {			/* xlat */
		insn->address = *tempest_register(p->context, 3) +
				(uint8_t)*tempest_register(p->context, 0);
		insn->size = 1;
		return true;
	}
	if (p->map == 0 && ((op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf))) {
		insn->kind = INSN_STRING;
		insn->size = op & 1 ? operand_size(p) : 1;
		return true;
	}
	return false;
}

/* maskmovq, maskmovdqu: the operands are registers, what is written is at RDI. */
static bool decode_maskmov(struct parse *p, struct tempest_insn *insn)
{
	if (p->map != 1 || p->opcode != 0xf7 || p->encoding == EVEX || *p->next < 0xc0)
		return false;
	p->next++;
	insn->address = *tempest_register(p->context, 7);
	insn->size = p->operand16 ? 16 : 8;
	return true;
}

static const char *decode_operand(struct parse *p, uint8_t rex, struct tempest_insn *insn)
{
	const struct range *range;

	if (is_gather(p))
		return "gathers and scatters are not supported in the segment";
	range = look_up(p);
	if (!range)
		return "the instruction is not known";
	p->modrm = *p->next++;
	if (p->modrm >= 0xc0)
		return "the instruction has no operand in memory";
	insn->size = size_of(p, range->size, insn);
	if (!insn->size)
		return "the instruction is not supported in the segment";
	if (p->encoding == EVEX && p->broadcast)
		insn->size = element_size(p);
	if (!parse_address(p, p->encoding == EVEX ? displacement_unit(p, insn->size) : 1,
			   &insn->address))
		return "the operand is relative to the instruction";
	add_bit_offset(p, rex, insn);
	p->next += immediate_size(p, range);
	return NULL;
}

/* Arithmetic to memory, shifts, exchanges. */
static bool modifies_one_byte(const struct parse *p)
{
	unsigned int reg = reg_field(p);

	if (p->opcode < 0x38)
		return (p->opcode & 7) < 2;
	switch (p->opcode) {
	case 0x80:
	case 0x81:
	case 0x83:
		return reg != 7;
	case 0x86:
	case 0x87:
	case 0xc0:
	case 0xc1:
	case 0xd0 ... 0xd3:
		return true;
	case 0xf6:
	case 0xf7:
		return reg == 2 || reg == 3;
	case 0xfe:
	case 0xff:
		return reg < 2;
	}
	return false;
}

/* Single bits, double shifts, exchanges. */
static bool modifies_two_bytes(const struct parse *p)
{
	switch (p->opcode) {
	case 0xa4:
	case 0xa5:
	case 0xab:
	case 0xac:
	case 0xad:
	case 0xb0:
	case 0xb1:
	case 0xb3:
	case 0xbb:
	case 0xc0:
	case 0xc1:
		return true;
	case 0xba:
		return reg_field(p) > 4;
	case 0xc7:
		return reg_field(p) == 1;
	}
	return false;
}

static bool modifies(const struct parse *p)
{
	if (p->encoding != LEGACY)
		return false;
	return p->map == 0 ? modifies_one_byte(p) : p->map == 1 && modifies_two_bytes(p);
}

const char *tempest_decode(const ucontext_t *context, struct tempest_insn *insn)
{
	const uint8_t *start = (const uint8_t *)context->uc_mcontext.gregs[REG_RIP];
	struct parse p = { .next = start, .context = context };
	const char *why = NULL;
	uint8_t rex;

	*insn = (struct tempest_insn){ .kind = INSN_PLAIN };
	if (!parse_prefixes(&p))
		return "segment and address size prefixes are not supported in the segment";
	insn->prefixes = p.next - start;
	rex = (*p.next & 0xf0) == 0x40 ? *p.next : 0;
	parse_opcode(&p);
	insn->opcode = p.opcode;
	insn->repeat = p.repeat;
	if (!decode_implicit(&p, insn) && !decode_maskmov(&p, insn))
		why = decode_operand(&p, rex, insn);
	insn->modifies = insn->kind == INSN_PLAIN && modifies(&p);
	insn->length = p.next - start;
	return why;
}
