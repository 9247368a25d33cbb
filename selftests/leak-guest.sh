#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: is anything left of objects that came and went? Seen from outside, by
# what the debug kernel keeps account of: kmemleak, page_owner, the counters of
# pinned pages, and the driver's tracepoints.
set -u

ME=leak-guest.sh
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

usage() {
	cat <<'EOT'
Usage: leak-guest.sh [--rounds N]

  --rounds N  how often each object is made (default 10); also from the kernel command
              line: hamlyn.leak=N

Needs ./leak, ./hamlynctl, ./hamlyn.ko, lib.sh beside the script, and the kernel "debug" with
kmemleak=on page_owner=on on its command line: see README.md in vm/.
Ends with "N passed, N failed".
EOT
}

rounds=$(sed -n 's/.*hamlyn\.leak=\([0-9]*\).*/\1/p' /proc/cmdline)
rounds=${rounds:-10}
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--rounds)
		number --rounds "${2:-}"
		rounds=$2
		shift
		;;
	*) die "unknown word $1; see --help" ;;
	esac
	shift
done

debug=/sys/kernel/debug
tracing=/sys/kernel/tracing
work_folder leak

# ---- what is kept account of ----

can_look() {
	[ -w $debug/kmemleak ] || { echo "no kmemleak: is kmemleak=on?"; return 1; }
	echo scan >$debug/kmemleak || { echo "kmemleak is off"; return 1; }
	[ -r $debug/page_owner ] || { echo "no page_owner: is page_owner=on?"; return 1; }
	[ -d $tracing/events/hamlyn ] || { echo "no tracepoints of hamlyn"; return 1; }
	dd if=$debug/page_owner bs=16k count=1 2>/dev/null | grep '^Page allocated via order' ||
		{ echo "page_owner cannot be read"; return 1; }
}

# An object is reported when it is older than 5 s at the start of a scan, and the checksum
# of what is in it has not changed since the last. A third scan, of many seconds, drops
# what was only being moved.
unreferenced() {
	echo scan >$debug/kmemleak
	sleep 6
	echo scan >$debug/kmemleak
	[ -z "$(cat $debug/kmemleak)" ] || echo scan >$debug/kmemleak
	cat $debug/kmemleak
}

no_leak() {
	unreferenced >"$work/leaks"
	cat "$work/leaks"
	[ ! -s "$work/leaks" ]
}

# Pages that the module allocated and nobody freed: areas, rings; as lines "PAGES WHERE".
# Blocks of text, one for each page or row of pages, with an empty line behind it; one that
# does not fit into what the reader has room for is an error. Slabs stay for others; their
# objects are kmemleak's. So do page tables of the kernel, and until it is purged KASAN's
# shadow of what is mapped.
owned_pages() {
	dd if=$debug/page_owner bs=16k 2>/dev/null | awk '
		/^Page allocated via order/ {
			for (pages = 1; $5 + 0 > 0; $5 -= 1) pages *= 2
			where = ""; mine = 0; others = 0
			next
		}
		/^PFN .*[(|]slab[|)]/ || /kasan_populate_vmalloc|__pte_alloc|__pmd_alloc|__pud_alloc/ { others = 1 }
		/^ / && !mine { sub(/\+.*/, "", $1); where = where " " $1 }
		/\[hamlyn\]/ { mine = 1 }
		/^$/ { if (mine && !others) sum[where] += pages; mine = 0 }
		END { for (where in sum) print sum[where] where }' | sort -k2
}

pinned_pages() {
	awk '$1 == "nr_foll_pin_acquired" { n += $2 } $1 == "nr_foll_pin_released" { n -= $2 }
		END { print n + 0 }' /proc/vmstat
}

