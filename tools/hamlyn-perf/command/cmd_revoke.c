// SPDX-License-Identifier: GPL-2.0-only
/*
 * How soon is an old key void? One process owns a slot and revokes it over and
 * over, with a new key or by destroying it, while others send to it as fast as
 * they can. What is timed is the call: when it returns nothing more may land,
 * and after each call the owner looks whether that is so.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "load/crew.h"
#include "load/endpoint.h"
#include "load/flood.h"
#include "load/load.h"
#include "load/pair.h"
#include "report/report.h"
#include "base/stats.h"

#define DEFAULT_N		1000
#define MAX_N			1000000
#define DEFAULT_MS		3000
#define DEFAULT_SENDERS		4
#define MANY_TERMINI		16	/* of each sender */
#define HUGE_PACKETS		64	/* of a huge message */
#define NQ_ENTRIES		4096
#define QUIET_BYTE		0xa5	/* anything but FLOOD_BYTE */
#define MAX_ARRIVALS		32	/* before a revocation: a random number up to it, */
#define MAX_HUGE_ARRIVALS	3	/* or this, */
#define MAX_DELAY_NS		(64 * 1024)	/* and then a random time up to this */

/*
 * How long the owner looks. A sender on the embedded device may lose its
 * processor in the middle of a packet: now and then, longer than a time slice.
 */
#define LOOK_NS			(200 * 1000ULL)
#define LONG_LOOK_NS		(8 * NSEC_PER_MSEC)
#define LOOKS_PER_LONG		32

static const struct load_kind {
	const char *name;
	const char *what;
	bool many;		/* senders; else one */
	bool huge;
	uint32_t termini;
} loads[] = {
	{ "idle", "nobody sends", false, false, 0 },
	{ "small", "one sender of 16 bytes", false, false, 1 },
	{ "small-many", "many senders of 16 bytes", true, false, 1 },
	{ "huge", "one sender of 64 full packets a message", false, true, 1 },
	{ "huge-many", "many senders of such messages", true, true, 1 },
	{ "termini", "many senders of 16 bytes, 16 termini each", true, false, MANY_TERMINI },
	{ "termini-huge", "many senders of huge messages, 16 termini each", true, true,
	  MANY_TERMINI },
};

static const struct revoke_op {
	const char *name;
	bool destroy;
} ops[] = {
	{ "rekey", false },
	{ "destroy", true },
};

/* What came out of one row, in memory that all processes see. */
struct outcome {
	uint64_t n;
	uint64_t violations;
	double median;
	double p99;
	double max;
	double seconds;
};

struct row {
	const struct options *options;
	const struct load_kind *load;
	const struct revoke_op *op;
	uint32_t senders;
	uint32_t places;	/* termini of all senders: each has its metadata entry */
	size_t bytes;		/* of the message area */
	uint64_t n;
	uint64_t budget_ns;
	struct flood *flood;
	struct outcome *outcome;
};

/* The owner's end. */
struct target {
	struct h_dev *dev;
	struct h_area *area;
	struct h_area *meta;
	struct h_nq *nq;
	struct h_slot *slot;
	const struct row *row;
	uint32_t random;
};

/* ---- the slot ----------------------------------------------------------- */

/* A message that was cut off has left its count behind. */
static void clear_metadata(struct target *t)
{
	memset(h_area_addr(t->meta), 0, t->row->places * sizeof(struct hamlyn_metadata));
}

static int make_slot(struct target *t)
{
	const struct h_slot_attr attr = {
		.area = t->area, .meta_area = t->meta, .meta_count = t->row->places,
		.nq = t->nq,
	};
	struct h_ticket ticket;
	int ret;

	if (!t->slot) {
		ret = h_slot_create(t->dev, &attr, &t->slot);
		if (ret < 0)
			return fail("no slot: %s", strerror(-ret));
	}
	ret = h_slot_ticket(t->slot, 0, 0, 0, &ticket);
	if (ret < 0)
		return fail("no ticket: %s", strerror(-ret));
	/* Again: what landed too late, and was counted, must not be in the way. */
	clear_metadata(t);
	flood_tell(t->row->flood, &ticket);
	return 0;
}

