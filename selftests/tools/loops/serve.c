// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several clients, processes of their own, by way of one manager and its descriptor.
 *
 * Nothing here judges how long something takes, but for what a fast machine and a
 * slow one have in common: processor time, and calls for nothing.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <hamlyn/channel.h>

#include "hamlyn_test.h"
#include "serve.h"

#define CLIENTS		3
#define KILLED		1	/* this one */
#define MESSAGES	3000
#define WINDOW		100
#define LONGEST		40000
#define SHORT		100
#define PINGS_TICKS	5	/* of the timer, while there are messages */
#define FLOOD		20000	/* most messages that are sent before any is received */
#define TICK_MS		10
#define SETTLE_TICKS	5
#define IDLE_TICKS	50
#define IDLE_CPU_NS	(10 * HT_MS)
#define IDLE_CALLS	8	/* of the loop, in a time in which nothing happens */

enum kind { ECHO, TICKS, IDLE };

struct head {
	uint32_t kind;
	uint32_t number;
};

/* How far a client gets: its exit status, if it does not get further. */
enum step { CONNECT = 1, TALKED, FLOODED, TIMER, IDLED, STEPS };

/* ---- clients ------------------------------------------------------------ */

struct client {
	struct h_dev *dev;
	struct h_manager *m;
	struct h_channel *ch;
	uint32_t sent;
	uint32_t got;
	unsigned char data[LONGEST];
};

static size_t length_of(uint32_t number)
{
	uint64_t random = number;
	uint64_t any = ht_random(&random);

	return sizeof(struct head) + (number % 50 ? any % SHORT :
				      any % (LONGEST - sizeof(struct head)));
}

static bool connect_to(struct client *c, const char *path)
{
	const struct h_channel_attr attr = { .flags = H_CONNECT_WAIT };

	return !h_open(ht_device(), &c->dev) &&
	       !h_manager_create(c->dev, NULL, &c->m) &&
	       !h_channel_connect(c->m, path, &attr, &c->ch, ht_patience_ns());
}

static int send_one(struct client *c, size_t length, int64_t timeout)
{
	const struct head head = { .kind = ECHO, .number = c->sent };
	int ret;

	memcpy(c->data, &head, sizeof(head));
	ht_fill(c->data + sizeof(head), length - sizeof(head), c->sent);
	ret = h_channel_send(c->ch, c->data, length, timeout);
	if (!ret)
		c->sent++;
	return ret;
}

static bool is_next(const struct client *c, const struct h_message *m, size_t length)
{
	struct head head;

	if (m->length != length)
		return false;
	memcpy(&head, m->data, sizeof(head));
	length -= sizeof(head);
	return head.kind == ECHO && head.number == c->got &&
	       ht_match((const char *)m->data + sizeof(head), length, c->got) == length;
}

static bool receive_one(struct client *c, size_t length)
{
	struct h_message m;
	bool good;

	if (h_channel_receive(c->ch, &m, ht_patience_ns()) != 0)
		return false;
	good = is_next(c, &m, length);
	h_channel_release(c->ch, &m);
	c->got++;
	return good;
}

/* All sorts of lengths; as many on their way as there is room for. */
static bool exchange(struct client *c)
{
	uint32_t end = c->sent + MESSAGES;

	while (c->got != end) {
		bool more = c->sent != end && c->sent - c->got < WINDOW;
		/* With nothing on its way nobody else makes room. */
		int64_t timeout = c->sent == c->got ? ht_patience_ns() : H_NOWAIT;
		int ret = more ? send_one(c, length_of(c->sent), timeout) : -EAGAIN;

		if (ret && ret != -EAGAIN)
			return false;
		if (ret && !receive_one(c, length_of(c->got)))
			return false;
	}
	return true;
}

/* Until the server takes no more; nobody receives meanwhile. */
static bool flood(struct client *c)
{
	int tries = 0, ret = 0;

	while (tries < 20 && c->sent - c->got < FLOOD) {
		ret = send_one(c, SHORT, H_NOWAIT);
		if (ret && ret != -EAGAIN)
			return false;
		tries = ret ? tries + 1 : 0;
		if (ret)
			ht_sleep_ns(TICK_MS * HT_MS);
	}
	while (c->got != c->sent)
		if (!receive_one(c, SHORT))
			return false;
	return ret == -EAGAIN;
}

