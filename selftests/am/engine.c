// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rules of the protocol one by one. The engine believes to be process 1 of 3; what
 * it sends is noted instead of sent, what arrives is made up here, time passes when a
 * request is made older: nothing depends on a processor, a scheduler or luck. The
 * library is compiled with HAMLYN_AM_TEST_WIRE. Prints TAP-like lines; ends with 1 if
 * one failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gam.h"
#include "wire.h"

#define PROCS	3
#define DEPTH	4
#define PAGE	256U
#define SELF	1
#define A	0		/* the other processes */
#define B	2
#define NOTED	256
#define AGE	(1ULL << 40)	/* ticks: a time-out that does not end by itself */

static struct am *const am = &h__am;
static int failed;

static void check(int good, const char *name)
{
	printf("%s - %s\n", good ? "ok" : "not ok", name);
	failed |= !good;
}

/* ---- what is sent ---- */

static struct noted {
	int dest;
	uint32_t size;
	struct am_packet p;
	unsigned char data[PAGE];
} noted[NOTED];
static uint32_t sent;
static int answering;	/* requests are acknowledged by real messages to ourselves */
static int early;	/* AM_SYNC was sent while a request was under way */

static void answer(const struct noted *n);

static void note(struct noted *n, const void *message)
{
	memcpy(&n->p, message, sizeof(n->p));
	memcpy(n->data, (const char *)message + AM_HEADER, n->size - AM_HEADER);
}

/*
 * A NIC that sleeps until its doorbell is rung, and fetches messages only then: the
 * terminus says so, and h_send_wait() rings. What fits a work queue entry it has at once.
 */
static struct {
	struct h_terminus terminus;
	struct {
		struct hamlyn_terminus_status status;
		int32_t results[NOTED];
	} page;
	const void *messages[NOTED];
	int fd;
	int rung;
} sleepy = { .fd = -1 };

static int is_asleep(void)
{
	return am->terminus == &sleepy.terminus;
}

static void fetch_all(void)
{
	while (sleepy.page.status.completed != sent) {
		uint32_t i = sleepy.page.status.completed++ % NOTED;

		if (sleepy.messages[i])
			note(&noted[i], sleepy.messages[i]);
	}
}

/* The C library's, but for the doorbell of that NIC. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	if (is_asleep() && fd == sleepy.fd && request == HAMLYN_IOC_KICK) {
		sleepy.rung++;
		fetch_all();
		return 0;
	}
	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

void am_test_wire(struct am *engine, int dest, uint32_t index, const void *message,
		  uint32_t size, struct am_send *send)
{
	struct noted *n = &noted[sent % NOTED];
	int later = is_asleep() && size > sleepy.terminus.inline_max;

	(void)engine;
	(void)index;
	n->dest = dest;
	n->size = size;
	send->handle = is_asleep() ? (int64_t)sent : -1;
	sleepy.messages[sent % NOTED] = later ? message : NULL;
	if (!later)
		note(n, message);
	sleepy.terminus.producer = ++sent;
	if (answering)
		answer(n);
}

static const struct noted *last(void)
{
	return &noted[(sent - 1) % NOTED];
}

/* ---- a world ---- */

static struct am before;
static struct h_ticket own;

static void tables(uint32_t procs, uint32_t depth)
{
	uint32_t p;
	uint32_t i;

	am->procs = procs;
	am->self = SELF;
	am->depth = depth;
	am->depth_shift = (uint32_t)__builtin_ctz(depth);
	am->page = PAGE;
	am->stride = AM_HEADER + PAGE;
	am->long_base = (2 * procs << am->depth_shift) * AM_STRIDE;
	am->peers = calloc(procs, sizeof(*am->peers));
	am->in_state = calloc(2 * procs, depth);
	am->scratch = calloc(2, PAGE);
	am->out = calloc(2 * procs * depth, am->stride);
	for (p = 0; p < procs; p++) {
		am->peers[p].ticket = own;
		am->peers[p].free_transfers = (1U << AM_TRANSFERS) - 1;
		for (i = 0; i < AM_MAX_DEPTH; i++) {
			am->peers[p].request[i].handle = -1;
			am->peers[p].reply[i].handle = -1;
		}
	}
}

static void begin_with(uint32_t procs, uint32_t depth)
{
	*am = before;
	memset(&am->stats, 0, sizeof(am->stats));
	am->reliable = 1;
	am->summed = 0;
	am->timeout = AGE;
	am->give_up = AGE << 12;
	tables(procs, depth);
	sent = 0;
	answering = 0;
}

static void begin(void)
{
	begin_with(PROCS, DEPTH);
}

static void end(void)
{
	free(am->peers);
	free(am->in_state);
	free(am->scratch);
	free(am->out);
	*am = before;
}

/* ---- what arrives ---- */

static int notify(uint32_t index, uint32_t size)
{
	const struct hamlyn_nq_entry entry = { .index = index, .length = size };

	return am_arrive(am, &entry);
}

static unsigned char *in_buffer(uint32_t index, uint32_t size)
{
	return am->in + (size == AM_HEADER ?
			 (size_t)index * AM_STRIDE :
			 am->long_base + (size_t)index * am->stride);
}

static int put(uint32_t index, uint32_t size, const struct am_packet *p,
	       const void *data)
{
	unsigned char *in = in_buffer(index, size);

	memcpy(in, p, sizeof(*p));
	if (data)
		memcpy(in + AM_HEADER, data, size - AM_HEADER);
	return notify(index, size);
}

static void seal(struct am_packet *p, int reply)
{
	p->check = am_header_sum(p, SELF, reply);
}

/* A message as its sender makes it. Return: of am_arrive(). */
static int arrive(int source, int reply, struct am_packet p, const void *data)
{
	p.source = (uint16_t)source;
	seal(&p, reply);
	return put(am_index(am, reply, (uint32_t)source, p.instance),
		   AM_HEADER + (data ? p.length : 0), &p, data);
}

static struct am_packet summed(struct am_packet p, const void *data)
{
	p.kind |= AM_SUMMED;
	p.args[4] = am_data_sum(data, p.length);
	return p;
}

static int lose(uint64_t peer)
{
	const struct hamlyn_nq_entry entry = {
		.flags = HAMLYN_NQE_PEER_GONE, .data = peer,
	};

	return am_arrive(am, &entry);
}

static void serve(int times)
{
	while (times--)
		am_serve(am);
}

/* ---- handlers ---- */

static int ran;
static int ran_source;
static long ran_word;
static void *ran_data;
static int ran_bytes;
static uint32_t sent_inside;
static uint8_t saved;		/* state of the last reply's buffer, while it ran */

#define NAME(f) am_address_name((void (*)(void))(f))

static void word(vnn_t source, long a)
{
	if (am->context == AM_IN_REQUEST && source != SELF)
		saved = am->peers[source].reply[am->reply_instance].state;
	ran++;
	ran_source = source;
	ran_word = a;
}

static void replies(vnn_t source, long a)
{
	word(source, a);
	am_reply_1(source, word, a + 1);
	sent_inside = sent;
}

static void memory(vnn_t source, void *data, int nbytes, void *arg)
{
	word(source, (long)arg);
	ran_data = data;
	ran_bytes = nbytes;
}

static unsigned char seen[PAGE];
static unsigned char *overwritten;

/* While it runs a late copy of an older message is written over the buffer. */
static void medium(vnn_t source, void *data, int nbytes, long a, long b)
{
	memory(source, data, nbytes, (void *)a);
	if (overwritten)
		memset(overwritten, 0xee, PAGE);
	memcpy(seen, data, (size_t)nbytes);
	if (b)
		am_reply(source, medium, data, nbytes, a, 0);
	sent_inside = sent;
}

static struct am_packet short_packet(void (*f)(vnn_t, long), uint32_t instance,
				     uint32_t seq, long a)
{
	return (struct am_packet){
		.seq = seq, .instance = (uint8_t)instance, .kind = 1,
		.handler = NAME(f), .args = { (uint64_t)a },
	};
}

static unsigned char pattern[PAGE];

static struct am_packet medium_packet(uint32_t seq, uint32_t bytes, int reply)
{
	return (struct am_packet){
		.seq = seq, .kind = AM_MEDIUM, .length = bytes,
		.handler = NAME(medium), .args = { 7, (uint64_t)reply },
	};
}

/* ---- requests that arrive ---- */

