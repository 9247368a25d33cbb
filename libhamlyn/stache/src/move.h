/* SPDX-License-Identifier: MIT */
/* A block travels: contents and right to access are one thing, but where tests part them. */
#ifndef STACHE_MOVE_H
#define STACHE_MOVE_H

#include "stache.h"

/* Send a block, after its name and a word, and change its tag here. */
void stache_move_out(TPPI_NodeId dest, TPPI_MessageHandlerPtr handler, int name, int word,
		     int bytes, TPPI_BlkTagChange change);

/* Receive what is left of such a message. */
void stache_move_in(void *va, int bytes, TPPI_BlkTagChange change);

#endif /* STACHE_MOVE_H */
