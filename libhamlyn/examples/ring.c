// SPDX-License-Identifier: MIT
/*
 * ring: processes in a ring pass on a token, round and round, and then a block of
 * data. Each listens for the one before it and connects to the one behind it.
 */
#include "example.h"

const char *const program = "ring";

struct options {
	const char *device;
	int processes;
	unsigned long rounds;
	size_t block;
	pid_t pid;		/* of the first one: for names */
};

/* A place in the ring. */
struct place {
	const struct options *o;
	int number;
	struct h_dev *dev;
	struct h_manager *m;
	struct h_channel *from;
	struct h_channel *to;
};

static const char usage[] =
"usage: ring [-d DEVICE] [-p PROCESSES] [-n ROUNDS] [-s BYTES]\n"
"\n"
"Forks processes that pass a token round in a ring, and a block of data once, and\n"
"prints how long a step takes.\n"
"  -d DEVICE     /dev/hamlynN or shm:NAME (default: the library's choice)\n"
"  -p PROCESSES  how many, 2 to 64 (default 4)\n"
"  -n ROUNDS     how often the token goes round (default 1000)\n"
"  -s BYTES      length of the block (default 1048576)\n";

static const char *path_of(const struct options *o, int i, char *path, size_t size)
{
	snprintf(path, size, "@hamlyn-ring-%d.%d", o->pid, i % o->processes);
	return path;
}

/* ---- to neighbours ------------------------------------------------------ */

static void accept_previous(struct place *p, struct h_listener *listener)
{
	must(p->dev, h_channel_accept(listener, p->m, NULL, &p->from, 30 * SECOND),
	     "the previous one");
}

static void connect_next(struct place *p)
{
	const uid_t own = geteuid();
	const struct h_channel_attr attr = {
		/* Anybody could have taken that name. */
		.flags = H_CONNECT_WAIT, .uids = &own, .uid_count = 1,
	};
	char path[64];

	must(p->dev, h_channel_connect(p->m, path_of(p->o, p->number + 1, path,
						     sizeof(path)),
				       &attr, &p->to, 30 * SECOND), "the next one");
}

/* If all connected first, nobody would accept. */
static void join(struct place *p)
{
	struct h_listener *listener;
	char path[64];

	must(NULL, h_listener_create(path_of(p->o, p->number, path, sizeof(path)),
				     NULL, &listener), "listen");
	if (p->number % 2) {
		accept_previous(p, listener);
		connect_next(p);
	} else {
		connect_next(p);
		accept_previous(p, listener);
	}
	h_listener_destroy(listener);
}

/* ---- what goes round ---------------------------------------------------- */

static void receive(struct place *p, struct h_message *m)
{
	must(p->dev, h_channel_receive(p->from, m, 30 * SECOND), "receive");
}

/* The token says how many have had it. */
static uint64_t take_token(struct place *p)
{
	struct h_message m;
	uint64_t token;

	receive(p, &m);
	if (m.length != sizeof(token))
		die("that is no token: %zu bytes", m.length);
	memcpy(&token, m.data, sizeof(token));
	h_channel_release(p->from, &m);
	return token;
}

static void pass_token(struct place *p, uint64_t token)
{
	must(p->dev, h_channel_send(p->to, &token, sizeof(token), 30 * SECOND),
	     "send");
}

static void pass_tokens(struct place *p)
{
	uint64_t token, want = (uint64_t)p->number;
	unsigned long i;

	for (i = 0; i < p->o->rounds; i++) {
		if (p->number || i) {
			token = take_token(p);
			if (token != want)
				die("token %llu where %llu was due",
				    (unsigned long long)token,
				    (unsigned long long)want);
		}
		pass_token(p, want + 1);
		want += (uint64_t)p->o->processes;
	}
	if (!p->number && take_token(p) != want)
		die("the token was lost");
}

static void pass_block(struct place *p)
{
	size_t n = p->o->block, i;
	struct h_message m = {};
	void *block;

	must(p->dev, h_manager_alloc(p->m, n, &block), "memory");
	for (i = 0; i < n; i++)
		((unsigned char *)block)[i] = (unsigned char)(i * 7 + i / 251);
	if (p->number) {
		receive(p, &m);
		if (m.length != n || memcmp(m.data, block, n))
			die("place %d: the block was damaged", p->number);
	}
	must(p->dev, h_channel_send(p->to, p->number ? m.data : block, n,
				    30 * SECOND), "send");
	h_channel_release(p->from, &m);
	if (!p->number) {
		receive(p, &m);
		if (m.length != n || memcmp(m.data, block, n))
			die("the block was damaged");
		h_channel_release(p->from, &m);
	}
	h_manager_free(p->m, block);
}

static void print_time(const struct options *o, const char *what, int64_t begin,
		       unsigned long rounds)
{
	printf("%s: %.2f microseconds a step\n", what,
	       (double)(now_ns() - begin) / 1000.0 / (double)rounds /
	       o->processes);
}

static int run(const struct options *o, int number)
{
	struct place p = { .o = o, .number = number };
	int64_t begin;

	p.m = open_manager(o->device, &p.dev, 0);
	join(&p);
	begin = now_ns();
	pass_tokens(&p);
	if (!number)
		print_time(o, "token", begin, o->rounds);
	begin = now_ns();
	pass_block(&p);
	if (!number)
		print_time(o, "block", begin, 1);
	/* Each may close when it likes: the end comes behind all that was sent. */
	must(p.dev, h_channel_close(p.to, 30 * SECOND), "close");
	h_channel_close(p.from, SECOND);
	close_manager(p.m, p.dev);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	struct options o = { .processes = 4, .rounds = 1000, .block = 1 << 20 };
	int opt, i;

	while ((opt = getopt_long(argc, argv, "d:p:n:s:h", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			o.device = optarg;
			break;
		case 'p':
			o.processes = (int)number("-p", optarg, 2, 64);
			break;
		case 'n':
			o.rounds = number("-n", optarg, 1, 100000000);
			break;
		case 's':
			o.block = number("-s", optarg, 1, 16 << 20);
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (argc != optind) {
		fputs(usage, stderr);
		return 2;
	}
	o.pid = getpid();
	for (i = 1; i < o.processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("cannot fork: %s", strerror(errno));
		if (!pid)
			return run(&o, i);
	}
	run(&o, 0);
	return reap(o.processes - 1) ? 0 : 1;
}
