/* SPDX-License-Identifier: GPL-2.0-only */
/* Lines of processes, each with the number of the process before it. */
#ifndef RUN_OUTPUT_H
#define RUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct sink - our standard output or error
 * @fd: 1 or 2
 * @data: lines
 * @len: their bytes
 * @done: as many of them are written
 * @room: bytes that @data has room for
 * @dropped: bytes that never will be written
 * @in_line: the last byte that was written ends no line
 */
struct sink {
	int fd;
	char *data;
	size_t len;
	size_t done;
	size_t room;
	size_t dropped;
	bool in_line;
};

/**
 * struct stream - a pipe from a process
 * @fd: our end, or -1
 * @rank: the process
 * @sink: where its lines go
 * @plain: no number, and no end of a line that it has not got
 * @line: the last line as far as it has come
 * @len: its bytes
 * @room: bytes that @line has room for
 * @rest: bytes that are still read, or -1: all that come
 */
struct stream {
	int fd;
	int rank;
	struct sink *sink;
	bool plain;
	char *line;
	size_t len;
	size_t room;
	int rest;
};

void stream_init(struct stream *stream, int rank, struct sink *sink);
void stream_uninit(struct stream *stream);

/* Is there room for more? Without it a process that writes has to wait. */
bool stream_wants(const struct stream *stream);

/* Reads once. Return: true if something came; the pipe is closed at its end. */
bool stream_read(struct stream *stream);

/* What has come of a line is not kept any longer, if it is plain */
void stream_flush(struct stream *stream);

/* Bytes that came another way than by the pipe */
void stream_feed(struct stream *stream, const char *text, size_t n);

/*
 * What is in the pipe now is the last: who still writes to it may do so faster than we can
 * write. Only the first call counts.
 */
void stream_last(struct stream *stream);

/* No more will come: what is left of a line becomes one. */
void stream_end(struct stream *stream);

/* Bytes of a process that has ended which its sink has not got yet */
size_t stream_pending(struct stream *stream);

/* They never will be written; no more are read */
void stream_drop(struct stream *stream);

/* Has it room for more lines? */
bool sink_wants(const struct sink *sink);

/* Bytes that are not written yet */
size_t sink_pending(const struct sink *sink);

/* What is not written yet never will be */
void sink_drop(struct sink *sink);

/* How much that was in all, at the end: processes may write on after it was dropped */
void sink_tell(const struct sink *sink);

/* "output" or "error" */
const char *sink_name(const struct sink *sink);

/* Do both end in one place, so that lines of the one may come into lines of the other? */
bool sinks_meet(const struct sink *one, const struct sink *other);

/* Writes as much as does not block once poll() says so. Return: 0 or a positive errno. */
int sink_write(struct sink *sink);

#endif /* RUN_OUTPUT_H */