static void sequence_of_requests(void)
{
	begin();
	ran = 0;
	/* P 5.2.1: A request whose number is the next one of its sender is handled. */
	check(arrive(A, 0, short_packet(word, 0, 1, 10), NULL) == 1 && ran == 1 &&
	      ran_source == A && ran_word == 10, "the next request is handled");
	arrive(A, 0, short_packet(word, 0, 1, 11), NULL);
	/* P 5.2.1: No handler runs twice for a request: it may not be idempotent. */
	/* P 5.2: The network repeats no packet. */
	/* not kept: nothing relies on it; what comes twice is handled once */
	check(ran == 1, "the same one is not handled again");
	arrive(A, 0, short_packet(word, 0, 2, 12), NULL);
	check(ran == 2, "nor keeps it the next one from being handled");
	sent = 0;
	arrive(A, 0, short_packet(word, 0, 1, 13), NULL);
	/* P 5.2.1: Numbers of one bit are enough. */
	/* not kept: a packet that comes late would be taken for the next one; they have 32 bits */
	check(ran == 2 && !sent, "an older one is dropped, and not answered");
	arrive(A, 0, short_packet(word, 0, 4, 14), NULL);
	check(ran == 2 && !sent, "and so is one that is too new");
	arrive(A, 0, short_packet(word, 1, 1, 15), NULL);
	arrive(B, 0, short_packet(word, 0, 1, 16), NULL);
	/* P 5.2.2: What arrives is matched by process, instance and number. */
	check(ran == 4, "each instance of each process counts for itself");
	am->peers[A].reply[3].seq = UINT32_MAX;
	arrive(A, 0, short_packet(word, 3, 0, 17), NULL);
	check(ran == 5, "numbers go round");
	end();
}

static void reflection(void)
{
	struct noted first;

	begin();
	ran = 0;
	arrive(A, 0, short_packet(replies, 2, 1, 5), NULL);
	check(sent == 1 && last()->dest == A && last()->p.instance == 2 &&
	      last()->p.seq == 1 && last()->p.args[0] == 6 &&
	      last()->p.source == SELF &&
	      last()->p.check == am_header_sum(&last()->p, A, 1),
	      "a reply names its request, and is sealed for its destination");
	first = *last();
	arrive(A, 0, short_packet(replies, 2, 1, 5), NULL);
	/* P 5.2.1: A request that comes again is answered with the reply that was kept. */
	check(ran == 1 && sent == 2 && last()->dest == A &&
	      !memcmp(&first.p, &last()->p, sizeof(first.p)),
	      "a request that comes again gets the same reply");
	check(am->stats.reflections == 1 && am->stats.duplicates == 1,
	      "both are counted");
	arrive(A, 0, short_packet(replies, 2, 2, 8), NULL);
	check(sent == 3 && last()->p.seq == 2 && last()->p.args[0] == 9,
	      "the next request gets its own");
	/* P 6.1: The buffer of a reply waits until the next request frees it. */
	check(saved == AM_FREE && am->peers[A].reply[2].state == AM_WAITING,
	      "the one before is free then, and this one waits");
	arrive(A, 0, short_packet(word, 2, 3, 8), NULL);
	arrive(A, 0, short_packet(word, 2, 3, 8), NULL);
	/* P 5.2.1: A request whose handler does not reply is acknowledged by the library. */
	/* L 3.1: Where a request handler returns no reply the library sends one. */
	check(sent == 4 && last()->p.kind == AM_ACK && last()->p.seq == 3,
	      "without a reply it is acknowledged, whatever the one before had");
	end();
}

static void suspect_replies(void)
{
	begin();
	arrive(A, 0, medium_packet(1, 100, 1), pattern);
	check(sent == 1 && last()->size == AM_HEADER + 100 &&
	      last()->p.kind == AM_MEDIUM, "a first reply has no checksum of its data");
	arrive(A, 0, medium_packet(1, 100, 1), pattern);
	arrive(A, 0, medium_packet(2, 100, 1), pattern);
	check(sent == 3 && last()->p.kind == (AM_MEDIUM | AM_SUMMED) &&
	      last()->p.args[4] == am_data_sum(last()->data, 100),
	      "once one was sent again, those after it have");
	end();
}

static void header_checksum(void)
{
	struct am_packet p = short_packet(word, 0, 1, 10);
	unsigned char *bytes = (unsigned char *)&p;
	uint32_t bit;

	begin();
	ran = 0;
	p.source = A;
	seal(&p, 0);
	for (bit = 0; bit < 8 * AM_HEADER; bit++) {
		bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
		put(0, AM_HEADER, &p, NULL);
		bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
	}
	/* L 3.1: A message with an error in it is reported, and discarded. */
	/* not kept: it is discarded, and counted by am_get_stats(), but not reported */
	check(!ran && !sent && am->stats.damaged == 8 * AM_HEADER,
	      "a header with one wrong bit is not used");
	p.check = am_header_sum(&p, B, 0);
	put(0, AM_HEADER, &p, NULL);
	/* P 5.2: The network delivers no packet to the wrong destination. */
	/* not kept: nothing relies on it; such a packet is dropped */
	check(!ran, "nor is that of a message to another process");
	seal(&p, 0);
	put(0, AM_HEADER, &p, NULL);
	check(ran == 1, "it would have been a good one");
	end();
}

/*
 * A bit of the packet's offset tells where a request belongs from where a reply does. All
 * else is right here: its number is the next one of both.
 */
static void other_direction(void)
{
	struct am_packet p = short_packet(word, 0, 1, 10);
	uint32_t request;
	uint32_t reply;

	begin();
	ran = 0;
	request = am_index(am, 0, A, 0);
	reply = am_index(am, 1, A, 0);
	am_request_1(A, word, 1);
	check(last()->p.check == am_header_sum(&last()->p, A, 0),
	      "a request is sealed as one");
	p.source = A;
	seal(&p, 1);
	put(request, AM_HEADER, &p, NULL);
	check(!ran && sent == 1 && am->stats.damaged == 1,
	      "a reply in the place of a request is not used");
	seal(&p, 0);
	put(reply, AM_HEADER, &p, NULL);
	check(!ran && am->counting == 1 && am->stats.damaged == 2,
	      "nor is a request in the place of a reply");
	/* What was announced is overwritten before it is looked at, and comes again. */
	memcpy(in_buffer(request, AM_HEADER), &p, sizeof(p));
	seal(&p, 1);
	put(request, AM_HEADER, &p, NULL);
	check(!ran, "also if a request was there before");
	put(reply, AM_HEADER, &p, NULL);
	check(ran == 1 && am->counting == 0, "the reply is handled in its own place");
	seal(&p, 0);
	put(request, AM_HEADER, &p, NULL);
	check(ran == 2 && am->stats.damaged == 3, "and so is the request");
	end();
}

static void data_of_requests(void)
{
	struct am_packet p;
	unsigned char to[PAGE + 1] = { 0 };
	unsigned char bad[PAGE];

	memcpy(bad, pattern, PAGE);
	bad[99] ^= 4;
	begin();
	ran = 0;
	p = summed(medium_packet(1, 100, 1), pattern);
	arrive(A, 0, p, bad);
	check(!ran && !sent && am->stats.damaged == 1,
	      "damaged data of a medium message are not used");
	arrive(A, 0, p, pattern);
	/* L 3.5: Data that arrive damaged are dropped with their message, which comes again. */
	check(ran == 1 && sent == 1, "it is handled when it comes again whole");
	p = (struct am_packet){
		.seq = 1, .instance = 1, .kind = AM_MEMORY, .length = 100,
		.handler = NAME(memory), .args = { 3, (uintptr_t)to, 100 },
	};
	p = summed(p, pattern);
	arrive(A, 0, p, bad);
	check(ran == 1, "damaged memory is not handled");
	arrive(A, 0, p, pattern);
	check(ran == 2 && ran_data == to && ran_bytes == 100 && ran_word == 3 &&
	      !memcmp(to, pattern, 100) && !to[100], "and is when it comes again whole");
	end();
}

static void buffer_of_medium(void)
{
	struct am_packet p = summed(medium_packet(1, PAGE, 1), pattern);

	begin();
	overwritten = in_buffer(0, AM_HEADER + PAGE) + AM_HEADER;
	arrive(A, 0, p, pattern);
	check(!memcmp(seen, pattern, PAGE),
	      "where copies may come late, handlers have data of their own");
	check(!memcmp(last()->data, pattern, PAGE), "and may reply with them");
	overwritten = NULL;
	arrive(A, 0, medium_packet(2, PAGE, 1), pattern);
	/* L 3.1: The handler of a medium message is given its data where they have arrived. */
	check(ran_data == in_buffer(0, AM_HEADER + PAGE) + AM_HEADER,
	      "elsewhere they have the buffer");
	/* L 3.1: A medium message stays in its buffer until its handler returns. */
	check(sent == 2 && sent_inside == 1,
	      "the reply that gives it back leaves after the handler");
	arrive(A, 0, summed(medium_packet(3, PAGE, 1), pattern), pattern);
	check(sent == 3, "once");
	end();
}

/* ---- replies that arrive ---- */

static void sequence_of_replies(void)
{
	begin();
	ran = 0;
	am->peers[A].request[0].seq = 40;
	am_request_1(A, word, 1);
	check(sent == 1 && last()->dest == A && last()->p.seq == 41 &&
	      last()->p.instance == 0 && am->counting == 1, "a request is sent");
	arrive(A, 1, short_packet(word, 0, 40, 2), NULL);
	arrive(A, 1, short_packet(word, 0, 42, 2), NULL);
	/* P 5.2.1: A reply is handled only if its number is that of the request. */
	check(!ran && am->counting == 1, "a reply to another request is dropped");
	arrive(B, 1, short_packet(word, 0, 41, 2), NULL);
	check(!ran && am->counting == 1, "and so is another process's");
	/* P 6.1: A request is counting until its reply comes; then its buffer is free. */
	/* L 3.1: A reply releases the credit of its request. */
	check(arrive(A, 1, short_packet(word, 0, 41, 2), NULL) == 1 && ran == 1 &&
	      am->counting == 0, "its reply is handled");
	arrive(A, 1, short_packet(word, 0, 41, 2), NULL);
	/* P 5.2.1: A reply that comes again is dropped. */
	check(ran == 1 && am->counting == 0, "a reply that comes again is not handled");
	end();
}

