// SPDX-License-Identifier: GPL-2.0-only
/* hamlyn-bridge: joins the embedded devices of several hosts over TCP. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bridge.h"

/* Of a segment that is there: none is made for it. */
static int show(const struct settings *set)
{
	char name[256], why[HAMLYN_EXPLAIN_BYTES];
	struct h_dev *dev;
	int err;

	snprintf(name, sizeof(name), "%.128s,join", set->device);
	err = h_open(name, &dev);

	if (err) {
		h_explain(NULL, why, sizeof(why));
		say("%s: %s", set->device, *why ? why : strerror(-err));
		return 1;
	}
	status_print(shm_of(dev)->seg, stdout);
	h_close(dev);
	return 0;
}

static int bridge_run(struct bridge *b)
{
	int err = segment_join(b);

	place_init();
	if (!err)
		err = life_init(b);
	if (!err)
		err = names_init(b);
	if (err)
		return 1;
	if (watcher_start(b) || sender_start(b)) {
		say("%s: no room for an NQ, or no thread", b->set.device);
		/* Threads that are there have it still. */
		exit(1);
	}
	tell(b, "host %u of %s is ready", b->set.host, b->set.device);
	life_run(b);
	names_end(b);
	life_end(b);
	/* It asks the sender whose watches are told. */
	watcher_stop(b);
	sender_stop(b);
	segment_leave(b);
	return 0;
}

/* Else a socket gets the number, and a peer what is meant for people. */
static int open_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd < 0 ? -1 : close(fd);
}

int main(int argc, char **argv)
{
	struct bridge *b = calloc(1, sizeof(*b));
	int ret;

	signal(SIGPIPE, SIG_IGN);
	if (!b || open_standard())
		return 1;
	ret = options_parse(argc, argv, &b->set);
	if (ret)
		ret = ret < 0 ? 2 : 0;
	else
		ret = b->set.status ? show(&b->set) : bridge_run(b);
	free(b);
	if (fflush(stdout) || ferror(stdout))
		ret = ret ? ret : 1;
	return ret;
}
