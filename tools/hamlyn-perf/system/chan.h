/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a test needs of a system: a channel between two processes that moves
 * messages of one size from buffer to buffer. A file per system fills in
 * struct system; systems.c has the list.
 */
#ifndef HAMLYN_PERF_CHAN_H
#define HAMLYN_PERF_CHAN_H

#include <stdlib.h>

#include "load/pair.h"

#define CHAN_WINDOW	(4U << 20)	/* bytes under way in a stream, */
#define CHAN_MIN_COUNT	2		/* but at least so many messages, */
#define CHAN_MAX_COUNT	1024		/* and at most so many */
#define CHAN_BYTES	((size_t)CHAN_MIN_COUNT * PERF_MAX_SIZE)	/* chan_room() at most */
#define CHAN_ALIGN	64

enum test_kind {
	TEST_LAT,
	TEST_BW,
	TEST_RATE,
	TEST_LOAD,
	TEST_KINDS,
};

/* What is 0 is not known, but for poller_ns. */
struct measure {
	double value;		/* ns one way, bytes/s or messages/s */
	double offered;		/* of TEST_LOAD: messages/s */
	double p90;		/* of latencies */
	double p99;
	double p999;
	double p9999;
	double max;
	double min;
	double cpu_ns;		/* CPU time of both processes, per message */
	double poller_ns;	/* CPU time of the kernel's engines, per message */
	uint64_t n;
	uint64_t begin;		/* of a stream, by clock_ns() */
	uint64_t end;
	double each[PERF_MAX_PAIRS];	/* value of each pair, if there are several */
};

struct point {
	enum test_kind test;
	size_t size;
};

struct system;

/*
 * @out and @in are rings of @count buffers, @stride bytes apart. In a stream
 * (side 0 sends, side 1 receives) the system keeps the sender from lapping
 * the receiver; in a ping-pong nobody can be lapped.
 */
struct chan {
	const struct system *system;
	struct side *side;
	unsigned char *out;
	unsigned char *in;
	size_t size;
	size_t stride;
	uint32_t count;
	uint32_t out_pos;
	uint32_t in_pos;
	bool stream;
};

struct system {
	const char *name;
	const char *what;
	uint32_t tests;		/* 1 << enum test_kind; who has TEST_RATE has TEST_LOAD */
	size_t only_size;	/* 0: any size */
	size_t (*max_size)(void);	/* NULL: no limit */
	bool engines;		/* the NIC's engines work for it */
	bool helped;		/* others, which need the sides' processors, do so */

	/*
	 * Optional: NULL if it can be measured here, or else what is missing,
	 * for people. @installed says the same with fewer words.
	 */
	const char *(*missing)(const struct options *options);

	/* In the parent, before it forks: what the processes inherit. */
	void *(*make)(const struct options *options);
	void (*unmake)(void *stage);

	struct chan *(*open)(struct side *side, void *stage);
	void (*close)(struct chan *chan);
	/*
	 * Optional: what this side has sent is where it belongs when it returns, or gets there
	 * without our help. Also called when a side is through with a stream.
	 */
	int (*settle)(struct chan *chan);
	/* @size, @stride, @count and @stream are new; both sides call it. */
	int (*prepare)(struct chan *chan);

	void *(*reserve)(struct chan *chan);	/* NULL: failed */
	int (*commit)(struct chan *chan);
	const void *(*take)(struct chan *chan);	/* NULL: failed */
	int (*release)(struct chan *chan);

	/* In place of the bandwidth stream: work that one process does alone. */
	int (*solo)(struct chan *chan, uint64_t n);

	/*
	 * In place of all the above: a program that is installed here or not,
	 * started for one point. The child is pinned as the two sides would be.
	 */
	bool (*installed)(void);
	int (*external)(const struct options *options, const struct point *point,
			struct measure *measure);
};

static inline unsigned char *chan_out(const struct chan *chan)
{
	return chan->out + chan->out_pos * chan->stride;
}

static inline unsigned char *chan_in(const struct chan *chan)
{
	return chan->in + chan->in_pos * chan->stride;
}

static inline uint32_t chan_next(const struct chan *chan, uint32_t pos)
{
	return ++pos == chan->count ? 0 : pos;
}

int chan_prepare(struct chan *chan, enum test_kind test, size_t size);
unsigned char *chan_alloc(size_t bytes);
/* Did a message of @length bytes come where one of @chan->size was due? */
bool chan_fits(const struct chan *chan, size_t length);
/* Bytes of buffers each way: what the largest message of the plan needs. */
size_t chan_room(void);
void chan_set_room(size_t room);
size_t chan_need(enum test_kind test, size_t size);

/* ---- systems ------------------------------------------------------------ */

extern const struct system sys_hamlyn;
extern const struct system sys_hamlyn_block;
extern const struct system sys_channel;
extern const struct system sys_channel_block;
extern const struct system sys_fast;
extern const struct system sys_unix_stream;
extern const struct system sys_unix_stream_spin;
extern const struct system sys_unix_seqpacket;
extern const struct system sys_unix_seqpacket_spin;
extern const struct system sys_pipe;
extern const struct system sys_pipe_spin;
extern const struct system sys_tcp;
extern const struct system sys_tcp_spin;
extern const struct system sys_vsock;
extern const struct system sys_vsock_spin;
extern const struct system sys_eventfd;
extern const struct system sys_vm_writev;
extern const struct system sys_uring;
extern const struct system sys_uring_spin;
extern const struct system sys_zeromq;
extern const struct system sys_nng;
extern const struct system sys_dbus;
extern const struct system sys_ucx;
extern const struct system sys_ucx_put;
extern const struct system sys_ucx_tag;
extern const struct system sys_libfabric_shm;
extern const struct system sys_libfabric_tcp;
extern const struct system sys_libfabric_hamlyn_rxm;
extern const struct system sys_libfabric_hamlyn_rdm;
extern const struct system sys_libfabric_hamlyn_msg;
extern const struct system sys_openmpi;
extern const struct system sys_mpich;
extern const struct system sys_rxe_send;
extern const struct system sys_rxe_write;
extern const struct system sys_shm;
extern const struct system sys_limit;

#define SYSTEMS_MAX	40

extern const struct system *const systems[];
extern const size_t systems_count;

const struct system *system_find(const char *name, size_t length);
/* A failure names the one of @names, separated by commas, that there is not. */
int systems_known(const char *names);
bool system_takes(const struct system *system, enum test_kind test, size_t size);
const char *system_missing(const struct system *system, const struct options *options);

/* ---- tests: a file each ------------------------------------------------- */

int test_lat(struct chan *chan, uint32_t budget_ms, struct measure *measure);
int test_bw(struct chan *chan, uint32_t budget_ms, struct measure *measure);
int test_rate(struct chan *chan, uint32_t budget_ms, struct measure *measure);
int test_load(struct chan *chan, uint32_t budget_ms, struct measure *measure);

/* Shared by those that stream: messages per second, 0 on failure. */
double stream_rate(struct chan *chan, uint32_t budget_ms, bool alone,
		   struct measure *measure);

#endif /* HAMLYN_PERF_CHAN_H */
