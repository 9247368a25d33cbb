// SPDX-License-Identifier: GPL-2.0-only
/*
 * The libfabric provider: a peer that knows the protocol and does not keep to it. It is let in as
 * any process of this user is, and then says whatever it likes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_tagged.h>

#include "connect/conn.h"
#include "connect/wire.h"
#include "kselftest_harness.h"
#include "pair.h"

#define MAGIC		0x31696668U
#define REGION		4096
#define CONNECTIONS	200
#define MESSAGES	200

struct liar {
	struct h_dev *dev;
	struct h_manager *manager;
	struct h_channel *channel;
	int fd;
	bool tagged;		/* it knows tags */
};

static uint64_t state = 88172645463325252ULL;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Mostly what may be near something: small, or an id of long ago, or all of 64 bits. */
static uint64_t draw_number(uint32_t seen)
{
	switch (draw() % 6) {
	case 0:
		return draw() % 8;
	case 1:
		return (1U << 14) | (draw() % 8);
	case 2:
		return seen;
	case 3:
		return draw() % (2 * REGION);
	case 4:
		return ~(draw() % 8);
	default:
		return draw();
	}
}

static bool liar_open(struct liar *liar)
{
	return !h_open(NULL, &liar->dev) && !h_manager_create(liar->dev, NULL, &liar->manager);
}

/* @claim: what it says that its own address is */
static bool liar_ask(struct liar *liar, enum hf_hello_kind kind,
		     const struct sockaddr_in *address, const struct sockaddr_in *claim)
{
	const struct h_channel_attr attr = { .max_message = 65536 };
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct hf_hello hello = { .magic = MAGIC, .version = 1, .kind = (uint16_t)kind };
	int length = sprintf(name.sun_path + 1, "hamlyn-fi-%u", ntohs(address->sin_port));

	if (h_channel_create(liar->manager, &attr, &liar->channel))
		return false;
	h_channel_seed(liar->channel, &hello.seed);
	h_dev_fabric(liar->dev, &hello.fabric);
	hello.address = *claim;
	liar->fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	return !connect(liar->fd, (struct sockaddr *)&name,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) &&
	       send(liar->fd, &hello, sizeof(hello), 0) == sizeof(hello);
}

static bool liar_join(struct liar *liar)
{
	struct hf_hello hello;

	return recv(liar->fd, &hello, sizeof(hello), 0) == sizeof(hello) &&
	       hello.kind == HF_HELLO_ACCEPT && !h_channel_join(liar->channel, &hello.seed);
}

static void liar_leave(struct liar *liar)
{
	h_channel_close(liar->channel, H_NOWAIT);
	close(liar->fd);
}

/* The last id that the other end has named, and nothing left unread. */
static uint32_t liar_listen(struct liar *liar, uint32_t seen)
{
	struct h_message m;

	while (!h_channel_receive(liar->channel, &m, H_NOWAIT)) {
		const struct hf_header *header = m.data;

		if (m.length >= sizeof(*header))
			seen = header->op == HF_CLEAR || header->op == HF_PIECE ?
			       (uint32_t)header->data : header->id;
		h_channel_release(liar->channel, &m);
	}
	return seen;
}

