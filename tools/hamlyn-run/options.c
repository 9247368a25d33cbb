// SPDX-License-Identifier: GPL-2.0-only
/* The command line. What follows PROGRAM is PROGRAM's. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/launch.h"
#include "message.h"
#include "options.h"

#ifndef HAMLYN_VERSION
#define HAMLYN_VERSION "unknown"
#endif

enum {
	OPT_DEVICE = 256, OPT_TIMEOUT, OPT_TAG_OUTPUT, OPT_STDIN, OPT_KEEP_GOING,
	OPT_SAME_ADDRESSES, OPT_HOST, OPT_LAUNCH, OPT_AGENT_PATH, OPT_BRIDGE, OPT_CLEAR,
	OPT_AGENT, OPT_VERSION,
};

static const struct option names[] = {
	{ "processes", required_argument, NULL, 'n' },
	{ "device", required_argument, NULL, OPT_DEVICE },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "tag-output", no_argument, NULL, OPT_TAG_OUTPUT },
	{ "stdin", required_argument, NULL, OPT_STDIN },
	{ "keep-going", no_argument, NULL, OPT_KEEP_GOING },
	{ "same-addresses", no_argument, NULL, OPT_SAME_ADDRESSES },
	{ "host", required_argument, NULL, OPT_HOST },
	{ "launch", required_argument, NULL, OPT_LAUNCH },
	{ "agent-path", required_argument, NULL, OPT_AGENT_PATH },
	{ "bridge", required_argument, NULL, OPT_BRIDGE },
	{ "clear", no_argument, NULL, OPT_CLEAR },
	{ "agent", no_argument, NULL, OPT_AGENT },
	{ "verbose", no_argument, NULL, 'v' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void help(void)
{
	printf("usage: hamlyn-run -n N [OPTION]... PROGRAM [ARGUMENT]...\n\n"
	       "Runs PROGRAM in N processes, which find each other by PMI-1.\n\n"
	       "Options:\n"
	       "  -n, --processes N   how many, 1 to %d\n"
	       "      --device NAME   /dev/hamlynN or shm:NAME, as HAMLYN_DEVICE of the processes\n"
	       "      --timeout S     end the processes after S seconds, and exit with 124\n"
	       "      --tag-output    begin each line that process R prints with \"[R] \"\n"
	       "      --stdin R|none  the process that reads standard input (default 0)\n"
	       "      --keep-going    leave the others alone when a process fails\n"
	       "      --same-addresses  do without randomisation of the address space: variables\n"
	       "                      have the same addresses in all processes\n"
	       "      --host H[:N],... the hosts where they run, how many on each; . is this one\n"
	       "                      (default: all here)\n"
	       "      --launch COMMAND  what reaches a host: %%h, or the end, becomes its name\n"
	       "                      (default: " LAUNCH_COMMAND ")\n"
	       "      --agent-path PATH  this program on other hosts (default: where it is here)\n"
	       "      --bridge PORT   an embedded device of the job's on each host, joined by\n"
	       "                      hamlyn-bridge, from this TCP port on; --host H=ADDRESS[:N]\n"
	       "      --clear         the same beside the loopback device: nothing is encrypted\n"
	       "  -v, --verbose       tell of processes that start and end\n"
	       "      --version       print the version\n"
	       "  -h, --help          print this text\n\n"
	       "Exit status: 0 if all processes end with 0; else that of the first that did not,\n"
	       "or 128 and the number of the signal that ended it; the others are ended then.\n"
	       "124 after the timeout, 126 or 127 if PROGRAM cannot be run or found, 2 for a\n"
	       "wrong command line, 1 if hamlyn-run fails.\n", MAX_PROCESSES);
}

static int usage(void)
{
	say("see hamlyn-run --help");
	return -1;
}

static int parse_number(const char *name, const char *text, long min, long max, int *number)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || value < min || value > max) {
		say("%s takes a number from %ld to %ld, not \"%.80s\"", name, min, max, text);
		return -1;
	}
	*number = (int)value;
	return 0;
}

static int parse_stdin(const char *text, struct options *options)
{
	if (!strcmp(text, "none")) {
		options->stdin_rank = NO_STDIN;
		return 0;
	}
	if (*text >= '0' && *text <= '9')
		return parse_number("--stdin", text, 0, MAX_PROCESSES - 1, &options->stdin_rank);
	say("--stdin takes the number of a process, or none; not \"%.80s\"", text);
	return -1;
}

static int parse_device(const char *text, struct options *options)
{
	options->device = text;
	if (*text)
		return 0;
	say("--device takes /dev/hamlynN or shm:NAME, not an empty name");
	return -1;
}

static int check_words(const char *name, const char *text)
{
	int n = 0;

	for (text += strspn(text, " \t"); *text; text += strspn(text, " \t"), n++)
		text += strcspn(text, " \t");
	if (n >= 1 && n <= LAUNCH_WORDS)
		return 0;
	say("%s takes from 1 to %d words, not %d", name, LAUNCH_WORDS, n);
	return -1;
}

/* Of an unknown letter getopt tells only that; of a long option it is the word before */
static int wrong_option(int id, char **argv)
{
	const char *word = argv[optind - 1];
	char letter[3] = { '-', (char)optopt, 0 };
	bool known = optopt && (optopt >= OPT_DEVICE || strchr("nvh", optopt));

	if (optopt && (!known || strncmp(word, "--", 2)))
		word = letter;
	if (id == ':')
		say("%.80s takes a value", word);
	else if (known)
		say("%.80s: this option takes no value", word);
	else
		say("no option, or more than one, is called \"%.80s\"", word);
	return usage();
}

