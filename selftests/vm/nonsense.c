// SPDX-License-Identifier: GPL-2.0-only
/*
 * What bench.sh --nonsense lets loose on a NIC: a host of its fabric that is none, and says as much
 * as the cable takes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST		1
#define NIC_PORT	927
#define SINK_PORT	7600
#define HEADER		16
#define HELLO		48
#define PACKET		40
#define PAYLOAD		64
#define FRAME		(HEADER + PACKET + PAYLOAD)
#define BATCH		256

static uint8_t said[BATCH * FRAME];
static uint8_t fabric[16];
static uint32_t packet_size, epoch, sequence;
static struct in_addr from, to;

static void fail(const char *what)
{
	fprintf(stderr, "nonsense: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint8_t *put(uint8_t *p, uint64_t value, int bytes)
{
	while (bytes)
		*p++ = (uint8_t)(value >> 8 * --bytes);
	return p;
}

static uint8_t *put_header(uint8_t *p, uint8_t type, uint32_t body, uint32_t payload)
{
	p = put(p, 1, 1);
	p = put(p, type, 1);
	p = put(p, body, 2);
	p = put(p, payload, 4);
	p = put(p, epoch, 4);
	return put(p, sequence++, 4);
}

static int say(int fd, const uint8_t *bytes, size_t n)
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

	own.sin_port = htons((uint16_t)(600 + epoch % 400));
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
	uint8_t hello[HEADER + HELLO], *p;
	int fd;

	epoch++;
	fd = connect_to(NIC_PORT);
	if (fd < 0)
		return -1;
	sequence = 0;
	p = put_header(hello, 1, HELLO, 0);
	p = put(p, 0x48616d6c796e2121ull, 8);
	p = put(p, 0x0101, 2);
	p = put(p, 0, 2);
	p = put(p, HOST, 4);
	memcpy(p, fabric, sizeof(fabric));
	p = put(p + sizeof(fabric), 0x6e6f6e73656e7365ull, 8);
	p = put(p, packet_size, 4);
	put(p, 0, 4);
	if (!say(fd, hello, sizeof(hello)) &&
	    recv(fd, hello, sizeof(hello), MSG_WAITALL) == sizeof(hello))
		return fd;
	close(fd);
	return -1;
}

/* Messages of 64 bytes for slots of all numbers, with keys that are none. */
static void guess(void)
{
	static uint64_t key = 88172645463325252ull;
	uint8_t *p = said;

	for (int i = 0; i < BATCH; i++) {
		key ^= key << 13;
		key ^= key >> 7;
		key ^= key << 17;
		p = put_header(p, 2, PACKET, PAYLOAD);
		p = put(p, 0x1, 2);		/* the only packet of its message */
		p = put(p, 0, 2);
		p = put(p, key % 64, 4);
		p = put(p, 0, 8);
		p = put(p, key, 8);
		p = put(p, 0, 8);
		p = put(p, 0, 8);
		p += PAYLOAD;
	}
}

/* Until it does not want to hear more. */
static void speak(int fd, int guesses)
{
	uint8_t drop[65536];

	do {
		if (guesses)
			guess();
		while (recv(fd, drop, sizeof(drop), MSG_DONTWAIT) > 0)
			;
	} while (!say(fd, said, sizeof(said)));
	close(fd);
}

/* What the same bytes cost where nobody looks at them. */
static void sink(void)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = to };
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	uint8_t drop[65536];

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
	for (int i = 0; i < 16; i++)
		if (sscanf(text + 2 * i, "%2hhx", &fabric[i]) != 1)
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
		packet_size = (uint32_t)strtoul(argv[5], NULL, 10);
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
