/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the hostile tests share: contexts without the library, other users, and
 * netlink requests. Kernel device only.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "hamlyn_test.h"

#include <linux/genetlink.h>
#include <sched.h>
#include <sys/socket.h>

#include <linux/hamlyn_netlink.h>

#define PAGE	4096

/* One context with what it takes to send and to receive. */
struct party {
	int fd;
	struct hamlyn_query query;
	struct hamlyn_area_alloc area;
	struct ht_raw_nq nq;
	struct hamlyn_slot_create slot;
	struct ht_raw_terminus terminus;
	unsigned char *data;
};

static inline int party_slot(struct party *p, uint32_t flags)
{
	p->slot = (struct hamlyn_slot_create) {
		.size = sizeof(p->slot),
		.flags = flags,
		.area = p->area.area,
		.length = PAGE,
		.meta_area = HAMLYN_NONE,
		.nq = p->nq.arg.nq,
	};
	return ht_raw(p->fd, HAMLYN_IOC_SLOT_CREATE, &p->slot);
}

/* 0, or a negative errno with the descriptor, if there is one, still open. */
static inline int party_open(struct party *p)
{
	int ret;

	memset(p, 0, sizeof(*p));
	p->fd = ht_raw_open();
	if (p->fd < 0)
		return p->fd;
	ret = ht_raw_query(p->fd, &p->query);
	if (!ret)
		ret = ht_raw_area_alloc(p->fd, PAGE, &p->area,
					(void **)&p->data);
	if (!ret)
		ret = ht_raw_nq_create(p->fd, 64, &p->nq);
	if (!ret)
		ret = party_slot(p, 0);
	if (!ret)
		ret = ht_raw_terminus_create(p->fd, 8, 256, &p->terminus);
	return ret;
}

static inline void party_close(struct party *p)
{
	if (p->data)
		munmap(p->data, PAGE);
	if (p->nq.ring)
		ht_raw_nq_unmap(&p->nq);
	if (p->terminus.wq)
		ht_raw_terminus_unmap(&p->terminus);
	if (p->fd >= 0)
		close(p->fd);
	memset(p, 0, sizeof(*p));
	p->fd = -1;
}

/*
 * The number of a slot that is not there: of one that was, for any other may be a party's.
 * It is given again when all others have been. HAMLYN_NONE if there was none to be had.
 */
static inline uint32_t nobodys_slot(const struct party *p)
{
	struct hamlyn_slot_create arg;

	if (ht_raw_slot_create(p->fd, p->area.area, PAGE, HAMLYN_NONE, &arg) ||
	    ht_raw_id(p->fd, HAMLYN_IOC_SLOT_DESTROY, arg.slot))
		return HAMLYN_NONE;
	return arg.slot;
}

/* A request for @to: what is legal, to be spoilt by the test. */
static inline struct hamlyn_trb to_party(const struct party *to)
{
	return (struct hamlyn_trb) {
		.host = to->query.host,
		.slot = to->slot.slot,
		.key = to->slot.key,
		.length = 8,
	};
}

/* A watch of @of's slot, for @by's NQ. */
static inline struct hamlyn_watch watch_of(const struct party *by, const struct party *of)
{
	return (struct hamlyn_watch) {
		.size = sizeof(struct hamlyn_watch),
		.host = of->query.host,
		.slot = of->slot.slot,
		.key = of->slot.key,
		.nq = by->nq.arg.nq,
		.cookie = 0x600d,
	};
}

/* Send it: the status that it ended with, or -ETIMEDOUT. */
static inline int post(struct ht_raw_terminus *t, const struct hamlyn_trb *trb)
{
	struct hamlyn_trb *entry = ht_raw_entry(t);
	uint32_t index = t->producer;
	int status;

	memset(entry, 0, t->arg.entry_size);
	memcpy(entry, trb, sizeof(*trb));
	memset(entry + 1, 'h', 8);
	if (ht_raw_post(t) < 0 || ht_raw_done(t, index, &status))
		return -ETIMEDOUT;
	return status;
}

