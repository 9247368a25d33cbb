// SPDX-License-Identifier: GPL-2.0-only
/* The libfabric provider: connections and event queues, fi_cm(3), fi_eq(3). */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

/* An entry of a connection, with room for data. */
union entry {
	struct fi_eq_cm_entry cm;
	struct fi_eq_entry entry;
	char bytes[sizeof(struct fi_eq_cm_entry) + 300];
};

FIXTURE(cm) {
	struct options options;
	struct fi_info *info;
	struct end client;
	struct end server;
	struct fid_pep *pep;
	struct sockaddr_in address;
};

FIXTURE_SETUP(cm)
{
	size_t length = sizeof(self->address);

	self->info = pair_info(&self->options);
	ASSERT_NE(NULL, self->info);
	ASSERT_EQ(0, end_open(&self->client, self->info, &self->options));
	ASSERT_EQ(0, end_open(&self->server, self->info, &self->options));
	ASSERT_EQ(0, listen_at(&self->server, &self->pep, &self->address, &length));
	ASSERT_EQ(0, end_endpoint(&self->client, self->info, &self->options));
}

FIXTURE_TEARDOWN(cm)
{
	if (self->pep)
		EXPECT_EQ(0, fi_close(&self->pep->fid));
	end_close(&self->client);
	end_close(&self->server);
	fi_freeinfo(self->info);
}

/* Both are told, with what the other had to say, and who it is. */
TEST_F(cm, connect)
{
	struct sockaddr_in name, peer;
	size_t size = sizeof(name), length = 0, option = sizeof(length);
	union entry e;
	ssize_t got;

	ASSERT_EQ(0, fi_getopt(&self->pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &length,
			       &option));
	EXPECT_LE(24, length);
	EXPECT_NE(0, self->address.sin_port);
	EXPECT_EQ(-FI_ENOTCONN, fi_send(self->client.ep, "x", 1, NULL, 0, NULL));
	EXPECT_EQ(-FI_ENOTCONN, fi_getpeer(self->client.ep, &peer, &size));
	ASSERT_EQ(0, fi_connect(self->client.ep, &self->address, "from client", 12));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_connect(self->client.ep, &self->address, NULL, 0));
	ASSERT_EQ(FI_CONNREQ, next_event(&self->server, NULL, &e, sizeof(e), &got));
	EXPECT_EQ(&self->pep->fid, e.cm.fid);
	EXPECT_EQ((ssize_t)sizeof(e.cm) + 12, got);
	EXPECT_STREQ("from client", (char *)e.cm.data);
	ASSERT_NE(NULL, e.cm.info->handle);
	ASSERT_EQ(0, end_endpoint(&self->server, e.cm.info, &self->options));
	fi_freeinfo(e.cm.info);
	ASSERT_EQ(0, fi_accept(self->server.ep, "from server", 12));
	ASSERT_EQ(FI_CONNECTED, next_event(&self->client, NULL, &e, sizeof(e), &got));
	EXPECT_EQ(&self->client.ep->fid, e.cm.fid);
	EXPECT_STREQ("from server", (char *)e.cm.data);
	ASSERT_EQ(FI_CONNECTED, next_event(&self->server, NULL, &e, sizeof(e), &got));
	EXPECT_EQ(&self->server.ep->fid, e.cm.fid);
	ASSERT_EQ(0, fi_getpeer(self->client.ep, &peer, &size));
	size = sizeof(name);
	ASSERT_EQ(0, fi_getname(&self->pep->fid, &name, &size));
	EXPECT_EQ(0, memcmp(&name.sin_addr, &peer.sin_addr, sizeof(name.sin_addr)));
	size = 4;
	EXPECT_EQ(-FI_ETOOSMALL, fi_getname(&self->pep->fid, &name, &size));
	EXPECT_EQ(sizeof(name), size);
}

/* More data than there is room for is cut off, silently. */
TEST_F(cm, much_data)
{
	char data[400];
	union entry e;
	ssize_t got;

	memset(data, 'd', sizeof(data));
	ASSERT_EQ(0, fi_connect(self->client.ep, &self->address, data, sizeof(data)));
	ASSERT_EQ(FI_CONNREQ, next_event(&self->server, NULL, &e, sizeof(e), &got));
	EXPECT_EQ((ssize_t)sizeof(e.cm) + 256, got);
	fi_freeinfo(e.cm.info);
}

