// SPDX-License-Identifier: GPL-2.0-only
/* Talking to the module: requests, dumps, what the kernel says when it refuses. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* setns() */
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "record/netlink.h"
#include "record/output.h"
#include "base/users.h"

#define DUMP_TRIES	5
#define MESSAGE_BYTES	4096
#define DUMP_BUFFER	32768
#define EVENT_BUFFER	(1 << 20)

/* ---- what the kernel says when it refuses ------------------------------- */

/* Text of the kernel (NLMSGERR_ATTR_MSG) in the @length bytes at @attrs. */
static void take_text(struct netlink *nl, struct nlattr *attrs, int length)
{
	struct nlattr *attr = length > 0 ? nla_find(attrs, length, NLMSGERR_ATTR_MSG) : NULL;

	if (attr)
		snprintf(nl->text, sizeof(nl->text), "%.*s",
			 (int)strnlen(nla_data(attr), (size_t)nla_len(attr)),
			 (const char *)nla_data(attr));
}

/* A refusal repeats the request, or only its header if it is NLM_F_CAPPED; the text is behind. */
static int on_error(struct sockaddr_nl *from, struct nlmsgerr *error, void *arg)
{
	const struct nlmsghdr *head = (const void *)((const char *)error - NLMSG_HDRLEN);
	size_t skip = sizeof(*error), total = head->nlmsg_len - NLMSG_HDRLEN;
	struct netlink *nl = arg;

	(void)from;
	nl->error = error->error;
	if (!(head->nlmsg_flags & NLM_F_CAPPED) && error->msg.nlmsg_len > NLMSG_HDRLEN)
		skip += NLMSG_ALIGN(error->msg.nlmsg_len) - NLMSG_HDRLEN;
	if (head->nlmsg_flags & NLM_F_ACK_TLVS && skip < total)
		take_text(nl, (void *)((char *)error + skip), (int)(total - skip));
	return NL_STOP;
}

/* A dump that fails on its way says so in its last message. */
static int on_finish(struct nl_msg *msg, void *arg)
{
	const struct nlmsghdr *head = nlmsg_hdr(msg);
	int length = nlmsg_datalen(head), skip = (int)sizeof(int);
	struct netlink *nl = arg;

	if (length < skip)
		return NL_OK;
	memcpy(&nl->error, nlmsg_data(head), sizeof(nl->error));
	if (nl->error > 0)
		nl->error = 0;
	if (nl->error && head->nlmsg_flags & NLM_F_ACK_TLVS)
		take_text(nl, (void *)((char *)nlmsg_data(head) + skip), length - skip);
	return NL_OK;
}

static int on_valid(struct nl_msg *msg, void *arg)
{
	struct netlink *nl = arg;
	struct replies *replies = nl->replies;

	if (!replies || nlmsg_hdr(msg)->nlmsg_type != nl->family)
		return NL_OK;
	if (replies->count == replies->room) {
		replies->room = replies->room ? 2 * replies->room : 16;
		replies->at = must_alloc(realloc(replies->at,
						 replies->room * sizeof(replies->at[0])));
	}
	nlmsg_get(msg);
	replies->at[replies->count++] = msg;
	return NL_OK;
}

void replies_free(struct replies *replies)
{
	while (replies->count)
		nlmsg_free(replies->at[--replies->count]);
	free(replies->at);
	*replies = (struct replies){ 0 };
}

int netlink_refused(const struct netlink *nl, const char *subject, int err)
{
	char *text;

	if (nl->text[0]) {
		text = clean_sentence(nl->text, strlen(nl->text));
		refused("%s: %s (%s)", subject, text, strerror(-err));
		free(text);
		return STATUS_REFUSED;
	}
	if (err == -EPERM)
		return refused("%s: %s; this needs CAP_NET_ADMIN", subject, strerror(-err));
	if (err == -EOPNOTSUPP)
		return refused("%s: %s; the module is older than hamlynctl", subject,
			       strerror(-err));
	return refused("%s: %s", subject, strerror(-err));
}

/* ---- the socket --------------------------------------------------------- */

static int set_options(struct nl_sock *sock)
{
	static const int options[] = { NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK };
	int on = 1;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(options); i++)
		if (setsockopt(nl_socket_get_fd(sock), SOL_NETLINK, options[i], &on,
			       sizeof(on)) < 0)
			return -errno;
	return 0;
}

static int connect_socket(struct netlink *nl)
{
	int err = genl_connect(nl->sock);

	if (err)
		return err == -NLE_NOMEM ? -ENOMEM : -errno;
	return set_options(nl->sock);
}

