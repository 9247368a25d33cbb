// SPDX-License-Identifier: GPL-2.0-only
/*
 * The adversary: what may happen to packets in a fabric that is not the loop
 * fabric, on purpose and with a seed. It stands between a NIC and its fabric, is
 * one for the NIC, and loses, repeats, damages, reorders, delays and stalls what
 * the NIC sends.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "hml.h"
#include "locked.h"
#include "trace.h"

#define PPM		1000000		/* rates are in parts of it */
#define HELD		32		/* packets that can be kept back */
#define MAX_OVERTAKERS	8		/* packets that overtake a reordered one */
#define REORDER_NS	(2 * NSEC_PER_MSEC)	/* if none comes to overtake it */
#define FLUSH_BATCH	8
#define STALL_NS	(4 * NSEC_PER_MSEC)	/* of one stall, at most */

/**
 * struct held - a packet that was kept back
 * @length: staged payload bytes
 * @due: when it goes on, ns; 0: no packet here
 * @overtakers: packets that may still overtake it
 * @header: its header
 * @meta: its metadata
 * @data: room for its payload
 * @pid: who sent it
 * @uid: who sent it
 * @share: as whose other hosts are told of it
 */
struct held {
	u32 length;
	u64 due;
	u32 overtakers;
	struct hamlyn_packet header;
	u8 meta[HAMLYN_MAX_METADATA];
	u8 *data;
	u32 pid;
	u32 uid;
	u32 share;
};

/**
 * struct hml_adversary - the adversary of one NIC
 * @fabric: what the NIC sees of it; without hosts
 * @device: the NIC
 * @attr: what it does; constant
 * @lock: protects the rest. Preemption is off anyway where packets are sent
 * @random: state of its choices
 * @stalled_until: until then nothing is taken, ns
 * @stats: what becomes of packets that were kept back
 * @sender: stands for their senders, who may be gone
 * @held: packets kept back
 * @spare: where a packet is damaged
 * @flush: sends on what is due
 * @memory: all payload room
 */
struct hml_adversary {
	struct hml_fabric fabric;
	struct hml_device *device;
	struct hml_adversary_attr attr;
	raw_spinlock_t lock;
	u64 random;
	u64 stalled_until;
	struct hml_stats stats;
	struct hml_sender sender;
	struct held held[HELD];
	struct held spare;
	struct delayed_work flush;
	u8 *memory;
};

/* xorshift64*: the same choices for the same seed. */
static u64 next_random(struct hml_adversary *a)
{
	u64 x = a->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	a->random = x;
	return x * 0x2545f4914f6cdd1dULL;
}

static bool happens(struct hml_adversary *a, u32 ppm)
{
	return ppm && (u32)(next_random(a) >> 32) % PPM < ppm;
}

/* Return: false if not all of it can be read. */
static bool gather(u8 *to, const struct hamlyn_packet *h,
		   const struct hml_payload *p)
{
	const struct hml_piece *piece = p->piece;
	u64 skip = p->skip;
	u32 left = h->length;

	if (p->flat) {
		memcpy(to, p->flat, left);
		return true;
	}
	while (left) {
		u32 n = min_t(u64, piece->length - skip, left);

		if (!hml_mem_read(to, piece->mem, piece->offset + skip, n))
			return false;
		to += n;
		left -= n;
		skip = 0;
		piece++;
	}
	return true;
}

/* Return: false if there is no copy: it cannot be read, and so not be sent either. */
static bool stage(struct held *p, const struct hamlyn_packet *h,
		  const struct hml_payload *payload,
		  struct hml_sender *sender)
{
	p->header = *h;
	p->length = h->length;
	p->pid = sender->pid;
	p->uid = sender->uid;
	p->share = sender->share;
	/* Nothing of other packets, should its length be damaged. */
	memset(p->meta, 0, sizeof(p->meta));
	if (h->meta_length)
		memcpy(p->meta, payload->meta, h->meta_length);
	if (likely(gather(p->data, h, payload)))
		return true;
	sender->unreadable = true;
	return false;
}

/*
 * A bit anywhere in header, metadata and payload. The end of a frame cannot be
 * damaged, so a length that is too long for it is seen by any fabric.
 */
