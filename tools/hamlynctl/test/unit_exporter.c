// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unit tests of hamlynctl metrics serve: whose connections are admitted, and answers that do not
 * fit into a socket. The exporter is a child, with a long text and a clock that stands still.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "health/metrics.h"

#define SOMEBODY	65534	/* not root */
#define LONG_TEXT	(1 << 20)	/* more than a local socket takes at once */
#define LISTENER_FD	3	/* as systemd hands it over */

char *__wrap_metrics_text(enum metrics_format format, size_t *length);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
ssize_t __wrap_recv(int fd, void *data, size_t length, int flags);
ssize_t __real_recv(int fd, void *data, size_t length, int flags);

/* What the exporter and its tests share. */
static struct shared {
	time_t seconds;
	bool floods;	/* clients always have more to say */
} *shared;

static pid_t exporter;

char *__wrap_metrics_text(enum metrics_format format, size_t *length)
{
	char *text = malloc(LONG_TEXT);

	(void)format;
	assert_non_null(text);
	memset(text, 'x', LONG_TEXT);
	*length = LONG_TEXT;
	return text;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){ .tv_sec = shared->seconds };
	return 0;
}

ssize_t __wrap_recv(int fd, void *data, size_t length, int flags)
{
	ssize_t n = __real_recv(fd, data, length, flags);

	return n < 0 && shared->floods ? (ssize_t)length : n;
}

/* ---- readers ------------------------------------------------------------- */

static int listen_on(sa_family_t family, struct sockaddr_storage *address, socklen_t *length)
{
	int off = 0, fd = socket(family, SOCK_STREAM, 0);

	*address = (struct sockaddr_storage){ .ss_family = family };
	*length = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	assert_true(fd >= 0);
	if (family == AF_INET)
		((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)address, *length), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, length), 0);
	return fd;
}

/* A child that is not root's and is connected over IPv4 until it is told to end. */
static pid_t connect_as_somebody(in_port_t port, int until)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = port,
	};
	pid_t child = fork();
	char byte;
	int fd;

	assert_true(child >= 0);
	if (child)
		return child;
	if (!getuid() && setresuid(SOMEBODY, SOMEBODY, SOMEBODY))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		_exit(2);
	if (read(until, &byte, 1) != 1)
		_exit(3);
	_exit(0);
}

/* While the connection is there it is that user's; afterwards it is nobody's, and not root's. */
static void judge(sa_family_t family)
{
	const struct readers root = { .uids = { 0 }, .count = 1 };
	const struct readers named = { .uids = { 0, getuid() ? getuid() : SOMEBODY }, .count = 2 };
	struct sockaddr_storage address;
	int listener, fd, status, ends[2];
	struct pollfd closed;
	socklen_t length;
	pid_t child;

	listener = listen_on(family, &address, &length);
	assert_int_equal(pipe(ends), 0);
	/* Of both families at the same place */
	child = connect_as_somebody(((struct sockaddr_in *)&address)->sin_port, ends[0]);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	assert_false(reader_is_admitted(&root, fd));
	assert_true(reader_is_admitted(&named, fd));
	assert_int_equal(write(ends[1], "", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	closed = (struct pollfd){ .fd = fd, .events = POLLIN };
	assert_int_equal(poll(&closed, 1, -1), 1);
	assert_false(reader_is_admitted(&root, fd));
	assert_false(reader_is_admitted(&named, fd));
	close(fd);
	close(listener);
	close(ends[0]);
	close(ends[1]);
}

static void test_whose_it_is(void **state)
{
	(void)state;
	judge(AF_INET);
}

/* A socket for both protocols sees those of IPv4 at addresses of IPv6. */
static void test_whose_it_is_on_both_protocols(void **state)
{
	(void)state;
	judge(AF_INET6);
}

/*
 * A client of another host whose port somebody here listens at: no connection is found then, but
 * the listener, which may be root's. Here the other end goes without a word (TCP_REPAIR).
 */
static void test_listener_at_its_port(void **state)
{
	const struct readers we = { .uids = { getuid() }, .count = 1 };
	struct sockaddr_storage address, other;
	int accepting, client, on = 1, fd;
	socklen_t length, other_length = sizeof(other);

	(void)state;
	accepting = listen_on(AF_INET, &address, &length);
	client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address, length), 0);
	assert_int_equal(getsockname(client, (struct sockaddr *)&other, &other_length), 0);
	fd = accept(accepting, NULL, NULL);
	assert_true(reader_is_admitted(&we, fd));
	if (setsockopt(client, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)))
		skip();		/* not allowed to: CAP_NET_ADMIN */
	close(client);
	client = socket(AF_INET, SOCK_STREAM, 0);
	((struct sockaddr_in *)&other)->sin_addr.s_addr = htonl(INADDR_ANY);
	assert_int_equal(bind(client, (struct sockaddr *)&other, other_length), 0);
	assert_int_equal(listen(client, 1), 0);
	assert_false(reader_is_admitted(&we, fd));
	close(fd);
	close(client);
	close(accepting);
}

