/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/hamlyn.yaml */
/* YNL-GEN uapi header */

#ifndef _UAPI_LINUX_HAMLYN_NETLINK_H
#define _UAPI_LINUX_HAMLYN_NETLINK_H

#define HAMLYN_FAMILY_NAME	"hamlyn"
#define HAMLYN_FAMILY_VERSION	1

#define HAMLYN_NIC_NAME_MAX	31
#define HAMLYN_CALLED_NAME_MAX	63

/**
 * enum hamlyn_nl_state - State of a NIC; the values of enum hamlyn_nic_state.
 * @HAMLYN_NL_STATE_UP: in operation
 * @HAMLYN_NL_STATE_DOWN: set down; packets are accepted and discarded
 * @HAMLYN_NL_STATE_UNFED: the same, because the watchdog was not fed in time
 */
enum hamlyn_nl_state {
	HAMLYN_NL_STATE_UP,
	HAMLYN_NL_STATE_DOWN,
	HAMLYN_NL_STATE_UNFED,
};

/**
 * enum hamlyn_nl_engine - Who does the work of a NIC; the values of enum
 *   hamlyn_engine_mode.
 * @HAMLYN_NL_ENGINE_INLINE: the kicking caller
 * @HAMLYN_NL_ENGINE_POLL: polling kernel threads
 */
enum hamlyn_nl_engine {
	HAMLYN_NL_ENGINE_INLINE,
	HAMLYN_NL_ENGINE_POLL,
};

/**
 * enum hamlyn_nl_slot_mode - Protection mode of a slot; the values of enum
 *   hamlyn_slot_mode.
 * @HAMLYN_NL_SLOT_MODE_NORMAL: the slot's key and bounds hold
 * @HAMLYN_NL_SLOT_MODE_PARANOID: each metadata entry has a key and limits of
 *   its own
 * @HAMLYN_NL_SLOT_MODE_PARANOID_ONE_SHOT: a metadata entry lets one message in
 *   each time it is armed
 */
enum hamlyn_nl_slot_mode {
	HAMLYN_NL_SLOT_MODE_NORMAL,
	HAMLYN_NL_SLOT_MODE_PARANOID,
	HAMLYN_NL_SLOT_MODE_PARANOID_ONE_SHOT,
};

/**
 * enum hamlyn_nl_priority - Priority of a terminus; the values of enum
 *   hamlyn_priority.
 * @HAMLYN_NL_PRIORITY_NORMAL: the default
 * @HAMLYN_NL_PRIORITY_BULK: below normal
 * @HAMLYN_NL_PRIORITY_HIGH: above normal
 */
enum hamlyn_nl_priority {
	HAMLYN_NL_PRIORITY_NORMAL,
	HAMLYN_NL_PRIORITY_BULK,
	HAMLYN_NL_PRIORITY_HIGH,
};

/**
 * enum hamlyn_nl_reason - Why a packet was discarded; the values of enum
 *   hamlyn_reject.
 * @HAMLYN_NL_REASON_SLOT: no such slot
 * @HAMLYN_NL_REASON_KEY: wrong key
 * @HAMLYN_NL_REASON_BOUNDS: outside the message area
 * @HAMLYN_NL_REASON_METADATA: no such metadata entry
 * @HAMLYN_NL_REASON_FORMAT: malformed packet
 * @HAMLYN_NL_REASON_ONE_SHOT: the metadata entry is not armed
 * @HAMLYN_NL_REASON_TICKET: the slot demands an imported ticket
 * @HAMLYN_NL_REASON_DOWN: one of the NICs is down
 */
enum hamlyn_nl_reason {
	HAMLYN_NL_REASON_SLOT,
	HAMLYN_NL_REASON_KEY,
	HAMLYN_NL_REASON_BOUNDS,
	HAMLYN_NL_REASON_METADATA,
	HAMLYN_NL_REASON_FORMAT,
	HAMLYN_NL_REASON_ONE_SHOT,
	HAMLYN_NL_REASON_TICKET,
	HAMLYN_NL_REASON_DOWN,
};

/**
 * enum hamlyn_nl_event - What an event message reports.
 * @HAMLYN_NL_EVENT_NIC_NEW: a NIC was made, or moved into this network
 *   namespace
 * @HAMLYN_NL_EVENT_NIC_DEL: a NIC was removed, or moved out of this network
 *   namespace
 * @HAMLYN_NL_EVENT_NIC_UP: a NIC was set up
 * @HAMLYN_NL_EVENT_NIC_DOWN: a NIC was set down
 * @HAMLYN_NL_EVENT_CONTEXT_OPEN: a process opened a NIC's device
 * @HAMLYN_NL_EVENT_CONTEXT_CLOSE: the last reference to a context is gone
 * @HAMLYN_NL_EVENT_TERMINUS_PAUSED: a terminus is not served for a while
 * @HAMLYN_NL_EVENT_QUOTA: a request was refused because a limit is reached
 * @HAMLYN_NL_EVENT_PEER_UP: a NIC and another host can send to each other
 * @HAMLYN_NL_EVENT_PEER_DOWN: they can no longer
 */
