// SPDX-License-Identifier: GPL-2.0-only
/*
 * A notification queue from both sides: the NIC appends while the consumer's word says
 * anything, the library's h_recv() reads a ring that says anything. As long as both
 * keep to the rules nothing is lost without a report, and all comes in order.
 */
#include "fuzz_core.h"

#include "low/device.h"
#include "low/recv.c"

#define STEPS	300

static struct {
	uint8_t before[64];
	struct hamlyn_nq_entry entries[CORE_NQ];
	uint8_t behind[64];
} ring;

static struct h_dev dev;
static struct h_nq reader;
static struct hamlyn_nq_entry expected[STEPS];
static uint32_t appended, taken, lost, reported;
static bool honest;
static uint32_t odd;		/* how often the device was asked about a watch */

/* Outside of its rules nothing is needed of the library's device. */
int64_t h__now_ns(void)
{
	return (int64_t)core_now_ns;
}

int64_t h__deadline(int64_t timeout_ns)
{
	return timeout_ns;
}

static bool gone(struct h_nq *nq, struct hamlyn_nq_entry *e)
{
	MUST(nq == &reader && e);
	return odd++ & 1;
}

static void make(struct fuzz *f)
{
	static struct h_dev_ops ops;
	uint32_t start = fuzz_u8(f) - 16u, i;

	memset(&core, 0, sizeof(core));
	memset(&tamper, 0, sizeof(tamper));
	memset(&ring, GUARD, sizeof(ring));
	ops.nq_gone = fuzz_u8(f) & 1 ? gone : NULL;
	dev.ops = &ops;
	core.nq = (struct hml_nq) {
		.cursor = start, .consumer = start, .mask = CORE_NQ - 1,
		.ring = (uintptr_t)&core.ring, .entries = (uintptr_t)ring.entries,
		.control = (uintptr_t)&core.control,
	};
	core.control.consumer = start;
	for (i = 0; i < CORE_NQ; i++)
		ring.entries[i] = (struct hamlyn_nq_entry) { .sequence = start - CORE_NQ };
	reader = (struct h_nq) {
		.control = &core.control, .entries = ring.entries, .mask = CORE_NQ - 1,
		.patience = 3, .ring = &core.ring, .dev = &dev,
	};
	appended = 0;
	taken = 0;
	lost = 0;
	reported = 0;
	odd = 0;
	honest = true;
	tamper_plan(f);
}

static void append(struct fuzz *f, bool wake)
{
	struct hamlyn_nq_entry e = {
		.data = fuzz_u8(f), .slot = appended, .index = fuzz_u8(f),
		.source = 7, .length = fuzz_u8(f), .flags = fuzz_u8(f) & HAMLYN_NQE_SINGLE,
	};
	uint32_t cursor = core.nq.cursor, lost_before = core.ring.lost;
	uint64_t wakes = core.wakes;
	struct hml_nq_place place;
	bool done;

	core.nq.armed = fuzz_u8(f) & 1;
	tamper.on = !honest;
	place = hml_nq_expect(&core.nic, &core.nq, 0);
	/* Somebody else was faster. */
	if (fuzz_u8(f) == 0xff)
		place.cursor--;
	done = hml_nq_append(&core.nic, &core.nq, place, &e, wake);
	tamper.on = false;
	MUST(core.nq.cursor - cursor <= 1);
	MUST(!done || core.nq.cursor == cursor + 1);
	MUST(core.ring.lost == lost_before + !done);
	MUST(core.wakes - wakes <= 1);
	if (wake)
		MUST(!core.nq.armed);
	else
		MUST(core.wakes == wakes);
	lost += !done;
	if (done)
		expected[appended++] = e;
	if (honest)
		MUST(done || appended - taken >= CORE_NQ - 1 - reported ||
		     core.nq.cursor - core.control.consumer >= CORE_NQ - 1);
}

static void receive(void)
{
	uint32_t consumer = core.control.consumer;
	struct hamlyn_nq_entry e;
	int ret = h_recv(&reader, &e);

	MUST(ret == 0 || ret == 1 || ret == -EOVERFLOW);
	/* No more than a lap in one call. */
	MUST(core.control.consumer - consumer <= CORE_NQ);
	if (!honest)
		return;
	if (ret == -EOVERFLOW) {
		MUST(lost);
		reported++;
	} else if (ret) {
		MUST(taken < appended);
		e.sequence = 0;
		MUST(!memcmp(&e, &expected[taken], sizeof(e)));
		taken++;
	} else {
		MUST(taken == appended);
	}
}

/* Whoever owns the page writes there what he likes; and a peer on a segment to the ring. */
static void disturb(struct fuzz *f, uint8_t what)
{
	struct hamlyn_nq_entry *e = &ring.entries[fuzz_below(f, CORE_NQ)];

	honest = false;
	core.control.consumer = what & 0x80 ? core.nq.cursor - fuzz_u8(f) : fuzz_u32(f);
	if (what & 0x40) {
		fuzz_bytes(f, e, sizeof(*e));
		e->flags &= HAMLYN_NQE_OVERRUN | HAMLYN_NQE_VOID |
			    HAMLYN_NQE_PEER_GONE | HAMLYN_NQE_SINGLE;
		e->sequence = core.control.consumer + fuzz_u8(f);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	uint32_t n, i;

	make(&f);
	for (n = 0; n < STEPS && f.left; n++) {
		uint8_t what = fuzz_u8(&f);

		switch (what & 7) {
		case 0:
		case 1:
		case 2:
			append(&f, what & 8);
			break;
		case 3:
		case 4:
		case 5:
			receive();
			break;
		case 6:
			hml_nq_ready(&core.nic, &core.nq, core.nq.cursor - what);
			break;
		default:
			if (what == 0xff || what == 0xbf || what == 0x7f)
				disturb(&f, what);
		}
		for (i = 0; i < sizeof(ring.before); i++)
			MUST(ring.before[i] == GUARD && ring.behind[i] == GUARD);
	}
	/* All that was taken in comes out, and each gap has a report. */
	for (n = 0; honest && n < 2 * CORE_NQ; n++)
		receive();
	if (honest)
		MUST(taken == appended && !lost == !reported);
	return 0;
}
