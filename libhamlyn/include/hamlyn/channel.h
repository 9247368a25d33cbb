/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: channels, messages both ways between two processes.
 *
 * The two processes need not trust each other.
 *
 * Channels are what most programs want instead of a socket pair: boundaries are kept, a
 * message arrives whole or not at all, messages arrive in order, and each end learns at
 * once when the other is gone. A message that fits one of the receiver's buffers is
 * received where it arrived, without being copied; a longer one is assembled, in memory
 * that grows as it comes.
 *
 * h_channel_dial() makes device, manager and channel in one call; a server of many clients is
 * one call too (server.h). On a manager there are three ways to make a channel: through a
 * listener (h_channel_accept(), h_channel_connect()), both ends in one process
 * (h_channel_pair()), or by carrying a seed each way by any means (h_channel_create(),
 * h_channel_seed(), h_channel_join()).
 *
 * Any thread may send and any may receive; the messages of different threads are not
 * mixed. Two ends that only send, and never receive, wait for each other.
 *
 * A request is a message that wants a reply (h_channel_request(), h_channel_reply()).
 * The library numbers both, so a reply only ever answers its own request, even after a
 * time-out. Both ends can send requests, and any number of other messages meanwhile. The
 * two ends need the same version of this library: otherwise they refuse each other.
 */
#ifndef HAMLYN_CHANNEL_H
#define HAMLYN_CHANNEL_H

#include <hamlyn/rendezvous.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_channel;

/**
 * struct h_channel_attr - properties of one end of a channel; zero means default
 * @max_message: longest message that this end takes, in bytes (16 MiB). The other end can
 *	make this one keep up to four times as much at once, and as much again for each
 *	request of this end that is under way
 * @flags: H_CONNECT_*, for h_channel_connect() and h_channel_dial() only
 * @uid_count: how many @uids there are
 * @uids: users whose servers are acceptable, for these two only; NULL: any user's
 * @buffers: of the stream that this end receives, as @buffer_size and @max_buffer_size:
 *	see struct h_stream_attr
 * @buffer_size: see there
 * @max_buffer_size: see there
 * @reserved: 0
 * @device: which one to open, as for h_open(), for h_channel_dial() only; NULL: its default
 */
struct h_channel_attr {
	uint64_t max_message;
	uint32_t flags;
	uint32_t uid_count;
	const uid_t *uids;
	uint32_t buffers;
	uint32_t buffer_size;
	uint32_t max_buffer_size;
	uint32_t reserved;
	const char *device;
};

/* ---- making ------------------------------------------------------------- */

/* With the size of the structure that the program knows: Documentation/abi.rst. */
int h__channel_dial(const char *path, const struct h_channel_attr *attr, size_t size,
		    struct h_channel **channel, int64_t timeout_ns);
int h__channel_connect(struct h_manager *manager, const char *path,
		       const struct h_channel_attr *attr, size_t size,
		       struct h_channel **channel, int64_t timeout_ns);
int h__channel_accept(struct h_listener *listener, struct h_manager *manager,
		      const struct h_channel_attr *attr, size_t size,
		      struct h_channel **channel, int64_t timeout_ns);
int h__channel_pair(struct h_manager *manager_a, struct h_manager *manager_b,
		    const struct h_channel_attr *attr, size_t size, struct h_channel **a,
		    struct h_channel **b);
int h__channel_create(struct h_manager *manager, const struct h_channel_attr *attr, size_t size,
		      struct h_channel **channel);

/**
 * h_channel_dial() - open the device, make a manager, and connect to a listener
 * @path: what the listener, or server, was given: a path, '@' and a name, or HOST/NAME
 * @attr: properties, or NULL
 * @channel: out: the channel, with a device and a manager of its own
 * @timeout_ns: longest time to wait; it takes some time, as the server has to accept
 *
 * For programs that need one connection, or few: many channels on one manager take less
 * memory. h_channel_close() ends all three. If it fails, h_explain() with no device tells
 * the calling thread why, in words.
 *
 * Return: 0, or as h_open(), h_manager_create(), h_channel_connect().
 */
static inline int h_channel_dial(const char *path, const struct h_channel_attr *attr,
				 struct h_channel **channel, int64_t timeout_ns)
{
	return h__channel_dial(path, attr, sizeof(*attr), channel, timeout_ns);
}

/**
 * h_channel_connect() - connect to a listener
 * @manager: the manager that gets this end
 * @path: what the listener was given: a path, '@' and a name, or HOST/NAME
 * @attr: properties, or NULL
 * @channel: out: the channel
 * @timeout_ns: longest time to wait; it takes some time, as the server has to accept
 *
 * Return: as h_connect().
 */
