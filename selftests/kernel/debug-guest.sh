#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest, on a kernel made for debugging: faults at every allocation of every
# call, of loading the module, then random calls.
set -u

ME=debug-guest.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/lib.sh"

usage() {
	cat <<END
Usage: debug-guest.sh [--seconds N] [--seeds "A B ..."] [--module FILE] [--no-faults]

Runs fail_nth and fuzz_calls, which are beside it or in PATH, as root. The module is
loaded at the beginning and at the end. Needs lib.sh beside it.

  --seconds N      of random calls, with each seed (\$HAMLYN_FUZZ_SECONDS, else 60)
  --seeds "A B"    seeds of the random calls (\$HAMLYN_FUZZ_SEEDS, else "1")
  --module FILE    what is loaded (./hamlyn.ko)
  --no-faults      random calls only

What the kernel cannot do (fault injection, KCOV) is skipped, and counted as skipped.
Ends with "N passed, N failed"; exit status 0 if none failed.
END
}

seconds=${HAMLYN_FUZZ_SECONDS:-60}
seeds=${HAMLYN_FUZZ_SEEDS:-1}
module=./hamlyn.ko
faults=yes

while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage && exit 0 ;;
	--no-faults) faults=no && shift && continue ;;
	--seconds | --seeds | --module) ;;
	*) die "$1 is unknown; see --help" ;;
	esac
	[ $# -ge 2 ] || die "$1 needs a value"
	case $1 in
	--seconds) seconds=$2 ;;
	--seeds) seeds=$2 ;;
	--module) module=$2 ;;
	esac
	shift 2
done
number --seconds "$seconds"
[ -e "$module" ] || die "there is no $module"

PATH=$PATH:$(dirname "$0")
work_folder debug

program() { # COMMAND...
	totals "$1" "$work/program" "$@"
}

# As it is loaded now, with the parameters that decide what loading does.
loaded=
for name in engine engines nics packet_size max_slots; do
	loaded="$loaded $name=$(cat /sys/module/hamlyn/parameters/$name)"
done

if [ "$faults" = yes ]; then
	program fail_nth
	program fail_nth --lasting --no-kmemleak
	check "the module can be unloaded after faults in calls" rmmod hamlyn
	program fail_nth --module "$module" "nics=2 engines=2 max_slots=64"
	program fail_nth --no-kmemleak --module "$module" "engine=inline nics=1 engine_cpus=0"
	# shellcheck disable=SC2086 # several words
	check "and loaded after faults in loading" insmod "$module" $loaded
fi

kcov=
if grep -q '__sanitizer_cov_trace_pc' /proc/kallsyms && [ -e /sys/kernel/debug/kcov ]; then
	kcov=--kcov
else
	skip "what random calls reach is followed" "this kernel has no KCOV"
fi
for seed in $seeds; do
	program fuzz_calls $kcov --seconds "$seconds" --seed "$seed"
	check "the module can be unloaded after random calls, seed $seed" rmmod hamlyn
	# shellcheck disable=SC2086 # several words
	check "and loaded" insmod "$module" $loaded
done

total
