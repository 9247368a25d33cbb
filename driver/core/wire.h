/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What goes over a wire between two hosts: frames, and what a host accepts of another.
 *
 * Big endian, without padding. Nothing here has state but struct hml_wire_tx and struct
 * hml_wire_rx, calls anybody or takes a lock. Frames must be read from memory that their
 * sender can no longer change; where it is aligned to does not matter.
 *
 * HELLO is the same in all versions, so that hosts that have none in common can say so.
 */
#ifndef HML_CORE_WIRE_H
#define HML_CORE_WIRE_H

#include "port.h"

#define HML_WIRE_VERSION	1			/* the only one */
#define HML_WIRE_MAGIC		0x48616d6c796e2121ULL	/* "Hamlyn!!" */

/* Types of frames. */
enum {
	HML_WIRE_HELLO		= 1,	/* the first of a connection, and only that */
	HML_WIRE_DATA		= 2,	/* a packet */
	HML_WIRE_PING		= 3,
	HML_WIRE_PONG		= 4,	/* answer to PING, with its stamp */
	HML_WIRE_WATCH		= 5,
	HML_WIRE_UNWATCH	= 6,
	HML_WIRE_GONE		= 7,	/* a watch reports */
	HML_WIRE_BYE		= 8,	/* the last of a connection */
	HML_WIRE_CALL		= 9,	/* to whoever has a name */
	HML_WIRE_ANSWER		= 10,	/* to a call */
	HML_WIRE_CANCEL		= 11,	/* the caller has given up */
	HML_WIRE_TYPES		= 12,
};

/* In HELLO's features. */
#define HML_WIRE_NAMES		0x1	/* CALL, ANSWER and CANCEL are understood */
#define HML_WIRE_FEATURES	HML_WIRE_NAMES

/*
 * What is wrong with a frame. The numbers are part of the format: BYE tells the other side
 * why it was refused.
 */
enum hml_wire_verdict {
	HML_WIRE_OK		= 0,	/* in BYE: an administrator's doing */
	HML_WIRE_SHORT		= 1,	/* not yet a whole frame header */
	HML_WIRE_BAD_VERSION	= 2,	/* frame of a version that was not agreed */
	HML_WIRE_BAD_TYPE	= 3,	/* unknown type */
	HML_WIRE_BAD_LENGTH	= 4,	/* header or payload of a length that cannot be */
	HML_WIRE_BAD_FLAGS	= 5,	/* unknown flag or value, or what must be 0 is not */
	HML_WIRE_TOO_LONG	= 6,	/* payload above the packet size */
	HML_WIRE_BAD_ORDER	= 7,	/* no HELLO yet, or another one */
	HML_WIRE_BAD_EPOCH	= 8,	/* frame of another connection */
	HML_WIRE_BAD_SEQUENCE	= 9,	/* a frame is missing, or repeated */
	HML_WIRE_BAD_MAGIC	= 10,	/* not a Hamlyn network interface */
	HML_WIRE_NO_VERSION	= 11,	/* no version in common */
	HML_WIRE_OTHER_FABRIC	= 12,	/* it belongs to another fabric */
	HML_WIRE_SAME_HOST	= 13,	/* it has our host id */
	HML_WIRE_OTHER_HOST	= 14,	/* not the host id that an administrator gave it */
	HML_WIRE_OTHER_PACKET	= 15,	/* its packet size is not ours */
	HML_WIRE_OLD_EPOCH	= 16,	/* connection older than one seen before */
	HML_WIRE_TWICE		= 17,	/* in BYE: there is another connection */
	HML_WIRE_SILENT		= 18,	/* in BYE: nothing heard for too long */
	HML_WIRE_STALLED	= 19,	/* in BYE: nothing taken for too long */
	HML_WIRE_VERDICTS	= 20,
};

