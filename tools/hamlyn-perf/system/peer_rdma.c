// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA as the kernel does it without hardware, soft-RoCE, by the programs of
 * perftest. Latencies are halves of round trips ("typical" is the median). The
 * receiver of ib_write polls the last byte, that of ib_send the completion
 * queue; neither reads the data. Bandwidth and rate are of ib_send_bw and
 * ib_write_bw, whose sender counts what was acknowledged.
 *
 * perftest counts in CPU cycles, and on a busy machine misjudges how long one
 * is or finds no answer. For latencies it is asked for the cycles and we judge;
 * for the others nothing but another try helps.
 *
 * $HAMLYN_PERF_RDMA names the device; else the first soft one is taken.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "system/peer.h"

#define CLASS		"/sys/class/infiniband"
#define VARIABLE	"HAMLYN_PERF_RDMA"
#define MIN_COUNT	100
#define MAX_COUNT	20000	/* more cost perftest its peak figures */
#define MAX_GIDS	16
#define MAX_TRIES	3
#define MIB		1048576.0

struct programs {
	const char *lat;
	const char *bw;
};

static const struct programs send_programs = { "ib_send_lat", "ib_send_bw" };
static const struct programs write_programs = { "ib_write_lat", "ib_write_bw" };

/* ---- the device --------------------------------------------------------- */

