#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The libfabric provider between hosts, which are two segments of this one that bridges join: what
# passes from one to the other has to show in the bridges' counters.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2

ME=hosts-test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

usage() {
	echo "Usage: selftests/ofi/hosts-test.sh [BUILD-FOLDER]  (default: build)"
}

only_help "$@"
build=$(realpath "${1:-build}") || exit 2
for program in "$build/hamlyn-bridge" "$build/libfabric/libhamlyn-fi.so"; do
	[ -x "$program" ] || die "$program is missing; run: make"
done
scale=${HAMLYN_TEST_SCALE:-1}
limit=$((120 * scale))
tests=$PWD/selftests/ofi

work_folder ofi-hosts-test
cd "$work" || exit 2
bridges=()
clean_up() {
	bridges_down
	rm -rf "$work"
}
trap clean_up EXIT

export FI_PROVIDER_PATH=$build/libfabric
export FI_HAMLYN_HOSTS=127.0.0.11=1,127.0.0.12=2,127.0.0.13=3

# ---- two hosts ----

device() { # HOST
	echo "shm:ofi-hosts-$$-$1,size=192M"
}

on() { # HOST COMMAND...
	HAMLYN_DEVICE=$(device "$1") "${@:2}"
}

eventually() { # COMMAND...
	local i
	for ((i = 0; i < 100 * scale; i++)); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}

bridge() { # HOST OTHER ARGUMENT...
	local host=$1 other=$2
	shift 2
	"$build/hamlyn-bridge" "$(device "$host")" --host "$host" \
		--listen 127.0.0.1:$((port + host)) --peer "$other=127.0.0.1:$((port + other))" \
		--dead-ms $((10000 * scale)) --stall-ms $((10000 * scale)) "$@" \
		>"$work/bridge-$host" 2>&1 &
	bridges[host]=$!
}

they_meet() {
	grep -q "host 2 is up" "$work/bridge-1" && grep -q "host 1 is up" "$work/bridge-2"
}

# Of a port that somebody has, another one is tried.
bridges_up() { # USERS-AT-HOST-1 USERS-AT-HOST-2: whom those of the other one are taken for
	local try
	for ((try = 0; try < 5; try++)); do
		port=$((20000 + (RANDOM % 4000) * 2))
		bridge 1 2 --users "$1"
		bridge 2 1 --users "$2"
		eventually they_meet && return 0
		bridges_down
	done
	cat "$work"/bridge-*
	return 1
}

bridges_down() {
	local pid
	for pid in "${bridges[@]}"; do
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	bridges=()
}

# What host 1's bridge has sent to host 2 so far, in bytes: it counts a little later than it sends.
carried() {
	"$build/hamlyn-bridge" "$(device 1)" --status |
		sed -n 's/^host 2 up .* sent [0-9]* (\([0-9]*\) bytes).*/\1/p'
}

at_least() { # BYTES
	[ "$(carried)" -ge "$1" ]
}

# What went before may be counted only now, and is none of what is to be waited for. The bridges'
# own words, of which there are few, go on.
all_counted() {
	local last
	last=$(carried)
	sleep 1
	[ -n "$last" ] && ! at_least $((last + 10000))
}

# carries BYTES COMMAND...: and at least so many went from host 1 to host 2 meanwhile
carries() {
	local least=$1 before
	before=$(carried)
	shift
	"$@" || return 1
	eventually at_least $((before + least)) && return 0
	echo "only $(($(carried) - before)) bytes went to the other host" >>"$work/err"
	return 1
}

# ---- libfabric's programs ----

serve() { # HOST OPTION...: until somebody has come; its control port is ours
	local host=$1
	shift
	control=$((30000 + RANDOM % 10000))
	HAMLYN_DEVICE=$(device "$host") timeout "$limit" fi_pingpong -B "$control" "$@" \
		>"$work/out" 2>&1 &
	server=$!
	eventually ready_or_gone
}

ready_or_gone() {
	listens "$control" || [ ! -e "/proc/$server" ]
}

# pingpong SERVER-HOST PROVIDER OPTION...
pingpong() {
	local host=$1 status
	shift
	serve "$host" -p "$@" || return 1
	on $((3 - host)) timeout "$limit" fi_pingpong -P "$control" -p "$@" "127.0.0.1$host" \
		>"$work/err" 2>&1
	status=$?
	wait "$server" && [ "$status" = 0 ]
}

# libfabric offers ofi_rxm first.
natively() { # COMMAND...
	FI_PROVIDER=^ofi_rxm "$@"
}

# The client's connection is refused, and it ends.
refused() {
	serve 1 -p hamlyn -e msg -I 20
	FI_LOG_LEVEL=warn on 2 timeout "$limit" fi_pingpong -P "$control" -p hamlyn -e msg -I 20 127.0.0.11 \
		>"$work/err" 2>&1
	local status=$?
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	[ "$status" != 0 ] && [ "$status" != 124 ] && grep -q "$1" "$work/err"
}

# says WHAT MAP: what is wrong with it is in the log
says() {
	! FI_HAMLYN_HOSTS=$2 FI_LOG_LEVEL=warn on 1 timeout "$limit" fi_info -p hamlyn >"$work/out" 2>"$work/err" &&
		grep -q "FI_HAMLYN_HOSTS.*$1" "$work/err"
}

own_address() { # of a process that listens anywhere
	on "$1" timeout "$limit" fi_info -p hamlyn -t FI_EP_MSG -v >"$work/out" 2>"$work/err" &&
		grep -q "src_addr: fi_sockaddr_in://127.0.0.1$1:" "$work/out"
}

