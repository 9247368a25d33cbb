// SPDX-License-Identifier: MIT
/*
 * h_manager_create, h_manager_destroy, h_channel_pair, h_channel_send, h_channel_receive,
 * h_channel_release, h_channel_close
 *
 * Both ends of a channel in one process. A message is read where it arrived, and given
 * back. The end of a channel is no failure: -ENODATA.
 */
#include <err.h>
#include <stdio.h>

#include <hamlyn/channel.h>

#define SECOND 1000000000LL

static void must(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
}

int main(void)
{
	struct h_channel *here, *there;
	struct h_manager *manager;
	struct h_message message;
	struct h_dev *dev;
	int ret;

	must(h_open(NULL, &dev), "device");
	must(h_manager_create(dev, NULL, &manager), "manager");
	must(h_channel_pair(manager, manager, NULL, &here, &there), "channel");

	must(h_channel_send(here, "one", 3, 10 * SECOND), "send");
	must(h_channel_send(here, "three", 5, 10 * SECOND), "send");
	must(h_channel_close(here, 10 * SECOND), "close");

	while ((ret = h_channel_receive(there, &message, 10 * SECOND)) == 0) {
		printf("%.*s\n", (int)message.length,
		       (const char *)message.data);
		must(h_channel_release(there, &message), "release");
	}
	if (ret == -ENODATA)
		puts("that was all");
	else
		warnx("receive: %s", strerror(-ret));
	h_channel_close(there, H_NOWAIT);
	must(h_manager_destroy(manager), "manager");
	h_close(dev);
	return 0;
}

/*
 * It prints:
 *
 * one
 * three
 * that was all
 */
