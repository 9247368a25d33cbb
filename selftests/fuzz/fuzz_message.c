// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagrams, tagged remote writes, groups and gathers from senders that have the keys
 * and say anything: what is handed out lies inside of the buffer and is what the NIC
 * has counted.
 */
#include <hamlyn/datagram.h>
#include <hamlyn/gather.h>
#include <hamlyn/group.h>
#include <hamlyn/tagged.h>

#include "fuzz_device.h"
#include "manager/manager.h"

#define LENGTH		700
#define TAGS		6
#define MEMBERS		3
#define STEPS		60

static struct h_dev *dev;
static struct h_manager *manager;	/* of who receives */
static struct h_terminus *raw;		/* of who sends */
static struct h_area *words_area;
static struct h_slot *words;		/* where a gather's root answers */

static struct h_datagram_receiver *datagram;
static struct h_tagged_receiver *tagged;
static struct h_group *group;
static struct h_gather *gather;
static struct h_gather_member *member;
static struct h_ticket to[MEMBERS + 1];
static uint32_t tos;
static struct h_ticket words_of_member;
static uint32_t sent, got;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct h_manager_attr attr = { .nq_entries = 64 };
	struct h_slot_attr at = { 0 };

	(void)argc;
	(void)argv;
	dev = fuzz_open_device("message");
	MUST(!h_manager_create(dev, &attr, &manager));
	MUST(!h_terminus_create(dev, NULL, &raw));
	MUST(!h_area_alloc(dev, 4096, &words_area));
	at.area = words_area;
	at.length = 2048;
	at.meta_area = words_area;
	at.meta_base = 2048;
	at.meta_count = 16;
	MUST(!h_slot_create(dev, &at, &words));
	return 0;
}

/* ---- any message --------------------------------------------------------- */

static size_t metadata(struct fuzz *f, unsigned char *meta, size_t length)
{
	struct h_ticket k;
	uint8_t how = fuzz_u8(f);

	memset(meta, 0, HAMLYN_MAX_METADATA);
	switch (how & 3) {
	case 0:
		return 0;
	case 1:	/* of a datagram */
		h__put(meta, how & 4 ? fuzz_number(f, LENGTH) : length, 4);
		h__put(meta + 4, how & 8 ? fuzz_number(f, LENGTH) : 0, 8);
		fuzz_bytes(f, meta + 12, how & 16 ? 48 : 0);
		return how & 32 ? fuzz_u8(f) % 61 : how & 16 ? 60 : 12;
	case 2:	/* of a member that greets, or leaves */
		MUST(!h_slot_ticket(words, 0, 8, HAMLYN_META_FAST, &k));
		k.slot += how == 0xfe;
		k.host += how == 0xfa;
		h_ticket_export(&k, meta);
		if (how & 4)
			h__put(meta, fuzz_u8(f), 4);
		return how & 8 ? 4 : H_TICKET_BYTES;
	}
	fuzz_bytes(f, meta, HAMLYN_MAX_METADATA);
	return how % 61;
}

static void send_one(struct fuzz *f)
{
	static unsigned char data[2048];
	unsigned char meta[HAMLYN_MAX_METADATA];
	uint8_t how = fuzz_u8(f);
	struct h_ticket k = to[fuzz_below(f, MEMBERS + 1) % tos];
	struct h_msg m = { .ticket = &k, .data = data };

	m.length = how & 1 ? fuzz_number(f, LENGTH) % sizeof(data) : k.length % 512;
	k.length = UINT64_MAX / 4;
	if (how & 2)
		k.meta_index = fuzz_below(f, 3) ? fuzz_u8(f) & 15 : HAMLYN_META_FAST;
	if (how & 4)
		k.base = fuzz_number(f, LENGTH);
	m.delta = how & 8 ? fuzz_u32(f) : 0;
	m.flags = how & 16 ? HAMLYN_TRB_NO_NOTIFY : 0;
	if (k.meta_index == HAMLYN_META_FAST)
		m.word = fuzz_u64(f);
	else
		m.meta_length = metadata(f, meta, m.length);
	m.meta = meta;
	sent += h_send(raw, &m) >= 0;
}

/* What a root would say to a member, and what it would not. */
static void send_word(struct fuzz *f)
{
	struct h_ticket k = words_of_member;

	k.meta_index = HAMLYN_META_FAST;
	h_send_word(raw, &k, (uint64_t)fuzz_u8(f) << 56 | fuzz_u32(f));
}

/* ---- what is received ---------------------------------------------------- */

static bool is_inside(const void *p, size_t n, const struct h_receiver *r, size_t length)
{
	const char *from = r->data, *at = p;

	return at >= from && at <= from + length && n <= (size_t)(from + length - at);
}

