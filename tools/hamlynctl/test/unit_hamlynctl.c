// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of hamlynctl: the whole program (its main() is ctl_main() here)
 * with a kernel that is made up. libnl's own parsing takes part; what is
 * replaced, by the linker's --wrap, is sending, receiving and finding the family.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sanitizer/common_interface_defs.h>
#include <netlink/errno.h>
#include <netlink/genl/genl.h>

#include "../ctl.h"
#include "../output.h"
#include "../sample.h"
#include "../top.h"
#include "unit.h"

#define FAMILY		0x21
#define MAX_WORDS	24
#define MAX_MESSAGES	64
#define TEXT_BYTES	16384
#define MESSAGE_BYTES	2048
#define FUZZ_ROUNDS	3000
#define COMMANDS	(HAMLYN_NL_CMD_PEER_GET + 1)

/* ---- the kernel ---------------------------------------------------------- */

static struct {
	bool absent;			/* the module is not loaded */
	int sent;			/* requests so far */
	struct nl_msg *request;		/* the last one */
	int error;			/* refuse all requests with that */
	int error_of[COMMANDS];		/* or those of one kind */
	int sent_of[COMMANDS];		/* requests so far, of each kind */
	bool capped;
	const char *text;
	size_t text_bytes;
	int done_error;			/* dumps fail at their end with that */
	int disturbed;			/* that many dumps are disturbed */
	bool fuzz;			/* change some bytes of answers */
	unsigned char *queue[MAX_MESSAGES];
	int queued, taken;
} kernel;

static void (*answer)(uint8_t command, bool dump);

static uint64_t random_state = 88172645463325252ull;

static uint32_t random_u32(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 16);
}

static void queue_message(struct nl_msg *msg)
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

static struct nl_msg *reply(uint8_t command)
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

static char out[TEXT_BYTES], err[TEXT_BYTES];

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
static int ctl(const char *line)
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

static int reset(void **state)
{
	(void)state;
	while (kernel.taken < kernel.queued)
		free(kernel.queue[kernel.taken++]);
	nlmsg_free(kernel.request);
	memset(&kernel, 0, sizeof(kernel));
	answer = NULL;
	return 0;
}

static void request_attrs(struct nlattr **attrs)
{
	assert_non_null(kernel.request);
	assert_int_equal(netlink_attrs(kernel.request, attrs), 0);
}

static void assert_u32(struct nlattr *attr, uint32_t number)
{
	assert_non_null(attr);
	assert_int_equal(nla_len(attr), sizeof(number));
	assert_int_equal(nla_get_u32(attr), number);
}

static void assert_u64(struct nlattr *attr, uint64_t number)
{
	assert_non_null(attr);
	assert_int_equal(nla_len(attr), sizeof(number));
	assert_int_equal(nla_get_u64(attr), number);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static int count_of(const char *text, const char *part)
{
	int n = 0;

	while ((text = strstr(text, part))) {
		text += strlen(part);
		n++;
	}
	return n;
}

/* ---- words --------------------------------------------------------------- */

static void test_wrong_lines(void **state)
{
	static const struct {
		const char *line, *says;
	} lines[] = {
		{ "", "which object?" },
		{ "x", "object \"x\" is unknown; allowed: nic, context" },
		{ "t", "object \"t\" is ambiguous: terminus, top" },
		{ "nic x", "verb \"x\" is unknown; allowed: show, add, del, set, feed" },
		{ "nic s", "verb \"s\" is ambiguous: show, set" },
		{ "nic show 0 1", "\"1\" is too much" },
		{ "nic show 256", "\"256\" is no NIC; give hamlynN or N, from 0 to 255" },
		{ "nic show hamlyn", "is no NIC" },
		{ "nic show -1", "see --help" },
		{ "nic show eth0", "is no NIC" },
		{ "nic del", "which NIC?" },
		{ "nic add fabric eth", "fabric \"eth\" is unknown; allowed: loop, tcp" },
		{ "nic add fabric tcp", "host is needed" },
		{ "nic add fabric tcp host 1", "address is needed" },
		{ "nic add address 10.9.0.256", "such as 10.9.0.1 or fd00::1; not \"10.9.0.256\"" },
		{ "nic add id 0", "id takes 32 hexadecimal digits, not all of them 0; not \"0\"" },
		{ "nic add id 00000000000000000000000000000000", "id takes 32" },
		{ "nic add id 0000000000000000000000000000000g", "id takes 32" },
		{ "nic add id 00000000000000000000000000000001 id-from x",
		  "\"id-from\" contradicts \"id\"" },
		{ "nic add device abcdefghijklmnop", "of a network device, of up to 15 bytes" },
		{ "nic add device a/b", "device takes the name of a network device" },
		{ "nic add port 0", "port takes a number from 1 to 65535" },
		{ "nic add port 65536", "port takes a number from 1 to 65535" },
		{ "nic add security yes", "\"yes\" is unknown; allowed: encrypted, clear" },
		{ "nic add dead-ms 99", "dead-ms takes a number from 100 to 600000" },
		{ "nic add stall-ms 600001", "stall-ms takes a number from 100 to 600000" },
		{ "peer add", "which NIC?" },
		{ "peer add 1 host 4294967295 address fd00::1", "host takes a number from 0 to" },
		{ "peer add 1 address fd00::1", "which peer? say host N" },
		{ "peer add 1 host 1", "where is the peer? say address ADDRESS" },
		{ "peer del 1", "which peer? say host N" },
		{ "peer del 1 host 2 port 3", "keyword \"port\" is unknown; allowed: host, netns" },
		{ "peer show host 2", "host is an id of one NIC's peers" },
		{ "peer show 1 netns /no/where", "there is no network namespace \"/no/where\"" },
		{ "nic set 0", "set what?" },
		{ "nic set 0 up down", "\"down\" contradicts \"up\"" },
		{ "nic set 0 up up", "up is given twice" },
		{ "nic set 0 idle-us", "idle-us needs a value: US" },
		{ "nic set 0 idle-us 1x", "takes a number from 0 to 10000000, not \"1x\"" },
		{ "nic set 0 idle-us 0x", "idle-us takes a number" },
		{ "nic set 0 adversary", "adversary needs at least one keyword behind it" },
		{ "nic set 0 adversary up", "adversary needs at least one keyword behind it" },
		{ "nic set 0 drop 1%", "keyword \"drop\" is unknown" },
		{ "nic set 0 adversary drop 1", "drop takes a rate from 0 to 100%" },
		{ "nic set 0 adversary drop 100.1%", "drop takes a rate" },
		{ "nic set 0 adversary drop 0.00001%", "drop takes a rate" },
		{ "nic set 0 adversary drop 1.%%", "drop takes a rate" },
		{ "nic set 0 adversary drop 1% off", "drop is given twice" },
		{ "nic set 0 adversary d 1%", "ambiguous: down, drop, duplicate, delay-us" },
		{ "nic set 0 netns nowhere", "there is no network namespace \"nowhere\"" },
		{ "nic add engine fast", "engine \"fast\" is unknown; allowed: inline, poll" },
		{ "nic add packet-size 1", "packet-size takes a number from 1024 to 65536" },
		{ "nic add packet-size 99999999999999999999", "packet-size takes a number" },
		{ "nic add max-slots 17179869184T", "max-slots takes a number" },
		{ "nic feed 0 every 0", "every takes a number from 1" },
		{ "terminus set 0", "which context?" },
		{ "terminus set 0 1", "which terminus?" },
		{ "terminus set 0 1 2", "set what? priority or weight" },
		{ "terminus set 0 1 2 weight 0", "weight takes a number from 1 to 64" },
		{ "terminus set 0 4294967296 2 weight 1", "context takes a number" },
		{ "terminus set 0 1 2 prio x", "\"x\" is unknown; allowed: normal, bulk, high" },
		{ "limit", "which verb?" },
		{ "limit set 0 uid root", "set which limit?" },
		{ "limit set 0 user-slots 4294967295", "a number from 0 to 4294967294" },
		{ "limit set 0 user-slots many", "or unlimited; not \"many\"" },
		{ "limit set 0 uid nobody-here user-slots 1", "there is no user \"nobody-here\"" },
		{ "limit reset 0", "of which user?" },
		{ "area show 0 context", "context needs a value: ID" },
		{ "area show 0 x 1", "keyword \"x\" is unknown; allowed: context" },
		{ "context show 0 context 1", "is too much" },
		{ "nic show -n 1", "-n is for top only" },
		{ "top -d 0", "-d takes seconds from 0.1 to 3600" },
		{ "top -d nan", "-d takes seconds" },
		{ "top -n 0", "-n takes a number from 1" },
		{ "monitor x", "is too much" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_int_equal(ctl(lines[i].line), STATUS_USAGE);
		assert_has(err, lines[i].says);
		assert_int_equal(kernel.sent, 0);
	}
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		uint64_t ppm;
	} rates[] = {
		{ "0", 0 }, { "0%", 0 }, { "100%", 1000000 }, { "0.5%", 5000 },
		{ "0.0001%", 1 }, { "0.00010%", 1 }, { "99.9999%", 999999 }, { "7ppm", 7 },
		{ "1000000ppm", 1000000 },
	};
	uint64_t number;
	char text[24];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		assert_int_equal(parse_rate("rate", rates[i].text, &number), 0);
		assert_int_equal(number, rates[i].ppm);
	}
	assert_int_equal(parse_size("size", "16777215T", 0, UINT64_MAX, &number), 0);
	assert_int_equal(number, 16777215ull << 40);
	assert_int_equal(parse_number("n", "0x10", 0, 16, &number), 0);
	assert_int_equal(number, 16);
	assert_string_equal(format_size(0, text), "0");
	assert_string_equal(format_size(1025, text), "1025");
	assert_string_equal(format_size(16384, text), "16K");
	assert_string_equal(format_size(1ull << 50, text), "1024T");
	assert_string_equal(format_size(UINT64_MAX, text), "18446744073709551615");
}

