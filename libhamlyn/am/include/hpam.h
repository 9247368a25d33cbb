/* SPDX-License-Identifier: MIT */
/*
 * HPAM, Active Messages of four words and of memory, on libhamlyn.
 *
 * The interface is that of the HPAM paper. See gam.h: the same engine below another
 * interface, and both may be used in one program; the rules for handlers, errors,
 * threads and start-up are the same, and hamlyn_am(7) has them.
 *
 * A word is an unsigned long: 64 bits here, 32 in 1995. Handlers do not learn who
 * sent a request, but HPAM_reply_dest is it while one runs. "P 4" points into the
 * HPAM paper. What the paper leaves open is said where it is decided.
 */
#ifndef HAMLYN_HPAM_H
#define HAMLYN_HPAM_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types -------------------------------------------------------------- */

/**
 * typedef HPAM_handler_4 - handler of a request or a reply with four words
 * @arg0: word
 * @arg1: word
 * @arg2: word
 * @arg3: word
 */
typedef void (*HPAM_handler_4)(unsigned long arg0, unsigned long arg1,
			       unsigned long arg2, unsigned long arg3);

/**
 * typedef HPAM_handler_xfer - handler of memory that has arrived
 * @arg: what the call was given that sent it
 * @base: where it is, in the process that the handler runs in
 * @length: bytes of all of it
 */
typedef void (*HPAM_handler_xfer)(void *arg, void *base, int length);

/* ---- the process and the program ---------------------------------------- */

/**
 * HPAM_enable() - join the parallel program; the same as am_enable()
 *
 * Return: as am_enable().
 */
int HPAM_enable(void);

/**
 * HPAM_disable() - leave it; the same as am_disable()
 *
 * Return: as am_disable().
 */
int HPAM_disable(void);

/**
 * DOC: HPAM_self_address, HPAM_partition_size, HPAM_reply_dest - numbers of processes
 *
 * Variables in the paper. To be read only; the first two from HPAM_enable() on.
 *
 * @HPAM_self_address: this process
 * @HPAM_partition_size: how many there are
 * @HPAM_reply_dest: while a request handler runs, who sent the request; else -1
 */
extern int HPAM_self_address;
extern int HPAM_partition_size;
extern int HPAM_reply_dest;

/**
 * HPAM_poll() - serve the network: handlers, acknowledgments, time-outs (P 5.2)
 *
 * Return: as am_poll(), while the paper's returns nothing.
 */
int HPAM_poll(void);

/**
 * HPAM_error() - what was wrong with the last call that failed?
 *
 * Return: text for people to read, as am_error().
 */
const char *HPAM_error(void);

/* ---- words -------------------------------------------------------------- */

/**
 * HPAM_4() - request with four words (P 4, Appendix A)
 * @dest: process
 * @fun: its function
 * @arg0: word
 * @arg1: word
 * @arg2: word
 * @arg3: word
 *
 * Return: 0; -EINVAL if there is no such process, or @fun is no function that can be
 * named there; -EPERM in a handler; -ENOTCONN; -ETIMEDOUT or -ECONNRESET if @dest is
 * lost.
 */
int HPAM_4(int dest, HPAM_handler_4 fun, unsigned long arg0, unsigned long arg1,
	   unsigned long arg2, unsigned long arg3);

/**
 * HPAM_reply_4() - the reply to it: for a request handler, once (P 4)
 * @fun: function of who sent the request
 * @arg0: word
 * @arg1: word
 * @arg2: word
 * @arg3: word
 *
 * Return: 0; -EPERM outside of a request handler; -EALREADY after another reply;
 * -EINVAL if @fun is no function that can be named there; -ENOTCONN.
 */
int HPAM_reply_4(HPAM_handler_4 fun, unsigned long arg0, unsigned long arg1,
		 unsigned long arg2, unsigned long arg3);

/* ---- memory ------------------------------------------------------------- */

/**
 * HPAM_xfer() - copy memory to another process and run a handler there (P 4)
 * @dest: process
 * @local: memory here; it may be changed on return
 * @remote: memory of @dest
 * @length: bytes. The paper leaves what is longer than a packet to layers above;
 *	here any length up to INT_MAX is sent in segments
 * @fun: function of @dest; it runs when all bytes are there
 * @arg: its argument
 *
 * Return: as HPAM_4(), and -EINVAL if @length is negative.
 */
int HPAM_xfer(int dest, const void *local, void *remote, int length,
	      HPAM_handler_xfer fun, void *arg);

/**
 * HPAM_reply_xfer() - reply with memory: for a request handler, once (P 4)
 * @local: memory here
 * @remote: memory of who sent the request
 * @length: bytes, at most am_max_size()
 * @fun: function there
 * @arg: its argument
 *
 * Return: as HPAM_reply_4(), and -EMSGSIZE.
 */
int HPAM_reply_xfer(const void *local, void *remote, int length,
		    HPAM_handler_xfer fun, void *arg);

/* ---- to all others ------------------------------------------------------ */

/**
 * HPAM_bcast_4() - HPAM_4() to every other process
 * @fun: function
 * @arg0: word
 * @arg1: word
 * @arg2: word
 * @arg3: word
 *
 * The paper's broadcast is one packet of its network, which may get lost. This one is
 * a request to each: it arrives, and is paid for.
 *
 * Return: as HPAM_4(), the first error; all processes that can be reached have it then.
 */
int HPAM_bcast_4(HPAM_handler_4 fun, unsigned long arg0, unsigned long arg1,
		 unsigned long arg2, unsigned long arg3);

/**
 * HPAM_bcast_xfer() - HPAM_xfer() to every other process
 * @local: memory here
 * @remote: where to, the same address in each of them
 * @length: bytes
 * @fun: function
 * @arg: its argument
 *
 * Return: as HPAM_bcast_4().
 */
int HPAM_bcast_xfer(const void *local, void *remote, int length,
		    HPAM_handler_xfer fun, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_HPAM_H */