enum hamlyn_nl_event {
	HAMLYN_NL_EVENT_NIC_NEW,
	HAMLYN_NL_EVENT_NIC_DEL,
	HAMLYN_NL_EVENT_NIC_UP,
	HAMLYN_NL_EVENT_NIC_DOWN,
	HAMLYN_NL_EVENT_CONTEXT_OPEN,
	HAMLYN_NL_EVENT_CONTEXT_CLOSE,
	HAMLYN_NL_EVENT_TERMINUS_PAUSED,
	HAMLYN_NL_EVENT_QUOTA,
	HAMLYN_NL_EVENT_PEER_UP,
	HAMLYN_NL_EVENT_PEER_DOWN,
};

/**
 * enum hamlyn_nl_fabric - What carries the packets of a NIC.
 * @HAMLYN_NL_FABRIC_LOOP: memory, to the other NICs of this kernel
 * @HAMLYN_NL_FABRIC_TCP: TCP connections, to other hosts
 */
enum hamlyn_nl_fabric {
	HAMLYN_NL_FABRIC_LOOP,
	HAMLYN_NL_FABRIC_TCP,
};

#define HAMLYN_FABRIC_PORT		927
#define HAMLYN_FABRIC_DEVICE_MAX	15

/**
 * enum hamlyn_nl_peer_state - State of a peer.
 * @HAMLYN_NL_PEER_STATE_IDLE: the other host is to connect, or this one is to
 *   later
 * @HAMLYN_NL_PEER_STATE_CONNECTING: connecting, or waiting for the other host
 *   to say who it is
 * @HAMLYN_NL_PEER_STATE_UP: connected
 */
enum hamlyn_nl_peer_state {
	HAMLYN_NL_PEER_STATE_IDLE,
	HAMLYN_NL_PEER_STATE_CONNECTING,
	HAMLYN_NL_PEER_STATE_UP,
};

/**
 * enum hamlyn_nl_peer_users - For whom users of a peer are taken here, when
 *   they meet processes by a name.
 * @HAMLYN_NL_PEER_USERS_NONE: for nobody who has a number here
 * @HAMLYN_NL_PEER_USERS_SAME: for the users that have the same numbers
 * @HAMLYN_NL_PEER_USERS_MAP: for those that user-map says
 */
enum hamlyn_nl_peer_users {
	HAMLYN_NL_PEER_USERS_NONE,
	HAMLYN_NL_PEER_USERS_SAME,
	HAMLYN_NL_PEER_USERS_MAP,
};

#define HAMLYN_PEER_USER_RANGES	32

/**
 * enum hamlyn_nl_peer_reason - Why the last connection to a peer ended, or
 *   none came about.
 * @HAMLYN_NL_PEER_REASON_NONE: it has not ended
 * @HAMLYN_NL_PEER_REASON_UNREACHABLE: there was no connection
 * @HAMLYN_NL_PEER_REASON_CLOSED: the peer closed it, or it was reset
 * @HAMLYN_NL_PEER_REASON_DEAD: the peer was not heard for dead-ms
 * @HAMLYN_NL_PEER_REASON_STALLED: the peer took nothing for stall-ms
 * @HAMLYN_NL_PEER_REASON_NONSENSE: the peer sent what is no frame
 * @HAMLYN_NL_PEER_REASON_OTHER_VERSION: the peer speaks another version
 * @HAMLYN_NL_PEER_REASON_OTHER_FABRIC: the peer is on a fabric with another id
 * @HAMLYN_NL_PEER_REASON_OTHER_HOST: the peer says that it is another host
 * @HAMLYN_NL_PEER_REASON_SAME_HOST: the peer has the NIC's own host id
 * @HAMLYN_NL_PEER_REASON_OTHER_SIZE: the peer's packets have another size
 * @HAMLYN_NL_PEER_REASON_DOWN: the NIC, or the peer's, was set down or deleted
 */
