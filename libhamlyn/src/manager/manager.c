// SPDX-License-Identifier: MIT
/* Managers (H 3.3), and memory that they send from. */
#include <errno.h>
#include <stdlib.h>

#include "manager/manager.h"

#define DEFAULT_NQ_ENTRIES	4096
#define MOST_DEFAULT_BUDGET	((size_t)32 << 20)	/* two of the longest messages */
#define DEFAULT_SPIN_NS		20000
/* Longer than anybody waits: a sum with the time of day does not overflow */
#define MOST_SPIN_NS		(INT64_MAX / 2)
#define MIN_ENTRY_SIZE		256	/* a note and the longest seed */
#define MIN_NQ_ENTRIES		16
#define MIN_CHANNEL_ENTRIES	64
#define MOST_CHANNELS		((1U << 30) / H_CHANNEL_ARRIVALS - 1)
#define CHANNELS_VARIABLE	"HAMLYN_CHANNELS"
#define DRAIN_NS		1000000000

int h__wish(struct h_manager *m, size_t length, bool grown, void **addr)
{
	struct h_memory memory;
	int err = h__pool_alloc(&m->send, length, grown, &memory);

	*addr = err ? NULL : memory.addr;
	return err;
}

int h_manager_alloc(struct h_manager *m, size_t length, void **addr)
{
	int err = h__wish(m, length, false, addr);

	return h__is_too_much(err) && h__budget_press(m) ? h__wish(m, length, false, addr) : err;
}

int h_manager_free(struct h_manager *m, void *addr)
{
	struct h_memory memory;
	int err;

	if (!addr)
		return 0;
	h__lock(&m->lock);
	err = h__pool_find(&m->send, addr, &memory);
	if (!err)
		h__pool_free(&m->send, &memory);
	h__unlock(&m->lock);
	if (err == -EALREADY)
		return h__refuse(m->dev, err, "memory at %p was given back before", addr);
	if (err)
		return h__refuse(m->dev, err,
				 "%p is not the first byte of memory that h_manager_alloc() gave",
				 addr);
	h__pool_trim(&m->send);
	return 0;
}

/* m->area_lock held. */
static int bind_added(struct h_manager *m, struct h_area *area)
{
	int tag = h__pool_spare_tag(&m->send);

	return tag < 0 ? tag : h_terminus_bind(m->terminus, tag, area, 0, 0);
}

int h_manager_register(struct h_manager *m, void *addr, size_t length)
{
	struct h_area *area;
	struct h_why why;
	int err;

	err = h_area_add(m->dev, addr, length, HAMLYN_AREA_READONLY, &area);
	if (err)
		return err;
	h__lock(&m->area_lock);
	err = bind_added(m, area);
	h__unlock(&m->area_lock);
	if (err) {
		h__why_keep(m->dev, &why);
		h_area_remove(area);
		h__why_restore(m->dev, &why);
	}
	return err;
}

int h_manager_unregister(struct h_manager *m, void *addr)
{
	struct h_area *area = NULL;
	int err = -ENOENT, tag = -1;

	h__lock(&m->area_lock);
	do {
		tag = h__terminus_next_added(m->terminus, (uint32_t)tag + 1, &area);
	} while (tag >= 0 && h_area_addr(area) != addr);
	if (tag >= 0)
		err = h_terminus_bind(m->terminus, (uint32_t)tag, NULL, 0, 0);
	h__unlock(&m->area_lock);
	return err ? err : h_area_remove(area);
}

/* ---- managers ---- */

struct h_dev *h_manager_dev(const struct h_manager *m)
{
	return m->dev;
}

struct h_terminus *h_manager_terminus(const struct h_manager *m)
{
	return m->terminus;
}

static int self_init(struct h_manager *m)
{
	struct h_slot_attr attr = { .length = 64, .nq = m->nq };
	int err;

	err = h__pool_alloc(&m->receive, 64, false, &m->self_memory);
	if (err)
		return err;
	attr.area = m->self_memory.area;
	attr.base = m->self_memory.base;
	err = h_slot_create(m->dev, &attr, &m->self);
	if (err)
		return err;
	m->reserved = H_SELF_ARRIVALS;
	return h_slot_ticket(m->self, 0, 0, HAMLYN_META_FAST, &m->self_ticket);
}

