/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: the manager and what receivers have in common (H 3.3).
 *
 * A manager has one send terminus, one NQ and memory for both sending and receiving; and,
 * once one of its threads has had to wake another, a small terminus for that. End points
 * (datagram.h, stream.h, tagged.h, group.h, channel.h) are made on a manager and hand each
 * other what arrives: a thread that receives on one of them polls for all.
 *
 * Unlike the paper's upper layer this one is thread-safe: any thread may call
 * anything at any time, except that an object must not be destroyed while another
 * thread is inside a call on it. With H_MANAGER_SINGLE the caller guarantees that only
 * one thread at a time makes calls, which saves the locks.
 *
 * Time-outs are in nanoseconds. 0: do not wait (-EAGAIN); negative: wait forever; otherwise
 * calls return -ETIMEDOUT when the time is over.
 */
#ifndef HAMLYN_MANAGER_H
#define HAMLYN_MANAGER_H

#include <stdbool.h>

#include <hamlyn.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_manager;
struct h_receiver;

/* ---- managers ----------------------------------------------------------- */

#define H_MANAGER_SINGLE	(1U << 0)	/* one thread at a time */

/**
 * struct h_manager_attr - properties of a manager; zero means default
 * @nq_entries: entries of the NQ, a power of two, at least 16 (4096). Some of them are set
 *	aside for each end point, so that it can never run out: for a stream as many as
 *	it has buffers, plus 1; for the other end of it 7
 * @flags: H_MANAGER_*
 * @spin_ns: how long a call polls before it sleeps, in nanoseconds, not counting time that
 *	it leaves to other threads meanwhile; negative: forever; 0: 20000, or a 16th of that
 *	after four times in a row in vain, but for every eighth time
 * @wq_entries: of the send terminus, as @wq_entry_size, @priority and @weight: see
 *	struct h_terminus_attr
 * @wq_entry_size: see there; at least 256
 * @priority: see there
 * @weight: see there
 * @channels: with @nq_entries 0: how many channels with default buffers the manager is for.
 *	The NQ is made large enough for them: 24 entries each. 0: the value of HAMLYN_CHANNELS
 *	in the environment, or 170
 * @reserved: 0
 * @budget: bytes by which the buffers of all end points of the manager together may grow
 *	beyond what they were made with, as long messages come and go, and that are kept on
 *	the heap for the next ones. A smaller budget only makes this slower. 0: a quarter of
 *	the largest area of the device, at most 32 MiB. As many bytes of copies may wait for
 *	other hosts besides (h_datagram_send(), h_stream_send())
 */
struct h_manager_attr {
	uint32_t nq_entries;
	uint32_t flags;
	int64_t spin_ns;
	uint32_t wq_entries;
	uint32_t wq_entry_size;
	uint32_t priority;
	uint32_t weight;
	uint32_t channels;
	uint32_t reserved;
	uint64_t budget;
};

/* With the size of the structure that the program knows: Documentation/abi.rst. */
int h__manager_create(struct h_dev *dev, const struct h_manager_attr *attr, size_t size,
		      struct h_manager **manager);

/**
 * h_manager_create() - create a manager (H 3.3)
 * @dev: the device; it must stay open until the manager is destroyed
 * @attr: properties, or NULL
 * @manager: out: the manager
 *
 * Return: 0, or -EINVAL, -ENOMEM, or as h_nq_create(), h_terminus_create(),
 * h_area_alloc(), h_slot_create(). -E2BIG as h_slot_create(), or as h_area_alloc().
 */
static inline int h_manager_create(struct h_dev *dev, const struct h_manager_attr *attr,
				   struct h_manager **manager)
{
	return h__manager_create(dev, attr, sizeof(*attr), manager);
}

/**
 * h_manager_drain() - wait until everything that was sent has left
 * @manager: the manager
 * @timeout_ns: longest time to wait
 *
 * Call it, for instance, before a process exits whose last message matters. After it,
 * everything that a call reported as sent is in the memory of receivers on this host,
 * including what was kept of a long message (h_channel_send()) and what streams collect. What
 * is for another host is on its way there, in order, and gets there also if this process
 * ends; the end of the connection between the hosts loses it. It may have to wait for the
 * receivers.
 *
 * Return: 0, also for messages that the NIC refused, or whose receiver is gone; -EAGAIN,
 * -ETIMEDOUT, -EINTR: something is left, and is still to be sent.
 */
