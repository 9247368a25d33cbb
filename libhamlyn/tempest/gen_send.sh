#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tempest/send.h: TPPI_send_W() and all others of up to four items, of an infinite family.
set -eu

exec awk -v most="${1:-4}" '
function parameters(item, i) {
	if (item == "W")
		return "int word" i
	if (item == "Ba")
		return "void *blk_va" i ", int blk_len" i ", TPPI_BlkTagChange chg" i
	if (item == "R")
		return "void *va" i ", int len" i
	return "int bytes" i
}
function arguments(item, i) {
	if (item == "W")
		return "word" i
	if (item == "Ba")
		return "blk_va" i ", blk_len" i ", chg" i
	if (item == "R")
		return "va" i ", len" i
	return "bytes" i
}
function emit(name, given, passed) {
	printf "static inline void TPPI_send_%s(TPPI_NodeId dest, TPPI_MessageHandlerPtr pc%s)\n", \
		name, given
	printf "{\n\tTPPI_send_items(dest, pc, \"%s\"%s);\n}\n\n", name, passed
}
function all(depth, name, given, passed,	k, item) {
	for (k = 1; k <= 4; k++) {
		item = items[k]
		emit(name item, given ", " parameters(item, depth), \
			passed ", " arguments(item, depth))
		if (depth < most)
			all(depth + 1, name item, given ", " parameters(item, depth), \
				passed ", " arguments(item, depth))
	}
}
BEGIN {
	split("W Ba R F", items, " ")
	print "/* SPDX-License-Identifier: MIT */"
	print "/* Made by gen_send.sh. TPPI_send_<items>(), T 3.3.2; longer ones: TPPI_send_items() */"
	print "#ifndef TEMPEST_SEND_H"
	print "#define TEMPEST_SEND_H\n"
	all(1, "", "", "")
	print "#endif /* TEMPEST_SEND_H */"
}'
