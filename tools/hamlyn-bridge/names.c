// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of this host, and calls: HOST/NAME. A process has a socket to the bridge for each name and
 * each call, whose end is the end of what it stands for. All of it is the receiver's: it waits for
 * nobody, and what finds no room is refused.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "bridge.h"

#define MOST_LOCALS	1024	/* sockets of processes */
#define MOST_OF_ONE	256	/* of one process */
#define AT_A_NAME	256	/* calls that wait there */
#define OF_A_HOST	(AT_A_NAME / 2)
#define OF_A_PEER	1024	/* at all names */
#define ROOM_BYTES	(512 << 10)	/* for all that may wait at a name */
#define DOOR_EVENT	MOST_LOCALS
#define NOBODY		65534

/* A call that has been given to whoever has the name, and waits for its answer. */
struct waiting {
	struct waiting *next;		/* at that name */
	struct waiting *prev;
	struct waiting *chain;		/* in its list */
	struct local *at;
	struct peer *peer;		/* from whom; NULL: from a process here */
	u32 id;				/* as the peer, or struct local, has it */
	u32 user;
};

enum kind {
	FREE,
	STRANGER,			/* has not said yet what it wants */
	NAME,
	CALLER,
	DONE,				/* was answered */
};

struct local {
	enum kind kind;
	int fd;
	pid_t pid;
	u32 length;			/* of the name */
	char name[HAMLYN_MAX_NAME + 1];
	struct waiting *calls;
	u32 waiting;
	struct peer *peer;		/* whom it calls; NULL: a name here */
	u32 id;				/* of the call */
};

struct names {
	int door;
	bool closed;			/* all places are taken */
	u32 next_id;
	struct local local[MOST_LOCALS];
	struct waiting *lists[USER_LISTS];
};

