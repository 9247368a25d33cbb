/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: the manager and what receivers have in common (H 3.3).
 *
 * A manager has one send terminus, one NQ and memory of both kinds; and, once one of
 * its threads had to wake another, a small terminus for that. End points
 * (datagram.h, stream.h, tagged.h, group.h, channel.h) are made on a manager and
 * hand each other what arrives: whoever receives on one of them polls for all.
 *
 * Unlike the paper's upper layer this one is thread-safe: any thread may call
 * anything at any time, except that an object must not be destroyed while another
 * thread is inside a call on it. With H_MANAGER_SINGLE the caller sees to it that
 * there is one thread at a time, and saves the locks.
 *
 * Time-outs are in nanoseconds: 0: do not wait (-EAGAIN), negative: for ever,
 * else -ETIMEDOUT when they are over.
 */
#ifndef HAMLYN_MANAGER_H
#define HAMLYN_MANAGER_H

#include <stdbool.h>

#include <hamlyn.h>

#ifdef __cplusplus
extern "C" {
#endif

#define H_NOWAIT	0LL
#define H_FOREVER	(-1LL)

struct h_manager;
struct h_receiver;

/* ---- managers ----------------------------------------------------------- */

#define H_MANAGER_SINGLE	(1U << 0)	/* one thread at a time */

/**
 * struct h_manager_attr - properties of a manager; zero means default
 * @nq_entries: entries of the NQ, a power of two, at least 16 (4096). Each end point has some
 *	of them set aside, so that they can never run out: a stream as many as
 *	it has buffers, and 1; the other end of it 7
 * @flags: H_MANAGER_*
 * @spin_ns: how long a call polls before it sleeps, in nanoseconds (20000), not counted
 *	what it leaves to other threads meanwhile; negative: for ever
 * @terminus: properties of the send terminus; its entries have at least 256 bytes
 * @channels: with @nq_entries 0: how many channels with default buffers the manager is for.
 *	The NQ is as large as that takes: 24 entries each. 0: what the environment says in
 *	HAMLYN_CHANNELS, or 170
 * @reserved: 0
 * @budget: bytes by which the buffers of all end points of the manager together may grow
 *	beyond what they were made with, as long messages come and go, and that are kept on
 *	the heap for the next ones. With less the same is slower. 0: a quarter of the largest
 *	area of the device, at most 32 MiB
 */
struct h_manager_attr {
	uint32_t nq_entries;
	uint32_t flags;
	int64_t spin_ns;
	struct h_terminus_attr terminus;
	uint32_t channels;
	uint32_t reserved;
	uint64_t budget;
};

/**
 * h_manager_create() - create a manager (H 3.3)
 * @dev: the device; not closed before the manager is destroyed
 * @attr: properties, or NULL
 * @manager: out: the manager
 *
 * Return: 0, or -EINVAL, -ENOMEM, or as h_nq_create(), h_terminus_create(),
 * h_area_alloc(), h_slot_create().
 */
int h_manager_create(struct h_dev *dev, const struct h_manager_attr *attr,
		     struct h_manager **manager);

/**
 * h_manager_drain() - wait until everything that was sent has left
 * @manager: the manager
 * @timeout_ns: most time to wait
 *
 * Before one ends a process whose last message matters, for instance. Everything that a
 * call said was sent is in the receivers' memory then: also what was kept of a long message
 * (h_channel_send()), and what streams collect. That may have to wait for the receivers.
 *
 * Return: 0, also for messages that the NIC refused, or whose receiver is gone; -EAGAIN,
 * -ETIMEDOUT, -EINTR: something is left, and stays to be sent.
 */
int h_manager_drain(struct h_manager *manager, int64_t timeout_ns);

/**
 * h_manager_destroy() - destroy a manager
 * @manager: the manager, or NULL
 *
 * What was sent has a second to leave. What h_manager_alloc() gave and the
 * descriptor of h_manager_fd() are gone with it.
 *
 * Return: 0, or -EBUSY while it has end points, or calls back: not in a call back, also
 * not after having destroyed all end points there.
 */
int h_manager_destroy(struct h_manager *manager);

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
 * For raw sends besides. Its send buffer tags belong to the manager.
 *
 * Return: the terminus, which lives as long as the manager.
 */
struct h_terminus *h_manager_terminus(const struct h_manager *manager);

/**
 * h_manager_poll() - look for arrivals and give them to their receivers
 * @manager: the manager
 *
 * The paper's poll_nowait. Receive calls do it by themselves. What was kept of messages
 * that count as sent goes on, of all channels of the manager.
 *
 * Return: how many there were (64 at most per call), or 0; also 0 while
 * another thread is at it.
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
 * -ENOMEM; -ETIMEDOUT if the embedded device's tables are held by a process that is
 * stopped.
 */
int h_manager_alloc(struct h_manager *manager, size_t length, void **addr);

/**
 * h_manager_free() - give back what h_manager_alloc() gave
 * @manager: the manager
 * @addr: its address, or NULL; nothing is being sent from it any more
 *
 * The memory stays with the manager for the next h_manager_alloc(), unless much more of it
 * is unused than used: then it goes back to the device.
 *
 * Return: 0, also for NULL; -EALREADY if it was given back before and is nobody's since,
 * -EINVAL if no memory of h_manager_alloc() of this manager begins there. Then nothing
 * happens, and h_explain() says which.
 */
int h_manager_free(struct h_manager *manager, void *addr);

/**
 * h_manager_register() - let memory of one's own be sent from without copying
 * @manager: the manager
 * @addr: first byte; stays mapped as h_area_add() says
 * @length: bytes
 *
 * Return: 0, or -ENOSPC if the terminus has no send buffer tag left: of 8 the manager keeps
 * 3 for memory of its own. Or as h_area_add().
 */
int h_manager_register(struct h_manager *manager, void *addr, size_t length);

/**
 * h_manager_unregister() - end of h_manager_register()
 * @manager: the manager
 * @addr: the address it was given; nothing is being sent from it any more
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
 * triggered, nothing else to do before one sleeps. On the embedded device a thread
 * of the library watches the NQ from the first call on. On the kernel device it is
 * readable for whatever arrives in the context: give each manager that is waited for
 * in this way a context (h_open()) of its own.
 *
 * Wait for it to be readable, and for nothing else; not for edges (EPOLLET). It is
 * taken out of the loop before h_manager_destroy(), which closes it.
 *
 * Return: the descriptor, owned by @manager, or a negative errno.
 */
int h_manager_fd(struct h_manager *manager);

/**
 * h_manager_dispatch() - look for arrivals, call back for each end point that has some
 * @manager: the manager
 *
 * Calls, in this thread and without a lock held, what h_receiver_on_ready() and
 * the like of the end points have set, once for each end point that has something
 * to be received. One that leaves something behind is called again next time.
 * A call back may do anything, also destroy its own end point, but not the manager.
 * Several threads may dispatch; no end point is called by two of them at a time.
 *
 * A call back may also be left, and this function with it: by an exception of C++, by
 * pthread_exit() or a cancellation, or by longjmp(). The end point is called again as
 * long as it has something. After longjmp() that is so from the next call of this
 * function, h_manager_wait() or h_manager_fd() on, by the same thread, from the function
 * that called this one or from one of its callers: call one of them before sleeping, or
 * before h_manager_destroy(). What runs with something locked has to return:
 * process_arrival(), process_overrun(), pending() and settle() of a receiver's class.
 *
 * Return: how many were called, or 0.
 */
int h_manager_dispatch(struct h_manager *manager);

/**
 * h_manager_wait() - sleep until h_manager_dispatch() has something to do
 * @manager: the manager
 * @timeout_ns: most time to wait
 *
 * For loops that wait for nothing else.
 *
 * Return: 0, or -EAGAIN, -ETIMEDOUT, -EINTR if a signal was handled (kernel device: by a
 * handler without SA_RESTART; else it may go on sleeping).
 */
int h_manager_wait(struct h_manager *manager, int64_t timeout_ns);

/* ---- receivers of one's own --------------------------------------------- */

/**
 * struct h_receiver_class - what a kind of receiver does
 * @name: for people
 * @process_arrival: record an arrival. Called by whichever thread polls, or makes or
 *	ends an end point of the manager, with the receiver locked: it may change the
 *	receiver and send, and must not wait nor receive. @entry is a copy. With
 *	HAMLYN_NQE_PEER_GONE a watch tells, whose cookie was h_receiver_cookie().
 * @process_overrun: notifications were lost (H 2.6): look in the metadata entries.
 *	Called as @process_arrival; may be NULL. It happens only on a manager with
 *	receivers of other modes than paranoid one-shot whose senders sent more
 *	than was set aside for them.
 * @pending: is there something to be received? Called with the receiver locked.
 * @settle: send what could not be sent, and say by h_receiver_owes() whether something
 *	is still left. Called as @process_arrival, about once a millisecond; may be NULL if that
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
 * struct h_receiver_attr - what a receiver is made of; zero what is not needed
 * @length: bytes of the message area; 0: 64
 * @entries: metadata entries
 * @mode: enum hamlyn_slot_mode
 * @flags: HAMLYN_SLOT_*
 * @arrivals: entries of the NQ to set aside: most notifications that are on
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
 * struct h_receiver - what all receivers have; the first member of one's own
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
	uint32_t queued;	/* on the manager's list of those that are ready */
	uint32_t arrivals;
	struct h_receiver *twin;	/* of the same end point, or NULL */
	uint32_t owes;		/* h_receiver_owes() */
	uint32_t reserved;
};

