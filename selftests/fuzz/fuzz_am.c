// SPDX-License-Identifier: GPL-2.0-only
/*
 * Active Messages that arrive: any header, sealed or not, in any buffer, also while
 * requests of our own are under way. The engine believes to be process 1 of 3; what it
 * sends goes nowhere.
 *
 * Where memory goes to and which function is called is the sender's word by the
 * protocol: here they are one place, and functions that are there for it.
 */
#include <unistd.h>

#include "fuzz.h"
#include "gam.h"
#include "hpam.h"
#include "wire.h"

#define PROCS	3
#define SELF	1
#define DEPTH	4
#define PAGE	256U
#define LANDING	2048
#define GUARD	0xa5
#define STEPS	40
#define AGE	(1ULL << 50)	/* ticks: nothing times out */

static struct am *const am = &h__am;
static struct am before;
static struct h_ticket own;
static unsigned char landing[LANDING];
static uint32_t ran;		/* handlers */
static int reply_how;
static bool enabled;

void am_test_wire(struct am *engine, int dest, uint32_t index, const void *message,
		  uint32_t size, struct am_send *send)
{
	const struct am_packet *p = message;

	MUST(engine == am && dest >= 0 && dest < PROCS);
	MUST(index < 2 * PROCS * DEPTH);
	MUST(size >= AM_HEADER && size <= am->stride);
	MUST(p->source == SELF && p->instance < DEPTH);
	MUST(!am->reliable || p->check == am_header_sum(p, (uint32_t)dest,
							index >= PROCS * DEPTH));
	send->handle = -1;
}

/* ---- handlers ------------------------------------------------------------ */

static void end_of_reply(vnn_t source)
{
	(void)source;
	ran++;
}

static void words(vnn_t source, long a, long b, long c, long d, long e)
{
	MUST(source >= 0 && source < PROCS && am->context != AM_MAIN);
	(void)(a ^ b ^ c ^ d ^ e);
	ran++;
	if (am->context == AM_IN_REQUEST && !am->replied && reply_how & 1)
		am_reply_0(source, end_of_reply);
}

static void words_hpam(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	(void)(a ^ b ^ c ^ d);
	ran++;
}

static void check_data(const void *data, int nbytes)
{
	unsigned char sum = 0;
	int i;

	for (i = 0; i < nbytes && i < (int)PAGE; i++)
		sum ^= ((const unsigned char *)data)[i];
	ran += 1 + (sum & 0);
}

static void memory(vnn_t source, void *data, int nbytes, void *arg)
{
	MUST(source >= 0 && source < PROCS);
	(void)arg;
	check_data(data, data == landing ? 0 : nbytes);
}

static void memory_hpam(void *arg, void *data, int nbytes)
{
	(void)arg;
	(void)nbytes;
	check_data(data, 0);
}

static void medium(vnn_t source, void *data, int nbytes, long a, long b)
{
	MUST(nbytes >= 0 && nbytes <= (int)PAGE);
	check_data(data, nbytes);
	if (am->context == AM_IN_REQUEST && !am->replied && reply_how & 2 && (a & 1))
		am_reply(source, medium, data, nbytes, a, b);
}

static void words_df(vnn_t source, long a, long b, double c)
{
	(void)c;
	words(source, a, b, 0, 0, 0);
}

static uint64_t name_for(struct fuzz *f, uint8_t kind)
{
	void (*f_of)(void) = (void (*)(void))words;

	switch (kind & 0x7f) {
	case AM_ARGS_HPAM:
		f_of = (void (*)(void))words_hpam;
		break;
	case AM_ARGS_DF:
		f_of = (void (*)(void))words_df;
		break;
	case AM_MEMORY:
		f_of = (void (*)(void))memory;
		break;
	case AM_MEMORY_HPAM:
		f_of = (void (*)(void))memory_hpam;
		break;
	case AM_MEDIUM:
		f_of = (void (*)(void))medium;
		break;
	}
	/* Of no module that there is: nobody's. */
	if (fuzz_u8(f) == 0xff)
		return UINT64_MAX - fuzz_u8(f);
	return am_address_name(f_of);
}

