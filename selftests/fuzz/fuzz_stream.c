// SPDX-License-Identifier: GPL-2.0-only
/*
 * Streams and channels whose other end has the keys and keeps to no rule: any record in
 * any buffer with any note, any credit, any seed of larger buffers.
 */
#include <hamlyn/channel.h>

#include "fuzz_device.h"
#include "channel/channel.h"
#include "stream/stream.h"

#define BUFFERS		4
#define SIZE		128
#define LIMIT		400		/* longest message that the channel takes */
#define STEPS		80

static struct h_dev *dev;
static struct h_manager *manager;	/* of the end that is to live with it */

/* The other end: a slot where records come, one where credits come. */
static struct raw {
	struct h_terminus *t;
	struct h_area *area;
	struct h_slot *records, *credits;
	struct h_ticket into;		/* the first buffer of theirs */
	struct h_ticket larger;		/* and of the next generation */
	struct h_ticket theirs;		/* their buffers for credits */
	bool knows_into, knows_larger, knows_theirs;
} raw;

static struct h_stream_receiver *receiver;
static struct h_stream_sender *sender;
static struct h_channel *channel;
static uint32_t records_sent;
static uint64_t message_left;		/* of the one in several records that is under way */
static uint32_t request;		/* that the channel has sent last */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct h_manager_attr attr = { .nq_entries = 64 };
	struct h_slot_attr at = { 0 };

	(void)argc;
	(void)argv;
	dev = fuzz_open_device("stream");
	MUST(!h_manager_create(dev, &attr, &manager));
	MUST(!h_terminus_create(dev, NULL, &raw.t));
	MUST(!h_area_alloc(dev, 65536, &raw.area));
	at.area = raw.area;
	at.meta_area = raw.area;
	at.meta_base = 32768;
	at.meta_count = BUFFERS + 1;
	at.length = BUFFERS * SIZE;
	MUST(!h_slot_create(dev, &at, &raw.records));
	at.base = 8192;
	at.length = (H_CREDITS + 1) * H_CREDIT_BYTES;
	at.meta_base = 40960;
	MUST(!h_slot_create(dev, &at, &raw.credits));
	return 0;
}

/* Where it is told things. */
static const unsigned char *raw_records(void)
{
	return h_area_addr(raw.area);
}

static const unsigned char *raw_credits(void)
{
	return (const unsigned char *)h_area_addr(raw.area) + 8192;
}

/* ---- what the other end says of itself ----------------------------------- */

static void own_seed(struct fuzz *f, uint32_t kind, struct h_seed *seed)
{
	struct h_slot *slot = kind == H_SEED_STREAM ? raw.records : raw.credits;
	struct h_seed_fields fields = {
		.kind = kind,
		.entries = kind == H_SEED_STREAM ? BUFFERS : H_CREDITS,
		.buffer = kind == H_SEED_STREAM ? SIZE : H_CREDIT_BYTES,
	};
	uint8_t how = fuzz_u8(f);

	MUST(!h_slot_ticket(slot, 0, 0, 0, &fields.ticket));
	if (how > 230) {
		fields.entries = fuzz_u8(f);
		fields.buffer = fuzz_u16(f);
		fields.ticket.length = fuzz_number(f, fields.entries * fields.buffer);
		fields.ticket.base = fuzz_number(f, SIZE);
		fields.ticket.slot += how & 1;
		fields.ticket.meta_index = fuzz_u8(f);
	}
	h__seed_put(seed, &fields);
	if (how == 229)
		seed->bytes[fuzz_below(f, H_SEED_BYTES)]++;
}

static bool learn(const unsigned char *bytes, uint32_t kind, struct h_ticket *ticket)
{
	struct h_seed_fields fields;
	struct h_seed seed;

	memcpy(seed.bytes, bytes, H_SEED_BYTES);
	if (h__seed_get(&seed, kind, &fields))
		return false;
	*ticket = fields.ticket;
	/* The library's own check of the range is not to be in the way. */
	ticket->length = UINT64_MAX / 4;
	return true;
}

static void learn_larger(void)
{
	uint32_t i;

	for (i = 0; i < H_CREDITS && !raw.knows_larger; i++)
		raw.knows_larger = learn(raw_credits() + i * H_CREDIT_BYTES +
					 H_CREDIT_SHORT, H_SEED_STREAM, &raw.larger);
	if (!raw.knows_theirs)
		raw.knows_theirs = learn(raw_records(), H_SEED_CREDIT, &raw.theirs);
}

