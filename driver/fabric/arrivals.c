// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes that have come from a peer, and are not taken yet. Short ones are copied out of the socket.
 * Of long ones TCP's buffers are kept, for as long as frames are taken from them, so that a payload
 * is copied once, to where it belongs. Both together are a memory like others, in which frames
 * follow each other; headers are read from a copy, because a buffer may be a page of someone's on
 * this host, which changes at any time.
 */
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "hml.h"
#include "fabric/arrivals.h"

#define READ_BYTES	SZ_64K	/* and a frame: taken without losing the processor */
#define KEPT_BYTES	SZ_4K	/* shorter pieces cost less to copy than to keep */
#define MOST_EXTENTS	(HML_ARRIVALS_KEPT * 4)

int hml_arrivals_init(struct hml_arrivals *a, u32 packet_size)
{
	a->size = READ_BYTES + HML_WIRE_MOST_HEADER + packet_size;
	a->bytes = kvmalloc(a->size, GFP_KERNEL_ACCOUNT);
	a->mem = kvzalloc(struct_size(a->mem, extents, MOST_EXTENTS), GFP_KERNEL_ACCOUNT);
	return a->bytes && a->mem ? 0 : -ENOMEM;
}

void hml_arrivals_free(struct hml_arrivals *a)
{
	kvfree(a->mem);
	kvfree(a->bytes);
}

/* What there was is of no use any more. No buffer is kept between two reads. */
void hml_arrivals_begin(struct hml_arrivals *a)
{
	a->copied = 0;
	a->mem->length = 0;
	a->mem->count = 0;
}

/* ---- out of the socket ---- */

static bool add_extent(struct hml_mem *mem, u8 *va, u32 n)
{
	if (!n)
		return true;
	if (!va || mem->count == MOST_EXTENTS)
		return false;
	mem->extents[mem->count++] = (struct hml_extent) { .va = va, .start = mem->length };
	mem->length += n;
	return true;
}

/* All of it or nothing. A list of buffers, as some drivers make, is not looked into. */
static bool add_buffer(struct hml_mem *mem, const struct sk_buff *skb, u32 offset, u32 n)
{
	const struct skb_shared_info *shared = skb_shinfo(skb);
	u32 have = skb_headlen(skb), i, part;

	if (offset < have) {
		part = min(n, have - offset);
		if (!add_extent(mem, skb->data + offset, part))
			return false;
		offset += part;
		n -= part;
	}
	for (i = 0, offset -= have; n && i < shared->nr_frags; i++) {
		const skb_frag_t *frag = &shared->frags[i];
		u8 *va = skb_frag_address_safe(frag);

		have = skb_frag_size(frag);
		if (offset < have) {
			part = min(n, have - offset);
			if (!add_extent(mem, va ? va + offset : NULL, part))
				return false;
			offset += part;
			n -= part;
		}
		offset -= have;
	}
	return !n;
}

static bool keep(struct hml_arrivals *a, struct sk_buff *skb, u32 offset, u32 n)
{
	struct hml_mem *mem = a->mem;
	u32 count = mem->count;
	u64 length = mem->length;
	struct sk_buff *clone;

	if (a->kept_count == HML_ARRIVALS_KEPT)
		return false;
	/* The buffer itself is freed once it has been read; what is in it, with the last clone. */
	clone = skb_clone(skb, GFP_ATOMIC | __GFP_NOWARN);
	if (!clone)
		return false;
	if (add_buffer(mem, clone, offset, n)) {
		a->kept[a->kept_count++] = clone;
		return true;
	}
	consume_skb(clone);
	mem->count = count;
	mem->length = length;
	return false;
}

/* To the others that were copied, which come first. */
static bool copy(struct hml_arrivals *a, const struct sk_buff *skb, u32 offset, u32 n)
{
	struct hml_mem *mem = a->mem;

	if (skb_copy_bits(skb, offset, a->bytes + a->copied, n))
		return false;
	mem->extents[0] = (struct hml_extent) { .va = a->bytes };
	mem->count = 1;
	a->copied += n;
	mem->length = a->copied;
	return true;
}

