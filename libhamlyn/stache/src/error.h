/* SPDX-License-Identifier: MIT */
#ifndef STACHE_ERROR_H
#define STACHE_ERROR_H

/* What the program did cannot be carried out: aborts, with a message. */
__attribute__((noreturn, cold, format(printf, 1, 2)))
void stache_die(const char *format, ...);

#endif /* STACHE_ERROR_H */