static bool ask(struct client *c, enum kind what, uint32_t *answer)
{
	struct head head = { .kind = what };
	struct h_message m;
	bool good;

	if (h_channel_request(c->ch, &head, sizeof(head), &m, ht_patience_ns()) != 0)
		return false;
	good = m.length == sizeof(head);
	if (good)
		memcpy(&head, m.data, sizeof(head));
	h_channel_release(c->ch, &m);
	*answer = head.number;
	return good && head.kind == what;
}

/* The timer gets its turn however many messages there are. */
static bool sees_ticks(struct client *c)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	uint32_t first, now;

	if (!ask(c, TICKS, &first))
		return false;
	do {
		if (!ask(c, TICKS, &now) || ht_now_ns() > end)
			return false;
	} while (now - first < PINGS_TICKS);
	return true;
}

static int run_client(const char *path, bool dies)
{
	struct client *c = calloc(1, sizeof(*c));
	uint32_t answer;

	if (!connect_to(c, path))
		return CONNECT;
	if (!exchange(c))
		return TALKED;
	if (!flood(c))
		return FLOODED;
	if (!sees_ticks(c))
		return TIMER;
	if (!ask(c, IDLE, &answer))
		return IDLED;
	if (dies)
		raise(SIGKILL);
	if (h_channel_close(c->ch, ht_patience_ns()) || h_manager_destroy(c->m))
		return STEPS;
	h_close(c->dev);
	return 0;
}

/* ---- the server --------------------------------------------------------- */

/* What has to be sent: a message that was received, or an answer of one's own. */
struct item {
	struct item *next;
	struct h_message m;
	struct head answer;
	bool own;
};

struct conn {
	struct h_channel *ch;
	pid_t peer;
	struct item *first;
	struct item **last;
	bool asks_idle;
	bool over;
	int end;		/* 0: the end, or how it broke */
};

static struct {
	const struct loop *loop;
	struct h_dev *dev;
	struct h_manager *m;
	struct h_listener *listener;
	struct conn conn[CLIENTS];
	int conns;
	uint32_t ticks;
	int64_t deadline;
	/* since the last tick */
	uint32_t happened;
	uint32_t calls;
	/* what was found */
	uint32_t most_calls;	/* while nothing happened */
	uint32_t quiet;		/* such times */
	uint32_t idle_since;	/* a tick, or 0 */
	int64_t idle_ns;
	int64_t idle_cpu_ns;
	uint32_t idle_calls;
	bool late;
} server;

static int64_t cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * HT_SEC +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
}

static void drop_first(struct conn *c)
{
	struct item *item = c->first;

	c->first = item->next;
	if (!c->first)
		c->last = &c->first;
	if (!item->own)
		h_channel_release(c->ch, &item->m);
	free(item);
}

/* What is not sent stays, and keeps the client from sending more. */
static void send_items(struct conn *c)
{
	while (c->first) {
		const struct item *item = c->first;
		const void *data = item->own ? &item->answer : item->m.data;
		size_t length = item->own ? sizeof(item->answer) : item->m.length;

		/* If it is not possible because nobody is there, receiving says so. */
		if (h_channel_send(c->ch, data, length, H_NOWAIT))
			return;
		server.happened++;
		drop_first(c);
	}
}

static struct item *add_item(struct conn *c)
{
	struct item *item = calloc(1, sizeof(*item));

	*c->last = item;
	c->last = &item->next;
	return item;
}

static void answer(struct conn *c, enum kind what, uint32_t number)
{
	struct item *item = add_item(c);

	item->own = true;
	item->answer = (struct head) { .kind = what, .number = number };
}

