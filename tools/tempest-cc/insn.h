/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_INSN_H
#define TEMPEST_CC_INSN_H

#include "text.h"

/**
 * struct access - what an instruction does with its operand in memory
 * @operand: which one that is
 * @size: bytes that it reads or writes there
 * @write: it writes, or reads and writes
 * @aligned: the processor refuses an address that is no multiple of @size
 */
struct access {
	int operand;
	int size;
	bool write;
	bool aligned;
};

/* The operand that is in memory: its index, or -1 where there is none, or more than one. */
int insn_memory(const struct line *line);

/*
 * What does @line do with its operand in memory? It has one, and no prefix but lock. Return:
 * NULL and @access, or why that is not said: a word or two for the report.
 */
const char *insn_access(const struct line *line, struct access *access);

/* The arithmetic flags: does it read one of them, does it write them all? */
bool insn_reads_flags(const struct line *line);
bool insn_kills_flags(const struct line *line);

#endif /* TEMPEST_CC_INSN_H */