/* @key: of a region that may be written, so that it comes past the first check. */
static int liar_say(struct liar *liar, uint64_t key, uint32_t seen)
{
	struct {
		struct hf_header header;
		unsigned char rest[300];
	} message = { 0 };
	struct hf_target target = { .key = draw() % 3 ? key : draw(),
				    .address = draw_number(seen) };
	bool sound = draw() % 16;	/* as a whole, though not in its parts */
	size_t length = sound ? sizeof(message.header) + sizeof(target) + draw() % 200 :
				draw() % 60;
	uint8_t op = (uint8_t)(sound ? 1 + draw() % 5 : draw() % 10);
	size_t before = sizeof(message.header) +
			(op >= HF_WRITE && op <= HF_READ ? sizeof(target) : 0);

	/* What is answered is seldom right, and ends the connection if it is not. */
	if (sound && !(draw() % 16))
		op = (uint8_t)(HF_CLEAR + draw() % 3);
	message.header.op = op;
	message.header.flags = (uint8_t)(draw() & ~(liar->tagged ? 0 : HF_TAGGED));
	if ((op == HF_SEND || op == HF_SEND_LONG) && message.header.flags & HF_TAGGED)
		before += sizeof(uint64_t);
	if (op == HF_SEND_LONG || op == HF_WRITE_LONG || op == HF_READ) {
		message.header.places = (uint16_t)(draw() % 4);
		if (sound)
			length = before + message.header.places * sizeof(struct hf_place);
	}
	message.header.id = (uint32_t)draw_number(seen);
	message.header.length = sound && (op == HF_SEND || op == HF_WRITE || op == HF_PIECE) ?
				length - before : draw_number(seen) >> (sound ? 24 : 0);
	message.header.data = draw_number(seen);
	for (size_t i = 0; i < sizeof(message.rest); i++)
		message.rest[i] = 0x66;
	memcpy(message.rest, &target, sizeof(target));
	return h_channel_send(liar->channel, &message, length, H_NOWAIT);
}

/* An operation that may be one, on what may be a region's; half with as much as they need. */
static int liar_compute(struct liar *liar, uint64_t key)
{
	struct {
		struct hf_header header;
		struct hf_target target;
		unsigned char operands[512];
	} message = { .header = { .op = HF_ATOMIC, .id = (uint32_t)draw() },
		      .target = { draw() % 8 ? key : draw(), draw_number(0) } };
	uint64_t datatype = draw() % 16, op = draw() % 20, kind = draw() % 4;
	uint64_t count = draw() % 8 ? draw() % 32 : draw();
	size_t length = draw() % sizeof(message.operands);

	if (draw() % 2)
		length = (count % 32 << (datatype < 8 ? datatype / 2 : 3)) << (kind == 2);
	length %= sizeof(message.operands);
	memset(message.operands, 0x66, sizeof(message.operands));
	message.header.data = datatype | op << 8 | kind << 16 | count << 32;
	message.header.length = draw() % 16 ? length : draw();
	return h_channel_send(liar->channel, &message,
			      offsetof(typeof(message), operands) + length, H_NOWAIT);
}

FIXTURE(hostile) {
	struct fi_info *info;
	struct end end;
	struct fid_pep *pep;
	struct sockaddr_in address;
	struct fid_mr *mr;
	unsigned char *memory;		/* a region, and around it what nobody may touch */
	struct liar liar;
};

FIXTURE_SETUP(hostile)
{
	const struct options options = { .cq_size = 4096 };
	size_t length = sizeof(self->address);

	self->info = pair_info(&options);
	ASSERT_NE(NULL, self->info);
	ASSERT_EQ(0, end_open(&self->end, self->info, &options));
	ASSERT_EQ(0, listen_at(&self->end, &self->pep, &self->address, &length));
	self->memory = calloc(3, REGION);
	ASSERT_EQ(0, fi_mr_reg(self->end.domain, self->memory + REGION, REGION,
			       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &self->mr, NULL));
	ASSERT_EQ(true, liar_open(&self->liar));
}

FIXTURE_TEARDOWN(hostile)
{
	h_manager_destroy(self->liar.manager);
	h_close(self->liar.dev);
	EXPECT_EQ(0, fi_close(&self->mr->fid));
	EXPECT_EQ(0, fi_close(&self->pep->fid));
	end_close(&self->end);
	fi_freeinfo(self->info);
	free(self->memory);
}

static bool connect_liar(struct end *end, struct liar *liar, const struct sockaddr_in *address)
{
	const struct options options = { 0 };
	struct fi_eq_cm_entry entry;
	bool done = liar_ask(liar, HF_HELLO_CONNECT, address, address) &&
		    next_event(end, NULL, &entry, sizeof(entry), NULL) == FI_CONNREQ &&
		    !end_endpoint(end, entry.info, &options);

	if (done)
		fi_freeinfo(entry.info);
	return done && !fi_accept(end->ep, NULL, 0) && liar_join(liar) &&
	       next_event(end, NULL, &entry, sizeof(entry), NULL) == FI_CONNECTED;
}

