// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "am.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/quiet.h"
#include "memory/block.h"
#include "node/link.h"
#include "node/message.h"
#include "thread/protocol.h"

#define WORD	((int)sizeof(int))

/* A word stream without types: what was sent as one item may be received as others. */
struct message {
	struct message *next;
	TPPI_MessageHandlerPtr handler;
	int size;
	unsigned char body[];
};

/* Of this node to itself. */
static struct tempest_lock lock;
static struct message *own, **own_end = &own;

/* Protocol thread: what is left of the message whose handler runs. */
static const unsigned char *rest;
static int rest_bytes = -1;

/* ---- sending ---- */

/*
 * @bytes: what there is of it so far
 * @handler: as other nodes find it: module and offset. What is sent to them begins here
 */
struct body {
	int bytes;
	uint64_t handler;
	unsigned char data[TPPI_MAX_AM_BYTES];
};

static unsigned char *append(struct body *body, int bytes)
{
	unsigned char *at = body->data + body->bytes;

	if (bytes < 0 || bytes % WORD)
		tempest_die("a message's item has %d bytes, which are not whole words", bytes);
	if (bytes > TPPI_MAX_AM_BYTES - body->bytes)
		tempest_die("a message's body is longer than %d bytes", TPPI_MAX_AM_BYTES);
	body->bytes += bytes;
	return at;
}

static void append_block(struct body *body, void *blk_va, int blk_len, TPPI_BlkTagChange change)
{
	struct tempest_copy copy = { .out = append(body, blk_len) };

	tempest_block_change(blk_va, blk_len, change, copy, "TPPI_send");
}

static void append_region(struct body *body, const void *va, int bytes)
{
	unsigned char *at = append(body, bytes);

	if ((uintptr_t)va % WORD)
		tempest_die("a message's region begins at %p, within a word", va);
	memcpy(at, tempest_block_reach(va, bytes, "TPPI_send"), bytes);
}

static const unsigned char *consume(int bytes)
{
	const unsigned char *at = rest;

	if (!tempest_is_protocol || rest_bytes < 0)
		tempest_die("received outside of a message's handler");
	if (bytes < 0 || bytes % WORD || bytes > rest_bytes)
		tempest_die("received %d bytes of a message that has %d left", bytes, rest_bytes);
	rest += bytes;
	rest_bytes -= bytes;
	return at;
}

static void build(struct body *body, const char *types, va_list args)
{
	for (; *types; types++) {
		if (*types == 'W') {
			int word = va_arg(args, int);

			memcpy(append(body, WORD), &word, WORD);
		} else if (*types == 'P') {
			void *pointer = va_arg(args, void *);

			memcpy(append(body, sizeof(pointer)), &pointer, sizeof(pointer));
		} else if (*types == 'B' && types[1] == 'a') {
			void *blk_va = va_arg(args, void *);
			int blk_len = va_arg(args, int);

			append_block(body, blk_va, blk_len, va_arg(args, TPPI_BlkTagChange));
			types++;
		} else if (*types == 'R') {
			void *va = va_arg(args, void *);

			append_region(body, va, va_arg(args, int));
		} else if (*types == 'F') {
			int bytes = va_arg(args, int);

			memcpy(append(body, bytes), consume(bytes), bytes);
		} else {
			tempest_die("there is no item \"%s\" in a message", types);
		}
	}
}

/* The protocol thread looks without the lock whether there is a first one. */
static void set_next(struct message **at, struct message *message)
{
	__atomic_store_n(at, message, __ATOMIC_RELAXED);
}

static void send_to_self(TPPI_MessageHandlerPtr pc, const struct body *body)
{
	struct message *message = malloc(sizeof(*message) + body->bytes);

	if (!message)
		tempest_die("no memory for a message");
	*message = (struct message){
		.handler = pc,
		.size = body->bytes,
	};
	memcpy(message->body, body->data, body->bytes);
	tempest_lock(&lock);
	set_next(own_end, message);
	own_end = &message->next;
	tempest_unlock(&lock);
	tempest_protocol_kick();
}

