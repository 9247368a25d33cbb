/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the netlink family share. */
#ifndef HML_NETLINK_H
#define HML_NETLINK_H

#include "compat/compat.h"
#include "nic.h"
#include "netlink-gen.h"

/*
 * Attributes that a request may have, one bit each: those up to weight, and from fabric on.
 * Others are told only, and those behind peer are in no policy.
 */
#define HML_ATTR_BIT(attr) \
	((attr) <= HAMLYN_A_WEIGHT ? (attr) : (attr) - HAMLYN_A_FABRIC + HAMLYN_A_WEIGHT + 1)
#define HML_ATTR(name)	BIT_ULL(HML_ATTR_BIT(HAMLYN_A_##name))
#define HML_ATTRS_NIC	(HML_ATTR(NIC) | HML_ATTR(NAME))

/**
 * struct hml_reader - who reads a reply, and what it may see
 * @admin: everything but keys, and
 * @host_admin: what became of packets, too: CAP_NET_ADMIN on the host
 * @uid: else what belongs to this user
 * @user_ns: in which uids are told
 * @pid_ns: in which pids are told
 */
struct hml_reader {
	bool admin;
	bool host_admin;
	kuid_t uid;
	struct user_namespace *user_ns;
	struct pid_namespace *pid_ns;
};

/**
 * struct hml_subject - what a message is about
 * @d: NIC
 * @c: its context, if it is about one
 * @object: object or record of those, if it is about one
 * @busy: what is under the context's lock is left out
 */
struct hml_subject {
	struct hml_device *d;
	struct hml_context *c;
	void *object;
	bool busy;
};

/* Writes attributes; returns 0 or -EMSGSIZE. */
typedef int (*hml_fill_fn)(struct sk_buff *skb, const struct hml_reader *r,
			   const struct hml_subject *s);

/* family.c */
extern struct genl_family hml_netlink_family;
extern bool hml_netlink_registered;

int hml_netlink_check(struct nlattr **attrs, u64 allowed,
		      struct netlink_ext_ack *extack);
bool hml_netlink_names(struct nlattr **attrs, const struct hml_device *d);
int hml_netlink_no_nic(struct nlattr **attrs, struct netlink_ext_ack *extack);
struct hml_device *hml_netlink_get(struct genl_info *info, u64 allowed);
int hml_netlink_with(struct sk_buff *skb, struct genl_info *info, u64 allowed,
		     int (*act)(struct sk_buff *skb, struct genl_info *info,
				struct hml_device *d));
int hml_netlink_reply(struct sk_buff *skb, struct sk_buff *request,
		      struct genl_info *info, u8 command, hml_fill_fn fill,
		      struct hml_device *d);

static inline void hml_netlink_u32(const struct nlattr *attr, u32 *value)
{
	if (attr)
		*value = nla_get_u32(attr);
}

/* fabric.c */
int hml_netlink_fabric(struct nlattr *nest, struct net *net, struct hml_tcp_attr *attr,
		       struct netlink_ext_ack *extack);
int hml_netlink_address(const struct nlattr *address, const struct nlattr *port,
			struct sockaddr_storage *to, struct netlink_ext_ack *extack);

/* peer.c */
int hml_netlink_peer_host(const struct nlattr *nest, u32 *host,
			  struct netlink_ext_ack *extack);

/* fill.c */
void hml_reader_init(struct hml_reader *r, struct sk_buff *request,
		     const struct net *net);
int hml_fill_nic(struct sk_buff *skb, const struct hml_reader *r,
		 const struct hml_subject *s);
int hml_fill_stats(struct sk_buff *skb, const struct hml_reader *r,
		   const struct hml_subject *s);
int hml_fill_context(struct sk_buff *skb, const struct hml_reader *r,
		     const struct hml_subject *s);
int hml_fill_area(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s);
int hml_fill_slot(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s);
int hml_fill_nq(struct sk_buff *skb, const struct hml_reader *r,
		const struct hml_subject *s);
int hml_fill_term(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s);
int hml_fill_user(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s);
int hml_fill_name(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s);
int hml_fill_peer(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s);
int hml_fill_audit(struct sk_buff *skb, const struct hml_reader *r,
		   const struct hml_subject *s);

#endif /* HML_NETLINK_H */