enum hamlyn_nl_peer_reason {
	HAMLYN_NL_PEER_REASON_NONE,
	HAMLYN_NL_PEER_REASON_UNREACHABLE,
	HAMLYN_NL_PEER_REASON_CLOSED,
	HAMLYN_NL_PEER_REASON_DEAD,
	HAMLYN_NL_PEER_REASON_STALLED,
	HAMLYN_NL_PEER_REASON_NONSENSE,
	HAMLYN_NL_PEER_REASON_OTHER_VERSION,
	HAMLYN_NL_PEER_REASON_OTHER_FABRIC,
	HAMLYN_NL_PEER_REASON_OTHER_HOST,
	HAMLYN_NL_PEER_REASON_SAME_HOST,
	HAMLYN_NL_PEER_REASON_OTHER_SIZE,
	HAMLYN_NL_PEER_REASON_DOWN,
};

enum {
	HAMLYN_A_NIC = 1,
	HAMLYN_A_NAME,
	HAMLYN_A_CONTEXT,
	HAMLYN_A_ID,
	HAMLYN_A_UID,
	HAMLYN_A_HOST,
	HAMLYN_A_NETNS_FD,
	HAMLYN_A_STATE,
	HAMLYN_A_WATCHDOG_MS,
	HAMLYN_A_ENGINE_MODE,
	HAMLYN_A_ENGINES,
	HAMLYN_A_IDLE_US,
	HAMLYN_A_KICK_WINDOW_US,
	HAMLYN_A_PACKET_SIZE,
	HAMLYN_A_MAX_SLOTS,
	HAMLYN_A_GUESSES,
	HAMLYN_A_ADVERSARY,
	HAMLYN_A_LIMITS,
	HAMLYN_A_PRIORITY,
	HAMLYN_A_WEIGHT,
	HAMLYN_A_PAD,
	HAMLYN_A_FED,
	HAMLYN_A_CONTEXTS,
	HAMLYN_A_AREAS,
	HAMLYN_A_SLOTS,
	HAMLYN_A_NQS,
	HAMLYN_A_TERMINI,
	HAMLYN_A_WATCHES,
	HAMLYN_A_KERNEL_BYTES,
	HAMLYN_A_WIRED_BYTES,
	HAMLYN_A_PID,
	HAMLYN_A_COMM,
	HAMLYN_A_LENGTH,
	HAMLYN_A_READONLY,
	HAMLYN_A_ALLOCATED,
	HAMLYN_A_USERS,
	HAMLYN_A_SLOT,
	HAMLYN_A_SLOT_MODE,
	HAMLYN_A_TICKET_ONLY,
	HAMLYN_A_AREA,
	HAMLYN_A_BASE,
	HAMLYN_A_META_AREA,
	HAMLYN_A_META_COUNT,
	HAMLYN_A_NQ,
	HAMLYN_A_ENTRIES,
	HAMLYN_A_USED,
	HAMLYN_A_LOST,
	HAMLYN_A_ARMED,
	HAMLYN_A_ENTRY_SIZE,
	HAMLYN_A_PENDING,
	HAMLYN_A_ACTIVE,
	HAMLYN_A_PAUSED_MS,
	HAMLYN_A_TAGS,
	HAMLYN_A_MESSAGES,
	HAMLYN_A_PACKETS,
	HAMLYN_A_BYTES,
	HAMLYN_A_FAILED,
	HAMLYN_A_NOTIFICATIONS,
	HAMLYN_A_OVERRUNS,
	HAMLYN_A_KICKS,
	HAMLYN_A_PAUSES,
	HAMLYN_A_REJECTS,
	HAMLYN_A_SEQUENCE,
	HAMLYN_A_TIME_NS,
	HAMLYN_A_REASON,
	HAMLYN_A_SOURCE,
	HAMLYN_A_OFFSET,
	HAMLYN_A_EVENT,
	HAMLYN_A_FABRIC_ID,
	HAMLYN_A_FABRIC,
	HAMLYN_A_PEER,
	HAMLYN_A_CALLED_NAME,
	HAMLYN_A_WAITING,
	HAMLYN_A_CALLS,

	__HAMLYN_A_MAX,
	HAMLYN_A_MAX = (__HAMLYN_A_MAX - 1)
};

enum {
	HAMLYN_A_FAB_KIND = 1,
	HAMLYN_A_FAB_ID,
	HAMLYN_A_FAB_ADDRESS,
	HAMLYN_A_FAB_PORT,
	HAMLYN_A_FAB_DEVICE,
	HAMLYN_A_FAB_CLEAR,
	HAMLYN_A_FAB_DEAD_MS,
	HAMLYN_A_FAB_STALL_MS,

	__HAMLYN_A_FAB_MAX,
	HAMLYN_A_FAB_MAX = (__HAMLYN_A_FAB_MAX - 1)
};