/* Did a message come? Behind post() it did, or never will. */
static inline bool came(struct party *p)
{
	struct hamlyn_nq_entry entry;

	return ht_raw_recv(&p->nq, &entry);
}

/* How many packets did the slot of @p discard for @reason? */
static inline int64_t rejects(const struct party *p, enum hamlyn_reject reason)
{
	struct hamlyn_stats stats = {
		.size = sizeof(stats),
		.kind = HAMLYN_STATS_SLOT,
		.id = p->slot.slot,
	};
	int ret = ht_raw(p->fd, HAMLYN_IOC_STATS, &stats);

	return ret ? ret : (int64_t)stats.rejects[reason];
}

static inline int rekey(struct party *p, uint64_t key)
{
	struct hamlyn_slot_rekey arg = {
		.size = sizeof(arg),
		.slot = p->slot.slot,
		.flags = key ? HAMLYN_SLOT_KEY_GIVEN : 0,
		.key = key,
	};
	int ret = ht_raw(p->fd, HAMLYN_IOC_SLOT_REKEY, &arg);

	if (!ret)
		p->slot.key = arg.key;
	return ret;
}

/* ---- users -------------------------------------------------------------- */

/*
 * The device remembers who guessed, so every test has users of its own: the
 * @number'th of this process. To be asked for before fork().
 */
static inline unsigned int somebody(unsigned int number)
{
	return 1000000 + 64U * (unsigned int)getpid() + number;
}

/* From here on this process is @uid, and has nothing special. */
static inline int become(unsigned int uid)
{
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		return -errno;
	ht_stay_child();
	return 0;
}

/* Root in user and network namespaces of one's own, as in a container. */
static inline int enter_container(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return -errno;
	ht_stay_child();
	return 0;
}

/* What @act says in a process of that user. It must not be negative. */
static inline int as(unsigned int uid, int (*act)(void *arg), void *arg)
{
	pid_t pid = ht_fork();

	if (!pid)
		_exit(become(uid) ? 99 : act(arg));
	return pid < 0 ? -errno : ht_reap(pid);
}

/* ---- descriptors -------------------------------------------------------- */

