// SPDX-License-Identifier: GPL-2.0-only
/* What the kernel that is made up answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <netlink/genl/genl.h>

#include "unit.h"

static void put_nest(struct nl_msg *msg, int attr, int first, int last, bool wide)
{
	struct nlattr *nest = nla_nest_start(msg, attr);
	int i;

	for (i = first; i <= last; i++)
		if (wide)
			nla_put_u64(msg, i, (uint64_t)i);
		else
			nla_put_u32(msg, i, (uint32_t)i);
	nla_nest_end(msg, nest);
}

static void put_limits(struct nl_msg *msg)
{
	struct nlattr *nest = nla_nest_start(msg, HAMLYN_A_LIMITS);

	nla_put_u64(msg, HAMLYN_A_LIMITS_KERNEL_BYTES, UINT64_MAX);
	nla_put_u64(msg, HAMLYN_A_LIMITS_USER_KERNEL_BYTES, 1 << 20);
	nla_put_u64(msg, HAMLYN_A_LIMITS_USER_WIRED_BYTES, UINT32_MAX);
	nla_put_u32(msg, HAMLYN_A_LIMITS_USER_SLOTS, UINT32_MAX);
	nla_put_u32(msg, HAMLYN_A_LIMITS_USER_TERMINI, 0);
	nla_nest_end(msg, nest);
}

static void put_fabric(struct nl_msg *msg)
{
	struct nlattr *nest = nla_nest_start(msg, HAMLYN_A_FABRIC);

	nla_put_u32(msg, HAMLYN_A_FAB_KIND, HAMLYN_NL_FABRIC_TCP);
	nla_put(msg, HAMLYN_A_FAB_ID, 16, "0123456789abcdef");
	nla_put(msg, HAMLYN_A_FAB_ADDRESS, 4, "\x0a\x09\x00\x01");
	nla_put_u16(msg, HAMLYN_A_FAB_PORT, 7000);
	nla_put_string(msg, HAMLYN_A_FAB_DEVICE, "wg0");
	nla_put_u32(msg, HAMLYN_A_FAB_DEAD_MS, 5000);
	nla_put_u32(msg, HAMLYN_A_FAB_STALL_MS, 1000);
	nla_nest_end(msg, nest);
}

static void put_peer(struct nl_msg *msg)
{
	struct nlattr *nest = nla_nest_start(msg, HAMLYN_A_PEER);

	nla_put_u32(msg, HAMLYN_A_PEER_HOST, 2);
	nla_put(msg, HAMLYN_A_PEER_ADDRESS, 16,
		"\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02");
	nla_put_u16(msg, HAMLYN_A_PEER_PORT, HAMLYN_FABRIC_PORT);
	nla_put_u32(msg, HAMLYN_A_PEER_STATE, HAMLYN_NL_PEER_STATE_UP);
	nla_put_u32(msg, HAMLYN_A_PEER_REASON, HAMLYN_NL_PEER_REASON_OTHER_FABRIC);
	nla_put_u32(msg, HAMLYN_A_PEER_CALLS, 3);
	nla_put_u32(msg, HAMLYN_A_PEER_CALLED, 5);
	nla_put_u64(msg, HAMLYN_A_PEER_SENT_BYTES, UINT64_MAX);
	nla_put_u32(msg, HAMLYN_A_PEER_USERS, HAMLYN_NL_PEER_USERS_SAME);
	nla_nest_end(msg, nest);
}

/* The same peer, whose users a map says. */
void answer_map(uint8_t command, bool dump)
{
	static const uint32_t map[][3] = { { 1000, 2000, 1 }, { 3000, 5000, 1000 } };
	struct nl_msg *msg = reply(command);
	struct nlattr *nest;

	(void)dump;
	nla_put_u32(msg, HAMLYN_A_NIC, 1);
	nest = nla_nest_start(msg, HAMLYN_A_PEER);
	nla_put_u32(msg, HAMLYN_A_PEER_HOST, 2);
	nla_put(msg, HAMLYN_A_PEER_ADDRESS, 4, "\x0a\x09\x00\x02");
	nla_put_u16(msg, HAMLYN_A_PEER_PORT, HAMLYN_FABRIC_PORT);
	nla_put_u32(msg, HAMLYN_A_PEER_USERS, HAMLYN_NL_PEER_USERS_MAP);
	nla_put(msg, HAMLYN_A_PEER_USER_MAP, sizeof(map), map);
	nla_nest_end(msg, nest);
	queue_message(msg);
}

