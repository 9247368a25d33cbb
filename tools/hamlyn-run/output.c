// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lines of processes. They wait in memory until they can be written without blocking,
 * because who blocks serves nobody and notices no signal.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"
#include "output.h"

#define LINE_BYTES	(1 << 20)	/* a longer line is torn */
#define SINK_BYTES	(1 << 20)	/* beyond this, processes have to wait */
#define READ_BYTES	65536
#define MOVE_BYTES	(1 << 18)

static void append(char **data, size_t *len, size_t *room, const char *text, size_t n)
{
	/* There may be no memory yet, which is no place to copy to, not even nothing */
	if (!n)
		return;
	if (n > *room - *len) {
		*room = (*len + n) * 2;
		*data = enlarge(*data, *room);
	}
	memcpy(*data + *len, text, n);
	*len += n;
}

static void put(struct sink *sink, const char *text, size_t n)
{
	append(&sink->data, &sink->len, &sink->room, text, n);
}

/* What has come of the line, and @n bytes of @text that end it */
static void put_line(struct stream *stream, const char *text, size_t n)
{
	char tag[32];
	int length = snprintf(tag, sizeof(tag), "[%d] ", stream->rank);

	if (!stream->plain)
		put(stream->sink, tag, (size_t)length);
	put(stream->sink, stream->line, stream->len);
	put(stream->sink, text, n);
	put(stream->sink, "\n", 1);
	stream->len = 0;
}

/* What has come of it */
static void put_part(struct stream *stream)
{
	if (!stream->plain) {
		put_line(stream, "", 0);
		return;
	}
	put(stream->sink, stream->line, stream->len);
	stream->len = 0;
}

static void take(struct stream *stream, const char *text, size_t n)
{
	const char *end;

	while ((end = memchr(text, '\n', n))) {
		put_line(stream, text, (size_t)(end - text));
		n -= (size_t)(end - text) + 1;
		text = end + 1;
	}
	append(&stream->line, &stream->len, &stream->room, text, n);
	if (stream->len >= LINE_BYTES)
		put_part(stream);
}

void stream_init(struct stream *stream, int rank, struct sink *sink)
{
	stream->fd = -1;
	stream->rank = rank;
	stream->sink = sink;
	stream->rest = -1;
	/* So that there is never a copy from nowhere */
	stream->room = 128;
	stream->line = allocate(1, stream->room);
}

void stream_uninit(struct stream *stream)
{
	if (stream->fd >= 0)
		close(stream->fd);
	free(stream->line);
}

size_t sink_pending(const struct sink *sink)
{
	return sink->len - sink->done;
}

bool sink_wants(const struct sink *sink)
{
	return sink_pending(sink) < SINK_BYTES;
}

bool stream_wants(const struct stream *stream)
{
	return stream->fd >= 0 && sink_wants(stream->sink);
}

void stream_flush(struct stream *stream)
{
	if (stream->plain && stream->len)
		put_part(stream);
}

void stream_feed(struct stream *stream, const char *text, size_t n)
{
	take(stream, text, n);
}

void stream_last(struct stream *stream)
{
	if (stream->fd >= 0 && stream->rest < 0 && ioctl(stream->fd, FIONREAD, &stream->rest) < 0)
		stream->rest = 0;
}

bool stream_read(struct stream *stream)
{
	char text[READ_BYTES];
	size_t most = sizeof(text);
	ssize_t n;

	if (stream->fd < 0)
		return false;
	if (stream->rest >= 0 && stream->rest < READ_BYTES)
		most = (size_t)stream->rest;
	n = read(stream->fd, text, most);
	if (n > 0) {
		if (stream->rest > 0)
			stream->rest -= (int)n;
		take(stream, text, (size_t)n);
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	stream_end(stream);
	return false;
}

void stream_end(struct stream *stream)
{
	if (stream->len)
		put_part(stream);
	if (stream->fd >= 0)
		close(stream->fd);
	stream->fd = -1;
}

size_t stream_pending(struct stream *stream)
{
	stream_last(stream);
	return stream->len + (stream->fd >= 0 ? (size_t)stream->rest : 0);
}

void stream_drop(struct stream *stream)
{
	stream->sink->dropped += stream_pending(stream);
	stream->len = 0;
	stream_end(stream);
}

void sink_drop(struct sink *sink)
{
	sink->dropped += sink_pending(sink);
	sink->len = 0;
	sink->done = 0;
	sink->in_line = false;
}

const char *sink_name(const struct sink *sink)
{
	return sink->fd == STDOUT_FILENO ? "output" : "error";
}

void sink_tell(const struct sink *sink)
{
	if (sink->dropped)
		say("%zu bytes for standard %s are lost: nobody took them", sink->dropped,
		    sink_name(sink));
}

bool sinks_meet(const struct sink *one, const struct sink *other)
{
	struct stat a, b;

	return !fstat(one->fd, &a) && !fstat(other->fd, &b) && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino;
}

/*
 * A pipe that poll() calls writable takes PIPE_BUF bytes at least. Whole lines, if they
 * are not longer than that: our own messages may go to the same place.
 */
int sink_write(struct sink *sink)
{
	size_t n = sink_pending(sink) < PIPE_BUF ? sink_pending(sink) : PIPE_BUF;
	const char *data = sink->data + sink->done;
	const char *end = memrchr(data, '\n', n);
	ssize_t written = write_in_time(sink->fd, data, end ? (size_t)(end - data) + 1 : n, 0);

	if (written < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : errno;
	if (written)
		sink->in_line = data[written - 1] != '\n';
	sink->done += (size_t)written;
	/* Seldom, so that moving what is left costs little */
	if (sink->done == sink->len || sink->done >= MOVE_BYTES) {
		sink->len -= sink->done;
		memmove(sink->data, sink->data + sink->done, sink->len);
		sink->done = 0;
	}
	return 0;
}
