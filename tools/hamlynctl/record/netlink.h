/* SPDX-License-Identifier: GPL-2.0-only */
/* Talking to the module. Functions return 0 or a negative errno unless they say status. */
#ifndef HAMLYNCTL_NETLINK_H
#define HAMLYNCTL_NETLINK_H

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/socket.h>

#include <linux/hamlyn_netlink.h>

#include "base/args.h"

struct netlink {
	struct nl_sock *sock;
	struct nl_cb *cb;
	int family;
	char text[256];		/* what the kernel said about the last request it refused */
	int error;		/* of the request under way */
	bool quiet;		/* no warning when a list changed while it was read */
	struct replies *replies;
};

/* Answers; what they point to is theirs. */
struct replies {
	struct nl_msg **at;
	size_t count, room;
};

int netlink_try(struct netlink *nl);			/* -ENOENT: there is no module */
int netlink_open(struct netlink *nl);			/* status */
/* In another network namespace; NULL: in our own. */
int netlink_open_in(struct netlink *nl, const struct value *netns);	/* status */
void netlink_close(struct netlink *nl);

/* Both take over @msg. @replies may be NULL, and is filled also when 0 is not returned. */
int netlink_do(struct netlink *nl, struct nl_msg *msg, struct replies *replies);
int netlink_dump(struct netlink *nl, struct nl_msg *msg, struct replies *replies);
void replies_free(struct replies *replies);

struct nl_msg *netlink_message(const struct netlink *nl, uint8_t command);
void netlink_put_u32(struct nl_msg *msg, int attr, uint32_t number);
void netlink_put_nic(struct nl_msg *msg, const struct nic_name *nic);
void netlink_put_values(struct nl_msg *msg, const struct values *values);

/* Tells the user what the kernel said to @subject; status. */
int netlink_refused(const struct netlink *nl, const char *subject, int err);

/* One request without an answer worth telling; status. */
int netlink_order(struct netlink *nl, struct nl_msg *msg, const char *subject);
/* The same of a NIC, by a socket of its own, as netlink_open_in() has it; @values may be NULL. */
int netlink_order_nic(uint8_t command, const struct value *netns, const struct nic_name *nic,
		      const struct values *values);

int netlink_join_events(struct netlink *nl);		/* status */
/* Events that have arrived; -ENOBUFS: some were lost. */
int netlink_events(struct netlink *nl, struct replies *replies);

/* Attributes of an answer: an array of HAMLYN_A_MAX + 1. */
int netlink_attrs(struct nl_msg *msg, struct nlattr **attrs);
uint8_t netlink_command(struct nl_msg *msg);

#endif /* HAMLYNCTL_NETLINK_H */