static void test_help(void **state)
{
	(void)state;
	assert_int_equal(ctl("--help"), 0);
	assert_has(out, "Objects:");
	assert_int_equal(ctl("nic help"), 0);
	assert_has(out, "feed   NIC [every MS] [count N]");
	assert_int_equal(ctl("nic add --help"), 0);
	assert_has(out, "user-slots N");
	assert_has(out, "watchdog-ms MS");
	assert_int_equal(ctl("top -h"), 0);
	assert_has(out, "Keys: q quit");
	assert_int_equal(ctl("-V"), 0);
	assert_has(out, "hamlynctl ");
	assert_int_equal(kernel.sent, 0);
}

/* ---- requests ------------------------------------------------------------ */

static void test_nic_set(void **state)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1], *adv[HAMLYN_A_ADV_MAX + 1];

	(void)state;
	assert_int_equal(ctl("nic set /dev/hamlyn3 down watchdog 7 idle 8 adversary drop 1% "
			     "seed 0xffffffffffffffff kick 9 guesses 4"), 0);
	assert_int_equal(netlink_command(kernel.request), HAMLYN_NL_CMD_NIC_SET);
	request_attrs(attrs);
	assert_u32(attrs[HAMLYN_A_NIC], 3);
	assert_u32(attrs[HAMLYN_A_STATE], HAMLYN_NL_STATE_DOWN);
	assert_u32(attrs[HAMLYN_A_WATCHDOG_MS], 7);
	assert_u32(attrs[HAMLYN_A_IDLE_US], 8);
	assert_u32(attrs[HAMLYN_A_KICK_WINDOW_US], 9);
	assert_u32(attrs[HAMLYN_A_GUESSES], 4);
	assert_null(attrs[HAMLYN_A_NAME]);
	assert_null(attrs[HAMLYN_A_LIMITS]);
	assert_true(nla_type(attrs[HAMLYN_A_ADVERSARY]) == HAMLYN_A_ADVERSARY);
	assert_int_equal(nla_parse_nested(adv, HAMLYN_A_ADV_MAX, attrs[HAMLYN_A_ADVERSARY],
					  NULL), 0);
	assert_u32(adv[HAMLYN_A_ADV_DROP], 10000);
	assert_u64(adv[HAMLYN_A_ADV_SEED], UINT64_MAX);
	assert_null(adv[HAMLYN_A_ADV_CORRUPT]);

	assert_int_equal(ctl("nic set 0 adversary off"), 0);
	request_attrs(attrs);
	assert_int_equal(nla_parse_nested(adv, HAMLYN_A_ADV_MAX, attrs[HAMLYN_A_ADVERSARY],
					  NULL), 0);
	assert_u32(adv[HAMLYN_A_ADV_DROP], 0);
	assert_u32(adv[HAMLYN_A_ADV_DUPLICATE], 0);
	assert_u32(adv[HAMLYN_A_ADV_CORRUPT], 0);
	assert_u32(adv[HAMLYN_A_ADV_REORDER], 0);
	assert_u32(adv[HAMLYN_A_ADV_DELAY_US], 0);
	assert_u32(adv[HAMLYN_A_ADV_STALL], 0);
	assert_null(adv[HAMLYN_A_ADV_SEED]);
}

static void test_limits(void **state)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1], *limits[HAMLYN_A_LIMITS_MAX + 1];

	(void)state;
	assert_int_equal(ctl("limit set 1 uid 1001 user-slots 3 user-w 2G user-k unlimited "
			     "user-termini unlimited"), 0);
	assert_int_equal(netlink_command(kernel.request), HAMLYN_NL_CMD_LIMIT_SET);
	request_attrs(attrs);
	assert_u32(attrs[HAMLYN_A_UID], 1001);
	assert_int_equal(nla_parse_nested(limits, HAMLYN_A_LIMITS_MAX, attrs[HAMLYN_A_LIMITS],
					  NULL), 0);
	assert_u32(limits[HAMLYN_A_LIMITS_USER_SLOTS], 3);
	assert_u32(limits[HAMLYN_A_LIMITS_USER_TERMINI], UINT32_MAX);
	assert_u64(limits[HAMLYN_A_LIMITS_USER_WIRED_BYTES], 2ull << 30);
	assert_u64(limits[HAMLYN_A_LIMITS_USER_KERNEL_BYTES], UINT64_MAX);
	assert_int_equal(ctl("limit reset 1 uid root"), 0);
	request_attrs(attrs);
	assert_u32(attrs[HAMLYN_A_UID], 0);
	assert_null(attrs[HAMLYN_A_LIMITS]);
}

static void test_other_requests(void **state)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];

	(void)state;
	assert_int_equal(ctl("terminus set 1 2 3 weight 4 priority high"), 0);
	request_attrs(attrs);
	assert_u32(attrs[HAMLYN_A_NIC], 1);
	assert_u32(attrs[HAMLYN_A_CONTEXT], 2);
	assert_u32(attrs[HAMLYN_A_ID], 3);
	assert_u32(attrs[HAMLYN_A_WEIGHT], 4);
	assert_u32(attrs[HAMLYN_A_PRIORITY], HAMLYN_NL_PRIORITY_HIGH);
	assert_int_equal(ctl("slot show 1 context 2"), 0);
	request_attrs(attrs);
	assert_u32(attrs[HAMLYN_A_CONTEXT], 2);
	assert_int_equal(netlink_command(kernel.request), HAMLYN_NL_CMD_SLOT_GET);
	assert_true(nlmsg_hdr(kernel.request)->nlmsg_flags & NLM_F_DUMP);
	assert_int_equal(ctl("slot show"), 0);
	request_attrs(attrs);
	assert_null(attrs[HAMLYN_A_NIC]);
	assert_int_equal(ctl("nic feed 2 every 1 count 3"), 0);
	assert_int_equal(kernel.sent, 3);
}

/* ---- fabrics and peers ---------------------------------------------------- */

static void assert_bytes(struct nlattr *attr, const void *bytes, size_t length)
{
	assert_non_null(attr);
	assert_int_equal(nla_len(attr), length);
	assert_memory_equal(nla_data(attr), bytes, length);
}

static void test_fabric(void **state)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1], *fab[HAMLYN_A_FAB_MAX + 1];

	(void)state;
	assert_int_equal(ctl("nic add fabric tcp host 1 device wg0 address 10.9.0.1 dead-ms 100 "
			     "id 000102030405060708090A0B0C0D0E0f port 65535"), 0);
	assert_int_equal(netlink_command(kernel.request), HAMLYN_NL_CMD_NIC_NEW);
	request_attrs(attrs);
	assert_u32(attrs[HAMLYN_A_HOST], 1);
	assert_int_equal(nla_parse_nested(fab, HAMLYN_A_FAB_MAX, attrs[HAMLYN_A_FABRIC], NULL),
			 0);
	assert_u32(fab[HAMLYN_A_FAB_KIND], HAMLYN_NL_FABRIC_TCP);
	assert_bytes(fab[HAMLYN_A_FAB_ID], "\0\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\xd\xe\xf", 16);
	assert_bytes(fab[HAMLYN_A_FAB_ADDRESS], "\x0a\x09\x00\x01", 4);
	assert_int_equal(nla_len(fab[HAMLYN_A_FAB_PORT]), 2);
	assert_int_equal(nla_get_u16(fab[HAMLYN_A_FAB_PORT]), 65535);
	assert_bytes(fab[HAMLYN_A_FAB_DEVICE], "wg0", 4);
	assert_u32(fab[HAMLYN_A_FAB_DEAD_MS], 100);
	assert_null(fab[HAMLYN_A_FAB_CLEAR]);
	assert_null(fab[HAMLYN_A_FAB_STALL_MS]);
}

