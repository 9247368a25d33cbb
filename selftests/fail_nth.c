// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every allocation and every copy to or from the user that a call makes fails,
 * one at a time: the call then fails as documented and leaves nothing behind,
 * or does its work all the same, and the next call works. Needs a kernel with
 * FAULT_INJECTION (failslab, fail_page_alloc, fail_usercopy) and debugfs.
 */
#include "fuzz_calls_figures.h"

#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MOST_POINTS	5000	/* of one call */
#define BIG		(700 * PAGE)	/* to be wired in more than one go */

static struct {
	struct party p;
	struct hamlyn_area_alloc spare;	/* for what takes an area */
	char *own;			/* BIG bytes of this process */
	char *mapped;
	int fd;				/* what a call made */
	uint32_t id;
	struct genl {
		int fd;
		uint16_t family;
		struct request r;
	} genl;
	uint32_t context;
	pid_t child;
	int netns;
} env;

/* ---- arming ---- */

static int nth_fd = -1;

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Allocations that may wait fail too, and nobody is told at the console. */
static int prepare_kernel(void)
{
	static const char *const files[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
	};
	char path[96];
	size_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s",
			 files[i][0]);
		ret = write_text(path, files[i][1]);
		if (ret)
			return ret;
	}
	write_text("/sys/kernel/debug/fail_usercopy/verbose", "0");
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return nth_fd < 0 ? -errno : 0;
}

static void arm(unsigned int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", n), tries;

	/* What is left from before may make this write fail, but once only. */
	for (tries = 0; tries < 3; tries++)
		if (pwrite(nth_fd, text, (size_t)length, 0) == length)
			return;
	_exit(3);
}

/* Did the point that was armed come? Reading that may be one itself. */
static bool disarm(void)
{
	char text[16] = "";
	ssize_t n = pread(nth_fd, text, sizeof(text) - 1, 0);

	if (n > 0)
		arm(0);
	return n > 0 && atoi(text) == 0;
}

/* ---- figures, of this process too ---- */

struct state {
	struct figures f;
	uint64_t pinned;
	uint64_t locked;
	unsigned int fds;
};

static unsigned int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void state_own(struct state *s)
{
	s->pinned = proc_number("/proc/self/status", "VmPin");
	s->locked = proc_number("/proc/self/status", "VmLck");
	s->fds = count_fds();
}

static int state_take(struct state *s)
{
	state_own(s);
	return figures_take(&s->f);
}

/* NULL, or what is not as it was. */
static const char *state_differs(const struct state *start)
{
	struct state now;
	enum figure differs;

	differs = figures_settle(&start->f, &now.f, 10 * HT_SEC);
	state_own(&now);
	if (differs != FIGURES)
		return figure_names[differs];
	if (now.pinned != start->pinned)
		return "VmPin";
	if (now.locked != start->locked)
		return "VmLck";
	if (now.fds != start->fds)
		return "open descriptors";
	return NULL;
}

/* ---- what is called ---- */

/**
 * struct call - a call that is made to fail
 * @name: what it is
 * @before: makes what it needs, each time anew; or NULL
 * @act: the call: 0 or more, or a negative errno
 * @after: takes back all of it, whether it worked or not; or NULL
 * @good: what it returns when nothing fails; 0 stands for 0 or more
 * @errors: what it may return when something does, beside ENOMEM and EFAULT;
 *	0 ends the list
 * @dump: HAMLYN_NL_CMD_* of a dump that it asks for; or 0
 */
struct call {
	const char *name;
	int (*before)(void);
	int (*act)(void);
	void (*after)(void);
	int good;
	int errors[4];
	uint8_t dump;
};

static int do_ioctl(unsigned long request, void *arg)
{
	return ht_raw(env.p.fd, request, arg);
}

static int destroy(unsigned long request, uint32_t id)
{
	return ht_raw_id(env.p.fd, request, id);
}

/* open */

static int act_open(void)
{
	env.fd = ht_raw_open();
	return env.fd;
}

static void after_fd(void)
{
	if (env.fd >= 0)
		close(env.fd);
	env.fd = -1;
}

/* Others: no object is made. */

static int act_query(void)
{
	return ht_raw_query(env.p.fd, &env.p.query);
}

static int act_explain(void)
{
	struct hamlyn_explain arg = { .size = sizeof(arg) };

	return do_ioctl(HAMLYN_IOC_EXPLAIN, &arg);
}

static int stats_of(uint32_t kind, uint32_t id)
{
	struct hamlyn_stats arg = {
		.size = sizeof(arg),
		.kind = kind,
		.id = id,
	};

	return do_ioctl(HAMLYN_IOC_STATS, &arg);
}

static int act_stats_nic(void)
{
	return stats_of(HAMLYN_STATS_NIC, 0);
}

static int act_stats_slot(void)
{
	return stats_of(HAMLYN_STATS_SLOT, env.p.slot.slot);
}