static int take(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset, size_t length)
{
	struct hml_arrivals *a = desc->arg.data;
	u32 n = min_t(size_t, length, desc->count);
	bool kept = (a->kept_count || n >= KEPT_BYTES) && keep(a, skb, offset, n);

	if (!kept && a->kept_count) {
		/* There is no way to it yet. */
		a->more = true;
		return 0;
	}
	if (!kept && !copy(a, skb, offset, n))
		return 0;
	desc->count -= n;
	return n;
}

/**
 * hml_arrivals_read_locked() - the same, by whoever has the socket's lock already
 * @a: the arrivals
 * @sk: the socket, locked as in a softirq, and not owned by a task
 *
 * Return: as hml_arrivals_read().
 */
u32 hml_arrivals_read_locked(struct hml_arrivals *a, struct sock *sk)
{
	read_descriptor_t desc = { .count = a->size - a->copied, .arg.data = a };
	int n;

	a->more = false;
	n = tcp_read_sock(sk, &desc, take);
	if (!desc.count)
		a->more = true;
	return max(n, 0);
}

/**
 * hml_arrivals_read() - take bytes from a socket
 * @a: the arrivals
 * @sk: the socket
 *
 * No frame is looked at while the socket is held: its lock is taken by softirqs, and no other lock
 * of ours may be taken inside of it.
 *
 * Return: bytes that came.
 */
u32 hml_arrivals_read(struct hml_arrivals *a, struct sock *sk)
{
	u32 n = 0;

	local_bh_disable();
	bh_lock_sock(sk);
	/* By a worker, which makes or ends the connection. */
	if (sock_owned_by_user(sk))
		a->more = true;
	else
		n = hml_arrivals_read_locked(a, sk);
	bh_unlock_sock(sk);
	local_bh_enable();
	return n;
}

/* ---- frames ---- */

/**
 * hml_arrivals_header() - our own copy of some bytes
 * @a: the arrivals
 * @at: the first of them
 * @n: how many, at most HML_WIRE_MOST_CONTROL, all of which have come
 *
 * Return: the copy, until the next call or hml_arrivals_done(). What is in it does not change.
 *	What cannot be read is 0, which is no frame.
 */
const u8 *hml_arrivals_header(struct hml_arrivals *a, u32 at, u32 n)
{
	if (likely(at + n <= a->copied))
		return a->bytes + at;
	if (!hml_mem_read(a->header, a->mem, at, n))
		memset(a->header, 0, n);
	return a->header;
}

/**
 * hml_arrivals_payload() - where the payload of a packet is
 * @a: the arrivals
 * @at: its first byte
 * @n: bytes
 * @piece: for what @payload points to
 * @payload: set, but for its metadata
 */
void hml_arrivals_payload(const struct hml_arrivals *a, u32 at, u32 n, struct hml_piece *piece,
			  struct hml_payload *payload)
{
	if (likely(at + n <= a->copied)) {
		payload->flat = a->bytes + at;
		return;
	}
	*piece = (struct hml_piece) { .mem = a->mem, .offset = at, .length = n };
	payload->piece = piece;
}

/**
 * hml_arrivals_done() - frames have been taken
 * @a: the arrivals
 * @done: bytes of them
 *
 * What is left, less than a frame, is copied, so that TCP's buffers can go.
 */
void hml_arrivals_done(struct hml_arrivals *a, u32 done)
{
	u32 left = a->mem->length - done;
	u32 first = done < a->copied ? a->copied - done : 0;

	if (done && first)
		memmove(a->bytes, a->bytes + done, first);
	if (left > first && !hml_mem_read(a->bytes + first, a->mem, done + first, left - first))
		memset(a->bytes + first, 0, left - first);
	while (a->kept_count)
		consume_skb(a->kept[--a->kept_count]);
	a->copied = left;
	a->mem->extents[0] = (struct hml_extent) { .va = a->bytes };
	a->mem->count = !!left;
	a->mem->length = left;
}