static void take(struct conn *c, struct h_message *m)
{
	struct head head = { .kind = ECHO };

	server.happened++;
	if (m->length >= sizeof(head))
		memcpy(&head, m->data, sizeof(head));
	if (head.kind == ECHO) {
		add_item(c)->m = *m;
		return;
	}
	if (head.kind == IDLE)
		c->asks_idle = true;
	else
		answer(c, TICKS, server.ticks);
	h_channel_release(c->ch, m);
}

static void end_conn(struct conn *c, int how)
{
	int i, left = CLIENTS;

	while (c->first)
		drop_first(c);
	h_channel_close(c->ch, H_NOWAIT);
	c->ch = NULL;
	c->over = true;
	c->end = how;
	for (i = 0; i < CLIENTS; i++)
		left -= server.conn[i].over;
	if (!left)
		server.loop->stop();
}

static void conn_ready(struct h_channel *ch, void *arg)
{
	struct conn *c = arg;
	struct h_message m;
	int ret;

	send_items(c);
	while ((ret = h_channel_receive(ch, &m, H_NOWAIT)) == 0)
		take(c, &m);
	send_items(c);
	if (ret != -EAGAIN)
		end_conn(c, ret);
}

static void manager_ready(void)
{
	server.calls++;
	h_manager_dispatch(server.m);
}

static void listener_ready(void)
{
	struct conn *c = &server.conn[server.conns];
	struct h_peer peer;

	if (server.conns == CLIENTS ||
	    h_channel_accept(server.listener, server.m, NULL, &c->ch, H_NOWAIT))
		return;
	h_channel_peer(c->ch, &peer);
	c->peer = peer.pid;
	c->last = &c->first;
	server.conns++;
	server.happened++;
	h_channel_on_ready(c->ch, conn_ready, c);
}

/* Whether it is called for nothing again and again. */
static void judge_calls(void)
{
	if (!server.happened) {
		server.quiet++;
		if (server.calls > server.most_calls)
			server.most_calls = server.calls;
	}
	server.happened = 0;
	server.calls = 0;
}

static bool all_idle(void)
{
	int i;

	for (i = 0; i < CLIENTS; i++)
		if (!server.conn[i].asks_idle)
			return false;
	return true;
}

static void end_idle(void)
{
	int i;

	server.idle_ns += ht_now_ns();
	server.idle_cpu_ns += cpu_ns();
	for (i = 0; i < CLIENTS; i++) {
		server.conn[i].asks_idle = false;
		answer(&server.conn[i], IDLE, 0);
		send_items(&server.conn[i]);
	}
}

/* Clients wait: for some ticks nothing happens, but the timer. */
static void watch_idle(void)
{
	uint32_t passed;

	if (!server.idle_since)
		server.idle_since = server.ticks;
	passed = server.ticks - server.idle_since;
	if (passed == SETTLE_TICKS) {
		server.idle_ns = -ht_now_ns();
		server.idle_cpu_ns = -cpu_ns();
		server.idle_calls = 0;
	} else if (passed > SETTLE_TICKS) {
		server.idle_calls += server.calls;
	}
	if (passed == SETTLE_TICKS + IDLE_TICKS)
		end_idle();
}

/* What is taken outside the dispatcher is told by the descriptor all the same. */
static void poll_in_passing(void)
{
	int64_t end = ht_now_ns() + HT_MS;

	do {
		h_manager_poll(server.m);
	} while (ht_now_ns() < end);
}

static void tick(void)
{
	server.ticks++;
	if (all_idle())
		watch_idle();
	judge_calls();
	if (!all_idle() && server.ticks % 3 == 0)
		poll_in_passing();
	if (ht_now_ns() > server.deadline) {
		server.late = true;
		server.loop->stop();
	}
}

static bool begin(const struct loop *loop, const char *path, uint32_t flags)
{
	const struct h_manager_attr attr = { .flags = flags };
	int fd;

	memset(&server, 0, sizeof(server));
	server.loop = loop;
	server.deadline = ht_now_ns() + 2 * ht_patience_ns();
	loop->begin();
	if (h_open(ht_device(), &server.dev) ||
	    h_manager_create(server.dev, &attr, &server.m) ||
	    h_listener_create(path, NULL, &server.listener))
		return false;
	fd = h_manager_fd(server.m);
	if (fd < 0)
		return false;
	loop->watch(LISTENER, h_listener_fd(server.listener), listener_ready);
	loop->watch(MANAGER, fd, manager_ready);
	loop->every(TICK_MS, tick);
	return true;
}

