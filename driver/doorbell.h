/* SPDX-License-Identifier: GPL-2.0-only */
/* The doorbell. */
#ifndef HML_DOORBELL_H
#define HML_DOORBELL_H

#include <linux/types.h>

struct file;
struct hml_context;
struct io_uring_cmd;

int hml_doorbell_ring(struct hml_context *c, u32 id);
int hml_doorbell_ring_all(struct hml_context *c);
bool hml_doorbell_pending(struct hml_context *c);
int hml_doorbell_uring(struct io_uring_cmd *cmd, unsigned int flags);

/* Never in a kernel tree: fsync() means something else. Without it the call is -EINVAL. */
#ifdef CONFIG_HAMLYN_FSYNC_DOORBELL
int hml_doorbell_fsync(struct file *file, loff_t start, loff_t end, int datasync);
#else
#define hml_doorbell_fsync	NULL
#endif

u32 hml_doorbell_flags(void);

#endif /* HML_DOORBELL_H */
