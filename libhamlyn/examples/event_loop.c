// SPDX-License-Identifier: MIT
/*
 * event_loop: a talk between two terminals, and how a channel goes into an event loop
 * with other things: epoll waits for standard input, a timer and the channel.
 */
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "example.h"

const char *const program = "event_loop";

static const char usage[] =
"usage: event_loop [-l] [-d DEVICE] [-i SECONDS] PATH\n"
"\n"
"Sends what it reads to the event_loop at the other end of PATH, and prints what\n"
"comes from there. Ends when both have reached the end of their input.\n"
"  -l          wait at PATH; the other one connects\n"
"  -d DEVICE   /dev/hamlynN or shm:NAME (default: the library's choice)\n"
"  -i SECONDS  how often to say on stderr how much there was (default 10, 0: never)\n";

#define AT_ONCE		64	/* messages: then what else there is has its turn */

enum { INPUT, TIMER, CHANNEL };

struct talk {
	struct h_dev *dev;
	struct h_manager *m;
	struct h_channel *ch;
	int epoll;
	int timer;
	bool reading;		/* standard input has not ended */
	bool is_file;		/* epoll does not take those: always readable */
	bool blocked;		/* the other end is slow: do not read on */
	bool hearing;		/* nor has the other end */
	size_t pending;		/* read and not sent yet */
	char line[4096];
	unsigned long sent;
	unsigned long received;
};

/* ---- what happens ------------------------------------------------------- */

/* Not by no events: that a pipe was closed would be told all the same, for ever. */
static void watch_input(struct talk *t, bool on)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = INPUT };

	if (!t->is_file)
		epoll_ctl(t->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, STDIN_FILENO, &e);
}

/* What does not go now goes when the channel calls back. */
static void send_pending(struct talk *t)
{
	int ret = t->pending ? h_channel_send(t->ch, t->line, t->pending, H_NOWAIT) :
			       0;

	if (ret && ret != -EAGAIN)
		must(t->dev, ret, "send");
	if (t->blocked != (ret == -EAGAIN)) {
		t->blocked = !t->blocked;
		watch_input(t, !t->blocked);
	}
	if (ret)
		return;
	t->sent += t->pending;
	t->pending = 0;
}

static void end_input(struct talk *t)
{
	t->reading = false;
	watch_input(t, false);
}

static void read_input(struct talk *t)
{
	ssize_t n;

	if (t->pending)
		return;
	n = read(STDIN_FILENO, t->line, sizeof(t->line));
	if (n < 0)
		die("standard input: %s", strerror(errno));
	if (!n)
		end_input(t);
	t->pending = (size_t)n;
	send_pending(t);
}

/* Called by h_manager_dispatch(), and again if it leaves something. */
static void channel_ready(struct h_channel *ch, void *arg)
{
	struct talk *t = arg;
	struct h_message m;
	int ret = -EAGAIN, i;

	for (i = 0; i < AT_ONCE; i++) {
		ret = h_channel_receive(ch, &m, H_NOWAIT);
		if (ret)
			break;
		t->received += m.length;
		fwrite(m.data, 1, m.length, stdout);
		h_channel_release(ch, &m);
	}
	fflush(stdout);
	if (ret == -ENODATA)
		t->hearing = false;
	else if (ret != -EAGAIN)
		must(t->dev, ret, "receive");
	send_pending(t);
}

static void timer_ready(struct talk *t)
{
	uint64_t n;

	if (read(t->timer, &n, sizeof(n)) == sizeof(n))
		fprintf(stderr, "%s: %lu bytes sent, %lu received\n", program,
			t->sent, t->received);
}

/* ---- the loop ----------------------------------------------------------- */

static void add(struct talk *t, int fd, uint32_t what)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = what };

	if (!epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &e))
		return;
	if (what != INPUT || errno != EPERM)
		die("epoll: %s", strerror(errno));
	t->is_file = true;
}

static void set_up(struct talk *t, unsigned long interval)
{
	const struct itimerspec every = {
		.it_interval.tv_sec = (time_t)interval,
		.it_value.tv_sec = (time_t)interval,
	};

	t->epoll = epoll_create1(EPOLL_CLOEXEC);
	t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (t->epoll < 0 || t->timer < 0 ||
	    timerfd_settime(t->timer, 0, &every, NULL))
		die("event loop: %s", strerror(errno));
	add(t, STDIN_FILENO, INPUT);
	add(t, t->timer, TIMER);
	add(t, (int)must(t->dev, h_manager_fd(t->m), "descriptor"), CHANNEL);
	t->reading = true;
	t->hearing = true;
	h_channel_on_ready(t->ch, channel_ready, t);
}

static void handle(struct talk *t, uint32_t what)
{
	switch (what) {
	case INPUT:
		read_input(t);
		break;
	case TIMER:
		timer_ready(t);
		break;
	default:
		h_manager_dispatch(t->m);
	}
}

/* Both ways until the input is sent, then only from there to here. */
static void loop(struct talk *t)
{
	struct epoll_event e[8];
	bool shut = false;
	int i, n;

	while (t->hearing || !shut) {
		bool busy = t->is_file && t->reading && !t->blocked;

		if (!t->reading && !t->pending && !shut) {
			must(t->dev, h_channel_shutdown(t->ch, 30 * SECOND),
			     "shut down");
			shut = true;
			continue;
		}
		n = epoll_wait(t->epoll, e, 8, busy ? 0 : -1);
		if (n < 0 && errno != EINTR)
			die("epoll: %s", strerror(errno));
		for (i = 0; i < n; i++)
			handle(t, e[i].data.u32);
		if (busy)
			read_input(t);
	}
}

/* ---- the channel -------------------------------------------------------- */

static void wait_for_peer(struct talk *t, const char *path)
{
	struct h_listener *listener;
	struct h_peer peer;

	must(NULL, h_listener_create(path, NULL, &listener), path);
	must(t->dev, h_channel_accept(listener, t->m, NULL, &t->ch, H_FOREVER),
	     "accept");
	h_listener_destroy(listener);
	h_channel_peer(t->ch, &peer);
	fprintf(stderr, "%s: process %d of user %u\n", program, peer.pid, peer.uid);
}

static void connect_to_peer(struct talk *t, const char *path)
{
	const struct h_channel_attr attr = { .flags = H_CONNECT_WAIT };

	must(t->dev, h_channel_connect(t->m, path, &attr, &t->ch, 60 * SECOND), path);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	const char *device = NULL;
	unsigned long interval = 10;
	struct talk t = { 0 };
	bool listen = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "d:i:lh", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'i':
			interval = number("-i", optarg, 0, 86400);
			break;
		case 'l':
			listen = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (argc - optind != 1) {
		fputs(usage, stderr);
		return 2;
	}
	t.m = open_manager(device, &t.dev, 0);
	if (listen)
		wait_for_peer(&t, argv[optind]);
	else
		connect_to_peer(&t, argv[optind]);
	set_up(&t, interval);
	loop(&t);
	must(t.dev, h_channel_close(t.ch, 30 * SECOND), "close");
	close_manager(t.m, t.dev);
	return 0;
}
