/* SPDX-License-Identifier: GPL-2.0-only */
/* Accesses as instrumented code makes them; see abi.h. The address is in rdi. */
#include "base/abi.h"

/* SIZE bytes at (%rdi); NEED and the jump if the tag is another */
.macro checked name, size, need, conflict, plain, aliased
	.text
	.globl	\name
	.type	\name, @function
\name:
	leaq	(%rdi), %r11
	shrq	$TEMPEST_SEGMENT_SHIFT, %r11
	cmpl	$TEMPEST_SEGMENT_TOP, %r11d
	je	1f
9:	\plain
2:	ret
1:	movq	TEMPEST_RSEQ_CS(%rip), %r11
	movq	$3f, %fs:(%r11)
4:	leaq	(%rdi), %r11
	shrq	$TEMPEST_TAG_SHIFT, %r11
	cmpb	$\need, (%r11)
	\conflict 9b
	.if \size > 1
	leaq	\size-1(%rdi), %r11
	shrq	$TEMPEST_TAG_SHIFT, %r11
	cmpb	$\need, (%r11)
	\conflict 9b
	.endif
	\aliased
5:	jmp	2b
	.byte	0x0f, 0xb9, 0x3d
	.long	TEMPEST_RSEQ_SIGNATURE
6:	jmp	1b
	.pushsection TEMPEST_RSEQ_SECTION, "aw"
	.balign	32
3:	.long	0, 0
	.quad	4b, 5b - 4b, 6b
	.popsection
	.size	\name, . - \name
.endm

/* uint32_t checked_load(const uint32_t *); uint64_t checked_load_8(const uint64_t *) */
checked checked_load, 4, TEMPEST_TAG_READ_ONLY, jb, "movl (%rdi), %eax", "movl %gs:(%rdi), %eax"
checked checked_load_8, 8, TEMPEST_TAG_READ_ONLY, jb, "movq (%rdi), %rax", "movq %gs:(%rdi), %rax"
/* void checked_store(uint32_t *, uint32_t) */
checked checked_store, 4, TEMPEST_TAG_WRITABLE, jne, "movl %esi, (%rdi)", "movl %esi, %gs:(%rdi)"
/* void checked_add(uint32_t *, uint32_t) */
checked checked_add, 4, TEMPEST_TAG_WRITABLE, jne, "addl %esi, (%rdi)", "addl %esi, %gs:(%rdi)"

	.section .note.GNU-stack, "", @progbits
