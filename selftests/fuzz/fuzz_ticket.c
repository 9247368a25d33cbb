// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tickets, seeds and shares as bytes, and tickets as files: what is taken for one, and
 * what becomes of who uses it. The receiver's memory stays as it is: nobody has its key.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include <hamlyn/barrier.h>
#include <hamlyn/channel.h>
#include <hamlyn/datagram.h>
#include <hamlyn/gather.h>
#include <hamlyn/group.h>
#include <hamlyn/stream.h>
#include <hamlyn/tagged.h>

#include "fuzz_device.h"
#include "manager/manager.h"

#define GUARD		0xa5
#define AREA		4096
#define PARTS		8

static struct h_dev *dev;
static struct h_manager *manager;
static struct h_slot_attr at = { .length = 1024, .base = 512, .meta_count = 4 };
static struct h_slot *slot;
static struct h_ticket good;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	dev = fuzz_open_device("ticket");
	MUST(!h_manager_create(dev, NULL, &manager));
	MUST(!h_area_alloc(dev, AREA, &at.area));
	MUST(!h_area_alloc(dev, AREA, &at.meta_area));
	memset(h_area_addr(at.area), GUARD, AREA);
	MUST(!h_slot_create(dev, &at, &slot));
	MUST(!h_slot_ticket(slot, 0, 0, 0, &good));
	return 0;
}

static void check_guards(void)
{
	static uint8_t guards[AREA], none[AREA];

	memset(guards, GUARD, sizeof(guards));
	MUST(!memcmp(h_area_addr(at.area), guards, AREA));
	MUST(!memcmp(h_area_addr(at.meta_area), none, AREA));
}

/* ---- tickets ------------------------------------------------------------- */

/* A ticket for this slot, but for its key and what else the input says. */
static void near_ticket(struct fuzz *f, struct h_ticket *k)
{
	uint8_t how = fuzz_u8(f);

	*k = good;
	k->key ^= 1 | (uint64_t)how << 8;
	if (how & 1)
		k->slot = fuzz_u32(f);
	if (how & 2)
		k->host = fuzz_u8(f) & 1;
	if (how & 4)
		k->base = fuzz_number(f, 1024);
	if (how & 8)
		k->length = fuzz_number(f, 1024);
	if (how & 16)
		k->meta_index = how & 32 ? HAMLYN_META_FAST : fuzz_u32(f);
}

/* Do not let chance have the right key. */
static bool is_guess(const struct h_ticket *k)
{
	return k->key != good.key;
}

static void use_ticket(struct fuzz *f, const struct h_ticket *k)
{
	const struct h_msg msg = {
		.ticket = k, .data = "0123456789abcdef", .length = fuzz_below(f, 17),
		.offset = fuzz_number(f, 1024), .delta = fuzz_u8(f) & 3,
		.flags = fuzz_u8(f) & 7, .meta = "meta", .meta_length = fuzz_u8(f) & 4,
	};

	if (!is_guess(k))
		return;
	h_send(manager->terminus, &msg);
	h_send_msg(manager->terminus, k, "data", 4, NULL, 0);
	h_send_word(manager->terminus, k, 7);
}

static void ticket_bytes(struct fuzz *f)
{
	unsigned char bytes[H_TICKET_BYTES + 8], again[H_TICKET_BYTES];
	size_t length = fuzz_below(f, sizeof(bytes) + 1);
	struct h_ticket k, back;
	uint8_t how = fuzz_u8(f);

	fuzz_bytes(f, bytes, sizeof(bytes));
	if (how & 1) {
		near_ticket(f, &k);
		h_ticket_export(&k, bytes);
		bytes[fuzz_below(f, H_TICKET_BYTES)] ^= fuzz_u8(f);
	}
	if (how & 2)
		h__put(bytes + H_TICKET_BYTES - 4,
		       h__check_word(bytes, H_TICKET_BYTES - 4), 4);
	if (h_ticket_import(bytes, length, &k))
		return;
	MUST(length >= H_TICKET_BYTES && !k.flags);
	h_ticket_export(&k, again);
	MUST(!memcmp(again, bytes, H_TICKET_BYTES));
	MUST(!h_ticket_import(again, sizeof(again), &back));
	MUST(!memcmp(&k, &back, sizeof(k)));
	use_ticket(f, &k);
}

/* ---- seeds --------------------------------------------------------------- */

static void share_seed(struct fuzz *f, const struct h_seed *seed)
{
	struct h_share share, parts[PARTS];
	uint32_t n = fuzz_below(f, PARTS + 1), i;
	uint64_t length = 0, counter = 0, lengths[PARTS], all;

	if (h_share_import(seed, &share))
		return;
	all = share.counter;
	MUST(all && all <= 1ull << 32);
	for (i = 0; i < n; i++)
		lengths[i] = fuzz_number(f, share.ticket.length);
	if (!h_share_split(&share, n, fuzz_u8(f) & 1 ? lengths : NULL, parts)) {
		for (i = 0; i < n; i++) {
			MUST(parts[i].ticket.base == share.ticket.base + length);
			MUST(parts[i].counter);
			length += parts[i].ticket.length;
			counter += parts[i].counter;
		}
		MUST(length == share.ticket.length && counter == all && !share.counter);
		share = parts[0];
	}
	if (is_guess(&share.ticket))
		h_share_send(manager, &share, "data", 4, H_NOWAIT);
}

