// SPDX-License-Identifier: MIT
/*
 * A channel for each pair of nodes, made of seeds that travel by the launcher: who has not
 * got one sends nothing here.
 *
 * The channels of a node are on one manager, which the protocol thread sleeps on. A kick ends
 * the sleep.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hamlyn/channel.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/quiet.h"
#include "boot.h"
#include "node/job.h"
#include "node/link.h"
#include "tempest.h"
#include "thread/protocol.h"

#define BUFFERS		16
#define BUFFER_BYTES	8192	/* the longest message and its header */

struct kept {
	struct kept *next;
	size_t bytes;
	unsigned char data[];
};

/*
 * @lock: of those who send
 * @kept: what the channel has not taken, in order; nothing overtakes it
 * @ready: something may have arrived; the protocol thread's
 */
struct link {
	struct h_channel *channel;
	struct tempest_lock lock;
	struct kept *kept, **kept_end;
	bool ready;
};

static struct h_manager *manager;
static struct link *links;
static _Atomic unsigned int number_kept;
static _Atomic bool leaving;
static uint32_t turn;	/* whose message is next: each node's in its turn */

/* ---- start ---- */

static void must(int result, const char *what)
{
	if (result < 0)
		tempest_refuse("%s: %s", what, strerror(-result));
}

static void arrived(struct h_channel *channel, void *link)
{
	(void)channel;
	((struct link *)link)->ready = true;
}

static void publish_seed(uint32_t node)
{
	struct h_channel_attr attr = {
		.buffers = BUFFERS,
		.buffer_size = BUFFER_BYTES,
		.max_buffer_size = 128,	/* they do not grow */
	};
	char key[AM_BOOT_KEY_BYTES], value[AM_BOOT_VALUE_BYTES];
	struct h_channel_seed seed;

	must(h_channel_create(manager, &attr, &links[node].channel), "a channel");
	h_channel_seed(links[node].channel, &seed);
	for (size_t i = 0; i < sizeof(seed.bytes); i++)
		sprintf(value + 2 * i, "%02x", seed.bytes[i]);
	snprintf(key, sizeof(key), "seed-%u", node);
	tempest_job_put(key, value);
}

static void join(uint32_t node)
{
	char key[AM_BOOT_KEY_BYTES], value[AM_BOOT_VALUE_BYTES] = "";
	struct h_channel_seed seed;
	unsigned int byte;

	snprintf(key, sizeof(key), "seed-%u", TPPI_self_address);
	tempest_job_get(node, key, value);
	if (strlen(value) != 2 * sizeof(seed.bytes))
		tempest_refuse("node %u is of another version", node);
	for (size_t i = 0; i < sizeof(seed.bytes); i++) {
		if (sscanf(value + 2 * i, "%2x", &byte) != 1)
			tempest_refuse("node %u is of another version", node);
		seed.bytes[i] = byte;
	}
	must(h_channel_join(links[node].channel, &seed), "a channel to another node");
	/* Nobody here sends requests: no message answers one */
	h_channel_reply_only(links[node].channel);
	h_channel_on_ready(links[node].channel, arrived, &links[node]);
}

void tempest_link_start(void)
{
	/* The protocol thread has waited awake before it sleeps */
	struct h_manager_attr attr = { .channels = TPPI_num_nodes, .spin_ns = 1 };

	if (TPPI_num_nodes == 1)
		return;
	must(h_manager_create(tempest_job_device(), &attr, &manager), "the manager");
	links = calloc(TPPI_num_nodes, sizeof(*links));
	if (!links)
		tempest_refuse("no memory for the channels");
	for (uint32_t node = 0; node < TPPI_num_nodes; node++) {
		links[node].kept_end = &links[node].kept;
		if (node != TPPI_self_address)
			publish_seed(node);
	}
	tempest_job_fence();
	for (uint32_t node = 0; node < TPPI_num_nodes; node++) {
		if (node != TPPI_self_address)
			join(node);
	}
	/* Nobody sends before all have joined */
	tempest_job_fence();
}

void tempest_link_leave(void)
{
	leaving = true;
}

/* ---- sending ---- */

__attribute__((cold))
static void other_ended(uint32_t node, int error)
{
	if (!leaving)
		tempest_die("node %u is gone: %s", node,
			    error == -ENODATA ? "it has left" : strerror(-error));
}

/* True if it was taken. */
static bool offer(struct link *link, const void *data, size_t bytes)
{
	int result = h_channel_send(link->channel, data, bytes, 0);

	if (result && result != -EAGAIN)
		other_ended(link - links, result);
	return result != -EAGAIN;
}

static void keep(struct link *link, const void *data, size_t bytes)
{
	struct kept *kept = malloc(sizeof(*kept) + bytes);

	if (!kept)
		tempest_die("no memory for a message");
	kept->next = NULL;
	kept->bytes = bytes;
	memcpy(kept->data, data, bytes);
	*link->kept_end = kept;
	link->kept_end = &kept->next;
	number_kept++;
}

void tempest_link_send(uint32_t node, const void *data, size_t bytes)
{
	struct link *link = &links[node];
	bool taken;

	tempest_lock(&link->lock);
	taken = !link->kept && offer(link, data, bytes);
	if (!taken)
		keep(link, data, bytes);
	tempest_unlock(&link->lock);
	/* It may sleep, and does not know that there is something to be tried again */
	if (!taken && !tempest_is_protocol)
		tempest_protocol_kick();
}

static bool flush_link(struct link *link)
{
	struct kept *kept;
	bool sent = false;

	tempest_lock(&link->lock);
	while ((kept = link->kept) && offer(link, kept->data, kept->bytes)) {
		link->kept = kept->next;
		if (!link->kept)
			link->kept_end = &link->kept;
		free(kept);
		number_kept--;
		sent = true;
	}
	tempest_unlock(&link->lock);
	return sent;
}

bool tempest_link_owes(void)
{
	return number_kept;
}

bool tempest_link_flush(void)
{
	bool sent = false;

	for (uint32_t node = 0; number_kept && node < TPPI_num_nodes; node++)
		sent |= flush_link(&links[node]);
	return sent;
}

/* ---- receiving ---- */

/* False if there is none. */
static bool receive_from(uint32_t node,
			 void (*handle)(uint32_t node, const void *data, size_t bytes))
{
	struct link *link = &links[node];
	struct h_message message;
	int result = h_channel_receive(link->channel, &message, 0);

	if (!result) {
		handle(node, message.data, message.length);
		h_channel_release(link->channel, &message);
		return true;
	}
	link->ready = false;
	if (result != -EAGAIN)
		other_ended(node, result);
	return false;
}

bool tempest_link_receive(void (*handle)(uint32_t node, const void *data, size_t bytes))
{
	if (!manager)
		return false;
	h_manager_dispatch(manager);
	for (uint32_t i = 0; i < TPPI_num_nodes; i++) {
		uint32_t node = (turn + i) % TPPI_num_nodes;

		if (links[node].ready && receive_from(node, handle)) {
			turn = node + 1;
			return true;
		}
	}
	return false;
}

void tempest_link_sleep(int64_t ns)
{
	h_manager_wait(manager, ns);
}

void tempest_link_ring(void)
{
	h_manager_kick(manager);
}