static int act_stats_terminus(void)
{
	return stats_of(HAMLYN_STATS_TERMINUS, env.p.terminus.arg.terminus);
}

static int act_audit(void)
{
	static struct hamlyn_audit_entry entries[64];
	struct hamlyn_audit arg = {
		.size = sizeof(arg),
		.count = ARRAY_SIZE(entries),
		.entries = (uintptr_t)entries,
	};

	return do_ioctl(HAMLYN_IOC_AUDIT, &arg);
}

static int act_nic_set(void)
{
	struct hamlyn_nic_set arg = {
		.size = sizeof(arg),
		.flags = HAMLYN_NIC_SET_STATE,
		.state = HAMLYN_NIC_DOWN,
	};
	int ret = do_ioctl(HAMLYN_IOC_NIC_SET, &arg);

	if (ret)
		return ret;
	arg.state = HAMLYN_NIC_UP;
	return do_ioctl(HAMLYN_IOC_NIC_SET, &arg);
}

static void after_nic_set(void)
{
	set_nic(HAMLYN_A_STATE, 0);
}

static int act_wait(void)
{
	struct hamlyn_wait arg = {
		.size = sizeof(arg),
		.nq = env.p.nq.arg.nq,
		.position = env.p.nq.control->consumer,
		.deadline_ns = ht_now_ns() + HT_MS,
	};

	return do_ioctl(HAMLYN_IOC_WAIT, &arg);
}

static int act_rekey(void)
{
	return rekey(&env.p, 0);
}

static void after_rekey(void)
{
	rekey(&env.p, 0);
}

/* areas */

static int add_area(size_t length, uint32_t flags)
{
	struct hamlyn_area_add arg = {
		.size = sizeof(arg),
		.flags = flags,
		.addr = (uintptr_t)env.own,
		.length = length,
	};
	int ret = do_ioctl(HAMLYN_IOC_AREA_ADD, &arg);

	env.id = ret ? HAMLYN_NONE : arg.area;
	return ret;
}

static int act_area_add(void)
{
	return add_area(PAGE, 0);
}

static int act_area_add_big(void)
{
	return add_area(BIG, 0);
}

static int act_area_add_readonly(void)
{
	return add_area(20 * PAGE, HAMLYN_AREA_READONLY);
}

static int alloc_area(size_t length, uint32_t flags)
{
	struct hamlyn_area_alloc arg = {
		.size = sizeof(arg),
		.flags = flags,
		.length = length,
	};
	int ret = do_ioctl(HAMLYN_IOC_AREA_ALLOC, &arg);

	env.id = ret ? HAMLYN_NONE : arg.area;
	return ret;
}

static int act_area_alloc(void)
{
	return alloc_area(3 * PAGE, 0);
}

static int act_area_alloc_huge(void)
{
	return alloc_area(2 << 20, HAMLYN_AREA_HUGE);
}

static void after_area(void)
{
	if (env.id != HAMLYN_NONE)
		destroy(HAMLYN_IOC_AREA_REMOVE, env.id);
	env.id = HAMLYN_NONE;
}

static int act_area_remove(void)
{
	return destroy(HAMLYN_IOC_AREA_REMOVE, env.id);
}

/* NQs */

static int act_nq_create(void)
{
	struct hamlyn_nq_create arg = { .size = sizeof(arg), .entries = 256 };
	int ret = do_ioctl(HAMLYN_IOC_NQ_CREATE, &arg);

	env.id = ret ? HAMLYN_NONE : arg.nq;
	return ret;
}

static void after_nq(void)
{
	if (env.id != HAMLYN_NONE)
		destroy(HAMLYN_IOC_NQ_DESTROY, env.id);
	env.id = HAMLYN_NONE;
}

static int act_nq_destroy(void)
{
	return destroy(HAMLYN_IOC_NQ_DESTROY, env.id);
}

/* slots */

static int act_slot_create(void)
{
	struct hamlyn_slot_create arg = {
		.size = sizeof(arg),
		.mode = HAMLYN_SLOT_PARANOID,
		.area = env.p.area.area,
		.length = PAGE,
		.meta_area = env.spare.area,
		.meta_count = 4,
		.nq = env.p.nq.arg.nq,
	};
	int ret = do_ioctl(HAMLYN_IOC_SLOT_CREATE, &arg);

	env.id = ret ? HAMLYN_NONE : arg.slot;
	return ret;
}

static void after_slot(void)
{
	if (env.id != HAMLYN_NONE)
		destroy(HAMLYN_IOC_SLOT_DESTROY, env.id);
	env.id = HAMLYN_NONE;
}

static int act_slot_destroy(void)
{
	return destroy(HAMLYN_IOC_SLOT_DESTROY, env.id);
}

/* termini */

