// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every allocation and every copy to or from the user that a call makes fails,
 * one at a time: the call then fails as documented and leaves nothing behind,
 * or does its work all the same, and the next call works. Needs a kernel with
 * FAULT_INJECTION (failslab, fail_page_alloc, fail_usercopy) and debugfs.
 */
#include "fail_nth_maps.h"
#include "fail_nth_module.h"
#include "fail_nth_netlink.h"

#include <getopt.h>

static unsigned int passed, failed, points;

static void check(bool good, const char *what, const char *more)
{
	printf("%sok - %s%s\n", good ? "" : "not ", what, more);
	fflush(stdout);
	if (good)
		passed++;
	else
		failed++;
}

/* ---- one point ---- */

static bool is_good(const struct call *c, int ret)
{
	return c->good ? ret == c->good : ret >= 0;
}

/* By netlink the answer may be lost, or not be readable, whatever was done. */
static bool may_have_worked(const struct call *c, int ret)
{
	return c->question && (ret == -ENOBUFS || ret == -EFAULT);
}

static bool allowed(const struct call *c, int ret)
{
	return is_good(c, ret) || ret == -ENOMEM || ret == -EFAULT ||
	       may_have_worked(c, ret) || (c->error && ret == -c->error);
}

static bool complain(const struct call *c, unsigned int n, const char *what,
		     int ret)
{
	printf("# %s, point %u: %s (it returned %d)\n", c->name, n, what, ret);
	return false;
}

static int prepare(const struct call *c)
{
	int ret;

	env.call = c;
	ret = c->before ? c->before() : 0;
	if (ret >= 0 && c->question)
		ret = question_begin(c->question);
	return ret;
}

static void clean_up(const struct call *c)
{
	take_back();
	if (c->after)
		c->after();
}

/* Without a fault: it works, and is taken back. */
static bool run_plain(const struct call *c, unsigned int n)
{
	int ret = prepare(c);

	if (ret < 0)
		return complain(c, n, "what it needs cannot be made", ret);
	ret = c->act();
	clean_up(c);
	return is_good(c, ret) ||
	       complain(c, n, "without a fault it does not work", ret);
}

/* Sets @done when the call has no point number @n. */
static bool run_point(const struct call *c, unsigned int n,
		      const struct state *idle, bool *done)
{
	struct state start = *idle;
	const char *differs = NULL;
	bool good = true;
	int ret;

	ret = prepare(c);
	if ((c->before || c->question) && ret >= 0)
		ret = state_take(&start);
	if (ret < 0)
		return complain(c, n, "what it needs cannot be made", ret);
	arm(n);
	ret = c->act();
	*done = !disarm();
	if (*done && !is_good(c, ret))
		good = complain(c, n, "no fault, but it failed", ret);
	if (!allowed(c, ret))
		good = complain(c, n, "that errno is not documented", ret);
	if (!is_good(c, ret) && !may_have_worked(c, ret))
		differs = state_differs(&start);
	if (differs)
		good = complain(c, n, differs, ret);
	clean_up(c);
	return good;
}

/* ---- the sweep ---- */

static void sweep(const struct call *c)
{
	int64_t begin = ht_now_ns();
	bool done = false, good;
	const char *differs;
	struct state start;
	unsigned int n = 0;
	char text[48];

	/* Once first: pages of this program are there then. */
	good = run_plain(c, 0) && !state_take(&start);
	while (good && !done && n < MOST_POINTS) {
		good = run_point(c, ++n, &start, &done) && run_plain(c, n);
		differs = state_differs(&start);
		if (differs)
			good = complain(c, n, differs, 0);
	}
	n -= done;
	points += n;
	snprintf(text, sizeof(text), ": %u points, %lld ms", n,
		 (long long)(ht_now_ns() - begin) / HT_MS);
	check(good && done, c->name, text);
}

static void sweep_all(const struct call *calls, size_t n, const char *only)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((!only || strstr(calls[i].name, only)) &&
		    (!calls[i].faults_once || lasting_fd < 0))
			sweep(&calls[i]);
}

static void sweep_questions(const char *only)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(questions); i++) {
		struct call c = {
			.name = questions[i].name,
			.before = questions[i].before,
			.act = act_question,
			.after = after_question,
			.question = &questions[i],
		};

		sweep_all(&c, 1, only);
	}
}

/* Another namespace to move a NIC to. */
static int make_netns(void)
{
	env.home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (env.home < 0 || unshare(CLONE_NEWNET))
		return -errno;
	env.netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return env.netns < 0 || setns(env.home, CLONE_NEWNET) ? -errno : 0;
}

