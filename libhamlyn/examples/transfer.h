/* SPDX-License-Identifier: MIT */
/*
 * What receive_file, send_file and guess_keys agree on.
 *
 * The receiver's message area is a ring of chunks. The sender fills them in
 * order, chunk N of the stream in place N modulo their number, with metadata
 * that says what it is. The receiver answers with fast mode words to a slot of
 * the sender: how many chunks it has used up, and at last whether the file
 * arrived whole. The first message carries the ticket for that slot.
 *
 * Both ends run on machines of one byte order.
 */
#ifndef TRANSFER_H
#define TRANSFER_H

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <nettle/sha2.h>
#include <nettle/version.h>

#include <hamlyn.h>

#define TRANSFER_VERSION	1
#define TRANSFER_MAGIC		0x46694c65U
#define TRANSFER_MIN_CHUNK	4096U
#define TRANSFER_MAX_CHUNK	(4U << 20)
#define TRANSFER_MIN_CHUNKS	4U
#define TRANSFER_MAX_CHUNKS	1024U
#define TRANSFER_DIGEST		SHA256_DIGEST_SIZE

enum transfer_kind {
	TRANSFER_OPEN	= 1,	/* payload: the sender's ticket; value: file length */
	TRANSFER_DATA	= 2,	/* payload: a chunk; value: its offset in the file */
	TRANSFER_END	= 3,	/* payload: SHA-256; value: bytes sent */
};

/* Metadata of every message. */
struct transfer_meta {
	uint32_t magic;
	uint32_t kind;
	uint64_t sequence;	/* of the message, from 0 on */
	uint64_t value;
	uint32_t length;	/* payload bytes */
	uint32_t reserved;
};

_Static_assert(sizeof(struct transfer_meta) <= HAMLYN_MAX_METADATA, "must fit");

/* Words to the sender: what happened, and chunks used up so far. */
#define TRANSFER_CREDIT		(1ULL << 56)
#define TRANSFER_DONE		(2ULL << 56)
#define TRANSFER_FAILED		(3ULL << 56)
#define TRANSFER_WHAT		(255ULL << 56)

/* What the ticket file says. */
struct transfer_ticket {
	struct h_ticket ticket;
	uint32_t chunk;		/* bytes of a chunk */
	uint32_t chunks;	/* chunks in the ring */
};

extern const char *const program;	/* in each program */

static volatile sig_atomic_t transfer_stopped;

static inline _Noreturn __attribute__((format(printf, 1, 2)))
void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* For library calls: their negative errno, or what they return. */
static inline int64_t must(int64_t ret, const char *what)
{
	if (ret < 0)
		die("%s: %s", what, strerror((int)-ret));
	return ret;
}

static inline void transfer_stop(int sig)
{
	(void)sig;
	transfer_stopped = 1;
}

/* A signal ends the program by way of exit(), so that it can tidy up. */
static inline void transfer_signals(void)
{
	struct sigaction action = { .sa_handler = transfer_stop };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static inline double transfer_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline unsigned long transfer_number(const char *option, const char *text,
					    unsigned long min, unsigned long max)
{
	unsigned long number;
	char *end;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || number < min || number > max)
		die("%s takes a number from %lu to %lu, not \"%s\"", option, min, max, text);
	return number;
}

/*
 * Wait for the next notification, in steps short enough to notice a signal.
 * @seconds is the longest silence to put up with.
 */
static inline void transfer_wait(struct h_nq *nq, struct hamlyn_nq_entry *entry,
				 double seconds, const char *who)
{
	double deadline = transfer_now() + seconds;
	int ret;

	for (;;) {
		ret = h_recv_block(nq, entry, 100000000);
		if (ret == 0)
			return;
		if (ret != -ETIMEDOUT && ret != -EINTR)
			must(ret, "receive");
		if (transfer_stopped)
			die("stopped by a signal");
		if (transfer_now() > deadline)
			die("nothing from the %s for %.0f seconds", who, seconds);
	}
}

