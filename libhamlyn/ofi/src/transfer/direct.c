// SPDX-License-Identifier: MIT
#include "transfer/direct.h"

#include <errno.h>
#include <sys/uio.h>

typedef ssize_t (*copy_fn)(pid_t pid, const struct iovec *local, unsigned long locals,
			   const struct iovec *remote, unsigned long remotes, unsigned long flags);

/* A process is where the socket said only if it has there what it said. */
bool hf_direct_probe(pid_t pid, uint64_t address, uint64_t probe)
{
	uint64_t seen = 0;
	const struct iovec local = { .iov_base = &seen, .iov_len = sizeof(seen) };
	const struct iovec remote = { .iov_base = (void *)(uintptr_t)address,
				      .iov_len = sizeof(seen) };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(seen) && seen == probe;
}

/* The kernel may stop in the middle, at a place's end or after 2 GiB: go on from there. */
static int copy(copy_fn call, pid_t pid, const struct hf_span *local,
		const struct hf_place *places, uint32_t count)
{
	struct hf_span remote = { .count = count };
	uint64_t done = 0;

	for (uint32_t i = 0; i < count; i++) {
		remote.iov[i].iov_base = (void *)(uintptr_t)places[i].address;
		remote.iov[i].iov_len = places[i].length;
	}
	while (done < local->length) {
		struct hf_span from, to;
		ssize_t n;

		hf_span_part(local, done, local->length - done, &from);
		hf_span_part(&remote, done, local->length - done, &to);
		n = call(pid, from.iov, from.count, to.iov, to.count, 0);
		if (n < 0)
			return -errno;
		if (!n)
			return -EFAULT;
		done += (uint64_t)n;
	}
	return 0;
}

int hf_direct_get(pid_t pid, const struct hf_span *to, const struct hf_place *from,
		  uint32_t places)
{
	return copy(process_vm_readv, pid, to, from, places);
}

int hf_direct_put(pid_t pid, const struct hf_span *from, const struct hf_place *to,
		  uint32_t places)
{
	return copy(process_vm_writev, pid, from, to, places);
}
