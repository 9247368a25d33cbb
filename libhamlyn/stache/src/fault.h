/* SPDX-License-Identifier: MIT */
#ifndef STACHE_FAULT_H
#define STACHE_FAULT_H

/* Become the handler of page faults. */
void stache_fault_start(void);

#endif /* STACHE_FAULT_H */