int h_manager_drain(struct h_manager *manager, int64_t timeout_ns);

/**
 * h_manager_destroy() - destroy a manager
 * @manager: the manager, or NULL: nothing
 *
 * What was sent has a second to leave, also by channels and streams that are closed. What other
 * hosts have not taken then is lost, and gives back its memory within some seconds (within one,
 * if they take nothing). The memory of h_manager_alloc() and the
 * descriptor of h_manager_fd() are gone with it.
 *
 * Return: 0, or -EBUSY while it has end points, or is calling back: it cannot be destroyed
 * in a callback, not even after that has destroyed all end points.
 */
int h_manager_destroy(struct h_manager *manager);

/**
 * struct h_manager_counters - what a manager has done, and what it has
 * @arrivals: notifications that it took from its queue, modulo 2^32
 * @sleepers: threads that sleep now
 * @receivers: end points, also those inside channels and streams
 * @reserved: 0
 * @sleeps: times that a thread slept, or was about to, because nothing had arrived for it
 * @receive_bytes: wired memory that end points receive into
 * @send_bytes: wired memory of h_manager_alloc(), and that streams and channels send from
 * @budget: bytes by which buffers may grow in all (struct h_manager_attr)
 * @budget_taken: bytes of it in use
 */
struct h_manager_counters {
	uint32_t arrivals;
	uint32_t sleepers;
	uint32_t receivers;
	uint32_t reserved;
	uint64_t sleeps;
	uint64_t receive_bytes;
	uint64_t send_bytes;
	uint64_t budget;
	uint64_t budget_taken;
};

int h__manager_stats(struct h_manager *manager, struct h_manager_counters *stats, size_t size);

/**
 * h_manager_stats() - counters and state of a manager
 * @manager: the manager
 * @stats: out: how things stand; each member by itself, others change meanwhile
 *
 * Counters begin at 0 with the manager and are not reset. What an older library does not
 * count is 0.
 *
 * Return: 0.
 */
static inline int h_manager_stats(struct h_manager *manager, struct h_manager_counters *stats)
{
	return h__manager_stats(manager, stats, sizeof(*stats));
}

/**
 * h_manager_dev() - the device of a manager
 * @manager: the manager
 *
 * Return: what h_manager_create() was given.
 */
struct h_dev *h_manager_dev(const struct h_manager *manager);

/**
 * h_manager_terminus() - the send terminus of a manager
 * @manager: the manager
 *
 * For additional raw sends. Its send buffer tags belong to the manager.
 *
 * Return: the terminus, which lives as long as the manager.
 */
struct h_terminus *h_manager_terminus(const struct h_manager *manager);

/**
 * h_manager_poll() - look for arrivals and give them to their receivers
 * @manager: the manager
 *
 * The paper's poll_nowait. Receive calls poll on their own. It also sends on what was kept
 * of messages that count as sent, of all channels of the manager.
 *
 * Return: how many arrivals there were (at most 64 per call), or 0; also 0 while
 * another thread is polling.
 */
int h_manager_poll(struct h_manager *manager);

/* ---- memory ------------------------------------------------------------- */

/**
 * h_manager_alloc() - memory that can be sent from without copying
 * @manager: the manager
 * @length: bytes
 * @addr: out: at least @length bytes, aligned to 64, not zeroed
 *
 * Return: 0, or -EINVAL if @length is 0, -ENOSPC if the terminus has no send
 * buffer tag left for another area, or as h_area_alloc(): -E2BIG, -EDQUOT, -ENOSPC,
 * -ENOMEM; -ETIMEDOUT if a process that is stopped holds the embedded device's tables.
 */
int h_manager_alloc(struct h_manager *manager, size_t length, void **addr);

/**
 * h_manager_free() - give back what h_manager_alloc() gave
 * @manager: the manager
 * @addr: its address, when nothing is being sent from it any more, or NULL: nothing
 *
 * The memory stays with the manager for the next h_manager_alloc(), unless much more of it
 * is unused than used: then it goes back to the device.
 *
 * Return: 0, also for NULL; -EALREADY if it was given back before and not allocated since,
 * -EINVAL if no memory of h_manager_alloc() of this manager begins there. Then nothing
 * happens, and h_explain() says which.
 */
