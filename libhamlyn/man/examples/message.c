// SPDX-License-Identifier: MIT
/*
 * h_area_alloc, h_area_addr, h_nq_create, h_slot_create, h_terminus_create, h_send_msg,
 * h_recv
 *
 * A message from a process to itself, with all that it takes: an area, an NQ and a slot to
 * receive, a terminus and a ticket to send.
 */
#include <err.h>
#include <sched.h>
#include <stdio.h>

#include <hamlyn.h>

static int64_t must(int64_t ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror((int)-ret));
	return ret;
}

int main(void)
{
	struct h_slot_attr attr = { 0 };
	struct hamlyn_nq_entry entry;
	struct h_terminus *terminus;
	struct h_ticket ticket;
	struct h_slot *slot;
	struct h_dev *dev;
	int64_t ret;

	must(h_open(NULL, &dev), "device");
	must(h_area_alloc(dev, 4096, &attr.area), "area");
	must(h_nq_create(dev, 16, &attr.nq), "notification queue");
	must(h_slot_create(dev, &attr, &slot), "slot");
	must(h_slot_ticket(slot, 256, 64, 0, &ticket), "ticket");
	must(h_terminus_create(dev, NULL, &terminus), "terminus");

	/* -EAGAIN: the work queue is full, for a moment */
	while ((ret = h_send_msg(terminus, &ticket, "hello", 6,
				 NULL, 0)) == -EAGAIN)
		sched_yield();
	must(ret, "send");

	/* Polls; h_recv_block() also sleeps */
	while ((ret = h_recv(attr.nq, &entry)) == 0)
		sched_yield();
	if (ret == -EOVERFLOW)
		errx(1, "%u notifications were lost", h_nq_lost(attr.nq));
	printf("%u bytes at 256: %s\n", entry.length,
	       (char *)h_area_addr(attr.area) + 256);
	h_close(dev);
	return 0;
}

/*
 * It prints:
 *
 * 6 bytes at 256: hello
 */
