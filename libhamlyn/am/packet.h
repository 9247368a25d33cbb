/* SPDX-License-Identifier: MIT */
/* What is in a message of Active Messages, and where it lies. */
#ifndef HAMLYN_AM_PACKET_H
#define HAMLYN_AM_PACKET_H

#include <stdint.h>

#define AM_WORDS	5

/*
 * How the handler is called, and whether there are data behind the header. The
 * engine has some of its own, without a handler.
 */
enum am_kind {
	AM_ARGS_0	= 0,	/* handler(source, ...) with 0 to 5 words */
	AM_ARGS_5	= 5,
	AM_ARGS_HPAM	= 6,	/* handler(4 words) */
	AM_MEMORY	= 7,	/* data to an address, handler(source, addr, n, arg) */
	AM_MEMORY_HPAM	= 8,	/* handler(arg, addr, n) */
	AM_MEDIUM	= 9,	/* handler(source, data, n, 2 words) */
	AM_GET		= 10,	/* request: reply with memory */
	AM_GOT		= 11,	/* the reply */
	AM_SYNC		= 12,	/* request of lam_sync_all(); reply: that it fails */
	AM_ACK		= 13,	/* reply without a handler, of one or more requests */
	AM_ARGS_DF	= 14,	/* handler(source, 2 words, a double) */
	AM_KINDS	= 15,
};

#define AM_SUMMED	0x80	/* in kind: args[4] is the data's checksum */

/**
 * struct am_packet - header of a message; data follow
 * @check: checksum of the rest of the header, with the destination and the direction
 * @seq: sequence number on its instance
 * @source: process that sent it
 * @instance: of the request; a reply has its request's
 * @kind: enum am_kind, AM_SUMMED
 * @length: bytes of data behind the header; AM_ACK: how many more there are in
 *	@handler and @args, instance << 24 | sequence number modulo 2^24 each
 * @handler: module << 48 | offset, see address.c
 * @args: words. AM_MEMORY: argument, address of the whole, length of the whole |
 *	transfer << 32, offset of this segment; AM_GET: address, length, of the
 *	requester's: offset, descriptor; AM_GOT: offset, descriptor; AM_SYNC: round, or
 *	AM_SYNC_ASK; its reply: error, process that was lost
 *
 * Written once by the sender. The receiver's copy may be overwritten at any time, by
 * the same sender, when a fabric repeats or delays packets, or when a request was sent
 * again; so it copies the header, checks the copy, and uses the copy.
 */
struct am_packet {
	uint32_t check;
	uint32_t seq;
	uint16_t source;
	uint8_t instance;
	uint8_t kind;
	uint32_t length;
	uint64_t handler;
	uint64_t args[AM_WORDS];
};

_Static_assert(sizeof(struct am_packet) == 64, "a cache line");

#define AM_HEADER	((uint32_t)sizeof(struct am_packet))
#define AM_SEQ24	0xffffffU
#define AM_MAX_ACKS	13	/* of one AM_ACK: its own, and 2 in each other word */

#endif /* HAMLYN_AM_PACKET_H */
