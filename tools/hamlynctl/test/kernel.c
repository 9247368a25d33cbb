// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel that is made up, and the program that is run with it. libnl's own parsing takes part;
 * what is replaced, by the linker's --wrap, is sending, receiving and finding the family.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <netlink/errno.h>
#include <netlink/genl/genl.h>

#include "unit.h"

#define FAMILY		0x21

struct kernel kernel;

void (*answer)(uint8_t command, bool dump);

static uint64_t random_state = 88172645463325252ull;

uint32_t random_u32(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 16);
}

void queue_message(struct nl_msg *msg)
{
	struct nlmsghdr *head = nlmsg_hdr(msg);
	unsigned char *copy = malloc(head->nlmsg_len);
	uint32_t i, from = NLMSG_HDRLEN + GENL_HDRLEN;

	assert_true(kernel.queued < MAX_MESSAGES);
	memcpy(copy, head, head->nlmsg_len);
	((struct nlmsghdr *)(void *)copy)->nlmsg_seq = nlmsg_hdr(kernel.request)->nlmsg_seq;
	if (kernel.fuzz && head->nlmsg_type == FAMILY && head->nlmsg_len > from)
		for (i = random_u32() % 4; i; i--)
			copy[from + random_u32() % (head->nlmsg_len - from)] =
				(unsigned char)random_u32();
	kernel.queue[kernel.queued++] = copy;
	nlmsg_free(msg);
}

struct nl_msg *reply(uint8_t command)
{
	struct nl_msg *msg = nlmsg_alloc_size(MESSAGE_BYTES);
	bool dump = nlmsg_hdr(kernel.request)->nlmsg_flags & NLM_F_DUMP;

	genlmsg_put(msg, 0, 0, FAMILY, 0,
		    (dump ? NLM_F_MULTI : 0) | (dump && kernel.disturbed > 0 ? NLM_F_DUMP_INTR : 0),
		    command, 1);
	return msg;
}

static void put_text(struct nl_msg *msg)
{
	if (!kernel.text)
		return;
	nla_put(msg, NLMSGERR_ATTR_MSG, (int)kernel.text_bytes, kernel.text);
	nlmsg_hdr(msg)->nlmsg_flags |= NLM_F_ACK_TLVS;
}

static void queue_error(int error)
{
	struct nl_msg *msg = nlmsg_alloc_size(MESSAGE_BYTES);
	const struct nlmsghdr *request = nlmsg_hdr(kernel.request);
	struct nlmsgerr *body;
	int more = !error || kernel.capped ? 0 : (int)request->nlmsg_len - NLMSG_HDRLEN;

	nlmsg_put(msg, 0, 0, NLMSG_ERROR, (int)sizeof(*body) + more,
		  more ? 0 : NLM_F_CAPPED);
	body = nlmsg_data(nlmsg_hdr(msg));
	body->error = error;
	memcpy(&body->msg, request, NLMSG_HDRLEN + (size_t)more);
	put_text(msg);
	queue_message(msg);
}

static void queue_done(void)
{
	struct nl_msg *msg = nlmsg_alloc_size(MESSAGE_BYTES);

	nlmsg_put(msg, 0, 0, NLMSG_DONE, sizeof(int), NLM_F_MULTI);
	memcpy(nlmsg_data(nlmsg_hdr(msg)), &kernel.done_error, sizeof(int));
	if (kernel.done_error)
		put_text(msg);
	queue_message(msg);
}

int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name)
{
	(void)sock;
	assert_string_equal(name, "hamlyn");
	return kernel.absent ? -NLE_OBJ_NOTFOUND : FAMILY;
}

