#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The selftests on arm64: builds library, tests and module for it, and runs them in its guests.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$REPO_DIR"

KERNEL=6.1-arm64
BUILD=${BUILD:-build}/arm64
LOGS=${BUILD%/arm64}/logs
PARTS=(embedded poll inline)
passed=0
failed=0
skipped=0

usage() {
	cat <<EOF
Usage: selftests/vm/arm64-check.sh [--no-build] [embedded|poll|inline|am]...

Runs the selftests in guests with kernel $KERNEL, and ends with "N passed, N failed".
  embedded     on the embedded device, two processors
  poll         on the kernel device with two polling engines, two processors
  inline       on the kernel device with doorbells only, one processor
  am           Active Messages
Without names: ${PARTS[*]}.
  --no-build   with what was built before
  --tests "T..."   these tests only, of embedded, poll and inline

Products are in \$BUILD/arm64 (build/arm64), logs in \$BUILD/logs. The processor is
emulated on one with a stronger memory order: that the tests pass does not show that
no barrier is missing.
EOF
}

tests_of() { # MAKE-VARIABLE...: names of the programs
	local variable list
	for variable in "$@"; do
		list=$(make --no-print-directory -s "BUILD=$BUILD" "print-$variable")
		printf '%s\n' "$list" | tr ' ' '\n' | sed 's#.*/##' | grep -xE -e "${ONLY:-.+}" || true
	done
}

# run PART TESTS RUN-OPTION...: a boot whose output has totals
run() {
	local name=$1 test tests=() files=() log=$LOGS/vm-$KERNEL-$1 status=0 line
	mapfile -t tests <<<"$2"
	shift 2
	[ -n "${tests[0]}" ] || die 2 "--tests names no test of $name"
	for test in "${tests[@]}"; do
		files+=(--file "$BUILD/selftests/$test")
	done
	mkdir -p "$LOGS"
	selftests/vm/run.sh "$KERNEL" --timeout 900 --out "$log" --file selftests/run-tests.sh \
		"${files[@]}" "$@" | sed -u 's/^[0-9]* passed, [0-9]* failed/# &/' || status=$?
	line=$(tr -d '\r' <"$log/tap" | grep -E '^[0-9]+ passed, [0-9]+ failed' | tail -n 1) || true
	if [[ ! $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)? ]]; then
		printf 'not ok - %s: no result line\n' "$name"
		failed=$((failed + 1))
		return 0
	fi
	passed=$((passed + BASH_REMATCH[1]))
	failed=$((failed + BASH_REMATCH[2]))
	skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
	if [ "$status" != 0 ] && [ "${BASH_REMATCH[2]}" = 0 ]; then
		printf 'not ok - %s ended with an error\n' "$name"
		failed=$((failed + 1))
	fi
}

on_kernel() { # PART PROCESSORS MODULE-ARGS
	local tests
	tests=$(tests_of TESTS_BOTH TESTS_KERNEL)
	run "$1" "$tests" --smp "$2" --module "$BUILD/k$KERNEL/hamlyn.ko" --module-args "$3" \
		--file "$BUILD/k$KERNEL/hamlyn.ko" --script selftests/kernel/guest.sh \
		--append "hamlyn.tests=$(paste -sd, <<<"$tests")"
}

part_poll() { on_kernel poll 2 "engine=poll engines=2 nics=2 max_slots=4096"; }
part_inline() { on_kernel inline 1 "engine=inline nics=2 max_slots=4096"; }

# Those that guess keys by the thousand are held back for it, and others would be with them
part_embedded() {
	local tests
	tests=$(tests_of TESTS_BOTH TESTS_SHM | grep -v '^conformance')
	run embedded "$tests" --smp 2 \
		--cmd "sh ./run-tests.sh --device shm:arm64,guesses=0 $(tr '\n' ' ' <<<"$tests")"
}

part_am() {
	local file files=()
	for file in "$BUILD"/am/* "$BUILD/hamlynctl" selftests/am/am-test.sh selftests/am/am-engine-test.sh \
		selftests/lib/lib.sh selftests/lib/lib.sh:/vm/lib.sh; do
		files+=(--file "$file")
	done
	run am lifecycle --smp 2 --module "$BUILD/k$KERNEL/hamlyn.ko" \
		--module-args "engine=poll engines=1 nics=1 guesses=0" "${files[@]}" \
		--script selftests/am/am-guest.sh
}

build() {
	local targets=(lib selftests) part
	for part in "$@"; do
		[ "$part" != am ] || targets+=(am-tests hamlynctl-test)
	done
	selftests/setup.sh packages arm64
	selftests/setup.sh arm64
	selftests/setup.sh kselftest
	selftests/vm/arm64-make.sh -s "-j$(nproc)" "BUILD=$BUILD" "${targets[@]}"
	make --no-print-directory -s "BUILD=$BUILD" "KERNEL=$KERNEL" modules
}

main() {
	local parts=() build=yes part
	ONLY=
	while [ $# -gt 0 ]; do
		case $1 in
		-h | --help) usage && exit 0 ;;
		--no-build) build=no ;;
		--tests)
			need_value "$1" $#
			ONLY=$(tr -s ' ' '|' <<<"$2")
			shift
			;;
		embedded | poll | inline | am) parts+=("$1") ;;
		*) die 2 "\"$1\" is unknown; see --help" ;;
		esac
		shift
	done
	[ ${#parts[@]} -gt 0 ] || parts=("${PARTS[@]}")
	[ "$build" = no ] || build "${parts[@]}"
	for part in "${parts[@]}"; do
		printf '# ---- %s\n' "$part"
		"part_$part"
	done
	printf '%d passed, %d failed%s\n' "$passed" "$failed" "$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
	[ "$failed" = 0 ] && [ "$passed" != 0 ]
}

main "$@"
