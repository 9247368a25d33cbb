// SPDX-License-Identifier: GPL-2.0-only
/*
 * The libfabric provider against a peer that was let in: any message of any content, between calls
 * of the application; and against what anybody says on the socket where connections are made.
 *
 * The peer is of this process, so places where it says that its bytes are lie in an arena of its.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>

#include <hamlyn/channel.h>

#include "base/address.h"
#include "base/info.h"
#include "connect/conn.h"
#include "connect/pep.h"
#include "domain/mr.h"
#include "fuzz_device.h"
#include "transfer/arrive.h"

#define MAGIC		0x31696668U
#define STEPS		60
#define OPS		64
#define REGION		256
#define SECRET		0x5e		/* what the peer may not read, and never says itself */
#define FILL		0x66
#define CONSTANT	0x77		/* what the peer may read, and not write */
#define CQ_SIZE		4
#define ARENA		4096
#define SEEN		8

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *tx, *rx;
static struct h_manager *raw_manager;

enum region { READ_WRITE, READ_ONLY, WRITE_ONLY, REGIONS };

/* An operation of the application: it ends once, and its memory is gone then. */
static struct op {
	bool open;
	bool receive;
	size_t length;
	unsigned char *buffer;
} ops[OPS];

/* One run. */
static struct {
	struct fid_ep *ep;
	struct hf_conn conn;
	int peer_fd;
	struct h_channel *raw;
	struct fid_mr *mr[REGIONS];
	uint64_t keys[REGIONS];		/* also of those that were closed */
	unsigned char memory[REGIONS][3 * REGION];
	uint64_t seen[SEEN];		/* ids that the peer was told */
	unsigned int seen_count;
	unsigned char *arena;
} run;

static struct hf_ep *end(void)
{
	return hf_container(run.ep, struct hf_ep, fid);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_cq_attr cq_attr = { .size = CQ_SIZE, .format = FI_CQ_FORMAT_TAGGED };
	struct fi_info *hints = fi_allocinfo();
	char spec[64];

