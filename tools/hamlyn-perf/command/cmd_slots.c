// SPDX-License-Identifier: GPL-2.0-only
/*
 * Very many slots on one area: how fast they are made, what memory they take,
 * whether finding one takes longer the more there are, how fast they go.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "load/endpoint.h"
#include "load/load.h"
#include "load/pair.h"
#include "report/report.h"
#include "base/stats.h"

#define DEFAULT_COUNT	1000000
#define WARM_UP		8
#define ROUNDS		7		/* of which the one with the best median counts */
#define PAUSE_NS	(20 * NSEC_PER_MSEC)	/* between two of them */
#define PROBES		251
#define BATCH		16		/* messages of a probe: clocks tick too rarely for one */
#define PROBE_BYTES	16
#define DESTROYED	1000		/* one by one, at most */
#define CREATES_PER_LOOK 256		/* until the clock is read */

enum place {
	FIRST,
	MIDDLE,
	LAST,
	RANDOM,
	PLACES,
};

static const char *const place_names[PLACES] = { "first", "middle", "last", "random" };

static const uint32_t steps[] = { 10, 1000, 100000, 1000000 };

struct slots {
	const struct options *options;
	struct endpoint ep;	/* has a slot of its own besides */
	struct h_slot **slots;
	uint32_t wanted;
	uint32_t max_slots;	/* of the NIC */
	bool engine;		/* it has a thread that may take over from the sender */
	uint32_t count;
	int refused;		/* errno of the creation that failed, or 0 */
	uint64_t deadline;
	uint32_t random;
	double smallest[PLACES];	/* medians with the fewest slots */
};

/* ---- memory ------------------------------------------------------------- */

static void print_memory(const struct slots *s, const struct memory *before)
{
	bool embedded = h_dev_is_embedded(s->ep.dev);
	double slab, library, all;
	struct memory now;

	memory_look(&now);
	slab = embedded ? 0 : memory_each(now.slab, before->slab, s->count);
	library = memory_each(now.resident, before->resident, s->count);
	all = memory_each(before->free, now.free, s->count);
	if (s->options->format == FORMAT_JSON)
		printf("{\"system\":\"hamlyn\",\"test\":\"slots-memory\",\"slots\":%u,"
		       "\"embedded\":%s,\"kernel_bytes_per_slot\":%.1f,"
		       "\"process_bytes_per_slot\":%.1f,\"memfree_bytes_per_slot\":%.1f}\n",
		       s->count, embedded ? "true" : "false", slab, library, all);
	else if (s->options->format == FORMAT_CSV)
		printf("hamlyn,slots-memory,%u,%.1f,%.1f,%.1f,,,,,,\n", s->count, slab, library,
		       all);
	else if (embedded)
		printf("\nmemory per slot: %.0f B in this process; the NIC's table is a fixed "
		       "part of the segment\n", library);
	else
		printf("\nmemory per slot: %.0f B in the kernel (slab) and %.0f B in this "
		       "process; by what is free in\nthe machine: %.0f B. The NIC's table, 8 B "
		       "for each slot it can have, was there before.\n", slab, library, all);
}

/* ---- making ------------------------------------------------------------- */

static void refuse(struct slots *s, int error)
{
	s->refused = error;
	if (error == EDQUOT)
		fprintf(stderr, "hamlyn-perf: slot %u refused: this user may have no more "
			"(module parameter user_max_slots; CAP_SYS_RESOURCE passes it)\n",
			s->count + 1);
	else if (error == ENOSPC)
		fprintf(stderr, "hamlyn-perf: slot %u refused: the NIC has %u slots and all are "
			"taken, some by others\n", s->count + 1, s->max_slots);
	else if (error == ETIME)
		fprintf(stderr, "hamlyn-perf: the time is up after %u slots (--timeout)\n",
			s->count);
	else
		fprintf(stderr, "hamlyn-perf: slot %u refused: %s\n", s->count + 1,
			strerror(error));
}

