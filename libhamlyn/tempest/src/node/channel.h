/* SPDX-License-Identifier: MIT */
/* Virtual channels. */
#ifndef TEMPEST_CHANNEL_H
#define TEMPEST_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

/* Is the page part of a buffer that a channel is to write to, or is being sent from? */
bool tempest_channel_holds(uintptr_t page);

#endif /* TEMPEST_CHANNEL_H */
