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
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tempest.h"

/* How much of a long write is copied at once. */
#define PART_BYTES	((size_t)1 << 20)

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

/* errno is that of the call, not of free(). */
static void put_back(void *buffer)
{
	int saved_errno = errno;

	free(buffer);
	errno = saved_errno;
}

/* What a call has read into the buffer goes where it should, and the buffer is free. */
static ssize_t hand_out(void *to, void *buffer, ssize_t bytes)
{
	if (bytes > 0)
		memcpy(to, buffer, bytes);
	put_back(buffer);
	return bytes;
}

/* ---- files ---- */

REAL(ssize_t, read, int fd, void *to, size_t bytes)
{
	void *buffer;

	if (!touches(to, bytes))
		return __real_read(fd, to, bytes);
	buffer = malloc(bytes);
	return buffer ? hand_out(to, buffer, __real_read(fd, buffer, bytes)) : -1;
}

REAL(ssize_t, pread, int fd, void *to, size_t bytes, off_t offset)
{
	void *buffer;

	if (!touches(to, bytes))
		return __real_pread(fd, to, bytes, offset);
	buffer = malloc(bytes);
	return buffer ? hand_out(to, buffer, __real_pread(fd, buffer, bytes, offset)) : -1;
}

REAL(ssize_t, pread64, int fd, void *to, size_t bytes, off_t offset)
{
	return __wrap_pread(fd, to, bytes, offset);
}

ssize_t __real_write(int fd, const void *from, size_t bytes);
ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t offset);

/*
 * In parts, as the kernel does it, too: a part that is not written whole is the last one,
 * and an error after the first is for the next call.
 */
static ssize_t write_parts(int fd, const char *from, size_t bytes, bool at, off_t offset)
{
	size_t room = least(bytes, PART_BYTES), done = 0, part;
	char *buffer = malloc(room);
	ssize_t result;

	if (!buffer)
		return -1;
	do {
		part = least(bytes - done, room);
		memcpy(buffer, from + done, part);
		result = at ? __real_pwrite(fd, buffer, part, offset + done) :
			      __real_write(fd, buffer, part);
		if (result > 0)
			done += result;
	} while (result == (ssize_t)part && done < bytes);
	put_back(buffer);
	return done ? (ssize_t)done : result;
}

REAL(ssize_t, write, int fd, const void *from, size_t bytes)
{
	if (!touches(from, bytes))
		return __real_write(fd, from, bytes);
	return write_parts(fd, from, bytes, false, 0);
}

REAL(ssize_t, pwrite, int fd, const void *from, size_t bytes, off_t offset)
{
	if (!touches(from, bytes))
		return __real_pwrite(fd, from, bytes, offset);
	return write_parts(fd, from, bytes, true, offset);
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
	char *buffer;
};

/* Are the pieces to go by a buffer? Those that make no sense are for the kernel to refuse. */
static bool is_bounced(struct pieces *p, const struct iovec *iov, size_t number)
{
	bool any = false;

	*p = (struct pieces){ .iov = iov, .number = number };
	for (size_t i = 0; i < number; i++) {
		if (iov[i].iov_len > SSIZE_MAX - p->bytes)
			return false;
		p->bytes += iov[i].iov_len;
		any |= touches(iov[i].iov_base, iov[i].iov_len);
	}
	return any;
}

static bool get_buffer(struct pieces *p)
{
	p->buffer = malloc(p->bytes);
	return p->buffer;
}

static void gather(const struct pieces *p)
{
	char *to = p->buffer;

	for (size_t i = 0; i < p->number; i++) {
		memcpy(to, p->iov[i].iov_base, p->iov[i].iov_len);
		to += p->iov[i].iov_len;
	}
}

/* Of a message that was longer than the pieces there are only as many bytes. */
static ssize_t scatter(const struct pieces *p, ssize_t result)
{
	size_t left = result > 0 ? least(result, p->bytes) : 0;
	const char *from = p->buffer;

	for (size_t i = 0; left; i++) {
		size_t part = least(left, p->iov[i].iov_len);

		memcpy(p->iov[i].iov_base, from, part);
		from += part;
		left -= part;
	}
	put_back(p->buffer);
	return result;
}

REAL(ssize_t, readv, int fd, const struct iovec *iov, int number)
{
	struct pieces p;

	if (number <= 0 || !is_bounced(&p, iov, number))
		return __real_readv(fd, iov, number);
	return get_buffer(&p) ? scatter(&p, __real_read(fd, p.buffer, p.bytes)) : -1;
}

