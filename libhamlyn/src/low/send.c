// SPDX-License-Identifier: MIT
/* Sending what the inline fast path in hamlyn.h does not. */
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "low/device.h"

/*
 * The holder is another thread of this process, a few dozen instructions from the unlock
 * unless it was preempted. Which one it is the lock does not say: that would be an
 * instruction of each message.
 */
int h__terminus_lock_wait(struct h_terminus *t)
{
	struct h_wait wait = { 0 };

	do {
		while (h__read_once(&t->lock))
			if (h__wait_to_send(&wait))
				return 0;
	} while (__atomic_exchange_n(&t->lock, 1, __ATOMIC_ACQUIRE));
	return 1;
}

/*
 * All termini of the device: fdatasync() is a shorter way into the kernel than
 * ioctl(). Not the C library's: that is a cancellation point.
 */
static int kick_all(const struct h_terminus *t)
{
	int ret;

	do {
		ret = (int)syscall(SYS_fdatasync, t->fd);
	} while (ret < 0 && (errno == EAGAIN || errno == EINTR));
	return ret < 0 ? -errno : 0;
}

int h__terminus_kick(struct h_terminus *t)
{
	int ret;

	/* If another one comes or goes meanwhile, it is kicked too, or is not. */
	if (t->flags & H_TERMINUS_FSYNC && !h__read_once(&t->next) && !h__read_once(&t->prev))
		return kick_all(t);
	/* 1: the kernel left some for the next call. EINTR: so did a signal. */
	do {
		ret = ioctl(t->fd, HAMLYN_IOC_KICK, (unsigned long)t->id);
	} while (ret > 0 || (ret < 0 && errno == EINTR));
	return ret < 0 ? -errno : 0;
}

/* Terminus locked, queue full as far as we knew: 1 if there is room now. */
int h__terminus_refresh(struct h_terminus *t)
{
	t->completed = h__load_acquire(&t->status->completed);	/* B6 */
	if (t->producer - t->completed <= t->mask)
		return 1;
	/* Full and asleep: a kick of another thread may not have come yet. */
	if (h__read_once(&t->status->need_kick)) {
		h__terminus_kick(t);
		t->completed = h__load_acquire(&t->status->completed);
	}
	return t->producer - t->completed <= t->mask;
}

int h__msg_check(const struct h_terminus *t, const struct h_msg *m,
		 uint64_t *length)
{
	uint64_t n = m->iov ? 0 : m->length;
	int i;

	if (m->flags & ~(HAMLYN_TRB_NO_NOTIFY | HAMLYN_TRB_QUIET) ||
	    (m->ticket->flags && !h__ticket_imported(m->ticket)) ||
	    m->iovcnt < 0 || (m->iovcnt && !m->iov))
		return -EINVAL;
	if (m->iovcnt > HAMLYN_MAX_FRAGMENTS)
		return -EMSGSIZE;
	for (i = 0; i < m->iovcnt; i++) {
		if (m->iov[i].iov_len > HAMLYN_MAX_MESSAGE - n)
			return -EMSGSIZE;
		n += m->iov[i].iov_len;
	}
	if (m->meta_length > HAMLYN_MAX_METADATA || n > HAMLYN_MAX_MESSAGE)
		return -EMSGSIZE;
	if (m->ticket->meta_index == HAMLYN_META_FAST) {
		if (m->meta_length || m->delta)
			return -EINVAL;
		if (n > t->dev->limits.packet_size)
			return -EMSGSIZE;
	} else if (m->word) {
		return -EINVAL;
	}
	if (m->offset > m->ticket->length ||
	    n > m->ticket->length - m->offset ||
	    m->ticket->base > UINT64_MAX - m->offset)
		return -ERANGE;
	*length = n;
	return 0;
}

void h__msg_to_trb(const struct h_msg *m, uint64_t length,
		   struct hamlyn_trb *trb)
{
	const struct h_ticket *k = m->ticket;

	*trb = (struct hamlyn_trb) {
		.host = k->host,
		.slot = k->slot,
		.key = k->key,
		.offset = k->base + m->offset,
		.length = length,
		.delta = m->delta,
		.meta_index = k->meta_index,
		.word = m->word,
		.meta_length = m->meta_length,
		.flags = m->flags | (k->meta_index == HAMLYN_META_FAST ?
				     HAMLYN_TRB_FAST : 0),
	};
	if (k->flags) {
		trb->flags |= HAMLYN_TRB_TICKET;
		trb->ticket = h__ticket_index(k);
	}
}

static int one_fragment(const struct h_terminus *t, const void *p, size_t n,
			struct hamlyn_fragment *f)
{
	uint64_t offset;
	int tag = h__terminus_look(t, p, n, &offset);

	if (tag < 0)
		return tag;
	f->tag = tag;
	f->reserved = 0;
	f->offset = offset;
	f->length = n;
	return 0;
}

