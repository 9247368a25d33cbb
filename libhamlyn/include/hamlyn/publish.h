/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: one publishes, many subscribe, and none of them need trust another.
 *
 * A publisher is a device, a manager, a listener, and a channel for each subscriber. A message
 * is built once, in memory that the NIC reads (h_publisher_reserve()), and leaves from there
 * to each subscriber: the NIC's is the only copy, one a subscriber. Messages are numbered. What
 * a subscriber has received does not change until it is released, and nobody can write to it but
 * the publisher; a subscriber cannot write to anybody.
 *
 * Each subscriber says what is to be done when it does not keep up, that is when its buffers
 * hold messages that it has not released:
 *
 * - H_DROP_OLDEST: the publisher keeps the last messages (history), and sends them when there is
 *   room; beyond that the oldest that was not sent is dropped. Good for state;
 * - H_DROP_NEWEST: what finds no room is dropped at once. Good for logs;
 * - H_WAIT: nothing is dropped. When it is as many messages behind as are kept, nothing more can
 *   be published, until it has released one, or the publisher's patience is over. Then it is
 *   given up: its channel ends. Publishers wait for nobody unless they are told for how long.
 *
 * Those that drop cost the others nothing, whether they are slow, stopped or dead; but while
 * another host takes nothing, no message reaches subscribers on other hosts than the publisher's.
 * A subscriber learns by the numbers how many messages it has lost, before each that it receives.
 *
 * Any thread may publish. A subscriber's messages are received by one thread at a time, and
 * released by any.
 */
#ifndef HAMLYN_PUBLISH_H
#define HAMLYN_PUBLISH_H

#include <hamlyn/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_publisher;
struct h_subscriber;

/* What is done with messages for which a subscriber has no room. */
#define H_DROP_OLDEST	0
#define H_DROP_NEWEST	1
#define H_WAIT		2

/**
 * struct h_subscription - what a publisher knows of a subscriber
 * @peer: which process it is
 * @policy: H_DROP_OLDEST, H_DROP_NEWEST or H_WAIT
 * @history: how many of the messages that were published before it wants to have
 * @sent: messages that were sent to it
 * @dropped: messages that were not, and will not be
 */
struct h_subscription {
	struct h_peer peer;
	uint32_t policy;
	uint32_t history;
	uint64_t sent;
	uint64_t dropped;
};

/**
 * struct h_publisher_attr - properties of a publisher; zero means default
 * @device: which one to open, as for h_open(); NULL: its default
 * @on_subscriber: called with each new subscriber. 0: welcome; else it is turned away (-EACCES).
 *	NULL: all are welcome
 * @on_end: called once for each that was welcome, when it is there no more. @reason: 0 if it
 *	has ended well, or the publisher does; -ETIMEDOUT if it was given up; -ECONNRESET or
 *	-EPIPE if it is gone, -EPROTO if it said what no subscriber says. NULL: nothing is called
 * @arg: the last argument of both
 * @patience_ns: for how long a subscriber of H_WAIT may keep a message from being published, in
 *	nanoseconds; negative: for ever; 0: those that ask for it are turned away (-EOPNOTSUPP).
 *	When one was given up, others of its user are not waited for, for a hundred times as long
 * @uids: users who may subscribe, copied; NULL: everyone whom the path admits
 * @uid_count: how many @uids there are
 * @mode: of the path, as in struct h_listener_attr
 * @flags: H_CONNECT_TICKETS or 0
 * @history: how many messages are kept (64), at most 65536
 * @max_message: longest message, in bytes (1 MiB)
 * @subscribers: most subscribers at a time, at most 65536; later ones are told -EUSERS. 0: the
 *	value of HAMLYN_CHANNELS in the environment, or 170
 * @subscribers_of_user: most of one user at a time, so that no user keeps out the others; those
 *	beyond find the end of their channel. 0: as many as there may be
 */
