/* SPDX-License-Identifier: MIT */
/*
 * Aliases of end points: the same end point, but for the flags of calls that have none,
 * fi_endpoint(3). Calls that move data take of one what they take of an end point, its flags, its
 * domain, its matching, and go on with the end point itself, @self, or with a link of it.
 */
#ifndef HAMLYN_OFI_ALIAS_H
#define HAMLYN_OFI_ALIAS_H

#include "endpoint/ep.h"

int hf_alias_open(struct hf_ep *ep, struct fi_alias *alias);

#endif