static int act_terminus_create(void)
{
	struct hamlyn_terminus_create arg = {
		.size = sizeof(arg),
		.entries = 64,
		.entry_size = 512,
	};
	int ret = do_ioctl(HAMLYN_IOC_TERMINUS_CREATE, &arg);

	env.id = ret ? HAMLYN_NONE : arg.terminus;
	return ret;
}

static void after_terminus(void)
{
	if (env.id != HAMLYN_NONE)
		destroy(HAMLYN_IOC_TERMINUS_DESTROY, env.id);
	env.id = HAMLYN_NONE;
}

static int act_terminus_destroy(void)
{
	return destroy(HAMLYN_IOC_TERMINUS_DESTROY, env.id);
}

static int act_bind(void)
{
	return ht_raw_bind(env.p.fd, env.p.terminus.arg.terminus, 0,
			   env.spare.area, 0, PAGE);
}

static void after_bind(void)
{
	ht_raw_bind(env.p.fd, env.p.terminus.arg.terminus, 0, HAMLYN_NONE, 0,
		    0);
}

/* With a message to send; a fault does not concern the message. */
static int before_message(void)
{
	struct hamlyn_trb *entry = ht_raw_entry(&env.p.terminus);
	struct hamlyn_trb trb = to_party(&env.p);

	memcpy(entry, &trb, sizeof(trb));
	h__store_release(&entry->sequence, ++env.p.terminus.producer);
	env.p.terminus.published = env.p.terminus.producer;
	return 0;
}

static int act_kick(void)
{
	int ret = ioctl(env.p.fd, HAMLYN_IOC_KICK,
			(unsigned long)env.p.terminus.arg.terminus);

	return ret < 0 ? -errno : 0;
}

static int act_fsync(void)
{
	return fsync(env.p.fd) ? -errno : 0;
}

static void after_message(void)
{
	int status;

	ht_raw_done(&env.p.terminus, env.p.terminus.producer - 1, &status);
	while (came(&env.p))
		;
}

/* watches */

static int watch(uint64_t key)
{
	struct hamlyn_watch arg = {
		.size = sizeof(arg),
		.host = env.p.query.host,
		.slot = env.p.slot.slot,
		.key = key,
		.nq = env.p.nq.arg.nq,
	};
	int ret = do_ioctl(HAMLYN_IOC_WATCH, &arg);

	env.id = ret ? HAMLYN_NONE : arg.watch;
	return ret;
}

static int act_watch(void)
{
	return watch(env.p.slot.key);
}

static int act_watch_gone(void)
{
	return watch(~env.p.slot.key);
}

static void after_watch(void)
{
	if (env.id != HAMLYN_NONE)
		destroy(HAMLYN_IOC_UNWATCH, env.id);
	env.id = HAMLYN_NONE;
	while (came(&env.p))
		;
}

static int act_unwatch(void)
{
	return destroy(HAMLYN_IOC_UNWATCH, env.id);
}

/* tickets */

static int act_ticket_create(void)
{
	struct hamlyn_ticket_create arg = {
		.size = sizeof(arg),
		.slot = env.p.slot.slot,
	};
	int ret = do_ioctl(HAMLYN_IOC_TICKET_CREATE, &arg);

	env.fd = ret ? -1 : arg.fd;
	return ret;
}

static int act_ticket_import(void)
{
	struct hamlyn_ticket_import arg = {
		.size = sizeof(arg),
		.terminus = env.id,
		.fd = env.fd,
	};

	return do_ioctl(HAMLYN_IOC_TICKET_IMPORT, &arg);
}

/* A terminus without a key table yet. */
static int before_ticket_import(void)
{
	int ret = act_ticket_create();

	return ret ? ret : act_terminus_create();
}

/* And one whose table is full. */
static int before_ticket_import_more(void)
{
	int ret = before_ticket_import(), i;

	for (i = 0; i < 16 && !ret; i++)
		ret = act_ticket_import();
	return ret;
}

static int act_ticket_drop(void)
{
	struct hamlyn_ticket_drop arg = {
		.size = sizeof(arg),
		.terminus = env.id,
	};

	return do_ioctl(HAMLYN_IOC_TICKET_DROP, &arg);
}

static void after_ticket(void)
{
	after_fd();
	after_terminus();
}

/* ---- mappings ---- */

static int map(uint64_t offset, uint64_t length, int prot, int flags)
{
	void *p = mmap(NULL, length, prot, MAP_SHARED | flags, env.p.fd,
		       (off_t)offset);

	env.mapped = p == MAP_FAILED ? NULL : p;
	return env.mapped ? 0 : -errno;
}

static int act_mmap_area(void)
{
	return map(env.spare.mmap_offset, env.spare.length,
		   PROT_READ | PROT_WRITE, 0);
}

static int act_mmap_ring(void)
{
	return map(env.p.nq.arg.ring_offset, env.p.nq.arg.ring_length,
		   PROT_READ, 0);
}

