// SPDX-License-Identifier: MIT
#include "base/source.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

int hf_source_add(struct hf_source *source, int set)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

	if (epoll_ctl(set, EPOLL_CTL_ADD, source->fd, &event))
		return -errno;
	source->set = set;
	source->listed = true;
	return 0;
}

void hf_source_remove(struct hf_source *source)
{
	if (source->listed)
		epoll_ctl(source->set, EPOLL_CTL_DEL, source->fd, NULL);
	source->listed = false;
}

/* One at a time: a source that is ready may take another with it. */
void hf_source_serve(int set, int most)
{
	struct epoll_event event;

	while (most-- && epoll_wait(set, &event, 1, 0) == 1) {
		struct hf_source *source = event.data.ptr;

		/* Others are in the set only to end a sleep. */
		if (source)
			source->ready(source);
	}
}
