// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random calls of the kernel device from several processes of several users
 * with several threads each, which pass descriptors to each other and are
 * stopped and killed at random instants. The kernel log is the first judge; at
 * the end all that the device counts must be what it was at the start.
 */
#include "fuzz_calls_figures.h"
#include "fuzz_calls_kcov.h"
#include "fuzz_calls_objects.h"
#include "fuzz_calls_process.h"
#include "fuzz_calls_traffic.h"

#include <getopt.h>
#include <pthread.h>
#include <sys/resource.h>

static struct {
	uint64_t seed;
	unsigned int seconds;
	unsigned int processes;
	unsigned int threads;
	bool kcov;
	bool killer;
	bool trace;
} option = {
	.seed = 1,
	.seconds = 60,
	.processes = 6,
	.threads = 3,
	.killer = true,
};

static const struct {
	void (*run)(struct thread *t);
	uint32_t weight;
} ops[] = {
	{ op_query, 2 }, { op_area_add, 10 }, { op_area_alloc, 12 },
	{ op_area_remove, 3 }, { op_nq_create, 10 }, { op_nq_destroy, 2 },
	{ op_slot_create, 16 }, { op_slot_destroy, 2 }, { op_slot_rekey, 4 },
	{ op_terminus_create, 12 }, { op_terminus_destroy, 2 },
	{ op_terminus_bind, 12 }, { op_kick, 4 }, { op_wait, 4 },
	{ op_stats, 3 }, { op_watch, 6 }, { op_unwatch, 2 },
	{ op_ticket_create, 6 }, { op_ticket_import, 8 },
	{ op_ticket_drop, 3 }, { op_audit, 3 }, { op_nic_set, 1 },
	{ op_explain, 2 }, { op_garbage, 3 }, { op_fsync, 2 },
	{ op_open, 5 }, { op_close, 2 }, { op_dup, 2 }, { op_pass, 4 },
	{ op_take, 4 }, { op_fork, 2 }, { op_mmap, 12 }, { op_munmap, 2 },
	{ op_mremap, 2 }, { op_mprotect, 2 }, { op_madvise, 4 }, { op_own, 3 },
	{ op_poke, 8 }, { op_poll, 2 }, { op_epoll, 3 }, { op_send, 60 },
	{ op_consume, 12 }, { op_metadata, 6 }, { op_netlink, 8 },
	{ op_rlimit, 1 }, { op_parameter, 1 },
};

/* ---- a thread ---- */

static void run_op(struct thread *t)
{
	static uint32_t total;
	uint32_t sum = 0, n;
	size_t i;

	if (!total)
		for (i = 0; i < ARRAY_SIZE(ops); i++)
			total += ops[i].weight;
	n = below(t, total);
	for (i = 0; i < ARRAY_SIZE(ops) - 1; i++) {
		sum += ops[i].weight;
		if (n < sum)
			break;
	}
	ops[i].run(t);
}

static void run_ops(struct thread *t, unsigned int n)
{
	while (n--)
		run_op(t);
}

static void on_fault(int number)
{
	struct thread *t = self;

	if (!t || !t->guarded)
		_exit(100 + number);
	t->guarded = 0;
	siglongjmp(t->jump, 1);
}

static void on_signal(int number)
{
	(void)number;
}

/* Each operation has a number of its own, so that a program is repeatable. */
static void run_program(struct thread *t, const struct program *p)
{
	uint64_t next = t->random;
	uint32_t i;

	if (t->kcov)
		kcov_reset(t);
	t->focus = p->ops[0] & 1 ? 1 + (p->ops[0] >> 1) % CONTEXTS : 0;
	for (i = 0; i < p->count; i++) {
		t->random = p->ops[i];
		t->tame = false;
		run_op(t);
	}
	t->focus = 0;
	t->random = next;
	if (t->kcov && kcov_news(t))
		keep(p);
}

static void *thread_main(void *arg)
{
	struct program p = { 0 };
	struct thread *t = arg;

	self = t;
	t->netlink = -1;
	new_socket(t);
	if (option.kcov && kcov_start(t))
		_exit(90);
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		choose_program(t, &p);
		run_program(t, &p);
	}
	return NULL;
}

