/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_EMIT_H
#define TEMPEST_CC_EMIT_H

#include <stdio.h>

#include "loop.h"
#include "plan.h"

/**
 * emit() - writes a file of assembly with its checks
 * @text: the file
 * @sites: what becomes of each line
 * @loops: which loops there are to be two of, in their order
 * @n: how many
 * @out: where to
 *
 * Each checked access becomes a test whether the address is in the segment, and outside of
 * the way of others a section that the kernel restarts (rseq): the look at the tag, and the
 * access through the alias. Where the tag forbids it, the instruction as it was is executed,
 * and trapped. Tempest 1.2.1, 3.2.6.
 */
void emit(const struct text *text, const struct site *sites, const struct loop *loops, size_t n,
	  FILE *out);

#endif /* TEMPEST_CC_EMIT_H */
