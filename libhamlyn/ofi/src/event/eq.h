/* SPDX-License-Identifier: MIT */
/*
 * Event queues. One also drives the sockets over which the end points bound to it connect: its
 * descriptor is an epoll set with them and with a bell for events, so that whoever sleeps on it
 * is woken by both, and by a peer that dies.
 */
#ifndef HAMLYN_OFI_EQ_H
#define HAMLYN_OFI_EQ_H

#include <pthread.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>

#include "base/source.h"
#include "domain/fabric.h"

struct hf_waitset;

struct hf_event {
	struct hf_event *next;
	uint32_t type;
	bool is_error;
	struct fi_eq_err_entry error;
	size_t length;
	unsigned char body[];		/* what is read; of an error, its data */
};

struct hf_eq {
	struct fid_eq fid;
	struct hf_fabric *fabric;
	enum fi_wait_obj wait_obj;
	int users;
	pthread_mutex_t cm;		/* the sockets, and what connects over them */
	pthread_mutex_t lock;		/* the events */
	struct hf_event *first;
	struct hf_event **last;
	struct hf_event *told;		/* an error whose data the application may be looking at */
	int bell;			/* eventfd: there are events */
	int wait;			/* epoll: of sockets, which are served with @cm held */
	struct hf_waitset *set;		/* that it is in, or NULL */
};

int hf_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
	       void *context);
int hf_eq_calm(struct hf_eq *eq);	/* enum hf_calm */
void hf_eq_add(struct hf_eq *eq, uint32_t type, fid_t fid, struct fi_info *info,
	       const void *data, size_t length);
void hf_eq_add_error(struct hf_eq *eq, fid_t fid, int err, const void *data, size_t length);
void hf_eq_add_failure(struct hf_eq *eq, fid_t fid, void *context, uint64_t index, int err);
void hf_eq_forget(struct hf_eq *eq, const struct fid *fid);

#endif