/* ---- a process ---- */

static void *map_anew(void *at, size_t length, int prot, int flags, int fd)
{
	void *p = mmap(at, length, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		_exit(91);
	return p;
}

/* The cells, and the pages with something wrong about them. */
static void make_memory(void)
{
	int rw = PROT_READ | PROT_WRITE;
	char *p;
	int fd;

	p = map_anew(NULL, (CELLS + 1) * CELL, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	arena = (char *)(((uintptr_t)p + CELL - 1) & ~(CELL - 1));
	scribbled = map_anew(NULL, PAGE, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	fd = memfd_create("page", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, PAGE))
		_exit(92);
	behind_unwritable = map_anew(NULL, PAGE, rw, MAP_SHARED, fd);
	unwritable = map_anew(NULL, PAGE, PROT_READ, MAP_SHARED, fd);
	close(fd);
	p = map_anew(NULL, 2 * PAGE, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	page_end = p + PAGE;
	mprotect(page_end, PAGE, PROT_NONE);
}

static void make_descriptors(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	dup3(fd, FD_NETNS, O_CLOEXEC);
	close(fd);
	fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	dup3(fd, FD_MEM, O_CLOEXEC);
	close(fd);
	fd = epoll_create1(EPOLL_CLOEXEC);
	dup3(fd, FD_EPOLL, O_CLOEXEC);
	close(fd);
}

static void on(int number, void (*handler)(int))
{
	struct sigaction action = {
		.sa_handler = handler,
		/* It is left by a jump. */
		.sa_flags = SA_NODEFER,
	};

	sigaction(number, &action, NULL);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	close(fd);
}

static unsigned int user_of(unsigned int process)
{
	static const unsigned int users[] = { 0, 1001, 1002, 1001, 1003, 0 };

	return users[process % ARRAY_SIZE(users)];
}

/* Enough to begin with. */
static void fill_places(struct thread *t)
{
	unsigned int i;

	for (i = 0; i < CONTEXTS - 2; i++) {
		t->focus = i + 1;
		op_open(t);
		op_area_alloc(t);
		op_area_alloc(t);
		op_nq_create(t);
		op_slot_create(t);
		op_terminus_create(t);
		op_terminus_bind(t);
	}
	t->focus = 0;
}

static void process_main(unsigned int process, uint64_t seed, uint16_t family)
{
	struct rlimit memlock = { 8 << 20, 8 << 20 };
	static struct thread threads[MAX_THREADS];
	unsigned int i, uid = user_of(process);
	pthread_t ids[MAX_THREADS];

	setpgid(0, 0);
	write_file("/proc/self/oom_score_adj", "1000");
	on(SIGSEGV, on_fault);
	on(SIGBUS, on_fault);
	signal(SIGCHLD, SIG_IGN);
	make_memory();
	for (i = 0; option.kcov && i < option.threads; i++)
		if (kcov_open((int)i))
			_exit(93);
	setrlimit(RLIMIT_MEMLOCK, &memlock);
	if (uid && become(uid))
		_exit(94);
	prctl(PR_SET_DUMPABLE, 1);
	make_descriptors();
	for (i = 0; i < option.threads; i++) {
		threads[i].random = seed + (uint64_t)i * 0x1234567;
		threads[i].number = (int)i;
		threads[i].family = family;
		threads[i].root = !uid;
	}
	fill_places(&threads[0]);
	for (i = 1; i < option.threads; i++)
		if (pthread_create(&ids[i], NULL, thread_main, &threads[i]))
			_exit(95);
	thread_main(&threads[0]);
	_exit(0);
}

/* ---- the parent: processes come and go ---- */

static struct {
	pid_t pid;
	uint32_t generation;
	bool stopped;
} processes[MAX_PROCESSES];

static uint64_t killed, ended, odd_ends;

/* Seeds of a process: the same again with the same --seed. */
static uint64_t seed_of(unsigned int process)
{
	uint64_t s = option.seed * 1000003 + process;

	s = ht_random(&s) + processes[process].generation;
	return ht_random(&s);
}

static int start_process(unsigned int i, uint16_t family)
{
	pid_t pid;

	processes[i].generation++;
	processes[i].stopped = false;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		process_main(i, seed_of(i), family);
	}
	processes[i].pid = pid;
	return pid < 0 ? -errno : 0;
}

/* What the killer did is expected; what it did not is worth a word. */
static void note_end(unsigned int i, int status)
{
	ended++;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return;
	odd_ends++;
	if (odd_ends < 20)
		printf("# process %u (generation %u) ended by itself: %s %d\n",
		       i, processes[i].generation,
		       WIFSIGNALED(status) ? "signal" : "status",
		       WIFSIGNALED(status) ? WTERMSIG(status) :
					     WEXITSTATUS(status));
}

static void reap_and_restart(uint16_t family)
{
	unsigned int i;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (i = 0; i < option.processes; i++) {
			if (processes[i].pid != pid)
				continue;
			note_end(i, status);
			start_process(i, family);
		}
	}
}

/* At @now; about one is killed a second. */
static void harass(struct thread *t, int64_t now)
{
	static int64_t next;
	unsigned int i = below(t, option.processes);
	pid_t pid = processes[i].pid;

	if (pid <= 0)
		return;
	if (processes[i].stopped) {
		kill(pid, SIGCONT);
		processes[i].stopped = false;
	}
	if (now > next) {
		kill(pid, SIGKILL);
		killed++;
		next = now + below(t, 2000) * HT_MS;
		return;
	}
	switch (below(t, 100)) {
	case 1 ... 4:
		kill(pid, SIGSTOP);
		processes[i].stopped = true;
		break;
	case 5 ... 20:
		kill(pid, SIGUSR1);
		break;
	}
}

/* With children and all: true once nobody is left. */
static bool end_processes(void)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	unsigned int i;
	pid_t pid;

	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < option.processes; i++)
		if (processes[i].pid > 0)
			kill(-processes[i].pid, SIGKILL);
	for (;;) {
		pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0)
			return errno == ECHILD;
		if (!pid && ht_now_ns() > end)
			return false;
		if (!pid)
			ht_sleep_ns(10 * HT_MS);
	}
}

