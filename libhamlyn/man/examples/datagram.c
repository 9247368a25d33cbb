// SPDX-License-Identifier: MIT
/*
 * h_datagram_receiver_create, h_datagram_receiver_destroy, h_datagram_receiver_seed,
 * h_datagram_resolve, h_datagram_send, h_datagram_receive, h_datagram_release
 *
 * A receiver is ready for one datagram or not at all. The second one of these finds it
 * busy and is dropped, as the receiver's counters say; the sender is not told.
 */
#include <err.h>
#include <stdio.h>

#include <hamlyn/datagram.h>

#define SECOND 1000000000LL

static void must(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
}

int main(void)
{
	struct h_datagram_receiver *receiver;
	struct h_datagram_address to;
	struct h_datagram_stats stats;
	struct h_datagram datagram;
	struct h_manager *manager;
	struct h_seed seed;
	struct h_dev *dev;

	must(h_open(NULL, &dev), "device");
	must(h_manager_create(dev, NULL, &manager), "manager");
	must(h_datagram_receiver_create(manager, NULL, &receiver), "receiver");
	h_datagram_receiver_seed(receiver, &seed);

	/* Whoever has the seed, in any process: */
	must(h_datagram_resolve(&seed, &to), "seed");
	must(h_datagram_send(manager, &to, 128, "first", 6, NULL, SECOND),
	     "send");
	must(h_datagram_send(manager, &to, 128, "second", 7, NULL, SECOND),
	     "send");
	must(h_manager_drain(manager, 10 * SECOND), "drain");

	must(h_datagram_receive(receiver, &datagram, 10 * SECOND), "receive");
	printf("%s, at %zu\n", (const char *)datagram.data, datagram.offset);
	h_datagram_release(receiver);

	must(h_datagram_receiver_stats(receiver, &stats), "counters");
	printf("%llu dropped\n", (unsigned long long)stats.dropped);
	must(h_datagram_receiver_destroy(receiver), "receiver");
	must(h_manager_destroy(manager), "manager");
	h_close(dev);
	return 0;
}

/*
 * It prints:
 *
 * first, at 128
 * 1 dropped
 */