static void drain(struct end *end)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = { 0 };

	for (int i = 0; i < 50; i++) {
		if (fi_cq_read(end->rx, &entry, 1) == -FI_EAVAIL)
			(void)fi_cq_readerr(end->rx, &error, 0);
		if (fi_cq_read(end->tx, &entry, 1) == -FI_EAVAIL)
			(void)fi_cq_readerr(end->tx, &error, 0);
	}
}

/* Whatever it says: nothing outside its region and the buffers for it changes, and others go on. */
TEST_F_TIMEOUT(hostile, anything, 240)
{
	unsigned char *buffer = malloc(64);
	int dropped = 0, said = 0;

	for (int i = 0; i < CONNECTIONS; i++) {
		uint32_t seen = 0;

		ASSERT_EQ(true, connect_liar(&self->end, &self->liar, &self->address));
		/* Something of ours is under way, which it may answer as it likes. */
		(void)fi_read(self->end.ep, buffer, 64, NULL, 0, 0, 1, NULL);
		(void)fi_send(self->end.ep, self->memory, 3 * REGION, NULL, 0, NULL);
		for (int j = 0; j < MESSAGES; j++) {
			(void)fi_recv(self->end.ep, buffer, 64, NULL, 0, NULL);
			seen = liar_listen(&self->liar, seen);
			if (liar_say(&self->liar, fi_mr_key(self->mr), seen) == -EPIPE ||
			    fi_inject(self->end.ep, "x", 1, 0) == -FI_ENOTCONN)
				break;
			said++;
			drain(&self->end);
		}
		dropped += fi_inject(self->end.ep, "x", 1, 0) == -FI_ENOTCONN;
		EXPECT_EQ(0, fi_close(&self->end.ep->fid));
		self->end.ep = NULL;
		liar_leave(&self->liar);
		drain(&self->end);
	}
	for (size_t i = 0; i < REGION; i++) {
		ASSERT_EQ(0, self->memory[i]);
		ASSERT_EQ(0, self->memory[2 * REGION + i]);
	}
	EXPECT_LT(0, dropped);
	TH_LOG("%d of %d connections were ended, after %d messages", dropped, CONNECTIONS, said);
	free(buffer);
}

/* What was injected is the application's again: whoever asks for it once more breaks the rules. */
TEST_F(hostile, injected_twice)
{
	struct hf_header header;
	struct fi_eq_cm_entry entry;
	struct h_message m;

	ASSERT_EQ(true, connect_liar(&self->end, &self->liar, &self->address));
	ASSERT_EQ(0, fi_inject_write(self->end.ep, self->memory, 100, 0, 0, 1));
	ASSERT_EQ(0, h_channel_receive(self->liar.channel, &m, patience_ms() * 1000000));
	memcpy(&header, m.data, sizeof(header));
	h_channel_release(self->liar.channel, &m);
	EXPECT_EQ(HF_WRITE, header.op);
	header.op = HF_CLEAR;
	header.length = 100;
	ASSERT_EQ(0, h_channel_send(self->liar.channel, &header, sizeof(header), H_NOWAIT));
	EXPECT_EQ(FI_SHUTDOWN, next_event(&self->end, NULL, &entry, sizeof(entry), NULL));
	EXPECT_NE(0, h_channel_receive(self->liar.channel, &m, H_NOWAIT));
	EXPECT_EQ(0, fi_close(&self->end.ep->fid));
	self->end.ep = NULL;
	liar_leave(&self->liar);
}

