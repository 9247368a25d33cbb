// SPDX-License-Identifier: GPL-2.0-only
/*
 * What handlers may do and what calls refuse; that what is refused changes nothing; that
 * a message without the program's key does not get in. For two or more processes; those
 * but 0 only answer. Prints TAP-like lines; ends with 1 if one failed.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gam.h"
#include "hpam.h"
#include "wire.h"

static int failed;
static int me;

static void check(int good, const char *name)
{
	if (!me)
		printf("%s - %s\n", good ? "ok" : "not ok", name);
	failed |= !good;
}

#define EXPECT(expression, value) check((expression) == (value),		\
					#expression " is " #value)

/* ---- what handlers find out is told to process 0 by its handler ---- */

static volatile int verdicts;
static volatile long verdict[8];

static void told(vnn_t source, long a, long b, long c, long d)
{
	(void)source;
	verdict[0] = a;
	verdict[1] = b;
	verdict[2] = c;
	verdict[3] = d;
	verdicts++;
}

static void nothing(vnn_t source)
{
	(void)source;
}

static void must_not_run(vnn_t source)
{
	(void)source;
	failed = 1;
	printf("not ok - a handler ran that must not\n");
}

static void tries_all(vnn_t source)
{
	char byte = 0;
	long request = am_request_0(source, must_not_run);
	/* Not what a reply handler is told. */
	long why = strstr(am_error(), "may only reply") ? request : 1;
	long poll = am_poll();
	long other = am_reply_0(source + 1, must_not_run);
	long store = am_store(source, &byte, &byte, 1, NULL, NULL);

	am_reply_4(source, told, why, poll, other, store);
}

static volatile long second = 1;

static void replies_twice(vnn_t source)
{
	am_reply_0(source, nothing);
	second = am_reply_0(source, must_not_run);
}

static void ask_second(vnn_t source)
{
	am_reply_4(source, told, second, 0, 0, 0);
}

static volatile int in_reply[4];
static volatile int replied;

static void reply_tries(vnn_t source)
{
	in_reply[0] = am_request_0(source, must_not_run);
	in_reply[1] = am_reply_0(source, must_not_run);
	in_reply[2] = am_poll();
	in_reply[3] = am_disable();
	replied = 1;
}

static void wants_reply(vnn_t source)
{
	am_reply_0(source, reply_tries);
}

static void handlers(int to)
{
	verdicts = 0;
	EXPECT(am_request_0(to, tries_all), 0);
	am_wait_for(verdicts);
	/* P 4: A request handler may only use the network to reply: anything else is an error. */
	/* P 5.2.1: Request handlers that do anything but reply get a failure code. */
	check(verdict[0] == -EPERM, "a request handler cannot request");
	/* P 4: A handler runs to its end before another message is served. */
	check(verdict[1] == -EPERM, "a request handler cannot poll");
	/* P 4: A request handler replies to the process that sent the request. */
	check(verdict[2] == -EINVAL, "a request handler replies to nobody else");
	check(verdict[3] == -EPERM, "a request handler cannot store");
	verdicts = 0;
	am_request_0(to, replies_twice);
	am_request_0(to, ask_second);
	am_wait_for(verdicts);
	lam_sync_all();
	am_request_0(to, ask_second);
	am_wait_for(verdicts == 2);
	check(verdict[0] == -EALREADY, "a request handler replies once");
	replied = 0;
	am_request_0(to, wants_reply);
	am_wait_for(replied);
	/* P 4: A reply handler cannot use the network: to try is an error. */
	check(in_reply[0] == -EPERM && in_reply[1] == -EPERM &&
	      in_reply[2] == -EPERM && in_reply[3] == -EPERM,
	      "a reply handler cannot use the network");
}

/* ---- arguments ---- */

static void mem(vnn_t source, void *addr, int n, void *arg)
{
	(void)source;
	(void)addr;
	(void)n;
	(void)arg;
}

static void med(vnn_t source, void *addr, int n, long a, long b)
{
	(void)source;
	(void)addr;
	(void)n;
	(void)a;
	(void)b;
}