struct h_publisher_attr {
	const char *device;
	int (*on_subscriber)(const struct h_subscription *subscription, void *arg);
	void (*on_end)(const struct h_subscription *subscription, int reason, void *arg);
	void *arg;
	int64_t patience_ns;
	const uid_t *uids;
	uint32_t uid_count;
	uint32_t mode;
	uint32_t flags;
	uint32_t history;
	uint64_t max_message;
	uint32_t subscribers;
	uint32_t subscribers_of_user;
};

/* With the size of the structure that the program knows: Documentation/abi.rst. */
int h__publisher_create(const char *path, const struct h_publisher_attr *attr, size_t size,
			struct h_publisher **publisher);

/**
 * h_publisher_create() - open the device, make a manager, and listen for subscribers
 * @path: where: a path, '@' and an abstract name, or HOST/NAME
 * @attr: properties, or NULL
 * @publisher: out: the publisher
 *
 * Subscribers are let in, and told apart from the dead, in calls of the publisher: at least once
 * a millisecond by those that publish; else by h_publisher_run() or h_publisher_dispatch().
 *
 * If it fails, h_explain() with no device tells the calling thread why, in words.
 *
 * Return: 0, -EINVAL if @history or @subscribers is too large, or as h_server_create().
 */
static inline int h_publisher_create(const char *path, const struct h_publisher_attr *attr,
				     struct h_publisher **publisher)
{
	return h__publisher_create(path, attr, sizeof(*attr), publisher);
}

/**
 * h_publisher_send() - publish a message
 * @publisher: the publisher
 * @data: its bytes, which are copied once, to where they are sent from
 * @length: how many; may be 0
 * @timeout_ns: longest time to wait for subscribers of H_WAIT that are in the way
 *
 * A message is published to all or to none. It was published when the call returns 0, whoever
 * has received it. If a subscriber of H_WAIT is too far behind, and neither takes a message nor is
 * given up within @timeout_ns, the call fails, and nobody gets the message; what was published
 * before goes on to all others. Call it again, or publish something newer.
 *
 * Return: 0; -EMSGSIZE if it is longer than max_message; -EAGAIN, -ETIMEDOUT; -EINTR;
 * -ENOMEM, or as h_manager_alloc(); -EBUSY in a callback of this publisher.
 */
int h_publisher_send(struct h_publisher *publisher, const void *data, size_t length,
		     int64_t timeout_ns);

/**
 * h_publisher_reserve() - borrow memory to build a message in
 * @publisher: the publisher
 * @length: bytes, as many as the message can have
 * @loan: out: the memory, aligned to 16, until h_publisher_commit() or h_publisher_abandon()
 *
 * Any number can be out at a time. Does not wait.
 *
 * Return: 0; -EMSGSIZE, -ENOMEM, -EBUSY, or as h_manager_alloc().
 */
int h_publisher_reserve(struct h_publisher *publisher, size_t length, struct h_loan *loan);

/**
 * h_publisher_commit() - publish what was built in a loan
 * @publisher: the publisher
 * @loan: what h_publisher_reserve() gave. It is empty afterwards, unless the call fails: then it
 *	is as it was, to be committed again or abandoned
 * @length: bytes of the message, from the first of the loan on; at most @loan's; may be 0
 * @timeout_ns: as for h_publisher_send()
 *
 * Return: as h_publisher_send(); -EINVAL if @length is more than was reserved, or the loan is
 * empty or not of this publisher; -EALREADY if a copy of it was committed or abandoned before.
 */
int h_publisher_commit(struct h_publisher *publisher, struct h_loan *loan, size_t length,
		       int64_t timeout_ns);

/**
 * h_publisher_abandon() - give a loan back, and publish nothing
 * @publisher: the publisher
 * @loan: what h_publisher_reserve() gave; it is empty afterwards. h_publisher_close() does the
 *	same to those that are out then
 *
 * Return: 0, also if it is empty; -EINVAL, -EALREADY as h_publisher_commit(); -EBUSY.
 */
int h_publisher_abandon(struct h_publisher *publisher, struct h_loan *loan);

