// SPDX-License-Identifier: GPL-2.0-only
/*
 * as_user: run a command as another user, where there is no su. For root only;
 * the command has the one group and no other, and cannot come back.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* setresuid() */
#endif
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
"usage: as_user UID[:GID] COMMAND [ARGUMENT]...\n"
"\n"
"Runs COMMAND as that user and group (numbers; GID is UID if not given).\n"
"Exit status: the command's, or 125 if it could not be started.\n";

#define MAX_ID	65535

/* Number up to ':' or the end; never 0, root is what we are. */
static int parse_id(const char *text, char **end, unsigned int *id)
{
	unsigned long number;

	errno = 0;
	number = strtoul(text, end, 10);
	if (errno || *end == text || *text == '-' || !number || number > MAX_ID)
		return -1;
	*id = (unsigned int)number;
	return 0;
}

static int parse_user(const char *text, uid_t *uid, gid_t *gid)
{
	char *end;

	if (parse_id(text, &end, uid) < 0)
		return -1;
	*gid = *uid;
	if (*end == ':' && parse_id(end + 1, &end, gid) < 0)
		return -1;
	return *end ? -1 : 0;
}

int main(int argc, char **argv)
{
	uid_t uid;
	gid_t gid;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc < 3) {
		fputs(usage, stderr);
		return 125;
	}
	if (parse_user(argv[1], &uid, &gid) < 0) {
		fprintf(stderr, "as_user: UID[:GID] are numbers from 1 to %d, not \"%s\"\n",
			MAX_ID, argv[1]);
		return 125;
	}
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
	    setresuid(uid, uid, uid) < 0) {
		fprintf(stderr, "as_user: cannot become user %u: %s\n", uid, strerror(errno));
		return 125;
	}
	execvp(argv[2], argv + 2);
	fprintf(stderr, "as_user: cannot run %s: %s\n", argv[2], strerror(errno));
	return 125;
}