int h_manager_free(struct h_manager *manager, void *addr);

/**
 * h_manager_register() - let the caller's own memory be sent from without copying
 * @manager: the manager
 * @addr: first byte; stays mapped as h_area_add() says
 * @length: bytes
 *
 * Return: 0, or -ENOSPC if the terminus has no send buffer tag left: of those that it has,
 * h_query()'s max_tags, the manager keeps 3 for memory of its own. Or as h_area_add().
 */
int h_manager_register(struct h_manager *manager, void *addr, size_t length);

/**
 * h_manager_unregister() - end of h_manager_register()
 * @manager: the manager
 * @addr: the address passed to it; nothing is being sent from it any more
 *
 * Return: 0, or -ENOENT if it was not registered.
 */
int h_manager_unregister(struct h_manager *manager, void *addr);

/* ---- event loops -------------------------------------------------------- */

/**
 * h_manager_fd() - a descriptor for poll(), epoll and event loops
 * @manager: the manager
 *
 * Readable while something waits for h_manager_dispatch(): on both devices, level
 * triggered, with nothing else to do before sleeping. What could not be sent is tried again
 * by a timer, a millisecond later and then ever more seldom, up to 60 times a second: a peer
 * that takes nothing does not keep the loop from sleeping. On the embedded device a thread
 * of the library watches the NQ from the first call on. On the kernel device it is
 * readable for anything that arrives in the context, so give each manager that is waited
 * for in this way a context (h_open()) of its own.
 *
 * Wait for it to be readable, and for nothing else; not for edges (EPOLLET). Take it out of
 * the loop before h_manager_destroy(), which closes it.
 *
 * Return: the descriptor, owned by @manager, or a negative errno.
 */
int h_manager_fd(struct h_manager *manager);

/**
 * h_manager_dispatch() - look for arrivals, call back for each end point that has some
 * @manager: the manager
 *
 * Calls, in this thread and without holding a lock, what h_receiver_on_ready() and
 * its counterparts for end points have set, once for each end point that has something
 * to receive. One that leaves something unreceived is called again next time.
 * A callback may do anything, including destroying its own end point, but it must not
 * destroy the manager. Several threads may dispatch; no end point is called by two of them
 * at the same time.
 *
 * A callback may also be left abruptly, and this function with it: by a C++ exception, by
 * pthread_exit() or a cancellation, or by longjmp(). The end point is called again as
 * long as it has something. After longjmp() the manager recovers in the next call of this
 * function, h_manager_wait() or h_manager_fd() that the same thread makes, from the function
 * that called this one or from one of its callers: make such a call before sleeping, or
 * before h_manager_destroy(). Functions that run with something locked must return:
 * process_arrival(), process_overrun(), pending() and settle() of a receiver's class.
 *
 * Return: how many were called, or 0.
 */
int h_manager_dispatch(struct h_manager *manager);

/**
 * h_manager_wait() - sleep until h_manager_dispatch() has something to do
 * @manager: the manager
 * @timeout_ns: longest time to wait
 *
 * For loops that wait for nothing else.
 *
 * Return: 0, also for h_manager_kick(); -EAGAIN, -ETIMEDOUT, -EINTR if a signal was handled
 * (kernel device: by a handler without SA_RESTART; otherwise it may go on sleeping).
 */
int h_manager_wait(struct h_manager *manager, int64_t timeout_ns);

/**
 * h_manager_kick() - end a wait
 * @manager: the manager
 *
 * A thread that is in h_manager_wait() returns from there, or, if there is none, the next one
 * that calls it does so at once, whatever its time-out. Kicks that no wait has returned for
 * yet are one; of several threads that wait, one returns. What was written before the kick is
 * seen after the wait. Other calls that wait or dispatch, and the descriptor of
 * h_manager_fd(), do not notice.
 *
 * Any thread may call it, also on a manager with H_MANAGER_SINGLE, and so may a signal
 * handler, whatever it has interrupted. It takes no lock, and changes no errno; nor does it
 * wait, but on a NIC without engines whose user is held back for guessing keys (guesses): up to
 * a second. The wait ends soon, but up to half a second later
 *
 * - on a NIC that is down, or that had no terminus left for the manager to tell itself by;
 * - where a handler has interrupted another kick, or a call of this manager, and does not
 *   return: its kick, and those that follow, leave the word to what it has interrupted.
 */
