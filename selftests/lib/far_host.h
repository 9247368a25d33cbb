/* SPDX-License-Identifier: GPL-2.0-only */
/* A host that is no NIC: a socket of the test's, which greets as a peer would. */
#ifndef FAR_HOST_H
#define FAR_HOST_H

#include "hosts.h"

#include <endian.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <signal.h>

#define FAR_HEADER	16	/* of a frame */
#define FAR_DATA	40	/* of a packet without metadata, behind that */
#define FAR_HELLO	1
#define FAR_INCARNATION	0x6661722d686f7374ull

/*
 * @port: of our own; 0: any, as users have it. @receive_bytes: that its socket holds; 0: as others.
 * A descriptor, or a negative errno.
 */
static inline int far_connect_with(uint32_t from, uint16_t port, const struct host *to,
				   int receive_bytes)
{
	const struct sockaddr_in own = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(from),
	};
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(HOSTS_PORT),
		.sin_addr.s_addr = htonl(to->address),
	};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (receive_bytes)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
	if (fd < 0 || bind(fd, (const void *)&own, sizeof(own)) ||
	    connect(fd, (const void *)&address, sizeof(address)))
		return -errno;
	return fd;
}

static inline int far_connect(uint32_t from, uint16_t port, const struct host *to)
{
	return far_connect_with(from, port, to, 0);
}

static inline uint8_t *far_put(uint8_t *to, uint64_t value, int bytes)
{
	while (bytes)
		*to++ = (uint8_t)(value >> 8 * --bytes);
	return to;
}

/* Greets as the host @own, in an epoch: 0, or a negative errno. */
static inline int far_greet_in(int fd, const struct hosts *h, const struct host *own,
			       uint32_t packet_size, uint32_t features, uint32_t epoch)
{
	uint8_t frame[FAR_HEADER + 48], *p = frame;

	p = far_put(p, 1, 1);			/* version */
	p = far_put(p, FAR_HELLO, 1);
	p = far_put(p, 48, 2);			/* bytes of the body */
	p = far_put(p, 0, 4);			/* of payload */
	p = far_put(p, epoch, 4);
	p = far_put(p, 0, 4);			/* sequence */
	p = far_put(p, 0x48616d6c796e2121ull, 8);
	p = far_put(p, 0x0101, 2);		/* least and greatest version */
	p = far_put(p, 0, 2);			/* flags */
	p = far_put(p, own->id, 4);
	memcpy(p, h->fabric, sizeof(h->fabric));
	p = far_put(p + sizeof(h->fabric), FAR_INCARNATION, 8);
	p = far_put(p, packet_size, 4);
	far_put(p, features, 4);
	return ht_write_all(fd, frame, sizeof(frame));
}

/* The first time: no epoch is older. */
static inline int far_greet_with(int fd, const struct hosts *h, const struct host *own,
				 uint32_t packet_size, uint32_t features)
{
	return far_greet_in(fd, h, own, packet_size, features, 1);
}

/* As of before there were any features. */
static inline int far_greet(int fd, const struct hosts *h, const struct host *own,
			    uint32_t packet_size)
{
	return far_greet_with(fd, h, own, packet_size, 0);
}

/* ---- what it says, and hears, behind that ---- */

#define FAR_PING	3
#define FAR_PONG	4

/**
 * struct far - such a host
 * @fd: the connection
 * @receive_bytes: that its socket holds; 0: as others. Set before far_begin()
 * @sequence: of the next frame that it says
 * @type: of the frame that it heard last
 * @bytes: of that frame's body
 * @body: as it came; without payload
 */
struct far {
	int fd;
	int receive_bytes;
	uint32_t sequence;
	uint8_t type;
	uint32_t bytes;
	uint8_t body[512];
};

/* A frame without payload: 0, or a negative errno. */
static inline int far_say(struct far *f, uint8_t type, const void *body, uint32_t bytes)
{
	uint8_t frame[FAR_HEADER + 512], *p = frame;

	p = far_put(p, 1, 1);
	p = far_put(p, type, 1);
	p = far_put(p, bytes, 2);
	p = far_put(p, 0, 4);
	p = far_put(p, 1, 4);
	p = far_put(p, f->sequence++, 4);
	memcpy(p, body, bytes);
	return ht_write_all(f->fd, frame, FAR_HEADER + bytes);
}

static inline uint64_t far_get(const uint8_t *from, int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *from++;
	return value;
}

/* The next frame of a connection, but for @n bytes of payload behind it: 0, or a negative errno. */
static inline int far_hear_frame(struct far *f, uint32_t *n)
{
	uint8_t header[FAR_HEADER];
	int ret = ht_read_all(f->fd, header, sizeof(header));

	if (ret)
		return ret;
	f->type = header[1];
	f->bytes = (uint32_t)far_get(header + 2, 2);
	*n = (uint32_t)far_get(header + 4, 4);
	if (f->bytes > sizeof(f->body))
		return -EMSGSIZE;
	return ht_read_all(f->fd, f->body, f->bytes);
}

