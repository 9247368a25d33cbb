// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any words as hamlynctl's command line: it does what was said, or says what was wrong,
 * and then has sent nothing.
 */
#include "fuzz_ctl.h"

static void answer(const struct nlmsghdr *request)
{
	queue_done(request->nlmsg_flags & NLM_F_DUMP ? NLMSG_DONE : NLMSG_ERROR, 0);
}

/* Words end with a new line. */
static int split(char *text, char **argv)
{
	int argc = 1;
	char *word;

	argv[0] = (char *)"hamlynctl";
	while (argc < MOST_WORDS - 1 && (word = strsep(&text, "\n")))
		argv[argc++] = word;
	return argc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = { data, size };
	char *text = fuzz_text(&f), *argv[MOST_WORDS] = { NULL };
	int argc = split(text, argv);
	int status = ctl(argc, argv);

	MUST(status >= STATUS_OK && status <= STATUS_USAGE);
	MUST(status != STATUS_USAGE || (!kernel.sent && ctl_err_bytes));
	MUST(status != STATUS_REFUSED || ctl_err_bytes);
	/* What getopt() says repeats the word; what hamlynctl says is text. */
	check_text(ctl_out, ctl_out_bytes);
	ctl_forget();
	free(text);
	return 0;
}
