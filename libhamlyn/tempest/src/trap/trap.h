/* SPDX-License-Identifier: MIT */
/* The handler of SIGSEGV and SIGBUS. */
#ifndef TEMPEST_TRAP_H
#define TEMPEST_TRAP_H

#include <signal.h>

void tempest_trap(int signal, siginfo_t *info, void *context);

#endif /* TEMPEST_TRAP_H */
