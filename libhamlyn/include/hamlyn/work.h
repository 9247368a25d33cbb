/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: a queue of work, one master, and workers that may die.
 *
 * A work queue is a device, a manager, a listener, and a channel for each worker. The master
 * adds items (h_work_add()), which are handed out in order, each to one worker (h_worker_take()).
 * When a worker says that an item is done (h_worker_done()) the master is told, with the result.
 * An item of a worker that dies, leaves, fails (h_worker_fail()) or takes too long is given to
 * another, before those that wait: so an item is done at least once, and perhaps more often. A
 * worker that dies after it did the work, and before it said so, leaves the item to be done again.
 * Each delivery is counted; an item that no worker has done in so many is given up, as it may be
 * what kills them.
 *
 * Items live in the master's memory, and end with it. Workers join and leave at any time. They
 * need not trust each other, nor the master them, but with the work: one that says done is
 * believed.
 *
 * Any thread may add, and any may run the queue; its callbacks run in that thread, one at a
 * time. They may add items, and make no other call on the queue. A worker is for one thread.
 */
#ifndef HAMLYN_WORK_H
#define HAMLYN_WORK_H

#include <hamlyn/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_work_queue;
struct h_worker;

/**
 * struct h_work_attr - properties of a work queue; zero means default
 * @device: which one to open, as for h_open(); NULL: its default
 * @on_done: called when the item @id was done, once, with what the worker said. NULL: nothing
 * @on_failed: called when the item @id, of @length bytes at @data, is given up: it was delivered
 *	as often as may be, or is longer than any worker takes. NULL: nothing is called
 * @on_worker: called with each new worker. 0: welcome; else it is turned away (-EACCES). NULL:
 *	all are welcome
 * @on_end: called once for each that was welcome, when it is there no more, after its items
 *	were taken back. @reason: 0 if it has ended well, or the queue does; -ETIMEDOUT if it took
 *	too long; -ECONNRESET or -EPIPE if it is gone, -EPROTO if it said nonsense
 * @arg: the last argument of all of them
 * @patience_ns: for how long a worker may have an item, in nanoseconds; then its channel ends.
 *	The time counts in which no call looks at what it has said, and in which the item waits
 *	for others that the worker has. 0: for as long as it lives
 * @uids: users who may work, copied; NULL: everyone whom the path admits
 * @uid_count: how many @uids there are
 * @mode: of the path, as in struct h_listener_attr
 * @flags: H_CONNECT_TICKETS or 0
 * @items: most items at a time, that wait or are with workers (1024)
 * @max_message: longest item, and longest result, in bytes (1 MiB)
 * @bytes: of all items at a time (64 MiB)
 * @deliveries: how often an item is handed out (5)
 * @workers: most at a time, at most 65536; later ones are told -EUSERS. 0: the value of
 *	HAMLYN_CHANNELS in the environment, or 170
 * @workers_of_user: most of one user; those beyond find the end of their channel. 0: as many as
 *	there may be
 * @reserved: 0
 */
struct h_work_attr {
	const char *device;
	void (*on_done)(uint64_t id, const void *result, size_t length, void *arg);
	void (*on_failed)(uint64_t id, const void *data, size_t length, void *arg);
	int (*on_worker)(const struct h_peer *peer, void *arg);
	void (*on_end)(const struct h_peer *peer, int reason, void *arg);
	void *arg;
	int64_t patience_ns;
	const uid_t *uids;
	uint32_t uid_count;
	uint32_t mode;
	uint32_t flags;
	uint32_t items;
	uint64_t max_message;
	uint64_t bytes;
	uint32_t deliveries;
	uint32_t workers;
	uint32_t workers_of_user;
	uint32_t reserved;
};

/* With the size of the structure that the program knows: Documentation/abi.rst. */
int h__work_create(const char *path, const struct h_work_attr *attr, size_t size,
		   struct h_work_queue **queue);

/**
 * h_work_create() - open the device, make a manager, and listen for workers
 * @path: where: a path, '@' and an abstract name, or HOST/NAME
 * @attr: properties, or NULL
 * @queue: out: the queue
 *
 * Nothing is handed out but in h_work_run(), h_work_dispatch(), and by h_work_add() to workers
 * that wait. If it fails, h_explain() with no device tells the calling thread why, in words.
 *
 * Return: 0, -EINVAL with too many @workers or a negative @patience_ns, or as h_server_create().
 */