static inline int h_channel_connect(struct h_manager *manager, const char *path,
				    const struct h_channel_attr *attr,
				    struct h_channel **channel, int64_t timeout_ns)
{
	return h__channel_connect(manager, path, attr, sizeof(*attr), channel, timeout_ns);
}

/**
 * h_channel_accept() - take the next client that wants a channel
 * @listener: the listener
 * @manager: the manager that gets this end, or NULL to turn the client down
 * @attr: properties, or NULL
 * @channel: out: the channel
 * @timeout_ns: longest time to wait
 *
 * Return: as h_listener_accept().
 */
static inline int h_channel_accept(struct h_listener *listener, struct h_manager *manager,
				   const struct h_channel_attr *attr,
				   struct h_channel **channel, int64_t timeout_ns)
{
	return h__channel_accept(listener, manager, attr, sizeof(*attr), channel, timeout_ns);
}

/**
 * h_channel_pair() - make both ends of a channel in this process
 * @manager_a: the manager of one end
 * @manager_b: the manager of the other; may be the same
 * @attr: properties of both, or NULL
 * @a: out: one end
 * @b: out: the other one
 *
 * Return: 0, -EXDEV if the managers' devices do not reach each other, or as
 * h_stream_receiver_create(), h_stream_sender_create().
 */
static inline int h_channel_pair(struct h_manager *manager_a, struct h_manager *manager_b,
				 const struct h_channel_attr *attr, struct h_channel **a,
				 struct h_channel **b)
{
	return h__channel_pair(manager_a, manager_b, attr, sizeof(*attr), a, b);
}

#define H_CHANNEL_SEED_BYTES	176

/**
 * struct h_channel_seed - what the other end of a channel has to know
 * @bytes: they can travel anywhere, and mean the same on every machine
 *
 * Holding a seed is the right to send: pass it only to the intended peer.
 */
struct h_channel_seed {
	unsigned char bytes[H_CHANNEL_SEED_BYTES];
};

/**
 * h_channel_create() - make one end of a channel on its own
 * @manager: the manager that gets it
 * @attr: properties, or NULL
 * @channel: out: the channel; it cannot send before h_channel_join()
 *
 * Return: 0, or as h_stream_receiver_create(), h_stream_sender_create().
 */
static inline int h_channel_create(struct h_manager *manager, const struct h_channel_attr *attr,
				   struct h_channel **channel)
{
	return h__channel_create(manager, attr, sizeof(*attr), channel);
}

/* In C++ the function hides the constructor of a structure that has none but that of C. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/**
 * h_channel_seed() - what the other end has to know about this one
 * @channel: made by h_channel_create()
 * @seed: out: for h_channel_join() at one other end, once
 */
void h_channel_seed(const struct h_channel *channel,
		    struct h_channel_seed *seed);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/**
 * h_channel_join() - connect an end to the other one
 * @channel: made by h_channel_create(), not joined yet
 * @seed: the other end's; both have to join
 *
 * Return: 0, -EISCONN if it was joined already, -EINVAL if these bytes are not the seed of
 * a channel, -EPROTO if they are a seed of another version, -EALREADY if any channel was
 * joined to that end before, -ECONNRESET if the other end is gone already or cannot be
 * reached, or as h_watch(). After an error the channel is of no further use, and the seed
 * may be spent: joining claims the other end first, and what fails afterwards does not undo
 * that, so that a second attempt with the same seed fails with -EALREADY. Make a new pair
 * of ends. One that comes second to an end on another host is told so by -ECONNRESET, or is
 * joined, and its calls fail with -EPIPE from a moment later on.
 */
int h_channel_join(struct h_channel *channel,
		   const struct h_channel_seed *seed);

/**
 * h_channel_peer() - which process is at the other end?
 * @channel: the channel
 * @peer: out: as the kernel identified it when the two met
 *
 * Return: 0, or -ENOENT if they did not meet at a listener.
 */
int h_channel_peer(const struct h_channel *channel, struct h_peer *peer);

/**
 * h_channel_manager() - the manager of a channel
 * @channel: the channel
 *
 * For h_manager_fd(), and by h_manager_dev() for h_explain(), where h_channel_dial() has made it.
 *
 * Return: the manager, which lives at least as long as the channel.
 */
struct h_manager *h_channel_manager(const struct h_channel *channel);

