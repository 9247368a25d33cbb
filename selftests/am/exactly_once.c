// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every message is handled exactly once, with its contents, whatever the fabric does.
 * All processes send short, medium and bulk requests, and gets, to all others; who is
 * asked counts by sender and number. Usage: exactly_once MESSAGES
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gam.h"

#define MAX_BYTES	9000
#define GUARD		64
#define SLOTS		32	/* places for bulk data of each process */

static unsigned char *seen;		/* times that each number was handled: [process][number] */
static long numbers;
static long bad;
static long replies;
static long expected_replies;
static unsigned char *land;		/* [process][SLOTS][GUARD + MAX_BYTES + GUARD] */
static unsigned char *lands[1024];	/* of the others */
static unsigned char busy[1024][SLOTS];
static unsigned char *gift;		/* what gets read: byte i is i * 7 */

static size_t place(int process, int slot)
{
	return ((size_t)process * SLOTS + (size_t)slot) *
	       (GUARD + MAX_BYTES + GUARD) + GUARD;
}

static unsigned char content(int source, long number, int i)
{
	return (unsigned char)(source * 31 + number * 17 + i * 7);
}

static void note(int source, long number)
{
	if (number < 0 || number >= numbers ||
	    ++seen[(size_t)source * (size_t)numbers + (size_t)number] != 1)
		bad++;
}

static void check(int source, long number, const unsigned char *data, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (data[i] != content(source, number, i)) {
			bad++;
			return;
		}
	}
}

static void answered(vnn_t source, long number, long sum)
{
	(void)source;
	replies++;
	if (sum != number * 3 + 1)
		bad++;
}

static void short_one(vnn_t source, long number, long a, long b)
{
	note(source, number);
	if (a != number * 5 || b != ~number)
		bad++;
	if (number % 3 == 0 && am_reply_2(source, answered, number, number * 3 + 1))
		bad++;
}

static void medium_reply(vnn_t source, void *data, int n, long number, long unused)
{
	(void)unused;
	replies++;
	check(source, number, data, n);
}

static void medium_one(vnn_t source, void *data, int n, long number, long odd)
{
	static unsigned char answer[MAX_BYTES];
	int i;

	note(source, number);
	if (odd) {
		for (i = 0; i < n; i++)
			answer[i] = content(am_my_proc(), number, i);
		if (am_reply(source, medium_reply, answer, n, number, 0))
			bad++;
	}
	/* After the reply: the buffer is ours until we return. */
	check(source, number, data, n);
}

static void bulk_done(vnn_t source, long slot)
{
	replies++;
	busy[source][slot] = 0;
}

static void bulk_one(vnn_t source, void *addr, int n, void *arg)
{
	long number = (long)arg >> 8;
	long slot = (long)arg & 0xff;
	unsigned char *data = addr;
	int i;

	note(source, number);
	check(source, number, data, n);
	for (i = 1; i <= GUARD; i++)
		if (data[-i] != 0xee || data[n + i - 1] != 0xee)
			bad++;
	memset(data, 0xee, (size_t)n);
	if (am_reply_1(source, bulk_done, slot))
		bad++;
}

static unsigned char *got_buffer[SLOTS];
static int got_busy[SLOTS];

static void got(vnn_t source, void *addr, int n, void *arg)
{
	unsigned char *data = addr;
	int i;

	(void)source;
	replies++;
	for (i = 0; i < n; i++) {
		if (data[i] != (unsigned char)(i * 7)) {
			bad++;
			break;
		}
	}
	got_busy[(long)arg] = 0;
}

static unsigned char *gifts[1024];

static void meet(vnn_t source, long where, long gift_there)
{
	lands[source] = (unsigned char *)where;
	gifts[source] = (unsigned char *)gift_there;
}

static int free_slot(int dest)
{
	int slot;

	for (;;) {
		for (slot = 0; slot < SLOTS; slot++)
			if (!busy[dest][slot])
				return slot;
		am_poll();
	}
}

