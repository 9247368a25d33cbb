// SPDX-License-Identifier: GPL-2.0-only
/* Unit tests of hamlynctl apply, with a kernel that is made up. */
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

int main(void)
{
	/* Not into what is captured. */
	void *reports = (void *)(intptr_t)dup(STDERR_FILENO);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_apply_leaves, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_apply_adds, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_apply_differs, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_apply_compares_maps, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(test_apply_wrong, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_apply_files, make_folder, remove_folder),
	};

	__sanitizer_set_report_fd(reports);
	return cmocka_run_group_tests_name("hamlynctl apply", tests, NULL, NULL);
}
