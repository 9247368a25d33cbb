// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames between hosts: what lies where, what comes back of what was packed, and each reason
 * for which a frame is refused. All buffers are exactly as long as what they hold, so that a
 * sanitizer sees whoever reads on.
 */
#include "unit.h"

#include "wire.c"

#define PACKET	4096

static u8 *frame;		/* of exactly frame_bytes */
static u32 frame_bytes;
static u64 seed;

static int setup(void **state)
{
	(void)state;
	seed = unit_seed();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(frame);
	frame = NULL;
	return 0;
}

/* The frame is what was packed: no byte behind it was touched. */
static void set_frame(const u8 *packed, u32 bytes)
{
	free(frame);
	frame = unit_zalloc(bytes);
	frame_bytes = bytes;
	memcpy(frame, packed, bytes);
	assert_true(unit_all(packed + bytes, UNIT_GUARD, HML_WIRE_MOST_CONTROL - bytes));
}

#define PACK(function, tx, ...) do {					\
	u8 packed_[HML_WIRE_MOST_CONTROL];				\
									\
	memset(packed_, UNIT_GUARD, sizeof(packed_));			\
	set_frame(packed_, (function)(tx, packed_, __VA_ARGS__));	\
} while (0)

static const u8 *body(void)
{
	return frame + HML_WIRE_FRAME_BYTES;
}

static struct hml_wire_frame parsed(void)
{
	struct hml_wire_frame f;

	assert_int_equal(hml_wire_parse(frame, frame_bytes, PACKET, &f), HML_WIRE_OK);
	return f;
}

static enum hml_wire_verdict parse(u32 packet_size)
{
	struct hml_wire_frame f;

	return hml_wire_parse(frame, frame_bytes, packet_size, &f);
}

static struct hml_wire_tx some_tx(void)
{
	return (struct hml_wire_tx) { .epoch = 0xe1e2e3e4, .sequence = 0x51525354 };
}

static const struct hml_wire_origin origin = { .sender = 0x61626364, .user = 0x71727374 };

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
		.word = flags & HAMLYN_PACKET_FAST ? 0x5152535455565758 : 0,
		.delta = 0x81828384,
		.ticket_key = flags & HAMLYN_PACKET_TICKET ? 0x9192939495969798 : 0,
	};
}

static struct hml_wire_hello some_hello(void)
{
	struct hml_wire_hello hello = {
		.least = 1,
		.greatest = 3,
		.host = 0x01020304,
		.packet_size = PACKET,
		.features = 0x0a0b0c0d,
		.incarnation = 0x1112131415161718,
	};
	u32 i;

	for (i = 0; i < HAMLYN_FABRIC_ID_BYTES; i++)
		hello.fabric_id[i] = 0xf0 + i;
	return hello;
}

static struct hml_wire_watch some_watch(void)
{
	return (struct hml_wire_watch) {
		.key = 0x3132333435363738,
		.id = 0x01020304,
		.flags = HAMLYN_WATCH_TICKET | HAMLYN_WATCH_CLAIM,
		.slot = 0x11121314,
		.meta_index = 0x21222324,
		.user = 0x71727374,
	};
}

static void pack_data(const struct hamlyn_packet *h, const void *meta)
{
	struct hml_wire_tx tx = some_tx();

	assert_int_equal(hml_wire_data_bytes(h), HML_WIRE_FRAME_BYTES + 40 +
			 (h->flags & HAMLYN_PACKET_TICKET ? 8 : 0) +
			 (h->flags & HAMLYN_PACKET_FAST ? 8 : 0) + h->meta_length);
	PACK(hml_wire_pack_data, &tx, h, meta, &origin);
	assert_int_equal(frame_bytes, hml_wire_data_bytes(h));
}

static void pack_hello(const struct hml_wire_hello *hello)
{
	struct hml_wire_tx tx = some_tx();

	PACK(hml_wire_pack_hello, &tx, hello);
}

static void pack_watch(const struct hml_wire_watch *watch)
{
	struct hml_wire_tx tx = some_tx();

	PACK(hml_wire_pack_watch, &tx, watch);
}

static struct hml_wire_call some_call(void)
{
	return (struct hml_wire_call) {
		.id = 0x01020304,
		.user = 0x71727374,
		.share = 0x8182838485868788,
		.name_length = 4,
		.length = 3,
		.name = "name",
		.body = (const u8 *)"xyz",
	};
}

static struct hml_wire_answer some_answer(void)
{
	return (struct hml_wire_answer) {
		.id = 0x01020304,
		.user = 0x71727374,
		.length = 3,
		.body = (const u8 *)"xyz",
	};
}

static void pack_call(const struct hml_wire_call *call)
{
	struct hml_wire_tx tx = some_tx();

	PACK(hml_wire_pack_call, &tx, call);
}

static void pack_answer(const struct hml_wire_answer *answer)
{
	struct hml_wire_tx tx = some_tx();

	PACK(hml_wire_pack_answer, &tx, answer);
}

/* One frame of each type, without payload or anything optional. */
static void pack_type(u32 type)
{
	const struct hamlyn_packet h = some_packet(0, 0, 0);
	const struct hml_wire_hello hello = some_hello();
	const struct hml_wire_watch watch = some_watch();
	const struct hml_wire_call call = some_call();
	const struct hml_wire_answer answer = some_answer();
	struct hml_wire_tx tx = some_tx();

	switch (type) {
	case HML_WIRE_HELLO:
		pack_hello(&hello);
		break;
	case HML_WIRE_DATA:
		pack_data(&h, NULL);
		break;
	case HML_WIRE_PING:
		PACK(hml_wire_pack_ping, &tx, 0x0102030405060708);
		break;
	case HML_WIRE_PONG:
		PACK(hml_wire_pack_pong, &tx, 0x0102030405060708);
		break;
	case HML_WIRE_WATCH:
		pack_watch(&watch);
		break;
	case HML_WIRE_UNWATCH:
		PACK(hml_wire_pack_unwatch, &tx, 0x01020304);
		break;
	case HML_WIRE_GONE:
		PACK(hml_wire_pack_gone, &tx, 0x01020304, HML_WIRE_WATCH_CLAIMED);
		break;
	case HML_WIRE_CALL:
		pack_call(&call);
		break;
	case HML_WIRE_ANSWER:
		pack_answer(&answer);
		break;
	case HML_WIRE_CANCEL:
		PACK(hml_wire_pack_cancel, &tx, 0x01020304);
		break;
	default:
		PACK(hml_wire_pack_bye, &tx, HML_WIRE_SAME_HOST);
	}
}

static enum hml_wire_verdict unpack_data(void)
{
	struct hml_wire_origin who;
	struct hamlyn_packet h;
	const void *meta;
	const struct hml_wire_frame f = parsed();

	return hml_wire_unpack_data(body(), &f, &h, &meta, &who);
}

static enum hml_wire_verdict unpack_as(u32 as)
{
	const struct hml_wire_frame f = parsed();
	struct hml_wire_hello hello;
	struct hml_wire_answer answer;
	struct hml_wire_watch watch;
	struct hml_wire_call call;
	u32 id, why;
	u64 stamp;