static inline int pass_fd(int socket, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = { .bytes = "" };
	struct iovec iov = { .iov_base = "f", .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(socket, &msg, 0) == 1 ? 0 : -errno;
}

static inline int get_fd(int socket)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = { .bytes = "" };
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	int fd = -1;

	if (recvmsg(socket, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* ---- tickets that are descriptors --------------------------------------- */

/* The descriptor, or a negative errno. */
static inline int party_make_ticket(const struct party *p, uint64_t base, uint64_t length)
{
	struct hamlyn_ticket_create arg = {
		.size = sizeof(arg),
		.slot = p->slot.slot,
		.base = base,
		.length = length,
	};
	int ret = ht_raw(p->fd, HAMLYN_IOC_TICKET_CREATE, &arg);

	return ret ? ret : arg.fd;
}

/* The index, or a negative errno. */
static inline int party_import_ticket(const struct party *p, int fd)
{
	struct hamlyn_ticket_import arg = {
		.size = sizeof(arg),
		.terminus = p->terminus.arg.terminus,
		.fd = fd,
	};
	int ret = ht_raw(p->fd, HAMLYN_IOC_TICKET_IMPORT, &arg);

	return ret ? ret : (int)arg.index;
}

/* ---- netlink ------------------------------------------------------------ */

/* A request with attributes of 32 bits, and what comes back. */
struct request {
	struct nlmsghdr header;
	struct genlmsghdr genl;
	unsigned char attrs[256];
};

static inline void request_init(struct request *r, uint16_t family,
				uint8_t command, uint16_t flags)
{
	memset(r, 0, sizeof(*r));
	r->header.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	r->header.nlmsg_type = family;
	r->header.nlmsg_flags = NLM_F_REQUEST | flags;
	r->genl.cmd = command;
	r->genl.version = 1;
}

static inline struct nlattr *request_attr(struct request *r, uint16_t type,
					  const void *value, uint16_t length)
{
	struct nlattr *a = (void *)((char *)r + NLMSG_ALIGN(r->header.nlmsg_len));

	a->nla_type = type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + length);
	memcpy((char *)a + NLA_HDRLEN, value, length);
	r->header.nlmsg_len = NLMSG_ALIGN(r->header.nlmsg_len) +
			      NLA_ALIGN(a->nla_len);
	return a;
}

static inline void request_u32(struct request *r, uint16_t type, uint32_t value)
{
	request_attr(r, type, &value, sizeof(value));
}

/*
 * Ask; 0 or the negative errno of the answer. Each message of the answer goes
 * to @each, which may be NULL.
 */
static inline int ask(int fd, struct request *r,
		      void (*each)(const struct nlmsghdr *h, void *arg),
		      void *arg)
{
	static char answer[65536] __attribute__((aligned(8)));
	const struct nlmsghdr *h;
	ssize_t n;

	if (send(fd, r, r->header.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		n = recv(fd, answer, sizeof(answer), 0);
		if (n < 0)
			return -errno;
		for (h = (void *)answer; NLMSG_OK(h, (size_t)n);
		     h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_ERROR)
				return *(const int *)NLMSG_DATA(h);
			if (h->nlmsg_type == NLMSG_DONE)
				return *(const int *)NLMSG_DATA(h);
			if (each)
				each(h, arg);
		}
	}
}

/* The attribute of a message, or NULL. */
static inline const struct nlattr *attr_of(const struct nlmsghdr *h,
					   uint16_t type)
{
	const char *p = (const char *)NLMSG_DATA(h) + GENL_HDRLEN;
	const char *end = (const char *)h + h->nlmsg_len;

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

static inline uint32_t attr_u32(const struct nlattr *a)
{
	uint32_t value = 0;

	if (a)
		memcpy(&value, (const char *)a + NLA_HDRLEN, sizeof(value));
	return value;
}

static inline void find_family(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *a = attr_of(h, CTRL_ATTR_FAMILY_ID);

	if (a)
		memcpy(arg, (const char *)a + NLA_HDRLEN, sizeof(uint16_t));
}

/* A socket, and the family's number; or a negative errno. */
static inline int netlink_open(uint16_t *family)
{
	struct request r;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	int ret;

	if (fd < 0)
		return -errno;
	*family = 0;
	request_init(&r, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	request_attr(&r, CTRL_ATTR_FAMILY_NAME, HAMLYN_FAMILY_NAME,
		     sizeof(HAMLYN_FAMILY_NAME));
	ret = ask(fd, &r, find_family, family);
	if (!ret && *family)
		return fd;
	close(fd);
	return ret ? ret : -ENOENT;
}

struct user_count {
	uint32_t uid;
	int n;
};

static inline void count_user(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *uid = attr_of(h, HAMLYN_A_UID);
	struct user_count *count = arg;

	count->n += uid && attr_u32(uid) == count->uid;
}

/* How often a user is listed, on all NICs; below 0: nobody answers. */
static inline int listed(int netlink, uint16_t family, uint32_t uid)
{
	struct user_count count = { .uid = uid };
	struct request r;

	request_init(&r, family, HAMLYN_NL_CMD_USER_GET, NLM_F_DUMP);
	return ask(netlink, &r, count_user, &count) ? -1 : count.n;
}

/* Change one property of a NIC, as administrator. */
static inline int set_nic(uint32_t nic, uint16_t attr, uint32_t value)
{
	struct request r;
	uint16_t family = 0;
	int fd = netlink_open(&family);
	int ret;

	if (fd < 0)
		return fd;
	request_init(&r, family, HAMLYN_NL_CMD_NIC_SET, NLM_F_ACK);
	request_u32(&r, HAMLYN_A_NIC, nic);
	request_u32(&r, attr, value);
	ret = ask(fd, &r, NULL, NULL);
	close(fd);
	return ret;
}

#endif /* HOSTILE_H */
