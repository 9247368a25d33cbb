// SPDX-License-Identifier: MIT
/*
 * Bulk transfer, as messages: the source sends as much as the window allows, and goes on in
 * the handler that receives the destination's acknowledgements. So no thread waits, and
 * what is under way is bounded.
 *
 * Or by the device itself, where that can be (wire.h): then it is one send, and the protocol
 * thread of the source looks when it is complete, and tells the destination.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/quiet.h"
#include "memory/block.h"
#include "memory/page.h"
#include "node/channel.h"
#include "node/wire.h"
#include "thread/protocol.h"

#define WORD		((int)sizeof(int))
#define CHUNK		4096
#define WINDOW		(64 * CHUNK)
#define ACK_EVERY	(WINDOW / 4)	/* bytes */
#define FIRST_LOOK_US	20
#define LAST_LOOK_US	1000

/*
 * An end of a channel.
 * @node, @number: which; of the other node, and of the pair in this direction
 * @fn, @usr_ptr: as set
 * @buffer, @bytes: source: of the send that is under way; destination: as set
 * @done: source: bytes sent; destination: bytes received
 * @acked: source: bytes that the destination is known to have; destination: that it has told
 * @ready: source: the destination waits for a transfer; destination: one has arrived
 * @ticket: source: of the destination, for sends by the device
 * @wire: of the device: source: the send that is under way; destination: what receives, or NULL
 * @look_us: source: how long until the next look at @wire
 */
struct end {
	struct end *next;
	TPPI_NodeId node;
	int number;
	TPPI_ChannelHandlerPtr fn;
	void *usr_ptr;
	char *buffer;
	int bytes;
	int done;
	int acked;
	bool ready;
	struct tempest_wire_ticket ticket;
	struct tempest_wire *wire;
	int look_us;
};

/* Under the lock; the lists are short. */
static struct tempest_lock lock;
static struct end *sources, *destinations;
static int last_number;

static struct end *find(struct end *list, TPPI_NodeId node, int number)
{
	while (list && (list->node != node || list->number != number))
		list = list->next;
	return list;
}

static struct end *must_find(struct end *list, TPPI_NodeId node, int number, const char *call)
{
	struct end *end = find(list, node, number);

	if (!end)
		tempest_die("%s: there is no channel %d with node %u", call, number, node);
	return end;
}

static struct end *add(struct end **list, TPPI_NodeId node, int number, TPPI_ChannelHandlerPtr fn)
{
	struct end *end = calloc(1, sizeof(*end));

	if (!end)
		tempest_die("no memory for a channel");
	end->node = node;
	end->number = number;
	end->fn = fn;
	end->next = *list;
	*list = end;
	return end;
}

static void destroy(struct end **list, TPPI_NodeId node, int number, const char *call)
{
	struct end *end;

	QUIET_CALL();
	tempest_lock(&lock);
	end = must_find(*list, node, number, call);
	if (list == &sources && end->wire)
		tempest_die("%s: a transfer of channel %d is under way", call, number);
	while (*list != end)
		list = &(*list)->next;
	*list = end->next;
	tempest_unlock(&lock);
	tempest_wire_end(end->wire);
	free(end);
}

static bool is_buffer(const void *buffer, int bytes)
{
	return bytes >= 0 && bytes <= TPPI_MAX_CHANNEL_BYTES && bytes % WORD == 0 &&
	       (uintptr_t)buffer % WORD == 0;
}

static bool has_page(const struct end *end, uintptr_t page)
{
	return end->bytes && (uintptr_t)end->buffer < page + PAGE_BYTES &&
	       (uintptr_t)end->buffer + end->bytes > page;
}

bool tempest_channel_holds(uintptr_t page)
{
	bool held = false;

	tempest_lock(&lock);
	for (const struct end *end = destinations; end; end = end->next)
		held |= has_page(end, page);
	for (const struct end *end = sources; end; end = end->next)
		held |= (end->wire || end->done < end->bytes) && has_page(end, page);
	tempest_unlock(&lock);
	return held;
}