	switch (as) {
	case HML_WIRE_HELLO:
		return hml_wire_unpack_hello(body(), &f, &hello);
	case HML_WIRE_DATA:
		return unpack_data();
	case HML_WIRE_PING:
	case HML_WIRE_PONG:
		return hml_wire_unpack_ping(body(), &f, &stamp);
	case HML_WIRE_WATCH:
		return hml_wire_unpack_watch(body(), &f, &watch);
	case HML_WIRE_UNWATCH:
		return hml_wire_unpack_unwatch(body(), &f, &id);
	case HML_WIRE_GONE:
		return hml_wire_unpack_gone(body(), &f, &id, &why);
	case HML_WIRE_CALL:
		return hml_wire_unpack_call(body(), &f, &call);
	case HML_WIRE_ANSWER:
		return hml_wire_unpack_answer(body(), &f, &answer);
	case HML_WIRE_CANCEL:
		return hml_wire_unpack_cancel(body(), &f, &id);
	default:
		return hml_wire_unpack_bye(body(), &f, &why);
	}
}

/* ---- what lies where ----------------------------------------------------- */

struct row {
	const char *structure;
	const char *member;	/* NULL: the structure itself */
	size_t place;		/* of a structure: its size */
	size_t bytes;
};

#define SIZE(s, n)	{ #s, NULL, n, sizeof(struct hml_wire_##s##_layout) },
#define OFFSET(s, m, n)	{ #s, #m, n, sizeof(((struct hml_wire_##s##_layout *)0)->m) },
static const struct row rows[] = {
	HML_WIRE_LAYOUT(SIZE, OFFSET)
};
#undef SIZE
#undef OFFSET

static void list_of_the_layout_leaves_out_no_byte(void **state)
{
	size_t size = 0, end = 0, i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!rows[i].member) {
			assert_int_equal(end, size);
			size = rows[i].place;
			end = 0;
			continue;
		}
		assert_string_equal(rows[i].structure, rows[i - 1].structure);
		assert_int_equal(rows[i].place, end);
		end += rows[i].bytes;
	}
	assert_int_equal(end, size);
}

static void numbers_of_the_format_are_fixed(void **state)
{
	(void)state;
	assert_int_equal(HML_WIRE_VERSION, 1);
	assert_int_equal(HML_WIRE_HELLO, 1);
	assert_int_equal(HML_WIRE_DATA, 2);
	assert_int_equal(HML_WIRE_PING, 3);
	assert_int_equal(HML_WIRE_PONG, 4);
	assert_int_equal(HML_WIRE_WATCH, 5);
	assert_int_equal(HML_WIRE_UNWATCH, 6);
	assert_int_equal(HML_WIRE_GONE, 7);
	assert_int_equal(HML_WIRE_BYE, 8);
	assert_int_equal(HML_WIRE_CALL, 9);
	assert_int_equal(HML_WIRE_ANSWER, 10);
	assert_int_equal(HML_WIRE_CANCEL, 11);
	assert_int_equal(HML_WIRE_TYPES, 12);
	assert_int_equal(HML_WIRE_NAMES, 1);
	assert_int_equal(HML_WIRE_NO_NAME, 1);
	assert_int_equal(HML_WIRE_FULL, 2);
	assert_int_equal(HML_WIRE_HUNG_UP, 3);
	assert_int_equal(HML_WIRE_ANSWERS, 4);
	assert_int_equal(HML_WIRE_NO_VERSION, 11);
	assert_int_equal(HML_WIRE_SAME_HOST, 13);
	assert_int_equal(HML_WIRE_STALLED, 19);
	assert_int_equal(HML_WIRE_VERDICTS, 20);
	assert_int_equal(HML_WIRE_MOST_HEADER, 132);
	assert_int_equal(HML_WIRE_MOST_CONTROL, 355);
}

#define ASSERT_BYTES(...) do {						\
	static const u8 bytes_[] = { __VA_ARGS__ };			\
									\
	assert_int_equal(frame_bytes, sizeof(bytes_));			\
	assert_memory_equal(frame, bytes_, sizeof(bytes_));		\
} while (0)

#define EPOCH_SEQUENCE	0xe1, 0xe2, 0xe3, 0xe4, 0x51, 0x52, 0x53, 0x54

static void packet_with_all_that_can_be_in_it_lies_as_documented(void **state)
{
	const u32 flags = HAMLYN_PACKET_SINGLE | HAMLYN_PACKET_FAST | HAMLYN_PACKET_TICKET;
	const struct hamlyn_packet h = some_packet(flags, 3, 0x0abc);

	(void)state;
	pack_data(&h, "xyz");
	ASSERT_BYTES(1, 2, 0, 59, 0, 0, 0x0a, 0xbc, EPOCH_SEQUENCE,
		     0, 0x13, 0, 3, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
		     0x81, 0x82, 0x83, 0x84, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
		     0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x61, 0x62, 0x63, 0x64,
		     0x71, 0x72, 0x73, 0x74, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98,
		     0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 'x', 'y', 'z');
}

static void plain_packet_has_nothing_behind_its_fixed_part(void **state)
{
	const struct hamlyn_packet h = some_packet(HAMLYN_PACKET_SINGLE, 0, 0);

	(void)state;
	pack_data(&h, NULL);
	ASSERT_BYTES(1, 2, 0, 40, 0, 0, 0, 0, EPOCH_SEQUENCE,
		     0, 1, 0, 0, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
		     0x81, 0x82, 0x83, 0x84, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
		     0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x61, 0x62, 0x63, 0x64,
		     0x71, 0x72, 0x73, 0x74);
}

static void hello_lies_as_documented(void **state)
{
	const struct hml_wire_hello hello = some_hello();

	(void)state;
	pack_hello(&hello);
	ASSERT_BYTES(1, 1, 0, 48, 0, 0, 0, 0, EPOCH_SEQUENCE,
		     'H', 'a', 'm', 'l', 'y', 'n', '!', '!', 1, 3, 0, 0, 1, 2, 3, 4,
		     0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7,
		     0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff,
		     0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
		     0, 0, PACKET >> 8, 0, 0x0a, 0x0b, 0x0c, 0x0d);
}