/* ---- the parent: a victim ---- */

#define VICTIM_PAGES	16
#define VICTIM_BASE	(PAGE + 100)
#define VICTIM_LENGTH	(2 * PAGE)
#define SECRET_BASE	(8 * PAGE)

/* Two slots: of one everybody knows the key, of the other one nobody does. */
static struct {
	int fd;
	unsigned char *data;
} victim;

static int victim_slot(uint32_t area, uint64_t base, struct notice *n)
{
	struct hamlyn_slot_create arg = {
		.size = sizeof(arg),
		.area = area,
		.base = base,
		.length = VICTIM_LENGTH,
		.meta_area = HAMLYN_NONE,
		.nq = HAMLYN_NONE,
	};
	int ret = ht_raw(victim.fd, HAMLYN_IOC_SLOT_CREATE, &arg);

	n->slot = arg.slot;
	n->length = arg.length;
	n->key = arg.key;
	return ret;
}

static int victim_open(void)
{
	struct hamlyn_area_alloc area;
	struct hamlyn_query query;
	struct notice *n = shared->board;
	int ret;

	victim.fd = ht_raw_open();
	if (victim.fd < 0)
		return victim.fd;
	ret = ht_raw_query(victim.fd, &query);
	if (!ret)
		ret = ht_raw_area_alloc(victim.fd, VICTIM_PAGES * PAGE, &area,
					(void **)&victim.data);
	if (!ret)
		ret = victim_slot(area.area, VICTIM_BASE, &n[0]);
	if (!ret)
		ret = victim_slot(area.area, SECRET_BASE, &n[1]);
	n[0].host = query.host;
	n[1].host = query.host;
	n[1].key ^= 0x5555;
	if (!ret)
		memset(victim.data, HT_GUARD, VICTIM_PAGES * PAGE);
	return ret;
}

