// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watcher: watches that peers have on slots here, and what peers say of slots there. It changes
 * the segment's tables, and waits for a process that is stopped while it does so; the others do
 * not wait for the watcher.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bridge.h"

#define MOST_ITEMS	(4u * MOST_WATCHES)	/* of a peer, not yet done */
#define BUCKET_BITS	12
#define BUCKETS		(1 << BUCKET_BITS)
#define NQ_ENTRIES	4096
#define SLEEP_NS	(100 * NS_PER_MS)
#define RETRY_NS	(20 * NS_PER_MS)

enum kind {
	WATCH,
	UNWATCH,
	GONE,
	LOST,		/* the connection has ended */
};

struct item {
	enum kind kind;
	u32 connection;
	struct peer *peer;
	struct hml_wire_watch watch;
};

/* A watch of a peer's. */
struct theirs {
	struct theirs *next;		/* in its bucket */
	struct peer *peer;
	u32 connection;
	struct hml_wire_watch watch;
	struct h_watch *own;		/* NULL: its key is to be tried, when its user may */
	bool told;			/* and never will be again */
	struct far_user *who;
};

/* A user of theirs may guess by watches as often as by packets: it has a bucket for each. */
struct watch_user {
	struct watch_user *next;
	struct peer *peer;
	struct far_user user;
};

struct watcher {
	pthread_t thread;
	struct h_nq *nq;
	struct theirs *buckets[BUCKETS];
	struct watch_user *users[USER_LISTS];
	u32 held;
	u32 armed;
	pthread_mutex_t lock;		/* of what follows */
	struct item *items;
	u32 count;
	u32 room;
};

/* ---- from the receiver ---- */

static void wake(struct bridge *b)
{
	smp_mb();						/* B5 */
	hml_port_nq_wake(&b->shm->nic.port, b->watcher->nq->priv);
}

static bool add_item(struct watcher *w, const struct item *item)
{
	u32 n = w->room ? 2 * w->room : 64;
	struct item *items;

	if (w->count == w->room) {
		items = realloc(w->items, n * sizeof(*items));
		if (!items)
			return false;
		w->items = items;
		w->room = n;
	}
	w->items[w->count++] = *item;
	return true;
}

static bool queue(struct peer *p, enum kind what, const struct hml_wire_watch *watch)
{
	struct watcher *w = p->bridge->watcher;
	const struct item item = {
		.kind = what,
		.connection = READ_ONCE(p->shared->state),
		.peer = p,
		.watch = *watch,
	};
	bool ok;

	pthread_mutex_lock(&w->lock);
	ok = (p->items < MOST_ITEMS || what == LOST) && add_item(w, &item);
	p->items += ok;
	pthread_mutex_unlock(&w->lock);
	wake(p->bridge);
	return ok;
}

bool watcher_watch(struct peer *p, const struct hml_wire_watch *w)
{
	return queue(p, WATCH, w);
}

bool watcher_unwatch(struct peer *p, u32 id)
{
	const struct hml_wire_watch w = { .id = id };

	return queue(p, UNWATCH, &w);
}

bool watcher_gone(struct peer *p, u32 id)
{
	const struct hml_wire_watch w = { .id = id };

	return queue(p, GONE, &w);
}

void watcher_lost(struct peer *p)
{
	const struct hml_wire_watch none = { 0 };

	/* Without memory for it, what they have is ended with the next one. */
	queue(p, LOST, &none);
}

/* ---- theirs ---- */

/* A number of a peer's, among all peers'. */
static u64 name_of(const struct peer *p, u32 number)
{
	return (u64)p->number << 32 | number;
}

static struct theirs **find(struct watcher *w, const struct peer *p, u32 id)
{
	struct theirs **t = &w->buckets[list_of(p->bridge, name_of(p, id), BUCKET_BITS)];

	while (*t && ((*t)->peer != p || (*t)->watch.id != id))
		t = &(*t)->next;
	return t;
}

/* A peer may invent as many as it likes: those beyond some share a bucket, as of packets. */
static struct far_user *user_of(struct watcher *w, struct peer *p, u32 uid)
{
	struct watch_user **list = &w->users[list_of(p->bridge, name_of(p, uid), USER_BITS)], *u;

	for (u = *list; u; u = u->next)
		if (u->peer == p && u->user.who == uid)
			return &u->user;
	u = p->watch_user_count < MOST_USERS ? calloc(1, sizeof(*u)) : NULL;
	if (!u)
		return far_user_begin(p, &p->watch_others, UINT32_MAX, &p->watch_stats);
	u->peer = p;
	u->next = *list;
	*list = u;
	p->watch_user_count++;
	return far_user_begin(p, &u->user, uid, &p->watch_stats);
}

static void report(struct bridge *b, const struct theirs *t, u32 why)
{
	const struct note n = { .type = HML_WIRE_GONE, .why = why, .watch.id = t->watch.id };

	outbox_note(t->peer, t->connection, &n);
	sender_work(b);
}

