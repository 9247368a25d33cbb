/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations of the fuzzer: generic netlink, well formed and not. */
#ifndef FUZZ_CALLS_NETLINK_H
#define FUZZ_CALLS_NETLINK_H

#include "fuzz_calls.h"

/* What a request is made of, in a buffer with room for what goes wrong. */
struct message {
	struct request r;
	unsigned char more[1024];
};

static void put(struct message *m, uint16_t type, const void *value,
		uint16_t length)
{
	if (NLMSG_ALIGN(m->r.header.nlmsg_len) + NLA_HDRLEN + length <
	    sizeof(*m) - 64)
		request_attr(&m->r, type, value, length);
}

/* A value that is right for the attribute, most of the time. */
static uint32_t some_value(struct thread *t, uint16_t type)
{
	if (one_in(t, 24))
		return (uint32_t)odd_number(t);
	switch (type) {
	case HAMLYN_A_NIC:
		return some_nic(t, NICS + 1);
	case HAMLYN_A_HOST:
		return below(t, 8);
	case HAMLYN_A_NETNS_FD:
		return FD_NETNS;
	case HAMLYN_A_STATE:
	case HAMLYN_A_ENGINE_MODE:
		return below(t, 2);
	case HAMLYN_A_ENGINES:
	case HAMLYN_A_PRIORITY:
		return 1 + below(t, 2);
	case HAMLYN_A_WEIGHT:
		return 1 + below(t, HAMLYN_MAX_WEIGHT);
	case HAMLYN_A_PACKET_SIZE:
		return 1024U << below(t, 7);
	case HAMLYN_A_MAX_SLOTS:
		return 1 + below(t, 4096);
	case HAMLYN_A_UID:
		return 1001 + below(t, 3);
	default:
		return below(t, 100);
	}
}

static void put_value(struct thread *t, struct message *m, uint16_t type)
{
	uint32_t value = some_value(t, type);

	put(m, type, &value, sizeof(value));
}

static void put_name(struct thread *t, struct message *m)
{
	char name[40] = "hamlyn0";

	name[6] += (char)some_nic(t, NICS + 1);
	if (one_in(t, 8))
		memset(name, 'x', below(t, sizeof(name)));
	put(m, HAMLYN_A_NAME, name, (uint16_t)(one_in(t, 8) ?
		below(t, sizeof(name)) : strlen(name) + 1));
}

static struct nlattr *begin_nest(struct message *m, uint16_t type)
{
	return request_attr(&m->r, type | NLA_F_NESTED, "", 0);
}

static void end_nest(struct message *m, struct nlattr *nest)
{
	nest->nla_len = (uint16_t)((char *)m + m->r.header.nlmsg_len -
				   (char *)nest);
}

/* Little of it, and not for long: else nothing arrives any more. */
static void put_adversary(struct thread *t, struct message *m)
{
	struct nlattr *nest = begin_nest(m, HAMLYN_A_ADVERSARY);
	uint64_t seed = draw(t);
	uint16_t type;

	put(m, HAMLYN_A_ADV_SEED, &seed, sizeof(seed));
	for (type = HAMLYN_A_ADV_DROP; type <= HAMLYN_A_ADV_STALL; type++) {
		uint32_t value = one_in(t, 3) ? below(t, 200000) : 0;

		if (type == HAMLYN_A_ADV_DELAY_US)
			value = value % 3000;
		if (one_in(t, 32))
			value = (uint32_t)odd_number(t);
		if (type == HAMLYN_A_ADV_DELAY_US && value <= 10000000)
			value %= 500000;
		if (!one_in(t, 3))
			put(m, type, &value, sizeof(value));
	}
	end_nest(m, nest);
}

static void put_limits(struct thread *t, struct message *m)
{
	struct nlattr *nest = begin_nest(m, HAMLYN_A_LIMITS);
	uint16_t type;

	for (type = 1; type <= HAMLYN_A_LIMITS_USER_TERMINI; type++) {
		uint64_t value = one_in(t, 2) ? UINT64_MAX :
				 some_size(t, 1 << 24);
		uint32_t word = one_in(t, 2) ? UINT32_MAX : below(t, 1000);

		if (one_in(t, 2))
			continue;
		if (type <= HAMLYN_A_LIMITS_USER_WIRED_BYTES)
			put(m, type, &value, sizeof(value));
		else
			put(m, type, &word, sizeof(word));
	}
	end_nest(m, nest);
}

/* One of few ends of fabrics on this machine, so that some of them find each other. */
static void put_end(struct thread *t, struct message *m, uint16_t address, uint16_t port)
{
	unsigned char bytes[16] = { 127, 0, 0, (unsigned char)(1 + below(t, 3)) };
	uint16_t number = (uint16_t)(7200 + below(t, 4));

	put(m, address, bytes, (uint16_t)(one_in(t, 12) ? below(t, 17) : 4));
	if (!one_in(t, 8))
		put(m, port, &number, sizeof(number));
}

