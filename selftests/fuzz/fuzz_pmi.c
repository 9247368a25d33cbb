// SPDX-License-Identifier: GPL-2.0-only
/*
 * PMI-1 from both ends: lines that processes send to hamlyn-run's server, and lines that
 * a launcher sends to a process; of any length, cut anywhere.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "boot.h"
#include "kvs.h"
#include "pmi.h"

#define PROCS	3
#define STEPS	64
#define DRAINS	4096		/* more than a socket holds */

/* ---- the server ---------------------------------------------------------- */

static struct pmi_server server;
static int ends[PROCS];

/*
 * Whole lines, each of printable text; the store's name is the server's. There may be more
 * of them than are read at a time.
 */
static void drain(int rank)
{
	static const char start[] = "cmd=";
	char text[PMI_LINE_BYTES * 4];
	size_t column = 0;
	int reads;
	ssize_t n, i;

	for (reads = 0; reads < DRAINS; reads++) {
		n = recv(ends[rank], text, sizeof(text), MSG_DONTWAIT);
		if (n <= 0)
			break;
		for (i = 0; i < n; i++) {
			MUST(column >= sizeof(start) - 1 || text[i] == start[column]);
			MUST(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
			column = text[i] == '\n' ? 0 : column + 1;
		}
	}
	MUST(!column && reads < DRAINS);
}

static void check_server(void)
{
	int i, waiting = 0, first = PROCS;

	for (i = 0; i < PROCS; i++) {
		const struct pmi_client *c = &server.clients[i];

		waiting += c->waiting;
		MUST(c->len < sizeof(c->in) && c->rank == i);
		MUST(server.kvs.shares[i].keys <= KVS_PROCESS_KEYS);
		MUST(server.kvs.shares[i].bytes <= KVS_PROCESS_BYTES);
	}
	MUST(pmi_waiting(&server, &first) == waiting && waiting < PROCS);
	MUST(!waiting || server.clients[first].waiting);
}

/* What is often said; @ is the name of the store. */
static const char *const sayings[] = {
	"cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=get_maxes\n",
	"cmd=get_my_kvsname\n", "cmd=get_universe_size\n", "cmd=get_appnum\n",
	"cmd=put kvsname=@ key=k value=", "cmd=get kvsname=@ key=k\n",
	"cmd=barrier_in\n", "cmd=finalize\n", "cmd=abort exitcode=3\n",
	"cmd=put kvsname=@ key=", "cmd=", "\n", " value=v\n", "\n", "cmd=get kvsname=@ key=",
};

static void send_saying(int fd, const char *text)
{
	const char *at = strchr(text, '@');

	if (!at) {
		send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
		return;
	}
	send(fd, text, (size_t)(at - text), MSG_DONTWAIT | MSG_NOSIGNAL);
	send(fd, server.name, strlen(server.name), MSG_DONTWAIT | MSG_NOSIGNAL);
	send(fd, at + 1, strlen(at + 1), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void say(struct fuzz *f, int fd, uint8_t what)
{
	char text[PMI_LINE_BYTES];
	size_t n;

	if (what & 0x40) {
		send_saying(fd, sayings[what % FUZZ_COUNT(sayings)]);
		return;
	}
	n = what & 0x20 ? fuzz_u16(f) % sizeof(text) : fuzz_u8(f);
	memset(text, 'x', sizeof(text));
	if (f->left && what & 0x10)
		fuzz_bytes(f, text, n < 64 ? n : 64);
	send(fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void attack_server(struct fuzz *f)
{
	int pair[2], n, i, err = 0;

	pmi_init(&server, PROCS);
	for (i = 0; i < PROCS; i++) {
		MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
		pmi_attach(&server, i, pair[0]);
		ends[i] = pair[1];
	}
	for (n = 0; n < STEPS && f->left && err >= 0; n++) {
		uint8_t what = fuzz_u8(f);
		int rank = (what >> 1 & 7) % PROCS;

		if (ends[rank] < 0)
			continue;
		say(f, ends[rank], fuzz_u8(f));
		if (what & 1)
			err = pmi_serve(&server, rank);
		if (what == 0xfe && err >= 0) {
			close(ends[rank]);
			ends[rank] = -1;
			err = pmi_detach(&server, rank);
		} else {
			drain(rank);
		}
		/* A failure is told, and the run ends: nothing is served any more. */
		MUST(err >= 0 || (server.error[0] && server.status));
		if (err >= 0)
			check_server();
	}
	for (i = 0; i < PROCS; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	pmi_uninit(&server);
}

/* ---- the process --------------------------------------------------------- */

static const char *const answers[] = {
	"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
	"cmd=maxes kvsname_max=256 keylen_max=256 vallen_max=512\n",
	"cmd=my_kvsname kvsname=job\n", "cmd=put_result rc=0 msg=success\n",
	"cmd=barrier_out\n", "cmd=get_result rc=0 msg=success value=abc\n",
	"cmd=finalize_ack\n", "cmd=", " rc=", " value=", "\n",
};

/* All that the launcher will ever say is there from the beginning. */
static void attack_process(struct fuzz *f)
{
	struct am_boot boot = { 0 };
	char value[AM_BOOT_VALUE_BYTES], number[16];
	uint32_t good = fuzz_below(f, 8);
	int pair[2], n, ret;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	for (n = 0; n < (int)good && n < 7; n++)
		send_saying(pair[1], answers[n]);
	for (n = 0; n < STEPS && f->left; n++) {
		uint8_t what = fuzz_u8(f);

		if (what & 0x80)
			send_saying(pair[1], answers[what % FUZZ_COUNT(answers)]);
		else
			say(f, pair[1], what & 0x3f);
	}
	shutdown(pair[1], SHUT_WR);
	snprintf(number, sizeof(number), "%d", pair[0]);
	setenv("PMI_FD", number, 1);
	setenv("PMI_SIZE", "3", 1);
	setenv("PMI_RANK", "1", 1);
	ret = am_boot_pmi1.open(&boot);
	MUST(ret == 1 || (ret < 0 && boot.error[0]));
	if (ret == 1) {
		boot.ops = &am_boot_pmi1;
		MUST(boot.size == 3 && boot.rank == 1);
		MUST(memchr(boot.job, 0, sizeof(boot.job)));
		if (!boot.ops->put(&boot, "key", "value") &&
		    !boot.ops->fence_begin(&boot) && boot.ops->fence_done(&boot) == 1 &&
		    !boot.ops->get(&boot, 2, "key", value))
			MUST(memchr(value, 0, sizeof(value)));
		/* Closes its end. */
		boot.ops->close(&boot, 0);
	} else {
		/* A process that could not start keeps it until it ends. */
		MUST(!close(pair[0]));
	}
	close(pair[1]);
}

static int lowest_free(void)
{
	int fd = dup(STDERR_FILENO);

	MUST(fd >= 0);
	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	int lowest;

	/* Whatever was said, no descriptor stays open, and none is closed that others have. */
	lowest = lowest_free();
	if (fuzz_u8(&f) & 1)
		attack_process(&f);
	else
		attack_server(&f);
	MUST(lowest_free() == lowest);
	return 0;
}
