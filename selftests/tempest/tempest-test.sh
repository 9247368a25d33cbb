#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Tempest: each test with both ways to close pages, and with checked code that
# always traps; and each test that has a control without the mechanism that it is about:
# then it must fail.
set -u

usage() {
	cat <<USAGE
Usage: selftests/tempest/tempest-test.sh BUILD-FOLDER [PROGRAM]...

Runs the programs of BUILD-FOLDER/tempest, or those named, by one process; prints TAP.
nodes-test.sh runs those that are about several.
USAGE
}

case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
'' | -*)
	usage >&2
	exit 2
	;;
esac

build=$1/tempest
run=$1/hamlyn-run
examples=$1/tempest-examples
shift
if [ $# = 0 ]; then
	for path in "$build"/*; do
		# There is no stranger without a device of others
		[ "${path##*/}" = stranger ] || set -- "$@" "${path##*/}"
	done
fi
LONGEST=$((120 * ${HAMLYN_TEST_SCALE:-1})) # seconds
passed=0
failed=0

out=$(mktemp "${TMPDIR:-/tmp}/hamlyn-tempest-test.XXXXXX") || exit 2
trap 'rm -f "$out" "$out.list" "$out.other"' EXIT
trap 'exit 130' INT TERM

verdict() { # STATUS NAME
	if [ "$1" = 0 ]; then
		echo "ok - $2"
		passed=$((passed + 1))
	else
		head -n 20 "$out" | sed 's/^/# | /'
		echo "not ok - $2"
		failed=$((failed + 1))
	fi
}

run() { # PROGRAM TEST [--control]
	timeout "$LONGEST" "$build/$1" "$2" ${3:+"$3"} >"$out" 2>&1 </dev/null
}

# Not by running out of time: what is left out must be noticed
# Their controls take another node
is_for_several() { # PROGRAM
	case $1 in
	nodes | contended) ;;
	*) return 1 ;;
	esac
}

must_fail() {
	ended=0
	run "$@" || ended=$?
	[ "$ended" != 0 ] && [ "$ended" != 2 ] && [ "$ended" != 124 ]
}

check() { # HOW PROGRAM TEST SIGNAL: 0, or what it is to die of
	status=0
	run "$2" "$3" || status=$?
	if [ "$4" != 0 ]; then
		[ "$status" = $((128 + $4)) ] && status=0 || status=1
	fi
	verdict "$status" "$2: $3 ($1)"
}

for program; do
	"$build/$program" --list >"$out.list" || exit 2
	while read -r test control signal; do
		for view in userfaultfd mprotect; do
			export HAMLYN_TEMPEST_VIEW=$view
			check "$view" "$program" "$test" "$signal"
		done
		unset HAMLYN_TEMPEST_VIEW
		HAMLYN_TEMPEST_CHECKS="trap" check "trap" "$program" "$test" "$signal"
		if [ "$control" = control ] && ! is_for_several "$program"; then
			status=0
			must_fail "$program" "$test" --control || status=$?
			verdict "$status" "$program: $test fails without what it tests"
		fi
	done <"$out.list"
	rm -f "$out.list"
done

# ---- another build ----

# The same code, by another name: what its data are is not known
other_build() {
	cp "$build/nodes" "$out.other" || return
	at=$(LC_ALL=C grep -obUaP '\x14\0\0\0\x03\0\0\0GNU\0' "$out.other" | head -n 1)
	[ -n "$at" ] || return
	printf XXXX | dd of="$out.other" bs=1 seek=$((${at%%:*} + 12)) conv=notrunc 2>/dev/null
	# shellcheck disable=SC2016 # the variables are those of the shell of a node
	"$run" -n 2 --timeout "$LONGEST" sh -c '[ $PMI_RANK = 0 ] || exec "$1" barriers
		exec "$0" barriers' "$build/nodes" "$out.other" >"$out" 2>&1 </dev/null
	grep -q 'runs another program, or another build of it' "$out"
}

status=0
other_build || status=$?
rm -f "$out.other"
verdict "$status" "another build is noticed"

# ---- examples ----

says() { # NUMBER PROGRAM LINE
	status=0
	"$run" -n "$1" --timeout "$LONGEST" "$examples/$2" >"$out" 2>&1 </dev/null || status=$?
	[ "$(cat "$out")" = "$3" ] || status=1
	verdict "$status" "example $2 ($1 nodes)"
}

for number in 1 2 4; do
	says "$number" migrate "$((1000 * number)) counts by $number nodes"
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
