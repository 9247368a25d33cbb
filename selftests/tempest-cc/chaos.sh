#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Lua and bzip2, compiled by hamlyn-tempest-cc, with their heaps in a segment whose blocks
# are taken away at random: they have to print what they print without. It finds checks that
# let through what they must not; those that are made too early are found by programs.sh.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. selftests/vm/lib.sh
ME=chaos.sh
# Behind that: both have a die()
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

usage() {
	echo "Usage: selftests/tempest-cc/chaos.sh [BUILD-FOLDER]  (default: build)"
	echo "HAMLYN_CHAOS=N does N times as much (1). Sources are fetched once: selftests/setup.sh sources"
}

only_help "$@"

BUILD=$(realpath "${1:-build}") || exit 2
CC=$BUILD/tempest-cc/hamlyn-tempest-cc
SCRIPT=selftests/tempest-cc/chaos.lua
MUCH=${HAMLYN_CHAOS:-1}
number HAMLYN_CHAOS "$MUCH"
LIMIT=$((300 * MUCH * ${HAMLYN_TEST_SCALE:-1}))

if [ "$(uname -m)" != x86_64 ]; then
	skip "chaos" "hamlyn-tempest-cc is for x86-64"
	total
	exit
fi
[ -x "$CC" ] || die "$CC is missing; run: make"
selftests/setup.sh sources || die "the sources of Lua and bzip2 are not to be had"
unset HAMLYN_TEMPEST_REPORT
work_folder chaos
# shellcheck source-path=SCRIPTDIR source=others.sh
. selftests/tempest-cc/others.sh

want() {
	cat "$LUA"/l[a-c]*.c >"$work/text" &&
		timeout "$LIMIT" "$work/lua.plain" $SCRIPT "$MUCH" >"$work/lua.want" &&
		timeout "$LIMIT" "$work/bzip2.plain" -1 -c "$work/text" >"$work/text.bz2" &&
		[ -s "$work/lua.want" ] && [ -s "$work/text.bz2" ]
}

# By how much was it disturbed? Else it says nothing.
was_chaos() { # LEAST
	cat "$work/err"
	awk -v least="$1" '/^heap:/ { found = $4 >= least && $6 >= least } END { exit !found }' "$work/err"
}

lua() { # SUFFIX
	timeout "$LIMIT" "$work/lua.$1" $SCRIPT "$MUCH" >"$work/out" 2>"$work/err" &&
		cmp "$work/lua.want" "$work/out" && was_chaos 1000
}

compress() { # SUFFIX
	timeout "$LIMIT" "$work/bzip2.$1" -1 -c "$work/text" >"$work/out" 2>"$work/err" &&
		cmp "$work/text.bz2" "$work/out" && was_chaos 1000
}

decompress() { # SUFFIX
	timeout "$LIMIT" "$work/bzip2.$1" -d -c "$work/text.bz2" >"$work/out" 2>"$work/err" &&
		cmp "$work/text" "$work/out" && was_chaos 1000
}

check "Lua and bzip2 build as they are" build plain gcc
check "and print what they are to" want
check "with their heap in the segment, with checks" build_in_segment checked --report "$work/report"
check "Lua" lua checked
check "bzip2 compresses" compress checked
check "bzip2 decompresses" decompress checked
check "with their heap in the segment, without checks" build_in_segment trapped --plain
check "Lua, without checks" lua trapped
check "bzip2 decompresses, without checks" decompress trapped
sed -n 's/.*: \([0-9]*\) checked, \([0-9]*\) left plain$/\1 \2/p' "$work/report" |
	awk '{ checked += $1; plain += $2 }
		END { print "# " checked " accesses are checked, " plain " left plain" }'
total
