/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hamlyn-bridge: three threads between a segment and sockets.
 *
 * The sender (sender.c) takes packets out of the segment's rings and gives them to the sockets. The
 * receiver (life.c, inbox.c) makes connections and puts what arrives into the segment. Whatever
 * changes the segment's tables, which a stopped process may have locked, is the watcher's
 * (watches.c): nobody else waits for it.
 */
#ifndef BRIDGE_H
#define BRIDGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

#include "embedded/shm.h"
#include "wire.h"

#define MOST_USERS	4096		/* senders of a peer that are told apart */
#define USER_BITS	8
#define USER_LISTS	(1 << USER_BITS)
#define MOST_WATCHES	SHM_MAX_WATCHES	/* of a peer on our slots */
#define MOST_ARMED	(SHM_MAX_WATCHES / 2)	/* of all peers at a time; others wait */
#define MOST_NOTES	(4u * SHM_MAX_WATCHES)	/* to a peer that takes none */
#define MOST_CALLS	256		/* to a peer, not yet sent */
#define MOST_GUESTS	16		/* connections that have not said who they are */
#define OUTBOX_BYTES	(512u << 10)
#define INBOX_BYTES	(256u << 10)
#define NS_PER_MS	1000000ll

struct address {
	struct sockaddr_storage at;
	socklen_t length;		/* 0: none */
	bool has_port;
};

struct settings {
	const char *device;
	u32 host;
	u8 fabric[HAMLYN_FABRIC_ID_BYTES];
	struct address listen;
	bool clear;
	bool quiet;
	bool status;
	bool same_users;
	u32 dead_ms;
	u32 stall_ms;
	u32 peers;
	struct {
		u32 host;
		struct address address;
	} peer[SHM_MAX_PEERS];
};

struct bridge;

/* One of those that send or watch from another host. Never freed. */
struct far_user {
	struct far_user *next;
	u64 who;
	struct shm_guesser guesser;
	struct hml_sender sender;
};

/* What is said in a call, or in its answer, and to whom. */
struct words {
	u32 user;
	u32 name_length;
	u32 length;
	char name[HAMLYN_MAX_NAME + 1];
	u8 bytes[HAMLYN_MAX_CALL];
};

/* A frame that is no packet, to be sent. words: NULL, or its own, of malloc(). */
struct note {
	u32 type;
	u32 why;
	struct words *words;
	struct hml_wire_watch watch;
};

/* Frames on their way to a peer. Under lock. */
struct outbox {
	pthread_mutex_t lock;
	int fd;				/* -1: none */
	bool open;			/* both have said HELLO */
	bool full;			/* the socket has taken no more */
	bool ping;
	bool pong;
	u64 stamp;
	u8 *ring;
	u64 head;
	u64 tail;
	u64 taken;			/* by the peer, when it had last taken enough */
	int64_t moved_ns;
	struct hml_wire_tx tx;
	struct note *notes;
	u32 note_first;
	u32 note_end;
	u32 note_room;
	u32 calls;			/* of the notes */
	u64 packets;
	u64 lost;
	u64 bytes;
	u64 stalls;
};

/* What has come from a peer: the receiver's. */
struct inbox {
	u8 *bytes;
	u32 have;
	int64_t heard_ns;
	int64_t asked_ns;
	struct hml_wire_rx rx;
	u32 features;
	u64 packets;
	u64 dropped;
	u64 taken;
	u64 refused;
};

enum peer_state {
	PEER_IDLE,
	PEER_CONNECTING,
	PEER_GREETING,			/* connected, and waits for HELLO */
	PEER_UP,
};

struct peer {
	struct bridge *bridge;
	u32 number;			/* in the segment */
	u32 host;
	struct address address;
	bool connects;			/* it is we who do */
	struct shm_peer *shared;
	/* the receiver's */
	enum peer_state state;
	int fd;
	int64_t due_ns;			/* when to connect again, or to give up */
	int64_t pause_ns;
	int64_t let_in_ns;		/* its last connection; 0: none yet */
	struct inbox in;
	struct far_user *users[USER_LISTS];
	u32 user_count;
	struct far_user others;		/* who is one too many */
	struct hml_stats *stats;
	u32 waiting;			/* calls of its, at names here */
	/* under its lock */
	struct outbox out;
	/* under the watcher's lock */
	u32 items;
	/* the watcher's; known is read by the receiver */
	struct shm_known known[SHM_KNOWN];
	struct hml_stats watch_stats;
	u32 watch_count;
	u32 watch_user_count;
	struct far_user watch_others;	/* who is one too many */
	atomic_bool nonsense;		/* the receiver is to end the connection */
};

/* Somebody who has connected, and may be one of several peers at that address. */
struct guest {
	int fd;
	int64_t give_up_ns;
	bool waits;			/* it has said HELLO, and is to be let in later */
	u32 have;
	u8 bytes[HML_WIRE_MOST_CONTROL];
};

