#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Everything at once in a virtual machine, for an hour or as long as is wanted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
ME=soak.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh
# shellcheck source-path=SCRIPTDIR source=../vm/vm-run.sh
. selftests/vm/vm-run.sh

usage() {
	cat <<'EOT'
Usage: selftests/kernel/soak.sh [option]...

  --kernel K        kernel of selftests/vm/run.sh: debug, kcsan, 6.1, 6.12, 7.2
                    (debug if it is in the cache, else 6.1)
  --minutes N       how long (60)
  --engine MODE     poll (default) or inline
  --smp N           processors of the machine (2)
  --mem MIB         its memory (2048; 3072 for debug and kcsan)
  --module FILE     a hamlyn.ko for that kernel, instead of building one
  --out DIR         keeps console and output (default $BUILD/logs/soak)
  --no-build        use the programs that are in $BUILD (default build/)

The model test, Active Messages over the adversary, storm, race, hostile programs,
hamlynctl changing things and fuzz_calls run at once, each on a NIC of its own. Ends with
a table of figures and "N passed, N failed". A line in the kernel log that a healthy
kernel does not write fails the run, too.
EOT
}

BUILD=${BUILD:-build}
CACHE=${HAMLYN_CACHE:-.cache}
kernel="" minutes=60 engine=poll smp=2 mem="" module="" out="" build=yes
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		usage
		exit 0
		;;
	--no-build)
		build=no
		shift
		continue
		;;
	--kernel | --minutes | --engine | --smp | --mem | --module | --out)
		[ $# -gt 1 ] || die "$1 needs a value"
		;;
	*) die "unknown word $1; see --help" ;;
	esac
	declare "${1#--}=$2"
	shift 2
done
number --minutes "$minutes"
number --smp "$smp"
[ -z "$mem" ] || number --mem "$mem"
case $engine in
poll | inline) ;;
*) die "--engine takes poll or inline" ;;
esac
if [ -z "$kernel" ]; then
	kernel=6.1
	[ ! -d "$CACHE/kernel-debug" ] || kernel=debug
fi
case $kernel in
debug | kcsan) mem=${mem:-3072} ;;
*) mem=${mem:-2048} ;;
esac
out=${out:-$BUILD/logs/soak}
mkdir -p "$out"

if [ "$build" = yes ]; then
	make --no-print-directory -s "-j$(nproc)" "BUILD=$BUILD" lib examples selftests \
		hamlynctl-test am-tests
fi
if [ -z "$module" ]; then
	module=$BUILD/k$kernel/hamlyn.ko
	selftests/vm/build-module.sh "$kernel" . "$BUILD/k$kernel" >/dev/null
fi

files=(--file "$module:/host/hamlyn.ko" --file "$BUILD/hamlynctl"
	--file "$BUILD/am/hamlyn-run" --file "$BUILD/am/exactly_once")
for program in model storm race race_kernel hostile_wq hostile_mmap hostile_ticket fork_kill \
	threads protection; do
	files+=(--file "$BUILD/selftests/$program")
done
[ ! -e "$BUILD/selftests/fuzz_calls" ] || files+=(--file "$BUILD/selftests/fuzz_calls")

vm_run "$out" "$kernel" --smp "$smp" --mem "$mem" --timeout $((minutes * 60 * 2 + 1800)) \
	--append "hamlyn.soak=$((minutes * 60)),$engine no_timer_check" "${files[@]}" \
	--script selftests/kernel/soak-guest.sh
