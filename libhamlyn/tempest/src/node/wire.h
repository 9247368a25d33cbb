/* SPDX-License-Identifier: MIT */
/*
 * Transfers that the device makes itself, in one send, without messages.
 *
 * On the kernel device an area can be made of any memory, so it arrives where it is to be. But
 * only buffers of transfers are wired, never the segment: a destination from when it is set
 * until it is destroyed, a source while it is sent. channel.c sees to it that no page of them
 * is unmapped or moved meanwhile. An embedded device receives into memory of its own only:
 * there it is copied once more, as it is for buffers outside of the segment.
 *
 * Any failure means that messages are used.
 */
#ifndef TEMPEST_WIRE_H
#define TEMPEST_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hamlyn.h>

#include "base/control.h"

struct tempest_wire;

/* How to send to a destination; all zero if only messages are. A region of words. */
struct tempest_wire_ticket {
	unsigned char bytes[H_TICKET_BYTES] __attribute__((aligned(4)));
};

#ifdef TEMPEST_TEST_CONTROLS
extern _Atomic unsigned int tempest_wired_sends, tempest_wired_buffers;
#endif

/**
 * tempest_wire_destination() - have the device receive transfers for a buffer
 * @buffer: it; only wired if it is in the segment: other memory may be unmapped by anybody
 * @bytes: of it
 * @ticket: out: for the source
 *
 * Return: NULL if they come by messages.
 */
struct tempest_wire *tempest_wire_destination(void *buffer, size_t bytes,
					      struct tempest_wire_ticket *ticket);

/**
 * tempest_wire_send() - have a buffer sent
 * @buffer: it; stays as it is until tempest_wire_is_sent()
 * @bytes: of it
 * @exported: ticket of the destination
 *
 * Return: NULL if it is to be sent by messages.
 */
struct tempest_wire *tempest_wire_send(void *buffer, size_t bytes,
				       const struct tempest_wire_ticket *exported);

/* Has all of it left? Then it has arrived, or never will. Ends the program if it cannot leave. */
bool tempest_wire_is_sent(const struct tempest_wire *wire);

/**
 * tempest_wire_landed() - take a transfer that the source's NIC has sent
 * @wire: destination
 * @buffer: it is there afterwards
 * @bytes: of it
 *
 * Return: false if this NIC has not accepted all of it.
 */
bool tempest_wire_landed(const struct tempest_wire *wire, void *buffer, size_t bytes);

/* Before the source is told that it may send again. */
void tempest_wire_arm(const struct tempest_wire *wire);

/* The end of either; NULL is none. */
void tempest_wire_end(struct tempest_wire *wire);

#endif /* TEMPEST_WIRE_H */