void h_manager_kick(struct h_manager *manager);

/* ---- custom receivers --------------------------------------------------- */

/**
 * struct h_receiver_class - what a kind of receiver does
 * @name: for people
 * @process_arrival: record an arrival. Called by any thread that polls, or that makes or
 *	ends an end point of the manager, with the receiver locked: it may change the
 *	receiver and send, but must neither wait nor receive. @entry is a copy. With
 *	HAMLYN_NQE_PEER_GONE it comes from a watch whose cookie was h_receiver_cookie().
 * @process_overrun: notifications were lost (H 2.6): look in the metadata entries.
 *	Called as @process_arrival; may be NULL. It happens only on a manager with
 *	receivers of other modes than paranoid one-shot whose senders sent more
 *	than was set aside for them.
 * @pending: is there something to receive? Called with the receiver locked.
 * @settle: send what could not be sent, and say by h_receiver_owes() whether something
 *	is still left. Called as @process_arrival, about once a millisecond and, while nothing
 *	is sent, ever more seldom, every 16 ms at last; may be NULL if that
 *	function is not called.
 */
struct h_receiver_class {
	const char *name;
	void (*process_arrival)(struct h_receiver *receiver,
				const struct hamlyn_nq_entry *entry);
	void (*process_overrun)(struct h_receiver *receiver);
	bool (*pending)(const struct h_receiver *receiver);
	void (*settle)(struct h_receiver *receiver);
};

/**
 * struct h_receiver_attr - what a receiver is made of; leave at zero what is not needed
 * @length: bytes of the message area; 0: 64
 * @entries: metadata entries
 * @mode: enum hamlyn_slot_mode
 * @flags: HAMLYN_SLOT_*
 * @arrivals: entries of the NQ to set aside: the most notifications that can be on
 *	their way at a time; 0: as @entries, or 64 without entries
 */
struct h_receiver_attr {
	size_t length;
	uint32_t entries;
	uint32_t mode;
	uint32_t flags;
	uint32_t arrivals;
};

/**
 * struct h_receiver - what all receivers have; the first member of a custom one
 * @class_: what kind it is
 * @manager: its manager
 * @slot: its slot
 * @data: its message area
 * @metadata: its metadata entries, or NULL
 *
 * Read-only; the other members are private.
 */
struct h_receiver {
	const struct h_receiver_class *class_;
	struct h_manager *manager;
	struct h_slot *slot;
	void *data;
	struct hamlyn_metadata *metadata;
	/* private: */
	void (*on_ready)(struct h_receiver *receiver, void *arg);
	void *arg;
	struct h_receiver *next;
	struct h_receiver *prev;
	struct h_receiver *next_ready;
	uint32_t lock;
	uint32_t events;	/* arrivals so far, modulo 2^32 */
	uint32_t queued;	/* on the manager's list of ready receivers */
	uint32_t arrivals;
	struct h_receiver *twin;	/* of the same end point, or NULL */
	uint32_t owes;		/* h_receiver_owes() */
	uint32_t class_size;	/* of *@class_, as the program knows it */
	uint64_t reserved[4];
};

int h__receiver_init(struct h_receiver *receiver, struct h_manager *manager,
		     const struct h_receiver_class *class_, size_t class_size,
		     const struct h_receiver_attr *attr, size_t size);

/**
 * h_receiver_init() - make a custom receiver
 * @receiver: out: filled in
 * @manager: its manager
 * @class_: what it does; must stay valid
 * @attr: what it is made of
 *
 * The first arrival may be processed before the call returns.
 *
 * Return: 0, or -ENOSPC if the manager's NQ does not have @arrivals entries left, or as
 * h_area_alloc(), h_slot_create(): -E2BIG also for @class_.
 */
static inline int h_receiver_init(struct h_receiver *receiver, struct h_manager *manager,
				  const struct h_receiver_class *class_,
				  const struct h_receiver_attr *attr)
{
	return h__receiver_init(receiver, manager, class_, sizeof(*class_), attr,
				sizeof(*attr));
}