/* Send, waiting while the work queue is full. */
static inline int64_t transfer_send(struct h_terminus *terminus, const struct h_msg *msg,
				    double seconds)
{
	struct timespec pause = { .tv_nsec = 100000 };
	double deadline = transfer_now() + seconds;
	int64_t handle;

	while ((handle = h_send(terminus, msg)) == -EAGAIN) {
		if (transfer_stopped)
			die("stopped by a signal");
		if (transfer_now() > deadline)
			die("no room in the work queue for %.0f seconds", seconds);
		nanosleep(&pause, NULL);
	}
	return must(handle, "send");
}

static inline void transfer_digest(struct sha256_ctx *sha, uint8_t *digest)
{
#if NETTLE_VERSION_MAJOR >= 4
	sha256_digest(sha, digest);
#else
	sha256_digest(sha, TRANSFER_DIGEST, digest);
#endif
}

static inline void transfer_print_digest(const uint8_t *digest)
{
	int i;

	printf("sha256 ");
	for (i = 0; i < (int)TRANSFER_DIGEST; i++)
		printf("%02x", digest[i]);
	putchar('\n');
}

/* At most twice a second; the last line stays. */
static inline void transfer_progress(uint64_t done, uint64_t total, double start, bool last)
{
	static double next;
	double now = transfer_now();
	double seconds = now - start;

	if (!next)
		next = start + 0.5;
	if (now < next && !last)
		return;
	next = now + 0.5;
	fprintf(stderr, "%s: %.1f of %.1f MiB, %.0f MB/s\n", program,
		(double)done / (1 << 20), (double)total / (1 << 20),
		seconds > 0 ? (double)done / seconds / 1e6 : 0.0);
}

static inline void transfer_ticket_write(FILE *file, const struct transfer_ticket *t)
{
	unsigned char bytes[H_TICKET_BYTES];
	int i;

	h_ticket_export(&t->ticket, bytes);
	fprintf(file, "hamlyn-file-transfer %d\nchunk %u\nchunks %u\nticket ",
		TRANSFER_VERSION, t->chunk, t->chunks);
	for (i = 0; i < H_TICKET_BYTES; i++)
		fprintf(file, "%02x", bytes[i]);
	fputc('\n', file);
}

static inline void transfer_ticket_read(const char *path, struct transfer_ticket *t)
{
	unsigned char bytes[H_TICKET_BYTES];
	char hex[2 * H_TICKET_BYTES + 1];
	FILE *file = fopen(path, "r");
	int version = 0;
	int i;

	if (!file)
		die("cannot open the ticket file %s: %s", path, strerror(errno));
	if (fscanf(file, "hamlyn-file-transfer %d chunk %u chunks %u ticket %96[0-9a-f]",
		   &version, &t->chunk, &t->chunks, hex) != 4 || strlen(hex) != 96)
		die("%s is not a ticket file of receive_file", path);
	fclose(file);
	if (version != TRANSFER_VERSION)
		die("%s is of version %d, this program of version %d", path, version,
		    TRANSFER_VERSION);
	for (i = 0; i < H_TICKET_BYTES; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &bytes[i]) != 1)
			die("%s is not a ticket file of receive_file", path);
	must(h_ticket_import(bytes, sizeof(bytes), &t->ticket), path);
	if (t->chunk < TRANSFER_MIN_CHUNK || t->chunk > TRANSFER_MAX_CHUNK ||
	    t->chunks < TRANSFER_MIN_CHUNKS || t->chunks > TRANSFER_MAX_CHUNKS ||
	    t->ticket.length < (uint64_t)t->chunk * t->chunks)
		die("%s makes no sense: %u chunks of %u bytes in an area of %llu", path,
		    t->chunks, t->chunk, (unsigned long long)t->ticket.length);
}

#endif /* TRANSFER_H */
