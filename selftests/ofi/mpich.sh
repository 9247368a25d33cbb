#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# MPICH over the libfabric provider: our MPI programs, and MPICH's own test suite.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2

# shellcheck source-path=SCRIPTDIR source=../vm/lib.sh
. selftests/vm/lib.sh
ME=mpich.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

FOLDERS=(attr datatype errhan group info init mpi_t part pt2pt topo impls)

usage() {
	cat <<USAGE
Usage: selftests/ofi/mpich.sh [--provider NAME] [--folders "NAME ..."] [BUILD-FOLDER]

Builds MPICH for libfabric from Debian's source, once, into the cache (setup.sh mpich); runs
MPI programs over the provider of BUILD-FOLDER, and the folders of MPICH's test suite:
${FOLDERS[*]}
Of what fails there, nothing may be left that ofi/mpich.known does not name.

  --provider  another provider of libfabric than hamlyn, to compare with: "sockets",
              "tcp;ofi_rxm". Its traffic is not looked at
  --folders   these in place of them: coll, comm, errors, rma, spawn and threads take longer
USAGE
}

provider=hamlyn
folders=("${FOLDERS[@]}")
while [ $# -gt 1 ]; do
	case $1 in
	--provider) provider=$2 ;;
	--folders) read -ra folders <<<"$2" ;;
	*) break ;;
	esac
	shift 2
done
only_help "$@"
build=$(realpath "${1:-build}") || exit 2
[ -x "$build/ofi/traffic" ] || die "$build/ofi/traffic is missing; run: make ofi-tests"
selftests/setup.sh mpich || die "MPICH is not to be had"
work_folder mpich
scale=${HAMLYN_TEST_SCALE:-1}
tests=$PWD/selftests/ofi
mpich=$CACHE/mpich
suite=$mpich/build/test/mpi

export FI_PROVIDER=$provider FI_PROVIDER_PATH=$build/libfabric
export HAMLYN_DEVICE=shm:mpich-$$,size=512M
# The programs of the suite stay where they are, compiled
export MPIR_CVAR_NOLOCAL=1 MPITEST_TIMEOUT=$((120 * scale)) MPITEST_CLEANUP=0
export PATH=$mpich/inst/bin:$PATH

# A proxy whose mpiexec was killed goes on by itself, and turns in a loop. What is ours has our device.
clean_up() {
	local process
	for process in /proc/[0-9]*; do
		! grep -qszx "HAMLYN_DEVICE=$HAMLYN_DEVICE" "$process/environ" || kill -KILL "${process#/proc/}"
	done
	rm -rf "$work"
}
trap clean_up EXIT

# Messages of at least as many as the program says it sends
counted() { # MESSAGES COMMAND...
	local least=$1 messages
	shift
	[ "$provider" = hamlyn ] || least=0
	"$build/ofi/traffic" "$@" >"$work/out" 2>"$work/err" </dev/null || return 1
	messages=$(sed -n 's/^\([0-9]*\) messages, .*/\1/p' "$work/out")
	[ "${messages:-0}" -ge "$least" ] && return 0
	echo "only $messages messages went over the device" >>"$work/err"
	return 1
}

mpi() { # MESSAGES PROCESSES PROGRAM...
	local least=$1 processes=$2
	shift 2
	counted "$least" timeout $((120 * scale)) mpiexec -iface lo -n "$processes" "$@"
}

# Those that failed, as the suite names them: FOLDER/PROGRAM PROCESSES
failures() { # TAP
	sed -nE '/ # (TODO|SKIP)/d; s|^not ok +[0-9]* *- (\./)?([^#]*[^# ]) *#.*|\2|p' "$1"
}

known() {
	sed -E 's/ *#.*//; /^$/d' "$tests/mpich.known"
}

counts() { # TAP
	local left_out
	left_out=$(grep -cE '^(not )?ok .* # (SKIP|TODO)' "$1")
	echo "# $(basename "$1" .tap): $(($(grep -c '^ok' "$1") - left_out)) passed," \
		"$(failures "$1" | wc -l) failed, $left_out left out by MPICH"
}

# Those whose processes say nothing to each other
sends() { # NAME
	[ "$1" != info ]
}

# Programs are compiled when they are first run; they stay in the cache.
folder() { # NAME
	local tap=$work/$1.tap unknown least=1
	sends "$1" || least=0
	counted $least timeout $((2400 * scale)) ./runtests -srcdir="$mpich/src/test/mpi" -tests=testlist \
		-testdirs="$1" -mpiexec="$mpich/inst/bin/mpiexec" -tapfile="$tap"
	# Its last line; without it the suite did not get to its end
	grep -qs '^1[.][.]' "$tap" || return 1
	unknown=$(failures "$tap" | grep -vxFf <(known))
	[ -z "$unknown" ] || { cat "$tap" >&2; return 1; }
	[ "$(grep -c '^ok' "$tap")" != 0 ] && ! grep -q '^only' "$work/err"
}

check "an MPI program compiles" mpicc -O2 -Wall "$tests/mpi_exchange.c" -o "$work/exchange"
check "MPI, 2 processes" mpi 100 2 "$work/exchange"
check "MPI, 4 processes" mpi 400 4 "$work/exchange"
FI_HAMLYN_CMA=0 check "MPI, 3 processes, in pieces" mpi 300 3 "$work/exchange"
check "an MPI program with windows compiles" mpicc -O2 -Wall "$tests/mpi_window.c" -o "$work/window"
check "MPI, windows, 2 processes" mpi 150 2 "$work/window"
check "MPI, windows, 4 processes" mpi 500 4 "$work/window"

# One at a time: where the programs are, their files are, too
exec 8>"$CACHE/mpich-run-lock"
flock -w 7200 8 || die "another mpich.sh has run for two hours"
cd "$suite" || exit 2
for name in "${folders[@]}"; do
	check "MPICH's tests: $name" folder "$name"
	[ ! -e "$work/$name.tap" ] || counts "$work/$name.tap"
done
total
