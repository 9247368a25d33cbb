// SPDX-License-Identifier: GPL-2.0-only
#include <systemd/sd-bus.h>
#include "both.h"

static int echo(sd_bus_message *message, void *data, sd_bus_error *error)
{
	const void *bytes;
	sd_bus_message *reply;
	size_t length;
	int ret;

	(void)data;
	(void)error;
	ret = sd_bus_message_read_array(message, 'y', &bytes, &length);
	if (ret < 0)
		return ret;
	if (!sd_bus_message_get_expect_reply(message))
		return 1;
	ret = sd_bus_message_new_method_return(message, &reply);
	if (ret < 0)
		return ret;
	ret = sd_bus_message_append_array(reply, 'y', bytes, length);
	if (ret >= 0)
		ret = sd_bus_send(NULL, reply, NULL);
	sd_bus_message_unref(reply);
	return ret;
}

static const sd_bus_vtable table[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD("Echo", "ay", "ay", echo, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_VTABLE_END
};

static void run_server(void)
{
	sd_bus *bus;

	check(sd_bus_open_user(&bus), "bus");
	check(sd_bus_add_object_vtable(bus, NULL, "/job", "org.example.Job", table, NULL),
	      "object");
	check(sd_bus_request_name(bus, "org.example.Job", 0), "name");
	for (;;)
		if (check(sd_bus_process(bus, NULL), "serve") == 0)
			check(sd_bus_wait(bus, UINT64_MAX), "wait");
}

static sd_bus_message *message_of(sd_bus *bus, size_t length)
{
	sd_bus_message *message;
	char bytes[64] = "hello";

	check(sd_bus_message_new_method_call(bus, &message, "org.example.Job", "/job",
					     "org.example.Job", "Echo"), "message");
	check(sd_bus_message_append_array(message, 'y', bytes, length), "message");
	return message;
}

static void ask(sd_bus *bus)
{
	sd_bus_message *request, *reply;
	int ret;

	do {
		request = message_of(bus, 1);
		ret = sd_bus_call(bus, request, 10000000, NULL, &reply);
		sd_bus_message_unref(request);
		if (ret == -EHOSTUNREACH)	/* not there yet */
			usleep(1000);
	} while (ret == -EHOSTUNREACH);
	check(ret, "call");
	sd_bus_message_unref(reply);
}

static void send_all(long count)
{
	sd_bus_message *message;
	sd_bus *bus;

	check(sd_bus_open_user(&bus), "bus");
	ask(bus);
	while (count--) {
		message = message_of(bus, 64);
		check(sd_bus_message_set_expect_reply(message, 0), "message");
		check(sd_bus_send(bus, message, NULL), "send");
		sd_bus_message_unref(message);
		check(sd_bus_flush(bus), "send");
	}
	ask(bus);
	sd_bus_unref(bus);
}

static void run_client(long count)
{
	several(SENDERS, send_all, count / SENDERS);
}
