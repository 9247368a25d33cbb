// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers of the kernel with any attributes, to all that hamlynctl asks: text that is
 * text, JSON that is JSON.
 */
#include <json-c/json.h>

#include "fuzz_ctl.h"

static struct fuzz *input;

/* Attributes one behind the other, some nested, into @room bytes. Return: bytes. */
static size_t put_attrs(struct fuzz *f, unsigned char *p, size_t room, int depth)
{
	size_t used = 0;
	uint32_t n;

	for (n = 0; n < 24 && f->left; n++) {
		uint8_t how = fuzz_u8(f);
		uint16_t type = fuzz_u8(f) % (HAMLYN_A_MAX + 4);
		struct nlattr a = { .nla_type = type };
		size_t length;

		if (how == 0xff || room - used < 64)
			break;
		if (how >= 0xf0 && depth) {
			length = put_attrs(f, p + used + NLA_HDRLEN,
					   room - used - NLA_HDRLEN - 32, depth - 1);
			a.nla_type |= how & 1 ? NLA_F_NESTED : 0;
		} else {
			/* Numbers, mostly. */
			length = how < 0x60 ? 4 : how < 0xa0 ? 8 : how % 40;
			fuzz_bytes(f, p + used + NLA_HDRLEN, length);
		}
		a.nla_len = (uint16_t)(NLA_HDRLEN + length);
		if (how == 0xef)
			a.nla_len = fuzz_u16(f);
		memcpy(p + used, &a, NLA_HDRLEN);
		memset(p + used + NLA_HDRLEN + length, 0, NLA_ALIGN(length) - length);
		used += NLA_HDRLEN + NLA_ALIGN(length);
	}
	return used;
}

static void queue_message(struct fuzz *f, const struct nlmsghdr *request)
{
	const struct genlmsghdr *asked = nlmsg_data(request);
	unsigned char bytes[MOST_BYTES] = { 0 };
	struct nlmsghdr *head = (void *)bytes;
	struct genlmsghdr *genl = (void *)(bytes + NLMSG_HDRLEN);
	uint8_t how = fuzz_u8(f);
	size_t length = NLMSG_HDRLEN + GENL_HDRLEN;

	length += put_attrs(f, bytes + length, sizeof(bytes) - length, 2);
	head->nlmsg_len = (uint32_t)length;
	head->nlmsg_type = how < 240 ? FAMILY : fuzz_u8(f);
	head->nlmsg_seq = request->nlmsg_seq;
	head->nlmsg_flags = request->nlmsg_flags & NLM_F_DUMP ? NLM_F_MULTI : 0;
	if (how & 1 && how > 200)
		head->nlmsg_flags |= NLM_F_DUMP_INTR | NLM_F_ACK_TLVS;
	genl->cmd = how & 2 && how > 200 ? fuzz_u8(f) : HAMLYN_NL_CMD_EVENT;
	if (request->nlmsg_len >= length && how < 128)
		genl->cmd = asked->cmd;
	genl->version = 1;
	if (how == 0xfe)
		length = fuzz_u16(f) % (length + 1);
	if (how == 0xfd)
		head->nlmsg_len = fuzz_u16(f);
	if (length)
		queue_bytes(bytes, length);
}

static void answer(const struct nlmsghdr *request)
{
	uint32_t n = fuzz_below(input, 5);
	uint8_t how = fuzz_u8(input);

	while (n-- && input->left)
		queue_message(input, request);
	if (request->nlmsg_flags & NLM_F_DUMP)
		queue_done(NLMSG_DONE, how == 1 ? -5 : 0);
	else
		queue_done(NLMSG_ERROR, how == 1 ? -22 : 0);
}

/* One after the other, or one of several lines. */
static void check_json(void)
{
	struct json_tokener *tok = json_tokener_new();
	size_t at = 0;

	MUST(tok);
	while (at < ctl_out_bytes) {
		struct json_object *o;

		if (ctl_out[at] == '\n' || ctl_out[at] == ' ') {
			at++;
			continue;
		}
		o = json_tokener_parse_ex(tok, ctl_out + at, (int)(ctl_out_bytes - at));
		MUST(json_tokener_get_error(tok) == json_tokener_success && o);
		at += json_tokener_get_parse_end(tok);
		json_object_put(o);
		json_tokener_reset(tok);
	}
	json_tokener_free(tok);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const lines[] = {
		"nic show 1", "nic show", "context show", "area show", "slot show", "nq show",
		"terminus show", "name show", "stats", "user show", "limit show 1", "audit show 0",
		"monitor", "top -b -n 2 -d 0.1", "nic add", "nic set 0 up", "limit",
	};
	struct fuzz f = { data, size };
	char *argv[MOST_WORDS] = { (char *)"hamlynctl" }, *words, *word, *rest;
	uint8_t how = fuzz_u8(&f);
	int argc = 1, status;

	input = &f;
	words = strdup(lines[how % FUZZ_COUNT(lines)]);
	if (how & 0x80)
		argv[argc++] = (char *)"-j";
	if (how & 0x40)
		argv[argc++] = (char *)"-p";
	rest = words;
	while ((word = strtok_r(rest, " ", &rest)))
		argv[argc++] = word;
	status = ctl(argc, argv);
	MUST(status >= STATUS_OK && status <= STATUS_USAGE);
	check_text(ctl_err, ctl_err_bytes);
	MUST(status == STATUS_OK || ctl_err_bytes);
	/* JSON escapes what it must, and leaves the rest to its readers. */
	if (how & 0x80)
		check_json();
	else
		check_text(ctl_out, ctl_out_bytes);
	ctl_forget();
	free(words);
	return 0;
}
