/* SPDX-License-Identifier: MIT */
/* Passive end points: they listen. */
#ifndef HAMLYN_OFI_PEP_H
#define HAMLYN_OFI_PEP_H

#include <rdma/fi_endpoint.h>

#include "connect/conn.h"
#include "event/eq.h"

struct hf_pep {
	struct fid_pep fid;
	struct hf_fabric *fabric;
	struct fi_info *info;
	struct hf_eq *eq;
	struct sockaddr_in address;
	struct hf_source source;
	int backlog;
	bool given;			/* its address is an active end point's */
	struct hf_conn *conns;		/* not answered yet; the newest first */
	uint32_t asked;			/* how many of them have not said what they want */
	uint32_t requested;		/* and how many have */
};

int hf_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
		void *context);
/* An active end point, not this one, has its address from now on, and keeps it by a descriptor. */
int hf_pep_give_name(struct hf_pep *pep, struct sockaddr_in *address, int *fd);
/* With the event queue's @cm held. */
void hf_pep_remember(struct hf_pep *pep, struct hf_conn *conn);
void hf_pep_forget(struct hf_pep *pep, struct hf_conn *conn);
int hf_pep_request(struct hf_pep *pep, struct hf_conn *conn);

#endif
