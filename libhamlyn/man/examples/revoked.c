// SPDX-License-Identifier: MIT
/*
 * h_slot_rekey, h_slot_destroy, h_area_remove, h_nq_destroy, h_terminus_destroy,
 * h_slot_stats
 *
 * Take back the right to send. Once the slot has another key, nothing lands by the old
 * one, and the sender is not told. A slot goes before its area and its NQ.
 */
#include <err.h>
#include <stdio.h>

#include <hamlyn.h>

#define SECOND 1000000000LL

static int64_t must(int64_t ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror((int)-ret));
	return ret;
}

int main(void)
{
	struct h_slot_attr attr = { 0 };
	struct h_terminus *terminus;
	struct hamlyn_stats stats;
	struct h_ticket ticket;
	struct h_slot *slot;
	struct h_dev *dev;
	int64_t handle;
	int ret;

	must(h_open(NULL, &dev), "device");
	must(h_area_alloc(dev, 4096, &attr.area), "area");
	must(h_nq_create(dev, 16, &attr.nq), "notification queue");
	must(h_slot_create(dev, &attr, &slot), "slot");
	must(h_slot_ticket(slot, 0, 0, 0, &ticket), "ticket");
	must(h_terminus_create(dev, NULL, &terminus), "terminus");

	/* -ETIMEDOUT: a sender was stopped while its packet landed */
	while ((ret = h_slot_rekey(slot)) == -ETIMEDOUT)
		warnx("a sender is stopped, trying again");
	must(ret, "rekey");

	handle = must(h_send_msg(terminus, &ticket, "hello", 6, NULL, 0),
		      "send");
	must(h_send_wait(terminus, handle, 10 * SECOND), "sending");
	must(h_slot_stats(slot, &stats), "counters");
	printf("wrong keys: %llu\n",
	       (unsigned long long)stats.rejects[HAMLYN_REJECT_KEY]);

	printf("area: %s\n", strerror(-h_area_remove(attr.area)));
	must(h_slot_destroy(slot), "slot");
	must(h_nq_destroy(attr.nq), "notification queue");
	must(h_area_remove(attr.area), "area");
	must(h_terminus_destroy(terminus), "terminus");
	h_close(dev);
	return 0;
}

/*
 * It prints:
 *
 * wrong keys: 1
 * area: Device or resource busy
 */
