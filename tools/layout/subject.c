// SPDX-License-Identifier: GPL-2.0-only
/*
 * What layout.py traces: messages of a steady state, each step between two
 * calls of marker functions. Tells on standard output where its objects are.
 *
 * "embedded" is the embedded device as it is. "mapped" is the library's side of
 * the kernel device and, in the same process, the NIC core's: the memory is
 * laid out as the driver maps it, the engine is a call of hml_tx_run().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embedded/shm.h"

#define WARM_UP		200
#define MESSAGES	64
#define PAYLOAD		16
#define NQ_ENTRIES	64
#define WQ_ENTRIES	64
#define WQ_SHIFT	9
#define AREA		4096
#define STACK		((size_t)256 << 10)
#define KEY		0x1234567890abcdefull

#define kept		__attribute__((noipa, used))
#define line_aligned	__attribute__((aligned(64)))

void layout_send(void);
void layout_engine(void);
void layout_poll(void);
void layout_take(void);
void layout_end(void);

kept void layout_send(void) { __asm__ volatile("" : : : "memory"); }
kept void layout_engine(void) { __asm__ volatile("" : : : "memory"); }
kept void layout_poll(void) { __asm__ volatile("" : : : "memory"); }
kept void layout_take(void) { __asm__ volatile("" : : : "memory"); }
kept void layout_end(void) { __asm__ volatile("" : : : "memory"); }

static struct hamlyn_nq_entry taken;
static unsigned char data[PAYLOAD] __attribute__((aligned(64)));
static struct h_ticket to __attribute__((aligned(64)));
static const void *message;	/* where it arrives */

/* where: private (one process, one thread), shared, constant */
static void object(const char *where, const char *name, const char *type,
		   const void *at, size_t size, size_t stride)
{
	printf("object|%s|%s|%s|%#lx|%zu|%zu\n", where, name, type,
	       (unsigned long)(uintptr_t)at, size, stride);
}

static void check(int ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "subject: %s: %s\n", what, strerror(-ret));
	exit(1);
}

static void common_objects(struct h_terminus *t, struct h_nq *nq)
{
	const char *here = __builtin_frame_address(0);

	object("private", "stack", "", here - STACK, 2 * STACK, 0);
	object("private", "h_ticket", "h_ticket", &to, sizeof(to), 0);
	object("private", "payload to send", "", data, sizeof(data), 0);
	object("private", "entry taken", "hamlyn_nq_entry", &taken, sizeof(taken), 0);
	object("private", "h_terminus", "h_terminus", t, sizeof(*t), 0);
	object("private", "h_nq", "h_nq", nq, sizeof(*nq), 0);
	object("private", "h_dev", "h_dev", t->dev, t->dev ? sizeof(*t->dev) : 0, 0);
}

static void nq_objects(struct h_nq *nq)
{
	object("shared", "NQ control", "hamlyn_nq_control", nq->control,
	       sizeof(*nq->control), 0);
	object("shared", "NQ ring head", "hamlyn_nq_ring", nq->ring, sizeof(*nq->ring), 0);
	object("shared", "NQ entry", "hamlyn_nq_entry", nq->entries,
	       NQ_ENTRIES * sizeof(*nq->entries), sizeof(*nq->entries));
}

static void send_one(struct h_terminus *t)
{
	int64_t handle;

	layout_send();
	handle = h_send_msg(t, &to, data, PAYLOAD, NULL, 0);
	layout_end();
	check(handle < 0 ? (int)handle : 0, "send");
}

static void poll_one(struct h_nq *nq)
{
	int n;

	layout_poll();
	n = h_recv(nq, &taken);
	layout_end();
	check(n ? -EINVAL : 0, "empty poll");
}

static void take_one(struct h_nq *nq)
{
	int n;

	layout_take();
	n = h_recv(nq, &taken);
	/* What the application does next */
	__asm__ volatile("" : : "r"(*(const u64 *)message) : "memory");
	layout_end();
	check(n == 1 ? 0 : -EINVAL, "receive");
}

/* ---- the embedded device ---- */

struct embedded {
	struct h_dev *dev;
	struct h_area *area;
	struct h_area *meta;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_terminus *t;
};