TEST_F(cm, reject)
{
	struct fi_eq_err_entry error = { 0 };
	union entry e;

	ASSERT_EQ(0, fi_connect(self->client.ep, &self->address, NULL, 0));
	ASSERT_EQ(FI_CONNREQ, next_event(&self->server, NULL, &e, sizeof(e), NULL));
	ASSERT_EQ(0, fi_reject(self->pep, e.cm.info->handle, "go away", 8));
	fi_freeinfo(e.cm.info);
	ASSERT_EQ(-FI_EAVAIL, next_event(&self->client, NULL, &e, sizeof(e), NULL));
	ASSERT_EQ((ssize_t)sizeof(error), fi_eq_readerr(self->client.eq, &error, 0));
	EXPECT_EQ(FI_ECONNREFUSED, error.err);
	EXPECT_EQ(&self->client.ep->fid, error.fid);
	ASSERT_EQ(8, error.err_data_size);
	EXPECT_STREQ("go away", error.err_data);
	EXPECT_EQ(-FI_EAGAIN, fi_eq_readerr(self->client.eq, &error, 0));
}

/* The error of a connection that cannot be. */
static int connect_error(struct end *end, const struct sockaddr_in *address)
{
	struct fi_eq_err_entry error = { 0 };
	union entry e;

	if (fi_connect(end->ep, address, NULL, 0))
		return -1;
	if (next_event(end, NULL, &e, sizeof(e), NULL) != -FI_EAVAIL)
		return -2;
	return fi_eq_readerr(end->eq, &error, 0) == sizeof(error) ? error.err : -3;
}

TEST_F(cm, nobody_there)
{
	ASSERT_EQ(0, fi_close(&self->pep->fid));
	self->pep = NULL;
	EXPECT_EQ(FI_ECONNREFUSED, connect_error(&self->client, &self->address));
}

TEST_F(cm, another_host)
{
	self->address.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, for documents */
	EXPECT_EQ(FI_EHOSTUNREACH, connect_error(&self->client, &self->address));
}

TEST_F(cm, port_in_use)
{
	struct fid_pep *second;

	ASSERT_EQ(0, fi_passive_ep(self->server.fabric, self->info, &second, NULL));
	ASSERT_EQ(0, fi_pep_bind(second, &self->server.eq->fid, 0));
	EXPECT_EQ(-FI_EADDRINUSE, fi_setname(&second->fid, &self->address,
					     sizeof(self->address)));
	EXPECT_EQ(0, fi_close(&second->fid));
}

/* A port is reserved by a passive end point, and an active one connects from there. */
TEST_F(cm, active_from_passive)
{
	struct sockaddr_in name = self->address, own = { 0 };
	struct fi_info *info = fi_dupinfo(self->info);
	size_t length = sizeof(own);
	struct fid_pep *pep, *other;
	union entry e;

	name.sin_port = 0;
	ASSERT_EQ(0, fi_passive_ep(self->client.fabric, self->info, &pep, NULL));
	ASSERT_EQ(0, fi_setname(&pep->fid, &name, sizeof(name)));
	ASSERT_EQ(0, fi_getname(&pep->fid, &name, &length));
	ASSERT_NE(0, name.sin_port);
	info->handle = &self->pep->fid;
	fi_close(&self->client.ep->fid);
	/* One that listens goes on. */
	EXPECT_EQ(-FI_EOPBADSTATE, fi_endpoint(self->client.domain, info, &self->client.ep, NULL));
	info->handle = &pep->fid;
	self->client.ep = NULL;
	ASSERT_EQ(0, end_endpoint(&self->client, info, &self->options));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_listen(pep));
	EXPECT_EQ(0, fi_close(&pep->fid));
	ASSERT_EQ(0, fi_getname(&self->client.ep->fid, &own, &length));
	EXPECT_EQ(0, memcmp(&name, &own, sizeof(own)));
	/* Nobody else gets it. */
	ASSERT_EQ(0, fi_passive_ep(self->client.fabric, self->info, &other, NULL));
	EXPECT_EQ(-FI_EADDRINUSE, fi_setname(&other->fid, &name, sizeof(name)));
	ASSERT_EQ(0, fi_connect(self->client.ep, &self->address, NULL, 0));
	ASSERT_EQ(FI_CONNREQ, next_event(&self->server, &self->client, &e, sizeof(e), NULL));
	EXPECT_EQ(0, memcmp(&name, e.cm.info->dest_addr, sizeof(name)));
	EXPECT_EQ(0, fi_reject(self->pep, e.cm.info->handle, NULL, 0));
	fi_freeinfo(e.cm.info);
	ASSERT_EQ(0, fi_close(&self->client.ep->fid));
	self->client.ep = NULL;
	EXPECT_EQ(0, fi_setname(&other->fid, &name, sizeof(name)));
	EXPECT_EQ(0, fi_close(&other->fid));
	info->handle = NULL;
	fi_freeinfo(info);
}