static int take(int id, struct options *options)
{
	switch (id) {
	case 'n':
		return parse_number("-n", optarg, 1, MAX_PROCESSES, &options->processes);
	case OPT_DEVICE:
		return parse_device(optarg, options);
	case OPT_TIMEOUT:
		return parse_number("--timeout", optarg, 1, MAX_TIMEOUT_S, &options->timeout_s);
	case OPT_TAG_OUTPUT:
		options->tag_output = true;
		return 0;
	case OPT_STDIN:
		return parse_stdin(optarg, options);
	case OPT_KEEP_GOING:
		options->keep_going = true;
		return 0;
	case OPT_SAME_ADDRESSES:
		options->same_addresses = true;
		return 0;
	case 'v':
		options->verbose = true;
		return 0;
	case OPT_HOST:
		return hosts_parse(&options->hosts, optarg);
	case OPT_LAUNCH:
		options->launch = optarg;
		return check_words("--launch", optarg);
	case OPT_AGENT_PATH:
		options->agent_path = optarg;
		return check_words("--agent-path", optarg);
	case OPT_BRIDGE:
		return parse_number("--bridge", optarg, 1, 65535 - MAX_HOSTS,
				    &options->bridge_port);
	case OPT_CLEAR:
		options->clear = true;
		return 0;
	case OPT_AGENT:
		options->agent = true;
		return 0;
	case OPT_VERSION:
		printf("hamlyn-run " HAMLYN_VERSION "\n");
		return 1;
	default:
		help();
		return 1;
	}
}

static int check_hosts(struct options *options)
{
	const char *device = options->device;

	if (!options->hosts.n &&
	    (options->launch || options->agent_path || options->bridge_port)) {
		say("--launch, --agent-path and --bridge are for other hosts, and --host names "
		    "none");
		return -1;
	}
	if (options->clear && !options->bridge_port) {
		say("--clear is for --bridge");
		return -1;
	}
	if (options->bridge_port && device && strncmp(device, "shm:", 4)) {
		say("--bridge joins embedded devices, shm:NAME, and \"%.80s\" is none", device);
		return -1;
	}
	if (hosts_divide(&options->hosts, options->processes) < 0)
		return -1;
	return options->bridge_port ? hosts_find(&options->hosts) : 0;
}

/* What can be judged when all options are known only */
static int check(int argc, char **argv, struct options *options)
{
	/* All that it is to know comes over its standard input */
	if (options->agent)
		return 0;
	if (!options->processes) {
		say("how many processes? -n takes a number from 1 to %d", MAX_PROCESSES);
		return usage();
	}
	if (options->stdin_rank >= options->processes) {
		say("--stdin names process %d, there are only 0 to %d", options->stdin_rank,
		    options->processes - 1);
		return usage();
	}
	if (optind >= argc || !*argv[optind]) {
		say("which program?");
		return usage();
	}
	options->command = argv + optind;
	if (check_hosts(options) < 0)
		return usage();
	return 0;
}

int options_parse(int argc, char **argv, struct options *options)
{
	int id, ret;

	memset(options, 0, sizeof(*options));
	opterr = 0;
	/* "+": options end at the first word that is none, ":": tell a missing value apart */
	while ((id = getopt_long(argc, argv, "+:n:vh", names, NULL)) != -1) {
		if (id == '?' || id == ':')
			return wrong_option(id, argv);
		ret = take(id, options);
		if (ret < 0)
			return usage();
		if (ret)
			return ret;
	}
	return check(argc, argv, options);
}
