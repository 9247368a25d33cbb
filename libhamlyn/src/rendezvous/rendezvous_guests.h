/* SPDX-License-Identifier: MIT */
/* A listener, and those who have called it: for the sources of servers alone. */
#ifndef HAMLYN_RENDEZVOUS_GUESTS_H
#define HAMLYN_RENDEZVOUS_GUESTS_H

#include "rendezvous/rendezvous.h"

#define H_LISTENING	UINT32_MAX	/* among indices of clients */
#define H_ROUNDS_AT_ONCE	64
/* Two descriptors each, and together fewer than RLIMIT_NOFILE mostly is. */
#define H_UNREAD		256

/* A client that was not heard yet; fd -1: none. */
struct h_waiting {
	int fd;
	int64_t until;
	struct h_peer peer;
};

/* One that has said something, until it is answered. */
struct h_guest {
	struct h_guest *next;
	struct h_guest *prev;
	bool makes_sense;	/* so there will be a reply */
	bool called;		/* by HOST/NAME: no @fd */
	uint64_t number;	/* of the call */
	int heard;		/* of a call: whether it makes sense */
	int fd;			/* -1: nobody, or @called */
	int fds[2];
	struct h_peer peer;
	struct h_saying says;
};

/*
 * A reply with descriptors that is not known to be read. Until it is they count for the
 * user who sent them, whether or not the sender goes on having the socket: who has more
 * than RLIMIT_NOFILE of them on their way can send no more.
 */
struct h_unread {
	int fd;
	uid_t uid;
};

struct h_listener {
	struct h_listener *next;	/* list_lock */
	struct h_listener *prev;
	bool listed;
	uint32_t lock;	/* whom we talk to: all descriptors but these two */
	struct h_waiting *clients;
	uint32_t waiting;	/* room for them */
	struct h_guest *guests;
	struct h_unread unread[H_UNREAD];
	uint32_t unread_count;
	uint32_t flags;
	bool named;		/* HOST/NAME */
	int64_t patience_ns;
	int fd;
	int epoll;
	uid_t *uids;
	uint32_t uid_count;
	struct h_path path;
	pid_t pid;		/* who listens; not its children */
};

int h__guest_look(struct h_listener *l, uint32_t kind, struct h_guest *g, int64_t deadline_ns);
int h__guest_reply(const struct h_listener *l, const struct h_guest *g, const struct h_saying *s,
		   const int *fds);
void h__guest_refuse(const struct h_listener *l, const struct h_guest *g, int err);
void h__guest_part(struct h_listener *l, struct h_guest *g, bool welcome);

/* The end of a deadline; H_NOWAIT has none. */
static inline bool h__is_over(int64_t deadline_ns)
{
	return deadline_ns > 0 && h__now_ns() >= deadline_ns;
}

#endif
