// SPDX-License-Identifier: MIT
/* Clients: from a path to the two streams of a connection. */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rendezvous/rendezvous.h"

#define RETRY_NS	2000000LL	/* while nobody listens: at first, and at most */
#define MOST_RETRY_NS	20000000LL
#define QUEUE_NS	100000000LL	/* for a place among those who are to be accepted */

int h__sleep_a_little(int64_t ns, int64_t deadline_ns)
{
	int64_t left = deadline_ns > 0 ? deadline_ns - h__now_ns() : ns;
	const struct timespec ts = { .tv_nsec = left < ns ? left : ns };

	if (deadline_ns == H_NOWAIT)
		return -EAGAIN;
	if (left <= 0)
		return -ETIMEDOUT;
	return nanosleep(&ts, NULL) ? -errno : 0;
}

/*
 * A listener has too many to accept. The kernel lets one of those who wait go on for each that is
 * accepted; a thousand that tried again and again would keep the server from its processor. If one
 * is killed that was let go on, the next one does not learn of it: so all look now and then.
 * -EAGAIN: nothing has come of it yet.
 */
static int call_in_turn(int sock, const struct sockaddr_un *address, unsigned int length,
			int64_t deadline_ns)
{
	int64_t left = deadline_ns < 0 ? QUEUE_NS : deadline_ns - h__now_ns();
	struct timeval limit = { .tv_usec = (left < QUEUE_NS ? left : QUEUE_NS) / 1000 + 1 };
	int flags, err;

	if (left <= 0)
		return -ETIMEDOUT;
	flags = fcntl(sock, F_GETFL);
	if (flags < 0 || setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    fcntl(sock, F_SETFL, flags & ~O_NONBLOCK))
		return -errno;
	err = connect(sock, (const struct sockaddr *)address, length) ? -errno : 0;
	return fcntl(sock, F_SETFL, flags) ? -errno : err;
}

static int call(int sock, const char *path, bool wait, int64_t deadline_ns)
{
	int64_t pause = RETRY_NS;
	struct sockaddr_un address;
	unsigned int length;
	int err;

	err = h__address(path, &address, &length);
	while (!err) {
		if (!connect(sock, (struct sockaddr *)&address, length))
			return 0;
		err = -errno;
		if (err == -EAGAIN && deadline_ns != H_NOWAIT) {
			err = call_in_turn(sock, &address, length, deadline_ns);
			if (!err)
				return 0;
			if (err == -EAGAIN)
				err = 0;
		} else if (wait && (err == -ENOENT || err == -ECONNREFUSED)) {
			err = h__sleep_a_little(pause, deadline_ns);
			pause += pause < MOST_RETRY_NS ? pause / 8 : 0;
		}
	}
	return err;
}

/* Whoever has the name: is it the one we want? */
static int check_server(int sock, const struct h_connect_attr *attr,
			struct h_peer *peer)
{
	int err;

	err = h__peer_of(sock, peer);
	if (err)
		return err;
	return h__uid_in(peer->uid, attr->uids, attr->uid_count) ? 0 : -EPERM;
}

static struct h_saying request_of(const struct h_half *half, bool tickets)
{
	struct h_saying s = {
		.what = H_SAYS_REQUEST,
		.kind = half->kind,
		.flags = tickets ? H_CONNECT_TICKETS : 0,
	};

	h_dev_fabric(half->manager->dev, &s.fabric);
	h__half_card(half, s.card);
	return s;
}

static int ask(int sock, const struct h_half *half, bool tickets)
{
	struct h_saying s = request_of(half, tickets);
	int err;

	err = h__say(sock, &s, tickets ? half->fds : NULL);
	/* It takes no descriptors, and the kernel says so. */
	if (err == -EPERM && tickets)
		return -EPROTONOSUPPORT;
	/* Sent away before it was asked: it says why. */
	return err == -EPIPE || err == -ECONNRESET ? 0 : err;
}

/* What the server said when it sent us away is its word only. */
static int why_refused(uint32_t status)
{
	switch (status) {
	case EACCES:
	case EXDEV:
	case EPROTOTYPE:
	case EPROTONOSUPPORT:
	case EUSERS:
		return -(int)status;
	default:
		return -EPROTO;
	}
}

