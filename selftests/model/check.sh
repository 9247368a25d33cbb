#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The protocols, checked by spin: that they keep their promises, and that the models notice
# when one of their rules, checks or barriers is taken away. See README.md.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2
ME=selftests/model/check.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. ../lib/lib.sh

usage() {
	cat <<-END
		Usage: selftests/model/check.sh [WORD]

		Checks the models of the protocols with spin: all configurations, or those whose
		name has WORD in it. Needs spin and a C compiler (\$CC, default cc).
		Exit status: 0 if all are as they should be, 1 if not, 2 if it could not run.
	END
}

only_help "$@"
only=${1:-}
CC=${CC:-cc}
SECONDS_EACH=240    # of a run of pan; the longest needs 17 on a machine with nothing else to do
MEGABYTES=1000      # of memory
DEPTH=200000        # of the search; the deepest is 109000
MODELS=$PWD
MODEL=$MODELS/hpam.pml

for tool in spin "$CC"; do
	command -v "$tool" >/dev/null || die "$tool is not installed"
done

work_folder model
top=$work

failure() { # NAME: what was said is shown
	bad "$1" "$(excerpt "$work/out")"
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

# holds NAME MODEL-OPTION...: no assertion fails and no run stops too early. COMPACT: how pan
# keeps the states of a model that has very many, in less memory and more time
COMPACT=
holds() {
	local name=$1
	shift
	[[ $name == *"$only"* ]] || return 0
	explore "-O1 -DSAFETY $COMPACT" -- "$@"
	if complete; then good "$name ($(states) states)"; else failure "$name"; fi
}

# ends NAME MODEL-OPTION...: nor is there an endless run
ends() {
	local name=$1
	shift
	[[ $name == *"$only"* ]] || return 0
	explore "-O0 -DNP" -l -- -DNP "$@"
	if complete; then good "$name ($(states) states)"; else failure "$name"; fi
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
		failure "found: $name"
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
		failure "found: $name"
	fi
}

check_requests() {
# What the assertions are: of handler_ran(), move(), Clock and DIRECT
TORN='assertion violated \(hb==hn\)'
TWICE='assertion violated \(hb==\(?(handled|n)\['
STATE='assertion violated \(\(\('
GIVEN_UP='assertion violated \(quiet<='
STUCK='assertion violated \(\(handled\[i\]==n\[i\]\)'
OVERWRITTEN='assertion violated \(x>'

# ---- requests and replies ----

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
fails "suspicion ends after one message sent once" "$TORN" -DFIFO -DN=3 -DSPUR=1 -DCLEAR=1
fails "suspicion ends after three messages sent once" "$TORN" -DFIFO -DN=5 -DSPUR=1 -DCLEAR=3
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
}

check_others() {
# ---- the notification queue ----

MODEL=$MODELS/nq.pml
# What the assertions are: of taken() and Clock
TORN='assertion violated \(x==y\)'
TWICE='assertion violated \(\(x!=0\)'
ASLEEP='assertion violated \(consumer==cursor\)'
UNSEEN='assertion violated \(+seen\['
UNTOLD='assertion violated \( *!\(any\)'
UNREPORTED='assertion violated \( *!\(lost\['

holds "NQ: three notifications, two entries" -DP=1 -DK=3
holds "NQ: two appenders" -DP=2 -DK=1
holds "NQ: two appenders, four entries" -DP=2 -DK=1 -DMASK=3
holds "NQ: two readers" -DP=1 -DK=2 -DC=2
holds "NQ: two readers, one message each" -DP=1 -DK=2 -DC=2 -DQUOTA=1
holds "NQ: quiet messages" -DP=2 -DK=1 -DQUIET=1 -DMASK=3
holds "NQ: quiet messages, overrun" -DP=2 -DK=1 -DQUIET=1
COMPACT=-DCOLLAPSE
holds "NQ: quiet messages, a report that others rely on" -DP=2 -DK=2 -DQUIET=1
COMPACT=
holds "NQ on a futex: three notifications, two entries" -DFUTEX -DP=1 -DK=3
holds "NQ on a futex: two readers" -DFUTEX -DP=1 -DK=2 -DC=2
holds "NQ on a futex: two readers, one message each" -DFUTEX -DP=1 -DK=2 -DC=2 -DQUOTA=1
holds "NQ on a futex: an appender is killed" -DFUTEX -DP=2 -DK=1 -DKILL=1
holds "NQ on a futex: both are killed" -DFUTEX -DP=2 -DK=1 -DKILL=2
holds "NQ, the sleeper pays: three notifications, two entries" -DFUTEX -DFENCED -DP=1 -DK=3
holds "NQ, the sleeper pays: two appenders" -DFUTEX -DFENCED -DP=2 -DK=1
holds "NQ, the sleeper pays: two readers, one message each" -DFUTEX -DFENCED -DP=1 -DK=2 -DC=2 -DQUOTA=1
holds "NQ, the sleeper pays: quiet messages" -DFUTEX -DFENCED -DP=2 -DK=1 -DQUIET=1 -DMASK=3
holds "NQ, the sleeper pays: an appender is killed" -DFUTEX -DFENCED -DP=2 -DK=1 -DKILL=1

fails "NQ: the sequence is a plain store" "$TORN" -DP=2 -DK=1 -DBUG_PLAIN_SEQUENCE
fails "NQ: a place is taken in two steps" "$UNSEEN" -DP=2 -DK=1 -DBUG_NO_CAS
fails "NQ: the consumer index is not looked at" "$TORN" -DP=1 -DK=3 -DBUG_NO_ROOM
fails "NQ: the last entry is for no report" "$UNTOLD" -DP=1 -DK=3 -DBUG_NO_REPORT
fails "NQ: full by a cursor that is old" "$UNTOLD" -DP=2 -DK=2 -DBUG_STALE
fails "NQ: full by a consumer index older than the cursor" "$UNTOLD" \
	-DP=2 -DK=2 -DBUG_CONSUMER_FIRST
fails "NQ: a reader advances before it has read" "$TORN" -DP=1 -DK=3 -DBUG_ADVANCE_FIRST
fails "NQ: two readers advance by a store" "$TWICE" -DP=1 -DK=2 -DC=2 -DBUG_ADVANCE_STORE
fails "NQ: no barrier behind an entry (B5)" "$ASLEEP" -DP=2 -DK=1 -DBUG_PUBLISH_NO_MB
fails "NQ: no barrier behind arming (B5)" "$ASLEEP" -DP=2 -DK=1 -DBUG_ARM_NO_MB
fails "NQ: no look behind arming (B5)" "$ASLEEP" -DP=2 -DK=1 -DBUG_NO_LOOK
fails "NQ on a futex: no barrier behind an entry (B5)" "$ASLEEP" \
	-DFUTEX -DP=2 -DK=1 -DBUG_PUBLISH_NO_MB
fails "NQ on a futex: no barrier behind arming (B5)" "$ASLEEP" \
	-DFUTEX -DP=2 -DK=1 -DBUG_ARM_NO_MB
fails "NQ, the sleeper pays: no barrier of others (B5)" "$ASLEEP" \
	-DFUTEX -DFENCED -DP=2 -DK=1 -DBUG_ARM_NO_FENCE
fails "NQ on a futex: a reader that need not sleep leaves it armed" "$ASLEEP" \
	-DFUTEX -DP=1 -DK=2 -DC=2 -DQUOTA=1 -DBUG_KEEP_ARMED
fails "NQ: quiet messages wake nobody, whatever is behind them" "$UNSEEN" \
	-DP=2 -DK=1 -DQUIET=1 -DMASK=3 -DBUG_QUIET
fails "NQ: a quiet report wakes nobody, whoever relies on it" "$UNREPORTED" \
	-DP=2 -DK=2 -DQUIET=1 -DBUG_QUIET_REPORT
fails "NQ: a hole is mended while its sender lives" "$UNSEEN" \
	-DFUTEX -DP=2 -DK=1 -DKILL=1 -DBUG_MEND_NO_WAIT
fails "NQ: a hole is mended that somebody has filled" "$UNSEEN" \
	-DFUTEX -DP=2 -DK=1 -DKILL=1 -DBUG_FILL_NO_LOOK
fails "NQ: what nobody has taken is mended" "$ASLEEP" -DFUTEX -DP=2 -DK=1 -DKILL=1 -DBUG_MEND_ALL
fails "NQ: nobody looks around" "$ASLEEP" -DFUTEX -DP=2 -DK=1 -DKILL=1 -DBUG_NO_LOOK_AROUND

# ---- a notification queue that its first sender has to itself ----

MODEL=$MODELS/bias.pml
TWICE='assertion violated *!\(taken\['
LEFT_OUT='assertion violated \(+mem\[0\]==254'
NOT_TAKEN='assertion violated \(c>=told'

holds "bias: two senders" -DS=2
holds "bias: two senders, each could have it" -DS=2 -DLONE=2
holds "bias: two senders, one is killed" -DS=2 -DKILL=1
holds "bias: three senders" -DS=3 -DK=1
holds "bias: the first one is killed, and another has its number" -DHEIR -DKILL=1 -DK=1

fails "bias: no barrier of others (B24)" "$TWICE" -DBUG_NO_FENCE
fails "bias: where all begin is said again (B24)" "$TWICE" -DBUG_START_AGAIN
fails "bias: the first one looks before it counts on (B24)" "$TWICE" -DBUG_LOOK_FIRST
fails "bias: the first one does not look (B24)" "$TWICE" -DBUG_NO_LOOK
fails "bias: the first one takes another entry, whatever was counted" "$LEFT_OUT" -DBUG_NOT_COUNTED
fails "bias: what may not count is mended" "$NOT_TAKEN" -DBUG_SEEN_ENDING

# ---- the doorbell ----

MODEL=$MODELS/doorbell.pml
LEFT='assertion violated \(head=='

holds "doorbell: two threads" -DA=2
holds "doorbell: three requests" -DA=1 -DK=3
holds "doorbell: a terminus of one's own" -DA=1 -DK=2 -DSINGLE
holds "doorbell: always rung" -DALWAYS
holds "doorbell: somebody binds memory" -DHOLDER -DA=1 -DK=2
holds "doorbell: whoever holds the terminus is trusted to look (B7)" -DA=2 -DBUG_KICK_LEAVES
holds "doorbell: who lets go does not look, who rang does" -DA=2 -DBUG_RELEASE_NO_LOOK

fails "doorbell: no barrier behind a request (B2)" "$LEFT" -DA=1 -DK=2 -DSINGLE -DBUG_POST_NO_MB
fails "doorbell: no barrier behind need_kick (B2)" "$LEFT" -DBUG_DOZE_NO_MB
fails "doorbell: no look behind need_kick (B2)" "$LEFT" -DBUG_DOZE_NO_LOOK
fails "doorbell: need_kick changes without the lock" "$LEFT" -DBUG_ACTIVATE_UNLOCKED
fails "doorbell: the thread is not woken" "$LEFT" -DBUG_NO_WAKE
fails "doorbell: no barrier behind letting go (B7)" "$LEFT" -DBUG_KICK_LEAVES -DBUG_RELEASE_NO_MB
fails "doorbell: no look behind letting go (B7)" "$LEFT" -DBUG_KICK_LEAVES -DBUG_RELEASE_NO_LOOK
fails "doorbell: no barrier before trying to hold (B7)" "$LEFT" \
	-DA=1 -DK=2 -DSINGLE -DALWAYS -DBUG_KICK_LEAVES -DBUG_TRY_NO_MB
fails "doorbell: whoever holds the terminus is trusted, and binds memory" "$LEFT" \
	-DHOLDER -DBUG_KICK_LEAVES

# ---- room on a connection ----

MODEL=$MODELS/stall.pml
UNSENT='assertion violated \(arrived=='

holds "stall: one engine" -DE=1 -DK=2
holds "stall: one engine, a longer ring" -DE=1 -DK=3 -DROOM=2
holds "stall: one engine, aside before it sends" -DE=1 -DK=2 -DLIST_FIRST
holds "stall: two engines" -DE=2 -DMORE=1
holds "stall: two engines, aside before they send" -DE=2 -DLIST_FIRST

holds "stall: one engine, wishes to send are counted" -DE=1 -DK=2 -DCOUNT
holds "stall: two engines, wishes to send are counted" -DE=2 -DCOUNT

ends "stall: runs end" -DE=1 -DK=2
ends "stall: runs of two engines end" -DE=2
ends "stall: runs end, wishes to send are counted" -DE=1 -DMORE=1 -DCOUNT

fails "stall: events are not counted (B19)" "$UNSENT" -DE=2 -DBUG_NO_EVENTS
fails "stall: one's own count is of after the look for room (B19)" "$UNSENT" -DE=2 -DBUG_EVENTS_READ_LATE
fails "stall: no barrier behind the list (B19)" "$UNSENT" -DE=2 -DMORE=1 -DBUG_LIST_NO_MB
fails "stall: no barrier behind an event (B19)" "$UNSENT" -DE=2 -DMORE=1 -DBUG_EVENTS_NO_MB
fails "stall: an event is counted after the look at the lists (B19)" "$UNSENT" \
	-DE=2 -DMORE=1 -DBUG_EVENTS_LATE
fails "stall: the wish for room is told without the lock" "$UNSENT" -DE=2 -DBUG_WANTED_UNLOCKED
fails "stall: no look behind letting go (B20)" "$UNSENT" -DE=2 -DBUG_NO_LOOK
fails "stall: no barrier behind letting go (B20)" "$UNSENT" -DE=2 -DBUG_RELEASE_NO_MB
fails "stall: no barrier before trying to send (B20)" "$UNSENT" -DE=2 -DBUG_TRY_NO_MB
fails "stall: the worker is trusted to send, once refused (B20)" "$UNSENT" -DE=2 -DBUG_TRUST_WORKER
fails "stall: a socket that was not asked is trusted to start the worker (B20)" "$UNSENT" \
	-DE=2 -DBUG_TRUST_SOCKET
fails "stall: no barrier before a wish to send is counted (B20)" "$UNSENT" -DE=2 -DCOUNT -DBUG_COUNT_NO_MB
fails "stall: no barrier before the counts are compared (B20)" "$UNSENT" -DE=2 -DCOUNT -DBUG_RELEASE_NO_MB
spins "stall: a socket that is full is asked again and again (B20)" -DE=2 -DBUG_LOOK_RING

# ---- other sleepers ----

MODEL=$MODELS/sleepers.pml
ALONE='assertion violated \(done\['
LOCKED_OUT='assertion violated *!\(asleep\['

holds "manager: two threads" -DT=2
holds "manager: two threads, and one that polls" -DT=2 -DPOLLER
holds "manager: three threads" -DT=3
holds "tables: three threads" -DTABLES -DT=3

fails "manager: no barrier behind the arrivals (B13)" "$ALONE" -DBUG_UNLOCK_NO_MB
fails "manager: no barrier behind counting oneself (B13)" "$ALONE" -DBUG_COUNT_NO_MB
fails "manager: no look behind counting oneself (B13)" "$ALONE" -DPOLLER -DBUG_NO_LOOK
fails "manager: nobody is woken" "$ALONE" -DBUG_NO_WAKE
fails "manager: nobody leads on" "$ALONE" -DBUG_NO_HEIR
fails "manager: who leads is not woken on the NQ" "$ALONE" -DPOLLER -DBUG_NUDGE_NEVER
fails "manager: the message that wakes him is forgotten" "$ALONE" -DPOLLER -DBUG_NUDGE_STAYS
fails "tables: the lock is tried before the number is read (B14)" "$LOCKED_OUT" -DTABLES -DBUG_TRY_FIRST
fails "tables: the number is not compared again (B14)" "$LOCKED_OUT" -DTABLES -DBUG_NO_COMPARE
fails "tables: no barrier behind the number (B14)" "$LOCKED_OUT" -DTABLES -DBUG_UNLOCK_NO_MB
fails "tables: woken before the number changes (B14)" "$LOCKED_OUT" -DTABLES -DBUG_WAKE_FIRST

# ---- quiescence ----

MODEL=$MODELS/quiesce.pml
LATE='assertion violated \((mem\[|\( *\(\(+sb)'

holds "quiescence: two senders" -DS=2
holds "quiescence: two senders, each alone" -DS=2 -DALONE
holds "quiescence: two senders, one is killed" -DS=2 -DKILL=1
holds "quiescence: two senders alone, one is killed" -DS=2 -DALONE -DKILL=1
holds "quiescence: kernel device" -DS=2 -DSRCU

fails "quiescence: no barrier behind going in" "$LATE" -DS=1 -DBUG_ENTER_NO_MB
fails "quiescence: leaving is a plain store" "$LATE" -DS=1 -DBUG_LEAVE_PLAIN
fails "quiescence: a plain store between packets" "$LATE" -DS=1 -DBUG_BETWEEN_PLAIN
fails "quiescence: no barrier between packets" "$LATE" -DS=1 -DBUG_BETWEEN_NO_MB
fails "quiescence: the key is looked at before going in" "$LATE" -DS=1 -DBUG_KEY_FIRST
fails "quiescence: the key is looked at once a message" "$LATE" -DS=1 -DBUG_ONE_LOOK
fails "quiescence: nobody waits" "$LATE" -DS=1 -DBUG_NO_WAIT
fails "quiescence: no barrier behind the new key" "$LATE" -DS=1 -DBUG_FENCE_NO_MB
fails "quiescence: alone, no barrier of others" "$LATE" -DS=1 -DALONE -DBUG_NO_MEMBARRIER
fails "quiescence: alone, the compiler moves the key" "$LATE" -DS=1 -DALONE -DBUG_KEY_FIRST
fails "quiescence: alone, leaving is a plain store" "$LATE" -DS=1 -DALONE -DBUG_LEAVE_PLAIN
fails "quiescence: kernel device, no grace period" "$LATE" -DS=1 -DSRCU -DBUG_NO_SRCU
}

# in_its_own_folder FUNCTION
in_its_own_folder() {
	work=$top/$1
	mkdir "$work" && cd "$work" && "$1"
}

# Two at a time: half of the time is one compiler, or one pan, each
(in_its_own_folder check_requests) >"$top/requests" 2>&1 &
(in_its_own_folder check_others) 2>&1 | tee "$top/others"
wait
cat "$top/requests"
# They have counted in shells of their own
passed=$(cat "$top/others" "$top/requests" | grep -c "^ok - ")
failed=$(cat "$top/others" "$top/requests" | grep -c "^not ok - ")
total
