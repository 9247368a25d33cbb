#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Active Message programs, MPI over the libfabric provider and Tempest under Slurm's srun, by
# PMIx and by PMI: in a cluster of one node that this test starts, with a configuration, a key and ports of its own, on the
# loopback address. Nothing of a Slurm that this machine may belong to is used.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
ME=slurm-test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh
# shellcheck source-path=SCRIPTDIR source=../lib/slurm.sh
. selftests/lib/slurm.sh

usage() {
	cat <<'USAGE'
Usage: selftests/tools/slurm-test.sh [--mpi | --tempest] [BUILD-FOLDER]  (default: build)

  --mpi       nothing but MPI over the libfabric provider, which "make ofi-tests" has built
  --tempest   nothing but Tempest, which "make tempest-tests" has built

Needs Debian's slurmd, slurmctld, slurm-client and munge; without them it is skipped.
Needs neither root nor a running service.
USAGE
}

only=am
case ${1:-} in
--mpi | --tempest)
	only=${1#--}
	shift
	;;
esac
only_help "$@"
BUILD=$(realpath "${1:-build}") || exit 2
PEER=$BUILD/boot_peer
# Debian's daemons are not in the PATH of users
PATH=$PATH:/usr/sbin:/sbin
PATIENCE=100 # seconds, for the daemons and for each program; a bound, no measure
MOST=4       # processes, and processors that the node is said to have

needed=("$PEER" "$BUILD/am/ping_pong" "$BUILD/am/shared" "$BUILD/libhamlyn-am.so")
case $only in
mpi) needed=("$BUILD/libfabric/libhamlyn-fi.so" "$BUILD/ofi/traffic") ;;
tempest) needed=("$PEER" "$BUILD/tempest/nodes" "$BUILD/libhamlyn-tempest.so") ;;
esac
for program in "${needed[@]}"; do
	[ -x "$program" ] || die "$program is missing; run: make all selftests ofi-tests tempest-tests"
done
programs=(srun slurmctld slurmd munged)
[ "$only" != mpi ] || programs+=(mpicc.openmpi)
for program in "${programs[@]}"; do
	command -v "$program" >/dev/null || {
		skip srun "$program is not installed (slurmd, slurmctld, slurm-client, munge, libopenmpi-dev)"
		total
		exit
	}
done
unset PMI_FD PMI_PORT PMI_RANK PMI_SIZE PMI_ID PMIX_NAMESPACE PMIX_RANK HAMLYN_DEVICE
for name in ${!SLURM_*}; do
	unset "$name"
done

work_folder slurm
daemons=()

# What runs programs for slurmd outlives it. It has its folder open, by its name.
# shellcheck disable=SC2317
no_steps() {
	local i
	timeout 20 scancel --user="$(id -un)" 2>/dev/null
	for ((i = 0; i < 200; i++)); do
		compgen -G "$work/spool-*/*_*.*" >/dev/null || return 0
		sleep 0.1
	done
}

# shellcheck disable=SC2317 # called by the trap
clean_up() {
	local i pid
	if compgen -G "$work/slurmd-*.pid" >/dev/null; then no_steps; fi
	for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do
		kill "${daemons[i]}" 2>/dev/null
	done
	for pid in "${daemons[@]}"; do
		timeout 20 tail --pid="$pid" -f /dev/null || kill -KILL "$pid" 2>/dev/null
	done
	rm -rf "$work"
}
trap clean_up EXIT

# ---- a cluster ----

free_ports() {
	python3 -c 'import socket
held = [socket.socket() for _ in range(2)]
for s in held: s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in held])'
}

# Slurm wants the name that the machine has; its addresses are those of no network.
configure() {
	local node ctld_port node_port
	node=$(hostname -s)
	read -r ctld_port node_port < <(free_ports) || return 1
	slurm_configure "$node" 127.0.0.1 "$node" || return 1
	cat >>"$work/slurm.conf" <<-CONF
		SlurmctldPort=$ctld_port
		SlurmdPort=$node_port
		CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
		NodeName=$node NodeAddr=127.0.0.1 CPUs=$MOST State=UNKNOWN
		PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE OverSubscribe=YES State=UP
	CONF
}

start() { # PROGRAM ARGUMENT...: in the foreground, of a group of its own
	"$@" >>"$work/$1.out" 2>&1 </dev/null &
	daemons+=("$!")
}

