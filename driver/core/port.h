/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the NIC core needs of the place it runs in.
 *
 * The core includes nothing but this file and its own headers. A home (the
 * kernel module, the library's embedded device, a unit test) provides
 *
 *  - the types bool u8 u16 u32 u64 s32, U64_MAX, memcpy() and memset();
 *  - READ_ONCE() WRITE_ONCE() smp_load_acquire() smp_store_release() smp_mb()
 *    hml_barrier() (compiler only)
 *    likely() unlikely() noinline __always_inline with the kernel's meaning;
 *  - hml_prefetch(p) and hml_prefetchw(p), hints that a line will be read or
 *    written soon, and
 *    hml_store_release_mb(p, v), smp_store_release() with smp_mb() behind it;
 *  - hml_atomic_cmpxchg(p, old, new), hml_atomic_add_return(p, v) on plain u32
 *    words, fully ordered; hml_atomic_cmpxchg64(p, old, new) and
 *    hml_atomic_inc64(p) on u64 words, which need not be ordered at all;
 *  - hml_index_nospec(i, n), an index that was found to be less than n, also
 *    under speculation;
 *  - hml_mem_t, a handle of wired memory; hml_mem_write(), hml_mem_copy()
 *    and hml_mem_at(), which turn <handle, offset> into accesses;
 *  - hml_nq_t, a reference to an NQ that can stand in a slot, HML_NQ_NONE,
 *    and hml_nq_deref();
 *  - hml_ref_t, a reference to ring memory, and hml_ref_deref();
 *  - struct hml_port, the home's part of a NIC; hml_port_slot() finds the
 *    slot of a number or NULL, hml_port_route() the NIC of a host or NULL;
 *  - hml_port_xmit(from, to, header, payload, sender), which carries a packet
 *    over the fabric: it ends in hml_rx() of the other NIC, if the fabric is
 *    lossless exactly once. It is done with header and payload when it returns;
 *  - hml_port_now_ns(port), a clock that never goes back;
 *  - hml_port_rejected(nic, slot, header, reason, sender), called for every
 *    packet that a NIC which is up discards, with the slot if there is one;
 *  - hml_port_knew(nic, header, sender), called for packets that have a wrong key:
 *    did the sender's user show that it was right, by watching the slot (H 6.3)?
 *  - a section around hml_tx_run() and hml_rx(), the home's business: a slot
 *    that was unlinked is not freed, and a key that was replaced is still in
 *    use, until all that are in such a section have left it;
 *  - hml_port_notify_enter() and hml_port_notify_exit() around taking an NQ
 *    entry and filling it: whoever is between them keeps its processor, because
 *    everybody's later entries wait behind that one;
 *  - hml_port_nq_wake(port, nq), called when nq->armed was seen set, by several
 *    appenders perhaps: who clears it by an atomic exchange wakes the sleeper;
 *  - hml_port_traces_notify(): does somebody want to be told of notifications,
 *    in order to debug? Then hml_port_trace_notify(nic, nq, entry, position,
 *    lost) is called for each. They must cost nothing while nobody does;
 *  - hml_port_trace_down(nic, header, sender), for the same, called for packets
 *    that do not leave because a NIC is down or gone.
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
