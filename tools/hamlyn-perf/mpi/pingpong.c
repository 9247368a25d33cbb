// SPDX-License-Identifier: GPL-2.0-only
/*
 * hamlyn-perf's three tests over MPI, for peer_mpi.c: the same buffers, the
 * same stamps, a receiver that reads as much, the same clock. Rank 0 measures
 * and sends streams, rank 1 answers and receives them. A stream's receives are
 * posted before what they are for is sent: credits see to that, so nothing is
 * copied twice for want of a buffer.
 *
 * usage: pingpong TEST SIZE MS TOUCH VERIFY CPU,CPU LIMIT-S, by mpirun -n 2
 */
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "system/chan.h"
#include "base/clock.h"
#include "base/payload.h"
#include "base/stats.h"

#define TAG_DATA	1
#define TAG_CREDIT	2
#define WARM_UP		(PAYLOAD_SAMPLE + 1)	/* as in test_lat.c */
#define MIN_TRIPS	32
#define MAX_TRIPS	100000
#define MIN_MESSAGES	8
#define MAX_MESSAGES	(1ULL << 24)

struct job {
	struct options options;
	char test;		/* l, b or r */
	size_t size;
	size_t stride;
	uint32_t count;		/* buffers of a stream */
	uint32_t step;		/* messages per credit */
	int rank;
	unsigned char *out;
	unsigned char *in;
	MPI_Request requests[CHAN_MAX_COUNT];
};

static double trips[MAX_TRIPS];

static uint64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * NSEC_PER_SEC + (uint64_t)used.tv_nsec;
}

/* CPU time of both since their @before, for rank 0. */
static double both_cpu_ns(uint64_t before)
{
	uint64_t mine = cpu_ns() - before;
	uint64_t sum = 0;

	MPI_Reduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	return (double)sum;
}

/* ---- latency ------------------------------------------------------------ */

static void put(struct job *job, uint64_t number)
{
	payload_stamp(job->out, job->size, number);
	MPI_Send(job->out, (int)job->size, MPI_BYTE, !job->rank, TAG_DATA, MPI_COMM_WORLD);
}

