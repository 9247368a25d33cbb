/* SPDX-License-Identifier: GPL-2.0-only */
/* What joins the embedded devices of a job's hosts: a hamlyn-bridge for each, run by its agent. */
#ifndef RUN_BRIDGES_H
#define RUN_BRIDGES_H

#include "hosts/far.h"
#include "options.h"

#define FABRIC_ID_DIGITS	32

enum bridges_state {
	BRIDGES_GREETING,	/* not all agents are there */
	BRIDGES_JOINING,
	BRIDGES_READY,
};

/**
 * struct bridges - all of them
 * @options: the command line
 * @state: how far they have come
 * @id: the fabric's id, which whoever has it can join: random, and told to agents only
 */
struct bridges {
	const struct options *options;
	enum bridges_state state;
	char id[FABRIC_ID_DIGITS + 1];
};

void bridges_init(struct bridges *bridges, const struct options *options);

/* Goes on when all @n hosts have come so far; in the end their processes are started */
void bridges_step(struct bridges *bridges, struct far *fars, int n);

#endif /* RUN_BRIDGES_H */
