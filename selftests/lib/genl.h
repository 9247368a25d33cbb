/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generic netlink by hand: requests, and answers with the kernel's own words.
 * A program with it stays static.
 */
#ifndef GENL_H
#define GENL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>

#ifndef SOL_NETLINK
#define SOL_NETLINK	270
#endif

/* For one thread at a time. */
struct genl {
	int fd;
	uint16_t family;
	uint8_t version;
	char text[160];		/* why the last call failed, or "" */
	union {
		struct nlmsghdr header;
		unsigned char bytes[4096];
	} request;
	union {
		struct nlmsghdr header;	/* nlmsg_len 0: there was none */
		unsigned char bytes[8192];
	} reply;
};

/* ---- requests ---- */

static inline void genl_begin(struct genl *g, uint8_t command)
{
	struct genlmsghdr *h = NLMSG_DATA(&g->request.header);

	memset(&g->request, 0, sizeof(g->request));
	g->request.header.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	g->request.header.nlmsg_type = g->family;
	g->request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	h->cmd = command;
	h->version = g->version;
}

/* @type with NLA_F_NESTED and no value: what follows is in it, until genl_end(). */
static inline struct nlattr *genl_put(struct genl *g, uint16_t type,
				      const void *value, uint16_t length)
{
	struct nlmsghdr *h = &g->request.header;
	struct nlattr *a = (void *)(g->request.bytes +
				    NLMSG_ALIGN(h->nlmsg_len));

	a->nla_type = type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + length);
	if (length)
		memcpy((char *)a + NLA_HDRLEN, value, length);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + NLA_ALIGN(a->nla_len);
	return a;
}

static inline void genl_end(struct genl *g, struct nlattr *nest)
{
	nest->nla_len = (uint16_t)(g->request.bytes +
				   g->request.header.nlmsg_len -
				   (unsigned char *)nest);
}

static inline void genl_put_u32(struct genl *g, uint16_t type, uint32_t value)
{
	genl_put(g, type, &value, sizeof(value));
}

static inline void genl_put_u64(struct genl *g, uint16_t type, uint64_t value)
{
	genl_put(g, type, &value, sizeof(value));
}

/* ---- answers ---- */

