/* SPDX-License-Identifier: MIT */
/* How two ends of a connection come to know each other. */
#ifndef H_RENDEZVOUS_INTERNAL_H
#define H_RENDEZVOUS_INTERNAL_H

#include <hamlyn/rendezvous.h>

#include "stream/stream.h"

/* ---- rendezvous.c: one end, before and after it knows the other ---- */

#define H_CARD_BYTES	176	/* both seeds, and what else the other end needs */

/* Above the kind is the version of what its ends say to each other. */
#define H_KIND_STREAMS	1
#define H_KIND_CHANNEL	(2 | 1 << 16)	/* 1: with labels */

struct h_half {
	struct h_manager *manager;
	struct h_stream_sender *sender;
	struct h_stream_receiver *receiver;
	int fds[2];		/* tickets: of the receiver, of the credits; or -1 */
	uint32_t kind;
	uint64_t limit;		/* longest message that this end takes */
	uint64_t peer_limit;	/* and the other one, after joining */
};

int h__half_create(struct h_half *half, struct h_manager *m,
		   const struct h_stream_attr *attr, bool tickets);
void h__half_destroy(struct h_half *half);
void h__half_close_fds(struct h_half *half);
/* Explain @err, if it is that one, and return it. */
int h__no_descriptor(struct h_manager *m, int err);
/* H_CARD_BYTES to be brought to the other end, with the descriptors. */
void h__half_card(const struct h_half *half, unsigned char *card);
/*
 * What the other end's card said. @fds: of its tickets, or NULL; they remain the
 * caller's. -EINVAL, -EPROTO, -EPROTOTYPE, -EBADF, -ENOKEY: the other end's fault.
 */
int h__half_join(struct h_half *half, const unsigned char *card,
		 const int *fds);

/* ---- rendezvous_message.c: what is said on the socket ---- */

#define H_SAYS_REQUEST	1
#define H_SAYS_REPLY	2

struct h_saying {
	uint32_t what;		/* H_SAYS_* */
	uint32_t status;	/* an errno, of a reply */
	bool other_version;	/* heard: nothing else of it is known */
	uint32_t kind;		/* H_KIND_* */
	uint32_t flags;		/* H_CONNECT_TICKETS or 0 */
	struct h_fabric_id fabric;	/* of who says it */
	unsigned char card[H_CARD_BYTES];
};

#define H_SAYING_BYTES	220	/* of which HAMLYN_MAX_CALL are more */

/* The bytes of what is said; and what bytes say: 0 or -EPROTO. */
void h__saying_put(const struct h_saying *s, unsigned char *bytes);
int h__saying_take(struct h_saying *s, const unsigned char *bytes, size_t n);
/* Send, without waiting. @fds: two to be passed along, or NULL. */
int h__say(int sock, const struct h_saying *s, const int *fds);
/*
 * Receive, without waiting: 0, -EAGAIN, -ECONNRESET if the other end is gone,
 * -EPROTO if it talks nonsense, -EMFILE or -ENFILE if there was no room for the
 * descriptors: they are lost. @fds: out: two, owned by the caller, or -1 each;
 * NULL: none are let in. With nothing locked: others that came are closed.
 */
int h__hear(int sock, struct h_saying *s, int *fds);
void h__close_fds(int *fds);

int h__peer_of(int sock, struct h_peer *peer);
bool h__uid_in(uid_t uid, const uid_t *uids, uint32_t count);

struct sockaddr;
struct sockaddr_un;
int h__address(const char *path, struct sockaddr_un *address,
	       unsigned int *length);
/* poll() until a time: 0, or -EAGAIN, -ETIMEDOUT, -EINTR. */
int h__poll_until(int fd, int events, int64_t deadline_ns);

/* ---- rendezvous_close.c: what a stranger may make slow to close ---- */

/* Also with a listener locked: it is closed by h__close_waiting(), with nothing locked. */
void h__close_later(int fd);
/* Two, or -1: of those that are not known to be tickets. */
void h__close_fds_later(const int *fds);
/* Shut a socket down, and close it: later, if there is anything in it. */
void h__hang_up(int sock);
void h__close_waiting(void);
/* Before listeners watch theirs: their locks are taken first. */
void h__close_watch_forks(void);
/* From Linux 6.16 on none can be sent here, nor to the sockets of who calls here. */
void h__take_no_descriptors(int sock);

/* ---- rendezvous_bind.c: a path with its mode ---- */

/* @mode: of @sock, which the path is to have whatever umask says; 0: as umask says. */
int h__bind(int sock, const struct sockaddr *address, unsigned int length, uint32_t mode);

/* ---- rendezvous_path.c: where a server listens ---- */

struct h_path {
	char *name;		/* to be removed; NULL: an abstract one */
	dev_t dev;
	ino_t ino;
};

/* From a socket to one that listens. Not to be cancelled in: the directory is locked. */
int h__path_take(struct h_path *p, int sock, const char *path, uint32_t mode);
void h__path_remove(const struct h_path *p);

/* ---- rendezvous_name.c: the same between hosts ---- */

/* What is at the other end of HOST/NAME, and what it says. */
struct h_heard {
	uint64_t number;	/* of a call: to answer it */
	struct h_peer peer;
	struct h_saying says;
	int err;		/* 0, or -EPROTO: it makes no sense */
};

/* The name's descriptor, or an error that h__early() explains. */
int h__name_listen(const struct h_name *name, struct h_dev *dev);
/* 1: somebody calls; 0: nobody; or an error. */
int h__name_hear(int fd, struct h_heard *heard);
int h__name_answer(int fd, uint64_t number, const struct h_saying *s);
/* Also if a child has it open. */
void h__name_close(int fd);
/* Ask, and hear the answer: 0, or why there is none, perhaps explained. */
int h__name_ask(struct h_dev *dev, const struct h_name *name, const struct h_saying *s,
		struct h_heard *heard, bool wait, int64_t deadline_ns);

/* ---- rendezvous_connect.c, rendezvous_listen.c ---- */

/* For the next try, a little; -EAGAIN, -ETIMEDOUT or -EINTR: there is no other. */
int h__sleep_a_little(int64_t ns, int64_t deadline_ns);

int h__half_connect(struct h_half *half, struct h_manager *m, const char *path,
		    const struct h_connect_attr *attr, struct h_peer *peer,
		    int64_t timeout_ns);
int h__half_accept(struct h_half *half, struct h_listener *l, struct h_manager *m,
		   const struct h_stream_attr *attr, struct h_peer *peer,
		   int64_t timeout_ns);

#endif /* H_RENDEZVOUS_INTERNAL_H */
