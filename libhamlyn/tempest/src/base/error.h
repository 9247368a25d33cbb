/* SPDX-License-Identifier: MIT */
/* Ends of the program, with a message. */
#ifndef TEMPEST_ERROR_H
#define TEMPEST_ERROR_H

/* What the program did cannot be carried out: aborts. Safe in a signal handler. */
__attribute__((noreturn, cold, format(printf, 1, 2)))
void tempest_die(const char *format, ...);

/* The surroundings do not allow Tempest to start: exits with 1. */
__attribute__((noreturn, cold, format(printf, 1, 2)))
void tempest_refuse(const char *format, ...);

/* What should be looked into. */
__attribute__((cold, format(printf, 1, 2)))
void tempest_warn(const char *format, ...);

#endif /* TEMPEST_ERROR_H */
