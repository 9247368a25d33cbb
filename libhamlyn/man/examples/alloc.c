// SPDX-License-Identifier: MIT
/*
 * h_manager_alloc, h_manager_free, h_manager_drain, h_manager_poll
 *
 * A megabyte that leaves from where it was made: this process does not copy it. What the
 * other end has no room for yet is sent on whenever the manager is polled.
 */
#include <err.h>
#include <stdio.h>

#include <hamlyn/channel.h>

#define SECOND 1000000000LL
#define LENGTH (1 << 20)

static void must(int ret, const char *what)
{
	if (ret < 0)
		errx(1, "%s: %s", what, strerror(-ret));
}

int main(void)
{
	struct h_channel *here, *there;
	struct h_manager *sends, *takes;
	struct h_message message;
	struct h_dev *dev;
	void *memory;
	int ret;

	must(h_open(NULL, &dev), "device");
	must(h_manager_create(dev, NULL, &sends), "manager");
	must(h_manager_create(dev, NULL, &takes), "manager");
	must(h_channel_pair(sends, takes, NULL, &here, &there), "channel");

	must(h_manager_alloc(sends, LENGTH, &memory), "memory");
	memset(memory, 'm', LENGTH);
	ret = h_channel_send(here, memory, LENGTH, H_NOWAIT);
	/* Taken whole or not at all: -EAGAIN would be the latter */
	must(ret, "send");

	/* One thread is both ends here, so it looks after each in turn */
	while ((ret = h_channel_receive(there, &message, H_NOWAIT)) == -EAGAIN)
		h_manager_poll(sends);
	must(ret, "receive");
	printf("%zu bytes of '%c'\n", message.length,
	       *(const char *)message.data);
	h_channel_release(there, &message);

	/* Nothing is being sent from it any more */
	must(h_manager_drain(sends, 10 * SECOND), "drain");
	must(h_manager_free(sends, memory), "free");
	h_channel_close(here, H_NOWAIT);
	h_channel_close(there, H_NOWAIT);
	must(h_manager_destroy(sends), "manager");
	must(h_manager_destroy(takes), "manager");
	h_close(dev);
	return 0;
}

/*
 * It prints:
 *
 * 1048576 bytes of 'm'
 */
