/* SPDX-License-Identifier: GPL-2.0-only */
/* What hamlyn-run and its agent on another host say to each other: frames over two pipes. */
#ifndef RUN_LINK_H
#define RUN_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_BYTES	65536		/* data of a frame, but of FRAME_START */
#define START_BYTES	(4 << 20)
#define WINDOW_BYTES	(256 << 10)	/* lines of a host that wait for our standard output */

/* What the agent says first, in a line with the version: both must be of one */
#define GREETING	"hamlyn-run-agent "

enum frame_type {
	/* To the agent */
	FRAME_BRIDGE,	/* words of a hamlyn-bridge, each ended by 0; before them the fabric's id */
	FRAME_START,	/* struct start, as start_pack() has it */
	FRAME_SIGNAL,	/* rank: the signal for all processes */
	FRAME_END,	/* end all, also what they have left behind */
	FRAME_KILL,	/* the same, at once */
	FRAME_TAKEN,	/* rank: 0 output, 1 error; a number: bytes that may be sent again */
	FRAME_STDIN,	/* for the process that reads it; no bytes: its end */
	/* From the agent */
	FRAME_BRIDGED,	/* all its peers are up */
	FRAME_STARTED,	/* rank; number: its pid */
	FRAME_UNABLE,	/* rank; two numbers: errno, and whether there is a process */
	FRAME_DEAF,	/* rank, which does not read its PMI descriptor */
	FRAME_OUT,	/* rank; what it wrote */
	FRAME_ERR,
	FRAME_EXIT,	/* rank; two numbers: its pid, its status as waitpid() tells it */
	FRAME_FED,	/* number: bytes of FRAME_STDIN that are gone, or -1: no more is read */
	FRAME_REFUSE,	/* why nothing can be started: text */
	FRAME_DONE,	/* all have ended, all that they wrote was sent; rank: FRAME_END has come */
	/* Both */
	FRAME_PMI,	/* rank; what goes over its PMI descriptor */
	FRAME_PING,	/* answered by FRAME_PONG */
	FRAME_PONG,
	FRAME_TYPES,
};

/**
 * struct frame - one that has come
 * @type: enum frame_type
 * @rank: of a process, or as the type says
 * @n: bytes of @data
 * @data: stays until the next link_read()
 */
struct frame {
	uint32_t type;
	uint32_t rank;
	uint32_t n;
	const char *data;
};

/**
 * struct link - two pipes
 * @in_fd: where frames come from, or -1: ended
 * @out_fd: where they go
 * @in: bytes that have come
 * @in_len: their number
 * @in_done: as many of them were taken
 * @in_room: bytes that @in has room for
 * @out: bytes to be sent
 * @out_len: their number
 * @out_done: as many of them were
 * @out_room: bytes that @out has room for
 */
struct link {
	int in_fd;
	int out_fd;
	char *in;
	size_t in_len;
	size_t in_done;
	size_t in_room;
	char *out;
	size_t out_len;
	size_t out_done;
	size_t out_room;
};

/* Both become the link's, and non-blocking */
void link_init(struct link *link, int in_fd, int out_fd);
void link_uninit(struct link *link);

void link_put(struct link *link, enum frame_type type, uint32_t rank, const void *data, size_t n);
void link_put_number(struct link *link, enum frame_type type, uint32_t rank, int64_t number);

/* Bytes, no frame */
void link_put_raw(struct link *link, const void *data, size_t n);
size_t link_unsent(const struct link *link);

/* Sends what does not block. Return: 0 or -errno */
int link_flush(struct link *link);

/* Reads once. Return: 1 if something came, 0 if not, -EPIPE at the end, -errno */
int link_read(struct link *link);

/* Return: 1 and the frame, 0 if none is complete, -EPROTO if it is none */
int link_next(struct link *link, struct frame *frame);

/*
 * A line that comes before the frames, of at most @size - 1 bytes.
 * Return: 1 and the line, 0 if it is not complete, -EPROTO if it is longer
 */
int link_line(struct link *link, char *line, size_t size);

/* The number of a frame, at @place; 0 if it has none */
int64_t frame_number(const struct frame *frame, size_t place);

#endif /* RUN_LINK_H */