/**
 * h_channel_set_data() - keep a pointer with a channel
 * @channel: the channel
 * @data: anything of the caller's; the library does not look at it, nor free it
 */
void h_channel_set_data(struct h_channel *channel, void *data);

/**
 * h_channel_data() - what h_channel_set_data() has kept
 * @channel: the channel
 *
 * Return: that pointer, or NULL if there was none.
 */
void *h_channel_data(const struct h_channel *channel);

/* ---- sending ------------------------------------------------------------ */

/**
 * h_channel_send() - send a message
 * @channel: the channel
 * @data: its bytes; this process does not copy long messages in memory of
 *	h_manager_alloc() or h_manager_register()
 * @length: how many; may be 0
 * @timeout_ns: longest time to wait until it can be taken
 *
 * When it returns @data may be changed. A message is taken whole or not at all. If the
 * receiver's buffers do not have enough room for a message when the time is over, the rest
 * of it is kept, and goes out in the next call that polls or waits on the manager: a call on
 * this or another end point, h_manager_poll(), h_manager_dispatch(), h_manager_wait().
 * Until then nothing else is taken. h_manager_drain() tells whether everything has left.
 *
 * A host that takes nothing is no reason for it to take longer, nor to be read from @data later:
 * with a deadline, what goes to other hosts of the kernel device is copied first.
 *
 * From an end that never called h_channel_reply() or h_channel_reply_only(), a message is
 * also the reply to a request: to the oldest unanswered one that the calling thread
 * has received, or, if there is none, to the oldest that any thread has. If a thread has
 * released a request and then receives another, it no longer answers the former. The last
 * 16 unanswered requests are remembered.
 *
 * Return: 0; -EMSGSIZE if the other end does not take messages that long; -EAGAIN,
 * also if only the work queue is full for a moment, or another thread sends;
 * -ETIMEDOUT, -EINTR; -ENOTCONN before h_channel_join(); -EPIPE if the
 * other end is gone, or closed, or this one was shut down; -ENOMEM, or as
 * h_manager_alloc().
 */
int h_channel_send(struct h_channel *channel, const void *data, size_t length,
		   int64_t timeout_ns);

/**
 * h_channel_sendv() - send a message that is in several places
 * @channel: the channel
 * @iov: the pieces
 * @iovcnt: how many
 * @timeout_ns: longest time to wait until it can be taken
 *
 * Return: as h_channel_send(), and -EINVAL if @iovcnt is negative.
 */
int h_channel_sendv(struct h_channel *channel, const struct iovec *iov,
		    int iovcnt, int64_t timeout_ns);

/**
 * h_channel_send_checked() - send a message from memory that may go meanwhile
 * @channel: the channel
 * @data: its bytes, perhaps in a mapping of a file that somebody truncates
 * @length: how many; may be 0
 * @timeout_ns: longest time to wait until it can be taken
 *
 * As h_channel_send(), but the kernel copies the message first, all of it, into memory of the
 * channel's: what is not there is an error, and no SIGBUS or SIGSEGV in the middle of a call. That
 * takes a system call for each message.
 *
 * Return: as h_channel_send(); -EFAULT if not all of @data can be read: then nothing was sent,
 * and the channel is as it was. -EMFILE, -ENFILE where process_vm_readv() is not allowed, as a
 * pipe is needed then.
 */
int h_channel_send_checked(struct h_channel *channel, const void *data, size_t length,
			   int64_t timeout_ns);

/**
 * struct h_loan - memory in which a message is built
 * @data: first byte, aligned to 64; of no particular contents
 * @length: bytes that are there
 *
 * Read-only but for what @data points to; the other members are private.
 */
struct h_loan {
	void *data;
	size_t length;
	/* private: */
	uint64_t serial;
	uint32_t held;
	uint32_t reserved;
};

/**
 * h_channel_reserve() - borrow memory to build a message in
 * @channel: the channel
 * @length: bytes, as many as the message can have
 * @loan: out: the memory, until h_channel_commit() or h_channel_abandon()
 *
 * The message leaves from there: only the NIC copies it, into the receiver's buffer. (One that
 * fits an entry of the work queue, of 200 bytes or so, goes in there.) The call does not wait, and
 * does not say that the other end has room. Any number of loans can be out at a time, and any
 * thread may fill or commit each. Replies and requests are sent from there too, if they are given
 * @data of a loan, which is abandoned afterwards.
 *
 * Return: 0; -EMSGSIZE if the other end does not take messages that long; -ENOMEM, or as
 * h_manager_alloc().
 */