/* fi_setname() of an active one: a port, if none is asked for, of this host, and nobody else's. */
TEST_F(cm, named_active)
{
	struct sockaddr_in name = self->address, own;
	size_t length = sizeof(own);
	struct fid_ep *ep;

	ASSERT_EQ(0, fi_endpoint(self->client.domain, self->info, &ep, NULL));
	EXPECT_EQ(-FI_EADDRINUSE, fi_setname(&ep->fid, &name, sizeof(name)));
	name.sin_addr.s_addr = htonl(0xc0000201);
	EXPECT_EQ(-FI_EADDRNOTAVAIL, fi_setname(&ep->fid, &name, sizeof(name)));
	name = self->address;
	name.sin_port = 0;
	ASSERT_EQ(0, fi_setname(&ep->fid, &name, sizeof(name)));
	ASSERT_EQ(0, fi_getname(&ep->fid, &own, &length));
	EXPECT_NE(0, own.sin_port);
	EXPECT_EQ(0, fi_close(&ep->fid));
}

/* fi_domain_bind(): what has no event queue of its own uses the domain's. */
TEST_F(cm, queue_of_domain)
{
	struct fid_eq *eq = self->client.eq;
	struct fi_eq_cm_entry entry;
	struct fid_ep *ep;

	ASSERT_EQ(0, fi_endpoint(self->client.domain, self->info, &ep, NULL));
	ASSERT_EQ(0, fi_ep_bind(ep, &self->client.tx->fid, FI_TRANSMIT | FI_RECV));
	EXPECT_EQ(-FI_ENOEQ, fi_enable(ep));
	ASSERT_EQ(0, fi_domain_bind(self->client.domain, &eq->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_domain_bind(self->client.domain, &eq->fid, 0));
	EXPECT_EQ(-FI_EINVAL, fi_domain_bind(self->server.domain, &ep->fid, 0));
	ASSERT_EQ(0, fi_connect(ep, &self->address, NULL, 0));
	ASSERT_EQ(FI_CONNREQ, next_event(&self->server, NULL, &entry, sizeof(entry), NULL));
	ASSERT_EQ(0, fi_reject(self->pep, entry.info->handle, NULL, 0));
	fi_freeinfo(entry.info);
	EXPECT_EQ(-FI_EAVAIL, next_event(&self->client, NULL, &entry, sizeof(entry), NULL));
	EXPECT_EQ(0, fi_close(&ep->fid));
}

/* A client that has gone before it was accepted is an event, too. */
TEST_F(cm, client_gone)
{
	struct fi_eq_err_entry error = { 0 };
	union entry e;

	ASSERT_EQ(0, fi_connect(self->client.ep, &self->address, NULL, 0));
	ASSERT_EQ(FI_CONNREQ, next_event(&self->server, NULL, &e, sizeof(e), NULL));
	end_close(&self->client);
	ASSERT_EQ(0, end_endpoint(&self->server, e.cm.info, &self->options));
	fi_freeinfo(e.cm.info);
	ASSERT_EQ(0, fi_accept(self->server.ep, NULL, 0));
	ASSERT_EQ(-FI_EAVAIL, next_event(&self->server, NULL, &e, sizeof(e), NULL));
	ASSERT_EQ((ssize_t)sizeof(error), fi_eq_readerr(self->server.eq, &error, 0));
	EXPECT_EQ(FI_ECONNRESET, error.err);
}

/* Strangers that are silent, or talk nonsense, neither connect nor keep anybody out. */
TEST_F(cm, strangers)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fds[600], waiting = 0;
	union entry e;
	socklen_t length;

	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			     (size_t)sprintf(name.sun_path + 1, "hamlyn-fi-%u",
					     ntohs(self->address.sin_port)));
	for (int i = 0; i < 600; i++) {
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		ASSERT_EQ(0, connect(fds[i], (struct sockaddr *)&name, length));
		if (i % 2)
			ASSERT_EQ(8, send(fds[i], "nonsense", 8, 0));
		EXPECT_EQ(-FI_EAGAIN, fi_eq_read(self->server.eq, &(uint32_t){ 0 }, &e,
						 sizeof(e), 0));
	}
	ASSERT_EQ(0, fi_connect(self->client.ep, &self->address, NULL, 0));
	ASSERT_EQ(FI_CONNREQ, next_event(&self->server, NULL, &e, sizeof(e), NULL));
	fi_freeinfo(e.cm.info);
	for (int i = 0; i < 600; i++) {
		waiting += recv(fds[i], &e, sizeof(e), MSG_DONTWAIT) < 0 && errno == EAGAIN;
		close(fds[i]);
	}
	/* The rest was sent away, and holds nothing any more. */
	EXPECT_GE(256, waiting);
}

