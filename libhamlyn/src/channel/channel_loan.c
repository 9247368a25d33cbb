// SPDX-License-Identifier: MIT
/*
 * Loans: messages that are built where they leave from. What was committed is on its way when
 * the call returns, so its memory is not to be had again at once. It stays with the channel: the
 * next loan most likely has the same size.
 */
#include <stdlib.h>

#include "channel/channel.h"

#define KEPT		4	/* of those that have left */
#define LEAST_ROOM	4096	/* that is not too much for a loan, however small */

/* ---- the memory ---- */

int h__lent_init(struct h_manager *m, size_t room, struct h_lent *l)
{
	void *memory;
	int err = h_manager_alloc(m, room ? room : 1, &memory);

	if (err)
		return err;
	*l = (struct h_lent) { .memory = memory, .room = room, .handle = -1 };
	return 0;
}

int h__lent_has_left(const struct h_manager *m, const struct h_lent *l)
{
	int64_t handle;

	if (__atomic_load_n(&l->rests, __ATOMIC_ACQUIRE))
		return 0;
	handle = h__read_once(&l->handle);
	return handle < 0 ? 1 : h_send_done(m->terminus, handle);
}

/* Several channels of a manager may send from it, by whoever polls. */
void h__lent_sent(struct h_lent *l, int64_t handle)
{
	int64_t old = h__read_once(&l->handle);

	while (old < 0 || (int32_t)((uint32_t)handle - (uint32_t)old) > 0)
		if (__atomic_compare_exchange_n(&l->handle, &old, handle, false,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED))
			break;
}

void h__lent_exit(struct h_manager *m, struct h_lent *l)
{
	/* Refused or not: the NIC reads it no more, unless the manager ends, too. */
	if (l->handle >= 0)
		h__wait_left(m, l->handle, H_NOWAIT);
	h_manager_free(m, l->memory);
}

static void lent_free(struct h_channel *ch, struct h_lent *l)
{
	h__lent_exit(ch->manager, l);
	free(l);
}

static int lent_make(struct h_channel *ch, size_t length, struct h_lent **out)
{
	struct h_lent *l = malloc(sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	err = h__lent_init(ch->manager, length, l);
	if (err)
		free(l);
	else
		*out = l;
	return err;
}

/* ---- what has left; channel locked ---- */

/* What the NIC has refused is missing at the other end: nothing can follow. */
static bool has_left(struct h_channel *ch, struct h_lent *l)
{
	int ret = h__lent_has_left(ch->manager, l);

	if (ret < 0)
		ch->loan_refused = true;
	if (ret)
		l->handle = -1;
	return ret;
}

static bool suits(const struct h_lent *l, size_t length)
{
	return l->room >= length && (l->room <= LEAST_ROOM || l->room / 2 <= length);
}

static struct h_lent *take_left(struct h_channel *ch, size_t length)
{
	struct h_lent **at, *l;

	for (at = &ch->leaving; (l = *at); at = &l->next) {
		if (!suits(l, length) || !has_left(ch, l))
			continue;
		*at = l->next;
		return l;
	}
	return NULL;
}

/* The last ones are the oldest. */
static struct h_lent *take_surplus(struct h_channel *ch)
{
	struct h_lent **at, *l;
	unsigned int n = 0;

	for (at = &ch->leaving; (l = *at); at = &l->next) {
		if (!has_left(ch, l) || n++ < KEPT)
			continue;
		*at = l->next;
		return l;
	}
	return NULL;
}

bool h__loan_was_refused(struct h_channel *ch)
{
	bool refused;

	h__spin_lock(ch->manager, &ch->lock);
	refused = ch->loan_refused;
	ch->loan_refused = false;
	h__spin_unlock(ch->manager, &ch->lock);
	return refused;
}

/* ---- loans ---- */

static void keep(struct h_channel *ch, struct h_lent *l)
{
	struct h_lent *surplus;

	h__spin_lock(ch->manager, &ch->lock);
	l->next = ch->leaving;
	ch->leaving = l;
	surplus = take_surplus(ch);
	h__spin_unlock(ch->manager, &ch->lock);
	if (surplus)
		lent_free(ch, surplus);
}

static void lend(struct h_channel *ch, struct h_lent *l)
{
	h__spin_lock(ch->manager, &ch->lock);
	l->next = ch->loans;
	ch->loans = l;
	h__spin_unlock(ch->manager, &ch->lock);
}

/* From now on it is the caller's, and no other thread has it. */
static int take_back(struct h_channel *ch, const struct h_loan *loan, struct h_lent **out)
{
	struct h_lent **at, *l;

	if (loan->held != ch->id)
		return h__refuse(ch->manager->dev, -EINVAL, "%s", loan->held ?
				 "the loan is of another channel" : "there is nothing in the loan");
	h__spin_lock(ch->manager, &ch->lock);
	for (at = &ch->loans; (l = *at) && l->serial != loan->serial; at = &l->next)
		;
	if (l)
		*at = l->next;
	h__spin_unlock(ch->manager, &ch->lock);
	if (!l)
		return h__refuse(ch->manager->dev, -EALREADY,
				 "a copy of this loan was committed or abandoned before");
	*out = l;
	return 0;
}

int h_channel_reserve(struct h_channel *ch, size_t length, struct h_loan *loan)
{
	struct h_lent *l;
	int err = 0;

	*loan = (struct h_loan) {};
	if (length > ch->peer_limit)
		return -EMSGSIZE;
	h__spin_lock(ch->manager, &ch->lock);
	l = take_left(ch, length);
	h__spin_unlock(ch->manager, &ch->lock);
	if (!l)
		err = lent_make(ch, length, &l);
	if (err)
		return err;
	l->length = length;
	l->serial = __atomic_add_fetch(&ch->loans_made, 1, __ATOMIC_RELAXED);
	*loan = (struct h_loan) {
		.data = l->memory,
		.length = length,
		.serial = l->serial,
		.held = ch->id,
	};
	lend(ch, l);
	return 0;
}

int h_channel_commit(struct h_channel *ch, struct h_loan *loan, size_t length,
		     int64_t timeout_ns)
{
	struct h_lent *l;
	int err;

	err = take_back(ch, loan, &l);
	if (err)
		return err;
	if (length > l->length)
		err = h__refuse(ch->manager->dev, -EINVAL,
				"%zu bytes of a loan of %zu", length, l->length);
	else
		err = h__channel_send_lent(ch, l, length, h_deadline(timeout_ns));
	if (err) {
		lend(ch, l);
		return err;
	}
	keep(ch, l);
	*loan = (struct h_loan) {};
	return 0;
}

int h_channel_abandon(struct h_channel *ch, struct h_loan *loan)
{
	struct h_lent *l;
	int err;

	if (!loan->held)
		return 0;
	err = take_back(ch, loan, &l);
	if (err)
		return err;
	keep(ch, l);
	*loan = (struct h_loan) {};
	return 0;
}

/* ---- ending ---- */

static void free_all(struct h_channel *ch, struct h_lent **list)
{
	struct h_lent *l;

	while ((l = *list)) {
		*list = l->next;
		lent_free(ch, l);
	}
}

void h__loans_exit(struct h_channel *ch)
{
	free_all(ch, &ch->loans);
	free_all(ch, &ch->leaving);
}

static void forget(struct h_lent **list)
{
	struct h_lent *l;

	while ((l = *list)) {
		*list = l->next;
		free(l);
	}
}

void h__loans_forget(struct h_channel *ch)
{
	forget(&ch->loans);
	forget(&ch->leaving);
}
