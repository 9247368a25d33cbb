// SPDX-License-Identifier: MIT
#include "connect/far.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hamlyn/channel.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/hosts.h"
#include "connect/conn.h"

/* Connections at once, and how many are being made at the same time, each by a thread. */
#define MOST_RELAYS	1024
#define MOST_CONNECTORS	16

/* How long a host may take to answer, and how often it is looked whether somebody still asks. */
#define PATIENCE_NS	10000000000LL
#define SLICE_NS	2000000000LL

/* What was said last, a refusal perhaps, is to arrive: so long all that end together may take. */
#define LINGER_NS	200000000LL

/* The name of a socket that we connect to a listener of this process: for which host */
#define FAR_NAME	"hamlyn-fi-far-%u-%d-%u"

struct relay {
	struct hf_source source;
	struct relay *next;
	struct h_channel *channel;	/* NULL: there is none yet */
	bool waiting;			/* for a connector, which has it while there is none */
	bool over;
	char path[40];
};

struct ear {
	struct hf_source source;
	struct ear *next;
	in_port_t port;
	struct h_listener *listener;
};

static struct far {
	pthread_mutex_t lock;
	pthread_cond_t idle;		/* no connectors */
	bool open;
	bool stop;
	struct h_dev *dev;
	struct h_manager *manager;
	struct hf_source arrivals;
	struct hf_source bell;
	int wait;			/* epoll */
	pthread_t thread;
	struct relay *relays;
	uint32_t relay_count;
	uint32_t serial;
	uint32_t connectors;
	struct ear *ears;
} far = { .lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER };

static void path_of(char *path, size_t size, uint32_t host, in_port_t port)
{
	snprintf(path, size, "%u/hamlyn-fi-%u", host, (unsigned int)ntohs(port));
}

static void ring(void)
{
	const uint64_t one = 1;

	if (write(far.bell.fd, &one, sizeof(one)) < 0)
		hf_warn("other hosts: bell: %s\n", strerror(errno));
}

/* ---- what is carried ----------------------------------------------------- */

/* The channel is closed where nothing is locked: it may take a while. */
static void end(struct relay *relay)
{
	relay->over = true;
	hf_source_remove(&relay->source);
	if (relay->channel)
		h_channel_on_ready(relay->channel, NULL, NULL);
	ring();
}

static void relay_ready(struct hf_source *source)
{
	struct relay *relay = hf_container(source, struct relay, source);
	struct hf_hello said;
	ssize_t got = recv(source->fd, &said, sizeof(said), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* A connection takes two messages: for more than there is room for nobody has a reason. */
	if (got <= 0 || h_channel_send(relay->channel, &said, (size_t)got, H_NOWAIT))
		end(relay);
}

static void channel_ready(struct h_channel *channel, void *arg)
{
	struct relay *relay = arg;
	struct h_message message;
	int err = h_channel_receive(channel, &message, H_NOWAIT);

	if (err == -EAGAIN)
		return;
	if (!err) {
		if (send(relay->source.fd, message.data, message.length,
			 MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)message.length)
			err = -EPIPE;
		h_channel_release(channel, &message);
	}
	if (err)
		end(relay);
}

static struct relay *relay_new(int fd)
{
	struct relay *relay;

	if (far.relay_count == MOST_RELAYS)
		return NULL;
	relay = calloc(1, sizeof(*relay));
	if (!relay)
		return NULL;
	relay->source.fd = fd;
	relay->source.ready = relay_ready;
	relay->next = far.relays;
	far.relays = relay;
	far.relay_count++;
	return relay;
}

static void carry(struct relay *relay, struct h_channel *channel)
{
	relay->channel = channel;
	if (hf_source_add(&relay->source, far.wait))
		end(relay);
	else
		h_channel_on_ready(channel, channel_ready, relay);
}

/* Room for what is said, and for the end. */
static const struct h_channel_attr small = {
	.max_message = sizeof(struct hf_hello),
	.buffers = 2,
	.buffer_size = 1024,
	.max_buffer_size = 1024,
};

/* ---- connections to this process ---------------------------------------- */

/* A socket to the listener of ours that this is for, which tells by its name for whom it speaks. */
static int knock(in_port_t port, uint32_t host)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = port };
	struct sockaddr_un own = { .sun_family = AF_UNIX }, name;
	socklen_t length = hf_address_name(&to, &name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int own_length = snprintf(own.sun_path + 1, sizeof(own.sun_path) - 1, FAR_NAME, host,
				  (int)getpid(), far.serial++);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&own,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)own_length)) ||
	    connect(fd, (struct sockaddr *)&name, length)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static void ear_ready(struct hf_source *source)
{
	struct ear *ear = hf_container(source, struct ear, source);
	struct relay *relay = NULL;
	struct h_channel *channel;
	struct h_peer peer;
	int fd;

	if (h_channel_accept(ear->listener, far.manager, &small, &channel, H_NOWAIT))
		return;
	/* Those of this host have sockets, by which the kernel tells who they are. */
	fd = h_channel_peer(channel, &peer) || peer.host == HAMLYN_NONE ?
	     -EACCES : knock(ear->port, peer.host);
	if (fd >= 0)
		relay = relay_new(fd);
	if (relay) {
		carry(relay, channel);
		return;
	}
	if (fd >= 0)
		close(fd);
	h_channel_close(channel, H_NOWAIT);
}