/* FNV-1a of 128 bits, as others compute it; the default is the id of "hamlyn". */
static void test_fabric_id(void **state)
{
	static const char empty[] =
		"\x6c\x62\x27\x2e\x07\xbb\x01\x42\x62\xb8\x21\x75\x62\x95\xc5\x8d";
	static const char letter[] =
		"\xd2\x28\xcb\x69\x6f\x1a\x8c\xaf\x78\x91\x2b\x70\x4e\x4a\x89\x64";
	struct nlattr *attrs[HAMLYN_A_MAX + 1], *fab[HAMLYN_A_FAB_MAX + 1];
	unsigned char id[16];

	(void)state;
	id_from_name("", id);
	assert_memory_equal(id, empty, 16);
	id_from_name("a", id);
	assert_memory_equal(id, letter, 16);
	assert_int_equal(ctl("nic add fabric tcp host 1 address fd00::1 security clear"), 0);
	request_attrs(attrs);
	assert_int_equal(nla_parse_nested(fab, HAMLYN_A_FAB_MAX, attrs[HAMLYN_A_FABRIC], NULL),
			 0);
	id_from_name("hamlyn", id);
	assert_bytes(fab[HAMLYN_A_FAB_ID], id, 16);
	assert_non_null(fab[HAMLYN_A_FAB_CLEAR]);
	assert_int_equal(nla_len(fab[HAMLYN_A_FAB_ADDRESS]), 16);
	assert_int_equal(ctl("nic add fabric tcp host 1 address fd00::1 id-from hamlyn"), 0);
	request_attrs(attrs);
	assert_int_equal(nla_parse_nested(fab, HAMLYN_A_FAB_MAX, attrs[HAMLYN_A_FABRIC], NULL),
			 0);
	assert_bytes(fab[HAMLYN_A_FAB_ID], id, 16);
	/* Of a loop nothing is said but that. */
	assert_int_equal(ctl("nic add fabric loop"), 0);
	request_attrs(attrs);
	assert_int_equal(nla_len(attrs[HAMLYN_A_FABRIC]), NLA_HDRLEN + 4);
}

static void test_peer(void **state)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1], *peer[HAMLYN_A_PEER_MAX + 1];

	(void)state;
	assert_int_equal(ctl("peer add hamlyn1 host 2 address 10.9.0.2 port 1"), 0);
	assert_int_equal(netlink_command(kernel.request), HAMLYN_NL_CMD_PEER_NEW);
	request_attrs(attrs);
	assert_u32(attrs[HAMLYN_A_NIC], 1);
	assert_null(attrs[HAMLYN_A_HOST]);
	assert_int_equal(nla_parse_nested(peer, HAMLYN_A_PEER_MAX, attrs[HAMLYN_A_PEER], NULL),
			 0);
	assert_u32(peer[HAMLYN_A_PEER_HOST], 2);
	assert_bytes(peer[HAMLYN_A_PEER_ADDRESS], "\x0a\x09\x00\x02", 4);
	assert_int_equal(nla_get_u16(peer[HAMLYN_A_PEER_PORT]), 1);
	assert_null(peer[HAMLYN_A_PEER_USERS]);
	assert_int_equal(ctl("peer add hamlyn1 host 2 address 10.9.0.2 users same"), 0);
	request_attrs(attrs);
	assert_int_equal(nla_parse_nested(peer, HAMLYN_A_PEER_MAX, attrs[HAMLYN_A_PEER], NULL),
			 0);
	assert_u32(peer[HAMLYN_A_PEER_USERS], HAMLYN_NL_PEER_USERS_SAME);
	assert_null(peer[HAMLYN_A_PEER_USER_MAP]);
	assert_int_equal(ctl("peer add hamlyn1 host 2 address 10.9.0.2 "
			     "users 1000:2000,3000-3999:5000,0-4294967294:0"), 0);
	request_attrs(attrs);
	assert_int_equal(nla_parse_nested(peer, HAMLYN_A_PEER_MAX, attrs[HAMLYN_A_PEER], NULL),
			 0);
	assert_u32(peer[HAMLYN_A_PEER_USERS], HAMLYN_NL_PEER_USERS_MAP);
	assert_bytes(peer[HAMLYN_A_PEER_USER_MAP],
		     ((const uint32_t []){ 1000, 2000, 1, 3000, 5000, 1000, 0, 0, UINT32_MAX }),
		     36);
	assert_int_equal(ctl("peer del 1 host 2"), 0);
	assert_int_equal(netlink_command(kernel.request), HAMLYN_NL_CMD_PEER_DEL);
	request_attrs(attrs);
	assert_int_equal(nla_parse_nested(peer, HAMLYN_A_PEER_MAX, attrs[HAMLYN_A_PEER], NULL),
			 0);
	assert_u32(peer[HAMLYN_A_PEER_HOST], 2);
	assert_null(peer[HAMLYN_A_PEER_ADDRESS]);
	assert_int_equal(ctl("peer show"), 0);
	assert_true(nlmsg_hdr(kernel.request)->nlmsg_flags & NLM_F_DUMP);
	request_attrs(attrs);
	assert_null(attrs[HAMLYN_A_NIC]);
	assert_null(attrs[HAMLYN_A_PEER]);
}

/* ---- refusals ------------------------------------------------------------ */

static void test_kernel_text(void **state)
{
	(void)state;
	kernel.error = -EBUSY;
	kernel.text = "hamlyn0 is open: 1 descriptors";
	kernel.text_bytes = strlen(kernel.text) + 1;
	for (kernel.capped = false; ; kernel.capped = true) {
		assert_int_equal(ctl("nic del 0"), STATUS_REFUSED);
		assert_string_equal(err, "hamlynctl: hamlyn0: hamlyn0 is open: 1 descriptors "
				    "(Device or resource busy)\n");
		if (kernel.capped)
			break;
	}
	kernel.text_bytes = 8;		/* without a NUL, at the end of the message */
	assert_int_equal(ctl("area show 5"), STATUS_REFUSED);
	assert_string_equal(err, "hamlynctl: hamlyn5: hamlyn0  (Device or resource busy)\n");
	kernel.text = "a b\033[2J\xc2\x9b\n";
	kernel.text_bytes = strlen(kernel.text) + 1;
	assert_int_equal(ctl("area show 5"), STATUS_REFUSED);
	assert_string_equal(err, "hamlynctl: hamlyn5: a b\\x1b[2J\\xc2\\x9b\\x0a "
			    "(Device or resource busy)\n");
	kernel.text = NULL;
	assert_int_equal(ctl("nic show"), STATUS_REFUSED);
	assert_string_equal(err, "hamlynctl: all NICs: Device or resource busy\n");
	kernel.error = -EPERM;
	assert_int_equal(ctl("nic add"), STATUS_REFUSED);
	assert_has(err, "new NIC: Operation not permitted; this needs CAP_NET_ADMIN");
	kernel.error = -EOPNOTSUPP;
	assert_int_equal(ctl("audit show"), STATUS_REFUSED);
	assert_has(err, "the module is older than hamlynctl");
}

static void test_dump_fails_at_its_end(void **state)
{
	(void)state;
	kernel.done_error = -ENOENT;
	assert_int_equal(ctl("area show 0 context 1"), STATUS_REFUSED);
	assert_string_equal(err, "hamlynctl: hamlyn0: No such file or directory\n");
	kernel.text = "the NIC has no such context";
	kernel.text_bytes = strlen(kernel.text) + 1;
	assert_int_equal(ctl("-j area show 0 context 1"), STATUS_REFUSED);
	assert_has(err, "hamlyn0: the NIC has no such context (No such file or directory)");
	assert_string_equal(out, "");
}

static void test_no_module(void **state)
{
	(void)state;
	kernel.absent = true;
	assert_int_equal(ctl("nic show"), STATUS_REFUSED);
	assert_string_equal(err, "hamlynctl: the hamlyn module is not loaded "
			    "(no netlink family \"hamlyn\")\n");
	assert_int_equal(ctl("top -b"), STATUS_REFUSED);
	assert_int_equal(ctl("monitor"), STATUS_REFUSED);
}

/* ---- answers ------------------------------------------------------------- */

static void put_nest(struct nl_msg *msg, int attr, int first, int last, bool wide)
{
	struct nlattr *nest = nla_nest_start(msg, attr);
	int i;

	for (i = first; i <= last; i++)
		if (wide)
			nla_put_u64(msg, i, (uint64_t)i);
		else
			nla_put_u32(msg, i, (uint32_t)i);
	nla_nest_end(msg, nest);
}