/*
 * Once the end is listed. A call that was unmapping one of the pages just then leaves it mapped;
 * until it has published that, the page is taken for one that is not.
 */
static void settle(const void *buffer, int bytes)
{
	if (!CONTROL(CONTROL_NO_SETTLE))
		tempest_settle((uintptr_t)buffer, bytes);
}

/* ---- source ---- */

/* Protocol thread, also for a send that was complete at once. */
static void on_sent(TPPI_NodeId src, int size)
{
	TPPI_NodeId dest = TPPI_recv_W();
	int number = TPPI_recv_W();
	TPPI_ChannelHandlerPtr fn;
	struct end *end;

	(void)src;
	(void)size;
	tempest_lock(&lock);
	end = find(sources, dest, number);
	fn = end ? end->fn : NULL;
	tempest_unlock(&lock);
	if (fn)
		fn(dest, number);
}

static void on_data(TPPI_NodeId src, int size);

/* Under the lock: the parts of a transfer leave in their order. */
static void pump(struct end *end)
{
	bool begun = end->done < end->bytes || !end->bytes;

	while (end->done < end->bytes && end->done - end->acked < WINDOW) {
		int bytes = end->bytes - end->done < CHUNK ? end->bytes - end->done : CHUNK;

		TPPI_send_WWWR(end->node, on_data, end->number, end->bytes, end->done,
			       end->buffer + end->done, bytes);
		end->done += bytes;
	}
	if (begun && end->done == end->bytes)
		TPPI_send_WW(TPPI_self_address, on_sent, end->node, end->number);
}

static void on_ack(TPPI_NodeId src, int size)
{
	int number = TPPI_recv_W(), acked = TPPI_recv_W();
	struct end *end;

	(void)size;
	tempest_lock(&lock);
	end = find(sources, src, number);
	if (end) {
		end->acked = acked;
		if (end->done < end->bytes)
			pump(end);
	}
	tempest_unlock(&lock);
}

/* The destination has been reset, or set: then its ticket follows. */
static void on_ready(TPPI_NodeId src, int size)
{
	int number = TPPI_recv_W();
	struct tempest_wire_ticket ticket;
	struct end *end;

	if (size > WORD)
		TPPI_recv_R(&ticket, sizeof(ticket));
	tempest_lock(&lock);
	end = find(sources, src, number);
	if (end) {
		if (size > WORD)
			end->ticket = ticket;
		end->ready = true;
	}
	tempest_unlock(&lock);
}

static void on_landed(TPPI_NodeId src, int size);

/*
 * Protocol thread: is what the device sends complete? If not, it looks again, after twice as
 * long: the device may need this processor. No end goes meanwhile: destroy().
 */
static void on_wired(void *source)
{
	struct end *end = source;
	TPPI_NodeId dest = end->node;
	int number = end->number, look_us;
	struct tempest_wire *wire = NULL;
	TPPI_ChannelHandlerPtr fn;

	tempest_lock(&lock);
	fn = end->fn;
	look_us = end->look_us;
	if (tempest_wire_is_sent(end->wire)) {
		wire = end->wire;
		end->wire = NULL;
	} else if (look_us < LAST_LOOK_US) {
		end->look_us = 2 * look_us;
	}
	tempest_unlock(&lock);
	if (!wire) {
		TPPI_schedule_timer(look_us, on_wired, end);
		return;
	}
	TPPI_send_W(dest, on_landed, number);
	tempest_wire_end(wire);
	if (fn)
		fn(dest, number);
}

/* Without the lock, as it may take a while. False: by messages. */
static bool send_wired(TPPI_NodeId dest, int channel, void *buffer, int bytes,
		       const struct tempest_wire_ticket *ticket)
{
	struct tempest_wire *wire = tempest_wire_send(buffer, bytes, ticket);
	struct end *end;

	if (!wire)
		return false;
	tempest_lock(&lock);
	end = must_find(sources, dest, channel, "TPPI_channel_send");
	end->wire = wire;
	end->done = bytes;
	end->look_us = FIRST_LOOK_US;
	tempest_unlock(&lock);
	TPPI_schedule_timer(0, on_wired, end);
	return true;
}

