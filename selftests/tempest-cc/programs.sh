#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# hamlyn-tempest-cc with the library: programs do the same with checks, without them, and
# where all checks trap, on one node and on several; and no store that it has checked comes
# late.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
ME=programs.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

usage() {
	echo "Usage: selftests/tempest-cc/programs.sh [--brief] [BUILD-FOLDER]  (default: build)"
	echo "--brief: without variants"
}

LEVELS=(-O0 -O2 -O3 "-O2 -static" "-Os -fno-omit-frame-pointer")
LATE=(checked-1 checked-4 checked-read-only)
LATE_MORE=(checked-8-storm checked-storm checked-hog upgrade-checked)
brief=no
if [ "${1:-}" = --brief ]; then
	brief=yes
	LEVELS=(-O0 -O3)
	LATE=(checked-1 checked-read-only)
	LATE_MORE=(checked-8-storm)
	shift
fi
only_help "$@"

BUILD=$(realpath "${1:-build}") || exit 2
CC=$BUILD/tempest-cc/hamlyn-tempest-cc
CXX=$BUILD/tempest-cc/hamlyn-tempest-c++
RUN=$BUILD/hamlyn-run
EXAMPLES=libhamlyn/tempest/examples
HERE=selftests/tempest-cc
LIMIT=$((60 * ${HAMLYN_TEST_SCALE:-1}))

if [ "$(uname -m)" != x86_64 ]; then
	skip "programs by hamlyn-tempest-cc" "it is for x86-64"
	total
	exit
fi
for needed in "$CC" "$RUN" "$BUILD/tempest-cc-tests/late"; do
	[ -x "$needed" ] || die "$needed is missing; run: make all tempest-tests"
done
unset HAMLYN_TEMPEST_REPORT
work_folder tempest-cc

on() { # NODES PROGRAM...
	"$RUN" -n "$1" --timeout "$LIMIT" "${@:2}" </dev/null
}

# ---- the command line ----

# The library is where make has put it, or that is said.
names_what_is_missing() {
	mkdir "$work/alone" && cp -P "$BUILD"/tempest-cc/{as,hamlyn-tempest-cc} "$work/alone" &&
		! "$work/alone/hamlyn-tempest-cc" "$EXAMPLES/migrate.c" -o "$work/nothing" \
			2>"$work/err" &&
		grep -q 'libhamlyn-tempest is not in .*: run make' "$work/err"
}

# With nothing to link, nothing is linked.
asks_only() {
	"$CC" -v 2>"$work/err" && grep -q '^gcc version' "$work/err" &&
		[ "$("$CC" -dumpmachine)" = "$(gcc -dumpmachine)" ] &&
		echo 'int f(int *p) { return *p; }' >"$work/f.c" &&
		"$CC" -O2 -r -o "$work/f.o" -x c "$work/f.c" &&
		! nm "$work/f.o" | grep TPPI >/dev/null &&
		"$CC" -O2 -nostdlib -e f -o "$work/f" "$work/f.c" -Wl,--defsym=__tempest_rseq_cs_1=0,--defsym=__tempest_loop_1=0 &&
		! nm "$work/f" | grep TPPI >/dev/null
}

check "a library that is not there is named" names_what_is_missing
check "without files, -r, -nostdlib: no library" asks_only

# ---- the same results ----

example() { # OPTION...
	rm -f "$work/report"
	"$CC" "$@" -O2 --report "$work/report" "$EXAMPLES/migrate.c" -o "$work/migrate" || return 1
	for nodes in 1 2; do
		for checks in rseq trap; do
			[ "$(HAMLYN_TEMPEST_CHECKS=$checks on $nodes "$work/migrate")" = \
				"$((1000 * nodes)) counts by $nodes nodes" ] || return 1
		done
	done
}

# All that it does in the segment is checked.
nothing_left() {
	example -g && grep -q ': [1-9][0-9]* checked, 0 left plain' "$work/report"
}

check "the example migrate, of which nothing is left plain" nothing_left
check "the same, --plain" example --plain
if [ "$brief" = no ]; then
	check "the same, static" example -static
	check "the same, -flto" example -flto
fi
if command -v clang >/dev/null; then
	check "the same, by clang" example --compiler clang
else
	skip "the same, by clang" "clang is not installed"
fi

