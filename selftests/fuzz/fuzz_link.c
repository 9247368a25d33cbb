// SPDX-License-Identifier: GPL-2.0-only
/*
 * hamlyn-run and its agents on other hosts, each of which takes what the other one says for
 * hostile: frames from an agent in any order, what an agent is to start, and --host.
 */
#include <fcntl.h>
#include <unistd.h>

#include "fuzz.h"
#include "hosts/far.h"
#include "message.h"
#include "hosts/start.h"

#define PROCS		8
#define FIRST		2		/* of the host that is far */
#define FAR_PROCS	3
#define STEPS		64
#define PIPE_BYTES	(1 << 20)

/* Instead of message.c: nothing is told */
void say(const char *format, ...)
{
	(void)format;
}

void *allocate(size_t n, size_t size)
{
	void *memory = calloc(n, size);

	MUST(memory);
	return memory;
}

void *enlarge(void *memory, size_t size)
{
	memory = realloc(memory, size);
	MUST(memory);
	return memory;
}

/* ---- frames from an agent ------------------------------------------------ */

static struct far far;
static int lost, refused, begun;
static size_t lines[2];

static void check_rank(int rank)
{
	MUST(!lost);
	MUST(rank >= FIRST && rank < FIRST + FAR_PROCS);
}

static void started(void *context, int rank, pid_t pid)
{
	(void)context;
	(void)pid;
	check_rank(rank);
	begun++;
}

static void unable(void *context, int rank, int err, bool exists)
{
	(void)err;
	(void)exists;
	started(context, rank, 0);
}

static void deaf(void *context, int rank)
{
	(void)context;
	check_rank(rank);
}

static void pmi(void *context, int rank, const char *text, size_t n)
{
	(void)context;
	check_rank(rank);
	MUST(n <= FRAME_BYTES);
	/* All of it can be read */
	MUST(fuzz_hash((const uint8_t *)text, n, 0));
}

static void take_lines(void *context, int rank, int which, const char *text, size_t n)
{
	pmi(context, rank, text, n);
	lines[which] += n;
	/* No more than there is room for */
	MUST(lines[which] <= WINDOW_BYTES);
}

static void ended(void *context, int rank, pid_t pid, int status)
{
	(void)context;
	(void)pid;
	(void)status;
	check_rank(rank);
}

static void told(void *context, const struct host *host, const char *why)
{
	(void)context;
	MUST(host == far.host && *why);
}

static void on_refused(void *context, const struct host *host, const char *why)
{
	(void)context;
	(void)why;
	MUST(host == far.host);
	MUST(!refused++ || !lost);
}

static void on_lost(void *context, const struct host *host, const char *why)
{
	told(context, host, why);
	MUST(!lost++);
}

static const struct far_events events = {
	.started = started, .unable = unable, .deaf = deaf, .pmi = pmi, .lines = take_lines,
	.ended = ended, .refused = on_refused, .lost = on_lost,
};

static void put_bytes(int fd, const void *data, size_t n)
{
	/* A pipe that is full has enough */
	if (write(fd, data, n) < 0)
		return;
}

/* One that may be right */
static void put_frame(struct fuzz *f, int fd)
{
	uint8_t data[512];
	uint32_t n = fuzz_below(f, sizeof(data) + 1);
	uint32_t header[3] = { fuzz_below(f, FRAME_TYPES + 1), fuzz_below(f, PROCS), n };

	fuzz_bytes(f, data, n);
	if (fuzz_u8(f) == 255)
		header[fuzz_below(f, 3)] = fuzz_u32(f);
	put_bytes(fd, header, sizeof(header));
	put_bytes(fd, data, n);
}

static void put_flood(struct fuzz *f, int fd)
{
	static const uint8_t data[FRAME_BYTES];
	const uint32_t header[3] = { FRAME_OUT + fuzz_below(f, 2), FIRST, FRAME_BYTES };

	put_bytes(fd, header, sizeof(header));
	put_bytes(fd, data, sizeof(data));
}

