/* SPDX-License-Identifier: MIT */
/*
 * libhamlyn, low layer: sender-managed messages between processes.
 *
 * A receiver creates an area, an NQ and a slot, and gives a ticket for the slot
 * to a sender. The sender creates a terminus and calls h_send_msg() with the
 * ticket; the bytes appear in the receiver's area and h_recv() reports them.
 *
 * Functions return 0 or a negative errno; where there is something to count, or a handle or
 * a descriptor, that instead of 0. So do those that only look and never wait (h_recv(),
 * h_send_done(), h_manager_poll()): 0 is nothing. -ENODATA is the end of a stream or channel,
 * and of nothing else. Time-outs are in nanoseconds: H_NOWAIT, 0, does not wait (-EAGAIN if it
 * had to); a negative one, H_FOREVER, waits for ever; otherwise the call fails with -ETIMEDOUT
 * when the time is over. Functions without a result cannot fail. Any thread may
 * call them at any time, except that an object must not be destroyed while
 * another thread is inside a call on it. Section numbers such as "H 2.5" refer
 * to the Hamlyn paper (OSDI 1996).
 */
#ifndef HAMLYN_H
#define HAMLYN_H

#if __SIZEOF_POINTER__ != 8
#error "libhamlyn is for 64-bit programs only: the device is shared in 64-bit words"
#endif

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include <hamlyn/uapi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers; h_version() is that of the library. */
#define H_VERSION_MAJOR		0
#define H_VERSION_MINOR		3
#define H_VERSION_PATCH		0
#define H_VERSION	(H_VERSION_MAJOR << 16 | H_VERSION_MINOR << 8 | H_VERSION_PATCH)

/* Time-outs: nanoseconds, or */
#define H_NOWAIT	0LL
#define H_FOREVER	(-1LL)

struct h_dev;
struct h_area;
struct h_slot;
struct h_nq;
struct h_terminus;
struct h_watch;

/* ---- device ------------------------------------------------------------- */

/**
 * h_open() - open a NIC
 * @name: "/dev/hamlynN": a kernel device;
 *	"shm:NAME[,OPTION...]" (size=BYTES, guesses=N, host=N, fabric=ID, join, huge;
 *	see Documentation/uapi.rst): the embedded device, a segment shared
 *	by the processes of this user that name it, created if it does not exist. NAME is
 *	1 to 64 letters, digits, '.', '_' and '-'. The process that creates the segment
 *	chooses the rest: its size in BYTES, 4M to 1024G (default 32M; suffixes K, M and G);
 *	the number N of wrong keys that a process may present per second, which is also the
 *	largest burst (default 10000; 0: no limit); huge: use huge pages, if /dev/shm is
 *	mounted to allow them. NULL: $HAMLYN_DEVICE if set, else /dev/hamlyn0, else, if
 *	that does not exist, "shm:default"
 * @dev: out: the device
 *
 * The embedded device's checks stop mistakes, not malice: everyone who can
 * open the segment can write to all of it.
 *
 * If it fails, h_explain() with no device tells the calling thread why, in words.
 *
 * Return: 0, or -ENOENT/-EACCES/-ENODEV from opening (-EACCES also if the segment's
 * file belongs to another user, or others may open it), -EINVAL if @name has none of
 * these forms, -EPERM if the NIC is in another network namespace, -ENOSPC if there is no
 * room for the segment, -ENOMEM also if the memory cgroup has less room than the segment
 * takes, -EFBIG if the segment is larger than RLIMIT_FSIZE, -EUSERS if the segment has no
 * room for another process, -EPROTO if the other side (the module, or the processes on
 * the segment) has another ABI version, -ETIMEDOUT if a process was stopped while it
 * changed the segment, -EAGAIN if others kept creating and removing the segment
 * meanwhile, -ENOMEM. Objects of the embedded device are created, changed and destroyed
 * under the same lock, so all such calls may then fail with -ETIMEDOUT.
 */
int h_open(const char *name, struct h_dev **dev);

/**
 * h_close() - close a NIC and destroy everything made through it
 * @dev: the device, or NULL: nothing
 *
 * Pointers to its areas, slots, NQs and termini are invalid afterwards. The call does
 * not wait for peers, except on the embedded device, for at most 0.2 s, if one was
 * stopped in the middle of an operation; whatever cannot be freed then is freed later, by a
 * process that opens the segment or needs the room. The devices of a process are opened
 * and closed one at a time, so the call may have to wait until another thread has created
 * a segment or closed a device.
 */
void h_close(struct h_dev *dev);

/**
 * h_dev_name() - name of an open device
 * @dev: the device
 *
 * Return: the name that was opened, valid until h_close().
 */
const char *h_dev_name(const struct h_dev *dev);

/**
 * h_dev_fd() - descriptor for poll() and epoll
 * @dev: the device
 *
 * It becomes readable when any NQ of the context has an entry.
 *
 * Return: the descriptor, owned by @dev, or -EOPNOTSUPP on the embedded device.
 */
int h_dev_fd(const struct h_dev *dev);

/**
 * h_dev_is_embedded() - tell an embedded device from a kernel device
 * @dev: the device
 *
 * Return: 1 for an embedded device, 0 for a kernel device.
 */
int h_dev_is_embedded(const struct h_dev *dev);

/**
 * struct h_fabric_id - what carries the packets of a NIC, told apart from all others
 * @bytes: random; may be passed on to other processes, as it is
 */
struct h_fabric_id {
	unsigned char bytes[HAMLYN_FABRIC_ID_BYTES];
};

/**
 * h_dev_fabric() - the fabric that a NIC is on
 * @dev: the device
 * @id: out: its id
 *
 * All NICs of one loaded module are on one fabric. The processes of one segment of the
 * embedded device are on another, which is new with each segment.
 */
void h_dev_fabric(const struct h_dev *dev, struct h_fabric_id *id);

/**
 * h_dev_reaches() - can messages go from one NIC to another, and back?
 * @dev: the device
 * @id: what h_dev_fabric() said of the other one, in any process
 *
 * If not, tickets and seeds from there are of no use here: they would name another's slots.
 *
 * Return: 1, or 0 if they are on different fabrics.
 */