/* ---- long answers -------------------------------------------------------- */

static struct sockaddr_un path;
static int listener;

static int make_listener(void **state)
{
	(void)state;
	path = (struct sockaddr_un){ .sun_family = AF_UNIX };
	/* Of no file */
	snprintf(path.sun_path + 1, sizeof(path.sun_path) - 1, "unit-exporter-%d", getpid());
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	shared->seconds = 1000;
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	return shared == MAP_FAILED || listener < 0 ||
	       bind(listener, (struct sockaddr *)&path, sizeof(path)) || listen(listener, 8);
}

static int end_exporter(void **state)
{
	int status = 0;

	(void)state;
	if (exporter) {
		kill(exporter, SIGTERM);
		waitpid(exporter, &status, 0);
	}
	exporter = 0;
	close(listener);
	munmap(shared, sizeof(*shared));
	return status;
}

static void start_exporter(void)
{
	const struct readers readers = { .any = true };
	char text[16];

	exporter = fork();
	assert_true(exporter >= 0);
	if (exporter)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(text, sizeof(text), "%d", getpid());
	setenv("LISTEN_PID", text, 1);
	setenv("LISTEN_FDS", "1", 1);
	if (dup2(listener, LISTENER_FD) < 0)
		_exit(1);
	_exit(exporter_run(&readers));
}

/* A client that has asked. */
static int ask(void)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&path, sizeof(path)), 0);
	assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
	return fd;
}

/* How much of the text it gets until the end, in pieces of @piece. */
static size_t take_text(int fd, size_t piece)
{
	char *answer = calloc(1, LONG_TEXT + 2048), *text;
	size_t total = 0;
	ssize_t n;

	assert_non_null(answer);
	do {
		assert_true(total + piece < LONG_TEXT + 2048);
		n = read(fd, answer + total, piece);
		total += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	close(fd);
	text = strstr(answer, "\r\n\r\n");
	assert_non_null(text);
	text += 4;
	total -= (size_t)(text - answer);
	assert_int_equal(strspn(text, "x"), total);
	free(answer);
	return total;
}

static void test_long_answer(void **state)
{
	int slow;

	(void)state;
	start_exporter();
	slow = ask();
	assert_int_equal(take_text(ask(), 1024), LONG_TEXT);
	assert_int_equal(take_text(slow, 100), LONG_TEXT);
}

static void test_long_answer_that_is_not_taken(void **state)
{
	int slow;

	(void)state;
	start_exporter();
	slow = ask();
	assert_int_equal(take_text(ask(), 1024), LONG_TEXT);
	shared->seconds += 5;
	/* What is sent to this one comes after a look at all. */
	assert_int_equal(take_text(ask(), 1024), LONG_TEXT);
	assert_in_range(take_text(slow, 1024), 1, LONG_TEXT - 1);
}

/* One that stays, and never stops talking, keeps nobody else waiting. */
static void test_flood(void **state)
{
	int flood, other;

	(void)state;
	shared->floods = true;
	/* Requests come before the flood. */
	flood = ask();
	other = ask();
	start_exporter();
	assert_int_equal(take_text(dup(flood), 1024), LONG_TEXT);
	assert_int_equal(take_text(other, 1024), LONG_TEXT);
	close(flood);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whose_it_is),
		cmocka_unit_test(test_whose_it_is_on_both_protocols),
		cmocka_unit_test(test_listener_at_its_port),
		cmocka_unit_test_setup_teardown(test_long_answer, make_listener, end_exporter),
		cmocka_unit_test_setup_teardown(test_long_answer_that_is_not_taken, make_listener,
						end_exporter),
		cmocka_unit_test_setup_teardown(test_flood, make_listener, end_exporter),
	};

	/* Nothing here takes long: without an answer there would be none ever. */
	alarm(120);
	return cmocka_run_group_tests_name("hamlynctl metrics serve", tests, NULL, NULL);
}
