/* SPDX-License-Identifier: MIT */
/*
 * The Tempest interface: shared memory whose coherence protocol is the program's own.
 *
 * A program is one process on each of a number of nodes. All have a segment at the same
 * address, whose pages the program maps, and whose memory has an access tag for each
 * block. A load or store of a computation thread that conflicts with a tag suspends the
 * thread, and the protocol thread runs a handler that the program has registered; so it
 * does for messages and timers. Handlers run one after the other, to their end; they do
 * not access the segment directly, but by the calls below.
 *
 * "T 3.1" points into the Tempest Interface Specification, revision 1.2.1 of 1995. Names
 * that it has not are marked as extensions. See hamlyn_tempest(7) for what is promised.
 */
#ifndef TEMPEST_H
#define TEMPEST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- virtual memory (T 3.1) --------------------------------------------- */

/* Width of an offset within a page (T 3.1.1). */
#define TPPI_PAGE_SHIFT		12
/* Bytes of a page (T 3.1.1). */
#define TPPI_PAGE_SIZE		(1 << TPPI_PAGE_SHIFT)

/**
 * typedef TPPI_PageMode - number of a set of block access fault handlers (T 3.1.2)
 *
 * From 0 to TPPI_MAX_PAGE_MODE.
 */
typedef uint8_t TPPI_PageMode;
/* How many there are (T 3.1.2). */
#define TPPI_NUM_PAGE_MODES	256
/* Largest TPPI_PageMode (T 3.1.2). */
#define TPPI_MAX_PAGE_MODE	(TPPI_NUM_PAGE_MODES - 1)

/** typedef TPPI_NodeId - number of a node, from 0 (T 3.3.1) */
typedef uint32_t TPPI_NodeId;

/**
 * enum TPPI_BlkAccTag - access tag of a block (T 3.2.1)
 * @TPPI_Blk_Invalid: loads and stores conflict
 * @TPPI_Blk_Busy: the same, for the program to tell from the other
 * @TPPI_Blk_ReadOnly: stores conflict
 * @TPPI_Blk_Writable: nothing does
 */
enum TPPI_BlkAccTag {
	TPPI_Blk_Invalid,
	TPPI_Blk_Busy,
	TPPI_Blk_ReadOnly,
	TPPI_Blk_Writable,
};

typedef enum TPPI_BlkAccTag TPPI_BlkAccTag;

/* How many tags there are (T 3.2.1). */
#define TPPI_NUM_BLK_ACC_TAGS	4
/* Largest of them (T 3.2.1). */
#define TPPI_MAX_BLK_ACC_TAG	(TPPI_NUM_BLK_ACC_TAGS - 1)

/* First address of the segment; an extension. */
#ifndef TEMPEST_LOW_SEGMENT	/* the library's own tests, see abi.h */
#define TPPI_SEG_BASE		((char *)0x100000000000)
#else
#define TPPI_SEG_BASE		((char *)0x2000000000)
#endif
/**
 * DOC: TPPI_seg_size - how large the segment is; an extension
 * @TPPI_seg_size: its bytes, from 1 to 64 GiB: $HAMLYN_TEMPEST_SIZE, or 1 GiB
 */
extern uintptr_t TPPI_seg_size;
/* The same; an extension. */
#define TPPI_SEG_SIZE		TPPI_seg_size

/**
 * TPPI_alloc_and_map() - give a page memory, and map it (T 3.1.3)
 * @pg: address of the page
 * @mode: selects its block access fault handlers
 * @acc: tag of all its blocks
 * @home: whatever the program likes, usually the page's home node
 * @usr_ptr: whatever the program likes; both are told to handlers
 *
 * The memory is zero.
 *
 * Return: 1; 0 if there is no memory, @pg is no address of a page or not in the segment,
 * a page is mapped there or is about to be, or @acc is no tag.
 */
int TPPI_alloc_and_map(void *pg, TPPI_PageMode mode, TPPI_BlkAccTag acc, TPPI_NodeId home,
		       void *usr_ptr);

/**
 * TPPI_unmap_and_free() - remove a page (T 3.1.3)
 * @pg: address of the page
 *
 * Accesses that have begun complete first; later ones are page faults. The specification
 * has no result for this call.
 *
 * Return: 1; 0 if no page is mapped there, or it is part of the buffer of a channel's
 * destination, or of a transfer that is being sent.
 */
