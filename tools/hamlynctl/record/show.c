// SPDX-License-Identifier: GPL-2.0-only
/* What the show verbs have in common: ask, print all answers. */
#include "record/output.h"

#define ALL_NICS	"all NICs"

static int print_replies(const struct options *options, struct replies *replies,
			 const struct field *fields, enum layout layout)
{
	struct output out;
	size_t i;

	output_begin(&out, options, fields, layout);
	for (i = 0; i < replies->count; i++)
		if (output_record(&out, replies->at[i]))
			break;
	return output_end(&out);
}

int show(struct netlink *nl, const struct options *options, struct nl_msg *msg, bool dump,
	 const char *subject, const struct field *fields, enum layout layout)
{
	struct replies replies = { 0 };
	int err, status;

	if (dump)
		err = netlink_dump(nl, msg, &replies);
	else
		err = netlink_do(nl, msg, &replies);
	if (err)
		status = netlink_refused(nl, subject, err);
	else
		status = print_replies(options, &replies, fields, layout);
	replies_free(&replies);
	return status;
}

/* The id behind the keyword "context"; @context stays as it is if there is none. */
static int take_context(struct words *words, bool *given, uint32_t *context)
{
	static const struct param params[] = {
		{ .name = "context", .value = "ID", .kind = PARAM_NUMBER, .max = UINT32_MAX,
		  .attr = HAMLYN_A_CONTEXT },
		{ 0 }
	};
	struct values values;
	int status = params_parse(params, words, &values);

	*given = values.count;
	if (!status && *given)
		*context = (uint32_t)values.at[0].number;
	return status;
}

/* Of one NIC, or of all. @dump: the kernel has a list even of one. */
static int show_some(const struct options *options, struct words *words, uint8_t command, bool dump,
		     bool with_context, const struct field *fields, enum layout layout)
{
	const char *word = words_take(words);
	struct nic_name nic = { .label = ALL_NICS };
	bool context_given = false;
	uint32_t context = 0;
	struct netlink nl;
	struct nl_msg *msg;
	int status = word ? parse_nic(word, &nic) : STATUS_OK;

	if (!status && word && with_context)
		status = take_context(words, &context_given, &context);
	if (!status)
		status = words_end(words);
	if (!status)
		status = netlink_open(&nl);
	if (status)
		return status;
	msg = netlink_message(&nl, command);
	if (word)
		netlink_put_nic(msg, &nic);
	if (context_given)
		netlink_put_u32(msg, HAMLYN_A_CONTEXT, context);
	status = show(&nl, options, msg, dump || !word, nic.label, fields, layout);
	netlink_close(&nl);
	return status;
}

int show_objects(const struct options *options, struct words *words, uint8_t command,
		 bool with_context, const struct field *fields)
{
	return show_some(options, words, command, true, with_context, fields, LAYOUT_TABLE);
}

int show_nics(const struct options *options, struct words *words, uint8_t command,
	      const struct field *fields)
{
	return show_some(options, words, command, false, false, fields, LAYOUT_BLOCK);
}