int h_dev_reaches(const struct h_dev *dev, const struct h_fabric_id *id);

/**
 * h_query() - limits, properties and state of a NIC
 * @dev: the device
 * @query: out: see struct hamlyn_query; @query->size need not be set
 *
 * Asks the device: @query->state is the present one.
 *
 * Return: 0, or -ENODEV in a child of fork().
 */
int h_query(struct h_dev *dev, struct hamlyn_query *query);

/**
 * h_dev_stats() - counters of the whole NIC
 * @dev: the device
 * @stats: out: see struct hamlyn_stats
 *
 * Of its own termini, and of packets from other hosts: what became of those it got.
 *
 * For administrators: a task that guesses keys must not see which guess was rejected.
 * For the same reason root of a container reads notifications, overruns and rejects as 0
 * (kernel device).
 *
 * Return: 0, or -EPERM without CAP_NET_ADMIN (kernel device).
 */
int h_dev_stats(struct h_dev *dev, struct hamlyn_stats *stats);

/**
 * h_nic_set() - set a NIC up or down, set or feed its watchdog (H 2.8)
 * @dev: the device
 * @set: what to change: flags, state, watchdog_ms as in struct hamlyn_nic_set;
 *	@set->size need not be set
 *
 * A NIC that is down, or whose watchdog was not fed for watchdog_ms
 * milliseconds, accepts packets and discards them. Setting it down notifies every
 * watch of its slots. This affects all processes that use the NIC.
 *
 * Return: 0, -EINVAL for unknown flags or values, -EPERM without CAP_NET_ADMIN
 * (kernel device), -ETIMEDOUT as h_open().
 */
int h_nic_set(struct h_dev *dev, const struct hamlyn_nic_set *set);

/**
 * h_audit() - which packets were rejected at slots made through this device?
 * @dev: the device
 * @entries: out: array of @count entries, filled oldest first
 * @count: room in it, in entries
 * @sequence: in: number of the first entry of interest, 0 at first; out: where
 *	to continue next time
 *
 * Entries are kept only for a while; a jump in their numbers means that some
 * were overwritten. The kernel device keeps the last 32 from senders that had the key.
 * Senders without it may send as often as they like: they are divided by user into four
 * groups, and the last 8 of each group are kept, so that no flood of theirs pushes out
 * the entries of the first kind. On the embedded device all users of the segment share
 * one ring of 1024 entries, so rejects at other users' slots cause jumps as well.
 *
 * Return: number of entries written, which may be 0; or -ETIMEDOUT as h_open().
 */
int h_audit(struct h_dev *dev, struct hamlyn_audit_entry *entries,
	    uint32_t count, uint64_t *sequence);

/**
 * h_explain() - why did the last call fail?
 * @dev: the device; NULL: about this thread's last call that takes none: h_open(),
 *	h_listener_create(), h_channel_dial(), h_server_create()
 * @text: out: what was wrong and what is allowed, for people to read, with a
 *	terminating 0; "" if there is nothing to add to the errno
 * @size: bytes at @text, at least 1; a longer text is truncated.
 *	HAMLYN_EXPLAIN_BYTES are always enough
 *
 * It describes the calling thread's last call that created, changed or destroyed an object, or
 * read the audit, if that was on @dev; the text is "" if that call succeeded. What other threads
 * do meanwhile does not change it. So call it before the next such call. Each text is returned
 * once.
 *
 * Return: 0, or -EINVAL if @size is 0.
 */
int h_explain(struct h_dev *dev, char *text, size_t size);

/* ---- the library -------------------------------------------------------- */

/**
 * h_version() - which library is this?
 *
 * A program that was built with the headers of one version may run with the library of a
 * later one: see Documentation/abi.rst.
 *
 * Return: major version << 16 | minor version << 8 | patch, as H_VERSION.
 */
uint32_t h_version(void);

/**
 * enum h_log_level - how much a line of the log matters
 * @H_LOG_ERROR: the library cannot do what it has promised
 * @H_LOG_WARNING: another process breaks the rules
 * @H_LOG_INFO: a call was refused, or a client sent away, and why
 */
enum h_log_level {
	H_LOG_ERROR,
	H_LOG_WARNING,
	H_LOG_INFO,
};

/**
 * h_log_set() - be told what the library notices
 * @level: the least important lines of interest, enum h_log_level
 * @log: what to call, in any thread that is inside a call, or NULL for nothing, as at the
 *	beginning. @text is a line for people, without its end
 * @arg: its last argument
 *
 * For the whole process. The library itself never prints anything. @log may run with locks
 * of the library held, which forks and, with the embedded device, other processes wait for: it
 * must return soon, call neither fork() nor a function of the library, and wait for no thread
 * that does. Clients that are sent away cause H_LOG_INFO lines as often as they connect.
 * Another thread that is about to call the former function may still do so after this one
 * has returned.
 */
void h_log_set(int level, void (*log)(int level, const char *text, void *arg), void *arg);

/* ---- areas -------------------------------------------------------------- */

/**
 * h_area_alloc() - allocate wired memory that messages may go to or come from
 * @dev: the device
 * @length: bytes, rounded up to whole pages
 * @area: out: the area
 *
 * The memory is zeroed and page aligned. Prefer this to h_area_add(): it works on both
 * devices and does not count against RLIMIT_MEMLOCK. A child of fork() does not
 * inherit it.
 *
 * Return: 0, or -EINVAL if @length is 0, -E2BIG above max_area, -EDQUOT above
 * the limit of the NIC, of the user, or of all NICs, -ENOSPC if the embedded device's
 * segment is full, -ENOMEM.
 */
int h_area_alloc(struct h_dev *dev, size_t length, struct h_area **area);

