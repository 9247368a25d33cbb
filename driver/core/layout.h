/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Size of every structure and offset of every member in linux/hamlyn.h.
 *
 * Expand it with two macros that each make a whole statement; in the driver
 *
 *	#define SIZE(s, n)	BUILD_BUG_ON(sizeof(struct s) != (n));
 *	#define OFFSET(s, m, n)	BUILD_BUG_ON(offsetof(struct s, m) != (n));
 *	HML_LAYOUT(SIZE, OFFSET)
 *
 * and likewise with _Static_assert() in the library and the unit tests. The
 * file that uses it includes linux/hamlyn.h and a header that declares
 * offsetof(). Members are listed in the order of their structure, from which the
 * unit test derives that no byte is left out.
 */
#ifndef HML_CORE_LAYOUT_H
#define HML_CORE_LAYOUT_H

/* ioctl arguments */
#define HML_LAYOUT_IOCTL(SIZE, OFFSET) \
	SIZE(hamlyn_query, 96) \
	OFFSET(hamlyn_query, size, 0) \
	OFFSET(hamlyn_query, abi_version, 4) \
	OFFSET(hamlyn_query, host, 8) \
	OFFSET(hamlyn_query, engine_mode, 12) \
	OFFSET(hamlyn_query, packet_size, 16) \
	OFFSET(hamlyn_query, max_slots, 20) \
	OFFSET(hamlyn_query, max_nq_entries, 24) \
	OFFSET(hamlyn_query, max_wq_entries, 28) \
	OFFSET(hamlyn_query, max_entry_size, 32) \
	OFFSET(hamlyn_query, fabric, 36) \
	OFFSET(hamlyn_query, max_area, 40) \
	OFFSET(hamlyn_query, max_message, 48) \
	OFFSET(hamlyn_query, state, 56) \
	OFFSET(hamlyn_query, engines, 60) \
	OFFSET(hamlyn_query, max_tags, 64) \
	OFFSET(hamlyn_query, max_tickets, 68) \
	OFFSET(hamlyn_query, doorbells, 72) \
	OFFSET(hamlyn_query, reserved, 76) \
	OFFSET(hamlyn_query, fabric_id, 80) \
	SIZE(hamlyn_area_add, 40) \
	OFFSET(hamlyn_area_add, size, 0) \
	OFFSET(hamlyn_area_add, flags, 4) \
	OFFSET(hamlyn_area_add, addr, 8) \
	OFFSET(hamlyn_area_add, length, 16) \
	OFFSET(hamlyn_area_add, area, 24) \
	OFFSET(hamlyn_area_add, reserved, 28) \
	OFFSET(hamlyn_area_add, page_size, 32) \
	SIZE(hamlyn_area_alloc, 40) \
	OFFSET(hamlyn_area_alloc, size, 0) \
	OFFSET(hamlyn_area_alloc, flags, 4) \
	OFFSET(hamlyn_area_alloc, length, 8) \
	OFFSET(hamlyn_area_alloc, mmap_offset, 16) \
	OFFSET(hamlyn_area_alloc, area, 24) \
	OFFSET(hamlyn_area_alloc, reserved, 28) \
	OFFSET(hamlyn_area_alloc, page_size, 32) \
	SIZE(hamlyn_id, 8) \
	OFFSET(hamlyn_id, size, 0) \
	OFFSET(hamlyn_id, id, 4) \
	SIZE(hamlyn_nq_create, 48) \
	OFFSET(hamlyn_nq_create, size, 0) \
	OFFSET(hamlyn_nq_create, entries, 4) \
	OFFSET(hamlyn_nq_create, nq, 8) \
	OFFSET(hamlyn_nq_create, entries_offset, 12) \
	OFFSET(hamlyn_nq_create, ring_offset, 16) \
	OFFSET(hamlyn_nq_create, ring_length, 24) \
	OFFSET(hamlyn_nq_create, control_offset, 32) \
	OFFSET(hamlyn_nq_create, control_length, 40) \
	SIZE(hamlyn_slot_create, 64) \
	OFFSET(hamlyn_slot_create, size, 0) \
	OFFSET(hamlyn_slot_create, flags, 4) \
	OFFSET(hamlyn_slot_create, mode, 8) \
	OFFSET(hamlyn_slot_create, area, 12) \
	OFFSET(hamlyn_slot_create, base, 16) \
	OFFSET(hamlyn_slot_create, length, 24) \
	OFFSET(hamlyn_slot_create, meta_area, 32) \
	OFFSET(hamlyn_slot_create, meta_count, 36) \
	OFFSET(hamlyn_slot_create, meta_base, 40) \
	OFFSET(hamlyn_slot_create, nq, 48) \
	OFFSET(hamlyn_slot_create, slot, 52) \
	OFFSET(hamlyn_slot_create, key, 56) \
	SIZE(hamlyn_slot_rekey, 24) \
	OFFSET(hamlyn_slot_rekey, size, 0) \
	OFFSET(hamlyn_slot_rekey, slot, 4) \
	OFFSET(hamlyn_slot_rekey, flags, 8) \
	OFFSET(hamlyn_slot_rekey, reserved, 12) \
	OFFSET(hamlyn_slot_rekey, key, 16) \
	SIZE(hamlyn_terminus_create, 64) \
	OFFSET(hamlyn_terminus_create, size, 0) \
	OFFSET(hamlyn_terminus_create, entries, 4) \
	OFFSET(hamlyn_terminus_create, entry_size, 8) \
	OFFSET(hamlyn_terminus_create, terminus, 12) \
	OFFSET(hamlyn_terminus_create, entries_offset, 16) \
	OFFSET(hamlyn_terminus_create, reserved, 20) \
	OFFSET(hamlyn_terminus_create, wq_offset, 24) \
	OFFSET(hamlyn_terminus_create, wq_length, 32) \
	OFFSET(hamlyn_terminus_create, status_offset, 40) \
	OFFSET(hamlyn_terminus_create, status_length, 48) \
	OFFSET(hamlyn_terminus_create, priority, 56) \
	OFFSET(hamlyn_terminus_create, weight, 60) \
	SIZE(hamlyn_terminus_bind, 32) \
	OFFSET(hamlyn_terminus_bind, size, 0) \
	OFFSET(hamlyn_terminus_bind, terminus, 4) \
	OFFSET(hamlyn_terminus_bind, tag, 8) \
	OFFSET(hamlyn_terminus_bind, area, 12) \
	OFFSET(hamlyn_terminus_bind, base, 16) \
	OFFSET(hamlyn_terminus_bind, length, 24) \
	SIZE(hamlyn_wait, 24) \
	OFFSET(hamlyn_wait, size, 0) \
	OFFSET(hamlyn_wait, nq, 4) \
	OFFSET(hamlyn_wait, position, 8) \
	OFFSET(hamlyn_wait, flags, 12) \
	OFFSET(hamlyn_wait, deadline_ns, 16) \
	SIZE(hamlyn_stats, 200) \
	OFFSET(hamlyn_stats, size, 0) \
	OFFSET(hamlyn_stats, kind, 4) \
	OFFSET(hamlyn_stats, id, 8) \
	OFFSET(hamlyn_stats, reserved, 12) \
	OFFSET(hamlyn_stats, messages, 16) \
	OFFSET(hamlyn_stats, packets, 24) \
	OFFSET(hamlyn_stats, bytes, 32) \
	OFFSET(hamlyn_stats, failed, 40) \
	OFFSET(hamlyn_stats, notifications, 48) \
	OFFSET(hamlyn_stats, overruns, 56) \
	OFFSET(hamlyn_stats, kicks, 64) \
	OFFSET(hamlyn_stats, rejects, 72) \
	SIZE(hamlyn_watch, 48) \
	OFFSET(hamlyn_watch, size, 0) \
	OFFSET(hamlyn_watch, flags, 4) \
	OFFSET(hamlyn_watch, host, 8) \
	OFFSET(hamlyn_watch, slot, 12) \
	OFFSET(hamlyn_watch, key, 16) \
	OFFSET(hamlyn_watch, meta_index, 24) \
	OFFSET(hamlyn_watch, nq, 28) \
	OFFSET(hamlyn_watch, cookie, 32) \
	OFFSET(hamlyn_watch, watch, 40) \
	OFFSET(hamlyn_watch, reserved, 44) \
	SIZE(hamlyn_listen, 80) \
	OFFSET(hamlyn_listen, size, 0) \
	OFFSET(hamlyn_listen, flags, 4) \
	OFFSET(hamlyn_listen, name_length, 8) \
	OFFSET(hamlyn_listen, fd, 12) \
	OFFSET(hamlyn_listen, name, 16) \
	SIZE(hamlyn_call, 96) \
	OFFSET(hamlyn_call, size, 0) \
	OFFSET(hamlyn_call, flags, 4) \
	OFFSET(hamlyn_call, host, 8) \
	OFFSET(hamlyn_call, name_length, 12) \
	OFFSET(hamlyn_call, said, 16) \
	OFFSET(hamlyn_call, length, 24) \
	OFFSET(hamlyn_call, fd, 28) \
	OFFSET(hamlyn_call, name, 32) \
	SIZE(hamlyn_ticket_create, 32) \
	OFFSET(hamlyn_ticket_create, size, 0) \
	OFFSET(hamlyn_ticket_create, flags, 4) \
	OFFSET(hamlyn_ticket_create, slot, 8) \
	OFFSET(hamlyn_ticket_create, fd, 12) \
	OFFSET(hamlyn_ticket_create, base, 16) \
	OFFSET(hamlyn_ticket_create, length, 24) \
	SIZE(hamlyn_ticket_import, 40) \
	OFFSET(hamlyn_ticket_import, size, 0) \
	OFFSET(hamlyn_ticket_import, terminus, 4) \
	OFFSET(hamlyn_ticket_import, fd, 8) \
	OFFSET(hamlyn_ticket_import, index, 12) \
	OFFSET(hamlyn_ticket_import, host, 16) \
	OFFSET(hamlyn_ticket_import, slot, 20) \
	OFFSET(hamlyn_ticket_import, base, 24) \
	OFFSET(hamlyn_ticket_import, length, 32) \
	SIZE(hamlyn_ticket_drop, 16) \
	OFFSET(hamlyn_ticket_drop, size, 0) \
	OFFSET(hamlyn_ticket_drop, terminus, 4) \
	OFFSET(hamlyn_ticket_drop, index, 8) \
	OFFSET(hamlyn_ticket_drop, reserved, 12) \
	SIZE(hamlyn_audit, 24) \
	OFFSET(hamlyn_audit, size, 0) \
	OFFSET(hamlyn_audit, count, 4) \
	OFFSET(hamlyn_audit, sequence, 8) \
	OFFSET(hamlyn_audit, entries, 16) \
	SIZE(hamlyn_nic_set, 16) \
	OFFSET(hamlyn_nic_set, size, 0) \
	OFFSET(hamlyn_nic_set, flags, 4) \
	OFFSET(hamlyn_nic_set, state, 8) \
	OFFSET(hamlyn_nic_set, watchdog_ms, 12) \
	SIZE(hamlyn_explain, 24) \
	OFFSET(hamlyn_explain, size, 0) \
	OFFSET(hamlyn_explain, text_size, 4) \
	OFFSET(hamlyn_explain, argument, 8) \
	OFFSET(hamlyn_explain, text, 16)