static void other_frames_lie_as_documented(void **state)
{
	(void)state;
	pack_type(HML_WIRE_PING);
	ASSERT_BYTES(1, 3, 0, 8, 0, 0, 0, 0, EPOCH_SEQUENCE, 1, 2, 3, 4, 5, 6, 7, 8);
	pack_type(HML_WIRE_PONG);
	ASSERT_BYTES(1, 4, 0, 8, 0, 0, 0, 0, EPOCH_SEQUENCE, 1, 2, 3, 4, 5, 6, 7, 8);
	pack_type(HML_WIRE_WATCH);
	ASSERT_BYTES(1, 5, 0, 32, 0, 0, 0, 0, EPOCH_SEQUENCE, 1, 2, 3, 4, 0, 0, 0, 3,
		     0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
		     0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
		     0x71, 0x72, 0x73, 0x74, 0, 0, 0, 0);
	pack_type(HML_WIRE_UNWATCH);
	ASSERT_BYTES(1, 6, 0, 8, 0, 0, 0, 0, EPOCH_SEQUENCE, 1, 2, 3, 4, 0, 0, 0, 0);
	pack_type(HML_WIRE_GONE);
	ASSERT_BYTES(1, 7, 0, 8, 0, 0, 0, 0, EPOCH_SEQUENCE, 1, 2, 3, 4, 0, 0, 0, 1);
	pack_type(HML_WIRE_BYE);
	ASSERT_BYTES(1, 8, 0, 8, 0, 0, 0, 0, EPOCH_SEQUENCE, 0, 0, 0, 13, 0, 0, 0, 0);
	pack_type(HML_WIRE_CALL);
	ASSERT_BYTES(1, 9, 0, 27, 0, 0, 0, 0, EPOCH_SEQUENCE, 1, 2, 3, 4,
		     0x71, 0x72, 0x73, 0x74, 0, 4, 0, 0,
		     0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88,
		     'n', 'a', 'm', 'e', 'x', 'y', 'z');
	pack_type(HML_WIRE_ANSWER);
	ASSERT_BYTES(1, 10, 0, 15, 0, 0, 0, 0, EPOCH_SEQUENCE, 1, 2, 3, 4, 0, 0, 0, 0,
		     0x71, 0x72, 0x73, 0x74, 'x', 'y', 'z');
	pack_type(HML_WIRE_CANCEL);
	ASSERT_BYTES(1, 11, 0, 8, 0, 0, 0, 0, EPOCH_SEQUENCE, 1, 2, 3, 4, 0, 0, 0, 0);
}

/* ---- what comes back ----------------------------------------------------- */

static void assert_packet_comes_back(const struct hamlyn_packet *h, const u8 *meta)
{
	struct hml_wire_origin who;
	struct hml_wire_frame f;
	struct hamlyn_packet back;
	const void *at;

	pack_data(h, meta);
	f = parsed();
	assert_int_equal(f.type, HML_WIRE_DATA);
	assert_int_equal(f.header_bytes, frame_bytes - HML_WIRE_FRAME_BYTES);
	assert_int_equal(f.payload_bytes, h->length);
	assert_int_equal(f.total, frame_bytes + h->length);
	assert_int_equal(f.epoch, some_tx().epoch);
	assert_int_equal(f.sequence, some_tx().sequence);
	memset(&back, UNIT_GUARD, sizeof(back));
	assert_int_equal(hml_wire_unpack_data(body(), &f, &back, &at, &who), HML_WIRE_OK);
	assert_memory_equal(&back, h, sizeof(back));
	assert_memory_equal(&who, &origin, sizeof(who));
	if (!h->meta_length) {
		assert_null(at);
		return;
	}
	assert_ptr_equal(at, frame + frame_bytes - h->meta_length);
	assert_memory_equal(at, meta, h->meta_length);
}

static void packet_comes_back_with_any_flags_metadata_and_length(void **state)
{
	static const u32 lengths[] = { 0, 1, 255, 256, PACKET - 1, PACKET };
	u8 meta[HAMLYN_MAX_METADATA];
	u32 flags, n, i;

	(void)state;
	unit_random_fill(&seed, meta, sizeof(meta));
	for (flags = 0; flags <= HAMLYN_PACKET_FLAGS; flags++)
		for (n = 0; n <= HAMLYN_MAX_METADATA; n++)
			for (i = 0; i < ARRAY_SIZE(lengths); i++) {
				const struct hamlyn_packet h = some_packet(flags, n, lengths[i]);

				assert_packet_comes_back(&h, meta);
			}
}

static void packet_of_random_numbers_comes_back(void **state)
{
	u8 meta[HAMLYN_MAX_METADATA];
	struct hamlyn_packet h;
	u32 i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		unit_random_fill(&seed, &h, sizeof(h));
		unit_random_fill(&seed, meta, sizeof(meta));
		h.version = HAMLYN_PACKET_VERSION;
		h.flags &= HAMLYN_PACKET_FLAGS;
		h.meta_length = unit_below(&seed, HAMLYN_MAX_METADATA + 1);
		h.length = unit_below(&seed, PACKET + 1);
		h.host = 0;
		h.source = 0;
		h.reserved = 0;
		if (!(h.flags & HAMLYN_PACKET_FAST))
			h.word = 0;
		if (!(h.flags & HAMLYN_PACKET_TICKET))
			h.ticket_key = 0;
		assert_packet_comes_back(&h, meta);
	}
}

static void host_and_source_are_not_the_frames_to_say(void **state)
{
	struct hamlyn_packet h = some_packet(0, 0, 0), other = h, back;
	struct hml_wire_origin who;
	struct hml_wire_frame f;
	const void *meta;
	u8 packed[64];

	(void)state;
	pack_data(&h, NULL);
	memcpy(packed, frame, frame_bytes);
	other.host = 7;
	other.source = 8;
	pack_data(&other, NULL);
	assert_memory_equal(packed, frame, frame_bytes);
	f = parsed();
	assert_int_equal(hml_wire_unpack_data(body(), &f, &back, &meta, &who), HML_WIRE_OK);
	assert_int_equal(back.host, 0);
	assert_int_equal(back.source, 0);
}

static void hello_comes_back(void **state)
{
	struct hml_wire_hello hello = some_hello(), back;
	struct hml_wire_frame f;

	(void)state;
	pack_hello(&hello);
	f = parsed();
	assert_int_equal(f.type, HML_WIRE_HELLO);
	assert_int_equal(f.total, 64);
	assert_int_equal(hml_wire_unpack_hello(body(), &f, &back), HML_WIRE_OK);
	assert_int_equal(back.least, 1);
	assert_int_equal(back.greatest, 3);
	assert_int_equal(back.host, hello.host);
	assert_int_equal(back.packet_size, PACKET);
	assert_int_equal(back.features, hello.features);
	assert_true(back.incarnation == hello.incarnation);
	assert_memory_equal(back.fabric_id, hello.fabric_id, sizeof(hello.fabric_id));
}

static void watch_comes_back_with_any_flags(void **state)
{
	struct hml_wire_watch watch = some_watch(), back;
	struct hml_wire_frame f;

	(void)state;
	for (watch.flags = 0; watch.flags < 4; watch.flags++) {
		pack_watch(&watch);
		f = parsed();
		assert_int_equal(hml_wire_unpack_watch(body(), &f, &back), HML_WIRE_OK);
		assert_int_equal(back.id, watch.id);
		assert_int_equal(back.flags, watch.flags);
		assert_int_equal(back.slot, watch.slot);
		assert_int_equal(back.meta_index, watch.meta_index);
		assert_true(back.key == watch.key);
		assert_int_equal(back.user, watch.user);
	}
}

