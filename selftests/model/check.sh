#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The protocol of libhamlyn/am, checked by spin: that it keeps its promises, and that the
# model notices when one of its rules is taken away. See README.md.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2

usage() {
	cat <<-END
		Usage: selftests/model/check.sh [WORD]

		Checks the model of the active message protocol with spin: all configurations, or
		those whose name has WORD in it. Needs spin and a C compiler (\$CC, default cc).
		Exit status: 0 if all are as they should be, 1 if not, 2 if it could not run.
	END
}

case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
-*)
	usage >&2
	exit 2
	;;
esac

only=${1:-}
CC=${CC:-cc}
SECONDS_EACH=60     # of a run of pan; the longest needs 7
MEGABYTES=1000      # of memory
DEPTH=200000        # of the search; the deepest is 109000
MODEL=$PWD/hpam.pml
passed=0
failed=0

for tool in spin "$CC"; do
	command -v "$tool" >/dev/null || {
		echo "selftests/model/check.sh: $tool is not installed" >&2
		exit 2
	}
done

work=$(mktemp -d "${TMPDIR:-/tmp}/hamlyn-model.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 2

good() { # NAME
	echo "ok - $1"
	passed=$((passed + 1))
}

bad() { # NAME: what was said is shown
	echo "not ok - $1"
	sed 's/^/# | /' "$work/out" | head -n 20
	failed=$((failed + 1))
}

# explore CC-OPTIONS PAN-OPTION... -- MODEL-OPTION...: what pan says is in $work/out
explore() {
	local compile pan=()
	read -ra compile <<<"$1"
	shift
	while [ "$1" != -- ]; do
		pan+=("$1")
		shift
	done
	shift
	rm -f pan pan.*
	spin -a "$@" "$MODEL" >"$work/out" 2>&1 &&
		"$CC" -w "-DMEMLIM=$MEGABYTES" "${compile[@]}" -o pan pan.c >>"$work/out" 2>&1 &&
		timeout -k 5 "$SECONDS_EACH" ./pan -n -w21 "-m$DEPTH" "${pan[@]}" >"$work/out" 2>&1
}

# All states were seen and none is wrong
complete() {
	grep -q "errors: 0$" "$work/out" &&
		! grep -qiE "search depth too small|not completed|out of memory|memory limit" "$work/out"
}

states() { awk '/ states, stored/ { print $1 }' "$work/out"; }

# holds NAME MODEL-OPTION...: no assertion fails and no run stops too early
holds() {
	local name=$1
	shift
	[[ $name == *"$only"* ]] || return 0
	explore "-O1 -DSAFETY" -- "$@"
	if complete; then good "$name ($(states) states)"; else bad "$name"; fi
}

# ends NAME MODEL-OPTION...: nor is there an endless run
ends() {
	local name=$1
	shift
	[[ $name == *"$only"* ]] || return 0
	explore "-O0 -DNP" -l -- -DNP "$@"
	if complete; then good "$name ($(states) states)"; else bad "$name"; fi
}

# fails NAME PATTERN MODEL-OPTION...: spin finds it, for that reason
fails() {
	local name=$1 pattern=$2
	shift 2
	[[ $name == *"$only"* ]] || return 0
	explore "-O0 -DSAFETY" -- "$@"
	if grep -q "errors: 1$" "$work/out" && grep -qE -e "^pan:1: $pattern" "$work/out"; then
		good "found: $name"
	else
		bad "found: $name"
	fi
}

# spins NAME MODEL-OPTION...: spin finds an endless run
spins() {
	local name=$1
	shift
	[[ $name == *"$only"* ]] || return 0
	explore "-O0 -DNP" -l -- -DNP "$@"
	if grep -q "^pan:1: non-progress cycle" "$work/out"; then
		good "found: $name"
	else
		bad "found: $name"
	fi
}

# What the assertions are: of handler_ran(), move(), Clock and DIRECT
TORN='assertion violated \(hb==hn\)'
TWICE='assertion violated \(hb==\(?(handled|n)\['
STATE='assertion violated \(\(\('
GIVEN_UP='assertion violated \(quiet<='
STUCK='assertion violated \(\(handled\[i\]==n\[i\]\)'
OVERWRITTEN='assertion violated \(x>'

# ---- the protocol ----

holds "any network, no end of faults" -DSET -DN=4
holds "lossless" -DFIFO -DN=4 -DSPUR=3
holds "lossless, handlers read the in-buffer" -DFIFO -DN=4 -DSPUR=3 -DINPLACE
holds "lossless, no end of retransmissions" -DFIFO -DN=3 -DSPUR=-1 -DC=2 -DINPLACE
holds "lossless, headers can be torn" -DFIFO -DN=3 -DSPUR=3 -DFINE -DINPLACE
holds "lossless, both ways" -DFIFO -DW=2 -DN=3 -DSPUR=1 -DINPLACE
holds "lossless, two instances" -DFIFO -DD=2 -DN=3 -DSPUR=2
holds "lossless, both ways, two instances" -DFIFO -DW=2 -DD=2 -DN=2
holds "lossless, lone acknowledgements" -DFIFO -DD=2 -DN=3 -DSPUR=1 -DACKS
holds "lossless, lone acknowledgements both ways" -DFIFO -DW=2 -DD=2 -DN=1 -DSPUR=1 -DACKS
holds "lossy" -DN=3 -DFAULTS=2 -DSPUR=1
holds "lossy, many retransmissions" -DN=2 -DFAULTS=2 -DSPUR=2
holds "lossy, both ways" -DW=2 -DN=2 -DFAULTS=1 -DSPUR=1
holds "lossy, two instances" -DD=2 -DN=3 -DFAULTS=1 -DSPUR=1
holds "lossy, lone acknowledgements" -DD=2 -DN=2 -DFAULTS=1 -DSPUR=1 -DACKS

ends "lossless runs end" -DFIFO -DN=3 -DSPUR=2
ends "lossless runs both ways end" -DFIFO -DW=2 -DN=2 -DSPUR=1
ends "lossy runs end" -DN=2 -DFAULTS=2
ends "lossy runs with retransmissions end" -DN=2 -DFAULTS=1 -DSPUR=1
ends "lossy runs with lone acknowledgements end" -DD=2 -DN=2 -DFAULTS=1 -DACKS

# ---- how many sequence numbers ----

holds "two numbers suffice for a lossless network (P 5.2.1)" -DFIFO -DN=4 -DM=2 -DSPUR=3
holds "three, if messages outlive 1 request" -DSET -DN=5 -DLIFE=1 -DM=3
holds "four, if messages outlive 2 requests" -DSET -DN=5 -DLIFE=2 -DM=4
fails "two are too few if messages outlive 1 request" "$TWICE" -DSET -DN=5 -DLIFE=1 -DM=2
fails "three are too few if messages outlive 2 requests" "$TWICE" -DSET -DN=5 -DLIFE=2 -DM=3
fails "alternating bit, any network" "$TWICE" -DSET -DN=3 -DM=2
fails "alternating bit, two faults" "$TWICE" -DN=3 -DM=2 -DFAULTS=2
fails "alternating bit, lossless, lone acknowledgements" "$TWICE" \
	-DFIFO -DD=2 -DN=4 -DM=2 -DSPUR=2 -DACKS

# ---- without one of the rules ----

fails "receiver ignores the sequence number, any network" "$TWICE" -DSET -DN=3 -DBUG_NOSEQ
fails "receiver ignores the sequence number, lossless" "$TWICE" -DFIFO -DSPUR=1 -DBUG_NOSEQ
fails "reply is not saved" "$GIVEN_UP" -DFAULTS=1 -DBUG_NOREFLECT
spins "reply is not saved: retransmits for ever" -DFAULTS=1 -DBUG_NOREFLECT
fails "requester frees on any reply, any network" "$TWICE" -DSET -DN=3 -DBUG_FREEANY
fails "requester frees on any reply, lossless" "$TWICE" -DFIFO -DSPUR=1 -DBUG_FREEANY
fails "no sums, any network" "$TORN" -DSET -DBUG_TORN
fails "no sums, one fault" "$TORN" -DFAULTS=1 -DBUG_TORN
fails "no sums, lossless" "$TORN" -DFIFO -DSPUR=1 -DBUG_TORN
fails "no suspicion after a retransmission" "$TORN" -DFIFO -DSPUR=1 -DBUG_NOSUSPECT
fails "no sum in the first retransmission, headers can be torn" "$TORN" \
	-DFIFO -DN=3 -DSPUR=2 -DFINE -DBUG_LATE_SUSPECT
holds "no sum in the first retransmission, headers are whole" \
	-DFIFO -DN=3 -DSPUR=2 -DBUG_LATE_SUSPECT
fails "reply goes before the handler has ended" "$TORN" -DFIFO -DINPLACE -DBUG_EARLY_REPLY
fails "buffer is used again while the NIC has it" "$STATE" -DFIFO -DSPUR=1 -DBUG_EARLY_REUSE
fails "who waits for a buffer does not serve requests" "$GIVEN_UP" -DFIFO -DW=2 -DBUG_DEAF
spins "who waits for a buffer does not serve requests: for ever" -DFIFO -DW=2 -DBUG_DEAF
fails "NIC waits for a process that waits for the NIC" "$STUCK" \
	-DFIFO -DSPUR=-1 -DC=1 -DBUG_NIC_WAITS

# ---- what a user of the protocol might like, and must not do ----

fails "handlers read the in-buffer, any network" "$TORN" -DSET -DINPLACE
fails "handlers read the in-buffer, reordering only" "$TORN" -DSPUR=1 -DINPLACE
fails "in-buffers are scanned without notification" "$TORN" -DFIFO -DSCAN
holds "in-buffers are scanned, what has no sum is left" \
	-DFIFO -DN=3 -DSPUR=1 -DSCAN_SUMMED -DFINE
fails "bulk data straight to user memory, sent again" "$OVERWRITTEN" -DFIFO -DSPUR=1 -DDIRECT
holds "bulk data straight to user memory, only the header again" \
	-DFIFO -DN=3 -DSPUR=2 -DDIRECT -DDIRECT_PROBE

echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
