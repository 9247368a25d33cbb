#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Jobs over two hosts that are network namespaces of this one, with a cable between them and a
# hamlyn-bridge on each: started by hamlyn-run, which starts the bridges, too, by Open MPI's
# mpirun, and by Slurm's srun, whose processes find the device of their host.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
ME=netns-test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh
# shellcheck source-path=SCRIPTDIR source=../lib/slurm.sh
. selftests/lib/slurm.sh

usage() {
	cat <<'USAGE'
Usage: selftests/tools/netns-test.sh [BUILD-FOLDER]  (default: build)

Needs root, ip of iproute2 and the kernel's veth; without them it is skipped. So are the parts for
mpirun.openmpi, and for srun (slurmd, slurmctld, slurm-client, munge), where those are not installed.
USAGE
}

only_help "$@"
BUILD=$(realpath "${1:-build}") || exit 2
RUN=$BUILD/hamlyn-run
BRIDGE=$BUILD/hamlyn-bridge
LIMIT=$((100 * ${HAMLYN_TEST_SCALE:-1}))
for program in "$RUN" "$BRIDGE" "$BUILD/boot_peer" "$BUILD/am/exactly_once"; do
	[ -x "$program" ] || die "$program is missing; run: make all selftests"
done
unset PMI_FD PMI_PORT PMI_RANK PMI_SIZE PMI_ID PMIX_NAMESPACE PMIX_RANK HAMLYN_DEVICE

work_folder netns-test
NET=hamlyn$$
started=()
# Debian's daemons are not in the PATH of users
PATH=$PATH:/usr/sbin:/sbin

# What runs programs for slurmd outlives it. It has its folder open, by its name.
# shellcheck disable=SC2317
no_steps() {
	local i
	named 1 timeout 20 scancel --user=root 2>/dev/null
	for ((i = 0; i < 200; i++)); do
		compgen -G "$work/spool-*/*_*.*" >/dev/null || return 0
		sleep 0.1
	done
}

