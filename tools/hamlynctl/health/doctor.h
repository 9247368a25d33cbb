/* SPDX-License-Identifier: GPL-2.0-only */
/* What works on this machine, what does not, and what mends it. */
#ifndef HAMLYNCTL_DOCTOR_H
#define HAMLYNCTL_DOCTOR_H

#include <stddef.h>

#define MAX_FINDINGS	32

/* Not every machine needs all: what is missing is a fault only where something relies on it. */
enum condition {
	CONDITION_OK,
	CONDITION_NOTE,	/* something is not to be had, or slower than it could be */
	CONDITION_FAULT,
};

/**
 * struct finding - what one look has found
 * @what: that was looked at: a word
 * @condition: how it is
 * @found: a sentence
 * @mend: commands, or what to do; "" where nothing is to be done
 */
struct finding {
	const char *what;
	enum condition condition;
	char found[256];
	char mend[256];
};

/**
 * struct examination - all looks, at one machine
 * @root: in front of the paths of its files: "", but in tests
 * @release: of its kernel
 * @count: of @findings
 * @has_module: a kernel device is to be expected
 */
struct examination {
	const char *root;
	char release[80];
	size_t count;
	int has_module;
	struct finding findings[MAX_FINDINGS];
};

void doctor_examine(struct examination *e);

#endif /* HAMLYNCTL_DOCTOR_H */
