/* SPDX-License-Identifier: MIT */
/* Instructions that have trapped: how long they are, and what memory they access. */
#ifndef TEMPEST_DECODE_H
#define TEMPEST_DECODE_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#define INSN_BYTES	15	/* the longest there is */

enum tempest_insn_kind {
	INSN_PLAIN,	/* one operand in memory that a segment prefix moves */
	INSN_STRING,	/* movs, cmps, stos, lods, scas */
	INSN_CALL,	/* the address is in memory */
	INSN_JUMP,
};

/**
 * struct tempest_insn - an instruction and its operand
 * @kind: how it is to be executed
 * @length: of the instruction
 * @prefixes: of these, legacy prefixes
 * @address: first byte accessed; not for INSN_STRING
 * @size: bytes accessed, never too few; of one element for INSN_STRING
 * @opcode: its last byte
 * @repeat: 0, 0xf2 or 0xf3
 * @modifies: it loads its operand and stores it. A processor tells of a store when such an
 *            instruction faults; an emulator that does the load first may not
 */
struct tempest_insn {
	enum tempest_insn_kind kind;
	uint8_t length;
	uint8_t prefixes;
	uintptr_t address;
	unsigned int size;
	uint8_t opcode;
	uint8_t repeat;
	bool modifies;
};

/**
 * tempest_decode() - decode the instruction of a context
 * @context: RIP is at it, the registers are as it finds them
 * @insn: out
 *
 * Return: NULL, or why it cannot be executed out of line.
 */
const char *tempest_decode(const ucontext_t *context, struct tempest_insn *insn);

/* A general register of a context, by its number in instructions. */
greg_t *tempest_register(const ucontext_t *context, unsigned int number);

#endif /* TEMPEST_DECODE_H */
