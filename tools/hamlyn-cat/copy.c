// SPDX-License-Identifier: GPL-2.0-only
/* From standard input to a stream, and from a stream to standard output. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <hamlyn.h>

#include "cat.h"

#define CHUNK	65536

/**
 * struct way - one of the two directions
 * @bytes: how many have gone this way
 * @failed: it has ended before the end, and has said why
 */
struct way {
	struct h_stream_pair *pair;
	uint64_t bytes;
	bool failed;
};

static bool send_all(struct way *way, const char *data, size_t length)
{
	ssize_t n;

	while (length) {
		n = h_stream_send(way->pair->sender, data, length, H_FOREVER);
		if (n == -EINTR && !asked_to_end)
			continue;
		if (n < 0) {
			say_why((int)n, "sending");
			return false;
		}
		data += n;
		length -= (size_t)n;
		way->bytes += (uint64_t)n;
	}
	return true;
}

static bool send_input(struct way *way)
{
	static char data[CHUNK];
	ssize_t n;

	while ((n = read(STDIN_FILENO, data, sizeof(data)))) {
		if (n < 0 && errno == EINTR && !asked_to_end)
			continue;
		if (n < 0) {
			say("standard input: %s", strerror(errno));
			return false;
		}
		/* Somebody may be waiting for a line of which there is no more for hours. */
		if (!send_all(way, data, (size_t)n))
			return false;
		if (h_stream_flush(way->pair->sender, H_FOREVER) == -EPIPE) {
			say_why(-EPIPE, "sending");
			return false;
		}
	}
	return true;
}

static void *send_way(void *arg)
{
	struct way *way = arg;
	int err;

	if (!send_input(way)) {
		way->failed = true;
		return NULL;
	}
	do
		err = h_stream_sender_shutdown(way->pair->sender, H_FOREVER);
	while (err == -EINTR && !asked_to_end);
	if (err) {
		say_why(err, "the end of what was sent");
		way->failed = true;
	}
	return NULL;
}

static bool put(const char *data, size_t length)
{
	ssize_t n;

	while (length) {
		n = write(STDOUT_FILENO, data, length);
		if (n < 0 && errno == EINTR && !asked_to_end)
			continue;
		if (n < 0) {
			say("standard output: %s", strerror(errno));
			return false;
		}
		data += n;
		length -= (size_t)n;
	}
	return true;
}

static void receive_way(struct way *way)
{
	struct h_record record;
	int err;

	while ((err = h_stream_receive(way->pair->receiver, &record, H_FOREVER)) != -ENODATA) {
		if (err == -EINTR && !asked_to_end)
			continue;
		if (err) {
			say_why(err, "receiving");
			way->failed = true;
			return;
		}
		if (!put(record.data, record.length)) {
			way->failed = true;
			return;
		}
		way->bytes += record.length;
		h_stream_release(way->pair->receiver, &record);
	}
}

static double seconds_since(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

static void tell(const char *what, const struct way *way, double seconds)
{
	say("%s %llu bytes in %.3f s, %.1f MB/s", what, (unsigned long long)way->bytes, seconds,
	    seconds > 0 ? (double)way->bytes / seconds / 1e6 : 0.0);
}

int copy_both(const struct options *options, struct h_stream_pair *pair)
{
	struct way out = { .pair = pair }, in = { .pair = pair };
	struct timespec begin;
	pthread_t sender;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (options->send && options->receive) {
		sigset_t all, before;

		/* Signals are for who receives, and ends the other. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		err = pthread_create(&sender, NULL, send_way, &out);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (err) {
			say("a thread to send with: %s", strerror(err));
			return -1;
		}
		receive_way(&in);
		/* What is left to be read may come never, and has nobody to go to. */
		if (in.failed)
			return -1;
		pthread_join(sender, NULL);
	} else if (options->send) {
		send_way(&out);
	} else {
		receive_way(&in);
	}
	if (options->verbose && options->send)
		tell("sent", &out, seconds_since(&begin));
	if (options->verbose && options->receive)
		tell("received", &in, seconds_since(&begin));
	return out.failed || in.failed ? -1 : 0;
}