/**
 * h_publisher_run() - publish nothing for a while, and see to the subscribers
 * @publisher: the publisher
 * @timeout_ns: for how long
 *
 * In place of sleeping: new subscribers are let in, and those that lag are sent what is kept
 * for them. Other threads may publish meanwhile.
 *
 * Return: -EAGAIN, -ETIMEDOUT when the time is over; -EINTR if a signal was handled; -EBUSY in a
 * callback; or as h_manager_fd().
 */
int h_publisher_run(struct h_publisher *publisher, int64_t timeout_ns);

/**
 * h_publisher_fd() - a descriptor for event loops
 * @publisher: the publisher
 *
 * Readable while there is something for h_publisher_dispatch() to do; level triggered. Take it
 * out of the loop before h_publisher_close(), which closes it.
 *
 * Return: the descriptor, owned by @publisher, or a negative errno as h_manager_fd().
 */
int h_publisher_fd(struct h_publisher *publisher);

/**
 * h_publisher_dispatch() - see to the subscribers, without waiting
 * @publisher: the publisher
 *
 * Return: 0, -EBUSY in a callback, or a negative errno as h_manager_fd().
 */
int h_publisher_dispatch(struct h_publisher *publisher);

/**
 * h_publisher_manager() - the manager of a publisher
 * @publisher: the publisher
 *
 * For h_manager_stats(), and by h_manager_dev() for h_explain().
 *
 * Return: the manager, which lives as long as the publisher.
 */
struct h_manager *h_publisher_manager(const struct h_publisher *publisher);

/**
 * struct h_publisher_counters - what a publisher has done, and how it stands
 * @published: messages
 * @sent: messages to subscribers, one for each
 * @dropped: messages for subscribers that were dropped, one for each
 * @given_up: subscribers of H_WAIT that were given up
 * @subscribers: that there are
 * @lagging: of these, that have no room for more
 */
struct h_publisher_counters {
	uint64_t published;
	uint64_t sent;
	uint64_t dropped;
	uint64_t given_up;
	uint32_t subscribers;
	uint32_t lagging;
};

int h__publisher_stats(struct h_publisher *publisher, struct h_publisher_counters *stats,
		       size_t size);

/**
 * h_publisher_stats() - counters and state of a publisher
 * @publisher: the publisher
 * @stats: out: how things stand
 *
 * Return: 0; -EBUSY in a callback.
 */
static inline int h_publisher_stats(struct h_publisher *publisher,
				    struct h_publisher_counters *stats)
{
	return h__publisher_stats(publisher, stats, sizeof(*stats));
}

/**
 * h_publisher_close() - end a publisher, its subscribers' channels, its manager and its device
 * @publisher: the publisher, or NULL: nothing; not in one of its callbacks
 * @timeout_ns: longest time to wait until what was published has arrived at all subscribers;
 *	those at which something has not find a broken channel
 *
 * The publisher is destroyed, whatever the call returns but -EBUSY. In a child of fork() the
 * call gives back what the child has, and touches no subscriber.
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT if not everything is known to have arrived; -EBUSY in a
 * callback, then nothing was done.
 */
int h_publisher_close(struct h_publisher *publisher, int64_t timeout_ns);

/* ---- subscribers -------------------------------------------------------- */

/**
 * struct h_subscriber_attr - properties of a subscriber; zero means default
 * @device: which one to open, as for h_open(); NULL: its default
 * @uids: users whose publishers are acceptable; NULL: any user's
 * @uid_count: how many @uids there are
 * @flags: H_CONNECT_*
 * @policy: H_DROP_OLDEST, H_DROP_NEWEST or H_WAIT
 * @history: how many of the last messages that were published before are wanted; fewer come
 *	if there were not so many, or are not kept any more
 * @max_message: longest message that this subscriber takes, in bytes (16 MiB), 8 at least: those
 *	that are longer are lost
 * @buffers: how many messages can be waiting to be received, as @buffer_size and
 *	@max_buffer_size: see struct h_stream_attr. A message that is longer than a buffer
 *	takes several, and is assembled by copying
 * @buffer_size: see there
 * @max_buffer_size: see there
 * @reserved: 0
 */
