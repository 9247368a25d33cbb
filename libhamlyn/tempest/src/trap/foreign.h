/* SPDX-License-Identifier: MIT */
/*
 * Copies in the trap handler, of which one side may be outside of the segment: on a page
 * that the program's own handler of SIGSEGV guards, or behind the end of a file.
 */
#ifndef TEMPEST_FOREIGN_H
#define TEMPEST_FOREIGN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

/**
 * tempest_foreign_copy() - copy elements, each with one load and one store
 * @to: where to
 * @from: where from
 * @number: of elements
 * @size: of an element: 1, 2, 4 or 8
 *
 * Return: false if there was a fault; some may have been copied.
 */
bool tempest_foreign_copy(void *to, const void *from, size_t number, unsigned int size);

/* In the handler of a fault: true if it is one of the above, which then returns false. */
bool tempest_foreign_fault(const siginfo_t *info, ucontext_t *context);

/* Hand the fault on, as that of the instruction which has trapped. */
void tempest_foreign_chain(ucontext_t *context);

#endif /* TEMPEST_FOREIGN_H */
