/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: how processes that do not trust each other meet (H 6.3).
 *
 * A server listens at a path and a client connects to it: a local socket carries the
 * seeds of two streams, one each way, and is closed. From the kernel each end learns the
 * other's identity. Nothing that the other end says is trusted: a peer that is silent,
 * or talks nonsense, is dropped, and keeps nobody else waiting.
 *
 * A path that begins with '@' is an abstract name, which is in no file system
 * and which any process may take. Clients should say whose server they want.
 *
 * HOST/NAME is a name at a host of the fabric, which processes of all hosts can
 * reach, and which any process of that host may take: HOST is a host id, in decimal digits, and
 * NAME has 1 to 63 printable characters without blanks and '/'. A server listens at its own
 * host; a client may be at the same one. A relative path that looks like that is written
 * "./2/name". On the embedded device it takes a hamlyn-bridge (hamlyn-bridge(1)), with which the
 * name ends. The kernels, or bridges, carry what else is said on a socket, and say who says it:
 * of another host's user what that host claims, and for whom an administrator here takes it.
 *
 * Most programs want channels (channel.h), which preserve message boundaries and are made
 * in the same way.
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
 * struct h_peer - which process is at the other end, according to the kernel
 * @pid: the process that connected or began to listen, at that time; HOST/NAME: 0
 * @uid: its effective user; of another host, the user of this one that an administrator takes
 *	it for (hamlynctl peer), else the overflow uid, 65534
 * @gid: its effective group; HOST/NAME: 65534
 * @host: whose kernel knows who it is: HAMLYN_NONE, this one's; else the id of the other host
 * @user: @uid, or of another host what that host claims: it is no user of this one
 */
struct h_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	uint32_t host;
	uid_t user;
};

/**
 * struct h_stream_pair - both directions of a connection
 * @sender: to the peer; destroyed by h_stream_sender_close()
 * @receiver: from the peer; destroyed by h_stream_receiver_destroy(), after the
 *	sender
 * @peer: the process at the other end
 */
struct h_stream_pair {
	struct h_stream_sender *sender;
	struct h_stream_receiver *receiver;
	struct h_peer peer;
};

/*
 * Tickets are descriptors (H 6.5): no key opens the streams that could be guessed or
 * copied. The price is larger buffers from the start, as they cannot grow. Either both
 * ends set it or neither does.
 *
 * Until the other end reads them the descriptors are in flight, and a user may have no
 * more than RLIMIT_NOFILE of those; root any number. A listener admits another user only
 * while that user has fewer than 32 unread replies, and all other users together have
 * fewer than 256.
 */
#define H_CONNECT_TICKETS	(1U << 0)
/* Clients: if nothing listens there yet, wait for a server. */
#define H_CONNECT_WAIT		(1U << 1)

/* ---- servers ------------------------------------------------------------ */

/**
 * struct h_listener_attr - properties of a listener; zero means default
 * @flags: H_CONNECT_TICKETS or 0
 * @mode: permission bits of the path, as for chmod(), which it has from the moment it is
 *	there; users who may write to it may connect. 0: as umask says
 * @waiting: how many clients can be in the middle of connecting (256), at most 1024.
 *	When there are more, the user with the most of them loses the oldest one
 * @uid_count: how many @uids there are
 * @uids: users who may connect, copied; NULL: everyone whom the path admits
 * @patience_ns: how long a client may take to say what it wants, in nanoseconds (1 s);
 *	negative: for ever, but for what @waiting says
 * @dev: HOST/NAME: the NIC that has the name, and need not stay open; NULL: that of
 *	h_open(NULL)
 *
 * With HOST/NAME @mode is 0, and @waiting and @patience_ns do not matter: 1024 calls wait, of
 * one host 256, and of one of its users 64; over a bridge 256, 128 and 64. @uids are those that
 * struct h_peer has.
 */
struct h_listener_attr {
	uint32_t flags;
	uint32_t mode;
	uint32_t waiting;
	uint32_t uid_count;
	const uid_t *uids;
	int64_t patience_ns;
	struct h_dev *dev;
};

/* With the size of the structure that the program knows: Documentation/abi.rst. */
int h__listener_create(const char *path, const struct h_listener_attr *attr, size_t size,
		       struct h_listener **listener);
int h__listener_accept(struct h_listener *listener, struct h_manager *manager,
		       const struct h_stream_attr *attr, size_t size,
		       struct h_stream_pair *pair, int64_t timeout_ns);

/**
 * h_listener_create() - listen for clients
 * @path: where: a path, '@' and an abstract name, or HOST/NAME
 * @attr: properties, or NULL
 * @listener: out: the listener
 *
 * A socket that a dead server left at @path is replaced. If several servers start at
 * @path at the same time, one gets it and the others fail: each locks the directory while
 * it starts (flock()), if it can read the directory, and waits half a second for others
 * that hold the lock.
 *
 * With a mode a child process makes the path (clone() with memory shared), since the umask
 * belongs to all threads; the child is gone when this returns, and sends no signal. Where no
 * child can be made, the path has the mode less the umask for a moment.
 *
 * The listener belongs to this process: in a child of fork() its descriptors are closed,
 * and only h_listener_destroy() is of use there.
 *
 * Return: 0, -EADDRINUSE if there is a server already, -EEXIST if there is something
 * else at @path, -ENAMETOOLONG, -EINVAL, -ENOMEM, or the reason why there can be no socket.
 * -E2BIG as h_slot_create(). HOST/NAME: -EADDRNOTAVAIL if HOST is not the NIC's, -EOPNOTSUPP
 * with H_CONNECT_TICKETS, -EDQUOT if the user has 256 names (embedded device: the process has 256
 * names and calls), -EHOSTDOWN if the embedded device has no bridge, or as h_open().
 */
