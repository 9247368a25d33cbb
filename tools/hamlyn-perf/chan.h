/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a test needs of a system: a channel between two processes that moves
 * messages of one size from buffer to buffer. A file per system fills in
 * struct system; systems.c has the list.
 */
#ifndef HAMLYN_PERF_CHAN_H
#define HAMLYN_PERF_CHAN_H

#include <stdlib.h>

#include "pair.h"

#define CHAN_WINDOW	(4U << 20)	/* bytes under way in a stream, */
#define CHAN_MIN_COUNT	4		/* but at least so many messages, */
#define CHAN_MAX_COUNT	1024		/* and at most so many */
#define CHAN_BYTES	((size_t)CHAN_MIN_COUNT * PERF_MAX_SIZE)
#define CHAN_ALIGN	64

enum test_kind {
	TEST_LAT,
	TEST_BW,
	TEST_RATE,
	TEST_KINDS,
};

struct measure {
	double value;		/* ns one way, bytes/s or messages/s */
	double p99;		/* of latencies */
	double min;
	uint64_t n;
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
	uint32_t tests;		/* 1 << enum test_kind */
	size_t only_size;	/* 0: any size */
	size_t (*max_size)(void);	/* NULL: no limit */

	/* In the parent, before it forks: what the processes inherit. */
	void *(*make)(const struct options *options);
	void (*unmake)(void *stage);

	struct chan *(*open)(struct side *side, void *stage);
	void (*close)(struct chan *chan);
	/* Optional: what this side has sent is where it belongs when it returns. */
	int (*settle)(struct chan *chan);
	/* @size, @stride, @count and @stream are new; both sides call it. */
	int (*prepare)(struct chan *chan);

	void *(*reserve)(struct chan *chan);	/* NULL: failed */
	int (*commit)(struct chan *chan);
	const void *(*take)(struct chan *chan);	/* NULL: failed */
	int (*release)(struct chan *chan);

	/* In place of the bandwidth stream: work that one process does alone. */
	int (*solo)(struct chan *chan, uint64_t n);
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

/* ---- systems ------------------------------------------------------------ */

extern const struct system sys_hamlyn;
extern const struct system sys_hamlyn_block;
extern const struct system sys_fast;
extern const struct system sys_unix_stream;
extern const struct system sys_unix_seqpacket;
extern const struct system sys_pipe;
extern const struct system sys_shm;
extern const struct system sys_limit;

#define SYSTEMS_MAX	16

extern const struct system *const systems[];
extern const size_t systems_count;

const struct system *system_find(const char *name, size_t length);
bool system_takes(const struct system *system, enum test_kind test, size_t size);

/* ---- tests: a file each ------------------------------------------------- */

int test_lat(struct chan *chan, uint32_t budget_ms, struct measure *measure);
int test_bw(struct chan *chan, uint32_t budget_ms, struct measure *measure);
int test_rate(struct chan *chan, uint32_t budget_ms, struct measure *measure);

/* Shared by the two that stream: messages per second, 0 on failure. */
double stream_rate(struct chan *chan, uint32_t budget_ms, bool alone, uint64_t *n);

#endif /* HAMLYN_PERF_CHAN_H */