static void data_of_replies(void)
{
	struct am_packet p = summed(medium_packet(1, 100, 0), pattern);
	unsigned char bad[PAGE];

	memcpy(bad, pattern, PAGE);
	bad[0] ^= 128;
	begin();
	ran = 0;
	am_request_1(A, word, 1);
	arrive(A, 1, p, bad);
	check(!ran && am->counting == 1, "a damaged reply does not end its request");
	overwritten = in_buffer(am_index(am, 1, A, 0), AM_HEADER + PAGE) + AM_HEADER;
	arrive(A, 1, p, pattern);
	check(ran == 1 && am->counting == 0 && !memcmp(seen, pattern, 100),
	      "a whole one does");
	overwritten = NULL;
	end();
}

/* ---- acknowledgments ---- */

static struct am_packet acks(uint32_t instance, uint32_t seq, uint32_t more,
			     uint32_t one, uint32_t two)
{
	return (struct am_packet){
		.seq = seq, .instance = (uint8_t)instance, .kind = AM_ACK,
		.length = more, .handler = one | (uint64_t)two << 32,
	};
}

static int counting(int peer, uint32_t instance)
{
	return am->peers[peer].request[instance].state == AM_COUNTING;
}

static void acknowledgments_that_arrive(void)
{
	uint32_t i;

	begin();
	ran = 0;
	for (i = 0; i < DEPTH; i++)
		am_request_1(A, word, i);
	arrive(A, 1, acks(0, 1, 2, 1U << 24 | 2, 2U << 24 | 1), NULL);
	check(!counting(A, 0) && counting(A, 1) && !counting(A, 2) &&
	      am->counting == 2, "each number of an acknowledgment is compared");
	arrive(A, 1, acks(0, 1, 2, 2U << 24 | 1, 0U << 24 | 1), NULL);
	check(am->counting == 2, "what is answered already is left alone");
	arrive(A, 1, acks(0, 1, 1, 0xffU << 24 | 1, 1U << 24 | 1), NULL);
	check(am->counting == 2, "numbers that are not there, or of no instance, are not used");
	arrive(A, 1, acks(0, 1, 0, 1U << 24 | 1, 0), NULL);
	check(counting(A, 1), "nor is any when it acknowledges only one");
	arrive(A, 1, acks(0, 7, 1, 1U << 24 | 1, 0), NULL);
	check(!counting(A, 1), "one is news even if the first is not");
	arrive(B, 1, acks(3, 1, 0, 0, 0), NULL);
	check(counting(A, 3), "another process's is of its own requests");
	arrive(A, 1, acks(3, 1, UINT32_MAX, 0, 0), NULL);
	check(am->counting == 0, "all are answered");
	check(!ran, "no handler runs");
	end();
}

static void acknowledgments_that_are_owed(void)
{
	uint32_t i;
	int tries;

	begin();
	arrive(A, 0, short_packet(word, 3, 1, 0), NULL);
	/* P 5.2.1: An acknowledgment is sent when the handler has not replied. */
	/* not kept: it leaves with others, once half of the instances owe one or nothing comes */
	check(!sent && am->owing == 1, "one request is not acknowledged at once");
	am_sleep(1);
	check(sent == 1 && !am->owing, "it is before the process sleeps");
	end();

	begin();
	arrive(A, 0, short_packet(word, 3, 1, 0), NULL);
	arrive(B, 0, short_packet(word, 1, 1, 0), NULL);
	for (tries = 0; tries < 100000 && sent < 2; tries++)
		serve(1);
	check(sent == 2 && am->owing == 0 && noted[0].dest == A && noted[1].dest == B &&
	      noted[0].p.kind == AM_ACK && noted[0].p.instance == 3 &&
	      noted[0].p.seq == 1 && noted[0].p.length == 0 &&
	      noted[0].p.check == am_header_sum(&noted[0].p, A, 1),
	      "it is when there is nothing else to do");
	serve(tries + 1);
	check(sent == 2, "once");
	arrive(A, 0, short_packet(word, 3, 1, 0), NULL);
	check(sent == 3 && last()->p.kind == AM_ACK && last()->p.instance == 3 &&
	      last()->p.seq == 1, "and again when the request comes again");
	arrive(A, 0, short_packet(word, 0, 1, 0), NULL);
	check(sent == 3, "the next one waits");
	arrive(A, 0, short_packet(word, 3, 2, 0), NULL);
	check(sent == 4 && last()->p.kind == AM_ACK && last()->p.length == 1 &&
	      last()->p.instance == 0 && last()->p.seq == 1 &&
	      last()->p.handler == (3U << 24 | 2) && !am->owing,
	      "half of all instances are acknowledged together, at once");
	arrive(A, 0, short_packet(word, 1, 1, 0), NULL);
	arrive(A, 0, short_packet(word, 1, 1, 0), NULL);
	check(sent == 5 && last()->p.instance == 1 && !am->owing,
	      "and one that was owed when its request comes again");
	arrive(A, 0, short_packet(replies, 1, 2, 0), NULL);
	check(sent == 6 && last()->p.kind == 1 && !am->owing,
	      "what has a reply is not acknowledged");
	end();

	begin_with(PROCS, 32);
	for (i = 0; i < 16; i++)
		arrive(A, 0, short_packet(word, 2 * i, 1, 0), NULL);
	check(sent == 2 && noted[0].p.length == AM_MAX_ACKS - 1 &&
	      noted[0].p.instance == 0 && noted[1].p.instance == 26 &&
	      noted[1].p.length == 2 && noted[0].p.args[4] >> 32 == (24U << 24 | 1) &&
	      noted[1].p.handler == ((uint64_t)(30U << 24 | 1) << 32 | 28U << 24 | 1),
	      "what does not fit into one message takes two");
	end();
}

/* ---- time-outs ---- */

/* All requests have been looked at. */
static void age(int peer, uint32_t instance, uint64_t ticks)
{
	struct am_send *r = &am->peers[peer].request[instance];

	if (!r->stamp)
		serve(PROCS * DEPTH);
	r->stamp -= ticks;
	r->first -= ticks;
}

static void time_outs(void)
{
	static const int peers[] = { A, B };
	struct noted first;
	uint32_t i;

	begin();
	for (i = 0; i < 2 * DEPTH; i++)
		am_request_1(peers[i / DEPTH], word, i);
	/* P 5.2.2: Each process may have D requests under way to each other one. */
	/* L 3.1: A node has a number of credits, for all it sends to. */
	/* not kept: each destination has its own, so that a silent one takes none of the others */
	check(sent == 2 * DEPTH, "all instances are under way");
	first = noted[DEPTH + 1];
	serve(PROCS * DEPTH);
	check(sent == 2 * DEPTH, "nothing is sent again before its time");
	age(B, 1, AGE);
	serve(PROCS * DEPTH);
	/* P 5.2.1: What is not answered in time is sent again. */
	check(sent == 2 * DEPTH + 1 && !memcmp(&first.p, &last()->p, sizeof(first.p)) &&
	      last()->dest == B, "what is too old is, just as it was");
	for (i = 0; i < 2 * DEPTH; i++)
		if (i != DEPTH + 1)
			age(peers[i / DEPTH], i % DEPTH, AGE);
	serve(PROCS * DEPTH);
	check(sent == 4 * DEPTH, "on whatever instance, to whomever");
	age(B, 1, AGE);
	serve(PROCS * DEPTH);
	check(sent == 4 * DEPTH, "the second time it takes longer");
	age(B, 1, AGE);
	serve(PROCS * DEPTH);
	/* P 5.2.1: Each time-out is twice the one before. */
	check(sent == 4 * DEPTH + 1, "namely twice the time");
	am->peers[A].request[0].tries = 200;
	age(A, 0, AGE << 8);
	serve(PROCS * DEPTH);
	check(sent == 4 * DEPTH + 2, "and at most 256 times");
	am->peers[A].request[2].first -= AGE << 11;
	age(A, 2, AGE << 1);
	serve(PROCS * DEPTH);
	check(am->peers[A].lost == 0 && sent == 4 * DEPTH + 3,
	      "who does not answer is not lost at once");
	am->peers[A].request[2].first -= AGE << 11;
	age(A, 2, AGE << 2);
	serve(PROCS * DEPTH);
	/* P 5.2.1: A process that does not respond is given up, and that is an error. */
	check(am->peers[A].lost == -ETIMEDOUT && am->peers[B].lost == 0,
	      "but is after a time, counted from the first message");
	check(am->counting == DEPTH, "nothing waits for it any more");
	end();
}

static void default_time(void)
{
	/* P 5.2.1: A process is given up when it has not responded for 30 seconds. */
	check(before.give_up == 30000000ULL * before.ticks_per_us,
	      "who does not answer is given up after 30 seconds");
}