int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *msg)
{
	uint8_t command;
	bool dump;

	nl_complete_msg(sock, msg);
	nlmsg_get(msg);
	nlmsg_free(kernel.request);
	kernel.request = msg;
	kernel.sent++;
	dump = nlmsg_hdr(msg)->nlmsg_flags & NLM_F_DUMP;
	command = genlmsg_hdr(nlmsg_hdr(msg))->cmd;
	kernel.sent_of[command]++;
	if (kernel.error || kernel.error_of[command]) {
		queue_error(kernel.error ? kernel.error : kernel.error_of[command]);
		return 0;
	}
	if (answer)
		answer(command, dump);
	if (dump) {
		queue_done();
		kernel.disturbed--;
	} else {
		queue_error(0);
	}
	return 0;
}

static int take_message(struct nl_sock *sock, struct sockaddr_nl *from, unsigned char **buffer,
			struct ucred **creds)
{
	unsigned char *message;

	(void)sock;
	(void)creds;
	memset(from, 0, sizeof(*from));
	from->nl_family = AF_NETLINK;
	if (kernel.taken == kernel.queued)
		return -NLE_AGAIN;
	message = kernel.queue[kernel.taken++];
	*buffer = message;
	return (int)((struct nlmsghdr *)(void *)message)->nlmsg_len;
}

int __wrap_nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb)
{
	nl_cb_overwrite_recv(cb, take_message);
	return __real_nl_recvmsgs(sock, cb);
}

/* ---- running the program ------------------------------------------------- */

char out[TEXT_BYTES], err[TEXT_BYTES];

static int begin_capture(FILE *stream, int *saved)
{
	int fd = memfd_create("capture", 0);

	assert_true(fd >= 0);
	fflush(stream);
	*saved = dup(fileno(stream));
	dup2(fd, fileno(stream));
	return fd;
}

static void end_capture(FILE *stream, int saved, int fd, char *text)
{
	ssize_t length;

	fflush(stream);
	dup2(saved, fileno(stream));
	close(saved);
	length = pread(fd, text, TEXT_BYTES - 1, 0);
	text[length > 0 ? length : 0] = 0;
	close(fd);
}

/* Words are split at blanks. */
int ctl(const char *line)
{
	int out_fd, err_fd, saved_out, saved_err, argc = 0, status;
	char *argv[MAX_WORDS] = { NULL }, *words, *word, *rest;

	assert_true(asprintf(&words, "hamlynctl %s", line) > 0);
	rest = words;
	while ((word = strtok_r(rest, " ", &rest)) && argc < MAX_WORDS - 1)
		argv[argc++] = word;
	kernel.sent = 0;
	memset(kernel.sent_of, 0, sizeof(kernel.sent_of));
	while (kernel.taken < kernel.queued)
		free(kernel.queue[kernel.taken++]);
	kernel.taken = 0;
	kernel.queued = 0;
	out_fd = begin_capture(stdout, &saved_out);
	err_fd = begin_capture(stderr, &saved_err);
	status = ctl_main(argc, argv);
	end_capture(stdout, saved_out, out_fd, out);
	end_capture(stderr, saved_err, err_fd, err);
	free(words);
	return status;
}

int reset(void **state)
{
	(void)state;
	while (kernel.taken < kernel.queued)
		free(kernel.queue[kernel.taken++]);
	nlmsg_free(kernel.request);
	memset(&kernel, 0, sizeof(kernel));
	answer = NULL;
	return 0;
}

void request_attrs(struct nlattr **attrs)
{
	assert_non_null(kernel.request);
	assert_int_equal(netlink_attrs(kernel.request, attrs), 0);
}

void assert_u32(struct nlattr *attr, uint32_t number)
{
	assert_non_null(attr);
	assert_int_equal(nla_len(attr), sizeof(number));
	assert_int_equal(nla_get_u32(attr), number);
}

void assert_u64(struct nlattr *attr, uint64_t number)
{
	assert_non_null(attr);
	assert_int_equal(nla_len(attr), sizeof(number));
	assert_int_equal(nla_get_u64(attr), number);
}

void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

int count_of(const char *text, const char *part)
{
	int n = 0;

	while ((text = strstr(text, part))) {
		text += strlen(part);
		n++;
	}
	return n;
}
