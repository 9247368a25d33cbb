#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# For sends.c: SEND(types, parameters) for each list of up to four items. The parameters of
# an item are those that sends.c has for its place.
set -eu

exec awk '
function all(depth, name, passed,	k, given) {
	for (k = 1; k <= 4; k++) {
		given = passed ", " items[k] "(" depth ")"
		printf "SEND(%s%s)\n", name items[k], given
		if (depth < 4)
			all(depth + 1, name items[k], given)
	}
}
BEGIN {
	split("W Ba R F", items, " ")
	print "/* Made by gen_sends.sh. */"
	all(1, "", "")
}'