int TPPI_set_channel_src(TPPI_NodeId dest, TPPI_ChannelHandlerPtr fn)
{
	int number;

	if (dest >= TPPI_num_nodes)
		tempest_die("%s: there is no node %u", __func__, dest);
	QUIET_CALL();
	tempest_lock(&lock);
	number = ++last_number;
	add(&sources, dest, number, fn);
	tempest_unlock(&lock);
	return number;
}

/* What is wrong with the first that is sent shows here, while there is no lock. */
static void touch(const volatile char *buffer, int bytes)
{
	if (tempest_inside((uintptr_t)buffer))
		return;
	for (int i = 0; i < bytes && i < WINDOW; i += PAGE_BYTES)
		(void)buffer[i];
	if (bytes && bytes <= WINDOW)
		(void)buffer[bytes - 1];
}

void TPPI_channel_send(TPPI_NodeId dest, int channel, void *buffer, int bytes)
{
	struct tempest_wire_ticket ticket;
	struct end *end;

	if (!is_buffer(buffer, bytes))
		tempest_die("%s: %d bytes at %p are not whole words", __func__, bytes, buffer);
	QUIET_CALL();
	touch(buffer, bytes);
	tempest_lock(&lock);
	end = must_find(sources, dest, channel, __func__);
	if (!end->ready)
		tempest_die("%s: the destination of channel %d to node %u is not ready", __func__,
			    channel, dest);
	end->ready = false;
	end->buffer = buffer;
	end->bytes = bytes;
	end->done = 0;
	end->acked = 0;
	ticket = end->ticket;
	tempest_unlock(&lock);
	settle(buffer, bytes);
	if (send_wired(dest, channel, buffer, bytes, &ticket))
		return;
	tempest_lock(&lock);
	end = must_find(sources, dest, channel, __func__);
	/* A transfer of nothing is one, too */
	if (!bytes)
		TPPI_send_WWW(dest, on_data, channel, 0, 0);
	pump(end);
	tempest_unlock(&lock);
}

int TPPI_is_channel_dst_ready(TPPI_NodeId dest, int channel)
{
	bool ready;

	QUIET_CALL();
	tempest_lock(&lock);
	ready = must_find(sources, dest, channel, __func__)->ready;
	tempest_unlock(&lock);
	return ready;
}

void TPPI_destroy_channel_src(TPPI_NodeId dest, int channel)
{
	destroy(&sources, dest, channel, __func__);
}

/* ---- destination ---- */

static void on_data(TPPI_NodeId src, int size)
{
	int number = TPPI_recv_W(), total = TPPI_recv_W(), offset = TPPI_recv_W();
	int bytes = size - 3 * WORD, acked = 0;
	TPPI_ChannelHandlerPtr fn = NULL;
	struct end *end;

	tempest_lock(&lock);
	end = must_find(destinations, src, number, "TPPI_channel_send");
	if (end->ready || total != end->bytes || offset != end->done || bytes > total - offset)
		tempest_die("channel %d of node %u: %d bytes were sent to where %d are expected",
			    number, src, total, end->bytes);
	TPPI_recv_R(end->buffer + offset, bytes);
	end->done += bytes;
	if (end->done - end->acked >= ACK_EVERY && end->done < end->bytes) {
		acked = end->done;
		end->acked = acked;
	}
	end->ready = end->done == end->bytes;
	if (end->ready)
		fn = end->fn;
	tempest_unlock(&lock);
	if (acked)
		TPPI_send_WW(src, on_ack, number, acked);
	if (fn)
		fn(src, number);
}

/*
 * The source's NIC has sent all of it. If it is not here, it is lost: the source may have called
 * its handler, and have something else in its buffer, so it cannot be sent again.
 */