static void embedded_make(struct embedded *e, const char *name)
{
	struct h_slot_attr attr = { .meta_count = 1 };

	check(h_open(name, &e->dev), "open");
	check(h_area_alloc(e->dev, AREA, &e->area), "area");
	check(h_area_alloc(e->dev, AREA, &e->meta), "area");
	check(h_nq_create(e->dev, NQ_ENTRIES, &e->nq), "NQ");
	attr.area = e->area;
	attr.meta_area = e->meta;
	attr.nq = e->nq;
	check(h_slot_create(e->dev, &attr, &e->slot), "slot");
	check(h_slot_ticket(e->slot, 0, 0, 0, &to), "ticket");
	message = h_area_addr(e->area);
	check(h_terminus_create(e->dev, NULL, &e->t), "terminus");
}

static void embedded_objects(struct embedded *e)
{
	struct shm_dev *shm = shm_of(e->dev);
	struct shm_sender *s = e->t->priv;
	struct shm_segment *seg = shm->seg;

	common_objects(e->t, e->nq);
	object("private", "terminus status", "hamlyn_terminus_status", e->t->status,
	       sizeof(*e->t->status), 0);
	object("private", "entry status", "", e->t->status + 1,
	       (e->t->mask + 1) * sizeof(int32_t), sizeof(int32_t));
	object("private", "shm_sender", "shm_sender", s, sizeof(*s), 0);
	object("private", "shm_dev", "shm_dev", shm, sizeof(*shm), 0);
	object("shared", "segment head", "shm_segment", seg,
	       offsetof(struct shm_segment, termini), 0);
	object("shared", "terminus record", "shm_terminus", s->record, sizeof(*s->record), 0);
	object("shared", "NQCB record", "shm_nq", e->nq->priv, sizeof(struct shm_nq), 0);
	object("shared", "slot record", "shm_slot", &seg->slots[e->slot->number],
	       sizeof(seg->slots[0]), 0);
	object("shared", "message area", "", h_area_addr(e->area), AREA, 0);
	object("shared", "metadata entry", "hamlyn_metadata", h_area_addr(e->meta),
	       sizeof(struct hamlyn_metadata), 0);
	nq_objects(e->nq);
}

static void embedded(const char *name)
{
	struct embedded e = { 0 };
	int i;

	embedded_make(&e, name);
	embedded_objects(&e);
	for (i = 0; i < WARM_UP + MESSAGES; i++) {
		if (i == WARM_UP)
			printf("warm\n");
		fflush(stdout);
		poll_one(e.nq);
		send_one(e.t);
		take_one(e.nq);
	}
	h_close(e.dev);
}

/* ---- the kernel device's mapped memory, with the core at its other end ---- */

struct mapped {
	struct h_dev dev;
	struct h_terminus t;
	struct h_nq nq;
	/* Aligned as the driver's are by kmalloc(); hml_term begins with these two */
	struct hml_terminus core line_aligned;
	struct hml_stats stats;
	struct hml_nic nic line_aligned;
	struct hml_link link line_aligned;
	struct hml_slot slot line_aligned;
	/* All share it: as the kernel's, but for a look at that. */
	struct shm_nq nqcb line_aligned;
	unsigned char *wq;
	unsigned char *area;
	struct hamlyn_metadata *meta;
};

static void *pages(size_t n)
{
	void *p = aligned_alloc(4096, (n + 4095) & ~4095ul);

	check(p ? 0 : -ENOMEM, "memory");
	memset(p, 0, (n + 4095) & ~4095ul);
	return p;
}

static void mapped_user(struct mapped *m)
{
	struct hamlyn_nq_ring *ring = pages(sizeof(*ring) + NQ_ENTRIES *
					    sizeof(struct hamlyn_nq_entry));

	ring->entries = NQ_ENTRIES;
	m->wq = pages(64 + ((size_t)WQ_ENTRIES << WQ_SHIFT));
	m->t = (struct h_terminus) {
		.wq = (void *)m->wq,
		.status = pages(sizeof(struct hamlyn_terminus_status) + 4 * WQ_ENTRIES),
		.entries = m->wq + 64,
		.mask = WQ_ENTRIES - 1,
		.entry_shift = WQ_SHIFT,
		.inline_max = (1 << WQ_SHIFT) - sizeof(struct hamlyn_trb),
		.dev = &m->dev,
	};
	m->nq = (struct h_nq) {
		.control = pages(4096),
		.entries = (void *)(ring + 1),
		.mask = NQ_ENTRIES - 1,
		.patience = H_PATIENCE,
		.ring = ring,
		.dev = &m->dev,
	};
	m->area = pages(AREA);
	message = m->area;
	m->meta = pages(AREA);
	to = (struct h_ticket) { .key = KEY, .length = AREA };
}

