// SPDX-License-Identifier: GPL-2.0-only
/* Where the tracepoints are, and what the core's hooks tell them. */
#include "hml.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

void hml_port_trace_notify(const struct hml_nic *nic, const struct hml_nq *nq,
			   const struct hamlyn_nq_entry *e, u32 position,
			   bool lost)
{
	trace_hamlyn_notify(nic, nq, e, position, lost);
}

void hml_trace_down(const struct hml_nic *nic, const struct hamlyn_packet *h,
		    const struct hml_sender *sender)
{
	trace_hamlyn_reject(nic, h, HAMLYN_REJECT_DOWN, sender);
}
