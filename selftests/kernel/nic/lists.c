// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lists by netlink: each message is whole and none is missing, wherever the room for some of
 * them ends; and what is told to whom. Kernel device only, run as root.
 */
#include "kselftest_harness.h"
#include "calls.h"
#include "genl.h"
#include "hostile.h"
#include "nics.h"

#include <sys/ioctl.h>

#define MANY		120	/* of each kind: several times as many as there is room for */
#define MANY_NICS	40
#define CONTEXT_AUDIT	32	/* as many as a context keeps of those who have a key */
#define ROOM		4096	/* bytes of messages that are read in one go */
#define ROOMS		32	/* others than that, each larger by STEP */
#define STEP		4

FIXTURE(lists) {
	struct genl g;
	int nic;
	int more[MANY_NICS];	/* NICs */
	struct party p;
};

FIXTURE_SETUP(lists)
{
	int i;

	self->p.fd = -1;
	for (i = 0; i < MANY_NICS; i++)
		self->more[i] = -1;
	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION));
	self->nic = NIC_MAKE(&self->g, { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE },
			     { HAMLYN_A_MAX_SLOTS, 2 * MANY }, { HAMLYN_A_GUESSES, 0 });
	ASSERT_LE(0, self->nic);
	nic_use((uint32_t)self->nic);
	ASSERT_EQ(0, party_open(&self->p));
}

FIXTURE_TEARDOWN(lists)
{
	int i;

	party_close(&self->p);
	for (i = 0; i < MANY_NICS; i++)
		if (self->more[i] >= 0)
			EXPECT_EQ(0, nic_delete(&self->g, (uint32_t)self->more[i]));
	if (self->nic >= 0)
		EXPECT_EQ(0, nic_delete_soon(&self->g, (uint32_t)self->nic));
	genl_close(&self->g);
}

/* ---- what a message has ------------------------------------------------------------- */

#define MOST_ATTRS	64

/* Which attributes, in their order; those of a nest behind it. */
struct shape {
	uint8_t n;
	uint8_t attrs[MOST_ATTRS];
};

static void add_attrs(struct shape *s, const char *p, const char *end, bool nested)
{
	while (p + NLA_HDRLEN <= end) {
		const struct nlattr *a = (const void *)p;
		uint16_t type = a->nla_type & NLA_TYPE_MASK;

		if (a->nla_len < NLA_HDRLEN || s->n == MOST_ATTRS)
			break;
		s->attrs[s->n++] = (uint8_t)type;
		if (!nested && (type == HAMLYN_A_REJECTS || type == HAMLYN_A_LIMITS ||
				type == HAMLYN_A_ADVERSARY))
			add_attrs(s, p + NLA_HDRLEN, p + a->nla_len, true);
		p += NLA_ALIGN(a->nla_len);
	}
}

static void take_shape(struct shape *s, const struct nlmsghdr *h)
{
	memset(s, 0, sizeof(*s));
	add_attrs(s, (const char *)NLMSG_DATA(h) + GENL_HDRLEN,
		  (const char *)h + h->nlmsg_len, false);
}

/* ---- lists ---------------------------------------------------------------------------- */

struct list {
	const struct genl *opened;
	uint32_t nic;
	uint32_t context;	/* that has an audit */
	struct shape first;	/* of its messages */
	int messages;
	int others;		/* of another shape */
};

/* Only what the test has made is all alike. */
static bool counts(uint8_t command, const struct list *l, const struct nlmsghdr *h)
{
	uint32_t nic = attr_u32(attr_of(h, HAMLYN_A_NIC));

	switch (command) {
	case HAMLYN_NL_CMD_NIC_GET:
		return attr_u32(attr_of(h, HAMLYN_A_MAX_SLOTS)) == MANY;
	case HAMLYN_NL_CMD_USER_GET:
		return nic == l->nic && attr_of(h, HAMLYN_A_LIMITS);
	default:
		return nic == l->nic;
	}
}

