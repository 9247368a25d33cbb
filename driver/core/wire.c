// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Frames between hosts: packed, and read back as if the peer were an enemy.
 *
 * A number is checked before it is used, and what a frame says twice must agree: its header is
 * exactly as long as its flags and its metadata make it. So whatever is accepted packs to the
 * same bytes again, and no two frames mean the same.
 */
#include "wire.h"

#define SIZE(s, n) \
	static_assert(sizeof(struct hml_wire_##s##_layout) == (n), "size of " #s);
#define OFFSET(s, m, n) \
	static_assert(__builtin_offsetof(struct hml_wire_##s##_layout, m) == (n), \
		      "place of " #s "." #m);
HML_WIRE_LAYOUT(SIZE, OFFSET)
#undef SIZE
#undef OFFSET

#define TICKET_KEY_BYTES	8
#define WORD_BYTES		8

#define WATCH_FLAGS	(HAMLYN_WATCH_TICKET | HAMLYN_WATCH_CLAIM)

/* What may be between frame header and payload. */
static const struct {
	u16 least;
	u16 most;
} bodies[HML_WIRE_TYPES] = {
#define BODY(s)	{ sizeof(struct hml_wire_##s##_layout), sizeof(struct hml_wire_##s##_layout) }
	[HML_WIRE_HELLO] = BODY(hello),
	[HML_WIRE_DATA] = { sizeof(struct hml_wire_data_layout), HML_WIRE_MOST_BODY },
	[HML_WIRE_PING] = BODY(ping),
	[HML_WIRE_PONG] = BODY(ping),
	[HML_WIRE_WATCH] = BODY(watch),
	[HML_WIRE_UNWATCH] = BODY(id),
	[HML_WIRE_GONE] = BODY(id),
	[HML_WIRE_BYE] = BODY(bye),
	[HML_WIRE_CALL] = { sizeof(struct hml_wire_call_layout) + 1,
			    sizeof(struct hml_wire_call_layout) + HAMLYN_MAX_NAME +
			    HAMLYN_MAX_CALL },
	[HML_WIRE_ANSWER] = { sizeof(struct hml_wire_answer_layout),
			      sizeof(struct hml_wire_answer_layout) + HAMLYN_MAX_CALL },
	[HML_WIRE_CANCEL] = BODY(id),
#undef BODY
};

#define FITS(s)	\
	(HML_WIRE_FRAME_BYTES + sizeof(struct hml_wire_##s##_layout) <= HML_WIRE_MOST_CONTROL)
static_assert(FITS(hello) && FITS(watch) && FITS(id) && FITS(ping) && FITS(bye) &&
	      HML_WIRE_FRAME_BYTES + sizeof(struct hml_wire_answer_layout) + HAMLYN_MAX_CALL <=
	      HML_WIRE_MOST_CONTROL, "HML_WIRE_MOST_CONTROL");
#undef FITS
static_assert(HAMLYN_PACKET_FLAGS <= 0xffff && HAMLYN_MAX_METADATA <= 0xffff,
	      "they fit into DATA");

/* ---- numbers: compilers make one instruction or two of each ---- */

static __always_inline void put16(u8 *p, u32 v)
{
	p[0] = (v >> 8) & 0xff;
	p[1] = v & 0xff;
}

static __always_inline void put32(u8 *p, u32 v)
{
	p[0] = v >> 24;
	p[1] = (v >> 16) & 0xff;
	p[2] = (v >> 8) & 0xff;
	p[3] = v & 0xff;
}

static __always_inline void put64(u8 *p, u64 v)
{
	put32(p, v >> 32);
	put32(p + 4, v & 0xffffffff);
}

static __always_inline u32 get16(const u8 *p)
{
	return (u32)p[0] << 8 | p[1];
}

static __always_inline u32 get32(const u8 *p)
{
	return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
}

static __always_inline u64 get64(const u8 *p)
{
	return (u64)p[0] << 56 | (u64)p[1] << 48 | (u64)p[2] << 40 | (u64)p[3] << 32 |
	       (u64)p[4] << 24 | (u64)p[5] << 16 | (u64)p[6] << 8 | p[7];
}

/* ---- sending ---- */

void hml_wire_tx_begin(struct hml_wire_tx *tx)
{
	tx->epoch++;
	tx->sequence = 0;
}

/* The frame header. Return: where the rest goes. */
static __always_inline void *put_frame(struct hml_wire_tx *tx, u8 *to, u32 type,
				       u32 header_bytes, u32 payload_bytes)
{
	struct hml_wire_frame_layout *w = (void *)to;

	w->version[0] = HML_WIRE_VERSION;
	w->type[0] = type;
	put16(w->header_bytes, header_bytes);
	put32(w->payload_bytes, payload_bytes);
	put32(w->epoch, tx->epoch);
	put32(w->sequence, tx->sequence++);
	return w + 1;
}

static __always_inline u32 data_body(u32 flags, u32 meta_length)
{
	return sizeof(struct hml_wire_data_layout) +
	       (flags & HAMLYN_PACKET_TICKET ? TICKET_KEY_BYTES : 0) +
	       (flags & HAMLYN_PACKET_FAST ? WORD_BYTES : 0) + meta_length;
}

u32 hml_wire_data_bytes(const struct hamlyn_packet *h)
{
	if (unlikely(h->version != HAMLYN_PACKET_VERSION || h->reserved ||
		     h->flags & ~HAMLYN_PACKET_FLAGS || h->meta_length > HAMLYN_MAX_METADATA))
		return 0;
	return HML_WIRE_FRAME_BYTES + data_body(h->flags, h->meta_length);
}

u32 hml_wire_pack_data(struct hml_wire_tx *tx, u8 *to, const struct hamlyn_packet *h,
		       const void *meta, const struct hml_wire_origin *origin)
{
	u32 body = data_body(h->flags, h->meta_length);
	struct hml_wire_data_layout *w = put_frame(tx, to, HML_WIRE_DATA, body, h->length);
	u8 *p = (u8 *)(w + 1);

	put16(w->flags, h->flags);
	put16(w->meta_length, h->meta_length);
	put32(w->slot, h->slot);
	put32(w->meta_index, h->meta_index);
	put32(w->delta, h->delta);
	put64(w->key, h->key);
	put64(w->offset, h->offset);
	put32(w->sender, origin->sender);
	put32(w->user, origin->user);
	if (h->flags & HAMLYN_PACKET_TICKET) {
		put64(p, h->ticket_key);
		p += TICKET_KEY_BYTES;
	}
	if (h->flags & HAMLYN_PACKET_FAST) {
		put64(p, h->word);
		p += WORD_BYTES;
	}
	if (h->meta_length)
		memcpy(p, meta, h->meta_length);
	return HML_WIRE_FRAME_BYTES + body;
}

u32 hml_wire_pack_hello(struct hml_wire_tx *tx, u8 *to, const struct hml_wire_hello *hello)
{
	struct hml_wire_hello_layout *w = put_frame(tx, to, HML_WIRE_HELLO, sizeof(*w), 0);

	put64(w->magic, HML_WIRE_MAGIC);
	w->least[0] = hello->least;
	w->greatest[0] = hello->greatest;
	put16(w->flags, 0);
	put32(w->host, hello->host);
	memcpy(w->fabric_id, hello->fabric_id, sizeof(w->fabric_id));
	put64(w->incarnation, hello->incarnation);
	put32(w->packet_size, hello->packet_size);
	put32(w->features, hello->features);
	return HML_WIRE_FRAME_BYTES + sizeof(*w);
}

static u32 pack_stamp(struct hml_wire_tx *tx, u8 *to, u32 type, u64 stamp)
{
	struct hml_wire_ping_layout *w = put_frame(tx, to, type, sizeof(*w), 0);

	put64(w->stamp, stamp);
	return HML_WIRE_FRAME_BYTES + sizeof(*w);
}

u32 hml_wire_pack_ping(struct hml_wire_tx *tx, u8 *to, u64 stamp)
{
	return pack_stamp(tx, to, HML_WIRE_PING, stamp);
}

u32 hml_wire_pack_pong(struct hml_wire_tx *tx, u8 *to, u64 stamp)
{
	return pack_stamp(tx, to, HML_WIRE_PONG, stamp);
}

u32 hml_wire_pack_watch(struct hml_wire_tx *tx, u8 *to, const struct hml_wire_watch *watch)
{
	struct hml_wire_watch_layout *w = put_frame(tx, to, HML_WIRE_WATCH, sizeof(*w), 0);

	put32(w->id, watch->id);
	put32(w->flags, watch->flags);
	put32(w->slot, watch->slot);
	put32(w->meta_index, watch->meta_index);
	put64(w->key, watch->key);
	put32(w->user, watch->user);
	put32(w->reserved, 0);
	return HML_WIRE_FRAME_BYTES + sizeof(*w);
}

static u32 pack_id(struct hml_wire_tx *tx, u8 *to, u32 type, u32 id, u32 why)
{
	struct hml_wire_id_layout *w = put_frame(tx, to, type, sizeof(*w), 0);

	put32(w->id, id);
	put32(w->why, why);
	return HML_WIRE_FRAME_BYTES + sizeof(*w);
}

u32 hml_wire_pack_unwatch(struct hml_wire_tx *tx, u8 *to, u32 id)
{
	return pack_id(tx, to, HML_WIRE_UNWATCH, id, 0);
}

u32 hml_wire_pack_gone(struct hml_wire_tx *tx, u8 *to, u32 id, u32 why)
{
	return pack_id(tx, to, HML_WIRE_GONE, id, why);
}

u32 hml_wire_pack_call(struct hml_wire_tx *tx, u8 *to, const struct hml_wire_call *call)
{
	u32 body = sizeof(struct hml_wire_call_layout) + call->name_length + call->length;
	struct hml_wire_call_layout *w = put_frame(tx, to, HML_WIRE_CALL, body, 0);
	u8 *p = (u8 *)(w + 1);

	put32(w->id, call->id);
	put32(w->user, call->user);
	put16(w->name_length, call->name_length);
	put16(w->reserved, 0);
	put64(w->share, call->share);
	memcpy(p, call->name, call->name_length);
	if (call->length)
		memcpy(p + call->name_length, call->body, call->length);
	return HML_WIRE_FRAME_BYTES + body;
}

u32 hml_wire_pack_answer(struct hml_wire_tx *tx, u8 *to, const struct hml_wire_answer *answer)
{
	u32 body = sizeof(struct hml_wire_answer_layout) + answer->length;
	struct hml_wire_answer_layout *w = put_frame(tx, to, HML_WIRE_ANSWER, body, 0);

	put32(w->id, answer->id);
	put32(w->status, answer->status);
	put32(w->user, answer->user);
	if (answer->length)
		memcpy(w + 1, answer->body, answer->length);
	return HML_WIRE_FRAME_BYTES + body;
}

u32 hml_wire_pack_cancel(struct hml_wire_tx *tx, u8 *to, u32 id)
{
	return pack_id(tx, to, HML_WIRE_CANCEL, id, 0);
}

u32 hml_wire_pack_bye(struct hml_wire_tx *tx, u8 *to, enum hml_wire_verdict verdict)
{
	struct hml_wire_bye_layout *w = put_frame(tx, to, HML_WIRE_BYE, sizeof(*w), 0);

	put32(w->verdict, verdict);
	put32(w->reserved, 0);
	return HML_WIRE_FRAME_BYTES + sizeof(*w);
}

/* ---- receiving ---- */

static enum hml_wire_verdict check_lengths(const struct hml_wire_frame *f, u32 packet_size)
{
	u32 i = hml_index_nospec(f->type, HML_WIRE_TYPES);

	if (f->header_bytes < bodies[i].least || f->header_bytes > bodies[i].most)
		return HML_WIRE_BAD_LENGTH;
	if (f->type != HML_WIRE_DATA)
		return f->payload_bytes ? HML_WIRE_BAD_LENGTH : HML_WIRE_OK;
	return f->payload_bytes > packet_size ? HML_WIRE_TOO_LONG : HML_WIRE_OK;
}

enum hml_wire_verdict hml_wire_parse(const u8 *bytes, u32 have, u32 packet_size,
				     struct hml_wire_frame *f)
{
	const struct hml_wire_frame_layout *w = (const void *)bytes;

	if (have < HML_WIRE_FRAME_BYTES)
		return HML_WIRE_SHORT;
	if (w->version[0] != HML_WIRE_VERSION)
		return HML_WIRE_BAD_VERSION;
	f->type = w->type[0];
	f->header_bytes = get16(w->header_bytes);
	f->payload_bytes = get32(w->payload_bytes);
	f->total = HML_WIRE_FRAME_BYTES + f->header_bytes + f->payload_bytes;
	f->epoch = get32(w->epoch);
	f->sequence = get32(w->sequence);
	if (!f->type || f->type >= HML_WIRE_TYPES)
		return HML_WIRE_BAD_TYPE;
	return check_lengths(f, packet_size);
}

void hml_wire_rx_begin(struct hml_wire_rx *rx)
{
	rx->open = false;
	rx->sequence = 0;
}

/* An incarnation gives its connections growing epochs, so an old one that is replayed shows. */
static bool is_old(const struct hml_wire_rx *rx, u32 epoch, u64 incarnation)
{
	return incarnation == rx->incarnation && (s32)(epoch - rx->epoch) <= 0;
}

enum hml_wire_verdict hml_wire_rx_hello(struct hml_wire_rx *rx, const struct hml_wire_frame *f,
					const struct hml_wire_hello *hello)
{
	if (rx->open || f->type != HML_WIRE_HELLO)
		return HML_WIRE_BAD_ORDER;
	if (f->sequence)
		return HML_WIRE_BAD_SEQUENCE;
	if (is_old(rx, f->epoch, hello->incarnation))
		return HML_WIRE_OLD_EPOCH;
	rx->incarnation = hello->incarnation;
	rx->epoch = f->epoch;
	rx->sequence = 1;
	rx->open = true;
	return HML_WIRE_OK;
}

enum hml_wire_verdict hml_wire_rx_take(struct hml_wire_rx *rx, const struct hml_wire_frame *f)
{
	if (!rx->open || f->type == HML_WIRE_HELLO)
		return HML_WIRE_BAD_ORDER;
	if (f->epoch != rx->epoch)
		return HML_WIRE_BAD_EPOCH;
	if (f->sequence != rx->sequence)
		return HML_WIRE_BAD_SEQUENCE;
	rx->sequence++;
	return HML_WIRE_OK;
}

enum hml_wire_verdict hml_wire_unpack_data(const u8 *headers, const struct hml_wire_frame *f,
					   struct hamlyn_packet *h, const void **meta,
					   struct hml_wire_origin *origin)
{
	const struct hml_wire_data_layout *w = (const void *)headers;
	const u8 *p = (const u8 *)(w + 1);
	u64 ticket_key = 0, word = 0;
	u32 flags, meta_length;

	/* What other frames have there may be shorter. */
	if (f->type != HML_WIRE_DATA)
		return HML_WIRE_BAD_TYPE;
	flags = get16(w->flags);
	meta_length = get16(w->meta_length);
	if (flags & ~HAMLYN_PACKET_FLAGS)
		return HML_WIRE_BAD_FLAGS;
	if (meta_length > HAMLYN_MAX_METADATA || f->header_bytes != data_body(flags, meta_length))
		return HML_WIRE_BAD_LENGTH;
	if (flags & HAMLYN_PACKET_TICKET) {
		ticket_key = get64(p);
		p += TICKET_KEY_BYTES;
	}
	if (flags & HAMLYN_PACKET_FAST) {
		word = get64(p);
		p += WORD_BYTES;
	}
	*meta = meta_length ? p : NULL;
	*h = (struct hamlyn_packet) {
		.version = HAMLYN_PACKET_VERSION,
		.flags = flags,
		.meta_length = meta_length,
		.length = f->payload_bytes,
		.slot = get32(w->slot),
		.meta_index = get32(w->meta_index),
		.key = get64(w->key),
		.offset = get64(w->offset),
		.word = word,
		.delta = get32(w->delta),
		.ticket_key = ticket_key,
	};
	origin->sender = get32(w->sender);
	origin->user = get32(w->user);
	return HML_WIRE_OK;
}

enum hml_wire_verdict hml_wire_unpack_hello(const u8 *headers, const struct hml_wire_frame *f,
					    struct hml_wire_hello *hello)
{
	const struct hml_wire_hello_layout *w = (const void *)headers;

	if (f->type != HML_WIRE_HELLO)
		return HML_WIRE_BAD_TYPE;
	if (get64(w->magic) != HML_WIRE_MAGIC)
		return HML_WIRE_BAD_MAGIC;
	*hello = (struct hml_wire_hello) {
		.least = w->least[0],
		.greatest = w->greatest[0],
		.host = get32(w->host),
		.packet_size = get32(w->packet_size),
		.features = get32(w->features),
		.incarnation = get64(w->incarnation),
	};
	memcpy(hello->fabric_id, w->fabric_id, sizeof(hello->fabric_id));
	return get16(w->flags) || !hello->incarnation ? HML_WIRE_BAD_FLAGS : HML_WIRE_OK;
}

enum hml_wire_verdict hml_wire_check_hello(const struct hml_wire_hello *theirs,
					   const struct hml_wire_hello *ours, u32 host)
{
	if (theirs->least > theirs->greatest || theirs->least > ours->greatest ||
	    theirs->greatest < ours->least)
		return HML_WIRE_NO_VERSION;
	if (memcmp(theirs->fabric_id, ours->fabric_id, sizeof(ours->fabric_id)))
		return HML_WIRE_OTHER_FABRIC;
	if (theirs->host == ours->host)
		return HML_WIRE_SAME_HOST;
	if (theirs->host != host)
		return HML_WIRE_OTHER_HOST;
	/* A sender cuts its messages to its own packet size, whomever they are for. */
	if (theirs->packet_size != ours->packet_size)
		return HML_WIRE_OTHER_PACKET;
	return HML_WIRE_OK;
}

enum hml_wire_verdict hml_wire_unpack_ping(const u8 *headers, const struct hml_wire_frame *f,
					   u64 *stamp)
{
	const struct hml_wire_ping_layout *w = (const void *)headers;

	if (f->type != HML_WIRE_PING && f->type != HML_WIRE_PONG)
		return HML_WIRE_BAD_TYPE;
	*stamp = get64(w->stamp);
	return HML_WIRE_OK;
}

enum hml_wire_verdict hml_wire_unpack_watch(const u8 *headers, const struct hml_wire_frame *f,
					    struct hml_wire_watch *watch)
{
	const struct hml_wire_watch_layout *w = (const void *)headers;

	if (f->type != HML_WIRE_WATCH)
		return HML_WIRE_BAD_TYPE;
	*watch = (struct hml_wire_watch) {
		.key = get64(w->key),
		.id = get32(w->id),
		.flags = get32(w->flags),
		.slot = get32(w->slot),
		.meta_index = get32(w->meta_index),
		.user = get32(w->user),
	};
	return watch->flags & ~WATCH_FLAGS || get32(w->reserved) ? HML_WIRE_BAD_FLAGS :
								   HML_WIRE_OK;
}

static enum hml_wire_verdict unpack_id(const u8 *headers, const struct hml_wire_frame *f, u32 type,
				       u32 *id)
{
	const struct hml_wire_id_layout *w = (const void *)headers;

	if (f->type != type)
		return HML_WIRE_BAD_TYPE;
	*id = get32(w->id);
	return get32(w->why) ? HML_WIRE_BAD_FLAGS : HML_WIRE_OK;
}

enum hml_wire_verdict hml_wire_unpack_unwatch(const u8 *headers, const struct hml_wire_frame *f,
					      u32 *id)
{
	return unpack_id(headers, f, HML_WIRE_UNWATCH, id);
}

enum hml_wire_verdict hml_wire_unpack_gone(const u8 *headers, const struct hml_wire_frame *f,
					   u32 *id, u32 *why)
{
	const struct hml_wire_id_layout *w = (const void *)headers;

	if (f->type != HML_WIRE_GONE)
		return HML_WIRE_BAD_TYPE;
	*id = get32(w->id);
	*why = get32(w->why);
	return *why >= HML_WIRE_WATCH_WHYS ? HML_WIRE_BAD_FLAGS : HML_WIRE_OK;
}

bool hml_wire_name_ok(const char *name, u32 length)
{
	u32 i;

	if (!length || length > HAMLYN_MAX_NAME)
		return false;
	for (i = 0; i < length; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
			return false;
	return true;
}

enum hml_wire_verdict hml_wire_unpack_call(const u8 *headers, const struct hml_wire_frame *f,
					   struct hml_wire_call *call)
{
	const struct hml_wire_call_layout *w = (const void *)headers;
	const u8 *p = (const u8 *)(w + 1);
	u32 rest = f->header_bytes - sizeof(*w);

	if (f->type != HML_WIRE_CALL)
		return HML_WIRE_BAD_TYPE;
	*call = (struct hml_wire_call) {
		.id = get32(w->id),
		.user = get32(w->user),
		.share = get64(w->share),
		.name_length = get16(w->name_length),
		.name = (const char *)p,
	};
	if (call->name_length > rest || rest - call->name_length > HAMLYN_MAX_CALL)
		return HML_WIRE_BAD_LENGTH;
	call->length = rest - call->name_length;
	call->body = p + call->name_length;
	return get16(w->reserved) || !hml_wire_name_ok(call->name, call->name_length) ?
	       HML_WIRE_BAD_FLAGS : HML_WIRE_OK;
}

enum hml_wire_verdict hml_wire_unpack_answer(const u8 *headers, const struct hml_wire_frame *f,
					     struct hml_wire_answer *answer)
{
	const struct hml_wire_answer_layout *w = (const void *)headers;

	if (f->type != HML_WIRE_ANSWER)
		return HML_WIRE_BAD_TYPE;
	*answer = (struct hml_wire_answer) {
		.id = get32(w->id),
		.status = get32(w->status),
		.user = get32(w->user),
		.length = f->header_bytes - sizeof(*w),
		.body = (const u8 *)(w + 1),
	};
	if (answer->status >= HML_WIRE_ANSWERS)
		return HML_WIRE_BAD_FLAGS;
	if (answer->status == HML_WIRE_ANSWERED)
		return HML_WIRE_OK;
	if (answer->length)
		return HML_WIRE_BAD_LENGTH;
	return answer->user ? HML_WIRE_BAD_FLAGS : HML_WIRE_OK;
}

enum hml_wire_verdict hml_wire_unpack_cancel(const u8 *headers, const struct hml_wire_frame *f,
					     u32 *id)
{
	return unpack_id(headers, f, HML_WIRE_CANCEL, id);
}

enum hml_wire_verdict hml_wire_unpack_bye(const u8 *headers, const struct hml_wire_frame *f,
					  u32 *verdict)
{
	const struct hml_wire_bye_layout *w = (const void *)headers;

	if (f->type != HML_WIRE_BYE)
		return HML_WIRE_BAD_TYPE;
	*verdict = get32(w->verdict);
	return get32(w->reserved) ? HML_WIRE_BAD_FLAGS : HML_WIRE_OK;
}

const char *hml_wire_text(u32 verdict)
{
	static const char *const texts[HML_WIRE_VERDICTS] = {
		[HML_WIRE_OK] = "closed by an administrator",
		[HML_WIRE_SHORT] = "ended within a frame",
		[HML_WIRE_BAD_VERSION] = "a frame of a version that was not agreed",
		[HML_WIRE_BAD_TYPE] = "a frame of an unknown type",
		[HML_WIRE_BAD_LENGTH] = "a frame of a wrong length",
		[HML_WIRE_BAD_FLAGS] = "a frame with an unknown flag or value",
		[HML_WIRE_TOO_LONG] = "a packet longer than the packet size",
		[HML_WIRE_BAD_ORDER] = "something before HELLO, or a second HELLO",
		[HML_WIRE_BAD_EPOCH] = "a frame of another connection",
		[HML_WIRE_BAD_SEQUENCE] = "a frame is missing or came twice",
		[HML_WIRE_BAD_MAGIC] = "not a Hamlyn network interface",
		[HML_WIRE_NO_VERSION] = "no version of the format in common",
		[HML_WIRE_OTHER_FABRIC] = "another fabric id",
		[HML_WIRE_SAME_HOST] = "the same host id on both sides",
		[HML_WIRE_OTHER_HOST] = "not the host id that is configured",
		[HML_WIRE_OTHER_PACKET] = "another packet size",
		[HML_WIRE_OLD_EPOCH] = "a connection older than the last one",
		[HML_WIRE_TWICE] = "there is another connection",
		[HML_WIRE_SILENT] = "nothing was heard for too long",
		[HML_WIRE_STALLED] = "nothing was taken for too long",
	};

	if (verdict >= HML_WIRE_VERDICTS)
		return "a reason that only a newer version knows";
	return texts[hml_index_nospec(verdict, HML_WIRE_VERDICTS)];
}