int h__msg_fragments(const struct h_terminus *t, const struct h_msg *m,
		     struct hamlyn_fragment *f)
{
	int i, n = 0;

	if (!m->iov) {
		i = one_fragment(t, m->data, m->length, f);
		return i ? i : 1;
	}
	for (i = 0; i < m->iovcnt; i++) {
		int err;

		if (!m->iov[i].iov_len)
			continue;
		err = one_fragment(t, m->iov[i].iov_base, m->iov[i].iov_len,
				   &f[n++]);
		if (err)
			return err;
	}
	return n;
}

static void copy_in(unsigned char *to, const struct h_msg *m)
{
	int i;

	if (!m->iov) {
		memcpy(to, m->data, m->length);
		return;
	}
	for (i = 0; i < m->iovcnt; i++) {
		memcpy(to, m->iov[i].iov_base, m->iov[i].iov_len);
		to += m->iov[i].iov_len;
	}
}

static int64_t send_mapped(struct h_terminus *t, const struct h_msg *m,
			   uint64_t length)
{
	struct hamlyn_fragment f[HAMLYN_MAX_FRAGMENTS];
	size_t room = h__msg_room(t, m);
	struct hamlyn_trb *trb, head;
	unsigned char *tail;
	int n = 0;

	if (length > room) {
		n = h__msg_fragments(t, m, f);
		if (n < 0)
			return n;
		if ((size_t)n * sizeof(f[0]) > room)
			return -EMSGSIZE;
	}
	if (!h__terminus_lock(t))
		return -EAGAIN;
	trb = h__terminus_entry(t);
	if (!trb) {
		h__terminus_unlock(t);
		return -EAGAIN;
	}
	h__msg_to_trb(m, length, &head);
	head.fragments = n;
	/* The sequence last, and by itself: any value may be the one. */
	memcpy(trb, &head, offsetof(struct hamlyn_trb, sequence));
	tail = (unsigned char *)(trb + 1);
	if (m->meta_length) {
		memcpy(tail, m->meta, m->meta_length);
		tail += HAMLYN_TRB_METADATA_SPACE;
	}
	if (n)
		memcpy(tail, f, (size_t)n * sizeof(f[0]));
	else if (length)
		copy_in(tail, m);
	return h__terminus_post(t, trb);
}

int64_t h_send(struct h_terminus *t, const struct h_msg *m)
{
	uint64_t length;
	int err = h__msg_check(t, m, &length);

	if (err)
		return err;
	if (t->priv)
		return t->dev->ops->send(t, m);
	return send_mapped(t, m, length);
}

static int64_t send_general(struct h_terminus *t, const struct h_ticket *ticket,
			    const void *data, size_t length, const void *meta,
			    size_t meta_length)
{
	struct h_msg m = {
		.ticket = ticket,
		.data = data,
		.length = length,
		.meta = meta,
		.meta_length = meta_length,
	};

	return h_send(t, &m);
}

int64_t h__send_slow(struct h_terminus *t, const struct h_ticket *ticket,
		     const void *data, size_t length, const void *meta,
		     size_t meta_length)
{
	size_t room = t->inline_max -
		      (meta_length ? HAMLYN_TRB_METADATA_SPACE : 0);

	/* What else comes here and is short has metadata. */
	if (!t->priv || length > room || length > ticket->length ||
	    ticket->meta_index == HAMLYN_META_FAST || ticket->flags ||
	    meta_length > HAMLYN_MAX_METADATA)
		return send_general(t, ticket, data, length, meta, meta_length);
	return t->dev->ops->send_meta(t, ticket, data, length, meta,
				      meta_length);
}

int64_t h__send_word_slow(struct h_terminus *t, const struct h_ticket *ticket,
			  uint64_t word)
{
	struct h_msg m = { .ticket = ticket, .word = word };

	/* Without a word h_send() would take it for an empty message. */
	if (ticket->meta_index != HAMLYN_META_FAST)
		return -EINVAL;
	return h_send(t, &m);
}

int h_send_wait(struct h_terminus *t, int64_t handle, int64_t timeout_ns)
{
	int64_t deadline = h__deadline(timeout_ns);
	struct h_wait wait = { 0 };
	int ret;

	for (;;) {
		ret = h_send_done(t, handle);
		if (ret)
			return h__taken(ret);
		/* Before each yield or nap, and once: in inline mode it may wait out a pause. */
		if (wait.rounds % H_ROUNDS_PER_CLOCK == H_ROUNDS_PER_CLOCK - 1 &&
		    h__read_once(&t->status->need_kick) &&
		    ioctl(t->fd, HAMLYN_IOC_KICK, (unsigned long)t->id) < 0 &&
		    errno != EINTR)
			return -errno;
		if (h__wait_more(&wait, deadline))
			return timeout_ns == H_NOWAIT ? -EAGAIN : -ETIMEDOUT;
	}
}
