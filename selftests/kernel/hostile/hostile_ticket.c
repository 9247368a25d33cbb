// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tickets that are descriptors: nobody makes, guesses, borrows or stretches
 * one, and a key does not replace it. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

FIXTURE(hostile_ticket) {
	struct party owner;	/* its slot demands a ticket */
	struct party sender;
	int ticket;		/* of all of the slot */
};

static int drop_ticket(const struct party *p, uint32_t index)
{
	struct hamlyn_ticket_drop arg = {
		.size = sizeof(arg),
		.terminus = p->terminus.arg.terminus,
		.index = index,
	};

	return ht_raw(p->fd, HAMLYN_IOC_TICKET_DROP, &arg);
}

FIXTURE_SETUP(hostile_ticket)
{
	ASSERT_EQ(0, party_open(&self->owner));
	ASSERT_EQ(0, party_open(&self->sender));
	ASSERT_EQ(0, ht_raw_id(self->owner.fd, HAMLYN_IOC_SLOT_DESTROY,
			       self->owner.slot.slot));
	ASSERT_EQ(0, party_slot(&self->owner, HAMLYN_SLOT_TICKET_ONLY));
	self->ticket = party_make_ticket(&self->owner, 0, 0);
	ASSERT_GE(self->ticket, 0);
}

FIXTURE_TEARDOWN(hostile_ticket)
{
	close(self->ticket);
	party_close(&self->sender);
	party_close(&self->owner);
}

/* By the imported ticket @index; nothing else in it is of use. */
static struct hamlyn_trb by_ticket(uint32_t index)
{
	return (struct hamlyn_trb) {
		.host = 0x77777777,
		.slot = 0x77777777,
		.flags = HAMLYN_TRB_TICKET,
		.ticket = index,
		.length = 8,
	};
}

/* It must end with @want, and nothing may come of it. */
static const char *passed(struct party *to, struct party *from,
			  const struct hamlyn_trb *trb, int want)
{
	int status;

	memset(to->data, HT_GUARD, PAGE);
	status = post(&from->terminus, trb);
	if (status != want) {
		fprintf(stderr, "# status %d, not %d\n", status, want);
		return "the wrong status";
	}
	if (came(to))
		return "the owner was notified";
	return ht_match_byte(to->data, PAGE, HT_GUARD) == PAGE ?
	       NULL : "memory was touched";
}

static const char *good_does_not_pass(struct party *to, struct party *from,
				      uint32_t index)
{
	struct hamlyn_trb trb = by_ticket(index);
	int status;

	memset(to->data, HT_GUARD, PAGE);
	status = post(&from->terminus, &trb);
	if (status) {
		fprintf(stderr, "# status %d\n", status);
		return "a good message is refused";
	}
	if (!came(to))
		return "a good message is not notified";
	return ht_match_byte(to->data, 8, 'h') == 8 ?
	       NULL : "a good message does not arrive";
}

/* ---- forging ------------------------------------------------------------ */

TEST_F(hostile_ticket, nothing_but_a_ticket_is_imported)
{
	/* What the kernel's copy looks like: key, base, length, host, slot. */
	const uint64_t forged[5] = { self->owner.slot.key, 0, PAGE,
				     (uint64_t)self->owner.slot.slot << 32 };
	int memfd = (int)syscall(SYS_memfd_create, "[hamlyn-ticket]", 0);
	int pipefd[2], sockets[2];
	unsigned int i;
	char path[64];

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	ASSERT_EQ((ssize_t)sizeof(forged), write(memfd, forged,
						 sizeof(forged)));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->ticket);
	const int fds[] = {
		-1, 1000, INT32_MAX, INT32_MIN, memfd, pipefd[0], pipefd[1],
		sockets[0], self->owner.fd, self->sender.fd, eventfd(1, 0),
		epoll_create1(0), open("/dev/null", O_RDWR), open("/", O_RDONLY),
		open("/proc/self/exe", O_RDONLY), open(path, O_PATH),
	};

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		EXPECT_EQ(-EBADF, party_import_ticket(&self->sender, fds[i])) {
			TH_LOG("case %u", i);
		}
	}
	/* Another copy of the number is the same ticket, and no new one. */
	EXPECT_EQ(0, party_import_ticket(&self->sender, dup(self->ticket)));
	EXPECT_NO(good_does_not_pass(&self->owner, &self->sender, 0));
}