static void do_order(struct fuzz *f)
{
	static const enum frame_type orders[] = { FRAME_SIGNAL, FRAME_END, FRAME_KILL };

	far_order(&far, orders[fuzz_below(f, FUZZ_COUNT(orders))], 15);
}

static void give_room(struct fuzz *f)
{
	int which = fuzz_below(f, 2);

	if (far.state != FAR_GONE)
		lines[which] = 0;
	far_room(&far, which);
}

static void step(struct fuzz *f, int fd, int64_t *now)
{
	switch (fuzz_below(f, 8)) {
	case 0:
		put_flood(f, fd);
		break;
	case 1:
		do_order(f);
		break;
	case 2:
		give_room(f);
		break;
	case 3:
		*now += fuzz_below(f, 100) * 1000;
		far_check(&far, *now);
		break;
	default:
		put_frame(f, fd);
	}
	if (far.state != FAR_GONE)
		far_serve(&far, true, *now);
	MUST((far.state == FAR_GONE) >= (lost > 0));
	MUST(begun <= FAR_PROCS && far.starting >= 0);
	MUST(far.feed <= WINDOW_BYTES);
}

static void serve_agent(struct fuzz *f)
{
	static const struct host host = { .name = "far", .first = FIRST, .processes = FAR_PROCS };
	static const struct options options = { .processes = PROCS };
	int to[2], from[2], i;
	int64_t now = 0;

	MUST(!pipe2(to, O_CLOEXEC | O_NONBLOCK) && !pipe2(from, O_CLOEXEC | O_NONBLOCK));
	MUST(fcntl(from[1], F_SETPIPE_SZ, PIPE_BYTES) >= 0);
	far = (struct far){
		.host = &host, .options = &options, .events = &events, .state = FAR_RUNNING,
		.starting = FAR_PROCS, .feed = WINDOW_BYTES,
	};
	link_init(&far.link, from[0], to[1]);
	lost = 0;
	refused = 0;
	begun = 0;
	memset(lines, 0, sizeof(lines));
	for (i = 0; i < STEPS && f->left && far.state != FAR_GONE; i++)
		step(f, from[1], &now);
	far_uninit(&far);
	close(from[1]);
	close(to[0]);
}

/* ---- what is to be started ----------------------------------------------- */

static void check_start(const struct start *start)
{
	int i;

	MUST(start->options.processes <= MAX_PROCESSES && start->processes >= 1);
	MUST(start->first >= 0 && start->first + start->processes <= start->options.processes);
	MUST(start->folder && start->options.command[0]);
	for (i = 0; start->variables[i]; i++)
		MUST(strlen(start->variables[i]) <= START_BYTES);
	for (i = 0; start->options.command[i]; i++)
		MUST(strlen(start->options.command[i]) <= START_BYTES);
}

static void unpack(struct fuzz *f)
{
	struct start start;

	if (!start_unpack(&start, (const char *)f->at, f->left))
		check_start(&start);
	start_free(&start);
}

/* ---- --host -------------------------------------------------------------- */

static void divide(struct fuzz *f)
{
	static struct hosts hosts;
	int processes = 1 + (int)fuzz_below(f, MAX_PROCESSES), i, n = 0;
	char *text = fuzz_text(f);

	memset(&hosts, 0, sizeof(hosts));
	if (!hosts_parse(&hosts, text) && !hosts_divide(&hosts, processes)) {
		for (i = 0; i < hosts.n; i++) {
			MUST(hosts.host[i].first == n && hosts.host[i].processes >= 0);
			MUST(!hosts.host[i].slots ||
			     hosts.host[i].processes <= hosts.host[i].slots);
			MUST(hosts.host[i].name[0] != '-' && hosts.host[i].name[0]);
			n += hosts.host[i].processes;
		}
		MUST(n == processes);
	}
	free(text);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };

	switch (fuzz_below(&f, 4)) {
	case 0:
		unpack(&f);
		break;
	case 1:
		divide(&f);
		break;
	default:
		serve_agent(&f);
	}
	return 0;
}