# shellcheck disable=SC2317 # called by the trap
clean_up() {
	local pid n
	! compgen -G "$work/slurmd-*.pid" >/dev/null || no_steps
	for ((n = ${#started[@]} - 1; n >= 0; n--)); do
		kill "${started[n]}" 2>/dev/null
	done
	for pid in "${started[@]}"; do
		timeout 20 tail --pid="$pid" -f /dev/null || kill -KILL "$pid" 2>/dev/null
	done
	for n in 1 2; do
		ip netns del "$NET-$n" 2>/dev/null
	done
	rm -rf "$work"
}
trap clean_up EXIT

# With replace="exec" before it, for what is started in the background: $! is the program then.
host() { # N COMMAND...: on that host
	local n=$1
	shift
	${replace:-} ip netns exec "$NET-$n" "$@"
}

two_hosts() {
	local n
	for n in 1 2; do
		ip netns add "$NET-$n" && host $n ip link set lo up || return 1
	done
	ip link add cable netns "$NET-1" type veth peer name cable netns "$NET-2" || return 1
	for n in 1 2; do
		host $n ip addr add "10.211.77.$n/24" dev cable &&
			host $n ip link set cable up || return 1
	done
}

bounded() { # COMMAND...: in $work/out and $work/err
	timeout -k 5 "$LIMIT" "$@" >"$work/out" 2>"$work/err" </dev/null
}

all_of_one_job() { # N: each has printed its line
	awk -v n="$1" '$1 == "rank" { if ($4 != n || seen[$2]++ || $2 >= n) bad = 1
			if (job == "") job = $8; if ($8 != job) bad = 1; lines++ }
		END { exit bad || lines != n || job == "" }' "$work/out"
}

handled() {
	grep -q "all handled once, intact" "$work/out"
}

# ---- hamlyn-run ----

run() { # ARGUMENT...
	bounded "$RUN" --host "$NET-1=10.211.77.1:2,$NET-2=10.211.77.2:2" --launch "ip netns exec" \
		--bridge 7810 --clear "$@"
}

by_run() {
	run -n 4 "$BUILD/boot_peer" && all_of_one_job 4
}

messages_by_run() {
	run -n 4 "$BUILD/am/exactly_once" --messages 500 --max-size 4000 && handled
}

# Each is told that those behind it are gone.
cable_pulled() {
	# shellcheck disable=SC2016 # for the shell inside
	run -n 4 --timeout $((LIMIT / 2)) sh -c \
		'if [ "$PMI_RANK" = 0 ]; then sleep 1; ip link set cable down; fi; exec "$0" \
			--messages 1000000 --max-size 4000' "$BUILD/am/exactly_once"
	local status=$?
	host 1 ip link set cable up
	host 2 ip link set cable up
	[ "$status" = 1 ] && grep -q "is gone (Connection reset by peer)" "$work/err"
}

# ---- mpirun ----

# Static programs cannot load libpmix.
link_dynamic() {
	"${CC:-cc}" "$BUILD/obj/am-tools/exactly_once.o" "$BUILD"/obj/am-tools/lib/*.o -L"$BUILD" \
		-Wl,--no-as-needed -Wl,-rpath,"$BUILD" -lhamlyn-am -lhamlyn -lm -lpthread \
		-o "$work/exactly_once" 2>"$work/err"
}

# What mpirun calls with a host's address and a command for its shell, in place of ssh: each host
# has a name of its own, and its device
make_agent() {
	cat >"$work/agent" <<EOT
#!/bin/sh
n=\${1##*.}
shift
export HAMLYN_DEVICE=shm:$NET-\$n
exec ip netns exec $NET-\$n unshare --uts sh -c 'hostname $NET-'\$n'; exec sh -c "\$0"' "\$*"
EOT
	chmod +x "$work/agent"
}

bridge() { # N OTHER
	replace="exec" host "$1" "$BRIDGE" "shm:$NET-$1,size=64M" --host "$1" --listen "10.211.77.$1:7820" \
		--peer "$2=10.211.77.$2:7820" --id-from "$NET" --clear >"$work/bridge-$1" 2>&1 &
	started+=("$!")
}

joined() {
	local i
	bridge 1 2
	bridge 2 1
	for ((i = 0; i < 10 * LIMIT; i++)); do
		"$BRIDGE" "shm:$NET-1" --status 2>/dev/null | grep -q "up" &&
			"$BRIDGE" "shm:$NET-2" --status 2>/dev/null | grep -q "up" && return 0
		sleep 0.1
	done
	cat "$work"/bridge-* >"$work/err"
	return 1
}

mpirun() { # ARGUMENT...: from the first host
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout "$LIMIT" "$work/agent" 10.211.77.1 \
		mpirun.openmpi --oversubscribe --host 10.211.77.1:2,10.211.77.2:2 \
		--mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1 \
		--mca oob_tcp_if_include cable --prefix /usr "$@"
}

packets_sent() { # by the first host
	"$BRIDGE" "shm:$NET-1" --status | sed -n 's/^host 2 up .* sent \([0-9]*\) .*/\1/p'
}

# At least as many over the cable as one process sends to one there; the bridge tells now and then.
over_the_cable() { # COMMAND...
	local before i
	before=$(packets_sent)
	"$@" >"$work/out" 2>"$work/err" </dev/null && handled || return 1
	for ((i = 0; i < LIMIT; i++)); do
		[ $(($(packets_sent) - before)) -lt 100 ] || return 0
		sleep 0.1
	done
	echo "$before packets before, $(packets_sent) after" >>"$work/err"
	return 1
}

messages_by_mpirun() {
	over_the_cable mpirun -n 4 "$work/exactly_once" --messages 500 --max-size 4000
}

on_both() { # each process has its host's device
	mpirun -n 4 printenv HAMLYN_DEVICE >"$work/out" 2>"$work/err" </dev/null &&
		[ "$(sort "$work/out" | paste -sd' ')" = \
			"shm:$NET-1 shm:$NET-1 shm:$NET-2 shm:$NET-2" ]
}

# ---- srun ----

# With the name of that host; not by ip, which hides what slurmd looks for below /sys.
named() { # N COMMAND...
	local n=$1
	shift
	# shellcheck disable=SC2016 # for the shell inside
	${replace:-} nsenter --net="/run/netns/$NET-$n" unshare --uts \
		sh -c 'hostname "$0"; exec "$@"' "$NET-$n" "$@"
}

configure() {
	slurm_configure "$NET-1" 10.211.77.1 "$NET-1" "$NET-2" || return 1
	cat >>"$work/slurm.conf" <<-CONF
		NodeName=$NET-1 NodeAddr=10.211.77.1 CPUs=2 State=UNKNOWN
		NodeName=$NET-2 NodeAddr=10.211.77.2 CPUs=2 State=UNKNOWN
		PartitionName=all Nodes=$NET-1,$NET-2 Default=YES MaxTime=INFINITE OverSubscribe=YES State=UP
	CONF
}

until_true() { # COMMAND...
	local i
	for ((i = 0; i < 5 * LIMIT; i++)); do
		"$@" && return 0
		sleep 0.2
	done
	tail -qn 4 "$work"/*.log "$work"/slurm.out >"$work/err" 2>&1
	return 1
}

nodes_are_idle() {
	[ "$(named 1 timeout 20 sinfo -h -o '%D %T' 2>/dev/null)" = "2 idle" ]
}

cluster() {
	local n
	configure || return 1
	slurm_munged >"$work/slurm.out" 2>&1 &
	started+=("$!")
	until_true test -S "$work/munge/socket" || return 1
	replace="exec" named 1 slurmctld -D -i -f "$work/slurm.conf" >>"$work/slurm.out" 2>&1 &
	started+=("$!")
	for n in 1 2; do
		replace="exec" named $n slurmd -D -N "$NET-$n" -f "$work/slurm.conf" >>"$work/slurm.out" 2>&1 &
		started+=("$!")
	done
	until_true nodes_are_idle
}

messages_by_srun() { # WAY PROGRAM
	# shellcheck disable=SC2016 # for the shell inside
	over_the_cable named 1 timeout -k 5 "$LIMIT" srun --mpi="$1" -N 2 -n 4 --overcommit sh -c \
		'HAMLYN_DEVICE=shm:$0-$((SLURM_NODEID + 1)) exec "$@" --messages 500 --max-size 4000' \
		"$NET" "$2"
}

# ---- all of it ----

if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || ! ip netns add "$NET-t" 2>/dev/null; then
	skip "jobs over network namespaces" "it needs root, ip of iproute2 and network namespaces"
	total
	exit
fi
ip netns del "$NET-t"
check "two hosts with a cable" two_hosts
check "hamlyn-run: 4 processes of two hosts find each other" by_run
check "hamlyn-run: Active Messages" messages_by_run
check "hamlyn-run: a cable that is pulled ends the job" cable_pulled
check "two bridges find each other" joined
check "a program that can load libpmix" link_dynamic
if command -v mpirun.openmpi >/dev/null; then
	make_agent
	check "mpirun: each process has the device of its host" on_both
	check "mpirun: Active Messages" messages_by_mpirun
else
	skip "mpirun over network namespaces" "openmpi-bin is not installed"
fi
if command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v munged >/dev/null &&
	command -v srun >/dev/null; then
	check "a cluster of two nodes starts" cluster
	check "srun --mpi=pmix: Active Messages" messages_by_srun pmix "$work/exactly_once"
	check "srun --mpi=pmi2: Active Messages" messages_by_srun pmi2 "$BUILD/am/exactly_once"
else
	skip "srun over network namespaces" "slurmd, slurmctld, slurm-client or munge is not installed"
fi

total
