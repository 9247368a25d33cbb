/* SPDX-License-Identifier: MIT */
/*
 * What instrumented code and this library agree on. Both C and assembler include this.
 *
 * A checked access is, for a load or store INSN of SIZE bytes at the operand MEM (an
 * address without a segment prefix), with r11 as its only scratch register; EFLAGS are
 * lost:
 *
 *		leaq	MEM, %r11
 *		shrq	$TEMPEST_SEGMENT_SHIFT, %r11
 *		cmpl	$TEMPEST_SEGMENT_TOP, %r11d
 *		je	1f			# in the segment: out of the way
 *	9:	INSN	MEM			# plain
 *	2:	...
 *
 *	1:	movq	__tempest_rseq_cs_1(%rip), %r11
 *		movq	$3f, %fs:(%r11)		# TEMPEST_RSEQ_CS: enters the section at 4
 *	4:	leaq	MEM, %r11
 *		shrq	$TEMPEST_TAG_SHIFT, %r11
 *		cmpb	$NEED, (%r11)		# tag of the first byte's block
 *		jCC	9b
 *		leaq	SIZE-1+MEM, %r11	# only if SIZE > 1
 *		shrq	$TEMPEST_TAG_SHIFT, %r11
 *		cmpb	$NEED, (%r11)		# and of the last byte's
 *		jCC	9b
 *		INSN	%gs:MEM			# by the alias: the commit, the last instruction
 *	5:	jmp	2b
 *		.byte	0x0f, 0xb9, 0x3d	# so that what follows disassembles as ud1
 *		.long	TEMPEST_RSEQ_SIGNATURE
 *	6:	jmp	1b			# abort: preempted, or told by membarrier()
 *
 *		.section TEMPEST_RSEQ_SECTION, "aw"; .balign 32
 *	3:	.long	0, 0			# struct rseq_cs: version, flags
 *		.quad	4b, 5b - 4b, 6b		# start, length, abort
 *
 * with CC = b and NEED = TEMPEST_TAG_READ_ONLY for a load, CC = ne and NEED =
 * TEMPEST_TAG_WRITABLE for a store and whatever reads and writes. All of INSN's memory is
 * in at most two blocks: SIZE <= TEMPEST_BLOCK_SIZE. A block's contents follow its tag on
 * upgrades, and membarrier(PRIVATE_EXPEDITED_RSEQ) is between tag and contents on
 * downgrades: so an access that has seen the tag in its section is complete before the
 * block is copied, or starts again at 1 and sees the new one.
 *
 * The conflicting access at 9 must be the plain instruction: it is what traps. Whatever
 * is not instrumented traps there too wherever the application view is closed, so nothing
 * depends on all accesses being instrumented. In particular leave plain: instructions
 * with a segment prefix or VSIB, string instructions, call and jmp through memory, larger
 * ones than a block, and those for which EFLAGS or r11 are live.
 *
 * A page all of whose blocks allow an access may be open in the application view, and then the
 * plain instruction does not trap. So a loop over addresses that go on in even steps may look
 * once, before it begins, at what is said of the page of each:
 *
 *		leaq	MEM, %r11
 *		shrq	$TEMPEST_PAGE_SHIFT, %r11
 *		btsq	$TEMPEST_WHOLE_BIT, %r11
 *		cmpb	$NEED, (%r11)		# lowest tag of the page's blocks
 *		jb	7f			# a loop in which each access is checked
 *		movq	__tempest_loop_1(%rip), %r11
 *		movq	$8f, %fs:(%r11)		# TEMPEST_LOOP: this is the loop that it is in
 *		...				# the loop with plain instructions
 *
 *		.section TEMPEST_LOOP_SECTION, "aw"; .balign 8
 *	8:	.quad	PLAIN, CHECKED		# for each plain INSN: where it is in both loops
 *		.quad	0, 0
 *
 * That is no more than a guess: the page may be changed as soon as one has looked, and the next
 * page may be another. A plain instruction traps then; and the trap handler lets the thread go on
 * at CHECKED, where the program's registers are the same, but for r11 and EFLAGS.
 *
 * The program is linked at fixed addresses (-no-pie): $3f is an absolute 32-bit number,
 * and the addresses of handlers travel between nodes. r11 must be free: -ffixed-r11.
 * Nothing else may use %gs: its base is set for the first thread before main(), the
 * others inherit it.
 *
 * Where rseq is not to be had, the variable leads to a word that nobody reads, and the
 * table at TEMPEST_TAG_BASE remains zero, so that every access in the segment traps.
 */
#ifndef TEMPEST_ABI_H
#define TEMPEST_ABI_H

#if !defined(__x86_64__) || !defined(__linux__) || defined(__ILP32__)
#error "Tempest is for Linux on x86-64 only: its access control is made of its instructions"
#endif

#ifndef TEMPEST_LOW_SEGMENT
/* Segment: [2^44, 2^44 + 64 GiB), all of which is reserved whatever is used of it. */
#define TEMPEST_SEGMENT_TOP	0x100
#define TEMPEST_SEGMENT_BASE	0x100000000000

/* %gs:address is the alias view, which is always open; the base of gs: */
#define TEMPEST_ALIAS_OFFSET	0x80000000000

/* Tags: a byte for each block, at its address >> 5; 0 where no page is mapped. */
#define TEMPEST_TAG_BASE	0x8000000000

/* What is said of a page: a byte at (its address >> 12) with another bit set; 0 if nothing. */
#define TEMPEST_WHOLE_BIT	40
#define TEMPEST_WHOLE_BASE	0x10100000000
#else
/*
 * The same below 2^39, for our own tests: that is what the thread sanitizer leaves to programs,
 * which has its shadow from 2^40 on. Code that was instrumented for the other does not go with it.
 */
#define TEMPEST_SEGMENT_TOP	0x2
#define TEMPEST_SEGMENT_BASE	0x2000000000
#define TEMPEST_ALIAS_OFFSET	0x4000000000
#define TEMPEST_TAG_BASE	0x100000000
#define TEMPEST_WHOLE_BIT	33
#define TEMPEST_WHOLE_BASE	0x202000000
#endif

#define TEMPEST_SEGMENT_SHIFT	36
#define TEMPEST_TAG_SHIFT	5
#define TEMPEST_BLOCK_SIZE	32
#define TEMPEST_PAGE_SHIFT	12

#define TEMPEST_TAG_INVALID	0
#define TEMPEST_TAG_BUSY	1
#define TEMPEST_TAG_READ_ONLY	2
#define TEMPEST_TAG_WRITABLE	3

/*
 * Long variable of the library: where struct rseq's rseq_cs of the current thread is, as
 * an offset from %fs. The number in its name is that of this interface: code that was
 * instrumented for another does not link. The other one says where the current thread's loop is;
 * code of 0.2 has none, and goes on running.
 */
#define TEMPEST_RSEQ_CS		__tempest_rseq_cs_1
#define TEMPEST_RSEQ_SECTION	__rseq_cs
#define TEMPEST_LOOP		__tempest_loop_1
#define TEMPEST_LOOP_SECTION	__tempest_loops
#define TEMPEST_RSEQ_SIGNATURE	0x53053053

#ifndef __ASSEMBLER__
extern long TEMPEST_RSEQ_CS, TEMPEST_LOOP;
#endif

#endif /* TEMPEST_ABI_H */
