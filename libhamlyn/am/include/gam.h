/* SPDX-License-Identifier: MIT */
/*
 * Generic Active Messages (GAM 1.1) as HP-LAM implements them, on libhamlyn.
 *
 * A parallel program is a number of processes, 0 to am_procs() - 1, started by
 * hamlyn-run, mpirun, srun or mpiexec. An active message names a function of the
 * receiver, the handler, which runs there with the message's words when the receiver
 * polls. Every request is answered by one reply; where the handler sends none the
 * library does. Messages are delivered exactly once as long as both processes live,
 * over fabrics that lose, repeat, damage and reorder packets too, in no particular
 * order.
 *
 * A request handler may send one reply, to who sent the request; a reply handler
 * must not use the network. Calls that break these rules change nothing and return
 * -EPERM, -EALREADY or -EINVAL. Messages of a process to itself are calls: their
 * handlers run before what sends them returns.
 *
 * The papers' words are those of their machines: 32 bits in 1995, here what a long
 * is, 64 bits. All functions are for one thread of the process. "L 3.1" points into
 * the HP-LAM paper, "P 5.2" into the HPAM paper.
 *
 * Functions return 0 or a negative errno. -ETIMEDOUT: a process did not answer for
 * 30 s, -ECONNRESET: it is gone; am_error() says which. Link with -lhamlyn-am. See
 * hamlyn_am(7) for all that is not about one function.
 */
#ifndef HAMLYN_GAM_H
#define HAMLYN_GAM_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types -------------------------------------------------------------- */

/** typedef vnn_t - number of a process of the program ("virtual node number") */
typedef int vnn_t;

/**
 * typedef handler_0_t - handler of a short message
 * @source: process that sent it
 *
 * @arg0 to @arg4 are the words of the message.
 */
typedef void (*handler_0_t)(vnn_t source);
typedef void (*handler_1_t)(vnn_t source, long arg0);
typedef void (*handler_2_t)(vnn_t source, long arg0, long arg1);
typedef void (*handler_3_t)(vnn_t source, long arg0, long arg1, long arg2);
typedef void (*handler_4_t)(vnn_t source, long arg0, long arg1, long arg2,
			    long arg3);
typedef void (*handler_5_t)(vnn_t source, long arg0, long arg1, long arg2,
			    long arg3, long arg4);

/**
 * typedef handler_df_t - handler of a short message with a floating point number
 * @source: process that sent it
 * @arg0: word
 * @arg1: word
 * @arg2: number
 */
typedef void (*handler_df_t)(vnn_t source, long arg0, long arg1, double arg2);

/**
 * typedef handler_mem_t - handler of memory that has arrived
 * @source: process that it is from
 * @addr: where it is, in the process that the handler runs in
 * @nbytes: bytes of all of it
 * @arg: what the call was given that sent it
 */
typedef void (*handler_mem_t)(vnn_t source, void *addr, int nbytes, void *arg);

/**
 * typedef handler_med_t - handler of a medium message
 * @source: process that sent it
 * @data: its data, until the handler returns
 * @nbytes: bytes of them
 * @arg0: word
 * @arg1: word
 */
typedef void (*handler_med_t)(vnn_t source, void *data, int nbytes, long arg0,
			      long arg1);

/* ---- beginning and end -------------------------------------------------- */

/**
 * am_enable() - join the parallel program
 *
 * Finds the other processes, waits until all of them are here. The first call of a
 * process. Without a launcher the program is this one process.
 *
 * $HAMLYN_DEVICE names the device. Without it that is /dev/hamlyn0 if that can be
 * opened, else a segment of this run of the program alone. hamlyn_am(7) tells what
 * else it asks the environment.
 *
 * Return: 0; -EALREADY; -ENOEXEC if the processes do not run the same program; -E2BIG
 * if they are more than 1024, or have loaded more than 64 libraries; -EINVAL if a
 * setting of the environment, or what the launcher says there, is not allowed; -EMSGSIZE
 * if $HAMLYN_AM_PAGE does not fit into the device's packets, or the launcher takes only
 * shorter texts than there are to publish; -ENOTSUP if it takes PMIx to start and that
 * cannot be had; -ETIMEDOUT, -ECONNRESET, -EPROTO or -EIO if the launcher does not
 * answer, is gone, or says what is not understood; -ENOENT if it has not what another
 * process has published; -ENOTSOCK if its connection is none; -EHOSTUNREACH if its host
 * cannot be found, and what socket(2), connect(2), send(2) and recv(2) fail with
 * otherwise; -ENOMEM; what h_open(), h_area_alloc() and the other calls of the device
 * return; -ENODEV if the processes have opened different devices.
 * am_error() says more. The others wait until this process ends: it should end with a
 * status that is not 0, so that the launcher ends them.
 */
