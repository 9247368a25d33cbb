#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The libfabric provider: its tests, other people's programs over it, and MPI.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2

ME=ofi-test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

usage() {
	cat <<'USAGE'
Usage: selftests/ofi/ofi-test.sh [--long] [BUILD-FOLDER]

Runs the tests of libhamlyn-fi.so in BUILD-FOLDER; fi_info and fi_pingpong over it; and, where
Open MPI is installed, MPI programs, whose traffic has to show in the counters of the device;
and the commands of Documentation/mpi.rst.

  --long   more processes, NetPIPE and HPCC
USAGE
}

long=no
if [ "${1:-}" = --long ]; then
	long=yes
	shift
fi
only_help "$@"
build=$(realpath "${1:-build}") || exit 2
work_folder ofi-test
limit=$((120 * ${HAMLYN_TEST_SCALE:-1}))
tests=$PWD/selftests/ofi
page=$PWD/Documentation/mpi.rst

export FI_PROVIDER_PATH=$build/libfabric
export HAMLYN_DEVICE=shm:ofi-$$,size=512M
cd "$work" || exit 2

# ---- its own tests ----

# libfabric reads all symbols of the kernel in each process, for a line that none of ours has.
without_symbols() { # COMMAND...
	unshare -m sh -c 'mount --bind /dev/null /proc/kallsyms && exec "$@"' - "$@"
}
without_symbols true 2>/dev/null || without_symbols() { "$@"; }

# Each of a program's tests makes the device anew: to make the memory of a large one takes longer than most
for test in "$build"/ofi/ofi_*; do
	check "${test##*/}" without_symbols env "HAMLYN_DEVICE=shm:ofi-$$,size=64M" \
		timeout $((5 * limit)) "$test"
done

# ---- libfabric's programs ----

lists() { # PROVIDER PATTERN
	timeout "$limit" fi_info -p "$1" >"$work/out" && grep -q "$2" "$work/out"
}

# libfabric offers ofi_rxm first, and Open MPI takes the beginning of a name for all of it.
natively() { # COMMAND...
	FI_PROVIDER=^ofi_rxm "$@"
}

under=				# what is to watch them, if anything is

# Two of them find each other over a socket of their own, at a port that is free, it is hoped.
# shellcheck disable=SC2086 # no word, or one
pingpong() { # PROVIDER TYPE OPTION...
	local provider=$1 type=$2 port=$((20000 + RANDOM % 10000)) server status
	shift 2
	timeout "$limit" $under fi_pingpong -p "$provider" -e "$type" -B $port "$@" \
		>"$work/out" 2>&1 &
	server=$!
	until listens $port || [ ! -e "/proc/$server" ]; do
		sleep 0.1
	done
	timeout "$limit" $under fi_pingpong -p "$provider" -e "$type" -P $port "$@" 127.0.0.1 >"$work/err" 2>&1
	status=$?
	wait "$server" && [ "$status" = 0 ]
}

compared() { # by all of its ends
	timeout $((2 * limit)) "$build/hamlyn-perf" --quiet --reps 1 --time 1 --sizes 8 --json \
		--systems libfabric-hamlyn-rdm,libfabric-hamlyn-rxm,libfabric-hamlyn-msg lat \
		>"$work/out" 2>"$work/err" &&
		[ "$(grep -cE '"libfabric-hamlyn-(rdm|rxm|msg)".*"median_ns":[1-9]' "$work/out")" = 3 ]
}

