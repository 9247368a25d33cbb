// SPDX-License-Identifier: GPL-2.0-only
/*
 * libfabric, by its own fi_pingpong. "usec/xfer" is the time of all round
 * trips by twice their number: half a round trip on average, where others
 * give a median. Debian packages no libfabric program that streams (fabtests), so
 * the bandwidth is that of the ping-pong, with one message under way. The
 * option -c would make the receiver compare each byte in the measured time,
 * which is not what others do: not used.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "load/endpoint.h"
#include "system/peer.h"

#define PROGRAM		"fi_pingpong"
#define LISTS		"fi_info"
#define MIN_COUNT	200
#define MAX_COUNT	100000
#define OURS		"libhamlyn-fi.so"
#define OUR_MIB		64	/* of an embedded device for the two alone */

/* A provider, and one of its end points. */
struct fabric {
	const char *provider;
	const char *type;	/* of -e */
	const char *mode;	/* of -m */
	const char *among;	/* FI_PROVIDER=..., or NULL: libfabric's own choice */
	bool ours;
	bool net;		/* goes where --peer-netns and --peer-address say */
};

static const char *fabric_missing(const struct options *options)
{
	(void)options;
	return peer_installed(PROGRAM) ? NULL : PROGRAM " is not installed (libfabric-bin)";
}

/* Our provider is beside us, where "make" puts it, or where libfabric looks for it. */
static void find_provider(struct peer_command *command, uint32_t at)
{
	static char env[600];
	char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (n <= 0)
		return;
	path[n] = 0;
	slash = strrchr(path, '/');
	if (!slash)
		return;
	*slash = 0;
	snprintf(env, sizeof(env), "%s/libfabric/" OURS, path);
	if (access(env, R_OK))
		return;
	snprintf(env, sizeof(env), "FI_PROVIDER_PATH=%s/libfabric", path);
	command->env[at] = env;
}

/* A segment of their own: ours is full of what our own tests send. */
static void name_device(const struct options *options, struct peer_command *command, uint32_t at)
{
	static char env[256];
	const char *name = device_named(options);

	if (!name)
		return;
	if (strncmp(name, "shm:", 4))
		snprintf(env, sizeof(env), "HAMLYN_DEVICE=%s", name);
	else
		snprintf(env, sizeof(env), "HAMLYN_DEVICE=shm:hamlyn-perf-fi-%d,size=%dM",
			 (int)getpid(), OUR_MIB);
	command->env[at] = env;
}

/* libfabric is not loaded for that into this process, which may be without it. */
static const char *ours_missing(const struct options *options)
{
	static struct peer_said said;
	struct peer_command command = { .cpu = -1 };

	if (!peer_installed(LISTS) || !peer_installed(PROGRAM))
		return LISTS " or " PROGRAM " is not installed (libfabric-bin)";
	find_provider(&command, 0);
	peer_words(&command, (const char *const[]){ LISTS, "-p", "hamlyn", NULL });
	if (peer_run(options, &command, &said) < 0)
		return "libfabric does not find " OURS " (make ofi, or FI_PROVIDER_PATH)";
	return NULL;
}

static void command_start(const struct options *options, struct peer_command *command, int cpu,
			  const struct fabric *fabric, const char *size, const char *count)
{
	uint32_t last = 1;

	*command = (struct peer_command){ .cpu = cpu };
	/* The TCP provider takes the first device else; others do not look. */
	command->env[0] = "FI_SOCKETS_IFACE=lo";
	if (!fabric->net || !options->peer_address)
		command->env[last++] = "FI_TCP_IFACE=lo";
	if (fabric->among)
		command->env[last++] = fabric->among;
	if (fabric->ours) {
		find_provider(command, last);
		name_device(options, command, command->env[last] ? last + 1 : last);
	}
	peer_words(command, (const char *const[]){ PROGRAM, "-p", fabric->provider, "-e",
						   fabric->type, "-m", fabric->mode, "-S", size,
						   "-I", count, NULL });
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
	char port[8], size[24], count[24], address[INET_ADDRSTRLEN] = "127.0.0.1";
	const struct fabric *fabric = job->arg;
	double ns = 0, rate = 0;

	if (peer_port(port, sizeof(port)) < 0)
		return -1;
	snprintf(size, sizeof(size), "%zu", point->size);
	snprintf(count, sizeof(count), "%llu", (unsigned long long)n);
	command_start(options, &server, options->cpus[1], fabric, size, count);
	peer_words(&server, (const char *const[]){ "-B", port, NULL });
	if (fabric->net) {
		server.netns = options->peer_netns;
		if (options->peer_address)
			inet_ntop(AF_INET, &options->peer_address, address, sizeof(address));
	}
	command_start(options, &client, options->cpus[0], fabric, size, count);
	peer_words(&client, (const char *const[]){ "-P", port, address, NULL });
	if (peer_run_pair(options, &server, &client, port, said) < 0 ||
	    parse(said[1].text, point->size, &ns, &rate) < 0)
		return -1;
	measure->value = point->test == TEST_LAT ? ns : rate;
	return 0;
}

