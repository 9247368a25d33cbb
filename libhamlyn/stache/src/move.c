// SPDX-License-Identifier: MIT
#include <unistd.h>

#include "block.h"
#include "control.h"
#include "move.h"

void stache_move_out(TPPI_NodeId dest, TPPI_MessageHandlerPtr handler, int name, int word,
		     int bytes, TPPI_BlkTagChange change)
{
	void *va = stache_block_va(name);

	if (CONTROL(CONTROL_TAG_LAST)) {
		TPPI_send_WWR(dest, handler, name, word, va, bytes);
		usleep(100);	/* so that a store in between need not be waited for */
		TPPI_change_blk_acc(va, bytes, change);
		return;
	}
	TPPI_send_WWBa(dest, handler, name, word, va, bytes, change);
}

void stache_move_in(void *va, int bytes, TPPI_BlkTagChange change)
{
	if (CONTROL(CONTROL_TAG_FIRST)) {
		TPPI_change_blk_acc(va, bytes, change);
		usleep(1000);	/* the copy alone takes 100 ns, and few would be there just then */
		TPPI_recv_R(va, bytes);
		return;
	}
	TPPI_recv_Ba(va, bytes, change);
}
