// SPDX-License-Identifier: MIT
/*
 * System calls whose memory is in the segment.
 *
 * The kernel's own accesses do not wait for handlers: where the application view is closed
 * a call fails with EFAULT. Calls of a program that is linked with wrap.opt come here, and
 * those with memory in the segment go by a buffer outside of it. The thread copies it
 * itself, and is checked like any code.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tempest.h"

/* On the stack; what is longer is mapped. malloc() may be what a signal has interrupted. */
#define SMALL_BYTES	2048

/* More is never read or written by one call. */
#define MOST_BYTES	((size_t)0x7ffff000)

/* A call as the linker renames it, and what it is called instead. */
#define REAL(type, name, ...)	\
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

/* libc's: ends the program that would overrun a buffer. */
__attribute__((noreturn)) void __chk_fail(void);

static bool touches(const void *memory, size_t bytes)
{
	uintptr_t base = (uintptr_t)TPPI_SEG_BASE, first = (uintptr_t)memory;

	return bytes && first < base + TPPI_seg_size && (first >= base || bytes > base - first);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Memory outside of the segment, until the end of the block, or the thread's cancellation. */
struct buffer {
	char *at;
	size_t bytes;
	char small[SMALL_BYTES];
};

/* errno is that of the call. */
static void put_back(struct buffer *buffer)
{
	int saved_errno = errno;

	if (buffer->at && buffer->at != buffer->small)
		munmap(buffer->at, buffer->bytes);
	errno = saved_errno;
}

#define BUFFER(name)	\
	struct buffer name __attribute__((cleanup(put_back))); \
	name.at = NULL

/* False if there is no memory, errno says so. */
static bool get(struct buffer *buffer, size_t bytes)
{
	void *at = buffer->small;

	if (bytes > SMALL_BYTES)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED) {
		/* EAGAIN would tell of a file */
		errno = ENOMEM;
		return false;
	}
	buffer->at = at;
	buffer->bytes = bytes;
	return true;
}

/* What a call has read into the buffer goes where it should. */
static ssize_t hand_out(void *to, const struct buffer *buffer, ssize_t bytes)
{
	if (bytes > 0)
		memcpy(to, buffer->at, bytes);
	return bytes;
}

/* ---- files ---- */

REAL(ssize_t, read, int fd, void *to, size_t bytes)
{
	BUFFER(buffer);

	if (!touches(to, bytes))
		return __real_read(fd, to, bytes);
	bytes = least(bytes, MOST_BYTES);
	if (!get(&buffer, bytes))
		return -1;
	return hand_out(to, &buffer, __real_read(fd, buffer.at, bytes));
}

REAL(ssize_t, pread, int fd, void *to, size_t bytes, off_t offset)
{
	BUFFER(buffer);

	if (!touches(to, bytes))
		return __real_pread(fd, to, bytes, offset);
	bytes = least(bytes, MOST_BYTES);
	if (!get(&buffer, bytes))
		return -1;
	return hand_out(to, &buffer, __real_pread(fd, buffer.at, bytes, offset));
}

REAL(ssize_t, pread64, int fd, void *to, size_t bytes, off_t offset)
{
	return __wrap_pread(fd, to, bytes, offset);
}

/* All at once: it is one record, or one piece at the end of a file. */
REAL(ssize_t, write, int fd, const void *from, size_t bytes)
{
	BUFFER(buffer);

	if (!touches(from, bytes))
		return __real_write(fd, from, bytes);
	bytes = least(bytes, MOST_BYTES);
	if (!get(&buffer, bytes))
		return -1;
	memcpy(buffer.at, from, bytes);
	return __real_write(fd, buffer.at, bytes);
}

REAL(ssize_t, pwrite, int fd, const void *from, size_t bytes, off_t offset)
{
	BUFFER(buffer);

	if (!touches(from, bytes))
		return __real_pwrite(fd, from, bytes, offset);
	bytes = least(bytes, MOST_BYTES);
	if (!get(&buffer, bytes))
		return -1;
	memcpy(buffer.at, from, bytes);
	return __real_pwrite(fd, buffer.at, bytes, offset);
}

REAL(ssize_t, pwrite64, int fd, const void *from, size_t bytes, off_t offset)
{
	return __wrap_pwrite(fd, from, bytes, offset);
}

/* ---- several pieces ---- */