/* What it reads and never takes is kept for it, but no more than it may have under way. */
TEST_F(hostile, reads_without_end)
{
	struct {
		struct hf_header header;
		struct hf_target target;
	} message = { .header = { .op = HF_READ, .length = HF_ORDERED } };
	unsigned char *region = calloc(1, HF_ORDERED);
	struct fid_mr *mr;
	int said = 0;

	ASSERT_EQ(0, fi_mr_reg(self->end.domain, region, HF_ORDERED, FI_REMOTE_READ, 0, 0, 0, &mr,
			       NULL));
	message.target.key = fi_mr_key(mr);
	ASSERT_EQ(true, connect_liar(&self->end, &self->liar, &self->address));
	while (said < 10000 && fi_inject(self->end.ep, "x", 1, 0) != -FI_ENOTCONN) {
		message.header.id = (uint32_t)said + 1;
		while (!h_channel_send(self->liar.channel, &message, sizeof(message), H_NOWAIT))
			message.header.id = (uint32_t)++said + 1;
		drain(&self->end);
	}
	EXPECT_LT(4000, said);
	EXPECT_GT(4200, said);
	EXPECT_EQ(0, fi_close(&self->end.ep->fid));
	self->end.ep = NULL;
	liar_leave(&self->liar);
	EXPECT_EQ(0, fi_close(&mr->fid));
	free(region);
}

/* A socket over which one hello was said, by one that says that this is its address. */
static int say_hello(const struct sockaddr_in *to, const struct sockaddr_in *from)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct hf_hello hello = { .magic = MAGIC, .version = 1, .kind = HF_HELLO_CONNECT,
				  .address = *from };
	int n = sprintf(name.sun_path + 1, "hamlyn-fi-%u", ntohs(to->sin_port));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

	if (connect(fd, (struct sockaddr *)&name,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	    send(fd, &hello, sizeof(hello), 0) != sizeof(hello))
		return -1;
	return fd;
}

/* An address that is none would only be found out by fi_endpoint(): such requests are not told. */
TEST_F(hostile, no_address)
{
	const struct sockaddr_in none = { .sin_family = AF_UNIX };
	struct fi_eq_cm_entry entry;
	int fd = say_hello(&self->address, &none);

	ASSERT_LE(0, fd);
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(-FI_EAGAIN, fi_eq_read(self->end.eq, &(uint32_t){ 0 }, &entry,
						 sizeof(entry), 0));
	EXPECT_EQ(0, recv(fd, &entry, sizeof(entry), MSG_DONTWAIT));
	close(fd);
}

#define TOLD_AT_MOST	1024

/* Requests that nobody answers: so many are held at most, and after an answer others follow. */
TEST_F(hostile, unanswered)
{
	struct rlimit files;
	struct fi_eq_cm_entry entry;
	fid_t handle = NULL;
	int fds[TOLD_AT_MOST + 20], told = 0;
	uint32_t event;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &files));
	files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	for (int i = 0; i < TOLD_AT_MOST + 20; i++) {
		fds[i] = say_hello(&self->address, &self->address);
		ASSERT_LE(0, fds[i]);
		for (int j = 0; j < 3; j++) {
			if (fi_eq_read(self->end.eq, &event, &entry, sizeof(entry), 0) < 0)
				continue;
			EXPECT_EQ(FI_CONNREQ, event);
			handle = entry.info->handle;
			fi_freeinfo(entry.info);
			told++;
		}
	}
	EXPECT_EQ(TOLD_AT_MOST, told);
	ASSERT_EQ(0, fi_reject(self->pep, handle, NULL, 0));
	EXPECT_EQ(FI_CONNREQ, next_event(&self->end, NULL, &entry, sizeof(entry), NULL));
	fi_freeinfo(entry.info);
	for (int i = 0; i < TOLD_AT_MOST + 20; i++)
		close(fds[i]);
}

/* ---- without connections --------------------------------------------------- */

FIXTURE(hostile_rdm) {
	struct options options;
	struct fi_info *info;
	struct end end;
	struct sockaddr_in address;
	struct sockaddr_in claim;	/* where the liar listens, and has to */
	int listener;
	struct fid_mr *mr;
	unsigned char *memory;
	struct liar liar;
};

