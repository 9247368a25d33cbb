// SPDX-License-Identifier: GPL-2.0-only
/*
 * Between two machines: selftests/vm/two-hosts.sh starts one side in each of two guests. A TCP
 * connection beside the fabric tells what is to be done next.
 *
 *	across serve PORT		one client, then the end
 *	across ADDRESS PORT		the tests
 */
#include "hamlyn_test.h"

#include <hamlyn/channel.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LENGTH		(1u << 20)
#define DEAD_MS		3000	/* as two-hosts.sh sets it */

/* What the client wants. */
enum order {
	TICKET = 't',	/* a ticket of the slot as it is now */
	RECEIVE = 'm',	/* wait for a message, and look at it */
	REKEY = 'r',
	NAME = 'n',	/* be met by a name, and send back what comes */
	DIE = 'k',
	PULL = 'c',	/* the cable, for two times dead-ms */
	CRASH = 'd',	/* the machine */
};

struct side {
	struct h_dev *dev;
	struct h_area *area;
	struct h_nq *nq;
	struct h_slot *slot;		/* the server's */
	struct h_terminus *terminus;	/* the client's */
	struct h_ticket ticket;
	unsigned char *data;
	int control;
};

static int failed;
static int number;

static void verdict(bool ok, const char *what)
{
	failed += !ok;
	printf("%sok %d %s\n", ok ? "" : "not ", ++number, what);
	fflush(stdout);
}

/* ---- the server ---- */

static int open_server(struct side *s)
{
	struct h_slot_attr attr = { .length = LENGTH, .meta_count = 1 };

	if (h_open(ht_device(), &s->dev) || h_area_alloc(s->dev, LENGTH, &s->area) ||
	    h_area_alloc(s->dev, 4096, &attr.meta_area) || h_nq_create(s->dev, 64, &s->nq))
		return -1;
	attr.area = s->area;
	attr.nq = s->nq;
	s->data = h_area_addr(s->area);
	return h_slot_create(s->dev, &attr, &s->slot);
}

static bool receive(struct side *s)
{
	struct hamlyn_nq_entry e;

	return ht_recv(s->nq, &e) == 1 && e.source == 1 && ht_match(s->data, LENGTH, 1) == LENGTH;
}

static void pull(void)
{
	static const char cable[] =
		"(sleep 1; ip link set eth0 down; sleep 6; ip link set eth0 up) &";

	if (system(cable))
		perror("cable");
}

/* As if somebody had pulled the plug: nothing is closed. */
static void crash(void)
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "b", 1) != 1)
		perror("sysrq");
}

#define NAME_OF_SERVER	"2/across"	/* host 2, as two-hosts.sh makes it */

/* One client, and one message of it. */
static bool be_met(struct side *s)
{
	const struct h_listener_attr attr = { .dev = s->dev };
	struct h_listener *l = NULL;
	struct h_channel *ch = NULL;
	struct h_manager *m = NULL;
	struct h_message message;
	bool good;

	good = !h_manager_create(s->dev, NULL, &m) &&
	       !h_listener_create(NAME_OF_SERVER, &attr, &l) &&
	       !h_channel_accept(l, m, NULL, &ch, ht_patience_ns()) &&
	       !h_channel_receive(ch, &message, ht_patience_ns()) &&
	       !h_channel_send(ch, message.data, message.length, ht_patience_ns());
	/* Until the client is done with it. */
	good = good && h_channel_receive(ch, &message, ht_patience_ns());
	h_channel_close(ch, 0);
	h_listener_destroy(l);
	h_manager_destroy(m);
	return good;
}

static bool obey(struct side *s, char order)
{
	switch (order) {
	case NAME:
		return be_met(s);
	case TICKET:
		return !h_slot_ticket(s->slot, 0, 0, 0, &s->ticket) &&
		       !ht_write_all(s->control, &s->ticket, sizeof(s->ticket));
	case RECEIVE:
		return receive(s);
	case REKEY:
		return !h_slot_rekey(s->slot);
	case DIE:
		return !kill(getpid(), SIGKILL);
	case PULL:
		pull();
		return true;
	case CRASH:
		crash();
		return true;
	}
	return false;
}

static int accept_one(uint16_t port)
{
	const struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, got, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (const void *)&own, sizeof(own)) || listen(fd, 1))
		return -1;
	got = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	/* The next client is for the next server. */
	close(fd);
	return got;
}

static int serve(uint16_t port)
{
	struct side s = { 0 };
	char order, answer;

	if (open_server(&s)) {
		perror("server");
		return 1;
	}
	s.control = accept_one(port);
	while (s.control >= 0 && read(s.control, &order, 1) == 1) {
		answer = obey(&s, order) ? 'y' : 'n';
		if (write(s.control, &answer, 1) != 1)
			break;
	}
	h_close(s.dev);
	return 0;
}

/* ---- the client ---- */

/* As soon as there is a server. */
static int connect_to(const char *address, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct ht_poll poll;
	int fd;

	inet_pton(AF_INET, address, &to.sin_addr);
	ht_poll_begin(&poll);
	do {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && !connect(fd, (const void *)&to, sizeof(to)))
			return fd;
		close(fd);
		usleep(100000);
	} while (ht_poll_more(&poll));
	return -1;
}

static bool ask(struct side *s, char order)
{
	char answer;

	if (write(s->control, &order, 1) != 1)
		return false;
	if (order == TICKET && ht_read_all(s->control, &s->ticket, sizeof(s->ticket)))
		return false;
	return read(s->control, &answer, 1) == 1 && answer == 'y';
}