uint32_t hf_far_host(int fd)
{
	struct sockaddr_un name = { 0 };
	socklen_t length = sizeof(name), size;
	struct ucred who;
	unsigned int host, serial;
	int pid;

	size = sizeof(who);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) || who.pid != getpid() ||
	    getpeername(fd, (struct sockaddr *)&name, &length) || length >= sizeof(name))
		return HAMLYN_NONE;
	return sscanf(name.sun_path + 1, FAR_NAME, &host, &pid, &serial) == 3 ? host : HAMLYN_NONE;
}

/* ---- connections of this process ----------------------------------------- */

static struct relay *next_waiting(void)
{
	struct relay *relay = far.relays;

	while (relay && !relay->waiting)
		relay = relay->next;
	return relay;
}

/* An answer takes as long as that host takes to look; whoever asked may give up before. */
static int reach(const char *path, struct h_channel **channel)
{
	const uid_t own = geteuid();
	struct h_channel_attr attr = small;
	int64_t until = hf_now_ns() + PATIENCE_NS;
	int err;

	if (!hf_settings.any_user) {
		attr.uids = &own;
		attr.uid_count = 1;
	}
	do {
		err = h_channel_connect(far.manager, path, &attr, channel, SLICE_NS);
	} while (err == -ETIMEDOUT && hf_now_ns() < until &&
		 !__atomic_load_n(&far.stop, __ATOMIC_RELAXED));
	return err;
}

static void *connect_all(void *arg)
{
	struct relay *relay;

	(void)arg;
	pthread_mutex_lock(&far.lock);
	while (!far.stop && (relay = next_waiting())) {
		struct h_channel *channel = NULL;
		int err;

		relay->waiting = false;
		pthread_mutex_unlock(&far.lock);
		err = reach(relay->path, &channel);
		if (err) {
			char why[HAMLYN_EXPLAIN_BYTES] = "";

			h_explain(far.dev, why, sizeof(why));
			hf_warn("%s: %s%s%s\n", relay->path, strerror(-err), *why ? ": " : "", why);
		}
		pthread_mutex_lock(&far.lock);
		if (channel)
			carry(relay, channel);
		else
			end(relay);
	}
	far.connectors--;
	pthread_cond_broadcast(&far.idle);
	pthread_mutex_unlock(&far.lock);
	return NULL;
}

/* No signal of the application's is for a thread of ours. */
static int start(pthread_t *thread, void *(*run)(void *arg))
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static int start_connector(void)
{
	pthread_t thread;
	int err;

	if (far.connectors == MOST_CONNECTORS)
		return 0;
	err = start(&thread, connect_all);
	if (!err) {
		pthread_detach(thread);
		far.connectors++;
	}
	/* Another one takes it, when it is done with its own. */
	return far.connectors ? 0 : err;
}

/* ---- the thread ---------------------------------------------------------- */

static struct relay *take_over(void)
{
	struct relay **at = &far.relays, *over = NULL;

	while (*at) {
		struct relay *relay = *at;

		if (!relay->over && !far.stop) {
			at = &relay->next;
			continue;
		}
		*at = relay->next;
		far.relay_count--;
		hf_source_remove(&relay->source);
		relay->next = over;
		over = relay;
	}
	return over;
}

static void close_all(struct relay *relay)
{
	int64_t until = hf_now_ns() + LINGER_NS;

	while (relay) {
		struct relay *next = relay->next;
		int64_t left = until - hf_now_ns();

		h_channel_close(relay->channel, left > 0 ? left : H_NOWAIT);
		close(relay->source.fd);
		free(relay);
		relay = next;
	}
}

static void bell_ready(struct hf_source *source)
{
	uint64_t rung;

	if (read(source->fd, &rung, sizeof(rung)) < 0)
		return;
}

static void arrivals_ready(struct hf_source *source)
{
	(void)source;
	h_manager_dispatch(far.manager);
}

static void *carry_all(void *arg)
{
	bool stop = false;

	(void)arg;
	while (!stop) {
		struct epoll_event event;
		struct relay *over;

		/* That is looked for again: it may be taken out before the lock is had. */
		if (epoll_wait(far.wait, &event, 1, -1) < 0 && errno != EINTR)
			break;
		pthread_mutex_lock(&far.lock);
		hf_source_serve(far.wait, 1);
		stop = far.stop;
		over = stop ? NULL : take_over();
		pthread_mutex_unlock(&far.lock);
		close_all(over);
	}
	return NULL;
}

