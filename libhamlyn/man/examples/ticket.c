// SPDX-License-Identifier: MIT
/*
 * h_slot_ticket, h_ticket_export, h_ticket_import, h_recv_block
 *
 * Let another process send to 1 KiB from byte 256 on, and nowhere else. The ticket is 48
 * bytes that take any way to it: here, a pipe.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn.h>

#define SECOND 1000000000LL

static int64_t must(int64_t ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror((int)-ret));
	return ret;
}

static void send_hello(int pipe)
{
	unsigned char bytes[H_TICKET_BYTES];
	struct h_terminus *terminus;
	struct h_ticket ticket;
	struct h_dev *dev;
	int64_t handle;

	must(h_open(NULL, &dev), "sender's device");
	must(h_terminus_create(dev, NULL, &terminus), "terminus");
	if (read(pipe, bytes, sizeof(bytes)) != sizeof(bytes))
		errx(1, "no ticket came");
	must(h_ticket_import(bytes, sizeof(bytes), &ticket), "ticket");
	handle = must(h_send_msg(terminus, &ticket, "hello", 6, NULL, 0),
		      "send");
	must(h_send_wait(terminus, handle, 10 * SECOND), "sending");
	h_close(dev);
}

int main(void)
{
	unsigned char bytes[H_TICKET_BYTES];
	struct h_slot_attr attr = { 0 };
	struct hamlyn_nq_entry entry;
	struct h_ticket ticket;
	struct h_slot *slot;
	struct h_dev *dev;
	int fds[2];

	if (pipe(fds))
		err(1, "pipe");
	switch (fork()) {
	case -1:
		err(1, "fork");
	case 0:
		send_hello(fds[0]);
		exit(0);
	}
	must(h_open(NULL, &dev), "device");
	must(h_area_alloc(dev, 4096, &attr.area), "area");
	must(h_nq_create(dev, 16, &attr.nq), "notification queue");
	must(h_slot_create(dev, &attr, &slot), "slot");
	must(h_slot_ticket(slot, 256, 1024, 0, &ticket), "ticket");
	h_ticket_export(&ticket, bytes);
	if (write(fds[1], bytes, sizeof(bytes)) != sizeof(bytes))
		err(1, "pipe");

	must(h_recv_block(attr.nq, &entry, 10 * SECOND), "receive");
	printf("%u bytes: %s\n", entry.length,
	       (char *)h_area_addr(attr.area) + 256);
	wait(NULL);
	h_close(dev);
	return 0;
}

/*
 * It prints:
 *
 * 6 bytes: hello
 */