static void other_frames_come_back(void **state)
{
	struct hml_wire_tx tx = some_tx();
	u32 id = 0, why = 7, verdict;
	struct hml_wire_frame f;
	u64 stamp = 0;

	(void)state;
	pack_type(HML_WIRE_PING);
	f = parsed();
	assert_int_equal(f.type, HML_WIRE_PING);
	assert_int_equal(hml_wire_unpack_ping(body(), &f, &stamp), HML_WIRE_OK);
	assert_true(stamp == 0x0102030405060708);
	stamp = 0;
	pack_type(HML_WIRE_PONG);
	f = parsed();
	assert_int_equal(f.type, HML_WIRE_PONG);
	assert_int_equal(hml_wire_unpack_ping(body(), &f, &stamp), HML_WIRE_OK);
	assert_true(stamp == 0x0102030405060708);
	pack_type(HML_WIRE_UNWATCH);
	f = parsed();
	assert_int_equal(hml_wire_unpack_unwatch(body(), &f, &id), HML_WIRE_OK);
	assert_int_equal(id, 0x01020304);
	for (verdict = 0; verdict < HML_WIRE_WATCH_WHYS; verdict++) {
		PACK(hml_wire_pack_gone, &tx, 9, verdict);
		f = parsed();
		assert_int_equal(hml_wire_unpack_gone(body(), &f, &id, &why), HML_WIRE_OK);
		assert_int_equal(id, 9);
		assert_int_equal(why, verdict);
	}
	/* Also a reason that only a newer version has. */
	for (verdict = 0; verdict <= HML_WIRE_VERDICTS; verdict++) {
		PACK(hml_wire_pack_bye, &tx, verdict);
		f = parsed();
		assert_int_equal(hml_wire_unpack_bye(body(), &f, &why), HML_WIRE_OK);
		assert_int_equal(why, verdict);
	}
}

/* All lengths that a name and what is said can have. */
static void call_comes_back(void **state)
{
	char name[HAMLYN_MAX_NAME];
	u8 said[HAMLYN_MAX_CALL];
	struct hml_wire_call call = some_call(), back;
	struct hml_wire_frame f;

	(void)state;
	memset(name, 'n', sizeof(name));
	unit_random_fill(&seed, said, sizeof(said));
	call.name = name;
	call.body = said;
	for (call.name_length = 1; call.name_length <= HAMLYN_MAX_NAME; call.name_length++)
		for (call.length = 0; call.length <= HAMLYN_MAX_CALL; call.length++) {
			pack_call(&call);
			f = parsed();
			assert_int_equal(hml_wire_unpack_call(body(), &f, &back), HML_WIRE_OK);
			assert_int_equal(back.id, call.id);
			assert_int_equal(back.user, call.user);
			assert_int_equal(back.share, call.share);
			assert_int_equal(back.name_length, call.name_length);
			assert_int_equal(back.length, call.length);
			assert_memory_equal(back.name, name, call.name_length);
			assert_memory_equal(back.body, said, call.length);
		}
}

static void answer_comes_back(void **state)
{
	u8 said[HAMLYN_MAX_CALL];
	struct hml_wire_answer answer = some_answer(), back;
	struct hml_wire_frame f;

	(void)state;
	unit_random_fill(&seed, said, sizeof(said));
	answer.body = said;
	for (answer.length = 0; answer.length <= HAMLYN_MAX_CALL; answer.length++) {
		pack_answer(&answer);
		f = parsed();
		assert_int_equal(hml_wire_unpack_answer(body(), &f, &back), HML_WIRE_OK);
		assert_int_equal(back.id, answer.id);
		assert_int_equal(back.status, HML_WIRE_ANSWERED);
		assert_int_equal(back.user, answer.user);
		assert_int_equal(back.length, answer.length);
		assert_memory_equal(back.body, said, answer.length);
	}
	/* Why there is none: nobody says more. */
	answer.user = 0;
	answer.length = 0;
	for (answer.status = 1; answer.status < HML_WIRE_ANSWERS; answer.status++) {
		pack_answer(&answer);
		f = parsed();
		assert_int_equal(hml_wire_unpack_answer(body(), &f, &back), HML_WIRE_OK);
		assert_int_equal(back.status, answer.status);
		assert_int_equal(back.length, 0);
	}
	PACK(hml_wire_pack_cancel, &(struct hml_wire_tx) {}, 0x01020304);
	f = parsed();
	assert_int_equal(hml_wire_unpack_cancel(body(), &f, &answer.id), HML_WIRE_OK);
	assert_int_equal(answer.id, 0x01020304);
}

/* ---- frame headers that are refused -------------------------------------- */

static void frame_header_is_read_only_when_it_is_whole(void **state)
{
	struct hml_wire_frame f;
	u8 *part;
	u32 have;

	(void)state;
	pack_type(HML_WIRE_DATA);
	for (have = 0; have <= HML_WIRE_FRAME_BYTES; have++) {
		part = unit_zalloc(have);
		memcpy(part, frame, have);
		assert_int_equal(hml_wire_parse(part, have, PACKET, &f),
				 have < 16 ? HML_WIRE_SHORT : HML_WIRE_OK);
		free(part);
	}
}

static void other_version_is_refused(void **state)
{
	u32 v;

	(void)state;
	pack_type(HML_WIRE_PING);
	for (v = 0; v < 256; v++) {
		frame[0] = v;
		assert_int_equal(parse(PACKET), v == 1 ? HML_WIRE_OK : HML_WIRE_BAD_VERSION);
	}
}

static void unknown_type_is_refused(void **state)
{
	u32 type;

	(void)state;
	pack_type(HML_WIRE_PING);
	for (type = 0; type < 256; type++) {
		frame[1] = type;
		if (type < 1 || type > 11)
			assert_int_equal(parse(PACKET), HML_WIRE_BAD_TYPE);
		else
			assert_int_not_equal(parse(PACKET), HML_WIRE_BAD_TYPE);
	}
}

/* Header lengths by type, told once more. */
static bool may_be(u32 type, u32 n)
{
	static const u32 fixed[] = {
		[HML_WIRE_HELLO] = 48, [HML_WIRE_PING] = 8, [HML_WIRE_PONG] = 8,
		[HML_WIRE_WATCH] = 32, [HML_WIRE_UNWATCH] = 8, [HML_WIRE_GONE] = 8,
		[HML_WIRE_BYE] = 8, [HML_WIRE_CANCEL] = 8,
	};

	switch (type) {
	case HML_WIRE_DATA:
		return n >= 40 && n <= 116;
	case HML_WIRE_CALL:
		return n >= 21 && n <= 20 + 63 + 256;
	case HML_WIRE_ANSWER:
		return n >= 12 && n <= 12 + 256;
	default:
		return n == fixed[type];
	}
}

static void header_of_a_length_that_its_type_cannot_have_is_refused(void **state)
{
	u32 type, n;

	(void)state;
	for (type = 1; type < HML_WIRE_TYPES; type++) {
		pack_type(type);
		for (n = 0; n <= 0xffff; n++) {
			frame[2] = n >> 8;
			frame[3] = n;
			assert_int_equal(parse(PACKET), may_be(type, n) ? HML_WIRE_OK :
									  HML_WIRE_BAD_LENGTH);
		}
	}
}

static void set_payload(u32 n)
{
	u32 i;

	for (i = 0; i < 4; i++)
		frame[4 + i] = n >> (24 - 8 * i);
}

