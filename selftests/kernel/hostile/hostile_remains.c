// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys that are gone are nowhere in the kernel's memory any more: who reads what was freed,
 * by another fault, finds none that might have been used elsewhere. Kernel device only, run
 * as root: all memory is looked at.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/random.h>

#define SLOTS	64
#define CHUNK	(256 * 1024)
#define ODDS	0x5a5a3c3c96960f0fULL

/* Keys as they are must be nowhere in our own memory: that is looked at as well. */
static uint64_t hidden;

static uint64_t __attribute__((noinline)) the_key(void)
{
	return hidden ^ *(volatile uint64_t *)&(uint64_t){ ODDS };
}

/* ---- the kernel's memory ---- */

typedef unsigned int (*look_fn)(const uint64_t *words, size_t n);

static unsigned int keys_in(const uint64_t *words, size_t n)
{
	unsigned int found = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if ((words[i] ^ ODDS) == hidden)
			found++;
	return found;
}

/* What the NIC has of a ticket: its key, base, length, and whose it is. */
#define TICKET_BASE	0xb6d
#define TICKET_LENGTH	0x2a7

static uint64_t ticket_of;	/* host and slot, as they lie in memory */

/* Nobody is shown the key of a ticket, so it is taken from where the kernel has it. */
static unsigned int tickets_in(const uint64_t *words, size_t n)
{
	unsigned int found = 0;
	size_t i;

	for (i = 1; i + 2 < n; i++) {
		if (words[i] != TICKET_BASE || words[i + 1] != TICKET_LENGTH ||
		    words[i + 2] != ticket_of || !words[i - 1])
			continue;
		found++;
		hidden = words[i - 1] ^ ODDS;
	}
	return found;
}

/* Of one segment; what cannot be read is no memory. */
static unsigned int found_at(int core, const Elf64_Phdr *part, look_fn look)
{
	static uint64_t words[CHUNK / sizeof(uint64_t)];
	unsigned int found = 0;
	uint64_t at;

	for (at = 0; at < part->p_filesz; at += CHUNK) {
		uint64_t left = part->p_filesz - at;
		ssize_t got = pread(core, words, left < CHUNK ? left : CHUNK,
				    (off_t)(part->p_offset + at));

		if (got > 0)
			found += look(words, (size_t)got / 8);
	}
	memset(words, 0, sizeof(words));
	return found;
}

/* Only what has a physical address: the machine's memory, once. */
static bool is_memory(const Elf64_Phdr *part)
{
	return part->p_type == PT_LOAD && part->p_paddr != UINT64_MAX;
}

/* How often what @look knows is there; -1: it cannot be told. */
static int search(look_fn look)
{
	int core = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	Elf64_Phdr parts[64];
	int found = 0, looked = 0;
	Elf64_Ehdr head;
	unsigned int i;

	if (core < 0 || pread(core, &head, sizeof(head), 0) != sizeof(head) ||
	    head.e_phnum > ARRAY_SIZE(parts) ||
	    pread(core, parts, head.e_phnum * sizeof(*parts),
		  (off_t)head.e_phoff) < 0) {
		close(core);
		return -1;
	}
	for (i = 0; i < head.e_phnum; i++) {
		if (!is_memory(&parts[i]))
			continue;
		looked++;
		found += (int)found_at(core, &parts[i], look);
	}
	close(core);
	return looked ? found : -1;
}

/* How often the key is there. */
static int remains(void)
{
	return search(keys_in);
}

/* ---- whoever had keys ---- */

#define OTHERS	4	/* of which some have the same engine */

FIXTURE(hostile_remains) {
	struct party p;
	struct party others[OTHERS];
};

FIXTURE_SETUP(hostile_remains)
{
	int i;

	ASSERT_EQ(sizeof(hidden), getrandom(&hidden, sizeof(hidden), 0));
	ASSERT_EQ(0, party_open(&self->p));
	for (i = 0; i < OTHERS; i++)
		ASSERT_EQ(0, party_open(&self->others[i]));
}

FIXTURE_TEARDOWN(hostile_remains)
{
	int i;

	party_close(&self->p);
	for (i = 0; i < OTHERS; i++)
		party_close(&self->others[i]);
}

/* With the key; it is not left in @arg. The number, or a negative errno. */
static int make_slot(const struct party *p)
{
	struct hamlyn_slot_create arg = {
		.size = sizeof(arg),
		.flags = HAMLYN_SLOT_KEY_GIVEN,
		.area = p->area.area,
		.length = PAGE,
		.meta_area = HAMLYN_NONE,
		.nq = HAMLYN_NONE,
	};
	int ret;

	arg.key = the_key();
	ret = ht_raw(p->fd, HAMLYN_IOC_SLOT_CREATE, &arg);
	explicit_bzero(&arg.key, sizeof(arg.key));
	return ret ? ret : (int)arg.slot;
}

