// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes on their way to a peer, in a ring. TCP refers to them instead of copying them, and does so
 * until they have been acknowledged. What it has been given is never written to before that: a
 * chunk of the ring's memory is used again when TCP refers to it no more. When too much of the ring
 * waits for that, a chunk is TCP's for good, and another one takes its place.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/uio.h>
#include <net/tcp.h>

#include "compat/compat.h"
#include "fabric/departures.h"

#define ORDER		get_order(HML_CHUNK_BYTES)
#define GIVEN_BYTES	SZ_4K	/* fewer cost less to copy */

/* The administrator's memory. */
int hml_departures_init(struct hml_departures *d)
{
	u32 i;

	for (i = 0; i < HML_CHUNKS; i++) {
		d->chunks[i] = alloc_pages(GFP_KERNEL_ACCOUNT | __GFP_COMP, ORDER);
		if (!d->chunks[i])
			return -ENOMEM;
	}
	return 0;
}

void hml_departures_free(struct hml_departures *d)
{
	u32 i;

	for (i = 0; i < HML_CHUNKS; i++)
		if (d->chunks[i])
			put_page(d->chunks[i]);
}

/**
 * hml_departures_room() - bytes that can be put in
 * @d: the ring
 * @head: the first that TCP has not taken
 * @tail: behind the last
 *
 * Return: how many.
 */
u64 hml_departures_room(const struct hml_departures *d, u64 head, u64 tail)
{
	const u64 most = HML_DEPARTURES_BYTES - HML_DEPARTURES_KEPT;

	return min(most - (tail - head), HML_DEPARTURES_BYTES - (tail - d->base));
}

static u32 chunk_of(u64 at)
{
	return at / HML_CHUNK_BYTES % HML_CHUNKS;
}

/**
 * hml_departures_at() - where a byte is
 * @d: the ring
 * @at: which byte
 * @n: how many are wanted; becomes how many of them there are in one piece
 *
 * Return: the byte.
 */
u8 *hml_departures_at(const struct hml_departures *d, u64 at, u32 *n)
{
	u32 offset = at % HML_CHUNK_BYTES;

	*n = min_t(u32, *n, HML_CHUNK_BYTES - offset);
	return (u8 *)page_address(d->chunks[chunk_of(at)]) + offset;
}

static int copy(struct hml_departures *d, struct sock *sk, u64 at, u32 n, bool more)
{
	struct msghdr msg = {
		.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0),
	};
	struct kvec vec = { .iov_base = hml_departures_at(d, at, &n), .iov_len = n };

	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &vec, 1, n);
	return tcp_sendmsg_locked(sk, &msg, n);
}

/**
 * hml_departures_give() - give bytes to TCP
 * @d: the ring
 * @sk: the socket, with its spin lock, and not owned by a task
 * @at: the first of them
 * @n: how many, all of which are there
 *
 * Return: bytes that TCP took, or an error.
 */
int hml_departures_give(struct hml_departures *d, struct sock *sk, u64 at, u32 n)
{
	u32 given = 0, part;
	bool more;
	int ret;

	do {
		part = n - given;
		hml_departures_at(d, at + given, &part);
		more = given + part < n;
		if (part < GIVEN_BYTES)
			ret = copy(d, sk, at + given, part, more);
		else
			ret = hml_compat_give_pages(sk, d->chunks[chunk_of(at + given)],
						    (at + given) % HML_CHUNK_BYTES, part, more);
		if (ret > 0)
			given += ret;
	} while (ret == part && more);
	return given ?: ret;
}

/*
 * Has another one taken its place? All bytes of a chunk go through TCP, in turn: what it holds of
 * those that were replaced is bounded by its send buffer.
 */
static bool replace(struct page **chunk)
{
	const gfp_t gfp = GFP_NOWAIT | __GFP_COMP | __GFP_NOWARN | __GFP_NORETRY;
	struct page *fresh = alloc_pages(gfp, ORDER);

	if (!fresh)
		return false;
	put_page(*chunk);
	*chunk = fresh;
	return true;
}

/**
 * hml_departures_reclaim() - look for chunks that TCP is done with
 * @d: the ring
 * @head: the first byte that TCP has not taken
 *
 * By whoever gives bytes, who does not sleep. If there is no memory to replace chunks with they are
 * looked at later.
 *
 * Return: the new @d->base.
 */
u64 hml_departures_reclaim(struct hml_departures *d, u64 head)
{
	struct page **chunk;
	u64 base;

	for (base = d->base; base + HML_CHUNK_BYTES <= head; base += HML_CHUNK_BYTES) {
		chunk = &d->chunks[chunk_of(base)];
		/* B23: nobody can get a reference but who has one. */
		if (page_count(*chunk) > 1 &&
		    (head - base <= HML_DEPARTURES_KEPT || !replace(chunk)))
			break;
	}
	return base;
}

/* Where a new connection begins: in a chunk of which the last one, up to @head, has nothing. */
u64 hml_departures_fresh(u64 head)
{
	return round_up(head, HML_CHUNK_BYTES);
}