static void only_a_packet_has_payload(void **state)
{
	u32 type, bit;

	(void)state;
	for (type = 1; type < HML_WIRE_TYPES; type++) {
		pack_type(type);
		for (bit = 0; bit < 32; bit++) {
			set_payload(1u << bit);
			if (type != HML_WIRE_DATA)
				assert_int_equal(parse(UINT32_MAX), HML_WIRE_BAD_LENGTH);
		}
	}
}

static void payload_above_the_packet_size_is_refused(void **state)
{
	static const u32 sizes[] = {
		0, HAMLYN_MIN_PACKET, PACKET, HAMLYN_MAX_PACKET
	};
	u32 i;

	(void)state;
	pack_type(HML_WIRE_DATA);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		set_payload(sizes[i]);
		assert_int_equal(parse(sizes[i]), HML_WIRE_OK);
		set_payload(sizes[i] + 1);
		assert_int_equal(parse(sizes[i]), HML_WIRE_TOO_LONG);
		set_payload(UINT32_MAX);
		assert_int_equal(parse(sizes[i]), HML_WIRE_TOO_LONG);
	}
}

static void frame_is_as_long_as_header_and_payload_say(void **state)
{
	struct hml_wire_frame f;

	(void)state;
	pack_type(HML_WIRE_DATA);
	set_payload(HAMLYN_MAX_PACKET);
	frame[3] = 116;
	assert_int_equal(hml_wire_parse(frame, frame_bytes, HAMLYN_MAX_PACKET, &f), HML_WIRE_OK);
	assert_int_equal(f.total, 16 + 116 + 65536);
	assert_int_equal(f.header_bytes, 116);
	assert_int_equal(f.payload_bytes, 65536);
}

/* ---- bodies that are refused --------------------------------------------- */

static void frame_of_one_type_is_not_read_as_another(void **state)
{
	u32 type, as;

	(void)state;
	for (type = 1; type < HML_WIRE_TYPES; type++) {
		pack_type(type);
		for (as = 1; as < HML_WIRE_TYPES; as++) {
			bool pings = (type == HML_WIRE_PING || type == HML_WIRE_PONG) &&
				     (as == HML_WIRE_PING || as == HML_WIRE_PONG);

			assert_int_equal(unpack_as(as), type == as || pings ? HML_WIRE_OK :
									      HML_WIRE_BAD_TYPE);
		}
	}
}

static void packet_with_an_unknown_flag_is_refused(void **state)
{
	u32 bit;

	(void)state;
	for (bit = 5; bit < 16; bit++) {
		pack_type(HML_WIRE_DATA);
		frame[bit < 8 ? 17 : 16] = 1 << bit % 8;
		assert_int_equal(unpack_data(), HML_WIRE_BAD_FLAGS);
	}
}

/* What flags and metadata say, and what the header is long, in all combinations. */
static void packet_whose_lengths_do_not_agree_is_refused(void **state)
{
	const struct hamlyn_packet h = some_packet(HAMLYN_PACKET_TICKET | HAMLYN_PACKET_FAST,
						   HAMLYN_MAX_METADATA, 0);
	static const u8 meta[HAMLYN_MAX_METADATA];
	u32 flags, claimed, n, real;

	(void)state;
	pack_data(&h, meta);
	for (flags = 0; flags <= HAMLYN_PACKET_FLAGS; flags++)
		for (claimed = 0; claimed <= HAMLYN_MAX_METADATA + 20; claimed++)
			for (n = 40; n <= 116; n++) {
				frame[3] = n;
				frame[17] = flags;
				frame[19] = claimed;
				real = 40 + claimed + (flags & HAMLYN_PACKET_FAST ? 8 : 0) +
				       (flags & HAMLYN_PACKET_TICKET ? 8 : 0);
				assert_int_equal(unpack_data(),
						 claimed <= HAMLYN_MAX_METADATA && real == n ?
						 HML_WIRE_OK : HML_WIRE_BAD_LENGTH);
			}
	frame[18] = 1;
	assert_int_equal(unpack_data(), HML_WIRE_BAD_LENGTH);
}

static void hello_without_the_magic_number_is_refused(void **state)
{
	u32 bit;

	(void)state;
	for (bit = 0; bit < 64; bit++) {
		pack_type(HML_WIRE_HELLO);
		frame[16 + bit / 8] ^= 1 << bit % 8;
		assert_int_equal(unpack_as(HML_WIRE_HELLO), HML_WIRE_BAD_MAGIC);
	}
}

static void hello_with_a_flag_or_no_incarnation_is_refused(void **state)
{
	struct hml_wire_hello hello = some_hello();
	u32 bit;

	(void)state;
	for (bit = 0; bit < 16; bit++) {
		pack_type(HML_WIRE_HELLO);
		frame[26 + bit / 8] = 1 << bit % 8;
		assert_int_equal(unpack_as(HML_WIRE_HELLO), HML_WIRE_BAD_FLAGS);
	}
	hello.incarnation = 0;
	pack_hello(&hello);
	assert_int_equal(unpack_as(HML_WIRE_HELLO), HML_WIRE_BAD_FLAGS);
	hello.incarnation = 1;
	pack_hello(&hello);
	assert_int_equal(unpack_as(HML_WIRE_HELLO), HML_WIRE_OK);
}

/* @at: where a number of 4 bytes is in the body. @most: the largest that is known. */
static void assert_number_is_checked(u32 type, u32 at, u32 most)
{
	u32 bit;

	for (bit = 0; bit < 32; bit++) {
		u32 v = 1u << bit;

		pack_type(type);
		put32(frame + HML_WIRE_FRAME_BYTES + at, v);
		assert_int_equal(unpack_as(type), v <= most ? HML_WIRE_OK : HML_WIRE_BAD_FLAGS);
	}
}

static void unknown_flags_and_values_of_other_frames_are_refused(void **state)
{
	(void)state;
	assert_number_is_checked(HML_WIRE_WATCH, 4, 3);
	assert_number_is_checked(HML_WIRE_WATCH, 28, 0);
	assert_number_is_checked(HML_WIRE_UNWATCH, 4, 0);
	assert_number_is_checked(HML_WIRE_GONE, 4, 1);
	assert_number_is_checked(HML_WIRE_BYE, 4, 0);
	assert_number_is_checked(HML_WIRE_CANCEL, 4, 0);
}

static void call_whose_lengths_do_not_agree_is_refused(void **state)
{
	static const u8 said[HAMLYN_MAX_CALL];
	char name[HAMLYN_MAX_NAME];
	struct hml_wire_call call = { .name_length = HAMLYN_MAX_NAME, .length = HAMLYN_MAX_CALL,
				      .name = name, .body = said };
	u32 claimed, n;

	(void)state;
	memset(name, 'n', sizeof(name));
	pack_call(&call);
	for (n = 21; n <= 20 + 63 + 256; n++)
		for (claimed = 0; claimed < 0x200; claimed++) {
			bool holds = claimed <= n - 20 && n - 20 - claimed <= HAMLYN_MAX_CALL;
			bool can_be = claimed && claimed <= HAMLYN_MAX_NAME;

			put16(frame + 2, n);
			put16(frame + 24, claimed);
			assert_int_equal(unpack_as(HML_WIRE_CALL),
					 !holds ? HML_WIRE_BAD_LENGTH :
					 can_be ? HML_WIRE_OK : HML_WIRE_BAD_FLAGS);
		}
	pack_type(HML_WIRE_CALL);
	frame[27] = 1;
	assert_int_equal(unpack_as(HML_WIRE_CALL), HML_WIRE_BAD_FLAGS);
}