/* What was registered and not unregistered is still bound. Others' areas are theirs. */
static void unregister_all(struct h_manager *m)
{
	struct h_area *area;
	int tag = -1;

	while ((tag = h__terminus_next_added(m->terminus, (uint32_t)tag + 1, &area)) >= 0)
		if (h__area_flags(area) & HAMLYN_AREA_READONLY &&
		    !h_terminus_bind(m->terminus, (uint32_t)tag, NULL, 0, 0))
			h_area_remove(area);
}

/* What is not there yet is NULL. */
static void manager_free(struct h_manager *m)
{
	if (m->bell)
		h_terminus_destroy(m->bell);
	if (m->self)
		h_slot_destroy(m->self);
	h__pool_exit(&m->receive);
	h__calls_exit(m);
	h__spares_exit(m);
	if (m->terminus) {
		h__pool_exit(&m->send);
		unregister_all(m);
		h_terminus_destroy(m->terminus);
	}
	if (m->nq)
		h_nq_destroy(m->nq);
	free(m->by_slot);
	free(m);
}

/* Of one that could not be made. */
static void manager_undo(struct h_manager *m)
{
	struct h_dev *dev = m->dev;
	struct h_why why;

	h__why_keep(dev, &why);
	manager_free(m);
	h__why_restore(dev, &why);
}

/* No more than a quarter of what the device has for all. */
static size_t default_budget(const struct h_dev *dev)
{
	uint64_t quarter = h__dev_limits(dev)->max_area / 4;

	return quarter < MOST_DEFAULT_BUDGET ? (size_t)quarter : MOST_DEFAULT_BUDGET;
}

static uint32_t entries_for(uint64_t channels)
{
	uint64_t need = channels * H_CHANNEL_ARRIVALS + H_SELF_ARRIVALS + 1;
	uint32_t entries = MIN_CHANNEL_ENTRIES;

	while (entries < need)
		entries *= 2;
	return entries;
}

/*
 * @entries: 0 if it is not said how many channels the manager is for. What the NQ of a
 * device cannot have, h_nq_create() refuses in words.
 */
static int entries_by_environment(struct h_dev *dev, uint32_t *entries)
{
	const char *said = secure_getenv(CHANNELS_VARIABLE);
	unsigned long n;
	char *end;

	*entries = 0;
	if (!said || !*said)
		return 0;
	errno = 0;
	n = strtoul(said, &end, 10);
	if (errno || *end || *said < '0' || *said > '9' || !n || n > MOST_CHANNELS)
		return h__refuse(dev, -EINVAL, CHANNELS_VARIABLE "=%.20s: 1 to %u", said,
				 MOST_CHANNELS);
	*entries = entries_for(n);
	return 0;
}

static int choose_entries(struct h_dev *dev, const struct h_manager_attr *attr,
			  uint32_t *entries)
{
	int err;

	if (attr->channels > MOST_CHANNELS)
		return h__refuse(dev, -EINVAL, "a manager for %u channels: at most %u",
				 attr->channels, MOST_CHANNELS);
	*entries = attr->nq_entries;
	if (*entries)
		return 0;
	if (attr->channels) {
		*entries = entries_for(attr->channels);
		return 0;
	}
	err = entries_by_environment(dev, entries);
	if (!err && !*entries)
		*entries = DEFAULT_NQ_ENTRIES;
	return err;
}

static int manager_init(struct h_manager *m, const struct h_manager_attr *attr)
{
	struct h_terminus_attr terminus = {
		.entries = attr->wq_entries,
		.entry_size = attr->wq_entry_size,
		.flags = h__single(m) ? H_TERMINUS_SINGLE : 0,
		.priority = attr->priority,
		.weight = attr->weight,
	};
	uint32_t entries = 0;
	int err;

	m->slots = h__dev_limits(m->dev)->max_slots;
	m->packet_size = h__dev_limits(m->dev)->packet_size;
	m->by_slot = calloc(m->slots, sizeof(*m->by_slot));
	if (!m->by_slot)
		return -ENOMEM;
	err = choose_entries(m->dev, attr, &entries);
	if (!err)
		err = h_nq_create(m->dev, entries, &m->nq);
	if (err)
		return err;
	err = h_terminus_create(m->dev, &terminus, &m->terminus);
	if (err)
		return err;
	m->send.terminus = m->terminus;
	return self_init(m);
}