static void fold(void)
{
	if (far.manager)
		h_manager_destroy(far.manager);
	if (far.dev)
		h_close(far.dev);
	if (far.wait >= 0)
		close(far.wait);
	if (far.bell.fd >= 0)
		close(far.bell.fd);
	far.manager = NULL;
	far.dev = NULL;
	far.open = false;
}

static int unfold(void)
{
	const struct h_manager_attr attr = { .channels = MOST_RELAYS };
	int err;

	if (far.open)
		return 0;
	far.stop = false;
	far.wait = epoll_create1(EPOLL_CLOEXEC);
	far.bell = (struct hf_source){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
				       .ready = bell_ready };
	err = far.wait < 0 || far.bell.fd < 0 ? -errno : h_open(NULL, &far.dev);
	if (!err)
		err = h_manager_create(far.dev, &attr, &far.manager);
	if (!err) {
		far.arrivals.fd = h_manager_fd(far.manager);
		far.arrivals.ready = arrivals_ready;
		err = far.arrivals.fd < 0 ? far.arrivals.fd :
					    hf_source_add(&far.arrivals, far.wait);
	}
	if (!err)
		err = hf_source_add(&far.bell, far.wait);
	if (!err)
		err = start(&far.thread, carry_all);
	if (err)
		fold();
	far.open = !err;
	return err;
}

/* ---- calls --------------------------------------------------------------- */

static int listen_by_name(const struct sockaddr_in *address)
{
	const uid_t own = geteuid();
	const struct h_listener_attr attr = {
		.uid_count = hf_settings.any_user ? 0 : 1,
		.uids = hf_settings.any_user ? NULL : &own,
		.dev = far.dev,
	};
	struct ear *ear = calloc(1, sizeof(*ear));
	char path[40];
	int err;

	if (!ear)
		return -FI_ENOMEM;
	path_of(path, sizeof(path), hf_host_own(), address->sin_port);
	err = h_listener_create(path, &attr, &ear->listener);
	if (!err) {
		ear->source.fd = h_listener_fd(ear->listener);
		ear->source.ready = ear_ready;
		err = hf_source_add(&ear->source, far.wait);
	}
	if (err) {
		hf_warn("%s: %s\n", path, strerror(-err));
		h_listener_destroy(ear->listener);
		free(ear);
		return err;
	}
	ear->port = address->sin_port;
	ear->next = far.ears;
	far.ears = ear;
	return 0;
}

int hf_far_listen(const struct sockaddr_in *address)
{
	int err;

	if (hf_host_own() == HAMLYN_NONE || (address->sin_addr.s_addr != htonl(INADDR_ANY) &&
					     hf_host_of(address) != hf_host_own()))
		return 0;
	pthread_mutex_lock(&far.lock);
	err = unfold();
	if (!err)
		err = listen_by_name(address);
	pthread_mutex_unlock(&far.lock);
	return err;
}

static void drop(struct ear *ear)
{
	struct ear **at = &far.ears;

	while (*at != ear)
		at = &(*at)->next;
	*at = ear->next;
	hf_source_remove(&ear->source);
	h_listener_destroy(ear->listener);
	free(ear);
}

void hf_far_deafen(const struct sockaddr_in *address)
{
	struct ear *ear;

	pthread_mutex_lock(&far.lock);
	ear = far.ears;
	while (ear && ear->port != address->sin_port)
		ear = ear->next;
	if (ear)
		drop(ear);
	pthread_mutex_unlock(&far.lock);
}

int hf_far_connect(const struct sockaddr_in *to)
{
	struct relay *relay = NULL;
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds))
		return -errno;
	pthread_mutex_lock(&far.lock);
	err = unfold();
	if (!err) {
		relay = relay_new(fds[1]);
		err = relay ? 0 : -FI_ENOMEM;
	}
	if (!err) {
		path_of(relay->path, sizeof(relay->path), hf_host_of(to), to->sin_port);
		relay->waiting = true;
		err = start_connector();
		if (err) {
			/* It is the thread's to free, and its end of the socket with it. */
			relay->waiting = false;
			end(relay);
		}
	}
	pthread_mutex_unlock(&far.lock);
	if (!relay)
		close(fds[1]);
	if (err)
		close(fds[0]);
	return err ? err : fds[0];
}

void hf_far_end(void)
{
	pthread_mutex_lock(&far.lock);
	if (far.open) {
		__atomic_store_n(&far.stop, true, __ATOMIC_RELAXED);
		ring();
		pthread_mutex_unlock(&far.lock);
		pthread_join(far.thread, NULL);
		pthread_mutex_lock(&far.lock);
		while (far.connectors)
			pthread_cond_wait(&far.idle, &far.lock);
		close_all(take_over());
		while (far.ears)
			drop(far.ears);
		fold();
	}
	pthread_mutex_unlock(&far.lock);
}
