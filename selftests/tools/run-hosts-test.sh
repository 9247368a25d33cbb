#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# hamlyn-run over several hosts, which are names of this one: a launcher of ours runs the
# agent here, and loses it, or is none. Bridges join devices of two names over loopback.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
ME=run-hosts-test.sh
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. selftests/lib/lib.sh

usage() {
	echo "Usage: selftests/tools/run-hosts-test.sh [BUILD-FOLDER]  (default: build)"
}

only_help "$@"

BUILD=$(realpath "${1:-build}") || exit 2
RUN=$BUILD/hamlyn-run
PEER=$BUILD/boot_peer

for program in "$RUN" "$PEER" "$BUILD/hamlyn-bridge"; do
	[ -x "$program" ] || die "$program is missing; run: make"
done
unset PMI_FD PMI_PORT PMI_RANK PMI_SIZE PMI_ID PMIX_NAMESPACE PMIX_RANK HAMLYN_DEVICE

SCALE=${HAMLYN_TEST_SCALE:-1}
LIMIT=$((100 * SCALE))
nap=100001.$$

work_folder run-hosts-test

# Processes that sleep for $nap are ours
sleepers() {
	local file
	for file in /proc/[0-9]*/cmdline; do
		[ "$({ tr '\0' ' ' <"$file"; } 2>/dev/null)" != "sleep $nap " ] ||
			basename "$(dirname "$file")"
	done
}

clean_up() {
	local pids
	pids=$(sleepers)
	# shellcheck disable=SC2086 # several words
	[ -z "$pids" ] || kill -s KILL $pids
	rm -rf "$work"
}
trap clean_up EXIT

# A host's name becomes a file with the agent's pid
cat >"$work/launch" <<EOT
#!/bin/sh
host=\$1
shift
echo \$\$ >"$work/\$host"
exec "\$@"
EOT
chmod +x "$work/launch"

bounded() { # COMMAND...: in $work/out and $work/err
	timeout -k 5 "$LIMIT" "$@" >"$work/out" 2>"$work/err" </dev/null
}

run() { # ARGUMENT...
	bounded "$RUN" --launch "$work/launch" "$@"
}

# ends STATUS PATTERN ARGUMENT...: it exits so and says why
ends() {
	local want=$1 pattern=$2 status=0
	shift 2
	run "$@" || status=$?
	[ "$status" = "$want" ] && grep -qE -e "$pattern" "$work/err" && return 0
	echo "status $status, not $want, or does not say \"$pattern\"" >>"$work/err"
	return 1
}

nobody_sleeps() { # before long
	local i
	for ((i = 0; i < 100 * SCALE; i++)); do
		[ -n "$(sleepers)" ] || return 0
		sleep 0.1
	done
	echo "left behind: $(sleepers | paste -sd' ')" >>"$work/err"
	return 1
}

so_many_sleep() { # N: before long
	local i
	for ((i = 0; i < 10 * LIMIT; i++)); do
		[ "$(sleepers | wc -l)" != "$1" ] || return 0
		sleep 0.1
	done
	echo "$(sleepers | wc -l) processes sleep, not $1" >>"$work/err"
	return 1
}

# ---- who runs where ----

divided() { # WANT ARGUMENT...: the hosts of the processes, in order
	local want=$1
	shift
	# shellcheck disable=SC2016 # for the shell inside
	run -v "$@" true && [ "$(sed -n 's/.*process \([0-9]*\) has pid [0-9]*\( on \(.*\)\)\?$/\1 \3/p' \
		"$work/err" | sort -n | awk '{ print $2 == "" ? "." : $2 }' | paste -sd' ')" = "$want" ]
}

all_there() { # N ARGUMENT...: they find each other
	local n=$1
	shift
	run -n "$n" "$@" "$PEER" && awk -v n="$n" '
		$4 != n || seen[$2]++ || $2 >= n || (NR > 1 && $8 != job) { bad = 1; exit }
		{ job = $8 } END { exit bad || NR != n }' "$work/out"
}

