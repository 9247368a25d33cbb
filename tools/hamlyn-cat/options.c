// SPDX-License-Identifier: GPL-2.0-only
/* The command line. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hamlyn.h>

#include "cat.h"

#ifndef HAMLYN_VERSION
#define HAMLYN_VERSION "unknown"
#endif

#define MOST_SECONDS	1e9

enum { OPT_VERSION = 256, OPT_HELP };

static const struct option names[] = {
	{ "allow", required_argument, NULL, 'a' },
	{ "both", no_argument, NULL, 'b' },
	{ "device", required_argument, NULL, 'd' },
	{ "keep", no_argument, NULL, 'k' },
	{ "listen", no_argument, NULL, 'l' },
	{ "mode", required_argument, NULL, 'm' },
	{ "reverse", no_argument, NULL, 'r' },
	{ "timeout", required_argument, NULL, 'T' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "wait", no_argument, NULL, 'w' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static void help(void)
{
	printf("usage: hamlyn-cat -l [OPTION]... NAME   receive, to standard output\n"
	       "       hamlyn-cat [OPTION]... NAME      send standard input\n\n"
	       "Carries bytes from one process to another, also of another user or host, by\n"
	       "protected messages. NAME is a path, @NAME, or HOST/NAME of the fabric.\n\n"
	       "Options:\n"
	       "  -l, --listen        be at NAME, and wait for who connects\n"
	       "  -k, --keep          with -l: one after another, until SIGINT or SIGTERM\n"
	       "  -r, --reverse       the other way: -l sends, and who connects receives\n"
	       "  -b, --both          both ways at a time\n"
	       "  -a, --allow USER[,USER]...  who may be at the other end (default: anybody whom\n"
	       "                      the permissions of the path admit)\n"
	       "  -m, --mode OCTAL    with -l: permissions of the path (default: as umask says)\n"
	       "  -w, --wait          wait for a listener, if there is none yet\n"
	       "  -T, --timeout SECONDS  how long to wait for the other end (default: for ever)\n"
	       "  -d, --device DEVICE /dev/hamlynN or shm:NAME (default: $HAMLYN_DEVICE, else\n"
	       "                      /dev/hamlyn0 if it is there, else shm:default)\n"
	       "  -v, --verbose       say who is at the other end, and how fast it was\n"
	       "      --version       print the version\n"
	       "      --help          print this text\n\n"
	       "Exit status: 0 when all has come, or is in the receiver's memory;\n"
	       "1 if it has not; 2 for a wrong command line.\n");
}

static int usage(void)
{
	say("see hamlyn-cat --help");
	return -1;
}

static int parse_user(const char *text, uid_t *uid)
{
	const struct passwd *user = getpwnam(text);
	unsigned long number;
	char *end;

	if (user) {
		*uid = user->pw_uid;
		return 0;
	}
	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || number >= UINT32_MAX) {
		say("--allow: there is no user \"%s\"", text);
		return -1;
	}
	*uid = (uid_t)number;
	return 0;
}

static int parse_users(char *text, struct options *options)
{
	char *one, *rest = text;

	while ((one = strsep(&rest, ","))) {
		if (options->user_count == MOST_USERS) {
			say("--allow: %d users at most", MOST_USERS);
			return -1;
		}
		if (parse_user(one, &options->users[options->user_count]))
			return -1;
		options->user_count++;
	}
	return 0;
}

static int parse_mode(const char *text, uint32_t *mode)
{
	unsigned long value;
	char *end;

	value = strtoul(text, &end, 8);
	if (end == text || *end || text[0] == '-' || !value || value > 0777) {
		say("--mode: \"%s\" is none of 1 to 777, octal", text);
		return -1;
	}
	*mode = (uint32_t)value;
	return 0;
}

static int parse_timeout(const char *text, int64_t *timeout_ns)
{
	double seconds;
	char *end;

	seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0 && seconds <= MOST_SECONDS)) {
		say("--timeout: \"%s\" is no time in seconds", text);
		return -1;
	}
	*timeout_ns = (int64_t)(seconds * 1e9);
	return 0;
}

static int take(struct options *options, int option, bool *both, bool *reverse)
{
	switch (option) {
	case 'a':
		return parse_users(optarg, options);
	case 'b':
		*both = true;
		return 0;
	case 'd':
		options->device = optarg;
		return 0;
	case 'k':
		options->keep = true;
		return 0;
	case 'l':
		options->listen = true;
		return 0;
	case 'm':
		return parse_mode(optarg, &options->mode);
	case 'r':
		*reverse = true;
		return 0;
	case 'T':
		return parse_timeout(optarg, &options->timeout_ns);
	case 'v':
		options->verbose = true;
		return 0;
	case 'w':
		options->wait = true;
		return 0;
	case OPT_VERSION:
		printf("hamlyn-cat %s\n", HAMLYN_VERSION);
		return 1;
	case OPT_HELP:
		help();
		return 1;
	default:
		return usage();
	}
}

static int check(struct options *options, bool both, bool reverse)
{
	const char *wrong = NULL;

	if (both && reverse)
		wrong = "--both and --reverse exclude each other";
	else if (options->keep && !options->listen)
		wrong = "--keep is for --listen";
	else if (options->mode && !options->listen)
		wrong = "--mode is for --listen";
	else if (options->wait && options->listen)
		wrong = "--wait is for who connects";
	else if (options->keep && (both || reverse))
		wrong = "--keep only receives: standard input can be sent once";
	if (wrong) {
		say("%s", wrong);
		return usage();
	}
	options->send = both || options->listen == reverse;
	options->receive = both || options->listen != reverse;
	return 0;
}

int options_read(struct options *options, int argc, char **argv)
{
	bool both = false, reverse = false;
	int option, err;

	*options = (struct options) { .timeout_ns = H_FOREVER };
	while ((option = getopt_long(argc, argv, "a:bd:klm:rT:vw", names, NULL)) != -1) {
		err = take(options, option, &both, &reverse);
		if (err)
			return err;
	}
	if (optind + 1 != argc) {
		say(optind < argc ? "one NAME, not \"%s\" and more" :
				    "where? a path, @NAME or HOST/NAME is missing%s",
		    optind < argc ? argv[optind] : "");
		return usage();
	}
	options->name = argv[optind];
	return check(options, both, reverse);
}
