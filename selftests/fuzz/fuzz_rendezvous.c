// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is said on a listener's socket, by a client and by a server, with and without
 * descriptors: of any length, in any number of messages. No descriptor stays behind.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <hamlyn/channel.h>

#include "fuzz_device.h"
#include "channel/channel.h"
#include "rendezvous/rendezvous.h"

#define BYTES		220		/* of a message, see rendezvous_message.c */
#define AT_CARD		40
#define MOST_MESSAGES	4

static struct h_dev *dev;
static struct h_manager *manager;
static struct h_half raw;		/* what a client of ours would say */
static char path[64];
static const struct h_stream_attr defaults;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	dev = fuzz_open_device("rendezvous");
	MUST(!h_manager_create(dev, NULL, &manager));
	snprintf(path, sizeof(path), "@fuzz-rendezvous-%d", getpid());
	raw.kind = H_KIND_CHANNEL;
	raw.limit = 1000;
	MUST(!h__half_create(&raw, manager, &defaults, true));
	return 0;
}

static unsigned int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	MUST(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- one message --------------------------------------------------------- */

static void reckon_checks(unsigned char *bytes)
{
	unsigned char *card = bytes + AT_CARD;

	h__put(card + H_CARD_BYTES - 4, h__check_word(card, H_CARD_BYTES - 4), 4);
	h__put(bytes + BYTES - 4, h__check_word(bytes, BYTES - 4), 4);
}

/* A sound one, with some words of it changed. */
static size_t message(struct fuzz *f, unsigned char *bytes, uint32_t what)
{
	struct h_saying s = {
		.what = what, .kind = fuzz_u8(f) == 0xff ? fuzz_u8(f) : H_KIND_CHANNEL,
		.flags = fuzz_u8(f) & 1,
	};
	uint32_t changes = fuzz_below(f, 4);
	uint8_t how = fuzz_u8(f);
	int pair[2];

	h_dev_fabric(dev, &s.fabric);
	h__half_card(&raw, s.card);
	/* As the library writes it. */
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	MUST(!h__say(pair[0], &s, NULL));
	MUST(recv(pair[1], bytes, BYTES + 1, 0) == BYTES);
	close(pair[0]);
	close(pair[1]);
	while (changes--) {
		uint32_t at = fuzz_below(f, BYTES / 4) * 4;

		h__put(bytes + at, fuzz_number(f, 4096), 4);
	}
	if (how & 1)
		reckon_checks(bytes);
	return how < 0xf0 ? BYTES : fuzz_u8(f);
}

/* None to three descriptors: of a ticket, of something else. */
static void say(struct fuzz *f, int sock, uint32_t what)
{
	unsigned char bytes[512] = { 0 };
	size_t n = message(f, bytes, what);
	struct iovec iov = { .iov_base = bytes, .iov_len = n };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(3 * sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	uint32_t count = fuzz_below(f, 4), i;
	struct cmsghdr *c;
	int fds[3];

	for (i = 0; i < count; i++)
		fds[i] = fuzz_u8(f) & 1 ? raw.fds[i & 1] : STDERR_FILENO;
	if (count) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int raw_socket(bool listens)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;
	unsigned int length;

	MUST(fd >= 0 && !h__address(path, &a, &length));
	if (listens)
		MUST(!bind(fd, (struct sockaddr *)&a, length) && !listen(fd, 4));
	else
		MUST(!connect(fd, (struct sockaddr *)&a, length));
	return fd;
}

/* ---- both sides ---------------------------------------------------------- */

static void end_channel(struct h_channel *channel)
{
	struct h_message m;

	if (!channel)
		return;
	h_channel_send(channel, "hello", 5, H_NOWAIT);
	if (h_channel_receive(channel, &m, H_NOWAIT) == 0)
		h_channel_release(channel, &m);
	h_channel_close(channel, H_NOWAIT);
}

static void attack_server(struct fuzz *f)
{
	const struct h_listener_attr attr = {
		.flags = fuzz_u8(f) & 1 ? H_CONNECT_TICKETS : 0, .waiting = 2,
	};
	uint32_t n = fuzz_below(f, MOST_MESSAGES + 1), i;
	struct h_channel *channel = NULL;
	struct h_listener *l;
	int socks[MOST_MESSAGES], err;

	MUST(!h_listener_create(path, &attr, &l));
	for (i = 0; i < n; i++) {
		socks[i] = raw_socket(false);
		if (fuzz_u8(f) != 0xff)
			say(f, socks[i], fuzz_u8(f) == 0xff ? fuzz_u8(f) : H_SAYS_REQUEST);
	}
	for (i = 0; i < n; i++) {
		err = h_channel_accept(l, manager, NULL, &channel, H_NOWAIT);
		MUST(!err == !!channel);
		end_channel(channel);
	}
	for (i = 0; i < n; i++)
		close(socks[i]);
	h_listener_destroy(l);
}

/* The answer is there before the question: nothing waits. */
static void attack_client(struct fuzz *f)
{
	int pair[2], fds[2], err;
	struct h_saying s;

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
	say(f, pair[0], H_SAYS_REPLY);
	err = h__hear(pair[1], &s, fuzz_u8(f) & 1 ? fds : (fds[0] = fds[1] = -1, NULL));
	MUST(err == 0 || err == -EPROTO || err == -ECONNRESET || err == -EAGAIN);
	if (!err) {
		struct h_half half = { .kind = H_KIND_CHANNEL, .limit = 1000 };
		bool tickets = fds[0] >= 0;

		MUST(!(s.flags & ~H_CONNECT_TICKETS));
		MUST(!h__half_create(&half, manager, &defaults, tickets));
		h__half_join(&half, s.card, tickets ? fds : NULL);
		h__half_destroy(&half);
	}
	h__close_fds(fds);
	close(pair[0]);
	close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int before = count_fds();
	struct fuzz f = { data, size };
	unsigned int tries;

	if (fuzz_u8(&f) & 1)
		attack_server(&f);
	else
		attack_client(&f);
	/* Threads of the library close what strangers have sent. */
	for (tries = 0; count_fds() != before && tries < 5000; tries++)
		usleep(1000);
	MUST(count_fds() == before);
	/* One end is the target's own. */
	h_manager_poll(manager);
	return 0;
}
