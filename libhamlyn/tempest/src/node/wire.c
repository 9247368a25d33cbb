// SPDX-License-Identifier: MIT
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/quiet.h"
#include "memory/block.h"
#include "memory/page.h"
#include "node/job.h"
#include "node/wire.h"

#define LEAST_BYTES	16384	/* below, to wire costs more than messages do */
#define MOST_SENDS	8	/* at a time: a send buffer tag each */

/*
 * @slot: destination: where the source sends to
 * @meta: of the slot: its entry says what has arrived
 * @landing: bytes that arrive in an area of the device's, and are copied from there; or 0
 * @tag, @handle: source: what the area is bound to, and the send
 */
struct tempest_wire {
	struct h_area *area;
	struct h_slot *slot;
	struct h_area *meta;
	size_t landing;
	unsigned int tag;
	int64_t handle;
};

#ifdef TEMPEST_TEST_CONTROLS
_Atomic unsigned int tempest_wired_sends, tempest_wired_buffers;
#endif

static _Atomic size_t all_landings;	/* bytes */

/* Of all sends, made for the first one. */
static struct tempest_lock lock;
static struct h_terminus *terminus;
static bool tag_taken[MOST_SENDS];

/* The library reads and writes the alias, which is always open; so does the device. */
static void *reach(void *buffer)
{
	return tempest_inside((uintptr_t)buffer) ? tempest_alias((uintptr_t)buffer) : buffer;
}

static bool may_wire(size_t bytes)
{
	return bytes >= LEAST_BYTES && !CONTROL(CONTROL_NO_WIRE) && tempest_job_device();
}

static struct tempest_wire *make(void)
{
	struct tempest_wire *wire = calloc(1, sizeof(*wire));

	if (wire)
		wire->tag = MOST_SENDS;
	return wire;
}

/* ---- destination ---- */

/*
 * The source knows what its NIC has sent, which may have been lost or rejected: a slot of
 * paranoid one-shot mode knows what was accepted. It has no NQ, so nobody is notified.
 */
static bool open_slot(struct tempest_wire *wire, struct tempest_wire_ticket *out)
{
	struct h_dev *dev = tempest_job_device();
	struct h_slot_attr attr = {
		.area = wire->area,
		.meta_count = 1,
		.mode = HAMLYN_SLOT_PARANOID_ONE_SHOT,
	};
	struct h_ticket ticket;

	if (h_area_alloc(dev, HAMLYN_METADATA_SIZE, &wire->meta))
		return false;
	attr.meta_area = wire->meta;
	if (h_slot_create(dev, &attr, &wire->slot) ||
	    h_slot_entry_grant(wire->slot, 0, 0, 0, &ticket))
		return false;
	h_ticket_export(&ticket, out->bytes);
	return true;
}

/* An embedded device receives into its own segment only: h_area_add(). */
static bool wire_buffer(struct tempest_wire *wire, void *buffer, size_t bytes)
{
	struct h_dev *dev = tempest_job_device();

	if (h_dev_is_embedded(dev) || !tempest_settle((uintptr_t)buffer, bytes) ||
	    h_area_add(dev, reach(buffer), bytes, 0, &wire->area))
		return false;
#ifdef TEMPEST_TEST_CONTROLS
	tempest_wired_buffers++;
#endif
	return true;
}

/*
 * All nodes together leave three quarters of an embedded device to others. On the kernel device
 * it is what the user's limits say.
 */
static size_t most_landings(void)
{
	struct hamlyn_query query;

	return h_query(tempest_job_device(), &query) ? 0 : query.max_area / 4 / TPPI_num_nodes;
}

static bool make_landing(struct tempest_wire *wire, size_t bytes)
{
	size_t before = atomic_fetch_add(&all_landings, bytes);

	wire->landing = bytes;
	return before + bytes <= most_landings() &&
	       !h_area_alloc(tempest_job_device(), bytes, &wire->area);
}