static void name_is_printable_and_no_path(void **state)
{
	static const char most[] =
		"1234567890123456789012345678901234567890123456789012345678901234";
	u32 c;

	(void)state;
	for (c = 0; c < 256; c++) {
		const char name[3] = { 'a', (char)c, 'b' };
		bool ok = c > ' ' && c < 0x7f && c != '/';

		assert_int_equal(hml_wire_name_ok(name, 3), ok);
		pack_type(HML_WIRE_CALL);
		frame[37] = c;
		assert_int_equal(unpack_as(HML_WIRE_CALL), ok ? HML_WIRE_OK : HML_WIRE_BAD_FLAGS);
	}
	assert_false(hml_wire_name_ok("a", 0));
	assert_true(hml_wire_name_ok("a", 1));
	assert_true(hml_wire_name_ok(most, 63));
	assert_false(hml_wire_name_ok(most, 64));
}

/* Only whoever has the name says something, and who it is. */
static void answer_that_nobody_gave_says_nothing(void **state)
{
	struct hml_wire_answer answer = { .id = 1 };
	u32 bit;

	(void)state;
	for (answer.status = 0; answer.status <= HML_WIRE_ANSWERS; answer.status++) {
		answer.length = 0;
		pack_answer(&answer);
		assert_int_equal(unpack_as(HML_WIRE_ANSWER), answer.status < HML_WIRE_ANSWERS ?
				 HML_WIRE_OK : HML_WIRE_BAD_FLAGS);
		if (!answer.status || answer.status == HML_WIRE_ANSWERS)
			continue;
		for (bit = 0; bit < 32; bit++) {
			put32(frame + 24, 1u << bit);
			assert_int_equal(unpack_as(HML_WIRE_ANSWER), HML_WIRE_BAD_FLAGS);
		}
		answer.body = (const u8 *)"x";
		answer.length = 1;
		pack_answer(&answer);
		assert_int_equal(unpack_as(HML_WIRE_ANSWER), HML_WIRE_BAD_LENGTH);
	}
	for (bit = 2; bit < 32; bit++) {
		answer = (struct hml_wire_answer) { .status = 1u << bit };
		pack_answer(&answer);
		assert_int_equal(unpack_as(HML_WIRE_ANSWER), HML_WIRE_BAD_FLAGS);
	}
}

static void packet_that_the_format_cannot_say_has_no_length(void **state)
{
	struct hamlyn_packet h = some_packet(HAMLYN_PACKET_FLAGS, HAMLYN_MAX_METADATA, 0);

	(void)state;
	assert_int_equal(hml_wire_data_bytes(&h), HML_WIRE_MOST_HEADER);
	h.meta_length++;
	assert_int_equal(hml_wire_data_bytes(&h), 0);
	h.meta_length = 0xffff;
	assert_int_equal(hml_wire_data_bytes(&h), 0);
	h = some_packet(0x20, 0, 0);
	assert_int_equal(hml_wire_data_bytes(&h), 0);
	h = some_packet(0, 0, 0);
	h.version++;
	assert_int_equal(hml_wire_data_bytes(&h), 0);
	h = some_packet(0, 0, 0);
	h.reserved = 1;
	assert_int_equal(hml_wire_data_bytes(&h), 0);
	h.reserved = 0;
	assert_int_equal(hml_wire_data_bytes(&h), 56);
}

/* ---- whatever is accepted packs to the same bytes ------------------------- */

static bool repack(void)
{
	struct hml_wire_tx tx;
	struct hml_wire_frame f;
	struct hml_wire_origin who;
	struct hml_wire_hello hello;
	struct hml_wire_answer answer;
	struct hml_wire_watch watch;
	struct hml_wire_call call;
	u8 *was = frame;
	u32 n = frame_bytes, id, why;
	struct hamlyn_packet h;
	const void *meta;
	u64 stamp;

	if (hml_wire_parse(frame, frame_bytes, PACKET, &f) != HML_WIRE_OK ||
	    HML_WIRE_FRAME_BYTES + f.header_bytes > frame_bytes)
		return false;
	tx = (struct hml_wire_tx) { f.epoch, f.sequence };
	frame = NULL;
	switch (f.type) {
	case HML_WIRE_DATA:
		if (hml_wire_unpack_data(was + 16, &f, &h, &meta, &who) == HML_WIRE_OK)
			PACK(hml_wire_pack_data, &tx, &h, meta, &who);
		break;
	case HML_WIRE_HELLO:
		if (hml_wire_unpack_hello(was + 16, &f, &hello) == HML_WIRE_OK)
			PACK(hml_wire_pack_hello, &tx, &hello);
		break;
	case HML_WIRE_WATCH:
		if (hml_wire_unpack_watch(was + 16, &f, &watch) == HML_WIRE_OK)
			PACK(hml_wire_pack_watch, &tx, &watch);
		break;
	case HML_WIRE_PING:
		if (hml_wire_unpack_ping(was + 16, &f, &stamp) == HML_WIRE_OK)
			PACK(hml_wire_pack_ping, &tx, stamp);
		break;
	case HML_WIRE_PONG:
		if (hml_wire_unpack_ping(was + 16, &f, &stamp) == HML_WIRE_OK)
			PACK(hml_wire_pack_pong, &tx, stamp);
		break;
	case HML_WIRE_UNWATCH:
		if (hml_wire_unpack_unwatch(was + 16, &f, &id) == HML_WIRE_OK)
			PACK(hml_wire_pack_unwatch, &tx, id);
		break;
	case HML_WIRE_GONE:
		if (hml_wire_unpack_gone(was + 16, &f, &id, &why) == HML_WIRE_OK)
			PACK(hml_wire_pack_gone, &tx, id, why);
		break;
	case HML_WIRE_CALL:
		if (hml_wire_unpack_call(was + 16, &f, &call) == HML_WIRE_OK)
			PACK(hml_wire_pack_call, &tx, &call);
		break;
	case HML_WIRE_ANSWER:
		if (hml_wire_unpack_answer(was + 16, &f, &answer) == HML_WIRE_OK)
			PACK(hml_wire_pack_answer, &tx, &answer);
		break;
	case HML_WIRE_CANCEL:
		if (hml_wire_unpack_cancel(was + 16, &f, &id) == HML_WIRE_OK)
			PACK(hml_wire_pack_cancel, &tx, id);
		break;
	default:
		if (hml_wire_unpack_bye(was + 16, &f, &why) == HML_WIRE_OK)
			PACK(hml_wire_pack_bye, &tx, why);
	}
	if (!frame) {
		frame = was;
		return false;
	}
	/* A frame that has become shorter has bytes behind it that are not its own. */
	assert_true(frame_bytes <= n);
	assert_memory_equal(frame, was, frame_bytes);
	free(was);
	return true;
}