static void put_limits(struct nl_msg *msg)
{
	struct nlattr *nest = nla_nest_start(msg, HAMLYN_A_LIMITS);

	nla_put_u64(msg, HAMLYN_A_LIMITS_KERNEL_BYTES, UINT64_MAX);
	nla_put_u64(msg, HAMLYN_A_LIMITS_USER_KERNEL_BYTES, 1 << 20);
	nla_put_u64(msg, HAMLYN_A_LIMITS_USER_WIRED_BYTES, UINT32_MAX);
	nla_put_u32(msg, HAMLYN_A_LIMITS_USER_SLOTS, UINT32_MAX);
	nla_put_u32(msg, HAMLYN_A_LIMITS_USER_TERMINI, 0);
	nla_nest_end(msg, nest);
}

static void put_fabric(struct nl_msg *msg)
{
	struct nlattr *nest = nla_nest_start(msg, HAMLYN_A_FABRIC);

	nla_put_u32(msg, HAMLYN_A_FAB_KIND, HAMLYN_NL_FABRIC_TCP);
	nla_put(msg, HAMLYN_A_FAB_ID, 16, "0123456789abcdef");
	nla_put(msg, HAMLYN_A_FAB_ADDRESS, 4, "\x0a\x09\x00\x01");
	nla_put_u16(msg, HAMLYN_A_FAB_PORT, 7000);
	nla_put_string(msg, HAMLYN_A_FAB_DEVICE, "wg0");
	nla_put_u32(msg, HAMLYN_A_FAB_DEAD_MS, 5000);
	nla_put_u32(msg, HAMLYN_A_FAB_STALL_MS, 1000);
	nla_nest_end(msg, nest);
}

static void put_peer(struct nl_msg *msg)
{
	struct nlattr *nest = nla_nest_start(msg, HAMLYN_A_PEER);

	nla_put_u32(msg, HAMLYN_A_PEER_HOST, 2);
	nla_put(msg, HAMLYN_A_PEER_ADDRESS, 16,
		"\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02");
	nla_put_u16(msg, HAMLYN_A_PEER_PORT, HAMLYN_FABRIC_PORT);
	nla_put_u32(msg, HAMLYN_A_PEER_STATE, HAMLYN_NL_PEER_STATE_UP);
	nla_put_u32(msg, HAMLYN_A_PEER_REASON, HAMLYN_NL_PEER_REASON_OTHER_FABRIC);
	nla_put_u64(msg, HAMLYN_A_PEER_SENT_BYTES, UINT64_MAX);
	nla_put_u32(msg, HAMLYN_A_PEER_USERS, HAMLYN_NL_PEER_USERS_SAME);
	nla_nest_end(msg, nest);
}

/* The same peer, whose users a map says. */
static void answer_map(uint8_t command, bool dump)
{
	static const uint32_t map[][3] = { { 1000, 2000, 1 }, { 3000, 5000, 1000 } };
	struct nl_msg *msg = reply(command);
	struct nlattr *nest;

	(void)dump;
	nla_put_u32(msg, HAMLYN_A_NIC, 1);
	nest = nla_nest_start(msg, HAMLYN_A_PEER);
	nla_put_u32(msg, HAMLYN_A_PEER_HOST, 2);
	nla_put(msg, HAMLYN_A_PEER_ADDRESS, 4, "\x0a\x09\x00\x02");
	nla_put_u16(msg, HAMLYN_A_PEER_PORT, HAMLYN_FABRIC_PORT);
	nla_put_u32(msg, HAMLYN_A_PEER_USERS, HAMLYN_NL_PEER_USERS_MAP);
	nla_put(msg, HAMLYN_A_PEER_USER_MAP, sizeof(map), map);
	nla_nest_end(msg, nest);
	queue_message(msg);
}

static void test_user_map(void **state)
{
	static const char *const wrong[] = {
		":", "1:", ":1", "1:2,", ",1:2", "1:2:3", "1-:2", "1-0:2", "-1:2", "1:-2", "1:a",
		"4294967295:1", "1:4294967295", "0-4294967294:1", "0x1:2", "99999999999:1",
		"0-1:4294967294",
	};
	char line[1024] = "peer add 1 host 2 address 10.9.0.2 users 0:0";
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		char text[128];

		snprintf(text, sizeof(text), "peer add 1 host 2 address 10.9.0.2 users %s",
			 wrong[i]);
		assert_int_equal(ctl(text), STATUS_USAGE);
	}
	for (i = 1; i < HAMLYN_PEER_USER_RANGES; i++)
		sprintf(line + strlen(line), ",%zu:0", i);
	assert_int_equal(ctl(line), 0);
	strcat(line, ",99:0");
	assert_int_equal(ctl(line), STATUS_USAGE);
	assert_has(err, "up to 32 ranges");
	assert_int_equal(ctl("peer add 1 host 2 address 10.9.0.2 users map"), STATUS_USAGE);
	assert_int_equal(ctl("peer add 1 host 2 address 10.9.0.2 users 1:2 users same"),
			 STATUS_USAGE);
	assert_has(err, "users is given twice");
	answer = answer_map;
	assert_int_equal(ctl("peer show 1"), 0);
	assert_has(out, " users map\n    user-map 1000:2000,3000-3999:5000\n");
	assert_int_equal(ctl("-j peer show 1"), 0);
	assert_has(out, "\"users\":\"map\",\"user_map\":\"1000:2000,3000-3999:5000\"");
}

/* All attributes with their right types, whatever was asked for. */
static void put_everything(struct nl_msg *msg)
{
	static const uint16_t wide[] = {
		HAMLYN_A_KERNEL_BYTES, HAMLYN_A_WIRED_BYTES, HAMLYN_A_LENGTH, HAMLYN_A_BASE,
		HAMLYN_A_LOST, HAMLYN_A_MESSAGES, HAMLYN_A_PACKETS, HAMLYN_A_BYTES,
		HAMLYN_A_FAILED, HAMLYN_A_NOTIFICATIONS, HAMLYN_A_OVERRUNS, HAMLYN_A_KICKS,
		HAMLYN_A_PAUSES, HAMLYN_A_SEQUENCE, HAMLYN_A_TIME_NS, HAMLYN_A_OFFSET,
	};
	static const uint16_t narrow[] = {
		HAMLYN_A_NIC, HAMLYN_A_CONTEXT, HAMLYN_A_ID, HAMLYN_A_HOST, HAMLYN_A_WATCHDOG_MS,
		HAMLYN_A_ENGINES, HAMLYN_A_IDLE_US, HAMLYN_A_KICK_WINDOW_US,
		HAMLYN_A_PACKET_SIZE, HAMLYN_A_MAX_SLOTS, HAMLYN_A_GUESSES, HAMLYN_A_WEIGHT,
		HAMLYN_A_CONTEXTS, HAMLYN_A_AREAS, HAMLYN_A_SLOTS, HAMLYN_A_NQS,
		HAMLYN_A_TERMINI, HAMLYN_A_WATCHES, HAMLYN_A_PID, HAMLYN_A_USERS, HAMLYN_A_SLOT,
		HAMLYN_A_AREA, HAMLYN_A_META_AREA, HAMLYN_A_META_COUNT, HAMLYN_A_NQ,
		HAMLYN_A_ENTRIES, HAMLYN_A_USED, HAMLYN_A_ENTRY_SIZE, HAMLYN_A_PENDING,
		HAMLYN_A_PAUSED_MS, HAMLYN_A_TAGS, HAMLYN_A_SOURCE,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wide); i++)
		nla_put_u64(msg, wide[i], wide[i]);
	for (i = 0; i < ARRAY_SIZE(narrow); i++)
		nla_put_u32(msg, narrow[i], narrow[i]);
	nla_put_u32(msg, HAMLYN_A_STATE, HAMLYN_NL_STATE_UNFED);
	nla_put_u32(msg, HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_POLL);
	nla_put_u32(msg, HAMLYN_A_PRIORITY, HAMLYN_NL_PRIORITY_BULK);
	nla_put_u32(msg, HAMLYN_A_SLOT_MODE, HAMLYN_NL_SLOT_MODE_PARANOID);
	nla_put_u32(msg, HAMLYN_A_REASON, HAMLYN_NL_REASON_ONE_SHOT);
	nla_put_u32(msg, HAMLYN_A_UID, 0);
	nla_put_flag(msg, HAMLYN_A_FED);
	nla_put_flag(msg, HAMLYN_A_ACTIVE);
	nla_put_string(msg, HAMLYN_A_NAME, "hamlyn1");
	nla_put(msg, HAMLYN_A_COMM, 4, "a\033\xff\x62");
	put_limits(msg);
	put_fabric(msg);
	put_peer(msg);
	put_nest(msg, HAMLYN_A_ADVERSARY, HAMLYN_A_ADV_DROP, HAMLYN_A_ADV_STALL, false);
	put_nest(msg, HAMLYN_A_REJECTS, HAMLYN_A_REJECTS_SLOT, HAMLYN_A_REJECTS_DOWN, true);
	/* What this program does not know yet */
	nla_put_u32(msg, HAMLYN_A_MAX + 7, 1);
}

