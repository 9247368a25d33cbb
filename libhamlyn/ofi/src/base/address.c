// SPDX-License-Identifier: MIT
#include "base/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hosts.h"

/* Ports that are given out; how many are tried until one is free. */
#define FIRST_PORT	32768
#define PORTS		28000
#define PORT_TRIES	1000

int hf_address_resolve(const char *node, const char *service, uint64_t flags,
		       struct sockaddr_in *address)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (flags & FI_SOURCE && node)
		hints.ai_flags |= AI_PASSIVE;
	if (flags & FI_NUMERICHOST)
		hints.ai_flags |= AI_NUMERICHOST;
	if (getaddrinfo(node, service, &hints, &found))
		return -FI_ENODATA;
	memcpy(address, found->ai_addr, sizeof(*address));
	freeaddrinfo(found);
	if (!node)
		address->sin_addr = hf_host_own_address();
	return 0;
}

bool hf_address_valid(const void *address, size_t length)
{
	const struct sockaddr_in *in = address;

	return address && length >= sizeof(*in) && in->sin_family == AF_INET;
}

/* An address is this host's if a socket may have it, and the map does not give it to another. */
bool hf_address_is_here(const struct sockaddr_in *address)
{
	struct sockaddr_in probe = { .sin_family = AF_INET, .sin_addr = address->sin_addr };
	uint32_t host = hf_host_of(address);
	bool here;
	int fd;

	if (host != HAMLYN_NONE)
		return host == hf_host_own();
	if ((ntohl(address->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET ||
	    address->sin_addr.s_addr == htonl(INADDR_ANY))
		return true;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	here = !bind(fd, (struct sockaddr *)&probe, sizeof(probe));
	close(fd);
	return here;
}

bool hf_address_is_known(const struct sockaddr_in *address)
{
	return hf_address_is_here(address) || hf_host_far(address) != HAMLYN_NONE;
}

/* Where the owner of that port listens: in the abstract name space, where names end with owners. */
socklen_t hf_address_name(const struct sockaddr_in *address, struct sockaddr_un *name)
{
	int length;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "hamlyn-fi-%u",
			  (unsigned int)ntohs(address->sin_port));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* A socket at the listener of that address of this host, without waiting for it; or an error. */
int hf_address_reach(const struct sockaddr_in *to)
{
	struct sockaddr_un name;
	socklen_t length = hf_address_name(to, &name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&name, length)) {
		int err = errno;

		close(fd);
		return err == EINTR ? -FI_EAGAIN : -err;
	}
	return fd;
}

static int bind_name(int fd, const struct sockaddr_in *address)
{
	struct sockaddr_un name;
	socklen_t length = hf_address_name(address, &name);

	return bind(fd, (struct sockaddr *)&name, length) ? -errno : 0;
}

/* A socket gets the port that was asked for, or any that nobody has, which is written there. */
int hf_address_bind(int fd, struct sockaddr_in *address)
{
	uint16_t number;
	int err = -FI_EADDRINUSE;

	if (address->sin_port)
		return bind_name(fd, address);
	for (int i = 0; i < PORT_TRIES && err == -FI_EADDRINUSE; i++) {
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -FI_EIO;
		address->sin_port = htons((uint16_t)(FIRST_PORT + number % PORTS));
		err = bind_name(fd, address);
	}
	if (err)
		address->sin_port = 0;
	return err;
}

/* As fi_getname() wants it: what fits is copied, and all of it is asked for. */
int hf_address_copy(const struct sockaddr_in *address, void *to, size_t *length)
{
	size_t room = *length;

	*length = sizeof(*address);
	if (room && to)
		memcpy(to, address, room < sizeof(*address) ? room : sizeof(*address));
	return room < sizeof(*address) ? -FI_ETOOSMALL : 0;
}

/* For struct fi_info, which is freed by libfabric. */
void *hf_address_dup(const struct sockaddr_in *address)
{
	void *copy = malloc(sizeof(*address));

	if (copy)
		memcpy(copy, address, sizeof(*address));
	return copy;
}
