#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs parts of the test suite and adds up what they report.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
	cat <<'EOT'
Usage: selftests/check.sh native | static | vm KERNEL | all KERNEL...

  native  unit tests of the core, the selftests on the embedded device, builds
          with gcc and clang, installation
  static  checkpatch, sparse, W=1 builds, kernel-doc, shellcheck and others
  vm      the selftests on the kernel device, in a VM with that kernel
  all     every one of them

Sets up what it needs. Ends with one line "N passed, N failed" and fails if
anything failed or did not report. Logs go to $BUILD/logs (default build/logs).
EOT
}

BUILD=${BUILD:-build}
LOGS=$BUILD/logs
MAKE_QUIET=(make --no-print-directory -s "-j$(nproc)" "BUILD=$BUILD")
passed=0
failed=0
skipped=0

note() {
	printf '\n# ---- %s (%(%H:%M:%S)T)\n' "$*" -1
}

# Runs a command that ends with "N passed, N failed[, N skipped]", and counts.
# A command that does not report, or fails without saying what, is a failure.
part() { # NAME COMMAND...
	local name=$1 log line rc=0
	shift
	note "$name"
	log=$LOGS/${name//[^a-zA-Z0-9.]/-}
	"$@" 2>&1 | tee "$log" | sed -u '$!b; s/^[0-9]* passed, [0-9]* failed.*/# &/' || rc=1
	line=$(tail -n 1 "$log")
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
		[ "$rc" = 0 ] || [ "${BASH_REMATCH[2]}" != 0 ] || failed=$((failed + 1))
	else
		echo "not ok - $name: no result line"
		failed=$((failed + 1))
	fi
}

# One check by its exit status.
one() { # NAME COMMAND...
	local name=$1 log
	shift
	log=$LOGS/${name//[^a-zA-Z0-9.]/-}
	if "$@" >"$log" 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		sed 's/^/# /' "$log" | tail -n 40
		failed=$((failed + 1))
	fi
}

finish() {
	echo
	if [ "$skipped" = 0 ]; then
		echo "$passed passed, $failed failed"
	else
		echo "$passed passed, $failed failed, $skipped skipped"
	fi
	[ "$failed" = 0 ] && [ "$passed" != 0 ]
}

names() { # MAKE-VARIABLE: the test programs it lists
	make --no-print-directory -s "BUILD=$BUILD" "print-$1"
}

check_native() {
	local tests=() guessing=() test
	selftests/setup.sh packages native
	selftests/setup.sh kselftest
	note "builds"
	one "library, tools and examples build with gcc without warnings" \
		"${MAKE_QUIET[@]}" all CFLAGS='-O2 -g -Werror'
	one "library, tools and examples build with clang without warnings" \
		"${MAKE_QUIET[@]}" "BUILD=$BUILD/clang" all CC=clang CFLAGS='-O2 -g -Werror'
	one "unit tests build" "${MAKE_QUIET[@]}" units
	one "selftests build" "${MAKE_QUIET[@]}" selftests
	part "unit tests of the core and of hamlynctl (ASan, UBSan)" \
		selftests/unit/run.sh "$BUILD/unit"
	part "hamlynctl on the host" tools/hamlynctl/test/check.sh "$BUILD/hamlynctl"
	# Some tests guess keys by the thousand, others are about what comes of it.
	for test in $(names TESTS_BOTH) $(names TESTS_SHM); do
		case $test in
		*/conformance*) guessing+=("$test") ;;
		*) tests+=("$test") ;;
		esac
	done
	part "selftests on the embedded device" \
		selftests/run-tests.sh --device "shm:check-$$,guesses=0" "${tests[@]}"
	part "conformance on the embedded device" \
		selftests/run-tests.sh --device "shm:conform-$$" "${guessing[@]}"
	part "installation" selftests/install-test.sh "$BUILD"
}

check_static() {
	selftests/setup.sh packages all
	selftests/setup.sh kernel all
	selftests/setup.sh kselftest
	part "static checks" selftests/static/check.sh
}