/* Only soft devices say which network device they are on. */
static bool find_device(char *name, size_t room)
{
	const char *chosen = getenv(VARIABLE);
	bool found = chosen && *chosen;
	char path[512];
	const struct dirent *entry;
	DIR *dir;

	if (found) {
		snprintf(name, room, "%s", chosen);
		return true;
	}
	dir = opendir(CLASS);
	while (dir && !found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), CLASS "/%s/parent", entry->d_name);
		found = entry->d_name[0] != '.' && !access(path, R_OK);
		if (found)
			snprintf(name, room, "%.*s", (int)room - 1, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* The address that is an IPv4 one: rxe's first is made from the MAC address. */
static uint32_t find_gid(const char *device)
{
	static const char mapped[] = "0000:0000:0000:0000:0000:ffff:";
	char path[512], gid[64];
	bool found = false;
	uint32_t i;
	FILE *file;

	for (i = 0; i < MAX_GIDS && !found; i++) {
		snprintf(path, sizeof(path), CLASS "/%s/ports/1/gids/%u", device, i);
		file = fopen(path, "r");
		if (!file)
			return 0;
		found = fgets(gid, sizeof(gid), file) &&
			!strncmp(gid, mapped, strlen(mapped));
		fclose(file);
	}
	return found ? i - 1 : 0;
}

static const char *missing(const struct programs *programs)
{
	char device[64];

	if (!peer_installed(programs->lat) || !peer_installed(programs->bw))
		return "ib_send_lat and its like are not installed (perftest)";
	if (!find_device(device, sizeof(device)))
		return "there is no soft-RoCE device (rdma link add rxe0 type rxe ...)";
	return NULL;
}

/* ---- cycles ------------------------------------------------------------- */

struct tick {
	uint64_t cycles;
	uint64_t ns;
};

static uint64_t cycles_now(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/* Both clocks at one moment: the try that nobody interrupted. */
static struct tick tick_now(void)
{
	uint64_t before, after, cycles, best = UINT64_MAX;
	struct tick tick = { 0 };
	int i;

	for (i = 0; i < 16; i++) {
		before = clock_ns();
		cycles = cycles_now();
		after = clock_ns();
		if (after - before < best) {
			best = after - before;
			tick = (struct tick){ cycles, before + best / 2 };
		}
	}
	return tick;
}

/* Nanoseconds of a cycle, 0 if there is no telling. */
static double cycle_ns(const struct tick *start)
{
	struct tick now = tick_now();

	if (now.cycles <= start->cycles)
		return 0;
	return (double)(now.ns - start->ns) / (double)(now.cycles - start->cycles);
}

/* ---- results ------------------------------------------------------------ */

/* bytes, count, min, max, typical, average, deviation, 99 %, 99.9 %; in cycles */
static int parse_lat(const double *numbers, uint32_t n, double ns, struct measure *measure)
{
	if (n < 9 || ns <= 0)
		return -1;
	measure->min = numbers[2] * ns;
	measure->max = numbers[3] * ns;
	measure->value = numbers[4] * ns;
	/* Of too few trips it prints the longest. */
	if (measure->n >= 100)
		measure->p99 = numbers[7] * ns;
	if (measure->n >= 1000)
		measure->p999 = numbers[8] * ns;
	return 0;
}

/*
 * bytes, count, peak and average in MiB/s, million messages/s. The last two
 * say the same; two and six digits behind the point are left of them, so that
 * one or the other tells more.
 */
static int parse_stream(const double *numbers, uint32_t n, enum test_kind test,
			struct measure *measure)
{
	double by_bytes, by_messages, byte_error, message_error;

	if (n < 5 || numbers[3] < 0 || numbers[4] <= 0)
		return -1;
	by_bytes = numbers[3] * MIB / numbers[0];
	by_messages = numbers[4] * 1e6;
	byte_error = 0.005 * MIB / numbers[0];
	message_error = 0.5;
	if (fabs(by_bytes - by_messages) > 2 * (byte_error + message_error))
		return -1;
	measure->value = byte_error < message_error ? by_bytes : by_messages;
	if (test == TEST_BW)
		measure->value *= numbers[0];
	return 0;
}

/* False: nothing to be understood, or no finite number. */
static bool parse(const char *text, const struct point *point, double ns,
		  struct measure *measure)
{
	double numbers[9];
	uint32_t n = peer_numbers(text, numbers, ARRAY_SIZE(numbers));

	if (n < 5 || numbers[0] != (double)point->size ||
	    numbers[1] < (double)measure->n)
		return false;
	if ((point->test == TEST_LAT ? parse_lat(numbers, n, ns, measure) :
				       parse_stream(numbers, n, point->test, measure)) < 0)
		return false;
	return isfinite(measure->value) && measure->value > 0;
}

/* ---- runs --------------------------------------------------------------- */

struct words {
	char device[64];
	char gid[8];
	char port[8];
	char size[24];
	char count[24];
};

static int make_words(struct words *words, const struct point *point, uint64_t count)
{
	if (!find_device(words->device, sizeof(words->device)))
		return fail("the soft-RoCE device is gone");
	snprintf(words->gid, sizeof(words->gid), "%u", find_gid(words->device));
	snprintf(words->size, sizeof(words->size), "%zu", point->size);
	snprintf(words->count, sizeof(words->count), "%llu", (unsigned long long)count);
	return peer_port(words->port, sizeof(words->port));
}

static void command_start(struct peer_command *command, int cpu, const char *program,
			  const struct words *words)
{
	*command = (struct peer_command){ .cpu = cpu };
	peer_words(command, (const char *const[]){ program, "-F", "-d", words->device,
						   "-x", words->gid, "-p", words->port,
						   "-s", words->size, "-n", words->count,
						   NULL });
}

static int run_programs(const struct options *options, const struct point *point,
			const char *program, const struct words *words,
			struct peer_said said[2])
{
	struct peer_command server, client;

	command_start(&server, options->cpus[1], program, words);
	command_start(&client, options->cpus[0], program, words);
	if (point->test == TEST_LAT)
		peer_word(&client, "-C");
	/* Only to agree on queue pairs; the messages take the RDMA device. */
	peer_word(&client, "127.0.0.1");
	return peer_run_pair(options, &server, &client, words->port, said);
}

static int run(const struct options *options, const struct point *point,
	       const struct peer_job *job, uint64_t count, struct measure *measure)
{
	const struct programs *programs = job->arg;
	const char *program = point->test == TEST_LAT ? programs->lat : programs->bw;
	static struct peer_said said[2];
	struct tick start = tick_now();
	struct words words;
	int try;

	for (try = 0; try < MAX_TRIES; try++) {
		if (make_words(&words, point, count) < 0 ||
		    run_programs(options, point, program, &words, said) < 0)
			return -1;
		if (parse(said[1].text, point, cycle_ns(&start), measure))
			return 0;
	}
	return fail("%s printed no results that we understand", program);
}

/* ---- the two systems ---------------------------------------------------- */

static const char *send_missing(const struct options *options)
{
	(void)options;
	return missing(&send_programs);
}

static const char *write_missing(const struct options *options)
{
	(void)options;
	return missing(&write_programs);
}

static int rxe_send(const struct options *options, const struct point *point,
		    struct measure *measure)
{
	static const struct peer_job job = { run, &send_programs, MIN_COUNT, MAX_COUNT };
	static struct peer_pace paces[TEST_KINDS];

	/* perftest sends at least one byte */
	if (!point->size)
		return 0;
	return peer_measure(options, point, &job, paces, measure);
}

static int rxe_write(const struct options *options, const struct point *point,
		     struct measure *measure)
{
	static const struct peer_job job = { run, &write_programs, MIN_COUNT, MAX_COUNT };
	static struct peer_pace paces[TEST_KINDS];

	if (!point->size)
		return 0;
	return peer_measure(options, point, &job, paces, measure);
}

const struct system sys_rxe_send = {
	.name = "rxe-send",
	.what = "RDMA send, soft-RoCE (perftest: the data is not read)",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.missing = send_missing,
	.external = rxe_send,
};

const struct system sys_rxe_write = {
	.name = "rxe-write",
	.what = "RDMA write, soft-RoCE (perftest: last byte polled, bandwidth: nothing)",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.missing = write_missing,
	.external = rxe_write,
};
