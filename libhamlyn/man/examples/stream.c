// SPDX-License-Identifier: MIT
/*
 * h_stream_receiver_create, h_stream_receiver_seed, h_stream_sender_create, h_stream_send,
 * h_stream_flush, h_stream_receive, h_stream_release, h_stream_sender_close,
 * h_stream_receiver_destroy
 *
 * Bytes from one place to another, in order, in place of a pipe. The seed is the right to
 * send; it may go to another process by any means.
 */
#include <err.h>
#include <stdio.h>

#include <hamlyn/stream.h>

#define SECOND 1000000000LL

static void must(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
}

int main(void)
{
	struct h_stream_receiver *receiver;
	struct h_stream_sender *sender;
	struct h_manager *manager;
	struct h_record record;
	struct h_seed seed;
	struct h_dev *dev;
	int ret;

	must(h_open(NULL, &dev), "device");
	must(h_manager_create(dev, NULL, &manager), "manager");
	must(h_stream_receiver_create(manager, NULL, &receiver), "receiver");
	h_stream_receiver_seed(receiver, &seed);
	must(h_stream_sender_create(manager, &seed, &sender), "sender");

	/* Small ones are collected; flush before waiting for an answer */
	must(h_stream_send(sender, "one ", 4, 10 * SECOND), "send");
	must(h_stream_send(sender, "two\n", 4, 10 * SECOND), "send");
	must(h_stream_flush(sender, 10 * SECOND), "flush");
	must(h_stream_sender_close(sender, 10 * SECOND), "close");

	while ((ret = h_stream_receive(receiver, &record, 10 * SECOND)) == 0) {
		fwrite(record.data, 1, record.length, stdout);
		h_stream_release(receiver, &record);
	}
	if (ret != -ENODATA)
		errx(1, "receive: %s", strerror(-ret));
	must(h_stream_receiver_destroy(receiver), "receiver");
	must(h_manager_destroy(manager), "manager");
	h_close(dev);
	return 0;
}

/*
 * It prints:
 *
 * one two
 */
