// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames between hosts by brute force: a thousand times as many as a fuzzer tries, but blindly.
 *
 * Each begins as one that is right, of any type, and then has up to four bytes changed, or is cut
 * short. One that was not changed is accepted and comes back as it was; what is accepted
 * packs to the same bytes. Frames end where memory ends, and so do the bytes that are packed.
 */
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "nic.h"
#include "wire.c"

#include "fuzz_wire.h"

#define PACKET	HAMLYN_MIN_PACKET

static uint64_t state;

/* xorshift64* */
static inline uint64_t next(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dULL;
}

/* The end of memory that may be touched. */
static u8 *wall(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	u8 *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	MUST(!mprotect(p + page, page, PROT_NONE));
	return p + page;
}

static u32 make_data(struct hml_wire_tx *tx, u8 *to, uint64_t r)
{
	const struct hml_wire_origin origin = { (u32)next(), (u32)next() };
	const struct hamlyn_packet h = {
		.version = HAMLYN_PACKET_VERSION,
		.flags = r & HAMLYN_PACKET_FLAGS,
		.meta_length = r & 0x100 ? (r >> 16) % (HAMLYN_MAX_METADATA + 1) : 0,
		.length = (r >> 32) % (PACKET + 1),
		.slot = (u32)next(),
		.meta_index = (u32)(r >> 24),
		.key = next(),
		.offset = next(),
		.word = next(),
		.delta = (u32)(r >> 20),
		.ticket_key = next(),
	};
	static const u8 meta[HAMLYN_MAX_METADATA] = "metadata";

	MUST(hml_wire_data_bytes(&h) <= HML_WIRE_MOST_HEADER);
	return hml_wire_pack_data(tx, to, &h, meta, &origin);
}

static u32 make_call(struct hml_wire_tx *tx, u8 *to, uint64_t r)
{
	static const u8 said[HAMLYN_MAX_CALL] = "what is said";
	const struct hml_wire_call call = {
		.id = (u32)r,
		.user = (u32)next(),
		.share = next(),
		.name_length = 1 + (r >> 16) % 16,
		.length = r & 0x100 ? (r >> 32) % (HAMLYN_MAX_CALL + 1) : 0,
		.name = "a.name.of.any.length",
		.body = said,
	};

	return hml_wire_pack_call(tx, to, &call);
}

static u32 make_answer(struct hml_wire_tx *tx, u8 *to, uint64_t r)
{
	static const u8 said[HAMLYN_MAX_CALL] = "what is said";
	const u32 status = r & 0x100 ? 0 : r % HML_WIRE_ANSWERS;
	const struct hml_wire_answer answer = {
		.id = (u32)r,
		.status = status,
		.user = status ? 0 : (u32)next(),
		.length = status ? 0 : (r >> 32) % (HAMLYN_MAX_CALL + 1),
		.body = said,
	};

	return hml_wire_pack_answer(tx, to, &answer);
}

static u32 make(u8 *to, uint64_t r)
{
	struct hml_wire_tx tx = { (u32)next(), (u32)r };
	struct hml_wire_hello hello;
	struct hml_wire_watch watch;

	switch (r >> 60) {
	case 0:
		hello = (struct hml_wire_hello) {
			.least = r, .greatest = r >> 8, .host = (u32)next(),
			.packet_size = (u32)next(), .features = (u32)next(),
			.incarnation = next(),	/* never 0 */
		};
		return hml_wire_pack_hello(&tx, to, &hello);
	case 1:
		return hml_wire_pack_ping(&tx, to, next());
	case 2:
		return hml_wire_pack_pong(&tx, to, next());
	case 3:
		watch = (struct hml_wire_watch) {
			.key = next(), .id = (u32)r, .flags = r & WATCH_FLAGS,
			.slot = (u32)next(), .meta_index = (u32)r, .user = (u32)next(),
		};
		return hml_wire_pack_watch(&tx, to, &watch);
	case 4:
		return hml_wire_pack_unwatch(&tx, to, (u32)next());
	case 5:
		return hml_wire_pack_gone(&tx, to, (u32)next(), r & 1);
	case 6:
		return hml_wire_pack_bye(&tx, to, (u32)next() % HML_WIRE_VERDICTS);
	case 7:
		return hml_wire_pack_cancel(&tx, to, (u32)next());
	case 8:
		return make_call(&tx, to, r);
	case 9:
		return make_answer(&tx, to, r);
	default:
		return make_data(&tx, to, r);
	}
}

/* Up to four bytes: mostly those that say something about the frame's form. */
static void damage(u8 *frame, u32 n, uint64_t r)
{
	u32 changes = r & 3;

	do {
		u32 range = r & 4 ? n : 28;
		u32 at = (u32)((r >> 16 & 0xffff) * (range < n ? range : n) >> 16);

		frame[at] = r & 8 ? (u8)(r >> 8) : frame[at] ^ (u8)(1 << (r >> 40 & 7));
		r = next();
	} while (changes--);
}

/* Return: it was accepted. */
static bool look(const u8 *frame, u32 have, u8 *out_end)
{
	struct hml_wire_frame f;
	enum hml_wire_verdict v = hml_wire_parse(frame, have, PACKET, &f);
	u8 *again;
	u32 n;

	MUST((v == HML_WIRE_SHORT) == (have < HML_WIRE_FRAME_BYTES));
	if (v)
		return false;
	wire_must_fit(&f, PACKET);
	if (HML_WIRE_FRAME_BYTES + f.header_bytes > have)
		return false;
	again = out_end - HML_WIRE_FRAME_BYTES - f.header_bytes;
	n = wire_again(frame + HML_WIRE_FRAME_BYTES, &f, again);
	if (!n)
		return false;
	MUST(n == HML_WIRE_FRAME_BYTES + f.header_bytes && !memcmp(again, frame, n));
	return true;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	uint64_t frames, i, accepted = 0, whole = 0;
	u8 *in_end = wall(), *out_end = wall();
	u8 made[HML_WIRE_MOST_CONTROL];
	double begun = seconds();

	frames = argc == 3 ? strtoull(argv[1], NULL, 0) : 0;
	if (!frames) {
		fprintf(stderr, "Usage: %s FRAMES SEED\n", argv[0]);
		return 2;
	}
	state = strtoull(argv[2], NULL, 0) * 0x9e3779b97f4a7c15ULL | 1;
	for (i = 0; i < frames; i++) {
		uint64_t r = next();
		u32 n = make(made, r), have = n;
		bool good, touched = i & 7;

		if (touched)
			damage(made, n, next());
		if ((i & 31) == 1)
			have = (u32)(next() >> 32) % (n + 1);
		memcpy(in_end - have, made, have);
		good = look(in_end - have, have, out_end);
		MUST(good || touched);
		whole += !touched;
		accepted += good;
	}
	printf("%llu frames, %llu of them not changed, %llu accepted, %.1f million a second\n",
	       (unsigned long long)frames, (unsigned long long)whole,
	       (unsigned long long)accepted, frames / (seconds() - begun) / 1e6);
	return 0;
}
