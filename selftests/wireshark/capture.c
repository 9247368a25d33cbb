// SPDX-License-Identifier: GPL-2.0-only
/*
 * A capture of connections between two hosts, made by the code that packs frames, with what the
 * code that reads them says of each: the dissector must say the same.
 *
 *	capture FILE CONNECTIONS SEED
 *
 * It prints "value FIELD VALUE" for what the good connections say, "refused STREAM VERDICT" for
 * those that a receiver closes, and "text VERDICT TEXT".
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

#define PACKET		4096
#define WIRE_PORT	927
#define OTHER_PORT	7500
#define FIRST_PORT	600	/* of clients; below are some that Wireshark knows */
#define MOST_FRAMES	64
#define MOST_BYTES	(64 * 1024)

/* One side: what it says, and where its frames begin. */
struct side {
	struct hml_wire_tx tx;
	struct hml_wire_hello hello;
	u8 bytes[MOST_BYTES];
	u32 have;
	u32 begin[MOST_FRAMES];
	u32 frames;
	u32 said;		/* in the capture so far */
};

static FILE *out;
static u32 streams;
static u64 seed;
static struct side client, server;
static struct hml_wire_rx rx;

static u64 rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void put16(u8 *p, u32 v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static void put32(u8 *p, u32 v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

/* ---- the capture: IPv4 and TCP, no link layer ---- */

static void put(const void *bytes, size_t n)
{
	if (n && fwrite(bytes, n, 1, out) != 1)
		die("write");
}

static void begin_capture(void)
{
	const u32 header[6] = { 0xa1b2c3d4, 4 << 16 | 2, 0, 0, 1 << 16, 101 };

	put(header, sizeof(header));
}

#define SYN	0x02
#define PUSH	0x08
#define ACK	0x10

static void put_segment(bool by_client, u16 port, u32 flags, const u8 *bytes, u32 n)
{
	static u32 time;
	struct side *own = by_client ? &client : &server;
	struct side *other = by_client ? &server : &client;
	u16 own_port = by_client ? FIRST_PORT + streams % 400 : port;
	u16 other_port = by_client ? port : FIRST_PORT + streams % 400;
	const u32 record[4] = { 1 + time / 1000000, time % 1000000, 40 + n, 40 + n };
	u8 h[40] = { 0x45 };

	time += 100;
	put16(h + 2, 40 + n);
	h[8] = 64;
	h[9] = 6;
	put32(h + 12, 0x0a4d0000 | (streams / 400) << 8 | (by_client ? 1 : 2));
	put32(h + 16, 0x0a4d0000 | (streams / 400) << 8 | (by_client ? 2 : 1));
	put16(h + 20, own_port);
	put16(h + 22, other_port);
	put32(h + 24, own->said);
	put32(h + 28, flags & ACK ? other->said : 0);
	h[32] = 0x50;
	h[33] = flags;
	put16(h + 34, 0xffff);
	put(record, sizeof(record));
	put(h, sizeof(h));
	put(bytes, n);
	own->said += n + (flags & SYN ? 1 : 0);
}

static void put_bytes(bool by_client, u16 port, u32 from, u32 to, u32 segment)
{
	const struct side *own = by_client ? &client : &server;
	u32 n;

	for (; from < to; from += n) {
		n = to - from < segment ? to - from : segment;
		put_segment(by_client, port, ACK | PUSH, own->bytes + from, n);
	}
}

/* First each side's HELLO, then what the client says, then what the server does. */
static void put_connection(u16 port, u32 segment)
{
	client.said = 1000;
	server.said = 2000;
	put_segment(true, port, SYN, NULL, 0);
	put_segment(false, port, SYN | ACK, NULL, 0);
	put_segment(true, port, ACK, NULL, 0);
	put_bytes(false, port, 0, server.begin[1], segment);
	put_bytes(true, port, 0, client.have, segment);
	put_bytes(false, port, server.begin[1], server.have, segment);
	streams++;
}

/* ---- what they say ---- */

static void add(struct side *s, u32 bytes)
{
	s->begin[s->frames++] = s->have;
	s->have += bytes;
	s->begin[s->frames] = s->have;
}

#define SAY(s, pack, ...) \
	add(s, hml_wire_pack_##pack(&(s)->tx, (s)->bytes + (s)->have, __VA_ARGS__))

static void say_hello(struct side *s, u32 host)
{
	u32 i;

	s->have = 0;
	s->frames = 0;
	s->tx.epoch = rnd();
	hml_wire_tx_begin(&s->tx);
	s->hello = (struct hml_wire_hello) {
		.least = 1,
		.greatest = 1,
		.host = host,
		.packet_size = PACKET,
		.incarnation = rnd() | 1,
	};
	for (i = 0; i < HAMLYN_FABRIC_ID_BYTES; i++)
		s->hello.fabric_id[i] = 0xf0 + i;
	SAY(s, hello, &s->hello);
}

static struct hamlyn_packet some_packet(u32 flags, u32 meta_length, u32 length)
{
	return (struct hamlyn_packet) {
		.version = HAMLYN_PACKET_VERSION,
		.flags = flags,
		.meta_length = meta_length,
		.length = length,
		.slot = 0x11121314,
		.meta_index = 0x21222324,
		.key = 0x3132333435363738,
		.offset = 0x4142434445464748,
		.word = 0x5152535455565758,
		.delta = 0x81828384,
		.ticket_key = 0x9192939495969798,
	};
}

static void say_packet(struct side *s, u32 flags, u32 meta_length, u32 length)
{
	static const struct hml_wire_origin origin = { .sender = 0x61626364, .user = 0x71727374 };
	const struct hamlyn_packet h = some_packet(flags, meta_length, length);
	u8 meta[HAMLYN_MAX_METADATA];
	u32 bytes;

	memset(meta, 0xa1, sizeof(meta));
	bytes = hml_wire_pack_data(&s->tx, s->bytes + s->have, &h, meta, &origin);
	memset(s->bytes + s->have + bytes, 0xd7, length);
	add(s, bytes + length);
}

static const struct hml_wire_watch a_watch = {
	.key = 0x3132333435363738,
	.id = 0x01020304,
	.flags = HAMLYN_WATCH_TICKET | HAMLYN_WATCH_CLAIM,
	.slot = 0x11121314,
	.meta_index = 0x21222324,
	.user = 0x71727374,
};

static const struct hml_wire_call a_call = {
	.id = 0x0e0f1011,
	.user = 0x71727374,
	.share = 0x8182838485868788,
	.name_length = 8,
	.length = 4,
	.name = "the.name",
	.body = (const u8 *)"\xc1\xc2\xc3\xc4",
};

static const struct hml_wire_answer an_answer = {
	.id = 0x0e0f1011,
	.user = 0x75767778,
	.length = 3,
	.body = (const u8 *)"\xd1\xd2\xd3",
};

static const struct hml_wire_answer no_answer = { .id = 0x12131415, .status = HML_WIRE_FULL };

static void say_hellos(void)
{
	say_hello(&client, 0x01020304);
	say_hello(&server, 0x05060708);
}

static void say_all(void)
{
	u32 flags;

	say_hellos();
	for (flags = 0; flags <= HAMLYN_PACKET_FLAGS; flags++)
		say_packet(&client, flags, flags % 2 ? 0 : flags * 2 % 60, flags * 37);
	say_packet(&client, HAMLYN_PACKET_FLAGS, HAMLYN_MAX_METADATA, PACKET);
	SAY(&client, ping, 0xa0a1a2a3a4a5a6a7);
	SAY(&server, pong, 0xb0b1b2b3b4b5b6b7);
	SAY(&client, watch, &a_watch);
	SAY(&client, unwatch, 0x0a0b0c0d);
	SAY(&server, gone, 0x0c0d0e0f, HML_WIRE_WATCH_CLAIMED);
	SAY(&client, call, &a_call);
	SAY(&server, answer, &an_answer);
	SAY(&server, answer, &no_answer);
	SAY(&client, cancel, 0x16171819);
	SAY(&client, bye, HML_WIRE_SILENT);
	SAY(&server, bye, HML_WIRE_OK);
}

/* ---- what a receiver says of it, as driver/fabric/inbox.c ---- */

static u32 take_hello(const u8 *body, const struct hml_wire_frame *f)
{
	struct hml_wire_hello theirs;
	u32 verdict = hml_wire_unpack_hello(body, f, &theirs);

	if (!verdict)
		verdict = hml_wire_check_hello(&theirs, &server.hello, theirs.host);
	return verdict ?: hml_wire_rx_hello(&rx, f, &theirs);
}

static u32 take_body(const u8 *body, const struct hml_wire_frame *f)
{
	struct hml_wire_origin origin;
	struct hml_wire_answer answer;
	struct hml_wire_watch watch;
	struct hml_wire_call call;
	struct hamlyn_packet h;
	const void *meta;
	u32 id, why;
	u64 stamp;

	switch (f->type) {
	case HML_WIRE_DATA:
		return hml_wire_unpack_data(body, f, &h, &meta, &origin);
	case HML_WIRE_WATCH:
		return hml_wire_unpack_watch(body, f, &watch);
	case HML_WIRE_UNWATCH:
		return hml_wire_unpack_unwatch(body, f, &id);
	case HML_WIRE_GONE:
		return hml_wire_unpack_gone(body, f, &id, &why);
	case HML_WIRE_CALL:
		return hml_wire_unpack_call(body, f, &call);
	case HML_WIRE_ANSWER:
		return hml_wire_unpack_answer(body, f, &answer);
	case HML_WIRE_CANCEL:
		return hml_wire_unpack_cancel(body, f, &id);
	default:
		return hml_wire_unpack_ping(body, f, &stamp);
	}
}

static u32 take_frame(const u8 *body, const struct hml_wire_frame *f)
{
	u32 verdict;

	if (f->type == HML_WIRE_HELLO)
		return rx.open ? HML_WIRE_BAD_ORDER : take_hello(body, f);
	if (f->type == HML_WIRE_BYE)
		return hml_wire_unpack_bye(body, f, &verdict);
	return hml_wire_rx_take(&rx, f) ?: take_body(body, f);
}

static u32 verdict_on_client(void)
{
	struct hml_wire_frame f;
	u32 at, verdict = HML_WIRE_OK;

	hml_wire_rx_begin(&rx);
	for (at = 0; !verdict; at += f.total) {
		verdict = hml_wire_parse(client.bytes + at, client.have - at, PACKET, &f);
		if (verdict == HML_WIRE_SHORT || (!verdict && f.total > client.have - at))
			return HML_WIRE_OK;
		verdict = verdict ?: take_frame(client.bytes + at + HML_WIRE_FRAME_BYTES, &f);
	}
	return verdict;
}

/* ---- connections that are refused ---- */

static void judge(u16 port, u32 segment)
{
	u32 verdict = verdict_on_client();

	if (verdict)
		printf("refused %u %u\n", streams, verdict);
	put_connection(port, segment);
}

#define DAMAGED	12	/* frames of it */

/* Byte @at of frame @n is changed: of a connection that says all but many packets. */
static void damaged(u32 n, u32 at, u8 mask)
{
	say_hellos();
	SAY(&client, ping, 1);
	say_packet(&client, HAMLYN_PACKET_SINGLE, 2, 8);
	SAY(&client, watch, &a_watch);
	SAY(&client, unwatch, 7);
	SAY(&client, gone, 7, HML_WIRE_WATCH_GONE);
	SAY(&client, call, &a_call);
	SAY(&client, answer, &an_answer);
	SAY(&client, answer, &no_answer);
	SAY(&client, cancel, 7);
	SAY(&client, bye, HML_WIRE_OK);
	SAY(&client, ping, 2);
	/* To the dissector another known frame would be the first of a capture that begins late. */
	if (!n && at == 1)
		mask |= 0x80;
	client.bytes[client.begin[n] + at] ^= mask;
	judge(WIRE_PORT, 1460);
}

/* Each byte of each frame, and each bit of some. */
static void put_damaged(void)
{
	u32 n, at, bytes;

	say_hellos();
	for (n = 0; n < DAMAGED; n++) {
		damaged(n, 0, 0);
		bytes = client.begin[n + 1] - client.begin[n];
		for (at = 0; at < bytes; at++)
			damaged(n, at, 1 << rnd() % 8);
	}
}

static void put_lengths(void)
{
	say_hellos();
	say_packet(&client, 0, 0, PACKET + 1);
	judge(WIRE_PORT, 1460);
	say_hellos();
	say_packet(&client, HAMLYN_PACKET_FAST, 4, 0);
	client.bytes[client.begin[1] + HML_WIRE_FRAME_BYTES + 1] = 0;
	judge(WIRE_PORT, 1460);
}

static void judge_call(const char *name, u32 name_length, u32 length)
{
	static const u8 said[HAMLYN_MAX_CALL + 1];
	const struct hml_wire_call call = {
		.name = name,
		.name_length = name_length,
		.body = said,
		.length = length,
	};

	say_hellos();
	SAY(&client, call, &call);
	judge(WIRE_PORT, 1460);
}

static void judge_answer(u32 status, u32 user, u32 length)
{
	const struct hml_wire_answer answer = {
		.status = status,
		.user = user,
		.length = length,
		.body = (const u8 *)"said",
	};

	say_hellos();
	SAY(&client, answer, &answer);
	judge(WIRE_PORT, 1460);
}

/* Names that cannot be, and what contradicts itself: one byte would not do it. */
static void put_calls(void)
{
	static char name[HAMLYN_MAX_NAME + 1];

	memset(name, 'n', sizeof(name));
	judge_call("two words", 9, 0);
	judge_call("a/b", 3, 0);
	judge_call("caf\303\251", 5, 1);
	judge_call("\177", 1, 1);
	judge_call(name, 0, 1);
	judge_call(name, HAMLYN_MAX_NAME, HAMLYN_MAX_CALL);
	judge_call(name, HAMLYN_MAX_NAME + 1, 0);
	judge_call(name, 1, HAMLYN_MAX_CALL + 1);
	judge_answer(HML_WIRE_ANSWERED, 7, 4);
	judge_answer(HML_WIRE_NO_NAME, 0, 1);
	judge_answer(HML_WIRE_HUNG_UP, 7, 0);
	judge_answer(HML_WIRE_ANSWERS, 0, 0);
}

static void put_hellos(void)
{
	struct hml_wire_tx tx;
	struct hml_wire_hello hello;

	/* Twice */
	say_hellos();
	SAY(&client, hello, &client.hello);
	judge(WIRE_PORT, 1460);
	/* The same connection again, as if it had been recorded */
	say_hellos();
	tx = client.tx;
	hello = client.hello;
	judge(WIRE_PORT, 1460);
	say_hellos();
	client.have = 0;
	client.frames = 0;
	client.tx = (struct hml_wire_tx) { .epoch = tx.epoch };
	SAY(&client, hello, &hello);
	judge(WIRE_PORT, 1460);
	memset(&rx, 0, sizeof(rx));
	/* Another host with the same id */
	say_hellos();
	hello = client.hello;
	hello.host = server.hello.host;
	client.have = 0;
	client.frames = 0;
	client.tx.sequence = 0;
	SAY(&client, hello, &hello);
	judge(WIRE_PORT, 1460);
}

static void put_random(u32 n)
{
	while (n--)
		damaged(rnd() % DAMAGED, rnd() % HML_WIRE_FRAME_BYTES, rnd() % 255 + 1);
}

/* ---- what the good ones say ---- */

static void tell(const char *field, const char *format, ...)
{
	va_list args;

	printf("value hamlyn.%s ", field);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* Those that are the same in each frame: where a member lies is seen by its value. */
static void print_values(void)
{
	tell("hello.magic", "0x48616d6c796e2121");
	tell("hello.least", "1");
	tell("hello.greatest", "1");
	tell("hello.flags", "0x0000");
	tell("hello.host", "16909060");
	tell("hello.host", "84281096");
	tell("hello.fabric_id", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
	tell("hello.packet_size", "%u", PACKET);
	tell("hello.features", "0x00000000");
	tell("data.slot", "%u", 0x11121314);
	tell("data.meta_index", "0x21222324");
	tell("data.delta", "%u", 0x81828384);
	tell("data.key", "0x3132333435363738");
	tell("data.offset", "4702394921427289928");
	tell("data.sender", "%u", 0x61626364);
	tell("data.user", "%u", 0x71727374);
	tell("data.ticket_key", "0x9192939495969798");
	tell("data.word", "0x5152535455565758");
	tell("ping.stamp", "0xa0a1a2a3a4a5a6a7");
	tell("pong.stamp", "0xb0b1b2b3b4b5b6b7");
	tell("watch.id", "16909060");
	tell("watch.flags", "0x00000003");
	tell("watch.flags.ticket", "1");
	tell("watch.flags.claim", "1");
	tell("watch.slot", "%u", 0x11121314);
	tell("watch.meta_index", "0x21222324");
	tell("watch.key", "0x3132333435363738");
	tell("watch.user", "%u", 0x71727374);
	tell("watch.reserved", "0x00000000");
	tell("unwatch.id", "168496141");
	tell("unwatch.why", "0x00000000");
	tell("gone.id", "202182159");
	tell("gone.why", "%u", HML_WIRE_WATCH_CLAIMED);
	tell("call.id", "%u", 0x0e0f1011);
	tell("call.user", "%u", 0x71727374);
	tell("call.name_length", "8");
	tell("call.reserved", "0x0000");
	tell("call.share", "0x8182838485868788");
	tell("call.name", "the.name");
	tell("call.said", "c1c2c3c4");
	tell("answer.id", "%u", 0x0e0f1011);
	tell("answer.id", "%u", 0x12131415);
	tell("answer.status", "%u", HML_WIRE_ANSWERED);
	tell("answer.status", "%u", HML_WIRE_FULL);
	tell("answer.user", "%u", 0x75767778);
	tell("answer.user", "0");
	tell("answer.said", "d1d2d3");
	tell("cancel.id", "%u", 0x16171819);
	tell("cancel.why", "0x00000000");
	tell("bye.verdict", "%u", HML_WIRE_SILENT);
	tell("bye.verdict", "%u", HML_WIRE_OK);
	tell("bye.reserved", "0x00000000");
}

int main(int argc, char **argv)
{
	u32 i;

	if (argc != 4) {
		fprintf(stderr, "usage: capture FILE CONNECTIONS SEED\n");
		return 2;
	}
	seed = strtoull(argv[3], NULL, 0) | 1;
	out = fopen(argv[1], "wb");
	if (!out)
		die(argv[1]);
	begin_capture();
	/* The test knows that the first four are those that say all. */
	for (i = 0; i < 4; i++) {
		static const u32 segments[] = { 1460, 1460, 100, 7 };

		say_all();
		judge(i ? WIRE_PORT : OTHER_PORT, segments[i]);
	}
	put_lengths();
	put_calls();
	put_hellos();
	put_damaged();
	put_random(strtoul(argv[2], NULL, 0));
	print_values();
	for (i = 0; i < HML_WIRE_VERDICTS; i++)
		printf("text %u %s\n", i, hml_wire_text(i));
	printf("types %u\nstreams %u\n", HML_WIRE_TYPES - 1, streams);
	if (fclose(out))
		die(argv[1]);
	return 0;
}
