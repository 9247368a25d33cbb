#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What memory MPI over the libfabric provider takes, as a curve over the number of processes.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2

usage() {
	cat <<'USAGE'
Usage: selftests/ofi/memory.sh [--rxm] [--meet] [--least N] [--most N] [BUILD-FOLDER]

Starts N (2), twice as many, and so on, up to N (64) processes of MPI, each of which talks to each, and
prints how many seconds that took and, for one process, in KiB: what it has of the device, what its own
memory has grown by since MPI_Init(), and what that is in all. With --meet they have a barrier, add up
their ranks, and end. With --rxm, below ofi_rxm. Needs mpirun.openmpi, mpicc.openmpi and "make all ofi".
USAGE
}

least=2 most=64 meet=
export FI_PROVIDER=^ofi_rxm OMPI_MCA_mtl_ofi_provider_include=hamlyn
while :; do
	case ${1:-} in
	-h | --help) usage; exit 0 ;;
	--rxm)
		unset FI_PROVIDER
		export OMPI_MCA_mtl_ofi_provider_include="hamlyn;ofi_rxm"
		shift
		;;
	--meet) meet=meet; shift ;;
	--least | --most)
		case ${2:-} in
		'' | 0 | *[!0-9]*) usage >&2; exit 2 ;;
		esac
		declare "${1#--}=$2"
		shift 2
		;;
	-*) usage >&2; exit 2 ;;
	*) break ;;
	esac
done
build=$(realpath "${1:-build}") || exit 2
work=$(mktemp -d "${TMPDIR:-/tmp}/hamlyn-memory.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

export FI_PROVIDER_PATH=$build/libfabric
export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_orte_allowed_exit_without_sync=1

mpicc.openmpi -O2 -Wall -Wextra -Iuapi -Ilibhamlyn/include selftests/ofi/mpi_memory.c \
	"$build/libhamlyn.a" -lpthread -o "$work/memory" || exit 1
# 128 KiB for each end of a connection, twice as much to be sure
size() { # PROCESSES
	if [ "$meet" ]; then
		echo $((64 + $1 * 4))M
	else
		echo $((32 + $1 * $1 / 4))M
	fi
}

now() {
	date +%s.%N
}

printf '%9s  %7s  %10s  %10s  %10s\n' processes seconds device growth own
for ((n = least; n <= most; n *= 2)); do
	start=$(now)
	HAMLYN_DEVICE=shm:memory-$$,size=$(size "$n") \
		timeout $((600 * ${HAMLYN_TEST_SCALE:-1})) mpirun.openmpi -n "$n" "$work/memory" $meet \
		>"$work/out" || exit 1
	awk -v start="$start" -v end="$(now)" \
		'{ printf "%9d  %7.1f  %10d  %10d  %10d\n", $1, end - start, $2, $3, $4 }' "$work/out"
done
