#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the checks of hamlyn-tempest-cc cost, in processor time: small programs (speed.c), then
# Lua and bzip2. Documentation/tempest.rst has a table of it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
ME=speed.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh
# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. selftests/vm/lib.sh

usage() {
	echo "Usage: selftests/tempest-cc/speed.sh [BUILD-FOLDER]  (default: build)"
	echo "Fails if a pointer chase in the segment, or all programs with their data outside of"
	echo "it, take more than 1.5 times as long as without checks."
}

only_help "$@"

BUILD=$(realpath "${1:-build}") || exit 2
CC=$BUILD/tempest-cc/hamlyn-tempest-cc
TURNS=5

[ -x "$BUILD/tempest-cc-tests/speed" ] || die "$BUILD/tempest-cc-tests/speed is missing; run: make all tempest-tests"
selftests/setup.sh sources || die "the sources of Lua and bzip2 are not to be had"
unset HAMLYN_TEMPEST_REPORT
work_folder speed
# shellcheck source-path=SCRIPTDIR source=others.sh
. selftests/tempest-cc/others.sh

seconds() { # COMMAND...: of its own processor time
	local TIMEFORMAT=%U
	{ time CHAOS=0 "$@" >"$work/out" 2>/dev/null; } 2>&1
}

median() {
	sort -n | sed -n "$((TURNS / 2 + 1))p"
}

# In turns, so that a busy machine is so to all of them
measure() { # NAME PROGRAM ARGUMENT...
	local name=$1 program=$2 turn way
	shift 2
	rm -f "$work"/times.*
	for ((turn = 0; turn < TURNS; turn++)); do
		for way in plain checked inside; do
			seconds "$work/$program.$way" "$@" >>"$work/times.$way"
			cp "$work/out" "$work/out.$way"
		done
	done
	for way in checked inside; do
		cmp "$work/out.plain" "$work/out.$way" || die "$name: another result with checks"
	done
	echo "$(median <"$work/times.plain") $(median <"$work/times.checked")" \
		"$(median <"$work/times.inside")" |
		awk -v name="$name" '{ printf "%-26s %9.0f %9.0f %6.2fx %9.0f %6.2fx\n", name,
			1e3 * $1, 1e3 * $2, $2 / $1, 1e3 * $3, $3 / $1; exit $2 > 1.5 * $1 }'
}

status=0
"$BUILD/tempest-cc-tests/speed" || status=1
if ! { build plain "$CC" --plain && build checked "$CC" && build_in_segment inside; }; then
	die "Lua or bzip2 does not build"
fi
for _ in 1 2 3 4; do cat "$LUA"/l*.c; done >"$work/text"
bzip2 -1 -c "$work/text" >"$work/text.bz2" || die "no bzip2"
measure "Lua 5.4" lua selftests/tempest-cc/chaos.lua 40 || status=1
measure "bzip2 -1" bzip2 -1 -c "$work/text" || status=1
measure "bzip2 -d" bzip2 -d -c "$work/text.bz2" || status=1
exit $status