static int target_open(struct target *t)
{
	const struct row *row = t->row;
	int ret;

	if (endpoint_device(&t->dev, row->options) < 0)
		return -1;
	ret = h_area_alloc(t->dev, row->bytes, &t->area);
	if (!ret)
		ret = h_area_alloc(t->dev, row->places * sizeof(struct hamlyn_metadata),
				   &t->meta);
	if (!ret)
		ret = h_nq_create(t->dev, NQ_ENTRIES, &t->nq);
	return ret < 0 ? fail("%s has no room for the slot's areas and NQ: %s",
			      h_dev_name(t->dev), strerror(-ret)) : 0;
}

static int take_back(struct target *t, double cost, double *ns)
{
	bool destroy = t->row->op->destroy;
	uint64_t start = clock_ns();
	int ret = destroy ? h_slot_destroy(t->slot) : h_slot_rekey(t->slot);
	uint64_t end = clock_ns();

	if (ret < 0)
		return fail("h_slot_%s(): %s", t->row->op->name, strerror(-ret));
	flood_void(t->row->flood);
	if (destroy)
		t->slot = NULL;
	*ns = (double)(end - start) > cost ? (double)(end - start) - cost : 0;
	return 0;
}

/* ---- traffic before, silence after -------------------------------------- */

/* Take what is there, at most a queueful. Returns how many entries that was. */
static uint32_t drain(struct target *t)
{
	struct hamlyn_nq_entry entry;
	uint32_t n = 0;
	uint32_t i;
	int ret;

	for (i = 0; i < 2 * NQ_ENTRIES; i++) {
		ret = h_recv(t->nq, &entry);
		if (!ret)
			break;
		n++;
	}
	return n;
}

static uint32_t next_random(struct target *t)
{
	t->random = t->random * 1664525 + 1013904223;
	return t->random >> 8;
}

static void look_on(uint64_t ns)
{
	uint64_t deadline = clock_ns() + ns;

	while (clock_ns() < deadline)
		__asm__ volatile("" : : : "memory");
}

/* So that no call is timed without traffic, or always at the end of a message. */
static int await_traffic(struct target *t)
{
	uint32_t most = t->row->load->huge ? MAX_HUGE_ARRIVALS : MAX_ARRIVALS;
	uint32_t wanted = 1 + next_random(t) % most;
	struct wait wait = WAIT("message before a revocation");
	uint32_t n = 0;

	if (!t->row->senders)
		return 0;
	while ((n += drain(t)) < wanted)
		if (!wait_more(&wait))
			return -1;
	look_on(next_random(t) % MAX_DELAY_NS);
	return 0;
}

static bool unchanged(const unsigned char *bytes, size_t size)
{
	return bytes[0] == QUIET_BYTE && !memcmp(bytes, bytes + 1, size - 1);
}

static bool metadata_unchanged(const struct target *t)
{
	const unsigned char *meta = h_area_addr(t->meta);
	size_t size = t->row->places * sizeof(struct hamlyn_metadata);

	return !meta[0] && !memcmp(meta, meta + 1, size - 1);
}

/*
 * The call has returned and the senders go on with the old ticket: neither the
 * message area, nor the metadata entries, nor the NQ may change any more.
 */
static bool quiet(struct target *t, uint64_t round)
{
	size_t size = h_area_length(t->area);

	memset(h_area_addr(t->area), QUIET_BYTE, size);
	clear_metadata(t);
	drain(t);
	look_on(round % LOOKS_PER_LONG ? LOOK_NS : LONG_LOOK_NS);
	return unchanged(h_area_addr(t->area), size) && metadata_unchanged(t) && !drain(t);
}

/* ---- one row ------------------------------------------------------------ */

static int await_senders(const struct row *row)
{
	struct wait wait = WAIT("sign of life of the senders");

	while (__atomic_load_n(&row->flood->ready, __ATOMIC_ACQUIRE) < row->senders)
		if (!wait_more(&wait))
			return -1;
	return 0;
}

static int run_rounds(struct target *t, double *samples)
{
	uint64_t deadline = clock_ns() + t->row->budget_ns;
	struct outcome *outcome = t->row->outcome;
	double cost = clock_cost();

	while (outcome->n < t->row->n && (!outcome->n || clock_ns() < deadline)) {
		if (make_slot(t) < 0 || await_traffic(t) < 0 ||
		    take_back(t, cost, &samples[outcome->n]) < 0)
			return -1;
		outcome->violations += !quiet(t, outcome->n);
		outcome->n++;
	}
	return 0;
}