/* port_user's references are offsets from a base; 0 makes them addresses. */
static u64 ref(const void *p)
{
	return (uintptr_t)p;
}

static void mapped_core(struct mapped *m)
{
	m->nic = (struct hml_nic) {
		.port = { .slots = ref(&m->slot), .slot_stride = sizeof(m->slot),
			  .max_slots = 1 },
		.packet_size = 16384,
		.link = &m->link,
	};
	m->nqcb.nq = (struct hml_nq) {
		.mask = NQ_ENTRIES - 1,
		.ring = ref(m->nq.ring),
		.entries = ref(m->nq.entries),
		.control = ref(m->nq.control),
	};
	m->slot = (struct hml_slot) {
		.live = 1,
		.meta_count = 1,
		.key = KEY,
		.data = { .mem = ref(m->area), .length = AREA },
		.meta_mem = ref(m->meta),
		.nq = ref(&m->nqcb),
	};
	m->core = (struct hml_terminus) {
		.wq = m->t.wq,
		.entries = m->t.entries,
		.status = m->t.status,
		.mask = m->t.mask,
		.entry_size = 1 << WQ_SHIFT,
		.entry_shift = WQ_SHIFT,
		.sender = { .stats = &m->stats },
	};
}

static void mapped_objects(struct mapped *m)
{
	common_objects(&m->t, &m->nq);
	object("shared", "work queue control", "hamlyn_wq_control", m->t.wq,
	       sizeof(*m->t.wq), 0);
	object("shared", "work queue entry", "hamlyn_trb", m->t.entries,
	       (size_t)WQ_ENTRIES << WQ_SHIFT, 1 << WQ_SHIFT);
	object("shared", "terminus status", "hamlyn_terminus_status", m->t.status,
	       sizeof(*m->t.status), 0);
	object("shared", "entry status", "", m->t.status + 1, 4 * WQ_ENTRIES, 4);
	object("shared", "message area", "", m->area, AREA, 0);
	object("shared", "metadata entry", "hamlyn_metadata", m->meta,
	       sizeof(*m->meta), 0);
	nq_objects(&m->nq);
	object("kernel", "hml_nic", "hml_nic", &m->nic, sizeof(m->nic), 0);
	object("kernel", "hml_link", "hml_link", &m->link, sizeof(m->link), 0);
	object("kernel", "hml_terminus", "hml_terminus", &m->core, sizeof(m->core), 0);
	object("kernel", "hml_stats", "hml_stats", &m->stats, sizeof(m->stats), 0);
	object("kernel", "hml_slot", "hml_slot", &m->slot, sizeof(m->slot), 0);
	object("kernel", "hml_nq", "shm_nq", &m->nqcb, sizeof(m->nqcb), 0);
}

static void mapped(void)
{
	static struct mapped m __attribute__((aligned(4096)));
	s64 bytes;
	u32 sent;
	int i;

	mapped_user(&m);
	mapped_core(&m);
	mapped_objects(&m);
	for (i = 0; i < WARM_UP + MESSAGES; i++) {
		if (i == WARM_UP)
			printf("warm\n");
		fflush(stdout);
		poll_one(&m.nq);
		send_one(&m.t);
		check((int)h_send_done(&m.t, 0) < 0 ? -EINVAL : 0, "status");
		bytes = 1 << 20;
		layout_engine();
		sent = hml_tx_run(&m.nic, &m.core, 1, &bytes);
		layout_end();
		check(sent == 1 ? 0 : -EINVAL, "engine");
		take_one(&m.nq);
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "embedded")) {
		embedded(argv[2]);
	} else if (argc == 2 && !strcmp(argv[1], "mapped")) {
		mapped();
	} else {
		fprintf(stderr, "usage: subject embedded shm:NAME | subject mapped\n");
		return 2;
	}
	return 0;
}
