/* SPDX-License-Identifier: GPL-2.0-only */
/* Two segments, joined by two bridges over the loopback device, and a peer that is none. */
#ifndef BRIDGE_HOSTS_H
#define BRIDGE_HOSTS_H

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <libgen.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "embedded/shm.h"
#include "wire.h"

#define LENGTH		(1u << 20)
#define ID		"00112233445566778899aabbccddeeff"

struct host {
	struct h_dev *dev;
	struct h_area *area;
	struct h_area *meta;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_terminus *terminus;
	struct h_ticket ticket;
	unsigned char *data;
	pid_t bridge;
};

FIXTURE(bridge) {
	char name[2][96];
	char program[512];
	char id_file[96];
	unsigned short port;
	int said;		/* where the next bridge tells what it does; -1: nowhere */
	bool same_users;	/* of the next bridge */
	struct host host[2];
};

/* ---- bridges ---- */

static inline void find_program(char *path, size_t size)
{
	char own[400];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	own[n < 0 ? 0 : n] = 0;
	snprintf(path, size, "%s/../hamlyn-bridge", dirname(own));
}

static inline unsigned short free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (void *)&a, n) || getsockname(fd, (void *)&a, &n))
		return 0;
	close(fd);
	return ntohs(a.sin_port);
}

/* What it prints goes to @out, or nowhere. */
static inline pid_t run(const char *program, char *const *argv, int out)
{
	pid_t pid = ht_fork();

	if (pid)
		return pid;
	if (out < 0)
		out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execv(program, argv);
	_exit(127);
}

/* Host 1 connects to host 2, which listens. @stall_ms: how long a peer may take nothing. */
static inline void start(FIXTURE_DATA(bridge) *self, int i, int stall_ms)
{
	char listen[32], peer[32], stall[16], dead[16], users[] = "none";
	char *const connects[] = {
		self->program, self->name[i], "--host", "1", "--peer", peer, "--id-file",
		self->id_file, "--stall-ms", stall, "--dead-ms", dead, "--users", users, NULL,
	};
	char *const listens[] = {
		self->program, self->name[i], "--host", "2", "--peer", peer, "--id-file",
		self->id_file, "--stall-ms", stall, "--dead-ms", dead, "--users", users,
		"--listen", listen, NULL,
	};

	if (self->same_users)
		memcpy(users, "same", sizeof(users));
	snprintf(listen, sizeof(listen), "127.0.0.1:%u", self->port);
	snprintf(peer, sizeof(peer), i ? "1=127.0.0.1" : "2=127.0.0.1:%u", self->port);
	snprintf(stall, sizeof(stall), "%d", stall_ms);
	snprintf(dead, sizeof(dead), "%d", stall_ms < 60000 ? 3000 : stall_ms);
	self->host[i].bridge = run(self->program, i ? listens : connects, self->said);
}

static inline int end(FIXTURE_DATA(bridge) *self, int i, int signal)
{
	pid_t pid = self->host[i].bridge;

	self->host[i].bridge = 0;
	kill(pid, signal);
	return ht_reap(pid);
}

static inline struct shm_segment *seg_of(const struct host *h)
{
	return shm_of(h->dev)->seg;
}

static inline u32 state_of(const struct host *h)
{
	return READ_ONCE(seg_of(h)->bridge.peer[0].state);
}

static inline bool wait_state(const struct host *h, bool up)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (shm_peer_up(state_of(h)) != up)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/* One that was killed has left its peers up, until somebody looks. */
static inline bool wait_bridge(const struct host *h)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (READ_ONCE(seg_of(h)->bridge.pid) != (u32)h->bridge ||
	       !READ_ONCE(seg_of(h)->bridge.owner))
		if (!ht_poll_more(&poll))
			return false;
	return wait_state(h, true);
}

static inline bool wait_up(FIXTURE_DATA(bridge) *self)
{
	return wait_bridge(&self->host[0]) && wait_bridge(&self->host[1]);
}

static inline int open_host(struct host *h, const char *name, int i)
{
	struct h_slot_attr attr = { .length = LENGTH, .meta_count = 4 };
	char spec[200];

	snprintf(spec, sizeof(spec), "%s,size=16M,host=%d,fabric=" ID, name, i + 1);
	if (h_open(spec, &h->dev) || h_area_alloc(h->dev, LENGTH, &h->area) ||
	    h_area_alloc(h->dev, 4096, &h->meta) || h_nq_create(h->dev, 1024, &h->nq) ||
	    h_terminus_create(h->dev, NULL, &h->terminus))
		return -1;
	attr.area = h->area;
	attr.meta_area = h->meta;
	attr.nq = h->nq;
	h->data = h_area_addr(h->area);
	return h_terminus_bind(h->terminus, 0, h->area, 0, LENGTH) ||
	       h_slot_create(h->dev, &attr, &h->slot) ||
	       h_slot_ticket(h->slot, 0, 0, 0, &h->ticket) ? -1 : 0;
}

