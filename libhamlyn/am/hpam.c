// SPDX-License-Identifier: MIT
/* HPAM (P 4): the calls of hpam.h. */
#include "am.h"

int HPAM_self_address;
int HPAM_partition_size;
int HPAM_reply_dest = -1;

int HPAM_enable(void)
{
	return am_start(&h__am);
}

int HPAM_disable(void)
{
	return am_end(&h__am);
}

int HPAM_poll(void)
{
	return am_poll();
}

const char *HPAM_error(void)
{
	return am_error_text();
}

int HPAM_4(int dest, HPAM_handler_4 fun, unsigned long arg0, unsigned long arg1,
	   unsigned long arg2, unsigned long arg3)
{
	const uint64_t args[AM_WORDS] = { arg0, arg1, arg2, arg3 };

	return am_short_request(&h__am, dest, AM_ARGS_HPAM,
				(void (*)(void))fun, args);
}

int HPAM_reply_4(HPAM_handler_4 fun, unsigned long arg0, unsigned long arg1,
		 unsigned long arg2, unsigned long arg3)
{
	const uint64_t args[AM_WORDS] = { arg0, arg1, arg2, arg3 };

	return am_short_reply(&h__am, HPAM_reply_dest, AM_ARGS_HPAM,
			      (void (*)(void))fun, args);
}

int HPAM_xfer(int dest, const void *local, void *remote, int length,
	      HPAM_handler_xfer fun, void *arg)
{
	return am_memory_store(&h__am, dest, AM_MEMORY_HPAM,
			       (void (*)(void))fun, local, remote, length, arg);
}

int HPAM_reply_xfer(const void *local, void *remote, int length,
		    HPAM_handler_xfer fun, void *arg)
{
	return am_memory_reply(&h__am, HPAM_reply_dest, AM_MEMORY_HPAM,
			       (void (*)(void))fun, local, remote, length, arg);
}

/* Who is lost does not keep the others from getting it. Return: the first error. */
int HPAM_bcast_4(HPAM_handler_4 fun, unsigned long arg0, unsigned long arg1,
		 unsigned long arg2, unsigned long arg3)
{
	int first = am_can_request(&h__am, HPAM_self_address);
	int p;

	for (p = 0; h__am.enabled && p < HPAM_partition_size; p++) {
		int rc = p != HPAM_self_address ?
			 HPAM_4(p, fun, arg0, arg1, arg2, arg3) : 0;

		first = first ? first : rc;
	}
	return first;
}

int HPAM_bcast_xfer(const void *local, void *remote, int length,
		    HPAM_handler_xfer fun, void *arg)
{
	int first = am_can_request(&h__am, HPAM_self_address);
	int p;

	for (p = 0; h__am.enabled && p < HPAM_partition_size; p++) {
		int rc = p != HPAM_self_address ?
			 HPAM_xfer(p, local, remote, length, fun, arg) : 0;

		first = first ? first : rc;
	}
	return first;
}