static bool put(int fd, const struct hamlyn_caller *head, const void *bytes)
{
	struct iovec part[2] = {
		{ (void *)(uintptr_t)head, sizeof(*head) },
		{ (void *)(uintptr_t)bytes, head->length },
	};
	const struct msghdr m = { .msg_iov = part, .msg_iovlen = 2 };

	return sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* Who calls, or answers, as processes here are told. */
static struct hamlyn_caller from(const struct bridge *b, const struct peer *p, u32 user, u32 length)
{
	return (struct hamlyn_caller) {
		.host = p ? p->host : HAMLYN_NONE,
		.user = user,
		.uid = p && !b->set.same_users ? NOBODY : user,
		.length = length,
	};
}

/* ---- calls that wait here ---- */

/* It is also how whoever has the name calls it. */
static u64 number_of(const struct peer *p, u32 id)
{
	return (u64)(p ? p->number + 1 : 0) << 32 | id;
}

static struct waiting **find(struct bridge *b, u64 number)
{
	struct waiting **w = &b->names->lists[list_of(b, number, USER_BITS)];

	while (*w && number_of((*w)->peer, (*w)->id) != number)
		w = &(*w)->chain;
	return w;
}

static void forget(struct waiting **at)
{
	struct waiting *w = *at;

	*at = w->chain;
	H_UNLINK(w->at->calls, w);
	w->at->waiting--;
	if (w->peer)
		w->peer->waiting--;
	free(w);
}

/*
 * A host has no more places than are free, so that the next one finds some; nor has a user, of
 * its host's.
 */
static bool has_place(const struct local *at, const struct peer *p, u32 user)
{
	u32 of_host = 0, of_user = 0;
	const struct waiting *w;

	for (w = at->calls; w; w = w->next) {
		of_host += w->peer == p;
		of_user += w->peer == p && w->user == user;
	}
	return of_host < AT_A_NAME - at->waiting && of_user + of_host < OF_A_HOST;
}

static struct local *named(struct names *n, const char *name, u32 length)
{
	u32 i;

	for (i = 0; i < MOST_LOCALS; i++)
		if (n->local[i].kind == NAME && n->local[i].length == length &&
		    !memcmp(n->local[i].name, name, length))
			return &n->local[i];
	return NULL;
}

/* Return: HML_WIRE_ANSWERED: it waits for that. */
static u32 deliver(struct bridge *b, struct peer *p, u32 id, u32 user, struct local *at,
		   const u8 *bytes, u32 length)
{
	struct hamlyn_caller head = from(b, p, user, length);
	struct waiting **list, *w;

	if (!at)
		return HML_WIRE_NO_NAME;
	if (!has_place(at, p, user) || (p && p->waiting == OF_A_PEER))
		return HML_WIRE_FULL;
	w = calloc(1, sizeof(*w));
	head.number = number_of(p, id);
	if (!w || !put(at->fd, &head, bytes)) {
		free(w);
		return HML_WIRE_FULL;
	}
	*w = (struct waiting) { .at = at, .peer = p, .id = id, .user = user };
	list = find(b, head.number);
	*list = w;
	H_LINK(at->calls, w);
	at->waiting++;
	if (p)
		p->waiting++;
	return HML_WIRE_ANSWERED;
}

/* ---- answers ---- */

static int error_of(u32 status)
{
	switch (status) {
	case HML_WIRE_ANSWERED:
		return 0;
	case HML_WIRE_NO_NAME:
		return ENOENT;
	case HML_WIRE_FULL:
		return EUSERS;
	}
	return ECONNRESET;
}

/* It has one coming, and there is always room for that. */
static void tell_caller(struct bridge *b, struct local *l, int error, u32 user, const u8 *bytes,
			u32 length)
{
	struct hamlyn_caller head = from(b, l->peer, user, length);

	head.error = error;
	l->kind = DONE;
	put(l->fd, &head, bytes);
}

static void note_answer(struct peer *p, u32 id, u32 status, const u8 *bytes, u32 length)
{
	struct note n = { .type = HML_WIRE_ANSWER, .why = status, .watch.id = id };

	if (status == HML_WIRE_ANSWERED) {
		n.words = calloc(1, sizeof(*n.words));
		if (!n.words)
			n.why = HML_WIRE_FULL;
	}
	if (n.words) {
		n.words->user = p->bridge->uid;
		n.words->length = length;
		memcpy(n.words->bytes, bytes, length);
	}
	outbox_note(p, READ_ONCE(p->shared->state), &n);
	sender_work(p->bridge);
}

static void respond(struct bridge *b, const struct waiting *w, u32 status, const u8 *bytes,
		    u32 length)
{
	struct local *l = &b->names->local[w->id % MOST_LOCALS];

	if (w->peer)
		note_answer(w->peer, w->id, status, bytes, length);
	else if (l->kind == CALLER && !l->peer && l->id == w->id)
		tell_caller(b, l, error_of(status), b->uid, bytes, length);
}

/* ---- peers ---- */

/* False: it calls twice by one number. */
bool names_call(struct peer *p, const struct hml_wire_call *call)
{
	struct bridge *b = p->bridge;
	u32 status;

	if (*find(b, number_of(p, call->id)))
		return false;
	status = deliver(b, p, call->id, call->user,
			 named(b->names, call->name, call->name_length), call->body, call->length);
	if (status != HML_WIRE_ANSWERED)
		note_answer(p, call->id, status, NULL, 0);
	return true;
}

/* One that comes too late is nobody's. */
void names_answer(struct peer *p, const struct hml_wire_answer *a)
{
	struct local *l = &p->bridge->names->local[a->id % MOST_LOCALS];

	if (l->kind == CALLER && l->peer == p && l->id == a->id)
		tell_caller(p->bridge, l, error_of(a->status), a->user, a->body, a->length);
}

void names_cancel(struct peer *p, u32 id)
{
	struct waiting **w = find(p->bridge, number_of(p, id));

	if (*w)
		forget(w);
}

void names_lost(struct peer *p)
{
	struct names *n = p->bridge->names;
	struct waiting **w;
	u32 i;

	for (i = 0; i < MOST_LOCALS; i++)
		if (n->local[i].kind == CALLER && n->local[i].peer == p)
			tell_caller(p->bridge, &n->local[i], ECONNRESET, 0, NULL, 0);
	for (i = 0; i < USER_LISTS && p->waiting; i++)
		for (w = &n->lists[i]; *w;)
			if ((*w)->peer == p)
				forget(w);
			else
				w = &(*w)->chain;
}

/* ---- processes ---- */

static void watch_door(struct bridge *b, bool open)
{
	struct epoll_event e = {
		.events = open ? EPOLLIN : 0,
		.data.u64 = NAMES_EVENTS + DOOR_EVENT,
	};

	if (b->names->closed == open && !epoll_ctl(b->epoll, EPOLL_CTL_MOD, b->names->door, &e))
		b->names->closed = !open;
}

static void give_up(struct bridge *b, struct local *l)
{
	const struct note n = { .type = HML_WIRE_CANCEL, .watch.id = l->id };
	struct waiting **w;

	if (l->peer) {
		outbox_note(l->peer, READ_ONCE(l->peer->shared->state), &n);
		sender_work(b);
		return;
	}
	w = find(b, number_of(NULL, l->id));
	if (*w)
		forget(w);
}

static void end_local(struct bridge *b, struct local *l)
{
	struct waiting **w;

	if (l->kind == CALLER)
		give_up(b, l);
	while (l->calls) {
		w = find(b, number_of(l->calls->peer, l->calls->id));
		respond(b, *w, HML_WIRE_HUNG_UP, NULL, 0);
		forget(w);
	}
	close(l->fd);
	*l = (struct local) { .fd = -1 };
	watch_door(b, true);
}

static void refuse(struct bridge *b, struct local *l, int error)
{
	const struct hamlyn_caller head = { .host = HAMLYN_NONE, .error = error };

	put(l->fd, &head, NULL);
	end_local(b, l);
}

static u32 count_of(const struct names *n, pid_t pid)
{
	u32 i, count = 0;

	for (i = 0; i < MOST_LOCALS; i++)
		count += n->local[i].kind != FREE && n->local[i].pid == pid;
	return count;
}

static void take_name(struct bridge *b, struct local *l, const struct shm_ask *ask)
{
	const struct hamlyn_caller done = { .host = HAMLYN_NONE };
	int room = ROOM_BYTES;

	if (named(b->names, ask->name, ask->name_length)) {
		refuse(b, l, EADDRINUSE);
		return;
	}
	setsockopt(l->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	l->kind = NAME;
	l->length = ask->name_length;
	memcpy(l->name, ask->name, ask->name_length);
	if (!put(l->fd, &done, NULL))
		end_local(b, l);
}

static struct peer *peer_called(struct bridge *b, u32 host)
{
	u32 i;

	for (i = 0; i < b->peer_count; i++)
		if (b->peers[i].host == host)
			return &b->peers[i];
	return NULL;
}

/* Return: 0, or an errno that the caller is told. */
static int call_peer(struct bridge *b, struct local *l, const struct shm_ask *ask, const u8 *bytes)
{
	struct note n = { .type = HML_WIRE_CALL, .watch.id = l->id };
	struct peer *p = peer_called(b, ask->host);

	if (!p)
		return EHOSTUNREACH;
	if (p->state != PEER_UP)
		return EHOSTDOWN;
	if (!(p->in.features & HML_WIRE_NAMES))
		return EPROTONOSUPPORT;
	n.words = calloc(1, sizeof(*n.words));
	if (!n.words)
		return EUSERS;
	n.words->user = b->uid;
	n.words->name_length = ask->name_length;
	n.words->length = ask->length;
	memcpy(n.words->name, ask->name, ask->name_length);
	memcpy(n.words->bytes, bytes, ask->length);
	l->peer = p;
	if (!outbox_note(p, READ_ONCE(p->shared->state), &n))
		return EUSERS;
	sender_work(b);
	return 0;
}

static void take_call(struct bridge *b, struct local *l, const struct shm_ask *ask, const u8 *bytes)
{
	int err;

	l->kind = CALLER;
	l->id = b->names->next_id++ * MOST_LOCALS + (u32)(l - b->names->local);
	if (ask->host == b->set.host)
		err = error_of(deliver(b, NULL, l->id, b->uid,
				       named(b->names, ask->name, ask->name_length), bytes,
				       ask->length));
	else
		err = call_peer(b, l, ask, bytes);
	if (err)
		tell_caller(b, l, err, 0, NULL, 0);
}

static void take_ask(struct bridge *b, struct local *l, const u8 *bytes, size_t n)
{
	struct shm_ask ask;

	if (n < sizeof(ask)) {
		end_local(b, l);
		return;
	}
	memcpy(&ask, bytes, sizeof(ask));
	if (ask.length > HAMLYN_MAX_CALL || n != sizeof(ask) + ask.length ||
	    !hml_wire_name_ok(ask.name, ask.name_length))
		refuse(b, l, EINVAL);
	else if (count_of(b->names, l->pid) > MOST_OF_ONE)
		refuse(b, l, EDQUOT);
	else if (ask.what == H_DOOR_LISTEN)
		take_name(b, l, &ask);
	else if (ask.what == H_DOOR_CALL)
		take_call(b, l, &ask, bytes + sizeof(ask));
	else
		refuse(b, l, EINVAL);
}

static void take_answer(struct bridge *b, struct local *l, const u8 *bytes, size_t n)
{
	struct hamlyn_answer a;
	struct waiting **w;

	if (n < sizeof(a)) {
		end_local(b, l);
		return;
	}
	memcpy(&a, bytes, sizeof(a));
	if (a.flags || a.length > HAMLYN_MAX_CALL || n != sizeof(a) + a.length) {
		end_local(b, l);
		return;
	}
	w = find(b, a.number);
	if (!*w || (*w)->at != l)
		return;
	respond(b, *w, HML_WIRE_ANSWERED, bytes + sizeof(a), a.length);
	forget(w);
}

static void take_words(struct bridge *b, struct local *l)
{
	u8 bytes[sizeof(struct shm_ask) + HAMLYN_MAX_CALL + 1];
	ssize_t n = recv(l->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* A caller has nothing to say. */
	if (n <= 0 || l->kind == CALLER || l->kind == DONE)
		end_local(b, l);
	else if (l->kind == NAME)
		take_answer(b, l, bytes, (size_t)n);
	else
		take_ask(b, l, bytes, (size_t)n);
}

static struct local *free_place(struct names *n)
{
	u32 i;

	for (i = 0; i < MOST_LOCALS; i++)
		if (n->local[i].kind == FREE)
			return &n->local[i];
	return NULL;
}

static void let_in(struct bridge *b)
{
	struct local *l = free_place(b->names);
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t n = sizeof(cred);
	struct epoll_event e = { .events = EPOLLIN };
	int fd = l ? accept4(b->names->door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

	/* Until one leaves; or, without descriptors, until the next look. */
	if (fd < 0) {
		if (!l || errno != EAGAIN)
			watch_door(b, false);
		return;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n);
	e.data.u64 = NAMES_EVENTS + (u64)(l - b->names->local);
	if (cred.uid != geteuid() || count_of(b->names, cred.pid) > MOST_OF_ONE ||
	    epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &e)) {
		close(fd);
		return;
	}
	*l = (struct local) { .kind = STRANGER, .fd = fd, .pid = cred.pid };
}

void names_event(struct bridge *b, u32 what)
{
	if (what == DOOR_EVENT)
		let_in(b);
	else if (b->names->local[what].kind != FREE)
		take_words(b, &b->names->local[what]);
}

/* For one who could not be let in before. */
void names_look(struct bridge *b)
{
	watch_door(b, true);
}

/* ---- from beginning to end ---- */

static int open_door(struct bridge *b, u32 door)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, H_DOOR_NAME, (u32)getpid(), door);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = NAMES_EVENTS + DOOR_EVENT };

	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	    listen(fd, MOST_OF_ONE) || epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &e))
		return -1;
	b->names->door = fd;
	return 0;
}

int names_init(struct bridge *b)
{
	struct rlimit files;
	u32 door = 0;

	b->names = calloc(1, sizeof(*b->names));
	/* So that nobody else has had the name before. */
	if (!b->names || h__random(&door, sizeof(door)) || open_door(b, door | 1)) {
		say("no socket for names: %s", strerror(errno));
		return -1;
	}
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	smp_store_release(&b->seg->bridge.door, door | 1);	/* after it listens */
	return 0;
}

void names_end(struct bridge *b)
{
	u32 i;

	WRITE_ONCE(b->seg->bridge.door, 0);
	close(b->names->door);
	for (i = 0; i < MOST_LOCALS; i++)
		if (b->names->local[i].kind != FREE)
			end_local(b, &b->names->local[i]);
	free(b->names);
}
