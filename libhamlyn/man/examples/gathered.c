// SPDX-License-Identifier: MIT
/*
 * h_terminus_bind, h_send, h_send_wait, h_send_done
 *
 * What does not fit a work queue entry is fetched by the NIC, from areas that are bound to
 * the terminus. This message comes from two places and arrives as one.
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
	struct hamlyn_nq_entry entry;
	struct h_terminus *terminus;
	struct h_ticket ticket;
	struct h_msg msg = { 0 };
	struct h_area *source;
	struct iovec iov[2];
	struct h_slot *slot;
	struct h_dev *dev;
	int64_t handle;
	char *bytes;

	must(h_open(NULL, &dev), "device");
	must(h_area_alloc(dev, 16384, &attr.area), "area to receive into");
	must(h_nq_create(dev, 16, &attr.nq), "notification queue");
	must(h_slot_create(dev, &attr, &slot), "slot");
	must(h_slot_ticket(slot, 0, 0, 0, &ticket), "ticket");

	must(h_area_alloc(dev, 65536, &source), "area to send from");
	must(h_terminus_create(dev, NULL, &terminus), "terminus");
	must(h_terminus_bind(terminus, 0, source, 0, 0), "bind");
	bytes = h_area_addr(source);
	memset(bytes, 'a', 1000);
	memset(bytes + 40000, 'b', 2000);

	iov[0] = (struct iovec) { bytes, 1000 };
	iov[1] = (struct iovec) { bytes + 40000, 2000 };
	msg.ticket = &ticket;
	msg.offset = 512;
	msg.iov = iov;
	msg.iovcnt = 2;
	handle = must(h_send(terminus, &msg), "send");

	/* Then, and not before, the bytes may be changed */
	must(h_send_wait(terminus, handle, 10 * SECOND), "sending");
	memset(bytes, 0, 1000);

	must(h_recv_block(attr.nq, &entry, 10 * SECOND), "receive");
	bytes = h_area_addr(attr.area);
	printf("%u bytes, from %c to %c\n", entry.length, bytes[512],
	       bytes[512 + 2999]);
	h_close(dev);
	return 0;
}

/*
 * It prints:
 *
 * 3000 bytes, from a to b
 */
