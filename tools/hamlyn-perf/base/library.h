/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Other people's libraries: compiled for where their headers are, loaded when one is measured.
 * Linked ones would start their threads and hooks in each process, whatever it measures.
 *
 * A system has a structure of pointers that are named as the functions are, and a list of them.
 */
#ifndef HAMLYN_PERF_LIBRARY_H
#define HAMLYN_PERF_LIBRARY_H

#include <stddef.h>

struct library_call {
	const char *name;
	void *pointer;		/* to the pointer that calls it */
};

struct library {
	const char *file;	/* with the version that its headers belong to */
	const struct library_call *calls;
	size_t ncalls;
};

#define LIBRARY_CALL(pointers, name)	{ #name, &(pointers).name }

/* NULL, or for people why it cannot be loaded. Nothing of it stays in this process. */
const char *library_missing(const struct library *library);
int library_load(const struct library *library);

#endif /* HAMLYN_PERF_LIBRARY_H */
