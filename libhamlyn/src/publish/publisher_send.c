// SPDX-License-Identifier: MIT
/* Messages that are published: where they are built, for how long they are kept. */
#include <stdlib.h>

#include "publish/publish.h"

#define SPARE		4	/* that have left, for the next messages */
#define LEAST_ROOM	4096	/* that is not too much for a message, however short */
#define SLICE_NS	100000000

/* ---- memory ---- */

static bool has_left(const struct h_publisher *p, const struct h_lent *l)
{
	/* Refused as well: the NIC reads it no more. */
	return h__lent_has_left(p->server->manager, l);
}

static bool suits(const struct h_lent *l, size_t room)
{
	return l->room >= room && (l->room <= LEAST_ROOM || l->room / 2 <= room);
}

static struct h_lent *take_spare(struct h_publisher *p, size_t room)
{
	struct h_lent **at, *l;

	for (at = &p->spare; (l = *at); at = &l->next) {
		if (!suits(l, room) || !has_left(p, l))
			continue;
		*at = l->next;
		return l;
	}
	return NULL;
}

static void add(struct h_lent **list, struct h_lent *l)
{
	l->next = *list;
	*list = l;
}

static void give_spare(struct h_publisher *p, struct h_lent *given)
{
	struct h_lent **at, *l;
	unsigned int n = 0;

	add(&p->spare, given);
	for (at = &p->spare; (l = *at);) {
		if (!has_left(p, l) || n++ < SPARE) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		h__lent_exit(p->server->manager, l);
		free(l);
	}
}

static int lend(struct h_publisher *p, size_t length, struct h_lent **out)
{
	struct h_lent *l;
	int err;

	if (length > p->attr.max_message)
		return h__refuse(p->server->dev, -EMSGSIZE, "%zu bytes, of %llu at most", length,
				 (unsigned long long)p->attr.max_message);
	l = take_spare(p, H_HEAD_BYTES + length);
	if (!l) {
		l = malloc(sizeof(*l));
		if (!l)
			return -ENOMEM;
		err = h__lent_init(p->server->manager, H_HEAD_BYTES + length, l);
		if (err) {
			free(l);
			return err;
		}
	}
	l->handle = -1;
	l->length = length;
	l->serial = ++p->loans_made;
	*out = l;
	return 0;
}

/* ---- publishing ---- */

/* Others have their turn meanwhile. */
static int sleep_unlocked(struct h_publisher *p, int64_t ns)
{
	int err;

	h__publisher_unlock(p);
	err = h_manager_wait(p->server->manager, ns);
	h__publisher_lock(p);
	return err == -ETIMEDOUT ? 0 : err;
}

/* Until those of H_WAIT have what is to be forgotten, or are given up. */
static int make_way(struct h_publisher *p, int64_t deadline_ns)
{
	struct h_reader *r;
	int err = 0;

	while (!err && (r = h__reader_in_the_way(p))) {
		int64_t now = h__now_ns();
		int64_t left = h__reader_patience(p, r, now);

		if (!left) {
			h__reader_give_up(r);
			continue;
		}
		if (left > SLICE_NS)
			left = SLICE_NS;
		if (deadline_ns == H_NOWAIT)
			return -EAGAIN;
		if (deadline_ns > 0 && now >= deadline_ns)
			return -ETIMEDOUT;
		if (deadline_ns > 0 && left > deadline_ns - now)
			left = deadline_ns - now;
		err = sleep_unlocked(p, left);
		if (!err)
			h__publisher_look(p);
	}
	return err;
}

static void keep(struct h_publisher *p, struct h_lent *l, size_t length)
{
	struct h_kept *k = &p->kept[p->next % p->attr.history];
	unsigned char *head = (unsigned char *)l->memory;
	struct h_lent *old = k->lent;

	h__put(h__put(head, p->next, 8), 0, 8);
	*k = (struct h_kept) { .lent = l, .length = H_HEAD_BYTES + length };
	p->next++;
	p->counters.published++;
	if (!old)
		return;
	h__readers_leave(p, old);
	give_spare(p, old);
}

