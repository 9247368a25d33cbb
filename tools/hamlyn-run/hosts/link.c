// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames over two pipes. Both ends serve processes meanwhile, so that neither ever waits
 * for the other one: what cannot be sent is kept, and windows bound how much that is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hosts/link.h"
#include "message.h"

#define READ_BYTES	65536

/* In the order of the host: both ends are one program of one version */
struct header {
	uint32_t type;
	uint32_t rank;
	uint32_t n;
};

void link_init(struct link *link, int in_fd, int out_fd)
{
	memset(link, 0, sizeof(*link));
	link->in_fd = in_fd;
	link->out_fd = out_fd;
	fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
	fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
}

void link_uninit(struct link *link)
{
	if (link->in_fd >= 0)
		close(link->in_fd);
	if (link->out_fd >= 0)
		close(link->out_fd);
	free(link->in);
	free(link->out);
	memset(link, 0, sizeof(*link));
	link->in_fd = -1;
	link->out_fd = -1;
}

static void reserve(char **data, size_t len, size_t *room, size_t n)
{
	if (*room - len >= n)
		return;
	*room = (len + n) * 2;
	*data = enlarge(*data, *room);
}

void link_put_raw(struct link *link, const void *data, size_t n)
{
	if (!n || link->out_fd < 0)
		return;
	reserve(&link->out, link->out_len, &link->out_room, n);
	memcpy(link->out + link->out_len, data, n);
	link->out_len += n;
}

void link_put(struct link *link, enum frame_type type, uint32_t rank, const void *data, size_t n)
{
	const struct header header = { .type = type, .rank = rank, .n = (uint32_t)n };

	link_put_raw(link, &header, sizeof(header));
	link_put_raw(link, data, n);
}

void link_put_number(struct link *link, enum frame_type type, uint32_t rank, int64_t number)
{
	link_put(link, type, rank, &number, sizeof(number));
}

size_t link_unsent(const struct link *link)
{
	return link->out_fd < 0 ? 0 : link->out_len - link->out_done;
}

int link_flush(struct link *link)
{
	ssize_t sent;

	while (link_unsent(link)) {
		sent = write(link->out_fd, link->out + link->out_done, link_unsent(link));
		if (sent < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		link->out_done += (size_t)sent;
	}
	link->out_done = 0;
	link->out_len = 0;
	return 0;
}

int link_read(struct link *link)
{
	ssize_t n;

	if (link->in_fd < 0)
		return -EPIPE;
	link->in_len -= link->in_done;
	if (link->in_len && link->in_done)
		memmove(link->in, link->in + link->in_done, link->in_len);
	link->in_done = 0;
	reserve(&link->in, link->in_len, &link->in_room, READ_BYTES);
	n = read(link->in_fd, link->in + link->in_len, READ_BYTES);
	if (n > 0) {
		link->in_len += (size_t)n;
		return 1;
	}
	if (!n)
		return -EPIPE;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static bool is_frame(const struct header *header)
{
	return header->type < FRAME_TYPES &&
		header->n <= (header->type == FRAME_START ? START_BYTES : FRAME_BYTES);
}

int link_next(struct link *link, struct frame *frame)
{
	size_t left = link->in_len - link->in_done;
	struct header header;

	if (left < sizeof(header))
		return 0;
	memcpy(&header, link->in + link->in_done, sizeof(header));
	if (!is_frame(&header))
		return -EPROTO;
	if (left - sizeof(header) < header.n)
		return 0;
	frame->type = header.type;
	frame->rank = header.rank;
	frame->n = header.n;
	frame->data = link->in + link->in_done + sizeof(header);
	link->in_done += sizeof(header) + header.n;
	return 1;
}

int link_line(struct link *link, char *line, size_t size)
{
	const char *from = link->in + link->in_done;
	size_t left = link->in_len - link->in_done, n;
	const char *end;

	if (!left)
		return 0;
	end = memchr(from, '\n', left);
	if (!end && left < size)
		return 0;
	n = end ? (size_t)(end - from) : left;
	if (n < size)
		link->in_done += n + 1;
	snprintf(line, size, "%.*s", (int)(n < size ? n : size - 1), from);
	return n < size ? 1 : -EPROTO;
}

int64_t frame_number(const struct frame *frame, size_t place)
{
	int64_t number = 0;

	if (frame->n / sizeof(number) > place)
		memcpy(&number, frame->data + place * sizeof(number), sizeof(number));
	return number;
}
