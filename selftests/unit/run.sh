#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs all unit test programs of a folder as one TAP stream.
set -uo pipefail

usage() {
	cat <<EOF_USAGE
Usage: selftests/unit/run.sh BINARIES-DIR

Runs every program unit_* in BINARIES-DIR, prints their tests as one TAP
stream and ends with the line "N passed, N failed". A program that crashes, is
stopped, leaves out tests or has a sanitizer report counts as one more failed
test, named after the program.

  HAMLYN_TEST_SEED     seed of the random tests, a number (fixed)
  HAMLYN_TEST_TIMEOUT  seconds that a program may take (300)
  HAMLYN_TEST_SCALE    the time is multiplied by it, a whole number (1)

Exit status: 0 when all tests passed, 1 when one failed, 2 for a wrong call.
EOF_USAGE
}

case "${1-}" in
-h | --help)
	usage
	exit 0
	;;
esac
if [ $# -ne 1 ] || [ ! -d "$1" ]; then
	usage >&2
	exit 2
fi

TIMEOUT=$((${HAMLYN_TEST_TIMEOUT:-300} * ${HAMLYN_TEST_SCALE:-1}))
WORK=$(mktemp -d) || exit 2
trap 'rm -rf "$WORK"' EXIT
PASSED=0
FAILED=0

pass() {
	PASSED=$((PASSED + 1))
	echo "ok $((PASSED + FAILED)) - $1"
}

fail() {
	FAILED=$((FAILED + 1))
	echo "not ok $((PASSED + FAILED)) - $1"
}

# Is there anything about a program that its tests do not tell?
verdict() {
	local status=$1 planned=$2 passed=$3 failed=$4

	if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
		echo "stopped after $TIMEOUT s or killed"
	elif [ "$status" -gt 128 ]; then
		echo "ended by signal $((status - 128))"
	elif grep -Eq 'ERROR: [A-Za-z]+Sanitizer|WARNING: ThreadSanitizer|runtime error:' \
		"$WORK/out" "$WORK/err"; then
		echo "sanitizer report"
	elif [ "$planned" -eq 0 ] || [ "$((passed + failed))" -ne "$planned" ]; then
		echo "$((passed + failed)) of $planned tests ran"
	elif [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
		echo "exit status $status"
	fi
}

run_program() {
	local name planned=0 passed=0 failed=0 status line why

	name=$(basename "$1")
	echo "# $name"
	CMOCKA_MESSAGE_OUTPUT=TAP UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1} \
		timeout -k 10 "$TIMEOUT" "$1" \
		>"$WORK/out" 2>"$WORK/err" </dev/null
	status=$?
	while IFS= read -r line; do
		case "$line" in
		1..*)
			planned=${line#1..}
			;;
		"ok "*)
			passed=$((passed + 1))
			pass "$name: ${line#* - }"
			;;
		"not ok "*)
			failed=$((failed + 1))
			fail "$name: ${line#* - }"
			;;
		"#"*)
			echo "$line"
			;;
		*)
			echo "# $line"
			;;
		esac
	done < <(tr -d '\r' <"$WORK/out")
	sed 's/^/# /' "$WORK/err"
	case "$planned" in
	'' | *[!0-9]*) planned=0 ;;
	esac
	why=$(verdict "$status" "$planned" "$passed" "$failed")
	if [ -n "$why" ]; then
		fail "$name: $why"
	fi
}

PROGRAMS=()
for program in "$1"/unit_*; do
	if [ -f "$program" ] && [ -x "$program" ]; then
		PROGRAMS+=("$program")
	fi
done
echo "TAP version 13"
if [ ${#PROGRAMS[@]} -eq 0 ]; then
	fail "no program unit_* in the folder"
fi
for program in ${PROGRAMS[@]+"${PROGRAMS[@]}"}; do
	run_program "$program"
done
echo "1..$((PASSED + FAILED))"
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" -eq 0 ]
