/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: datagrams (H 3.3).
 *
 * The raw semantics of the NIC: a receiver has one metadata entry and one buffer and
 * is either ready or not; there is no queue. The sender says where in the buffer the
 * data goes; the metadata tells the receiver where that was, how much it was, and, if
 * the sender wants an answer, to what address.
 *
 * A datagram for a receiver that is not ready is dropped, without telling its
 * sender, and counted (h_datagram_receiver_stats()). What was received does not change
 * until it is released (paranoid one-shot mode, H 2.7).
 *
 * Several senders may have the seed of one receiver, but then they interfere: of two
 * datagrams at a time, or of those longer than a packet, one or both may be dropped. A
 * sender that lies about where its data went is believed, so nothing of a datagram is
 * left in the buffer once it was released or dropped: after one longer than a packet, or
 * malformed, the whole buffer is erased. Such a sender may still pass off as its own what
 * another sends at the same time. If the senders are not trusted, create a receiver for
 * each of them.
 */
#ifndef HAMLYN_DATAGRAM_H
#define HAMLYN_DATAGRAM_H

#include <hamlyn/manager.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_datagram_receiver;

/**
 * struct h_datagram_attr - properties of a receiver; zero means default
 * @length: bytes of the buffer, at most 4 GiB - 1 (4096)
 * @flags: must be 0
 * @reserved: 0
 */
struct h_datagram_attr {
	size_t length;
	uint32_t flags;
	uint32_t reserved;
};

/**
 * struct h_datagram_address - where to send datagrams
 * @ticket: private
 *
 * A plain value, from h_datagram_resolve(), h_datagram_receiver_address() or a datagram
 * that wants an answer.
 */
struct h_datagram_address {
	struct h_ticket ticket;
};

/* ---- receiving ---------------------------------------------------------- */

/* With the size of the structure that the program knows: Documentation/abi.rst. */
int h__datagram_receiver_create(struct h_manager *manager, const struct h_datagram_attr *attr,
				size_t size, struct h_datagram_receiver **receiver);

/**
 * h_datagram_receiver_create() - create a receiver, which is ready
 * @manager: polls for it and provides its memory
 * @attr: properties, or NULL
 * @receiver: out: the receiver
 *
 * Return: 0, or -EINVAL, -ENOMEM, or as h_receiver_init().
 */
static inline int h_datagram_receiver_create(struct h_manager *manager,
					     const struct h_datagram_attr *attr,
					     struct h_datagram_receiver **receiver)
{
	return h__datagram_receiver_create(manager, attr, sizeof(*attr), receiver);
}

/**
 * h_datagram_receiver_destroy() - destroy a receiver
 * @receiver: the receiver, or NULL: nothing
 *
 * What was received from it is gone as well.
 *
 * Return: 0, or -ETIMEDOUT as h_slot_destroy(): then it still exists.
 */
int h_datagram_receiver_destroy(struct h_datagram_receiver *receiver);

/**
 * h_datagram_receiver_seed() - make a seed for senders (H 3.3)
 * @receiver: the receiver
 * @seed: out: the seed; opens nothing while the receiver is revoked
 */
void h_datagram_receiver_seed(struct h_datagram_receiver *receiver,
			      struct h_seed *seed);

/**
 * h_datagram_receiver_address() - address of a receiver, for answers to go to
 * @receiver: the receiver
 * @address: out: the address that h_datagram_resolve() would make of its seed
 */
void h_datagram_receiver_address(struct h_datagram_receiver *receiver,
				 struct h_datagram_address *address);

/**
 * struct h_datagram - what was received
 * @data: first byte, in the receiver's buffer; valid until h_datagram_release()
 * @offset: where in the buffer that is, in bytes
 * @length: bytes, may be 0
 * @has_reply: the sender wants an answer
 * @reply: to this address, with @has_reply. It is only the sender's word: sending to an
 *	address whose key is wrong counts as a guess by the process that sends (H 6.5)
 */
struct h_datagram {
	const void *data;
	size_t offset;
	size_t length;
	bool has_reply;
	struct h_datagram_address reply;
};

/**
 * h_datagram_receive() - receive a datagram
 * @receiver: the receiver
 * @datagram: out: the datagram
 * @timeout_ns: longest time to wait
 *
 * The receiver is not ready from then on. A datagram that arrives malformed, or mixed with
 * another one, is dropped, and the receiver is ready again as soon as its whole buffer has
 * been erased.
 *
 * On the embedded device a process that is killed while its datagram lands keeps those of
 * others out until the receiver has checked, by calls of this function half a second
 * apart, or by one that waits that long; a process that was stopped keeps them out until it
 * continues or is killed. Senders' addresses stay valid. In an event loop, call this
 * function with %H_NOWAIT now and then.
 *
 * Return: 0, or -EAGAIN, -ETIMEDOUT, -EINTR.
 */
int h_datagram_receive(struct h_datagram_receiver *receiver,
		       struct h_datagram *datagram, int64_t timeout_ns);

/**
 * h_datagram_release() - be ready for the next one
 * @receiver: the receiver; nothing happens if no datagram of it was received
 *
 * The datagram's bytes in the buffer are erased.
 */
