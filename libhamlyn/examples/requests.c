// SPDX-License-Identifier: MIT
/*
 * requests: one server process with one event loop, and many client processes under
 * different users, each of which sees to it that it gets its own answers.
 */
#include <grp.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "example.h"

const char *const program = "requests";

#define FIRST_UID	20000
#define MAX_CLIENTS	2000
#define BUFFERS		4	/* a client has one request under way */

struct options {
	const char *device;
	unsigned long clients;
	unsigned long requests;
	bool tickets;
};

static const char usage[] =
"usage: requests [-d DEVICE] [-c CLIENTS] [-n REQUESTS] [-t]\n"
"\n"
"Forks client processes that send requests to this one, and check that each answer is\n"
"theirs; prints requests per second. As root, and on a kernel device, each client is\n"
"another user.\n"
"  -d DEVICE    /dev/hamlynN or shm:NAME (default: the library's choice)\n"
"  -c CLIENTS   how many, 1 to 2000 (default 100)\n"
"  -n REQUESTS  of each client (default 1000)\n"
"  -t           connect by tickets that are descriptors\n";

struct request {
	uint64_t secret;	/* of the client, which no other one knows */
	uint64_t number;
	unsigned char filler[200];
};

struct answer {
	uint64_t number;
	uint64_t sum;		/* of all of the request */
	int64_t pid;		/* of the client, as the kernel says */
	int64_t uid;
};

/* ---- clients ------------------------------------------------------------ */

static void check(const struct h_message *m, const struct request *r, size_t length)
{
	struct answer a;

	if (m->length != sizeof(a))
		die("an answer of %zu bytes", m->length);
	memcpy(&a, m->data, sizeof(a));
	if (a.number != r->number || a.sum != fnv(FNV_BEGIN, r, length) ||
	    a.pid != getpid() || a.uid != geteuid())
		die("process %d has got an answer that is not its own", getpid());
}

static void ask(const struct options *o, struct h_dev *dev, struct h_channel *ch)
{
	struct request r = { 0 };
	struct h_message m;
	size_t length;

	if (getrandom(&r.secret, sizeof(r.secret), 0) != sizeof(r.secret))
		die("no random number");
	for (; r.number < o->requests; r.number++) {
		length = sizeof(r) - r.number % sizeof(r.filler);
		r.filler[r.number % sizeof(r.filler)]++;
		must(dev, h_channel_request(ch, &r, length, &m, 60 * SECOND), "request");
		check(&m, &r, length);
		h_channel_release(ch, &m);
	}
}

static int client(const struct options *o, const char *path, uid_t server)
{
	const struct h_channel_attr attr = {
		.flags = H_CONNECT_WAIT | (o->tickets ? H_CONNECT_TICKETS : 0),
		.buffers = BUFFERS, .buffer_size = 256, .max_buffer_size = 256,
		/* Anybody could have taken that name. */
		.uids = &server,
		.uid_count = 1,
		.max_message = sizeof(struct answer),
	};
	struct h_channel *ch;
	struct h_manager *m;
	struct h_dev *dev;

	m = open_manager(o->device, &dev, 64);
	must(dev, h_channel_connect(m, path, &attr, &ch, 60 * SECOND), "connect");
	ask(o, dev, ch);
	must(dev, h_channel_close(ch, 60 * SECOND), "close");
	close_manager(m, dev);
	return 0;
}

/* The embedded device is for processes of one user. */
static void change_user(const struct options *o, unsigned long i)
{
	const char *device = o->device ? o->device : getenv("HAMLYN_DEVICE");
	uid_t uid = FIRST_UID + (uid_t)i;

	if (geteuid() || (device && !strncmp(device, "shm:", 4)) ||
	    (!device && access("/dev/hamlyn0", R_OK | W_OK)))
		return;
	if (setgroups(0, NULL) || setgid(uid) || setuid(uid))
		die("cannot become user %u: %s", uid, strerror(errno));
}

static void fork_clients(const struct options *o, const char *path, pid_t *children)
{
	uid_t server = geteuid();
	unsigned long i;
	pid_t pid;

	for (i = 0; i < o->clients; i++) {
		pid = fork();
		if (pid < 0)
			die("cannot fork: %s", strerror(errno));
		children[i] = pid;
		if (pid)
			continue;
		change_user(o, i);
		exit(client(o, path, server));
	}
}

/* ---- the server --------------------------------------------------------- */

struct server {
	struct h_dev *dev;
	struct h_manager *m;
	struct h_listener *listener;
	unsigned long expected;
	pid_t child[MAX_CLIENTS];	/* our clients: anybody else may come, too */
	unsigned long closed;	/* of those */
	unsigned long served;
	unsigned long lost;	/* of those, that broke off */
	unsigned long users;
	uid_t seen[MAX_CLIENTS];
	struct session *sessions;
	int64_t begin;
};

/* One client. */
struct session {
	struct session *next;
	struct session **at;	/* what points to it */
	struct server *server;
	struct h_channel *ch;
	struct h_peer peer;
	struct answer answer;
	struct h_message request;	/* it is to: released, kept for its number */
	bool ours;
	bool due;		/* the answer is to be sent */
};

static void make_answer(struct session *c, const struct h_message *m)
{
	c->answer = (struct answer) {
		.sum = fnv(FNV_BEGIN, m->data, m->length),
		.pid = c->peer.pid,
		.uid = c->peer.uid,
	};
	if (m->length >= offsetof(struct request, filler))
		memcpy(&c->answer.number, (const char *)m->data +
		       offsetof(struct request, number), sizeof(c->answer.number));
	c->due = true;
}