static int fabric_shm(const struct options *options, const struct point *point,
		      struct measure *measure)
{
	static const struct fabric fabric = { "shm", "rdm", "tagged", NULL, false, false };
	static const struct peer_job job = { run, &fabric, MIN_COUNT, MAX_COUNT };
	static struct peer_pace paces[TEST_KINDS];

	return peer_measure(options, point, &job, paces, measure);
}

static int fabric_tcp(const struct options *options, const struct point *point,
		      struct measure *measure)
{
	static const struct fabric fabric = { "tcp", "rdm", "tagged", NULL, false, true };
	static const struct peer_job job = { run, &fabric, MIN_COUNT, MAX_COUNT };
	static struct peer_pace paces[TEST_KINDS];

	return peer_measure(options, point, &job, paces, measure);
}

/* libfabric offers ofi_rxm above it first. */
static int fabric_hamlyn_rdm(const struct options *options, const struct point *point,
			     struct measure *measure)
{
	static const struct fabric fabric = { "hamlyn", "rdm", "tagged", "FI_PROVIDER=^ofi_rxm",
					      true, false };
	static const struct peer_job job = { run, &fabric, MIN_COUNT, MAX_COUNT };
	static struct peer_pace paces[TEST_KINDS];

	return peer_measure(options, point, &job, paces, measure);
}

static int fabric_hamlyn_rxm(const struct options *options, const struct point *point,
			     struct measure *measure)
{
	static const struct fabric fabric = { "hamlyn;ofi_rxm", "rdm", "tagged", NULL, true,
					      false };
	static const struct peer_job job = { run, &fabric, MIN_COUNT, MAX_COUNT };
	static struct peer_pace paces[TEST_KINDS];

	return peer_measure(options, point, &job, paces, measure);
}

static int fabric_hamlyn_msg(const struct options *options, const struct point *point,
			     struct measure *measure)
{
	static const struct fabric fabric = { "hamlyn", "msg", "msg", NULL, true, false };
	static const struct peer_job job = { run, &fabric, MIN_COUNT, MAX_COUNT };
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

const struct system sys_libfabric_hamlyn_rdm = {
	.name = "libfabric-hamlyn-rdm",
	.what = "libfabric, hamlyn's datagrams (fi_pingpong: mean, one at a time, data not read)",
	.tests = 1 << TEST_LAT | 1 << TEST_BW,
	.missing = ours_missing,
	.external = fabric_hamlyn_rdm,
};

const struct system sys_libfabric_hamlyn_rxm = {
	.name = "libfabric-hamlyn-rxm",
	.what = "libfabric, hamlyn below ofi_rxm (fi_pingpong: mean, one at a time, data not read)",
	.tests = 1 << TEST_LAT | 1 << TEST_BW,
	.missing = ours_missing,
	.external = fabric_hamlyn_rxm,
};

const struct system sys_libfabric_hamlyn_msg = {
	.name = "libfabric-hamlyn-msg",
	.what = "libfabric, hamlyn's connections (fi_pingpong: mean, one at a time, data not read)",
	.tests = 1 << TEST_LAT | 1 << TEST_BW,
	.missing = ours_missing,
	.external = fabric_hamlyn_msg,
};