int h_channel_reserve(struct h_channel *channel, size_t length, struct h_loan *loan);

/**
 * h_channel_commit() - send what was built in a loan
 * @channel: the channel
 * @loan: what h_channel_reserve() gave. It is empty afterwards, unless the call fails: then it
 *	is as it was, to be committed again or abandoned
 * @length: bytes of the message, from the first of the loan on; at most @loan's; may be 0
 * @timeout_ns: longest time to wait until it can be taken
 *
 * As h_channel_send(), but it does not wait until the message has left. Of a message for which
 * the receiver has not enough room the rest stays in the loan's memory, and is not copied.
 *
 * Return: as h_channel_send(). -EINVAL if @length is more than was reserved, or the loan is
 * another channel's, or empty; -EALREADY if a copy of it was committed or abandoned before:
 * then nothing happens, and h_explain() says which.
 */
int h_channel_commit(struct h_channel *channel, struct h_loan *loan, size_t length,
		     int64_t timeout_ns);

/**
 * h_channel_abandon() - give a loan back, and send nothing
 * @channel: the channel
 * @loan: what h_channel_reserve() gave; it is empty afterwards. h_channel_close() does the
 *	same to those that are out then
 *
 * Return: 0, also if it is empty; -EINVAL, -EALREADY as h_channel_commit().
 */
int h_channel_abandon(struct h_channel *channel, struct h_loan *loan);

/* ---- receiving ---------------------------------------------------------- */

/**
 * struct h_message - a message that was received
 * @data: first byte
 * @length: bytes, may be 0
 *
 * Read-only; the other members are private.
 */
struct h_message {
	const void *data;
	size_t length;
	/* private: */
	uint64_t serial;
	uint64_t is_long;
	uint32_t number;
	uint32_t held;
};

/**
 * h_channel_receive() - receive the next message
 * @channel: the channel
 * @message: out: the message, valid until h_channel_release()
 * @timeout_ns: longest time to wait
 *
 * Messages that are held occupy the buffers of later ones: when all buffers are held, the
 * other end has to wait. Copy what is needed for long.
 *
 * Return: 0; -ENODATA at the end, when the other end has closed or shut down and everything
 * was received; -EAGAIN, -ETIMEDOUT, -EINTR; -ECONNRESET if the other end is gone
 * without having closed; -EPROTO if it broke the rules; -ENOMEM.
 */
int h_channel_receive(struct h_channel *channel, struct h_message *message,
		      int64_t timeout_ns);

/**
 * h_channel_release() - give back a message
 * @channel: the channel
 * @message: what h_channel_receive() gave; in any order, by any thread. It is empty
 *	afterwards
 *
 * Return: 0, also if it is empty; -EALREADY if a copy of it was given back before,
 * and -EINVAL if it belongs to another channel: then nothing happens.
 */
int h_channel_release(struct h_channel *channel, struct h_message *message);

/**
 * h_channel_receive_copy() - receive by copying
 * @channel: the channel
 * @data: where to
 * @size: room there, in bytes
 * @timeout_ns: longest time to wait
 *
 * Return: the message's bytes, which may be 0; -EMSGSIZE if it is longer than @size:
 * then it is still the next message; or as h_channel_receive().
 */
ssize_t h_channel_receive_copy(struct h_channel *channel, void *data, size_t size,
			       int64_t timeout_ns);

/* ---- requests ----------------------------------------------------------- */

/**
 * h_channel_request() - send a request, and receive its reply
 * @channel: the channel
 * @data: bytes of the request
 * @length: how many
 * @reply: out: the reply, valid until h_channel_release()
 * @timeout_ns: longest time to wait for both
 *
 * Any number of threads may do so at once, even while others receive: each gets its own
 * reply. Other messages that come meanwhile are kept for h_channel_receive(), in order,
 * up to 4096 of them, and up to as many bytes as the longest message that this end takes,
 * but at least 64 KiB. Beyond that the other end, and with it the reply, has to wait until
 * some are received.
 *
 * A request that was sent and got no reply is given up: a reply that comes later is dropped, also
 * while the next request waits to be sent: the other end may take nothing before.
 * To go on waiting instead, use h_channel_request_send() and h_channel_request_wait().
 *
 * Return: 0 with the reply. If nothing was sent: -EAGAIN, also when the time was over;
 * -EINTR; -EBUSY if 1024 requests are under way; -EMSGSIZE, -ENOTCONN, -EPIPE, -ENOMEM as
 * h_channel_send(). If the request was sent: -ETIMEDOUT if there was no reply in time;
 * -EINPROGRESS if a signal came before it; -ENODATA, -ECONNRESET, -EPROTO as
 * h_channel_receive(); -ENOBUFS if there was no memory to receive.
 */
