// SPDX-License-Identifier: GPL-2.0-only
/*
 * GLib. The descriptor tells all there is to know: no source of one's own with
 * prepare() and check() is needed. A context of one's own, so that it can be seen to end.
 */
#include <glib-unix.h>

#include "serve.h"

static struct {
	GMainContext *context;
	GMainLoop *loop;
	GSource *timer;
	GSource *sources[WATCHED];
} glib;

static void (*calls[WATCHED])(void);
static void (*ticked)(void);

static void begin(void)
{
	glib.context = g_main_context_new();
	glib.loop = g_main_loop_new(glib.context, FALSE);
}

static gboolean readable(gint fd, GIOCondition condition, gpointer which)
{
	(void)fd;
	(void)condition;
	calls[GPOINTER_TO_INT(which)]();
	return G_SOURCE_CONTINUE;
}

static void watch(enum watched which, int fd, void (*ready)(void))
{
	calls[which] = ready;
	glib.sources[which] = g_unix_fd_source_new(fd, G_IO_IN);
	g_source_set_callback(glib.sources[which], G_SOURCE_FUNC(readable),
			      GINT_TO_POINTER(which), NULL);
	g_source_attach(glib.sources[which], glib.context);
}

static void ignore(enum watched which)
{
	g_source_destroy(glib.sources[which]);
	g_source_unref(glib.sources[which]);
}

static gboolean tick(gpointer arg)
{
	(void)arg;
	ticked();
	return G_SOURCE_CONTINUE;
}

static void every(unsigned int ms, void (*call)(void))
{
	ticked = call;
	glib.timer = g_timeout_source_new(ms);
	g_source_set_callback(glib.timer, tick, NULL, NULL);
	g_source_attach(glib.timer, glib.context);
}

static void run(void)
{
	g_main_loop_run(glib.loop);
}

static void stop(void)
{
	g_main_loop_quit(glib.loop);
}

static void finish(void)
{
	g_source_destroy(glib.timer);
	g_source_unref(glib.timer);
	g_main_loop_unref(glib.loop);
	g_main_context_unref(glib.context);
}

int main(void)
{
	static const struct loop loop = {
		.name = "GLib",
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
