#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Stache: each test with several numbers of nodes, with both ways to choose homes and to
# close pages; and each test that has controls without one of the mechanisms that it is
# about: then it must fail.
set -u

usage() {
	cat <<USAGE
Usage: selftests/stache/stache-test.sh BUILD-FOLDER [ROUNDS]

Runs the programs of BUILD-FOLDER/stache and the examples; prints TAP. With ROUNDS only the
litmus tests, that many rounds each, and prints how often each result was seen.
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

build=$1/stache
run=$1/hamlyn-run
examples=$1/stache-examples
macros=$1/stache-parmacs
libraries=$1
rounds=${2:-}
LONGEST=$((120 * ${HAMLYN_TEST_SCALE:-1})) # seconds
[ -z "$rounds" ] || LONGEST=$((10 * LONGEST))
passed=0
failed=0

out=$(mktemp "${TMPDIR:-/tmp}/hamlyn-stache-test.XXXXXX") || exit 2
trap 'rm -f "$out" "$out.list"' EXIT
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

on_nodes() { # NUMBER PROGRAM [ARGUMENT]...
	number=$1
	shift
	"$run" -n "$number" --timeout "$LONGEST" "$@" >"$out" 2>&1 </dev/null
}

check() { # NUMBER PROGRAM TEST SIGNAL: 0, or what one of the nodes is to die of
	status=0
	on_nodes "$1" "$build/$2" "$3" || status=$?
	if [ "$4" != 0 ]; then
		[ "$status" = $((128 + $4)) ] && status=0 || status=1
	fi
	verdict "$status" "$2: $3 ($1 nodes${HAMLYN_STACHE_HOMES:+, $HAMLYN_STACHE_HOMES homes})"
}

# Not by running out of time: what is left out must be noticed
must_fail() { # PROGRAM TEST CONTROL
	status=0
	on_nodes 2 "$build/$1" "$2" "$3" || status=$?
	[ "$status" = 1 ] && status=0 || status=1
	verdict "$status" "$1: $2 fails without what it tests ($3)"
}

controls_of() { # PROGRAM TEST CONTROLS
	bit=1
	while [ "$bit" -le "$3" ]; do
		[ $(($3 & bit)) = 0 ] || must_fail "$1" "$2" "$bit"
		bit=$((2 * bit))
	done
}

# Of one test, the litmus tests of all
histograms() {
	export HAMLYN_TEST_ROUNDS="$rounds"
	"$build/litmus" --list >"$out.list" || exit 2
	while read -r test _; do
		for number in 2 3 4; do
			check "$number" litmus "$test" 0
			sed 's/^/# /' "$out"
		done
	done <"$out.list"
}

tests_of() { # PROGRAM
	"$build/$1" --list >"$out.list" || exit 2
	while read -r test controls signal; do
		HAMLYN_STACHE_HOMES=static check 2 "$1" "$test" "$signal"
		HAMLYN_STACHE_HOMES=random check 4 "$1" "$test" "$signal"
		[ "$1" != litmus ] || check 3 "$1" "$test" "$signal"
		controls_of "$1" "$test" "$controls"
	done <"$out.list"
}

example() { # NUMBER PROGRAM
	status=0
	on_nodes "$1" "$examples/$2" || status=$?
	grep -q '^equal to the sequential result' "$out" || status=1
	verdict "$status" "example $2 ($1 nodes, $HAMLYN_STACHE_HOMES homes)"
}

all_examples() {
	for path in "$examples"/*; do
		for HAMLYN_STACHE_HOMES in static random; do
			export HAMLYN_STACHE_HOMES
			for nodes in 1 2 4; do
				example "$nodes" "${path##*/}"
			done
		done
	done
	unset HAMLYN_STACHE_HOMES
	status=0
	on_nodes 2 "$build-controls/hybrid" || status=$?
	grep -q '^NOT EQUAL' "$out" && [ "$status" = 1 ] && status=0 || status=1
	verdict "$status" "example hybrid fails without its pushes"
}

# Processes made by the macros of c.m4.stache; STATUS 0: and their result is right
macros() { # STATUS NUMBER CONTROL PROGRAM ARGUMENT
	status=0
	LD_LIBRARY_PATH=$macros/control:$libraries HAMLYN_TEST_CONTROL=$3 \
		on_nodes "$2" "$macros/$4" "$5" || status=$?
	[ "$1" != 0 ] || grep -q '^equal to the sequential result' "$out" || status=1
	[ "$status" = "$1" ] && status=0 || status=1
	verdict "$status" "macros: $4 $5 ($2 nodes${3:+, without what it tests: $3})"
}

all_macros() {
	for nodes in 1 2 4; do
		macros 0 "$nodes" "" relax "-p$nodes"
		macros 0 "$nodes" "" sort "$nodes"
		macros 0 "$nodes" "" create numbers
		macros 0 "$nodes" "" create exit
	done
	# Without its parent's data a process has a lock in NULL; with those of its libc it is lost
	macros $((128 + 6)) 2 128 relax -p2
	macros $((128 + 6)) 2 128 sort 2
	macros $((128 + 11)) 2 256 relax -p2
	# More processes than nodes
	macros $((128 + 6)) 2 "" relax -p3
	# On a node whose process has called exit(); by a process that was created
	macros $((128 + 6)) 2 "" create again
	macros $((128 + 6)) 2 "" create nested
}

if [ -n "$rounds" ]; then
	histograms
else
	for program in memory sync litmus; do
		tests_of "$program"
	done
	HAMLYN_TEMPEST_VIEW=mprotect check 2 memory own_words 0
	HAMLYN_TEMPEST_VIEW=mprotect check 2 memory replacement_races 0
	HAMLYN_TEMPEST_MEMORY=128K check 2 memory memory_for_homes 0
	all_examples
	all_macros
fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
