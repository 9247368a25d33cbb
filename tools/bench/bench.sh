#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs the benchmarks and keeps what they say, a file of JSON lines for each
# section. report.py beside this file makes tables of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
	cat <<'END'
Usage: tools/bench/bench.sh [option]... [native | vm | uml | SECTION]...

  native        on this machine, embedded device
  vm            in virtual machines, kernel device (emulated: ratios, instructions)
  uml           kernel device in User-Mode Linux, at native speed
  SECTION       one of those that --list prints
                Without any: native vm uml

  --quick       shorter, and fewer sizes, systems and sections (native only by default)
  --no-setup    everything is installed and built already
  --out DIR     where the results go ($BUILD/bench; with --quick $BUILD/bench-quick)
  --list        prints the sections of each group

$BUILD is build unless it is set. DIR gets SECTION.jsonl and SECTION.log of each
section that was run, and machine.jsonl if whole groups were. A section that fails
says so and makes the exit status 1; the others are run all the same. Results of
sections that are not run stay as they are.
END
}

BUILD=${BUILD:-build}
export BUILD
KERNEL=6.1
RXE_KERNEL=6.1-full
QUICK=no SETUP=yes OUT=''
DEVICE=shm:bench-$$
GUEST_DEVICE=/dev/hamlyn0
WANTED=()
GROUPS_WANTED=no
DONE=() FAILED=() SKIPPED=()

say() { printf '# bench: %s\n' "$*" >&2; }

die() { # STATUS MESSAGE...
	local status=$1
	shift
	printf 'bench.sh: error: %s\n' "$*" >&2
	exit "$status"
}

# ---- the sections: group, name, most seconds, in quick runs ("-": not at all) ----

sections() {
	cat <<'END'
native compare       1800 90
native latency        600 90
native bandwidth      600 90
native huge           300 -
native bytes          120 -
native instructions   300 60
native syscalls        60 30
native scale          600 -
native logp           300 -
native wake           300 60
native group          300 -
native protocols      120 -
native am            1500 -
native am-instructions 60 30
native revoke         300 -
native idle           120 -
native tempest        900 -
vm     vm-compare    1200 300
vm     vm-icount      300 120
vm     vm-syscalls    120 60
vm     vm-scale       600 -
vm     vm-engines     300 -
vm     vm-engines-icount 300 -
vm     vm-wake        300 -
vm     vm-inline      300 -
vm     vm-revoke      600 -
vm     vm-slots       900 -
vm     vm-am          900 -
vm     vm-idle        300 -
uml    uml-selfping   300 120
END
}

list() {
	local group name seconds quick last=''
	while read -r group name seconds quick; do
		[ "$group" = "$last" ] || printf '%s%s:' "${last:+$'\n'}" "$group"
		last=$group
		printf ' %s' "$name"
	done < <(sections)
	echo
}

limit_of() { # SECTION: most seconds
	sections | awk -v name="$1" -v quick="$QUICK" \
		'$2 == name { print quick == "yes" && $4 != "-" ? $4 : $3 }'
}

# ---- what a section runs ----

perf() { "$BUILD/hamlyn-perf" --json --quiet "$@"; }

# Subcommands come and go: which does this hamlyn-perf have?
has() { "$BUILD/hamlyn-perf" --help | awk '/^Commands:/, /^$/ { print $1 }' | grep -qx "$1"; }

# In a virtual machine with the kernel device
guest() { # SECONDS MODULE-ARGS RUN-OPTIONS... -- COMMAND-LINE
	local seconds=$1 args=$2 options=()
	shift 2
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	selftests/vm/run.sh "$KERNEL" --module "$BUILD/k$KERNEL/hamlyn.ko" --module-args "$args" \
		--file "$BUILD/hamlyn-perf" --timeout "$seconds" --out "$OUT/guest-$NAME" \
		"${options[@]}" --cmd "$2"
}

# perf with a /dev/shm of its own that has huge pages, which takes root: without them, and
# with them, when the systems' names say so.
both_pages() {
	local option
	for option in '' --huge; do
		unshare -m sh -c 'mount -t tmpfs -o huge=advise tmpfs /dev/shm && exec "$@"' sh \
			"$BUILD/hamlyn-perf" --json --quiet --device "$DEVICE" ${option:+"$option"} "$@" |
			sed "s/\"system\":\"\(hamlyn\|shm\)\"/\"system\":\"\1${option:+ $option}\"/" || return
	done
}

