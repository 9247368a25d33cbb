// SPDX-License-Identifier: GPL-2.0-only
/* Unit tests of hamlynctl: words, requests, refusals and answers, with a kernel that is made up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <netlink/genl/genl.h>
#include <sanitizer/common_interface_defs.h>

#include "unit.h"

#define FUZZ_ROUNDS	3000

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
		   "    calls 3 called 5 sent-bytes 18446744073709551615\n");
	assert_int_equal(ctl("name show"), 0);
	assert_has(out, "NIC      CALLED-NAME  UID   ");
	assert_has(out, "hamlyn1  echo.server  root  ");
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
	assert_int_equal(ctl("-j name show 1"), 0);
	assert_has(out, "[{\"nic\":1,\"name\":\"hamlyn1\",\"called_name\":\"echo.server\","
		   "\"uid\":0,\"user\":\"root\",\"pid\":");
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

/* ---- anything ------------------------------------------------------------- */

/* Whatever arrives: no crash, no sanitizer report, one of the known ends. */
static void test_fuzz(void **state)
{
	static const char *const lines[] = {
		"nic show", "-j nic show", "context show", "-j context show", "-j area show",
		"slot show", "-j slot show", "nq show", "terminus show", "-j terminus show",
		"stats show", "-j stats show 0", "user show", "-j user show", "audit show",
		"-j audit show", "nic add", "-j nic add", "peer show", "-j peer show", "metrics",
		"name show", "-j name show",
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
	};

	__sanitizer_set_report_fd(reports);
	return cmocka_run_group_tests_name("hamlynctl", tests, NULL, NULL);
}
