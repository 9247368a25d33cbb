// SPDX-License-Identifier: GPL-2.0-only
/* The list of systems, and what their channels have in common. */
#include <errno.h>
#include <string.h>

#include "system/chan.h"
#include "base/payload.h"

/* The limit is last: a reader compares from left to right. */
const struct system *const systems[] = {
	&sys_hamlyn,
	&sys_hamlyn_block,
	&sys_channel,
	&sys_channel_block,
	&sys_fast,
	&sys_unix_stream,
	&sys_unix_stream_spin,
	&sys_unix_seqpacket,
	&sys_unix_seqpacket_spin,
	&sys_pipe,
	&sys_pipe_spin,
	&sys_tcp,
	&sys_tcp_spin,
	&sys_vsock,
	&sys_vsock_spin,
	&sys_eventfd,
	&sys_vm_writev,
	&sys_uring,
	&sys_uring_spin,
	&sys_zeromq,
	&sys_nng,
	&sys_dbus,
	&sys_ucx,
	&sys_ucx_put,
	&sys_ucx_tag,
	&sys_libfabric_shm,
	&sys_libfabric_tcp,
	&sys_libfabric_hamlyn_rxm,
	&sys_libfabric_hamlyn_rdm,
	&sys_libfabric_hamlyn_msg,
	&sys_openmpi,
	&sys_mpich,
	&sys_rxe_send,
	&sys_rxe_write,
	&sys_shm,
	&sys_limit,
};

const size_t systems_count = ARRAY_SIZE(systems);

_Static_assert(ARRAY_SIZE(systems) <= SYSTEMS_MAX, "raise SYSTEMS_MAX");

const struct system *system_find(const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < systems_count; i++)
		if (strlen(systems[i]->name) == length &&
		    !memcmp(systems[i]->name, name, length))
			return systems[i];
	return NULL;
}

static int unknown_system(const char *name, size_t length)
{
	char known[1024] = "";
	size_t i;

	for (i = 0; i < systems_count; i++) {
		if (i)
			strncat(known, ", ", sizeof(known) - strlen(known) - 1);
		strncat(known, systems[i]->name, sizeof(known) - strlen(known) - 1);
	}
	return fail("no system is called \"%.*s\"; there are %s", (int)length, name,
		    known);
}

int systems_known(const char *names)
{
	size_t length;

	for (;; names += length + 1) {
		length = strcspn(names, ",");
		if (!system_find(names, length))
			return unknown_system(names, length);
		if (!names[length])
			return 0;
	}
}

bool system_takes(const struct system *system, enum test_kind test, size_t size)
{
	if (system->only_size && size != system->only_size)
		return false;
	if (system->max_size && size > system->max_size())
		return false;
	/* No program of others keeps a timetable. */
	if (test == TEST_LOAD)
		return !system->external && system->tests & (1U << TEST_RATE);
	return system->tests & (1U << test);
}

/* NULL: it can be measured here. */
const char *system_missing(const struct system *system, const struct options *options)
{
	if (system->missing)
		return system->missing(options);
	if (system->installed && !system->installed())
		return "it is not installed";
	return NULL;
}

static size_t room = CHAN_BYTES;

size_t chan_room(void)
{
	return room;
}

void chan_set_room(size_t bytes)
{
	room = bytes < 4096 ? 4096 : bytes;
}

/* Memory for private buffers; touched, so that no test pays for its pages. */
bool chan_fits(const struct chan *chan, size_t length)
{
	if (length == chan->size)
		return true;
	fail("a message of %zu bytes where %zu were due", length, chan->size);
	return false;
}

unsigned char *chan_alloc(size_t bytes)
{
	void *p;

	if (posix_memalign(&p, 4096, bytes)) {
		fail("no memory for %zu bytes of buffers", bytes);
		return NULL;
	}
	memset(p, 1, bytes);
	return p;
}

static size_t stride_of(size_t size)
{
	return size ? (size + CHAN_ALIGN - 1) & ~((size_t)CHAN_ALIGN - 1) : CHAN_ALIGN;
}

static uint32_t count_of(enum test_kind test, size_t size)
{
	size_t count = CHAN_WINDOW / stride_of(size);

	if (test == TEST_LAT)
		return 1;
	if (count < CHAN_MIN_COUNT)
		return CHAN_MIN_COUNT;
	return count > CHAN_MAX_COUNT ? CHAN_MAX_COUNT : (uint32_t)count;
}

size_t chan_need(enum test_kind test, size_t size)
{
	return count_of(test, size) * stride_of(size);
}

static void choose_geometry(struct chan *chan, enum test_kind test, size_t size)
{
	chan->size = size;
	chan->stream = test != TEST_LAT;
	chan->stride = stride_of(size);
	chan->count = count_of(test, size);
	chan->out_pos = 0;
	chan->in_pos = 0;
}

/* Get ready for one test at one size. The first swap keeps the last apart. */
int chan_prepare(struct chan *chan, enum test_kind test, size_t size)
{
	uint64_t mine = (uint64_t)test << 32 | size;
	uint64_t theirs;
	uint32_t i;

	if (chan->system->settle && chan->system->settle(chan) < 0)
		return -1;
	if (pair_swap(chan->side, &mine, &theirs, sizeof(mine)) < 0)
		return -1;
	if (mine != theirs)
		return fail("the two processes lost step");
	choose_geometry(chan, test, size);
	if (chan->out)
		for (i = 0; i < chan->count; i++)
			payload_fill(chan->out + i * chan->stride, size, i);
	if (chan->out && chan->side->options->corrupt)
		for (i = 0; size && i < chan->count; i++)
			chan->out[i * chan->stride + size - 1] ^= 1;
	if (chan->system->prepare && chan->system->prepare(chan) < 0)
		return -1;
	return pair_swap(chan->side, &mine, &theirs, sizeof(mine));
}