/* ---- a world ------------------------------------------------------------- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char name[64];

	(void)argc;
	(void)argv;
	snprintf(name, sizeof(name), "shm:fuzz-am-%d,guesses=0", getpid());
	setenv("HAMLYN_DEVICE", name, 1);
	MUST(!am_enable());
	before = *am;
	own = am->peers[0].ticket;
	enabled = true;
	return 0;
}

__attribute__((destructor))
static void end_of_all(void)
{
	if (!enabled)
		return;
	*am = before;
	am_disable();
}

static void make(struct fuzz *f)
{
	uint8_t how = fuzz_u8(f);
	uint32_t p, i;

	*am = before;
	memset(&am->stats, 0, sizeof(am->stats));
	am->reliable = how & 1;
	am->summed = !!(how & 2);
	am->timeout = AGE;
	am->give_up = AGE << 12;
	am->procs = PROCS;
	am->self = SELF;
	am->depth = DEPTH;
	am->depth_shift = 2;
	am->page = PAGE;
	am->stride = AM_HEADER + PAGE;
	am->long_base = 2 * PROCS * DEPTH * AM_STRIDE;
	am->peers = calloc(PROCS, sizeof(*am->peers));
	am->in_state = calloc(2 * PROCS, DEPTH);
	am->scratch = calloc(1, PAGE);
	am->in = calloc(1, am->long_base + 2 * PROCS * DEPTH * am->stride);
	am->out = calloc(2 * PROCS * DEPTH, am->stride);
	MUST(am->peers && am->in_state && am->scratch && am->in && am->out);
	for (p = 0; p < PROCS; p++) {
		am->peers[p].ticket = own;
		am->peers[p].free_transfers = (1U << AM_TRANSFERS) - 1;
		for (i = 0; i < AM_MAX_DEPTH; i++) {
			am->peers[p].request[i].handle = -1;
			am->peers[p].reply[i].handle = -1;
		}
	}
	reply_how = how >> 2;
	ran = 0;
	memset(landing, GUARD, sizeof(landing));
}

static void end(void)
{
	uint32_t p;

	for (p = 0; p < PROCS; p++)
		if (am->peers[p].watch)
			h_unwatch(am->peers[p].watch);
	free(am->peers);
	free(am->in_state);
	free(am->scratch);
	free(am->in);
	free(am->out);
	*am = before;
}

/* ---- what arrives -------------------------------------------------------- */

/* Data that the protocol lets land: in the place that is there for it. */
static void aim(struct fuzz *f, struct am_packet *p)
{
	switch (p->kind & 0x7f) {
	case AM_MEMORY:
	case AM_MEMORY_HPAM:
		p->args[1] = (uintptr_t)landing;
		p->args[3] = fuzz_u16(f) % (LANDING - PAGE);
		break;
	case AM_GET:
		p->args[0] = (uintptr_t)landing;
		break;
	}
}

