// SPDX-License-Identifier: GPL-2.0-only
/*
 * libfabric, by its own fi_pingpong. "usec/xfer" is the time of all round
 * trips by twice their number: half a round trip on average, where others
 * give a median. Debian has no libfabric program that streams (fabtests), so
 * the bandwidth is that of the ping-pong, with one message under way. The
 * option -c would make the receiver compare each byte in the measured time,
 * which is not what others do: not used.
 */
#include <stdio.h>
#include <string.h>

#include "peer.h"

#define PROGRAM		"fi_pingpong"
#define MIN_COUNT	200
#define MAX_COUNT	100000

static const char *fabric_missing(const struct options *options)
{
	(void)options;
	return peer_installed(PROGRAM) ? NULL : PROGRAM " is not installed (libfabric-bin)";
}

static void command_start(struct peer_command *command, int cpu, const char *provider,
			  const char *size, const char *count)
{
	*command = (struct peer_command){ .cpu = cpu };
	/* The TCP provider takes the first device else; others do not look. */
	command->env[0] = "FI_TCP_IFACE=lo";
	command->env[1] = "FI_SOCKETS_IFACE=lo";
	peer_words(command, (const char *const[]){ PROGRAM, "-p", provider, "-e", "rdm",
						   "-m", "tagged", "-S", size, "-I", count,
						   NULL });
}

/* "16", "64k", "1m" */
static size_t echoed_size(const char *line)
{
	char *end;
	size_t size = strtoull(line, &end, 10);

	if (*end == 'k')
		return size << 10;
	return *end == 'm' ? size << 20 : size;
}

/* bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec, below their names */
static int parse(const char *text, size_t size, double *ns, double *rate)
{
	const char *line = strstr(text, "Mxfers/sec\n");
	double mb_s, us, by_rate;

	if (line)
		line += strcspn(line, "\n") + 1;
	if (!line || echoed_size(line) != size ||
	    sscanf(line, "%*s %*s =%*s %*s %*fs %lf %lf", &mb_s, &us) != 2 || us <= 0)
		return fail("%s printed no results that we understand", PROGRAM);
	*ns = us * 1e3;
	/* The time has two digits behind the point, 10 ns; MB/sec often tells more. */
	by_rate = mb_s > 0 ? (double)size * 1e3 / mb_s : 0;
	if (by_rate > *ns - 5.5 && by_rate < *ns + 5.5)
		*ns = by_rate;
	*rate = (double)size * 1e9 / *ns;
	return 0;
}

static int run(const struct options *options, const struct point *point,
	       const struct peer_job *job, uint64_t n, struct measure *measure)
{
	static struct peer_said said[2];
	struct peer_command server, client;
	char port[8], size[24], count[24];
	const char *provider = job->arg;
	double ns = 0, rate = 0;

	if (peer_port(port, sizeof(port)) < 0)
		return -1;
	snprintf(size, sizeof(size), "%zu", point->size);
	snprintf(count, sizeof(count), "%llu", (unsigned long long)n);
	command_start(&server, options->cpus[1], provider, size, count);
	peer_words(&server, (const char *const[]){ "-B", port, NULL });
	command_start(&client, options->cpus[0], provider, size, count);
	peer_words(&client, (const char *const[]){ "-P", port, "127.0.0.1", NULL });
	if (peer_run_pair(options, &server, &client, port, said) < 0 ||
	    parse(said[1].text, point->size, &ns, &rate) < 0)
		return -1;
	measure->value = point->test == TEST_LAT ? ns : rate;
	return 0;
}

static int fabric_shm(const struct options *options, const struct point *point,
		      struct measure *measure)
{
	static const struct peer_job job = { run, "shm", MIN_COUNT, MAX_COUNT };
	static struct peer_pace paces[TEST_KINDS];

	return peer_measure(options, point, &job, paces, measure);
}

static int fabric_tcp(const struct options *options, const struct point *point,
		      struct measure *measure)
{
	static const struct peer_job job = { run, "tcp", MIN_COUNT, MAX_COUNT };
	static struct peer_pace paces[TEST_KINDS];

	return peer_measure(options, point, &job, paces, measure);
}

const struct system sys_libfabric_shm = {
	.name = "libfabric-shm",
	.what = "libfabric, shared memory (fi_pingpong: mean, one at a time, data not read)",
	.tests = 1 << TEST_LAT | 1 << TEST_BW,
	.missing = fabric_missing,
	.external = fabric_shm,
};

const struct system sys_libfabric_tcp = {
	.name = "libfabric-tcp",
	.what = "libfabric, TCP (fi_pingpong: mean, one at a time, data not read)",
	.tests = 1 << TEST_LAT | 1 << TEST_BW,
	.missing = fabric_missing,
	.external = fabric_tcp,
};
