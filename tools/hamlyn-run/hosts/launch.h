/* SPDX-License-Identifier: GPL-2.0-only */
/* The command that runs our agent on a host. */
#ifndef RUN_LAUNCH_H
#define RUN_LAUNCH_H

#include "hosts/hosts.h"
#include "options.h"

#define LAUNCH_WORDS	64

/* The name comes behind it, as wherever no word has %h */
#define LAUNCH_COMMAND	"ssh -x -o BatchMode=yes"

/* Return: its words, ended by NULL; launch_free() */
char **launch_words(const struct options *options, const struct host *host);
void launch_free(char **words);

#endif /* RUN_LAUNCH_H */
