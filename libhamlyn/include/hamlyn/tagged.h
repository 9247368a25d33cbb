/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: tagged remote writes (H 3.3).
 *
 * The sender writes wherever it wants in the receiver's message area, and passes a
 * 64-bit tag along. The receiver gets the tags, in any order, and learns from
 * them what has been written. It uses fast mode: the shortest path there is, one
 * packet for each write.
 *
 * A process that has the seed can write to all of the message area at any time, and fill
 * up the NQ of the receiving manager: tagged writes are for processes that trust each
 * other, and that have agreed on who writes where and when.
 */
#ifndef HAMLYN_TAGGED_H
#define HAMLYN_TAGGED_H

#include <hamlyn/manager.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_tagged_receiver;

/**
 * struct h_tagged_attr - properties of a receiver; zero means default
 * @length: bytes of the message area (4096)
 * @arrivals: entries of the manager's NQ to set aside: tags that can be on their way
 *	while no thread polls (256)
 * @max_tags: tags that are kept until a thread asks for them, at most 2^30 (65536)
 * @flags: must be 0
 * @reserved: 0
 */
struct h_tagged_attr {
	size_t length;
	uint32_t arrivals;
	uint32_t max_tags;
	uint32_t flags;
	uint32_t reserved;
};

/**
 * struct h_tagged_address - where to write
 * @ticket: private
 *
 * A plain value, from h_tagged_resolve().
 */
struct h_tagged_address {
	struct h_ticket ticket;
};

/* ---- receiving ---------------------------------------------------------- */

/* With the size of the structure that the program knows: Documentation/abi.rst. */
int h__tagged_receiver_create(struct h_manager *manager, const struct h_tagged_attr *attr,
			      size_t size, struct h_tagged_receiver **receiver);

/**
 * h_tagged_receiver_create() - create a receiver
 * @manager: polls for it and provides its memory
 * @attr: properties, or NULL
 * @receiver: out: the receiver
 *
 * Return: 0, or -EINVAL, -ENOMEM, or as h_receiver_init().
 */
static inline int h_tagged_receiver_create(struct h_manager *manager,
					   const struct h_tagged_attr *attr,
					   struct h_tagged_receiver **receiver)
{
	return h__tagged_receiver_create(manager, attr, sizeof(*attr), receiver);
}

/**
 * h_tagged_receiver_destroy() - destroy a receiver
 * @receiver: the receiver, or NULL: nothing
 *
 * Return: 0, or -ETIMEDOUT as h_slot_destroy(): then it still exists.
 */
int h_tagged_receiver_destroy(struct h_tagged_receiver *receiver);

/**
 * h_tagged_receiver_seed() - make a seed for senders
 * @receiver: the receiver
 * @seed: out: the seed
 */
void h_tagged_receiver_seed(const struct h_tagged_receiver *receiver,
			    struct h_seed *seed);

/**
 * h_tagged_receiver_rekey() - take the right to write from all who have it
 * @receiver: the receiver
 * @seed: out: its seed from now on
 *
 * When it returns the old seeds can write nothing any more. Tags that have
 * arrived stay.
 *
 * Return: 0, or as h_slot_rekey().
 */
int h_tagged_receiver_rekey(struct h_tagged_receiver *receiver,
			    struct h_seed *seed);

/**
 * h_tagged_receiver_data() - where senders write to
 * @receiver: the receiver
 *
 * Return: first byte of the message area, zeroed when it was created.
 */
void *h_tagged_receiver_data(const struct h_tagged_receiver *receiver);

/**
 * h_tagged_get_tag() - get the oldest tag
 * @receiver: the receiver
 * @tag: out: the tag; what was written with it is in the message area
 * @length: out: how many bytes that was, or NULL
 * @timeout_ns: longest time to wait
 *
 * Return: 0, or -EAGAIN, -ETIMEDOUT, -EINTR; -EOVERFLOW if tags were lost, because
 * more than max_tags were kept or the manager's NQ was full (then all its receivers
 * report it, since the NIC does not say whose notifications were lost). The data was
 * written all the same. It is reported once: to all calls that wait, else to the next one.
 */
int h_tagged_get_tag(struct h_tagged_receiver *receiver, uint64_t *tag,
		     uint32_t *length, int64_t timeout_ns);

/**
 * h_tagged_get_specific_tag() - get a certain tag
 * @receiver: the receiver
 * @tag: the tag
 * @length: out: how many bytes were written with it, or NULL
 * @timeout_ns: longest time to wait
 *
 * Other tags stay where they are. Threads may wait for different tags at the same time.
 *
 * Return: as h_tagged_get_tag().
 */
int h_tagged_get_specific_tag(struct h_tagged_receiver *receiver, uint64_t tag,
			      uint32_t *length, int64_t timeout_ns);

/**
 * h_tagged_receiver_on_ready() - have h_manager_dispatch() call back
 * @receiver: the receiver
 * @ready: called while there are tags, or a loss is to be reported; or NULL
 * @arg: its second argument
 */
void h_tagged_receiver_on_ready(struct h_tagged_receiver *receiver,
				void (*ready)(struct h_tagged_receiver *receiver,
					      void *arg),
				void *arg);

/* ---- sending ------------------------------------------------------------ */

/**
 * h_tagged_resolve() - turn a seed into an address
 * @seed: of h_tagged_receiver_seed()
 * @address: out: the address
 *
 * Return: 0, -EINVAL if these bytes are not the seed of a tagged receiver, -EPROTO if they
 * are a seed of another version.
 */
int h_tagged_resolve(const struct h_seed *seed, struct h_tagged_address *address);

/**
 * h_tagged_send() - write, and report it with a tag
 * @manager: its terminus sends
 * @to: where to
 * @offset: where in the message area, in bytes
 * @data: bytes; this process does not copy long writes from memory of h_manager_alloc()
 *	or h_manager_register()
 * @length: how many, may be 0; at most the packet_size of h_query()
 * @tag: any number
 * @timeout_ns: longest time to wait while the work queue is full, and for it to leave
 *
 * When it returns @data may be changed, as of h_datagram_send(). Writes may arrive in another
 * order.
 *
 * Return: 0, -EMSGSIZE if it does not fit a packet, -ERANGE if it is outside the
 * message area, -EAGAIN, -ETIMEDOUT, -EHOSTUNREACH; or, if there is no memory to copy
 * it to, as h_manager_alloc(): -ENOMEM, -ENOSPC, -E2BIG, -EDQUOT, -ETIMEDOUT.
 */
int h_tagged_send(struct h_manager *manager, const struct h_tagged_address *to,
		  size_t offset, const void *data, size_t length, uint64_t tag,
		  int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_TAGGED_H */