static void take_message(uint8_t command, struct list *l, const struct nlmsghdr *h)
{
	struct shape s;

	if (!counts(command, l, h))
		return;
	take_shape(&s, h);
	if (!l->messages++)
		l->first = s;
	else
		l->others += memcmp(&s, &l->first, sizeof(s)) != 0;
}

/* By a socket that has been read from with so much room. */
static int take_list(struct genl *g, uint8_t command, struct list *l, size_t room)
{
	static unsigned char answer[ROOM + ROOMS * STEP] __attribute__((aligned(8)));
	const struct nlmsghdr *h;
	ssize_t n;

	if (send(g->fd, &g->request, g->request.header.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		n = recv(g->fd, answer, room, MSG_TRUNC);
		if (n < 0)
			return -errno;
		if ((size_t)n > room)
			return -EMSGSIZE;
		for (h = (void *)answer; NLMSG_OK(h, (size_t)n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_ERROR || h->nlmsg_type == NLMSG_DONE)
				return *(const int *)NLMSG_DATA(h);
			take_message(command, l, h);
		}
		/* Behind the last one that there was room for is nothing. */
		if (n)
			return -EBADMSG;
	}
}

static int begin_list(struct genl *g, const struct list *l, uint8_t command)
{
	g->family = l->opened->family;
	g->version = l->opened->version;
	g->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (g->fd < 0)
		return -errno;
	genl_begin(g, command);
	g->request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	if (command != HAMLYN_NL_CMD_NIC_GET)
		genl_put_u32(g, HAMLYN_A_NIC, l->nic);
	if (command == HAMLYN_NL_CMD_AUDIT_GET)
		genl_put_u32(g, HAMLYN_A_CONTEXT, l->context);
	return 0;
}

static void forget(struct list *l)
{
	memset(&l->first, 0, sizeof(l->first));
	l->messages = 0;
	l->others = 0;
}

/* The kernel makes room for as much as was read in one go: the first time shows it. */
static int list(struct list *l, uint8_t command, size_t room)
{
	static struct genl g;
	int ret = begin_list(&g, l, command);

	if (ret)
		return ret;
	forget(l);
	ret = take_list(&g, command, l, room);
	if (!ret) {
		forget(l);
		ret = take_list(&g, command, l, room);
	}
	genl_close(&g);
	return ret;
}

/* ---- whatever the room ---------------------------------------------------------------- */

static int limit_slots(struct genl *g, uint32_t nic, uint32_t uid)
{
	struct nlattr *nest;

	genl_begin(g, HAMLYN_NL_CMD_LIMIT_SET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	genl_put_u32(g, HAMLYN_A_UID, uid);
	nest = genl_put(g, HAMLYN_A_LIMITS | NLA_F_NESTED, NULL, 0);
	genl_put_u32(g, HAMLYN_A_LIMITS_USER_SLOTS, 7);
	genl_end(g, nest);
	return genl_call(g);
}

static int make_nics(FIXTURE_DATA(lists) *self)
{
	int i;

	for (i = 0; i < MANY_NICS; i++) {
		self->more[i] = NIC_MAKE(&self->g,
					 { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE },
					 { HAMLYN_A_MAX_SLOTS, MANY });
		if (self->more[i] < 0)
			return self->more[i];
	}
	/* One that is younger than those with higher numbers. */
	i = self->more[1];
	if (nic_delete(&self->g, (uint32_t)i))
		return -EBUSY;
	self->more[1] = NIC_MAKE(&self->g, { HAMLYN_A_NIC, (uint32_t)i },
				 { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE },
				 { HAMLYN_A_MAX_SLOTS, MANY });
	return self->more[1] == i ? 0 : -ENOENT;
}

/* One more of each kind: the party has one already. */
static int make_objects(struct party *p)
{
	struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 2,
					    .entry_size = 128 };
	struct hamlyn_nq_create nq = { .size = sizeof(nq), .entries = 2 };
	struct hamlyn_area_alloc area;
	struct hamlyn_slot_create slot;
	int ret = ht_raw_area_alloc(p->fd, PAGE, &area, NULL);

	if (!ret)
		ret = ht_raw_slot_create(p->fd, area.area, PAGE, p->nq.arg.nq, &slot);
	if (!ret)
		ret = ht_raw(p->fd, HAMLYN_IOC_NQ_CREATE, &nq);
	return ret ? ret : ht_raw(p->fd, HAMLYN_IOC_TERMINUS_CREATE, &t);
}

static const struct {
	const char *name;
	uint8_t command;
	int messages;
} kinds[] = {
	{ "NICs", HAMLYN_NL_CMD_NIC_GET, MANY_NICS },
	{ "users", HAMLYN_NL_CMD_USER_GET, MANY },
	{ "contexts", HAMLYN_NL_CMD_CONTEXT_GET, MANY + 1 },
	{ "areas", HAMLYN_NL_CMD_AREA_GET, MANY + 1 },
	{ "slots", HAMLYN_NL_CMD_SLOT_GET, MANY + 1 },
	{ "NQs", HAMLYN_NL_CMD_NQ_GET, MANY + 1 },
	{ "termini", HAMLYN_NL_CMD_TERMINUS_GET, MANY + 1 },
	{ "names", HAMLYN_NL_CMD_NAME_GET, MANY },
	{ "audit", HAMLYN_NL_CMD_AUDIT_GET, CONTEXT_AUDIT },
};

static uint32_t context_of(struct genl *g, uint32_t nic)
{
	genl_begin(g, HAMLYN_NL_CMD_AREA_GET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	return genl_count(g) > 0 ? (uint32_t)genl_number(genl_attr(g, HAMLYN_A_CONTEXT)) :
				   HAMLYN_NONE;
}

TEST_F(lists, each_message_is_whole_and_none_is_missing_whatever_the_room)
{
	struct hamlyn_trb wrong = to_party(&self->p);
	const uint32_t nic = (uint32_t)self->nic, uid = somebody(0);
	struct list first, l = { .opened = &self->g, .nic = nic,
				 .context = context_of(&self->g, nic) };
	int fds[MANY], names[MANY], i;
	char name[16];
	size_t k, room;

	wrong.offset = 1ULL << 40;
	ASSERT_EQ(0, make_nics(self));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, limit_slots(&self->g, nic, uid + (uint32_t)i));
		ASSERT_EQ(0, make_objects(&self->p));
		ASSERT_EQ(0, post(&self->p.terminus, &wrong));
		fds[i] = ht_raw_open();
		ASSERT_LE(0, fds[i]);
		snprintf(name, sizeof(name), "%.*s%d", i % 9, "long.one", i);
		names[i] = raw_listen(fds[i], name);
		ASSERT_LE(0, names[i]);
	}
	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (room = ROOM; room < ROOM + ROOMS * STEP; room += STEP) {
			EXPECT_EQ(0, list(&l, kinds[k].command, room));
			EXPECT_EQ(kinds[k].messages, l.messages);
			EXPECT_EQ(0, l.others);
			if (room == ROOM)
				first = l;
			EXPECT_EQ(0, memcmp(&l.first, &first.first, sizeof(l.first)));
			if (l.messages != kinds[k].messages || l.others) {
				TH_LOG("%s, room for %zu bytes", kinds[k].name, room);
				break;
			}
		}
	}
	for (i = 0; i < MANY; i++) {
		close(fds[i]);
		close(names[i]);
	}
}

