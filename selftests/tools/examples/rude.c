// SPDX-License-Identifier: GPL-2.0-only
/* A client that the examples' servers have to put up with; see examples-test.sh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <hamlyn/channel.h>

#define SECOND		1000000000LL
#define PATIENCE	(20 * SECOND)
#define ROUNDS		8

static const char usage[] =
"usage: rude short PATH    send an echo server more than it may send back\n"
"       rude absent PATH   end without looking whether the server does, and tell how\n"
"                          many milliseconds another client waits meanwhile\n";

struct client {
	struct h_dev *dev;
	struct h_manager *m;
	struct h_channel *ch;
};

static int64_t must(int64_t ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "rude: %s: %s\n", what, strerror((int)-ret));
		exit(1);
	}
	return ret;
}

static struct client open_client(const char *path, size_t max_message)
{
	const struct h_channel_attr attr = {
		.flags = H_CONNECT_WAIT,
		.max_message = max_message,
	};
	struct client c;

	must(h_open(NULL, &c.dev), "open");
	must(h_manager_create(c.dev, NULL, &c.m), "manager");
	must(h_channel_connect(c.m, path, &attr, &c.ch, PATIENCE), "connect");
	return c;
}

static void close_client(struct client *c)
{
	h_channel_close(c->ch, H_NOWAIT);
	h_manager_destroy(c->m);
	h_close(c->dev);
}

/* 0 if the server has given us up. */
static int send_too_much(const char *path)
{
	struct client c = open_client(path, 16);
	struct h_message m;
	char data[64] = "";
	int ret;

	must(h_channel_send(c.ch, data, sizeof(data), PATIENCE), "send");
	ret = h_channel_receive(c.ch, &m, PATIENCE);
	close_client(&c);
	return ret == 0 || ret == -ETIMEDOUT;
}

static void ask(const char *path)
{
	struct client c = open_client(path, 0);
	struct h_message m;

	must(h_channel_request(c.ch, "question", 8, &m, PATIENCE), "request");
	h_channel_release(c.ch, &m);
	must(h_channel_close(c.ch, PATIENCE), "close");
	h_manager_destroy(c.m);
	h_close(c.dev);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static int be_absent(const char *path)
{
	struct client c[ROUNDS];
	int64_t begin, all = 0;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		c[i] = open_client(path, 0);
		h_channel_shutdown(c[i].ch, H_NOWAIT);
		begin = now_ms();
		ask(path);
		all += now_ms() - begin;
	}
	for (i = 0; i < ROUNDS; i++)
		close_client(&c[i]);
	printf("%lld\n", (long long)all);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "short"))
		return send_too_much(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "absent"))
		return be_absent(argv[2]);
	fputs(usage, stderr);
	return 2;
}
