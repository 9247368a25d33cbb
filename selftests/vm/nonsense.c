// SPDX-License-Identifier: GPL-2.0-only
/*
 * What bench.sh --nonsense lets loose on a NIC: a host of its fabric that is none, and says as much
 * as the cable takes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire.h"

#define HOST		1
#define NIC_PORT	927
#define SINK_PORT	7600
#define PAYLOAD		64
#define FRAME		(HML_WIRE_MOST_HEADER + PAYLOAD)
#define BATCH		256

static u8 said[BATCH * FRAME];
static struct hml_wire_hello hello = {
	.least = 1, .greatest = 1, .host = HOST, .incarnation = HOST,
};
static struct hml_wire_tx tx;
static struct in_addr from, to;

static void fail(const char *what)
{
	fprintf(stderr, "nonsense: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int say(int fd, const u8 *bytes, size_t n)
{
	ssize_t done;

	while (n) {
		done = send(fd, bytes, n, MSG_NOSIGNAL);
		if (done < 0)
			return -1;
		bytes += done;
		n -= (size_t)done;
	}
	return 0;
}

/* From a port that only root has, and another one each time, as TCP may keep the last. */
static int connect_to(uint16_t port)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = from };
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_addr = to };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	own.sin_port = htons((uint16_t)(600 + tx.epoch % 400));
	peer.sin_port = htons(port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (void *)&own, sizeof(own)))
		fail("socket");
	if (!connect(fd, (void *)&peer, sizeof(peer)))
		return fd;
	close(fd);
	return -1;
}

/* As its peer would, then nonsense. Return: the connection, or -1 if the NIC does not want it. */
static int greet(void)
{
	u8 frame[HML_WIRE_MOST_CONTROL];
	u32 n;
	int fd;

	tx.epoch++;
	tx.sequence = 0;
	n = hml_wire_pack_hello(&tx, frame, &hello);
	fd = connect_to(NIC_PORT);
	if (fd < 0)
		return -1;
	/* Its own one is as long. */
	if (!say(fd, frame, n) && recv(fd, frame, n, MSG_WAITALL) == (ssize_t)n)
		return fd;
	close(fd);
	return -1;
}

/* Messages for slots of all numbers, with keys that are none. Return: bytes. */
static size_t guess(void)
{
	static const struct hml_wire_origin origin;
	struct hamlyn_packet h = {
		.version = HAMLYN_PACKET_VERSION,
		.flags = HAMLYN_PACKET_SINGLE,
		.length = PAYLOAD,
	};
	u8 *p = said;

	for (int i = 0; i < BATCH; i++) {
		h.key = (u64)random() << 32 | (u64)random();
		h.slot = h.key % 64;
		p += hml_wire_pack_data(&tx, p, &h, NULL, &origin) + PAYLOAD;
	}
	return (size_t)(p - said);
}

/* Until it does not want to hear more. */
static void speak(int fd, int guesses)
{
	size_t n = sizeof(said);
	u8 drop[65536];

	do {
		if (guesses)
			n = guess();
		while (recv(fd, drop, sizeof(drop), MSG_DONTWAIT) > 0)
			;
	} while (!say(fd, said, n));
	close(fd);
}

/* What the same bytes cost where nobody looks at them. */
static void sink(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = to };
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	u8 drop[65536];

	own.sin_port = htons(SINK_PORT);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (void *)&own, sizeof(own)) || listen(listener, 1))
		fail("listen");
	fd = accept(listener, NULL, NULL);
	while (recv(fd, drop, sizeof(drop), 0) > 0)
		;
}

static int wrong(void)
{
	fprintf(stderr,
		"usage: nonsense sink|plain|guesses|bytes FROM TO [FABRIC-ID PACKET-SIZE]\n"
		"  sink     at TO, take what comes and drop it\n"
		"  plain    the bytes of guesses to a sink\n"
		"  guesses  messages to slots and keys that are none\n"
		"  bytes    what is no frame; and again, as soon as it is let in\n"
		"It goes on until it is stopped.\n");
	return 2;
}

static int fabric_from(const char *text)
{
	for (int i = 0; i < HAMLYN_FABRIC_ID_BYTES; i++)
		if (sscanf(text + 2 * i, "%2hhx", &hello.fabric_id[i]) != 1)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 3 ? argv[1] : "";
	int guesses = !strcmp(kind, "guesses"), plain = !strcmp(kind, "plain"), fd;

	if (argc < 4 || inet_pton(AF_INET, argv[2], &from) != 1 ||
	    inet_pton(AF_INET, argv[3], &to) != 1)
		return wrong();
	if (!strcmp(kind, "sink"))
		sink();
	else if ((!plain && !guesses && strcmp(kind, "bytes")) ||
		 (!plain && (argc != 6 || fabric_from(argv[4]))))
		return wrong();
	if (argc == 6)
		hello.packet_size = (u32)strtoul(argv[5], NULL, 10);
	if (getrandom(said, sizeof(said), 0) < 0)
		fail("getrandom");
	while (strcmp(kind, "sink")) {
		fd = plain ? connect_to(SINK_PORT) : greet();
		if (fd < 0)
			usleep(1000);
		else
			speak(fd, guesses || plain);
	}
	return 0;
}
