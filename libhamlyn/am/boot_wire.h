/* SPDX-License-Identifier: MIT */
/* Lines to and from a launcher, over a socket. */
#ifndef HAMLYN_AM_BOOT_WIRE_H
#define HAMLYN_AM_BOOT_WIRE_H

#include <stdint.h>

#include "boot.h"
#include "pmi_line.h"

#define AM_WIRE_WAIT_MS	60000	/* for one answer of the launcher */
#define AM_WIRE_LEAVE_MS	5000	/* for the last one, once a process is lost */

/**
 * struct am_wire - a connection to the launcher
 * @fd: the socket, blocking or not
 * @name: where it is from, "PMI_FD=6", for error messages
 * @used: bytes of @in that were the last line given out
 * @len: bytes in @in
 * @in: what has come
 */
struct am_wire {
	int fd;
	char name[80];
	size_t used;
	size_t len;
	char in[PMI_LINE_BYTES];
};

/* The time in @wait_ms, for am_wire_line() */
int64_t am_wire_deadline(int wait_ms);

/* @where is "host:port". Return: 0 or a negative errno with @boot->error. */
int am_wire_connect(struct am_boot *boot, struct am_wire *wire, const char *where);

/* Return: 0 or a negative errno with @boot->error; -ECONNRESET: the launcher is gone. */
int am_wire_send(struct am_boot *boot, struct am_wire *wire, const char *text);

/*
 * The next line, without its end; it stays until the next call. Waits until @deadline, or
 * not at all if that is 0: what has come of a line then is kept for the next call.
 * Return: 1, 0 if @deadline is 0 and no line is there, or a negative errno with @boot->error.
 */
int am_wire_line(struct am_boot *boot, struct am_wire *wire, int64_t deadline,
		 const char **line);

#endif /* HAMLYN_AM_BOOT_WIRE_H */