static void frame_with_one_bit_changed_is_refused_or_means_something_else(void **state)
{
	const struct hamlyn_packet full = some_packet(HAMLYN_PACKET_FLAGS, 5, 9);
	u32 type, bit, same = 0, refused = 0;

	(void)state;
	for (type = 0; type < HML_WIRE_TYPES; type++)
		for (bit = 0; ; bit++) {
			if (type)
				pack_type(type);
			else
				pack_data(&full, "meta");
			if (bit / 8 >= frame_bytes)
				break;
			frame[bit / 8] ^= 1 << bit % 8;
			if (repack())
				same++;
			else
				refused++;
		}
	assert_true(same > 1000);
	assert_true(refused > 500);
}

/* ---- connections --------------------------------------------------------- */

static struct hml_wire_frame numbered(u32 type, u32 epoch, u32 sequence)
{
	return (struct hml_wire_frame) {
		.type = type, .epoch = epoch, .sequence = sequence,
	};
}

static enum hml_wire_verdict greet(struct hml_wire_rx *rx, u64 incarnation, u32 epoch)
{
	const struct hml_wire_hello hello = { .incarnation = incarnation };
	const struct hml_wire_frame f = numbered(HML_WIRE_HELLO, epoch, 0);

	return hml_wire_rx_hello(rx, &f, &hello);
}

static enum hml_wire_verdict take(struct hml_wire_rx *rx, u32 type, u32 epoch, u32 sequence)
{
	const struct hml_wire_frame f = numbered(type, epoch, sequence);

	return hml_wire_rx_take(rx, &f);
}

static void each_frame_has_the_next_sequence_number(void **state)
{
	const struct hamlyn_packet h = some_packet(0, 0, 0);
	const struct hml_wire_hello hello = some_hello();
	const struct hml_wire_watch watch = some_watch();
	struct hml_wire_tx tx = { .epoch = 41, .sequence = 99 };
	u32 i = 0;

	(void)state;
	hml_wire_tx_begin(&tx);
#define NEXT(function, ...) do {					\
	PACK(function, &tx, __VA_ARGS__);				\
	assert_int_equal(parsed().epoch, 42);				\
	assert_int_equal(parsed().sequence, i++);			\
} while (0)
	NEXT(hml_wire_pack_hello, &hello);
	NEXT(hml_wire_pack_data, &h, NULL, &origin);
	NEXT(hml_wire_pack_ping, 0);
	NEXT(hml_wire_pack_pong, 0);
	NEXT(hml_wire_pack_watch, &watch);
	NEXT(hml_wire_pack_unwatch, 0);
	NEXT(hml_wire_pack_gone, 0, 0);
	NEXT(hml_wire_pack_bye, 0);
#undef NEXT
	hml_wire_tx_begin(&tx);
	assert_int_equal(tx.epoch, 43);
	assert_int_equal(tx.sequence, 0);
}

static void nothing_is_taken_before_hello(void **state)
{
	struct hml_wire_rx rx = {};
	u32 type;

	(void)state;
	hml_wire_rx_begin(&rx);
	for (type = 1; type < HML_WIRE_TYPES; type++)
		assert_int_equal(take(&rx, type, 0, 0), HML_WIRE_BAD_ORDER);
	for (type = 2; type < HML_WIRE_TYPES; type++) {
		const struct hml_wire_hello hello = { .incarnation = 1 };
		const struct hml_wire_frame f = numbered(type, 0, 0);

		assert_int_equal(hml_wire_rx_hello(&rx, &f, &hello), HML_WIRE_BAD_ORDER);
	}
	assert_false(rx.open);
	assert_int_equal(greet(&rx, 1, 0), HML_WIRE_OK);
	assert_true(rx.open);
	assert_int_equal(take(&rx, HML_WIRE_DATA, 0, 1), HML_WIRE_OK);
}

static void hello_comes_once(void **state)
{
	struct hml_wire_rx rx = {};

	(void)state;
	assert_int_equal(greet(&rx, 1, 5), HML_WIRE_OK);
	assert_int_equal(greet(&rx, 1, 6), HML_WIRE_BAD_ORDER);
	assert_int_equal(greet(&rx, 2, 6), HML_WIRE_BAD_ORDER);
	assert_int_equal(take(&rx, HML_WIRE_HELLO, 5, 1), HML_WIRE_BAD_ORDER);
	assert_int_equal(take(&rx, HML_WIRE_PING, 5, 1), HML_WIRE_OK);
}

static void hello_is_number_0(void **state)
{
	const struct hml_wire_hello hello = { .incarnation = 1 };
	struct hml_wire_frame f = numbered(HML_WIRE_HELLO, 1, 1);
	struct hml_wire_rx rx = {};

	(void)state;
	assert_int_equal(hml_wire_rx_hello(&rx, &f, &hello), HML_WIRE_BAD_SEQUENCE);
	assert_false(rx.open);
	assert_int_equal(rx.incarnation, 0);
	f.sequence = 0;
	assert_int_equal(hml_wire_rx_hello(&rx, &f, &hello), HML_WIRE_OK);
}

static void frame_that_is_missing_or_comes_twice_is_noticed(void **state)
{
	struct hml_wire_rx rx = {};
	u32 i;

	(void)state;
	greet(&rx, 1, 5);
	for (i = 1; i < 100; i++) {
		assert_int_equal(take(&rx, HML_WIRE_DATA, 5, i - 1), HML_WIRE_BAD_SEQUENCE);
		assert_int_equal(take(&rx, HML_WIRE_DATA, 5, i + 1), HML_WIRE_BAD_SEQUENCE);
		assert_int_equal(take(&rx, HML_WIRE_DATA, 5, i), HML_WIRE_OK);
	}
	rx.sequence = UINT32_MAX;
	assert_int_equal(take(&rx, HML_WIRE_DATA, 5, UINT32_MAX), HML_WIRE_OK);
	assert_int_equal(take(&rx, HML_WIRE_DATA, 5, 0), HML_WIRE_OK);
}

static void frame_of_another_connection_is_refused(void **state)
{
	struct hml_wire_rx rx = {};

	(void)state;
	greet(&rx, 1, 5);
	assert_int_equal(take(&rx, HML_WIRE_DATA, 4, 1), HML_WIRE_BAD_EPOCH);
	assert_int_equal(take(&rx, HML_WIRE_DATA, 6, 1), HML_WIRE_BAD_EPOCH);
	assert_int_equal(take(&rx, HML_WIRE_DATA, 5, 1), HML_WIRE_OK);
}