static void arrive(struct fuzz *f)
{
	uint8_t how = fuzz_u8(f);
	uint32_t index = fuzz_below(f, 2 * PROCS * DEPTH + 2);
	uint32_t reply = index >= PROCS * DEPTH;
	uint32_t source = (index - (reply ? PROCS * DEPTH : 0)) >> 2 & 3;
	uint32_t instance = index & (DEPTH - 1), ran_before = ran, i;
	unsigned long damaged = am->stats.damaged;
	/* Sealed for the other direction, as if it had come to the wrong buffer. */
	bool other_way = (how & 0xe0) == 0x80;
	const struct am_send *send;
	struct am_packet p = { 0 };
	struct hamlyn_nq_entry entry = { .index = index };
	unsigned char data[PAGE] = { 0 };
	unsigned char *to;
	size_t from, length;

	source = source < PROCS ? source : 0;
	send = reply ? &am->peers[source].request[instance] :
		       &am->peers[source].reply[instance];
	p.source = how & 1 ? fuzz_u8(f) : (uint16_t)source;
	p.instance = how & 2 ? fuzz_u8(f) : (uint8_t)instance;
	p.seq = how & 4 ? fuzz_u32(f) : reply ? send->seq : send->seq + 1;
	p.kind = fuzz_below(f, AM_KINDS + 1) | (how & 8 ? AM_SUMMED : 0);
	p.length = how & 16 ? (uint32_t)fuzz_number(f, PAGE) : 0;
	p.handler = name_for(f, p.kind);
	for (i = 0; i < AM_WORDS; i++)
		p.args[i] = fuzz_number(f, PAGE);
	aim(f, &p);
	entry.length = how & 32 ? (uint32_t)fuzz_number(f, am->stride) :
		       AM_HEADER + ((p.kind & 0x7f) == AM_ACK ? 0 : p.length);
	length = entry.length - AM_HEADER < PAGE ? entry.length - AM_HEADER : 0;
	fuzz_bytes(f, data, length < 8 ? length : 8);
	if (how & 8 && !(how & 64))
		p.args[4] = am_data_sum(data, (uint32_t)length);
	if (how < 0xf8)
		p.check = am_header_sum(&p, SELF, reply != other_way);
	/* It may be announced as another one than it is. */
	if (index < 2 * PROCS * DEPTH && entry.length >= AM_HEADER &&
	    entry.length <= am->stride) {
		to = am->in + (entry.length == AM_HEADER ? (size_t)index * AM_STRIDE :
			       am->long_base + (size_t)index * am->stride);
		memcpy(to, &p, sizeof(p));
		memcpy(to + AM_HEADER, data, length);
	}
	if (how == 0xff) {
		entry.flags = HAMLYN_NQE_PEER_GONE;
		entry.data = fuzz_number(f, PROCS);
	}
	MUST(am_arrive(am, &entry) <= 1);
	MUST(am->context == AM_MAIN && HPAM_reply_dest == -1 && !am->defer);
	MUST(!am->reliable || !other_way ||
	     (ran == ran_before && am->stats.damaged == damaged + 1));
	/* A message calls one handler; what it completes, one more. */
	MUST(ran - ran_before <= 2);
	for (i = 0; i < 2 * PROCS * DEPTH; i++)
		MUST(am->in_state[i] == AM_FREE);
	from = p.args[3];
	if ((p.kind & 0x7f) != AM_MEMORY && (p.kind & 0x7f) != AM_MEMORY_HPAM)
		from = LANDING;
	for (i = 0; i < LANDING; i++)
		MUST(landing[i] == GUARD || (i >= from && i < from + p.length));
	memset(landing, GUARD, sizeof(landing));
}

/* ---- and what we ask for ------------------------------------------------- */

static uint32_t free_requests(int dest)
{
	uint32_t i, n = 0;

	for (i = 0; i < DEPTH; i++)
		n += am->peers[dest].request[i].state == AM_FREE;
	return n;
}

static void request(struct fuzz *f)
{
	static unsigned char here[PAGE], got[2 * PAGE];
	uint8_t how = fuzz_u8(f);
	int dest = how & 1 ? 0 : 2;

	/* None waits for an answer that does not come. */
	if (free_requests(dest) < 3 || am->peers[dest].lost)
		return;
	switch (how >> 1 & 3) {
	case 0:
		am_request_0(dest, end_of_reply);
		break;
	case 1:
		am_request(dest, medium, here, fuzz_u8(f), 1, 2);
		break;
	case 2:
		am_get(dest, landing, got, 1 + fuzz_u16(f) % (2 * PAGE), memory, NULL);
		break;
	default:
		am_store(dest, here, landing, fuzz_u8(f), memory, NULL);
	}
}

/* Once in a while all that is under way is older than it may be. */
static void age(struct fuzz *f)
{
	uint32_t i, k;

	am->timeout = fuzz_u8(f) & 1 ? 1 : AGE;
	for (i = 0; i < 4; i++)
		am_serve(am);
	am->timeout = AGE;
	for (i = 0; i < PROCS; i++)
		for (k = 0; k < DEPTH; k++)
			MUST(am->peers[i].request[k].state < AM_STATES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	int n;

	make(&f);
	for (n = 0; f.left && n < STEPS; n++) {
		uint8_t what = fuzz_u8(&f);

		if (what < 0x30)
			request(&f);
		else if (what < 0x34)
			age(&f);
		else
			arrive(&f);
	}
	end();
	return 0;
}
