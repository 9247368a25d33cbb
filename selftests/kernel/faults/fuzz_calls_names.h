/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations of the fuzzer: names, and calls to them. */
#ifndef FUZZ_CALLS_NAMES_H
#define FUZZ_CALLS_NAMES_H

#include "fuzz_calls.h"

#define FEW_NAMES	6	/* so that those who call find them */

/* Return: its length, which at times is another one's. */
static uint32_t some_name(struct thread *t, char name[HAMLYN_MAX_NAME + 1])
{
	int n = snprintf(name, HAMLYN_MAX_NAME + 1, "name%u", below(t, FEW_NAMES));

	if (one_in(t, 24))
		name[below(t, HAMLYN_MAX_NAME + 1)] = (char)draw(t);
	return one_in(t, 24) ? (uint32_t)odd_number(t) : (uint32_t)n;
}

static void op_listen(struct thread *t)
{
	struct hamlyn_listen arg = { .flags = one_in(t, 48) ? 1 : 0 };

	arg.name_length = some_name(t, arg.name);
	if (!call(t, K_LISTEN, &arg) && is_new(arg.fd))
		keep_line(t, arg.fd);
}

/* Of our own NIC, or of one that somebody has made a slot at. */
static void op_call(struct thread *t)
{
	uint32_t host = one_in(t, 2) ? t->k->host : shared->board[below(t, BOARD)].host;
	struct hamlyn_call arg = {
		.flags = one_in(t, 48) ? 1 : 0,
		.host = some_id(t, host),
		.said = (uintptr_t)cell_at(below(t, CELLS)),
		.length = one_in(t, 24) ? (uint32_t)odd_number(t) :
					  below(t, HAMLYN_MAX_CALL + 1),
	};

	if (one_in(t, 2))
		arg.said = (uintptr_t)kind_names;
	arg.name_length = some_name(t, arg.name);
	if (!call(t, K_CALL, &arg) && is_new(arg.fd))
		keep_line(t, arg.fd);
}

struct said {
	struct hamlyn_answer a;
	char said[HAMLYN_MAX_CALL + 8];
};

static void answer(struct thread *t, int fd, uint64_t number)
{
	struct said out = { .a = { .number = number, .length = below(t, HAMLYN_MAX_CALL + 1) } };
	size_t n = sizeof(out.a) + out.a.length;

	if (one_in(t, 16))
		out.a.number = odd_number(t);
	if (one_in(t, 16)) {
		out.a = (struct hamlyn_answer) { .flags = HAMLYN_ANSWER_END };
		n = sizeof(out.a);
	}
	if (one_in(t, 24))
		((char *)&out.a)[below(t, sizeof(out.a))] ^= (char)(1 << below(t, 8));
	if (one_in(t, 24))
		n = below(t, sizeof(out) + 1);
	count_errno(K_ANSWER, write(fd, one_in(t, 24) ? (void *)page_end : &out, n));
}

/* What a call's answer says, or who calls; most of those are answered. */
static void op_hear(struct thread *t)
{
	struct {
		struct hamlyn_caller from;
		char said[HAMLYN_MAX_CALL + 8];
	} in = { 0 };
	size_t room = one_in(t, 16) ? below(t, sizeof(in)) : sizeof(in);
	int fd = some_line(t);
	ssize_t n;

	/* Of what is no name, nor a call, it would wait. */
	if (fd < FD_LINE || fd >= FD_LINE + LINES) {
		answer(t, fd, draw(t));
		return;
	}
	n = read(fd, one_in(t, 24) ? (void *)page_end : (void *)&in, room);
	count_errno(K_HEAR, n);
	if (n > 0 && !one_in(t, 4))
		answer(t, fd, in.from.number);
}

#endif /* FUZZ_CALLS_NAMES_H */
