#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Tempest: each test with both ways to close pages, and with checked code that
# always traps; and each test that has a control without the mechanism that it is about:
# then it must fail.
set -u

ME=tempest-test.sh
here=$(dirname "$0")
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$here/../lib/lib.sh"

usage() {
	cat <<USAGE
Usage: selftests/tempest/tempest-test.sh BUILD-FOLDER [PROGRAM]...

Runs the programs of BUILD-FOLDER/tempest, or those named, by one process; prints TAP.
nodes-test.sh runs those that are about several.
USAGE
}

only_help "$@"
[ $# != 0 ] || {
	usage >&2
	exit 2
}

build=$1/tempest
run=$1/hamlyn-run
examples=$1/tempest-examples
shift
if [ $# = 0 ]; then
	for path in "$here"/*.c "$here"/*.cpp; do
		program=${path##*/}
		program=${program%.*}
		case $program in
		test) ;;     # which all of them are linked with
		figures | transfers) ;; # judge nothing
		stranger | rejected | intruder) ;; # are about other processes of a device
		*) set -- "$@" "$program" ;;
		esac
	done
fi
LONGEST=$((120 * ${HAMLYN_TEST_SCALE:-1})) # seconds

work_folder tempest-test

run() { # PROGRAM TEST [--control]
	timeout "$LONGEST" "$build/$1" "$2" ${3:+"$3"} </dev/null
}

ends() { # PROGRAM TEST SIGNAL: 0, or what it is to die of
	status=0
	run "$1" "$2" || status=$?
	died_of "$status" "$3"
}

# Another crash, or running out of time, is no notice of what is left out.
must_fail() { # PROGRAM TEST SIGNAL: 0, or what it may die of in place of a check that fails
	status=0
	run "$1" "$2" --control || status=$?
	[ "$status" = 1 ] || { [ "$3" != 0 ] && died_of "$status" "$3"; }
}

test_program() { # HOW PROGRAM TEST SIGNAL
	check "$2: $3 ($1)" ends "$2" "$3" "$4"
}

for program; do
	"$build/$program" --list >"$work/list" || exit 2
	while read -r test control signal noticed; do
		for view in userfaultfd mprotect; do
			export HAMLYN_TEMPEST_VIEW=$view
			test_program "$view" "$program" "$test" "$signal"
		done
		unset HAMLYN_TEMPEST_VIEW
		HAMLYN_TEMPEST_CHECKS="trap" test_program "trap" "$program" "$test" "$signal"
		# Its control takes another node: nodes-test.sh
		if [ "$control" = control ] && [ "$program" != contended ]; then
			check "$program: $test fails without what it tests" \
				must_fail "$program" "$test" "$noticed"
		fi
	done <"$work/list"
done

# ---- another build ----

# The same code, by another name: what its data are is not known
other_build() {
	cp "$build/nodes" "$work/other" || return
	at=$(LC_ALL=C grep -obUaP '\x14\0\0\0\x03\0\0\0GNU\0' "$work/other" | head -n 1)
	[ -n "$at" ] || return
	printf XXXX | dd of="$work/other" bs=1 seek=$((${at%%:*} + 12)) conv=notrunc 2>/dev/null
	# shellcheck disable=SC2016 # the variables are those of the shell of a node
	"$run" -n 2 --timeout "$LONGEST" sh -c '[ $PMI_RANK = 0 ] || exec "$1" barriers
		exec "$0" barriers' "$build/nodes" "$work/other" >"$work/out" 2>&1 </dev/null
	grep -q 'runs another program, or another build of it' "$work/out"
}

check "another build is noticed" other_build

# ---- examples ----

says() { # NUMBER PROGRAM LINE
	status=0
	"$run" -n "$1" --timeout "$LONGEST" "$examples/$2" >"$work/out" 2>&1 </dev/null || status=$?
	[ "$status" = 0 ] && [ "$(cat "$work/out")" = "$3" ]
}

for number in 1 2 4; do
	check "example migrate ($number nodes)" says "$number" migrate \
		"$((1000 * number)) counts by $number nodes"
done

total