REAL(ssize_t, writev, int fd, const struct iovec *iov, int number)
{
	struct pieces p;
	ssize_t result;

	if (number <= 0 || !is_bounced(&p, iov, number))
		return __real_writev(fd, iov, number);
	if (!get_buffer(&p))
		return -1;
	gather(&p);
	result = __real_write(fd, p.buffer, p.bytes);
	put_back(p.buffer);
	return result;
}

/* ---- sockets ---- */

REAL(ssize_t, recvfrom, int fd, void *to, size_t bytes, int flags, struct sockaddr *address,
	socklen_t *length)
{
	ssize_t result;
	void *buffer;

	if (!touches(to, bytes))
		return __real_recvfrom(fd, to, bytes, flags, address, length);
	buffer = malloc(bytes);
	if (!buffer)
		return -1;
	result = __real_recvfrom(fd, buffer, bytes, flags, address, length);
	/* With MSG_TRUNC it is how long the message was */
	hand_out(to, buffer, result > 0 ? (ssize_t)least(result, bytes) : result);
	return result;
}

REAL(ssize_t, recv, int fd, void *to, size_t bytes, int flags)
{
	if (!touches(to, bytes))
		return __real_recv(fd, to, bytes, flags);
	return __wrap_recvfrom(fd, to, bytes, flags, NULL, NULL);
}

REAL(ssize_t, sendto, int fd, const void *from, size_t bytes, int flags,
	const struct sockaddr *address, socklen_t length)
{
	ssize_t result;
	void *buffer;

	if (!touches(from, bytes))
		return __real_sendto(fd, from, bytes, flags, address, length);
	buffer = malloc(bytes);
	if (!buffer)
		return -1;
	memcpy(buffer, from, bytes);
	result = __real_sendto(fd, buffer, bytes, flags, address, length);
	put_back(buffer);
	return result;
}

REAL(ssize_t, send, int fd, const void *from, size_t bytes, int flags)
{
	if (!touches(from, bytes))
		return __real_send(fd, from, bytes, flags);
	return __wrap_sendto(fd, from, bytes, flags, NULL, 0);
}

REAL(ssize_t, recvmsg, int fd, struct msghdr *message, int flags)
{
	struct msghdr bounced;
	struct iovec iov;
	struct pieces p;
	ssize_t result;

	if (!is_bounced(&p, message->msg_iov, message->msg_iovlen))
		return __real_recvmsg(fd, message, flags);
	if (!get_buffer(&p))
		return -1;
	iov = (struct iovec){ p.buffer, p.bytes };
	bounced = *message;
	bounced.msg_iov = &iov;
	bounced.msg_iovlen = 1;
	result = __real_recvmsg(fd, &bounced, flags);
	message->msg_namelen = bounced.msg_namelen;
	message->msg_controllen = bounced.msg_controllen;
	message->msg_flags = bounced.msg_flags;
	return scatter(&p, result);
}

REAL(ssize_t, sendmsg, int fd, const struct msghdr *message, int flags)
{
	struct msghdr bounced;
	struct iovec iov;
	struct pieces p;
	ssize_t result;

	if (!is_bounced(&p, message->msg_iov, message->msg_iovlen))
		return __real_sendmsg(fd, message, flags);
	if (!get_buffer(&p))
		return -1;
	gather(&p);
	iov = (struct iovec){ p.buffer, p.bytes };
	bounced = *message;
	bounced.msg_iov = &iov;
	bounced.msg_iovlen = 1;
	result = __real_sendmsg(fd, &bounced, flags);
	put_back(p.buffer);
	return result;
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
	void *buffer;

	if (__builtin_mul_overflow(size, number, &bytes) || !touches(to, bytes))
		return __real_fread(to, size, number, file);
	buffer = malloc(bytes);
	if (!buffer)
		return 0;
	result = __real_fread(buffer, 1, bytes, file);
	hand_out(to, buffer, result);
	return result / size;
}

REAL(size_t, fwrite, const void *from, size_t size, size_t number, FILE *file)
{
	size_t bytes, result;
	void *buffer;

	if (__builtin_mul_overflow(size, number, &bytes) || !touches(from, bytes))
		return __real_fwrite(from, size, number, file);
	buffer = malloc(bytes);
	if (!buffer)
		return 0;
	memcpy(buffer, from, bytes);
	result = __real_fwrite(buffer, size, number, file);
	put_back(buffer);
	return result;
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