struct tempest_wire *tempest_wire_destination(void *buffer, size_t bytes,
					      struct tempest_wire_ticket *ticket)
{
	struct tempest_wire *wire = may_wire(bytes) ? make() : NULL;

	*ticket = (struct tempest_wire_ticket){ 0 };
	if (wire && !((wire_buffer(wire, buffer, bytes) || make_landing(wire, bytes)) &&
		      open_slot(wire, ticket))) {
		tempest_wire_end(wire);
		return NULL;
	}
	return wire;
}

bool tempest_wire_landed(const struct tempest_wire *wire, void *buffer, size_t bytes)
{
	const struct hamlyn_metadata *entry = h_slot_entry(wire->slot, 0);

	/* Written once the last packet is in memory (B3) */
	if (__atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) || entry->length != bytes)
		return false;
	if (wire->landing)
		memcpy(tempest_block_reach(buffer, wire->landing, "TPPI_channel_send"),
		       h_area_addr(wire->area), wire->landing);
	return true;
}

void tempest_wire_arm(const struct tempest_wire *wire)
{
	h_slot_entry_arm(wire->slot, 0);
}

/* ---- source ---- */

/* Under the lock. */
static bool make_terminus(void)
{
	static const struct h_terminus_attr attr = { .entries = 2 * MOST_SENDS };

	return terminus || !h_terminus_create(tempest_job_device(), &attr, &terminus);
}

static bool take_tag(struct tempest_wire *wire)
{
	bool taken = false;

	tempest_lock(&lock);
	for (unsigned int tag = 0; !taken && tag < MOST_SENDS && make_terminus(); tag++) {
		if (tag_taken[tag] || h_terminus_bind(terminus, tag, wire->area, 0, 0))
			continue;
		tag_taken[tag] = true;
		wire->tag = tag;
		taken = true;
	}
	tempest_unlock(&lock);
	return taken;
}

static void give_tag(struct tempest_wire *wire)
{
	tempest_lock(&lock);
	h_terminus_bind(terminus, wire->tag, NULL, 0, 0);
	tag_taken[wire->tag] = false;
	tempest_unlock(&lock);
}

struct tempest_wire *tempest_wire_send(void *buffer, size_t bytes,
				       const struct tempest_wire_ticket *exported)
{
	struct tempest_wire *wire;
	struct h_ticket ticket;
	struct h_msg msg = { .ticket = &ticket, .length = bytes };

	if (!may_wire(bytes) || h_ticket_import(exported->bytes, H_TICKET_BYTES, &ticket))
		return NULL;
	if (CONTROL(CONTROL_WRONG_KEY))
		ticket.key ^= 1;
	if (tempest_inside((uintptr_t)buffer) && !tempest_settle((uintptr_t)buffer, bytes))
		return NULL;
	wire = make();
	if (!wire)
		return NULL;
	msg.data = reach(buffer);
	if (!h_area_add(tempest_job_device(), reach(buffer), bytes, HAMLYN_AREA_READONLY,
			&wire->area) && take_tag(wire))
		wire->handle = h_send(terminus, &msg);
	if (wire->tag == MOST_SENDS || wire->handle < 0) {
		tempest_wire_end(wire);
		return NULL;
	}
#ifdef TEMPEST_TEST_CONTROLS
	tempest_wired_sends++;
#endif
	return wire;
}

bool tempest_wire_is_sent(const struct tempest_wire *wire)
{
	int result = CONTROL(CONTROL_NOT_SENT) ? 0 : h_send_done(terminus, wire->handle);

	if (result < 0)
		tempest_die("a transfer by a channel fails: %s", strerror(-result));
	return result;
}

void tempest_wire_end(struct tempest_wire *wire)
{
	if (!wire)
		return;
	if (wire->slot)
		h_slot_destroy(wire->slot);
	if (wire->tag != MOST_SENDS)
		give_tag(wire);
	/* One that a stopped peer still writes to stays, and counts */
	if (!wire->area || !h_area_remove(wire->area))
		all_landings -= wire->landing;
	if (wire->meta)
		h_area_remove(wire->meta);
	free(wire);
}
