#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# hamlyn-perf on the embedded device: that it measures what it says, notices
# what is wrong, and tells of it. Nothing here judges how fast anything is.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2

case ${1:-} in
-h | --help)
	echo "Usage: selftests/tools/perf-test.sh [PROGRAM]  (default: build/hamlyn-perf)"
	exit 0
	;;
esac

PERF=$(realpath "${1:-build/hamlyn-perf}") || exit 2
BRIDGE=$(dirname "$PERF")/hamlyn-bridge
HERE=tools/hamlyn-perf
TINY=(--quiet --reps 1 --time 1)
LIMIT=$((180 * ${HAMLYN_TEST_SCALE:-1})) # seconds: two that poll, and others have the processors
export HAMLYN_DEVICE=shm:perf-test-$$
passed=0
failed=0
skipped=0

work=$(mktemp -d "${TMPDIR:-/tmp}/hamlyn-perf-test.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/empty" # a PATH with no programs in it

good() { # NAME
	echo "ok - $1"
	passed=$((passed + 1))
}

bad() { # NAME: what was said is shown
	echo "not ok - $1"
	sed 's/^/# | /' "$work/out" "$work/err" | head -n 20
	failed=$((failed + 1))
}

skip() { # NAME WHY
	echo "ok - $1 # SKIP $2"
	skipped=$((skipped + 1))
}

perf() { # OPTION...: in $work/out and $work/err; bounded
	timeout -k 5 "$LIMIT" "$PERF" "$@" >"$work/out" 2>"$work/err" </dev/null
}

alone() { # OPTION...: the same, without any other program installed
	timeout -k 5 "$LIMIT" env PATH="$work/empty" "$PERF" "$@" >"$work/out" 2>"$work/err" </dev/null
}

bridge() { # NAME OPTION...: one of this test's, from here on
	local name=$1
	shift
	timeout "$LIMIT" "$BRIDGE" "shm:perf-test-$name-$$,size=64M" --clear "$@" >"$work/bridge-$name" 2>&1 &
	bridges+=($!)
	for _ in $(seq 100); do
		! grep -q 'is ready$' "$work/bridge-$name" || return 0
		sleep 0.1
	done
	return 1
}

# The first one asks again now and then, so for a while each knows of the other host and of no way.
measures_between_hosts() {
	local bridges=() port=$((20000 + RANDOM % 10000)) ok=1
	bridge a --host 1 --peer "2=127.0.0.1:$port" &&
		bridge b --host 2 --listen "127.0.0.1:$port" --peer 1=127.0.0.1 &&
		perf --device "shm:perf-test-a-$$" --peer-device "shm:perf-test-b-$$" --timeout 60 \
			"${TINY[@]}" --systems hamlyn --sizes 64 lat && ok=0
	kill "${bridges[@]}" 2>/dev/null
	wait "${bridges[@]}" 2>/dev/null
	return "$ok"
}

check() { # NAME COMMAND...
	local name=$1
	shift
	if "$@"; then good "$name"; else bad "$name"; fi
}

json() { # TESTS OPTION...: every line fits its schema, and the TESTS are there
	local tests=$1
	shift
	# shellcheck disable=SC2086 # several words
	perf --json "$@" && fits "$work/out" $tests
}

fits() { # FILE TEST...
	"$HERE/test/schema.py" "$@" >"$work/err" 2>&1
}

# refuses STATUS PATTERN OPTION...: it fails so, prints no results and says why
refuses() {
	local want=$1 pattern=$2 status=0
	shift 2
	perf "$@" || status=$?
	[ "$status" = "$want" ] && [ ! -s "$work/out" ] &&
		grep -qE -e "^hamlyn-perf: .*$pattern" "$work/err"
}

# all_columns OPTION...: as many values in each line of CSV as the first has names
all_columns() {
	perf --csv "$@" && awk -F, 'NR == 1 { n = NF } NF != n { bad = 1; exit }
		END { exit bad || NR < 2 }' "$work/out"
}

of_empty_name() {
	HAMLYN_DEVICE="" perf "${TINY[@]}" --sizes 16 --systems hamlyn lat
}

cannot_tell() { # OPTION
	local status=0
	"$PERF" "$1" >/dev/full 2>"$work/err" || status=$?
	[ "$status" = 1 ] && grep -q "^hamlyn-perf: cannot write to standard output" "$work/err"
}

small_letters() { # of sizes
	perf --csv "${TINY[@]}" --sizes 1k,1M --systems pipe lat &&
		[ "$(grep -c '^pipe,lat,' "$work/out")" = 2 ]
}

names_of() { # HEADING: the first words of the lines below it in --help
	"$PERF" --help | awk -v heading="$1:" '$0 == heading { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}

# ---- commands ----

# What each command is run with; whoever adds a command adds a line.
commands() {
	check "lat" json "lat machine" "${TINY[@]}" --sizes 0,8,16,4M lat
	check "bw" json "bw machine" "${TINY[@]}" --sizes 64,1M bw
	check "bw with huge pages, or without" json "bw areas machine" "${TINY[@]}" --huge \
		--sizes 64K --systems hamlyn bw
	check "rate" json "rate machine" "${TINY[@]}" rate
	check "rate of several pairs" json "rate machine" "${TINY[@]}" --pairs 3 \
		--systems hamlyn,pipe,limit rate
	check "rate of two devices, TCP to an address" json "rate machine" "${TINY[@]}" \
		--peer-device "$HAMLYN_DEVICE" --peer-address 127.0.0.1 --systems hamlyn,tcp rate
	check "load" json "load machine" "${TINY[@]}" --sizes 0,16,4K load
	check "compare --quick" json "lat bw rate load machine" --quick "${TINY[@]}" compare
	check "count" perf --n 100 --op send16 count
	check "msgloop" json msgloop --n 100 --systems hamlyn,pipe msgloop
	check "syscalls" json syscalls --n 100 syscalls
	check "revoke" json "revoke machine" --time 1 --n 2 --senders 1 revoke
	check "slots" json "slots slots-memory slots-teardown machine" --count 100 slots
	check "memory" json "memory machine" --count 3 memory
	check "scale" json "scale-termini machine" --reps 1 --time 1 --count 4 --op termini scale
	check "scale: bytes" json "scale-bytes machine" --reps 1 --time 1 --huge --op bytes scale
	check "scale: engines" json "scale-engines machine" --reps 1 --time 1 --senders 2 \
		--op engines scale
	check "logp" json "logp logp-signature machine" --reps 1 --n 20 logp
	check "wake" json "wake machine" --n 5 wake
	check "inline-vs-poll" json "inline-vs-poll machine" "${TINY[@]}" --sizes 16 inline-vs-poll
	check "idle" json "idle machine" --count 10 --n 3 --time 20 idle
	check "group" json "group machine" --reps 1 --time 1 --count 4 group
	check "protocols" json "protocols machine" --reps 1 --time 1 --sizes 16 protocols
	check "plot" perf plot "$work/saved" --plot "$work/plot.svg"
}
tested="lat bw rate load compare count msgloop syscalls revoke slots memory plot
	scale logp wake inline-vs-poll idle group protocols"

every_command() {
	local command
	for command in $(names_of Commands); do
		[[ " ${tested//[[:space:]]/ } " == *" $command "* ]] || {
			echo "selftests/tools/perf-test.sh does not test $command" >"$work/err"
			return 1
		}
	done
}

# ---- all systems that are built in, and those that are missing ----

compare_alone() {
	local system
	alone --reps 1 --time 1 --sizes 16 --save "$work/saved" compare &&
		fits "$work/saved" lat bw rate load left-out machine || return 1
	grep -q "times the limit" "$work/out" && grep -q "^left out: ucx: " "$work/out" || return 1
	for system in $(names_of Systems); do
		grep -q "^{\"system\":\"$system\"," "$work/saved" || [ "$system" = fast ] || {
			echo "$system is neither there nor left out" >"$work/err"
			return 1
		}
	done
}

tells_missing() {
	local status=0
	alone "${TINY[@]}" --sizes 16 --systems ucx lat || status=$?
	[ "$status" = 1 ] && [ ! -s "$work/out" ] &&
		grep -q "ucx cannot be measured here: ..*" "$work/err"
}

# A /dev/shm of its own
may_mount() {
	command -v unshare >/dev/null &&
		unshare -m mount -t tmpfs -o huge=advise tmpfs /dev/shm 2>/dev/null
}

huge_pages() {
	# shellcheck disable=SC2016 # for the shell inside
	timeout -k 5 "$LIMIT" unshare -m sh -c 'mount -t tmpfs -o huge=advise tmpfs /dev/shm && exec "$@"' \
		sh "$PERF" "${TINY[@]}" --json --huge --sizes 1M --systems hamlyn bw \
		>"$work/out" 2>"$work/err" || return 1
	grep -q '"page_bytes":[1-9][0-9]\{6\}' "$work/out"
}

sigchld_ignored() { # by who starts it, as a container's first process may
	timeout -k 5 "$LIMIT" python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$PERF" "${TINY[@]}" --sizes 16 --systems hamlyn,pipe \
		--timeout 10 compare >"$work/out" 2>"$work/err" </dev/null
}

# ---- honesty ----

finds_spoilt() { # SYSTEM TEST SIZE
	local status=0
	perf "${TINY[@]}" --sizes "$3" --corrupt --systems "$1" "$2" || status=$?
	[ "$status" = 1 ] && [ ! -s "$work/out" ] || return 1
	grep -qE "wrong payload|takes a message of such a size|cannot be measured here" "$work/err"
}

spoilt() { # TEST SIZE SYSTEM...
	local system test=$1 size=$2
	shift 2
	for system; do
		finds_spoilt "$system" "$test" "$size" || {
			echo "$system $test" >>"$work/err"
			return 1
		}
	done
}

# Systems that queue by themselves, so that one point follows upon what the last one left
all_bytes() { # SYSTEM...
	local system
	for system; do
		perf "${TINY[@]}" --verify --sizes 0,9,4K,100K,1M --systems "$system" compare &&
			[ "$(grep -c "^$system  *[0-9]" "$work/out")" -gt 3 ] ||
			grep -q "$system cannot be measured here" "$work/err" || return 1
	done
}

ratios_are_spread() { # the median is between the lowest and the highest
	perf --quiet --reps 3 --time 1 --sizes 16,256 --systems hamlyn,pipe,limit --json compare &&
		python3 - "$work/out" >"$work/err" 2>&1 <<'EOT'
import json, sys
for line in open(sys.argv[1]):
    value = json.loads(line)
    if value["test"] in ("lat", "bw", "rate"):
        assert value["ratio_lowest"] <= value["ratio_to_limit"] <= value["ratio_highest"], value
        assert value["repetitions"] == 3 and value["cpu_ns_per_msg"] > 0, value
        assert value["system"] != "limit" or value["ratio_to_limit"] == 1, value
    if value["test"] == "lat":
        known = [value[k] for k in ("min_ns", "median_ns", "p90_ns", "p99_ns", "max_ns") if value[k]]
        assert len(known) >= 3 and value["max_ns"] >= value["median_ns"] >= value["min_ns"], value
        assert abs(value["rtt_median_ns"] - 2 * value["median_ns"]) < 0.2, value
EOT
}

# The last one, though it is no power of two
group_ends() {
	perf --json --reps 1 --time 1 --count 3 group &&
		[ "$(sed -n 's/.*"group_size":\([0-9]*\),.*/\1/p' "$work/out" | paste -sd,)" = 1,2,3 ]
}

quantiles() { # the smallest value that a share of all does not exceed, in both programs
	cat >"$work/quantile.c" <<'EOT'
#include "stats.c"

int main(void)
{
	double v[100], two[] = { 1, 2 };
	int i;

	for (i = 0; i < 100; i++)
		v[i] = i + 1;
	return quantile(v, 100, 0.99) != 99 || quantile(v, 100, 0.07) != 7 ||
	       quantile(v, 100, 0.001) != 1 || quantile(v, 100, 0.999) != 100 ||
	       quantile(v, 100, 1) != 100 || quantile(v, 1, 0.5) != 1 || quantile(two, 2, 0.5) != 1;
}
EOT
	"${CC:-gcc}" -D_GNU_SOURCE -I"$HERE" -I"$HERE/base" -Iuapi -Ilibhamlyn/include -Dquantile=stats_quantile \
		"$work/quantile.c" -lm -o "$work/quantile" >"$work/out" 2>"$work/err" &&
		"$work/quantile" || return 1
	# Of the rest of that program nothing is called
	"${CC:-gcc}" -D_GNU_SOURCE -Itools/am/lib -Ilibhamlyn/am/include -Iuapi -Ilibhamlyn/include \
		-ffunction-sections -Wl,--gc-sections \
		"$work/quantile.c" -lm -o "$work/quantile" >"$work/out" 2>"$work/err" &&
		"$work/quantile"
}

# ---- diagrams ----

# is_svg FILE TEXT...: well-formed, and says the TEXTs
is_svg() {
	python3 - "$@" >"$work/err" 2>&1 <<'EOT'
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root.tag.endswith("svg"), root.tag
said = "".join(root.itertext())
for text in sys.argv[2:]:
    assert text in said, text
EOT
}

draws() {
	perf "${TINY[@]}" --sizes 0,4K --systems hamlyn,pipe-spin,limit \
		--plot "$work/compare.svg" compare &&
		is_svg "$work/compare.svg" latency Bandwidth hamlyn pipe-spin limit "4 KiB"
}

needs_gnuplot() {
	local status=0
	alone "${TINY[@]}" --sizes 16 --plot "$work/none.svg" lat || status=$?
	[ "$status" = 1 ] && [ ! -s "$work/out" ] && [ ! -e "$work/none.svg" ] &&
		grep -q "needs gnuplot, which is not installed" "$work/err"
}

refuses_results() { # PATTERN TEXT: as a file of results
	printf '%s\n' "$2" >"$work/odd"
	refuses 1 "$1" plot "$work/odd" --plot "$work/odd.svg"
}

# ---- the manual ----

manual_is_clean() {
	mandoc -Tlint -W warning "$HERE/hamlyn-perf.1" >"$work/out" 2>&1
}

manual_is_complete() {
	local word
	mandoc -Tascii "$HERE/hamlyn-perf.1" | col -b >"$work/manual" 2>/dev/null ||
		mandoc -Tascii "$HERE/hamlyn-perf.1" | sed 's/.\x08//g' >"$work/manual"
	for word in $(names_of Commands) $(names_of Options) $(names_of Systems); do
		grep -qE -e "(^|[^a-z-])$word([^a-z-]|\$)" "$work/manual" || {
			echo "the manual does not tell of $word" >"$work/err"
			return 1
		}
	done
}

# ---- all of it ----

check "compare measures all that is there, and says what is not" compare_alone
commands
check "every command is tested here" every_command
check "CSV of lat" all_columns "${TINY[@]}" --sizes 16,4K lat
check "CSV of compare" all_columns "${TINY[@]}" --sizes 16 --systems hamlyn,fast,limit compare
check "--verify, --touch" perf "${TINY[@]}" --verify --touch ends --sizes 1,7,9,4K bw
check "CSV of slots" all_columns --count 100 slots
check "CSV of memory" all_columns --count 3 memory
check "an empty \$HAMLYN_DEVICE is none" of_empty_name
check "CSV of a curve that has columns of its own" all_columns --reps 1 --time 1 --op engines scale
if may_mount; then
	check "areas of huge pages where /dev/shm has them" huge_pages
else
	skip "areas of huge pages where /dev/shm has them" "a /dev/shm with them cannot be mounted here"
fi
check "the table of lat" perf "${TINY[@]}" --sizes 16 lat
check "what is missing is an error when it is named" tells_missing
check "a parent that ignores SIGCHLD" sigchld_ignored
check "ratios have a spread, and figures an order" ratios_are_spread
check "quantiles are those that were promised" quantiles
check "a curve of groups ends where it should" group_ends
check "revoke has areas for many senders" perf --time 1 --n 1 --senders 32 revoke
# shellcheck disable=SC2046 # several words
check "every system notices a spoilt message when latency is measured" \
	spoilt lat 100 $(names_of Systems)
check "messages that are spoilt are noticed when rate is measured" \
	spoilt rate 100 hamlyn pipe-spin channel channel-block vsock zeromq nng dbus ucx-tag
check "all bytes of all messages arrive, in order" all_bytes channel channel-block vsock zeromq nng dbus ucx-tag
check "messages that are spoilt are noticed under load" \
	spoilt load 100 hamlyn channel pipe nng ucx-tag
check "messages that are spoilt are noticed when bandwidth is measured" spoilt bw 100 limit shm
# Fewer messages than those of which one is looked at
check "large messages that are spoilt are noticed when latency is measured" \
	spoilt lat 4M hamlyn pipe shm limit
check "large messages that are spoilt are noticed when bandwidth is measured" \
	spoilt bw 4M hamlyn pipe shm limit

check "help that cannot be written" cannot_tell --help
check "a version that cannot be written" cannot_tell --version
check "sizes in small letters" small_letters
check "no command" refuses 2 "which command"
check "an unknown command" refuses 2 'no command is called "fly"' fly
check "two commands" refuses 2 "one command at a time" lat bw
check "an unknown option" refuses 2 "see --help" --fly lat
check "an option of another command" refuses 2 "is not for lat" --pairs 2 lat
check "a peer's address that is none" refuses 2 "takes an IPv4 address" --peer-address 1.2 lat
check "a peer's namespace that is not there" refuses 1 "no network namespace /run/netns/no-such" \
	"${TINY[@]}" --peer-netns no-such --sizes 16 --systems hamlyn lat
check "the same, for TCP" refuses 1 "no network namespace /run/netns/no-such" \
	"${TINY[@]}" --peer-netns no-such --sizes 16 --systems tcp lat
check "sizes that are too large" refuses 2 "sizes from 0 to 4M" --sizes 5M lat
check "sizes of more than 64 bits" refuses 2 "sizes from 0 to 4M" --sizes 17592186044420M lat
check "sizes that are none" refuses 2 "sizes from 0 to 4M" --sizes 1,x lat
check "too many pairs" refuses 2 "takes a number from 1 to" --pairs 1000 rate
check "sizes that carry no number" refuses 2 "takes --sizes from 8" --json scale --sizes 4
check "a curve that is none" refuses 2 "no curve is called" scale --op fly
check "groups that are too large" refuses 2 "takes --count up to 64" group --count 65
check "messages that are too long for protocols" refuses 2 "takes --sizes from 1" \
	protocols --sizes 5K
check "messages that are too short for protocols" refuses 2 "takes --sizes from 1" \
	protocols --sizes 0
check "an operation that is none" refuses 2 "no operation is called" count --op fly
check "a system that msgloop has not" refuses 2 "msgloop knows no" \
	--csv --systems pipe,fly msgloop
check "too many wakes" refuses 2 "takes --n up to" wake --n 20000
check "an option that idle has not" refuses 2 "is not for idle" idle --sizes 4
check "an unknown system" refuses 2 'no system is called "fly"' --systems hamlyn,fly lat
check "a system named twice" refuses 2 "named twice" "${TINY[@]}" --systems pipe,pipe lat
check "sizes that no system takes" refuses 1 "takes a message of such a size" "${TINY[@]}" \
	--systems fast --sizes 100 lat
check "a device that is none" refuses 1 "cannot open" --device shm:a/b "${TINY[@]}" \
	--systems hamlyn --sizes 8 lat
if [ -x "$BRIDGE" ]; then
	check "two hosts that have only just been joined" measures_between_hosts
else
	skip "two hosts" "$BRIDGE is not built"
fi
check "results that cannot be kept" refuses 1 "cannot write" "${TINY[@]}" --sizes 16 \
	--save "$work/no/such.jsonl" lat
check "plot without results" refuses 2 "takes one file of results" plot
check "plot without --plot" refuses 2 "needs --plot" plot "$work/saved"

if command -v gnuplot >/dev/null; then
	check "compare --plot draws" draws
	check "plot drew what was saved" is_svg "$work/plot.svg" latency Bandwidth hamlyn limit
	check "a diagram that cannot be written" refuses 1 "cannot write" "${TINY[@]}" --sizes 16 \
		--plot "$work/no/such.svg" lat
	check "results that are none" refuses_results "not a line that" "fly"
	check "results that are broken" refuses_results "not a result" \
		'{"system":"a'"'"'b","test":"lat","size":8,"median_ns":5}'
	check "results without latency and bandwidth" refuses_results "no latency and no bandwidth" \
		'{"system":"pipe","test":"rate","size":8,"msgs_per_s":5}'
	check "results that are not there" refuses 1 "cannot read" plot "$work/none" \
		--plot "$work/none.svg"
else
	skip "diagrams" "gnuplot is not installed"
fi
check "--plot without gnuplot is told before anything is measured" needs_gnuplot

if command -v mandoc >/dev/null; then
	check "the manual is without fault" manual_is_clean
	check "the manual tells of all commands, options and systems" manual_is_complete
else
	skip "manual" "mandoc is not installed"
fi

if [ "$skipped" = 0 ]; then
	echo "$passed passed, $failed failed"
else
	echo "$passed passed, $failed failed, $skipped skipped"
fi
[ "$failed" = 0 ]
