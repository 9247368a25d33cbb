// SPDX-License-Identifier: MIT
/* HOST/NAME: digits, '/', and a name. A relative path of that form is written ./2/name. */
#include "low/device.h"

/* Of decimal digits at @p, or more than any host has. @end: out: what follows them. */
static uint64_t number_of(const char *p, const char **end)
{
	uint64_t n = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		if (n <= UINT32_MAX)
			n = 10 * n + (uint64_t)(*p - '0');
	*end = p;
	return n;
}

static bool is_printable(const char *p)
{
	for (; *p; p++)
		if (*p <= ' ' || *p > '~')
			return false;
	return true;
}

int h__name_of(const char *path, struct h_name *name)
{
	const char *p;
	uint64_t host = number_of(path, &p);
	size_t n;

	if (p == path || *p != '/' || !p[1] || strchr(p + 1, '/'))
		return 0;
	n = strlen(p + 1);
	if (n > HAMLYN_MAX_NAME)
		return -ENAMETOOLONG;
	if (!is_printable(p + 1))
		return -EINVAL;
	*name = (struct h_name) {
		/* There is no such host. */
		.host = host < HAMLYN_NONE ? (uint32_t)host : HAMLYN_NONE,
		.length = (uint32_t)n,
		.name = p + 1,
	};
	return 1;
}

uint32_t h__dev_host(const struct h_dev *dev)
{
	return dev->limits.host;
}

int h__dev_listen(struct h_dev *dev, const struct h_name *name)
{
	int fd = dev->ops->listen(dev, name->name, name->length);

	return fd < 0 ? fd : h__fd(fd);
}

int h__dev_call(struct h_dev *dev, const struct h_name *name, const void *said, uint32_t length)
{
	int fd = dev->ops->call(dev, name, said, length);

	return fd < 0 ? fd : h__fd(fd);
}
