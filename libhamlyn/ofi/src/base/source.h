/* SPDX-License-Identifier: MIT */
/* Descriptors in an epoll set, each with what is to be done when it can be read. */
#ifndef HAMLYN_OFI_SOURCE_H
#define HAMLYN_OFI_SOURCE_H

#include <stdbool.h>

struct hf_source {
	int fd;
	int set;			/* the epoll set that it is in, if it is */
	bool listed;
	void (*ready)(struct hf_source *source);
};

int hf_source_add(struct hf_source *source, int set);
void hf_source_remove(struct hf_source *source);
/* Up to @most that are ready now. */
void hf_source_serve(int set, int most);

#endif