int h_channel_request(struct h_channel *channel, const void *data,
		      size_t length, struct h_message *reply,
		      int64_t timeout_ns);

/**
 * h_channel_request_send() - send a request
 * @channel: the channel
 * @data: bytes of the request
 * @length: how many
 * @id: out: what to wait for; 0 if it was not sent
 * @timeout_ns: longest time to wait until it can be taken
 *
 * Its reply stays with this end until h_channel_request_wait() or
 * h_channel_request_cancel(): one of them has to be called. While the call waits, it keeps what
 * comes, as h_channel_request() does. A reply may be as long as
 * the longest message that this end takes, and is not charged to the manager's budget: n
 * requests under way cost up to n times max_message of struct h_channel_attr. With peers
 * that are not trusted choose both with that in mind.
 *
 * Return: 0; -EBUSY if 1024 requests are under way; or as h_channel_send(): then
 * nothing was sent.
 */
int h_channel_request_send(struct h_channel *channel, const void *data,
			   size_t length, uint32_t *id, int64_t timeout_ns);

/**
 * h_channel_request_wait() - receive the reply to a request
 * @channel: the channel
 * @id: of h_channel_request_send(); one thread at a time may wait for it
 * @reply: out: the reply, valid until h_channel_release()
 * @timeout_ns: longest time to wait
 *
 * Requests may be waited for in any order, whatever else comes: see h_channel_request().
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT, -EINTR: call it again, or give the request up with
 * h_channel_request_cancel(); -EINVAL if there is no such request, or it is done;
 * -ENODATA, -ECONNRESET, -EPROTO, -ENOMEM as h_channel_receive(): then it is done.
 */
int h_channel_request_wait(struct h_channel *channel, uint32_t id,
			   struct h_message *reply, int64_t timeout_ns);

/**
 * h_channel_request_cancel() - give up a request
 * @channel: the channel
 * @id: of h_channel_request_send(); no thread may be waiting for it. Nothing happens if
 *	it is done
 *
 * The other end is not told. Its reply is dropped when it comes.
 */
void h_channel_request_cancel(struct h_channel *channel, uint32_t id);

/**
 * h_channel_is_request() - does a message want a reply?
 * @message: what was received, not released yet
 *
 * Return: 1 if it is a request, else 0.
 */
int h_channel_is_request(const struct h_message *message);

/**
 * h_channel_reply() - answer a request
 * @channel: the channel
 * @request: the request, or a copy of the structure made before it was released
 * @data: bytes of the reply
 * @length: how many; may be 0
 * @timeout_ns: longest time to wait until it can be taken
 *
 * Any thread may answer, and in any order. The other end drops a second reply to the same
 * request. From the first call on, h_channel_send() on this end answers nothing.
 *
 * Return: 0, -EINVAL if it is no request, was released, or belongs to another channel (see
 * h_explain()): then nothing was sent; or as h_channel_send().
 */
int h_channel_reply(struct h_channel *channel, const struct h_message *request,
		    const void *data, size_t length, int64_t timeout_ns);

/**
 * h_channel_reply_only() - let only h_channel_reply() answer requests
 * @channel: the channel
 *
 * For an end that may send other messages before its first h_channel_reply(), so that none
 * of them is taken for a reply: see h_channel_send().
 */
void h_channel_reply_only(struct h_channel *channel);

/* ---- event loops -------------------------------------------------------- */

/**
 * h_channel_on_ready() - have h_manager_dispatch() call back
 * @channel: the channel
 * @ready: called as long as there may be something to receive, including the end or a
 *	lasting error, until that was returned; and once when a send that returned
 *	-EAGAIN could be tried again. Calls may be spurious. It may do anything, including
 *	closing the channel; no two threads call it at the same time. NULL: no callback
 * @arg: its second argument
 *
 * Something to receive is a message, or a reply that was received already and waits for
 * h_channel_request_wait(). It is not said which: each dispatch calls back while either is
 * there. A caller that waits for only one of the two has to take the other as well, or to
 * pause after a call in vain.
 */
void h_channel_on_ready(struct h_channel *channel,
			void (*ready)(struct h_channel *channel, void *arg),
			void *arg);

