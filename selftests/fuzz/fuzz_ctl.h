/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hamlynctl, all of it, with a kernel that is made up: what the linker wraps is sending,
 * receiving, finding the family, terminals and time. Its output is kept for the target.
 */
#ifndef HML_FUZZ_CTL_H
#define HML_FUZZ_CTL_H

#include <stdio.h>
#include <unistd.h>

#include <netlink/errno.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include "fuzz.h"
#include "record/netlink.h"

#define FAMILY		0x21
#define MOST_MESSAGES	16
#define MOST_BYTES	4096
#define MOST_WORDS	32
#define MOST_WAITS	4

int ctl_main(int argc, char **argv);

static struct {
	unsigned char *queue[MOST_MESSAGES];
	size_t length[MOST_MESSAGES];
	uint32_t queued, taken;
	uint32_t sent;
	struct nlmsghdr request;	/* the last one's head */
	uint32_t waits;
} kernel;

/* The target's: what the kernel says to a request. */
static void answer(const struct nlmsghdr *request);

static void queue_bytes(const void *bytes, size_t length)
{
	unsigned char *copy;

	if (kernel.queued == MOST_MESSAGES)
		return;
	copy = malloc(length);
	MUST(copy);
	memcpy(copy, bytes, length);
	kernel.length[kernel.queued] = length;
	kernel.queue[kernel.queued++] = copy;
}

static void queue_done(uint16_t type, int32_t error)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr body;
	} m = {
		.head = {
			.nlmsg_len = sizeof(m), .nlmsg_type = type,
			.nlmsg_seq = kernel.request.nlmsg_seq,
			.nlmsg_flags = type == NLMSG_DONE ? NLM_F_MULTI : 0,
		},
		.body = { .error = error, .msg = kernel.request },
	};

	queue_bytes(&m, sizeof(m));
}

static void forget_answers(void)
{
	while (kernel.taken < kernel.queued)
		free(kernel.queue[kernel.taken++]);
	kernel.taken = 0;
	kernel.queued = 0;
}

int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name);
int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name)
{
	(void)sock;
	MUST(!strcmp(name, "hamlyn"));
	return FAMILY;
}

int __wrap_genl_ctrl_resolve_grp(struct nl_sock *sock, const char *name, const char *group);
int __wrap_genl_ctrl_resolve_grp(struct nl_sock *sock, const char *name, const char *group)
{
	(void)sock;
	(void)name;
	(void)group;
	return 7;
}

int __wrap_nl_socket_add_membership(struct nl_sock *sock, int group);
int __wrap_nl_socket_add_membership(struct nl_sock *sock, int group)
{
	(void)sock;
	MUST(group == 7);
	answer(&kernel.request);
	return 0;
}

/* Each request is one that the kernel could read. */
int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *msg);
int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *msg)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];

	nl_complete_msg(sock, msg);
	MUST(!netlink_attrs(msg, attrs));
	MUST(nlmsg_hdr(msg)->nlmsg_type == FAMILY);
	/* Of its ranges some are told here once more. */
	if (attrs[HAMLYN_A_WEIGHT])
		MUST(nla_get_u32(attrs[HAMLYN_A_WEIGHT]) - 1 < 64);
	if (attrs[HAMLYN_A_PACKET_SIZE])
		MUST(nla_get_u32(attrs[HAMLYN_A_PACKET_SIZE]) - 1024 <= 64512);
	if (attrs[HAMLYN_A_NIC])
		MUST(nla_get_u32(attrs[HAMLYN_A_NIC]) < 256);
	kernel.request = *nlmsg_hdr(msg);
	kernel.sent++;
	answer(nlmsg_hdr(msg));
	return 0;
}

static int take_message(struct nl_sock *sock, struct sockaddr_nl *from, unsigned char **buffer,
			struct ucred **creds)
{
	(void)sock;
	(void)creds;
	memset(from, 0, sizeof(*from));
	from->nl_family = AF_NETLINK;
	if (kernel.taken == kernel.queued)
		return -NLE_AGAIN;
	*buffer = kernel.queue[kernel.taken];
	return (int)kernel.length[kernel.taken++];
}

int __real_nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb);
int __wrap_nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb);
int __wrap_nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb)
{
	nl_cb_overwrite_recv(cb, take_message);
	return __real_nl_recvmsgs(sock, cb);
}

bool __wrap_stop_wait(int fd, int milliseconds);
bool __wrap_stop_wait(int fd, int milliseconds)
{
	(void)fd;
	(void)milliseconds;
	kernel.waits++;
	return true;
}

bool __wrap_stop_asked(void);
bool __wrap_stop_asked(void)
{
	return kernel.waits > MOST_WAITS;
}

int __wrap_isatty(int fd);
int __wrap_isatty(int fd)
{
	(void)fd;
	return 0;
}

/* ---- running it ---------------------------------------------------------- */

static char *ctl_out, *ctl_err;
static size_t ctl_out_bytes, ctl_err_bytes;

static int ctl(int argc, char **argv)
{
	FILE *saved_out = stdout, *saved_err = stderr;
	int status, first = dup(STDIN_FILENO);

	MUST(first >= 0 && !close(first));
	kernel.sent = 0;
	kernel.waits = 0;
	stdout = open_memstream(&ctl_out, &ctl_out_bytes);
	stderr = open_memstream(&ctl_err, &ctl_err_bytes);
	MUST(stdout && stderr);
	status = ctl_main(argc, argv);
	fclose(stdout);
	fclose(stderr);
	stdout = saved_out;
	stderr = saved_err;
	/* hamlynctl leaves what it opens to its end. */
	MUST(!close_range((unsigned int)first, ~0U, 0));
	forget_answers();
	return status;
}

/* Nothing that a terminal would take for more than text. */
static void check_text(const char *text, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];

		MUST((c >= ' ' && c != 0x7f) || c == '\n' || c == '\t');
		/* C1 controls, which some terminals obey. */
		MUST(c != 0xc2 || i + 1 == bytes || (unsigned char)text[i + 1] >= 0xa0);
	}
}

static void ctl_forget(void)
{
	free(ctl_out);
	free(ctl_err);
	ctl_out = NULL;
	ctl_err = NULL;
}

#endif /* HML_FUZZ_CTL_H */