/**
 * struct hml_wire_frame_layout - frame header
 * @version: of the format; HELLO: 1 in all versions
 * @type: HML_WIRE_HELLO ...
 * @header_bytes: between this and the payload
 * @payload_bytes: payload; 0 but in DATA
 * @epoch: the same in all frames of a connection that come from one side
 * @sequence: 0 for HELLO, and one more in each frame behind it, modulo 2^32
 *
 * This and the next ones are how bytes lie on the wire.
 */
struct hml_wire_frame_layout {
	u8 version[1];
	u8 type[1];
	u8 header_bytes[2];
	u8 payload_bytes[4];
	u8 epoch[4];
	u8 sequence[4];
};

/**
 * struct hml_wire_hello_layout - HELLO
 * @magic: HML_WIRE_MAGIC
 * @least: lowest version that the sender speaks
 * @greatest: highest one
 * @flags: what the receiver must know, or refuse; none yet: 0
 * @host: host id of the sender
 * @fabric_id: fabric that it belongs to
 * @incarnation: not 0; another one each time the host begins anew
 * @packet_size: most payload bytes of a packet
 * @features: what the receiver may ignore; both sides use what both have
 */
struct hml_wire_hello_layout {
	u8 magic[8];
	u8 least[1];
	u8 greatest[1];
	u8 flags[2];
	u8 host[4];
	u8 fabric_id[HAMLYN_FABRIC_ID_BYTES];
	u8 incarnation[8];
	u8 packet_size[4];
	u8 features[4];
};

/**
 * struct hml_wire_data_layout - DATA
 * @flags: HAMLYN_PACKET_*
 * @meta_length: metadata bytes
 * @slot: as in struct hamlyn_packet; @meta_index, @delta, @key and @offset, too
 * @meta_index: see @slot
 * @delta: see @slot
 * @key: see @slot
 * @offset: see @slot
 * @sender: which of the source's senders it is from
 * @user: that one's user, as the source claims
 *
 * Behind it come the ticket key (8 bytes, with HAMLYN_PACKET_TICKET), the word (8 bytes,
 * with HAMLYN_PACKET_FAST), the metadata, and the payload. The source is the connection's.
 */
struct hml_wire_data_layout {
	u8 flags[2];
	u8 meta_length[2];
	u8 slot[4];
	u8 meta_index[4];
	u8 delta[4];
	u8 key[8];
	u8 offset[8];
	u8 sender[4];
	u8 user[4];
};

/**
 * struct hml_wire_ping_layout - PING and PONG
 * @stamp: whatever the sender of PING wants back
 */
struct hml_wire_ping_layout {
	u8 stamp[8];
};

/**
 * struct hml_wire_watch_layout - WATCH
 * @id: chosen by the sender; identifies the watch in UNWATCH and GONE
 * @flags: HAMLYN_WATCH_*
 * @slot: slot number
 * @meta_index: as in struct hamlyn_watch
 * @key: key of the slot, with HAMLYN_WATCH_TICKET its ticket key
 * @user: whose watch it is, as the source claims
 * @reserved: 0
 */
struct hml_wire_watch_layout {
	u8 id[4];
	u8 flags[4];
	u8 slot[4];
	u8 meta_index[4];
	u8 key[8];
	u8 user[4];
	u8 reserved[4];
};

/**
 * struct hml_wire_id_layout - UNWATCH, GONE and CANCEL
 * @id: of the watch, or the call
 * @why: UNWATCH, CANCEL: 0; GONE: HML_WIRE_WATCH_GONE ...
 */
struct hml_wire_id_layout {
	u8 id[4];
	u8 why[4];
};

/**
 * struct hml_wire_bye_layout - BYE
 * @verdict: enum hml_wire_verdict
 * @reserved: 0
 */
struct hml_wire_bye_layout {
	u8 verdict[4];
	u8 reserved[4];
};

