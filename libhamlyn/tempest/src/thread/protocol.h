/* SPDX-License-Identifier: MIT */
/* The protocol thread, which runs all handlers. */
#ifndef TEMPEST_PROTOCOL_H
#define TEMPEST_PROTOCOL_H

#include <signal.h>
#include <stdbool.h>

/* Make it. */
void tempest_protocol_start(void);

/* Of the caller, as that thread has them blocked; @old is what was. */
void tempest_protocol_block_signals(sigset_t *old);

/* There is something to do for it. From any thread, signal handlers too. */
void tempest_protocol_kick(void);

/*
 * Does it run, or last ran, where the caller does? Then to wait for it awake is to keep it
 * from running.
 */
bool tempest_protocol_is_here(void);

/* Protocol thread: a thread that waits on this processor has been resumed. */
void tempest_protocol_resumed(int processor);

#endif /* TEMPEST_PROTOCOL_H */
