// SPDX-License-Identifier: GPL-2.0-only
/* read() and write(), sleeping or not: how a user without Hamlyn would do it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "system/fdchan.h"
#include "base/wait.h"

struct fd_chan {
	struct chan chan;
	int in;
	int out;
};

static inline struct fd_chan *to_fd(struct chan *chan)
{
	return container_of(chan, struct fd_chan, chan);
}

struct fd_stage *fd_stage_new(void)
{
	struct fd_stage *stage = malloc(sizeof(*stage));

	if (!stage) {
		fail("out of memory");
		return NULL;
	}
	memset(stage->fds, 0xff, sizeof(stage->fds));
	return stage;
}

struct fd_stage *fd_stage_both(const int ends[2])
{
	struct fd_stage *stage = fd_stage_new();
	int side;

	for (side = 0; side < 2; side++) {
		if (!stage) {
			close(ends[side]);
			continue;
		}
		stage->fds[side][0] = ends[side];
		stage->fds[side][1] = dup(ends[side]);
	}
	return stage;
}

void fd_stage_free(void *data)
{
	struct fd_stage *stage = data;
	int side, i;

	for (side = 0; side < 2; side++)
		for (i = 0; i < 2; i++)
			if (stage->fds[side][i] >= 0)
				close(stage->fds[side][i]);
	free(stage);
}

struct chan *fd_open(struct side *side, void *data, const struct system *system)
{
	struct fd_stage *stage = data;
	struct fd_chan *fd = calloc(1, sizeof(*fd));

	if (!fd) {
		fail("out of memory");
		return NULL;
	}
	fd->chan.system = system;
	fd->chan.side = side;
	fd->in = stage->fds[side->id][0];
	fd->out = stage->fds[side->id][1];
	/* With our copies of the peer's ends open we would never see it go. */
	close(stage->fds[!side->id][0]);
	close(stage->fds[!side->id][1]);
	fd->chan.in = chan_alloc(chan_room());
	fd->chan.out = chan_alloc(chan_room());
	if (!fd->chan.in || !fd->chan.out) {
		fd_close(&fd->chan);
		return NULL;
	}
	return &fd->chan;
}

static int never_sleep(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return fail("cannot make a descriptor non-blocking: %s", strerror(errno));
	return 0;
}

struct chan *fd_open_spin(struct side *side, void *stage, const struct system *system)
{
	struct chan *chan = fd_open(side, stage, system);

	if (chan && (never_sleep(to_fd(chan)->in) < 0 || never_sleep(to_fd(chan)->out) < 0)) {
		fd_close(chan);
		return NULL;
	}
	return chan;
}

void fd_close(struct chan *chan)
{
	free(chan->in);
	free(chan->out);
	free(to_fd(chan));
}

/* A byte stream cannot carry an empty message: one byte stands for it. */
static size_t wire_size(const struct chan *chan)
{
	return chan->size ? chan->size : 1;
}

void *fd_reserve(struct chan *chan)
{
	return chan_out(chan);
}

/* May the call that has just failed be made again? */
static inline bool again(struct wait *wait)
{
	return errno == EINTR || (errno == EAGAIN && wait_more(wait));
}

int fd_commit(struct chan *chan)
{
	struct wait wait = WAIT("reader");
	const unsigned char *buffer = chan_out(chan);
	size_t size = wire_size(chan);
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = write(to_fd(chan)->out, buffer + done, size - done);
		if (n < 0 && again(&wait))
			continue;
		if (n <= 0)
			return fail("%s: cannot write %zu bytes: %s",
				    chan->system->name, size, strerror(errno));
		done += (size_t)n;
	}
	chan->out_pos = chan_next(chan, chan->out_pos);
	return 0;
}

const void *fd_take(struct chan *chan)
{
	struct wait wait = WAIT("writer");
	unsigned char *buffer = chan_in(chan);
	size_t size = wire_size(chan);
	size_t done = 0;
	ssize_t n;

	while (done < size) {
		n = read(to_fd(chan)->in, buffer + done, size - done);
		if (n < 0 && again(&wait))
			continue;
		if (n <= 0) {
			fail("%s: cannot read %zu bytes: %s", chan->system->name,
			     size, n ? strerror(errno) : "the other process ended");
			return NULL;
		}
		done += (size_t)n;
	}
	chan->in_pos = chan_next(chan, chan->in_pos);
	return buffer;
}

int fd_release(struct chan *chan)
{
	(void)chan;
	return 0;
}
