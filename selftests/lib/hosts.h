/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two NICs of one kernel that are hosts of a fabric over TCP, by loopback. They are one incarnation
 * of one kernel: what it means that a host dies is tested with two guests.
 */
#ifndef HOSTS_H
#define HOSTS_H

#include "genl.h"
#include "nics.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/random.h>

#define HOSTS_PORT	7500

/**
 * struct host - one of them
 * @id: host id
 * @address: 127.0.0.@id
 * @nic: its number, once it is made
 */
struct host {
	uint32_t id;
	uint32_t address;
	uint32_t nic;
};

struct hosts {
	struct genl g;
	uint8_t fabric[16];
	uint32_t dead_ms, stall_ms;	/* 0: the default */
	bool small;			/* sockets hold little, so that rings become full */
	bool same_users;		/* of peers that are added */
	const uint32_t (*user_map)[3];	/* for theirs: from, to, how many */
	uint16_t user_ranges;
	int home;			/* the network namespace before */
	struct host host[2];
};

static inline void host_put_tcp(struct hosts *h, const struct host *own)
{
	struct nlattr *nest = genl_put(&h->g, HAMLYN_A_FABRIC | NLA_F_NESTED, NULL, 0);
	uint32_t address = htonl(own->address);
	uint16_t port = HOSTS_PORT;

	genl_put_u32(&h->g, HAMLYN_A_FAB_KIND, HAMLYN_NL_FABRIC_TCP);
	genl_put(&h->g, HAMLYN_A_FAB_ID, h->fabric, sizeof(h->fabric));
	genl_put(&h->g, HAMLYN_A_FAB_ADDRESS, &address, sizeof(address));
	genl_put(&h->g, HAMLYN_A_FAB_PORT, &port, sizeof(port));
	genl_put(&h->g, HAMLYN_A_FAB_CLEAR, NULL, 0);
	if (h->dead_ms)
		genl_put_u32(&h->g, HAMLYN_A_FAB_DEAD_MS, h->dead_ms);
	if (h->stall_ms)
		genl_put_u32(&h->g, HAMLYN_A_FAB_STALL_MS, h->stall_ms);
	genl_end(&h->g, nest);
}

/* Its NIC, without peers: 0, or a negative errno. */
static inline int host_make(struct hosts *h, struct host *own)
{
	int ret;

	genl_begin(&h->g, HAMLYN_NL_CMD_NIC_NEW);
	genl_put_u32(&h->g, HAMLYN_A_HOST, own->id);
	host_put_tcp(h, own);
	ret = genl_call(&h->g);
	if (ret)
		return ret;
	own->nic = (uint32_t)genl_number(genl_attr(&h->g, HAMLYN_A_NIC));
	return 0;
}

static inline struct nlattr *host_begin_peer(struct hosts *h, uint8_t command,
					     const struct host *own)
{
	genl_begin(&h->g, command);
	genl_put_u32(&h->g, HAMLYN_A_NIC, own->nic);
	return genl_put(&h->g, HAMLYN_A_PEER | NLA_F_NESTED, NULL, 0);
}

static inline int host_add_peer(struct hosts *h, const struct host *own, const struct host *other)
{
	struct nlattr *nest = host_begin_peer(h, HAMLYN_NL_CMD_PEER_NEW, own);
	uint32_t address = htonl(other->address);
	uint16_t port = HOSTS_PORT;

	genl_put_u32(&h->g, HAMLYN_A_PEER_HOST, other->id);
	genl_put(&h->g, HAMLYN_A_PEER_ADDRESS, &address, sizeof(address));
	genl_put(&h->g, HAMLYN_A_PEER_PORT, &port, sizeof(port));
	if (h->same_users)
		genl_put_u32(&h->g, HAMLYN_A_PEER_USERS, HAMLYN_NL_PEER_USERS_SAME);
	if (h->user_ranges) {
		genl_put_u32(&h->g, HAMLYN_A_PEER_USERS, HAMLYN_NL_PEER_USERS_MAP);
		genl_put(&h->g, HAMLYN_A_PEER_USER_MAP, h->user_map,
			 (uint16_t)(h->user_ranges * sizeof(*h->user_map)));
	}
	genl_end(&h->g, nest);
	return genl_call(&h->g);
}

static inline int host_del_peer(struct hosts *h, const struct host *own, const struct host *other)
{
	struct nlattr *nest = host_begin_peer(h, HAMLYN_NL_CMD_PEER_DEL, own);

	genl_put_u32(&h->g, HAMLYN_A_PEER_HOST, other->id);
	genl_end(&h->g, nest);
	return genl_call(&h->g);
}