/**
 * h_area_alloc_flags() - as h_area_alloc(), with a choice of page size
 * @dev: the device
 * @length: bytes, rounded up to whole pages
 * @flags: HAMLYN_AREA_HUGE: use huge pages, if available; or 0
 * @area: out: the area
 *
 * Huge pages save TLB misses where messages go to, and are read from, many
 * places of a large area. They are a hint that cannot fail: h_area_page_size()
 * tells which pages the area got. With them, a length of one huge page (2 MiB on x86) or
 * more is rounded up to whole huge pages. On the embedded device it depends on the
 * segment: see "huge" in h_open().
 *
 * Return: as h_area_alloc().
 */
int h_area_alloc_flags(struct h_dev *dev, size_t length, uint32_t flags,
		       struct h_area **area);

/**
 * h_area_add() - wire memory that the process already has
 * @dev: the device
 * @addr: first byte
 * @length: bytes
 * @flags: HAMLYN_AREA_READONLY: messages are only sent from it; allows memory that
 *	is mapped read-only
 * @area: out: the area
 *
 * The memory must stay mapped and must not be replaced (munmap, mremap,
 * MADV_DONTNEED, fork with later writes) while the area exists. On the
 * embedded device such an area can be sent from but not received into, and may be larger
 * than the segment: h_slot_create() refuses it with -EOPNOTSUPP.
 *
 * For memory of a file, as of memfd_create(), map it and add the mapping, or part of it: on the
 * kernel device what arrives is seen by all mappings of the file. A page that the file gives up
 * (FALLOC_FL_PUNCH_HOLE, MADV_REMOVE, ftruncate()) remains the area's, but not the file's, and
 * what arrives there afterwards is lost.
 *
 * Return: 0, or -EFAULT if it is not mapped with the rights needed, or is to be written
 * to and is mapped from a file on a disk (kernel device), -ENOMEM if RLIMIT_MEMLOCK would
 * be exceeded, -EDQUOT above the user's limit, -EINVAL, -E2BIG, -ENOSPC.
 */
int h_area_add(struct h_dev *dev, void *addr, size_t length, uint32_t flags,
	       struct h_area **area);

/**
 * h_area_remove() - unwire an area and, if it was allocated, unmap it
 * @area: the area, or NULL: nothing
 *
 * Return: 0, or -EBUSY while a slot or terminus uses it.
 */
int h_area_remove(struct h_area *area);

/**
 * h_area_addr() - where the area is in this process
 * @area: the area
 *
 * Return: address of its first byte.
 */
void *h_area_addr(const struct h_area *area);

/**
 * h_area_length() - size of an area
 * @area: the area
 *
 * Return: bytes.
 */
size_t h_area_length(const struct h_area *area);

/**
 * h_area_page_size() - what pages is an area made of?
 * @area: the area
 *
 * For an area that was added: the pages of the memory when it was wired (kernel
 * device), or as it is mapped now (embedded device). The embedded device asks the kernel
 * about the whole mapping that contains the area, which takes a while; the area counts
 * as small pages unless everything in the mapping that could be huge is.
 *
 * Return: size in bytes of the smallest page that holds any byte of it.
 */
size_t h_area_page_size(const struct h_area *area);

/* ---- notification queues ------------------------------------------------ */

/**
 * h_nq_create() - create a notification queue (H 2.6)
 * @dev: the device
 * @entries: a power of two; @entries - 1 notifications fit
 * @nq: out: the NQ
 *
 * Return: 0, or -EINVAL, -ENOMEM, -ENOSPC, -EDQUOT.
 */
int h_nq_create(struct h_dev *dev, uint32_t entries, struct h_nq **nq);

/**
 * h_nq_destroy() - destroy an NQ
 * @nq: the NQ, or NULL: nothing
 *
 * Return: 0, or -EBUSY while a slot or a watch uses it.
 */
int h_nq_destroy(struct h_nq *nq);

/**
 * h_recv_block() - wait for the next notification
 * @nq: the NQ
 * @entry: out: the notification
 * @timeout_ns: longest time to wait
 *
 * Polls for a short while before it sleeps.
 *
 * Return: 0, or -EAGAIN, -ETIMEDOUT, -EINTR, -EOVERFLOW as h_recv().
 */
int h_recv_block(struct h_nq *nq, struct hamlyn_nq_entry *entry,
		 int64_t timeout_ns);

/**
 * h_nq_lost() - notifications lost to overruns so far
 * @nq: the NQ
 *
 * Return: their number, modulo 2^32.
 */
uint32_t h_nq_lost(const struct h_nq *nq);

/* ---- slots -------------------------------------------------------------- */

/**
 * struct h_slot_attr - what a slot is made of; leave at zero what is not needed
 * @area: area that messages go to
 * @base: first byte of the message area in @area
 * @length: its bytes; 0: up to the end of @area
 * @meta_area: area of the metadata entries, or NULL
 * @meta_base: where in it entry 0 is (the entry must be 128-byte aligned)
 * @meta_count: number of metadata entries
 * @mode: enum hamlyn_slot_mode; the paranoid modes need metadata entries
 * @flags: HAMLYN_SLOT_*. HAMLYN_SLOT_TICKET_ONLY admits only senders that
 *	imported a ticket of h_slot_ticket_fd(): knowing a key is not enough
 * @reserved: 0
 * @nq: NQ for notifications, or NULL for none
 * @key: the key, with HAMLYN_SLOT_KEY_GIVEN
 */
struct h_slot_attr {
	struct h_area *area;
	uint64_t base;
	uint64_t length;
	struct h_area *meta_area;
	uint64_t meta_base;
	uint32_t meta_count;
	uint32_t mode;
	uint32_t flags;
	uint32_t reserved;
	struct h_nq *nq;
	uint64_t key;
};

/* With the size of the structure that the program knows: Documentation/abi.rst. */
int h__slot_create(struct h_dev *dev, const struct h_slot_attr *attr, size_t size,
		   struct h_slot **slot);

/**
 * h_slot_create() - create a slot (H 2.2)
 * @dev: the device
 * @attr: what it is made of; all objects must be of @dev
 * @slot: out: the slot
 *
 * Return: 0, or -EINVAL, -ERANGE if a view is outside its area, -EACCES for a
 * read-only area, -EOPNOTSUPP for an added area on the embedded device,
 * -ENOSPC, -EDQUOT, -ENOMEM. -E2BIG if @attr has something that a later version of this
 * library knows, and that is not 0.
 */