static bool victim_whole(void)
{
	size_t behind = VICTIM_BASE + VICTIM_LENGTH;
	size_t all = VICTIM_PAGES * PAGE;

	return ht_match_byte(victim.data, VICTIM_BASE, HT_GUARD) ==
	       VICTIM_BASE &&
	       ht_match_byte(victim.data + behind, all - behind, HT_GUARD) ==
	       all - behind;
}

static void victim_close(void)
{
	munmap(victim.data, VICTIM_PAGES * PAGE);
	close(victim.fd);
}

/* ---- the parent: what is printed ---- */

static void print_totals(int64_t ns)
{
	uint64_t by_errno[ERRNOS] = { 0 }, all = 0;
	unsigned int k, e;

	for (k = 0; k < KINDS; k++) {
		for (e = 0; e < ERRNOS; e++) {
			by_errno[e] += shared->calls[k][e];
			all += shared->calls[k][e];
		}
	}
	printf("# %llds: %llu calls, %llu killed, %llu sends good, %llu messages read;",
	       (long long)(ns / HT_SEC), (unsigned long long)all,
	       (unsigned long long)killed,
	       (unsigned long long)shared->completed,
	       (unsigned long long)shared->taken);
	if (option.kcov)
		printf(" %u places, %u programs;", shared->coverage.pcs,
		       shared->coverage.programs);
	printf(" ok %llu", (unsigned long long)by_errno[0]);
	for (e = 1; e < ERRNOS; e++)
		if (by_errno[e])
			printf(" %s %llu", strerrorname_np((int)e) ?: "other",
			       (unsigned long long)by_errno[e]);
	printf("\n# of each kind, good/all:");
	for (k = 0; k < KINDS; k++) {
		for (all = 0, e = 0; e < ERRNOS; e++)
			all += shared->calls[k][e];
		printf(" %s %llu/%llu", kind_names[k],
		       (unsigned long long)shared->calls[k][0],
		       (unsigned long long)all);
	}
	printf("\n");
	fflush(stdout);
}

static void print_errors(void)
{
	unsigned int k, e;

	for (k = 0; k < KINDS; k++) {
		printf("# %s:", kind_names[k]);
		for (e = 0; e < ERRNOS; e++)
			if (shared->calls[k][e])
				printf(" %s %llu", e ? strerrorname_np((int)e) ?:
				       "other" : "ok",
				       (unsigned long long)shared->calls[k][e]);
		printf("\n");
	}
}

static unsigned int passed, failed, skipped;

static void check(bool good, const char *what)
{
	printf("%sok - %s\n", good ? "" : "not ", what);
	fflush(stdout);
	if (good)
		passed++;
	else
		failed++;
}

/* ---- the parent: the end ---- */

#define TRACE_SWITCH	"/sys/kernel/tracing/events/hamlyn/enable"

/* NICs that were made go, users' limits too, and NIC 0 is as it should be. */
static void collect_limited(const struct nlmsghdr *h, void *arg)
{
	uint32_t *users = arg;

	if (attr_of(h, HAMLYN_A_LIMITS) && users[0] < 63) {
		users[++users[0]] = attr_u32(attr_of(h, HAMLYN_A_UID));
		users[64 + users[0]] = attr_u32(attr_of(h, HAMLYN_A_NIC));
	}
}

static void tidy(int fd, uint16_t family, uint32_t first)
{
	uint32_t nic, i, users[128] = { 0 };
	struct request r;

	for (nic = first; nic < 256; nic++) {
		request_init(&r, family, HAMLYN_NL_CMD_NIC_DEL, NLM_F_ACK);
		request_u32(&r, HAMLYN_A_NIC, nic);
		ask(fd, &r, NULL, NULL);
	}
	for (nic = 0; nic < first; nic++)
		heal(fd, family, nic);
	figures_dump(fd, family, HAMLYN_NL_CMD_USER_GET, collect_limited,
		     users);
	for (i = 1; i <= users[0]; i++) {
		request_init(&r, family, HAMLYN_NL_CMD_LIMIT_SET, NLM_F_ACK);
		request_u32(&r, HAMLYN_A_NIC, users[64 + i]);
		request_u32(&r, HAMLYN_A_UID, users[i]);
		ask(fd, &r, NULL, NULL);
	}
}