given() { # what processes find is ours: folder, variables, words, device
	# shellcheck disable=SC2016 # for the shell inside
	(cd "$work" && HAMLYN_OWN="a b" run -n 2 --host a,b --device shm:mine sh -c \
		'echo "$PWD|$HAMLYN_OWN|$HAMLYN_DEVICE|$1|$PMI_SIZE"' sh "x  'y' \$z") || return 1
	[ "$(sort -u "$work/out")" = "$work|a b|shm:mine|x  'y' \$z|2" ]
}

theirs_first() { # a host's own variables stay
	# shellcheck disable=SC2016 # for the shell inside
	sed 's|^exec|HAMLYN_DEVICE=shm:of-$host exec|' "$work/launch" >"$work/own"
	chmod +x "$work/own"
	HAMLYN_DEVICE=shm:mine bounded "$RUN" --launch "$work/own" -n 2 --host a,b \
		printenv HAMLYN_DEVICE && [ "$(sort "$work/out" | paste -sd' ')" = "shm:of-a shm:of-b" ]
}

name_inside() { # %h anywhere in the launcher's words
	bounded "$RUN" --launch "env WHERE=on-%h" -n 2 --host a,b printenv WHERE &&
		[ "$(sort "$work/out" | paste -sd' ')" = "on-a on-b" ]
}

# ---- lines and standard input ----

whole_lines() { # many, of all processes, each in its order
	run -n 4 --host .,a,b:2 --tag-output seq 1 200000 || return 1
	awk '{ if ($2 != ++n[$1]) exit 1 }
		END { for (r = 0; r < 4; r++) if (n["[" r "]"] != 200000) exit 1 }' "$work/out"
}

unchanged() { # bytes, both ways
	head -c 3000000 /dev/urandom >"$work/bytes"
	# shellcheck disable=SC2016 # for the shell inside
	timeout -k 5 "$LIMIT" "$RUN" --launch "$work/launch" -n 2 --host a,b --stdin 1 \
		sh -c 'test $PMI_RANK = 0 || cat' <"$work/bytes" >"$work/out" 2>"$work/err" &&
		cmp "$work/bytes" "$work/out"
}

not_read_up() { # who reads a line and ends, of an input without an end
	timeout -k 5 "$LIMIT" "$RUN" --launch "$work/launch" -n 1 --host a head -n 1 \
		< <(exec yes) >"$work/out" 2>"$work/err" && [ "$(cat "$work/out")" = y ]
}