static int free_get(void)
{
	int slot;

	for (;;) {
		for (slot = 0; slot < SLOTS; slot++)
			if (!got_busy[slot])
				return slot;
		am_poll();
	}
}

static int send_bulk(int dest, long number)
{
	static unsigned char data[MAX_BYTES];
	int n = 1 + (int)(number * 131 % MAX_BYTES);
	int slot = free_slot(dest);
	int i;

	for (i = 0; i < n; i++)
		data[i] = content(am_my_proc(), number, i);
	busy[dest][slot] = 1;
	expected_replies++;
	return am_store(dest, data, lands[dest] + place(am_my_proc(), slot), n,
			bulk_one, (void *)(number << 8 | slot));
}

static int send_medium(int dest, long number)
{
	static unsigned char data[MAX_BYTES];
	int n = (int)(number * 37 % (am_max_size() < MAX_BYTES ?
				     am_max_size() : MAX_BYTES));
	int i;

	for (i = 0; i < n; i++)
		data[i] = content(am_my_proc(), number, i);
	expected_replies += number & 1;
	return am_request(dest, medium_one, data, n, number, number & 1);
}

static int send_get(int dest, long number)
{
	int slot = free_get();

	got_busy[slot] = 1;
	expected_replies++;
	return am_get(dest, gifts[dest], got_buffer[slot],
		      (int)(number * 131 % MAX_BYTES), got, (void *)(long)slot);
}

static int send_one(int dest, long number)
{
	int rc;

	if (number % 50 == 7) {
		rc = send_get(dest, number);
		if (rc)
			return rc;
	}
	if (number % 20 == 3)
		return send_bulk(dest, number);
	if (number % 20 == 11)
		return send_medium(dest, number);
	expected_replies += number % 3 == 0;
	return am_request_3(dest, short_one, number, number * 5, ~number);
}

static void prepare(void)
{
	size_t bytes = (size_t)am_procs() * SLOTS * (2 * GUARD + MAX_BYTES);
	int i;

	seen = calloc((size_t)am_procs(), (size_t)numbers);
	land = malloc(bytes);
	gift = malloc(MAX_BYTES);
	if (!seen || !land || !gift)
		exit(2);
	memset(land, 0xee, bytes);
	for (i = 0; i < MAX_BYTES; i++)
		gift[i] = (unsigned char)(i * 7);
	for (i = 0; i < SLOTS; i++)
		got_buffer[i] = malloc(MAX_BYTES);
}

static long missing(void)
{
	long n = 0;
	int p;
	long i;

	for (p = 0; p < am_procs(); p++)
		for (i = 0; i < numbers; i++)
			n += seen[(size_t)p * (size_t)numbers + (size_t)i] != 1;
	return n;
}

static void tell(const char *result)
{
	struct am_stats s;

	am_get_stats(&s);
	printf("%s: process %d of %d: %ld messages of each, %ld wrong; sent again %lu, reflected %lu, duplicates %lu, damaged %lu, acknowledgments %lu in %lu\n",
	       result, am_my_proc(), am_procs(), numbers, bad, s.retransmissions,
	       s.reflections, s.duplicates, s.damaged, s.acks, s.ack_messages);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	long number;
	int rc = am_enable();
	int p;

	if (rc) {
		fprintf(stderr, "exactly_once: %s\n", am_error());
		return 2;
	}
	numbers = argc > 1 ? atol(argv[1]) : 10000;
	prepare();
	for (p = 0; p < am_procs(); p++)
		rc = rc ? rc : am_request_2(p, meet, (long)land, (long)gift);
	for (p = 0; p < am_procs(); p++)
		am_wait_for(lands[p]);
	for (number = 0; !rc && number < numbers; number++)
		for (p = 0; !rc && p < am_procs(); p++)
			rc = send_one(p, number);
	while (!rc && replies < expected_replies)
		rc = am_poll() < 0;
	rc = rc ? rc : lam_sync_all();
	if (rc)
		fprintf(stderr, "exactly_once: %s\n", am_error());
	bad += missing();
	tell(rc || bad ? "not ok" : "ok");
	return am_disable() || rc || bad;
}