static int check_attr(struct h_dev *dev, const struct h_manager_attr *attr)
{
	if (attr->flags & ~H_MANAGER_SINGLE || attr->reserved)
		return h__refuse(dev, -EINVAL,
				 "flags 0x%x: 0 or H_MANAGER_SINGLE; reserved %u: 0",
				 attr->flags, attr->reserved);
	if (attr->wq_entry_size && attr->wq_entry_size < MIN_ENTRY_SIZE)
		return h__refuse(dev, -EINVAL,
				 "work queue entries of %u bytes: at least %u",
				 attr->wq_entry_size, MIN_ENTRY_SIZE);
	if (attr->nq_entries && attr->nq_entries < MIN_NQ_ENTRIES)
		return h__refuse(dev, -EINVAL, "%u NQ entries: at least %u",
				 attr->nq_entries, MIN_NQ_ENTRIES);
	return 0;
}

int h__manager_create(struct h_dev *dev, const struct h_manager_attr *attr, size_t size,
		      struct h_manager **manager)
{
	struct h_manager_attr at;
	struct h_manager *m;
	int err;

	*manager = NULL;
	err = H_TAKE_ATTR(dev, &at, attr, size);
	if (!err)
		err = check_attr(dev, &at);
	if (err)
		return err;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->dev = dev;
	m->flags = at.flags;
	m->spin_learns = !at.spin_ns;
	m->spin_ns = at.spin_ns ? at.spin_ns : DEFAULT_SPIN_NS;
	if (m->spin_ns > MOST_SPIN_NS)
		m->spin_ns = MOST_SPIN_NS;
	m->vain_ns = H_AGAIN_NS;
	m->budget.most = at.budget ? at.budget : default_budget(dev);
	m->receive.manager = m;
	m->send.manager = m;
	m->ready_tail = &m->ready;
	err = manager_init(m, &at);
	if (err)
		manager_undo(m);
	else
		*manager = m;
	return err;
}

int h__manager_left(struct h_manager *m, int64_t timeout_ns)
{
	uint32_t last = h__read_once(&m->terminus->producer) - 1;
	int ret;

	/* Also if nothing was sent yet: then it is done. */
	ret = h_send_wait(m->terminus, last, timeout_ns);
	return ret == -EAGAIN || ret == -ETIMEDOUT || ret == -EINTR ? ret : 0;
}

int h_manager_drain(struct h_manager *m, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int err = h__debts_drain(m, deadline);

	if (err)
		return err;
	err = h__manager_left(m, h__time_left(deadline));
	return err == -EAGAIN && timeout_ns ? -ETIMEDOUT : err;
}

/* Those that were closed already, and wait for what they have sent to leave, are ours. */
static bool has_end_points(struct h_manager *m)
{
	const struct h_receiver *r;
	uint32_t n = 0;

	h__lock(&m->lock);
	for (r = m->receivers; r; r = r->next)
		n++;
	n -= m->closed;
	h__unlock(&m->lock);
	return n;
}

int h_manager_destroy(struct h_manager *m)
{
	if (!m)
		return 0;
	if (has_end_points(m))
		return h__refuse(m->dev, -EBUSY, "the manager has end points");
	if (h__calls_mend(m, __builtin_frame_address(0)))
		return h__refuse(m->dev, -EBUSY,
				 "the manager is calling back: not in h_manager_dispatch()");
	h__event_exit(m);
	/* The last words of a process that ends have a moment to leave. */
	h__manager_left(m, DRAIN_NS);
	h__leaving_exit(m);
	manager_free(m);
	return 0;
}