struct h_subscriber_attr {
	const char *device;
	const uid_t *uids;
	uint32_t uid_count;
	uint32_t flags;
	uint32_t policy;
	uint32_t history;
	uint64_t max_message;
	uint32_t buffers;
	uint32_t buffer_size;
	uint32_t max_buffer_size;
	uint32_t reserved;
};

int h__subscriber_create(const char *path, const struct h_subscriber_attr *attr, size_t size,
			 struct h_subscriber **subscriber, int64_t timeout_ns);

/**
 * h_subscriber_create() - open the device, make a manager, and subscribe
 * @path: what the publisher was given
 * @attr: properties, or NULL
 * @subscriber: out: the subscriber
 * @timeout_ns: longest time to wait; it takes some time, as the publisher has to let it in
 *
 * If it fails, h_explain() with no device tells the calling thread why, in words.
 *
 * Return: 0; -EACCES if the publisher turns it away, or as the path says; -EOPNOTSUPP if the
 * publisher waits for nobody, with H_WAIT; -EBUSY if it has given up a subscriber of this user
 * of late, with H_WAIT; -EPROTO if there is no publisher there; -EINVAL; or as h_channel_dial().
 */
static inline int h_subscriber_create(const char *path, const struct h_subscriber_attr *attr,
				      struct h_subscriber **subscriber, int64_t timeout_ns)
{
	return h__subscriber_create(path, attr, sizeof(*attr), subscriber, timeout_ns);
}

/**
 * struct h_publication - a message that was published
 * @data: first byte, aligned to 16 if it fits a buffer; in the subscriber's memory
 * @length: bytes, may be 0
 * @number: of the message, of all that were published: from 1 on
 * @lost: how many there were between this one and the last that was received, or since the
 *	subscriber was let in
 *
 * Read-only; the other members are private.
 */
struct h_publication {
	const void *data;
	size_t length;
	uint64_t number;
	uint64_t lost;
	/* private: */
	struct h_message message;
};

/**
 * h_subscriber_receive() - receive the next message
 * @subscriber: the subscriber
 * @publication: out: the message, valid until h_subscriber_release()
 * @timeout_ns: longest time to wait
 *
 * Return: 0; -ENODATA at the end, when the publisher has closed and everything was received;
 * -EAGAIN, -ETIMEDOUT, -EINTR; -ECONNRESET if the publisher is gone without having closed,
 * or has given this subscriber up (H_WAIT); -EPROTO if it broke the rules; -ENOMEM.
 */
int h_subscriber_receive(struct h_subscriber *subscriber, struct h_publication *publication,
			 int64_t timeout_ns);

/**
 * h_subscriber_release() - give back a message
 * @subscriber: the subscriber
 * @publication: what h_subscriber_receive() gave; in any order, by any thread. It is empty
 *	afterwards
 *
 * Return: as h_channel_release().
 */
int h_subscriber_release(struct h_subscriber *subscriber, struct h_publication *publication);

/**
 * h_subscriber_fd() - a descriptor for event loops
 * @subscriber: the subscriber
 *
 * Readable while there may be something to receive; level triggered. Then call
 * h_subscriber_receive() with H_NOWAIT, until it returns -EAGAIN: that makes it unreadable.
 * Take it out of the loop before h_subscriber_close(), which closes it.
 *
 * Return: the descriptor, owned by @subscriber, or a negative errno as h_manager_fd().
 */
int h_subscriber_fd(struct h_subscriber *subscriber);

/**
 * h_subscriber_channel() - the channel of a subscriber
 * @subscriber: the subscriber
 *
 * For h_channel_peer() and h_channel_stats(). The program neither sends nor receives on it.
 *
 * Return: the channel, which lives as long as the subscriber.
 */
struct h_channel *h_subscriber_channel(const struct h_subscriber *subscriber);

/**
 * h_subscriber_close() - end a subscriber, its channel, its manager and its device
 * @subscriber: the subscriber, or NULL: nothing; its messages were released
 *
 * The publisher finds that it has ended. In a child of fork() the call gives back what the
 * child has, and ends nothing.
 *
 * Return: 0.
 */
int h_subscriber_close(struct h_subscriber *subscriber);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_PUBLISH_H */