TEST_F(hostile_ticket, a_ticket_cannot_be_opened_again_by_its_name)
{
	static const int modes[] = { O_RDONLY, O_WRONLY, O_RDWR };
	char path[64];
	unsigned int i;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->ticket);
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		EXPECT_EQ(-1, open(path, modes[i]));
	}
}

TEST_F(hostile_ticket, a_ticket_tells_nothing)
{
	char bytes[256];

	EXPECT_EQ(FD_CLOEXEC, fcntl(self->ticket, F_GETFD));
	EXPECT_EQ(-1, read(self->ticket, bytes, sizeof(bytes)));
	EXPECT_EQ(-1, pread(self->ticket, bytes, sizeof(bytes), 0));
	EXPECT_EQ(-1, write(self->ticket, bytes, sizeof(bytes)));
	EXPECT_EQ(-1, ftruncate(self->ticket, 0));
	EXPECT_EQ(-1, ioctl(self->ticket, HAMLYN_IOC_QUERY, bytes));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_SHARED,
				   self->ticket, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE,
				   self->ticket, 0));
}

TEST_F(hostile_ticket, a_key_without_a_ticket_opens_nothing)
{
	struct hamlyn_trb trb = to_party(&self->owner);
	uint64_t keys[] = { trb.key, 0, ~0ULL, trb.key ^ 1 };
	int64_t before = rejects(&self->owner, HAMLYN_REJECT_TICKET);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		trb.key = keys[i];
		EXPECT_NO(passed(&self->owner, &self->sender, &trb, 0)) {
			TH_LOG("key %u", i);
		}
	}
	EXPECT_EQ(before + 4, rejects(&self->owner, HAMLYN_REJECT_TICKET));
	/* Not the owner's own either. */
	trb.key = keys[0];
	EXPECT_NO(passed(&self->owner, &self->owner, &trb, 0));
	ASSERT_EQ(0, party_import_ticket(&self->sender, self->ticket));
	EXPECT_NO(good_does_not_pass(&self->owner, &self->sender, 0));
}

/* Of a NIC that has the slots 0 to 7, and a context that imported nothing. */
TEST_F(hostile_ticket, a_request_cannot_claim_a_ticket)
{
	static const uint32_t indices[] = { 0, 1, 15, 16, 4095, 4096, 65536,
					    0x7fffffff, 0x80000000,
					    0xffffffff };
	struct hamlyn_trb trb;
	unsigned int i, imported;
	uint32_t bit;

	for (imported = 0; imported < 2; imported++) {
		for (i = imported; i < ARRAY_SIZE(indices); i++) {
			trb = by_ticket(indices[i]);
			EXPECT_NO(passed(&self->owner, &self->sender, &trb,
					 -ENOKEY)) {
				TH_LOG("index %x", indices[i]);
			}
			trb.length = 0;
			EXPECT_NO(passed(&self->owner, &self->sender, &trb,
					 -ENOKEY));
			/* An index without the flag is no ticket. */
			trb = to_party(&self->owner);
			trb.ticket = indices[i];
			if (!trb.ticket)
				continue;
			EXPECT_NO(passed(&self->owner, &self->sender, &trb,
					 -EINVAL));
		}
		/* The packet's own flags are not the sender's to set. */
		for (bit = HAMLYN_TRB_TICKET << 1; bit; bit <<= 1) {
			trb = to_party(&self->owner);
			trb.flags = bit;
			EXPECT_NO(passed(&self->owner, &self->sender, &trb,
					 -EINVAL)) {
				TH_LOG("flag %x", bit);
			}
		}
		if (!imported) {
			ASSERT_EQ(0, party_import_ticket(&self->sender,
							 self->ticket));
		}
	}
	EXPECT_NO(good_does_not_pass(&self->owner, &self->sender, 0));
}

/* ---- borrowing ---------------------------------------------------------- */

