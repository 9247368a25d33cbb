// SPDX-License-Identifier: GPL-2.0-only
/*
 * A segment file whose tables say anything, with users alive and dead: h_open() refuses
 * it or lives with it, and so does what a process does with objects of its own.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "fuzz_device.h"

#define FILE_SIZE	SHM_MIN_SIZE
#define ALIVE		5		/* attachments that others hold: 5 and 6 */
#define MOST_CHANGES	24

static char spec[64];
static char path[96];
static int file = -1;
static struct shm_segment *seg;		/* of the others */
static struct shm_segment *pristine;
static size_t table_bytes;

static void end(void)
{
	unlink(path);
}

/* Of each kind something, made by attachment 0, which is dead by now; some is given to 5. */
static void make_pristine(void)
{
	struct h_terminus_attr terminus = { .entries = 8, .entry_size = 256 };
	struct h_slot_attr at = { .length = 64, .meta_count = 2 };
	struct h_terminus *t;
	struct h_ticket k;
	struct h_slot *slot;
	struct h_watch *w;
	struct h_dev *dev;
	int i;

	MUST(!h_open(spec, &dev));
	MUST(!h_area_alloc(dev, 4096, &at.area));
	MUST(!h_area_alloc(dev, 4096, &at.meta_area));
	MUST(!h_nq_create(dev, 16, &at.nq));
	for (i = 0; i < 3; i++) {
		MUST(!h_slot_create(dev, &at, &slot));
		MUST(!h_slot_ticket(slot, 0, 0, 0, &k));
		MUST(!h_watch(dev, &k, at.nq, 7, &w));
		MUST(!h_terminus_create(dev, &terminus, &t));
		h_send_msg(t, &k, "x", 1, NULL, 0);
	}
	k.key++;
	h_send_msg(t, &k, "x", 1, NULL, 0);
	memcpy(pristine, shm_of(dev)->seg, FILE_SIZE);
	pristine->slots[1].owner = ALIVE + 1;
	pristine->watches[1].owner = ALIVE + 1;
	pristine->termini[1].owner = ALIVE + 1;
	h_close(dev);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct flock l = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + ALIVE, .l_len = 2,
	};

	(void)argc;
	(void)argv;
	snprintf(spec, sizeof(spec), "shm:fuzz-segment-%d,size=%lluK", getpid(),
		 (unsigned long long)FILE_SIZE >> 10);
	snprintf(path, sizeof(path), "/dev/shm/hamlyn-%u-fuzz-segment-%d",
		 geteuid(), getpid());
	pristine = malloc(FILE_SIZE);
	MUST(pristine);
	make_pristine();
	file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	MUST(file >= 0 && !posix_fallocate(file, 0, FILE_SIZE));
	atexit(end);
	MUST(!fcntl(file, F_OFD_SETLK, &l));
	seg = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	MUST(seg != MAP_FAILED);
	/* And the first pages of data: NQs are there. */
	table_bytes = (pristine->data_first + 8) * SHM_PAGE;
	return 0;
}

/* ---- what the tables say ------------------------------------------------- */

/* First ones, last ones, and others. */
static uint32_t index_of(struct fuzz *f, uint32_t n)
{
	uint8_t how = fuzz_u8(f);

	return how < 200 ? how % 4 : how < 240 ? n - 1 - how % 4 : fuzz_u16(f) % n;
}

#define PLACE(member)	offsetof(struct shm_segment, member)

static size_t place_in_record(struct fuzz *f)
{
	static const struct {
		size_t at, size;
		uint32_t count;
	} tables[] = {
		{ PLACE(termini), sizeof(struct shm_terminus), SHM_MAX_TERMINI },
		{ PLACE(nqs), sizeof(struct shm_nq), SHM_MAX_NQS },
		{ PLACE(slots), sizeof(struct shm_slot), SHM_MAX_SLOTS },
		{ PLACE(areas), sizeof(struct shm_area), SHM_MAX_AREAS },
		{ PLACE(watches), sizeof(struct shm_watch), SHM_MAX_WATCHES },
		{ PLACE(audit), sizeof(struct shm_audit_entry), SHM_AUDIT_ENTRIES },
	};
	uint32_t i = fuzz_below(f, FUZZ_COUNT(tables));

	return tables[i].at + tables[i].size * index_of(f, tables[i].count) +
	       fuzz_u8(f) % tables[i].size / 4 * 4;
}

