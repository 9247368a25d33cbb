/* SPDX-License-Identifier: MIT */
/*
 * Processes of other hosts. A connection to one is set up over a socket, as one to a process of
 * this host (conn.h), but at the socket's other end is a thread of ours, which carries what is
 * said to and from a channel that was made by name (HOST/NAME, rendezvous.h). The kernels or
 * bridges say which host it comes from; an administrator says which user of this one it counts as.
 */
#ifndef HAMLYN_OFI_FAR_H
#define HAMLYN_OFI_FAR_H

#include <netinet/in.h>

#include "base/provider.h"

/* Let other hosts find the process that listens at @address; 0 also if there are none. */
int hf_far_listen(const struct sockaddr_in *address);
/* Also of what was never listened at. What has been connected stays so. */
void hf_far_deafen(const struct sockaddr_in *address);

/*
 * A socket to the process that listens at @to, on another host; or an error. It can be written to
 * at once. Its end is all that is said of a connection that cannot be made.
 */
int hf_far_connect(const struct sockaddr_in *to);

/* If a thread of ours is at the other end of an accepted socket, whose host; or HAMLYN_NONE. */
uint32_t hf_far_host(int fd);

/* When libfabric is about to be unloaded, and nothing of the application's is open. */
void hf_far_end(void);

#endif
