// SPDX-License-Identifier: MIT
/*
 * h_watch, h_unwatch
 *
 * A sender is not told that its messages are refused. One that wants to know when a slot
 * is gone watches it: the news comes once, to a queue of its own, also if the owner was
 * killed.
 */
#include <err.h>
#include <stdio.h>

#include <hamlyn.h>

#define SECOND 1000000000LL

static void must(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
}

int main(void)
{
	struct h_slot_attr attr = { 0 };
	struct hamlyn_nq_entry entry;
	struct h_ticket ticket;
	struct h_watch *watch;
	struct h_slot *slot;
	struct h_nq *news;
	struct h_dev *dev;

	must(h_open(NULL, &dev), "device");
	must(h_area_alloc(dev, 4096, &attr.area), "area");
	must(h_slot_create(dev, &attr, &slot), "slot");
	must(h_slot_ticket(slot, 0, 0, 0, &ticket), "ticket");

	/* Whoever has the ticket, in any process: */
	must(h_nq_create(dev, 16, &news), "notification queue");
	must(h_watch(dev, &ticket, news, 7, &watch), "watch");

	must(h_slot_destroy(slot), "slot");

	must(h_recv_block(news, &entry, 10 * SECOND), "news");
	if (entry.flags & HAMLYN_NQE_PEER_GONE)
		printf("what watch %llu is about is gone\n",
		       (unsigned long long)entry.data);
	must(h_unwatch(watch), "watch");
	h_close(dev);
	return 0;
}

/*
 * It prints:
 *
 * what watch 7 is about is gone
 */