int netlink_try(struct netlink *nl)
{
	int err;

	*nl = (struct netlink){ .sock = must_alloc(nl_socket_alloc()) };
	nl->cb = must_alloc(nl_cb_alloc(NL_CB_DEFAULT));
	nl_cb_err(nl->cb, NL_CB_CUSTOM, on_error, nl);
	nl_cb_set(nl->cb, NL_CB_VALID, NL_CB_CUSTOM, on_valid, nl);
	nl_cb_set(nl->cb, NL_CB_FINISH, NL_CB_CUSTOM, on_finish, nl);
	nl_socket_set_msg_buf_size(nl->sock, DUMP_BUFFER);
	err = connect_socket(nl);
	if (!err) {
		nl->family = genl_ctrl_resolve(nl->sock, HAMLYN_FAMILY_NAME);
		err = nl->family < 0 ? -ENOENT : 0;
	}
	if (err)
		netlink_close(nl);
	return err;
}

int netlink_open(struct netlink *nl)
{
	int err = netlink_try(nl);

	if (err == -ENOENT)
		return refused("the hamlyn module is not loaded (no netlink family \"%s\")",
			       HAMLYN_FAMILY_NAME);
	return err ? refused("cannot open a netlink socket: %s", strerror(-err)) : STATUS_OK;
}

/* A socket stays in the namespace that it was made in. */
int netlink_open_in(struct netlink *nl, const struct value *netns)
{
	int own, status;

	if (!netns)
		return netlink_open(nl);
	own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (own < 0)
		return refused("cannot open /proc/self/ns/net: %s", strerror(errno));
	if (setns((int)netns->number, CLONE_NEWNET))
		status = refused("cannot enter the network namespace: %s", strerror(errno));
	else
		status = netlink_open(nl);
	/* What we came from we may enter again. */
	setns(own, CLONE_NEWNET);
	close(own);
	return status;
}

void netlink_close(struct netlink *nl)
{
	nl_cb_put(nl->cb);
	nl_socket_free(nl->sock);
	*nl = (struct netlink){ 0 };
}

/* ---- requests ----------------------------------------------------------- */

struct nl_msg *netlink_message(const struct netlink *nl, uint8_t command)
{
	struct nl_msg *msg = must_alloc(nlmsg_alloc_size(MESSAGE_BYTES));

	must_alloc(genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, nl->family, 0, NLM_F_REQUEST,
			       command, HAMLYN_FAMILY_VERSION));
	return msg;
}

/* One message has room for all that a command line can say. */
static void must_fit(int err)
{
	if (err < 0)
		must_alloc(NULL);
}

void netlink_put_u32(struct nl_msg *msg, int attr, uint32_t number)
{
	must_fit(nla_put_u32(msg, attr, number));
}

void netlink_put_nic(struct nl_msg *msg, const struct nic_name *nic)
{
	netlink_put_u32(msg, HAMLYN_A_NIC, nic->index);
}

static void put_user_map(struct nl_msg *msg, const char *text)
{
	struct user_map map;

	user_map_parse(text, &map);
	netlink_put_u32(msg, HAMLYN_A_PEER_USERS, HAMLYN_NL_PEER_USERS_MAP);
	must_fit(nla_put(msg, HAMLYN_A_PEER_USER_MAP, (int)(map.count * sizeof(map.at[0])),
			 map.at));
}

static void put_value(struct nl_msg *msg, const struct value *value)
{
	const struct param *param = value->param;

	if (param->kind == PARAM_USER_MAP)
		put_user_map(msg, value->text);
	else if (value->length)
		must_fit(nla_put(msg, param->attr, value->length, value->bytes));
	else if (value->text)
		must_fit(nla_put_string(msg, param->attr, value->text));
	else if (param->bits == 64)
		must_fit(nla_put_u64(msg, param->attr, value->number));
	else if (param->bits == 16)
		must_fit(nla_put_u16(msg, param->attr, (uint16_t)value->number));
	else if (!param->bits)
		must_fit(value->number ? nla_put_flag(msg, param->attr) : 0);
	else
		netlink_put_u32(msg, param->attr, (uint32_t)value->number);
}

/* All values of a group go into one nested attribute, wherever they stood. */
static void put_group(struct nl_msg *msg, const struct values *values, size_t first)
{
	uint16_t group = values->at[first].param->group;
	struct nlattr *nest;
	size_t i;

	for (i = 0; i < first; i++)
		if (values->at[i].param->group == group)
			return;
	nest = must_alloc(nla_nest_start(msg, group | NLA_F_NESTED));
	for (i = first; i < values->count; i++)
		if (values->at[i].param->group == group)
			put_value(msg, &values->at[i]);
	nla_nest_end(msg, nest);
}

void netlink_put_values(struct nl_msg *msg, const struct values *values)
{
	size_t i;

	for (i = 0; i < values->count; i++)
		if (values->at[i].param->group)
			put_group(msg, values, i);
		else if (values->at[i].param->attr)
			put_value(msg, &values->at[i]);
}

/* What libnl itself has to say, as errno. */
static int to_errno(int err)
{
	switch (-err) {
	case NLE_NOMEM:
		return -ENOBUFS;
	case NLE_PERM:
		return -EPERM;
	case NLE_AGAIN:
		return -EAGAIN;
	default:
		return -EIO;
	}
}

