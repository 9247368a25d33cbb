// SPDX-License-Identifier: GPL-2.0-only
/* libuv. */
#include <uv.h>

#include "serve.h"

static uv_loop_t uv;
static uv_poll_t polls[WATCHED];
static void (*calls[WATCHED])(void);
static uv_timer_t timer;
static void (*ticked)(void);

static void begin(void)
{
	uv_loop_init(&uv);
}

static void readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	calls[poll - polls]();
}

static void watch(enum watched which, int fd, void (*ready)(void))
{
	calls[which] = ready;
	uv_poll_init(&uv, &polls[which], fd);
	uv_poll_start(&polls[which], UV_READABLE, readable);
}

/* libuv does not touch the descriptor any more when this returns. */
static void ignore(enum watched which)
{
	uv_close((uv_handle_t *)&polls[which], NULL);
}

static void tick(uv_timer_t *t)
{
	(void)t;
	ticked();
}

static void every(unsigned int ms, void (*call)(void))
{
	ticked = call;
	uv_timer_init(&uv, &timer);
	uv_timer_start(&timer, tick, ms, ms);
}

static void run(void)
{
	uv_run(&uv, UV_RUN_DEFAULT);
}

static void stop(void)
{
	uv_stop(&uv);
}

/* A run for what is being closed. */
static void finish(void)
{
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(&uv, UV_RUN_DEFAULT);
	uv_loop_close(&uv);
}

int main(void)
{
	static const struct loop loop = {
		.name = "libuv",
		.begin = begin,
		.watch = watch,
		.ignore = ignore,
		.every = every,
		.run = run,
		.stop = stop,
		.finish = finish,
	};

	/* What libuv opens once for a process stays; it is not to be counted. */
	begin();
	uv_loop_close(&uv);
	return serve(&loop);
}