TEST_F(cm, incomplete)
{
	struct fid_ep *ep;
	union entry e;

	ASSERT_EQ(0, fi_endpoint(self->client.domain, self->info, &ep, NULL));
	EXPECT_EQ(-FI_ENOEQ, fi_enable(ep));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_recv(ep, &e, 1, NULL, 0, NULL));
	ASSERT_EQ(0, fi_ep_bind(ep, &self->client.eq->fid, 0));
	EXPECT_EQ(-FI_ENOCQ, fi_enable(ep));
	ASSERT_EQ(0, fi_ep_bind(ep, &self->client.tx->fid, FI_TRANSMIT | FI_RECV));
	EXPECT_EQ(0, fi_enable(ep));
	EXPECT_EQ(-FI_EOPBADSTATE, fi_ep_bind(ep, &self->client.rx->fid, FI_RECV));
	EXPECT_EQ(-FI_EBUSY, fi_close(&self->client.eq->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&self->client.domain->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&self->client.fabric->fid));
	EXPECT_EQ(0, fi_close(&ep->fid));
}

/* What a queue does for the application itself. */
TEST_F(cm, event_queue)
{
	struct fi_eq_entry in = { .fid = &self->client.eq->fid, .data = 7 }, out;
	struct pollfd set = { .events = POLLIN };
	uint32_t event;
	int64_t begun = now_ms();

	EXPECT_EQ(-FI_EAGAIN, fi_eq_sread(self->client.eq, &event, &out, sizeof(out), 50, 0));
	EXPECT_LE(50, now_ms() - begun);
	ASSERT_EQ(0, fi_control(&self->client.eq->fid, FI_GETWAIT, &set.fd));
	EXPECT_EQ(0, poll(&set, 1, 0));
	ASSERT_EQ((ssize_t)sizeof(in), fi_eq_write(self->client.eq, FI_NOTIFY, &in, sizeof(in), 0));
	EXPECT_EQ(1, poll(&set, 1, 0));
	EXPECT_EQ(-FI_ETOOSMALL, fi_eq_read(self->client.eq, &event, &out, 4, 0));
	EXPECT_EQ((ssize_t)sizeof(out), fi_eq_read(self->client.eq, &event, &out, sizeof(out),
						   FI_PEEK));
	EXPECT_EQ((ssize_t)sizeof(out), fi_eq_read(self->client.eq, &event, &out, sizeof(out), 0));
	EXPECT_EQ(FI_NOTIFY, event);
	EXPECT_EQ(7, out.data);
	EXPECT_EQ(-FI_EAGAIN, fi_eq_read(self->client.eq, &event, &out, sizeof(out), 0));
	EXPECT_EQ(0, poll(&set, 1, 0));
}

