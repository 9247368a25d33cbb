// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets to a host that is not up are lost, so no process starts before all bridges have
 * found each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "hosts/bridges.h"
#include "message.h"

#define DEVICE_BYTES	512

void bridges_init(struct bridges *bridges, const struct options *options)
{
	unsigned char random[FABRIC_ID_DIGITS / 2];
	size_t i;

	bridges->options = options;
	bridges->state = BRIDGES_GREETING;
	if (!options->bridge_port)
		return;
	if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
		say("--bridge: no random number for the fabric's id");
		exit(1);
	}
	for (i = 0; i < sizeof(random); i++)
		sprintf(bridges->id + i * 2, "%02x", random[i]);
}

/* Of a name of its own for each host: two names may be one machine's */
static void name_device(const struct bridges *bridges, int id, char *device)
{
	const char *given = bridges->options->device;
	size_t name = given ? strcspn(given, ",") : 0;

	if (given)
		snprintf(device, DEVICE_BYTES, "%.*s-%d%.200s", (int)(name < 200 ? name : 200),
			 given, id, given + name);
	else
		snprintf(device, DEVICE_BYTES, "shm:run-%ld-%d", (long)getpid(), id);
}

static void add(char *words, size_t *n, const char *word)
{
	size_t length = strlen(word) + 1;

	if (length > FRAME_BYTES - *n)
		return;
	memcpy(words + *n, word, length);
	*n += length;
}

static void add_address(const struct bridges *bridges, char *words, size_t *n, int id,
			const char *prefix, const struct host *host)
{
	char text[HOST_BYTES + 64];

	snprintf(text, sizeof(text), "%s%s:%d", prefix, host->address,
		 bridges->options->bridge_port + id - 1);
	add(words, n, text);
}

static void order_bridge(const struct bridges *bridges, struct far *fars, int n, int which)
{
	char *words = allocate(FRAME_BYTES, 1);
	char text[DEVICE_BYTES];
	size_t used = 0;
	int i;

	add(words, &used, bridges->id);
	name_device(bridges, which + 1, text);
	add(words, &used, text);
	snprintf(text, sizeof(text), "%d", which + 1);
	add(words, &used, "--host");
	add(words, &used, text);
	add(words, &used, "--listen");
	add_address(bridges, words, &used, which + 1, "", fars[which].host);
	for (i = 0; i < n; i++) {
		if (i == which)
			continue;
		snprintf(text, sizeof(text), "%d=", i + 1);
		add(words, &used, "--peer");
		add_address(bridges, words, &used, i + 1, text, fars[i].host);
	}
	if (bridges->options->clear)
		add(words, &used, "--clear");
	link_put(&fars[which].link, FRAME_BRIDGE, 0, words, used);
	link_flush(&fars[which].link);
	free(words);
}

static bool all_are(const struct far *fars, int n, enum far_state state)
{
	int i;

	for (i = 0; i < n; i++)
		if (fars[i].state != state)
			return false;
	return n > 0;
}

static void start(const struct bridges *bridges, struct far *fars, int n)
{
	char device[DEVICE_BYTES];
	int i;

	for (i = 0; i < n; i++) {
		name_device(bridges, i + 1, device);
		far_start(&fars[i], bridges->options->bridge_port ? device : NULL);
		link_flush(&fars[i].link);
	}
}

void bridges_step(struct bridges *bridges, struct far *fars, int n)
{
	bool one = n == 1 || !bridges->options->bridge_port;
	int i;

	if (bridges->state == BRIDGES_GREETING && all_are(fars, n, FAR_GREETED)) {
		bridges->state = one ? BRIDGES_READY : BRIDGES_JOINING;
		if (one)
			start(bridges, fars, n);
		for (i = 0; i < n && !one; i++)
			order_bridge(bridges, fars, n, i);
	} else if (bridges->state == BRIDGES_JOINING && all_are(fars, n, FAR_BRIDGED)) {
		bridges->state = BRIDGES_READY;
		start(bridges, fars, n);
	}
}