build_nodes() { # OUTPUT OPTION...
	"$CXX" -g -Wall -I"$EXAMPLES" "${@:2}" $HERE/nodes.cc -o "$1"
}

reference() {
	build_nodes "$work/plain" --plain -O2 &&
		on 1 "$work/plain" >"$work/want.1" && on 2 "$work/plain" >"$work/want.2" &&
		[ "$(wc -l <"$work/want.2")" = 1 ] && ! cmp -s "$work/want.1" "$work/want.2"
}

same() { # OPTION...
	rm -f "$work/report"
	build_nodes "$work/nodes" --report "$work/report" "$@" || return 1
	cat "$work/report"
	for nodes in 1 2; do
		for checks in rseq trap; do
			HAMLYN_TEMPEST_CHECKS=$checks on $nodes "$work/nodes" >"$work/out" &&
				cmp "$work/want.$nodes" "$work/out" || return 1
		done
	done
}

assembly_is_told_of() {
	grep -q "nodes.cc:[0-9]*: plain: assembly of the program's own: addq" "$work/report"
}

check "exceptions, setjmp, atomics and assembly in threads of two nodes, --plain" reference
for options in "${LEVELS[@]}"; do
	# shellcheck disable=SC2086 # several words
	check "and with checks, $options" same $options
done
check "the program's own assembly is left plain, and the report says so" assembly_is_told_of

# ---- late stores ----

passes() { # PROGRAM TEST
	HAMLYN_TEST_SECONDS=1 timeout "$LIMIT" "$BUILD/tempest-cc-tests/$1" "$2"
}

# Without what the test is about
notices() { # PROGRAM TEST
	local status=0
	timeout "$LIMIT" "$BUILD/tempest-cc-tests/$1" "$2" --control || status=$?
	[ "$status" = 1 ]
}

for test in "${LATE[@]}"; do
	check "late: $test" passes late "$test"
	check "late: $test fails without membarrier" notices late "$test"
done
for test in "${LATE_MORE[@]}"; do
	check "late: $test" passes late "$test"
done

# ---- loops ----

while read -r test control _; do
	check "loops: $test" passes loops "$test"
	HAMLYN_TEMPEST_VIEW="mprotect" check "loops: $test (mprotect)" passes loops "$test"
	[ "$control" != control ] || check "loops: $test fails without what it tests" notices loops "$test"
done < <("$BUILD/tempest-cc-tests/loops" --list)

# Checks that enter no section are found by that.
late_without_sections() {
	local status=0 rest
	mapfile -t rest < <(find tools/tempest-cc -name '*.c' ! -name emit.c)
	mkdir "$work/bad" &&
		sed 's/movq \$\.Ltp%u_cs, %%fs:(%s)/leaq .Ltp%u_cs(%%rip), %s/' \
			tools/tempest-cc/emit.c >"$work/emit.c" &&
		! cmp -s tools/tempest-cc/emit.c "$work/emit.c" &&
		gcc -w -D_GNU_SOURCE -Itools/tempest-cc -Ilibhamlyn/tempest/src \
			-I"$BUILD/obj/tempest-cc" "$work/emit.c" "${rest[@]}" \
			-o "$work/bad/hamlyn-tempest-cc" &&
		ln -s hamlyn-tempest-cc "$work/bad/as" &&
		make -s "BUILD=$BUILD" "TEMPEST_CC=$work/bad/hamlyn-tempest-cc" \
			"TEMPEST_CC_AT=$work/tests" "$work/tests/late" || return 1
	HAMLYN_TEST_SECONDS=30 timeout "$LIMIT" "$work/tests/late" checked-1 || status=$?
	[ "$status" = 1 ]
}

check "late: checked-1 fails if checks enter no section" late_without_sections

# ---- a block that is taken all the time ----

on_nodes() { # NODES [--control]
	HAMLYN_TEST_SECONDS=1 on "$1" "$BUILD/tempest-cc-tests/contended" counts "${@:2}"
}

contended_without() {
	local status=0
	on_nodes 2 --control || status=$?
	[ "$status" = 1 ]
}

contended_traps() {
	HAMLYN_TEMPEST_CHECKS="trap" on_nodes 2
}

check "two threads count in a block, 1 node" on_nodes 1
check "and on 2 nodes" on_nodes 2
check "and where all checks trap" contended_traps
check "which fails without membarrier and the wait for announced accesses" contended_without
total
