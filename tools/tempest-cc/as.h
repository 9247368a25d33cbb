/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_AS_H
#define TEMPEST_CC_AS_H

/* What the compiler tells the assembler, by way of the environment */
#define ENV_AS		"HAMLYN_TEMPEST_AS"	/* the true assembler */
#define ENV_REPORT	"HAMLYN_TEMPEST_REPORT"	/* a file that reports are added to */
#define ENV_PLAIN	"HAMLYN_TEMPEST_PLAIN"	/* why nothing is to be checked */
#define ENV_SOURCE	"HAMLYN_TEMPEST_SOURCE"	/* what is compiled, if it is one file */
#define ENV_GIVEN	"HAMLYN_TEMPEST_GIVEN"	/* files that are assembly already, in lines */

/* The assembler: adds checks to what a compiler wrote, and has it assembled. */
int as_main(int argc, char **argv);

#endif /* TEMPEST_CC_AS_H */