/* Sends, and reads until the answer is complete. 1: a dump was disturbed. */
static int exchange(struct netlink *nl, struct nl_msg *msg, int flags)
{
	int err;

	nl->error = 0;
	nl->text[0] = 0;
	nlmsg_hdr(msg)->nlmsg_seq = NL_AUTO_SEQ;
	nlmsg_hdr(msg)->nlmsg_flags |= (uint16_t)flags;
	err = nl_send_auto(nl->sock, msg);
	if (err >= 0)
		err = nl_recvmsgs(nl->sock, nl->cb);
	if (nl->error)
		return nl->error;
	if (err == -NLE_DUMP_INTR)
		return 1;
	return err < 0 ? to_errno(err) : 0;
}

static int on_ack(struct nl_msg *msg, void *arg)
{
	(void)msg;
	*(bool *)arg = true;
	return NL_STOP;
}

/* An answer comes before its acknowledgment, and in a message of its own. */
int netlink_do(struct netlink *nl, struct nl_msg *msg, struct replies *replies)
{
	bool acknowledged = false;
	int err;

	nl->replies = replies;
	nl_cb_set(nl->cb, NL_CB_ACK, NL_CB_CUSTOM, on_ack, &acknowledged);
	err = exchange(nl, msg, NLM_F_ACK);
	while (!err && !acknowledged) {
		err = nl_recvmsgs(nl->sock, nl->cb);
		err = nl->error ? nl->error : err < 0 ? to_errno(err) : 0;
	}
	nl_cb_set(nl->cb, NL_CB_ACK, NL_CB_DEFAULT, NULL, NULL);
	nl->replies = NULL;
	nlmsg_free(msg);
	return err;
}

/* What changes while it is listed may be listed twice or not at all: then once more. */
int netlink_dump(struct netlink *nl, struct nl_msg *msg, struct replies *replies)
{
	int err, tries = 0;

	nl->replies = replies;
	do {
		replies_free(replies);
		err = exchange(nl, msg, NLM_F_DUMP);
	} while (err == 1 && ++tries < DUMP_TRIES);
	nl->replies = NULL;
	nlmsg_free(msg);
	if (err != 1)
		return err;
	if (!nl->quiet)
		warn("the list changed each of the %d times it was read; it may be incomplete",
		     DUMP_TRIES);
	return 0;
}

int netlink_order(struct netlink *nl, struct nl_msg *msg, const char *subject)
{
	int err = netlink_do(nl, msg, NULL);

	return err ? netlink_refused(nl, subject, err) : STATUS_OK;
}

int netlink_order_nic(uint8_t command, const struct value *netns, const struct nic_name *nic,
		      const struct values *values)
{
	struct netlink nl;
	struct nl_msg *msg;
	int status = netlink_open_in(&nl, netns);

	if (status)
		return status;
	msg = netlink_message(&nl, command);
	netlink_put_nic(msg, nic);
	if (values)
		netlink_put_values(msg, values);
	status = netlink_order(&nl, msg, nic->label);
	netlink_close(&nl);
	return status;
}

/* ---- events ------------------------------------------------------------- */

/* Events answer no request. */
static int on_sequence(struct nl_msg *msg, void *arg)
{
	(void)msg;
	(void)arg;
	return NL_OK;
}

int netlink_join_events(struct netlink *nl)
{
	int group = genl_ctrl_resolve_grp(nl->sock, HAMLYN_FAMILY_NAME, HAMLYN_MCGRP_EVENTS);
	int err;

	if (group < 0)
		return refused("the hamlyn module has no events (no multicast group \"%s\")",
			       HAMLYN_MCGRP_EVENTS);
	nl_socket_set_buffer_size(nl->sock, EVENT_BUFFER, 0);
	err = nl_socket_add_membership(nl->sock, group);
	if (err < 0)
		return refused("cannot listen to events: %s", nl_geterror(err));
	nl_cb_set(nl->cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, on_sequence, NULL);
	return STATUS_OK;
}

int netlink_events(struct netlink *nl, struct replies *replies)
{
	int err;

	nl->replies = replies;
	err = nl_recvmsgs(nl->sock, nl->cb);
	nl->replies = NULL;
	return err < 0 ? to_errno(err) : 0;
}

/* ---- answers ------------------------------------------------------------ */

int netlink_attrs(struct nl_msg *msg, struct nlattr **attrs)
{
	struct nlmsghdr *head = nlmsg_hdr(msg);

	if (!genlmsg_valid_hdr(head, 0) ||
	    genlmsg_parse(head, 0, attrs, HAMLYN_A_MAX, NULL) < 0)
		return -EBADMSG;
	return 0;
}

uint8_t netlink_command(struct nl_msg *msg)
{
	return genlmsg_hdr(nlmsg_hdr(msg))->cmd;
}