/* An orderly end: what was sent before it is received, then FI_SHUTDOWN, then errors. */
TEST(orderly_end)
{
	const struct options options = { 0 };
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry entry;
	char to[8], other;
	union entry e;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_recv(p.b.ep, to, 8, NULL, 0, NULL));
	ASSERT_EQ(0, fi_recv(p.b.ep, &other, 1, NULL, 0, &other));
	ASSERT_EQ(0, fi_recv(p.a.ep, &other, 1, NULL, 0, &other));
	ASSERT_EQ(0, fi_inject(p.a.ep, "goodbye", 8, 0));
	ASSERT_EQ(0, fi_shutdown(p.a.ep, 0));
	/* What this end had posted is cancelled before the call returns. */
	EXPECT_EQ(-FI_EAVAIL, fi_cq_read(p.a.rx, &entry, 1));
	ASSERT_EQ(1, next_entry(p.b.rx, NULL, &entry));
	EXPECT_STREQ("goodbye", to);
	ASSERT_EQ(FI_SHUTDOWN, next_event(&p.b, NULL, &e, sizeof(e), NULL));
	EXPECT_EQ(&p.b.ep->fid, e.cm.fid);
	ASSERT_EQ(1, next_error(p.b.rx, NULL, &error));
	EXPECT_EQ(&other, error.op_context);
	EXPECT_EQ(FI_ECANCELED, error.err);
	EXPECT_EQ(-FI_ENOTCONN, fi_send(p.b.ep, "x", 1, NULL, 0, NULL));
	EXPECT_EQ(-FI_ENOTCONN, fi_send(p.a.ep, "x", 1, NULL, 0, NULL));
	EXPECT_EQ(-FI_EAGAIN, fi_eq_read(p.b.eq, &(uint32_t){ 0 }, &e, sizeof(e), 0));
	pair_close(&p);
}

/* Both ends end it, and wait for the event that says that it has ended: each gets one. */
TEST(both_shut_down)
{
	const struct options options = { 0 };
	struct end *end;
	union entry e;
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_shutdown(p.a.ep, 0));
	ASSERT_EQ(0, fi_shutdown(p.b.ep, 0));
	for (end = &p.a; end; end = end == &p.a ? &p.b : NULL) {
		ASSERT_EQ(FI_SHUTDOWN, next_event(end, NULL, &e, sizeof(e), NULL));
		EXPECT_EQ(&end->ep->fid, e.cm.fid);
		EXPECT_EQ(0, fi_shutdown(end->ep, 0));
		EXPECT_EQ(-FI_EAGAIN, fi_eq_read(end->eq, &(uint32_t){ 0 }, &e, sizeof(e), 0));
	}
	pair_close(&p);
}

/* What is closed is spoken of no more: its fid may be another's by then. */
TEST(closed_is_forgotten)
{
	const struct options options = { 0 };
	int64_t until = now_ms() + patience_ms();
	union entry e;
	struct pair p;
	ssize_t err;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_shutdown(p.a.ep, 0));
	while ((err = fi_send(p.b.ep, "x", 1, NULL, 0, NULL)) != -FI_ENOTCONN && now_ms() < until)
		(void)fi_cntr_read(p.b.cntr[0]);
	ASSERT_EQ(-FI_ENOTCONN, err);
	ASSERT_EQ(0, fi_close(&p.b.ep->fid));
	p.b.ep = NULL;
	EXPECT_EQ(-FI_EAGAIN, fi_eq_sread(p.b.eq, &(uint32_t){ 0 }, &e, sizeof(e), 50, 0));
	pair_close(&p);
}

/* fi_endpoint(3): what was under way is dropped silently. Its contexts may be freed by then. */
TEST(close_discards)
{
	const struct options options = { 0 };
	static char from[100000], to[8];
	struct pair p;

	ASSERT_EQ(0, pair_open(&p, &options));
	ASSERT_EQ(0, fi_recv(p.a.ep, to, 8, NULL, 0, NULL));
	ASSERT_EQ(0, fi_send(p.a.ep, from, sizeof(from), NULL, 0, NULL));
	ASSERT_EQ(0, fi_read(p.a.ep, to, 8, NULL, 0, 0, 1, NULL));
	ASSERT_EQ(0, fi_close(&p.a.ep->fid));
	p.a.ep = NULL;
	EXPECT_EQ(true, none(p.a.rx, NULL));
	EXPECT_EQ(true, none(p.a.tx, NULL));
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(0, fi_cntr_readerr(p.a.cntr[i]));
	pair_close(&p);
}

/* ---- another user -------------------------------------------------------- */