TEST_F(hostile_ticket, an_index_is_for_its_own_terminus)
{
	struct party other = self->sender;
	struct hamlyn_trb trb = by_ticket(0);

	ASSERT_EQ(0, party_import_ticket(&self->sender, self->ticket));
	/* Of the same context. */
	ASSERT_EQ(0, ht_raw_terminus_create(self->sender.fd, 8, 256,
					    &other.terminus));
	EXPECT_NO(passed(&self->owner, &other, &trb, -ENOKEY));
	/* And of the slot's owner. */
	EXPECT_NO(passed(&self->owner, &self->owner, &trb, -ENOKEY));
	EXPECT_NO(good_does_not_pass(&self->owner, &self->sender, 0));
}

TEST_F(hostile_ticket, others_termini_and_slots_are_ENOENT)
{
	struct party stranger = self->sender;

	/* Ids are each context's own: one that the owner does not have. */
	ASSERT_EQ(0, ht_raw_terminus_create(self->sender.fd, 8, 256,
					    &stranger.terminus));
	ASSERT_EQ(0, party_import_ticket(&stranger, self->ticket));
	stranger.fd = self->owner.fd;
	EXPECT_EQ(-ENOENT, party_import_ticket(&stranger, self->ticket));
	EXPECT_EQ(-ENOENT, drop_ticket(&stranger, 0));
	stranger = self->owner;
	stranger.fd = self->sender.fd;
	EXPECT_EQ(-ENOENT, party_make_ticket(&stranger, 0, 0));
	/* With the key in hand, too. */
	stranger.slot.slot = 0xffffffff;
	EXPECT_EQ(-ENOENT, party_make_ticket(&stranger, 0, 0));
}

static int send_by_passed(void *arg)
{
	int *sockets = arg;
	struct party p;
	struct hamlyn_trb trb;
	int fd, index;

	if (party_open(&p))
		return 1;
	fd = get_fd(sockets[1]);
	if (fd < 0)
		return 2;
	index = party_import_ticket(&p, fd);
	if (index)
		return 3;
	close(fd);
	trb = by_ticket(0);
	return post(&p.terminus, &trb) ? 4 : 0;
}

TEST_F(hostile_ticket, who_is_given_one_may_use_it_and_nobody_else)
{
	int sockets[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	ASSERT_EQ(0, pass_fd(sockets[0], self->ticket));
	memset(self->owner.data, HT_GUARD, PAGE);
	ASSERT_EQ(0, as(somebody(0), send_by_passed, sockets));
	EXPECT_TRUE(came(&self->owner));
	EXPECT_EQ(8, ht_match_byte(self->owner.data, 8, 'h'));
}

/* ---- stretching --------------------------------------------------------- */

TEST_F(hostile_ticket, a_ticket_is_for_its_range_only)
{
	static const struct {
		uint64_t offset;
		uint64_t length;
		int want;
	} cases[] = {
		{ 100, 8, 0 }, { 292, 8, 0 }, { 300, 0, 0 }, { 100, 0, 0 },
		{ 99, 8, -ERANGE }, { 0, 8, -ERANGE }, { 92, 8, -ERANGE },
		{ 293, 8, -ERANGE }, { 300, 8, -ERANGE }, { 301, 0, -ERANGE },
		{ 99, 0, -ERANGE }, { PAGE - 8, 8, -ERANGE },
		{ 0 - 8ULL, 8, -ERANGE }, { ~0ULL, 8, -ERANGE },
		{ 1ULL << 63, 8, -ERANGE },
	};
	int ticket = party_make_ticket(&self->owner, 100, 200);
	struct hamlyn_trb trb;
	unsigned int i;

	ASSERT_GE(ticket, 0);
	ASSERT_EQ(0, party_import_ticket(&self->sender, ticket));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		trb = by_ticket(0);
		trb.offset = cases[i].offset;
		trb.length = cases[i].length;
		if (cases[i].want) {
			EXPECT_NO(passed(&self->owner, &self->sender, &trb,
					 cases[i].want)) {
				TH_LOG("case %u", i);
			}
		} else {
			EXPECT_EQ(0, post(&self->sender.terminus, &trb));
			EXPECT_TRUE(came(&self->owner)) {
				TH_LOG("case %u", i);
			}
		}
	}
	close(ticket);
}