static void evaluate(struct outcome *outcome, double *samples)
{
	stats_sort(samples, outcome->n);
	outcome->median = stats_quantile(samples, outcome->n, 0.5);
	outcome->p99 = stats_quantile(samples, outcome->n, 0.99);
	outcome->max = samples[outcome->n - 1];
}

static int own(struct target *t)
{
	const struct row *row = t->row;
	double *samples = calloc(row->n, sizeof(*samples));
	uint64_t start;
	int ret;

	if (!samples)
		return fail("out of memory");
	ret = pair_pin(row->options->cpus[0]);
	if (!ret)
		ret = target_open(t);
	if (!ret)
		ret = await_senders(row);
	start = clock_ns();
	if (!ret)
		ret = run_rounds(t, samples);
	row->outcome->seconds = (double)(clock_ns() - start) / 1e9;
	flood_stop(row->flood);
	h_close(t->dev);
	if (!ret)
		evaluate(row->outcome, samples);
	free(samples);
	return ret;
}

static int run_member(void *arg, uint32_t member)
{
	const struct row *row = arg;
	struct target target = { .row = row };

	if (member)
		return flood_send(row->flood, row->options, member - 1);
	return own(&target);
}

static int run_row(struct row *row)
{
	uint64_t limit_s = 4ULL * row->options->timeout_s + row->budget_ns / NSEC_PER_SEC;
	struct crew crew;

	memset(row->flood, 0, sizeof(*row->flood));
	memset(row->outcome, 0, sizeof(*row->outcome));
	row->flood->size = row->load->huge ? row->bytes : FLOOD_SMALL;
	row->flood->termini = row->load->termini;
	row->flood->limit_ns = limit_s * NSEC_PER_SEC;
	if (crew_start(&crew, row->options, 1 + row->senders, run_member, row) < 0)
		return -1;
	return crew_finish(&crew, 0, limit_s);
}

/* ---- reports ------------------------------------------------------------ */

static void sum_up(const struct row *row, uint64_t *sent, uint64_t *late)
{
	uint32_t i;

	*sent = 0;
	*late = 0;
	for (i = 0; i < row->senders; i++) {
		*sent += row->flood->senders[i].sent;
		*late += row->flood->senders[i].late;
	}
}

static void print_head(const struct options *options)
{
	if (options->format == FORMAT_CSV)
		printf("system,test,load,op,size,senders,termini,median_ns,p99_ns,max_ns,"
		       "revocations,violations,msgs_per_s,late_messages\n");
	if (options->format != FORMAT_TABLE)
		return;
	report_machine();
	printf("owner of the slot on CPU %d, senders on the others\n\n"
	       "%-13s %-8s %7s %8s %9s %9s %9s %7s %10s %9s %5s\n", options->cpus[0], "load",
	       "call", "senders", "size", "median", "p99", "max", "calls", "messages/s",
	       "late", "wrong");
}

static void print_table(const struct row *row, double rate, uint64_t late)
{
	char size[24], median[24], p99[24], max[24];
	const struct outcome *o = row->outcome;

	report_size(size, sizeof(size), row->senders ? row->flood->size : 0);
	report_ns(median, sizeof(median), o->median);
	report_ns(p99, sizeof(p99), o->p99);
	report_ns(max, sizeof(max), o->max);
	printf("%-13s %-8s %4ux%-2u %8s %9s %9s %9s %7" PRIu64 " %10.3g %9" PRIu64 " %5"
	       PRIu64 "\n", row->load->name, row->op->name, row->senders, row->load->termini,
	       row->senders ? size : "-", median, p99, max, o->n, rate, late, o->violations);
}

static void print_row(const struct row *row)
{
	const struct outcome *o = row->outcome;
	uint64_t sent, late;
	double rate;

	sum_up(row, &sent, &late);
	rate = o->seconds > 0 ? (double)sent / o->seconds : 0;
	if (row->options->format == FORMAT_TABLE)
		print_table(row, rate, late);
	else
		printf(row->options->format == FORMAT_JSON ?
		       "{\"system\":\"hamlyn\",\"test\":\"revoke\",\"load\":\"%s\",\"op\":\"%s\","
		       "\"size\":%zu,\"senders\":%u,\"termini\":%u,\"median_ns\":%.1f,"
		       "\"p99_ns\":%.1f,\"max_ns\":%.1f,\"revocations\":%" PRIu64
		       ",\"violations\":%" PRIu64 ",\"msgs_per_s\":%.1f,\"late_messages\":%" PRIu64
		       "}\n" :
		       "hamlyn,revoke,%s,%s,%zu,%u,%u,%.1f,%.1f,%.1f,%" PRIu64 ",%" PRIu64
		       ",%.1f,%" PRIu64 "\n", row->load->name, row->op->name,
		       row->senders ? row->flood->size : 0, row->senders, row->load->termini,
		       o->median, o->p99, o->max, o->n, o->violations, rate, late);
	fflush(stdout);
}