static bool still_works(void)
{
	struct hamlyn_trb trb;
	struct party p;
	bool good;

	if (party_open(&p))
		return false;
	trb = to_party(&p);
	good = !post(&p.terminus, &trb) && came(&p);
	party_close(&p);
	return good;
}

/* Nothing of RLIMIT_MEMLOCK is used up: all of it can be wired. */
static int wire_all(void *arg)
{
	struct rlimit limit = { 64 * PAGE, 64 * PAGE };
	struct hamlyn_area_add add = {
		.size = sizeof(add),
		.length = 64 * PAGE,
	};
	void *p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = ht_raw_open();

	(void)arg;
	add.addr = (uintptr_t)p;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	return -ht_raw(fd, HAMLYN_IOC_AREA_ADD, &add);
}

static void check_users(void)
{
	unsigned int uid;
	int ret;

	for (uid = 1001; uid <= 1003; uid++) {
		ret = as(uid, wire_all, NULL);
		if (ret)
			printf("# user %u: %d\n", uid, ret);
		check(!ret, "a user's RLIMIT_MEMLOCK is all free again");
	}
}

static void check_figures(const struct figures *start)
{
	struct figures now;
	unsigned int i;

	figures_settle(start, &now, ht_patience_ns());
	for (i = 0; i < FIGURES; i++)
		if (start->of[i] != now.of[i])
			printf("# %s: %llu at the start, %llu now\n",
			       figure_names[i],
			       (unsigned long long)start->of[i],
			       (unsigned long long)now.of[i]);
	for (i = 0; i < FIGURES; i++)
		check(start->of[i] == now.of[i], figure_names[i]);
}

/* Fewer than that, on a slow machine, tell nothing about the fuzzer. */
#define ENOUGH_CALLS	100000

static uint64_t all_calls(void)
{
	uint64_t all = 0;
	unsigned int k, e;

	for (k = 0; k < KINDS; k++)
		for (e = 0; e < ERRNOS; e++)
			all += shared->calls[k][e];
	return all;
}

/* A run of some length reaches everything, or the fuzzer is worth little. */
static void check_depth(void)
{
	unsigned int k, never = 0;

	if (all_calls() < ENOUGH_CALLS) {
		printf("ok - # SKIP too few calls to say that it gets deep\n");
		skipped++;
		return;
	}
	for (k = 0; k < KINDS; k++) {
		if (k == K_GARBAGE || shared->calls[k][0])
			continue;
		printf("# %s never worked\n", kind_names[k]);
		never++;
	}
	check(!never, "every kind of call worked now and then");
	check(shared->completed > 100, "messages were sent");
	check(shared->taken > 10, "and received");
	if (option.kcov)
		check(shared->coverage.pcs > 0, "code of the module was seen");
}

static uint64_t free_kib(void)
{
	write_file("/proc/sys/vm/drop_caches", "3");
	return proc_number("/proc/meminfo", "MemAvailable");
}

/* Some of it stays with the kernel's caches, however often they are emptied. */
static uint64_t tolerated_kib(void)
{
	return (16 << 10) + proc_number("/proc/meminfo", "MemTotal") / 32;
}

static void check_memory(uint64_t start)
{
	int64_t end = ht_now_ns() + 20 * HT_SEC;
	uint64_t now = free_kib();

	while (now + tolerated_kib() < start && ht_now_ns() < end) {
		ht_sleep_ns(HT_SEC);
		now = free_kib();
	}
	printf("# %llu KiB available at the start, %llu now\n",
	       (unsigned long long)start, (unsigned long long)now);
	check(now + tolerated_kib() >= start, "the kernel's memory is back");
}

/* ---- the parent ---- */


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
	     "                  [--kcov] [--trace] [--no-killer]\n"
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
	check_figures(&start);
	check_users();
	check(still_works(), "the device works");
	check_memory(memory);
	check_depth();
	printf("%u passed, %u failed", passed, failed);
	if (skipped)
		printf(", %u skipped", skipped);
	printf("\n");
	return failed ? 1 : 0;
}
