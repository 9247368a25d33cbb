// SPDX-License-Identifier: MIT
/* The embedded device's tickets that are descriptors: sealed memory files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "low/msan.h"
#include "embedded/shm.h"

#define TICKET_MAGIC	0x3174666d68736d68ull	/* "hmshmft1" */
#define SEALS		(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define FIRST_ROOM	8

struct ticket_file {
	u64 magic;
	u64 identity[2];	/* the segment's */
	u64 key;		/* the slot's ticket key */
	u64 base;
	u64 length;
	u32 host;
	u32 slot;
};

/* The device is locked here: no cancellation points, see h__cancel_off(). */
static int write_file(int fd, const struct ticket_file *f)
{
	ssize_t n = syscall(SYS_write, fd, f, sizeof(*f));

	if (n < 0)
		return -errno;
	if (n != sizeof(*f))
		return -EIO;
	return fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno : 0;
}

int h__shm_slot_ticket_fd(struct h_slot *s, uint64_t base, uint64_t length,
			  int *fd)
{
	struct shm_segment *seg = shm_of(s->dev)->seg;
	struct ticket_file f = {
		.magic = TICKET_MAGIC,
		.identity = { seg->identity[0], seg->identity[1] },
		.key = READ_ONCE(seg->slots[s->number].slot.ticket_key),
		.base = base,
		.length = length,
		.host = s->host,
		.slot = s->number,
	};
	int file = memfd_create("hamlyn-ticket", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (file < 0)
		return -errno;
	err = write_file(file, &f);
	if (err)
		syscall(SYS_close, file);
	else
		*fd = file;
	return err;
}

/* Anybody may have given us anything. */
static int read_file(const struct shm_dev *shm, int fd, struct ticket_file *f)
{
	const struct hml_slot *slot;
	int seals = fcntl(fd, F_GET_SEALS);

	h__filled(f, sizeof(*f));
	if (seals < 0 || (seals & SEALS) != SEALS ||
	    syscall(SYS_pread64, fd, f, sizeof(*f), 0l) != sizeof(*f) ||
	    f->magic != TICKET_MAGIC ||
	    memcmp(f->identity, shm->seg->identity, sizeof(f->identity)))
		return -EBADF;
	slot = hml_port_slot(&shm->nic.port, f->slot);
	if (!slot || !f->key)
		return -EBADF;
	if (!smp_load_acquire(&slot->live) ||			/* B9 */
	    f->key != READ_ONCE(slot->ticket_key))
		return -ENOKEY;
	return 0;
}

/* ---- key table of a terminus, in this process' memory ---- */

static u32 free_index(const struct hml_terminus *t)
{
	u32 i;

	for (i = 0; i < t->ticket_count; i++)
		if (!t->tickets[i].key)
			break;
	return i;
}

static int grow(struct shm_sender *s)
{
	struct hml_terminus *t = &s->core;
	u32 n = t->ticket_count ? t->ticket_count * 2 : FIRST_ROOM;
	struct hml_ticket *tickets, *old = t->tickets;

	if (n > HAMLYN_MAX_TICKETS)
		return -ENOSPC;
	tickets = calloc(n, sizeof(*tickets));
	if (!tickets)
		return -ENOMEM;
	if (old)
		memcpy(tickets, old, t->ticket_count * sizeof(*old));
	h__shm_hold(s);
	t->tickets = tickets;
	t->ticket_count = n;
	h__shm_release(s);
	free(old);
	return 0;
}

static void put(struct shm_sender *s, u32 index, const struct hml_ticket *k)
{
	h__shm_hold(s);
	s->core.tickets[index] = *k;
	h__shm_release(s);
}

/* Host, slot and ticket key, as a ticket. A void one is one still. */
int h__shm_ticket_of_fd(const struct shm_dev *shm, int fd, struct h_ticket *k)
{
	struct ticket_file f;
	int err = read_file(shm, fd, &f);

	if (err && err != -ENOKEY)
		return err;
	*k = (struct h_ticket) {
		.host = f.host,
		.slot = f.slot,
		.key = f.key,
	};
	return 0;
}

int h__shm_terminus_import(struct h_terminus *t, int fd, uint32_t *index,
			   struct h_ticket *k)
{
	struct shm_sender *s = t->priv;
	struct ticket_file f;
	int err = read_file(s->shm, fd, &f);
	struct hml_ticket entry;
	u32 i;

	if (err == -ENOKEY)
		return h__refuse(t->dev, err,
				 "slot %u was destroyed or rekeyed", f.slot);
	if (err)
		return h__refuse(t->dev, err,
				 "no descriptor of a ticket, or of another segment");
	i = free_index(&s->core);
	if (i == s->core.ticket_count) {
		err = grow(s);
		if (err == -ENOSPC)
			return h__refuse(t->dev, err,
					 "the terminus has %u tickets already",
					 HAMLYN_MAX_TICKETS);
		if (err)
			return err;
	}
	entry = (struct hml_ticket) {
		.key = f.key,
		.base = f.base,
		.length = f.length,
		.host = f.host,
		.slot = f.slot,
	};
	put(s, i, &entry);
	k->host = f.host;
	k->slot = f.slot;
	k->base = f.base;
	k->length = f.length;
	*index = i;
	return 0;
}

int h__shm_terminus_drop(struct h_terminus *t, uint32_t index)
{
	static const struct hml_ticket none;
	struct shm_sender *s = t->priv;

	if (index >= s->core.ticket_count || !s->core.tickets[index].key)
		return -ENOKEY;
	put(s, index, &none);
	return 0;
}
