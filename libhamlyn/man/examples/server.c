// SPDX-License-Identifier: MIT
/*
 * h_server_create, h_server_run, h_server_stop, h_server_close, h_channel_dial,
 * h_channel_request, h_channel_reply
 *
 * A server that adds, of any number of clients, and one client, which waits a second for
 * its reply. A client that sends nonsense loses its channel; the others do not notice.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn/server.h>

#define SECOND 1000000000LL

static int add(struct h_channel *client, const struct h_message *request,
	       void *arg)
{
	struct h_server **server = arg;
	int64_t pair[2], sum;

	if (request->length == 0) {
		h_server_stop(*server);
		return h_channel_reply(client, request, "", 0, H_NOWAIT);
	}
	if (request->length != sizeof(pair))
		return -EPROTO;
	memcpy(pair, request->data, sizeof(pair));
	if (__builtin_add_overflow(pair[0], pair[1], &sum))
		return -EPROTO;
	/* After -EAGAIN the server calls again when there is room */
	return h_channel_reply(client, request, &sum, sizeof(sum), H_NOWAIT);
}

static int client(void)
{
	int64_t pair[2] = { 40, 2 }, sum;
	struct h_channel *channel;
	char why[HAMLYN_EXPLAIN_BYTES];
	struct h_message reply;
	int ret;

	ret = h_channel_dial("adds.sock", NULL, &channel, 10 * SECOND);
	if (ret) {
		h_explain(NULL, why, sizeof(why));
		errx(1, "no server: %s: %s", strerror(-ret), why);
	}
	ret = h_channel_request(channel, pair, sizeof(pair), &reply, SECOND);
	if (ret == -ETIMEDOUT)
		errx(1, "no reply within a second");
	if (ret)
		errx(1, "request: %s", strerror(-ret));
	if (reply.length == sizeof(sum)) {
		memcpy(&sum, reply.data, sizeof(sum));
		printf("40 + 2 = %lld\n", (long long)sum);
	}
	h_channel_release(channel, &reply);
	if (h_channel_request(channel, "", 0, &reply, SECOND) == 0)
		h_channel_release(channel, &reply);
	return h_channel_close(channel, SECOND) ? 1 : 0;
}

int main(void)
{
	struct h_server *server;
	int ret;

	ret = h_server_create("adds.sock", add, &server, NULL, &server);
	if (ret)
		errx(1, "server: %s", strerror(-ret));
	switch (fork()) {
	case -1:
		err(1, "fork");
	case 0:
		exit(client());
	}
	while ((ret = h_server_run(server, H_FOREVER)) == -EINTR)
		;
	if (ret)
		warnx("server: %s", strerror(-ret));
	h_server_close(server, SECOND);
	wait(NULL);
	return ret ? 1 : 0;
}

/*
 * It prints:
 *
 * 40 + 2 = 42
 */