/* How many messages, or a negative errno. */
static int count(struct genl *g, uint8_t command, int64_t nic, int64_t context)
{
	genl_begin(g, command);
	if (nic >= 0)
		genl_put_u32(g, HAMLYN_A_NIC, (uint32_t)nic);
	if (context >= 0)
		genl_put_u32(g, HAMLYN_A_CONTEXT, (uint32_t)context);
	return genl_count(g);
}

static int count_nics_elsewhere(void *arg)
{
	static struct genl g;
	const int *nic = arg;

	if (unshare(CLONE_NEWNET) || genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return 90;
	if (count(&g, HAMLYN_NL_CMD_NIC_GET, *nic, -1) != -ENODEV)
		return 91;
	return count(&g, HAMLYN_NL_CMD_NIC_GET, -1, -1) ? 92 : 0;
}

TEST_F(lists, a_list_of_nothing_is_empty_and_one_of_what_is_not_there_is_refused)
{
	uint32_t context = context_of(&self->g, (uint32_t)self->nic);
	struct genl *g = &self->g;
	char name[32];
	int length;

	self->more[0] = NIC_MAKE(g, { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_INLINE });
	ASSERT_LE(0, self->more[0]);
	EXPECT_EQ(0, count(g, HAMLYN_NL_CMD_CONTEXT_GET, self->more[0], -1));
	EXPECT_EQ(0, count(g, HAMLYN_NL_CMD_SLOT_GET, self->more[0], -1));
	EXPECT_EQ(0, count(g, HAMLYN_NL_CMD_NAME_GET, self->more[0], -1));
	EXPECT_EQ(-EINVAL, count(g, HAMLYN_NL_CMD_NAME_GET, self->nic, context));
	EXPECT_EQ(-ENOENT, count(g, HAMLYN_NL_CMD_SLOT_GET, self->more[0], 12345));
	EXPECT_EQ(0, as(0, count_nics_elsewhere, &self->nic));
	/* An id of a context is one of a NIC's, by its number or its name. */
	EXPECT_EQ(1, count(g, HAMLYN_NL_CMD_SLOT_GET, self->nic, context));
	EXPECT_EQ(-EINVAL, count(g, HAMLYN_NL_CMD_SLOT_GET, -1, context));
	length = snprintf(name, sizeof(name), "hamlyn%d", self->nic);
	genl_begin(g, HAMLYN_NL_CMD_SLOT_GET);
	genl_put(g, HAMLYN_A_NAME, name, (uint16_t)(length + 1));
	genl_put_u32(g, HAMLYN_A_CONTEXT, context);
	EXPECT_EQ(1, genl_count(g));
}

/* ---- what not all have, and not all are told ------------------------------------------- */

struct found {
	uint16_t attr;		/* what is looked for */
	uint32_t value;
	bool found;
	uint16_t asked;		/* what it may have */
	bool has;
	uint32_t number;
};

static void find_one(const struct nlmsghdr *h, void *arg)
{
	struct found *f = arg;

	if (attr_u32(attr_of(h, f->attr)) != f->value)
		return;
	f->found = true;
	f->has = attr_of(h, f->asked);
	f->number = attr_u32(attr_of(h, f->asked));
}

/* Has the one with that @value the attribute @asked? Neither 0 nor 1: it is not there. */
static int has(const struct genl *g, uint8_t command, uint32_t nic, struct found *f)
{
	struct request r;
	int ret;

	f->found = false;
	request_init(&r, g->family, command, NLM_F_DUMP);
	request_u32(&r, HAMLYN_A_NIC, nic);
	ret = ask(g->fd, &r, find_one, f);
	return ret ? ret : f->found ? f->has : 2;
}

static int slot_has(FIXTURE_DATA(lists) *self, uint32_t slot, uint16_t asked)
{
	struct found f = { .attr = HAMLYN_A_SLOT, .value = slot, .asked = asked };

	return has(&self->g, HAMLYN_NL_CMD_SLOT_GET, (uint32_t)self->nic, &f);
}

TEST_F(lists, a_slot_is_told_with_what_it_has)
{
	struct hamlyn_slot_create paranoid = {
		.size = sizeof(paranoid), .mode = HAMLYN_SLOT_PARANOID,
		.area = self->p.area.area, .length = 64,
		.meta_area = self->p.area.area, .meta_base = 2048,
		.meta_count = 1, .nq = HAMLYN_NONE,
	};
	uint32_t plain = self->p.slot.slot;
	struct hamlyn_slot_create alone;

	ASSERT_EQ(0, ht_raw_slot_create(self->p.fd, self->p.area.area, PAGE, HAMLYN_NONE,
					&alone));
	ASSERT_EQ(0, ht_raw(self->p.fd, HAMLYN_IOC_SLOT_CREATE, &paranoid));
	ASSERT_EQ(0, party_slot(&self->p, HAMLYN_SLOT_TICKET_ONLY));
	EXPECT_EQ(1, slot_has(self, plain, HAMLYN_A_NQ));
	EXPECT_EQ(0, slot_has(self, alone.slot, HAMLYN_A_NQ));
	EXPECT_EQ(0, slot_has(self, plain, HAMLYN_A_META_AREA));
	EXPECT_EQ(1, slot_has(self, paranoid.slot, HAMLYN_A_META_AREA));
	EXPECT_EQ(1, slot_has(self, paranoid.slot, HAMLYN_A_META_COUNT));
	EXPECT_EQ(0, slot_has(self, plain, HAMLYN_A_TICKET_ONLY));
	EXPECT_EQ(1, slot_has(self, self->p.slot.slot, HAMLYN_A_TICKET_ONLY));
}

/* Why packets were discarded: each reason by itself, and no other. */
TEST_F(lists, a_slot_is_told_with_all_reasons_why_packets_are_discarded)
{
	const struct nlattr *rejects;
	struct genl *g = &self->g;
	uint16_t reason;

	ASSERT_EQ(1, count(g, HAMLYN_NL_CMD_SLOT_GET, self->nic, -1));
	rejects = genl_attr(g, HAMLYN_A_REJECTS);
	ASSERT_NE(NULL, rejects);
	EXPECT_EQ(NULL, genl_nested(rejects, 0));
	for (reason = 1; reason <= HAMLYN_REJECT_REASONS; reason++)
		EXPECT_NE(NULL, genl_nested(rejects, reason));
	EXPECT_EQ(NULL, genl_nested(rejects, reason));
}

TEST_F(lists, who_has_no_thread_has_no_engines)
{
	const struct nlattr *engines;

	ASSERT_EQ(0, nic_get(&self->g, (uint32_t)self->nic));
	engines = genl_attr(&self->g, HAMLYN_A_ENGINES);
	ASSERT_NE(NULL, engines);
	EXPECT_EQ(0, genl_number(engines));
}

/* ---- names ---- */

#define MOST_NAMES	8

struct told_name {
	char name[HAMLYN_CALLED_NAME_MAX + 1];
	uint32_t uid, pid, waiting;
	uint64_t calls;
};

struct told_names {
	struct told_name at[MOST_NAMES];
	uint32_t nic;
	int n;
};

static void take_name(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *name = attr_of(h, HAMLYN_A_CALLED_NAME);
	struct told_names *told = arg;
	struct told_name *t = &told->at[told->n];

	if (attr_u32(attr_of(h, HAMLYN_A_NIC)) != told->nic || told->n++ >= MOST_NAMES || !name)
		return;
	snprintf(t->name, sizeof(t->name), "%s", (const char *)name + NLA_HDRLEN);
	t->uid = attr_u32(attr_of(h, HAMLYN_A_UID));
	t->pid = attr_u32(attr_of(h, HAMLYN_A_PID));
	t->waiting = attr_u32(attr_of(h, HAMLYN_A_WAITING));
	t->calls = genl_number(attr_of(h, HAMLYN_A_CALLS));
}

/* How many; a negative errno. */
static int list_names(const struct genl *g, uint32_t nic, struct told_names *told)
{
	struct request r;
	int ret;

	memset(told, 0, sizeof(*told));
	told->nic = nic;
	request_init(&r, g->family, HAMLYN_NL_CMD_NAME_GET, NLM_F_DUMP);
	ret = ask(g->fd, &r, take_name, told);
	return ret ? ret : told->n;
}

static uint32_t host_of(struct genl *g, uint32_t nic)
{
	return nic_get(g, nic) ? HAMLYN_NONE : (uint32_t)genl_number(genl_attr(g, HAMLYN_A_HOST));
}

TEST_F(lists, names_are_told_in_the_order_in_which_they_were_taken)
{
	const uint32_t nic = (uint32_t)self->nic, host = host_of(&self->g, nic);
	int dev = ht_raw_open(), one, two, three, four, call[3], i;
	struct told_names told;
	struct raw raw;

	ASSERT_LE(0, dev);
	EXPECT_EQ(0, list_names(&self->g, nic, &told));
	one = raw_listen(dev, "zero");
	two = raw_listen(dev, "two");
	three = raw_listen(dev, "three");
	ASSERT_LE(0, one | two | three);
	for (i = 0; i < 3; i++) {
		call[i] = raw_call(dev, host, "three");
		ASSERT_LE(0, call[i]);
	}
	/* One is answered, and one is read only. */
	ASSERT_LT(0, raw_read(three, &raw));
	ASSERT_EQ(0, raw_answer(three, raw.from.number));
	ASSERT_LT(0, raw_read(three, &raw));
	EXPECT_EQ(0, close(two));
	four = raw_listen(dev, "a");
	ASSERT_LE(0, four);
	/* The context is not needed any more, and nobody counts one. */
	EXPECT_EQ(0, close(dev));
	EXPECT_EQ(0, nic_get(&self->g, nic));
	EXPECT_EQ(1, genl_number(genl_attr(&self->g, HAMLYN_A_CONTEXTS)));
	ASSERT_EQ(3, list_names(&self->g, nic, &told));
	EXPECT_STREQ("zero", told.at[0].name);
	EXPECT_STREQ("three", told.at[1].name);
	EXPECT_STREQ("a", told.at[2].name);
	EXPECT_EQ(getpid(), told.at[0].pid);
	EXPECT_EQ(0, told.at[0].uid);
	EXPECT_EQ(0, told.at[0].waiting);
	EXPECT_EQ(0, told.at[0].calls);
	EXPECT_EQ(2, told.at[1].waiting);
	EXPECT_EQ(3, told.at[1].calls);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, close(call[i]));
	EXPECT_EQ(0, close(one) | close(three) | close(four));
	EXPECT_EQ(0, list_names(&self->g, nic, &told));
}