static int make_env(void)
{
	int ret;

	/* Behind it there is room for what is moved. */
	env.own = mmap(NULL, BIG + 64 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (env.own == MAP_FAILED)
		return -errno;
	ret = party_open(&env.p);
	if (!ret)
		ret = ht_raw_area_alloc(env.p.fd, 4 * PAGE, &env.spare, NULL);
	if (!ret)
		ret = make_netns();
	if (ret)
		return ret;
	env.listener = listen_to_events();
	return env.listener < 0 ? env.listener : find_context();
}

static void free_env(void)
{
	ht_raw_id(env.p.fd, HAMLYN_IOC_AREA_REMOVE, env.spare.area);
	party_close(&env.p);
	close(env.home);
	close(env.netns);
	close(env.listener);
}

static int skip(const char *why)
{
	printf("ok - # SKIP %s\n0 passed, 0 failed, 1 skipped\n", why);
	return 4;
}

static int sweep_calls(const char *only)
{
	struct figures start, now;
	enum figure differs;
	int ret;

	if (access("/dev/hamlyn0", R_OK | W_OK))
		return skip("there is no /dev/hamlyn0");
	figures_take(&start);
	ret = make_env();
	if (ret) {
		fprintf(stderr, "fail_nth: preparing: %s\n", strerror(-ret));
		return 1;
	}
	sweep_all(object_calls, ARRAY_SIZE(object_calls), only);
	sweep_all(map_calls, ARRAY_SIZE(map_calls), only);
	sweep_questions(only);
	free_env();
	differs = figures_settle(&start, &now, ht_patience_ns());
	if (differs != FIGURES)
		printf("# other than before: %s\n", figure_names[differs]);
	check(differs == FIGURES, "everything is as it was", "");
	return 0;
}

static int sweep_module(const char *path, const char *args)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int64_t begin = ht_now_ns();
	unsigned int n;
	char text[320];
	bool good;

	if (fd < 0) {
		perror(path);
		return 1;
	}
	n = sweep_loading(fd, args, &good);
	close(fd);
	points += n;
	snprintf(text, sizeof(text), "%.256s: %u points, %lld ms", args, n,
		 (long long)(ht_now_ns() - begin) / HT_MS);
	check(good, "insmod ", text);
	return 0;
}

static void check_leaks(void)
{
	int found = find_leaks();

	if (found < 0)
		printf("# kmemleak is off\n");
	else
		check(!found, "kmemleak finds nothing", "");
}

/* ---- main ---- */

/*
 * On its way back to us the kernel writes to glibc's rseq area, of its own accord
 * when we were moved or interrupted. Behind a fork that page is to be copied: a
 * fault there is SIGSEGV, and not for what a call has done.
 */
static void begin_without_rseq(char **argv)
{
	static const char tunables[] = "GLIBC_TUNABLES";

	if (getenv(tunables) || setenv(tunables, "glibc.pthread.rseq=0", 1))
		return;
	execv("/proc/self/exe", argv);
	printf("# with rseq: %s\n", strerror(errno));
}

static void help(void)
{
	puts("Usage: fail_nth [--lasting] [--only WORD] [--no-kmemleak]\n"
	     "                [--module FILE [ARGS]]\n"
	     "\n"
	     "Lets each allocation and each copy from and to the user that a call of\n"
	     "/dev/hamlyn0, its mappings and its netlink family makes fail, one at a time,\n"
	     "as root. Needs a kernel with fault injection.\n"
	     "\n"
	     "  --lasting      from the fault on all of the task's allocations fail: what is\n"
	     "                 tried again, or in another way, fails in the end\n"
	     "  --only WORD    only calls with that word in their name\n"
	     "  --module FILE  load and remove that module instead, with parameters ARGS;\n"
	     "                 it must not be loaded already\n"
	     "  --no-kmemleak  do not look for leaked memory at the end\n"
	     "\n"
	     "Exit status: 0, 1 if a check failed, 2 for a wrong call, 4 if the kernel has\n"
	     "no fault injection or there is no device (nothing was tested).");
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "lasting", no_argument, NULL, 'l' },
		{ "only", required_argument, NULL, 'o' },
		{ "module", required_argument, NULL, 'm' },
		{ "no-kmemleak", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	const char *only = NULL, *module = NULL, *args = "";
	bool leaks = true, lasting = false;
	int c, ret;

	begin_without_rseq(argv);
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'l':
			lasting = true;
			break;
		case 'o':
			only = optarg;
			break;
		case 'm':
			module = optarg;
			break;
		case 'k':
			leaks = false;
			break;
		case 'h':
			help();
			return 0;
		default:
			return 2;
		}
	}
	if (module && optind < argc)
		args = argv[optind++];
	if (optind < argc) {
		fprintf(stderr, "fail_nth: what is \"%s\"? See --help\n",
			argv[optind]);
		return 2;
	}
	if (prepare_kernel() || (lasting && prepare_lasting()))
		return skip("the kernel has no fault injection");
	ret = module ? sweep_module(module, args) : sweep_calls(only);
	if (ret)
		return ret;
	if (leaks)
		check_leaks();
	printf("# %u points\n", points);
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
