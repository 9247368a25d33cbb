// SPDX-License-Identifier: GPL-2.0-only
/* Unit tests of hamlynctl top, tables on a terminal, and signals, with a kernel that is made up. */
#include <dlfcn.h>
#include <errno.h>
#include <pty.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <netlink/genl/genl.h>
#include <sanitizer/common_interface_defs.h>

#include "watch/sample.h"
#include "watch/top.h"
#include "unit.h"

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
		/* Another test has blocked it: stop_on_signal(). */
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
		cmocka_unit_test_setup_teardown(test_rates, reset, reset),
		cmocka_unit_test_setup_teardown(test_tables_fit, reset, reset),
		cmocka_unit_test_setup_teardown(test_top_fits, reset, reset),
		cmocka_unit_test_setup_teardown(test_top, reset, reset),
		cmocka_unit_test_setup_teardown(test_interrupted_before_a_key, reset, reset),
		cmocka_unit_test_setup_teardown(test_interrupted_in_a_flood, reset, reset),
	};

	__sanitizer_set_report_fd(reports);
	return cmocka_run_group_tests_name("hamlynctl top", tests, NULL, NULL);
}
