// SPDX-License-Identifier: GPL-2.0-only
/*
 * D-Bus by sd-bus, over a dbus-daemon of our own: method calls without a reply, an array of bytes
 * each. The daemon is a third process on the two processors, whose time is not counted. It queues
 * as much as there is, so the receiver gives credits as Hamlyn's does.
 */
#include "system/absent.h"

#define NAME	"dbus"
#define WHAT	"D-Bus through dbus-daemon (sd-bus), blocking"

#ifdef HAVE_DBUS
#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "base/clock.h"
#include "base/library.h"
#include "system/bus.h"
#include "system/peer.h"

static struct {
	__typeof__(sd_bus_new) *sd_bus_new;
	__typeof__(sd_bus_set_address) *sd_bus_set_address;
	__typeof__(sd_bus_set_bus_client) *sd_bus_set_bus_client;
	__typeof__(sd_bus_start) *sd_bus_start;
	__typeof__(sd_bus_get_unique_name) *sd_bus_get_unique_name;
	__typeof__(sd_bus_message_new_method_call) *sd_bus_message_new_method_call;
	__typeof__(sd_bus_send) *sd_bus_send;
	__typeof__(sd_bus_message_set_expect_reply) *sd_bus_message_set_expect_reply;
	__typeof__(sd_bus_message_append_array) *sd_bus_message_append_array;
	__typeof__(sd_bus_message_append_basic) *sd_bus_message_append_basic;
	__typeof__(sd_bus_message_read_array) *sd_bus_message_read_array;
	__typeof__(sd_bus_message_read_basic) *sd_bus_message_read_basic;
	__typeof__(sd_bus_message_is_method_call) *sd_bus_message_is_method_call;
	__typeof__(sd_bus_message_unref) *sd_bus_message_unref;
	__typeof__(sd_bus_flush) *sd_bus_flush;
	__typeof__(sd_bus_process) *sd_bus_process;
	__typeof__(sd_bus_wait) *sd_bus_wait;
	__typeof__(sd_bus_close_unref) *sd_bus_close_unref;
} bus;

static const struct library_call calls[] = {
	LIBRARY_CALL(bus, sd_bus_new),
	LIBRARY_CALL(bus, sd_bus_set_address),
	LIBRARY_CALL(bus, sd_bus_set_bus_client),
	LIBRARY_CALL(bus, sd_bus_start),
	LIBRARY_CALL(bus, sd_bus_get_unique_name),
	LIBRARY_CALL(bus, sd_bus_message_new_method_call),
	LIBRARY_CALL(bus, sd_bus_send),
	LIBRARY_CALL(bus, sd_bus_message_set_expect_reply),
	LIBRARY_CALL(bus, sd_bus_message_append_array),
	LIBRARY_CALL(bus, sd_bus_message_append_basic),
	LIBRARY_CALL(bus, sd_bus_message_read_array),
	LIBRARY_CALL(bus, sd_bus_message_read_basic),
	LIBRARY_CALL(bus, sd_bus_message_is_method_call),
	LIBRARY_CALL(bus, sd_bus_message_unref),
	LIBRARY_CALL(bus, sd_bus_flush),
	LIBRARY_CALL(bus, sd_bus_process),
	LIBRARY_CALL(bus, sd_bus_wait),
	LIBRARY_CALL(bus, sd_bus_close_unref),
};

static const struct library library = { "libsystemd.so.0", calls, ARRAY_SIZE(calls) };

#define INTERFACE	"org.hamlyn.Perf"

struct peer_name {
	char text[64];
};

struct dbus_chan {
	struct chan chan;
	sd_bus *bus;
	sd_bus_message *message;
	struct peer_name peer;
	uint64_t round;		/* of prepare(): a credit that comes late is of an earlier one */
	uint64_t sent;
	uint64_t acked;
	uint64_t taken;
	uint64_t granted;
};

static inline struct dbus_chan *to_dbus(struct chan *chan)
{
	return container_of(chan, struct dbus_chan, chan);
}