FIXTURE_SETUP(bridge)
{
	const char *device = ht_device();
	int i, fd;

	find_program(self->program, sizeof(self->program));
	if (access(self->program, X_OK))
		SKIP(return, "there is no %s", self->program);
	snprintf(self->id_file, sizeof(self->id_file), "/tmp/hamlyn-bridge-%d.id", getpid());
	fd = open(self->id_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(ht_write_all(fd, ID "\n", sizeof(ID)), 0);
	close(fd);
	self->port = free_port();
	ASSERT_NE(self->port, 0);
	self->said = -1;
	for (i = 0; i < 2; i++) {
		snprintf(self->name[i], sizeof(self->name[i]), "shm:%.50s-%d-%d",
			 device && !strncmp(device, "shm:", 4) && !strchr(device, ',') ?
			 device + 4 : "hamlyn-test", getpid(), i + 1);
		ASSERT_EQ(open_host(&self->host[i], self->name[i], i), 0);
		start(self, i, 1000);
	}
	ASSERT_TRUE(wait_up(self));
}

FIXTURE_TEARDOWN(bridge)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (self->host[i].bridge)
			EXPECT_EQ(end(self, i, SIGTERM), 0);
		if (self->host[i].dev)
			h_close(self->host[i].dev);
	}
	unlink(self->id_file);
}

/* ---- between them ---- */

static inline bool told_once(struct host *a, uint64_t cookie)
{
	struct hamlyn_nq_entry e;

	return ht_recv(a->nq, &e) == 1 && e.flags & HAMLYN_NQE_PEER_GONE && e.data == cookie;
}

/* A message there and one back: all that was sent before was looked at. */
static inline bool round_trip(struct host *a, struct host *b)
{
	struct h_ticket to_b = b->ticket, to_a = a->ticket;
	struct hamlyn_nq_entry e;
	struct h_msg m = { .ticket = &to_b, .word = 1 };

	to_b.meta_index = HAMLYN_META_FAST;
	to_a.meta_index = HAMLYN_META_FAST;
	if (ht_send_sync(a->terminus, &m) != 1 || ht_recv(b->nq, &e) != 1)
		return false;
	m.ticket = &to_a;
	return ht_send_sync(b->terminus, &m) == 1 && ht_recv(a->nq, &e) == 1 &&
	       !(e.flags & HAMLYN_NQE_PEER_GONE);
}

/* ---- a peer that lies ---- */

static inline int call_with(FIXTURE_DATA(bridge) *self, int receive_bytes)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(self->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval patience = { .tv_sec = 20 * ht_scale() };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (receive_bytes)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
	return connect(fd, (void *)&a, sizeof(a)) ? -1 : fd;
}

static inline int call(FIXTURE_DATA(bridge) *self)
{
	return call_with(self, 0);
}

static inline struct hml_wire_hello hello_of(u32 host)
{
	struct hml_wire_hello h = {
		.least = 1, .greatest = 1, .host = host, .packet_size = SHM_PACKET_SIZE,
		.incarnation = ht_now_ns() | 1,
	};
	int i;

	for (i = 0; i < HAMLYN_FABRIC_ID_BYTES; i++)
		h.fabric_id[i] = (u8)(i * 0x11);
	return h;
}

/* What the bridge says: the verdict of its BYE, or -1 if it closes, or -2 if it does neither. */
static inline int verdict_of(int fd)
{
	u8 bytes[4096];
	u32 have = 0, verdict;
	struct hml_wire_frame f;

	for (;;) {
		ssize_t n = recv(fd, bytes + have, sizeof(bytes) - have, 0);

		if (n < 0 && errno == EAGAIN)
			return -2;
		if (n <= 0)
			return -1;
		have += (u32)n;
		while (!hml_wire_parse(bytes, have, SHM_PACKET_SIZE, &f) && have >= f.total) {
			if (f.type == HML_WIRE_BYE &&
			    !hml_wire_unpack_bye(bytes + HML_WIRE_FRAME_BYTES, &f, &verdict))
				return (int)verdict;
			have -= f.total;
			memmove(bytes, bytes + f.total, have);
		}
	}
}

static inline int say_hello_by(int fd, const struct hml_wire_hello *h, struct hml_wire_tx *tx)
{
	u8 frame[HML_WIRE_MOST_HEADER];
	u32 n;

	hml_wire_tx_begin(tx);
	n = hml_wire_pack_hello(tx, frame, h);
	return ht_write_all(fd, frame, n) ? -1 : fd;
}

static inline int say_hello(FIXTURE_DATA(bridge) *self, const struct hml_wire_hello *h,
			    struct hml_wire_tx *tx)
{
	return say_hello_by(call(self), h, tx);
}

static inline int refused_for(FIXTURE_DATA(bridge) *self, const struct hml_wire_hello *h)
{
	struct hml_wire_tx tx = { 0 };
	int fd = say_hello(self, h, &tx), verdict = verdict_of(fd);

	close(fd);
	return verdict;
}

/* A peer that knows everything, as host 1. @receive_bytes: that its socket holds; 0: as others. */
static inline int impersonate_with(FIXTURE_DATA(bridge) *self, struct hml_wire_tx *tx,
				   u32 features, int receive_bytes)
{
	struct hml_wire_hello h = hello_of(1);
	int fd;

	h.features = features;
	if (self->host[0].bridge)
		end(self, 0, SIGKILL);
	if (!wait_state(&self->host[1], false))
		return -1;
	memset(tx, 0, sizeof(*tx));
	fd = say_hello_by(call_with(self, receive_bytes), &h, tx);
	return wait_state(&self->host[1], true) ? fd : -1;
}

static inline int impersonate(FIXTURE_DATA(bridge) *self, struct hml_wire_tx *tx)
{
	return impersonate_with(self, tx, 0, 0);
}

static inline int end_of(int fd, const void *frame, u32 n)
{
	int verdict;

	if (ht_write_all(fd, frame, n))
		return -3;
	verdict = verdict_of(fd);
	close(fd);
	return verdict;
}

#endif /* BRIDGE_HOSTS_H */
