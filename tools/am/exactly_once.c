// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endurance: every process sends numbered requests of all sorts to others at random, and
 * each must be handled exactly once, with its contents intact, and so must each reply
 * (P 5, L 3.1). All processes can work out from the seed what every message is, so that
 * the receiver needs no more than its number. The fabric may be one that loses, repeats,
 * damages and reorders.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "gam.h"
#include "landing.h"
#include "once.h"
#include "options.h"
#include "stats.h"
#include "world.h"

#define PATIENCE_NS	60000000000ULL	/* without any progress */
#define LINGER_NS	20000000ULL	/* for what comes a second time */

static bool corrupt;

static const struct option_word option_words[] = {
	{ "messages", OPTION_NUMBER, &account.messages, "N",
	  "requests of each process (default 100000)", 1, 1000000000 },
	{ "max-size", OPTION_NUMBER, &account.max_size, "N",
	  "bytes of the largest block (default: two segments and a half)", 1, 1UL << 28 },
	{ "seed", OPTION_NUMBER, &account.seed, "N", "another seed, another test (default 1)", 0,
	  ~0UL },
	{ "corrupt", OPTION_FLAG, &corrupt, NULL,
	  "send the first short message twice: does the receiver notice?", 0, 0 },
	{ NULL, OPTION_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct usage usage = {
	"exactly_once",
	"Endurance: is every message handled exactly once, with its contents?",
	option_words,
};

static struct landing stores, fetches;
static unsigned char *scratch;		/* what is sent */
static unsigned char *reply_scratch;	/* the same of handlers */
static unsigned char *ground;		/* what am_get() fetches: nobody writes there */
static unsigned long *grounds;
static unsigned long *nudges;		/* of each process */
static unsigned long nudge_answers;

/* ---- short -------------------------------------------------------------- */

static void nudge_answered(vnn_t source)
{
	(void)source;
	nudge_answers++;
	account.progress++;
}

static void nudged(vnn_t source)
{
	nudges[source]++;
	account.progress++;
	must(am_reply_0(source, nudge_answered), "am_reply_0");
}

static void short_answered(int source, int n, const long *words)
{
	struct message m;

	once_reply(source, (unsigned long)words[0], SHORT_REPLY, &m);
	once_check_words(&m, n, words);
}

static void answer_1(vnn_t source, long a)
{
	short_answered(source, 1, (long[]){ a });
}

static void answer_2(vnn_t source, long a, long b)
{
	short_answered(source, 2, (long[]){ a, b });
}

static void answer_3(vnn_t source, long a, long b, long c)
{
	short_answered(source, 3, (long[]){ a, b, c });
}

static void answer_4(vnn_t source, long a, long b, long c, long d)
{
	short_answered(source, 4, (long[]){ a, b, c, d });
}

static void answer_5(vnn_t source, long a, long b, long c, long d, long e)
{
	short_answered(source, 5, (long[]){ a, b, c, d, e });
}

static int reply_words(int dest, int n, const long *w)
{
	switch (n) {
	case 1:
		return am_reply_1(dest, answer_1, w[0]);
	case 2:
		return am_reply_2(dest, answer_2, w[0], w[1]);
	case 3:
		return am_reply_3(dest, answer_3, w[0], w[1], w[2]);
	case 4:
		return am_reply_4(dest, answer_4, w[0], w[1], w[2], w[3]);
	default:
		return am_reply_5(dest, answer_5, w[0], w[1], w[2], w[3], w[4]);
	}
}

static void short_arrived(int source, int n, const long *words)
{
	struct message m;

	once_request(source, (unsigned long)words[0], SHORT, SHORT_REPLY, &m);
	once_check_words(&m, n, words);
	if (m.kind == SHORT_REPLY)
		must(reply_words(source, n, words), "am_reply_1 to 5");
}

static void short_1(vnn_t source, long a)
{
	short_arrived(source, 1, (long[]){ a });
}

static void short_2(vnn_t source, long a, long b)
{
	short_arrived(source, 2, (long[]){ a, b });
}

static void short_3(vnn_t source, long a, long b, long c)
{
	short_arrived(source, 3, (long[]){ a, b, c });
}

static void short_4(vnn_t source, long a, long b, long c, long d)
{
	short_arrived(source, 4, (long[]){ a, b, c, d });
}

static void short_5(vnn_t source, long a, long b, long c, long d, long e)
{
	short_arrived(source, 5, (long[]){ a, b, c, d, e });
}

static int send_short(const struct message *m)
{
	long w[ONCE_MAX_WORDS];
	int i;

	for (i = 0; i < m->words; i++)
		w[i] = (long)once_word(m, i);
	switch (m->words) {
	case 1:
		return am_request_1(m->dest, short_1, w[0]);
	case 2:
		return am_request_2(m->dest, short_2, w[0], w[1]);
	case 3:
		return am_request_3(m->dest, short_3, w[0], w[1], w[2]);
	case 4:
		return am_request_4(m->dest, short_4, w[0], w[1], w[2], w[3]);
	default:
		return am_request_5(m->dest, short_5, w[0], w[1], w[2], w[3], w[4]);
	}
}

/* ---- medium ------------------------------------------------------------- */

/* Two words in any case. */
static void check_second(const struct message *m, long word)
{
	if ((uint64_t)word != once_word(m, 1))
		die("%s: its second word is %#lx", once_text(m), word);
}

static void medium_answered(vnn_t source, void *data, int nbytes, long number, long word)
{
	struct message m;

	once_reply(source, (unsigned long)number, MEDIUM_REPLY, &m);
	check_second(&m, word);
	once_check_data(&m, data, nbytes, once_answer_key(&m), 0);
}

static void medium_arrived(vnn_t source, void *data, int nbytes, long number, long word)
{
	struct message m;

	once_request(source, (unsigned long)number, MEDIUM, MEDIUM_REPLY, &m);
	check_second(&m, word);
	once_check_data(&m, data, nbytes, m.key, 0);
	if (m.kind == MEDIUM)
		return;
	check_fill(reply_scratch, m.size, once_answer_key(&m), 0);
	must(am_reply(source, medium_answered, reply_scratch, nbytes, number, word), "am_reply");
	check_scribble(reply_scratch, m.size);
}

static int send_medium(const struct message *m)
{
	check_fill(scratch, m->size, m->key, 0);
	return am_request(m->dest, medium_arrived, scratch, (int)m->size, (long)m->number,
			  (long)once_word(m, 1));
}

/* ---- memory ------------------------------------------------------------- */

static void check_landed(const struct landing *landing, const struct message *m, int peer,
			 int place, void *addr, int nbytes)
{
	if (place < 0 || place >= LANDING_EACH ||
	    addr != landing_here(landing, peer, place, m->at))
		die("%s: it is at %p, place %d, where it does not belong", once_text(m), addr,
		    place);
	if (nbytes < 0 || (size_t)nbytes != m->size)
		die("%s: the handler was told %d bytes", once_text(m), nbytes);
}

static void store_answered(vnn_t source, long number, long place)
{
	struct message m;

	once_reply(source, (unsigned long)number, STORE, &m);
	landing_free(&stores, source, (int)place);
}

static void store_arrived(vnn_t source, void *addr, int nbytes, void *arg)
{
	unsigned long word = (unsigned long)arg;
	int place = (int)(word >> ONCE_PLACE_SHIFT);
	struct message m;

	once_request(source, (uint32_t)word, STORE, STORE, &m);
	check_landed(&stores, &m, source, place, addr, nbytes);
	once_check_data(&m, addr, nbytes, m.key, 0);
	landing_wipe(&stores, addr, m.size, once_text(&m));
	must(am_reply_2(source, store_answered, (long)m.number, place), "am_reply_2");
}

static int send_store(const struct message *m)
{
	int place = landing_take(&stores, m->dest);

	check_fill(scratch, m->size, m->key, 0);
	return am_store(m->dest, scratch, landing_there(&stores, m->dest, place, m->at),
			(int)m->size, store_arrived, once_arg(m, place));
}

/* What both ways to fetch end with. */
static void landed(int source, void *addr, int nbytes, void *arg, enum kind kind)
{
	unsigned long word = (unsigned long)arg;
	int place = (int)(word >> ONCE_PLACE_SHIFT);
	struct message m;

	once_reply(source, (uint32_t)word, kind, &m);
	check_landed(&fetches, &m, source, place, addr, nbytes);
	if (kind == GET)
		once_check_data(&m, addr, nbytes, once_ground_key(source), once_ground_offset(&m));
	else
		once_check_data(&m, addr, nbytes, once_answer_key(&m), 0);
	landing_wipe(&fetches, addr, m.size, once_text(&m));
	landing_free(&fetches, source, place);
}

static void fetched(vnn_t source, void *addr, int nbytes, void *arg)
{
	landed(source, addr, nbytes, arg, FETCH);
}

static void got(vnn_t source, void *addr, int nbytes, void *arg)
{
	landed(source, addr, nbytes, arg, GET);
}

static void fetch_arrived(vnn_t source, long number, long place, long address)
{
	struct message m;

	once_request(source, (unsigned long)number, FETCH, FETCH, &m);
	check_fill(reply_scratch, m.size, once_answer_key(&m), 0);
	must(am_reply_xfer(source, reply_scratch, (void *)address, (int)m.size, fetched,
			   once_arg(&m, (int)place)), "am_reply_xfer");
	check_scribble(reply_scratch, m.size);
}

static int send_fetch(const struct message *m)
{
	int place = landing_take(&fetches, m->dest);
	void *to = landing_here(&fetches, m->dest, place, m->at);

	return am_request_3(m->dest, fetch_arrived, (long)m->number, place, (long)to);
}

static int send_get(const struct message *m)
{
	int place = landing_take(&fetches, m->dest);

	return am_get(m->dest, (void *)(grounds[m->dest] + once_ground_offset(m)),
		      landing_here(&fetches, m->dest, place, m->at), (int)m->size, got,
		      once_arg(m, place));
}

/* ---- all of them -------------------------------------------------------- */

static int send_message(const struct message *m)
{
	switch (m->kind) {
	case NUDGE:
		return am_request_0(m->dest, nudged);
	case MEDIUM:
	case MEDIUM_REPLY:
		return send_medium(m);
	case STORE:
		return send_store(m);
	case FETCH:
		return send_fetch(m);
	case GET:
		return send_get(m);
	default:
		return send_short(m);
	}
}

static void send_all(void)
{
	unsigned long number;
	struct message m;

	for (number = 0; number < account.messages; number++) {
		once_plan(am_my_proc(), number, &m);
		must(send_message(&m), once_text(&m));
		if (corrupt && m.kind == SHORT) {
			must(send_message(&m), once_text(&m));
			corrupt = false;
		}
		check_scribble(scratch, m.size);
	}
}

struct expected {
	unsigned long handled, answers, nudges, nudge_answers;
};

static bool has_answer(enum kind kind)
{
	return kind != NUDGE && kind != SHORT && kind != MEDIUM;
}

static void expect(struct expected *expected)
{
	unsigned long number;
	struct message m;
	int p;

	*expected = (struct expected){ 0 };
	for (p = 0; p < am_procs(); p++)
		for (number = 0; number < account.messages; number++) {
			once_plan(p, number, &m);
			if (p == am_my_proc()) {
				expected->answers += has_answer(m.kind);
				expected->nudge_answers += m.kind == NUDGE;
			} else if (m.dest == am_my_proc()) {
				expected->nudges += m.kind == NUDGE;
				expected->handled += m.kind != NUDGE && m.kind != GET;
			}
		}
}

static unsigned long sum_nudges(void)
{
	unsigned long sum = 0;
	int p;

	for (p = 0; p < am_procs(); p++)
		sum += nudges[p];
	return sum;
}

static bool complete(const struct expected *expected)
{
	return account.requests == expected->handled && account.replies == expected->answers &&
	       sum_nudges() == expected->nudges && nudge_answers == expected->nudge_answers;
}

static void check_counts(const struct expected *expected, const char *when)
{
	if (!complete(expected))
		die("%s: %lu of %lu requests handled, %lu of %lu replies; without a number "
		    "%lu of %lu and %lu of %lu", when, account.requests, expected->handled,
		    account.replies, expected->answers, sum_nudges(), expected->nudges,
		    nudge_answers, expected->nudge_answers);
}

static void wait_complete(const struct expected *expected)
{
	unsigned long before = account.progress;
	uint64_t since = clock_ns();

	while (!complete(expected)) {
		world_poll();
		if (account.progress != before) {
			before = account.progress;
			since = clock_ns();
		} else if (clock_ns() - since > PATIENCE_NS) {
			check_counts(expected, "nothing arrived for a minute");
		}
	}
}

static void linger(void)
{
	uint64_t since = clock_ns();

	while (clock_ns() - since < LINGER_NS)
		world_poll();
}

/* ---- begin and end ------------------------------------------------------ */

static void *zeroed(size_t bytes)
{
	return memset(world_alloc(bytes), 0, bytes);
}

static void begin(void)
{
	size_t procs = (size_t)am_procs(), p;

	if (!account.max_size)
		account.max_size = (unsigned long)am_max_size() * 5 / 2;
	landing_open(&stores, account.max_size);
	landing_open(&fetches, account.max_size);
	scratch = zeroed(account.max_size);
	reply_scratch = zeroed(account.max_size);
	nudges = zeroed(procs * sizeof(*nudges));
	account.answered = zeroed(account.messages / 8 + 1);
	account.handled = zeroed(procs * sizeof(*account.handled));
	for (p = 0; p < procs; p++)
		account.handled[p] = zeroed(account.messages / 8 + 1);
	ground = world_alloc(account.max_size + ONCE_GROUND_MORE);
	check_fill(ground, account.max_size + ONCE_GROUND_MORE, once_ground_key(am_my_proc()), 0);
	grounds = zeroed(procs * sizeof(*grounds));
	world_share_pointer(ground, grounds);
}

static const char *const counter_names[] = {
	"requests", "replies", "acks", "ack_messages", "bytes", "retransmissions", "reflections",
	"duplicates", "damaged", "stalls", "messages", "doorbells", "overruns",
};

#define COUNTERS	(sizeof(counter_names) / sizeof(*counter_names))

_Static_assert(sizeof(struct am_stats) == COUNTERS * sizeof(long), "a name for each counter");

/* What world_sum() adds up. */
struct totals {
	unsigned long counters[COUNTERS];
	unsigned long handled, answers, bytes;
};

static void report(const struct totals *totals, double seconds)
{
	unsigned long sent = account.messages * (unsigned long)am_procs();
	size_t i;

	if (common.json) {
		json_open("exactly_once", account.max_size);
		json_number("messages", (double)sent);
		json_number("messages_per_s", (double)sent / seconds);
		json_number("handled", (double)totals->handled);
		json_number("replies_handled", (double)totals->answers);
		json_number("payload_bytes", (double)totals->bytes);
		json_number("seconds", seconds);
		json_number("seed", (double)account.seed);
		for (i = 0; i < COUNTERS; i++)
			printf(",\"am_%s\":%lu", counter_names[i], totals->counters[i]);
		json_close();
		return;
	}
	printf("exactly_once: %lu messages of %d processes in %.2f s (%.0f/s), %lu bytes: all "
	       "handled once, intact\n", sent, am_procs(), seconds, (double)sent / seconds,
	       totals->bytes);
	for (i = 0; i < COUNTERS; i++)
		printf("  %-16s %12lu\n", counter_names[i], totals->counters[i]);
}

static double run(void)
{
	struct expected expected;
	uint64_t start, ns;

	expect(&expected);
	world_barrier();
	start = clock_ns();
	send_all();
	wait_complete(&expected);
	world_barrier();
	ns = clock_ns() - start;
	linger();
	check_counts(&expected, "after all was there");
	landing_check_all(&stores, "am_store()");
	landing_check_all(&fetches, "am_get() and am_reply_xfer()");
	check_same(ground, account.max_size + ONCE_GROUND_MORE, once_ground_key(am_my_proc()), 0,
		   "memory that others only read");
	return (double)ns / 1e9;
}

int main(int argc, char **argv)
{
	struct totals totals;
	struct am_stats stats;
	double seconds;

	account.seed = 1;
	options_parse(argc, argv, &usage);
	account.messages = option_or(account.messages, 1000, 100000);
	world_enable(usage.name, 2, 0);
	begin();
	seconds = run();
	must(am_get_stats(&stats), "am_get_stats");
	memcpy(totals.counters, &stats, sizeof(stats));
	totals.handled = account.requests + sum_nudges();
	totals.answers = account.replies + nudge_answers;
	totals.bytes = account.bytes;
	world_sum((unsigned long *)&totals, sizeof(totals) / sizeof(long));
	if (!am_my_proc())
		report(&totals, seconds);
	return world_disable();
}