static int get(struct job *job, uint64_t number)
{
	MPI_Recv(job->in, (int)job->size, MPI_BYTE, !job->rank, TAG_DATA, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	return payload_use(&job->options, job->in, job->size, 0, number);
}

static int answer(struct job *job, uint64_t first, uint64_t n)
{
	uint64_t i;

	for (i = first; i < first + n; i++) {
		if (get(job, i) < 0)
			return -1;
		put(job, i);
	}
	return 0;
}

static int ask(struct job *job, uint64_t first, uint64_t n)
{
	uint64_t before = clock_ns();
	uint64_t now, i;

	for (i = 0; i < n; i++) {
		put(job, first + i);
		if (get(job, first + i) < 0)
			return -1;
		now = clock_ns();
		trips[i] = (double)(now - before);
		before = now;
	}
	return 0;
}

static uint64_t agree(uint64_t n)
{
	MPI_Bcast(&n, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	return n;
}

static uint64_t choose(const struct job *job, double each_ns, uint64_t min, uint64_t max)
{
	double n = job->options.point_ms * (double)NSEC_PER_MSEC / (each_ns > 1 ? each_ns : 1);

	if (n < (double)min)
		return min;
	return n > (double)max ? max : (uint64_t)n;
}

/* 0, which stands for not known, if too few trips are beyond it to tell. */
static double tail(uint64_t n, double q)
{
	return (double)n * (1 - q) < 0.999 ? 0 : stats_quantile(trips, n, q);
}

static void evaluate(uint64_t n, struct measure *measure)
{
	double cost = clock_cost();
	uint64_t i;

	for (i = 0; i < n; i++)
		trips[i] = trips[i] > cost ? (trips[i] - cost) / 2 : 0;
	stats_sort(trips, n);
	measure->value = stats_quantile(trips, n, 0.5);
	measure->p90 = tail(n, 0.9);
	measure->p99 = tail(n, 0.99);
	measure->p999 = tail(n, 0.999);
	measure->p9999 = tail(n, 0.9999);
	measure->min = trips[0];
	measure->max = trips[n - 1];
	measure->n = n;
}

static int run_lat(struct job *job, struct measure *measure)
{
	uint64_t n, cpu;

	if ((job->rank ? answer(job, 1, WARM_UP) : ask(job, 1, WARM_UP)) < 0)
		return -1;
	n = agree(choose(job, stats_median(trips, WARM_UP), MIN_TRIPS, MAX_TRIPS));
	cpu = cpu_ns();
	if ((job->rank ? answer(job, 1 + WARM_UP, n) : ask(job, 1 + WARM_UP, n)) < 0)
		return -1;
	measure->cpu_ns = both_cpu_ns(cpu) / (double)(2 * n);
	if (!job->rank)
		evaluate(n, measure);
	return 0;
}

/* ---- streams ------------------------------------------------------------ */

static void take_credit(void)
{
	MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_CREDIT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_all(struct job *job, uint64_t first, uint64_t n)
{
	uint64_t i, credited = 0;
	unsigned char *buffer;
	uint32_t slot;

	for (i = 0; i < n; i++) {
		for (; i - credited >= job->count; credited += job->step)
			take_credit();
		slot = (uint32_t)(i % job->count);
		buffer = job->out + slot * job->stride;
		MPI_Wait(&job->requests[slot], MPI_STATUS_IGNORE);
		payload_stamp(buffer, job->size, first + i);
		MPI_Isend(buffer, (int)job->size, MPI_BYTE, 1, TAG_DATA, MPI_COMM_WORLD,
			  &job->requests[slot]);
	}
	for (slot = 0; slot < job->count; slot++)
		MPI_Wait(&job->requests[slot], MPI_STATUS_IGNORE);
	for (; n - credited >= job->step; credited += job->step)
		take_credit();
}

static void post(struct job *job, uint32_t slot)
{
	MPI_Irecv(job->in + slot * job->stride, (int)job->size, MPI_BYTE, 0, TAG_DATA,
		  MPI_COMM_WORLD, &job->requests[slot]);
}

static int take_all(struct job *job, uint64_t first, uint64_t n)
{
	uint32_t slot;
	uint64_t i;

	for (i = 0; i < n; i++) {
		slot = (uint32_t)(i % job->count);
		MPI_Wait(&job->requests[slot], MPI_STATUS_IGNORE);
		if (payload_use(&job->options, job->in + slot * job->stride, job->size,
				slot, first + i) < 0)
			return -1;
		if (i + job->count < n)
			post(job, slot);
		if (!((i + 1) % job->step))
			MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_CREDIT, MPI_COMM_WORLD);
	}
	return 0;
}

/* From the sender's beginning to the receiver's end; rank 0 gets the time. */
static int stream(struct job *job, uint64_t first, uint64_t n, uint64_t *ns)
{
	uint64_t begin, end = 0;
	uint32_t slot;
	int ret = 0;

	for (slot = 0; job->rank && slot < job->count && slot < n; slot++)
		post(job, slot);
	MPI_Barrier(MPI_COMM_WORLD);
	begin = clock_ns();
	if (job->rank) {
		ret = take_all(job, first, n);
		end = clock_ns();
		MPI_Send(&end, 1, MPI_UINT64_T, 0, TAG_DATA, MPI_COMM_WORLD);
		return ret;
	}
	send_all(job, first, n);
	MPI_Recv(&end, 1, MPI_UINT64_T, 1, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	*ns = end > begin ? end - begin : 1;
	return 0;
}

/* Two warm-ups: the first chooses how long the second is, that one the real one. */
static int run_stream(struct job *job, struct measure *measure)
{
	uint64_t warm = job->count < MIN_MESSAGES ? MIN_MESSAGES : job->count;
	uint32_t parts[] = { 8, 1 };
	uint64_t n = warm, first = 1, ns = 1, cpu;
	uint32_t i;

	for (i = 0; ; i++) {
		cpu = cpu_ns();
		if (stream(job, first, n, &ns) < 0)
			return -1;
		if (i == ARRAY_SIZE(parts))
			break;
		first += n;
		n = agree(choose(job, (double)ns / (double)n * parts[i], warm,
				 MAX_MESSAGES));
	}
	measure->n = n;
	measure->cpu_ns = both_cpu_ns(cpu) / (double)n;
	measure->value = (double)n * (double)NSEC_PER_SEC / (double)ns;
	return 0;
}

/* ---- setting up --------------------------------------------------------- */

static void print(const struct job *job, const struct measure *measure)
{
	printf("hamlyn-mpi %zu %llu %.3f %.3f", job->size, (unsigned long long)measure->n,
	       measure->value, measure->cpu_ns);
	printf(" %.3f %.3f %.3f %.3f %.3f %.3f\n", measure->min, measure->p90, measure->p99,
	       measure->p999, measure->p9999, measure->max);
}

static int run(struct job *job)
{
	struct measure measure = { 0 };

	if ((job->test == 'l' ? run_lat(job, &measure) : run_stream(job, &measure)) < 0)
		return -1;
	if (!job->rank)
		print(job, &measure);
	return 0;
}

/* As chan_prepare() chooses it for our own systems */
static int prepare(struct job *job)
{
	size_t room;
	uint32_t i;

	job->stride = (job->size + CHAN_ALIGN - 1) & ~((size_t)CHAN_ALIGN - 1);
	if (!job->stride)
		job->stride = CHAN_ALIGN;
	job->count = 1;
	if (job->test != 'l') {
		job->count = (uint32_t)(CHAN_WINDOW / job->stride);
		if (job->count < CHAN_MIN_COUNT)
			job->count = CHAN_MIN_COUNT;
		if (job->count > CHAN_MAX_COUNT)
			job->count = CHAN_MAX_COUNT;
	}
	job->step = (job->count + 3) / 4;
	room = (job->count * job->stride + 4095) & ~(size_t)4095;
	job->out = aligned_alloc(4096, room);
	job->in = aligned_alloc(4096, room);
	if (!job->out || !job->in)
		return fail("out of memory");
	/* Touched, so that no test pays for its pages */
	memset(job->in, 1, room);
	memset(job->out, 1, room);
	for (i = 0; i < job->count; i++)
		payload_fill(job->out + i * job->stride, job->size, i);
	for (i = 0; i < CHAN_MAX_COUNT; i++)
		job->requests[i] = MPI_REQUEST_NULL;
	return 0;
}

static int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) < 0 ?
		fail("cannot run on CPU %d", cpu) : 0;
}

static int parse(struct job *job, int argc, char **argv)
{
	if (argc != 8 || sscanf(argv[6], "%d,%d", &job->options.cpus[0],
				&job->options.cpus[1]) != 2)
		return fail("usage: pingpong lat|bw|rate SIZE MS TOUCH VERIFY CPU,CPU LIMIT-S");
	job->test = argv[1][0];
	job->size = strtoull(argv[2], NULL, 10);
	job->options.point_ms = (uint32_t)strtoul(argv[3], NULL, 10);
	job->options.touch = (enum perf_touch)strtoul(argv[4], NULL, 10);
	job->options.verify = *argv[5] == '1';
	job->options.timeout_s = (uint32_t)strtoul(argv[7], NULL, 10);
	if (job->size > PERF_MAX_SIZE || !strchr("lbr", job->test))
		return fail("a size from 0 to %u and lat, bw or rate", PERF_MAX_SIZE);
	return 0;
}

int main(int argc, char **argv)
{
	static struct job job;
	int ranks;

	/* MPI waits without end for a partner: the kernel ends us then. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2)
		fail("two processes are needed, not %d", ranks);
	if (ranks == 2 && !parse(&job, argc, argv)) {
		alarm(job.options.timeout_s + 1);
		if (!pin(job.options.cpus[job.rank]) && !prepare(&job) && !run(&job)) {
			MPI_Finalize();
			return 0;
		}
	}
	fprintf(stderr, "pingpong: %s\n", fail_text());
	MPI_Abort(MPI_COMM_WORLD, 1);
	return 1;
}