/* Attribute @type among @length bytes of them, or NULL. */
static inline const struct nlattr *genl_find(const void *attrs, size_t length,
					     uint16_t type)
{
	const char *p = attrs, *end = p + length;

	while (p + NLA_HDRLEN <= end) {
		const struct nlattr *a = (const void *)p;

		if (a->nla_len < NLA_HDRLEN)
			break;
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
		p += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

/* Of the last reply. */
static inline const struct nlattr *genl_attr(const struct genl *g,
					     uint16_t type)
{
	const struct nlmsghdr *h = &g->reply.header;

	if (h->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
		return NULL;
	return genl_find((const char *)NLMSG_DATA(h) + GENL_HDRLEN,
			 h->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), type);
}

static inline const struct nlattr *genl_nested(const struct nlattr *nest,
					       uint16_t type)
{
	return nest ? genl_find((const char *)nest + NLA_HDRLEN,
				nest->nla_len - NLA_HDRLEN, type) : NULL;
}

/* An unsigned number of any width; 0 if there is no such attribute. */
static inline uint64_t genl_number(const struct nlattr *a)
{
	const void *value = (const char *)a + NLA_HDRLEN;
	uint64_t wide = 0;
	uint32_t word = 0;
	uint16_t half = 0;

	if (!a)
		return 0;
	switch (a->nla_len - NLA_HDRLEN) {
	case sizeof(wide):
		memcpy(&wide, value, sizeof(wide));
		return wide;
	case sizeof(word):
		memcpy(&word, value, sizeof(word));
		return word;
	default:
		memcpy(&half, value, sizeof(half));
		return half;
	}
}

/* What the kernel says beside the errno. */
static inline void genl_take_text(struct genl *g, const struct nlmsghdr *h)
{
	size_t skip = NLMSG_LENGTH(sizeof(struct nlmsgerr));
	const struct nlmsgerr *e = NLMSG_DATA(h);
	const struct nlattr *a;
	size_t length;

	g->text[0] = 0;
	if (!(h->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(h->nlmsg_flags & NLM_F_CAPPED))
		skip += NLMSG_ALIGN(e->msg.nlmsg_len - NLMSG_HDRLEN);
	if (skip > h->nlmsg_len)
		return;
	a = genl_find((const char *)h + skip, h->nlmsg_len - skip,
		      NLMSGERR_ATTR_MSG);
	if (!a)
		return;
	length = a->nla_len - NLA_HDRLEN;
	if (length >= sizeof(g->text))
		length = sizeof(g->text) - 1;
	memcpy(g->text, (const char *)a + NLA_HDRLEN, length);
	g->text[length] = 0;
}

/* Send what was begun, and count the messages of the answer; the last one is kept. */
static inline int genl_exchange(struct genl *g, int *messages)
{
	static __thread unsigned char answer[8192]
		__attribute__((aligned(8)));
	const struct nlmsghdr *h;
	ssize_t n;

	*messages = 0;
	g->reply.header.nlmsg_len = 0;
	if (send(g->fd, &g->request, g->request.header.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		n = recv(g->fd, answer, sizeof(answer), 0);
		if (n < 0)
			return -errno;
		for (h = (void *)answer; NLMSG_OK(h, (size_t)n);
		     h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_ERROR) {
				genl_take_text(g, h);
				return ((const struct nlmsgerr *)
					NLMSG_DATA(h))->error;
			}
			if (h->nlmsg_type == NLMSG_DONE)
				return *(const int *)NLMSG_DATA(h);
			memcpy(&g->reply, h, h->nlmsg_len);
			(*messages)++;
		}
	}
}

/* Send what was begun. 0, or a negative errno and perhaps a text. */
static inline int genl_call(struct genl *g)
{
	int messages;

	return genl_exchange(g, &messages);
}

/* As a dump: how many messages there are, or a negative errno. */
static inline int genl_count(struct genl *g)
{
	int messages, ret;

	g->request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	ret = genl_exchange(g, &messages);
	return ret < 0 ? ret : messages;
}

/* 0, or a negative errno: -ENOENT if there is no such family. */
static inline int genl_open(struct genl *g, const char *family, uint8_t version)
{
	int one = 1, ret;

	memset(g, 0, sizeof(*g));
	g->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (g->fd < 0)
		return -errno;
	setsockopt(g->fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(g->fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	g->family = GENL_ID_CTRL;
	g->version = 1;
	genl_begin(g, CTRL_CMD_GETFAMILY);
	genl_put(g, CTRL_ATTR_FAMILY_NAME, family,
		 (uint16_t)(strlen(family) + 1));
	ret = genl_call(g);
	if (!ret) {
		g->family = (uint16_t)genl_number(genl_attr(g,
							   CTRL_ATTR_FAMILY_ID));
		g->version = version;
		return 0;
	}
	close(g->fd);
	g->fd = -1;
	return ret;
}

/*
 * The descriptor of who is told of the family's events, or a negative errno. Behind
 * genl_open(): its answer names the group.
 */
static inline int genl_listen(const struct genl *opened)
{
	const struct nlattr *groups = genl_attr(opened, CTRL_ATTR_MCAST_GROUPS);
	const struct nlattr *group = genl_nested(groups, 1);
	int id = (int)genl_number(genl_nested(group, CTRL_ATTR_MCAST_GRP_ID));
	const struct sockaddr_nl own = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);

	if (fd < 0)
		return -errno;
	/* Whoever has no number of his own is not told either. */
	if (bind(fd, (const void *)&own, sizeof(own)) ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &id, sizeof(id))) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static inline void genl_close(struct genl *g)
{
	if (g->fd >= 0)
		close(g->fd);
	g->fd = -1;
}

#endif /* GENL_H */