/* Is told of its own, and of nothing else. */
static int list_own_names(void *arg)
{
	const int *nic = arg;
	struct told_names told;
	int dev = ht_raw_open();
	struct genl g;

	if (dev < 0 || raw_listen(dev, "own") < 0)
		return 90;
	if (genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return 91;
	if (list_names(&g, (uint32_t)*nic, &told) != 1)
		return 92;
	return !strcmp(told.at[0].name, "own") && told.at[0].uid == getuid() ? 0 : 93;
}

TEST_F(lists, a_user_is_told_of_its_own_names_only)
{
	int dev = ht_raw_open(), name = raw_listen(dev, "roots");

	ASSERT_LE(0, name);
	EXPECT_EQ(0, as(somebody(7), list_own_names, &self->nic));
	EXPECT_EQ(0, close(name) | close(dev));
}

/* The largest limit that is one. */
TEST_F(lists, the_largest_limit_is_told_as_one)
{
	const uint64_t largest = ~(PAGE - 1ULL);
	struct nlattr *nest;

	genl_begin(&self->g, HAMLYN_NL_CMD_LIMIT_SET);
	genl_put_u32(&self->g, HAMLYN_A_NIC, (uint32_t)self->nic);
	nest = genl_put(&self->g, HAMLYN_A_LIMITS | NLA_F_NESTED, NULL, 0);
	genl_put_u64(&self->g, HAMLYN_A_LIMITS_USER_WIRED_BYTES, largest);
	genl_end(&self->g, nest);
	ASSERT_EQ(0, genl_call(&self->g));
	ASSERT_EQ(0, nic_get(&self->g, (uint32_t)self->nic));
	EXPECT_EQ(largest, genl_number(genl_nested(genl_attr(&self->g, HAMLYN_A_LIMITS),
						   HAMLYN_A_LIMITS_USER_WIRED_BYTES)));
}

#define GUESSES		2	/* the second one brings a pause of a second */
#define TOO_LATE	3

/* Whether it is told for how long; 2: no such terminus. */
static int pause_told(const struct genl *g, uint32_t nic, uint32_t terminus, uint32_t *ms)
{
	struct found f = { .attr = HAMLYN_A_ENTRIES, .value = terminus,
			   .asked = HAMLYN_A_PAUSED_MS };
	int ret = has(g, HAMLYN_NL_CMD_TERMINUS_GET, nic, &f);

	*ms = f.number;
	return ret;
}

/* 2: there is no such user. */
static int user_told(const struct genl *g, uint32_t nic, uint32_t uid)
{
	struct found f = { .attr = HAMLYN_A_UID, .value = uid, .asked = HAMLYN_A_UID };

	return has(g, HAMLYN_NL_CMD_USER_GET, nic, &f);
}

#define ENTRIES		32	/* nobody else's terminus has so many */

struct guesser {
	const struct party *to;
	uint32_t nic;
	int ready, seen;	/* ends of pipes */
};

/* Is held back, and says what he is told of it. */
static int be_held_back(void *arg)
{
	const struct guesser *s = arg;
	struct hamlyn_trb wrong = to_party(s->to);
	struct ht_raw_terminus t;
	int fd = ht_raw_open(), i;
	struct genl g;
	uint32_t ms;
	char byte;

	wrong.key ^= 1;
	if (fd < 0 || ht_raw_terminus_create(fd, ENTRIES, 256, &t) ||
	    genl_open(&g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION))
		return 90;
	for (i = 0; i < GUESSES; i++)
		if (post(&t, &wrong))
			return 91;
	if (write(s->ready, "r", 1) != 1 || read(s->seen, &byte, 1) != 1)
		return 92;
	i = pause_told(&g, s->nic, ENTRIES, &ms);
	/* Root looks again, and then he may go. */
	if (write(s->ready, "r", 1) != 1 || read(s->seen, &byte, 1) != 1)
		return 93;
	return i;
}

/* What root is told meanwhile; TOO_LATE if it was over before he looked again. */
static int look_at_guesser(const struct genl *g, struct guesser *s, unsigned int uid,
			   int *his)
{
	int ready[2], seen[2], first, then;
	uint32_t ms, later;
	char byte;
	pid_t pid;

	if (pipe(ready) || pipe(seen))
		return 90;
	s->ready = ready[1];
	s->seen = seen[0];
	pid = ht_fork();
	if (!pid)
		_exit(become(uid) ? 99 : be_held_back(s));
	close(ready[1]);
	close(seen[0]);
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		return 91;
	first = pause_told(g, s->nic, ENTRIES, &ms);
	if (write(seen[1], "s", 1) != 1 || read(ready[0], &byte, 1) != 1)
		return 92;
	then = pause_told(g, s->nic, ENTRIES, &later);
	if (write(seen[1], "s", 1) != 1)
		return 93;
	*his = ht_reap(pid);
	close(ready[0]);
	close(seen[1]);
	if (first > 1 || then > 1)
		return 94;
	if (!then)
		return TOO_LATE;
	return first && ms >= later && ms <= 1000 ? 0 : 95;
}

/* Who guesses keys would learn from it which guess was wrong. */
TEST_F(lists, only_administrators_are_told_for_how_long_a_terminus_is_held_back)
{
	struct guesser s = { .to = &self->p, .nic = (uint32_t)self->nic };
	unsigned int tries = 0;
	struct party other;
	uint32_t ms;
	int his = -1, ret;

	ASSERT_EQ(0, nic_set(&self->g, s.nic, HAMLYN_A_GUESSES, 1));
	do
		ret = look_at_guesser(&self->g, &s, somebody(1 + tries), &his);
	while (ret == TOO_LATE && ++tries < 20);
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, his);
	/* He is remembered, and does not have anything. */
	EXPECT_EQ(2, user_told(&self->g, s.nic, somebody(1 + tries)));
	EXPECT_EQ(1, user_told(&self->g, s.nic, geteuid()));
	/* Who is not held back is not told of as if he were. */
	ASSERT_EQ(0, party_open(&other));
	EXPECT_EQ(0, pause_told(&self->g, s.nic, other.terminus.arg.entries, &ms));
	party_close(&other);
}

TEST_HARNESS_MAIN
