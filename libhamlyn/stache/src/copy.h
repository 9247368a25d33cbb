/* SPDX-License-Identifier: MIT */
/* Pages of other homes: blocks that are cached here. */
#ifndef STACHE_COPY_H
#define STACHE_COPY_H

#include <stdbool.h>

#include "stache.h"

void stache_copy_start(void);

/* Map a page of another home; others may have to go for it. */
void stache_copy_map(void *page, TPPI_NodeId home, int block_bytes);

/* Give up the oldest page that can be; false if there is none. Handlers only. */
bool stache_copy_replace(void);

/* Messages of the home, each with the block's name: answers to requests, and */
void stache_copy_readable(TPPI_NodeId src, int size);
void stache_copy_writable(TPPI_NodeId src, int size);
void stache_copy_upgraded(TPPI_NodeId src, int size);
/* what others need: an end of copies; the block itself, to be kept for reading if not 0 */
void stache_copy_invalidate(TPPI_NodeId src, int size);
void stache_copy_recall(TPPI_NodeId src, int size);

#endif /* STACHE_COPY_H */
