// SPDX-License-Identifier: GPL-2.0-only
/*
 * A bridge whose peer says anything: frames in their order, with bodies of the input's, so that
 * packets, watches, names and calls are reached and not only the parser; some are no frames at all.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "bridge.h"

#define MOST_FRAMES	64

static struct bridge *b;
static struct h_slot *slot;

static void make_slot(void)
{
	struct h_slot_attr attr = { .length = 4096, .meta_count = 4 };
	struct h_area *meta;

	MUST(!h_area_alloc(b->dev, 4096, &attr.area) && !h_area_alloc(b->dev, 4096, &meta));
	MUST(!h_nq_create(b->dev, 64, &attr.nq));
	attr.meta_area = meta;
	MUST(!h_slot_create(b->dev, &attr, &slot));
}

/* The segment's file is there until then. */
static void end_bridge(void)
{
	atomic_store(&b->stop, true);
	watcher_stop(b);
	sender_stop(b);
	h_close(b->dev);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char device[64];

	(void)argc;
	(void)argv;
	b = calloc(1, sizeof(*b));
	MUST(b);
	snprintf(device, sizeof(device), "shm:fuzz-bridge-%d,size=8M,guesses=0", getpid());
	b->set = (struct settings) {
		.device = device, .host = 1, .quiet = true, .dead_ms = 1000, .stall_ms = 1000,
		.fabric = { 1 }, .peers = 1, .peer[0].host = 2,
	};
	MUST(!segment_join(b) && !life_init(b) && !names_init(b));
	MUST(!watcher_start(b) && !sender_start(b));
	make_slot();
	atexit(end_bridge);
	return 0;
}

static void put32(u8 *to, u32 value)
{
	to[0] = (u8)(value >> 24);
	to[1] = (u8)(value >> 16);
	to[2] = (u8)(value >> 8);
	to[3] = (u8)value;
}

/* Bodies as long as they can be, with a payload; what is at the key's place may be right. */
static u32 frame(struct fuzz *f, u8 *bytes, u32 sequence)
{
	u32 type = fuzz_u8(f) % 12, body = fuzz_u8(f), payload = 0, i;
	struct h_ticket ticket;

	if (type == HML_WIRE_DATA)
		payload = fuzz_below(f, 64);
	bytes[0] = 1;
	bytes[1] = (u8)type;
	bytes[2] = 0;
	bytes[3] = (u8)body;
	put32(bytes + 4, payload);
	put32(bytes + 8, 1);
	put32(bytes + 12, sequence);
	for (i = 0; i < body + payload; i++)
		bytes[16 + i] = fuzz_u8(f);
	if (fuzz_u8(f) & 1 && type == HML_WIRE_DATA && body >= 40) {
		h_slot_ticket(slot, 0, 0, 0, &ticket);
		put32(bytes + 20, ticket.slot);
		put32(bytes + 32, (u32)(ticket.key >> 32));
		put32(bytes + 36, (u32)ticket.key);
	}
	if (fuzz_u8(f) == 0xff)
		bytes[fuzz_below(f, 16)] ^= fuzz_u8(f);
	return 16 + body + payload;
}

static void say_hello_to(int fd)
{
	struct hml_wire_hello hello;
	struct hml_wire_tx tx = { 0 };
	u8 bytes[HML_WIRE_MOST_CONTROL];
	u32 n;

	life_hello(b, &hello);
	hello.host = 2;
	hello.incarnation = 1;
	n = hml_wire_pack_hello(&tx, bytes, &hello);
	/* The epoch, which all that follows has. */
	put32(bytes + 8, 1);
	MUST(send(fd, bytes, n, 0) == (ssize_t)n);
}

static void connection(int ours, int theirs, struct fuzz *f)
{
	struct peer *p = &b->peers[0];
	struct hml_wire_hello hello;
	u8 bytes[16 + 256 + 64];
	u32 i, verdict = 0;

	life_hello(b, &hello);
	p->fd = ours;
	p->state = PEER_GREETING;
	memset(&p->in.rx, 0, sizeof(p->in.rx));
	inbox_begin(p);
	outbox_begin(p, ours, &hello);
	say_hello_to(theirs);
	MUST(inbox_read(p, &verdict) && p->state == PEER_UP);
	for (i = 0; i < MOST_FRAMES && f->left; i++) {
		if (send(theirs, bytes, frame(f, bytes, i + 1), MSG_DONTWAIT) < 0)
			break;
		if (!inbox_read(p, &verdict))
			break;
	}
	peer_down(p, SHM_PEER_LOST);
	names_lost(p);
	outbox_end(p, 0);
	p->state = PEER_IDLE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	int fd[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	connection(fd[0], fd[1], &f);
	close(fd[0]);
	close(fd[1]);
	MUST(!b->peers[0].waiting);
	return 0;
}
