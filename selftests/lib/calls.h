/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of hosts, and calls to them, without the library. */
#ifndef CALLS_H
#define CALLS_H

#include "hosts.h"

#include <poll.h>

static inline void path_of(const struct host *host, char path[32])
{
	snprintf(path, 32, "/dev/hamlyn%u", host->nic);
}

static inline int raw_open(const struct host *host)
{
	char path[32];

	path_of(host, path);
	return open(path, O_RDWR | O_CLOEXEC);
}

static inline int raw_listen(int dev, const char *name)
{
	struct hamlyn_listen arg = { .size = sizeof(arg), .name_length = (uint32_t)strlen(name) };

	memcpy(arg.name, name, arg.name_length);
	return ioctl(dev, HAMLYN_IOC_LISTEN, &arg) ? -errno : arg.fd;
}

static inline int raw_call(int dev, uint32_t host, const char *name)
{
	struct hamlyn_call arg = {
		.size = sizeof(arg), .host = host, .name_length = (uint32_t)strlen(name),
		.said = (uintptr_t)"said", .length = 4,
	};

	memcpy(arg.name, name, arg.name_length);
	return ioctl(dev, HAMLYN_IOC_CALL, &arg) ? -errno : arg.fd;
}

struct raw {
	struct hamlyn_caller from;
	unsigned char said[HAMLYN_MAX_CALL];
};

/* Whoever reads one waits for it. */
static inline ssize_t raw_read(int fd, struct raw *raw)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, (int)(ht_patience_ns() / HT_MS)) != 1)
		return -ETIMEDOUT;
	return read(fd, raw, sizeof(*raw));
}

static inline int raw_answer(int fd, uint64_t number)
{
	struct {
		struct hamlyn_answer a;
		char said[8];	/* no padding */
	} out = { .a = { .number = number, .length = sizeof(out.said) }, .said = "heard" };

	return write(fd, &out, sizeof(out)) == sizeof(out) ? 0 : -errno;
}

#endif /* CALLS_H */
