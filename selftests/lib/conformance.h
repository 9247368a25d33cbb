/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the conformance tests share. One test is one row of
 * Documentation/conformance.rst: its name begins with the section of the paper
 * (h2_5_), or with beyond_, and the comment above it is the row's text. A SKIP
 * whose text begins with "kernel: ", "embedded: " or "tcp: " goes to that column.
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hamlyn_test.h"

/* A message arrives; its notification is the next one. */
static inline const char *cf_lands(struct ht_pair *p, const struct h_msg *m,
				   struct hamlyn_nq_entry *e)
{
	if (ht_send_sync(p->terminus, m) != 1)
		return "not sent";
	if (ht_recv(p->nq, e) != 1)
		return "not notified";
	return NULL;
}

/* Nothing of it arrives, and the sender is not told. The pair was cleared. */
static inline const char *cf_vanishes(struct ht_pair *p, const struct h_msg *m)
{
	if (ht_send_sync(p->terminus, m) != 1)
		return "the sender was told";
	if (ht_pair_fence(p))
		return "notified";
	if (!ht_pair_untouched(p))
		return "something landed";
	return NULL;
}

/*
 * Wrong keys are held against the user (kernel device) or the process: who
 * sends many does so in a process that calls this first.
 */
static inline int cf_be_somebody_else(bool embedded)
{
	uid_t uid = 40000 + (uid_t)getpid() % 20000;

	if (embedded || geteuid())
		return 0;
	return setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ? -errno : 0;
}

/* One descriptor over a socket. */
static inline int cf_pass_fd(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	return sendmsg(socket, &msg, 0) == 1 ? 0 : -errno;
}

static inline int cf_take_fd(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	int fd;

	if (recvmsg(socket, &msg, MSG_CMSG_CLOEXEC) != 1)
		return -EIO;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg || cmsg->cmsg_type != SCM_RIGHTS)
		return -EIO;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(int));
	return fd;
}

/* ---- two processes that flood each other ---- */

#define CF_FLOOD	512	/* messages of each */

struct cf_player {
	struct h_dev *dev;
	struct h_area *area;
	struct h_nq *nq;
	struct h_terminus *terminus;
	struct h_ticket own;
	size_t length;
};

static inline int cf_player_open(struct cf_player *p, const char *device)
{
	/* A queue so short that it is full all the time. */
	struct h_terminus_attr terminus = { .entries = 2 };
	struct h_slot_attr attr = { 0 };
	struct hamlyn_query q;
	struct h_slot *slot;

	if (h_open(device, &p->dev) || h_query(p->dev, &q))
		return -1;
	p->length = 2 * q.packet_size;
	if (h_area_alloc(p->dev, 2 * p->length, &p->area) ||
	    h_nq_create(p->dev, 2 * CF_FLOOD, &p->nq) ||
	    h_terminus_create(p->dev, &terminus, &p->terminus) ||
	    h_terminus_bind(p->terminus, 0, p->area, p->length, p->length))
		return -1;
	attr.area = p->area;
	attr.length = p->length;
	attr.nq = p->nq;
	return h_slot_create(p->dev, &attr, &slot) ||
	       h_slot_ticket(slot, 0, 0, 0, &p->own) ? -1 : 0;
}

/* Exchange tickets, send as much as the other does, then look what came. */
static inline int cf_play(int fd, const char *device, unsigned int who)
{
	unsigned char bytes[H_TICKET_BYTES];
	struct cf_player p;
	struct h_ticket to;
	struct h_msg data = { .ticket = &to, .flags = HAMLYN_TRB_NO_NOTIFY };
	struct h_msg mark = { .ticket = &to };
	struct hamlyn_nq_entry e;
	uint64_t i;

	if (cf_player_open(&p, device))
		return 1;
	h_ticket_export(&p.own, bytes);
	if (ht_write_all(fd, bytes, sizeof(bytes)) ||
	    ht_read_all(fd, bytes, sizeof(bytes)) ||
	    h_ticket_import(bytes, sizeof(bytes), &to))
		return 2;
	data.data = (char *)h_area_addr(p.area) + p.length;
	data.length = p.length;
	memset((void *)(uintptr_t)data.data, (int)who + 1, p.length);
	for (i = 0; i < CF_FLOOD; i++) {
		to.meta_index = 0;
		if (ht_send(p.terminus, &data) < 0)
			return 3;
		to.meta_index = HAMLYN_META_FAST;
		mark.word = i;
		if (ht_send(p.terminus, &mark) < 0)
			return 4;
	}
	for (i = 0; i < CF_FLOOD; i++)
		if (ht_recv(p.nq, &e) != 1 || e.data != i)
			return 5;
	if (ht_match_byte(h_area_addr(p.area), p.length, 2 - who) != p.length)
		return 6;
	/* The other may still be at it. */
	if (ht_write_all(fd, bytes, 1) || ht_read_all(fd, bytes, 1))
		return 7;
	h_close(p.dev);
	return 0;
}

/* What other tests of this user guessed may hold him back for a moment. */
static inline int cf_watch(struct h_dev *dev, const struct h_ticket *ticket,
			   struct h_nq *nq, uint64_t cookie, struct h_watch **w)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	int ret;

	while ((ret = h_watch(dev, ticket, nq, cookie, w)) == -EAGAIN &&
	       ht_now_ns() < end)
		ht_sleep_ns(HT_MS);
	return ret;
}

#endif /* CONFORMANCE_H */