static void answer_everything(uint8_t command, bool dump)
{
	struct nl_msg *msg;
	int i;

	for (i = 0; i < (dump ? 2 : 1); i++) {
		msg = reply(command);
		put_everything(msg);
		queue_message(msg);
	}
}

static void test_text(void **state)
{
	(void)state;
	answer = answer_everything;
	assert_int_equal(ctl("nic show 1"), 0);
	assert_has(out, "hamlyn1: host 6 state unfed watchdog-ms 9 fed yes engine poll");
	assert_has(out, "adversary: drop 0.0002% duplicate 0.0003%");
	assert_has(out, "fabric: kind tcp id 30313233343536373839616263646566 address 10.9.0.1");
	assert_has(out, "port 7000 device wg0 dead-ms 5000 stall-ms 1000\n");
	assert_has(out, "kernel-memory unlimited user-kernel-memory 1M");
	assert_has(out, "user-wired-memory 4294967295 user-slots unlimited user-termini 0");
	assert_int_equal(ctl("peer show"), 0);
	assert_has(out, "hamlyn1: host 2 address fd00::2 port 927 users same state up "
		   "reason other-fabric\n"
		   "    sent-bytes 18446744073709551615\n");
	assert_int_equal(ctl("context show"), 0);
	assert_has(out, "a\\x1b\\xffb  root ");
	assert_has(out, "NIC      CONTEXT");
	assert_int_equal(ctl("slot show"), 0);
	assert_has(out, "slot:1,key:2,bounds:3,metadata:4,format:5,one-shot:6,ticket:7,down:8\n");
	assert_int_equal(ctl("user show"), 0);
	assert_has(out, ",user-slots:unlimited,user-termini:0\n");
	assert_int_equal(ctl("audit show"), 0);
	assert_has(out, " one-shot ");
}

static void test_json(void **state)
{
	(void)state;
	answer = answer_everything;
	assert_int_equal(ctl("-j nic show 1"), 0);
	assert_has(out, "[{\"nic\":1,\"name\":\"hamlyn1\",\"host\":6,\"state\":\"unfed\",");
	assert_has(out, "\"limits\":{\"kernel_memory\":null,\"user_kernel_memory\":1048576,"
		   "\"user_wired_memory\":4294967295,\"user_slots\":null,\"user_termini\":0}}]\n");
	assert_has(out, "\"address\":\"10.9.0.1\",\"port\":7000,\"device\":\"wg0\",\"dead_ms\"");
	assert_int_equal(ctl("-j peer show 1 host 2"), 0);
	assert_has(out, "[{\"nic\":1,\"name\":\"hamlyn1\",\"host\":2,\"address\":\"fd00::2\","
		   "\"port\":927,\"users\":\"same\",\"state\":\"up\",\"reason\":\"other-fabric\",");
	assert_int_equal(ctl("-j context show"), 0);
	assert_has(out, "\"comm\":\"a\\u001b\xef\xbf\xbd\x62\",\"uid\":0,\"user\":\"root\",");
	assert_has(out, "},{\"nic\"");
	assert_int_equal(ctl("-j -p terminus show"), 0);
	assert_has(out, "\n    \"paused_ms\": ");
	answer = NULL;
	assert_int_equal(ctl("-j area show"), 0);
	assert_string_equal(out, "[]\n");
}

/* What a user can make is counted: no label has a process, a user, a context or a slot. */
static void test_metrics(void **state)
{
	(void)state;
	answer = answer_everything;
	assert_int_equal(ctl("metrics"), 0);
	assert_has(out, "# TYPE hamlyn_nic_sent_bytes counter\n# UNIT hamlyn_nic_sent_bytes bytes\n"
		   "hamlyn_nic_sent_bytes_total{nic=\"hamlyn1\"} ");
	assert_has(out, "hamlyn_nic_info{nic=\"hamlyn1\",host=\"6\",engine=\"poll\","
		   "fabric=\"tcp\"} 1\n");
	assert_has(out, "hamlyn_nic_state{nic=\"hamlyn1\",state=\"up\"} 0\n");
	assert_has(out, "hamlyn_nic_state{nic=\"hamlyn1\",state=\"unfed\"} 1\n");
	assert_has(out, "hamlyn_nic_rejected_packets_total{nic=\"hamlyn1\",reason=\"key\"} 2\n");
	assert_has(out, "hamlyn_peer_info{nic=\"hamlyn1\",peer=\"2\",address=\"fd00::2\"} 1\n");
	assert_has(out, "hamlyn_peer_up{nic=\"hamlyn1\",peer=\"2\"} 1\n");
	assert_has(out, "hamlyn_peer_last_end{nic=\"hamlyn1\",peer=\"2\","
		   "reason=\"other-fabric\"} 1\n");
	assert_has(out, "peer_sent_bytes_total{nic=\"hamlyn1\",peer=\"2\"} 18446744073709551615\n");
	assert_has(out, "hamlyn_up 1\n");
	assert_has(out, "\n# EOF\n");
	assert_null(strstr(out, "uid"));
	assert_null(strstr(out, "context="));
	assert_int_equal(kernel.sent_of[HAMLYN_NL_CMD_CONTEXT_GET], 0);
	assert_int_equal(kernel.sent_of[HAMLYN_NL_CMD_USER_GET], 0);
	/* Whoever may not see counters sees NICs, and that is no failure. */
	kernel.error_of[HAMLYN_NL_CMD_STATS_GET] = -EPERM;
	kernel.error_of[HAMLYN_NL_CMD_PEER_GET] = -EPERM;
	assert_int_equal(ctl("metrics"), 0);
	assert_has(out, "hamlyn_up 1\n");
	assert_has(out, "hamlyn_nic_contexts{");
	assert_null(strstr(out, "messages"));
	assert_null(strstr(out, "peer"));
	kernel.error_of[HAMLYN_NL_CMD_STATS_GET] = -EIO;
	assert_int_equal(ctl("metrics"), 0);
	assert_has(out, "hamlyn_up 0\n");
	assert_null(strstr(out, "hamlyn_nic"));
	kernel.absent = true;
	assert_int_equal(ctl("metrics"), 0);
	assert_has(out, "hamlyn_up 0\n");
	assert_string_equal(err, "");
	assert_int_equal(ctl("metrics serve"), STATUS_REFUSED);
	assert_has(err, "systemctl start hamlyn-metrics.socket");
}

static void answer_little(uint8_t command, bool dump)
{
	struct nl_msg *msg = reply(command);

	(void)dump;
	nla_put_u32(msg, HAMLYN_A_NIC, 2);
	nla_put_u32(msg, HAMLYN_A_PRIORITY, 77);
	queue_message(msg);
}

/* What is not there is left out; what has no word yet is a number. */
static void test_missing_and_unknown(void **state)
{
	(void)state;
	answer = answer_little;
	assert_int_equal(ctl("-j terminus show"), 0);
	assert_string_equal(out, "[{\"nic\":2,\"name\":\"hamlyn2\",\"priority\":77,"
			    "\"active\":false}]\n");
	assert_int_equal(ctl("terminus show"), 0);
	assert_has(out, "hamlyn2        -   -        -           -  77");
}

static void answer_badly(uint8_t command, bool dump)
{
	struct nl_msg *msg = reply(command);

	(void)dump;
	nla_put_u32(msg, HAMLYN_A_NIC, 2);
	nla_put(msg, HAMLYN_A_CONTEXT, 3, "abc");
	queue_message(msg);
}

static void test_malformed(void **state)
{
	(void)state;
	answer = answer_badly;
	assert_int_equal(ctl("terminus show"), STATUS_REFUSED);
	assert_has(err, "the kernel's answer is malformed: context has 3 bytes");
	assert_string_equal(out, "");
	assert_int_equal(ctl("-j terminus show"), STATUS_REFUSED);
	assert_string_equal(out, "");
}

static void test_disturbed_dump(void **state)
{
	(void)state;
	answer = answer_everything;
	kernel.disturbed = 2;
	assert_int_equal(ctl("-j area show"), 0);
	assert_int_equal(kernel.sent, 3);
	assert_string_equal(err, "");
	assert_int_equal(count_of(out, "{\"nic\":"), 2);
	kernel.disturbed = 100;
	assert_int_equal(ctl("-j area show"), 0);
	assert_int_equal(kernel.sent, 5);
	assert_has(err, "it may be incomplete");
	assert_int_equal(count_of(out, "{\"nic\":"), 2);
}

/* ---- apply --------------------------------------------------------------- */

static char folder[32];