/* ---- what it sends ------------------------------------------------------- */

static int64_t post(const struct h_ticket *to, uint32_t index, uint64_t offset,
		    const void *data, size_t length, const void *meta, size_t meta_length,
		    uint32_t delta)
{
	struct h_ticket k = *to;
	const struct h_msg m = {
		.ticket = &k, .data = data, .length = length, .meta = meta,
		.meta_length = meta_length, .delta = delta,
	};

	k.meta_index = index;
	k.base += offset;
	return h_send(raw.t, &m);
}

/*
 * How much of a message is still to come, if this is a part of one as it should be, or
 * goes on beyond its end.
 */
static uint64_t rest_of_message(struct fuzz *f, size_t length, bool beyond)
{
	if (!message_left)
		message_left = fuzz_number(f, LIMIT);
	message_left -= beyond || message_left > length ? length : message_left;
	return message_left;
}

/* What only who has received it all knows: how many credits there were. */
static void right_credits(unsigned char *bytes)
{
	const struct h_stream_receiver *r = receiver ? receiver :
					    channel ? channel->receiver : NULL;

	if (r)
		h__put(bytes + 4, r->credit_sent, 4);
}

/* Of a request, or of a reply: to one of those that are under way, or to any. */
static size_t label(struct fuzz *f, unsigned char *bytes)
{
	uint8_t how = fuzz_u8(f);
	uint32_t id = how & 0x40 ? request : how & 0x20 ? fuzz_u32(f) : how & 7;

	if (how & 0x10)
		return H_NOTE_BYTES;
	h__put(bytes + 24, how & 0x80 ? id | H_LABEL_REPLY : id, 4);
	return H_LABELLED_NOTE_BYTES;
}

static size_t note(struct fuzz *f, unsigned char *bytes, size_t length)
{
	uint8_t how = fuzz_u8(f);
	uint64_t more;

	if (how & 1)
		return 0;
	if ((how & 0xc1) == 0x80) {
		memset(bytes, 0, HAMLYN_MAX_METADATA);
		if (!length)
			h__put(bytes, H_NOTE_EMPTY, 4);
		more = rest_of_message(f, length, how & 2);
		/* Of a record with a label the receiver sets the highest bit itself. */
		h__put(bytes + 16, how & 4 ? more & ~H_MORE_LABELLED : more, 8);
		return how & 4 ? label(f, bytes) : H_NOTE_BYTES;
	}
	memset(bytes, 0, HAMLYN_MAX_METADATA);
	h__put(bytes, how & 2 ? 0 : how & 4 ? fuzz_u8(f) & 31 : fuzz_u32(f), 4);
	if (how & 8)
		h__put(bytes + 4, fuzz_u32(f), 4);
	if (bytes[4] & 1)
		right_credits(bytes);
	h__put(bytes + 8, how & 16 ? fuzz_u32(f) : records_sent, 4);
	h__put(bytes + 16, how & 32 ? fuzz_number(f, LIMIT) : 0, 8);
	return how & 64 ? H_NOTE_BYTES : fuzz_u8(f) % (HAMLYN_MAX_METADATA + 1);
}

/* In turn, as it should be, or in any buffer. */
static void send_record(struct fuzz *f)
{
	unsigned char data[1024], meta[HAMLYN_MAX_METADATA];
	uint8_t how = fuzz_u8(f);
	const struct h_ticket *to = how & 1 && raw.knows_larger ? &raw.larger : &raw.into;
	uint32_t index = records_sent % BUFFERS, size = to == &raw.into ? SIZE : SIZE * 4;
	size_t length = how & 2 ? fuzz_number(f, size) % sizeof(data) : SIZE / 2;
	uint64_t offset, meta_length;
	struct h_seed seed;

	if (!raw.knows_into)
		return;
	memset(data, how, sizeof(data));
	if (how & 4)
		index = fuzz_u8(f) % (BUFFERS + 2);
	meta_length = note(f, meta, length);
	if ((how & 0x18) == 0x18) {
		own_seed(f, H_SEED_CREDIT, &seed);
		memcpy(data, seed.bytes, H_SEED_BYTES);
		length = H_SEED_BYTES;
		memset(meta, 0, sizeof(meta));
		h__put(meta, H_NOTE_HELLO | (how & 0x20 ? H_NOTE_START : 0), 4);
		meta_length = H_NOTE_BYTES;
	}
	offset = (uint64_t)index * size + (how & 0x40 ? fuzz_number(f, size) : 0);
	if (post(to, index, offset, data, length, meta, meta_length,
		 how & 0x80 ? fuzz_u8(f) : 0) >= 0)
		records_sent++;
}