int am_enable(void);

/**
 * am_disable() - leave the parallel program
 *
 * Waits until all processes call it, and serves the network meanwhile; not for one that
 * is lost, and no more than some seconds longer for the launcher then. Afterwards there
 * is nothing to be called but am_error(); what is called returns -ENOTCONN.
 *
 * If it fails, other than by -EPERM, the process has left the program all the same.
 *
 * Return: 0, -ENOTCONN, -EPERM in a handler, the error with which another process
 * was lost (-ETIMEDOUT or -ECONNRESET), or what is wrong with the launcher, as
 * am_enable().
 */
int am_disable(void);

/**
 * am_procs() - how many processes has the program?
 *
 * Return: their number; 0 before am_enable().
 */
int am_procs(void);

/**
 * am_my_proc() - which one is this?
 *
 * Return: 0 to am_procs() - 1.
 */
int am_my_proc(void);

/**
 * am_max_size() - most bytes of one am_reply_xfer() and of one medium message
 *
 * am_store() and am_get() are not bound by it: they send segments of this size.
 *
 * Return: bytes, the same in all processes; 0 before am_enable().
 */
int am_max_size(void);

/* ---- serving the network ------------------------------------------------ */

/**
 * am_poll() - run the handlers of all messages that have arrived
 *
 * Every call that sends a request polls as well. A process that computes for long
 * without calling any must call it now and then: others wait for it, and count it as
 * lost after 30 s.
 *
 * Return: how many messages were handled; -ENOTCONN; -EPERM in a handler; or -ETIMEDOUT
 * or -ECONNRESET, once, when another process has been lost.
 */
int am_poll(void);

/**
 * am_sleep() - serve the network for a time, without using up the processor
 * @seconds: how long; 0: what has arrived is served, as by am_poll()
 *
 * Returns at once in a handler. That a process is lost meanwhile is told by the next
 * am_poll().
 */
void am_sleep(unsigned int seconds);

/**
 * lam_sync_all() - wait until all processes are here
 *
 * When it returns 0 the handlers of all requests that any process sent before have
 * run.
 *
 * Once a process is lost to any other it fails, in all of them that wait or come later,
 * also in those that have lost nobody, and in the lost one if it goes on; unless who has
 * lost it does not call the library any more: then that one is lost as well. It fails
 * from then on, with the same error, without waiting for the others.
 *
 * Return: 0, -ENOTCONN, -EPERM in a handler, or -ETIMEDOUT or -ECONNRESET if any
 * process of the program was lost.
 */
int lam_sync_all(void);

/**
 * am_wait_for() - serve the network until a condition holds
 * @condition: an expression that handlers change
 *
 * Not for handlers. It does not end when the process is lost that should make the
 * condition true: programs that go on without it call am_poll() themselves.
 */
#define am_wait_for(condition)						\
	do {								\
		while (!(condition))					\
			am_poll();					\
	} while (0)

/**
 * am_static() - where has another process a static variable of the program?
 * @dest: process
 * @here: address of the variable, or of a part of it, in this process
 *
 * Where programs are loaded to random places their variables have other addresses in
 * every process; those of memory that was allocated have to be told by messages. A
 * program that takes all addresses to be the same must be started without that
 * (hamlyn-run --same-addresses).
 *
 * Return: its address in @dest; NULL if @here is not in the program itself (but in a
 * library, in allocated memory, or on a stack), if there is no such process, or before
 * am_enable().
 */
void *am_static(vnn_t dest, const void *here);