/* What @own's NIC says of its only peer: a number of the peer's nest, or a negative errno. */
static inline int64_t host_peer(struct hosts *h, const struct host *own, uint16_t attr)
{
	int ret;

	genl_begin(&h->g, HAMLYN_NL_CMD_PEER_GET);
	h->g.request.header.nlmsg_flags |= NLM_F_DUMP;
	genl_put_u32(&h->g, HAMLYN_A_NIC, own->nic);
	ret = genl_call(&h->g);
	if (ret < 0)
		return ret;
	return (int64_t)genl_number(genl_nested(genl_attr(&h->g, HAMLYN_A_PEER), attr));
}

/* A number of what @own's NIC says of @other, or a negative errno. */
static inline int64_t host_peer_of(struct hosts *h, const struct host *own,
				   const struct host *other, uint16_t attr)
{
	struct nlattr *nest = host_begin_peer(h, HAMLYN_NL_CMD_PEER_GET, own);
	int ret;

	h->g.request.header.nlmsg_flags |= NLM_F_DUMP;
	genl_put_u32(&h->g, HAMLYN_A_PEER_HOST, other->id);
	genl_end(&h->g, nest);
	ret = genl_call(&h->g);
	if (ret < 0)
		return ret;
	return (int64_t)genl_number(genl_nested(genl_attr(&h->g, HAMLYN_A_PEER), attr));
}

/* Until the peer of @own is in a state: 0, or -ETIMEDOUT. */
static inline int host_await(struct hosts *h, const struct host *own, uint32_t state)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (host_peer(h, own, HAMLYN_A_PEER_STATE) != state)
		if (!ht_poll_more(&poll))
			return -ETIMEDOUT;
	return 0;
}

/* Until the peer of @own is up by a connection after that of @epoch. */
static inline int host_await_after(struct hosts *h, const struct host *own, int64_t epoch)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (host_peer(h, own, HAMLYN_A_PEER_EPOCH) == epoch)
		if (!ht_poll_more(&poll))
			return -ETIMEDOUT;
	return host_await(h, own, HAMLYN_NL_PEER_STATE_UP);
}

/* By which all goes from host to host in a namespace. */
static inline int hosts_loopback(bool up)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = (short)(up ? IFF_UP : 0) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	ret = ioctl(fd, SIOCSIFFLAGS, &lo) ? -errno : 0;
	close(fd);
	return ret;
}

/* A network namespace of our own: NICs that a test leaves behind end with it. */
static inline int hosts_namespace(void)
{
	return unshare(CLONE_NEWNET) ? -errno : hosts_loopback(true);
}

/* In this namespace. */
static inline int hosts_small(void)
{
	static const char * const names[] = { "rmem", "wmem" };
	static const char least[] = "4096 4096 8192";
	char path[64];
	size_t i;
	int fd;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/sys/net/ipv4/tcp_%s", names[i]);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		if (write(fd, least, sizeof(least) - 1) < 0) {
			close(fd);
			return -EIO;
		}
		close(fd);
	}
	return 0;
}

/* Both, each the other's peer, connected: 0, or a negative errno. */
static inline int hosts_begin(struct hosts *h)
{
	int ret;

	h->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	ret = hosts_namespace();
	if (!ret && h->small)
		ret = hosts_small();
	if (ret)
		return ret;

	h->host[0] = (struct host) { .id = 1, .address = 0x7f000001 };
	h->host[1] = (struct host) { .id = 2, .address = 0x7f000002 };
	if (getrandom(h->fabric, sizeof(h->fabric), 0) != sizeof(h->fabric))
		return -EIO;
	ret = genl_open(&h->g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION);
	if (ret)
		return ret;
	ret = host_make(h, &h->host[0]) ?: host_make(h, &h->host[1]) ?:
	      host_add_peer(h, &h->host[0], &h->host[1]) ?:
	      host_add_peer(h, &h->host[1], &h->host[0]) ?:
	      host_await(h, &h->host[0], HAMLYN_NL_PEER_STATE_UP) ?:
	      host_await(h, &h->host[1], HAMLYN_NL_PEER_STATE_UP);
	if (ret)
		printf("# hosts: %s: %s\n", strerror(-ret), h->g.text);
	return ret;
}

static inline int hosts_end(struct hosts *h)
{
	int ret = nic_delete_soon(&h->g, h->host[0].nic), ret2;

	ret2 = nic_delete_soon(&h->g, h->host[1].nic);
	genl_close(&h->g);
	close(h->home);
	return ret ?: ret2;
}

#endif /* HOSTS_H */