static inline int h_work_create(const char *path, const struct h_work_attr *attr,
				struct h_work_queue **queue)
{
	return h__work_create(path, attr, sizeof(*attr), queue);
}

/**
 * h_work_add() - add an item
 * @queue: the queue
 * @data: its bytes, which are copied
 * @length: how many; may be 0
 * @id: out, or NULL: its number, from 1 on
 * @timeout_ns: longest time to wait while the queue is full; items are handed out, and
 *	callbacks called, meanwhile. Not in a callback
 *
 * Return: 0; -EMSGSIZE if it is longer than max_message; -EAGAIN, -ETIMEDOUT if the queue is full;
 * -EINTR; -ENOMEM; or as h_manager_fd().
 */
int h_work_add(struct h_work_queue *queue, const void *data, size_t length, uint64_t *id,
	       int64_t timeout_ns);

/**
 * h_work_run() - hand out items until all are done
 * @queue: the queue
 * @timeout_ns: longest time to do so
 *
 * Return: 0 when there is no item any more, at once if there was none; -EAGAIN, -ETIMEDOUT when
 * the time is over; -EINTR if a signal was handled; -EBUSY in a callback; or as h_manager_fd().
 */
int h_work_run(struct h_work_queue *queue, int64_t timeout_ns);

/**
 * h_work_fd() - a descriptor for event loops, in place of h_work_run()
 * @queue: the queue
 *
 * Readable while there is something for h_work_dispatch() to do; level triggered. It does not say
 * that a worker has taken too long (@patience_ns): call h_work_dispatch() now and then. Take it
 * out of the loop before h_work_close(), which closes it.
 *
 * Return: the descriptor, owned by @queue, or a negative errno as h_manager_fd().
 */
int h_work_fd(struct h_work_queue *queue);

/**
 * h_work_dispatch() - see to workers and items, without waiting
 * @queue: the queue
 *
 * Return: 0, -EBUSY in a callback, or a negative errno as h_manager_fd().
 */
int h_work_dispatch(struct h_work_queue *queue);

/**
 * struct h_work_counters - what a work queue has done, and how it stands
 * @added: items
 * @done: of these, that were done
 * @failed: of these, that were given up
 * @deliveries: times that an item was handed out
 * @waiting: items that no worker has now
 * @out: items that workers have
 * @workers: that there are
 * @reserved: 0
 */
struct h_work_counters {
	uint64_t added;
	uint64_t done;
	uint64_t failed;
	uint64_t deliveries;
	uint32_t waiting;
	uint32_t out;
	uint32_t workers;
	uint32_t reserved;
};

int h__work_stats(struct h_work_queue *queue, struct h_work_counters *stats, size_t size);

/**
 * h_work_stats() - counters and state of a work queue
 * @queue: the queue
 * @stats: out: how things stand
 *
 * Return: 0; -EBUSY in a callback.
 */
static inline int h_work_stats(struct h_work_queue *queue, struct h_work_counters *stats)
{
	return h__work_stats(queue, stats, sizeof(*stats));
}

/**
 * h_work_close() - end a work queue, its workers' channels, its manager and its device
 * @queue: the queue, or NULL: nothing; not in one of its callbacks
 * @timeout_ns: longest time to wait until the workers know that this is the end; those that
 *	do not find a broken channel
 *
 * Items that were not done are lost: call h_work_run() before. The queue is destroyed, whatever
 * the call returns but -EBUSY. In a child of fork() the call gives back what the child has, and
 * touches no worker.
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT if not all workers are known to know; -EBUSY in a callback,
 * then nothing was done.
 */
int h_work_close(struct h_work_queue *queue, int64_t timeout_ns);

/* ---- workers ------------------------------------------------------------ */

/**
 * struct h_worker_attr - properties of a worker; zero means default
 * @device: which one to open, as for h_open(); NULL: its default
 * @uids: users whose queues are acceptable; NULL: any user's
 * @uid_count: how many @uids there are
 * @flags: H_CONNECT_*
 * @at_once: how many items it may have at a time (1), at most 1024. With 2 the next one is
 *	there when one is done
 * @buffers: for items, as @buffer_size, @max_buffer_size and @max_message: see
 *	struct h_channel_attr. An item that is longer than @max_message fails, if no other
 *	worker takes it
 * @buffer_size: see there
 * @max_buffer_size: see there
 * @max_message: see there
 */