TEST_F(hostile_ticket, a_ticket_must_lie_inside_its_slot)
{
	static const uint64_t cases[][2] = {
		{ 0, PAGE + 1 }, { 1, PAGE }, { PAGE, 1 }, { PAGE + 1, 0 },
		{ ~0ULL, 1 }, { ~0ULL, 2 }, { 1ULL << 63, 1ULL << 63 },
		{ 0, ~0ULL }, { 8, ~0ULL },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_EQ(-ERANGE, party_make_ticket(&self->owner, cases[i][0],
						     cases[i][1])) {
			TH_LOG("case %u", i);
		}
	}
}

/* A paranoid slot with one entry, and a ticket for it: index 0. */
static int make_paranoid(FIXTURE_DATA(hostile_ticket) *self,
			 struct hamlyn_metadata **meta)
{
	struct party *p = &self->owner;
	int ret, ticket;

	p->slot.mode = HAMLYN_SLOT_PARANOID;
	p->slot.length = 2048;
	p->slot.meta_area = p->area.area;
	p->slot.meta_base = 2048;
	p->slot.meta_count = 1;
	ret = ht_raw(p->fd, HAMLYN_IOC_SLOT_CREATE, &p->slot);
	if (ret)
		return ret;
	*meta = (void *)(p->data + 2048);
	memset(*meta, 0, sizeof(**meta));
	(*meta)->key = 1234567;
	(*meta)->high = 2048;
	ticket = party_make_ticket(p, 0, 0);
	if (ticket < 0)
		return ticket;
	ret = party_import_ticket(&self->sender, ticket);
	close(ticket);
	return ret;
}

/* Also behind low, where the difference of the two would be huge. */
TEST_F(hostile_ticket, limits_upside_down_let_nothing_in)
{
	static const uint64_t offsets[] = { 0, 511, 512, 1023, 1024, 1025,
					    2000 };
	struct hamlyn_trb trb = by_ticket(0);
	struct hamlyn_metadata *meta;
	unsigned int i;

	ASSERT_EQ(0, make_paranoid(self, &meta));
	trb.key = meta->key;
	meta->low = 1024;
	meta->high = 512;
	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		trb.offset = offsets[i];
		EXPECT_EQ(0, post(&self->sender.terminus, &trb));
		EXPECT_FALSE(came(&self->owner)) {
			TH_LOG("offset %u", (unsigned int)offsets[i]);
		}
	}
	meta->high = 1032;
	trb.offset = 1024;
	EXPECT_EQ(0, post(&self->sender.terminus, &trb));
	EXPECT_TRUE(came(&self->owner));
}

/* The paranoid modes ask for the entry's key beside the ticket. */
TEST_F(hostile_ticket, a_ticket_is_not_an_entrys_key)
{
	struct hamlyn_trb trb = by_ticket(0);
	struct hamlyn_metadata *meta;

	ASSERT_EQ(0, make_paranoid(self, &meta));
	EXPECT_EQ(0, post(&self->sender.terminus, &trb));
	EXPECT_FALSE(came(&self->owner));
	trb.key = 1234567;
	EXPECT_EQ(0, post(&self->sender.terminus, &trb));
	EXPECT_TRUE(came(&self->owner));
}

/* 0 is a number as any other, of a descriptor and of a ticket. */
TEST_F(hostile_ticket, descriptor_0_is_a_ticket_and_tells_its_range)
{
	struct hamlyn_ticket_import arg = {
		.size = sizeof(arg),
		.terminus = self->sender.terminus.arg.terminus,
		.index = 4711,
	};
	struct hamlyn_query query;
	int input = dup(0), fd;

	close(0);
	fd = party_make_ticket(&self->owner, 8, 16);
	EXPECT_EQ(0, fd);
	EXPECT_EQ(0, ht_raw(self->sender.fd, HAMLYN_IOC_TICKET_IMPORT, &arg));
	EXPECT_EQ(0, ht_raw_query(self->owner.fd, &query));
	EXPECT_EQ(query.host, arg.host);
	EXPECT_EQ(self->owner.slot.slot, arg.slot);
	EXPECT_EQ(0, arg.index);
	EXPECT_EQ(8, arg.base);
	EXPECT_EQ(16, arg.length);
	close(0);
	if (input >= 0) {
		EXPECT_EQ(0, dup2(input, 0));
		close(input);
	}
}

/* ---- when it is over ---------------------------------------------------- */