static inline int h_listener_create(const char *path, const struct h_listener_attr *attr,
				    struct h_listener **listener)
{
	return h__listener_create(path, attr, sizeof(*attr), listener);
}

/**
 * h_listener_accept() - take the next client that wants streams
 * @listener: the listener
 * @manager: the manager that gets the end points, or NULL to turn the client down
 * @attr: properties of the stream from the client, or NULL
 * @pair: out: the streams, owned by the caller
 * @timeout_ns: longest time to wait
 *
 * Meanwhile, clients that are not allowed, are on another fabric, want a channel or talk
 * nonsense are sent away, with a reason where they can be told; those that have
 * given up are forgotten. What a client says never causes others to be turned away. While
 * this user (embedded device: this process) is held back for wrong keys, the call takes a
 * millisecond or two longer.
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT, -EINTR; or the reason why this client could not be
 * taken, and the client has been told: -ECANCELED without @manager, -ENOSPC if the manager
 * has no room, -ENOMEM, -ETOOMANYREFS if too many descriptors of this user are in flight
 * (H_CONNECT_TICKETS), or as h_stream_receiver_create(); h_explain() says more. -EMFILE
 * or -ENFILE if there is no descriptor to take any client with: then the clients go on
 * waiting, and h_listener_fd() stays readable; with H_CONNECT_TICKETS also if there was
 * one, but not the four more that a client needs for a moment: that client was told
 * -EUSERS. -ECONNRESET, HOST/NAME on the embedded device, if the bridge has ended, and the
 * name with it: a new listener has to be made. -EBADF in a child of the process that made
 * @listener.
 */
static inline int h_listener_accept(struct h_listener *listener, struct h_manager *manager,
				    const struct h_stream_attr *attr,
				    struct h_stream_pair *pair, int64_t timeout_ns)
{
	return h__listener_accept(listener, manager, attr, sizeof(*attr), pair, timeout_ns);
}

/**
 * h_listener_fd() - a descriptor for event loops
 * @listener: the listener
 *
 * Readable when accepting, with H_NOWAIT, has something to do, which may only be to send
 * a client away.
 *
 * Return: the descriptor, owned by @listener.
 */
int h_listener_fd(const struct h_listener *listener);

/**
 * h_listener_destroy() - listen no more
 * @listener: the listener, or NULL: nothing
 *
 * Removes its path, unless another server has taken that. Clients in the middle of
 * connecting find no server. What was accepted stays. In a child of the process that made
 * it, it only frees memory.
 */
void h_listener_destroy(struct h_listener *listener);

/* ---- clients ------------------------------------------------------------ */

/**
 * struct h_connect_attr - properties of a connection; zero means default
 * @flags: H_CONNECT_*
 * @uid_count: how many @uids there are
 * @uids: users whose servers are acceptable; NULL: any user's
 * @buffers: of the stream from the server, as @buffer_size and @max_buffer_size: see
 *	struct h_stream_attr
 * @buffer_size: see there
 * @max_buffer_size: see there
 * @reserved: 0
 */
struct h_connect_attr {
	uint32_t flags;
	uint32_t uid_count;
	const uid_t *uids;
	uint32_t buffers;
	uint32_t buffer_size;
	uint32_t max_buffer_size;
	uint32_t reserved;
};

int h__connect(struct h_manager *manager, const char *path, const struct h_connect_attr *attr,
	       size_t size, struct h_stream_pair *pair, int64_t timeout_ns);

/**
 * h_connect() - connect to a listener
 * @manager: the manager that gets the end points
 * @path: what the listener was given
 * @attr: properties, or NULL
 * @pair: out: the streams, owned by the caller
 * @timeout_ns: longest time to wait; it takes some time, as the server has to accept
 *
 * Return: 0; -ENOENT or -ECONNREFUSED if nothing listens there; -EACCES if this
 * user may not connect; -EPERM if the server belongs to none of @uids; -EXDEV if the server
 * is on a device that this one does not reach (h_dev_reaches()); -EPROTOTYPE if it has
 * channels and not streams; -EPROTONOSUPPORT if only one end has H_CONNECT_TICKETS; -EPROTO if
 * it is of another version, or broke the rules; -ECONNRESET if it went away; -EUSERS if it
 * turned this client down, or has no room for it; -ENAMETOOLONG; -EINVAL for
 * an empty @path or unknown flags; -EAGAIN, -ETIMEDOUT, -EINTR; the reason why there can be
 * no socket; -EMFILE or -ENFILE if there are not three free descriptors, and
 * -ETOOMANYREFS if too many of this user are in flight (H_CONNECT_TICKETS);
 * HOST/NAME: -EHOSTUNREACH if the fabric has no such host, -EHOSTDOWN if it cannot be reached
 * now, -ENOBUFS if until @timeout_ns as many callers waited there as may, -EPROTONOSUPPORT if
 * the host is of a version without names, -EOPNOTSUPP with H_CONNECT_TICKETS, -EDQUOT if the
 * user has 256 calls under way, -ENOSPC if all users of this host have 16384 to that one;
 * -ECONNRESET also if the host is lost meanwhile; H_CONNECT_WAIT also waits for the host;
 * or as h_stream_receiver_create(), h_stream_sender_create(). h_explain() says more.
 */
static inline int h_connect(struct h_manager *manager, const char *path,
			    const struct h_connect_attr *attr, struct h_stream_pair *pair,
			    int64_t timeout_ns)
{
	return h__connect(manager, path, attr, sizeof(*attr), pair, timeout_ns);
}

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_RENDEZVOUS_H */
