/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls that are made to fail: requests by netlink, each on a socket of its own. */
#ifndef FAIL_NTH_NETLINK_H
#define FAIL_NTH_NETLINK_H

#include "fail_nth_call.h"

/* A socket for each call: what is left in it would confuse the next one. */
static struct {
	int fd;
	uint16_t family;
	struct request r;
} genl = { .fd = -1 };

/**
 * struct question - a request by netlink
 * @name: what it is
 * @command: HAMLYN_NL_CMD_*
 * @flags: NLM_F_DUMP: it lists, of all NICs. Else it names @nic and wants to be
 *	acknowledged
 * @nic: number of the NIC
 * @put: adds what else is in it; or NULL
 * @before: makes what it needs; or NULL
 * @back: what takes it back; or NULL
 * @moves: the NIC may be in the other namespace then
 */
struct question {
	const char *name;
	uint8_t command;
	uint16_t flags;
	uint32_t nic;
	void (*put)(void);
	int (*before)(void);
	const struct question *back;
	bool moves;
};

static void question_end(void)
{
	if (genl.fd >= 0)
		close(genl.fd);
	genl.fd = -1;
}

static int question_begin(const struct question *q)
{
	struct timeval limit = { .tv_sec = 5 };

	genl.fd = netlink_open(&genl.family);
	if (genl.fd < 0)
		return genl.fd;
	setsockopt(genl.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	request_init(&genl.r, genl.family, q->command,
		     q->flags ? q->flags : NLM_F_ACK);
	if (q->flags != NLM_F_DUMP)
		request_u32(&genl.r, HAMLYN_A_NIC, q->nic);
	if (q->put)
		q->put();
	return 0;
}

static int act_question(void)
{
	return ask(genl.fd, &genl.r, NULL, NULL);
}

/* From beginning to end. */
static int question_ask(const struct question *q)
{
	int ret = question_begin(q);

	if (!ret)
		ret = act_question();
	question_end();
	return ret;
}

/* Where the NIC is, if it was moved: nobody else there sees it. */
static void ask_elsewhere(const struct question *q)
{
	if (setns(env.netns, CLONE_NEWNET))
		return;
	question_ask(q);
	if (setns(env.home, CLONE_NEWNET))
		_exit(5);
}

static void after_question(void)
{
	const struct question *q = env.call->question;

	question_end();
	if (q->moves)
		ask_elsewhere(q->back);
	if (q->back)
		question_ask(q->back);
}

/* ---- what is in them ---- */

static void put_nest(uint16_t type, const uint16_t *types, size_t n,
		     uint32_t value)
{
	struct nlattr *nest;
	size_t i;

	nest = request_attr(&genl.r, type | NLA_F_NESTED, "", 0);
	for (i = 0; i < n; i++)
		request_u32(&genl.r, types[i], value);
	nest->nla_len = (uint16_t)((char *)&genl.r +
				   genl.r.header.nlmsg_len - (char *)nest);
}

static void put_adversary_of(uint32_t value)
{
	static const uint16_t types[] = {
		HAMLYN_A_ADV_DROP, HAMLYN_A_ADV_REORDER, HAMLYN_A_ADV_DELAY_US,
		HAMLYN_A_ADV_STALL,
	};

	put_nest(HAMLYN_A_ADVERSARY, types, ARRAY_SIZE(types), value);
}

static void put_adversary(void)
{
	put_adversary_of(1000);
}

static void put_peace(void)
{
	put_adversary_of(0);
}

static void put_new_nic(void)
{
	request_u32(&genl.r, HAMLYN_A_MAX_SLOTS, 64);
	request_u32(&genl.r, HAMLYN_A_ENGINES, 2);
	put_adversary();
}

static void put_user(void)
{
	request_u32(&genl.r, HAMLYN_A_UID, OTHER_USER);
}

static void put_limits(void)
{
	static const uint16_t type = HAMLYN_A_LIMITS_USER_SLOTS;

	put_user();
	put_nest(HAMLYN_A_LIMITS, &type, 1, 1000);
}

static void put_weight(void)
{
	request_u32(&genl.r, HAMLYN_A_CONTEXT, env.context);
	request_u32(&genl.r, HAMLYN_A_ID, env.p.terminus.arg.terminus);
	request_u32(&genl.r, HAMLYN_A_WEIGHT, 2);
}

static void put_netns(void)
{
	request_u32(&genl.r, HAMLYN_A_NETNS_FD, (uint32_t)env.netns);
}

/* ---- all of them ---- */

#define SPARE_NIC	7

static const struct question nic_new = {
	.command = HAMLYN_NL_CMD_NIC_NEW, .nic = SPARE_NIC, .put = put_new_nic,
};

static const struct question nic_del = {
	.command = HAMLYN_NL_CMD_NIC_DEL, .nic = SPARE_NIC,
};

static const struct question no_adversary = {
	.command = HAMLYN_NL_CMD_NIC_SET, .put = put_peace,
};

static const struct question no_limits = {
	.command = HAMLYN_NL_CMD_LIMIT_SET, .put = put_user,
};

static const struct question contexts = {
	.command = HAMLYN_NL_CMD_CONTEXT_GET, .flags = NLM_F_DUMP,
};

static int before_spare(void)
{
	return question_ask(&nic_new);
}

static const struct question questions[] = {
	{ .name = "nic-get", .command = HAMLYN_NL_CMD_NIC_GET },
	{ .name = "nic-new", .command = HAMLYN_NL_CMD_NIC_NEW,
	  .nic = SPARE_NIC, .put = put_new_nic, .back = &nic_del },
	{ .name = "nic-del", .command = HAMLYN_NL_CMD_NIC_DEL,
	  .nic = SPARE_NIC, .before = before_spare, .back = &nic_del },
	{ .name = "nic-set adversary", .command = HAMLYN_NL_CMD_NIC_SET,
	  .put = put_adversary, .back = &no_adversary },
	{ .name = "nic-set netns-fd", .command = HAMLYN_NL_CMD_NIC_SET,
	  .nic = SPARE_NIC, .put = put_netns, .before = before_spare,
	  .back = &nic_del, .moves = true },
	{ .name = "nic-feed", .command = HAMLYN_NL_CMD_NIC_FEED },
	{ .name = "stats-get", .command = HAMLYN_NL_CMD_STATS_GET },
	{ .name = "limit-set", .command = HAMLYN_NL_CMD_LIMIT_SET,
	  .put = put_limits, .back = &no_limits },
	{ .name = "terminus-set", .command = HAMLYN_NL_CMD_TERMINUS_SET,
	  .put = put_weight },
	{ .name = "nics, a dump", .command = HAMLYN_NL_CMD_NIC_GET,
	  .flags = NLM_F_DUMP },
	{ .name = "contexts, a dump", .command = HAMLYN_NL_CMD_CONTEXT_GET,
	  .flags = NLM_F_DUMP },
	{ .name = "areas, a dump", .command = HAMLYN_NL_CMD_AREA_GET,
	  .flags = NLM_F_DUMP },
	{ .name = "slots, a dump", .command = HAMLYN_NL_CMD_SLOT_GET,
	  .flags = NLM_F_DUMP },
	{ .name = "NQs, a dump", .command = HAMLYN_NL_CMD_NQ_GET,
	  .flags = NLM_F_DUMP },
	{ .name = "termini, a dump", .command = HAMLYN_NL_CMD_TERMINUS_GET,
	  .flags = NLM_F_DUMP },
	{ .name = "stats, a dump", .command = HAMLYN_NL_CMD_STATS_GET,
	  .flags = NLM_F_DUMP },
	{ .name = "names, a dump", .command = HAMLYN_NL_CMD_NAME_GET,
	  .flags = NLM_F_DUMP },
	{ .name = "users, a dump", .command = HAMLYN_NL_CMD_USER_GET,
	  .flags = NLM_F_DUMP },
	{ .name = "audit, a dump", .command = HAMLYN_NL_CMD_AUDIT_GET,
	  .flags = NLM_F_DUMP },
};

/* ---- a listener ---- */

/* The number of the family's only group. */
static void note_group(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *groups = attr_of(h, CTRL_ATTR_MCAST_GROUPS), *a;
	const char *p = (const char *)groups, *end;

	if (!groups)
		return;
	end = p + groups->nla_len;
	/* In the list there is one element, and in that are attributes. */
	for (p += 2 * NLA_HDRLEN; p + NLA_HDRLEN <= end;
	     p += NLA_ALIGN(a->nla_len)) {
		a = (const void *)p;
		if (a->nla_type == CTRL_ATTR_MCAST_GRP_ID)
			memcpy(arg, p + NLA_HDRLEN, sizeof(uint32_t));
		if (a->nla_len < NLA_HDRLEN)
			return;
	}
}

/*
 * Somebody who is told what happens, else no event is made; a descriptor or a
 * negative errno. Nobody reads what comes: soon it is lost.
 */
static int listen_to_events(void)
{
	uint32_t group = 0;
	struct request r;
	uint16_t family;
	int fd, ret;

	fd = netlink_open(&family);
	if (fd < 0)
		return fd;
	request_init(&r, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	request_attr(&r, CTRL_ATTR_FAMILY_NAME, HAMLYN_FAMILY_NAME,
		     sizeof(HAMLYN_FAMILY_NAME));
	ret = ask(fd, &r, note_group, &group);
	if (!ret && setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group,
			       sizeof(group)))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/* ---- this process's own number ---- */

static void note_context(const struct nlmsghdr *h, void *arg)
{
	(void)arg;
	if (attr_u32(attr_of(h, HAMLYN_A_PID)) == (uint32_t)getpid())
		env.context = attr_u32(attr_of(h, HAMLYN_A_CONTEXT));
}

static int find_context(void)
{
	int ret = question_begin(&contexts);

	if (!ret)
		ret = ask(genl.fd, &genl.r, note_context, NULL);
	question_end();
	return ret;
}

#endif /* FAIL_NTH_NETLINK_H */
