// SPDX-License-Identifier: MIT
/*
 * The number that a user's segments are named by. In a user namespace of one's own, such as
 * unshare -r makes, the user has another number, and would make another segment of the same
 * name, silently: so it is the number outside, in the parent of the namespace, that counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "embedded/shm.h"

#define UID_MAP		"/proc/self/uid_map"
#define MOST_BYTES	16384	/* 340 ranges, as many as there can be, of 3 numbers */

static int read_map(char *text)
{
	int fd = h__fd(open(UID_MAP, O_RDONLY | O_CLOEXEC));
	size_t length = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	do {
		n = read(fd, text + length, MOST_BYTES - 1 - length);
		if (n > 0)
			length += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		n = -errno;
	close(fd);
	text[length] = 0;
	return (int)n;
}

/* Return: whether the map has a number for @inside. */
static bool translate(const char *text, unsigned int inside, unsigned int *outside)
{
	unsigned int first, there, count;

	while (sscanf(text, "%u %u %u", &first, &there, &count) == 3) {
		if (inside >= first && inside - first < count) {
			*outside = there + (inside - first);
			return true;
		}
		text = strchr(text, '\n');
		if (!text)
			break;
		text++;
	}
	return false;
}

static int look_up(char *text, unsigned int *uid)
{
	int err = read_map(text);

	/* Without /proc nobody can tell. */
	if (err == -ENOENT || err == -EACCES || err == -EPERM)
		return 0;
	if (err == -EMFILE)
		return h__early(err, "this process has all descriptors of its RLIMIT_NOFILE");
	if (err)
		return h__early(err, UID_MAP " cannot be read");
	if (!translate(text, *uid, uid))
		return h__early(-EACCES, "user %u has no number outside of this user namespace: "
				UID_MAP " must have one", *uid);
	return 0;
}

int h__shm_user(unsigned int *uid)
{
	char *text = malloc(MOST_BYTES);
	int err;

	if (!text)
		return -ENOMEM;
	*uid = (unsigned int)geteuid();
	err = look_up(text, uid);
	free(text);
	return err;
}