/**
 * struct hml_wire_call_layout - CALL
 * @id: chosen by the caller's host; identifies the call in ANSWER and CANCEL
 * @user: whose call it is, as its host claims
 * @name_length: bytes of the name
 * @reserved: 0
 * @share: whose calls count as one user's: a number that means nothing but to the caller's host
 *
 * Behind it come the name and what is said to whoever has it.
 */
struct hml_wire_call_layout {
	u8 id[4];
	u8 user[4];
	u8 name_length[2];
	u8 reserved[2];
	u8 share[8];
};

/**
 * struct hml_wire_answer_layout - ANSWER
 * @id: of the call
 * @status: HML_WIRE_ANSWERED ...
 * @user: who answers, as the host claims; 0 unless it is HML_WIRE_ANSWERED
 *
 * Behind it comes what is said, if it is HML_WIRE_ANSWERED.
 */
struct hml_wire_answer_layout {
	u8 id[4];
	u8 status[4];
	u8 user[4];
};

/* In ANSWER. */
enum {
	HML_WIRE_ANSWERED	= 0,
	HML_WIRE_NO_NAME	= 1,	/* nobody has that name */
	HML_WIRE_FULL		= 2,	/* too many calls wait there, of the user or of the host */
	HML_WIRE_HUNG_UP	= 3,	/* whoever had the name is gone, or turned the call down */
	HML_WIRE_ANSWERS	= 4,
};

/* In GONE. */
enum {
	HML_WIRE_WATCH_GONE	= 0,	/* the slot is gone */
	HML_WIRE_WATCH_CLAIMED	= 1,	/* somebody else has claimed it */
	HML_WIRE_WATCH_WHYS	= 2,
};

#define HML_WIRE_FRAME_BYTES	sizeof(struct hml_wire_frame_layout)

/* Most bytes between frame header and payload, and with the frame header. */
#define HML_WIRE_MOST_BODY \
	(sizeof(struct hml_wire_data_layout) + 8 + 8 + HAMLYN_MAX_METADATA)
#define HML_WIRE_MOST_HEADER	(HML_WIRE_FRAME_BYTES + HML_WIRE_MOST_BODY)

/* Bytes of all frames but DATA are at most those of the longest of them, CALL. */
#define HML_WIRE_MOST_CONTROL \
	(HML_WIRE_FRAME_BYTES + sizeof(struct hml_wire_call_layout) + HAMLYN_MAX_NAME + \
	 HAMLYN_MAX_CALL)

/**
 * struct hml_wire_tx - one direction of a connection: the side that sends
 * @epoch: of the connection
 * @sequence: of the next frame
 *
 * The caller serializes all that pack frames of one connection.
 */
struct hml_wire_tx {
	u32 epoch;
	u32 sequence;
};

/**
 * struct hml_wire_rx - one direction of a connection: the side that receives
 * @incarnation: of the peer, as last seen; 0: never
 * @epoch: of the peer's newest connection; valid if @incarnation is
 * @sequence: of the next frame
 * @open: HELLO has been accepted
 *
 * Kept from connection to connection as long as the peer is known. Zeroed at first.
 */
struct hml_wire_rx {
	u64 incarnation;
	u32 epoch;
	u32 sequence;
	bool open;
};

/**
 * struct hml_wire_frame - a frame's header, checked
 * @type: HML_WIRE_HELLO ...
 * @header_bytes: bytes behind the frame header
 * @payload_bytes: bytes behind those
 * @total: bytes of the whole frame
 * @epoch: of the connection
 * @sequence: of the frame
 */
struct hml_wire_frame {
	u32 type;
	u32 header_bytes;
	u32 payload_bytes;
	u32 total;
	u32 epoch;
	u32 sequence;
};

/**
 * struct hml_wire_hello - what HELLO says
 * @least: lowest version
 * @greatest: highest version
 * @host: host id
 * @packet_size: most payload bytes of a packet
 * @features: optional features
 * @incarnation: not 0
 * @fabric_id: fabric
 */