static void send_body(TPPI_NodeId dest, TPPI_MessageHandlerPtr pc, struct body *body)
{
	if (dest >= TPPI_num_nodes)
		tempest_die("a message is for node %u of %u", dest, TPPI_num_nodes);
	/* Of one's own, too: what works on one node works on several */
	body->handler = am_address_name((void (*)(void))pc);
	if (!body->handler)
		tempest_die("a message's handler, %p, is no function of the program", (void *)pc);
	if (dest == TPPI_self_address) {
		send_to_self(pc, body);
		return;
	}
	tempest_link_send(dest, &body->handler, sizeof(body->handler) + body->bytes);
}

void TPPI_send_items(TPPI_NodeId dest, TPPI_MessageHandlerPtr pc, const char *types, ...)
{
	struct body body;
	va_list args;

	QUIET_CALL();
	body.bytes = 0;
	va_start(args, types);
	build(&body, types, args);
	va_end(args);
	send_body(dest, pc, &body);
}

void TPPI_send(TPPI_NodeId dest, TPPI_MessageHandlerPtr pc)
{
	TPPI_send_items(dest, pc, "");
}

/* ---- receiving ---- */

int TPPI_recv_W(void)
{
	int word;

	memcpy(&word, consume(WORD), WORD);
	return word;
}

void *TPPI_recv_P(void)
{
	void *pointer;

	memcpy(&pointer, consume(sizeof(pointer)), sizeof(pointer));
	return pointer;
}

void TPPI_recv_R(void *va, int len)
{
	const unsigned char *from = consume(len);

	if ((uintptr_t)va % WORD)
		tempest_die("%s: the region begins at %p, within a word", __func__, va);
	memcpy(tempest_block_reach(va, len, __func__), from, len);
}

void TPPI_recv_Ba(void *blk_va, int blk_len, TPPI_BlkTagChange chg)
{
	struct tempest_copy copy = { .in = consume(blk_len) };

	tempest_block_change(blk_va, blk_len, chg, copy, __func__);
}

static struct message *take(void)
{
	struct message *message;

	tempest_lock(&lock);
	message = own;
	if (message) {
		struct message *next = message->next;

		set_next(&own, next);
		if (!next)
			own_end = &own;
	}
	tempest_unlock(&lock);
	return message;
}

static void run_handler(TPPI_MessageHandlerPtr handler, TPPI_NodeId source, const void *body,
			int size)
{
	rest = body;
	rest_bytes = size;
	handler(source, size);
	/* Before the message is given back, which is its parent's: protocol.c */
	tempest_not_by_child("return from a handler");
	if (rest_bytes)
		tempest_die("a message's handler has left %d bytes of it", rest_bytes);
	rest_bytes = -1;
}

/* The other node has the same program; but what it says is looked at all the same. */
static void handle_other(uint32_t node, const void *data, size_t bytes)
{
	TPPI_MessageHandlerPtr handler;
	uint64_t name;

	if (bytes < sizeof(name) || bytes - sizeof(name) > TPPI_MAX_AM_BYTES)
		tempest_die("node %u has sent a message of %zu bytes", node, bytes);
	memcpy(&name, data, sizeof(name));
	handler = (TPPI_MessageHandlerPtr)am_address_find(name);
	if (!handler)
		tempest_die("node %u has sent a message for what is no function", node);
	run_handler(handler, node, (const char *)data + sizeof(name), bytes - sizeof(name));
}

static bool run_own(void)
{
	struct message *message;

	/* The queue is looked at again before the protocol thread sleeps: protocol.c */
	if (!__atomic_load_n(&own, __ATOMIC_RELAXED))
		return false;
	message = take();
	run_handler(message->handler, TPPI_self_address, message->body, message->size);
	free(message);
	return true;
}

/*
 * By turns: a handler that sends to its own node until another one has answered would never
 * see the answer.
 */
bool tempest_message_run(void)
{
	static bool others_first;

	others_first = !others_first;
	if (others_first)
		return tempest_link_receive(handle_other) || run_own();
	return run_own() || tempest_link_receive(handle_other);
}