/**
 * am_error() - what was wrong with the last call that failed?
 *
 * Calls that succeed leave it alone.
 *
 * Return: text for people to read, valid until the next call; "" if there is none.
 */
const char *am_error(void);

/* ---- short and medium messages ------------------------------------------ */

/**
 * am_request_0() - short request: run a function with words on another process
 * @dest: process
 * @handler: its function, of this program or of a library that it was started with
 *
 * @arg0 to @arg4 are the words: as many as the name says, and as many as the handler
 * takes.
 *
 * They return when the words may be forgotten, which takes until one of the requests
 * under way to @dest is answered if there are as many as may be.
 *
 * Return: 0; -EINVAL if there is no such process, or the handler is no function that
 * can be named there; -EPERM in a handler; -ENOTCONN; -ETIMEDOUT or -ECONNRESET if
 * @dest is lost.
 */
int am_request_0(vnn_t dest, handler_0_t handler);
int am_request_1(vnn_t dest, handler_1_t handler, long arg0);
int am_request_2(vnn_t dest, handler_2_t handler, long arg0, long arg1);
int am_request_3(vnn_t dest, handler_3_t handler, long arg0, long arg1,
		 long arg2);
int am_request_4(vnn_t dest, handler_4_t handler, long arg0, long arg1,
		 long arg2, long arg3);
int am_request_5(vnn_t dest, handler_5_t handler, long arg0, long arg1,
		 long arg2, long arg3, long arg4);

/**
 * am_request_df() - short request with a floating point number
 * @dest: process
 * @handler: its function
 * @arg0: word
 * @arg1: word
 * @arg2: number
 *
 * Return: as am_request_0().
 */
int am_request_df(vnn_t dest, handler_df_t handler, long arg0, long arg1,
		  double arg2);

/**
 * am_reply_0() - short reply: for a request handler, once
 * @dest: process that the request is of
 * @handler: its function, a reply handler
 *
 * @arg0 to @arg4 are the words: as many as the name says, and as many as the handler
 * takes.
 *
 * Return: 0; -EPERM outside of a request handler; -EALREADY after another reply;
 * -EINVAL if @dest is not who sent the request, or the handler is no function that can
 * be named there; -ENOTCONN.
 */
int am_reply_0(vnn_t dest, handler_0_t handler);
int am_reply_1(vnn_t dest, handler_1_t handler, long arg0);
int am_reply_2(vnn_t dest, handler_2_t handler, long arg0, long arg1);
int am_reply_3(vnn_t dest, handler_3_t handler, long arg0, long arg1,
	       long arg2);
int am_reply_4(vnn_t dest, handler_4_t handler, long arg0, long arg1, long arg2,
	       long arg3);
int am_reply_5(vnn_t dest, handler_5_t handler, long arg0, long arg1, long arg2,
	       long arg3, long arg4);

/**
 * am_reply_df() - short reply with a floating point number: for a request handler, once
 * @dest: process that the request is of
 * @handler: its function, a reply handler
 * @arg0: word
 * @arg1: word
 * @arg2: number
 *
 * Return: as am_reply_0().
 */
int am_reply_df(vnn_t dest, handler_df_t handler, long arg0, long arg1,
		double arg2);

/**
 * am_request() - medium request: data that the handler finds in a buffer (L 3.1)
 * @dest: process
 * @handler: its function
 * @lva: data here
 * @nbytes: bytes of it, at most am_max_size()
 * @arg0: word
 * @arg1: word
 *
 * The handler may read the buffer until it returns, and must not write to it. When
 * this call returns the data here may be changed.
 *
 * Return: 0, -EMSGSIZE, or as am_request_0().
 */
int am_request(vnn_t dest, handler_med_t handler, const void *lva, int nbytes,
	       long arg0, long arg1);

/**
 * am_reply() - medium reply: for a request handler, once
 * @dest: process that the request is of
 * @handler: its function, a reply handler
 * @lva: data here
 * @nbytes: bytes of it, at most am_max_size()
 * @arg0: word
 * @arg1: word
 *
 * On return the data here may be changed. The data may be those of the request.
 *
 * Return: 0, -EMSGSIZE, or as am_reply_0().
 */
