// SPDX-License-Identifier: GPL-2.0-only
/* A message with a key that is wrong by a bit must not arrive; one with the right key must. */
#include <stdio.h>
#include <string.h>

#include <hamlyn.h>

#define SECOND	1000000000LL

/* Of the line that went wrong: 0 is none. */
static int run(struct h_dev *dev)
{
	struct h_slot_attr attr = { 0 };
	struct hamlyn_nq_entry entry;
	struct h_terminus *terminus;
	struct h_ticket ticket;
	struct h_slot *slot;
	const char *text;

	if (h_area_alloc(dev, 4096, &attr.area) || h_nq_create(dev, 16, &attr.nq) ||
	    h_slot_create(dev, &attr, &slot) || h_slot_ticket(slot, 0, 0, 0, &ticket) ||
	    h_terminus_create(dev, NULL, &terminus))
		return __LINE__;
	text = h_area_addr(attr.area);
	ticket.key ^= 1;
	/* The sender is not told. */
	if (h_send_msg(terminus, &ticket, "forged", 7, NULL, 0) < 0)
		return __LINE__;
	if (!h_recv_block(attr.nq, &entry, SECOND) || *text)
		return __LINE__;
	ticket.key ^= 1;
	if (h_send_msg(terminus, &ticket, "true", 5, NULL, 0) < 0)
		return __LINE__;
	if (h_recv_block(attr.nq, &entry, 60 * SECOND) || strcmp(text, "true"))
		return __LINE__;
	return 0;
}

int main(void)
{
	struct h_dev *dev;
	int line;

	if (h_open(NULL, &dev)) {
		fprintf(stderr, "key: there is no device\n");
		return 1;
	}
	line = run(dev);
	h_close(dev);
	if (line)
		fprintf(stderr, "key: what line %d asks for went wrong\n", line);
	return !!line;
}