/* All that is under way is too old at once. */
static void replies_have_no_time(void)
{
	begin();
	arrive(A, 0, short_packet(replies, 0, 1, 5), NULL);
	am_request_1(A, word, 1);
	check(sent == 2, "a reply and a request are sent");
	am->timeout = 0;
	serve(2 * PROCS * DEPTH);
	/* P 5.2.1: Replies never time out: they are sent again only when their requests are. */
	check(sent > 2 && am->stats.retransmissions == sent - 2 && !am->stats.reflections,
	      "a reply is not sent again by itself");
	end();
}

/* It takes the time that was told, not that of the tries, which may be much longer. */
static void given_up_in_time(void)
{
	begin();
	am_request_1(A, word, 1);
	am_request_1(B, word, 1);
	age(A, 0, AGE << 1);
	age(B, 0, AGE << 1);
	am->peers[A].request[0].tries = 3;
	am->peers[B].request[0].tries = 3;
	am->peers[B].request[0].first -= AGE << 12;
	serve(PROCS * DEPTH);
	check(am->peers[B].lost == -ETIMEDOUT, "a try that lasts does not delay a loss");
	check(!am->peers[A].lost && sent == 2, "nor is anything sent again for it");
	age(A, 0, AGE << 13);
	serve(PROCS * DEPTH);
	check(!am->peers[A].lost && sent == 3,
	      "what we have slept through is not its fault");
	end();
}

/* The number of tries does not begin anew, nor does the time of the first one. */
static void many_tries(void)
{
	uint32_t i;

	begin();
	am->give_up = AGE << 16;	/* 256 of the longest time-outs */
	am_request_1(A, word, 1);
	for (i = 0; i < 250; i++) {
		age(A, 0, AGE << 8);
		serve(PROCS * DEPTH);
	}
	check(!am->peers[A].lost && am->stats.retransmissions == 250,
	      "as long as there is time a request is sent again");
	for (; i < 300 && !am->peers[A].lost; i++) {
		age(A, 0, AGE << 8);
		serve(PROCS * DEPTH);
	}
	check(am->peers[A].lost == -ETIMEDOUT && am->stats.retransmissions > 255,
	      "who does not answer is lost, however often that was");
	end();
}

/* Its slot is not there: a watch tells at once, where nobody would answer. */
static void late_and_gone(void)
{
	begin();
	am->peers[A].ticket.slot++;
	am_request_1(A, word, 1);
	am_request_1(B, word, 1);
	age(A, 0, AGE);
	age(B, 0, AGE);
	serve(PROCS * DEPTH);
	check(sent == 4 && !am->peers[A].watch && !am->peers[B].watch,
	      "who does not answer once is not suspected");
	age(A, 0, AGE << 1);
	age(B, 0, AGE << 1);
	serve(PROCS * DEPTH);
	check(am->peers[A].lost == -ECONNRESET && am_poll() == -ECONNRESET &&
	      strstr(am_error(), "process 0"), "who then is gone is lost at once");
	check(!am->peers[B].lost && am->stats.retransmissions == 4,
	      "who is there has the time that it needs");
	end();
}

#define SLOW	20

/* More than there are watches for, and all that would answer @missing slots further. */
static void begin_late(uint32_t missing)
{
	int p;

	begin_with(SLOW, 1);
	for (p = 0; p < SLOW; p++) {
		am->peers[p].ticket.slot += missing;
		if (p != SELF)
			am_request_1(p, word, 1);
	}
	serve(SLOW);
}

/* As who sleeps, and looks at all at once. */
static void all_are_late(uint32_t rounds)
{
	uint32_t i;
	int p;

	for (i = 0; i < rounds; i++) {
		for (p = 0; p < SLOW; p++)
			if (p != SELF)
				age(p, 0, AGE << i);
		for (p = 0; p < SLOW; p++) {
			am_check_all(am);
			am_serve(am);
		}
	}
}

static void many_are_late(void)
{
	uint32_t watched = 0;
	int p;

	begin_late(0);
	all_are_late(4);
	for (p = 0; p < SLOW; p++)
		watched += am->peers[p].watch != NULL;
	check(am->stats.retransmissions == 4 * (SLOW - 1) && !am->lost,
	      "many that are late are sent to again, all of them");
	check(watched == AM_LATE_WATCHES, "and some of them are watched");
	end();
}

static void many_are_gone(void)
{
	uint32_t lost = 0;
	int p;

	begin_late(1);
	all_are_late(2);
	for (p = 0; p < SLOW; p++)
		lost += am->peers[p].lost == -ECONNRESET;
	check(lost == SLOW - 1, "many that are gone are lost at once, all of them");
	end();
}

/* Who polls all the time looks at one request at a time. */
static void seldom(void)
{
	begin();
	am->now = am_clock();
	am_request_1(A, word, 1);
	am_request_1(A, word, 1);
	serve(DEPTH);
	/* P 5.2.1: Each poll checks the time-out of one request. */
	check(!am->peers[A].request[0].stamp, "one request a poll is looked at");
	am->now -= AGE;
	serve(DEPTH);
	check(am->peers[A].request[0].stamp && am->peers[A].request[1].stamp,
	      "all are after a pause");
	end();
}

/*
 * One request of many; the longest time-out is a millisecond. A machine that is busy with
 * something else may let one second pass.
 */
static void time_outs_asleep(void)
{
	uint64_t so_far, told = 0;
	int i;

	begin_with(PROCS, 32);
	am->timeout = 4 * am->ticks_per_us;
	am_request_1(B, word, 1);
	for (i = 0; i < 10 && told < 40; i++) {
		so_far = am->stats.retransmissions;
		am_sleep(1);
		told = am->stats.retransmissions - so_far;
	}
	check(told >= 40, "who sleeps does not miss time-outs");
	end();
}

static void suspect_requests(void)
{
	begin();
	am_request(A, medium, pattern, 100, 0, 0);
	check(last()->size == AM_HEADER + 100 && last()->p.kind == AM_MEDIUM &&
	      !memcmp(last()->data, pattern, 100), "a first request has no checksum of its data");
	age(A, 0, AGE);
	serve(PROCS * DEPTH);
	check(sent == 2, "it is sent again");
	arrive(A, 1, acks(0, 1, 0, 0, 0), NULL);
	am_request(A, medium, pattern, 100, 0, 0);
	check(last()->p.instance == 0 && last()->p.kind == (AM_MEDIUM | AM_SUMMED) &&
	      last()->p.args[4] == am_data_sum(pattern, 100), "what follows has one");
	am_request(A, medium, pattern, 100, 0, 0);
	check(last()->p.instance == 1 && last()->p.kind == AM_MEDIUM,
	      "other instances need none");
	end();
}

/* ---- a NIC that is slow ---- */

static void begin_asleep(void)
{
	begin();
	memset(&sleepy.page, 0, sizeof(sleepy.page));
	sleepy.page.status.need_kick = 1;
	sleepy.terminus = (struct h_terminus){
		.fd = sleepy.fd, .inline_max = AM_HEADER, .mask = NOTED - 1,
		.status = &sleepy.page.status,
	};
	sleepy.rung = 0;
	am->terminus = &sleepy.terminus;
}

static int holds(const struct noted *n, uint32_t seq, const unsigned char *data)
{
	return n->p.seq == seq && n->p.length == 100 && !memcmp(n->data, data, 100);
}

/* The first copy is answered while the second one is still in the work queue. */
static void requests_still_queued(void)
{
	unsigned char other[100];
	uint32_t i;

	for (i = 0; i < sizeof(other); i++)
		other[i] = (unsigned char)~pattern[i];
	begin_asleep();
	am_request(A, medium, pattern, 100, 0, 0);
	check(sent == 1 && !sleepy.rung, "a buffer that is new need not wait for the NIC");
	age(A, 0, AGE);
	serve(PROCS * DEPTH);
	check(sent == 2, "a request that is late is sent again");
	arrive(A, 1, acks(0, 1, 0, 0, 0), NULL);
	am_request(A, medium, other, 100, 0, 0);
	fetch_all();
	check(sent == 3 && last()->p.instance == 0, "its buffer is used again");
	check(holds(&noted[0], 1, pattern) && holds(&noted[1], 1, pattern),
	      "after the NIC has fetched both copies");
	check(holds(last(), 2, other), "and then the next one");
	end();
}

/* The next request says that the first copy of the reply arrived. */
static void replies_still_queued(void)
{
	unsigned char other[PAGE];
	uint32_t i;

	for (i = 0; i < sizeof(other); i++)
		other[i] = (unsigned char)~pattern[i];
	begin_asleep();
	arrive(A, 0, medium_packet(1, 100, 1), pattern);
	arrive(A, 0, medium_packet(1, 100, 1), pattern);
	arrive(A, 0, medium_packet(2, 100, 1), other);
	fetch_all();
	check(sent == 3 && holds(&noted[0], 1, pattern) && holds(&noted[1], 1, pattern) &&
	      holds(&noted[2], 2, other), "the same of a reply, and of the next one");
	arrive(A, 0, medium_packet(2, 100, 1), other);
	arrive(A, 0, short_packet(word, 0, 3, 0), NULL);
	am_acks_flush(am);
	fetch_all();
	check(sent == 5 && holds(&noted[3], 2, other) && noted[4].p.kind == AM_ACK,
	      "and of a reply and the acknowledgment that follows");
	end();
}

