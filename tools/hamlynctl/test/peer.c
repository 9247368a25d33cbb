// SPDX-License-Identifier: GPL-2.0-only
/*
 * hamlynctl-peer: something to administrate. One context with one of each
 * object and a name, that has sent itself messages under the right and under a wrong key.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hamlyn.h>
#include <hamlyn/rendezvous.h>

#define SECOND		1000000000LL
#define AREA_BYTES	8192
#define MESSAGE_BYTES	100

static const char usage[] =
"usage: hamlynctl-peer DEVICE GOOD BAD [PERIOD_US]\n"
"\n"
"Sends itself GOOD messages, and BAD ones under a wrong key, takes the name slot.SLOT,\n"
"says \"ready SLOT\", and stays until it is killed; with PERIOD_US it goes on sending, one\n"
"message a period.\n";

static int64_t check(int64_t ret, const char *what)
{
	if (ret < 0) {
		fprintf(stderr, "hamlynctl-peer: %s: %s\n", what, strerror((int)-ret));
		exit(1);
	}
	return ret;
}

static void send_some(struct h_terminus *terminus, const struct h_ticket *ticket, long count)
{
	static const char text[MESSAGE_BYTES];
	int64_t sent;

	for (; count > 0; count--) {
		sent = check(h_send_msg(terminus, ticket, text, sizeof(text), NULL, 0), "send");
		check(h_send_wait(terminus, sent, 10 * SECOND), "send");
	}
}

/* Whoever has the name is alive as long as the process is. */
static void take_name(struct h_dev *dev, const struct h_ticket *ticket)
{
	const struct h_listener_attr attr = { .dev = dev };
	struct h_listener *listener;
	char path[32];

	snprintf(path, sizeof(path), "%u/slot.%u", ticket->host, ticket->slot);
	check(h_listener_create(path, &attr, &listener), path);
}

int main(int argc, char **argv)
{
	struct h_slot_attr attr = { 0 };
	struct h_terminus *terminus;
	struct h_ticket ticket, wrong;
	struct h_slot *slot;
	struct h_dev *dev;
	useconds_t period;

	if (argc < 4 || argc > 5) {
		fputs(usage, stderr);
		return 2;
	}
	period = argc > 4 ? (useconds_t)strtoul(argv[4], NULL, 10) : 0;
	check(h_open(argv[1], &dev), argv[1]);
	check(h_area_alloc(dev, AREA_BYTES, &attr.area), "area");
	check(h_nq_create(dev, 16, &attr.nq), "notification queue");
	check(h_slot_create(dev, &attr, &slot), "slot");
	check(h_slot_ticket(slot, 0, 0, 0, &ticket), "ticket");
	check(h_terminus_create(dev, NULL, &terminus), "terminus");
	wrong = ticket;
	wrong.key ^= 1;
	send_some(terminus, &ticket, strtol(argv[2], NULL, 10));
	send_some(terminus, &wrong, strtol(argv[3], NULL, 10));
	take_name(dev, &ticket);
	printf("ready %u\n", ticket.slot);
	fflush(stdout);
	for (;;) {
		usleep(period ? period : 1000000);
		send_some(terminus, &ticket, period ? 1 : 0);
	}
}