static void put_fabric(struct thread *t, struct message *m)
{
	struct nlattr *nest = begin_nest(m, HAMLYN_A_FABRIC);
	uint32_t kind = !one_in(t, 8);

	put(m, HAMLYN_A_FAB_KIND, &kind, sizeof(kind));
	if (!one_in(t, 16))
		put(m, HAMLYN_A_FAB_ID, "one of many ids", 16);
	put_end(t, m, HAMLYN_A_FAB_ADDRESS, HAMLYN_A_FAB_PORT);
	if (!one_in(t, 8))
		put(m, HAMLYN_A_FAB_CLEAR, "", 0);
	if (one_in(t, 8))
		put(m, HAMLYN_A_FAB_DEVICE, "lo", 3);
	kind = 100 + below(t, 900);
	if (one_in(t, 2))
		put(m, HAMLYN_A_FAB_DEAD_MS, &kind, sizeof(kind));
	if (one_in(t, 2))
		put(m, HAMLYN_A_FAB_STALL_MS, &kind, sizeof(kind));
	end_nest(m, nest);
}

static void put_peer(struct thread *t, struct message *m)
{
	struct nlattr *nest = begin_nest(m, HAMLYN_A_PEER);
	uint32_t host = one_in(t, 24) ? (uint32_t)odd_number(t) : below(t, 8);

	put(m, HAMLYN_A_PEER_HOST, &host, sizeof(host));
	if (one_in(t, 2))
		put_end(t, m, HAMLYN_A_PEER_ADDRESS, HAMLYN_A_PEER_PORT);
	if (one_in(t, 24))
		put(m, (uint16_t)(1 + below(t, HAMLYN_A_PEER_MAX)), &host, sizeof(host));
	end_nest(m, nest);
}

static void put_attr(struct thread *t, struct message *m, uint16_t type)
{
	if (type == HAMLYN_A_NAME)
		put_name(t, m);
	else if (type == HAMLYN_A_ADVERSARY)
		put_adversary(t, m);
	else if (type == HAMLYN_A_LIMITS)
		put_limits(t, m);
	else if (type == HAMLYN_A_FABRIC)
		put_fabric(t, m);
	else if (type == HAMLYN_A_PEER)
		put_peer(t, m);
	else
		put_value(t, m, type);
}

/* Behind those that requests can have are those that are told only, and behind those two more. */
#define TYPES		(HAMLYN_A_WEIGHT + HAMLYN_A_PEER - HAMLYN_A_FABRIC + 1)
#define BIT_OF(type)	\
	((type) <= HAMLYN_A_WEIGHT ? (type) : (type) - HAMLYN_A_FABRIC + HAMLYN_A_WEIGHT + 1)
#define BIT(type)	(1U << BIT_OF(HAMLYN_A_##type))

static uint16_t type_of(uint16_t bit)
{
	return (uint16_t)(bit <= HAMLYN_A_WEIGHT ? bit :
						   bit - HAMLYN_A_WEIGHT - 1 + HAMLYN_A_FABRIC);
}

/* What each command takes, one bit an attribute. */
static const uint32_t attrs_of[HAMLYN_NL_CMD_MAX + 1] = {
	[HAMLYN_NL_CMD_NIC_GET] = BIT(NIC) | BIT(NAME),
	[HAMLYN_NL_CMD_NIC_NEW] = BIT(NIC) | BIT(HOST) | BIT(NETNS_FD) |
		BIT(STATE) | BIT(WATCHDOG_MS) | BIT(ENGINE_MODE) |
		BIT(ENGINES) | BIT(IDLE_US) | BIT(KICK_WINDOW_US) |
		BIT(PACKET_SIZE) | BIT(MAX_SLOTS) | BIT(GUESSES) |
		BIT(ADVERSARY) | BIT(LIMITS) | BIT(FABRIC),
	[HAMLYN_NL_CMD_NIC_DEL] = BIT(NIC) | BIT(NAME),
	[HAMLYN_NL_CMD_NIC_SET] = BIT(NIC) | BIT(NAME) | BIT(STATE) |
		BIT(WATCHDOG_MS) | BIT(IDLE_US) | BIT(KICK_WINDOW_US) |
		BIT(GUESSES) | BIT(ADVERSARY),
	[HAMLYN_NL_CMD_NIC_FEED] = BIT(NIC) | BIT(NAME),
	[HAMLYN_NL_CMD_CONTEXT_GET] = BIT(NIC) | BIT(NAME),
	[HAMLYN_NL_CMD_AREA_GET] = BIT(NIC) | BIT(NAME) | BIT(CONTEXT),
	[HAMLYN_NL_CMD_SLOT_GET] = BIT(NIC) | BIT(NAME) | BIT(CONTEXT),
	[HAMLYN_NL_CMD_NQ_GET] = BIT(NIC) | BIT(NAME) | BIT(CONTEXT),
	[HAMLYN_NL_CMD_TERMINUS_GET] = BIT(NIC) | BIT(NAME) | BIT(CONTEXT),
	[HAMLYN_NL_CMD_TERMINUS_SET] = BIT(NIC) | BIT(CONTEXT) | BIT(ID) |
		BIT(PRIORITY) | BIT(WEIGHT),
	[HAMLYN_NL_CMD_STATS_GET] = BIT(NIC) | BIT(NAME),
	[HAMLYN_NL_CMD_USER_GET] = BIT(NIC) | BIT(NAME),
	[HAMLYN_NL_CMD_LIMIT_SET] = BIT(NIC) | BIT(UID) | BIT(LIMITS),
	[HAMLYN_NL_CMD_AUDIT_GET] = BIT(NIC) | BIT(NAME) | BIT(CONTEXT),
	[HAMLYN_NL_CMD_PEER_NEW] = BIT(NIC) | BIT(PEER),
	[HAMLYN_NL_CMD_PEER_DEL] = BIT(NIC) | BIT(PEER),
	[HAMLYN_NL_CMD_PEER_GET] = BIT(NIC) | BIT(NAME) | BIT(PEER),
	[HAMLYN_NL_CMD_NAME_GET] = BIT(NIC) | BIT(NAME),
};

