/* SPDX-License-Identifier: GPL-2.0-only */
/* What is said of NICs and peers that are to be there, on the command line and in files. */
#ifndef HAMLYNCTL_NIC_H
#define HAMLYNCTL_NIC_H

#include "base/args.h"

/* What is behind "nic add", with the defaults of a fabric; status. */
int nic_add_parse(struct words *words, struct values *values);

/* What is behind "peer add"; status. */
int peer_add_parse(struct words *words, struct nic_name *nic, struct values *values);

#endif /* HAMLYNCTL_NIC_H */
