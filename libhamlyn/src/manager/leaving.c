// SPDX-License-Identifier: MIT
/*
 * What was sent and has not left when its caller's time is over.
 *
 * Another host may take nothing for as long as it likes. A terminus sends in order, so all that
 * is behind such a message stands still with it, whoever it is for. A caller with a deadline
 * does not wait for that: what the NIC still reads is memory of the manager, which is kept until
 * it has left, by whoever polls next or by h_manager_destroy(). On the embedded device all of a
 * message has left when it is sent, and nothing is kept for that.
 *
 * So stays what was closed by a caller with a deadline while another process of a segment had its
 * tables, or was sending to what is to end: h__change_limit().
 */
#include <stddef.h>
#include <stdlib.h>

#include "manager/manager.h"

#define AGAIN_NS	1000000

void h__manager_reaches(struct h_manager *m, uint32_t host)
{
	if (host != m->self_ticket.host && !m->terminus->priv)
		h__write_once(&m->far, true);
}

bool h__is_late(int err)
{
	return err == -EAGAIN || err == -ETIMEDOUT;
}

int h__wait_left(struct h_manager *m, int64_t handle, int64_t deadline_ns)
{
	int ret;

	/* What its own NIC has to do only takes what that takes. */
	if (!h__read_once(&m->far))
		return h_send_wait(m->terminus, handle, H_FOREVER);
	ret = h_send_wait(m->terminus, handle, h__time_left(deadline_ns));
	return ret == -EAGAIN && deadline_ns != H_NOWAIT ? -ETIMEDOUT : ret;
}

/* ---- what stays ---- */

static void end_all(struct h_manager *m, struct h_leaving *l)
{
	struct h_leaving *next;

	for (; l; l = next) {
		next = l->next;
		l->end(m, l);
	}
}

/* By who polls, and waits for nobody: what cannot end now comes again. */
static void end_now_or_later(struct h_manager *m, struct h_leaving *l)
{
	struct h_change_limit before = h__change_limit(H_NOWAIT);

	h__change_still(0);
	end_all(m, l);
	h__change_restore(before);
}

/* @end: only those that end so, or NULL. */
static struct h_leaving *take_left(struct h_manager *m, h_leaving_end *end)
{
	struct h_leaving **at, *l, *left = NULL;

	h__lock(&m->lock);
	for (at = &m->leaving; (l = *at);) {
		if ((end && l->end != end) || !h_send_done(m->terminus, l->handle)) {
			at = &l->next;
			continue;
		}
		h__write_once(at, l->next);
		l->next = left;
		left = l;
	}
	h__unlock(&m->lock);
	return left;
}

static void copy_end(struct h_manager *m, struct h_leaving *l);

/* To try what did not end for the sake of others takes system calls: not with each poll. */
static bool is_soon(struct h_manager *m)
{
	int64_t now;

	if (!m->again_ns)
		return false;
	now = h__now_ns();
	if (now < m->again_ns)
		return true;
	m->again_ns = 0;
	return false;
}

static int end_left(struct h_debt *d)
{
	struct h_manager *m = (void *)((char *)d - offsetof(struct h_manager, leaves));

	end_now_or_later(m, take_left(m, is_soon(m) ? copy_end : NULL));
	return h__read_once(&m->leaving) ? -EBUSY : 0;
}

void h__leave(struct h_manager *m, struct h_leaving *l)
{
	h__lock(&m->lock);
	l->next = m->leaving;
	h__write_once(&m->leaving, l);
	m->leaves.pay = end_left;
	m->leaves.chore = true;
	h__chore_add(m, &m->leaves);
	h__unlock(&m->lock);
	h__manager_owes(m);
}

bool h__ends_later(struct h_manager *m, struct h_leaving *l, int err)
{
	if (m->ends || !h__change_limited() || !h__is_late(err))
		return false;
	/* All that was sent until now. */
	l->handle = (int64_t)(h__read_once(&m->terminus->producer) - 1);
	m->again_ns = h__now_ns() + AGAIN_NS;
	h__closed(m, 1);
	h__leave(m, l);
	return true;
}

/* ---- copies ---- */

/*
 * What stays behind is bounded: by what the manager's buffers may grow by. But the longest
 * message must go, too: there is always room for one.
 */
static bool try_charge(struct h_manager *m, size_t length)
{
	bool room;

	h__lock(&m->lock);
	room = !m->copied || (m->copied < m->budget.most &&
			      length <= m->budget.most - m->copied);
	if (room)
		m->copied += length;
	h__unlock(&m->lock);
	return room;
}

static void copy_end(struct h_manager *m, struct h_leaving *l)
{
	struct h_copy *c = (struct h_copy *)l;

	h_manager_free(m, c->memory);
	h__lock(&m->lock);
	m->copied -= c->length;
	h__unlock(&m->lock);
	free(c);
}

int h__copy_begin(struct h_manager *m, size_t length, struct h_copy **copy)
{
	struct h_copy *c;

	/* The caller may send without ever polling. What is closed takes longer: not here. */
	if (h__read_once(&m->leaving))
		end_all(m, take_left(m, copy_end));
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	if (!try_charge(m, length)) {
		free(c);
		return -EAGAIN;
	}
	c->leaving.end = copy_end;
	c->length = length;
	*copy = c;
	return 0;
}

void h__copy_drop(struct h_manager *m, struct h_copy *c)
{
	copy_end(m, &c->leaving);
}

void h__copy_leave(struct h_manager *m, struct h_copy *c, int64_t handle)
{
	c->leaving.handle = handle;
	h__leave(m, &c->leaving);
}

/* ---- what is closed ---- */

void h__closed(struct h_manager *m, int n)
{
	h__lock(&m->lock);
	m->closed += (uint32_t)n;
	h__unlock(&m->lock);
}

bool h__leaves_later(struct h_manager *m, struct h_leaving *l)
{
	if (h__likely(!h__read_once(&m->far)))
		return false;
	l->handle = (int64_t)(h__read_once(&m->terminus->producer) - 1);
	return !h_send_done(m->terminus, l->handle);
}

void h__leaving_exit(struct h_manager *m)
{
	struct h_leaving *l = m->leaving;

	m->ends = true;
	h__debt_remove(m, &m->leaves);
	m->leaving = NULL;
	end_all(m, l);
}