static int wrong(const char *what, int ret)
{
	return fail("%s: %s", what, strerror(-ret));
}

static const char *dbus_missing(const struct options *options)
{
	(void)options;
	return peer_installed(BUS_PROGRAM) ? library_missing(&library) :
	       BUS_PROGRAM " is not installed";
}

static void *dbus_make(const struct options *options)
{
	return bus_start(options);
}

static void dbus_unmake(void *stage)
{
	bus_stop(stage);
}

static void dbus_close(struct chan *chan)
{
	struct dbus_chan *d = to_dbus(chan);

	if (d->bus)
		bus.sd_bus_close_unref(d->bus);
	free(chan->out);
	free(d);
}

static int enter(struct dbus_chan *d, const struct bus *stage)
{
	int ret = bus.sd_bus_new(&d->bus);

	if (ret >= 0)
		ret = bus.sd_bus_set_address(d->bus, stage->address);
	if (ret >= 0)
		ret = bus.sd_bus_set_bus_client(d->bus, 1);
	if (ret >= 0)
		ret = bus.sd_bus_start(d->bus);
	return ret < 0 ? wrong("cannot enter the bus", ret) : 0;
}

static int meet(struct dbus_chan *d)
{
	struct peer_name own = { "" };
	const char *name;
	int ret = bus.sd_bus_get_unique_name(d->bus, &name);

	if (ret < 0)
		return wrong("no name on the bus", ret);
	snprintf(own.text, sizeof(own.text), "%s", name);
	return pair_swap(d->chan.side, &own, &d->peer, sizeof(own));
}

static struct chan *dbus_open(struct side *side, void *stage)
{
	struct dbus_chan *d = calloc(1, sizeof(*d));

	if (!d) {
		fail("out of memory");
		return NULL;
	}
	d->chan.system = &sys_dbus;
	d->chan.side = side;
	d->chan.out = chan_alloc(chan_room());
	if (!d->chan.out || library_load(&library) < 0 || enter(d, stage) < 0 || meet(d) < 0) {
		dbus_close(&d->chan);
		return NULL;
	}
	return &d->chan;
}

static int dbus_prepare(struct chan *chan)
{
	struct dbus_chan *d = to_dbus(chan);

	d->round++;
	d->sent = 0;
	d->acked = 0;
	d->taken = 0;
	d->granted = 0;
	return 0;
}

static int new_call(struct dbus_chan *d, const char *member, sd_bus_message **message)
{
	int ret = bus.sd_bus_message_new_method_call(d->bus, message, d->peer.text, "/",
						     INTERFACE, member);

	return ret < 0 ? ret : bus.sd_bus_message_set_expect_reply(*message, 0);
}

/* What the socket does not take at once is queued: it has to leave before we do more. */
static int post(struct dbus_chan *d, sd_bus_message *message, int ret)
{
	if (ret >= 0)
		ret = bus.sd_bus_send(d->bus, message, NULL);
	if (ret >= 0)
		ret = bus.sd_bus_flush(d->bus);
	bus.sd_bus_message_unref(message);
	return ret < 0 ? wrong("cannot send", ret) : 0;
}

static int give_credit(struct dbus_chan *d)
{
	sd_bus_message *message = NULL;
	int ret = new_call(d, "Credit", &message);

	if (ret >= 0)
		ret = bus.sd_bus_message_append_basic(message, 't', &d->round);
	if (ret >= 0)
		ret = bus.sd_bus_message_append_basic(message, 't', &d->taken);
	d->granted = d->taken;
	return post(d, message, ret);
}

/* The next message for us, whatever it is; sleeps. */
static sd_bus_message *next_message(struct dbus_chan *d)
{
	uint64_t deadline = 0, patience = d->chan.side->options->timeout_s * NSEC_PER_SEC;
	sd_bus_message *message = NULL;
	int ret;

	while (!message) {
		ret = bus.sd_bus_process(d->bus, &message);
		if (!ret) {
			deadline = deadline ? deadline : clock_ns() + patience;
			ret = bus.sd_bus_wait(d->bus, patience / 1000);
		}
		if (ret < 0 || (deadline && !message && clock_ns() > deadline)) {
			fail("no message: %s", ret < 0 ? strerror(-ret) : "none in time");
			return NULL;
		}
	}
	return message;
}