/**
 * h_channel_pause() - call back no more for what arrives, or do so again
 * @channel: the channel, with a callback of h_channel_on_ready()
 * @paused: whether it is to be left alone; not for ever: h_channel_on_ready() ends that too
 *
 * For a server that has a reply to send and a client that does not take it: after a send that
 * returned -EAGAIN the callback is still called when that can be tried again, or when the other
 * end is gone. What the client sends meanwhile stays in this end's buffers, and then with the
 * client.
 */
void h_channel_pause(struct h_channel *channel, bool paused);

/* ---- statistics --------------------------------------------------------- */

/**
 * struct h_channel_counters - what an end of a channel has done, and how it stands
 * @sent: messages that it has taken to send, requests and replies included
 * @sent_bytes: bytes of these
 * @received: messages that have arrived whole and were looked at by a call that receives,
 *	whichever call then gets them
 * @received_bytes: bytes of these
 * @waits: times that sending found no free buffer at the other end, tries again included.
 *	If it grows, the other end is slower than this one, or has too few buffers
 * @in_flight: buffers of the other end that it has not said to be free again
 * @buffers: buffers of this end
 * @buffer_size: bytes of each
 * @held: buffers of this end whose messages were not released
 * @kept: messages that are kept for h_channel_receive(), as they came while a reply was
 *	waited for
 * @requests: requests of this end whose replies were not taken yet
 */
struct h_channel_counters {
	uint64_t sent;
	uint64_t sent_bytes;
	uint64_t received;
	uint64_t received_bytes;
	uint64_t waits;
	uint32_t in_flight;
	uint32_t buffers;
	uint32_t buffer_size;
	uint32_t held;
	uint32_t kept;
	uint32_t requests;
};

int h__channel_stats(struct h_channel *channel, struct h_channel_counters *stats, size_t size);

/**
 * h_channel_stats() - counters and state of one end of a channel
 * @channel: the channel
 * @stats: out: how things stand; each member by itself, others change meanwhile
 *
 * Does not wait for calls that send or receive; it takes locks that are held for a few
 * instructions, and makes no system call unless a holder has lost its processor meanwhile.
 * Counters begin at 0 with the channel and are not reset. What an older library does not
 * count is 0.
 *
 * Return: 0.
 */
static inline int h_channel_stats(struct h_channel *channel, struct h_channel_counters *stats)
{
	return h__channel_stats(channel, stats, sizeof(*stats));
}

/* ---- ending ------------------------------------------------------------- */

/**
 * h_channel_shutdown() - send no more, but go on receiving
 * @channel: the channel
 * @timeout_ns: longest time to wait until everything has arrived
 *
 * The other end sees the end of the channel after the last message. Before
 * h_channel_join() there is no other end, and nothing is done.
 *
 * Return: 0, also if the other end had closed before; -EAGAIN, -ETIMEDOUT or -EINTR
 * if not everything is known to have arrived: call it again; -EPIPE if the other
 * end is gone, or the NIC has refused to send that this is the end.
 */
int h_channel_shutdown(struct h_channel *channel, int64_t timeout_ns);

/**
 * h_channel_close() - end and destroy this end of a channel
 * @channel: the channel, or NULL: nothing; its messages were released
 * @timeout_ns: longest time to wait until everything has arrived; 0: the other end sees
 *	a broken channel, unless everything had arrived
 *
 * Waits for the other process to poll, not for it to receive. What the other end sent and
 * was not received is lost. The channel is destroyed, whatever the call returns: for the caller
 * at once, but what was sent, and another host has not taken yet, keeps its memory until then, or
 * until h_manager_destroy(); whoever polls gives it back. So it is on the embedded device with what
 * cannot end in time, as another process was stopped while it sent something here, or changed the
 * segment's tables.
 *
 * A channel of h_channel_dial() takes its manager and device with it, unless something else
 * was made on that manager, or the call is made in one of its callbacks: then these stay, and
 * it returns -EBUSY. What was sent has a second more then: see h_manager_destroy(). In a child
 * of fork() the call gives back only what the child has of it: the parent's channel is not
 * touched.
 *
 * Other threads may be in h_manager_dispatch() meanwhile. The callback that
 * h_channel_on_ready() has set is not called any more, but a call in progress is not waited
 * for: a caller outside that callback must make sure that no other thread is in it, or on
 * its way there.
 *
 * Return: 0, also if the other end had closed before; -ETIMEDOUT, -EAGAIN or
 * -EINTR if not everything is known to have arrived; -EPIPE if the other end is gone; -EBUSY
 * as said above.
 */
int h_channel_close(struct h_channel *channel, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_CHANNEL_H */
