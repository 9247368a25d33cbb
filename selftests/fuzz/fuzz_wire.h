/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What must hold for any bytes that are taken for a frame between hosts, for the target and for
 * brute force. Whoever includes it has included wire.c, so that nothing is a call.
 */
#ifndef HML_FUZZ_WIRE_H
#define HML_FUZZ_WIRE_H

#include "fuzz.h"
#include "wire.h"

/* Read the body and pack it again. Return: bytes; 0: it was refused. */
static inline u32 wire_again(const u8 *body, const struct hml_wire_frame *f, u8 *to)
{
	struct hml_wire_tx tx = { f->epoch, f->sequence };
	struct hml_wire_origin origin;
	struct hml_wire_hello hello;
	struct hml_wire_answer answer;
	struct hml_wire_watch watch;
	struct hml_wire_call call;
	struct hamlyn_packet h;
	const void *meta;
	u32 id, why;
	u64 stamp;

	switch (f->type) {
	case HML_WIRE_HELLO:
		if (hml_wire_unpack_hello(body, f, &hello))
			return 0;
		MUST(hello.incarnation);
		return hml_wire_pack_hello(&tx, to, &hello);
	case HML_WIRE_DATA:
		if (hml_wire_unpack_data(body, f, &h, &meta, &origin))
			return 0;
		MUST(hml_wire_data_bytes(&h) == HML_WIRE_FRAME_BYTES + f->header_bytes);
		MUST(!h.host && !h.source && h.length == f->payload_bytes);
		MUST(!meta == !h.meta_length);
		MUST(!meta || (const u8 *)meta + h.meta_length == body + f->header_bytes);
		return hml_wire_pack_data(&tx, to, &h, meta, &origin);
	case HML_WIRE_PING:
		return hml_wire_unpack_ping(body, f, &stamp) ?
			0 : hml_wire_pack_ping(&tx, to, stamp);
	case HML_WIRE_PONG:
		return hml_wire_unpack_ping(body, f, &stamp) ?
			0 : hml_wire_pack_pong(&tx, to, stamp);
	case HML_WIRE_WATCH:
		return hml_wire_unpack_watch(body, f, &watch) ?
			0 : hml_wire_pack_watch(&tx, to, &watch);
	case HML_WIRE_UNWATCH:
		return hml_wire_unpack_unwatch(body, f, &id) ?
			0 : hml_wire_pack_unwatch(&tx, to, id);
	case HML_WIRE_GONE:
		return hml_wire_unpack_gone(body, f, &id, &why) ?
			0 : hml_wire_pack_gone(&tx, to, id, why);
	case HML_WIRE_CALL:
		if (hml_wire_unpack_call(body, f, &call))
			return 0;
		MUST(hml_wire_name_ok(call.name, call.name_length));
		MUST(call.body + call.length == body + f->header_bytes);
		return hml_wire_pack_call(&tx, to, &call);
	case HML_WIRE_ANSWER:
		if (hml_wire_unpack_answer(body, f, &answer))
			return 0;
		MUST(answer.body + answer.length == body + f->header_bytes);
		return hml_wire_pack_answer(&tx, to, &answer);
	case HML_WIRE_CANCEL:
		return hml_wire_unpack_cancel(body, f, &id) ?
			0 : hml_wire_pack_cancel(&tx, to, id);
	case HML_WIRE_BYE:
		return hml_wire_unpack_bye(body, f, &why) ?
			0 : hml_wire_pack_bye(&tx, to, why);
	}
	MUST(!"a type that is known");
	return 0;
}

/* A frame header is accepted: does it say what can be? */
static inline void wire_must_fit(const struct hml_wire_frame *f, u32 packet_size)
{
	MUST(f->type && f->type < HML_WIRE_TYPES);
	MUST(HML_WIRE_FRAME_BYTES + f->header_bytes <= HML_WIRE_MOST_CONTROL);
	MUST(f->payload_bytes <= packet_size);
	MUST(f->type == HML_WIRE_DATA || !f->payload_bytes);
	MUST(f->total == HML_WIRE_FRAME_BYTES + f->header_bytes + f->payload_bytes);
}

#endif /* HML_FUZZ_WIRE_H */
