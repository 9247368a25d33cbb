#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In the guest: everything at once, for a while. Each part has a NIC of its own and
# runs again and again, each time with another seed; soak.sh starts it and says what
# is in the folder.
set -u

ME=soak-guest.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/lib.sh"

usage() {
	cat <<'EOT'
Usage: soak-guest.sh [--seconds N] [--engine poll|inline]

Runs the model test, Active Messages over the adversary, storm, race, hostile programs,
hamlynctl changing things and, where they are, fuzz_calls, all at once, until the time is
up; then unloads the module. Prints a table of figures and "N passed, N failed": one
for each part, and for what must be back. Also from the kernel command line:
hamlyn.soak=SECONDS,ENGINE.
EOT
}

seconds=3600
engine=poll
only=
end=0
words=$(sed -n 's/.*hamlyn\.soak=\([0-9]*,[a-z]*\).*/\1/p' /proc/cmdline)
[ -z "$words" ] || {
	seconds=${words%,*}
	engine=${words#*,}
}
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--seconds) seconds=${2:-}; shift ;;
	--engine) engine=${2:-}; shift ;;
	--part) only=${2:-}; shift ;;	# for itself: one part, until then
	--until) end=${2:-0}; shift ;;
	*) die "unknown word $1; see --help" ;;
	esac
	shift
done
number --seconds "$seconds"
case $engine in
poll | inline) ;;
*) die "--engine takes poll or inline" ;;
esac

# As patient as an hour of everything at once on two processors needs.
HAMLYN_TEST_SCALE=${HAMLYN_TEST_SCALE:-10}
export HAMLYN_TEST_SCALE
GRACE=60
work=/tmp/soak
mkdir -p $work

# ---- parts ----

# Until the time is up, or it fails: a part's command with $seed.
again() { # NAME COMMAND...
	part=$1
	shift
	seed=0
	while [ "$(cut -d. -f1 /proc/uptime)" -lt "$end" ] && [ ! -e "$work/$part.failed" ]; do
		seed=$((seed + 1))
		export HAMLYN_TEST_SEED=$seed
		if "$@" >"$work/$part.log" 2>&1; then
			echo "$seed" >"$work/$part.runs"
			[ $((seed % 10)) != 1 ] || echo "# $part: run $seed is done"
			grep -E '^# (storm|race|fuzz)|of them by themselves|: SKIP|# SKIP' \
				"$work/$part.log" >>"$work/$part.said"
		elif [ -e $work/over ]; then
			break
		else
			echo "# $part failed in run $seed"
			grep -E '\.c:[0-9]|^not ok|erminated' "$work/$part.log" | tail -n 8 | cut -c 1-300 | sed 's/^/# | /'
			mv "$work/$part.log" "$work/$part.failed"
		fi
	done
}

run_model() { HAMLYN_DEVICE=/dev/hamlyn3 ./model; }
run_storm() { HAMLYN_DEVICE=/dev/hamlyn1 ./storm --processes 80; }
run_race() { HAMLYN_DEVICE=/dev/hamlyn2 ./race; }
run_race_kernel() { HAMLYN_DEVICE=/dev/hamlyn0 ./race_kernel; }

# Another one each time: all of them take minutes.
run_hostile() {
	set -- hostile_wq hostile_mmap hostile_ticket fork_kill threads protection
	shift $((seed % $#))
	HAMLYN_DEVICE=/dev/hamlyn5 "./$1"
}

# Another disturbance each time; every message once nevertheless.
run_am() {
	case $((seed % 5)) in
	0) adversary="drop 10%" ;;
	1) adversary="duplicate 10%" ;;
	2) adversary="reorder 10%" ;;
	3) adversary="corrupt 5%" ;;
	*) adversary="drop 5% duplicate 5% reorder 5% corrupt 5%" ;;
	esac
	# shellcheck disable=SC2086 # several words
	./hamlynctl nic set hamlyn4 adversary off &&
		./hamlynctl nic set hamlyn4 adversary $adversary seed "$seed" &&
		./hamlyn-run --device /dev/hamlyn4 --timeout 1500 -n 3 \
			./exactly_once --messages 300
}

# Engines, limits of a user, and looks at all of it. NIC 0 and the parameters are
# race_kernel's, which compares them.
run_admin() {
	for nic in 1 2 3 4 5; do
		./hamlynctl nic set hamlyn$nic idle-us $((seed * 13 % 300)) \
			kick-window-us $((seed * 37 % 2000)) || return 1
		./hamlynctl limit set $nic uid alice user-slots $((seed % 100)) \
			user-kernel-memory $((1 + seed % 64))M || return 1
		for object in nic context area slot nq terminus stats user; do
			./hamlynctl $object show $nic >/dev/null || return 1
		done
	done
	sleep 0.2
}

# On NIC 0 and those that it makes: it waits its turn with race_kernel.
run_fuzz() { ./fuzz_calls --others 5 --seconds 30 --seed "$seed" --processes 4 --threads 2; }

run_nic0() {
	if [ -x ./fuzz_calls ] && [ $((seed % 2)) = 0 ]; then
		run_fuzz
	else
		run_race_kernel
	fi
}

[ -z "$only" ] || {
	again "$only" "run_$only"
	exit 0
}

# ---- figures ----

stats() { ./hamlynctl stats show; }

