// SPDX-License-Identifier: GPL-2.0-only
/* hamlyn-bridge: joins the embedded devices of several hosts over TCP. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

void say(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "hamlyn-bridge: %s\n", line);
}

void tell(const struct bridge *b, const char *format, ...)
{
	char line[512];
	va_list args;

	if (b->set.quiet)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "hamlyn-bridge: %s\n", line);
}

/* Of a segment that is there: one that nobody uses is not made for it, or not for long. */
static int show(const struct settings *set)
{
	char why[HAMLYN_EXPLAIN_BYTES];
	struct h_dev *dev;
	int err = h_open(set->device, &dev);

	if (err) {
		h_explain(NULL, why, sizeof(why));
		say("%s: %s", set->device, *why ? why : strerror(-err));
		return 1;
	}
	status_print(shm_of(dev)->seg);
	h_close(dev);
	return 0;
}

static int bridge_run(struct bridge *b)
{
	int err = segment_join(b);

	if (!err)
		err = life_init(b);
	if (err)
		return 1;
	if (watcher_start(b) || sender_start(b)) {
		say("%s: no room for an NQ, or no thread", b->set.device);
		/* Threads that are there have it still. */
		exit(1);
	}
	tell(b, "host %u of %s is ready", b->set.host, b->set.device);
	life_run(b);
	life_end(b);
	/* It asks the sender whose watches are told. */
	watcher_stop(b);
	sender_stop(b);
	segment_leave(b);
	return 0;
}

int main(int argc, char **argv)
{
	struct bridge *b = calloc(1, sizeof(*b));
	int ret;

	if (!b)
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
