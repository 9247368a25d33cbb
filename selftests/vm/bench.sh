#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# hamlyn-perf in a virtual machine where the kernel device, sockets and
# soft-RoCE are all there, so that they can be compared in one run. See
# README.md beside this file for what figures from an emulator are good for.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Those that have a counterpart elsewhere; soft-RoCE where the kernel has it
SYSTEMS=hamlyn,fast,unix-stream,unix-stream-spin,unix-seqpacket,pipe,tcp,tcp-spin
RXE_SYSTEMS=,rxe-send,rxe-write
DEFAULT=(--json --quick --timeout 60)
# Between two hosts: those that go over the same veth pair
HOSTS_SYSTEMS=hamlyn,hamlyn-block,tcp,tcp-spin
RDMA_LIBS=/usr/lib/x86_64-linux-gnu/libibverbs

BUILD=$REPO_DIR/build KERNEL=6.1-full MODULE='' TIMEOUT=900
# Emulated processors need longer from message to message than the defaults allow for
MODULE_ARGS='idle_us=20000'
OPTIONS=() HOSTS=

usage() {
	cat <<EOF
Usage: selftests/vm/bench.sh [option]... [-- hamlyn-perf argument...]

  --kernel K            $(known_kernels) ($KERNEL; others have no soft-RoCE)
  --build DIR           where hamlyn-perf is, and where the module is built (build)
  --module FILE.ko      instead of building it
  --module-args "A=B"   its parameters ($MODULE_ARGS)
  --timeout S           seconds until the guest is stopped ($TIMEOUT)
  --hosts               the two processes on two hosts: NICs over TCP, in network namespaces
                        that a veth pair joins; systems $HOSTS_SYSTEMS; the NICs are as the
                        module's parameters make them. No soft-RoCE then. For libfabric-tcp
                        fi_pingpong has to be installed
  --wireguard           the same, and then once more with WireGuard between them
  --nonsense            the same, beside a third host that says nonsense to the first as fast as
                        it can: nothing; to a plain socket; messages with wrong keys; bytes that
                        are no frames; and nothing again
  --icount, --smp N, --mem M, --out DIR, --append "..."   as for run.sh

stdout is what hamlyn-perf prints in the guest, by default JSON lines of
hamlyn-perf ${DEFAULT[*]} --systems $SYSTEMS$RXE_SYSTEMS,limit compare
Everything else goes to stderr. The exit status is that of run.sh.
EOF
}

take_option() { # OPTION VALUE
	case $1 in
	--kernel) KERNEL=$2 ;;
	--build) BUILD=$2 ;;
	--module) MODULE=$2 ;;
	--module-args) MODULE_ARGS=$2 ;;
	--timeout) TIMEOUT=$2 ;;
	*) OPTIONS+=("$1" "$2") ;;
	esac
}

take_word() { # what follows -- is hamlyn-perf's
	case $1 in
	--hosts) HOSTS=${HOSTS:-yes} && return ;;
	--wireguard) HOSTS=wireguard && return ;;
	--nonsense) HOSTS=nonsense && return ;;
	--icount) OPTIONS+=("$1") && return ;;
	esac
	[ "$1" = -- ] || die 2 "\"$1\" is unknown; see --help"
	return 1
}

# add_program NAME PACKAGE: from wherever the host has it
add_program() {
	local path
	path=$(PATH=$PATH:/sbin:/usr/sbin command -v "$1") ||
		die 125 "$1 is missing; run: selftests/setup.sh packages bench"
	OPTIONS+=(--file "$path")
}

add_rdma() {
	local name file
	# crc32_generic is no dependency that modprobe knows of; without it no link can be added.
	# It comes first because modules are removed in the opposite order.
	for name in crc32_generic rdma_rxe ib_uverbs; do
		OPTIONS+=(--kmod "$name")
	done
	for name in rdma ib_send_lat ib_send_bw ib_write_lat ib_write_bw; do
		add_program "$name"
	done
	# Opened by name when a program asks for a device
	for file in /etc/libibverbs.d/rxe.driver "$RDMA_LIBS"/librxe-rdmav*.so; do
		[ -e "$file" ] || die 125 "$file is missing; run: selftests/setup.sh packages bench"
		OPTIONS+=(--file "$file:$file")
	done
}

add_hosts() {
	local program
	OPTIONS+=(--kmod veth --file "$BUILD/hamlynctl" --append "HAMLYN_HOSTS=$HOSTS")
	add_program ip
	for program in fi_pingpong fi_info; do
		! command -v "$program" >/dev/null || add_program "$program"
	done
	if [ "$HOSTS" = wireguard ]; then
		OPTIONS+=(--kmod wireguard)
		add_program wg
	fi
}

add_nonsense() {
	mkdir -p "$BUILD/vm"
	gcc -O2 -Wall -Wextra -Wno-unused-function -D_GNU_SOURCE -static \
		-I"$REPO_DIR"/{uapi,libhamlyn/include,libhamlyn/src,libhamlyn/src/embedded,driver/core} \
		"$VM_DIR/nonsense.c" "$REPO_DIR/driver/core/wire.c" -o "$BUILD/vm/nonsense" ||
		die 125 "nonsense.c does not compile"
	OPTIONS+=(--file "$BUILD/vm/nonsense")
}

has_rxe() { [ -n "$(find "$(kernel_dir "$KERNEL")/root/" -name 'rdma_rxe.ko*' -print -quit)" ]; }

build_module() {
	[ -z "$MODULE" ] || return 0
	"$VM_DIR/build-module.sh" "$KERNEL" "$REPO_DIR" "$BUILD/vm/$KERNEL" >&2
	MODULE=$BUILD/vm/$KERNEL/hamlyn.ko
}

main() {
	local line
	parse_words "--kernel --build --module --module-args --timeout --smp --mem --out --append" "$@"
	ARGUMENTS=("${REST[@]}")
	kernel_is_known "$KERNEL" || die 2 "kernel \"$KERNEL\" is unknown; allowed: $(known_kernels)"
	kernel_dir "$KERNEL" >/dev/null
	[ -x "$BUILD/hamlyn-perf" ] || die 125 "$BUILD/hamlyn-perf is missing; run: make BUILD=$BUILD tools"
	if [ -n "$HOSTS" ]; then
		add_hosts
		[ "$HOSTS" != nonsense ] || add_nonsense
		SYSTEMS=$HOSTS_SYSTEMS RXE_SYSTEMS=
	elif has_rxe; then
		add_rdma
	else
		say "kernel $KERNEL has no soft-RoCE: without it"
		RXE_SYSTEMS=
	fi
	[ ${#ARGUMENTS[@]} -gt 0 ] ||
		ARGUMENTS=("${DEFAULT[@]}" --systems "$SYSTEMS$RXE_SYSTEMS,limit" compare)
	build_module
	printf -v line ' %q' /host/bench-guest.sh "${ARGUMENTS[@]}"
	"$VM_DIR/run.sh" "$KERNEL" --module "$MODULE" --module-args "$MODULE_ARGS" \
		--file "$BUILD/hamlyn-perf" --file "$VM_DIR/bench-guest.sh" --timeout "$TIMEOUT" \
		"${OPTIONS[@]}" --cmd "sh$line" |
		awk '/^# / { print >"/dev/stderr"; next } { print; fflush() }'
}

main "$@"
