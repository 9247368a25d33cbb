// SPDX-License-Identifier: GPL-2.0-only
/*
 * Can a user stop the others by losing the processor at the wrong moment? A locker of the
 * lowest priority makes calls; a trigger on its processor interrupts it at random, and hogs
 * keep the processor from it. If that was in a section that others wait for, what an innocent
 * does on another processor takes as long as the hogs like. Also from one host to another,
 * where workers and softirqs do a part of it. Kernel device only; two processors.
 */
#include "kselftest_harness.h"
#include "hostile.h"
#include "hosts.h"
#include "calls.h"

#include <pthread.h>

#define HOGS		20
/*
 * For so long the hogs run, unless the innocent is done: if it is done well before that, it
 * has not waited for who is frozen. How long it takes by itself is the machine's affair (an
 * end of a namespace beside other work, emulated: 2 s; otherwise 0.2 to 0.5 s), and printed.
 */
#define FREEZE_MS	4000
#define LIMIT_MS	(FREEZE_MS * 3 / 4)
#define RUN_MS		2500	/* of one kind, beside what is late */
#define RUNS		8	/* of one kind, whatever they take */
#define MOST_MS		32000	/* of one kind */
#define CAUGHT		2	/* times until it is certain */

/**
 * struct seen - what became of the innocent's doings
 * @runs: how often
 * @failed: the errno of one that went wrong
 * @late: how often it took longer than it may
 * @worst: the longest time, in ms
 * @ran: of which it ran
 * @ready: and waited for a processor. In the rest it waited for something else
 */
struct seen {
	unsigned int runs;
	int failed;
	unsigned int late;
	int64_t worst;
	int64_t ran;
	int64_t ready;
};

/* What attackers and innocents share, in one page. */
struct shared {
	int burn;		/* hogs run */
	int busy;		/* the locker is in a call */
	int calls;		/* that it has ended */
	int quit;
	int inside;		/* the locker is in its container */
	int moved;		/* and so is its NIC */
	uint32_t nic;
	unsigned int tries;
	struct seen seen;
};

static struct shared *sh;

