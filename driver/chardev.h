/* SPDX-License-Identifier: GPL-2.0-only */
/* The character device. */
#ifndef HML_CHARDEV_H
#define HML_CHARDEV_H

#include <linux/fs.h>

extern const struct file_operations hml_fops;

#endif /* HML_CHARDEV_H */