static inline int h_slot_create(struct h_dev *dev, const struct h_slot_attr *attr,
				struct h_slot **slot)
{
	return h__slot_create(dev, attr, sizeof(*attr), slot);
}

/**
 * h_slot_destroy() - destroy a slot
 * @slot: the slot, or NULL: nothing
 *
 * When it returns nothing can land through the slot any more. Watches of the
 * slot are notified. After -ETIMEDOUT (embedded device, a peer was stopped in the
 * middle of a packet) nothing new gets in, and the call must be repeated.
 *
 * Return: 0 or a negative errno.
 */
int h_slot_destroy(struct h_slot *slot);

/**
 * h_slot_rekey() - give a slot a new key
 * @slot: the slot
 *
 * When it returns, nothing can land under the old key any more: all tickets
 * given out so far are void, including those of h_slot_ticket_fd(). Watches of the
 * slot are notified that it is gone. After -ETIMEDOUT because a peer was stopped in the
 * middle of a packet (embedded device) the key has changed too, but that packet
 * may still land: the call must be repeated. If instead a peer was stopped while it
 * changed the segment, nothing has changed; h_explain() says which of the two it was.
 *
 * Return: 0 or a negative errno.
 */
int h_slot_rekey(struct h_slot *slot);

/**
 * h_slot_number() - number of a slot on its NIC
 * @slot: the slot
 *
 * Return: the number, as it appears in struct hamlyn_nq_entry.
 */
uint32_t h_slot_number(const struct h_slot *slot);

/**
 * h_slot_stats() - what went wrong at a slot
 * @slot: the slot
 * @stats: out: see struct hamlyn_stats
 *
 * Return: 0 or a negative errno.
 */
int h_slot_stats(struct h_slot *slot, struct hamlyn_stats *stats);

/* ---- tickets ------------------------------------------------------------ */

/**
 * struct h_ticket - the right to send to a place (H 3.2)
 * @host: destination host id
 * @slot: destination slot
 * @key: protection key; anyone who knows it can send
 * @base: first byte in the slot's message area that the ticket is for
 * @length: bytes from @base on; the library keeps messages inside, the NIC
 *	only keeps them inside the slot's message area
 * @meta_index: metadata entry, or HAMLYN_META_FAST for fast messages
 * @flags: 0, or set by h_terminus_import(): H_TICKET_IMPORTED | index
 *
 * A plain value that can be copied, kept and sent on, provided that its flags are 0: an
 * imported ticket means nothing outside its terminus.
 */
struct h_ticket {
	uint32_t host;
	uint32_t slot;
	uint64_t key;
	uint64_t base;
	uint64_t length;
	uint32_t meta_index;
	uint32_t flags;
};

/**
 * h_slot_ticket() - make a ticket for a slot
 * @slot: the slot
 * @base: first byte of its message area that the ticket is for
 * @length: bytes; 0: up to the end of the message area
 * @meta_index: metadata entry, 0 if the slot has none, or HAMLYN_META_FAST (not
 *	in the paranoid modes, where the ticket carries the entry's key)
 * @ticket: out: the ticket
 *
 * Return: 0, or -ERANGE if outside the message area or the metadata entries.
 */
int h_slot_ticket(const struct h_slot *slot, uint64_t base, uint64_t length,
		  uint32_t meta_index, struct h_ticket *ticket);

/**
 * h_slot_entry() - metadata entry of a slot (H 2.4)
 * @slot: the slot
 * @index: which entry
 *
 * Return: the entry, in the slot's metadata area; NULL if there is none.
 */
struct hamlyn_metadata *h_slot_entry(const struct h_slot *slot, uint32_t index);

/**
 * h_slot_entry_grant() - let a sender use an entry of a paranoid slot (H 2.7)
 * @slot: the slot, of a paranoid mode
 * @index: which entry; nobody must be using it
 * @base: first byte of the message area that the sender may write to
 * @length: bytes; 0: up to the end
 * @ticket: out: the ticket for it
 *
 * Gives the entry a key and limits of its own, zeroes its accumulator and arms
 * it. The only system call it makes is for the random key.
 *
 * Return: 0, -EINVAL if the slot is of normal mode, -ERANGE if there is no such
 * entry or the range is outside the message area.
 */
int h_slot_entry_grant(struct h_slot *slot, uint32_t index, uint64_t base,
		       uint64_t length, struct h_ticket *ticket);

/**
 * h_slot_entry_arm() - admit the next message, in paranoid one-shot mode
 * @slot: the slot
 * @index: which entry; its message was received and is no longer needed
 *
 * Return: 0, or -ERANGE if there is no such entry.
 */
int h_slot_entry_arm(struct h_slot *slot, uint32_t index);

/**
 * h_slot_entry_revoke() - take an entry of a paranoid slot back from its sender
 * @slot: the slot
 * @index: which entry
 *
 * Packets that arrive from now on are rejected; one that is landing at this
 * moment still lands. Where that matters, call h_slot_rekey(): it waits for such a packet
 * too and does not disturb other senders, whose entries keep their keys.
 *
 * Return: 0, or -ERANGE if there is no such entry.
 */
int h_slot_entry_revoke(struct h_slot *slot, uint32_t index);

/**
 * h_slot_ticket_fd() - make a ticket that is a file descriptor (H 6.5)
 * @slot: the slot
 * @base: first byte of its message area that the ticket is for
 * @length: bytes; 0: up to the end of the message area
 * @fd: out: the descriptor, close-on-exec, owned by the caller
 *
 * Pass it with SCM_RIGHTS; the process that receives it calls h_terminus_import(). No
 * process ever sees a key, so none can guess, copy or leak one, and the NIC keeps
 * messages inside the range. h_slot_rekey() makes it void.
 *
 * On the embedded device the descriptor is a sealed memory file that holds a
 * key: like everything on that device it stops mistakes, not malice.
 *
 * Return: 0, -ERANGE if outside the message area, -EMFILE or -ENFILE if there
 * is no free descriptor, -ENOMEM.
 */
