#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Stache: each test by 2 nodes with static homes and by 4 with random ones, two of them with
# the other way to close pages, too; and each test that has controls without one of the
# mechanisms that it is about: then it must fail.
set -u

ME=stache-test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

usage() {
	cat <<USAGE
Usage: selftests/stache/stache-test.sh BUILD-FOLDER [ROUNDS]

Runs the programs of BUILD-FOLDER/stache and the examples; prints TAP. With ROUNDS only the
litmus tests, that many rounds each, and prints how often each result was seen.
USAGE
}

only_help "$@"
[ $# != 0 ] || {
	usage >&2
	exit 2
}

build=$1/stache
run=$1/hamlyn-run
examples=$1/stache-examples
macros=$1/stache-parmacs
libraries=$1
rounds=${2:-}
LONGEST=$((120 * ${HAMLYN_TEST_SCALE:-1})) # seconds
ABORTED=$((128 + 6))
[ -z "$rounds" ] || LONGEST=$((10 * LONGEST))

work_folder stache-test
out=$work/out

on_nodes() { # NUMBER PROGRAM [ARGUMENT]...
	number=$1
	shift
	"$run" -n "$number" --timeout "$LONGEST" "$@" >"$out" 2>&1 </dev/null
}

# Signals alone do not tell: the library says why it gives up
died_with() { # STATUS WORDS
	[ "$1" = "$ABORTED" ] && grep -qF "$2" "$out"
}

ends() { # NUMBER PROGRAM TEST WORDS: 0, or with these one of the nodes gives up
	status=0
	on_nodes "$1" "$build/$2" "$3" || status=$?
	if [ -n "$4" ]; then
		died_with "$status" "$4"
	else
		[ "$status" = 0 ]
	fi
}

test_program() { # NUMBER PROGRAM TEST WORDS
	check "$2: $3 ($1 nodes${HAMLYN_STACHE_HOMES:+, $HAMLYN_STACHE_HOMES homes})" ends "$@"
}

# Not by running out of time: what is left out must be noticed
fails_without() { # PROGRAM TEST CONTROL
	status=0
	on_nodes 2 "$build/$1" "$2" "$3" || status=$?
	[ "$status" = 1 ]
}

must_fail() { # PROGRAM TEST CONTROL
	check "$1: $2 fails without what it tests ($3)" fails_without "$@"
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
	"$build/litmus" --list >"$work/list" || exit 2
	while read -r test _; do
		for number in 2 3 4; do
			test_program "$number" litmus "$test" ""
			sed 's/^/# /' "$out"
		done
	done <"$work/list"
}

tests_of() { # PROGRAM
	"$build/$1" --list >"$work/list" || exit 2
	while read -r test controls words; do
		HAMLYN_STACHE_HOMES=static test_program 2 "$1" "$test" "$words"
		HAMLYN_STACHE_HOMES=random test_program 4 "$1" "$test" "$words"
		[ "$1" != litmus ] || test_program 3 "$1" "$test" "$words"
		controls_of "$1" "$test" "$controls"
	done <"$work/list"
}

equals() { # NUMBER PROGRAM
	status=0
	on_nodes "$1" "$2" || status=$?
	[ "$status" = 0 ] && grep -q '^equal to the sequential result' "$out"
}

example() { # NUMBER PROGRAM
	check "example $2 ($1 nodes, $HAMLYN_STACHE_HOMES homes)" equals "$1" "$examples/$2"
}

differs() { # NUMBER PROGRAM
	status=0
	on_nodes "$1" "$2" || status=$?
	[ "$status" = 1 ] && grep -q '^NOT EQUAL' "$out"
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
	check "example hybrid fails without its pushes" differs 2 "$build-controls/hybrid"
}

ends_so() { # STATUS NUMBER CONTROL PROGRAM ARGUMENT [WORDS]; STATUS 0: and its result is right
	status=0
	LD_LIBRARY_PATH=$macros/control:$libraries HAMLYN_TEST_CONTROL=$3 \
		on_nodes "$2" "$macros/$4" "$5" || status=$?
	[ "$status" = "$1" ] || return
	[ -z "${6:-}" ] || died_with "$status" "$6" || return
	[ "$1" != 0 ] || grep -q '^equal to the sequential result' "$out"
}

# Processes made by the macros of c.m4.stache
macros() { # STATUS NUMBER CONTROL PROGRAM ARGUMENT [WORDS]
	check "macros: $4 $5 ($2 nodes${3:+, without what it tests: $3})" ends_so "$@"
}

all_macros() {
	for nodes in 1 2 4; do
		macros 0 "$nodes" "" relax "-p$nodes"
		macros 0 "$nodes" "" sort "$nodes"
		macros 0 "$nodes" "" create numbers
		macros 0 "$nodes" "" create exit
	done
	# Without its parent's data a process has a lock in NULL; with those of its libc it is lost
	macros "$ABORTED" 2 128 relax -p2 "neither in the segment"
	macros "$ABORTED" 2 128 sort 2 "neither in the segment"
	macros $((128 + 11)) 2 256 relax -p2
	# More processes than nodes
	macros "$ABORTED" 2 "" relax -p3 "one process more"
	# On a node whose process has called exit(); by a process that was created
	macros "$ABORTED" 2 "" create again "one process more"
	macros "$ABORTED" 2 "" create nested "creates another"
	macros "$ABORTED" 2 "" create waits "waits for others"
}

if [ -n "$rounds" ]; then
	histograms
else
	for program in memory sync litmus; do
		tests_of "$program"
	done
	HAMLYN_TEMPEST_VIEW=mprotect test_program 2 memory own_words ""
	HAMLYN_TEMPEST_VIEW=mprotect test_program 2 memory replacement_races ""
	HAMLYN_TEMPEST_MEMORY=128K test_program 2 memory memory_for_homes ""
	for pages in " 32" +32 -32 32K 0 4294967296; do
		HAMLYN_STACHE_PAGES=$pages test_program 1 memory counts "which is no number"
	done
	all_examples
	all_macros
fi

total
