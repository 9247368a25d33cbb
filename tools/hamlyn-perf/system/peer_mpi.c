// SPDX-License-Identifier: GPL-2.0-only
/*
 * Open MPI and MPICH over shared memory, by a program of our own that does the
 * same work as our tests (mpi/pingpong.c), built by "make peers" once for each
 * of the two. It is beside hamlyn-perf or in PATH.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "system/peer.h"

#define OPENMPI_LAUNCHER	"mpirun.openmpi"
#define OPENMPI_PROGRAM		"hamlyn-perf-openmpi"
#define MPICH_LAUNCHER		"mpiexec.mpich"
#define MPICH_PROGRAM		"hamlyn-perf-mpich"
/* Both use hwloc, which would look for X servers as well */
#define NO_DISPLAY		"HWLOC_COMPONENTS=-gl,-opencl"

static const char *const test_names[TEST_KINDS] = {
	[TEST_LAT] = "lat",
	[TEST_BW] = "bw",
	[TEST_RATE] = "rate",
};

/* Beside ourselves, else as it is called, for PATH. */
static void find_program(const char *name, char *path, size_t room)
{
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n > 0) {
		self[n] = 0;
		slash = strrchr(self, '/');
		if (slash)
			*slash = 0;
		if ((size_t)snprintf(path, room, "%s/%s", self, name) < room &&
		    !access(path, X_OK))
			return;
	}
	snprintf(path, room, "%s", name);
}

static const char *missing(const char *launcher, const char *program)
{
	char path[600];

	if (!peer_installed(launcher))
		return "its launcher is not installed (openmpi-bin, mpich)";
	find_program(program, path, sizeof(path));
	return peer_installed(path) ? NULL : "our program for it is not built (make peers)";
}

static int parse(const char *text, const struct point *point, struct measure *measure)
{
	const char *line = strstr(text, "hamlyn-mpi ");
	unsigned long long n;
	size_t size;

	if (!line || sscanf(line, "hamlyn-mpi %zu %llu %lf %lf %lf %lf %lf %lf %lf %lf",
			    &size, &n, &measure->value, &measure->cpu_ns, &measure->min,
			    &measure->p90, &measure->p99, &measure->p999,
			    &measure->p9999, &measure->max) != 10 ||
	    size != point->size || measure->value <= 0 || !n)
		return fail("the MPI program printed no results");
	measure->n = n;
	if (point->test == TEST_BW)
		measure->value *= (double)point->size;
	return 0;
}

/* @command has the launcher and its words already. */
static int run(const struct options *options, const struct point *point,
	       struct peer_command *command, const char *program, struct measure *measure)
{
	char path[600], size[24], ms[16], touch[8], cpus[32], limit[16];
	static struct peer_said said;

	find_program(program, path, sizeof(path));
	snprintf(size, sizeof(size), "%zu", point->size);
	snprintf(ms, sizeof(ms), "%u", peer_ms(options));
	snprintf(touch, sizeof(touch), "%u", (unsigned int)options->touch);
	snprintf(cpus, sizeof(cpus), "%d,%d", options->cpus[0], options->cpus[1]);
	snprintf(limit, sizeof(limit), "%u", options->timeout_s);
	peer_words(command, (const char *const[]){ path, test_names[point->test], size, ms,
						   touch, options->verify ? "1" : "0",
						   cpus, limit, NULL });
	if (peer_run(options, command, &said) < 0)
		return -1;
	return parse(said.text, point, measure);
}

static const char *openmpi_missing(const struct options *options)
{
	(void)options;
	return missing(OPENMPI_LAUNCHER, OPENMPI_PROGRAM);
}

/* "vader" is its shared memory; isolated: no other machine is ever asked. */
static int openmpi(const struct options *options, const struct point *point,
		   struct measure *measure)
{
	struct peer_command command = { .cpu = -1, .env = { NO_DISPLAY } };

	peer_words(&command, (const char *const[]){
		OPENMPI_LAUNCHER, "--allow-run-as-root", "--oversubscribe", "--bind-to",
		"none", "--mca", "pml", "ob1", "--mca", "btl", "self,vader", "--mca", "plm",
		"isolated", "--mca", "oob_tcp_if_include", "lo", NULL });
	if (options->ncpus < 2)
		peer_words(&command, (const char *const[]){
			"--mca", "mpi_yield_when_idle", "1", NULL });
	peer_words(&command, (const char *const[]){ "-np", "2", NULL });
	return run(options, point, &command, OPENMPI_PROGRAM, measure);
}

static const char *mpich_missing(const struct options *options)
{
	(void)options;
	return missing(MPICH_LAUNCHER, MPICH_PROGRAM);
}

static int mpich(const struct options *options, const struct point *point,
		 struct measure *measure)
{
	struct peer_command command = { .cpu = -1 };

	command.env[0] = "UCX_TLS=posix,sysv,cma,self";
	command.env[1] = "UCX_WARN_UNUSED_ENV_VARS=n";
	command.env[2] = NO_DISPLAY;
	peer_words(&command, (const char *const[]){
		MPICH_LAUNCHER, "-launcher", "fork", "-hosts", "localhost", "-iface", "lo",
		"-n", "2", NULL });
	return run(options, point, &command, MPICH_PROGRAM, measure);
}

const struct system sys_openmpi = {
	.name = "openmpi",
	.what = "Open MPI, shared memory: the same work as ours",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.missing = openmpi_missing,
	.external = openmpi,
};

const struct system sys_mpich = {
	.name = "mpich",
	.what = "MPICH, shared memory: the same work as ours",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.missing = mpich_missing,
	.external = mpich,
};
