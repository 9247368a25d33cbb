#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Which lines of the core and of the driver the tests execute.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ME=coverage.sh
# shellcheck source-path=SCRIPTDIR source=lib/lib.sh
. selftests/lib/lib.sh

CORE_LEAST=95
DRIVER_LEAST=85
RST=Documentation/coverage.rst
ALL_BOOTS=(poll inline long am admin tracing faults)
BOOT_SECONDS=1500
# Selftests of the boots. What is about load, chance and the library's protocols is in none:
# it executes no line of the driver that others do not, and takes hours on the debug kernel
POLL_TESTS=" conformance_adversary conformance_kernel conformance_notify netlink foreign"
POLL_TESTS+=" gather group hostile_admin hostile_audit hostile_mmap hostile_share hostile_ticket"
POLL_TESTS+=" hostile_watch hostile_wq huge inherit limits paranoid poll_wait send_errors share"
POLL_TESTS+=" tickets nq_sleep uapi_size "
LONG_TESTS=" conformance conformance_beyond conformance_modes fork_kill hostile_guess lifecycle"
LONG_TESTS+=" manager nq protection sendrecv "
# Where it matters that the sender's own system call is the engine
INLINE_TESTS=" conformance_notify hostile_watch hostile_wq poll_wait send_errors nq_sleep "

usage() {
	cat <<EOT
Usage: selftests/coverage.sh core
       selftests/coverage.sh driver [--kernel KERNEL] [--seconds N] [BOOT]...
       selftests/coverage.sh report [--update]
       selftests/coverage.sh uncovered [core | driver]

  core       driver/core: the unit tests, and the selftests on the embedded device, built
             with gcc's --coverage
  driver     driver/, driver/core in it: the module, built with gcov, in a VM with
             KERNEL (debug), which must have CONFIG_GCOV_KERNEL. Each BOOT is counted
             by itself, and all that were done since the driver was last changed are
             added up; without one, all of: ${ALL_BOOTS[*]}.
             None is longer than N seconds ($BOOT_SECONDS): its tests are stopped then,
             which is a failure, and what they executed until then is counted
  report     the tables of what was counted last; --update: into $RST
  uncovered  the lines that were not executed, by function; without a word, those of
             functions that $RST does not name

Both tests end with "N passed, N failed": what the tests said that were run, that the
counts came back, and that at least $CORE_LEAST % of the lines of the core and $DRIVER_LEAST % of those
of driver/ were executed. What was counted is in \$BUILD/coverage (build/coverage).
EOT
}

BUILD=${BUILD:-build}
mkdir -p "$BUILD/coverage"
WORK=$(cd "$BUILD/coverage" && pwd)
LINES=selftests/coverage/lines.py
KERNEL=debug

# Runs what ends with a total; says only what failed, and how long it took.
counted() { # NAME LOG COMMAND...
	local name=$1 log=$2 line begun=$SECONDS before=$failed status=0
	shift 2
	"$@" >"$log" 2>&1 || status=$?
	grep -B 8 '^not ok' "$log" | head -n 100 || true
	line=$(tr -d '\r' <"$log" | grep -E '^[0-9]+ passed, [0-9]+ failed' | tail -n 1 || true)
	echo "# $name: ${line:-no result} ($((SECONDS - begun)) s)"
	if ! add_total "$line"; then
		bad "$name: no result line" "$(excerpt "$log" | cut -c1-200)"
	elif [ "$status" != 0 ] && [ "$failed" = "$before" ]; then
		bad "$name: ended with status $status" "$(tail -n 20 "$log" | cut -c1-200)"
	fi
}

# The table, and whether there is enough of it.
threshold() { # ARGUMENT... of lines.py check
	local output
	output=$("$LINES" check "$@") || true
	sed '$d' <<<"$output"
	add_total "${output##*$'\n'}" || bad "$LINES $*: no result line"
}

finish() {
	echo
	total
}

names() { # FOLDER MAKE-VARIABLE: the programs it lists, in that folder
	make --no-print-directory -s "BUILD=$WORK/$1" "print-$2"
}

# ---- the core, in programs ----

# Counts are atomic, for threads; without optimization, for each line is then itself.
build_core() {
	local flags="--coverage -fprofile-update=atomic -O0 -g" units
	rm -rf "$WORK/native"
	mkdir -p "$WORK/native"
	gcc -c selftests/coverage/exit.c -o "$WORK/native/exit.o"
	read -ra units < <(names native UNITS)
	make --no-print-directory -s "-j$(nproc)" "BUILD=$WORK/native" "CFLAGS=$flags" \
		"SANITIZE=$flags" "TEST_LINK=-Wl,--wrap=_exit $WORK/native/exit.o" \
		selftests "${units[@]}"
}