/* An EPROTO, to the application. */
#define OTHER_VERSION	(-ELIBBAD)

/* Of errors that nobody else explains. */
static const char *text_of(int err)
{
	switch (err) {
	case -EACCES:
		return "the server does not let this user in";
	case -EPERM:
		return "the server is of none of the users that are good enough";
	case -EXDEV:
		return "the server is on another device";
	case -EPROTOTYPE:
		return "one end wants streams, the other a channel";
	case -EPROTONOSUPPORT:
		return "one end wants tickets that are descriptors, the other not";
	case -EUSERS:
		return "the server has no room, or turned us down";
	case OTHER_VERSION:
		return "the server has another version of the library: both ends need the same";
	case -EPROTO:
		return "the server is of another version, or talks nonsense";
	case -ECONNRESET:
		return "the server went away";
	case -ETOOMANYREFS:
		return "too many descriptors of this user are on their way";
	default:
		return NULL;
	}
}

/* Of a path: whoever is called by HOST/NAME is looked for by others, who say why. */
static const char *text_of_path(int err)
{
	switch (err) {
	case -ENOENT:
		return "nothing is there: no server has this path";
	case -ECONNREFUSED:
		return "nobody listens there";
	case -EINVAL:
		return "must be a path, or '@' and a name";
	case -ENAMETOOLONG:
		return "a path of a socket has at most 107 bytes";
	default:
		return NULL;
	}
}

/* The last thing that is done: other calls on the device forget what was said. */
static int explained(struct h_manager *m, bool by_name, int err)
{
	/* The kernel has said why. */
	const char *text = by_name && err == -EPROTONOSUPPORT ? NULL : text_of(err);

	if (!text && !by_name)
		text = text_of_path(err);
	if (err == OTHER_VERSION)
		err = -EPROTO;
	return text ? h__refuse(m->dev, err, "%s", text) :
		      h__no_descriptor(m, err);
}

static int hear_reply(struct h_half *half, int sock, struct h_saying *s,
		      int *fds, int64_t deadline_ns)
{
	int err;

	do {
		err = h__poll_until(sock, POLLIN, deadline_ns);
		if (err)
			return err;
		/* The server has its own: this makes room for those of the reply. */
		h__half_close_fds(half);
		err = h__hear(sock, s, fds);
	} while (err == -EAGAIN);
	return err;
}

static int judge(struct h_half *half, const struct h_saying *s, int err,
		 bool tickets, const int *fds)
{
	if (!err && (s->what != H_SAYS_REPLY || s->status ||
		     !(s->flags & H_CONNECT_TICKETS) == tickets))
		err = -EPROTO;
	if (!err && tickets && fds[0] < 0)
		err = -EPROTO;
	if (err == -EPROTO) {
		err = why_refused(s->status);
		return err == -EPROTO && s->other_version ? OTHER_VERSION : err;
	}
	if (err)
		return err;
	if (!h_dev_reaches(half->manager->dev, &s->fabric))
		return -EXDEV;
	err = h__half_join(half, s->card, tickets ? fds : NULL);
	return err == -EINVAL || err == -EBADF || err == -ENOKEY ? -EPROTO : err;
}

static int meet(struct h_half *half, int sock, bool tickets,
		int64_t deadline_ns)
{
	struct h_saying s = {};
	int fds[2] = { -1, -1 };
	int err;

	err = ask(sock, half, tickets);
	if (err)
		return err;
	err = hear_reply(half, sock, &s, tickets ? fds : NULL, deadline_ns);
	err = judge(half, &s, err, tickets, fds);
	if (err)
		h__close_fds_later(fds);
	else
		h__close_fds(fds);
	return err;
}

static int call_and_meet(struct h_half *half, const char *path,
			 const struct h_connect_attr *attr,
			 struct h_peer *peer, int64_t deadline_ns)
{
	bool tickets = attr->flags & H_CONNECT_TICKETS;
	int sock, err;

	sock = h__fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (sock < 0)
		return sock;
	if (!tickets)
		h__take_no_descriptors(sock);
	err = call(sock, path, attr->flags & H_CONNECT_WAIT, deadline_ns);
	if (!err)
		err = check_server(sock, attr, peer);
	if (!err)
		err = meet(half, sock, tickets, deadline_ns);
	h__hang_up(sock);
	h__close_waiting();
	return err;
}

