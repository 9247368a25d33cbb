/* SPDX-License-Identifier: MIT */
/* The protocol thread, which runs all handlers. */
#ifndef TEMPEST_PROTOCOL_H
#define TEMPEST_PROTOCOL_H

#include <stdbool.h>

/* Make it. */
void tempest_protocol_start(void);

/* There is something to do for it. From any thread, signal handlers too. */
void tempest_protocol_kick(void);

#endif /* TEMPEST_PROTOCOL_H */