static int act_mmap_control(void)
{
	return map(env.p.nq.arg.control_offset, env.p.nq.arg.control_length,
		   PROT_READ | PROT_WRITE, 0);
}

static int act_mmap_wq(void)
{
	return map(env.p.terminus.arg.wq_offset, env.p.terminus.arg.wq_length,
		   PROT_READ | PROT_WRITE, 0);
}

static int act_mmap_status(void)
{
	return map(env.p.terminus.arg.status_offset,
		   env.p.terminus.arg.status_length, PROT_READ, 0);
}

static void after_map(void)
{
	if (env.mapped)
		munmap(env.mapped, env.spare.length);
	env.mapped = NULL;
}

static int before_huge(void)
{
	return act_area_alloc_huge();
}

/* Mapped page by page, or as one, when it is touched. */
static int act_mmap_huge(void)
{
	int ret = map(1ULL << 56 | (uint64_t)env.id << 32, 2 << 20,
		      PROT_READ | PROT_WRITE, MAP_POPULATE);

	return ret;
}

static void after_huge(void)
{
	if (env.mapped)
		munmap(env.mapped, 2 << 20);
	env.mapped = NULL;
	after_area();
}

/* One mapping becomes three. */
static int act_split(void)
{
	return munmap(env.mapped + PAGE, PAGE) ? -errno : 0;
}

/* Behind what is wired. */
static char *elsewhere(void)
{
	return env.own + BIG + PAGE;
}

static int act_move(void)
{
	void *to = mremap(env.mapped, env.spare.length, env.spare.length,
			  MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere());

	if (to == MAP_FAILED)
		return -errno;
	env.mapped = to;
	return 0;
}

/* No hole is left there: the next mapping would be made in it. */
static void after_move(void)
{
	if (env.mapped == elsewhere())
		env.mapped = mmap(elsewhere(), env.spare.length, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
				  0);
	else
		after_map();
	env.mapped = NULL;
}

static int act_fork(void)
{
	env.child = fork();
	if (!env.child)
		_exit(0);
	return env.child < 0 ? -errno : 0;
}

static void after_fork(void)
{
	if (env.child > 0)
		waitpid(env.child, NULL, 0);
	env.child = 0;
	after_map();
}

/* ---- waiting ---- */

static int act_poll(void)
{
	struct pollfd p = { .fd = env.p.fd, .events = POLLIN };

	return poll(&p, 1, 1) < 0 ? -errno : 0;
}

static int before_epoll(void)
{
	env.fd = epoll_create1(EPOLL_CLOEXEC);
	return env.fd < 0 ? -errno : 0;
}

static int act_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(env.fd, EPOLL_CTL_ADD, env.p.fd, &event) ? -errno : 0;
}

/* ---- netlink ---- */

static void note_context(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *pid = attr_of(h, HAMLYN_A_PID);

	(void)arg;
	if (attr_u32(pid) == (uint32_t)getpid())
		env.context = attr_u32(attr_of(h, HAMLYN_A_CONTEXT));
}

/* A socket for each call: what is left in it would confuse the next one. */
static int open_netlink(void)
{
	struct timeval limit = { .tv_sec = 5 };

	env.genl.fd = netlink_open(&env.genl.family);
	if (env.genl.fd < 0)
		return env.genl.fd;
	setsockopt(env.genl.fd, SOL_SOCKET, SO_RCVTIMEO, &limit,
		   sizeof(limit));
	return 0;
}

static int begin(uint8_t command, uint16_t flags)
{
	int ret = open_netlink();

	request_init(&env.genl.r, env.genl.family, command, flags);
	return ret;
}

static int begin_nic(uint8_t command, uint32_t nic)
{
	int ret = begin(command, NLM_F_ACK);

	request_u32(&env.genl.r, HAMLYN_A_NIC, nic);
	return ret;
}

static void put_nest(uint16_t type, const uint16_t *types, size_t n,
		     size_t width)
{
	struct request *r = &env.genl.r;
	uint64_t value = 1000;
	struct nlattr *nest;
	size_t i;

	nest = request_attr(r, type | NLA_F_NESTED, "", 0);
	for (i = 0; i < n; i++)
		request_attr(r, types[i], &value, (uint16_t)width);
	nest->nla_len = (uint16_t)((char *)r + r->header.nlmsg_len -
				   (char *)nest);
}

static void put_adversary(void)
{
	static const uint16_t types[] = {
		HAMLYN_A_ADV_DROP, HAMLYN_A_ADV_REORDER, HAMLYN_A_ADV_DELAY_US,
	};

	put_nest(HAMLYN_A_ADVERSARY, types, ARRAY_SIZE(types), 4);
}

static void put_limits(void)
{
	static const uint16_t types[] = { HAMLYN_A_LIMITS_USER_SLOTS };

	put_nest(HAMLYN_A_LIMITS, types, 1, 4);
}