static int listen_as(const struct sockaddr_in *address)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int n = sprintf(name.sun_path + 1, "hamlyn-fi-%u", ntohs(address->sin_port));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	return bind(fd, (struct sockaddr *)&name,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	       listen(fd, 300) ? -1 : fd;
}

FIXTURE_SETUP(hostile_rdm)
{
	size_t length = sizeof(self->address);

	self->options = (struct options){ .rdm = true, .cq_size = 64 };
	self->info = pair_info(&self->options);
	ASSERT_NE(NULL, self->info);
	ASSERT_EQ(0, end_open(&self->end, self->info, &self->options));
	ASSERT_EQ(0, end_endpoint(&self->end, self->info, &self->options));
	ASSERT_EQ(0, fi_getname(&self->end.ep->fid, &self->address, &length));
	self->claim = self->address;
	self->claim.sin_port = htons((uint16_t)(20000 + getpid() % 10000));
	self->listener = listen_as(&self->claim);
	ASSERT_LE(0, self->listener);
	self->memory = calloc(3, REGION);
	ASSERT_EQ(0, fi_mr_reg(self->end.domain, self->memory + REGION, REGION,
			       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &self->mr, NULL));
	ASSERT_EQ(true, liar_open(&self->liar));
	self->liar.tagged = true;
}

FIXTURE_TEARDOWN(hostile_rdm)
{
	h_manager_destroy(self->liar.manager);
	h_close(self->liar.dev);
	EXPECT_EQ(0, fi_close(&self->mr->fid));
	end_close(&self->end);
	close(self->listener);
	fi_freeinfo(self->info);
	free(self->memory);
}

/* The answer of our end, which makes progress: its kind, or 0. */
static int answer(struct end *end, struct liar *liar)
{
	int64_t until = now_ms() + patience_ms();
	struct hf_hello hello;
	ssize_t got;

	do {
		(void)fi_cntr_read(end->cntr[0]);
		got = recv(liar->fd, &hello, sizeof(hello), MSG_DONTWAIT);
	} while (got < 0 && errno == EAGAIN && now_ms() < until);
	if (got != sizeof(hello))
		return 0;
	if (hello.kind == HF_HELLO_ACCEPT && h_channel_join(liar->channel, &hello.seed))
		return 0;
	return hello.kind;
}

/* Receives of every sort, whatever is in the way of them. */
static void want_something(struct end *end, unsigned char *buffer)
{
	const struct iovec iov = { buffer, 64 };
	const struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC };
	const struct fi_msg_tagged look = {
		.addr = FI_ADDR_UNSPEC, .ignore = UINT64_MAX, .context = buffer
	};

	switch (draw() % 6) {
	case 0:
		(void)fi_recvmsg(end->ep, &msg, FI_MULTI_RECV);
		break;
	case 1:
		(void)fi_trecvmsg(end->ep, &look, FI_PEEK | (draw() % 2 ? FI_CLAIM : FI_DISCARD));
		break;
	case 2:
		(void)fi_trecvmsg(end->ep, &look, FI_CLAIM | FI_DISCARD);
		break;
	case 3:
		(void)fi_cancel(&end->ep->fid, buffer);
		break;
	default:
		(void)fi_trecv(end->ep, buffer, draw() % 64, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX,
			       draw() % 2 ? buffer : NULL);
	}
}

