// SPDX-License-Identifier: GPL-2.0-only
/* An event loop of one's own: epoll. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "serve.h"

#define TIMER	WATCHED

static int epoll = -1, timer = -1;
static int fds[WATCHED];
static void (*calls[WATCHED])(void);
static void (*ticked)(void);
static bool stopped;

static void begin(void)
{
	epoll = epoll_create1(EPOLL_CLOEXEC);
}

static void add(int fd, uint32_t which)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = which };

	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
}

static void watch(enum watched which, int fd, void (*ready)(void))
{
	fds[which] = fd;
	calls[which] = ready;
	add(fd, which);
}

static void ignore(enum watched which)
{
	epoll_ctl(epoll, EPOLL_CTL_DEL, fds[which], NULL);
}

static void every(unsigned int ms, void (*tick)(void))
{
	const struct itimerspec spec = {
		.it_interval.tv_nsec = ms * 1000000L,
		.it_value.tv_nsec = ms * 1000000L,
	};

	ticked = tick;
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	timerfd_settime(timer, 0, &spec, NULL);
	add(timer, TIMER);
}

static void handle(uint32_t which)
{
	uint64_t n;

	if (which != TIMER)
		calls[which]();
	else if (read(timer, &n, sizeof(n)) == sizeof(n))
		ticked();
}

static void run(void)
{
	struct epoll_event e[4];
	int i, n;

	stopped = false;
	while (!stopped) {
		n = epoll_wait(epoll, e, 4, -1);
		for (i = 0; i < n; i++)
			handle(e[i].data.u32);
	}
}

static void stop(void)
{
	stopped = true;
}

static void finish(void)
{
	close(timer);
	close(epoll);
}

int main(void)
{
	static const struct loop loop = {
		.name = "epoll",
		.begin = begin,
		.watch = watch,
		.ignore = ignore,
		.every = every,
		.run = run,
		.stop = stop,
		.finish = finish,
	};

	return serve(&loop);
}
