// SPDX-License-Identifier: GPL-2.0-only
#include <systemd/sd-bus.h>
#include "both.h"

#define AT_ONCE	2

static sd_bus *bus;
static long last_one, fresh, left;

/* ---- workers ---- */

static int work_one(sd_bus_message *message, void *data, sd_bus_error *error)
{
	const void *bytes;
	size_t length;

	(void)data;
	(void)error;
	check(sd_bus_message_read_array(message, 'y', &bytes, &length), "item");
	if (!length || --last_one == 0)
		_exit(0);
	return sd_bus_reply_method_return(message, "y", 1);
}

static const sd_bus_vtable worker[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("Work", "ay", "y", work_one, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END
};

static void serve(const sd_bus_vtable *table)
{
	check(sd_bus_open_user(&bus), "bus");
	check(sd_bus_add_object_vtable(bus, NULL, "/job", "org.example.Job", table, NULL),
	      "object");
}

static void step(void)
{
	if (check(sd_bus_process(bus, NULL), "serve") == 0)
		check(sd_bus_wait(bus, UINT64_MAX), "wait");
}

static void work(long last)
{
	last_one = last;
	serve(worker);
	while (sd_bus_call_method(bus, "org.example.Job", "/job", "org.example.Job", "Join", NULL,
				  NULL, "") < 0)
		usleep(1000);
	for (;;)
		step();
}

static void run_server(void)
{
	if (check(fork(), "fork") == 0) {
		work(10);
		exit(0);
	}
	several(SENDERS, work, 0);
}

/* ---- the master ---- */

static char workers[64][64];
static int number;

static int take_result(sd_bus_message *reply, void *data, sd_bus_error *error);

static void send_to(const char *name, const char *item, size_t length)
{
	sd_bus_message *message;

	check(sd_bus_message_new_method_call(bus, &message, name, "/job", "org.example.Job",
					     "Work"), "item");
	check(sd_bus_message_append_array(message, 'y', item, length), "item");
	if (length)
		check(sd_bus_call_async(bus, NULL, message, take_result, (void *)name, UINT64_MAX),
		      "send");
	else
		check(sd_bus_send(bus, message, NULL), "send");
	sd_bus_message_unref(message);
}

static void hand_out(const char *name)
{
	char item[64] = "item";

	if (fresh > 0) {
		fresh--;
		send_to(name, item, sizeof(item));
	}
}

/* The bus answers for one that is gone; all items are alike here, so one more is the same. */
static void forget(char *name)
{
	int i;

	name[0] = '\0';
	fresh++;
	for (i = 0; i < number; i++)
		if (workers[i][0]) {
			hand_out(workers[i]);
			return;
		}
}

static int take_result(sd_bus_message *reply, void *data, sd_bus_error *error)
{
	(void)error;
	if (sd_bus_message_is_method_error(reply, NULL)) {
		forget(data);
		return 0;
	}
	left--;
	hand_out(data);
	return 0;
}

static int join(sd_bus_message *message, void *data, sd_bus_error *error)
{
	char *name = workers[number++];
	int i;

	(void)data;
	(void)error;
	snprintf(name, sizeof(workers[0]), "%s", sd_bus_message_get_sender(message));
	check(sd_bus_reply_method_return(message, ""), "reply");
	for (i = 0; i < AT_ONCE; i++)
		hand_out(name);
	return 1;
}

static const sd_bus_vtable master[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("Join", "", "", join, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END
};

static void run_client(long count)
{
	int i;

	fresh = count;
	left = count;
	serve(master);
	check(sd_bus_request_name(bus, "org.example.Job", 0), "name");
	while (left > 0)
		step();
	for (i = 0; i < number; i++)
		if (workers[i][0])
			send_to(workers[i], "", 0);
	check(sd_bus_flush(bus), "flush");
	sd_bus_unref(bus);
}