int TPPI_unmap_and_free(void *pg);

/**
 * TPPI_remap() - move a page to another address (T 3.1.3)
 * @old_pg: address of the page
 * @new_pg: address where no page is mapped
 *
 * Contents, tags, mode, home and user pointer move with it. It does not fail for want of
 * memory: it may wait until the system has returned the page that it needs meanwhile. The
 * specification has no result for this call.
 *
 * Return: 1; 0 if no page is at @old_pg, one is at @new_pg, either is no address of a page in
 * the segment, or that at @old_pg is part of the buffer of a channel's destination, or of a
 * transfer that is being sent; then nothing has changed.
 */
int TPPI_remap(void *old_pg, void *new_pg);

/**
 * typedef TPPI_PageFaultHandlerPtr - handler of page faults (T 3.1.4)
 * @va: address that was accessed, and is not mapped
 * @pc: address of the instruction; its lower 32 bits, which is all of it for the text of
 *	a program that is linked with -no-pie
 * @is_write: not 0 if it was a store
 */
typedef void (*TPPI_PageFaultHandlerPtr)(void *va, int pc, int is_write);

/**
 * TPPI_register_page_fault_handler() - set the handler of page faults (T 3.1.4)
 * @fn: handler
 *
 * It is called when a computation thread accesses the segment where no page is mapped. The
 * thread remains suspended until TPPI_resume_va() is called. Without a handler the program
 * ends with a message.
 */
void TPPI_register_page_fault_handler(TPPI_PageFaultHandlerPtr fn);

/**
 * TPPI_get_fault_pc() - the instruction whose fault is being handled; an extension
 *
 * Of page faults and block access faults, and all of its bits.
 *
 * Return: its address; of no use outside of a fault's handler.
 */
uintptr_t TPPI_get_fault_pc(void);

/**
 * struct TPPI_PageInfo - what a page was mapped with (T 3.1.5)
 * @mode: its mode
 * @usr_ptr: its user pointer
 * @home: its home
 */
struct TPPI_PageInfo {
	TPPI_PageMode mode;
	void *usr_ptr;
	TPPI_NodeId home;
};

typedef struct TPPI_PageInfo TPPI_PageInfo;

/**
 * TPPI_get_page_info() - is a page mapped, and with what? (T 3.1.5)
 * @va: any address within it
 * @info_ptr: out, or NULL
 *
 * Return: 1; 0 if no page is mapped there; -1 if @va is not in the segment, or @info_ptr
 * not aligned as its type is.
 */
int TPPI_get_page_info(void *va, TPPI_PageInfo *info_ptr);

/**
 * TPPI_get_page_user_ptr() - user pointer of a page (T 3.1.5)
 * @va: any address within it
 *
 * Return: the pointer; anything if no page is mapped there.
 */
void *TPPI_get_page_user_ptr(void *va);

/**
 * TPPI_get_page_mode() - mode of a page (T 3.1.5)
 * @va: any address within it
 *
 * Return: the mode; anything if no page is mapped there.
 */
TPPI_PageMode TPPI_get_page_mode(void *va);

/**
 * TPPI_get_page_home() - home of a page (T 3.1.5)
 * @va: any address within it
 *
 * Return: the home; anything if no page is mapped there.
 */
TPPI_NodeId TPPI_get_page_home(void *va);

/* ---- block access control (T 3.2) --------------------------------------- */

/* Width of an offset within a minimal block (T 3.2.2). */
#define TPPI_TAG_BLK_SHIFT	5
/* Bytes of a minimal block (T 3.2.2). */
#define TPPI_TAG_BLK_SIZE	(1 << TPPI_TAG_BLK_SHIFT)

/* Kinds of accesses (T 3.2.7). */
enum {
	TPPI_ReadAccess,
	TPPI_WriteAccess,
};