static void write_file(const char *name, const char *text, size_t length)
{
	char path[64];
	FILE *to;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	to = fopen(path, "we");
	assert_non_null(to);
	assert_int_equal(fwrite(text, 1, length, to), length);
	assert_int_equal(fclose(to), 0);
}

static int apply_text(const char *text)
{
	char line[64];

	write_file("one.conf", text, strlen(text));
	snprintf(line, sizeof(line), "apply %s/one.conf", folder);
	return ctl(line);
}

static int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/hamlynctl-unit-XXXXXX");
	return reset(state) || !mkdtemp(folder);
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "one.conf", "two.conf", "two.old" };
	char path[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder) || reset(state);
}

#define NIC_LINE \
	"nic add index 1 host 6 fabric tcp id 30313233343536373839616263646566 " \
	"address 10.9.0.1 device wg0"

/* What is there as the kernel of answer_everything() tells it is left. */
static void test_apply_leaves(void **state)
{
	(void)state;
	answer = answer_everything;
	assert_int_equal(apply_text("# text\n\n" NIC_LINE " port 7000 # more\n"
				    "\tpeer add 1 host 2 address fd00::2 users same\r\n"
				    NIC_LINE " up engine poll limits user-kernel-memory 1M "
				    "user-slots unlimited"), 0);
	assert_string_equal(out, "");
	assert_int_equal(kernel.sent_of[HAMLYN_NL_CMD_NIC_GET], 2);
	assert_int_equal(kernel.sent_of[HAMLYN_NL_CMD_PEER_GET], 1);
	assert_int_equal(kernel.sent, 3);
	/* A NIC that has no number is found by its host and the fabric's id. */
	assert_int_equal(apply_text("nic add fabric tcp id 30313233343536373839616263646566 "
				    "host 6 address 10.9.0.1 device wg0"), 0);
	assert_int_equal(kernel.sent, 1);
	assert_true(nlmsg_hdr(kernel.request)->nlmsg_flags & NLM_F_DUMP);
}

static void test_apply_adds(void **state)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	char line[64];

	(void)state;
	answer = answer_everything;
	kernel.error_of[HAMLYN_NL_CMD_NIC_GET] = -ENODEV;
	kernel.error_of[HAMLYN_NL_CMD_PEER_GET] = -ENOENT;
	write_file("one.conf", NIC_LINE, strlen(NIC_LINE));
	write_file("two.conf", "peer add 1 host 3 address fd00::3", 33);
	write_file("two.old", "nonsense", 8);
	snprintf(line, sizeof(line), "apply %s", folder);
	assert_int_equal(ctl(line), 0);
	assert_has(out, "/one.conf:1: hamlyn1 added\n");
	assert_has(out, "/two.conf:1: hamlyn1: peer 3 added\n");
	assert_int_equal(kernel.sent_of[HAMLYN_NL_CMD_NIC_NEW], 1);
	assert_int_equal(kernel.sent_of[HAMLYN_NL_CMD_PEER_NEW], 1);
	request_attrs(attrs);
	assert_u32(attrs[HAMLYN_A_NIC], 1);
	/* There are others, but not this one. */
	kernel.error_of[HAMLYN_NL_CMD_NIC_GET] = 0;
	assert_int_equal(apply_text("nic add fabric tcp id-from x host 6 address 10.9.0.1"), 0);
	assert_int_equal(kernel.sent_of[HAMLYN_NL_CMD_NIC_NEW], 1);
}

static void test_apply_compares_maps(void **state)
{
	(void)state;
	answer = answer_map;
	assert_int_equal(apply_text("peer add 1 host 2 address 10.9.0.2 "
				    "users 1000:2000,3000-3999:5000"), 0);
	assert_string_equal(out, "");
	assert_int_equal(apply_text("peer add 1 host 2 address 10.9.0.2 "
				    "users 1000:2000,3000-3999:5001"), STATUS_REFUSED);
	assert_has(err, "another users;");
	assert_int_equal(apply_text("peer add 1 host 2 address 10.9.0.2 users 1000:2000"),
			 STATUS_REFUSED);
	assert_int_equal(apply_text("peer add 1 host 2 address 10.9.0.2 users same"),
			 STATUS_REFUSED);
	assert_int_equal(apply_text("peer add 1 host 2 address 10.9.0.2"), STATUS_REFUSED);
	answer = answer_everything;
	assert_int_equal(apply_text("peer add 1 host 2 address fd00::2 users 1000:2000"),
			 STATUS_REFUSED);
}

static void test_apply_differs(void **state)
{
	static const struct {
		const char *line, *says;
	} lines[] = {
		{ NIC_LINE " port 7001", "one.conf:2: hamlyn1 is there already, with another port; "
		  "change the line, or first: hamlynctl nic del hamlyn1" },
		{ "nic add index 1 host 7", "another host;" },
		{ NIC_LINE " security clear", "another security;" },
		{ NIC_LINE " stall-ms 999", "another stall-ms;" },
		{ NIC_LINE " down", "another down;" },
		{ NIC_LINE " limits user-slots 3", "another user-slots;" },
		{ "nic add index 1 host 6 fabric loop", "another fabric;" },
		{ "nic add index 1 host 6 fabric tcp address 10.9.0.1", "another id;" },
		{ "nic add fabric tcp host 6 id 30313233343536373839616263646566 "
		  "address 10.9.0.2", "hamlyn1 is there already, with another address;" },
		{ NIC_LINE "1", "another device;" },
		{ "peer add 1 host 2 address fd00::3", "one.conf:2: hamlyn1 has peer 2 already, "
		  "with another address; change the line, or first: "
		  "hamlynctl peer del hamlyn1 host 2" },
		{ "peer add 1 host 2 address fd00::2 port 1", "another port;" },
		{ "peer add 1 host 2 address fd00::2", "another users;" },
		{ "peer add 1 host 2 address fd00::2 users none", "another users;" },
	};
	char text[256];
	size_t i;

	(void)state;
	answer = answer_everything;
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		snprintf(text, sizeof(text), "\n%s\npeer add 1 host 9 address fd00::9\n",
			 lines[i].line);
		assert_int_equal(apply_text(text), STATUS_REFUSED);
		assert_has(err, lines[i].says);
		assert_int_equal(kernel.sent, 1);
	}
}

/* Nothing is done if one of the lines is wrong, and the message says which. */
static void test_apply_wrong(void **state)
{
	static const struct {
		const char *line, *says;
	} lines[] = {
		{ "nic", "one.conf:3: which verb? in a file, only add" },
		{ "nic del 1", "one.conf:3: verb \"del\" is unknown; allowed: add" },
		{ "limit set 0 user-slots 3", "object \"limit\" is unknown; allowed: nic, peer" },
		{ "nic add", "which NIC? in a file, nic add needs index N or fabric tcp" },
		{ "nic add fabric tcp address 10.9.0.1", "host is needed" },
		{ "nic add fabric tcp host 1", "address is needed" },
		{ "nic add index 1 x", "keyword \"x\" is unknown; allowed: index, host, fabric" },
		{ "peer add", "which NIC?" },
		{ "peer add 1 host 2", "where is the peer?" },
		{ "peer add 1 address 10.9.0.2", "which peer?" },
		{ "peer add 1 host 2 address 10.9.0", "address takes an IPv4 or IPv6 address" },
	};
	char text[256];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		snprintf(text, sizeof(text), "peer add 1 host 3 address 10.9.0.3\n\n%s\n",
			 lines[i].line);
		assert_int_equal(apply_text(text), STATUS_USAGE);
		assert_has(err, lines[i].says);
		assert_int_equal(kernel.sent, 0);
	}
	/* And of the next message it is not said. */
	assert_int_equal(ctl("x"), STATUS_USAGE);
	assert_null(strstr(err, "one.conf"));
}

static void test_apply_files(void **state)
{
	size_t bytes = (1 << 20) + 1;
	char *large = malloc(bytes), line[64];

	(void)state;
	assert_int_equal(ctl("apply"), STATUS_USAGE);
	assert_has(err, "apply what? a file, or a folder of files *.conf");
	assert_int_equal(ctl("-j apply /dev/null"), STATUS_USAGE);
	assert_int_equal(ctl("apply /dev/null"), 0);
	snprintf(line, sizeof(line), "apply %s/no.conf", folder);
	assert_int_equal(ctl(line), STATUS_REFUSED);
	assert_has(err, "no.conf: No such file");
	snprintf(line, sizeof(line), "apply %s", folder);
	assert_int_equal(ctl(line), 0);
	write_file("one.conf", "\n\0", 2);
	assert_int_equal(ctl(line), STATUS_USAGE);
	assert_has(err, "it is no text");
	memset(large, '\n', bytes);
	write_file("one.conf", large, bytes);
	assert_int_equal(ctl(line), STATUS_REFUSED);
	assert_has(err, "more than 1048576 bytes");
	memset(large, 'a', bytes);
	for (bytes = 1; bytes < 200; bytes += 2)
		large[bytes] = ' ';
	write_file("one.conf", large, 200);
	assert_int_equal(ctl(line), STATUS_USAGE);
	assert_has(err, "one.conf:1: there are too many words");
	free(large);
	kernel.error_of[HAMLYN_NL_CMD_PEER_GET] = -ENODEV;
	assert_int_equal(apply_text("peer add 1 host 3 address 10.9.0.3"), STATUS_REFUSED);
	assert_has(err, "one.conf:1: hamlyn1: No such device");
}