static int get(const int *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void set(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static int64_t ms_since(int64_t begin)
{
	return (ht_now_ns() - begin) / 1000000;
}

static void sleep_us(long us)
{
	struct timespec t = { .tv_nsec = us * 1000 };

	nanosleep(&t, NULL);
}

/* ---- what can be done to a NIC ---- */

/* One user's objects, and how it asks. */
struct user {
	struct party p;
	int netlink;
	uint16_t family;
	struct genl g;		/* in a container */
	uint32_t nic;
};

static int begin(struct user *u)
{
	memset(u, 0, sizeof(*u));
	u->netlink = netlink_open(&u->family);
	if (u->netlink < 0)
		return u->netlink;
	return party_open(&u->p);
}

static int dump(struct user *u, uint8_t command)
{
	struct request r;

	request_init(&r, u->family, command, NLM_F_DUMP);
	return ask(u->netlink, &r, NULL, NULL);
}

static int alloc(struct user *u)
{
	struct hamlyn_area_alloc arg = { .size = sizeof(arg), .length = PAGE };
	int ret = ht_raw(u->p.fd, HAMLYN_IOC_AREA_ALLOC, &arg);

	return ret ? ret : ht_raw_id(u->p.fd, HAMLYN_IOC_AREA_REMOVE, arg.area);
}

static int slot(struct user *u)
{
	struct hamlyn_slot_create arg;
	int ret = ht_raw_slot_create(u->p.fd, u->p.area.area, PAGE, HAMLYN_NONE,
				     &arg);

	return ret ? ret : ht_raw_id(u->p.fd, HAMLYN_IOC_SLOT_DESTROY, arg.slot);
}

static int terminus(struct user *u)
{
	struct hamlyn_terminus_create arg = {
		.size = sizeof(arg),
		.entries = 2,
		.entry_size = 128,
	};
	int ret = ht_raw(u->p.fd, HAMLYN_IOC_TERMINUS_CREATE, &arg);

	return ret ? ret : ht_raw_id(u->p.fd, HAMLYN_IOC_TERMINUS_DESTROY,
				     arg.terminus);
}

static int watch(struct user *u)
{
	struct hamlyn_watch arg = {
		.size = sizeof(arg),
		.nq = u->p.nq.arg.nq,
		.host = u->p.query.host,
		.slot = u->p.slot.slot,
		.key = u->p.slot.key,
	};
	int ret = ht_raw(u->p.fd, HAMLYN_IOC_WATCH, &arg);

	return ret ? ret : ht_raw_id(u->p.fd, HAMLYN_IOC_UNWATCH, arg.watch);
}

static int new_key(struct user *u)
{
	return rekey(&u->p, 0);
}

/* A name of one's own. */
static int listen_own(struct user *u)
{
	char text[32];

	snprintf(text, sizeof(text), "freeze-%d", getpid());
	return raw_listen(u->p.fd, text);
}

static int call_own(struct user *u)
{
	char text[32];

	snprintf(text, sizeof(text), "freeze-%d", getpid());
	return raw_call(u->p.fd, u->p.query.host, text);
}

static int take_name(struct user *u)
{
	int fd = listen_own(u);

	return fd < 0 ? fd : close(fd);
}

/* A call that is given up, to a name that stays. */
static int call_name(struct user *u)
{
	static int name;
	int call;

	if (!name)
		name = listen_own(u);
	call = name < 0 ? name : call_own(u);
	return call < 0 ? call : close(call);
}

/* A call that is answered. */
static int name(struct user *u)
{
	int fd = listen_own(u), call, ret = -ENOMSG;
	struct raw raw;

	if (fd < 0)
		return fd;
	call = call_own(u);
	if (call < 0)
		ret = call;
	else if (raw_read(fd, &raw) > 0)
		ret = raw_answer(fd, raw.from.number);
	if (!ret && raw_read(call, &raw) <= 0)
		ret = -ENOMSG;
	if (call >= 0)
		close(call);
	close(fd);
	return ret;
}

/* Of the NIC's own objects, whatever has no kind of its own. */
static int others(struct user *u)
{
	struct hamlyn_nq_create nq = { .size = sizeof(nq), .entries = 2 };
	int ret = ht_raw(u->p.fd, HAMLYN_IOC_NQ_CREATE, &nq), fd, index;

	if (!ret)
		ret = ht_raw_id(u->p.fd, HAMLYN_IOC_NQ_DESTROY, nq.nq);
	fd = ret ? ret : party_make_ticket(&u->p, 0, 8);
	if (fd < 0)
		return fd;
	index = party_import_ticket(&u->p, fd);
	close(fd);
	if (index >= 0) {
		struct hamlyn_ticket_drop drop = {
			.size = sizeof(drop),
			.terminus = u->p.terminus.arg.terminus,
			.index = (uint32_t)index,
		};

		index = ht_raw(u->p.fd, HAMLYN_IOC_TICKET_DROP, &drop);
	}
	return index;
}

/* ---- to another host ---- */

static uint32_t far_host;

/* There is no such slot: it is told at once, as soon as the other host has been asked. */
static int ask_watch(struct user *u, uint32_t *watch)
{
	struct hamlyn_watch arg = {
		.size = sizeof(arg), .nq = u->p.nq.arg.nq, .host = far_host,
		.slot = 1000, .key = 1,
	};
	int ret = ht_raw(u->p.fd, HAMLYN_IOC_WATCH, &arg);

	*watch = arg.watch;
	return ret;
}

static int watch_far(struct user *u)
{
	uint32_t watch;
	int ret = ask_watch(u, &watch);

	return ret ? ret : ht_raw_id(u->p.fd, HAMLYN_IOC_UNWATCH, watch);
}

/* It gives up at once, so there may be as many as it can have. */
static int call_far(struct user *u)
{
	int call = raw_call(u->p.fd, far_host, "nobody");

	if (call >= 0)
		close(call);
	return call >= 0 || call == -EDQUOT || call == -EUSERS ? 0 : call;
}

static int send_far(struct user *u)
{
	const struct hamlyn_trb trb = { .host = far_host, .slot = 1000, .key = 1, .length = 8 };

	return post(&u->p.terminus, &trb) ? -EIO : 0;
}

/* All three, and what comes of them. */
static int reach(struct user *u)
{
	struct hamlyn_nq_entry entry;
	struct ht_poll poll;
	struct raw raw = { .from = { .error = 0 } };
	uint32_t watch;
	int ret = send_far(u) ?: ask_watch(u, &watch), call;

	if (ret)
		return ret;
	call = raw_call(u->p.fd, far_host, "nobody");
	if (call < 0)
		return call;
	if (raw_read(call, &raw) <= 0 || raw.from.error != ENOENT)
		ret = -ENOMSG;
	close(call);
	for (ht_poll_begin(&poll); !ht_raw_recv(&u->p.nq, &entry); )
		if (!ht_poll_more(&poll))
			return -ETIMEDOUT;
	return ret;
}

static int open_close(struct user *u)
{
	int fd = ht_raw_open();

	(void)u;
	return fd < 0 ? fd : close(fd);
}

static int list_nics(struct user *u)
{
	return dump(u, HAMLYN_NL_CMD_NIC_GET);
}

static int list_own(struct user *u)
{
	return dump(u, HAMLYN_NL_CMD_CONTEXT_GET) ?:
	       dump(u, HAMLYN_NL_CMD_NAME_GET) ?:
	       dump(u, HAMLYN_NL_CMD_SLOT_GET) ?:
	       dump(u, HAMLYN_NL_CMD_TERMINUS_GET) ?:
	       dump(u, HAMLYN_NL_CMD_USER_GET);
}

/* As root of a container, of the NIC that was moved there. */
static int administrate(struct user *u)
{
	return nic_set(&u->g, u->nic, HAMLYN_A_STATE, HAMLYN_NIC_DOWN) ?:
	       nic_set(&u->g, u->nic, HAMLYN_A_STATE, HAMLYN_NIC_UP);
}

/* ---- the innocent ---- */

/* All that is asked of it, as another user, from opening to closing. */
static int live(void)
{
	struct user u;
	struct hamlyn_trb trb;
	int ret = begin(&u);

	if (!ret)
		ret = alloc(&u) ?: slot(&u) ?: terminus(&u) ?: watch(&u) ?:
		      new_key(&u) ?: name(&u) ?: others(&u) ?: list_nics(&u) ?:
		      list_own(&u);
	trb = (struct hamlyn_trb) {
		.host = u.p.query.host,
		.slot = u.p.slot.slot,
		.key = u.p.slot.key,
		.length = 8,
	};
	if (!ret && post(&u.p.terminus, &trb))
		ret = -EIO;
	party_close(&u.p);
	close(u.netlink);
	return ret;
}

static int live_far(void)
{
	struct user u;
	int ret = begin(&u);

	if (!ret)
		ret = reach(&u);
	party_close(&u.p);
	close(u.netlink);
	return ret;
}

/* An administrator looks at everybody's. */
static int list_all(void)
{
	struct user u = { .nic = 0 };
	int ret;

	u.netlink = netlink_open(&u.family);
	if (u.netlink < 0)
		return u.netlink;
	ret = list_own(&u) ?: dump(&u, HAMLYN_NL_CMD_AREA_GET);
	close(u.netlink);
	return ret;
}

/* A namespace begins, with a NIC, and ends: until the NIC is gone. */
static int end_namespace(void)
{
	char path[32];
	pid_t pid = ht_fork();
	struct genl g;
	int64_t begin;
	int nic;

	if (!pid) {
		if (unshare(CLONE_NEWNET) ||
		    genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
			_exit(255);
		nic = nic_new(&g);
		_exit(nic < 0 ? 255 : nic);
	}
	nic = pid < 0 ? 255 : ht_reap(pid);
	if (nic < 0 || nic == 255)
		return -ENODEV;
	snprintf(path, sizeof(path), "/dev/hamlyn%d", nic);
	begin = ht_now_ns();
	while (!access(path, F_OK) && ms_since(begin) < 60000)
		sleep_us(500);
	return 0;
}

/**
 * struct kind - of an attack
 * @act: what the locker does
 * @innocent: what is not to be held up
 * @root: the innocent is root
 * @container: the locker is root of a container, with a NIC of its own
 */
struct kind {
	int (*act)(struct user *u);
	int (*innocent)(void);
	bool root;
	bool container;
};

/* ---- the attack ---- */

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void hog(unsigned int i)
{
	while (!get(&sh->quit)) {
		while (!get(&sh->burn) && !get(&sh->quit))
			sleep_us(1000 + 100 * i);
		while (get(&sh->burn) && !get(&sh->quit))
			;
	}
}

/*
 * A call is interrupted once: it may be in a section of the kernel's RCU, and of one that lasts for
 * 21 s, by several times, the kernel warns.
 */
static void trigger(void)
{
	unsigned int random = 7;
	int call;

	while (!get(&sh->quit)) {
		random = random * 1103515245 + 12345;
		sleep_us(50 + (random >> 16) % 600);
		if (!get(&sh->busy))
			continue;
		sh->tries++;
		call = get(&sh->calls);
		set(&sh->burn, 1);
		while (get(&sh->burn) && !get(&sh->quit))
			;
		while (get(&sh->calls) == call && !get(&sh->quit))
			sleep_us(100);
	}
}

static int begin_inside(struct user *u)
{
	int ret = enter_container();

	if (ret)
		return ret;
	set(&sh->inside, 1);
	while (!get(&sh->moved) && !get(&sh->quit))
		sleep_us(1000);
	u->nic = sh->nic;
	return genl_open(&u->g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION);
}

/* As root, for the locker: a NIC into its container. */
static int give_nic(pid_t locker)
{
	int64_t begin = ht_now_ns();
	struct genl g;
	int nic;

	while (!get(&sh->inside))
		if (ms_since(begin) > 10000 || waitpid(locker, NULL, WNOHANG))
			return -ESRCH;
	if (genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return -ENOENT;
	nic = nic_new(&g);
	if (nic < 0)
		return nic;
	sh->nic = (uint32_t)nic;
	nic = nic_move(&g, sh->nic, locker);
	close(g.fd);
	set(&sh->moved, 1);
	return nic;
}

static int lock(const struct kind *kind)
{
	int (*act)(struct user *u) = kind->act;
	struct sched_param none = { 0 };
	struct user u = { .nic = 0 };
	int ret = kind->container ? begin_inside(&u) : begin(&u);

	if (!ret)
		ret = act(&u);
	if (ret || sched_setscheduler(0, SCHED_IDLE, &none))
		return 1;
	while (!get(&sh->quit)) {
		set(&sh->busy, 1);
		act(&u);
		set(&sh->busy, 0);
		set(&sh->calls, get(&sh->calls) + 1);
	}
	return 0;
}

static pid_t start(const struct kind *kind, unsigned int uid, unsigned int i)
{
	pid_t pid = ht_fork();

	if (pid)
		return pid;
	if (become(uid))
		_exit(99);
	pin(1);
	if (i == HOGS + 1)
		_exit(lock(kind));
	if (i == HOGS)
		trigger();
	else
		hog(i);
	_exit(0);
}

/* ---- how long it takes ---- */

/* Lets the processor go when it has been kept for long enough. */
static void *release(void *arg)
{
	int64_t began = 0;

	(void)arg;
	while (!get(&sh->quit)) {
		sleep_us(2000);
		if (!get(&sh->burn))
			began = 0;
		else if (!began)
			began = ht_now_ns();
		else if (ms_since(began) > FREEZE_MS * ht_scale())
			set(&sh->burn, 0);
	}
	return NULL;
}

/* What a slow machine takes from a task is not what others take: the kernel tells them apart. */
static void processor_ms(int64_t ms[2])
{
	long long ran = 0, ready = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	/* On kernels that do not tell it is 0. */
	if (f && fscanf(f, "%lld %lld", &ran, &ready) < 0)
		ran = 0;
	if (f)
		fclose(f);
	ms[0] = ran / 1000000;
	ms[1] = ready / 1000000;
}

/* Return: how long it took, in ms, if it was too long, or 0. */
static int64_t one_run(struct seen *seen, int (*innocent)(void))
{
	int64_t begin = ht_now_ns(), took, before[2], after[2];
	int ret;

	/* Until the locker has lost its processor in a call. */
	while (!get(&sh->burn) && ms_since(begin) < 20)
		sleep_us(50);
	processor_ms(before);
	begin = ht_now_ns();
	ret = innocent();
	took = ms_since(begin);
	processor_ms(after);
	set(&sh->burn, 0);
	seen->runs++;
	if (ret)
		seen->failed = ret;
	if (took > seen->worst) {
		seen->worst = took;
		seen->ran = after[0] - before[0];
		seen->ready = after[1] - before[1];
	}
	if (took <= LIMIT_MS * ht_scale())
		return 0;
	seen->late++;
	return took;
}

static int measure(struct seen *seen, int (*innocent)(void), pid_t locker)
{
	int64_t begin = ht_now_ns(), end = begin + MOST_MS * ht_scale() * 1000000;
	pthread_t thread;
	int64_t late;
	int status;

	if (pthread_create(&thread, NULL, release, NULL))
		return -EAGAIN;
	while ((seen->runs < RUNS || ms_since(begin) < RUN_MS) && ht_now_ns() < end &&
	       seen->late < CAUGHT && !seen->failed) {
		late = one_run(seen, innocent);
		begin += late * 1000000;
	}
	/* It must not have left before it was told to. */
	status = waitpid(locker, NULL, WNOHANG) ? -ECHILD : 0;
	set(&sh->quit, 1);
	set(&sh->burn, 0);
	pthread_join(thread, NULL);
	return status;
}

static int freeze(struct seen *seen, const struct kind *kind, unsigned int uid)
{
	pid_t pids[HOGS + 2];
	unsigned int i;
	int ret;

	for (i = 0; i < HOGS + 2; i++)
		pids[i] = start(kind, uid, i);
	pin(0);
	ret = kind->container ? give_nic(pids[HOGS + 1]) : 0;
	if (!ret && !kind->root)
		ret = become(uid + 1);
	if (!ret)
		ret = measure(seen, kind->innocent, pids[HOGS + 1]);
	set(&sh->quit, 1);
	for (i = 0; i < HOGS + 2; i++)
		waitpid(pids[i], NULL, 0);
	return ret;
}

/* The innocent is another user, in a process of its own. 0, or the step that went wrong. */
static int attack(const struct kind *kind)
{
	unsigned int uid = somebody(1);
	struct seen *seen = &sh->seen;
	pid_t pid;
	int ret;

	memset(sh, 0, sizeof(*sh));
	pid = ht_fork();
	if (!pid)
		_exit(-freeze(seen, kind, uid));
	ret = pid < 0 ? 99 : ht_reap(pid);
	fprintf(stderr,
		"# %u runs, %u interruptions: %lld ms (%lld ran, %lld ready), %u late, %d\n",
		seen->runs, sh->tries, (long long)seen->worst, (long long)seen->ran,
		(long long)seen->ready, seen->late, seen->failed);
	return ret;
}

FIXTURE(freeze)
{
	struct hosts hosts;
};

FIXTURE_VARIANT(freeze)
{
	struct kind kind;
	bool far;	/* from one host to another */
};

#define KIND(name, what, whose)						\
FIXTURE_VARIANT_ADD(freeze, name)					\
{									\
	.kind = { .act = what, .innocent = live, .root = whose },	\
}

KIND(alloc, alloc, false);
KIND(slot, slot, false);
KIND(terminus, terminus, false);
KIND(watch, watch, false);
KIND(rekey, new_key, false);
KIND(name, take_name, false);
KIND(call, call_name, false);
KIND(others, others, false);
KIND(open, open_close, false);
KIND(nics, list_nics, false);
KIND(dumps, list_own, false);

#define FAR(name, what)							\
FIXTURE_VARIANT_ADD(freeze, name)					\
{									\
	.kind = { .act = what, .innocent = live_far }, .far = true,	\
}

FAR(watch_far, watch_far);
FAR(call_far, call_far);
FAR(send_far, send_far);

FIXTURE_VARIANT_ADD(freeze, lists_of_all_beside_slot)
{
	.kind = { .act = slot, .innocent = list_all, .root = true },
};

FIXTURE_VARIANT_ADD(freeze, lists_of_all_beside_terminus)
{
	.kind = { .act = terminus, .innocent = list_all, .root = true },
};

FIXTURE_VARIANT_ADD(freeze, admin_of_a_container)
{
	.kind = { .act = administrate, .innocent = live, .container = true },
};

FIXTURE_VARIANT_ADD(freeze, end_of_a_namespace_beside_alloc)
{
	.kind = { .act = alloc, .innocent = end_namespace, .root = true },
};

FIXTURE_VARIANT_ADD(freeze, end_of_a_namespace_beside_nics)
{
	.kind = { .act = list_nics, .innocent = end_namespace, .root = true },
};

FIXTURE_VARIANT_ADD(freeze, end_of_a_namespace_beside_admin)
{
	.kind = {
		.act = administrate, .innocent = end_namespace, .root = true,
		.container = true,
	},
};

FIXTURE_SETUP(freeze)
{
	if (variant->far && !geteuid()) {
		ASSERT_EQ(0, hosts_begin(&self->hosts));
		nic_use(self->hosts.host[0].nic);
		far_host = self->hosts.host[1].id;
	}
	sh = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)sh);
}

FIXTURE_TEARDOWN(freeze)
{
	munmap(sh, PAGE);
	if (far_host)
		EXPECT_EQ(0, hosts_end(&self->hosts));
}

TEST_F(freeze, who_loses_the_processor_stops_nobody)
{
	if (geteuid() || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "needs root and two processors");
	EXPECT_EQ(0, attack(&variant->kind));
	EXPECT_EQ(0, sh->seen.failed);
	EXPECT_LT(0, sh->tries);
	/* One may be the machine's; whoever is caught at all is caught again. */
	EXPECT_GT(CAUGHT, sh->seen.late);
	EXPECT_TRUE(sh->seen.runs >= RUNS || sh->seen.late >= CAUGHT);
}

TEST_HARNESS_MAIN
