// SPDX-License-Identifier: GPL-2.0-only
/*
 * The libfabric provider: what other threads may do in the moments when a connection comes to be or
 * ends. The provider's system calls there are this program's own functions, which do that.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "pair.h"

#define LONG	(1 << 20)

/* How long a thread that must not get on is given to do so. */
#define NOT_YET_MS	200

/* By this thread only: threads of the provider have calls of their own. */
static __thread ssize_t (*sent)(ssize_t result);
static __thread void (*closing)(void);

__attribute__((visibility("default"))) ssize_t send(int fd, const void *data, size_t length,
						    int flags)
{
	ssize_t (*then)(ssize_t result) = sent;
	ssize_t result = syscall(SYS_sendto, fd, data, length, flags, NULL, 0);

	sent = NULL;
	return then ? then(result) : result;
}

static bool is_connection(int fd)
{
	int type = 0;
	socklen_t length = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) && type == SOCK_SEQPACKET;
}

__attribute__((visibility("default"))) int close(int fd)
{
	void (*first)(void) = closing;

	if (first && is_connection(fd)) {
		closing = NULL;
		first();
	}
	return (int)syscall(SYS_close, fd);
}

FIXTURE(race) {
	struct options options;
	struct fi_info *info;
	struct end client;
	struct end server;
	struct fid_pep *pep;
	char *from;
	char *to;
};

/* For those that are called in the middle of something. */
static FIXTURE_DATA(race) *race;

/* A client that has asked to be connected, and an end point that will accept it. */
FIXTURE_SETUP(race)
{
	struct sockaddr_in address;
	size_t length = sizeof(address);
	struct fi_eq_cm_entry entry;

	race = self;
	self->from = malloc(LONG);
	self->to = calloc(1, LONG);
	fill(self->from, LONG, 1);
	self->info = pair_info(&self->options);
	ASSERT_NE(NULL, self->info);
	ASSERT_EQ(0, end_open(&self->client, self->info, &self->options));
	ASSERT_EQ(0, end_open(&self->server, self->info, &self->options));
	ASSERT_EQ(0, listen_at(&self->server, &self->pep, &address, &length));
	ASSERT_EQ(0, end_endpoint(&self->client, self->info, &self->options));
	ASSERT_EQ(0, fi_connect(self->client.ep, &address, NULL, 0));
	ASSERT_EQ(FI_CONNREQ, next_event(&self->server, NULL, &entry, sizeof(entry), NULL));
	ASSERT_EQ(0, end_endpoint(&self->server, entry.info, &self->options));
	fi_freeinfo(entry.info);
	ASSERT_EQ(0, fi_recv(self->server.ep, self->to, LONG, NULL, 0, self));
}

FIXTURE_TEARDOWN(race)
{
	EXPECT_EQ(0, fi_close(&self->pep->fid));
	end_close(&self->client);
	end_close(&self->server);
	fi_freeinfo(self->info);
	free(self->from);
	free(self->to);
}

/* The client sends as soon as it knows, and a thread of the server receives that at once. */
static ssize_t send_long(ssize_t result)
{
	struct fi_eq_cm_entry entry;

	if (next_event(&race->client, NULL, &entry, sizeof(entry), NULL) != FI_CONNECTED ||
	    fi_send(race->client.ep, race->from, LONG, NULL, 0, NULL))
		abort();
	for (int i = 0; i < 100; i++)
		(void)fi_cntr_read(race->server.cntr[0]);
	return result;
}

/* Before fi_accept() has returned: whether the peer lives is known then, too. */
TEST_F(race, received_while_accepting)
{
	struct fi_cq_tagged_entry entry;
	struct fi_eq_cm_entry event;

	sent = send_long;
	ASSERT_EQ(0, fi_accept(self->server.ep, NULL, 0));
	ASSERT_EQ(NULL, sent);
	EXPECT_EQ(FI_CONNECTED, next_event(&self->server, NULL, &event, sizeof(event), NULL));
	ASSERT_EQ(1, next_entry(self->server.rx, &self->client, &entry));
	EXPECT_EQ(LONG, entry.len);
	EXPECT_EQ(true, filled(self->to, LONG, 1));
}

static ssize_t fail(ssize_t result)
{
	(void)result;
	return -1;
}

/* The answer cannot be sent: an error event, and what was posted ends, with no second event. */
TEST_F(race, accepted_by_nobody)
{
	struct fi_eq_err_entry lost = { 0 };
	struct fi_cq_err_entry error;
	struct fi_eq_cm_entry event;

	sent = fail;
	ASSERT_EQ(0, fi_accept(self->server.ep, NULL, 0));
	ASSERT_EQ(-FI_EAVAIL, next_event(&self->server, NULL, &event, sizeof(event), NULL));
	ASSERT_EQ((ssize_t)sizeof(lost), fi_eq_readerr(self->server.eq, &lost, 0));
	EXPECT_EQ(FI_ECONNRESET, lost.err);
	ASSERT_EQ(1, next_error(self->server.rx, NULL, &error));
	EXPECT_EQ(FI_ECANCELED, error.err);
	EXPECT_EQ(self, error.op_context);
	EXPECT_EQ(-FI_ENOTCONN, fi_send(self->server.ep, "x", 1, NULL, 0, NULL));
	EXPECT_EQ(-FI_EAGAIN, fi_eq_read(self->server.eq, &(uint32_t){ 0 }, &event, sizeof(event),
					 0));
}

static pthread_t reader;
static atomic_bool has_read;
static atomic_bool read_first;

/* Of the client's long message, that it has ended. */
static void *read_end(void *arg)
{
	struct fi_cq_err_entry error;

	(void)arg;
	if (next_error(race->client.tx, NULL, &error) == 1)
		has_read = true;
	return NULL;
}

static void give_time(void)
{
	if (pthread_create(&reader, NULL, read_end, NULL))
		abort();
	for (int i = 0; i < NOT_YET_MS && !has_read; i++)
		usleep(1000);
	read_first = has_read;
}

/*
 * Once it is read that a send ended, its buffer may be used for something else, and a peer that
 * found the connection open would take that for the message.
 */
TEST_F(race, closed_before_read)
{
	struct fi_eq_cm_entry entry;

	ASSERT_EQ(0, fi_accept(self->server.ep, NULL, 0));
	ASSERT_EQ(FI_CONNECTED, next_event(&self->client, NULL, &entry, sizeof(entry), NULL));
	ASSERT_EQ(0, fi_send(self->client.ep, self->from, LONG, NULL, 0, NULL));
	closing = give_time;
	ASSERT_EQ(0, fi_shutdown(self->client.ep, 0));
	ASSERT_EQ(NULL, closing);
	EXPECT_EQ(false, read_first);
	EXPECT_EQ(0, pthread_join(reader, NULL));
	EXPECT_EQ(true, has_read);
}

TEST_HARNESS_MAIN
