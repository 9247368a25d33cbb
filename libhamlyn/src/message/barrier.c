// SPDX-License-Identifier: MIT
/* Barriers, which are gathers of nothing. */
#include <stdlib.h>

#include <hamlyn/barrier.h>
#include <hamlyn/gather.h>

#include "manager/manager.h"

struct h_barrier {
	uint32_t participants;
	struct h_gather *root;		/* of who has created it for others */
	struct h_gather_member *member;
	bool in;			/* and not out yet */
};

static int barrier_new(struct h_barrier **barrier)
{
	*barrier = calloc(1, sizeof(**barrier));
	return *barrier ? 0 : -ENOMEM;
}

static int new_or_none(struct h_barrier **barrier, int err)
{
	if (err) {
		free(*barrier);
		*barrier = NULL;
	}
	return err;
}

int h_barrier_create(struct h_manager *m, uint32_t participants,
		     struct h_barrier **barrier)
{
	int err;

	*barrier = NULL;
	if (!participants)
		return h__refuse(m->dev, -EINVAL,
				 "a barrier needs a participant");
	err = barrier_new(barrier);
	if (err)
		return err;
	(*barrier)->participants = participants;
	if (participants > 1)
		err = h_gather_create(m, participants - 1, NULL, 0,
				      &(*barrier)->root);
	return new_or_none(barrier, err);
}

int h_barrier_seed(const struct h_barrier *b, uint32_t participant,
		   struct h_seed *seed)
{
	if (b->member)
		return -EINVAL;
	if (!participant || participant >= b->participants)
		return -ERANGE;
	return h_gather_seed(b->root, participant - 1, seed);
}

int h_barrier_join(struct h_manager *m, const struct h_seed *seed,
		   struct h_barrier **barrier)
{
	int err;

	err = barrier_new(barrier);
	if (err)
		return err;
	return new_or_none(barrier, h_gather_join(m, seed, &(*barrier)->member));
}

static int member_wait(struct h_barrier *b, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int err;

	if (!b->in) {
		/* The last round was released: at most the work queue is full. */
		err = h_gather_send(b->member, NULL, 0, timeout_ns);
		if (err)
			return err;
		b->in = true;
	}
	err = h_gather_wait(b->member, h__time_left(deadline));
	if (!err)
		b->in = false;
	return err == -EAGAIN && deadline > 0 ? -ETIMEDOUT : err;
}

int h_barrier_wait(struct h_barrier *b, int64_t timeout_ns)
{
	int err;

	if (b->member)
		return member_wait(b, timeout_ns);
	if (!b->root)
		return 0;
	err = h_gather_receive(b->root, NULL, timeout_ns);
	return err ? err : h_gather_release(b->root);
}

int h_barrier_destroy(struct h_barrier *b)
{
	int err;

	if (!b)
		return 0;
	err = b->member ? h_gather_leave(b->member) : h_gather_destroy(b->root);
	if (!err)
		free(b);
	return err;
}