# Sum over all NICs of a number behind a word.
sum() { # WORD
	awk -v word="$1" '{ gsub(/[:,]/, " ")
		for (i = 1; i < NF; i++) if ($i == word) n += $(i + 1)
		} END { printf "%.0f\n", n }' $work/stats
}

said() { # WORD=: sum over all that the parts said
	cat $work/*.said 2>/dev/null | tr ' ' '\n' |
		awk -F= -v word="$1" '$1 == word { n += $2 } END { printf "%.0f\n", n }'
}

row() { printf '# %-34s %s\n' "$1" "$2"; }

rmmod hamlyn 2>/dev/null
load="insmod ./hamlyn.ko engine=$engine nics=6 guesses=0 max_slots=4096"
# Once for nothing, so that what the kernel keeps for later is there at the start.
$load && ./storm --processes 16 >/dev/null 2>&1
rmmod hamlyn
free_before=$(free_kb)
pins_before=$(pinned_kb)
$load || {
	bad "the module loads"
	total
	exit
}

begun=$(cut -d. -f1 /proc/uptime)
end=$((begun + seconds))
parts="model storm race hostile am admin nic0"
pids=
# Each in a session of its own, so that it can be ended with all its children.
for part in $parts; do
	setsid sh "$0" --part "$part" --until "$end" &
	pids="$pids $!"
done

uptime_s() { cut -d. -f1 /proc/uptime; }

alive() {
	for pid in $pids; do
		kill -0 "$pid" 2>/dev/null && return 0
	done
	return 1
}

while [ "$(uptime_s)" -lt "$end" ] && alive; do
	sleep 5
done
took=$(($(uptime_s) - begun))
# What runs may end by itself for a while; then all that is left is killed in its
# traffic, at once.
while [ "$(uptime_s)" -lt $((end + GRACE)) ] && alive; do
	sleep 1
done
touch $work/over
echo "# time is up"
for pid in $pids; do
	kill -KILL -- "-$pid" 2>/dev/null
done
# shellcheck disable=SC2086 # several words
wait $pids 2>/dev/null
# Who still has a device open or mapped, by name
holders() {
	for process in /proc/[0-9]*; do
		if readlink "$process"/fd/* 2>/dev/null | grep -q /dev/hamlyn ||
			grep -q /dev/hamlyn "$process/maps" 2>/dev/null; then
			echo "${process#/proc/} $(cat "$process/comm" 2>/dev/null)" \
				"$(cat "$process/wchan" 2>/dev/null)"
		fi
	done
}

# Their children's children, and network namespaces, take a moment: on a loaded machine
# under detectors, minutes.
tries=300
while [ "$(cat /sys/module/hamlyn/refcnt)" != 0 ] && [ $tries -gt 0 ]; do
	tries=$((tries - 1))
	sleep 1
done
./hamlynctl nic set hamlyn4 adversary off >/dev/null 2>&1
stats >$work/stats

for part in $parts; do
	runs=$(cat "$work/$part.runs" 2>/dev/null || echo 0)
	[ ! -e "$work/$part.failed" ] && [ "$runs" != 0 ]
	verdict "$part, $runs times" $? \
		"$(excerpt "$work/$part.failed" | grep . || echo "it never got to an end")"
done
[ "$(pinned_kb)" = "$pins_before" ]
verdict "nothing is pinned by any process" $?
rmmod hamlyn
verdict "the module can be unloaded" $? \
	"$(cat /sys/module/hamlyn/refcnt 2>/dev/null) references; $(holders | tr '\n' ',')"
free_after=$(free_kb)
# What the kernel keeps for itself after an hour of processes, files and namespaces.
# KASAN keeps what was freed for a while: a 32nd of the memory.
tolerated=32768
! grep -q kasan_ /proc/kallsyms ||
	tolerated=$((tolerated + $(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo) / 32))
[ $((free_before - free_after)) -le $tolerated ]
verdict "free memory is back, within $((tolerated / 1024)) MiB" $? \
	"$((free_before - free_after)) KiB are missing"

row "kernel" "$(uname -r)"
row "engine" "$engine"
row "seconds" "$took"
for part in $parts; do
	row "runs of $part" "$(cat "$work/$part.runs" 2>/dev/null || echo 0)"
done
row "messages (all NICs but deleted ones)" "$(sum messages)"
row "packets" "$(sum packets)"
row "notifications" "$(sum notifications)"
row "messages refused to their senders" "$(sum failed)"
row "overruns, all told" "$(sum overruns)"
row "kicks" "$(sum kicks)"
for reason in slot key bounds metadata format one-shot ticket down; do
	row "rejects: $reason" "$(sum $reason)"
done
row "guesses (rejects: slot, key, ticket)" "$(($(sum slot) + $(sum key) + $(sum ticket)))"
row "messages verified by storm and race" "$(said messages)"
row "processes killed by storm" "$(said kills)"
row "processes stopped by storm" "$(said stops)"
row "PEER_GONE told, once each" "$(said told)"
row "processes ended by fuzz_calls" "$(cat $work/*.said 2>/dev/null |
	sed -n 's/^# \([0-9]*\) processes ended.*/\1/p' | awk '{ n += $1 } END { print n + 0 }')"
row "free memory at start, end (KiB)" "$free_before, $free_after"
row "pinned at start, end (KiB)" "$pins_before, $(pinned_kb)"

total