# Emulated processors need longer from one message to the next than 50 us
AWAKE=idle_us=20000
G="hamlyn-perf --json --quiet --device $GUEST_DEVICE"
# Besides $GUEST_DEVICE, which has one engine
MORE_NICS="hamlynctl nic add engine inline && for n in 2 3 4; do
	hamlynctl nic add engine poll engines \$n idle-us 20000 || exit; done"

run_section() { # NAME SECONDS
	local seconds=$2 quick=() plot=()
	NAME=$1
	mapfile -t plot < <(plot_option)
	case $NAME in
	compare)
		# All systems that are installed
		[ "$QUICK" = no ] || quick=(--quick)
		perf --device "$DEVICE" "${quick[@]}" "${plot[@]}" compare
		;;
	latency)
		[ "$QUICK" = no ] || quick=(--reps 3 --time 30 --sizes "8,16,256,4K")
		perf --device "$DEVICE" "${quick[@]}" --systems hamlyn,fast,hamlyn-block,limit lat
		;;
	bandwidth)
		[ "$QUICK" = no ] || quick=(--reps 3 --time 40 --sizes "4K,64K,1M")
		perf --device "$DEVICE" "${quick[@]}" --systems hamlyn,shm,limit bw
		;;
	huge) both_pages --reps 15 --time 40 --sizes "4K,16K,64K,256K,1M,4M" --systems hamlyn,shm bw ;;
	bytes) both_pages --reps 9 --op bytes scale ;;
	instructions) tools/hamlyn-perf/count.sh --json --perf "$BUILD/hamlyn-perf" ;;
	syscalls) perf --device "$DEVICE" syscalls ;;
	scale | logp | wake | group | protocols | revoke | idle) perf --device "$DEVICE" "$NAME" ;;
	# As it finds the device where users do: without one that is named
	am) tools/am/bench.py --build "$BUILD" "${plot[@]}" ;;
	tempest) tools/bench/tempest.py --build "$BUILD" --json ;;
	am-instructions) tools/am/instructions.py --build "$BUILD" ;;
	vm-am)
		mapfile -t programs < <(printf -- '--file\n%s\n' "$BUILD"/am/* "$BUILD/hamlynctl")
		guest "$seconds" "$AWAKE engines=1 guesses=0" --smp 2 "${programs[@]}" \
			--file tools/am/bench-guest.sh -- "sh ./bench-guest.sh $GUEST_DEVICE"
		;;
	vm-compare) selftests/vm/bench.sh --kernel "$RXE_KERNEL" --build "$BUILD" --timeout "$seconds" ;;
	vm-icount)
		guest "$seconds" engine=inline --icount -- \
			"$G --systems hamlyn,pipe,unix-stream,unix-seqpacket msgloop"
		;;
	vm-scale)
		guest "$seconds" engine=inline --icount -- \
			"for op in termini spread slots; do $G --op \$op --reps 3 --time 20 scale || exit; done"
		;;
	vm-engines)
		# Two processors for the processes, two for the engines
		guest "$seconds" "$AWAKE" --smp 4 --file "$BUILD/hamlynctl" -- \
			"$MORE_NICS; taskset 3 $G --reps 7 --op engines scale"
		;;
	vm-engines-icount)
		# With a single processor a NIC has no engines; with one that is left it keeps them
		guest "$seconds" "$AWAKE" --icount --qemu "-smp 2" --file "$BUILD/hamlynctl" -- \
			"$MORE_NICS; echo 0 >/sys/devices/system/cpu/cpu1/online && $G --op engines scale"
		;;
	vm-syscalls) guest "$seconds" "$AWAKE" -- "$G syscalls --self" ;;
	vm-inline) guest "$seconds" "$AWAKE" -- "$G inline-vs-poll" ;;
	# The senders go on with keys that are void: they must not be held back for it
	vm-revoke) guest "$seconds" "$AWAKE guesses=0" -- "$G revoke" ;;
	vm-slots) guest "$seconds" "engine=inline max_slots=1048576" --mem 3072 -- "$G slots" ;;
	vm-*) guest "$seconds" "$AWAKE" -- "$G ${NAME#vm-}" ;;
	uml-selfping)
		selftests/vm/uml.sh --build "$BUILD" --file "$BUILD/selfping" --timeout "$seconds" \
			--cmd "selfping $GUEST_DEVICE $([ "$QUICK" = no ] && echo 200000 || echo 4000)"
		;;
	*) die 2 "section $NAME is not written" ;;
	esac
}

# The diagram needs gnuplot, and a hamlyn-perf that draws
plot_option() {
	"$BUILD/hamlyn-perf" --help | grep -q -- --plot && command -v gnuplot >/dev/null || return 0
	printf '%s\n' --plot "$OUT/$NAME.svg"
}

# What a section needs of hamlyn-perf; empty: nothing special
subcommand_of() {
	case $1 in
	vm-compare | vm-icount | vm-syscalls | uml-*) ;;
	vm-inline) echo inline-vs-poll ;;
	vm-engines*) echo scale ;;
	latency | bandwidth | huge | bytes | instructions | am | am-instructions | tempest | vm-am) ;;
	vm-*) echo "${1#vm-}" ;;
	*) echo "$1" ;;
	esac
}

# ---- running one ----

# One process group for each section, so that nothing of it is left behind
bounded() { # SECONDS COMMAND...
	local seconds=$1 pid rc=0
	shift
	set -m
	"$@" </dev/null &
	pid=$!
	set +m
	watch_over "$pid" "$seconds" &
	WATCHER=$!
	RUNNING=$pid
	wait "$pid" || rc=$?
	RUNNING=''
	end_watcher
	return "$rc"
}

# Later the number of the group may be another's
end_watcher() {
	[ -n "$WATCHER" ] || return 0
	kill "$WATCHER" 2>/dev/null || true
	wait "$WATCHER" 2>/dev/null || true
	WATCHER=''
}

watch_over() { # GROUP SECONDS
	local sleeping
	# shellcheck disable=SC2064 # the pid as it is now
	sleep "$2" &
	sleeping=$!
	trap 'kill "$sleeping" 2>/dev/null; exit 0' TERM
	wait "$sleeping"
	kill -TERM -- "-$1" 2>/dev/null || return 0
	sleep 10
	kill -KILL -- "-$1" 2>/dev/null || true
}

section() { # NAME
	local name=$1 seconds rc=0 began=$SECONDS need lines
	seconds=$(limit_of "$name")
	need=$(subcommand_of "$name")
	if [ -n "$need" ] && ! has "$need"; then
		say "$name: left out, this hamlyn-perf has no \"$need\""
		SKIPPED+=("$name")
		return 0
	fi
	say "$name: at most $seconds s"
	rm -f "$OUT/$name.jsonl"
	bounded $((seconds + 30)) run_section "$name" "$seconds" \
		>"$OUT/$name.out" 2>"$OUT/$name.log" || rc=$?
	grep '^{' "$OUT/$name.out" >"$OUT/$name.new" || true
	grep -v '^{' "$OUT/$name.out" >>"$OUT/$name.log" || true
	lines=$(wc -l <"$OUT/$name.new")
	rm -f "$OUT/$name.out"
	if [ "$rc" = 0 ] && [ "$lines" != 0 ]; then
		mv "$OUT/$name.new" "$OUT/$name.jsonl"
		DONE+=("$name")
		say "$name: $lines results in $((SECONDS - began)) s"
		return 0
	fi
	[ "$lines" != 0 ] || rm -f "$OUT/$name.new"
	FAILED+=("$name")
	say "$name: FAILED, status $rc after $((SECONDS - began)) s; the end of $OUT/$name.log:"
	tail -n 12 "$OUT/$name.log" | sed 's/^/# | /' >&2
}

# ---- the machine ----

field() { awk -F': *' -v key="$1" '$1 ~ "^" key { print $2; exit }' "$2"; }

machine() {
	local cpu virtual=false commit
	cpu=$(field "model name" /proc/cpuinfo)
	! grep -q '^flags.* hypervisor' /proc/cpuinfo || virtual=true
	commit=$(git describe --always --dirty 2>/dev/null || echo unknown)
	printf '{"test":"machine","cpu":"%s","cores":%d,"virtual":%s,"kernel":"%s","compiler":"%s","memory_mib":%d,"load":%s,"commit":"%s","date":"%s"}\n' \
		"$cpu" "$(nproc)" "$virtual" "$(uname -r)" "$(${CC:-gcc} --version | head -n 1)" \
		"$(($(field MemTotal /proc/meminfo | tr -dc 0-9) / 1024))" \
		"$(cut -d' ' -f1 /proc/loadavg)" "$commit" "$(date -u +%Y-%m-%d)" >"$OUT/machine.jsonl"
}

# ---- set-up ----

is_wanted() { # GROUP
	local name
	for name in "${WANTED[@]}"; do
		[ "$(sections | awk -v n="$name" '$2 == n { print $1 }')" != "$1" ] || return 0
	done
	return 1
}

# Of a set-up that is not complete those sections fail that need it, and say so
try() {
	local rc=0
	"$@" >>"$OUT/setup.log" 2>&1 || rc=$?
	[ "$rc" = 0 ] || say "set-up: \"$*\" failed, see $OUT/setup.log"
}

set_up() {
	local make=(make --no-print-directory -s "BUILD=$BUILD")
	: >"$OUT/setup.log"
	say "set-up, into $OUT/setup.log"
	try selftests/setup.sh packages native
	[ "$QUICK" = yes ] || try selftests/setup.sh packages bench
	try "${make[@]}" tools am am-tests
	try "${make[@]}" peers
	try "${make[@]}" tempest-tests
	if is_wanted vm; then
		try selftests/setup.sh packages vm
		try selftests/setup.sh qemu
		try selftests/setup.sh kernel "$KERNEL"
		try selftests/setup.sh kernel "$RXE_KERNEL"
		try selftests/vm/build-module.sh "$KERNEL" . "$BUILD/k$KERNEL"
	fi
	if is_wanted uml; then
		try selftests/setup.sh packages vm
		try selftests/setup.sh uml
		try "${make[@]}" "$BUILD/selfping"
	fi
}

# ---- main ----

want() { # GROUP or SECTION
	local group name seconds quick found=no
	while read -r group name seconds quick; do
		[ "$1" = "$group" ] || [ "$1" = "$name" ] || continue
		[ "$1" != "$group" ] || GROUPS_WANTED=yes
		found=yes
		[ "$1" = "$group" ] && [ "$QUICK" = yes ] && [ "$quick" = - ] || WANTED+=("$name")
	done < <(sections)
	[ "$found" = yes ] || die 2 "\"$1\" is neither a group nor a section; see --list"
}

parse_options() {
	local words=() word
	while [ $# -gt 0 ]; do
		case $1 in
		-h | --help) usage && exit 0 ;;
		--list) list && exit 0 ;;
		--quick) QUICK=yes ;;
		--no-setup) SETUP=no ;;
		--out)
			[ $# -ge 2 ] || die 2 "--out needs a value"
			OUT=$2
			shift
			;;
		-*) die 2 "option \"$1\" is unknown; see --help" ;;
		*) words+=("$1") ;;
		esac
		shift
	done
	if [ ${#words[@]} = 0 ]; then
		words=(native vm uml)
		[ "$QUICK" = no ] || words=(native)
	fi
	for word in "${words[@]}"; do
		want "$word"
	done
	if [ -z "$OUT" ]; then
		OUT=$BUILD/bench
		[ "$QUICK" = no ] || OUT=$BUILD/bench-quick
	fi
}

RUNNING='' WATCHER=''

# shellcheck disable=SC2317 # called by the trap
stop() {
	[ -z "$RUNNING" ] || kill -TERM -- "-$RUNNING" 2>/dev/null || true
	end_watcher
	exit "$1"
}

main() {
	local name
	parse_options "$@"
	mkdir -p "$OUT"
	trap 'stop 130' INT
	trap 'stop 143' TERM
	[ "$SETUP" = no ] || set_up
	[ -x "$BUILD/hamlyn-perf" ] || die 1 "there is no $BUILD/hamlyn-perf (see $OUT/setup.log)"
	# What tables say of the machine is not to be changed by one of them
	[ "$GROUPS_WANTED" = no ] || machine
	for name in "${WANTED[@]}"; do
		section "$name"
	done
	say "${#DONE[@]} sections done in $SECONDS s; results are in $OUT"
	[ ${#SKIPPED[@]} = 0 ] || say "left out: ${SKIPPED[*]}"
	[ ${#FAILED[@]} = 0 ] || say "FAILED: ${FAILED[*]}"
	[ ${#FAILED[@]} = 0 ]
}

main "$@"