/* By the key of a slot that has it. The number, or a negative errno. */
static int make_watch(const struct party *p, int slot)
{
	struct hamlyn_watch arg = watch_of(p, p);
	struct ht_poll poll;
	int ret;

	arg.slot = (uint32_t)slot;
	arg.key = the_key();
	/* What others of this user have guessed may hold it back. */
	ht_poll_begin(&poll);
	do {
		ret = ht_raw(p->fd, HAMLYN_IOC_WATCH, &arg);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	explicit_bzero(&arg.key, sizeof(arg.key));
	return ret ? ret : (int)arg.watch;
}

static int destroy(const struct party *p, int slot)
{
	return ht_raw_id(p->fd, HAMLYN_IOC_SLOT_DESTROY, (uint32_t)slot);
}

/* A long message, whose header is kept while it is sent. */
static int send_long(struct party *p, uint32_t slot, bool hide)
{
	struct hamlyn_terminus_bind bind = { .size = sizeof(bind),
					     .terminus = p->terminus.arg.terminus,
					     .area = p->area.area,
					     .length = PAGE };
	struct hamlyn_fragment f = { .length = 64 };
	struct hamlyn_trb *entry = ht_raw_entry(&p->terminus);
	uint32_t index = p->terminus.producer;
	int status, ret;

	ret = ht_raw(p->fd, HAMLYN_IOC_TERMINUS_BIND, &bind);
	if (ret)
		return ret;
	memset(entry, 0, p->terminus.arg.entry_size);
	*entry = to_party(p);
	entry->slot = slot;
	if (hide)
		entry->key = the_key();
	entry->length = f.length;
	entry->fragments = 1;
	memcpy(entry + 1, &f, sizeof(f));
	ret = ht_raw_post(&p->terminus) < 0 ||
	      ht_raw_done(&p->terminus, index, &status) ? -ETIMEDOUT : status;
	/* What is in mapped memory is ours to clear. */
	explicit_bzero(entry, p->terminus.arg.entry_size);
	return ret;
}

TEST_F_TIMEOUT(hostile_remains, no_key_of_what_is_gone, 300)
{
	int slots[SLOTS], watches[SLOTS], i, found;

	for (i = 0; i < SLOTS; i++) {
		slots[i] = make_slot(&self->p);
		ASSERT_LE(0, slots[i]);
		watches[i] = make_watch(&self->p, slots[i]);
		ASSERT_LE(0, watches[i]);
	}
	ASSERT_EQ(0, send_long(&self->p, (uint32_t)slots[0], true));
	found = remains();
	if (found < 0)
		SKIP(return, "no /proc/kcore here");
	/* That they would be found. */
	ASSERT_NE(0, found);
	for (i = 0; i < SLOTS / 2; i++) {
		ASSERT_EQ(0, ht_raw_id(self->p.fd, HAMLYN_IOC_UNWATCH,
				       (uint32_t)watches[i]));
		ASSERT_EQ(0, destroy(&self->p, slots[i]));
	}
	/* The others with the file, and the terminus. */
	party_close(&self->p);
	/* Stacks, of engines above all, are no memory that was freed: others write there. */
	for (i = 0; i < OTHERS; i++)
		ASSERT_EQ(0, send_long(&self->others[i],
				       self->others[i].slot.slot, false));
	EXPECT_EQ(0, remains());
}

/* ---- tickets that are descriptors ---- */

#define TICKETS	20	/* more than a terminus' first table has room for */

TEST_F_TIMEOUT(hostile_remains, no_key_of_a_ticket_that_is_gone, 300)
{
	int fds[TICKETS], i, found;

	ticket_of = to_party(&self->p).host | (uint64_t)self->p.slot.slot << 32;
	for (i = 0; i < TICKETS; i++) {
		fds[i] = party_make_ticket(&self->p, TICKET_BASE, TICKET_LENGTH);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(i, party_import_ticket(&self->p, fds[i]));
	}
	found = search(tickets_in);
	if (found < 0)
		SKIP(return, "no /proc/kcore here");
	/* Each twice: in its file, and in the table. */
	ASSERT_LE(2 * TICKETS, found);
	/* And in the slot. */
	ASSERT_LT(2 * TICKETS, remains());
	for (i = 0; i < TICKETS; i++)
		close(fds[i]);
	party_close(&self->p);
	for (i = 0; i < OTHERS; i++)
		ASSERT_EQ(0, send_long(&self->others[i],
				       self->others[i].slot.slot, false));
	EXPECT_EQ(0, remains());
}

TEST_HARNESS_MAIN
