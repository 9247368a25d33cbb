/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, upper layer: streams (H 3.3).
 *
 * A stream goes one way, from one sender to one receiver, in order, with any amount of
 * data. The receiver makes a seed, which travels to the sender by any means; the sender is
 * made from it. Small sends are collected until h_stream_flush() or until a buffer
 * is full, large ones are sent as they are. The receiver is given pointers into its
 * buffers and releases what it has seen, so that the sender can go on.
 *
 * Neither end needs to trust the other: each buffer lets in one message until its
 * owner has released it (paranoid one-shot mode, H 2.7), so what was received does
 * not change any more, and neither end can fill up the other's NQ. The other end can stop
 * sending, or send nonsense, and that is all.
 */
#ifndef HAMLYN_STREAM_H
#define HAMLYN_STREAM_H

#include <hamlyn/manager.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_stream_receiver;
struct h_stream_sender;

/**
 * struct h_stream_attr - properties of a stream; zero means default
 * @buffers: how many messages can be on their way: a power of two, 2 to 1024 (16).
 *	As many entries of the receiving manager's NQ are set aside, twice as many while
 *	buffers grow
 * @buffer_size: initial bytes of each, a power of two, 128 to 1 MiB (4096)
 * @max_buffer_size: while the sender has more to send than the buffers hold, they grow up
 *	to that, a power of two, at most 1 MiB (65536); below @buffer_size: they do not
 *	grow
 * @flags: must be 0
 */
struct h_stream_attr {
	uint32_t buffers;
	uint32_t buffer_size;
	uint32_t max_buffer_size;
	uint32_t flags;
};

/* ---- receiving ---------------------------------------------------------- */

/* With the size of the structure that the program knows: Documentation/abi.rst. */
int h__stream_receiver_create(struct h_manager *manager, const struct h_stream_attr *attr,
			      size_t size, struct h_stream_receiver **receiver);

/**
 * h_stream_receiver_create() - create the receiving end of a stream
 * @manager: polls for it and provides its memory
 * @attr: properties, or NULL
 * @receiver: out: the receiver
 *
 * Return: 0, or -EINVAL, -ENOSPC if the manager's NQ has no room for it,
 * -ENOMEM, or as h_slot_create().
 */
static inline int h_stream_receiver_create(struct h_manager *manager,
					   const struct h_stream_attr *attr,
					   struct h_stream_receiver **receiver)
{
	return h__stream_receiver_create(manager, attr, sizeof(*attr), receiver);
}

/**
 * h_stream_receiver_destroy() - destroy the receiving end
 * @receiver: the receiver, or NULL: nothing
 *
 * What was not received is lost, and the sender's calls fail with -EPIPE.
 *
 * Return: 0, or -ETIMEDOUT as h_slot_destroy().
 */
int h_stream_receiver_destroy(struct h_stream_receiver *receiver);

/**
 * h_stream_receiver_seed() - make a seed for the sender (H 3.3)
 * @receiver: the receiver
 * @seed: out: the seed; it makes one sender, once, and a second one is refused
 */
void h_stream_receiver_seed(const struct h_stream_receiver *receiver,
			    struct h_seed *seed);

/**
 * struct h_record - a piece of a stream, where it was received
 * @data: first byte, in the receiver's memory
 * @length: bytes, at least 1
 * @number: for h_stream_release()
 */
struct h_record {
	const void *data;
	size_t length;
	uint32_t number;
};

/**
 * h_stream_receive() - receive the next piece, without copying
 * @receiver: the receiver
 * @record: out: the piece, valid until h_stream_release()
 * @timeout_ns: longest time to wait
 *
 * How a stream is divided into pieces has no meaning. Several can be held at
 * a time, but the sender stops when all buffers are held.
 *
 * Return: 0; -ENODATA at the end, when the sender has closed it and everything was
 * received; -EAGAIN, -ETIMEDOUT, -EINTR; -ECONNRESET if the sender is gone
 * without having closed it; -EPROTO if it broke the rules.
 */
int h_stream_receive(struct h_stream_receiver *receiver,
		     struct h_record *record, int64_t timeout_ns);

/**
 * h_stream_release() - free all pieces up to and including one
 * @receiver: the receiver
 * @record: what h_stream_receive() gave
 *
 * Pieces that were released before are left alone.
 */
void h_stream_release(struct h_stream_receiver *receiver,
		      const struct h_record *record);

/**
 * h_stream_receive_copy() - receive by copying
 * @receiver: the receiver
 * @data: where to
 * @length: room there, in bytes
 * @timeout_ns: longest time to wait for the first byte
 *
 * The part of a piece that does not fit is returned next time. Do not mix it with
 * h_stream_receive() while part of a piece is left. A piece that was read is released,
 * and with it all that h_stream_receive() returned before.
 *
 * Return: bytes, or as h_stream_receive().
 */
ssize_t h_stream_receive_copy(struct h_stream_receiver *receiver, void *data,
			      size_t length, int64_t timeout_ns);