# until COMMAND...: it succeeds, and the daemons live; a bound, no measure
until_true() {
	local end=$((SECONDS + PATIENCE)) pid
	until "$@" >/dev/null 2>&1; do
		for pid in "${daemons[@]}"; do
			kill -0 "$pid" 2>/dev/null || return 1
		done
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

node_is_idle() {
	[ "$(timeout 20 sinfo -h -o %T)" = idle ]
}

cluster() {
	configure || return 1
	start slurm_munged
	until_true test -S "$work/munge/socket" || return 1
	start slurmctld -D -i -f "$work/slurm.conf"
	start slurmd -D -f "$work/slurm.conf"
	until_true node_is_idle
}

starts_cluster() {
	cluster || why_no_cluster
}

why_no_cluster() {
	tail -qn 8 "$work"/*.out "$work"/*.log "$work/munge/log" 2>/dev/null
	return 1
}

# ---- programs ----

# The PMI plugin does not end a job of which a process fails unless it is told so.
run() { # WAY ARGUMENT... of srun
	local way=$1 kill=()
	shift
	[ "$way" != pmi2 ] || kill=(--kill-on-bad-exit=1)
	timeout -k 5 "$PATIENCE" srun --mpi="$way" "${kill[@]}" --overcommit "$@" \
		>"$work/out" 2>"$work/err" </dev/null
}

# Each process has printed its line, and all are of one job
starts() { # N WAY NAME-OF-IT ARGUMENT...
	local n=$1 way=$2 name=$3
	shift 3
	run "$way" -n "$n" "$PEER" "$@" || return 1
	awk -v n="$n" -v way="$name" '
		$1 != "rank" || $4 != n || $6 != way || seen[$2]++ || $2 >= n { bad = 1; exit }
		NR > 1 && $8 != job { bad = 1; exit }
		{ job = $8 }
		END { exit bad || NR != n || job == "" }' "$work/out"
}

jobs_differ() { # WAY
	local first
	run "$1" -n 2 "$PEER" && first=$(awk '{ print $8; exit }' "$work/out") &&
		run "$1" -n 2 "$PEER" && [ -n "$first" ] &&
		[ "$first" != "$(awk '{ print $8; exit }' "$work/out")" ]
}

# The test programs of BUILD/am are static and cannot load libpmix: they are linked anew.
link_dynamic() {
	local others=("$BUILD"/obj/am-tools/lib/*.o) program
	for program in ping_pong test_xfer exactly_once; do
		"${CC:-cc}" "$BUILD/obj/am-tools/$program.o" "${others[@]}" -L"$BUILD" -Wl,--no-as-needed \
			-Wl,-rpath,"$BUILD" -lhamlyn-am -lhamlyn -lm -lpthread \
			-o "$work/$program" 2>"$work/err" || return 1
	done
}

program_of() { # WAY PROGRAM
	if [ "$1" = pmix ]; then echo "$work/$2"; else echo "$BUILD/am/$2"; fi
}

says() { # PATTERN WAY N PROGRAM OPTION...
	local pattern=$1 way=$2 n=$3 program=$4
	shift 4
	run "$way" -n "$n" "$(program_of "$way" "$program")" "$@" &&
		grep -qE -e "$pattern" "$work/out"
}

# fails WAY ARGUMENT...: all of it ends, and not well. What was killed has status 137, so
# that the time must tell whether it was timeout that killed it.
fails() {
	local status=0 began=$SECONDS
	run "$@" || status=$?
	[ "$status" != 0 ] && [ "$status" != 124 ] && [ $((SECONDS - began)) -lt $PATIENCE ]
}

gives_up() { # WAY ARGUMENT...
	local way=$1
	shift
	fails "$way" -n 3 "$@" && ! grep -q "^rank" "$work/out" &&
		{ [ "$2" != fail ] || grep -q "I have failed" "$work/err" "$work/out"; }
}

# Who starts another program than the rest is told so, and all end
other_program() { # WAY
	# shellcheck disable=SC2016 # for the shell inside
	fails "$1" -n 2 sh -c 'if [ $SLURM_PROCID = 0 ]; then exec "$0" --quick; else exec "$1"; fi' \
		"$(program_of "$1" ping_pong)" "$BUILD/am/shared" &&
		grep -q "another program, or another build of it" "$work/err" "$work/out"
}

programs() { # WAY NAME-OF-IT
	local n
	for n in 1 2 4; do
		check "srun --mpi=$1: $n processes" starts "$n" "$1" "$2"
	done
	check "srun --mpi=$1: more processes than processors" starts 16 "$1" "$2"
	check "srun --mpi=$1: texts that are missing" starts 2 "$1" "$2" missing
	check "srun --mpi=$1: each run has its own job" jobs_differ "$1"
	check "srun --mpi=$1: ping_pong, 4 processes" says "^ +32 +[0-9]+" "$1" 4 ping_pong --quick
	check "srun --mpi=$1: test_xfer, 4 processes" says "all-to-all .*all correct" "$1" 4 \
		test_xfer --quick
	check "srun --mpi=$1: exactly_once, 4 processes" says "handled once, intact" "$1" 4 \
		exactly_once --quick
	check "srun --mpi=$1: a process that gives up" gives_up "$1" "$PEER" fail 1
	check "srun --mpi=$1: a process that exits with 7" gives_up "$1" "$PEER" exit 1
	check "srun --mpi=$1: another program" other_program "$1"
}

# ---- MPI ----

# N processes exchange everything with everybody, over the device
mpi() { # N WAY
	local messages
	export FI_PROVIDER_PATH=$BUILD/libfabric HAMLYN_DEVICE=shm:slurm-$$,size=64M
	export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include=hamlyn FI_PROVIDER=^ofi_rxm
	timeout -k 5 "$PATIENCE" "$BUILD/ofi/traffic" srun --mpi="$2" --overcommit -n "$1" \
		"$work/exchange" >"$work/out" 2>"$work/err" </dev/null || return 1
	messages=$(sed -n 's/^\([0-9]*\) messages, .*/\1/p' "$work/out")
	grep -qx "all correct, $1 processes" "$work/out" && [ "${messages:-0}" -ge $((100 * $1)) ]
}

# Was it built with PMIx? Else it says so when it looks as if PMIx had started it
has_pmix() {
	[[ $(PMIX_NAMESPACE=none "$PEER" 2>&1) != *"was built without it"* ]]
}

has_way() { # WAY
	srun --mpi=list 2>&1 | grep -qw "$1"
}

mpi_programs() {
	has_way pmix || {
		skip "MPI by srun --mpi=pmix" "Slurm has no such plugin"
		return
	}
	check "an MPI program compiles" mpicc.openmpi -O2 selftests/ofi/mpi_exchange.c \
		-o "$work/exchange"
	check "srun --mpi=pmix: MPI, 2 processes" mpi 2 pmix
	check "srun --mpi=pmix: MPI, 4 processes" mpi 4 pmix
}

tempest_programs() {
	# shellcheck source-path=SCRIPTDIR source=../lib/tempest-jobs.sh
	. selftests/lib/tempest-jobs.sh
	if has_way pmix && has_pmix; then
		check "Tempest programs that can load libpmix" tempest_link
		tempest_jobs "srun --mpi=pmix" "$work/nodes" "$work/migrate" \
			srun --mpi=pmix --overcommit
	else
		skip "Tempest by srun --mpi=pmix" "Slurm has no such plugin, or built without libpmix-dev"
	fi
	if has_way pmi2; then
		# It does not end a job of which a process fails unless it is told so
		tempest_jobs "srun --mpi=pmi2" "$BUILD/tempest/nodes" "$BUILD/tempest-examples/migrate" \
			srun --mpi=pmi2 --kill-on-bad-exit=1 --overcommit
		check "srun --mpi=pmi2: Tempest, nodes see by themselves that one has died" \
			tempest_dies_by_name 4 srun --mpi=pmi2 --kill-on-bad-exit=0 --overcommit -n 4 \
			"$BUILD/tempest/nodes" one-dies
		[ ! -s "$work/took" ] || echo "# the last one, $(cat "$work/took") ms later"
	else
		skip "Tempest by srun --mpi=pmi2" "Slurm has no such plugin"
	fi
}

am_programs() {
	if has_way pmix && has_pmix; then
		check "programs that can load libpmix" link_dynamic
		programs pmix PMIx
	else
		skip "srun --mpi=pmix" "Slurm has no such plugin, or built without libpmix-dev"
	fi
	if has_way pmi2; then
		programs pmi2 PMI-1
	else
		skip "srun --mpi=pmi2" "Slurm has no such plugin"
	fi
}

check "a cluster of one node starts" starts_cluster
if [ "$failed" != 0 ]; then
	total
	exit
fi
"${only}_programs"

total