/* ---- anything ------------------------------------------------------------- */

/* Whatever arrives: no crash, no sanitizer report, one of the known ends. */
static void test_fuzz(void **state)
{
	static const char *const lines[] = {
		"nic show", "-j nic show", "context show", "-j context show", "-j area show",
		"slot show", "-j slot show", "nq show", "terminus show", "-j terminus show",
		"stats show", "-j stats show 0", "user show", "-j user show", "audit show",
		"-j audit show", "nic add", "-j nic add", "peer show", "-j peer show", "metrics",
	};
	int i, status;

	(void)state;
	answer = answer_everything;
	kernel.fuzz = true;
	for (i = 0; i < FUZZ_ROUNDS; i++) {
		status = ctl(lines[(size_t)i % ARRAY_SIZE(lines)]);
		assert_true(status == STATUS_OK || status == STATUS_REFUSED);
		assert_null(strchr(out, '\033'));
	}
}

/* Lines of words that mean something, in any order. */
static void test_fuzz_words(void **state)
{
	static const char *const words[] = {
		"nic", "limit", "terminus", "show", "set", "add", "reset", "0", "hamlyn1", "1%",
		"up", "down", "adversary", "drop", "off", "seed", "limits", "user-slots",
		"unlimited", "uid", "root", "watchdog", "engine", "poll", "-j", "-p", "context",
		"4K", "idle", "netns", "1", "\xff", "99999999999999999999", "--", "-x", "host",
		"fabric", "tcp", "address", "10.9.0.1", "fd00::1", "port", "device", "wg0",
		"security", "clear", "id", "id-from", "peer", "del",
	};
	char line[512];
	int i, n, status;

	(void)state;
	for (i = 0; i < FUZZ_ROUNDS; i++) {
		snprintf(line, sizeof(line), "%s",
			 i % 3 == 0 ? "nic set 0" : i % 3 == 1 ? "nic add" : "");
		for (n = (int)(random_u32() % 12); n; n--) {
			strcat(line, " ");
			strcat(line, words[random_u32() % ARRAY_SIZE(words)]);
		}
		status = ctl(line);
		assert_in_range(status, STATUS_OK, STATUS_USAGE);
	}
}

static void test_clean(void **state)
{
	static const struct {
		const char *in, *text, *utf8;
	} cases[] = {
		{ "plain", "plain", "plain" },
		{ "a b\\", "a\\x20b\\x5c", "a b\\" },
		{ "\xc3\xa9", "\xc3\xa9", "\xc3\xa9" },
		{ "\xc2\x9b", "\\xc2\\x9b", "\xc2\x9b" },
		{ "\xc0\xaf", "\\xc0\\xaf", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xe2\x82", "\\xe2\\x82", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80",
		  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	};
	char *clean;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		clean = clean_text(cases[i].in, strlen(cases[i].in));
		assert_string_equal(clean, cases[i].text);
		free(clean);
		clean = clean_utf8(cases[i].in, strlen(cases[i].in));
		assert_string_equal(clean, cases[i].utf8);
		free(clean);
	}
}

/* ---- top ----------------------------------------------------------------- */

static void test_rates(void **state)
{
	struct terminus_sample old[] = {
		{ .context = 1, .count = { 10 } }, { .context = 2, .count = { 50 } },
	};
	struct terminus_sample new[] = {
		{ .context = 1, .count = { 30 } }, { .context = 2, .count = { 5 } },
		{ .context = 3, .count = { 99 }, .pending = 7 },
	};
	struct peer_sample old_peers[] = {
		{ .nic = 1, .host = 3, .count = { 10, 7 } },
		{ .nic = 1, .host = 5, .count = { 9 } },
		{ .nic = 2, .host = 2, .count = { 50 } },
	};
	struct peer_sample new_peers[] = {
		{ .nic = 1, .host = 2, .count = { 99 } },
		{ .nic = 1, .host = 3, .count = { 30, 8 } },
		{ .nic = 2, .host = 2, .count = { 5 } },
	};
	struct sample before = {
		.ns = 1000000000,
		.termini = old,
		.terminus_count = 2,
		.peers = old_peers,
		.peer_count = 3,
	};
	struct sample now = {
		.ns = 1500000000,
		.termini = new,
		.terminus_count = 3,
		.peers = new_peers,
		.peer_count = 3,
	};

	(void)state;
	sample_rates(&now, &before);
	assert_int_equal(now.since_ns, 500000000);
	assert_int_equal(new[0].rate[COUNT_MESSAGES], 40);
	assert_int_equal(new[1].rate[COUNT_MESSAGES], 0);	/* another one than before */
	assert_int_equal(new[2].rate[COUNT_MESSAGES], 0);	/* not there before */
	assert_int_equal(new_peers[0].rate[PEER_SENT_BYTES], 0);
	assert_int_equal(new_peers[1].rate[PEER_SENT_BYTES], 40);
	assert_int_equal(new_peers[1].rate[PEER_RECEIVED_BYTES], 2);
	assert_int_equal(new_peers[2].rate[PEER_SENT_BYTES], 0);	/* made again */
	sample_sort(&now, COUNT_MESSAGES);
	assert_ptr_equal(now.order[0], &new[0]);
	assert_ptr_equal(now.order[1], &new[1]);
	sample_sort(&now, COUNTERS);
	assert_ptr_equal(now.order[0], &new[2]);
	free(now.order);
}

static void put_busy_peer(struct nl_msg *msg, uint32_t host, uint32_t state, uint64_t bytes)
{
	struct nlattr *nest = nla_nest_start(msg, HAMLYN_A_PEER);

	nla_put_u32(msg, HAMLYN_A_PEER_HOST, host);
	nla_put_u32(msg, HAMLYN_A_PEER_STATE, state);
	nla_put_u32(msg, HAMLYN_A_PEER_REASON, state == HAMLYN_NL_PEER_STATE_UP ?
		    HAMLYN_NL_PEER_REASON_NONE : HAMLYN_NL_PEER_REASON_DEAD);
	nla_put_u32(msg, HAMLYN_A_PEER_RTT_US, 85);
	nla_put_u64(msg, HAMLYN_A_PEER_SENT_BYTES, bytes);
	nla_nest_end(msg, nest);
}

/* The counters grow with each dump of termini. */
static void answer_growing(uint8_t command, bool dump)
{
	static uint64_t messages;
	struct nl_msg *msg = reply(command);

	(void)dump;
	nla_put_u32(msg, HAMLYN_A_NIC, 0);
	nla_put_u32(msg, HAMLYN_A_CONTEXT, 4);
	nla_put_u32(msg, HAMLYN_A_ID, 5);
	nla_put_u32(msg, HAMLYN_A_PID, 77);
	nla_put_u32(msg, HAMLYN_A_UID, 0);
	nla_put_u64(msg, HAMLYN_A_MESSAGES, messages);
	nla_put(msg, HAMLYN_A_COMM, 4, "a bc");
	if (command == HAMLYN_NL_CMD_PEER_GET)
		put_busy_peer(msg, 2, messages / 1000 % 2 ? HAMLYN_NL_PEER_STATE_UP :
			      HAMLYN_NL_PEER_STATE_IDLE, messages);
	if (command == HAMLYN_NL_CMD_TERMINUS_GET)
		messages += 1000;
	queue_message(msg);
}

static void test_top(void **state)
{
	(void)state;
	answer = answer_growing;
	assert_int_equal(ctl("top -b -n 2 -d 0.1"), 0);
	assert_has(out, "hamlyn: 1 NIC, 1 peer, 1 terminus; a second, over 0.");
	assert_has(out, "hamlyn0 2 up        85  ");
	assert_has(out, "hamlyn0 2 dead      85  ");
	assert_has(out, "hamlyn0 4/5");
	assert_has(out, " 77 root     a\\x20bc\n");
	assert_int_equal(ctl("-j top -n 1 -d 0.1"), 0);
	assert_has(out, "\"peers\":[{\"nic\":0,\"name\":\"hamlyn0\",\"host\":2,\"state\":");
	assert_has(out, "\"context\":4,\"id\":5,\"messages_per_s\":");
	assert_has(out, "\"pid\":77,\"uid\":0,\"comm\":\"a bc\"}]}\n");
	kernel.fuzz = true;
	assert_int_equal(ctl("top -n 3 -d 0.1"), 0);
	kernel.error = -ENODEV;
	assert_int_equal(ctl("top -n 3 -d 0.1"), STATUS_REFUSED);
	assert_has(err, "hamlynctl: top: No such device");
}

