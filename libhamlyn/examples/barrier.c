// SPDX-License-Identifier: MIT
/*
 * barrier: processes that meet at a barrier, again and again. The first one creates
 * it and passes the others their seeds, each through a pipe of its own.
 */
#include <hamlyn/barrier.h>

#include "example.h"

const char *const program = "barrier";

#define MOST	64

struct options {
	const char *device;
	int processes;
	unsigned long rounds;
};

static const char usage[] =
"usage: barrier [-d DEVICE] [-p PROCESSES] [-n ROUNDS]\n"
"\n"
"Forks processes that wait for each other at a barrier, and prints how many rounds\n"
"per second there are.\n"
"  -d DEVICE     /dev/hamlynN or shm:NAME (default: the library's choice)\n"
"  -p PROCESSES  how many, 1 to 64 (default 4)\n"
"  -n ROUNDS     how often they meet (default 1000)\n";

static void meet(struct h_dev *dev, struct h_barrier *b, unsigned long rounds)
{
	while (rounds--)
		must(dev, h_barrier_wait(b, 30 * SECOND), "barrier");
}

static int run_other(const struct options *o, int from)
{
	struct h_barrier *b;
	struct h_manager *m;
	struct h_dev *dev;
	struct h_seed seed;

	/* It is less than what a pipe takes and gives at once. */
	if (read(from, &seed, sizeof(seed)) != sizeof(seed))
		die("no seed from the first one");
	m = open_manager(o->device, &dev, 0);
	must(dev, h_barrier_join(m, &seed, &b), "join");
	meet(dev, b, 1 + o->rounds);
	must(dev, h_barrier_destroy(b), "leave");
	close_manager(m, dev);
	return 0;
}

static void send_seeds(struct h_dev *dev, const struct h_barrier *b,
		       const struct options *o, const int *to)
{
	struct h_seed seed;
	int i;

	for (i = 1; i < o->processes; i++) {
		must(dev, h_barrier_seed(b, (uint32_t)i, &seed), "seed");
		if (write(to[i], &seed, sizeof(seed)) != sizeof(seed))
			die("cannot pass a seed: %s", strerror(errno));
		close(to[i]);
	}
}

static void run_first(const struct options *o, const int *to)
{
	struct h_barrier *b;
	struct h_manager *m;
	struct h_dev *dev;
	int64_t begin;

	m = open_manager(o->device, &dev, 0);
	must(dev, h_barrier_create(m, (uint32_t)o->processes, &b), "create");
	send_seeds(dev, b, o, to);
	/* Now all are there. */
	meet(dev, b, 1);
	begin = now_ns();
	meet(dev, b, o->rounds);
	printf("%d processes: %.0f rounds per second\n", o->processes,
	       (double)o->rounds * (double)SECOND / (double)(now_ns() - begin));
	must(dev, h_barrier_destroy(b), "destroy");
	close_manager(m, dev);
}

/* Before a device is open. Returns the child's status, or -1 here. */
static int fork_others(const struct options *o, int *to)
{
	int fds[2], i;
	pid_t pid;

	for (i = 1; i < o->processes; i++) {
		if (pipe(fds))
			die("cannot make a pipe: %s", strerror(errno));
		pid = fork();
		if (pid < 0)
			die("cannot fork: %s", strerror(errno));
		if (!pid) {
			/* Else nobody would be told that the first one is gone. */
			close(fds[1]);
			while (--i)
				close(to[i]);
			return run_other(o, fds[0]);
		}
		close(fds[0]);
		to[i] = fds[1];
	}
	return -1;
}

static void parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	int opt;

	while ((opt = getopt_long(argc, argv, "d:p:n:h", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			o->device = optarg;
			break;
		case 'p':
			o->processes = (int)number("-p", optarg, 1, MOST);
			break;
		case 'n':
			o->rounds = number("-n", optarg, 1, 100000000);
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (argc != optind) {
		fputs(usage, stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct options o = { .processes = 4, .rounds = 1000 };
	int to[MOST], ret;

	parse(argc, argv, &o);
	ret = fork_others(&o, to);
	if (ret >= 0)
		return ret;
	run_first(&o, to);
	return reap(o.processes - 1) ? 0 : 1;
}
