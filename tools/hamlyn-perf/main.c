// SPDX-License-Identifier: GPL-2.0-only
/* hamlyn-perf: how fast is it, and beside what? */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "system/chan.h"
#include "options.h"

static const struct command commands[] = {
	{ "lat", "one-way latency between two processes, per size", cmd_lat },
	{ "bw", "bandwidth of a stream between two processes, per size", cmd_bw },
	{ "rate", "messages per second between two processes", cmd_rate },
	{ "load", "latency at half of that rate", cmd_load },
	{ "compare", "all of these beside other systems, taking turns", cmd_compare },
	{ "count", "one operation N times in one process, for callgrind", cmd_count },
	{ "msgloop", "time per message that one thread sends itself", cmd_msgloop },
	{ "syscalls", "system calls per message on the fast path", cmd_syscalls },
	{ "revoke", "how soon an old key is void, with and without traffic", cmd_revoke },
	{ "slots", "many slots: rate, memory, and what finding one costs", cmd_slots },
	{ "memory", "memory of idle contexts, managers and channels", cmd_memory },
	{ "scale", "cost as termini, slots, processes, contexts become many", cmd_scale },
	{ "logp", "LogGP parameters: L, o_s, o_r, g, G", cmd_logp },
	{ "wake", "time to wake a receiver that sleeps, beside pipe, eventfd, futex", cmd_wake },
	{ "inline-vs-poll", "the two kinds of engine beside each other", cmd_modes },
	{ "idle", "CPU time of many idle contexts; falling asleep, waking up", cmd_idle },
	{ "group", "groups with one notification beside single messages", cmd_group },
	{ "protocols", "what the upper layer's protocols cost above raw messages", cmd_protocols },
	{ "plot", "a diagram of results that --save has written", cmd_plot },
	{ 0 },
};

static void help(void)
{
	const struct command *command;
	size_t i;

	printf("usage: hamlyn-perf [OPTION]... COMMAND\n"
	       "       hamlyn-perf plot FILE --plot OUT.svg\n\nCommands:\n");
	for (command = commands; command->name; command++)
		printf("  %-16s %s\n", command->name, command->what);
	printf("\nOptions:\n");
	options_help();
	printf("\nSystems:\n");
	for (i = 0; i < systems_count; i++)
		printf("  %-20s %s\n", systems[i]->name, systems[i]->what);
	printf("\nOperations of count:\n");
	cmd_count_ops();
	printf("\nCurves of scale:\n");
	cmd_scale_ops();
	printf("\nThe embedded device (shm:NAME) works without privilege and without the\n"
	       "module. Exit status: 0, or 1 after a failure, or 2 for a wrong command line.\n");
}

int main(int argc, char **argv)
{
	struct options options = { .timeout_s = 30 };
	const struct command *command = NULL;
	int ret;

	/* Whoever ignores it, as some parents do, cannot wait for processes */
	signal(SIGCHLD, SIG_DFL);
	ret = options_parse(argc, argv, commands, &options, &command);
	if (ret < 0) {
		fprintf(stderr, "hamlyn-perf: %s\n", fail_text());
		return 2;
	}
	if (ret == OPTIONS_HELP) {
		help();
	} else if (ret == OPTIONS_VERSION) {
		printf("hamlyn-perf %s\n", HAMLYN_VERSION);
	} else if (command->run(&options) < 0) {
		fprintf(stderr, "hamlyn-perf: %s\n", fail_text());
		return fail_was_usage() ? 2 : 1;
	}
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "hamlyn-perf: cannot write to standard output: %s\n",
			strerror(errno));
		return 1;
	}
	return 0;
}