void h_datagram_release(struct h_datagram_receiver *receiver);

/**
 * h_datagram_revoke() - take the right to send from all who have it (H 2.7)
 * @receiver: the receiver
 *
 * When it returns nothing lands any more; watches of the receiver's slot are notified
 * that it is gone. What has arrived before can be received.
 *
 * Return: 0, or -ETIMEDOUT as h_slot_rekey(): new datagrams are kept out, but one that
 * was under way may land; call it again.
 */
int h_datagram_revoke(struct h_datagram_receiver *receiver);

/**
 * h_datagram_rekey() - revoke, and start over with another key
 * @receiver: the receiver
 * @seed: out: its seed from now on
 *
 * Return: 0, or as h_datagram_revoke().
 */
int h_datagram_rekey(struct h_datagram_receiver *receiver, struct h_seed *seed);

/**
 * struct h_datagram_stats - counters of a receiver
 * @received: datagrams that h_datagram_receive() has given
 * @malformed: datagrams that arrived, made no sense and were dropped
 * @dropped: packets that found the receiver not ready
 */
struct h_datagram_stats {
	uint64_t received;
	uint64_t malformed;
	uint64_t dropped;
};

int h__datagram_receiver_stats(struct h_datagram_receiver *receiver,
			       struct h_datagram_stats *stats, size_t size);

/**
 * h_datagram_receiver_stats() - counters of a receiver
 * @receiver: the receiver
 * @stats: out: the counters
 *
 * Return: 0, or as h_slot_stats().
 */
static inline int h_datagram_receiver_stats(struct h_datagram_receiver *receiver,
					    struct h_datagram_stats *stats)
{
	return h__datagram_receiver_stats(receiver, stats, sizeof(*stats));
}

/**
 * h_datagram_receiver_on_ready() - have h_manager_dispatch() call back
 * @receiver: the receiver
 * @ready: called while there is something to receive. That may turn out to be malformed,
 *	so receive with H_NOWAIT. NULL: no callback
 * @arg: its second argument
 */
void h_datagram_receiver_on_ready(struct h_datagram_receiver *receiver,
				  void (*ready)(struct h_datagram_receiver *receiver,
						void *arg),
				  void *arg);

/* ---- sending ------------------------------------------------------------ */

/**
 * h_datagram_resolve() - turn a seed into an address
 * @seed: of h_datagram_receiver_seed()
 * @address: out: the address
 *
 * Return: 0, -EINVAL if these bytes are not the seed of a datagram receiver, -EPROTO if
 * they are a seed of another version.
 */
int h_datagram_resolve(const struct h_seed *seed,
		       struct h_datagram_address *address);

/**
 * h_datagram_send() - send a datagram
 * @manager: its terminus sends
 * @to: where to
 * @offset: where in the receiver's buffer, in bytes
 * @data: bytes; this process does not copy long datagrams in memory of h_manager_alloc()
 *	or h_manager_register()
 * @length: how many
 * @reply: where an answer is to go, or NULL
 * @timeout_ns: longest time to wait while the work queue is full, and for it to leave
 *
 * When it returns @data may be changed. It does not tell whether the receiver was
 * ready.
 *
 * To another host on the kernel device, with a deadline, it is a copy that is sent: if it has not
 * left when the time is over it does so later, out of memory of the manager, and the call
 * returns 0. Of such copies there are no more than the budget of struct h_manager_attr, or one.
 * One of more than 192 KiB on the embedded device is on its way as soon as another host takes its
 * first bytes; if the time is over before the last ones, it is given up: -ECANCELED. It cannot be
 * sent with H_NOWAIT: -EMSGSIZE.
 *
 * Return: 0, -ERANGE if it is outside the buffer, -EINVAL if @to is not the address of a
 * datagram receiver, -EAGAIN, -ETIMEDOUT, -EHOSTUNREACH, -ECANCELED, -EMSGSIZE; or, if there is
 * no memory to copy it to, as h_manager_alloc(): -ENOMEM, -ENOSPC, -E2BIG, -EDQUOT, -ETIMEDOUT.
 */
int h_datagram_send(struct h_manager *manager,
		    const struct h_datagram_address *to, size_t offset,
		    const void *data, size_t length,
		    const struct h_datagram_address *reply, int64_t timeout_ns);

/**
 * h_datagram_request() - send a datagram and wait for the answer
 * @replies: receives the answer; for one request at a time, and nothing else
 * @to: where to
 * @data: bytes, to go to offset 0
 * @length: how many
 * @answer: out: the answer, to be released from @replies
 * @timeout_ns: longest time to wait, for everything together
 *
 * If the wait for the answer ends without one, @replies is rekeyed, so that an answer that
 * comes late is not taken for that to the next request. A request on a receiver that was
 * revoked rekeys it first.
 *
 * Return: 0, -EBUSY if a datagram of @replies was not released, or as
 * h_datagram_send(), h_datagram_receive(), h_datagram_rekey().
 */
int h_datagram_request(struct h_datagram_receiver *replies,
		       const struct h_datagram_address *to, const void *data,
		       size_t length, struct h_datagram *answer,
		       int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_DATAGRAM_H */
