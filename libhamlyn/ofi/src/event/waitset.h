/* SPDX-License-Identifier: MIT */
/* Wait sets: one thing to sleep on for several queues and counters of a fabric, fi_poll(3). */
#ifndef HAMLYN_OFI_WAITSET_H
#define HAMLYN_OFI_WAITSET_H

#include <rdma/fi_eq.h>

#include "domain/fabric.h"

struct hf_waitset;

int hf_waitset_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set);
/* @fd becomes readable when @whose changes; *@out is to be left when that is closed. */
int hf_waitset_join(struct fid_wait *set, const struct hf_fabric *fabric, struct fid *whose,
		    int fd, struct hf_waitset **out);
void hf_waitset_leave(struct hf_waitset *set, const struct fid *whose, int fd);
/* fi_trywait(3) of whatever has a wait object. */
int hf_trywait(struct fid *fid);

#endif
