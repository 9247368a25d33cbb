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

static void run_client(long count)
{
	sd_bus_message *request, *reply;
	char message[64] = "hello";
	sd_bus *bus;
	int ret;

	check(sd_bus_open_user(&bus), "bus");
	while (count) {
		check(sd_bus_message_new_method_call(bus, &request, "org.example.Job", "/job",
						     "org.example.Job", "Echo"), "request");
		check(sd_bus_message_append_array(request, 'y', message, sizeof(message)),
		      "request");
		ret = sd_bus_call(bus, request, 1000000, NULL, &reply);
		sd_bus_message_unref(request);
		if (ret == -EHOSTUNREACH) {	/* not there yet */
			usleep(1000);
			continue;
		}
		check(ret, "call");
		sd_bus_message_unref(reply);
		count--;
	}
	sd_bus_unref(bus);
}