static void send_credit(struct fuzz *f)
{
	unsigned char bytes[256] = { 0 };
	uint8_t how = fuzz_u8(f);
	uint32_t index = fuzz_u8(f) % (H_CREDITS + 2);
	size_t length = how & 1 ? H_CREDIT_LONG : fuzz_u8(f) % sizeof(bytes);
	uint32_t released;
	struct h_seed seed;

	if (!raw.knows_theirs)
		return;
	released = how & 2 ? fuzz_u32(f) : fuzz_u8(f);
	h__put(bytes, released, 4);
	h__put(bytes + 4, how & 4 ? fuzz_u8(f) & 3 : 0, 4);
	if (how & 8) {
		own_seed(f, H_SEED_STREAM, &seed);
		memcpy(bytes + H_CREDIT_SHORT, seed.bytes, H_SEED_BYTES);
	}
	post(&raw.theirs, index, (uint64_t)index * H_CREDIT_BYTES, bytes, length, NULL, 0, 0);
}

/* ---- the end under attack ------------------------------------------------ */

static bool inside(const struct h_stream_receiver *r, const struct h_record *record)
{
	const char *p = record->data;
	unsigned int i;

	for (i = 0; i < r->gens; i++) {
		const struct h_generation *g = &r->gen[i];
		const char *from = g->place.data.addr;

		if (p >= from && p < from + (size_t)g->entries * g->buffer)
			return record->length <= g->buffer &&
			       !((size_t)(p - from) % g->buffer);
	}
	return false;
}

static void check_receiver(const struct h_stream_receiver *r)
{
	MUST(r->gens >= 1 && r->gens <= 2);
	MUST(r->next - r->released <= r->high - r->released);
	MUST(r->high - r->released <= 2 * BUFFERS);
	MUST(r->controls <= r->high - r->released);
}

/* What was taken of a message is never more than it was said to be. */
static void check_channel(const struct h_channel *ch)
{
	check_receiver(ch->receiver);
	MUST(ch->in.total <= LIMIT && ch->in.done <= ch->in.total);
	MUST(ch->asked_count <= H_MOST_ASKED);
	MUST(ch->request_count <= STEPS);
}

/* It has never more on its way than there are buffers. */
static void check_sender(const struct h_stream_sender *s)
{
	uint32_t from = (int32_t)(s->released - s->start) > 0 ? s->released : s->start;

	MUST(s->sent - from <= s->entries || h__stream_failed(s) || !s->entries);
	MUST(s->buffer <= H_STREAM_MAX_SIZE && s->entries <= H_STREAM_MAX_BUFFERS);
}

static void receive(uint8_t how)
{
	struct h_record record;
	char bytes[300];
	ssize_t n;
	int ret;

	if (how & 0x40) {
		n = h_stream_receive_copy(receiver, bytes, sizeof(bytes), H_NOWAIT);
		MUST(n <= (ssize_t)sizeof(bytes));
		return;
	}
	ret = h_stream_receive(receiver, &record, H_NOWAIT);
	MUST(ret <= 0);
	if (ret == 0) {
		MUST(inside(receiver, &record));
		if (how & 0x80)
			h_stream_release(receiver, &record);
	}
}

static void channel_receive(uint8_t how)
{
	static char copy[LIMIT];
	struct h_message m;
	ssize_t n;

	if (how & 0x20) {
		if (h_channel_request_wait(channel, how & 0x10 ? request : how & 15, &m,
					   H_NOWAIT) == 0) {
			MUST(m.length <= LIMIT && !h_channel_is_request(&m));
			if (m.length)
				memcpy(copy, m.data, m.length);
			h_channel_release(channel, &m);
		}
		return;
	}
	if (how & 0x40) {
		size_t room = how & 0x80 ? LIMIT : SIZE;
		char *bytes = malloc(room);

		n = h_channel_receive_copy(channel, bytes, room, H_NOWAIT);
		MUST(n <= (ssize_t)room);
		free(bytes);
		return;
	}
	if (h_channel_receive(channel, &m, H_NOWAIT) != 0)
		return;
	MUST(m.length <= LIMIT);
	if (m.length)
		memcpy(copy, m.data, m.length);
	if (how & 0x10)
		h_channel_reply(channel, &m, "reply", 5, H_NOWAIT);
	h_channel_release(channel, &m);
	/* Once more does no harm. */
	h_channel_release(channel, &m);
}