if command -v fi_pingpong >/dev/null; then
	check "fi_info lists it" lists hamlyn FI_EP_MSG
	check "fi_info lists it without connections" lists hamlyn FI_EP_RDM
	check "fi_info lists it below ofi_rxm" lists "hamlyn;ofi_rxm" FI_PROTO_RXM
	check "fi_pingpong, FI_EP_MSG" pingpong hamlyn msg -I 20 -c
	check "fi_pingpong, FI_EP_RDM" natively pingpong hamlyn rdm -I 20 -c
	check "fi_pingpong, FI_EP_RDM, tagged" natively pingpong hamlyn rdm -I 20 -c -m tagged
	FI_HAMLYN_CMA=0 check "fi_pingpong, FI_EP_RDM, in pieces" natively pingpong hamlyn rdm -I 20 -c
	check "fi_pingpong, ofi_rxm" pingpong "hamlyn;ofi_rxm" rdm -I 20 -c
	check "fi_pingpong, ofi_rxm, tagged" pingpong "hamlyn;ofi_rxm" rdm -I 20 -c -m tagged
	FI_HAMLYN_CMA=0 check "fi_pingpong, ofi_rxm, in pieces" pingpong "hamlyn;ofi_rxm" rdm -I 20 -c
	FI_OFI_RXM_USE_RNDV_WRITE=1 check "fi_pingpong, ofi_rxm, rendezvous by writes" \
		pingpong "hamlyn;ofi_rxm" rdm -I 20 -c
	FI_OFI_RXM_USE_SRX=1 check "fi_pingpong, ofi_rxm, shared buffers" pingpong "hamlyn;ofi_rxm" rdm -I 20 -c
	check "hamlyn-perf has it beside others" compared
else
	skip "fi_pingpong" "libfabric-bin is not installed"
fi

# ---- memory, watched ----

# No error, and no leak, that has a line of ours in it. What others do is theirs.
ours_in() { # LOG...
	awk '/^==[0-9]+== *$/ { if (ours) print text; text = ""; ours = 0; next }
		{ text = text $0 "\n" }
		/libhamlyn\// { ours = 1 }
		END { if (ours) print text }' "$@"
}

watched() { # COMMAND...
	local status=0
	rm -f "$work"/watched.*
	"$@" || status=$?
	[ "$status" = 0 ] && [ -n "$(find "$work" -name 'watched.*')" ] &&
		[ -z "$(ours_in "$work"/watched.* | tee "$work/err")" ]
}

# In place of the program itself, for what starts it
cat >"$work/valgrind" <<END
#!/bin/sh
export PYTHONMALLOC=malloc
exec valgrind -q --leak-check=full --fullpath-after= --suppressions=$tests/valgrind.supp \\
	--log-file=$work/watched.%p "\$@"
END
chmod +x "$work/valgrind"

if [ "$long" = yes ] && command -v valgrind >/dev/null && command -v fi_pingpong >/dev/null; then
	# They are slow.
	limit=$((4 * limit)) under=$work/valgrind
	check "valgrind: fi_pingpong, FI_EP_MSG" watched pingpong hamlyn msg -I 5 -c
	check "valgrind: fi_pingpong, FI_EP_RDM" watched natively pingpong hamlyn rdm -I 5 -c
	FI_HAMLYN_CMA=0 check "valgrind: fi_pingpong, FI_EP_RDM, in pieces" watched natively pingpong hamlyn rdm -I 5 -c
	check "valgrind: fi_pingpong, ofi_rxm" watched pingpong "hamlyn;ofi_rxm" rdm -I 5 -c
	FI_HAMLYN_CMA=0 check "valgrind: fi_pingpong, ofi_rxm, in pieces" \
		watched pingpong "hamlyn;ofi_rxm" rdm -I 5 -c
	limit=$((limit / 4)) under=
fi

# ---- MPI ----

export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include=hamlyn
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1

# Messages of at least as many as the program says it sends
mpi() { # MESSAGES PROCESSES PROGRAM...
	local least=$1 processes=$2 messages
	shift 2
	timeout "$limit" "$build/ofi/traffic" mpirun.openmpi -n "$processes" "$@" \
		>"$work/out" 2>"$work/err" </dev/null || return 1
	messages=$(sed -n 's/^\([0-9]*\) messages, .*/\1/p' "$work/out")
	[ "${messages:-0}" -ge "$least" ] && return 0
	echo "only $messages messages went over the device" >>"$work/err"
	return 1
}

# mpirun gets the processor so seldom that PMIx, which waits for it for 2 s, leaves without it
many() { # PROCESSES
	local device=$HAMLYN_DEVICE
	export HAMLYN_DEVICE=shm:ofi-many-$$,size=1G
	OMPI_MCA_orte_allowed_exit_without_sync=1 limit=$((6 * limit)) mpi "$1" "$1" ./exchange 1 &&
		grep -qx "all correct, $1 processes" "$work/out"
	local status=$?
	export HAMLYN_DEVICE=$device
	return "$status"
}