static void damage(struct hml_adversary *a, struct held *p)
{
	u32 meta = p->header.meta_length;
	u32 bytes = sizeof(p->header) + meta + p->length;
	u32 bit = (u32)(next_random(a) >> 32) % (8 * bytes);
	u32 at = bit / 8;
	u8 *byte;

	if (at < sizeof(p->header))
		byte = (u8 *)&p->header + at;
	else if (at < sizeof(p->header) + meta)
		byte = p->meta + (at - sizeof(p->header));
	else
		byte = p->data + (at - sizeof(p->header) - meta);
	*byte ^= 1 << bit % 8;
}

/* The NIC's own fabric, which the adversary stands before. */
static bool go_on(struct hml_adversary *a, hml_path_t path,
		  const struct hamlyn_packet *h,
		  const struct hml_payload *payload, struct hml_sender *sender)
{
	struct hml_fabric *next = a->device->nic.port.fabric;

	return next->ops->xmit(next, &a->device->nic, path, h, payload, sender);
}

/*
 * Routed by what the header says now; the frame is as long as it was. It was taken
 * already: if the fabric has no room for it, it is lost.
 */
static void deliver(struct hml_adversary *a, const struct held *p,
		    struct hml_sender *sender)
{
	struct hml_payload payload = { .meta = p->meta, .flat = p->data };
	struct hml_nic *nic = &a->device->nic;
	hml_path_t path = hml_port_route(nic, p->header.host);

	if (path == HML_PATH_NONE) {
		sender->stats->rejects[HAMLYN_REJECT_DOWN]++;
		hml_port_trace_down(nic, &p->header, sender);
		return;
	}
	if (p->header.length > p->length ||
	    p->header.meta_length > HAMLYN_MAX_METADATA) {
		sender->stats->rejects[HAMLYN_REJECT_FORMAT]++;
		trace_hamlyn_reject(nic, &p->header, HAMLYN_REJECT_FORMAT,
				    sender);
		return;
	}
	go_on(a, path, &p->header, &payload, sender);
}

static void release_held(struct hml_adversary *a, struct held *p)
{
	a->sender.pid = p->pid;
	a->sender.uid = p->uid;
	a->sender.share = p->share;
	p->due = 0;
	trace_hamlyn_adversary(a->device, HML_TRACE_RELEASE, &p->header);
	deliver(a, p, &a->sender);
}

/* The one that has waited longest, if there is no room for another. */
static struct held *room(struct hml_adversary *a)
{
	struct held *oldest = &a->held[0];
	u32 i;

	for (i = 0; i < HELD; i++) {
		if (!a->held[i].due)
			return &a->held[i];
		if (a->held[i].due < oldest->due)
			oldest = &a->held[i];
	}
	release_held(a, oldest);
	return oldest;
}

static void keep_back(struct hml_adversary *a, const struct hamlyn_packet *h,
		      const struct hml_payload *payload,
		      struct hml_sender *sender, bool reorder)
{
	u64 delay = (u64)a->attr.delay_us * NSEC_PER_USEC;
	struct held *p = room(a);

	if (!stage(p, h, payload, sender))
		return;
	if (happens(a, a->attr.corrupt)) {
		trace_hamlyn_adversary(a->device, HML_TRACE_CORRUPT, h);
		damage(a, p);
	}
	p->overtakers = U32_MAX;
	if (reorder) {
		/* Its own sending counts as one. */
		p->overtakers = 2 + (u32)(next_random(a) >> 32) %
				    MAX_OVERTAKERS;
		delay += REORDER_NS;
	}
	p->due = ktime_get_ns() + delay;
	trace_hamlyn_adversary(a->device, reorder ? HML_TRACE_REORDER :
						    HML_TRACE_DELAY, h);
	schedule_delayed_work(&a->flush, 1 + nsecs_to_jiffies(delay));
}

/* One at most, so that at most HML_PACKETS_PER_XMIT arrive for one sent. */
static void overtake(struct hml_adversary *a)
{
	struct held *ready = NULL;
	u32 i;

	for (i = 0; i < HELD; i++) {
		struct held *p = &a->held[i];

		if (!p->due || p->overtakers == U32_MAX)
			continue;
		if (p->overtakers)
			p->overtakers--;
		if (!p->overtakers)
			ready = p;
	}
	if (ready)
		release_held(a, ready);
}