struct h_worker_attr {
	const char *device;
	const uid_t *uids;
	uint32_t uid_count;
	uint32_t flags;
	uint32_t at_once;
	uint32_t buffers;
	uint32_t buffer_size;
	uint32_t max_buffer_size;
	uint64_t max_message;
};

int h__worker_create(const char *path, const struct h_worker_attr *attr, size_t size,
		     struct h_worker **worker, int64_t timeout_ns);

/**
 * h_worker_create() - open the device, make a manager, and join a work queue
 * @path: what the queue was given
 * @attr: properties, or NULL
 * @worker: out: the worker
 * @timeout_ns: longest time to wait; it takes some time, as the master has to let it in
 *
 * If it fails, h_explain() with no device tells the calling thread why, in words.
 *
 * Return: 0; -EACCES if the master turns it away, or as the path says; -EPROTO if there is no
 * work queue there; -EINVAL; or as h_channel_dial().
 */
static inline int h_worker_create(const char *path, const struct h_worker_attr *attr,
				  struct h_worker **worker, int64_t timeout_ns)
{
	return h__worker_create(path, attr, sizeof(*attr), worker, timeout_ns);
}

/**
 * struct h_work_item - an item that a worker has
 * @data: first byte, in the worker's memory
 * @length: bytes, may be 0
 * @id: of the item
 * @delivery: how often it was handed out, this time included: if more than 1, somebody may have
 *	done it already
 * @reserved: 0
 *
 * Read-only; the other members are private.
 */
struct h_work_item {
	const void *data;
	size_t length;
	uint64_t id;
	uint32_t delivery;
	uint32_t reserved;
	/* private: */
	struct h_message message;
};

/**
 * h_worker_take() - take the next item
 * @worker: the worker
 * @item: out: the item, until h_worker_done() or h_worker_fail()
 * @timeout_ns: longest time to wait
 *
 * With as many items as @at_once says, no more come.
 *
 * Return: 0; -ENODATA at the end, when the queue was closed; -EAGAIN, -ETIMEDOUT, -EINTR;
 * -ECONNRESET if the master is gone, or has ended this worker as it took too long; -EPROTO if it
 * broke the rules; -ENOMEM.
 */
int h_worker_take(struct h_worker *worker, struct h_work_item *item, int64_t timeout_ns);

/**
 * h_worker_done() - say that an item was done
 * @worker: the worker
 * @item: what h_worker_take() gave; in any order. It is empty afterwards, unless the call fails
 * @result: bytes for the master
 * @length: how many; may be 0
 * @timeout_ns: longest time to wait until that can be sent
 *
 * Return: 0; -EINVAL if @item is empty or another worker's; -EALREADY if a copy of it was done or
 * failed before; or as h_channel_send().
 */
int h_worker_done(struct h_worker *worker, struct h_work_item *item, const void *result,
		  size_t length, int64_t timeout_ns);

/**
 * h_worker_fail() - give an item back, to be done by somebody else, or later
 * @worker: the worker
 * @item: as for h_worker_done()
 * @timeout_ns: as there
 *
 * Return: as h_worker_done().
 */
int h_worker_fail(struct h_worker *worker, struct h_work_item *item, int64_t timeout_ns);

/**
 * h_worker_fd() - a descriptor for event loops
 * @worker: the worker
 *
 * Readable while there may be an item to take; level triggered. Then call h_worker_take() with
 * H_NOWAIT, until it returns -EAGAIN: that makes it unreadable. Take it out of the loop before
 * h_worker_close(), which closes it.
 *
 * Return: the descriptor, owned by @worker, or a negative errno as h_manager_fd().
 */
int h_worker_fd(struct h_worker *worker);

/**
 * h_worker_close() - leave a work queue, and end the channel, its manager and its device
 * @worker: the worker, or NULL: nothing
 * @timeout_ns: longest time to wait until all that was said to be done has arrived
 *
 * Items that were taken, and were neither done nor failed, are given to others. The worker is
 * destroyed, whatever the call returns. In a child of fork() the call gives back what the child
 * has, and ends nothing.
 *
 * Return: as h_channel_close().
 */
int h_worker_close(struct h_worker *worker, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_WORK_H */