static size_t place_of(struct fuzz *f)
{
	static const size_t head[] = {
		PLACE(magic), PLACE(abi), PLACE(packet_size), PLACE(guesses), PLACE(changes),
		PLACE(size), PLACE(data_first), PLACE(pages), PLACE(page_owners),
		PLACE(retired), PLACE(slot_hint), PLACE(attach_hint), PLACE(watch_end),
		PLACE(downs), PLACE(audit_next), PLACE(link), PLACE(host), PLACE(fabric),
		PLACE(bridge.owner), PLACE(bridge.peers), PLACE(bridge.peer[0].host),
		PLACE(bridge.peer[0].state), PLACE(bridge.rung), PLACE(bridge.asleep),
	};
	uint8_t how = fuzz_u8(f);

	if (how < 160)
		return place_in_record(f);
	if (how < 230)
		return head[how % FUZZ_COUNT(head)];
	if (how < 245)
		return pristine->page_owners + (size_t)fuzz_u16(f) % 2048 * 2;
	return (fuzz_u32(f) % (table_bytes - 8)) & ~3u;
}

static uint64_t value_of(struct fuzz *f)
{
	static const uint64_t owners[] = { 0, 1, ALIVE + 1, ALIVE + 2, SHM_MAX_ATTACH,
					   SHM_MAX_ATTACH + 1 };
	uint8_t how = fuzz_u8(f);

	switch (how & 7) {
	case 0:
		return owners[(how >> 3) % FUZZ_COUNT(owners)];
	case 1:
		return FILE_SIZE - (how >> 3);
	case 2:
		return fuzz_u16(f);
	default:
		return fuzz_number(f, 1 + (SHM_MAX_SLOTS << (how >> 6)));
	}
}

static void change(struct fuzz *f)
{
	uint8_t bytes = fuzz_u8(f) & 1 ? 8 : 4;
	size_t at = place_of(f);
	uint64_t value = value_of(f);

	if (at > table_bytes - 8)
		at = table_bytes - 8;
	memcpy((char *)seg + at, &value, bytes);
}

/* Who lives and stands still inside the NIC is waited for; that is another test's. */
static void let_living_move(void)
{
	uint32_t i;

	for (i = 0; i < SHM_MAX_TERMINI; i++) {
		struct shm_terminus *t = &seg->termini[i];

		if (t->hold & 1 && (t->owner == ALIVE + 1 || t->owner == ALIVE + 2))
			t->hold++;
	}
	/* A segment that is down, or not fed, is one that works. */
	seg->link = (struct hml_link) {};
}

/* ---- and what one does with it ------------------------------------------- */

struct own {
	struct h_dev *dev;
	struct h_slot_attr at;
	struct h_slot *slot;
	struct h_terminus *t;
	struct h_watch *watch;
	struct h_ticket ticket;
};

static bool make_own(struct own *o)
{
	const struct h_terminus_attr terminus = { .entries = 8, .entry_size = 256 };

	o->at = (struct h_slot_attr) { .length = 64 };
	return !h_area_alloc(o->dev, 5000, &o->at.area) &&
	       !h_nq_create(o->dev, 8, &o->at.nq) &&
	       !h_slot_create(o->dev, &o->at, &o->slot) &&
	       !h_terminus_create(o->dev, &terminus, &o->t) &&
	       !h_slot_ticket(o->slot, 0, 0, 0, &o->ticket);
}

/* What is ours works, whatever the others' says. */
static void use_own(struct own *o)
{
	struct hamlyn_audit_entry audit[4];
	struct hamlyn_nq_entry e;
	struct hamlyn_stats stats;
	uint64_t sequence = 0;
	int fd;

	MUST(h_send_msg(o->t, &o->ticket, "hello", 5, NULL, 0) >= 0);
	MUST(h_recv(o->at.nq, &e) == 1 && e.slot == h_slot_number(o->slot));
	MUST(!memcmp(h_area_addr(o->at.area), "hello", 5));
	if (!h_watch(o->dev, &o->ticket, o->at.nq, 9, &o->watch))
		h_recv(o->at.nq, &e);
	o->ticket.key++;
	h_send_msg(o->t, &o->ticket, "hello", 5, NULL, 0);
	MUST(h_recv(o->at.nq, &e) == 0);
	MUST(h_audit(o->dev, audit, 4, &sequence) >= 0);
	h_dev_stats(o->dev, &stats);
	if (!h_slot_ticket_fd(o->slot, 0, 0, &fd)) {
		h_terminus_import(o->t, fd, &o->ticket);
		close(fd);
	}
	h_slot_rekey(o->slot);
	h_recv(o->at.nq, &e);
	MUST(!h_slot_destroy(o->slot));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	struct own o = {};
	struct h_dev *second;
	uint32_t i;

	memcpy(seg, pristine, table_bytes);
	memset((char *)seg + table_bytes, 0, 64 * SHM_PAGE);
	for (i = 0; f.left && i < MOST_CHANGES; i++)
		change(&f);
	let_living_move();
	if (h_open(spec, &o.dev))
		return 0;
	if (make_own(&o))
		use_own(&o);
	if (!h_open(spec, &second))
		h_close(second);
	h_close(o.dev);
	return 0;
}