/**
 * enum TPPI_BlkTagChange - a new tag, and what is known of the old one (T 3.2.5)
 * @TPPI_Blk_Validate_RW: to Writable, from any
 * @TPPI_Blk_Upgrade_RW: to Writable, from ReadOnly
 * @TPPI_Blk_Validate_RO: to ReadOnly, from Invalid or Busy
 * @TPPI_Blk_Downgrade_RO: to ReadOnly, from Writable
 * @TPPI_Blk_Invalidate: to Invalid, from any
 * @TPPI_Blk_Mark_Busy: to Busy, from any
 * @TPPI_Blk_No_Tag_Change: as it is
 * @TPPI_Blk_Invalid_To_Busy: to Busy, from Invalid
 * @TPPI_Blk_Busy_To_Invalid: to Invalid, from Busy
 *
 * If the old tag is another one, here the new one is set all the same.
 */
enum TPPI_BlkTagChange {
	TPPI_Blk_Validate_RW,
	TPPI_Blk_Upgrade_RW,
	TPPI_Blk_Validate_RO,
	TPPI_Blk_Downgrade_RO,
	TPPI_Blk_Invalidate,
	TPPI_Blk_Mark_Busy,
	TPPI_Blk_No_Tag_Change,
	TPPI_Blk_Invalid_To_Busy,
	TPPI_Blk_Busy_To_Invalid,
};

typedef enum TPPI_BlkTagChange TPPI_BlkTagChange;

/**
 * TPPI_get_blk_acc() - tag of a block (T 3.2.4)
 * @va: any address within it
 *
 * Return: the tag; TPPI_Blk_Invalid if no page is mapped there.
 */
TPPI_BlkAccTag TPPI_get_blk_acc(void *va);

/**
 * TPPI_change_blk_acc() - change the tag of a block (T 3.2.5)
 * @blk_va: any address within it
 * @blk_len: its bytes: a power of two, TPPI_TAG_BLK_SIZE or more
 * @chg: how
 *
 * If the block loses access, all accesses that the old tag has let through are complete
 * when the call returns (T 3.2.6).
 *
 * A block that is larger than TPPI_TAG_BLK_SIZE is a superblock, and the change is that of
 * each of its blocks. It may be larger than a page, if all its pages are mapped. A length
 * that is none, and a page that is not mapped, end the program with a message.
 */
void TPPI_change_blk_acc(void *blk_va, int blk_len, TPPI_BlkTagChange chg);

/**
 * TPPI_change_blk_acc_and_copy() - change the tag of a block, and its contents (T 3.2.5)
 * @blk_va: any address within it
 * @blk_len: its bytes: a power of two, TPPI_TAG_BLK_SIZE or more
 * @chg: how
 * @from: new contents; may be in the segment, where tags do not matter to this call
 *
 * Accesses that the new tag permits, and the old one did not, find the new contents
 * (T 3.2.6). If the block loses access, those that the old tag let through are complete
 * before it is written.
 */
void TPPI_change_blk_acc_and_copy(void *blk_va, int blk_len, TPPI_BlkTagChange chg, void *from);

/**
 * typedef TPPI_BlkAccFaultHandlerPtr - handler of block access faults (T 3.2.7)
 * @va: an address in the block
 * @usr_ptr: of its page
 * @home: of its page
 */
typedef void (*TPPI_BlkAccFaultHandlerPtr)(void *va, void *usr_ptr, TPPI_NodeId home);

/**
 * TPPI_register_blk_acc_fault_handler() - set a handler of block access faults (T 3.2.7)
 * @mode: of the page
 * @tag: of the block
 * @acc: TPPI_ReadAccess or TPPI_WriteAccess
 * @fn: handler
 *
 * The tag is that of when the handler is about to run: if another thread's handler has
 * changed it meanwhile so that the access conflicts no more, none is called. A fault
 * without a handler ends the program with a message. For accesses that do not conflict
 * with the tag, the call says so on standard error and does nothing.
 */
void TPPI_register_blk_acc_fault_handler(TPPI_PageMode mode, TPPI_BlkAccTag tag, int acc,
					 TPPI_BlkAccFaultHandlerPtr fn);

/* ---- fine-grain messages (T 3.3) ---------------------------------------- */

/**
 * DOC: TPPI_num_nodes, TPPI_self_address - the nodes of the program (T 3.3.1)
 * @TPPI_num_nodes: how many there are
 * @TPPI_self_address: this one, from 0
 */