static void receive_datagram(uint8_t how)
{
	struct h_datagram out;
	struct h_seed seed;
	unsigned char sum = 0;
	size_t i;

	if (!h_datagram_receive(datagram, &out, H_NOWAIT)) {
		MUST(is_inside(out.data, out.length, (struct h_receiver *)datagram, LENGTH));
		MUST(out.offset + out.length <= LENGTH);
		MUST(out.length == ((struct h_receiver *)datagram)->metadata->length);
		for (i = 0; i < out.length; i++)
			sum ^= ((const unsigned char *)out.data)[i];
		got += 1 + (sum & 0);
		MUST(got <= sent);
	}
	if (how & 0x40)
		h_datagram_release(datagram);
	if (how == 0xff)
		MUST(!h_datagram_rekey(datagram, &seed));
	if (how == 0xfe)
		MUST(!h_datagram_revoke(datagram));
}

static void receive_tagged(struct fuzz *f, uint8_t how)
{
	uint32_t length;
	uint64_t tag;
	int ret;

	if (how & 0x40)
		ret = h_tagged_get_tag(tagged, &tag, &length, H_NOWAIT);
	else
		ret = h_tagged_get_specific_tag(tagged, fuzz_u64(f), &length, H_NOWAIT);
	MUST(ret == 0 || ret == -EAGAIN || ret == -EOVERFLOW);
	got += !ret;
	MUST(got <= sent);
	if (!ret)
		MUST(length <= LENGTH);
}

static void receive_gather(uint8_t how)
{
	const void *data;

	if (!h_gather_receive(gather, &data, H_NOWAIT))
		MUST(is_inside(data, 1, (struct h_receiver *)gather, 4096));
	if (how & 0x40)
		h_gather_release(gather);
}

static void receive(struct fuzz *f, uint8_t how)
{
	const void *data;

	h_manager_poll(manager);
	if (datagram)
		receive_datagram(how);
	if (tagged)
		receive_tagged(f, how);
	if (group && !h_group_receive(group, &data, H_NOWAIT)) {
		MUST(is_inside(data, LENGTH, (struct h_receiver *)group, LENGTH));
		if (how & 0x40)
			MUST(!h_group_reset(group, 0));
	}
	if (group && how == 0xff)
		h_group_reset(group, H_GROUP_NEW_KEY);
	if (gather)
		receive_gather(how);
	if (member && how & 0x40)
		h_gather_send(member, "a round", how & 7, H_NOWAIT);
	if (member)
		h_gather_wait(member, H_NOWAIT);
}

/* ---- making and ending --------------------------------------------------- */

static void ticket_of(const struct h_seed *seed)
{
	struct h_seed_fields fields;

	MUST(!h__seed_get(seed, seed->bytes[5], &fields));
	to[tos++] = fields.ticket;
}

static void make_member(void)
{
	struct h_seed_fields fields = {
		.kind = H_SEED_GATHER, .entries = 5, .more = 64,
	};
	struct h_seed seed;

	MUST(!h_slot_ticket(words, 0, 64, 2, &fields.ticket));
	h__seed_put(&seed, &fields);
	MUST(!h_gather_join(manager, &seed, &member));
	MUST(!h_slot_ticket(((struct h_receiver *)member)->slot, 0, 0, HAMLYN_META_FAST,
			    &words_of_member));
	to[tos++] = words_of_member;
}

static void make(struct fuzz *f)
{
	const struct h_tagged_attr tagged_at = {
		.length = LENGTH, .arrivals = 8, .max_tags = TAGS,
	};
	const struct h_datagram_attr datagram_at = { .length = LENGTH };
	struct h_share share;
	struct h_seed seed;
	uint32_t i;

	tos = 0;
	switch (fuzz_u8(f) % 5) {
	case 0:
		MUST(!h_datagram_receiver_create(manager, &datagram_at, &datagram));
		h_datagram_receiver_seed(datagram, &seed);
		ticket_of(&seed);
		break;
	case 1:
		MUST(!h_tagged_receiver_create(manager, &tagged_at, &tagged));
		h_tagged_receiver_seed(tagged, &seed);
		ticket_of(&seed);
		break;
	case 2:
		MUST(!h_group_create(manager, LENGTH, NULL, &group));
		h_group_share(group, &share);
		to[tos++] = share.ticket;
		break;
	case 3:
		MUST(!h_gather_create(manager, MEMBERS, NULL, 100, &gather));
		for (i = 0; i < MEMBERS; i++) {
			MUST(!h_gather_seed(gather, i, &seed));
			ticket_of(&seed);
		}
		break;
	default:
		make_member();
	}
}

static void end(void)
{
	MUST(!h_datagram_receiver_destroy(datagram));
	MUST(!h_tagged_receiver_destroy(tagged));
	MUST(!h_group_destroy(group));
	MUST(!h_gather_destroy(gather));
	MUST(!h_gather_leave(member));
	datagram = NULL;
	tagged = NULL;
	group = NULL;
	gather = NULL;
	member = NULL;
	MUST(!manager->receivers);
	/* Nothing of it is left for the next one. */
	h_manager_poll(manager);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	int n;

	sent = 0;
	got = 0;
	make(&f);
	for (n = 0; f.left && n < STEPS; n++) {
		uint8_t what = fuzz_u8(&f);

		if ((what & 3) == 3)
			receive(&f, fuzz_u8(&f));
		else if (what == 0x80 && member)
			send_word(&f);
		else
			send_one(&f);
	}
	end();
	return 0;
}
