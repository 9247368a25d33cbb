// SPDX-License-Identifier: GPL-2.0-only
/* The command line. Options may stand before and after the command. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* CPU sets */
#endif
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system/chan.h"
#include "options.h"

enum {
	OPT_FIRST = 256,
	OPT_JSON = OPT_FIRST,
	OPT_VERSION,
	OPT_CSV,
	OPT_VERIFY,
	OPT_QUIET,
	OPT_CPUS,
	OPT_TIMEOUT,
	OPT_TOUCH,
	OPT_REPS,
	OPT_TIME,
	OPT_SIZES,
	OPT_SYSTEMS,
	OPT_QUICK,
	OPT_SAVE,
	OPT_OP,
	OPT_N,
	OPT_SELF,
	OPT_COUNT,
	OPT_SENDERS,
	OPT_PAIRS,
	OPT_CORRUPT,
	OPT_PLOT,
	OPT_HUGE,
	OPT_PEER_DEVICE,
	OPT_PEER_NETNS,
	OPT_PEER_ADDRESS,
};

#define MEASURING	"lat bw rate load compare"

static const struct option_words {
	int id;
	const char *name;
	const char *value;	/* NULL: takes none */
	const char *commands;	/* NULL: for all */
	const char *what;
} words[] = {
	{ 'd', "device", "D", NULL, "/dev/hamlynN or shm:NAME (default: the library's choice)" },
	{ OPT_PEER_DEVICE, "peer-device", "D", MEASURING,
	  "of the second process: another host of the fabric (default: --device)" },
	{ OPT_PEER_NETNS, "peer-netns", "NS", MEASURING,
	  "the network namespace that the second process is in: a name, path or pid" },
	{ OPT_PEER_ADDRESS, "peer-address", "A", MEASURING,
	  "IPv4 address there, to which tcp and tcp-spin connect (default: loopback)" },
	{ OPT_JSON, "json", NULL, NULL, "one JSON object per line" },
	{ OPT_CSV, "csv", NULL, NULL, "comma separated values" },
	{ OPT_CPUS, "cpus", "A,B", NULL, "CPUs for the two processes (default: the first two)" },
	{ OPT_TIMEOUT, "timeout", "S", NULL, "longest wait for a message, seconds (default 30)" },
	{ OPT_QUIET, "quiet", NULL, NULL, "no progress on stderr" },
	{ OPT_VERIFY, "verify", NULL, MEASURING, "check all of every message, not of one in 64" },
	{ OPT_CORRUPT, "corrupt", NULL, MEASURING,
	  "spoil a byte of the messages: does the receiver notice?" },
	{ OPT_TOUCH, "touch", "HOW", MEASURING,
	  "what the receiver reads: all lines (default), ends, none" },
	{ OPT_HUGE, "huge", NULL, MEASURING " scale",
	  "Hamlyn's areas of huge pages, and an shm:NAME of them, where there are" },
	{ OPT_REPS, "reps", "N", MEASURING " scale logp inline-vs-poll group protocols",
	  "repetitions, of which the median counts" },
	{ OPT_TIME, "time", "MS", MEASURING " revoke scale inline-vs-poll idle group protocols",
	  "milliseconds per test, size and repetition, or per row" },
	{ OPT_SIZES, "sizes", "LIST", MEASURING " inline-vs-poll scale protocols",
	  "message sizes, such as 0,16,4K,1M (or 4k,1m); at most 4M" },
	{ OPT_SYSTEMS, "systems", "LIST", MEASURING " msgloop",
	  "systems, such as hamlyn,pipe,limit" },
	{ OPT_PAIRS, "pairs", "N", "rate", "pairs of processes at the same time (default 1)" },
	{ OPT_SAVE, "save", "FILE", MEASURING, "also write JSON lines to FILE" },
	{ OPT_PLOT, "plot", "FILE", "lat bw compare plot",
	  "also draw FILE, an SVG: latency and bandwidth over size (needs gnuplot)" },
	{ OPT_QUICK, "quick", NULL, "compare", "a few sizes, a few seconds" },
	{ OPT_OP, "op", "OP", "count scale", "the operation, or only this curve, see below" },
	{ OPT_N, "n", "N", "count msgloop syscalls revoke logp wake idle", "how many times" },
	{ OPT_SELF, "self", NULL, "syscalls", "messages to itself, not to a second process" },
	{ OPT_COUNT, "count", "N", "slots scale idle group memory",
	  "so many slots (default 1000000, or all there are), contexts, channels, what grows" },
	{ OPT_SENDERS, "senders", "N", "revoke scale",
	  "processes that send, where there are many (default 4)" },
	{ 'h', "help", NULL, NULL, "this text" },
	{ OPT_VERSION, "version", NULL, NULL, "the version" },
};

