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

#define MOST_ITEMS	(4u * MOST_WATCHES)	/* not yet done */
#define BUCKETS		4096
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
	struct watch_user *users;
	u32 user_count;
	u32 held;
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
	ok = (w->count < MOST_ITEMS || what == LOST) && add_item(w, &item);
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

static struct theirs **find(struct watcher *w, const struct peer *p, u32 id)
{
	struct theirs **t = &w->buckets[(id ^ p->number * 977) % BUCKETS];

	while (*t && ((*t)->peer != p || (*t)->watch.id != id))
		t = &(*t)->next;
	return t;
}

static struct far_user *user_of(struct watcher *w, struct peer *p, u32 uid)
{
	struct watch_user *u;

	for (u = w->users; u; u = u->next)
		if (u->peer == p && u->user.who == uid)
			return &u->user;
	u = w->user_count < MOST_USERS ? calloc(1, sizeof(*u)) : NULL;
	if (!u)
		return NULL;
	u->peer = p;
	u->user.who = uid;
	u->user.guesser.known = p->known;
	u->user.sender.stats = &p->watch_stats;
	u->user.sender.guard.bucket = &u->user.guesser.bucket;
	u->user.sender.far = true;
	u->user.sender.uid = uid;
	u->next = w->users;
	w->users = u;
	w->user_count++;
	return &u->user;
}

static void report(struct bridge *b, const struct theirs *t, u32 why)
{
	const struct note n = { .type = HML_WIRE_GONE, .why = why, .watch.id = t->watch.id };

	if (READ_ONCE(t->peer->shared->state) != t->connection)
		return;
	outbox_note(t->peer, &n);
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
	err = h__shm_watch_for(own, &k, t->watch.flags & HAMLYN_WATCH_TICKET, (uintptr_t)t,
			       &t->who->sender);
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
	struct h_watch *own = calloc(1, sizeof(*own));
	int err = own ? make_watch(b, t, own) : -ENOMEM;

	if (!err) {
		t->own = own;
		return;
	}
	free(own);
	if (err == -EALREADY)
		report(b, t, HML_WIRE_WATCH_CLAIMED);
	else
		b->watcher->held++;
}

static void begin_theirs(struct bridge *b, const struct item *item)
{
	struct theirs **at = find(b->watcher, item->peer, item->watch.id), *t = NULL;
	struct far_user *who = user_of(b->watcher, item->peer, item->watch.user);

	/* Told of twice, more than may be, or no memory for it. */
	if (!*at && who && item->peer->watch_count < MOST_WATCHES)
		t = calloc(1, sizeof(*t));
	if (!t) {
		atomic_store(&item->peer->nonsense, true);
		return;
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
}

/* False: the segment is locked for too long, by somebody who is stopped. */
static bool end_theirs(struct theirs **at)
{
	struct theirs *t = *at;

	if (t->own && h_unwatch(t->own))
		return false;
	*at = t->next;
	t->peer->watch_count--;
	free(t);
	return true;
}

static void end_all(struct bridge *b, const struct peer *p)
{
	u32 i;

	for (i = 0; i < BUCKETS; i++) {
		struct theirs **at = &b->watcher->buckets[i];

		while (*at)
			if ((*at)->peer != p || !end_theirs(at))
				at = &(*at)->next;
	}
}

static void retry_held(struct bridge *b)
{
	struct theirs *t;
	u32 i;

	b->watcher->held = 0;
	for (i = 0; i < BUCKETS; i++)
		for (t = b->watcher->buckets[i]; t; t = t->next)
			if (!t->own)
				try_key(b, t);
}

/* ---- ours ---- */

/* Under the tables' lock: then it is the one that was meant, or has ended. */
static void mark_gone(struct bridge *b, const struct item *item)
{
	u32 generation, i = sender_watch(b, item->peer->number, item->watch.id, &generation);
	struct shm_watch *w;

	if (i == SHM_MAX_WATCHES)
		return;
	w = &b->seg->watches[i];
	h__dev_lock(b->dev);
	if (!h__shm_lock(b->dev)) {
		if (w->owner && READ_ONCE(w->state) / (SHM_WATCH_STATE + 1) == generation)
			WRITE_ONCE(w->void_, 1);
		h__shm_tell(b->dev);
		h__shm_unlock(b->dev);
	}
	h__unlock(&b->dev->lock);
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

static void take(struct bridge *b, const struct item *item)
{
	struct theirs **at;

	switch (item->kind) {
	case WATCH:
		begin_theirs(b, item);
		break;
	case UNWATCH:
		at = find(b->watcher, item->peer, item->watch.id);
		if (*at)
			end_theirs(at);
		break;
	case GONE:
		mark_gone(b, item);
		break;
	case LOST:
		tell_lost(b);
		end_all(b, item->peer);
		break;
	}
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
	pthread_mutex_unlock(&w->lock);
	for (i = 0; i < n; i++)
		take(b, &items[i]);
	free(items);
}

/* Ended watches report no more: what is named is there. */
static void take_reports(struct bridge *b)
{
	struct hamlyn_nq_entry e;

	while (h_recv(b->watcher->nq, &e) == 1)
		if (e.flags & HAMLYN_NQE_PEER_GONE)
			report(b, (struct theirs *)(uintptr_t)e.data, HML_WIRE_WATCH_GONE);
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
	const struct timespec t = { .tv_nsec = soon ? RETRY_NS : SLEEP_NS };

	WRITE_ONCE(core->armed, 1);
	smp_mb();						/* B5 */
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
	while ((u = w->users)) {
		w->users = u->next;
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
