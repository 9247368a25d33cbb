// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hosts/hosts.h"
#include "message.h"
#include "options.h"

/* The launcher gets it as an argument: it must not look like an option */
static bool is_name(const char *name, size_t n)
{
	return n && n < HOST_BYTES && *name != '-';
}

static int parse_slots(const char *text, size_t n, int *slots)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (!errno && *text >= '0' && *text <= '9' && end == text + n && value >= 1 &&
	    value <= MAX_PROCESSES) {
		*slots = (int)value;
		return 0;
	}
	say("--host: a host takes from 1 to %d processes, not \"%.*s\"", MAX_PROCESSES, (int)n,
	    text);
	return -1;
}

/* Of a[:N], [a:b]:N: the last colon that is not inside of brackets */
static const char *find_colon(const char *text, size_t n)
{
	const char *colon = memrchr(text, ':', n), *bracket = memrchr(text, ']', n);

	return colon && (!bracket || colon > bracket) ? colon : NULL;
}

static int parse_host(struct hosts *hosts, const char *text, size_t n)
{
	const char *colon = find_colon(text, n);
	size_t length = colon ? (size_t)(colon - text) : n;
	const char *equals = memchr(text, '=', length);
	size_t named = equals ? (size_t)(equals - text) : length;
	struct host *host;

	if (hosts->n == MAX_HOSTS) {
		say("--host: at most %d hosts", MAX_HOSTS);
		return -1;
	}
	if (!is_name(text, named) || (equals && !is_name(equals + 1, length - named - 1))) {
		say("--host takes NAME[=ADDRESS][:N],..., not \"%.*s\"", (int)n, text);
		return -1;
	}
	host = &hosts->host[hosts->n++];
	snprintf(host->name, sizeof(host->name), "%.*s", (int)named, text);
	if (equals)
		snprintf(host->address, sizeof(host->address), "%.*s", (int)(length - named - 1),
			 equals + 1);
	host->slots = 0;
	return colon ? parse_slots(colon + 1, n - length - 1, &host->slots) : 0;
}

int hosts_parse(struct hosts *hosts, const char *text)
{
	const char *end;

	for (;; text = end + 1) {
		end = strchrnul(text, ',');
		if (parse_host(hosts, text, (size_t)(end - text)) < 0)
			return -1;
		if (!*end)
			return 0;
	}
}

/* Those that say how many they take are filled first, as far as there are processes */
static int fill(struct hosts *hosts, int processes, int *open)
{
	int i;

	*open = 0;
	for (i = 0; i < hosts->n; i++) {
		struct host *host = &hosts->host[i];

		host->processes = host->slots < processes ? host->slots : processes;
		processes -= host->processes;
		*open += !host->slots;
	}
	return processes;
}

int hosts_divide(struct hosts *hosts, int processes)
{
	int open, i, first = 0, left = hosts->n ? fill(hosts, processes, &open) : 0;

	if (left && !open) {
		say("--host: %d processes are to run, and the hosts take %d", processes,
		    processes - left);
		return -1;
	}
	for (i = 0; i < hosts->n; i++) {
		struct host *host = &hosts->host[i];

		if (!host->slots) {
			host->processes = (left + open - 1) / open;
			left -= host->processes;
			open--;
		}
		host->first = first;
		first += host->processes;
	}
	return 0;
}

/* As --peer and --listen of hamlyn-bridge want it: an IPv6 address in brackets */
static void write_address(struct host *host, const struct addrinfo *found)
{
	char text[128] = "";

	getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), NULL, 0,
		    NI_NUMERICHOST);
	snprintf(host->address, sizeof(host->address), found->ai_family == AF_INET6 ? "[%s]" :
		 "%s", text);
}

static int find(struct host *host)
{
	/* The launcher may want to know as whom */
	const char *at = strrchr(host->name, '@');
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int ret;

	if (host->address[0])
		return 0;
	if (host_is_here(host)) {
		say("--bridge: which address do the others know this host by? --host .=ADDRESS");
		return -1;
	}
	ret = getaddrinfo(at ? at + 1 : host->name, NULL, &hints, &found);
	if (ret) {
		say("--bridge: the address of host %s is not known (%s); --host %s=ADDRESS",
		    host->name, gai_strerror(ret), host->name);
		return -1;
	}
	write_address(host, found);
	freeaddrinfo(found);
	return 0;
}

int hosts_find(struct hosts *hosts)
{
	int i;

	for (i = 0; i < hosts->n; i++)
		if (hosts->host[i].processes && find(&hosts->host[i]) < 0)
			return -1;
	return 0;
}