static void fill_message(struct thread *t, struct message *m, uint8_t command,
			 uint16_t flags)
{
	uint32_t takes = command < ARRAY_SIZE(attrs_of) ? attrs_of[command] : 0;
	uint16_t bit, type;

	memset(m, 0, sizeof(*m));
	request_init(&m->r, t->family, command, flags);
	for (bit = 1; bit <= TYPES; bit++) {
		bool wanted = takes & 1U << bit;

		type = type_of(bit);
		/* Without a NIC most requests end early. */
		if (wanted && (type == HAMLYN_A_NIC || !one_in(t, 3)) &&
		    (type != HAMLYN_A_NAME || one_in(t, 8)) &&
		    (type != HAMLYN_A_FABRIC || one_in(t, 4)) &&
		    (type != HAMLYN_A_NETNS_FD || one_in(t, 4)))
			put_attr(t, m, type);
		else if (one_in(t, 256))
			put_attr(t, m, type);
	}
}

/* Somewhere in the attributes, or a length that is not true. */
static void spoil(struct thread *t, struct message *m)
{
	uint32_t length = m->r.header.nlmsg_len;
	uint32_t from = NLMSG_LENGTH(GENL_HDRLEN);
	struct nlattr *first = (void *)((char *)m + from);

	switch (below(t, 4)) {
	case 0:
		if (length > from)
			((char *)m)[from + below(t, length - from)] ^=
				(char)(1 << below(t, 8));
		break;
	case 1:
		first->nla_len = (uint16_t)odd_number(t);
		break;
	case 2:
		m->r.header.nlmsg_len += below(t, 64);
		break;
	default:
		first->nla_type ^= (uint16_t)(1 << below(t, 16));
	}
}

static bool is_theirs(uint32_t nic)
{
	return nic && nic <= option.others;
}

static bool names_theirs(const struct nlattr *a)
{
	const char *value = (const char *)a + NLA_HDRLEN;
	size_t length = a->nla_len - NLA_HDRLEN;
	uint32_t nic;

	switch (a->nla_type & NLA_TYPE_MASK) {
	case HAMLYN_A_NIC:
		memcpy(&nic, value, sizeof(nic));
		return length >= sizeof(nic) && is_theirs(nic);
	case HAMLYN_A_NAME:
		return length >= 7 && !memcmp(value, "hamlyn", 6) &&
		       is_theirs((uint32_t)(value[6] - '0'));
	}
	return false;
}

/* By choice or by what spoil() has made of it: read as the kernel does. */
static bool is_for_others(const struct message *m)
{
	uint32_t at = NLMSG_LENGTH(GENL_HDRLEN);
	uint32_t length = m->r.header.nlmsg_len;
	const struct nlattr *a;

	while (at + NLA_HDRLEN <= length) {
		a = (const void *)((const char *)m + at);
		if (a->nla_len < NLA_HDRLEN || a->nla_len > length - at)
			break;
		if (names_theirs(a))
			return true;
		at += NLA_ALIGN(a->nla_len);
	}
	return false;
}

static bool lists(uint8_t command)
{
	switch (command) {
	case HAMLYN_NL_CMD_CONTEXT_GET ... HAMLYN_NL_CMD_TERMINUS_GET:
	case HAMLYN_NL_CMD_USER_GET:
	case HAMLYN_NL_CMD_AUDIT_GET:
	case HAMLYN_NL_CMD_PEER_GET:
	case HAMLYN_NL_CMD_NAME_GET:
		return true;
	default:
		return false;
	}
}