static void short_ones_do_not_wait(void)
{
	uint32_t i;

	begin_asleep();
	for (i = 1; i <= 3; i++) {
		am_request_1(A, word, (long)i);
		arrive(A, 1, acks(0, i, 0, 0, 0), NULL);
	}
	/* P 6.1: The processor need not wait until a buffer has been sent. */
	check(sent == 3 && last()->p.instance == 0 && !sleepy.rung,
	      "what is copied into the work queue is not waited for");
	end();
}

/* ---- memory ---- */

static unsigned char space[4 * PAGE];

static struct am_packet piece(uint32_t instance, uint32_t seq, uint32_t transfer,
			      uint32_t offset, uint32_t length, uint32_t total, long arg)
{
	return (struct am_packet){
		.seq = seq, .instance = (uint8_t)instance, .kind = AM_MEMORY,
		.length = length, .handler = NAME(memory),
		.args = { (uint64_t)arg, (uintptr_t)space,
			  total | (uint64_t)transfer << 32, offset },
	};
}

static void segments(void)
{
	begin();
	ran = 0;
	memset(space, 0, sizeof(space));
	arrive(A, 0, piece(0, 1, 7, 2 * PAGE, 10, 2 * PAGE + 10, 1), pattern);
	arrive(A, 0, piece(0, 1, 7, 2 * PAGE, 10, 2 * PAGE + 10, 1), pattern);
	arrive(A, 0, piece(1, 1, 7, PAGE, PAGE, 2 * PAGE + 10, 1), pattern);
	check(!ran, "memory is not handled before all of it is there");
	/* What fits into a segment is of no transfer. */
	arrive(A, 0, piece(2, 1, AM_NO_TRANSFER % AM_TRANSFERS, 3 * PAGE, 20, 20, 2),
	       pattern);
	check(ran == 1 && ran_word == 2 && ran_bytes == 20, "what is one segment is, at once");
	arrive(A, 0, piece(3, 1, 0, 0, PAGE, 2 * PAGE, 3), pattern);
	arrive(B, 0, piece(0, 1, 7, 0, PAGE, 2 * PAGE, 4), pattern);
	check(ran == 1, "transfers, and processes, are counted apart");
	arrive(A, 0, piece(0, 2, 7, 0, PAGE, 2 * PAGE + 10, 1), pattern);
	/* P 4: What is longer than a packet is for higher layers to divide. */
	/* not kept: a transfer may have any length, as in L 3.1; its handler runs once */
	check(ran == 2 && ran_word == 1 && ran_data == space &&
	      ran_bytes == 2 * PAGE + 10, "the last segment, whichever, calls the handler");
	/* L 3.1: Bulk data are divided, and each part is put to where the sender said. */
	check(!memcmp(space, pattern, PAGE) && !memcmp(space + PAGE, pattern, PAGE) &&
	      !memcmp(space + 2 * PAGE, pattern, 10) && !space[2 * PAGE + 10],
	      "each is in its place");
	arrive(A, 0, piece(1, 2, 7, PAGE, PAGE, 2 * PAGE, 5), pattern);
	check(ran == 2, "the next transfer by that number begins anew");
	arrive(A, 0, piece(2, 2, 7, 0, PAGE, 2 * PAGE, 5), pattern);
	check(ran == 3 && ran_word == 5, "and ends");
	end();
}

static uint32_t transfer_of(const struct noted *n)
{
	return (uint32_t)(n->p.args[2] >> 32);
}

static void numbers_of_transfers(void)
{
	static unsigned char from[2 * PAGE];
	uint32_t all = 0;
	int i;

	begin_with(PROCS, 32);
	for (i = 0; i < AM_TRANSFERS; i++)
		am_store_async(A, from, space, sizeof(from), memory, NULL, NULL, NULL);
	check(sent == 2 * AM_TRANSFERS, "eight transfers are under way");
	for (i = 0; i < 2 * AM_TRANSFERS; i += 2)
		all |= 1U << transfer_of(&noted[i]);
	check(all == 0xff, "each has a number of its own");
	am_store_async(A, from, space, sizeof(from), memory, NULL, NULL, NULL);
	serve(2);
	check(sent == 2 * AM_TRANSFERS, "a ninth waits");
	am_store_async(A, from, space, PAGE, memory, NULL, NULL, NULL);
	check(sent == 2 * AM_TRANSFERS + 1, "but not what is one segment");
	arrive(A, 1, acks(noted[6].p.instance, 1, 0, 0, 0), NULL);
	serve(2);
	check(sent == 2 * AM_TRANSFERS + 1, "until all segments of another are answered");
	arrive(A, 1, acks(noted[7].p.instance, 1, 0, 0, 0), NULL);
	serve(2);
	check(sent == 2 * AM_TRANSFERS + 3 && transfer_of(last()) == transfer_of(&noted[6]),
	      "then it has that one's number");
	end();
}

static void stores_that_wait(void)
{
	static unsigned char from[6 * PAGE];
	int i;

	begin();
	ran = 0;
	am_store_async(A, from, space, sizeof(from), memory, NULL, memory, (void *)9);
	check(sent == DEPTH && !ran && am->stores == 1,
	      "a store goes on as far as there are instances");
	for (i = 1; i < AM_STORES; i++)
		am_store_async(A, from, space, 8, memory, NULL, NULL, NULL);
	check(am_store_async(A, from, space, 8, memory, NULL, NULL, NULL) == -EAGAIN &&
	      am->stores == AM_STORES, "there may be 32 of them");
	arrive(A, 1, acks(0, 1, 1, 1U << 24 | 1, 0), NULL);
	serve(1);
	check(ran == 1 && ran_source == SELF && ran_data == from && ran_bytes == 6 * PAGE &&
	      ran_word == 9 && sent == 6, "when all of it is copied its owner is told");
	lose(A);
	serve(1);
	check(am->stores == 0 && ran == 1, "who is lost has no stores");
	am_store_async(B, from, space, sizeof(from), memory, NULL, memory, (void *)8);
	lose(B);
	serve(1);
	check(ran == 2 && ran_word == 8 && !am->stores,
	      "the owner is told when the other process is lost, too");
	end();
}

static void cork(void)
{
	static unsigned char from[DEPTH * PAGE];

	begin();
	am_store(A, from, space, sizeof(from), memory, NULL);
	check(sent == DEPTH && !am->terminus->corked,
	      "segments that were announced together are announced");
	/* SP AM: In bulk transfers several packets are announced by one access to the adapter. */
	check(am->stats.messages == DEPTH && am->stats.doorbells == 1,
	      "segments of a bulk transfer share a doorbell");
	end();
}

static struct am_packet given(uint32_t instance, uint32_t offset, uint32_t length,
			      uint32_t which)
{
	return (struct am_packet){
		.seq = 1, .instance = (uint8_t)instance, .kind = AM_GOT,
		.length = length, .args = { offset, which },
	};
}

static void gets(void)
{
	struct am_packet p;
	unsigned char bad[PAGE] = { 0 };

	begin();
	ran = 0;
	memset(space, 0, sizeof(space));
	am_get(A, pattern, space + 8, PAGE + 10, memory, (void *)6);
	check(sent == 2 && noted[0].p.kind == AM_GET && noted[0].p.args[1] == PAGE &&
	      noted[1].p.args[1] == 10 && noted[1].p.args[2] == PAGE &&
	      noted[1].p.args[0] == (uintptr_t)pattern + PAGE,
	      "a get asks for its segments");
	am_get(A, pattern, space + 2 * PAGE, 10, memory, (void *)7);
	p = summed(given(1, PAGE, 10, 0), pattern);
	arrive(A, 1, p, bad);
	check(counting(A, 1), "a damaged segment is not taken");
	arrive(A, 1, p, pattern);
	check(!ran && !counting(A, 1), "a whole one is");
	arrive(A, 1, given(0, 0, PAGE, 0), pattern);
	check(ran == 1 && ran_source == A && ran_word == 6 && ran_data == space + 8 &&
	      ran_bytes == PAGE + 10 && !memcmp(space + 8, pattern, PAGE) &&
	      !memcmp(space + 8 + PAGE, pattern, 10) && !space[18 + PAGE] && !space[7],
	      "the last one calls the handler");
	arrive(A, 1, given(2, 0, 10, 1), pattern);
	check(ran == 2 && ran_word == 7, "each get has its own");
	end();
}

static int untouched(void)
{
	uint32_t i;

	for (i = 0; i < sizeof(space); i++)
		if (space[i])
			return 0;
	return 1;
}

/* Nothing that a process of ours sends; but it must not write to just any memory. */
static void gets_that_are_wrong(void)
{
	uint32_t i;

	begin();
	ran = 0;
	memset(space, 0, sizeof(space));
	am_get(A, pattern, space + PAGE, 10, memory, NULL);
	for (i = 1; i < DEPTH; i++)
		am_request_1(A, word, 1);
	arrive(A, 1, given(1, 11, 1, 0), pattern);
	arrive(A, 1, given(2, (uint32_t)-20, 20, 0), pattern);
	arrive(A, 1, given(3, 9, 2, 0), pattern);
	check(untouched(),
	      "what does not fit into a get is not written");
	am->gets[0].active = 0;
	am->gets[0].missing = 10;
	arrive(A, 1, given(0, 0, 10, 0), pattern);
	check(untouched() && !ran,
	      "nor is what nobody wants any more");
	end();
}