struct hml_wire_hello {
	u8 least;
	u8 greatest;
	u32 host;
	u32 packet_size;
	u32 features;
	u64 incarnation;
	u8 fabric_id[HAMLYN_FABRIC_ID_BYTES];
};

/**
 * struct hml_wire_origin - who sent a packet, among those at its source
 * @sender: which sender
 * @user: its user
 */
struct hml_wire_origin {
	u32 sender;
	u32 user;
};

/**
 * struct hml_wire_watch - what WATCH says
 * @key: a key that opens the slot
 * @id: of the watch
 * @flags: HAMLYN_WATCH_*
 * @slot: slot number
 * @meta_index: in the paranoid modes, the metadata entry whose key it is
 * @user: whose watch it is
 */
struct hml_wire_watch {
	u64 key;
	u32 id;
	u32 flags;
	u32 slot;
	u32 meta_index;
	u32 user;
};

/**
 * struct hml_wire_call - what CALL says
 * @id: of the call
 * @user: whose call it is
 * @share: whose calls count as one user's
 * @name_length: bytes of @name: hml_wire_name_ok()
 * @length: bytes of @body, at most HAMLYN_MAX_CALL
 * @name: to whom it goes
 * @body: what is said
 *
 * What was unpacked points into the frame.
 */
struct hml_wire_call {
	u32 id;
	u32 user;
	u64 share;
	u32 name_length;
	u32 length;
	const char *name;
	const u8 *body;
};

/**
 * struct hml_wire_answer - what ANSWER says
 * @id: of the call
 * @status: HML_WIRE_ANSWERED ...
 * @user: who answers
 * @length: bytes of @body, at most HAMLYN_MAX_CALL; 0 unless it is HML_WIRE_ANSWERED
 * @body: what is said
 *
 * What was unpacked points into the frame.
 */
struct hml_wire_answer {
	u32 id;
	u32 status;
	u32 user;
	u32 length;
	const u8 *body;
};

/* ---- sending: all return how many bytes they wrote ---- */

/**
 * hml_wire_tx_begin() - a new connection
 * @tx: gets an epoch that is newer than its last one
 */
void hml_wire_tx_begin(struct hml_wire_tx *tx);

/**
 * hml_wire_data_bytes() - how long is a packet before its payload?
 * @h: the packet
 *
 * Return: what hml_wire_pack_data() writes for it, at most HML_WIRE_MOST_HEADER; 0 if the format
 * cannot say it. No core makes such a packet, but an adversary may have damaged it.
 */
u32 hml_wire_data_bytes(const struct hamlyn_packet *h);

/**
 * hml_wire_pack_data() - the part of a packet before its payload
 * @tx: the connection
 * @to: room for hml_wire_data_bytes(), which is not 0
 * @h: the packet
 * @meta: h->meta_length bytes of metadata, which may change meanwhile
 * @origin: who sends it
 *
 * The caller puts h->length bytes of payload behind it.
 *
 * Return: bytes.
 */
u32 hml_wire_pack_data(struct hml_wire_tx *tx, u8 *to, const struct hamlyn_packet *h,
		       const void *meta, const struct hml_wire_origin *origin);

/**
 * hml_wire_pack_hello() - the first frame of a connection
 * @tx: the connection
 * @to: room for HML_WIRE_MOST_CONTROL, here and below
 * @hello: what to say
 *
 * Return: bytes.
 */
u32 hml_wire_pack_hello(struct hml_wire_tx *tx, u8 *to, const struct hml_wire_hello *hello);

/**
 * hml_wire_pack_ping() - ask for a sign of life
 * @tx: the connection
 * @to: room
 * @stamp: to be sent back
 *
 * Return: bytes.
 */
u32 hml_wire_pack_ping(struct hml_wire_tx *tx, u8 *to, u64 stamp);

/**
 * hml_wire_pack_pong() - answer PING
 * @tx: the connection
 * @to: room
 * @stamp: what PING had
 *
 * Return: bytes.
 */