/* Whatever it says: nothing outside its region and the buffers for it changes, and others go on. */
TEST_F_TIMEOUT(hostile_rdm, anything, 240)
{
	unsigned char *buffer = malloc(64);
	int dropped = 0;
	fi_addr_t to;

	ASSERT_EQ(1, fi_av_insert(self->end.av, &self->claim, 1, &to, 0, NULL));
	for (int i = 0; i < CONNECTIONS / 2; i++) {
		uint32_t seen = 0;
		int said = 0;

		ASSERT_EQ(true, liar_ask(&self->liar, HF_HELLO_LINK, &self->address, &self->claim));
		ASSERT_EQ(HF_HELLO_ACCEPT, answer(&self->end, &self->liar));
		(void)fi_read(self->end.ep, buffer, 64, NULL, to, 0, 1, NULL);
		(void)fi_tsend(self->end.ep, self->memory, 3 * REGION, NULL, to, 1, NULL);
		while (said < MESSAGES) {
			want_something(&self->end, buffer);
			seen = liar_listen(&self->liar, seen);
			if (liar_say(&self->liar, fi_mr_key(self->mr), seen) == -EPIPE)
				break;
			said++;
			drain(&self->end);
		}
		dropped += said < MESSAGES;
		liar_leave(&self->liar);
		drain(&self->end);
	}
	for (size_t i = 0; i < REGION; i++) {
		ASSERT_EQ(0, self->memory[i]);
		ASSERT_EQ(0, self->memory[2 * REGION + i]);
	}
	EXPECT_LT(0, dropped);
	TH_LOG("%d of %d links were ended", dropped, CONNECTIONS / 2);
	free(buffer);
}

TEST_F(hostile_rdm, operations)
{
	bool changed = false;

	for (int i = 0; i < CONNECTIONS; i++) {
		ASSERT_EQ(true, liar_ask(&self->liar, HF_HELLO_LINK, &self->address, &self->claim));
		ASSERT_EQ(HF_HELLO_ACCEPT, answer(&self->end, &self->liar));
		for (int j = 0; j < MESSAGES; j++) {
			(void)liar_listen(&self->liar, 0);
			if (liar_compute(&self->liar, fi_mr_key(self->mr)) == -EPIPE)
				break;
			drain(&self->end);
		}
		liar_leave(&self->liar);
		drain(&self->end);
	}
	for (size_t i = 0; i < REGION; i++) {
		ASSERT_EQ(0, self->memory[i]);
		ASSERT_EQ(0, self->memory[2 * REGION + i]);
		changed = changed || self->memory[REGION + i];
	}
	EXPECT_EQ(true, changed);
}

/* Did it end the link? */
static bool is_ended(struct end *end, struct liar *liar)
{
	int64_t until = now_ms() + patience_ms();
	struct h_message m;
	int err;

	do {
		drain(end);
		err = h_channel_receive(liar->channel, &m, H_NOWAIT);
		if (!err)
			return false;
	} while (err == -EAGAIN && now_ms() < until);
	return err != -EAGAIN;
}

