// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random calls of the kernel device from several processes of several users
 * with several threads each, which pass descriptors to each other and are
 * stopped and killed at random instants. The kernel log is the first judge; at
 * the end all that the device counts must be what it was at the start.
 */
#include "fuzz_calls_end.h"

#include <getopt.h>

static void fuzz(int netlink, uint16_t family)
{
	struct thread killer = { .random = option.seed ^ 0x6b696c6c };
	int64_t start = ht_now_ns(), now, said = start, healed = start;
	unsigned int i;

	/* Before there is anybody to get it. */
	on(SIGUSR1, on_signal);
	for (i = 0; i < option.processes; i++)
		start_process(i, family);
	for (;;) {
		now = ht_now_ns();
		if (now - start > option.seconds * HT_SEC)
			break;
		if (now - said > 10 * HT_SEC) {
			print_totals(now - start);
			said = now;
		}
		if (now - healed > HT_SEC / 2) {
			heal(netlink, family, 0);
			healed = now;
		}
		if (option.killer)
			harass(&killer, now);
		reap_and_restart(family);
		ht_sleep_ns(2 * HT_MS);
	}
	for (i = 0; i < option.processes; i++)
		if (processes[i].pid > 0)
			kill(processes[i].pid, SIGCONT);
	check(end_processes(), "every process can be killed");
	print_totals(ht_now_ns() - start);
	print_errors();
	printf("# %llu processes ended, %llu of them by themselves\n",
	       (unsigned long long)ended, (unsigned long long)odd_ends);
}

/* All places are below what pipes and files get. */
static int make_shared(void)
{
	int pair[2], fd;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (shared == MAP_FAILED || fd < 0 || ftruncate(fd, CELL) ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	dup3(fd, FD_SHARED, O_CLOEXEC);
	dup3(pair[0], FD_GIVE, O_CLOEXEC);
	dup3(pair[1], FD_TAKE, O_CLOEXEC);
	close(fd);
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static void help(void)
{
	puts("Usage: fuzz_calls [--seed N] [--seconds N] [--processes N] [--threads N]\n"
	     "                  [--others N] [--kcov] [--trace] [--no-killer]\n"
	     "\n"
	     "Makes random calls of /dev/hamlyn0 and its netlink family, as root, from\n"
	     "several processes of several users, while a killer stops and kills them.\n"
	     "Then everything that the device counts must be what it was before. A tree\n"
	     "of its own (a virtual machine) is advised.\n"
	     "\n"
	     "  --seed N       the choices of each process are those of the last run\n"
	     "                 with that N (1)\n"
	     "  --seconds N    how long (60)\n"
	     "  --processes N  how many at a time (6)\n"
	     "  --threads N    of each process (3)\n"
	     "  --others N     somebody else uses the NICs 1 to N meanwhile: they are left\n"
	     "                 alone, and what is counted over all is not compared\n"
	     "  --kcov         keep and change programs that reached new code of the\n"
	     "                 module; needs a kernel with KCOV, a module built with it\n"
	     "                 and debugfs\n"
	     "  --trace        with all tracepoints of the driver; switching them takes\n"
	     "                 minutes on a busy machine\n"
	     "  --no-killer    processes live until the end\n"
	     "\n"
	     "Exit status: 0, 1 if a check failed, 2 for a wrong call, 4 if there is no\n"
	     "device, or no KCOV with --kcov (nothing was tested).");
}

static unsigned int number(const char *name, const char *text,
			   unsigned int least, unsigned int most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (!*text || *end || n < least || n > most) {
		fprintf(stderr, "fuzz_calls: --%s %s: must be %u to %u\n",
			name, text, least, most);
		exit(2);
	}
	return (unsigned int)n;
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 'n' },
		{ "processes", required_argument, NULL, 'p' },
		{ "threads", required_argument, NULL, 't' },
		{ "others", required_argument, NULL, 'o' },
		{ "kcov", no_argument, NULL, 'k' },
		{ "trace", no_argument, NULL, 'r' },
		{ "no-killer", no_argument, NULL, 'x' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			option.seed = number("seed", optarg, 0, UINT32_MAX);
			break;
		case 'n':
			option.seconds = number("seconds", optarg, 1, 86400);
			break;
		case 'p':
			option.processes = number("processes", optarg, 1,
						  MAX_PROCESSES);
			break;
		case 't':
			option.threads = number("threads", optarg, 1,
						MAX_THREADS);
			break;
		case 'o':
			option.others = number("others", optarg, 0,
					       MAX_OTHERS);
			break;
		case 'k':
			option.kcov = true;
			break;
		case 'r':
			option.trace = true;
			break;
		case 'x':
			option.killer = false;
			break;
		case 'h':
			help();
			exit(0);
		default:
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "fuzz_calls: what is \"%s\"? See --help\n",
			argv[optind]);
		exit(2);
	}
}

static void skip(const char *why)
{
	printf("ok - # SKIP %s\n0 passed, 0 failed, 1 skipped\n", why);
	exit(4);
}

int main(int argc, char **argv)
{
	struct figures start;
	uint64_t memory;
	uint16_t family;
	int netlink;

	parse(argc, argv);
	if (access("/dev/hamlyn0", R_OK | W_OK))
		skip("there is no /dev/hamlyn0");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (make_shared()) {
		perror("fuzz_calls: what all processes share");
		return 1;
	}
	if (option.kcov && (access(KCOV_FILE, R_OK | W_OK) ||
			    coverage_range(&shared->coverage)))
		skip("the kernel has no KCOV, or the module's place is secret");
	netlink = netlink_open(&family);
	if (netlink < 0) {
		fprintf(stderr, "fuzz_calls: netlink: %s\n",
			strerror(-netlink));
		return 1;
	}
	/* With tracepoints some things are done elsewhere. */
	if (option.trace)
		write_file(TRACE_SWITCH, "1");
	printf("# seed %llu\n", (unsigned long long)option.seed);
	memory = free_kib();
	if (figures_take(&start) || victim_open()) {
		fprintf(stderr, "fuzz_calls: the device does not work\n");
		return 1;
	}
	fuzz(netlink, family);
	if (option.trace)
		write_file(TRACE_SWITCH, "0");
	close(FD_GIVE);
	close(FD_TAKE);
	tidy(netlink, family, (uint32_t)start.of[F_NICS]);
	close(netlink);
	check(victim_whole(), "nothing was written beside the slot, nor without its key");
	victim_close();
	check(still_works(), "the device works");
	if (!option.others) {
		check_figures(&start);
		check_memory(memory);
	}
	check_depth();
	printf("%u passed, %u failed", passed, failed);
	if (skipped)
		printf(", %u skipped", skipped);
	printf("\n");
	return failed ? 1 : 0;
}