/* A process asks for no more than a segment; the answer has room for no more. */
static void asked_too_much(void)
{
	static unsigned char data[2 * PAGE];

	begin();
	arrive(A, 0, (struct am_packet){
		.seq = 1, .kind = AM_GET, .args = { (uintptr_t)data, 2 * PAGE, 5, 6 },
	}, NULL);
	check(sent == 1 && last()->p.kind == AM_GOT && last()->p.length == PAGE &&
	      last()->p.args[0] == 5 && last()->p.args[1] == 6,
	      "a get is answered with a segment at most");
	end();
}

/* ---- who serves the network, and when ---- */

/* Through the NIC. */
static int64_t leaves(int source, int reply, struct am_packet p)
{
	p.source = (uint16_t)source;
	seal(&p, reply);
	return am_wire_put(am, SELF, am_index(am, reply, (uint32_t)source, p.instance), &p,
			   AM_HEADER);
}

/* It lies in the notification queue then. */
static void comes(int source, int reply, struct am_packet p)
{
	h_send_wait(am->terminus, leaves(source, reply, p), 1000000000);
}

static void waiting_for_an_instance(void)
{
	uint32_t i;
	int rc;

	begin();
	ran = 0;
	for (i = 0; i < DEPTH; i++)
		am_request_1(A, word, i);
	comes(B, 0, short_packet(word, 0, 1, 5));
	comes(A, 1, acks(2, 1, 0, 0, 0));
	rc = am_request_1(A, word, 9);
	/* P 5.2.2: A request that found no free buffer takes the one that a reply frees. */
	/* L 3.1: A request waits until a credit is there. */
	check(!rc && sent == DEPTH + 1 && last()->p.instance == 2 && last()->p.seq == 2,
	      "a request that waits takes the instance that is answered");
	/* P 5.2.1: Who waits for a buffer goes on serving the network. */
	check(ran == 1 && ran_source == B && ran_word == 5, "and serves the network meanwhile");
	end();
}

static void request_polls(void) { am_request_1(B, word, 1); }
static void medium_polls(void) { am_request(B, medium, pattern, 10, 0, 0); }
static void own_request_polls(void) { am_request_1(SELF, word, 1); }
static void store_polls(void) { am_store(B, pattern, space, 10, memory, NULL); }
static void get_polls(void) { am_get(B, pattern, space, 10, memory, NULL); }

static void store_async_polls(void)
{
	am_store_async(B, pattern, space, 10, memory, NULL, NULL, NULL);
}

static void calls_poll(void)
{
	static void (*const calls[])(void) = {
		request_polls, medium_polls, own_request_polls, store_polls, get_polls,
		store_async_polls,
	};
	uint32_t i;
	int good = 1;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		begin();
		comes(A, 0, short_packet(replies, 0, 1, 5));
		ran = 0;
		calls[i]();
		good &= am->peers[A].reply[0].seq == 1;
		end();
	}
	/* P 5.2.1: All functions poll. */
	/* L 3.1: All functions look for messages that have arrived. */
	check(good, "calls that send requests serve what has arrived");
	begin();
	ran = 0;
	for (i = 0; i < DEPTH; i++)
		comes(A, 0, short_packet(word, i, 1, 5));
	check(!ran, "no handler runs before the library is called");
	/* L 3.1: A poll handles all messages that have arrived. */
	check(am_poll() == DEPTH && ran == DEPTH, "one poll handles all");
	end();
}

/*
 * Any call but the doorbell of an engine that dozes, the yield of who finds nothing, the clock,
 * where it cannot be read without, and the number of the thread, once, ends the program.
 */
static int forbid_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 7, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HAMLYN_IOC_KICK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	/* No engine, and no doorbell. */
	if (h_dev_is_embedded(am->dev)) {
		filter[5].k = ~0U;
		filter[8].k = ~0U;
	}
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

/* A thread, because nothing takes the filter off again. */
static void *talks_quietly(void *arg)
{
	int *rc = arg;
	uint32_t i;

	*rc = forbid_calls();
	for (i = 1; i <= 1000 && !*rc; i++) {
		leaves(A, 0, short_packet(replies, 0, i, 5));
		while (ran < (int)i)
			am_poll();
	}
	/* To return from here is to give back its stack. */
	syscall(SYS_exit, 0);
	return NULL;
}

static void without_calls(void)
{
	pthread_t thread;
	int rc;

	begin();
	ran = 0;
	if (pthread_create(&thread, NULL, talks_quietly, &rc) || pthread_join(thread, NULL))
		rc = -EAGAIN;
	end();
	if (rc == -EINVAL) {
		printf("# this kernel has no seccomp: what calls messages take is not looked at\n");
		return;
	}
	/* P 5.2: Messages take no trap into the kernel. */
	/* L 3.2: The card is accessed directly, once that has been set up. */
	/* SP AM: Messages need no intervention of the operating system. */
	check(!rc && ran == 1000, "what is sent and polled for takes no system call");
}

/* ---- what is no message ---- */

static int refused(uint32_t index, uint32_t size, struct am_packet p)
{
	unsigned long damaged = am->stats.damaged;

	seal(&p, index >= am_index(am, 1, 0, 0));
	return !put(index, size, &p, size > AM_HEADER && size <= am->stride ?
		    pattern : NULL) &&
	       am->stats.damaged == damaged + 1 && !ran && !sent;
}

static void malformed(void)
{
	struct am_packet p;
	uint32_t request;
	uint32_t reply;
	uint32_t all;
	int good = 1;
	int kind;

	begin();
	request = am_index(am, 0, A, 0);
	reply = am_index(am, 1, A, 0);
	all = 2 * PROCS * DEPTH;
	ran = 0;
	p = short_packet(word, 0, 1, 0);
	p.source = B;
	check(refused(request, AM_HEADER, p), "refused: another process's buffer");
	p.source = SELF;
	check(refused(am_index(am, 0, SELF, 0), AM_HEADER, p) &&
	      refused(am_index(am, 1, SELF, 0), AM_HEADER, p), "refused: from oneself");
	p = short_packet(word, 1, 1, 0);
	check(refused(request, AM_HEADER, p), "refused: another instance's buffer");
	p = short_packet(word, 0, 1, 0);
	for (kind = AM_KINDS; kind < AM_SUMMED; kind++) {
		p.kind = (uint8_t)kind;
		good &= refused(request, AM_HEADER, p);
		good &= refused(reply, AM_HEADER, p);
	}
	check(good, "refused: kinds that are none");
	p.kind = AM_GET;
	check(refused(reply, AM_HEADER, p), "refused: a reply that is a get");
	p.kind = AM_GOT;
	check(refused(request, AM_HEADER, p), "refused: a request that answers a get");
	p.kind = AM_ACK;
	check(refused(request, AM_HEADER, p), "refused: a request that is an acknowledgment");
	p.length = 8;
	check(refused(reply, AM_HEADER + 8, p), "refused: an acknowledgment with data");
	p = medium_packet(1, 8, 0);
	check(refused(request, AM_HEADER + 7, p), "refused: fewer bytes than it says");
	check(refused(request, AM_HEADER, p), "refused: no bytes where it says some");
	check(refused(request, AM_HEADER + 9, p), "refused: more bytes than it says");
	p = short_packet(word, 0, 1, 0);
	check(refused(request, AM_HEADER - 1, p), "refused: half a header");
	p.length = PAGE + 1;
	check(refused(request, AM_HEADER + PAGE + 1, p), "refused: more than a segment");
	/* The buffer behind the last one of the area would be another's. */
	p = short_packet(word, 0, 1, 0);
	p.source = PROCS;
	seal(&p, 1);
	memcpy(in_buffer(all, AM_HEADER), &p, sizeof(p));
	notify(all, AM_HEADER);
	notify(UINT32_MAX, AM_HEADER);
	check(!ran && !sent, "refused: buffers that are none");
	end();
}

/* Written to: where code and constants share a segment, constants can be run. */
static unsigned char no_code[4] = { 0xc3 };

/* Names of handlers that are none: the message is answered, nothing is called. */
static void names(void)
{
	uint64_t good = NAME(word);
	uint64_t module = good >> 48 << 48;
	const uint64_t bad[] = {
		0, 1ULL << 62, UINT64_MAX, module | 0xffffffffffff,
		(0xffffULL << 48) | (good & 0xffffffffffff),
		module | ((uintptr_t)no_code - ((uintptr_t)word - (good & 0xffffffffffff))),
	};
	struct am_packet p = short_packet(word, 0, 0, 0);
	uint32_t i;

	begin();
	ran = 0;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p.seq++;
		p.handler = bad[i];
		check(!am_address_find(bad[i]) && arrive(A, 0, p, NULL) == 1 && !ran,
		      "a name that is no code is not called");
	}
	check(am_address_find(good) == (void (*)(void))word, "a good one is found");
	check(!am_address_name((void (*)(void))(uintptr_t)no_code),
	      "data have no name");
	end();
}

