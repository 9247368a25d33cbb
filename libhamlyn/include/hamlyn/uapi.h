/* SPDX-License-Identifier: MIT */
/*
 * What the device and its users share. This one is for programs that are built in the source
 * tree: installed under this name is a copy of uapi/linux/hamlyn.h itself, as
 * /usr/include/linux belongs to the kernel's headers.
 */
#include <linux/hamlyn.h>
