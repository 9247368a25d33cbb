#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: storms with the module unloaded and loaded in between, in both
# engine modes. What the kernel has left of them is in /proc afterwards.
set -u

ME=storm-guest.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/lib.sh"

usage() {
	cat <<'EOT'
Usage: storm-guest.sh [--processes N] [--rounds N]

  --processes N  how many die in each round (default 200)
  --rounds N     storms behind the first, which warms the kernel up (default 4)

Needs ./storm, ./hamlyn.ko, and lib.sh beside the script. Also from the kernel command line:
hamlyn.storm=PROCESSES,ROUNDS. Ends with "N passed, N failed".
EOT
}

processes=200
rounds=4
words=$(sed -n 's/.*hamlyn\.storm=\([0-9]*,[0-9]*\).*/\1/p' /proc/cmdline)
[ -z "$words" ] || {
	processes=${words%,*}
	rounds=${words#*,}
}
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--processes | --rounds)
		number "$1" "${2:-}"
		if [ "$1" = --rounds ]; then rounds=$2; else processes=$2; fi
		shift
		;;
	*) die "unknown word $1; see --help" ;;
	esac
	shift
done

# What all storms together may leave, in KiB; it differs by 1 MiB from storm to storm. A
# page for each of the killed is more than this in one round of 2000. What is smaller, or
# fewer, storm itself notices: it compares the device's own counts, to the page and the
# object; and the module unloads only when nobody holds it.
SLACK_KB=8192
# And KASAN keeps what was freed for a while: up to a 32nd of the memory.
! grep -q kasan_ /proc/kallsyms ||
	SLACK_KB=$((SLACK_KB + $(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo) / 32))
# Of a kind: what the shell and the kernel's threads have more or less of by chance. One
# object left for each of the killed is more than twice that in a round of 200.
SLACK_OBJECTS=64


# Exact: unevictable, locked and charged memory, and what is mapped of vmalloc's.
field() { # NAME
	awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo
}

# Objects in use of the slab caches that the driver allocates from. Others of the
# kernel's allocate from them too; those with thousands of objects in use are left out.
slab_objects() {
	[ -r /proc/slabinfo ] || return 0
	# Else all objects of the slabs that a processor has at hand count as in use.
	for shrink in /sys/kernel/slab/*/shrink; do
		[ ! -w "$shrink" ] || echo 1 >"$shrink"
	done
	awk '/^kmalloc-cg-|^radix_tree_node|^task_struct|^mm_struct|^files_cache/ {
		print $1, $2 }' /proc/slabinfo
}

load() { # ENGINE
	insmod ./hamlyn.ko engine="$1" nics=1 guesses=0 max_slots=4096
}

storm() {
	HAMLYN_DEVICE=/dev/hamlyn0 ./storm --processes "$processes" >/tmp/storm.log 2>&1
	status=$?
	grep '^# storm:' /tmp/storm.log
	[ "$status" = 0 ] || grep -v '^# storm:' /tmp/storm.log | sed 's/^/# | /' | tail -n 30
	return "$status"
}

rmmod hamlyn 2>/dev/null

# The first fills caches that stay filled: what it leaves is where we begin.
for engine in poll inline; do
	load $engine
	storm
	verdict "warming up, engine=$engine: nobody was disturbed" $?
	rmmod hamlyn
	verdict "and the module can be unloaded" $?
done

pins_before=$(pinned_kb)
mlocked_before=$(field Mlocked)
vmalloc_before=$(field VmallocUsed)
slab_objects >/tmp/slabs.before
free_before=$(free_kb)
echo "# at the start: free $free_before KiB, vmalloc $vmalloc_before KiB, pinned $pins_before KiB"

round=0
while [ "$round" -lt "$rounds" ]; do
	round=$((round + 1))
	engine=poll
	[ $((round % 2)) = 0 ] || engine=inline
	load $engine
	verdict "round $round, engine=$engine: the module loads" $?
	storm
	verdict "round $round: nobody was disturbed" $?
	[ ! -e /proc/self/status ] || [ "$(pinned_kb)" = "$pins_before" ]
	verdict "round $round: nothing is pinned by any process" $?
	rmmod hamlyn
	verdict "round $round: the module can be unloaded at once" $?
	[ ! -e /dev/hamlyn0 ] && ! grep -q '^hamlyn ' /proc/modules
	verdict "round $round: nothing of it is left" $?
	echo "# behind round $round: free $(free_kb) KiB"
done

free_after=$(free_kb)
slab_objects >/tmp/slabs.after
echo "# at the end: free $free_after KiB, vmalloc $(field VmallocUsed) KiB, pinned $(pinned_kb) KiB"
[ $((free_before - free_after)) -le $SLACK_KB ]
verdict "free memory is back, within $SLACK_KB KiB" $? \
	"$((free_before - free_after)) KiB are missing"
# A module that is loaded may be laid out over another number of pages.
[ $(($(field VmallocUsed) - vmalloc_before)) -le 64 ]
verdict "no memory of vmalloc is left" $? "$vmalloc_before before, $(field VmallocUsed) after"
[ "$(field Mlocked)" = "$mlocked_before" ]
verdict "no memory is locked" $? "$mlocked_before before, $(field Mlocked) after"
if [ -s /tmp/slabs.before ]; then
	more=$(awk -v slack=$SLACK_OBJECTS 'NR == FNR { was[$1] = $2; next }
		$2 - was[$1] > slack { print $1 ": " was[$1] " before, " $2 " after" }' \
		/tmp/slabs.before /tmp/slabs.after)
	[ -z "$more" ]
	verdict "no objects of the kernel are left, within $SLACK_OBJECTS of a kind" $? "$more"
fi
load poll
verdict "the module loads once more" $?

total
