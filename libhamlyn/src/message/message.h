/* SPDX-License-Identifier: MIT */
/* What datagrams, tagged remote writes and groups share. */
#ifndef H_MESSAGE_INTERNAL_H
#define H_MESSAGE_INTERNAL_H

#include "manager/manager.h"

/*
 * Send, waiting while the work queue is full. When it returns the message's data may
 * be changed. Returns 0 or a negative errno.
 */
int h__post(struct h_manager *m, const struct h_msg *msg, int64_t deadline_ns);

#endif /* H_MESSAGE_INTERNAL_H */