/**
 * h_receiver_init() - make a receiver of one's own
 * @receiver: out: filled in
 * @manager: its manager
 * @class_: what it does; stays valid
 * @attr: what it is made of
 *
 * The first arrival may be processed before the call returns.
 *
 * Return: 0, or -ENOSPC if the manager's NQ has not @arrivals entries left, or as
 * h_area_alloc(), h_slot_create().
 */
int h_receiver_init(struct h_receiver *receiver, struct h_manager *manager,
		    const struct h_receiver_class *class_,
		    const struct h_receiver_attr *attr);

/**
 * h_receiver_exit() - end of h_receiver_init()
 * @receiver: the receiver
 *
 * Destroys the slot; what arrived and was not received is lost. Afterwards
 * process_arrival() is not called any more.
 *
 * Return: 0, or -ETIMEDOUT as h_slot_destroy(): then it is still there.
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
 * For short: a lock that spins. Not to be held in h_receiver_wait().
 */
void h_receiver_lock(struct h_receiver *receiver);

/**
 * h_receiver_unlock() - end of h_receiver_lock()
 * @receiver: the receiver
 */
void h_receiver_unlock(struct h_receiver *receiver);

/**
 * h_receiver_owes() - say that something could not be sent, or no longer so
 * @receiver: the receiver, locked
 * @owes: whether @settle of its class is to be called
 *
 * For what the work queue had no room for, or what has to wait because the manager is
 * held back for guesses: it is tried again by whoever polls, or waits for whatever, on
 * this manager, and its descriptor is readable meanwhile.
 */