void options_help(void)
{
	char left[40];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++) {
		snprintf(left, sizeof(left), "--%s%s%s", words[i].name,
			 words[i].value ? " " : "", words[i].value ? words[i].value : "");
		printf("  %-18s %s%s%s%s\n", left, words[i].what,
		       words[i].commands ? " (" : "",
		       words[i].commands ? words[i].commands : "",
		       words[i].commands ? ")" : "");
	}
}

/* ---- values ------------------------------------------------------------- */

static int parse_number(const char *name, const char *text, uint64_t min, uint64_t max,
			uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || *number < min ||
	    *number > max)
		return fail("--%s takes a number from %llu to %llu, not \"%s\"", name,
			    (unsigned long long)min, (unsigned long long)max, text);
	return 0;
}

static int parse_u32(const char *name, const char *text, uint32_t max, uint32_t *number)
{
	uint64_t value;

	if (parse_number(name, text, 1, max, &value) < 0)
		return -1;
	*number = (uint32_t)value;
	return 0;
}

static int parse_size(const char *text, size_t length, size_t *size)
{
	unsigned long long value;
	int shift = 0;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (end != text && (toupper(*end) == 'K' || toupper(*end) == 'M'))
		shift = toupper(*end++) == 'K' ? 10 : 20;
	if (errno || end != text + length || !length || *text == '-' ||
	    value > PERF_MAX_SIZE >> shift)
		return fail("--sizes takes sizes from 0 to 4M, such as 16,4K; not \"%.*s\"",
			    (int)length, text);
	*size = (size_t)value << shift;
	return 0;
}

static int parse_sizes(const char *text, struct options *options)
{
	size_t length;

	for (;; text += length + 1) {
		length = strcspn(text, ",");
		if (options->nsizes == PERF_MAX_SIZES)
			return fail("--sizes takes at most %d sizes", PERF_MAX_SIZES);
		if (parse_size(text, length, &options->sizes[options->nsizes++]) < 0)
			return -1;
		if (!text[length])
			return 0;
	}
}

static int parse_touch(const char *text, enum perf_touch *touch)
{
	static const char *const names[] = { "all", "ends", "none" };
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], text)) {
			*touch = (enum perf_touch)i;
			return 0;
		}
	return fail("--touch takes all, ends or none, not \"%s\"", text);
}

static int parse_cpus(const char *text, int *cpus)
{
	char rest;

	if (sscanf(text, "%d,%d%c", &cpus[0], &cpus[1], &rest) != 2 || cpus[0] < 0 ||
	    cpus[1] < 0 || cpus[0] >= CPU_SETSIZE || cpus[1] >= CPU_SETSIZE)
		return fail("--cpus takes two CPU numbers, such as 0,1; not \"%s\"", text);
	return 0;
}

static int parse_address(const char *text, uint32_t *address)
{
	struct in_addr in;

	if (inet_pton(AF_INET, text, &in) != 1 || !in.s_addr)
		return fail("--peer-address takes an IPv4 address, such as 10.9.0.2; not \"%s\"",
			    text);
	*address = in.s_addr;
	return 0;
}

/* ---- the command line --------------------------------------------------- */

static const struct option_words *find_words(int id)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].id == id)
			return &words[i];
	return NULL;
}

static int take_value(int id, const char *value, struct options *options)
{
	switch (id) {
	case 'd':
		options->device = value;
		return 0;
	case OPT_PEER_DEVICE:
		options->peer_device = value;
		return 0;
	case OPT_PEER_NETNS:
		options->peer_netns = value;
		return 0;
	case OPT_PEER_ADDRESS:
		return parse_address(value, &options->peer_address);
	case OPT_CPUS:
		options->cpus_given = true;
		return parse_cpus(value, options->cpus);
	case OPT_TIMEOUT:
		return parse_u32("timeout", value, 3600, &options->timeout_s);
	case OPT_TOUCH:
		return parse_touch(value, &options->touch);
	case OPT_REPS:
		return parse_u32("reps", value, PERF_MAX_REPS, &options->reps);
	case OPT_TIME:
		return parse_u32("time", value, 60000, &options->point_ms);
	case OPT_SIZES:
		return parse_sizes(value, options);
	case OPT_SYSTEMS:
		options->systems = value;
		return 0;
	case OPT_SAVE:
		options->save = value;
		return 0;
	case OPT_PAIRS:
		return parse_u32("pairs", value, PERF_MAX_PAIRS, &options->pairs);
	case OPT_PLOT:
		options->plot = value;
		return 0;
	case OPT_OP:
		options->op = value;
		return 0;
	case OPT_N:
		return parse_number("n", value, 1, 1ULL << 40, &options->n);
	case OPT_COUNT:
		return parse_u32("count", value, 1U << 30, &options->count);
	case OPT_SENDERS:
		return parse_u32("senders", value, PERF_MAX_SENDERS, &options->senders);
	}
	return -1;
}