/* What no peer says that keeps to the rules: nothing is done, and it is heard no more. */
TEST_F(hostile_rdm, no_operation)
{
	static const struct { uint64_t datatype, op, kind, count, length; } cases[] = {
		{ FI_UINT64, FI_ATOMIC_WRITE, 0, 8, 8 },	/* fewer operands than it says */
		{ FI_UINT64, FI_ATOMIC_WRITE, 0, 1, 16 },
		{ FI_UINT64, FI_CSWAP_NE, 2, 1, 8 },		/* and nothing to compare with */
		{ FI_UINT64, FI_ATOMIC_WRITE, 0, 0, 0 },
		{ FI_UINT64, FI_ATOMIC_READ, 1, 1025, 0 },
		{ FI_UINT64, FI_ATOMIC_READ, 0, 1, 0 },		/* nobody would get it */
		{ FI_DOUBLE, FI_BOR, 0, 1, 8 },
		{ FI_UINT64, FI_ATOMIC_OP_LAST, 0, 1, 8 },
		{ FI_UINT64, FI_ATOMIC_WRITE, 3, 1, 8 },
		{ FI_DATATYPE_LAST, FI_ATOMIC_WRITE, 0, 1, 8 },
		{ 255, FI_ATOMIC_WRITE, 0, 1, 8 },
		{ FI_UINT64, 255, 0, 1, 8 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct {
			struct hf_header header;
			struct hf_target target;
			unsigned char operands[16];
		} message = { .header = { .op = HF_ATOMIC, .length = cases[i].length },
			      .target = { .key = fi_mr_key(self->mr) } };

		memset(message.operands, 0x66, sizeof(message.operands));
		message.header.id = 7;
		message.header.data = cases[i].datatype | cases[i].op << 8 | cases[i].kind << 16 |
				      cases[i].count << 32;
		ASSERT_EQ(true, liar_ask(&self->liar, HF_HELLO_LINK, &self->address, &self->claim));
		ASSERT_EQ(HF_HELLO_ACCEPT, answer(&self->end, &self->liar));
		ASSERT_EQ(0, h_channel_send(self->liar.channel, &message,
					    offsetof(typeof(message), operands) + cases[i].length,
					    H_NOWAIT));
		EXPECT_EQ(true, is_ended(&self->end, &self->liar)) {
			TH_LOG("case %zu", i);
		}
		liar_leave(&self->liar);
		drain(&self->end);
	}
	for (size_t i = 0; i < 3 * REGION; i++)
		ASSERT_EQ(0, self->memory[i]);
}

/* The same of messages for a buffer that is there: none of it gets into that. */
TEST_F(hostile_rdm, no_message)
{
	static const struct { uint64_t length; uint8_t flags; size_t sent; } cases[] = {
		{ 9, HF_TAGGED, 8 + 8 },		/* fewer bytes than it says */
		{ 7, HF_TAGGED, 8 + 8 },		/* more */
		{ UINT64_MAX, HF_TAGGED, 8 + 8 },
		{ 0, HF_TAGGED, 4 },			/* half of a tag */
		{ 1ULL << 32 | 8, HF_TAGGED | HF_HAS_DATA, 8 + 8 },
		{ 9, 0, 8 },
	};
	unsigned char buffer[64] = { 0 };
	struct {
		struct hf_header header;
		unsigned char rest[16];
	} message;

	ASSERT_EQ(0, fi_trecv(self->end.ep, buffer, sizeof(buffer), NULL, FI_ADDR_UNSPEC, 0,
			      UINT64_MAX, buffer));
	ASSERT_EQ(0, fi_recv(self->end.ep, buffer, sizeof(buffer), NULL, FI_ADDR_UNSPEC, buffer));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&message, 0x66, sizeof(message));
		message.header = (struct hf_header){
			.op = HF_SEND, .flags = cases[i].flags, .length = cases[i].length
		};
		ASSERT_EQ(true, liar_ask(&self->liar, HF_HELLO_LINK, &self->address, &self->claim));
		ASSERT_EQ(HF_HELLO_ACCEPT, answer(&self->end, &self->liar));
		ASSERT_EQ(0, h_channel_send(self->liar.channel, &message,
					    sizeof(message.header) + cases[i].sent, H_NOWAIT));
		EXPECT_EQ(true, is_ended(&self->end, &self->liar)) {
			TH_LOG("case %zu", i);
		}
		liar_leave(&self->liar);
		drain(&self->end);
	}
	for (size_t i = 0; i < sizeof(buffer); i++)
		ASSERT_EQ(0, buffer[i]);
}

/* Before libfabric is there: there is another host. */
static __attribute__((constructor)) void another_host(void)
{
	setenv("FI_HAMLYN_HOSTS", "192.0.2.77=77", 1);
}

/*
 * Under the name of another process, of nobody, or of one of another host, it is turned down; under
 * its own it is not.
 */
