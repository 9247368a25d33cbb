/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of model.c: the upper layer's protocols, each beside a model that says what
 * is received. A row of the table is a protocol.
 */
#ifndef MODEL_H
#define MODEL_H

#include "model_stream.h"
#include "model_channel.h"
#include "model_datagram.h"
#include "model_tagged.h"
#include "model_group.h"
#include "model_gather.h"
#include "model_barrier.h"

static const struct protocol protocols[] = {
	{
		.name = "stream",
		.open = stream_open,
		.step = stream_step,
		.finish = stream_finish,
		.talk = { stream_sending, stream_receiving },
		.judge = stream_judge,
		.close = stream_drop,
	},
	{
		.name = "channel",
		.open = channel_open,
		.step = channel_step,
		.finish = channel_finish,
		.talk = { channel_talk_a, channel_talk_b },
		.judge = channel_judge,
		.close = channel_close,
	},
	{
		.name = "datagram",
		.open = datagram_open,
		.step = datagram_step,
		.finish = datagram_finish,
		.talk = { datagram_ask, datagram_answer },
		.judge = datagram_judge,
		.close = datagram_close,
	},
	{
		.name = "tagged",
		.open = tagged_open,
		.step = tagged_step,
		.finish = tagged_finish,
		.talk = { tagged_writer, tagged_reader },
		.judge = tagged_judge,
		.close = tagged_close,
	},
	{
		.name = "group",
		.open = group_open,
		.step = group_step,
		.finish = group_finish,
		.talk = { group_sending, group_receiving },
		.judge = nothing_to_judge,
		.close = group_close,
	},
	{
		.name = "gather",
		.open = gather_open,
		.step = gather_step,
		.finish = gather_finish,
		.talk = { gather_sending, gather_receiving },
		.judge = gather_judge,
		.close = gather_close,
	},
	{
		.name = "barrier",
		.open = barrier_open,
		.step = barrier_step,
		.finish = barrier_finish,
		.talk = { barrier_creator, barrier_others },
		.judge = barrier_judge,
		.close = barrier_close,
	},
};

#endif /* MODEL_H */