slow_reader() { # standard output is read at last: nothing is lost, and lines are whole
	timeout -k 5 "$LIMIT" "$RUN" --launch "$work/launch" -n 2 --host a,b --tag-output \
		seq 1 300000 2>"$work/err" | { sleep 2; awk '{ n[$2]++ }
			END { for (i = 1; i <= 300000; i++) if (n[i] != 2) exit 1 }'; }
}

prompt() { # what is no line yet is seen while the process waits
	local said
	mkfifo "$work/fifo"
	exec 5< <(exec timeout -k 5 "$LIMIT" "$RUN" --launch "$work/launch" -n 1 --host a sh -c \
		"printf 'name? '; read -r name; echo \"hello \$name\"" <"$work/fifo" 2>"$work/err")
	exec 6>"$work/fifo"
	read -r -t "$LIMIT" -N 6 -u 5 said && [ "$said" = "name? " ] || return 1
	echo x >&6
	read -r -t "$LIMIT" -u 5 said && [ "$said" = "hello x" ] || return 1
	exec 5<&- 6>&-
}

endless_orphan() { # what is left behind writes on: the job ends
	run -n 1 --host a sh -c '(trap "" PIPE; while echo y; do :; done) & sleep 0.2'
}

# ---- failures ----

agent_killed() {
	# shellcheck disable=SC2016 # for the shell inside
	run -n 3 --host .,a,b sh -c 'test $PMI_RANK = 1 && kill -9 $(cat "'"$work"'/a"); exec sleep '"$nap"
	local status=$?
	[ "$status" = 1 ] && grep -q "host a: the connection to it has ended; ending" "$work/err" &&
		nobody_sleeps
}

in_background() { # ARGUMENT...: $job is its pid
	env --default-signal "$RUN" --launch "$work/launch" "$@" >"$work/out" 2>"$work/err" </dev/null &
	job=$!
}

signalled() { # SIGNAL STATUS
	local status=0
	# The end of the job is a SIGTERM, and comes right behind.
	in_background -n 4 --host .,a,b:2 sh -c \
		"trap '' TERM; trap 'echo heard $1; kill -KILL \$!; exit' $1; sleep $nap & wait"
	so_many_sleep 4 || return 1
	kill -s "$1" "$job"
	wait "$job" || status=$?
	[ "$status" = "$2" ] && nobody_sleeps || return 1
	# Whoever gets two SIGTERMs at once may say so twice.
	[ "$(grep -c "heard $1" "$work/out")" -ge 4 ]
}

run_killed() { # CHILD: hamlyn-run itself, or the process of it that runs the job
	local victim
	in_background -n 4 --host a,b sleep "$nap"
	so_many_sleep 4 || return 1
	victim=$job
	[ "$1" = 0 ] || victim=$(cat "/proc/$job/task/$job/children")
	# shellcheck disable=SC2086 # one word, and a blank
	kill -s KILL $victim
	wait "$job" 2>/dev/null
	nobody_sleeps
}

interrupted_early() { # no agent has answered
	local status=0 i
	rm -f "$work/a"
	sed 's|^exec.*|exec sleep '"$nap"'|' "$work/launch" >"$work/hang"
	chmod +x "$work/hang"
	env --default-signal "$RUN" --launch "$work/hang" -n 2 --host .,a sleep "$nap" \
		>"$work/out" 2>"$work/err" </dev/null &
	job=$!
	so_many_sleep 2 || return 1
	kill -s INT "$job"
	wait "$job" || status=$?
	[ "$status" = 130 ] && grep -q "came while processes were started on other hosts" "$work/err" &&
		nobody_sleeps
}

stubborn() {
	ends 124 "took more than 1 s" -n 2 --host a,b --timeout 1 sh -c "trap '' TERM; sleep $nap; :" &&
		nobody_sleeps
}

silent() { # an agent that is stopped: no frame comes, and the link stays
	local status=0 keeper agent
	in_background -n 2 --host a,. sleep "$nap"
	so_many_sleep 2 || return 1
	keeper=$(cat "$work/a")
	agent=$(tr -d ' ' <"/proc/$keeper/task/$keeper/children")
	kill -s STOP "$keeper" "$agent"
	wait "$job" || status=$?
	kill -s CONT "$keeper" 2>/dev/null
	kill -s CONT "$agent"
	[ "$status" = 1 ] && grep -q "host a: it does not answer any more" "$work/err" && nobody_sleeps
}

keeps_going() { # without the processes of a host that is lost
	# shellcheck disable=SC2016 # for the shell inside
	run -n 3 --host .,a,b --keep-going sh -c \
		'test $PMI_RANK != 1 || kill -9 $(cat "'"$work"'/a"); sleep 1; echo $PMI_RANK'
	local status=$?
	[ "$status" = 1 ] && [ "$(sort "$work/out" | paste -sd' ')" = "0 2" ]
}

# What an agent does with orders that hamlyn-run does not give
cat >"$work/orders.py" <<'EOT'
import os, struct, subprocess, sys
types, run, what = sys.argv[1].split(), sys.argv[2], sys.argv[3]
number = lambda *n: struct.pack("=%dq" % len(n), *n)

def frame(name, rank=0, data=b""):
    return struct.pack("=III", types.index(name), rank, len(data)) + data

def start(folder=b"/", total=1, first=0, processes=1, words=(b"echo", b"here"), says=None,
          reader=-1):
    texts = [folder, b""] + list(words)
    return frame("START", 0, struct.pack("=8i", total, first, processes, reader, 0, 0, 0,
                                         len(words) if says is None else says)
                 + b"".join(t + b"\0" for t in texts))

orders = {
    "folder": start(b"/nowhere/at-all"),
    "twice": start() + start(),
    "ranks": start(total=2, first=1, processes=2),
    "many": start(total=100000),
    "words": start(says=1000000),
    "none": start(words=(), says=0),
    "stdin": start(words=(b"sleep", b"1000"), reader=0) + frame("STDIN", 0, b"x" * 65536) * 7,
    "taken": start() + frame("TAKEN", 0, number(-1)),
    "pmi": start() + frame("PMI", 7, b"x"),
    "bridge": frame("BRIDGE", 0, b"x"),
    "answers": frame("EXIT", 0, number(1, 0)),
    "nothing": b"",
}
agent = subprocess.Popen([run, "--agent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
try:
    agent.stdin.write(orders[what])
    agent.stdin.flush()
except BrokenPipeError:
    pass
seen = agent.stdout.readline() if what != "folder" else b""
if what == "folder": # it stays until the link ends
    agent.stdout.readline()
    head = agent.stdout.read(12)
    type, rank, n = struct.unpack("=III", head)
    print(types[type], agent.stdout.read(n).decode())
if what in ("folder", "nothing"):
    agent.stdin.close()
agent.stdout.read()
sys.exit(agent.wait() != 0)
EOT

frame_types() {
	sed -n '/^enum frame_type/,/^}/s/^\tFRAME_\([A-Z]*\),.*/\1/p' tools/hamlyn-run/hosts/link.h |
		paste -sd' '
}

ordered() { # ORDERS: it ends, and well
	bounded python3 "$work/orders.py" "$(frame_types)" "$RUN" "$1"
}

folder_gone() {
	ordered folder &&
		grep -q "^REFUSE its folder cannot be entered: /nowhere/at-all" "$work/out"
}

many_hosts() { # and many processes
	local hosts
	hosts=$(seq -f h%g 1 20 | paste -sd,)
	all_there 100 --host "$hosts"
}

# An agent that is none, after its greeting. BYTES: what python3 makes of them
cat >"$work/liar.py" <<'EOT'
import os, struct, sys, time
TYPES = sys.argv[2].split()
frame = lambda name, rank, data=b"": struct.pack("=III", TYPES.index(name), rank, len(data)) + data
number = lambda *n: struct.pack("=%dq" % len(n), *n)
os.write(1, ("hamlyn-run-agent %s\n" % sys.argv[1]).encode())
start = os.read(0, 65536)
lies = {
    "garbage": b"garbage" * 20,
    "type": struct.pack("=III", 77, 0, 0),
    "length": struct.pack("=III", TYPES.index("OUT"), 0, 1 << 30),
    "rank": frame("OUT", 1, b"of another's process\n"),
    "far": frame("OUT", 0xffffffff, b"of nobody\n"),
    "exit": frame("EXIT", 1, number(1, 0)),
    "window": frame("OUT", 0, b"x" * 65535 + b"\n") * 100,
    "fed": frame("FED", 0, number(1 << 40)),
    "started": frame("STARTED", 0, number(1)) * 3,
    "refuse": frame("REFUSE", 0, b"y" * 60000) + frame("REFUSE", 0, b""),
    "orders": frame("KILL", 0),
    "start": frame("START", 0, b"x" * 100),
}
rest = lies[sys.argv[3]]
# Standard output of hamlyn-run may be slow, its link is not
while rest:
    rest = rest[os.write(1, rest):]
# Who has refused has nothing to do for the next order
if sys.argv[3] == "refuse":
    os.read(0, 65536)
    sys.exit(1)
time.sleep(1000)
EOT

liar() { # LIE: $work/lie is an agent that tells it
	local types version
	types=$(frame_types)
	version=$("$RUN" --version | cut -d' ' -f2)
	printf '#!/bin/sh\nexec python3 "%s" "%s" "%s" %s\n' "$work/liar.py" "$version" "$types" "$1" \
		>"$work/lie"
	chmod +x "$work/lie"
}

lies() { # LIE: it is given up, and what it said of others' processes counts for nothing
	local status=0
	liar "$1"
	bounded "$RUN" --launch "$work/lie" -n 2 --host a:1,.:1 sleep "$nap" || status=$?
	[ "$status" = 1 ] && grep -q "host a: what comes from there makes no sense" "$work/err" &&
		! grep -q "of another" "$work/out" && nobody_sleeps
}

refused() {
	lies refuse
	grep -q "^hamlyn-run: host a: y*; ending the others" "$work/err" && nobody_sleeps
}

floods() { # more lines than have room where nobody reads them: kept to a bound
	local status=0
	liar window
	mkfifo "$work/unread"
	exec 5<>"$work/unread"
	bounded true
	timeout -k 5 "$LIMIT" "$RUN" --launch "$work/lie" --timeout 5 -n 2 --host a:1,.:1 \
		sleep "$nap" >"$work/unread" 2>"$work/err" </dev/null || status=$?
	exec 5>&-
	[ "$status" = 1 ] && grep -q "host a: what comes from there makes no sense" "$work/err"
}

launcher_says() { # TEXT PATTERN: instead of an agent's greeting
	printf '#!/bin/sh\necho "%s"\nsleep 1\n' "$1" >"$work/say"
	chmod +x "$work/say"
	bounded "$RUN" --launch "$work/say" -n 1 --host a true
	[ $? = 1 ] && grep -qE "host a: $2" "$work/err"
}

no_launcher() {
	bounded "$RUN" --launch "$1" -n 1 --host a true
	[ $? = 1 ] && grep -qE "$2" "$work/err"
}

refuses() { # PATTERN ARGUMENT...
	local pattern=$1
	shift
	ends 2 "^hamlyn-run: .*$pattern" "$@" && [ ! -s "$work/out" ]
}

# ---- bridges ----

LOOP=a=127.0.0.1,b=127.0.0.1
# Of a port that somebody has, another one is tried
with_bridges() { # ARGUMENT...
	local i status
	for ((i = 0; i < 5; i++)); do
		status=0
		run --bridge $((20000 + (RANDOM % 8000) * 4)) "$@" || status=$?
		grep -q "Address already in use" "$work/err" || break
	done
	return "$status"
}

devices() { # one for each host, of a name of its own
	with_bridges -n 4 --host "$LOOP" --device shm:bridged-$$,size=8M printenv HAMLYN_DEVICE &&
		[ "$(sort "$work/out" | paste -sd' ')" = \
			"shm:bridged-$$-1,size=8M shm:bridged-$$-1,size=8M shm:bridged-$$-2,size=8M shm:bridged-$$-2,size=8M" ]
}

nothing_left_of_bridges() {
	local i
	for ((i = 0; i < 100 * SCALE; i++)); do
		[ -n "$(compgen -G "/dev/shm/*bridged-$$*")" ] || return 0
		sleep 0.1
	done
	ls /dev/shm >>"$work/err"
	return 1
}

messages() { # HOSTS: of Active Messages, each handled once
	with_bridges -n 2 --host "$1" "$BUILD/am/exactly_once" --messages 2000 --max-size 4000 &&
		grep -q "all handled once, intact" "$work/out"
}

bridge_killed() { # its host's agent says so, and the job ends
	# shellcheck disable=SC2016 # for the shell inside
	with_bridges -n 2 --host "$LOOP" --device shm:bridged-$$ sh -c \
		'test $PMI_RANK = 0 && kill -9 $('"$BUILD"'/hamlyn-bridge $HAMLYN_DEVICE --status |
			sed -n "s/^host [0-9]* bridge //p"); exec sleep '"$nap"
	[ $? = 1 ] && grep -q "host a: its bridge has ended; ending" "$work/err" && nobody_sleeps
}

not_clear() {
	run --bridge 29999 -n 2 --host a=192.0.2.1,b=192.0.2.2 true
	[ $? = 1 ] && grep -q -e "--clear" "$work/err" && grep -q "its bridge has ended" "$work/err"
}

mute() { # a launcher that never says anything
	local status=0
	wait "$waits_for_it" || status=$?
	cat "$work/mute" >"$work/err"
	[ "$status" = 1 ] && grep -q "host a: it has not answered within a minute" "$work/err"
}

# ---- all of it ----

# That takes a minute, beside all others.
printf '#!/bin/sh\nexec sleep 600\n' >"$work/deaf"
chmod +x "$work/deaf"
"$RUN" --launch "$work/deaf" -n 1 --host a true >"$work/mute" 2>&1 </dev/null &
waits_for_it=$!

check "they are divided evenly" divided "a a b b ." -n 5 --host a,b,.
check "and as it is said" divided "a . . . b" -n 5 --host a:1,.:3,b
check "hosts of which some are not needed" divided "a a" -n 2 --host a:4,b:4
check "processes of two hosts find each other" all_there 4 --host a,b
check "with some here" all_there 5 --host .:1,a:2,b:2
check "100 processes of 20 hosts" many_hosts
check "folder, variables, words and device are those here" given
check "but for variables that the host has" theirs_first
check "the host's name in the launcher's words" name_inside
check "lines are whole" whole_lines
check "bytes are unchanged" unchanged
check "standard input that is not read up" not_read_up
check "standard output that is read late" slow_reader
check "a prompt is seen" prompt
check "what is left behind writes without an end" endless_orphan
check "a process that fails" ends 3 "process 2 \(pid [0-9]+ on b\) exited with status 3; ending" \
	-n 4 --host a,b sh -c "test \$PMI_RANK = 2 && exit 3; exec sleep $nap"
check "and the others have ended" nobody_sleeps
check "a process that does not take leave" ends 1 "process 0 .* ended without taking leave" \
	-n 3 --host a,b "$PEER" leave
check "requests whose answers are not read" ends 1 "process [01] .*does not read the answers" \
	-n 2 --host a,b "$PEER" flood
check "garbage on the PMI descriptor" ends 1 'process 1 sent what is no request' \
	-n 2 --host a,b "$PEER" garbage 1
check "a program that is not there" ends 127 '"/nowhere/at-all" cannot be run: No such' \
	-n 2 --host a,b /nowhere/at-all
check "an agent that is killed" agent_killed
check "SIGTERM is passed on" signalled TERM 143
check "SIGINT is passed on" signalled INT 130
check "SIGINT before an agent has answered" interrupted_early
check "nothing is left when hamlyn-run is killed" run_killed 0
check "nor when the process of it that runs the job is" run_killed 1
check "processes that heed no SIGTERM" stubborn
check "--keep-going: a host that is lost" keeps_going
check "a folder that is not there" folder_gone
for lie in garbage type length rank far exit fed started orders start; do
	check "an agent that lies: $lie" lies "$lie"
done
for orders in twice ranks many words none stdin taken pmi bridge answers nothing; do
	check "an agent ends at orders that make no sense: $orders" ordered "$orders"
done
check "an agent that refuses" refused
check "an agent that sends more than there is room for" floods
check "a shell that has something to say" launcher_says "Welcome to a" \
	'not hamlyn-run.s agent answers there, but "Welcome to a"'
check "an agent of another version" launcher_says "hamlyn-run-agent 9.9" \
	"it has hamlyn-run 9.9, and this is "
check "a launcher that ends" no_launcher false "its launcher ended before"
check "a launcher that is not there" no_launcher /nowhere/at-all \
	'"/nowhere/at-all" cannot be run: No such file'
check "too few places" refuses "5 processes are to run, and the hosts take 4" -n 5 \
	--host a:2,b:2 true
check "a number that is none" refuses 'from 1 to 1024 processes, not "x"' -n 2 --host a:x true
check "no name" refuses 'not ""' -n 2 --host a,,b true
check "an option for a name" refuses 'not "-oProxyCommand=x"' -n 2 --host -oProxyCommand=x true
check "no address" refuses "NAME\[=ADDRESS\]" -n 2 --host a= true
check "no launcher" refuses "takes from 1 to 64 words, not 0" -n 1 --launch " " true
check "one of too many words" refuses "takes from 1 to 64 words, not 65" -n 1 --launch \
	"$(seq -s ' ' 65)" true
check "--launch without hosts" refuses "for other hosts" -n 2 true
check "a bridge for what is no embedded device" refuses "shm:NAME" -n 2 --host "$LOOP" \
	--bridge 2000 --device /dev/hamlyn0 true
check "a bridge at this host without an address" refuses "--host .=ADDRESS" -n 2 \
	--host .,"$LOOP" --bridge 2000 true
check "--bridge: each host has a device" devices
check "and nothing is left of them" nothing_left_of_bridges
check "Active Messages between two hosts" messages "$LOOP"
check "one of which is this" messages ".=127.0.0.1,b=127.0.0.1"
check "a bridge that is killed" bridge_killed
check "nothing is left of that" nothing_left_of_bridges
check "addresses that are not those of the loopback device" not_clear
check "an agent that is stopped" silent
check "one that does not answer" mute

total