/* ---- who is lost ---- */

static void who_is_lost(void)
{
	uint32_t i;
	int active = 0;

	begin();
	ran = 0;
	am_request_1(A, word, 1);
	am_request_1(B, word, 1);
	for (i = 0; i < AM_GETS; i++)
		am->gets[i].active = i == 5 ? B + 1 : A + 1;
	arrive(A, 0, short_packet(word, 0, 1, 0), NULL);
	arrive(B, 0, short_packet(word, 0, 1, 0), NULL);
	ran = 0;
	lose(PROCS);
	lose(UINT64_MAX);
	lose(1ULL << 32);
	lose(SELF);
	check(am_poll() >= 0 && am->counting == 2, "only other processes can be lost");
	lose(A);
	check(am->counting == 1 && counting(B, 0), "who is lost owes no answers");
	check(am->owing == 1 && !am->peers[A].owed, "nor is it owed any");
	for (i = 0; i < AM_GETS; i++)
		active += am->gets[i].active;
	check(active == B + 1, "nor is anything got from it");
	check(am_poll() == -ECONNRESET && strstr(am_error(), "process 0"),
	      "that it is lost is told");
	check(am_poll() >= 0, "once");
	check(am_request_1(A, word, 1) == -ECONNRESET &&
	      am_get(A, pattern, space, 1, memory, NULL) == -ECONNRESET &&
	      am_store(A, pattern, space, 1, memory, NULL) == -ECONNRESET &&
	      am_store_async(A, pattern, space, 1, memory, NULL, memory, NULL) == -ECONNRESET,
	      "nothing is sent to it any more");
	sent = 0;
	arrive(A, 1, short_packet(word, 0, 1, 2), NULL);
	check(!ran && am->counting == 1, "an answer that comes late is dropped");
	check(am_request_1(B, word, 1) == 0 && sent == 1, "others can be reached");
	lose(B);
	check(am_poll() == -ECONNRESET && strstr(am_error(), "process 2") &&
	      am_poll() >= 0, "each loss is told");
	check(am->counting == 0 && am->owing == 0, "and ends all that waits for it");
	end();
}

/* All instances are under way, and the time is over: the next call finds out. */
static void lost_while_waiting(void)
{
	static unsigned char data[2 * DEPTH * PAGE];
	uint32_t i;
	int calls;

	for (calls = 0; calls < 4; calls++) {
		int rc = 0;

		begin();
		am->timeout = 0;
		am->give_up = 0;
		switch (calls) {
		case 0:
			for (i = 0; !rc && i < 100 * DEPTH; i++)
				rc = am_request_1(A, word, 1);
			break;
		case 1:
			rc = am_store(A, data, space, sizeof(data), memory, NULL);
			break;
		case 2:
			rc = am_get(A, data, space, sizeof(data), memory, NULL);
			break;
		case 3:
			am->peers[A].free_transfers = 0;
			for (i = 0; i < DEPTH; i++)
				am_request_issue(am, A, i, &(struct am_packet){ 0 },
						 NULL, AM_NO_TRANSFER);
			rc = am_store(A, data, space, sizeof(data), memory, NULL);
			break;
		}
		/* L 3.1: If none becomes available for long the call returns an error. */
		check(rc == -ETIMEDOUT && am->counting == 0 &&
		      am->peers[A].free_transfers == 0xff &&
		      !am->terminus->corked && !am->gets[0].active,
		      "a call that waits ends, and leaves nothing behind");
		end();
	}
}

/* ---- messages to oneself ---- */

static void scribbles(vnn_t source, void *data, int nbytes, long a, long b)
{
	memory(source, data, nbytes, (void *)a);
	memset(data, 0xdd, (size_t)nbytes);
	(void)b;
}

static void answers_itself(vnn_t source, void *data, int nbytes, long a, long b)
{
	ran_bytes = 0;
	ran_word = am_reply(source, scribbles, b ? data : pattern, nbytes, a, 0);
	memcpy(seen, data, (size_t)nbytes);
}

static void to_oneself(void)
{
	static unsigned char data[PAGE];
	unsigned char copy[PAGE];

	begin();
	memcpy(data, pattern, PAGE);
	memcpy(copy, pattern, PAGE);
	check(am_request(SELF, answers_itself, data, PAGE, 1, 1) == 0 && !sent &&
	      ran_bytes == PAGE && ran_word == 0, "messages to oneself are calls");
	check(!memcmp(data, copy, PAGE) && !memcmp(seen, copy, PAGE),
	      "handlers of medium messages have data of their own");
	am_request(SELF, answers_itself, data, PAGE, 1, 0);
	check(!memcmp(pattern, copy, PAGE), "so do those of replies");
	memcpy(pattern, copy, PAGE);
	end();
}

/* ---- data that are not there ---- */

static sigjmp_buf killed;

/* Close to NULL only: other mistakes end the test. */
static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	if ((uintptr_t)info->si_addr >= PAGE)
		signal(number, SIG_DFL);
	else
		siglongjmp(killed, 1);
}

/*
 * As by a mistake of its own: it sends no message without what its header tells of. Not in
 * a child, which has none of the device's memory.
 */
static int is_killed(void (*by)(void))
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	volatile int is = 1;

	begin();
	sigaction(SIGSEGV, &action, NULL);
	if (!sigsetjmp(killed, 1)) {
		by();
		is = 0;
	}
	signal(SIGSEGV, SIG_DFL);
	HPAM_reply_dest = -1;
	is = is && !sent;
	end();
	return is;
}

static void replies_null(vnn_t source, long how)
{
	if (how)
		am_reply_xfer(source, NULL, space, 5, memory, NULL);
	else
		am_reply(source, medium, NULL, 5, 0, 0);
}

static void request_null(void) { am_request(A, medium, NULL, 5, 0, 0); }
static void request_null_here(void) { am_request(SELF, medium, NULL, 5, 0, 0); }
static void store_null(void) { am_store(A, NULL, space, 5, memory, NULL); }
static void reply_null(void) { arrive(A, 0, short_packet(replies_null, 0, 1, 0), NULL); }
static void xfer_null(void) { arrive(A, 0, short_packet(replies_null, 0, 1, 1), NULL); }
static void reply_null_here(void) { am_request_1(SELF, replies_null, 0); }

static void store_null_later(void)
{
	am_store_async(A, NULL, space, 5, memory, NULL, NULL, NULL);
}

static void get_null(void)
{
	arrive(A, 0, (struct am_packet){
		.seq = 1, .kind = AM_GET, .args = { 0, 100, 0, 0 },
	}, NULL);
}

static void from_nowhere(void)
{
	check(is_killed(request_null) && is_killed(store_null) && is_killed(store_null_later),
	      "who sends data from NULL is ended by a signal");
	check(is_killed(reply_null) && is_killed(xfer_null), "so is who replies with them");
	check(is_killed(get_null), "and who is asked for them");
	check(is_killed(request_null_here) && is_killed(reply_null_here),
	      "also where they are for oneself");
}

/* ---- nothing but a header ---- */

static void empty(void)
{
	struct am_packet p;

	begin();
	ran = 0;
	arrive(A, 0, medium_packet(1, 0, 1), NULL);
	check(ran == 1 && ran_bytes == 0 && sent == 1 && last()->size == AM_HEADER,
	      "a medium message of no bytes, and its reply");
	arrive(A, 0, piece(1, 1, 7, 0, 0, 0, 4), NULL);
	check(ran == 2 && ran_word == 4 && ran_bytes == 0, "a store of no bytes");
	p = (struct am_packet){ .seq = 1, .instance = 2, .kind = AM_GET, .args = { 0, 0, 0, 3 } };
	arrive(A, 0, p, NULL);
	check(last()->p.kind == AM_GOT && last()->size == AM_HEADER, "a get of no bytes");
	sent = 0;
	am_request(A, medium, NULL, 0, 0, 0);
	am_store(A, NULL, space, 0, memory, NULL);
	am_get(A, NULL, space, 0, memory, (void *)5);
	am_store_async(B, NULL, space, 0, memory, NULL, memory, (void *)6);
	check(sent == 4 && noted[0].size == AM_HEADER && noted[1].size == AM_HEADER &&
	      noted[2].size == AM_HEADER && noted[3].size == AM_HEADER && ran == 3 &&
	      ran_word == 6, "each is one header to send");
	arrive(A, 1, given(2, 0, 0, 0), NULL);
	check(ran == 4 && ran_word == 5, "and the get ends");
	end();
}

/* ---- barrier ---- */

static int sync_rounds;

/* As the other processes would: each request is acknowledged; two take part in a barrier. */
static void answer(const struct noted *n)
{
	static struct am_packet p;
	uint32_t round = (uint32_t)n->p.args[0];

	if (n->p.kind == AM_ACK)
		return;
	if (n->p.kind == AM_SYNC) {
		early |= !round && (am->counting != 1 || am->stores);
		am->synced[round]++;
		sync_rounds++;
	}
	p = acks(n->p.instance, n->p.seq, 0, 0, 0);
	p.source = (uint16_t)n->dest;
	seal(&p, 1);
	(void)am_wire_put(am, n->dest, am_index(am, 1, (uint32_t)n->dest, p.instance),
			  &p, AM_HEADER);
}