/* Returns slots per second; fewer than @count if one is refused. */
static double create(struct slots *s, uint32_t count)
{
	const struct h_slot_attr attr = { .area = s->ep.in, .nq = s->ep.nq };
	uint64_t start = clock_ns();
	uint32_t before = s->count;
	int ret;

	while (s->count < count) {
		ret = h_slot_create(s->ep.dev, &attr, &s->slots[s->count]);
		if (!ret && !(++s->count % CREATES_PER_LOOK) && clock_ns() > s->deadline)
			ret = -ETIME;
		if (ret < 0) {
			refuse(s, -ret);
			break;
		}
	}
	return (s->count - before) * 1e9 / (double)(clock_ns() - start);
}

/* ---- finding ------------------------------------------------------------ */

static uint32_t index_of(struct slots *s, uint32_t where)
{
	switch (where) {
	case FIRST:
		return 0;
	case MIDDLE:
		return s->count / 2;
	case LAST:
		return s->count - 1;
	default:
		s->random = s->random * 1664525 + 1013904223;
		return (uint32_t)(((uint64_t)s->random * s->count) >> 32);
	}
}

static int send_one(struct slots *s, const struct h_ticket *ticket)
{
	static const unsigned char data[PROBE_BYTES];
	struct hamlyn_nq_entry entry;

	if (endpoint_send(&s->ep, ticket, data, sizeof(data)) < 0 ||
	    endpoint_recv(&s->ep, &entry) < 0)
		return -1;
	if (entry.slot != ticket->slot)
		return fail("a message for slot %u came through slot %u", ticket->slot,
			    entry.slot);
	return 0;
}

/* A few messages to ourselves, one after the other: ns for each of them. */
static int probe(struct slots *s, uint32_t where, double cost, double *ns)
{
	struct h_ticket tickets[BATCH];
	uint64_t start;
	uint32_t i;

	for (i = 0; i < BATCH; i++)
		if (h_slot_ticket(s->slots[index_of(s, where)], 0, 0, 0, &tickets[i]) < 0)
			return fail("no ticket");
	start = clock_ns();
	for (i = 0; i < BATCH; i++)
		if (send_one(s, &tickets[i]) < 0)
			return -1;
	*ns = ((double)(clock_ns() - start) - cost) / BATCH;
	return 0;
}

/* The places take turns, so that what disturbs meets all alike. */
static int probe_round(struct slots *s, double (*ns)[PROBES])
{
	double cost = clock_cost();
	uint32_t i, place;

	for (i = 0; i < WARM_UP + PROBES; i++)
		for (place = 0; place < PLACES; place++)
			if (probe(s, place, cost, &ns[place][i < WARM_UP ? 0 : i - WARM_UP]) < 0)
				return -1;
	return 0;
}

/*
 * Whether the NIC's thread polls is decided anew after a pause, and lasts: rows
 * measured in different states would not compare.
 */
static int probe_all(struct slots *s, double (*ns)[PROBES], double *medians)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint32_t round, place;
	double median;

	for (round = 0; round < ROUNDS; round++) {
		nanosleep(&pause, NULL);
		if (probe_round(s, ns) < 0)
			return -1;
		for (place = 0; place < PLACES; place++) {
			median = stats_median(ns[place], PROBES);
			if (!round || median < medians[place])
				medians[place] = median;
		}
	}
	return 0;
}

static double ratio(const struct slots *s, uint32_t place, double median)
{
	return s->smallest[place] > 0 ? median / s->smallest[place] : 0;
}

