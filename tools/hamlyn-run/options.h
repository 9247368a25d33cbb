/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stdbool.h>

#include "hosts/hosts.h"

#define MAX_PROCESSES	1024
#define MAX_TIMEOUT_S	(366 * 24 * 3600)
#define NO_STDIN	(-1)

#define EXIT_USAGE		2
#define EXIT_TIMEOUT		124
#define EXIT_NOT_EXECUTABLE	126
#define EXIT_NOT_FOUND		127

/**
 * struct options - the command line
 * @processes: how many
 * @device: for HAMLYN_DEVICE, or NULL: as it is
 * @timeout_s: seconds, or 0: none
 * @stdin_rank: the process that reads standard input, or NO_STDIN
 * @tag_output: "[rank] " before each line
 * @keep_going: a process that fails does not end the others
 * @same_addresses: without address space randomisation
 * @hosts: where they run
 * @launch: the command that reaches a host, or NULL: ssh
 * @agent_path: of hamlyn-run on other hosts, or NULL: as here
 * @bridge_port: the first host's bridge listens there, the next one's at the next; 0: no bridges
 * @clear: bridges may use addresses beside those of the loopback device
 * @agent: this is one
 * @verbose: tell of processes that start and end
 * @command: PROGRAM and its arguments, ended by NULL
 */
struct options {
	int processes;
	const char *device;
	int timeout_s;
	int stdin_rank;
	bool tag_output;
	bool keep_going;
	bool same_addresses;
	struct hosts hosts;
	const char *launch;
	const char *agent_path;
	int bridge_port;
	bool clear;
	bool agent;
	bool verbose;
	char **command;
};

/* Return: 0, 1 if all was told already (--help), or -1 if it was wrong and said so. */
int options_parse(int argc, char **argv, struct options *options);

#endif /* RUN_OPTIONS_H */