int h_slot_ticket_fd(struct h_slot *slot, uint64_t base, uint64_t length,
		     int *fd);

#define H_TICKET_BYTES	48	/* a ticket in its exported form */

/**
 * h_ticket_export() - turn a ticket into bytes that can travel anywhere
 * @ticket: the ticket
 * @bytes: out: H_TICKET_BYTES bytes, the same on every machine
 *
 * The bytes of an imported ticket (H_TICKET_IMPORTED) open nothing: pass its
 * descriptor on instead.
 */
void h_ticket_export(const struct h_ticket *ticket, void *bytes);

/**
 * h_ticket_import() - turn bytes into a ticket
 * @bytes: what h_ticket_export() wrote
 * @length: how many bytes there are
 * @ticket: out: the ticket; its flags are 0
 *
 * Return: 0, or -EINVAL if these bytes are not a ticket, -EPROTO if they are a ticket
 * of another version.
 */
int h_ticket_import(const void *bytes, size_t length, struct h_ticket *ticket);

/* ---- termini ------------------------------------------------------------ */

#define H_TERMINUS_SINGLE	(1U << 0)	/* one thread at a time in its calls */

/**
 * struct h_terminus_attr - properties of a terminus; zero means default
 * @entries: work queue entries, a power of two (default 64)
 * @entry_size: bytes of an entry, a power of two, at least 128 (default 512);
 *	payloads up to @entry_size - 64, or 64 less with metadata, travel by
 *	direct I/O, from any memory
 * @flags: H_TERMINUS_*
 * @priority: enum hamlyn_priority: strict, the lower waits for the higher
 * @weight: share among the termini of its priority, in bytes, 1 to
 *	HAMLYN_MAX_WEIGHT; 0: 1
 *
 * Priority and weight decide which terminus the NIC's engine serves next. They have no
 * effect on the embedded device, which has no engine: each sender does the work itself.
 */
struct h_terminus_attr {
	uint32_t entries;
	uint32_t entry_size;
	uint32_t flags;
	uint32_t priority;
	uint32_t weight;
};

int h__terminus_create(struct h_dev *dev, const struct h_terminus_attr *attr, size_t size,
		       struct h_terminus **terminus);

/**
 * h_terminus_create() - create a send terminus (H 2.3)
 * @dev: the device
 * @attr: properties, or NULL
 * @terminus: out: the terminus
 *
 * Return: 0, or -EINVAL, -ENOMEM, -ENOSPC, -EDQUOT, -EPERM for
 * HAMLYN_PRIORITY_HIGH or a weight above 1 without CAP_NET_ADMIN (kernel device). -E2BIG as
 * h_slot_create().
 */
static inline int h_terminus_create(struct h_dev *dev, const struct h_terminus_attr *attr,
				    struct h_terminus **terminus)
{
	return h__terminus_create(dev, attr, sizeof(*attr), terminus);
}

/**
 * h_terminus_destroy() - destroy a terminus
 * @terminus: the terminus, or NULL: nothing
 *
 * Messages not yet sent are dropped: call h_send_wait() for the last one first.
 *
 * Return: 0 or a negative errno.
 */
int h_terminus_destroy(struct h_terminus *terminus);

/**
 * h_terminus_bind() - let a terminus send from an area
 * @terminus: the terminus
 * @tag: send buffer tag, 0 to h_query()'s max_tags - 1
 * @area: the area, or NULL to unbind the tag
 * @base: first byte of the send buffer area in @area
 * @length: its bytes; 0: up to the end of @area
 *
 * Must not be called while another thread sends from the tag, or while messages from it
 * are under way. Threads may send from other tags meanwhile. The tables of tags are as long
 * as the highest one that was ever bound needs: use low ones.
 *
 * Return: 0, or -EINVAL, -ERANGE; if the tables would have to grow, -ENOMEM, or -EDQUOT where
 * the user has no room for that (kernel device): then nothing has changed.
 */
int h_terminus_bind(struct h_terminus *terminus, uint32_t tag,
		    struct h_area *area, uint64_t base, uint64_t length);

#define H_TICKET_IMPORTED	(1U << 31)	/* in h_ticket.flags, with the index */

/**
 * h_terminus_import() - use a ticket that came as a descriptor (H 6.5)
 * @terminus: the terminus
 * @fd: descriptor of h_slot_ticket_fd(), from any process; it remains the caller's
 *	and may be closed afterwards
 * @ticket: out: ticket for all send calls, of this terminus only. Host, slot,
 *	base and length are filled in; the key is 0, for the real one stays the NIC's secret.
 *
 * The caller may set @ticket->meta_index to the metadata entry that the receiver
 * named, or to HAMLYN_META_FAST; for an entry of a paranoid slot also @ticket->key.
 *
 * Return: 0, -EBADF if @fd is no descriptor of a ticket, or of another segment
 * (embedded device), -ENOKEY if the slot was destroyed or rekeyed since, -EXDEV if it is
 * on another host, where descriptors do not reach, -ENOSPC if the
 * terminus has HAMLYN_MAX_TICKETS already, -ENOMEM.
 */
int h_terminus_import(struct h_terminus *terminus, int fd,
		      struct h_ticket *ticket);

/**
 * h_terminus_drop() - forget an imported ticket
 * @terminus: the terminus that imported it
 * @ticket: the ticket
 *
 * Messages under it that were not sent yet end with -ENOKEY. Its index may be
 * reused for another ticket: do not use @ticket, or copies of it, again.
 *
 * Return: 0, -EINVAL if @ticket was not imported, -ENOKEY if the terminus has
 * none of that index.
 */
int h_terminus_drop(struct h_terminus *terminus, const struct h_ticket *ticket);

/**
 * h_terminus_stats() - counters of a terminus
 * @terminus: the terminus
 * @stats: out: see struct hamlyn_stats
 *
 * Return: 0 or a negative errno.
 */
int h_terminus_stats(struct h_terminus *terminus, struct hamlyn_stats *stats);