enum {
	HAMLYN_A_PEER_HOST = 1,
	HAMLYN_A_PEER_ADDRESS,
	HAMLYN_A_PEER_PORT,
	HAMLYN_A_PEER_PAD,
	HAMLYN_A_PEER_STATE,
	HAMLYN_A_PEER_REASON,
	HAMLYN_A_PEER_EPOCH,
	HAMLYN_A_PEER_INCARNATION,
	HAMLYN_A_PEER_RTT_US,
	HAMLYN_A_PEER_WATCHES,
	HAMLYN_A_PEER_WATCHED,
	HAMLYN_A_PEER_SENT_BYTES,
	HAMLYN_A_PEER_RECEIVED_BYTES,
	HAMLYN_A_PEER_SENT_PACKETS,
	HAMLYN_A_PEER_RECEIVED_PACKETS,
	HAMLYN_A_PEER_STALLS,
	HAMLYN_A_PEER_DROPPED,
	HAMLYN_A_PEER_LOST,
	HAMLYN_A_PEER_REFUSED,
	HAMLYN_A_PEER_USERS,
	HAMLYN_A_PEER_USER_MAP,
	HAMLYN_A_PEER_CALLS,
	HAMLYN_A_PEER_CALLED,

	__HAMLYN_A_PEER_MAX,
	HAMLYN_A_PEER_MAX = (__HAMLYN_A_PEER_MAX - 1)
};

enum {
	HAMLYN_A_ADV_SEED = 1,
	HAMLYN_A_ADV_DROP,
	HAMLYN_A_ADV_DUPLICATE,
	HAMLYN_A_ADV_CORRUPT,
	HAMLYN_A_ADV_REORDER,
	HAMLYN_A_ADV_DELAY_US,
	HAMLYN_A_ADV_PAD,
	HAMLYN_A_ADV_STALL,

	__HAMLYN_A_ADV_MAX,
	HAMLYN_A_ADV_MAX = (__HAMLYN_A_ADV_MAX - 1)
};

enum {
	HAMLYN_A_LIMITS_KERNEL_BYTES = 1,
	HAMLYN_A_LIMITS_USER_KERNEL_BYTES,
	HAMLYN_A_LIMITS_USER_WIRED_BYTES,
	HAMLYN_A_LIMITS_USER_SLOTS,
	HAMLYN_A_LIMITS_USER_TERMINI,
	HAMLYN_A_LIMITS_PAD,

	__HAMLYN_A_LIMITS_MAX,
	HAMLYN_A_LIMITS_MAX = (__HAMLYN_A_LIMITS_MAX - 1)
};

enum {
	HAMLYN_A_REJECTS_SLOT = 1,
	HAMLYN_A_REJECTS_KEY,
	HAMLYN_A_REJECTS_BOUNDS,
	HAMLYN_A_REJECTS_METADATA,
	HAMLYN_A_REJECTS_FORMAT,
	HAMLYN_A_REJECTS_ONE_SHOT,
	HAMLYN_A_REJECTS_TICKET,
	HAMLYN_A_REJECTS_DOWN,
	HAMLYN_A_REJECTS_PAD = 32,

	__HAMLYN_A_REJECTS_MAX,
	HAMLYN_A_REJECTS_MAX = (__HAMLYN_A_REJECTS_MAX - 1)
};

enum hamlyn_nl_cmd {
	HAMLYN_NL_CMD_NIC_GET = 1,
	HAMLYN_NL_CMD_NIC_NEW,
	HAMLYN_NL_CMD_NIC_DEL,
	HAMLYN_NL_CMD_NIC_SET,
	HAMLYN_NL_CMD_NIC_FEED,
	HAMLYN_NL_CMD_CONTEXT_GET,
	HAMLYN_NL_CMD_AREA_GET,
	HAMLYN_NL_CMD_SLOT_GET,
	HAMLYN_NL_CMD_NQ_GET,
	HAMLYN_NL_CMD_TERMINUS_GET,
	HAMLYN_NL_CMD_TERMINUS_SET,
	HAMLYN_NL_CMD_STATS_GET,
	HAMLYN_NL_CMD_USER_GET,
	HAMLYN_NL_CMD_LIMIT_SET,
	HAMLYN_NL_CMD_AUDIT_GET,
	HAMLYN_NL_CMD_EVENT,
	HAMLYN_NL_CMD_PEER_NEW,
	HAMLYN_NL_CMD_PEER_DEL,
	HAMLYN_NL_CMD_PEER_GET,
	HAMLYN_NL_CMD_NAME_GET,

	__HAMLYN_NL_CMD_MAX,
	HAMLYN_NL_CMD_MAX = (__HAMLYN_NL_CMD_MAX - 1)
};

#define HAMLYN_MCGRP_EVENTS	"events"

#endif /* _UAPI_LINUX_HAMLYN_NETLINK_H */
