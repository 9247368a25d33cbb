#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The demo: a file goes from one process to another that does not trust it,
# first on the embedded device, then on the kernel device in a virtual machine
# with a user for each process, then between two machines. "make demo" builds what
# it needs and runs it.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REPO=$(cd "$HERE/../.." && pwd)
BUILD=$REPO/build
KERNEL=6.1
PARTS="native vm count hosts"
MIB=64
HOSTS_MIB=8
VM_TIMEOUT=100
PROGRAMS=(receive_file send_file guess_keys hamlyn-perf)

usage() {
	cat <<EOF
usage: demo.sh [--build DIR] [--kernel VERSION] [--mib N] [--native | --vm | --hosts]

Shows the main job of this project, in under three minutes.
  --build DIR       where make put the programs and the module (default: build)
  --kernel VERSION  kernel to boot, as selftests/vm/run.sh knows it (default: $KERNEL)
  --mib N           size of the file, 1 to 128 MiB (default: $MIB)
  --native          only the part on the embedded device
  --vm              only the part on the kernel device
  --hosts           only the part between two machines, with a file of $HOSTS_MIB MiB
EOF
}

die() {
	printf 'demo: %s\n' "$*" >&2
	exit 1
}

parse_options() {
	while [ $# -gt 0 ]; do
		case $1 in
		--help | -h) usage && exit 0 ;;
		--native) PARTS=native ;;
		--vm) PARTS="vm count" ;;
		--hosts) PARTS=hosts ;;
		--build | --kernel | --mib)
			[ $# -gt 1 ] || die "$1 needs a value (see --help)"
			case $1 in
			--build) BUILD=$2 ;;
			--kernel) KERNEL=$2 ;;
			--mib) MIB=$2 ;;
			esac
			shift
			;;
		*) die "no option is called \"$1\" (see --help)" ;;
		esac
		shift
	done
	if ! [[ $MIB =~ ^[1-9][0-9]{0,2}$ ]] || [ "$MIB" -gt 128 ]; then
		die "--mib takes a number from 1 to 128, not \"$MIB\""
	fi
	[ -d "$BUILD" ] || die "there is no folder $BUILD: run \"make\" first"
	BUILD=$(cd "$BUILD" && pwd)
}

need_program() {
	[ -x "$BUILD/$1" ] || die "there is no program $BUILD/$1: run \"make\" first"
}

title() {
	printf '\n================ %s\n' "$*"
}

# run_part NAME COMMAND...: shows what it prints, keeps its figures in NAME.log
run_part() {
	local name=$1 status=0
	shift
	"$@" 2>&1 | tee "$WORK/$name.log" | sed -u '/^@ /d' || status=$?
	[ "$status" = 0 ] || die "the $name part failed (status $status)"
}

native_part() {
	local dir=$WORK/native program
	for program in "${PROGRAMS[@]}"; do need_program "$program"; done
	mkdir -p "$dir/in" "$dir/out" "$dir/offer"
	title "1. Embedded device: processes of one user, no privilege, no module"
	run_part native env PATH="$BUILD:$PATH" DEVICE="shm:demo-$$" WORK="$dir" MIB="$MIB" \
		sh "$HERE/steps.sh"
	rm -rf "$dir"
}

vm_part() {
	local files=() program
	for program in "${PROGRAMS[@]}" hamlynctl as_user; do
		need_program "$program"
		files+=(--file "$BUILD/$program")
	done
	[ -f "$BUILD/hamlyn.ko" ] ||
		die "there is no module $BUILD/hamlyn.ko: run \"make modules KERNEL=$KERNEL\" first"
	title "2. Kernel device: Linux $KERNEL in a virtual machine, a user for each process"
	echo "(booting; the processors are emulated, so times mean nothing here)"
	{
		echo "MIB=$MIB; export MIB"
		cat "$HERE/guest.sh"
	} >"$WORK/guest.sh"
	run_part vm "$REPO/selftests/vm/run.sh" "$KERNEL" --timeout "$VM_TIMEOUT" \
		--module "$BUILD/hamlyn.ko" "${files[@]}" \
		--file "$HERE/steps.sh:/host/steps.sh" --script "$WORK/guest.sh"
}

hosts_part() {
	local program
	for program in receive_file send_file hamlynctl as_user; do need_program "$program"; done
	[ -f "$BUILD/hamlyn.ko" ] ||
		die "there is no module $BUILD/hamlyn.ko: run \"make modules KERNEL=$KERNEL\" first"
	title "3. Between hosts: two virtual machines, joined by a virtual cable"
	echo "(booting both; one of them becomes hostile, and its cable is pulled)"
	run_part hosts env "BUILD=$BUILD" "KERNEL=$KERNEL" "MIB=$HOSTS_MIB" "HERE=$HERE" "REPO=$REPO" \
		"VM_TIMEOUT=$VM_TIMEOUT" bash "$HERE/hosts.sh"
	[ "$(figure hosts original)" = "$(figure hosts received)" ] ||
		die "the file did not arrive as it was sent"
}