int am_reply(vnn_t dest, handler_med_t handler, const void *lva, int nbytes,
	     long arg0, long arg1);

/* ---- memory ------------------------------------------------------------- */

/**
 * am_store() - copy memory to another process, then run a handler there
 * @dest: process
 * @lva: memory here
 * @rva: memory of @dest, any that it may write to
 * @nbytes: bytes, 0 to INT_MAX
 * @handler: function of @dest; it runs when all bytes are there
 * @arg: its argument
 *
 * On return the memory here may be changed; the copy may still be under way. Where
 * @dest has no memory at @rva it is ended by a signal.
 *
 * Return: 0, -EINVAL if there are less than 0 bytes, or as am_request_0().
 */
int am_store(vnn_t dest, const void *lva, void *rva, int nbytes,
	     handler_mem_t handler, void *arg);

/**
 * am_store_async() - as am_store(), without waiting for anything
 * @dest: process
 * @lva: memory here, to be left alone until @endfunc runs
 * @rva: memory of @dest
 * @nbytes: bytes, 0 to INT_MAX
 * @handler: function of @dest
 * @arg: its argument
 * @endfunc: function here, with this process, @lva, @nbytes and @endarg; it runs from
 *	this call or a later one of the library and must not use the network; or NULL
 * @endarg: its argument
 *
 * That @endfunc runs says that the memory here may be changed: not that all of it has
 * arrived, and it runs when @dest is lost, too.
 *
 * Return: 0, -EAGAIN if 32 of them are under way, or as am_store().
 */
int am_store_async(vnn_t dest, const void *lva, void *rva, int nbytes,
		   handler_mem_t handler, void *arg, handler_mem_t endfunc,
		   void *endarg);

/**
 * am_get() - copy memory of another process to here, then run a handler here
 * @source: process that has the data
 * @rva: its memory
 * @lva: memory here
 * @nbytes: bytes, 0 to INT_MAX
 * @handler: function here, a reply handler; it runs when all bytes are here
 * @arg: its argument
 *
 * Does not wait for the data, but until there is room for its requests: 64 of these
 * calls may be under way. @source runs no handler; it has to poll.
 *
 * Return: 0, -EINVAL if there are less than 0 bytes or no such process, or as
 * am_request_0().
 */
int am_get(vnn_t source, const void *rva, void *lva, int nbytes,
	   handler_mem_t handler, void *arg);

/**
 * am_reply_xfer() - reply with memory
 * @dest: process that the request is of
 * @lva: memory here
 * @rva: memory there
 * @nbytes: bytes, at most am_max_size()
 * @handler: function there, a reply handler
 * @arg: its argument
 *
 * On return the memory here may be changed.
 *
 * Return: 0, -EMSGSIZE, or as am_reply_0().
 */
int am_reply_xfer(vnn_t dest, const void *lva, void *rva, int nbytes,
		  handler_mem_t handler, void *arg);

/* ---- counters ----------------------------------------------------------- */

/**
 * struct am_stats - what the protocol has done since am_enable()
 * @requests: requests sent (segments of bulk transfers, too)
 * @replies: replies that handlers sent
 * @acks: requests that were acknowledged by no reply of a handler
 * @ack_messages: messages that this took
 * @bytes: payload bytes of bulk and medium messages sent
 * @retransmissions: requests that were sent again
 * @reflections: saved replies that were sent again
 * @duplicates: messages that had been handled already
 * @damaged: messages whose checksum was wrong
 * @stalls: requests that had to wait for one of those under way
 * @messages: messages given to the NIC, of whatever kind
 * @doorbells: publications of them: several may be announced by one
 * @overruns: times that the notification queue was found to have been full
 */
struct am_stats {
	unsigned long requests, replies, acks, ack_messages, bytes;
	unsigned long retransmissions, reflections, duplicates, damaged, stalls;
	unsigned long messages, doorbells, overruns;
};

/**
 * am_get_stats() - counters of this process
 * @stats: out
 *
 * Return: 0, or -ENOTCONN.
 */
int am_get_stats(struct am_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_GAM_H */