static int publish(struct h_publisher *p, struct h_lent *l, size_t length, int64_t deadline_ns)
{
	int err;

	h__publisher_look(p);
	err = make_way(p, deadline_ns);
	if (err)
		return err;
	keep(p, l, length);
	h__readers_send(p);
	return 0;
}

int h_publisher_send(struct h_publisher *p, const void *data, size_t length, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	struct h_lent *l;
	int err;

	err = h__publisher_lock(p);
	if (err)
		return err;
	err = lend(p, length, &l);
	if (!err) {
		if (length)
			memcpy(l->memory + H_HEAD_BYTES, data, length);
		err = publish(p, l, length, deadline);
		if (err)
			give_spare(p, l);
	}
	h__publisher_unlock(p);
	return err;
}

/* ---- loans ---- */

int h_publisher_reserve(struct h_publisher *p, size_t length, struct h_loan *loan)
{
	struct h_lent *l;
	int err;

	*loan = (struct h_loan) {};
	err = h__publisher_lock(p);
	if (err)
		return err;
	err = lend(p, length, &l);
	if (!err) {
		add(&p->loans, l);
		*loan = (struct h_loan) {
			.data = l->memory + H_HEAD_BYTES,
			.length = length,
			.serial = l->serial,
			/* A channel's is its number. */
			.held = UINT32_MAX,
		};
	}
	h__publisher_unlock(p);
	return err;
}

/* Locked. Where there is what points to it. */
static int find(struct h_publisher *p, const struct h_loan *loan, struct h_lent ***out)
{
	struct h_lent **at;

	if (loan->held != UINT32_MAX)
		return h__refuse(p->server->dev, -EINVAL, "%s", loan->held ?
				 "the loan is of a channel" : "there is nothing in the loan");
	for (at = &p->loans; *at; at = &(*at)->next)
		if ((*at)->serial == loan->serial &&
		    (*at)->memory + H_HEAD_BYTES == (char *)loan->data)
			break;
	*out = at;
	if (*at)
		return 0;
	return loan->serial > p->loans_made ?
		h__refuse(p->server->dev, -EINVAL, "the loan is of another publisher") :
		h__refuse(p->server->dev, -EALREADY,
			  "a copy of this loan was committed or abandoned before");
}

static int commit(struct h_publisher *p, struct h_loan *loan, size_t length, int64_t deadline_ns)
{
	struct h_lent **at, *l;
	int err;

	err = find(p, loan, &at);
	if (err)
		return err;
	l = *at;
	if (length > l->length)
		return h__refuse(p->server->dev, -EINVAL, "%zu bytes of a loan of %zu", length,
				 l->length);
	/* Callbacks cannot make loans. */
	*at = l->next;
	err = publish(p, l, length, deadline_ns);
	if (err)
		add(&p->loans, l);
	else
		*loan = (struct h_loan) {};
	return err;
}

int h_publisher_commit(struct h_publisher *p, struct h_loan *loan, size_t length,
		       int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int err = h__publisher_lock(p);

	if (err)
		return err;
	err = commit(p, loan, length, deadline);
	h__publisher_unlock(p);
	return err;
}

int h_publisher_abandon(struct h_publisher *p, struct h_loan *loan)
{
	struct h_lent **at, *l;
	int err;

	if (!loan->held)
		return 0;
	err = h__publisher_lock(p);
	if (err)
		return err;
	err = find(p, loan, &at);
	if (!err) {
		l = *at;
		*at = l->next;
		give_spare(p, l);
		*loan = (struct h_loan) {};
	}
	h__publisher_unlock(p);
	return err;
}

/* ---- ending ---- */

static void free_list(struct h_lent *l)
{
	struct h_lent *next;

	for (; l; l = next) {
		next = l->next;
		free(l);
	}
}

/* The memory was the manager's, which is no more. */
void h__publisher_free_kept(struct h_publisher *p)
{
	uint32_t i;

	for (i = 0; i < p->attr.history; i++)
		free(p->kept[i].lent);
	free_list(p->loans);
	free_list(p->spare);
}