threads() { cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^hamlyn[0-9]*/' || true; }

figures() {
	owned_pages >"$work/pages"
	pages=$(awk '{ n += $1 } END { print n + 0 }' "$work/pages")
	echo "pins $(pinned_pages) threads $(threads) pages $pages"
}

# Ends of what was killed can still be under way: the same figures at some time are enough.
# Pages are looked for half a minute each time.
figures_are() { # FIGURES
	tries=0
	while [ $tries -lt 20 ] &&
		[ "pins $(pinned_pages) threads $(threads)" != "${1%% pages*}" ]; do
		sleep 1
		tries=$((tries + 1))
	done
	for _ in 1 2; do
		now=$(figures)
		[ "$now" != "$1" ] || return 0
	done
	diff "$work/pages.before" "$work/pages"
	echo "before: $1"
	echo "now:    $now"
	return 1
}

# ---- created and destroyed ----

pairs="context:context_open:context_close area:area_add,area_alloc:area_remove
nq:nq_create:nq_destroy slot:slot_create:slot_destroy
terminus:terminus_create:terminus_destroy watch:watch:unwatch nic:nic_create:nic_delete"

start_counting() {
	echo 0 >$tracing/tracing_on
	echo 16384 >$tracing/buffer_size_kb
	: >$tracing/trace
	for event in $(echo "$pairs" | tr ':,' '  '); do
		[ ! -d $tracing/events/hamlyn/hamlyn_"$event" ] ||
			echo 1 >$tracing/events/hamlyn/hamlyn_"$event"/enable
	done
	echo 1 >$tracing/tracing_on
}

stop_counting() {
	echo 0 >$tracing/tracing_on
	echo 0 >$tracing/events/hamlyn/enable
	cat $tracing/trace >"$work/trace"
	: >$tracing/trace
}

complete_trace() { # entries-in-buffer/entries-written: A/B
	awk -F'[:/ ]+' '/entries-in-buffer/ { print; ok = $4 == $5 && $4 > 0 } END { exit !ok }' "$work/trace"
}

count() { # EVENT,...
	sum=0
	for event in $(echo "$1" | tr , ' '); do
		sum=$((sum + $(grep -c " hamlyn_$event: " "$work/trace")))
	done
	echo $sum
}

# is_paired NAME CREATE DESTROY LEAST: so many, and each was destroyed
is_paired() {
	created=$(count "$2")
	destroyed=$(count "$3")
	echo "$created created, $destroyed destroyed, at least $4 expected"
	[ "$created" = "$destroyed" ] && [ "$created" -ge "$4" ]
}

check_pairs() {
	for pair in $pairs; do
		name=${pair%%:*}
		rest=${pair#*:}
		# Of each kind one a round, in five of the tests
		least=$((rounds * 5))
		[ "$name" != nic ] || least=$rounds
		check "as many of $name destroyed as created" \
			is_paired "$name" "${rest%%:*}" "${rest#*:}" "$least"
		sed -n 's/^/# /; 1p' "$work/log"
	done
}

# ---- what is done ----

nics() {
	i=0
	while [ $i -lt "$rounds" ]; do
		nic=$(./hamlynctl nic add engines 2) || return 1
		nic=${nic%%[!a-z0-9]*}
		HAMLYN_DEVICE=/dev/$nic HAMLYN_LEAK_ROUNDS=1 ./leak || return 1
		./hamlynctl nic del "$nic" || return 1
		i=$((i + 1))
	done
}

objects() { HAMLYN_DEVICE=/dev/hamlyn0 HAMLYN_LEAK_ROUNDS=$rounds ./leak; }

reload() {
	i=0
	while [ $i -lt 3 ]; do
		rmmod hamlyn && insmod ./hamlyn.ko "$@" || return 1
		HAMLYN_DEVICE=/dev/hamlyn0 HAMLYN_LEAK_ROUNDS=1 ./leak || return 1
		i=$((i + 1))
	done
}

check "the kernel keeps account" can_look
[ "$failed" = 0 ] || { total; exit; }

# What is made once and kept is there afterwards.
HAMLYN_DEVICE=/dev/hamlyn0 HAMLYN_LEAK_ROUNDS=1 ./leak >/dev/null 2>&1
sleep 1
before=$(figures)
cp "$work/pages" "$work/pages.before"
echo "# $before"
start_counting
check "$rounds rounds of every object" objects
check "$rounds NICs with every object" nics
check "pages, pins and threads are what they were" figures_are "$before"
stop_counting
check "no event was lost" complete_trace
check_pairs
check "no leak after two scans" no_leak
check "loading and unloading, polling engine" reload engine=poll engines=2
check "loading and unloading, no engine" reload engine=inline
check "no leak of the modules that are gone" no_leak

total
