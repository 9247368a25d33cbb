// SPDX-License-Identifier: GPL-2.0-only
/* hamlyn-cat: bytes from one process to another by a stream (tools/hamlyn-cat/hamlyn-cat.1). */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hamlyn.h>
#include <hamlyn/manager.h>

#include "cat.h"

static struct h_listener *listening;
static struct h_dev *device;
volatile sig_atomic_t asked_to_end;

void say(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "hamlyn-cat: %s\n", text);
}

void say_why(int err, const char *what)
{
	char why[HAMLYN_EXPLAIN_BYTES] = "";

	if (device)
		h_explain(device, why, sizeof(why));
	if (!*why)
		h_explain(NULL, why, sizeof(why));
	say("%s: %s%s%s", what, strerror(-err), *why ? ": " : "", why);
}

static void on_end(int number)
{
	(void)number;
	asked_to_end = 1;
}

/* So that the path is taken away; a second signal ends at once. */
static void heed_signals(void)
{
	struct sigaction action = { .sa_handler = on_end, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void tell_peer(const struct options *options, const struct h_peer *peer)
{
	if (!options->verbose)
		return;
	if (peer->host != HAMLYN_NONE)
		say("host %u, its user %u, here %u", peer->host, peer->user, peer->uid);
	else
		say("process %d of user %u", (int)peer->pid, peer->uid);
}

static int use(const struct options *options, struct h_stream_pair *pair)
{
	int ret;

	tell_peer(options, &pair->peer);
	/* The way that is not used has ended. */
	if (!options->send)
		h_stream_sender_shutdown(pair->sender, H_NOWAIT);
	ret = copy_both(options, pair);
	if (ret && options->send && options->receive)
		return ret;	/* a thread still has them */
	h_stream_sender_close(pair->sender, ret ? 0 : H_FOREVER);
	h_stream_receiver_destroy(pair->receiver);
	return ret;
}

static int accept_one(const struct options *options, struct h_manager *manager)
{
	struct h_stream_pair pair;
	int err;

	do
		err = h_listener_accept(listening, manager, NULL, &pair, options->timeout_ns);
	while (err == -EINTR && !asked_to_end);
	if (asked_to_end) {
		if (!err) {
			h_stream_sender_close(pair.sender, 0);
			h_stream_receiver_destroy(pair.receiver);
		}
		return options->keep ? 0 : -1;
	}
	if (err) {
		say_why(err, options->name);
		return -1;
	}
	return use(options, &pair);
}

static int serve(const struct options *options, struct h_manager *manager)
{
	struct h_listener_attr attr = {
		.mode = options->mode, .uid_count = options->user_count,
		.uids = options->user_count ? options->users : NULL, .dev = device,
	};
	int err;

	err = h_listener_create(options->name, &attr, &listening);
	if (err) {
		say_why(err, options->name);
		return -1;
	}
	do
		err = accept_one(options, manager);
	while (options->keep && !asked_to_end);
	h_listener_destroy(listening);
	return err;
}

static int call(const struct options *options, struct h_manager *manager)
{
	struct h_connect_attr attr = {
		.flags = options->wait ? H_CONNECT_WAIT : 0, .uid_count = options->user_count,
		.uids = options->user_count ? options->users : NULL,
	};
	struct h_stream_pair pair;
	int err;

	do
		err = h_connect(manager, options->name, &attr, &pair, options->timeout_ns);
	while (err == -EINTR && !asked_to_end);
	if (err) {
		say_why(err, options->name);
		return -1;
	}
	return use(options, &pair);
}

int main(int argc, char **argv)
{
	struct h_manager *manager;
	struct options options;
	int err;

	err = options_read(&options, argc, argv);
	if (err)
		return err < 0 ? 2 : 0;
	err = h_open(options.device, &device);
	if (err) {
		say_why(err, options.device ? options.device : "the default device");
		return 1;
	}
	err = h_manager_create(device, NULL, &manager);
	if (err) {
		say_why(err, "a manager");
		return 1;
	}
	heed_signals();
	return (options.listen ? serve(&options, manager) : call(&options, manager)) ? 1 : 0;
}