static void arguments(int to)
{
	static char data[4];
	char *heap = malloc(16);
	struct am_stats before;
	struct am_stats after;

	am_get_stats(&before);
	EXPECT(am_request_0(-1, nothing), -EINVAL);
	EXPECT(am_request_0(am_procs(), nothing), -EINVAL);
	check(strstr(am_error(), "no process") != NULL, "the error names the process");
	EXPECT(am_request_0(INT_MAX, nothing), -EINVAL);
	EXPECT(am_request_0(to, (handler_0_t)(uintptr_t)heap), -EINVAL);
	EXPECT(am_request_0(to, NULL), -EINVAL);
	/* L 3.1: A medium message that is too long is broken into several. */
	/* not kept: its handler would have no more than the last part; it is refused */
	check(am_request(to, med, data, am_max_size() + 1, 0, 0) == -EMSGSIZE,
	      "a medium message that is too long is refused");
	EXPECT(am_request(to, med, data, -1, 0, 0), -EMSGSIZE);
	EXPECT(am_store(to, data, data, -1, mem, NULL), -EINVAL);
	EXPECT(am_get(to, data, data, -1, mem, NULL), -EINVAL);
	EXPECT(am_get(am_procs(), data, data, 1, mem, NULL), -EINVAL);
	EXPECT(am_reply_0(to, nothing), -EPERM);
	EXPECT(am_reply_xfer(to, data, data, 1, mem, NULL), -EPERM);
	EXPECT(HPAM_reply_4(NULL, 0, 0, 0, 0), -EPERM);
	EXPECT(am_enable(), -EALREADY);
	am_get_stats(&after);
	check(!memcmp(&before, &after, sizeof(before)),
	      "what is refused sends nothing and counts nothing");
	check(!am_static(to, heap), "allocated memory has no address elsewhere");
	check(am_static(0, data) == data || me,
	      "a static variable is where it is");
	free(heap);
}

/* ---- HPAM, and messages to oneself ---- */

static volatile int hpam_dest = -2;
static volatile unsigned long hpam_words[4];

static void hpam_reply(unsigned long a, unsigned long b, unsigned long c,
		       unsigned long d)
{
	hpam_words[0] = a;
	hpam_words[1] = b;
	hpam_words[2] = c;
	hpam_words[3] = d;
	hpam_dest = HPAM_reply_dest;
}

static void hpam_request(unsigned long a, unsigned long b, unsigned long c,
			 unsigned long d)
{
	HPAM_reply_4(hpam_reply, a + 1, b, c, (unsigned long)HPAM_reply_dest + d);
}

static char from[64] = "memory of another process";
static char into[64];
static volatile int arrived;

static void hpam_arrived(void *arg, void *base, int length)
{
	arrived += base == into && length == 26 && arg == &arrived;
}

static void hpam_fetch(unsigned long base, unsigned long arg, unsigned long c,
		       unsigned long d)
{
	(void)c;
	(void)d;
	HPAM_reply_xfer(from, (void *)base, 26, hpam_arrived, (void *)arg);
}

static void hpam_stored(void *arg, void *base, int length)
{
	HPAM_reply_4(hpam_reply, base == into && !memcmp(base, from, sizeof(from)),
		     (unsigned long)length, (unsigned long)arg, 0);
}

static void hpam_stores(int to)
{
	hpam_dest = -2;
	EXPECT(HPAM_xfer(to, from, am_static(to, into), sizeof(from), hpam_stored,
			 (void *)&arrived), 0);
	while (hpam_dest == -2)
		HPAM_poll();
	/* P 4: A transfer copies memory, then calls a handler with its address and length. */
	check(hpam_words[0] == 1 && hpam_words[1] == sizeof(from) &&
	      hpam_words[2] == (unsigned long)&arrived,
	      "HPAM: memory is copied, then the handler runs");
}

static void hpam(int to)
{
	hpam_dest = -2;
	EXPECT(HPAM_reply_dest, -1);
	EXPECT(HPAM_4(to, hpam_request, 1, ULONG_MAX, 3, 4), 0);
	while (hpam_dest == -2)
		HPAM_poll();
	/* P 4: A small message carries four words to its handler, and so does its reply. */
	check(hpam_words[0] == 2 && hpam_words[1] == ULONG_MAX &&
	      hpam_words[2] == 3 &&
	      hpam_words[3] == (unsigned long)HPAM_self_address + 4,
	      "HPAM: four words, and who asked");
	arrived = 0;
	memset(into, 0, sizeof(into));
	EXPECT(HPAM_4(to, hpam_fetch, (unsigned long)into,
		      (unsigned long)&arrived, 0, 0), 0);
	while (!arrived)
		HPAM_poll();
	/* P 4: A request handler can send memory back. */
	check(!strcmp(into, from), "HPAM: memory comes as a reply");
	hpam_stores(to);
}

/* ---- five words and all numbers of them ---- */

static volatile long sums;

static void sum_0(vnn_t s) { (void)s; sums += 1; }
static void sum_1(vnn_t s, long a) { (void)s; sums += a; }
static void sum_2(vnn_t s, long a, long b) { (void)s; sums += a + b; }
static void sum_3(vnn_t s, long a, long b, long c) { (void)s; sums += a + b + c; }

static void sum_5(vnn_t s, long a, long b, long c, long d, long e)
{
	(void)s;
	sums += a + b + c + d + e;
}

static void back_0(vnn_t s) { am_reply_0(s, sum_0); }
static void back_1(vnn_t s, long a) { am_reply_1(s, sum_1, a); }
static void back_2(vnn_t s, long a, long b) { am_reply_2(s, sum_2, a, b); }
static void back_3(vnn_t s, long a, long b, long c) { am_reply_3(s, sum_3, a, b, c); }