/* The packet, or what became of it. Return: false if it was not taken. */
static bool pass(struct hml_adversary *a, hml_path_t path,
		 const struct hamlyn_packet *h,
		 const struct hml_payload *payload, struct hml_sender *sender)
{
	bool guessed;

	if (!happens(a, a->attr.corrupt))
		return go_on(a, path, h, payload, sender);
	trace_hamlyn_adversary(a->device, HML_TRACE_CORRUPT, h);
	if (!stage(&a->spare, h, payload, sender))
		return true;
	damage(a, &a->spare);
	/* A key that was damaged on its way is nobody's guess. */
	guessed = sender->guessed;
	sender->guessed = true;
	deliver(a, &a->spare, sender);
	sender->guessed = guessed;
	return true;
}

/*
 * Whoever waits for one host must not hold up what goes to another: so a NIC can always send
 * to itself, which is how a test sees that. At a rate of 100% a stall has no end.
 */
static bool stalls(struct hml_adversary *a, hml_path_t path,
		   const struct hamlyn_packet *h)
{
	u64 now;

	if (!a->attr.stall || path == &a->device->nic)
		return false;
	now = ktime_get_ns();
	if (now < a->stalled_until)
		return true;
	if (!happens(a, a->attr.stall))
		return false;
	a->stalled_until = now + (u32)(next_random(a) >> 32) % STALL_NS;
	trace_hamlyn_adversary(a->device, HML_TRACE_STALL, h);
	return true;
}

static bool mistreat(struct hml_adversary *a, hml_path_t path,
		     const struct hamlyn_packet *h,
		     const struct hml_payload *payload, struct hml_sender *sender)
{
	bool reorder;

	if (stalls(a, path, h))
		return false;
	reorder = happens(a, a->attr.reorder);
	if (happens(a, a->attr.drop)) {
		trace_hamlyn_adversary(a->device, HML_TRACE_DROP, h);
		return true;
	}
	if (happens(a, a->attr.duplicate)) {
		trace_hamlyn_adversary(a->device, HML_TRACE_DUPLICATE, h);
		pass(a, path, h, payload, sender);
	}
	if (!reorder && !a->attr.delay_us)
		return pass(a, path, h, payload, sender);
	keep_back(a, h, payload, sender, reorder);
	return true;
}

static struct hml_adversary *adversary_of(struct hml_fabric *f)
{
	return container_of(f, struct hml_adversary, fabric);
}

static bool adversary_xmit(struct hml_fabric *f, struct hml_nic *from, hml_path_t path,
			   const struct hamlyn_packet *h,
			   const struct hml_payload *payload, struct hml_sender *sender)
{
	struct hml_adversary *a = adversary_of(f);
	bool taken;

	hml_lock(&a->lock);
	taken = mistreat(a, path, h, payload, sender);
	if (taken)
		overtake(a);
	hml_unlock(&a->lock);
	return taken;
}

/* A stall takes time, but no packets. */
static u32 adversary_flags(struct hml_fabric *f)
{
	const struct hml_adversary_attr *attr = &adversary_of(f)->attr;
	struct hml_fabric *next = adversary_of(f)->device->nic.port.fabric;
	bool lossy = attr->drop || attr->duplicate || attr->corrupt || attr->reorder ||
		     attr->delay_us;

	return next->ops->flags(next) | (lossy ? HAMLYN_FABRIC_LOSSY : 0);
}

static const struct hml_fabric_ops adversary_ops = {
	.name = "adversary",
	.flags = adversary_flags,
	.xmit = adversary_xmit,
};

/* Send on what is due; all of it, if it has to be. Returns how many remain. */
static u32 send_due(struct hml_adversary *a, bool all)
{
	u32 sent = 0, left = 0, i;
	u64 now = ktime_get_ns();

	hml_notify_begin();
	hml_lock(&a->lock);
	for (i = 0; i < HELD; i++) {
		struct held *p = &a->held[i];

		if (!p->due)
			continue;
		if (sent < FLUSH_BATCH && (all || p->due <= now)) {
			release_held(a, p);
			sent++;
		} else {
			left++;
		}
	}
	hml_unlock(&a->lock);
	hml_notify_end();
	return left;
}