static void print_tail(const struct options *options, double foreign)
{
	size_t i;

	if (options->format == FORMAT_JSON)
		report_json_machine(stdout, options, foreign);
	if (options->format != FORMAT_TABLE)
		return;
	printf("\nsenders: processes x termini of each. late: messages sent with a ticket after"
	       "\nits revocation was over. wrong: revocations after which one of them landed.\n\n");
	for (i = 0; i < ARRAY_SIZE(loads); i++)
		printf("%-13s %s\n", loads[i].name, loads[i].what);
	report_foreign(foreign);
}

/* ---- all rows ----------------------------------------------------------- */

static int ask_nic(const struct options *options, size_t *bytes)
{
	struct hamlyn_query query;
	struct h_dev *dev;
	int ret;

	if (endpoint_device(&dev, options) < 0)
		return -1;
	ret = h_query(dev, &query);
	h_close(dev);
	if (ret < 0)
		return fail("the NIC does not tell its limits: %s", strerror(-ret));
	*bytes = (size_t)HUGE_PACKETS * query.packet_size;
	return 0;
}

static void set_up(struct row *row, const struct load_kind *load, const struct revoke_op *op,
		   size_t huge)
{
	uint32_t many = row->options->senders ? row->options->senders : DEFAULT_SENDERS;

	row->load = load;
	row->op = op;
	row->senders = !load->termini ? 0 : load->many ? many : 1;
	row->places = row->senders ? row->senders * load->termini : 1;
	row->bytes = load->huge ? huge : (size_t)row->places * FLOOD_SPACE;
}

/* What the areas of the largest row take. */
static uint64_t room(struct row *row, size_t huge)
{
	uint64_t bytes, most = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(loads); i++) {
		set_up(row, &loads[i], &ops[0], huge);
		bytes = (1 + row->senders) * (uint64_t)row->bytes +
			row->places * sizeof(struct hamlyn_metadata);
		if (bytes > most)
			most = bytes;
	}
	return most;
}

static int run_all(struct row *row, size_t huge)
{
	struct load before, after;
	uint64_t violations = 0;
	size_t i, j;

	load_look_all(&before);
	print_head(row->options);
	for (i = 0; i < ARRAY_SIZE(loads); i++)
		for (j = 0; j < ARRAY_SIZE(ops); j++) {
			set_up(row, &loads[i], &ops[j], huge);
			fail_prefix(loads[i].name);
			if (run_row(row) < 0)
				return -1;
			print_row(row);
			violations += row->outcome->violations;
		}
	fail_prefix(NULL);
	load_look_all(&after);
	print_tail(row->options, load_foreign(&before, &after));
	return violations ? fail("messages landed after %" PRIu64 " revocations", violations) : 0;
}

int cmd_revoke(const struct options *options)
{
	uint32_t ms = options->point_ms ? options->point_ms : DEFAULT_MS;
	struct options mine = *options;
	struct row row = {
		.options = &mine,
		.n = options->n ? options->n : DEFAULT_N,
		.budget_ns = ms * NSEC_PER_MSEC,
	};
	size_t huge = 0;
	int ret;

	if (row.n > MAX_N)
		return fail_usage("revoke takes --n up to %d", MAX_N);
	if (ask_nic(options, &huge) < 0)
		return -1;
	mine.device = endpoint_name(options, room(&row, huge));
	row.flood = crew_shared_new(sizeof(*row.flood));
	if (!row.flood)
		return -1;
	row.outcome = crew_shared_new(sizeof(*row.outcome));
	ret = row.outcome ? run_all(&row, huge) : -1;
	crew_shared_free(row.outcome, sizeof(*row.outcome));
	crew_shared_free(row.flood, sizeof(*row.flood));
	return ret;
}