static void print_step(const struct slots *s, double rate, const double *medians)
{
	char text[24];
	uint32_t i;

	if (s->options->format == FORMAT_JSON) {
		printf("{\"system\":\"hamlyn\",\"test\":\"slots\",\"size\":%d,\"slots\":%u,"
		       "\"created_per_s\":%.1f", PROBE_BYTES, s->count, rate);
		for (i = 0; i < PLACES; i++)
			printf(",\"%s_ns\":%.1f,\"%s_ratio\":%.3f", place_names[i], medians[i],
			       place_names[i], ratio(s, i, medians[i]));
		printf("}\n");
	} else if (s->options->format == FORMAT_CSV) {
		printf("hamlyn,slots,%u,%.1f", s->count, rate);
		for (i = 0; i < PLACES; i++)
			printf(",%.1f,%.3f", medians[i], ratio(s, i, medians[i]));
		putchar('\n');
	} else {
		printf("%9u %12.3g", s->count, rate);
		for (i = 0; i < PLACES; i++) {
			report_ns(text, sizeof(text), medians[i]);
			printf(" %10s x%-4.2f", text, ratio(s, i, medians[i]));
		}
		putchar('\n');
	}
	fflush(stdout);
}

static int step(struct slots *s, uint32_t count, double (*ns)[PROBES])
{
	uint32_t before = s->count;
	double rate = create(s, count);
	double medians[PLACES];

	if (s->count == before)
		return before ? 0 : fail("not one slot: %s", strerror(s->refused));
	if (probe_all(s, ns, medians) < 0)
		return -1;
	if (!before)
		memcpy(s->smallest, medians, sizeof(medians));
	print_step(s, rate, medians);
	return 0;
}

static int grow(struct slots *s)
{
	double (*ns)[PROBES] = calloc(PLACES, sizeof(*ns));
	int ret = 0;
	size_t i;

	if (!ns)
		return fail("out of memory");
	for (i = 0; i < ARRAY_SIZE(steps) && steps[i] < s->wanted && !ret && !s->refused; i++)
		ret = step(s, steps[i], ns);
	if (!ret && !s->refused)
		ret = step(s, s->wanted, ns);
	free(ns);
	return ret;
}

/* ---- unmaking ----------------------------------------------------------- */

/* Some of them, from everywhere. Returns how many, or -1. */
static int destroy_some(struct slots *s, double *ns, double *median)
{
	uint32_t n = s->count < 2 * DESTROYED ? s->count / 2 : DESTROYED;
	uint64_t start, now;
	uint32_t i;
	int ret;

	start = clock_ns();
	for (i = 0; i < n && start < s->deadline; i++) {
		ret = h_slot_destroy(s->slots[(uint64_t)i * s->count / n]);
		if (ret < 0)
			return fail("h_slot_destroy(): %s", strerror(-ret));
		now = clock_ns();
		ns[i] = (double)(now - start);
		start = now;
	}
	*median = stats_median(ns, i);
	return (int)i;
}

static void print_teardown(const struct slots *s, int one_by_one, double median,
			   uint64_t close_ns)
{
	uint32_t rest = s->count - (uint32_t)one_by_one;
	double single = median > 0 ? 1e9 / median : 0;
	double all = close_ns ? rest * 1e9 / (double)close_ns : 0;
	char text[24];

	if (s->options->format == FORMAT_JSON) {
		printf("{\"system\":\"hamlyn\",\"test\":\"slots-teardown\",\"destroyed\":%d,"
		       "\"destroy_median_ns\":%.1f,\"destroyed_per_s\":%.1f,\"closed\":%u,"
		       "\"close_ns\":%" PRIu64 ",\"closed_per_s\":%.1f}\n", one_by_one, median,
		       single, rest, close_ns, all);
		return;
	}
	if (s->options->format == FORMAT_CSV) {
		printf("hamlyn,slots-teardown,%d,%.1f,%.1f,%u,%" PRIu64 ",%.1f,,,,\n", one_by_one,
		       median, single, rest, close_ns, all);
		return;
	}
	report_ns(text, sizeof(text), median);
	printf("destroyed one by one: %d, median %s each (%.3g a second)\n", one_by_one, text,
	       single);
	report_ns(text, sizeof(text), (double)close_ns);
	printf("all at once, by h_close(): %u in %s (%.3g a second)\n", rest, text, all);
}

