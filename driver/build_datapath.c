// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a message passes through, compiled in one piece: calls between these files, and saving
 * registers for them, took a tenth of all instructions of a short message.
 */
#include "hml.h"
#include "trace.h"

#include "core/guard.c"
#include "core/link.c"
#include "core/notify.c"
#include "core/rx.c"
#include "core/tx.c"
#include "engine/grace.c"
#include "fabric/fabric.c"
#include "fabric/loop.c"
#include "engine/datapath.c"
#include "doorbell.c"