# As check.sh runs them; all of them are the same user here.
run_embedded() {
	local tests=() guessing=() test
	for test in $(names native TESTS_BOTH) $(names native TESTS_SHM); do
		case $test in
		*/conformance*) guessing+=("$test") ;;
		*) tests+=("$test") ;;
		esac
	done
	counted "selftests on the embedded device" "$WORK/core-selftests.log" \
		selftests/run-tests.sh --device "shm:coverage-$$,guesses=0" "${tests[@]}"
	counted "conformance on the embedded device" "$WORK/core-conformance.log" \
		selftests/run-tests.sh --device "shm:coverage-c-$$" "${guessing[@]}"
}

core() {
	selftests/setup.sh packages native
	selftests/setup.sh kselftest
	build_core >"$WORK/core-build.log" 2>&1 || {
		tail -n 20 "$WORK/core-build.log" >&2
		die "the tests do not build with --coverage"
	}
	export HAMLYN_TEST_SCALE=${HAMLYN_TEST_SCALE:-4}
	counted "unit tests" "$WORK/core-units.log" selftests/unit/run.sh "$WORK/native/unit"
	run_embedded
	"$LINES" collect --gcov gcov --root . --under driver/core --out "$WORK/core.json" \
		"$WORK/native"
	threshold --name "driver/core, natively" --least "$CORE_LEAST" "$WORK/core.json"
	finish
}

# ---- the driver, in a machine ----

# The notes of the compiler belong to this module only: always built anew when its sources
# have changed, and what was counted before goes.
build_driver() {
	local sum
	sum=$({ find driver uapi -type f \( -name '*.[ch]' -o -name Kbuild \) -print0 | sort -z | xargs -0 cat; echo "$KERNEL"; } |
		sha256sum)
	if [ "$sum" = "$(cat "$WORK/module/sum" 2>/dev/null)" ]; then
		return
	fi
	rm -rf "$WORK/module" "$WORK"/boot-*
	selftests/vm/build-module.sh "$KERNEL" . "$WORK/module" GCOV_PROFILE=y \
		>"$WORK/driver-build.log" 2>&1 || {
		tail -n 20 "$WORK/driver-build.log" >&2
		die "the module does not build with GCOV_PROFILE=y for kernel $KERNEL"
	}
	echo "$sum" >"$WORK/module/sum"
}

build_guest() {
	make --no-print-directory -s "-j$(nproc)" "BUILD=$WORK/guest" \
		lib examples selftests hamlynctl-test am-tests am-tools tempest-tests >"$WORK/guest-build.log" 2>&1 || {
		tail -n 20 "$WORK/guest-build.log" >&2
		die "what runs in the guest does not build"
	}
}

# Sets BOOT: the script within coverage-guest.sh, and arguments of run.sh
boot_selftests() { # MODULE-ARGS PROCESSORS " TEST... "
	local test base=() files=()
	for test in $(names guest TESTS_BOTH) $(names guest TESTS_KERNEL); do
		[[ $3 == *" ${test##*/} "* ]] || continue
		base+=("${test##*/}")
		files+=(--file "$test")
	done
	BOOT=(kernel/guest.sh --smp "$2" --module "$WORK/module/hamlyn.ko"
		--module-args "$1" --file "$WORK/module/hamlyn.ko" --file selftests/run-tests.sh
		"${files[@]}" --append "hamlyn.tests=$(IFS=,; echo "${base[*]}")")
}

boot_poll() { boot_selftests "engine=poll engines=2 nics=2 max_slots=4096" 2 "$POLL_TESTS"; }

boot_long() { boot_selftests "engine=poll engines=2 nics=2 max_slots=4096" 2 "$LONG_TESTS"; }

boot_inline() { boot_selftests "engine=inline nics=2 max_slots=4096" 1 "$INLINE_TESTS"; }