static bool finish(void)
{
	int i, err;

	server.loop->ignore(MANAGER);
	server.loop->ignore(LISTENER);
	for (i = 0; i < CLIENTS; i++)
		if (server.conn[i].ch)
			end_conn(&server.conn[i], -EBADE);
	h_listener_destroy(server.listener);
	err = h_manager_destroy(server.m);
	h_close(server.dev);
	server.loop->finish();
	return !err;
}

/* ---- what came of it ---------------------------------------------------- */

static int passed, failed;

static void check(const char *what, bool good)
{
	printf("%s - %s\n", good ? "ok" : "not ok", what);
	passed += good;
	failed += !good;
}

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Did all clients get past it? */
static bool past(const int *ends, int step)
{
	int i;

	for (i = 0; i < CLIENTS; i++)
		if (ends[i] < 0 || (ends[i] && ends[i] <= step))
			return false;
	return true;
}

/* Of those that were killed, or of the others. */
static bool ended_as_told(const pid_t *pids, bool killed)
{
	int i;

	for (i = 0; i < CLIENTS; i++) {
		const struct conn *c = &server.conn[i];
		bool is_killed = c->peer == pids[KILLED];

		if (killed == is_killed &&
		    (!c->over || c->end != (killed ? -ECONNRESET : -ENODATA)))
			return false;
	}
	return true;
}

static void judge(const pid_t *pids, const int *ends)
{
	printf("# %u ticks, %u of them quiet, at most %u calls in one\n",
	       server.ticks, server.quiet, server.most_calls);
	printf("# idle: %lld us of %lld us, %u calls\n",
	       (long long)server.idle_cpu_ns / 1000, (long long)server.idle_ns / 1000,
	       server.idle_calls);
	check("clients connect", server.conns == CLIENTS && past(ends, CONNECT));
	check("every message comes back, whole and in order", past(ends, TALKED));
	check("nothing is lost when a client does not receive for a while",
	      past(ends, FLOODED));
	check("the timer goes on while there are messages", past(ends, TIMER));
	check("the timer goes on while there are none",
	      past(ends, IDLED) && server.idle_ns > IDLE_TICKS * TICK_MS / 2 * HT_MS);
	check("nobody is called while nothing happens", server.most_calls <= IDLE_CALLS &&
	      server.idle_calls <= IDLE_CALLS);
	check("it sleeps while nothing happens", server.idle_cpu_ns > 0 &&
	      server.idle_cpu_ns < IDLE_CPU_NS);
	check("who closes is noticed", ended_as_told(pids, false) &&
	      past(ends, STEPS));
	check("who is killed is noticed", ended_as_told(pids, true));
	check("all of that within a while", !server.late);
}

static void serve_clients(const struct loop *loop, uint32_t flags)
{
	int ends[CLIENTS], files, i;
	pid_t pids[CLIENTS];
	bool good, clean;
	char path[64];

	snprintf(path, sizeof(path), "@hamlyn-loops-%d-%u", getpid(), flags);
	printf("# %s, %s\n", loop->name, flags ? "H_MANAGER_SINGLE" : "a manager with locks");
	fflush(stdout);
	for (i = 0; i < CLIENTS; i++) {
		pids[i] = ht_fork();
		if (!pids[i])
			_exit(run_client(path, i == KILLED));
	}
	files = open_files();
	good = begin(loop, path, flags);
	if (good)
		loop->run();
	for (i = 0; i < CLIENTS; i++)
		ends[i] = good ? ht_reap(pids[i]) : kill(pids[i], SIGKILL);
	clean = good && finish();
	check("it starts", good);
	if (!good)
		return;
	judge(pids, ends);
	check("it ends, and leaves no descriptor behind", clean && open_files() == files);
}

int serve(const struct loop *loop)
{
	serve_clients(loop, 0);
	serve_clients(loop, H_MANAGER_SINGLE);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