u32 hml_wire_pack_pong(struct hml_wire_tx *tx, u8 *to, u64 stamp);

/**
 * hml_wire_pack_watch() - ask to be told when a slot is gone
 * @tx: the connection
 * @to: room
 * @watch: the watch
 *
 * Return: bytes.
 */
u32 hml_wire_pack_watch(struct hml_wire_tx *tx, u8 *to, const struct hml_wire_watch *watch);

/**
 * hml_wire_pack_unwatch() - end a watch
 * @tx: the connection
 * @to: room
 * @id: of the watch
 *
 * Return: bytes.
 */
u32 hml_wire_pack_unwatch(struct hml_wire_tx *tx, u8 *to, u32 id);

/**
 * hml_wire_pack_gone() - report to a watch
 * @tx: the connection
 * @to: room
 * @id: of the watch
 * @why: HML_WIRE_WATCH_GONE ...
 *
 * Return: bytes.
 */
u32 hml_wire_pack_gone(struct hml_wire_tx *tx, u8 *to, u32 id, u32 why);

/**
 * hml_wire_pack_call() - call whoever has a name
 * @tx: the connection
 * @to: room
 * @call: the call, which hml_wire_unpack_call() would accept
 *
 * Return: bytes.
 */
u32 hml_wire_pack_call(struct hml_wire_tx *tx, u8 *to, const struct hml_wire_call *call);

/**
 * hml_wire_pack_answer() - answer a call
 * @tx: the connection
 * @to: room
 * @answer: the answer, which hml_wire_unpack_answer() would accept
 *
 * Return: bytes.
 */
u32 hml_wire_pack_answer(struct hml_wire_tx *tx, u8 *to, const struct hml_wire_answer *answer);

/**
 * hml_wire_pack_cancel() - give a call up
 * @tx: the connection
 * @to: room
 * @id: of the call
 *
 * Return: bytes.
 */
u32 hml_wire_pack_cancel(struct hml_wire_tx *tx, u8 *to, u32 id);

/**
 * hml_wire_pack_bye() - the last frame of a connection
 * @tx: the connection
 * @to: room
 * @verdict: why it ends
 *
 * Return: bytes.
 */
u32 hml_wire_pack_bye(struct hml_wire_tx *tx, u8 *to, enum hml_wire_verdict verdict);

/* ---- receiving ---- */

/**
 * hml_wire_parse() - read a frame header
 * @bytes: what has arrived
 * @have: how many bytes of it
 * @packet_size: most payload bytes of a packet
 * @f: result, if it is HML_WIRE_OK
 *
 * No byte beyond @have is read. Nothing is done about epoch and sequence, see
 * hml_wire_rx_take(). Header and payload are of a length that a frame of its type may have.
 *
 * Return: HML_WIRE_OK; HML_WIRE_SHORT: call again when there is more; or what is wrong.
 */
enum hml_wire_verdict hml_wire_parse(const u8 *bytes, u32 have, u32 packet_size,
				     struct hml_wire_frame *f);

/**
 * hml_wire_rx_begin() - a new connection
 * @rx: waits for HELLO
 */
void hml_wire_rx_begin(struct hml_wire_rx *rx);

/**
 * hml_wire_rx_hello() - is HELLO the first frame, of a connection newer than all before it?
 * @rx: the connection; open if so
 * @f: the frame
 * @hello: what it says, already accepted by hml_wire_check_hello()
 *
 * Return: HML_WIRE_OK, or what is wrong.
 */
enum hml_wire_verdict hml_wire_rx_hello(struct hml_wire_rx *rx, const struct hml_wire_frame *f,
					const struct hml_wire_hello *hello);

/**
 * hml_wire_rx_take() - is this the next frame of the connection? For all but HELLO.
 * @rx: the connection
 * @f: the frame
 *
 * Return: HML_WIRE_OK, and it has been counted; or what is wrong.
 */