/* mapped memory and the packet header */
#define HML_LAYOUT_MAPPED(SIZE, OFFSET) \
	SIZE(hamlyn_trb, 64) \
	OFFSET(hamlyn_trb, host, 0) \
	OFFSET(hamlyn_trb, slot, 4) \
	OFFSET(hamlyn_trb, key, 8) \
	OFFSET(hamlyn_trb, offset, 16) \
	OFFSET(hamlyn_trb, length, 24) \
	OFFSET(hamlyn_trb, delta, 32) \
	OFFSET(hamlyn_trb, meta_index, 36) \
	OFFSET(hamlyn_trb, word, 40) \
	OFFSET(hamlyn_trb, meta_length, 48) \
	OFFSET(hamlyn_trb, fragments, 50) \
	OFFSET(hamlyn_trb, flags, 52) \
	OFFSET(hamlyn_trb, ticket, 56) \
	OFFSET(hamlyn_trb, sequence, 60) \
	SIZE(hamlyn_fragment, 24) \
	OFFSET(hamlyn_fragment, tag, 0) \
	OFFSET(hamlyn_fragment, reserved, 4) \
	OFFSET(hamlyn_fragment, offset, 8) \
	OFFSET(hamlyn_fragment, length, 16) \
	SIZE(hamlyn_wq_control, 64) \
	OFFSET(hamlyn_wq_control, producer, 0) \
	OFFSET(hamlyn_wq_control, reserved, 4) \
	SIZE(hamlyn_terminus_status, 128) \
	OFFSET(hamlyn_terminus_status, need_kick, 0) \
	OFFSET(hamlyn_terminus_status, reserved, 4) \
	OFFSET(hamlyn_terminus_status, completed, 64) \
	OFFSET(hamlyn_terminus_status, failed, 68) \
	OFFSET(hamlyn_terminus_status, reserved2, 72) \
	SIZE(hamlyn_packet, 64) \
	OFFSET(hamlyn_packet, version, 0) \
	OFFSET(hamlyn_packet, flags, 1) \
	OFFSET(hamlyn_packet, meta_length, 2) \
	OFFSET(hamlyn_packet, length, 4) \
	OFFSET(hamlyn_packet, host, 8) \
	OFFSET(hamlyn_packet, source, 12) \
	OFFSET(hamlyn_packet, slot, 16) \
	OFFSET(hamlyn_packet, meta_index, 20) \
	OFFSET(hamlyn_packet, key, 24) \
	OFFSET(hamlyn_packet, offset, 32) \
	OFFSET(hamlyn_packet, word, 40) \
	OFFSET(hamlyn_packet, delta, 48) \
	OFFSET(hamlyn_packet, reserved, 52) \
	OFFSET(hamlyn_packet, ticket_key, 56) \
	SIZE(hamlyn_metadata, 128) \
	OFFSET(hamlyn_metadata, user, 0) \
	OFFSET(hamlyn_metadata, accumulator, 60) \
	OFFSET(hamlyn_metadata, key, 64) \
	OFFSET(hamlyn_metadata, low, 72) \
	OFFSET(hamlyn_metadata, high, 80) \
	OFFSET(hamlyn_metadata, receive_class, 88) \
	OFFSET(hamlyn_metadata, meta_length, 96) \
	OFFSET(hamlyn_metadata, state, 100) \
	OFFSET(hamlyn_metadata, length, 104) \
	OFFSET(hamlyn_metadata, reserved, 108) \
	SIZE(hamlyn_nq_entry, 32) \
	OFFSET(hamlyn_nq_entry, data, 0) \
	OFFSET(hamlyn_nq_entry, slot, 8) \
	OFFSET(hamlyn_nq_entry, index, 12) \
	OFFSET(hamlyn_nq_entry, source, 16) \
	OFFSET(hamlyn_nq_entry, length, 20) \
	OFFSET(hamlyn_nq_entry, flags, 24) \
	OFFSET(hamlyn_nq_entry, sequence, 28) \
	SIZE(hamlyn_nq_ring, 64) \
	OFFSET(hamlyn_nq_ring, entries, 0) \
	OFFSET(hamlyn_nq_ring, lost, 4) \
	OFFSET(hamlyn_nq_ring, reserved, 8) \
	SIZE(hamlyn_nq_control, 64) \
	OFFSET(hamlyn_nq_control, consumer, 0) \
	OFFSET(hamlyn_nq_control, reserved, 4) \
	SIZE(hamlyn_uring_kick, 16) \
	OFFSET(hamlyn_uring_kick, terminus, 0) \
	OFFSET(hamlyn_uring_kick, reserved, 4)