/* The next one as a whole. */
static inline int far_hear(struct far *f)
{
	uint8_t payload;
	uint32_t n;
	int ret = far_hear_frame(f, &n);

	for (; !ret && n; n--)
		ret = ht_read_all(f->fd, &payload, 1);
	return ret;
}

/* Until one of a type comes. */
static inline int far_hear_type(struct far *f, uint8_t type)
{
	int ret;

	do {
		ret = far_hear(f);
	} while (!ret && f->type != type);
	return ret;
}

/* It is refused: a PING is not answered. To be dead after a while is not to be refused. */
static inline bool far_is_ended(struct far *f)
{
	const uint8_t stamp[8] = "refused";
	int ret;

	signal(SIGPIPE, SIG_IGN);
	/* It may have ended, and what it said before is still to be heard. */
	far_say(f, FAR_PING, stamp, sizeof(stamp));
	while (!(ret = far_hear(f)))
		if (f->type == FAR_PONG)
			return false;
	return ret != -EAGAIN && ret != -EMSGSIZE;
}

/* Connected, and up: 0, or a negative errno. @own is no peer of its NIC any more, @to is. */
static inline int far_begin(struct far *f, struct hosts *h, const struct host *own,
			    const struct host *to, uint32_t packet_size, uint32_t features)
{
	int64_t epoch = host_peer(h, to, HAMLYN_A_PEER_EPOCH);
	struct timeval patience = { .tv_sec = ht_patience_ns() / HT_SEC };
	int ret = host_del_peer(h, own, to);

	if (ret)
		return ret;
	f->fd = far_connect_with(own->address, 700, to, f->receive_bytes);
	f->sequence = 1;
	if (f->fd < 0)
		return f->fd;
	setsockopt(f->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return far_greet_with(f->fd, h, own, packet_size, features) ?:
	       host_await_after(h, to, epoch);
}

/* ---- somebody on the way ---- */

static inline uint32_t far_sum(uint32_t sum, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (; n > 1; n -= 2, p += 2)
		sum += (uint32_t)p[0] << 8 | p[1];
	return sum;
}

static inline uint16_t far_checksum(const struct iphdr *ip, const struct tcphdr *tcp)
{
	uint32_t sum = far_sum(0, &ip->saddr, 8) + IPPROTO_TCP + sizeof(*tcp);

	sum = far_sum(sum, tcp, sizeof(*tcp));
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* Resets the connection of a segment that was seen, as if the segment's sender did. */
static inline int far_reset(int raw, const struct iphdr *seen, const struct tcphdr *segment)
{
	uint32_t payload = ntohs(seen->tot_len) - seen->ihl * 4u - segment->doff * 4u;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = seen->daddr };
	struct {
		struct iphdr ip;
		struct tcphdr tcp;
	} rst = {
		.ip = {
			.version = 4,
			.ihl = 5,
			.ttl = 64,
			.protocol = IPPROTO_TCP,
			.saddr = seen->saddr,
			.daddr = seen->daddr,
		},
		.tcp = {
			.source = segment->source,
			.dest = segment->dest,
			.seq = htonl(ntohl(segment->seq) + payload),
			.doff = 5,
			.rst = 1,
		},
	};

	rst.tcp.check = far_checksum(&rst.ip, &rst.tcp);
	return sendto(raw, &rst, sizeof(rst), 0, (const void *)&to, sizeof(to)) < 0 ? -errno : 0;
}

/* Resets the connections of all that @raw has seen of the fabric. Return: how many segments. */
static inline int far_reset_seen(int raw)
{
	uint8_t bytes[65536] __attribute__((aligned(8)));
	const struct iphdr *ip = (const void *)bytes;
	const struct tcphdr *tcp;
	int seen = 0;
	ssize_t n;

	while ((n = recv(raw, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		tcp = (const void *)(bytes + ip->ihl * 4);
		if (tcp->source != htons(HOSTS_PORT) && tcp->dest != htons(HOSTS_PORT))
			continue;
		if (tcp->syn || tcp->rst || tcp->fin)
			continue;
		if (!far_reset(raw, ip, tcp))
			seen++;
	}
	return seen;
}

static inline int far_open_raw(void)
{
	int one = 1, raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP);

	if (raw >= 0 && !setsockopt(raw, IPPROTO_IP, IP_HDRINCL, &one, sizeof(one)))
		return raw;
	return -errno;
}

#endif /* FAR_HOST_H */
