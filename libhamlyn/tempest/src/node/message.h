/* SPDX-License-Identifier: MIT */
/* Messages: their bodies, and the handlers that they are for. */
#ifndef TEMPEST_MESSAGE_H
#define TEMPEST_MESSAGE_H

#include <stdbool.h>

/* Protocol thread: run the handler of one message. False if there is none. */
bool tempest_message_run(void);

#endif /* TEMPEST_MESSAGE_H */
