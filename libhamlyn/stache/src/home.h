/* SPDX-License-Identifier: MIT */
/* The home of a page: which nodes have its blocks, and who is next. */
#ifndef STACHE_HOME_H
#define STACHE_HOME_H

#include "stache.h"

void stache_home_start(void);

/* Map a page whose home is here, with blocks of this size. */
void stache_home_map(void *page, int block_bytes);

/* Messages: a request (name, enum stache_want, bytes), that a copy is gone (name), a block. */
void stache_home_request(TPPI_NodeId src, int size);
void stache_home_ack(TPPI_NodeId src, int size);
void stache_home_put(TPPI_NodeId src, int size);

#endif /* STACHE_HOME_H */
