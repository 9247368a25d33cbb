/* SPDX-License-Identifier: MIT */
/* Channels to the other nodes. */
#ifndef TEMPEST_LINK_H
#define TEMPEST_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Make them; nothing to do if this is the only node. */
void tempest_link_start(void);

/* The others may end from now on; if one should not the launcher sees to it. */
void tempest_link_leave(void);

/**
 * tempest_link_send() - send to another node, in order, without waiting
 * @node: the node
 * @data: of the message; copied
 * @bytes: of it
 *
 * What the channel does not take now is kept; tempest_link_flush() sends it.
 */
void tempest_link_send(uint32_t node, const void *data, size_t bytes);

/* Send what was kept. False if there was nothing, or it cannot be sent yet. */
bool tempest_link_flush(void);

/* Is something kept? */
bool tempest_link_owes(void);

/**
 * tempest_link_receive() - receive a message
 * @handle: called with it, unless there is none
 *
 * Return: false if there is none.
 */
bool tempest_link_receive(void (*handle)(uint32_t node, const void *data, size_t bytes));

/* Sleep until something arrives, another thread rings, or the time is over. */
void tempest_link_sleep(int64_t ns);

/* End a sleep that is or is about to be. From any thread. */
void tempest_link_ring(void);

#endif /* TEMPEST_LINK_H */