boot_am() {
	local file
	BOOT=(am/am-guest.sh --smp 2 --module "$WORK/module/hamlyn.ko"
		--module-args "engine=poll engines=1 nics=1 guesses=0")
	for file in "$WORK"/guest/am/* "$WORK/guest/hamlynctl" selftests/am/am-test.sh \
		selftests/am/am-engine-test.sh selftests/tempest/nodes-test.sh \
		"$WORK"/guest/tempest/{contended,stranger,intruder}; do
		BOOT+=(--file "$file")
	done
}

boot_admin() {
	local file
	BOOT=(tools/hamlynctl-test.sh --module "$WORK/module/hamlyn.ko"
		--file "$WORK/module/hamlyn.ko" --file /lib/terminfo/v/vt100:/lib/terminfo/v/vt100)
	for file in hamlynctl hamlynctl-peer hamlynctl-pty; do
		BOOT+=(--file "$WORK/guest/$file")
	done
}

boot_tracing() {
	local file
	BOOT=(kernel/tracing-test.sh --module "$WORK/module/hamlyn.ko"
		--module-args max_slots=4096)
	for file in "$WORK/guest"/{hello,receive_file,guess_keys,hamlynctl} \
		"$WORK/guest"/selftests/{lifecycle,nq,poll_wait,limits,hostile_watch,hostile_ticket} \
		Documentation/tracing.rst $(command -v perf trace-cmd); do
		BOOT+=(--file "$file")
	done
}

boot_faults() {
	BOOT=(kernel/debug-guest.sh --smp 2 --module "$WORK/module/hamlyn.ko"
		--module-args "engine=poll engines=2 nics=2 max_slots=4096"
		--file "$WORK/module/hamlyn.ko" --file "$WORK/guest/selftests/fail_nth"
		--file "$WORK/guest/selftests/fuzz_calls" --append "HAMLYN_FUZZ_SECONDS=30")
}

boot() { # NAME
	local name=$1 script out=$WORK/boot-$1
	"boot_$name"
	script=${BOOT[0]}
	rm -rf "$out" "$out.json"
	mkdir -p "$out"
	counted "$name" "$out/log" selftests/vm/run.sh "$KERNEL" --out "$out" \
		--timeout $((BOOT_SECONDS + 300)) \
		--script selftests/coverage/coverage-guest.sh --file "selftests/$script" \
		--file selftests/lib/lib.sh "${BOOT[@]:1}" \
		--append "hamlyn.coverage=${script##*/},$BOOT_SECONDS no_timer_check HAMLYN_TEST_SCALE=4"
	if fetch "$out"; then
		good "$name: the counts came back"
	else
		bad "$name: the counts came back" "$(excerpt "$out/log" | cut -c1-200)"
	fi
}

# The notes beside the counts, as gcov wants them.
fetch() { # OUT
	local out=$1 counts
	counts=$out/counts
	mkdir -p "$counts"
	tr -d '\r' <"$out/tap" | sed -n '/^begin coverage$/,/^end coverage$/ { /coverage$/!p }' |
		base64 -d | tar -C "$counts" -xz || return 1
	[ -d "$counts$WORK/module/src/driver" ] || return 1
	(cd "$WORK/module/src" && find driver -name '*.gcno' -print0 |
		tar -c --null -T -) | tar -C "$counts$WORK/module/src" -x
	"$LINES" collect --gcov gcov-12 --root "$WORK/module/src" --under driver \
		--out "$out.json" "$counts"
}

driver() {
	local boots=() name
	while [ $# -gt 0 ]; do
		case $1 in
		--kernel | --seconds)
			[ $# -gt 1 ] || die "$1 needs a value; see --help"
			if [ "$1" = --kernel ]; then
				KERNEL=$2
			else
				number "$1" "$2"
				BOOT_SECONDS=$2
			fi
			shift
			;;
		*)
			[[ " ${ALL_BOOTS[*]} " == *" $1 "* ]] ||
				die "there is no boot \"$1\"; there are: ${ALL_BOOTS[*]}"
			boots+=("$1")
			;;
		esac
		shift
	done
	[ "${#boots[@]}" -gt 0 ] || boots=("${ALL_BOOTS[@]}")
	selftests/setup.sh packages native
	selftests/setup.sh packages vm
	selftests/setup.sh qemu
	selftests/setup.sh kernel "$KERNEL"
	selftests/setup.sh kselftest
	build_driver
	build_guest
	for name in "${boots[@]}"; do
		boot "$name"
	done
	threshold --name "driver/core, in the module" --least "$DRIVER_LEAST" \
		--only 'driver/core/*' "$WORK"/boot-*.json
	threshold --name "driver/" --least "$DRIVER_LEAST" --but 'driver/core/*' "$WORK"/boot-*.json
	finish
}

# ---- what was counted ----

need_counts() { # FILE...
	[ -e "$1" ] || die "nothing was counted yet: $1 is missing; see --help"
}

joined() { # FILE...
	local IFS=,
	echo "$*"
}

report() { # [--update]
	need_counts "$WORK/core.json"
	need_counts "$WORK"/boot-*.json
	if [ "${1-}" = --update ]; then
		"$LINES" update "$RST" "core=$WORK/core.json" "driver=$(joined "$WORK"/boot-*.json)"
		echo "updated $RST"
		return
	fi
	[ $# = 0 ] || die "report knows --update only; see --help"
	"$LINES" check --name "driver/core, natively" --least "$CORE_LEAST" "$WORK/core.json"
	"$LINES" check --name "driver/ and driver/core in it" --least "$DRIVER_LEAST" "$WORK"/boot-*.json
}

uncovered() { # [core | driver]
	case ${1-} in
	core) "$LINES" uncovered "$WORK/core.json" ;;
	driver) "$LINES" uncovered "$WORK"/boot-*.json ;;
	'') "$LINES" uncovered --explained "$RST" "$WORK/core.json" "$WORK"/boot-*.json ;;
	*) die "uncovered knows core and driver; see --help" ;;
	esac
}

main() {
	case ${1-} in
	-h | --help) usage ;;
	core)
		[ $# = 1 ] || die "core takes no words; see --help"
		core
		;;
	driver | report | uncovered) "$@" ;;
	*)
		usage >&2
		exit 2
		;;
	esac
}

main "$@"
