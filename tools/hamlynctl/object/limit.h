/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keywords for limits, which a NIC can also be made with. The fields that show prints are called
 * the same: see names.c.
 */
#ifndef HAMLYNCTL_LIMIT_H
#define HAMLYNCTL_LIMIT_H

#include "base/args.h"

#define PARAM_LIMIT_OF(name, value, what, bits, attr) \
	{ name, value, what, PARAM_LIMIT, bits, attr, HAMLYN_A_LIMITS, 0, 0, NULL, NULL }

#define PARAM_KERNEL_MEMORY \
	PARAM_LIMIT_OF("kernel-memory", "SIZE", "kernel memory of all users together", 64, \
		       HAMLYN_A_LIMITS_KERNEL_BYTES)
#define PARAM_USER_KERNEL_MEMORY \
	PARAM_LIMIT_OF("user-kernel-memory", "SIZE", "kernel memory of a user", 64, \
		       HAMLYN_A_LIMITS_USER_KERNEL_BYTES)
#define PARAM_USER_WIRED_MEMORY \
	PARAM_LIMIT_OF("user-wired-memory", "SIZE", "memory that a user may wire", 64, \
		       HAMLYN_A_LIMITS_USER_WIRED_BYTES)
#define PARAM_USER_SLOTS \
	PARAM_LIMIT_OF("user-slots", "N", "slots of a user", 32, HAMLYN_A_LIMITS_USER_SLOTS)
#define PARAM_USER_TERMINI \
	PARAM_LIMIT_OF("user-termini", "N", "termini of a user", 32, \
		       HAMLYN_A_LIMITS_USER_TERMINI)

#endif /* HAMLYNCTL_LIMIT_H */