TEST_F(hostile_ticket, a_dropped_ticket_is_gone)
{
	struct hamlyn_trb trb = by_ticket(0);

	ASSERT_EQ(0, party_import_ticket(&self->sender, self->ticket));
	EXPECT_NO(good_does_not_pass(&self->owner, &self->sender, 0));
	/* Not by another number, whatever it may be taken for. */
	EXPECT_EQ(-ENOKEY, drop_ticket(&self->sender, 16));
	EXPECT_EQ(-ENOKEY, drop_ticket(&self->sender, 4096));
	EXPECT_EQ(-ENOKEY, drop_ticket(&self->sender, 0xffffffff));
	EXPECT_NO(good_does_not_pass(&self->owner, &self->sender, 0));
	ASSERT_EQ(0, drop_ticket(&self->sender, 0));
	EXPECT_NO(passed(&self->owner, &self->sender, &trb, -ENOKEY));
	EXPECT_EQ(-ENOKEY, drop_ticket(&self->sender, 0));
	EXPECT_EQ(-ENOKEY, drop_ticket(&self->sender, 16));
	EXPECT_EQ(-ENOKEY, drop_ticket(&self->sender, 0xffffffff));
}

TEST_F(hostile_ticket, tickets_are_void_after_a_rekey)
{
	struct hamlyn_trb trb = by_ticket(0);
	int64_t before = rejects(&self->owner, HAMLYN_REJECT_KEY);
	int fresh;

	ASSERT_EQ(0, party_import_ticket(&self->sender, self->ticket));
	/* Also if the slot's key remains what it was. */
	ASSERT_EQ(0, rekey(&self->owner, self->owner.slot.key));
	EXPECT_NO(passed(&self->owner, &self->sender, &trb, 0));
	EXPECT_EQ(before + 1, rejects(&self->owner, HAMLYN_REJECT_KEY));
	EXPECT_EQ(-ENOKEY, party_import_ticket(&self->sender, self->ticket));
	fresh = party_make_ticket(&self->owner, 0, 0);
	ASSERT_GE(fresh, 0);
	ASSERT_EQ(1, party_import_ticket(&self->sender, fresh));
	EXPECT_NO(passed(&self->owner, &self->sender, &trb, 0));
	EXPECT_NO(good_does_not_pass(&self->owner, &self->sender, 1));
	close(fresh);
}

TEST_F(hostile_ticket, tickets_are_void_after_their_slot)
{
	struct hamlyn_trb trb = by_ticket(0);
	uint32_t number = self->owner.slot.slot;
	struct party hog;
	uint32_t n;
	int ret = 0;

	if (self->owner.query.max_slots > 8192)
		SKIP(return, "too many slots to take them all");
	ASSERT_EQ(0, party_import_ticket(&self->sender, self->ticket));
	ASSERT_EQ(0, ht_raw_id(self->owner.fd, HAMLYN_IOC_SLOT_DESTROY,
			       number));
	EXPECT_NO(passed(&self->owner, &self->sender, &trb, 0));
	EXPECT_EQ(-ENOKEY, party_import_ticket(&self->sender, self->ticket));
	/* Another slot of the same number. */
	ASSERT_EQ(0, party_open(&hog));
	for (n = 0; !ret && n <= hog.query.max_slots; n++) {
		ret = party_slot(&hog, 0);
		if (!ret && hog.slot.slot == number)
			break;
	}
	ASSERT_EQ(0, ret);
	ASSERT_EQ(number, hog.slot.slot);
	EXPECT_NO(passed(&hog, &self->sender, &trb, 0));
	EXPECT_EQ(-ENOKEY, party_import_ticket(&self->sender, self->ticket));
	party_close(&hog);
}

/* Its file is of the module: unloading must wait. */
TEST_F(hostile_ticket, the_module_stays_while_a_ticket_is_open)
{
	party_close(&self->sender);
	party_close(&self->owner);
	/* The last reference of the files may go a moment later. */
	ht_sleep_ns(100 * HT_MS);
	EXPECT_EQ(-1, syscall(SYS_delete_module, "hamlyn", O_NONBLOCK));
	EXPECT_TRUE(errno == EWOULDBLOCK || errno == EBUSY) {
		TH_LOG("errno %d", errno);
	}
	ASSERT_EQ(0, party_open(&self->owner));
}

TEST_HARNESS_MAIN