TEST_F(hostile_rdm, another_name)
{
	struct sockaddr_in nobody = self->claim, far = self->claim;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		/* The parent listens there, and this is another process. */
		struct liar liar;
		struct hf_hello hello;

		_exit(liar_open(&liar) &&
		      liar_ask(&liar, HF_HELLO_LINK, &self->address, &self->claim) &&
		      recv(liar.fd, &hello, sizeof(hello), 0) == sizeof(hello) &&
		      hello.kind == HF_HELLO_REJECT ? 0 : 1);
	}
	for (int status = -1, i = 0; status;) {
		(void)fi_cntr_read(self->end.cntr[0]);
		if (waitpid(pid, &status, WNOHANG) != pid)
			status = -1;
		else
			ASSERT_EQ(0, status);
		ASSERT_GT(10000000, i++);
	}
	nobody.sin_port = htons((uint16_t)(ntohs(nobody.sin_port) + 10000));
	ASSERT_EQ(true, liar_ask(&self->liar, HF_HELLO_LINK, &self->address, &nobody));
	EXPECT_EQ(HF_HELLO_REJECT, answer(&self->end, &self->liar));
	liar_leave(&self->liar);
	ASSERT_EQ(1, inet_pton(AF_INET, "192.0.2.77", &far.sin_addr));
	ASSERT_EQ(true, liar_ask(&self->liar, HF_HELLO_LINK, &self->address, &far));
	EXPECT_EQ(HF_HELLO_REJECT, answer(&self->end, &self->liar));
	liar_leave(&self->liar);
	/* No connection of the other kind, either. */
	ASSERT_EQ(true, liar_ask(&self->liar, HF_HELLO_CONNECT, &self->address, &self->claim));
	EXPECT_EQ(0, answer(&self->end, &self->liar));
	liar_leave(&self->liar);
	ASSERT_EQ(true, liar_ask(&self->liar, HF_HELLO_LINK, &self->address, &self->claim));
	EXPECT_EQ(HF_HELLO_ACCEPT, answer(&self->end, &self->liar));
	liar_leave(&self->liar);
}

/* ---- one that is asked ---------------------------------------------------- */

/* What our end is told when the answer is this hello, which claims so much data. */
static int answered_by(struct end *end, const struct sockaddr_in *address, const void *hello,
		       size_t length, struct fi_eq_err_entry *error)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int n = sprintf(name.sun_path + 1, "hamlyn-fi-%u", ntohs(address->sin_port));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), client;
	struct hf_hello asked;
	struct fi_eq_cm_entry entry;
	int event;

	if (bind(fd, (struct sockaddr *)&name,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	    listen(fd, 1) || fi_connect(end->ep, address, NULL, 0))
		return -1;
	client = accept(fd, NULL, NULL);
	if (recv(client, &asked, sizeof(asked), 0) != sizeof(asked) ||
	    send(client, hello, length, 0) != (ssize_t)length)
		return -2;
	event = next_event(end, NULL, &entry, sizeof(entry), NULL);
	close(client);
	close(fd);
	return event == -FI_EAVAIL && fi_eq_readerr(end->eq, error, 0) == sizeof(*error) ? 0 : -3;
}

/* A refusal that claims more data than there is, whole or cut short, has none. */
TEST(refusal_lies)
{
	const struct options options = { 0 };
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons((uint16_t)(20000 + getpid() % 10000)) };
	struct hf_hello hello = { .magic = MAGIC, .version = 1, .kind = HF_HELLO_REJECT };
	const struct {
		uint32_t claims;
		size_t length;
		int err;
	} tries[] = {
		{ HF_CM_DATA, sizeof(hello), FI_ECONNREFUSED },
		{ HF_CM_DATA + 1, sizeof(hello), FI_ECONNABORTED },
		{ UINT32_MAX, sizeof(hello), FI_ECONNABORTED },
		{ UINT32_MAX, offsetof(struct hf_hello, data), FI_ECONNABORTED },
	};
	struct fi_info *info = pair_info(&options);

	ASSERT_NE(NULL, info);
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct fi_eq_err_entry error = { 0 };
		struct end end;

		hello.data_length = tries[i].claims;
		ASSERT_EQ(0, end_open(&end, info, &options));
		ASSERT_EQ(0, end_endpoint(&end, info, &options));
		ASSERT_EQ(0, answered_by(&end, &address, &hello, tries[i].length, &error));
		EXPECT_EQ(tries[i].err, error.err);
		EXPECT_EQ(tries[i].err == FI_ECONNREFUSED ? HF_CM_DATA : 0, error.err_data_size);
		end_close(&end);
	}
	fi_freeinfo(info);
}

TEST_HARNESS_MAIN
