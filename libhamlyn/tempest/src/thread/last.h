/* SPDX-License-Identifier: MIT */
/* The end of the program's last thread. */
#ifndef TEMPEST_LAST_H
#define TEMPEST_LAST_H

/* Before the library has threads, and when it has all of them; by the program's first thread. */
void tempest_last_begin(void);
void tempest_last_start(void);

#endif /* TEMPEST_LAST_H */