struct picture {
	int width;		/* of the terminal, which cuts */
	int lines, cut;
	char text[4096];
};

static bool measure(void *arg, enum top_style style, const char *text)
{
	struct picture *picture = arg;

	(void)style;
	picture->lines++;
	picture->cut += (int)strlen(text) > picture->width;
	strncat(picture->text, text, (size_t)picture->width);
	strcat(picture->text, "\n");
	return true;
}

/* Figures and names as long as they come: on 80 columns nothing is cut but a command's end. */
static void test_top_fits(void **state)
{
	struct nic_sample nic = { .nic = 255, .state = HAMLYN_NL_STATE_UNFED, .contexts = 99999999,
				  .termini = 9999999, .counted = true };
	struct peer_sample peer = { .nic = 255, .host = 65535,
				    .reason = HAMLYN_NL_PEER_REASON_OTHER_VERSION,
				    .rtt_us = 999999 };
	struct terminus_sample terminus = {
		.nic = 255, .context = 9999, .id = 99, .pending = 99999, .owned = true,
		.pid = 4194303, .uid = 4000000000u, .priority = HAMLYN_NL_PRIORITY_NORMAL,
		.weight = 64, .active = true, .comm = "comm-of-a-task1",
	};
	struct top top = { .now = {
		.nics = &nic, .nic_count = 1, .peers = &peer, .peer_count = 1,
		.termini = &terminus, .terminus_count = 1, .since_ns = 3600000000000,
	}, .paused = true };
	const struct terminus_sample *order = &terminus;
	struct picture picture = { .width = 80 };
	size_t i;

	(void)state;
	top.now.order = &order;
	for (i = 0; i < COUNTERS; i++) {
		nic.rate[i] = 99940000;
		terminus.rate[i] = 99940000;
	}
	for (i = 0; i < PEER_COUNTERS; i++)
		peer.rate[i] = 99940000;
	top_paint(&top, 80, measure, &picture);
	assert_int_equal(picture.cut, 1);
	assert_int_equal(picture.lines, 10);
	assert_has(picture.text, " 4194303 4000000+ comm-of-a-t");
	assert_has(picture.text, " REFUSE\n");
	assert_has(picture.text, " REJECT\n");
	assert_null(strstr(picture.text, "PRIO"));
	picture = (struct picture){ .width = TOP_WIDE + 8 };
	top_paint(&top, 200, measure, &picture);
	assert_int_equal(picture.cut, 0);
	assert_has(picture.text, " 99999 normal 64 active 4194303 4000000000 comm-of-a-task1\n");
}

/* What a command prints on a terminal of that many columns. */
static void on_terminal(unsigned short columns, const char *object, char *text, size_t size)
{
	const struct winsize window = { .ws_row = 24, .ws_col = columns };
	char *argv[4] = { NULL };
	int fd, status;
	pid_t pid = forkpty(&fd, NULL, NULL, &window);
	ssize_t n;

	if (!pid) {
		argv[0] = (char *)"hamlynctl";
		argv[1] = (char *)object;
		argv[2] = (char *)"show";
		answer = answer_everything;
		_exit(ctl_main(3, argv) || fflush(stdout));
	}
	*text = '\0';
	while (size > 1 && (n = read(fd, text, size - 1)) > 0) {
		text[n] = '\0';
		text += n;
		size -= (size_t)n;
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
}

static void assert_fits(char *text, size_t columns)
{
	char *line;

	for (line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n"))
		assert_in_range(strlen(line), 1, columns);
}

/* Fewer blanks, then shorter heads, then more lines */
static void test_tables_fit(void **state)
{
	static const char *const objects[] = { "audit", "context", "slot", "nq", "terminus" };
	char text[8192];
	size_t i;

	(void)state;
	on_terminal(200, "audit", text, sizeof(text));
	assert_has(text, "NIC      SEQUENCE  ");
	on_terminal(80, "audit", text, sizeof(text));
	assert_has(text, "NIC     SEQUENCE  ");
	assert_has(text, " CONTEXT\r\n");
	on_terminal(76, "audit", text, sizeof(text));
	assert_has(text, "NIC     SEQU ");
	assert_has(text, " CONT\r\n");
	on_terminal(40, "audit", text, sizeof(text));
	assert_has(text, "\r\n    ");
	assert_has(text, "CONT\r\n");
	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		on_terminal(80, objects[i], text, sizeof(text));
		assert_fits(text, 80);
	}
}

static int interrupts;

/* Said after the last look at whether there was a signal, and before getch(). */
void wtimeout(struct _win_st *window, int delay)
{
	void (*real)(struct _win_st *window, int delay);

	*(void **)&real = dlsym(RTLD_NEXT, "wtimeout");
	if (interrupts && interrupts--)
		raise(SIGINT);
	real(window, delay);
}

static void test_interrupted_before_a_key(void **state)
{
	char *words[MAX_WORDS] = { "hamlynctl", "top", "-d", "3600" }, text[256];
	sigset_t none;
	int fd, status;
	pid_t pid;

	(void)state;
	answer = answer_growing;
	interrupts = 1;
	sigemptyset(&none);
	pid = forkpty(&fd, NULL, NULL, NULL);
	assert_true(pid >= 0);
	if (!pid) {
		setenv("TERM", "xterm", 1);
		/* "monitor" of another test has blocked it. */
		sigprocmask(SIG_SETMASK, &none, NULL);
		alarm(20);
		_exit(ctl_main(4, words));
	}
	interrupts = 0;
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Where there is always something to read, as of events that come faster than they go. */
static void test_interrupted_in_a_flood(void **state)
{
	const int signals[] = { SIGINT, SIGTERM };
	int i, status, ends[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "", 1), 1);
	for (i = 0; i < 2; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			stop_on_signal();
			if (!stop_wait(ends[0], -1) || stop_asked())
				_exit(1);
			raise(signals[i]);
			stop_wait(ends[0], -1);
			_exit(stop_asked() ? 0 : 2);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	/* Not into what is captured. */
	void *reports = (void *)(intptr_t)dup(STDERR_FILENO);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_wrong_lines, reset, reset),
		cmocka_unit_test_setup_teardown(test_numbers, reset, reset),
		cmocka_unit_test_setup_teardown(test_help, reset, reset),
		cmocka_unit_test_setup_teardown(test_nic_set, reset, reset),
		cmocka_unit_test_setup_teardown(test_limits, reset, reset),
		cmocka_unit_test_setup_teardown(test_other_requests, reset, reset),
		cmocka_unit_test_setup_teardown(test_fabric, reset, reset),
		cmocka_unit_test_setup_teardown(test_fabric_id, reset, reset),
		cmocka_unit_test_setup_teardown(test_peer, reset, reset),
		cmocka_unit_test_setup_teardown(test_apply_leaves, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_apply_adds, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_apply_differs, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_apply_compares_maps, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_apply_wrong, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_apply_files, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_kernel_text, reset, reset),
		cmocka_unit_test_setup_teardown(test_dump_fails_at_its_end, reset, reset),
		cmocka_unit_test_setup_teardown(test_no_module, reset, reset),
		cmocka_unit_test_setup_teardown(test_text, reset, reset),
		cmocka_unit_test_setup_teardown(test_json, reset, reset),
		cmocka_unit_test_setup_teardown(test_user_map, reset, reset),
		cmocka_unit_test_setup_teardown(test_metrics, reset, reset),
		cmocka_unit_test_setup_teardown(test_missing_and_unknown, reset, reset),
		cmocka_unit_test_setup_teardown(test_malformed, reset, reset),
		cmocka_unit_test_setup_teardown(test_disturbed_dump, reset, reset),
		cmocka_unit_test_setup_teardown(test_fuzz, reset, reset),
		cmocka_unit_test_setup_teardown(test_fuzz_words, reset, reset),
		cmocka_unit_test_setup_teardown(test_clean, reset, reset),
		cmocka_unit_test_setup_teardown(test_rates, reset, reset),
		cmocka_unit_test_setup_teardown(test_tables_fit, reset, reset),
		cmocka_unit_test_setup_teardown(test_top_fits, reset, reset),
		cmocka_unit_test_setup_teardown(test_top, reset, reset),
		cmocka_unit_test_setup_teardown(test_interrupted_before_a_key, reset, reset),
		cmocka_unit_test_setup_teardown(test_interrupted_in_a_flood, reset, reset),
	};

	__sanitizer_set_report_fd(reports);
	return cmocka_run_group_tests_name("hamlynctl", tests, NULL, NULL);
}
