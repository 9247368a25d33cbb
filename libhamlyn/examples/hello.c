// SPDX-License-Identifier: MIT
/*
 * hello: a child process says hello to its parent.
 *
 *	cc hello.c -lhamlyn && ./a.out		(HAMLYN_DEVICE names the device)
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn.h>

#define SECOND	1000000000LL

static int64_t check(int64_t ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "hello: %s: %s\n", what, strerror((int)-ret));
		exit(1);
	}
	return ret;
}

/* Whoever has a ticket can send. */
static void send_hello(struct h_dev *dev, const unsigned char *bytes)
{
	struct h_terminus *terminus;
	struct h_ticket ticket;
	int64_t sent;

	check(h_ticket_import(bytes, H_TICKET_BYTES, &ticket), "ticket");
	check(h_terminus_create(dev, NULL, &terminus), "terminus");
	sent = check(h_send_msg(terminus, &ticket, "hello", 6, NULL, 0), "send");
	check(h_send_wait(terminus, sent, SECOND), "send");
}

/* Memory to receive into, a queue for the news, a slot in front of them. */
static void make_ticket(struct h_dev *dev, struct h_slot_attr *attr, unsigned char *bytes)
{
	struct h_ticket ticket;
	struct h_slot *slot;

	check(h_area_alloc(dev, 4096, &attr->area), "area");
	check(h_nq_create(dev, 16, &attr->nq), "notification queue");
	check(h_slot_create(dev, attr, &slot), "slot");
	check(h_slot_ticket(slot, 0, 0, 0, &ticket), "ticket");
	h_ticket_export(&ticket, bytes);
}

static int child(int from_parent)
{
	unsigned char bytes[H_TICKET_BYTES];
	struct h_dev *dev;

	if (read(from_parent, bytes, sizeof(bytes)) != sizeof(bytes))
		return 1;
	check(h_open(NULL, &dev), "device");
	send_hello(dev, bytes);
	h_close(dev);
	return 0;
}

static int parent(int to_child)
{
	unsigned char bytes[H_TICKET_BYTES];
	struct h_slot_attr attr = { 0 };
	struct hamlyn_nq_entry entry;
	struct h_dev *dev;
	int status;

	check(h_open(NULL, &dev), "device");
	make_ticket(dev, &attr, bytes);
	if (write(to_child, bytes, sizeof(bytes)) != sizeof(bytes))
		return 1;
	check(h_recv_block(attr.nq, &entry, 5 * SECOND), "receive");
	printf("%s, %u bytes\n", (char *)h_area_addr(attr.area), entry.length);
	h_close(dev);
	return wait(&status) < 0 || status ? 1 : 0;
}

int main(int argc, char **argv)
{
	int fds[2];
	pid_t pid;

	if (argc > 1) {
		printf("usage: hello [--help]\nA child process sends a message to its parent.\n");
		return strcmp(argv[1], "--help") ? 2 : 0;
	}
	if (pipe(fds) < 0)
		return 1;
	pid = fork();
	if (pid < 0)
		return 1;
	if (pid)
		return parent(fds[1]);
	close(fds[1]);	/* or the child would never see its parent fail */
	return child(fds[0]);
}