/* A child of another user, which would connect to anybody, asks for a connection. */
static void ask_as_nobody(int from)
{
	const struct options options = { 0 };
	const char *device = getenv("HAMLYN_DEVICE");
	struct sockaddr_in address;
	struct fi_info *info;
	struct end end;
	union entry e;
	int event;

	setenv("FI_HAMLYN_ANY_USER", "1", 1);
	/* Segments are for processes of one user, NICs are for everybody. */
	if (!device || strncmp(device, "/dev/", 5))
		setenv("HAMLYN_DEVICE", "shm:ofi-nobody", 1);
	info = pair_info(&options);
	if (!info || read(from, &address, sizeof(address)) != sizeof(address) ||
	    setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) ||
	    end_open(&end, info, &options) || end_endpoint(&end, info, &options) ||
	    fi_connect(end.ep, &address, NULL, 0))
		_exit(1);
	event = next_event(&end, NULL, &e, sizeof(e), NULL);
	/* Or its segment would be left. */
	end_close(&end);
	_exit(event == -FI_EAVAIL ? 0 : 2);
}

/* Another user's process is not let in: the application does not even hear of it. */
TEST(another_user)
{
	const struct options options = { 0 };
	int64_t until = now_ms() + patience_ms();
	int status = -1, asked = 0, pipes[2];
	struct sockaddr_in address;
	size_t length = sizeof(address);
	struct fi_info *info;
	struct fid_pep *pep;
	struct end end;
	union entry e;
	pid_t child;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_EQ(0, pipe(pipes));
	child = fork();
	if (!child)
		ask_as_nobody(pipes[0]);
	info = pair_info(&options);
	ASSERT_NE(NULL, info);
	ASSERT_EQ(0, end_open(&end, info, &options));
	ASSERT_EQ(0, listen_at(&end, &pep, &address, &length));
	ASSERT_EQ((ssize_t)sizeof(address), write(pipes[1], &address, sizeof(address)));
	while (waitpid(child, &status, WNOHANG) != child && now_ms() < until && !asked)
		asked = fi_eq_sread(end.eq, &(uint32_t){ 0 }, &e, sizeof(e), 10, 0) > 0;
	EXPECT_EQ(0, asked);
	if (asked)
		kill(child, SIGKILL);
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, fi_close(&pep->fid));
	end_close(&end);
	fi_freeinfo(info);
}

/* ---- a peer that dies ---------------------------------------------------- */

#define LONG	(1 << 20)

enum habit {
	IDLE,
	BUSY,
	SENDS_LONG,
};

/* The child: connects, and goes on until it is killed. */
static void live(const struct sockaddr_in *address, enum habit habit, const struct options *options)
{
	struct fi_info *info = pair_info(options);
	struct end end;
	union entry e;

	if (!info || end_open(&end, info, options) || end_endpoint(&end, info, options) ||
	    fi_connect(end.ep, address, NULL, 0) ||
	    next_event(&end, NULL, &e, sizeof(e), NULL) != FI_CONNECTED)
		_exit(1);
	if (habit == SENDS_LONG && fi_send(end.ep, calloc(1, LONG), LONG, NULL, 0, NULL))
		_exit(1);
	for (;;) {
		if (habit == BUSY)
			(void)fi_inject(end.ep, "busy", 5, 0);
		(void)fi_cntr_read(end.cntr[0]);
		if (habit != BUSY)
			usleep(1000);
	}
}

/* Make such a child, and be connected to it. */
static int meet(struct end *end, struct fid_pep **pep, pid_t *child, enum habit habit,
		const struct options *options)
{
	struct fi_info *info = pair_info(options);
	struct sockaddr_in address;
	size_t length = sizeof(address);
	union entry e;

	if (!info || end_open(end, info, options) || listen_at(end, pep, &address, &length))
		return -1;
	*child = fork();
	if (!*child)
		live(&address, habit, options);
	fi_freeinfo(info);
	if (next_event(end, NULL, &e, sizeof(e), NULL) != FI_CONNREQ ||
	    end_endpoint(end, e.cm.info, options))
		return -2;
	fi_freeinfo(e.cm.info);
	if (fi_accept(end->ep, NULL, 0) ||
	    next_event(end, NULL, &e, sizeof(e), NULL) != FI_CONNECTED)
		return -3;
	return 0;
}

FIXTURE(death) {
	struct end end;
	struct fid_pep *pep;
	pid_t child;
	char *buffer;
};

FIXTURE_VARIANT(death) {
	bool busy;
	bool stopped;
};

FIXTURE_VARIANT_ADD(death, idle) {
	.busy = false,
};

