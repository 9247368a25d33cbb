// SPDX-License-Identifier: MIT
/*
 * h_listener_create, h_listener_destroy, h_channel_accept, h_channel_connect,
 * h_channel_peer
 *
 * A server of one client after the other, and a client. What a client does ends at most
 * its own channel. For many clients at a time see h_server_create(3).
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn/channel.h>

#define SECOND 1000000000LL

static void must(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
}

static void visit(void)
{
	struct h_manager *manager;
	struct h_channel *channel;
	struct h_dev *dev;

	must(h_open(NULL, &dev), "client's device");
	must(h_manager_create(dev, NULL, &manager), "client's manager");
	must(h_channel_connect(manager, "greetings.sock", NULL, &channel,
			       10 * SECOND), "connect");
	must(h_channel_send(channel, "hello", 5, 10 * SECOND), "send");
	must(h_channel_close(channel, 10 * SECOND), "close");
	must(h_manager_destroy(manager), "client's manager");
	h_close(dev);
}

static void serve(struct h_channel *channel)
{
	struct h_peer peer;
	char text[64];
	ssize_t n;

	if (!h_channel_peer(channel, &peer) && peer.uid == getuid())
		puts("a client of my own user");
	while ((n = h_channel_receive_copy(channel, text, sizeof(text),
					   10 * SECOND)) >= 0)
		printf("%.*s\n", (int)n, text);
	if (n != -ENODATA)
		warnx("a client: %s", strerror((int)-n));
	h_channel_close(channel, SECOND);
}

int main(void)
{
	const struct h_listener_attr attr = { .mode = 0600 };
	struct h_listener *listener;
	struct h_manager *manager;
	struct h_channel *channel;
	struct h_dev *dev;
	int ret;

	must(h_listener_create("greetings.sock", &attr, &listener), "listen");
	switch (fork()) {
	case -1:
		err(1, "fork");
	case 0:
		visit();
		exit(0);
	}
	must(h_open(NULL, &dev), "device");
	must(h_manager_create(dev, NULL, &manager), "manager");
	ret = h_channel_accept(listener, manager, NULL, &channel, 10 * SECOND);
	if (ret)
		warnx("a client was turned down: %s", strerror(-ret));
	else
		serve(channel);
	h_listener_destroy(listener);
	wait(NULL);
	must(h_manager_destroy(manager), "manager");
	h_close(dev);
	return 0;
}

/*
 * It prints:
 *
 * a client of my own user
 * hello
 */