extern unsigned int TPPI_num_nodes;
extern TPPI_NodeId TPPI_self_address;

/**
 * typedef TPPI_MessageHandlerPtr - handler of a message (T 3.3.2)
 * @src: node that has sent it
 * @size: bytes of its body, all of which the handler must receive
 */
typedef void (*TPPI_MessageHandlerPtr)(TPPI_NodeId src, int size);

/* Most bytes of a message's body (T 3.3.4): a page and 64 bytes. */
#define TPPI_MAX_AM_BYTES	4160

/**
 * TPPI_send_items() - send a message; an extension
 * @dest: node
 * @pc: its handler there
 * @types: the items of its body: W, Ba, R, F as in the names of the TPPI_send family, and
 *	P, an address of 64 bits
 * @...: the parameters of the items
 *
 * What TPPI_send() and its family call: a function for each list of up to four items, with
 * the items in its name, as TPPI_send_WBa. This one takes any list. The parameters of an
 * item are
 *
 * - W: an int
 * - Ba: a void *, an int and a TPPI_BlkTagChange, as those of TPPI_change_blk_acc()
 * - R: a void * and an int, a region and its bytes
 * - F: an int, how many bytes of the message that is being handled are to follow
 * - P: a void *
 *
 * It does not wait: what the receiver does not take is kept, in memory without a limit. What
 * is wrong, as a body of more than TPPI_MAX_AM_BYTES, or a length that is no multiple of a
 * word, ends the program with a message.
 */
void TPPI_send_items(TPPI_NodeId dest, TPPI_MessageHandlerPtr pc, const char *types, ...);

/**
 * TPPI_send() - send a message without a body (T 3.3.2)
 * @dest: node
 * @pc: its handler there: a function of the program, or of a library that was loaded at its
 *	start; anything else ends the program with a message
 */
void TPPI_send(TPPI_NodeId dest, TPPI_MessageHandlerPtr pc);

/**
 * TPPI_recv_W() - receive a word of the message that is being handled (T 3.3.3)
 *
 * Return: the word.
 */
int TPPI_recv_W(void);

/**
 * TPPI_recv_Ba() - receive the contents of a block, and change its tag (T 3.3.3)
 * @blk_va: any address within the block
 * @blk_len: its bytes
 * @chg: how, as TPPI_change_blk_acc_and_copy()
 */
void TPPI_recv_Ba(void *blk_va, int blk_len, TPPI_BlkTagChange chg);

/**
 * TPPI_recv_R() - receive the contents of a region (T 3.3.3)
 * @va: where to, at a multiple of a word; may be in the segment, where tags do not matter
 *	to this call
 * @len: bytes, a multiple of a word
 */
void TPPI_recv_R(void *va, int len);

/**
 * TPPI_recv_P() - receive an address, or any other 64 bits; an extension
 *
 * Return: the address.
 */
void *TPPI_recv_P(void);

/* ---- bulk transfer (T 3.4) ---------------------------------------------- */

/**
 * typedef TPPI_ChannelHandlerPtr - handler of a transfer's end (T 3.4.1)
 * @node: node of the other end
 * @channel: the channel
 */
typedef void (*TPPI_ChannelHandlerPtr)(TPPI_NodeId node, int channel);

/* Most bytes of a transfer (T 3.4.5). */
#define TPPI_MAX_CHANNEL_BYTES	0x40000000

/**
 * TPPI_set_channel_src() - make the source of a channel (T 3.4.1)
 * @dest: node of the destination
 * @fn: called by the protocol thread when the buffer of a send may be used again; or NULL
 *
 * Return: the channel's number, of this pair of nodes in this direction, to be told to the
 * destination.
 */
int TPPI_set_channel_src(TPPI_NodeId dest, TPPI_ChannelHandlerPtr fn);

/**
 * TPPI_set_channel_dst() - make the destination of a channel (T 3.4.1)
 * @src: node of the source
 * @channel: what TPPI_set_channel_src() has returned there
 * @buffer: where to, at a multiple of a word; may be in the segment, where tags do not
 *	matter to transfers
 * @bytes: of each transfer, a multiple of a word
 * @fn: called by the protocol thread when a transfer is complete; or NULL
 *
 * Pages of the segment that the buffer is in stay mapped, and where they are, until
 * TPPI_destroy_channel_dst(): TPPI_unmap_and_free() and TPPI_remap() return 0. A transfer to
 * where no page is mapped ends the program with a message. The specification does not name
 * the result of this call.
 *
 * Return: 1; 0 if there is such a destination, or the buffer is not as it should be.
 */
