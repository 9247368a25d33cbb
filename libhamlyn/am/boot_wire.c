// SPDX-License-Identifier: MIT
/*
 * Lines to and from a launcher. What comes is not trusted: a line has a largest length and
 * is printable text, and nothing waits for ever.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "boot_text.h"
#include "boot_wire.h"

/*
 * Names of hosts are looked up by shared libraries, which a static program cannot load:
 * it does without, rather than be linked with a warning.
 */
#pragma weak getaddrinfo
#pragma weak freeaddrinfo
#pragma weak gai_strerror

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t am_wire_deadline(int wait_ms)
{
	return now_ms() + wait_ms;
}

static int lost(struct am_boot *boot, const struct am_wire *wire, int err)
{
	switch (err) {
	case 0:
	case EPIPE:
	case ECONNRESET:
		return am_boot_fail(boot, -ECONNRESET, "the launcher is gone (%s)", wire->name);
	case EBADF:
	case ENOTSOCK:
		return am_boot_fail(boot, -ENOTSOCK,
				    "%s is no open socket; has a program in between closed it?",
				    wire->name);
	default:
		return am_boot_fail(boot, -err, "the launcher cannot be reached (%s): %s",
				    wire->name, strerror(err));
	}
}

static int wait_for(struct am_boot *boot, const struct am_wire *wire, short events,
		    int64_t deadline)
{
	struct pollfd poll_fd = { .fd = wire->fd, .events = events };
	int64_t left;
	int ret;

	for (;;) {
		left = deadline - now_ms();
		if (left <= 0)
			return am_boot_fail(boot, -ETIMEDOUT,
					    "the launcher did not answer for %d s (%s)",
					    AM_WIRE_WAIT_MS / 1000, wire->name);
		ret = poll(&poll_fd, 1, (int)left);
		if (ret > 0)
			return 0;
		if (ret < 0 && errno != EINTR)
			return lost(boot, wire, errno);
	}
}

int am_wire_send(struct am_boot *boot, struct am_wire *wire, const char *text)
{
	int64_t deadline = am_wire_deadline(AM_WIRE_WAIT_MS);
	size_t left = strlen(text);
	ssize_t n;
	int ret;

	while (left) {
		n = send(wire->fd, text, left, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			text += n;
			left -= (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return lost(boot, wire, errno);
		ret = wait_for(boot, wire, POLLOUT, deadline);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Return: 1 with a line, 0 if none is complete, -EPROTO */
static int take_line(struct am_boot *boot, struct am_wire *wire, const char **line)
{
	char *end = memchr(wire->in, '\n', wire->len);

	if (!end && wire->len == sizeof(wire->in))
		return am_boot_fail(boot, -EPROTO,
				    "the launcher sent a line of more than %zu bytes (%s)",
				    sizeof(wire->in) - 1, wire->name);
	if (!end)
		return 0;
	if (!pmi_line_is_text(wire->in, (size_t)(end - wire->in)))
		return am_boot_fail(boot, -EPROTO, "the launcher sent what is no text (%s)",
				    wire->name);
	*end = 0;
	wire->used = (size_t)(end - wire->in) + 1;
	*line = wire->in;
	return 1;
}

int am_wire_line(struct am_boot *boot, struct am_wire *wire, int64_t deadline,
		 const char **line)
{
	ssize_t n;
	int ret;

	wire->len -= wire->used;
	memmove(wire->in, wire->in + wire->used, wire->len);
	wire->used = 0;
	for (;;) {
		ret = take_line(boot, wire, line);
		if (ret)
			return ret;
		n = recv(wire->fd, wire->in + wire->len, sizeof(wire->in) - wire->len,
			 MSG_DONTWAIT);
		if (n > 0) {
			wire->len += (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (!n || errno != EAGAIN)
			return lost(boot, wire, n ? errno : 0);
		if (!deadline)
			return 0;
		ret = wait_for(boot, wire, POLLIN, deadline);
		if (ret < 0)
			return ret;
	}
}

/* ---- TCP ---------------------------------------------------------------- */

/* "host:port" or "[host]:port" into two texts */
static int split(struct am_boot *boot, const char *where, char *host, size_t size,
		 const char **port)
{
	const char *colon = strrchr(where, ':');
	size_t length = colon ? (size_t)(colon - where) : 0;
	long number;

	if (!length || pmi_number(colon + 1, 1, 65535, &number) < 0)
		return am_boot_fail(boot, -EINVAL, "PMI_PORT is \"%.80s\", not HOST:PORT", where);
	if (length > 2 && *where == '[' && where[length - 1] == ']') {
		where++;
		length -= 2;
	}
	if (length >= size)
		return am_boot_fail(boot, -EINVAL, "PMI_PORT has a host of more than %zu bytes",
				    size - 1);
	memcpy(host, where, length);
	host[length] = 0;
	*port = colon + 1;
	return 0;
}

/* Return: 0 or a positive errno */
static int try_address(struct am_boot *boot, struct am_wire *wire, const struct addrinfo *to)
{
	socklen_t size = sizeof(int);
	int err = 0;

	wire->fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (wire->fd < 0)
		return errno;
	if (connect(wire->fd, to->ai_addr, to->ai_addrlen) < 0) {
		err = errno;
		if (err == EINPROGRESS || err == EINTR)
			err = -wait_for(boot, wire, POLLOUT, am_wire_deadline(AM_WIRE_WAIT_MS));
		if (!err)
			getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &err, &size);
	}
	if (err) {
		close(wire->fd);
		wire->fd = -1;
	}
	return err;
}

static int try_all(struct am_boot *boot, struct am_wire *wire, const struct addrinfo *list)
{
	int err = EADDRNOTAVAIL;

	for (; list; list = list->ai_next) {
		err = try_address(boot, wire, list);
		if (!err)
			return 0;
	}
	return lost(boot, wire, err);
}

int am_wire_connect(struct am_boot *boot, struct am_wire *wire, const char *where)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	const char *port = NULL;
	char host[256];
	int ret;

	wire->fd = -1;
	snprintf(wire->name, sizeof(wire->name), "PMI_PORT=%s", where);
	ret = split(boot, where, host, sizeof(host), &port);
	if (ret < 0)
		return ret;
	if (!getaddrinfo || !freeaddrinfo || !gai_strerror)
		return am_boot_fail(boot, -ENOTSUP,
				    "a static program cannot look up the host of %s", wire->name);
	ret = getaddrinfo(host, port, &hints, &list);
	if (ret)
		return am_boot_fail(boot, -EHOSTUNREACH, "the host of %s cannot be found: %s",
				    wire->name, gai_strerror(ret));
	ret = try_all(boot, wire, list);
	freeaddrinfo(list);
	return ret;
}