/* As h_watch(), for somebody else. */
static int make_watch(struct bridge *b, struct theirs *t, struct h_watch *own)
{
	const struct h_ticket k = {
		.host = b->shm->nic.host,
		.slot = t->watch.slot,
		.meta_index = t->watch.meta_index,
		.key = t->watch.key,
	};
	struct h_nq *nq = b->watcher->nq;
	int err;

	own->dev = b->dev;
	own->nq = nq;
	own->claim = t->watch.flags & HAMLYN_WATCH_CLAIM;
	h__dev_lock(b->dev);
	/* Not the address: whoever has the segment writes there. */
	err = h__shm_watch_for(own, &k, t->watch.flags & HAMLYN_WATCH_TICKET,
			       name_of(t->peer, t->watch.id), &t->who->sender);
	if (!err) {
		H_LINK(b->dev->watches, own);
		nq->users++;
		h__write_once(&nq->watches, nq->watches + 1);
	}
	h__unlock(&b->dev->lock);
	return err;
}

/* Now, or later: nobody learns anything of slot and key from that. */
static void try_key(struct bridge *b, struct theirs *t)
{
	struct watcher *w = b->watcher;
	/* Half of the records stay for the segment's own processes. */
	struct h_watch *own = w->armed < MOST_ARMED ? calloc(1, sizeof(*own)) : NULL;
	int err = own ? make_watch(b, t, own) : -ENOMEM;

	if (!err) {
		t->own = own;
		w->armed++;
		return;
	}
	free(own);
	if (err == -EALREADY) {
		report(b, t, HML_WIRE_WATCH_CLAIMED);
		t->told = true;
	} else {
		w->held++;
	}
}

/* Its record is free again. False: the segment is locked for too long. */
static bool disarm(struct bridge *b, struct theirs *t)
{
	if (t->own && h_unwatch(t->own))
		return false;
	if (t->own)
		b->watcher->armed--;
	t->own = NULL;
	return true;
}

static bool end_theirs(struct bridge *b, struct theirs **at);

/* False: one of an earlier connection is in its place still. */
static bool begin_theirs(struct bridge *b, const struct item *item)
{
	struct theirs **at = find(b->watcher, item->peer, item->watch.id), *t = NULL;
	struct far_user *who = user_of(b->watcher, item->peer, item->watch.user);

	if (*at && (*at)->connection != item->connection && !end_theirs(b, at))
		return false;
	/* Told of twice, more than may be, or no memory for it. */
	if (!*at && item->peer->watch_count < MOST_WATCHES)
		t = calloc(1, sizeof(*t));
	if (!t) {
		atomic_store(&item->peer->nonsense, true);
		return true;
	}
	*t = (struct theirs) {
		.peer = item->peer,
		.connection = item->connection,
		.watch = item->watch,
		.who = who,
	};
	*at = t;
	item->peer->watch_count++;
	try_key(b, t);
	return true;
}

/* False: the segment is locked for too long, by somebody who is stopped. */
static bool end_theirs(struct bridge *b, struct theirs **at)
{
	struct theirs *t = *at;

	if (!disarm(b, t))
		return false;
	*at = t->next;
	t->peer->watch_count--;
	free(t);
	return true;
}

/* Those of earlier connections. False: some are left. */
static bool end_all(struct bridge *b, const struct peer *p, u32 state)
{
	bool all = true;
	u32 i;

	for (i = 0; i < BUCKETS; i++) {
		struct theirs **at = &b->watcher->buckets[i];

		while (*at)
			if ((*at)->peer != p || (s32)((*at)->connection - state) >= 0) {
				at = &(*at)->next;
			} else if (!end_theirs(b, at)) {
				at = &(*at)->next;
				all = false;
			}
	}
	return all;
}

static void retry_held(struct bridge *b)
{
	struct theirs *t;
	u32 i;

	b->watcher->held = 0;
	for (i = 0; i < BUCKETS; i++)
		for (t = b->watcher->buckets[i]; t; t = t->next)
			if (!t->own && !t->told)
				try_key(b, t);
}

/* ---- ours ---- */

/* Under the tables' lock: then it is the one that was meant, or has ended. */
static bool mark_gone(struct bridge *b, const struct item *item)
{
	u32 generation, i = sender_watch(b, item->peer->number, item->watch.id, &generation);
	struct shm_watch *w;
	bool locked;

	if (i == SHM_MAX_WATCHES)
		return true;
	w = &b->seg->watches[i];
	h__dev_lock(b->dev);
	locked = !h__shm_lock(b->dev);
	if (locked) {
		if (w->owner && READ_ONCE(w->state) / (SHM_WATCH_STATE + 1) == generation)
			WRITE_ONCE(w->void_, 1);
		h__shm_tell(b->dev);
		h__shm_unlock(b->dev);
	}
	h__unlock(&b->dev->lock);
	return locked;
}