static void on_landed(TPPI_NodeId src, int size)
{
	int number = TPPI_recv_W();
	TPPI_ChannelHandlerPtr fn;
	struct end *end;

	(void)size;
	tempest_lock(&lock);
	end = must_find(destinations, src, number, "TPPI_channel_send");
	if (end->ready || !end->wire)
		tempest_die("channel %d of node %u: a transfer that is not expected", number, src);
	if (!tempest_wire_landed(end->wire, end->buffer, end->bytes))
		tempest_die("channel %d of node %u: a transfer has not arrived", number, src);
	end->done = end->bytes;
	end->ready = true;
	fn = end->fn;
	tempest_unlock(&lock);
	if (fn)
		fn(src, number);
}

/* Pages are held from when the end is listed, so what is mapped now stays. */
static void wire_and_tell(TPPI_NodeId src, int channel, void *buffer, int bytes)
{
	struct tempest_wire_ticket ticket = { 0 };
	struct tempest_wire *wire = NULL;

	settle(buffer, bytes);
	if (src != TPPI_self_address)
		wire = tempest_wire_destination(buffer, bytes, &ticket);
	tempest_lock(&lock);
	must_find(destinations, src, channel, "TPPI_set_channel_dst")->wire = wire;
	tempest_unlock(&lock);
	TPPI_send_items(src, on_ready, "WR", channel, &ticket, (int)sizeof(ticket));
}

int TPPI_set_channel_dst(TPPI_NodeId src, int channel, void *buffer, int bytes,
			 TPPI_ChannelHandlerPtr fn)
{
	struct end *end;

	if (src >= TPPI_num_nodes || !is_buffer(buffer, bytes))
		return 0;
	QUIET_CALL();
	tempest_lock(&lock);
	if (find(destinations, src, channel)) {
		tempest_unlock(&lock);
		return 0;
	}
	end = add(&destinations, src, channel, fn);
	end->buffer = buffer;
	end->bytes = bytes;
	tempest_unlock(&lock);
	wire_and_tell(src, channel, buffer, bytes);
	return 1;
}

int TPPI_is_channel_ready(TPPI_NodeId src, int channel)
{
	bool ready;

	QUIET_CALL();
	tempest_lock(&lock);
	ready = must_find(destinations, src, channel, __func__)->ready;
	tempest_unlock(&lock);
	return ready;
}

void TPPI_reset_channel(TPPI_NodeId src, int channel)
{
	struct end *end;

	QUIET_CALL();
	tempest_lock(&lock);
	end = must_find(destinations, src, channel, __func__);
	end->ready = false;
	end->done = 0;
	end->acked = 0;
	if (end->wire)
		tempest_wire_arm(end->wire);
	tempest_unlock(&lock);
	TPPI_send_W(src, on_ready, channel);
}

void TPPI_destroy_channel_dst(TPPI_NodeId src, int channel)
{
	destroy(&destinations, src, channel, __func__);
}

/* ---- user pointers ---- */

static void set_usr_ptr(struct end **list, TPPI_NodeId node, int number, void *usr_ptr,
			const char *call)
{
	QUIET_CALL();
	tempest_lock(&lock);
	must_find(*list, node, number, call)->usr_ptr = usr_ptr;
	tempest_unlock(&lock);
}

static void *get_usr_ptr(struct end **list, TPPI_NodeId node, int number, const char *call)
{
	void *usr_ptr;

	QUIET_CALL();
	tempest_lock(&lock);
	usr_ptr = must_find(*list, node, number, call)->usr_ptr;
	tempest_unlock(&lock);
	return usr_ptr;
}

void TPPI_set_channel_src_user_ptr(TPPI_NodeId dest, int channel, void *usr_ptr)
{
	set_usr_ptr(&sources, dest, channel, usr_ptr, __func__);
}

void *TPPI_get_channel_src_user_ptr(TPPI_NodeId dest, int channel)
{
	return get_usr_ptr(&sources, dest, channel, __func__);
}

void TPPI_set_channel_dst_user_ptr(TPPI_NodeId src, int channel, void *usr_ptr)
{
	set_usr_ptr(&destinations, src, channel, usr_ptr, __func__);
}

void *TPPI_get_channel_dst_user_ptr(TPPI_NodeId src, int channel)
{
	return get_usr_ptr(&destinations, src, channel, __func__);
}