/* All of them in one buffer, if any is in the segment. */
struct pieces {
	const struct iovec *iov;
	size_t number;
	size_t bytes;
	bool senseless;
};

/* Are the pieces to go by a buffer? Those that make no sense are for the kernel to refuse. */
static bool is_bounced(struct pieces *p, const struct iovec *iov, size_t number)
{
	bool any = touches(iov, number * sizeof(*iov));

	*p = (struct pieces){ .iov = iov, .number = number, .senseless = true };
	if (number > IOV_MAX)
		return false;
	for (size_t i = 0; i < number; i++) {
		if (iov[i].iov_len > SSIZE_MAX - p->bytes)
			return false;
		p->bytes += iov[i].iov_len;
		any |= touches(iov[i].iov_base, iov[i].iov_len);
	}
	p->senseless = false;
	return any;
}

/* No more than was counted, though another thread may have changed the list since. */
static bool gather(const struct pieces *p, struct buffer *buffer)
{
	size_t left = p->bytes;
	char *to;

	if (!get(buffer, p->bytes))
		return false;
	to = buffer->at;
	for (size_t i = 0; i < p->number && left; i++) {
		const struct iovec piece = p->iov[i];
		size_t part = least(left, piece.iov_len);

		memcpy(to, piece.iov_base, part);
		to += part;
		left -= part;
	}
	return true;
}

/* Of a message that was longer than the pieces there are only as many bytes. */
static ssize_t scatter(const struct pieces *p, const struct buffer *buffer, ssize_t result)
{
	size_t left = result > 0 ? least(result, p->bytes) : 0;
	const char *from = buffer->at;

	for (size_t i = 0; i < p->number && left; i++) {
		const struct iovec piece = p->iov[i];
		size_t part = least(left, piece.iov_len);

		memcpy(piece.iov_base, from, part);
		from += part;
		left -= part;
	}
	return result;
}

REAL(ssize_t, readv, int fd, const struct iovec *iov, int number)
{
	struct pieces p;
	BUFFER(buffer);

	if (number <= 0 || !is_bounced(&p, iov, number))
		return __real_readv(fd, iov, number);
	if (!get(&buffer, p.bytes))
		return -1;
	return scatter(&p, &buffer, __real_read(fd, buffer.at, p.bytes));
}

REAL(ssize_t, writev, int fd, const struct iovec *iov, int number)
{
	struct pieces p;
	BUFFER(buffer);

	if (number <= 0 || !is_bounced(&p, iov, number))
		return __real_writev(fd, iov, number);
	return gather(&p, &buffer) ? __real_write(fd, buffer.at, p.bytes) : -1;
}

/* ---- sockets ---- */

REAL(ssize_t, recvfrom, int fd, void *to, size_t bytes, int flags, struct sockaddr *address,
	socklen_t *length)
{
	ssize_t result;
	BUFFER(buffer);

	if (!touches(to, bytes))
		return __real_recvfrom(fd, to, bytes, flags, address, length);
	if (!get(&buffer, bytes))
		return -1;
	result = __real_recvfrom(fd, buffer.at, bytes, flags, address, length);
	/* With MSG_TRUNC it is how long the message was */
	hand_out(to, &buffer, result > 0 ? (ssize_t)least(result, bytes) : result);
	return result;
}

REAL(ssize_t, recv, int fd, void *to, size_t bytes, int flags)
{
	if (!touches(to, bytes))
		return __real_recv(fd, to, bytes, flags);
	return __wrap_recvfrom(fd, to, bytes, flags, NULL, NULL);
}

/* The kernel would read the buffer after its end, and tell of what the program does not know. */
static bool is_refused(int flags)
{
	if (flags & MSG_ZEROCOPY)
		errno = EOPNOTSUPP;
	return flags & MSG_ZEROCOPY;
}

REAL(ssize_t, sendto, int fd, const void *from, size_t bytes, int flags,
	const struct sockaddr *address, socklen_t length)
{
	BUFFER(buffer);

	if (!touches(from, bytes))
		return __real_sendto(fd, from, bytes, flags, address, length);
	if (is_refused(flags) || !get(&buffer, bytes))
		return -1;
	memcpy(buffer.at, from, bytes);
	return __real_sendto(fd, buffer.at, bytes, flags, address, length);
}

REAL(ssize_t, send, int fd, const void *from, size_t bytes, int flags)
{
	if (!touches(from, bytes))
		return __real_send(fd, from, bytes, flags);
	return __wrap_sendto(fd, from, bytes, flags, NULL, 0);
}