static int act_netlink(void)
{
	return ask(env.genl.fd, &env.genl.r, NULL, NULL);
}

static void after_netlink(void)
{
	if (env.genl.fd >= 0)
		close(env.genl.fd);
	env.genl.fd = -1;
}

static int before_nic_get(void)
{
	return begin_nic(HAMLYN_NL_CMD_NIC_GET, 0);
}

static int before_stats_get(void)
{
	return begin_nic(HAMLYN_NL_CMD_STATS_GET, 0);
}

static int before_feed(void)
{
	return begin_nic(HAMLYN_NL_CMD_NIC_FEED, 0);
}

#define SPARE_NIC	7

static int before_nic_new(void)
{
	int ret = begin_nic(HAMLYN_NL_CMD_NIC_NEW, SPARE_NIC);

	request_u32(&env.genl.r, HAMLYN_A_MAX_SLOTS, 64);
	request_u32(&env.genl.r, HAMLYN_A_ENGINES, 2);
	put_adversary();
	return ret;
}

static void after_nic_new(void)
{
	after_netlink();
	begin_nic(HAMLYN_NL_CMD_NIC_DEL, SPARE_NIC);
	act_netlink();
	after_netlink();
}

static int before_nic_del(void)
{
	int ret = before_nic_new();

	if (!ret)
		ret = act_netlink();
	after_netlink();
	return ret ? ret : begin_nic(HAMLYN_NL_CMD_NIC_DEL, SPARE_NIC);
}

static int before_adversary(void)
{
	int ret = begin_nic(HAMLYN_NL_CMD_NIC_SET, 0);

	put_adversary();
	return ret;
}

static void after_adversary(void)
{
	static const uint16_t types[] = {
		HAMLYN_A_ADV_DROP, HAMLYN_A_ADV_REORDER, HAMLYN_A_ADV_DELAY_US,
	};
	uint32_t zero = 0;
	struct nlattr *nest;
	size_t i;

	after_netlink();
	begin_nic(HAMLYN_NL_CMD_NIC_SET, 0);
	nest = request_attr(&env.genl.r, HAMLYN_A_ADVERSARY | NLA_F_NESTED, "",
			    0);
	for (i = 0; i < ARRAY_SIZE(types); i++)
		request_attr(&env.genl.r, types[i], &zero, sizeof(zero));
	nest->nla_len = (uint16_t)((char *)&env.genl.r +
				   env.genl.r.header.nlmsg_len - (char *)nest);
	act_netlink();
	after_netlink();
}

static int before_limit_set(void)
{
	int ret = begin_nic(HAMLYN_NL_CMD_LIMIT_SET, 0);

	request_u32(&env.genl.r, HAMLYN_A_UID, 4711);
	put_limits();
	return ret;
}

static void after_limit_set(void)
{
	after_netlink();
	begin_nic(HAMLYN_NL_CMD_LIMIT_SET, 0);
	request_u32(&env.genl.r, HAMLYN_A_UID, 4711);
	act_netlink();
	after_netlink();
}

static int before_terminus_set(void)
{
	int ret = begin_nic(HAMLYN_NL_CMD_TERMINUS_SET, 0);

	request_u32(&env.genl.r, HAMLYN_A_CONTEXT, env.context);
	request_u32(&env.genl.r, HAMLYN_A_ID, env.p.terminus.arg.terminus);
	request_u32(&env.genl.r, HAMLYN_A_WEIGHT, 2);
	return ret;
}

static int before_netns(void)
{
	int ret = before_nic_new();

	if (!ret)
		ret = act_netlink();
	after_netlink();
	if (ret)
		return ret;
	ret = begin_nic(HAMLYN_NL_CMD_NIC_SET, SPARE_NIC);
	request_u32(&env.genl.r, HAMLYN_A_NETNS_FD, (uint32_t)env.netns);
	return ret;
}

/* ---- parameters ---- */

static int before_parameter(void)
{
	env.fd = open("/sys/module/hamlyn/parameters/idle_us",
		      O_WRONLY | O_CLOEXEC);
	return env.fd < 0 ? -errno : 0;
}

static int act_parameter(void)
{
	return write(env.fd, "50", 2) < 0 ? -errno : 0;
}

/* ---- all of them ---- */

