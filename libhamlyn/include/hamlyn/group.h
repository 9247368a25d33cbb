/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: group receives (H 2.5).
 *
 * In a group receive many senders fill one buffer, and the receiver is notified once, when
 * all of them have. It needs to know neither who they are nor how many: it makes one share,
 * of the whole buffer and all of the packet count, and whoever has a share may divide it
 * among others. The counts of all shares add up to 2^32, so that the NIC's packet
 * accumulator comes back to 0 with the last packet.
 *
 * The members of a group trust each other and the receiver: a member that has a share can
 * write to all of the buffer, and one that sends a share twice spoils the count of the
 * round. That is all the harm it does to the receiver: h_group_reset() puts an end to it.
 */
#ifndef HAMLYN_GROUP_H
#define HAMLYN_GROUP_H

#include <hamlyn/manager.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- shares ------------------------------------------------------------- */

/**
 * struct h_share - the right to fill a part of a group's buffer
 * @ticket: for the part
 * @counter: its part of the packet count, 1 to 2^32; 0: divided, not to be sent with
 *
 * A plain value, to be used by one sender once a round.
 */
struct h_share {
	struct h_ticket ticket;
	uint64_t counter;
};

/**
 * h_share_split() - divide a share
 * @share: the share; its counter is 0 afterwards
 * @count: into how many
 * @lengths: bytes of each part, which add up to those of @share; parts may be empty.
 *	NULL: equal parts, the first ones a byte longer if it does not divide evenly
 * @shares: out: @count shares, one after the other. Must not overlap @share
 *
 * Return: 0, -EINVAL if @count is 0 or @share is not valid or divided already, -ERANGE if
 * the lengths do not add up to its own, -E2BIG if its packet count is too small for
 * so many parts. On error @share is unchanged.
 */
int h_share_split(struct h_share *share, uint32_t count, const uint64_t *lengths,
		  struct h_share *shares);

/**
 * h_share_export() - turn a share into bytes that can travel anywhere
 * @share: the share
 * @seed: out: the bytes
 *
 * Return: 0, or -EINVAL if @share is not valid or divided already.
 */
int h_share_export(const struct h_share *share, struct h_seed *seed);

/**
 * h_share_import() - turn bytes into a share
 * @seed: what h_share_export() wrote
 * @share: out: the share
 *
 * Return: 0, -EINVAL if these bytes are not a share, -EPROTO if they are a share of another
 * version.
 */
int h_share_import(const struct h_seed *seed, struct h_share *share);

/**
 * h_share_send() - send one part of a round
 * @manager: its terminus sends
 * @share: the share
 * @data: bytes, for the beginning of its part; this process does not copy long ones in
 *	memory of h_manager_alloc() or h_manager_register()
 * @length: how many; may be fewer than the part has, or 0: the share is used up, and
 *	the rest of the part stays as it was
 * @timeout_ns: longest time to wait while the work queue is full, and for it to leave
 *
 * When it returns 0 @data may be changed, as of h_datagram_send(), and the share must not be
 * sent again before the receiver's next round. What is said there of long ones is so here.
 *
 * Return: 0, -EINVAL if @share is not valid or divided, -ERANGE if @length exceeds its part,
 * -EAGAIN, -ETIMEDOUT, -EHOSTUNREACH, -ECANCELED, -EMSGSIZE; or, if there is no memory to copy it
 * to, as h_manager_alloc(): -ENOMEM, -ENOSPC, -E2BIG, -EDQUOT, -ETIMEDOUT.
 */
int h_share_send(struct h_manager *manager, const struct h_share *share,
		 const void *data, size_t length, int64_t timeout_ns);

/* ---- groups ------------------------------------------------------------- */

struct h_group;

/**
 * struct h_group_attr - properties of a group; zero means default
 * @flags: must be 0
 */
struct h_group_attr {
	uint32_t flags;
};

/* With the size of the structure that the program knows: Documentation/abi.rst. */
int h__group_create(struct h_manager *manager, size_t length, const struct h_group_attr *attr,
		    size_t size, struct h_group **group);

/**
 * h_group_create() - create the receiving end of a group
 * @manager: polls for it and provides its memory
 * @length: bytes of the buffer; may be 0
 * @attr: properties, or NULL
 * @group: out: the group, in its first round
 *
 * Return: 0, or -EINVAL, -ENOMEM, or as h_receiver_init().
 */
static inline int h_group_create(struct h_manager *manager, size_t length,
				 const struct h_group_attr *attr, struct h_group **group)
{
	return h__group_create(manager, length, attr, sizeof(*attr), group);
}

/**
 * h_group_destroy() - destroy a group
 * @group: the group, or NULL: nothing
 *
 * Return: 0, or -ETIMEDOUT as h_slot_destroy(): then it still exists.
 */
int h_group_destroy(struct h_group *group);

/**
 * h_group_share() - the share of everything
 * @group: the group
 * @share: out: the share; every call gives the same one: use only one of the copies
 */
void h_group_share(struct h_group *group, struct h_share *share);

/**
 * h_group_receive() - wait until all parts have arrived
 * @group: the group
 * @data: out: the buffer, which does not change until h_group_reset(); or NULL
 * @timeout_ns: longest time to wait
 *
 * Return: 0, also when called again; or -EAGAIN, -ETIMEDOUT, -EINTR.
 */
int h_group_receive(struct h_group *group, const void **data,
		    int64_t timeout_ns);

#define H_GROUP_NEW_KEY		(1U << 0)	/* all earlier shares are void */

/**
 * h_group_reset() - begin the next round
 * @group: the group
 * @flags: 0: the same shares are good for another round. The application must let every
 *	member know when it may send again: what comes before the reset is dropped.
 *	H_GROUP_NEW_KEY: all shares are void, ask for the new one. Use it to give up a round
 *	whose members are lost: nothing that they still send lands.
 *
 * With H_GROUP_NEW_KEY watches of the group's slot are notified that it is gone, and the
 * buffer is erased. With the same shares the buffer is as the last round left it: where a
 * member sends less than its share, the old bytes stay.
 *
 * Return: 0, -EINVAL, -EBUSY without H_GROUP_NEW_KEY if the round is not over; or with
 * it as h_slot_rekey(): then nothing new lands, and the call must be repeated.
 */
int h_group_reset(struct h_group *group, uint32_t flags);

/**
 * h_group_on_ready() - have h_manager_dispatch() call back
 * @group: the group
 * @ready: called while the round is over; or NULL
 * @arg: its second argument
 */
void h_group_on_ready(struct h_group *group,
		      void (*ready)(struct h_group *group, void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_GROUP_H */
