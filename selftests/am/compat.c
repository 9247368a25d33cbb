// SPDX-License-Identifier: GPL-2.0-only
/*
 * Programs of the 1990s: what gam_compat.h offers, used as they used it. Handlers are of
 * whatever type, nothing that is returned is looked at. For two or more processes.
 * Prints TAP-like lines; ends with 1 if one failed.
 */
#include <gam_compat.h>
#include <string.h>

#define BYTES	5000

static volatile int count, asked;
static volatile long sum;
static double third;
static int failed;
static char from[BYTES], there[BYTES], back[BYTES];

static void check(int good, const char *name)
{
	if (AM_MY_PROC == 0)
		printf("%s - %s\n", good ? "ok" : "not ok", name);
	failed |= !good;
}

/* Words as integers and as addresses */
static void done(vnn_t source, volatile int *flag, int more)
{
	(void)source;
	*flag += 1;
	sum += more;
}

static void pong(vnn_t source, volatile int *flag, int a, int b, int c)
{
	gam_reply_4(source, done, flag, a + b + c);
}

static void two(vnn_t source, volatile int *flag, int a)
{
	gam_reply2(source, done, flag, a);
}

static void back_again(vnn_t source)
{
	(void)source;
	asked++;
}

static void none(vnn_t source)
{
	gam_reply_0(source, back_again);
}

static void with_data(vnn_t source, char *data, int n, int a, volatile int *flag)
{
	gam_reply_2(source, done, flag, data[n - 1] + a);
}

static void stored(vnn_t source, char *data, int n, void *flag)
{
	gam_reply_2(source, done, flag, data == there && n == BYTES && !memcmp(data, from, BYTES));
}

static void got(vnn_t source, char *data, int n, volatile int *flag)
{
	(void)source;
	*flag += n == BYTES && data == back;
}

static void number(vnn_t source, long a, long b, double c)
{
	(void)source;
	third = c;
	sum += a + b;
	count++;
}

static void ask_number(vnn_t source, long a, long b, double c)
{
	am_reply_df(source, number, a, b, c);
}

static void short_ones(int to)
{
	sum = 0;
	gam_request_4(to, pong, &count, 1, 2, 3);
	gam_wait(&count, 1);
	gam_request4(to, pong, &count, 10, 20, 30);
	gam_request_4(to, two, &count, 500);
	gam_wait(&count, 2);
	gam_request_0(to, none);
	gam_poll_wait(&asked, 1);
	check(count == 0 && sum == 6 + 60 + 500, "short messages, any number of words");
}

static void numbers(int to)
{
	sum = 0;
	am_request_df(to, ask_number, 4, 5, 1.0 / 3);
	gam_wait(&count, 1);
	check(sum == 9 && third == 1.0 / 3, "a number");
}

static void data(int to)
{
	char text[] = "abc";

	sum = 0;
	gam_request(to, with_data, text, 3, 1, &count);
	gam_wait(&count, 1);
	check(sum == 'c' + 1, "a medium message");
}

static void memory(int to)
{
	sum = 0;
	gam_store(to, from, am_static(to, there), BYTES, stored, (void *)&count);
	gam_wait(&count, 1);
	check(sum == 1, "memory, with a handler there");
	gam_get(to, am_static(to, there), back, BYTES, got, (void *)&count);
	gam_wait(&count, 1);
	check(!memcmp(back, from, BYTES), "memory comes back");
}

int main(void)
{
	am_enable(0, 0, NULL);
	memset(from, 'x', BYTES);
	gam_barrier();
	check(gam_procs() == AM_PROCS && gam_my_proc() == AM_MY_PROC && gam_max_size() >= 1024,
	      "who and how many");
	if (AM_MY_PROC == 0) {
		short_ones(AM_PROCS - 1);
		numbers(AM_PROCS - 1);
		data(AM_PROCS - 1);
		memory(AM_PROCS - 1);
	}
	gam_barrier();
	gam_exit(failed);
}