/**
 * h_send_wait() - wait until a message has left
 * @terminus: the terminus
 * @handle: what the send call returned
 * @timeout_ns: longest time to wait
 *
 * Return: 0 when it has left, or -EAGAIN, -ETIMEDOUT; or the negative errno with which the NIC
 * refused it, as h_send_done().
 */
int h_send_wait(struct h_terminus *terminus, int64_t handle,
		int64_t timeout_ns);

/**
 * struct h_msg - everything a message can have; leave at zero what is not needed
 * @ticket: where to
 * @offset: first byte, counted from the ticket's base
 * @data: payload; must be in bound areas if it is longer than direct I/O carries
 * @length: its bytes
 * @iov: payload in pieces, instead of @data and @length
 * @iovcnt: number of pieces, at most HAMLYN_MAX_FRAGMENTS
 * @meta: user metadata, or NULL
 * @meta_length: its bytes, at most HAMLYN_MAX_METADATA
 * @delta: packet counter's initial value (H 2.5): 0, or a share in a group: the
 *	shares add up to 2^32, and each is at least the number of its packets (otherwise
 *	the sum may pass 0 before the end)
 * @word: fast mode word (the ticket's meta_index is HAMLYN_META_FAST)
 * @flags: HAMLYN_TRB_NO_NOTIFY, HAMLYN_TRB_QUIET: the notification wakes no
 *	sleeping receiver, which sees it with the next one, or by polling
 */
struct h_msg {
	const struct h_ticket *ticket;
	uint64_t offset;
	const void *data;
	size_t length;
	const struct iovec *iov;
	int iovcnt;
	uint32_t delta;
	const void *meta;
	size_t meta_length;
	uint64_t word;
	uint32_t flags;
};

/**
 * h_send() - send a message, general form
 * @terminus: the terminus
 * @msg: the message
 *
 * As h_send_msg(), with gathered payloads, groups, fast words and offsets as well.
 *
 * Return: as h_send_msg().
 */
int64_t h_send(struct h_terminus *terminus, const struct h_msg *msg);

/* ---- watches ------------------------------------------------------------ */

/* In C++ the function hides the constructor of a structure that has none but that of C. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

/**
 * h_watch() - be notified when a slot is gone (H 6.3)
 * @dev: the device
 * @ticket: a ticket that opens the slot; an entry's ticket in the paranoid modes
 * @nq: NQ to notify, of @dev; it cannot be destroyed before the watch
 * @cookie: any value, to identify the watch by
 * @watch: out: the watch
 *
 * h_recv() returns exactly one notification with HAMLYN_NQE_PEER_GONE, like
 * any other: @cookie in data, slot and source of the slot, HAMLYN_NONE in index.
 * It comes when the slot is rekeyed or destroyed, however its owner ended,
 * or when its NIC is set down; later, if @nq was full then. If the ticket
 * does not open the slot it comes at once, and the call counts as a rejected
 * packet does.
 *
 * On the embedded device the receiver of the notification itself finds out that an owner
 * was killed: within about 0.1 s if it sleeps in h_recv_block(), or after it has polled in
 * vain for a while.
 *
 * Return: 0, -EOPNOTSUPP for an imported ticket (see h_watch_fd()), -EINVAL, -ENOMEM,
 * -ENOSPC, -EDQUOT if this user has its share of watches, or of those on another host,
 * -EAGAIN while this user (kernel device) or process (embedded device) has
 * presented too many wrong keys: try again, by default one more is allowed every 100 us.
 * The return value does not reveal whether the ticket opens the slot.
 */
int h_watch(struct h_dev *dev, const struct h_ticket *ticket, struct h_nq *nq,
	    uint64_t cookie, struct h_watch **watch);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/**
 * h_watch_fd() - be notified when the slot of a ticket that is a descriptor is gone
 * @dev: the device
 * @fd: descriptor of h_slot_ticket_fd(), from any process; it remains the caller's
 *	and may be closed afterwards
 * @nq: as for h_watch()
 * @cookie: as for h_watch()
 * @watch: out: the watch
 *
 * The only way to watch slots with HAMLYN_SLOT_TICKET_ONLY.
 *
 * Return: as h_watch(), but never -EAGAIN, since a ticket is no guess; and -EBADF if @fd
 * is no descriptor of a ticket.
 */
int h_watch_fd(struct h_dev *dev, int fd, struct h_nq *nq, uint64_t cookie,
	       struct h_watch **watch);

/**
 * h_unwatch() - end a watch
 * @watch: the watch, which may have notified already, or NULL: nothing
 *
 * Afterwards nothing is appended to its NQ. If the notification is there but
 * was not taken yet, it may still come (kernel device) or not (embedded device).
 *
 * Return: 0, or -ETIMEDOUT as h_open(): then the watch still exists.
 */
int h_unwatch(struct h_watch *watch);

/* ---- the rest is the fast path ------------------------------------------ */

/* private: the structures below are visible for the inline functions only. */

#define h__read_once(p)		__atomic_load_n(p, __ATOMIC_RELAXED)
#define h__write_once(p, v)	__atomic_store_n(p, v, __ATOMIC_RELAXED)
#define h__load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define h__store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define h__full_barrier()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define h__likely(x)		__builtin_expect(!!(x), 1)
#define h__unlikely(x)		__builtin_expect(!!(x), 0)

/* Count a word down; 1 once it is no longer above 0. Need not be exact. */
static inline int h__count_down(uint32_t *p)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	int done;

	__asm__ volatile("subl $1, %0" : "+m" (*p), "=@ccle" (done));
	return done;
#else
	uint32_t n = h__read_once(p) - 1;

	h__write_once(p, n);
	return (int32_t)n <= 0;
#endif
}

struct h_nq {
	struct hamlyn_nq_control *control;
	const struct hamlyn_nq_entry *entries;
	uint32_t mask;
	uint32_t patience;	/* empty polls until the next look at h__nq_idle() */
	const struct hamlyn_nq_ring *ring;
	struct h_dev *dev;
	void *priv;
	struct h_nq *next;
	struct h_nq *prev;
	uint32_t id;
	uint32_t users;		/* slots and watches; the device's lock */
	uint32_t watches;	/* how many of the users are watches */
	uint32_t looked;	/* when h__nq_idle() was last called, ms */
	uint32_t polls;		/* how many empty ones take some ms */
	uint32_t told;		/* h_nq_lost() when an overrun was last reported */
	void *hole;		/* embedded device only; the device's lock */
};