	(void)argc;
	(void)argv;
	/* Libraries that libfabric needs have taken them, and end without a word to libFuzzer. */
	signal(SIGABRT, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
	MUST(!h_manager_create(fuzz_open_device("ofi"), NULL, &raw_manager));
	snprintf(spec, sizeof(spec), "shm:fuzz-ofi-%d,size=8M", getpid());
	setenv("HAMLYN_DEVICE", spec, 1);
	hints->caps = FI_MSG | FI_RMA;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
	MUST(!hf_getinfo(hf_provider.fi_version, NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	MUST(!hf_provider.fabric(info->fabric_attr, &fabric, NULL));
	MUST(!fi_domain(fabric, info, &domain, NULL));
	MUST(!fi_eq_open(fabric, &eq_attr, &eq, NULL));
	MUST(!fi_cq_open(domain, &cq_attr, &tx, NULL));
	MUST(!fi_cq_open(domain, &cq_attr, &rx, NULL));
	run.arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(run.arena != MAP_FAILED);
	return 0;
}

/* ---- the application ------------------------------------------------------ */

static struct op *op_new(bool receive, size_t length)
{
	for (int i = 0; i < OPS; i++) {
		if (ops[i].open)
			continue;
		ops[i] = (struct op){ .open = true, .receive = receive, .length = length,
				      .buffer = malloc(length ? length : 1) };
		MUST(ops[i].buffer);
		memset(ops[i].buffer, FILL, length);
		return &ops[i];
	}
	return NULL;
}

static void op_end(struct op *op)
{
	MUST(op >= ops && op < ops + OPS && op->open);
	op->open = false;
	free(op->buffer);
}

static void read_queue(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error;
	ssize_t n = fi_cq_read(cq, &entry, 1);

	if (n == 1 && entry.op_context) {
		struct op *op = entry.op_context;

		MUST(op->receive == (cq == rx) && (!op->receive || entry.len <= op->length));
		op_end(op);
	} else if (n == -FI_EAVAIL) {
		memset(&error, 0, sizeof(error));
		MUST(fi_cq_readerr(cq, &error, 0) == 1);
		MUST(error.err > 0);
		/* What was injected has no context. */
		if (error.op_context)
			op_end(error.op_context);
	}
}

static void post_receive(struct fuzz *f)
{
	struct op *op = op_new(true, fuzz_number(f, 100) % 300);

	if (op && fi_recv(run.ep, op->buffer, op->length, NULL, 0, op))
		op_end(op);
}

/* What is injected is the application's again when the call returns. */
static void inject(uint8_t how, size_t length)
{
	unsigned char *buffer = malloc(length + 1);

	MUST(buffer);
	memset(buffer, FILL, length + 1);
	if (how & 0x10)
		fi_inject_write(run.ep, buffer, length, 0, 0, 1);
	else
		fi_inject(run.ep, buffer, length, 0);
	free(buffer);
}

static void post_other(struct fuzz *f)
{
	uint8_t how = fuzz_u8(f);
	size_t length = how & 0x80 ? HF_EAGER + fuzz_u8(f) : fuzz_u8(f);
	struct op *op;
	ssize_t err;

	if ((how & 3) == 0) {
		inject(how, length);
		return;
	}
	op = op_new(false, length);
	if (!op)
		return;
	if ((how & 3) == 1)
		err = fi_send(run.ep, op->buffer, length, NULL, 0, op);
	else if ((how & 3) == 2)
		err = fi_read(run.ep, op->buffer, length, NULL, 0, 0, 1, op);
	else
		err = fi_write(run.ep, op->buffer, length, NULL, 0, 0, 1, op);
	if (err)
		op_end(op);
}

static void close_region(uint8_t which)
{
	if (which < REGIONS && run.mr[which]) {
		MUST(!fi_close(&run.mr[which]->fid));
		run.mr[which] = NULL;
	}
}

/* ---- the peer ------------------------------------------------------------- */

static void saw(uint64_t id)
{
	run.seen[run.seen_count++ % SEEN] = id;
}

static bool has_secret(const unsigned char *bytes, size_t length)
{
	for (size_t i = 0; i + 8 <= length; i++) {
		size_t n = 0;

		while (n < 8 && bytes[i + n] == SECRET)
			n++;
		if (n == 8)
			return true;
	}
	return false;
}

static void listen_to(void)
{
	struct h_message m;

	while (!h_channel_receive(run.raw, &m, H_NOWAIT)) {
		struct hf_header header;

		MUST(m.length >= sizeof(header));
		memcpy(&header, m.data, sizeof(header));
		MUST(header.op >= HF_SEND && header.op <= HF_DONE);
		MUST(!has_secret(m.data, m.length));
		saw(header.op == HF_CLEAR ? header.data : header.id);
		h_channel_release(run.raw, &m);
	}
	MUST(!has_secret(run.arena, ARENA));
}

static uint64_t number(struct fuzz *f, uint64_t edge)
{
	uint8_t how = fuzz_u8(f);

	return how & 0x80 ? run.seen[how % SEEN] : fuzz_number(f, edge);
}

/* Of this process, which is the peer's: nothing of ours may be given away by the fuzzer itself. */
static void put_places(struct fuzz *f, struct hf_place *places, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		uint8_t how = fuzz_u8(f);
		size_t offset = fuzz_u16(f) % ARENA;

		places[i].length = how & 0x80 ? fuzz_u16(f) % (ARENA - offset) :
						fuzz_u8(f) % (ARENA - offset);
		places[i].address = how & 1 ? 8 : (uintptr_t)run.arena + offset;
	}
}

/* Sound as a whole, as its bits say, or in no way. */
static size_t put_message(struct fuzz *f, unsigned char *to, size_t room)
{
	uint8_t how = fuzz_u8(f), op = fuzz_u8(f);
	struct hf_header header = { .op = op % 10, .flags = fuzz_u8(f) };
	struct hf_target target = { .key = run.keys[fuzz_u8(f) % REGIONS] };
	struct hf_place places[8] = { 0 };
	size_t at = sizeof(header), payload = fuzz_number(f, 100) % 400;

	target.address = fuzz_number(f, REGION);
	if (how == 0xff)
		target.key = fuzz_u64(f);
	header.id = (uint32_t)number(f, 1U << 14);
	header.data = number(f, REGION);
	header.length = how & 1 ? payload : fuzz_number(f, REGION);
	if (header.op == HF_SEND_LONG || header.op == HF_WRITE_LONG || header.op == HF_READ) {
		header.places = (how >> 1) % 8;
		payload = how & 0x20 ? 0 : payload;
	}
	put_places(f, places, header.places);
	if (header.op >= HF_WRITE && header.op <= HF_READ) {
		memcpy(to + at, &target, sizeof(target));
		at += sizeof(target);
	}
	memcpy(to + at, places, header.places * sizeof(places[0]));
	at += header.places * sizeof(places[0]);
	memcpy(to, &header, sizeof(header));
	memset(to + at, FILL, payload);
	at += payload;
	MUST(at <= room);
	return how & 0x40 ? fuzz_u8(f) % (at + 1) : at;
}

/* Through the channel, or as one that has come through it, with an end that is watched. */
static void say(struct fuzz *f)
{
	unsigned char bytes[1024], *exact;
	bool watched = fuzz_u8(f) & 1;
	size_t length = put_message(f, bytes, sizeof(bytes));

	if (!watched) {
		h_channel_send(run.raw, bytes, length, H_NOWAIT);
		return;
	}
	if (end()->state != HF_EP_CONNECTED)
		return;
	exact = malloc(length ? length : 1);
	MUST(exact);
	memcpy(exact, bytes, length);
	if (hf_arrive(end(), exact, length) == HF_BROKEN)
		hf_ep_lost(end(), FI_ECONNABORTED);
	free(exact);
}

/* ---- what must hold ------------------------------------------------------- */

static void check_queue(struct fid_cq *fid)
{
	const struct hf_cq *cq = hf_container(fid, struct hf_cq, fid);

	MUST(cq->tail - cq->head <= cq->size && cq->promised <= cq->size);
	MUST(cq->tail - cq->head + cq->promised <= cq->size);
}

static void check_memory(void)
{
	for (int i = 0; i < REGIONS; i++)
		for (size_t j = 0; j < 3 * REGION; j++)
			if (i == READ_ONLY || j < REGION || j >= 2 * REGION)
				MUST(run.memory[i][j] == (j >= REGION && j < 2 * REGION ?
							  CONSTANT : SECRET));
}

static void check(void)
{
	const struct hf_ep *ep = end();

	check_queue(tx);
	check_queue(rx);
	MUST(ep->works.ours <= ep->tx_size && ep->held_count <= HF_MAX_HELD);
	MUST(ep->recvs <= ep->rx_size && ep->works.count <= HF_WORKS_MAX);
}

static void step(struct fuzz *f)
{
	uint8_t what = fuzz_u8(f);

	switch (what & 7) {
	case 0:
	case 1:
	case 2:
		say(f);
		break;
	case 3:
		post_receive(f);
		break;
	case 4:
		post_other(f);
		break;
	case 5:
		if (what & 8)
			close_region(what >> 4);
		else
			fi_cancel(&run.ep->fid, &ops[(what >> 4) % OPS]);
		break;
	default:
		read_queue(tx);
		read_queue(rx);
		listen_to();
	}
	check();
}

/* ---- a connection, and its end -------------------------------------------- */

static void make_regions(void)
{
	static const uint64_t access[REGIONS] = {
		[READ_WRITE] = FI_REMOTE_READ | FI_REMOTE_WRITE,
		[READ_ONLY] = FI_REMOTE_READ,
		[WRITE_ONLY] = FI_REMOTE_WRITE,
	};

	memset(run.memory, SECRET, sizeof(run.memory));
	memset(run.memory[READ_WRITE] + REGION, FILL, REGION);
	memset(run.memory[READ_ONLY] + REGION, CONSTANT, REGION);
	for (int i = 0; i < REGIONS; i++) {
		MUST(!fi_mr_reg(domain, run.memory[i] + REGION, REGION, access[i], 0, 0, 0,
				&run.mr[i], NULL));
		run.keys[i] = fi_mr_key(run.mr[i]);
	}
}

static void make_endpoint(struct fi_info *of)
{
	MUST(!fi_endpoint(domain, of, &run.ep, NULL));
	MUST(!fi_ep_bind(run.ep, &eq->fid, 0) && !fi_ep_bind(run.ep, &tx->fid, FI_TRANSMIT) &&
	     !fi_ep_bind(run.ep, &rx->fid, FI_RECV) && !fi_enable(run.ep));
}

static void join(bool direct)
{
	const struct h_channel_attr attr = { .max_message = 65536 };
	struct h_channel_seed seed;
	int fds[2];

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
	run.conn = (struct hf_conn){ .state = HF_CONN_OPEN, .source.fd = fds[0], .ep = end() };
	run.peer_fd = fds[1];
	MUST(!h_channel_create(raw_manager, &attr, &run.raw));
	h_channel_seed(run.raw, &seed);
	MUST(!h_channel_join(end()->channel, &seed));
	h_channel_seed(end()->channel, &seed);
	MUST(!h_channel_join(run.raw, &seed));
	end()->conn = &run.conn;
	end()->pid = direct ? getpid() : 0;
	end()->offers = direct;
	hf_ep_connected(end());
}

static void drain_events(void)
{
	struct fi_eq_err_entry error = { 0 };
	union {
		struct fi_eq_cm_entry entry;
		char room[sizeof(struct fi_eq_cm_entry) + HF_CM_DATA];
	} u;
	uint32_t event;
	ssize_t n;

	while ((n = fi_eq_read(eq, &event, &u, sizeof(u), 0)) != -FI_EAGAIN) {
		MUST(n <= (ssize_t)sizeof(u));
		if (n == -FI_EAVAIL) {
			MUST(fi_eq_readerr(eq, &error, 0) == sizeof(error));
			MUST(error.err_data_size <= HF_CM_DATA);
		} else if (event == FI_CONNREQ) {
			fi_freeinfo(u.entry.info);
		}
	}
}

/* When the peer has gone all that was under way has ended, and what was posted. */
static void leave(void)
{
	hf_ep_lost(end(), FI_ECONNRESET);
	for (int i = 0; i < 2 * OPS; i++) {
		read_queue(tx);
		read_queue(rx);
	}
	for (int i = 0; i < OPS; i++)
		MUST(!ops[i].open);
	listen_to();
	check();
	MUST(!hf_container(tx, struct hf_cq, fid)->promised &&
	     !hf_container(rx, struct hf_cq, fid)->promised);
	end()->conn = NULL;
	MUST(!fi_close(&run.ep->fid));
	h_channel_close(run.raw, H_NOWAIT);
	close(run.conn.source.fd);
	close(run.peer_fd);
	for (uint8_t i = 0; i < REGIONS; i++)
		close_region(i);
	drain_events();
}

static void messages(struct fuzz *f, bool direct)
{
	memset(run.arena, 0, ARENA);
	memset(run.seen, 0, sizeof(run.seen));
	run.seen_count = 0;
	make_endpoint(info);
	make_regions();
	join(direct);
	for (int n = 0; f->left && n < STEPS; n++)
		step(f);
	check_memory();
	leave();
}

/* ---- the socket ----------------------------------------------------------- */

static size_t put_hello(struct fuzz *f, unsigned char *to)
{
	struct hf_hello hello = { .magic = MAGIC, .version = HF_PROTOCOL_VERSION };
	uint8_t how = fuzz_u8(f);

	hello.kind = fuzz_u8(f) & 3;
	h_dev_fabric(fuzz_opened, &hello.fabric);
	if (how & 1)
		h_channel_seed(run.raw, &hello.seed);
	hello.address = (struct sockaddr_in){ .sin_family = AF_INET,
					      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	hello.data_length = (uint32_t)fuzz_number(f, HF_CM_DATA);
	memset(hello.data, FILL, sizeof(hello.data));
	hello.probe = how & 2;
	hello.probe_address = how & 4 ? 8 : (uintptr_t)run.arena;
	memcpy(to, &hello, sizeof(hello));
	/* Some bytes otherwise */
	for (int i = 0; i < (how >> 5); i++)
		to[fuzz_u16(f) % sizeof(hello)] ^= fuzz_u8(f);
	return how & 0x18 ? sizeof(hello) : fuzz_u16(f) % (sizeof(hello) + 1);
}

static int socket_at(const struct sockaddr_in *address, bool to_listen)
{
	struct sockaddr_un name;
	socklen_t length = hf_address_name(address, &name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

	MUST(fd >= 0);
	if (to_listen)
		MUST(!bind(fd, (struct sockaddr *)&name, length) && !listen(fd, 1));
	else
		MUST(!connect(fd, (struct sockaddr *)&name, length));
	return fd;
}

/* A server, and somebody who says something; what is a request is accepted. */
static void asked(struct fuzz *f)
{
	unsigned char bytes[sizeof(struct hf_hello)];
	struct sockaddr_in address;
	size_t size = sizeof(address), length = put_hello(f, bytes);
	struct fi_eq_cm_entry entry;
	struct fid_pep *pep;
	uint32_t event;
	int fd;

	MUST(!fi_passive_ep(fabric, info, &pep, NULL) && !fi_pep_bind(pep, &eq->fid, 0) &&
	     !fi_listen(pep) && !fi_getname(&pep->fid, &address, &size));
	fd = socket_at(&address, false);
	(void)!send(fd, bytes, length, MSG_NOSIGNAL);
	for (int i = 0; i < 3; i++) {
		if (fi_eq_read(eq, &event, &entry, sizeof(entry), 0) <= 0)
			continue;
		MUST(event == FI_CONNREQ && entry.info->dest_addrlen == sizeof(address));
		make_endpoint(entry.info);
		fi_freeinfo(entry.info);
		MUST(!fi_accept(run.ep, NULL, 0));
		break;
	}
	drain_events();
	if (run.ep)
		MUST(!fi_close(&run.ep->fid));
	MUST(!fi_close(&pep->fid));
	close(fd);
}

/* A client, and a server that answers something. */
static void answered(struct fuzz *f)
{
	unsigned char bytes[sizeof(struct hf_hello)];
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	size_t length = put_hello(f, bytes);
	int fd, peer;

	address.sin_port = htons((uint16_t)(1024 + getpid() % 30000));
	fd = socket_at(&address, true);
	make_endpoint(info);
	MUST(!fi_connect(run.ep, &address, NULL, 0));
	peer = accept(fd, NULL, NULL);
	MUST(peer >= 0);
	(void)!send(peer, bytes, length, MSG_NOSIGNAL);
	for (int i = 0; i < 3; i++)
		drain_events();
	MUST(!fi_close(&run.ep->fid));
	drain_events();
	close(peer);
	close(fd);
}

static void connections(struct fuzz *f, bool as_client)
{
	const struct h_channel_attr attr = { .max_message = 65536 };

	run.ep = NULL;
	MUST(!h_channel_create(raw_manager, &attr, &run.raw));
	if (as_client)
		answered(f);
	else
		asked(f);
	h_channel_close(run.raw, H_NOWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	uint8_t how = fuzz_u8(&f);

	if (how & 0xc0)
		messages(&f, how & 1);
	else
		connections(&f, how & 1);
	return 0;
}
