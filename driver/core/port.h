/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the NIC core needs from its home, the environment it runs in.
 *
 * The core includes nothing but this file and its own headers. The home (the
 * kernel module, the library's embedded device, a unit test) provides
 *
 *  - the types bool u8 u16 u32 u64 s32, U64_MAX, memcpy(), memset()
 *    and memcmp();
 *  - READ_ONCE() WRITE_ONCE() smp_load_acquire() smp_store_release() smp_mb()
 *    hml_barrier() (compiler only)
 *    likely() unlikely() noinline __always_inline with the kernel's meaning;
 *  - hml_whole, noinline or __always_inline: are the few registers of the fast path
 *    worth less here than a call for each message of a stream?
 *  - hml_prefetch(p) and hml_prefetchw(p), hints that a cache line will be read
 *    or written soon, and
 *    hml_store_release_mb(p, v), smp_store_release() followed by smp_mb();
 *  - hml_atomic_cmpxchg(p, old, new), hml_atomic_add_return(p, v) on plain u32
 *    words, fully ordered; hml_atomic_cmpxchg64(p, old, new) and
 *    hml_atomic_inc64(p) on u64 words, which need not order anything;
 *  - hml_index_nospec(i, n), which clamps an index already checked to be less than
 *    n so that it is less than n under speculation, too;
 *  - hml_mem_t, a handle of wired memory; hml_mem_write(), hml_mem_copy()
 *    and hml_mem_at(), which turn <handle, offset> into accesses. HML_PORT_UNREADABLE is 1
 *    in a home that outlives memory that has gone bad: then hml_mem_copy() returns false
 *    if it could not read all;
 *  - hml_nq_t, a reference to an NQ that a slot can hold, HML_NQ_NONE,
 *    and hml_nq_deref();
 *  - how NQ entries are taken and published, if it has a way of its own (HML_PORT_NQ):
 *    hml_port_taker(sender) is as whom, or HML_TAKER_NONE;
 *    hml_port_nq_cursor(nq, taker) where the next entry goes, an acquire;
 *    hml_port_nq_take(nq, taker, cursor) takes that one if nobody else has;
 *    hml_port_nq_publish(taker, p, sequence) is hml_store_release_mb(), or what whoever arms
 *    an NQ makes as good; hml_port_nq_seen(nq) is the cursor for whoever takes nothing. In
 *    all other homes everybody takes them by hml_atomic_cmpxchg();
 *  - hml_ref_t, a reference to ring memory, and hml_ref_deref();
 *  - struct hml_port, the home's part of a NIC; hml_port_slot() finds the
 *    slot with a given number or NULL;
 *  - hml_path_t, a way through the fabric, into which the core does not look;
 *    hml_port_route(nic, host) finds one, or HML_PATH_NONE if there is no such host;
 *  - hml_port_direct(from, path): does the path end in a NIC of this home, with both
 *    NICs up and nothing in between? One look at each NIC. If so,
 *    hml_port_carry(from, path, header, payload, sender) calls hml_rx() for that NIC;
 *  - hml_port_xmit(from, path, header, payload, sender), for all other paths: the fabric
 *    takes the packet, which ends in hml_rx() or hml_tx_local() of the other NIC, exactly
 *    once if the fabric is lossless, or it returns false: not now, try again later. Either
 *    way it is done with header and payload when it returns. HML_PORT_STALLS is 0 in a home
 *    whose fabric never says that;
 *  - hml_port_now_ns(port), a clock that never goes back;
 *  - hml_port_rejected(nic, slot, header, reason, sender), called for every
 *    packet that a NIC discards while it is up, with the slot if there is one;
 *  - hml_port_knew(nic, header, sender), called for packets with a wrong key: has
 *    the sender's user proved, by watching the slot (H 6.3), that the key was right?
 *  - a section around hml_tx_run() and hml_rx(), which the home implements: an
 *    unlinked slot is not freed, and a replaced key may still be in use, until
 *    all that are in such a section have left it;
 *  - hml_port_notify_enter() and hml_port_notify_exit() around taking an NQ entry
 *    and filling it: a thread between them keeps its processor, because everybody's
 *    later entries wait for that one;
 *  - hml_port_nq_wake(port, nq), called when nq->armed was seen set, possibly by
 *    several appenders: the one that clears it by an atomic exchange wakes the sleeper;
 *  - hml_port_traces_notify(): is anybody tracing notifications? If so,
 *    hml_port_trace_notify(nic, nq, entry, position, lost) is called for each. Both
 *    must cost nothing while nobody traces;
 *  - hml_port_traces_packets(): is anybody tracing packets? Then hml_port_carry() is told of
 *    each;
 *  - hml_port_trace_down(nic, header, sender), likewise, called for packets that do
 *    not leave because a NIC is down or gone.
 *
 * Offsets given to hml_mem_*() have been checked against a view of the
 * memory; the home need not check them again.
 */
#ifndef HML_CORE_PORT_H
#define HML_CORE_PORT_H

#ifdef __KERNEL__
#include "../port_linux.h"
#else
#include "port_user.h"
#endif

#endif /* HML_CORE_PORT_H */