/* The first cache line holds what a send needs. */
struct h_terminus {
	struct hamlyn_terminus_status *status;
	unsigned char *entries;
	struct hamlyn_wq_control *wq;
	void *priv;		/* embedded device only */
	uint32_t mask;
	uint32_t entry_shift;
	uint32_t inline_max;
	uint32_t flags;
	uint32_t lock;
	uint32_t producer;
	uint32_t completed;	/* last value seen */
	int fd;
	uint32_t id;
	uint32_t corked;
	struct h_dev *dev;
	struct h_terminus *next;
	struct h_terminus *prev;
} __attribute__((aligned(64)));

int h__nq_idle(struct h_nq *nq);
int h__nq_odd(struct h_nq *nq, struct hamlyn_nq_entry *entry);
int64_t h__send_slow(struct h_terminus *terminus, const struct h_ticket *ticket,
		     const void *data, size_t length, const void *meta,
		     size_t meta_length);
int64_t h__send_word_slow(struct h_terminus *terminus,
			  const struct h_ticket *ticket, uint64_t word);
/* Embedded device only. */
int64_t h__send_short(struct h_terminus *terminus,
		      const struct h_ticket *ticket, const void *data,
		      size_t length);
int64_t h__send_word(struct h_terminus *terminus,
		     const struct h_ticket *ticket, uint64_t word);
int h__terminus_lock_wait(struct h_terminus *terminus);
int h__terminus_kick(struct h_terminus *terminus);
int h__terminus_refresh(struct h_terminus *terminus);

/* 0: another thread holds the lock and makes no progress. */
static inline int h__terminus_lock(struct h_terminus *t)
{
	if (t->flags & H_TERMINUS_SINGLE)
		return 1;
	return h__likely(!__atomic_exchange_n(&t->lock, 1, __ATOMIC_ACQUIRE)) ||
	       h__terminus_lock_wait(t);
}

static inline void h__terminus_unlock(struct h_terminus *t)
{
	if (!(t->flags & H_TERMINUS_SINGLE))
		h__store_release(&t->lock, 0);
}

/* Entry for the next TRB, or NULL if the queue is full. Terminus locked. */
static inline struct hamlyn_trb *h__terminus_entry(struct h_terminus *t)
{
	if (h__unlikely(t->producer - t->completed > t->mask) &&
	    !h__terminus_refresh(t))
		return NULL;
	return (struct hamlyn_trb *)(void *)
		(t->entries +
		 ((size_t)(t->producer & t->mask) << t->entry_shift));
}

/*
 * Publish the entry just filled (B1) and ring the doorbell if nobody polls (B2).
 * Unlocks the terminus and returns the message's handle.
 */
static inline int64_t h__terminus_post(struct h_terminus *t,
				       struct hamlyn_trb *trb)
{
	uint32_t handle = t->producer;
	uint32_t asleep;

	h__write_once(&t->producer, handle + 1);
	h__write_once(&t->wq->producer, handle + 1);
	if (h__unlikely(t->corked)) {
		h__store_release(&trb->sequence, handle + 1);	/* B1 */
		h__terminus_unlock(t);
		return handle;
	}
#if defined(__x86_64__)
	/* The exchange is both. */
	(void)__atomic_exchange_n(&trb->sequence, handle + 1,	/* B1, B2 */
				  __ATOMIC_SEQ_CST);
#else
	h__store_release(&trb->sequence, handle + 1);		/* B1 */
	h__full_barrier();					/* B2 */
#endif
	asleep = h__read_once(&t->status->need_kick);
	h__terminus_unlock(t);
	if (h__unlikely(asleep))
		h__terminus_kick(t);
	return handle;
}

/* A request without anything special, in memory that the NIC reads. */
static inline void h__trb_fill(struct hamlyn_trb *trb,
			       const struct h_ticket *ticket, uint64_t length)
{
	trb->host = ticket->host;
	trb->slot = ticket->slot;
	trb->key = ticket->key;
	trb->offset = ticket->base;
	trb->length = length;
	trb->delta = 0;
	trb->meta_index = ticket->meta_index;
	trb->word = 0;
	trb->meta_length = 0;
	trb->fragments = 0;
	trb->flags = 0;
	trb->ticket = 0;
}

/**
 * h_send_msg() - send a message (H 3.2)
 * @t: the terminus
 * @ticket: where to; the message begins at the ticket's base
 * @data: payload
 * @length: its bytes
 * @meta: user metadata, or NULL
 * @meta_length: its bytes, at most HAMLYN_MAX_METADATA
 *
 * A payload that fits the work queue entry is copied by the call (direct I/O)
 * and may come from any memory. The NIC fetches a longer one later: it
 * must lie in areas bound to the terminus, and stay unchanged until
 * h_send_done() says so. While no engine polls, the call does the NIC's work
 * itself; if there is no engine at all (engine_mode inline), the call of a sender that is
 * held back because it guesses keys also waits out that pause.
 *
 * Return: a handle for h_send_done(), not negative; or -EAGAIN if the work
 * queue is full, if another thread inside a send through @t makes no progress for some
 * milliseconds or, on the embedded device, if the terminus is held back because it
 * guessed keys; -ERANGE if the ticket does not cover @length, -EMSGSIZE if
 * @meta_length is too long, or the message does not fit an entry or a fast one a packet,
 * -EFAULT if @data is in no bound area, -EINVAL for flags, words, deltas or metadata
 * that do not go with the ticket.
 */