int TPPI_set_channel_dst(TPPI_NodeId src, int channel, void *buffer, int bytes,
			 TPPI_ChannelHandlerPtr fn);

/**
 * TPPI_channel_send() - transfer memory to a channel's destination (T 3.4.2)
 * @dest: node of the destination
 * @channel: the channel
 * @buffer: memory, at a multiple of a word; neither to be changed nor to be unmapped until
 *	@fn of TPPI_set_channel_src() is called
 * @bytes: exactly as many as TPPI_set_channel_dst() was given
 *
 * Only when the destination has been set, and reset since the last send, of which
 * TPPI_is_channel_dst_ready() tells; otherwise the program ends with a message.
 *
 * A transfer that the destination's NIC has not accepted, because it was down, or the way there
 * broken, ends the program with a message, at the destination.
 */
void TPPI_channel_send(TPPI_NodeId dest, int channel, void *buffer, int bytes);

/**
 * TPPI_is_channel_ready() - has a transfer arrived? (T 3.4.2)
 * @src: node of the source
 * @channel: the channel
 *
 * Return: not 0 from when it is complete until TPPI_reset_channel().
 */
int TPPI_is_channel_ready(TPPI_NodeId src, int channel);

/**
 * TPPI_reset_channel() - get ready for the next transfer (T 3.4.2)
 * @src: node of the source, which is told
 * @channel: the channel
 */
void TPPI_reset_channel(TPPI_NodeId src, int channel);

/**
 * TPPI_destroy_channel_src() - remove the source of a channel (T 3.4.3)
 * @dest: node of the destination
 * @channel: the channel, all of whose transfers have arrived
 *
 * Ends the program with a message while the device itself sends one.
 */
void TPPI_destroy_channel_src(TPPI_NodeId dest, int channel);

/**
 * TPPI_destroy_channel_dst() - remove the destination of a channel (T 3.4.3)
 * @src: node of the source; the specification calls it "dest"
 * @channel: the channel, all of whose transfers have arrived
 */
void TPPI_destroy_channel_dst(TPPI_NodeId src, int channel);

#include <tempest/lost.h>

/* ---- timers (T 3.5) ----------------------------------------------------- */

/* What the ticks of timers are; an extension. */
#define TPPI_TICKS_PER_SEC	1000000

/**
 * typedef TPPI_TimerHandlerPtr - handler of a timer (T 3.5)
 * @user_ptr: as it was scheduled with
 */
typedef void (*TPPI_TimerHandlerPtr)(void *user_ptr);

/**
 * TPPI_schedule_timer() - have a handler run later (T 3.5)
 * @ticks: microseconds, from now; it does not run before
 * @fn: handler
 * @user_ptr: for it
 */
void TPPI_schedule_timer(int ticks, TPPI_TimerHandlerPtr fn, void *user_ptr);

/* ---- threads (T 3.6) ---------------------------------------------------- */

/**
 * TPPI_resume_va() - resume the threads that are suspended for a block (T 3.6)
 * @blk_va: any address within it
 * @blk_len: its bytes; TPPI_PAGE_SIZE for those that are suspended for the page
 *
 * Resumes each thread whose fault was at an address within the block, be it for the block
 * or for the page. A thread that finds its access in conflict still is suspended again.
 * The second time that an access is resumed and does not conflict, it is made, whatever
 * becomes of the tag meanwhile.
 */
void TPPI_resume_va(void *blk_va, int blk_len);

/* ---- global operations (T 2 leaves them undefined) ---------------------- */

/**
 * TPPI_barrier() - wait until all nodes call it; an extension
 *
 * One computation thread of each node does, and none in a handler. What a node has sent to
 * node 0 before, or node 0 to it, has been handled when the call returns; messages between
 * other nodes may arrive later.
 */
void TPPI_barrier(void);

#include <tempest/send.h>

#ifdef __cplusplus
}
#endif

#endif /* TEMPEST_H */
