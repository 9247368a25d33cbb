/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: servers, of many clients that need not trust each other.
 *
 * A server is a device, a manager, a listener, and a channel for each client. One function
 * of the program, the handler, is called for each message that a client sends. Clients use
 * channels: h_channel_dial() connects one, h_channel_request() asks. No client delays the
 * others: one that does not take its replies is not listened to until it does, and one that
 * is gone is forgotten.
 *
 * One thread at a time runs a server (h_server_run(), h_server_dispatch(),
 * h_server_close()); the callbacks run in it, without a lock. Other threads may
 * use a client's channel as long as it is there, and may call h_server_stop().
 *
 * A channel belongs to the server. It is valid in its callbacks, and in between, until the
 * server's on_end has returned for it; the program does not close it. A message is valid until
 * the handler returns; what is to be kept is copied. To answer later, copy the structure,
 * and give h_channel_reply() the copy.
 */
#ifndef HAMLYN_SERVER_H
#define HAMLYN_SERVER_H

#include <hamlyn/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_server;

/**
 * struct h_server_attr - properties of a server; zero means default
 * @device: which one to open, as for h_open(); NULL: its default
 * @on_client: called with each new client, before any of its messages. 0: welcome; else it
 *	is sent away: it finds the end of its channel, or cannot connect (-ECONNRESET). NULL:
 *	all are welcome
 * @on_end: called once for each client that @on_client has welcomed, just before its channel
 *	ends: the last chance to free what h_channel_set_data() keeps. @reason: 0 if the client
 *	ended well, or h_server_close() does; what the handler returned; or as
 *	h_channel_receive(): -ECONNRESET if it is gone. NULL: nothing is called
 * @uids: users who may connect, copied; NULL: everyone whom the path admits
 * @uid_count: how many @uids there are
 * @mode: of the path, as in struct h_listener_attr
 * @flags: H_CONNECT_TICKETS or 0
 * @clients: most clients at a time, at most 65536; later ones are told -EUSERS. 0: the value
 *	of HAMLYN_CHANNELS in the environment, or 170
 * @clients_of_user: most clients of one user at a time, so that no user keeps out the others;
 *	those beyond are sent away as by @on_client. 0: as many as there may be
 * @buffers: of each client's channel, as @buffer_size, @max_buffer_size and @max_message:
 *	see struct h_channel_attr. Fewer or smaller ones make room for more clients
 * @buffer_size: see there
 * @max_buffer_size: see there
 * @max_message: see there
 */
struct h_server_attr {
	const char *device;
	int (*on_client)(struct h_channel *channel, void *arg);
	void (*on_end)(struct h_channel *channel, int reason, void *arg);
	const uid_t *uids;
	uint32_t uid_count;
	uint32_t mode;
	uint32_t flags;
	uint32_t clients;
	uint32_t clients_of_user;
	uint32_t buffers;
	uint32_t buffer_size;
	uint32_t max_buffer_size;
	uint64_t max_message;
};

/* With the size of the structure that the program knows: Documentation/abi.rst. */
int h__server_create(const char *path,
		     int (*handler)(struct h_channel *channel, const struct h_message *message,
				    void *arg),
		     void *arg, const struct h_server_attr *attr, size_t size,
		     struct h_server **server);

/**
 * h_server_create() - open the device, make a manager, and listen for clients
 * @path: where: a path, '@' and an abstract name, or HOST/NAME
 * @handler: called for each message that a client sends, in order; see below
 * @arg: the last argument of all callbacks
 * @attr: properties, or NULL
 * @server: out: the server; nothing happens before h_server_run() or h_server_dispatch()
 *
 * The handler sends with H_NOWAIT, by h_channel_reply() or h_channel_send() on the same channel,
 * and may return what that returned:
 *
 * - 0: done with the message; positive numbers are the same;
 * - -EAGAIN: the client does not take its replies. The handler is called again with the same
 *   message when a send may be tried again, and with none of that client's others before. One
 *   that has other reasons to wait is called again after a while, 64 ms at most;
 * - -ENODATA: nothing more is wanted of the client: its channel ends well when what was sent to
 *   it has arrived;
 * - any other error: the channel ends now. That is what a dead client (-EPIPE) gets, and one
 *   that asks for nonsense should get (-EPROTO).
 *
 * A reply that is longer than what the client has room for is kept in memory, one for each
 * client, until it takes it.
 *
 * If it fails, h_explain() with no device tells the calling thread why, in words.
 *
 * Return: 0, -EINVAL without @handler, or with too many @clients, or as h_open(),
 * h_manager_create(), h_listener_create(); -EMFILE, -ENFILE.
 */
static inline int h_server_create(const char *path,
				  int (*handler)(struct h_channel *channel,
						 const struct h_message *message, void *arg),
				  void *arg, const struct h_server_attr *attr,
				  struct h_server **server)
{
	return h__server_create(path, handler, arg, attr, sizeof(*attr), server);
}

/**
 * h_server_run() - serve until h_server_stop()
 * @server: the server
 * @timeout_ns: longest time to serve; 0: what is there now
 *
 * Return: 0 after h_server_stop(); -EAGAIN, -ETIMEDOUT when the time is over; -EINTR if
 * a signal was handled while it slept: call it again. Or as h_manager_fd().
 */
int h_server_run(struct h_server *server, int64_t timeout_ns);

/**
 * h_server_stop() - end h_server_run()
 * @server: the server
 *
 * It returns soon, or, if it is not running, the next one at once. Any thread may call
 * this, also a callback, and so may a signal handler. Clients stay until h_server_close().
 */
void h_server_stop(struct h_server *server);

/**
 * h_server_fd() - a descriptor for event loops, in place of h_server_run()
 * @server: the server
 *
 * Readable while there is something for h_server_dispatch() to do; level triggered. Take it
 * out of the loop before h_server_close(), which closes it.
 *
 * Return: the descriptor, owned by @server, or a negative errno as h_manager_fd().
 */
int h_server_fd(struct h_server *server);

/**
 * h_server_dispatch() - take new clients, call back for what has come; without waiting
 * @server: the server
 *
 * Each client has a limited number of its messages handled before the call returns.
 *
 * Return: 0, or a negative errno as h_manager_fd().
 */
int h_server_dispatch(struct h_server *server);

/**
 * h_server_manager() - the manager of a server
 * @server: the server
 *
 * For h_manager_stats(), for memory to send from, and for end points of the program's own;
 * these it destroys before h_server_close().
 *
 * Return: the manager, which lives as long as the server.
 */
struct h_manager *h_server_manager(const struct h_server *server);

/**
 * h_server_clients() - how many clients are there?
 * @server: the server
 *
 * Any thread may call this.
 *
 * Return: how many, those included whose channels are about to end.
 */
uint32_t h_server_clients(const struct h_server *server);

/**
 * h_server_close() - end a server, its clients' channels, its manager and its device
 * @server: the server, or NULL: nothing; not in one of its callbacks
 * @timeout_ns: longest time to wait until what was sent has arrived at all clients; 0: those
 *	at which something has not find a broken channel
 *
 * New clients find no server. Messages that were not handled yet are lost. The server is
 * destroyed, whatever the call returns but -EBUSY. In a child of fork() the call gives back
 * what the child has, and touches no client.
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT if not everything is known to have arrived; -EBUSY in a
 * callback, then nothing was done, or while there are end points of the program's own on its
 * manager: manager and device stay then.
 */
int h_server_close(struct h_server *server, int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_SERVER_H */
