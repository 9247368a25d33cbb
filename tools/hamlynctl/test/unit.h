/* SPDX-License-Identifier: GPL-2.0-only */
/* What the linker puts in the place of something else. */
#ifndef HAMLYNCTL_UNIT_H
#define HAMLYNCTL_UNIT_H

struct nl_cb;
struct nl_msg;
struct nl_sock;

int ctl_main(int argc, char **argv);	/* main() of the program */

int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name);
int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *msg);
int __wrap_nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb);
int __real_nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb);

/* Of ncurses. */
struct _win_st;
void wtimeout(struct _win_st *window, int delay);

#endif /* HAMLYNCTL_UNIT_H */