static int take_switch(int id, struct options *options)
{
	switch (id) {
	case OPT_JSON:
		options->format = FORMAT_JSON;
		return 0;
	case OPT_CSV:
		options->format = FORMAT_CSV;
		return 0;
	case OPT_VERIFY:
		options->verify = true;
		return 0;
	case OPT_CORRUPT:
		options->corrupt = true;
		return 0;
	case OPT_QUIET:
		options->quiet = true;
		return 0;
	case OPT_QUICK:
		options->quick = true;
		return 0;
	case OPT_SELF:
		options->self = true;
		return 0;
	case OPT_HUGE:
		options->huge = true;
		return 0;
	}
	return -1;
}

/* Two different CPUs if this process may use two. */
static int default_cpus(struct options *options)
{
	cpu_set_t set;
	int cpu, n = 0;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return fail("cannot tell the CPUs: %s", strerror(errno));
	for (cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			options->cpus[n++] = cpu;
	if (n == 1)
		options->cpus[1] = options->cpus[0];
	return 0;
}

static void make_long_options(struct option *longs)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		longs[i] = (struct option){
			.name = words[i].name,
			.has_arg = words[i].value ? required_argument : no_argument,
			.val = words[i].id,
		};
	longs[i] = (struct option){ 0 };
}

/* Is @name one of the words of @list? */
static bool listed(const char *list, const char *name)
{
	size_t length = strlen(name);
	size_t n;

	for (; *list; list += n + (list[n] == ' ')) {
		n = strcspn(list, " ");
		if (n == length && !memcmp(list, name, n))
			return true;
	}
	return false;
}

static int check_command(const struct command *command, uint64_t used)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (used & 1ULL << i && words[i].commands &&
		    !listed(words[i].commands, command->name))
			return fail("--%s is not for %s; it is for %s", words[i].name,
				    command->name, words[i].commands);
	return 0;
}

/* What stands behind the command, and only where something has to. */
static int take_operand(int argc, char **argv, const struct command *command,
			struct options *options)
{
	bool wants = !strcmp(command->name, "plot");

	if (!wants && argc - optind > 1)
		return fail("one command at a time, but there are \"%s\" and \"%s\"",
			    argv[optind], argv[optind + 1]);
	if (wants && argc - optind != 2)
		return fail("%s takes one file of results", command->name);
	if (wants && !options->plot)
		return fail("plot needs --plot OUT.svg");
	options->operand = wants ? argv[optind + 1] : NULL;
	return 0;
}

static int find_command(int argc, char **argv, const struct command *commands,
			const struct command **command)
{
	if (optind == argc)
		return fail("which command? (see --help)");
	for (*command = commands; (*command)->name; ++*command)
		if (!strcmp((*command)->name, argv[optind]))
			return 0;
	return fail("no command is called \"%s\" (see --help)", argv[optind]);
}

/* Returns OPTIONS_HELP or OPTIONS_VERSION if that was asked for. */
int options_parse(int argc, char **argv, const struct command *commands,
		  struct options *options, const struct command **command)
{
	struct option longs[ARRAY_SIZE(words) + 1];
	const struct option_words *word;
	uint64_t used = 0;
	int id;

	_Static_assert(ARRAY_SIZE(words) <= 64, "used has a bit for each");
	make_long_options(longs);
	if (default_cpus(options) < 0)
		return -1;
	while ((id = getopt_long(argc, argv, "d:h", longs, NULL)) != -1) {
		if (id == 'h')
			return OPTIONS_HELP;
		if (id == OPT_VERSION)
			return OPTIONS_VERSION;
		word = find_words(id);
		if (!word)
			return fail("see --help for the options");
		used |= 1ULL << (word - words);
		if ((word->value ? take_value(id, optarg, options) :
				   take_switch(id, options)) < 0)
			return -1;
	}
	options->ncpus = options->cpus[0] == options->cpus[1] ? 1 : 2;
	if (find_command(argc, argv, commands, command) < 0 ||
	    take_operand(argc, argv, *command, options) < 0)
		return -1;
	if (check_command(*command, used) < 0)
		return -1;
	return options->systems && listed(MEASURING, (*command)->name) ?
	       systems_known(options->systems) : 0;
}