static bool meet(struct side *s, const char *address, uint16_t port)
{
	s->control = connect_to(address, port);
	return s->control >= 0 && ask(s, TICKET);
}

static int open_client(struct side *s)
{
	if (h_open(ht_device(), &s->dev) || h_area_alloc(s->dev, LENGTH, &s->area) ||
	    h_nq_create(s->dev, 64, &s->nq) || h_terminus_create(s->dev, NULL, &s->terminus) ||
	    h_terminus_bind(s->terminus, 0, s->area, 0, LENGTH))
		return -1;
	s->data = h_area_addr(s->area);
	ht_fill(s->data, LENGTH, 1);
	return 0;
}

static bool arrives(struct side *s)
{
	const struct h_msg m = { .ticket = &s->ticket, .data = s->data, .length = LENGTH };

	return ht_send_sync(s->terminus, &m) == 1 && ask(s, RECEIVE);
}

static uint64_t last_watch;	/* its cookie */

static bool watch(struct side *s)
{
	struct h_watch *w;

	return !h_watch(s->dev, &s->ticket, s->nq, ++last_watch, &w);
}

/* The last watch is told, and not twice; within the time that the documentation says. */
static bool is_told(struct side *s, int64_t since, bool timely)
{
	struct hamlyn_nq_entry e;
	int64_t took;
	bool told;

	/* Those before it may be told as well, if they have not been. */
	do
		told = ht_recv(s->nq, &e) == 1 && e.flags & HAMLYN_NQE_PEER_GONE;
	while (told && e.data != last_watch);
	took = (ht_now_ns() - since) / HT_MS;

	printf("# told after %jd ms\n", (intmax_t)took);
	if (timely && took > (int64_t)(DEAD_MS + 1000) * ht_scale())
		return false;
	return told && h_recv_block(s->nq, &e, 300 * HT_MS) == -ETIMEDOUT;
}

/* A message, as soon as the hosts know each other. */
static bool first_message(struct side *s)
{
	const struct h_msg m = { .ticket = &s->ticket, .data = "x", .length = 1 };
	struct hamlyn_nq_entry e;
	struct ht_poll poll;

	ht_poll_begin(&poll);
	do {
		/* Told at once while the other host is not there. */
		if (watch(s) && h_recv_block(s->nq, &e, 200 * HT_MS) == -ETIMEDOUT)
			return ht_send_sync(s->terminus, &m) == 1;
	} while (ht_poll_more(&poll));
	return false;
}

/* It asks for a name that may not be there yet. */
static bool meets_by_name(struct side *s)
{
	const struct h_channel_attr attr = { .flags = H_CONNECT_WAIT };
	struct h_channel *ch = NULL;
	struct h_manager *m = NULL;
	struct h_message message;
	struct h_peer peer;
	bool good;
	int err;

	if (write(s->control, &(char){ NAME }, 1) != 1 || h_manager_create(s->dev, NULL, &m))
		return false;
	err = h_channel_connect(m, NAME_OF_SERVER, &attr, &ch, ht_patience_ns());
	if (err) {
		printf("# %s: %s\n", NAME_OF_SERVER, strerror(-err));
		return false;
	}
	good = !h_channel_peer(ch, &peer) && peer.host == 2 &&
	       !h_channel_send(ch, "by name", 8, ht_patience_ns()) &&
	       !h_channel_receive(ch, &message, ht_patience_ns()) &&
	       message.length == 8 && !memcmp(message.data, "by name", 8);
	h_channel_close(ch, 0);
	h_manager_destroy(m);
	return good && read(s->control, &(char){ 0 }, 1) == 1;
}

static void with_a_process(struct side *s, const char *address, uint16_t port)
{
	int64_t since;

	verdict(meet(s, address, port), "a server on another machine");
	verdict(arrives(s), "a message of 1 MiB arrives");
	verdict(meets_by_name(s), "a channel is met by HOST/NAME");
	verdict(watch(s) && ask(s, REKEY) && is_told(s, ht_now_ns(), false),
		"a new key is told to the watch");
	verdict(ask(s, TICKET) && arrives(s), "a message by the new key arrives");
	verdict(watch(s), "a watch on a process");
	since = ht_now_ns();
	ask(s, DIE);
	verdict(is_told(s, since, true), "a process that is killed is told of, once");
}

static void with_a_machine(struct side *s, const char *address, uint16_t port)
{
	int64_t since;

	verdict(meet(s, address, port) && arrives(s), "the next process");
	verdict(watch(s) && ask(s, PULL), "a watch, and the cable is pulled");
	since = ht_now_ns() + 1000 * HT_MS;
	verdict(is_told(s, since, true), "a cable that is pulled is told of, once");
	verdict(first_message(s), "the cable is plugged in: messages pass again");
	close(s->control);
	verdict(meet(s, address, port) && arrives(s), "a new process on the same machine");
	verdict(watch(s), "a watch on a machine");
	since = ht_now_ns();
	if (write(s->control, &(char){ CRASH }, 1) != 1)
		perror("crash");
	verdict(is_told(s, since, true), "a machine that dies is told of, once");
}

static int test(const char *address, uint16_t port)
{
	struct side s = { 0 };

	if (open_client(&s)) {
		perror("client");
		return 1;
	}
	with_a_process(&s, address, port);
	with_a_machine(&s, address, port);
	h_close(s.dev);
	printf("%d passed, %d failed\n", number - failed, failed);
	return failed != 0;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		printf("TAP version 13\n1..1\n");
		printf("ok 1 across # SKIP needs two machines: two-hosts.sh\n");
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(argv[1], "serve"))
		return serve((uint16_t)atoi(argv[2]));
	return test(argv[1], (uint16_t)atoi(argv[2]));
}