void h_receiver_owes(struct h_receiver *receiver, bool owes);

/**
 * h_receiver_events() - how many arrivals there were
 * @receiver: the receiver
 *
 * Return: a number for h_receiver_wait(), to be taken before one looks whether
 * there is something.
 */
static inline uint32_t h_receiver_events(const struct h_receiver *receiver)
{
	return h__load_acquire(&receiver->events);
}

/**
 * h_receiver_wait() - poll, and sleep, until something arrives for a receiver
 * @receiver: the receiver
 * @events: what h_receiver_events() was: returns when it is something else
 * @deadline_ns: when to give up, as h_deadline() says
 *
 * What arrives for others in the meantime is given to them.
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
 * @receiver: who is told
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
 * h_receiver_watch() - have process_arrival() told when a slot is gone (H 6.3)
 * @receiver: who is told; not destroyed before h_unwatch()
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

#define H_SEED_BYTES	80	/* a seed in bytes, of whatever protocol */

/**
 * struct h_seed - what the other end of a connection is made from (H 3.3)
 * @bytes: they can travel anywhere, and mean the same on every machine
 *
 * Who has a seed has the right to send: send it to whom it is meant for only.
 */
struct h_seed {
	unsigned char bytes[H_SEED_BYTES];
};

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_MANAGER_H */