static void send_something(struct fuzz *f, uint8_t how)
{
	static char data[1500];
	size_t length = fuzz_u16(f) % sizeof(data);

	if (channel && how & 0x20)
		h_channel_request_send(channel, data, length % LIMIT, &request, H_NOWAIT);
	else if (channel && how & 0x10)
		h_channel_request_cancel(channel, request);
	else if (channel)
		h_channel_send(channel, data, length, H_NOWAIT);
	else if (how & 0x40)
		h_stream_flush(sender, H_NOWAIT);
	else
		h_stream_send(sender, data, length, H_NOWAIT);
}

static void step(struct fuzz *f)
{
	uint8_t what = fuzz_u8(f);

	switch (what & 7) {
	case 0:
	case 1:
	case 2:
		send_record(f);
		break;
	case 3:
		send_credit(f);
		break;
	case 4:
	case 5:
		if (channel)
			channel_receive(what);
		else if (receiver)
			receive(what);
		break;
	case 6:
		if (channel || sender)
			send_something(f, what);
		break;
	default:
		h_manager_poll(manager);
		learn_larger();
	}
	if (receiver)
		check_receiver(receiver);
	if (channel)
		check_channel(channel);
	if (channel || sender)
		check_sender(channel ? channel->sender : sender);
}

/* ---- making and ending --------------------------------------------------- */

/* A channel's card: two seeds, its limit, the kind of connection, a check word. */
static void join(struct fuzz *f)
{
	struct h_channel_seed card = { 0 };
	struct h_seed seed;
	uint8_t how = fuzz_u8(f);

	own_seed(f, H_SEED_STREAM, &seed);
	memcpy(card.bytes, seed.bytes, H_SEED_BYTES);
	own_seed(f, H_SEED_CREDIT, &seed);
	memcpy(card.bytes + H_SEED_BYTES, seed.bytes, H_SEED_BYTES);
	h__put(card.bytes + 2 * H_SEED_BYTES, fuzz_number(f, LIMIT), 8);
	h__put(card.bytes + 2 * H_SEED_BYTES + 8, how == 0xff ? 1 : H_KIND_CHANNEL, 4);
	if (how == 0xfe)
		fuzz_bytes(f, card.bytes, sizeof(card));
	h__put(card.bytes + 2 * H_SEED_BYTES + 12,
	       h__check_word(card.bytes, 2 * H_SEED_BYTES + 12) + (how == 0xfd), 4);
	h_channel_join(channel, &card);
}

static void make(struct fuzz *f)
{
	const struct h_stream_attr at = {
		.buffers = BUFFERS, .buffer_size = SIZE, .max_buffer_size = SIZE * 4,
	};
	const struct h_channel_attr channel_at = {
		.max_message = LIMIT, .buffers = at.buffers, .buffer_size = at.buffer_size,
		.max_buffer_size = at.max_buffer_size,
	};
	struct h_channel_seed card;
	struct h_seed seed;

	switch (fuzz_u8(f) % 3) {
	case 0:
		MUST(!h_stream_receiver_create(manager, &at, &receiver));
		h_stream_receiver_seed(receiver, &seed);
		raw.knows_into = learn(seed.bytes, H_SEED_STREAM, &raw.into);
		break;
	case 1:
		own_seed(f, H_SEED_STREAM, &seed);
		if (h_stream_sender_create(manager, &seed, &sender))
			sender = NULL;
		learn_larger();
		break;
	default:
		MUST(!h_channel_create(manager, &channel_at, &channel));
		h_channel_seed(channel, &card);
		raw.knows_into = learn(card.bytes, H_SEED_STREAM, &raw.into);
		raw.knows_theirs = learn(card.bytes + H_SEED_BYTES, H_SEED_CREDIT,
					 &raw.theirs);
		join(f);
	}
}

static void end(void)
{
	if (receiver)
		MUST(!h_stream_receiver_destroy(receiver));
	if (sender)
		h_stream_sender_close(sender, H_NOWAIT);
	if (channel)
		h_channel_close(channel, H_NOWAIT);
	receiver = NULL;
	sender = NULL;
	channel = NULL;
	MUST(!manager->receivers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	int n;

	memset(h_area_addr(raw.area), 0, 16384);
	raw.knows_into = false;
	raw.knows_larger = false;
	raw.knows_theirs = false;
	records_sent = 0;
	message_left = 0;
	request = 0;
	make(&f);
	for (n = 0; f.left && n < STEPS; n++)
		step(&f);
	end();
	return 0;
}
