#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The papers' test programs (tools/am) in short versions, by 2, 4 and 16 processes: that
# they end, find all correct and say so, and notice what is wrong. Nothing here judges
# how fast anything is. Also runs under busybox.
set -u

ME=am-test.sh
here=$(dirname "$0")
[ -e "$here/lib.sh" ] || here=$here/../lib # in a guest it is beside the script
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$here/lib.sh"

usage() {
	cat <<USAGE
Usage: selftests/am/am-test.sh BUILD-FOLDER [--device D]

Runs hamlyn-run and the test programs of Active Messages that are in BUILD-FOLDER, on
the embedded device or on D. HAMLYN_TEST_PROCESSES: by how many processes each is run
(default "2 4 16").
USAGE
}

only_help "$@"

build=${1:-}
unset HAMLYN_DEVICE
if [ $# = 3 ] && [ "$2" = --device ]; then
	export HAMLYN_DEVICE="$3"
elif [ $# != 1 ]; then
	usage >&2
	exit 2
fi

PROCESSES=${HAMLYN_TEST_PROCESSES:-2 4 16}
LONGEST=$((60 * ${HAMLYN_TEST_SCALE:-1})) # seconds; a run takes one or two

work_folder am-test

# run PROCESSES PROGRAM OPTION...: in $work/out and $work/err; bounded
run() {
	number=$1 program=$2
	shift 2
	"$build/hamlyn-run" -n "$number" --timeout "$LONGEST" "$build/$program" "$@" \
		>"$work/out" 2>"$work/err" </dev/null
}

# says PROCESSES PATTERN PROGRAM OPTION...: status 0, PATTERN in the output, no complaint
says() {
	number=$1 pattern=$2
	shift 2
	run "$number" "$@" && [ ! -s "$work/err" ] && grep -qE -e "$pattern" "$work/out"
}

# json PROCESSES TESTS PROGRAM OPTION...: only lines of JSON, all of TESTS among them
json() {
	number=$1 tests=$2
	shift 2
	run "$number" "$@" --json && [ ! -s "$work/err" ] && only_json || return 1
	for test in $tests; do
		grep -q "^{\"test\":\"$test\"," "$work/out" || return 1
	done
}

only_json() {
	[ -s "$work/out" ] && ! grep -qvE \
		'^\{"test":"[a-z_-]+","system":"hamlyn-am"(,"[a-z_0-9]+":(-?[0-9.]+|null|"[^"]*"))+\}$' \
		"$work/out"
}

# refuses PROCESSES STATUS PATTERN PROGRAM OPTION...: it fails so, once, and says why
refuses() {
	number=$1 want=$2 pattern=$3 status=0
	shift 3
	run "$number" "$@" || status=$?
	[ "$status" = "$want" ] && grep -qE -e "^$1: .*$pattern" "$work/err"
}

# The same, and of all processes one says so.
refuses_once() {
	refuses "$@" && [ "$(grep -c "^$4: " "$work/err")" = 1 ]
}

alone_refuses() { # PROGRAM: without hamlyn-run it is one process
	status=0
	"$build/$1" --quick >"$work/out" 2>"$work/err" </dev/null || status=$?
	[ "$status" = 2 ] && grep -q "^$1: needs .* processes, not 1: hamlyn-run" "$work/err"
}

helps() { # PROGRAM: its --help has its name and its options
	run 2 "$1" --help && grep -q "^Usage: .* $1 " "$work/out" &&
		[ "$(grep -c '^  --quick ' "$work/out")" = 1 ]
}

PROGRAMS="ping_pong ping_bulk thru_bulk test_xfer test_med logp hpam_pingpong radix exactly_once"

for program in hamlyn-run $PROGRAMS; do
	[ -x "$build/$program" ] || {
		echo "$build/$program is not there" >&2
		exit 2
	}
done

# ---- all programs, few and many processes ----

each() { # PROCESSES: lines of PROGRAM, what to find, options
	check "ping_pong, $1 processes" json "$1" ping_pong ping_pong --quick
	check "ping_bulk, $1 processes" json "$1" "ping_bulk ping_bulk-n-half" ping_bulk --quick
	check "thru_bulk, $1 processes" json "$1" "thru_bulk thru_bulk-n-half" thru_bulk --quick
	check "test_xfer, $1 processes" says "$1" "all-to-all .*all correct" test_xfer --quick
	check "test_med, $1 processes" says "$1" "all-to-all .*all correct" test_med --quick
	check "logp, $1 processes" json "$1" "logp logp-signature" logp --quick
	check "hpam_pingpong, $1 processes" json "$1" \
		"hpam_pingpong hpam_packet hpam_xfer hpam_xfer-n-half" hpam_pingpong --quick
	check "radix, $1 processes" says "$1" "sorted, the same keys" radix --quick
	check "exactly_once, $1 processes" says "$1" "handled once, intact" exactly_once --quick
}

for n in $PROCESSES; do
	each "$n"
done

# ---- tables, and other ways to do the same ----

check "the table of ping_pong" says 2 "^ +32 +[0-9]+ +[0-9]+ " ping_pong --quick
check "the table of thru_bulk" says 2 "^Peak [0-9.]+ MB/s; half of it at " thru_bulk --quick
check "the table of logp" says 2 "^RTT [0-9]+  L -?[0-9]+  o_s [0-9]+  o_r -?[0-9]+  g [0-9]+ ns" \
	logp --quick --deltas 100,1000
check "the table of radix" says 3 "^Pass 2  wave-scan +[0-9.]+ s" radix --quick
check "JSON of the others" json 3 "test_xfer" test_xfer --quick
check "JSON of exactly_once" json 3 "exactly_once" exactly_once --quick
check "JSON of radix" json 3 "radix radix-phase" radix --quick
check "radix: keys five a message" says 3 "sorted, the same keys" radix --quick --coalesce words
check "radix: runs" says 3 "sorted, the same keys" radix --quick --keys 20000 --coalesce runs
check "radix: fewer keys than processes" says 4 "sorted, the same keys" radix --keys 3
check "radix: three passes" says 3 "^Pass 3 .*coalesce" radix --quick --bits 11
# P 5.2: Each process communicates with each other one.
check "test_xfer: blocks of many segments" says 3 "all correct" test_xfer --count 20 --max-size 1M
check "test_xfer: another seed" says 2 "all correct" test_xfer --quick --seed 7
check "test_med: short ones" says 2 "all correct" test_med --quick --max-size 20

check_depth() { # one request under way, small segments
	HAMLYN_AM_DEPTH=1 HAMLYN_AM_PAGE=4096 says "$@"
}
check "test_xfer: one request under way" check_depth 3 "all correct" test_xfer --quick
# P 5.2.3: Processes that all send to each other with as few buffers as there can be do not block each other.
check "exactly_once: one request under way" check_depth 3 "intact" exactly_once --quick

# ---- what is wrong is noticed ----

two_segments() { # each process opens one of its own
	cat >"$work/apart" <<-END
		#!/bin/sh
		HAMLYN_DEVICE=shm:am-apart-$$-\$PMI_RANK,size=8M exec "$build/ping_pong" --quick
	END
	chmod +x "$work/apart"
	status=0
	"$build/hamlyn-run" -n 2 --timeout "$LONGEST" "$work/apart" \
		>"$work/out" 2>"$work/err" </dev/null || status=$?
	[ "$status" != 0 ] && grep -qE \
		"process [01] has opened a device that shm:am-apart-[^ ]* does not reach" "$work/err"
}
check "processes on two segments are told so" two_segments

check "test_xfer notices a spoilt byte" refuses 2 1 "byte [0-9]+ of [0-9]+ is 0x.., not 0x" \
	test_xfer --quick --corrupt
check "test_med notices a spoilt byte" refuses 2 1 "byte [0-9]+ of [0-9]+ is 0x.., not 0x" \
	test_med --quick --corrupt
check "exactly_once notices a second one" refuses 2 1 "was handled twice" \
	exactly_once --quick --corrupt
check "packets that no reply carries" refuses 2 1 "a reply carries at most" \
	ping_bulk --quick --sizes 16,1M
check "medium messages that are too long" refuses 2 1 "has at most" test_med --max-size 1M

for program in $PROGRAMS; do
	check "$program --help" helps "$program"
	check "$program by one process" alone_refuses "$program"
	check "$program: an option that is none" refuses_once 2 2 "is no option here" "$program" --fly
done
check "a number that is none" refuses_once 4 2 "takes a number from 1 to" ping_pong --count x
check "a list that is none" refuses_once 2 2 "takes numbers from 1 to" ping_bulk --sizes 1,,2
check "an option without its value" refuses_once 2 2 "needs a value" ping_pong --count
check "a word too many" refuses_once 2 2 "one word too many" logp now
check "a way that is none" refuses_once 2 2 "takes medium, words or runs" radix --coalesce fly
check "too many processes for radix" refuses_once 17 2 "needs 2 to 16 processes" radix --quick

# ---- the diagram ----

draws() {
	run 2 logp --quick --plot "$work/logp.svg" && grep -q "</svg>" "$work/logp.svg" &&
		grep -q "burst size" "$work/logp.svg"
}

if command -v gnuplot >/dev/null 2>&1; then
	check "logp --plot draws" draws
	check "a diagram that cannot be written" refuses_once 2 2 "No such file" \
		logp --plot "$work/no/such.svg"
else
	skip "logp --plot draws" "gnuplot is not installed"
fi

total