enum hml_wire_verdict hml_wire_rx_take(struct hml_wire_rx *rx, const struct hml_wire_frame *f);

/**
 * hml_wire_unpack_data() - read a packet
 * @headers: what is behind the frame header, f->header_bytes of it
 * @f: the frame
 * @h: result; host and source are left 0 for the caller to set
 * @meta: result: where the metadata is, in @headers; NULL if there is none
 * @origin: result: who sent it
 *
 * What the packet may touch is for hml_rx() to decide.
 *
 * Return: HML_WIRE_OK, or what is wrong.
 */
enum hml_wire_verdict hml_wire_unpack_data(const u8 *headers, const struct hml_wire_frame *f,
					   struct hamlyn_packet *h, const void **meta,
					   struct hml_wire_origin *origin);

/**
 * hml_wire_unpack_hello() - read HELLO
 * @headers: what is behind the frame header, here and below
 * @f: the frame
 * @hello: result
 *
 * Return: HML_WIRE_OK, or what is wrong.
 */
enum hml_wire_verdict hml_wire_unpack_hello(const u8 *headers, const struct hml_wire_frame *f,
					    struct hml_wire_hello *hello);

/**
 * hml_wire_check_hello() - can we talk to each other?
 * @theirs: what the peer said
 * @ours: what we say
 * @host: host id that an administrator gave the peer
 *
 * Return: HML_WIRE_OK, or why not.
 */
enum hml_wire_verdict hml_wire_check_hello(const struct hml_wire_hello *theirs,
					   const struct hml_wire_hello *ours, u32 host);

/**
 * hml_wire_unpack_ping() - read PING or PONG
 * @headers: see hml_wire_unpack_hello()
 * @f: the frame
 * @stamp: result
 *
 * Return: HML_WIRE_OK, or what is wrong.
 */
enum hml_wire_verdict hml_wire_unpack_ping(const u8 *headers, const struct hml_wire_frame *f,
					   u64 *stamp);

/**
 * hml_wire_unpack_watch() - read WATCH
 * @headers: see hml_wire_unpack_hello()
 * @f: the frame
 * @watch: result
 *
 * Return: HML_WIRE_OK, or what is wrong.
 */
enum hml_wire_verdict hml_wire_unpack_watch(const u8 *headers, const struct hml_wire_frame *f,
					    struct hml_wire_watch *watch);

/**
 * hml_wire_unpack_unwatch() - read UNWATCH
 * @headers: see hml_wire_unpack_hello()
 * @f: the frame
 * @id: result
 *
 * Return: HML_WIRE_OK, or what is wrong.
 */
enum hml_wire_verdict hml_wire_unpack_unwatch(const u8 *headers, const struct hml_wire_frame *f,
					      u32 *id);

/**
 * hml_wire_unpack_gone() - read GONE
 * @headers: see hml_wire_unpack_hello()
 * @f: the frame
 * @id: result
 * @why: result: HML_WIRE_WATCH_GONE ...
 *
 * Return: HML_WIRE_OK, or what is wrong.
 */
enum hml_wire_verdict hml_wire_unpack_gone(const u8 *headers, const struct hml_wire_frame *f,
					   u32 *id, u32 *why);

/**
 * hml_wire_name_ok() - may something be called that?
 * @name: 1 to HAMLYN_MAX_NAME printable characters of ASCII, but no blank and no '/'
 * @length: bytes of it
 *
 * Return: whether it may.
 */
bool hml_wire_name_ok(const char *name, u32 length);

/**
 * hml_wire_unpack_call() - read CALL
 * @headers: see hml_wire_unpack_hello()
 * @f: the frame
 * @call: result, which points into @headers
 *
 * Return: HML_WIRE_OK, or what is wrong.
 */
enum hml_wire_verdict hml_wire_unpack_call(const u8 *headers, const struct hml_wire_frame *f,
					   struct hml_wire_call *call);

