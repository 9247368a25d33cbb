// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections as another host may make them: any bytes, read frame by frame as a receiver does.
 * What is accepted packs to the same bytes, is in order, and of the connection.
 */
#include "nic.h"
#include "wire.c"

#include "fuzz_wire.h"

/* The rules of a connection, told once more. */
static struct model {
	bool open;
	uint64_t incarnation;
	uint32_t epoch;
	uint32_t next;
} model;

static struct hml_wire_rx rx;

static struct hml_wire_hello ours = {
	.least = 1, .greatest = 1, .host = 1, .incarnation = 1,
};

/* Memory of exactly that size: ASan sees whoever reads on. */
static u8 *copy_of(const uint8_t *data, size_t n)
{
	u8 *copy = malloc(n ? n : 1);

	MUST(copy);
	if (n)
		memcpy(copy, data, n);
	return copy;
}

static void begin(void)
{
	hml_wire_rx_begin(&rx);
	model.open = false;
}

static bool greet(const u8 *body, const struct hml_wire_frame *f)
{
	bool can_talk, is_new, taken;
	struct hml_wire_hello hello;

	if (hml_wire_unpack_hello(body, f, &hello))
		return false;
	can_talk = hello.least <= 1 && hello.greatest >= 1 && hello.host == 2 &&
		   !memcmp(hello.fabric_id, ours.fabric_id, sizeof(ours.fabric_id)) &&
		   hello.packet_size == ours.packet_size;
	MUST(can_talk == !hml_wire_check_hello(&hello, &ours, 2));
	if (!can_talk)
		return false;
	is_new = hello.incarnation != model.incarnation ||
		 (f->epoch != model.epoch && f->epoch - model.epoch < 0x80000000);
	taken = !hml_wire_rx_hello(&rx, f, &hello);
	MUST(taken == (!model.open && !f->sequence && is_new));
	if (taken)
		model = (struct model) { true, hello.incarnation, f->epoch, 1 };
	return taken;
}

static bool take(const struct hml_wire_frame *f)
{
	bool taken = !hml_wire_rx_take(&rx, f);

	MUST(taken == (model.open && f->type != HML_WIRE_HELLO && f->epoch == model.epoch &&
		       f->sequence == model.next));
	model.next += taken;
	return taken;
}

/* A frame whose header and body are there. Return: the connection goes on. */
static bool receive(const uint8_t *data, const struct hml_wire_frame *f)
{
	u8 *body = copy_of(data + HML_WIRE_FRAME_BYTES, f->header_bytes);
	u8 *again = malloc(HML_WIRE_FRAME_BYTES + f->header_bytes);
	bool good;
	u32 n;

	MUST(again);
	n = wire_again(body, f, again);
	MUST(!n || n == HML_WIRE_FRAME_BYTES + f->header_bytes);
	MUST(!memcmp(data, again, n));
	free(again);
	if (f->type == HML_WIRE_HELLO) {
		good = greet(body, f);
		MUST(n || !good);
	} else {
		good = take(f) && n;
	}
	free(body);
	return good;
}

/* Return: bytes of a frame; 0: there are too few. */
static size_t step(const uint8_t *data, size_t left)
{
	size_t have = left < HML_WIRE_FRAME_BYTES ? left : HML_WIRE_FRAME_BYTES;
	u8 *header = copy_of(data, have);
	enum hml_wire_verdict verdict;
	struct hml_wire_frame f;

	verdict = hml_wire_parse(header, have, ours.packet_size, &f);
	free(header);
	MUST((verdict == HML_WIRE_SHORT) == (left < HML_WIRE_FRAME_BYTES));
	MUST(*hml_wire_text(verdict));
	if (verdict == HML_WIRE_SHORT)
		return 0;
	if (verdict) {
		begin();
		return HML_WIRE_FRAME_BYTES;
	}
	wire_must_fit(&f, ours.packet_size);
	if (f.total > left)
		return 0;
	if (!receive(data, &f))
		begin();
	return f.total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n;

	if (!size)
		return 0;
	memset(&rx, 0, sizeof(rx));
	memset(&model, 0, sizeof(model));
	ours.packet_size = data[0] ? HAMLYN_MIN_PACKET : HAMLYN_MAX_PACKET;
	for (data++, size--; (n = step(data, size)); data += n, size -= n)
		;
	return 0;
}
