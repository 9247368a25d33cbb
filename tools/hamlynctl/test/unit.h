/* SPDX-License-Identifier: GPL-2.0-only */
/* hamlynctl, its main() is ctl_main(), with a kernel that is made up. */
#ifndef HAMLYNCTL_UNIT_H
#define HAMLYNCTL_UNIT_H

#include "base/ctl.h"
#include "record/output.h"

#define MAX_WORDS	24
#define MAX_MESSAGES	64
#define TEXT_BYTES	16384
#define MESSAGE_BYTES	2048
#define COMMANDS	(HAMLYN_NL_CMD_MAX + 1)

struct nl_cb;
struct nl_msg;
struct nl_sock;

/* ---- what the linker puts in the place of something else ---------------- */

int ctl_main(int argc, char **argv);	/* main() of the program */

int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name);
int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *msg);
int __wrap_nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb);
int __real_nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb);

/* Of ncurses. */
struct _win_st;
void wtimeout(struct _win_st *window, int delay);

/* ---- kernel.c ------------------------------------------------------------ */

extern struct kernel {
	bool absent;			/* the module is not loaded */
	int sent;			/* requests so far */
	struct nl_msg *request;		/* the last one */
	int error;			/* refuse all requests with that */
	int error_of[COMMANDS];		/* or those of one kind */
	int sent_of[COMMANDS];		/* requests so far, of each kind */
	bool capped;
	const char *text;
	size_t text_bytes;
	int done_error;			/* dumps fail at their end with that */
	int disturbed;			/* that many dumps are disturbed */
	bool fuzz;			/* change some bytes of answers */
	unsigned char *queue[MAX_MESSAGES];
	int queued, taken;
} kernel;

extern void (*answer)(uint8_t command, bool dump);	/* what it does with a request */
extern char out[TEXT_BYTES], err[TEXT_BYTES];		/* of ctl() */

uint32_t random_u32(void);
void queue_message(struct nl_msg *msg);
struct nl_msg *reply(uint8_t command);
int ctl(const char *line);
int reset(void **state);
void request_attrs(struct nlattr **attrs);
void assert_u32(struct nlattr *attr, uint32_t number);
void assert_u64(struct nlattr *attr, uint64_t number);
void assert_has(const char *text, const char *part);
int count_of(const char *text, const char *part);

/* ---- answers.c ----------------------------------------------------------- */

void answer_map(uint8_t command, bool dump);		/* a peer, whose users a map says */
void answer_everything(uint8_t command, bool dump);

#endif /* HAMLYNCTL_UNIT_H */
