/* SPDX-License-Identifier: MIT */
/*
 * Which IPv4 addresses stand for which hosts of the fabric, as FI_HAMLYN_HOSTS says. Without it
 * there is this host only. The map is made once, before anybody else can ask.
 */
#ifndef HAMLYN_OFI_HOSTS_H
#define HAMLYN_OFI_HOSTS_H

#include <netinet/in.h>

#include <hamlyn.h>

#include "base/provider.h"

/* "ADDRESS=HOST,...". What is wrong with it is in the log, and nothing is offered then. */
void hf_hosts_set(const char *text);
bool hf_hosts_are_wrong(void);

/* The host that has the address; HAMLYN_NONE if the map does not say. */
uint32_t hf_host_of(const struct sockaddr_in *address);
/* Of the device that h_open(NULL) takes: found out once. HAMLYN_NONE if it cannot be opened. */
uint32_t hf_host_own(void);
/* The first address of this host in the map, else the loopback address. */
struct in_addr hf_host_own_address(void);
/* The same of other hosts only. */
uint32_t hf_host_far(const struct sockaddr_in *address);

/*
 * A number for each process that can be named: the port, in network byte order, of one of this
 * host; of others something above UINT16_MAX. 0 is none's. And how many there are, for tables.
 */
uint32_t hf_host_place(const struct sockaddr_in *address);
size_t hf_host_places(void);
/* Whose it is: by an address that an address vector takes for the same process. */
void hf_host_address(uint32_t place, struct sockaddr_in *address);
/* One of them, which no process has. */
uint32_t hf_host_nowhere(void);

#endif