static int take_credit(struct dbus_chan *d, sd_bus_message *message)
{
	uint64_t round, number;
	int ret = bus.sd_bus_message_read_basic(message, 't', &round);

	if (ret >= 0)
		ret = bus.sd_bus_message_read_basic(message, 't', &number);
	if (ret < 0)
		return wrong("a credit", ret);
	if (round == d->round)
		d->acked = number;
	return 0;
}

/*
 * Until a message is there that has @member: else it is a credit, or what the daemon says when
 * we come. 0 with the message, 1 with a credit that was taken, or -1.
 */
static int next_of_two(struct dbus_chan *d, sd_bus_message **found)
{
	int ret = 1;

	*found = next_message(d);
	if (!*found)
		return -1;
	if (bus.sd_bus_message_is_method_call(*found, INTERFACE, "Message") > 0)
		return 0;
	if (bus.sd_bus_message_is_method_call(*found, INTERFACE, "Credit") > 0 &&
	    take_credit(d, *found) < 0)
		ret = -1;
	bus.sd_bus_message_unref(*found);
	return ret;
}

static int wait_credit(struct dbus_chan *d)
{
	sd_bus_message *message;
	int ret = next_of_two(d, &message);

	if (ret)
		return ret;
	bus.sd_bus_message_unref(message);
	return fail("a message where a credit was due");
}

static void *dbus_reserve(struct chan *chan)
{
	struct dbus_chan *d = to_dbus(chan);

	while (chan->stream && d->sent - d->acked >= chan->count)
		if (wait_credit(d) < 0)
			return NULL;
	return chan_out(chan);
}

static int dbus_commit(struct chan *chan)
{
	struct dbus_chan *d = to_dbus(chan);
	sd_bus_message *message = NULL;
	int ret = new_call(d, "Message", &message);

	if (ret >= 0)
		ret = bus.sd_bus_message_append_array(message, 'y', chan_out(chan), chan->size);
	d->sent++;
	chan->out_pos = chan_next(chan, chan->out_pos);
	return post(d, message, ret);
}

static const void *dbus_take(struct chan *chan)
{
	struct dbus_chan *d = to_dbus(chan);
	const void *bytes = NULL;
	size_t length = 0;	/* what a message without an array has */
	int ret;

	do
		ret = next_of_two(d, &d->message);
	while (ret > 0);
	if (ret < 0)
		return NULL;
	ret = bus.sd_bus_message_read_array(d->message, 'y', &bytes, &length);
	if (ret < 0 || !chan_fits(chan, length)) {
		bus.sd_bus_message_unref(d->message);
		if (ret < 0)
			wrong("not a message", ret);
		return NULL;
	}
	chan->in_pos = chan_next(chan, chan->in_pos);
	/* An empty array may have no address. */
	return length ? bytes : d->message;
}

/* As often as Hamlyn's receiver does */
static int dbus_release(struct chan *chan)
{
	struct dbus_chan *d = to_dbus(chan);

	bus.sd_bus_message_unref(d->message);
	if (!chan->stream || ++d->taken - d->granted < (chan->count + 3) / 4)
		return 0;
	return give_credit(d);
}

const struct system sys_dbus = {
	.name = NAME,
	.what = WHAT,
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.helped = true,
	.missing = dbus_missing,
	.make = dbus_make,
	.unmake = dbus_unmake,
	.open = dbus_open,
	.close = dbus_close,
	.prepare = dbus_prepare,
	.reserve = dbus_reserve,
	.commit = dbus_commit,
	.take = dbus_take,
	.release = dbus_release,
};

#else /* HAVE_DBUS */
SYSTEM_ABSENT(sys_dbus, NAME, WHAT, "libsystemd-dev");
#endif