/* -EAGAIN: the channel calls back when it can be tried again. */
static int send_answer(struct session *c)
{
	int ret = c->due ? h_channel_reply(c->ch, &c->request, &c->answer, sizeof(c->answer),
					   H_NOWAIT) : 0;

	if (!ret) {
		c->server->served += c->due;
		c->due = false;
	}
	return ret;
}

/* Who does not take an answer is not asked for more: that is all it takes. */
static int serve_one(struct session *c)
{
	struct h_message m;
	int ret;

	ret = send_answer(c);
	if (ret)
		return ret;
	ret = h_channel_receive(c->ch, &m, H_NOWAIT);
	if (ret)
		return ret;
	make_answer(c, &m);
	c->request = m;
	h_channel_release(c->ch, &m);
	return send_answer(c);
}

static void begin_session(struct server *s, struct session *c)
{
	c->server = s;
	c->at = &s->sessions;
	c->next = s->sessions;
	if (c->next)
		c->next->at = &c->next;
	s->sessions = c;
}

/* Who has got all its answers may never look whether we have ended: no wait for that. */
static void end_session(struct session *c)
{
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	h_channel_close(c->ch, H_NOWAIT);
	free(c);
}

/* Called while there is something to be done: a few, then the next client's. */
static void serve(struct h_channel *ch, void *arg)
{
	struct session *c = arg;
	int ret = 0, i;

	(void)ch;
	for (i = 0; i < BUFFERS && !ret; i++)
		ret = serve_one(c);
	if (!ret || ret == -EAGAIN)
		return;
	c->server->lost += c->ours && ret != -ENODATA;
	c->server->closed += c->ours;
	end_session(c);
}

static void note_user(struct server *s, uid_t uid)
{
	unsigned long i;

	for (i = 0; i < s->users; i++)
		if (s->seen[i] == uid)
			return;
	if (s->users < MAX_CLIENTS)
		s->seen[s->users++] = uid;
}

static bool is_child(const struct server *s, pid_t pid)
{
	unsigned long i;

	for (i = 0; i < s->expected; i++)
		if (s->child[i] == pid)
			return true;
	return false;
}

static void accept_all(struct server *s)
{
	const struct h_channel_attr attr = {
		.buffers = BUFFERS, .buffer_size = 256, .max_buffer_size = 256,
		.max_message = sizeof(struct request),
	};
	struct h_channel *ch;
	int ret;

	while (!(ret = h_channel_accept(s->listener, s->m, &attr, &ch, H_NOWAIT))) {
		struct session *c = calloc(1, sizeof(*c));

		if (!c)
			die("no memory for a client");
		if (!s->begin)
			s->begin = now_ns();
		begin_session(s, c);
		c->ch = ch;
		h_channel_peer(ch, &c->peer);
		c->ours = is_child(s, c->peer.pid);
		if (c->ours)
			note_user(s, c->peer.uid);
		h_channel_on_ready(ch, serve, c);
	}
	/* The descriptor says whether there are more: the others have waited. */
	if (ret != -EAGAIN)
		turned_down(s->dev, ret);
}

static void loop(struct server *s)
{
	struct epoll_event e = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, h_listener_fd(s->listener), &e) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD,
		      (int)must(s->dev, h_manager_fd(s->m), "descriptor"), &e))
		die("epoll: %s", strerror(errno));
	while (s->closed < s->expected) {
		if (epoll_wait(epoll, &e, 1, 60000) <= 0 && errno != EINTR)
			die("nothing happens any more: %lu of %lu clients are done",
			    s->closed, s->expected);
		accept_all(s);
		h_manager_dispatch(s->m);
	}
	close(epoll);
}

static int server(const struct options *o, const char *path)
{
	const struct h_listener_attr attr = {
		.flags = o->tickets ? H_CONNECT_TICKETS : 0,
		/* They all come at once; and so may others. */
		.waiting = o->clients < 512 ? 512 : 1024,
	};
	static struct server s;
	double seconds;

	s.expected = o->clients;
	s.m = open_manager(o->device, &s.dev, 65536);
	must(NULL, h_listener_create(path, &attr, &s.listener), path);
	fork_clients(o, path, s.child);
	loop(&s);
	seconds = (double)(now_ns() - s.begin) / 1e9;
	while (s.sessions)
		end_session(s.sessions);
	h_listener_destroy(s.listener);
	close_manager(s.m, s.dev);
	printf("%lu requests of %lu clients, %lu users, %.2f s: %.0f requests/s\n",
	       s.served, o->clients, s.users, seconds, (double)s.served / seconds);
	if (!reap((int)o->clients) || s.lost)
		die("%lu clients broke off, or some got what was not theirs", s.lost);
	printf("each client got its own answers\n");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	struct options o = { .clients = 100, .requests = 1000 };
	char path[64];
	int opt;

	while ((opt = getopt_long(argc, argv, "d:c:n:th", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			o.device = optarg;
			break;
		case 'c':
			o.clients = number("-c", optarg, 1, MAX_CLIENTS);
			break;
		case 'n':
			o.requests = number("-n", optarg, 1, 1000000000);
			break;
		case 't':
			o.tickets = true;
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
	return server(&o, own_path(path, sizeof(path), 0));
}
