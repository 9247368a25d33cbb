// SPDX-License-Identifier: MIT
#include "base/hosts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <hamlyn.h>

/* Tables have half a MiB of address space for each. */
#define MOST_HOSTS	1024
#define PORTS		65536U

struct place {
	struct in_addr address;
	uint32_t host;
};

static struct place *places;
static size_t place_count;
static bool wrong;

/* ---- the map ------------------------------------------------------------- */

static const char *add(char *word)
{
	char *equals = strchr(word, '=');
	struct place place;
	unsigned long host;
	char *end;

	if (!equals)
		return "no \"=\"";
	*equals = '\0';
	if (inet_pton(AF_INET, word, &place.address) != 1)
		return "no IPv4 address before \"=\"";
	errno = 0;
	host = strtoul(equals + 1, &end, 10);
	if (equals[1] < '0' || equals[1] > '9' || *end || errno || host >= HAMLYN_NONE)
		return "no host id after \"=\"";
	for (size_t i = 0; i < place_count; i++)
		if (places[i].address.s_addr == place.address.s_addr)
			return "that address was there before";
	if (place_count == MOST_HOSTS)
		return "more than 1024 addresses";
	place.host = (uint32_t)host;
	places[place_count++] = place;
	return NULL;
}

void hf_hosts_set(const char *text)
{
	char *copy = strdup(text), *at = copy, *word;

	places = calloc(MOST_HOSTS, sizeof(*places));
	wrong = !copy || !places;
	while (!wrong && (word = strsep(&at, ","))) {
		const char *why = add(word);

		if (why) {
			hf_warn("FI_HAMLYN_HOSTS: after %zu addresses: %s; allowed: %s\n",
				place_count, why, "ADDRESS=HOST,...");
			wrong = true;
		}
	}
	free(copy);
}

bool hf_hosts_are_wrong(void)
{
	return wrong;
}

uint32_t hf_host_of(const struct sockaddr_in *address)
{
	for (size_t i = 0; i < place_count; i++)
		if (places[i].address.s_addr == address->sin_addr.s_addr)
			return places[i].host;
	return HAMLYN_NONE;
}

/* Of a host with several addresses the first one counts. */
static uint32_t rank_of(uint32_t host)
{
	uint32_t rank = 1;

	while (places[rank - 1].host != host)
		rank++;
	return rank;
}

uint32_t hf_host_place(const struct sockaddr_in *address)
{
	uint32_t host = hf_host_far(address);
	uint32_t rank = host != HAMLYN_NONE ? rank_of(host) : 0;

	return address->sin_port ? rank * PORTS + address->sin_port : 0;
}

void hf_host_address(uint32_t place, struct sockaddr_in *address)
{
	uint32_t rank = place / PORTS;

	*address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = (in_port_t)(place % PORTS),
		.sin_addr = rank ? places[rank - 1].address : hf_host_own_address(),
	};
}

size_t hf_host_places(void)
{
	return hf_host_nowhere() + 1;
}

uint32_t hf_host_nowhere(void)
{
	return (uint32_t)(place_count + 1) * PORTS;
}

/* ---- which of them is this one ------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t own_host = HAMLYN_NONE;
static struct in_addr own_address;

static void find_own(void)
{
	struct hamlyn_query query;
	struct h_dev *dev;
	int err;

	own_address.s_addr = htonl(INADDR_LOOPBACK);
	if (!place_count)
		return;
	err = h_open(NULL, &dev);
	if (!err) {
		err = h_query(dev, &query);
		h_close(dev);
	}
	if (err) {
		hf_warn("which host of FI_HAMLYN_HOSTS this one is: %s\n", strerror(-err));
		return;
	}
	own_host = query.host;
	for (size_t i = place_count; i--;)
		if (places[i].host == own_host)
			own_address = places[i].address;
}

uint32_t hf_host_own(void)
{
	pthread_once(&once, find_own);
	return own_host;
}

struct in_addr hf_host_own_address(void)
{
	pthread_once(&once, find_own);
	return own_address;
}

uint32_t hf_host_far(const struct sockaddr_in *address)
{
	uint32_t host = hf_host_of(address);

	return host != hf_host_own() ? host : HAMLYN_NONE;
}