static int tear_down(struct slots *s)
{
	double *ns = calloc(DESTROYED, sizeof(*ns));
	double median = 0;
	uint64_t start;
	int n;

	if (!ns)
		return fail("out of memory");
	s->deadline = clock_ns() + s->options->timeout_s * NSEC_PER_SEC;
	n = destroy_some(s, ns, &median);
	free(ns);
	if (n < 0)
		return -1;
	start = clock_ns();
	endpoint_close(&s->ep);
	print_teardown(s, n, median, clock_ns() - start);
	return 0;
}

/* ---- all of it ---------------------------------------------------------- */

static void print_head(const struct slots *s)
{
	uint32_t i;

	if (s->options->format == FORMAT_CSV)
		printf("system,test,slots,created_per_s,first_ns,first_ratio,middle_ns,"
		       "middle_ratio,last_ns,last_ratio,random_ns,random_ratio\n");
	if (s->options->format != FORMAT_TABLE)
		return;
	report_machine();
	printf("slots of one area; a message of %d bytes to itself through one of them, and how\n"
	       "many times that is what it takes with the fewest slots\n\n%9s %12s", PROBE_BYTES,
	       "slots", "created/s");
	for (i = 0; i < PLACES; i++)
		printf(" %10s %-5s", place_names[i], "");
	putchar('\n');
}

static void print_tail(const struct slots *s, double foreign)
{
	if (s->options->format == FORMAT_JSON)
		report_json_machine(stdout, s->options, foreign);
	if (s->options->format != FORMAT_TABLE)
		return;
	if (s->engine)
		printf("the NIC's thread takes over from the sender now and then, which changes "
		       "all times of a\nrow; they are steadier with the module parameter "
		       "engine=inline\n");
	report_foreign(foreign);
}

/* As many as wanted, but one is the endpoint's own. */
static int set_wanted(struct slots *s)
{
	uint32_t count = s->options->count;
	struct hamlyn_query query;

	if (h_query(s->ep.dev, &query) < 0)
		return fail("the NIC does not tell its limits");
	s->max_slots = query.max_slots;
	s->engine = query.engine_mode == HAMLYN_ENGINE_POLL;
	if (query.max_slots < 2)
		return fail("the NIC has only %u slots", query.max_slots);
	if (count > query.max_slots - 1)
		return fail("--count %u is too much: the NIC has %u slots, of which one is in use",
			    count, query.max_slots);
	s->wanted = count ? count : DEFAULT_COUNT;
	if (s->wanted > query.max_slots - 1)
		s->wanted = query.max_slots - 1;
	return 0;
}

static int run(struct slots *s)
{
	struct load load, load_after;
	struct memory before;
	int ret;

	load_look(&load, s->options);
	if (set_wanted(s) < 0)
		return -1;
	s->slots = malloc(s->wanted * sizeof(struct h_slot *));
	if (!s->slots)
		return fail("out of memory");
	/* Not calloc(): its pages would come, and be counted, later. */
	memset(s->slots, 0xff, s->wanted * sizeof(struct h_slot *));
	print_head(s);
	memory_look(&before);
	s->deadline = clock_ns() + 4ULL * s->options->timeout_s * NSEC_PER_SEC;
	ret = grow(s);
	if (!ret) {
		print_memory(s, &before);
		ret = tear_down(s);
	}
	free(s->slots);
	load_look(&load_after, s->options);
	if (!ret)
		print_tail(s, load_foreign(&load, &load_after));
	return ret;
}

int cmd_slots(const struct options *options)
{
	const struct endpoint_attr attr = {
		.bytes = 4096, .metas = 1, .notifications = 31,
	};
	struct slots s = { .options = options };
	int ret;

	wait_setup(options->ncpus, options->timeout_s);
	if (pair_pin(options->cpus[0]) < 0 || endpoint_open(&s.ep, options, &attr) < 0)
		return -1;
	ret = run(&s);
	endpoint_close(&s.ep);
	if (!ret && s.refused && options->count)
		return fail("only %u of %u slots", s.count, options->count);
	return ret;
}