/* Of a thread: where it was woken from, and when it went there. */
struct place {
	u32 apart;
	int64_t moved_ns;
};

struct bridge {
	struct settings set;
	u64 incarnation;
	u64 salt;			/* odd */
	u32 uid;			/* ours: to ask is a system call */
	struct h_dev *dev;
	struct shm_dev *shm;
	struct shm_segment *seg;
	struct h_terminus *terminus;	/* what the receiver is inside the NIC with */
	struct peer *peers;
	u32 peer_count;
	u32 by_number[SHM_MAX_PEERS];	/* in peers, + 1 */
	int epoll;
	int listener;
	bool deaf;			/* no descriptor is left for those who connect */
	int signals;
	struct guest guests[MOST_GUESTS];
	struct names *names;		/* the receiver's */
	struct place place;		/* the same */
	u32 reads;			/* the same */
	atomic_bool stop;
	atomic_bool work;		/* for the sender, but in no ring */
	struct watcher *watcher;
	struct sender *sender;
};

/* One writer, and readers that do without a lock */
static inline void add(u64 *counter, u64 n)
{
	WRITE_ONCE(*counter, *counter + n);
}

static inline struct peer *peer_of(struct bridge *b, u32 number)
{
	return number < SHM_MAX_PEERS && b->by_number[number] ?
		&b->peers[b->by_number[number] - 1] : NULL;
}

/* Peers choose what is looked up: with another factor each time they know of no two in one list. */
static inline u32 list_of(const struct bridge *b, u64 what, u32 bits)
{
	return (u32)(what * b->salt >> (64 - bits));
}

/* options.c: 0, 1: all was said, or -1: it was told why not. */
int options_parse(int argc, char **argv, struct settings *set);
bool address_same_host(const struct address *a, const struct address *b);
bool address_is_loopback(const struct address *a);
void address_text(const struct address *a, char *text, size_t size);

/* say.c */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tell(const struct bridge *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void say_status(const struct bridge *b);

/* segment.c: 0, or it was told why not. */
int segment_join(struct bridge *b);
void segment_leave(struct bridge *b);
void peer_up(struct peer *p);
void peer_down(struct peer *p, u32 reason);
void peer_count(struct peer *p);

/* status.c */
const char *reason_text(u32 reason);
void status_print(const struct shm_segment *seg, FILE *to);

/* outbox.c */
enum put { PUT_DONE, PUT_FULL };
int outbox_init(struct outbox *o);
void outbox_free(struct outbox *o);
void outbox_begin(struct peer *p, int fd, const struct hml_wire_hello *hello);
void outbox_open(struct peer *p);
void outbox_end(struct peer *p, u32 verdict);
enum put outbox_put(struct peer *p, const struct shm_ring_packet *c, const u8 *bytes, u32 sender);
bool outbox_note(struct peer *p, u32 state, const struct note *note);
bool outbox_flush(struct peer *p);
bool outbox_stalled(struct peer *p, int64_t now);

/* inbox.c: false if the connection has to end, for *verdict. */
int inbox_init(struct peer *p);
void inbox_free(struct peer *p);
struct far_user *far_user_begin(struct peer *p, struct far_user *u, u64 who,
				struct hml_stats *stats);
void inbox_begin(struct peer *p);
bool inbox_read(struct peer *p, u32 *verdict);
u32 inbox_hello(struct peer *p, struct hml_wire_rx *rx, const struct hml_wire_frame *f,
		const u8 *headers);

/* origin.c */
bool origin_is_ours(int fd);

/* place.c */
void place_init(void);
void place_follow(struct place *p, u32 cpu);

/* life.c: the receiver */
int life_init(struct bridge *b);
void life_run(struct bridge *b);
void life_hello(const struct bridge *b, struct hml_wire_hello *hello);
void life_end(struct bridge *b);

/* names.c: whom processes here are called by, and whom they call; the receiver's */
#define NAMES_EVENTS	4000
int names_init(struct bridge *b);
void names_end(struct bridge *b);
void names_event(struct bridge *b, u32 what);
void names_look(struct bridge *b);
void names_lost(struct peer *p);
bool names_call(struct peer *p, const struct hml_wire_call *call);
void names_answer(struct peer *p, const struct hml_wire_answer *answer);
void names_cancel(struct peer *p, u32 id);

/* sender.c */
int sender_start(struct bridge *b);
void sender_stop(struct bridge *b);
void sender_work(struct bridge *b);
/* Of a watch of ours, as the peer knows it: its record, or SHM_MAX_WATCHES. */
u32 sender_watch(struct bridge *b, u32 number, u32 wire, u32 *generation);

/* watches.c */
int watcher_start(struct bridge *b);
void watcher_stop(struct bridge *b);
/* False: the peer asks for too much. */
bool watcher_watch(struct peer *p, const struct hml_wire_watch *w);
bool watcher_unwatch(struct peer *p, u32 id);
bool watcher_gone(struct peer *p, u32 id);
void watcher_lost(struct peer *p);

#endif /* BRIDGE_H */