# With one processor whose clock counts instructions, figures are exact.
count_part() {
	need_program hamlyn-perf
	title "2, once more: instructions for 16 bytes, user and kernel together"
	echo "(booting; one thread sends to itself, the kernel's part of it included)"
	run_part count "$REPO/selftests/vm/run.sh" "$KERNEL" --icount --timeout "$VM_TIMEOUT" \
		--module "$BUILD/hamlyn.ko" --file "$BUILD/hamlyn-perf" \
		--cmd "hamlyn-perf --csv msgloop --systems hamlyn,pipe,unix-stream"
}

# instructions SYSTEM
instructions() {
	local value
	value=$(awk -F, -v name="$1" '$1 == name && $2 == "msgloop" { printf "%.0f", $4 }' \
		"$WORK/count.log")
	[ -n "$value" ] || die "the count part did not tell the instructions of $1"
	printf '%s\n' "$value"
}

# figure PART NAME
figure() {
	local value
	value=$(sed -n "s/^@ $2 //p" "$WORK/$1.log" | tail -n 1)
	[ -n "$value" ] || die "the $1 part did not tell its $2"
	printf '%s\n' "$value"
}

# times A B: A divided by B, for people
times() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.*f", a / b < 10 ? 1 : 0, a / b }'
}

# duration NS
duration() {
	awk -v ns="$1" 'BEGIN { if (ns < 1000) printf "%.0f ns", ns; else printf "%.1f us", ns / 1000 }'
}

job_summary() { # PART DEVICE SENDER CONDITION
	local bytes seconds speed sum guesses near refused held calls
	bytes=$(figure "$1" bytes)
	seconds=$(figure "$1" seconds)
	speed=$(figure "$1" speed)
	sum=$(figure "$1" sha256)
	guesses=$(figure "$1" guesses)
	near=$(figure "$1" near)
	refused=$(figure "$1" refused)
	held=$(figure "$1" held)
	calls=$(figure "$1" syscalls)
	cat <<EOF

On $2:
  * $3 streamed $bytes bytes into the memory of another process in
    $seconds s, $speed MB/s with both ends computing SHA-256. The sums of the
    original, of what was sent, of what was received and of the copy agree:
    $sum
  * $guesses messages with wrong keys were sent to the same slot, $near of them with only one
    bit wrong: $refused were refused and counted, and the memory behind it stayed untouched.
    In the end the guesser was held to $held guesses a second.
  * System calls per message$4: $calls.
EOF
}

native_summary() {
	local lat limit pipe unix
	job_summary native "the embedded device" "One process" ""
	lat=$(figure native lat-hamlyn)
	limit=$(figure native lat-limit)
	pipe=$(figure native lat-pipe)
	unix=$(figure native lat-unix-stream)
	cat <<EOF
  * 16 bytes took $(duration "$lat") one way, $(times "$lat" "$limit") times a bare hand-off of a cache line. A pipe took
    $(times "$pipe" "$lat") times as long, an AF_UNIX stream $(times "$unix" "$lat") times.
EOF
}

vm_summary() {
	local idle
	idle=$(figure vm idle-us)
	job_summary vm "the kernel device (emulated, so slow)" "bob (user 1002)" \
		" while the engine is awake (idle_us=$idle)"
	cat <<EOF
  * alice (1001) let bob write to one slot and to nothing else. mallory (1003) could not
    read the ticket, and the kernel refused all that mallory sent without it.
EOF
}

hosts_summary() {
	cat <<EOF

Between two hosts (emulated, a cable between them):
  * bob on host 2 streamed $(figure hosts bytes) bytes into the memory of alice's process on
    host 1; the sums agree: $(figure hosts received)
  * Host 1 refused $(figure hosts refused) connections, of what said to be another host or sent nonsense.
  * When the cable was pulled host 1 was told after $(figure hosts told) s.
EOF
}

count_summary() {
	local own pipe unix
	own=$(instructions hamlyn)
	pipe=$(instructions pipe)
	unix=$(instructions unix-stream)
	cat <<EOF
  * 16 bytes from a process to itself took $own instructions, all checks in the kernel and
    a system call included (one processor has no engine beside it); through a pipe $pipe,
    through an AF_UNIX stream $unix.
EOF
}

parse_options "$@"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
trap 'exit 1' HUP INT TERM

SECONDS=0
for part in $PARTS; do
	"${part}_part"
done
title "What was shown"
for part in $PARTS; do
	"${part}_summary"
done
printf '\nAll of it in %d seconds.\n' "$SECONDS"