/**
 * h_stream_receiver_on_ready() - have h_manager_dispatch() call back
 * @receiver: the receiver
 * @ready: called while there is something to receive, or the end was reached,
 *	or an error is to be reported. Calls may be spurious. NULL: no callback
 * @arg: its second argument
 */
void h_stream_receiver_on_ready(struct h_stream_receiver *receiver,
				void (*ready)(struct h_stream_receiver *receiver,
					      void *arg),
				void *arg);

/* ---- sending ------------------------------------------------------------ */

/**
 * h_stream_sender_create() - create the sending end of a stream from a seed
 * @manager: its terminus sends, and it polls for news from the receiver
 * @seed: of h_stream_receiver_seed()
 * @sender: out: the sender
 *
 * Waits for up to a second while the work queue is full.
 *
 * Return: 0, -ETIMEDOUT if it still is then; -EINVAL if these bytes are not the seed of a stream,
 * -EPROTO if they are a seed of another version, -EALREADY if any sender was made from this seed
 * before, even if that is gone by now; -EPIPE if the receiver is gone, -ENOSPC, -ENOMEM,
 * or as h_slot_create(), h_watch(), h_send_msg(). While the user (embedded device: this
 * process) is held back for wrong keys (see h_watch()) the library cannot check at once that
 * this is the only sender: it checks as soon as it can, and then calls of a second one fail
 * with -EPIPE. So do those of a second one on another host than the receiver, a moment after it
 * was made. If the seed is claimed already and something fails afterwards (-ENOSPC,
 * say), it is spent: a second attempt fails with -EALREADY, and a new receiver is needed.
 */
int h_stream_sender_create(struct h_manager *manager, const struct h_seed *seed,
			   struct h_stream_sender **sender);

/**
 * h_stream_send() - send
 * @sender: the sender
 * @data: bytes; this process does not copy large amounts in memory of h_manager_alloc()
 *	or h_manager_register()
 * @length: how many
 * @timeout_ns: longest time to wait for buffers
 *
 * When it returns @data may be changed. A small amount may be held back until
 * h_stream_flush(). With a deadline, what goes to other hosts of the kernel device is copied first:
 * they may take nothing.
 *
 * Return: bytes taken, all of @length or, when the time was over, fewer; -EAGAIN
 * or -ETIMEDOUT if none; -EPIPE if the receiver is gone, or after
 * h_stream_sender_shutdown(); -EINTR if none and a signal was handled; or, if none, as
 * h_manager_alloc() and h_send_msg().
 */
ssize_t h_stream_send(struct h_stream_sender *sender, const void *data,
		      size_t length, int64_t timeout_ns);

/**
 * h_stream_flush() - force out what was collected
 * @sender: the sender
 * @timeout_ns: longest time to wait for a buffer
 *
 * Return: 0, -EAGAIN, -ETIMEDOUT, -EINTR, -EPIPE.
 */
int h_stream_flush(struct h_stream_sender *sender, int64_t timeout_ns);

/**
 * h_stream_sender_shutdown() - end the stream, and wait until everything has arrived
 * @sender: the sender, which sends no more
 * @timeout_ns: longest time to wait for a buffer, if none is free, and for the receiving
 *	process to poll; it need not receive everything
 *
 * May be called again, until it has returned 0 or -EPIPE: unlike with
 * h_stream_sender_close(), a time-out or a signal cuts nothing off.
 *
 * Return: 0; -EAGAIN, -ETIMEDOUT or -EINTR if not everything is known to have arrived;
 * -EPIPE if the receiver is gone, or the NIC has refused to send that this is the end.
 */
int h_stream_sender_shutdown(struct h_stream_sender *sender, int64_t timeout_ns);

/**
 * h_stream_sender_close() - end the stream, and destroy the sending end
 * @sender: the sender, or NULL: nothing
 * @timeout_ns: longest time to wait until everything has arrived; 0: the receiver
 *	sees a broken stream, unless everything had arrived
 *
 * Waits for a buffer, if none is free, and for the receiving process to poll; not
 * for it to receive everything. The sender is destroyed, whatever the call returns, and its
 * memory as that of h_channel_close().
 *
 * Return: 0, -ETIMEDOUT, -EAGAIN or -EINTR if not everything is known to have
 * arrived, -EPIPE if the receiver is gone.
 */
int h_stream_sender_close(struct h_stream_sender *sender, int64_t timeout_ns);

/**
 * h_stream_sender_on_ready() - have h_manager_dispatch() call back
 * @sender: the sender
 * @ready: called when a send or flush that returned -EAGAIN, or took less than all,
 *	could go on, whatever other threads have sent meanwhile, and not again before
 *	another one did so; and once when the receiver is gone or breaks the rules. Calls may
 *	be spurious. NULL: no callback
 * @arg: its second argument
 */
void h_stream_sender_on_ready(struct h_stream_sender *sender,
			      void (*ready)(struct h_stream_sender *sender,
					    void *arg),
			      void *arg);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_STREAM_H */