static void barriers(void)
{
	static unsigned char from[6 * PAGE];

	begin();
	early = 0;
	sync_rounds = 0;
	am_request_1(B, word, 1);
	answer(last());
	answering = 1;
	am_store_async(A, from, space, sizeof(from), memory, NULL, NULL, NULL);
	check(lam_sync_all() == 0 && sync_rounds == 2, "a barrier of 3 takes 2 rounds");
	check(!early, "it begins when all that was sent before is answered");
	answering = 0;
	end();
}

static void barriers_after_a_loss(void)
{
	struct am_packet p = { .seq = 1, .kind = AM_SYNC };

	begin();
	arrive(B, 0, p, NULL);
	check(am->synced[0] == 1 && !sent, "a round is counted");
	p.seq++;
	p.args[0] = AM_SYNC_ASK;
	arrive(B, 0, p, NULL);
	check(am->synced[0] == 1 && !last()->p.args[0], "a question is not");
	am_lose(am, A, -ETIMEDOUT);
	am_request_1(PROCS, word, 1);
	p.seq++;
	arrive(B, 0, p, NULL);
	check(last()->dest == B && last()->p.kind == AM_SYNC &&
	      last()->p.args[0] == ETIMEDOUT && last()->p.args[1] == A,
	      "who has lost a process answers with that");
	check(strstr(am_error(), "there is no process 3") != NULL,
	      "that is no call that fails: what am_error() says stays");
	lose(B);
	check(lam_sync_all() == -ETIMEDOUT && lam_sync_all() == -ETIMEDOUT &&
	      strstr(am_error(), "process 0"), "its own barriers fail by the first loss");
	p = (struct am_packet){ .seq = 1, .instance = 1, .kind = AM_SYNC };
	arrive(A, 0, p, NULL);
	check(last()->dest == A && last()->p.kind == AM_SYNC && last()->p.args[1] == A,
	      "who was lost, and goes on, is told so");
	end();

	begin();
	am_request_1(B, word, 1);
	p = (struct am_packet){ .seq = 1, .kind = AM_SYNC, .args = { ETIMEDOUT, A } };
	arrive(B, 1, p, NULL);
	check(!am->counting && lam_sync_all() == -ETIMEDOUT && strstr(am_error(), "process 0") &&
	      strstr(am_error(), "process 2 says"), "who is told so fails");
	p = (struct am_packet){ .seq = 1, .instance = 1, .kind = AM_SYNC };
	arrive(A, 0, p, NULL);
	check(last()->p.kind == AM_SYNC && last()->p.args[0] == ETIMEDOUT &&
	      am_request_1(A, word, 1) == 0, "and tells others, but has lost nobody");
	end();
}

/* ---- the end ---- */

static int fence_looks;
static int fence_ends;		/* after so many looks; 0: never */
static int fence_fails;		/* at the first look; 2: because of who is gone */
static int64_t fence_begun;

static int fence_begin(struct am_boot *boot)
{
	(void)boot;
	fence_looks = 0;
	fence_begun = am_now_ns();
	return 0;
}

/* One process is gone when the others wait for all. */
static int fence_done(struct am_boot *boot)
{
	struct h_ticket gone = own;
	struct h_watch *watch;

	gone.slot++;
	if (fence_fails == 2 && h_watch(before.dev, &gone, am->nq, A, &watch))
		return -ENOTRECOVERABLE;
	snprintf(boot->error, sizeof(boot->error), "nobody comes");
	if (fence_fails)
		return -EPROTO;
	if (++fence_looks == 2)
		lose(A);
	if (am_now_ns() - fence_begun > 20000000000LL)
		return -ETIME;
	return fence_ends && fence_looks >= fence_ends;
}

static void no_leave(struct am_boot *boot, enum am_boot_end end)
{
	(void)boot;
	(void)end;
}

static int leave(int looks, int fails)
{
	static const struct am_boot_ops ops = {
		.name = "a test", .fence_begin = fence_begin,
		.fence_done = fence_done, .close = no_leave,
	};
	unsigned char *out;
	int rc;

	begin();
	out = am->out;
	am->boot.ops = &ops;
	/* That is closed. */
	am->dev = NULL;
	if (h_open("shm:am-engine-end,size=8M", &am->dev)) {
		end();
		return 1;
	}
	answering = 1;
	fence_ends = looks;
	fence_fails = fails;
	rc = am_disable();
	answering = 0;
	free(out);
	*am = before;
	return rc;
}

static void who_is_lost_at_the_end(void)
{
	check(leave(100, 0) == 0, "who is gone may have passed the fence already");
	check(leave(0, 0) == -ECONNRESET && strstr(am_error(), "process 0"),
	      "a fence that does not end then is not waited for");
	check(leave(0, 2) == -ECONNRESET && strstr(am_error(), "process 0"),
	      "a launcher may know first, and does not know who it was");
	check(leave(0, 1) == -EPROTO && strstr(am_error(), "nobody comes"),
	      "a fence that fails with nobody lost is the launcher's fault");
}

/* ---- start ---- */

static void default_sizes(void)
{
	uint32_t procs;
	int good = 1;

	for (procs = 1; procs <= AM_MAX_PROCS; procs++) {
		uint32_t depth = am_default_depth(procs);
		uint32_t page = am_default_page(procs, depth, HAMLYN_MAX_PACKET);
		uint32_t small = am_default_page(procs, depth, HAMLYN_MIN_PACKET);

		good &= depth >= 4 && depth <= 16 && !(depth & (depth - 1));
		good &= page >= 1024 && page <= 16320 && !(page % 64);
		good &= page == 1024 ||
			2 * procs * depth * (page + AM_HEADER + AM_STRIDE) <= 4U << 20;
		good &= small == HAMLYN_MIN_PACKET - AM_HEADER;
	}
	check(good, "segments are of 1024 to 16320 bytes, and fit into packets");
	check(am_default_page(2, 16, 4096) == 4032 && am_default_page(1024, 1, 65536) == 1856 &&
	      am_default_page(1024, 32, 65536) == 1024, "whatever the depth");
}

/* Some launchers end the program when it is closed, before it has said what is wrong. */
static void launcher_that_talks_nonsense(void)
{
	static const char nonsense[] = "cmd=nonsense\n";
	static const char *const names[] = { "PMI_FD", "PMI_SIZE", "PMI_RANK" };
	char *saved_values[3];
	struct am_boot boot;
	char text[16];
	int ends[2];
	int rc;
	int i;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
	    write(ends[1], nonsense, sizeof(nonsense) - 1) < 0) {
		check(0, "a launcher");
		return;
	}
	for (i = 0; i < 3; i++) {
		saved_values[i] = getenv(names[i]);
		saved_values[i] = saved_values[i] ? strdup(saved_values[i]) : NULL;
	}
	snprintf(text, sizeof(text), "%d", ends[0]);
	setenv("PMI_FD", text, 1);
	setenv("PMI_SIZE", "1", 1);
	setenv("PMI_RANK", "0", 1);
	rc = am_boot_open(&boot);
	check(rc == -EPROTO && fcntl(ends[0], F_GETFD) >= 0,
	      "a launcher that is not understood keeps its connection");
	for (i = 0; i < 3; i++) {
		if (saved_values[i])
			setenv(names[i], saved_values[i], 1);
		else
			unsetenv(names[i]);
		free(saved_values[i]);
	}
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	uint32_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	launcher_that_talks_nonsense();
	if (am_enable()) {
		printf("not ok - am_enable: %s\n", am_error());
		return 1;
	}
	if (am_procs() != 1) {
		fprintf(stderr, "usage: engine, or hamlyn-run -n 1 engine\n");
		return 2;
	}
	for (i = 0; i < PAGE; i++)
		pattern[i] = (unsigned char)(i * 7 + 1);
	before = *am;
	own = am->peers[0].ticket;
	sequence_of_requests();
	reflection();
	suspect_replies();
	header_checksum();
	other_direction();
	data_of_requests();
	buffer_of_medium();
	sequence_of_replies();
	data_of_replies();
	acknowledgments_that_arrive();
	acknowledgments_that_are_owed();
	time_outs();
	default_time();
	replies_have_no_time();
	given_up_in_time();
	many_tries();
	late_and_gone();
	many_are_late();
	many_are_gone();
	seldom();
	time_outs_asleep();
	suspect_requests();
	waiting_for_an_instance();
	calls_poll();
	without_calls();
	requests_still_queued();
	replies_still_queued();
	short_ones_do_not_wait();
	segments();
	numbers_of_transfers();
	stores_that_wait();
	cork();
	gets();
	gets_that_are_wrong();
	asked_too_much();
	malformed();
	names();
	who_is_lost();
	lost_while_waiting();
	to_oneself();
	from_nowhere();
	empty();
	barriers();
	barriers_after_a_loss();
	who_is_lost_at_the_end();
	default_sizes();
	check(am_disable() == 0, "am_disable()");
	return failed;
}