# Each peer takes as much of the device, however many there are; how much is in mpi.rst.
flat() { # OPTION...
	timeout $((4 * limit)) "$tests/memory.sh" "$@" --most 8 "$build" >"$work/out" 2>"$work/err" &&
		awk '$1 ~ /^[0-9]+$/ { n++; peer = $3 / ($1 - 1); if (peer < 16 || peer > 200) bad = 1 }
			END { exit bad || n != 3 }' "$work/out"
}

# They start, meet, add up their ranks, and end.
meet() { # PROCESSES
	timeout $((6 * limit)) "$tests/memory.sh" --meet --least "$1" --most "$1" "$build" \
		>"$work/out" 2>"$work/err" && grep -qE "^ *$1  " "$work/out"
}

# The commands of the page, as they stand there, one after the other in one folder
page_commands() {
	awk '/^\.\. code-block:: sh/ { on = 1; next }
		on && /^[^ \t]/ { on = 0 }
		on { print }' "$page" | sed 's/^    //' >"$work/commands"
	[ -s "$work/commands" ] && PATH=$build:$PATH timeout "$limit" bash -e "$work/commands"
}

if command -v mpirun.openmpi >/dev/null && command -v mpicc.openmpi >/dev/null; then
	check "an MPI program compiles" mpicc.openmpi -O2 -Wall "$tests/mpi_exchange.c" -o exchange
	check "MPI, 2 processes" natively mpi 100 2 ./exchange
	check "MPI, 4 processes" natively mpi 400 4 ./exchange
	FI_HAMLYN_CMA=0 check "MPI, 3 processes, in pieces" natively mpi 300 3 ./exchange
	# Without btl/ofi 63 and 217 messages go over the device, for the barriers.
	check "an MPI program with windows compiles" \
		mpicc.openmpi -O2 -Wall "$tests/mpi_window.c" -o window
	OMPI_MCA_osc=rdma OMPI_MCA_btl=self,ofi check "MPI, windows by btl/ofi, 2 processes" \
		natively mpi 150 2 ./window
	OMPI_MCA_osc=rdma OMPI_MCA_btl=self,ofi check "MPI, windows by btl/ofi, 4 processes" \
		natively mpi 500 4 ./window
	check "MPI, 64 processes start and end" meet 64
	check "memory for each peer" flat
	check "memory for each peer, ofi_rxm" flat --rxm
	OMPI_MCA_mtl_ofi_provider_include="hamlyn;ofi_rxm" check "MPI, ofi_rxm, 4 processes" \
		mpi 400 4 ./exchange
	if [ "$long" = yes ]; then
		check "MPI, 16 processes" natively mpi 4000 16 ./exchange
		check "MPI, 200 processes start and end" meet 200
		check "MPI, 200 processes exchange" natively many 200
		OMPI_MCA_mtl_ofi_provider_include="hamlyn;ofi_rxm" check "MPI, ofi_rxm, 16 processes" \
			mpi 4000 16 ./exchange
		if [ -d /usr/lib/python3/dist-packages/mpi4py ]; then
			check "mpi4py, threads" natively mpi 100 3 /usr/bin/python3 "$tests/mpi4py_exchange.py"
			OMPI_MCA_osc=pt2pt check "mpi4py, windows over messages" \
				natively mpi 100 4 /usr/bin/python3 "$tests/mpi4py_exchange.py" --window
			! command -v valgrind >/dev/null || limit=$((8 * limit)) check "valgrind: mpi4py" \
				watched natively mpi 100 2 "$work/valgrind" /usr/bin/python3 "$tests/mpi4py_exchange.py"
		fi
		check "NetPIPE" natively mpi 1000 2 NPopenmpi -u 1048576 -o np.out
		sed -e '6s/^[0-9]*/300/' -e '12s/^[0-9]*/1/' /usr/share/doc/hpcc/examples/_hpccinf.txt \
			>hpccinf.txt
		check "HPCC" natively mpi 1000 2 hpcc
		check "HPCC found all correct" grep -q '^Success=1' hpccoutf.txt
	fi
	if command -v fi_pingpong >/dev/null; then
		check "the commands of mpi.rst" page_commands
	fi
else
	skip "MPI" "openmpi-bin or libopenmpi-dev is not installed"
fi

total