static inline int64_t h_send_msg(struct h_terminus *t,
				 const struct h_ticket *ticket,
				 const void *data, size_t length,
				 const void *meta, size_t meta_length)
{
	struct hamlyn_trb *trb;

	if (h__unlikely(length > t->inline_max || !length || meta_length ||
			length > ticket->length || ticket->flags ||
			ticket->meta_index == HAMLYN_META_FAST))
		return h__send_slow(t, ticket, data, length, meta, meta_length);
	if (t->priv)
		return h__send_short(t, ticket, data, length);
	if (h__unlikely(!h__terminus_lock(t)))
		return -EAGAIN;
	trb = h__terminus_entry(t);
	if (h__unlikely(!trb)) {
		h__terminus_unlock(t);
		return -EAGAIN;
	}
	h__trb_fill(trb, ticket, length);
	memcpy(trb + 1, data, length);
	return h__terminus_post(t, trb);
}

/**
 * h_send_word() - send a word that travels in the NQ entry (fast mode)
 * @t: the terminus
 * @ticket: where to; its meta_index is HAMLYN_META_FAST
 * @word: the word, for entry->data of h_recv(); nothing goes to the message area
 *
 * Return: as h_send_msg(); -EINVAL if the ticket is not for fast mode.
 */
static inline int64_t h_send_word(struct h_terminus *t,
				  const struct h_ticket *ticket, uint64_t word)
{
	struct hamlyn_trb *trb;

	if (h__unlikely(ticket->flags ||
			ticket->meta_index != HAMLYN_META_FAST))
		return h__send_word_slow(t, ticket, word);
	if (t->priv)
		return h__send_word(t, ticket, word);
	if (h__unlikely(!h__terminus_lock(t)))
		return -EAGAIN;
	trb = h__terminus_entry(t);
	if (h__unlikely(!trb)) {
		h__terminus_unlock(t);
		return -EAGAIN;
	}
	h__trb_fill(trb, ticket, 0);
	trb->word = word;
	trb->flags = HAMLYN_TRB_FAST;
	return h__terminus_post(t, trb);
}

/**
 * h_cork() - send several messages with one doorbell
 * @t: the terminus
 *
 * Until h_uncork(), nothing that is sent through the terminus rings the doorbell, except
 * when the work queue is full. An engine that is awake takes the messages nevertheless.
 * Use it from one thread, while no other thread sends through the terminus. It has no
 * effect on the embedded device, which has no doorbell.
 */
static inline void h_cork(struct h_terminus *t)
{
	t->corked = 1;
}

/**
 * h_uncork() - end of h_cork(): ring the doorbell, once, if nobody polls
 * @t: the terminus
 *
 * Return: 0, or the negative errno of the doorbell.
 */
static inline int h_uncork(struct h_terminus *t)
{
	t->corked = 0;
	if (t->priv)
		return 0;
	h__full_barrier();					/* B2 */
	return h__unlikely(h__read_once(&t->status->need_kick)) ?
		h__terminus_kick(t) : 0;
}

/**
 * h_send_done() - may this buffer be reused? (H 2.3, H 6.2)
 * @t: the terminus
 * @handle: what the send call returned
 *
 * Return: 1 if the message has left and its buffers may be reused, 0 if not
 * yet; or the negative errno with which the NIC refused the message: -EINVAL,
 * -ENXIO, -ERANGE, -ENOKEY, -EHOSTUNREACH, -ECANCELED, -EIO (reported until @entries more
 * were sent).
 * A message that has left was not necessarily accepted by the receiver's NIC.
 */
static inline int h_send_done(struct h_terminus *t, int64_t handle)
{
	uint32_t h = (uint32_t)handle;
	uint32_t completed = h__load_acquire(&t->status->completed); /* B6 */
	const int32_t *status = (const int32_t *)(const void *)(t->status + 1);

	int32_t result;

	if ((int32_t)(completed - h) <= 0) {
		/*
		 * Or it left so long ago that the counter has wrapped: the thread
		 * that reused its entry had seen it complete.
		 */
		if (h__load_acquire(&t->producer) - h <= t->mask + 1)
			return 0;
		(void)h__load_acquire(&t->status->completed);	/* B6 */
	}
	if (h__likely(!h__read_once(&t->status->failed)))
		return 1;
	/* B6. If the entry has been reused, the status may be that of its new message. */
	result = h__load_acquire(&status[h & t->mask]);
	if (h__read_once(&t->producer) - h > t->mask + 1)
		return 1;
	return result ? result : 1;
}

/**
 * h_recv() - take the next notification, if there is one (H 3.2)
 * @nq: the NQ
 * @entry: out: the notification; the message it reports is in memory
 *
 * Return: 1 with a notification in @entry, 0 if there is none, or -EOVERFLOW:
 * at this point of the sequence notifications were lost because the NQ was
 * full (h_nq_lost() counts them; their data is in memory all the same).
 * With HAMLYN_NQE_PEER_GONE in @entry->flags it is not a message: see h_watch().
 */
static inline int h_recv(struct h_nq *nq, struct hamlyn_nq_entry *entry)
{
	uint32_t pos = h__read_once(&nq->control->consumer);
	const struct hamlyn_nq_entry *e = &nq->entries[pos & nq->mask];

	if (h__load_acquire(&e->sequence) != pos + 1)		/* B3 */
		return h__unlikely(h__count_down(&nq->patience)) ?
			h__nq_idle(nq) : 0;
	entry->data = h__read_once(&e->data);
	entry->slot = h__read_once(&e->slot);
	entry->index = h__read_once(&e->index);
	entry->source = h__read_once(&e->source);
	entry->length = h__read_once(&e->length);
	entry->flags = h__read_once(&e->flags);
	entry->sequence = pos + 1;
	/*
	 * B4. While the entry was copied another thread may have taken it and the
	 * NIC may have refilled it: then the exchange fails and the copy, torn or
	 * not, is not used.
	 */
	if (!__atomic_compare_exchange_n(&nq->control->consumer, &pos, pos + 1,
					 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return 0;
	if (h__unlikely(entry->flags & (HAMLYN_NQE_OVERRUN | HAMLYN_NQE_VOID |
					HAMLYN_NQE_PEER_GONE)))
		return h__nq_odd(nq, entry);
	return 1;
}

#ifdef __cplusplus
}
#endif

#endif /* HAMLYN_H */
