// SPDX-License-Identifier: MIT
/*
 * Messages from memory that may go while they are sent: a mapping of a file that somebody
 * truncates. Touched by this process such a page is a SIGBUS, with locks held; touched by
 * the kernel, in a call of ours, it is an errno.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "channel/channel.h"

/* Through a pipe: where one process may not ask for the memory of another, not even its own. */
static int copy_by_pipe(char *to, const char *from, size_t length)
{
	int fds[2], err = 0;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	while (length && !err) {
		ssize_t n = write(fds[1], from, length), got = n;

		/* What is in it can be read, to memory that is ours. */
		if (n > 0)
			got = read(fds[0], to, (size_t)n);
		if (got <= 0) {
			err = n < 0 && errno == EINTR ? 0 : n < 0 ? -errno : -EIO;
			continue;
		}
		to += got;
		from += got;
		length -= (size_t)got;
	}
	close(fds[0]);
	close(fds[1]);
	return err;
}

static int copy_checked(char *to, const char *from, size_t length)
{
	while (length) {
		struct iovec there = { .iov_base = (void *)(uintptr_t)from, .iov_len = length };
		struct iovec here = { .iov_base = to, .iov_len = length };
		ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);

		if (n < 0 && (errno == EPERM || errno == ENOSYS))
			return copy_by_pipe(to, from, length);
		if (n <= 0)
			return n < 0 ? -errno : -EFAULT;
		to += n;
		from += n;
		length -= (size_t)n;
	}
	return 0;
}

int h_channel_send_checked(struct h_channel *ch, const void *data, size_t length,
			   int64_t timeout_ns)
{
	struct h_loan loan;
	int old = errno, err;

	err = h_channel_reserve(ch, length, &loan);
	if (err)
		return err;
	err = copy_checked(loan.data, data, length);
	errno = old;
	if (err == -EFAULT)
		h__refuse(ch->manager->dev, err, "not all of the %zu bytes to be sent are there",
			  length);
	if (!err)
		err = h_channel_commit(ch, &loan, length, timeout_ns);
	if (err)
		h_channel_abandon(ch, &loan);
	return err;
}