static void message_seed(const struct h_seed *seed)
{
	struct h_datagram_address datagram;
	struct h_tagged_address tagged;

	if (!h_datagram_resolve(seed, &datagram) && is_guess(&datagram.ticket))
		h_datagram_send(manager, &datagram, 8, "data", 4, &datagram, H_NOWAIT);
	if (!h_tagged_resolve(seed, &tagged) && is_guess(&tagged.ticket))
		h_tagged_send(manager, &tagged, 8, "data", 4, 9, H_NOWAIT);
}

static void end_point_seed(const struct h_seed *seed)
{
	struct h_gather_member *member;
	struct h_stream_sender *sender;
	struct h_barrier *barrier;

	if (!h_gather_join(manager, seed, &member)) {
		h_gather_send(member, "data", 4, H_NOWAIT);
		MUST(!h_gather_leave(member));
	}
	if (!h_stream_sender_create(manager, seed, &sender)) {
		h_stream_send(sender, "data", 4, H_NOWAIT);
		h_stream_flush(sender, H_NOWAIT);
		h_stream_sender_close(sender, H_NOWAIT);
	}
	if (!h_barrier_join(manager, seed, &barrier)) {
		h_barrier_wait(barrier, H_NOWAIT);
		h_barrier_destroy(barrier);
	}
}

static void seed_bytes(struct fuzz *f)
{
	struct h_seed_fields fields = {}, back, fore;
	uint8_t how = fuzz_u8(f);
	struct h_seed seed;

	fuzz_bytes(f, seed.bytes, sizeof(seed));
	if (how & 1) {
		near_ticket(f, &fields.ticket);
		fields.kind = 1 + fuzz_below(f, 8);
		fields.entries = how & 2 ? 1u << fuzz_below(f, 12) : fuzz_u32(f);
		fields.buffer = how & 4 ? 1u << fuzz_below(f, 22) : fuzz_u32(f);
		fields.more = fuzz_number(f, 1024);
		if (how & 8)
			fields.ticket.length = (uint64_t)fields.entries * fields.buffer;
		h__seed_put(&seed, &fields);
		MUST(!h__seed_get(&seed, fields.kind, &back));
		MUST(back.more == fields.more && back.entries == fields.entries &&
		     back.buffer == fields.buffer);
		seed.bytes[fuzz_below(f, H_SEED_BYTES)] ^= how & 16 ? fuzz_u8(f) : 0;
	}
	if (how & 32)
		h__put(seed.bytes + H_SEED_BYTES - 4,
		       h__check_word(seed.bytes, H_SEED_BYTES - 4), 4);
	if (!h__seed_get(&seed, seed.bytes[5], &fore) && !is_guess(&fore.ticket))
		return;
	share_seed(f, &seed);
	message_seed(&seed);
	if (how & 64)
		end_point_seed(&seed);
}

/* ---- tickets that are descriptors ---------------------------------------- */

static int ticket_file(struct fuzz *f)
{
	unsigned char bytes[128];
	size_t n = fuzz_below(f, sizeof(bytes));
	uint8_t how = fuzz_u8(f);
	int fd, real;

	MUST(!h_slot_ticket_fd(slot, 0, 16, &real));
	MUST(pread(real, bytes, 56, 0) == 56);
	close(real);
	/* As it is, but for one word, or anything. Never with the right key. */
	if (how & 1) {
		size_t word = fuzz_below(f, 7) * 8;
		uint64_t value = fuzz_number(f, 4096);

		memcpy(bytes + word, &value, 8);
		n = how & 2 ? n : 56;
	} else {
		fuzz_bytes(f, bytes, n);
	}
	bytes[24] ^= 1;
	fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	MUST(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	if (!(how & 4))
		fcntl(fd, F_ADD_SEALS,
		      F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	return fd;
}

static void ticket_fd(struct fuzz *f)
{
	int fd = ticket_file(f);
	struct h_watch *watch;
	struct h_ticket k;
	int err = h_terminus_import(manager->terminus, fd, &k);

	MUST(err == -EBADF || err == -ENOKEY);
	if (!h_watch_fd(dev, fd, manager->nq, 5, &watch))
		MUST(!h_unwatch(watch));
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };

	switch (fuzz_u8(&f) % 3) {
	case 0:
		ticket_bytes(&f);
		break;
	case 1:
		seed_bytes(&f);
		break;
	default:
		ticket_fd(&f);
	}
	h_manager_poll(manager);
	check_guards();
	return 0;
}