/* By netlink the answer may be lost: ENOBUFS, whatever was done. */
static const struct call calls[] = {
	{ .name = "open", .act = act_open, .after = after_fd },
	{ .name = "QUERY", .act = act_query },
	{ .name = "AREA_ADD", .act = act_area_add, .after = after_area },
	{ .name = "AREA_ADD of 700 pages", .act = act_area_add_big,
	  .after = after_area },
	{ .name = "AREA_ADD READONLY", .act = act_area_add_readonly,
	  .after = after_area },
	{ .name = "AREA_ALLOC", .act = act_area_alloc, .after = after_area },
	{ .name = "AREA_ALLOC HUGE", .act = act_area_alloc_huge,
	  .after = after_area },
	{ .name = "AREA_REMOVE of an added one", .before = act_area_add,
	  .act = act_area_remove, .after = after_area },
	{ .name = "AREA_REMOVE of an allocated one", .before = act_area_alloc,
	  .act = act_area_remove, .after = after_area },
	{ .name = "NQ_CREATE", .act = act_nq_create, .after = after_nq },
	{ .name = "NQ_DESTROY", .before = act_nq_create, .act = act_nq_destroy,
	  .after = after_nq },
	{ .name = "SLOT_CREATE", .act = act_slot_create, .after = after_slot },
	{ .name = "SLOT_DESTROY", .before = act_slot_create,
	  .act = act_slot_destroy, .after = after_slot },
	{ .name = "SLOT_REKEY", .act = act_rekey, .after = after_rekey },
	{ .name = "TERMINUS_CREATE", .act = act_terminus_create,
	  .after = after_terminus },
	{ .name = "TERMINUS_DESTROY", .before = act_terminus_create,
	  .act = act_terminus_destroy, .after = after_terminus },
	{ .name = "TERMINUS_BIND", .act = act_bind, .after = after_bind },
	{ .name = "KICK", .before = before_message, .act = act_kick,
	  .after = after_message },
	{ .name = "fsync", .before = before_message, .act = act_fsync,
	  .after = after_message },
	{ .name = "WAIT", .act = act_wait, .good = -ETIMEDOUT },
	{ .name = "STATS of the NIC", .act = act_stats_nic },
	{ .name = "STATS of a slot", .act = act_stats_slot },
	{ .name = "STATS of a terminus", .act = act_stats_terminus },
	{ .name = "WATCH", .act = act_watch, .after = after_watch },
	{ .name = "WATCH of what is gone", .act = act_watch_gone,
	  .after = after_watch },
	{ .name = "UNWATCH", .before = act_watch, .act = act_unwatch,
	  .after = after_watch },
	{ .name = "TICKET_CREATE", .act = act_ticket_create,
	  .after = after_fd },
	{ .name = "TICKET_IMPORT", .before = before_ticket_import,
	  .act = act_ticket_import, .after = after_ticket },
	{ .name = "TICKET_IMPORT, the 17th",
	  .before = before_ticket_import_more, .act = act_ticket_import,
	  .after = after_ticket },
	{ .name = "TICKET_DROP", .before = before_ticket_import_more,
	  .act = act_ticket_drop, .after = after_ticket },
	{ .name = "AUDIT", .act = act_audit },
	{ .name = "NIC_SET", .act = act_nic_set, .after = after_nic_set },
	{ .name = "EXPLAIN", .act = act_explain },
	{ .name = "mmap of an area", .act = act_mmap_area, .after = after_map },
	{ .name = "mmap of an NQ", .act = act_mmap_ring, .after = after_map },
	{ .name = "mmap of an NQ's control page", .act = act_mmap_control,
	  .after = after_map },
	{ .name = "mmap of a work queue", .act = act_mmap_wq,
	  .after = after_map },
	{ .name = "mmap of a status", .act = act_mmap_status,
	  .after = after_map },
	{ .name = "mmap of an area of huge pages", .before = before_huge,
	  .act = act_mmap_huge, .after = after_huge },
	{ .name = "munmap of the middle", .before = act_mmap_area,
	  .act = act_split, .after = after_map },
	{ .name = "mremap", .before = act_mmap_area, .act = act_move,
	  .after = after_move },
	{ .name = "fork", .before = act_mmap_area, .act = act_fork,
	  .after = after_fork, .errors = { EAGAIN } },
	{ .name = "poll", .act = act_poll },
	{ .name = "epoll_ctl", .before = before_epoll, .act = act_epoll,
	  .after = after_fd },
	{ .name = "nic-get", .before = before_nic_get, .act = act_netlink,
	  .after = after_netlink, .errors = { ENOBUFS } },
	{ .name = "nic-new", .before = before_nic_new, .act = act_netlink,
	  .after = after_nic_new, .errors = { ENOBUFS } },
	{ .name = "nic-del", .before = before_nic_del, .act = act_netlink,
	  .after = after_nic_new, .errors = { ENOBUFS } },
	{ .name = "nic-set adversary", .before = before_adversary,
	  .act = act_netlink, .after = after_adversary, .errors = { ENOBUFS } },
	{ .name = "nic-set netns-fd", .before = before_netns,
	  .act = act_netlink, .after = after_nic_new, .errors = { ENOBUFS } },
	{ .name = "nic-feed", .before = before_feed, .act = act_netlink,
	  .after = after_netlink, .errors = { ENOBUFS } },
	{ .name = "stats-get", .before = before_stats_get, .act = act_netlink,
	  .after = after_netlink, .errors = { ENOBUFS } },
	{ .name = "limit-set", .before = before_limit_set, .act = act_netlink,
	  .after = after_limit_set, .errors = { ENOBUFS } },
	{ .name = "terminus-set", .before = before_terminus_set,
	  .act = act_netlink, .after = after_netlink, .errors = { ENOBUFS } },
	{ .name = "nics, a dump", .act = act_netlink, .after = after_netlink,
	  .errors = { ENOBUFS }, .dump = HAMLYN_NL_CMD_NIC_GET },
	{ .name = "contexts, a dump", .act = act_netlink,
	  .after = after_netlink, .errors = { ENOBUFS },
	  .dump = HAMLYN_NL_CMD_CONTEXT_GET },
	{ .name = "areas, a dump", .act = act_netlink, .after = after_netlink,
	  .errors = { ENOBUFS }, .dump = HAMLYN_NL_CMD_AREA_GET },
	{ .name = "slots, a dump", .act = act_netlink, .after = after_netlink,
	  .errors = { ENOBUFS }, .dump = HAMLYN_NL_CMD_SLOT_GET },
	{ .name = "NQs, a dump", .act = act_netlink, .after = after_netlink,
	  .errors = { ENOBUFS }, .dump = HAMLYN_NL_CMD_NQ_GET },
	{ .name = "termini, a dump", .act = act_netlink, .after = after_netlink,
	  .errors = { ENOBUFS }, .dump = HAMLYN_NL_CMD_TERMINUS_GET },
	{ .name = "stats, a dump", .act = act_netlink, .after = after_netlink,
	  .errors = { ENOBUFS }, .dump = HAMLYN_NL_CMD_STATS_GET },
	{ .name = "users, a dump", .act = act_netlink, .after = after_netlink,
	  .errors = { ENOBUFS }, .dump = HAMLYN_NL_CMD_USER_GET },
	{ .name = "audit, a dump", .act = act_netlink, .after = after_netlink,
	  .errors = { ENOBUFS }, .dump = HAMLYN_NL_CMD_AUDIT_GET },
	{ .name = "a parameter", .before = before_parameter,
	  .act = act_parameter, .after = after_fd },
};