/* All attributes with their right types, whatever was asked for. */
static void put_everything(struct nl_msg *msg)
{
	static const uint16_t wide[] = {
		HAMLYN_A_KERNEL_BYTES, HAMLYN_A_WIRED_BYTES, HAMLYN_A_LENGTH, HAMLYN_A_BASE,
		HAMLYN_A_LOST, HAMLYN_A_MESSAGES, HAMLYN_A_PACKETS, HAMLYN_A_BYTES,
		HAMLYN_A_FAILED, HAMLYN_A_NOTIFICATIONS, HAMLYN_A_OVERRUNS, HAMLYN_A_KICKS,
		HAMLYN_A_PAUSES, HAMLYN_A_SEQUENCE, HAMLYN_A_TIME_NS, HAMLYN_A_OFFSET,
		HAMLYN_A_CALLS,
	};
	static const uint16_t narrow[] = {
		HAMLYN_A_NIC, HAMLYN_A_CONTEXT, HAMLYN_A_ID, HAMLYN_A_HOST, HAMLYN_A_WATCHDOG_MS,
		HAMLYN_A_ENGINES, HAMLYN_A_IDLE_US, HAMLYN_A_KICK_WINDOW_US,
		HAMLYN_A_PACKET_SIZE, HAMLYN_A_MAX_SLOTS, HAMLYN_A_GUESSES, HAMLYN_A_WEIGHT,
		HAMLYN_A_CONTEXTS, HAMLYN_A_AREAS, HAMLYN_A_SLOTS, HAMLYN_A_NQS,
		HAMLYN_A_TERMINI, HAMLYN_A_WATCHES, HAMLYN_A_PID, HAMLYN_A_USERS, HAMLYN_A_SLOT,
		HAMLYN_A_AREA, HAMLYN_A_META_AREA, HAMLYN_A_META_COUNT, HAMLYN_A_NQ,
		HAMLYN_A_ENTRIES, HAMLYN_A_USED, HAMLYN_A_ENTRY_SIZE, HAMLYN_A_PENDING,
		HAMLYN_A_PAUSED_MS, HAMLYN_A_TAGS, HAMLYN_A_SOURCE, HAMLYN_A_WAITING,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wide); i++)
		nla_put_u64(msg, wide[i], wide[i]);
	for (i = 0; i < ARRAY_SIZE(narrow); i++)
		nla_put_u32(msg, narrow[i], narrow[i]);
	nla_put_u32(msg, HAMLYN_A_STATE, HAMLYN_NL_STATE_UNFED);
	nla_put_u32(msg, HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_POLL);
	nla_put_u32(msg, HAMLYN_A_PRIORITY, HAMLYN_NL_PRIORITY_BULK);
	nla_put_u32(msg, HAMLYN_A_SLOT_MODE, HAMLYN_NL_SLOT_MODE_PARANOID);
	nla_put_u32(msg, HAMLYN_A_REASON, HAMLYN_NL_REASON_ONE_SHOT);
	nla_put_u32(msg, HAMLYN_A_UID, 0);
	nla_put_flag(msg, HAMLYN_A_FED);
	nla_put_flag(msg, HAMLYN_A_ACTIVE);
	nla_put_string(msg, HAMLYN_A_NAME, "hamlyn1");
	nla_put_string(msg, HAMLYN_A_CALLED_NAME, "echo.server");
	nla_put(msg, HAMLYN_A_COMM, 4, "a\033\xff\x62");
	put_limits(msg);
	put_fabric(msg);
	put_peer(msg);
	put_nest(msg, HAMLYN_A_ADVERSARY, HAMLYN_A_ADV_DROP, HAMLYN_A_ADV_STALL, false);
	put_nest(msg, HAMLYN_A_REJECTS, HAMLYN_A_REJECTS_SLOT, HAMLYN_A_REJECTS_DOWN, true);
	/* What this program does not know yet */
	nla_put_u32(msg, HAMLYN_A_MAX + 7, 1);
}

void answer_everything(uint8_t command, bool dump)
{
	struct nl_msg *msg;
	int i;

	for (i = 0; i < (dump ? 2 : 1); i++) {
		msg = reply(command);
		put_everything(msg);
		queue_message(msg);
	}
}
