// SPDX-License-Identifier: MIT
/*
 * Rendezvous by HOST/NAME: the kernels carry what is otherwise said on a socket, and say who says
 * it. Whatever comes from another host is checked as what comes from a stranger here.
 */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rendezvous/rendezvous.h"

#define RETRY_NS	5000000LL	/* what is asked goes to another host each time */
#define NO_GROUP	65534		/* as the kernel calls those it has no number for */

/* Of a descriptor for calls, or of an answer. Return: 1; 0: there is none yet; or an error. */
static int read_one(int fd, struct hamlyn_caller *from, struct h_heard *heard)
{
	unsigned char bytes[H_NAME_BYTES];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	/* A bridge that has ended. */
	if ((size_t)n < sizeof(*from))
		return -ECONNRESET;
	memcpy(from, bytes, sizeof(*from));
	heard->number = from->number;
	heard->peer = (struct h_peer) {
		.uid = from->uid,
		.gid = NO_GROUP,
		.host = from->host,
		.user = from->user,
	};
	heard->err = h__saying_take(&heard->says, bytes + sizeof(*from), from->length);
	return 1;
}

/* ---- servers ---- */

static int taken_by_other(int err, const struct h_name *name, struct h_dev *dev)
{
	char text[HAMLYN_EXPLAIN_BYTES];

	if (err == -EADDRINUSE)
		return h__early(err, "%u/%.*s: another server has that name", name->host,
				(int)name->length, name->name);
	h_explain(dev, text, sizeof(text));
	return text[0] ? h__early(err, "%s", text) : err;
}

int h__name_listen(const struct h_name *name, struct h_dev *dev)
{
	int fd;

	if (name->host != h__dev_host(dev))
		return h__early(-EADDRNOTAVAIL, "a server listens at its own host, which is %u",
				h__dev_host(dev));
	fd = h__dev_listen(dev, name);
	return fd < 0 ? taken_by_other(fd, name, dev) : fd;
}

int h__name_hear(int fd, struct h_heard *heard)
{
	struct hamlyn_caller from;

	return read_one(fd, &from, heard);
}

/* A socket of the embedded device may have lost its other end. */
static int put(int fd, const void *bytes, size_t n)
{
	ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

	if (sent < 0 && errno == ENOTSOCK)
		sent = write(fd, bytes, n);
	if (sent < 0 && errno == EPIPE)
		return -ECONNRESET;
	return sent < 0 ? -errno : 0;
}

int h__name_answer(int fd, uint64_t number, const struct h_saying *s)
{
	struct {
		struct hamlyn_answer answer;
		unsigned char said[H_SAYING_BYTES];
	} out = { .answer = { .number = number, .length = sizeof(out.said) } };
	const size_t n = sizeof(out.answer) + sizeof(out.said);

	h__saying_put(s, out.said);
	return put(fd, &out, n);
}

void h__name_close(int fd)
{
	const struct hamlyn_answer end = { .flags = HAMLYN_ANSWER_END };

	put(fd, &end, sizeof(end));
	close(fd);
}

/* ---- clients ---- */

static int hear_answer(int fd, struct h_heard *heard, int64_t deadline_ns)
{
	struct hamlyn_caller from;
	int ret;

	do {
		ret = h__poll_until(fd, POLLIN, deadline_ns);
		if (ret)
			return ret;
		ret = read_one(fd, &from, heard);
	} while (!ret);
	return ret < 0 ? ret : -from.error;
}

/* What a kernel refuses at once, and explains, a bridge answers. */
static int explain_answer(struct h_dev *dev, const struct h_name *name, int err)
{
	switch (err) {
	case -EHOSTDOWN:
		return h__refuse(dev, err, "host %u is not there", name->host);
	case -EPROTONOSUPPORT:
		return h__refuse(dev, err, "the bridge of host %u is of before names", name->host);
	case -EDQUOT:
		return h__refuse(dev, err, "this process has as many names and calls as it may");
	}
	return err;
}

static int ask_once(struct h_dev *dev, const struct h_name *name, const unsigned char *said,
		    struct h_heard *heard, int64_t deadline_ns)
{
	int fd = h__dev_call(dev, name, said, H_SAYING_BYTES), err;

	if (fd < 0)
		return fd;
	err = hear_answer(fd, heard, deadline_ns);
	close(fd);
	return explain_answer(dev, name, err);
}

/* A server that is not there may come; at one that has too many callers it will be our turn. */
static bool may_change(int err, bool wait)
{
	return err == -EUSERS || (wait && (err == -ENOENT || err == -EHOSTDOWN));
}

static int explain(struct h_dev *dev, const struct h_name *name, int err)
{
	switch (err) {
	case -ENOENT:
		return h__refuse(dev, err, "nobody at host %u has the name %.*s", name->host,
				 (int)name->length, name->name);
	case -EUSERS:
		return h__refuse(dev, -ENOBUFS,
				 "no more callers of this user, or this host, may wait at %u/%.*s",
				 name->host, (int)name->length, name->name);
	}
	return err;
}

int h__name_ask(struct h_dev *dev, const struct h_name *name, const struct h_saying *s,
		struct h_heard *heard, bool wait, int64_t deadline_ns)
{
	unsigned char said[H_SAYING_BYTES];
	int err;

	h__saying_put(s, said);
	do {
		err = ask_once(dev, name, said, heard, deadline_ns);
	} while (may_change(err, wait) && !h__sleep_a_little(RETRY_NS, deadline_ns));
	return err ? explain(dev, name, err) : 0;
}