static void next_connection_of_an_incarnation_has_a_newer_epoch(void **state)
{
	struct hml_wire_rx rx = {};

	(void)state;
	assert_int_equal(greet(&rx, 1, 5), HML_WIRE_OK);
	take(&rx, HML_WIRE_DATA, 5, 1);
	hml_wire_rx_begin(&rx);
	assert_false(rx.open);
	assert_int_equal(greet(&rx, 1, 5), HML_WIRE_OLD_EPOCH);
	assert_int_equal(greet(&rx, 1, 4), HML_WIRE_OLD_EPOCH);
	assert_false(rx.open);
	assert_int_equal(greet(&rx, 1, 6), HML_WIRE_OK);
	assert_int_equal(take(&rx, HML_WIRE_DATA, 6, 1), HML_WIRE_OK);
	hml_wire_rx_begin(&rx);
	/* Modulo 2^32. */
	assert_int_equal(greet(&rx, 1, 6 + 0x80000000u), HML_WIRE_OLD_EPOCH);
	assert_int_equal(greet(&rx, 1, 6 + 0x7fffffffu), HML_WIRE_OK);
	hml_wire_rx_begin(&rx);
	assert_int_equal(greet(&rx, 1, 4), HML_WIRE_OK);
}

static void new_incarnation_begins_where_it_likes(void **state)
{
	struct hml_wire_rx rx = {};

	(void)state;
	assert_int_equal(greet(&rx, 1, 5), HML_WIRE_OK);
	hml_wire_rx_begin(&rx);
	assert_int_equal(greet(&rx, 2, 5), HML_WIRE_OK);
	assert_true(rx.incarnation == 2);
	hml_wire_rx_begin(&rx);
	assert_int_equal(greet(&rx, 3, 0), HML_WIRE_OK);
	assert_int_equal(take(&rx, HML_WIRE_DATA, 0, 1), HML_WIRE_OK);
}

/* ---- can we talk? -------------------------------------------------------- */

static enum hml_wire_verdict check(const struct hml_wire_hello *theirs)
{
	struct hml_wire_hello ours = some_hello();

	ours.least = 2;
	ours.host = 1;
	return hml_wire_check_hello(theirs, &ours, 2);
}

static struct hml_wire_hello good_hello(void)
{
	struct hml_wire_hello hello = some_hello();

	hello.host = 2;
	return hello;
}

static void versions_have_to_overlap(void **state)
{
	struct hml_wire_hello theirs = good_hello();
	u32 least, greatest;

	(void)state;
	/* Ours are 2 and 3. */
	for (least = 0; least < 6; least++)
		for (greatest = 0; greatest < 6; greatest++) {
			bool common = least <= greatest && least <= 3 && greatest >= 2;

			theirs.least = least;
			theirs.greatest = greatest;
			assert_int_equal(check(&theirs), common ? HML_WIRE_OK :
								  HML_WIRE_NO_VERSION);
		}
}

static void fabric_has_to_be_the_same(void **state)
{
	struct hml_wire_hello theirs;
	u32 i;

	(void)state;
	for (i = 0; i < HAMLYN_FABRIC_ID_BYTES; i++) {
		theirs = good_hello();
		theirs.fabric_id[i]++;
		assert_int_equal(check(&theirs), HML_WIRE_OTHER_FABRIC);
	}
}

static void host_has_to_be_the_one_that_was_configured(void **state)
{
	struct hml_wire_hello theirs = good_hello();

	(void)state;
	assert_int_equal(check(&theirs), HML_WIRE_OK);
	theirs.host = 1;
	assert_int_equal(check(&theirs), HML_WIRE_SAME_HOST);
	theirs.host = 3;
	assert_int_equal(check(&theirs), HML_WIRE_OTHER_HOST);
}

static void packet_size_has_to_be_the_same(void **state)
{
	struct hml_wire_hello theirs = good_hello();

	(void)state;
	theirs.packet_size = PACKET - 1;
	assert_int_equal(check(&theirs), HML_WIRE_OTHER_PACKET);
	theirs.packet_size = PACKET + 1;
	assert_int_equal(check(&theirs), HML_WIRE_OTHER_PACKET);
}

static void features_and_incarnation_may_differ(void **state)
{
	struct hml_wire_hello theirs = good_hello();

	(void)state;
	theirs.features = 0;
	theirs.incarnation++;
	assert_int_equal(check(&theirs), HML_WIRE_OK);
}

static void each_verdict_has_words_of_its_own(void **state)
{
	u32 i, j;

	(void)state;
	for (i = 0; i < HML_WIRE_VERDICTS; i++) {
		assert_non_null(hml_wire_text(i));
		for (j = 0; j < i; j++)
			assert_string_not_equal(hml_wire_text(i), hml_wire_text(j));
	}
	assert_string_equal(hml_wire_text(HML_WIRE_VERDICTS), hml_wire_text(UINT32_MAX));
	assert_non_null(hml_wire_text(UINT32_MAX));
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(list_of_the_layout_leaves_out_no_byte),
		TEST(numbers_of_the_format_are_fixed),
		TEST(packet_with_all_that_can_be_in_it_lies_as_documented),
		TEST(plain_packet_has_nothing_behind_its_fixed_part),
		TEST(hello_lies_as_documented),
		TEST(other_frames_lie_as_documented),

		TEST(packet_comes_back_with_any_flags_metadata_and_length),
		TEST(packet_of_random_numbers_comes_back),
		TEST(host_and_source_are_not_the_frames_to_say),
		TEST(hello_comes_back),
		TEST(watch_comes_back_with_any_flags),
		TEST(other_frames_come_back),
		TEST(call_comes_back),
		TEST(answer_comes_back),

		TEST(frame_header_is_read_only_when_it_is_whole),
		TEST(other_version_is_refused),
		TEST(unknown_type_is_refused),
		TEST(header_of_a_length_that_its_type_cannot_have_is_refused),
		TEST(only_a_packet_has_payload),
		TEST(payload_above_the_packet_size_is_refused),
		TEST(frame_is_as_long_as_header_and_payload_say),

		TEST(frame_of_one_type_is_not_read_as_another),
		TEST(packet_with_an_unknown_flag_is_refused),
		TEST(packet_whose_lengths_do_not_agree_is_refused),
		TEST(hello_without_the_magic_number_is_refused),
		TEST(hello_with_a_flag_or_no_incarnation_is_refused),
		TEST(unknown_flags_and_values_of_other_frames_are_refused),
		TEST(call_whose_lengths_do_not_agree_is_refused),
		TEST(name_is_printable_and_no_path),
		TEST(answer_that_nobody_gave_says_nothing),
		TEST(packet_that_the_format_cannot_say_has_no_length),
		TEST(frame_with_one_bit_changed_is_refused_or_means_something_else),

		TEST(each_frame_has_the_next_sequence_number),
		TEST(nothing_is_taken_before_hello),
		TEST(hello_comes_once),
		TEST(hello_is_number_0),
		TEST(frame_that_is_missing_or_comes_twice_is_noticed),
		TEST(frame_of_another_connection_is_refused),
		TEST(next_connection_of_an_incarnation_has_a_newer_epoch),
		TEST(new_incarnation_begins_where_it_likes),

		TEST(versions_have_to_overlap),
		TEST(fabric_has_to_be_the_same),
		TEST(host_has_to_be_the_one_that_was_configured),
		TEST(packet_size_has_to_be_the_same),
		TEST(features_and_incarnation_may_differ),
		TEST(each_verdict_has_words_of_its_own),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