/**
 * h_receiver_exit() - end of h_receiver_init()
 * @receiver: the receiver, or NULL: nothing
 *
 * Destroys the slot; what arrived and was not received is lost. Afterwards
 * process_arrival() is not called any more.
 *
 * Return: 0, or -ETIMEDOUT as h_slot_destroy(): then it still exists.
 */
int h_receiver_exit(struct h_receiver *receiver);

/**
 * h_receiver_on_ready() - have h_manager_dispatch() call back
 * @receiver: the receiver
 * @ready: what to call, or NULL for nothing
 * @arg: its second argument
 */
void h_receiver_on_ready(struct h_receiver *receiver,
			 void (*ready)(struct h_receiver *receiver, void *arg),
			 void *arg);

/**
 * h_receiver_lock() - keep process_arrival() out
 * @receiver: the receiver
 *
 * Hold it only briefly, since it is a spin lock, and never across h_receiver_wait().
 */
void h_receiver_lock(struct h_receiver *receiver);

/**
 * h_receiver_unlock() - end of h_receiver_lock()
 * @receiver: the receiver
 */
void h_receiver_unlock(struct h_receiver *receiver);

/**
 * h_receiver_owes() - say that something could not be sent, or that nothing is left
 * @receiver: the receiver, locked
 * @owes: whether @settle of its class is to be called
 *
 * For what the work queue had no room for, or what has to wait because the manager is
 * held back for guesses. Every thread that polls, or waits for anything, on this manager
 * tries again, and the manager's descriptor is readable meanwhile.
 */
void h_receiver_owes(struct h_receiver *receiver, bool owes);

/**
 * h_receiver_events() - how many arrivals there were
 * @receiver: the receiver
 *
 * Return: a number for h_receiver_wait(), to be read before checking whether there is
 * something to receive.
 */
static inline uint32_t h_receiver_events(const struct h_receiver *receiver)
{
	return h__load_acquire(&receiver->events);
}

/**
 * h_receiver_wait() - poll, and sleep, until something arrives for a receiver
 * @receiver: the receiver
 * @events: an earlier result of h_receiver_events(): returns when the number differs
 * @deadline_ns: when to give up, as h_deadline() says
 *
 * What arrives for other receivers in the meantime is given to them.
 *
 * Return: 0, or -EAGAIN if the deadline is H_NOWAIT, -ETIMEDOUT, -EINTR if a
 * signal was handled.
 */
int h_receiver_wait(struct h_receiver *receiver, uint32_t events,
		    int64_t deadline_ns);

/**
 * h_deadline() - when will a time-out be over?
 * @timeout_ns: the time-out
 *
 * Return: H_NOWAIT, H_FOREVER, or the time of CLOCK_MONOTONIC in nanoseconds.
 */
int64_t h_deadline(int64_t timeout_ns);

/**
 * h_receiver_cookie() - cookie for h_watch() on the manager's NQ
 * @receiver: the receiver to notify
 * @number: any number
 *
 * Return: the cookie; @number is in its upper 32 bits.
 */
static inline uint64_t h_receiver_cookie(const struct h_receiver *receiver,
					 uint32_t number)
{
	return (uint64_t)number << 32 | h_slot_number(receiver->slot);
}

/**
 * h_receiver_watch() - have process_arrival() called when a slot is gone (H 6.3)
 * @receiver: the receiver to notify; not destroyed before h_unwatch()
 * @ticket: as for h_watch()
 * @fd: descriptor of a ticket, as for h_watch_fd(), or -1 to go by @ticket
 * @number: comes back in the upper 32 bits of the entry's data
 * @watch: out: the watch
 *
 * Return: as h_watch(), h_watch_fd().
 */
int h_receiver_watch(struct h_receiver *receiver, const struct h_ticket *ticket,
		     int fd, uint32_t number, struct h_watch **watch);

/* ---- seeds -------------------------------------------------------------- */

#define H_SEED_BYTES	80	/* a seed in bytes, of any protocol */

/**
 * struct h_seed - what the other end of a connection is made from (H 3.3)
 * @bytes: they can travel anywhere, and mean the same on every machine
 *
 * Holding a seed is the right to send: pass it only to the intended peer.
 */
struct h_seed {
	unsigned char bytes[H_SEED_BYTES];
};

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_MANAGER_H */