# Two boots: the polling engine on two processors, doorbells only on one.
check_vm() { # KERNEL
	local kernel=$1 tests files=() test
	selftests/setup.sh packages native
	selftests/setup.sh packages vm
	selftests/setup.sh qemu
	selftests/setup.sh kernel "$kernel"
	selftests/setup.sh kselftest
	one "library, examples and selftests build" \
		"${MAKE_QUIET[@]}" lib examples selftests hamlynctl-test
	one "module builds for $kernel" "${MAKE_QUIET[@]}" modules "KERNEL=$kernel"
	read -ra tests <<<"$(names TESTS_BOTH) $(names TESTS_KERNEL)"
	for test in "${tests[@]}" selftests/run-tests.sh; do
		files+=(--file "$test")
	done
	vm_part "$kernel" "engine=poll engines=2 nics=2 max_slots=4096" 2
	vm_part "$kernel" "engine=inline nics=2 max_slots=4096" 1
	admin_part "$kernel"
}

# Administration and sight: hamlynctl, netlink, tracepoints.
admin_part() { # KERNEL
	local kernel=$1 out=$LOGS/vm-$1-hamlynctl
	part "hamlynctl, Linux $kernel" vm_run "$out" "$kernel" --timeout 400 \
		--module "$BUILD/k$kernel/hamlyn.ko" --file "$BUILD/k$kernel/hamlyn.ko" \
		--file "$BUILD/hamlynctl" --file "$BUILD/hamlynctl-peer" \
		--file "$BUILD/hamlynctl-pty" \
		--file /lib/terminfo/v/vt100:/lib/terminfo/v/vt100 \
		--script selftests/hamlynctl-test.sh
	part "JSON of hamlynctl, Linux $kernel" \
		tools/hamlynctl/test/schema.py "$out/tap"
	tracing_part "$kernel"
}

tracing_part() { # KERNEL
	local kernel=$1 files=() file
	for file in "$BUILD"/{hello,receive_file,guess_keys,hamlynctl} \
		"$BUILD"/selftests/{lifecycle,nq,poll_wait,limits,hostile_watch,hostile_ticket} \
		Documentation/tracing.rst "$(command -v perf)" "$(command -v trace-cmd)"; do
		[ -z "$file" ] || files+=(--file "$file")
	done
	part "tracepoints, Linux $kernel" vm_run "$LOGS/vm-$kernel-tracing" "$kernel" \
		--timeout 400 --module "$BUILD/k$kernel/hamlyn.ko" \
		--module-args max_slots=4096 "${files[@]}" --script selftests/tracing-test.sh
}

# The last line for the parent must be the total; run.sh talks after it.
vm_run() { # OUT ARGUMENT...
	local out=$1 rc=0
	shift
	selftests/vm/run.sh "$@" --out "$out" |
		sed -u 's/^[0-9]* passed, [0-9]* failed/# &/' || rc=$?
	grep -E '^[0-9]+ passed, [0-9]+ failed' "$out/tap" | tr -d '\r' | tail -n 1
	return "$rc"
}

vm_part() { # KERNEL MODULE-ARGS PROCESSORS; uses tests, files
	local kernel=$1 args=$2 smp=$3 base=()
	local test
	for test in "${tests[@]}"; do
		base+=("${test##*/}")
	done
	part "selftests on the kernel device, Linux $kernel, $args" \
		vm_run "$LOGS/vm-$kernel-${args%% *}" "$kernel" --smp "$smp" --timeout 600 \
		--module "$BUILD/k$kernel/hamlyn.ko" --module-args "$args" \
		--file "$BUILD/k$kernel/hamlyn.ko" "${files[@]}" \
		--script selftests/guest.sh --append "hamlyn.tests=$(IFS=,; echo "${base[*]}")"
}

main() {
	local kernel
	case ${1:-} in
	native | static) [ $# = 1 ] || { usage >&2; exit 2; } ;;
	vm) [ $# = 2 ] || { usage >&2; exit 2; } ;;
	all) ;;
	-h | --help) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
	mkdir -p "$LOGS"
	case $1 in
	native) check_native ;;
	static) check_static ;;
	vm) check_vm "$2" ;;
	all)
		shift
		check_static
		check_native
		for kernel in "$@"; do
			check_vm "$kernel"
		done
		;;
	esac
	finish
}

main "$@"