/* Written by a call to an address that the caller gives. */
#define HML_LAYOUT_OUT(SIZE, OFFSET) \
	SIZE(hamlyn_audit_entry, 48) \
	OFFSET(hamlyn_audit_entry, time_ns, 0) \
	OFFSET(hamlyn_audit_entry, sequence, 8) \
	OFFSET(hamlyn_audit_entry, offset, 16) \
	OFFSET(hamlyn_audit_entry, length, 24) \
	OFFSET(hamlyn_audit_entry, slot, 28) \
	OFFSET(hamlyn_audit_entry, reason, 32) \
	OFFSET(hamlyn_audit_entry, source, 36) \
	OFFSET(hamlyn_audit_entry, pid, 40) \
	OFFSET(hamlyn_audit_entry, uid, 44)

/* What read() and write() of a name's or a call's descriptor begin with. */
#define HML_LAYOUT_SAID(SIZE, OFFSET) \
	SIZE(hamlyn_caller, 32) \
	OFFSET(hamlyn_caller, number, 0) \
	OFFSET(hamlyn_caller, host, 8) \
	OFFSET(hamlyn_caller, user, 12) \
	OFFSET(hamlyn_caller, uid, 16) \
	OFFSET(hamlyn_caller, length, 20) \
	OFFSET(hamlyn_caller, error, 24) \
	OFFSET(hamlyn_caller, reserved, 28) \
	SIZE(hamlyn_answer, 16) \
	OFFSET(hamlyn_answer, number, 0) \
	OFFSET(hamlyn_answer, flags, 8) \
	OFFSET(hamlyn_answer, length, 12)

#define HML_LAYOUT(SIZE, OFFSET) \
	HML_LAYOUT_IOCTL(SIZE, OFFSET) \
	HML_LAYOUT_MAPPED(SIZE, OFFSET) \
	HML_LAYOUT_OUT(SIZE, OFFSET) \
	HML_LAYOUT_SAID(SIZE, OFFSET)

#endif /* HML_CORE_LAYOUT_H */