static void flush_due(struct work_struct *work)
{
	struct hml_adversary *a = container_of(to_delayed_work(work),
					       struct hml_adversary, flush);

	if (send_due(a, false))
		schedule_delayed_work(&a->flush, 1);
}

static void adversary_free(struct hml_adversary *a)
{
	kvfree_sensitive(a->memory,
			 (HELD + 1) * (size_t)a->device->nic.packet_size);
	kfree_sensitive(a);
}

static struct hml_adversary *adversary_new(struct hml_device *d,
					   const struct hml_adversary_attr *attr)
{
	struct hml_adversary *a = kzalloc(sizeof(*a), GFP_KERNEL);
	u32 size = d->nic.packet_size;
	u32 i;

	if (!a)
		return NULL;
	a->memory = kvmalloc_array(HELD + 1, size, GFP_KERNEL);
	if (!a->memory) {
		kfree(a);
		return NULL;
	}
	a->fabric.ops = &adversary_ops;
	a->device = d;
	a->attr = *attr;
	a->random = attr->seed ?: 1;
	a->sender.stats = &a->stats;
	/* They cannot be paused any more, and the adversary is no guesser. */
	a->sender.guessed = true;
	raw_spin_lock_init(&a->lock);
	INIT_DELAYED_WORK(&a->flush, flush_due);
	for (i = 0; i < HELD; i++)
		a->held[i].data = a->memory + (size_t)i * size;
	a->spare.data = a->memory + (size_t)HELD * size;
	return a;
}

/* No packet comes to it any more: let go of what it has. */
static void adversary_end(struct hml_adversary *a)
{
	cancel_delayed_work_sync(&a->flush);
	while (send_due(a, true))
		cond_resched();
	hml_lock(&a->device->termini_lock);
	hml_stats_add(hml_retired(a->device), &a->stats);
	hml_unlock(&a->device->termini_lock);
	adversary_free(a);
}

/* The one that stands before a NIC's fabric, or NULL. */
static struct hml_adversary *adversary_before(struct hml_fabric *first)
{
	return first->ops == &adversary_ops ? adversary_of(first) : NULL;
}

static void replace(struct hml_device *d, struct hml_adversary *a)
{
	struct hml_adversary *old;

	old = adversary_before(rcu_dereference_protected(d->nic.port.first,
							 lockdep_is_held(&d->admin) ||
							 READ_ONCE(d->gone)));
	if (!old && !a)
		return;
	hml_fabric_enter(d, a ? &a->fabric : d->nic.port.fabric);
	if (old)
		adversary_end(old);
}

/**
 * hml_adversary_set() - set what the fabric does to what a NIC sends
 * @d: the NIC
 * @attr: what; all 0 but the seed: nothing
 *
 * d->admin is held. Packets that the former one kept back are sent on.
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int hml_adversary_set(struct hml_device *d,
		      const struct hml_adversary_attr *attr)
{
	struct hml_adversary *a = NULL;

	lockdep_assert_held(&d->admin);
	if (attr->drop > PPM || attr->duplicate > PPM || attr->corrupt > PPM ||
	    attr->reorder > PPM || attr->stall > PPM ||
	    attr->delay_us > 10 * USEC_PER_SEC)
		return -EINVAL;
	if (attr->drop || attr->duplicate || attr->corrupt || attr->reorder ||
	    attr->delay_us || attr->stall) {
		a = adversary_new(d, attr);
		if (!a)
			return -ENOMEM;
	}
	replace(d, a);
	return 0;
}

/* What became of packets that were kept back; senders count the others. */
void hml_adversary_add_stats(struct hml_device *d, struct hml_stats *sum)
{
	struct hml_adversary *a;

	hml_notify_begin();
	a = adversary_before(hml_dereference(d->nic.port.first));
	if (a)
		hml_stats_add(sum, &a->stats);
	hml_notify_end();
}

void hml_adversary_get(struct hml_device *d, struct hml_adversary_attr *attr)
{
	const struct hml_adversary *a;

	hml_notify_begin();
	a = adversary_before(hml_dereference(d->nic.port.first));
	*attr = a ? a->attr : (struct hml_adversary_attr){};
	hml_notify_end();
}

/* The NIC is off the fabric. */
void hml_adversary_stop(struct hml_device *d)
{
	replace(d, NULL);
}
