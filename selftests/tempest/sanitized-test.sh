#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Tempest and Stache as built with the thread sanitizer: whatever the tests do, it has nothing
# to say; and it has if the library's locks order nothing.
set -u

ME=sanitized-test.sh
here=$(dirname "$0")
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$here/../lib/lib.sh"

usage() {
	cat <<USAGE
Usage: selftests/tempest/sanitized-test.sh BUILD-FOLDER

Runs the programs of BUILD-FOLDER/tempest by one process or by two, as they are meant, and those
of BUILD-FOLDER/stache by two; prints TAP. BUILD-FOLDER has what "make sanitized-tests" builds,
and hamlyn-run.
USAGE
}

only_help "$@"
[ $# = 1 ] || {
	usage >&2
	exit 2
}
build=$1

ALONE="tags pages faults late sends overload decoder surroundings wraps ends"
BY_TWO="nodes channels rejected contended"
STACHE="memory sync litmus"
LONGEST=$((60 * ${HAMLYN_TEST_SCALE:-1})) # seconds
REPORTED=99

# The first report ends a program, by a status that no test has. SIGSEGV and SIGBUS are the
# library's, and were so before it: it hands on what it has found.
export TSAN_OPTIONS=exitcode=$REPORTED:halt_on_error=1:die_after_fork=0:handle_segv=0:handle_sigbus=0:atexit_sleep_ms=50
export HAMLYN_DEVICE=shm:sanitized-$$
export HAMLYN_TEST_SECONDS="${HAMLYN_TEST_SECONDS:-1}"

work_folder sanitized-test
out=$work/out

# A program that was killed is still in the middle of what it did.
run() { # COMMAND...
	timeout -k 5 "$LONGEST" "$@" </dev/null >"$out" 2>&1
}

alone() { # PROGRAM TEST...
	program_path=$build/$1
	shift
	run "$program_path" "$@"
}

by_two() { # PROGRAM TEST
	run "$build/hamlyn-run" -n 2 --timeout "$LONGEST" "$build/$1" "$2"
}

silent() {
	! grep -q 'WARNING: ThreadSanitizer' "$out" || {
		cat "$out"
		return 1
	}
}

ends() { # SIGNAL: 0, or what it is to die of; COMMAND...
	signal=$1
	shift
	status=0
	"$@" || status=$?
	silent && died_of "$status" "$signal"
}

# It says why when it gives up
gives_up() { # WORDS COMMAND...
	words=$1
	shift
	"$@" && return 1
	silent && grep -qF "$words" "$out"
}

reports() { # COMMAND...
	status=0
	"$@" || status=$?
	[ "$status" = "$REPORTED" ] && grep -q 'ThreadSanitizer: data race' "$out"
}

of_tempest() { # WORDS-BEHIND-NAMES RUNNER PROGRAM...
	behind=$1
	runner=$2
	shift 2
	for program; do
		"$build/tempest/$program" --list >"$work/list" || exit 2
		while read -r test _ signal _; do
			check "$program: $test$behind" ends "$signal" "$runner" "tempest/$program" "$test"
		done <"$work/list"
	done
}

# shellcheck disable=SC2086 # names without blanks
of_tempest "" alone $ALONE
# shellcheck disable=SC2086
of_tempest " (2 nodes)" by_two $BY_TWO
for program in $STACHE; do
	"$build/stache/$program" --list >"$work/list" || exit 2
	while read -r test _ words; do
		if [ -n "$words" ]; then
			check "$program: $test (2 nodes)" gives_up "$words" by_two "stache/$program" "$test"
		else
			check "$program: $test (2 nodes)" ends 0 by_two "stache/$program" "$test"
		fi
	done <"$work/list"
done

for test in "faults second-meets-busy" "late plain-4" "pages remap-under-stores"; do
	# shellcheck disable=SC2086 # a program and its test
	set -- $test
	check "a report if locks order nothing: $1: $2" \
		reports alone "tempest/$1" "$2" --relaxed
done

total