/* ---- the sweep ---- */

static unsigned int passed, failed, points;

static bool allowed(const struct call *c, int ret)
{
	size_t i;

	if (ret == c->good || (ret >= 0 && !c->good) || ret == -ENOMEM ||
	    ret == -EFAULT)
		return true;
	for (i = 0; i < ARRAY_SIZE(c->errors) && c->errors[i]; i++)
		if (ret == -c->errors[i])
			return true;
	return false;
}

static bool is_good(const struct call *c, int ret)
{
	return c->good ? ret == c->good : ret >= 0;
}

/* ENOBUFS: the answer is lost, and with it what was done. */
static bool may_have_worked(int ret)
{
	return ret == -ENOBUFS;
}

static bool complain(const struct call *c, unsigned int n, const char *what,
		     int ret)
{
	printf("# %s, point %u: %s (it returned %d)\n", c->name, n, what, ret);
	return false;
}

static int prepare(const struct call *c)
{
	if (c->dump)
		return begin(c->dump, NLM_F_DUMP);
	return c->before ? c->before() : 0;
}

/* Without a fault: it works, and is taken back. */
static bool run_plain(const struct call *c, unsigned int n)
{
	int ret = prepare(c);

	if (ret < 0)
		return complain(c, n, "what it needs cannot be made", ret);
	ret = c->act();
	if (c->after)
		c->after();
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
	if ((c->before || c->dump) && ret >= 0)
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
	if (!is_good(c, ret) && !may_have_worked(ret))
		differs = state_differs(&start);
	if (differs)
		good = complain(c, n, differs, ret);
	if (c->after)
		c->after();
	return good;
}

static void sweep(const struct call *c)
{
	bool done = false, good;
	struct state start;
	const char *differs;
	unsigned int n;

	/* Once first: pages of this program are there then. */
	good = run_plain(c, 0) && !state_take(&start);
	for (n = 1; n <= MOST_POINTS && !done && good; n++) {
		good = run_point(c, n, &start, &done) && run_plain(c, n);
		differs = state_differs(&start);
		if (differs)
			good = complain(c, n, differs, 0);
	}
	points += n - 2;
	printf("%sok - %s: %u points\n", good && done ? "" : "not ", c->name,
	       n - 2);
	fflush(stdout);
	if (good && done)
		passed++;
	else
		failed++;
}

