// SPDX-License-Identifier: MIT
/*
 * h_manager_dispatch, h_manager_fd, h_manager_wait, h_channel_on_ready
 *
 * An event loop that waits for channels and for other descriptors, here the standard
 * input. In a loop that waits for channels only, h_manager_wait() stands in place of
 * poll(2).
 */
#include <err.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <hamlyn/channel.h>

#define SECOND 1000000000LL

static bool over;

static void must(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
}

/* Called as long as there is something: one message a call is fair. */
static void ready(struct h_channel *channel, void *arg)
{
	struct h_message message;
	int ret;

	ret = h_channel_receive(channel, &message, H_NOWAIT);
	if (ret == -EAGAIN)
		return;
	if (ret) {
		printf("%s: %s\n", (char *)arg,
		       ret == -ENODATA ? "the end" : strerror(-ret));
		over = true;
		h_channel_on_ready(channel, NULL, NULL);
		return;
	}
	printf("%s: %.*s\n", (char *)arg, (int)message.length,
	       (const char *)message.data);
	h_channel_release(channel, &message);
}

int main(void)
{
	struct h_channel *here, *there;
	struct h_manager *manager;
	struct h_dev *dev;
	char line[256];
	ssize_t n = 1;
	int fd;

	must(h_open(NULL, &dev), "device");
	must(h_manager_create(dev, NULL, &manager), "manager");
	must(h_channel_pair(manager, manager, NULL, &here, &there), "channel");
	fd = h_manager_fd(manager);
	must(fd, "descriptor");
	h_channel_on_ready(there, ready, "there");
	must(h_channel_send(here, "hello", 5, 10 * SECOND), "send");

	while (!over) {
		struct pollfd fds[2] = {
			{ .fd = fd, .events = POLLIN },
			{ .fd = n > 0 ? STDIN_FILENO : -1, .events = POLLIN },
		};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			err(1, "poll");
		if (fds[1].revents) {
			n = read(STDIN_FILENO, line, sizeof(line));
			if (n > 0)
				must(h_channel_send(here, line, n, SECOND),
				     "send");
			else
				h_channel_shutdown(here, H_NOWAIT);
		}
		if (fds[0].revents)
			h_manager_dispatch(manager);
	}
	h_channel_close(here, SECOND);
	h_channel_close(there, SECOND);
	must(h_manager_destroy(manager), "manager");
	h_close(dev);
	return 0;
}

/*
 * It prints, with nothing on its standard input:
 *
 * there: hello
 * there: the end
 */