/* As call_and_meet(), by HOST/NAME. */
static int ask_and_meet(struct h_half *half, const struct h_name *name,
			const struct h_connect_attr *attr, struct h_peer *peer,
			int64_t deadline_ns)
{
	struct h_saying s = request_of(half, false);
	struct h_heard heard;
	int err;

	err = h__name_ask(half->manager->dev, name, &s, &heard, attr->flags & H_CONNECT_WAIT,
			  deadline_ns);
	if (err)
		return err;
	*peer = heard.peer;
	if (!h__uid_in(peer->uid, attr->uids, attr->uid_count))
		return -EPERM;
	return judge(half, &heard.says, heard.err, false, NULL);
}

/* Of a path that looks like HOST/NAME, and is none. */
static int check_name(struct h_manager *m, int is_name, bool tickets)
{
	if (is_name == -ENAMETOOLONG)
		return h__refuse(m->dev, is_name, "HOST/NAME: a name has at most %d characters",
				 HAMLYN_MAX_NAME);
	if (is_name < 0)
		return h__refuse(m->dev, is_name,
				 "HOST/NAME: a name has printable characters, and no blanks");
	if (is_name && tickets)
		return h__refuse(m->dev, -EOPNOTSUPP,
				 "tickets (H_CONNECT_TICKETS) are descriptors, of one host");
	return 0;
}

static int create_and_meet(struct h_half *half, struct h_manager *m,
			   const char *path, const struct h_connect_attr *attr,
			   struct h_peer *peer, int64_t timeout_ns)
{
	const struct h_stream_attr stream = {
		.buffers = attr->buffers,
		.buffer_size = attr->buffer_size,
		.max_buffer_size = attr->max_buffer_size,
	};
	bool tickets = attr->flags & H_CONNECT_TICKETS;
	struct h_name name;
	int is_name = h__name_of(path, &name);
	int64_t deadline;
	int err;

	err = check_name(m, is_name, tickets);
	/* First, for that takes its time: a server does not wait long. */
	if (!err)
		err = h__half_create(half, m, &stream, tickets);
	if (err)
		return err;
	deadline = h_deadline(timeout_ns);
	err = is_name ? ask_and_meet(half, &name, attr, peer, deadline) :
			call_and_meet(half, path, attr, peer, deadline);
	if (!err)
		return 0;
	h__half_destroy(half);
	return explained(m, is_name, err);
}

/* Who is cancelled in the middle would leave half an end, and a socket. */
int h__half_connect(struct h_half *half, struct h_manager *m, const char *path,
		    const struct h_connect_attr *attr, struct h_peer *peer,
		    int64_t timeout_ns)
{
	struct h_change_limit before;
	int err, cancel;

	if (!path)
		return h__refuse(m->dev, -EINVAL, "the path is NULL");
	if (attr->flags & ~(H_CONNECT_TICKETS | H_CONNECT_WAIT))
		return h__refuse(m->dev, -EINVAL,
				 "flags 0x%x: 0 or H_CONNECT_*", attr->flags);
	cancel = h__cancel_off();
	before = h__change_limit(h_deadline(timeout_ns));
	err = create_and_meet(half, m, path, attr, peer, timeout_ns);
	h__change_restore(before);
	h__cancel_restore(cancel);
	return err;
}

int h__connect(struct h_manager *m, const char *path, const struct h_connect_attr *attr,
	       size_t size, struct h_stream_pair *pair, int64_t timeout_ns)
{
	struct h_half half = { .kind = H_KIND_STREAMS };
	struct h_connect_attr at;
	int err;

	*pair = (struct h_stream_pair) {};
	err = H_TAKE_ATTR(m->dev, &at, attr, size);
	if (!err && at.reserved)
		err = h__attr_reserved(m->dev, at.reserved);
	if (!err)
		err = h__half_connect(&half, m, path, &at, &pair->peer, timeout_ns);
	if (err)
		return err;
	pair->sender = half.sender;
	pair->receiver = half.receiver;
	return 0;
}