static int make_env(void)
{
	int ret;

	env.fd = -1;
	env.id = HAMLYN_NONE;
	env.genl.fd = -1;
	/* Behind it there is room for what is moved. */
	env.own = mmap(NULL, BIG + 64 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (env.own == MAP_FAILED)
		return -errno;
	ret = party_open(&env.p);
	if (!ret)
		ret = ht_raw_area_alloc(env.p.fd, 4 * PAGE, &env.spare, NULL);
	if (ret)
		return ret;
	/* Another namespace to move a NIC to, and back here. */
	ret = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (unshare(CLONE_NEWNET))
		return -errno;
	env.netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (ret < 0 || env.netns < 0 || setns(ret, CLONE_NEWNET))
		return -errno;
	close(ret);
	ret = begin(HAMLYN_NL_CMD_CONTEXT_GET, NLM_F_DUMP);
	if (!ret)
		ret = ask(env.genl.fd, &env.genl.r, note_context, NULL);
	after_netlink();
	return ret;
}

static void free_env(void)
{
	ht_raw_id(env.p.fd, HAMLYN_IOC_AREA_REMOVE, env.spare.area);
	party_close(&env.p);
	close(env.netns);
}

/* ---- kmemleak ---- */

#define KMEMLEAK	"/sys/kernel/debug/kmemleak"

/* What it finds is not reported before it is some seconds old. */
static void check_leaks(void)
{
	char line[256];
	bool found = false;
	FILE *f;

	if (write_text(KMEMLEAK, "scan")) {
		printf("# kmemleak is off\n");
		return;
	}
	sleep(7);
	write_text(KMEMLEAK, "scan");
	f = fopen(KMEMLEAK, "re");
	while (f && fgets(line, sizeof(line), f)) {
		printf("# %s", line);
		found = true;
	}
	if (f)
		fclose(f);
	printf("%sok - kmemleak finds nothing\n", found ? "not " : "");
	if (found)
		failed++;
	else
		passed++;
}

/* ---- loading the module ---- */

/* Each point of loading it, all that the kernel's loader does included. */
static int sweep_module(const char *path, const char *args)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = 0, undone;
	bool done = false, good = true;
	unsigned int n;

	if (fd < 0) {
		perror(path);
		return 1;
	}
	for (n = 1; n <= MOST_POINTS && !done && good; n++) {
		arm(n);
		ret = syscall(SYS_finit_module, fd, args, 0) ? -errno : 0;
		done = !disarm();
		if (!ret && syscall(SYS_delete_module, "hamlyn", 0)) {
			printf("# point %u: it cannot be removed: %s\n", n,
			       strerror(errno));
			good = false;
		}
		if (ret && ret != -ENOMEM && ret != -EFAULT &&
		    ret != -ENOEXEC) {
			printf("# point %u: %s\n", n, strerror(-ret));
			good = false;
		}
		/* A remainder would be in its way. */
		undone = syscall(SYS_finit_module, fd, args, 0) ? -errno : 0;
		if (undone || syscall(SYS_delete_module, "hamlyn", 0)) {
			printf("# point %u: the next time fails: %s\n", n,
			       strerror(undone ? -undone : errno));
			good = false;
		}
	}
	close(fd);
	printf("%sok - insmod %s: %u points\n", good && done ? "" : "not ",
	       args, n - 2);
	if (good && done)
		passed++;
	else
		failed++;
	points += n - 2;
	return 0;
}

/* ---- main ---- */

static void help(void)
{
	puts("Usage: fail_nth [--only WORD] [--module FILE [ARGS]] [--no-kmemleak]\n"
	     "\n"
	     "Lets each allocation and each copy from and to the user that a call of\n"
	     "/dev/hamlyn0, its mappings and its netlink family makes fail, one at a time,\n"
	     "as root. Needs a kernel with fault injection.\n"
	     "\n"
	     "  --only WORD    only calls with that word in their name\n"
	     "  --module FILE  load and remove that module instead, with parameters ARGS;\n"
	     "                 it must not be loaded already\n"
	     "  --no-kmemleak  do not look for leaked memory at the end\n"
	     "\n"
	     "Exit status: 0, 1 if a check failed, 2 for a wrong call, 4 if the kernel has\n"
	     "no fault injection or there is no device (nothing was tested).");
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
	size_t i;
	int ret;

	if (access("/dev/hamlyn0", R_OK | W_OK))
		return skip("there is no /dev/hamlyn0");
	figures_take(&start);
	ret = make_env();
	if (ret) {
		fprintf(stderr, "fail_nth: preparing: %s\n", strerror(-ret));
		return 1;
	}
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (!only || strstr(calls[i].name, only))
			sweep(&calls[i]);
	free_env();
	differs = figures_settle(&start, &now, ht_patience_ns());
	printf("%sok - everything is as it was%s%s\n",
	       differs == FIGURES ? "" : "not ", differs == FIGURES ? "" : ": ",
	       differs == FIGURES ? "" : figure_names[differs]);
	if (differs == FIGURES)
		passed++;
	else
		failed++;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "only", required_argument, NULL, 'o' },
		{ "module", required_argument, NULL, 'm' },
		{ "no-kmemleak", no_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	const char *only = NULL, *module = NULL, *args = "";
	bool leaks = true;
	int c, ret;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
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
	if (prepare_kernel())
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