/**
 * hml_wire_unpack_answer() - read ANSWER
 * @headers: see hml_wire_unpack_hello()
 * @f: the frame
 * @answer: result, which points into @headers
 *
 * Return: HML_WIRE_OK, or what is wrong.
 */
enum hml_wire_verdict hml_wire_unpack_answer(const u8 *headers, const struct hml_wire_frame *f,
					     struct hml_wire_answer *answer);

/**
 * hml_wire_unpack_cancel() - read CANCEL
 * @headers: see hml_wire_unpack_hello()
 * @f: the frame
 * @id: result
 *
 * Return: HML_WIRE_OK, or what is wrong.
 */
enum hml_wire_verdict hml_wire_unpack_cancel(const u8 *headers, const struct hml_wire_frame *f,
					     u32 *id);

/**
 * hml_wire_unpack_bye() - read BYE
 * @headers: see hml_wire_unpack_hello()
 * @f: the frame
 * @verdict: result; may be one that only a newer version knows
 *
 * Return: HML_WIRE_OK, or what is wrong.
 */
enum hml_wire_verdict hml_wire_unpack_bye(const u8 *headers, const struct hml_wire_frame *f,
					  u32 *verdict);

/**
 * hml_wire_text() - what to tell an administrator
 * @verdict: any number
 *
 * Return: a few words.
 */
const char *hml_wire_text(u32 verdict);

/*
 * Size of every structure above and offset of every member; used as HML_LAYOUT of layout.h,
 * with names without hml_wire_ and _layout.
 */
#define HML_WIRE_LAYOUT(SIZE, OFFSET) \
	SIZE(frame, 16) \
	OFFSET(frame, version, 0) \
	OFFSET(frame, type, 1) \
	OFFSET(frame, header_bytes, 2) \
	OFFSET(frame, payload_bytes, 4) \
	OFFSET(frame, epoch, 8) \
	OFFSET(frame, sequence, 12) \
	SIZE(hello, 48) \
	OFFSET(hello, magic, 0) \
	OFFSET(hello, least, 8) \
	OFFSET(hello, greatest, 9) \
	OFFSET(hello, flags, 10) \
	OFFSET(hello, host, 12) \
	OFFSET(hello, fabric_id, 16) \
	OFFSET(hello, incarnation, 32) \
	OFFSET(hello, packet_size, 40) \
	OFFSET(hello, features, 44) \
	SIZE(data, 40) \
	OFFSET(data, flags, 0) \
	OFFSET(data, meta_length, 2) \
	OFFSET(data, slot, 4) \
	OFFSET(data, meta_index, 8) \
	OFFSET(data, delta, 12) \
	OFFSET(data, key, 16) \
	OFFSET(data, offset, 24) \
	OFFSET(data, sender, 32) \
	OFFSET(data, user, 36) \
	SIZE(ping, 8) \
	OFFSET(ping, stamp, 0) \
	SIZE(watch, 32) \
	OFFSET(watch, id, 0) \
	OFFSET(watch, flags, 4) \
	OFFSET(watch, slot, 8) \
	OFFSET(watch, meta_index, 12) \
	OFFSET(watch, key, 16) \
	OFFSET(watch, user, 24) \
	OFFSET(watch, reserved, 28) \
	SIZE(id, 8) \
	OFFSET(id, id, 0) \
	OFFSET(id, why, 4) \
	SIZE(bye, 8) \
	OFFSET(bye, verdict, 0) \
	OFFSET(bye, reserved, 4) \
	SIZE(call, 20) \
	OFFSET(call, id, 0) \
	OFFSET(call, user, 4) \
	OFFSET(call, name_length, 8) \
	OFFSET(call, reserved, 10) \
	OFFSET(call, share, 12) \
	SIZE(answer, 12) \
	OFFSET(answer, id, 0) \
	OFFSET(answer, status, 4) \
	OFFSET(answer, user, 8)

#endif /* HML_CORE_WIRE_H */