FIXTURE_VARIANT_ADD(death, busy) {
	.busy = true,
};

FIXTURE_VARIANT_ADD(death, stopped_first) {
	.stopped = true,
};

FIXTURE_SETUP(death)
{
	const struct options options = { 0 };

	self->buffer = calloc(1, LONG);
	ASSERT_EQ(0, meet(&self->end, &self->pep, &self->child, variant->busy ? BUSY : IDLE,
			  &options));
	usleep(50000);
	if (variant->stopped)
		kill(self->child, SIGSTOP);
}

FIXTURE_TEARDOWN(death)
{
	kill(self->child, SIGKILL);
	waitpid(self->child, NULL, 0);
	EXPECT_EQ(0, fi_close(&self->pep->fid));
	end_close(&self->end);
	free(self->buffer);
}

/*
 * A thread that sleeps in one call, and makes no progress otherwise, is woken: without that the
 * call finds the event, too, but when its time is over.
 */
TEST_F(death, event)
{
	uint32_t event = 0;
	union entry e;
	int64_t killed;

	kill(self->child, SIGKILL);
	killed = now_ms();
	ASSERT_LT(0, fi_eq_sread(self->end.eq, &event, &e, sizeof(e), (int)patience_ms(), 0));
	EXPECT_EQ(FI_SHUTDOWN, event);
	EXPECT_GT(patience_ms(), now_ms() - killed);
}

/* Everything that was under way ends, in error. */
TEST_F(death, completions)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	int64_t until;
	int ends = 0;

	if (!variant->busy)
		for (int i = 0; i < 3; i++)
			ASSERT_EQ(0, fi_recv(self->end.ep, self->buffer, 8, NULL, 0, NULL));
	/* It will not be answered in time, or the key is wrong: an error in any case. */
	ASSERT_EQ(0, fi_read(self->end.ep, self->buffer, LONG, NULL, 0, 0, 1, NULL));
	ASSERT_EQ(0, fi_send(self->end.ep, self->buffer, LONG, NULL, 0, NULL));
	kill(self->child, SIGKILL);
	until = now_ms() + patience_ms();
	while (ends < (variant->busy ? 2 : 5) && now_ms() < until) {
		if (fi_cq_read(self->end.rx, &entry, 1) == -FI_EAVAIL &&
		    fi_cq_readerr(self->end.rx, &error, 0) == 1) {
			EXPECT_EQ(FI_ECANCELED, error.err);
			ends++;
		}
		if (fi_cq_read(self->end.tx, &entry, 1) == -FI_EAVAIL &&
		    fi_cq_readerr(self->end.tx, &error, 0) == 1)
			ends++;
		if (variant->busy)
			(void)fi_eq_read(self->end.eq, &(uint32_t){ 0 }, &entry, sizeof(entry), 0);
	}
	EXPECT_EQ(variant->busy ? 2 : 5, ends);
	EXPECT_EQ(-FI_ENOTCONN, fi_send(self->end.ep, self->buffer, 8, NULL, 0, NULL));
}

/*
 * A long message of a peer that has died before there was a buffer for it: its bytes are gone, and
 * the buffer that it gets ends in error, not never.
 */
static int error_of_late(const struct options *options)
{
	struct fi_cq_err_entry error = { .err = -1 };
	char *buffer = malloc(LONG);
	struct fid_pep *pep;
	struct end end;
	pid_t child;
	int err = meet(&end, &pep, &child, SENDS_LONG, options);

	for (int i = 0; i < 50 && !err; i++) {
		(void)fi_cntr_read(end.cntr[0]);
		usleep(1000);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (int i = 0; i < 50 && !err; i++)
		(void)fi_cntr_read(end.cntr[0]);
	if (!err)
		err = (int)fi_recv(end.ep, buffer, LONG, NULL, 0, NULL);
	if (!err && next_error(end.rx, NULL, &error) == 1)
		err = error.err;
	fi_close(&pep->fid);
	end_close(&end);
	free(buffer);
	return err;
}

TEST(late_buffer)
{
	const struct options options = { 0 };

	EXPECT_EQ(FI_ECONNRESET, error_of_late(&options));
}

TEST(late_buffer_pieces)
{
	const struct options options = { .no_cma = true };

	EXPECT_EQ(FI_ECONNRESET, error_of_late(&options));
}

TEST_HARNESS_MAIN
