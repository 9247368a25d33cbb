/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: how processes that do not trust each other meet (H 6.3).
 *
 * A server listens at a path, a client connects to it: a local socket carries the
 * seeds of two streams, one each way, and is closed. What each end learns of the
 * other from the kernel is who it is. Nothing of what the other end says is trusted:
 * who is silent, or talks nonsense, is dropped, and keeps nobody else waiting.
 *
 * A path may begin with '@': then it is an abstract name, which is in no file system
 * and which anybody may take. Clients should say whose server they want.
 *
 * Most want channels (channel.h), which keep messages apart, and are made likewise.
 */
#ifndef HAMLYN_RENDEZVOUS_H
#define HAMLYN_RENDEZVOUS_H

#include <sys/types.h>

#include <hamlyn/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_listener;

/**
 * struct h_peer - who is at the other end, as the kernel says
 * @pid: process, when it connected or began to listen
 * @uid: its effective user
 * @gid: its effective group
 */
struct h_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
};

/**
 * struct h_stream_pair - both directions of a connection
 * @sender: to the peer; destroyed by h_stream_sender_close()
 * @receiver: from the peer; destroyed by h_stream_receiver_destroy(), the sender
 *	first
 * @peer: who it is
 */
struct h_stream_pair {
	struct h_stream_sender *sender;
	struct h_stream_receiver *receiver;
	struct h_peer peer;
};

/*
 * Tickets are descriptors (H 6.5): no keys that could be guessed or copied open the
 * streams, for the price of larger buffers from the start, as they cannot grow. Both
 * ends have it or neither.
 *
 * Until the other end reads them they are on their way, and of these a user may have no
 * more than RLIMIT_NOFILE; root any number. A listener lets another user in only as long
 * as he left fewer than 32 replies unread, and all other users together fewer than 256.
 */
#define H_CONNECT_TICKETS	(1U << 0)
/* Clients: if nobody listens there yet, wait for it. */
#define H_CONNECT_WAIT		(1U << 1)

/* ---- servers ------------------------------------------------------------ */

/**
 * struct h_listener_attr - properties of a listener; zero means default
 * @flags: H_CONNECT_TICKETS or 0
 * @mode: permission bits of the path, as for chmod(); who may write to it may
 *	connect. 0: as umask says
 * @waiting: how many clients can be in the middle of connecting (256), at most 1024.
 *	When there are more, the user who has most of them loses his oldest one
 * @patience_ns: how long one may take to say what it wants (1 s)
 * @uids: users who may connect, copied; NULL: who can, may
 * @uid_count: how many
 */
struct h_listener_attr {
	uint32_t flags;
	uint32_t mode;
	uint32_t waiting;
	int64_t patience_ns;
	const uid_t *uids;
	uint32_t uid_count;
};

/**
 * h_listener_create() - listen for clients
 * @path: where: a path, or '@' and an abstract name
 * @attr: properties, or NULL
 * @listener: out: the listener
 *
 * A socket that a dead server left at @path is replaced. Of several servers that start at
 * @path at a time one has it, and the others fail: while one starts it has the directory
 * locked (flock()), where it may be read, and waits half a second for others that have.
 *
 * It is this process' own: in a child of fork() its descriptors are closed, and nothing
 * but h_listener_destroy() is of use there.
 *
 * Return: 0, -EADDRINUSE if there is a server already, -EEXIST if there is something
 * else at @path, -ENAMETOOLONG, -EINVAL, -ENOMEM, or why there can be no socket.
 */
int h_listener_create(const char *path, const struct h_listener_attr *attr,
		      struct h_listener **listener);

/**
 * h_listener_accept() - take the next client that wants streams
 * @listener: the listener
 * @manager: the manager that gets the end points, or NULL to turn the client down
 * @attr: properties of the stream from the client, or NULL
 * @pair: out: the streams, owned by the caller
 * @timeout_ns: most time to wait
 *
 * Clients that are not allowed, are on another device, want a channel or talk
 * nonsense are sent away meanwhile, with a reason where they can be told; those that have
 * given up are forgotten. What a client says is never a reason to turn others away: while
 * this user (embedded device: this process) is held back for wrong keys it takes a
 * millisecond or two longer.
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT, -EINTR; or why this client could not be taken,
 * which has been told so: -ECANCELED without @manager, -ENOSPC if the manager has no
 * room, -ENOMEM, -ETOOMANYREFS if too many descriptors of this user are on their way
 * (H_CONNECT_TICKETS), or as h_stream_receiver_create(); h_explain() says more. -EMFILE
 * or -ENFILE if there is no descriptor to take anybody with: then the clients go on
 * waiting, and h_listener_fd() stays readable; with H_CONNECT_TICKETS also if there was
 * one, but not the four more that a client needs for a moment: that one was told -EUSERS.
 * -EBADF in a child of who made @listener.
 */
int h_listener_accept(struct h_listener *listener, struct h_manager *manager,
		      const struct h_stream_attr *attr,
		      struct h_stream_pair *pair, int64_t timeout_ns);

/**
 * h_listener_fd() - a descriptor for event loops
 * @listener: the listener
 *
 * Readable when accepting, with H_NOWAIT, has something to do; which may be to send
 * somebody away.
 *
 * Return: the descriptor, owned by @listener.
 */
int h_listener_fd(const struct h_listener *listener);

/**
 * h_listener_destroy() - listen no more
 * @listener: the listener, or NULL
 *
 * Removes its path, unless another server has taken that. Clients in the middle of
 * connecting find nobody. What was accepted stays. In a child of who made it: gives back
 * memory, no more.
 */
void h_listener_destroy(struct h_listener *listener);

/* ---- clients ------------------------------------------------------------ */

/**
 * struct h_connect_attr - properties of a connection; zero means default
 * @flags: H_CONNECT_*
 * @stream: of the stream from the server
 * @uids: users whose server is good enough; NULL: anybody's
 * @uid_count: how many
 */
struct h_connect_attr {
	uint32_t flags;
	struct h_stream_attr stream;
	const uid_t *uids;
	uint32_t uid_count;
};

/**
 * h_connect() - connect to a listener
 * @manager: the manager that gets the end points
 * @path: what the listener was given
 * @attr: properties, or NULL
 * @pair: out: the streams, owned by the caller
 * @timeout_ns: most time to wait; it takes some, as the server has to accept
 *
 * Return: 0; -ENOENT or -ECONNREFUSED if nobody listens there; -EACCES if this
 * user may not connect; -EPERM if the server is of none of @uids; -EXDEV if the server
 * is on another device; -EPROTOTYPE if it has channels and not streams;
 * -EPROTONOSUPPORT if only one end has H_CONNECT_TICKETS; -EPROTO if it is of
 * another version, or broke the rules; -ECONNRESET if it went away; -EUSERS if it
 * turned this client down, or has no room for it; -ENAMETOOLONG; -EINVAL for
 * an empty @path or unknown flags; -EAGAIN, -ETIMEDOUT, -EINTR; why there can be no
 * socket; -EMFILE or -ENFILE if there are not three free descriptors, and
 * -ETOOMANYREFS if too many of this user are on their way (H_CONNECT_TICKETS);
 * or as h_stream_receiver_create(), h_stream_sender_create(). h_explain() says more.
 */
int h_connect(struct h_manager *manager, const char *path,
	      const struct h_connect_attr *attr, struct h_stream_pair *pair,
	      int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_RENDEZVOUS_H */
