/* SPDX-License-Identifier: MIT */
/*
 * Addresses: those of IPv4, as ofi_rxm wants them, but nothing goes over IP. The port is a name
 * among the processes of a network namespace, and the host has to be this one, or one of hosts.h.
 */
#ifndef HAMLYN_OFI_ADDRESS_H
#define HAMLYN_OFI_ADDRESS_H

#include <netinet/in.h>
#include <sys/un.h>

#include "base/provider.h"

int hf_address_resolve(const char *node, const char *service, uint64_t flags,
		       struct sockaddr_in *address);
bool hf_address_valid(const void *address, size_t length);
bool hf_address_is_here(const struct sockaddr_in *address);
bool hf_address_is_known(const struct sockaddr_in *address);
socklen_t hf_address_name(const struct sockaddr_in *address, struct sockaddr_un *name);
int hf_address_reach(const struct sockaddr_in *to);
int hf_address_bind(int fd, struct sockaddr_in *address);
int hf_address_copy(const struct sockaddr_in *address, void *to, size_t *length);
void *hf_address_dup(const struct sockaddr_in *address);

#endif