/* What came back: the errno, or 0. At most a few messages are read. */
static long receive(struct thread *t, int most)
{
	static __thread char answer[16384] __attribute__((aligned(8)));
	const struct nlmsghdr *h = (void *)answer;
	long ret = 0;
	ssize_t n;

	while (most--) {
		n = recv(t->netlink, answer, sizeof(answer), MSG_DONTWAIT);
		if (n < (ssize_t)sizeof(*h))
			return n < 0 && errno != EAGAIN ? -errno : ret;
		if (h->nlmsg_type == NLMSG_ERROR || h->nlmsg_type == NLMSG_DONE)
			ret = *(const int *)NLMSG_DATA(h);
	}
	return ret;
}

/* A dump that is not read to its end goes with its socket. */
static void new_socket(struct thread *t)
{
	uint32_t size = 1024U << below(t, 9);

	close(t->netlink);
	t->netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
			    NETLINK_GENERIC);
	if (one_in(t, 2))
		setsockopt(t->netlink, SOL_SOCKET, SO_RCVBUF, &size,
			   sizeof(size));
}

static void op_netlink(struct thread *t)
{
	uint8_t command = (uint8_t)(1 + below(t, HAMLYN_NL_CMD_MAX));
	uint16_t flags = NLM_F_ACK;
	enum counted kind = K_NETLINK;
	struct message m;
	long ret;

	/* Taking NICs away all the time leaves none to use. */
	if (command == HAMLYN_NL_CMD_NIC_DEL && !one_in(t, 3))
		command = HAMLYN_NL_CMD_NIC_NEW;
	if (one_in(t, 64))
		command = (uint8_t)draw(t);
	/* What changes something has no dump, and what lists nothing else. */
	if (command >= HAMLYN_NL_CMD_CONTEXT_GET && one_in(t, 8))
		command = HAMLYN_NL_CMD_NIC_GET;
	if (command == HAMLYN_NL_CMD_NIC_GET ||
	    command == HAMLYN_NL_CMD_STATS_GET ? one_in(t, 2) :
	    lists(command) ^ one_in(t, 16)) {
		flags = NLM_F_DUMP;
		kind = K_DUMP;
	}
	fill_message(t, &m, command, flags);
	if (one_in(t, 10))
		spoil(t, &m);
	if (one_in(t, 16))
		new_socket(t);
	if (is_for_others(&m))
		return;
	ret = send(t->netlink, &m, m.r.header.nlmsg_len, MSG_DONTWAIT);
	if (ret < 0)
		ret = -errno;
	else
		ret = receive(t, one_in(t, 4) ? 1 : 12);
	count(kind, ret);
}

/* Undo what would keep everything else from working: NIC 0 as it should be. */
static void heal(int fd, uint16_t family, uint32_t nic)
{
	static const uint16_t zeros[] = {
		HAMLYN_A_STATE, HAMLYN_A_WATCHDOG_MS, HAMLYN_A_GUESSES,
	};
	struct message m = { 0 };
	struct nlattr *nest;
	uint16_t type;
	size_t i;

	request_init(&m.r, family, HAMLYN_NL_CMD_NIC_SET, NLM_F_ACK);
	request_u32(&m.r, HAMLYN_A_NIC, nic);
	for (i = 0; i < ARRAY_SIZE(zeros); i++)
		request_u32(&m.r, zeros[i], 0);
	request_u32(&m.r, HAMLYN_A_IDLE_US, 50);
	request_u32(&m.r, HAMLYN_A_KICK_WINDOW_US, 1000);
	nest = begin_nest(&m, HAMLYN_A_ADVERSARY);
	for (type = HAMLYN_A_ADV_DROP; type <= HAMLYN_A_ADV_STALL; type++)
		request_u32(&m.r, type, 0);
	end_nest(&m, nest);
	ask(fd, &m.r, NULL, NULL);

	memset(&m, 0, sizeof(m));
	request_init(&m.r, family, HAMLYN_NL_CMD_LIMIT_SET, NLM_F_ACK);
	request_u32(&m.r, HAMLYN_A_NIC, nic);
	nest = begin_nest(&m, HAMLYN_A_LIMITS);
	for (type = 1; type <= HAMLYN_A_LIMITS_USER_TERMINI; type++)
		put(&m, type, &(uint64_t){ UINT64_MAX },
		    type <= HAMLYN_A_LIMITS_USER_WIRED_BYTES ? 8 : 4);
	end_nest(&m, nest);
	ask(fd, &m.r, NULL, NULL);
}

#endif /* FUZZ_CALLS_NETLINK_H */
