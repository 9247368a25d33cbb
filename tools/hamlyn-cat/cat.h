/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HAMLYN_CAT_H
#define HAMLYN_CAT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <hamlyn/rendezvous.h>

#define MOST_USERS	64

/**
 * struct options - the command line
 * @name: where to meet: a path, @NAME or HOST/NAME
 * @device: of h_open(), or NULL
 * @listen: serve; else connect
 * @keep: serve one client after another, until a signal comes
 * @send: standard input goes to the other end
 * @receive: what comes from there goes to standard output
 * @wait: connecting: for a server, if there is none yet
 * @verbose: tell who is there, and how fast it was
 * @mode: of the path, 0: as umask says
 * @timeout_ns: longest time to wait for the other end to come
 * @user_count: how many @users there are
 * @users: who may be at the other end; none: anybody
 */
struct options {
	const char *name;
	const char *device;
	bool listen;
	bool keep;
	bool send;
	bool receive;
	bool wait;
	bool verbose;
	uint32_t mode;
	int64_t timeout_ns;
	uint32_t user_count;
	uid_t users[MOST_USERS];
};

/* 0; 1: it has printed what was asked for; -1: it has said what is wrong */
int options_read(struct options *options, int argc, char **argv);

/* SIGINT or SIGTERM has come: what takes long ends */
extern volatile sig_atomic_t asked_to_end;

/* A line on standard error */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Of a failed call of libhamlyn: with what h_explain() says */
void say_why(int err, const char *what);

/* Both ways at a time until both have ended: 0, or -1 after having said why. */
int copy_both(const struct options *options, struct h_stream_pair *pair);

#endif