# answers WANT HOST ADDRESS: to a process of that host that says that it has that address
answers() {
	local server port status
	rm -f "$work/port"
	HAMLYN_DEVICE=$(device 1) timeout "$limit" "$build/ofi/stranger" serve >"$work/port" 2>"$work/err" &
	server=$!
	eventually [ -s "$work/port" ]
	port=$(cat "$work/port")
	on "$2" timeout "$limit" "$build/ofi/stranger" ask 1 "$port" "$3" >"$work/out" 2>>"$work/err"
	status=$?
	kill "$server"
	wait "$server" 2>/dev/null
	[ "$status" = 0 ] && [ "$(cat "$work/out")" = "$1" ]
}

# Traffic that does not end of itself, once some has passed: before it one may wait for the other
endless() {
	local before
	eventually all_counted || return 1
	before=$(carried)
	serve 1 -p hamlyn -e msg -I 100000000 -S 64 || return 1
	HAMLYN_DEVICE=$(device 2) timeout "$limit" fi_pingpong -P "$control" -p hamlyn -e msg \
		-I 100000000 -S 64 127.0.0.11 >"$work/err" 2>&1 &
	client=$!
	eventually at_least $((before + 100000)) && [ -e "/proc/$client" ]
}

ends_by_itself() { # PID
	local status=0
	wait "$1" || status=$?
	[ "$status" != 0 ] && [ "$status" != 124 ]
}

# Of "timeout", which runs the program
child_of() { # PID
	sed 's/ .*//' "/proc/$1/task/$1/children"
}

server_killed() {
	endless && kill -KILL "$(child_of "$server")" && ends_by_itself "$client"
	local status=$?
	wait "$server" 2>/dev/null
	return "$status"
}

bridge_killed() {
	endless || return 1
	kill -KILL "${bridges[2]}"
	ends_by_itself "$client" && ends_by_itself "$server"
}

# ---- MPI ----

cat >"$work/dealt" <<END
#!/bin/sh
# Every other process is on the other host.
export HAMLYN_DEVICE=shm:ofi-hosts-$$-\$((OMPI_COMM_WORLD_RANK % 2 + 1)),size=192M
exec "\$@"
END
chmod +x "$work/dealt"

mpi() { # PROCESSES PROGRAM...
	local processes=$1
	shift
	timeout "$limit" mpirun.openmpi -n "$processes" "$work/dealt" "$@" >"$work/out" 2>"$work/err" </dev/null
}

rank_killed() { # the others end with it
	local status=0
	# shellcheck disable=SC2016 # for the shell inside
	mpi 4 sh -c 'test $OMPI_COMM_WORLD_RANK = 3 && { sleep 2; kill -9 $$; }; exec ./exchange 1000000' || status=$?
	[ "$status" != 0 ] && [ "$status" != 124 ]
}

export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include=hamlyn
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_osc=pt2pt

if ! command -v fi_pingpong >/dev/null; then
	skip "the provider between hosts" "libfabric-bin is not installed"
	total
	exit
fi

check "two hosts" bridges_up same same
check "this host's address, of host 1" own_address 1
check "of host 2" own_address 2
check "FI_EP_MSG, to host 1" carries 2000 pingpong 1 hamlyn -e msg -I 20 -S 64 -c
check "FI_EP_MSG, to host 2, all lengths" carries 10000000 pingpong 2 hamlyn -e msg -I 10 -c
check "FI_EP_RDM, to host 1, all lengths" carries 10000000 natively pingpong 1 hamlyn -e rdm -I 10 -c
check "FI_EP_RDM, to host 2, tagged" carries 10000000 natively pingpong 2 hamlyn -e rdm -m tagged -I 10 -c
check "ofi_rxm, tagged, all lengths" carries 10000000 pingpong 1 "hamlyn;ofi_rxm" -e rdm -m tagged -I 10 -c
FI_OFI_RXM_USE_RNDV_WRITE=1 check "ofi_rxm, rendezvous by writes" \
	carries 10000000 pingpong 2 "hamlyn;ofi_rxm" -e rdm -I 10 -c
if command -v mpirun.openmpi >/dev/null && command -v mpicc.openmpi >/dev/null; then
	check "an MPI program compiles" mpicc.openmpi -O2 -Wall "$tests/mpi_exchange.c" -o exchange
	check "MPI, 4 processes on 2 hosts" carries 500000 natively mpi 4 ./exchange
	check "MPI, a process is killed" natively rank_killed
	OMPI_MCA_mtl_ofi_provider_include="hamlyn;ofi_rxm" check "MPI, ofi_rxm, 4 processes on 2 hosts" \
		carries 500000 mpi 4 ./exchange
else
	skip "MPI" "openmpi-bin or libopenmpi-dev is not installed"
fi
check "a stranger by its own name is linked to" answers yes 2 127.0.0.12
check "by that of another host it is not" answers no 2 127.0.0.13
check "nor by that of the one that it asks" answers no 2 127.0.0.11
check "who is of the same host has no business at that door" answers none 1 127.0.0.11
check "a process is killed in traffic: the other ends" server_killed
check "a bridge is killed in traffic: both end" bridge_killed
bridges_down
check "no bridge: the other host is not reached" refused "Connection refused"
check "two hosts, of which one takes nobody for anybody" bridges_up none same
check "who is nobody where the server is gets no connection" refused "does not let this user in"
bridges_down
check "two hosts, of which the other one does" bridges_up same none
check "a server that is nobody here is none" refused "none of the users"
bridges_down
check "a map without =" says 'no "="' 127.0.0.11
check "without an address" says "no IPv4 address" host1=1
check "without a host" says "no host id" 127.0.0.11=
check "with a host that is none" says "no host id" 127.0.0.11=4294967295
check "with an address twice" says "there before" 127.0.0.11=1,127.0.0.11=2

total