static void back_5(vnn_t s, long a, long b, long c, long d, long e)
{
	am_reply_5(s, sum_5, a, b, c, d, e);
}

static volatile double number;

static void take_df(vnn_t s, long a, long b, double c)
{
	number = c;
	sums += s == (int)b ? a : 0;
}

static void back_df(vnn_t s, long a, long b, double c)
{
	(void)s;
	am_reply_df(s, take_df, a, b, -c);
}

static void with_a_number(int to)
{
	sums = 0;
	am_request_df(to, back_df, 1L << 40, to, 1.0 / 3);
	am_wait_for(sums == 1L << 40);
	check(number == -1.0 / 3, "requests and replies with a number, all 64 bits of it");
}

static volatile int woken;

static void wake(vnn_t s)
{
	(void)s;
	woken = 1;
}

/* Process 0 waits by nothing else: without it the loop ends by its time. */
static void sleep_for_nothing(void)
{
	time_t end = time(NULL) + 10;

	woken = 0;
	lam_sync_all();
	if (me == 1 || am_procs() == 1) {
		usleep(50000);
		am_request_0(0, wake);
	}
	while (!me && !woken && time(NULL) < end)
		am_sleep(0);
	check(me || woken, "am_sleep(0) serves what has arrived");
	lam_sync_all();
}

static void all_words(int to)
{
	sums = 0;
	am_request_0(to, back_0);
	am_request_1(to, back_1, 10);
	am_request_2(to, back_2, 100, 200);
	am_request_3(to, back_3, 1000, 2000, 3000);
	am_request_5(to, back_5, 1L << 40, 2L << 40, 3L << 40, 4L << 40, 5L << 40);
	am_wait_for(sums == 6311 + (15L << 40));
	/* P 4: A message names a function, which runs where it arrives. */
	/* L 3.1: A request runs a handler there, whose reply runs one here. */
	check(sums == 6311 + (15L << 40), "requests and replies of 0 to 5 words, 64 bits each");
}

/* ---- protection ---- */

static volatile int forged;

static void forgery(vnn_t source)
{
	(void)source;
	forged++;
}

/*
 * A message that is right for the NIC in everything but, perhaps, the key; from another
 * terminus. It claims to be of this process itself, of which the engine wants none: so no
 * instance is disturbed, and that it arrived is seen by being counted.
 */
static void forge(uint64_t key, struct h_terminus *terminus)
{
	struct am *am = &h__am;
	struct am_peer *mine = &am->peers[am->self];
	struct am_packet p = {
		.seq = mine->reply[0].seq + 1,
		.source = (uint16_t)am->self,
		.handler = am_address_name((void (*)(void))forgery),
	};
	struct h_ticket ticket = mine->ticket;
	int i;

	p.check = am_header_sum(&p, am->self, 0);
	ticket.key = key;
	ticket.meta_index = am_index(am, 0, am->self, 0);
	ticket.base = (uint64_t)ticket.meta_index * AM_STRIDE;
	ticket.length = AM_HEADER;
	h_send_wait(terminus, h_send_msg(terminus, &ticket, &p, sizeof(p), NULL, 0),
		    1000000000);
	for (i = 0; i < 1000; i++)
		am_poll();
}

static void protection(void)
{
	struct h_terminus *terminus;
	unsigned long damaged;
	struct h_dev *dev;

	if (h_open(h_dev_name(h__am.dev), &dev) ||
	    h_terminus_create(dev, NULL, &terminus)) {
		check(0, "a second way to the device");
		return;
	}
	damaged = h__am.stats.damaged;
	forge(h__am.peers[0].ticket.key ^ 1, terminus);
	/* P 5.3: A message is accepted only if it has the key of the program. */
	check(h__am.stats.damaged == damaged, "without the program's key nothing gets in");
	forge(h__am.peers[0].ticket.key, terminus);
	check(h__am.stats.damaged == damaged + 1, "with it, it does");
	check(!forged, "but is not handled: messages to oneself are calls");
	h_close(dev);
}

int main(void)
{
	int rc = am_enable();
	int to;

	if (rc) {
		printf("not ok - am_enable: %s\n", am_error());
		return 1;
	}
	me = am_my_proc();
	to = (me + 1) % am_procs();
	handlers(to);
	arguments(to);
	hpam(to);
	all_words(to);
	with_a_number(to);
	hpam(am_my_proc());
	all_words(am_my_proc());
	with_a_number(am_my_proc());
	sleep_for_nothing();
	lam_sync_all();
	if (am_my_proc() == 0)
		protection();
	rc = lam_sync_all();
	EXPECT(rc, 0);
	EXPECT(am_disable(), 0);
	EXPECT(am_disable(), -ENOTCONN);
	EXPECT(am_request_0(0, nothing), -ENOTCONN);
	EXPECT(am_reply_0(0, nothing), -ENOTCONN);
	EXPECT(am_poll(), -ENOTCONN);
	return failed;
}