/* Each process would see it by itself, a little later. */
static void tell_lost(struct bridge *b)
{
	h__dev_lock(b->dev);
	if (!h__shm_lock(b->dev)) {
		h__shm_tell(b->dev);
		h__shm_unlock(b->dev);
	}
	h__unlock(&b->dev->lock);
}

/* ---- the thread ---- */

/* False: it is to be tried again, as the segment is locked for too long. */
static bool take(struct bridge *b, const struct item *item)
{
	struct theirs **at;

	switch (item->kind) {
	case WATCH:
		return begin_theirs(b, item);
	case UNWATCH:
		at = find(b->watcher, item->peer, item->watch.id);
		return !*at || (*at)->connection != item->connection || end_theirs(b, at);
	case GONE:
		return READ_ONCE(item->peer->shared->state) != item->connection ||
		       mark_gone(b, item);
	case LOST:
		tell_lost(b);
		return end_all(b, item->peer, item->connection);
	}
	return true;
}

/* The peer says it once only. Without memory for it there is nothing left but to begin anew. */
static void take_later(struct watcher *w, const struct item *item)
{
	pthread_mutex_lock(&w->lock);
	if (add_item(w, item))
		item->peer->items++;
	else
		atomic_store(&item->peer->nonsense, true);
	pthread_mutex_unlock(&w->lock);
}

static void take_items(struct bridge *b)
{
	struct watcher *w = b->watcher;
	struct item *items;
	u32 i, n;

	pthread_mutex_lock(&w->lock);
	items = w->items;
	n = w->count;
	w->items = NULL;
	w->count = 0;
	w->room = 0;
	for (i = 0; i < b->peer_count; i++)
		b->peers[i].items = 0;
	pthread_mutex_unlock(&w->lock);
	for (i = 0; i < n; i++)
		if (!take(b, &items[i]))
			take_later(w, &items[i]);
	free(items);
}

/* What is told needs no record any more, whether the peer ends it or not. */
static void take_report(struct bridge *b, u64 what)
{
	struct peer *p = peer_of(b, what >> 32);
	struct theirs *t = p ? *find(b->watcher, p, (u32)what) : NULL;

	if (!t || t->told)
		return;
	report(b, t, HML_WIRE_WATCH_GONE);
	t->told = true;
	disarm(b, t);
}

static void take_reports(struct bridge *b)
{
	struct hamlyn_nq_entry e;

	while (h_recv(b->watcher->nq, &e) == 1)
		if (e.flags & HAMLYN_NQE_PEER_GONE)
			take_report(b, e.data);
}

static bool has_work(struct bridge *b)
{
	struct watcher *w = b->watcher;
	struct hml_nq *core = w->nq->priv;
	bool items;

	pthread_mutex_lock(&w->lock);
	items = w->count;
	pthread_mutex_unlock(&w->lock);
	return items || hml_nq_ready(&b->shm->nic, core, READ_ONCE(w->nq->control->consumer));
}

/* As the library's readers of an NQ do, but for our own work too. */
static void sleep_until_told(struct bridge *b)
{
	struct hml_nq *core = b->watcher->nq->priv;
	bool soon = h__shm_look(b->watcher->nq) || b->watcher->held;
	struct timespec t = { .tv_nsec = soon ? RETRY_NS : SLEEP_NS };

	WRITE_ONCE(core->armed, 1);
	if (!h__shm_try_fence())				/* B5 */
		t.tv_nsec = RETRY_NS;
	if (!has_work(b) && !atomic_load(&b->stop))
		syscall(SYS_futex, &core->armed, FUTEX_WAIT, 1, &t, NULL, 0);
}

static void *run(void *arg)
{
	struct bridge *b = arg;

	while (!atomic_load(&b->stop)) {
		take_items(b);
		take_reports(b);
		if (b->watcher->held)
			retry_held(b);
		sleep_until_told(b);
	}
	return NULL;
}

int watcher_start(struct bridge *b)
{
	struct watcher *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	b->watcher = w;
	pthread_mutex_init(&w->lock, NULL);
	err = h_nq_create(b->dev, NQ_ENTRIES, &w->nq);
	return err ? err : -pthread_create(&w->thread, NULL, run, b);
}

static void free_all(struct watcher *w)
{
	struct watch_user *u;
	struct theirs *t;
	u32 i;

	for (i = 0; i < BUCKETS; i++)
		while ((t = w->buckets[i])) {
			w->buckets[i] = t->next;
			free(t);
		}
	for (i = 0; i < USER_LISTS; i++)
		while ((u = w->users[i])) {
			w->users[i] = u->next;
			free(u);
		}
	free(w->items);
	free(w);
}

/* What it has in the segment goes with the device. */
void watcher_stop(struct bridge *b)
{
	wake(b);
	pthread_join(b->watcher->thread, NULL);
	free_all(b->watcher);
}
