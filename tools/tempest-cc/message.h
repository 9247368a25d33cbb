/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_MESSAGE_H
#define TEMPEST_CC_MESSAGE_H

#include <stddef.h>

#define ME "hamlyn-tempest-cc"

/* A line to standard error, with the name of the program before it. */
__attribute__((format(printf, 1, 2)))
void say(const char *format, ...);

/* The same, and the end with status 1. */
__attribute__((format(printf, 1, 2), noreturn))
void give_up(const char *format, ...);

/* realloc() that does not fail. */
void *enlarge(void *p, size_t size);

#endif /* TEMPEST_CC_MESSAGE_H */