/* The structure itself may be in the segment, too. */
REAL(ssize_t, recvmsg, int fd, struct msghdr *message, int flags)
{
	struct msghdr bounced = *message;
	struct iovec iov;
	struct pieces p;
	ssize_t result;
	BUFFER(buffer);

	if (!is_bounced(&p, bounced.msg_iov, bounced.msg_iovlen) &&
	    (p.senseless || !touches(message, sizeof(*message))))
		return __real_recvmsg(fd, p.senseless ? &bounced : (void *)message, flags);
	if (!get(&buffer, p.bytes))
		return -1;
	iov = (struct iovec){ buffer.at, p.bytes };
	bounced.msg_iov = &iov;
	bounced.msg_iovlen = 1;
	result = __real_recvmsg(fd, &bounced, flags);
	message->msg_namelen = bounced.msg_namelen;
	message->msg_controllen = bounced.msg_controllen;
	message->msg_flags = bounced.msg_flags;
	return scatter(&p, &buffer, result);
}

REAL(ssize_t, sendmsg, int fd, const struct msghdr *message, int flags)
{
	struct msghdr bounced = *message;
	struct iovec iov;
	struct pieces p;
	BUFFER(buffer);

	if (!is_bounced(&p, bounced.msg_iov, bounced.msg_iovlen) &&
	    (p.senseless || !touches(message, sizeof(*message))))
		return __real_sendmsg(fd, p.senseless ? &bounced : (void *)message, flags);
	if (is_refused(flags) || !gather(&p, &buffer))
		return -1;
	iov = (struct iovec){ buffer.at, p.bytes };
	bounced.msg_iov = &iov;
	bounced.msg_iovlen = 1;
	return __real_sendmsg(fd, &bounced, flags);
}

/*
 * ---- streams: libc hands long pieces to the kernel as they are ----
 *
 * The copies are made while the stream is not locked: a thread that is suspended in one
 * would keep handlers from printing.
 */

REAL(size_t, fread, void *to, size_t size, size_t number, FILE *file)
{
	size_t bytes, result;
	BUFFER(buffer);

	if (__builtin_mul_overflow(size, number, &bytes) || !touches(to, bytes))
		return __real_fread(to, size, number, file);
	if (!get(&buffer, bytes))
		return 0;
	result = __real_fread(buffer.at, 1, bytes, file);
	hand_out(to, &buffer, result);
	return result / size;
}

REAL(size_t, fwrite, const void *from, size_t size, size_t number, FILE *file)
{
	size_t bytes;
	BUFFER(buffer);

	if (__builtin_mul_overflow(size, number, &bytes) || !touches(from, bytes))
		return __real_fwrite(from, size, number, file);
	if (!get(&buffer, bytes))
		return 0;
	memcpy(buffer.at, from, bytes);
	return __real_fwrite(buffer.at, size, number, file);
}

/* ---- the same of programs that are compiled with _FORTIFY_SOURCE ---- */

REAL(ssize_t, __read_chk, int fd, void *to, size_t bytes, size_t room)
{
	if (bytes > room)
		__chk_fail();
	return __wrap_read(fd, to, bytes);
}

REAL(ssize_t, __pread_chk, int fd, void *to, size_t bytes, off_t offset, size_t room)
{
	if (bytes > room)
		__chk_fail();
	return __wrap_pread(fd, to, bytes, offset);
}

REAL(ssize_t, __pread64_chk, int fd, void *to, size_t bytes, off_t offset, size_t room)
{
	return __wrap___pread_chk(fd, to, bytes, offset, room);
}

REAL(ssize_t, __recv_chk, int fd, void *to, size_t bytes, size_t room, int flags)
{
	if (bytes > room)
		__chk_fail();
	return __wrap_recv(fd, to, bytes, flags);
}

REAL(ssize_t, __recvfrom_chk, int fd, void *to, size_t bytes, size_t room, int flags,
	struct sockaddr *address, socklen_t *length)
{
	if (bytes > room)
		__chk_fail();
	return __wrap_recvfrom(fd, to, bytes, flags, address, length);
}

REAL(size_t, __fread_chk, void *to, size_t room, size_t size, size_t number, FILE *file)
{
	size_t bytes;

	if (__builtin_mul_overflow(size, number, &bytes) || bytes > room)
		__chk_fail();
	return __wrap_fread(to, size, number, file);
}
