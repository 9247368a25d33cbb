/* SPDX-License-Identifier: MIT */
/* What stache_init() was told, with the defaults filled in. Constant afterwards. */
#ifndef STACHE_SETTINGS_H
#define STACHE_SETTINGS_H

#include "stache.h"

extern struct stache_attr stache_settings;

/* Page modes of Stache: of pages whose home is here, and of those cached from others. */
static inline TPPI_PageMode stache_mode_home(void)
{
	return stache_settings.mode;
}

static inline TPPI_PageMode stache_mode_copy(void)
{
	return stache_settings.mode + 1;
}

void stache_settings_read(const struct stache_attr *attr, size_t size);

/* Ends the program if blocks cannot be of this size. */
void stache_check_block(int block_bytes);

#endif /* STACHE_SETTINGS_H */
